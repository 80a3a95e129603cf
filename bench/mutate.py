"""Change the code in one place at a time and tell which changes no test notices.

    ci/mutate [--sample N] [--seed N] [spaces | tiers | write | commit | rank | FILE ...]

Nothing is written into the checkout: a changed module is compiled in a process of its own, which runs the tests that
pass through the changed lines, the quickest first, until one fails.  What a test starts as another process is the code
as it stands.  Types, docstrings and log lines are left alone.  It ends with 0 where each target kills 85 %.
"""

from __future__ import annotations

import argparse
import os
import pickle
import random
import resource
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import coverage
import pytest
from hypothesis import Phase, settings

from bench.mutants import Mutant, mutants

ROOT = Path(__file__).parent.parent
ENOUGH = 0.85
LONGEST = 3600  # seconds for all tests of a target on the code as it stands
AT_ONCE = 2
QUIET = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # hypothesis is imported before pytest is run
FIRST = ("pyoxigraph", "rdflib", "re2", "orjson", "uuid_utils", "xdist.plugin", "_hypothesis_pytestplugin")


@dataclass(frozen=True)
class Target:
    """Code to change, the tests that are to notice, and what pytest is to leave out of them."""

    code: tuple[str, ...]
    tests: tuple[str, ...]
    without: tuple[str, ...] = ()

    def files(self) -> list[str]:
        found = (ROOT / name for name in self.code)
        every = [path for name in found for path in (sorted(name.glob("*.py")) if name.is_dir() else [name])]
        return [str(path.relative_to(ROOT)) for path in every]


TARGETS = {
    "spaces": Target(
        tuple(f"jidomem/working/{name}.py" for name in ("__init__", "agent", "container", "memory", "thread")),
        ("tests/working",),
    ),
    "tiers": Target(("jidomem/working/tiers.py",), ("tests/working",)),
    "write": Target(
        ("jidomem/write",),
        (
            "tests/write",
            "tests/recall/test_freshness.py",
            "tests/curation/test_review_queue.py",
            *(f"tests/runtime/test_{name}.py" for name in ("conversation", "entry_store")),
        ),
        ("--ignore-glob=*/test_stateful*.py",),  # long, and other tests notice the same
    ),
    "commit": Target(
        ("jidomem/journal/commit.py", "jidomem/journal/rewrite.py"),
        ("tests/journal", "tests/curation/test_redaction.py", "tests/cli/test_integrity_verbs.py"),
    ),
    "rank": Target(
        ("jidomem/recall/bm25.py",),
        ("tests/recall/test_rank.py", "tests/recall/test_recall.py", "tests/recall/test_recall_law.py"),
    ),
}


@dataclass
class Passage:
    """What the tests do with the code as it stands: how long each takes, and who passes through which line."""

    took: dict[str, float]
    failed: set[str]
    lines: dict[str, dict[int, list[str]]]

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests that pass through the changed statement, or all if it runs when it is imported."""
        by_line = self.lines[mutant.path]
        through = {test for line in mutant.lines for test in by_line.get(line, ())}
        able = (through if mutant.called else set(self.took)) & set(self.took) - self.failed
        return sorted(able, key=self.took.__getitem__)


class Watched:
    """A plugin that keeps what each test takes and where it goes."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self.measured = measured
        self.passage = Passage({}, set(), {})

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.measured.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.passage.took[report.nodeid] = self.passage.took.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.passage.failed.add(report.nodeid)


class Chosen:
    """A plugin that runs some tests, in a given order, and those that were not there before the change."""

    def __init__(self, tests: list[str], known: set[str]) -> None:
        self.rank = {test: number for number, test in enumerate(tests)}
        self.left_out = known - set(tests)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid not in self.left_out]
        items.sort(key=lambda item: self.rank.get(item.nodeid, -1))


def apart(run: Callable[[], int]) -> int:
    """Return the id of a new process, head of a group of its own, that ends with what *run* returns."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setpgid(0, 0)
        said = os.open(Path(os.environ["MUTATE_FOLDER"], f"{os.getpid()}.log"), os.O_RDWR | os.O_CREAT)
        for stream in (1, 2):
            os.dup2(said, stream)
        code = run()
    except Exception:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def run_tests(plugin: object, arguments: list[str]) -> int:
    """Return how pytest ended; a test of a law that fails is not made smaller first."""
    quick = (Phase.explicit, Phase.generate)
    settings.register_profile("mutate", phases=quick, derandomize=True, database=None, deadline=None)
    settings.load_profile("mutate")
    folder = tempfile.mkdtemp(prefix="mutate-", dir=os.environ["MUTATE_FOLDER"])
    try:
        return int(
            pytest.main(
                ["-p", "no:xdist", "--assert=plain", *QUIET, "--basetemp", f"{folder}/t", *arguments], plugins=[plugin]
            )
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def passage(target: Target, files: list[str]) -> Passage:
    """Run the tests of *target* on the code as it stands and return where they go in *files*."""
    answer = Path(os.environ["MUTATE_FOLDER"], "passage")

    def watch() -> int:
        signal.alarm(LONGEST)
        measured = coverage.Coverage(data_file=None, config_file=False, include=[str(ROOT / name) for name in files])
        watched = Watched(measured)
        measured.start()
        code = run_tests(watched, [*target.tests, *files, *target.without])
        measured.stop()
        data = measured.get_data()
        watched.passage.lines = {name: data.contexts_by_lineno(str(ROOT / name)) for name in files}
        answer.write_bytes(pickle.dumps(watched.passage))
        return code

    pid = apart(watch)
    os.waitpid(pid, 0)
    if not answer.exists():
        raise SystemExit(Path(os.environ["MUTATE_FOLDER"], f"{pid}.log").read_text())
    found: Passage = pickle.loads(answer.read_bytes())
    for test in sorted(found.failed):
        print(f"left out, for it fails without any change: {test}")
    return found


def start(mutant: Mutant, known: Passage) -> int:
    """Return the id of a process that runs the tests of *mutant* on the changed code."""
    tests = known.tests_of(mutant)
    allowed = 20 + 4 * int(sum(known.took[test] for test in tests))

    def tried() -> int:
        resource.setrlimit(resource.RLIMIT_CPU, (allowed, allowed))
        signal.alarm(2 * allowed + 120)
        with warnings.catch_warnings(action="ignore"):
            code = mutant.compiled(str(ROOT / mutant.path))
        unchanged = SourceFileLoader.get_code

        def get_code(self: SourceFileLoader, fullname: str) -> Any:
            return code if self.path == str(ROOT / mutant.path) else unchanged(self, fullname)

        SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
        # A module that cannot be imported is noticed here: pytest would end as if it had been called wrongly.
        import_module(mutant.path.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
        return run_tests(Chosen(tests, set(known.took)), ["-x", *sorted({test.split("::")[0] for test in tests})])

    return apart(tried) if tests else apart(lambda: 0)


def survivors(chosen: list[Mutant], known: Passage) -> Iterator[Mutant]:
    """Try each of *chosen* and yield those that no test noticed."""
    waiting, running = list(reversed(chosen)), dict[int, Mutant]()
    try:
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                mutant = waiting.pop()
                running[start(mutant, known)] = mutant
            pid, status = os.wait()
            mutant = running.pop(pid)
            end(pid)
            if os.waitstatus_to_exitcode(status) == pytest.ExitCode.USAGE_ERROR:
                raise SystemExit(f"pytest could not be run for {mutant}")
            if os.waitstatus_to_exitcode(status) in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
                yield mutant
    finally:
        for pid in running:
            end(pid)


def end(group: int) -> None:
    """End what is left of a process and of those it started."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def share_killed(name: str, sample: int | None, seed: int) -> float:
    """Try changes of a target, or of one file of it, print what survived, and return the share that did not."""
    target = next(target for key, target in TARGETS.items() if name == key or name in target.files())
    files = [name] if name in target.files() else target.files()
    every = [mutant for path in files for mutant in mutants(path, (ROOT / path).read_text("utf-8"))]
    if not every:
        raise SystemExit(f"{name}: there is nothing in it to change")
    chosen = every if sample is None else random.Random(seed).sample(every, min(sample, len(every)))
    known, lived = passage(target, files), 0
    for mutant in survivors(chosen, known):
        lived += 1
        print(f"survived: {mutant}", flush=True)
    killed = len(chosen) - lived
    print(f"{name}: {killed} of {len(chosen)} killed ({killed / len(chosen):.0%}), {len(every)} there are", flush=True)
    return killed / len(chosen)


def main() -> None:
    names = [*TARGETS, *(path for target in TARGETS.values() for path in target.files())]
    parser = argparse.ArgumentParser(
        prog="ci/mutate", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"{', '.join(TARGETS)}, or a file of one of them")
    parser.add_argument("--sample", type=int, help="how many changes of each target to try; all unless said")
    parser.add_argument("--seed", type=int, default=1, help="which sample to draw")
    arguments = parser.parse_args()
    if unknown := set(arguments.targets) - set(names):
        parser.error(f"{', '.join(sorted(unknown))}: name one of {', '.join(TARGETS)}, or a file of theirs")
    if arguments.sample is not None and arguments.sample < 1:
        parser.error("--sample: try one at least")
    os.chdir(ROOT)
    for module in FIRST:
        import_module(module)
    with tempfile.TemporaryDirectory(prefix="mutate-", ignore_cleanup_errors=True) as folder:
        os.environ["MUTATE_FOLDER"] = folder
        shares = [share_killed(name, arguments.sample, arguments.seed) for name in arguments.targets or TARGETS]
    sys.exit(min(shares) < ENOUGH)


if __name__ == "__main__":
    main()
