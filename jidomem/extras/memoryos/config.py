"""The configuration of MemoryOS: capacities, weights, thresholds and choices by name, with published presets.

`ValidatedModel` is the base of the values of the tiers: it validates fields and reads and writes JSON. `Configurations`
resolves the settings of an agent: its own, else those of its type, else those of the application.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from datetime import datetime
from functools import cache, cached_property
from types import UnionType
from typing import Annotated, Any, Self, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from jidomem.base.clock import format_timestamp, parse_moment
from jidomem.base.json_values import FrozenDict, freeze, is_unicode, to_json_value
from jidomem.errors import InvalidRequest, did_you_mean

V = TypeVar("V", bound="ValidatedModel")
#: A function that returns the stored form of a given value; it names the place of the value in its errors.
Form = Callable[[str, Any], Any]


class Vector(tuple[float, ...]):
    """One or more finite numbers, as `vector` returns them; the length is computed once."""

    @cached_property
    def length(self) -> float:
        """Return the Euclidean length.

        >>> Vector((3.0, 4.0)).length
        5.0
        """
        return math.hypot(*self)


class ValidatedModel:
    """The base of the values of the tiers: validates fields by their types, and converts to JSON and back.

    An annotation may name another form than that of the type: `Annotated[float, share]`.
    """

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the value as plain JSON values; `from_dict` returns an equal value."""
        return {name: _json_form(getattr(self, name), name) for name in _required_by_field(cast(Hashable, type(self)))}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the value that `to_dict` wrote; raise `InvalidRequest` for missing and unknown fields.

        A field with a default is optional.
        """
        if not isinstance(values, Mapping):
            raise InvalidRequest(
                f"a stored {cls.__name__} is a mapping, not {values!r:.200}", hint="give what to_dict gave"
            )
        needed = _required_by_field(cast(Hashable, cls))
        if unknown := [name for name in values if name not in needed]:
            raise InvalidRequest(f"a {cls.__name__} has no {unknown[0]!r:.200}", hint=f"it has {', '.join(needed)}")
        if missing := [name for name, must in needed.items() if must and name not in values]:
            raise InvalidRequest(f"the stored {cls.__name__} lacks {', '.join(missing)}", hint="give what to_dict gave")
        return cls(**values)

    def __post_init__(self) -> None:
        """Convert each field to the form of its type; raise `InvalidRequest` for the first invalid field."""
        for name, place, form in _forms(cast(Hashable, type(self))):
            given = getattr(self, name)
            if (value := form(place, given)) is not given:
                object.__setattr__(self, name, value)

    @classmethod
    def _place(cls, name: str) -> str:
        return f"{name} of a {cls.__name__}"


@cache
def _required_by_field(cls: Hashable) -> dict[str, bool]:
    return {each.name: each.default is MISSING and each.default_factory is MISSING for each in fields(cast(Any, cls))}


@cache
def _forms(kind: Hashable) -> list[tuple[str, str, Form]]:
    cls = cast(type[ValidatedModel], kind)
    hints = get_type_hints(cls, include_extras=True)
    return [(each.name, cls._place(each.name), _form_of(hints[each.name])) for each in fields(cast(Any, cls))]


def _form_of(hint: Any) -> Form:
    """Return the form in the annotation of a field, or the form of its type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return cast(Form, arguments[1])
    if origin is UnionType or origin is Union:
        return optional(_form_of(arguments[0]))
    if origin is Mapping:
        return mapping
    if origin is tuple and issubclass(arguments[0], ValidatedModel):
        return tuple_of(arguments[0])
    return instance_of(hint) if isinstance(hint, type) and issubclass(hint, ValidatedModel) else _FORMS[hint]


def _json_form(value: Any, place: str) -> Any:
    if isinstance(value, ValidatedModel):
        return value.to_dict()
    if isinstance(value, datetime):
        return format_timestamp(value)
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return [each if type(each) is float else _json_form(each, place) for each in value]
    return to_json_value(value, place)


def shown(given: Any) -> str:
    """Return *given* for a message: its repr, cut to 200 characters."""
    try:
        return f"{given!r:.200}"
    except (ValueError, RecursionError):  # a number with thousands of digits, or deeply nested lists
        return f"a {type(given).__name__} that is too large to show"


# Forms of a field: each returns the stored form of a given value


def text(place: str, given: Any) -> str:
    """Return a text that is not blank; raise `InvalidRequest` for other values."""
    if not isinstance(given, str) or not given.strip() or not is_unicode(given):
        raise InvalidRequest(f"{place} is a text that is not blank, not {shown(given)}", hint="give a text")
    return given


def words(place: str, given: Any) -> str:
    """Return a text, which may be empty; raise `InvalidRequest` for other values."""
    if not isinstance(given, str) or not is_unicode(given):
        raise InvalidRequest(f"{place} is a text, not {shown(given)}", hint='give a text, "" for none')
    return given


def moment(place: str, given: Any) -> datetime:
    """Return a moment in UTC; raise `InvalidRequest` for other values."""
    parsed = parse_moment(given)
    if parsed is None:
        raise InvalidRequest(f"{place} is a moment, not {shown(given)}", hint='give "2026-11-21T08:00:00Z"')
    return parsed


def count(place: str, given: Any) -> int:
    """Return an integer from 0; raise `InvalidRequest` for other values."""
    if type(given) is not int or given < 0:
        raise InvalidRequest(f"{place} is a whole number from 0, not {shown(given)}", hint="give 0")
    return given


def number(place: str, given: Any) -> float:
    """Return a finite number; raise `InvalidRequest` for other values."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not abs(given) <= sys.float_info.max:
        raise InvalidRequest(f"{place} is a finite number, not {shown(given)}", hint="give 0.0")
    return float(given)


def share(place: str, given: Any) -> float:
    """Return a number from 0 to 1; raise `InvalidRequest` for other values."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        raise InvalidRequest(f"{place} is a number from 0 to 1, not {shown(given)}", hint="give 1.0")
    return float(given)


def truth(place: str, given: Any) -> bool:
    """Return True or False; raise `InvalidRequest` for other values."""
    if type(given) is not bool:
        raise InvalidRequest(f"{place} is True or False, not {shown(given)}", hint="give True, or leave it out")
    return given


def texts(place: str, given: Any) -> tuple[str, ...]:
    """Return a tuple of texts; raise `InvalidRequest` for a single text and other values."""
    return tuple(text(place, each) for each in several(place, given))


def text_set(place: str, given: Any) -> frozenset[str]:
    """Return a set of texts; raise `InvalidRequest` for a single text and other values."""
    return frozenset(text(place, each) for each in several(place, given))


def vector(place: str, given: Any) -> Vector:
    """Return a vector of at least one finite number; raise `InvalidRequest` for other values."""
    if type(given) is Vector:
        return given
    numbers = tuple(several(place, given))
    if not numbers or bool in map(type, numbers):
        raise InvalidRequest(f"{place} is a list of numbers, not {shown(given)}", hint="give what the embedder made")
    try:
        floats = tuple(map(float, numbers))
    except (TypeError, ValueError, OverflowError):
        floats = (math.nan,)
    if not all(map(math.isfinite, floats)):
        raise InvalidRequest(
            f"{place} has a value that is not a finite number", hint="give what the embedder made, or None"
        )
    return Vector(floats)


def mapping(place: str, given: Any) -> Mapping[str, Any]:
    """Return a frozen copy of a mapping; raise `InvalidRequest` for other values and values without a JSON form."""
    if not isinstance(given, Mapping):
        raise InvalidRequest(f"{place} is a mapping, not {shown(given)}", hint='give {"name": "Ana"}')
    frozen: Mapping[str, Any] = freeze(to_json_value(given, place))
    return frozen


def several(place: str, given: Any) -> Sequence[Any] | Iterable[Any]:
    """Return the items of a list or a set; raise `InvalidRequest` for a text, a mapping and other values."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InvalidRequest(f"{place} is a list, not {shown(given)}", hint="give a list")
    return given


def optional(form: Form) -> Form:
    """Return the form of a field that may be None."""
    return lambda place, given: None if given is None else form(place, given)


def instance_of(kind: type[V]) -> Callable[[str, Any], V]:
    """Return the form of a value of that class, given as an instance or as a mapping of its fields."""
    return lambda place, given: given if isinstance(given, kind) else kind.from_dict(given)


def tuple_of(kind: type[V]) -> Callable[[str, Any], tuple[V, ...]]:
    """Return the form of a tuple of that class, each item given as an instance or as a mapping of its fields."""
    form = instance_of(kind)
    return lambda place, given: tuple(form(place, each) for each in several(place, given))


_FORMS: Mapping[Any, Form] = {
    str: text, int: count, float: number, bool: truth, datetime: moment, Vector: vector,
    tuple[str, ...]: texts, frozenset[str]: text_set,
}  # fmt: skip


#: How a score is compared with a threshold: it must exceed it, or may equal it.
COMPARISONS = (">", ">=")
#: The fate of a segment after the personas have learned from all its pages.
ON_TRANSFER = ("keep", "delete")
#: Which segments leave a full mid-term memory: those of the lowest heat, or those retrieved least often.
EVICT = ("coldest", "least_visited")
#: The largest capacity and weight, and the longest time in seconds: their sums and products stay finite.
MAX_NUMBER, MAX_SECONDS = 1_000_000_000, 1.0e12
#: The kinds of values that a profile may have.
KINDS: Mapping[str, type | tuple[type, ...]] = {
    "text": str, "number": (int, float), "truth": bool, "list": list, "mapping": Mapping,
}  # fmt: skip


def _capacity(place: str, given: Any) -> int:
    if type(given) is not int or not 1 <= given <= MAX_NUMBER:
        bounds = f"from 1 to {MAX_NUMBER:,}" if type(given) is int and given > MAX_NUMBER else "from 1"
        raise InvalidRequest(f"{place} is a whole number {bounds}, not {shown(given)}", hint=_default(place))
    return given


def _within(least: float, most: float, *, above: bool = False) -> Callable[[str, Any], float]:
    def check(place: str, given: Any) -> float:
        is_number = isinstance(given, int | float) and not isinstance(given, bool)
        if not is_number or not least <= given <= most or (above and given == least):
            bounds = f"{'above' if above else 'from'} {least:g} to {most:g}"
            raise InvalidRequest(f"{place} is a number {bounds}, not {shown(given)}", hint=_default(place))
        return float(given)

    return check


def _one_of(known: tuple[str, ...]) -> Callable[[str, Any], str]:
    def check(place: str, given: Any) -> str:
        if not isinstance(given, str) or given not in known:
            choice = " or ".join(map(repr, known))
            raise InvalidRequest(f"{place} is {choice}, not {shown(given)}", hint=_default(place))
        return str(given)

    return check


def _profiles(place: str, given: Any) -> Mapping[str, Any]:
    profiles = mapping(place, given)
    for type_, kinds in profiles.items():
        if not isinstance(kinds, Mapping) or not all(kind in [*KINDS] for kind in kinds.values()):
            raise InvalidRequest(
                f"{place}: invalid kinds of a profile of {type_!r:.100}: {shown(kinds)}",
                hint=f'give the kind of each value, {", ".join(KINDS)}: {{"user": {{"language": "text"}}}}',
            )
    return profiles


Count = Annotated[int, _capacity]
Limit = Annotated[int | None, optional(_capacity)]
Share = Annotated[float, _within(0, 1)]
Weight = Annotated[float, _within(0, MAX_NUMBER)]
Seconds = Annotated[float, _within(0, MAX_SECONDS, above=True)]
Score = Annotated[float, _within(-1, 2)]
Threshold = Annotated[float | None, optional(_within(-1, 2))]
Comparison = Annotated[str, _one_of(COMPARISONS)]
OnTransfer = Annotated[str, _one_of(ON_TRANSFER)]
Eviction = Annotated[str, _one_of(EVICT)]
Profiles = Annotated[Mapping[str, Mapping[str, str]], _profiles]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOSConfig(ValidatedModel):
    """The settings of one agent; docs/memoryos.md describes each of them.

    `time_constant` and `maintenance_interval` are seconds. A capacity or a threshold of None means none. `extra` has
    the settings of scores of your own.
    """

    stm_capacity: Count = 7
    mtm_capacity: Count = 200
    segment_capacity: Limit = 50
    segment_keywords: Count = 20
    object_kb_capacity: Count = 100
    object_traits_capacity: Count = 50
    agent_traits_capacity: Count = 30
    evidence_capacity: Count = 50
    system_capacity: Count = 1_000
    mtm_fscore_threshold: Score = 0.6
    heat_threshold: Weight = 5.0
    system_importance_threshold: Share = 0.8
    system_similarity: Share = 0.95
    comparison: Comparison = ">"
    heat_alpha: Weight = 1.0
    heat_beta: Weight = 1.0
    heat_gamma: Weight = 1.0
    time_constant: Seconds = 1.0e7
    share_users: bool = False
    strict_vectors: bool = True
    on_transfer: OnTransfer = "keep"
    evict: Eviction = "coldest"
    transfer_before_evicting: bool = False
    archive: str | None = "kept"
    maintenance_interval: Seconds = 3_600.0
    retrieved_segments: Count = 5
    retrieved_pages: Count = 7
    retrieved_knowledge: Count = 20
    retrieved_traits: Count = 20
    retrieved_system: Count = 20
    segment_threshold: Threshold = None
    page_threshold: Threshold = None
    knowledge_threshold: Threshold = 0.0
    single_traits: tuple[str, ...] = ("name", "age", "lives in", "tone", "asks for answers")
    profiles: Profiles = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def _place(cls, name: str) -> str:
        return name

    @classmethod
    def smith(cls) -> Self:
        """Return the settings of the Elixir implementation norbu09/smith."""
        return cls(
            heat_threshold=5.0,
            heat_beta=0.5,
            heat_gamma=2.0,
            comparison=">=",
            on_transfer="delete",
            strict_vectors=False,
        )

    @classmethod
    def bai_lab(cls) -> Self:
        """Return the settings of the authors' own implementation, BAI-LAB/MemoryOS."""
        return cls(
            stm_capacity=10,
            mtm_capacity=2_000,
            segment_capacity=None,
            heat_threshold=5.0,
            comparison=">=",
            time_constant=24 * 3_600.0,
            evict="least_visited",
            segment_threshold=0.1,
            page_threshold=0.1,
            knowledge_threshold=0.01,
        )

    def reaches(self, score: float, threshold: float | None) -> bool:
        """Return whether *score* passes *threshold* by `comparison`; a threshold of None is always passed.

        >>> MemoryOSConfig().reaches(0.6, 0.6), MemoryOSConfig.smith().reaches(0.6, 0.6)
        (False, True)
        """
        return threshold is None or (score >= threshold if self.comparison == ">=" else score > threshold)

    def changed(self, values: Mapping[str, Any]) -> Self:
        """Return the settings with *values* replaced; those of `extra` are merged.

        Raises InvalidRequest for an unknown setting and for an invalid value.
        """
        refuse_unknown(values)
        extra = mapping("extra", values.get("extra", {}))
        return replace(self, **{**values, "extra": {**self.extra, **extra}})


_DEFAULTS: dict[str, Any] = {each.name: each.default for each in fields(MemoryOSConfig)}


def refuse_unknown(values: Mapping[str, Any]) -> None:
    """Raise InvalidRequest, with the nearest name, if *values* has an unknown setting."""
    if not isinstance(values, Mapping):
        raise InvalidRequest(f"settings are a mapping, not {values!r:.200}", hint='give {"stm_capacity": 7}')
    for name in values:
        if name not in _DEFAULTS:
            known = did_you_mean(name, _DEFAULTS, "settings of your own scores go into extra")
            raise InvalidRequest(f"MemoryOS has no setting {name!r:.100}", hint=known)


def _default(name: str) -> str:
    return f"the default is {name}={_DEFAULTS[name]!r}"


#: The type of an agent without a record, or whose record names no type.
DEFAULT_TYPE = "default"


@dataclass(frozen=True, slots=True)
class AgentRecord(ValidatedModel):
    """The type of an agent and its own settings."""

    agent_id: str
    agent_type: str = DEFAULT_TYPE
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Configurations(ValidatedModel):
    """The settings of an application, of the types of its agents, and of single agents, merged by setting.

    >>> configurations = Configurations().with_type("coder", stm_capacity=3).with_agent("ada", "coder", mtm_capacity=9)
    >>> config = configurations.get_agent_config("ada")
    >>> config.stm_capacity, config.mtm_capacity, config.object_kb_capacity
    (3, 9, 100)
    """

    application: MemoryOSConfig = field(default_factory=MemoryOSConfig)
    types: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    agents: tuple[AgentRecord, ...] = ()

    def __post_init__(self) -> None:
        ValidatedModel.__post_init__(self)
        if len({record.agent_id for record in self.agents}) < len(self.agents):
            raise InvalidRequest("an agent has one record", hint="merge its settings")
        for values in (*self.types.values(), *(record.values for record in self.agents)):
            self.application.changed(values)

    def record(self, agent_id: str) -> AgentRecord:
        """Return the record of the agent *agent_id*; a record without settings if there is none."""
        return next((each for each in self.agents if each.agent_id == agent_id), AgentRecord(agent_id))

    def get_agent_config(self, agent_id: str) -> MemoryOSConfig:
        """Return the settings in effect for the agent *agent_id*."""
        record = self.record(agent_id)
        return self.application.changed(self.types.get(record.agent_type, {})).changed(record.values)

    def with_type(self, agent_type: str, **values: Any) -> Configurations:
        """Return the configurations with *values* set for the agents of a type; its other settings stay.

        Raises InvalidRequest for an unknown setting and for an invalid value.
        """
        text("agent_type", agent_type)
        return replace(self, types={**self.types, agent_type: _merged_settings(self.types.get(agent_type, {}), values)})

    def with_agent(self, agent_id: str, agent_type: str | None = None, **values: Any) -> Configurations:
        """Return the configurations with *values* set for one agent, of *agent_type* if given; its other settings stay.

        Raises InvalidRequest for an unknown setting and for an invalid value.
        """
        before = self.record(agent_id)
        record = AgentRecord(agent_id, agent_type or before.agent_type, _merged_settings(before.values, values))
        return replace(self, agents=(*(each for each in self.agents if each.agent_id != agent_id), record))


def _merged_settings(before: Mapping[str, Any], values: Mapping[str, Any]) -> Mapping[str, Any]:
    extra = {**before.get("extra", {}), **mapping("extra", values.get("extra", {}))}
    return FrozenDict({**before, **values, **({"extra": extra} if extra else {})})
