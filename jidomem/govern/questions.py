"""The queries of an overlay, judged: header, name, SPARQL, and that each asks this memory only."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from jidomem import resources
from jidomem.errors import JidomemError
from jidomem.govern import gates
from jidomem.govern.report import SOUND, Problem
from jidomem.read import playbook

#: Parses a query, and ends: what evaluates at once however little there is, is stopped.
_PARSE = """\
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
import pyoxigraph
try:
    pyoxigraph.Store().query(sys.stdin.buffer.read().decode())
except SyntaxError as error:
    print(error)
"""
_SECONDS = 10.0
_LINE = re.compile(r"(?:.*\.rq:(\d+): )?(.*)", re.DOTALL)
_AT = re.compile(r"error at (\d+):")


def asked(files: Sequence[Path], root: Path) -> Iterator[tuple[Path, Problem]]:
    """Yield what is wrong with the queries in *files*; those of *root* and the shipped ones have their names."""
    taken = {path.stem: path for path in resources.queries()}
    own = {path.stem: path for path in sorted((root / "queries").glob("*/*.rq"), reverse=True)}
    for path in files:
        other = taken.get(path.stem) or own.get(path.stem)
        if other is not None and other.resolve() != path.resolve():
            yield path, _problem(path, None, f"the name {path.stem!r} is taken by {other.parent.name}/{other.name}")
        try:
            query = gates.read(path).query if path.parent.name == playbook.GATES else playbook.read(path)
        except JidomemError as error:
            line, text = _LINE.fullmatch(error.detail).groups()  # type: ignore[union-attr]  # anything matches
            yield path, _problem(path, int(line) if line else None, f"{text.removeprefix(f'{path}: ')}: {error.hint}")
            continue
        if (said := _malformed(query.text)) is not None:
            at = _AT.search(said)
            yield path, _problem(path, int(at[1]) if at else None, f"this is no SPARQL: {said}")


def _malformed(text: str) -> str | None:
    """Return what the engine says of a text it cannot read; it is asked in a process of its own, on nothing at all."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PARSE], input=text.encode(), capture_output=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"it was not read in {_SECONDS:.0f} s, on an empty memory"
    if done.returncode:
        return "the engine did not survive it"
    return done.stdout.decode("utf-8", "replace").partition(": expected")[0].strip() or None


def _problem(path: Path, line: int | None, text: str) -> Problem:
    return Problem(f"{path.parent.name}/{path.name}", SOUND, "violation", text, str(path), line)
