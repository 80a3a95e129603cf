"""The adapter of jidomem, by its Python interface: a root in the folder."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import jidomem
from bench.governance.system import Entry, Fact, Origin, Refused, StoredFact, System, now
from bench.governance.vectors import DIMENSIONS, vector
from jidomem.errors import Conflict
from jidomem.runtime.location import init

PROJECT = "p"


class Vectors:
    """An embedder whose vectors can be recognised in a file."""

    name = "bench-governance"

    def dimensions(self) -> int:
        return DIMENSIONS

    def generate(self, texts: Sequence[str]) -> Sequence[list[float]]:
        return [vector(text) for text in texts]


class JidomemRoot(System):
    name = "jidomem"
    usage = "facts with a topic, by `writer.remember`; active facts by `valid_at`"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.memory = jidomem.open(init(folder, PROJECT), wait=60)

    @classmethod
    def version(cls) -> str:
        return jidomem.__version__

    def close(self) -> None:
        self.memory.close()

    def store(self, fact: Fact) -> StoredFact:
        return self._remember(fact)

    def replace(self, old: str, fact: Fact) -> StoredFact:
        return self._remember(fact, supersedes=[old], reason="it changed")

    def _remember(self, fact: Fact, **options: Any) -> StoredFact:
        options |= {"about": [fact.about]} if fact.about else {}
        options |= {"valid_until": fact.valid_until.isoformat()} if fact.valid_until else {}
        options |= {"idempotency_key": fact.key} if fact.key else {}
        try:
            receipt = self.memory.writer.remember(
                PROJECT, fact.text, topic=fact.topic, asserted_by=fact.agent, asserted_in=fact.session,
                evidence=[fact.source], **options,
            )  # fmt: skip
        except Conflict as conflict:
            raise Refused(str(conflict)) from conflict
        differing = [similar.id for similar in receipt.similar or () if similar.differences]
        return StoredFact(receipt.iri, [*(conflict.iri for conflict in receipt.conflicts), *differing])

    def active_entries(self) -> Sequence[Entry]:
        return self._facts(valid_at=now())

    def search(self, words: str) -> Sequence[Entry]:
        return [Entry(hit.id, hit.content) for hit in self.memory.recall(words).entries]

    def embed(self) -> None:
        self.memory.close()
        self.memory = jidomem.open(self.folder / ".jidomem", wait=60, embedder=Vectors())
        self.memory.embeds_for = 60.0  # seconds that recall waits for the vectors that are missing

    def as_of(self, moment: datetime) -> Sequence[Entry]:
        return self._facts(as_of=moment)

    def _facts(self, **when: datetime) -> Sequence[Entry]:
        rows = self.memory.reader.ask("facts", project=PROJECT, **when)
        return [Entry(row["fact"], row["summary"]) for row in rows]

    def undo_to(self, moment: datetime) -> None:
        self.memory.roll_back(moment, reason="the import was wrong")

    def origin_of(self, entry: str) -> Origin:
        explanation = self.memory.reader.why(PROJECT, entry)
        agents, sessions = (
            [name.rpartition("/")[2] for name in explanation[key]] for key in ("asserted_by", "asserted_in")
        )
        return Origin(agents[0], explanation["recorded_at"], sessions[0], explanation["evidence"][0]["text"])

    def replaced_text(self, entry: str) -> str | None:
        old = self.memory.reader.why(PROJECT, entry)["replaced"]
        return old[0]["summary"] if old else None

    def end_reason(self, entry: str) -> str | None:
        new = self.memory.reader.why(PROJECT, entry)["replaced_by"]
        return new[0]["reason"] or new[0]["summary"] if new else None

    def disagreements(self) -> Sequence[tuple[str, str]]:
        return [(row["a"], row["b"]) for row in self.memory.reader.ask("conflicts", project=PROJECT)]

    def require_expiration(self) -> None:
        """It has `valid_until`."""

    def entries_of_changed_files(self) -> Sequence[str]:
        return [row["item"] for row in self.memory.changed_files(PROJECT)]

    def erase(self, text: str) -> None:
        plan = self.memory.maintenance.plan(PROJECT, None, texts=[text])
        self.memory.maintenance.redact(plan, agent="ana", reason="it named a customer")
