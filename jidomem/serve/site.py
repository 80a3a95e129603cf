"""What every route is handed: the open memory; and what a route is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from flask import Response

from jidomem.runtime.root import Jidomem


@dataclass(frozen=True, slots=True)
class Site:
    """One memory, served."""

    memory: Jidomem


#: What a route does: the site, and the parts of the path by name.
Answer = Callable[..., Response]


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path: what answers it, and what the description of the interface says of it.

    `path` is written as OpenAPI writes it. `takes` are the arguments of the query string, name -> what it does; with
    `is_open` there are more, which the named query decides. `reads` are the media types of the body, each with the
    name of its schema, and `gives` those of the answer; `statuses` say what each success means.
    """

    method: str
    path: str
    answer: Answer
    summary: str
    statuses: Mapping[int, str]
    gives: Mapping[str, str]
    takes: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    reads: Mapping[str, str] = field(default_factory=dict)
    is_open: bool = False
