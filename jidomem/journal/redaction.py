"""Take triples out of a commit for good: bare leaves stay in their place, and with them its id."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from hashlib import blake2b

from jidomem.journal.commit import DESCRIPTION, Commit, FormatError, document, parse, secrets_of
from jidomem.terms import Triple, bare, iri, parts
from jidomem.vocab import THIS, TYPE, jido

_SALT, _LEAF = "# salt ", "# leaf "

#: What only a commit says that records an order of the journal's keeper: no text can, as a line end in it is escaped.
_ORDERS = (b"\n    jido:redacts <", b'\n    jido:setsAside "')


def is_order(document: bytes) -> bool:
    """Return whether a document, or one in it, records that something was redacted, or set aside."""
    return any(mark in document for mark in _ORDERS)


def is_redacted(document: bytes) -> bool:
    """Return whether something was taken out of the commit of a document: it has salts where there was a nonce."""
    return b"\n# nonce " not in document.partition(b"\n\n")[0]


def recorded(orders: Iterable[Commit]) -> Mapping[str, frozenset[str]]:
    """Return the leaves that were redacted by the id of their commit; an order's leaves count for each it names."""
    found: dict[str, frozenset[str]] = defaultdict(frozenset)
    for order in orders:
        own = iri(order.iri)
        gone = frozenset(parts(o).text for s, p, o in order.triples if s == own and p == jido("redactedLeaf"))
        for s, p, commit in order.triples:
            if s == own and p == jido("redacts"):
                found[bare(commit).rpartition(":")[2]] |= gone
    return found


def leaves(commit: Commit) -> dict[Triple, str]:
    """Return the leaf of each triple that is still in *commit*, in hexadecimal digits."""
    salts = _salts(commit)
    return {
        triple: blake2b(line.encode(), digest_size=32, key=salts[line]).hexdigest()
        for triple, line in _lines(commit).items()
    }


def taken_out(commit: Commit) -> frozenset[str]:
    """Return the leaves of the triples that were taken out of *commit* before."""
    said = secrets_of(commit.data.decode())
    return frozenset(line.removeprefix(_LEAF) for line in said if line.startswith(_LEAF))


def without(commit: Commit, gone: Collection[str]) -> Commit:
    """Return *commit* without the triples that have the leaves *gone*; those of other commits mean nothing here.

    Raise FormatError for a triple of the commit's own description, which stays, and where nothing is to be taken out.
    """
    found, salts, lines = leaves(commit), _salts(commit), _lines(commit)
    kept = {triple for triple, leaf in found.items() if leaf not in gone}
    bare = taken_out(commit) | {leaf for leaf in found.values() if leaf in gone}
    own = iri(commit.iri)
    if any(s == own and (p in DESCRIPTION or p == TYPE) for s, p, _ in commit.triples - kept):
        raise FormatError(f"what commit {commit.id} says of itself cannot be taken out")
    said = [f"{_SALT}{salts[line].hex()}" for line in sorted(lines[triple] for triple in kept)]
    return parse(document([*said, *(f"{_LEAF}{leaf}" for leaf in sorted(bare))], own, kept))


def _lines(commit: Commit) -> dict[Triple, str]:
    """Return the digest line of each triple."""
    own = iri(commit.iri)
    return {(s, p, o): f"{THIS if s == own else s} {p} {THIS if o == own else o} ." for s, p, o in commit.triples}


def _salts(commit: Commit) -> dict[str, bytes]:
    """Return the salt of each digest line: made from the nonce, or kept since that was dropped."""
    lines, said = sorted(_lines(commit).values()), secrets_of(commit.data.decode())
    if commit.redacted:
        kept = (bytes.fromhex(line.removeprefix(_SALT)) for line in said if line.startswith(_SALT))
        return dict(zip(lines, kept, strict=True))
    nonce = bytes.fromhex(said[0].removeprefix("# nonce "))
    return {line: blake2b(line.encode(), digest_size=32, key=nonce).digest() for line in lines}
