"""The transactions of an agent's tiers: a move and the jobs that it causes are written together.

The module also forgets a page everywhere (tiers, system memory, archive and pending archives) with the texts that were
derived from it, and fills in the vectors that stored texts lack.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from jidomem.base.clock import format_timestamp, parse_moment
from jidomem.base.containers import grouped
from jidomem.errors import Busy, InvalidRequest, NotFound
from jidomem.extras.memoryos import storage
from jidomem.extras.memoryos.config import Configurations, MemoryOSConfig, ValidatedModel, Vector
from jidomem.extras.memoryos.jobs import Job, Jobs, Task
from jidomem.extras.memoryos.retrieval import warmed
from jidomem.extras.memoryos.segments import TierPolicy, keywords_of, segment_text
from jidomem.extras.memoryos.storage import M, TierMove, TierStorage, agent_tiers, system_memory
from jidomem.extras.memoryos.values import (
    AgentPersona,
    DialoguePage,
    DialogueSegment,
    KnowledgeEntry,
    ObjectKey,
    ObjectPersona,
    SystemEntry,
    SystemMemory,
    Tiers,
    TraitEntry,
    key_of,
    stepped,
)
from jidomem.records.directive import Step
from jidomem.records.interfaces import StateStore, StateTables

_SELECT_ARCHIVED = """SELECT namespace, key, value FROM key_values
               WHERE substr(namespace, 1, length(?)) = ? AND substr(key, 1, length(?)) = ?"""
_UPDATE_VALUE = "UPDATE key_values SET value = ? WHERE namespace = ? AND key = ?"
_DELETE_VALUE = "DELETE FROM key_values WHERE namespace = ? AND key = ?"
_WAITING = "SELECT request, directive FROM memoryos_asked WHERE project = ? AND holder = ?"
_PUT_DIRECTIVE = "UPDATE memoryos_asked SET directive = ? WHERE project = ? AND holder = ? AND request = ?"
_DELETE_DIRECTIVE = "DELETE FROM memoryos_asked WHERE project = ? AND holder = ? AND request = ?"


E = TypeVar("E", KnowledgeEntry, TraitEntry)


@dataclass(frozen=True, slots=True)
class ForgetRequest(ValidatedModel):
    """Pages to be forgotten, the moment, and the pages elsewhere, as in an archive, whose chain continues them.

    With a type and an identifier the persona of that object is forgotten, too.
    """

    pages: frozenset[str]
    at: datetime
    chained: frozenset[str] = frozenset()
    object_type: str | None = None
    object_identifier: str | None = None

    @property
    def object(self) -> ObjectKey | None:
        """Return the object to be forgotten, None for pages alone."""
        return key_of(self.object_type, self.object_identifier)


def forget_pages(tiers: Tiers, forgetting: ForgetRequest, policy: TierPolicy) -> Step[Tiers]:
    """Return the step to tiers without pages, or an object, and their effects; the same tiers without a trace of them.

    Facts and traits based on them are removed, and the other pages on which they are based count as untaught, so these
    are learned from again. Chains that continue them are removed, as are the summaries of their segments, which are
    written again later; a segment without other pages is removed. Profiles stay, except that of the object.
    """
    lost = [entry for entry in tiers.entries() if forgetting.pages.intersection(entry.evidence)]
    untaught = {page_id for entry in lost for page_id in entry.evidence} - forgetting.pages
    forgetting = replace(forgetting, chained=forgetting.chained | chained(tiers.pages(), forgetting.pages))
    segments = []
    for segment in tiers.mtm:
        remaining = segment_without(segment, forgetting, policy, untaught)
        if remaining is not None:
            segments.append(segment if remaining is segment else warmed(remaining, forgetting.at, policy))
    personas = tuple(
        replace(
            each,
            knowledge=_without_evidence(each.knowledge, forgetting),
            traits=_without_evidence(each.traits, forgetting),
        )
        for each in tiers.personas
        if each.key != forgetting.object
    )
    return stepped(
        tiers,
        policy.config,
        stm=_pages_without(tiers.stm, forgetting, untaught),
        leaving=_pages_without(tiers.leaving, forgetting, untaught),
        mtm=tuple(segments),
        personas=personas,
        agent=replace(tiers.agent, traits=_without_evidence(tiers.agent.traits, forgetting)),
    )


def remove_forgotten(system: SystemMemory, forgetting: ForgetRequest, facts: Set[str]) -> Step[SystemMemory]:
    """Return the step to system memory without the entries of forgotten pages and of the forgotten *facts*."""
    remaining = tuple(
        entry for entry in system.entries if entry.id not in facts and not forgetting.pages.intersection(entry.evidence)
    )
    return Step(system) if remaining == system.entries else Step(SystemMemory(system.rev + 1, remaining))


def segment_without(
    segment: DialogueSegment, forgetting: ForgetRequest, policy: TierPolicy, untaught: Set[str] = frozenset()
) -> DialogueSegment | None:
    """Return a segment without the forgotten pages, its summary and their chains; None if it is empty.

    A segment without any of these is returned as is. Its pages in *untaught* count as such.
    """
    pages = _pages_without(segment.pages, forgetting, untaught)
    if pages == segment.pages:
        return segment
    if not pages:
        return None
    remaining = replace(segment, pages=pages)
    return remaining if remaining.page_count == segment.page_count else without_summary(remaining, policy)


def without_summary(segment: DialogueSegment, policy: TierPolicy) -> DialogueSegment:
    """Return a segment with the keywords of its pages, but no summary and no vector until it is described again."""
    keywords = keywords_of(segment.pages, policy.config)
    return replace(segment, topic_summary="", embedding=None, keywords=keywords)


def _without_evidence(entries: tuple[E, ...], forgetting: ForgetRequest) -> tuple[E, ...]:
    return tuple(entry for entry in entries if not forgetting.pages.intersection(entry.evidence))


def chained(pages: Iterable[DialoguePage], forgotten: Set[str]) -> frozenset[str]:
    """Return those of *pages* whose chain continues that of a *forgotten* page, directly or indirectly."""
    after = grouped((page.continues, page.id) for page in pages)
    later, looked = set[str](), [*forgotten]
    while looked:
        fresh = [each for each in after.get(looked.pop(), ()) if each not in later]
        later.update(fresh)
        looked += fresh
    return frozenset(later - forgotten)


def _pages_without(
    pages: Iterable[DialoguePage], forgetting: ForgetRequest, untaught: Set[str]
) -> tuple[DialoguePage, ...]:
    """Return *pages* without the forgotten ones and the chains derived from them; those in *untaught* as such."""
    remaining = []
    for page in pages:
        if page.id in forgetting.pages:
            continue
        if page.id in forgetting.chained:
            continues = None if page.continues in forgetting.pages else page.continues
            page = replace(page, meta_chain=None, continues=continues)
        remaining.append(replace(page, analysed=False) if page.analysed and page.id in untaught else page)
    return tuple(remaining)


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """The report of a forgotten page, or of an object and its pages: places and effects.

    A place is `stm`, `leaving`, `archive` or a segment; `page` is None for an object. `facts`, `traits` and `system`
    are the ids of removed entries. `promoted` are the
    memories of the project made from such facts: they stay in the journal until they are withdrawn or redacted.
    """

    page: str | None
    was_in: tuple[str, ...]
    facts: tuple[str, ...] = ()
    traits: tuple[str, ...] = ()
    system: tuple[str, ...] = ()
    promoted: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON values."""
        return {name: list(value) if isinstance(value := getattr(self, name), tuple) else value
                for name in self.__slots__}  # fmt: skip


def forgotten(
    page_id: str | None,
    pages: Set[str],
    tiers: tuple[Tiers, Tiers],
    system: tuple[SystemMemory, SystemMemory],
    archived: bool,
    promoted: Mapping[str, str],
) -> ForgetReport:
    """Return the report of forgetting *pages*, from the memory before and after it."""
    before, after = tiers
    places = [name for name in ("stm", "leaving") if any(page.id in pages for page in getattr(before, name))]
    places += [segment.id for segment in before.mtm if any(page.id in pages for page in segment.pages)]
    facts = _removed_ids(*([fact.id for fact in each.facts()] for each in tiers))
    names = [name for fact in before.facts() if fact.id in facts for name in (*fact.ends, fact.id)]
    entries = [[entry.id for entry in each.entries] for each in system]
    return ForgetReport(
        page_id,
        (*places, *(["archive"] if archived else [])),
        facts,
        _removed_ids(_traits(before), _traits(after)),
        _removed_ids(*entries),
        tuple(iri for name in names if (iri := promoted.get(name))),
        tuple(sorted(pages)),
    )


def following(before: Tiers, after: Tiers) -> list[Task]:
    """Return the tasks to repeat: chains of pages, summaries of segments, lessons of pages that count as untaught."""
    chained = {page.id for page in before.pages() if page.meta_chain is not None}
    tasks = [Task("describe", page.id) for page in sorted(after.pages(), key=lambda page: page.when)
             if page.meta_chain is None and page.id in chained]  # fmt: skip
    known = {segment.id: segment for segment in before.mtm}
    for segment in after.mtm:
        was = known.get(segment.id, segment)
        if was.page_count != segment.page_count:
            tasks.append(Task("retell", segment.id))
        taught = {page.id for page in was.pages if page.analysed}
        if any(page.id in taught and not page.analysed for page in segment.pages):
            tasks.append(Task("teach", segment.id))
    return tasks


class Archive(NamedTuple):
    """The archived segments of an agent in the root: the stored ones, and those in pending directives."""

    store: StateTables
    project: str
    agent: str

    def pages(self) -> Iterator[DialoguePage]:
        """Yield the pages of all archived segments."""
        waiting = (item["value"] for _, directive in self._waiting() for item in directive["items"])
        for value in (*(value for _, _, value in self._rows()), *waiting):
            if (segment := _segment(value)) is not None:
                yield from segment.pages

    def take_out(self, forgetting: ForgetRequest, policy: TierPolicy) -> bool:
        """Remove pages, and the chains that continue them, from all segments; return whether one was in them."""
        is_archived = False
        for namespace, key, value in self._rows():
            remaining, had_page = _without(value, forgetting, policy)
            is_archived |= had_page
            if remaining is None:
                self.store.execute(_DELETE_VALUE, (namespace, key))
            elif remaining is not value:
                self.store.execute(_UPDATE_VALUE, (_json(remaining), namespace, key))
        for request, directive in self._waiting():
            items = []
            for item in directive["items"]:
                remaining, had_page = _without(item["value"], forgetting, policy)
                is_archived |= had_page
                if remaining is not None:
                    items.append(
                        item if remaining is item["value"] else {**item, "value": remaining, "embedding": None}
                    )
            row = self.project, self.agent, request
            if not items:
                self.store.execute(_DELETE_DIRECTIVE, row)
            elif items != directive["items"]:
                self.store.execute(_PUT_DIRECTIVE, (_json({**directive, "items": items}), *row))
        return is_archived

    def _rows(self) -> list[tuple[str, str, Any]]:
        project_prefix, key_prefix = f"{self.project}/", f"memoryos:{self.agent}:"
        return [
            (namespace, key, json.loads(text))
            for namespace, key, text in self.store.execute(
                _SELECT_ARCHIVED, (project_prefix, project_prefix, key_prefix, key_prefix)
            )
        ]

    def _waiting(self) -> list[tuple[str, Any]]:
        rows = self.store.execute(_WAITING, (self.project, self.agent))
        return [(request, json.loads(text)) for request, text in rows]


def _segment(value: Any) -> DialogueSegment | None:
    with suppress(InvalidRequest):
        return DialogueSegment.from_dict(value)
    return None


def _without(value: Any, forgetting: ForgetRequest, policy: TierPolicy) -> tuple[Any, bool]:
    """Return an archived value without the pages (the same object if unchanged), and whether it had one of them."""
    segment = _segment(value)
    if segment is None:
        return value, False
    remaining = segment_without(segment, forgetting, policy)
    had_page = any(page.id in forgetting.pages for page in segment.pages)
    return (value if remaining is segment else remaining and remaining.to_dict()), had_page


def _traits(tiers: Tiers) -> list[str]:
    persona_traits = (trait for persona in tiers.personas for trait in persona.traits)
    return [trait.id for trait in (*persona_traits, *tiers.agent.traits)]


def _removed_ids(before: list[str], after: list[str]) -> tuple[str, ...]:
    remaining = set(after)
    return tuple(each for each in before if each not in remaining)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


V = TypeVar("V", DialoguePage, DialogueSegment, KnowledgeEntry, TraitEntry, SystemEntry)
W = TypeVar("W", DialoguePage, DialogueSegment, KnowledgeEntry, TraitEntry, SystemEntry, ObjectPersona, AgentPersona)
Embedded = DialoguePage | DialogueSegment | KnowledgeEntry | TraitEntry | SystemEntry
Vectors = Mapping[str, Vector]


def text_of(item: Embedded) -> str:
    """Return the text of a value that is embedded, empty if there is none."""
    if isinstance(item, DialogueSegment):
        return segment_text(item.topic_summary, item.keywords)
    return item.content if isinstance(item, SystemEntry) else item.text


def lacking(tiers: Tiers, system: SystemMemory) -> list[str]:
    """Return the texts that lack a vector, each once; without those of pages that are not described yet."""
    items: list[Embedded] = [*system.entries, *tiers.mtm, *tiers.entries()]
    items += [page for page in tiers.pages() if page.segment_id or page.meta_chain is not None]
    return [*dict.fromkeys(text_of(each) for each in items if each.embedding is None and text_of(each).strip())]


def given_vectors(vectors: Vectors) -> Callable[[Embedded], Vector | None]:
    """Return a function from a value to its vector, else to that of its text in *vectors*."""
    return lambda item: vectors.get(text_of(item)) if item.embedding is None else item.embedding


def no_vector(item: Embedded) -> None:
    """Return None for any value."""


def embedded(tiers: Tiers, config: MemoryOSConfig, vector: Callable[[Embedded], Vector | None]) -> Step[Tiers]:
    """Return the step to tiers in which each value has the vector that *vector* returns."""
    return stepped(
        tiers,
        config,
        stm=_with_vectors(tiers.stm, vector),
        leaving=_with_vectors(tiers.leaving, vector),
        mtm=_with_vectors((_changed_copy(each, pages=_with_vectors(each.pages, vector)) for each in tiers.mtm), vector),
        personas=tuple(
            _changed_copy(
                each, knowledge=_with_vectors(each.knowledge, vector), traits=_with_vectors(each.traits, vector)
            )
            for each in tiers.personas
        ),
        agent=_changed_copy(tiers.agent, traits=_with_vectors(tiers.agent.traits, vector)),
    )


def embedded_system(system: SystemMemory, vector: Callable[[Embedded], Vector | None]) -> Step[SystemMemory]:
    """Return the step to system memory in which each entry has the vector that *vector* returns."""
    entries = _with_vectors(system.entries, vector)
    return Step(system) if entries == system.entries else Step(SystemMemory(system.rev + 1, entries))


def _with_vectors(items: Iterable[V], vector: Callable[[Embedded], Vector | None]) -> tuple[V, ...]:
    return tuple(_changed_copy(each, embedding=vector(each)) for each in items)


def _changed_copy(item: W, **changes: Any) -> W:
    is_other = any(getattr(item, name) != value for name, value in changes.items())
    return replace(item, **changes) if is_other else item


#: A move, called with the memory of its transaction: it is quick, and calls no model.
Move = Callable[[Tiers, TierPolicy], Step[Tiers]]
SystemMove = Callable[[SystemMemory, Tiers, TierPolicy], Step[SystemMemory]]
#: The further tasks that follow a move, from the tiers after it.
Then = Callable[[Tiers, TierPolicy], Iterable[Task]]
#: The kinds of notes on an agent, and the holder of system memory, which also has a note of its embedder.
EMBEDDER, _MAINTAINED, _PROMOTED, _ALL = "embedder", "maintained", "promoted", ""
_DELETE_ARCHIVED = "DELETE FROM key_values WHERE substr(namespace, 1, length(?)) = ? AND substr(key, 1, length(?)) = ?"


class AgentMoves:
    """The moves of one agent on its tiers, on system memory and on the settings of its project.
    A model is called before the move. The move itself is made on the memory in its transaction, so that no other
    process interferes; if the answer no longer fits that memory, it raises RevisionConflict.
    """

    def __init__(
        self,
        state: StateStore,
        project: str,
        agent: str,
        *,
        policy: TierPolicy,
        embedder: str,
        jobs: Jobs,
        now: Callable[[], datetime],
        new_id: Callable[[], str],
    ) -> None:
        self._state, self._policy, self._embedder = state, policy, embedder
        self.storage, self.system = agent_tiers(state, project, agent, new_id), system_memory(state, project, new_id)
        self.project, self.agent, self.jobs, self.now, self.new_id = project, self.storage.holder, jobs, now, new_id

    def snapshot(self) -> tuple[Tiers, SystemMemory, TierPolicy]:
        """Return the tiers of the agent, system memory, and the policy, all of one moment.

        Vectors of another embedder than that of this process are removed first, and a job to make new ones is queued.
        """
        with self._state.reading() as store:
            if not self._other_embedders(store):
                return self.storage.read_in(store), self.system.read_in(store), self._policy_now(store)
        self._drop_vectors()
        return self.snapshot()

    def tiers(self) -> Tiers:
        """Return the tiers of the agent."""
        return self.snapshot()[0]

    def maintained(self) -> datetime | None:
        """Return the time of the last maintenance of the agent, None if there was none."""
        with self._state.reading() as store:
            return parse_moment(storage.note(store, self.project, _MAINTAINED, self.agent))

    def move(
        self,
        make_step: Move,
        *,
        then: Then = lambda tiers, policy: (),
        done: Job | None = None,
        maintained: datetime | None = None,
    ) -> Tiers:
        """Return the tiers after a move, once they and the jobs that it causes are durable, all or nothing.

        *done* is the job that made the move. Raises the errors of *make_step*; then nothing has changed.
        """

        def noted(store: StateTables, moved: TierMove[Tiers], policy: TierPolicy) -> None:
            after = moved.step.memory
            archive = [Task("archive")] if moved.step.directives else []
            tasks = *resulting_jobs(moved.before, after), *then(after, policy), *archive
            self.jobs.ask(store, self.project, self.agent, *tasks)
            if maintained is not None:
                storage.store_note(store, self.project, _MAINTAINED, self.agent, format_timestamp(maintained))

        return self._make_move(self.storage, lambda store, tiers, policy: make_step(tiers, policy), done, noted)

    def move_system(self, make_step: SystemMove, *, done: Job | None = None) -> SystemMemory:
        """Return system memory after a move, as `move` does for the tiers; *make_step* also gets the agent's tiers."""
        return self._make_move(
            self.system, lambda store, system, policy: make_step(system, self.storage.read_in(store), policy), done
        )

    def _make_move(
        self,
        holder: TierStorage[M],
        make_step: Callable[[StateTables, M, TierPolicy], Step[M]],
        done: Job | None,
        noted: Callable[[StateTables, TierMove[M], TierPolicy], None] = lambda store, moved, policy: None,
    ) -> M:
        with self._changing() as store:
            policy = self._policy_now(store)
            moved = holder.move_in(store, lambda before: make_step(store, before, policy))
            noted(store, moved, policy)
            if done is not None:
                self.jobs.done(store, done)
        holder.cache_move(moved)
        return moved.step.memory

    def finish(self, job: Job) -> None:
        """Remove a job that changed nothing."""
        with self._state.changing() as store:
            self.jobs.done(store, job)

    def ask(self, *tasks: Task) -> None:
        """Queue jobs of the agent."""
        with self._state.changing() as store:
            self.jobs.ask(store, self.project, self.agent, *tasks)

    def configurations(self) -> Configurations:
        """Return the settings of the agents of the project and of their types, on top of those of the application."""
        with self._state.reading() as store:
            return storage.configurations(store, self.project, self._policy.config)

    def configure(self, edit: Callable[[Configurations], Configurations]) -> MemoryOSConfig:
        """Replace the settings of the project by `edit(settings)`, and return those of the agent."""
        with self._state.changing() as store:
            after = edit(storage.configurations(store, self.project, self._policy.config))
            storage.configure(store, self.project, after)
        return after.get_agent_config(self.agent)

    def promoted(self) -> Mapping[str, str]:
        """Return the memories that facts became in the project, by the ids of the facts."""
        with self._state.reading() as store:
            by_fact: Mapping[str, str] = storage.note(store, self.project, _PROMOTED, self.agent) or {}
            return by_fact

    def note_promoted(self, fact_id: str, iri: str) -> None:
        """Record that a fact was proposed, and its memory, as long as the agent has the fact or one that ended it."""
        with self._state.changing() as store:
            facts = {name for fact in self.storage.read_in(store).facts() for name in (fact.id, *fact.ends)}
            before: Mapping[str, str] = storage.note(store, self.project, _PROMOTED, self.agent) or {}
            remaining = {**{known: memory for known, memory in before.items() if known in facts}, fact_id: iri}
            storage.store_note(store, self.project, _PROMOTED, self.agent, remaining)

    def forget_pages(self, page_id: str | None = None, about: ObjectKey | None = None) -> ForgetReport:
        """Forget a page, or an object with its pages, every byte of it, and return the report.

        Queues the jobs that write summaries and learn again without it. Raises NotFound if there is no trace of it.
        """
        with self._changing() as store:
            policy, archive = self._policy_now(store), Archive(store, self.project, self.agent)
            before = self.storage.read_in(store)
            about = about and before.known_object(about)
            pages = [*before.pages(), *archive.pages()]
            names = {each.id for each in pages if about and each.object == about} | {*filter(None, [page_id])}
            persona = before.persona(about) if about is not None else None
            forgetting = ForgetRequest(frozenset(names), self.now(), chained(pages, names), *(about or (None, None)))
            facts = {fact.id for fact in persona.knowledge} if persona is not None else set()
            tiers_move = self.storage.move_in(store, lambda tiers: forget_pages(tiers, forgetting, policy))
            system_move = self.system.move_in(store, lambda system: remove_forgotten(system, forgetting, facts))
            archived = archive.take_out(forgetting, policy)
            if (
                tiers_move.step.memory is tiers_move.before
                and system_move.step.memory is system_move.before
                and not archived
            ):
                what = f"page {page_id}" if about is None else f"page or persona of {about.type}:{about.identifier}"
                raise NotFound(f"{self.agent} has no {what}", hint="see those it has: retrieve(...), personas")
            promoted: Mapping[str, str] = storage.note(store, self.project, _PROMOTED, self.agent) or {}
            report = forgotten(
                page_id,
                names,
                (tiers_move.before, tiers_move.step.memory),
                (system_move.before, system_move.step.memory),
                archived,
                promoted,
            )
            remaining = {fact: iri for fact, iri in promoted.items() if fact not in report.facts}
            storage.store_note(store, self.project, _PROMOTED, self.agent, remaining or None)
            self.jobs.drop(store, self.project, self.agent, names)
            self.jobs.ask(
                store, self.project, self.agent, *following(tiers_move.before, tiers_move.step.memory), Task("diffuse")
            )
        self.storage.cache_move(tiers_move)
        self.system.cache_move(system_move)
        self._state.scrub()
        return report

    def forget(self) -> bool:
        """Remove everything of the agent, its archive included; return whether its tiers had anything."""
        with self._state.changing() as store:
            self.jobs.forget(store, self.project, self.agent)
            key_prefix = f"memoryos:{self.agent}:"
            store.execute(_DELETE_ARCHIVED, (f"{self.project}/", f"{self.project}/", key_prefix, key_prefix))
            for kind in (EMBEDDER, _MAINTAINED, _PROMOTED, "agent"):
                storage.store_note(store, self.project, kind, self.agent, None)
        return self.storage.forget()

    def _policy_now(self, store: StateTables | None) -> TierPolicy:
        settings = storage.configurations(store, self.project, self._policy.config)
        return replace(self._policy, config=settings.get_agent_config(self.agent))

    @contextmanager
    def _changing(self) -> Iterator[StateTables]:
        """Yield a transaction in which stored vectors are of this embedder, or there are none."""
        with self._state.reading() as store:
            embedders = self._other_embedders(store)
        if embedders:
            self._drop_vectors()
        with self._state.changing() as store:
            if embedders := self._other_embedders(store):
                raise Busy(f"another process embeds with {embedders[0]!r:.100}", hint="give all of them one embedder")
            for holder in (self.agent, _ALL):
                if storage.note(store, self.project, EMBEDDER, holder) is None:
                    storage.store_note(store, self.project, EMBEDDER, holder, self._embedder)
            yield store

    def _other_embedders(self, store: StateTables | None) -> list[str]:
        embedders = [storage.note(store, self.project, EMBEDDER, holder) for holder in (self.agent, _ALL)]
        return [each for each in embedders if each not in (None, self._embedder)]

    def _drop_vectors(self) -> None:
        with self._state.changing() as store:
            policy = self._policy_now(store)
            tiers_move = self.storage.move_in(store, lambda tiers: embedded(tiers, policy.config, no_vector))
            system_move = self.system.move_in(store, lambda system: embedded_system(system, no_vector))
            for holder in (self.agent, _ALL):
                storage.store_note(store, self.project, EMBEDDER, holder, self._embedder)
            self.jobs.ask(store, self.project, self.agent, Task("embed"))
        self.storage.cache_move(tiers_move)
        self.system.cache_move(system_move)


def resulting_jobs(before: Tiers, after: Tiers) -> list[Task]:
    """Return the jobs that a move causes: pages to describe and to transfer, facts to share with all agents."""
    known = {page.id for page in (*before.stm, *before.leaving)}
    waited = {page.id for page in before.leaving}
    tasks = [Task("describe", page.id) for page in (*after.leaving, *after.stm) if page.id not in known]
    tasks += [Task("transfer", page.id) for page in after.leaving if page.id not in waited]
    if _known_facts(after) - _known_facts(before):
        tasks.append(Task("diffuse"))
    return tasks


def _known_facts(tiers: Tiers) -> set[tuple[str, bool]]:
    return {(fact.id, fact.private) for fact in tiers.facts()}
