"""Interfaces that other projects define, kept in a memory of jidomem; each needs the extra that is named after it."""
