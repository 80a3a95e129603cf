"""Commits that record what the keeper of a journal was told to do, and by whom."""

from __future__ import annotations

from collections.abc import Iterable

from jidomem import vocab
from jidomem.clock import Sources
from jidomem.journal import commit as commits
from jidomem.journal.commit import Commit
from jidomem.journal.files import Stream
from jidomem.journal.horizon import moment_after
from jidomem.policy import AgentPolicy, Policy
from jidomem.terms import Term, Triple, bare, date_time, iri, literal
from jidomem.version import Version
from jidomem.vocab import jido
from jidomem.words import slug
from jidomem.write import names, triples
from jidomem.write.stages import WRITER_AGENT
from jidomem.write.view import View


def agent_iri(name: str) -> Term:
    """Return the IRI of an agent, from its IRI or its plain name."""
    return iri(name if names.is_absolute(name) else f"{vocab.BASE}agents/{slug(name)}")


def order(
    stream: Stream,
    version: Version,
    said: Iterable[tuple[Term, Term]],
    beside: Iterable[Triple] = (),
    *,
    agent: str,
    reason: str,
    view: View,
    policy: Policy,
    sources: Sources,
    ontology_version: str,
) -> Commit:
    """Return the commit on top of *version* that says *said* of itself and *beside*, who ordered it, and why."""
    now, who = sources.now(), agent_iri(agent)
    moment = moment_after(now, *version.heads)
    body: list[Triple] = [*beside, *((vocab.THIS, predicate, value) for predicate, value in said)]
    body += [(vocab.THIS, jido("orderedBy"), who), (vocab.THIS, jido("orderReason"), literal(reason))]
    if not view.types(who):
        declared = policy.agents.get(triples.name_of(who), AgentPolicy())
        body += [*triples.agent_stub(who, declared), (who, jido("recordedIn"), vocab.THIS)]
        body.append((who, jido("recordedAt"), date_time(moment)))
    return commits.build(
        graph=stream.graph,
        parents=version,
        recorded_at=moment,
        committer=bare(WRITER_AGENT),
        ontology_version=ontology_version,
        body=body,
        nonce=sources.nonce(),
    )


def said_of(commit: Commit, predicate: str) -> list[Term]:
    """Return what an order says of itself by *predicate*, sorted."""
    own, name = iri(commit.iri), jido(predicate)
    return sorted(value for s, p, value in commit.triples if s == own and p == name)
