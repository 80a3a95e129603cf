"""MemoryOS of the agents of a root: their tiers as rows, what moves them, and the jobs that follow."""
