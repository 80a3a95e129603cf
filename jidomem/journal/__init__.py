"""What lasts: the journal of commits (docs/journal-format.md)."""
