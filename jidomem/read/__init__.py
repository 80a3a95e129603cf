"""The reader: named queries, lists, history and provenance.

It imports the index and the schema. Start with `reader`.
"""

from jidomem.read.lists import Page
from jidomem.read.playbook import Playbook
from jidomem.read.raw_sparql import Result
from jidomem.read.reader import MemoryReader

__all__ = ["MemoryReader", "Page", "Playbook", "Result"]
