"""The optional packages: code graph, MemoryOS, shared roots, curator's pages. The core loads none of them at start."""
