"""Which settings hold for which agent: its own, else those of its type, else those of the application."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from jidomem.errors import InvalidRequest
from jidomem.frozen import FrozenDict
from jidomem.memoryos import form
from jidomem.memoryos.config import MemoryOSConfig
from jidomem.memoryos.form import Value

#: The type of an agent that has no record, or whose record names none.
DEFAULT_TYPE = "default"


@dataclass(frozen=True, slots=True)
class AgentRecord(Value):
    """What is set for one agent: its type, and the settings that are its own."""

    agent_id: str
    agent_type: str = DEFAULT_TYPE
    values: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._hold(agent_id=form.text, agent_type=form.text, values=form.mapping)


@dataclass(frozen=True, slots=True)
class Configurations(Value):
    """The settings of an application, of the types of its agents, and of single agents; each value by itself.

    >>> configurations = Configurations().with_type("coder", stm_capacity=3).with_agent("ada", "coder", mtm_capacity=9)
    >>> config = configurations.get_agent_config("ada")
    >>> config.stm_capacity, config.mtm_capacity, config.object_kb_capacity
    (3, 9, 100)
    """

    application: MemoryOSConfig = field(default_factory=MemoryOSConfig)
    types: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    agents: tuple[AgentRecord, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.application, MemoryOSConfig):
            object.__setattr__(self, "application", MemoryOSConfig.from_dict(self.application))
        self._hold(types=form.mapping, agents=form.each_of(AgentRecord))
        if len({record.agent_id for record in self.agents}) < len(self.agents):
            raise InvalidRequest("an agent has one record", hint="put what is set for it into one")
        for values in (*self.types.values(), *(record.values for record in self.agents)):
            self.application.changed(values)

    def record(self, agent_id: str) -> AgentRecord:
        """Return what is set for the agent *agent_id*; a record without settings where nothing is."""
        return next((each for each in self.agents if each.agent_id == agent_id), AgentRecord(agent_id))

    def get_agent_config(self, agent_id: str) -> MemoryOSConfig:
        """Return the settings that hold for the agent *agent_id*."""
        record = self.record(agent_id)
        return self.application.changed(self.types.get(record.agent_type, {})).changed(record.values)

    def with_type(self, agent_type: str, **values: Any) -> Configurations:
        """Return these, with *values* set for the agents of a type; what was set for it before stays.

        Raises InvalidRequest for a name that is no setting, and for a value that will not do.
        """
        form.text("agent_type", agent_type)
        return replace(self, types={**self.types, agent_type: _beside(self.types.get(agent_type, {}), values)})

    def with_agent(self, agent_id: str, agent_type: str | None = None, **values: Any) -> Configurations:
        """Return these, with *values* set for one agent, of *agent_type* if given; what was set before stays.

        Raises InvalidRequest for a name that is no setting, and for a value that will not do.
        """
        before = self.record(agent_id)
        record = AgentRecord(agent_id, agent_type or before.agent_type, _beside(before.values, values))
        return replace(self, agents=(*(each for each in self.agents if each.agent_id != agent_id), record))


def _beside(before: Mapping[str, Any], values: Mapping[str, Any]) -> Mapping[str, Any]:
    extra = {**before.get("extra", {}), **form.mapping("extra", values.get("extra", {}))}
    return FrozenDict({**before, **values, **({"extra": extra} if extra else {})})
