"""Evidence recall in conversations: the share of the turns that answer a question among the first 5 and 10 results.

    python -m bench.recall --data FOLDER [--sets locomo realmem ...] [--peers] [--without] [--json FILE]

FOLDER has `eval_recall.py`, whose definition of evidence recall is used, and the data sets, which cannot be distributed
here.  Every turn is written as an entry; each question retrieves 50.  The comparisons are BM25 and vectors alone, with
--peers chromadb and LangGraph's store; all use the same vectors.  --without leaves out one signal of the ranking at a
time.  A question of RealMem is asked in the middle of a conversation, and its evidence are sessions: a result counts
for the session of its turn.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib.util import module_from_spec, spec_from_file_location
from operator import itemgetter, mul
from pathlib import Path
from statistics import mean, median
from time import perf_counter
from types import ModuleType
from typing import Any, NamedTuple
from uuid import uuid4

import jidomem
from jidomem.base.clock import format_timestamp
from jidomem.errors import JidomemError
from jidomem.index.search_tables import SearchFilter
from jidomem.journal.journal import Stream
from jidomem.models.local_embedder import LocalEmbedder
from jidomem.recall import ranking
from jidomem.recall.bm25 import query_stems
from jidomem.recall.candidates import RecallQuery, gather
from jidomem.records import recall
from jidomem.records.entry import Entry, WriteRequest
from jidomem.records.interfaces import Vector
from jidomem.records.recall import Candidate
from jidomem.runtime.root import Jidomem

SETS = {"locomo": "locomo/locomo-dev.json", "realtalk": "realtalk", "beam": "beam"}
#: Sets with one file for the records of each person.
RECORDS = {"realmem": "more/realmem-*.json", "lifebench": "more/lifebench-*.json"}
RETRIEVED, PROJECT = 50, "talk"
#: The category of questions without an answer, which are not scored.
ADVERSARIAL = 5


class Turn(NamedTuple):
    """A turn or record, as every system gets it."""

    gid: str
    speaker: str
    session: str
    index: int
    when: datetime | None
    content: str


class Question(NamedTuple):
    """A question, the number of turns written before it, and the ids of its evidence: turns or sessions."""

    text: str
    after: int
    evidence: frozenset[str]


class Talk(NamedTuple):
    """A conversation, or the records of one person; `unit_of` maps turns to sessions if the evidence are sessions."""

    name: str
    turns: Sequence[Turn]
    questions: Sequence[Question]
    unit_of: Mapping[str, str]


def talks_of(name: str, data: Path, evaluation: ModuleType) -> Iterator[Talk]:
    """Yield the conversations of a set, without the questions that have no evidence."""
    if name in SETS:
        for talk in evaluation.load(str(data / SETS[name])):
            turns = [Turn(each.gid, each.speaker, str(each.session), each.index, each.when, each.content)
                     for each in talk.turns]  # fmt: skip
            questions = [
                Question(each.text, len(turns), frozenset(f"{each.conv}/{gold}" for gold in each.gold))
                for each in talk.questions
                if each.gold and each.category != ADVERSARIAL
            ]
            yield Talk(talk.id, turns, questions, {})
        return
    for path in sorted(data.glob(RECORDS[name])):
        person = json.loads(path.read_text(encoding="utf-8"))
        turns = [Turn(each["id"], each["speaker"] or "", each["session"], each["position"], None, each["text"])
                 for each in person["items"]]  # fmt: skip
        questions = [
            Question(each["question"], each["after"], frozenset(each["gold"]))
            for each in sorted(person["questions"], key=itemgetter("after"))
        ]
        unit_of = {turn.gid: turn.session for turn in turns} if person["unit"] == "session" else {}
        yield Talk(person["name"], turns, questions, unit_of)


def share_of_evidence(retrieved: Sequence[str], question: Question, unit_of: Mapping[str, str], most: int) -> float:
    """Return the share of the evidence among the first *most* retrieved turns."""
    return len(question.evidence & {unit_of.get(gid, gid) for gid in retrieved[:most]}) / len(question.evidence)


class CachedEmbedder:
    """The local embedder with a cache, so that all systems share the same vectors."""

    def __init__(self) -> None:
        self._embedder, self._vectors_by_text = LocalEmbedder(), dict[str, Vector]()
        self.name, self.dimensions = self._embedder.name, self._embedder.dimensions

    def generate(self, texts: Sequence[str]) -> list[Vector]:
        missing_texts = [text for text in dict.fromkeys(texts) if text not in self._vectors_by_text]
        self._vectors_by_text.update(zip(missing_texts, self._embedder.generate(missing_texts), strict=True))
        return [self._vectors_by_text[text] for text in texts]


class JidomemSystem:
    """A root with one conversation, recalled from as agents do it."""

    def __init__(self, embedder: CachedEmbedder | None) -> None:
        self._embedder = embedder
        self._folder = tempfile.TemporaryDirectory()
        self._memory: Jidomem | None = None
        self.refused = 0
        self.ids: dict[str, str] = {}  # IRI of an entry -> gid of its turn

    @property
    def root(self) -> Jidomem:
        """Return the open root."""
        assert self._memory is not None
        return self._memory

    def reset(self) -> None:
        self.close()
        self._folder = tempfile.TemporaryDirectory()
        root = Path(self._folder.name) / "root"
        self._memory = jidomem.open(root, project=PROJECT, agent="bench", embedder=self._embedder)
        self._memory.read_log, self._memory.embeds_for = None, 0.0
        self.ids = {}

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()
        self._folder.cleanup()

    def write(self, turns: Sequence[Any]) -> None:
        assert self._memory is not None
        entries = [Entry(agent_id="bench", content=turn.content or "-", metadata=_metadata(turn)) for turn in turns]
        outcomes = self._memory.entries.write_many(WriteRequest(entry=entry) for entry in entries)
        pairs = [(outcome, turn.gid) for outcome, turn in zip(outcomes, turns, strict=True)]
        ids = {outcome.metadata["iri"]: gid for outcome, gid in pairs if not isinstance(outcome, JidomemError)}
        self.ids |= ids
        self.refused += len(pairs) - len(ids)
        if self._memory.embedding is not None and self._embedder is not None:
            self._memory.embedding.embed(PROJECT)

    def recall(self, query: str, k: int, scope: str | None = None) -> list[str]:
        assert self._memory is not None
        return [self.ids[hit.id] for hit in self._memory.recall(query, kinds=["entry"], limit=k, min_score=0).entries]

    def gather_candidates(self, query: str) -> tuple[list[Candidate], recall.Question]:
        """Return the candidates of a query, and the analysed question."""
        memory = self._memory
        assert memory is not None
        similarities = memory.vector_query(query, PROJECT, None, spoken=True)
        stems = query_stems(memory.texts.stemmer, query)
        analysed = RecallQuery(query, stems, now=memory.now(), alike=similarities, limit=RETRIEVED)
        return gather(memory.texts, Stream(PROJECT, "history"), analysed, SearchFilter())

    def rank_without_each(self, query: str) -> Iterator[tuple[str, list[str]]]:
        """Yield the gids ranked with all signals of the profile, named "", then without each of them."""
        candidates, question = self.gather_candidates(query)
        profile = ranking.chosen(candidates)
        for signal in ("", *(name for name in profile if name != "name")):
            weights = {name: value for name, value in profile.items() if name != signal}
            matches = ranking.ranked(candidates, question, weights)
            yield signal, [self.ids[match.candidate.passage.item] for match in matches]


class VectorSystem:
    """Vectors alone: the cosine of the query with each turn."""

    def __init__(self, embedder: CachedEmbedder) -> None:
        self._embedder = embedder

    def reset(self) -> None:
        self._vectors: list[tuple[str, Vector]] = []

    def write(self, turns: Sequence[Any]) -> None:
        vectors = self._embedder.generate([spoken_text(turn) for turn in turns])
        self._vectors += zip([turn.gid for turn in turns], vectors, strict=True)

    def recall(self, query: str, k: int, scope: str | None = None) -> list[str]:
        (query_vector,) = self._embedder.generate([query])
        ranked = [(-sum(map(mul, query_vector, vector)), gid) for gid, vector in self._vectors]
        return [gid for _, gid in sorted(ranked)[:k]]


class ChromaSystem:
    """chromadb, in this process."""

    def __init__(self, embedder: CachedEmbedder) -> None:
        import chromadb  # type: ignore[import-not-found,unused-ignore]

        self._embedder, self._client = embedder, chromadb.EphemeralClient()

    def reset(self) -> None:
        self._turns = self._client.create_collection(f"talk-{uuid4().hex}", metadata={"hnsw:space": "cosine"})

    def write(self, turns: Sequence[Any]) -> None:
        texts = [spoken_text(turn) for turn in turns]
        vectors = [[*map(float, vector)] for vector in self._embedder.generate(texts)]
        self._turns.add(ids=[turn.gid for turn in turns], documents=texts, embeddings=vectors)

    def recall(self, query: str, k: int, scope: str | None = None) -> list[str]:
        vectors = [[*map(float, vector)] for vector in self._embedder.generate([query])]
        retrieved: list[str] = self._turns.query(query_embeddings=vectors, n_results=k)["ids"][0]
        return retrieved


class LangGraphSystem:
    """LangGraph's store in memory, with its index of vectors."""

    def __init__(self, embedder: CachedEmbedder) -> None:
        self._embedder = embedder

    def reset(self) -> None:
        from langgraph.store.memory import InMemoryStore  # type: ignore[import-not-found,unused-ignore]

        def embed(texts: Sequence[str]) -> list[list[float]]:
            return [[*map(float, vector)] for vector in self._embedder.generate(texts)]

        self._store = InMemoryStore(index={"dims": self._embedder.dimensions(), "embed": embed, "fields": ["text"]})

    def write(self, turns: Sequence[Any]) -> None:
        for turn in turns:
            self._store.put(("talk",), turn.gid, {"text": spoken_text(turn)})

    def recall(self, query: str, k: int, scope: str | None = None) -> list[str]:
        return [item.key for item in self._store.search(("talk",), query=query, limit=k)]


def _metadata(turn: Any) -> dict[str, Any]:
    """Return the metadata of the entry of a turn."""
    metadata = {"session": str(turn.session), "position": turn.index}
    if turn.speaker:
        metadata["speaker"] = turn.speaker
    if turn.when is not None:
        metadata["timestamp"] = format_timestamp(turn.when.replace(tzinfo=None))
    return metadata


def spoken_text(turn: Any) -> str:
    """Return the text of a turn that every system embeds."""
    return f"{turn.speaker}: {turn.content}" if turn.speaker else str(turn.content)


def systems(
    evaluation: ModuleType, embedder: CachedEmbedder, arguments: argparse.Namespace
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the name and constructor of each system to compare."""
    yield "jidomem", lambda: JidomemSystem(embedder)
    yield "jidomem, no vectors", lambda: JidomemSystem(None)
    yield "BM25 over turns", evaluation.BM25
    yield "vectors alone", lambda: VectorSystem(embedder)
    if arguments.peers:
        yield "chromadb", lambda: ChromaSystem(embedder)
        yield "LangGraph", lambda: LangGraphSystem(embedder)


def evaluate_set(evaluation: ModuleType, make_system: Callable[[], Any], talks: Sequence[Any]) -> dict[str, float]:
    """Return the recall in percent, latency and cost of writing of one system on the *talks* of one set."""
    system = make_system()
    start = perf_counter()
    retrieved = evaluation.evaluate(system, talks)
    rows = evaluation.headline(retrieved)
    if hasattr(system, "close"):
        system.close()
    figures = {name: 100 * evaluation.mean(rows, name) for name in ("R@5", "R@10", "MRR")}
    low, high = evaluation.ci(rows, "R@10")
    if refused := getattr(system, "refused", 0):
        print(f"{refused} turns were refused, as they look like secrets or are too large: they cannot be retrieved")
    return {**figures, "low": 100 * low, "high": 100 * high, "questions": len(rows), "turns": retrieved["turns"],
            "p50 ms": retrieved["recall_ms_p50"], "p95 ms": retrieved["recall_ms_p95"],
            "write ms": retrieved["write_ms_per_turn"], "seconds": perf_counter() - start}  # fmt: skip


def questions_in_time(system: Any, talks: Iterable[Talk]) -> Iterator[tuple[Talk, Question]]:
    """Yield each question with its talk, once *system* has the turns before it, and no later ones."""
    for talk in talks:
        system.reset()
        written = 0
        for question in talk.questions:
            if question.after > written:
                system.write(talk.turns[written : question.after])
                written = question.after
            yield talk, question


def evaluate_records(make_system: Callable[[], Any], talks: Sequence[Talk]) -> dict[str, float]:
    """Return the recall in percent and the median latency of one system on records, each question asked in time."""
    system, rows, seconds = make_system(), list[list[float]](), list[float]()
    for talk, question in questions_in_time(system, talks):
        start = perf_counter()
        retrieved = system.recall(question.text, RETRIEVED)
        seconds.append(perf_counter() - start)
        rows.append([share_of_evidence(retrieved, question, talk.unit_of, most) for most in (5, 10)])
    if hasattr(system, "close"):
        system.close()
    five, ten = zip(*rows, strict=True)
    return {"R@5": 100 * mean(five), "R@10": 100 * mean(ten), "questions": len(rows), "p50 ms": 1000 * median(seconds)}


def print_records(
    name: str, data: Path, evaluation: ModuleType, embedder: CachedEmbedder, arguments: argparse.Namespace
) -> Any:
    """Print the table of one set of records; return its figures."""
    talks = [*talks_of(name, data, evaluation)]
    print(f"\n## {name}: {len(talks)} people\n\n| | R@5 | R@10 | questions | p50 ms |\n|---|---|---|---|---|")
    figures = {}
    for system, make_system in systems(evaluation, embedder, arguments):
        if system == "BM25 over turns":
            continue  # it cannot be written to in parts
        row = figures[system] = evaluate_records(make_system, talks)
        cells = f"{row['R@5']:.1f} | {row['R@10']:.1f} | {row['questions']} | {row['p50 ms']:.1f}"
        print(f"| {system} | {cells} |", flush=True)
    return figures


def evaluate_without_each(
    evaluation: ModuleType, embedder: CachedEmbedder, talks: Sequence[Any]
) -> dict[str, dict[str, float]]:
    """Return the recall in percent with all signals, named "", and without each, on the *talks* of one set."""
    rows: dict[str, list[dict[str, float]]] = {}
    system = JidomemSystem(embedder)
    for talk in talks:
        system.reset()
        system.write(talk.turns)
        for question in talk.questions:
            if not question.gold or question.category == ADVERSARIAL:
                continue
            for signal, retrieved in system.rank_without_each(question.text):
                ids = [gid.split("/", 1)[1] for gid in retrieved[:RETRIEVED]]
                rows.setdefault(signal, []).append(evaluation.score(ids, question.gold))
    system.close()
    return {
        signal: {name: 100 * evaluation.mean(each, name) for name in ("R@5", "R@10")} for signal, each in rows.items()
    }


def load_evaluation(folder: Path) -> ModuleType:
    """Return the module `eval_recall` of *folder*."""
    spec = spec_from_file_location("eval_recall", folder / "eval_recall.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look up their module
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Print a table for each set."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder with eval_recall.py and the sets")
    parser.add_argument(
        "--sets", nargs="+", choices=[*SETS, *RECORDS], default=[*SETS, *RECORDS], help="sets to measure (default: all)"
    )
    parser.add_argument("--peers", action="store_true", help="measure chromadb and LangGraph's store, too")
    parser.add_argument("--without", action="store_true", help="measure the ranking without each signal, too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    arguments = parser.parse_args()
    evaluation, embedder = load_evaluation(arguments.data), CachedEmbedder()
    figures_by_set: dict[str, dict[str, dict[str, float]]] = {}
    for name in arguments.sets:
        if name in RECORDS:
            figures_by_set[name] = print_records(name, arguments.data, evaluation, embedder, arguments)
            continue
        talks = evaluation.load(str(arguments.data / SETS[name]))
        print(f"\n## {name}: {len(talks)} talks\n\n| | R@5 | R@10 (95%) | MRR | p50 ms | p95 ms | write ms/turn |")
        print("|---|---|---|---|---|---|---|")
        for system, make_system in systems(evaluation, embedder, arguments):
            row = figures_by_set.setdefault(name, {})[system] = evaluate_set(evaluation, make_system, talks)
            print(
                f"| {system} | {row['R@5']:.1f} | {row['R@10']:.1f} ({row['low']:.1f}-{row['high']:.1f}) "
                f"| {row['MRR']:.1f} | {row['p50 ms']:.1f} | {row['p95 ms']:.1f} | {row['write ms']:.2f} |",
                flush=True,
            )
        if arguments.without:
            print("\n| without | R@5 | R@10 |\n|---|---|---|")
            by_signal = evaluate_without_each(evaluation, embedder, talks)
            for signal, row in by_signal.items():
                print(f"| {signal or 'none'} | {row['R@5']:.1f} | {row['R@10']:.1f} |")
            figures_by_set[name] |= {f"without {signal}": row for signal, row in by_signal.items() if signal}
    print(f"\npeak resident memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures_by_set, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
