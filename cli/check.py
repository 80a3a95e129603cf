"""`jidomem check`: the job that holds a memory to its ontology and shapes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from jidomem.errors import InvalidRequest
from jidomem.govern.check import Problem, Report, check_data, check_files, check_project
from jidomem_cli.complain import complain
from jidomem_cli.door import Door, Verb, pass_door
from jidomem_cli.tables import clean, show_json

MISUSE, UNCHECKED = 2, 3
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(cls=Verb, formats=("text", "json"))
@click.argument("paths", type=FILE, nargs=-1)
@click.option("--data", type=FILE, help="Any Turtle, to be held to --shapes alone.")
@click.option("--shapes", type=FILE, help="The SHACL shapes for --data.")
@pass_door
def check(door: Door, paths: Sequence[Path], data: Path | None, shapes: Path | None) -> int:
    """Check the project's memory, or Turtle files at PATHS: syntax, shapes with the ontology in view, references.

    Of a memory the journal is checked too, and that nothing in force disagrees.
    Exits with 0 when all is well, 1 when a rule is violated, 2 on misuse, 3 when something could not be checked.

    Examples:
      jidomem check
      jidomem check memory.ttl --format json
      jidomem check --data people.ttl --shapes people-shapes.ttl
    """
    try:
        report = _report(door, paths, data, shapes)
    except Exception as error:
        return MISUSE if complain(error, door) == MISUSE else UNCHECKED
    if door.json or door.format == "json":
        show_json(report.to_dict())
        return report.exit_code
    for problem in report.problems:
        click.echo(_line(problem))
    for reason in report.unchecked:
        click.echo(f"unchecked: {clean(reason)}")
    counts = report.to_dict()["counts"]
    found = ", ".join(f"{count} {name}{'' if count == 1 else 's'}" for name, count in counts.items() if count)
    door.say(f"{report.judged} judged: {found or 'nothing found'}")
    return report.exit_code


def _report(door: Door, paths: Sequence[Path], data: Path | None, shapes: Path | None) -> Report:
    """Return the report on what was named; raises InvalidRequest when that is not clear."""
    if (data is None) != (shapes is None) or (data and paths):
        raise InvalidRequest("--data and --shapes go together, and without PATHS", hint="see: jidomem check --help")
    if data and shapes:
        return check_data((str(data), data.read_bytes()), (str(shapes), shapes.read_bytes()))
    if paths:
        return check_files([(str(path), path.read_bytes()) for path in paths], door.open().schema)
    memory = door.read()
    memory.catch_up(memory.project)
    disagreements = memory.reader.ask("conflicts", project=memory.project)
    return check_project(memory.tail, memory.schema, memory.project, disagreements)


def _line(problem: Problem) -> str:
    """Return one finding as `place: severity: rule: item: message`."""
    place = f"{problem.path}:{problem.line}" if problem.line else problem.path or "-"
    rule = problem.rule.rsplit("#", 1)[-1]
    return clean(f"{place}: {problem.severity}: {rule}: {problem.item}: {problem.message}")
