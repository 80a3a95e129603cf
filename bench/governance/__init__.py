"""How well a memory of agents is governed: eight questions, the same for every system.  `python -m bench.governance`"""
