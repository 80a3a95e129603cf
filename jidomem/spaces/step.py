"""A step: what a move of working memory comes to, the memory after it and the effects it asks for."""

from __future__ import annotations

from dataclasses import dataclass

from jidomem.directive import Directive
from jidomem.spaces.memory import Memory


@dataclass(frozen=True, slots=True)
class Step:
    """The memory after a move, and the directives it asks for; `move(memory, news, policy) -> Step`."""

    memory: Memory
    directives: tuple[Directive, ...] = ()
