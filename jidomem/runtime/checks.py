"""Checks of a root for whom a server answers: one at a time, each in a process of its own that can be killed."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from time import monotonic

from jidomem.errors import Busy, JidomemError, QueryTimeout, TooLarge
from jidomem.runtime import frames
from jidomem.runtime.pool import hung_up, stopping

SECONDS = 600.0
#: So long a look at a change of terms or rules may take, and so many of them are kept.
PREVIEW_SECONDS, PREVIEWS = 120.0, 20
#: What the process exits with when what it wrote is an error.
REFUSED = 9


class Checks:
    """The checks of one root; whoever asks while one is made is told to come back."""

    def __init__(self, root: Path, now: Callable[[], datetime], *, seconds: float = SECONDS) -> None:
        """Give each check up to *seconds*."""
        self._now = now
        self.seconds, self.preview_seconds = seconds, min(seconds, PREVIEW_SECONDS)
        #: project -> its latest report as `json`, and the moment it was made; while this process lives.
        self.latest: dict[str, tuple[datetime, bytes]] = {}
        #: name -> project, and what `preview` found; the latest.
        self.previews: dict[str, tuple[str, bytes]] = {}
        self._root = root
        self._place, self._lock = Lock(), Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def answer(self, project: str, form: str, asker: int | None = None) -> bytes:
        """Return the report on the memory of *project* as `json`, `sarif` or `junit`.

        Raises Busy `too_many_requests` while another one is made, QueryTimeout after the stated seconds, TooLarge
        where the process was ended by others, InvalidRequest where *asker*, a connection, is closed at its other end,
        and what the check raises.
        """
        found = self._alone([project, form], self.seconds, asker)
        if form == "json":
            self.latest[project] = (self._now(), found)
        return found

    def preview(self, project: str, name: str, text: str, asker: int | None = None) -> str:
        """Return the name under which `previews` has what would newly fail in *project* if a file of terms said *text*.

        Nothing of the root is changed. Raises what `govern.preview.lay` and `answer` raise.
        """
        from jidomem.govern.preview import lay  # most processes have no need of it

        with TemporaryDirectory(prefix="jidomem-") as folder:
            file = lay(self._root, Path(folder), name, text)
            found = self._alone([project, "preview", folder, file], self.preview_seconds, asker)
        made = secrets.token_hex(8)
        self.previews[made] = (project, found)
        if len(self.previews) > PREVIEWS:
            del self.previews[next(iter(self.previews))]
        return made

    def close(self) -> None:
        """Stop the check that is being made."""
        with self._lock:
            self._closed = True
            if self._process is not None:
                self._process.kill()

    def _alone(self, words: list[str], seconds: float, asker: int | None) -> bytes:
        """Return what the process writes that is asked with *words*, and that no other one runs beside."""
        if not self._place.acquire(blocking=False):
            hint = "ask again in a minute, or run it where the memory is: jidomem check"
            raise Busy("a check is being made, and no more than one at once", hint=hint, code="too_many_requests")
        try:
            return self._answer(
                [sys.executable, "-m", "jidomem.runtime.checking", str(self._root), *words], seconds, asker
            )
        finally:
            self._place.release()

    def _answer(self, command: list[str], seconds: float, asker: int | None) -> bytes:
        theirs, ours = os.pipe()  # it ends when our end is closed, by whatever end of this process
        try:
            with self._lock:
                if self._closed:
                    raise stopping()
                process = self._process = subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE)
            with process:
                try:
                    data = self._read(process, seconds, asker)
                finally:
                    process.kill()
        finally:
            self._process = None
            os.close(theirs)
            os.close(ours)
        if process.returncode == REFUSED:
            error = json.loads(data)
            raise JidomemError(error["detail"], hint=error["hint"], code=error["code"])
        if process.returncode != 0:
            raise stopping() if self._closed else _ended(process.returncode)
        return data

    def _read(self, process: subprocess.Popen[bytes], seconds: float, asker: int | None) -> bytes:
        """Return all that *process* writes, which has ended then."""
        assert process.stdout is not None
        found, deadline = bytearray(), monotonic() + seconds
        try:
            while True:
                frames.wait(process.stdout.fileno(), deadline, asker)
                if not (piece := os.read(process.stdout.fileno(), 1 << 20)):
                    process.wait(max(0.0, deadline - monotonic()))
                    return bytes(found)
                found += piece
        except frames.Left:
            raise hung_up() from None
        except (frames.Late, subprocess.TimeoutExpired):
            raise _late(seconds) from None


def _late(seconds: float) -> QueryTimeout:
    return QueryTimeout(
        f"the check was not done in {seconds:g} seconds, and was stopped",
        hint="run it where the memory is: jidomem check; what a change would fail: jidomem ontology diff",
    )


def _ended(status: int) -> TooLarge:
    return TooLarge(
        f"the process that made the check was ended (status {status}), as the system does where memory runs out",
        hint="run it where the memory is: jidomem check; the server's standard error may say more",
        code="result_too_large",
    )
