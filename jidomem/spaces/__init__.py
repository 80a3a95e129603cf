"""What an agent holds now: named spaces of plain values with revisions."""
