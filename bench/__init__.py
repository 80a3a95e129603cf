"""What jidomem costs, measured beside something else: `python -m bench` runs all of it."""
