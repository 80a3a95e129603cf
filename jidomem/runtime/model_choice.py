"""The choice of models in the user's configuration: the embedder and the language model.

Each is the local one, that of an endpoint with its key, or none.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from jidomem.errors import Failed, JidomemError, ModelUnavailable, did_you_mean
from jidomem.models.endpoint import ApiKey
from jidomem.records.interfaces import Embedder

if TYPE_CHECKING:
    from jidomem.records.interfaces import LanguageModel

#: The environment variables that have the key, where none is named.
KEYS = ("OPEN_AI_API_KEY", "OPENAI_API_KEY")
#: What is wrong with the value of a key, None where nothing is.
Fault = Callable[[Any], str | None]
#: The most bytes that a file with a key has, and what nobody else may do with it.
_LONGEST, _OTHERS = 4_096, 0o077
C = TypeVar("C")


class OfEndpoint(Protocol):
    """What is set of an endpoint's key: the environment variable or the file that has it."""

    @property
    def key_env(self) -> str | None:
        """Return the variable, "" where the endpoint asks for no key, None where nothing is said."""

    @property
    def key_file(self) -> str | None:
        """Return the file, None where it is in none."""


def table(kind: type[C], name: str, values: Any, where: str, faults: Mapping[str, Fault], example: str) -> C:
    """Return what the table *name* sets; raises Failed `invalid_config`, naming *where* and the key that is wrong."""
    if not isinstance(values, dict):
        raise wrong(where, f"{name} is a table", f"write [{name}]")
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # it is a dataclass
    for key, value in values.items():
        if key not in known:
            hint = did_you_mean(key, known, f"there are {', '.join(known)}")
            raise wrong(where, f"{name}.{key} is not known", hint)
        if (fault := faults[key](value)) is not None:
            raise wrong(where, f"{name}.{key} = {value!r:.100} is {fault}", example)
    if values.get("use") != "endpoint" and (more := sorted(values.keys() - {"use"})):
        raise wrong(where, f"{name}.{more[0]} is of an endpoint, and none is used", 'use = "endpoint"')
    if {"key_env", "key_file"} <= values.keys():
        raise wrong(where, f"{name}.key_env and {name}.key_file both say where the key is", "leave one of them out")
    return kind(**values)


def one_of(*names: str) -> Fault:
    """Return what is wrong with a value that is none of *names*."""
    return lambda value: None if isinstance(value, str) and value in names else f"none of {', '.join(names)}"


def a_text(value: Any) -> str | None:
    """Return what is wrong with a value that is no text, or a blank one."""
    return None if isinstance(value, str) and value.strip() else "no text"


def a_variable(value: Any) -> str | None:
    """Return what is wrong with what names no environment variable, nor says by "" that there is none."""
    return None if value == "" else a_text(value)


def a_file(value: Any) -> str | None:
    """Return what is wrong with what names no file by its whole path."""
    if a_text(value) is None and Path(value).expanduser().is_absolute():
        return None
    return "no whole path of a file, as in ~/.secrets/endpoint"


def key(chosen: OfEndpoint, of: str, environment: Callable[[str], str | None]) -> ApiKey | None:
    """Return the key of the endpoint of *of* (`the embedder`), None where it asks for none.

    Raises ModelUnavailable where there is none, InvalidRequest for what is no key. None of it is in what they say.
    """
    if chosen.key_file is not None:
        return _in_file(Path(chosen.key_file).expanduser(), of)
    names = KEYS if chosen.key_env is None else tuple(filter(None, [chosen.key_env]))
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
    """Return the key in a file that nobody else may read."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            text = file.read(_LONGEST).decode("utf-8", "replace")
    except OSError as error:
        hint = f"put the key alone there: install -m 600 /dev/stdin {path}"
        raise ModelUnavailable(f"there is no key for {of}: {path}: {error.strerror or error}", hint=hint) from error
    if stat.S_IMODE(status.st_mode) & _OTHERS or status.st_uid not in (os.geteuid(), 0):
        raise ModelUnavailable(
            f"others may read the key for {of}: {path} has mode {stat.S_IMODE(status.st_mode):04o}"
            f" and is of uid {status.st_uid}",
            hint=f"chmod 600 {path}, and think of getting another key",
        )
    return ApiKey(str(path), text.strip())


def config_error(model: object) -> JidomemError | None:
    """Return why a model or an embedder cannot be asked at all, None where that is not known before it is asked."""
    why: JidomemError | None = getattr(model, "why", None)
    return why


def is_remote(model: object) -> bool:
    """Return whether who asks a model or an embedder waits for another machine, as `is_remote` of it says."""
    return bool(getattr(model, "is_remote", False))


def wrong(where: str, what: str, hint: str) -> Failed:
    """Return the error that tells *what* is wrong with the configuration *where*."""
    return Failed(f"{where}: {what}", hint=hint, code="invalid_config")


#: What may be used; where nothing is said, the local one if it is installed.
EMBEDDER_USES = ("local", "endpoint", "none")


@dataclass(frozen=True, slots=True)
class EmbedderChoice:
    """What is set of the embedder; all but `use` is of an endpoint.

    `dimensions` are those of its model's vectors, `key_env` names the environment variable with its key, "" for one
    that asks for none, `key_file` a file that has it instead.
    """

    use: str | None = None
    base_url: str = "https://api.openai.com/v1"
    model: str = "text-embedding-3-large"
    dimensions: int = 3072
    key_env: str | None = None
    key_file: str | None = None


def embedder_choice(values: Any, where: str) -> EmbedderChoice:
    """Return the choice in the table *values*; raises Failed `invalid_config`, naming *where* and the key."""
    return table(EmbedderChoice, "embedder", values, where, _EMBEDDER_FAULTS, _EMBEDDER_EXAMPLE)


def embedder(chosen: EmbedderChoice, environment: Callable[[str], str | None]) -> Embedder | None:
    """Return the embedder that is *chosen*; its key, if it has one, is in the *environment*. None where none is used.

    One that cannot be asked, as its key or its packages are missing, says so each time it is asked for vectors.
    """
    if chosen.use == "none":
        return None
    if chosen.use == "endpoint":
        return _remote(chosen, environment)
    from jidomem.models import local_embedder  # an endpoint has no need of it

    if not (lacking := local_embedder.missing()):
        return local_embedder.LocalEmbedder()
    return (
        None
        if chosen.use is None
        else _unavailable(local_embedder.NAME, local_embedder.DIMENSIONS, local_embedder.not_there(lacking))
    )


def _remote(chosen: EmbedderChoice, environment: Callable[[str], str | None]) -> Embedder:
    from jidomem.models.embeddings import EndpointEmbedder  # most have no endpoint, and none of what it needs
    from jidomem.models.endpoint import ModelEndpoint

    try:
        endpoint = ModelEndpoint(chosen.base_url, key(chosen, "the embedder", environment))
        return EndpointEmbedder(endpoint, chosen.model, chosen.dimensions)
    except JidomemError as error:
        return _unavailable(chosen.model, chosen.dimensions, error)


def _unavailable(name: str, dimensions: int, why: JidomemError) -> Embedder:
    from jidomem.models.embeddings import EmbedderUnavailable

    return EmbedderUnavailable(name, dimensions, why)


def _a_dimension(value: Any) -> str | None:
    whole = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 65_536
    return None if whole else "no number of dimensions, from 1 to 65536"


_EMBEDDER_FAULTS: Mapping[str, Fault] = {
    "use": one_of(*EMBEDDER_USES),
    "base_url": a_text,
    "model": a_text,
    "dimensions": _a_dimension,
    "key_env": a_variable,
    "key_file": a_file,
}
_EMBEDDER_EXAMPLE = (
    'as in use = "endpoint", base_url = "http://127.0.0.1:11434/v1", model = "nomic-embed-text", dimensions = 768'
)


#: What may be used; where nothing is said, the offline one.
LANGUAGE_MODEL_USES = ("offline", "endpoint")


@dataclass(frozen=True, slots=True)
class LanguageModelChoice:
    """What is set of the language model; all but `use` is of an endpoint, which has an address and a model.

    The key is in the environment variable `key_env`, which is "" for an endpoint that asks for none, or in the file
    `key_file`. `seconds` bound all tries of one request, `options` go with each, `json_mode` is as of `ChatModel`.
    """

    use: str | None = None
    base_url: str | None = None
    model: str | None = None
    key_env: str | None = None
    key_file: str | None = None
    seconds: float = 120.0
    json_mode: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)


def language_model_choice(values: Any, where: str) -> LanguageModelChoice:
    """Return the choice in the table *values*; raises Failed `invalid_config`, naming *where* and the key."""
    chosen = table(LanguageModelChoice, "model", values, where, _LANGUAGE_MODEL_FAULTS, _LANGUAGE_MODEL_EXAMPLE)
    if chosen.use == "endpoint":
        for name in ("base_url", "model"):
            if getattr(chosen, name) is None:
                raise wrong(
                    where, f"model.{name} is not said, and what agents said would go there", _LANGUAGE_MODEL_EXAMPLE
                )
    return chosen


def model(chosen: LanguageModelChoice, embedder: Embedder, environment: Callable[[str], str | None]) -> LanguageModel:
    """Return the language model that is *chosen*, with that *embedder*; its key, if any, is in the *environment*.

    One that cannot be asked, as its key is missing, says so each time it is asked something.
    """
    if chosen.use != "endpoint":
        from jidomem.models.offline import OfflineModel  # an endpoint has no need of it

        return OfflineModel(embedder)
    from jidomem.models.chat import OPTIONS, ChatModel  # most have no endpoint, and none of what it needs
    from jidomem.models.endpoint import EndpointUnavailable, ModelEndpoint, Patience

    address, name = chosen.base_url or "", chosen.model or ""
    asked: ModelEndpoint | EndpointUnavailable
    try:
        patience = Patience(silence=chosen.seconds, overall=chosen.seconds)
        asked = ModelEndpoint(address, key(chosen, "the language model", environment), patience)
    except JidomemError as error:
        asked = EndpointUnavailable(address, error)
    return ChatModel(asked, name, embedder, options=chosen.options or OPTIONS, json_mode=chosen.json_mode)


def _a_time(value: Any) -> str | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return None if is_number and 1 <= value <= 3_600 else "no number of seconds, from 1 to 3600"


def _a_truth(value: Any) -> str | None:
    return None if isinstance(value, bool) else "neither true nor false"


def _options(value: Any) -> str | None:
    """Return what is wrong with what is no table of values that JSON has, or has what the client says itself."""
    from jidomem.models.chat import OURS  # few set any

    if not isinstance(value, dict) or not _is_json(value):
        return "no table of texts, numbers, truths, lists and tables"
    ours = [name for name in value if name in OURS]
    return f"more than options: the client itself says {ours[0]}" if ours else None


def _is_json(value: Any) -> bool:
    if isinstance(value, dict | list):
        return all(map(_is_json, value.values() if isinstance(value, dict) else value))
    return isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))


_LANGUAGE_MODEL_FAULTS: Mapping[str, Fault] = {
    "use": one_of(*LANGUAGE_MODEL_USES), "base_url": a_text, "model": a_text, "key_env": a_variable, "key_file": a_file,
    "seconds": _a_time, "json_mode": _a_truth, "options": _options,
}  # fmt: skip
_LANGUAGE_MODEL_EXAMPLE = (
    'as in use = "endpoint", base_url = "http://127.0.0.1:11434/v1", model = "qwen3:8b", key_env = ""'
)
