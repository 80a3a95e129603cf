"""Which memories disagree: two in force at once that share a conflict key, or took the place of one memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from jidomem.conflict_keys import CLASH, Convention
from jidomem.index.asked import ASSERTED, ENDED_BY, RECORDED, STATUS, WRITABLE, Asked, Span
from jidomem.index.listing import FOREVER
from jidomem.reach import reached
from jidomem.terms import Term, bare
from jidomem.vocab import jido

#: The keys of docs/conflicts.md that two in force may not share.
KINDS = ("duplicate", "overlapping_decision", "convention_clash", "contradiction")
STALE, VALUE, PROPOSAL = "stale_supersession", "contradicting_value", "proposal"
#: The key of a value given to a property that can have one; the property of that thing is another key.
_VALUE = '"value-is:'
_KEY, _BY, _WITH = jido("conflictKey"), jido("supersededBy"), jido("conflictsWith")
_ALL_KEYS = f"SELECT ?key WHERE {{ ?item {_KEY} ?key %s}} GROUP BY ?key HAVING(COUNT(?item) > 1)"
#: Keys that two share now, the few; and those that two ever shared, with who does: what was revised shares one with
#: what it says now. So many are found by scans, joined by hashing, and with them since when each is known.
_SHARED_NOW = _ALL_KEYS % f"MINUS {{ ?item {ENDED_BY} ?end }} "
_HELD_EVER = (
    f"SELECT ?key ?holder ?since WHERE {{ {{ SELECT ?key ?holder {{ {{ {_ALL_KEYS % ''} }} "
    f"{{ SELECT * {{ ?holder {_KEY} ?key }} }} }} }} {{ SELECT * {{ ?holder {RECORDED} ?since }} }} }}"
)
#: What ends only in name, so is in force still.
_ENDED_BY_NOTHING = f"SELECT ?item WHERE {{ ?item {ENDED_BY} ?end MINUS {{ ?end {STATUS} {ASSERTED} }} }}"
_FORKS = f"SELECT ?old WHERE {{ ?old {_BY} ?any }} GROUP BY ?old HAVING(COUNT(?any) > 1)"
_HOLDERS = f"SELECT ?key ?item WHERE {{ %s ?item {_KEY} ?key }}"
_AFTER = f"SELECT ?old ?new WHERE {{ %s ?old {_BY} ?new }}"
#: What decides whether two conventions clash.
_CONVENTIONS = (
    f"SELECT ?item ?summary ?level ?about WHERE {{ %s ?item {jido('hasConventionScope')} ?scope "
    f"OPTIONAL {{ ?item {jido('summary')} ?summary }} "
    f"OPTIONAL {{ ?item {jido('hasEnforcementLevel')} ?level }} OPTIONAL {{ ?item {jido('about')} ?about }} }}"
)
_OPPOSED = f"SELECT ?item ?other WHERE {{ %s ?item {_WITH}|^{_WITH} ?other }}"

#: Two memories, sorted, and the kind of their disagreement.
Pair = tuple[Term, Term, str]
Row = tuple[Term | None, ...]


class Rivals:
    """Finds the pairs that disagree in some graphs, each with the span in which both are in force."""

    def __init__(self, asked: Asked) -> None:
        """Find them by what *asked* answers."""
        self._asked = asked

    def all(self, graphs: Sequence[str], *, ever: bool) -> dict[Pair, Span]:
        """Return every pair in force now; with *ever*, every pair that was at some time."""
        pairs = self._by_key(graphs, self._held_ever(graphs) if ever else self._held_now(graphs))
        pairs |= self._by_origin(graphs, self._asked.nodes(graphs, _FORKS))
        return pairs if ever else {pair: span for pair, span in pairs.items() if span[1] == FOREVER}

    def among(self, graphs: Sequence[str], items: Collection[Term]) -> dict[Pair, Span]:
        """Return every pair of which one is among *items*, as long as it was; some others may be with them."""
        held = self._held(graphs, set(self._asked.nodes(graphs, _HOLDERS, items)))
        before = reached(items, lambda nodes: self._links(graphs, nodes, "new"))
        after = self._links(graphs, before, "old")
        return self._by_key(graphs, held) | self._by_origin(graphs, (old for old in before if len(after[old]) > 1))

    def of(self, graphs: Sequence[str], item: Term) -> list[tuple[Term, str]]:
        """Return with what *item* disagrees at some time, and how; what is only proposed may do, too."""
        found = {(b if a == item else a, kind) for a, b, kind in self.among(graphs, [item]) if item in (a, b)}
        opposed = (row[1] or "" for row in self._asked.rows(graphs, _OPPOSED, [item]))
        return sorted(found | {(other, PROPOSAL) for other in opposed if WRITABLE.fullmatch(other)})

    def _held_now(self, graphs: Sequence[str]) -> Iterable[Row]:
        keys = set(self._asked.nodes(graphs, _SHARED_NOW))
        unended = set(self._asked.nodes(graphs, _ENDED_BY_NOTHING))
        return self._held(graphs, keys | set(self._asked.nodes(graphs, _HOLDERS, unended)))

    def _held_ever(self, graphs: Sequence[str]) -> Iterable[Row]:
        return self._asked.rows(graphs, _HELD_EVER)

    def _held(self, graphs: Sequence[str], keys: Iterable[Term]) -> Iterable[Row]:
        """Return each of *keys* that matters with each that holds it."""
        return self._asked.rows(graphs, _HOLDERS, [key for key in keys if _kind(key)], "key")

    def _by_key(self, graphs: Sequence[str], held: Iterable[Row]) -> dict[Pair, Span]:
        """Return the pairs that hold the same key, of what is *held* by whom, and since when where that was found."""
        holders: dict[Term, set[Term]] = defaultdict(set)
        since: dict[Term, Term] = {}
        for key, holder, *moment in held:
            if _kind(key or ""):
                item = holder or ""
                holders[key or ""].add(item)
                for said in filter(None, moment):
                    since[item] = min(said, since.get(item, said))
        groups = [(_kind(key), items) for key, items in holders.items() if len(items) > 1]
        spans = self._asked.spans(graphs, {item for _, items in groups for item in items}, since)
        clash = self._clashing(graphs, {item for kind, items in groups if kind == CLASH for item in items})
        pairs: dict[Pair, Span] = {}
        slots: dict[Pair, int] = defaultdict(int)
        for kind, items in groups:
            for a, b, span in at_once({item: spans[item] for item in items if item in spans}):
                if kind == CLASH and not clash(a, b):
                    continue
                pairs[a, b, kind] = span
                slots[a, b, kind] += kind == VALUE
        agreed = self._agreed(graphs, {item for pair, count in slots.items() if count for item in pair[:2]})
        return {pair: span for pair, span in pairs.items() if pair[2] != VALUE or slots[pair] > agreed(*pair[:2])}

    def _clashing(self, graphs: Sequence[str], items: Collection[Term]) -> Callable[[Term, Term], bool]:
        """Return what says whether two of *items*, conventions of one name or topic, clash."""
        said: dict[Term, tuple[Term | None, Term | None]] = {}
        about: dict[Term, set[str]] = defaultdict(set)
        for item, summary, level, place in self._asked.rows(graphs, _CONVENTIONS, items):
            said[item or ""] = summary, level
            if place:
                about[item or ""].add(bare(place))
        made = {
            item: Convention.of(bare(summary) if summary else None, bare(level) if level else None, about[item])
            for item, (summary, level) in said.items()
        }
        return lambda a, b: a not in made or b not in made or made[a].clashes(made[b])

    def _agreed(self, graphs: Sequence[str], items: Collection[Term]) -> Callable[[Term, Term], int]:
        """Return what counts the values that two of *items* both give; each stands for one slot they share."""
        given: dict[Term, set[Term]] = defaultdict(set)
        for key, item in self._asked.rows(graphs, _HOLDERS, items):
            if (key or "").startswith(_VALUE):
                given[item or ""].add(key or "")
        return lambda a, b: len(given[a] & given[b])

    def _by_origin(self, graphs: Sequence[str], forks: Iterable[Term]) -> dict[Pair, Span]:
        """Return the pairs that came, in the end, in the place of one of *forks*, which have two successors.

        The two of a pair come after different successors. Of two in one line, the earlier of which ended
        only in name, a fork that is recorded later would make a pair that disagreed before.
        """
        after: dict[Term, set[Term]] = defaultdict(set)

        def following(nodes: Collection[Term]) -> Mapping[Term, set[Term]]:
            after.update(found := self._links(graphs, nodes, "old"))
            return found

        forks = [*forks]
        reached(forks, following)
        lines = [_line(fork, after) for fork in forks]
        spans = self._asked.spans(graphs, {item for line in lines for item in line})
        pairs: dict[Pair, Span] = {}
        for line in lines:
            for a, b, span in at_once({item: spans[item] for item in line if item in spans}):
                if len(line[a] | line[b]) > 1:
                    pairs[a, b, STALE] = span
        return pairs

    def _links(self, graphs: Sequence[str], nodes: Collection[Term], name: str) -> dict[Term, set[Term]]:
        """Return the successors of each of *nodes*, which are the `old` ones, or what each, a `new` one, succeeded."""
        found: dict[Term, set[Term]] = {node: set() for node in nodes}
        for old, new in self._asked.rows(graphs, _AFTER, nodes, name):
            node, other = (old, new) if name == "old" else (new, old)
            found[node or ""].add(other or "")
        return found


def _line(fork: Term, after: Mapping[Term, set[Term]]) -> dict[Term, set[Term]]:
    """Return all that came after *fork*, each with the successors of *fork* that it is or came after.

    >>> line = _line("a", {"a": {"b", "c"}, "b": {"d"}, "c": set(), "d": set()})
    >>> line["b"], line["c"], line["d"]
    ({'b'}, {'c'}, {'b'})
    """
    line: dict[Term, set[Term]] = defaultdict(set)
    for successor in after[fork]:
        for item in reached([successor], lambda nodes: {node: after[node] for node in nodes}) - {fork}:
            line[item].add(successor)
    return dict(line)


def _kind(key: Term) -> str:
    """Return the kind of disagreement a key shows; nothing for one that shows none.

    >>> _kind('"duplicate:1f"'), _kind('"value:1f"'), _kind('"identical:1f"')
    ('duplicate', 'contradicting_value', '')
    """
    name = key[1:].partition(":")[0]
    return VALUE if name == "value" else name if name in KINDS else ""


def at_once(spans: Mapping[Term, Span]) -> Iterator[tuple[Term, Term, Span]]:
    """Yield each two whose spans meet, sorted, and the span in which they do.

    >>> [*at_once({"<urn:b>": (0, 5), "<urn:a>": (4, 9), "<urn:c>": (5, 9)})][0]
    ('<urn:a>', '<urn:b>', (4, 5))
    """
    running: list[tuple[int, Term]] = []
    for since, until, item in sorted((since, until, item) for item, (since, until) in spans.items()):
        running = [entry for entry in running if entry[0] > since]
        for ends, other in running:
            first, second = sorted((item, other), key=bare)
            yield first, second, (since, min(until, ends))
        running.append((until, item))
