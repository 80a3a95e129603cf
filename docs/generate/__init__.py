"""What of the documentation is written by programs: `python -m docs.generate` writes it, a test holds it current."""

from importlib import import_module
from pathlib import Path

DOCS = Path(__file__).parent.parent
#: The modules that write pages, each from what the code says of itself.
PARTS = ("http", "mcp", "python", "ontology", "shapes", "configuration", "command_line", "playbook", "errors")


def written(part: str) -> dict[str, str]:
    """Return the pages that *part* writes, by their paths below docs/."""
    pages: dict[str, str] = import_module(f"docs.generate.{part}").pages()
    return pages
