"""A question as the tiers are asked it: its keywords and its vector, as far as the model could be asked for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jidomem.errors import InvalidRequest, ModelUnavailable
from jidomem.memoryos.retrieval import Question
from jidomem.model import Bounds, LanguageModel
from jidomem.models.keywords import keywords
from jidomem.runtime.chosen import is_remote
from jidomem.stems import Stemmer

#: Whom a page is about, or who asks: a type and an identifier.
About = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and why a part of it is not the model's: None where all is."""

    question: Question
    error: str | None = None


def asked(model: LanguageModel, query: str, about: About | None) -> Asked:
    """Return the question *query*, for which a language model on another machine is not waited for.

    Its keywords are found by rule then, and where the model fails. Where the embedder does it has no vector.
    """
    error: str | None = None
    vector: Any = None
    try:
        found = _by_rule(query) if is_remote(model) else frozenset(model.extract_keywords(query))
    except ModelUnavailable as failed:
        found, error = _by_rule(query), failed.detail
    try:
        vector = model.calculate_embedding(query)
    except ModelUnavailable as failed:
        error = failed.detail
    return Asked(Question(query, vector, found, *named(about)), error)


def _by_rule(query: str) -> frozenset[str]:
    return frozenset(keywords(Stemmer(), query, Bounds().keywords))


def named(about: About | None) -> tuple[str | None, str | None]:
    """Return the type and the identifier of *about*; raises InvalidRequest for what is no pair of them."""
    if about is None:
        return None, None
    if not isinstance(about, tuple | list) or len(about) != 2:
        raise InvalidRequest(
            f"about={about!r:.200} names nobody", hint='give a type and an identifier: ("user", "ana")'
        )
    return about[0], about[1]
