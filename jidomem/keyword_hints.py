"""Keyword hints: a misspelt keyword argument of a public name is answered with the nearest one there is."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar

T = TypeVar("T")


def hint_keywords(function: Callable[..., T]) -> Callable[..., T]:
    """Return *function*, whose TypeError for an unknown keyword names the nearest known one.

    >>> @hint_keywords
    ... def greet(name): ...
    >>> greet(nmae="ana")
    Traceback (most recent call last):
    TypeError: greet() got an unexpected keyword argument 'nmae'; did you mean 'name'?
    """
    kinds = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    known = [each.name for each in signature(function).parameters.values() if each.kind in kinds]
    shown = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def call(*args: Any, **keywords: Any) -> T:
        try:
            return function(*args, **keywords)
        except TypeError:
            unknown = next((name for name in keywords if name not in known), None)
            near = get_close_matches(unknown or "", known, n=1)
            if not near:
                raise
        text = f"{shown}() got an unexpected keyword argument {unknown!r}; did you mean {near[0]!r}?"
        raise TypeError(text)

    return call


def hint_fields(cls: type[T]) -> type[T]:
    """Return the dataclass *cls*, whose constructor hints at misspelt fields."""
    setattr(cls, "__init__", hint_keywords(cls.__init__))  # noqa: B010  # mypy allows no plain assignment to it
    return cls
