"""What pages are made with besides their text: our own styles and scripts, and other people's that `lock.json` names.

Each is served under an address that has a digest of it, so that a browser may keep it for ever.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from flask import Response

from jidomem.errors import NotFound

_HERE = Path(__file__).parent
#: Where assets are, in this order: ours, and what ci/vendor fetched.
_FOLDERS = (_HERE / "assets", _HERE / "vendored")
#: What is served -> its media type, whatever the machine would say.
_SERVED = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_FOR_EVER = "public, max-age=31536000, immutable"


class Asset(NamedTuple):
    """One file: its bytes, and what its address says of them."""

    data: bytes
    digest: str


@cache
def _assets() -> dict[str, Asset]:
    found = {}
    for folder in _FOLDERS:
        for path in sorted(folder.iterdir()):
            if path.suffix in _SERVED:
                data = path.read_bytes()
                found[path.name] = Asset(data, sha256(data).hexdigest()[:16])
    return found


def address(name: str) -> str:
    """Return where the asset *name* is served; raises KeyError for one there is not."""
    return f"/assets/{_assets()[name].digest}/{name}"


def serve(digest: str, name: str) -> Response:
    """Return one asset; raises NotFound for one there is not, or not any more."""
    asset = _assets().get(name)
    if asset is None or asset.digest != digest:
        raise NotFound(f"there is no {name} of this version here", hint="load the page anew")
    media = f"{_SERVED[Path(name).suffix]}; charset=utf-8"
    return Response(asset.data, content_type=media, headers={"Cache-Control": _FOR_EVER})
