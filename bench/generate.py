"""Realistic, connected memories of any size, the same ones for the same seed.

    python -m bench.generate N [--seed 7] [--project bench]

Prints N intents as JSON lines, one a line, as fast as they are made and without holding them; a larger N begins with
the same ones.  A project is played through: tasks are planned, started, blocked and completed; errors are reported,
explained and resolved; decisions are replaced, assumptions refuted, hypotheses confirmed.  A quarter of the memories
end an earlier one.  They come in sessions of 20 to 200, from two dozen agents, one about every minute: a million take
two years.  The writer accepts each of them in this order.
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
OPEN = 2_000  # of each kind, how many are recorded to be ended later; the others stay active
EVIDENCE_SHARE, EXPLAINED_SHARE, TOPIC_SHARE, KEYED_SHARE = 0.4, 0.6, 0.7, 0.05

Fields = dict[str, Any]

#: What a memory that replaces another says as that one did, unless that is what changed.
CARRIED = (
    "iri", "type", "summary", "about", "topic", "rationale", "status", "severity", "assigned_to", "convention_name",
    "enforcement_level", "tracked_by", "extra_triples", "expires_on",
)  # fmt: skip
#: What happens next -> how often in a hundred times; the deeds that end an earlier memory are the last rows.
SHARES = {
    "fact": 16, "discovery": 8, "assumption": 5, "hypothesis": 4, "risk": 5, "convention": 4, "lesson": 3,
    "decision": 4, "architectural_decision": 3, "implementation_decision": 6, "task": 15, "error": 7,
    "start_task": 6, "finish_task": 7.5, "resolve_error": 4, "replace_decision": 3.5, "correct_fact": 3,
    "refute_assumption": 1.5, "confirm_hypothesis": 1.5, "tighten_convention": 1, "close_risk": 1,
}  # fmt: skip


class Pool:
    """A sample of the memories that may be ended later, at most OPEN."""

    def __init__(self, random: Random) -> None:
        self._random, self._held = random, list[Fields]()

    def put(self, fields: Fields) -> None:
        if len(self._held) < OPEN:
            self._held.append(fields)
        else:
            self._held[int(self._random.random() * OPEN)] = fields

    def some(self) -> Fields | None:
        return self._held[int(self._random.random() * len(self._held))] if self._held else None

    def take(self) -> Fields | None:
        if not self._held:
            return None
        at = int(self._random.random() * len(self._held))
        self._held[at], self._held[-1] = self._held[-1], self._held[at]
        return self._held.pop()


class Life:
    """The simulated life of a project: open memories, working sessions, and the next intents."""

    def __init__(self, seed: int, project: str) -> None:
        self.random = Random(seed)
        self.project, self.number, self.sessions = project, 0, count(1)
        self.working = [self._session() for _ in range(3)]
        kinds = ("task", "error", "decision", "fact", "assumption", "hypothesis", "convention", "risk")
        self.open = {kind: Pool(self.random) for kind in kinds}
        self.recent = Pool(self.random)
        self.deeds, self.weights = list(SHARES), list(SHARES.values())

    def intents(self) -> Iterator[Fields]:
        while True:
            (deed,) = self.random.choices(self.deeds, self.weights)
            make = getattr(self, deed, None)
            yield from make() if make else self.plain(deed)

    # memories without a predecessor

    def plain(self, kind: str) -> Iterator[Fields]:
        """A fact, discovery, risk, assumption, hypothesis, lesson, convention or decision."""
        n, area, matter, tool = self.number, self.area(), self.one(words.MATTERS), self.one(words.TOOLS)
        scene, symptom, deed = self.one(words.SCENES), self.one(words.SYMPTOMS), self.one(words.ACTIONS)
        summary = {
            "fact": f"On {scene}, {area} needs {1 + n % 97} ms for {matter} with {tool} (run {n})",
            "discovery": f"{area} {symptom} on {scene} once {tool} restarts (run {n})",
            "assumption": f"{area} sees fewer than {1_000 + n} requests a minute on {scene}",
            "hypothesis": f"{area} {symptom} because of {self.one(words.CAUSES)} (run {n})",
            "risk": f"{tool} may go away before {area} has another way of {matter} (review {n})",
            "lesson": f"Before you {deed} {area}, look at its {matter}: run {n} cost us a day",
            "convention": f"{matter.capitalize()} in {area} goes through {tool} (rule {n})",
        }.get(kind, f"Use {tool} for {matter} in {area} (proposal {n})")
        fields = {"type": kind, "summary": summary, "about": self.about(), **self.further(kind, n, area, matter)}
        pool = "decision" if kind.endswith("decision") else kind
        yield self.say(fields, keep=pool if pool in self.open else None)

    def further(self, kind: str, n: int, area: str, matter: str) -> Fields:
        """The further fields of this kind; a topic has the number of the memory and is therefore unique."""
        topic = f"{matter} in {area}, matter {n}"
        if kind.endswith("decision"):
            others = [f"Keep what is there for {matter}", f"Use {self.one(words.TOOLS)} instead"]
            chosen = others[: int(self.random.random() * 3)] if self.chance(0.3) else []
            return {"topic": topic, "rationale": f"Because {self.one(words.REASONS)}.", "alternatives": chosen}
        if kind == "convention":
            name = f"{matter}-{area}-{n}".replace(" ", "-")
            return {"convention_name": name, "enforcement_level": self.one(("Advisory", "Required", "Strict"))}
        if kind == "assumption":
            return {"expires_on": (self.now() + timedelta(days=90)).date().isoformat()}
        if kind in ("fact", "discovery") and self.chance(TOPIC_SHARE):
            return {"topic": topic}
        return {}

    def task(self) -> Iterator[Fields]:
        """A task, that may depend on others or be blocked by one."""
        others = {o["iri"] for _ in range(2) if self.chance(0.25) and (o := self.open["task"].some())}
        links = [["jido:dependsOn", {"@id": other}] for other in sorted(others)]
        fields: Fields = {"assigned_to": self.agent(), "status": "Planned", "extra_triples": links}
        if self.chance(0.08) and (blocker := self.open["task"].some()):
            fields |= {"status": "Blocked", "extra_triples": [*links, ["jido:blockedBy", {"@id": blocker["iri"]}]]}
        if self.chance(0.3):
            fields["tracked_by"] = f"https://git.example.org/{self.project}/issues/{self.number}"
        summary = (
            f"{self.one(words.ACTIONS).capitalize()} the {self.one(words.MATTERS)} of {self.area()} (#{self.number})"
        )
        yield self.say({"type": "task", "summary": summary, "about": self.about(), **fields}, keep="task")

    def error(self) -> Iterator[Fields]:
        """An error as it is first reported."""
        summary = f"{self.area()} {self.one(words.SYMPTOMS)} on {self.one(words.SCENES)} (incident {self.number})"
        severity = self.one(("medium", "low", "high", "critical"))
        fields = {"type": "error", "summary": summary, "about": self.about(), "severity": severity}
        yield self.say({**fields, "status": self.one(("Reported", "Investigating"))}, keep="error")

    # memories that end an earlier one

    def start_task(self) -> Iterator[Fields]:
        yield from self.again("task", "task", keep="task", status="InProgress", reason="work began")

    def finish_task(self) -> Iterator[Fields]:
        status = "Abandoned" if self.chance(0.1) else "Completed"
        yield from self.again("task", "task", status=status, reason=f"{status.lower()} in {self.one(words.SCENES)}")

    def resolve_error(self) -> Iterator[Fields]:
        """The root cause of an error, the lesson it taught, and the error resolved, linked to both."""
        reported = self.open["error"].take()
        if reported is None:
            return
        n, about = self.number, reported["about"]
        cause = f"The cause of incident {n} was {self.one(words.CAUSES)} in {self.area()}"
        root = self.say({"type": "root_cause", "summary": cause, "about": about, "evidence": [reported["iri"]]})
        links = [["jido:hasRootCause", {"@id": root["iri"]}]]
        yield root
        if self.chance(0.6):
            summary = f"After incident {n}: {self.one(words.ACTIONS)} the {self.one(words.MATTERS)} before shipping"
            fields = {"type": "lesson", "summary": summary, "about": about, "evidence": [reported["iri"]]}
            lesson = self.say(fields)
            links.append(["jido:producedLesson", {"@id": lesson["iri"]}])
            yield lesson
        changes = {"status": "Resolved", "extra_triples": links, "supersedes": [reported["iri"]], "reason": "fixed"}
        yield self.say({**reported, **changes})

    def replace_decision(self) -> Iterator[Fields]:
        tool, reason = self.one(words.TOOLS), self.one(words.REASONS)
        summary = f"Use {tool} from now on, because {reason} (proposal {self.number})"
        why = f"Because {reason}, measured in {self.one(words.SCENES)}."
        yield from self.again("decision", None, keep="decision", summary=summary, rationale=why, alternatives=[])

    def correct_fact(self) -> Iterator[Fields]:
        summary = f"{self.area()} needs {1 + self.number % 89} ms, not what was said (run {self.number})"
        yield from self.again("fact", "fact", keep="fact", summary=summary, reason="measured again")

    def refute_assumption(self) -> Iterator[Fields]:
        refuted = self.open["assumption"].take()
        if refuted is not None:
            summary = f"{self.area()} {self.one(words.SYMPTOMS)}: what was assumed does not hold (run {self.number})"
            fields = {"type": "discovery", "summary": summary, "about": refuted["about"]}
            yield self.say({**fields, "invalidates": [refuted["iri"]], "evidence": [self.run()], "reason": "refuted"})

    def confirm_hypothesis(self) -> Iterator[Fields]:
        evidence = [f"experiment {self.number} on {self.one(words.SCENES)}"]
        yield from self.again("hypothesis", "fact", keep="fact", evidence=evidence, reason="confirmed")

    def tighten_convention(self) -> Iterator[Fields]:
        changes = {"enforcement_level": "Strict", "reason": "it was not kept to"}
        yield from self.again("convention", "convention", keep="convention", **changes)

    def close_risk(self) -> Iterator[Fields]:
        risk = self.open["risk"].take()
        if risk is not None:
            summary = f"The risk reviewed in {risk['summary'].rsplit('(')[-1].rstrip(')')} is gone (run {self.number})"
            fields = {"type": "fact", "summary": summary, "about": risk["about"]}
            yield self.say({**fields, "invalidates": [risk["iri"]], "reason": "it went away"})

    def again(self, pool: str, kind: str | None, *, keep: str | None = None, **changes: Any) -> Iterator[Fields]:
        """A successor of an open memory, with *changes*."""
        before = self.open[pool].take()
        if before is not None:
            fields = {
                **before,
                "type": kind or before["type"],
                **changes,
                "supersedes": [before["iri"]],
                "reason": "it changed",
            }
            yield self.say(fields, keep=keep)

    # the fields of an intent

    def say(self, fields: Fields, *, keep: str | None = None) -> Fields:
        """The intent with author, time, confidence and evidence; *keep* is the pool from which it may be ended."""
        session = self.session()
        agents = session["agents"]
        intent = {
            **fields,
            "iri": self.iri(self.number),
            "applies_to_project": self.project,
            "asserted_by": agents[int(self.random.random() ** 2 * len(agents))],
            "asserted_in": session["name"],
            "confidence": self.one(("medium", "high", "low")) if self.chance(0.8) else round(self.random.random(), 2),
            "timestamp": self.now().isoformat(),
        }
        if "evidence" not in fields and self.chance(EVIDENCE_SHARE):
            intent["evidence"] = self.evidence()
        if self.chance(EXPLAINED_SHARE):
            remarks = [self.one(words.REMARKS) for _ in range(1 + int(self.random.random() * 4))]
            intent["detailed_explanation"] = " ".join(remarks)
        if fields["type"] not in ("lesson", "root_cause") and self.chance(KEYED_SHARE):
            intent["idempotency_key"] = f"{self.project}-{self.number}"
        self.number += 1
        self.recent.put({"iri": intent["iri"]})
        if keep:
            self.open[keep].put({"about": [], **{name: intent[name] for name in CARRIED if name in intent}})
        return {name: value for name, value in intent.items() if value != []}

    def session(self) -> Fields:
        """One of the working sessions; a finished session is replaced by a new one."""
        at = int(self.random.random() * len(self.working))
        session = self.working[at]
        session["left"] -= 1
        if session["left"] == 0:
            self.working[at] = self._session()
        return session

    def iri(self, n: int) -> str:
        """The IRI of memory *n*: a UUIDv7 of its moment."""
        moment = int(self.now().timestamp() * 1000)
        digits = f"{moment << 80 | 0x7 << 76 | (n & 0xFFF) << 64 | 0b10 << 62 | self.random.getrandbits(62):032x}"
        return f"https://jido.ai/memory/{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def now(self) -> datetime:
        return START + STEP * self.number

    def evidence(self) -> list[str]:
        """A log, a commit's address, or an earlier memory."""
        earlier = self.recent.some() if self.chance(0.5) else None
        if earlier:
            return [earlier["iri"]]
        commit = f"https://git.example.org/{self.project}/commit/{self.zipf(1 + self.number // 3):07x}"
        return [commit if self.chance(0.4) else self.run()]

    def run(self) -> str:
        return f"log of run {self.zipf(1 + self.number // 2)} on {self.one(words.SCENES)}"

    def about(self) -> list[str]:
        """One to three files; the repository grows with the number of memories."""
        files = 100 + int(self.number**0.75)
        return sorted({file_name(self.zipf(files)) for _ in range(1 + int(self.random.random() ** 3 * 3))})

    def area(self) -> str:
        return f"{self.one(words.AREAS)} {self.one(words.PARTS)}"

    def agent(self) -> str:
        return self.one(words.AGENTS)

    def one(self, some: Sequence[str]) -> str:
        return some[self.zipf(len(some))]

    def zipf(self, size: int, flat: int = 20) -> int:
        """A rank below *size*, the first ones most often (Zipf-Mandelbrot, exponent 1)."""
        return min(size - 1, int(flat * ((1 + size / flat) ** self.random.random() - 1)))

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def _session(self) -> Fields:
        agents = list(dict.fromkeys(self.agent() for _ in range(1 + int(self.random.random() * 4))))
        name = f"session-{next(self.sessions):06d}"
        return {"name": name, "agents": agents, "left": 20 + int(self.random.random() * 181)}


def file_name(rank: int) -> str:
    """The path of file *rank* of the repository, each another one."""
    part, rest = rank * 7 % len(words.PARTS), rank // len(words.PARTS)
    area, rest = (rest * 11 + part) % len(words.AREAS), rest // len(words.AREAS)
    role, rest = words.ROLES[rest % len(words.ROLES)], rest // len(words.ROLES)
    folder = f"src/{words.AREAS[area]}" + (f"/v{rest}" if rest else "")
    return f"{folder}/{words.PARTS[part]}{role}{words.ENDINGS[(part + area) % len(words.ENDINGS)]}"


def intents(n: int, seed: int = 7, project: str = "bench") -> Iterator[Fields]:
    """The first *n* intents of the life of a project, as `MemoryUpdateIntent.from_dict` takes them."""
    return islice(Life(seed, project).intents(), n)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.generate", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("number", type=int)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--project", default="bench")
    options = parser.parse_args()
    for intent in intents(options.number, options.seed, options.project):
        sys.stdout.buffer.write(orjson.dumps(intent) + b"\n")


if __name__ == "__main__":
    main()
