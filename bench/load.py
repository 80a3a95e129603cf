"""Build a memory root of N generated memories, through the writer.

    python -m bench.load N ROOT [--seed 7] [--unvalidated]

With --unvalidated the pipeline skips the checks of shapes and terms: tests hold that the files of the first 1,800
memories are the same (later receipts lack warnings of decisions about one file), and that the writer accepts every
memory.  Shared roots of more than 200,000 memories are built so.
The journal's clock follows the timestamps of the memories, so that a past moment (`as_of`) has its own state.
Benchmarks share roots in `$TMPDIR/jidomem-bench/`, one for each version of the sources that determine the bytes of a
journal.  That folder may be deleted.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator
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
AT_ONCE = 1_000  # intents submitted together
VALIDATED_UP_TO = 200_000  # memories; larger shared roots are built without validation
#: The fields that the own intents of benchmarks share.
COMMON_FIELDS = {"applies_to_project": PROJECT, "asserted_by": "bench", "asserted_in": "bench", "confidence": "high"}


class WrittenState:
    """A substitute for index and tail: the written memories, and the classes of other nodes."""

    def __init__(self, journal: FileJournal) -> None:
        self.journal, self.index, self.generation, self.turn = journal, self, 0, nullcontext
        self._memories: set[Term] = set()
        self._types: dict[Term, Term] = {}

    def catch_up(self, stream: Stream) -> None:
        """Do nothing: every commit is applied when it is written."""

    def apply(self, stream: Stream, commit: Commit) -> None:
        rows = commit.triples
        self._memories |= {s for s, p, _ in rows if p == ITEM_MARK}
        self._types |= {s: o for s, p, o in rows if p == TYPE and not s.startswith(f"<{BASE}memory/")}

    def mark(self, graph: str) -> Watermark:
        """Return the empty state: no other stream has a commit."""
        return Watermark()

    def heads(self, graphs: Iterable[str]) -> list[CommitRef]:
        """Return the empty state: no other stream has a commit."""
        return []

    def is_nearly_applied(self) -> bool:
        """Return True: every commit is applied when it is written."""
        return True

    def apply_pending(self) -> None:
        """Do nothing: no commit is pending."""

    def instances(self, graph: str, predicate: Term, value: Term, classes: Collection[Term]) -> list[Term]:
        """Return nothing: identical and conflicting memories are not looked up."""
        return []

    def match(
        self, graph: str, subject: Term | None, predicate: Term | None = None, value: Term | None = None
    ) -> list[Triple]:
        if subject in self._memories and predicate in (None, ITEM_MARK):
            return [(subject, ITEM_MARK, jido("Asserted"))]
        if subject not in self._types or predicate not in (None, TYPE):
            return []
        return [(subject, TYPE, self._types[subject])] if value in (None, self._types[subject]) else []


class UnvalidatedPipeline(Pipeline):
    """The write pipeline without the checks of terms and shapes, for memories that are known to be valid."""

    def describe(self, intent: Any, options: Any, view: Any, now: Any) -> Statements:
        return Statements(triples.describe(intent), triples.stubs(intent, view, self.policy, now)[0], [])


def build(
    root: Path, memories: int, seed: int = 7, *, validated: bool = True, nonce: Callable[[], bytes] = clock.nonce
) -> None:
    """Write the first *memories* of a generated project to *root*; raise the refusal if one is refused."""
    moment, done, start = generate.START, 0, time.perf_counter()
    source = generate.intents(memories, seed, PROJECT)
    sources = Sources(now=lambda: moment, nonce=nonce)
    with jidomem.open(root, sources=sources) as memory:
        submit = (
            partial(memory.writer.submit_many, PROJECT) if validated else _submit_unvalidated(memory.journal, sources)
        )
        while intents := list(islice(source, AT_ONCE)):
            moment = datetime.fromisoformat(intents[-1]["timestamp"])
            for outcome in submit(intents):
                if isinstance(outcome, JidomemError):
                    raise outcome
            done += len(intents)
            _progress(done, memories, start)
        if done:
            memory.catch_up(PROJECT)  # builds the index; a large one is written to disk


def _submit_unvalidated(journal: FileJournal, sources: Sources) -> Callable[[list[Fields]], list[Outcome]]:
    """Return a function that writes intents as the writer does, without validation."""
    rules = EffectiveRules(ontology.load(), Policy())
    pipeline = UnvalidatedPipeline(rules, sources.new_id)
    queue = CommitQueue(Stream(PROJECT), cast(Any, WrittenState(journal)), sources, rules)

    def submit(intents: list[Fields]) -> list[Outcome]:
        return queue.submit(pipeline, [Submission(PROJECT, intent) for intent in intents])

    return submit


def submit_all(memory: jidomem.Jidomem, intents: Iterable[Fields], project: str = PROJECT) -> None:
    """Submit *intents* together; raise the first refusal."""
    for outcome in memory.writer.submit_many(project, intents):
        if isinstance(outcome, JidomemError):
            raise outcome


def fact(number: int) -> Fields:
    """Return an intent that names no other memory."""
    return {"type": "fact", "summary": f"seen in passing: {number}", **COMMON_FIELDS, "confidence": "low"}


def intents_after(memories: int) -> Iterator[Fields]:
    """Yield without end the intents of the generated project that follow its first *memories*."""
    return islice(generate.intents(10**9, project=PROJECT), memories, None)


def cached(memories: int, seed: int = 7) -> Path:
    """Return the shared root of that many memories, built if it is missing; never write to it."""
    root = Path(tempfile.gettempdir()) / "jidomem-bench" / f"{memories}-{seed}-{_digest()}"
    if not root.exists():
        unfinished = Path(tempfile.mkdtemp(prefix="building-", dir=_create(root.parent)))
        try:
            build(unfinished, memories, seed, validated=memories <= VALIDATED_UP_TO)
            os.rename(unfinished, root)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return root


def copy(root: Path, target: Path) -> Path:
    """Return a writable copy of *root* at *target*; commits and snapshots, which are immutable, are hard links."""
    snapshots = str(root / "index" / "snapshots")

    def link_or_copy(source: str, destination: str) -> str:
        if source.endswith(".ttl") or source.startswith(snapshots):
            os.link(source, destination)
            return destination
        return shutil.copy2(source, destination)

    shutil.copytree(root, target, copy_function=link_or_copy, ignore=shutil.ignore_patterns("live"))
    return target


def _digest() -> str:
    """Return a digest of the sources that determine the bytes of a journal."""
    package = Path(jidomem.__file__).parent
    sources = [Path(generate.__file__), Path(generate.__file__).with_name("words.py")]
    sources += [package / "journal" / name for name in ("commit.py", "lines.py")]
    sources += [package / "write" / "triples.py", *files.ontology_files()]
    return hashlib.blake2b(b"".join(path.read_bytes() for path in sources), digest_size=6).hexdigest()


def _create(folder: Path) -> Path:
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
    parser.add_argument("memories", type=int, metavar="N", help="number of memories")
    parser.add_argument("root", type=Path, metavar="ROOT", help="an empty or new folder")
    parser.add_argument("--seed", type=int, default=7, help="seed of the generated project (default: 7)")
    parser.add_argument("--unvalidated", action="store_true", help="skip the checks of shapes and terms")
    options = parser.parse_args()
    if options.root.exists() and any(options.root.iterdir()):
        parser.error(f"{options.root} is not empty: name a new folder")
    build(options.root, options.memories, options.seed, validated=not options.unvalidated)


if __name__ == "__main__":
    main()
