"""What an agent's definition says of its memory: whether, how much, how far, and what of a turn is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from jidomem.entry import described, fault_of_text, held
from jidomem.errors import InvalidRequest
from jidomem.frozen import thaw
from jidomem.recall import LIMIT, MOST, NAMESPACE, SCOPES

CAPTURES = ("manual", "conversation", "off")
INJECTS = ("instructions", "context")


class InvalidPolicy(InvalidRequest, ValueError):
    """What was given is no policy of a memory, or no definition of an agent."""


@dataclass(frozen=True, slots=True)
class FromContext:
    """A namespace that each run takes from its context, by this *key*."""

    key: str

    def __post_init__(self) -> None:
        """Raise InvalidPolicy unless the key is a text."""
        if fault := fault_of_text(self.key):
            raise _invalid(f"the key of a namespace {fault}", 'give namespace={"context": "tenant"}')


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPolicy:
    """How an agent remembers: plain data, without the store that keeps it.

    *scope* is whether its memory is shared by all its sessions or each has its own, *namespace* what it is kept apart
    by. *capture* is what of a turn is written, *inject* how what is recalled gets into the prompt, *max_entries* how
    much of it. *metadata* goes with every request to the store.
    """

    enabled: bool = True
    scope: str = "agent"
    namespace: str | FromContext | None = None
    capture: str = "manual"
    inject: str = "instructions"
    max_entries: int = LIMIT
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Raise InvalidPolicy for a field that will not do."""
        if not isinstance(self.enabled, bool):
            raise _invalid(f"enabled={self.enabled!r} is no truth", "give enabled=True or enabled=False")
        for name, known in (("scope", SCOPES), ("capture", CAPTURES), ("inject", INJECTS)):
            if getattr(self, name) not in known:
                raise _invalid(f"{name}={getattr(self, name)!r} is none", f"use one of: {', '.join(known)}")
        object.__setattr__(self, "namespace", _namespace(self.namespace))
        object.__setattr__(self, "max_entries", _count(self.max_entries))
        object.__setattr__(self, "metadata", held(self.metadata, _invalid))
        if NAMESPACE in self.metadata:
            raise _invalid("metadata holds a namespace", f"give namespace={self.metadata[NAMESPACE]!r} beside it")

    @classmethod
    def from_input(cls, given: object, /) -> MemoryPolicy | None:
        """Return the policy that *given* stands for: True for the defaults, False and None for no memory.

        Raises InvalidPolicy for what is neither a policy nor a mapping of one, and for a key that there is not.
        """
        if given is None or given is False:
            return None
        if isinstance(given, MemoryPolicy):
            return given
        return MemoryPolicy(**described(MemoryPolicy, {} if given is True else given, {}, _invalid))

    def to_dict(self) -> dict[str, Any]:
        """Return the policy as plain values, which `from_input` reads back."""
        said = {one.name: getattr(self, one.name) for one in fields(self)}
        if isinstance(self.namespace, FromContext):
            said["namespace"] = {"context": self.namespace.key}
        return {**said, "metadata": thaw(self.metadata)}


@dataclass(frozen=True, slots=True)
class Spec:
    """The definition of an agent, as far as its memory goes: its *id*, and its policy or what stands for one.

    It holds no store: which one is used is said for each run.
    """

    id: str
    memory: MemoryPolicy | None = None

    def __post_init__(self) -> None:
        """Raise InvalidPolicy for an id that is no text, and for what is no policy."""
        if fault := fault_of_text(self.id):
            raise _invalid(f"the id of the agent {fault}", "give id as text")
        object.__setattr__(self, "memory", MemoryPolicy.from_input(self.memory))


def _namespace(given: object) -> str | FromContext | None:
    """Return the namespace that *given* stands for; a mapping names a key of the context."""
    if given is None or isinstance(given, FromContext):
        return given
    if isinstance(given, Mapping) and set(given) == {"context"}:
        return FromContext(given["context"])
    if not isinstance(given, str):
        raise _invalid(f"namespace={given!r} is none", 'give a text, or {"context": KEY}')
    if fault := fault_of_text(given):
        raise _invalid(f"namespace {fault}", "give a text, or leave it out")
    return given


def _count(given: object) -> int:
    """Return how many entries *given* says; digits are as good as a number."""
    count = int(given) if isinstance(given, str) and given.isascii() and given.isdecimal() and len(given) < 9 else given
    if isinstance(count, bool) or not isinstance(count, int) or not 0 < count <= MOST:
        raise _invalid(f"max_entries={given!r} is not from 1 to {MOST:,}", f"give max_entries={LIMIT}")
    return count


def _invalid(detail: str, hint: str) -> InvalidPolicy:
    return InvalidPolicy(f"invalid memory policy: {detail}", hint=hint)
