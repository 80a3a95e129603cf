"""Stage 1 normalises an intent: each value, extra triple and reference gets its one written form. Pure.

The clock, the ids and the ontology are arguments. The `FieldNormalizer` collects a violation for each value without
such a form; `resolve` replaces the short ids and other names of memories by IRIs, as stage 2 needs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

from jidomem.base.clock import format_timestamp, impossible_day, parse_moment
from jidomem.base.json_values import json_type
from jidomem.base.words import slug
from jidomem.errors import IntentRefused, InvalidRequest, NotFound, TooLarge, Violation
from jidomem.rdf import vocab
from jidomem.rdf.statements import NUMERIC, is_well_formed, is_writable
from jidomem.rdf.terms import iri, plain_value
from jidomem.rdf.vocab import family
from jidomem.records.file_anchor import is_outside, plain_path
from jidomem.records.intent import (
    FIELD_PROPERTIES,
    INTENT_FIELDS,
    LIST_FIELDS,
    MemoryUpdateIntent,
    properties_of,
    renamed,
)
from jidomem.records.policy import ENTRIES_LIMIT, LITERAL_LIMIT, LITERAL_MOST, TRIPLES_LIMIT
from jidomem.schema.ontology import ITEM, Schema
from jidomem.write import canonical
from jidomem.write.canonical import (
    HAVE_DEFAULTS,
    SYNONYMS,
    TYPE_SYNONYMS,
    choices_of,
    defaults_of,
    is_absolute,
    is_reference,
    is_reserved,
    is_short_id,
    moment,
)
from jidomem.write.snapshot import WriteSnapshot

MOMENT_FIELDS = ("timestamp", "expires_on", "valid_from", "valid_until")
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # as XML 1.0 forbids


def comparable_moments(fields: Mapping[str, Any]) -> dict[str, str]:
    """Return the moments among *fields*, each in one form: a store may write one in another form than it was given.

    >>> comparable_moments({"expires_on": "2027-01-15T02:00:00+02:00", "summary": "ship"})
    {'expires_on': '2027-01-15 00:00:00+00:00'}
    """
    return {name: str(parse_moment(fields[name]) or fields[name]) for name in MOMENT_FIELDS if name in fields}


def _trimmed(text: str) -> str:
    """Return *text* without white space at its ends; of several lines the first keeps its indentation, as in code."""
    trimmed = text.strip()
    return re.sub(r"\A\s*\n", "", text.rstrip()) if "\n" in trimmed else trimmed


def short_repr(value: Any) -> str:
    """Return *value* as Python writes it, cut to 200 characters."""
    try:
        return repr(value)[:200]
    except ValueError:  # thousands of digits
        return f"a very large {type(value).__name__}"


def check_size(
    name: str, text: str, most: int, instead: str = "summarise it, and name the full text in evidence"
) -> None:
    """Raise TooLarge for a text of more than *most* bytes of UTF-8; *instead* is the hint."""
    if len(text) * 4 > most and (size := len(text.encode("utf-8", "replace"))) > most:
        hint = instead
        if size <= LITERAL_MOST:
            hint += f"; or the operator sets literal = {size} in [limits] of "
            hint += "~/.config/jidomem/config.toml"
        field = name if name in INTENT_FIELDS else None
        raise TooLarge(f"{name} has {size:,} bytes; a text holds at most {most:,}", hint=hint, field=field)


def check_entries(intent: MemoryUpdateIntent) -> None:
    """Raise TooLarge for a list of *intent* with too many entries; in lists of references only short ids count."""
    for name in ("about", "evidence", "alternatives", *ITEM_LISTS):
        value, what = getattr(intent, name), "entries"
        if not isinstance(value, (list, tuple)) or len(value) <= ENTRIES_LIMIT:
            continue
        hint = "submit several intents, or name what the entries have in common"
        if name in ITEM_LISTS:  # each short id costs a search
            value = [each for each in value if not (isinstance(each, str) and "://" in each)]
            what, hint = "short ids", "give IRIs"
        if len(value) > ENTRIES_LIMIT:
            detail = f"{name} has {len(value):,} {what}; it holds at most {ENTRIES_LIMIT:,}"
            raise TooLarge(detail, hint=hint, field=name)


@dataclass(slots=True)
class FieldNormalizer:
    """The normaliser of fields; it collects the violations of all values for one refusal."""

    schema: Schema
    literal: int = LITERAL_LIMIT
    violations: list[Violation] = dataclass_field(default_factory=list)

    def refuse(self, code: str, name: str, value: Any, message: str, **more: Any) -> None:
        """Add a violation for *value* of the field *name*."""
        shown = value if isinstance(value, str) else short_repr(value)
        shown = ascii(shown[:200]) if _FORBIDDEN.search(shown) else shown
        self.violations.append(Violation(code, message, field=name, value=shown, **more))

    def field(self, name: str, value: Any) -> Any:
        """Return the value of one field trimmed, a blank one as None, a list element by element."""
        if name in LIST_FIELDS:
            return self._list(name, value)
        if isinstance(value, str):
            if value.isprintable() and len(value) * 4 <= self.literal:  # as most are
                return value.strip() or None
            return self.text(name, value) or None
        if value is None or (name == "confidence" and isinstance(value, (int, float))):
            return value
        if name in MOMENT_FIELDS and isinstance(value, datetime):
            return value.isoformat()
        entries = value if isinstance(value, (list, tuple)) else ()
        only = entries[0] if len(entries) == 1 and isinstance(entries[0], str) else None
        self.refuse(
            "invalid_argument",
            name,
            value,
            f"{name} is text, not {json_type(value)}",
            repair=canonical.put(name, only) if only else None,
            hint=f'give `{name}` as one text in quotes, "..."',
        )
        return None

    def _list(self, name: str, value: Any) -> list[Any]:
        if value is None or value == []:
            return []
        if isinstance(value, str) and name != "extra_triples":
            message = f"{name} is a list of texts, not one text"
            self.refuse("invalid_argument", name, value, message, repair=canonical.put(name, [value]))
            return []
        if not isinstance(value, (list, tuple)):
            message = f"{name} is a list, not {json_type(value)}"
            hint = f'give `{name}` as a list of texts, ["...", "..."]' if name != "extra_triples" else ""
            self.refuse("invalid_argument", name, value, message, hint=hint)
            return []
        if name == "extra_triples":
            return list(value)
        texts = []
        for entry in value:
            if isinstance(entry, str):
                texts.append(self.text(name, entry))
            else:
                message = f"{name} is a list of texts, and an entry is {json_type(entry)}"
                self.refuse("invalid_argument", name, entry, message)
        return canonical.unique(filter(None, texts))

    def text(self, name: str, value: str) -> str:
        """Return *value* trimmed, empty if it is refused for a control character; raises TooLarge for a long one."""
        return _trimmed(self.verbatim(name, value))

    def verbatim(self, name: str, value: str) -> str:
        """Return *value* unchanged, empty if it is refused; raises TooLarge for a long one."""
        if value.isprintable() and len(value) * 4 <= self.literal:  # as most are
            return value
        check_size(name, value, self.literal)
        if not value.isprintable() and (bad := _FORBIDDEN.search(value)):
            what = (
                "a control character" if bad[0] < " " else "a lone surrogate" if bad[0] < "\ue000" else "a noncharacter"
            )
            message = f"{name} contains {what}, U+{ord(bad[0]):04X}, at character {bad.start()}: leave it out"
            self.refuse("invalid_argument", name, value, message)
            return ""
        return value

    def reference(self, name: str, text: str, folder: str) -> str:
        """Return the IRI that *text* stands for: itself, a prefixed name, or a plain name below *folder*."""
        if (":" in text or "<" in text) and canonical.is_reference(text):
            result = self.iri(name, text)
            if canonical.is_reserved(result) and not re.match(f"{vocab.BASE}{folder}/[^/]+$|{vocab.JIDO}", result):
                self.refuse("invalid_iri", name, text, f"{name} is a name, or an IRI below {vocab.BASE}{folder}/")
            return result
        plain = slug(text)
        if not plain or len(plain) > 200:
            self.refuse("invalid_iri", name, text, f"{name} needs a name of 1 to 200 letters and digits")
        return f"{vocab.BASE}{folder}/{plain}"

    def iri(self, name: str, text: str) -> str:
        """Return *text* as an absolute IRI in its one written form, or refuse it with that form as the nearest."""
        if (expanded := canonical.expand(text)) is not None:
            return expanded
        if canonical.is_absolute(text):
            return text
        if (own := self.schema.expand(text)) is not None:
            return own
        form = canonical.written(text)
        near = form if canonical.is_absolute(form) else None
        self.refuse(
            "invalid_iri",
            name,
            text,
            f"{name} takes an absolute http, https or urn IRI in lower case and without spaces, not {text[:80]!r}",
            nearest=near,
            repair=canonical.swap(name, text, near) if near else None,
        )
        return text

    def choice(self, name: str, given: str, allowed: tuple[str, ...], written: dict[str, str]) -> str:
        """Return the one of *allowed* that *given* names; *written* has further squashed forms of them."""
        forms = {canonical.letters_and_digits(choice): choice for choice in allowed} | written
        match = forms.get(canonical.letters_and_digits(given))
        if match is None:
            meant = [choice for choice in SYNONYMS.get(canonical.letters_and_digits(given), ()) if choice in allowed]
            nearest = meant[0] if meant else canonical.nearest(given, allowed)
            self.refuse(
                "shape_violation",
                name,
                given,
                f"{name} is one of {', '.join(allowed)}, not {given!r}",
                allowed=allowed,
                nearest=nearest,
                repair=canonical.put(name, nearest) if nearest else None,
            )
        return match or given


_EXTRA, _STRING = "extra_triples", vocab.XSD + "string"
#: Properties whose text is a pattern for the guard, in which blanks count, and all whose text is stored unchanged.
PATTERNS = frozenset((f"{vocab.JIDO}forbidsPattern", f"{vocab.JIDO}requiresPattern"))
_VERBATIM = PATTERNS | {f"{vocab.JIDO}checkCommand"}
_OBJECT_KEYS = ({"@id"}, {"@value"}, {"@value", "@type"}, {"@value", "@language"})


def written(normalizer: FieldNormalizer, given: list[Any], own: str) -> list[Any]:
    """Return the triples *given* about *own* as [subject IRI, predicate IRI, {"@id"} or {"@value", "@type"}].

    Triples without such a form are refused by *normalizer*; raises TooLarge for more than 500 triples.
    """
    if len(given) > TRIPLES_LIMIT:
        raise TooLarge(
            f"{len(given)} extra triples; an intent holds at most {TRIPLES_LIMIT}", hint="submit several intents"
        )
    triples = [triple for triple in (_triple(normalizer, entry, own) for entry in given) if triple]
    return [triple for n, triple in enumerate(triples) if triple not in triples[:n]]


def _triple(normalizer: FieldNormalizer, entry: Any, own: str) -> list[Any] | None:
    if not isinstance(entry, (list, tuple)) or len(entry) not in (2, 3):
        message = "an extra triple is [predicate, object] about this memory, or [subject, predicate, object]"
        normalizer.refuse("invalid_argument", _EXTRA, entry, message)
        return None
    subject, predicate, value = entry if len(entry) == 3 else (own, *entry)
    for part in (subject, predicate):
        if isinstance(part, str) and part.strip().startswith("_:"):
            normalizer.refuse("invalid_iri", _EXTRA, part, f"the blank node {part} has no name: give it an IRI")
            return None
        if not isinstance(part, str) or not (
            is_reference(part) or part == "this" or normalizer.schema.expand(part.strip())
        ):
            message = "subject and predicate are IRIs, prefixed names such as jido:topic, or 'this'"
            normalizer.refuse("invalid_iri", _EXTRA, part, f"{message}, not {part!r:.80}")
            return None
    term = _object(normalizer, normalizer.iri(_EXTRA, predicate.strip()), value)
    if term is None:
        return None
    about = own if subject == "this" else normalizer.iri(_EXTRA, subject.strip())
    return [about, normalizer.iri(_EXTRA, predicate.strip()), term]


def _object(normalizer: FieldNormalizer, predicate: str, value: Any) -> dict[str, str] | None:
    """Return the written form of an object: a text that is an IRI as IRI, another text with the property's datatype."""
    if isinstance(value, Mapping):
        return _spelt_out(normalizer, predicate, value)
    if isinstance(value, bool):
        return {"@value": "true" if value else "false", "@type": vocab.XSD + "boolean"}
    if isinstance(value, int) and abs(value) >= 2**63:
        form = '{"@value": "DIGITS", "@type": "xsd:integer"}'
        normalizer.refuse("invalid_argument", _EXTRA, hex(value)[:80], f"so large an integer is given as {form}")
        return None
    if isinstance(value, (int, float, Decimal)) and is_writable(value):
        return _number(value, datatype_of(normalizer, predicate))
    if predicate in _VERBATIM and isinstance(value, str):
        return _spelt_out(normalizer, predicate, {"@value": value})
    if not isinstance(value, str) or not value.strip():
        message = "an object is text, a finite number of at most 400 digits, a boolean or an IRI"
        normalizer.refuse("invalid_argument", _EXTRA, value, message)
        return None
    if value.strip().startswith("_:"):
        normalizer.refuse("invalid_iri", _EXTRA, value, f"the blank node {value} has no name: give it an IRI")
        return None
    given = normalizer.verbatim(_EXTRA, value)
    text, datatype = _trimmed(given), datatype_of(normalizer, predicate)
    if datatype is None and (is_reference(text, prose=True) or normalizer.schema.expand(text)):
        return {"@id": normalizer.iri(_EXTRA, text)}
    named = text if is_short_id(text) else normalizer.schema.expand(text, foreign=True)
    if named and (declared := normalizer.schema.properties.get(iri(predicate))) and declared.is_object:
        return _spelt_out(normalizer, predicate, {"@id": named})
    if datatype == vocab.XSD + "dateTime":
        text = moment(text) or text
    if datatype in (None, _STRING) and not predicate.startswith(vocab.JIDO):  # an own property is stored as given
        text = given
    return _typed(normalizer, predicate, text, datatype or _STRING)


def _number(value: float | Decimal, datatype: str | None) -> dict[str, str]:
    """Return *value* as a literal of the numeric *datatype* if its digits are one, else of its own datatype."""
    own = vocab.XSD + ("integer" if isinstance(value, int) else "double" if isinstance(value, float) else "decimal")
    text = f"{Decimal(str(value)):f}" if vocab.XSD + "decimal" in (datatype, own) else str(value)
    if datatype is None or datatype not in NUMERIC or not is_written(text, datatype):
        return {"@value": text, "@type": own}
    return {"@value": text, "@type": datatype}


def datatype_of(normalizer: FieldNormalizer, predicate: str) -> str | None:
    """Return the datatype of *predicate*, None for a property of IRIs, of any value, or of a foreign vocabulary."""
    declared = normalizer.schema.properties.get(iri(predicate))
    datatypes = [plain_value(term) for term in declared.range] if declared else []
    return datatypes[0] if len(datatypes) == 1 and datatypes[0].startswith(vocab.XSD) else None


def _spelt_out(normalizer: FieldNormalizer, predicate: str, value: Mapping[str, Any]) -> dict[str, str] | None:
    """Return an object given as `{"@id": ...}` or `{"@value": ...}`; a text keeps its blanks."""
    if set(value) not in _OBJECT_KEYS or not all(isinstance(part, str) for part in value.values()):
        message = 'an object is {"@id": IRI}, {"@value": text}, or {"@value": text} with "@type" or "@language"'
        normalizer.refuse("invalid_argument", _EXTRA, value, message)
        return None
    if "@id" in value:
        name = value["@id"].strip()
        return {"@id": name if is_short_id(name) else normalizer.iri(_EXTRA, name)}
    if not value["@value"].strip() and not (value["@value"] and predicate in PATTERNS):
        normalizer.refuse("invalid_argument", _EXTRA, value, "an object that is text is not blank")
        return None
    datatype = normalizer.iri(_EXTRA, value.get("@type", _STRING))
    is_text = datatype == _STRING and predicate not in LIFTED  # fields are trimmed
    text = normalizer.verbatim(_EXTRA, value["@value"]) if is_text else normalizer.text(_EXTRA, value["@value"])
    if "@language" in value:
        if not re.fullmatch(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*", value["@language"]):
            normalizer.refuse("invalid_argument", _EXTRA, value["@language"], "@language is a tag such as en-gb")
            return None
        return {"@value": text, "@language": value["@language"].lower()}
    return _typed(normalizer, predicate, text, datatype)


def _typed(normalizer: FieldNormalizer, predicate: str, text: str, datatype: str) -> dict[str, str] | None:
    """Return a literal, or refuse a text that is malformed for its datatype."""
    if not is_written(text, datatype):
        reason = f": {why}" if (why := impossible_day(text)) else ""
        message = f"{text[:80]!r} is not written as a {datatype} is{reason}"
        hint = f"correct `{normalizer.schema.compact(iri(predicate))}`"
        normalizer.refuse("shape_violation", _EXTRA, text, message, hint=hint)
        return None
    return {"@value": text, "@type": datatype}


def is_written(text: str, datatype: str) -> bool:
    """Return whether *text* is a literal of *datatype*, as far as its lexical form is known here."""
    return is_well_formed(text, datatype) and not is_reserved(datatype)


def fill_free_fields(triples: list[Any], values: dict[str, Any]) -> list[Any]:
    """Return *triples* without those that a field of the intent can hold; these are put into free fields in *values*.

    A value is thus judged the same whether it is given in a field or as an extra triple.
    """
    choices = choices_of(values["type"])
    rest = []
    for subject, predicate, value in triples:
        field = LIFTED.get(predicate) if subject == values["iri"] else None
        text = _object_field(field, value, choices.get(field)) if field else None
        if field is None or text is None or (field == "status" and not _is_status_of(predicate, values["type"])):
            rest.append([subject, predicate, value])
        elif isinstance(values[field], list):
            values[field] = [*dict.fromkeys([*values[field], text])]
        elif values[field] in (None, text):
            values[field] = text
        else:
            rest.append([subject, predicate, value])
    return rest


def _object_field(field: str, value: Mapping[str, str], allowed: tuple[str, ...] | None) -> str | None:
    """Return the value of *field* for an object in its written form, None if the field cannot hold it."""
    text = value.get("@id")
    if text is None and value.get("@type") == vocab.XSD + _DATATYPE_OF.get(field, "string"):
        text = value["@value"]
        if field in MOMENT_FIELDS and moment(text) != text:
            return None
    if allowed is None or text is None:
        return text
    name = text.removeprefix(vocab.JIDO)
    return name if name in allowed else None


def _is_status_of(predicate: str, kind: str | None) -> bool:
    family_ = family(kind or "")
    return predicate == vocab.JIDO + {"task": "hasTaskStatus", "error": "hasErrorStatus"}.get(family_, "decisionStatus")


#: The datatypes of fields other than plain texts.
_DATATYPE_OF: Mapping[str, str] = {
    **dict.fromkeys(properties_of("url"), "anyURI"),
    **dict.fromkeys(properties_of("moment"), "dateTime"),
}
#: The properties of extra triples that are moved into a field.
LIFTED: Mapping[str, str] = {
    vocab.JIDO + each.name: each.field for each in FIELD_PROPERTIES.values() if each.as_extra == "lifted"
}


ITEM_LISTS = ("supersedes", "invalidates", "coexists_with", "revives")
_FOLDERS = {
    "applies_to_project": "projects",
    "asserted_by": "agents",
    "assigned_to": "agents",
    "asserted_in": "sessions",
}
#: The names by which an author is assigned to a task.
_ONESELF = ("me", "myself", "self")


class NormalIntent(NamedTuple):
    """An intent in its one written form, and the fields that were filled in (field -> value)."""

    intent: MemoryUpdateIntent
    filled: Mapping[str, Any]


def normalize(
    intent: MemoryUpdateIntent,
    *,
    now: datetime,
    new_id: Callable[[], str],
    schema: Schema,
    literal: int = LITERAL_LIMIT,
) -> NormalIntent:
    """Return *intent* in its one written form: trimmed, references as IRIs, moments in UTC, defaults by type.

    Normalising a normal intent changes nothing. Raises IntentRefused with every value that has no written form, and
    TooLarge for a text of more than *literal* bytes.
    """
    normalizer = FieldNormalizer(schema, literal)
    values: dict[str, Any] = {
        name: None if value is None or value == [] else normalizer.field(name, value) for name, value in intent.fields()
    }
    for name in LIST_FIELDS:
        values[name] = values[name] or []
    given = dict(values)
    values["type"] = _kind(normalizer, values["type"], values["extra_triples"])
    values["iri"] = normalizer.iri("iri", values["iri"]) if values["iri"] else f"{vocab.BASE}memory/{new_id()}"
    if values["extra_triples"]:
        values["extra_triples"] = fill_free_fields(written(normalizer, values["extra_triples"], values["iri"]), values)
    values["confidence"] = _confidence(normalizer, values["confidence"])
    _choices(normalizer, values)
    _references(normalizer, values)
    _moments(normalizer, values)
    _timestamp(values, now)
    extras = {predicate for subject, predicate, _ in values["extra_triples"] if subject == values["iri"]}
    if values["type"] in HAVE_DEFAULTS:
        for field, (prop, default) in defaults_of(values["type"], values).items():
            if values[field] is None and vocab.JIDO + prop not in extras:
                values[field] = default
    if normalizer.violations:
        raise IntentRefused(normalizer.violations)
    filled = {name: value for name, value in values.items() if given[name] is None and value is not None}
    return NormalIntent(MemoryUpdateIntent.from_fields(values), filled)


#: The names of types for the summary of a session, and what fits: one memory for each thing that the next one needs.
_SUMMARIES = ("session_summary", "session", "summary", "recap", "handover")
_OF_A_SESSION = (
    "give a memory for each result of the session: `type` decision, fact, convention, lesson_learned, or task for"
    " what is next; a text on the whole is a fact with the `topic` session summary"
)


def _kind(normalizer: FieldNormalizer, given: str | None, extra: list[Any]) -> str | None:
    """Return the type that *given* names, None if it names none.

    An own kind of the project is a type of memory with its class, which is added to *extra*.
    """
    if given is None:
        return None
    if given in vocab.CLASS_OF_TYPE:
        return given
    key = canonical.type_key(given)
    key = vocab.TYPE_ALIASES.get(key, key)
    if key in vocab.CLASS_OF_TYPE:
        return key
    own = normalizer.schema.own_kinds(given)
    if len(own) == 1 and (kind := canonical.other_kind(own[0], ITEM, normalizer.schema)) is not None:
        extra.append([vocab.RDF + "type", {"@id": plain_value(own[0])}])
        return kind
    shipped = (name for name in vocab.CLASS_OF_TYPE if name != "deleted_marker")
    allowed = (*map(vocab.local_name, normalizer.schema.all_own_kinds), *shipped, *vocab.TYPE_ALIASES)
    near = TYPE_SYNONYMS.get(key) or canonical.nearest(key, allowed)
    message = f"{given!r} is not a type of memory" + (f"; did you mean {near!r}?" if near else "")
    if own:
        message = f"{given!r} names {' and '.join(map(plain_value, own))}: give the IRI of one that is below a type"
    repair = canonical.put("type", near) if near else None
    name = given if re.fullmatch(r"[A-Z]\w+", given) else "NAME"
    kind = f"jidomem ontology propose {name} --kind class --parent Fact --definition TEXT --reason TEXT"
    hint = "" if near or own else f"correct `type`, or propose a kind: {kind}"
    if key in _SUMMARIES:
        message += f"; {_OF_A_SESSION}"
    normalizer.refuse("unknown_type", "type", given, message, allowed=allowed, nearest=near, repair=repair, hint=hint)
    return None


def _confidence(normalizer: FieldNormalizer, given: Any) -> str | float | None:
    """Return a level, or the given exact number from 0 to 1."""
    if given is None:
        return None
    if given in vocab.CONFIDENCE:
        return str(given)
    number = given
    if isinstance(given, str):
        level = canonical.letters_and_digits(given)
        if level in vocab.CONFIDENCE:
            return level
        try:
            number = float(given)
        except ValueError:
            number = math.nan
    if not isinstance(number, bool) and 0 <= number <= 1:
        return float(number)
    allowed = tuple(vocab.CONFIDENCE)
    near = canonical.nearest(given, allowed) if isinstance(given, str) else None
    message = f"confidence is low, medium, high or a number from 0 to 1, not {short_repr(given)}"
    repair = canonical.put("confidence", near) if near else None
    normalizer.refuse("invalid_confidence", "confidence", given, message, allowed=allowed, nearest=near, repair=repair)
    return None


def _timestamp(values: dict[str, Any], now: datetime) -> None:
    """Set a missing timestamp to *now*, unless an extra triple says undated; a timestamp removes that triple."""
    undated = [triple for triple in values["extra_triples"] if triple[:2] == [values["iri"], vocab.UNDATED]]
    if values["timestamp"]:
        values["extra_triples"] = [triple for triple in values["extra_triples"] if triple not in undated]
    elif not undated:
        values["timestamp"] = format_timestamp(now)


def _choices(normalizer: FieldNormalizer, values: dict[str, Any]) -> None:
    """Normalise the fields that take one of a few names; `project` stands for ProjectScope, `user` for UserSource."""
    for field, allowed in choices_of(values["type"]).items():
        if values[field] is not None and values[field] not in allowed:
            short = {canonical.letters_and_digits(re.sub("(Scope|Source)$", "", name)): name for name in allowed}
            values[field] = normalizer.choice(field, values[field], allowed, short)


def _references(normalizer: FieldNormalizer, values: dict[str, Any]) -> None:
    """Replace names by IRIs: project, agents and sessions; in evidence and about, the entries that are references."""
    if (values["assigned_to"] or "").casefold() in _ONESELF:
        values["assigned_to"] = values["asserted_by"]
    for field, folder in _FOLDERS.items():
        if values[field] is not None:
            values[field] = normalizer.reference(field, values[field], folder)
    for field in filter(values.__getitem__, ITEM_LISTS):
        values[field] = canonical.unique(
            [normalizer.iri(field, name) if canonical.is_reference(name) else name for name in values[field]]
        )
    for field, plain in (("evidence", str), ("about", plain_path)):
        if not values[field]:
            continue
        values[field] = canonical.unique(
            [
                normalizer.iri(field, entry) if canonical.is_reference(entry, prose=True) else plain(entry)
                for entry in values[field]
            ]
        )
    for entry in filter(is_outside, values["about"]):
        message = f"about names places by their path below the folder that contains the memory, and {entry} is none"
        hint = "give the path of a file relative to that folder: src/a.py"
        normalizer.refuse("invalid_argument", "about", entry, message, hint=hint)
    if values["tracked_by"] is not None and not values["tracked_by"].startswith(("http://", "https://")):
        normalizer.refuse(
            "invalid_iri", "tracked_by", values["tracked_by"], "tracked_by is a URL: start it with https://"
        )


def _moments(normalizer: FieldNormalizer, values: dict[str, Any]) -> None:
    for field in MOMENT_FIELDS:
        given = values[field]
        if given is None:
            continue
        values[field] = canonical.moment(given)
        if values[field] is None:
            other = canonical.other_date(given)
            reason = impossible_day(given)
            message = f"{field} is an ISO 8601 date or moment such as 2026-11-21T08:00:00Z, not {given!r}"
            message += f": {reason}" if reason else ""
            repair = canonical.put(field, other) if other else None
            normalizer.refuse("shape_violation", field, given, message, nearest=other, repair=repair)


#: Fields with memories beside texts and files: only an existing short id is taken as a memory.
_MIXED = ("evidence", "about")
Find = Callable[[str], str]


def resolve(intent: MemoryUpdateIntent, view: WriteSnapshot, find: Find) -> MemoryUpdateIntent:
    """Return the normal *intent* with each memory named by its IRI.

    Raises IntentRefused for each name, in a field of memories, that stands for no or several memories.
    """
    if not _has_names(intent):
        return intent
    violations: list[Violation] = []

    def whole(field: str, name: str) -> str:
        if is_reference(name):
            return name
        by_id = f"{vocab.BASE}memory/{name}"
        if is_absolute(by_id) and view.is_item(iri(by_id)):  # it may be in this block, which is not indexed yet
            return by_id
        try:
            return find(name)
        except (NotFound, InvalidRequest) as error:
            violations.append(_unknown(field, name, error))
            return name

    changed: dict[str, Any] = {
        field: [*dict.fromkeys(whole(field, name) for name in getattr(intent, field))] for field in ITEM_LISTS
    }
    for field in _MIXED:
        changed[field] = [*dict.fromkeys(_by_short_id(name, find) for name in getattr(intent, field))]
    changed["extra_triples"] = [
        [subject, predicate, {"@id": whole("extra_triples", value["@id"])} if _is_name(value) else value]
        for subject, predicate, value in intent.extra_triples
    ]
    if violations:
        raise IntentRefused(violations)
    return replace(intent, **changed)


def without_names(intent: MemoryUpdateIntent) -> MemoryUpdateIntent:
    """Return the normal *intent* without references that are no IRIs."""
    changed: dict[str, Any] = {field: [*filter(is_reference, getattr(intent, field))] for field in ITEM_LISTS}
    changed["extra_triples"] = [triple for triple in intent.extra_triples if not _is_name(triple[2])]
    return replace(intent, **changed)


def _has_names(intent: MemoryUpdateIntent) -> bool:
    for field in ITEM_LISTS:
        if not all(map(is_reference, getattr(intent, field))):
            return True
    for field in _MIXED:
        if any(map(is_short_id, getattr(intent, field))):
            return True
    return any(map(_is_name, [value for _, _, value in intent.extra_triples])) if intent.extra_triples else False


def _is_name(value: dict[str, str]) -> bool:
    return is_short_id(value.get("@id", ""))


def _by_short_id(name: str, find: Find) -> str:
    """Return the memory with the short id *name*, else *name* itself: evidence may be the hash of a commit."""
    if not is_short_id(name):
        return name
    try:
        item = find(name)
    except NotFound:
        return name
    return item if item.endswith(name) else name


def _unknown(field: str, name: str, error: NotFound | InvalidRequest) -> Violation:
    """Return the violation for *name*, which stands for no memory, or for several, its allowed values."""
    candidates = error.candidates if isinstance(error, NotFound) else ()
    return Violation(
        "unknown_reference",
        error.detail,
        field=field,
        value=name,
        allowed=candidates,
        nearest=candidates[0] if len(candidates) == 1 else None,
        hint=error.hint,
    )


def with_own_property(fault: Violation, schema: Schema) -> Violation:
    """Return the *fault* of an unknown field with the IRI of the overlay's property of that name, if there is one."""
    if fault.code != "unknown_field" or (own := schema.property_named(str(fault.field))) is None:
        return fault
    old, new = str(fault.field), plain_value(own)
    message = f"{old!r} is a property of this project, whose key is its IRI"
    repair = partial(renamed, old=old, new=new)
    return replace(fault, message=message, nearest=new, repair=repair, hint=f"write `{new}` for {old!r}")
