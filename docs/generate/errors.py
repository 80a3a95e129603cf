"""docs/reference/errors.md, written from jidomem.errors.CODES and errors.toml."""

import tomllib
from pathlib import Path

from docs.generate.tables import code, table
from jidomem.errors import CODES

_INTRODUCTION = """\
# Error codes

Each code with its cause, the action of the caller, its HTTP status and its exit code. [Errors](../errors.md) describes the fields of an
error and how a refusal is repaired.

"""


def pages() -> dict[str, str]:
    """Return the page, by its name; KeyError where a code has no texts."""
    texts = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    rows = [
        [code(name), texts[name]["cause"], texts[name]["action"], str(status), str(exit_code)]
        for name, (status, exit_code) in CODES.items()
    ]
    head = ["code", "cause", "what to do", "HTTP", "exit"]
    return {"reference/errors.md": _INTRODUCTION + table(head, rows)}
