"""The user's own configuration: tokens, trusted roots, limits and models, in one private file."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

from jidomem.base.files import atomic_file, file_lock
from jidomem.base.json_values import decode_toml
from jidomem.errors import Failed, PolicyDenied, did_you_mean
from jidomem.rdf.sparql import MAX_BYTES, MAX_DEPTH
from jidomem.records.policy import LITERAL_LIMIT, LITERAL_MOST
from jidomem.runtime import model_choice

_KIB, _MIB, _GIB = 1024, 1024**2, 1024**3
#: The least and the most of each: below, nothing would be answered; above, the engine's stack or the machine gives out.
_BETWEEN: Mapping[str, tuple[float, float]] = {
    "queries": (1, 256),
    "query_seconds": (0.05, 3600),
    "query_memory": (64 * _MIB, 1024 * _GIB),
    "query_rows": (1, 10_000_000),
    "query_answer": (_KIB, 2 * _GIB),
    "query_text": (16, MAX_BYTES),
    "query_nesting": (1, MAX_DEPTH),
    "body": (_KIB, _GIB),
    "stream": (_KIB, 1024 * _GIB),
    "line": (_KIB, _GIB),
    "literal": (_KIB, LITERAL_MOST),
    "url": (_KIB, _MIB),
    "headers": (_KIB, _MIB),
    "connections": (1, 4096),
    "idle_seconds": (0.1, 3600),
}


@dataclass(frozen=True, slots=True)
class RootLimits:
    """Limits with their defaults; sizes are in bytes.

    `queries` are answered apart at once, each within `query_seconds`, `query_memory`, `query_rows` and `query_answer`,
    where its text has at most `query_text` bytes and `query_nesting` brackets in each other. A `body` is one request's,
    a `stream` is one of lines, each a `line` at most. A `literal` is one text of a memory, by whichever door it comes.
    """

    queries: int = 4
    query_seconds: float = 30.0
    query_memory: int = _GIB
    query_rows: int = 100_000
    query_answer: int = 64 * _MIB
    query_text: int = MAX_BYTES
    query_nesting: int = MAX_DEPTH
    body: int = _MIB
    stream: int = _GIB
    line: int = _MIB
    literal: int = LITERAL_LIMIT
    url: int = 64 * _KIB
    headers: int = 32 * _KIB
    connections: int = 64
    idle_seconds: float = 10.0


def limits(values: Any, where: str) -> RootLimits:
    """Return the limits in the table *values*; raises Failed `invalid_config`, naming *where* and the limit."""
    if not isinstance(values, dict):
        raise _limit_error(where, "limits is a table", "write [limits]")
    known = {field.name: field.type for field in fields(RootLimits)}
    for name, value in values.items():
        if name not in known:
            hint = did_you_mean(name, known, f"there are {', '.join(known)}")
            raise _limit_error(where, f"limits.{name} is no limit", hint)
        least, most = _BETWEEN[name]
        kind = (int, float) if known[name] == "float" else (int,)
        if not isinstance(value, kind) or isinstance(value, bool) or not least <= value <= most:
            number = "a number" if known[name] == "float" else "a whole number"
            raise _limit_error(where, f"limits.{name} = {value!r} is not {number} from {least:,} to {most:,}",
                         f"write {name} = {getattr(RootLimits(), name):g}, or leave it out")  # fmt: skip
    return RootLimits(**values)


def _limit_error(where: str, what: str, hint: str) -> Failed:
    return Failed(f"{where}: {what}", hint=hint, code="invalid_config")


#: What a token may be given out for: the words of `jidomem.records.policy` for the roles of whoever speaks at a door.
ROLES = ("agent", "curator", "admin", "reader")
#: What stands for every project there is or will be; no project id is written so.
EVERY = "*"
_HEAD = "# Written by jidomem access token and jidomem access trust. Nobody else may read it: mode 0600.\n"
_OTHERS = 0o077
_KNOWN = ("tokens", "trusted", "commands", "limits", "embedder", "model", "index")
T = TypeVar("T", "ApiToken", "Trusted", "TrustedCommand")


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token that was given out, of which only a digest is kept: who speaks with it, and what it may reach.

    `root` is the memory it was given out for, `projects` those of its projects that it reaches.
    """

    digest: str
    agent: str
    role: str
    projects: tuple[str, ...]
    root: str
    added: str

    @property
    def id(self) -> str:
        """Return what names it to people."""
        return self.digest[:8]

    def reaches(self, project: str) -> bool:
        """Return whether *project* is there for who has this token."""
        return EVERY in self.projects or project in self.projects

    def check_writes(self) -> None:
        """Raise PolicyDenied for a reader's token, with which nothing is written."""
        if self.role == "reader":
            raise PolicyDenied(
                f"{self.agent} has the token of a reader, who writes nothing",
                hint="ask who runs the server for one of the role agent",
            )


@dataclass(frozen=True, slots=True)
class Trusted:
    """A root whose own words of authority count, as long as its files have this `digest`."""

    root: str
    digest: str
    added: str


@dataclass(frozen=True, slots=True)
class TrustedCommand:
    """A command that a convention of a root names, and that its user lets run."""

    root: str
    command: str
    added: str


@dataclass(frozen=True, slots=True)
class UserConfig:
    """What the user's own configuration says."""

    tokens: tuple[ApiToken, ...] = ()
    trusted: tuple[Trusted, ...] = ()
    commands: tuple[TrustedCommand, ...] = ()
    limits: RootLimits = field(default_factory=RootLimits)
    embedder: model_choice.EmbedderChoice = field(default_factory=model_choice.EmbedderChoice)
    model: model_choice.LanguageModelChoice = field(default_factory=model_choice.LanguageModelChoice)
    index: str = ""


def digest(token: str) -> str:
    """Return what is kept of *token*.

    It is 256 random bits, which nobody can try out: so one fast hash does what a slow one does for a password.

    >>> digest("jido_x") == digest("jido_x") != digest("jido_y")
    True
    """
    return blake2b(token.encode("utf-8", "surrogateescape"), digest_size=32).hexdigest()


def read(path: Path) -> UserConfig:
    """Return what *path* says, nothing where it is not there; raises Failed `invalid_config`.

    So it does for a file that others may read or write: a token in it may be one of theirs.
    """
    try:
        with path.open("rb") as file:
            _check_private(path, os.fstat(file.fileno()))
            said = decode_toml(file.read().decode())
    except FileNotFoundError:
        return UserConfig()
    except (ValueError, OSError) as error:
        raise _config_error(path, str(error)) from error
    if unknown := said.keys() - _KNOWN:
        raise _config_error(path, f"{min(unknown)} is not known here ({', '.join(_KNOWN)})")
    return UserConfig(
        tuple(entries(ApiToken, said, "tokens", path)),
        tuple(entries(Trusted, said, "trusted", path)),
        tuple(entries(TrustedCommand, said, "commands", path)),
        limits(said.get("limits", {}), str(path)),
        model_choice.embedder_choice(said.get("embedder", {}), str(path)),
        model_choice.language_model_choice(said.get("model", {}), str(path)),
        _index(said.get("index", ""), path),
    )


def change(path: Path, how: Callable[[UserConfig], UserConfig]) -> UserConfig:
    """Return what *path* says once it says what *how* makes of it: all of it at once, and after who else changes it.

    Raises Failed `invalid_config` where it cannot be read, `write_failed` where it cannot be written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with file_lock(f"{path}.lock", 0o600):
            changed = how(read(path))
            with atomic_file(path, 0o600, durable=True) as file:
                file.write(_written(changed).encode())
    except (OSError, UnicodeError) as error:
        raise Failed(f"{path} cannot be written: {error}", hint="make that folder one you may write to") from error
    return changed


def _check_private(path: Path, status: os.stat_result) -> None:
    """Raise Failed unless the file is the user's, and nobody else's."""
    if status.st_uid not in (os.geteuid(), 0):
        raise Failed(
            f"{path} belongs to another user (uid {status.st_uid})",
            hint=f"take it for your own: sudo chown {os.geteuid()} {path}",
            code="invalid_config",
        )
    if stat.S_IMODE(status.st_mode) & _OTHERS:
        raise Failed(
            f"{path} has tokens, and its mode {stat.S_IMODE(status.st_mode):04o} lets others at it",
            hint=f"chmod 600 {path}",
            code="invalid_config",
        )


def entries(kind: type[T], values: Mapping[str, Any], key: str, path: Path) -> Iterator[T]:
    """Yield what the tables *key* of *path* say; raises Failed for one that says it in another form."""
    tables = values.get(key, [])
    names = [field.name for field in fields(kind)]
    for table in tables if isinstance(tables, list) else [tables]:
        if not isinstance(table, dict) or sorted(table) != sorted(names):
            raise _config_error(path, f"each of [[{key}]] has {', '.join(names)}, and nothing else")
        for name, value in table.items():
            texts = value if name == "projects" else [value]
            if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
                raise _config_error(
                    path, f"{name} of [[{key}]] is {'a list of texts' if name == 'projects' else 'a text'}"
                )
        if kind is ApiToken and table["role"] not in ROLES:
            raise _config_error(path, f"role of [[{key}]] is one of {', '.join(ROLES)}, not {table['role']!r}")
        said_of: dict[str, Any] = {name: tuple(value) if name == "projects" else value for name, value in table.items()}
        yield kind(**said_of)


def _index(values: Any, path: Path) -> str:
    """Return the address of the store that answers, empty where there is none."""
    if not isinstance(values, str):
        raise _config_error(path, 'index is a text: index = "sparql+http://localhost:7878/query"')
    return values


def _config_error(path: Path, what: str) -> Failed:
    hint = f"correct it, or move it away and give out new tokens: mv {path} {path}.old"
    return Failed(f"{path}: {what}", hint=hint, code="invalid_config")


def _written(own: UserConfig) -> str:
    tables = [_table("tokens", each) for each in own.tokens] + [_table("trusted", each) for each in own.trusted]
    tables += [_table("commands", each) for each in own.commands]
    chosen = [line for name in ("limits", "embedder", "model") for line in _settings(name, getattr(own, name))]
    index = [f"index = {_value(own.index)}\n"] if own.index else []  # before any table, or it would be in one
    return "\n".join([_HEAD, *index, *chosen, *tables])


def _settings(name: str, given: Any) -> list[str]:
    """Return the table of what is set otherwise than it usually is; nothing where that is nothing."""
    usual = asdict(type(given)())
    said = {key: value for key, value in asdict(given).items() if value != usual[key]}
    lines = (f"{key} = {_value(value)}\n" for key, value in said.items())
    return [f"[{name}]\n{''.join(lines)}"] if said else []


def _table(key: str, each: ApiToken | Trusted | TrustedCommand) -> str:
    said = ((field.name, getattr(each, field.name)) for field in fields(each))
    return f"[[{key}]]\n" + "".join(f"{name} = {_value(value)}\n" for name, value in said)


def _value(value: Any) -> str:
    """Return a text, number or truth, or a list or table of them, as TOML has it."""
    if isinstance(value, str | bool | int | float):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_value(key)} = {_value(each)}' for key, each in value.items())}}}"
    return f"[{', '.join(map(_value, value))}]"
