"""CPU time and Python calls of each stage of the write pipeline, per intent and per triple, beside the whole write.

    python -m bench.budget [--memories N] [--rounds N]

A stage has the time of its functions without that of nested stages: CPU time of the thread and, for the disk, waiting;
the median of the rounds.  Calls are counted in a run of their own, because counting is slow.  "queue and receipts" of a
single submit includes the wait for the thread that looks up similar memories.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from statistics import median
from threading import get_ident
from time import perf_counter
from typing import Any

import jidomem
from bench import harness, load
from bench.generate import Fields
from bench.harness import Options, Row, rounded
from jidomem import Jidomem
from jidomem.base import disk
from jidomem.index.follower import IndexFollower
from jidomem.journal import commit, journal
from jidomem.journal.journal import FileJournal, Stream
from jidomem.journal.stream import Folder
from jidomem.write import conflict, permissions, secrets, triples, validate
from jidomem.write.group_commit import CommitQueue
from jidomem.write.pipeline import Pipeline

SINGLE = 100  # single submits of a round
AT_ONCE = 1_000
UNSTAGED = "queue and receipts"
Submit = Callable[[Jidomem, Sequence[Fields]], None]
#: Each stage with its functions, as (owner, attribute) where the caller looks them up.
STAGES: dict[str, Sequence[tuple[Any, str]]] = {
    "files of the intent": [(Pipeline, "submission")],
    "lock": [(journal, "acquire_lock_file"), (FileJournal, "_checked_version"), (journal.GitLock, "wait")],
    "snapshot": [(CommitQueue, "_snapshot_at")],
    "normalise": [(Pipeline, "_normalise")],
    "secrets": [(secrets, "screen")],
    "references and permission": [(Pipeline, "_validate"), (permissions, "permitted")],
    "statements": [(triples, "describe"), (triples, "stubs"), (triples, "relate"), (Pipeline, "describe")],
    "terms": [(validate, "check_terms")],
    "shapes": [(validate, "judge_shapes")],
    "conflict": [(conflict, "keys"), (conflict, "identical"), (Pipeline, "_compare")],
    "decision": [(Pipeline, "_decide")],
    "commit: triples": [(commit, "build")],
    "commit: digests": [(commit, "leaves_of"), (commit, "identity_of")],
    "commit: Turtle": [(commit, "_blocks"), (commit, "_turtle_of")],
    "commit: read back": [(commit, "_n_triples")],
    "append": [(FileJournal, "append")],
    "folder snapshot": [(Folder, "_added"), (disk, "overwrite")],
    "disk": [(journal, "write_durably")],
    "index": [(IndexFollower, "apply")],
}


class StageTimer:
    """The seconds and calls of each stage; those of a nested stage count for the inner one only."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.thread = get_ident()  # other threads, such as the search for similar memories, are not charged
        self._stages = [UNSTAGED]
        self._since = perf_counter()

    def enter(self, stage: str) -> None:
        """Begin a stage, nested in the present one."""
        self._charge()
        self._stages.append(stage)

    def exit(self) -> None:
        """End the present stage."""
        self._charge()
        self._stages.pop()

    def _charge(self) -> None:
        now = perf_counter()
        self.seconds[self._stages[-1]] += now - self._since
        self._since = now

    def time(self, run: Callable[[], object]) -> None:
        """Call *run* and charge its time to its stages."""
        self._since = perf_counter()
        run()
        self._charge()

    def count_calls(self, run: Callable[[], object]) -> None:
        """Call *run* and charge its calls of Python functions to its stages."""

        def profile(frame: Any, event: str, argument: Any) -> None:
            if event == "call" and frame.f_code.co_filename != __file__:
                self.calls[self._stages[-1]] += 1

        sys.setprofile(profile)
        try:
            run()
        finally:
            sys.setprofile(None)


@contextmanager
def stage_timer() -> Iterator[StageTimer]:
    """Yield a timer to which the functions of all stages charge their time."""
    timer, originals = StageTimer(), list[tuple[Any, str, Any]]()

    def wrap(stage: str, function: Any) -> Any:
        def run(*arguments: Any, **named: Any) -> Any:
            if get_ident() != timer.thread:
                return function(*arguments, **named)
            timer.enter(stage)
            try:
                return function(*arguments, **named)
            finally:
                timer.exit()

        return run

    for stage, functions in STAGES.items():
        for owner, name in functions:
            originals.append((owner, name, getattr(owner, name)))
            setattr(owner, name, wrap(stage, getattr(owner, name)))
    try:
        yield timer
    finally:
        for owner, name, function in originals:
            setattr(owner, name, function)


def rows(options: Options) -> Iterator[Row]:
    """Yield a row for each stage of single submits, then of AT_ONCE intents submitted together."""
    with jidomem.open(options.copy_root()) as memory:
        intents = load.intents_after(options.memories)
        yield from _stages("single", memory, _submit_one_by_one, intents, SINGLE, options)
        yield from _stages(f"{AT_ONCE:,} at once", memory, load.submit_all, intents, AT_ONCE, options)


def _stages(
    label: str, memory: Jidomem, submit: Submit, intents: Iterator[Fields], batch_size: int, options: Options
) -> Iterator[Row]:
    submit(memory, list(islice(intents, batch_size)))  # warm
    rounds, start = list[Counter[str]](), memory.catch_up(load.PROJECT)
    for _ in range(options.rounds):
        batch = list(islice(intents, batch_size))
        with stage_timer() as timer:
            timer.time(partial(submit, memory, batch))
        rounds.append(timer.seconds)
    written = sum(len(commit.triples) for commit in memory.journal.read(Stream(load.PROJECT), start))
    per_intent = written / options.rounds / batch_size
    batch = list(islice(intents, batch_size))
    with stage_timer() as counter:
        counter.count_calls(partial(submit, memory, batch))
    total = median(sum(each.values()) for each in rounds) / batch_size * 1e6
    for stage in (*STAGES, UNSTAGED, "all"):
        microseconds = [(sum(each.values()) if stage == "all" else each[stage]) / batch_size * 1e6 for each in rounds]
        calls = (sum(counter.calls.values()) if stage == "all" else counter.calls[stage]) / batch_size
        median_us = median(microseconds)
        measured = f"{rounded(median_us)} us, {rounded(calls)} calls"
        comparison = f"{rounded(median_us / per_intent)} us a triple; {median_us / total:.0%}"
        yield Row(f"{label}: {stage}", "-", measured, comparison, figures={"us": microseconds, "calls": calls})


def _submit_one_by_one(memory: Jidomem, intents: Sequence[Fields]) -> None:
    for intent in intents:
        memory.writer.submit_intent(load.PROJECT, intent)


if __name__ == "__main__":
    harness.main("bench.budget", rows)
