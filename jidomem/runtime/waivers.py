"""The waivers a root brings along: the same for the command line, a server and whoever checks from Python."""

from __future__ import annotations

from pathlib import Path

from jidomem.errors import InvalidRequest
from jidomem.govern.waivers import BASELINE, Baseline, read_baseline
from jidomem.runtime import bounds


def of_root(root: Path) -> Baseline | None:
    """Return the baseline of *root*, None where it has none; raises InvalidRequest, Failed for what is none."""
    path = root / BASELINE
    try:
        text = bounds.read_config(path, bounds.BASELINE)
    except FileNotFoundError:
        return None
    except (ValueError, OSError) as error:
        raise InvalidRequest(f"{path}: {error}", hint="make it a readable file of TOML in UTF-8") from error
    return read_baseline(str(path), text.encode())
