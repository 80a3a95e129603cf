"""The screens there are, in the order of the menu."""

from __future__ import annotations

from jidomem.serve.curator.memory import MEMORY
from jidomem.serve.curator.screen import Screen
from jidomem.serve.curator.timeline import TIMELINE

SCREENS: tuple[Screen, ...] = (TIMELINE, MEMORY)
