"""The command `jidomem`: one verb a file, each doing what one public function does."""


def main() -> None:
    """Run the command line."""
    raise SystemExit("jidomem: no verbs yet")
