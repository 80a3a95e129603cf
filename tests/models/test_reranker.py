"""A reranker: a second order of the best memories; on a fault the first order is kept."""

import json
import re
from dataclasses import replace

import pytest
from click.testing import CliRunner
from conftest import intent
from http_endpoint import STALL, reply, served

import jidomem
from jidomem.errors import Failed, ModelUnavailable
from jidomem.models.reranker import CrossEncoder
from jidomem.runtime import settings, user_config
from jidomem.runtime.model_choice import RerankerChoice, reranker_choice
from jidomem_cli.main import cli

np = pytest.importorskip("numpy")
pytest.importorskip("onnxruntime")
pytest.importorskip("tokenizers")

from tiny_model import WORDS, onnx_file, write_folder  # noqa: E402 (needs numpy)

SUMMARIES = ["zebra runs", "zebra lynx", "zebra okapi"]


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    with jidomem.open(folder, project="p", agent="ana") as memory:
        for summary in SUMMARIES:
            memory.writer.submit_intent("p", intent(summary=summary, evidence=[]))
    return folder


def table(**values):
    """The file of a cross-encoder whose score is the mean of the *values* of the words."""
    return onnx_file(np.array([[values.get(word, 0.0)] for word in WORDS], np.float32), "logits")


def recall_entries(root, query="zebra", **options):
    with jidomem.open(root, project="p", agent="ana") as memory:
        answer = memory.recall(query, **options)
    return [hit.content for hit in answer.entries], answer.metadata


def by_relevance(body, scores):
    """Return a reply with the score of each document, in the reverse order of the documents."""
    places = reversed([*enumerate(body["documents"])])
    results = [{"index": place, "relevance_score": scores[text.splitlines()[0]]} for place, text in places]
    return reply({"results": results})


def test_a_cross_encoder_reorders_the_hits(root, config, tmp_path):
    first, metadata = recall_entries(root)
    assert "reranker" not in metadata
    for best in ("runs", "lynx", "okapi"):
        folder = write_folder(tmp_path / best, table(**{best: 5.0}))
        config.write_text(f"[reranker]\npath = {json.dumps(str(folder))}\nseconds = 60\n")

        entries, metadata = recall_entries(root)

        others = [summary for summary in first if summary != f"zebra {best}"]
        assert entries == [f"zebra {best}", *others]  # equal relevance keeps the first order
        assert metadata["reranker"] == {"model": best, "error": None}


def test_a_reranked_hit_has_the_score_of_its_place(root, config, tmp_path):
    with jidomem.open(root, project="p", agent="ana") as memory:
        first = [(hit.content, hit.score) for hit in memory.recall("zebra lynx", min_score=0).entries]
    last = first[-1][0].removeprefix("zebra ")
    folder = write_folder(tmp_path / "model", table(**{last: 5.0}))
    config.write_text(f"[reranker]\npath = {json.dumps(str(folder))}\nseconds = 60\n")
    with jidomem.open(root, project="p", agent="ana") as memory:
        reranked = [(hit.content, hit.score) for hit in memory.recall("zebra lynx").entries]

    assert [score for _, score in reranked] == [score for _, score in first]
    assert reranked[0][0] == first[-1][0]
    assert first[0][1] > first[-1][1]


def test_reranking_includes_hits_beyond_the_limit(root, config, tmp_path):
    first, _ = recall_entries(root)
    last = first[-1].removeprefix("zebra ")
    config.write_text(f'[reranker]\npath = "{write_folder(tmp_path / "m", table(**{last: 5.0}))}"\nseconds = 60\n')

    entries, metadata = recall_entries(root, limit=1)

    assert (entries, metadata["more"]) == ([first[-1]], True)


def test_an_endpoint_reranker_gets_query_and_texts_and_reorders_the_hits(root, config):
    scores = dict(zip(SUMMARIES, (0.2, 0.9, 0.5), strict=True))
    with served(lambda body: by_relevance(body, scores)) as endpoint:
        config.write_text(f'[reranker]\nbase_url = "{endpoint.url}"\nmodel = "m"\nkey_env = ""\nseconds = 60\n')
        entries, metadata = recall_entries(root)

    assert entries == ["zebra lynx", "zebra okapi", "zebra runs"]
    assert metadata["reranker"] == {"model": f"m at {endpoint.url}", "error": None}
    (body,) = endpoint.bodies
    assert (body["query"], body["top_n"], body["model"]) == ("zebra", 3, "m")
    assert sorted(text.splitlines()[0] for text in body["documents"]) == sorted(SUMMARIES)
    assert endpoint.heads[0].startswith("POST /v1/rerank ")


def test_a_superseded_memory_stays_behind_its_successor_after_reranking(root, config):
    with jidomem.open(root, project="p", agent="ana") as memory:
        old = next(hit.id for hit in memory.recall("zebra").entries if hit.content == "zebra runs")
        memory.writer.submit_intent("p", intent(summary="zebra walks", evidence=[], supersedes=[old]))
    scores = dict(zip([*SUMMARIES, "zebra walks"], (0.9, 0.5, 0.4, 0.1), strict=True))
    with served(lambda body: by_relevance(body, scores)) as endpoint:
        config.write_text(f'[reranker]\nbase_url = "{endpoint.url}"\nkey_env = ""\nseconds = 60\n')
        entries, _ = recall_entries(root, include_inactive=True)

    assert entries == ["zebra lynx", "zebra okapi", "zebra walks", "zebra runs"]


def results(*scores):
    return reply({"results": [{"index": place, "relevance_score": score} for place, score in enumerate(scores)]})


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (results(1.0, 2.0), "did not return one result for each of 3 texts"),
        (results(1.0, 2.0, 3.0, 4.0), "did not return one result"),
        (reply({"results": [{"index": 0, "relevance_score": 1.0}] * 3}), "did not return one result"),
        (reply({"results": [1, 2, 3]}), "did not return one result"),
        (reply({"data": []}), "did not return one result"),
        (results(1.0, None, 2.0), "relevance_score that is no number"),
        (results(1.0, True, 2.0), "relevance_score that is no number"),
        (reply('{"results": [{"index": 0, "relevance_score": NaN}]}'), "no JSON object"),
        (reply({"error": "no"}, "404 Not Found"), "answered 404"),
        (STALL, "/rerank "),
    ],
)
def test_an_invalid_or_slow_reply_leaves_the_first_order(root, config, answer, detail):
    first, _ = recall_entries(root)
    with served(answer) as endpoint:
        config.write_text(f'[reranker]\nbase_url = "{endpoint.url}"\nkey_env = ""\nseconds = 0.2\n')
        if answer is not STALL:
            config.write_text(config.read_text().replace("0.2", "60"))
        entries, metadata = recall_entries(root)

    assert entries == first
    assert detail in metadata["reranker"]["error"]


@pytest.mark.parametrize(
    ("model", "detail"),
    [
        (None, "there is no folder"),
        (table(zebra=float("nan")), "did not return a finite number for each of 3 texts"),
        (onnx_file(np.zeros((len(WORDS), 2), np.float32), "logits"), "has no output logits with one number"),
        (onnx_file(np.zeros((len(WORDS), 2), np.float32)), "it has last_hidden_state of shape"),
    ],
)
def test_an_unusable_model_folder_leaves_the_first_order(root, config, tmp_path, model, detail):
    first, _ = recall_entries(root)
    folder = tmp_path / "m" if model is None else write_folder(tmp_path / "m", model)
    config.write_text(f'[reranker]\npath = "{folder}"\nseconds = 60\n')

    entries, metadata = recall_entries(root)

    assert entries == first
    assert detail in metadata["reranker"]["error"]


def test_a_slow_cross_encoder_is_stopped_at_its_time_limit(tmp_path):
    model = CrossEncoder(write_folder(tmp_path / "m", table(zebra=1.0)))

    assert model.scores("zebra", ["okapi"] * 50, 60.0) == pytest.approx([0.5] * 50)
    with pytest.raises(ModelUnavailable, match="did not rate 3 texts within 0 seconds"):
        model.scores("zebra", SUMMARIES, 0.0)


def test_status_and_doctor_report_the_reranker_and_its_fault(root, config, tmp_path):
    def status(*words):
        return CliRunner().invoke(cli, ["--root", str(root), "status", *words]).stdout

    assert "reranker" not in status()
    config.write_text(f'[reranker]\npath = "{tmp_path / "m"}"\n')

    error = f"there is no folder {tmp_path / 'm'}"
    assert json.loads(status("--json"))["reranker"] == {"name": str(tmp_path / "m"), "error": error}
    assert f"it cannot be used: {error}" in status()
    checks = {each["name"]: each for each in json.loads(status("--doctor", "--json"))["checks"]}
    assert (checks["reranker"]["level"], checks["reranker"]["detail"]) == (
        "warn",
        f"{tmp_path / 'm'} cannot be used: {error}",
    )


def test_the_reranker_choice_survives_a_rewrite_and_is_refused_from_a_root(config, tmp_path):
    config.write_text('[reranker]\npath = "/m"\nseconds = 0.5\n')

    user_config.change(config, lambda old: replace(old, index=""))

    assert settings.load(tmp_path / "root").reranker == RerankerChoice("/m", seconds=0.5)
    (tmp_path / "config.toml").write_text('[reranker]\npath = "/m"\n')
    with pytest.raises(Failed, match="reranker cannot be set by a root on disk"):
        settings.load(tmp_path)


@pytest.mark.parametrize(
    ("values", "detail"),
    [
        ([], "reranker is not a table"),
        ({"seconds": 1.0}, "reranker.path is missing"),
        ({"path": "m"}, 'reranker.path = "m" is not the whole path of a folder'),
        ({"path": "/m", "base_url": "http://127.0.0.1:1"}, "reranker.base_url is for an endpoint"),
        ({"path": "/m", "seconds": 0}, "reranker.seconds = 0 is not a number from 0.01 to 60"),
        ({"base_url": "http://h", "key_env": "A", "key_file": "/k"}, "reranker.key_env and reranker.key_file both"),
    ],
)
def test_an_invalid_reranker_choice_is_refused_with_its_key(values, detail):
    with pytest.raises(Failed, match=re.escape(detail)) as refusal:
        reranker_choice(values, "own.toml")
    assert refusal.value.code == "invalid_config"
