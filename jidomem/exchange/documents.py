"""A document of RDF in one of three forms as triples by graph; nothing it says is dropped in silence.  Pure."""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections import defaultdict
from collections.abc import Mapping
from enum import Enum
from hashlib import blake2b
from typing import Any

import pyoxigraph as ox

from jidomem import vocab
from jidomem.decoding import check_turtle
from jidomem.errors import InvalidRequest
from jidomem.intent import parse_json
from jidomem.terms import Term, Triple, bare, fault, iri

_GENID = vocab.BASE + ".well-known/genid/"
#: What JSON-LD would leave out in silence, names without an IRI and relative references, is read as one of these.
_NAMELESS, _RELATIVE = "x-jidomem-nameless:", "x-jidomem-relative://here/"
_NO_IRI = re.compile(r'[\x00-\x20<>"{}|\\^`]')
#: A term with one of our prefixes as its scheme is no IRI that anybody means.
_PREFIXED = tuple(f"<{prefix}:" for prefix in ("jido", "owl", "rdf", "rdfs", "xsd"))


class Form(Enum):
    """How a document is written."""

    TURTLE = "Turtle"
    JSON_LD = "JSON-LD"
    N_QUADS = "N-Quads"


_READ_AS = {
    Form.TURTLE: ox.RdfFormat.TURTLE,
    Form.JSON_LD: ox.RdfFormat.JSON_LD,
    Form.N_QUADS: ox.RdfFormat.N_QUADS,
}


def parse(name: str, data: bytes, form: Form = Form.TURTLE) -> dict[Term, list[Triple]]:
    """Return the triples of a document by the bare IRI of their graph, "" for the default; blank nodes as IRIs.

    Raises InvalidRequest, with file and line where there is one, for what cannot be read, and for JSON-LD that names
    a context elsewhere (nothing is fetched), a property its context does not know or a relative IRI.
    """
    print_ = blake2b(data, digest_size=8).hexdigest()
    blanks: dict[str, Term] = {}

    def term(node: Any) -> Term:
        if isinstance(node, ox.BlankNode):
            return blanks.setdefault(node.value, iri(f"{_GENID}{print_}-{len(blanks) + 1}"))
        return str(node)

    plain = data.removeprefix(BOM_UTF8)
    text, base = (_strict(name, data), _RELATIVE) if form is Form.JSON_LD else (plain, None)
    graphs: dict[Term, list[Triple]] = defaultdict(list)
    try:
        if form is not Form.JSON_LD:
            check_turtle(data)
        for quad in ox.parse(text, format=_READ_AS[form], base_iri=base, rename_blank_nodes=False):
            graph = "" if isinstance(quad.graph_name, ox.DefaultGraph) else bare(term(quad.graph_name))
            row = term(quad.subject), term(quad.predicate), term(quad.object)
            if form is Form.JSON_LD:
                _refuse_unnamed(name, (f"<{graph}>", *row))
            graphs[graph].append(row)
    except SyntaxError as error:
        raise _unreadable(name, error) from error
    return graphs


def _unreadable(name: str, error: SyntaxError) -> InvalidRequest:
    if "LoadDocumentCallback" in str(error.msg):
        hint = "put the context itself into the file: what it names is not fetched"
        return InvalidRequest(f"{name}: its @context is elsewhere", hint=hint)
    place = f"{name}:{error.lineno}" if error.lineno else name
    return InvalidRequest(f"{place}: {fault(error)}", hint="correct that and try again")


def _strict(name: str, data: bytes) -> bytes:
    """Return a JSON-LD document whose names without an IRI are read as _NAMELESS instead of being left out."""
    try:
        document = parse_json(data)
    except InvalidRequest as error:
        hint = "correct that and import the file again"
        raise InvalidRequest(f"{name}: {error.detail}", hint=hint, code=error.code) from error
    nodes = document if isinstance(document, list) else [document]
    if not all(isinstance(node, dict) for node in nodes):
        hint = 'write {"@context": ..., "@graph": [...]}'
        raise InvalidRequest(f"{name}: JSON-LD is an object, or a list of objects", hint=hint)
    _refuse_broken_names(name, nodes)
    strict = [_in_view(node) for node in nodes]
    return json.dumps(strict if isinstance(document, list) else strict[0]).encode()


def _refuse_broken_names(name: str, nodes: list[Any]) -> None:
    """Raise InvalidRequest for an @id or @type that is no IRI, which JSON-LD would leave out with what it says."""
    for node in nodes:
        if isinstance(node, list):
            _refuse_broken_names(name, node)
        elif isinstance(node, dict):
            said = [one for key in ("@id", "@type") for one in _listed(node.get(key, []))]
            broken = next((one for one in said if not isinstance(one, str) or _NO_IRI.search(one)), None)
            if broken is not None:
                hint = "write spaces and the like as %20"
                raise InvalidRequest(f"{name}: {str(broken)!r} is no IRI", hint=hint)
            _refuse_broken_names(name, [value for key, value in node.items() if key != "@context"])


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _in_view(node: Mapping[str, Any]) -> dict[str, Any]:
    given = node.get("@context", [])
    rest = {key: value for key, value in node.items() if key != "@context"}
    return {"@context": [{"@vocab": _NAMELESS}, *_listed(given)], **rest}


def _refuse_unnamed(name: str, terms: tuple[Term, ...]) -> None:
    """Raise InvalidRequest for a term that JSON-LD would have left out, or whose prefix its context does not know."""
    for each in terms:
        word = each[1:-1]
        if each.startswith(f"<{_NAMELESS}"):
            word = word.removeprefix(_NAMELESS)
            raise InvalidRequest(f"{name}: {word!r} has no IRI", hint=f"name it in @context, or write jido:{word}")
        if each.startswith(f"<{_RELATIVE}"):
            word = word.removeprefix(_RELATIVE)
            raise InvalidRequest(f"{name}: {word!r} is no whole IRI", hint="write it in full, or give an @base")
        if each.startswith(_PREFIXED):
            hint = "put what that prefix stands for into @context"
            raise InvalidRequest(f"{name}: {word!r} has a prefix that @context does not know", hint=hint)
