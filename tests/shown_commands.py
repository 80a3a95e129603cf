"""Runs the commands that a page shows, with real servers in place of those that it names."""

import glob
import json
import os
import shlex
import subprocess
import sys
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path

from click.testing import CliRunner

from jidomem_cli.main import cli

BIN = Path(sys.executable).parent
#: What a page may call beside `jidomem` itself.
PROGRAMS = ("git", "echo", "cat", "curl", "sed")
#: What pages call a server that a reader has, and the fixture that has it here.
NAMED = {
    "postgresql://db/team": "postgres",
    "postgresql://memory@db/memory": "postgres",
    "s3://bucket/prefix": "bucket",
    "sparql+http://triples.example:7878/query": "oxigraph_server",
}
SERVED = "http://127.0.0.1:8700"


class Reader(ExitStack):
    """A shell that runs one command after another; a server runs until the next one starts, or until the end."""

    def __init__(self, fixture, monkeypatch):
        super().__init__()
        self._fixture, self._monkeypatch = fixture, monkeypatch
        self._stands_for, self._served = {}, self.enter_context(ExitStack())
        monkeypatch.setenv("XDG_CACHE_HOME", str(Path.cwd().parent / "cache"))

    def run(self, command):
        """Return the exit code and the output of *command*."""
        command = self._here(command)
        words = shlex.split(command, comments=True)
        if words[0] == "export":
            for word in words[1:]:
                self._monkeypatch.setenv(*word.split("=", 1))
            return 0, ""
        if words[0] != "jidomem":
            assert words[0] in PROGRAMS, command
            return _run(command)
        if "serve" in words:
            self._served.close()
            self._fixture("loaded_program")
            self._stands_for[SERVED] = self._served.enter_context(serving(words))
            return 0, ""
        return run_here(words)

    def _here(self, command):
        for name, fixture in NAMED.items():
            if name in command and name not in self._stands_for:
                found = self._fixture(fixture)
                self._stands_for[name] = found if isinstance(found, str) else found.address()
        for name, here in self._stands_for.items():
            command = command.replace(name, here)
        return command


@contextmanager
def serving(words):
    """Start the server of the command *words* on a free port, and return its address once it answers."""
    command = [*words, "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            url = json.loads(line)["url"].replace("0.0.0.0", "127.0.0.1")
            with urllib.request.urlopen(f"{url}/healthz", timeout=30) as answer:
                assert json.load(answer) == {"status": "ok"}
            yield url
        finally:
            process.terminate()
            process.communicate(timeout=30)
        assert process.returncode == 0


def run_here(words):
    """Return the exit code and output of the command *words*, run here; a last `> FILE` gets the output."""
    file = words[-1] if words[-2:-1] == [">"] else None
    words = words[1:-2] if file else words[1:]
    given = [path for word in words for path in (sorted(glob.glob(word)) if "*.md" in word else [word])]
    done = CliRunner().invoke(cli, given)
    if file:
        Path(file).write_text(done.stdout, "utf-8")
    return done.exit_code, done.output


def _run(command):
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, shell=True, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr
