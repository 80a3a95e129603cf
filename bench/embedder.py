"""The local embedder: texts a second on one core and with all threads, one query, and memory, beside onnxruntime.

    python -m bench.embedder [--rounds N]

The comparison runs the published network in onnxruntime on one core, with the same tokens of the same texts.  The texts
are those of generated memories; both make one vector at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from bench import generate, harness
from bench.harness import Options, Row, Spread, time_sides
from jidomem.models import local_embedder
from jidomem.models.local_embedder import LocalEmbedder

AT_ONCE = 64
QUESTION = "which compiler does the build need, and since when?"


def rows(options: Options) -> Iterator[Row]:
    """Yield texts a second on one core and by all threads, then one query, then memory."""
    if missing_packages := local_embedder.missing():
        yield Row("local embedder", "-", f"not installed: {', '.join(missing_packages)}")
        return
    texts = [_text(fields) for fields in islice(generate.intents(AT_ONCE, 7, "p"), AT_ONCE)]
    before = harness.resident_bytes()
    single_core, all_cores = LocalEmbedder(threads=1), LocalEmbedder()
    single_core.generate(texts)
    memory_bytes = harness.resident_bytes() - before
    sides = {
        "one core": lambda: single_core.generate(texts),
        "all threads": lambda: all_cores.generate(texts),
        "published": _published_network(single_core, texts),
        "question": lambda: single_core.generate([QUESTION]),
    }
    for side in sides.values():
        side()
    times = time_sides(sides, options.rounds)
    rate = {name: Spread.of([AT_ONCE / seconds for seconds in durations]) for name, durations in times.items()}
    ratio = Spread.ratio(times["published"], times["one core"])
    tokens = sum(len(numbers) for numbers in map(single_core._loaded()[1].numbers, texts)) / len(texts)
    figures = {"s": times, "tokens": tokens}
    label = f"texts of {tokens:.0f} tokens, embedded"
    yield Row(
        f"{label} on one core", "-", f"{rate['one core']} a second", f"published: {ratio} x as long", figures=figures
    )
    is_met = rate["all threads"].median >= 500
    yield Row(f"{label} by all threads", "500 a second", f"{rate['all threads']} a second", is_met=is_met)
    question_ms = Spread.of([seconds * 1000 for seconds in times["question"]])
    yield Row("one query embedded", "5 ms", f"{question_ms} ms", is_met=question_ms.median <= 5)
    yield Row("memory of the loaded network", "-", f"{memory_bytes / 2**20:.0f} MB")


def _text(fields: dict[str, Any]) -> str:
    return " ".join(str(fields[name]) for name in ("summary", "rationale", "explanation") if fields.get(name))


def _published_network(embedder: LocalEmbedder, texts: Sequence[str]) -> Callable[[], None]:
    """Return a function that embeds *texts* one by one with the published network on one core."""
    import numpy as np

    onnxruntime = local_embedder.import_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        str(local_embedder._installed()), options, providers=["CPUExecutionProvider"]
    )
    _, tokenizer = embedder._loaded()

    def run() -> None:
        for text in texts:
            numbers = np.array([tokenizer.numbers(text)], np.int64)
            inputs = {"input_ids": numbers, "attention_mask": numbers * 0 + 1, "token_type_ids": numbers * 0}
            mean = session.run(None, inputs)[0][0].mean(axis=0)
            mean / np.linalg.norm(mean)

    return run


if __name__ == "__main__":
    harness.main("bench.embedder", rows)
