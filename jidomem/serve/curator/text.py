"""Anything an agent wrote, shown as text: no sign in it does more than be seen."""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime
from urllib.parse import urlsplit

from jidomem.excerpt import cut
from jidomem.moments import stamp
from jidomem.read.item import short_id
from jidomem.vocab import BASE, local_name

#: Signs that a browser acts on, or that turn the direction of what follows them.
_ACTING = frozenset(("Cc", "Cf", "Co", "Cs"))
#: Of these what people write with: new lines, tabs, joiners of scripts and of emoji.
_WRITTEN = frozenset("\n\t\u200c\u200d")
_PICTURES = 0x2400
_SHORT = 4_000
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def shown(text: object) -> str:
    r"""Return *text* with what cannot be seen, or acts, written out.

    >>> shown("a\x07b\u202ec")
    'a\u2407b⟨U+202E⟩c'
    """
    told = str(text)
    if _is_plain(told):
        return told
    return "".join(each if _is_harmless(each) else _named(each) for each in told)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _is_harmless(sign: str) -> bool:
    return _is_plain(sign) or sign in _WRITTEN or unicodedata.category(sign) not in _ACTING


def _named(sign: str) -> str:
    code = ord(sign)
    return chr(_PICTURES + code) if code < 0x20 else f"\u27e8U+{code:04X}\u27e9"


def short(text: object, length: int = 240) -> str:
    """Return the beginning of a long text on one line, cut at the end of a sentence where one is near."""
    return cut(str(text)[: max(length * 4, _SHORT)], length)[0]


def is_web(address: object) -> bool:
    """Return whether *address* leads to a page of the web, which alone becomes a link."""
    try:
        parsed = urlsplit(str(address))
    except ValueError:
        return False
    is_ours = str(address).startswith(BASE)  # names of ours lead nowhere
    return parsed.scheme in ("http", "https") and bool(parsed.netloc) and str(address).isprintable() and not is_ours


def name(value: object) -> str:
    """Return how people name a value: a memory by its short id, another of ours by its last part, a moment in words.

    >>> name("https://jido.ai/ontology#Planned")
    'Planned'
    """
    if isinstance(value, datetime):
        return f"{when(value)}:{value:%S} UTC"
    told = str(value)
    if told.startswith(f"{BASE}memory/"):
        return short_id(told)
    return local_name(told) if told.startswith(BASE) and local_name(told) else told


def words(name: object) -> str:
    """Return a name of ours as words, as a line begins with them.

    >>> words("ArchitecturalDecision"), words("DSL"), words("actionable_only")
    ('Architectural decision', 'DSL', 'Actionable only')
    """
    parts = _WORDS.sub(" ", str(name)).replace("_", " ").split()
    told = " ".join(part if part.isupper() else part.lower() for part in parts)
    return told[:1].upper() + told[1:]


def day(moment: object) -> str:
    """Return the day of a moment, in words a person reads: Saturday, 21 November 2026."""
    at = moment if isinstance(moment, datetime) else datetime.fromisoformat(str(moment))
    return f"{at:%A}, {at.day} {at:%B} {at.year}"


def clock(moment: object) -> str:
    """Return the time of day of a moment, UTC."""
    at = moment if isinstance(moment, datetime) else datetime.fromisoformat(str(moment))
    return f"{at:%H:%M}"


def when(moment: object) -> str:
    """Return a moment to the minute, UTC: 21 November 2026, 08:00."""
    at = moment if isinstance(moment, datetime) else datetime.fromisoformat(str(moment))
    return f"{at.day} {at:%B} {at.year}, {at:%H:%M}"


def exact(moment: object) -> str:
    """Return a moment as it is written down."""
    return stamp(moment) if isinstance(moment, datetime) else str(moment)


def is_moment(value: object) -> bool:
    """Return whether *value* is a moment."""
    return isinstance(value, datetime)
