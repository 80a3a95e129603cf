"""The optional packages: code graph, MemoryOS, shared roots and their transfer, curator's pages; loaded on demand."""
