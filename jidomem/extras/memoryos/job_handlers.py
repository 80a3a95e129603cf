"""The handlers of the jobs of an agent: each calls the model outside any transaction, and then makes the move.

`Pages` makes the pages of an agent searchable. `FactPromoting` proposes facts of personas as memories: intents with the
pages they are based on, validated like all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import wraps
from threading import RLock
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from jidomem.base.clock import format_timestamp
from jidomem.base.stems import Stemmer
from jidomem.base.words import LONGEST_TEXT
from jidomem.errors import (
    STOPPING,
    Busy,
    Conflict,
    Failed,
    IdempotencyMismatch,
    InvalidRequest,
    JidomemError,
    ModelUnavailable,
    NotFound,
    RevisionConflict,
)
from jidomem.extras.memoryos import config, storage
from jidomem.extras.memoryos.config import MemoryOSConfig, Vector
from jidomem.extras.memoryos.jobs import Job, Task
from jidomem.extras.memoryos.personas import (
    FactImportance,
    PersonaDiffusion,
    apply_lesson,
    diffuse,
    judge,
    lesson,
    texts_of,
    unjudged,
    unlearned_pages,
)
from jidomem.extras.memoryos.retrieval import MaintenanceRun, confidential_pages, hot, maintain
from jidomem.extras.memoryos.segments import (
    Description,
    NewDescription,
    PageArrival,
    SegmentSplit,
    TierPolicy,
    before,
    choose_segment,
    describe,
    known_page,
    oversized,
    retell,
    segment_text,
    split,
    transfer,
)
from jidomem.extras.memoryos.storage import agent_tiers
from jidomem.extras.memoryos.transactions import EMBEDDER, AgentMoves, embedded, embedded_system, given_vectors, lacking
from jidomem.extras.memoryos.values import DialoguePage, KnowledgeEntry, ObjectPersona, SystemMemory, Tiers
from jidomem.index.search_documents import Document
from jidomem.index.search_index import InMemorySearchIndex
from jidomem.models.keywords import asks_for_secrecy, is_private
from jidomem.providers import Providers, execute_directive
from jidomem.recall.candidates import PAGE
from jidomem.records.directive import MemoryUpsert, Searchable, Step, UpsertItem
from jidomem.records.intent import MemoryUpdateIntent
from jidomem.records.interfaces import FIELD_WEIGHTS, Fact, LanguageModel, Learned, StateStore, Trait
from jidomem.runtime.agent_memory import REDACTED_TEXT
from jidomem.working.tiers import PromotionDecision
from jidomem.write.canonical import is_reference
from jidomem.write.secrets import find

if TYPE_CHECKING:
    from jidomem.runtime.root import Jidomem

#: The speaker of an answer, and the default speaker of a question.
ANSWERS, ASKS = "assistant", "user"


class Pages:
    """A search index of the pages of one agent, in memory only, updated when pages come and go.

    As nobody is known to ask, it lacks the pages of users, without the setting `share_users`, the private pages of all
    objects, and what was said before their other pages.
    """

    def __init__(
        self, state: StateStore, project: str, agent: str, new_id: Callable[[], str], stemmer: Stemmer
    ) -> None:
        """Index the pages in *state*; raises InvalidRequest for an agent's name without letters or digits."""
        self._state, self._project = state, project
        self._tiers = agent_tiers(state, project, agent, new_id)
        self._texts = InMemorySearchIndex(stemmer)
        self._seen: tuple[Tiers, bool] | None = None
        self._known: dict[str, DialoguePage] = {}
        self._private: dict[str, bool] = {}
        self._lock = RLock()

    def catch_up(self) -> tuple[InMemorySearchIndex, str | None]:
        """Return the index of the present pages, and the name of the embedder of their vectors."""
        with self._lock:
            with self._state.reading() as store:
                tiers = self._tiers.read_in(store)
                embedder = storage.note(store, self._project, EMBEDDER, self._tiers.holder)
                settings = storage.configurations(store, self._project, MemoryOSConfig())
            shares = settings.get_agent_config(self._tiers.holder).share_users
            if self._seen is None or tiers is not self._seen[0] or shares != self._seen[1]:
                self._take_in(tiers, shares)
                self._seen = tiers, shares
            return self._texts, embedder

    def _take_in(self, tiers: Tiers, share_users: bool) -> None:
        pages = [page for page in tiers.pages() if share_users or page.user is None]
        of_objects = {page.id: page for page in pages if page.object is not None}
        self._private = {
            name: self._private[name] if name in self._private else is_private(page.text)
            for name, page in of_objects.items()
        }
        private = confidential_pages(tiers) & of_objects.keys()
        now = {page.id: page for page in pages if page.id not in private and not self._private.get(page.id)}
        new = {name: page for name, page in now.items() if self._known.get(name) is not page}
        removed = self._known.keys() - now.keys()
        if new or removed:
            self._texts.put({name: (_document(page), page.embedding) for name, page in new.items()}, removed)
        self._known = now

    def close(self) -> None:
        """Close the index."""
        self._texts.close()


def _document(page: DialoguePage) -> Document:
    at, speakers = format_timestamp(page.timestamp), (page.object_identifier or ASKS, ANSWERS)
    chain = page.meta_chain if page.object is None else None
    texts = {"summary": page.text, "about": "\n".join(speakers), "explanation": chain or ""}
    return Document(
        item=page.id,
        types=(PAGE,),
        recorded=at,
        agent=page.agent_id,
        texts=tuple(texts.get(name, "") for name in FIELD_WEIGHTS),
        text="\n\n".join(filter(None, (page.query, page.response)))[:LONGEST_TEXT],
        speakers=speakers,
        said_at=at,
        talk=f"{page.object_type or ''}/{page.object_identifier or ''}",
        place=f"{at} {page.id}",
    )


_OUTCOME = {"deduplicated": "known", "proposed": "proposed"}
#: The reason of a supersession or withdrawal.
_LATER = "a later statement of the dialogue ended it"
#: The lowest confidence with which a fact becomes a memory of the project.
LEAST = 0.8


class FactPromoting:
    """Proposes facts of an agent's personas to the project, each once; a withdrawn one is not proposed again."""

    def __init__(self, memory: Jidomem, moves: AgentMoves, session: str) -> None:
        self._memory, self._moves, self._session = memory, moves, session

    def promote(self, least: float = LEAST) -> list[PromotionDecision]:
        """Return the outcome for each fact with a confidence of *least* or more, not private, and not yet proposed.

        A fact that ended promoted ones supersedes them ("updated"). If it is not promoted itself, they are withdrawn
        ("withdrawn"), as is a fact that has become private since.

        Stops at an error that would stop every further write, such as a busy writer or a full disk; the rest stays
        pending.
        """
        if isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1 or math.isnan(least):
            raise InvalidRequest(f"least={least!r} is not a number from 0 to 1", hint=f"give {LEAST}")
        done, decisions = {*self._moves.promoted()}, [*self._withdraw(least)]
        while (due := _next_fact(tiers := self._moves.tiers(), least, done)) is not None:
            done.add(due[1].id)
            decisions.append(self._propose(*due, tiers))
            if (error := decisions[-1].error) is not None and error.code in STOPPING:
                break
        return decisions

    def _withdraw(self, least: float) -> Iterator[PromotionDecision]:
        """Withdraw the memories of facts that have become private, or were ended by one that is not promoted."""
        promoted = self._moves.promoted()
        for fact in self._moves.tiers().facts():
            names = (*fact.ends, fact.id) if fact.private else fact.ends if fact.confidence < least else ()
            for name in names:
                if iri := promoted.get(name):
                    verdict = ("withdrawn", _LATER, fact.confidence, "facts", f"memoryos:{self._moves.agent}:{name}")
                    try:
                        receipt = self._memory.writer.invalidate(self._moves.project, iri, reason=_LATER)
                    except JidomemError as refusal:
                        yield PromotionDecision("refused", refusal.detail, *verdict[2:], iri=iri, error=refusal)
                        continue
                    self._moves.note_promoted(name, "")
                    yield PromotionDecision(*verdict, iri=iri, receipt=receipt)

    def _propose(self, persona: ObjectPersona, fact: KnowledgeEntry, tiers: Tiers) -> PromotionDecision:
        promoted = self._moves.promoted()
        ended = [iri for name in fact.ends if (iri := promoted.get(name))]
        decision = self._submit(persona, fact, tiers, ended)
        is_stale = ended and isinstance(decision.error, Conflict | NotFound)  # somebody ended them already
        decision = self._submit(persona, fact, tiers, []) if is_stale else decision
        if decision.outcome != "refused":
            for name in fact.ends:
                self._moves.note_promoted(name, "")
        return decision

    def _submit(
        self, persona: ObjectPersona, fact: KnowledgeEntry, tiers: Tiers, ended: list[str]
    ) -> PromotionDecision:
        key, reason = f"memoryos:{self._moves.agent}:{fact.id}", f"believed with {fact.confidence:g}"
        verdict = ("facts", key)
        intent = self._intent(persona, fact, tiers, key)
        if ended:
            intent = replace(intent, supersedes=ended, reason=_LATER)
        try:
            receipt = self._memory.writer.submit_intent(self._moves.project, intent)
        except IdempotencyMismatch:  # it was promoted, and has changed since
            self._moves.note_promoted(fact.id, "")
            return PromotionDecision("known", reason, fact.confidence, *verdict)
        except Conflict as conflict:
            same = [met.iri for met in conflict.conflicts if met.kind == "duplicate"]
            if len(same) < len(conflict.conflicts):
                return PromotionDecision("refused", conflict.detail, fact.confidence, *verdict, error=conflict)
            self._moves.note_promoted(fact.id, same[0])
            return PromotionDecision("known", reason, fact.confidence, *verdict, iri=same[0])
        except JidomemError as refusal:
            return PromotionDecision("refused", refusal.detail, fact.confidence, *verdict, error=refusal)
        self._moves.note_promoted(fact.id, receipt.iri)
        outcome = _OUTCOME.get(receipt.status, "updated" if ended else "promoted")
        return PromotionDecision(outcome, reason, fact.confidence, *verdict, iri=receipt.iri, receipt=receipt)

    def _intent(self, persona: ObjectPersona, fact: KnowledgeEntry, tiers: Tiers, key: str) -> MemoryUpdateIntent:
        subject = f"{persona.type} {persona.identifier}"
        return MemoryUpdateIntent(
            type="fact",
            summary=f"{subject}: {fact.text}",
            applies_to_project=self._moves.project,
            asserted_by=self._moves.agent,
            asserted_in=self._session,
            confidence=fact.confidence,
            evidence=[*_evidence(fact, tiers, self._moves.snapshot()[2].config.share_users)],
            about=[subject],
            timestamp=format_timestamp(fact.created_at),
            idempotency_key=key,
        )


def _next_fact(tiers: Tiers, least: float, done: Collection[str]) -> tuple[ObjectPersona, KnowledgeEntry] | None:
    for persona in tiers.personas:
        for fact in persona.knowledge:
            if not fact.private and fact.confidence >= least and fact.id not in done and REDACTED_TEXT not in fact.text:
                return persona, fact
    return None


def _evidence(fact: KnowledgeEntry, tiers: Tiers, share_users: bool) -> Iterator[str]:
    """Yield the texts of the pages on which a fact is based.

    A page that was added under an IRI, such as that of a turn, is named by it; a page that was evicted, is of a user,
    without *share_users*, or has private content, by its id.
    """
    private = confidential_pages(tiers)
    for page_id in fact.evidence:
        page = tiers.page(page_id)
        if is_reference(page_id, prose=True):
            yield page_id
        elif page is None or page_id in private or is_private(page.text) or (page.user and not share_users):
            yield f"page {page_id}"
        else:
            yield f"{format_timestamp(page.timestamp)} {page.text}"


#: Attempts of a model call after conflicts, texts embedded at once, and pages of a lesson.
AGAIN, AT_ONCE, LESSON = 10, 64, 50
P = ParamSpec("P")
T = TypeVar("T")


def _retry_conflicts(attempt: Callable[P, T]) -> Callable[P, T]:
    """Let *attempt* repeat until no concurrent change conflicts with its answer."""

    @wraps(attempt)
    def repeated(*args: P.args, **kwargs: P.kwargs) -> T:
        for _ in range(AGAIN):
            try:
                return attempt(*args, **kwargs)
            except RevisionConflict as conflict:
                last_conflict = conflict
        raise Busy(f"conflicting changes in {AGAIN} tries: {last_conflict.detail}", hint="try again in a moment")

    return repeated


class JobHandlers:
    """The handlers of the jobs of one agent. Each may run any number of times and does not repeat finished work."""

    def __init__(
        self, moves: AgentMoves, model: LanguageModel, providers: Providers, promote: Callable[[], object] | None
    ) -> None:
        """Use *model*; evicted segments go to *providers*; maintenance calls *promote*, if given."""
        self._moves, self._model, self._providers, self._promote = moves, model, providers, promote

    def do(self, job: Job) -> None:
        """Run a job and remove it from the queue; raises its error."""
        kinds: dict[str, Callable[[Job], object]] = {
            "describe": lambda job: self.describe(job.subject, job),
            "transfer": lambda job: self.transfer(job.subject, job),
            "retell": lambda job: self.retell(job.subject, job),
            "teach": lambda job: self.learn_traits(job.subject, job),
            "maintain": self.maintain,
            "diffuse": self.diffuse,
            "embed": self.embed,
            "archive": self.archive,
            "promote": self.promote,
        }
        if job.kind not in kinds:
            raise Failed(f"unknown kind of job {job.kind!r}", hint="it was queued by a newer jidomem: use that version")
        try:
            kinds[job.kind](job)
        except NotFound:  # its page or segment was forgotten, evicted or taught meanwhile: there is nothing to do
            self._moves.finish(job)

    @_retry_conflicts
    def describe(self, page_id: str, job: Job | None = None) -> None:
        """Let the model describe a page: whether it continues the previous one, its chain, keywords and vector."""
        tiers = self._moves.tiers()
        page, previous = known_page(tiers, page_id), before(tiers, page_id)
        description, read = self._description(page, previous), [page] if previous is None else [page, previous]
        self._moves.move(lambda tiers, policy: describe(_check_unchanged(tiers, read), description, policy), done=job)

    @_retry_conflicts
    def transfer(self, page_id: str, job: Job | None = None) -> None:
        """Move a page into the most similar segment, which gets a new summary, or into a new one."""
        page = known_page(self._moves.tiers(), page_id)
        if page.meta_chain is None or (page.embedding is None and page.text.strip()):
            self.describe(page_id)
        tiers, _, policy = self._moves.snapshot()
        placement = choose_segment(tiers, page_id, policy)
        known = None if placement.segment_id is None else tiers.segment(placement.segment_id)
        summary = self._model.generate_segment_summary(placement.pages)
        text = segment_text(summary, placement.keywords)
        is_same = known is not None and segment_text(known.topic_summary, known.keywords) == text
        vector = known.embedding if known is not None and is_same else None
        arrival = PageArrival(
            page_id,
            placement.segment_id or self._moves.new_id(),
            summary,
            tuple(page.id for page in placement.pages),
            self._moves.now(),
            vector or self._vector_of(text),
        )
        self._moves.move(
            lambda tiers, policy: transfer(_check_unchanged(tiers, placement.pages), arrival, policy), done=job
        )

    @_retry_conflicts
    def retell(self, segment_id: str, job: Job | None = None) -> None:
        """Write a new summary of a segment."""
        segment = self._moves.tiers().segment(segment_id)
        if segment is None:
            raise NotFound(f"{self._moves.agent} has no segment {segment_id}", hint="it may be evicted")
        summary = self._model.generate_segment_summary(segment.pages)
        retelling = NewDescription(
            segment_id,
            summary,
            tuple(page.id for page in segment.pages),
            self._vector_of(segment_text(summary, segment.keywords)),
        )
        self._moves.move(
            lambda tiers, policy: retell(_check_unchanged(tiers, segment.pages), retelling, policy), done=job
        )

    def learn_traits(self, segment_id: str, job: Job | None = None) -> None:
        """Let the personas learn the traits that the model extracts from the untaught pages of a segment."""
        while self._teach(segment_id):
            pass
        self._finish(job)

    def maintain(self, job: Job | None = None) -> None:
        """Compute the heat of all segments, evict those beyond the capacity, and queue jobs to learn from hot ones."""
        tiers, system, policy = self._moves.snapshot()
        at, agent = self._moves.now(), self._moves.agent
        if any(each.about is None and each.source_agent_id == agent for each in system.entries):
            self._moves.ask(Task("diffuse"))  # earlier versions did not store the object of a shared fact
        for segment_id, needed in oversized(tiers, policy.config).items():
            self._split(SegmentSplit(segment_id, tuple(self._moves.new_id() for _ in range(needed)), at))
        self._moves.move(
            lambda tiers, policy: maintain(tiers, MaintenanceRun(at), policy), then=self._due, done=job, maintained=at
        )

    def diffuse(self, job: Job | None = None) -> None:
        """Let the model rate the importance of facts to all agents, and share the important ones in system memory."""
        facts = unjudged(self._moves.tiers())
        if facts:
            rated = self._model.rate_importance([fact.text for fact in facts])
            judged = FactImportance({fact.id: score for fact, score in zip(facts, rated, strict=True)})
            self._moves.move(lambda tiers, policy: judge(tiers, judged, policy))
        at = self._moves.now()

        def tell(system: SystemMemory, tiers: Tiers, policy: TierPolicy) -> Step[SystemMemory]:
            return diffuse(system, PersonaDiffusion(self._moves.agent, tiers.personas, at), policy)

        self._moves.move_system(tell, done=job)

    def embed(self, job: Job | None = None) -> None:
        """Make the missing vectors, in batches."""
        tiers, system, _ = self._moves.snapshot()
        while texts := lacking(tiers, system):
            self._fill(texts[:AT_ONCE])
            tiers, system, _ = self._moves.snapshot()
        self._finish(job)

    def archive(self, job: Job | None = None) -> None:
        """Hand evicted segments to the providers that the settings name; those that one refuses stay pending."""
        refused = []
        for directive in self._moves.storage.pending_directives():
            answer = execute_directive(_for_provider(directive, self._providers), self._providers)
            if answer.data["status"] == "ok":
                self._moves.storage.performed(directive.request_id)
            else:
                refused.append((directive, answer.data["reason"]))
        for directive, reason in refused[:1]:
            raise Failed(f"{directive.request_id} is not performed: {reason['detail']}", hint=reason["hint"])
        self._finish(job)

    def promote(self, job: Job | None = None) -> None:
        """Propose facts of the personas to the project."""
        if self._promote is not None:
            self._promote()
        self._finish(job)

    def _finish(self, job: Job | None) -> None:
        if job is not None:
            self._moves.finish(job)

    def _due(self, tiers: Tiers, policy: TierPolicy) -> list[Task]:
        tasks = [Task("transfer", page.id) for page in tiers.leaving]
        tasks += [Task("teach", segment.id) for segment in hot(tiers, policy)]
        return [*tasks, Task("promote")] if self._promote is not None else tasks

    def _description(self, page: DialoguePage, previous: DialoguePage | None) -> Description:
        if not page.text.strip():
            return Description(page.id, meta_chain="")
        chain, continues = page.meta_chain, page.continues
        if chain is None:
            if previous is not None and self._model.continues(previous, page):
                continues = previous.id
            pages = [previous, page] if previous is not None and continues else [page]
            chain = self._model.generate_meta_chain(pages)
        keywords = page.keywords or frozenset(self._model.extract_keywords(page.text))
        vector = page.embedding or self._vectors([page.text])[0]
        return Description(page.id, vector, keywords, chain, continues)

    def _split(self, parts: SegmentSplit) -> None:
        tasks = [Task("retell", each) for each in (parts.segment_id, *parts.new_ids)]
        self._moves.move(lambda tiers, policy: split(tiers, parts, policy), then=lambda tiers, policy: tasks)

    def _fill(self, texts: Sequence[str]) -> None:
        vector = given_vectors(dict(zip(texts, self._vectors(texts), strict=True)))
        self._moves.move(lambda tiers, policy: embedded(tiers, policy.config, vector))
        self._moves.move_system(lambda system, tiers, policy: embedded_system(system, vector))

    @_retry_conflicts
    def _teach(self, segment_id: str) -> bool:
        """Learn from the next pages of one object; return whether untaught pages are left."""
        segment = self._moves.tiers().segment(segment_id)
        if segment is None or not segment.interactions:
            raise NotFound(f"nothing is left to learn from segment {segment_id}", hint="it was taught or evicted")
        fresh = unlearned_pages(segment)
        fresh = replace(fresh, pages=fresh.pages[:LESSON])
        learned = _mark_private(self._model.extract_traits(fresh), fresh.pages)
        texts = [*dict.fromkeys(texts_of(learned))]
        vectors = dict(zip(texts, self._vectors(texts), strict=True))
        taught = lesson(fresh, learned, at=self._moves.now(), new_id=self._moves.new_id, vectors=vectors)
        after = self._moves.move(
            lambda tiers, policy: apply_lesson(_check_unchanged(tiers, fresh.pages), taught, policy)
        )
        segment_left = after.segment(segment_id)
        return segment_left is not None and segment_left.interactions > 0

    def _vector_of(self, text: str) -> Vector | None:
        return self._vectors([text])[0] if text.strip() else None

    def _vectors(self, texts: Sequence[str]) -> list[Vector]:
        if not texts:
            return []
        embedder = self._model.embedder
        vectors = [
            config.vector(f"a vector of {embedder.name}", each) for each in self._model.calculate_embeddings(texts)
        ]
        dimensions = embedder.dimensions()
        if len(vectors) != len(texts) or any(len(vector) != dimensions for vector in vectors):
            raise ModelUnavailable(
                f"{embedder.name} gave no vector of {dimensions} numbers for each of {len(texts)} texts",
                hint="use an embedder that does",
            )
        return vectors


def _check_unchanged(tiers: Tiers, read: Sequence[DialoguePage]) -> Tiers:
    """Return *tiers*; raise RevisionConflict if a page differs from the text that a model read: it was redacted.

    So nothing derived from a removed text is stored after its removal.
    """
    read_pages = {page.id: page for page in read}
    for page in tiers.pages():
        page_read = read_pages.get(page.id)
        if page_read is not None and (page_read.text, page_read.meta_chain) != (page.text, page.meta_chain):
            raise RevisionConflict(f"page {page.id} has changed", hint="call the model again with its present text")
    return tiers


def _mark_private(learned: Learned, pages: Sequence[DialoguePage]) -> Learned:
    """Return the findings of a model; those that look private or secret, or whose page asks for secrecy, are marked.

    So the rule is the same for each model. A finding without a valid page is from all *pages*.
    """
    confidential = [asks_for_secrecy(page.text) for page in pages]

    def is_confidential(finding: Fact | Trait, text: str) -> bool:
        has_page = finding.page is not None and 0 <= finding.page < len(pages)
        asked = confidential[finding.page] if has_page else any(confidential)  # type: ignore[index]
        return finding.private or asked or is_private(text) or find(text) is not None

    facts = (replace(each, private=is_confidential(each, each.text)) for each in learned.facts)
    traits = (replace(each, private=is_confidential(each, f"{each.name} {each.value}")) for each in learned.traits)
    return Learned(tuple(facts), tuple(traits))


def _for_provider(directive: MemoryUpsert, providers: Providers) -> MemoryUpsert:
    with providers.locked(directive.provider) as registered:
        if isinstance(registered.provider, Searchable):
            return directive
    items = [replace(UpsertItem.of(item), embedding=None) for item in directive.items]
    return replace(directive, items=items)
