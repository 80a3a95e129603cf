"""How far a long submission has come, shown on a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from jidomem_cli.door import Door

if TYPE_CHECKING:
    from rich.progress import Progress

_WORDS = "{task.fields[submitted]:,} submitted, {task.fields[refused]:,} refused"


@dataclass(slots=True)
class Bar:
    """A bar of how much of *file* is read, where its size is known, with how many were submitted, and how fast."""

    file: BinaryIO
    _progress: Progress

    def show(self, submitted: int, refused: int) -> None:
        """Show how far it has come."""
        known: dict[str, Any] = {} if self._progress.tasks[0].total is None else {"completed": self.file.tell()}
        self._progress.update(self._progress.tasks[0].id, submitted=submitted, refused=refused, **known)

    def close(self) -> None:
        """Leave the bar as it stands."""
        self._progress.stop()


def bar(door: Door, file: BinaryIO, intents: Iterable[Any]) -> Bar | None:
    """Return a bar where standard error is a terminal, wanted, and not where the answers are shown; else None."""
    if door.quiet or not sys.stderr.isatty() or sys.stdout.isatty():
        return None
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        """How many intents a second."""

        def render(self, task: Any) -> Text:
            return Text(f"{task.fields['submitted'] / task.elapsed:,.0f}/s" if task.elapsed else "")

    size = None if isinstance(intents, list) else _size(file)
    console = Console(stderr=True, color_system="auto" if door.paints(sys.stderr) else None)
    columns = [BarColumn(), TextColumn(_WORDS), Rate(), *([TimeRemainingColumn()] if size else [])]
    progress = Progress(*columns, console=console)
    progress.add_task("", total=size, submitted=0, refused=0)
    progress.start()
    return Bar(file, progress)


def _size(file: BinaryIO) -> int | None:
    """Return how many bytes *file* has, None where that is not known, as of a pipe."""
    try:
        return os.fstat(file.fileno()).st_size or None if file.seekable() else None
    except OSError:
        return None
