"""A commit is a set of triples in one Turtle document whose id is its digest (docs/journal-format.md).

The id is the digest of the leaves of the commit: one salted digest for each triple. The name of its file begins with
its time. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from io import BytesIO
from itertools import repeat, zip_longest
from typing import TYPE_CHECKING, Protocol

import pyoxigraph

from jidomem.base.clock import format_timestamp
from jidomem.base.regex import lazy
from jidomem.errors import Failed, JournalDamaged, TooLarge
from jidomem.journal.lines import CANONICAL_IRI, CANONICAL_TEXT, LOCAL_NAME, PREFIXES, UnusualLines, expand
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, Triple, date_time, integer, iri, literal, parse_literal
from jidomem.records.intent import SHORT, CommitRef, Version

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer


def leaves_of(lines: Iterable[bytes], nonce: bytes) -> list[bytes]:
    """Return the leaf of each digest line."""
    leaves, keyed = [], blake2b(digest_size=32, key=nonce)
    for line in lines:
        salt = keyed.copy()
        salt.update(line)
        leaves.append(blake2b(line, digest_size=32, key=salt.digest()).digest())
    return leaves


def identity_of(parents: Sequence[str], leaves: Sequence[bytes]) -> str:
    """Return the id over sorted parents and leaves."""
    digest = blake2b(b"jidomem commit 1\n", digest_size=32)
    digest.update(len(parents).to_bytes(8, "big") + b"".join(map(bytes.fromhex, sorted(parents))))
    digest.update(len(leaves).to_bytes(8, "big") + b"".join(sorted(leaves)))
    return digest.hexdigest()


FORMAT = 1
COMMIT = "urn:jido:commit:"
#: The most bytes and triples of a commit that is built, and of one that is read: a redacted form has a salt for each
#: triple. A journal may come from anybody, so nothing larger is even read.
BYTES_BUILT, TRIPLES_BUILT = 24 << 20, 200_000
BYTES, TRIPLES = 48 << 20, 300_000
#: The most bytes of the triples as N-Triples, which may be thousands of times larger than the document.
_EXPANDED = 80 << 20
#: A document of fewer bytes cannot exceed these limits.
_SMALL = 1 << 16
_IN_PARTS = "split it: several intents, or several files"

_NAMESPACES = tuple(f"<{namespace}" for namespace in PREFIXES.values())
#: The message for a document whose content does not fit its id.
EDITED = "hash mismatch: edited after it was written"
_TITLE = "# jidomem journal "
_HEADER = "\n".join([f"{_TITLE}{FORMAT}", *(f"@prefix {p}: <{ns}> ." for p, ns in PREFIXES.items())])
_NONCE_LINE = r"# nonce ([0-9a-f]{64})"
_NONCE = lazy(_NONCE_LINE)
_WHOLE_TOP = lazy(re.escape(f"{_HEADER}\n") + _NONCE_LINE)
_SALT_OR_LEAF = lazy(r"# (salt|leaf) ([0-9a-f]{64})")
_OWN = lazy(f"<{COMMIT}([0-9a-f]{{64}})>")
_QUOTED = lazy(r'"(?:[^"\\]|\\.)*"|<[^>]*>')
_BLANK = lazy(r"_:|[\[(]")
#: The tokens of a document other than plain words; group 1 matches those that this format writes in texts only.
_PIECE = re.compile(rb'("""|[\[(\'\\]|<<)|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+(?:"|(\Z|\n))|<[^<>"\n]*+>?|#[^\n]*+')
#: The most brackets that are parsed without a check of their places.
_BRACKETS = 100
_MOMENT = lazy(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2}\.[0-9]{6}Z")
_POSITION = lazy(rf'"([1-9][0-9]{{0,17}})"\^\^<{vocab.XSD}integer>')

_COMMITTER = vocab.jido("committer")
_FORMAT = vocab.jido("journalFormat")
_ONTOLOGY = vocab.jido("ontologyVersion")
_PARENT = vocab.jido("parent")
_POSITION_OF = vocab.jido("position")
_RECORDED = vocab.jido("recordedAt")
_STREAM = vocab.jido("inStream")
_SINGLE = (_COMMITTER, _FORMAT, _ONTOLOGY, _POSITION_OF, _RECORDED, _STREAM)
DESCRIPTION = frozenset((*_SINGLE, _PARENT))
_FORMAT_NUMBER = integer(FORMAT)
_CLASSES = (vocab.jido("Commit"), iri(vocab.PROV + "Activity"))
_CLASS_TRIPLES = [(vocab.THIS, vocab.TYPE, cls) for cls in _CLASSES]
#: A statement on a subject, in sort order: whether it is no class, the property, the value.
_Row = tuple[bool, Term, Term]
_Block = tuple[Term, list[_Row]]


#: The bytes of redaction records only: no text can contain them, as line ends in texts are escaped.
_REDACTS, _SETS_ASIDE = b"\n    jido:redacts <", b'\n    jido:setsAside "'
_ORDERED_BY = b"\n    jido:orderedBy <"


def is_redaction_record(document: bytes) -> bool:
    """Return whether a document, or one in it, records a redaction or the quarantine of a file."""
    return _REDACTS in document or _SETS_ASIDE in document


def is_ordered(document: bytes) -> bool:
    """Return whether a document is or has such a record, or one of a redaction of the working state alone."""
    return is_redaction_record(document) or _ORDERED_BY in document


def identity_in(document: bytes) -> str:
    """Return the id that a document states, unverified: that of its first subject."""
    return document.partition(b"\n\n<urn:jido:commit:")[2][:64].decode("ascii", "replace")


class FormatError(ValueError):
    """A document is no commit of this format; `line` counts from 1, None without a line at fault."""

    def __init__(self, message: str, line: int | None = None) -> None:
        self.line = line
        super().__init__(message)


class UnknownFormat(FormatError):
    """A document is no journal file at all, or one of a later format."""


class CommitTooLarge(FormatError):
    """A document has more than a commit may have."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit, built or read: `data` is the document, `graph` and `committer` are bare IRIs."""

    id: str
    graph: str
    parents: tuple[str, ...]
    position: int
    recorded_at: str
    committer: str
    ontology_version: str
    data: bytes
    redacted: bool
    known_triples: frozenset[Triple] | None = field(default=None, repr=False, compare=False)
    head: CommitRef = field(init=False, repr=False, compare=False)  # the commit as a head

    def __post_init__(self) -> None:
        object.__setattr__(self, "head", CommitRef(self.recorded_at, self.id, self.position))

    @property
    def iri(self) -> str:
        """Return the bare IRI of the commit."""
        return COMMIT + self.id

    @property
    def triples(self) -> frozenset[Triple]:
        """Return all triples, parsed on first use: a rebuild of the index needs none."""
        triples = self.known_triples
        if triples is None:
            _, triples = _turtle(self.data)
            object.__setattr__(self, "known_triples", triples)
        return triples

    def blocks(self, mark: bytes) -> Iterator[frozenset[Triple]]:
        """Yield the triples of each subject whose block contains *mark*."""
        top, *blocks = self.data.split(b"\n\n")
        return (_turtle(b"\n\n".join([top, block]) + b"\n")[1] for block in blocks if mark in block)

    @property
    def size(self) -> int:
        """Return the number of triples: each stands on a line of its own."""
        return self.data.count(b"\n    ")


class ChainLink(Protocol):
    """A value with the head of a commit and the ids of its parents."""

    @property
    def head(self) -> CommitRef:
        """Return the commit as a head."""

    @property
    def parents(self) -> tuple[str, ...]:
        """Return the ids of its parents."""


def advance(version: Version, commits: Iterable[ChainLink]) -> Version:
    """Return the version after *commits*, in any order, were added to *version*."""
    heads, named = {head.id: head for head in version.heads}, set[str]()
    for commit in commits:
        heads[commit.head.id] = commit.head
        named.update(commit.parents)
    for identity in named:
        heads.pop(identity, None)
    return Version.of(heads.values())


def build(
    *,
    graph: str,
    parents: Version,
    recorded_at: str,
    committer: str,
    ontology_version: str,
    body: Iterable[Triple],
    nonce: bytes,
) -> Commit:
    """Return the commit that adds *body* on top of *parents*; `vocab.THIS` in it stands for the commit's own IRI.

    *graph* and *committer* are bare IRIs. Raise FormatError unless the document, parsed strictly, has exactly the
    built triples: an illegal IRI, a blank node or a term that is not canonical is refused here. A document of terms
    that are certainly canonical is not parsed. Raise TooLarge for more than TRIPLES_BUILT triples or BYTES_BUILT bytes.
    """
    if len(nonce) != 32:
        raise FormatError(f"a nonce is 32 bytes, not {len(nonce)}")
    statements, parent_ids = set(body), sorted(parents.ids)
    _check_size(len(statements), TRIPLES_BUILT, "triples")
    own_rows = [triple for triple in statements if vocab.THIS in triple]
    for subject, predicate, _ in own_rows:
        if predicate == vocab.THIS or (subject == vocab.THIS and predicate in DESCRIPTION):
            raise FormatError(f"{predicate} of a commit is written by the journal, not given")
    name, position_term, moment = literal(ontology_version), integer(parents.position + 1), date_time(recorded_at)
    single = (iri(committer), _FORMAT_NUMBER, name, position_term, moment, iri(graph))
    own_rows += zip(repeat(vocab.THIS), _SINGLE, single)  # as many values as properties
    own_rows += _CLASS_TRIPLES
    for parent in parent_ids:
        own_rows.append((vocab.THIS, _PARENT, iri(COMMIT + parent)))
    statements.update(own_rows)
    try:
        identity = identity_of(parent_ids, leaves_of([f"{s} {p} {o} .".encode() for s, p, o in statements], nonce))
        own = iri(COMMIT + identity)
        statements.difference_update(own_rows)
        statements.update([(own if s == vocab.THIS else s, p, own if o == vocab.THIS else o) for s, p, o in own_rows])
        triples, blocks = frozenset(statements), _blocks(own, statements)
        data = _turtle_of([f"# nonce {nonce.hex()}"], blocks)
    except UnicodeEncodeError as error:
        raise FormatError(f"not text: {error.object!r} contains half of a surrogate pair") from error
    _check_size(len(data), BYTES_BUILT, "bytes")
    if len(data) > _CERTAIN_BYTES or not all(map(_is_canonical, blocks)):
        _check_round_trip(triples, blocks, data)
    return _described(identity, triples, data, redacted=False)


def _check_round_trip(triples: frozenset[Triple], blocks: Iterable[_Block], data: bytes) -> None:
    """Raise FormatError unless the document *data*, parsed strictly, has exactly the built *triples*."""
    try:
        read_back = _n_triples(data)
    except CommitTooLarge as error:
        raise TooLarge(str(error), hint=_IN_PARTS) from error
    if read_back != "".join([f"{s} {p} {o} .\n" for s, rows in blocks for _, p, o in rows]).encode():
        _, read = _turtle(data)
        raise FormatError(f"not canonical: {min(triples - read, default=min(read - triples, default=()))}")


#: The most bytes of a document, and of a subject, that cannot exceed the limit of its triples as N-Triples.
_CERTAIN_BYTES, _LONGEST_SUBJECT = 4_000_000, 200


def _is_canonical(block: _Block) -> bool:
    """Return whether a strict parser certainly reads the statements on a subject as they are written."""
    subject, rows = block
    if len(subject) > _LONGEST_SUBJECT or not CANONICAL_IRI.fullmatch(subject):
        return False
    for _, predicate, value in rows:
        if not _is_canonical_iri(predicate):
            return False
        if not (CANONICAL_IRI if value[:1] == "<" else CANONICAL_TEXT).fullmatch(value):
            return False
    return True


@lru_cache(maxsize=1024)  # of the properties, which are few
def _is_canonical_iri(term: Term) -> bool:
    return CANONICAL_IRI.fullmatch(term) is not None


def _check_size(size: int, limit: int, unit: str) -> None:
    """Raise TooLarge for a commit with more than *limit* of *unit*."""
    if size > limit:
        raise TooLarge(f"a commit of {size:,} {unit}; it has at most {limit:,}", hint=_IN_PARTS)


def parse(data: bytes) -> Commit:
    """Return the commit in the document *data*; raise FormatError unless every byte of it fits its id."""
    return verify_lines(data) or parse_strictly(data)


def verify_lines(data: bytes) -> Commit | None:
    """Return the commit that `parse_strictly` returns, by one pass over the lines of *data*; None when in doubt.

    In doubt are documents that are redacted, very large or to be refused, and terms that are seldom written.
    """
    try:
        top, *blocks = data.decode().split("\n\n")
    except UnicodeDecodeError:
        return None
    nonce = _WHOLE_TOP.fullmatch(top)
    if nonce is None or not blocks or blocks[-1][-1:] != "\n" or vocab.THIS.encode() in data:
        return None
    blocks[-1] = blocks[-1][:-1]
    try:
        own, description, others = expand(blocks, len(data))
        match = _OWN.fullmatch(own)
        if match is None:
            return None
        commit = _described(match[1], list(map(_triple, description)), data, redacted=False)
    except (UnusualLines, FormatError):
        return None
    text = "\n".join([*(vocab.THIS + line[len(own) :] for line in description), others])
    text = text.replace(f" {own} .\n", f" {vocab.THIS} .\n")
    leaves = leaves_of(text.encode().split(b"\n")[:-1], bytes.fromhex(nonce[1]))
    return commit if identity_of(commit.parents, leaves) == commit.id else None


def parse_strictly(data: bytes) -> Commit:
    """Return the commit in *data* as `parse` does, by a parser, and by writing all that it reads once more."""
    if len(data) > BYTES:
        raise CommitTooLarge(f"{len(data):,} bytes; a commit has at most {BYTES:,}")
    text = _text(data)
    secrets = salt_lines(text)
    own_iri, triples = _turtle(data)
    match, start = _OWN.fullmatch(own_iri), len(secrets) + _HEADER.count("\n") + 3
    if match is None:
        raise FormatError(f"the first block describes the commit, not {own_iri}", start)
    if vocab.THIS in text and any(vocab.THIS in triple for triple in triples):
        raise FormatError(f"{vocab.THIS} does not belong in a file", _first(text, vocab.THIS))
    rewritten = format_document(secrets, own_iri, triples)
    if rewritten != data:
        raise FormatError("not in the form of this format", _difference(rewritten.decode(), text))
    redacted = not secrets[0].startswith("# nonce")
    commit = _described(match[1], triples, data, redacted=redacted, line=start)
    lines = [
        f"{vocab.THIS if s == own_iri else s} {p} {vocab.THIS if o == own_iri else o} .".encode() for s, p, o in triples
    ]
    leaves = _surviving(secrets, lines) if redacted else leaves_of(lines, bytes.fromhex(secrets[0][8:]))
    if identity_of(commit.parents, leaves) != commit.id:
        raise FormatError(EDITED, start)
    return commit


def _text(data: bytes) -> str:
    """Return the document as text; raise FormatError unless its format number is known."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError("not UTF-8", data.count(b"\n", 0, error.start) + 1) from error
    title = text.partition("\n")[0]
    if not text:
        raise UnknownFormat("the file is empty", 1)
    if text.startswith("\ufeff"):
        raise FormatError("it begins with a byte order mark", 1)
    if not title.startswith(_TITLE):
        raise UnknownFormat(f"not a jidomem journal file: it does not begin with {_TITLE + str(FORMAT)!r}", 1)
    if "\r" in text:
        raise FormatError("line ends were rewritten: a carriage return", _first(text, "\r"))
    if title != f"{_TITLE}{FORMAT}":
        number = title.removeprefix(_TITLE)
        raise UnknownFormat(f"journal format {number!r} is not known here, only {FORMAT}: upgrade jidomem", 1)
    return text


def salt_lines(text: str) -> list[str]:
    """Return the lines between prefixes and blocks: a nonce, or the salts and leaves of a redacted commit.

    Raise FormatError for other lines.
    """
    head = text.partition("\n\n")[0]
    if not f"{head}\n".startswith(_HEADER + "\n"):
        raise FormatError("the prefix lines are not those of the format", _difference(_HEADER, head))
    lines = head.split("\n")[_HEADER.count("\n") + 1 :]
    nonces = [number for number, line in enumerate(lines) if _NONCE.fullmatch(line)]
    if nonces:
        if len(lines) > 1:
            raise FormatError("a nonce must be the only line", 8)
        return lines
    kinds = [match[1] if (match := _SALT_OR_LEAF.fullmatch(line)) else None for line in lines]
    if None in kinds or "leaf" not in kinds:
        number = kinds.index(None) if None in kinds else 0
        raise FormatError("no nonce, and not the salts and leaves of a redacted commit", 7 + number)
    return lines


class _Bounded(BytesIO):
    """A file in memory with a limit of bytes and lines."""

    lines = 0

    def write(self, data: Buffer) -> int:
        """Append *data*; raise CommitTooLarge beyond a limit."""
        piece = bytes(data)
        self.lines += piece.count(b"\n")
        if self.tell() + len(piece) > _EXPANDED or self.lines > TRIPLES:
            raise CommitTooLarge(f"more than {TRIPLES:,} triples, or {_EXPANDED:,} bytes of them")
        return super().write(piece)


def _n_triples(data: bytes) -> bytes:
    """Return *data* as canonical N-Triples, in the same order; raise FormatError unless it is strict Turtle."""
    _refuse_nesting(data)
    out = _Bounded() if len(data) > _SMALL else None
    try:
        quads = pyoxigraph.parse(data, format=pyoxigraph.RdfFormat.TURTLE)
        if out is None:
            return pyoxigraph.serialize(quads, format=pyoxigraph.RdfFormat.N_TRIPLES) or b""
        pyoxigraph.serialize(quads, out, format=pyoxigraph.RdfFormat.N_TRIPLES)
        return out.getvalue()
    except SyntaxError as error:
        raise FormatError(error.msg, error.lineno) from error


def _refuse_nesting(data: bytes) -> None:
    """Raise FormatError for brackets outside texts if there are many, which a parser takes too long for."""
    if data.count(b"[") + data.count(b"(") + data.count(b"<<") > _BRACKETS:
        for piece in _PIECE.finditer(data):
            if piece.lastindex:
                line = data.count(b"\n", 0, piece.start()) + 1
                raise FormatError("brackets, or a text that is not written as this format does", line)


def _turtle(data: bytes) -> tuple[Term, frozenset[Triple]]:
    """Return the subject of the first triple and all triples; raise FormatError unless *data* is strict Turtle."""
    lines = [line.decode() for line in _n_triples(data).split(b"\n")[:-1]]
    if not lines:
        raise FormatError("no description of the commit")
    triples = list(map(_triple, lines))
    for subject, _, value in triples:
        if subject[0] == "_" or value[0] == "_":
            raise FormatError("a blank node: every subject and object has a name", _blank_line(data.decode()))
    return triples[0][0], frozenset(triples)


def _triple(line: str) -> Triple:
    """Return the triple of a line of canonical N-Triples, where the first two spaces end subject and predicate."""
    subject, predicate, value = line[:-2].split(" ", 2)
    return subject, predicate, value


def _described(
    identity: str, triples: Collection[Triple], data: bytes, *, redacted: bool, line: int | None = None
) -> Commit:
    """Return the commit of its own description; raise FormatError for a missing or second value.

    *triples* are all of the commit as a frozenset, or the description alone.
    """
    own_iri = iri(COMMIT + identity)
    values: dict[Term, list[Term]] = {}
    for subject, predicate, value in triples:
        if subject == own_iri:
            values.setdefault(predicate, []).append(value)
    for predicate in _SINGLE:
        if len(values.get(predicate, ())) != 1:
            raise FormatError(f"{len(values.get(predicate, ()))} {_prefixed(predicate)} of the commit, not one", line)
    committer, number, ontology, position_term, recorded, graph = [values[predicate][0] for predicate in _SINGLE]
    parents = list(map(_OWN.fullmatch, values.get(_PARENT, ())))
    position, moment = _POSITION.fullmatch(position_term), _moment(recorded)
    if number != _FORMAT_NUMBER or not values.get(vocab.TYPE, []) or not {*_CLASSES} <= {*values[vocab.TYPE]}:
        raise FormatError("not described as a commit of this format", line)
    if committer[0] != "<" or graph[0] != "<" or not ontology.endswith('"') or None in parents:
        raise FormatError("committer, stream, ontology version or a parent is malformed", line)
    if moment is None or position is None or (position[1] == "1") == bool(parents):
        raise FormatError(f"the commit's position {position_term} or moment {recorded} cannot be", line)
    return Commit(
        id=identity,
        graph=graph[1:-1],
        parents=tuple(sorted([parent[1] for parent in parents if parent])),
        position=int(position[1]),
        recorded_at=moment,
        committer=committer[1:-1],
        ontology_version=parse_literal(ontology).text,
        data=data,
        redacted=redacted,
        known_triples=triples if isinstance(triples, frozenset) else None,
    )


def _moment(term: Term) -> str | None:
    """Return the moment in an xsd:dateTime of the one written form, None for any other term."""
    text = term[1:28]
    if term != date_time(text) or not _MOMENT.fullmatch(text):
        return None
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return None
    return text


def format_document(secrets: Sequence[str], own_iri: Term, triples: Iterable[Triple]) -> bytes:
    """Return the one serialisation of a commit."""
    return _turtle_of(secrets, _blocks(own_iri, triples))


def _blocks(own_iri: Term, triples: Iterable[Triple]) -> list[_Block]:
    """Return *triples* in the one order, by subject; the description of the commit itself comes first."""
    about: dict[Term, list[_Row]] = {}
    for subject, predicate, value in triples:
        about.setdefault(subject, []).append((predicate != vocab.TYPE, predicate, value))
    subjects = sorted(about)
    if own_iri in about:
        subjects.remove(own_iri)
        subjects.insert(0, own_iri)
    return [(subject, sorted(about[subject])) for subject in subjects]


def _turtle_of(secrets: Sequence[str], blocks: Iterable[_Block]) -> bytes:
    out = [_HEADER, *secrets]
    for subject, rows in blocks:
        # most terms are written unchanged: a plain text, or an IRI without a prefix
        is_plain = subject[:1] == "<" and subject[:2] != "<<" and not subject.startswith(_NAMESPACES)
        out += ["", subject if is_plain else _written(subject)]
        for named, verb, value in rows:
            if value.startswith(_NAMESPACES):
                term = _prefixed(value)
            elif value[:1] == value[-1:] == '"' or (value[:1] == "<" and value[:2] != "<<"):
                term = value
            else:
                term = _written(value)
            out.append(f"    {_prefixed(verb) if named else 'a'} {term} ;")
        out[-1] = out[-1][:-1] + "."
    return ("\n".join(out) + "\n").encode()


def _written(term: Term) -> str:
    """Return a term in the form of the format; raise FormatError for a term without one."""
    if term.startswith("<") and not term.startswith("<<"):
        return _prefixed(term) if term.startswith(_NAMESPACES) else term
    if not term.startswith('"'):
        raise FormatError(f"neither an IRI nor a literal: {term}")
    if term.endswith(">"):
        cut = term.rfind("^^<") + 2
        return term[:cut] + _prefixed(term[cut:])
    if not term.endswith('"') and "--" in term[term.rfind('"') :]:
        raise FormatError(f"text with a base direction: {term}")
    return term


@lru_cache(maxsize=4096)
def _prefixed(term: Term) -> str:
    """Return an IRI as a prefixed name if the format has a prefix for it."""
    for prefix, namespace in PREFIXES.items():
        local = term[1 + len(namespace) : -1]
        if term.startswith("<" + namespace) and LOCAL_NAME.fullmatch(local):
            return f"{prefix}:{local}"
    return term


def _surviving(secrets: Sequence[str], lines: Iterable[bytes]) -> list[bytes]:
    """Return the leaves of a redacted commit: those of its remaining lines and those of the removed ones."""
    salts = [bytes.fromhex(line[7:]) for line in secrets if line.startswith("# salt")]
    removed = [bytes.fromhex(line[7:]) for line in secrets if line.startswith("# leaf")]
    ordered = sorted(lines)
    if len(salts) != len(ordered) or [*secrets[len(salts) :]] != [f"# leaf {leaf.hex()}" for leaf in sorted(removed)]:
        raise FormatError(f"{len(salts)} salts for {len(ordered)} triples, or leaves out of order", 7)
    surviving = [blake2b(line, digest_size=32, key=salt).digest() for line, salt in zip(ordered, salts, strict=True)]
    return surviving + removed


def _difference(expected: str, actual: str) -> int:
    """Return the number of the first line in which two texts differ."""
    pairs = enumerate(zip_longest(expected.split("\n"), actual.split("\n")), 1)
    return next((number for number, (expected_line, actual_line) in pairs if expected_line != actual_line), 1)


def _first(text: str, part: str) -> int:
    """Return the number of the first line with *part*."""
    return text.partition(part)[0].count("\n") + 1


def _blank_line(text: str) -> int:
    lines = enumerate(text.split("\n"), 1)
    return next((n for n, line in lines if line[:1] != "#" and _BLANK.search(_QUOTED.sub("", line))), 1)


_COMMIT = re.compile(r"[0-9]{8}T[0-9]{6}\.[0-9]{6}Z-[0-9a-f]{12}(?:\.redacted)?\.ttl")
#: The suffix of the name of a quarantined file, which readers ignore.
ASIDE = ".aside"
_NUMBERED = lazy(r"\.[0-9]+\.ttl\Z")
_PACK = re.compile(r"pack-[0-9]{8}T[0-9]{6}\.[0-9]{6}Z-[0-9a-f]{12}\.ttl")


def stem(head: CommitRef) -> str:
    """Return the name of a commit without its form; stems sort as commits do.

    >>> stem(CommitRef("2026-11-21T08:00:00.123456Z", "3fa9c1d20b7e" + "0" * 52, 1))
    '20261121T080000.123456Z-3fa9c1d20b7e'
    """
    return f"{compact(head.recorded_at)}-{head.id[:SHORT]}"


@lru_cache(maxsize=1024)
def file_name(head: CommitRef, *, redacted: bool = False) -> str:
    """Return the name of a commit's file.

    >>> file_name(CommitRef("2026-11-21T08:00:00.123456Z", "3fa9c1d20b7e" + "0" * 52, 1))
    '20261121T080000.123456Z-3fa9c1d20b7e.ttl'
    """
    return f"{stem(head)}{'.redacted' if redacted else ''}.ttl"


def pack_name(first: str, digest: str) -> str:
    """Return the name of a pack, from its first moment and its digest."""
    return f"pack-{compact(first)}-{digest[:SHORT]}.ttl"


def compact(moment: str) -> str:
    """Return a moment in the form of file names."""
    return moment.replace("-", "").replace(":", "")


def stem_of(name: str) -> str:
    """Return the common part of the file names of the forms of a commit."""
    return name.removesuffix(".ttl").removesuffix(".redacted")


def short_id(name: str) -> str | None:
    """Return the id prefix in the name of a commit file, None for another name."""
    return stem_of(name).partition("-")[2] if _COMMIT.fullmatch(name) else None


def is_pack(name: str) -> bool:
    """Return whether a file has the name of a pack."""
    return _PACK.fullmatch(name) is not None


def quarantine_name(name: str) -> str:
    """Return the name of a quarantined file without the number that distinguishes it from another form.

    >>> quarantine_name("20261121T080000.123456Z-3fa9c1d20b7e.2.ttl")
    '20261121T080000.123456Z-3fa9c1d20b7e.ttl'
    """
    return _NUMBERED.sub(".ttl", name)


#: The largest expected error of a clock: it may start in 1970. And the most years from a commit to the next one.
MOST_YEARS = 100
AHEAD = timedelta(days=36_525)
_LAST = datetime.max.replace(tzinfo=UTC) - timedelta(days=1)


def horizon(now: datetime) -> str:
    """Return the last moment of a commit that another commit can follow.

    >>> horizon(datetime(2026, 11, 21, 8, tzinfo=UTC))
    '2126-11-22T08:00:00.000000Z'
    """
    return format_timestamp(now + min(AHEAD, max(_LAST - now, timedelta())))


def too_late(head: CommitRef, path: str, now: datetime) -> JournalDamaged:
    """Return the error for a commit beyond the horizon in the file *path*."""
    return JournalDamaged(
        f"it is recorded at {head.recorded_at}, more than 100 years after the clock of this machine"
        f" ({format_timestamp(now)}): nothing can be recorded after it",
        path=path,
        commit=head.id,
        hint="if this clock is wrong, set it; if a merge added the commit, revert it, or drop its memories:"
        f" jidomem journal verify --quarantine {head.id[:SHORT]} --reason TEXT;"
        " to keep them, run the commands in the hint of: jidomem journal verify",
    )


def moment_after(now: datetime, *heads: CommitRef) -> str:
    """Return the moment of the commit after *heads*: now, or a microsecond after the newest if the clock went back.

    Raise JournalDamaged if the newest is beyond the horizon, Failed if the clock shows a century after it: it is wrong,
    and no other machine could write after this commit.
    """
    newest, moment_now = max(heads, default=None), format_timestamp(now)
    if newest is None:
        return moment_now
    if int(moment_now[:4]) > int(newest.recorded_at[:4]) + MOST_YEARS:
        raise Failed(
            f"the clock of this machine shows the year {now.year}, a century after the newest commit"
            f" ({newest.recorded_at}): nothing was written, as no other machine could write after it",
            hint="set the clock of this machine, and submit again",
        )
    if moment_now > newest.recorded_at:
        return moment_now
    if newest.recorded_at > horizon(now):
        raise too_late(newest, file_name(newest), now)
    moment = datetime.strptime(newest.recorded_at, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    return format_timestamp(moment + timedelta(microseconds=1))
