"""How much of what answers a question is found in talk: evidence recall, with each sign left out, beside other systems.

    python -m bench.recall --data FOLDER [--sets locomo realmem ...] [--peers] [--without] [--json FILE]

FOLDER holds `eval_recall.py`, whose definition of evidence recall is used, and the sets, which are not ours to ship.
Every turn is kept as an entry; each question asks for 50.  All sides are given the same vectors, made once.  A question
of RealMem is asked in the middle of the talk, and its evidence are sessions: those of the first turns count.
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
from operator import itemgetter
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
#: The sets of records of one person, a file each.
RECORDS = {"realmem": "more/realmem-*.json", "lifebench": "more/lifebench-*.json"}
ASKED, PROJECT = 50, "talk"
#: Questions of this kind are not scored: they ask for what was not said.
ADVERSARIAL = 5


class Turn(NamedTuple):
    """A turn or record as the sides are given it."""

    gid: str
    speaker: str
    session: str
    index: int
    when: datetime | None
    content: str


class Question(NamedTuple):
    """A question after so many turns were written, and the units of its evidence."""

    text: str
    after: int
    wanted: frozenset[str]


class Talk(NamedTuple):
    """A conversation, or the records of one person; `unit_of` has the session of a turn if evidence are sessions."""

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


def share_found(found: Sequence[str], question: Question, unit_of: Mapping[str, str], most: int) -> float:
    """Return the share of the evidence among the first *most* turns."""
    return len(question.wanted & {unit_of.get(gid, gid) for gid in found[:most]}) / len(question.wanted)


class Once:
    """An embedder that makes each vector once, for all sides."""

    def __init__(self) -> None:
        self._embedder, self._known = LocalEmbedder(), dict[str, Vector]()
        self.name, self.dimensions = self._embedder.name, self._embedder.dimensions

    def generate(self, texts: Sequence[str]) -> list[Vector]:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._known.update(zip(new, self._embedder.generate(new), strict=True))
        return [self._known[text] for text in texts]


class Ours:
    """A root with one conversation, asked as agents ask it."""

    def __init__(self, embedder: Once | None) -> None:
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
        kept = self._memory.entries.write_many(WriteRequest(entry=entry) for entry in entries)
        pairs = [(one, turn.gid) for one, turn in zip(kept, turns, strict=True)]
        ids = {one.metadata["iri"]: gid for one, gid in pairs if not isinstance(one, JidomemError)}
        self.ids |= ids
        self.refused += len(pairs) - len(ids)
        if self._memory.embedding is not None and self._embedder is not None:
            self._memory.embedding.embed(PROJECT)

    def recall(self, query: str, k: int, scope: str | None = None) -> list[str]:
        assert self._memory is not None
        return [self.ids[hit.id] for hit in self._memory.recall(query, kinds=["entry"], limit=k, min_score=0).entries]

    def gathered(self, query: str) -> tuple[list[Candidate], recall.Question]:
        """Return the candidates of a question, and the question analysed."""
        memory = self._memory
        assert memory is not None
        alike = memory.alike_to(query, PROJECT, None, spoken=True)
        asked = RecallQuery(query, query_stems(memory.texts.stemmer, query), now=memory.now(), alike=alike, limit=ASKED)
        return gather(memory.texts, Stream(PROJECT, "history"), asked, SearchFilter())

    def without(self, query: str) -> Iterator[tuple[str, list[str]]]:
        """Yield what is found without each sign of its profile, all of one gathering; and first, named "", with all."""
        found, question = self.gathered(query)
        profile = ranking.chosen(found)
        for sign in ("", *(name for name in profile if name != "name")):
            worth = {name: value for name, value in profile.items() if name != sign}
            yield sign, [self.ids[one.candidate.passage.item] for one in ranking.ranked(found, question, worth)]


class Dense:
    """The vectors alone, each turn compared with what is asked."""

    def __init__(self, embedder: Once) -> None:
        self._embedder = embedder

    def reset(self) -> None:
        self._vectors: list[tuple[str, Vector]] = []

    def write(self, turns: Sequence[Any]) -> None:
        vectors = self._embedder.generate([spoken_text(turn) for turn in turns])
        self._vectors += zip([turn.gid for turn in turns], vectors, strict=True)

    def recall(self, query: str, k: int, scope: str | None = None) -> list[str]:
        (asked,) = self._embedder.generate([query])
        alike = [(-sum(a * b for a, b in zip(asked, vector, strict=True)), gid) for gid, vector in self._vectors]
        return [gid for _, gid in sorted(alike)[:k]]


class Chroma:
    """chromadb, in this process."""

    def __init__(self, embedder: Once) -> None:
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
        found: list[str] = self._turns.query(query_embeddings=vectors, n_results=k)["ids"][0]
        return found


class LangGraph:
    """LangGraph's store in memory, with its index of vectors."""

    def __init__(self, embedder: Once) -> None:
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
        return [found.key for found in self._store.search(("talk",), query=query, limit=k)]


def _metadata(turn: Any) -> dict[str, Any]:
    """Return the metadata of the entry of a turn."""
    metadata = {"session": str(turn.session), "position": turn.index}
    if turn.speaker:
        metadata["speaker"] = turn.speaker
    if turn.when is not None:
        metadata["timestamp"] = format_timestamp(turn.when.replace(tzinfo=None))
    return metadata


def spoken_text(turn: Any) -> str:
    """Return a turn as all sides embed it."""
    return f"{turn.speaker}: {turn.content}" if turn.speaker else str(turn.content)


def sides(evaluation: ModuleType, embedder: Once, given: argparse.Namespace) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield what is compared, each by name, as far as it is installed."""
    yield "jidomem", lambda: Ours(embedder)
    yield "jidomem, no vectors", lambda: Ours(None)
    yield "BM25 over turns", evaluation.BM25
    yield "vectors alone", lambda: Dense(embedder)
    if given.peers:
        yield "chromadb", lambda: Chroma(embedder)
        yield "LangGraph", lambda: LangGraph(embedder)


def measured(evaluation: ModuleType, make: Callable[[], Any], talks: Sequence[Any]) -> dict[str, float]:
    """Return the recall, the latency and the cost of keeping of one side on the *talks* of one set."""
    system = make()
    start = perf_counter()
    found = evaluation.evaluate(system, talks)
    rows = evaluation.headline(found)
    if hasattr(system, "close"):
        system.close()
    figures = {name: 100 * evaluation.mean(rows, name) for name in ("R@5", "R@10", "MRR")}
    low, high = evaluation.ci(rows, "R@10")
    if refused := getattr(system, "refused", 0):
        print(f"{refused} turns were refused, as they look like secrets or are too large: they are not found")
    return {**figures, "low": 100 * low, "high": 100 * high, "questions": len(rows), "turns": found["turns"],
            "p50 ms": found["recall_ms_p50"], "p95 ms": found["recall_ms_p95"],
            "write ms": found["write_ms_per_turn"], "seconds": perf_counter() - start}  # fmt: skip


def written_before(system: Any, talks: Iterable[Talk]) -> Iterator[tuple[Talk, Question]]:
    """Yield each question with its talk, once *system* has the turns that were before it, and no later ones."""
    for talk in talks:
        system.reset()
        written = 0
        for question in talk.questions:
            if question.after > written:
                system.write(talk.turns[written : question.after])
                written = question.after
            yield talk, question


def found_in_records(make: Callable[[], Any], talks: Sequence[Talk]) -> dict[str, float]:
    """Return the recall and the median latency of one side on records, each question asked when it arose."""
    system, rows, seconds = make(), list[tuple[float, float]](), list[float]()
    for talk, question in written_before(system, talks):
        start = perf_counter()
        found = system.recall(question.text, ASKED)
        seconds.append(perf_counter() - start)
        rows.append((share_found(found, question, talk.unit_of, 5), share_found(found, question, talk.unit_of, 10)))
    if hasattr(system, "close"):
        system.close()
    five, ten = zip(*rows, strict=True)
    return {"R@5": 100 * mean(five), "R@10": 100 * mean(ten), "questions": len(rows), "p50 ms": 1000 * median(seconds)}


def print_records(name: str, data: Path, evaluation: ModuleType, embedder: Once, given: argparse.Namespace) -> Any:
    """Print the table of one set of records; return its figures."""
    talks = [*talks_of(name, data, evaluation)]
    print(f"\n## {name}: {len(talks)} people\n\n| | R@5 | R@10 | questions | p50 ms |\n|---|---|---|---|---|")
    figures = {}
    for side, make in sides(evaluation, embedder, given):
        if side == "BM25 over turns":
            continue  # it cannot be written to in parts
        one = figures[side] = found_in_records(make, talks)
        print(
            f"| {side} | {one['R@5']:.1f} | {one['R@10']:.1f} | {one['questions']} | {one['p50 ms']:.1f} |", flush=True
        )
    return figures


def ablated(evaluation: ModuleType, embedder: Once, talks: Sequence[Any]) -> dict[str, dict[str, float]]:
    """Return the recall without each sign, by its name, and "" with all of them, on the *talks* of one set."""
    rows: dict[str, list[dict[str, float]]] = {}
    system = Ours(embedder)
    for talk in talks:
        system.reset()
        system.write(talk.turns)
        for asked in (one for one in talk.questions if one.gold and one.category != ADVERSARIAL):
            for sign, found in system.without(asked.text):
                ids = [gid.split("/", 1)[1] for gid in found[:ASKED]]
                rows.setdefault(sign, []).append(evaluation.score(ids, asked.gold))
    system.close()
    return {sign: {name: 100 * evaluation.mean(each, name) for name in ("R@5", "R@10")} for sign, each in rows.items()}


def loaded(folder: Path) -> ModuleType:
    """Return the evaluation that lies in *folder*."""
    spec = spec_from_file_location("eval_recall", folder / "eval_recall.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # its values are dataclasses, which look for their module
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Print a table for each set."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder with eval_recall.py and the sets")
    parser.add_argument("--sets", nargs="+", choices=[*SETS, *RECORDS], default=[*SETS, *RECORDS], help="which of them")
    parser.add_argument("--peers", action="store_true", help="also chromadb and LangGraph's store, where installed")
    parser.add_argument("--without", action="store_true", help="also the ranking without each of its signs")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    given = parser.parse_args()
    evaluation, embedder = loaded(given.data), Once()
    told: dict[str, dict[str, dict[str, float]]] = {}
    for name in given.sets:
        if name in RECORDS:
            told[name] = print_records(name, given.data, evaluation, embedder, given)
            continue
        talks = evaluation.load(str(given.data / SETS[name]))
        print(f"\n## {name}: {len(talks)} talks\n\n| | R@5 | R@10 (95%) | MRR | p50 ms | p95 ms | write ms/turn |")
        print("|---|---|---|---|---|---|---|")
        for side, make in sides(evaluation, embedder, given):
            one = told.setdefault(name, {})[side] = measured(evaluation, make, talks)
            print(
                f"| {side} | {one['R@5']:.1f} | {one['R@10']:.1f} ({one['low']:.1f}-{one['high']:.1f}) "
                f"| {one['MRR']:.1f} | {one['p50 ms']:.1f} | {one['p95 ms']:.1f} | {one['write ms']:.2f} |",
                flush=True,
            )
        if given.without:
            print("\n| without | R@5 | R@10 |\n|---|---|---|")
            each = ablated(evaluation, embedder, talks)
            for sign, one in each.items():
                print(f"| {sign or 'none'} | {one['R@5']:.1f} | {one['R@10']:.1f} |")
            told[name] |= {f"without {sign}": one for sign, one in each.items() if sign}
    print(f"\nmost memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    if given.json:
        given.json.write_text(json.dumps(told, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
