"""The reranker: a second order of the best memories, by a model that reads each together with the query.

It is a cross-encoder in a folder of the user, or an endpoint. If it fails or is too slow, the first order stands.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from jidomem.base.clock import monotonic_time
from jidomem.errors import JidomemError, ModelUnavailable
from jidomem.models import local_embedder
from jidomem.models.endpoint import ModelEndpoint
from jidomem.models.sentence_model import NEEDED, ModelFiles, network
from jidomem.records.recall import Hit, MemoryRecall

#: The number of memories that are reordered.
RERANKED = 50
_OUTPUT, _PATH = "logits", "/rerank"


class Reranker(Protocol):
    """Rates texts for a query; any thread may call it."""

    @property
    def name(self) -> str:
        """Return the model and its place."""

    def scores(self, query: str, texts: Sequence[str], seconds: float) -> Sequence[float]:
        """Return the relevance of each of *texts*, in their order; raise ModelUnavailable, also after *seconds*."""


def rerank(hits: MemoryRecall, reranker: Reranker, limit: int, seconds: float) -> MemoryRecall:
    """Return the first *limit* of *hits*, of which the first RERANKED are ordered by *reranker* within *seconds*.

    If that fails, their order stands. A superseded memory stays behind its successor. `metadata["reranker"]` has the
    model and the error.
    """
    first, rest = list(hits.entries[:RERANKED]), hits.entries[RERANKED:]
    error = None
    try:
        texts = [f"{hit.content}\n{hit.excerpt}" for hit in first]
        scores = reranker.scores(hits.request.query, texts, seconds) if first else []
        if len(scores) != len(first) or not all(map(math.isfinite, scores)):
            detail = f"{reranker.name} did not return a finite number for each of {len(first)} texts"
            raise ModelUnavailable(detail, hint="use another reranker")
        first = _with_scores(_ordered(first, scores), sorted((hit.score for hit in first), reverse=True))
    except JidomemError as failure:
        error = failure.detail
    entries = [*first, *rest]
    metadata = {
        **hits.metadata,
        "more": bool(hits.metadata.get("more")) or len(entries) > limit,
        "reranker": {"model": reranker.name, "error": error},
    }
    return replace(hits, entries=entries[:limit], metadata=metadata)


def _ordered(hits: Sequence[Hit], scores: Sequence[float]) -> list[Hit]:
    """Return *hits* by their *scores*; a superseded memory has at most the score of its successor before it."""
    score_of: dict[str, float] = {}
    for hit, score in zip(hits, scores, strict=True):
        successors = hit.metadata.get("superseded_by") or ()
        names = [successors] if isinstance(successors, str) else successors
        score_of[hit.id] = min([score, *(score_of[name] for name in names if name in score_of)])
    return sorted(hits, key=lambda hit: -score_of[hit.id])


def _with_scores(hits: Sequence[Hit], scores: Sequence[float]) -> list[Hit]:
    """Return *hits* with *scores*: each place keeps its probability, as models rate on scales of their own."""
    return [replace(hit, score=score) for hit, score in zip(hits, scores, strict=True)]


class CrossEncoder:
    """A reranker from a folder with an ONNX model and its tokenizer; the model is loaded at the first use."""

    def __init__(self, folder: Path) -> None:
        """Use the model in *folder*; raises ModelUnavailable, and Failed `missing_extra` without the packages."""
        if lacking := local_embedder.missing(NEEDED):
            raise local_embedder.not_there(lacking, "reranker")
        self._files = ModelFiles.of(folder)

    @property
    def name(self) -> str:
        """Return the name of the folder."""
        return self._files.folder.name

    @property
    def why(self) -> JidomemError | None:
        """Return the reason why the model cannot be used, None if there is none; loads it."""
        try:
            self._score("a", "a")
        except ModelUnavailable as error:
            return error
        return None

    def scores(self, query: str, texts: Sequence[str], seconds: float) -> list[float]:
        """Return the score of each of *texts* for *query*; raise ModelUnavailable after *seconds* beside loading."""
        network(self._files)
        until = monotonic_time() + seconds

        def score(text: str) -> float:
            if monotonic_time() >= until:
                detail = f"{self._files.model} did not rate {len(texts)} texts within {seconds:g} seconds"
                raise ModelUnavailable(detail, hint="raise seconds, or use a smaller model")
            return self._score(query, text)

        return local_embedder.map_texts(score, texts)

    def _score(self, query: str, text: str) -> float:
        outputs, _ = network(self._files)(query, text)
        values = outputs.get(_OUTPUT)
        if values is None or values.shape != (1, 1):
            shown = ", ".join(f"{name} of shape {value.shape}" for name, value in outputs.items())
            detail = f"{self._files.model} has no output {_OUTPUT} with one number for a text; it has {shown}"
            raise ModelUnavailable(detail, hint="use a cross-encoder with one label")
        return float(values[0, 0])


class EndpointReranker(NamedTuple):
    """A reranker at an endpoint that answers `/rerank` as those of Cohere and Jina do."""

    endpoint: ModelEndpoint
    model: str | None = None

    @property
    def name(self) -> str:
        """Return the model and its address."""
        return f"{self.model} at {self.endpoint.address}" if self.model else str(self.endpoint.address)

    def scores(self, query: str, texts: Sequence[str], seconds: float) -> list[float]:
        """Return the relevance of each of *texts* for *query*; raise ModelUnavailable, also after *seconds*."""
        body: dict[str, Any] = {"query": query, "documents": [*texts], "top_n": len(texts)}
        answer = self.endpoint.post(_PATH, {**body, "model": self.model} if self.model else body, seconds)
        results = answer.get("results")
        by_place = dict(map(_result, results)) if isinstance(results, list) else {}
        if not isinstance(results, list) or len(results) != len(texts) or {*by_place} != {*range(len(texts))}:
            raise self._unusable(f"did not return one result for each of {len(texts)} texts")
        if not all(type(score) in (int, float) and math.isfinite(score) for score in by_place.values()):
            raise self._unusable("returned a relevance_score that is no number")
        return [float(by_place[place]) for place in range(len(texts))]

    def _unusable(self, what: str) -> ModelUnavailable:
        return ModelUnavailable(f"{self.name} {what}", hint="check that the endpoint serves /rerank")


class RerankerUnavailable(NamedTuple):
    """A reranker that cannot be used now; every request raises *why*."""

    name: str
    why: JidomemError

    def scores(self, query: str, texts: Sequence[str], seconds: float) -> Sequence[float]:
        """Raise ModelUnavailable."""
        raise ModelUnavailable(self.why.detail, hint=self.why.hint)


def _result(result: Any) -> tuple[int, Any]:
    """Return the index and the score of a *result*; -1 for one without an index."""
    index = result.get("index") if isinstance(result, Mapping) else None
    return (index, result.get("relevance_score")) if type(index) is int else (-1, None)
