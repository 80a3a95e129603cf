"""Whether the authors of active memories, and of changes of the policy, may write them under the policy that applies.

A write is judged by the policy when it is made. A merge joins branches that had different policies, so `unpermitted`
judges each active memory, and each change of the policy, again: by all changes recorded before it, on any branch, and
by those that another branch made later. A change of the policy made on top of a memory leaves it alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from shlex import join, quote

from jidomem.base.containers import reachable
from jidomem.base.json_values import decode_toml
from jidomem.check.report import PERMITTED, POLICY_CHANGED, Problem, UnplacedFinding
from jidomem.check.sources import TripleSource
from jidomem.journal.branches import Revision
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, iri, plain_value
from jidomem.rdf.vocab import MARKER, family, jido, local_name
from jidomem.read.memory_detail import short_id
from jidomem.records.policy import DEFAULT_ROLE, UNSET, AccessPolicy, PolicyChange
from jidomem.schema.shacl import Severity
from jidomem.write.permissions import barred_curators
from jidomem.write.triples import WRITER_AGENT

_COMMIT, _PARENT = jido("recordedIn"), jido("parent")
_RESPONSIBLE = tuple(map(jido, ("assertedBy", "settledBy", "confirmedBy")))
_ENDED = tuple(map(jido, ("supersedes", "invalidates", "revives")))
_BEGINNING = datetime.min.replace(tzinfo=UTC)


def policy_changes(source: TripleSource, policy: AccessPolicy) -> Iterator[UnplacedFinding]:
    """Yield a warning for each change of the policy that the requested range brought; none without a range."""
    known = source.older.types if source.older is not None else None
    for change in policy.changes:
        if known is not None and iri(change.node) not in known:
            by = f" (by {local_name(change.by)})" if change.by else ""
            text = f"the policy changes: {change}{by}: see that this is meant: jidomem access policy show"
            yield UnplacedFinding(iri(change.node), POLICY_CHANGED, "warning", text)


def configured_changes(root: Path, revision: Revision) -> list[Problem]:
    """Return a warning if roles or the initial policy in the configuration of *root* differ from those at *revision*.

    Raises InvalidRequest if git lacks the file.
    """
    path = root / "config.toml"
    try:
        before, after = (decode_toml(data.decode()) for data in (revision.content(path), path.read_bytes()))
    except (OSError, ValueError):  # without a readable file there was no role
        return []
    changed = [key for key in ("policy", "agents") if before.get(key) != after.get(key)]
    text = (
        f"the roles or the policy change ({' and '.join(changed)}): see that this is meant: jidomem access policy show"
    )
    return [Problem(str(path), POLICY_CHANGED, "warning", text, str(path), 1)] if changed and before else []


def unpermitted(
    source: TripleSource, policy: AccessPolicy, is_active: Callable[[Term], bool]
) -> Iterator[UnplacedFinding]:
    """Yield a finding for each active memory, and each change of the policy, that its author may not write.

    It is a violation if the rule was recorded before, and a warning if another branch recorded it later.
    """
    history = _History(source, policy)
    yield from history.unpermitted_changes()
    if policy.is_open and not policy.changes:
        return
    for item, kinds in source.types.items():
        kind = next(filter(None, map(vocab.type_of, kinds)), None)
        if kind is not None and "/alternatives/" not in item:
            yield from history.judge(item, is_active)


class _History:
    """The policies that applied after each change of the policy, in the order of their records."""

    def __init__(self, source: TripleSource, policy: AccessPolicy) -> None:
        self._source, self._policy = source, policy
        self._changes = sorted(policy.changes, key=lambda change: (self._recorded(iri(change.node)), change.node))
        self._times = [self._recorded(iri(change.node)) for change in self._changes]
        self._by_number = {len(self._changes): policy}
        self._judged: dict[tuple[object, ...], str] = {}
        self._before: dict[str, set[Term]] = {}

    def unpermitted_changes(self) -> Iterator[UnplacedFinding]:
        """Yield the active changes of the policy by agents that were no administrators while there was one."""
        active = {change.node for change in self._policy.active_changes}
        for number, change in enumerate(self._changes):
            administrators = self._policy_of(number).administrators
            if change.node in active and change.by and administrators and change.by not in administrators:
                named = [*map(local_name, administrators)]
                undo, by = _undone(change, self._changes[:number]), f"--agent {quote(named[0])}"
                text = (
                    f"{local_name(change.by)} may not change the policy: {change}, though {' and '.join(named)}"
                    f" administered it by then; an administrator undoes it: {undo} {by}, or makes it again:"
                    f" {change.command} {by}"
                )
                yield UnplacedFinding(iri(change.node), PERMITTED, "violation", text)

    def judge(self, item: Term, is_active: Callable[[Term], bool]) -> Iterator[UnplacedFinding]:
        """Yield the finding about *item*, if it is active, and none of the agents responsible for it may assert it."""
        agents = [plain_value(agent) for name in _RESPONSIBLE for agent in self._source.values(item, name)]
        if not agents or plain_value(WRITER_AGENT) in agents:  # the writer settles by a rule of the policy
            return
        writes = tuple(self._writes(item))
        if any(self._verdict(self._policy, agent, writes)[0] == "assert" for agent in agents) or not is_active(item):
            return
        before = self._policy_of(bisect_left(self._times, self._recorded(item)))
        severity: Severity = "violation"
        if any(self._verdict(before, agent, writes)[0] == "assert" for agent in agents):
            beside = self._policy_beside(item)
            if any(self._verdict(beside, agent, writes)[0] == "assert" for agent in agents):
                return
            severity = "warning"
        elif not before.curators and len(agents) > 1:
            return  # without a curator, every agent settles proposals
        verdict, rule, kind = self._verdict(self._policy, agents[0], writes)
        if rule is not None:
            yield self._finding(item, agents[0], verdict, rule, kind, severity)

    def _finding(
        self, item: Term, agent: str, verdict: str, rule: PolicyChange, kind: str, severity: Severity
    ) -> UnplacedFinding:
        name, short = local_name(agent), short_id(plain_value(item))
        may = "may only propose" if verdict == "propose" else "may not write"
        when = "" if severity == "violation" else ", recorded later on another branch"
        options = [("--kind", rule.kind or kind), ("--about", rule.path), ("--scope", rule.scope)]
        fields = [part for option, value in options if value for part in (option, value)]
        first = barred_curators(PolicyChange(kind=rule.kind or kind, path=rule.path, scope=rule.scope), self._policy)
        text = (
            f"{name} {may} this {kind.replace('_', ' ')}: {rule}{when}; a curator"
            f"{f' (after: {first})' if first else ''} ends it: jidomem edit {short} --invalidate --reason TEXT, or"
            f" confirms it: jidomem edit {short} --confirm; or allow it:"
            f" jidomem access policy set assert {join(fields)} --for {quote(name)}"
        )
        return UnplacedFinding(item, PERMITTED, severity, text, _RESPONSIBLE[0], iri(agent))

    def _writes(self, item: Term) -> Iterator[tuple[str, tuple[str, ...], str | None]]:
        """Yield kind, places and scope of a memory, and of each that it ends or revives, as a write is judged."""
        ended = [other for name in _ENDED for other in self._source.values(item, name)]
        is_marker = jido(MARKER) in self._source.types[item]
        for node in ended if is_marker else [item, *ended]:
            kind = next(filter(None, map(vocab.type_of, self._source.types.get(node, ()))), "")
            places = tuple(map(plain_value, self._source.values(node, jido("about"))))
            scopes = [local_name(value) for value in self._source.values(node, jido("hasConventionScope"))]
            yield kind, places, next(iter(scopes), None)

    def _verdict(
        self, policy: AccessPolicy, agent: str, writes: Iterable[tuple[str, tuple[str, ...], str | None]]
    ) -> tuple[str, PolicyChange | None, str]:
        """Return the first verdict on *writes* other than assert, its rule and kind."""
        role = policy.granted.get(agent, DEFAULT_ROLE)
        for kind, places, scope in writes:
            verdict, rule = policy.verdict(agent, role, (kind, family(kind)), places, scope)
            if verdict == "deny" or verdict == "propose":
                return verdict, rule, kind
        return "assert", None, ""

    def _policy_of(self, number: int) -> AccessPolicy:
        """Return the policy after the first *number* changes."""
        if number not in self._by_number:
            self._by_number[number] = self._with(self._changes[:number])
        return self._by_number[number]

    def _policy_beside(self, item: Term) -> AccessPolicy:
        """Return the policy of the changes that were not made on top of *item*."""
        commits = set(self._source.values(item, _COMMIT))
        beside = [n for n, change in enumerate(self._changes) if commits.isdisjoint(self._commits_before(change.node))]
        key = (*beside,)
        if key not in self._policies_beside:
            self._policies_beside[key] = self._with([self._changes[number] for number in beside])
        return self._policies_beside[key]

    @cached_property
    def _policies_beside(self) -> dict[tuple[int, ...], AccessPolicy]:
        return {}

    def _with(self, changes: Iterable[PolicyChange]) -> AccessPolicy:
        return AccessPolicy(tuple(changes), self._policy.base, self._policy.roles)

    def _commits_before(self, change: str) -> set[Term]:
        """Return the commit of a change and all its ancestors."""
        if change not in self._before:
            first = self._source.values(iri(change), _COMMIT)
            self._before[change] = {*first} | reachable(first, lambda commit: self._source.values(commit, _PARENT))
        return self._before[change]

    def _recorded(self, node: Term) -> datetime:
        return self._source.recorded_at(node) or _BEGINNING


def _undone(change: PolicyChange, earlier: Iterable[PolicyChange]) -> str:
    """Return the command that takes *change* back: to the last of the *earlier* ones of the same rule, if any."""
    if same := [each for each in earlier if each.slot == change.slot]:
        return same[-1].command
    if change.grants is not None:
        return f"jidomem access policy grant {quote(local_name(change.agent or ''))} {DEFAULT_ROLE}"
    return replace(change, allows=UNSET).command
