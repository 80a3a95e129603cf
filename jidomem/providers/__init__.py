"""The providers: perform directives on values, vectors and the project's graph.

They import the reader, the writer and the recall. Start with `dispatch`.
"""

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
