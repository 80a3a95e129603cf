"""The screens there are, in the order of the menu."""

from __future__ import annotations

from jidomem.serve.curator.agents import AGENTS
from jidomem.serve.curator.checked import CHECK
from jidomem.serve.curator.console import CONSOLE
from jidomem.serve.curator.graph import GRAPH
from jidomem.serve.curator.health import HEALTH
from jidomem.serve.curator.memory import MEMORY
from jidomem.serve.curator.ontology import ONTOLOGY, TERM
from jidomem.serve.curator.playbook import PLAYBOOK, QUESTION
from jidomem.serve.curator.review import REVIEW
from jidomem.serve.curator.screen import Screen
from jidomem.serve.curator.timeline import TIMELINE

SCREENS: tuple[Screen, ...] = (
    TIMELINE,
    MEMORY,
    REVIEW,
    GRAPH,
    PLAYBOOK,
    QUESTION,
    CONSOLE,
    CHECK,
    ONTOLOGY,
    TERM,
    AGENTS,
    HEALTH,
)
