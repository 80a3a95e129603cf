"""Which language model reads dialogue for memory, as its user set it: the offline one, or an endpoint's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jidomem.embedder import Embedder
from jidomem.errors import JidomemError
from jidomem.runtime.chosen import Fault, a_file, a_text, a_variable, key, one_of, table, wrong

if TYPE_CHECKING:
    from jidomem.model import LanguageModel

#: What may be used; where nothing is said, the offline one.
USES = ("offline", "endpoint")


@dataclass(frozen=True, slots=True)
class Choice:
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


def choice(said: Any, where: str) -> Choice:
    """Return the choice that the table *said* makes; raises Failed `invalid_config`, naming *where* and the key."""
    chosen = table(Choice, "model", said, where, _FAULTS, _EXAMPLE)
    if chosen.use == "endpoint":
        for name in ("base_url", "model"):
            if getattr(chosen, name) is None:
                raise wrong(where, f"model.{name} is not said, and what agents said would go there", _EXAMPLE)
    return chosen


def model(chosen: Choice, embedder: Embedder, environment: Callable[[str], str | None]) -> LanguageModel:
    """Return the language model that is *chosen*, with that *embedder*; its key, if any, is in the *environment*.

    One that cannot be asked, as its key is missing, says so each time it is asked something.
    """
    if chosen.use != "endpoint":
        from jidomem.models.offline import OfflineModel  # an endpoint has no need of it

        return OfflineModel(embedder)
    from jidomem.models.chat import OPTIONS, ChatModel  # most have no endpoint, and none of what it needs
    from jidomem.models.endpoint import Endpoint, Patience, Unavailable

    address, name = chosen.base_url or "", chosen.model or ""
    asked: Endpoint | Unavailable
    try:
        patience = Patience(silence=chosen.seconds, overall=chosen.seconds)
        asked = Endpoint(address, key(chosen, "the language model", environment), patience)
    except JidomemError as error:
        asked = Unavailable(address, error)
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


_FAULTS: Mapping[str, Fault] = {
    "use": one_of(*USES), "base_url": a_text, "model": a_text, "key_env": a_variable, "key_file": a_file,
    "seconds": _a_time, "json_mode": _a_truth, "options": _options,
}  # fmt: skip
_EXAMPLE = 'as in use = "endpoint", base_url = "http://127.0.0.1:11434/v1", model = "qwen3:8b", key_env = ""'
