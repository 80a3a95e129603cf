"""What holds no longer: what was replaced, what was to hold until a moment, what is about a file that changed."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from time import sleep

from bench.governance.figures import Measure, Measured, Size
from bench.governance.process import Open, opened
from bench.governance.system import Fact, Unsupported, now

REPLACED = Measure("staleness", "facts that were replaced and are still given as holding", "of the replaced", "fewer")
EXPIRED = Measure("staleness", "facts whose time is over and that are still given as holding", "of those over", "fewer")
CHANGED = Measure(
    "staleness", "facts told to be about a file that changed since", "of those whose file changed", "more"
)
GRACE = 1.1  # seconds: a clock that counts in seconds has ticked


def staleness(open_: Open, folder: Path, size: Size) -> Iterator[Measured]:
    """Each of the three, in a folder of its own, and restarted before it is read."""
    for measure, part in ((REPLACED, _replaced), (EXPIRED, _expired), (CHANGED, _changed)):
        own = folder / part.__name__
        own.mkdir()
        try:
            values, of, counts = part(open_, own, size)
            yield Measured(measure, [values], [of], counts)
        except Unsupported as error:
            yield Measured(measure, unsupported=str(error))


def _replaced(open_: Open, folder: Path, size: Size) -> tuple[int, int, dict[str, int]]:
    old = [Fact(f"release {n} is on Friday", f"day of release {n}") for n in range(size.facts)]
    new = [Fact(f"release {n} is on Monday", f"day of release {n}", session="s-2") for n in range(size.facts)]
    with opened(open_, folder) as system:
        for before, after in zip(old, new, strict=True):
            system.replace(system.keep(before).id, after)
    with opened(open_, folder) as system:
        texts = {entry.text for entry in system.in_force()}
    stale = len(texts & {fact.text for fact in old})
    return stale, len(old), {"new ones given": len(texts & {fact.text for fact in new})}


def _expired(open_: Open, folder: Path, size: Size) -> tuple[int, int, dict[str, int]]:
    with opened(open_, folder) as system:
        system.expires()
        texts = {f"freeze {n} is on" for n in range(size.facts)}
        before = 0
        for n, text in enumerate(sorted(texts)):
            system.keep(Fact(text, f"freeze {n}", valid_until=now() + timedelta(seconds=size.holds)))
            before += text in {entry.text for entry in system.in_force()}
    sleep(size.holds + GRACE)
    with opened(open_, folder) as system:
        after = len(texts & {entry.text for entry in system.in_force()})
    return after, len(texts), {"given while they held": before}


def _changed(open_: Open, folder: Path, size: Size) -> tuple[int, int, dict[str, int]]:
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    paths = [folder / f"module_{n}.py" for n in range(2 * size.facts)]
    with opened(open_, folder) as system:
        if system.changed():
            raise ValueError("nothing was changed yet")
        ids = []
        for n, path in enumerate(paths):
            path.write_text(f"LIMIT = {n}\n")
            ids.append(system.keep(Fact(f"module {n} has limit {n}", f"limit of module {n}", about=path.name)).id)
    for path in paths[::2]:
        path.write_text("LIMIT = 100\n")
    with opened(open_, folder) as system:
        told = set(system.changed())
    return len(told & set(ids[::2])), size.facts, {"told of files that did not change": len(told & set(ids[1::2]))}
