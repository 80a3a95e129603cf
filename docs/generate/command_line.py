"""docs/command-line.md, written from the verbs."""

from jidomem_cli.reference import markdown


def pages() -> dict[str, str]:
    """Return the page, by its name."""
    return {"command-line.md": markdown()}
