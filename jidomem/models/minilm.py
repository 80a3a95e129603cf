"""The MiniLM network: an ONNX graph with 8-bit integers, built from the published weights.

The published file has its weights in 8 bits and computes in floats. Here each factor is quantised as well, for each
text by itself, so that a text has the same vector in every batch. The module also reads and writes the few parts of the
ONNX format that the network needs.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

#: The numbers of element types in the format.
FLOAT, INT8, INT64 = 1, 3, 7
_TYPES: Mapping[int, type[np.generic]] = {FLOAT: np.float32, INT8: np.int8, INT64: np.int64}
_FORM = 9  # version of the file format; the versions of the operator sets are below
_SETS = {"": 18, "com.microsoft": 1}
_GRAPH, _ARRAYS = 7, 5


def arrays(data: bytes) -> dict[str, Array]:
    """Return the arrays of the network in *data*, by name; raises ValueError for another file."""
    by_name = {}
    for field, graph in _fields(memoryview(data)):
        for inner, tensor in _fields(graph) if field == _GRAPH else ():
            if inner == _ARRAYS:
                name, array = _array(tensor)
                by_name[name] = array
    return by_name


def _array(data: memoryview) -> tuple[str, Array]:
    shape, kind, name, raw = list[int](), FLOAT, "", memoryview(b"")
    for field, value in _fields(data):
        if field == 1:
            shape += [value] if isinstance(value, int) else _varints(value)
        elif field == 2:
            kind = value
        elif field == 8:
            name = bytes(value).decode()
        elif field == 9:
            raw = value
    return name, np.frombuffer(raw, _TYPES.get(kind, np.uint8)).reshape(shape if kind in _TYPES else -1)


def _fields(data: memoryview) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        if tag & 7 == 0:
            value, at = _varint(data, at)
            yield tag >> 3, value
        else:
            size, at = _varint(data, at) if tag & 7 == 2 else ({1: 8, 5: 4}.get(tag & 7, len(data) + 1), at)
            if at + size > len(data):
                raise ValueError("it is cut, or no ONNX file")
            yield tag >> 3, data[at : at + size]
            at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while at < len(data) and shift < 64:
        value |= (data[at] & 0x7F) << shift
        if data[at] < 0x80:
            return value, at + 1
        at, shift = at + 1, shift + 7
    raise ValueError("it is cut, or no ONNX file")


def _varints(data: memoryview) -> list[int]:
    values, at = list[int](), 0
    while at < len(data):
        value, at = _varint(data, at)
        values.append(value)
    return values


class OnnxGraph:
    """A graph under construction: arrays and operators are added, and referred to by name."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # joined once: each copy of the 22 MB takes 10 ms
        self._count = 0

    def array(self, values: Array) -> str:
        """Add an array of one of the known types, and return its name."""
        kind = next(number for number, known in _TYPES.items() if values.dtype == known)
        shape, name = [number_field(1, size) for size in values.shape], self._name()
        data = values.tobytes()
        self._add(_ARRAYS, *shape, number_field(2, kind), bytes_field(8, name.encode()), _head(9, len(data)), data)
        return name

    def operator(self, kind: str, inputs: Sequence[str], *, domain: str = "", **attributes: float | int) -> str:
        """Add an operator of the set *domain*, and return the name of its output."""
        return self.operators(kind, inputs, 1, domain=domain, **attributes)[0]

    def operators(
        self, kind: str, inputs: Sequence[str], gives: int, *, domain: str = "", **attributes: float | int
    ) -> list[str]:
        """Add an operator with several outputs, and return their names."""
        names = [self._name() for _ in range(gives)]
        parts = [bytes_field(1, name.encode()) for name in inputs] + [bytes_field(2, name.encode()) for name in names]
        settings = [bytes_field(5, _attribute(name, value)) for name, value in attributes.items()]
        self._add(1, *parts, bytes_field(4, kind.encode()), *settings, bytes_field(7, domain.encode()))
        return names

    def written(self, inputs: str, rank: int, outputs: str) -> bytes:
        """Return the file of the graph, which takes integers as *inputs* and returns floats as *outputs*."""
        ends = bytes_field(11, value_info(inputs, INT64, rank)) + bytes_field(12, value_info(outputs, FLOAT, rank))
        graph = [*self._parts, bytes_field(2, b"graph"), ends]
        sets = [
            bytes_field(8, bytes_field(1, domain.encode()) + number_field(2, version))
            for domain, version in _SETS.items()
        ]
        return b"".join([number_field(1, _FORM), *sets, _head(_GRAPH, sum(map(len, graph))), *graph])

    def _add(self, field: int, *parts: bytes) -> None:
        self._parts += [_head(field, sum(map(len, parts))), *parts]

    def _name(self) -> str:
        self._count += 1
        return f"n{self._count}"


def _attribute(name: str, value: float | int) -> bytes:
    number = isinstance(value, int)
    encoded = number_field(3, value) if isinstance(value, int) else _tag(2, 5) + struct.pack("<f", value)
    return bytes_field(1, name.encode()) + encoded + number_field(20, 2 if number else 1)


def value_info(name: str, kind: int, rank: int) -> bytes:
    """Return the `ValueInfoProto` of a tensor of element type *kind* with *rank* dimensions of any size."""
    shape = b"".join(bytes_field(1, bytes_field(2, f"d{place}".encode())) for place in range(rank))
    tensor = number_field(1, kind) + bytes_field(2, shape)
    return bytes_field(1, name.encode()) + bytes_field(2, bytes_field(1, tensor))


def _tag(field: int, form: int) -> bytes:
    return _encode_varint(field << 3 | form)


def number_field(field: int, value: int) -> bytes:
    """Return a field of a protobuf message with an integer."""
    return _tag(field, 0) + _encode_varint(value & 0xFFFFFFFFFFFFFFFF)  # negative ones take ten bytes


def bytes_field(field: int, value: bytes) -> bytes:
    """Return a field of a protobuf message with bytes: text, or a message."""
    return _head(field, len(value)) + value


def _head(field: int, size: int) -> bytes:
    return _tag(field, 2) + _encode_varint(size)


def _encode_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


MOST = 128
_LAYERS, _HEADS, _NEAR_NOTHING = 6, 12, 1e-12
#: The optimisations of onnxruntime that make the graph slower, by a fifth.
SLOWER = ("SkipLayerNormFusion",)
_MICROSOFT = "com.microsoft"  # operators that onnxruntime has beyond the standard


def build_onnx_model(data: bytes) -> bytes:
    """Return the ONNX graph of the published network *data*: numbers of word pieces in, one vector out."""
    return _Writer(arrays(data)).written()


class _Writer:
    def __init__(self, weights: Mapping[str, Array]) -> None:
        self._weights, self._graph = weights, OnnxGraph()
        self._matrices = sorted(
            (name.removesuffix("_q") for name in weights if re.fullmatch(r"val_\d+_q", name)),
            key=lambda name: int(name.removeprefix("val_")),
        )

    def written(self) -> bytes:
        state = self._embedded("pieces")
        for layer in range(_LAYERS):
            state = self._layer(layer, state)
        mean = self._op("ReduceMean", [state, self._constant(np.array([1], np.int64))], keepdims=0)
        return self._graph.written("pieces", 2, mean)

    def _embedded(self, pieces: str) -> str:
        prefix = "inner.embeddings."
        words, scale = (
            self._weight(prefix + "word_embeddings.weight_q"),
            self._weight(prefix + "word_embeddings.weight_scale"),
        )
        place = self._weights[prefix + "position_embeddings.weight_q"].astype(np.float32)
        place = place * self._weights[prefix + "position_embeddings.weight_scale"]
        place = (place + self._weights[prefix + "token_type_embeddings.weight"][0])[:MOST]
        state = self._op("Cast", [self._op("Gather", [words, pieces])], to=FLOAT)
        state = self._op("Mul", [state, self._op("Gather", [scale, pieces])])
        nothing, length = self._constant(np.array([0], np.int64)), self._op("Shape", [pieces], start=1, end=2)
        positions = self._op("Slice", [self._constant(place), nothing, length, nothing])
        norm = [self._weight(prefix + "LayerNorm.weight"), self._weight(prefix + "LayerNorm.bias")]
        return self._op(
            "LayerNormalization", [self._op("Add", [state, positions]), *norm], axis=-1, epsilon=_NEAR_NOTHING
        )

    def _layer(self, layer: int, state: str) -> str:
        prefix = f"inner.encoder.layer.{layer}."
        query, key, value, out, wide, narrow = self._matrices[6 * layer : 6 * layer + 6]
        biases = [f"{prefix}attention.self.{name}.bias" for name in ("query", "key", "value")]
        inputs = self._graph.operators(
            "Split", [self._matmul(state, [query, key, value], biases)], 3, axis=-1, num_outputs=3
        )
        seen = self._op("MultiHeadAttention", inputs, domain=_MICROSOFT, num_heads=_HEADS)
        seen = self._matmul(seen, [out], [prefix + "attention.output.dense.bias"])
        state = self._added(seen, state, prefix + "attention.output.LayerNorm")
        thought = self._matmul(state, [wide], [prefix + "intermediate.dense.bias"])
        thought = self._op("Gelu", [thought], domain=_MICROSOFT)
        thought = self._matmul(thought, [narrow], [prefix + "output.dense.bias"])
        return self._added(thought, state, prefix + "output.LayerNorm")

    def _matmul(self, state: str, matrices: list[str], biases: list[str]) -> str:
        """Return *state* times the concatenated *matrices*, in integers, plus their biases."""
        values = np.concatenate([self._weights[name + "_q"] for name in matrices], axis=1)
        scales = np.concatenate([self._weights[name + "_scale"].reshape(-1) for name in matrices])
        bias = np.concatenate([self._weights[name] for name in biases])
        inputs = [state, self._constant(values), self._constant(scales), "", self._constant(bias)]
        return self._op("DynamicQuantizeMatMul", inputs, domain=_MICROSOFT)

    def _added(self, new: str, state: str, norm: str) -> str:
        inputs = [self._op("Add", [new, state]), self._weight(norm + ".weight"), self._weight(norm + ".bias")]
        return self._op("LayerNormalization", inputs, axis=-1, epsilon=_NEAR_NOTHING)

    def _op(self, kind: str, inputs: list[str], **more: Any) -> str:
        return self._graph.operator(kind, inputs, **more)

    def _constant(self, values: Array) -> str:
        return self._graph.array(values)

    def _weight(self, name: str) -> str:
        return self._constant(self._weights[name])
