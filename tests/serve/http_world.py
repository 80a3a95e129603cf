"""A memory served: in this process by Flask's client, or by `jidomem serve` in a process of its own."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

BIN = os.path.dirname(sys.executable)
JSON = {"Content-Type": "application/json"}
NDJSON = {"Content-Type": "application/x-ndjson"}


class Client:
    """One connection to a running server that stays open."""

    def __init__(self, url):
        self.url = url
        self.connection = HTTPConnection(urlsplit(url).netloc, timeout=120)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def ask(self, method, path, body=None, headers=None):
        """The status, the headers and the body of the answer."""
        self.connection.request(method, path, body, headers or {})
        response = self.connection.getresponse()
        return response.status, response.headers, response.read()

    def get(self, path, **headers):
        """The answer as JSON."""
        status, _, body = self.ask("GET", path, headers=headers)
        assert status == 200, body
        return json.loads(body)

    def submit(self, values, project="p", **headers):
        """The status and the outcome of the intent, or the outcomes of the intents."""
        status, _, body = self.ask("POST", f"/projects/{project}/intents", json.dumps(values), {**JSON, **headers})
        return status, json.loads(body)


def as_root(root):
    """*root* as text; a folder is a memory root by now, as a server makes none."""
    if isinstance(root, Path):
        (root / "projects").mkdir(parents=True, exist_ok=True)
    return str(root)


@contextmanager
def running(root, *options, environment=None, program=f"{BIN}/jidomem"):
    """`jidomem serve` on a free port; the process has `url`."""
    command = [program, "serve", "--root", as_root(root), "--project", "p", "--port", "0", "--json", *options]
    with started(command, environment) as process:
        yield process


def serving(root, *options, environment=None):
    """The same by the program of the fixture `loaded_program`."""
    return running(root, *options, environment=environment, program="jidomem")


@contextmanager
def started(command, environment=None):
    """A server that prints its URL in its first line; it is stopped in the end."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            process.url = json.loads(line)["url"]
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(15)
                except subprocess.TimeoutExpired:
                    process.kill()
                    raise


def children(server):
    """The ids of the live child processes of the server."""
    pids = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rsplit(")", 1)[1].split()[:2]
        except OSError:
            continue
        if int(parent) == server.pid and state != "Z":
            pids.append(int(path.parent.name))
    return pids
