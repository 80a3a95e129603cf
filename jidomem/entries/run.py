"""The run of an agent: entries are recalled before the prompt is built, and captured after the turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from jidomem.entries import store as stores
from jidomem.entries.store import FromContext, MemoryPolicy, Spec, StoreError
from jidomem.errors import InvalidRequest
from jidomem.records.entry import Entry, InvalidEntry, WriteRequest, WriteResult, fault_of_text
from jidomem.records.recall import LONGEST_QUERY, RecallRequest, RecallResult
from jidomem.records.search import NAMESPACE

HEADING = "Relevant memory:"
#: The key of the recalled entries in the context of a prompt.
RECALLED = "memory"

Message = Mapping[str, Any]


class MissingStore(InvalidRequest, ValueError):
    """A write in a run without a store."""


class MissingSession(InvalidRequest, ValueError):
    """A run without a session, for a memory with the scope `session`."""


class MissingContext(InvalidRequest, ValueError):
    """A run whose context lacks the namespace."""


class MemoryOff(InvalidRequest, ValueError):
    """A write for an agent whose definition captures nothing."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The prompt of a model: messages with `role` and `content`, and structured data."""

    messages: Sequence[Message] = ()
    context: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the agent *spec* with its store, session and context."""

    spec: Spec
    store: object = None
    session_id: str | None = None
    context: Mapping[str, Any] = field(default_factory=dict)

    def recall_request(self, query: str) -> RecallRequest | None:
        """Return the recall request of the policy, or None if the agent has no memory.

        Only the beginning of an overlong query is used. Raises MissingSession and MissingContext.
        """
        policy = self._policy()
        if policy is None:
            return None
        return RecallRequest(
            agent_id=self.spec.id,
            query=_looked_for(query),
            session_id=self._session(policy),
            scope=policy.scope,
            limit=policy.max_entries,
            metadata={**policy.metadata, **self._namespace(policy)},
        )

    def write_request(self, content: str, metadata: Mapping[str, Any] | None = None) -> WriteRequest:
        """Return the write request of the policy; with the scope `agent` all sessions share the entry.

        Raises MemoryOff if the agent captures nothing, MissingSession, MissingContext and InvalidEntry.
        """
        policy = self._policy()
        if policy is None or policy.capture == "off":
            raise MemoryOff(f"the memory of {self.spec.id!r} is off", hint='define it with {"capture": "manual"}')
        session = self._session(policy) if policy.scope == "session" else None
        namespace = self._namespace(policy)
        given = {} if metadata is None else metadata
        entry = Entry(agent_id=self.spec.id, session_id=session, content=content, metadata=given)
        both = {**namespace, **entry.metadata}
        if namespace and both[NAMESPACE] != namespace[NAMESPACE]:
            detail = f"namespace={both[NAMESPACE]!r} is not that of this run, {namespace[NAMESPACE]!r}"
            raise InvalidEntry(f"invalid memory entry: {detail}", hint="leave it out of the metadata")
        return WriteRequest(replace(entry, metadata=both), {**policy.metadata, **namespace})

    def recall(self, query: str) -> RecallResult | None:
        """Return the entries of the store for *query*; None without a memory or a store.

        Raises what `recall_request` raises, and StoreError if the store fails or mixes up namespaces.
        """
        if self.store is None or (request := self.recall_request(query)) is None:
            return None
        result = stores.recall(self.store, request)
        if NAMESPACE in request.metadata:
            _check_namespace(result, request.metadata[NAMESPACE])
        return result

    def remember(self, content: str, metadata: Mapping[str, Any] | None = None) -> WriteResult:
        """Write an entry with *content* and return the result.

        Raises what `write_request` raises, MissingStore without a store, and StoreError if the store fails.
        """
        request = self.write_request(content, metadata)
        if self.store is None:
            detail = f"the memory of {self.spec.id!r} has no store to write to"
            raise MissingStore(detail, hint="give the run a store: Run(spec, store)")
        return stores.write(self.store, request)

    def before(self, messages: Sequence[Message], context: Mapping[str, Any] | None = None) -> Prompt:
        """Return the prompt with the entries recalled for the newest text of the user; unchanged if there are none.

        Raises what `recall` raises.
        """
        contents = [message.get("content") for message in messages if message.get("role") == "user"]
        texts = [text for text in contents if isinstance(text, str) and _looked_for(text)]
        prompt = Prompt(tuple(messages), dict(context or {}))
        result = self.recall(texts[-1]) if texts else None
        policy = self._policy()
        return prompt if result is None or policy is None else injected(prompt, policy, result)

    def after(self, user: str, assistant: str | None, *, request_id: str, source: str = "agent") -> WriteResult | None:
        """Write the turn and return the result; None unless the turn is completed and the policy captures
        conversations.

        Raises what `remember` raises, except that without a store nothing is written.
        """
        policy = self._policy()
        if policy is None or policy.capture != "conversation" or self.store is None or assistant is None:
            return None
        for name, text in (("user", user), ("assistant", assistant)):
            if not isinstance(text, str):
                detail = f"invalid memory entry: the text of {name} is a {type(text).__name__}, not a text"
                raise InvalidEntry(detail, hint=f"give {name} as text")
        if not assistant.strip():
            return None
        fields = {"class": "episodic", "kind": "conversation", "source": source, "request_id": request_id}
        return self.remember(f"User: {user}\nAssistant: {assistant}", fields)

    def _policy(self) -> MemoryPolicy | None:
        policy = self.spec.memory
        return policy if policy is not None and policy.enabled else None

    def _session(self, policy: MemoryPolicy) -> str | None:
        if policy.scope == "session" and self.session_id is None:
            detail = f"the memory of {self.spec.id!r} has the scope session, and the run has none"
            raise MissingSession(detail, hint="give the run a session_id, or define the memory with scope agent")
        return self.session_id

    def _namespace(self, policy: MemoryPolicy) -> dict[str, str]:
        name = policy.namespace
        if isinstance(name, FromContext):
            key, name = name.key, self.context.get(name.key)
            if fault := fault_of_text(name):
                problem = "is missing" if name is None else fault
                detail = f"the namespace of {self.spec.id!r} is context[{key!r}], which {problem}"
                raise MissingContext(detail, hint=f"give the run context={{{key!r}: ...}}")
        return {} if name is None else {NAMESPACE: name}


def injected(prompt: Prompt, policy: MemoryPolicy, result: RecallResult) -> Prompt:
    """Return *prompt* with the recalled entries, by the policy as a message after the system messages or in the
    context.
    """
    if not result.entries:
        return prompt
    if policy.inject == "context":
        data = {"entries": [entry.to_dict() for entry in result.entries], "count": len(result.entries)}
        return Prompt(prompt.messages, {**prompt.context, RECALLED: data})
    first = next((i for i, message in enumerate(prompt.messages) if message.get("role") != "system"), None)
    place = len(prompt.messages) if first is None else first
    lines = "\n".join([HEADING, *map(_bullet, result.entries)])
    added = {"role": "system", "content": lines}
    return Prompt((*prompt.messages[:place], added, *prompt.messages[place:]), prompt.context)


def _looked_for(text: str) -> str:
    """Return the part of *text* that recall uses: its beginning, without incomplete characters."""
    return text.encode("utf-8", "ignore").strip()[:LONGEST_QUERY].decode("utf-8", "ignore").strip()


def _bullet(entry: Entry) -> str:
    """Return an entry as one list item, with all further lines indented."""
    return "- " + "\n  ".join(entry.content.splitlines())


def _check_namespace(result: RecallResult, namespace: str) -> None:
    """Raise StoreError unless all entries belong to *namespace*; a store may ignore namespaces."""
    for entry in result.entries:
        if entry.metadata.get(NAMESPACE) != namespace:
            detail = f"the store returned {entry.id!r}, which is not in the namespace {namespace!r}"
            raise StoreError(detail, reason=result, hint="filter in the store by request.covers(entry)")
