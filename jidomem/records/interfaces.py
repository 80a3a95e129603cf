"""The contracts of a search by words, of an embedder, of the tables of working state and of a language model.

A search has weighted fields, the statistics of its corpus, and matches. An embedder returns vectors of texts. Working
state is tables with transactions, in any store. A language model is called before a move of memory, never inside one
and never under a lock: it may take seconds, and may fail.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol, runtime_checkable

from jidomem.base.json_values import is_unicode
from jidomem.errors import InvalidRequest, JidomemError

#: The searched fields of a memory, and the weight of a word in each.
FIELD_WEIGHTS: Mapping[str, float] = {
    "summary": 3.0,
    "topic": 3.0,
    "about": 2.0,
    "rationale": 1.5,
    "explanation": 1.0,
    "evidence": 0.5,
    "alternatives": 0.5,
}
#: The one name in `metadata` that filters: a request covers entries of its namespace only.
NAMESPACE = "namespace"
Vector = Sequence[float]


class CorpusStats(NamedTuple):
    """Statistics of a corpus at a moment: memories, words in all of them, and memories with each word."""

    memories: int
    words: int
    holding: Mapping[str, int]
    newest: str = ""


class Match(NamedTuple):
    """A memory with some of the words: its stems by field, its length in words, and its other ranking features."""

    number: int
    item: str
    recorded: str
    confidence: str
    length: int
    fields: tuple[str, ...]
    successors: tuple[str, ...] = ()
    is_about: bool = False


@runtime_checkable
class Embedder(Protocol):
    """Makes vectors of texts; any thread may call it, and equal texts have equal vectors."""

    @property
    def name(self) -> str:
        """Return the identity of its vectors: the model, its version, and its dimension."""

    def dimensions(self) -> int:
        """Return the dimension of its vectors."""

    def generate(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one vector for each of *texts*, in their order, or raise ModelUnavailable."""


def texts_of(texts: Sequence[str]) -> list[str]:
    """Return *texts* as a list; raises InvalidRequest for a single text and for values that are no Unicode text."""
    if isinstance(texts, str):
        raise InvalidRequest("a single text was given instead of a list", hint="give a list: [text]")
    for place, text in enumerate(texts):
        if not isinstance(text, str) or not is_unicode(text):
            raise InvalidRequest(f"text {place} is not a Unicode text: {text!r:.40}", hint="give texts alone")
    return list(texts)


class Rows(Protocol):
    """The result of a statement: its rows, or the number of changed rows."""

    @property
    def rowcount(self) -> int:
        """Return the number of changed rows."""

    def fetchone(self) -> Any:
        """Return the next row, None after the last one."""

    def fetchall(self) -> list[Any]:
        """Return the remaining rows."""

    def __iter__(self) -> Iterator[Any]: ...


class StateTables(Protocol):
    """Tables in a transaction. Statements are in the dialect common to SQLite and PostgreSQL, with ? for each value."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Rows:
        """Return the result of a statement."""

    def executemany(self, sql: str, parameters: list[tuple[Any, ...]], /) -> object:
        """Execute a statement once for each row of values."""


class StateStore(Protocol):
    """The working state of a root; threads and processes change it one after the other."""

    def changing(self) -> AbstractContextManager[StateTables]:
        """Yield the tables in an exclusive write transaction, which is durable once the block ends.

        Raises Busy if other writers take too long. An exception in the block rolls all its changes back.
        """

    def reading(self) -> AbstractContextManager[StateTables | None]:
        """Yield the tables in a read transaction with their present rows; None while nothing is stored."""

    def lock(self, *name: str, wait: bool = False) -> AbstractContextManager[bool]:
        """Yield whether the caller has the lock *name* until the block ends; with *wait* it waits for the lock."""

    def scrub(self) -> None:
        """Rewrite the tables, so that no byte of deleted rows remains."""

    def damaged(self, what: str) -> JidomemError:
        """Return the error for *what*: stored data that cannot be read."""

    def close(self) -> None:
        """Release the connection and files; transactions then raise MemoryClosed."""


#: The subject of a fact: the object, which asks in a page, or the agent, which answers.
OBJECT, AGENT = "object", "agent"


class DialogueTurn(Protocol):
    """One question and its answer, as a model sees it."""

    @property
    def query(self) -> str:
        """Return the question or statement."""

    @property
    def response(self) -> str:
        """Return the answer of the agent."""

    @property
    def timestamp(self) -> datetime:
        """Return the time of the turn."""

    @property
    def meta_chain(self) -> str | None:
        """Return the summary of the dialogue up to this turn, None before a model makes it."""


class Segment(Protocol):
    """Pages about one topic, the oldest first."""

    @property
    def topic_summary(self) -> str:
        """Return their summary, empty before a model makes it."""

    @property
    def keywords(self) -> Collection[str]:
        """Return the keywords for search."""

    @property
    def pages(self) -> Sequence[DialogueTurn]:
        """Return the pages."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A short statement about `subject`, without a subject of its own ("works as a nurse").

    `page` is the number of the page that shows it, from 0; a `private` fact is for no other agent.
    """

    text: str
    confidence: float = 1.0
    subject: str = OBJECT
    page: int | None = None
    private: bool = False

    def __post_init__(self) -> None:
        """Raise InvalidRequest for an empty text, a confidence outside 0 to 1, or another subject."""
        _validate(self.subject, self.confidence, text=self.text)


@dataclass(frozen=True, slots=True)
class Trait:
    """A lasting quality of `subject`: its name, such as `likes` or `works`, and its value; the rest is as in a fact."""

    name: str
    value: str
    confidence: float = 1.0
    subject: str = OBJECT
    page: int | None = None
    private: bool = False

    def __post_init__(self) -> None:
        """Raise InvalidRequest for an empty name or value, a confidence outside 0 to 1, or another subject."""
        _validate(self.subject, self.confidence, name=self.name, value=self.value)


class Learned(NamedTuple):
    """The facts and traits extracted from a segment, in the order of the dialogue."""

    facts: tuple[Fact, ...] = ()
    traits: tuple[Trait, ...] = ()


@dataclass(frozen=True, slots=True)
class Known:
    """The long-term memory about the object `of` that is relevant to a question.

    `asks` is True for the object that asks the question; `times` are those at which the facts were learned, in order.
    """

    of: str
    profile: Mapping[str, Any] = field(default_factory=dict, hash=False)
    facts: tuple[str, ...] = ()
    traits: tuple[str, ...] = ()
    asks: bool = False
    times: tuple[str, ...] = ()


class ModelPrompt(NamedTuple):
    """The prompt of a language model: instructions in `system`, quoted text of others in `user`."""

    system: str
    user: str

    def __str__(self) -> str:
        """Return both parts as one text."""
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
        """Raise InvalidRequest for a limit that is not a positive whole number."""
        for name in self.__slots__:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidRequest(
                    f"{name}={value!r:.200} is not a whole number from 1", hint=f"give a number, or leave {name} out"
                )


@runtime_checkable
class LanguageModel(Protocol):
    """Reads dialogue for memory; any thread may call it, and each call may raise ModelUnavailable.

    Pages are given with the oldest first.
    """

    @property
    def name(self) -> str:
        """Return the identity of its answers."""

    @property
    def embedder(self) -> Embedder:
        """Return the embedder of its vectors."""

    def generate_meta_chain(self, pages: Sequence[DialogueTurn]) -> str:
        """Return a summary of the dialogue up to the last of *pages*, which extends the previous summary.

        That is the `meta_chain` of the last earlier page with one; *pages* are at least one, of one chain.
        """

    def continues(self, previous: DialogueTurn, page: DialogueTurn) -> bool:
        """Return whether *page* continues the subject of *previous*, so that both are in one chain."""

    def calculate_embedding(self, text: str) -> Vector:
        """Return the vector of *text*."""

    def calculate_embeddings(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one vector for each of *texts*, in their order."""

    def extract_keywords(self, text: str) -> tuple[str, ...]:
        """Return the keywords of *text*, each once in lower case, the most specific first."""

    def generate_segment_summary(self, pages: Sequence[DialogueTurn]) -> str:
        """Return a summary of *pages*, at least one, in a few sentences."""

    def extract_traits(self, segment: Segment) -> Learned:
        """Return the facts and traits in the pages of *segment*, about the object and the agent."""

    def rate_importance(self, facts: Sequence[str]) -> tuple[float, ...]:
        """Return the importance of each of *facts* to agents that were not present, from 0 to 1."""

    def generate_final_prompt(
        self,
        query: str,
        stm: Sequence[DialogueTurn],
        mtm: Sequence[DialogueTurn],
        lpm: Sequence[Known],
        system_memory: Sequence[str],
    ) -> ModelPrompt:
        """Return the prompt of *query* with the memory of each tier; nothing is sent."""

    def answer(self, prompt: ModelPrompt) -> str:
        """Return the final answer to *prompt*; raises ModelUnavailable, also without a chat model."""


def _validate(subject: str, confidence: float, **texts: str) -> None:
    for name, text in texts.items():
        if not isinstance(text, str) or not text.strip():
            raise InvalidRequest(f"{name}={text!r:.200} is not a text", hint=f"give {name} as a text that is not empty")
    if subject not in (OBJECT, AGENT):
        raise InvalidRequest(f"subject={subject!r} is nobody", hint=f"use {OBJECT!r} or {AGENT!r}")
    number = isinstance(confidence, int | float) and not isinstance(confidence, bool)
    if not number or not (math.isfinite(confidence) and 0 <= confidence <= 1):
        raise InvalidRequest(f"confidence={confidence!r} is not from 0 to 1", hint="give a number such as 0.8")
