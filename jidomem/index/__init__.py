"""How memory is asked: an index fed from the journal, which may be thrown away and built again at any time."""

from jidomem.index.answers import Answer, Serialized, Solutions
from jidomem.index.observer import Observer
from jidomem.index.oxigraph import OxigraphIndex

__all__ = ["Answer", "Observer", "OxigraphIndex", "Serialized", "Solutions"]
