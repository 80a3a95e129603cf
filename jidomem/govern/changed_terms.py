"""Two versions of the ontology, held against each other: what changed, and which memories in force would now fail."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jidomem import schema as schemas
from jidomem.errors import InvalidRequest, JidomemError
from jidomem.govern import gates
from jidomem.govern.judged import around
from jidomem.govern.report import Found
from jidomem.govern.sources import Source
from jidomem.govern.terms_used import terms_used
from jidomem.index.oxigraph import OxigraphIndex
from jidomem.overlay import named
from jidomem.repository import git
from jidomem.schema import Schema
from jidomem.terms import Term, Triple, bare, is_iri, parts
from jidomem.vocab import graph_iri, jido, local_name

SHIPPED, NOW = "shipped", "now"
_AT_ONCE = 500
#: How many revisions of an overlay are looked through for a version that is named by its mark.
_LOOKED_AT = 200
_TIGHTER_UP, _TIGHTER_DOWN = {"minCount", "minLength"}, {"maxCount", "maxLength"}
_ENDS = {jido("supersededBy"), jido("invalidatedBy")}
_COLUMNS = ("change", "kind", "term", "what")


@dataclass(frozen=True, slots=True)
class Change:
    """One term or shape that is not what it was: added, removed, changed, deprecated, tightened or relaxed."""

    change: str
    kind: str
    term: str
    what: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the change as plain JSON values."""
        return {name: getattr(self, name) for name in _COLUMNS}


def version(root: Path, name: str | None) -> Schema:
    """Return the ontology by a name: `shipped`, `now` or None, a folder with an overlay, a git revision of the root's.

    It may be the version that commits of the journal name, if git has the overlay of then.

    Raises InvalidRequest where there is none by that name, Failed where it cannot be used.
    """
    if name in (None, NOW):
        return schemas.load([root])
    if name in (SHIPPED, schemas.load().version):
        return schemas.load()
    if Path(name).is_dir():
        return schemas.load([Path(name)])
    now = schemas.load([root])
    if name == now.version:
        return now
    return _marked(root, name) if name.startswith(f"{schemas.load().version}+") else _at(root, name)


def _marked(root: Path, name: str) -> Schema:
    """Return the ontology that commits call *name*: the newest of the root's overlay in git that has this mark."""
    listed = git.found(root, "log", "--all", f"--max-count={_LOOKED_AT}", "--format=%H", "--", "ontology/", "shapes/")
    revisions = (listed or b"").decode().split()
    for revision in revisions:
        try:
            found = _at(root, revision)
        except JidomemError:  # what was no overlay then judged nothing
            continue
        if found.version == name:
            return found
    hint = "a commit keeps the mark of a version, not its terms: name a folder with the ontology/ and shapes/ of then"
    where = (
        f"none of the {len(revisions)} revisions of the overlay in git is"
        if revisions
        else "git has no overlay that is"
    )
    raise InvalidRequest(f"{where} {name}", hint=hint)


def _at(root: Path, ref: str) -> Schema:
    """Return the ontology as the root's overlay was in a git revision."""
    listed = None
    if not ref.startswith("-"):
        listed = git.found(root, "ls-tree", "-z", "--name-only", ref, "ontology/", "shapes/")
    if listed is None:
        hint = f"name {SHIPPED}, a folder with ontology/ and shapes/, or a commit, branch or tag"
        raise InvalidRequest(f"{ref!r} is no version of the ontology", hint=hint)
    with TemporaryDirectory() as folder:
        for name in map(os.fsdecode, filter(None, listed.split(b"\0"))):
            if name.endswith(".ttl") and name.count("/") == 1:  # a tree that somebody made up may lead elsewhere
                path = Path(folder) / name
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(git.blob(root, ref, name) or b"")
        return schemas.load([Path(folder)])


def changes(old: Schema, new: Schema) -> list[Change]:
    """Return what was added to terms and shapes, removed from them or changed, sorted by kind and term."""
    found = []
    for kind, before, after in (("term", old.triples, new.triples), ("shape", old.rules, new.rules)):
        was, now = _by_subject(before), _by_subject(after)
        for term in sorted(was.keys() | now.keys()):
            if term not in was or term not in now:
                found.append(Change("added" if term in now else "removed", kind, bare(term)))
            elif was[term] != now[term]:
                word = "deprecated" if term in new.deprecated - old.deprecated else "changed"
                gone, came = was[term] - now[term], now[term] - was[term]
                word = _grade(gone, came) if kind == "shape" else word
                verbs = sorted({local_name(verb) for verb, _ in gone | came})
                found.append(Change(word, kind, bare(term), ", ".join(verbs)))
    return found


def _by_subject(triples: tuple[Triple, ...]) -> dict[Term, set[tuple[Term, Term]]]:
    """Return what is said of each named node, the unnamed ones it is made of included."""
    rows: dict[Term, list[tuple[Term, Term]]] = {}
    for subject, predicate, value in named(triples):
        rows.setdefault(subject, []).append((predicate, value))
    said = {}
    for node in filter(is_iri, rows):
        todo, seen = [node], {node}
        own: set[tuple[Term, Term]] = set()
        while todo:
            for predicate, value in rows.get(todo.pop(), ()):
                if not value.startswith("_:"):
                    own.add((predicate, value))
                elif value not in seen:
                    seen.add(value)
                    todo.append(value)
        own |= {row for row in rows[node] if row[1].startswith("_:")}  # which part says what
        said[node] = own
    return said


def _grade(gone: set[tuple[Term, Term]], came: set[tuple[Term, Term]]) -> str:
    """Return whether a shape asks for more, for less, or for something else."""
    before, after = _numbers(gone), _numbers(came)
    plain = all(
        value.startswith("_:") or local_name(verb) in before.keys() | after.keys() for verb, value in gone | came
    )
    if not plain:
        return "changed"
    steps = set()
    for verb in before.keys() | after.keys():
        was, now = before.get(verb), after.get(verb)
        more = now is not None and (was is None or (now > was if verb in _TIGHTER_UP else now < was))
        steps.add("tightened" if more else "relaxed")
    return steps.pop() if len(steps) == 1 else "changed"


def _numbers(said: set[tuple[Term, Term]]) -> Mapping[str, int]:
    limits = _TIGHTER_UP | _TIGHTER_DOWN
    return {local_name(verb): int(parts(value).text) for verb, value in said
            if local_name(verb) in limits and value.startswith('"') and parts(value).text.isdecimal()}  # fmt: skip


def now_failing(index: OxigraphIndex, project: str, old: Schema, new: Schema) -> Iterator[Found]:
    """Yield each violation of *new* at a memory in force of *project* that *old* lets pass, some memories at a time."""
    graph = graph_iri(project)
    spaces = old.namespaces | new.namespaces
    old, new = replace(old, namespaces=spaces), replace(new, namespaces=spaces)
    by_terms = old.triples != new.triples  # else what gates and terms say is the same
    items = (row[0] for row in index.triples(graph, None, jido("hasAssertionStatus"), jido("Asserted")))
    while some := list(islice(items, _AT_ONCE)):
        source = _around(index, graph, some, (*old.rules, *new.rules))
        ended = {row[0] for row in source.triples if row[1] in _ENDS}
        nodes = {item for item in some if item not in ended}
        broken = _broken(new, source, nodes, by_terms=by_terms)
        if broken:
            failing = {each.item for each in broken}
            were = _broken(old, source, failing, by_terms=by_terms)
            before = {(each.item, each.rule, each.property, each.value) for each in were}
            yield from (one for one in broken if (one.item, one.rule, one.property, one.value) not in before)


def _broken(schema: Schema, source: Source, nodes: set[Term], *, by_terms: bool) -> list[Found]:
    """Return the violations at *nodes*, by shapes, and *by_terms* and gates where that is asked for."""
    found = [
        Found(each.focus, bare(each.shape), each.severity, each.message, None, each.value)
        for each in schema.judge(source.triples, nodes, in_check=True)
    ]
    if by_terms:
        found += terms_used(source, schema)
        found += gates.run(gates.shipped(), gates.of_source(source, schema.triples))[0]
    return sorted({each for each in found if each.severity == "violation" and each.item in nodes}, key=repr)


def _around(index: OxigraphIndex, graph: str, items: list[Term], rules: tuple[Triple, ...]) -> Source:
    """Return what is said of *items*, and what the paths of *rules* can meet from there."""
    rows: dict[Triple, None] = {}
    seen: set[Term] = set()
    todo, own = set(items), set(items)
    while todo:
        for node in todo:
            rows |= dict.fromkeys(index.triples(graph, node))
            rows |= dict.fromkeys(index.triples(graph, None, None, node) if node in own else ())
        seen |= todo
        met = {term for row in around(Source(list(rows)), items, rules) for term in (row[0], row[2])}
        todo = {term for term in met if is_iri(term)} - seen
    return Source(list(rows))
