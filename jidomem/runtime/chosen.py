"""Tables of one's own configuration that choose a model: what they may say, and where the key of an endpoint is."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Protocol, TypeVar

from jidomem.errors import Failed, JidomemError, ModelUnavailable
from jidomem.models.key import Key

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


def table(kind: type[C], name: str, said: Any, where: str, faults: Mapping[str, Fault], example: str) -> C:
    """Return what the table *name* sets; raises Failed `invalid_config`, naming *where* and the key that is wrong."""
    if not isinstance(said, dict):
        raise wrong(where, f"{name} is a table", f"write [{name}]")
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # it is a dataclass
    for key, value in said.items():
        if key not in known:
            near = get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            raise wrong(where, f"{name}.{key} is not known", hint)
        if (fault := faults[key](value)) is not None:
            raise wrong(where, f"{name}.{key} = {value!r:.100} is {fault}", example)
    if said.get("use") != "endpoint" and (more := sorted(said.keys() - {"use"})):
        raise wrong(where, f"{name}.{more[0]} is of an endpoint, and none is used", 'use = "endpoint"')
    if {"key_env", "key_file"} <= said.keys():
        raise wrong(where, f"{name}.key_env and {name}.key_file both say where the key is", "leave one of them out")
    return kind(**said)


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


def key(chosen: OfEndpoint, of: str, environment: Callable[[str], str | None]) -> Key | None:
    """Return the key of the endpoint of *of* (`the embedder`), None where it asks for none.

    Raises ModelUnavailable where there is none, InvalidRequest for what is no key. None of it is in what they say.
    """
    if chosen.key_file is not None:
        return _in_file(Path(chosen.key_file).expanduser(), of)
    names = KEYS if chosen.key_env is None else tuple(filter(None, [chosen.key_env]))
    for name in names:
        if (text := environment(name)) is not None:
            return Key(name, text)
    if not names:
        return None
    raise ModelUnavailable(
        f"there is no key for {of}: {' and '.join(names)} {'are' if len(names) > 1 else 'is'} not set",
        hint=f'export {names[0]}=..., or for an endpoint that asks for no key: key_env = ""',
    )


def _in_file(path: Path, of: str) -> Key:
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
    return Key(str(path), text.strip())


def amiss(model: object) -> JidomemError | None:
    """Return why a model or an embedder cannot be asked at all, None where that is not known before it is asked."""
    why: JidomemError | None = getattr(model, "why", None)
    return why


def is_remote(model: object) -> bool:
    """Return whether who asks a model or an embedder waits for another machine, as `is_remote` of it says."""
    return bool(getattr(model, "is_remote", False))


def wrong(where: str, what: str, hint: str) -> Failed:
    """Return the error that tells *what* is wrong with the configuration *where*."""
    return Failed(f"{where}: {what}", hint=hint, code="invalid_config")
