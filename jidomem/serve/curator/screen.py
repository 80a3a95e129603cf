"""A screen: one page of a project at an address of its own, what it shows as plain values, and what is done on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

#: Returns what a page shows, as plain values: its JSON twin gives them as they are. Parts of the path come by name.
Show = Callable[..., Mapping[str, Any]]
#: Does what a form asks, and returns the address of the page to go on with.
Act = Callable[..., str]


@dataclass(frozen=True, slots=True)
class Screen:
    """One kind of page.

    `path` is what follows the project in its address, with parts in braces; `takes` are its arguments besides as_of,
    with `is_open` there are more. `act` does one of `acts`, as the fields of a form say, which are `fields` besides the
    act itself; `several` of them may stand more than once, a line each. The past is not acted on; who may only read
    acts where that `writes` nothing. What stands in the menu has a `menu`, the others are reached from there.
    """

    path: str
    template: str
    show: Show
    takes: tuple[str, ...] = ()
    act: Act | None = None
    acts: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    menu: str | None = None
    scripts: tuple[str, ...] = ()
    styles: tuple[str, ...] = ()
    style_hashes: tuple[str, ...] = ()
    is_open: bool = False
    several: tuple[str, ...] = ()
    writes: bool = True

    @property
    def name(self) -> str:
        """Return the first part of its path."""
        return self.path.partition("/")[0]
