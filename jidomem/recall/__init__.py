"""The recall: ranked search, and the briefing of an agent.

It imports the index and the reader. Start with `memories`.
"""
