"""Projectors: what makes knowledge out of what happened, from the thread into the memory, and when they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from jidomem.directive import Directive
from jidomem.errors import InvalidRequest
from jidomem.spaces.memory import Memory
from jidomem.spaces.names import SUMMARY
from jidomem.spaces.sources import moment
from jidomem.spaces.step import Step
from jidomem.spaces.thread import Thread, ThreadEntry

Context = Mapping[str, Any]
#: How many entries, the last ones, a summary looks at, and how many signs of each message it repeats.
LAST, CLIPPED = 50, 200


class Projector(Protocol):
    """Reads a thread and gives the memory after it, with the directives it asks for besides, if any."""

    def project(self, memory: Memory, thread: Thread, ctx: Context) -> Memory | tuple[Memory, Sequence[Directive]]:
        """Return the memory after *thread*; *ctx* has the moment `now`, and whatever else the agent gives."""
        ...


def project(projector: Projector, memory: Memory, thread: Thread, ctx: Context | None = None) -> Step[Memory]:
    """Return what *projector* makes of *thread* now; raises InvalidRequest where it gives no memory."""
    made = projector.project(memory, thread, {"now": moment(), **(ctx or {})})
    after, directives = made if isinstance(made, tuple) and len(made) == 2 else (made, ())
    if not isinstance(after, Memory) or not all(isinstance(each, Directive) for each in directives):
        raise InvalidRequest(
            f"{type(projector).__name__} projected {made!r:.200}, not a memory",
            hint="return the memory, or the memory and a list of directives",
        )
    return Step(after, tuple(directives))


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a projector runs: each *every_ms* that passed, each *after_entries* the thread grew by, whichever is first.

    It says where the last run left off, so that running gives the next schedule. With neither it runs on demand only.
    """

    projector: Projector
    every_ms: int | None = None
    after_entries: int | None = None
    ran_at: int | None = None
    seen: int = 0

    def __post_init__(self) -> None:
        """Raise InvalidRequest for what is no count."""
        for name in ("every_ms", "after_entries"):
            count = getattr(self, name)
            if count is not None and (type(count) is not int or count < 1):
                raise InvalidRequest(f"{name}={count!r} is no positive whole number", hint=f"leave {name} out")

    def is_due(self, thread: Thread, now: int) -> bool:
        """Return whether it is time: what never ran is due at the first tick."""
        passed = self.every_ms is not None and (self.ran_at is None or now - self.ran_at >= self.every_ms)
        grown = self.after_entries is not None and thread.entry_count() - self.seen >= self.after_entries
        return passed or grown

    def tick(
        self, memory: Memory, thread: Thread, ctx: Context | None = None, *, now: int | None = None
    ) -> tuple[Schedule, Step[Memory]]:
        """Return what `run` does where it is time, else the schedule and the memory as they are."""
        at = moment(now)
        return self.run(memory, thread, ctx, now=at) if self.is_due(thread, at) else (self, Step(memory))

    def run(
        self, memory: Memory, thread: Thread, ctx: Context | None = None, *, now: int | None = None
    ) -> tuple[Schedule, Step[Memory]]:
        """Return the schedule after a run, and what the projector made."""
        at = moment(now)
        step = project(self.projector, memory, thread, {**(ctx or {}), "now": at})
        return replace(self, ran_at=at, seen=thread.entry_count()), step


def shortened(messages: Sequence[ThreadEntry]) -> str:
    """Return the messages, one a line with who said it, each cut to 200 signs.

    >>> shortened(Thread().append("message", {"role": "user", "text": "we ship on Friday"}, at=0).entries)
    'user: we ship on Friday'
    """
    return "\n".join(filter(None, map(_line, messages)))


def _line(message: ThreadEntry) -> str:
    said = message.payload if isinstance(message.payload, Mapping) else {"text": message.payload}
    text = " ".join(str(said.get("text") or said.get("content") or "").split())
    role = said.get("role")
    line = f"{role}: {text}" if text and role else text
    return line if len(line) <= CLIPPED else f"{line[: CLIPPED - 1]}…"


@dataclass(frozen=True, slots=True)
class SummaryProjector:
    """Keeps in `world["summary"]` what the messages among the last 50 entries come to, as *summarize* puts it.

    Without messages, or where nothing else would be kept than is there, the memory is as it was. `covers_seq` is the
    first and the last message that were read, as a list: JSON has no other pair.
    """

    summarize: Callable[[Sequence[ThreadEntry]], str] = field(default=shortened)
    last: int = LAST

    def project(self, memory: Memory, thread: Thread, ctx: Context) -> Memory:
        """Return the memory with the summary of *thread*."""
        count = thread.entry_count()
        entries = thread.slice(max(0, count - self.last), count)
        messages = [entry for entry in entries if entry.kind == "message"]
        if not messages:
            return memory
        told = {"content": self.summarize(messages), "source": "projector",
                "covers_seq": [messages[0].seq, messages[-1].seq]}  # fmt: skip
        kept = memory.world_get(SUMMARY)
        if isinstance(kept, Mapping) and told.items() <= kept.items():
            return memory
        now = ctx["now"]
        return memory.world_put(SUMMARY, {**told, "projected_at": now}, now=now)
