"""The maintenance of a journal by a curator: redaction of texts and quarantine of damaged files."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

from jidomem.base.clock import Sources
from jidomem.base.containers import grouped, reachable
from jidomem.base.words import slug
from jidomem.check.journal_integrity import ExposedForm, Records, exposures, records_of
from jidomem.curation.find_text import (
    BLOBS,
    DIGEST,
    DIGESTS,
    ENTRY_STAYS,
    LONG,
    SAYS,
    SOURCE_BLOB,
    SOURCE_DIGEST,
    TERMS,
    TURN_TEXTS,
    UNKNOWN,
    WHOLE,
    WORDS,
    Content,
    Occurrences,
    TextForms,
    TextsToRemove,
    Trace,
    fold,
    form_of,
    source_leftovers,
    variants,
    without_blob,
)
from jidomem.errors import Failed, IntentRefused, InvalidRequest, NotFound
from jidomem.index.follower import IndexFollower
from jidomem.index.search_documents import other_records
from jidomem.journal.commit import COMMIT, Commit, build, identity_in, moment_after
from jidomem.journal.journal import NAMES, Stream, VersionMismatch
from jidomem.journal.rewrite import leaves
from jidomem.rdf.terms import Term, Triple, date_time, iri, is_iri, literal, parse_literal, plain_value
from jidomem.rdf.vocab import BASE, LABEL, REDACTED, THIS, TYPE, XSD, conv, jido, local_name, short_id
from jidomem.records.file_anchor import ANCHOR, NO_BLOB, Anchor, anchors_of
from jidomem.records.intent import Version
from jidomem.records.interfaces import NAMESPACE
from jidomem.records.policy import AgentPolicy, Policy
from jidomem.repository.freshness import contents
from jidomem.repository.worktree import Worktree
from jidomem.schema.ontology import Schema
from jidomem.write import canonical, secrets
from jidomem.write.conversation import ENTRY, ID, METADATA, REPLACES, TEXT
from jidomem.write.pipeline import WRITER_POLICY
from jidomem.write.snapshot import ITEM_MARK, REPLACED, WriteSnapshot
from jidomem.write.submission import STRUCTURAL
from jidomem.write.triples import TEXTS, WRITER_AGENT, agent_stub, name_of
from jidomem.write.writer import MemoryWriter

#: The texts of a memory: they are redacted if no property is named.
_FREE = (*(jido(TEXTS[name]) for name in ("summary", "detailed_explanation", "rationale", "reason")), jido("value"))
_TURN_PART = re.compile(r"/(?:prompt|answer|tools/\d+(?:/result)?)$")
#: The properties from a turn to its parts, whose texts belong to it.
_PARTS = tuple(map(conv, ("hasPrompt", "hasAnswer", "involvesToolInvocation", "hasResult")))
_LINKS = tuple(
    map(jido, ("supersedes", "supersededBy", "invalidates", "invalidatedBy", "revives", "coexistsWith",
               "conflictsWith", "derivedFrom", "hasAlternative", "answeredWith"))
)  # fmt: skip
_POLICY = jido("PolicyChange")
#: Replaces a place or a check that was removed, and is itself never removed: the rule would apply to every file.
_PLACEHOLDER = literal(REDACTED)
#: The least length of a text to redact: shorter ones occur everywhere.
SHORTEST = 3
#: The most names that a message lists.
SHOWN = 5


class Incomplete(NamedTuple):
    """The active memories without a summary, and the other active decisions without a rationale, each sorted.

    `lacking` has the other active conventions and decisions that lost a value of a field, by field.
    """

    emptied: tuple[str, ...] = ()
    unexplained: tuple[str, ...] = ()
    lacking: Mapping[str, Sequence[str]] = {}


@dataclass(frozen=True, slots=True)
class RedactionPlan:
    """The plan of a redaction: each trace to remove with its stream, and the texts.

    `working_entries` are the entries of the working state that contain a text, by kind; `emptied` are the active
    memories that lose their summary, `unexplained` the other active decisions that lose their rationale, `lacking` the
    conventions and decisions that lose a value of another field, by field. `other_projects` have a text in their
    working state. `left_out` are longer words of which a text is only a part, and `near` are words that differ from one
    in accents: they stay. `linked` are the memories,
    linked with the one to redact as evidence or version, whose texts stay. `versions` are those of the streams before
    they were read.
    """

    project: str
    wanted: TextsToRemove
    traces: tuple[tuple[Stream, Trace], ...]
    versions: Mapping[Stream, Version] = field(default_factory=dict)
    working_entries: Mapping[str, Sequence[tuple[str, Any]]] = field(default_factory=dict)
    emptied: tuple[str, ...] = ()
    unexplained: tuple[str, ...] = ()
    lacking: Mapping[str, Sequence[str]] = field(default_factory=dict)
    other_projects: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()

    @property
    def working_state(self) -> Mapping[str, int]:
        """Return the number of entries of the working state that contain a text, by kind."""
        return {kind: len(entries) for kind, entries in self.working_entries.items()}

    @property
    def fields(self) -> Mapping[str, int]:
        """Return the number of values removed whole because they, or their entry, contain a text, by property."""
        return Counter(local_name(trace.triple[1]) for _, trace in self.traces if trace.why in (SAYS, WHOLE))

    @property
    def entries(self) -> Mapping[Term, str]:
        """Return the names of the removed entries: namespace and key, or the id. Versions share one name."""
        names: dict[Term, str] = {}
        for subject, predicate, value in (trace.triple for _, trace in self.traces):
            if predicate == METADATA:
                metadata = json.loads(plain_value(value))
                if isinstance(metadata.get(NAMESPACE), str) and "key" in metadata:
                    names[subject] = f"{metadata[NAMESPACE]} {metadata['key']}"
            elif predicate == ID:
                names.setdefault(subject, plain_value(value))
        return names

    @property
    def turns(self) -> tuple[str, ...]:
        """Return the turns that lose words of which they do not contain the text, as those of a removed speaker."""
        parts = (trace.triple for _, trace in self.traces if trace.why == WHOLE and trace.triple[1] in TURN_TEXTS)
        return tuple(sorted({_TURN_PART.sub("", plain_value(subject)) for subject, _, _ in parts}))

    @property
    def unattributed(self) -> tuple[str, ...]:
        """Return the memories that lose their author and keep texts."""
        return tuple(sorted(self._losing("assertedBy").difference(self.emptied, self.removed)))

    @property
    def unsupported(self) -> tuple[str, ...]:
        """Return the memories that lose evidence and keep texts."""
        return tuple(sorted(self._losing("derivedFrom").difference(self.emptied, self.removed)))

    @property
    def removed(self) -> tuple[str, ...]:
        """Return the memories of which nothing stays, as their IRI contains a text."""
        return tuple(sorted(self._losing("hasAssertionStatus")))

    def _losing(self, name: str) -> set[str]:
        """Return the memories that lose a value of the property *name*."""
        items = {plain_value(trace.triple[0]) for _, trace in self.traces if trace.triple[1] == jido(name)}
        return {item for item in items if "/alternatives/" not in item}

    @property
    def unrecognised(self) -> tuple[str, ...]:
        """Return the memories and submissions that lose their idempotency key: a retry would store their text again.

        A digest of the key, salted or not, would confirm a guess at the text in it, so none is preserved.
        """
        keyed = {trace.triple[0] for _, trace in self.traces if trace.triple[1] == jido("idempotencyKey")}
        return tuple(sorted(map(plain_value, keyed)))

    @property
    def forms(self) -> Mapping[str, int]:
        """Return the number of statements that contain a text, by its form."""
        return Counter(trace.form for _, trace in self.traces if trace.why == SAYS)

    def costs(self) -> Iterator[str]:
        """Yield the detections that are lost without the removed digests."""
        digests = [trace for _, trace in self.traces if trace.why in (DIGEST, UNKNOWN)]
        files: dict[tuple[Term, str], set[Term]] = defaultdict(set)
        unknown: dict[str, set[str]] = defaultdict(set)
        others: dict[Term, set[Term]] = defaultdict(set)
        for trace in digests:
            subject, predicate, value = trace.triple
            others[predicate].add(subject)
            for each in anchors_of([value]) if predicate in BLOBS else ():
                files[predicate, each.path].add(subject)
                if trace.why == UNKNOWN:
                    unknown[each.path].add(each.blob)
        if keyed := others[jido("conflictKey")]:
            repeated = "can no longer be detected as repeating or contradicting others by the removed text"
            yield f"{_memories(keyed)} {repeated}"
        if requests := others[jido("requestDigest")] - {iri(each) for each in self.unrecognised}:
            yield f"a retry of the request of {_memories(requests)} is refused"
        for (predicate, path), items in sorted(files.items()):
            if predicate == ANCHOR:
                text = f"freshness of {_memories(items)} about {path} can no longer be determined"
                yield f"{text}, until: jidomem edit {short_id(plain_value(min(items)))} --confirm"
            else:
                yield f"an import of {path} no longer recognises the version that {_memories(items)} came from"
        for path, blobs in sorted(unknown.items()):
            versions = "1 version" if len(blobs) == 1 else f"{len(blobs)} versions"
            yield f"neither the file nor git has the content of {versions} of {path}, which may have contained the text"


class JournalMaintenance(NamedTuple):
    """The maintenance of the journal of `follower`, permitted to the curators of `writer`'s policy.

    `delete_caches` deletes the files, other than the index, that are derived from a project, and yields the fault of
    each that stays; `remove_from_logs` deletes the names that a predicate accepts from the read log of a project, and
    `working_entries` returns place and content of the entries of its working state with them, by kind. `tree` is the
    git repository with the files whose blob ids memories have.
    """

    follower: IndexFollower
    schema: Schema
    policy: Policy
    sources: Sources
    writer: MemoryWriter
    delete_caches: Callable[[str], Iterable[Failed]]
    remove_from_logs: Callable[[str, Callable[[str], bool]], object]
    working_entries: Callable[[str, Callable[[str], bool]], Mapping[str, Sequence[tuple[str, Any]]]] = (
        lambda project, shows: {}
    )
    tree: Worktree | None = None

    def plan(
        self,
        project: str,
        item: str | None,
        *,
        properties: Sequence[str] = (),
        texts: Sequence[str] = (),
        parts: bool = False,
    ) -> RedactionPlan:
        """Return the plan to remove all triples that contain a text, or would confirm a guess at it.

        The texts are *texts*; else the values of *properties* (IRIs) of *item*; else the texts of *item*, or all
        versions of the entry *item*. A text counts as a whole word, with *parts* also within a longer one. An entry
        that contains one goes whole, and the words of a turn whose session or asking agent does. Raises NotFound if
        nothing contains them, InvalidRequest if they cannot be redacted.
        """
        self._catch_up(project)
        if texts:
            wanted = self._wanted_texts(project, item, texts, parts)
        else:
            wanted = self._wanted_of_item(project, item, properties)
        versions = self._versions(project)
        spellings = set[str]()  # of the texts in the working state
        entries = self.working_entries(project, partial(wanted.shown_in, near_words=spellings)) if wanted.texts else {}
        traces, left_out, near = self._traces(project, wanted, spellings)
        if not entries and not any(trace.why == SAYS for _, trace in traces):
            if near:
                raise NotFound(
                    f"{project} has that text only in other spellings: {', '.join(near[:SHOWN])}",
                    hint="give the spelling: jidomem journal redact --dry-run --text SPELLING",
                )
            if left_out:
                raise NotFound(
                    f"the journal of {project} has that text only within longer words: {', '.join(left_out[:SHOWN])}",
                    hint="add --parts to remove the values with these words as well",
                )
            raise NotFound(
                f"nothing in the journal of {project} contains that text",
                hint="finish the interrupted redaction: jidomem journal redact --again --reason TEXT"
                if any(self._exposed(project).values()) or self._rest_of_entries(project)
                else "look for other spellings, one word of it, or its beginning with --parts",
            )
        others = sorted({stream.project for stream in self.follower.journal.streams()} - {project})
        having = [other for other in others if wanted.texts and self.working_entries(other, wanted.shown_in)]
        view, removed = self._view(project), {trace.triple for _, trace in traces}
        without = _without_texts({s for s, predicate, _ in removed if predicate in (*_FREE, *REPLACED)}, view, removed)
        nodes = sorted(wanted.linked - {iri(item)}) if item and not texts else ()
        linked = [plain_value(node) for node in nodes if _keeps_text(node, view, removed)]
        rest = tuple(having), tuple(left_out), tuple(near), tuple(linked)
        return RedactionPlan(project, wanted, tuple(traces), versions, entries, *without, *rest)

    def without_texts(self, project: str, plan: RedactionPlan | None = None) -> Incomplete:
        """Return the active memories that some redaction, also that of *plan*, left incomplete."""
        rows = self.follower.index.triples(Stream(project).graph, None, jido("redactedItem"))
        planned = (*plan.emptied, *plan.unexplained, *chain(*plan.lacking.values())) if plan else ()
        return _without_texts({*(item for _, _, item in rows), *map(iri, planned)}, self._view(project))

    def _traces(
        self, project: str, wanted: TextsToRemove, near_words: Collection[str] = ()
    ) -> tuple[list[tuple[Stream, Trace]], list[str], list[str]]:
        """Return the occurrences of the texts in the journal, longer words that contain one, and all near words."""
        occurrences, journal = Occurrences(wanted, *self._occurrences_in_files(project, wanted)), self.follower.journal
        streams = self._streams(project)
        for stream in streams:
            occurrences.collect(journal.read(stream))
        traces = [
            (stream, trace)
            for stream in streams
            for trace in occurrences.find(journal.matching(stream, occurrences.may_name))
            if trace.triple[1] not in REPLACED or trace.triple[2] != _PLACEHOLDER
        ]
        near = {fold(word): word for word in sorted(occurrences.near_words.union(near_words), reverse=True)}
        return traces, sorted(occurrences.longer_words), sorted(near.values())

    def _occurrences_in_files(self, project: str, wanted: TextsToRemove) -> tuple[list[str], dict[Anchor, Content]]:
        """Return the files that contain one of the texts now, and the content of each available version of a file.

        Both are limited to the files whose blob ids the memories of the project have.
        """
        if self.tree is None or not wanted.texts:
            return [], {}
        graph, base = Stream(project).graph, self.tree.base.resolve()
        terms = (value for name in BLOBS for _, _, value in self.follower.index.triples(graph, None, name))
        anchors = {anchor for anchor in anchors_of(terms) if anchor.blob != NO_BLOB}
        holding = source_leftovers(base, {anchor.path for anchor in anchors}, wanted.texts, parts=wanted.parts)
        given = [TextForms(text, wanted.parts) for text in sorted(wanted.texts) if text.strip()]
        return (
            [file.path.relative_to(base).as_posix() for file in holding],
            {anchor: _content(data, given) for anchor, data in contents(self.tree, anchors)},
        )

    def redact(self, plan: RedactionPlan, *, agent: str, reason: str) -> list[Commit]:
        """Remove the traces of *plan* and return the commits that record it; all snapshots and lists are rebuilt.

        The record names commits, memories, properties, leaves, *agent* and *reason*, not the removed texts. One of the
        working state alone, and its logs, names *agent* and *reason*. Raises
        PolicyDenied unless *agent* is a curator (an administrator, for changes of the policy) or the project has none,
        InvalidRequest if *reason* or *agent* contains a text, and the errors of an append; and, once the journal is
        redacted, Failed if a file derived from it cannot be deleted.
        """
        self.check_may_redact(plan, agent=agent, reason=reason)
        made, traces, versions = list[Commit](), [*plan.traces], {**plan.versions}
        if not traces:  # the record of a redaction of the working state alone
            made.append(self.record_removal(plan.project, agent=agent, reason=reason))
            versions = self._versions(plan.project)
        self._unlog_texts(plan.project, plan.wanted)
        while traces:
            by_stream = grouped(traces)
            pending = {stream: self._leaves(stream, of_stream) for stream, of_stream in by_stream.items()}
            for stream, of_stream in by_stream.items():
                about = _subjects(of_stream, plan.wanted)
                lost = {trace.triple for trace in of_stream if trace.why in (DIGEST, UNKNOWN)}
                places = [*_places(lost), *_placeholders(about, plan.wanted)]
                named = dict(chain.from_iterable(leaves_of.items() for leaves_of in pending.values()))
                removed = pending.pop(stream)
                record = self._erase(stream, removed, about, places, named, agent=agent, reason=reason)
                made.append(record)
                if stream in versions and record.parents == tuple(sorted(versions[stream].ids)):
                    versions[stream] = Version.of([record.head])
            if versions == (present := self._versions(plan.project)):
                break
            versions = present  # another process may have written a text meanwhile
            traces, *_ = self._traces(plan.project, plan.wanted)
        self._rebuild_copies(plan.project)
        return made

    def record_removal(self, project: str, *, agent: str, reason: str) -> Commit:
        """Return the commit that records who removed content of the working state alone, and why."""
        return self._erase(Stream(project), {}, (), agent=agent, reason=reason)

    def check_may_redact(self, plan: RedactionPlan, *, agent: str, reason: str | None = None) -> None:
        """Raise what `redact` would raise for *agent* and *reason*; a reason of None is not checked."""
        view = self._view(plan.project)
        of_policy = any(_POLICY in view.types(trace.triple[0]) for _, trace in plan.traces)
        self.writer.check_curator(plan.project, agent, "redact", of_policy=of_policy)
        self._screen_reason(reason or "")
        for given, name in ((literal(reason or ""), "the reason"), (literal(agent), "the agent's name"),
                            (_agent(agent), "the agent's name")):  # fmt: skip
            if plan.wanted.occurs_in(given, iri(COMMIT)):
                raise InvalidRequest(f"{name} contains a text to be redacted", hint="leave that text out")

    def _screen_reason(self, reason: str) -> None:
        """Raise IntentRefused for a *reason* with a likely secret, which the journal would keep."""
        if (match := secrets.find(reason)) is not None and self.policy.secrets == "refuse":
            raise IntentRefused(secrets.refusals([("reason", match)]), hint="say it without the secret")

    def redact_again(
        self, project: str, *, agent: str, reason: str, anchored: Records = MappingProxyType({})
    ) -> list[Commit]:
        """Remove redacted triples that are in the journal again, after a merge or an interrupted redaction.

        *anchored* are the redaction records of an anchor, which an older backup lacks. Entries of which only a part was
        redacted go whole. The texts are also removed from the working state, except very short ones. Returns the
        commits that record it, none if there was nothing to remove. Raises PolicyDenied unless *agent* is a curator:
        `redact` checked the right to redact the policy at the first redaction.
        """
        self.writer.check_curator(project, agent, "redact")
        self._screen_reason(reason)
        exposed_in = self._exposed(project, anchored)
        shown = (triple for each in exposed_in.values() for exposure in each for triple in exposure.triples)
        literals = (parse_literal(o) for _, p, o in shown if p not in (*DIGESTS, *BLOBS) and not is_iri(o))
        self._unlog_texts(project, TextsToRemove(frozenset(each.text for each in literals if each.datatype in WORDS)))
        made, rest_by_stream = [], grouped(self._rest_of_entries(project))
        for stream, exposed in exposed_in.items():
            removed: dict[str, frozenset[str]] = defaultdict(frozenset)
            for exposure in exposed:
                removed[exposure.commit] |= exposure.leaves
            rest = rest_by_stream.get(stream, [])
            for commit, redacted in self._leaves(stream, rest).items():
                removed[commit] |= redacted
            if removed:
                triples = frozenset().union(*(exposure.triples for exposure in exposed))
                about = sorted({*_subjects(rest, TextsToRemove(frozenset())), *self._subjects_left(stream, triples)})
                places = [*_places(triples), *_placeholders(about, TextsToRemove(frozenset()))]
                made.append(self._erase(stream, removed, about, places, agent=agent, reason=reason))
        if made:
            self._rebuild_copies(project)
        return made

    def _subjects_left(self, stream: Stream, removed: Collection[Triple]) -> set[tuple[Term, Term]]:
        """Return subject and property of each text in *removed*, if other statements have them: they have no text."""

        def stays(*pattern: Term | None) -> bool:
            return any(row[:2] not in pairs for row in self.follower.index.triples(stream.graph, *pattern))

        pairs, computed = {row[:2] for row in removed}, {*DIGESTS, *BLOBS, jido("receipt")} - {SOURCE_DIGEST}
        names = {(s, p) for s, p, o in removed if p not in computed and not (reveals_content(s) or reveals_content(o))}
        return {(s, p) for s, p in names if stays(s) and (p.startswith(TERMS) or stays(None, p))}

    def _exposed(self, project: str, anchored: Records = MappingProxyType({})) -> dict[Stream, list[ExposedForm]]:
        journal, streams = self.follower.journal, self._streams(project)
        records = records_of(journal, streams, anchored)
        return {stream: exposures(journal, stream, records) for stream in streams}

    def _rest_of_entries(self, project: str) -> list[tuple[Stream, Trace]]:
        """Return the statements to remove of the entries of which a part was redacted."""
        self._catch_up(project)
        view, graph, index = self._view(project, "history"), Stream(project, "history").graph, self.follower.index
        with_id, with_text = ({subject for subject, _, _ in index.triples(graph, None, name)} for name in (ID, TEXT))
        partial_entries = {*view.subjects(TYPE, ENTRY)} - (with_id & with_text)
        rows = [row for entry in partial_entries for row in view.about(entry) if row[1] not in ENTRY_STAYS]
        return self._traces(project, TextsToRemove(frozenset(), frozenset(row[:2] for row in rows)))[0] if rows else []

    def quarantine(self, stream: Stream, which: str, *, agent: str, reason: str) -> str:
        """Quarantine the damage *which* (the id of a commit, or a file) of a stream, and return the new file name.

        Writing to the stream is possible again. Commits beyond the horizon are quarantined together. The commit that
        records it names file, *agent* and *reason*. Raises PolicyDenied unless *agent* is a curator, or the project has
        none.
        """
        self.writer.check_curator(stream.project, agent, "set damage aside")
        self._screen_reason(reason)

        def record(version: Version, name: str) -> Commit:
            properties = [(jido("setsAside"), literal(name))]
            return self._record_commit(stream, version, properties, agent=agent, reason=reason)

        name = self.follower.journal.quarantine(stream, which, record, self.sources.now())
        self.follower.catch_up(stream)
        return name

    def _erase(
        self,
        stream: Stream,
        removed: Mapping[str, frozenset[str]],
        about: Iterable[tuple[Term, Term]],
        places: Iterable[Triple] = (),
        named: Mapping[str, frozenset[str]] | None = None,
        *,
        agent: str,
        reason: str,
    ) -> Commit:
        """Remove leaves from the files of a stream and append the record of it, with the *places* to restate.

        The record has the leaves *named*, by default those removed: also those of streams that follow, so that
        `exposures` reports these after an interruption.
        """
        about, named = list(about), removed if named is None else named
        properties = [(jido("redacts"), iri(COMMIT + identity)) for identity in named]
        properties += [(jido("redactedLeaf"), literal(leaf)) for leaf in sorted(frozenset().union(*named.values()))]
        properties += [(jido("redactedItem"), item) for item in sorted({item for item, _ in about})]
        properties += [(jido("redactedProperty"), name) for name in sorted({name for _, name in about})]
        while True:
            with self.follower.journal.redacting(stream, removed) as version:
                commit = self._record_commit(stream, version, properties, places, agent=agent, reason=reason)
                if not isinstance(self.follower.journal.append(stream, version, commit), VersionMismatch):
                    return commit  # on a mismatch another machine appended meanwhile

    def _record_commit(
        self,
        stream: Stream,
        version: Version,
        properties: Iterable[tuple[Term, Term]],
        beside: Iterable[Triple] = (),
        *,
        agent: str,
        reason: str,
    ) -> Commit:
        """Return the commit on top of *version* with *properties*, the triples *beside*, its agent and its reason."""
        now, author = self.sources.now(), _agent(agent)
        moment = moment_after(now, *version.heads)
        body: list[Triple] = [*beside, *((THIS, predicate, value) for predicate, value in properties)]
        body += [(THIS, jido("orderedBy"), author), (THIS, jido("orderReason"), literal(reason))]
        view, declared = self._view(stream.project), self.policy.agents.get(name_of(author), AgentPolicy())
        for node, policy in {author: declared, WRITER_AGENT: WRITER_POLICY}.items():
            if not view.types(node):  # that of the writer in the first commit of a project
                body += [*agent_stub(node, policy), (node, jido("recordedIn"), THIS)]
                body.append((node, jido("recordedAt"), date_time(moment)))
        return build(
            graph=stream.graph,
            parents=version,
            recorded_at=moment,
            committer=plain_value(WRITER_AGENT),
            ontology_version=self.schema.version,
            body=body,
            nonce=self.sources.nonce(),
        )

    def _unlog_texts(self, project: str, wanted: TextsToRemove) -> None:
        if wanted.texts:
            self.remove_from_logs(project, wanted.shown_in)

    def _rebuild_copies(self, project: str) -> None:
        """Rebuild the index, and delete the other files that are derived from the journal of *project*.

        Raises Failed if one of them stays; the journal is redacted all the same.
        """
        faults = []
        try:
            self.follower.rebuild()
        except Failed as fault:
            faults.append(fault)
        faults += self.delete_caches(project)
        if faults:
            copies = "; ".join(fault.detail for fault in faults)
            hint = "; ".join(fault.hint or "" for fault in faults)
            raise Failed(f"the journal is redacted, but copies of its memories stay: {copies}", hint=hint)

    def _leaves(self, stream: Stream, traces: Iterable[Trace]) -> dict[str, frozenset[str]]:
        wanted = grouped((trace.commit, trace.triple) for trace in traces)
        leaves_of = {}
        for commit in self.follower.journal.matching(stream, lambda data: identity_in(data) in wanted):
            leaf_of = leaves(commit)
            leaves_of[commit.id] = frozenset(leaf_of[triple] for triple in wanted[commit.id])
        return leaves_of

    def _wanted_texts(self, project: str, item: str | None, texts: Sequence[str], parts: bool) -> TextsToRemove:
        for text in texts:
            if len(text.strip()) < SHORTEST:
                raise InvalidRequest(
                    f"a text of {len(text.strip())} characters occurs everywhere",
                    hint="name the memory and property: jidomem journal redact IRI --property rationale --reason TEXT",
                )
        linked = self._linked(project, iri(item)) if item else frozenset()
        return TextsToRemove(frozenset(texts), linked=linked, anywhere=True, parts=parts)

    def _wanted_of_item(self, project: str, item: str | None, properties: Sequence[str]) -> TextsToRemove:
        """Return the texts in *properties* of *item*, by default in all its properties with texts."""
        if item is None:
            raise InvalidRequest(
                "nothing to redact is named", hint="name a memory, or give --text TEXT (- reads standard input)"
            )
        view, node = self._view(project, "memory", "history"), iri(item)
        if not view.about(node):
            raise NotFound(f"{item} is not a memory of {project}", hint="list them with: jidomem ask timeline")
        given = [*map(iri, properties)]
        for name in given:
            if name in STRUCTURAL:
                raise InvalidRequest(
                    f"{plain_value(name)} is needed by the memory and cannot be redacted", hint="name another property"
                )
            if not view.objects(node, name):
                names = sorted(
                    {plain_value(predicate).replace(jido("")[1:-1], "") for _, predicate, _ in view.about(node)}
                )
                raise NotFound(f"{item} has no {plain_value(name)}", hint=f"it has: {', '.join(names)}")
        if not given and (of_history := _wanted_of_history(node, view)).properties:
            return of_history
        nodes = (node, *other_records(self.follower.index, Stream(project).graph, [node]))
        wanted = given or (*_FREE, jido("derivedFrom"), jido("hasAlternative"))
        values = [value for each in nodes for name in wanted for value in view.objects(each, name)]
        texts = frozenset(text for value in values for text in _texts(value, view))
        return TextsToRemove(
            texts, properties=frozenset((node, name) for name in given), linked=self._linked(project, node)
        )

    def _linked(self, project: str, node: Term) -> frozenset[Term]:
        """Return *node* and all nodes linked with it, directly or not: predecessors, successors, evidence and so on."""
        graph, index = Stream(project).graph, self.follower.index

        def linked(one: Term) -> Iterator[Term]:
            yield from (value for _, p, value in index.triples(graph, one) if p in _LINKS and is_iri(value))
            yield from (subject for subject, p, _ in index.triples(graph, None, None, one) if p in _LINKS)

        return frozenset(reachable([node], linked))

    def _view(self, project: str, *streams: str) -> WriteSnapshot:
        """Return a snapshot of some streams of a project, by default of its memories."""
        graphs, index = [Stream(project, name).graph for name in streams or ("memory",)], self.follower.index
        return WriteSnapshot(lambda s, p, o: [triple for graph in graphs for triple in index.triples(graph, s, p, o)])

    def _streams(self, project: str) -> list[Stream]:
        streams = (Stream(project, name) for name in NAMES)
        return [stream for stream in streams if self.follower.journal.exists(stream)]

    def _versions(self, project: str) -> dict[Stream, Version]:
        return {stream: self.follower.journal.head(stream) for stream in self._streams(project)}

    def _catch_up(self, project: str) -> None:
        for stream in self._streams(project):
            self.follower.catch_up(stream)


def _memories(items: Collection[Term]) -> str:
    return "1 memory" if len(items) == 1 else f"{len(items)} memories"


def _agent(name: str) -> Term:
    return iri(name if canonical.is_absolute(name) else f"{BASE}agents/{slug(name)}")


def _wanted_of_history(node: Term, view: WriteSnapshot) -> TextsToRemove:
    """Return all versions of an entry, or all texts of a turn; long texts are removed wherever they occur."""

    def versions(entry: Term) -> Iterator[Term]:
        yield from (other for name in view.objects(entry, ID) for other in view.subjects(ID, name))
        yield from (*view.objects(entry, REPLACES), *view.subjects(REPLACES, entry))

    nodes = reachable([node], versions) if ENTRY in view.types(node) else _with_parts(node, view)
    rows = [
        row for each in nodes for row in view.about(each)
        if row[1] in TURN_TEXTS or (row[1] not in ENTRY_STAYS and ENTRY in view.types(each))
    ]  # fmt: skip
    texts = [plain_value(value) for _, name, value in rows if name in (TEXT, *TURN_TEXTS)]
    long = frozenset(text for text in texts if len(text) >= LONG)
    return TextsToRemove(long, properties=frozenset(row[:2] for row in rows), linked=frozenset(nodes))


def _with_parts(node: Term, view: WriteSnapshot) -> list[Term]:
    """Return *node* and all its direct and indirect parts."""
    return [node, *(each for link in _PARTS for part in view.objects(node, link) for each in _with_parts(part, view))]


def _texts(value: Term, view: WriteSnapshot) -> Iterator[str]:
    if is_iri(value):
        labels = [*view.objects(value, LABEL), *view.objects(value, jido("summary"))]
        minted = "/alternatives/" in value or value.startswith(f"<{BASE}evidence/")
        yield from (parse_literal(label).text for label in labels if minted)
    elif parse_literal(value).datatype in (XSD + "string", XSD + "anyURI"):
        yield parse_literal(value).text


def _content(data: bytes, given: Sequence[TextForms]) -> Content:
    """Return whether a version of a file contains a text, and whether it contains a word of one."""
    text = data.decode("utf-8", "replace")
    has_word = any(each.may_stand_in([*variants(text)]) for each in given)
    return Content(form_of(text, given) is not None, has_word)


def _without_texts(items: Collection[Term], view: WriteSnapshot, removed: Collection[Triple] = ()) -> Incomplete:
    """Return those of *items* that stay and are incomplete if the triples *removed* are."""
    items = {*items}.difference(item for item, predicate, _ in removed if predicate == ITEM_MARK)
    emptied = [item for item in sorted(items) if view.has_lost(item, "summary", removed)]
    others = sorted(items.difference(emptied))
    unexplained = [item for item in others if view.has_lost(item, "rationale", removed)]
    lost = [(name, plain_value(item)) for item in others for name in view.lost_fields(item, removed)]
    return Incomplete(tuple(map(plain_value, emptied)), tuple(map(plain_value, unexplained)), grouped(lost))


def _places(lost: Iterable[Triple]) -> list[Triple]:
    """Return the source anchors in *lost* without the blob id of their file: they are restated so."""
    return sorted((s, p, without_blob(o)) for s, p, o in lost if p == SOURCE_BLOB)


def _keeps_text(node: Term, view: WriteSnapshot, removed: Collection[Triple]) -> bool:
    """Return whether *node* is a memory with a summary that is not *removed*."""
    is_memory = "/alternatives/" not in node and any(view.objects(node, ITEM_MARK))
    return is_memory and not view.lacks(node, "summary", removed)


def _placeholders(pairs: Iterable[tuple[Term, Term]], wanted: TextsToRemove) -> list[Triple]:
    """Return the placeholders of the *pairs* of a memory and a property that lost a value.

    That of a topic has the id of the memory, since decisions on one topic are in conflict.
    """
    rows = []
    for item, name in pairs:
        if (field := REPLACED.get(name)) is not None:
            value = literal(f"{REDACTED} {short_id(plain_value(item))}") if field == "topic" else _PLACEHOLDER
            rows.append((item, jido("about") if field == "about" else name, value))
    return sorted({row for row in rows if row[2] == _PLACEHOLDER or not wanted.occurs_in(row[2], row[1])})


def _subjects(traces: Iterable[Trace], wanted: TextsToRemove) -> list[tuple[Term, Term]]:
    """Return the subject and property of each removed statement, unless the name of one of them reveals a text.

    Statements computed from a text are left out, except digests of sources.
    """
    pairs = {trace.triple[:2] for trace in traces if trace.why in (SAYS, WHOLE) or trace.triple[1] == SOURCE_DIGEST}
    return sorted(pair for pair in pairs if not (reveals_content(pair[0]) or any(wanted.occurs_in(n, n) for n in pair)))


def reveals_content(node: Term) -> bool:
    """Return whether the name of a node is a digest of its content."""
    return node.startswith((f"<{BASE}evidence/", f"<{BASE}.well-known/"))
