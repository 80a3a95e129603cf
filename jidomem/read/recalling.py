"""Recall by words: what is in force and says something of what is asked, the best first."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from itertools import accumulate
from typing import Any

from jidomem.errors import InvalidRequest, NotFound
from jidomem.index import OxigraphIndex
from jidomem.index.text_file import TextFile, Within
from jidomem.index.texts import Texts
from jidomem.lexical import Counts, Match
from jidomem.query import to_term
from jidomem.read import item, rank
from jidomem.read.rank import Scored
from jidomem.recall import Hit, Narrowing, RecallRequest, RecallResult
from jidomem.repository.ignored import matches
from jidomem.schema import ITEM, Schema
from jidomem.terms import bare
from jidomem.vocab import BASE, CLASS_OF_TYPE, JIDO, TYPE_ALIASES, local_name
from jidomem.words import TELL_LITTLE

#: Of a long text the words that tell most are looked for.
MOST_WORDS = 64
#: So many memories that hold the rarest words are looked at before those that hold other words alone.
FIRST = 2_000
#: What says of a memory that it holds no more, and is left out with it.
_TOMBSTONES = frozenset((f"{JIDO}DeletedMarker",))
#: property -> what a hit calls its value.
_TOLD = {
    "topic": "topic",
    "rationale": "rationale",
    "detailedExplanation": "detailed_explanation",
    "hasConfidence": "confidence",
    "hasSourceType": "source",
    "hasTaskStatus": "state",
    "hasErrorStatus": "state",
    "decisionStatus": "state",
    "severityLevel": "severity",
    "hasEnforcementLevel": "enforcement_level",
}


class Recalling:
    """What answers recall over the texts of one root."""

    def __init__(self, texts: Texts, index: OxigraphIndex, schema: Schema) -> None:
        self._texts = texts
        self._index = index
        self._schema = schema

    def recall(self, project: str, request: RecallRequest, narrowing: Narrowing) -> RecallResult:
        """Return up to `limit` memories that hold words of the query; raises InvalidRequest for what is no filter."""
        within = self._within(project, request, narrowing)
        stems = {stem: word for word, stem in self._texts.stemmer.stems(request.query)}
        found, looked_for, counts = self._texts.read(
            project, lambda file: _search(file, stems, within, narrowing.about, request.limit + 1)
        )
        hits = [hit for one in found[: request.limit] if (hit := self._hit(project, one, narrowing)) is not None]
        metadata = {
            "project": project,
            "words": looked_for,
            "unknown_words": [stem for stem in stems if not counts.holding.get(stem)],
            "memories": counts.memories,
            "more": len(found) > request.limit,
        }
        return RecallResult(request, tuple(hits), metadata)

    def _within(self, project: str, request: RecallRequest, narrowing: Narrowing) -> Within:
        """Return what is looked through."""
        if request.scope == "session" and request.session_id is None:
            raise InvalidRequest("the scope session needs a session", hint="give session_id, or leave scope out")
        session = request.session_id if request.scope == "session" else narrowing.session
        return Within(
            moment=_moment(narrowing, "as_of"),
            inactive=narrowing.include_inactive,
            kinds=self._kinds(narrowing),
            but=frozenset() if narrowing.kinds or narrowing.include_inactive else _TOMBSTONES,
            since=_moment(narrowing, "since"),
            until=_moment(narrowing, "until"),
            valid_at=_moment(narrowing, "valid_at"),
            agent=_named("agents", narrowing.agent),
            session=_named("sessions", session),
        )

    def _kinds(self, narrowing: Narrowing) -> frozenset[str] | None:
        """Return the classes asked for with all below them, None where none is."""
        if not narrowing.kinds:
            return None
        known = {local_name(cls): cls for cls in sorted(self._schema.subclasses(ITEM))}
        found: set[str] = set()
        for kind in narrowing.kinds:
            name = CLASS_OF_TYPE.get(TYPE_ALIASES.get(kind, kind), local_name(kind))
            if name not in known:
                near = get_close_matches(kind, [*CLASS_OF_TYPE, *known], n=1, cutoff=0.5)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(CLASS_OF_TYPE)}"
                raise InvalidRequest(f"{kind!r} is no kind of memory", hint=hint)
            found.update(map(bare, self._schema.subclasses(known[name])))
        return frozenset(found)

    def _hit(self, project: str, found: Scored, narrowing: Narrowing) -> Hit | None:
        """Return what is told of a memory that was found; None where this process has not yet heard of it."""
        try:
            told = item.get(self._index, project, found.match.item, narrowing.as_of)
        except NotFound:
            return None
        said = {name: values[0] for name, values in told["properties"].items() if values}
        metadata: dict[str, Any] = {
            "kind": told["type"] or told["class"],
            "status": told["status"],
            "recorded_at": told["recorded_at"],
            "about": told["properties"].get("about", []),
        }
        for name, called in _TOLD.items():
            if name in said:
                is_term = str(said[name]).startswith(JIDO)
                metadata[called] = local_name(said[name]) if is_term else said[name]
        metadata |= {name: told[name] for name in ("superseded_by", "invalidated_by") if told[name]}
        parts = {**found.parts, "words": dict(found.words)} if narrowing.explain else None
        agent, session = (local_name(said[name]) if name in said else None for name in ("assertedBy", "assertedIn"))
        return Hit(found.match.item, agent, session, str(said.get("summary", "")), found.score, metadata, parts)


def _moment(narrowing: Narrowing, name: str) -> str | None:
    value = getattr(narrowing, name)
    return None if value is None else bare(to_term(value, "dateTime", name))


def _named(folder: str, name: str | None) -> str | None:
    """Return the IRI that the name of an agent or session stands for."""
    return name if name is None or name.startswith((BASE, "urn:", "http")) else f"{BASE}{folder}/{name}"


def _search(
    file: TextFile, stems: Mapping[str, str], within: Within, about: Iterable[str], limit: int
) -> tuple[list[Scored], list[str], Counts]:
    """Return the best matches in order, the words they were looked for by, and the counts behind their scores.

    What holds none but words that tell little is found only by a query of such words alone.
    """
    now = file.counts(stems)
    then = now if within.moment is None else file.counts(stems, within.moment)
    little = {stem for stem, word in stems.items() if word in TELL_LITTLE}
    known = rank.weights((stem for stem in stems if then.holding[stem]), then, little)
    telling = {stem: known[stem] for stem in known if stem not in little or len(little) == len(stems)}
    rarest = sorted(telling, key=lambda stem: (-known[stem], stem))[:MOST_WORDS]
    beside = sorted(known.keys() & little - set(rarest))[:MOST_WORDS]
    weight = {stem: known[stem] for stem in (*rarest, *beside)}
    search = _Search(file, within, weight, now, then, limit)
    if rarest:
        search.run(rarest, file.about(_governing(file.places(), about)) if about else frozenset())
    return [found for _, found in search.best], list(weight), then


class _Search:
    """One search: `best` holds the best so far, the very best first."""

    def __init__(
        self, file: TextFile, within: Within, weight: Mapping[str, float], now: Counts, then: Counts, limit: int
    ) -> None:
        self.best: list[tuple[tuple[float, str, str], Scored]] = []
        self._file = file
        self._within = within
        self._weight = weight
        self._now = now
        self._then = then
        self._limit = limit
        self._seen: set[int] = set()
        self._about: frozenset[int] = frozenset()

    def run(self, rarest: list[str], about: frozenset[int]) -> None:
        """Look at all that may be among the best: what is *about* a file asked for, then what holds the rarest words.

        What no longer can be among them is not looked at: its score has a ceiling.
        """
        self._about = about
        if about:
            self._look(rarest, 0.0, only=about)
        for taken in range(self._first(rarest), len(rarest) + 1):
            rest = rank.most(told for stem, told in self._weight.items() if stem not in rarest[:taken])
            self._look(rarest[:taken], rest)
            if self._is_settled(rest):
                return

    def _first(self, rarest: list[str]) -> int:
        """Return how many of the rarest words are looked for first: as many as FIRST memories hold, or else one."""
        held = accumulate(self._then.holding[stem] for stem in rarest)
        return max(1, sum(1 for memories in held if memories <= FIRST))

    def _look(self, stems: list[str], rest: float, only: frozenset[int] | None = None) -> None:
        """Score what holds one of *stems*; other words add no more than *rest*."""
        times, beside = rank.ceiling({stem: self._weight[stem] for stem in stems}, self._now, self._then)
        for match in self._file.matches(stems, self._within, only):
            if only is None and self._is_settled(match.reach * times + beside + rest):
                return
            if match.number not in self._seen:
                self._seen.add(match.number)
                self._add(self._final(match, {match.item}))

    def _is_settled(self, lexical: float) -> bool:
        """Return whether what scores no more than *lexical* by its words, and is about no file, is none of the best."""
        worst = self.best[-1][1].score if len(self.best) == self._limit else 0.0
        return len(self.best) == self._limit and lexical * (1 + rank.TIES) * (1 + 1e-9) < worst

    def _final(self, match: Match, seen: set[str]) -> Scored:
        """Return the score of a match, behind those of its successors that match as well."""
        is_about = match.number in self._about
        found = rank.scored(replace(match, is_about=is_about), self._weight, self._then)
        if not self._within.inactive or not match.successors:
            return found
        after = []
        for name in match.successors:
            successor = self._file.match(name, self._within.moment) if name not in seen else None
            if successor is not None:
                later = self._final(successor, seen | {name})
                after += [later] if later.score else []
        return rank.behind(found, after)

    def _add(self, found: Scored) -> None:
        insort(self.best, (found.place, found), key=lambda entry: entry[0])
        del self.best[self._limit :]


def _governing(places: Iterable[str], paths: Iterable[str]) -> list[str]:
    """Return which of *places* govern one of *paths*: the file, a folder above it, a pattern, or its module."""
    asked = [path.removeprefix("./").rstrip("/") for path in paths]
    return [place for place in places if any(_governs(place.removeprefix("./"), path) for path in asked)]


def _governs(place: str, path: str) -> bool:
    if path == place.rstrip("/") or path.startswith(place.rstrip("/") + "/"):
        return bool(place.strip("/"))
    module = path.rsplit(".", 1)[0].replace("/", ".")
    if place in (module, module.removeprefix("src."), module.removeprefix("lib.")):
        return True
    return any(sign in place for sign in "*?[") and matches(place, path)
