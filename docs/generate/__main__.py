"""Write anew what programs write of the documentation: all of it, or the pages named."""

import sys
import tempfile
from pathlib import Path

from docs.generate import tutorial


def main() -> None:
    """Write each page, and say which one changed."""
    with tempfile.TemporaryDirectory() as folder:
        orders = Path(folder).resolve() / "orders"
        orders.mkdir()
        text = tutorial.refreshed(orders)
    tutorial.PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    sys.exit(main())
