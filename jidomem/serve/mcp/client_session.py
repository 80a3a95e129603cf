"""The session of an MCP client: its agent, and the work session of the memories it asserts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from jidomem.base.words import slug
from jidomem.errors import JidomemError, PolicyDenied
from jidomem.records.intent import Receipt
from jidomem.runtime.agent_memory import AgentMemory
from jidomem.runtime.root import Jidomem
from jidomem.runtime.user_config import ApiToken
from jidomem.serve.wire import for_callers

if TYPE_CHECKING:
    from jidomem.extras.memoryos.memory_os import MemoryOS


class ClientSession:
    """One agent of one memory. Its work session starts with the first write, and ends when the client disconnects."""

    def __init__(
        self,
        memory: Jidomem,
        agent: str,
        session: str | None = None,
        *,
        is_named: bool = False,
        caller: ApiToken | None = None,
        log_fault: Callable[[JidomemError, str], None] = lambda error, agent: None,
    ) -> None:
        """Work for *agent*, whose name was given by the operator if *is_named*, or for the *caller*.

        A *session* given by the operator is neither opened nor closed here. *log_fault* logs an error of which the
        caller is told the code only.
        """
        self.memory = memory
        own = memory.writer
        self.writer = own.speaking_for(agent) if caller is None else own.acting_as(caller.agent, caller.role)
        self.agent = agent
        self._caller, self._is_named, self._log_fault = caller, is_named, log_fault
        self.is_briefed = False
        self._session = session
        self._is_ours = session is None
        self._is_open = False
        self._note = memory.settings.own_note
        self._lock = Lock()

    @property
    def project(self) -> str:
        """Return the project of the session."""
        return self.memory.project

    def check_writes(self) -> None:
        """Raise PolicyDenied if the token of the caller is read-only."""
        if self._caller is not None:
            self._caller.check_writes()

    def shown(self, error: JidomemError) -> JidomemError:
        """Return *error* as the client may see it: one with a token without paths and commands of this machine."""
        shown = error if self._caller is None else for_callers(error, self.memory.settings.place)
        if shown is not error:
            self._log_fault(error, self.agent)
        return shown

    def author(self) -> dict[str, str]:
        """Return author and session; raise PolicyDenied for a client that names itself as a curator."""
        if not self._is_named and self.writer.is_curator(self.project, self.agent):
            raise PolicyDenied(
                f"{self.agent} is a curator of {self.project}, and the name of a client does not prove that it is one",
                hint=f"start the server in a shell as: jidomem mcp --agent {self.agent};"
                " or, for another agent, with its name",
            )
        return {"asserted_by": self.agent, "asserted_in": self._name()}

    def working(self) -> AgentMemory:
        """Return the working memory; raise PolicyDenied as `author` does."""
        return self.memory.agent(self.author()["asserted_by"], project=self.project)

    def dialogue(self) -> MemoryOS:
        """Return the tiers of the agent; raises PolicyDenied as `working` does."""
        return self.memory.os(self.author()["asserted_by"], project=self.project)

    def begin(self) -> dict[str, str]:
        """Return author and session of a write, as `author`; in a strict project this opens the session first."""
        author = self.author()
        if self._is_ours and not self._is_open and self.memory.settings.policy.strict:
            with self._lock:
                if not self._is_open:
                    self.writer.start_session(self.project, author["asserted_in"], agent=self.agent)
                    self._is_open = True
        return author

    def record(self, receipt: Receipt) -> Receipt:
        """Return *receipt*; if it wrote, the session counts as open.

        The first one warns if the memory is the user's own, as the project has none.
        """
        if receipt.commit is None or receipt.status == "deduplicated":
            return receipt
        self._is_open = True
        note, self._note = self._note, ""
        return replace(receipt, warnings=(*receipt.warnings, note)) if note else receipt

    def opened(self) -> None:
        """Record that the session is open."""
        self._is_open = True

    def leave(self) -> None:
        """Close the session if it is open; errors go to standard error."""
        if not (self._is_open and self._is_ours):
            return
        self._is_open = False
        try:
            self.writer.move_session(self.project, self._name(), agent=self.agent, status="closed")
        except JidomemError as error:
            sys.stderr.write(f"jidomem: the session {self._name()} stays open: {error.detail}\n")

    def _name(self) -> str:
        with self._lock:
            if self._session is None:
                sources = self.memory.sources
                self._session = f"{self.agent}-{sources.now():%Y-%m-%d-%H%M%S}-{sources.new_id()[-6:]}"
            return self._session


class ClientSessions:
    """The sessions of one process, one for each agent."""

    def __init__(self, memory: Jidomem, agent: str | None = None, session: str | None = None) -> None:
        """Serve *memory*; *agent* and *session*, if given, apply to every client."""
        self.memory = memory
        self.log_fault: Callable[[JidomemError, str], None] = lambda error, agent: None
        self._agent, self._session = agent, session
        self._sessions: dict[tuple[str, str | None], ClientSession] = {}
        self._lock = Lock()

    def of(self, client: str | None, caller: ApiToken | None = None) -> ClientSession:
        """Return the session of the *caller*, or, without tokens, of the agent named by the client."""
        if caller is not None:
            return self._client_session(caller.agent, is_named=True, caller=caller)
        named = slug(slug(client or "")[:64])
        return self._client_session(
            self._agent or named or self.memory.settings.agent, is_named=self._agent is not None
        )

    def _client_session(self, agent: str, *, is_named: bool, caller: ApiToken | None = None) -> ClientSession:
        key = (agent, None if caller is None else caller.digest)
        with self._lock:
            if key not in self._sessions:
                self._sessions[key] = ClientSession(
                    self.memory, agent, self._session, is_named=is_named, caller=caller, log_fault=self.log_fault
                )
            return self._sessions[key]

    def leave(self) -> None:
        """Close every session that was opened."""
        for session in self._sessions.values():
            session.leave()
