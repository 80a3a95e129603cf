"""Who performs directives, and what calls them: inline, key-value, vectors, the project's graph, and your own."""

from jidomem.providers.inline import InlineProvider
from jidomem.providers.interpreter import execute_directive
from jidomem.providers.registry import Providers

__all__ = ["InlineProvider", "Providers", "execute_directive"]
