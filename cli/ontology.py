"""`jidomem ontology`: the terms of the memory, shipped and the project's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from jidomem_cli.check import FORMATS, MISUSE, UNCHECKED, show
from jidomem_cli.complain import complain
from jidomem_cli.door import Door, Verb, Verbs, pass_door

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group(cls=Verbs)
def ontology() -> None:
    """Look terms up, judge the terms, shapes and questions of a project's own, and propose new ones.

    Examples:
      jidomem ontology check
    """


@ontology.command("check", cls=Verb, formats=FORMATS)
@click.argument("paths", type=_FILE, nargs=-1)
@pass_door
def check(door: Door, paths: Sequence[Path]) -> int:
    """Check the root's own ontology/, shapes/ and queries/, or of them the files at PATHS, which may lie elsewhere.

    What a root cannot be opened with is told here, all of it, each with file and line.
    Exits with 0 when all is well, 1 when a rule is violated, 2 on misuse, 3 when something could not be checked.

    Examples:
      jidomem ontology check
      jidomem ontology check --format github
    """
    from jidomem.govern.overlay import check_overlay
    from jidomem.runtime import settings

    try:
        report = check_overlay(settings.load(door.root, door.project).root, paths)
        show(door, report)
    except Exception as error:
        return MISUSE if complain(error, door) == MISUSE else UNCHECKED
    return report.exit_code
