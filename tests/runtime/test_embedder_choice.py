"""The embedder of a memory is configured by its user, and never by a root."""

from dataclasses import replace

import pytest

from jidomem.errors import Failed, InvalidRequest, ModelUnavailable
from jidomem.models import local_embedder
from jidomem.models.embeddings import EndpointEmbedder
from jidomem.models.local_embedder import LocalEmbedder
from jidomem.records.interfaces import Embedder
from jidomem.runtime import settings, user_config
from jidomem.runtime.model_choice import EmbedderChoice, embedder, embedder_choice

OPENAI = EmbedderChoice(use="endpoint")


def environment(**variables):
    return variables.get


def test_the_local_embedder_is_the_default_if_it_is_installed(monkeypatch):
    pytest.importorskip("onnxruntime")

    assert isinstance(embedder(EmbedderChoice(), environment()), LocalEmbedder)
    assert isinstance(embedder(EmbedderChoice(use="local"), environment()), LocalEmbedder)
    assert embedder(EmbedderChoice(use="none"), environment()) is None


def test_without_the_extra_there_is_no_embedder_unless_it_is_configured(monkeypatch):
    monkeypatch.setattr(local_embedder, "find_spec", lambda name: None)

    assert embedder(EmbedderChoice(), environment()) is None
    configured = embedder(EmbedderChoice(use="local"), environment())
    with pytest.raises(ModelUnavailable, match="there is no local embedder") as refusal:
        configured.generate(["a"])
    assert refusal.value.hint == "pip install 'jidomem[recall]'"


def test_an_endpoint_takes_its_key_from_the_environment():
    endpoint_embedder = embedder(OPENAI, environment(OPEN_AI_API_KEY="sk-1", OPENAI_API_KEY="sk-2"))

    assert isinstance(endpoint_embedder, EndpointEmbedder)
    assert (endpoint_embedder.model, endpoint_embedder.dimensions()) == ("text-embedding-3-large", 3072)  # D089
    assert repr(endpoint_embedder.endpoint) == "Endpoint('https://api.openai.com/v1', <the key in OPEN_AI_API_KEY>)"
    second = embedder(OPENAI, environment(OPENAI_API_KEY="sk-2"))
    assert "<the key in OPENAI_API_KEY>" in repr(second)
    named = embedder(EmbedderChoice(use="endpoint", key_env="GATEWAY"), environment(GATEWAY="k", OPENAI_API_KEY="sk-2"))
    assert "<the key in GATEWAY>" in repr(named)
    assert "None" in repr(
        embedder(EmbedderChoice(use="endpoint", key_env=""), environment(OPENAI_API_KEY="sk-2")).endpoint
    )


def test_a_missing_key_is_reported_when_vectors_are_generated():
    endpoint_embedder = embedder(OPENAI, environment())

    assert isinstance(endpoint_embedder, Embedder)  # D088
    assert (endpoint_embedder.name, endpoint_embedder.dimensions()) == ("text-embedding-3-large", 3072)
    with pytest.raises(ModelUnavailable, match="OPEN_AI_API_KEY and OPENAI_API_KEY are not set") as refusal:
        endpoint_embedder.generate(["a"])  # D089
    assert refusal.value.hint.startswith("export OPEN_AI_API_KEY=...")


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (EmbedderChoice(use="endpoint", key_env="MINE"), "MINE is not set"),
        (EmbedderChoice(use="endpoint", base_url="http://gpu.lan/v1", key_env="KEY"), "unencrypted"),
        (EmbedderChoice(use="endpoint", base_url="gpu.lan", key_env=""), "not an http or https address"),
        (EmbedderChoice(use="endpoint", key_env="BLANK"), "BLANK has no key"),
    ],
)
def test_an_unusable_endpoint_fails_with_the_reason_on_each_call(chosen, message):
    endpoint_embedder = embedder(chosen, environment(KEY="sk-4711", BLANK=""))

    for _ in range(2):
        with pytest.raises(ModelUnavailable, match=message) as refusal:
            endpoint_embedder.generate(["a"])
        assert "4711" not in repr(refusal.value.to_dict())


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([], "embedder is not a table"),
        ({"using": "local"}, "embedder.using is not known"),
        ({"use": "remote"}, 'embedder.use = "remote" is not one of local, endpoint, none'),
        ({"use": True}, "embedder.use = true is not one of"),
        ({"use": "endpoint", "dimensions": 0}, "embedder.dimensions = 0 is not a whole number from 1 to 65,536"),
        ({"use": "endpoint", "dimensions": True}, "embedder.dimensions = true"),
        ({"use": "endpoint", "dimensions": 70_000}, "embedder.dimensions = 70000"),
        ({"use": "endpoint", "model": " "}, 'embedder.model = " " is not a text'),
        ({"use": "endpoint", "key_env": 1}, "embedder.key_env = 1 is not the name of an environment variable"),
        ({"use": "local", "model": "m"}, "embedder.model is for an endpoint, and none is used"),
        ({"base_url": "http://localhost/v1"}, "embedder.base_url is for an endpoint"),
        ({"use": "endpoint", "api_key": "sk-4711"}, "embedder.api_key is not known"),
    ],
)
def test_an_invalid_choice_is_refused_with_its_file_and_key(table, message):
    with pytest.raises(Failed, match=message) as refusal:
        embedder_choice(table, "own.toml")

    assert refusal.value.code == "invalid_config"
    assert refusal.value.detail.startswith("own.toml: ")
    assert "4711" not in repr(refusal.value.to_dict())


def test_the_choice_is_read_from_the_user_configuration_and_preserved_by_a_change_of_it(config, tmp_path, monkeypatch):
    monkeypatch.setenv("GATEWAY", "sk-1")
    monkeypatch.delenv("JIDOMEM_EMBEDDER")
    lines = ['use = "endpoint"', 'base_url = "http://127.0.0.1:1/v1"', r'model = "m \"1\""', "dimensions = 8"]
    config.write_text("\n".join(["[embedder]", *lines, 'key_env = "GATEWAY"']))

    user_config.change(config, lambda lines: replace(lines, trusted=(user_config.TrustedRoot("/r", "0", "today"),)))
    loaded = settings.load(tmp_path / "root")

    assert loaded.embedder == EmbedderChoice("endpoint", "http://127.0.0.1:1/v1", 'm "1"', 8, "GATEWAY")
    assert settings.embedder(loaded).name == 'm "1" at http://127.0.0.1:1/v1 (8)'
    assert len(user_config.read(config).trusted) == 1


def test_a_root_cannot_choose_an_embedder(tmp_path):
    for key in ("embedder", "models"):
        (tmp_path / "config.toml").write_text(f'[{key}]\nuse = "endpoint"\nbase_url = "http://127.0.0.1:1/v1"\n')

        with pytest.raises(Failed, match=f"{key} cannot be set by a root on disk"):
            settings.load(tmp_path)


def test_a_choice_made_in_python_is_validated_when_it_is_used():
    endpoint_embedder = embedder(EmbedderChoice(use="endpoint", model="", key_env=""), environment())

    with pytest.raises(ModelUnavailable, match="model='' is not a name"):
        endpoint_embedder.generate(["a"])
    with pytest.raises(InvalidRequest, match="instead of a list"):
        embedder(EmbedderChoice(use="endpoint", key_env=""), environment()).generate("a")
