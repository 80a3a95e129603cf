"""What is in force in an open root: the schema and the policy, changed while it is open where the root was."""

from __future__ import annotations

from collections.abc import Callable

from jidomem.policy import Policy
from jidomem.schema import Schema


class Law:
    """The schema and the policy by which whoever has it judges; `number` counts how often they were changed."""

    def __init__(self, schema: Schema, policy: Policy) -> None:
        self.schema = schema
        self.policy = policy
        self.number = 0
        #: Changes them where the root changed since; raises Failed where what is there now cannot be used.
        self.look: Callable[[], None] = lambda: None

    def change(self, schema: Schema, policy: Policy) -> None:
        """Judge by these from now on."""
        self.schema, self.policy = schema, policy
        self.number += 1
