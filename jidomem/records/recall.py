"""The values of recall: requests, hits, passages and candidates, validated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from shlex import quote
from typing import Any, NamedTuple

from jidomem.base.clock import json_value
from jidomem.base.json_values import FrozenList
from jidomem.base.regex import lazy
from jidomem.base.words import TELL_LITTLE, quoted, quoted_name
from jidomem.errors import InvalidRequest, TooLarge, did_you_mean, hint_fields
from jidomem.rdf.vocab import short_id
from jidomem.records.active import ACTIVE, Inactive
from jidomem.records.differences import differences, is_much_longer, share_half
from jidomem.records.entry import Entry, fault_of_text, fields_from, frozen_metadata
from jidomem.records.interfaces import NAMESPACE, CorpusStats

SCOPES = ("agent", "session")
#: The key in the metadata of an answer with the number of the agent's entries in each session that was not searched.
OTHER_SESSIONS = "other_sessions"
#: The key with the memories that match words and have no vector yet: their scores say less than those of others.
NOT_COMPARED = "not_compared"
_PLURALS = {"entry": "entries", "turn": "turns"}
#: The most of these sessions that are named.
_NAMED = 5
#: The best score below which a question with words that no memory has is doubted to have an answer: of 80 questions to
#: other projects 75 have none or are doubted, and 18 of 70 whose answer is shown.
DOUBT_BELOW_SCORE = 0.06
#: The most characters of the values in which two memories differ.
_LONGEST_VALUES = 80
#: Named query -> the words of a question for all that it lists.
_LISTS = {
    "open-tasks": lazy(
        r"(?i)\b(?:(?:open|remaining|unfinished|pending|outstanding) (?:tasks?|to-?dos?|work)|left to do|to-?do list"
        r"|tasks? (?:are|is|remain)(?: still)?(?: open| left| pending)?\b(?! about)|what(?:'s| is) (?:left|next)"
        r"|what should (?:i|we) (?:do|work on))\b"
    ),
    "recent-decisions": lazy(
        r"(?i)\b(?:(?:which|what|all|list|recent|latest|last) (?:[\w-]+ ){0,2}decisions"
        r"|what (?:was|were|did we|have we) decided?(?: so far| recently| last \w+)?\W*$)"
    ),
    "conflicts": lazy(
        r"(?i)\b(?:conflicts?|contradictions?|disagreements?) (?:are|exist|remain)|(?:which|what|any|all|list|open)"
        r" (?:[\w-]+ )?(?:conflicts|contradictions|disagreements)\b"
    ),
    "open-errors": lazy(
        r"(?i)\b(?:open|known|unresolved|current) (?:errors|bugs|problems)\b|\berrors are (?:still )?open\b"
    ),
}
_INVALID = "invalid memory recall request: "
#: The default and the largest number of results, and the most bytes of a query.
DEFAULT_LIMIT, LARGEST_LIMIT, LONGEST_QUERY = 5, 1_000, 65_536
#: The least score that is shown by default. In each ranking at most a twentieth of the answers that are among the first
#: ten is below it, of talk without vectors a fifteenth; `bench.calibration` has the curve.
MIN_SCORE = 0.02
#: The least share of the best score that a memory needs by default: 2 of 71 questions about the labelled notes have
#: their only answer among the first five below it. Talk needs none: an answer may be spread over turns.
MIN_SHARE, NON_MEMORY_KINDS = 1 / 3, frozenset(("entry", "turn", "page"))
#: The number of memories to which scores are fitted, as many as each of the labelled projects has, and the number below
#: which `min_best_score` rises no more. Of 198 questions without an answer among 3, 6 or 12 notes, it leaves 139
#: silent, MIN_SCORE 119; of 77 that are answered, 3.
FITTED_MEMORIES, FEW_MEMORIES = 29, 6


class InvalidRecall(InvalidRequest, ValueError):
    """The value is no valid recall request, or no valid result."""


class LongQuery(TooLarge, ValueError):
    """The query is too long."""


@hint_fields
@dataclass(frozen=True, slots=True)
class RecallRequest:
    """A recall request: *query* is any text, whose single words may match; *limit* is 1 to 1,000.

    With the scope `session` only the entries of *session_id* are searched. `metadata` is the caller's.
    """

    agent_id: str = ""
    query: str = ""
    session_id: str | None = None
    scope: str = "agent"
    limit: int = DEFAULT_LIMIT
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Raise InvalidRecall for an invalid field, LongQuery for a query that is too long."""
        for name in ("agent_id", "query"):
            if not (isinstance(getattr(self, name), str) and getattr(self, name).strip()):
                raise _invalid(f"{name} is missing or empty", f"give {name} as text")
        if fault := fault_of_text(self.agent_id):
            raise _invalid(f"agent_id {fault}", "give the name of an agent")
        if self.session_id is not None and fault_of_text(self.session_id):
            raise _invalid("session_id is not a name", "give the name of a session, or leave it out")
        if self.scope not in SCOPES:
            raise _invalid(f"scope={self.scope!r:.200} is not a scope", f"use one of: {', '.join(SCOPES)}")
        if isinstance(self.limit, bool) or not isinstance(self.limit, int):
            raise _invalid(
                f"limit={self.limit!r:.200} is not a whole number", f"give limit={DEFAULT_LIMIT}, or leave it out"
            )
        if not 0 < self.limit <= LARGEST_LIMIT:
            fitting = DEFAULT_LIMIT if self.limit < 1 else LARGEST_LIMIT
            raise _invalid(
                f"limit={self.limit!r:.200} is not from 1 to {LARGEST_LIMIT:,}",
                f"give limit={fitting}, or leave it out",
            )
        object.__setattr__(self, "metadata", frozen_metadata(self.metadata, _invalid))
        if len(self.query.encode("utf-8", "replace")) > LONGEST_QUERY:
            detail = f"{_INVALID}the query has more than {LONGEST_QUERY:,} bytes"
            raise LongQuery(detail, hint="search for the important words only")

    @classmethod
    def from_input(cls, given: object = None, /, **more: Any) -> RecallRequest:
        """Return the request given as a request, a mapping, keywords or a combination; keywords win.

        Raises InvalidRecall, also for an unknown key.
        """
        if isinstance(given, RecallRequest) and not more:
            return given
        return RecallRequest(**fields_from(RecallRequest, given, more, _invalid))

    def covers(self, entry: Entry, *, include_sessions: bool = False) -> bool:
        """Return whether *entry* is in the scope: an entry of the agent, without a session or in the named session.

        The scope `session` excludes entries without a session; *include_sessions* adds the entries of every session to
        the scope `agent`. A request whose metadata name a namespace covers only entries of that namespace.
        """
        other_namespace = NAMESPACE in self.metadata and self.metadata[NAMESPACE] != entry.metadata.get(NAMESPACE)
        if other_namespace or entry.agent_id != self.agent_id:
            return False
        any_session = self.scope == "agent"
        if entry.session_id is None:
            return any_session
        return entry.session_id == self.session_id or (any_session and include_sessions)


@dataclass(frozen=True, slots=True)
class RecallFilters:
    """The filters of a recall.

    *kinds* are types or classes, each with its subclasses; *about* are files, and memories about one of them rank
    higher. *since* and *until* bound the time of recording; *agent* and *session* are those of the assertion. Results
    with a score below *min_score* are left out; None is the default of `MemoryRecall.reaching`.
    """

    kinds: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    since: object = None
    until: object = None
    as_of: object = None
    valid_at: object = None
    agent: str | None = None
    session: str | None = None
    include_inactive: bool = False
    budget_tokens: int | None = None
    explain: bool = False
    min_score: float | None = None

    def __post_init__(self) -> None:
        """Raise InvalidRequest for a field of another type."""
        for name in ("kinds", "about"):
            value = getattr(self, name)
            if isinstance(value, str) or not isinstance(value, Sequence) or any(map(fault_of_text, value)):
                raise _invalid(f"{name}={value!r:.200} is not a list of texts", f'give {name}=["..."]')
            object.__setattr__(self, name, tuple(value))
        for name in ("agent", "session"):
            if getattr(self, name) is not None and fault_of_text(getattr(self, name)):
                raise _invalid(
                    f"{name}={getattr(self, name)!r:.200} is not a name", f"give a name, or leave {name} out"
                )
        for name in ("include_inactive", "explain"):
            if not isinstance(getattr(self, name), bool):
                raise _invalid(
                    f"{name}={getattr(self, name)!r:.200} is not true or false", f"give {name}=true, or leave it out"
                )
        budget = self.budget_tokens
        if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int) or budget < 1):
            raise _invalid(f"budget_tokens={budget!r:.200} is not a positive whole number", "give budget_tokens=500")
        least = self.min_score
        is_number = isinstance(least, (int, float)) and not isinstance(least, bool)
        if least is not None and not (is_number and 0 <= least <= 1):
            raise _invalid(
                f"min_score={least!r:.200} is not a number from 0 to 1", "give min_score=0 to see all results"
            )


@dataclass(frozen=True, slots=True)
class RecallResult:
    """The answer to *request*: the entries in the order of the store, and the `metadata` of the store."""

    request: RecallRequest
    entries: Sequence[Entry] = field(default_factory=list, hash=False)
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Raise InvalidRecall for an invalid request or list, InvalidEntry for an invalid entry."""
        if not isinstance(self.request, RecallRequest):
            raise _invalid_result("request is not a RecallRequest", "give the request that is answered")
        if isinstance(self.entries, (str, Mapping)) or not isinstance(self.entries, Iterable):
            raise _invalid_result("entries is not a list", "give a list of entries, or leave it out")
        object.__setattr__(self, "entries", FrozenList(Entry.from_input(entry) for entry in self.entries))
        object.__setattr__(self, "metadata", frozen_metadata(self.metadata, _invalid_result))

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain JSON values."""
        return {
            "query": self.request.query,
            "entries": [entry.to_dict() for entry in self.entries],
            "metadata": json_value(self.metadata),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit(Entry):
    """A recalled memory: an entry with its IRI as `id`, and its score, the probability that it answers the question.

    `content` is its summary. `excerpt` is the decision and its reasons, cut at a sentence; if the question matches a
    later passage, its best sentences follow. `metadata` has type, status and more; `parts`, if requested, sum to
    the place in the ranking, from which the score follows; `reasons` explain them, a line for each signal.
    """

    score: float
    excerpt: str = ""
    parts: Mapping[str, Any] | None = field(default=None, hash=False)
    reasons: tuple[str, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the hit as plain JSON values."""
        fields = {"id": self.id, "agent_id": self.agent_id, "session_id": self.session_id, "content": self.content,
                "excerpt": self.excerpt, "score": self.score, "metadata": json_value(self.metadata)}  # fmt: skip
        if self.reasons is not None:
            fields["reasons"] = list(self.reasons)
        return fields if self.parts is None else {**fields, "parts": dict(self.parts)}


@dataclass(frozen=True, slots=True)
class MemoryRecall(RecallResult):
    """The recalled memories of a project, best first; `metadata` has the ranking and the omissions.

    `nearest` is the best of the others if no memory reaches the least score. `inactive` counts the memories that are
    not active and would rank among the entries, or among the first five.
    """

    entries: Sequence[Hit] = field(default_factory=list, hash=False)
    inactive: Inactive = field(default_factory=Inactive, hash=False)
    nearest: Hit | None = field(default=None, hash=False)

    def reaching(self, least: float | None, *, relative: bool = True) -> MemoryRecall:
        """Return the memories with a score of at least *least*; `metadata["below"]` counts the others of the best.

        By default the least is MIN_SCORE and, if *relative* and there is no talk, MIN_SHARE of the best score, except
        for memories without a vector so far. None is shown then if the best of few memories is below `min_best_score`.
        """
        free = set[str]()
        if least is None:
            is_relative = relative and not any(hit.metadata.get("kind") in NON_MEMORY_KINDS for hit in self.entries)
            best = max((hit.score for hit in self.entries), default=0.0)
            least, free = max(MIN_SCORE, MIN_SHARE * best * is_relative), {*self.metadata.get(NOT_COMPARED, ())}
            if is_relative and best < (few := min_best_score(int(self.metadata.get("memories", FITTED_MEMORIES)))):
                least = few
        entries = [hit for hit in self.entries if hit.score >= (MIN_SCORE if hit.id in free else least)]
        below = len(self.entries) - len(entries)
        more = bool(self.metadata.get("more")) and not below
        metadata = {**self.metadata, "more": more, "min_score": least, "below": below}
        nearest = self.entries[0] if below and not entries else None
        return replace(self, entries=entries, metadata=metadata, nearest=nearest)

    def index_notice(self) -> str:
        """Return the sentence on the memories that were not searched while the search index is built."""
        if not (index := self.metadata.get("index")):
            return ""
        return (f"the search index is being built: only the memories of {index['added']:,} of {index['commits']:,} "
                "commits were searched; try again")  # fmt: skip

    @property
    def vectors_notice(self) -> str:
        """Return `vectors_notice` of the project."""
        return vectors_notice(self.metadata)

    def sessions_notice(self, option: str = "session=") -> str:
        """Return the sentence on the entries in sessions that were not searched, and the *option* that searches one."""
        left: Mapping[str, int] = self.metadata.get(OTHER_SESSIONS, {})
        if not left:
            return ""
        named = ", ".join(f"{name}: {count:,}" for name, count in [*left.items()][:_NAMED])
        more = f" and {len(left) - _NAMED:,} more sessions" if len(left) > _NAMED else ""
        return f"entries in other sessions, not searched: {sum(left.values()):,} ({named}{more}); add {option}NAME"

    @property
    def below_notice(self) -> str:
        """Return the sentence on the matches with a lower score than the least that is shown."""
        count = self.metadata.get("below", 0)
        return f"{count:,} weaker match{'es' * (count != 1)} left out: add min_score=0" if count else ""

    @property
    def low_score_notice(self) -> str:
        """Return the sentence on words of the question that no memory has, if the best score is tiny; for no list."""
        words = [word for word in self.metadata.get("unknown_words", ()) if word.casefold() not in TELL_LITTLE]
        best = max((hit.score for hit in self.entries), default=1.0)
        if not words or best >= DOUBT_BELOW_SCORE or self.metadata.get("questions"):
            return ""
        named = ", ".join(map(quoted_name, words[:_NAMED]))
        return f"perhaps nothing here answers this: the best score is {best:.2g}, and no text has the word {named}"

    def kinds_notice(self, option: str = 'kinds=["{}"]') -> str:
        """Return the sentence on the matching entries and turns if no memory matches, and the *option* for them."""
        counts: Mapping[str, int] = self.metadata.get("other_kinds", {})
        return "; ".join(
            f"{count} {_PLURALS[kind] if count > 1 else kind} match{'es' * (count == 1)}: add {option.format(kind)}"
            for kind, count in counts.items()
        )

    @property
    def agent_notice(self) -> str:
        """Return the sentence on the agent whose memories were searched, if it wrote none, with the nearest names."""
        unknown: Mapping[str, Any] | None = self.metadata.get("unknown_agent")
        if not unknown:
            return ""
        near = " or ".join(map(repr, unknown["nearest"]))
        return f"agent {unknown['name']} wrote nothing here yet" + (f"; did you mean {near}?" if near else "")

    def last_session_notice(self, has_commands: bool = False) -> str:
        """Return the sentence on the last session, if the query names it, with the command or tool call that lists it.

        That is a command where the caller *has_commands*.
        """
        last: Mapping[str, Any] | None = self.metadata.get("last_session")
        if not last:
            return ""
        query, name = "ask memories-of-session", last["session"]
        call = f"jidomem {query} session={quote(name)}" if has_commands else f'{query} (params {{"session": "{name}"}})'
        return f"the last session was {name}, which ended {last['end']:%Y-%m-%d %H:%M} UTC; what it recorded: {call}"

    def lists_notice(self, has_commands: bool = False) -> str:
        """Return the sentence on the named queries that list all that the question asks for."""
        commands = [f"{'jidomem ' * has_commands}ask {name}" for name in self.metadata.get("questions", ())]
        return f"all of them, in order: {' or '.join(commands)}" if commands else ""

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain JSON values."""
        one = self.nearest
        nearest: dict[str, Any] | None = {"id": one.id, "text": one.content, "score": one.score} if one else None
        if nearest and one and one.reasons is not None:
            nearest["reasons"] = list(one.reasons)
        return {**RecallResult.to_dict(self), "inactive": self.inactive.to_dict(), "nearest": nearest}


def newest_first(hits: Iterable[tuple[Iterable[str], Hit]]) -> list[Hit]:
    """Return *hits*, given with the stems of the question that each has.

    A newer memory stands before, and has the score of, an older one that has the same stems and says the same but for a
    value: it may correct it.
    """
    ranked = [(frozenset(stems), hit) for stems, hit in hits]
    for new in sorted(ranked, key=lambda each: _stated(each[1])):
        place = next((at for at, old in enumerate(ranked) if old is new or _may_correct(new, old)), 0)
        if (old := ranked[place]) is not new:
            line = (
                f"newest: it differs from {short_id(old[1].id)} only in a value, and has its score: {old[1].score:.2g}"
            )
            reasons = None if new[1].reasons is None else (*new[1].reasons, line)
            ranked.remove(new)
            ranked.insert(place, (new[0], replace(new[1], score=old[1].score, reasons=reasons)))
    return [hit for _, hit in ranked]


def _may_correct(new: tuple[frozenset[str], Hit], old: tuple[frozenset[str], Hit]) -> bool:
    """Return whether *new* is an active memory, newer than *old*, that says the same but for a value."""
    (stems, hit), (others, other) = new, old
    if stems != others or _stated(hit) <= _stated(other):
        return False
    if {hit.metadata["kind"], other.metadata["kind"]} & NON_MEMORY_KINDS or hit.metadata["status"] != ACTIVE:
        return False
    if is_much_longer(hit.content, other.content) or not share_half(hit.content, other.content):
        return False
    values = differences(hit.content, other.content)  # a plain word in the place of another one tells too little
    return any(each.kind != "name" or not (each.value + each.other).islower() for each in values)


def _stated(hit: Hit) -> datetime:
    """Return when a memory was stated, else when it was recorded."""
    moment: datetime = hit.metadata["time"] or hit.metadata["recorded_at"]
    return moment


def min_best_score(memories: int) -> float:
    """Return the least score that the best one of so many memories needs: MIN_SCORE, for few memories a higher one.

    Its odds, p / (1 - p), are those of MIN_SCORE times FITTED_MEMORIES / *memories*.

    >>> min_best_score(29), round(min_best_score(10), 3), min_best_score(1) == min_best_score(6) < 0.1
    (0.02, 0.056, True)
    """
    odds = MIN_SCORE / (1 - MIN_SCORE) * max(1.0, FITTED_MEMORIES / max(memories, FEW_MEMORIES))
    return odds / (1 + odds)


def matching_named_queries(query: str) -> list[str]:
    """Return the named queries that list all that a question asks for.

    >>> matching_named_queries("Which tasks are open?"), matching_named_queries("what is left to do?")
    (['open-tasks'], ['open-tasks'])
    >>> [*map(matching_named_queries, ("Which open decisions conflict?", "Why was the task of the importer closed?"))]
    [['recent-decisions'], []]
    """
    return [name for name, words in _LISTS.items() if words.search(query)]


def vectors_notice(lag: Mapping[str, Any]) -> str:
    """Return the sentence on the texts that may have no vector yet; *lag* has the state of the vectors.

    >>> vectors_notice({"vectors": {"pending": 2}}), vectors_notice({})
    ('2 texts may not be compared by meaning yet', '')
    """
    pending = lag.get("vectors", {}).get("pending") or 0
    return f"{pending:,} {'text' if pending == 1 else 'texts'} may not be compared by meaning yet" * bool(pending)


def near_pairs_notice(lag: Mapping[str, Any]) -> str:
    """Return the sentence of a review on the near pairs that it lacks; *lag* has the state of the vectors, if any.

    >>> near_pairs_notice({"vectors": {"pending": 1}}), near_pairs_notice({"vectors": {"pending": 0}})
    ('1 text may not be compared by meaning yet: near pairs may be missing', '')
    >>> near_pairs_notice({})
    'texts are not compared by meaning, as there are no vectors: near pairs are missing'
    """
    if "vectors" not in lag:
        return "texts are not compared by meaning, as there are no vectors: near pairs are missing"
    notice = vectors_notice(lag)
    return notice and f"{notice}: near pairs may be missing"


def parse_request(
    request: RecallRequest | str, more: Mapping[str, Any], agent: str
) -> tuple[RecallRequest, RecallFilters]:
    """Return the request and its filters; a plain text is a request of *agent* unless *more* names another agent.

    Raises InvalidRequest for an unknown name, with the nearest known one.
    """
    request_fields = tuple(RecallRequest.__slots__) if isinstance(request, str) else ()
    known = {*request_fields, *RecallFilters.__slots__} - {"query"}
    for name in more:
        if name not in known:
            raise _invalid(f"there is no {name!r:.200}", did_you_mean(name, known, f"use {sorted(known)}"))
    filters = RecallFilters(**{name: value for name, value in more.items() if name in RecallFilters.__slots__})
    if isinstance(request, RecallRequest):
        return request, filters
    given = {name: value for name, value in more.items() if name in request_fields}
    return RecallRequest(query=request, **{"agent_id": agent, **given}), filters


def _invalid(detail: str, hint: str) -> InvalidRecall:
    return InvalidRecall(f"{_INVALID}{detail}", hint=hint)


def _invalid_result(detail: str, hint: str) -> InvalidRecall:
    return InvalidRecall(f"invalid memory recall result: {detail}", hint=hint)


#: The parameters of a ranking, with its name and version.
Profile = Mapping[str, float | str]


class ScoredPassage(NamedTuple):
    """A memory, entry or turn with its ranking features for a question.

    `words` has, by stem, the number of occurrences of each word of the question, weighted by field; `length` is the
    number of words. `text` is the beginning of the passage. `cosine` is the similarity to the question, None without a
    vector; `expected` is then that of its words, 0 if unknown. `said_at` is the moment of the statement, in the one
    written form; `speakers` are names as given.
    """

    item: str
    text: str
    words: Mapping[str, float]
    length: int
    cosine: float | None
    speakers: tuple[str, ...]
    said_at: str
    expected: float = 0.0


class Candidate(NamedTuple):
    """A passage that may answer the question, with its context.

    `kind` is `memory`, `entry` or `turn`. `talk` is the key of its conversation, "" if it is in none; `before` and
    `after` are the neighbouring passages there, the nearest first. `successors` are the memories that superseded it; a
    successor that is a candidate too never ranks below it. `ended` is the moment of its end, None for an active memory;
    `is_active` is also False for a memory that is, for example, not valid now.
    """

    passage: ScoredPassage
    kind: str
    types: tuple[str, ...]
    recorded: str
    confidence: str = ""
    agent: str = ""
    session: str = ""
    talk: str = ""
    before: tuple[ScoredPassage, ...] = ()
    after: tuple[ScoredPassage, ...] = ()
    is_about: bool = False
    is_active: bool = True
    ended: str | None = None
    successors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """The analysed question: `stems` maps stems to words, `counts` is the number of passages with each.

    `unknown` maps the stems that no passage has to words. `speakers` are the speakers of the corpus whom the question
    names; `now` is the moment of the question. `has_vectors` is True if any cosine is known. `spans` are the times that
    it asks for, each from a first to before a second moment, if it names nothing else than who speaks.
    """

    text: str
    stems: Mapping[str, str]
    counts: CorpusStats
    speakers: tuple[str, ...] = ()
    now: str = ""
    has_vectors: bool = False
    unknown: Mapping[str, str] = field(default_factory=dict)
    spans: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its score and the parts that sum to it."""

    candidate: Candidate
    score: float
    parts: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class NearPair:
    """Two active memories that say nearly the same, with their likeness from 0 to 1; *item* was recorded last."""

    item: str
    other: str
    likeness: float


@dataclass(frozen=True, slots=True)
class DifferingMemory:
    """An active memory that says nearly the same as another one, but for values: the *differences*, those of the other
    first. *text* is its summary.
    """

    item: str
    text: str
    differences: tuple[str, ...]

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> DifferingMemory:
        """Return a contrast from its JSON values."""
        return cls(values["id"], values["text"], tuple(values["differences"]))

    @property
    def words(self) -> str:
        """Return the disagreement in words."""
        values = quoted("; ".join(self.differences), _LONGEST_VALUES)[0][1:-1]
        return f"disagrees with {quoted_name(short_id(self.item))}: {values}"

    def to_dict(self) -> dict[str, Any]:
        """Return the contrast as plain JSON values."""
        return {"id": self.item, "text": self.text, "differences": [*self.differences]}
