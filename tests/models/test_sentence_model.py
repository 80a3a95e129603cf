"""An embedder from a folder of the user's choice: its vectors, its name, and the faults of a folder."""

import json

import pytest
from conftest import intent

import jidomem
from jidomem.errors import Failed, InvalidRequest, ModelUnavailable
from jidomem.index.vectors import Vectors
from jidomem.journal.journal import Stream
from jidomem.models import local_embedder
from jidomem.models.sentence_model import SentenceEmbedder
from jidomem.records.interfaces import Embedder
from jidomem.runtime import model_choice, settings
from jidomem.runtime.model_choice import EmbedderChoice, embedder_choice

np = pytest.importorskip("numpy")
pytest.importorskip("onnxruntime")
pytest.importorskip("tokenizers")

from tiny_model import WORDS, ids_file, onnx_file, rows, write_folder  # noqa: E402 (needs numpy)

ROWS = rows()


@pytest.fixture
def folder(tmp_path):
    return write_folder(tmp_path / "tiny", onnx_file(ROWS))


def unit(vector):
    return vector / np.linalg.norm(vector)


def row(*words):
    return ROWS[[WORDS.index(word) for word in words]]


def test_a_vector_is_the_normalised_mean_of_its_tokens_and_zero_for_blank_text(folder):
    embedder = SentenceEmbedder(folder)

    vector, same, blank = embedder.generate(["zebra runs", "zebra runs", " \n"])

    assert isinstance(embedder, Embedder)
    assert embedder.dimensions() == len(vector) == 6
    np.testing.assert_allclose(vector, unit(row("zebra", "runs").mean(axis=0)), atol=1e-6)
    assert (vector, blank) == (same, [0.0] * 6)
    assert embedder.generate([f"zebra {'runs ' * n}" for n in range(30)])[1] == vector  # by threads


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, row("zebra")[0]),
        ({"pooling_mode": "cls"}, row("zebra")[0]),
        ({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}, row("zebra", "runs").mean(axis=0)),
    ],
)
def test_the_pooling_of_the_model_folder_is_used(tmp_path, pooling, expected):
    embedder = SentenceEmbedder(write_folder(tmp_path / "m", onnx_file(ROWS), "onnx/model.onnx", pooling))

    np.testing.assert_allclose(embedder.generate(["zebra runs"])[0], unit(expected), atol=1e-6)


def test_a_sentence_embedding_output_is_not_pooled_and_absent_inputs_are_not_given(tmp_path):
    embedder = SentenceEmbedder(write_folder(tmp_path / "m", onnx_file(ROWS, "sentence_embedding", ("input_ids",))))

    np.testing.assert_allclose(embedder.generate(["okapi lynx"])[0], unit(row("okapi", "lynx").mean(axis=0)), atol=1e-6)


def test_a_long_text_is_embedded_up_to_its_512th_token(folder):
    embedder = SentenceEmbedder(folder)

    long, short, other = embedder.generate(["zebra " * 512 + "lynx", "zebra " * 512, "zebra " * 511 + "lynx"])

    assert long == short != other


def test_queries_and_texts_are_embedded_with_their_prefixes(folder):
    embedder = SentenceEmbedder(folder, "query: ", "passage: ")

    np.testing.assert_allclose(
        embedder.generate_queries(["zebra"])[0], unit(row("query", ":", "zebra").mean(axis=0)), atol=1e-6
    )
    np.testing.assert_allclose(
        embedder.generate(["zebra"])[0], unit(row("passage", ":", "zebra").mean(axis=0)), atol=1e-6
    )
    assert embedder.generate_queries([""])[0] == [0.0] * 6


def test_the_embedder_name_depends_on_model_tokenizer_weights_and_text_prefix(folder, tmp_path):
    first = SentenceEmbedder(folder).name
    assert first == SentenceEmbedder(folder, "query: ").name  # the vectors of the texts are the same
    assert first == SentenceEmbedder(write_folder(tmp_path / "other" / "tiny", onnx_file(ROWS))).name

    others = [SentenceEmbedder(folder, "", "passage: ").name]
    write_folder(folder, onnx_file(rows(2)))
    others.append(SentenceEmbedder(folder).name)
    tokenizer = folder / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text().replace("zebra", "zebu"))
    others.append(SentenceEmbedder(folder).name)
    (folder / "model.onnx_data").write_bytes(b"weights")
    others.append(SentenceEmbedder(folder).name)

    assert len({first, *others}) == 5


def test_a_replaced_model_file_is_refused_until_a_restart(folder):
    embedder = SentenceEmbedder(folder)
    write_folder(folder, onnx_file(rows(2)))

    with pytest.raises(ModelUnavailable, match=r"the model in .*tiny has changed") as refusal:
        embedder.generate(["zebra"])
    assert refusal.value.hint == "start this process again"


def missing_folder(folder):
    return folder / "nowhere"


def without(name):
    def change(folder):
        (folder / name).unlink()
        return folder

    return change


def with_file(name, content):
    def change(folder):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
        return folder

    return change


def with_model(*arguments):
    return with_file("model.onnx", onnx_file(*arguments))


#: Faults that are detected without loading the model, and faults that are not.
@pytest.mark.parametrize(
    ("change", "detail"),
    [
        (missing_folder, "there is no folder .*nowhere"),
        (without("model.onnx"), "tiny has no model.onnx or onnx/model.onnx"),
        (without("tokenizer.json"), "tiny has no tokenizer.json"),
        (with_file("1_Pooling/config.json", b"[]"), "config.json is no JSON object"),
        (with_file("1_Pooling/config.json", b'{"pooling_mode_max_tokens": true}'), "wants the pooling max_tokens"),
        (with_file("1_Pooling/config.json", b'{"pooling_mode": "lasttoken"}'), "wants the pooling lasttoken"),
        (with_file("tokenizer.json", b"{}"), "tokenizer.json is no tokenizer"),
        (with_file("model.onnx", b"<html>"), "onnxruntime cannot load .*model.onnx"),
        (with_model(ROWS, "last_hidden_state", ("input_ids", "pixels")), "has the inputs input_ids .*, pixels"),
        (with_model(ROWS, "logits"), "has no output sentence_embedding, .*; it has logits"),
        (with_file("2_Dense/config.json", b"{}"), "has layers after last_hidden_state"),
        (with_file("model.onnx", ids_file("token_embeddings")), "returned token_embeddings of shape"),
        (with_model(ROWS * np.float32("nan")), "zero or infinite length, or with a value that is no number"),
        (with_model(ROWS * 0), "zero or infinite length"),
        (with_model(ROWS[:0]), "failed on a text"),
    ],
)
def test_an_unusable_model_folder_blocks_no_write_and_is_reported_in_status(folder, tmp_path, change, detail):
    path = change(folder)
    choice = EmbedderChoice("local", path=str(path))
    embedder = model_choice.embedder(choice, {}.get)

    assert model_choice.config_error(embedder).hint
    with pytest.raises(ModelUnavailable, match=detail) as refusal:
        embedder.generate(["zebra"])
    assert str(path) in refusal.value.detail
    assert refusal.value.hint
    with jidomem.open(tmp_path / "root", project="p", embedder=embedder) as memory:
        memory.embeds_for = 1.0
        memory.writer.submit_intent("p", intent(summary="the zebra runs", evidence=[]))
        answer = memory.recall("zebra")
        assert [hit.content for hit in answer.entries] == ["the zebra runs"]
        assert str(path) in answer.metadata["vectors"]["error"]
        assert str(path) in memory.embedding.status("p")["error"]


def test_a_text_that_breaks_the_model_is_skipped_and_others_are_embedded(folder, tmp_path):
    table = ROWS.copy()
    table[WORDS.index("broken")] = np.nan
    embedder = SentenceEmbedder(write_folder(folder, onnx_file(table)))

    with jidomem.open(tmp_path / "root", project="p") as memory:
        for summary in ("the zebra runs", "a broken lynx"):
            memory.writer.submit_intent("p", intent(summary=summary, evidence=[]))
        vectors = Vectors(memory.settings.root, memory.texts, embedder)
        for _ in range(20):
            try:
                if not vectors.embed_next(Stream("p")):
                    break
            except ModelUnavailable:
                continue
        status = vectors.status(Stream("p"))
        vectors.close()

    assert (status["vectors"], status["passed_by"], status["pending"]) == (1, 1, 0)


def test_a_vector_of_another_dimension_is_refused(tmp_path):
    embedder = SentenceEmbedder(write_folder(tmp_path / "m", ids_file("sentence_embedding")))

    with pytest.raises(ModelUnavailable, match=r"model\.onnx returned a vector of 2 numbers, not 1 as before"):
        embedder.generate(["zebra runs"])


def test_missing_packages_are_refused_with_the_command_that_installs_them(folder, monkeypatch):
    monkeypatch.setattr(local_embedder, "find_spec", lambda name: None if name == "tokenizers" else object())

    with pytest.raises(Failed, match="there is no local embedder: tokenizers is not installed") as refusal:
        SentenceEmbedder(folder)
    assert refusal.value.hint == "pip install 'jidomem[recall]'"


@pytest.mark.parametrize("texts", ["one text", [b"bytes"], ["\ud800"]])
def test_an_invalid_list_of_texts_is_refused(texts, folder):
    with pytest.raises(InvalidRequest, match="text"):
        SentenceEmbedder(folder).generate(texts)


def test_recall_matches_words_while_vectors_of_a_new_model_are_computed(folder, tmp_path):
    def add_and_recall(embedder, seconds):
        with jidomem.open(tmp_path / "root", project="p", embedder=embedder) as memory:
            memory.embeds_for = seconds
            memory.writer.submit_intent("p", intent(summary=f"the zebra runs {seconds}", evidence=[]))
            return memory.recall("zebra"), memory.embedding.status("p")

    answer, status = add_and_recall(SentenceEmbedder(folder), 10.0)
    assert (len(answer.entries), status["vectors"], status["pending"]) == (1, 1, 0)
    write_folder(folder, onnx_file(rows(2, 12)))

    answer, status = add_and_recall(SentenceEmbedder(folder), 0.0)
    assert (len(answer.entries), status["vectors"], status["pending"]) == (2, 0, 2)
    answer, status = add_and_recall(SentenceEmbedder(folder), 20.0)
    assert (len(answer.entries), status["vectors"], status["pending"]) == (3, 3, 0)


def test_the_user_configuration_names_the_model_folder_and_a_root_cannot(folder, tmp_path, monkeypatch):
    user_file = settings.own_config()
    user_file.parent.mkdir(parents=True, exist_ok=True)
    user_file.touch(0o600)
    user_file.write_text(f'[embedder]\nuse = "local"\npath = {json.dumps(str(folder))}\ntext_prefix = "passage: "\n')

    for use in (None, "local"):
        monkeypatch.delenv("JIDOMEM_EMBEDDER") if use is None else monkeypatch.setenv("JIDOMEM_EMBEDDER", use)
        embedder = settings.embedder(settings.load(tmp_path / "root"))
        assert embedder.name == SentenceEmbedder(folder, "", "passage: ").name
    (tmp_path / "config.toml").write_text(f"[embedder]\npath = {json.dumps(str(folder))}\n")
    with pytest.raises(Failed, match="embedder cannot be set by a root on disk"):
        settings.load(tmp_path)


@pytest.mark.parametrize(
    ("values", "detail"),
    [
        ({"path": "/m"}, "embedder.path is for a local model, and none is used"),
        ({"use": "endpoint", "path": "/m"}, "embedder.path is for a local model, and none is used"),
        ({"use": "local", "query_prefix": "q"}, "embedder.path is missing"),
        ({"use": "local", "path": "models/m"}, 'embedder.path = "models/m" is not the whole path of a folder'),
        ({"use": "local", "path": "/m", "text_prefix": 1}, "embedder.text_prefix = 1 is not a text"),
        ({"use": "local", "path": "/m", "model": "m"}, "embedder.model is for an endpoint, and none is used"),
    ],
)
def test_invalid_keys_of_a_local_embedder_are_refused_with_their_place(values, detail):
    with pytest.raises(Failed, match=detail) as refusal:
        embedder_choice(values, "own.toml")
    assert refusal.value.code == "invalid_config"
