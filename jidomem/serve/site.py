"""What every route is handed: the open memory, and who asks; and what a route is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from flask import Response

from jidomem.authority import CURATORS, role_named
from jidomem.errors import NotFound, PolicyDenied, Unauthenticated
from jidomem.journal.files import Stream
from jidomem.runtime.keyring import Keyring
from jidomem.runtime.own import EVERY, Token
from jidomem.runtime.root import Jidomem
from jidomem.serve.operation import Operation
from jidomem.vocab import BASE
from jidomem.words import slug
from jidomem.write.writer import MemoryWriter


@dataclass(frozen=True, slots=True)
class Site:
    """One memory, served to `caller`, who is known by a token; to anybody on this machine where there is none.

    `operation` is the server that serves it, `public_url` the origin it is asked at, where it was told.
    """

    memory: Jidomem
    keyring: Keyring | None = None
    caller: Token | None = None
    operation: Operation = field(default_factory=Operation)
    public_url: str | None = None

    def check_caller(self) -> None:
        """Raise Unauthenticated where the token was taken back meanwhile: what takes long asks between its parts."""
        if self.caller is not None and self.keyring is not None and not self.keyring.has(self.caller):
            raise Unauthenticated("this token was taken back meanwhile", hint="ask who runs the server for another one")

    @property
    def writer(self) -> MemoryWriter:
        """Return the writer, held to who asks; raises Unauthenticated where that is nobody any more."""
        self.check_caller()
        writer = self.memory.writer
        return writer if self.caller is None else writer.acting_as(self.caller.agent, self.caller.role)

    def projects(self) -> list[str]:
        """Return the projects that are there for who asks."""
        return [name for name in self.memory.projects() if self.caller is None or self.caller.reaches(name)]

    def default(self) -> str:
        """Return the project of who names none; raises NotFound where it is none of theirs."""
        name = self.memory.project
        if self.caller is not None and not self.caller.reaches(name):
            raise self._unknown("there is no project for you here that need not be named", "")
        return name

    def check(self, project: str) -> None:
        """Raise NotFound unless *project* may be there for who asks, in the same words as where there is none."""
        if self.caller is not None and not self.caller.reaches(Stream(project).project):
            raise self.unknown(project)

    def unknown(self, project: str) -> NotFound:
        """Return the refusal of *project*, which names no project that is not there for who asks."""
        return self._unknown(f"no project {project!r} here", project)

    def _unknown(self, detail: str, name: str) -> NotFound:
        there = self.projects()
        near = get_close_matches(name, there, n=3) or there
        return NotFound(
            detail,
            hint=f"there is {', '.join(near) or 'none yet'}; another one needs a token that names it",
            code="unknown_project",
        )

    def is_hidden(self) -> bool:
        """Return whether there may be projects that are not there for who asks."""
        return self.caller is not None and EVERY not in self.caller.projects

    def is_theirs(self, agent: str) -> bool:
        """Return whether who asks is *agent*, or a curator; anybody is where there are no tokens."""
        if self.caller is None:
            return True
        return _iri(agent) == _iri(self.caller.agent) or role_named(self.caller.role) in CURATORS

    def listener(self, agent: str | None) -> str | None:
        """Return who is told: *agent*, else who asks; raises PolicyDenied for another one where that is no curator."""
        if self.caller is None or agent is None or self.is_theirs(agent):
            return agent or (self.caller.agent if self.caller else None)
        raise PolicyDenied(
            f"{self.caller.agent} may not listen for {agent}", hint=f"leave agent out, or give {self.caller.agent}"
        )

    def check_own(self, agent: str) -> None:
        """Raise PolicyDenied unless what *agent* holds may be reached by who asks."""
        if self.caller is not None and not self.is_theirs(agent):
            raise PolicyDenied(
                f"what {agent} holds is not there for {self.caller.agent}", hint=f"ask for that of {self.caller.agent}"
            )


def _iri(agent: str) -> str:
    return agent if ":" in agent else f"{BASE}agents/{slug(agent)}"


#: What a route does: the site, and the parts of the path by name.
Answer = Callable[..., Response]


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path: what answers it, and what the description of the interface says of it.

    `path` is written as OpenAPI writes it. `takes` are the arguments of the query string, name -> what it does; with
    `is_open` there are more, which the named query decides. `reads` are the media types of the body, each with the
    name of its schema, and `gives` those of the answer; `statuses` say what each success means. Who may only read is
    not let at one that `writes`; one that is `public` needs no token, and `tells_more` to who has one.
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
    writes: bool = False
    public: bool = False
    tells_more: bool = False
