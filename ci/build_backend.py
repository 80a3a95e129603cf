"""The build backend: setuptools, which builds a wheel in a temporary folder.

Built in `build/` of the checkout, a wheel would also contain modules that were deleted since the last build.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]
#: The variable with one more configuration file of setuptools.
_EXTRA = "DIST_EXTRA_CONFIG"


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Build a wheel from the files that the checkout has now, and return its name."""
    with _temporary_build():
        return str(build_meta.build_wheel(wheel_directory, config_settings, metadata_directory))


@contextmanager
def _temporary_build() -> Iterator[None]:
    given = os.environ.get(_EXTRA)
    with TemporaryDirectory(prefix="jidomem-build-") as folder:
        config = Path(folder, "setup.cfg")
        config.write_text(f"[build]\nbuild_base = {folder.replace('%', '%%')}\n")
        os.environ[_EXTRA] = str(config)
        try:
            yield
        finally:
            os.environ.pop(_EXTRA)
            if given is not None:
                os.environ[_EXTRA] = given
