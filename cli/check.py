"""`jidomem check`: the check of a memory against its ontology, shapes and gates; `jidomem ontology`: its terms."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jidomem.errors import InvalidRequest, JidomemError
from jidomem.rdf.terms import Term, iri, plain_value
from jidomem.rdf.vocab import local_name
from jidomem_cli.errors import print_error
from jidomem_cli.options import ROWS, App, Command, CommandGroup, clean, pass_app, reason_option
from jidomem_cli.output import form_of, show_json, show_result, show_rows

if TYPE_CHECKING:
    from datetime import date

    from jidomem import Jidomem
    from jidomem.check.check import Options
    from jidomem.check.report import Baseline, CheckReport, Problem
    from jidomem.check.terms import TermEntry
    from jidomem.curation.term_proposals import Proposal
    from jidomem.schema.ontology import Schema

MISUSE, UNCHECKED = 2, 3
FORMATS = ("text", "json", "sarif", "junit", "github")
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@dataclass(frozen=True, slots=True)
class CheckArguments:
    """The arguments of the command line."""

    paths: Sequence[Path]
    data: Path | None
    shapes: Path | None
    since: str | None
    baseline: Path | None
    issues: Sequence[Path]
    reference: bool
    secrets: bool


@click.command(cls=Command, formats=FORMATS)
@click.argument("paths", type=FILE, nargs=-1)
@click.option("--since", metavar="GITREF", help="Report only findings since this git revision.")
@click.option("--baseline", type=FILE, help="Findings accepted until a date (default: baseline.toml of the root).")
@click.option(
    "--open-tasks-from", "issues", type=FILE, multiple=True, help="Issues as JSON of `gh issue list`; repeatable."
)
@click.option("--reference", is_flag=True, help="Validate with pyshacl and owlrl; slow.")
@click.option("--secrets", is_flag=True, help="Report all likely secrets, also outside --since and --baseline.")
@click.option("--data", type=FILE, help="Turtle file to validate against --shapes only.")
@click.option("--shapes", type=FILE, help="SHACL shapes for --data.")
@pass_app
def check(app: App, /, **arguments: Any) -> int:
    """Check the memory, or Turtle files at PATHS: ontology, shapes, gates, references, the journal.

    Without --project all projects of the root are checked. For a memory, also every byte of the journal is verified,
    and conflicts between active memories are reported.
    Exit codes: 0 no violation, 1 a violation, 2 usage error, 3 something could not be checked.

    Examples:
      jidomem check
      jidomem check --format sarif
      jidomem check memory.ttl --format json
      jidomem check --data people.ttl --shapes people-shapes.ttl
    """
    try:
        report = _report(app, CheckArguments(**arguments))
        show(app, report)
    except Exception as error:
        return MISUSE if complain_in_format(error, app) == MISUSE else UNCHECKED
    return report.exit_code


def complain_in_format(error: Exception, app: App) -> int:
    """Report, in the requested format, the error that prevented the check; return its exit code.

    A fault in the terms and shapes of the root is a finding, with its place; any other error counts as unchecked.
    """
    report = _report_on(error, app)
    if report is not None and report.problems:
        show(app, report)
        return error.exit_code if isinstance(error, JidomemError) else UNCHECKED
    code = print_error(error, app)
    if report is not None and code != MISUSE and not app.json and (app.format or "text") != "text":
        show(app, report)
    return code


def _report_on(error: Exception, app: App) -> CheckReport | None:
    """Return a report on the part that *error* left unchecked, with the faults in the terms and shapes of the root."""
    if not isinstance(error, JidomemError):
        return None
    from jidomem.check.overlay import check_overlay
    from jidomem.check.report import CheckReport
    from jidomem.runtime import settings

    if error.code == "invalid_config" and settings.address_of(app.root) is None:
        try:
            report = check_overlay(settings.find(app.root)[0])
        except JidomemError:  # a limit of the root, which *error* names
            report = CheckReport()
        report.judged, report.problems = 0, [each for each in report.problems if each.severity == "violation"]
        if report.problems:
            report.unchecked.append("the memory of this root: correct the above first, then run this command again")
            return report
    return CheckReport(unchecked=[f"{error.detail}; {error.hint}" if error.hint else error.detail])


def _report(app: App, arguments: CheckArguments) -> CheckReport:
    """Return the report on the named files or the memory; raises InvalidRequest for contradictory arguments."""
    from jidomem.check.check import check_files
    from jidomem.check.report import waive
    from jidomem.check.rules import check_data
    from jidomem.runtime.settings import OWN

    if (arguments.data is None) != (arguments.shapes is None) or (arguments.data and arguments.paths):
        raise InvalidRequest("--data and --shapes go together, without PATHS", hint="see: jidomem check --help")
    if arguments.secrets and (arguments.data or arguments.paths):
        raise InvalidRequest("--secrets is for the journal", hint="leave out PATHS and --data")
    if arguments.issues and (arguments.data or arguments.paths):
        raise InvalidRequest("--open-tasks-from is for the memory of a project", hint="leave out PATHS and --data")
    baseline = _baseline(arguments)
    if arguments.data and arguments.shapes:
        if arguments.since or arguments.reference:
            raise InvalidRequest("--data is checked as a whole, by pyshacl", hint="leave out --since and --reference")
        data, shapes = ((str(path), path.read_bytes()) for path in (arguments.data, arguments.shapes))
        report = check_data(data, shapes)
    elif arguments.paths:
        memory = app.open()
        files = [(str(path), path.read_bytes()) for path in arguments.paths]
        report = check_files(files, memory.schema, _options(memory, arguments, Path.cwd()))
    else:
        memory = app.read()
        options = _options(memory, arguments, memory.settings.root)
        options = replace(options, baseline=baseline or options.baseline)
        # your own memory has the projects of all folders without one
        is_one = memory.settings.requested or memory.settings.found == OWN
        return memory.check(options=options) if is_one else memory.check_all(options)
    if baseline:
        waive(report, baseline, _today(), in_part=bool(arguments.since))
    return report


def _baseline(arguments: CheckArguments) -> Baseline | None:
    from jidomem.check.report import read_baseline

    return read_baseline(str(arguments.baseline), arguments.baseline.read_bytes()) if arguments.baseline else None


def _options(memory: Jidomem, arguments: CheckArguments, folder: Path) -> Options:
    from jidomem.check.check import read_issues
    from jidomem.journal.branches import Revision

    return replace(
        memory.check_options(),
        reference=arguments.reference,
        secrets=arguments.secrets,
        revision=Revision(folder, arguments.since) if arguments.since else None,
        issues=[read_issues(str(path), path.read_bytes()) for path in arguments.issues] if arguments.issues else None,
    )


def _today() -> date:
    from jidomem.base.clock import now

    return now().date()


def _shown(problem: Problem) -> Problem:
    """Return a problem with its path relative to the working directory, if it is below it."""
    from jidomem.check.check import seen_from

    return seen_from(problem, Path.cwd())


def show(app: App, report: CheckReport) -> None:
    """Print a report in the requested format, with paths relative to the working directory."""
    report.problems = [_shown(problem) for problem in report.problems]
    form = "json" if app.json else app.format or "text"
    if form == "json":
        show_json(report.to_dict())
    elif form == "sarif":
        from jidomem import __version__
        from jidomem.check.report import sarif

        click.echo(json.dumps(sarif(report, __version__), indent=2, ensure_ascii=False))
    elif form == "junit":
        from jidomem.check.report import junit

        click.echo(junit(report), nl=False)
    else:
        _print(app, report, form)


def _print(app: App, report: CheckReport, form: str) -> None:
    """Print findings as lines; notes on the check go to standard error."""
    from jidomem.check.report import commands, coverage, merge_redactions, notes

    shown = report if app.verbose else replace(report, problems=merge_redactions(report.problems))
    for text in commands(shown) if form == "github" else [*map(_line, shown.problems), *_unchecked(report)]:
        click.echo(text)
    for text in [*notes(report), *(coverage(report) if app.verbose else ())]:
        app.info(text)
    for one in report.waived:
        by = f" by {one.by}" if one.by else ""
        app.info(clean(f"waived until {one.until}{by}: {one.problem.name}: {one.problem.item}: {one.reason}"))
    counts = ", ".join(f"{count} {name}{'' if count == 1 else 's'}" for name, count in report.counts().items() if count)
    app.info(f"{report.judged} checked: {counts or 'no findings'}")


def _unchecked(report: CheckReport) -> list[str]:
    return [f"unchecked: {clean(reason)}" for reason in report.unchecked]


def _line(problem: Problem) -> str:
    """Return one finding as `place: severity: rule: item: message`."""
    place = f"{problem.path}:{problem.line}" if problem.line else problem.path or "-"
    value = "" if problem.value is None else f" ({problem.value:.200})"
    return clean(f"{place}: {problem.severity}: {problem.name}: {problem.item}: {problem.message}{value}")


@click.group(cls=CommandGroup)
def ontology() -> None:
    """Look up terms; validate the terms, shapes and queries of a project, and propose new ones.

    Examples:
      jidomem ontology show Decision
      jidomem ontology check
    """


@ontology.command("check", cls=Command, formats=FORMATS)
@click.argument("paths", type=FILE, nargs=-1)
@pass_app
def check_overlay(app: App, paths: Sequence[Path]) -> int:
    """Check ontology/, shapes/ and queries/ of the root, or such files at PATHS.

    Lists every fault that keeps a root from being opened, with file and line.
    Exit codes: 0 no violation, 1 a violation, 2 usage error, 3 something could not be checked.

    Examples:
      jidomem ontology check
      jidomem ontology check --format github
    """
    from jidomem.check.overlay import check_overlay
    from jidomem.runtime import settings

    try:
        root = settings.load(app.root, app.project).root
        report = check_overlay(root, paths)
        show(app, report)
    except Exception as error:
        return MISUSE if print_error(error, app) == MISUSE else UNCHECKED
    return report.exit_code


@ontology.command("show", cls=Command, formats=("table", "json", "md", "ttl"))
@click.argument("term", required=False)
@pass_app
def show_terms(app: App, term: str | None) -> None:
    """Show the definition of TERM, its shapes and where it is declared; without TERM, list all terms.

    TERM is an IRI, a name such as jido:topic or Decision, or the type of an intent.

    Examples:
      jidomem ontology show
      jidomem ontology show Decision
      jidomem ontology show jido:topic --json
      jidomem ontology show architectural_decision --format md
    """
    from jidomem.check import terms
    from jidomem.rdf.turtle import turtle

    memory = app.open()
    folders = [memory.settings.root]
    match = None if term is None else terms.find(memory.schema, term)
    chosen = terms.glossary_terms(memory.schema) if match is None else [match]
    form = form_of(app)
    if form == "ttl":
        click.echo(turtle(terms.described(memory.schema, chosen)), nl=False)
    elif match is not None:
        entry = terms.entry(memory.schema, match, folders)
        if form == "json":
            show_json(entry.to_dict())
        else:
            _print_entry(entry, md=form == "md")
    elif form == "json":
        listed = [_brief(memory.schema, each) for each in chosen]
        show_json({"version": memory.schema.version, "terms": listed})
    else:
        _print_all(memory.schema, md=form == "md")
        app.info(f"version {memory.schema.version}")


def _brief(schema: Schema, term: Term) -> dict[str, Any]:
    from jidomem.check.terms import short

    kind = "class" if term in schema.classes else "property" if term in schema.properties else "individual"
    return {"iri": plain_value(term), "name": short(term), "kind": kind, "deprecated": term in schema.deprecated}


def _print_all(schema: Schema, *, md: bool) -> None:
    """Print the class tree, then the properties with domain and range, then the individuals."""
    from jidomem.check import terms

    def listed(terms_: Iterable[Term]) -> str:
        return " or ".join(sorted(map(terms.short, terms_))) or "anything"

    old = schema.deprecated
    mark = dict.fromkeys(old, " (deprecated)")
    click.echo("## Classes\n" if md else "Classes")
    for depth, cls in terms.tree(schema):
        click.echo(clean(f"{'  ' * depth}{'- ' if md else '  '}{terms.short(cls)}{mark.get(cls, '')}"))
    click.echo("\n## Properties\n" if md else "\nProperties")
    for term, declared in sorted(schema.properties.items()):
        ends = f"{listed(declared.domain)} -> {listed(declared.range)}"
        click.echo(clean(f"{'- ' if md else '  '}{terms.short(term)}: {ends}{mark.get(term, '')}"))
    click.echo("\n## Individuals\n" if md else "\nIndividuals")
    for term, kinds in sorted(schema.individuals.items()):
        click.echo(clean(f"{'- ' if md else '  '}{terms.short(term)}: {listed(kinds)}{mark.get(term, '')}"))


def _print_entry(entry: TermEntry, *, md: bool) -> None:
    from jidomem.check.terms import short

    name, bullet = short(iri(entry.iri)), "- " if md else "  "
    kind = f"functional {entry.kind}" if entry.functional else entry.kind
    title = f"{name} ({'deprecated ' if entry.deprecated else ''}{kind})"
    click.echo(f"# {clean(title)}\n" if md else clean(title))
    rows = [("means", entry.definition), ("example", entry.example), ("not", entry.note)]
    rows += [(field, ", ".join(short(iri(each)) for each in getattr(entry, field)))
             for field in ("above", "below", "classes", "individuals", "properties", "domain", "range")]  # fmt: skip
    rows.append(("declared", f"{entry.path}:{entry.line}" if entry.line else entry.path or ""))
    for field, text in rows:
        if text:
            click.echo(clean(f"{bullet}{field}: {text}"))
    for rule in entry.rules:
        aim = f" (of {short(iri(rule.target))})" if rule.target and rule.target != entry.iri else ""
        click.echo(clean(f"{bullet}{rule.severity} {short(iri(rule.iri))}{aim}: {rule.message}"))


@ontology.command("propose", cls=Command, writes=("agent", "wait"))
@click.argument("term")
@click.option("--kind", required=True, type=click.Choice(("class", "property")), help="Kind of term.")
@click.option("--definition", required=True, metavar="TEXT", help="Definition, in one sentence.")
@reason_option(required=True)
@click.option("--parent", "parents", multiple=True, metavar="TERM", help="Class or property above it.")
@click.option("--domain", multiple=True, metavar="CLASS", help="Class of its subjects.")
@click.option(
    "--range", "range_", multiple=True, metavar="CLASS", help="Class or datatype of its values, such as xsd:integer."
)
@click.option("--label", metavar="TEXT", help="Label (default: the words of its name).")
@pass_app
def propose(app: App, /, term: str, **fields: Any) -> None:
    """Propose TERM, a new class or property, for a curator to accept or reject.

    TERM is a name in the namespace of the project, or an IRI.

    Examples:
      jidomem ontology propose Recipe --kind class --parent Fact --definition "A way to cook." --reason "we cook"
    """
    memory = app.open()
    _print_proposal(app, memory.term_proposals().propose(term, **fields))


@ontology.command("proposals", cls=Command, formats=ROWS)
@click.option("--all", "answered", is_flag=True, help="Also finished ones.")
@pass_app
def proposals(app: App, answered: bool) -> None:
    """List the pending terms.

    Examples:
      jidomem ontology proposals
      jidomem ontology proposals --all --json
    """
    proposed = app.read().term_proposals()
    rows = [each.to_dict() for each in (proposed.all() if answered else proposed.waiting())]
    show_rows(app, rows, ("term", "outcome", "by", "reason", "proposed_at", "answered_by", "answer"))


@ontology.command("accept", cls=Command, writes=("agent", "wait"))
@click.argument("term")
@reason_option()
@pass_app
def accept(app: App, term: str, reason: str | None) -> None:
    """Accept a proposed TERM, as a curator: it is written to ontology/accepted.ttl.

    A running process, such as `jidomem serve`, uses it after a restart.

    Examples:
      jidomem ontology propose serves --kind property --range xsd:integer --definition "For how many." --reason "asked"
      jidomem ontology accept serves --agent curator
    """
    memory = app.read()
    _print_proposal(app, memory.term_proposals().accept(term, reason=reason or ""))


@ontology.command("reject", cls=Command, writes=("agent", "wait"))
@click.argument("term")
@reason_option(required=True)
@pass_app
def reject(app: App, term: str, reason: str) -> None:
    """Reject a proposed TERM, as a curator, or withdraw your own.

    Examples:
      jidomem ontology propose Soup --kind class --definition "Something liquid to eat." --reason "we cook"
      jidomem ontology reject Soup --reason "it is a recipe"
    """
    memory = app.read()
    _print_proposal(app, memory.term_proposals().reject(term, reason=reason))


def _print_proposal(app: App, proposal: Proposal) -> None:
    show_result(app, proposal.to_dict(), proposal.term)
    app.info(f"{proposal.outcome}: {clean(proposal.term)}")


@ontology.command("diff", cls=Command, formats=("table", "json", "md"))
@click.option("--from", "old", metavar="VERSION", default="shipped", show_default=True, help="Former version.")
@click.option("--to", "new", metavar="VERSION", help="New version (default: the present overlay of the root).")
@click.option(
    "--first", type=click.IntRange(0), default=20, show_default=True, help="Maximum number of listed failures."
)
@pass_app
def diff(app: App, old: str, new: str | None, first: int) -> int:
    """Compare two versions of the ontology, and list the active memories that would now fail.

    A VERSION is `shipped`, `now`, a folder with ontology/ and shapes/, a git revision of the root's own, or the version
    that commits name, where git has the overlay of then.
    Exits with 1 if a memory that is valid under the former would fail under the new one.

    Examples:
      jidomem ontology diff
      jidomem ontology diff --from shipped --to now --json
    """
    from jidomem.check.overlay import changes, now_failing, version

    memory = app.read()
    memory.catch_up(memory.project)
    before, after = (version(memory.settings.root, name) for name in (old, new))
    rows = [each.to_dict() for each in changes(before, after)]
    failing, count = [], 0
    for failure in now_failing(memory.index, memory.project, before, after):
        count += 1
        if count <= first:
            failing.append({"item": plain_value(failure.item), "rule": failure.rule, "message": failure.message})
    if form_of(app) == "json":
        ends = {"from": before.version, "to": after.version}
        show_json({**ends, "changes": rows, "failing": failing, "failures": count})
        return int(count > 0)
    show_rows(app, rows, ("change", "kind", "term", "what"))
    for each in failing:
        click.echo(clean(f"would fail: {each['item']}: {local_name(each['rule'])}: {each['message']}"))
    app.info(f"from {before.version} to {after.version}: {len(rows)} changed, {count} would now fail")
    return int(count > 0)
