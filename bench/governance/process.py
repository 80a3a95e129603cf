"""A system in a process of its own, which can be killed: calls go in and answers come out by its standard streams.

python -m bench.governance.process MODULE:CLASS FOLDER
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.governance.system import System

REPOSITORY = Path(__file__).parents[2]
Open = Callable[[Path], Any]


class ProcessEnded(Exception):
    """The process ended before it answered."""


def system(where: str) -> type[System]:
    """Return the adapter that `module:Class` names."""
    module, _, name = where.partition(":")
    found = getattr(import_module(module), name)
    assert issubclass(found, System), where
    return found


class Process:
    """The system of *where* over *folder*: every public method of `System` is called in a process of its own."""

    def __init__(self, where: str, folder: Path) -> None:
        command = [sys.executable, "-m", __name__, where, str(folder)]
        home = {name: str(folder) for name in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "TMPDIR")}
        # in a group of its own, so that what the adapter starts is killed with it; in a home of its own, so that all
        # that is written can be found, and nobody's own settings count
        self.popen = subprocess.Popen(
            command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
            env={**os.environ, **home, "JIDOMEM_EMBEDDER": "none"},
        )  # fmt: skip

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*arguments: Any) -> Any:
            self.begin(name, *arguments)
            return self.answer()

        return call

    def begin(self, name: str, *arguments: Any) -> None:
        """Make a call, and do not wait for its answer."""
        try:
            pickle.dump((name, arguments), self.popen.stdin)
            self.popen.stdin.flush()
        except BrokenPipeError as error:
            raise ProcessEnded(name) from error

    def answer(self) -> Any:
        """Return what the last call returned, or raise what it raised."""
        try:
            value = pickle.load(self.popen.stdout)
        except (EOFError, pickle.UnpicklingError) as error:
            raise ProcessEnded(f"exit code {self.popen.wait()}") from error
        if isinstance(value, Exception):
            raise value
        return value

    def kill(self) -> None:
        """End it with SIGKILL, and all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.popen.pid, signal.SIGKILL)
        self._left()

    def close(self) -> None:
        """Close the memory, and the process with it."""
        with suppress(ProcessEnded):
            self.begin("close")
            self.answer()
        self._left()

    def _left(self) -> None:
        with suppress(BrokenPipeError):
            self.popen.stdin.close()
        self.popen.stdout.close()
        self.popen.wait()


@contextmanager
def opened(open_: Open, folder: Path) -> Iterator[Any]:
    """A system that is closed at the end."""
    found = open_(folder)
    try:
        yield found
    finally:
        found.close()


def serve(where: str, folder: Path) -> None:
    """Answer calls until `close`."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    inside = None
    while True:
        try:
            name, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            inside = inside or system(where)(folder)
            value = getattr(inside, name)(*arguments)
        except Exception as error:
            value = _portable(error)
        pickle.dump(value, answers)
        answers.flush()
        if name == "close":
            return


def _portable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]))
