"""The keys by which a disagreement on a topic is found, and those that commits of earlier versions lack.  Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from hashlib import blake2b
from typing import Any

from jidomem.terms import Term, Triple, literal, parts
from jidomem.vocab import TYPE, jido, local_name, type_of
from jidomem.words import normal_text, topic_key

KEY, TOPIC = jido("conflictKey"), jido("topic")
_SUMMARY, _ABOUT, _SCOPE = jido("summary"), jido("about"), jido("hasConventionScope")
_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))


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
    return f"convention_clash:{digest(('topic', topic_key(topic)), scope)}"


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
    if "convention_clash" in kinds:
        made += [convention_clash(topic, local_name(scope)) for scope in said.get(_SCOPE, [])]
    if "duplicate" in kinds:
        summaries = [parts(value).text for value in said.get(_SUMMARY, [])]
        types = [kind for kind in map(type_of, said.get(TYPE, [])) if kind]
        made += [duplicate(kind, summary, topic, about) for kind in types for summary in summaries]
    return [(item, KEY, literal(key)) for key in made if literal(key) not in kept]


def _compared(about: Iterable[str]) -> Sequence[str]:
    return sorted(set(map(normal_text, about)))
