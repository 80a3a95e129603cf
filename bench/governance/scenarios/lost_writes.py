"""Lost writes: several processes write at once, some are killed with -9; is every acknowledged write present?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random
from time import perf_counter, sleep

from bench.governance.figures import Measure, Result, Workload
from bench.governance.process import Process, ProcessEnded, opened
from bench.governance.system import Fact

LOST = Measure("lost writes", "acknowledged writes that are missing after a restart", "of the acknowledged", "fewer")
UNREADABLE = Measure(
    "lost writes", "killed processes that cannot read the memory once restarted", "of the killed", "fewer"
)
RATE = Measure("lost writes", "writes acknowledged, all processes together", "a second", "more")


def lost_writes(open_system: Callable[[Path], Process], folder: Path, size: Workload) -> Iterator[Result]:
    """Write with several processes as fast as they are acknowledged; kill some in the middle of a write."""
    rounds = [_round(open_system, folder / f"round-{n}", size, Random(f"{size.seed} {n}")) for n in range(size.rounds)]
    counts = {key: [each[key] for each in rounds] for key in rounds[0]}
    yield Result(LOST, counts["lost"], counts["acknowledged"], counts)
    yield Result(UNREADABLE, counts["unreadable"], counts["readers"], counts)
    yield Result(RATE, [each["acknowledged"] / each["seconds"] for each in rounds], counts=counts)


def _round(open_system: Callable[[Path], Process], folder: Path, size: Workload, random: Random) -> dict[str, float]:
    folder.mkdir()
    with opened(open_system, folder) as first:  # creates the files: concurrent creation is not measured
        first.active_entries()
    writers = [open_system(folder) for _ in range(size.processes)]
    for writer in writers:
        writer.active_entries()
    last_writes = [
        random.randrange(size.writes // 3, size.writes) if n < size.killed else None for n in range(len(writers))
    ]
    pauses = [random.uniform(0, 0.005) for _ in writers]
    start = perf_counter()
    with ThreadPoolExecutor(len(writers)) as threads:
        results = list(
            threads.map(_write, writers, range(len(writers)), [size.writes] * len(writers), last_writes, pauses)
        )
    seconds = perf_counter() - start
    survivors = writers[size.killed :]
    acknowledged = {text for texts, _ in results for text in texts}
    for survivor in survivors:
        survivor.close()
    texts_by_reader = [_read(open_system, folder) for _ in range(size.killed)]
    lost = len(acknowledged - (texts_by_reader[0] or set()))
    return {
        "acknowledged": len(acknowledged), "lost": lost, "not acknowledged": sum(errors for _, errors in results),
        "unreadable": texts_by_reader.count(None), "readers": len(texts_by_reader), "killed": size.killed,
        "seconds": seconds,
    }  # fmt: skip


def _write(writer: Process, number: int, writes: int, last: int | None, pause: float) -> tuple[list[str], int]:
    """Return the acknowledged texts and the number of errors; the writer is killed in write number *last*."""
    texts, errors = [], 0
    for n in range(writes):
        fact = Fact(f"process {number} saw value {n}", f"value {n} of process {number}", agent=f"agent-{number}")
        with suppress(ProcessEnded):
            writer.begin("store", fact)
            if n == last:
                sleep(pause)
                writer.kill()
                break
            try:
                writer.answer()
                texts.append(fact.text)
            except ProcessEnded:
                raise
            except Exception:
                errors += 1
    return texts, errors


def _read(open_system: Callable[[Path], Process], folder: Path) -> set[str] | None:
    """Return the texts that a new process reads; None if it fails."""
    try:
        with opened(open_system, folder) as reader:
            return {entry.text for entry in reader.active_entries()}
    except Exception:
        return None
