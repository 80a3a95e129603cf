"""What a project has decided about its own memory: data that the stages are given, never code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ON_CONFLICT = ("refuse", "propose", "warn")
ON_SECRET = ("refuse", "warn", "off")
JUDGES = ("compiled", "pyshacl")


@dataclass(frozen=True, slots=True)
class AgentPolicy:
    """The role and capabilities an agent's first mention declares (local names of the ontology)."""

    role: str = "Implementer"
    capabilities: tuple[str, ...] = ("CanQueryMemory",)


@dataclass(frozen=True, slots=True)
class Policy:
    """How strict the writer is.

    `on_conflict` maps a kind family (`decision`, `convention`, `fact`, `task` ...) to refuse, propose or warn; what
    it does not name is refused. `strict` refuses agents and sessions nobody declared and terms of foreign
    vocabularies. `create_projects` lets a first write create its project. `judge` is who holds a write to the shapes:
    `compiled`, or the reference implementation `pyshacl`. `secrets` says what becomes of what looks like a key or a
    password: refuse, warn or off. `preset` names the rules of who may do what that a
    project begins with; what is recorded in its journal takes their place.
    """

    on_conflict: Mapping[str, str] = field(default_factory=dict)
    agents: Mapping[str, AgentPolicy] = field(default_factory=dict)
    strict: bool = False
    create_projects: bool = True
    judge: str = "compiled"
    secrets: str = "refuse"
    preset: str = "open"


LITERAL_LIMIT = 256 * 1024  # bytes of UTF-8 in one text
LITERAL_MOST = 2 * 1024 * 1024  # what that limit can be raised to: escaped sixfold, a parser of Turtle still takes it
TRIPLES_LIMIT = 500  # extra triples in one intent
ENTRIES_LIMIT = 1_000  # entries of about, evidence or alternatives in one intent
