"""A step: what a move of working memory comes to, the memory after it and the effects it asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from jidomem.directive import Directive

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Step(Generic[M]):
    """The memory after a move, and the directives it asks for; `move(memory, news, policy) -> Step`."""

    memory: M
    directives: tuple[Directive, ...] = ()
