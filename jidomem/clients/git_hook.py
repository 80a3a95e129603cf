"""The hook of git that asks before a commit what governs its files: a marked block in a script that may hold more."""

from __future__ import annotations

import os
import re
from pathlib import Path
from shlex import quote

from jidomem.clients.setups import Change, text_of
from jidomem.errors import Failed, NotFound
from jidomem.repository import git

NAME = "pre-commit"
MODE = 0o755
#: What the guard ends with where something is broken; what it could not do stops no commit.
_STOPPED = 3
_OPENS, _CLOSES = "# >>> jidomem setup git >>>", "# <<< jidomem setup git <<<"
_BLOCK = re.compile(rf"^{re.escape(_OPENS)}\n.*?^{re.escape(_CLOSES)}\n", re.MULTILINE | re.DOTALL)
_SHELL = re.compile(r"#!\s*(?:/usr/bin/env\s+)?(?:\S*/)?(?:sh|bash|dash|ksh|zsh)\b[^\n]*\n")
_SHEBANG = "#!/bin/sh\n"


def change(folder: Path, command: str, *, removed: bool = False) -> Change:
    """Return what becomes of the pre-commit hook of the repository *folder* is in; it calls *command*.

    The block stands first, so that nothing before it leaves the script. Raises NotFound where there is no repository,
    Failed for a hook that is no shell script.
    """
    path = folder_of_hooks(folder) / NAME
    before = text_of(path)
    plain = _BLOCK.sub("", before) if before is not None else None
    if removed:
        return Change(path, before, None if plain is not None and plain.strip() == _SHEBANG.strip() else plain)
    block = f"{_OPENS}\n{quote(command)} guard --staged || [ $? -ne {_STOPPED} ] || exit 1\n{_CLOSES}\n"
    if plain is None or not plain.strip():
        return Change(path, before, _SHEBANG + block)
    shebang = _SHELL.match(plain)
    if shebang is None:
        hint = f"have it call this, and stop where it ends with {_STOPPED}: {quote(command)} guard --staged"
        raise Failed(f"{path} is no shell script, and is left as it is", hint=hint, code="invalid_config")
    return Change(path, before, shebang[0] + block + plain[shebang.end() :])


def folder_of_hooks(folder: Path) -> Path:
    """Return where git looks for the hooks of the repository *folder* is in; raises NotFound where it is in none."""
    top = git.found(folder, "rev-parse", "--show-toplevel")
    common = git.found(folder, "rev-parse", "--path-format=absolute", "--git-common-dir")
    if top is None or common is None:
        raise NotFound(f"{folder} is in no git repository", hint=f"make one: git init {quote(str(folder))}")
    said = git.found(folder, "config", "--show-scope", "--type=path", "--get-all", "core.hooksPath") or b""
    lines = [line.split("\t", 1) for line in os.fsdecode(said).splitlines() if "\t" in line]
    own = [path for scope, path in lines if scope != "command"]  # how git is asked here sets one of its own
    if own:
        return Path(os.path.normpath(Path(os.fsdecode(top).rstrip("\n")) / own[-1]))
    return Path(os.fsdecode(common).rstrip("\n")) / "hooks"
