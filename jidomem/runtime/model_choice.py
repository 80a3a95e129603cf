"""The choice of models in the user's configuration: the embedder, the reranker and the language model.

Each is the local one, that of an endpoint with its key, or none.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jidomem.errors import JidomemError, ModelUnavailable
from jidomem.runtime.config_table import TRUTH, KeyRule, choice, config_fault, number, read_table, require_keys, text

if TYPE_CHECKING:
    from jidomem.models.endpoint import ApiKey
    from jidomem.models.reranker import Reranker
    from jidomem.records.interfaces import Embedder, LanguageModel

#: The default environment variables of the key.
API_KEY_VARIABLES = ("OPEN_AI_API_KEY", "OPENAI_API_KEY")
#: The greatest size of a file with a key, and the bits of its mode that must not be set.
_MAX_KEY_FILE_BYTES, _ACCESS_OF_OTHERS = 4_096, 0o077


def _is_variable(name: str) -> bool:
    return not name or not name.isspace()


def _is_absolute(path: str) -> bool:
    try:
        return "\0" not in path and Path(path).expanduser().is_absolute()
    except RuntimeError:  # the home folder of an unknown user
        return False


#: The rules of the keys of any endpoint.
_ENDPOINT: Mapping[str, KeyRule] = {
    "base_url": text("http://127.0.0.1:11434/v1"),
    "key_env": text("MODEL_KEY", 'the name of an environment variable, or ""', is_valid=_is_variable),
    "key_file": text("~/.secrets/endpoint", "the whole path of a file", is_valid=_is_absolute),
}
#: The keys of a local model, which has no others but `use`.
_LOCAL_ONLY = ("path", "query_prefix", "text_prefix")


def _check_endpoint(values: Mapping[str, Any], name: str, file: Path | str) -> None:
    """Raise Failed `invalid_config` if the table *name* has keys that exclude each other."""
    if values.get("use") != "endpoint" and (more := sorted(values.keys() - {"use"})):
        raise config_fault(file, f"{name}.{more[0]} is for an endpoint, and none is used", 'write use = "endpoint"')
    _check_key(values, name, file)


def _check_key(values: Mapping[str, Any], name: str, file: Path | str) -> None:
    if {"key_env", "key_file"} <= values.keys():
        raise config_fault(file, f"{name}.key_env and {name}.key_file both name the key", "leave one of them out")


def api_key(
    chosen: EmbedderChoice | RerankerChoice | LanguageModelChoice, of: str, environment: Callable[[str], str | None]
) -> ApiKey | None:
    """Return the key of the endpoint of *of* (such as `the embedder`), None if it needs none.

    Raise ModelUnavailable if the key is missing, InvalidRequest if it is malformed. Messages show no part of it.
    """
    from jidomem.models.endpoint import ApiKey  # imported here, as most roots use no endpoint

    if chosen.key_file is not None:
        return _in_file(Path(chosen.key_file).expanduser(), of)
    names = API_KEY_VARIABLES if chosen.key_env is None else tuple(filter(None, [chosen.key_env]))
    for name in names:
        if (text := environment(name)) is not None:
            return ApiKey(name, text)
    if not names:
        return None
    raise ModelUnavailable(
        f"there is no key for {of}: {' and '.join(names)} {'are' if len(names) > 1 else 'is'} not set",
        hint=f'export {names[0]}=..., or for an endpoint that asks for no key: key_env = ""',
    )


def _in_file(path: Path, of: str) -> ApiKey:
    """Return the key in a file; only its owner may have access to the file."""
    from jidomem.models.endpoint import ApiKey  # imported here, as most roots use no endpoint

    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            text = file.read(_MAX_KEY_FILE_BYTES).decode("utf-8", "replace")
    except OSError as error:
        hint = f"put the key alone there: install -m 600 /dev/stdin {path}"
        raise ModelUnavailable(f"there is no key for {of}: {path}: {error.strerror or error}", hint=hint) from error
    if stat.S_IMODE(status.st_mode) & _ACCESS_OF_OTHERS or status.st_uid not in (os.geteuid(), 0):
        raise ModelUnavailable(
            f"others may read the key for {of}: {path} has mode {stat.S_IMODE(status.st_mode):04o}"
            f" and is of uid {status.st_uid}",
            hint=f"chmod 600 {path}, and consider replacing the key",
        )
    return ApiKey(str(path), text.strip())


def config_error(model: object) -> JidomemError | None:
    """Return the fault in the configuration of a model or an embedder; None if none is known before a request."""
    why: JidomemError | None = getattr(model, "why", None)
    return why


def is_remote(model: object) -> bool:
    """Return whether a model or an embedder runs on another machine."""
    return bool(getattr(model, "is_remote", False))


#: The values of `use`; the default is the local embedder if it is installed.
EMBEDDER_USES = ("local", "endpoint", "none")


@dataclass(frozen=True, slots=True)
class EmbedderChoice:
    """The settings of the embedder: those of an endpoint, or the folder `path` of a local model with its prefixes.

    `dimensions` are those of the vectors of an endpoint. The key is in the environment variable `key_env`, which is ""
    for an endpoint without key, or in the file `key_file`.
    """

    use: str | None = None
    base_url: str = "https://api.openai.com/v1"
    model: str = "text-embedding-3-large"
    dimensions: int = 3072
    key_env: str | None = None
    key_file: str | None = None
    path: str | None = None
    query_prefix: str = ""
    text_prefix: str = ""


_EMBEDDER: Mapping[str, KeyRule] = {
    **_ENDPOINT,
    "use": choice(EMBEDDER_USES),
    "model": text("nomic-embed-text"),
    "dimensions": number(1, 65_536, 768),
    "path": text("~/models/multilingual-e5-small", "the whole path of a folder", is_valid=_is_absolute),
    "query_prefix": text("query: "),
    "text_prefix": text("passage: "),
}


def embedder_choice(values: Any, file: Path | str) -> EmbedderChoice:
    """Return the choice in the table *values* of *file*; raise Failed `invalid_config`."""
    checked = read_table(file, "embedder", values, _EMBEDDER)
    of_folder = [name for name in _LOCAL_ONLY if name in checked]
    if of_folder and checked.get("use") != "local":
        raise config_fault(
            file, f"embedder.{of_folder[0]} is for a local model, and none is used", 'write use = "local"'
        )
    if of_folder:
        require_keys(file, "embedder", checked, _EMBEDDER, ("path",))
    _check_endpoint({name: value for name, value in checked.items() if name not in _LOCAL_ONLY}, "embedder", file)
    return EmbedderChoice(**checked)


def embedder(chosen: EmbedderChoice, environment: Callable[[str], str | None]) -> Embedder | None:
    """Return the *chosen* embedder, with its key from the *environment*; None if none is used.

    An embedder without its key or packages raises that error at each request.
    """
    if chosen.use == "none":
        return None
    if chosen.use == "endpoint":
        return _remote(chosen, environment)
    if chosen.path is not None:
        return _in_folder(Path(chosen.path).expanduser(), chosen)
    from jidomem.models import local_embedder  # imported here, as an endpoint does not need it

    if not (lacking := local_embedder.missing()):
        return local_embedder.LocalEmbedder()
    if chosen.use is None:
        return None
    return _unavailable(local_embedder.NAME, local_embedder.DIMENSIONS, local_embedder.not_there(lacking))


def _remote(chosen: EmbedderChoice, environment: Callable[[str], str | None]) -> Embedder:
    from jidomem.models.embeddings import EndpointEmbedder  # imported here, as most roots use no endpoint
    from jidomem.models.endpoint import ModelEndpoint

    try:
        endpoint = ModelEndpoint(chosen.base_url, api_key(chosen, "the embedder", environment))
        return EndpointEmbedder(endpoint, chosen.model, chosen.dimensions)
    except JidomemError as error:
        return _unavailable(chosen.model, chosen.dimensions, error)


def _in_folder(folder: Path, chosen: EmbedderChoice) -> Embedder:
    from jidomem.models.sentence_model import SentenceEmbedder  # imported here, as most roots have no such model

    try:
        return SentenceEmbedder(folder, chosen.query_prefix, chosen.text_prefix)
    except JidomemError as error:
        return _unavailable(folder.name, 0, error)


def _unavailable(name: str, dimensions: int, why: JidomemError) -> Embedder:
    from jidomem.models.embeddings import EmbedderUnavailable

    return EmbedderUnavailable(name, dimensions, why)


@dataclass(frozen=True, slots=True)
class RerankerChoice:
    """The settings of the reranker: the folder `path` of a local model, or an endpoint; neither: there is none.

    It reorders memories within `seconds`. The key of an endpoint is given as that of an embedder.
    """

    path: str | None = None
    base_url: str | None = None
    model: str | None = None
    key_env: str | None = None
    key_file: str | None = None
    seconds: float = 0.3


_RERANKER: Mapping[str, KeyRule] = {
    **_ENDPOINT,
    "path": text("~/models/mmarco-mMiniLMv2-L12-H384-v1", "the whole path of a folder", is_valid=_is_absolute),
    "model": text("bge-reranker-v2-m3"),
    "seconds": number(0.01, 60, 0.3),
}


def reranker_choice(values: Any, file: Path | str) -> RerankerChoice:
    """Return the choice in the table *values* of *file*; raise Failed `invalid_config`."""
    checked = read_table(file, "reranker", values, _RERANKER)
    if "path" in checked and (more := sorted(checked.keys() - {"path", "seconds"})):
        raise config_fault(file, f"reranker.{more[0]} is for an endpoint, and path names a folder", "leave one out")
    if checked and "base_url" not in checked:
        require_keys(file, "reranker", checked, _RERANKER, ("path",))
    _check_key(checked, "reranker", file)
    return RerankerChoice(**checked)


def reranker(chosen: RerankerChoice, environment: Callable[[str], str | None]) -> Reranker | None:
    """Return the *chosen* reranker, with its key from the *environment*; None if there is none.

    A reranker without its key, files or packages raises that error at each request.
    """
    if chosen.path is None and chosen.base_url is None:
        return None
    from jidomem.models.endpoint import ModelEndpoint  # imported here, as most users have no reranker
    from jidomem.models.reranker import CrossEncoder, EndpointReranker, RerankerUnavailable

    try:
        if chosen.path is not None:
            return CrossEncoder(Path(chosen.path).expanduser())
        endpoint = ModelEndpoint(chosen.base_url or "", api_key(chosen, "the reranker", environment))
        return EndpointReranker(endpoint, chosen.model)
    except JidomemError as error:
        return RerankerUnavailable(chosen.path or chosen.model or chosen.base_url or "", error)


#: The values of `use`; the default is the offline model.
LANGUAGE_MODEL_USES = ("offline", "endpoint")


@dataclass(frozen=True, slots=True)
class LanguageModelChoice:
    """The settings of the language model; all but `use` are for an endpoint, which has an address and a model.

    The key is in the environment variable `key_env`, which is "" for an endpoint without key, or in the file
    `key_file`. All attempts of one request take at most `seconds`. `options` are sent with each; `json_mode` is that of
    `ChatModel`.
    """

    use: str | None = None
    base_url: str | None = None
    model: str | None = None
    key_env: str | None = None
    key_file: str | None = None
    seconds: float = 120.0
    json_mode: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)


def _is_json(value: Any) -> bool:
    if isinstance(value, dict | list):
        return all(map(_is_json, value.values() if isinstance(value, dict) else value))
    return isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))


_LANGUAGE_MODEL: Mapping[str, KeyRule] = {
    **_ENDPOINT,
    "use": choice(LANGUAGE_MODEL_USES),
    "model": text("qwen3:8b"),
    "seconds": number(1, 3_600, 120.0),
    "json_mode": TRUTH,
    "options": KeyRule(
        lambda value: isinstance(value, dict) and _is_json(value),
        "a table of texts, numbers, truths, lists and tables",
        "{temperature = 0.2}",
    ),
}


def language_model_choice(values: Any, file: Path | str) -> LanguageModelChoice:
    """Return the choice in the table *values* of *file*; raise Failed `invalid_config`.

    An endpoint has no default, since texts of agents are sent there.
    """
    checked = read_table(file, "model", values, _LANGUAGE_MODEL)
    _check_endpoint(checked, "model", file)
    if "options" in checked:
        from jidomem.models.chat import OURS  # imported here, as few users set options

        if ours := [name for name in checked["options"] if name in OURS]:
            raise config_fault(file, f"model.options.{ours[0]} is set by the client itself", f"leave {ours[0]} out")
    if checked.get("use") == "endpoint":
        require_keys(file, "model", checked, _LANGUAGE_MODEL, ("base_url", "model"))
    return LanguageModelChoice(**checked)


def language_model(
    chosen: LanguageModelChoice, embedder: Embedder, environment: Callable[[str], str | None]
) -> LanguageModel:
    """Return the *chosen* language model with its *embedder*, and its key from the *environment*.

    A model without its key raises that error at each request.
    """
    if chosen.use != "endpoint":
        from jidomem.models.offline import OfflineModel  # imported here, as an endpoint does not need it

        return OfflineModel(embedder)
    from jidomem.models.chat import OPTIONS, ChatModel  # imported here, as most roots use no endpoint
    from jidomem.models.endpoint import EndpointUnavailable, ModelEndpoint, RequestTimeouts

    address, name = chosen.base_url or "", chosen.model or ""
    endpoint: ModelEndpoint | EndpointUnavailable
    try:
        patience = RequestTimeouts(silence=chosen.seconds, overall=chosen.seconds)
        endpoint = ModelEndpoint(address, api_key(chosen, "the language model", environment), patience)
    except JidomemError as error:
        endpoint = EndpointUnavailable(address, error)
    return ChatModel(endpoint, name, embedder, options=chosen.options or OPTIONS, json_mode=chosen.json_mode)
