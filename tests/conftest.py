"""Shared fixtures: a memory root in a temporary folder with a deterministic clock, ids and nonces."""

import gc
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

os.environ["HYPOTHESIS_NO_PLUGINS"] = "1"  # the plugin of trio, which no test uses, takes 0.25 s to import
import hypothesis

import jidomem
from jidomem.base.clock import Sources
from jidomem.runtime import settings, similar

sys.modules["rfc3987_syntax"] = None  # jsonschema reads its grammar for 1.2 s, for a format that no schema here uses
os.environ.pop("COLUMNS", None)  # the width of the runner's terminal
SHM, ROOM = Path("/dev/shm"), 4 << 30


def in_memory():
    """Return whether temporary folders fit in memory.

    The tests kill processes, not machines, so flushing to a disk proves nothing more. `TMPDIR=/tmp pytest` uses a disk.
    """
    try:
        status = os.statvfs(SHM)
    except OSError:
        return False
    return os.access(SHM, os.W_OK) and not status.f_flag & os.ST_NOEXEC and status.f_bavail * status.f_frsize > ROOM


pytest.register_assert_rewrite("log_contract")  # a suite that test modules inherit
os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # some tests import onnxruntime themselves
os.environ["JIDOMEM_EMBEDDER"] = "none"  # tests that need vectors set it
similar.ReceiptSearch.default = "off"  # likewise the similar memories of receipts
if "TMPDIR" not in os.environ and in_memory():
    os.environ["TMPDIR"] = tempfile.tempdir = str(SHM)

START = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)


def fixed_sources(start: datetime = START, first: int = 1) -> Sources:
    """Return a clock that advances a second with each reading, and ids and nonces that count from *first*."""
    ticks, ids, nonces = count(), count(first), count(first)
    return Sources(
        now=lambda: start + timedelta(seconds=next(ticks)),
        new_id=lambda: f"01900000-0000-7000-8000-{next(ids):012x}",
        nonce=lambda: next(nonces).to_bytes(32, "big"),
    )


def intent(**fields):
    """Return a valid fact, changed by *fields*."""
    return {
        "type": "fact",
        "summary": "the build needs Rust 1.80",
        "applies_to_project": "p",
        "asserted_by": "architect",
        "asserted_in": "s-1",
        "confidence": "high",
        **fields,
    }


def decision(**fields):
    """Return a valid architectural decision, changed by *fields*."""
    return intent(**{"type": "architectural_decision", "summary": "Use Oxigraph", "rationale": "it embeds", **fields})


def wait_until(condition, seconds=60):
    """Return the value of *condition* once another thread or process makes it true; fail after *seconds*."""
    start = time.monotonic()
    while not (value := condition()):
        waited = time.monotonic() - start
        assert waited < seconds, f"not true within {seconds} s: {condition}"
        time.sleep(0.005 + waited / 20)  # with growing intervals
    return value


def is_search_file(path: Path, root: Path) -> bool:
    """Return whether *path* is a search file of *root*, which the read of a list may create, or their folder."""
    parts = path.relative_to(root).parts
    return parts == ("cache",) or parts[:2] == ("cache", "text")


def files(root: Path) -> dict[str, bytes]:
    """Return the bytes of every file below *root*, without locks and search files."""
    found = {}
    for folder, _, names in os.walk(root):
        paths = [Path(folder, name) for name in names if not name.endswith(".lock")]
        found |= {str(path.relative_to(root)): path.read_bytes()
                  for path in paths if path.is_file() and not is_search_file(path, root)}  # fmt: skip
    return dict(sorted(found.items()))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect no garbage while tests are collected, exclude their objects afterwards, and collect rarely."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(10_000, 10, 10)  # the defaults take a fifteenth of the time
        gc.enable()


#: The longest files of tests. They run first, so that all workers finish at the same time.
LONG = (
    "test_pythons.py",
    "test_docs_site.py",
    "test_pages.py",
    "test_followed_rules.py",
    "test_stateful.py",
    "test_kill.py",
    "test_lossless_exports.py",
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Put the longest tests first."""
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))


SCALE = 1
hypothesis.settings.register_profile("tests", deadline=None)  # no test asserts a time
hypothesis.settings.load_profile("tests")
hypothesis.settings.register_profile("brief", max_examples=10)  # for tests that run with all examples in another Python


def pytest_addoption(parser):
    parser.addoption("--scale", type=int, default=1, help="how many times longer the torture and property tests run")


def pytest_configure(config):
    global SCALE
    SCALE = config.getoption("--scale")


def examples(number):
    """Return the number of examples of a slow property test: *number* in CI, more in ci/torture."""
    return number * SCALE


@pytest.fixture
def scale(request):
    """Return how many times longer than in CI a torture test runs."""
    return request.config.getoption("--scale")


def pytest_terminal_summary(terminalreporter):
    """Name each skipped test in the last lines."""
    for report in terminalreporter.stats.get("skipped", []):
        terminalreporter.write_line(f"skipped: {report.nodeid}: {report.longrepr[-1]}")


def pytest_sessionfinish(session):
    """Remove the files of the users; fail a CI run that skipped a test."""
    shutil.rmtree(HOMES, ignore_errors=True)
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") == "true" and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


HOMES = Path(tempfile.mkdtemp(prefix="homes-"))
_homes = map(str, count())


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """Hide the root, project, agent and account of the user from the tests; a fixture would make a folder for each."""
    for name in ("JIDOMEM_ROOT", "JIDOMEM_PROJECT", "JIDOMEM_AGENT", "JIDOMEM_SESSION", "JIDOMEM_INDEX"):
        os.environ.pop(name, None)
    home = HOMES / next(_homes)
    os.environ |= {
        "USER": "user",
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "NO_COLOR": "1",
    }


@pytest.fixture
def root(tmp_path):
    """Return the folder of a new root."""
    return tmp_path / "root"


@pytest.fixture(scope="module")
def copy_built(tmp_path_factory):
    """Return a function that fills *folder* with a copy of the result of `build`, which runs once in a module."""
    originals = {}

    def copy(build, folder):
        name = build.__qualname__
        if name not in originals:
            original = tmp_path_factory.mktemp("original") / folder.name
            build(original)
            originals[name] = original
        return shutil.copytree(originals[name], folder, symlinks=True, dirs_exist_ok=True)

    return copy


@pytest.fixture(params=["words", "likeness"])
def by(request, monkeypatch):
    """Run recall by `words` alone, and with the local embedder too (`likeness`)."""
    monkeypatch.setenv("JIDOMEM_EMBEDDER", {"words": "none", "likeness": "local"}[request.param])
    return request.param


@pytest.fixture
def memory(root):
    with jidomem.open(root, sources=fixed_sources()) as opened:
        yield opened


@pytest.fixture
def writer(memory):
    return memory.writer


@pytest.fixture
def reader(memory):
    return memory.reader


@pytest.fixture
def small_disk(tmp_path):
    """A file system of two megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"a file system cannot be mounted: {made.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server; `address()` is the address of a new root."""
    import postgres_server

    if postgres_server.BINARIES is None:
        pytest.skip("PostgreSQL is not installed: ci/parts")
    with postgres_server.server() as running:
        yield running


@pytest.fixture(scope="session")
def seaweed():
    """A SeaweedFS server, an object store."""
    import seaweed

    with seaweed.server() as running:
        yield running


@pytest.fixture
def bucket(seaweed):
    """The address of a new root in the object store; the environment has the credentials."""
    with seaweed.user():
        yield seaweed.address()


@pytest.fixture(params=["file", "postgres"])
def opened_state(request, tmp_path):
    """Return a function that opens the working state of a root with some tables, in a folder or a database."""
    from jidomem.runtime.state import State

    opened, address = [], request.param == "postgres" and request.getfixturevalue("postgres").address()

    def state(tables):
        if address:
            from jidomem.extras.servers.postgres_state import PostgresState

            opened.append(PostgresState(address, "read" if "shown" in tables else "working"))
        else:
            opened.append(State(tmp_path, tables))
        return opened[-1]

    yield state
    for each in opened:
        each.close()


class ToyEmbedder:
    """Vectors of the words of a text: texts that share words are similar. `asked` has every text."""

    def __init__(self, name="toy-1", dimensions=96):
        self.name, self.asked, self.fault, self._dimensions = name, [], None, dimensions

    def dimensions(self):
        return self._dimensions

    def generate(self, texts):
        if self.fault:
            raise self.fault
        self.asked += texts
        return [self._vector(text) for text in texts]

    def _vector(self, text):
        found = [0.0] * self._dimensions
        for word in re.findall(r"\w+", text.lower()):
            signs = int.from_bytes(hashlib.blake2b(f"{self.name} {word}".encode()).digest(), "big")
            found = [value + (1 if signs >> place & 1 else -1) for place, value in enumerate(found)]
        return found


@pytest.fixture(scope="session")
def oxigraph_server():
    """The address of an `oxigraph serve` that all tests of the run share."""
    import sparql_servers

    if sparql_servers.OXIGRAPH is None:
        pytest.skip("oxigraph is not installed: pip install oxigraph")
    with sparql_servers.oxigraph() as url:
        yield url


@pytest.fixture(scope="session")
def virtuoso_server():
    """The address of a Virtuoso 7 that all tests of the run share."""
    import sparql_servers

    if sparql_servers.VIRTUOSO is None:
        pytest.skip("virtuoso-t is not installed: ci/parts installs virtuoso-opensource-7-bin")
    with sparql_servers.virtuoso() as url:
        yield url


@pytest.fixture(scope="session")
def program_folder(tmp_path_factory):
    """The folder of a `jidomem` that has the servers loaded, whose imports take longer than most tests of them."""
    import forked_jidomem

    folder = tmp_path_factory.mktemp("program")
    with forked_jidomem.program(folder, "jidomem.serve.mcp.http"):
        yield folder


@pytest.fixture(scope="module")
def loaded_program(program_folder):
    """The same program, on PATH."""
    import forked_jidomem

    with forked_jidomem.first_on_path(program_folder):
        yield


@pytest.fixture
def config():
    """The configuration file of the user, readable by no other user."""
    path = settings.own_config()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(0o600)
    return path
