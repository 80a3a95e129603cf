"""Pictures of the curator's pages: python tests/serve/curator_pictures.py takes those in docs/screens anew."""

import base64
import hashlib
import struct
import sys
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import numpy

ROOT = Path(__file__).parents[2]
DOCS, CURATOR = ROOT / "docs" / "screens", ROOT / "jidomem" / "extras" / "web"
#: What the pictures were taken with, and the command that takes them.
DIGEST, COMMAND = DOCS / "taken-with", "python tests/serve/curator_pictures.py"
WIDTH, HEIGHT, COLOURS = 1280, 800, 256
#: What gives the points of a picture that the browser took, as its canvas has them.
_POINTS = """const [data, done] = arguments, image = new Image();
image.onload = () => {
  const canvas = Object.assign(document.createElement("canvas"), {width: image.width, height: image.height});
  const drawn = canvas.getContext("2d");
  drawn.drawImage(image, 0, 0);
  const points = drawn.getImageData(0, 0, image.width, image.height).data;
  let text = "";
  for (let at = 0; at < points.length; at += 32768) text += String.fromCharCode(...points.subarray(at, at + 32768));
  done([image.width, image.height, btoa(text)]);
};
image.src = `data:image/png;base64,${data}`;"""


class Picture(NamedTuple):
    """Which screen it is of, where that is, and what is done there before it is taken."""

    screen: str
    path: str
    does: Callable = lambda window, known: None


def _asked(window, known):
    window.one("#ask").click()
    window.until(lambda: window.has("#answers tbody tr"))


def _checked(window, known):
    window.leads(window.one("button[value=check]").click)


def _drawn(window, known):
    window.one("#drawn:not([hidden])")


#: name -> what it shows, in the order of the menu.
PICTURES = {
    "timeline": Picture("timeline", "timeline?state=active"),
    "memory": Picture("memories/{id}", "memories/{use Oxigraph}"),
    "review": Picture("review", "review"),
    "graph": Picture("graph", "graph?topic=naming%20in%20maps%20budget,%20matter%207&depth=2", _drawn),
    "playbook": Picture("playbook", "playbook"),
    "question": Picture("playbook/{name}", "playbook/tasks-of-agent?agent=planner"),
    "console": Picture("console", "console", _asked),
    "check": Picture("check", "check", _checked),
    "ontology": Picture("ontology", "ontology"),
    "term": Picture("ontology/{name}", "ontology/ArchitecturalDecision"),
    "agents": Picture("agents", "agents"),
    "health": Picture("health", "health"),
}


def digest():
    """The digest of what decides how a page looks: templates, style sheets and scripts, ours and those of others."""
    files = sorted(path for name in ("templates", "assets", "vendored") for path in (CURATOR / name).iterdir())
    found = hashlib.sha256()
    for path in files:
        found.update(f"{path.relative_to(CURATOR)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return found.hexdigest()


def take(window, known, name):
    """Show one page in *window*, and return what is seen of it as a PNG."""
    picture = PICTURES[name]
    window.size(WIDTH, HEIGHT)
    named = {key: quote(value, safe="") for key, value in known.items()}
    window.open(f"/ui/p/{picture.path.format_map(named)}")
    picture.does(window, known)
    return window.driver.get_screenshot_as_png()


def small(window, picture):
    """A PNG with few colours, as the docs keep it."""
    return png(*points(window, base64.b64encode(picture).decode()))


def points(window, picture):
    """Width, height and the points of a PNG, red, green and blue, as the browser reads it."""
    width, height, data = window.driver.execute_async_script(_POINTS, picture)
    return width, height, numpy.frombuffer(base64.b64decode(data), numpy.uint8).reshape(-1, 4)[:, :3]


def png(width, height, colours):
    """A PNG with a palette: the colours that are most frequent, each point the nearest of them."""
    codes = colours.astype(numpy.uint32) @ numpy.array([65536, 256, 1], numpy.uint32)
    values, back, counts = numpy.unique(codes, return_inverse=True, return_counts=True)
    rgb = numpy.stack([values >> 16, values >> 8 & 255, values & 255], axis=1).astype(numpy.int64)
    palette = rgb[numpy.sort(numpy.argsort(-counts, kind="stable")[:COLOURS])]
    nearest = numpy.concatenate([
        ((some[:, None, :] - palette[None]) ** 2).sum(axis=2).argmin(axis=1) for some in numpy.array_split(rgb, 32)
    ]).astype(numpy.uint8)  # fmt: skip
    rows = nearest[back].reshape(height, width)
    data = b"".join(b"\0" + row.tobytes() for row in rows)
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"PLTE", palette.astype(numpy.uint8).tobytes()), (b"IDAT", zlib.compress(data, 9)))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*each) for each in (*chunks, (b"IEND", b"")))


def size_of(picture):
    """Width and height of a PNG, and how it has its colours: 3 is by a palette."""
    head = picture[:26]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(head[16:20]), int.from_bytes(head[20:24]), head[25]


def _chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def main():
    """Take all pictures, of a project made for it, into docs/screens."""
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]
    from curator_browser import browser
    from pages_world import fill, serving

    DOCS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        known = fill(root)
        with serving(root) as server, browser(server.url) as window:
            for name in PICTURES:
                data = small(window, take(window, known, name))
                (DOCS / f"{name}.png").write_bytes(data)
                print(f"docs/screens/{name}.png {len(data):,} bytes")
    DIGEST.write_text(f"{digest()}\n")


if __name__ == "__main__":
    main()
