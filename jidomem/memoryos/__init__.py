"""Four tiers of an agent's memory, after MemoryOS: pages, segments, personas and system knowledge."""
