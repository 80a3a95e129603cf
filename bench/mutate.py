"""Mutation testing: change the code in one place at a time and report the changes that no test detects.

    ci/mutate [--sample N] [--seed N] [spaces | tiers | write | commit | rank | FILE ...]

No file is changed: a mutant is compiled in a process of its own, which runs the tests that execute the changed lines,
the fastest first, until one fails.  What a test starts as another process is the unchanged code.  Types, docstrings and
log calls are not changed.  It exits with 0 if the tests of each target kill 85 % of its mutants.
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
MIN_KILLED = 0.85
BASELINE_SECONDS = 3600  # limit for all tests of a target on the unchanged code
PROCESSES = 2
WARNING_OPTIONS = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # hypothesis is imported before pytest is run
PRELOADED = ("pyoxigraph", "rdflib", "re2", "orjson", "uuid_utils", "xdist.plugin", "_hypothesis_pytestplugin")


@dataclass(frozen=True)
class Target:
    """Code to change, the tests that should detect the changes, and options of pytest that exclude some of them."""

    code: tuple[str, ...]
    tests: tuple[str, ...]
    excluded: tuple[str, ...] = ()

    def files(self) -> list[str]:
        """Return the files of the code, relative to the repository."""
        paths = (ROOT / name for name in self.code)
        files = [path for name in paths for path in (sorted(name.glob("*.py")) if name.is_dir() else [name])]
        return [str(path.relative_to(ROOT)) for path in files]


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
        ("--ignore-glob=*/test_stateful*.py",),  # long, and other tests detect the same
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
class Baseline:
    """The run on the unchanged code: seconds of each test, the failed ones, and the tests of each line by file."""

    seconds: dict[str, float]
    failed: set[str]
    lines: dict[str, dict[int, list[str]]]

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests that execute the changed statement, or all if it runs at import; fastest first."""
        tests_by_line = self.lines[mutant.path]
        covering = {test for line in mutant.lines for test in tests_by_line.get(line, ())}
        runnable = (covering if mutant.in_function else set(self.seconds)) & set(self.seconds) - self.failed
        return sorted(runnable, key=self.seconds.__getitem__)


class BaselinePlugin:
    """A plugin of pytest that records duration, failure and coverage of each test."""

    def __init__(self, coverage_run: coverage.Coverage) -> None:
        self.coverage_run = coverage_run
        self.baseline = Baseline({}, set(), {})

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.coverage_run.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.baseline.seconds[report.nodeid] = self.baseline.seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.baseline.failed.add(report.nodeid)


class SelectionPlugin:
    """A plugin of pytest that runs *tests* in their order, and tests that are not *known* from the baseline."""

    def __init__(self, tests: list[str], known: set[str]) -> None:
        self.rank = {test: number for number, test in enumerate(tests)}
        self.excluded = known - set(tests)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid not in self.excluded]
        items.sort(key=lambda item: self.rank.get(item.nodeid, -1))


def run_in_process(run: Callable[[], int]) -> int:
    """Call *run* in a new process with its own group, which exits with the returned code; return its id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setpgid(0, 0)
        log = os.open(Path(os.environ["MUTATE_FOLDER"], f"{os.getpid()}.log"), os.O_RDWR | os.O_CREAT)
        for stream in (1, 2):
            os.dup2(log, stream)
        code = run()
    except Exception:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def run_tests(plugin: object, arguments: list[str]) -> int:
    """Run pytest and return its exit code; failing examples of property tests are not shrunk."""
    quick = (Phase.explicit, Phase.generate)
    settings.register_profile("mutate", phases=quick, derandomize=True, database=None, deadline=None)
    settings.load_profile("mutate")
    folder = tempfile.mkdtemp(prefix="mutate-", dir=os.environ["MUTATE_FOLDER"])
    try:
        return int(
            pytest.main(
                ["-p", "no:xdist", "--assert=plain", *WARNING_OPTIONS, "--basetemp", f"{folder}/t", *arguments],
                plugins=[plugin],
            )
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure_baseline(target: Target, files: list[str]) -> Baseline:
    """Run the tests of *target* on the unchanged code, with the coverage of *files*."""
    result_file = Path(os.environ["MUTATE_FOLDER"], "baseline")

    def run_baseline() -> int:
        signal.alarm(BASELINE_SECONDS)
        coverage_run = coverage.Coverage(
            data_file=None, config_file=False, include=[str(ROOT / name) for name in files]
        )
        plugin = BaselinePlugin(coverage_run)
        coverage_run.start()
        code = run_tests(plugin, [*target.tests, *files, *target.excluded])
        coverage_run.stop()
        data = coverage_run.get_data()
        plugin.baseline.lines = {name: data.contexts_by_lineno(str(ROOT / name)) for name in files}
        result_file.write_bytes(pickle.dumps(plugin.baseline))
        return code

    pid = run_in_process(run_baseline)
    os.waitpid(pid, 0)
    if not result_file.exists():
        raise SystemExit(Path(os.environ["MUTATE_FOLDER"], f"{pid}.log").read_text())
    baseline: Baseline = pickle.loads(result_file.read_bytes())
    for test in sorted(baseline.failed):
        print(f"excluded, because it fails without a change: {test}")
    return baseline


def start(mutant: Mutant, baseline: Baseline) -> int:
    """Return the id of a process that runs the tests of *mutant* on the changed code."""
    tests = baseline.tests_of(mutant)
    cpu_limit = 20 + 4 * int(sum(baseline.seconds[test] for test in tests))

    def run_mutant() -> int:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_limit, cpu_limit))
        signal.alarm(2 * cpu_limit + 120)
        with warnings.catch_warnings(action="ignore"):
            code = mutant.compiled(str(ROOT / mutant.path))
        original = SourceFileLoader.get_code

        def get_code(self: SourceFileLoader, fullname: str) -> Any:
            return code if self.path == str(ROOT / mutant.path) else original(self, fullname)

        SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
        # A failing import is detected here: pytest would report it as a usage error.
        import_module(mutant.path.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
        return run_tests(
            SelectionPlugin(tests, set(baseline.seconds)), ["-x", *sorted({test.split("::")[0] for test in tests})]
        )

    return run_in_process(run_mutant) if tests else run_in_process(lambda: 0)


def survivors(selected: list[Mutant], baseline: Baseline) -> Iterator[Mutant]:
    """Run the tests of each of *selected* and yield the mutants that no test detects."""
    queue, running = list(reversed(selected)), dict[int, Mutant]()
    try:
        while queue or running:
            while queue and len(running) < PROCESSES:
                mutant = queue.pop()
                running[start(mutant, baseline)] = mutant
            pid, status = os.wait()
            mutant = running.pop(pid)
            kill_group(pid)
            if os.waitstatus_to_exitcode(status) == pytest.ExitCode.USAGE_ERROR:
                raise SystemExit(f"pytest could not be run for {mutant}")
            if os.waitstatus_to_exitcode(status) in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
                yield mutant
    finally:
        for pid in running:
            kill_group(pid)


def kill_group(group: int) -> None:
    """Kill a process and those that it started."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def share_killed(name: str, sample: int | None, seed: int) -> float:
    """Test mutants of a target, or of one file of it; print the survivors, and return the share that was killed."""
    target = next(target for key, target in TARGETS.items() if name == key or name in target.files())
    files = [name] if name in target.files() else target.files()
    all_mutants = [mutant for path in files for mutant in mutants(path, (ROOT / path).read_text("utf-8"))]
    if not all_mutants:
        raise SystemExit(f"{name} has no mutants: name a file with code")
    total = len(all_mutants)
    selected = all_mutants if sample is None else random.Random(seed).sample(all_mutants, min(sample, total))
    survived = 0
    for mutant in survivors(selected, measure_baseline(target, files)):
        survived += 1
        print(f"survived: {mutant}", flush=True)
    killed = len(selected) - survived
    print(f"{name}: {killed} of {len(selected)} killed ({killed / len(selected):.0%}), {total} in all", flush=True)
    return killed / len(selected)


def main() -> None:
    names = [*TARGETS, *(path for target in TARGETS.values() for path in target.files())]
    parser = argparse.ArgumentParser(
        prog="ci/mutate", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"{', '.join(TARGETS)}, or a file of one of them")
    parser.add_argument("--sample", type=int, metavar="N", help="mutants of each target (default: all)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the sample (default: 1)")
    arguments = parser.parse_args()
    if unknown := set(arguments.targets) - set(names):
        parser.error(f"{', '.join(sorted(unknown))}: name one of {', '.join(TARGETS)}, or a file of theirs")
    if arguments.sample is not None and arguments.sample < 1:
        parser.error("--sample: name a number of at least 1")
    os.chdir(ROOT)
    for module in PRELOADED:
        import_module(module)
    with tempfile.TemporaryDirectory(prefix="mutate-", ignore_cleanup_errors=True) as folder:
        os.environ["MUTATE_FOLDER"] = folder
        shares = [share_killed(name, arguments.sample, arguments.seed) for name in arguments.targets or TARGETS]
    sys.exit(min(shares) < MIN_KILLED)


if __name__ == "__main__":
    main()
