"""How memory is asked: an index fed from the journal, which may be thrown away and built again at any time."""

from jidomem.index.results import Answer, Serialized, Solutions
from jidomem.index.store import Observer, OxigraphIndex

__all__ = ["Answer", "Observer", "OxigraphIndex", "Serialized", "Solutions"]
