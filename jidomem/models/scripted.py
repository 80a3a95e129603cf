"""The scripted language model: it returns the answers of a script, for tests of code that calls a model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from threading import Lock
from typing import Any, NamedTuple

from jidomem.errors import InvalidRequest, did_you_mean
from jidomem.models.embeddings import HashedStems
from jidomem.models.offline import ModelBase
from jidomem.records.interfaces import Embedder, LanguageModel

FUNCTIONS = (
    "generate_meta_chain", "continues", "calculate_embedding", "calculate_embeddings", "extract_keywords",
    "generate_segment_summary", "extract_traits", "rate_importance", "generate_final_prompt", "answer",
)  # fmt: skip


class NotScripted(InvalidRequest, AssertionError):
    """The script has no answer, or no further answer, to a call."""


class RecordedCall(NamedTuple):
    """One call: the name of the function, and its arguments."""

    function: str
    arguments: tuple[Any, ...]


def _scripted(function: str) -> Callable[..., Any]:
    """Return the method of that name, which answers by the script."""
    method = getattr(LanguageModel, function)
    signature = inspect.signature(method)

    @wraps(method)
    def answer(self: ScriptedModel, *arguments: Any, **keywords: Any) -> Any:
        return self._answer(function, signature.bind(self, *arguments, **keywords).args[1:])

    return answer


class ScriptedModel(ModelBase):
    """A language model with a script: for each function a list of answers, in order, or a function that makes them.

    An answer that is an exception is raised. Vectors come from *embedder* and the final prompt is that of any model
    unless they are scripted; any other function without a script is refused. `calls` has every call in order.

    >>> model = ScriptedModel(extract_keywords=[("index",)], continues=lambda previous, page: True)
    >>> model.extract_keywords("Which index?"), model.calls
    (('index',), [RecordedCall(function='extract_keywords', arguments=('Which index?',))])
    """

    name = "scripted"

    def __init__(self, embedder: Embedder | None = None, /, **script: Sequence[Any] | Callable[..., Any]) -> None:
        for function, answers in script.items():
            if function not in FUNCTIONS:
                hint = did_you_mean(function, FUNCTIONS, f"script one of: {', '.join(FUNCTIONS)}")
                raise InvalidRequest(f"a language model has no function {function!r}", hint=hint)
            if not callable(answers) and not isinstance(answers, list):
                raise InvalidRequest(
                    f"{function}={answers!r:.100} is not a script",
                    hint="give a list of answers in order, or a function",
                )
        super().__init__(embedder or HashedStems(64))
        self._script: dict[str, list[Any] | Callable[..., Any]] = {
            name: answers if callable(answers) else list(answers) for name, answers in script.items()
        }
        self._lock = Lock()
        self.calls: list[RecordedCall] = []

    generate_meta_chain = _scripted("generate_meta_chain")
    continues = _scripted("continues")
    calculate_embedding = _scripted("calculate_embedding")
    calculate_embeddings = _scripted("calculate_embeddings")
    extract_keywords = _scripted("extract_keywords")
    generate_segment_summary = _scripted("generate_segment_summary")
    extract_traits = _scripted("extract_traits")
    rate_importance = _scripted("rate_importance")
    generate_final_prompt = _scripted("generate_final_prompt")
    answer = _scripted("answer")

    def _answer(self, function: str, arguments: tuple[Any, ...]) -> Any:
        with self._lock:
            self.calls.append(RecordedCall(function, arguments))
            answers = self._script.get(function)
            if isinstance(answers, list):
                answers = _always(answers.pop(0)) if answers else None
        if answers is not None:
            return answers(*arguments)
        if function in self._script or not (unscripted := getattr(super(), function, None)):
            reason = "all its answers are used" if function in self._script else "is not in the script"
            raise NotScripted(f"{function} was called, and {reason}", hint=f"ScriptedModel({function}=[...])")
        return unscripted(*arguments)


def _always(answer: Any) -> Callable[..., Any]:
    def say(*_: Any) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return say
