"""A memory system in a process of its own, which can be killed; calls and answers are pickled on its standard streams.

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


def system(location: str) -> type[System]:
    """Return the adapter class of `module:Class`."""
    module, _, name = location.partition(":")
    adapter = getattr(import_module(module), name)
    assert issubclass(adapter, System), location
    return adapter


class Process:
    """The system of *location* on *folder*: every public method of `System` is called in a process of its own.

    The process has its own group, so that what the adapter starts is killed with it, and its own home, so that all
    that is written is below *folder* and no settings of the user apply.
    """

    def __init__(self, location: str, folder: Path) -> None:
        command = [sys.executable, "-m", __name__, location, str(folder)]
        folders = {
            name: str(folder) for name in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "TMPDIR")
        }
        self.popen = subprocess.Popen(
            command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
            env={**os.environ, **folders, "JIDOMEM_EMBEDDER": "none"},
        )  # fmt: skip

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*arguments: Any) -> Any:
            self.begin(name, *arguments)
            return self.answer()

        return call

    def begin(self, name: str, *arguments: Any) -> None:
        """Send a call without waiting for its answer."""
        try:
            pickle.dump((name, arguments), self.popen.stdin)
            self.popen.stdin.flush()
        except BrokenPipeError as error:
            raise ProcessEnded(name) from error

    def answer(self) -> Any:
        """Return the result of the last call, or raise its exception."""
        try:
            value = pickle.load(self.popen.stdout)
        except (EOFError, pickle.UnpicklingError) as error:
            raise ProcessEnded(f"exit code {self.popen.wait()}") from error
        if isinstance(value, Exception):
            raise value
        return value

    def kill(self) -> None:
        """Kill the process and its children with SIGKILL."""
        with suppress(ProcessLookupError):
            os.killpg(self.popen.pid, signal.SIGKILL)
        self._wait()

    def close(self) -> None:
        """Close the memory and end the process."""
        with suppress(ProcessEnded):
            self.begin("close")
            self.answer()
        self._wait()

    def _wait(self) -> None:
        with suppress(BrokenPipeError):
            self.popen.stdin.close()
        self.popen.stdout.close()
        self.popen.wait()


@contextmanager
def opened(open_system: Open, folder: Path) -> Iterator[Any]:
    """Yield the system, which is closed at the end."""
    adapter = open_system(folder)
    try:
        yield adapter
    finally:
        adapter.close()


def serve(location: str, folder: Path) -> None:
    """Answer calls until `close`."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of libraries goes to standard error
    instance = None
    while True:
        try:
            name, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            instance = instance or system(location)(folder)
            value = getattr(instance, name)(*arguments)
        except Exception as error:
            value = _picklable(error)
        pickle.dump(value, answers)
        answers.flush()
        if name == "close":
            return


def _picklable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]))
