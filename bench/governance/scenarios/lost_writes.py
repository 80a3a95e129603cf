"""Several processes write at once, some are killed with -9 meanwhile: is all there that was acknowledged?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random
from time import perf_counter, sleep

from bench.governance.figures import Measure, Measured, Size
from bench.governance.process import Process, ProcessEnded, opened
from bench.governance.system import Fact

LOST = Measure(
    "lost writes", "acknowledged writes that are missing after all were restarted", "of the acknowledged", "fewer"
)
UNREADABLE = Measure(
    "lost writes", "killed processes that cannot read the memory once restarted", "of the killed", "fewer"
)
RATE = Measure("lost writes", "writes acknowledged meanwhile, all processes together", "a second", "more")


def lost_writes(open_: Callable[[Path], Process], folder: Path, size: Size) -> Iterator[Measured]:
    """Four processes write as fast as they are acknowledged; two are killed in the middle of a write."""
    rounds = [_round(open_, folder / f"round-{n}", size, Random(f"{size.seed} {n}")) for n in range(size.rounds)]
    counts = {key: [each[key] for each in rounds] for key in rounds[0]}
    yield Measured(LOST, counts["lost"], counts["acknowledged"], counts)
    yield Measured(UNREADABLE, counts["unreadable"], counts["readers"], counts)
    yield Measured(RATE, [each["acknowledged"] / each["seconds"] for each in rounds], counts=counts)


def _round(open_: Callable[[Path], Process], folder: Path, size: Size, chance: Random) -> dict[str, float]:
    folder.mkdir()
    with opened(open_, folder) as first:  # makes what there has to be: this is not about two who begin
        first.in_force()
    writers = [open_(folder) for _ in range(size.processes)]
    for writer in writers:
        writer.in_force()
    last = [chance.randrange(size.writes // 3, size.writes) if n < size.killed else None for n in range(len(writers))]
    pauses = [chance.uniform(0, 0.005) for _ in writers]
    start = perf_counter()
    with ThreadPoolExecutor(len(writers)) as threads:
        told = list(threads.map(_written, writers, range(len(writers)), [size.writes] * len(writers), last, pauses))
    seconds = perf_counter() - start
    survivors = writers[size.killed :]
    acknowledged = {text for texts, _ in told for text in texts}
    for survivor in survivors:
        survivor.close()
    seen = [_read(open_, folder) for _ in range(size.killed)]
    lost = len(acknowledged - (seen[0] or set()))
    return {
        "acknowledged": len(acknowledged), "lost": lost, "not acknowledged": sum(errors for _, errors in told),
        "unreadable": seen.count(None), "readers": len(seen), "killed": size.killed, "seconds": seconds,
    }  # fmt: skip


def _written(writer: Process, number: int, writes: int, last: int | None, pause: float) -> tuple[list[str], int]:
    """Return what was acknowledged, and how many writes were answered by an error; killed in the write after *last*."""
    texts, errors = [], 0
    for n in range(writes):
        fact = Fact(f"process {number} saw value {n}", f"value {n} of process {number}", agent=f"agent-{number}")
        with suppress(ProcessEnded):
            writer.begin("keep", fact)
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


def _read(open_: Callable[[Path], Process], folder: Path) -> set[str] | None:
    """Return the texts a new process reads; None where it cannot."""
    try:
        with opened(open_, folder) as reader:
            return {entry.text for entry in reader.in_force()}
    except Exception:
        return None
