"""The local embedder: texts a second on one core and on all it may use, one question, and what it takes to be there.

    python -m bench.embedder

Beside it runs the network as it is published, by onnxruntime alone, with the same pieces of the same texts.  The texts
are those of generated memories; both make one vector at a time.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from bench import frame, generate
from bench.frame import Options, Row, Spread, in_turn
from jidomem.models import local_embedder
from jidomem.models.local_embedder import LocalEmbedder

AT_ONCE = 64
QUESTION = "which compiler does the build need, and since when?"


def rows(options: Options) -> Iterator[Row]:
    """The two networks, and the same embedder with threads."""
    if lacking := local_embedder.missing():
        yield Row("local embedder", "-", f"not installed: {', '.join(lacking)}")
        return
    texts = [_text(fields) for fields in islice(generate.intents(AT_ONCE, 7, "p"), AT_ONCE)]
    before = _resident()
    one, all_ = LocalEmbedder(threads=1), LocalEmbedder()
    one.generate(texts)
    memory_bytes = _resident() - before
    sides = {
        "one": lambda: one.generate(texts),
        "all": lambda: all_.generate(texts),
        "published": _published(one, texts),
        "question": lambda: one.generate([QUESTION]),
    }
    for side in sides.values():
        side()
    times = in_turn(sides, options.rounds)
    rate = {name: Spread.of([AT_ONCE / each for each in durations]) for name, durations in times.items()}
    ratio = Spread.ratio(times["published"], times["one"])
    size = sum(len(pieces) for pieces in map(one._loaded()[1].numbers, texts)) / len(texts)
    figures = {"s": times, "pieces": size}
    what = f"texts of {size:.0f} pieces, embedded"
    yield Row(f"{what} on one core", "-", f"{rate['one']} a second", f"published: {ratio} x as long", figures=figures)
    met = rate["all"].middle >= 500
    yield Row(f"{what} by all threads", "500 a second", f"{rate['all']} a second", met=met)
    question_ms = Spread.of([each * 1000 for each in times["question"]])
    yield Row("one question embedded", "5 ms", f"{question_ms} ms", met=question_ms.middle <= 5)
    yield Row("memory with the network read", "-", f"{memory_bytes / 2**20:.0f} MB")


def _text(fields: dict[str, Any]) -> str:
    return " ".join(str(fields[name]) for name in ("summary", "rationale", "explanation") if fields.get(name))


def _published(embedder: LocalEmbedder, texts: Sequence[str]) -> Callable[[], None]:
    """The published network on one core, asked for one vector after the other."""
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        str(local_embedder._installed()), options, providers=["CPUExecutionProvider"]
    )
    _, pieces = embedder._loaded()

    def run() -> None:
        for text in texts:
            numbers = np.array([pieces.numbers(text)], np.int64)
            inputs = {"input_ids": numbers, "attention_mask": numbers * 0 + 1, "token_type_ids": numbers * 0}
            mean = session.run(None, inputs)[0][0].mean(axis=0)
            mean / np.linalg.norm(mean)

    return run


def _resident() -> int:
    """Bytes this process has in memory."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


if __name__ == "__main__":
    frame.main("bench.embedder", rows)
