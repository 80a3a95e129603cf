"""How memory comes in from and goes out to other people's formats."""
