"""Gates: queries whose every row is a failure, shipped ones and a root's own, asked of the index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jidomem import resources, sparql
from jidomem.dataset import refuse_graphs
from jidomem.errors import Failed, JidomemError
from jidomem.govern.report import GATE, SEVERITIES, Found
from jidomem.govern.sources import Source
from jidomem.index import OxigraphIndex, Solutions
from jidomem.judge import Severity
from jidomem.query import NamedQuery, parse
from jidomem.terms import Term, Triple, bare, is_iri, parts
from jidomem.vocab import BASE, GRAPHS, ONTOLOGY_GRAPH, graph_iri

FOLDER = "gates"
#: What a gate's columns may be: the node that fails, how, how gravely, and the triple of it that is to blame.
COLUMNS = ("item", "message", "severity", "property", "value")
_BLANK = f"<{BASE}.well-known/genid/check/"


@dataclass(frozen=True, slots=True)
class Gate:
    """A query that finds what must not be; `rule` names it, `summary` says what has to hold instead."""

    query: NamedQuery
    path: Path

    @property
    def rule(self) -> str:
        """Return the IRI of the rule."""
        return GATE + self.query.name


#: Answers a gate's text with its variables and rows; raises JidomemError where it cannot.
Ask = Callable[[str], Solutions]


def shipped() -> list[Gate]:
    """Return the gates of jidomem."""
    return [read(path) for path in resources.queries() if path.parent.name == FOLDER]


def of_root(root: Path) -> tuple[list[Gate], list[str]]:
    """Return the gates of a root, and why the others of its files are none: they reach outside, or are misshapen."""
    own: list[Gate] = []
    refused = []
    taken = {gate.query.name for gate in shipped()}
    for path in sorted((root / "queries" / FOLDER).glob("*.rq")):
        try:
            gate = read(path)
            if gate.query.name in taken:
                raise _bad(path, f"the name {gate.query.name!r} is taken by a shipped gate", "give the file another")
            own.append(gate)
        except JidomemError as error:
            refused.append(f"gate {path.stem}: {error.detail}")
    return own, refused


def run(gates: Iterable[Gate], ask: Ask) -> tuple[list[Found], list[str]]:
    """Return what *gates* find, and which of them could not be asked, each with the reason."""
    found: list[Found] = []
    unchecked = []
    for gate in gates:
        try:
            found += [_row(gate, answer) for answer in _rows(gate, ask(gate.query.text))]
        except JidomemError as error:
            unchecked.append(f"gate {gate.query.name}: {error.detail}")
    return found, unchecked


def of_project(index: OxigraphIndex, project: str) -> Ask:
    """Return who answers about the graphs of *project*, in this process."""
    graphs = [*(graph_iri(project, name) for name in GRAPHS), ONTOLOGY_GRAPH]
    return lambda text: _solutions(index, text, graphs)


def of_source(source: Source, ontology: Iterable[Triple]) -> Ask:
    """Return who answers about the triples of *source*, in this process."""
    index, graph = OxigraphIndex(), graph_iri("checked")
    index.put_ontology(ontology)
    index.apply(graph, "source", [(_named(s), p, _named(o)) for s, p, o in source.triples])

    def ask(text: str) -> Solutions:
        found = _solutions(index, text, [graph, ONTOLOGY_GRAPH])
        return replace(found, rows=tuple(tuple(map(_blank, row)) for row in found.rows))

    return ask


def read(path: Path) -> Gate:
    """Return the gate in a file; raise what says why it is none."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise _bad(path, str(error), "make it a readable file of UTF-8 text") from error
    query = parse(path.stem, FOLDER, text)
    odd = [column for column in query.columns if column not in COLUMNS]
    if query.params or query.course or "item" not in query.columns or odd:
        problem = f"?{odd[0]} is no column of a gate" if odd else "it takes parameters, or has no column item"
        raise _bad(path, problem, f"a gate has no params, and columns among {' '.join(COLUMNS)}, item always")
    refuse_graphs(sparql.check(text))
    return Gate(query, path)


def _rows(gate: Gate, answer: Solutions) -> list[dict[str, Term | None]]:
    return [dict(zip(answer.variables, row, strict=True)) for row in answer.rows]


def _row(gate: Gate, row: dict[str, Term | None]) -> Found:
    """Return one failure; raise Failed for a row without an item, or with a severity there is not."""
    item, message, severity = row.get("item"), row.get("message"), row.get("severity")
    grade = "violation" if severity is None else parts(severity).text if severity[0] == '"' else bare(severity)
    if item is None or item[0] == '"' or grade not in SEVERITIES:
        raise _bad(gate.path, f"a row with item {item} and severity {severity}", f"say {', '.join(SEVERITIES)}")
    graded: Severity = next(each for each in SEVERITIES if each == grade)
    said = gate.query.summary if message is None else bare(message)
    value, property_ = row.get("value"), row.get("property")
    return Found(item, gate.rule, graded, said, property_ if property_ and is_iri(property_) else None, value)


def _solutions(index: OxigraphIndex, text: str, graphs: Sequence[str]) -> Solutions:
    answer = index.query(text, graphs=graphs)
    assert isinstance(answer, Solutions)  # the header was held against a SELECT
    return answer


def _named(term: Term) -> Term:
    return f"{_BLANK}{term[2:]}>" if term.startswith("_:") else term


def _blank(term: Term | None) -> Term | None:
    return f"_:{term[len(_BLANK) : -1]}" if term and term.startswith(_BLANK) else term


def _bad(path: Path, what: str, hint: str) -> Failed:
    return Failed(f"{path}: {what}", hint=hint, code="invalid_config")
