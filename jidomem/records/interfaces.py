"""The contracts of an embedder, of the tables of working state and of a language model.

An embedder returns vectors of texts. Working state is tables with transactions, wherever they are
stored. A language model is asked before a move of memory, never inside one and never under a lock:
it may take seconds, and may fail.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from jidomem.errors import InvalidRequest, JidomemError

Vector = Sequence[float]


@runtime_checkable
class Embedder(Protocol):
    """Makes vectors of texts; any thread may call it, and the same text gives the same vector."""

    @property
    def name(self) -> str:
        """Return what tells its vectors from those of any other: the model, its version, and its dimension."""
        ...

    def dimensions(self) -> int:
        """Return how many numbers each of its vectors has."""
        ...

    def generate(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one vector for each of *texts*, in their order; raises ModelUnavailable, and then there is none."""
        ...


class Rows(Protocol):
    """The result of a statement: its rows, or the number of changed rows."""

    @property
    def rowcount(self) -> int:
        """Return how many rows were changed."""

    def fetchone(self) -> Any:
        """Return the next row, None after the last one."""

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""

    def __iter__(self) -> Iterator[Any]: ...


class StateTables(Protocol):
    """Tables in a transaction. Statements have the form that SQLite and PostgreSQL both take, with ? for each value."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Rows:
        """Return what a statement gives."""

    def executemany(self, sql: str, parameters: list[tuple[Any, ...]], /) -> object:
        """Do a statement once for each of the rows of values."""


class StateStore(Protocol):
    """The working state of a root; any number of threads and processes change it, one after the other."""

    def changing(self) -> AbstractContextManager[StateTables]:
        """Give the tables in a transaction that may write; it is durable once the block ends, and nobody else writes.

        Raises Busy where others write for too long. An exception in the block undoes all its changes.
        """

    def reading(self) -> AbstractContextManager[StateTables | None]:
        """Give the tables in a transaction that sees them as they are now; None where nothing was kept yet."""

    def lock(self, *name: str, wait: bool = False) -> AbstractContextManager[bool]:
        """Yield whether the caller has the lock *name* until the block ends; with *wait* it waits for the lock."""

    def scrub(self) -> None:
        """Write the tables anew, so that none of their bytes holds what was taken out."""

    def damaged(self, what: str) -> JidomemError:
        """Return the error for *what* was kept and cannot be read."""

    def close(self) -> None:
        """Let go of what is held open; from now on a transaction raises MemoryClosed."""


#: Whom something is about: the one who asks in a page, or the agent who answers.
OBJECT, AGENT = "object", "agent"


class DialogueTurn(Protocol):
    """One question and its answer, as far as a model is shown of it."""

    @property
    def query(self) -> str:
        """Return what was asked or said."""
        ...

    @property
    def response(self) -> str:
        """Return what the agent answered."""
        ...

    @property
    def timestamp(self) -> datetime:
        """Return when it was said."""
        ...

    @property
    def meta_chain(self) -> str | None:
        """Return what the talk was about up to here, None until a model was asked."""
        ...


class Segment(Protocol):
    """Pages about one topic, the oldest first."""

    @property
    def topic_summary(self) -> str:
        """Return what they are about, empty until a model was asked."""
        ...

    @property
    def keywords(self) -> Collection[str]:
        """Return the words they are found by."""
        ...

    @property
    def pages(self) -> Sequence[DialogueTurn]:
        """Return the pages."""
        ...


@dataclass(frozen=True, slots=True)
class Fact:
    """Something said that holds of `subject`: a short statement without a subject of its own ("works as a nurse").

    `page` is the number of the page that shows it, from 0; what is `private` is for no other agent.
    """

    text: str
    confidence: float = 1.0
    subject: str = OBJECT
    page: int | None = None
    private: bool = False

    def __post_init__(self) -> None:
        """Raise InvalidRequest for an empty text, a confidence outside 0 to 1, or another subject."""
        _sound(self.subject, self.confidence, text=self.text)


@dataclass(frozen=True, slots=True)
class Trait:
    """A lasting quality of `subject` by its name, `likes` or `works`, and how it shows; the rest is as of a fact."""

    name: str
    value: str
    confidence: float = 1.0
    subject: str = OBJECT
    page: int | None = None
    private: bool = False

    def __post_init__(self) -> None:
        """Raise InvalidRequest for an empty name or value, a confidence outside 0 to 1, or another subject."""
        _sound(self.subject, self.confidence, name=self.name, value=self.value)


@dataclass(frozen=True, slots=True)
class Learned:
    """The facts and traits learnt from a segment, in the order of the dialogue."""

    facts: tuple[Fact, ...] = ()
    traits: tuple[Trait, ...] = ()


@dataclass(frozen=True, slots=True)
class Known:
    """The long-term memory about the object `of` that is relevant to a question.

    Of the one whom the question is from, `asks` is True.
    """

    of: str
    profile: Mapping[str, Any] = field(default_factory=dict, hash=False)
    facts: tuple[str, ...] = ()
    traits: tuple[str, ...] = ()
    asks: bool = False


@dataclass(frozen=True, slots=True)
class ModelPrompt:
    """The prompt of a language model: instructions in `system`, quoted text of others in `user`."""

    system: str
    user: str

    def __str__(self) -> str:
        """Return all of it as one text."""
        return f"{self.system}\n\n{self.user}"


@dataclass(frozen=True, slots=True)
class OutputLimits:
    """The limits of a model's output: keywords, facts, traits, and characters of each text."""

    keywords: int = 20
    chain: int = 300
    summary: int = 400
    facts: int = 40
    traits: int = 20
    statement: int = 200

    def __post_init__(self) -> None:
        """Raise InvalidRequest for a bound that is no whole number from 1."""
        for name in self.__slots__:
            given = getattr(self, name)
            if isinstance(given, bool) or not isinstance(given, int) or given < 1:
                raise InvalidRequest(
                    f"{name}={given!r} is no whole number from 1", hint=f"give a number, or leave {name} out"
                )


@runtime_checkable
class LanguageModel(Protocol):
    """Reads dialogue for memory; any thread may call it, and each call may raise ModelUnavailable.

    Pages are given with the oldest first.
    """

    @property
    def name(self) -> str:
        """Return what tells its answers from those of any other."""
        ...

    @property
    def embedder(self) -> Embedder:
        """Return what makes its vectors."""
        ...

    def generate_meta_chain(self, pages: Sequence[DialogueTurn]) -> str:
        """Return what matters of the talk up to the last of *pages*, going on from the chain before it.

        That is the `meta_chain` of the last page before it that has one; *pages* are of one chain, at least one.
        """
        ...

    def continues(self, previous: DialogueTurn, page: DialogueTurn) -> bool:
        """Return whether *page* goes on with what *previous* was about, so that both are of one chain."""
        ...

    def calculate_embedding(self, text: str) -> Vector:
        """Return the vector of *text*."""
        ...

    def calculate_embeddings(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one vector for each of *texts*, in their order."""
        ...

    def extract_keywords(self, text: str) -> tuple[str, ...]:
        """Return the words that tell what *text* is about, each once in lower case, the one that tells most first."""
        ...

    def generate_segment_summary(self, pages: Sequence[DialogueTurn]) -> str:
        """Return in few sentences what *pages* are about; there is at least one."""
        ...

    def extract_traits(self, segment: Segment) -> Learned:
        """Return the facts and traits that the pages of *segment* show, of who asks and of the agent."""
        ...

    def rate_importance(self, facts: Sequence[str]) -> tuple[float, ...]:
        """Return for each of *facts* from 0 to 1 how much it matters to agents that were not there."""
        ...

    def generate_final_prompt(
        self,
        query: str,
        stm: Sequence[DialogueTurn],
        mtm: Sequence[DialogueTurn],
        lpm: Sequence[Known],
        system_memory: Sequence[str],
    ) -> ModelPrompt:
        """Return *query* and what each tier has on it as what a language model is asked; nothing is sent."""
        ...

    def answer(self, prompt: ModelPrompt) -> str:
        """Return the final answer to *prompt*; raises ModelUnavailable also where no chat model is there to give it."""
        ...


def _sound(subject: str, confidence: float, **texts: str) -> None:
    for name, text in texts.items():
        if not isinstance(text, str) or not text.strip():
            raise InvalidRequest(f"{name}={text!r} is no text", hint=f"say in {name} what was found")
    if subject not in (OBJECT, AGENT):
        raise InvalidRequest(f"subject={subject!r} is nobody", hint=f"use {OBJECT!r} or {AGENT!r}")
    number = isinstance(confidence, int | float) and not isinstance(confidence, bool)
    if not number or not (math.isfinite(confidence) and 0 <= confidence <= 1):
        raise InvalidRequest(f"confidence={confidence!r} is not from 0 to 1", hint="give a number such as 0.8")
