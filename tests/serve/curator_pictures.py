"""Screenshots of the curator's pages: python tests/serve/curator_pictures.py takes those in docs/screens again."""

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
#: The digest of the files that the screenshots show, and the command that takes them.
DIGEST, COMMAND = DOCS / "taken-with", "python tests/serve/curator_pictures.py"
WIDTH, HEIGHT, COLOURS = 1280, 800, 256
#: The script that returns the pixels of a screenshot from a canvas of the browser.
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
    """The screen, its path, and the actions on it before the screenshot."""

    screen: str
    path: str
    prepare: Callable = lambda window, known: None


def _run_query(window, known):
    window.find("#ask").click()
    window.wait_until(lambda: window.has("#answers tbody tr"))


def _run_check(window, known):
    window.follow(window.find("button[value=check]").click)


def _wait_for_graph(window, known):
    window.find("#drawn:not([hidden])")


#: name -> its screenshot, in the order of the menu.
PICTURES = {
    "timeline": Picture("timeline", "timeline?state=active"),
    "memory": Picture("memories/{id}", "memories/{use Oxigraph}"),
    "review": Picture("review", "review"),
    "graph": Picture("graph", "graph?topic=naming%20in%20maps%20budget,%20matter%207&depth=2", _wait_for_graph),
    "playbook": Picture("playbook", "playbook"),
    "question": Picture("playbook/{name}", "playbook/tasks-of-agent?agent=planner"),
    "console": Picture("console", "console", _run_query),
    "check": Picture("check", "check", _run_check),
    "ontology": Picture("ontology", "ontology"),
    "term": Picture("ontology/{name}", "ontology/ArchitecturalDecision"),
    "agents": Picture("agents", "agents"),
    "health": Picture("health", "health"),
}


def digest():
    """The digest of the files that decide how a page looks: templates, style sheets and scripts, vendored ones too."""
    files = sorted(path for name in ("templates", "assets", "vendored") for path in (CURATOR / name).iterdir())
    sha256 = hashlib.sha256()
    for path in files:
        sha256.update(f"{path.relative_to(CURATOR)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return sha256.hexdigest()


def address(known, name):
    """Return the path of the page that a screenshot shows."""
    return f"/ui/p/{PICTURES[name].path.format_map({key: quote(value, safe='') for key, value in known.items()})}"


def take(window, known, name):
    """Show one page in *window*, and return its screenshot as a PNG."""
    window.size(WIDTH, HEIGHT)
    window.open(address(known, name))
    PICTURES[name].prepare(window, known)
    return window.driver.get_screenshot_as_png()


def small(window, picture):
    """A PNG with few colours, as the docs store it."""
    return png(*pixels(window, base64.b64encode(picture).decode()))


def pixels(window, picture):
    """Width, height and the pixels of a PNG, red, green and blue, as the browser reads it."""
    width, height, data = window.driver.execute_async_script(_POINTS, picture)
    return width, height, numpy.frombuffer(base64.b64decode(data), numpy.uint8).reshape(-1, 4)[:, :3]


def png(width, height, colours):
    """A PNG with a palette of the most frequent colours; each pixel takes the nearest of them."""
    codes = colours.astype(numpy.uint32) @ numpy.array([65536, 256, 1], numpy.uint32)
    values, inverse, counts = numpy.unique(codes, return_inverse=True, return_counts=True)
    rgb = numpy.stack([values >> 16, values >> 8 & 255, values & 255], axis=1).astype(numpy.int64)
    palette = rgb[numpy.sort(numpy.argsort(-counts, kind="stable")[:COLOURS])]
    nearest = numpy.concatenate([
        ((part[:, None, :] - palette[None]) ** 2).sum(axis=2).argmin(axis=1) for part in numpy.array_split(rgb, 32)
    ]).astype(numpy.uint8)  # fmt: skip
    rows = nearest[inverse].reshape(height, width)
    data = b"".join(b"\0" + row.tobytes() for row in rows)
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"PLTE", palette.astype(numpy.uint8).tobytes()), (b"IDAT", zlib.compress(data, 9)))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*each) for each in (*chunks, (b"IEND", b"")))


def size_of(picture):
    """Width, height and colour type of a PNG: 3 is a palette."""
    head = picture[:26]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(head[16:20]), int.from_bytes(head[20:24]), head[25]


def _chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def main():
    """Take all screenshots, of a project made for them, into docs/screens."""
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
