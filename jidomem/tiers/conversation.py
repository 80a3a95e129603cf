"""The conversation of a session: its newest messages, as many as fit into a number of tokens.  A value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from jidomem import clock
from jidomem.errors import InvalidRequest

MAX_TOKENS = 100_000
Estimator = Callable[[str], int]


def estimate(text: str) -> int:
    """Return about how many tokens *text* has: one for four signs, and one.

    >>> estimate(""), estimate("abc"), estimate("abcd")
    (1, 1, 2)
    """
    return len(text) // 4 + 1


@dataclass(frozen=True, slots=True)
class Message:
    """What was said by whom (user, assistant, system, tool), when, and how many tokens that is."""

    role: str
    content: str
    timestamp: datetime
    tokens: int


@dataclass(frozen=True, slots=True)
class ConversationBuffer:
    """The newest `messages`, oldest first, which have `current_tokens` in all.

    That is `max_tokens` at most, unless the newest message alone has more: the newest one is always kept. `evicted`
    is what the `add` that made this buffer removed, oldest first.
    """

    max_tokens: int = MAX_TOKENS
    estimator: Estimator = estimate
    messages: tuple[Message, ...] = ()
    current_tokens: int = 0
    evicted: tuple[Message, ...] = ()

    @classmethod
    def new(cls, max_tokens: int = MAX_TOKENS, *, estimator: Estimator = estimate) -> ConversationBuffer:
        """Return an empty buffer; raises InvalidRequest for a *max_tokens* below 1."""
        if not _is_count(max_tokens) or max_tokens == 0:
            raise InvalidRequest(
                f"max_tokens={max_tokens!r} is no positive whole number", hint=f"give max_tokens={MAX_TOKENS}"
            )
        return cls(max_tokens, estimator)

    def add(self, role: str, content: str, *, now: Callable[[], datetime] = clock.now) -> ConversationBuffer:
        """Return the buffer with one message more, less the oldest ones that no longer fit.

        Raises InvalidRequest for a role or content that is no text, and for an estimate that is no number of tokens.
        """
        if not isinstance(role, str) or not role.strip() or not isinstance(content, str):
            raise InvalidRequest(
                f"a message has a role and a content: {role!r:.100} and {content!r:.100} are not both texts",
                hint='add("user", "what was said")',
            )
        tokens = self.estimator(content)
        if not _is_count(tokens):
            raise InvalidRequest(f"the estimator says {tokens!r} tokens", hint="let it return a whole number from 0 on")
        messages, total, gone = (*self.messages, Message(role, content, now(), tokens)), self.current_tokens + tokens, 0
        while total > self.max_tokens and gone < len(messages) - 1:
            total -= messages[gone].tokens
            gone += 1
        return replace(self, messages=messages[gone:], current_tokens=total, evicted=messages[:gone])

    def get_context(self, window: int | None = None) -> list[dict[str, str]]:
        """Return role and content of each message, oldest first; of the last *window* alone where that is given.

        Raises InvalidRequest for a window below 0.
        """
        if window is not None and not _is_count(window):
            raise InvalidRequest(f"window={window!r} is no whole number from 0 on", hint="leave window out for all")
        first = 0 if window is None else max(len(self.messages) - window, 0)
        return [{"role": each.role, "content": each.content} for each in self.messages[first:]]


def _is_count(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0
