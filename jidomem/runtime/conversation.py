"""The conversation of a work session: what is said is recorded turn by turn, and read back in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime

from jidomem.errors import IntentRefused, InvalidRequest, NotFound
from jidomem.index import OxigraphIndex
from jidomem.intent import Receipt
from jidomem.moments import parse_moment, stamp
from jidomem.query import moment_hint, to_term
from jidomem.read.turns import turn, turns
from jidomem.terms import bare
from jidomem.turn import ToolUse, Turn
from jidomem.write.turns import NotOpened, Said, conversation_of
from jidomem.write.writer import MemoryWriter


class Conversation:
    """What was said in one work session; its IRI is `iri`, that of the session `session`."""

    def __init__(
        self,
        project: str,
        session: str,
        writer: MemoryWriter,
        index: OxigraphIndex,
        catch_up: Callable[[str], object],
        now: Callable[[], datetime],
        *,
        agent: str,
    ) -> None:
        """Keep the conversation of *session*, a name or an IRI, in the history of *project*; *agent* takes part."""
        node = writer.session_iri(session)
        self.project, self.session, self.iri = project, bare(node), bare(conversation_of(node))
        self._writer, self._index, self._catch_up, self._now = writer, index, catch_up, now
        self._agent = agent

    def record(
        self,
        prompt: str | None = None,
        answer: str | None = None,
        *,
        asked_by: str | None = None,
        answered_by: str | None = None,
        tools: Sequence[ToolUse] = (),
        timestamp: object = None,
    ) -> Turn:
        """Return the turn that is recorded, durable, as the next one: what was asked, answered, and done for it.

        The answer is by who takes part unless *answered_by* names another; *asked_by* is nobody unless given.
        *timestamp* is when it was said, now unless given. A session nobody has opened is opened. A memory that comes
        of the turn names its `iri` as evidence. Raises InvalidRequest, TooLarge, IntentRefused, Busy and Failed; then
        nothing of the turn was kept.
        """
        for name, agent, words in (("asked_by", asked_by, prompt), ("answered_by", answered_by, answer)):
            if agent is not None and words is None:
                raise InvalidRequest(f"{name}={agent!r}, and nothing is said by it", hint=f"leave {name} out")
        agent = self._agent if answered_by is None else answered_by
        said = Said(
            prompt,
            answer,
            self._writer.spoken_by(asked_by),
            self._writer.spoken_by(agent) if answer is not None else None,
            tuple(tools),
            self._moment(timestamp),
        )
        receipt = self._kept(said, agent)
        self._catch_up(self.project)
        return turn(self._index, self.project, f"<{receipt.iri}>")

    def _kept(self, said: Said, agent: str) -> Receipt:
        """Return the receipt of a turn; a session nobody has opened is opened before it."""
        with suppress(NotOpened):
            return self._writer.keep_turn(self.project, self.session, said)
        try:
            self._writer.start_session(self.project, self.session, agent=agent)
        except IntentRefused as refused:
            if refused.code != "iri_exists":  # somebody else opened it meanwhile
                raise
        return self._writer.keep_turn(self.project, self.session, said)

    def turns(self, last: int | None = None, *, as_of: object = None) -> list[Turn]:
        """Return the turns in their order, the *last* so many where that is given, or those recorded by *as_of*.

        Raises InvalidRequest for a *last* that is no number from 0, or an *as_of* that is no moment.
        """
        if last is not None and (isinstance(last, bool) or not isinstance(last, int) or last < 0):
            raise InvalidRequest(f"last={last!r} is no number of turns", hint="give last=10, or leave it out")
        moment = None if as_of is None else bare(to_term(as_of, "dateTime", "as_of"))
        try:
            self._catch_up(self.project)
        except NotFound as unknown:
            if unknown.code != "unknown_project":
                raise
            return []
        found = turns(self._index, self.project, f"<{self.iri}>", moment)
        return found if last is None else found[max(0, len(found) - last) :]

    def _moment(self, given: object) -> str:
        moment = self._now() if given is None else parse_moment(given)
        if moment is None:
            raise InvalidRequest(f"timestamp={given!r:.80} is not a date or time", hint=moment_hint("timestamp"))
        return stamp(moment)
