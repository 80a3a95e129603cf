"""Current values of facts that replace each other, retrieved without a language model.

    python -m bench.facts [--memories 20000] [--json FILE]

The streams have the form of FactConsolidation in MemoryAgentBench: numbered facts of about 6,000, 32,000, 64,000 and
262,000 tokens (of four characters), in which later facts replace earlier ones with the same subject and relation.  They
are generated from a seed, with invented names.  A question of one hop asks for a replaced fact; one of two or three
hops follows facts of which at least one was replaced, and every system answers one hop at a time.  `--memories` is the
maximum number of facts of a stream.

A keyed writer names relation and subject in the topic of each fact, and supersedes the fact that a refusal names.  Its
values are read by the named query `facts-about`, and by recall.  A plain writer remembers the bare texts, so that no
fact ends; a row has the share of replaced facts that are neighbours of the new one.  The comparisons are BM25 (SQLite
FTS5) and the vectors of the local embedder, which answer with the best fact, and the newest of the ten best facts by
BM25 that mentions the subject.
"""

from __future__ import annotations

import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import jidomem
from bench import harness
from bench.harness import Options, Row
from bench.neighbours import PROJECT, likeness_by_iri
from jidomem.base.words import words
from jidomem.errors import Conflict
from jidomem.models.local_embedder import LocalEmbedder
from jidomem.recall import neighbours
from jidomem.records.differences import differences
from jidomem.runtime.root import Jidomem

STREAM_TOKENS, TOKEN_CHARACTERS = (6_000, 32_000, 64_000, 262_000), 4
QUESTIONS, GOAL, SEED = 100, 95, 7
#: The share of the facts that replace an earlier one.
REPLACED_SHARE = 0.35
#: relation: kind of subject, kind of object, statement, question
RELATIONS = {
    "capital": ("country", "city", "The capital of {} is {}.", "What is the capital of {}?"),
    "head of state": ("country", "person", "The head of state of {} is {}.", "Who is the head of state of {}?"),
    "official language": ("country", "language", "The official language of {} is {}.",
                          "What is the official language of {}?"),
    "citizenship": ("person", "country", "{} is a citizen of {}.", "Of which country is {} a citizen?"),
    "sport": ("person", "sport", "{} plays {}.", "Which sport does {} play?"),
    "employer": ("person", "company", "{} is employed by {}.", "Which company employs {}?"),
    "spouse": ("person", "person", "{} is married to {}.", "Who is {} married to?"),
    "origin": ("sport", "country", "{} was created in {}.", "In which country was {} created?"),
    "chief executive": ("company", "person", "The chief executive of {} is {}.", "Who is the chief executive of {}?"),
    "headquarters": ("company", "city", "The headquarters of {} are in {}.",
                     "In which city are the headquarters of {}?"),
    "location": ("city", "country", "{} is located in {}.", "In which country is {} located?"),
}  # fmt: skip
#: The percentage of the entities of each kind; no kind has fewer than FEWEST.
SHARES, FEWEST = {"person": 50, "company": 18, "city": 18, "country": 6, "sport": 5, "language": 3}, 8
SYSTEMS = ("by key", "recalled", "bare texts recalled", "BM25", "vectors", "last mention")
_SYLLABLES = "bar dol fen gar hul jin kel lor mav nar pel qui ros sul tam ur vel wen yor zan"
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Fact:
    """A numbered fact of a stream."""

    number: int
    relation: str
    subject: str
    value: str

    @property
    def key(self) -> Key:
        return self.relation, self.subject

    @property
    def text(self) -> str:
        return RELATIONS[self.relation][2].format(self.subject, self.value)


class Stream:
    """A stream of at least *tokens* tokens, with its questions, determined by *seed*."""

    def __init__(self, tokens: int, seed: int = SEED) -> None:
        self._random = Random(f"{seed} {tokens}")
        self.facts: list[Fact] = []
        self._values: dict[Key, set[str]] = {}
        size = max(20, tokens * TOKEN_CHARACTERS // 100)
        names = _names(self._random)
        kinds = {kind: max(FEWEST, size * share // 100) for kind, share in SHARES.items()}
        self._entities = {kind: [next(names) for _ in range(number)] for kind, number in kinds.items()}
        keys = [(name, subject) for name, row in RELATIONS.items() for subject in self._entities[row[0]]]
        self._random.shuffle(keys)
        known_keys: list[Key] = []
        characters = 0
        while characters < tokens * TOKEN_CHARACTERS:
            replaces = known_keys and (not keys or self._random.random() < REPLACED_SHARE)
            relation, subject = self._random.choice(known_keys) if replaces else keys.pop()
            fact = Fact(len(self.facts), relation, subject, self._value(relation, subject))
            known_keys += [] if replaces else [fact.key]
            self.facts.append(fact)
            characters += len(f"{fact.number}. {fact.text}\n")

    def _value(self, relation: str, subject: str) -> str:
        used = self._values.setdefault((relation, subject), {subject})
        value = self._random.choice([each for each in self._entities[RELATIONS[relation][1]] if each not in used])
        used.add(value)
        return value

    @cached_property
    def versions(self) -> dict[Key, list[Fact]]:
        """Return the facts of each relation and subject, the current one last."""
        versions: dict[Key, list[Fact]] = {}
        for fact in self.facts:
            versions.setdefault(fact.key, []).append(fact)
        return versions

    def single_hop(self) -> list[list[str]]:
        """Return questions of one hop as paths: subject and relation of replaced facts."""
        replaced = [key for key, facts in self.versions.items() if len(facts) > 1]
        return [[subject, relation] for relation, subject in self._sample(replaced)]

    def multiple_hops(self) -> list[list[str]]:
        """Return questions of two or three hops as paths: a subject and the relations to follow."""
        relations_of: dict[str, list[str]] = {}
        for relation, subject in self.versions:
            relations_of.setdefault(subject, []).append(relation)
        paths = []
        for relation, subject in self._random.sample([*self.versions], len(self.versions)):
            path, entity = [subject, relation], self.current_value(relation, subject)
            most_versions = len(self.versions[relation, subject])
            while len(path) < self._random.choice((3, 4)) and entity in relations_of:
                path.append(self._random.choice(relations_of[entity]))
                most_versions = max(most_versions, len(self.versions[path[-1], entity]))
                entity = self.current_value(path[-1], entity)
            if len(path) > 2 and most_versions > 1:
                paths.append(path)
        return self._sample(paths)

    def current_value(self, relation: str, subject: str) -> str:
        """Return the current value of a relation of *subject*."""
        return self.versions[relation, subject][-1].value

    def answer(self, path: Sequence[str]) -> str:
        """Return the current value at the end of *path*."""
        entity = path[0]
        for relation in path[1:]:
            entity = self.current_value(relation, entity)
        return entity

    def _sample(self, values: list[Any]) -> list[Any]:
        return self._random.sample(values, min(QUESTIONS, len(values)))


def _names(random: Random) -> Iterator[str]:
    """Yield invented names, each once."""
    syllables, used = _SYLLABLES.split(), set[str]()
    while True:
        name = "".join(random.choices(syllables, k=random.choice((2, 3, 3, 4)))).capitalize()
        if name not in used:
            used.add(name)
            yield name


System = Callable[[str, str], str | None]


def accuracy(stream: Stream, paths: Sequence[Sequence[str]], system: System) -> float:
    """Return the percentage of *paths* for which *system*, asked hop by hop, returns the current value at the end."""

    def follow(path: Sequence[str]) -> str | None:
        entity: str | None = path[0]
        for relation in path[1:]:
            entity = system(relation, entity) if entity else None
        return entity

    return 100 * sum(follow(path) == stream.answer(path) for path in paths) / len(paths)


def question(relation: str, subject: str) -> str:
    return RELATIONS[relation][3].format(subject)


class KeyedMemory:
    """A memory whose facts name their key as topic, and supersede the fact that a refusal names."""

    def __init__(self, memory: Jidomem, stream: Stream) -> None:
        self._memory = memory
        self._values: dict[str, str] = {}
        for fact in stream.facts:
            topic = f"{fact.relation} of {fact.subject}"
            try:
                receipt = memory.remember(fact.text, topic=topic)
            except Conflict as conflict:
                receipt = memory.remember(fact.text, topic=topic, supersedes=[*conflict.items])
            self._values[receipt.iri] = fact.value

    def by_key(self, relation: str, subject: str) -> str | None:
        """Return the value by the named query `facts-about`."""
        rows = self._memory.ask("facts-about", topic=f"{relation} of {subject}")  # longer topics match, too
        matching = [row["subject"] for row in rows if subject in re.findall(r"\w+", row["content"])]
        return self._values[matching[0]] if len(matching) == 1 else None

    def by_recall(self, relation: str, subject: str) -> str | None:
        """Return the value of the first memory recalled."""
        hits = self._memory.recall(question(relation, subject), limit=1).entries
        return self._values[hits[0].id] if hits else None


class PlainMemory:
    """A memory of bare texts, with vectors."""

    def __init__(self, memory: Jidomem, stream: Stream) -> None:
        self._memory, self._stream = memory, stream
        common = {"type": "fact", "confidence": "medium", "applies_to_project": PROJECT, "asserted_in": "stream"}
        intents = [{**common, "asserted_by": "bench", "summary": fact.text} for fact in stream.facts]
        receipts = memory.writer.submit_many(PROJECT, intents, atomic=True)
        self._facts = {str(receipt): fact for receipt, fact in zip(receipts, stream.facts, strict=True)}
        assert memory.embedding is not None
        memory.embedding.embed(PROJECT)

    def by_recall(self, relation: str, subject: str) -> str | None:
        """Return the value of the first memory recalled."""
        hits = self._memory.recall(question(relation, subject), limit=1).entries
        return self._facts[hits[0].id].value if hits else None

    def detection_rates(self, keys: Sequence[Key]) -> tuple[float, float, float]:
        """Return three percentages on the newest facts of *keys*.

        The replaced fact is a neighbour; it is the nearest one; of the first, the values are the only difference.
        """
        detected = nearest = distinguished = 0
        for key in keys:
            old, new = self._stream.versions[key][-2:]
            likeness = likeness_by_iri(self._memory, new.text, new.text)
            others = [(value, self._facts[iri]) for iri, value in likeness.items() if self._facts[iri] is not new]
            similar = [fact for value, fact in others if value >= neighbours.LEAST][: neighbours.MOST]
            detected += old in similar
            nearest += similar[:1] == [old]
            differing = [each.other for each in differences(old.text, new.text)]
            distinguished += old in similar and differing == [new.value]
        return 100 * detected / len(keys), 100 * nearest / len(keys), 100 * distinguished / max(detected, 1)


class TextSearch:
    """The texts in SQLite's FTS5 and as vectors, without replacement of facts."""

    def __init__(self, stream: Stream, embedder: LocalEmbedder) -> None:
        self._facts, self._embedder, self._random = stream.facts, embedder, Random(SEED)
        self._texts = sqlite3.connect(":memory:")
        self._texts.execute("CREATE VIRTUAL TABLE fact USING fts5(text, tokenize='porter unicode61')")
        rows = ((fact.number + 1, fact.text) for fact in stream.facts)
        self._texts.executemany("INSERT INTO fact(rowid, text) VALUES (?, ?)", rows)
        self._vectors = np.array(embedder.generate([fact.text for fact in stream.facts]))

    def close(self) -> None:
        self._texts.close()

    def _best(self, relation: str, subject: str) -> list[tuple[float, Fact]]:
        """Return the ten best facts by BM25 with their ranks, of which the least is the best."""
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(words(question(relation, subject))))
        text = "SELECT rank, rowid FROM fact WHERE fact MATCH ? ORDER BY rank LIMIT 10"
        return [(rank, self._facts[number - 1]) for rank, number in self._texts.execute(text, (match,))]

    def bm25(self, relation: str, subject: str) -> str | None:
        """Return the value of one of the best facts: texts that differ in the value alone have the same rank."""
        best = self._best(relation, subject)
        return self._random.choice([fact for rank, fact in best if rank == best[0][0]]).value if best else None

    def last_mention(self, relation: str, subject: str) -> str | None:
        """Return the value of the newest of the ten best facts that names the subject."""
        facts = [fact for _, fact in self._best(relation, subject) if subject in fact.text]
        return max(facts, key=lambda fact: fact.number).value if facts else None

    def vectors(self, relation: str, subject: str) -> str | None:
        """Return the value of the fact whose vector is nearest to the question."""
        (vector,) = self._embedder.generate([question(relation, subject)])
        return self._facts[int(np.argmax(self._vectors @ np.asarray(vector)))].value


def measure(stream: Stream, folder: Path) -> dict[str, Any]:
    """Return the figures of one stream, in percent.

    Each of SYSTEMS has its accuracy for one hop and for more; "near", "nearest" and "clear" are the detection rates.
    """
    single_hop, multiple_hops = stream.single_hop(), stream.multiple_hops()
    embedder = LocalEmbedder()
    with ExitStack() as stack:
        keyed = KeyedMemory(_open(stack, folder / "keyed", None), stream)
        plain = PlainMemory(_open(stack, folder / "plain", embedder), stream)
        search = TextSearch(stream, embedder)
        stack.callback(search.close)
        systems = (keyed.by_key, keyed.by_recall, plain.by_recall, search.bm25, search.vectors, search.last_mention)
        accuracies = {
            name: [accuracy(stream, paths, system) for paths in (single_hop, multiple_hops)]
            for name, system in zip(SYSTEMS, systems, strict=True)
        }
        near, nearest, clear = plain.detection_rates([(relation, subject) for subject, relation in single_hop])
    return {"facts": len(stream.facts), **accuracies, "near": near, "nearest": nearest, "clear": clear}


def _open(stack: ExitStack, root: Path, embedder: LocalEmbedder | None) -> Jidomem:
    memory = stack.enter_context(jidomem.open(root, project=PROJECT, agent="bench", embedder=embedder))
    memory.read_log = None
    return memory


def rows(options: Options) -> Iterator[Row]:
    """Yield two rows for each stream with at most *options.memories* facts."""
    for tokens in STREAM_TOKENS[: 1 if options.quick else len(STREAM_TOKENS)]:
        stream = Stream(tokens)
        if len(stream.facts) > options.memories:
            return
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            figures = measure(stream, Path(folder))
        cells = {
            name: " / ".join(f"{share:.0f}" for share in each) for name, each in figures.items() if name in SYSTEMS
        }
        comparison = ", ".join(f"{name} {cells[name]}" for name in ("BM25", "vectors", "last mention"))
        yield Row(
            f"current value of {tokens:,} tokens, {figures['facts']:,} facts, one / more hops",
            f"{GOAL} %",
            f"by key {cells['by key']} %, recalled {cells['recalled']} %",
            f"{comparison} %",
            min(figures["by key"]) >= GOAL,
            figures,
        )
        yield Row(
            f"the same as bare texts, {figures['facts']:,} facts",
            "-",
            f"recalled {cells['bare texts recalled']} %; replaced fact a neighbour {figures['near']:.0f} %, the nearest"
            f" {figures['nearest']:.0f} %, differing in the values alone {figures['clear']:.0f} %",
        )


if __name__ == "__main__":
    harness.main(__spec__.name, rows)
