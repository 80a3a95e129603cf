"""Which roots may say more than memories: those the user trusted, as they were then."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import datetime
from hashlib import blake2b
from pathlib import Path

from jidomem.errors import NotFound
from jidomem.moments import stamp
from jidomem.runtime import own
from jidomem.runtime.bounds import check_root
from jidomem.runtime.own import Trusted

#: What of a root is trusted: its configuration, and the terms, rules and questions it adds.
_JUDGED = ("config.toml", "ontology", "shapes", "queries")


def trust(config: Path, root: Path, now: datetime) -> Trusted:
    """Return what is kept in *config* of trusting *root* as it is now; raises Failed for one that leads outside."""
    made = Trusted(str(root), digest(root), stamp(now))
    own.change(config, lambda said: replace(said, trusted=(*(t for t in said.trusted if t.root != made.root), made)))
    return made


def distrust(config: Path, root: Path) -> None:
    """Trust *root* no longer; raises NotFound where it was not."""

    def without(said: own.Own) -> own.Own:
        left = tuple(each for each in said.trusted if each.root != str(root))
        if left == said.trusted:
            raise NotFound(f"{root} is not trusted", hint=f"there is {_listed(said)}")
        return replace(said, trusted=left)

    own.change(config, without)


def let_run(config: Path, root: Path, command: str, now: datetime, *, off: bool = False) -> None:
    """Let conventions of *root* have *command* run, as it is written, or no longer; raises NotFound for one not let."""

    def changed(said: own.Own) -> own.Own:
        left = tuple(each for each in said.commands if (each.root, each.command) != (str(root), command))
        if off and left == said.commands:
            hint = f"there is {', '.join(each.command for each in left if each.root == str(root)) or 'none that may'}"
            raise NotFound(f"{command!r} may not run for {root}", hint=hint)
        return replace(said, commands=left if off else (*left, own.Command(str(root), command, stamp(now))))

    own.change(config, changed)


def may_run(config: Path, root: Path, command: str) -> bool:
    """Return whether conventions of *root* may have *command* run."""
    return any((each.root, each.command) == (str(root), command) for each in own.read(config).commands)


def state(config: Path, root: Path) -> str:
    """Return whether *root* is trusted: `trusted`, `changed` since, or `unknown`."""
    found = next((each for each in own.read(config).trusted if each.root == str(root)), None)
    if found is None:
        return "unknown"
    return "trusted" if found.digest == digest(root) else "changed"


def digest(root: Path) -> str:
    """Return what stands for the files by which *root* says more than memories; raises Failed for a link."""
    check_root(root)
    said = blake2b(digest_size=32)
    for name in _JUDGED:
        top = root / name
        paths = [top] if top.is_file() else [Path(at) / file for at, _, files in os.walk(top) for file in files]
        for path in sorted(paths):
            data = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            said.update(f"{len(data)} {path.relative_to(root)}\0".encode("utf-8", "surrogateescape") + data)
    return said.hexdigest()


def _listed(said: own.Own) -> str:
    return ", ".join(each.root for each in said.trusted) or "none that is"
