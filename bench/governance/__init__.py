"""A governance benchmark of memory systems for agents: `python -m bench.governance`."""
