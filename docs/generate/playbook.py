"""docs/reference/playbook.md, written from queries/."""

from jidomem.read.playbook import Playbook


def pages() -> dict[str, str]:
    """Return the page, by its name."""
    return {"reference/playbook.md": Playbook().markdown()}
