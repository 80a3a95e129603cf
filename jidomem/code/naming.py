"""What a Python file is called as a module: from its path, the packages around it, and where the project puts them."""

from __future__ import annotations

import posixpath
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from jidomem.decoding import decode_toml


class ModuleName(NamedTuple):
    """The full name of a module, whether it is a package's own, and the folder beside whose files it stands.

    `folder` is dotted, and empty for a file of a package: its neighbours are imported by their full names.
    """

    name: str
    is_package: bool = False
    folder: str = ""


@dataclass(slots=True)
class Naming:
    """Names the modules of one tree; *read* gives the text of a file in it, None where there is none."""

    read: Callable[[str], str | None]
    has: Callable[[str], bool]
    _tops: dict[str, str | None] = field(default_factory=dict)
    _placed: dict[str, dict[str, str]] = field(default_factory=dict)

    def name(self, path: str) -> ModuleName:
        """Return what the Python file at *path* is called: in the packages around it, else by its path.

        A folder that setuptools maps (`package-dir` of the nearest pyproject.toml) has the name it is mapped to; what
        lies in `src` is called as if it lay at the top.
        """
        folder, file = posixpath.split(path)
        stem = file.removesuffix(".py")
        is_package = stem == "__init__"
        top = self._top(folder)
        dotted = self._dotted(folder, folder if top is None else top)
        name = ".".join(part for part in (dotted, "" if is_package else stem) if part)
        return ModuleName(name or stem, is_package, dotted if top is None else "")

    def _top(self, folder: str) -> str | None:
        """Return the outermost folder of the package that *folder* is part of; None where it is of none."""
        if folder not in self._tops:
            found: str | None = None
            if folder and self.has(posixpath.join(folder, "__init__.py")):
                found = self._top(posixpath.dirname(folder)) or folder
            self._tops[folder] = found
        return self._tops[folder]

    def _dotted(self, folder: str, top: str) -> str:
        """Return the dotted name of *folder*, whose package begins at *top*, or which is in none and *top* itself."""
        mapped = self._mapping(folder)
        at = folder
        while True:
            if at in mapped:
                rest = folder[len(at) :].strip("/")
                return ".".join(part for part in (mapped[at], rest.replace("/", ".")) if part)
            if not at:
                break
            at = posixpath.dirname(at)
        if self._top(folder) is not None:
            return folder[len(posixpath.dirname(top)) :].strip("/").replace("/", ".")
        return folder.removeprefix("src/").replace("/", ".") if folder != "src" else ""

    def _mapping(self, folder: str) -> dict[str, str]:
        """Return the names that folders are given by the nearest pyproject.toml, by their path in the tree."""
        if folder not in self._placed:
            text = self.read(posixpath.join(folder, "pyproject.toml"))
            if text is not None:
                self._placed[folder] = _package_dir(text, folder)
            else:
                self._placed[folder] = self._mapping(posixpath.dirname(folder)) if folder else {}
        return self._placed[folder]


def _package_dir(text: str, folder: str) -> dict[str, str]:
    """Return what `tool.setuptools.package-dir` says: the package by its folder; nothing of a broken file."""
    try:
        said = decode_toml(text).get("tool", {}).get("setuptools", {}).get("package-dir", {})
    except (tomllib.TOMLDecodeError, AttributeError):
        return {}
    if not isinstance(said, dict):
        return {}
    return {
        posixpath.normpath(posixpath.join(folder, place)): package
        for package, place in said.items()
        if isinstance(place, str) and package
    }
