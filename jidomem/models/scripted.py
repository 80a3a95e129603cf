"""A language model that says what it was told to say, for tests of whoever asks one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeVar

from jidomem.errors import InvalidRequest, did_you_mean
from jidomem.models.embeddings import HashedStems
from jidomem.models.offline import final_prompt
from jidomem.records.interfaces import DialogueTurn, Embedder, Known, Learned, ModelPrompt, Segment, Vector

T = TypeVar("T")
#: What can be scripted.
FUNCTIONS = (
    "generate_meta_chain", "continues", "calculate_embedding", "calculate_embeddings", "extract_keywords",
    "generate_segment_summary", "extract_traits", "rate_importance", "generate_final_prompt", "answer",
)  # fmt: skip


class NotScripted(InvalidRequest, AssertionError):
    """The model was asked what its script has no answer to, or none any more."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call: the name of the function, and what it was given."""

    function: str
    given: tuple[Any, ...]


class ScriptedModel:
    """Answers by a script: a list of answers to one function, in order, or a function that makes them.

    An answer that is an exception is raised. What is not scripted is refused, but vectors, which are those of
    *embedder*, and the final prompt, which is built as by any model. `asked` has every call in order.

    >>> model = ScriptedModel(extract_keywords=[("index",)], continues=lambda previous, page: True)
    >>> model.extract_keywords("Which index?"), model.asked
    (('index',), [RecordedCall(function='extract_keywords', given=('Which index?',))])
    """

    name = "scripted"

    def __init__(self, embedder: Embedder | None = None, /, **script: Sequence[Any] | Callable[..., Any]) -> None:
        for function, answers in script.items():
            if function not in FUNCTIONS:
                hint = did_you_mean(function, FUNCTIONS, f"script one of: {', '.join(FUNCTIONS)}")
                raise InvalidRequest(f"a language model has no function {function!r}", hint=hint)
            if not callable(answers) and not isinstance(answers, list):
                raise InvalidRequest(
                    f"{function}={answers!r:.100} is no script", hint="give a list of answers in order, or a function"
                )
        self._embedder = embedder or HashedStems(64)
        self._script: dict[str, list[Any] | Callable[..., Any]] = {
            name: answers if callable(answers) else list(answers) for name, answers in script.items()
        }
        self._lock = Lock()
        self.asked: list[RecordedCall] = []

    @property
    def embedder(self) -> Embedder:
        """Return what makes its vectors where none are scripted."""
        return self._embedder

    def generate_meta_chain(self, pages: Sequence[DialogueTurn]) -> str:
        """Return the next chain of the script."""
        return self._scripted("generate_meta_chain", pages)

    def continues(self, previous: DialogueTurn, page: DialogueTurn) -> bool:
        """Return the next answer of the script."""
        return self._scripted("continues", previous, page)

    def calculate_embedding(self, text: str) -> Vector:
        """Return the next vector of the script, that of the embedder where there is none."""
        return self._scripted("calculate_embedding", text, unscripted=lambda: self._embedder.generate([text])[0])

    def calculate_embeddings(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return the next vectors of the script, those of the embedder where there are none."""
        return self._scripted("calculate_embeddings", texts, unscripted=lambda: self._embedder.generate(texts))

    def extract_keywords(self, text: str) -> tuple[str, ...]:
        """Return the next keywords of the script."""
        return self._scripted("extract_keywords", text)

    def generate_segment_summary(self, pages: Sequence[DialogueTurn]) -> str:
        """Return the next summary of the script."""
        return self._scripted("generate_segment_summary", pages)

    def extract_traits(self, segment: Segment) -> Learned:
        """Return the next facts and traits of the script."""
        return self._scripted("extract_traits", segment)

    def rate_importance(self, facts: Sequence[str]) -> tuple[float, ...]:
        """Return the next ratings of the script."""
        return self._scripted("rate_importance", facts)

    def generate_final_prompt(
        self,
        query: str,
        stm: Sequence[DialogueTurn],
        mtm: Sequence[DialogueTurn],
        lpm: Sequence[Known],
        system_memory: Sequence[str],
    ) -> ModelPrompt:
        """Return the next prompt of the script, the one that any model builds where there is none."""
        given = (query, stm, mtm, lpm, system_memory)
        return self._scripted("generate_final_prompt", *given, unscripted=lambda: final_prompt(*given))

    def answer(self, prompt: ModelPrompt) -> str:
        """Return the next answer of the script."""
        return self._scripted("answer", prompt)

    def _scripted(self, function: str, *given: Any, unscripted: Callable[[], T] | None = None) -> T:
        with self._lock:
            self.asked.append(RecordedCall(function, given))
            makes = self._script.get(function)
            if isinstance(makes, list):
                makes = _always(makes.pop(0)) if makes else None
        if makes is not None:
            told: T = makes(*given)
            return told
        if unscripted is None or function in self._script:
            why = "all its answers were given" if function in self._script else "is not in the script"
            raise NotScripted(f"{function} was asked, and {why}", hint=f"ScriptedModel({function}=[...])")
        return unscripted()


def _always(answer: Any) -> Callable[..., Any]:
    def say(*_: Any) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return say
