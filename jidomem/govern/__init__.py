"""How memory is checked."""
