"""Build a memory root of N generated memories, through the writer, fast.

    python -m bench.load N ROOT [--seed 7]

The journal's clock is that of the generated project: what is recorded spreads over the same two years as what is said,
so that asking as of a moment means something.  Benchmarks share roots, which are built once and kept in
`$TMPDIR/jidomem-bench/`; whatever changes the bytes of a journal makes new ones.  That folder may be deleted.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import sys
import tempfile
import time
from datetime import datetime
from itertools import islice
from pathlib import Path

import jidomem
from bench import generate
from jidomem import resources
from jidomem.clock import Sources
from jidomem.errors import JidomemError

PROJECT = "bench"
AT_ONCE = 1_000  # intents handed over together


def build(root: Path, memories: int, seed: int = 7) -> None:
    """Make *root* hold the first *memories* of the life of a project; raise the refusal if one is refused."""
    moment, done, start = generate.START, 0, time.perf_counter()
    source = generate.intents(memories, seed, PROJECT)
    with jidomem.open(root, sources=Sources(now=lambda: moment)) as memory:
        while some := list(islice(source, AT_ONCE)):
            moment = datetime.fromisoformat(some[-1]["timestamp"])
            for outcome in memory.writer.submit_many(PROJECT, some):
                if isinstance(outcome, JidomemError):
                    raise outcome
            done += len(some)
            _progress(done, memories, start)


def cached(memories: int, seed: int = 7) -> Path:
    """The root of that many memories that all benchmarks share, built where it is not there yet; never write to it."""
    root = Path(tempfile.gettempdir()) / "jidomem-bench" / f"{memories}-{seed}-{_digest()}"
    if not root.exists():
        unfinished = Path(tempfile.mkdtemp(prefix="building-", dir=_made(root.parent)))
        try:
            build(unfinished, memories, seed)
            os.rename(unfinished, root)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return root


def copy(root: Path, to: Path) -> Path:
    """A copy of *root* that may be written to; commits and snapshots, which nobody changes, are linked."""
    snapshots = str(root / "index" / "snapshots")

    def linked(source: str, target: str) -> str:
        if source.endswith(".ttl") or source.startswith(snapshots):
            os.link(source, target)
            return target
        return shutil.copy2(source, target)

    shutil.copytree(root, to, copy_function=linked, ignore=shutil.ignore_patterns("live"))
    return to


def _digest() -> str:
    """What decides the bytes of a journal: what is generated, and what the writer makes of it."""
    package = Path(jidomem.__file__).parent
    made = [Path(generate.__file__), Path(generate.__file__).with_name("words.py")]
    made += [package / "journal" / "commit.py", package / "write" / "triples.py", *resources.ontology()]
    return hashlib.blake2b(b"".join(path.read_bytes() for path in made), digest_size=6).hexdigest()


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _progress(done: int, memories: int, start: float) -> None:
    if sys.stderr.isatty():
        rate = done / (time.perf_counter() - start)
        print(f"\r{done:,} of {memories:,} memories, {rate:,.0f}/s ", end="", file=sys.stderr, flush=True)
        if done == memories:
            print(file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.load", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("number", type=int)
    parser.add_argument("root", type=Path)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    if options.root.exists() and any(options.root.iterdir()):
        parser.error(f"{options.root} is not empty")
    build(options.root, options.number, options.seed)


if __name__ == "__main__":
    main()
