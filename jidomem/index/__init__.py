"""How memory is asked: the index."""
