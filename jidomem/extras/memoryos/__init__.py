"""MemoryOS: four tiers of dialogue pages, segments, personas and shared facts.

It imports the opened root and the models. Start with `memory_os`.
"""
