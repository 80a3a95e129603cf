"""Make a root: the folder `.jidomem/`, its configuration, and what git is told of it."""

from __future__ import annotations

from pathlib import Path

from jidomem import ownership
from jidomem.journal.files import Stream
from jidomem.runtime import config, settings
from jidomem.runtime.bounds import refuse_link

FILES = (settings.CONFIG, ".gitignore", ".gitattributes")
GITIGNORE = "index/\nstate/\ncache/\n*.lock\n"
GITATTRIBUTES = "projects/** -text\n"
CONFIG = """\
# jidomem: the memory of this repository. Every key has a default; unknown keys are an error.
project = "{project}"

# What happens when an intent disagrees with what is in force: "refuse" (default), "propose" or "warn".
# [conflicts]
# decision = "propose"

# Keep in state/ which memories were shown in which briefing, for jidomem why.
# read_log = false

# The role and capabilities an agent is declared with when it is first named.
# [agents.architect]
# role = "Architect"
# capabilities = ["CanPlan", "CanQueryMemory"]
"""


def init(folder: Path, project: str | None = None) -> Path:
    """Make the root `.jidomem/` in *folder* and return it; what is there already is left alone.

    Raises NotFound `invalid_project` for a project id of another form, and what `place` raises.
    """
    root = place(folder)
    name = Stream(project or config.slug_of(folder.resolve().name)).project
    root.mkdir(parents=True, exist_ok=True)
    for file, text in zip(FILES, (CONFIG.format(project=name), GITIGNORE, GITATTRIBUTES), strict=True):
        if not (root / file).exists():
            ownership.write_file(root / file, text.encode())
    return root


def place(folder: Path) -> Path:
    """Return where the root of *folder* is made; raises Failed for a link there, which came with the folder.

    It leads to another memory, or has files made elsewhere.
    """
    root = folder.resolve() / settings.FOLDER
    for path in (root, *(root / name for name in FILES)):
        refuse_link(path)
    return root
