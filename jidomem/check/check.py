"""The check of a project: its memory, or any Turtle file, against ontology, shapes and gates.

`check_project` checks a project and its journal, `check_files` checks Turtle files. Beside the rules of
`jidomem.check.rules` and `jidomem.check.terms` this module finds references to missing nodes and orphaned nodes
(`dangling`, `orphans`) and tasks that an issue tracker has closed (`tasks_closed`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import Any

from jidomem.base.clock import now
from jidomem.base.containers import grouped, reachable
from jidomem.base.json_values import decode_json
from jidomem.check import rules
from jidomem.check.journal_integrity import (
    JournalFinding,
    SecretScan,
    damage_problem,
    edited_lines,
    finding_problem,
    journal_findings,
    missing_files,
)
from jidomem.check.overlay import earlier_rules
from jidomem.check.reasoning import configured_changes, inconsistencies, policy_changes, unpermitted
from jidomem.check.report import (
    CLOSED_THERE,
    CONFLICT,
    CURRENT,
    DANGLING,
    DECLARED,
    DUE,
    FRESH,
    GATE,
    ORPHAN,
    REDACTION,
    REPEATED,
    RULES,
    SUCCESSORS,
    SYNTAX,
    Baseline,
    CheckReport,
    Problem,
    UnplacedFinding,
    in_order,
)
from jidomem.check.rules import Ask, GateQuery, chains, idle, judging_inactive, shacl, untargeted, untargeted_shapes
from jidomem.check.sources import (
    FileSource,
    JournalSource,
    TripleSource,
    independent_of_damage,
    introduced,
    line_of_error,
    named_merge,
    newly_broken,
    redacted_pairs,
)
from jidomem.check.terms import literals, terms_used
from jidomem.errors import Failed, InvalidRequest, JournalDamaged
from jidomem.exchange.synchroniser import BLOB, STATE
from jidomem.index.follower import IndexFollower, gc_paused
from jidomem.index.projection import STALE
from jidomem.journal.branches import Revision, head_of
from jidomem.journal.journal import NAMES, FileJournal, Stream
from jidomem.journal.stream_files import missing_parent
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, iri, is_iri, moment_in, plain_value
from jidomem.rdf.vocab import REDACTED, SHAPE, TYPE, jido, local_name, short_id
from jidomem.records.active import FINISHED, OF_THE_IMPORT, is_accepted, is_record_of
from jidomem.records.file_anchor import anchors_of
from jidomem.records.policy import AccessPolicy, PolicyChange
from jidomem.repository.other_tools import kind_of
from jidomem.schema.ontology import OURS, Schema
from jidomem.schema.shacl import EVERY_ITEM_IS_JUDGED, UNNAMED, Severity

#: The namespaces in which only jidomem mints IRIs: an IRI of them without a description is a dangling reference.
_MINTED = tuple(f"<{vocab.BASE}{name}/" for name in ("memory", "agents", "sessions", "projects", "evidence"))
_GRAPHS, _AUTHOR = {jido("inStream"), jido("clears")}, {jido("assertedBy"), jido("assertedIn")}
_ONLY_POINTED_AT = re.compile(rf"<{vocab.BASE}(?:evidence/[^/]+|memory/[^/]+/alternatives/[^/]+)>")


def dangling(source: TripleSource) -> list[UnplacedFinding]:
    """Return each reference to an IRI minted by jidomem that has no class, so that nothing describes it."""
    missing = {value for value in source.objects - source.types.keys() if value.startswith(_MINTED)}
    findings, redacted = [], {name for _, _, name in source.of(jido("redactedProperty"))}
    for subject, predicate, value in source.triples if missing else ():
        if value in missing and predicate not in _GRAPHS:
            text = f"jido:{local_name(predicate)} refers to {plain_value(value)}, which has no description: "
            if predicate in redacted:
                command = f"jidomem journal redact --text {quote(local_name(value))} --reason WHY"
                text += f"if a redaction removed it, remove it here, too: {command}; else "
            text += "name an existing one, or import its description"
            findings.append(UnplacedFinding(subject, DANGLING, "violation", text, predicate, value))
    return findings


def orphans(source: TripleSource) -> list[UnplacedFinding]:
    """Return the evidence and alternatives without a reference to them."""
    alone = {node for node in source.types if node.startswith(_MINTED) and _ONLY_POINTED_AT.fullmatch(node)}
    alone -= source.objects
    text = (
        "nothing refers to this, and alone it has no meaning: add the reference (jido:derivedFrom, jido:hasAlternative)"
    )
    return [UnplacedFinding(node, ORPHAN, "violation", text) for node in alone]


_DONE, _STATES = {*map(jido, FINISHED)}, ("OPEN", "CLOSED")
_COMMAND = "gh issue list --state all --limit 10000 --json number,url,state > issues.json"


def read_issues(path: str, data: bytes) -> dict[str, str]:
    """Return the state of each issue, OPEN or CLOSED, by address; raise Failed if *data* is not a list of issues."""
    try:
        rows = decode_json(data)
    except ValueError as error:
        raise _unreadable(path, str(error)) from error
    if not isinstance(rows, list):
        raise _unreadable(path, "it is not a list of issues")
    states: dict[str, str] = {}
    for number, row in enumerate(rows, 1):
        url, state = (row.get("url"), row.get("state")) if isinstance(row, dict) else (None, None)
        if not isinstance(url, str) or not url.startswith(("https://", "http://")):
            raise _unreadable(path, f"issue {number} has no url")
        if not isinstance(state, str) or state.upper() not in _STATES:
            raise _unreadable(path, f"issue {number} is neither OPEN nor CLOSED but {state!r}")
        if states.setdefault(_same(url), state.upper()) != state.upper():
            raise _unreadable(path, f"issue {number} is both OPEN and CLOSED")
    return states


def tasks_closed(
    source: TripleSource, schema: Schema, issues: Iterable[Mapping[str, str]]
) -> tuple[list[UnplacedFinding], int, list[str]]:
    """Return the open tasks whose issue is closed, the number of tasks without an issue, and those whose issue is not
    listed.

    *issues* are results of `read_issues`.
    """
    states = {url: state for one in issues for url, state in one.items()}
    findings: list[UnplacedFinding] = []
    unchecked: list[str] = []
    untracked = 0
    for task, status in _open_tasks(source, schema):
        urls = source.values(task, jido("trackedBy"))
        untracked += not urls
        for url in urls:
            state = states.get(_same(plain_value(url)))
            if state is None:
                unchecked.append(
                    f"{plain_value(task)}: {plain_value(url)} is not in a list of issues; list all: {_COMMAND}"
                )
            elif state == "CLOSED":
                text = f"{local_name(status)} here, and {plain_value(url)} is closed: complete the task, or reopen that"
                findings.append(UnplacedFinding(task, CLOSED_THERE, "violation", text, jido("trackedBy"), url))
    return findings, untracked, unchecked


def _open_tasks(source: TripleSource, schema: Schema) -> list[tuple[Term, Term]]:
    """Return the active unfinished tasks, each with its status."""
    proposed = {task for task, _, status in source.of(jido("hasAssertionStatus")) if status == jido("Proposed")}
    tasks = []
    for node in sorted(source.types):
        if any(schema.is_a(cls, jido("Task")) for cls in source.types[node]) and node not in proposed:
            ends = [*source.values(node, jido("supersededBy")), *source.values(node, jido("invalidatedBy"))]
            statuses = source.values(node, jido("hasTaskStatus"))
            if not {*ends} - proposed and statuses and not _DONE & {*statuses}:
                tasks.append((node, statuses[0]))
    return tasks


def _same(url: str) -> str:
    """Return an address in canonical form for comparison."""
    return url.split("#", 1)[0].rstrip("/").casefold()


def _unreadable(path: str, what: str) -> Failed:
    return Failed(f"{path}: {what}", hint=f"create it with: {_COMMAND}", code="invalid_config")


UNJUDGED, MISPLACED = plain_value(EVERY_ITEM_IS_JUDGED), f"{GATE}property-is-said-of-its-domain"


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a check.

    With *reference*, pyshacl and owlrl judge all data; with *strict*, foreign terms count. *disagreements* returns the
    rows of the query `conflicts`, *stale* those of `stale` (violations with *fail_on_stale*, else warnings),
    *changed_files* the files that changed, *unsettled_rules* the changes of the policy that two branches made
    differently, *access* the policy, *earlier_access* that with the configuration at *revision*; *own_gates* are run by
    *ask_own*, and *refused* are the gates that could not be read. *issues* are the lists that open tasks are compared
    with, *overlay* is the root with its own terms, *baseline* the waivers for its memory. Likely secrets are searched
    as the policy says (*on_secret*); with *secrets* all are, regardless of range, baseline and policy. With
    *fail_on_missing* HEAD has to descend from *revision*. *now* is the moment at which memories are active.
    """

    reference: bool = False
    strict: bool = False
    disagreements: Callable[[], Iterable[Mapping[str, Any]]] = tuple
    changed_files: Callable[[], Iterable[Mapping[str, Any]]] = tuple
    unsettled_rules: Callable[[], Iterable[tuple[PolicyChange, PolicyChange]]] = tuple
    access: Callable[[], AccessPolicy] = AccessPolicy
    earlier_access: Callable[[], AccessPolicy | None] = lambda: None
    stale: Callable[[], Iterable[Mapping[str, Any]]] = tuple
    fail_on_stale: bool = False
    fail_on_missing: bool = False
    own_gates: Sequence[GateQuery] = ()
    ask_own: Ask | None = None
    refused: Sequence[str] = ()
    revision: Revision | None = None
    issues: Sequence[Mapping[str, str]] | None = None
    overlay: Path | None = None
    baseline: Baseline | None = None
    on_secret: str = "refuse"
    secrets: bool = False
    now: Callable[[], datetime] = now


def check_project(follower: IndexFollower, schema: Schema, project: str, options: Options | None = None) -> CheckReport:
    """Return the problems of the memory of *project*: journal, ontology, shapes, gates, references, conflicts.

    The order matters: the damage is known once all streams are verified; then the findings that it explains are
    dropped, then those older than the revision, then those of ended or waived memories.
    """
    settings, stream = options or Options(), Stream(project)
    follower.catch_up(stream)
    # the engine runs the queries while this thread judges the journal; a million triples are no garbage
    with gc_paused(not settings.reference), ThreadPoolExecutor(1) as beside:
        answers = beside.submit(_index_findings, follower, project, settings)
        is_new = settings.revision.is_new(follower.journal.path(stream)) if settings.revision else None
        single = {name for name, declared in schema.properties.items() if declared.functional}
        source = JournalSource(follower.journal, stream, is_new, single)
        findings = _judged(source, schema, settings)
        gated, rows, unchecked = answers.result()
        gated = [*rules.of_ontology(gated, source, schema)]
    others = gated + [_unsettled(row, source) for row in _apart_from_ends(rows, findings)]
    others += [*_changed_files(settings.changed_files(), source), *_due(settings.stale(), settings)]
    others += [_unsettled_rule(*pair) for pair in settings.unsettled_rules()]
    others += [*_written_differently(source), *_beside_redactions(source)]
    others += [*(reasoned := _reasoned(source, schema, gated, settings)), *_of_authors(source, schema, settings)]
    report = _report(source, schema, unchecked)
    streams = [stream, *(other for name in NAMES if (other := Stream(project, name)) != stream)]
    screenings = {each: _screening(follower.journal, each, settings) for each in streams}
    for head, triples in source.commits():
        screenings[stream].screen(head, triples)
    damage = {stream: source.damage}
    damage |= {each: _verified(follower.journal, each, screenings[each]) for each in streams if each != stream}
    lost = _lost(follower.journal, damage, settings, report)
    if settings.issues is not None:
        closed, report.not_compared, missing = tasks_closed(source, schema, settings.issues)
        others += closed
        report.unchecked += missing
    if source.damage or lost[stream]:
        findings, others = independent_of_damage(findings, source), independent_of_damage(others, source)
        report.notes.append("references between memories are not checked while the journal is damaged")
    broken = _broken_by_rules(findings, gated, reasoned, source, schema, settings)
    findings = introduced(findings, source, lambda older: _judged(older, schema, settings)) + introduced(others, source)
    findings = named_merge(dict.fromkeys([*findings, *broken]), source, settings.revision)
    findings = _excused(_about_active(findings, source, schema, settings), source)
    for each, noted in journal_findings(follower.journal, streams).items():
        report.problems += _journal_problems(follower.journal, noted, damage[each], lost[each])
        report.problems += screenings[each].problems("warning" if settings.on_secret == "warn" else "violation")
    report.problems += _placed_in_overlay(source.placed(findings), settings.overlay)
    if settings.revision is not None and settings.overlay is not None:
        report.problems += configured_changes(settings.overlay, settings.revision)
    report.problems = in_order([*report.problems, *_shapes_without_target(schema, settings.overlay)])
    return report


def _broken_by_rules(
    findings: list[UnplacedFinding],
    gated: list[UnplacedFinding],
    reasoned: list[UnplacedFinding],
    source: JournalSource,
    schema: Schema,
    options: Options,
) -> list[UnplacedFinding]:
    """Return those of the findings that the ontology, shapes and gates at the requested revision did not give."""
    if options.overlay is None or options.revision is None:
        return []
    earlier = earlier_rules(options.overlay, schema, options.revision)
    broken = [] if earlier is None else newly_broken(findings, _judged(source, earlier, options))
    if source.damage or (earlier is None and not options.own_gates):
        return broken
    content = options.revision.shared(options.overlay).content
    then = None if earlier is None else (source, earlier)
    before = rules.at_revision(gated, options.own_gates, options.ask_own, content, then)
    broken += newly_broken(gated, before)
    return broken if earlier is None else broken + newly_broken(reasoned, _reasoned(source, earlier, before, options))


def _journal_problems(
    journal: FileJournal, noted: list[JournalFinding], damage: Sequence[JournalDamaged], lost: Sequence[JournalFinding]
) -> list[Problem]:
    """Return the problems of the files of a stream, each fault once, at its cause."""
    if damage or lost:  # the lost commits may be the records of redactions
        noted = [note for note in noted if note.kind != "unrecorded"]
    edits = edited_lines(journal, damage)
    causes = [damage_problem(one, edits.get(one.path)) for one in damage if not _follows(one, lost)]
    return [*causes, *map(finding_problem, [*noted, *lost])]


def _screening(journal: FileJournal, stream: Stream, options: Options) -> SecretScan:
    """Return the screening of a stream for likely secrets: of all commits, of the requested range, or of none."""
    if options.secrets or (options.on_secret != "off" and options.revision is None):
        return SecretScan(journal, stream, lambda head: True)
    if options.on_secret == "off" or options.revision is None:
        return SecretScan(journal, stream, lambda head: False)
    return SecretScan(journal, stream, options.revision.is_new(journal.path(stream)))


def _verified(journal: FileJournal, stream: Stream, screening: SecretScan) -> tuple[JournalDamaged, ...]:
    """Return the damage of a stream, and screen its sound commits."""
    return journal.verify(stream, lambda commit: screening.screen(commit.head, commit.triples))


def _lost(
    journal: FileJournal, damage: Mapping[Stream, Sequence[JournalDamaged]], options: Options, report: CheckReport
) -> dict[Stream, list[JournalFinding]]:
    """Return, by stream, the commits that git has at HEAD or at the requested revision and that the journal lacks."""
    nothing: dict[Stream, list[JournalFinding]] = {stream: [] for stream in damage}
    if not journal.is_tracked:
        return nothing
    try:
        head = head_of(journal.folder)
        revisions = [] if head is None else [head]
        if (since := options.revision) is not None:
            base = since if options.fail_on_missing else since.shared(journal.folder)
            if count := sum(since.commits_after(base, journal.path(stream)) for stream in damage):
                report.notes.append(
                    f"{since.name} has {count:,} commit{'s' * (count != 1)} of the memory that HEAD lacks:"
                    " the branch is behind, or a force push removed them (--fail-on missing)"
                )
            revisions.append(base)
        return {stream: missing_files(journal, stream, revisions, damaged) for stream, damaged in damage.items()}
    except InvalidRequest as error:
        report.unchecked.append(f"missing commits: {error.detail}; {error.hint}")
        return nothing


def _follows(damage: JournalDamaged, lost: Iterable[JournalFinding]) -> bool:
    """Return whether *damage* is only that the parent of a commit is among the *lost* commits."""
    parent = missing_parent(damage.detail)
    return parent is not None and any(parent.startswith(each) for one in lost for each in one.commits)


def check_files(files: Sequence[tuple[str, bytes]], schema: Schema, options: Options | None = None) -> CheckReport:
    """Return the problems of Turtle *files* (path, content), each judged by itself together with the ontology."""
    settings, report = options or Options(), CheckReport()
    for path, data in files:
        try:
            source = FileSource(path, data, _older(path, settings.revision))
        except InvalidRequest as error:
            report.problems.append(Problem(path, SYNTAX, "violation", error.detail, path, line_of_error(error)))
            continue
        findings, unchecked = _file_findings(source, schema, settings)
        findings = _about_active(findings, source, schema, settings)
        one = _report(source, schema, unchecked)
        if not one.judged and all(each.severity == "info" for each in findings):
            report.unchecked.append(f"{path}: no memory in it, so no rule applied")
        report.judged += one.judged
        report.unchecked += one.unchecked
        findings = introduced(_once(findings), source, lambda older: _once(_file_findings(older, schema, settings)[0]))
        report.problems += _placed_in_overlay(source.placed(findings), settings.overlay)
        report.idle = one.idle if len(files) == 1 else []
        report.untargeted = {name: report.untargeted.get(name, 0) + one.untargeted.get(name, 0)
                             for name in sorted({*report.untargeted, *one.untargeted})}  # fmt: skip
    if settings.own_gates or settings.refused:
        report.notes.append("the gates of the root apply to its own memory, not to files")
    report.problems = in_order([*report.problems, *_shapes_without_target(schema, settings.overlay)])
    return report


def _file_findings(source: TripleSource, schema: Schema, options: Options) -> tuple[list[UnplacedFinding], list[str]]:
    """Return the findings of a file, and the gates that could not be run."""
    gated, unchecked = rules.run(rules.shipped(), rules.of_source(source, schema.triples))
    return _judged(source, schema, options) + gated + _reasoned(source, schema, gated, options), unchecked


def _judged(source: TripleSource, schema: Schema, options: Options) -> list[UnplacedFinding]:
    """Return the findings of all rules except gates."""
    findings = shacl(source, schema, reference=options.reference)
    findings += terms_used(source, schema, strict=options.strict) + literals(source)
    return findings + dangling(source) + orphans(source) + chains(source)


def _once(findings: Iterable[UnplacedFinding]) -> list[UnplacedFinding]:
    """Return *findings* without those that follow from others, of undeclared classes and misplaced nodes."""
    findings = list(findings)
    undeclared = {each.item for each in findings if each.severity == "violation" and each.rule in (DECLARED, MISPLACED)
            and (each.rule == MISPLACED or each.property == TYPE)}  # fmt: skip
    return [each for each in findings if each.rule != UNJUDGED or each.item not in undeclared]


def _reasoned(
    source: TripleSource, schema: Schema, gated: Sequence[UnplacedFinding], options: Options
) -> list[UnplacedFinding]:
    """Return the contradictions that no gate has explained."""
    explained = {term for finding in gated for term in (finding.item, finding.value) if term}
    explained |= {
        term for finding in gated if finding.property for term in source.values(finding.item, finding.property)
    }
    judged = source.without_ended_terms_of(schema)
    return inconsistencies(judged, schema, explained=explained, reference=options.reference)


def _index_findings(
    follower: IndexFollower, project: str, options: Options
) -> tuple[list[UnplacedFinding], list[Mapping[str, Any]], list[str]]:
    """Return the findings of gates, the memories in conflict, and the gates that could not be run."""
    findings, unchecked = rules.run(rules.shipped(), rules.of_project(follower.index, project))
    if options.ask_own is not None:
        own, missed = rules.run(options.own_gates, options.ask_own)
        findings, unchecked = findings + own, unchecked + missed
    pairs: dict[tuple[str, str], dict[str, Any]] = {}
    for row in options.disagreements():
        pairs.setdefault((row["a"], row["b"]), {**row, "kinds": []})["kinds"].append(row["kind"])
    return findings, list(pairs.values()), [*options.refused, *unchecked]


def _report(source: TripleSource, schema: Schema, unchecked: list[str]) -> CheckReport:
    unmatched, missed = idle(source, schema.rules, schema), untargeted(source, schema.rules, schema)
    return CheckReport(judged=source.items(schema), unchecked=unchecked, idle=unmatched, untargeted=missed)


def _unsettled(row: Mapping[str, Any], source: TripleSource) -> UnplacedFinding:
    """Return two memories in conflict as a finding about the one recorded later: a warning if they are identical."""
    items = source.by_recording((iri(row["a"]), iri(row["b"])))
    earlier, later = items
    first, second = (short_id(plain_value(item)) for item in items)
    if source.are_identical(items):
        settle = f'jidomem review accept {first} --against {second} --reason "it says the same"'
        text = f"says exactly the same as {plain_value(earlier)}, {source.described(earlier)}: one is enough: {settle}"
        return UnplacedFinding(later, CONFLICT, "warning", text, None, None, (earlier,))
    topics = [plain_value(topic) for item in items for topic in source.values(item, jido("topic"))][:1]
    text = (
        f"{' and '.join(row['kinds'])} with {plain_value(earlier)}{''.join(f' on {topic!r}' for topic in topics)}:"
        f" {source.described(later)} against {source.described(earlier)};"
        " settle it with one of the commands of: jidomem review --conflicts"
    )
    return UnplacedFinding(later, CONFLICT, "violation", text, None, None, (earlier,))


def _apart_from_ends(
    rows: Iterable[Mapping[str, Any]], findings: Iterable[UnplacedFinding]
) -> Iterator[Mapping[str, Any]]:
    """Yield the pairs of memories in conflict without those that one of *findings* names as two ends of one memory."""
    ends = [{*each.beside} for each in findings if each.rule == SUCCESSORS]
    for row in rows:
        if STALE not in row["kinds"] or not any({iri(row["a"]), iri(row["b"])} <= pair for pair in ends):
            yield row


def _due(rows: Iterable[Mapping[str, Any]], options: Options) -> Iterator[UnplacedFinding]:
    """Yield a finding for each memory that is to be looked at again.

    An assumption without a date breaks a shape already, as a warning.
    """
    for row in rows:
        item, reason, due = short_id(row["item"]), row["reason"], str(row.get("due") or "")[:10]
        if reason == "no_review_date" and not options.fail_on_stale:
            continue
        what, renewal = _OF_DUE[reason]
        do = f"jidomem edit {item} --confirm{renewal}, or jidomem review reject {item} --reason WHY"
        severity: Severity = "violation" if options.fail_on_stale else "warning"
        yield UnplacedFinding(iri(row["item"]), DUE, severity, f"{what.format(due)}: {do}")


#: The reason why a memory is due, in words, and the fields that confirming it needs.
_OF_DUE = {
    "review_due": ("it was to be looked at again by {}", " --set expires_on=DATE"),
    "overdue": ("this task was due by {} (done: --set status=Completed)", " --set expires_on=DATE"),
    "no_longer_valid": ("it was valid until {}", " --set valid_until=DATE"),
    "no_review_date": ("it is assumed, and has no day to look at it again", " --set expires_on=DATE"),
    "basis_withdrawn": ("it rests on a memory that was withdrawn on {}", ""),
}


def _of_authors(source: JournalSource, schema: Schema, options: Options) -> list[UnplacedFinding]:
    """Return what authors wrote that they may not, or dated ahead, and changes of the policy in the requested range."""
    policy, earlier, moment = options.access(), options.earlier_access(), options.now()

    def is_active(item: Term) -> bool:
        return _may_be_active(item, source, schema, moment)

    return [*unpermitted(source, schema, policy, earlier, moment, is_active), *policy_changes(source, policy)]


def _unsettled_rule(counts: PolicyChange, other: PolicyChange) -> UnplacedFinding:
    """Return two changes of one rule of the policy as a finding about the one that counts."""
    text = (
        f"two branches changed one rule of the policy: {counts} counts, {other} does not;"
        f" settle it: {counts.command}, or {other.command}"
    )
    return UnplacedFinding(iri(counts.node), CONFLICT, "violation", text, None, None, (iri(other.node),))


def _written_differently(source: JournalSource) -> list[UnplacedFinding]:
    """Return the active memories that two branches wrote under one IRI with different content."""
    differing = grouped((item, name) for item, name, _ in sorted(source.overruled) if name not in OF_THE_IMPORT)
    links = [(item, record) for record, _, item in source.of(jido("conflictsWith")) if is_record_of(record, item)]
    others = grouped((item, short_id(plain_value(record))) for item, record in links)
    return [
        UnplacedFinding(
            item,
            CONFLICT,
            "violation",
            f"two branches wrote this memory with different {' and '.join(map(local_name, dict.fromkeys(names)))}:"
            f" write anew what holds: jidomem edit {short_id(plain_value(item))} --confirm --reason WHY,"
            " or --supersede TEXT --reason WHY"
            + "".join(f"; for another text: jidomem edit {each} --undo --reason WHY" for each in others.get(item, ()))
            + "".join(f"; or {_import_again(each.path)}" for each in anchors_of(source.values(item, BLOB))[:1]),
            names[0],
        )
        for item, names in differing.items()
        if not (source.is_ended(item) or _is_proposed(item, source))
    ]


def _beside_redactions(source: TripleSource) -> Iterator[UnplacedFinding]:
    """Yield the active and pending memories that replace one redacted on another branch, whose text they may repeat.

    The redaction removed it from the commits before it only. A redacted author is reported by `dangling`.
    """

    def commits_to(commits: Iterable[Term]) -> set[Term]:
        return reachable(commits, lambda commit: source.values(commit, jido("parent")))

    redacted = {item for _, _, item in source.of(jido("redactedItem"))}
    newer = grouped((old, new) for new, _, old in source.of(jido("supersedes")))
    for order, _, item in source.of(jido("redactedItem")):
        if not source.values(order, jido("redacts")):  # the redaction was made in another root
            continue
        lost = {name for name in source.values(order, jido("redactedProperty"))
                if all(plain_value(value).startswith(REDACTED) for value in source.values(item, name))}  # fmt: skip
        for later in sorted(reachable([item], lambda node: newer.get(node, ())) - redacted if lost - _AUTHOR else ()):
            commits = source.values(later, jido("recordedIn"))
            if (
                order not in commits_to(commits)
                and commits_to([order]).isdisjoint(commits)
                and not source.is_ended(later)
            ):
                short, is_pending = short_id(plain_value(later)), _is_proposed(later, source)
                text = f"it replaces {plain_value(item)}, which another branch redacted: if it repeats that text, "
                text += f"jidomem journal redact {short} --reason WHY; if not, jidomem "
                text += f"review accept {short}" if is_pending else f"edit {short} --confirm"
                redacted.add(later)  # one warning for all that it replaces
                yield UnplacedFinding(later, REPEATED, "warning", text)


def _import_again(path: str, at: str | None = None) -> str:
    """Return the command that imports a file again; *at* is its present path."""
    return f"import it again: jidomem init --from {'auto' if not path or kind_of(path) else quote(at or path)}"


def _changed_files(rows: Iterable[Mapping[str, Any]], source: TripleSource) -> Iterator[UnplacedFinding]:
    """Yield a finding for each changed file of a memory.

    A memory imported from the file is to be synchronised with it; a memory about another file is to be confirmed.
    """
    pending, rejected = dict[Term, Term](), set[Term]()
    for marker, link, value in source.of(jido("supersedes"), jido("invalidates")):
        if not _is_proposed(marker, source):
            continue
        if not any(source.values(marker, jido(end)) for end in ("supersededBy", "invalidatedBy")):
            pending[value] = marker
        elif link == jido("invalidates") and source.values(marker, STATE):
            rejected.add(value)
    for row in rows:
        item = iri(row["item"])
        is_file = not (set("*?[{") & set(row["path"]) or row["path"].endswith("/"))
        state = (
            "gone" if row["state"] == "gone" and is_file else "without a file" if row["state"] == "gone" else "changed"
        )
        if row["at"] not in (None, row["path"]):
            state = f"renamed to {row['at']}" + (" and changed" if row["state"] == "changed" else "")
        if any(anchor.path == row["path"] for anchor in anchors_of(source.values(item, BLOB))):
            if item in pending:
                proposal = short_id(plain_value(pending[item]))
                do = f"the change is pending review: jidomem show {proposal}, then: jidomem review accept {proposal}"
            elif row["state"] == "gone" and item in rejected:
                do = f"its withdrawal was rejected: if it still holds, jidomem edit {short_id(row['item'])} --confirm"
            else:
                do = _import_again("" if row["state"] == "gone" else row["path"], row["at"])
                if row["state"] == "changed":
                    do += f" (if that reports no change: jidomem edit {short_id(row['item'])} --confirm)"
        else:
            way = "--confirm, or --supersede TEXT" if is_file else f"--set about={quote(row['at'] or 'PLACE')}"
            do = f"look at it, then: jidomem edit {short_id(row['item'])} {way}"
        severity: Severity = "warning" if row["state"] == "gone" else "info"
        yield UnplacedFinding(
            item, FRESH, severity, f"{row['path']} is {state}: {do}", *source.naming(item, row["path"], BLOB)
        )


def _excused(findings: Iterable[UnplacedFinding], source: TripleSource) -> list[UnplacedFinding]:
    """Return *findings*; a missing statement that was redacted counts as info.

    If its memory has ended, that finding is left out, since there is nothing to do. So is the advice of a shape about a
    memory that has ended, and about the assignee of a task that is done.
    """
    redacted, excused = redacted_pairs(source), []
    for each in findings:
        is_advice = each.severity != "violation" and each.rule not in RULES and not each.rule.startswith(GATE)
        is_of_assignee = each.property == jido("assignedTo")
        is_done = is_of_assignee and not _DONE.isdisjoint(source.values(each.item, jido("hasTaskStatus")))
        if is_advice and (is_done or source.is_ended(each.item)):
            continue
        if each.property and (each.item, each.property) in redacted and not source.values(each.item, each.property):
            if source.is_ended(each.item):
                continue
            each = replace(each, severity="info", message=f"{REDACTION}{each.message}")
        excused.append(each)
    return excused


def _about_active(
    findings: Iterable[UnplacedFinding], source: TripleSource, schema: Schema, options: Options
) -> list[UnplacedFinding]:
    """Return *findings* without those that nobody can mend, as a repair replaces the memory.

    The root's own shapes and gates judge active memories, its own terms those that have not ended.
    """
    of_all = judging_inactive(schema.rules, options.own_gates)
    own = {plain_value(shape) for shape, _, _ in schema.rules if is_iri(shape)} - of_all
    own |= {gate.rule for gate in options.own_gates} - of_all | {plain_value(UNNAMED)}
    spaces = tuple(f"<{space}" for space in schema.namespaces.difference(OURS))

    def is_of_past(each: UnplacedFinding) -> bool:
        if each.rule in own:
            return not _may_be_active(each.item, source, schema, options.now())
        is_of_terms = each.rule in (DECLARED, CURRENT) or each.rule.startswith(GATE)
        terms = (each.property, each.value) if each.property else source.types.get(each.item, ())
        is_own = any(term.startswith(spaces) for term in terms if term is not None)
        return is_of_terms and is_own and each.rule not in of_all and source.is_ended(each.item)

    return [each for each in _once(findings) if not is_of_past(each)]


def _may_be_active(item: Term, source: TripleSource, schema: Schema, moment: datetime) -> bool:
    """Return whether *item* is a memory that is active at *moment*, or no memory at all."""
    if not any(schema.is_a(cls, jido("MemoryItem")) for cls in source.types.get(item, ())):
        return True
    standing = [plain_value(value) for value in source.values(item, jido("decisionStatus"))]
    if _is_proposed(item, source) or source.is_ended(item) or not all(map(is_accepted, standing)):
        return False
    ends = map(moment_in, source.values(item, jido("validUntil")))
    return not any(end is not None and end <= moment for end in ends)


def _is_proposed(item: Term, source: TripleSource) -> bool:
    return jido("Proposed") in source.values(item, jido("hasAssertionStatus"))


def _shapes_without_target(schema: Schema, overlay: Path | None) -> list[Problem]:
    """Return the shapes of the overlay that can never judge a node; a test covers the shipped ones."""
    own = [each for each in untargeted_shapes(schema.rules, schema) if not each.item.startswith(f"<{SHAPE}")]
    problems = [Problem(plain_value(each.item), each.rule, each.severity, each.message) for each in own]
    return _placed_in_overlay(problems, overlay)


def _placed_in_overlay(problems: list[Problem], overlay: Path | None) -> list[Problem]:
    """Return *problems*, those about terms and shapes of the overlay with their places in its files."""
    if overlay is None or all(problem.path for problem in problems):
        return problems
    files = [*sorted(overlay.glob("ontology/*.ttl")), *sorted(overlay.glob("shapes/*.ttl"))]
    sources = [FileSource(str(path), path.read_bytes()) for path in files]

    def placed(problem: Problem) -> Problem:
        for source in sources if problem.path is None else ():
            if iri(problem.item) in source.about:
                (place,) = source.placed(
                    [UnplacedFinding(iri(problem.item), problem.rule, problem.severity, problem.message)]
                )
                return replace(problem, path=place.path, line=place.line)
        return problem

    return list(map(placed, problems))


def _older(path: str, revision: Revision | None) -> TripleSource | None:
    """Return the earlier content of a file; None without a range."""
    if revision is None:
        return None
    data = revision.content(Path(path))
    try:
        return FileSource(path, data)
    except InvalidRequest:
        return TripleSource([])
