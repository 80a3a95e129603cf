"""Arrays of ONNX files, read and written."""

import numpy as np
import pytest

from jidomem.models.minilm import OnnxGraph, arrays


def test_arrays_of_a_written_graph_are_read_back():
    graph = OnnxGraph()
    inputs = [np.array([[1.5, -2.0]], np.float32), np.arange(-3, 3, dtype=np.int8), np.array([-1, 2**40], np.int64)]
    inputs.append(np.arange(6, dtype=np.float32).reshape(2, 3).T)  # not in the order of its memory
    names = [graph.array(each) for each in inputs]
    total = graph.operator("Add", [names[0], names[0]], domain="com.example", axis=-1, epsilon=0.5)

    read_arrays = arrays(graph.written("asked", 2, total))

    assert list(read_arrays) == names
    for name, each in zip(names, inputs, strict=True):
        np.testing.assert_array_equal(read_arrays[name], each, strict=True)


def test_a_truncated_or_foreign_file_is_refused():
    graph = OnnxGraph()
    written = graph.written("asked", 2, graph.array(np.zeros(8, np.float32)))

    for invalid in (written[:-3], b"\x0f", b"\xff" * 40, b"<html>"):
        with pytest.raises(ValueError, match="it is cut, or no ONNX file"):
            arrays(invalid)


def test_an_array_of_an_unsupported_type_is_read_as_bytes():
    double = b"\x08\x02\x10\x0b\x42\x01a\x4a\x10" + np.array([1.0, 2.0]).tobytes()
    graph = b"\x2a" + bytes([len(double)]) + double

    assert arrays(b"\x3a" + bytes([len(graph)]) + graph)["a"].tobytes() == np.array([1.0, 2.0]).tobytes()
