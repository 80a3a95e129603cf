"""The user's own configuration: tokens, trusted roots, limits and models, in one private file."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

from jidomem.base.clock import format_timestamp
from jidomem.base.files import atomic_file, file_lock
from jidomem.base.words import slug
from jidomem.errors import Failed, PolicyDenied
from jidomem.rdf.sparql import MAX_BYTES, MAX_DEPTH
from jidomem.rdf.vocab import BASE
from jidomem.records.policy import CURATORS, LITERAL_LIMIT, LITERAL_MOST, role_named
from jidomem.runtime import model_choice
from jidomem.runtime.config_table import (
    TABLE,
    TABLES,
    KeyRule,
    choice,
    config_fault,
    number,
    parse_config,
    read_table,
    require_keys,
    text,
    to_toml,
)

_KIB, _MIB, _GIB = 1024, 1024**2, 1024**3
#: The bounds of each limit: below, no request would succeed; above, the machine or the engine would fail.
_BETWEEN: Mapping[str, tuple[float, float]] = {
    "queries": (1, 256), "query_seconds": (0.05, 3600), "query_memory": (64 * _MIB, 1024 * _GIB),
    "query_rows": (1, 10_000_000), "query_answer": (_KIB, 2 * _GIB), "query_text": (16, MAX_BYTES),
    "query_nesting": (1, MAX_DEPTH), "body": (_KIB, _GIB), "stream": (_KIB, 1024 * _GIB), "line": (_KIB, _GIB),
    "literal": (_KIB, LITERAL_MOST), "url": (_KIB, _MIB), "headers": (_KIB, _MIB), "connections": (1, 4096),
    "idle_seconds": (0.1, 3600), "reread_seconds": (1, 31_536_000),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RootLimits:
    """Limits with their defaults; sizes are in bytes.

    At most `queries` ad hoc queries run at once, each within `query_seconds`, `query_memory`, `query_rows` and
    `query_answer`; the text of a query has at most `query_text` bytes and `query_nesting` nested brackets. `body` is
    the limit of a request, `stream` of a body of lines, `line` of each line. `literal` is the limit of one text of a
    memory, in any interface. A server reads each file of the journal again within `reread_seconds`.
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
    reread_seconds: float = 86_400.0


_LIMITS = {name: number(*_BETWEEN[name], usual) for name, usual in asdict(RootLimits()).items()}


def limits(values: Any, file: Path | str) -> RootLimits:
    """Return the limits in the table *values* of *file*; raise Failed `invalid_config`."""
    return RootLimits(**read_table(file, "limits", values, _LIMITS))


#: The roles of a token, named as the roles of callers in `jidomem.records.policy`.
ROLES = ("agent", "curator", "admin", "reader")
#: All projects, present and future; not a valid project id.
EVERY = "*"
_HEAD = "# Written by jidomem access token and jidomem access trust. Nobody else may read it: mode 0600.\n"
_OTHERS = 0o077
_STRING = text("...", is_valid=lambda _: True)
_STRINGS = KeyRule(
    lambda value: isinstance(value, list) and all(map(_STRING.is_valid, value)), "a list of texts", '["..."]'
)
_RULES: Mapping[str, KeyRule] = {
    "tokens": TABLES,
    "trusted": TABLES,
    "commands": TABLES,
    "limits": TABLE,
    "embedder": TABLE,
    "model": TABLE,
    "reranker": TABLE,
    "index": text("sparql+http://localhost:7878/query", is_valid=lambda _: True),
    "closed": _STRINGS,
}
#: The rules of keys of the array tables whose values are not plain text.
_ENTRY_RULES = {"role": choice(ROLES), "projects": _STRINGS}
T = TypeVar("T", "ApiToken", "TrustedRoot", "TrustedCommand")


@dataclass(frozen=True, slots=True)
class ApiToken:
    """An issued token, of which only the digest is stored: its agent, and its rights.

    `root` is the memory for which it was issued, `projects` are the projects of that memory that it may access.
    `expires` is the moment from which it is invalid, empty for none.
    """

    digest: str
    agent: str
    role: str
    projects: tuple[str, ...]
    root: str
    added: str
    expires: str = ""

    @property
    def id(self) -> str:
        """Return the short form of the digest, for people."""
        return self.digest[:8]

    def is_valid(self, at: datetime) -> bool:
        """Return whether the token has not expired."""
        return not self.expires or format_timestamp(at) < self.expires

    def reaches(self, project: str) -> bool:
        """Return whether the token may access *project*."""
        return EVERY in self.projects or project in self.projects

    def check_writes(self) -> None:
        """Raise PolicyDenied if the token is read-only."""
        if self.role == "reader":
            raise PolicyDenied(
                f"{self.agent} has a read-only token", hint="ask the operator for a token of the role agent"
            )

    def acts_for(self, agent: str) -> bool:
        """Return whether the token is that of *agent*, a name or an IRI, or of a curator."""
        return _agent_iri(agent) == _agent_iri(self.agent) or role_named(self.role) in CURATORS

    def check_own(self, agent: str, action: str, field: str) -> None:
        """Raise PolicyDenied unless the token acts for *agent*, named by *field*; *action* is what is refused."""
        if not self.acts_for(agent):
            raise PolicyDenied(f"{self.agent} may not {action} {agent}", hint=f"give {self.agent} as {field}")


def _agent_iri(agent: str) -> str:
    return agent if ":" in agent else f"{BASE}agents/{slug(agent)}"


@dataclass(frozen=True, slots=True)
class TrustedRoot:
    """A root that may set `host` and `port`, as long as its files have this `digest`."""

    root: str
    digest: str
    added: str


@dataclass(frozen=True, slots=True)
class TrustedCommand:
    """A command of a convention of a root, permitted by the user."""

    root: str
    command: str
    added: str


@dataclass(frozen=True, slots=True)
class UserConfig:
    """The values of the user's own configuration; `closed` are the roots whose last token was revoked."""

    tokens: tuple[ApiToken, ...] = ()
    trusted: tuple[TrustedRoot, ...] = ()
    commands: tuple[TrustedCommand, ...] = ()
    limits: RootLimits = field(default_factory=RootLimits)
    embedder: model_choice.EmbedderChoice = field(default_factory=model_choice.EmbedderChoice)
    model: model_choice.LanguageModelChoice = field(default_factory=model_choice.LanguageModelChoice)
    index: str = ""
    reranker: model_choice.RerankerChoice = field(default_factory=model_choice.RerankerChoice)
    closed: tuple[str, ...] = ()


def digest(token: str) -> str:
    """Return the digest of *token*.

    A token has 256 random bits, too many to guess, so it needs no slow hash as a password does.

    >>> digest("jido_x") == digest("jido_x") != digest("jido_y")
    True
    """
    return blake2b(token.encode("utf-8", "surrogateescape"), digest_size=32).hexdigest()


def read(path: Path) -> UserConfig:
    """Return the configuration in *path*, the default one if there is no file; raise Failed `invalid_config`.

    A file that other users may read or write is refused, as they could know or set the tokens in it.
    """
    try:
        with path.open("rb") as file:
            _check_private(path, os.fstat(file.fileno()))
            content = file.read().decode()
    except FileNotFoundError:
        return UserConfig()
    except (ValueError, OSError) as error:
        hint = f"correct it, or move it away and issue new tokens: mv {path} {path}.old"
        raise config_fault(path, str(error), hint) from error
    values = read_table(path, "", parse_config(content, path), _RULES)
    return UserConfig(
        entries(ApiToken, values.get("tokens", []), "tokens", path),
        entries(TrustedRoot, values.get("trusted", []), "trusted", path),
        entries(TrustedCommand, values.get("commands", []), "commands", path),
        limits(values.get("limits", {}), path),
        model_choice.embedder_choice(values.get("embedder", {}), path),
        model_choice.language_model_choice(values.get("model", {}), path),
        values.get("index", ""),
        model_choice.reranker_choice(values.get("reranker", {}), path),
        tuple(values.get("closed", [])),
    )


def change(path: Path, edit: Callable[[UserConfig], UserConfig]) -> UserConfig:
    """Apply *edit* to the configuration in *path*, atomically, one process at a time, and return the result.

    Raise Failed `invalid_config` if it cannot be read, `write_failed` if it cannot be written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with file_lock(f"{path}.lock", 0o600):
            changed = edit(read(path))
            with atomic_file(path, 0o600, durable=True) as file:
                file.write(_to_toml(changed).encode())
    except (OSError, UnicodeError) as error:
        raise Failed(f"{path} cannot be written: {error}", hint="make that folder one you may write to") from error
    return changed


def _check_private(path: Path, status: os.stat_result) -> None:
    """Raise Failed unless the file belongs to the user and is inaccessible to others."""
    if status.st_uid not in (os.geteuid(), 0):
        hint = f"make it yours: sudo chown {os.geteuid()} {path}"
        raise config_fault(path, f"belongs to another user (uid {status.st_uid})", hint)
    if (mode := stat.S_IMODE(status.st_mode)) & _OTHERS:
        raise config_fault(path, f"has tokens, and its mode {mode:04o} gives others access", f"chmod 600 {path}")


def entries(kind: type[T], values: Any, name: str, file: Path | str) -> tuple[T, ...]:
    """Return the values of the array of tables *name* of *file*; raise Failed `invalid_config`."""
    rules = {each.name: _ENTRY_RULES.get(each.name, _STRING) for each in fields(kind)}
    result: list[T] = []
    for each in values if isinstance(values, list) else [values]:
        table = read_table(file, name, each, rules)
        require_keys(file, name, table, rules, rules.keys() - {"expires"})
        members: dict[str, Any] = {**table, **({"projects": tuple(table["projects"])} if "projects" in table else {})}
        result.append(kind(**members))
    return tuple(result)


def _to_toml(config: UserConfig) -> str:
    """Return *config* as TOML; values outside tables come first, as they would otherwise belong to a table."""
    plain = [f"{name} = {to_toml(value)}\n" for name in ("index", "closed") if (value := getattr(config, name))]
    tables = []
    for name in ("limits", "embedder", "model", "reranker"):
        given = getattr(config, name)
        usual = asdict(type(given)())
        if values := {key: value for key, value in asdict(given).items() if value != usual[key]}:
            tables.append(_table(f"[{name}]", values))
    arrays = [
        _table(f"[[{name}]]", {key: value for key, value in asdict(each).items() if (key, value) != ("expires", "")})
        for name in ("tokens", "trusted", "commands")
        for each in getattr(config, name)
    ]
    return "\n".join([_HEAD, *plain, *tables, *arrays])


def _table(head: str, values: Mapping[str, Any]) -> str:
    return f"{head}\n" + "".join(f"{name} = {to_toml(value)}\n" for name, value in values.items())
