"""Who performs directives, and what calls them: inline, key-value, vectors, the project's graph, and your own."""

from jidomem.providers.graph import GraphProvider
from jidomem.providers.inline import InlineProvider
from jidomem.providers.interpreter import execute_directive
from jidomem.providers.kv import KeptProvider, KeyValueProvider
from jidomem.providers.registry import Providers
from jidomem.providers.vector import VectorProvider

__all__ = [
    "GraphProvider",
    "InlineProvider",
    "KeptProvider",
    "KeyValueProvider",
    "Providers",
    "VectorProvider",
    "execute_directive",
]
