"""The log of a shared root, opened, with the folder of its copy on this machine."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from jidomem.runtime import settings
from jidomem.shared import places, root_files
from jidomem.shared.log import SharedLog


def opened_log(given: str | PathLike[str] | None, wait: float) -> tuple[SharedLog, Path] | None:
    """Return the log of the shared root that is *given* or named and the folder of its copy; None for a folder.

    What it says of itself is in that folder then. *wait* is how many seconds an answer of it is waited for. Raises
    what `open_log` and `root_files.bring` raise.
    """
    address = settings.address_of(given)
    return None if address is None else brought(address, wait)


def brought(address: str, wait: float) -> tuple[SharedLog, Path]:
    """Return the log at *address* and the folder of its copy, with what it says of itself; raises what they raise."""
    log, home = open_log(address, wait)
    try:
        root_files.bring(log, home)
    except BaseException:
        log.close()
        raise
    return log, home


def open_log(address: str, wait: float) -> tuple[SharedLog, Path]:
    """Return the log at *address* and the folder of its copy here; raises what `places` does."""
    environment = settings.environment()
    home = places.home_of(address, environment)
    places.claim(home, address, environment)
    return places.open_log(address, environment, wait=wait), home
