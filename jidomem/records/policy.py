"""The write policy and the access policy of a project: rules as data, given to the stages of the pipeline.

The access policy decides who may assert, propose or write nothing, by role, kind and place.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from shlex import join
from typing import NamedTuple

from jidomem.base.containers import grouped, reachable
from jidomem.errors import InvalidRequest
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, iri, parse_literal

ON_CONFLICT = ("refuse", "propose", "warn")
ON_SECRET = ("refuse", "warn", "off")
ON_SIMILAR = ("ask", "propose", "off")
JUDGES = ("compiled", "pyshacl")
#: The role of an agent without a granted role.
DEFAULT_ROLE = "Implementer"


class AgentPolicy(NamedTuple):
    """The role and capabilities in the declaration of an agent (local names of the ontology)."""

    role: str = DEFAULT_ROLE
    capabilities: tuple[str, ...] = ("CanQueryMemory",)


@dataclass(frozen=True, slots=True)
class Policy:
    """The write policy.

    `on_conflict` maps a kind family (`decision`, `convention`, `fact`, `task` ...) to refuse, propose or warn; the
    default is refuse. `on_similar` maps one to ask, propose or off: the receipt shows the active memories that the new
    one is near to, which is the default; it then becomes a proposal; or they are not looked up. `strict` refuses
    undeclared agents and sessions, and terms of foreign vocabularies. `create_projects` lets a first write create its
    project. `judge` is the validator of shapes: `compiled`, or the reference implementation `pyshacl`. `secrets` is the
    treatment of likely keys and passwords: refuse, warn or off. `preset` names the initial rules of the access policy
    of a project; rules in its journal replace them.
    """

    on_conflict: Mapping[str, str] = field(default_factory=dict)
    on_similar: Mapping[str, str] = field(default_factory=dict)
    agents: Mapping[str, AgentPolicy] = field(default_factory=dict)
    strict: bool = False
    create_projects: bool = True
    judge: str = "compiled"
    secrets: str = "refuse"
    preset: str = "open"


LITERAL_LIMIT = 256 * 1024  # bytes of UTF-8 in one text
LITERAL_MOST = 2 * 1024 * 1024  # the largest limit: escaped to 6 times its size, a Turtle parser still reads it
TRIPLES_LIMIT = 500  # extra triples in one intent
ENTRIES_LIMIT = 1_000  # entries of about, evidence or alternatives in one intent


VERDICTS = ("assert", "propose", "deny")
UNSET = "unset"
#: Ways in which proposals are confirmed without a curator.
CONFIRMS = ("restated", "unopposed")
#: Role in a token or on the command line -> role of the ontology.
ROLE_WORDS: Mapping[str, str] = {
    "agent": "Implementer",
    "curator": "Curator",
    "admin": "Administrator",
    "reader": "MemoryReader",
}
CURATORS = frozenset(("Curator", "Administrator", "Reviewer"))
#: Role -> the roles that have its permissions, too.
_ABOVE: Mapping[str, frozenset[str]] = {
    "Curator": frozenset(("Administrator", "Reviewer")),
    "Reviewer": frozenset(("Administrator", "Curator")),
}
#: The kinds of a rule beside the types of memory: work sessions, and descriptions of other things.
OTHER_WRITES = ("session", "description")
KINDS = (*vocab.CLASS_OF_TYPE, *OTHER_WRITES)
_READERS = "MemoryReader"


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """One change of a policy; a field that is None applies to all values.

    A rule `allows` something, a grant gives `agent` a role, and the other fields control how proposals are confirmed
    without a curator. `agent` is an IRI; `recorded`, `by` and `reason` are the time, author and reason of the change.
    """

    agent: str | None = None
    role: str | None = None
    kind: str | None = None
    path: str | None = None
    scope: str | None = None
    allows: str | None = None
    grants: str | None = None
    confirms: str | None = None
    days: int | None = None
    reason: str | None = None
    by: str | None = None
    recorded: str = ""
    node: str = ""

    @property
    def slot(self) -> tuple[str | None, ...]:
        """Return the key of the change: a later change with the same key replaces it."""
        if self.grants is not None:
            return ("grant", self.agent)
        if self.confirms is not None:
            return ("confirm", self.confirms, self.kind)
        return ("rule", self.agent, self.role, self.kind, self.path, self.scope)

    def __str__(self) -> str:
        """Return the change in words."""
        subject = vocab.local_name(self.agent) if self.agent else self.role or "every agent"
        if self.grants is not None:
            return f"{subject} has the role {self.grants}"
        target = self.kind or "memories"
        if self.confirms is not None:
            after = f" for {self.days} days" if self.days is not None else ""
            which = "restated by another agent" if self.confirms == "restated" else f"unopposed{after}"
            done = "waits for a curator" if self.allows == UNSET else "is confirmed"
            return f"a proposed {self.kind or 'memory'} {which} {done}"
        if self.scope:
            target += f" of {self.scope}"
        where = f" about {self.path}" if self.path else ""
        verb = {"assert": "may assert", "propose": "may only propose", "deny": "may not write"}
        return f"{subject} {verb.get(self.allows or '', 'is under no rule for')} {target}{where}"

    @property
    def effect(self) -> tuple[str | int | None, ...]:
        """Return the value of the change: two changes with the same key and the same value agree."""
        return (self.allows, self.grants, self.days)

    @property
    def command(self) -> str:
        """Return the command that makes this change again."""
        agent = vocab.local_name(self.agent) if self.agent else None
        fields = [("--role", self.role), ("--kind", self.kind), ("--about", self.path), ("--scope", self.scope)]
        if self.grants is not None:
            words = ["grant", agent or "", self.grants]
        elif self.confirms is not None:
            words = ["confirm", self.confirms]
            fields = [("--kind", self.kind), ("--days", str(self.days) if self.days is not None else None)]
        else:
            words = ["set", self.allows or "", *(("--for", agent) if agent else ())]
        options = [part for option, value in fields if value for part in (option, value)]
        off = ["--off"] if self.confirms is not None and self.allows == UNSET else []
        return f"jidomem access policy {join([*words, *options, *off])}"

    def applies_to(self, agent: str, role: str, kinds: Sequence[str], place: str | None, scope: str | None) -> bool:
        """Return whether this rule applies to a write of *agent*; *kinds* are own classes, the type and its family."""
        return (
            (self.agent is None or self.agent == agent)
            and (self.role is None or self.role == role or role in _ABOVE.get(self.role, ()))
            and (self.kind is None or self.kind in kinds)
            and (self.scope is None or self.scope == scope)
            and (self.path is None or (place is not None and is_below(place, self.path)))
        )

    def specificity(self, role: str, kinds: Sequence[str]) -> tuple[int, ...]:
        """Return the specificity of this rule for a role and kinds: the most specific rule counts."""
        exact = 0 if self.kind is None else len(kinds) - kinds.index(self.kind)
        named = 0 if self.role is None else 2 if self.role == role else 1
        return (self.agent is not None, len(self.path or ""), self.scope is not None, exact, named)


_RECORDED_IN, _PARENT, _POSITION = map(vocab.jido, ("recordedIn", "parent", "position"))


def _by_time(change: PolicyChange) -> tuple[str, str]:
    return change.recorded or "~", change.node


#: The built-in rule: an agent that only reads changes nothing.
BUILT_IN = (PolicyChange(role=_READERS, allows="deny"),)
PRESETS: Mapping[str, tuple[PolicyChange, ...]] = {
    "open": (),
    "curated": (
        *(PolicyChange(kind=kind, allows="propose") for kind in ("architectural_decision", "convention")),
        *(
            PolicyChange(kind=kind, role="Curator", allows="assert")
            for kind in ("architectural_decision", "convention")
        ),
    ),
}


@dataclass(frozen=True)
class AccessPolicy:
    """The policy of a project at a moment: the active changes, on top of the rules of the root.

    `base` are the rules of the root, and `roles` the roles of its configuration, by plain name; a change with the same
    key replaces them.
    """

    changes: tuple[PolicyChange, ...] = ()
    base: tuple[PolicyChange, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def active_changes(self) -> tuple[PolicyChange, ...]:
        """Return the newest change of each slot, oldest first, without those that only unset a rule."""
        newest: dict[tuple[str | None, ...], PolicyChange] = {change.slot: change for change in (*BUILT_IN, *self.base)}
        for change in sorted(self.changes, key=_by_time):
            newest.pop(change.slot, None)
            newest[change.slot] = change
        return tuple(change for change in newest.values() if change.allows != UNSET)

    @cached_property
    def rules(self) -> tuple[PolicyChange, ...]:
        """Return the active rules."""
        return tuple(change for change in self.active_changes if change.grants is None and change.confirms is None)

    @cached_property
    def confirmations(self) -> tuple[PolicyChange, ...]:
        """Return the ways in which proposals are confirmed without a curator."""
        return tuple(change for change in self.active_changes if change.confirms is not None)

    @cached_property
    def granted(self) -> Mapping[str, str]:
        """Return the roles of agents other than the default, by IRI."""
        roles = {f"{vocab.BASE}agents/{name}": role for name, role in self.roles.items()}
        granted = {change.agent: change.grants for change in self.active_changes if change.agent and change.grants}
        return {**roles, **granted}

    @cached_property
    def is_open(self) -> bool:
        """Return whether there are no rules but the built-in one for readers."""
        return self.rules == BUILT_IN

    @property
    def administrators(self) -> list[str]:
        """Return the agents who may change the policy; without any, every agent may."""
        return sorted(agent for agent, role in self.granted.items() if role == "Administrator")

    @property
    def curators(self) -> list[str]:
        """Return the agents who may judge, administrators included; without any, every agent may."""
        return sorted(agent for agent, role in self.granted.items() if role in CURATORS)

    def changes_to(self, preset: str) -> list[PolicyChange]:
        """Return the changes that leave the built-in rule and those of *preset* as the only rules."""
        wanted = {rule.slot: rule for rule in (*BUILT_IN, *PRESETS[preset])}
        present = {rule.slot: rule.allows for rule in self.rules}
        others = [rule for rule in self.rules if rule.slot not in wanted]
        return [
            *(rule for slot, rule in wanted.items() if present.get(slot) != rule.allows),
            *(PolicyChange(each.agent, each.role, each.kind, each.path, each.scope, allows=UNSET) for each in others),
        ]

    def role_of(self, agent: str) -> str:
        """Return the role of the agent with this IRI."""
        return self.granted.get(agent, DEFAULT_ROLE)

    def verdict(
        self, agent: str, role: str, kinds: Sequence[str], places: Iterable[str] = (), scope: str | None = None
    ) -> tuple[str, PolicyChange | None]:
        """Return assert, propose or deny, and its rule; of several places the strictest counts."""
        if self.is_open and role != _READERS:
            return "assert", None
        verdicts = [self._at(agent, role, kinds, place, scope) for place in ([*places] or (None,))]
        return max(verdicts, key=lambda verdict: VERDICTS.index(verdict[0]))

    def _at(
        self, agent: str, role: str, kinds: Sequence[str], place: str | None, scope: str | None
    ) -> tuple[str, PolicyChange | None]:
        rules = [rule for rule in self.rules if rule.applies_to(agent, role, kinds, place, scope)]
        if role == _READERS:  # a rule for every agent does not apply to readers
            rules = [rule for rule in rules if rule.role is not None or rule.agent is not None]
        if not rules:
            return "assert", None
        closest = max(rules, key=lambda rule: (rule.specificity(role, kinds), VERDICTS.index(rule.allows or "assert")))
        return closest.allows or "assert", closest


def unsettled(
    changes: Iterable[PolicyChange], values: Callable[[Term, Term], Iterable[Term]]
) -> list[tuple[PolicyChange, PolicyChange]]:
    """Return the pairs of differing changes with the same key that two branches made: the one that counts comes first.

    A change that was recorded after both of them settles the pair. *values* returns the values of a property of a node:
    a change names its commit, a commit its parents.
    """
    by_slot = grouped((change.slot, change) for change in sorted(changes, key=_by_time))
    pairs = []
    for same in by_slot.values():
        if len({change.effect for change in same}) < 2:
            continue
        commits = [next(iter(values(iri(change.node), _RECORDED_IN)), None) for change in same]
        later = [_before(commit, commits, values) for commit in commits]
        last = [
            change
            for change, commit in zip(same, commits, strict=True)
            if not any(commit in ancestors for ancestors in later)
        ]
        pairs += [(last[-1], other) for other in last[:-1] if other.effect != last[-1].effect]
    return pairs


def _before(
    commit: Term | None, among: Sequence[Term | None], values: Callable[[Term, Term], Iterable[Term]]
) -> set[Term]:
    """Return those of *among* that are ancestors of *commit*."""
    if commit is None:
        return set()

    def position(node: Term) -> int:
        return max((int(parse_literal(value).text) for value in values(node, _POSITION)), default=0)

    first = min(position(node) for node in among if node is not None)

    def parents(node: Term) -> list[Term]:
        return [parent for parent in values(node, _PARENT) if position(parent) >= first]

    return reachable(parents(commit), parents).intersection(node for node in among if node is not None)


def is_below(place: str, path: str) -> bool:
    """Return whether *place* is *path*, or is in that folder or module.

    >>> is_below("./src/billing/api.py", "src/billing"), is_below("src/billing2", "src/billing")
    (True, False)
    >>> is_below("Shop.Billing.Invoice", "Shop.Billing")
    True
    """
    place, path = _plain(place), _plain(path)
    ends = ("/",) if "/" in path else ("/", ".")
    return place == path or any(place.startswith(path.rstrip("/") + end) for end in ends)


def validated(change: PolicyChange, own_kinds: Sequence[str] = ()) -> PolicyChange:
    """Return *change* with its path in plain form; raise InvalidRequest unless it is one complete change.

    *own_kinds* are the classes of the project that a rule may name beside the types of memory.
    """
    settings = [change.grants, change.confirms, None if change.confirms else change.allows]
    if sum(value is not None for value in settings) != 1:
        raise InvalidRequest(
            "a change of policy sets a rule, grants a role or confirms proposals, and one of them at a time",
            hint="give `allows` (assert, propose, deny or unset), `grants` or `confirms`",
        )
    _one_of("allows", change.allows, (*VERDICTS, UNSET))
    _one_of("role", change.role, vocab.AGENT_ROLE)
    _one_of("grants", change.grants, vocab.AGENT_ROLE)
    _one_of("kind", change.kind, (*KINDS, *(own_kinds if change.confirms is None else ())))
    _one_of("scope", change.scope, vocab.SCOPE)
    _one_of("confirms", change.confirms, CONFIRMS)
    if change.grants is not None and change.agent is None:
        raise InvalidRequest("a role is granted to an agent", hint="give `agent`")
    counted = change.confirms == "unopposed" and change.allows != UNSET
    if counted != (change.days is not None):
        raise InvalidRequest("days are for unopposed proposals", hint="give `days` beside `confirms`")
    if change.days is not None and change.days < 1:
        raise InvalidRequest("proposals wait at least one day", hint="give `days`: 14, for example")
    return change if change.path is None else replace(change, path=_place(change.path, change.allows))


def _place(path: str, allows: str | None) -> str:
    """Return the one form of the path of a rule; raise InvalidRequest for a path that no memory can be about."""
    shown, plain = path, _plain(path.strip())
    if allows != UNSET and "://" not in plain:
        if not path.strip() or plain in (".", "/", ".."):
            raise InvalidRequest(f"{shown!r} is not a place", hint="leave out `path` for a rule on all places")
        if any(sign in plain for sign in "*?"):
            folder = plain[: min(plain.find(sign) for sign in "*?" if sign in plain)].rpartition("/")[0]
            hint = f"name the folder, for all below it: {folder}" if folder else "name a folder, for all below it"
            raise InvalidRequest(f"a rule is for a file, a folder or a module, not for a pattern: {shown}", hint=hint)
        if plain.startswith(("/", "../")):
            hint = "give it relative to the folder of the memory: src/billing"
            raise InvalidRequest(f"{shown} is outside of the places that memories are about", hint=hint)
    return plain


def _plain(name: str) -> str:
    return name if "://" in name else posixpath.normpath(name)


def _one_of(name: str, value: str | None, allowed: Sequence[str]) -> None:
    if value is not None and value not in allowed:
        raise InvalidRequest(
            f"{name} is one of {', '.join(allowed)}, not {value!r:.200}", hint=f"give another `{name}`"
        )


def role_named(word: str) -> str:
    """Return the role named by *word*, such as `curator` or `Architect`; raises InvalidRequest for another word.

    >>> role_named("admin")
    'Administrator'
    """
    by_word = {**{role.lower(): role for role in vocab.AGENT_ROLE}, **ROLE_WORDS}
    role = by_word.get(word.strip().lower())
    if role is None:
        raise InvalidRequest(f"{word!r:.200} is not a role", hint=f"there are {', '.join(sorted(by_word))}")
    return role
