"""The screening of a journal: texts in it that look like secrets, each named by its place and never shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from jidomem import vocab
from jidomem.govern.report import SECRET, Found, Problem
from jidomem.govern.sources import by_subject, line_in, statements_of
from jidomem.journal.commit import COMMIT
from jidomem.journal.files import FileJournal, Stream
from jidomem.judge import Severity
from jidomem.terms import Term, Triple, bare, is_iri, parts
from jidomem.version import Head
from jidomem.vocab import jido
from jidomem.write import secrets

#: Digests, and what the writer says of itself: they look drawn by lot, and say nothing that is not said elsewhere.
_DIGESTS = frozenset(map(jido, ("conflictKey", "requestDigest", "receipt", "aboutBlob", "sourceDigest", "recordedIn")))
#: Ids that may be drawn by lot; only a token of a known form is one in there.
_IDS = frozenset(map(jido, ("idempotencyKey", "localId")))


@dataclass(frozen=True, slots=True)
class Hit:
    """A triple of a commit that says a likely secret: what kind of one, at which character."""

    head: Head
    triple: Triple
    kind: str
    at: int


class Screening:
    """The likely secrets of one stream, gathered as its commits are read."""

    def __init__(self, journal: FileJournal, stream: Stream, is_wanted: Callable[[Head], bool]) -> None:
        """Screen a stream of *journal*: the commits that *is_wanted* says are to be."""
        self._journal, self._stream, self._is_wanted = journal, stream, is_wanted
        self.hits: list[Hit] = []

    def take(self, head: Head, triples: Iterable[Triple]) -> None:
        """Screen a commit."""
        if self._is_wanted(head):
            self.hits += _hits(head, triples)

    def problems(self, severity: Severity) -> Iterator[Problem]:
        """Yield each hit once as a finding about the node that says it, or about the commit where its name is one."""
        for hit in dict.fromkeys(self.hits):
            subject, predicate, value = hit.triple
            is_name = secrets.find_form(bare(subject)) is not None
            item = COMMIT + hit.head.id if is_name else bare(subject)
            said = "the name of what it describes" if is_name else vocab.local_name(predicate)
            more = "" if is_name or is_iri(value) else f", at character {hit.at}"
            way = "--text -" if is_name else f"{item} --property {vocab.local_name(predicate)}"
            text = (
                f"{said} holds what looks like {hit.kind}{more}: ****; change it where it is used, and take it out of"
                f" the journal: jidomem redact {way} --reason TEXT"
            )
            found = Found(subject, SECRET, severity, text, predicate, value)
            place = self._journal.document(self._stream, hit.head)
            path = line = None
            if place is not None:
                path, before, document = place
                by = by_subject(statements_of(document.decode("utf-8", "replace"), {subject}, before))
                line = line_in(by, found)
            yield Problem(item, SECRET, severity, text, path, line)


def _hits(head: Head, triples: Iterable[Triple]) -> Iterator[Hit]:
    for triple in triples:
        subject, predicate, value = triple
        if predicate in _DIGESTS:
            continue
        found = _secret_in(predicate, value)
        if found is None and predicate == vocab.TYPE:  # once for each node
            found = secrets.find_form(bare(subject))
        if found is not None:
            yield Hit(head, triple, found.kind, found.at)


def _secret_in(predicate: Term, value: Term) -> secrets.Found | None:
    """Return the likely secret in the object of a triple, None where there is none."""
    if is_iri(value):
        return secrets.find_form(bare(value))
    text, datatype, language = parts(value)
    if datatype != vocab.XSD + "string" and not language:
        return None
    return secrets.find_form(text) if predicate in _IDS else secrets.find(text)
