"""The settings of MemoryOS: every capacity, weight, threshold and choice by name, with presets of published ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any, Self

from jidomem.errors import InvalidRequest
from jidomem.memoryos import form
from jidomem.memoryos.form import Value

#: How a score is held against a threshold: it has to be above it, or may equal it.
COMPARISONS = (">", ">=")
#: What becomes of a segment once the personas were taught from it.
ON_TRANSFER = ("keep", "delete")
#: Which segments leave a full mid-term memory: those of the lowest heat, or those retrieved least often.
EVICT = ("coldest", "least_visited")
#: The largest capacity and weight, and the longest time in seconds: sums and products of them are numbers still.
MOST, LONGEST = 1_000_000_000, 1.0e12
#: The kinds of value a profile may be told to have.
KINDS: Mapping[str, type | tuple[type, ...]] = {
    "text": str, "number": (int, float), "truth": bool, "list": list, "mapping": Mapping,
}  # fmt: skip


def _several(place: str, given: Any) -> int:
    if type(given) is not int or not 1 <= given <= MOST:
        bounds = f"from 1 to {MOST:,}" if type(given) is int and given > MOST else "from 1"
        raise InvalidRequest(f"{place} is a whole number {bounds}, not {form.shown(given)}", hint=_default(place))
    return given


def _within(least: float, most: float, *, above: bool = False) -> Callable[[str, Any], float]:
    def held(place: str, given: Any) -> float:
        is_number = isinstance(given, int | float) and not isinstance(given, bool)
        if not is_number or not least <= given <= most or (above and given == least):
            bounds = f"{'above' if above else 'from'} {least:g} to {most:g}"
            raise InvalidRequest(f"{place} is a number {bounds}, not {form.shown(given)}", hint=_default(place))
        return float(given)

    return held


def _one_of(known: tuple[str, ...]) -> Callable[[str, Any], str]:
    def held(place: str, given: Any) -> str:
        if not isinstance(given, str) or given not in known:
            choice = " or ".join(map(repr, known))
            raise InvalidRequest(f"{place} is {choice}, not {form.shown(given)}", hint=_default(place))
        return str(given)

    return held


def _profiles(place: str, given: Any) -> Mapping[str, Any]:
    found = form.mapping(place, given)
    for type_, kinds in found.items():
        if not isinstance(kinds, Mapping) or not all(kind in [*KINDS] for kind in kinds.values()):
            raise InvalidRequest(
                f"{place}: what a profile of {type_!r:.100} may have is {form.shown(kinds)}",
                hint=f'give the kind of each value, {", ".join(KINDS)}: {{"user": {{"language": "text"}}}}',
            )
    return found


_UNIT, _WEIGHT, _POSITIVE, _SCORE = (
    _within(0, 1), _within(0, MOST), _within(0, LONGEST, above=True), _within(-1, 2),
)  # fmt: skip
_FORMS: Mapping[str, Callable[[str, Any], Any]] = {
    "stm_capacity": _several, "mtm_capacity": _several, "segment_capacity": form.unless_none(_several),
    "segment_keywords": _several,
    "object_kb_capacity": _several, "object_traits_capacity": _several, "agent_traits_capacity": _several,
    "evidence_capacity": _several, "system_capacity": _several, "mtm_fscore_threshold": _SCORE,
    "heat_threshold": _WEIGHT,
    "system_importance_threshold": _UNIT, "system_similarity": _UNIT, "comparison": _one_of(COMPARISONS),
    "heat_alpha": _WEIGHT, "heat_beta": _WEIGHT, "heat_gamma": _WEIGHT, "time_constant": _POSITIVE,
    "strict_vectors": form.truth, "on_transfer": _one_of(ON_TRANSFER), "evict": _one_of(EVICT),
    "transfer_before_evicting": form.truth, "archive": form.unless_none(form.text),
    "maintenance_interval": _POSITIVE, "retrieved_segments": _several,
    "retrieved_pages": _several, "retrieved_knowledge": _several, "retrieved_traits": _several,
    "retrieved_system": _several, "segment_threshold": form.unless_none(_SCORE),
    "page_threshold": form.unless_none(_SCORE), "knowledge_threshold": form.unless_none(_SCORE),
    "single_traits": form.texts, "profiles": _profiles, "extra": form.mapping,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOSConfig(Value):
    """The settings one agent's memory is moved by; docs/memoryos.md tells what each of them is for.

    `time_constant` and `maintenance_interval` are seconds; None of a capacity or a threshold is none. What a score of
    your own goes by stands in `extra`.
    """

    stm_capacity: int = 7
    mtm_capacity: int = 200
    segment_capacity: int | None = 50
    segment_keywords: int = 20
    object_kb_capacity: int = 100
    object_traits_capacity: int = 50
    agent_traits_capacity: int = 30
    evidence_capacity: int = 50
    system_capacity: int = 1_000
    mtm_fscore_threshold: float = 0.6
    heat_threshold: float = 5.0
    system_importance_threshold: float = 0.8
    system_similarity: float = 0.95
    comparison: str = ">"
    heat_alpha: float = 1.0
    heat_beta: float = 1.0
    heat_gamma: float = 1.0
    time_constant: float = 1.0e7
    strict_vectors: bool = True
    on_transfer: str = "keep"
    evict: str = "coldest"
    transfer_before_evicting: bool = False
    archive: str | None = "kept"
    maintenance_interval: float = 3_600.0
    retrieved_segments: int = 5
    retrieved_pages: int = 7
    retrieved_knowledge: int = 20
    retrieved_traits: int = 20
    retrieved_system: int = 20
    segment_threshold: float | None = None
    page_threshold: float | None = None
    knowledge_threshold: float | None = 0.0
    single_traits: tuple[str, ...] = ("name", "age", "lives in", "tone", "asks for answers")
    profiles: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in _DEFAULTS:
            object.__setattr__(self, name, _FORMS[name](name, getattr(self, name)))

    @classmethod
    def smith(cls) -> Self:
        """Return the settings of the Elixir implementation norbu09/smith."""
        return cls(heat_beta=0.5, heat_gamma=2.0, comparison=">=", on_transfer="delete", strict_vectors=False)

    @classmethod
    def bai_lab(cls) -> Self:
        """Return the settings of the authors' own implementation, BAI-LAB/MemoryOS."""
        return cls(
            stm_capacity=10,
            mtm_capacity=2_000,
            segment_capacity=None,
            comparison=">=",
            time_constant=24 * 3_600.0,
            evict="least_visited",
            segment_threshold=0.1,
            page_threshold=0.1,
            knowledge_threshold=0.01,
        )

    def reaches(self, score: float, threshold: float | None) -> bool:
        """Return whether *score* is beyond *threshold*, as `comparison` has it; what has none is always reached.

        >>> MemoryOSConfig().reaches(0.6, 0.6), MemoryOSConfig.smith().reaches(0.6, 0.6)
        (False, True)
        """
        return threshold is None or (score >= threshold if self.comparison == ">=" else score > threshold)

    def changed(self, values: Mapping[str, Any]) -> Self:
        """Return the settings with *values* in the place of their own; those of `extra` are put beside its others.

        Raises InvalidRequest for a name that is no setting, and for a value that will not do.
        """
        refuse_unknown(values)
        extra = form.mapping("extra", values.get("extra", {}))
        return replace(self, **{**values, "extra": {**self.extra, **extra}})


_DEFAULTS: dict[str, Any] = {each.name: each.default for each in fields(MemoryOSConfig)}


def refuse_unknown(values: Mapping[str, Any]) -> None:
    """Raise InvalidRequest, with the nearest name, where *values* has one that is no setting."""
    if not isinstance(values, Mapping):
        raise InvalidRequest(f"settings are a mapping, not {values!r:.200}", hint='give {"stm_capacity": 7}')
    for name in values:
        if name not in _DEFAULTS:
            near = get_close_matches(str(name), _DEFAULTS, n=1)
            known = f"did you mean {near[0]!r}?" if near else "what your own scores go by stands in extra"
            raise InvalidRequest(f"MemoryOS has no setting {name!r:.100}", hint=known)


def _default(name: str) -> str:
    return f"the default is {name}={_DEFAULTS[name]!r}"
