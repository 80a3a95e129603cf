"""Hold a memory, or any Turtle, to ontology, shapes and gates: what is wrong, where, and by which rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Any

from jidomem.anchor import anchors_of
from jidomem.errors import InvalidRequest, JournalDamaged
from jidomem.exchange.imported import BLOB, STATE
from jidomem.govern import gates
from jidomem.govern.chains import chains
from jidomem.govern.gates import Ask, Gate
from jidomem.govern.integrity import Finding, edited_lines, findings, gone
from jidomem.govern.judged import aimless, idle, shacl, untargeted
from jidomem.govern.ranges import brought
from jidomem.govern.reasoning import inconsistencies
from jidomem.govern.references import dangling, orphans
from jidomem.govern.report import (
    CIRCLE,
    CLOSED_THERE,
    CONFLICT,
    CONSISTENT,
    DANGLING,
    DECLARED,
    FRESH,
    GATE,
    JOURNAL,
    ORPHAN,
    REDACTION,
    RULES,
    SUCCESSORS,
    SYNTAX,
    Found,
    Problem,
    Report,
    in_order,
)
from jidomem.govern.screening import Screening
from jidomem.govern.sources import FileSource, JournalSource, Source, line_of_error
from jidomem.govern.tasks import tasks_closed
from jidomem.govern.terms_used import literals, terms_used
from jidomem.govern.waivers import Baseline
from jidomem.index.tail import Tail
from jidomem.journal.files import NAMES, FileJournal, Stream
from jidomem.journal.links import lacking
from jidomem.journal.revisions import Revision, head_of
from jidomem.judge import EVERY_ITEM_IS_JUDGED
from jidomem.read.item import short_id
from jidomem.repository.elsewhere import kind_of
from jidomem.schema import Schema
from jidomem.terms import Term, bare, iri
from jidomem.uncollected import uncollected
from jidomem.vocab import BASE, SHAPE, TYPE, jido

#: What is minted here, so that the journal describes it.
_OURS = f"<{BASE}"
#: Rules that hold memories against each other.
_OF_OTHERS = frozenset((DANGLING, ORPHAN, CIRCLE, SUCCESSORS, CONFLICT, CONSISTENT, CLOSED_THERE, FRESH))
UNJUDGED, MISPLACED = bare(EVERY_ITEM_IS_JUDGED), f"{GATE}property-is-said-of-its-domain"


@dataclass(frozen=True, slots=True)
class Options:
    """What a check was asked for.

    As the *reference* pyshacl and owlrl are given everything; *strict* lets foreign terms count. *disagreements* gives
    the rows of the question `conflicts`, *changed_files* the files that are not as they were; *own_gates* are asked by
    *ask_own*, and *refused* says which could not be read. *issues* are the lists that open tasks are held against,
    *overlay* is the root with terms of its own, *baseline* what is waived of what is found in its memory. Likely
    secrets are found as the policy has it (*on_secret*); with *secrets* all are, whatever range, baseline and policy.
    """

    reference: bool = False
    strict: bool = False
    disagreements: Callable[[], Iterable[Mapping[str, Any]]] = tuple
    changed_files: Callable[[], Iterable[Mapping[str, Any]]] = tuple
    own_gates: Sequence[Gate] = ()
    ask_own: Ask | None = None
    refused: Sequence[str] = ()
    revision: Revision | None = None
    issues: Sequence[Mapping[str, str]] | None = None
    overlay: Path | None = None
    baseline: Baseline | None = None
    on_secret: str = "refuse"
    secrets: bool = False


def check_project(tail: Tail, schema: Schema, project: str, options: Options | None = None) -> Report:
    """Return what is wrong with the memory of *project*: journal, ontology, shapes, gates, references, conflicts."""
    asked, stream = options or Options(), Stream(project)
    tail.catch_up(stream)
    # the engine answers while the journal is judged here; a million triples are no garbage
    with uncollected(not asked.reference), ThreadPoolExecutor(1) as beside:
        answers = beside.submit(_of_index, tail, project, asked)
        is_new = asked.revision.is_new(tail.journal.path(stream)) if asked.revision else None
        source = JournalSource(tail.journal, stream, is_new)
        found = _judged(source, schema, asked)
        gated, rows, unchecked = answers.result()
    others = gated + [_unsettled(row, source) for row in rows] + [*_changed_files(asked.changed_files(), source)]
    others += _reasoned(source, schema, gated, asked)
    report = _report(source, schema, unchecked)
    streams = [stream, *(other for name in NAMES if (other := Stream(project, name)) != stream)]
    screenings = {each: _screening(tail.journal, each, asked) for each in streams}
    for head, triples in source.commits():
        screenings[stream].take(head, triples)
    damage = {stream: source.damage}
    damage |= {each: _verified(tail.journal, each, screenings[each]) for each in streams if each != stream}
    lost = _lost(tail.journal, damage, asked, report)
    if asked.issues is not None:
        closed, report.not_compared, missing = tasks_closed(source, schema, asked.issues)
        others += closed
        report.unchecked += missing
    if source.damage or lost[stream]:
        found, others = _by_themselves(found, source), _by_themselves(others, source)
        report.notes.append("references between memories are not judged while the journal is damaged")
    found = brought(found, source, lambda older: _judged(older, schema, asked)) + brought(others, source)
    found = _excused(found, source)
    for each in streams:
        report.problems += _of_journal(tail.journal, each, damage[each], lost[each])
        report.problems += screenings[each].problems("warning" if asked.on_secret == "warn" else "violation")
    report.problems += _of_overlay(source.placed(_once(found)), asked.overlay)
    report.problems = in_order([*report.problems, *_aimless(schema, asked.overlay)])
    return report


def _of_journal(
    journal: FileJournal, stream: Stream, damage: Sequence[JournalDamaged], lost: Sequence[Finding]
) -> list[Problem]:
    """Return what is wrong with the files of a stream, each fault once, at its cause."""
    noted = findings(journal, stream)
    if damage or lost:  # what records that something was taken out may be in there
        noted = [note for note in noted if note.kind != "unrecorded"]
    edits = edited_lines(journal, damage)
    causes = [_damaged(one, edits.get(one.path)) for one in damage if not _follows(one, lost)]
    return [*causes, *map(_noted, [*noted, *lost])]


def _screening(journal: FileJournal, stream: Stream, asked: Options) -> Screening:
    """Return the screening of a stream for likely secrets: of all of it, of the range asked for, or of nothing."""
    if asked.secrets or (asked.on_secret != "off" and asked.revision is None):
        return Screening(journal, stream, lambda head: True)
    if asked.on_secret == "off" or asked.revision is None:
        return Screening(journal, stream, lambda head: False)
    return Screening(journal, stream, asked.revision.is_new(journal.path(stream)))


def _verified(journal: FileJournal, stream: Stream, screening: Screening) -> tuple[JournalDamaged, ...]:
    """Return the damage of a stream, its sound commits screened on the way."""
    return journal.verify(stream, lambda commit: screening.take(commit.head, commit.triples))


def _by_themselves(found: Iterable[Found], source: Source) -> list[Found]:
    """Return those of *found* that are so whatever else the journal holds: all it says of their items is at hand.

    A commit that cannot be read may be what describes a node, ends a memory, or records that something was redacted.
    """

    def is_known(node: Term | None) -> bool:
        return node is None or not node.startswith(_OURS) or node in source.types

    return [
        each
        for each in found
        if each.rule not in _OF_OTHERS
        and (each.property is not None or each.rule in RULES)
        and all(map(is_known, (each.item, each.value)))
        and each.item not in source.redacted
    ]


def _lost(
    journal: FileJournal, damage: Mapping[Stream, Sequence[JournalDamaged]], asked: Options, report: Report
) -> dict[Stream, list[Finding]]:
    """Return, by stream, the commits that git has, at HEAD or the revision asked for, and the journal no longer has."""
    nothing: dict[Stream, list[Finding]] = {stream: [] for stream in damage}
    if not journal.is_tracked:
        return nothing
    try:
        head = head_of(journal.folder)
        revisions = [] if head is None else [head]
        if asked.revision is not None:
            revisions.append(asked.revision.shared(journal.folder))
        return {stream: gone(journal, stream, revisions, damaged) for stream, damaged in damage.items()}
    except InvalidRequest as error:
        report.unchecked.append(f"commits that were taken away: {error.detail}; {error.hint}")
        return nothing


def _follows(damage: JournalDamaged, lost: Iterable[Finding]) -> bool:
    """Return whether *damage* is no more than that a commit which is *lost* is the parent of another."""
    parent = lacking(damage.detail)
    return parent is not None and any(parent.startswith(each) for one in lost for each in one.commits)


def check_files(files: Sequence[tuple[str, bytes]], schema: Schema, options: Options | None = None) -> Report:
    """Return what is wrong with Turtle *files* (path, content), each judged by itself with the ontology in view."""
    asked, report = options or Options(), Report()
    for path, data in files:
        try:
            source = FileSource(path, data, _older(path, asked.revision))
        except InvalidRequest as error:
            report.problems.append(Problem(path, SYNTAX, "violation", error.detail, path, line_of_error(error)))
            continue
        found, unchecked = _of_file(source, schema, asked)
        one = _report(source, schema, unchecked)
        if not one.judged and all(each.severity == "info" for each in found):
            report.unchecked.append(f"{path}: no memory in it, so no rule spoke about it")
        report.judged += one.judged
        report.unchecked += one.unchecked
        found = brought(_once(found), source, lambda older: _once(_of_file(older, schema, asked)[0]))
        report.problems += _of_overlay(source.placed(found), asked.overlay)
        report.idle = one.idle if len(files) == 1 else []
        report.untargeted = {name: report.untargeted.get(name, 0) + one.untargeted.get(name, 0)
                             for name in sorted({*report.untargeted, *one.untargeted})}  # fmt: skip
    if asked.own_gates or asked.refused:
        report.notes.append("the gates of the root are asked of its own memory, not of files")
    report.problems = in_order([*report.problems, *_aimless(schema, asked.overlay)])
    return report


def _of_file(source: Source, schema: Schema, asked: Options) -> tuple[list[Found], list[str]]:
    """Return what is found in a file, and which gates could not be asked."""
    gated, unchecked = gates.run(gates.shipped(), gates.of_source(source, schema.triples))
    return _judged(source, schema, asked) + gated + _reasoned(source, schema, gated, asked), unchecked


def seen_from(problem: Problem, folder: Path) -> Problem:
    """Return *problem* with its path as seen from *folder*, where it lies below."""
    path = None if problem.path is None else Path(problem.path)
    if path is None or not path.is_absolute() or not path.is_relative_to(folder):
        return problem
    return replace(problem, path=str(path.relative_to(folder)))


def _judged(source: Source, schema: Schema, asked: Options) -> list[Found]:
    """Return what all rules but the gates find."""
    found = shacl(source, schema, reference=asked.reference)
    found += terms_used(source, schema, strict=asked.strict) + literals(source)
    return found + dangling(source) + orphans(source) + chains(source)


def _once(found: Iterable[Found]) -> list[Found]:
    """Return *found* without what only follows: nobody judges what is of no declared class, or of another kind."""
    found = list(found)
    said = {each.item for each in found if each.severity == "violation" and each.rule in (DECLARED, MISPLACED)
            and (each.rule == MISPLACED or each.property == TYPE)}  # fmt: skip
    return [each for each in found if each.rule != UNJUDGED or each.item not in said]


def _reasoned(source: Source, schema: Schema, gated: Sequence[Found], asked: Options) -> list[Found]:
    """Return the contradictions that no gate has explained."""
    explained = {term for found in gated for term in (found.item, found.value) if term}
    explained |= {term for found in gated if found.property for term in source.values(found.item, found.property)}
    return inconsistencies(source, schema, explained=explained, reference=asked.reference)


def _of_index(tail: Tail, project: str, asked: Options) -> tuple[list[Found], list[Mapping[str, Any]], list[str]]:
    """Return what gates find, which memories disagree, and which gates could not be asked."""
    found, unchecked = gates.run(gates.shipped(), gates.of_project(tail.index, project))
    if asked.ask_own is not None:
        own, missed = gates.run(asked.own_gates, asked.ask_own)
        found, unchecked = found + own, unchecked + missed
    pairs = {(row["a"], row["b"]): row for row in asked.disagreements()}
    return found, list(pairs.values()), [*asked.refused, *unchecked]


def _report(source: Source, schema: Schema, unchecked: list[str]) -> Report:
    return Report(
        judged=source.items(schema),
        unchecked=unchecked,
        idle=idle(source, schema.rules, schema),
        untargeted=untargeted(source, schema.rules, schema),
    )


def _unsettled(row: Mapping[str, Any], source: Source) -> Found:
    """Return two memories that disagree as a finding about the one recorded later."""

    def recorded(item: str) -> tuple[datetime, str]:
        return source.recorded_at(iri(item)) or datetime.min.replace(tzinfo=UTC), item

    earlier, later = sorted((row["a"], row["b"]), key=recorded)
    text = f"{row['kind']} with {earlier}: settle it with one of the commands of: jidomem conflicts"
    return Found(iri(later), CONFLICT, "violation", text, None, None, (iri(earlier),))


def _changed_files(rows: Iterable[Mapping[str, Any]], source: Source) -> Iterator[Found]:
    """Yield each file that a memory is about, and that is not as it was, as something to look at.

    A memory that was imported from the file is brought level with it; one to confirm is about a file of another kind.
    """
    pending, rejected = dict[Term, Term](), set[Term]()
    for marker, link, value in source.of(jido("supersedes"), jido("invalidates")):
        if jido("Proposed") not in source.values(marker, jido("hasAssertionStatus")):
            continue
        if not any(source.values(marker, jido(end)) for end in ("supersededBy", "invalidatedBy")):
            pending[value] = marker
        elif link == jido("invalidates") and source.values(marker, STATE):
            rejected.add(value)
    for row in rows:
        item = iri(row["item"])
        state = f"{row['state']} to {row['at']}" if row["state"] == "renamed" else row["state"]
        if any(anchor.path == row["path"] for anchor in anchors_of(source.values(item, BLOB))):
            if item in pending:
                proposal = short_id(bare(pending[item]))
                do = f"the change is pending review: jidomem show {proposal}, then: jidomem review accept {proposal}"
            elif row["state"] == "gone" and item in rejected:
                do = f"its withdrawal was rejected: if it holds still, jidomem revise {short_id(row['item'])} --confirm"
            else:
                name = "auto" if row["state"] == "gone" or kind_of(row["path"]) else quote(row["at"] or row["path"])
                do = f"bring the memory of it level: jidomem init --from {name}"
                if row["state"] == "changed":
                    do += f" (where that finds it unchanged: jidomem revise {short_id(row['item'])} --confirm)"
        else:
            do = f"look at it, then: jidomem revise {short_id(row['item'])} --confirm, or --supersede"
        yield Found(item, FRESH, "warning" if row["state"] == "gone" else "info", f"{row['path']} is {state}: {do}")


def _damaged(found: JournalDamaged, line: int | None) -> Problem:
    """Return damage as a problem, in the *line* that was edited where that is known."""
    commit = f"urn:jido:commit:{found.commit}" if found.commit else found.path
    where = f"{found.path}:{found.line}: " if found.line else f"{found.path}: "
    said = found.detail.removeprefix(where)
    return Problem(
        commit, JOURNAL, "violation", f"{said}; {found.hint}" if found.hint else said, found.path, line or found.line
    )


def _noted(found: Finding) -> Problem:
    commit = f"urn:jido:commit:{found.commit}" if found.commit else found.path or ""
    return Problem(commit, JOURNAL, found.severity, f"{found.detail}: {found.hint}", found.path, found.line)


def _excused(found: Iterable[Found], source: Source) -> list[Found]:
    """Return *found*; that a statement is missing which was redacted is no more than to be known.

    Of a memory that ended since it is not even that: there is nothing left to do.
    """
    orders = {order for order, _, _ in source.of(jido("redactedItem"))}
    gone = {(item, name) for order in orders for item in source.values(order, jido("redactedItem"))
            for name in source.values(order, jido("redactedProperty"))}  # fmt: skip
    excused = []
    for each in found:
        if each.property and (each.item, each.property) in gone and not source.values(each.item, each.property):
            if _is_ended(each.item, source):
                continue
            each = replace(each, severity="info", message=f"{REDACTION}{each.message}")
        excused.append(each)
    return excused


def _is_ended(item: Term, source: Source) -> bool:
    """Return whether something asserted superseded or invalidated *item*."""
    ends = (end for name in ("supersededBy", "invalidatedBy") for end in source.values(item, jido(name)))
    return any(jido("Asserted") in source.values(end, jido("hasAssertionStatus")) for end in ends)


def _aimless(schema: Schema, overlay: Path | None) -> list[Problem]:
    """Return the shapes that can never judge anything, shipped ones left out: a test holds those."""
    found = [each for each in aimless(schema.rules, schema) if not each.item.startswith(f"<{SHAPE}")]
    return _of_overlay([Problem(bare(each.item), each.rule, each.severity, each.message) for each in found], overlay)


def _of_overlay(problems: list[Problem], overlay: Path | None) -> list[Problem]:
    """Return *problems*, those about terms and shapes of a root's own with their places in its files."""
    if overlay is None or all(problem.path for problem in problems):
        return problems
    files = [*sorted(overlay.glob("ontology/*.ttl")), *sorted(overlay.glob("shapes/*.ttl"))]
    sources = [FileSource(str(path), path.read_bytes()) for path in files]

    def placed(problem: Problem) -> Problem:
        for source in sources if problem.path is None else ():
            if iri(problem.item) in source.about:
                (found,) = source.placed([Found(iri(problem.item), problem.rule, problem.severity, problem.message)])
                return replace(problem, path=found.path, line=found.line)
        return problem

    return list(map(placed, problems))


def _older(path: str, revision: Revision | None) -> Source | None:
    """Return what a file held before; None where all of it is asked about."""
    if revision is None:
        return None
    data = revision.content(Path(path))
    try:
        return FileSource(path, data)
    except InvalidRequest:
        return Source([])
