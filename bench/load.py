"""Build a memory root of N generated memories, through the writer.

    python -m bench.load N ROOT [--seed 7] [--unjudged]

With --unjudged what the writer does not have to find out about these memories is not asked: a test holds the bytes of
the first 1,800 equal to those of the writer (later receipts lack warnings of decisions about one file), and another one
that it accepts every memory.  Roots of more than 200,000 are built so.
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
from collections.abc import Callable, Collection, Iterable
from contextlib import nullcontext
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, cast

import jidomem
from bench import generate
from bench.generate import Fields
from jidomem.base import clock, files
from jidomem.base.clock import Sources
from jidomem.errors import JidomemError
from jidomem.index.store import Watermark
from jidomem.journal.commit import Commit
from jidomem.journal.journal import FileJournal, Stream
from jidomem.rdf.terms import Term, Triple
from jidomem.rdf.vocab import BASE, TYPE, jido
from jidomem.records.intent import CommitRef
from jidomem.records.policy import Policy
from jidomem.schema import ontology
from jidomem.schema.ontology import EffectiveRules
from jidomem.write import triples
from jidomem.write.group_commit import CommitQueue
from jidomem.write.pipeline import Pipeline, Statements
from jidomem.write.snapshot import ITEM_MARK
from jidomem.write.submission import Outcome, Submission

PROJECT = "bench"
AT_ONCE = 1_000  # intents handed over together
JUDGED = 200_000  # larger roots that benchmarks share are built unjudged


class Known:
    """A stand-in for index and tail: the written memories, and the classes of other nodes."""

    def __init__(self, journal: FileJournal) -> None:
        self.journal, self.index, self.generation, self.turn = journal, self, 0, nullcontext
        self._memories: set[Term] = set()
        self._types: dict[Term, Term] = {}

    def catch_up(self, stream: Stream) -> None:
        """Nothing is there but what was applied."""

    def apply(self, stream: Stream, commit: Commit) -> None:
        rows = commit.triples
        self._memories |= {s for s, p, _ in rows if p == ITEM_MARK}
        self._types |= {s: o for s, p, o in rows if p == TYPE and not s.startswith(f"<{BASE}memory/")}

    def mark(self, graph: str) -> Watermark:
        """No other stream has a commit."""
        return Watermark()

    def heads(self, graphs: Iterable[str]) -> list[CommitRef]:
        """No other stream has a commit."""
        return []

    def is_nearly_applied(self) -> bool:
        """Nothing waits."""
        return True

    def apply_pending(self) -> None:
        """Nothing waits."""

    def instances(self, graph: str, predicate: Term, value: Term, classes: Collection[Term]) -> list[Term]:
        """Nothing is compared."""
        return []

    def match(
        self, graph: str, subject: Term | None, predicate: Term | None = None, value: Term | None = None
    ) -> list[Triple]:
        if subject in self._memories and predicate in (None, ITEM_MARK):
            return [(subject, ITEM_MARK, jido("Asserted"))]
        if subject not in self._types or predicate not in (None, TYPE):
            return []
        return [(subject, TYPE, self._types[subject])] if value in (None, self._types[subject]) else []


class Unjudged(Pipeline):
    """The pipeline, without the judgement of terms and shapes on memories that are known to be valid."""

    def describe(self, intent: Any, options: Any, view: Any, now: Any) -> Statements:
        return Statements(triples.describe(intent), triples.stubs(intent, view, self.policy, now), [])


def build(
    root: Path, memories: int, seed: int = 7, *, judged: bool = True, nonce: Callable[[], bytes] = clock.nonce
) -> None:
    """Make *root* hold the first *memories* of the life of a project; raise the refusal if one is refused."""
    moment, done, start = generate.START, 0, time.perf_counter()
    source = generate.intents(memories, seed, PROJECT)
    sources = Sources(now=lambda: moment, nonce=nonce)
    with jidomem.open(root, sources=sources) as memory:
        submit = partial(memory.writer.submit_many, PROJECT) if judged else _unjudged(memory.journal, sources)
        while some := list(islice(source, AT_ONCE)):
            moment = datetime.fromisoformat(some[-1]["timestamp"])
            for outcome in submit(some):
                if isinstance(outcome, JidomemError):
                    raise outcome
            done += len(some)
            _progress(done, memories, start)
        if done:
            memory.catch_up(PROJECT)  # the index is built where it was not fed, and kept where it is large


def _unjudged(journal: FileJournal, sources: Sources) -> Callable[[list[Fields]], list[Outcome]]:
    """A function that writes intents as the writer does, without validation."""
    rules = EffectiveRules(ontology.load(), Policy())
    pipeline = Unjudged(rules, sources.new_id)
    queue = CommitQueue(Stream(PROJECT), cast(Any, Known(journal)), sources, rules)

    def submit(some: list[Fields]) -> list[Outcome]:
        return queue.submit(pipeline, [Submission(PROJECT, intent) for intent in some])

    return submit


def cached(memories: int, seed: int = 7) -> Path:
    """The root of that many memories that all benchmarks share, built where it is not there yet; never write to it."""
    root = Path(tempfile.gettempdir()) / "jidomem-bench" / f"{memories}-{seed}-{_digest()}"
    if not root.exists():
        unfinished = Path(tempfile.mkdtemp(prefix="building-", dir=_made(root.parent)))
        try:
            build(unfinished, memories, seed, judged=memories <= JUDGED)
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
    """A digest of the sources that determine the bytes of a journal."""
    package = Path(jidomem.__file__).parent
    sources = [Path(generate.__file__), Path(generate.__file__).with_name("words.py")]
    sources += [package / "journal" / name for name in ("commit.py", "lines.py")]
    sources += [package / "write" / "triples.py", *files.ontology_files()]
    return hashlib.blake2b(b"".join(path.read_bytes() for path in sources), digest_size=6).hexdigest()


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
    parser.add_argument("--unjudged", action="store_true")
    options = parser.parse_args()
    if options.root.exists() and any(options.root.iterdir()):
        parser.error(f"{options.root} is not empty")
    build(options.root, options.number, options.seed, judged=not options.unjudged)


if __name__ == "__main__":
    main()
