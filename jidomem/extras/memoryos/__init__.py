"""The MemoryOS: four tiers of dialogue pages, segments and personas. Start with `memory_os`."""
