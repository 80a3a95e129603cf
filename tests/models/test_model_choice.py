"""The choice of the language model: by the user's configuration only, never by the root; and which model a page waits
for.
"""

import json
import re
import threading
from dataclasses import replace

import pytest
from click.testing import CliRunner
from conftest import wait_until
from http_endpoint import reply, served

import jidomem
from jidomem.errors import Failed, ModelUnavailable
from jidomem.extras.memoryos import jobs, memory_os
from jidomem.models.chat import ChatModel
from jidomem.models.embeddings import HashedStems
from jidomem.models.offline import OfflineModel
from jidomem.models.scripted import ScriptedModel
from jidomem.records.interfaces import LanguageModel
from jidomem.runtime import model_choice, settings, user_config
from jidomem.runtime.model_choice import LanguageModelChoice, language_model, language_model_choice
from jidomem_cli.main import cli

LOCAL_URL = "http://127.0.0.1:1/v1"
LOCAL = LanguageModelChoice(use="endpoint", base_url=LOCAL_URL, model="q", key_env="")
#: The answers to every task of a page.
TASK_ANSWERS = {"chain": "They choose an index.", "keywords": ["index"], "continues": True,
        "topics": [{"theme": "index", "summary": "Which one."}]}  # fmt: skip


def configured_model(choice, **environment):
    return language_model(choice, HashedStems(8), environment.get)


def says(content):
    message = {"role": "assistant", "content": json.dumps(content)}
    return reply({"choices": [{"message": message, "finish_reason": "stop"}]})


@pytest.fixture
def key_path(tmp_path):
    path = tmp_path / "key"
    path.touch(0o600)
    path.write_text("sk-4711\n")
    return path


def test_the_offline_model_is_the_default():
    assert isinstance(configured_model(LanguageModelChoice()), OfflineModel)
    assert isinstance(configured_model(LanguageModelChoice(use="offline")), OfflineModel)
    assert configured_model(LanguageModelChoice()).embedder.dimensions() == 8


def test_an_endpoint_gets_model_options_and_key_from_environment_or_file(key_path):
    with served(says({"keywords": ["index"]})) as server:
        choice = replace(LOCAL, base_url=server.url, options={"max_completion_tokens": 9, "nested": {"deep": [1]}})
        for key_source in ({"key_env": "GATEWAY"}, {"key_env": None, "key_file": str(key_path)}, {"key_env": ""}):
            found_model = configured_model(replace(choice, **key_source), GATEWAY="sk-4711", OPENAI_API_KEY="sk-other")
            assert found_model.extract_keywords("which index?") == ("index",)

    assert isinstance(found_model, LanguageModel)
    keys = [re.findall("Authorization: (.*)\r", head) for head in server.heads]
    assert keys == [["Bearer sk-4711"], ["Bearer sk-4711"], []]
    assert all(body["max_completion_tokens"] == 9 and "max_tokens" not in body for body in server.bodies)
    assert server.bodies[0]["nested"] == {"deep": [1]}


@pytest.mark.parametrize(
    ("choice", "told_as"),
    [
        (replace(LOCAL, key_env=None), "for the language model: OPEN_AI_API_KEY and OPENAI_API_KEY are not set"),
        (replace(LOCAL, key_env="MINE"), "MINE is not set"),
        (replace(LOCAL, base_url="http://gpu.lan/v1", key_env="KEY"), "unencrypted"),
        (replace(LOCAL, base_url="gpu.lan"), "not an http or https address"),
        (replace(LOCAL, key_env="BLANK"), "BLANK has no key"),
        (replace(LOCAL, key_env=None, key_file="/nowhere/key"), "/nowhere/key: No such file"),
        (replace(LOCAL, key_env=None, key_file="/"), "Is a directory"),
    ],
)
def test_an_unusable_endpoint_raises_its_reason_each_time(choice, told_as):
    found_model = configured_model(choice, KEY="sk-4711", BLANK="")

    for _ in range(2):
        with pytest.raises(ModelUnavailable, match=told_as) as refusal:
            found_model.extract_keywords("which index?")
        assert "4711" not in repr(refusal.value.to_dict())
        assert refusal.value.hint
    assert len(found_model.calculate_embedding("a")) == 8
    assert "which index?" in str(found_model.generate_final_prompt("which index?", [], [], [], []))


def test_a_key_file_readable_by_others_is_refused(key_path):
    key_path.chmod(0o640)

    with pytest.raises(ModelUnavailable, match="others may read the key") as refusal:
        configured_model(replace(LOCAL, key_env=None, key_file=str(key_path))).extract_keywords("a")

    assert refusal.value.hint.startswith(f"chmod 600 {key_path}")


@pytest.mark.parametrize(
    ("table", "told_as"),
    [
        ([], "model is not a table"),
        ({"modle": "q"}, "model.modle is not known"),
        ({"use": "remote"}, 'model.use = "remote" is not one of offline, endpoint'),
        ({"use": "endpoint", "model": "q"}, "model.base_url is missing"),
        ({"use": "endpoint", "base_url": LOCAL_URL}, "model.model is missing"),
        ({"use": "endpoint", "base_url": " "}, 'model.base_url = " " is not a text'),
        ({"use": "offline", "model": "q"}, "model.model is for an endpoint, and none is used"),
        ({"model": "q"}, "model.model is for an endpoint"),
        ({"use": "endpoint", "key_env": "A", "key_file": "/k"}, "model.key_env and model.key_file both name the key"),
        ({"use": "endpoint", "key_file": "k"}, 'model.key_file = "k" is not the whole path of a file'),
        ({"use": "endpoint", "seconds": 0}, "model.seconds = 0 is not a number from 1 to 3,600"),
        ({"use": "endpoint", "seconds": float("nan")}, "model.seconds = nan"),
        ({"use": "endpoint", "seconds": True}, "model.seconds = true"),
        ({"use": "endpoint", "json_mode": "no"}, 'model.json_mode = "no" is not true or false'),
        ({"use": "endpoint", "options": ["a"]}, 'model.options = ["a"] is not a table of texts'),
        ({"use": "endpoint", "options": {"stream": True}}, "model.options.stream is set by the client itself"),
        ({"use": "endpoint", "options": {"t": float("inf")}}, 'model.options = {"t" = inf} is not a table of texts'),
        ({"use": "endpoint", "key": "sk-4711"}, "model.key is not known"),
    ],
)
def test_an_invalid_model_configuration_is_refused_with_its_file_and_key(table, told_as):
    with pytest.raises(Failed, match=re.escape(told_as)) as refusal:
        language_model_choice(table, "own.toml")

    assert refusal.value.code == "invalid_config"
    assert refusal.value.detail.startswith("own.toml: ")
    assert "4711" not in repr(refusal.value.to_dict())


def test_the_model_choice_of_the_user_configuration_survives_its_rewrite(config, tmp_path):
    lines = ['use = "endpoint"', f'base_url = "{LOCAL_URL}"', r'model = "m \"1\""', 'key_file = "/k"', "seconds = 7.5"]
    options = 'options = {temperature = 0.5, "two words" = {deep = [1, true]}}'
    config.write_text("\n".join(["[model]", *lines, "json_mode = false", options]))

    user_config.change(config, lambda lines: replace(lines, trusted=(user_config.TrustedRoot("/r", "0", "today"),)))
    loaded = settings.load(tmp_path / "root")

    extra = {"temperature": 0.5, "two words": {"deep": [1, True]}}
    assert loaded.model == LanguageModelChoice("endpoint", LOCAL_URL, 'm "1"', None, "/k", 7.5, False, extra)
    assert settings.models(loaded)[0].name == f'm "1" at {LOCAL_URL}'


def test_an_embedder_reads_its_key_from_a_file(key_path):
    choice = model_choice.embedder_choice({"use": "endpoint", "key_file": str(key_path)}, "own.toml")

    assert f"<the key in {key_path}>" in repr(model_choice.embedder(choice, {}.get).endpoint)


def test_a_model_in_the_configuration_of_a_root_is_refused(tmp_path):
    (tmp_path / "config.toml").write_text(f'[model]\nuse = "endpoint"\nbase_url = "{LOCAL_URL}"\nmodel = "q"\n')

    with pytest.raises(Failed, match="model cannot be set by a root on disk"):
        settings.load(tmp_path)


def test_status_and_doctor_report_the_model_and_its_configuration_error(config, root):
    jidomem.open(root).close()
    (root / "projects").mkdir(parents=True)
    config.write_text(f'[model]\nuse = "endpoint"\nbase_url = "{LOCAL_URL}"\nmodel = "q"\nkey_env = "NOT_THERE"\n')

    def output(*words):
        return CliRunner().invoke(cli, ["--root", str(root), *words]).stdout

    error = "there is no key for the language model: NOT_THERE is not set"
    assert json.loads(output("status", "--json"))["model"] == {"name": f"q at {LOCAL_URL}", "error": error}
    assert f"q at {LOCAL_URL}; it cannot be used: {error}" in output("status")
    checks = {each["name"]: each for each in json.loads(output("status", "--doctor", "--json"))["checks"]}
    assert (checks["model"]["level"], checks["embedder"]["level"]) == ("warn", "ok")
    assert checks["model"]["hint"].startswith("export NOT_THERE=")


def test_neither_adding_nor_retrieving_a_page_waits_for_the_endpoint(config, root):  # D108 D065
    may_answer = threading.Event()

    def delayed(body):
        may_answer.wait()
        return says(TASK_ANSWERS)

    with served(delayed) as server, jidomem.open(root, project="p", agent="ada") as memory:
        config.write_text(f'[model]\nuse = "endpoint"\nbase_url = "{server.url}"\nmodel = "q"\nkey_env = ""\n')
        memory.settings = settings.load(root, "p", agent="ada")
        ada = memory.os()
        assert (ada.work, type(ada.model)) == ("background", ChatModel)

        page = ada.add("which index?", "Oxigraph.")
        retrieval = ada.retrieve("the index")

        assert ([each.what.id for each in retrieval.stm], retrieval.error) == ([page.id], None)
        assert ada.tiers.stm[0].meta_chain is None
        may_answer.set()
        wait_until(lambda: ada.tiers.stm[0].meta_chain is not None)
        assert ada.status()["error"] in (None, jobs.CUT_OFF)
        assert (ada.tiers.stm[0].meta_chain, ada.tiers.stm[0].keywords) == (TASK_ANSWERS["chain"], {"index"})


def threads():
    """Return the names of the running threads of memories."""
    return {each.name for each in threading.enumerate() if each.name.startswith("memory of ")}


def test_closing_a_root_stops_the_threads_of_all_agents_together(root):
    started, may_answer = threading.Semaphore(0), threading.Event()

    def delayed(pages):
        started.release()
        may_answer.wait()
        return "a chain"

    memory = jidomem.open(root, project="p")
    scripted = ScriptedModel(generate_meta_chain=delayed, extract_keywords=lambda text: ("index",))
    agents = [memory.os(name, model=scripted, work="background") for name in ("ada", "bob")]
    for agent in agents:
        agent.add("which index?", "Oxigraph.")
    for _ in agents:
        started.acquire()
    assert threads() == {"memory of ada", "memory of bob"}
    closing = threading.Thread(target=memory.close)
    closing.start()
    wait_until(lambda: all(agent._closing.is_set() for agent in agents))
    may_answer.set()
    closing.join()

    assert threads() == set()


def test_closing_a_root_gives_up_a_job_whose_model_does_not_answer_and_repeats_it_later(root, monkeypatch):
    monkeypatch.setattr(memory_os, "CLOSING_SECONDS", 0.05)
    started, may_answer, reported = threading.Event(), threading.Event(), []
    monkeypatch.setattr(threading, "excepthook", reported.append)

    def delayed(pages):
        started.set()
        assert may_answer.wait(60)
        return "a chain"

    slow = ScriptedModel(generate_meta_chain=delayed, extract_keywords=lambda text: ("index",))
    with jidomem.open(root, project="p", agent="ada") as memory:
        page = memory.os(model=slow, work="background").add("which index?", "Oxigraph.")
        assert started.wait(60)

    assert threads() == {"memory of ada"}  # it still waits for the answer
    may_answer.set()
    wait_until(lambda: threads() == set())
    with jidomem.open(root, project="p", agent="ada") as memory:
        ada = memory.os(model=slow, work="queued")
        assert [(job.kind, job.subject) for job in ada.jobs()][:1] == [("describe", page.id)]
        ada.retry()
        assert ada.tiers.stm[0].meta_chain == "a chain"
    assert reported == []


def test_closing_an_agent_waits_only_for_the_running_job(root):
    started, may_answer = threading.Event(), threading.Event()

    def delayed(pages):
        started.set()
        may_answer.wait()
        return "a chain"

    with jidomem.open(root, project="p", agent="ada") as memory:
        scripted = ScriptedModel(
            generate_meta_chain=delayed, continues=lambda *pages: False, extract_keywords=lambda text: ("index",)
        )
        with memory.os(model=scripted, work="queued") as ada:
            for number in range(5):
                ada.add(f"question {number}", "Noted.", timestamp=f"2026-11-2{number}T08:00:00Z")
        ada = memory.os(model=scripted, work="background")  # all five are due when it begins
        started.wait()
        closing = threading.Thread(target=ada.close)
        closing.start()
        wait_until(ada._closing.is_set)
        may_answer.set()
        closing.join()

        assert [each.function for each in scripted.calls].count("generate_meta_chain") == 1
        assert threads() == set()
        assert [job.attempts for job in ada.jobs() if job.kind == "describe"] == [0] * 4
