"""Which embedder makes the vectors of a memory, as its user set it: the local one, an endpoint's, or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any

from jidomem.embedder import Embedder
from jidomem.errors import Failed, JidomemError, ModelUnavailable
from jidomem.models.key import Key

#: What may be used; where nothing is said, the local one if it is installed.
USES = ("local", "endpoint", "none")
#: The environment variables that have the key, where none is named.
KEYS = ("OPEN_AI_API_KEY", "OPENAI_API_KEY")


@dataclass(frozen=True, slots=True)
class Choice:
    """What is set of the embedder; all but `use` is of an endpoint.

    `dimensions` are those of its model's vectors, `key_env` names the environment variable with its key, "" for one
    that asks for none.
    """

    use: str | None = None
    base_url: str = "https://api.openai.com/v1"
    model: str = "text-embedding-3-large"
    dimensions: int = 3072
    key_env: str | None = None


def choice(said: Any, where: str) -> Choice:
    """Return the choice that the table *said* makes; raises Failed `invalid_config`, naming *where* and the key."""
    if not isinstance(said, dict):
        raise _wrong(where, "embedder is a table", "write [embedder]")
    known = [field.name for field in fields(Choice)]
    for key, value in said.items():
        if key not in known:
            near = get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            raise _wrong(where, f"embedder.{key} is not known", hint)
        if not _fits(key, value):
            raise _wrong(where, f"embedder.{key} = {value!r} is {_KINDS.get(key, 'no text')}", _EXAMPLE)
    if said.get("use") != "endpoint" and (more := sorted(said.keys() - {"use"})):
        raise _wrong(where, f"embedder.{more[0]} is of an endpoint, and none is used", 'use = "endpoint"')
    return Choice(**said)


def embedder(chosen: Choice, environment: Callable[[str], str | None]) -> Embedder | None:
    """Return the embedder that is *chosen*; its key, if it has one, is in the *environment*. None where none is used.

    One that cannot be asked, as its key or its packages are missing, says so each time it is asked for vectors.
    """
    if chosen.use == "none":
        return None
    if chosen.use == "endpoint":
        return _remote(chosen, environment)
    from jidomem.models import local  # an endpoint has no need of it

    if not (lacking := local.missing()):
        return local.LocalEmbedder()
    return None if chosen.use is None else _unavailable(local.NAME, local.DIMENSIONS, local.not_there(lacking))


def _remote(chosen: Choice, environment: Callable[[str], str | None]) -> Embedder:
    from jidomem.models.embedding import EndpointEmbedder  # most have no endpoint, and none of what it needs
    from jidomem.models.endpoint import Endpoint

    names = KEYS if chosen.key_env is None else tuple(filter(None, [chosen.key_env]))
    try:
        endpoint = Endpoint(chosen.base_url, _key(names, environment) if names else None)
        return EndpointEmbedder(endpoint, chosen.model, chosen.dimensions)
    except JidomemError as error:
        return _unavailable(chosen.model, chosen.dimensions, error)


def _unavailable(name: str, dimensions: int, why: JidomemError) -> Embedder:
    from jidomem.models.embedding import Unavailable

    return Unavailable(name, dimensions, why)


def _key(names: Sequence[str], environment: Callable[[str], str | None]) -> Key:
    """Return the key in the first of the variables *names* that is set; raises ModelUnavailable where none is."""
    for name in names:
        if (text := environment(name)) is not None:
            return Key(name, text)
    raise ModelUnavailable(
        f"there is no key for the embedder: {' and '.join(names)} {'are' if len(names) > 1 else 'is'} not set",
        hint=f'export {names[0]}=..., or for an endpoint that asks for no key: key_env = ""',
    )


_KINDS = {"use": f"none of {', '.join(USES)}", "dimensions": "no number of dimensions, from 1 to 65536"}
_EXAMPLE = (
    'as in use = "endpoint", base_url = "http://127.0.0.1:11434/v1", model = "nomic-embed-text", dimensions = 768'
)


def _fits(key: str, value: Any) -> bool:
    if key == "dimensions":
        return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 65_536
    return isinstance(value, str) and (value in USES if key == "use" else bool(value.strip()) or key == "key_env")


def _wrong(where: str, what: str, hint: str) -> Failed:
    return Failed(f"{where}: {what}", hint=hint, code="invalid_config")
