"""How memory is changed: the writer and its stages."""
