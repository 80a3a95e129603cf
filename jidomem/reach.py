"""What is reached from some nodes, however many steps away."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from jidomem.terms import Term


def reached(starts: Iterable[Term], links: Callable[[Collection[Term]], Mapping[Term, Iterable[Term]]]) -> set[Term]:
    """Return *starts* and all that comes after them; *links* gives what directly follows each of some nodes.

    >>> after = {"a": ["b"], "b": ["c", "a"], "c": []}
    >>> sorted(reached(["b"], lambda nodes: {node: after[node] for node in nodes}))
    ['a', 'b', 'c']
    """
    seen = todo = set(starts)
    while todo:
        todo = {following for found in links(todo).values() for following in found} - seen
        seen = seen | todo
    return seen
