"""Values for programs: as JSON has them, and as the cells of CSV and TSV."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from jidomem.moments import stamp

_ESCAPED = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}


def plain(value: Any) -> Any:
    """Return *value* as JSON has it: moments as text, IRIs whole."""
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    return stamp(value) if isinstance(value, datetime) else value


def cell(value: Any) -> Any:
    """Return *value* for a cell: nothing for None, a list, a mapping or a truth as JSON."""
    value = plain(value)
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict, bool)) else value


def tsv_line(cells: Iterable[Any]) -> str:
    r"""Return *cells* as one line, tabs and line ends in them escaped.

    >>> tsv_line(["a\tb", 1])
    'a\\tb\t1'
    """
    return "\t".join(re.sub(r"[\\\t\n\r]", lambda match: _ESCAPED[match[0]], str(cell)) for cell in cells)
