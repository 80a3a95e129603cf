"""What a source file defines, as plain values: modules, their functions, and what each depends on.  Pure."""

from __future__ import annotations

from dataclasses import dataclass

#: How a module can depend on another; a Python `import` is "imports", a name that is only used "refersTo".
KINDS = ("imports", "aliases", "requires", "uses", "implements", "refersTo")


@dataclass(frozen=True, slots=True, order=True)
class Function:
    """A function, macro or method: its name in its module, its number of arguments where that is part of its name.

    `first` and `last` are its lines, counted from 1, of all its clauses together.
    """

    name: str
    arity: int | None
    private: bool
    first: int
    last: int

    @property
    def label(self) -> str:
        """Return the name as people write it.

        >>> Function("parse", 2, False, 1, 3).label
        'parse/2'
        """
        return self.name if self.arity is None else f"{self.name}/{self.arity}"


@dataclass(frozen=True, slots=True)
class Module:
    """A module as a file defines it: its lines, its functions, and by kind the full names of what it depends on.

    `maybe` are names it imports that are modules only if there is a module of that name: `b` of `from a import b`.
    `tells` are (subject, property, object) of modules: which command emits which event, and what handles it.
    """

    name: str
    first: int
    last: int
    functions: tuple[Function, ...] = ()
    needs: tuple[tuple[str, str], ...] = ()
    maybe: tuple[str, ...] = ()
    tells: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Fault:
    """What could not be read in a file: the line, and what is wrong there."""

    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Extracted:
    """What a file defines, and where it is broken; what stands around a fault is there all the same."""

    modules: tuple[Module, ...] = ()
    faults: tuple[Fault, ...] = ()


def merged(functions: list[Function]) -> tuple[Function, ...]:
    """Return *functions* in order, clauses and redefinitions of one name as one that spans them."""
    found: dict[tuple[str, int | None], Function] = {}
    for each in functions:
        key = each.name, each.arity
        before = found.get(key)
        if before is not None:
            first, last = min(before.first, each.first), max(before.last, each.last)
            each = Function(each.name, each.arity, before.private and each.private, first, last)
        found[key] = each
    return tuple(sorted(found.values(), key=lambda each: (each.first, each.name, each.arity or 0)))
