"""The configuration that a root brings: `config.toml`, its size limits, and the trust it needs.

The files of a root must not lead out of it. Some settings of a root apply only while the user trusts
it, in the state in which it was trusted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any
from unicodedata import normalize

from jidomem.base import disk
from jidomem.base.clock import format_timestamp
from jidomem.base.regex import lazy
from jidomem.base.words import slug
from jidomem.errors import Failed, NotFound
from jidomem.rdf import vocab
from jidomem.rdf.vocab import family
from jidomem.records.policy import JUDGES, ON_CONFLICT, ON_SECRET, ON_SIMILAR, PRESETS, AgentPolicy, Policy
from jidomem.runtime import user_config
from jidomem.runtime.config_table import (
    TABLE,
    TRUTH,
    KeyRule,
    choice,
    choices,
    config_fault,
    number,
    parse_config,
    read_table,
    text,
)
from jidomem.runtime.user_config import TrustedRoot

#: The most bytes, and the most files, of one folder of an overlay.
OVERLAY, OVERLAY_FILES = 16 * 1024 * 1024, 10_000
#: The most bytes of a configuration, and of a baseline, which only checks read.
CONFIG, BASELINE = 128 * 1024, 1024 * 1024
#: A key of more parts than any valid one: parsing it takes time quadratic in their number.
_LONG_KEY = lazy(r"""(?<!["'\w-])(?:["'\w-]++[ \t]*+\.[ \t]*+){8}["'\w-]++[ \t]*+[=\]]""")
_OVERLAYS = ("ontology", "shapes", "queries")
#: The endings of the overlay files that are read.
_READ = (".ttl", ".rq")
#: Files of a root; other files may not have these names.
_FILES = ("config.toml", "baseline.toml", ".gitignore", ".gitattributes")
#: The folders below a root that are used -> the depth to which they are checked here; the root itself counts as one.
_DEPTHS = {"": 1, "projects": 2, "index": 3, "state": 2, "cache": 2, **dict.fromkeys(_OVERLAYS, 8)}


def check_root(root: Path) -> None:
    """Raise Failed `invalid_config` if *root* has a symbolic link, or an overlay that is too large or has no files.

    Every opening of a root starts with this check. A link in a clone may lead anywhere, and jidomem would read, write
    or remove files there.
    """
    for name, depth in _DEPTHS.items():
        paths = _entries(root / name, depth)
        if name not in _OVERLAYS:
            for path in paths:
                refuse_link(path)
                if not name and path.name in _FILES and not path.is_file():
                    raise _no_file(path)
        else:
            _check_overlay(root / name, paths, depth)


def root_folder(path: str | os.PathLike[str]) -> Path:
    """Return the absolute folder of the root at *path*; raise Failed `invalid_config` if it is a symbolic link.

    Links above it are followed, as a home or temporary folder may be one.
    """
    try:
        given = Path(path).expanduser()
    except RuntimeError as error:
        hint = "name the whole path of the folder: --root /PATH"
        raise Failed(f"{path}: there is no home folder of that user", hint=hint, code="invalid_config") from error
    folder = given.parent.resolve() / given.name if given.name not in ("", "..") else given.resolve()
    if folder.is_symlink():
        raise Failed(
            f"{folder} is a symbolic link, and a root is the folder itself",
            hint=f"if you mean its target: --root {folder.resolve()}",
            code="invalid_config",
        )
    return folder


def _check_overlay(top: Path, paths: Iterator[Path], depth: int) -> None:
    size = count = 0
    for path in paths:
        size, count = size + _size(path), count + 1
        if size > OVERLAY or count > OVERLAY_FILES or len(path.relative_to(top).parts) == depth:
            most = f"{OVERLAY:,} bytes, {OVERLAY_FILES:,} files or {depth - 1} folders in each other"
            hint = "an overlay has a few terms, rules and queries: remove everything else"
            raise Failed(f"{top} has more than {most}", hint=hint, code="invalid_config")


def read_config(path: Path, most: int = CONFIG) -> str:
    """Return the text of the configuration, or baseline, at *path*, of at most *most* bytes.

    Raises OSError, ValueError and Failed.
    """
    refuse_link(path)
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        hint = "a configuration has a few keys: remove everything else"
        raise Failed(f"{path} has more than {most:,} bytes", hint=hint, code="invalid_config")
    text = data.decode()
    if long := _LONG_KEY.search(text):
        raise ValueError(
            f"nested too deeply: a key of more than 8 parts (at line {text.count(chr(10), 0, long.start()) + 1})"
        )
    return text


def refuse_link(path: Path) -> None:
    """Raise Failed `invalid_config` if *path* is a symbolic link."""
    if path.is_symlink():
        raise Failed(
            f"{path} is a symbolic link, and the files of a root must not lead out of it",
            hint=f"replace it by its target, or, if this is the folder of a memory, remove it: rm {path};"
            " else give the folder of a memory: --root FOLDER",
            code="invalid_config",
        )


def _entries(path: Path, depth: int) -> Iterator[Path]:
    """Yield *path*, and the paths below it down to *depth*, without following links."""
    yield path
    if depth and not path.is_symlink():
        try:
            with os.scandir(path) as entries:
                names = [entry.name for entry in entries]
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return  # a folder that this user cannot read raises an error when it is used
        for name in names:
            yield from _entries(path / name, depth - 1)


def _size(path: Path) -> int:
    """Return the size of a file, 0 for a folder or a missing file; raise Failed for anything else, such as a pipe."""
    refuse_link(path)
    if path.is_file():
        return path.stat().st_size
    if path.exists() and (path.suffix in _READ or not path.is_dir()):
        raise _no_file(path)
    return 0


def _no_file(path: Path) -> Failed:
    return Failed(f"{path} is not a file", hint=f"move it away: mv {path} /tmp", code="invalid_config")


#: The parts of a root to which trust applies: its configuration, and its own terms, shapes and queries.
_JUDGED = ("config.toml", "ontology", "shapes", "queries")


def trust(config: Path, root: Path, now: datetime) -> TrustedRoot:
    """Record in *config* that *root* is trusted in its present state; raises the errors of `check_root`."""
    made = TrustedRoot(str(root), digest(root), format_timestamp(now))
    user_config.change(
        config, lambda own: replace(own, trusted=(*(t for t in own.trusted if t.root != made.root), made))
    )
    return made


def distrust(config: Path, root: Path) -> None:
    """Revoke the trust in *root*; raise NotFound if there is none."""

    def without(config: user_config.UserConfig) -> user_config.UserConfig:
        left = tuple(each for each in config.trusted if each.root != str(root))
        if left == config.trusted:
            known = ", ".join(each.root for each in config.trusted) or "none that is"
            raise NotFound(f"{root} is not trusted", hint=f"there is {known}")
        return replace(config, trusted=left)

    user_config.change(config, without)


def let_run(config: Path, root: Path, command: str, now: datetime, *, off: bool = False) -> None:
    """Permit *command* to conventions of *root*, or with *off* revoke that; raise NotFound if it was not permitted."""

    def changed(config: user_config.UserConfig) -> user_config.UserConfig:
        left = tuple(each for each in config.commands if (each.root, each.command) != (str(root), command))
        if off and left == config.commands:
            hint = f"there is {', '.join(each.command for each in left if each.root == str(root)) or 'none that may'}"
            raise NotFound(f"{command!r} may not run for {root}", hint=hint)
        return replace(
            config,
            commands=left if off else (*left, user_config.TrustedCommand(str(root), command, format_timestamp(now))),
        )

    user_config.change(config, changed)


def may_run(config: Path, root: Path, command: str) -> bool:
    """Return whether conventions of *root* may run *command*."""
    return any((each.root, each.command) == (str(root), command) for each in user_config.read(config).commands)


def trust_state(config: Path, root: Path) -> str:
    """Return whether *root* is trusted: `trusted`, `changed` since, or `unknown`."""
    trusted = next((each for each in user_config.read(config).trusted if each.root == str(root)), None)
    if trusted is None:
        return "unknown"
    return "trusted" if trusted.digest == digest(root) else "changed"


def digest(root: Path) -> str:
    """Return a digest of the parts of *root* to which trust applies; raises the errors of `check_root`."""
    check_root(root)
    hashed = blake2b(digest_size=32)
    for name in _JUDGED:
        top = root / name
        paths = [top] if top.is_file() else [Path(at) / file for at, _, files in os.walk(top) for file in files]
        for path in sorted(paths):
            data = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            hashed.update(f"{len(data)} {path.relative_to(root)}\0".encode("utf-8", "surrogateescape") + data)
    return hashed.hexdigest()


#: The keys that a root on disk may not set, as it may be a cloned repository.
_AUTHORITY = (
    "bind", "embedder", "endpoint", "index", "base_url", "limits", "model", "models", "reranker", "token", "tokens",
    "url",
)  # fmt: skip
#: The keys that only a trusted root may set: the address of `jidomem serve`.
OF_TRUST = ("host", "port")
_FAMILIES = sorted({family(kind) for kind in vocab.CLASS_OF_TYPE} - {"deleted_marker"})


def slug_of(name: str) -> str:
    """Return *name* as a project id, `[a-z0-9][a-z0-9_-]{0,63}`: letters without accents, `-` for other characters.

    >>> slug_of("My Käse.git")
    'my-kase-git'
    """
    plain = re.sub(r"[\u0300-\u036f]", "", normalize("NFKD", name.casefold()))
    return re.sub(r"[^a-z0-9_-]+", "-", plain).strip("-_")[:64] or "project"


_PROJECT = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_RULES: Mapping[str, KeyRule] = {
    "project": text(
        "my-project",
        "a project id: a-z, 0-9, - and _, at most 64",
        is_valid=_PROJECT.fullmatch,
        repaired=lambda value: slug_of(str(value)),
    ),
    "strict": TRUTH,
    "create_projects": TRUTH,
    "judge": choice(JUDGES),
    "secrets": choice(ON_SECRET),
    "read_log": TRUTH,
    "conflicts": TABLE,
    "on_similar": TABLE,
    "agents": TABLE,
    "policy": choice(PRESETS),
    "host": text("127.0.0.1", is_valid=lambda _: True),
    "port": number(0, 65_535, 8700),
}
_CONFLICTS = dict.fromkeys(_FAMILIES, choice(ON_CONFLICT))
_SIMILAR = dict.fromkeys(_FAMILIES, choice(ON_SIMILAR))
_AGENT = {"role": choice(vocab.AGENT_ROLE), "capabilities": choices(vocab.CAPABILITY)}


def read(path: Path, own: Path | None) -> dict[str, Any]:
    """Read the configuration in *path*, empty if it is missing; raise Failed `invalid_config`.

    *own* is the user's file with the trusted roots; None for an open root, in which the keys that need trust have no
    effect any more.
    """
    try:
        content = read_config(path)
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise config_fault(path, str(error), "correct the line it names") from error
    except OSError as error:
        hint = disk.repair(disk.obstacle(path)) or "restore the file, or remove it: each key has a default"
        raise config_fault(path, f"cannot be read: {error.strerror}", hint) from error
    return parse(content, path, own)


def parse(content: str, path: Path, own: Path | None = None) -> dict[str, Any]:
    """Return the configuration *content* of the file *path*, as `read` does."""
    config = parse_config(content, path)
    for key in config:
        _refuse_authority(key, path, own)
    read_table(path, "", config, _RULES)
    return config


def _refuse_authority(key: str, path: Path, own: Path | None) -> None:
    """Raise Failed for a key that no root may set, or only a trusted one."""
    if key in _AUTHORITY:
        raise Failed(
            f"{path}: {key} cannot be set by a root on disk",
            hint=f"take {key} out of that file; once you trust it (jidomem access trust {path.parent}) it may set "
            f"{' and '.join(OF_TRUST)}, and tokens are given out with: jidomem access token add AGENT",
            code="invalid_config",
        )
    if own is not None and key in OF_TRUST and (state := trust_state(own, path.parent.resolve())) != "trusted":
        changed = ", and it was changed since you trusted it" if state == "changed" else ""
        raise Failed(
            f"{path}: {key} cannot be set by a root on disk{changed}",
            hint=f"look through that folder, then trust it: jidomem access trust {path.parent}; or take {key} out",
            code="invalid_config",
        )


def policy(config: Mapping[str, Any], path: Path) -> Policy:
    """Return the policy in *config*, as read from *path*; raise Failed `invalid_config`."""
    default = Policy()
    return Policy(
        on_conflict=read_table(path, "conflicts", config.get("conflicts", {}), _CONFLICTS),
        on_similar=read_table(path, "on_similar", config.get("on_similar", {}), _SIMILAR),
        agents=_agents(config.get("agents", {}), path),
        strict=config.get("strict", default.strict),
        create_projects=config.get("create_projects", default.create_projects),
        judge=config.get("judge", default.judge),
        secrets=config.get("secrets", default.secrets),
        preset=config.get("policy", default.preset),
    )


def _agents(tables: Mapping[str, Any], path: Path) -> dict[str, AgentPolicy]:
    policies: dict[str, AgentPolicy] = {}
    for written, table in tables.items():
        name = slug(written)
        if not name or name in policies:
            fault = f"is there twice, as {written!r}" if name else "is not the name of an agent"
            hint = f"keep one of them: [agents.{name}]" if name else "write [agents.rita]"
            raise config_fault(path, f"agents.{name or written} {fault}", hint)
        values, default = read_table(path, f"agents.{written}", table, _AGENT), AgentPolicy()
        capabilities = tuple(values.get("capabilities", default.capabilities))
        policies[name] = AgentPolicy(values.get("role", default.role), capabilities)
    return policies
