"""How what an agent holds moves: kept short, scored, promoted."""
