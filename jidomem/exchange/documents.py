"""The RDF documents of a project: Turtle, JSON-LD and N-Quads as triples by graph, and back. Pure.

`parse` reads the triples of a document, `read` turns them into intents and declarations, and
`turtle`, `jsonld` and `nquads` serialise a project. Content that is not imported is reported.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from enum import Enum
from graphlib import CycleError, TopologicalSorter
from hashlib import blake2b
from heapq import heappop, heappush
from itertools import groupby
from sys import intern
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson
import pyoxigraph as ox

from jidomem.base.containers import grouped
from jidomem.base.json_values import check_turtle, parse_json
from jidomem.base.words import slug
from jidomem.errors import InvalidRequest
from jidomem.journal.commit import COMMIT, Commit, is_redaction_record
from jidomem.rdf import vocab
from jidomem.rdf.terms import (
    Term,
    Triple,
    iri,
    is_iri,
    literal,
    moment_in,
    ntriples_line,
    parse_literal,
    plain_value,
    short_parse_error,
)
from jidomem.rdf.vocab import TYPE, jido
from jidomem.records.intent import CONFLICT_KEY, FIELD_PROPERTIES, JUDGED, ONLY_FOR
from jidomem.schema.ontology import Schema
from jidomem.write.conversation import ENTRY, ID, TEXT
from jidomem.write.normalize import ITEM_LISTS
from jidomem.write.permissions import policy_change
from jidomem.write.snapshot import ITEM_MARK
from jidomem.write.submission import (
    LOST_NODES,
    NO_RECORDS,
    REDACTED_AT,
    REDACTED_ITEM,
    REDACTED_PROPERTY,
    REDACTION,
    REDACTION_PROPERTIES,
    STRUCTURAL,
    Records,
)
from jidomem.write.triples import restate

_GENID = vocab.BASE + ".well-known/genid/"
#: JSON-LD silently drops names without an IRI and relative references. These prefixes mark them, to refuse them.
_NAMELESS, _RELATIVE = "x-jidomem-nameless:", "x-jidomem-relative://here/"
_NO_IRI = re.compile(r'[\x00-\x20<>"{}|\\^`]')
#: An IRI with one of our prefixes as its scheme is a prefixed name that was not expanded.
_PREFIXED = tuple(f"<{prefix}:" for prefix in ("jido", "owl", "rdf", "rdfs", "xsd"))


class DocumentFormat(Enum):
    """The format of a document, by the name of its format in the engine."""

    TURTLE = "Turtle"
    JSON_LD = "JSON-LD"
    N_QUADS = "N-Quads"


def parse(name: str, data: bytes, form: DocumentFormat = DocumentFormat.TURTLE) -> dict[Term, list[Triple]]:
    """Return the triples of a document by the bare IRI of their graph, "" for the default graph. Blank nodes become
    IRIs.

    Raises InvalidRequest, with file and line if known, for a syntax error, and for JSON-LD that refers to an external
    context (nothing is fetched), a property unknown to its context or a relative IRI.
    """
    print_ = blake2b(data, digest_size=8).hexdigest()
    blanks: dict[str, Term] = {}

    def term(node: Any) -> Term:
        if isinstance(node, ox.BlankNode):
            return blanks.setdefault(node.value, iri(f"{_GENID}{print_}-{len(blanks) + 1}"))
        return str(node)

    plain = data.removeprefix(BOM_UTF8)
    text, base = (_strict(name, data), _RELATIVE) if form is DocumentFormat.JSON_LD else (plain, None)
    graphs: dict[Term, list[Triple]] = defaultdict(list)
    try:
        if form is not DocumentFormat.JSON_LD:
            check_turtle(data)
        for quad in ox.parse(text, format=getattr(ox.RdfFormat, form.name), base_iri=base, rename_blank_nodes=False):
            graph = "" if isinstance(quad.graph_name, ox.DefaultGraph) else plain_value(term(quad.graph_name))
            row = term(quad.subject), term(quad.predicate), term(quad.object)
            if form is DocumentFormat.JSON_LD:
                _refuse_unnamed(name, (f"<{graph}>", *row))
            graphs[graph].append(row)
    except SyntaxError as error:
        raise _unreadable(name, error) from error
    return graphs


def _unreadable(name: str, error: SyntaxError) -> InvalidRequest:
    if "LoadDocumentCallback" in str(error.msg):
        hint = "put the context itself into the file: other documents are not fetched"
        return InvalidRequest(f"{name}: its @context is another document", hint=hint)
    place = f"{name}:{error.lineno}" if error.lineno else name
    return InvalidRequest(f"{place}: {short_parse_error(error)}", hint="correct that and try again")


def _strict(name: str, data: bytes) -> bytes:
    """Return a JSON-LD document whose names without an IRI get an IRI that begins with _NAMELESS instead of being
    dropped.
    """
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
    """Raise InvalidRequest for an @id or @type that is not an IRI; JSON-LD would silently drop its statements."""
    for node in nodes:
        if isinstance(node, list):
            _refuse_broken_names(name, node)
        elif isinstance(node, dict):
            names = [one for key in ("@id", "@type") for one in _listed(node.get(key, []))]
            broken = next((one for one in names if not isinstance(one, str) or _NO_IRI.search(one)), None)
            if broken is not None:
                hint = "write spaces and the like as %20"
                raise InvalidRequest(f"{name}: {str(broken)!r} is not an IRI", hint=hint)
            _refuse_broken_names(name, [value for key, value in node.items() if key != "@context"])


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _in_view(node: Mapping[str, Any]) -> dict[str, Any]:
    given = node.get("@context", [])
    rest = {key: value for key, value in node.items() if key != "@context"}
    return {"@context": [{"@vocab": _NAMELESS}, *_listed(given)], **rest}


def _refuse_unnamed(name: str, terms: tuple[Term, ...]) -> None:
    """Raise InvalidRequest for a term that JSON-LD would have dropped, or whose prefix is not in its context."""
    for each in terms:
        word = each[1:-1]
        if each.startswith(f"<{_NAMELESS}"):
            word = word.removeprefix(_NAMELESS)
            raise InvalidRequest(f"{name}: {word!r} has no IRI", hint=f"name it in @context, or write jido:{word}")
        if each.startswith(f"<{_RELATIVE}"):
            word = word.removeprefix(_RELATIVE)
            raise InvalidRequest(f"{name}: {word!r} is a relative IRI", hint="write it in full, or give an @base")
        if each.startswith(_PREFIXED):
            hint = "define the prefix in @context"
            raise InvalidRequest(f"{name}: {word!r} has a prefix that @context does not know", hint=hint)


OWL = "http://www.w3.org/2002/07/owl#"
_STRING = vocab.XSD + "string"
PREFIXES = {"jido": vocab.JIDO, "owl": OWL, "rdf": vocab.RDF, "rdfs": vocab.RDFS, "xsd": vocab.XSD}
#: The bookkeeping properties of the journal: how and when memories were recorded. Exports omit them, but the keys of
#: judgements.
BOOKKEEPING = frozenset(
    map(jido, ("recordedAt", "recordedIn", "conflictKey", "idempotencyKey", "requestDigest", "receipt"))
)


#: The triples that are serialised together.
_AT_ONCE = 10_000


#: The statements of commits that `index.follower.merged_records` replaces, and their replacements.
Merged = tuple[Collection[Triple], Collection[Triple]]
_UNMERGED: Merged = ((), ())


def turtle(project: str, commits: Iterable[Commit], ontology_version: str, merged: Merged = _UNMERGED) -> bytes:
    """Return `<project>_memory.ttl`: an owl:Ontology that imports the memory ontology, and all content of the memory.

    The bytes depend on the content alone, not on the grouping or order of the commits.
    """
    rows = _document(project, commits, ontology_version, merged)
    texts = ("\n".join(map(ntriples_line, rows[at : at + _AT_ONCE])) for at in range(0, len(rows), _AT_ONCE))
    quads = (quad for text in texts for quad in ox.parse(text, format=ox.RdfFormat.N_TRIPLES))
    triples = (ox.Triple(quad.subject, quad.predicate, quad.object) for quad in quads)
    return ox.serialize(triples, format=ox.RdfFormat.TURTLE, prefixes=PREFIXES) or b""


def jsonld(project: str, commits: Iterable[Commit], ontology_version: str, merged: Merged = _UNMERGED) -> bytes:
    """Return the same document as JSON-LD 1.1 with its context: one object for each subject, sorted."""
    rows = _document(project, commits, ontology_version, merged)
    schemes = {term[1:].partition(":")[0] for row in rows for term in row if is_iri(term)}
    context = {prefix: whole for prefix, whole in PREFIXES.items() if prefix not in schemes}  # jido:x may be an IRI
    graph = [_node(subject, statements, context) for subject, statements in groupby(rows, key=lambda row: row[0])]
    return orjson.dumps({"@context": context, "@graph": graph}, option=orjson.OPT_INDENT_2) + b"\n"


def nquads(graphs: Mapping[str, Iterable[Commit]], merged: Mapping[str, Merged] = MappingProxyType({})) -> bytes:
    """Return the content of the commits of *graphs* (bare IRI -> commits), one statement a line with its graph.

    What a redaction left of an entry, which goes as a whole, is no content.
    """
    lines = (
        f"{ntriples_line(row)[:-2]} {iri(graph)} .\n"
        for graph in sorted(graphs)
        for row in _without_rest_of_entries(_asserted_triples(graphs[graph], merged.get(graph, _UNMERGED)))
    )
    return "".join(lines).encode()


def _without_rest_of_entries(rows: list[Triple]) -> Iterator[Triple]:
    entries = {subject for subject, predicate, value in rows if predicate == TYPE and value == ENTRY}
    with_id, with_text = ({row[0] for row in rows if row[1] == name} for name in (ID, TEXT))
    rests = entries - (with_id & with_text)
    return (row for row in rows if row[0] not in rests)


def _document(project: str, commits: Iterable[Commit], ontology_version: str, merged: Merged) -> list[Triple]:
    own = iri(f"{vocab.BASE}projects/{project}/memory")
    header = [
        (own, TYPE, iri(OWL + "Ontology")),
        (own, vocab.LABEL, literal(f"The memory of {project}")),
        (own, iri(OWL + "imports"), jido("JidoMemoryOntology")),
        (own, iri(OWL + "versionInfo"), literal(ontology_version)),
    ]
    return [*header, *_asserted_triples(commits, merged)]


def _asserted_triples(commits: Iterable[Commit], merged: Merged) -> list[Triple]:
    """Return the content of *commits*, sorted; equal terms are one object, so that it takes a third of the memory."""
    records: list[Commit] = []
    rows = (triple for commit in _noting(records, commits) for triple in commit.triples if _is_content(triple))
    content = {(intern(subject), intern(name), intern(value)) for subject, name, value in rows}
    content.difference_update(merged[0])
    content.update(row for row in merged[1] if _is_content(row) and row[1] != jido("conflictsWith"))  # it is superseded
    named = {item for record in records for _, predicate, item in record.triples if predicate == REDACTED_ITEM}
    memories = {item for item, predicate, _ in content if predicate == ITEM_MARK and item in named} if named else ()
    content.update(row for record in records for row in _redaction(record, memories))
    return sorted(content)


def _noting(records: list[Commit], commits: Iterable[Commit]) -> Iterator[Commit]:
    """Yield *commits*, and add the records of redactions among them to *records*."""
    for commit in commits:
        if is_redaction_record(commit.data):
            records.append(commit)
        yield commit


def _redaction(record: Commit, memories: Collection[Term]) -> Iterator[Triple]:
    """Yield what *record* says of those of *memories* that lost statements, with an IRI that no commit has."""
    node, rows = iri(REDACTION + record.id), [row for row in record.triples if row[1] in REDACTION_PROPERTIES]
    statements = [row[1:] for row in rows if row[1] != REDACTED_ITEM or row[2] in memories]
    if any(predicate == REDACTED_ITEM for predicate, _ in statements):
        yield node, TYPE, jido("Redaction")
        yield node, REDACTED_AT, next(value for _, name, value in record.triples if name == jido("recordedAt"))
        yield from ((node, *each) for each in statements)


def _is_content(triple: Triple) -> bool:
    subject, predicate, _ = triple
    if predicate in BOOKKEEPING and not _is_judgement(triple):
        return False
    return not subject.startswith((f"<{COMMIT}", f"<{vocab.BASE}submissions/"))


def _is_judgement(triple: Triple) -> bool:
    """Return whether *triple* has the key of a judgement, which no other statement of the memory implies."""
    return triple[1] == CONFLICT_KEY and triple[2].startswith(f'"{JUDGED}')


def _node(subject: Term, statements: Iterable[Triple], context: Mapping[str, str]) -> dict[str, Any]:
    node: dict[str, Any] = {"@id": plain_value(subject)}
    for predicate, rows in groupby(statements, key=lambda row: row[1]):
        if predicate == TYPE:
            key, values = "@type", [_compact(plain_value(value), context) for _, _, value in rows]
        else:
            key, values = _compact(plain_value(predicate), context), [_value(value, context) for _, _, value in rows]
        node[key] = values[0] if len(values) == 1 else values
    return node


def _value(value: Term, context: Mapping[str, str]) -> Any:
    if is_iri(value):
        return {"@id": plain_value(value)}
    literal = parse_literal(value)
    if literal.language:
        return {"@value": literal.text, "@language": literal.language}
    if literal.datatype == _STRING:
        return literal.text
    return {"@value": literal.text, "@type": _compact(literal.datatype, context)}


def _compact(name: str, context: Mapping[str, str]) -> str:
    """Return an IRI with its prefix, if it has one of *context*."""
    for prefix, whole in context.items():
        rest = name.removeprefix(whole)
        if rest not in ("", name) and not rest.startswith("//"):
            return f"{prefix}:{rest}"
    return name


_SKIPPED = {iri(OWL + "Ontology"), jido("Commit"), jido("Submission"), jido("PolicyChange"), jido("Redaction")}
#: The property that links a memory to the one that ended it -> the field of the later intent that creates the link.
LINKS = {jido("supersededBy"): "supersedes", jido("invalidatedBy"): "invalidates"}
_REASON, _REDACTION_IRI = jido("orderReason"), re.compile(f"<{REDACTION}[0-9a-f]{{64}}>")
#: The required fields that a redaction may have removed.
_REQUIRED = {jido(FIELD_PROPERTIES[name].name): FIELD_PROPERTIES[name].field
             for name in ("summary", "rationale", "conventionName", "assertedBy", "assertedIn")}  # fmt: skip
_NO_REASON = "The document it was imported from gives no reason."
_INTERNAL_PROPERTIES = BOOKKEEPING | LINKS.keys()
#: The records of the writer on a memory that an import restores, by the form of their values. What a curator confirmed
#: and what is not trusted is judged anew.
_RECORDS_OF_IRIS = frozenset(map(jido, ("settledBy", "conflictsWith")))
_RECORDS_OF_TEXTS = frozenset(map(jido, ("proposedBecause", "aboutBlob", "judgement")))


class MemoryStatement(NamedTuple):
    """One memory of a file: its intent, and the first line of its description if known.

    `assumed` are the fields missing in the file. A memory that was `proposed` in the file is imported as a proposal.
    `records` are those of the writer on a memory that it recorded elsewhere; None for a memory written by hand. The
    required fields that a redaction removed, `lost`, have placeholders in the intent.
    """

    intent: Mapping[str, Any]
    line: int | None
    assumed: frozenset[str] = frozenset()
    proposed: bool = False
    records: Records | None = None
    lost: frozenset[str] = frozenset()


class TurtleFile(NamedTuple):
    """The content of a file: memories, each after those it replaces, declarations, and notes.

    `lines` are the numbers of the lines that begin with a name, as `line_of` takes them.
    """

    statements: tuple[MemoryStatement, ...]
    declarations: tuple[Triple, ...]
    notes: tuple[str, ...]
    lines: Mapping[str, int]


def read(rows: Sequence[Triple], schema: Schema, *, defaults: Mapping[str, Any], text: str = "") -> TurtleFile:
    """Return the memories and declarations in the triples of a document; *text* is the document, from which lines are
    taken.

    Foreign terms are mapped by the alignment of the ontology. *defaults* has values for the fields for which a foreign
    vocabulary has no term (agent, session, project).
    """
    about, foreign = _described(rows, schema.alignment)
    kinds = {node: {value for _, p, value in rows if p == TYPE} for node, rows in about.items()}
    items = {node for node, classes in kinds.items() if any(schema.is_a(cls, jido("MemoryItem")) for cls in classes)}
    labels = _inline_texts(about, kinds)
    intents: dict[str, dict[str, Any]] = {}
    assumed: dict[str, frozenset[str]] = {}
    for node in items - labels.keys():
        intent = restate(node, _with_one_type(about[node], schema), labels)
        intents[plain_value(node)] = {**defaults, **_shortened(intent)} if node in foreign else intent
        assumed[plain_value(node)] = frozenset(defaults.keys() - intent.keys() if node in foreign else ())
    _link(intents, (triple for rows in about.values() for triple in rows))
    redactions = _redactions(about, kinds)
    records = {
        plain_value(node): Records(
            (*filter(_is_record, about[node]), *redacted),
            frozenset(_lost(redacted, about)),
            frozenset(row[2] for row in about[node] if row[1] in LINKS),
        )
        for node in items
        if any(predicate == ITEM_MARK for _, predicate, _ in about[node])
        for redacted in [redactions.get(node, ())]
    }
    lost = {node: _lost_values(intents[node], records[node].lost, about) for node in intents.keys() & records.keys()}
    for node, placeholders in lost.items():
        intents[node] |= placeholders
    _give_reasons(intents, assumed, records)
    used = {row[0] for some in records.values() for row in some.rows}
    skipped = sorted(
        (node for node, classes in kinds.items() if classes & _SKIPPED and node not in used), key=plain_value
    )
    rest = [node for node in about if node not in items and node not in labels and not kinds[node] & _SKIPPED]
    proposed = {
        plain_value(node)
        for node, intent in about.items()
        if (node, jido("hasAssertionStatus"), jido("Proposed")) in intent
    }
    lines = _lines(text)
    return TurtleFile(
        tuple(
            MemoryStatement(
                intents[node],
                line_of(node, lines),
                assumed[node],
                node in proposed,
                records.get(node),
                frozenset(lost.get(node, ())),
            )
            for node in _in_order(intents, records)
        ),
        tuple(t for node in rest for t in about[node] if t[1] not in _INTERNAL_PROPERTIES),
        tuple(f"{plain_value(node)}: left out, {_why_skipped(node, kinds[node], about[node])}" for node in skipped),
        lines,
    )


def _why_skipped(node: Term, classes: set[Term], rows: Iterable[Triple]) -> str:
    """Return why a node of a file is not imported, for a change of the policy with the command that makes it again."""
    if jido("PolicyChange") not in classes:
        return "it describes a file or a journal, not a memory"
    values = {predicate: value for _, predicate, value in rows}
    change = policy_change(node, lambda _, predicate: values.get(predicate))
    return f"an import does not change the policy; if it is to hold here: {change.command}"


def mapped(triples: Sequence[Triple], schema: Schema) -> list[Triple]:
    """Return *triples* with the properties and classes of other vocabularies replaced by their equivalents of ours."""
    to = schema.alignment
    return [(s, to.get(p, p), to.get(o, o) if to.get(p, p) == TYPE else o) for s, p, o in triples]


def _described(rows: Iterable[Triple], alignment: Mapping[Term, Term]) -> tuple[dict[Term, list[Triple]], set[Term]]:
    """Return the triples by subject, with foreign terms mapped, and the subjects that used a foreign term."""
    about: dict[Term, list[Triple]] = defaultdict(list)
    foreign = set()
    for subject, predicate, value in rows:
        ours = alignment.get(predicate, predicate)
        cls = alignment.get(value, value) if predicate == TYPE else value
        if (ours, cls) != (predicate, value):
            foreign.add(subject)
        about[subject].append(_sourced((subject, ours, cls)))
    return about, foreign


def _sourced(triple: Triple) -> Triple:
    """Return *triple*; a source given as the text `session:NAME` becomes a link to that session (decision C7)."""
    subject, predicate, value = triple
    if predicate == jido("hasSourceType") and not is_iri(value):
        kind, colon, name = parse_literal(value).text.partition(":")
        if kind == "session" and colon:
            return subject, jido("assertedIn"), iri(f"{vocab.BASE}sessions/{slug(name)}")
    return triple


def _inline_texts(about: Mapping[Term, list[Triple]], kinds: Mapping[Term, set[Term]]) -> dict[Term, str]:
    """Return, by node, the text of evidence and alternatives that an intent gives as text."""
    texts = {}
    for node, rows in about.items():
        values = {predicate: value for _, predicate, value in rows}
        if "/alternatives/" in node and jido("Alternative") in kinds[node]:  # one without its text has its IRI
            texts[node] = plain_value(values.get(jido("summary"), node))
        elif node.startswith(f"<{vocab.BASE}evidence/") and vocab.LABEL in values:
            texts[node] = parse_literal(values[vocab.LABEL]).text
    return texts


def _with_one_type(rows: list[Triple], schema: Schema) -> list[Triple]:
    """Return *rows* with the most specific of our classes, stated or above a stated one, and all not above it."""
    stated = {value for _, predicate, value in rows if predicate == TYPE}
    types = {cls for each in stated for cls in schema.ancestors(each) | {each} if vocab.type_of(cls)}
    types = {cls for cls in types if not any(cls != other and schema.is_a(other, cls) for other in types)}
    classes = types | {cls for cls in stated if not any(schema.is_a(each, cls) for each in types)}
    (subject, _, _) = rows[0]
    return [*(row for row in rows if row[1] != TYPE), *((subject, TYPE, cls) for cls in sorted(classes))]


def _shortened(intent: dict[str, Any]) -> dict[str, Any]:
    """Return *intent*; a summary of several lines becomes the explanation, and its first line the summary."""
    summary = intent.get("summary", "")
    if "\n" in summary.strip():
        intent = {**intent, "summary": summary.strip().splitlines()[0], "detailed_explanation": summary}
    return intent


def _link(intents: dict[str, dict[str, Any]], rows: Iterable[Triple]) -> None:
    """Add to each intent the memories that it superseded or invalidated according to the file."""
    for subject, predicate, value in rows:
        if predicate in LINKS and (after := intents.get(plain_value(value))) is not None:
            named = after.setdefault(LINKS[predicate], [])
            if plain_value(subject) not in named:
                named.append(plain_value(subject))


def _is_record(triple: Triple) -> bool:
    _, predicate, value = triple
    return predicate in (_RECORDS_OF_IRIS if is_iri(value) else _RECORDS_OF_TEXTS) or _is_judgement(triple)


def _redactions(about: Mapping[Term, Sequence[Triple]], kinds: Mapping[Term, Set[Term]]) -> dict[Term, list[Triple]]:
    """Return the records of redactions in a file by the memory that they name, or of which they name an alternative."""
    rows: dict[Term, list[Triple]] = {}
    for record in about:
        if jido("Redaction") not in kinds[record] or not _REDACTION_IRI.fullmatch(record):
            continue
        says = [
            row
            for row in about[record]
            if row[1] in REDACTION_PROPERTIES and is_iri(row[2]) == (row[1] not in (_REASON, REDACTED_AT))
            if row[1] != REDACTED_AT or (row[2].endswith("#dateTime>") and moment_in(row[2]) is not None)
        ]
        common = [(record, TYPE, jido("Redaction")), *(row for row in says if row[1] != REDACTED_ITEM)]
        for row in says:
            if row[1] == REDACTED_ITEM and row[2] in about:
                of_item = rows.setdefault(re.sub("/alternatives/[0-9]+>$", ">", row[2]), [])
                of_item += [each for each in (row, *common) if each not in of_item]
    return rows


def _lost(redacted: Sequence[Triple], about: Mapping[Term, Sequence[Triple]]) -> Iterator[tuple[Term, Term]]:
    """Yield the subjects and properties that lost a value by the records *redacted*, and have none."""
    redactions = ((record, value) for record, name, value in redacted if name == REDACTED_PROPERTY)
    properties = grouped((record, name) for record, name in redactions if name not in STRUCTURAL)
    for record, name, item in redacted:
        if name == REDACTED_ITEM:
            yield from ((item, lost) for lost in {*properties.get(record, ())} - {row[1] for row in about[item]})


def _lost_values(
    intent: Mapping[str, Any], lost: Collection[tuple[Term, Term]], about: Mapping[Term, Sequence[Triple]]
) -> dict[str, Any]:
    """Return values for the required fields that *intent* lost: it is judged with them, and written without.

    Its alternatives, which are written with its author and session, may have them still.
    """
    item, kind = iri(intent["iri"]), (intent.get("type"),)
    rest = {name: plain_value(value) for _, link, node in about[item] if link == jido("hasAlternative")
            for _, name, value in about.get(node, ())}  # fmt: skip
    fields = {name: field for name, field in _REQUIRED.items() if (item, name) in lost}
    return {
        field: rest.get(name) or LOST_NODES[field] if field in LOST_NODES else intent["iri"]
        for name, field in fields.items()
        if kind[0] in ONLY_FOR.get(field, kind)
    }


def _give_reasons(
    intents: Mapping[str, dict[str, Any]], assumed: dict[str, frozenset[str]], recorded: Collection[str]
) -> None:
    """Add _NO_REASON to each memory that replaced another agent's and gives no reason, unless it was *recorded* so."""
    for node in intents.keys() - recorded:
        intent = intents[node]
        ended = (intents[old] for name in LINKS.values() for old in intent.get(name, ()) if old in intents)
        if any(old.get("asserted_by") != intent.get("asserted_by") for old in ended) and not intent.get("reason"):
            intent["reason"] = _NO_REASON
            assumed[node] |= {"reason"}


def _in_order(intents: Mapping[str, Mapping[str, Any]], records: Mapping[str, Records]) -> list[str]:
    """Return the memories by time, each after those that it and the *records* on it name.

    Those of a cycle are last, for the writer to refuse.
    """
    named = {
        node: {*_named(intent), *(plain_value(row[2]) for row in records.get(node, NO_RECORDS).rows)}
        for node, intent in intents.items()
    }
    before = {node: {name for name in names if name in intents} - {node} for node, names in named.items()}
    sorter = TopologicalSorter(before)
    with suppress(CycleError):
        sorter.prepare()
    ready: list[tuple[str, str]] = []
    ordered: dict[str, None] = {}
    while sorter.is_active():
        for node in sorter.get_ready():
            heappush(ready, (str(intents[node].get("timestamp", "")), node))
        _, node = heappop(ready)
        ordered[node] = None
        sorter.done(node)
    return [*ordered, *sorted(intents.keys() - ordered.keys())]


def _named(intent: Mapping[str, Any]) -> Iterator[str]:
    """Yield what *intent* names, memories or not."""
    for field in (*ITEM_LISTS, "about", "evidence"):
        yield from intent.get(field, ())
    for *_, value in intent.get("extra_triples", ()):
        yield value.get("@id", "")


def _lines(text: str) -> dict[str, int]:
    """Return the number of the first line that begins with each IRI or (as ":name") each local name after a prefix."""
    line_numbers: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        for word in line.split(None, 1)[:1]:
            line_numbers.setdefault(word[1:-1] if word[0] == "<" else ":" + word.partition(":")[2], number)
    return line_numbers


def line_of(node: str, lines: Mapping[str, int]) -> int | None:
    """Return the first line that begins with the IRI or the local name of *node*; None if none does."""
    numbers = [lines[name] for name in (node, ":" + vocab.local_name(node)) if name in lines]
    return min(numbers, default=None)
