"""What is asked: named queries and the reader."""

from jidomem.read.lists import Page
from jidomem.read.playbook import Playbook
from jidomem.read.reader import MemoryReader, Result

__all__ = ["MemoryReader", "Page", "Playbook", "Result"]
