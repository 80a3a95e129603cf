"""Which embedder makes the vectors of a memory, as its user set it: the local one, an endpoint's, or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jidomem.embedder import Embedder
from jidomem.errors import JidomemError
from jidomem.runtime.chosen import Fault, a_file, a_text, a_variable, key, one_of, table

#: What may be used; where nothing is said, the local one if it is installed.
USES = ("local", "endpoint", "none")


@dataclass(frozen=True, slots=True)
class Choice:
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


def choice(said: Any, where: str) -> Choice:
    """Return the choice that the table *said* makes; raises Failed `invalid_config`, naming *where* and the key."""
    return table(Choice, "embedder", said, where, _FAULTS, _EXAMPLE)


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

    try:
        endpoint = Endpoint(chosen.base_url, key(chosen, "the embedder", environment))
        return EndpointEmbedder(endpoint, chosen.model, chosen.dimensions)
    except JidomemError as error:
        return _unavailable(chosen.model, chosen.dimensions, error)


def _unavailable(name: str, dimensions: int, why: JidomemError) -> Embedder:
    from jidomem.models.embedding import Unavailable

    return Unavailable(name, dimensions, why)


def _a_dimension(value: Any) -> str | None:
    whole = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 65_536
    return None if whole else "no number of dimensions, from 1 to 65536"


_FAULTS: Mapping[str, Fault] = {
    "use": one_of(*USES), "base_url": a_text, "model": a_text, "dimensions": _a_dimension, "key_env": a_variable,
    "key_file": a_file,
}  # fmt: skip
_EXAMPLE = (
    'as in use = "endpoint", base_url = "http://127.0.0.1:11434/v1", model = "nomic-embed-text", dimensions = 768'
)
