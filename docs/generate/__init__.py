"""What of the documentation is written by programs: `python -m docs.generate` writes it, a test holds it current."""
