"""`jidomem journal`: pack, redact, replay, restore, roll back and verify the commits of the journal."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import Any

import click

from jidomem import Jidomem
from jidomem.base.containers import grouped
from jidomem.check.journal_integrity import (
    AnchoredHeads,
    JournalFinding,
    Records,
    anchored,
    compare_with_git,
    journal_findings,
    lost_redactions,
    read_anchor,
    record_values,
    records_of,
)
from jidomem.check.journal_integrity import replay as replayed
from jidomem.curation.find_text import (
    AS_IT_IS,
    DERIVED,
    NOT_SEARCHED,
    FileMatch,
    config_leftovers,
    leftovers,
    source_leftovers,
)
from jidomem.curation.redact import SHOWN, Incomplete, RedactionPlan, reveals_content
from jidomem.curation.review_text import RESTATED
from jidomem.errors import BranchChanged, InvalidRequest, JournalDamaged
from jidomem.journal.commit import Commit
from jidomem.journal.journal import FileJournal, Stream
from jidomem.journal.packs import unverified_entry
from jidomem.journal.rewrite import future_commits
from jidomem.rdf.terms import Term, plain_value
from jidomem.rdf.vocab import JIDO, TYPE, local_name, short_id
from jidomem.read import memory_detail
from jidomem.records.intent import SHORT, properties_of
from jidomem.runtime.root import INDEX
from jidomem.runtime.settings import own_config
from jidomem.write import canonical
from jidomem.write.rollback import Rollback
from jidomem_cli.errors import acting
from jidomem_cli.fields import memory_iri
from jidomem_cli.options import ROWS, App, Command, clean, dry_run_option, pass_app, reason_option
from jidomem_cli.output import Row, show_json, show_result, show_rows
from jidomem_cli.paths import Paths

DAMAGED = 7


@click.command(cls=Command, writes=["wait"])
@pass_app
def pack(app: App) -> int:
    """Pack the commit files of every project, or of --project, into a few files; the newest commit stays a file.

    A pack holds the same commits: each file is read again, and each pack read back, before files are removed. A damaged
    file is left in place and reported; the exit code is then 7. A root that git does not track is packed by itself
    beyond 2,000 files; for one that it tracks, commit the new packs with the removed files by the printed command.

    Examples:
      jidomem journal pack
      jidomem journal pack --json
    """
    memory = app.read()
    sealed = [(stream, memory.journal.seal(stream)) for stream in app.streams(memory)]
    damage = [error for stream, _ in sealed for error in memory.journal.damage(stream)]
    if app.json:
        rows = [{"project": stream.project, "stream": stream.name, "sealed": count} for stream, count in sealed]
        show_json({"streams": rows, "damage": [error.to_dict() for error in damage]})
        return DAMAGED if damage else 0
    for stream, count in sealed:
        click.echo(f"{stream.project}/{stream.name}  {count} sealed")
    packed = [stream for stream, count in sealed if count and memory.journal.is_tracked]
    if packed:
        where = quote(str(memory.journal.folder))
        folders = " ".join(f"projects/{stream.project}/{stream.name}" for stream in packed)
        removed = sum(count for _, count in sealed)
        app.info(
            f"commit to git together: the new packs (pack-*.ttl) and {removed:,} removed commit files:\n"
            f"  (cd {where} && git add -A -- {folders} && git commit -qm 'Memory: pack commits' -- {folders})"
        )
    if packed and app.verbose:
        app.info("where two branches were both packed, merge them with: git merge -X find-renames=100% BRANCH")
    for error in damage:
        click.echo(clean(error.detail))
    return DAMAGED if damage else 0


_REDACTION_COLUMNS = ("stream", "commit", "item", "property", "why", "form")
_SUMMARY_COLUMNS = ("stream", "kind", "property", "statements", "examples")
#: The most statements that a preview lists without -v, and the examples of each group of more statements.
LISTED_STATEMENTS, _EXAMPLES = 50, 3
_PROPERTIES = properties_of("text", "url", "evidence", "alternative")
_ANCHORED = "Heads, and in a FILE of verify --json also redactions, that the journal must have."
_anchor_option = click.option("--anchor", metavar="VERSION|FILE", help=_ANCHORED)


@click.command(cls=Command, writes=("agent", "wait"))
@click.argument("item", metavar="[IRI]", required=False)
@click.option(
    "--property",
    "properties",
    multiple=True,
    metavar="NAME",
    help="Property to redact (default: all texts of the memory).",
)
@click.option(
    "--text",
    "texts",
    multiple=True,
    metavar="TEXT",
    help="Secret, as a whole word; each value that contains it is removed; - reads standard input.",
)
@click.option("--parts", is_flag=True, help="Also remove longer words that contain the text (default: listed).")
@reason_option()
@dry_run_option
@click.option("--again", is_flag=True, help="Repeat a redaction that was interrupted, or whose secret came back.")
@_anchor_option
@pass_app
def redact(
    app: App,
    item: str | None,
    properties: tuple[str, ...],
    texts: tuple[str, ...],
    parts: bool,
    reason: str | None,
    dry_run: bool,
    again: bool,
    anchor: str | None,
) -> int:
    """Remove the texts of the memory IRI, or a secret, from the journal for good; the chain of commits still verifies.

    A value that contains a --text goes whole, as a summary of several sentences; --dry-run names those fields. Of an
    entry, or an item of an adapter, nothing stays: IRI removes all its versions, --text each version that contains it.
    With the name of an agent go its answers, the turns that it asked, and those of sessions named after it.
    A --text is looked for as a whole word, so K-100 is not K-1001: longer words are listed, and stay without --parts;
    in other case, white space and Unicode forms, over line ends, escaped, percent-encoded, as
    names are made of it, and a number with other separators; the forms that were found are listed. With it goes what
    was copied from it, and the digests by which a guess at it could be confirmed. The commit that
    records it says who, why, and which memories. Where a project has curators, they alone redact. A secret given with
    --text stays in the history of your shell; --text - reads it from standard input instead. Look first with
    --dry-run.

    Examples:
      jidomem journal redact 9c0d1e2f --dry-run --agent curator
      jidomem journal redact 9c0d1e2f --property summary --reason "it named a customer" --agent curator
      cat secret.txt | jidomem journal redact --text - --reason "a key was pasted" --agent curator
    """
    memory = app.read()
    if again:
        if item or properties or texts or parts or dry_run:
            raise InvalidRequest("--again repeats a redaction", hint="leave out all options but --reason and --anchor")
        anchored = read_anchor(anchor, Stream(memory.project)).redactions if anchor is not None else {}
        if anchor is not None and not any(anchored.values()):
            hint = "leave --anchor out, or give a FILE that jidomem journal verify --json wrote after the redaction"
            raise InvalidRequest(f"{anchor} has no redactions to repeat", hint=hint)
        made = memory.maintenance.redact_again(
            memory.project, agent=memory.writer.agent, reason=_required(reason, "redaction"), anchored=anchored
        )
        _print_redaction_result(app, memory, [commit.id for commit in made], None)
        return 0
    if anchor is not None:
        raise InvalidRequest("--anchor is for --again", hint="add --again")
    if properties and texts:
        raise InvalidRequest("--property and --text exclude each other", hint="leave one of them out")
    plan = memory.maintenance.plan(
        memory.project,
        memory_iri(memory, item) if item else None,
        properties=[_property(name) for name in properties],
        texts=[sys.stdin.read().rstrip("\r\n") if text == "-" else text for text in texts],
        parts=parts,
    )
    if dry_run:
        memory.maintenance.check_may_redact(plan, agent=memory.writer.agent, reason=reason)
        _print_redaction(app, memory, plan)
        return 0
    sources = _source_paths(memory)  # read before the redaction removes their names
    made = memory.maintenance.redact(plan, agent=memory.writer.agent, reason=_required(reason, "redaction"))
    _print_redaction_result(app, memory, [commit.id for commit in made], plan, sources)
    return 0


def _required(reason: str | None, action: str, words: str = "why, without the secret") -> str:
    if not reason or not reason.strip():
        raise InvalidRequest(f"a {action} needs a reason", hint=f'add --reason "{words}"')
    return reason


def _property(name: str) -> str:
    """Return the IRI of a property from the name of a field, the name of a term, or an IRI."""
    if ":" in name:
        return canonical.expand(name) or name
    return JIDO + _PROPERTIES.get(name.replace("-", "_"), name)


def _print_redaction(app: App, memory: Jidomem, plan: RedactionPlan) -> None:
    entries = plan.entries
    rows: list[Row] = [
        {
            "stream": f"{stream.project}/{stream.name}",
            "commit": trace.commit[:SHORT],
            "item": None if reveals_content(trace.triple[0]) else plain_value(trace.triple[0]),
            "property": plain_value(trace.triple[1]),
            "why": trace.why,
            "form": trace.form or None,
            "entry": entries.get(trace.triple[0]),
            **({"value": plain_value(trace.triple[2])} if app.verbose else {}),
        }
        for stream, trace in plan.traces
    ]
    of_state: list[Row] = [
        {"stream": "working state", "property": kind, "item": place, "value": content}
        for kind, of_kind in plan.working_entries.items()
        for place, content in of_kind
    ]
    is_summary = app.form == "table" and not app.verbose and len(rows) > LISTED_STATEMENTS
    shown = _summary(memory, plan) if is_summary else [*rows, *(of_state if app.json and app.verbose else ())]
    show_rows(app, shown, _SUMMARY_COLUMNS if is_summary else _REDACTION_COLUMNS)
    commits, listed = len({row["commit"] for row in rows}), "; -v or --json lists each" * is_summary
    app.info(f"{len(rows):,} statements of {commits:,} commits would be removed; nothing was written{listed}")
    if fields := _count_redactions(plan.fields):
        app.info(f"values that would be removed completely, not only the text in them: {fields}")
    _print_entries(app, plan, "would be ")
    _print_occurrences(app, plan)
    costs, more = app.first([*plan.costs()], 2 * SHOWN)
    for cost in costs:
        app.info(f"cost: {cost}")
    if more:
        app.info(f"{more:,} more costs of this kind: -v names all")
    _print_incomplete(app, Incomplete(plan.emptied, plan.unexplained, plan.lacking), "would be ")
    folders = [*DERIVED, *(["state"] if plan.working_state else [])]
    rewritten = [memory.settings.root / name for name in folders]
    every = _remaining_files(memory, plan, _source_paths(memory))
    left = [each for each in every if not any(map(each.path.is_relative_to, rewritten))]
    _warn_left(app, memory, left)
    _warn_history(app, memory, left)


def _summary(memory: Jidomem, plan: RedactionPlan) -> list[Row]:
    """Return a row for the statements of each stream, kind of node and property, with some of the nodes."""
    index = memory.follower.index

    @cache
    def kind(stream: Stream, node: Term) -> str:
        return min((local_name(value) for _, _, value in index.triples(stream.graph, node, TYPE)), default="")

    rows = ((stream, *trace.triple[:2]) for stream, trace in plan.traces)
    nodes = grouped(
        ((f"{stream.project}/{stream.name}", kind(stream, node), plain_value(name)), node)
        for stream, node, name in rows
    )
    examples = {
        key: [short_id(plain_value(node)) for node in dict.fromkeys(of_key) if not reveals_content(node)][:_EXAMPLES]
        for key, of_key in nodes.items()
    }
    counted = ((*key, len(of_key), examples[key]) for key, of_key in sorted(nodes.items()))
    return [dict(zip(_SUMMARY_COLUMNS, row, strict=True)) for row in counted]


def _print_incomplete(app: App, without: Incomplete, state: str = "") -> None:
    """Print the active memories without a summary, and those without a value of a field, with commands for them."""
    edit, review = f"jidomem edit{acting(app)}", f"each is listed by: jidomem review{acting(app)}"
    if ids := [*map(short_id, without.emptied)]:
        app.info(f"active, but {state}without a summary: {_listed(app, ids)}")
        end = f'{edit} {{}} --invalidate --reason "its text was redacted"'
        many = f"end each: for id in {' '.join(ids)}; do {end.format('$id')}; done"
        app.info(f"end each: {end.format(ids[0])}" if len(ids) == 1 else many if len(ids) <= 2 * SHOWN else review)
    for name, items in {"rationale": without.unexplained, **without.lacking}.items():
        if ids := [*map(short_id, items)]:
            one = RESTATED[name]
            app.info(f"{one.memories}, but {state}without {one.lost}: {_listed(app, ids)}")
            app.info(f"{one.action}: {edit} {ids[0] if len(ids) == 1 else 'ID'} --set {name}={one.value}; {review}")


def _print_entries(app: App, plan: RedactionPlan, state: str) -> None:
    """Print what is removed without the text, with an entry or its speaker, and what stays: memories, longer words."""
    each = "(remove each: jidomem journal redact ID)"
    for text, names in (
        (f"entries {state}removed whole, with all their fields", tuple(dict.fromkeys(plan.entries.values()))),
        (f"memories {state}removed whole, as their IRI contains the text", plan.removed),
        (f"turns {state}emptied, as their session or speaker is removed", plan.turns),
        (f"without author or pseudonym, but with their text {each}", plan.unattributed),
        ("without evidence that has the text, but with their own text", tuple(map(short_id, plan.unsupported))),
        (f"linked with it as evidence or version, with their text {each}", tuple(map(short_id, plan.linked))),
        (
            "requests whose idempotency key goes with the text (a retry is not recognised, and would store it again:"
            " stop whatever may send it)",
            tuple(map(short_id, plan.unrecognised)),
        ),
        ("not removed, the text is only a part of these words (--parts removes them, too)", plan.left_out),
        ("not removed, other spellings (remove each: jidomem journal redact --text SPELLING)", plan.near),
    ):
        if names:
            app.info(clean(f"{text}: {_listed(app, names)}"))


def _listed(app: App, names: Sequence[str]) -> str:
    shown, left = app.first(names, SHOWN)
    return f"{', '.join(shown)}{f' and {left} more (-v names all)' if left else ''}"


def _print_occurrences(app: App, plan: RedactionPlan) -> None:
    """Print the forms in which the texts occur, and the occurrences in the working state."""
    if forms := {form: count for form, count in plan.forms.items() if form != AS_IT_IS}:
        app.info(f"other forms of the text: {_count_redactions(forms)}")
    if plan.working_state:
        app.info(f"entries of the working state: {_count_redactions(plan.working_state)}")


def _count_redactions(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def _source_paths(memory: Jidomem) -> set[str]:
    """Return the paths of the files that memories were imported from."""
    return {source.path for source in memory_detail.sources(memory.follower.index, memory.project)}


def _remaining_files(memory: Jidomem, plan: RedactionPlan, sources: Collection[str]) -> list[FileMatch]:
    """Return the files that contain the texts: those of the root, and the sources of memories in the repository."""
    root, texts, parts = memory.settings.root, sorted(plan.wanted.texts), plan.wanted.parts
    tokens = {each.agent: f"jidomem access token remove {each.id}" for each in memory.place.keyring().tokens}
    return [
        *config_leftovers(own_config(), memory.settings.place, tokens, texts, parts=parts),
        *leftovers(root, texts, memory.project, plan.other_projects, parts=parts),
        *source_leftovers(Paths(root, memory.tree).folder, sources, texts, parts=parts),
    ]


def _warn_left(app: App, memory: Jidomem, left: Sequence[FileMatch]) -> None:
    """Warn of the files that contain the text, without -v once for the journal of each other project."""
    journal = memory.settings.root / "projects"

    def is_elsewhere(each: FileMatch) -> bool:
        return each.path.is_relative_to(journal) and each.path.suffix == ".ttl" and not (each.in_name or app.verbose)

    for leftover, *others in grouped((each.hint if is_elsewhere(each) else each, each) for each in left).values():
        if others:
            app.warn(f"{len(others) + 1:,} files of {leftover.path.parents[1]} contain it, too: {leftover.hint}")
            continue
        where = "the name of " if leftover.in_name else ""
        form = "" if leftover.form == AS_IT_IS else f" ({leftover.form})"
        contains = "may contain" if leftover.form == NOT_SEARCHED else "contains"
        line = f":{leftover.line}" if leftover.line is not None else ""
        app.warn(f"{where}{leftover.path}{line}{form} {contains} it, and redactions do not rewrite it: {leftover.hint}")


def _warn_history(app: App, memory: Jidomem, left: Sequence[FileMatch]) -> None:
    """Warn that the history of git has the text: in files of the journal, and in the sources."""
    root = memory.settings.root
    sources = dict.fromkeys(str(each.path) for each in left if not each.path.is_relative_to(root))
    where = f" of the journal, and {', '.join(sources)} where it was committed," if sources else ""
    if memory.journal.is_tracked or (sources and memory.tree is not None):
        app.warn(
            f"git keeps the old files{where} in its history, and so does every clone: rewrite it with git filter-repo,"
            " and clone again"
        )


def _print_redaction_result(
    app: App, memory: Jidomem, made: Sequence[str], plan: RedactionPlan | None, sources: Collection[str] = ()
) -> None:
    """Print the outcome, and the places that this command cannot reach."""
    left = _remaining_files(memory, plan, sources) if plan is not None else []
    tracked, others = memory.journal.is_tracked, memory.follower.other_processes
    if app.json:
        leftover_rows = [{**asdict(each), "path": str(each.path)} for each in left]
        occurrences = {
            "forms": dict(plan.forms),
            "working_state": dict(plan.working_state),
            "entries": {plain_value(entry): name for entry, name in plan.entries.items()},
            "turns": plan.turns, "unattributed": plan.unattributed, "unsupported": plan.unsupported,
            "emptied": plan.emptied, "unexplained": plan.unexplained, "lacking": plan.lacking, "near": plan.near,
            "unrecognised": plan.unrecognised, "left_out": plan.left_out, "removed": plan.removed,
            "linked": plan.linked,
        } if plan is not None else {}  # fmt: skip
        show_json({"commits": list(made), "left": [str(each.path) for each in left], "leftovers": leftover_rows,
                   **occurrences, "in_git": tracked, "other_processes": others})  # fmt: skip
    for commit in made if not app.json else ():
        click.echo(commit)
    if not made and (plan is None or not plan.working_state):
        app.info("nothing to redact")
        return
    if plan is not None:
        _print_entries(app, plan, "")
        _print_occurrences(app, plan)
    _print_incomplete(app, memory.maintenance.without_texts(memory.project, plan))
    _warn_left(app, memory, left)
    if others:
        app.warn(f"{others} other processes have an index of this root open; each discards it at its next query")
    _warn_history(app, memory, left)
    app.info(
        "not covered: other copies of this root, backups, exports, server logs, and earlier answers; revoke a redacted"
        " password or key. A copy that a merge restores is not served, and is reported by: jidomem journal verify"
    )
    if plan is not None and plan.wanted.texts:
        app.info("other spellings stay; search for each: jidomem journal redact --dry-run --text OTHER")


REPLAY_DAMAGED, DIFFERS = 7, 1


@click.command(cls=Command)
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 if something differs.")
@pass_app
def replay(app: App, check: bool) -> int:
    """Replay the journal into a new index, and compare it with the index, the export and the snapshots.

    Compares every triple of every stream, the bytes of the export, and each snapshot on disk after catching up. Exits
    with 1 at a difference, and prints it; with 7 if the journal is damaged.

    Examples:
      jidomem journal replay --check
      jidomem journal replay --check --json
    """
    if not check:
        raise InvalidRequest("a replay only compares", hint="add --check")
    memory = app.read(warn_of_damage=False)
    damage = [error for stream in memory.journal.streams() for error in memory.journal.verify(stream)]
    compared = (memory.follower, memory.settings.root / INDEX, memory.schema.triples, memory.schema.version)
    with app.progress("replay") as bar:

        def show(done: int, total: int) -> None:
            bar.length = total
            bar.update(done)

        result = replayed(*compared, show)
    if app.json:
        streams = [
            {"project": stream.project, "stream": stream.name, "triples": state.triples, "digest": state.digest}
            for stream, state in result.streams.items()
        ]
        values = {"streams": streams, "exports": result.exports, "snapshots": result.snapshots}
        show_json({**values, "differences": list(result.differences), "damage": [error.to_dict() for error in damage]})
    else:
        for stream, state in result.streams.items():
            click.echo(f"{stream.project}/{stream.name}  {state.triples:,} triples  {state.digest[:12]}")
        for project, digest in result.exports.items():
            click.echo(f"{project}_memory.ttl  {digest[:12]}")
        for difference in result.differences:
            click.echo(clean(f"differs: {difference}"))
        for error in damage:
            click.echo(clean(error.detail))
    if result.differences:
        app.info("hint: rebuild the index from the journal: jidomem root reindex")
    else:
        app.info(f"index, export and {result.snapshots} snapshots agree with the journal")
    return REPLAY_DAMAGED if damage else DIFFERS if result.differences else 0


_ROLLBACK_COLUMNS = ("change", "type", "item", "summary", "by")


@click.command(cls=Command, formats=ROWS, writes=("agent", "wait"))
@click.option("--to", "moment", metavar="MOMENT", required=True, help="Moment, or version of jidomem journal log.")
@reason_option()
@dry_run_option
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@pass_app
def rollback(app: App, moment: str, reason: str | None, dry_run: bool, yes: bool) -> None:
    """Restore the memories that were active at a moment, by corrections in one commit.

    Memories recorded since are withdrawn; those superseded or withdrawn since are revived. Nothing is removed from the
    journal. Needs a curator, if the project has one. On a terminal it shows the corrections and asks.

    Examples:
      jidomem journal rollback --to 2026-11-20T12:00:00Z --reason "the import was wrong" --agent curator --dry-run
      jidomem journal rollback --to 0 --reason "a fresh start" --agent curator --dry-run --json
    """
    reason = _required(reason, "rollback", "why")
    memory = app.read()
    if dry_run or not yes:
        planned = memory.roll_back(moment, reason=reason, dry_run=True)
        if dry_run or not planned.corrections:
            _print_rollback(app, planned)
            return
        if not sys.stdin.isatty():
            hint = "show it with --dry-run, then add --yes"
            raise InvalidRequest(
                f"confirm the rollback: standard input is not a terminal; corrections: {_count_changes(planned)}",
                hint=hint,
            )
        _print_rollback(app, planned)
        click.confirm("Do this?", abort=True, err=True)
    _print_rollback(app, memory.roll_back(moment, reason=reason))


def _print_rollback(app: App, done: Rollback) -> None:
    if app.form == "json":
        show_json(done.to_dict())
    else:
        show_rows(app, [correction.to_dict() for correction in done.corrections], _ROLLBACK_COLUMNS)
    for item, by in ((short_id(each.item), each.by) for each in done.corrections if each.change == "lost"):
        undo = f"jidomem edit{acting(app)} {short_id(by)} --undo --reason TEXT" if by else ""
        ended = f"; {short_id(by)}, which replaced it, is withdrawn: to restore that, then: {undo}" if by else ""
        app.info(f"lost: a redaction removed the text of {item}{ended}")
    if done.commit:
        app.info(f"{_count_changes(done)}, in {done.session}, version {done.version}")
    elif done.corrections:
        app.info(f"{_count_changes(done)}; nothing was written")
    else:
        app.info("nothing to correct: the same memories are active")


def _count_changes(done: Rollback) -> str:
    counts = Counter(correction.change for correction in done.corrections)
    return ", ".join(f"{count} {change}" for change, count in sorted(counts.items()))


EXPOSED = 1
#: The text of `not_detected` in JSON, unchanged from earlier versions.
UNSEEN = (
    "a journal whose last commits were taken away is shorter, and sound: only --anchor with heads that were written"
    " down elsewhere shows it; who wrote a commit that follows the rules is not shown either"
)


@click.command(cls=Command, writes=("agent", "wait"))
@_anchor_option
@click.option(
    "--quarantine", metavar="COMMIT", help="Quarantine this damaged commit or file, so that writing continues."
)
@reason_option()
@pass_app
def verify(app: App, anchor: str | None, quarantine: str | None, reason: str | None) -> int:
    """Verify every commit of every project, or of the one --project names.

    It finds any commit that was edited, taken out, moved or put in between others, in files and packs, and every copy
    that shows what was redacted. That the last commits were taken away it finds where git has them at HEAD; else keep
    what --json prints, or the version `jidomem status` shows, elsewhere, and hold the journal to it with --anchor.
    Exits with 7 where there is damage or a commit is missing, with 1 where something redacted is shown.

    Examples:
      jidomem journal verify
      jidomem journal verify --json | tee anchor.json
      jidomem journal verify --anchor anchor.json
    """
    memory = app.read()
    if quarantine is not None:
        return _quarantine(app, memory, quarantine, reason)
    if reason is not None:
        raise InvalidRequest("--reason is for --quarantine", hint="add --quarantine COMMIT")
    streams, journal = app.streams(memory), memory.journal
    expected = read_anchor(anchor, Stream(memory.project)) if anchor is not None else AnchoredHeads({})
    damage, records = [(stream, journal.verify(stream)) for stream in streams], records_of(journal, streams)
    of_streams = journal_findings(journal, streams, memory.sources.now(), records)
    findings_ = [*chain(*of_streams.values()), *compare_with_git(journal, dict(damage), app.project)]
    findings_ += [each for stream, ids in expected.heads.items() for each in anchored(journal, stream, ids)]
    again = f"jidomem journal redact --again --anchor {quote(anchor or '')}"
    redactions = {each: orders for each, orders in expected.redactions.items() if app.project in (None, each.project)}
    findings_ += lost_redactions(journal, records, redactions, again)
    _print_damage(app, memory, damage, findings_, records, anchored_to=bool(expected.heads))
    for folder in sorted(memory.settings.root.glob("cut/*.[0-9]*")) if memory.place.is_shared else ():
        cut = FileJournal(folder)
        if not all(journal.holds(stream, cut.head(stream)) for stream in cut.streams()):
            app.warn(f"the log lost its last commits; they are in {folder}: jidomem journal restore {folder}")
    if any(errors for _, errors in damage) or any(
        each.kind in ("missing", "unrecorded", "stray") for each in findings_
    ):
        return DAMAGED
    return EXPOSED if any(each.severity == "violation" for each in findings_) else 0


def _print_damage(
    app: App,
    memory: Jidomem,
    damage: Sequence[tuple[Stream, tuple[JournalDamaged, ...]]],
    findings_: Sequence[JournalFinding],
    records: Records,
    *,
    anchored_to: bool,
) -> None:
    errors = [error for _, errors in damage for error in errors]
    if app.json:
        rows = [_row(memory, stream, len(errors), records.get(stream, ())) for stream, errors in damage]
        unseen = None if anchored_to else UNSEEN
        damaged = [error.to_dict() for error in errors]
        show_json(
            {"streams": rows, "damage": damaged, "findings": [f.to_dict() for f in findings_], "not_detected": unseen}
        )
    else:
        for stream, of in damage:
            lost = [each for each in findings_ if each.kind == "missing" and _is_of(memory, stream, each)]
            count = sum(len(each.commits) or 1 for each in lost)
            moved = {commit for error in of if isinstance(error, BranchChanged) for commit in error.commits}
            broken = sum(not isinstance(error, BranchChanged) for error in of)
            counts = ((broken, "damaged"), (len(moved), "of another branch"), (count, "missing"))
            words = [f"{number} {what}" for number, what in counts if number]
            word = ", ".join(words) or "sound"
            click.echo(f"{stream.project}/{stream.name}  {memory.journal.head(stream)}  {word}")
        for error in errors:
            if not isinstance(error, BranchChanged):  # reported as a finding
                click.echo(clean(error.detail))
        for each in findings_:
            where = f"{each.path}{f':{each.line}' if each.line else ''}: " if each.path else ""
            click.echo(clean(f"{each.severity}: {where}{each.detail}"))
    for hint in dict.fromkeys([*(error.hint for error in errors), *(each.hint for each in findings_)]):
        app.info(f"hint: {hint}")
    if app.verbose and not anchored_to:
        app.info("truncation is not detected: use --anchor with heads recorded elsewhere")


_RESTORED_COLUMNS = ("project", "stream", "number", "commit", "recorded_at")


@click.command(cls=Command, formats=ROWS, writes=["wait"])
@click.argument("folder", required=False, type=click.Path(path_type=Path, file_okay=False, exists=True))
@dry_run_option
@pass_app
def restore(app: App, folder: Path | None, dry_run: bool) -> int:
    """Restore entries that the log of a shared root lost or has damaged, from the copy here or the one in FOLDER.

    FOLDER is a copy of another machine (its JIDOMEM_HOME), or a restored backup. `jidomem journal verify` names the
    entries, and says whether the copy here has them. The copy has to be whole: each commit is verified by its hash and
    its parents, and what was redacted stays redacted. If the log was replaced by an older one, run this before anything
    else reads the root: later commits of a copy are appended to it. Exits with 7 while there is damage.

    Examples:
      jidomem journal restore --dry-run --root postgresql://db/team
    """
    from jidomem.extras.servers.journal import MirroredJournal
    from jidomem.runtime.location import open_log
    from jidomem.runtime.settings import address_of, find

    address = address_of(app.root)
    if address is None:
        hint = "jidomem journal verify names its damaged files, and the command that restores each"
        raise InvalidRequest(f"{find(app.root)[0]} is a folder, not a shared root", hint=hint)
    log, home = open_log(address, app.wait, creates=False)
    try:
        journal, source = MirroredJournal(log, home, wait=app.wait), folder or home
        streams = sorted({*log.streams(), *FileJournal(source).streams()})
        named = [stream for stream in streams if app.project in (None, stream.project)]
        results = journal.restore(named, source, dry_run=dry_run)
    finally:
        log.close()
    rows = [
        {"project": stream.project, "stream": stream.name, "number": entry.number, "commit": entry.commit[:SHORT],
         "recorded_at": unverified_entry(entry.document).head.recorded_at}
        for stream, result in results.items() for entry in result.entries
    ]  # fmt: skip
    damage = [error for result in results.values() for error in result.damage]
    if app.json:
        show_json({"root": log.name, "restored": rows, "damage": [error.to_dict() for error in damage]})
    else:
        show_rows(app, rows, _RESTORED_COLUMNS)
    for error in damage if not app.json else ():
        app.warn(clean(error.detail))
    for hint in dict.fromkeys(error.hint for error in damage):
        app.info(f"hint: {hint}")
    app.info(f"{log.name}: {len(rows)} entries {'would be ' * dry_run}put back from {source}")
    return DAMAGED if damage else 0


def _is_of(memory: Jidomem, stream: Stream, finding: JournalFinding) -> bool:
    folder = str(memory.journal.path(stream))
    return finding.path == folder or (finding.path or "").startswith(f"{folder}/")


def _row(memory: Jidomem, stream: Stream, damaged: int, records: Sequence[Commit]) -> dict[str, Any]:
    version = memory.journal.head(stream)
    redactions = [each.data.decode() for each in records if not record_values(each, "setsAside")]
    return {"project": stream.project, "stream": stream.name, "version": str(version), "heads": list(version.ids),
            "damaged": damaged, "redactions": redactions}  # fmt: skip


def _quarantine(app: App, memory: Jidomem, which: str, reason: str | None) -> int:
    """Quarantine damage in the stream that has it; raises NotFound if there is none."""
    reason = _required(reason, "quarantine", "what happened")
    now, streams = memory.sources.now(), [s for s in memory.journal.streams() if s.project == memory.project]
    late = {s: future_commits(memory.journal.inspect(s), now).values() for s in streams}
    damaged = [s for s in streams if memory.journal.verify(s) or late[s]]
    stream = next(
        (s for s in damaged if _has([*memory.journal.damage(s), *late[s]], which)),
        (damaged or [Stream(memory.project)])[0],
    )
    name = memory.maintenance.quarantine(stream, which, agent=memory.writer.agent, reason=reason)
    left = memory.journal.damage(stream)
    show_result(app, {"project": stream.project, "stream": stream.name, "file": name, "damaged": len(left)}, name)
    app.info(f"quarantined in {memory.journal.path(stream)}; {len(left)} damaged files left")
    return DAMAGED if left else 0


def _has(damage: Sequence[JournalDamaged], which: str) -> bool:
    """Return whether *damage* is about the commit or file *which*."""
    return any(which in f"{each.path} {each.detail}" or (each.commit or "-")[:SHORT] in which for each in damage)
