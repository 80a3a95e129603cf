"""What every route is handed: the open memory, and where ad hoc queries are answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from flask import Response

from jidomem.runtime.root import Jidomem
from jidomem.serve.pool import Pool


@dataclass(frozen=True, slots=True)
class Site:
    """One memory, served."""

    memory: Jidomem
    pool: Pool


#: What a route does: the site, and the parts of the path by name.
Answer = Callable[..., Response]


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path: what answers it, and what the description of the interface says of it.

    `path` is written as OpenAPI writes it. `takes` are the arguments of the query string, name -> what it does.
    `reads` maps the media types of the body to their schemas, and `gives` each status to what comes with it: what it
    means, and the media types of the answer.
    """

    method: str
    path: str
    answer: Answer
    summary: str
    gives: dict[int, tuple[str, dict[str, Any]]]
    takes: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    reads: dict[str, Any] = field(default_factory=dict)
    open_ended: bool = False
