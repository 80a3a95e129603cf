"""`jidomem check`: the check of a memory against its ontology, shapes and gates."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from jidomem.errors import InvalidRequest, JidomemError
from jidomem_cli.errors import print_error, reason_of
from jidomem_cli.options import App, Command, clean, pass_app
from jidomem_cli.output import show_json

if TYPE_CHECKING:
    from jidomem import Jidomem
    from jidomem.check.check import Options
    from jidomem.check.report import CheckReport, Problem

MISUSE, UNCHECKED = 2, 3
FORMATS = ("text", "json", "sarif", "junit", "github")
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class CheckArguments(NamedTuple):
    """The arguments of the command line."""

    paths: Sequence[Path]
    data: Path | None
    shapes: Path | None
    since: str | None
    baseline: Path | None
    issues: Sequence[Path]
    reference: bool
    secrets: bool
    fail_on: Sequence[str]


@click.command(cls=Command, formats=FORMATS)
@click.argument("paths", type=FILE, nargs=-1)
@click.option("--since", metavar="GITREF", help="Report only what changed since this git revision.")
@click.option("--baseline", type=FILE, help="Findings accepted until a date (default: baseline.toml of the root).")
@click.option(
    "--open-tasks-from", "issues", type=FILE, multiple=True, help="Issues as JSON of `gh issue list`; repeatable."
)
@click.option("--fail-on", type=click.Choice(["stale", "missing"]), multiple=True,
              help="Fail on memories that `jidomem ask stale` lists (else warnings); on commits of the memory that"
              " --since has and HEAD lacks, as after a force push.")  # fmt: skip
@click.option(
    "--waive", metavar="REASON", help="Print a waiver of each violation, for baseline.toml; with --waive-until."
)
@click.option(
    "--waive-until", "until", type=click.DateTime(("%Y-%m-%d",)), metavar="DATE", help="Last day of these waivers."
)
@click.option("--reference", is_flag=True, help="Validate with pyshacl and owlrl; slow.")
@click.option("--secrets", is_flag=True, help="Report all likely secrets, also outside --since and --baseline.")
@click.option("--data", type=FILE, help="Turtle file to validate against --shapes only.")
@click.option("--shapes", type=FILE, help="SHACL shapes for --data.")
@pass_app
def check(app: App, /, waive: str | None, until: datetime | None, **arguments: Any) -> int:
    """Check the memory, or Turtle files at PATHS: ontology, shapes, gates, references, the journal.

    Without --project all projects of the root are checked. For a memory, also every byte of the journal is verified,
    and conflicts between active memories are reported.
    Exit codes: 0 no violation, 1 a violation, 2 usage error, 3 something could not be checked.

    Examples:
      jidomem check
      jidomem check --format sarif
      jidomem check --waive "imported from the old wiki" --waive-until 2027-01-31
      jidomem check memory.ttl --format json
      jidomem check --data people.ttl --shapes people-shapes.ttl
    """
    try:
        if (waive is None) != (until is None) or (waive is not None and not waive.strip()):
            raise InvalidRequest(
                "--waive gives a reason, --waive-until a day", hint='--waive "old import" --waive-until 2027-01-31'
            )
        report = _report(app, CheckArguments(**arguments))
        if waive is not None and until is not None:
            from jidomem.check.report import format_waivers

            click.echo(format_waivers(report.problems, waive, until.date()), nl=False)
            return UNCHECKED if report.unchecked else 0
        show(app, report)
    except Exception as error:
        return MISUSE if report_error(error, app) == MISUSE else UNCHECKED
    return report.exit_code


def report_error(error: Exception, app: App) -> int:
    """Report, in the requested format, the error that prevented the check; return its exit code.

    A fault in the terms and shapes of the root is a finding, with its place; any other error counts as unchecked.
    """
    report = _report_on(error, app)
    if report.problems and isinstance(error, JidomemError):
        show(app, report)
        return error.exit_code
    code = print_error(error, app)
    if not app.json and app.format == "json":
        show(app, report)
    return code


def _report_on(error: Exception, app: App) -> CheckReport:
    """Return a report on the part that *error* left unchecked, with the faults in the terms and shapes of the root."""
    from jidomem.check.overlay import check_overlay
    from jidomem.check.report import CheckReport
    from jidomem.runtime import settings

    if getattr(error, "code", "") == "invalid_config" and settings.address_of(app.root) is None:
        try:
            report = check_overlay(settings.find(app.root)[0])
        except JidomemError:  # a limit of the root, which *error* names
            report = CheckReport()
        report.judged, report.problems = 0, [each for each in report.problems if each.severity == "violation"]
        if report.problems:
            report.unchecked.append("the memory of this root: correct the above first, then run this command again")
            return report
    return CheckReport(unchecked=[reason_of(error)])


def _report(app: App, arguments: CheckArguments) -> CheckReport:
    """Return the report on the named files or the memory; raises InvalidRequest for contradictory arguments."""
    from jidomem.base.clock import now
    from jidomem.check.check import check_files
    from jidomem.check.overlay import add_rule_faults
    from jidomem.check.report import read_baseline, waive
    from jidomem.check.rules import check_data
    from jidomem.runtime.settings import OWN

    if (arguments.data is None) != (arguments.shapes is None) or (arguments.data and arguments.paths):
        raise InvalidRequest("--data and --shapes go together, without PATHS", hint="see: jidomem check --help")
    if arguments.secrets and (arguments.data or arguments.paths):
        raise InvalidRequest("--secrets is for the journal", hint="leave out PATHS and --data")
    if arguments.fail_on and (arguments.data or arguments.paths):
        raise InvalidRequest("--fail-on is for the memory of a project", hint="leave out PATHS and --data")
    if "missing" in arguments.fail_on and arguments.since is None:
        raise InvalidRequest("--fail-on missing compares with a revision", hint="name it: --since REV")
    if arguments.issues and (arguments.data or arguments.paths):
        raise InvalidRequest("--open-tasks-from is for the memory of a project", hint="leave out PATHS and --data")
    file = arguments.baseline
    baseline = read_baseline(str(file), file.read_bytes()) if file else None
    if arguments.data and arguments.shapes:
        if arguments.since or arguments.reference:
            raise InvalidRequest("--data is checked as a whole, by pyshacl", hint="leave out --since and --reference")
        data, shapes = ((str(path), path.read_bytes()) for path in (arguments.data, arguments.shapes))
        report = check_data(data, shapes)
    elif arguments.paths:
        memory = app.open()
        files = [(str(path), path.read_bytes()) for path in arguments.paths]
        report = check_files(files, memory.schema, _options(memory, arguments, Path.cwd()))
        add_rule_faults(report, memory.settings.root)
    else:
        memory = app.read()
        options = _options(memory, arguments, memory.settings.root)
        options = replace(options, baseline=baseline or options.baseline)
        # your own memory has the projects of all folders without one
        is_one = memory.settings.requested or memory.settings.found == OWN
        return memory.check(options=options) if is_one else memory.check_all(options)
    if baseline:
        waive(report, baseline, now().date(), in_part=bool(arguments.since))
    return report


def _options(memory: Jidomem, arguments: CheckArguments, folder: Path) -> Options:
    from jidomem.check.check import read_issues
    from jidomem.journal.branches import Revision

    return replace(
        memory.check_options(),
        reference=arguments.reference,
        secrets=arguments.secrets,
        fail_on_stale="stale" in arguments.fail_on,
        fail_on_missing="missing" in arguments.fail_on,
        revision=Revision(folder, arguments.since) if arguments.since else None,
        issues=[read_issues(str(path), path.read_bytes()) for path in arguments.issues] if arguments.issues else None,
    )


def show(app: App, report: CheckReport) -> None:
    """Print a report in the requested format, with paths relative to the working directory."""
    from jidomem.check.report import seen_from

    report.problems = [seen_from(problem, Path.cwd()) for problem in report.problems]
    report.waived = [one._replace(problem=seen_from(one.problem, Path.cwd())) for one in report.waived]
    report.unchecked = [reason.replace(f"{Path.cwd()}/", "") for reason in report.unchecked]
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
    unchecked = [f"unchecked: {clean(reason)}" for reason in report.unchecked]
    for text in commands(shown) if form == "github" else [*map(_line, shown.problems), *unchecked]:
        click.echo(text)
    for text in [*notes(report), *(coverage(report) if app.verbose else ())]:
        app.info(text)
    for one in report.waived:
        by = f" by {one.by}" if one.by else ""
        app.info(clean(f"waived until {one.until}{by}: {one.problem.name}: {one.problem.item}: {one.reason}"))
    counts = [f"{count} {name}{'' if count == 1 else 's'}" for name, count in report.counts().items() if count]
    counts += [f"{len(report.unchecked)} unchecked"] if report.unchecked else []
    app.info(f"{report.judged} checked: {', '.join(counts) or 'no findings'}")


def _line(problem: Problem) -> str:
    """Return one finding as `place: severity: rule: item: message`."""
    place = f"{problem.path}:{problem.line}" if problem.line else problem.path or "-"
    value = "" if problem.value is None else f" ({problem.value:.200})"
    return clean(f"{place}: {problem.severity}: {problem.name}: {problem.item}: {problem.message}{value}")
