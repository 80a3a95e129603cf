"""Tidy single values, and gather what cannot be tidied.  Pure; the tools stage 1 works with."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from jidomem import vocab
from jidomem.errors import TooLarge, Violation
from jidomem.intent import LIST_FIELDS, MemoryUpdateIntent
from jidomem.policy import ENTRIES_LIMIT, LITERAL_LIMIT, LITERAL_MOST
from jidomem.schema import Schema
from jidomem.words import slug
from jidomem.write import names
from jidomem.write.kinds import SYNONYMS

MOMENTS = ("timestamp", "expires_on", "valid_from", "valid_until")
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # what XML cannot hold either


def shortly(value: Any) -> str:
    """Return *value* as Python writes it, cut to 200 characters."""
    try:
        return repr(value)[:200]
    except ValueError:  # a number of thousands of digits
        return f"a very large {type(value).__name__}"


def check_size(
    name: str, text: str, most: int, instead: str = "summarise it, and name the full text in evidence"
) -> None:
    """Raise TooLarge for a text of more than *most* bytes of UTF-8, the hint saying what to do *instead*."""
    if len(text) * 4 > most and (size := len(text.encode("utf-8", "replace"))) > most:
        hint = instead
        if size <= LITERAL_MOST:
            hint += f"; or let who runs this memory write literal = {size} below [limits] of their own "
            hint += "~/.config/jidomem/config.toml"
        raise TooLarge(f"{name} has {size:,} bytes; a text holds at most {most:,}", hint=hint)


def check_entries(intent: MemoryUpdateIntent) -> None:
    """Raise TooLarge for a list of *intent* that has more entries than an intent may say; references are no matter."""
    for name in ("about", "evidence", "alternatives"):
        value = getattr(intent, name)
        if isinstance(value, (list, tuple)) and len(value) > ENTRIES_LIMIT:
            hint = "submit several intents, or name what the entries have in common"
            raise TooLarge(f"{name} has {len(value):,} entries; it holds at most {ENTRIES_LIMIT:,}", hint=hint)


@dataclass(slots=True)
class Tidy:
    """What is being tidied is refused here, value by value, so that one refusal lists them all."""

    schema: Schema
    literal: int = LITERAL_LIMIT
    violations: list[Violation] = field(default_factory=list)

    def refuse(self, code: str, name: str, value: Any, message: str, **more: Any) -> None:
        """Note that *value* of the field *name* breaks a rule."""
        shown = value if isinstance(value, str) else shortly(value)
        shown = ascii(shown[:200]) if _FORBIDDEN.search(shown) else shown
        self.violations.append(Violation(code, message, field=name, value=shown, **more))

    def field(self, name: str, value: Any) -> Any:
        """Return the value of one field trimmed, blanks as None, lists element by element."""
        if name in LIST_FIELDS:
            return self._list(name, value)
        if isinstance(value, str):
            return self.text(name, value) or None
        if value is None or (name == "confidence" and isinstance(value, (int, float))):
            return value
        if name in MOMENTS and isinstance(value, datetime):
            return value.isoformat()
        self.refuse("invalid_argument", name, value, f"{name} is text, not {type(value).__name__}")
        return None

    def _list(self, name: str, value: Any) -> list[Any]:
        if value is None or value == []:
            return []
        if isinstance(value, str) and name != "extra_triples":
            message = f"{name} is a list of texts, not one text"
            self.refuse("invalid_argument", name, value, message, repair=names.put(name, [value]))
            return []
        if not isinstance(value, (list, tuple)):
            self.refuse("invalid_argument", name, value, f"{name} is a list, not {type(value).__name__}")
            return []
        if name == "extra_triples":
            return list(value)
        found = []
        for entry in value:
            if isinstance(entry, str):
                found.append(self.text(name, entry))
            else:
                self.refuse("invalid_argument", name, entry, f"{name} holds texts, not {type(entry).__name__}")
        return names.unique(filter(None, found))

    def text(self, name: str, value: str) -> str:
        """Return *value* trimmed; refuses control characters and half characters, raises TooLarge for a long one."""
        return self.verbatim(name, value).strip()

    def verbatim(self, name: str, value: str) -> str:
        """Return *value* as given, empty where it is refused; raises TooLarge for a long one."""
        if value.isprintable() and len(value) * 4 <= self.literal:  # as most are
            return value
        check_size(name, value, self.literal)
        if not value.isprintable() and (bad := _FORBIDDEN.search(value)):
            what = (
                "a control character" if bad[0] < " " else "a lone surrogate" if bad[0] < "\ue000" else "no character"
            )
            message = f"{name} holds {what}, U+{ord(bad[0]):04X}, at character {bad.start()}: leave it out"
            self.refuse("invalid_argument", name, value, message)
            return ""
        return value

    def reference(self, name: str, text: str, folder: str) -> str:
        """Return the IRI *text* stands for: itself, a prefixed name, or a plain name below *folder*."""
        if names.is_reference(text):
            found = self.iri(name, text)
            if names.is_reserved(found) and not re.match(f"{vocab.BASE}{folder}/[^/]+$|{vocab.JIDO}", found):
                self.refuse("invalid_iri", name, text, f"{name} is a name, or an IRI below {vocab.BASE}{folder}/")
            return found
        plain = slug(text)
        if not plain or len(plain) > 200:
            self.refuse("invalid_iri", name, text, f"{name} needs a name of 1 to 200 letters and digits")
        return f"{vocab.BASE}{folder}/{plain}"

    def iri(self, name: str, text: str) -> str:
        """Return *text* as an absolute IRI in its one written form, or refuse it with the form it should have."""
        if (expanded := names.expand(text)) is not None:
            return expanded
        if names.is_absolute(text):
            return text
        form = names.written(text)
        near = form if names.is_absolute(form) else None
        self.refuse(
            "invalid_iri",
            name,
            text,
            f"{name} takes an absolute http, https or urn IRI in lower case and without spaces, not {text[:80]!r}",
            nearest=near,
            repair=names.swap(name, text, near) if near else None,
        )
        return text

    def choice(self, name: str, given: str, allowed: tuple[str, ...], written: dict[str, str]) -> str:
        """Return the one of *allowed* that *given* names; *written* gives further squashed forms of them."""
        forms = {names.squash(one): one for one in allowed} | written
        found = forms.get(names.squash(given))
        if found is None:
            meant = [one for one in SYNONYMS.get(names.squash(given), ()) if one in allowed]
            near = meant[0] if meant else names.nearest(given, allowed)
            self.refuse(
                "shape_violation",
                name,
                given,
                f"{name} is one of {', '.join(allowed)}, not {given!r}",
                allowed=allowed,
                nearest=near,
                repair=names.put(name, near) if near else None,
            )
        return found or given
