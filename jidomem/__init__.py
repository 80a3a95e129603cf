"""jidomem: the governed memory of AI agents."""
