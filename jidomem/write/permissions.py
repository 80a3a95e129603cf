"""Permissions decide whether an agent may assert an intent, only propose it, or neither.

They do no I/O and read only the snapshot that is passed in. An intent with an untrusted source is only
proposed. One that ends a memory of another agent needs a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence, Set
from dataclasses import replace
from shlex import quote
from typing import NamedTuple

from jidomem.base.clock import parse_moment
from jidomem.base.containers import reachable
from jidomem.base.regex import matches_every_line
from jidomem.errors import IntentRefused, PolicyDenied, Violation
from jidomem.rdf import vocab
from jidomem.rdf.terms import (
    Term,
    Triple,
    boolean,
    integer,
    iri,
    is_iri,
    literal,
    moment_text,
    parse_literal,
    plain_value,
    value_of,
)
from jidomem.rdf.vocab import ERRORS, TYPE, family, jido
from jidomem.records.active import is_due
from jidomem.records.intent import MemoryUpdateIntent
from jidomem.records.policy import CURATORS, DEFAULT_ROLE, OTHER_WRITES, PRESETS, AccessPolicy, Policy, PolicyChange
from jidomem.schema.ontology import EffectiveRules, Schema
from jidomem.write.canonical import is_absolute
from jidomem.write.snapshot import WriteSnapshot
from jidomem.write.triples import alternative_nodes, participant_stubs
from jidomem.write.validate import WRITER_TERMS

_CHANGE = jido("PolicyChange")
_FROM, _SOURCE, _QUARANTINED = jido("derivedFrom"), jido("hasSourceType"), jido("quarantined")
_CONFIRMED = jido("confirmedBy")
_UNTRUSTED = frozenset(jido(name) for name, level in vocab.TRUST_OF_SOURCE.items() if level == "untrusted")
_TEXT = f"<{vocab.BASE}evidence/"  # evidence given as a text has no source of its own
#: Field of a change -> its property.
_TEXTS = {
    "kind": "forKind", "path": "forPath", "scope": "forScope", "allows": "allows", "confirms": "confirmsBy",
    "reason": "policyReason",
}  # fmt: skip
#: The prefix of the reason for a proposal by a rule of the policy.
BY_POLICY = "by policy: "
_PROMOTION_SHAPE = "https://jido.ai/shapes#PromotedHypothesisHasEvidence"
_GUESSES = frozenset((jido("Assumption"), jido("Hypothesis")))
_AGENTS = {"agent": "forAgent", "by": "setBy"}
_ROLES = {"role": "forRole", "grants": "grantsRole"}


class AuthenticatedAgent(NamedTuple):
    """The agent that a server identified by a token, and its role where the token gives one.

    With *by_rule* it is the writer itself, which carries out a rule of the policy. `on_commit` is called with the id of
    each commit of the agent, in the thread that submitted it. `check` raises Unauthenticated once its token is revoked.
    `holders` returns the names of the agents with a token.
    """

    agent: str
    role: str | None
    by_rule: bool = False
    on_commit: Callable[[str], object] | None = None
    check: Callable[[], object] | None = None
    holders: Callable[[], Collection[str]] = tuple


class Permission(NamedTuple):
    """The permission of an intent: asserted, or only `proposed_because` of a reason; and whether by a curator.

    `judge` is the agent with that role: the author, or the agent of the token that writes for the author.
    """

    is_curator: bool
    proposed_because: str | None = None
    judge: str | None = None


def authority(view: WriteSnapshot, policy: Policy) -> AccessPolicy:
    """Return the policy of the project: the changes in the journal, on top of the policy of the root."""
    nodes = view.subjects(TYPE, _CHANGE)
    cached = view.derived.get("authority")
    if cached is None or cached[0] != nodes:
        roles = {name: agent.role for name, agent in policy.agents.items()}
        changes = tuple(policy_change(node, view.first) for node in nodes)
        cached = view.derived["authority"] = (nodes, AccessPolicy(changes, PRESETS[policy.preset], roles))
    rules: AccessPolicy = cached[1]
    return rules


def permitted(
    intent: MemoryUpdateIntent, view: WriteSnapshot, effective: EffectiveRules, speaker: AuthenticatedAgent | None
) -> Permission:
    """Return the permission of the normal *intent*; raises PolicyDenied if its agent may neither assert nor propose it.

    The memories that an intent ends or revives count as its own content does: an agent that may not assert a decision
    may not withdraw one. To revive a memory that a curator ended takes a curator.
    """
    rules = authority(view, effective.policy)
    agent = intent.asserted_by
    if agent is None or intent.type is None:
        return Permission(is_curator=False)  # refused later for the missing field
    role = role_in_use(agent, rules, speaker)
    if speaker is not None and speaker.by_rule:
        return Permission(is_curator=False)
    is_curator, judge = role in CURATORS, agent if speaker is None else speaker.agent
    reason = curated_end(intent.revives, intent.supersedes, rules, view) if intent.revives and not is_curator else None
    if rules.is_open and role != "MemoryReader":
        return Permission(is_curator, reason, judge)
    for kinds, places, scope in _judged_kinds(intent, view, effective.schema):
        verdict, rule = rules.verdict(agent, role, kinds, places, scope)
        if verdict == "deny":
            raise _denied(
                f"{vocab.local_name(agent)}, {_article(role)}, may not write a {kinds[0]}", rule, rules, agent, role
            )
        if verdict == "propose" and not _withdraws_own_proposals(intent, view):
            reason = f"{BY_POLICY}{rule}"
    return Permission(is_curator, reason, judge)


def curator_grant_command(rule: PolicyChange, rules: AccessPolicy) -> str | None:
    """Return the command that lets curators assert what *rule* only lets be proposed; None if a curator may assert it.

    Without any curator in the project, the role is judged.
    """
    kinds, places = (rule.kind or "", family(rule.kind or "")), [rule.path] if rule.path else ()
    curators = {agent: rules.role_of(agent) for agent in rules.curators} or {"": "Curator"}
    verdicts = (rules.verdict(agent, role, kinds, places, rule.scope)[0] for agent, role in curators.items())
    if "assert" in verdicts:
        return None
    fields = (("--kind", rule.kind), ("--about", rule.path), ("--scope", rule.scope))
    options = "".join(f" {option} {quote(value)}" for option, value in fields if value)
    return f"jidomem access policy set assert{options} --role curator"


def check_other_write(
    thing: str, agent: str, view: WriteSnapshot, policy: Policy, speaker: AuthenticatedAgent | None, field: str
) -> None:
    """Raise PolicyDenied unless *agent*, given as *field*, may write *thing*: a session or a description, which are no
    memories.
    """
    assert thing in OTHER_WRITES
    rules = authority(view, policy)
    role = role_in_use(agent, rules, speaker, field)
    verdict, rule = rules.verdict(agent, role, (thing, thing))
    if verdict == "deny":
        raise _denied(f"{vocab.local_name(agent)}, {_article(role)}, may not write a {thing}", rule, rules, agent, role)


def check_session_agent(
    session: Term, agent: Term, view: WriteSnapshot, policy: Policy, speaker: AuthenticatedAgent | None
) -> None:
    """Raise PolicyDenied unless *session* is of *agent*, or that is a curator; without any curator, all agents may."""
    rules, opener = authority(view, policy), view.first(session, jido("hasPrimaryAgent"))
    role = role_in_use(plain_value(agent), rules, speaker)
    if opener in (None, agent) or role in CURATORS or not _is_restricted(role, rules.curators, speaker):
        return
    owner, name = vocab.local_name(opener or ""), vocab.local_name(session)
    raise PolicyDenied(
        f"{vocab.local_name(agent)}, {_article(role)}, may not move {name}, a session of {owner}",
        hint=f"ask {owner} or a curator, or open one of your own: jidomem agent session start NAME --continues {name}",
    )


def role_in_use(agent: str, rules: AccessPolicy, speaker: AuthenticatedAgent | None, field: str = "asserted_by") -> str:
    """Return the role of *agent*: that of the speaker, which a token identifies, else the one given by the project.

    Raises PolicyDenied where a speaker that is no curator writes for another agent, which *field* names.
    """
    if speaker is None:
        return rules.granted.get(agent, DEFAULT_ROLE)
    role = speaker.role or rules.granted.get(speaker.agent, DEFAULT_ROLE)
    if speaker.role is None and role in CURATORS:
        role = DEFAULT_ROLE  # only the token makes a curator
    if agent != speaker.agent and role not in CURATORS:
        raise PolicyDenied(
            f"{vocab.local_name(speaker.agent)} may not speak for {vocab.local_name(agent)}",
            hint=f"leave out `{field}`, or give {vocab.local_name(speaker.agent)}",
        )
    return role


def check_author(agent: str | None, view: WriteSnapshot, policy: Policy, speaker: AuthenticatedAgent | None) -> None:
    """Raise PolicyDenied if *agent* is not the agent of the token, which is no curator."""
    if speaker is not None and agent is not None:
        role_in_use(agent, authority(view, policy), speaker)


def change_triples(project: Term, changes: Iterable[tuple[Term, PolicyChange]]) -> list[Triple]:
    """Return the triples of *changes* in *project*, each with its node."""
    triples: list[Triple] = []
    for node, change in changes:
        triples += [(node, TYPE, _CHANGE), (node, jido("partOfProject"), project)]
        values = {field: getattr(change, field) for field in (*_TEXTS, *_AGENTS, *_ROLES)}
        triples += [(node, jido(name), literal(values[field])) for field, name in _TEXTS.items() if values[field]]
        triples += [(node, jido(name), iri(values[field])) for field, name in _AGENTS.items() if values[field]]
        triples += [(node, jido(name), jido(values[field])) for field, name in _ROLES.items() if values[field]]
        if change.days is not None:
            triples.append((node, jido("afterDays"), integer(change.days)))
    return triples


def check_may_change(agent: str, rules: AccessPolicy, after: AccessPolicy, speaker: AuthenticatedAgent | None) -> None:
    """Raise PolicyDenied unless *agent* may change the policy from *rules* to *after*."""
    role, administrators = role_in_use(agent, rules, speaker), rules.administrators
    if role != "Administrator" and _is_restricted(role, administrators, speaker):
        raise _role_required("change the policy", agent, role, administrators, "admin")
    if administrators and not after.administrators:
        hint = "appoint another one first: jidomem access policy grant AGENT admin"
        raise PolicyDenied(f"{_names(administrators)} would lose the role, and no administrator is left", hint=hint)


def check_curates(action: str, agent: str, rules: AccessPolicy, speaker: AuthenticatedAgent | None) -> None:
    """Raise PolicyDenied unless *agent* is a curator; without any curator, every agent may. *action* is the action."""
    role, curators = role_in_use(agent, rules, speaker), rules.curators
    if role not in CURATORS and _is_restricted(role, curators, speaker):
        raise _role_required(action, agent, role, curators, "curator")


#: The properties of a convention with a check that stops edits.
CHECKS = tuple(map(jido, ("forbidsPattern", "requiresPattern", "checkCommand")))
#: What a curator accepts of a check: its patterns and commands, its files and level.
_JUDGED_CHECK = (*CHECKS, jido("about"), jido("hasEnforcementLevel"))


_CHECK_WAITS = "its check waits for a curator: the guard applies it once one accepts or confirms it"
_CHECK_NOT_APPLIED = "its check stops no edit: the guard applies the checks of Strict conventions only"
#: The warning for a pattern that matches every line, by its property.
_BROAD = {
    f"{vocab.JIDO}{name}Pattern": f"its pattern matches every line, so it {effect}; to narrow it: give `{name}`"
    for name, effect in (("forbids", "stops each edit"), ("requires", "requires nothing"))
}


def check_warnings(
    intent: MemoryUpdateIntent, judge: str | None, view: WriteSnapshot, policy: Policy, *, is_asserted: bool
) -> list[str]:
    """Return the warnings for checks: not applied as of advice, or until a curator accepts it; of every line."""
    own = (triple[1:] for triple in intent.extra_triples if triple[0] == intent.iri)
    checks = [(name, value["@value"]) for name, value in own if iri(name) in CHECKS]
    if not checks or vocab.local_name(intent.enforcement_level or "") != "Strict":
        return [_CHECK_NOT_APPLIED] if checks else []
    curators = authority(view, policy).curators
    waits = is_asserted and curators and {intent.asserted_by, judge}.isdisjoint(curators)
    warnings = [_CHECK_WAITS] if waits else []
    return warnings + [_BROAD[name] for name, text in checks if name in _BROAD and matches_every_line(text)]


def check_waits(item: Term, view: WriteSnapshot, curators: Iterable[str]) -> bool:
    """Return whether the check of the convention *item* waits for one of *curators*, IRIs of agents; without any, not.

    It is accepted if a curator asserted, settled or confirmed *item*, or an earlier version with the same check.
    """
    judges = {*map(iri, curators)}
    if not judges or not any(view.objects(item, name) for name in CHECKS) or view.objects(item, _CONFIRMED):
        return False
    revivers, settled, version = set[Term](), jido("settledBy"), item
    for _ in range(_MOST_VERSIONS):  # up to the last version that its author recorded
        settlers = {*view.objects(version, settled)}
        revivers |= settlers if view.objects(version, jido("revives")) else set()
        earlier = view.first(version, jido("supersedes"))
        if not settlers or earlier is None:
            break
        version = earlier
    authors = view.objects(item, jido("assertedBy")) if revivers <= judges else ()
    if not judges.isdisjoint((*view.objects(item, settled), *authors)):
        return False

    def judged(one: Term) -> list[set[Term]]:
        return [{*view.objects(one, name)} for name in _JUDGED_CHECK]

    def same_before(one: Term) -> list[Term]:
        return [old for old in view.objects(one, jido("supersedes")) if judged(old) == judged(one)]

    versions = reachable([item], same_before)
    return all(judges.isdisjoint((*view.objects(one, settled), *view.objects(one, _CONFIRMED))) for one in versions)


def untrusted_reason(described: Iterable[Triple], item: Term, view: WriteSnapshot) -> str | None:
    """Return the reason why *item* is not trusted: its source, or a memory that it is derived from; None if trusted.

    A memory is trusted only if all memories that it is derived from are. An untrusted memory has a mark, so that one
    step back is enough.
    """
    for subject, predicate, value in described:
        if subject != item:
            continue
        if predicate == _SOURCE and value in _UNTRUSTED:
            return f"memories of source type {vocab.local_name(value)} become active by review"
        if predicate == _FROM and not value.startswith(_TEXT) and view.objects(value, _QUARANTINED):
            return f"it rests on what is not trusted: {plain_value(value)}"
    return None


def confirmations(intent: MemoryUpdateIntent, view: WriteSnapshot) -> list[Term]:
    """Return the curators who confirmed the memories that *intent* supersedes; an empty list if one is not trusted."""
    superseded = [iri(each) for each in intent.supersedes]
    if any(view.objects(each, _QUARANTINED) for each in superseded):
        return []
    return sorted({curator for each in superseded for curator in view.objects(each, _CONFIRMED)})


def proposal_reason(
    described: Iterable[Triple],
    intent: MemoryUpdateIntent,
    permission: Permission,
    view: WriteSnapshot,
    *,
    waits: bool,
    confirmed: Sequence[Term] = (),
) -> tuple[str | None, list[Triple]]:
    """Return the reason why the memory is only proposed, None to assert it, and the triples that record it.

    A memory that is not trusted is asserted only by a curator, and not while it *waits* for one; to end a memory that
    a curator confirmed takes a curator, too. The alternatives of a decision are trusted only if it is. *confirmed* are
    the curators whose confirmations of the same content are carried over.
    """
    item = iri(intent.iri or "")
    untrusted = untrusted_reason(described, item, view)
    if untrusted and permission.is_curator and permission.proposed_because is None and not waits:
        return None, [(item, _CONFIRMED, iri(permission.judge or ""))]
    if untrusted and confirmed and permission.proposed_because is None and not waits:
        return None, [(item, _CONFIRMED, curator) for curator in confirmed]
    ends_none = not (intent.supersedes or intent.invalidates)
    confirmed_end = None if ends_none or permission.is_curator or confirmed else _confirmed_end(intent, view)
    reason = permission.proposed_because or untrusted or confirmed_end
    marks = [(item, jido("proposedBecause"), literal(reason))] if reason else []
    for node in [item, *alternative_nodes(intent)] if untrusted else ():
        marks.append((node, _QUARANTINED, boolean(True)))
    return reason, marks


def settlement(intent: MemoryUpdateIntent, judge: str, view: WriteSnapshot, policy: Policy) -> list[Triple]:
    """Return the triples that record *judge*, the agent of a token that writes *intent* for its author."""
    settled = (iri(intent.iri or ""), jido("settledBy"), iri(judge))
    return [settled, *participant_stubs([iri(judge)], iri(intent.applies_to_project or ""), view, policy)]


def near_reason(
    intent: MemoryUpdateIntent, near: Iterable[str], view: WriteSnapshot
) -> tuple[str | None, list[Triple]]:
    """Return the reason why a memory is only proposed that is *near* to others, and the triples that record it."""
    named = [*map(iri, near)]
    active, ended = [each for each in named if view.is_current(each)], [each for each in named if view.has_ended(each)]
    says = f"it repeats or is near to {', '.join(map(plain_value, active))}" if active else ""
    again = f"it says again what ended with {', '.join(map(plain_value, ended))}" if ended else ""
    if not (says or again):
        return None, []
    item, reason = iri(intent.iri or ""), "; ".join(filter(None, (says, again)))
    against = [(item, jido("conflictsWith"), other) for other in active]
    return reason, [(item, jido("proposedBecause"), literal(reason)), *against]


def _confirmed_end(intent: MemoryUpdateIntent, view: WriteSnapshot) -> str | None:
    """Return the reason if *intent* ends an active memory that a curator confirmed; None otherwise."""
    for other in map(iri, (*intent.supersedes, *intent.invalidates)):
        if (curator := view.first(other, _CONFIRMED)) is not None and view.is_current(other):
            return f"it ends {plain_value(other)}, which {vocab.local_name(curator)} accepted"
    return None


def curated_end(revived: Iterable[str], ends: Iterable[str], rules: AccessPolicy, view: WriteSnapshot) -> str | None:
    """Return the reason if a curator recorded the end of a *revived* memory, or one of *ends*; None otherwise."""
    for old in revived:
        ended_by = [end for link in ("supersededBy", "invalidatedBy") for end in view.objects(iri(old), jido(link))]
        for end in (*ended_by, *map(iri, ends)):
            for agent in view.recorded_by(end):
                if plain_value(agent) in rules.curators:
                    return f"it revives {old}, which {vocab.local_name(agent)} ended by {plain_value(end)}"
    return None


def policy_change(node: Term, first: Callable[[Term, Term], Term | None]) -> PolicyChange:
    """Return the change that *node* records; *first* returns a value of a node and a property."""

    def text(name: str) -> str | None:
        value = first(node, jido(name))
        return plain_value(value) if value else None

    roles = {field: vocab.local_name(value) for field, name in _ROLES.items() if (value := text(name))}
    texts = {field: text(name) for field, name in (_TEXTS | _AGENTS).items()}
    days, recorded = first(node, jido("afterDays")), first(node, jido("recordedAt"))
    return PolicyChange(
        **texts,
        **roles,
        days=int(parse_literal(days).text) if days else None,
        recorded=(moment_text(recorded) or "") if recorded else "",
        node=plain_value(node),
    )


def _withdraws_own_proposals(intent: MemoryUpdateIntent, view: WriteSnapshot) -> bool:
    """Return whether *intent* ends nothing but pending proposals of its own agent; that of an import waits with it."""
    return (
        intent.type == "deleted_marker"
        and not intent.extra_triples
        and bool(intent.invalidates)
        and not (intent.supersedes or intent.revives)
        and all(
            view.is_proposed(iri(other))
            and {*view.objects(iri(other), jido("assertedBy"))} == {iri(intent.asserted_by or "")}
            for other in intent.invalidates
        )
    )


def _judged_kinds(
    intent: MemoryUpdateIntent, view: WriteSnapshot, schema: Schema
) -> Iterable[tuple[tuple[str, ...], list[str], str | None]]:
    """Yield kinds, places and scope of the content of the intent, and of each memory that it ends or revives.

    The kinds are those of `kinds_of_classes`.
    """
    named = (other for field in ("supersedes", "invalidates", "revives") for other in getattr(intent, field))
    ended = [iri(other) for other in named if is_absolute(other)]
    if intent.type != "deleted_marker" or not ended:
        own = [iri(value["@id"]) for subject, name, value in intent.extra_triples
               if (subject, name) == (intent.iri, plain_value(TYPE)) and "@id" in value]  # fmt: skip
        classes = [jido(vocab.CLASS_OF_TYPE.get(intent.type or "", "")), *own]
        yield kinds_of_classes(classes, schema), intent.about, intent.convention_scope
    for other in ended:
        scope = view.first(other, jido("hasConventionScope"))
        yield (
            kinds_of_classes(view.types(other), schema),
            [plain_value(value) for value in view.objects(other, jido("about"))],
            vocab.local_name(scope or "") or None,
        )


def kinds_of_classes(classes: Collection[Term], schema: Schema) -> tuple[str, ...]:
    """Return the kinds by which a policy judges a memory of *classes*.

    They are its own classes, closest first: those of the project with the classes above them, the type, and its family.
    """
    given = {cls for cls in classes if vocab.type_of(cls) is None}
    above = given | {cls for each in given for cls in schema.ancestors(each) if schema.is_own(cls)}
    own = map(vocab.local_name, sorted(above, key=lambda cls: (-len(schema.ancestors(cls)), cls)))
    kind = next(filter(None, map(vocab.type_of, classes)), "")
    return (*own, kind, family(kind))


def _denied(message: str, rule: PolicyChange | None, rules: AccessPolicy, agent: str, role: str) -> PolicyDenied:
    may = [kind for kind in vocab.CLASS_OF_TYPE if rules.verdict(agent, role, (kind, family(kind)))[0] != "deny"]
    hint = f"submit it as one of: {', '.join(may[:5])}" if may else "ask a curator to record it"
    return PolicyDenied(f"{message}: {rule}", hint=f"{hint}; the rules: jidomem access policy show")


def _is_restricted(role: str, holders: Sequence[str], speaker: AuthenticatedAgent | None) -> bool:
    """Return whether the project restricts an action: it names curators or administrators, or uses tokens."""
    return bool(holders) or speaker is not None or role == "MemoryReader"


def _role_required(action: str, agent: str, role: str, holders: Sequence[str], word: str) -> PolicyDenied:
    hint = f"ask {_names(holders)}" if holders else f"ask the operator for a token of the role {word}"
    return PolicyDenied(f"{vocab.local_name(agent)}, {_article(role)}, may not {action}", hint=hint)


def _names(agents: Iterable[str]) -> str:
    return ", ".join(map(vocab.local_name, agents))


def _article(role: str) -> str:
    return f"{'an' if role[0] in 'AI' else 'a'} {role}"


def check_promotion(intent: MemoryUpdateIntent, view: WriteSnapshot, curator: str | None) -> MemoryUpdateIntent:
    """Return the normal *intent*; a fact made of a hypothesis or an assumption needs evidence or the *curator*.

    Raises IntentRefused where it has neither.
    """
    if intent.type != "fact" or intent.evidence:
        return intent
    if not (intent.supersedes or intent.revives):
        return intent
    named = [iri(other) for other in (*intent.supersedes, *intent.revives) if is_absolute(other)]
    guesses = [(other, view.types(other) & _GUESSES) for other in named]
    kinds = {other: vocab.local_name(min(kind)).lower() for other, kind in guesses if kind}
    if not kinds:
        return intent
    if curator is not None:
        agent = vocab.local_name(curator)
        return replace(intent, evidence=[f"judged by {agent}" + (f": {intent.reason}" if intent.reason else "")])
    other, kind = next(iter(kinds.items()))
    message = f"{other[1:-1]} is an {kind}: " if kind == "assumption" else f"{other[1:-1]} is a {kind}: "
    message += "it becomes a fact by evidence, or when a curator confirms it"
    shape = _PROMOTION_SHAPE if kind == "hypothesis" else None
    hint = "give `evidence`: the texts, IRIs or memories that show it"
    raise IntentRefused([Violation("shape_violation", message, field="evidence", shape=shape, hint=hint)])


#: The properties of a memory that are not its content: author, time, evidence, predecessors.
_NOT_CONTENT = WRITER_TERMS | set(map(jido, ("revisionReason", "derivedFrom", "hasAlternative", "verified")))
#: The properties of the writer by which its author stands behind a memory: another agent does not change them.
_STANCE = frozenset(map(jido, ("hasConfidence", "confidenceValue")))
#: The properties of the keys under which sessions promote a memory: another one says nothing else.
_KEYS = frozenset(map(jido, ("key", "value")))
#: The most versions of a memory of which the confirmations are read.
_MOST_VERSIONS = 100
_WORK_STATE = frozenset(map(jido, ("hasTaskStatus", "hasErrorStatus", "severityLevel", "assignedTo", "trackedBy")))


def check_reason(intent: MemoryUpdateIntent, described: Collection[Triple], view: WriteSnapshot) -> None:
    """Raise IntentRefused for an intent that ends a memory of another agent, or confirmed by one, without a reason.

    The reason is its `reason`, or a `rationale` that differs from the old one. A confirmation needs none, nor does a
    change of the state of a task or an error alone.
    """
    if intent.reason is not None:
        return
    violations = list[Violation]()
    for field in ("supersedes", "invalidates"):
        for other in getattr(intent, field):
            item = iri(other)
            has_own = intent.rationale is not None and literal(intent.rationale) != view.first(item, jido("rationale"))
            if has_own or (field == "supersedes" and _has_same_content(intent, described, item, view)):
                continue
            agents = {iri(intent.asserted_by or "")}
            violations += unexplained(item, agents, view, "reason (or in rationale) why it ends")
    if violations:
        raise IntentRefused(violations)


def check_explained(ended: Iterable[str], agents: Set[Term], view: WriteSnapshot) -> None:
    """Raise IntentRefused if an active memory of others than *agents* is *ended* or restated without a reason."""
    active, what = filter(view.is_current, map(iri, sorted(ended))), "reason why it ends or changes"
    if violations := [each for item in active for each in unexplained(item, agents, view, what)]:
        raise IntentRefused(violations)


def unexplained(item: Term, agents: Set[Term], view: WriteSnapshot, what: str) -> list[Violation]:
    """Return the violation that *what* is not said of a memory that others than *agents* asserted or confirmed."""
    authors = {*view.objects(item, jido("assertedBy"))}
    confirming = _confirming(item, view) - authors
    others = sorted(vocab.local_name(author) for author in (authors | confirming) - agents)
    if not others:
        return []
    verb = "asserted or confirmed" if confirming - agents else "asserted"
    message = f"{plain_value(item)} was {verb} by {' and '.join(others)}: say in {what}"
    hint = "give `reason`: one sentence that says why"
    return [Violation("missing_rationale", message, field="reason", hint=hint)]


def _confirming(item: Term, view: WriteSnapshot) -> set[Term]:
    """Return the agents that confirmed or settled *item*, or one of the versions before it with its author and text."""
    text, authors = view.first(item, jido("summary")), {*view.objects(item, jido("assertedBy"))}
    agents, earlier, pending = set[Term](), set[Term](), [item]
    while pending and len(earlier) < _MOST_VERSIONS:
        if (one := pending.pop()) in earlier:
            continue
        earlier.add(one)
        agents |= {*view.objects(one, jido("confirmedBy")), *view.objects(one, jido("settledBy"))}
        pending += [
            old
            for old in view.objects(one, jido("supersedes"))
            if view.first(old, jido("summary")) == text
            and not authors.isdisjoint(view.objects(old, jido("assertedBy")))
        ]
    return agents


def _has_same_content(
    intent: MemoryUpdateIntent,
    described: Collection[Triple],
    item: Term,
    view: WriteSnapshot,
    added: frozenset[Term] = frozenset(),
) -> bool:
    """Return whether *intent* has the content and confidence of *item*, whatever its author and state of work.

    It may add evidence and values of the properties *added*; only evidence of a task or an error may be removed.
    """
    subject_iri, summary = iri(intent.iri or ""), jido("summary")
    summaries = {value for subject, predicate, value in described if (subject, predicate) == (subject_iri, summary)}
    if summaries != {*view.objects(item, summary)}:  # as for most: nothing else is read of them
        return False
    is_work = intent.type in {"task", *ERRORS}
    ignored = (_NOT_CONTENT - _STANCE) | added | (_WORK_STATE if is_work else frozenset())
    expires, now = parse_moment(intent.expires_on), parse_moment(intent.timestamp)
    if expires is None or now is None or not is_due(expires, now, is_task=intent.type == "task"):
        ignored |= {jido("expiresOn")}
    new = {(predicate, _value(value)) for subject, predicate, value in described if subject == subject_iri}
    old = {(predicate, _value(value)) for _, predicate, value in view.about(item)}
    lasting = added if is_work else added | {jido("derivedFrom")}
    if any(row not in new for row in old if row[0] in lasting):
        return False
    return {row for row in new if row[0] not in ignored} == {row for row in old if row[0] not in ignored}


def with_first_author(
    intent: MemoryUpdateIntent, rows: Sequence[Triple], view: WriteSnapshot, *, is_proposed: bool
) -> tuple[list[Triple], list[str]]:
    """Return *rows* with the author of the memory whose content *intent* restates; its own agent only settles it.

    A memory that was active comes before a proposal. A proposal has the author of a proposal only. A warning says that
    an active memory is confirmed thereby, unless the work on it may have gone on.
    """
    item, agent = iri(intent.iri or ""), iri(intent.asserted_by or "")
    nodes, alternatives = {item, *alternative_nodes(intent)}, {*map(literal, intent.alternatives)}
    revived = {*map(iri, intent.revives)}
    named = [*map(iri, intent.supersedes), *revived]
    proposed = {each: view.is_proposed(each) for each in named}
    restated = [
        each for each in named if (proposed[each] if is_proposed else each in revived or not view.has_ended(each))
    ]
    for old in sorted(restated, key=proposed.__getitem__):
        if not _has_same_content(intent, rows, old, view, _KEYS):
            continue
        if {view.first(each, jido("summary")) for each in view.objects(old, jido("hasAlternative"))} != alternatives:
            continue
        if is_proposed and old not in revived:
            ends = {*view.objects(old, jido("supersedes")), *view.objects(old, jido("invalidates"))}
            if ends != {*map(iri, (*intent.supersedes, *intent.invalidates))} - {old}:
                continue
        values = {name: view.first(old, name) for name in (jido("assertedBy"), jido("assertedIn"))}
        first = {name: value for name, value in values.items() if value and view.types(value)}  # else it was redacted
        if first.get(jido("assertedBy"), agent) == agent:
            break
        authored = [(s, p, first.get(p) or o if s in nodes else o) for s, p, o in rows]
        warnings = []
        if not (proposed[old] or old in revived or intent.type in {"task", *ERRORS}):
            author = vocab.local_name(first[jido("assertedBy")])
            warnings.append(f"it repeats and so confirms {plain_value(old)}: the author stays {author}")
        return [*authored, (item, jido("settledBy"), agent)], warnings
    return [*rows], []


def _value(term: Term) -> object:
    """Return the value of *term*: a store may write a moment, a number or a truth value in another form."""
    return term if is_iri(term) else value_of(parse_literal(term))
