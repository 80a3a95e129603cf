"""A turn of a conversation as triples: prompt, answer and calls of tools, word for word.  Pure over rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from jidomem import vocab
from jidomem.errors import InvalidRequest, NotFound
from jidomem.terms import Term, Triple, bare, date_time, integer, iri
from jidomem.turn import ToolUse
from jidomem.vocab import TYPE, conv, jido
from jidomem.write.literals import as_json, text
from jidomem.write.view import View

PART_OF = conv("partOfConversation")
_SESSIONS = f"{vocab.BASE}sessions/"


class NotOpened(NotFound):
    """The session in which something is said was never opened."""


@dataclass(frozen=True, slots=True)
class Said:
    """What is said in one turn: something is, and agents are IRIs."""

    prompt: str | None
    answer: str | None
    asked_by: Term | None
    answered_by: Term | None
    tools: Sequence[ToolUse]
    timestamp: str

    def __post_init__(self) -> None:
        """Raise InvalidRequest for what is no text, and where nothing is said."""
        for name in ("prompt", "answer"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, str) and value):
                raise InvalidRequest(f"{name}={value!r:.80} is no text", hint=f"give {name} as text, or leave it out")
        for use in self.tools:
            if not isinstance(use, ToolUse) or not isinstance(use.name, str) or not use.name.strip():
                raise InvalidRequest(f"{use!r:.80} is no call of a tool", hint='give ToolUse("grep", {...}, result)')
        if self.prompt is None and self.answer is None and not self.tools:
            raise InvalidRequest("nothing is said in this turn", hint="give a prompt, an answer or the tools used")

    @property
    def agents(self) -> list[Term]:
        """Return who spoke."""
        return [agent for agent in (self.asked_by, self.answered_by) if agent is not None]


def conversation_of(session: Term) -> Term:
    """Return the conversation of a work session.

    >>> conversation_of("<https://jido.ai/sessions/s-42>")
    '<https://jido.ai/conversations/s-42>'
    """
    name = bare(session)
    own = name.removeprefix(_SESSIONS)
    return iri(
        f"{vocab.BASE}conversations/{own if own != name else blake2b(name.encode(), digest_size=16).hexdigest()}"
    )


def next_index(conversation: Term, view: View) -> int:
    """Return the place of the next turn: as many as there are come before it."""
    return len(view.subjects(PART_OF, conversation))


def opened(conversation: Term, session: Term, project: Term) -> list[Triple]:
    """Return the description of a conversation nobody has said anything in before."""
    return [
        (conversation, TYPE, conv("Conversation")),
        (conversation, conv("associatedWithSession"), session),
        (conversation, jido("partOfProject"), project),
    ]


def described(node: Term, index: int, conversation: Term, said: Said, most: int) -> list[Triple]:
    """Return what was *said* as the turn *node*, the one at *index* in the conversation.

    Raises InvalidRequest for what JSON does not hold, TooLarge for a text of more than *most* bytes.
    """
    return [
        (conversation, conv("hasTurn"), node),
        (node, TYPE, conv("ConversationTurn")),
        (node, PART_OF, conversation),
        (node, conv("turnIndex"), integer(index)),
        (node, conv("timestamp"), date_time(said.timestamp)),
        *_spoken(node, "Prompt", said.prompt, said.asked_by, most),
        *_spoken(node, "Answer", said.answer, said.answered_by, most),
        *(row for number, use in enumerate(said.tools, start=1) for row in _used(node, number, use, most)),
    ]


def _spoken(turn: Term, kind: str, words: str | None, agent: Term | None, most: int) -> Iterator[Triple]:
    """Yield what was said as the prompt or the answer of a turn, and by whom."""
    if words is None:
        return
    part = iri(f"{bare(turn)}/{kind.lower()}")
    yield turn, conv(f"has{kind}"), part
    yield part, TYPE, conv(kind)
    yield part, conv(f"{kind.lower()}Text"), text(kind.lower(), words, most)
    if agent is not None:
        yield part, jido("saidBy"), agent


def _used(turn: Term, number: int, use: ToolUse, most: int) -> Iterator[Triple]:
    """Yield the call of a tool, with what it gave back."""
    call, name = iri(f"{bare(turn)}/tools/{number}"), f"the tool {use.name}"
    yield turn, conv("involvesToolInvocation"), call
    yield call, TYPE, conv("ToolInvocation")
    yield call, conv("toolName"), text("the name of a tool", use.name, most)
    if use.parameters is not None:
        said = as_json(use.parameters, f"parameters of {name}")
        yield call, conv("invocationParameters"), text(f"parameters of {name}", said, most)
    if use.result is not None:
        result = iri(f"{bare(call)}/result")
        yield call, conv("hasResult"), result
        yield result, TYPE, conv("ToolResult")
        yield result, conv("resultData"), text(f"result of {name}", as_json(use.result, f"result of {name}"), most)
