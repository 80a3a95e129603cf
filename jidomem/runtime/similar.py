"""The similar search finds the memories that a new one repeats or is near to, beside the write and never before it.

A search file that lacks only the last writes of this process is read as it is, and these writes are compared from
memory: to bring the file up to date takes longer than the write. It follows after every LAG writes. Without a file, a
project of which this process wrote every commit is searched in memory, and the file of another small project is made.
A large file is never built for a receipt: after LAG writes it is built in the background.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import AbstractContextManager, suppress
from functools import cached_property, partial
from itertools import chain, islice
from os import getpid, register_at_fork
from queue import Empty, SimpleQueue
from threading import Condition, Lock, Semaphore, Thread, current_thread
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakSet

from jidomem.base.clock import monotonic_time
from jidomem.base.words import chunk_text, digest, normal_text
from jidomem.errors import Busy, JidomemError, NotFound
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import Term, iri, literal, plain_value
from jidomem.rdf.vocab import CONVENTIONS, TYPE_ALIASES, family, jido, local_name, short_id, type_uri
from jidomem.records.active import (
    ENDED,
    INVALIDATED,
    NEAR,
    OVER,
    REJECTED,
    REPEATS,
    SUPERSEDED,
    SimilarMemory,
    is_accepted,
)
from jidomem.records.intent import MemoryUpdateIntent, Receipt
from jidomem.write.conflict import place_taken
from jidomem.write.snapshot import WriteSnapshot, versions_before

if TYPE_CHECKING:
    from jidomem.index.search_tables import SearchIndexReader
    from jidomem.index.store import OxigraphIndex
    from jidomem.index.vectors import Embedding
    from jidomem.models.chat import ChatModel
    from jidomem.recall.neighbours import Neighbour, Statement
    from jidomem.records.interfaces import Vector
    from jidomem.runtime.recall_api import RecallApi
    from jidomem.schema.ontology import EffectiveRules
    from jidomem.write.context import Similar, SimilarQuestion
    from jidomem.write.submission import IntentInput
    from jidomem.write.writer import MemoryWriter

#: The last writes that the search file may lack; the most commits that are added to it, and the most whose writes are
#: compared from memory; the most projects of which writes are in memory.
LAG, MOST_ADDED, MOST_PROJECTS = 16, 100, 16
#: The most searches that run at a time; some may be late. The seconds for which their threads wait for another one.
MOST_SEARCHES, IDLE = 16, 1.0
#: Seconds for which `close` waits for running searches.
CLOSE_TIMEOUT = 3.0
#: The most comparisons by a chat model that are pending, and the seconds for which `close` waits for them.
MOST_PENDING, JUDGE_TIMEOUT = 100, 5.0
_RELATIONS = {"repeats": "repeats", "contradicts": "contradicts", "separate": "is apart from"}
#: The fewest characters by which an intent may name a memory: the beginning or the end of its id.
_SHORTEST_NAME = 4
#: The fields whose memories are no neighbours: those of memories only, also by a part of the id, and those of others.
_LINKED, _MIXED = ("supersedes", "invalidates", "coexists_with", "revives"), ("evidence", "about")

_SUMMARY, _REASON, _RATIONALE = jido("summary"), jido("revisionReason"), jido("rationale")
_STATES, _DECIDED = (jido("hasTaskStatus"), jido("hasErrorStatus")), jido("decisionStatus")
_LINKS = [*map(jido, ("supersedes", "invalidates", "revives", "derivedFrom"))]
_MARKER = iri(type_uri("deleted_marker"))
#: The most characters of a text in a note, and the most memories that rest on a task or error.
_LONGEST, _MOST_RESTING = 200, 2


class _RecentWrite(NamedTuple):
    """A write of this process: its moment, type and statement (None for a proposal), and the memories that it ended."""

    moment: str
    kind: str
    statement: Statement | None
    ended: frozenset[str]


class ReceiptSearch:
    """The search for the memories that are similar to those written to an open root."""

    default = "ask"

    def __init__(
        self,
        recall: RecallApi,
        index: OxigraphIndex,
        rules: EffectiveRules,
        catch_up: Callable[[str], object],
        within: float,
        judge: ProposalJudge | None = None,
    ) -> None:
        """Search the files of *recall*; *catch_up* brings *index* up to date with a project.

        A *judge* compares proposals with the memories similar to them. A receipt waits *within* so many seconds.
        """
        self.within, self.is_late, self.was_interrupted = within, False, False
        self.slots = Semaphore(MOST_SEARCHES)
        self.idle: dict[SimpleQueue[SimilarQuestion | None], Thread] = {}
        _OPEN.add(self)
        self._recall, self._index, self._rules, self._catch_up = recall, index, rules, catch_up
        self._judge, self._is_closed = judge, False
        #: The last writes of this process, by project and by the number of their commit.
        self._recent: dict[str, dict[int, list[_RecentWrite]]] = {}
        self._recent_lock, self._no_file_lock = Lock(), Lock()

    def treatment(self, intent: IntentInput) -> str:
        """Return what the policy says of memories similar to *intent*: `ask`, `propose` or `off`."""
        with suppress(Exception):  # of an invalid intent, which is refused later
            return self._treatment(_parsed(intent))
        return self.default

    def judge(self, project: str, intent: IntentInput, receipt: Receipt) -> None:
        """Have the model, if there is one, compare a proposal with the memories similar to it, in the background."""
        active = [each for each in receipt.similar or () if not each.is_inactive]
        if self._judge is not None and active:
            parsed = _parsed(intent)
            self._judge.compare(project, receipt.iri, _text_of(parsed, _kind(parsed)), active)

    def answer_all(self, question: SimilarQuestion) -> None:
        """Answer *question* and those that follow within IDLE seconds.

        For each, the caller has acquired one of the `slots`, which is released once it is answered.
        """
        questions: SimpleQueue[SimilarQuestion | None] = SimpleQueue()
        coming: SimilarQuestion | None = question
        while coming is not None:
            try:
                self._answer(coming)
                self.idle[questions], coming = current_thread(), None
            finally:
                self.slots.release()
            try:
                coming = questions.get(timeout=IDLE)
            except Empty:
                if self.idle.pop(questions, None) is None:
                    coming = questions.get()  # it was taken just now

    def _answer(self, question: SimilarQuestion) -> None:
        """Answer a question, then bring the search file up to date if it lags."""
        put, project, intent, receipt, reading = question
        similar, start = None, monotonic_time()
        with suppress(Exception):  # of any kind: the memory is durable, and nothing here may fail its receipt
            intent = _parsed(intent)
            similar = self._find(project, intent, receipt)
        with suppress(Exception):
            similar = self._with_status(similar, intent, receipt, reading)
        if monotonic_time() - start < self.within:
            self.is_late = False
        put(similar)
        with suppress(Exception):
            self._bring_up_to_date(project)

    def _with_status(
        self,
        similar: Similar,
        given: IntentInput,
        receipt: Receipt | None,
        reading: Callable[[], AbstractContextManager[WriteSnapshot]],
    ) -> Similar:
        """Return *similar* with what became of each memory, after one that said the same as *given* and ended."""
        if self._is_closed or self.treatment(given) == "off":
            return similar
        with reading() as view:
            ended = _ended_alike(given, receipt.iri if receipt else "", view)
            others = [_with_standing(each, view) for each in similar or () if each.id not in {one.id for one in ended}]
            past = [each for each in others if each.status in (*ENDED, REJECTED)]
            ended = ended or _ended_nearly_alike(given, receipt.iri if receipt else "", past, view)
        return similar if similar is None and not ended else (*ended, *(each for each in others if each not in past))

    def are_near(self, project: str, one: IntentInput, other: IntentInput) -> bool:
        """Return whether two memories are a near pair of the review, or near to each other as receipts tell it."""
        first, second = map(_parsed, (one, other))
        pairs = self._recall.near_pairs(project, embeds=False)
        if any({pair.item, pair.other} == {first.iri, second.iri} for pair in pairs):
            return True
        return self._is_neighbour(project, first, second) or self._is_neighbour(project, second, first)

    def _is_neighbour(self, project: str, new: MemoryUpdateIntent, old: MemoryUpdateIntent) -> bool:
        """Return whether a receipt of *new* would now show the active memory *old*, if there were no nearer ones.

        Raises Busy while the search file cannot be read.
        """
        self._catch_up(project)
        stream, similar = Stream(project), None
        moment = self._index.mark(stream.graph).version.recorded_at
        with suppress(JidomemError):  # while the search file is built, no memories are compared
            similar = self._search(stream, new, self._statement(new, None), (), moment, only=old.iri)
        if similar is None:
            raise Busy(
                f"{old.iri} cannot be compared with {new.iri} now: the search index of {project} is being built",
                hint="settle them again in a moment",
            )
        return bool(similar)

    def close(self) -> None:
        """Begin no search; wait for those that are running, but not for long."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._judge is not None:
            self._judge.close()
        end = monotonic_time() + CLOSE_TIMEOUT
        for _ in range(MOST_SEARCHES):  # each slot is acquired, so none is left for another search
            self.slots.acquire(timeout=max(0.0, end - monotonic_time()))
        while self.idle:
            questions, thread = self.idle.popitem()
            questions.put(None)
            thread.join(CLOSE_TIMEOUT)
        with self._no_file_lock:
            if "_no_file" in self.__dict__:
                self._no_file.close()

    def _treatment(self, intent: MemoryUpdateIntent) -> str:
        """Return the treatment of a valid intent; one without a text, and a withdrawal, is compared with nothing."""
        kind = _kind(intent)
        if not (intent.summary or "").strip() or kind == "deleted_marker":
            return "off"
        return self._rules.policy.on_similar.get(family(kind), self.default)

    def _find(self, project: str, given: IntentInput, receipt: Receipt | None) -> Similar:
        """Return the memories similar to an intent: as recorded by *receipt*, or before it is judged."""
        intent = _parsed(given)
        if self._is_closed or self._treatment(intent) == "off":
            return None
        if receipt is None:  # else the write has brought the index up to date
            try:
                self._catch_up(project)
            except NotFound:  # it is the first memory of its project
                return ()
        stream = Stream(project)
        mark = self._index.mark(stream.graph)
        statement = self._statement(intent, receipt)
        if receipt is None:
            return self._search(stream, intent, statement, (), mark.version.recorded_at)
        if receipt.commit is not None and mark.version == receipt.version:  # else the number of its commit is unknown
            self._remember(project, mark.commits, intent, receipt, statement)
        known = (receipt.iri, *(conflict.iri for conflict in receipt.conflicts))
        return self._search(stream, intent, statement, known, receipt.version.recorded_at)

    def _statement(self, intent: MemoryUpdateIntent, receipt: Receipt | None) -> Statement:
        """Return what an intent states; before it is judged, it has no IRI."""
        from jidomem.recall.neighbours import Statement, significant

        kind, summary = _kind(intent), (intent.summary or "").strip()
        author = intent.asserted_by or (receipt.filled.get("asserted_by", "") if receipt else "")
        stems = significant(stem for _, stem in self._recall.texts.stemmer.stems(summary))
        piece = chunk_text(_text_of(intent, kind))[0]
        return Statement(receipt.iri if receipt else "", str(author), summary, stems, (digest(piece),), piece)

    def _search(
        self,
        stream: Stream,
        intent: MemoryUpdateIntent,
        new: Statement,
        known: Iterable[str],
        moment: str,
        only: str | None = None,
    ) -> Similar:
        """Return the memories of *stream* active at *moment* that are similar to *new*, without those *known*.

        With *only*, no other memory is compared.
        """
        from jidomem.recall import nearness, neighbours
        from jidomem.records.differences import share_half
        from jidomem.write.canonical import is_short_id

        embedding, kind = self._recall.embedding, _kind(intent)
        text = None
        if embedding is not None and not getattr(embedding.vectors.embedder, "is_remote", False):
            text = neighbours.NewText(new.piece, embedding.vectors, partial(self._embed, embedding))
        mixed = {*chain.from_iterable(getattr(intent, name) or () for name in _MIXED)}
        whole = {name.casefold() for name in mixed}
        linked = {*chain.from_iterable(getattr(intent, name) or () for name in _LINKED), *known}
        named = {name.casefold() for name in linked.union(filter(is_short_id, mixed))}
        view = WriteSnapshot(lambda s, p, o: self._index.triples(stream.graph, s, p, o))
        known_things = neighbours.ReferentsOfMemories(view)
        own = nearness.things(new.summary, intent.topic or "", intent.about)
        names_things = bool(own.about or own.named)

        def is_excluded(item: str) -> bool:
            if only not in (None, item) or _is_named(item, named, whole):
                return True
            return names_things and nearness.are_of_other_things(own, known_things.of(item))

        within = neighbours.comparable(kind, moment)
        search = neighbours.NeighbourSearch(stream, new.stems, within, text, summary=new.summary)

        def gather(file: SearchIndexReader) -> bool:
            mark = file.mark
            self._forget(stream.project, mark.commits if mark else 0)
            writes = [write for write in self._writes(stream.project) if write.moment <= moment]
            ended = {name.casefold() for write in writes for name in write.ended}
            kinds = {write.kind for write in writes}
            kinds = {each for each in kinds if neighbours.is_comparable([type_uri(kind)], [type_uri(each)])}
            recent = [write.statement for write in writes if write.statement and write.kind in kinds]
            return search.gather(file, recent, is_excluded, lambda item: _is_named(item, ended, frozenset()))

        if not self._read(stream, gather):
            return None
        near = [_similar(new.summary, each) for each in search.neighbours(partial(self._read, stream))]
        ended = [] if only is not None else [each for each in search.ended if each.likeness >= neighbours.REPEATED]
        past = (_similar(new.summary, each) for each in ended if share_half(new.summary, each.summary))
        return (*(each for each in past if each.relation == REPEATS), *near)

    def _embed(self, embedding: Embedding, text: str) -> Vector | None:
        """Return the vector of a text; None if the embedder fails, or the root was closed meanwhile."""
        vector = embedding.vector_of(text)
        return None if self._is_closed else vector

    def _read(self, stream: Stream, use: Callable[[SearchIndexReader], bool]) -> bool | None:
        """Return `use(file)` for the search file, or for an empty one if all memories are in memory; None without."""
        texts = self._recall.texts
        with self._recent_lock:
            written = {*self._recent.get(stream.project, ())}
        if texts.exists(stream):
            return texts.read_lagging(stream, use, written, MOST_ADDED)
        if written.issuperset(range(1, self._index.mark(stream.graph).commits + 1)):
            with self._no_file_lock:
                return use(self._no_file)
        return texts.read(stream, use, waits=False)  # made now, unless it has many memories: it then raises an error

    def _remember(
        self, project: str, number: int, intent: MemoryUpdateIntent, receipt: Receipt, statement: Statement
    ) -> None:
        """Remember the write with the commit *number* until the search file has it, or many others follow."""
        is_active = receipt.status == "asserted" and not (intent.valid_from or intent.valid_until)
        ended = frozenset([*intent.supersedes, *intent.invalidates] if receipt.status == "asserted" else ())
        with self._recent_lock:
            writes = self._recent[project] = self._recent.pop(project, {})  # the last project is the one written last
            write = _RecentWrite(receipt.version.recorded_at, _kind(intent), statement if is_active else None, ended)
            writes.setdefault(number, []).append(write)
            if len(writes) > MOST_ADDED:
                del writes[min(writes)]
            if len(self._recent) > MOST_PROJECTS:
                del self._recent[next(iter(self._recent))]

    def _writes(self, project: str) -> list[_RecentWrite]:
        with self._recent_lock:
            return [*chain.from_iterable(self._recent.get(project, {}).values())]

    @cached_property
    def _no_file(self) -> SearchIndexReader:
        """Return an empty search file in memory, for a project whose memories are all of this process."""
        from jidomem.index.search_tables import SearchIndexReader

        file = SearchIndexReader(":memory:", self._recall.texts.stemmer, 0.0)
        file.fits()
        return file

    def _forget(self, project: str, commits: int) -> None:
        """Forget the writes that the search file has: those of its first *commits*."""
        with self._recent_lock:
            recent = self._recent.get(project, {})
            for number in [number for number in recent if number <= commits]:
                del recent[number]

    def _bring_up_to_date(self, project: str) -> None:
        """Bring the search file up to date if it lacks many writes; a large file is then built in the background."""
        with self._recent_lock:
            numbers = [*self._recent.get(project, ())]
        stream = Stream(project)
        if len(numbers) < LAG or self._is_closed or not self._recall.texts.exists(stream):
            return
        try:
            self._recall.texts.read_soon(stream, lambda file: None)
        finally:  # also after a failure: the next attempt follows after as many writes
            self._forget(project, max(numbers))


#: The searches of this process.
_OPEN = WeakSet[ReceiptSearch]()


def _forget_threads() -> None:
    """Forget the threads of another process, from which this one was forked."""
    for search in _OPEN:
        search.idle.clear()


register_at_fork(after_in_child=_forget_threads)


class ProposalJudge:
    """A chat model that compares proposals with the memories similar to them, one at a time, in the background.

    What it answers, or why it does not, is recorded with the proposal for the curator who settles it.
    """

    def __init__(self, model: Callable[[], ChatModel], writer: Callable[[], MemoryWriter]) -> None:
        """Compare by the *model*, made on first use, and record by the *writer* of the root."""
        self._make_model, self._writer = model, writer
        self._pending: deque[tuple[str, str, str, SimilarMemory]] = deque()
        self._changed, self._is_running, self._is_closed = Condition(), False, False
        self._process = getpid()

    @cached_property
    def _model(self) -> ChatModel:
        return self._make_model()

    def compare(self, project: str, proposal: str, text: str, others: Iterable[SimilarMemory]) -> None:
        """Compare the *text* of a *proposal* with *others* in the background; at most MOST_PENDING pairs wait."""
        with self._changed:
            if self._is_closed:
                return
            room = MOST_PENDING - len(self._pending)
            self._pending += [(project, proposal, text, other) for other in islice(others, room)]
            if self._is_running:
                return
            self._is_running = True
        try:
            Thread(target=self._run, name="jidomem-judge", daemon=True).start()
        except RuntimeError:  # at the limit of threads, or at the end of the program
            self._stop()

    def close(self) -> None:
        """Wait for the pending comparisons, but not for long, and drop the rest."""
        with self._changed:
            if getpid() == self._process:  # a process forked from it has no thread that compares
                self._changed.wait_for(lambda: not self._is_running, JUDGE_TIMEOUT)
            self._is_closed = True

    def _run(self) -> None:
        try:
            while (pair := self._next()) is not None:
                project, proposal, text, other = pair
                judgement = self._judgement(text, other)
                if not self._is_closed:
                    with suppress(Exception):  # the proposal was redacted, or the journal cannot be written
                        self._writer().add_judgement(project, proposal, f"{self._model.model}: {judgement}")
        except BaseException:  # else `_next` has noted the end, and another thread may be running
            self._stop()
            raise

    def _next(self) -> tuple[str, str, str, SimilarMemory] | None:
        with self._changed:
            if self._pending and not self._is_closed:
                return self._pending.popleft()
            self._is_running = False  # here, as a pair that is added later needs another thread
            self._changed.notify_all()
            return None

    def _stop(self) -> None:
        with self._changed:
            self._is_running = False
            self._changed.notify_all()

    def _judgement(self, text: str, other: SimilarMemory) -> str:
        """Return in words what the model says of a proposal beside an active memory, or why it says nothing."""
        name = short_id(other.id)
        try:
            relation, reason = self._model.compare(text, other.text)
        except JidomemError as error:
            return f"not compared with {name}: {error.detail}"
        return f"{_RELATIONS[relation]} {name}: {reason}"


def _similar(summary: str, neighbour: Neighbour) -> SimilarMemory:
    """Return a neighbour of the statement *summary* with its relation to it.

    A repetition differs in no value, and in no one or two words alone; a brief one shares most of its words. Of two
    statements of which one says much more, none repeats the other.
    """
    from jidomem.recall.neighbours import REPEATED
    from jidomem.records.differences import differences  # only a write needs these rules

    differing = tuple(map(str, differences(summary, neighbour.summary)))
    repeats = neighbour.likeness >= REPEATED and not differing and _has_the_words_of(summary, neighbour.summary)
    relation = REPEATS if repeats else NEAR
    most = 1.0 if summary == neighbour.summary else 0.99
    likeness, author = min(round(neighbour.likeness, 2), most), local_name(neighbour.agent)
    return SimilarMemory(neighbour.item, neighbour.summary, likeness, relation, author, differing)


def _has_the_words_of(text: str, other: str) -> bool:
    """Return whether a statement that differs in no value from a near one also has most of its words."""
    from jidomem.records import differences as rules

    others = rules.has_replaced_words, rules.are_brief_on_other_things, rules.is_much_longer
    return not any(differs(text, other) for differs in others)


def _kind(intent: MemoryUpdateIntent) -> str:
    return TYPE_ALIASES.get(intent.type or "", intent.type or "")


def _parsed(intent: IntentInput) -> MemoryUpdateIntent:
    return intent if isinstance(intent, MemoryUpdateIntent) else MemoryUpdateIntent.from_dict(intent)


def _is_named(item: str, names: Iterable[str], whole: Set[str]) -> bool:
    """Return whether *names* have the IRI of a memory, or the beginning or end of its id, or *whole* its IRI or id.

    The names are in lower case.
    """
    item = item.casefold()
    own = local_name(item)
    return (
        own in whole
        or item in whole
        or any(
            name == item or (len(name) >= _SHORTEST_NAME and (own.startswith(name) or own.endswith(name)))
            for name in names
        )
    )


def _text_of(intent: MemoryUpdateIntent, kind: str) -> str:
    """Return the text of a memory that is embedded, as the search file has it."""
    name = (intent.convention_name or intent.summary) if kind in CONVENTIONS else None
    texts = (intent.summary, name, intent.topic, intent.rationale, intent.detailed_explanation, intent.reason)
    return "\n".join(text.strip() for text in texts if text and text.strip())


class _Standing(NamedTuple):
    """The status of a memory that has one, a note on it, and the memory in its place; empty without."""

    status: str = ""
    note: str = ""
    replaced_by: str = ""


def _standing(item: Term, view: WriteSnapshot) -> _Standing:
    """Return the standing of a memory: how it ended, that its task or error is over, or that it was rejected."""
    if view.has_ended(item):
        return _ended(item, view)
    if (state := next(filter(None, (view.first(item, each) for each in _STATES)), None)) is not None:
        status = local_name(plain_value(state))
        return _Standing(status, "; ".join(_over(item, status, view)) if status in OVER else "")
    if (decided := view.first(item, _DECIDED)) is None:
        return _Standing()
    status = plain_value(decided)
    note = "" if is_accepted(status) else f"was {status} on {_day(item, view)}{_because(item, (_RATIONALE,), view)}"
    return _Standing(status, note)


def _ended(item: Term, view: WriteSnapshot) -> _Standing:
    withdrawals, successors = view.objects(item, jido("invalidatedBy")), view.objects(item, jido("supersededBy"))
    end, place = [*withdrawals, *successors][0], _place_taken(item, view)
    note = f"ended on {_day(end, view)}{_because(end, (_REASON, _RATIONALE), view)}"
    if place is not None:
        note += f" (replaced by {plain_value(place)}: {_text(place, (_SUMMARY,), view)})"
    withdrawn = REJECTED if view.is_proposed(item) else INVALIDATED
    return _Standing(withdrawn if withdrawals else SUPERSEDED, note, plain_value(place) if place is not None else "")


def _place_taken(item: Term, view: WriteSnapshot) -> Term | None:
    place = place_taken(item, view)
    return None if place is None or _MARKER in view.types(place) else place


def _over(item: Term, status: str, view: WriteSnapshot) -> Iterator[str]:
    yield f"already {status} on {_day(item, view)}"
    versions = versions_before(item, view)
    resting = sorted({each for base in versions for each in view.subjects(jido("derivedFrom"), base)} - versions)
    for each in [each for each in resting if view.is_active(each)][:_MOST_RESTING]:
        yield f"see {plain_value(each)}: {_text(each, (_SUMMARY,), view)}"


def _day(item: Term, view: WriteSnapshot) -> str:
    recorded = view.first(item, jido("recordedAt"))
    return plain_value(recorded)[:10] if recorded else "an unknown day"


def _because(item: Term, fields: Iterable[Term], view: WriteSnapshot) -> str:
    return f" because {reason}" if (reason := _text(item, fields, view)) else ""


def _text(item: Term, fields: Iterable[Term], view: WriteSnapshot) -> str:
    term = next(filter(None, (view.first(item, field) for field in fields)), None)
    text = " ".join(plain_value(term).split()) if term else ""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _ended_alike(intent: IntentInput, item: str, view: WriteSnapshot) -> tuple[SimilarMemory, ...]:
    """Return the memory with the text of *intent* that ended last, unless another one that says so is in its place.

    The full stop and the case of the first letter do not count. *item* is the new memory, empty before it is judged;
    memories that it names, and all if it is a decision that is not accepted, are left out.
    """
    text, known = _text_and_links(intent, item, view)
    bare = text.removesuffix(".")
    forms = {form for each in (bare, f"{bare}.") if each for form in (each, each[0].swapcase() + each[1:])}
    found: dict[str, Term] = {}
    for form in {text, *forms}:
        for item in view.subjects(_SUMMARY, literal(form)):
            if plain_value(item) not in known and view.has_ended(item) and _MARKER not in view.types(item):
                found[_last(item, view)] = item
    if not text or not found:
        return ()
    item = found[max(found)]
    place, summary = _place_taken(item, view), plain_value(view.first(item, _SUMMARY) or item)
    if place is not None and (plain_value(place) in known or _says(place, text, view)):
        return ()
    author = next(iter(view.recorded_by(item)), None)
    name = local_name(plain_value(author)) if author else ""
    return (_with_standing(SimilarMemory(plain_value(item), summary, 1.0, REPEATS, name), view),)


def _ended_nearly_alike(
    intent: IntentInput, item: str, past: Sequence[SimilarMemory], view: WriteSnapshot
) -> tuple[SimilarMemory, ...]:
    """Return the first of *past* that *intent* repeats, unless what is in its place says so or is named by it."""
    from jidomem.records.differences import differences, share_half

    text, known = _text_and_links(intent, item, view)
    for each in past:
        place = each.replaced_by
        there = plain_value(view.first(iri(place), _SUMMARY) or '""') if place else ""
        says_so = there and share_half(text, there) and not differences(text, there) and _has_the_words_of(text, there)
        if text and each.relation == REPEATS and not (each.id in known or place in known or says_so):
            return (each,)
    return ()


def _text_and_links(intent: IntentInput, item: str, view: WriteSnapshot) -> tuple[str, set[str]]:
    """Return the text of *intent* and the memories that it names; the text of a decision not accepted is empty."""
    given = intent.to_dict() if isinstance(intent, MemoryUpdateIntent) else intent
    text, new = given.get("summary"), [iri(item)] if item else []
    decided = [plain_value(status) for each in new for status in view.objects(each, _DECIDED)]
    known = {item, *(plain_value(old) for each in new for link in _LINKS for old in view.objects(each, link))}
    return text.strip() if isinstance(text, str) and all(map(is_accepted, decided)) else "", known


def _last(item: Term, view: WriteSnapshot) -> str:
    """Return the moment at which *item* ended, before its IRI."""
    ends = [end for link in ("invalidatedBy", "supersededBy") for end in view.objects(item, jido(link))]
    moments = [plain_value(moment) for end in ends for moment in view.objects(end, jido("recordedAt"))]
    return f"{max(moments, default='')} {item}"


def _says(item: Term, text: str, view: WriteSnapshot) -> bool:
    own = view.first(item, _SUMMARY)
    return own is not None and normal_text(plain_value(own).removesuffix(".")) == normal_text(text.removesuffix("."))


def _with_standing(similar: SimilarMemory, view: WriteSnapshot) -> SimilarMemory:
    return similar._replace(**_standing(iri(similar.id), view)._asdict())
