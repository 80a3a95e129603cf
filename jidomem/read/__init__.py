"""The reader: named queries, lists, history and provenance.

It imports the index and the schema. Start with `reader`.
"""

from jidomem.read.lists import Page
from jidomem.read.named_queries import Result
from jidomem.read.playbook import Playbook
from jidomem.read.reader import MemoryReader

__all__ = ["MemoryReader", "Page", "Playbook", "Result"]
