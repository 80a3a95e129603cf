"""Where the data files are: the ontology, the shapes, the playbook and this project's own memory, in every install."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

_PACKAGE = Path(__file__).parent


def _folder(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"{package} is not installed; reinstall jidomem")
    return Path(next(iter(spec.submodule_search_locations)))


def ontology() -> list[Path]:
    """Return the shipped ontology files, sorted by name."""
    return sorted(_folder("jidomem.ontology").glob("*.ttl"))


def shapes() -> list[Path]:
    """Return the shipped shape files, sorted by name."""
    return sorted(_folder("jidomem.shapes").glob("*.ttl"))


def queries() -> list[Path]:
    """Return the shipped query files, sorted by role and name."""
    return sorted(_folder("jidomem.queries").glob("*/*.rq"))


def own_memory() -> Path:
    """Return the memory root that holds jidomem's own decisions: in the wheel, or beside the package in a checkout."""
    shipped = _PACKAGE / "own_memory"
    return shipped if shipped.is_dir() else _PACKAGE.parent / ".jidomem"
