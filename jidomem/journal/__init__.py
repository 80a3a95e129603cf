"""What lasts: the journal of commits."""
