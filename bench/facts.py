"""Facts that replace each other: how often the current value is found, without a language model.

    python -m bench.facts [--memories 20000] [--json FILE]

The streams have the form of FactConsolidation in MemoryAgentBench: numbered facts of about 6,000, 32,000, 64,000 and
262,000 tokens (a token is four characters), in which later facts replace earlier ones of the same subject and relation.
They are made from a seed, of invented names, and no data is loaded. A question of one hop asks for a replaced fact, one
of two or three hops follows facts of which one was replaced at least; the benchmark follows the hops, and all sides are
asked one hop at a time. `--memories` is the most facts of a stream.

A careful agent submits each fact with a topic that names relation and subject, and lets it supersede the fact that the
refusal names. Then the named query `facts-about` has the value, and recall is asked in words too. A careless agent
remembers the bare texts: nothing ends, and it is shown how often the replaced fact is a neighbour of the new one whose
differences are the two values. Beside it stand BM25 (SQLite FTS5) and the vectors of the local embedder, which answer
with the best fact, and the last of the ten best by BM25 that mentions the subject.
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
from bench import frame
from bench.frame import Options, Row
from bench.neighbours import PROJECT, compared
from jidomem.base.words import words
from jidomem.errors import Conflict
from jidomem.models.local_embedder import LocalEmbedder
from jidomem.recall import neighbours
from jidomem.records.differences import differences
from jidomem.runtime.root import Jidomem

TOKENS, A_TOKEN = (6_000, 32_000, 64_000, 262_000), 4
QUESTIONS, GOAL, SEED = 100, 95, 7
#: The share of the facts that replace an earlier one.
REPLACING = 0.35
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
#: The entities of each kind, of a hundred; no kind has fewer than FEWEST.
SHARES, FEWEST = {"person": 50, "company": 18, "city": 18, "country": 6, "sport": 5, "language": 3}, 8
SIDES = ("by key", "recalled", "bare texts recalled", "BM25", "vectors", "last mention")
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
    """A stream of about so many *tokens*, with its questions, all by *seed*."""

    def __init__(self, tokens: int, seed: int = SEED) -> None:
        self._random = Random(f"{seed} {tokens}")
        self.facts: list[Fact] = []
        self._values: dict[Key, set[str]] = {}
        size = max(20, tokens * A_TOKEN // 100)
        names = _names(self._random)
        kinds = {kind: max(FEWEST, size * share // 100) for kind, share in SHARES.items()}
        self._entities = {kind: [next(names) for _ in range(number)] for kind, number in kinds.items()}
        keys = [(name, subject) for name, row in RELATIONS.items() for subject in self._entities[row[0]]]
        self._random.shuffle(keys)
        stated: list[Key] = []
        characters = 0
        while characters < tokens * A_TOKEN:
            replaces = stated and (not keys or self._random.random() < REPLACING)
            relation, subject = self._random.choice(stated) if replaces else keys.pop()
            fact = Fact(len(self.facts), relation, subject, self._value(relation, subject))
            stated += [] if replaces else [fact.key]
            self.facts.append(fact)
            characters += len(f"{fact.number}. {fact.text}\n")

    def _value(self, relation: str, subject: str) -> str:
        known = self._values.setdefault((relation, subject), {subject})
        value = self._random.choice([each for each in self._entities[RELATIONS[relation][1]] if each not in known])
        known.add(value)
        return value

    @cached_property
    def versions(self) -> dict[Key, list[Fact]]:
        """The facts of each subject and relation, the current one last."""
        versions: dict[Key, list[Fact]] = {}
        for fact in self.facts:
            versions.setdefault(fact.key, []).append(fact)
        return versions

    def single(self) -> list[list[str]]:
        """Questions of one hop: subject and relation of facts that were replaced."""
        replaced = [key for key, facts in self.versions.items() if len(facts) > 1]
        return [[subject, relation] for relation, subject in self._some(replaced)]

    def multiple(self) -> list[list[str]]:
        """Questions of two or three hops: a subject and the relations to follow."""
        following: dict[str, list[str]] = {}
        for relation, subject in self.versions:
            following.setdefault(subject, []).append(relation)
        paths = []
        for relation, subject in self._random.sample([*self.versions], len(self.versions)):
            path, at = [subject, relation], self.current(relation, subject)
            changed = len(self.versions[relation, subject])
            while len(path) < self._random.choice((3, 4)) and at in following:
                path.append(self._random.choice(following[at]))
                changed = max(changed, len(self.versions[path[-1], at]))
                at = self.current(path[-1], at)
            if len(path) > 2 and changed > 1:
                paths.append(path)
        return self._some(paths)

    def current(self, relation: str, subject: str) -> str:
        """The current value."""
        return self.versions[relation, subject][-1].value

    def answer(self, path: Sequence[str]) -> str:
        """The current value at the end of *path*."""
        at = path[0]
        for relation in path[1:]:
            at = self.current(relation, at)
        return at

    def _some(self, every: list[Any]) -> list[Any]:
        return self._random.sample(every, min(QUESTIONS, len(every)))


def _names(random: Random) -> Iterator[str]:
    """Yield invented names, each once."""
    syllables, known = _SYLLABLES.split(), set[str]()
    while True:
        name = "".join(random.choices(syllables, k=random.choice((2, 3, 3, 4)))).capitalize()
        if name not in known:
            known.add(name)
            yield name


Side = Callable[[str, str], str | None]


def accuracy(stream: Stream, paths: Sequence[Sequence[str]], side: Side) -> float:
    """The percentage of *paths* at whose end *side* has the current value; it is asked for a value hop by hop."""

    def followed(path: Sequence[str]) -> str | None:
        at: str | None = path[0]
        for relation in path[1:]:
            at = side(relation, at) if at else None
        return at

    return 100 * sum(followed(path) == stream.answer(path) for path in paths) / len(paths)


def question(relation: str, subject: str) -> str:
    return RELATIONS[relation][3].format(subject)


class Careful:
    """A memory whose facts name their key and supersede the fact that a refusal names."""

    def __init__(self, memory: Jidomem, stream: Stream) -> None:
        self._memory = memory
        self._values: dict[str, str] = {}
        for fact in stream.facts:
            topic = f"{fact.relation} of {fact.subject}"
            try:
                receipt = memory.remember(fact.text, topic=topic)
            except Conflict as refusal:
                receipt = memory.remember(fact.text, topic=topic, supersedes=[*refusal.items])
            self._values[receipt.iri] = fact.value

    def by_key(self, relation: str, subject: str) -> str | None:
        """The value by the named query."""
        rows = self._memory.ask("facts-about", topic=f"{relation} of {subject}")  # also of facts with a longer name
        named = [row["subject"] for row in rows if subject in re.findall(r"\w+", row["content"])]
        return self._values[named[0]] if len(named) == 1 else None

    def by_recall(self, relation: str, subject: str) -> str | None:
        """The value of the first memory recalled."""
        hits = self._memory.recall(question(relation, subject), limit=1).entries
        return self._values[hits[0].id] if hits else None


class Careless:
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
        """The value of the first memory recalled."""
        hits = self._memory.recall(question(relation, subject), limit=1).entries
        return self._facts[hits[0].id].value if hits else None

    def noticed(self, keys: Sequence[Key]) -> tuple[float, float, float]:
        """The percentages of the new facts of *keys* with the replaced fact as neighbour, and as nearest one, and of
        those neighbours whose only difference is that of the two values.
        """
        near = first = clear = 0
        for key in keys:
            old, new = self._stream.versions[key][-2:]
            likeness = compared(self._memory, new.text, new.text)
            every = [(value, self._facts[iri]) for iri, value in likeness.items() if self._facts[iri] is not new]
            shown = [fact for value, fact in every if value >= neighbours.LEAST][: neighbours.MOST]
            near += old in shown
            first += shown[:1] == [old]
            clear += old in shown and [each.other for each in differences(old.text, new.text)] == [new.value]
        return 100 * near / len(keys), 100 * first / len(keys), 100 * clear / max(near, 1)


class Plain:
    """The texts in SQLite's FTS5 and as vectors, without any notion of a replaced fact."""

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
        """The ten best facts with their ranks, the least of which is the best."""
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(words(question(relation, subject))))
        text = "SELECT rank, rowid FROM fact WHERE fact MATCH ? ORDER BY rank LIMIT 10"
        return [(rank, self._facts[number - 1]) for rank, number in self._texts.execute(text, (match,))]

    def bm25(self, relation: str, subject: str) -> str | None:
        """The value of one of the best facts: equal texts but for the value have the same rank."""
        best = self._best(relation, subject)
        return self._random.choice([fact for rank, fact in best if rank == best[0][0]]).value if best else None

    def last_mention(self, relation: str, subject: str) -> str | None:
        """The value of the newest of the ten best facts that names the subject."""
        facts = [fact for _, fact in self._best(relation, subject) if subject in fact.text]
        return max(facts, key=lambda fact: fact.number).value if facts else None

    def vectors(self, relation: str, subject: str) -> str | None:
        (vector,) = self._embedder.generate([question(relation, subject)])
        return self._facts[int(np.argmax(self._vectors @ np.asarray(vector)))].value


def measured(stream: Stream, folder: Path) -> dict[str, Any]:
    """The figures of one stream: accuracies of single and multiple hops by side, and what is noticed in bare texts."""
    single, multiple = stream.single(), stream.multiple()
    embedder = LocalEmbedder()
    with ExitStack() as stack:
        careful = Careful(_opened(stack, folder / "careful", None), stream)
        careless = Careless(_opened(stack, folder / "careless", embedder), stream)
        plain = Plain(stream, embedder)
        stack.callback(plain.close)
        sides = (careful.by_key, careful.by_recall, careless.by_recall, plain.bm25, plain.vectors, plain.last_mention)
        accuracies = {
            name: [accuracy(stream, paths, side) for paths in (single, multiple)]
            for name, side in zip(SIDES, sides, strict=True)
        }
        near, first, clear = careless.noticed([(relation, subject) for subject, relation in single])
    return {"facts": len(stream.facts), **accuracies, "near": near, "nearest": first, "clear": clear}


def _opened(stack: ExitStack, root: Path, embedder: LocalEmbedder | None) -> Jidomem:
    memory = stack.enter_context(jidomem.open(root, project=PROJECT, agent="bench", embedder=embedder))
    memory.read_log = None
    return memory


def rows(options: Options) -> Iterator[Row]:
    """Two rows for each size of up to as many facts as there are to be memories."""
    for tokens in TOKENS[: 1 if options.quick else len(TOKENS)]:
        stream = Stream(tokens)
        if len(stream.facts) > options.memories:
            return
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            one = measured(stream, Path(folder))
        shown = {name: " / ".join(f"{share:.0f}" for share in each) for name, each in one.items() if name in SIDES}
        beside = ", ".join(f"{name} {shown[name]}" for name in ("BM25", "vectors", "last mention"))
        yield Row(
            f"current value of {tokens:,} tokens, {one['facts']:,} facts, one / more hops",
            f"{GOAL} %",
            f"by key {shown['by key']} %, recalled {shown['recalled']} %",
            f"{beside} %",
            min(one["by key"]) >= GOAL,
            one,
        )
        yield Row(
            f"the same as bare texts, {one['facts']:,} facts",
            "-",
            f"recalled {shown['bare texts recalled']} %; replaced fact a neighbour {one['near']:.0f} %, the nearest"
            f" {one['nearest']:.0f} %, both values named {one['clear']:.0f} %",
        )


if __name__ == "__main__":
    frame.main(__spec__.name, rows)
