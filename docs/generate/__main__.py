"""Write anew what programs write of the documentation: all of it, or the parts that are named."""

import sys
import tempfile
from pathlib import Path

from docs.generate import DOCS, PARTS, run_pages, written


def main() -> None:
    """Write what differs, and name it."""
    named = sys.argv[1:] or [*PARTS, "run_pages"]
    for part in named:
        for name, text in (_run_pages() if part == "run_pages" else written(part)).items():
            page = DOCS / name
            page.parent.mkdir(parents=True, exist_ok=True)
            if not page.exists() or page.read_text("utf-8") != text:
                page.write_text(text, "utf-8")
                print(page)


def _run_pages() -> dict[str, str]:
    found = {}
    for page in run_pages.PAGES:
        with tempfile.TemporaryDirectory() as folder:
            found[page] = run_pages.refreshed(page, Path(folder).resolve())
    return found


if __name__ == "__main__":
    main()
