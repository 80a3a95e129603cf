"""The tables of a TOML configuration, checked key by key.

Every fault is Failed `invalid_config`, whose message names the file, the table, the key and its value, and whose
hint is the valid form.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jidomem.base.json_values import decode_toml
from jidomem.errors import Failed, did_you_mean, nearest_names

#: The most characters of a value in a message.
_MAX_VALUE_CHARS = 100


class KeyRule(NamedTuple):
    """The rule of a key: the check of its value, *what* the value is in words, and an *example* in TOML.

    *names* are the only valid values, or elements of a list, if any. A table has no example. *repaired* returns the
    nearest valid value for an invalid one.
    """

    is_valid: Callable[[Any], bool]
    what: str
    example: str = ""
    names: tuple[str, ...] = ()
    repaired: Callable[[Any], str] | None = None

    def hint(self, key: str, value: Any) -> str:
        """Return a hint with the valid form of *key* for the invalid *value*."""
        for each in value if isinstance(value, list) else [value]:
            if self.names and each not in self.names and (near := nearest_names(each, self.names)):
                return f"did you mean {near[0]!r}?"
        if not self.example:
            return f"write [{key}]"
        return f"write {key.rpartition('.')[2]} = {to_toml(self.repaired(value)) if self.repaired else self.example}"


TABLE = KeyRule(lambda value: isinstance(value, dict), "a table")
TABLES = KeyRule(lambda value: isinstance(value, list | dict), "an array of tables")
TRUTH = KeyRule(lambda value: isinstance(value, bool), "true or false", "true")


def number(least: float, most: float, example: float) -> KeyRule:
    """Return the rule of a number from *least* to *most*; of an integer if *example* is an int."""
    is_whole = isinstance(example, int)
    kinds, kind = ((int,), "whole number") if is_whole else ((int, float), "number")
    what = f"a {kind} from {least:,} to {most:,}"
    shown = str(example).removesuffix(".0")
    return KeyRule(lambda value: type(value) in kinds and least <= value <= most, what, shown)


def text(
    example: str,
    what: str = "a text",
    *,
    is_valid: Callable[[str], object] = str.strip,
    repaired: Callable[[Any], str] | None = None,
) -> KeyRule:
    """Return the rule of a text (default: any that is not blank)."""
    return KeyRule(
        lambda value: isinstance(value, str) and bool(is_valid(value)), what, json.dumps(example), (), repaired
    )


def choice(names: Collection[str]) -> KeyRule:
    """Return the rule of one of *names*."""
    known = (*names,)  # the keys, if it is a mapping
    return KeyRule(known.__contains__, f"one of {', '.join(known)}", json.dumps(known[0]), known)


def choices(names: Collection[str]) -> KeyRule:
    """Return the rule of a list of some of *names*."""
    one = choice(names)
    return KeyRule(
        lambda value: isinstance(value, list) and bool(value) and all(map(one.is_valid, value)),
        f"a list of at least {one.what}",
        f"[{one.example}]",
        one.names,
    )


def parse_config(content: str, file: Path) -> dict[str, Any]:
    """Parse the *content* of *file*; raise Failed `invalid_config` if it is not TOML."""
    try:
        return decode_toml(content)
    except ValueError as error:
        raise config_fault(file, str(error), "correct the line it names") from error


def read_table(file: Path | str, name: str, values: Any, rules: Mapping[str, KeyRule]) -> dict[str, Any]:
    """Check the *values* of the table *name* of *file* ("" for the whole file) and return them.

    Raises Failed `invalid_config` if they are no table, for a key without a rule, and for an invalid value. The value
    of an unknown key, or of something in place of a table, is not shown: it may be a secret.
    """
    if not TABLE.is_valid(values):
        raise config_fault(file, f"{name} is not a table", f"write [{name}]")
    for key, value in values.items():
        place = f"{name}.{key}" if name else key
        if (rule := rules.get(key)) is None:
            known = f"the keys are {', '.join(rules)}"
            raise config_fault(file, f"{place} is not known here", did_you_mean(key, rules, known))
        if not rule.is_valid(value):
            shown = f"{place} = {_shown(value)}" if rule.example else place
            raise config_fault(file, f"{shown} is not {rule.what}", rule.hint(place, value))
    return dict(values)


def require_keys(
    file: Path | str, name: str, values: Mapping[str, Any], rules: Mapping[str, KeyRule], keys: Iterable[str]
) -> None:
    """Raise Failed `invalid_config` if one of *keys* is missing in the table *name* of *file*."""
    for key in keys:
        if key not in values:
            raise config_fault(file, f"{name}.{key} is missing", f"write {key} = {rules[key].example}")


def config_fault(file: Path | str, detail: str, hint: str) -> Failed:
    """Return the error for a configuration."""
    return Failed(f"{file}: {detail}", hint=hint, code="invalid_config")


def to_toml(value: Any) -> str:
    """Return a text, number or boolean, or a list or table of them, in TOML.

    >>> to_toml({"a b": [1, True, "x"]})
    '{"a b" = [1, true, "x"]}'
    """
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{to_toml(key)} = {to_toml(each)}' for key, each in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(to_toml, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, str | bool | int | float):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)  # a date or a time


def _shown(value: Any) -> str:
    shown = to_toml(value)
    return shown if len(shown) <= _MAX_VALUE_CHARS else f"{shown[:_MAX_VALUE_CHARS]}..."
