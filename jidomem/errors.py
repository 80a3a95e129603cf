"""The errors of jidomem: one tree, each with a code, an HTTP status and an exit code.

JidomemError
├── IntentRefused          an intent breaks a rule (422, exit 3)
├── PolicyDenied           a role may not do this (403, exit 3)
├── Unauthenticated        a missing, unknown or revoked token (401, exit 3)
├── Conflict               an intent contradicts an active memory (409, exit 5)
├── RevisionConflict       working memory has another revision than expected (409, exit 5)
├── NotFound               there is nothing of that name (404, exit 4)
├── InvalidRequest         the request is invalid (400, exit 2)
├── RequestTimeout         the rest of a request did not arrive in the stated time (408, exit 1)
├── TooLarge               a stated size was exceeded (413, 414, 431, exit 1)
├── QueryTimeout           a query took longer than the stated time (503, exit 1)
├── NotServed              a method or format that is not served (405, 406, 415, exit 2)
├── Busy                   another writer has the lock, or there are too many requests (503, 429, exit 6)
├── Failed                 a fault of this machine: disk, configuration, missing extra (exit 1)
│   ├── MemoryClosed       the memory was closed before it was used (503)
│   └── MemoryMissing         the folder of an open memory was moved or removed, or git removed it (503)
└── JournalDamaged         a commit file cannot be parsed or verified (500, exit 7)
    └── BranchChanged      commits of another git branch are left in the folder (409, exit 7)

Keyword hints: the error for a misspelt keyword argument of a public name suggests the nearest valid one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ClassVar, NamedTuple, TypeVar

#: The most allowed values in a hint.
_MAX_ALLOWED = 12
Repair = Callable[[Mapping[str, Any]], dict[str, Any]]

#: code -> (HTTP status, exit code); docs/reference/errors.md describes each code.
CODES: Mapping[str, tuple[int, int]] = {
    code: answer
    for codes, answer in (
        ("missing_required_fields missing_rationale unknown_type invalid_confidence invalid_iri iri_exists", (422, 3)),
        ("unknown_field unknown_reference project_mismatch unknown_term shape_violation", (422, 3)),
        ("conflict idempotency_mismatch request_redacted revision_conflict", (409, 5)),
        ("unauthenticated", (401, 3)),
        ("policy_denied unknown_host update_refused federation_refused index_is_derived", (403, 3)),
        ("invalid_project unknown_project not_found unknown_query", (404, 4)),
        ("invalid_argument malformed_query malformed_json", (400, 2)),
        ("unsupported", (501, 2)),
        ("method_not_allowed", (405, 2)),
        ("not_acceptable", (406, 2)),
        ("unsupported_media_type", (415, 2)),
        ("request_timeout", (408, 1)),
        ("payload_too_large result_too_large", (413, 1)),
        ("uri_too_long", (414, 1)),
        ("headers_too_large", (431, 1)),
        ("query_timeout", (503, 1)),
        ("busy", (503, 6)),
        ("too_many_requests", (429, 6)),
        ("index_behind", (503, 6)),
        ("write_failed", (507, 1)),
        ("invalid_config missing_extra", (500, 1)),
        ("store_unavailable store_unreachable store_unfit outcome_unknown", (503, 1)),
        ("provider_failed", (502, 1)),
        ("model_unavailable memory_closed memory_missing", (503, 1)),
        ("journal_damaged", (500, 7)),
        ("branch_changed", (409, 7)),
    )
    for code in codes.split()
}

#: Refusals that are not about one intent: the next intent of a batch would get the same.
STOPPING = (
    *("busy", "write_failed", "journal_damaged", "branch_changed", "invalid_config", "invalid_project"),
    *("unknown_project", "unauthenticated", "store_unreachable", "outcome_unknown", "memory_closed"),
    *("memory_missing", "result_too_large"),
)


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule, with what an agent needs to repair it.

    `field` is the intent's field, `shape` the rule's IRI, `value` the given value, `allowed` the valid values,
    `nearest` the most similar of them. `hint` is the repair in words, with fields in backquotes. `repair` returns
    a repaired copy of the intent (a mapping) if that needs no decision of the author; the answer shows its result as
    `fixed_intent`. `MOST` is how many violations a refusal lists.
    """

    MOST: ClassVar[int] = 25
    code: str
    message: str
    field: str | None = None
    shape: str | None = None
    value: Any = None
    allowed: tuple[str, ...] = ()
    nearest: str | None = None
    repair: Repair | None = None
    hint: str = ""

    @property
    def remedy(self) -> str:
        """Return the repair in words: the violation's own hint, or one made from the field and its values."""
        if self.hint or self.field is None:
            return self.hint
        if self.nearest:
            return f"did you mean {self.nearest!r}?"
        if 0 < len(self.allowed) <= _MAX_ALLOWED:
            return f"set `{self.field}` to one of: {', '.join(self.allowed)}"
        return f"correct `{self.field}`"

    def to_dict(self) -> dict[str, Any]:
        """Return the violation as plain JSON values."""
        return {
            "code": self.code, "field": self.field, "shape": self.shape, "message": self.message,
            "value": self.value, "allowed": list(self.allowed), "nearest": self.nearest, "hint": self.remedy,
        }  # fmt: skip


#: The commands in hints, as patterns, and the calls that do the same in Python, where `memory` is the open root.
_CALLS: Sequence[tuple[str, str]] = (
    (r"jidomem agent session start (\S+) --continues (\S+)",
     r'memory.writer.start_session(project, "\1", continues="\2")'),
    (r"jidomem agent session start (\S+)", r'memory.writer.start_session(project, "\1")'),
    (r"jidomem agent session phase\|pause\|resume\|close", "memory.writer.move_session(project, name, ...)"),
    (r"jidomem agent session list(?! --)", 'memory.ask("active-sessions")'),
    (r"jidomem ask ([a-z-]+)(?! -)\b", r'memory.ask("\1")'),
    (r"jidomem ask\b(?! [a-z])", "memory.playbook"),
    (r"jidomem journal log\b(?! -)", "memory.reader.log(project)"),
    (r"jidomem show ([^\s;,]+)", r'memory.reader.why(project, "\1")'),
    (r"jidomem governing ([^\s;,]+)", r'memory.governing("\1")'),
    (r'jidomem edit (\S+) --invalidate --reason "\.\.\."', r'memory.writer.invalidate(project, "\1", reason="...")'),
    (r'jidomem edit (\S+) --undo(?: --reason "\.\.\.")?', r'memory.writer.undo(project, "\1", reason="...")'),
    (r"jidomem edit (\S+) --confirm --set (\w+)=([\w-]+)(?: --reason TEXT)?",
     r'memory.writer.confirm(project, "\1", \2="\3", reason="...")'),
    (r"jidomem edit (\S+) --confirm\b", r'memory.writer.confirm(project, "\1")'),
    (r"jidomem edit (\S+) --set (\w+)=([\w-]+)$",
     r'memory.writer.revise(project, "\1", changes={"\2": "\3"}, reason="...")'),
    (r"jidomem review keep-both (\S+) --against (\S+) --set about=PATH",
     r'memory.writer.settle(project, "\1", "keep-both", other="\2", changes={"about": ["PATH"]})'),
    (r"jidomem review ([a-z-]+) ([^\s;,]+) --against ([^\s;,]+)(?! --)",
     r'memory.writer.settle(project, "\2", "\1", other="\3")'),
    (r"jidomem review (accept|reject) ([^\s;,]+)(?=[;,]|$| &&)", r'memory.writer.settle(project, "\2", "\1")'),
    (r"jidomem review --conflicts", 'memory.ask("conflicts")'),
    (r"jidomem submit FILE, or (memory\.writer\.submit_intent)", r"\1"),
    (r"(memory\.term_proposals\(\)[^:]*), or: jidomem ontology accept TERM", r"\1"),
)  # fmt: skip
SHELL = "in a shell"
_VERBS = (
    "access agent ask check completion demo edit governing guard init journal mcp ontology recall remember review root"
    " serve setup show status submit"
)
#: The beginning of a command in a hint.
COMMAND = rf"\bjidomem (?=(?:{_VERBS.replace(' ', '|')})\b)"


def hint_in_python(hint: str) -> str:
    """Return *hint* with its commands as calls of Python; others are marked as commands for a shell.

    >>> hint_in_python("list them with: jidomem ask timeline")
    'list them with: memory.ask("timeline")'
    >>> hint_in_python("the rules: jidomem access policy show")
    'the rules: in a shell, jidomem access policy show'
    """
    if "jidomem " not in hint:
        return hint
    for pattern, call in _CALLS:
        hint = re.sub(pattern, call, hint)
    return hint if SHELL in hint else re.sub(COMMAND, f"{SHELL}, jidomem ", hint)


class JidomemError(Exception):
    """The base of all errors: `code` for programs, `detail` what happened and where, `hint` what to do next."""

    code = "invalid_argument"

    def __init__(self, detail: str, *, hint: str = "", code: str | None = None) -> None:
        if code is not None:
            self.code = code
        if self.code not in CODES:
            raise ValueError(f"{self.code!r} is not in the error table")
        self.detail = detail
        self._hint = ""
        self.hint = hint
        self.position: int | None = None  # index of the intent in a batch
        super().__init__(detail)

    @property
    def hint(self) -> str:
        """Return what to do next, "" if unknown; tracebacks show it as a note in the words of Python.

        Its commands are those of a shell, from which HTTP and MCP translate them.
        """
        return self._hint

    @hint.setter
    def hint(self, hint: str) -> None:
        former = f"hint: {hint_in_python(self._hint)}"
        notes = [note for note in getattr(self, "__notes__", ()) if note != former]
        self._hint, self.__notes__ = hint, [*notes, f"hint: {hint_in_python(hint)}"] if hint else notes

    @property
    def violations(self) -> tuple[Violation, ...]:
        """Return the broken rules; empty for errors that are not about an intent."""
        return ()

    @property
    def http_status(self) -> int:
        """Return the HTTP status of this error."""
        return CODES[self.code][0]

    @property
    def exit_code(self) -> int:
        """Return the exit code of the command line for this error."""
        return CODES[self.code][1]

    def to_dict(self) -> dict[str, Any]:
        """Return the error as plain JSON values, the same in every interface."""
        place = {} if self.position is None else {"position": self.position}
        return {"code": self.code, "detail": self.detail, "hint": self.hint, **place}


class IntentRefused(JidomemError):
    """An intent breaks rules: up to `Violation.MOST` are listed.

    If all can be repaired mechanically, `fixed_intent` is the result.
    """

    def __init__(
        self, violations: Sequence[Violation], *, hint: str = "", fixed_intent: Mapping[str, Any] | None = None
    ) -> None:
        self._violations = tuple(violations[: Violation.MOST])
        self.fixed_intent = dict(fixed_intent) if fixed_intent is not None else None
        detail = "; ".join(violation.message for violation in self._violations)
        if len(violations) > Violation.MOST:
            detail += "; and more"
        if not hint:
            hint = "resubmit fixed_intent as it stands" if self.fixed_intent else _hint(self._violations)
        super().__init__(detail, hint=hint, code=self._violations[0].code)

    @property
    def violations(self) -> tuple[Violation, ...]:
        """Return the broken rules, in the order in which they were detected."""
        return self._violations

    def to_dict(self) -> dict[str, Any]:
        """Return the error with its violations and the repaired intent, if there is one."""
        return {
            **super().to_dict(),
            "violations": [violation.to_dict() for violation in self._violations],
            "fixed_intent": self.fixed_intent,
        }


_HINTS: Mapping[str, str] = {
    "iri_exists": "leave out `iri`; to replace that memory, name it in `supersedes`",
    "project_mismatch": "set `applies_to_project` to the project it is submitted to, or submit it to the project {}",
}


def _hint(violations: Sequence[Violation]) -> str:
    """Return the next step for violations without a mechanical repair, with fields in backquotes."""
    if len(violations) == 1:
        (only,) = violations
        remedy = only.remedy if only.field and not only.nearest and 0 < len(only.allowed) <= _MAX_ALLOWED else ""
        known = _HINTS.get(only.code, "").format(str(only.value).rpartition("/")[2])
        if hint := only.hint or known or remedy:
            return hint
    lines = dict.fromkeys(_remedy(violation, is_one=len(violations) == 1) for violation in violations)
    return "\n".join(lines) or "correct it and resubmit"


def _remedy(violation: Violation, *, is_one: bool) -> str:
    """Return the repair of a violation in words, with the name of its field unless it is the only one."""
    if violation.code == "unknown_term" and not violation.nearest:
        own = f"{proposing(str(violation.value))}; or correct `{violation.field}` and resubmit"
        return violation.hint or own
    if violation.field is None:
        return violation.hint or "correct it and resubmit"
    if violation.code == "unknown_field" and violation.nearest:
        return f"write {violation.nearest!r} for {violation.field!r}"
    if violation.nearest:
        return f"set `{violation.field}` to {violation.nearest!r}"
    if is_one or not violation.remedy:
        return f"correct `{violation.field}` and resubmit"
    is_named = f"`{violation.field}`" in violation.remedy or violation.field == "extra_triples"
    return violation.remedy if is_named else f"{violation.field}: {violation.remedy}"


def proposing(term: str) -> str:
    """Return how to propose an undeclared term; one of the shipped namespace in the project's own namespace."""
    name = term.removeprefix("https://jido.ai/ontology#")
    kind = "class" if name.rsplit("#", 1)[-1].rsplit("/", 1)[-1][:1].isupper() else "property"
    return f"propose it: jidomem ontology propose '{name}' --kind {kind} --definition TEXT --reason TEXT"


@dataclass(frozen=True, slots=True)
class ConflictItem:
    """An active memory that disagrees: its IRI, the reason, and the fields that supersede it and others like it.

    `coexists_with` is the field of an intent that lets all of them coexist; empty if one of them does not allow that.
    `is_withdrawn` is whether a referenced memory was withdrawn without a replacement. `confirm_with` are the fields by
    which the intent confirms it with further evidence, empty if it says something else. `until` is the `valid_from` of
    the intent if the memory was valid before it, else empty.
    """

    iri: str
    kind: str
    summary: str
    why: str
    resolve_with: Mapping[str, Any]
    coexists_with: tuple[str, ...] = ()
    is_withdrawn: bool = False
    confirm_with: Mapping[str, Any] = field(default_factory=dict)
    until: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the conflict as plain JSON values."""
        values = {"iri": self.iri, "kind": self.kind, "summary": self.summary, "why": self.why}
        return {**values, "resolve_with": dict(self.resolve_with)}


class Choice(NamedTuple):
    """A resolution of a conflict: the fields to resubmit with, those to be filled in by the author, and the effect.

    Its `name` is `choice` in JSON. `valid_until`, without fields, is a correction of the other memory before yours is
    submitted again; in Python `correct(project, other.iri, changes={"valid_until": other.until}, reason=...)` of the
    writer, with the conflict's `other = error.conflicts[0]`.
    """

    name: str
    fields: Mapping[str, Any]
    needs: tuple[str, ...]
    effect: str

    def to_dict(self) -> dict[str, Any]:
        """Return the choice as plain JSON values."""
        return {"choice": self.name, "fields": dict(self.fields), "needs": list(self.needs), "effect": self.effect}


class Conflict(JidomemError):
    """An intent contradicts an active memory, or supersedes a superseded one; nothing was written.

    `choices` are the resolutions, one of which the author takes. `items` has the fields of each conflicting memory by
    its IRI, as far as they are known. `needs_reason` is whether ending a memory of another author needs a reason.
    `successor` is the active memory in the place of the one that was to be corrected, if that has ended.
    """

    code = "conflict"

    def __init__(
        self,
        conflicts: Sequence[ConflictItem],
        *,
        items: Mapping[str, Mapping[str, Any]] | None = None,
        needs_reason: bool = True,
    ) -> None:
        self.needs_reason = needs_reason
        self.successor = ""
        self.conflicts = tuple(conflicts)
        self.items = dict(items or {})
        super().__init__("; ".join(conflict.why for conflict in self.conflicts), hint=self.choices_text())

    @property
    def hints_choices(self) -> bool:
        """Return whether the hint lists the choices: it does unless another hint was set."""
        return self.hint == self.choices_text()

    def choices_text(self, name_of: Callable[[str], str] = str) -> str:
        """Return the choices in words, with the fields to be filled in as *name_of* names them."""
        if [choice.name for choice in self.choices] == ["keep"]:
            return self.choices[0].effect
        ways = [*(f"{_choice_text(each, name_of)}: {each.effect}" for each in self.choices), *self.keeping]
        return f"choose one: {'; '.join(ways)}" if len(ways) > 1 else ways[0]

    @property
    def keeping(self) -> tuple[str, ...]:
        """Return in words the resolution without a submission, unless it is one of the choices."""
        return () if any(choice.name == "keep" for choice in self.choices) else ("or submit nothing: the other stays",)

    @property
    def names_ended(self) -> bool:
        """Return whether the intent names a memory that has ended already."""
        return any(conflict.kind == "stale_supersession" for conflict in self.conflicts)

    @property
    def names_withdrawn(self) -> bool:
        """Return whether the intent names a memory that was withdrawn without a successor."""
        return any(conflict.is_withdrawn for conflict in self.conflicts)

    @property
    def advice(self) -> str:
        """Return the words before the call about what is in the place of an ended memory."""
        return _READ_WHY if self.names_withdrawn else _READ_SUCCESSOR

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Return the resolutions that settle all conflicts at once."""
        replacing, needs = self.conflicts[0].resolve_with, ("reason",) * self.needs_reason
        if self.names_ended:
            is_withdrawn = self.names_withdrawn
            ways = [Choice("keep", {}, (), _STAYS_WITHDRAWN if is_withdrawn else _STAYS_REPLACED)]
            if any(replacing.values()):
                ends = "it ends, and yours takes its place" if replacing.get("supersedes") else "it is withdrawn"
                effect = _WITHDRAWAL_ENDS if is_withdrawn else f"read the memory that took the place first: {ends}"
                if not is_withdrawn and [*replacing] == ["supersedes"] and len(replacing["supersedes"]) == 1:
                    ways.insert(0, Choice("new", {"supersedes": []}, (), _SPLIT))
                return (Choice(next(iter(replacing)), replacing, needs, effect), *ways)
            new = Choice("new", replacing, (), "leave the named memory out: yours is recorded as a new memory")
            return (new, *ways) if replacing else (*ways,)  # without it nothing is left of a withdrawal
        ways = [Choice("supersedes", replacing, needs, _REPLACED if needs else _OWN_REPLACED)]
        if len(self.conflicts) == 1 and (until := self.conflicts[0].until):
            command = f'jidomem edit {self.conflicts[0].iri} --set valid_until={until} --reason "{REASON}"'
            later = Choice("valid_until", {}, (), f"if it holds until {until}: {command}, then submit yours again")
            effect = f"if it was wrong from the start: {ways[0].effect}; nothing holds before {until}"
            ways = [later, ways[0]._replace(effect=effect)]
        if len(self.conflicts) == 1 and (confirming := self.conflicts[0].confirm_with):
            ways.insert(0, Choice("confirm", confirming, (), _CONFIRMED))
        if fields := self.conflicts[0].coexists_with:
            is_named = any(conflict.kind == "convention_clash" for conflict in self.conflicts)
            needs = ("convention_name", "topic") if is_named else ("topic",)  # a convention clashes by either
            ways.append(Choice("coexists_with", {"coexists_with": [*fields]}, ("about",), _BESIDE))
            ways.append(Choice(needs[0], {}, needs, "if yours is on another matter: both stay active"))
        elif all(conflict.kind == "same_key" for conflict in self.conflicts):
            ways.append(Choice("key", {}, ("key",), "if yours is on another matter: store it under another key"))
        return tuple(ways)

    def to_dict(self) -> dict[str, Any]:
        """Return the error with the conflicting memories and the choices."""
        conflicts = [
            {**conflict.to_dict(), **({"item": dict(self.items[conflict.iri])} if conflict.iri in self.items else {})}
            for conflict in self.conflicts
        ]
        return {**super().to_dict(), "conflicts": conflicts, "choices": [choice.to_dict() for choice in self.choices]}


#: The reason in a choice that the agent has to say in its own words; as it is, it is refused.
REASON = "SAY WHY"
_READ_SUCCESSOR = "read its successor first (if both hold, supersede neither), and correct that if it is still wrong"
_SPLIT = "if both hold, as when one memory is split in two: yours is recorded as a new memory"
_READ_WHY = "read why it was withdrawn first, and if it holds again"
_STAYS_REPLACED = "submit nothing: the memory that took the place stays"
_STAYS_WITHDRAWN = "submit nothing: it stays withdrawn"
_WITHDRAWAL_ENDS = "read why it was withdrawn first: the withdrawal ends, and yours takes its place"
_OWN_REPLACED = "it ends, and yours takes its place"
_REPLACED = f"{_OWN_REPLACED}; of a memory that another agent asserted, say why"
_CONFIRMED = "if both say the same: one memory with the evidence of both; its author stays, and you confirm it"
_BESIDE = "both stay active, each in its own place: say in about (or convention_scope) where yours applies"


def _choice_text(choice: Choice, name_of: Callable[[str], str]) -> str:
    """Return the fields of *choice* as text, with placeholders for those to be filled in."""
    fields = [*(f"{name}={value!r}" for name, value in choice.fields.items()), *map(name_of, choice.needs)]
    return " with ".join(filter(None, (", ".join(fields[:1]), ", ".join(fields[1:])))) or choice.name


class IdempotencyMismatch(JidomemError):
    """This agent has used the idempotency key in this project before, for another intent."""

    code = "idempotency_mismatch"


class RequestRedacted(IdempotencyMismatch):
    """The first request with the idempotency key, or what a file has, was redacted: its text would be stored again."""

    code = "request_redacted"


class RevisionConflict(JidomemError):
    """A memory or one of its spaces has another revision than expected; nothing was changed."""

    code = "revision_conflict"


class PolicyDenied(JidomemError):
    """The role does not permit the action."""

    code = "policy_denied"


class Unauthenticated(JidomemError):
    """A token is missing, unknown or revoked."""

    code = "unauthenticated"


class NotFound(JidomemError):
    """Nothing, or more than one thing, has that name; `candidates` are the nearest names."""

    code = "not_found"

    def __init__(self, detail: str, *, hint: str = "", code: str | None = None, candidates: Sequence[str] = ()) -> None:
        self.candidates = tuple(candidates)
        super().__init__(detail, hint=hint, code=code)


class InvalidRequest(JidomemError):
    """The request is invalid; `violations` lists its faults if it may have several."""

    code = "invalid_argument"

    def __init__(
        self, detail: str, *, hint: str = "", code: str | None = None, violations: Sequence[Violation] = ()
    ) -> None:
        self._violations = tuple(violations)
        super().__init__(detail, hint=hint, code=code)

    @property
    def violations(self) -> tuple[Violation, ...]:
        """Return the faults, if they were collected."""
        return self._violations

    def to_dict(self) -> dict[str, Any]:
        """Return the error with its faults, if they were collected."""
        listed = [violation.to_dict() for violation in self._violations]
        return {**super().to_dict(), **({"violations": listed} if listed else {})}


class RequestTimeout(JidomemError):
    """The rest of a request did not arrive in the stated time."""

    code = "request_timeout"


class TooLarge(JidomemError):
    """A stated size was exceeded; `field` is the field of the intent that is too large, if any."""

    code = "payload_too_large"

    def __init__(self, detail: str, *, hint: str = "", code: str | None = None, field: str | None = None) -> None:
        self.field = field
        super().__init__(detail, hint=hint, code=code)


class QueryTimeout(JidomemError):
    """A query took longer than the stated time and was stopped."""

    code = "query_timeout"


class NotServed(JidomemError):
    """A method, or a requested or sent format, that is not served; `allow` lists the methods that are."""

    code = "method_not_allowed"

    def __init__(self, detail: str, *, hint: str = "", code: str | None = None, allow: Sequence[str] = ()) -> None:
        self.allow = tuple(allow)
        super().__init__(detail, hint=hint, code=code)


class Busy(JidomemError):
    """Another writer had the lock for too long, or there are too many requests; retry."""

    code = "busy"


class Failed(JidomemError):
    """A fault of this machine; nothing was written."""

    code = "write_failed"


class MemoryClosed(Failed):
    """The memory was closed before it was used; nothing was read or written."""

    code = "memory_closed"

    def __init__(self, place: str) -> None:
        super().__init__(
            f"the memory in {place} is closed",
            hint="open it again, and use it inside the block: with jidomem.open(...) as memory: ...",
        )


class MemoryMissing(Failed):
    """An open memory is no longer in its folder: that was moved or removed, or git checked out a branch without it."""

    code = "memory_missing"

    def __init__(self, place: str, had: str, *, may_be_on_branch: bool) -> None:
        branch = "check out the branch that has it, if git checked out another; " * may_be_on_branch
        super().__init__(
            f"the memory at {place} is gone or was moved (it had {had}); nothing was stored",
            hint=f"{branch}open it (start the server) with its new path, if it was moved; restore it from git or a"
            " backup, if it was removed; to begin an empty one there, jidomem init, and open it (restart the server)",
        )


class ModelUnavailable(JidomemError):
    """An embedding or language model failed, or returned an unusable result; nothing was changed."""

    code = "model_unavailable"


_RESTORED = "restore the file from git or a backup, then run: jidomem journal verify"


class JournalDamaged(JidomemError):
    """A commit file cannot be parsed, or does not match its digest."""

    code = "journal_damaged"

    def __init__(
        self, detail: str, *, path: str, line: int | None = None, commit: str | None = None, hint: str = ""
    ) -> None:
        self.path = path
        self.line = line
        self.commit = commit
        super().__init__(f"{path}{f':{line}' if line else ''}: {detail}", hint=hint or _RESTORED)

    def to_dict(self) -> dict[str, Any]:
        """Return the error with file, line and commit."""
        return {**super().to_dict(), "path": self.path, "line": self.line, "commit": self.commit}


class BranchChanged(JournalDamaged):
    """Commits of another git *branch* are left in the folder of a stream; nothing is lost.

    `commits` are the first digits of their ids; `path`, `line` and `commit` belong to a commit whose parent is missing.
    """

    code = "branch_changed"

    def __init__(self, detail: str, *, damage: JournalDamaged, branch: str, commits: Sequence[str], hint: str) -> None:
        self.path = damage.path
        self.line = damage.line
        self.commit = damage.commit
        self.branch = branch
        self.commits = tuple(commits)
        JidomemError.__init__(self, detail, hint=hint)

    def to_dict(self) -> dict[str, Any]:
        """Return the error with its branch and the commits of that branch."""
        return {**super().to_dict(), "branch": self.branch, "commits": [*self.commits]}


T = TypeVar("T")
#: The similarity, from 0 to 1, from which on one name may be a misspelling of another.
_LIKENESS = 0.5
#: That from which the id of a project may be one.
MISSPELT = 0.75


def nearest_names(name: object, names: Iterable[str], most: int = 1, likeness: float = _LIKENESS) -> list[str]:
    """Return up to *most* of *names* that are spelled like *name*, the most similar first.

    >>> nearest_names("sumary", ["topic", "summary"])
    ['summary']
    """
    from difflib import get_close_matches  # takes 1 ms, and only an error needs it

    return get_close_matches(str(name), list(names), most, likeness)


def did_you_mean(name: object, names: Iterable[str], otherwise: str) -> str:
    """Return a hint with the nearest of *names*, or *otherwise* if none is similar to *name*.

    >>> did_you_mean("sumary", ["topic", "summary"], "see docs/intents.md")
    "did you mean 'summary'?"
    """
    near = nearest_names(name, names)
    return f"did you mean {near[0]!r}?" if near else otherwise


def hint_keywords(function: Callable[..., T]) -> Callable[..., T]:
    """Return *function* with a TypeError for unknown keywords that names the nearest valid one.

    >>> @hint_keywords
    ... def greet(name): ...
    >>> greet(nmae="ana")
    Traceback (most recent call last):
    TypeError: greet() got an unexpected keyword argument 'nmae'; did you mean 'name'?
    """
    kinds = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    known = [each.name for each in signature(function).parameters.values() if each.kind in kinds]
    shown = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def call(*args: Any, **keywords: Any) -> T:
        try:
            return function(*args, **keywords)
        except TypeError:
            unknown = next((name for name in keywords if name not in known), None)
            near = nearest_names(unknown or "", known)
            if not near:
                raise
        text = f"{shown}() got an unexpected keyword argument {unknown!r}; did you mean {near[0]!r}?"
        raise TypeError(text)

    return call


def hint_fields(cls: type[T]) -> type[T]:
    """Return the dataclass *cls* with hints for misspelt fields in its constructor."""
    setattr(cls, "__init__", hint_keywords(cls.__init__))  # noqa: B010  # mypy allows no plain assignment to it
    return cls
