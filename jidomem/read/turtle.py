"""Triples as Turtle for people to read: one block a subject, in one order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import groupby

from jidomem import vocab
from jidomem.terms import Term, Triple

_PREFIXES = {"jido": vocab.JIDO, "prov": vocab.PROV, "rdfs": vocab.RDFS, "xsd": vocab.XSD}
_LOCAL = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_TYPED = re.compile(r"(.*\^\^)(<[^<>]*>)", re.DOTALL)


def turtle(triples: Iterable[Triple], further: Mapping[str, str] | None = None) -> str:
    """Return *triples* as Turtle, classes first, then properties in their order; with *further* prefixes."""
    prefixes = {**_PREFIXES, **(further or {})}
    header = "".join(f"@prefix {name}: <{namespace}> .\n" for name, namespace in sorted(prefixes.items()))
    ordered = sorted(triples, key=lambda triple: (triple[0], triple[1] != vocab.TYPE, triple))
    blocks = (_block(subject, [*group], prefixes) for subject, group in groupby(ordered, key=lambda triple: triple[0]))
    return header + "".join(blocks)


def _block(subject: Term, triples: list[Triple], prefixes: Mapping[str, str]) -> str:
    pairs = [f"{'a' if p == vocab.TYPE else _shown(p, prefixes)} {_shown(value, prefixes)}" for _, p, value in triples]
    return f"\n{_shown(subject, prefixes)} " + " ;\n    ".join(pairs) + " .\n"


def _shown(term: Term, prefixes: Mapping[str, str]) -> str:
    """Return *term* with a prefix where one fits."""
    typed = _TYPED.fullmatch(term)
    if typed and term.startswith('"'):
        return typed[1] + _shown(typed[2], prefixes)
    for name, namespace in prefixes.items():
        local = term[len(namespace) + 1 : -1]
        if term.startswith(f"<{namespace}") and _LOCAL.fullmatch(local):
            return f"{name}:{local}"
    return term
