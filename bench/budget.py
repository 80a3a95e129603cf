"""Where the time of a submit goes: microseconds and Python calls of each stage, per intent and per triple.

Of a single submit "queue and receipts" has the wait for the thread that looks up similar memories.

A stage has the time of its functions without that of the stages inside them.  Time is CPU time of the thread and, for
the disk, waiting; it is the median of the rounds.  Calls are counted in a run of their own, because counting is slow.

    python -m bench.budget [--memories N] [--rounds N]
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
from bench import frame, generate, load
from bench.frame import Options, Row, short
from bench.generate import Fields
from jidomem import Jidomem
from jidomem.base import disk
from jidomem.errors import JidomemError
from jidomem.index.follower import IndexFollower
from jidomem.journal import commit, journal
from jidomem.journal.journal import FileJournal, Stream
from jidomem.journal.stream import Folder
from jidomem.write import conflict, permissions, secrets, triples, validate
from jidomem.write.group_commit import CommitQueue
from jidomem.write.pipeline import Pipeline

SINGLE = 100  # single submits of a round
AT_ONCE = 1_000
REST = "queue and receipts"
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


class Account:
    """The seconds and calls of each stage; those of a stage inside another one count for the inner one alone."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.thread = get_ident()  # others, such as the one that looks up similar memories, are not charged
        self._stages = [REST]
        self._since = perf_counter()

    def enter(self, stage: str) -> None:
        """Begin a stage inside the present one."""
        self._charge()
        self._stages.append(stage)

    def leave(self) -> None:
        """End the present stage."""
        self._charge()
        self._stages.pop()

    def _charge(self) -> None:
        now = perf_counter()
        self.seconds[self._stages[-1]] += now - self._since
        self._since = now

    def timed(self, run: Callable[[], object]) -> None:
        """Charge the time of *run* to its stages."""
        self._since = perf_counter()
        run()
        self._charge()

    def counted(self, run: Callable[[], object]) -> None:
        """Charge the calls of Python functions in *run* to its stages."""

        def profile(frame: Any, event: str, argument: Any) -> None:
            if event == "call" and frame.f_code.co_filename != __file__:
                self.calls[self._stages[-1]] += 1

        sys.setprofile(profile)
        try:
            run()
        finally:
            sys.setprofile(None)


@contextmanager
def accounted() -> Iterator[Account]:
    """Yield an account to which the functions of all stages charge their time."""
    account, before = Account(), list[tuple[Any, str, Any]]()

    def wrapped(stage: str, function: Any) -> Any:
        def run(*arguments: Any, **named: Any) -> Any:
            if get_ident() != account.thread:
                return function(*arguments, **named)
            account.enter(stage)
            try:
                return function(*arguments, **named)
            finally:
                account.leave()

        return run

    for stage, functions in STAGES.items():
        for owner, name in functions:
            before.append((owner, name, getattr(owner, name)))
            setattr(owner, name, wrapped(stage, getattr(owner, name)))
    try:
        yield account
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)


def rows(options: Options) -> Iterator[Row]:
    """Yield a row for each stage of single submits, then of as many at once as a writer may have."""
    with jidomem.open(options.copy()) as memory:
        coming = islice(generate.intents(10**9, project=load.PROJECT), options.memories, None)
        yield from _stages("single", memory, _one_by_one, coming, SINGLE, options)
        yield from _stages(f"{AT_ONCE:,} at once", memory, _at_once, coming, AT_ONCE, options)


def _stages(
    what: str, memory: Jidomem, submit: Submit, coming: Iterator[Fields], intents: int, options: Options
) -> Iterator[Row]:
    submit(memory, list(islice(coming, intents)))  # warm
    rounds, before = list[Counter[str]](), memory.catch_up(load.PROJECT)
    for _ in range(options.rounds):
        some = list(islice(coming, intents))
        with accounted() as account:
            account.timed(partial(submit, memory, some))
        rounds.append(account.seconds)
    written = sum(len(commit.triples) for commit in memory.journal.read(Stream(load.PROJECT), before))
    per_intent = written / options.rounds / intents
    some = list(islice(coming, intents))
    with accounted() as counting:
        counting.counted(partial(submit, memory, some))
    total = median(sum(each.values()) for each in rounds) / intents * 1e6
    for stage in (*STAGES, REST, "all"):
        spent = [(sum(each.values()) if stage == "all" else each[stage]) / intents * 1e6 for each in rounds]
        calls = (sum(counting.calls.values()) if stage == "all" else counting.calls[stage]) / intents
        micros = median(spent)
        measured = f"{short(micros)} us, {short(calls)} calls"
        compared = f"{short(micros / per_intent)} us a triple; {micros / total:.0%}"
        yield Row(f"{what}: {stage}", "-", measured, compared, figures={"us": spent, "calls": calls})


def _one_by_one(memory: Jidomem, intents: Sequence[Fields]) -> None:
    for intent in intents:
        memory.writer.submit_intent(load.PROJECT, intent)


def _at_once(memory: Jidomem, intents: Sequence[Fields]) -> None:
    refused = [out for out in memory.writer.submit_many(load.PROJECT, intents) if isinstance(out, JidomemError)]
    assert not refused, refused[0]


if __name__ == "__main__":
    frame.main("bench.budget", rows)
