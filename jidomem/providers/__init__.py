"""Who performs directives, and what calls them: inline, key-value, vectors, the project's graph, and your own."""

from jidomem.providers.dispatch import Providers, execute_directive
from jidomem.providers.graph import GraphProvider
from jidomem.providers.stores import InlineProvider, KeyValueProvider, PersistentProvider, VectorProvider

__all__ = [
    "GraphProvider",
    "InlineProvider",
    "KeyValueProvider",
    "PersistentProvider",
    "Providers",
    "VectorProvider",
    "execute_directive",
]
