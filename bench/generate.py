"""Realistic, connected memories of any number, determined by a seed.

    python -m bench.generate N [--seed 7] [--project bench]

Prints N intents as JSON lines, without storing them; a larger N begins with the same ones.  The intents simulate a
project: tasks are planned, started, blocked and completed; errors are reported, explained and resolved; decisions are
replaced, assumptions refuted, hypotheses confirmed.  A quarter of the memories end an earlier one.  Sessions have 20 to
200 memories, from two dozen agents, about one a minute: a million take two years.  The writer accepts each of them in
this order.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count, islice
from random import Random
from typing import Any

import orjson

from bench import words

START = datetime(2023, 1, 2, 8, 0, tzinfo=UTC)
STEP = timedelta(seconds=63)  # between two memories: a million in two years
POOL_SIZE = 2_000  # memories of each kind that may be ended later; the others stay active
EVIDENCE_SHARE, EXPLAINED_SHARE, TOPIC_SHARE, KEYED_SHARE = 0.4, 0.6, 0.7, 0.05

Fields = dict[str, Any]

#: The fields that a successor takes over from the memory it replaces, unless they are changed.
CARRIED_FIELDS = (
    "iri", "type", "summary", "about", "topic", "rationale", "status", "severity", "assigned_to", "convention_name",
    "enforcement_level", "tracked_by", "extra_triples", "expires_on",
)  # fmt: skip
#: Weight of each event, in percent; the events that end an earlier memory are the last rows.
SHARES = {
    "fact": 16, "discovery": 8, "assumption": 5, "hypothesis": 4, "risk": 5, "convention": 4, "lesson": 3,
    "decision": 4, "architectural_decision": 3, "implementation_decision": 6, "task": 15, "error": 7,
    "start_task": 6, "finish_task": 7.5, "resolve_error": 4, "replace_decision": 3.5, "correct_fact": 3,
    "refute_assumption": 1.5, "confirm_hypothesis": 1.5, "tighten_convention": 1, "close_risk": 1,
}  # fmt: skip


class Pool:
    """A random sample of the memories that may be ended later, at most POOL_SIZE."""

    def __init__(self, random: Random) -> None:
        self._random, self._memories = random, list[Fields]()

    def put(self, fields: Fields) -> None:
        if len(self._memories) < POOL_SIZE:
            self._memories.append(fields)
        else:
            self._memories[int(self._random.random() * POOL_SIZE)] = fields

    def sample(self) -> Fields | None:
        """Return one of the memories; None if the pool is empty."""
        return self._memories[int(self._random.random() * len(self._memories))] if self._memories else None

    def take(self) -> Fields | None:
        """Remove one of the memories and return it; None if the pool is empty."""
        if not self._memories:
            return None
        at = int(self._random.random() * len(self._memories))
        self._memories[at], self._memories[-1] = self._memories[-1], self._memories[at]
        return self._memories.pop()


class ProjectSimulation:
    """A simulated project: open memories, active sessions, and the next intents."""

    def __init__(self, seed: int, project: str) -> None:
        self.random = Random(seed)
        self.project, self.number, self.sessions = project, 0, count(1)
        self.active_sessions = [self._session() for _ in range(3)]
        kinds = ("task", "error", "decision", "fact", "assumption", "hypothesis", "convention", "risk")
        self.open = {kind: Pool(self.random) for kind in kinds}
        self.recent = Pool(self.random)
        self.events, self.weights = list(SHARES), list(SHARES.values())

    def intents(self) -> Iterator[Fields]:
        while True:
            (event,) = self.random.choices(self.events, self.weights)
            make = getattr(self, event, None)
            yield from make() if make else self.standalone(event)

    # memories without a predecessor

    def standalone(self, kind: str) -> Iterator[Fields]:
        """Yield a fact, discovery, risk, assumption, hypothesis, lesson, convention or decision."""
        n, component, concern, tool = (
            self.number,
            self.component(),
            self.pick(words.CONCERNS),
            self.pick(words.TOOLS),
        )
        environment, symptom, action = (
            self.pick(words.ENVIRONMENTS),
            self.pick(words.SYMPTOMS),
            self.pick(words.ACTIONS),
        )
        summary = {
            "fact": f"On {environment}, {component} needs {1 + n % 97} ms for {concern} with {tool} (run {n})",
            "discovery": f"{component} {symptom} on {environment} once {tool} restarts (run {n})",
            "assumption": f"{component} sees fewer than {1_000 + n} requests a minute on {environment}",
            "hypothesis": f"{component} {symptom} because of {self.pick(words.CAUSES)} (run {n})",
            "risk": f"{tool} may go away before {component} has another way of {concern} (review {n})",
            "lesson": f"Before you {action} {component}, look at its {concern}: run {n} cost us a day",
            "convention": f"{concern.capitalize()} in {component} goes through {tool} (rule {n})",
        }.get(kind, f"Use {tool} for {concern} in {component} (proposal {n})")
        fields = {
            "type": kind,
            "summary": summary,
            "about": self.about(),
            **self.kind_fields(kind, n, component, concern),
        }
        pool = "decision" if kind.endswith("decision") else kind
        yield self.intent(fields, pool_name=pool if pool in self.open else None)

    def kind_fields(self, kind: str, n: int, component: str, concern: str) -> Fields:
        """Return the fields specific to a kind; a topic has the number of the memory and is therefore unique."""
        topic = f"{concern} in {component}, matter {n}"
        if kind.endswith("decision"):
            others = [f"Keep what is there for {concern}", f"Use {self.pick(words.TOOLS)} instead"]
            chosen = others[: int(self.random.random() * 3)] if self.chance(0.3) else []
            return {"topic": topic, "rationale": f"Because {self.pick(words.REASONS)}.", "alternatives": chosen}
        if kind == "convention":
            name = f"{concern}-{component}-{n}".replace(" ", "-")
            return {"convention_name": name, "enforcement_level": self.pick(("Advisory", "Required", "Strict"))}
        if kind == "assumption":
            return {"expires_on": (self.now() + timedelta(days=90)).date().isoformat()}
        if kind in ("fact", "discovery") and self.chance(TOPIC_SHARE):
            return {"topic": topic}
        return {}

    def task(self) -> Iterator[Fields]:
        """Yield a task, which may depend on others or be blocked by one."""
        others = {o["iri"] for _ in range(2) if self.chance(0.25) and (o := self.open["task"].sample())}
        links = [["jido:dependsOn", {"@id": other}] for other in sorted(others)]
        fields: Fields = {"assigned_to": self.agent(), "status": "Planned", "extra_triples": links}
        if self.chance(0.08) and (blocker := self.open["task"].sample()):
            fields |= {"status": "Blocked", "extra_triples": [*links, ["jido:blockedBy", {"@id": blocker["iri"]}]]}
        if self.chance(0.3):
            fields["tracked_by"] = f"https://git.example.org/{self.project}/issues/{self.number}"
        action, concern = self.pick(words.ACTIONS).capitalize(), self.pick(words.CONCERNS)
        summary = f"{action} the {concern} of {self.component()} (#{self.number})"
        yield self.intent({"type": "task", "summary": summary, "about": self.about(), **fields}, pool_name="task")

    def error(self) -> Iterator[Fields]:
        """Yield a newly reported error."""
        component, symptom, environment = self.component(), self.pick(words.SYMPTOMS), self.pick(words.ENVIRONMENTS)
        summary = f"{component} {symptom} on {environment} (incident {self.number})"
        severity = self.pick(("medium", "low", "high", "critical"))
        fields = {"type": "error", "summary": summary, "about": self.about(), "severity": severity}
        yield self.intent({**fields, "status": self.pick(("Reported", "Investigating"))}, pool_name="error")

    # memories that end an earlier one

    def start_task(self) -> Iterator[Fields]:
        yield from self.successor("task", "task", pool_name="task", status="InProgress", reason="work began")

    def finish_task(self) -> Iterator[Fields]:
        status = "Abandoned" if self.chance(0.1) else "Completed"
        yield from self.successor(
            "task", "task", status=status, reason=f"{status.lower()} in {self.pick(words.ENVIRONMENTS)}"
        )

    def resolve_error(self) -> Iterator[Fields]:
        """Yield the root cause of an error, perhaps a lesson, and the resolved error, linked to both."""
        reported = self.open["error"].take()
        if reported is None:
            return
        n, about = self.number, reported["about"]
        cause = f"The cause of incident {n} was {self.pick(words.CAUSES)} in {self.component()}"
        root = self.intent({"type": "root_cause", "summary": cause, "about": about, "evidence": [reported["iri"]]})
        links = [["jido:hasRootCause", {"@id": root["iri"]}]]
        yield root
        if self.chance(0.6):
            summary = f"After incident {n}: {self.pick(words.ACTIONS)} the {self.pick(words.CONCERNS)} before shipping"
            fields = {"type": "lesson", "summary": summary, "about": about, "evidence": [reported["iri"]]}
            lesson = self.intent(fields)
            links.append(["jido:producedLesson", {"@id": lesson["iri"]}])
            yield lesson
        changes = {"status": "Resolved", "extra_triples": links, "supersedes": [reported["iri"]], "reason": "fixed"}
        yield self.intent({**reported, **changes})

    def replace_decision(self) -> Iterator[Fields]:
        tool, reason = self.pick(words.TOOLS), self.pick(words.REASONS)
        summary = f"Use {tool} from now on, because {reason} (proposal {self.number})"
        why = f"Because {reason}, measured in {self.pick(words.ENVIRONMENTS)}."
        yield from self.successor(
            "decision", None, pool_name="decision", summary=summary, rationale=why, alternatives=[]
        )

    def correct_fact(self) -> Iterator[Fields]:
        summary = f"{self.component()} needs {1 + self.number % 89} ms, not what was said (run {self.number})"
        yield from self.successor("fact", "fact", pool_name="fact", summary=summary, reason="measured again")

    def refute_assumption(self) -> Iterator[Fields]:
        refuted = self.open["assumption"].take()
        if refuted is not None:
            summary = (
                f"{self.component()} {self.pick(words.SYMPTOMS)}: what was assumed does not hold (run {self.number})"
            )
            fields = {"type": "discovery", "summary": summary, "about": refuted["about"]}
            yield self.intent(
                {**fields, "invalidates": [refuted["iri"]], "evidence": [self.log_entry()], "reason": "refuted"}
            )

    def confirm_hypothesis(self) -> Iterator[Fields]:
        evidence = [f"experiment {self.number} on {self.pick(words.ENVIRONMENTS)}"]
        yield from self.successor("hypothesis", "fact", pool_name="fact", evidence=evidence, reason="confirmed")

    def tighten_convention(self) -> Iterator[Fields]:
        changes = {"enforcement_level": "Strict", "reason": "it was not kept to"}
        yield from self.successor("convention", "convention", pool_name="convention", **changes)

    def close_risk(self) -> Iterator[Fields]:
        risk = self.open["risk"].take()
        if risk is not None:
            summary = f"The risk reviewed in {risk['summary'].rsplit('(')[-1].rstrip(')')} is gone (run {self.number})"
            fields = {"type": "fact", "summary": summary, "about": risk["about"]}
            yield self.intent({**fields, "invalidates": [risk["iri"]], "reason": "it went away"})

    def successor(
        self, pool: str, kind: str | None, *, pool_name: str | None = None, **changes: Any
    ) -> Iterator[Fields]:
        """Yield a successor of an open memory, with *changes*."""
        before = self.open[pool].take()
        if before is not None:
            fields = {
                **before,
                "type": kind or before["type"],
                **changes,
                "supersedes": [before["iri"]],
                "reason": "it changed",
            }
            yield self.intent(fields, pool_name=pool_name)

    # the fields of an intent

    def intent(self, fields: Fields, *, pool_name: str | None = None) -> Fields:
        """Return the intent with author, time, confidence and evidence; *pool_name* is the pool that it joins."""
        session = self.session()
        agents = session["agents"]
        intent = {
            **fields,
            "iri": self.iri(self.number),
            "applies_to_project": self.project,
            "asserted_by": agents[int(self.random.random() ** 2 * len(agents))],
            "asserted_in": session["name"],
            "confidence": self.pick(("medium", "high", "low")) if self.chance(0.8) else round(self.random.random(), 2),
            "timestamp": self.now().isoformat(),
        }
        if "evidence" not in fields and self.chance(EVIDENCE_SHARE):
            intent["evidence"] = self.evidence()
        if self.chance(EXPLAINED_SHARE):
            remarks = [self.pick(words.REMARKS) for _ in range(1 + int(self.random.random() * 4))]
            intent["detailed_explanation"] = " ".join(remarks)
        if fields["type"] not in ("lesson", "root_cause") and self.chance(KEYED_SHARE):
            intent["idempotency_key"] = f"{self.project}-{self.number}"
        self.number += 1
        self.recent.put({"iri": intent["iri"]})
        if pool_name:
            self.open[pool_name].put({"about": [], **{name: intent[name] for name in CARRIED_FIELDS if name in intent}})
        return {name: value for name, value in intent.items() if value != []}

    def session(self) -> Fields:
        """Return one of the active sessions; a finished session is replaced by a new one."""
        at = int(self.random.random() * len(self.active_sessions))
        session = self.active_sessions[at]
        session["left"] -= 1
        if session["left"] == 0:
            self.active_sessions[at] = self._session()
        return session

    def iri(self, n: int) -> str:
        """Return the IRI of memory *n*: a UUIDv7 of its timestamp."""
        moment = int(self.now().timestamp() * 1000)
        digits = f"{moment << 80 | 0x7 << 76 | (n & 0xFFF) << 64 | 0b10 << 62 | self.random.getrandbits(62):032x}"
        return f"https://jido.ai/memory/{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def now(self) -> datetime:
        return START + STEP * self.number

    def evidence(self) -> list[str]:
        """Return a log entry, the address of a commit, or an earlier memory."""
        earlier = self.recent.sample() if self.chance(0.5) else None
        if earlier:
            return [earlier["iri"]]
        commit = f"https://git.example.org/{self.project}/commit/{self.zipf(1 + self.number // 3):07x}"
        return [commit if self.chance(0.4) else self.log_entry()]

    def log_entry(self) -> str:
        return f"log of run {self.zipf(1 + self.number // 2)} on {self.pick(words.ENVIRONMENTS)}"

    def about(self) -> list[str]:
        """Return one to three files; the repository grows with the number of memories."""
        files = 100 + int(self.number**0.75)
        return sorted({file_name(self.zipf(files)) for _ in range(1 + int(self.random.random() ** 3 * 3))})

    def component(self) -> str:
        return f"{self.pick(words.AREAS)} {self.pick(words.COMPONENTS)}"

    def agent(self) -> str:
        return self.pick(words.AGENTS)

    def pick(self, values: Sequence[str]) -> str:
        return values[self.zipf(len(values))]

    def zipf(self, size: int, flat: int = 20) -> int:
        """Return a rank below *size*, the first ones most often (Zipf-Mandelbrot, exponent 1)."""
        return min(size - 1, int(flat * ((1 + size / flat) ** self.random.random() - 1)))

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def _session(self) -> Fields:
        agents = list(dict.fromkeys(self.agent() for _ in range(1 + int(self.random.random() * 4))))
        name = f"session-{next(self.sessions):06d}"
        return {"name": name, "agents": agents, "left": 20 + int(self.random.random() * 181)}


def file_name(rank: int) -> str:
    """Return the path of file *rank* of the repository; no two ranks have the same."""
    part, rest = rank * 7 % len(words.COMPONENTS), rank // len(words.COMPONENTS)
    area, rest = (rest * 11 + part) % len(words.AREAS), rest // len(words.AREAS)
    role, rest = words.ROLES[rest % len(words.ROLES)], rest // len(words.ROLES)
    folder = f"src/{words.AREAS[area]}" + (f"/v{rest}" if rest else "")
    return f"{folder}/{words.COMPONENTS[part]}{role}{words.SUFFIXES[(part + area) % len(words.SUFFIXES)]}"


def intents(n: int, seed: int = 7, project: str = "bench") -> Iterator[Fields]:
    """Yield the first *n* intents of a generated project, as `MemoryUpdateIntent.from_dict` takes them."""
    return islice(ProjectSimulation(seed, project).intents(), n)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.generate", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("memories", type=int, metavar="N", help="number of intents")
    parser.add_argument("--seed", type=int, default=7, help="seed of the project (default: 7)")
    parser.add_argument("--project", default="bench", help="name of the project (default: bench)")
    options = parser.parse_args()
    for intent in intents(options.memories, options.seed, options.project):
        sys.stdout.buffer.write(orjson.dumps(intent) + b"\n")


if __name__ == "__main__":
    main()
