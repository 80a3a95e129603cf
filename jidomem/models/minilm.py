"""all-MiniLM-L6-v2 as a graph that reckons with whole numbers of 8 bits, made from the weights as they are published.

The published file has each weight in 8 bits, and reckons with floats; here what is multiplied is put into 8 bits as
well, for each text by itself, so that the same text gives the same vector whatever else is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from jidomem.models.onnx_file import FLOAT, Array, Graph, arrays

MOST = 128
_LAYERS, _HEADS, _NEAR_NOTHING = 6, 12, 1e-12
#: What onnxruntime would make of the graph, and what is slower: it takes a fifth longer.
SLOWER = ("SkipLayerNormFusion",)
_OURS = "com.microsoft"  # operators that onnxruntime has beyond the standard


def graph(data: bytes) -> bytes:
    """Return the network in the published file *data* as the file of a graph: numbers of pieces in, one vector out."""
    return _Writer(arrays(data)).written()


class _Writer:
    def __init__(self, weights: Mapping[str, Array]) -> None:
        self._weights, self._graph = weights, Graph()
        self._matrices = sorted(
            (name.removesuffix("_q") for name in weights if re.fullmatch(r"val_\d+_q", name)),
            key=lambda name: int(name.removeprefix("val_")),
        )

    def written(self) -> bytes:
        state = self._embedded("pieces")
        for layer in range(_LAYERS):
            state = self._layer(layer, state)
        mean = self._op("ReduceMean", [state, self._put(np.array([1], np.int64))], keepdims=0)
        return self._graph.written("pieces", 2, mean)

    def _embedded(self, pieces: str) -> str:
        """Return the sum of what stands for each piece and for its place."""
        of = "inner.embeddings."
        words, scale = self._named(of + "word_embeddings.weight_q"), self._named(of + "word_embeddings.weight_scale")
        place = self._weights[of + "position_embeddings.weight_q"].astype(np.float32)
        place = place * self._weights[of + "position_embeddings.weight_scale"]
        place = (place + self._weights[of + "token_type_embeddings.weight"][0])[:MOST]
        said = self._op("Cast", [self._op("Gather", [words, pieces])], to=FLOAT)
        said = self._op("Mul", [said, self._op("Gather", [scale, pieces])])
        nothing, length = self._put(np.array([0], np.int64)), self._op("Shape", [pieces], start=1, end=2)
        there = self._op("Slice", [self._put(place), nothing, length, nothing])
        norm = [self._named(of + "LayerNorm.weight"), self._named(of + "LayerNorm.bias")]
        return self._op("LayerNormalization", [self._op("Add", [said, there]), *norm], axis=-1, epsilon=_NEAR_NOTHING)

    def _layer(self, layer: int, state: str) -> str:
        of = f"inner.encoder.layer.{layer}."
        query, key, value, out, wide, narrow = self._matrices[6 * layer : 6 * layer + 6]
        biases = [f"{of}attention.self.{name}.bias" for name in ("query", "key", "value")]
        asked = self._graph.operators(
            "Split", [self._times(state, [query, key, value], biases)], 3, axis=-1, num_outputs=3
        )
        seen = self._op("MultiHeadAttention", asked, of=_OURS, num_heads=_HEADS)
        seen = self._times(seen, [out], [of + "attention.output.dense.bias"])
        state = self._added(seen, state, of + "attention.output.LayerNorm")
        thought = self._times(state, [wide], [of + "intermediate.dense.bias"])
        thought = self._op("Gelu", [thought], of=_OURS)
        thought = self._times(thought, [narrow], [of + "output.dense.bias"])
        return self._added(thought, state, of + "output.LayerNorm")

    def _times(self, state: str, matrices: list[str], biases: list[str]) -> str:
        """Return *state* times the *matrices* beside each other, in whole numbers, and their biases added."""
        values = np.concatenate([self._weights[name + "_q"] for name in matrices], axis=1)
        scales = np.concatenate([self._weights[name + "_scale"].reshape(-1) for name in matrices])
        bias = np.concatenate([self._weights[name] for name in biases])
        inputs = [state, self._put(values), self._put(scales), "", self._put(bias)]
        return self._op("DynamicQuantizeMatMul", inputs, of=_OURS)

    def _added(self, new: str, state: str, norm: str) -> str:
        inputs = [self._op("Add", [new, state]), self._named(norm + ".weight"), self._named(norm + ".bias")]
        return self._op("LayerNormalization", inputs, axis=-1, epsilon=_NEAR_NOTHING)

    def _op(self, kind: str, inputs: list[str], **more: Any) -> str:
        return self._graph.operator(kind, inputs, **more)

    def _put(self, values: Array) -> str:
        return self._graph.array(values)

    def _named(self, name: str) -> str:
        return self._put(self._weights[name])
