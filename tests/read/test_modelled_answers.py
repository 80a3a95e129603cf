"""The answers about a random memory, compared with a model: its files read by rdflib, its rules in plain Python."""

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from random import Random
from uuid import UUID

import pytest
import rdflib
from conftest import START, fixed_sources, intent

import jidomem
from jidomem.errors import JidomemError, NotFound
from jidomem.journal.commit import parse
from jidomem.journal.rewrite import leaves, redacted_leaves, without
from jidomem.rdf.terms import iri
from jidomem.rdf.vocab import JIDO
from jidomem.read.derived import counts

NS = rdflib.Namespace(JIDO)
FAR = datetime.max.replace(tzinfo=UTC)
KINDS = ["fact", "architectural_decision", "decision", "task", "error", "risk", "assumption"]
#: Query -> the class that it lists, and the column of the memory.
LISTS = {
    "active-decisions": ("ArchitecturalDecision", "decision"),
    "decisions": ("Decision", "decision"),
    "facts": ("Fact", "fact"),
    "open-errors": ("Error", "err"),
    "open-tasks": ("Task", "task"),
    "risks": ("Risk", "risk"),
    "timeline": ("MemoryItem", "item"),
}
ENDS = ("supersededBy", "invalidatedBy")
ZONES = [UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-3))]


class Model:
    """All triples in the files of a project, and the validity of each memory."""

    def __init__(self, root, schema):
        files = sorted(root.glob("projects/p/memory/*.ttl"))
        redacted = {file.name.replace(".redacted", "") for file in files if ".redacted." in file.name}
        self.said = rdflib.Graph()
        commits = [parse(file.read_bytes()) for file in files if file.name not in redacted]
        redactions = redacted_leaves(commits)  # a redaction from elsewhere counts before its commits are rewritten
        for commit in commits:
            ordered = redactions.get(commit.id, frozenset()) & {*leaves(commit).values()}
            remaining = without(commit, ordered) if ordered else commit
            self.said.parse(data=remaining.data.decode(), format="turtle")
        items = {*self.said.subjects(NS.appliesToProject, rdflib.URIRef("https://jido.ai/projects/p"))}
        # nothing changes the graph, and each question is asked for many moments
        self.moments, self.ended, self.status = map(cache, (self.moments, self.ended, self.status))
        self.kinds, self.is_a = cache(self.kinds), cache(schema.is_a)
        self.with_summary = {item for item in items if any(self.said.objects(item, NS.summary))}
        self.recorded = {item: self.moments(item, "recordedAt")[0] for item in items}

    def kinds(self, item):
        return [iri(kind) for kind in self.said.objects(item, rdflib.RDF.type)]

    def moments(self, item, name):
        return [datetime.fromisoformat(str(moment)) for moment in self.said.objects(item, NS[name])]

    def ended(self, item, link, moment):
        """Return the recording times of the memories that ended a memory by a moment."""
        asserted = (NS.hasAssertionStatus, NS.Asserted)
        ends = (end for end in self.said.objects(item, NS[link]) if (end, *asserted) in self.said)
        return [at for end in ends for at in self.moments(end, "recordedAt") if at <= moment]

    def status(self, item, moment):
        is_proposal = (item, NS.hasAssertionStatus, NS.Proposed) in self.said
        if self.ended(item, "invalidatedBy", moment):
            return "rejected" if is_proposal else "invalidated"
        if self.ended(item, "supersededBy", moment):
            return "superseded"
        if is_proposal:
            return "pending"
        stated = str(self.said.value(item, NS.decisionStatus, default="accepted"))
        return "active" if stated == "accepted" else stated

    def state(self, item, moment, now):
        """Return the status of a memory, for an active one also its validity in the world; or that of a marker."""
        status, world = self.status(item, moment), min(moment, now)
        if status == "active" and any(until <= world for until in self.moments(item, "validUntil")):
            return "expired"
        return "withdrawal" if status == "active" and str(item) in deletion_markers(self) else status

    def known(self, moment, world):
        """Return the memories recorded by a moment and valid at one of the world."""
        items = {item for item, at in self.recorded.items() if at <= moment}
        if world is None:
            return items
        items = {item for item in items if not any(since > world for since in self.moments(item, "validFrom"))}
        return {item for item in items if not any(until <= world for until in self.moments(item, "validUntil"))}

    def listed(self, cls, moment, world, inactive):
        """Return the rows of a list: memories of the class with a summary, active unless *inactive*."""
        stated = self.known(moment, world) & self.with_summary
        chosen = {item for item in stated if inactive or self.status(item, moment) == "active"}
        return {str(item) for item in chosen if any(self.is_a(kind, iri(JIDO + cls)) for kind in self.kinds(item))}

    def counted(self, moment, world):
        found, valid = {}, self.known(moment, world)
        for item in self.known(moment, None):
            kind = str(self.said.value(item, rdflib.RDF.type)).removeprefix(JIDO)
            status = self.status(item, moment)
            if status == "active" and item not in valid:
                is_over = any(until <= world for until in self.moments(item, "validUntil"))
                status = "expired" if is_over else "scheduled"
            if kind == "DeletedMarker" and status != "pending":
                continue  # a marker withdraws a memory, and is not counted itself
            of = found.setdefault(kind, {})
            of[status] = of.get(status, 0) + 1
        return found

    def changed(self, since, until, now):
        """Return each memory added or ended in between, with its status before and after."""
        news = set()
        for item in self.known(until, None):
            at = self.recorded[item]
            if any(when > since for link in ENDS for when in (at, *self.ended(item, link, until))):
                before = self.state(item, since, now) if at <= since else None
                news.add((str(item), before, self.state(item, until, now)))
        return news


def sources(random, start, still=()):
    """A clock that sometimes stops, also at the moment in *still*, and is sometimes set back; random ids."""
    now = [start]

    def tick():
        if still:
            return still[0]
        now[0] += timedelta(microseconds=random.choice([0, 0, 1, 500_000])) - timedelta(seconds=random.random() < 0.02)
        return now[0]

    return replace(
        fixed_sources(),
        now=tick,
        new_id=lambda: str(UUID(int=random.getrandbits(128), version=4)),
        nonce=lambda: random.randbytes(32),
    )


def perform_actions(memory, random, items, steps=25):
    """Perform random actions of several agents; refusals are ignored."""
    writer = memory.writer
    actions = [
        *["say"] * 5,
        "propose",
        "revise",
        "revise",
        "withdraw",
        "undo",
        "accept",
        "reject",
        "roll back",
        "redact",
    ]
    for _ in range(steps):
        action, pick = random.choice(actions), random.choice(items) if items else None
        try:
            if action in ("say", "propose") or pick is None:
                until = memory.sources.now() + timedelta(seconds=random.choice([-2, 0, 2]))
                fields = intent(type=random.choice(KINDS), summary=f"n {random.random()}", rationale="so")
                fields |= {"valid_until": until.isoformat()} if random.random() < 0.3 else {}
                if fields["type"].endswith("decision"):
                    fields["status"] = random.choice(
                        [None, "accepted", "accepted", "rejected", "deprecated", "proposed"]
                    )
                fields |= {"asserted_by": random.choice(["ana", "ben", "रीम"]), "evidence": ["log"]}
                items.append(writer.submit_intent("p", fields, propose=action == "propose").iri)
            elif action == "revise":
                items.append(writer.revise("p", pick, changes={"summary": f"r {random.random()}"}, reason="new").iri)
            elif action == "withdraw":
                writer.invalidate("p", pick, reason="wrong")
            elif action == "undo":
                items.append(writer.undo("p", pick).iri)
            elif action == "redact":
                memory.maintenance.redact(memory.maintenance.plan("p", pick), agent="ana", reason="why not")
            elif action == "roll back":
                rows = memory.reader.log("p").rows[:5]
                memory.roll_back(random.choice(rows)["recorded_at"], project="p", reason="back")
            else:
                writer.settle("p", pick, action, reason="looked at")
        except JidomemError:
            continue


def compare(memory, root, random, still):
    """Query reader and model at several moments of both clocks, in several time zones."""
    now = memory.sources.now().replace(microsecond=0)
    still.append(now)
    model, reader = Model(root, memory.schema), memory.reader
    times = sorted(model.recorded.values())
    for moment in (None, *random.sample(times, 2), random.choice(times) - timedelta(microseconds=1)):
        for world in (None, random.choice([*times, *model.moments(None, "validUntil")])):
            times_asked = {"as_of": moment, "valid_at": world}
            times_asked = {
                name: at and at.astimezone(random.choice(ZONES)).isoformat() for name, at in times_asked.items()
            }
            then = moment or FAR
            for name, (cls, column) in LISTS.items():
                for inactive in (False, True):
                    rows = reader.ask(name, project="p", include_inactive=inactive, **times_asked)
                    holds_at = None if inactive else world or min(then, now)  # else each has its status at *world*
                    expected = model.listed(cls, then, holds_at, inactive)
                    assert {row[column] for row in rows} == expected, (name, times_asked, inactive)
            assert counts(reader, "p", **times_asked) == model.counted(then, world or min(then, now)), times_asked
            hits = memory.recall("n r", "p", limit=1000, min_score=0, **times_asked).entries
            assert {hit.id for hit in hits} == model.listed(
                "MemoryItem", then, world or min(then, now), False
            ) - deletion_markers(model), times_asked
        for item, at in model.recorded.items():
            if at > then:
                with pytest.raises(NotFound):
                    reader.get_memory("p", item, as_of=moment)
            else:
                assert reader.get_memory("p", item, as_of=moment)["status"] == model.state(item, then, now)
        since = min(random.choice(times), then)
        rows = reader.diff("p", since, moment)
        assert {(row["item"], row["before"], row["after"]) for row in rows} == model.changed(since, then, now)


def deletion_markers(model):
    """The markers of withdrawals, which recall leaves out."""
    return {str(item) for item in model.said.subjects(rdflib.RDF.type, NS.DeletedMarker)}


@pytest.mark.parametrize("seed", range(2))
def test_a_random_merged_memory_answers_at_every_moment_as_its_model(seed, tmp_path):
    random, ours, theirs, items = Random(seed), tmp_path / "ours", tmp_path / "theirs", []
    with jidomem.open(ours, sources=sources(random, START)) as memory:
        perform_actions(memory, random, items)
    shutil.copytree(ours, theirs, ignore=shutil.ignore_patterns("index", "cache", "*.lock"))
    for root in (ours, theirs):
        with jidomem.open(root, sources=sources(random, START + timedelta(minutes=1))) as memory:
            perform_actions(memory, random, [*items])

    still = []
    with jidomem.open(ours, sources=sources(random, START + timedelta(minutes=1, seconds=2), still)) as memory:
        compare(memory, ours, random, still)
        for file in theirs.glob("projects/**/*.ttl"):
            to = ours / file.relative_to(theirs)
            to.exists() or shutil.copy(file, to)
        compare(memory, ours, random, still)
        still.clear()
        perform_actions(memory, random, [row["item"] for row in memory.reader.ask("timeline", project="p")])
        compare(memory, ours, random, still)
