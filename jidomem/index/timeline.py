"""The timeline: memories in the order of their recorded times, with counts by kind, agent, session and state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from json import dumps
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from jidomem.base.containers import BoundedDict
from jidomem.rdf.vocab import MARKER, type_and_class
from jidomem.records.active import ACTIVE, PENDING, UNACCEPTED, WITHDRAWAL

if TYPE_CHECKING:
    from jidomem.index.search_tables import SearchIndexReader

#: The attributes by which memories are counted and filtered.
FACETS = ("kind", "agent", "session", "state")
#: The states of `jidomem.records.active`, with superseded and invalidated as one, and that of markers.
STATES = (ACTIVE, PENDING, *UNACCEPTED, "expired", "scheduled", "ended", WITHDRAWAL)
_STATE = """CASE WHEN m.rejected <= :moment THEN 'rejected' WHEN m.ended <= :moment THEN 'ended'
WHEN m.inactive IS NOT NULL THEN m.inactive
WHEN m.kind IN (SELECT value FROM json_each(:markers)) THEN 'withdrawal'
WHEN m.valid_until <= :valid_at THEN 'expired' WHEN m.valid_from > :valid_at THEN 'scheduled' ELSE 'active' END"""
#: The database index by which memories are grouped, so that SQLite does not sort; and what adds a column to it.
FACET_INDEX = """CREATE INDEX memory_facets
  ON memory (session, kind, agent, recorded, ended, rejected, inactive, valid_from, valid_until);
"""
REJECTED_COLUMN = f"ALTER TABLE memory ADD COLUMN rejected TEXT;\nDROP INDEX memory_facets;\n{FACET_INDEX}"
_GROUPS = f"""SELECT m.session, m.kind, m.agent, COUNT(*),
{", ".join(f"SUM({_STATE} = '{state}')" for state in STATES[1:])}
FROM memory m WHERE m.recorded <= :moment %s GROUP BY m.session, m.kind, m.agent"""
_SOME = "AND m.item IN (SELECT value FROM json_each(:items))"
_FITTING = f"SELECT m.item FROM memory m WHERE m.recorded <= :moment {_SOME} %s"
_NEWEST = """SELECT m.item, m.recorded FROM memory m WHERE m.recorded <= :moment AND (m.recorded, m.item) < (:at, :item)
%s ORDER BY m.recorded DESC, m.item DESC LIMIT :count"""
_IS = {
    "kind": "AND m.kind IN (SELECT value FROM json_each(:kinds))",
    "agent": "AND m.agent = :agent",
    "session": "AND m.session = :session",
    "state": f"AND {_STATE} = :state",
}
#: The latest `valid_from` and `valid_until` up to a moment: between two of these dates no state changes.
_BOUND = """SELECT MAX(valid_from) FROM memory WHERE valid_from <= :valid_at
UNION ALL SELECT MAX(valid_until) FROM memory WHERE valid_until <= :valid_at"""
_DAYS = """SELECT substr(m.recorded, 1, 10) AS day, COUNT(*) FROM memory m WHERE m.recorded <= :moment
AND m.recorded >= :since %s GROUP BY day"""
_BY_AGENT = """SELECT m.agent, substr(m.recorded, 1, 10) AS day, COUNT(*) FROM memory m WHERE m.recorded <= :moment
GROUP BY m.agent, day"""
_LATEST = "9999"  # after every moment
#: Rows of session, kind, agent, number of memories, and the number in each of STATES[1:].
Groups = list[tuple[Any, ...]]
#: facet -> value -> number of memories.
Facets = Mapping[str, Mapping[str, int]]
_CACHED_GROUPS = 8


class TimelineEntry(NamedTuple):
    """A memory and its recorded time."""

    item: str
    recorded: str


class Overview(NamedTuple):
    """A page of matching memories, newest first; `more` is whether others follow, `days` counts those of its days.

    `facets` has, for each of FACETS, the numbers of memories by value that match all other facets.
    """

    entries: tuple[TimelineEntry, ...]
    more: bool
    days: Mapping[str, int]
    facets: Facets


def overview(
    file: SearchIndexReader,
    chosen: Mapping[str, str],
    *,
    moment: str | None,
    valid_at: str,
    after: TimelineEntry | None,
    count: int,
) -> Overview:
    """Return *count* memories recorded by *moment* that match all of *chosen*, facet -> value, and follow *after*.

    Their states are those at *valid_at*.
    """
    classes, values = _query_parameters(file, chosen, moment, valid_at)
    values["count"] = count + 1
    start = after or TimelineEntry("", _LATEST)
    where = " ".join(_IS[name] for name in chosen)
    parameters = {**values, "at": start.recorded, "item": start.item}
    entries = [TimelineEntry(*row) for row in file.ask(_NEWEST % where, parameters)]
    shown = tuple(entries[:count])
    since = shown[-1].recorded[:10] if shown else _LATEST
    days = dict(file.ask(_DAYS % where, {**values, "since": since}))
    return Overview(shown, len(entries) > count, days, _facets(file, classes, chosen, values))


def among(
    file: SearchIndexReader, items: Sequence[str], chosen: Mapping[str, str], *, moment: str | None, valid_at: str
) -> tuple[list[str], Facets]:
    """Return those of *items*, in their order, recorded by *moment* that match all of *chosen*; and their facets."""
    classes, values = _query_parameters(file, chosen, moment, valid_at)
    values["items"] = dumps([*items])
    fitting = {item for (item,) in file.ask(_FITTING % " ".join(_IS[name] for name in chosen), values)}
    groups = [*file.ask(_GROUPS % _SOME, values)]
    return [item for item in items if item in fitting], _facet_counts(groups, classes, chosen)


def _query_parameters(
    file: SearchIndexReader, chosen: Mapping[str, str], moment: str | None, valid_at: str
) -> tuple[dict[int, str], dict[str, Any]]:
    """Return the classes by number, and the parameters of the queries."""
    classes = {number: type_and_class(types.split())[1] for number, types in file.ask("SELECT number, types FROM kind")}
    kinds, markers = (
        dumps([number for number, each in classes.items() if each == name]) for name in (chosen.get("kind"), MARKER)
    )
    bounds = file.ask(_BOUND, {"valid_at": valid_at})
    valid_at = max((bound for (bound,) in bounds if bound is not None), default="")  # a cache key until the next date
    return classes, {"moment": moment or _LATEST, "valid_at": valid_at, **chosen, "kinds": kinds, "markers": markers}


class WriteCounts(NamedTuple):
    """The number of memories written by each of `agents`, most first, and on each of `days`: agent -> day -> count.

    An unknown agent is "".
    """

    agents: Mapping[str, int]
    days: tuple[str, ...]
    by_day: Mapping[str, Mapping[str, int]]


def write_counts(file: SearchIndexReader, *, moment: str | None, days: int) -> WriteCounts:
    """Return the counts of the memories recorded by *moment*, with the last *days* on which any was written."""
    counts, key = _cached_counts(file).written, (moment or _LATEST, days)
    if key not in counts:
        counts[key] = _count_writes([*file.ask(_BY_AGENT, {"moment": key[0]})], days)
    return counts[key]


def _count_writes(rows: list[tuple[str, str, int]], days: int) -> WriteCounts:
    last = tuple(sorted({day for _, day, _ in rows})[-days:])
    agents: Counter[str] = Counter()
    by_day: dict[str, dict[str, int]] = {}
    for agent, day, count in rows:
        agents[agent or ""] += count
        if day in last:
            by_day.setdefault(agent or "", {})[day] = count
    return WriteCounts(dict(agents.most_common()), last, by_day)


class _Counts:
    """Cached counts of one state of a file: groups by moment, and facets by choice."""

    def __init__(self, mark: Any) -> None:
        self.mark = mark
        self.groups = BoundedDict[tuple[str, str], Groups](_CACHED_GROUPS)
        self.facets = BoundedDict[tuple[str, str, frozenset[tuple[str, str]]], Facets](_CACHED_GROUPS)
        self.written = BoundedDict[tuple[str, int], WriteCounts](_CACHED_GROUPS)


#: The cached counts of the newest state of each file.
_CACHE: WeakKeyDictionary[SearchIndexReader, _Counts] = WeakKeyDictionary()


def _facets(
    file: SearchIndexReader, classes: Mapping[int, str], chosen: Mapping[str, str], values: Mapping[str, Any]
) -> Facets:
    """Return the facets of a choice at the moment of *values*, cached for each state of the file."""
    cached, moment, valid_at = _cached_counts(file), values["moment"], values["valid_at"]
    at, key = (moment, valid_at), (moment, valid_at, frozenset(chosen.items()))
    if key not in cached.facets:
        if at not in cached.groups:
            cached.groups[at] = [*file.ask(_GROUPS % "", values)]
        cached.facets[key] = _facet_counts(cached.groups[at], classes, chosen)
    return cached.facets[key]


def _cached_counts(file: SearchIndexReader) -> _Counts:
    mark = file.metadata("mark")
    cached = _CACHE.get(file)
    if cached is None or cached.mark != mark:
        cached = _CACHE[file] = _Counts(mark)
    return cached


def _facet_counts(groups: Groups, classes: Mapping[int, str], chosen: Mapping[str, str]) -> Facets:
    counters: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
    kinds, agents, sessions, states = (counters[name] for name in FACETS)
    kind, agent, session, state = (chosen.get(name) for name in FACETS)
    for row_session, number, row_agent, total, *inactive in groups:
        row_kind = classes[number]
        counts = {ACTIVE: total - sum(inactive), **dict(zip(STATES[1:], inactive, strict=True))}
        fit = total if state is None else counts.get(state, 0)
        is_kind, is_agent = kind in (None, row_kind), agent in (None, row_agent)
        is_session = session in (None, row_session)
        if fit:
            if is_agent and is_session:
                kinds[row_kind] += fit
            if is_kind and is_session:
                agents[row_agent] += fit
            if is_kind and is_agent:
                sessions[row_session] += fit
        if is_kind and is_agent and is_session:
            states.update({name: count for name, count in counts.items() if count})
    return {name: dict(counter.most_common()) for name, counter in counters.items()}
