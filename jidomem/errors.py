"""The errors jidomem raises: one tree, one code each, and the HTTP status and exit code each door answers with.

JidomemError
├── IntentRefused          an intent breaks a rule (422, exit 3)
├── PolicyDenied           a role may not do this (403, exit 3)
├── Unauthenticated        no token where one is needed, or one that is none (401, exit 3)
├── Conflict               an intent disagrees with what is active (409, exit 5)
├── RevisionConflict       working memory has moved on from the revision expected (409, exit 5)
├── NotFound               nothing is there by that name (404, exit 4)
├── InvalidRequest         the request cannot be read (400, exit 2)
├── RequestTimeout         the rest of a request did not come in the stated time (408, exit 1)
├── TooLarge               a stated size was exceeded (413, 414, 431, exit 1)
├── QueryTimeout           a query was not answered in the stated time (503, exit 1)
├── NotServed              this way of asking is not served here (405, 406, 415, exit 2)
├── Busy                   another writer holds the lock, or too much is asked at once (503, 429, exit 6)
├── Failed                 this machine could not do it: disk, configuration, missing extra (exit 1)
└── JournalDamaged         a commit file does not parse or verify (500, exit 7)
    └── BranchChanged      commits of another git branch are left in the folder (409, exit 7)

Keyword hints: a misspelt keyword argument of a public name is answered with the nearest one there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar

#: How many allowed values a hint names.
_FEW = 12
Repair = Callable[[Mapping[str, Any]], dict[str, Any]]

#: code -> (HTTP status, exit code); docs/reference/errors.md has each code in words.
CODES: Mapping[str, tuple[int, int]] = {
    code: answer
    for codes, answer in (
        ("missing_required_fields missing_rationale unknown_type invalid_confidence invalid_iri iri_exists", (422, 3)),
        ("unknown_field unknown_reference project_mismatch unknown_term shape_violation", (422, 3)),
        ("conflict idempotency_mismatch revision_conflict", (409, 5)),
        ("policy_denied", (403, 3)),
        ("unauthenticated", (401, 3)),
        ("update_refused federation_refused index_is_derived", (403, 3)),
        ("invalid_project unknown_project not_found unknown_query", (404, 4)),
        ("invalid_argument malformed_query malformed_json", (400, 2)),
        ("unsupported", (501, 2)),
        ("method_not_allowed", (405, 2)),
        ("not_acceptable", (406, 2)),
        ("unsupported_media_type", (415, 2)),
        ("request_timeout", (408, 1)),
        ("payload_too_large", (413, 1)),
        ("uri_too_long", (414, 1)),
        ("headers_too_large", (431, 1)),
        ("result_too_large", (413, 1)),
        ("query_timeout", (503, 1)),
        ("busy", (503, 6)),
        ("too_many_requests", (429, 6)),
        ("index_behind", (503, 6)),
        ("write_failed", (507, 1)),
        ("invalid_config missing_extra", (500, 1)),
        ("store_unavailable store_unreachable store_unfit outcome_unknown", (503, 1)),
        ("provider_failed", (502, 1)),
        ("model_unavailable memory_closed", (503, 1)),
        ("journal_damaged", (500, 7)),
        ("branch_changed", (409, 7)),
    )
    for code in codes.split()
}

#: Refusals that say nothing about an intent: the next one of a stream would meet the same.
STOPPING = (
    *("busy", "write_failed", "journal_damaged", "branch_changed", "invalid_config", "invalid_project"),
    *("unknown_project", "unauthenticated", "store_unreachable", "outcome_unknown", "memory_closed"),
)


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule, with what an agent needs to repair it.

    `field` names the intent's field, `shape` the rule's IRI, `value` what was given, `allowed` the values that would
    do, `nearest` the most similar of them. `hint` says how to put it right, with fields in backquotes. `repair` mends
    the intent (a mapping in, a mended copy out) where that can be done without asking anybody; it is left out of the
    answer, where `fixed_intent` shows it applied.
    """

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
        """Return how to put it right: its own hint, else what the field and its values say."""
        if self.hint or self.field is None:
            return self.hint
        if self.nearest:
            return f"did you mean {self.nearest!r}?"
        if 0 < len(self.allowed) <= _FEW:
            return f"set `{self.field}` to one of: {', '.join(self.allowed)}"
        return f"correct `{self.field}`"

    def to_dict(self) -> dict[str, Any]:
        """Return the violation as plain JSON values."""
        return {
            "code": self.code,
            "field": self.field,
            "shape": self.shape,
            "message": self.message,
            "value": self.value,
            "allowed": list(self.allowed),
            "nearest": self.nearest,
            "hint": self.remedy,
        }


class JidomemError(Exception):
    """The base of all errors: `code` for programs, `detail` says what and where, `hint` how to put it right."""

    code = "invalid_argument"

    def __init__(self, detail: str, *, hint: str = "", code: str | None = None) -> None:
        if code is not None:
            self.code = code
        if self.code not in CODES:
            raise ValueError(f"{self.code!r} is not in the error table")
        self.detail = detail
        self._hint = ""
        self.hint = hint
        self.position: int | None = None  # which intent of a batch this is about, from 0
        super().__init__(detail)

    @property
    def hint(self) -> str:
        """Return how to put it right, empty where nobody knows; tracebacks show it as a note."""
        return self._hint

    @hint.setter
    def hint(self, hint: str) -> None:
        notes = [note for note in getattr(self, "__notes__", ()) if note != f"hint: {self._hint}"]
        self._hint, self.__notes__ = hint, [*notes, f"hint: {hint}"] if hint else notes

    @property
    def violations(self) -> tuple[Violation, ...]:
        """Return the single broken rules; empty for errors that are not about an intent."""
        return ()

    @property
    def http_status(self) -> int:
        """Return the HTTP status this error is answered with."""
        return CODES[self.code][0]

    @property
    def exit_code(self) -> int:
        """Return the exit code the command line ends with."""
        return CODES[self.code][1]

    def to_dict(self) -> dict[str, Any]:
        """Return the error as plain JSON values, as every door shows it."""
        place = {} if self.position is None else {"position": self.position}
        return {"code": self.code, "detail": self.detail, "hint": self.hint, **place}


class IntentRefused(JidomemError):
    """An intent breaks rules: every one is listed, and where all are mechanical `fixed_intent` would be accepted."""

    def __init__(
        self, violations: Sequence[Violation], *, hint: str = "", fixed_intent: Mapping[str, Any] | None = None
    ) -> None:
        self._violations = tuple(violations)
        self.fixed_intent = dict(fixed_intent) if fixed_intent is not None else None
        detail = "; ".join(violation.message for violation in self._violations)
        if not hint:
            hint = "resubmit fixed_intent as it stands" if self.fixed_intent else _hint(self._violations)
        super().__init__(detail, hint=hint, code=self._violations[0].code)

    @property
    def violations(self) -> tuple[Violation, ...]:
        """Return the broken rules, in the order they were found."""
        return self._violations

    def to_dict(self) -> dict[str, Any]:
        """Return the error with its violations and, where there is one, the repaired intent."""
        return {
            **super().to_dict(),
            "violations": [violation.to_dict() for violation in self._violations],
            "fixed_intent": self.fixed_intent,
        }


_HINTS: Mapping[str, str] = {
    "iri_exists": "leave out `iri`; to replace that memory, name it in `supersedes`",
    "project_mismatch": "set `applies_to_project` to the project it is submitted to, or submit it to the other one",
}


def _hint(violations: Sequence[Violation]) -> str:
    """Return the next step for refusals no machine can mend, with fields in backquotes."""
    if len(violations) == 1:
        (only,) = violations
        values = only.remedy if only.field and not only.nearest and 0 < len(only.allowed) <= _FEW else ""
        if hint := only.hint or _HINTS.get(only.code) or values:
            return hint
    lines = dict.fromkeys(_remedy(violation, is_one=len(violations) == 1) for violation in violations)
    return "\n".join(lines) or "correct it and resubmit"


def _remedy(violation: Violation, *, is_one: bool) -> str:
    """Return how one broken rule is put right, by the name of its field where there are others."""
    if violation.code == "unknown_term" and not violation.nearest:
        return f"{_proposing(str(violation.value))}; or correct `{violation.field}` and resubmit"
    if violation.field is None:
        return violation.hint or "correct it and resubmit"
    if violation.code == "unknown_field" and violation.nearest:
        return f"write {violation.nearest!r} for {violation.field!r}"
    if violation.nearest:
        return f"set `{violation.field}` to {violation.nearest!r}"
    if is_one or not violation.remedy:
        return f"correct `{violation.field}` and resubmit"
    return violation.remedy if f"`{violation.field}`" in violation.remedy else f"{violation.field}: {violation.remedy}"


def _proposing(term: str) -> str:
    """Return how a term that nobody declared may be proposed; one of the shipped namespace in the project's own."""
    name = term.removeprefix("https://jido.ai/ontology#")
    kind = "class" if name.rsplit("#", 1)[-1].rsplit("/", 1)[-1][:1].isupper() else "property"
    return f"propose it: jidomem ontology propose '{name}' --kind {kind} --definition TEXT --reason TEXT"


@dataclass(frozen=True, slots=True)
class ConflictItem:
    """One active item that disagrees: its IRI, the reason, and the fields that replace it and its like at once.

    `coexists_with` is that field of an intent that lets all of them stand; empty where one of them cannot. A named
    memory that ended `is_withdrawn` where nothing took its place.
    """

    iri: str
    kind: str
    summary: str
    why: str
    resolve_with: Mapping[str, Any]
    coexists_with: tuple[str, ...] = ()
    is_withdrawn: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the conflict as plain JSON values."""
        told = {"iri": self.iri, "kind": self.kind, "summary": self.summary, "why": self.why}
        return {**told, "resolve_with": dict(self.resolve_with)}


@dataclass(frozen=True, slots=True)
class Choice:
    """One way out of a contradiction: the fields to resubmit with, those whose values the author gives, the effect."""

    name: str
    fields: Mapping[str, Any]
    needs: tuple[str, ...]
    effect: str

    def to_dict(self) -> dict[str, Any]:
        """Return the choice as plain JSON values."""
        return {"choice": self.name, "fields": dict(self.fields), "needs": list(self.needs), "effect": self.effect}


class Conflict(JidomemError):
    """An intent disagrees with an active item, or supersedes what is already superseded; nothing was written.

    `choices` are the ways out, of which the author takes one. `items` gives the fields of each conflicting memory by
    its IRI, as far as they are known. The author of another memory than their own `needs_reason` to end it.
    """

    code = "conflict"

    def __init__(
        self,
        conflicts: Sequence[ConflictItem],
        *,
        items: Mapping[str, Mapping[str, Any]] | None = None,
        needs_reason: bool = True,
    ) -> None:
        self._needs = ("reason",) if needs_reason else ()
        self.conflicts = tuple(conflicts)
        self.items = dict(items or {})
        super().__init__("; ".join(conflict.why for conflict in self.conflicts), hint=self._spelt_choices())

    @property
    def hints_choices(self) -> bool:
        """Return whether the hint spells the choices out, and nobody gave it another one."""
        return self.hint == self._spelt_choices()

    def _spelt_choices(self) -> str:
        return "choose one: " + "; ".join([*(f"{_spelt(each)}: {each.effect}" for each in self.choices), *self.keeping])

    @property
    def keeping(self) -> tuple[str, ...]:
        """Return in words the way out that submits nothing, unless it is one of the choices."""
        return () if any(choice.name == "keep" for choice in self.choices) else ("or submit nothing: the other stays",)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Return the ways out of all conflicts at once."""
        replacing = self.conflicts[0].resolve_with
        if any(conflict.kind == "stale_supersession" for conflict in self.conflicts):
            is_withdrawn = any(conflict.is_withdrawn for conflict in self.conflicts)
            ways = [Choice("keep", {}, (), _STAYS_WITHDRAWN if is_withdrawn else _STAYS_REPLACED)]
            if any(replacing.values()):
                ends = "it ends, and yours takes its place" if replacing.get("supersedes") else "it is withdrawn"
                effect = _WITHDRAWAL_ENDS if is_withdrawn else f"read the memory that took the place first: {ends}"
                return (Choice(next(iter(replacing)), replacing, self._needs, effect), *ways)
            return (
                Choice("new", replacing, (), "leave the named memory out: yours is recorded as a new memory"),
                *ways,
            )
        ways = [Choice("supersedes", replacing, self._needs, _REPLACED if self._needs else _OWN_REPLACED)]
        if beside := self.conflicts[0].coexists_with:
            is_named = any(conflict.kind == "convention_clash" for conflict in self.conflicts)
            name = "convention_name" if is_named else "topic"
            ways.append(Choice("coexists_with", {"coexists_with": [*beside]}, ("about",), _BESIDE))
            ways.append(Choice(name, {}, (name,), "if yours is on another matter: both stay active"))
        return tuple(ways)

    def to_dict(self) -> dict[str, Any]:
        """Return the error with each conflicting item, and the choices there are."""
        conflicts = [
            {**conflict.to_dict(), **({"item": dict(self.items[conflict.iri])} if conflict.iri in self.items else {})}
            for conflict in self.conflicts
        ]
        return {**super().to_dict(), "conflicts": conflicts, "choices": [choice.to_dict() for choice in self.choices]}


_STAYS_REPLACED = "submit nothing: the memory that took the place stays active"
_STAYS_WITHDRAWN = "submit nothing: it stays withdrawn"
_WITHDRAWAL_ENDS = "read why it was withdrawn first: the withdrawal ends, and yours takes its place"
_OWN_REPLACED = "it ends, and yours takes its place"
_REPLACED = f"{_OWN_REPLACED}; of a memory that another agent asserted, say why"
_BESIDE = "both stay active, each in its own place: say in about (or convention_scope) where yours applies"


def _spelt(choice: Choice) -> str:
    """Return the fields of *choice*, those to be given by their names."""
    fields = [*(f"{name}={value!r}" for name, value in choice.fields.items()), *choice.needs]
    return " with ".join(filter(None, (", ".join(fields[:1]), ", ".join(fields[1:])))) or choice.name


class IdempotencyMismatch(JidomemError):
    """The idempotency key was used before, by this agent in this project, for another intent."""

    code = "idempotency_mismatch"


class RevisionConflict(JidomemError):
    """A memory or a space of it has moved on from the revision that was expected; nothing was changed."""

    code = "revision_conflict"


class PolicyDenied(JidomemError):
    """A role may not do this."""

    code = "policy_denied"


class Unauthenticated(JidomemError):
    """No token where one is needed, or one that is none (any more)."""

    code = "unauthenticated"


class NotFound(JidomemError):
    """Nothing, or more than one thing, is there by that name; `candidates` are the nearest names."""

    code = "not_found"

    def __init__(self, detail: str, *, hint: str = "", code: str | None = None, candidates: Sequence[str] = ()) -> None:
        self.candidates = tuple(candidates)
        super().__init__(detail, hint=hint, code=code)


class InvalidRequest(JidomemError):
    """The request cannot be read; `violations` lists its faults where it may have several."""

    code = "invalid_argument"

    def __init__(
        self, detail: str, *, hint: str = "", code: str | None = None, violations: Sequence[Violation] = ()
    ) -> None:
        self._violations = tuple(violations)
        super().__init__(detail, hint=hint, code=code)

    @property
    def violations(self) -> tuple[Violation, ...]:
        """Return the faults, where they were gathered."""
        return self._violations

    def to_dict(self) -> dict[str, Any]:
        """Return the error with its faults, where they were gathered."""
        listed = [violation.to_dict() for violation in self._violations]
        return {**super().to_dict(), **({"violations": listed} if listed else {})}


class RequestTimeout(JidomemError):
    """The rest of a request did not come in the stated time."""

    code = "request_timeout"


class TooLarge(JidomemError):
    """A stated size was exceeded; `field` is the field of the intent that is too large, if it is one."""

    code = "payload_too_large"

    def __init__(self, detail: str, *, hint: str = "", code: str | None = None, field: str | None = None) -> None:
        self.field = field
        super().__init__(detail, hint=hint, code=code)


class QueryTimeout(JidomemError):
    """A query was not answered in the stated time, and was stopped."""

    code = "query_timeout"


class NotServed(JidomemError):
    """A method, a format asked for or a format sent that is not served; `allow` lists the methods that are."""

    code = "method_not_allowed"

    def __init__(self, detail: str, *, hint: str = "", code: str | None = None, allow: Sequence[str] = ()) -> None:
        self.allow = tuple(allow)
        super().__init__(detail, hint=hint, code=code)


class Busy(JidomemError):
    """Another writer held the lock past the wait, or too much is asked at once; trying again is right."""

    code = "busy"


class Failed(JidomemError):
    """This machine could not do it; nothing was written."""

    code = "write_failed"


class MemoryClosed(Failed):
    """The open memory that was used was closed before; nothing is read of it or kept in it any more."""

    code = "memory_closed"

    def __init__(self, place: str) -> None:
        super().__init__(
            f"the memory in {place} was closed, and is still used",
            hint="open it anew, and use what holds it while it is open: with jidomem.open(...) as memory: ...",
        )


class ModelUnavailable(JidomemError):
    """An embedding or language model failed, or gave what cannot be used; nothing was changed for it."""

    code = "model_unavailable"


_RESTORED = (
    "restore the file from git or a backup, then run: jidomem journal verify"
    "   (then change the memory with: jidomem edit ID --set FIELD=VALUE --reason TEXT)"
)


class JournalDamaged(JidomemError):
    """A commit file does not parse, or does not hold what its digest says."""

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
    """Commits written on another git *branch* are left in the folder of a stream; nothing is lost.

    `commits` are the first digits of their ids; `path`, `line` and `commit` are those of one that lacks its parent.
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
        """Return the error with its branch and the commits that belong there."""
        return {**super().to_dict(), "branch": self.branch, "commits": [*self.commits]}


T = TypeVar("T")
#: How alike two names are, from 0 to 1, so that one may be meant by the other.
_LIKENESS = 0.5


def nearest_names(name: object, names: Iterable[str], most: int = 1, likeness: float = _LIKENESS) -> list[str]:
    """Return at most *most* of *names* that are spelled like *name*, the most alike first.

    >>> nearest_names("sumary", ["topic", "summary"])
    ['summary']
    """
    return get_close_matches(str(name), list(names), most, likeness)


def did_you_mean(name: object, names: Iterable[str], otherwise: str) -> str:
    """Return the hint that names the nearest of *names*, *otherwise* where none is like *name*.

    >>> did_you_mean("sumary", ["topic", "summary"], "see docs/intents.md")
    "did you mean 'summary'?"
    """
    near = nearest_names(name, names)
    return f"did you mean {near[0]!r}?" if near else otherwise


def hint_keywords(function: Callable[..., T]) -> Callable[..., T]:
    """Return *function*, whose TypeError for an unknown keyword names the nearest known one.

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
    """Return the dataclass *cls*, whose constructor hints at misspelt fields."""
    setattr(cls, "__init__", hint_keywords(cls.__init__))  # noqa: B010  # mypy allows no plain assignment to it
    return cls
