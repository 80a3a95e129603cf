"""What the tiers are asked and told from outside: a question with its keywords and vector, and who it is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jidomem.embedder import Embedder
from jidomem.errors import InvalidRequest, ModelUnavailable
from jidomem.memoryos import form
from jidomem.memoryos.retrieval import Question
from jidomem.memoryos.scores import Policy
from jidomem.memoryos.teaching import Learnt
from jidomem.memoryos.values import KnowledgeEntry, TraitEntry
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
    form.text("query", query)
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


def refuse_other(model: object, policy: object) -> None:
    """Raise InvalidRequest unless *model* is a language model and *policy* is one, each if it is given."""
    if model is not None and not isinstance(model, LanguageModel):
        raise InvalidRequest(
            f"model={model!r:.100} is no language model", hint="give a ChatModel or an OfflineModel, or leave it out"
        )
    if policy is not None and not isinstance(policy, Policy):
        raise InvalidRequest(
            f"policy={policy!r:.100} is none", hint="give settings as policy=Policy(MemoryOSConfig(stm_capacity=7))"
        )


def named(about: About | None) -> tuple[str | None, str | None]:
    """Return the type and the identifier of *about*; raises InvalidRequest for what is no pair of them."""
    if about is None:
        return None, None
    if not isinstance(about, tuple | list) or len(about) != 2:
        raise InvalidRequest(
            f"about={about!r:.200} names nobody", hint='give a type and an identifier: ("user", "ana")'
        )
    return about[0], about[1]


def lack_vectors(learnt: Learnt, embedder: Embedder) -> bool:
    """Return whether something learnt has no vector; raise InvalidRequest for one that *embedder* cannot have made."""
    if not isinstance(learnt, Learnt):
        raise InvalidRequest(f"{learnt!r:.100} is nothing learnt", hint='give Learnt("user", "ana", {"name": "Ana"})')
    size = embedder.dimensions()
    entries: list[KnowledgeEntry | TraitEntry] = [*learnt.knowledge, *learnt.traits]
    for each in entries:
        if each.embedding is not None and len(each.embedding) != size:
            raise InvalidRequest(
                f"{each.text!r:.100} has a vector of {len(each.embedding)} numbers, and {embedder.name} makes {size}",
                hint="leave the vector out: it is made here",
            )
    return any(each.embedding is None for each in entries)
