"""Model folders in small: an ONNX graph that looks up a row for each token, and a tokenizer of whole words."""

import json

import numpy as np

from jidomem.models.minilm import FLOAT, INT64, OnnxGraph, bytes_field, number_field, value_info

WORDS = ["[PAD]", "[UNK]", ":", "query", "passage", "zebra", "okapi", "lynx", "runs", "broken"]
#: The inputs that most exported models have.
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class _Graph(OnnxGraph):
    """A graph with several inputs and an output of a given name."""

    def file(self, inputs, output, rank):
        parts = [bytes_field(1, self.last.encode()), bytes_field(2, output.encode()), bytes_field(4, b"Identity")]
        self._add(1, *parts)
        ends = [bytes_field(11, value_info(name, INT64, 2)) for name in inputs]
        ends.append(bytes_field(12, value_info(output, FLOAT, rank)))
        graph = b"".join([*self._parts, bytes_field(2, b"graph"), *ends])
        sets = bytes_field(8, bytes_field(1, b"") + number_field(2, 18))
        return b"".join([number_field(1, 9), sets, bytes_field(7, graph)])

    def operator(self, *inputs, **attributes):
        self.last = super().operator(*inputs, **attributes)
        return self.last


def rows(seed=1, dimensions=6):
    """A row for each of WORDS."""
    return np.random.default_rng(seed).normal(size=(len(WORDS), dimensions)).astype(np.float32)


def onnx_file(table, output="last_hidden_state", inputs=INPUTS):
    """The file of a network whose output is the row of each token, or their mean if it is a sentence_embedding."""
    graph = _Graph()
    rows_of_tokens = graph.operator("Gather", [graph.array(table), "input_ids"])
    if output in ("sentence_embedding", "logits"):
        graph.operator("ReduceMean", [rows_of_tokens, graph.array(np.array([1], np.int64))], keepdims=0)
        return graph.file(inputs, output, 2)
    return graph.file(inputs, output, 3)


def ids_file(output):
    """The file of a network whose output has a number for each token, so that its size depends on the text."""
    graph = _Graph()
    graph.operator("Cast", ["input_ids"], to=FLOAT)
    return graph.file(INPUTS, output, 2)


def write_folder(folder, model, place="model.onnx", pooling=None):
    """Write a model folder, and return it."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    (folder / place).parent.mkdir(parents=True, exist_ok=True)
    (folder / place).write_bytes(model)
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    if pooling is not None:
        (folder / "1_Pooling").mkdir(exist_ok=True)
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder
