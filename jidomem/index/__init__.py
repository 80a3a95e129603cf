"""The index: an Oxigraph store and search text fed from the journal; derived, so it may be deleted.

It imports the journal. Start with `follower`.
"""

from jidomem.index.results import Answer, Serialized, Solutions
from jidomem.index.store import Observer, OxigraphIndex

__all__ = ["Answer", "Observer", "OxigraphIndex", "Serialized", "Solutions"]
