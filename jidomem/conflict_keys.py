"""The keys by which a disagreement on a topic is found, and those that commits of earlier versions lack.  Pure.

A key that two memories share is a disagreement of the two; of two conventions it is one where `Convention.clashes` says
so, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from jidomem.terms import Term, Triple, literal, parts
from jidomem.vocab import TYPE, jido, local_name, type_of
from jidomem.words import normal_text, topic_key

KEY, TOPIC = jido("conflictKey"), jido("topic")
_SUMMARY, _ABOUT, _SCOPE = jido("summary"), jido("about"), jido("hasConventionScope")
_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))


#: The kind of a key that two conventions share.
CLASH = "convention_clash"
_WILD = re.compile(r"[*?\[{]")


@dataclass(frozen=True, slots=True)
class Convention:
    """The parts of a convention by which it clashes with another one of its name or topic: text, level and places.

    The places are the files, folders, patterns and things that it is about; without any it holds everywhere.
    """

    text: str
    level: str
    places: frozenset[str]

    @classmethod
    def of(cls, summary: str | None, level: str | None, about: Iterable[str]) -> Convention:
        """Return a convention by its fields; a level is compared by its local name (default: Advisory)."""
        places = frozenset(map(_extent, about))
        return cls(normal_text(summary or ""), local_name(level or "Advisory"), places)

    def clashes(self, other: Convention) -> bool:
        """Return whether both hold in one place and say otherwise; a text that was redacted may say anything.

        >>> tabs, spaces = Convention.of("Use tabs", None, ["src"]), Convention.of("Use spaces", None, ["src/web"])
        >>> tabs.clashes(spaces), tabs.clashes(Convention.of("Use spaces", None, ["lib"]))
        (True, False)
        >>> tabs.clashes(Convention.of("use  tabs", None, [])), tabs.clashes(Convention.of("Use tabs", "Strict", []))
        (False, True)
        """
        is_same = bool(self.text) and (self.text, self.level) == (other.text, other.level)
        return not is_same and _overlap(self.places, other.places)


def digest(*values: Any) -> str:
    """Return 32 hex digits of BLAKE2b over *values* as JSON."""
    return blake2b(_ENCODER.encode(values).encode(), digest_size=16).hexdigest()


def duplicate(kind: str, summary: str, topic: str, about: Collection[str]) -> str:
    """Return the key of two memories of the type *kind* that say the same."""
    return f"duplicate:{digest(kind, normal_text(summary), topic_key(topic), _compared(about))}"


def overlapping_decision(topic: str) -> str:
    """Return the key of two decisions on one *topic*."""
    return f"overlapping_decision:{digest('decision', topic_key(topic))}"


def contradiction(topic: str, about: Collection[str]) -> str:
    """Return the key of two facts on one *topic* about the same things."""
    return f"contradiction:{digest('fact', topic_key(topic), _compared(about))}"


def convention_clash(topic: str, scope: str | None) -> str:
    """Return the key of two conventions on one *topic* at the same *scope*."""
    return f"{CLASH}:{digest(('topic', topic_key(topic)), scope)}"


def lacking(triples: Iterable[Triple]) -> list[Triple]:
    """Return the keys that a commit of *triples* lacks: those of topics that an earlier version compared otherwise.

    Up to 0.1.0 a dash and a space told two topics apart. What was redacted gets no key, since a kind of key that the
    memory has no more is not made again.
    """
    topics = [(subject, text) for subject, predicate, value in triples if predicate == TOPIC
              if topic_key(text := parts(value).text) != normal_text(text)]  # fmt: skip
    if not topics:
        return []
    said: dict[Term, dict[Term, list[Term]]] = {subject: {} for subject, _ in topics}
    for subject, predicate, value in triples:
        if subject in said:
            said[subject].setdefault(predicate, []).append(value)
    return sorted({each for subject, text in topics for each in _lacking_of(subject, text, said[subject])})


def _lacking_of(item: Term, topic: str, said: dict[Term, list[Term]]) -> Iterable[Triple]:
    kept = said.get(KEY, [])
    kinds = {parts(key).text.partition(":")[0] for key in kept}
    about = [parts(value).text if value.startswith('"') else value[1:-1] for value in said.get(_ABOUT, [])]
    made: list[str] = []
    if "overlapping_decision" in kinds:
        made.append(overlapping_decision(topic))
    if "contradiction" in kinds:
        made.append(contradiction(topic, about))
    if CLASH in kinds:
        made += [convention_clash(topic, local_name(scope)) for scope in said.get(_SCOPE, [])]
    if "duplicate" in kinds:
        summaries = [parts(value).text for value in said.get(_SUMMARY, [])]
        types = [kind for kind in map(type_of, said.get(TYPE, [])) if kind]
        made += [duplicate(kind, summary, topic, about) for kind in types for summary in summaries]
    return [(item, KEY, literal(key)) for key in made if literal(key) not in kept]


def _compared(about: Iterable[str]) -> Sequence[str]:
    return sorted(set(map(normal_text, about)))


def _extent(place: str) -> str:
    """Return a place without the parts that say nothing; of a pattern the folder that it begins at, "" for all.

    >>> _extent("./src/"), _extent("src/**/*.py"), _extent("**/*.py"), _extent(".")
    ('src', 'src', '', '')
    """
    literal_part = _WILD.split(normal_text(place), maxsplit=1)[0]
    if literal_part != normal_text(place):
        literal_part = literal_part.rpartition("/")[0]
    return "" if literal_part == "." else literal_part.removeprefix("./").strip("/")


def _overlap(some: Collection[str], others: Collection[str]) -> bool:
    """Return whether a place of *some* is one of *others*, lies in it or holds it, or either is everywhere."""
    if not some or not others or "" in some or "" in others:
        return True
    return any(_is_within(one, other) or _is_within(other, one) for one in some for other in others)


def _is_within(place: str, other: str) -> bool:
    return place.startswith(other) and place[len(other) : len(other) + 1] in ("", "/", ":", "#")
