"""What of a journal shows a text, or would let a guess at it be confirmed.  Pure: commits in, triples out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType

from jidomem import vocab
from jidomem.anchor import ANCHOR, NO_BLOB, Anchor, anchors_of
from jidomem.govern.spellings import AS_IT_IS, LONG, Spelling, form_of, variants
from jidomem.journal.commit import COMMIT, DESCRIPTION, Commit
from jidomem.terms import Term, Triple, bare, iri, is_iri, literal, parts
from jidomem.vocab import LABEL, TYPE, XSD, jido, local_name

SAYS, DIGEST, NAME = "says it", "was computed from it", "is named after it"
#: Why the blob id of a file goes whose content at that version cannot be had.
UNKNOWN = "may be of a file that held it"
_EVIDENCE, _GENID = f"<{vocab.BASE}evidence/", f"<{vocab.BASE}.well-known/genid/"
_KEY, _REQUEST, _RECEIPT = jido("conflictKey"), jido("requestDigest"), jido("receipt")
_ANSWERED = jido("answeredWith")
SOURCE_DIGEST, SOURCE_BLOB = jido("sourceDigest"), jido("sourceBlob")
DIGESTS = (_KEY, _REQUEST, SOURCE_DIGEST, jido("redactedLeaf"))  # no text shows in them
BLOBS = (SOURCE_BLOB, ANCHOR)  # in which a path stands after the digest of a file
WORDS = (XSD + "string", XSD + "anyURI", vocab.RDF + "langString")
#: Names that are minted at random, or from a digest: no text shows in them. An IRI that was given may say anything.
_UUID = (
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:/alternatives/[0-9]+|/prompt|/answer|/tools/[0-9]+(?:/result)?)?"
)
_MINTED = re.compile(
    rf"<(?:{COMMIT}[0-9a-f]{{64}}|{re.escape(vocab.BASE)}(?:(?:memory|submissions|entries|turns)/{_UUID}|evidence/[0-9a-f]{{32,}}"
    r"|\.well-known/genid/[0-9a-f]{16,}-[^>]*))>"
)
#: Terms by which a memory is said: the ontology, which anyone may read, has each of them.
_TERMS = tuple(f"<{each}" for each in (vocab.JIDO, vocab.CONVERSATION, vocab.RDF, vocab.RDFS, XSD, vocab.PROV))
#: How a name begins that tells whose or what it is: no text shows in that alone.
_PLACE = re.compile(rf"(?:{re.escape(vocab.BASE)}(?:projects/[^/]*/?|[a-z.-]+/)?)?")
#: The keys of docs/conflicts.md that a property goes into, beside that of identical memories.
_KEYS_OF: Mapping[Term, tuple[str, ...]] = {
    jido("summary"): ("duplicate",),
    jido("topic"): ("duplicate", "overlapping_decision", "contradiction", "convention_clash"),
    jido("about"): ("duplicate", "similar_decision", "contradiction"),
    jido("conventionName"): ("convention_clash",),
}
_OTHER_KEYS = ("value", "value-is")


@dataclass(frozen=True, slots=True)
class Trace:
    """A triple of a commit that is to go, and why."""

    commit: str
    triple: Triple
    why: str
    form: str = ""  # in which form it says a text


@dataclass(frozen=True, slots=True)
class Wanted:
    """The texts that are to go: *anywhere*, or where they are short only in what is said of *linked* nodes.

    *said* are the subjects and predicates whose values go whatever they are.
    """

    texts: frozenset[str]
    said: frozenset[tuple[Term, Term]] = frozenset()
    linked: frozenset[Term] = frozenset()
    anywhere: bool = False
    _spellings: dict[str, list[Spelling]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        every = [Spelling(text) for text in sorted(self.texts) if text.strip()]
        self._spellings["linked"] = every
        self._spellings["everywhere"] = [each for each in every if self.anywhere or len(each.text) >= LONG]

    def may_stand_in(self, document: str) -> bool:
        """Return whether a document is worth a closer look: most hold no word of the texts."""
        held = [*variants(document)]
        return any(each.may_stand_in(held) for each in self._spellings["linked"])

    def shows(self, term: Term, about: Term) -> bool:
        """Return whether *term*, said of the node *about*, shows one of the texts."""
        return self.form(term, about) is not None

    def form(self, term: Term, about: Term) -> str | None:
        """Return in which form *term*, said of the node *about*, shows one of the texts, None where it shows none."""
        near = "linked" if about.split("/alternatives/")[0].rstrip(">") + ">" in self.linked else "everywhere"
        given = self._spellings[near]
        if is_iri(term):
            known = term.startswith(_TERMS) or _MINTED.fullmatch(term)
            return None if known else _form_in_name(given, term[1:-1])
        text, datatype, _ = parts(term)
        if datatype not in WORDS:
            return AS_IT_IS if text in self.texts and near == "linked" else None
        return form_of(text, given)


def _form_in_name(given: Sequence[Spelling], name: str) -> str | None:
    """Return in which form one of the texts stands in a name, and not only in how it begins."""
    place = _PLACE.match(name)
    assert place is not None  # it may be empty
    for each in given:
        form = form_of(name, [each])
        if form is not None and form_of(place[0], [each]) is not None:
            form = form_of(name[place.end() :], [each])
        if form is not None:
            return form
    return None


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a version of a file: whether it shows one of the texts, and whether it has a word of one."""

    shows: bool
    has_word: bool


class Traces:
    """The traces of some texts in the commits of a project, found in two readings of them.

    *files* are the paths of files that hold one now; *versions* has the content of each version of a file that can be
    had.
    """

    def __init__(
        self, wanted: Wanted, files: Iterable[str] = (), versions: Mapping[Anchor, Content] = MappingProxyType({})
    ) -> None:
        self._wanted = wanted
        self._versions = versions
        self._named: set[Term] = set()  # nodes that are named after a text
        self._prints: set[str] = set()  # digests of files that held one
        self._touched: dict[Term, set[Term]] = {}  # memories -> the properties by which they hold one
        self._entries: set[Term] = set()  # digests of entries of sources that held one
        self._sources: set[Anchor] = set()  # the versions of files that memories which hold one came from
        self._files = {*files, *(each.path for each, content in versions.items() if content.shows)}

    def look(self, commits: Iterable[Commit]) -> None:
        """Find out what says one of the texts, and what is named after it: the first reading."""
        for commit in filter(self._may_say, commits):
            saying = self._saying(commit)
            for triple in saying:
                self._note(triple, commit)
            self._note_sources({subject for subject, _, _ in saying}, commit)

    def find(self, commits: Iterable[Commit]) -> Iterator[Trace]:
        """Yield all that is to go: the second reading."""
        for commit in filter(lambda commit: self._may_say(commit) or self._may_name(commit), commits):
            said = self._saying(commit)
            found = dict.fromkeys(said, SAYS)
            for triple in sorted(commit.triples - found.keys()):
                if _is_own(triple, commit):
                    continue
                if self._is_named(triple[0]) or self._is_named(triple[2]):
                    found[triple] = NAME
                    self._touched.setdefault(triple[0], set()).add(triple[1])
            answered = {s for s, p, o in commit.triples if p == _ANSWERED and o in self._touched}
            for triple in sorted(commit.triples - found.keys()):
                if triple[1] in BLOBS:
                    if (why := self._why_of_blob(triple[2])) is not None:
                        found[triple] = why
                elif self._is_computed(triple, answered):
                    found[triple] = DIGEST
            yield from (Trace(commit.id, triple, why, said.get(triple, "")) for triple, why in found.items())

    def _may_say(self, commit: Commit) -> bool:
        """Return whether a commit is worth a closer look."""
        document = commit.data.decode()
        if any(bare(node) in document for node, _ in self._wanted.said):
            return True
        return self._wanted.may_stand_in(document)

    def _may_name(self, commit: Commit) -> bool:
        document = commit.data.decode()
        if self._files and any(local_name(name) in document for name in BLOBS):
            return True
        names = map(bare, chain(self._named, self._touched, self._entries))
        return any(name in document for name in chain(names, self._prints))

    def _saying(self, commit: Commit) -> dict[Triple, str]:
        """Return the triples that say one of the texts, each with the form in which it does."""
        form, found = self._wanted.form, dict[Triple, str]()
        for s, p, o in sorted(commit.triples):
            if _is_own((s, p, o), commit) or p in DIGESTS:
                continue
            shown = next((literal(each.path) for each in anchors_of([o])), o) if p in BLOBS else o
            named = AS_IT_IS if (s, p) in self._wanted.said else form(shown, s) or form(s, s) or form(p, s)
            if named is not None:
                found[s, p, o] = named
        return found

    def _note(self, triple: Triple, commit: Commit) -> None:
        subject, predicate, value = triple
        if subject.startswith(_EVIDENCE) and predicate == LABEL:
            self._named.add(subject)
        self._named |= {term for term in (subject, value) if is_iri(term) and self._wanted.shows(term, term)}
        nodes = {term for said in commit.triples for term in said if term.startswith(_GENID)}
        self._prints |= {node.removeprefix(_GENID).split("-")[0] for node in nodes}
        item = iri(subject[1:-1].split("/alternatives/")[0])
        judged = {s for s, p, _ in commit.triples if p in (_KEY, _REQUEST)}
        for owner in [item] if item in judged or item.startswith(_EVIDENCE) else judged or [item]:
            self._touched.setdefault(owner, set()).add(predicate if item == subject == owner else TYPE)

    def _note_sources(self, saying: set[Term], commit: Commit) -> None:
        """Note the digests of entries, and the files, that the memories of a commit which say a text came from."""
        items = {iri(node[1:-1].split("/alternatives/")[0]) for node in saying if is_iri(node)}
        items |= {s for s, _, o in commit.triples if o in saying and o.startswith(_EVIDENCE)}
        for subject, predicate, value in commit.triples:
            if subject in items and predicate == SOURCE_DIGEST:
                self._entries.add(value)
            elif subject in items and predicate in BLOBS:
                anchors = anchors_of([value])
                self._files.update(each.path for each in anchors)
                self._sources.update(anchors if predicate == SOURCE_BLOB else ())

    def _is_named(self, term: Term) -> bool:
        if term.startswith(_GENID):
            return term.removeprefix(_GENID).split("-")[0] in self._prints
        return term in self._named

    def _why_of_blob(self, value: Term) -> str | None:
        """Return why the blob id in an anchor goes: that version held a text, or nobody can tell; None where it stays.

        A memory may say in other words than the file it came from, without its markup: there a word of the text counts.
        """
        sources = {each.path for each in self._sources}
        for each in anchors_of([value]):
            content = self._versions.get(each)
            if each.blob == NO_BLOB or each.path not in self._files:
                continue
            if each in self._sources:
                return DIGEST
            if content is None:
                return UNKNOWN
            if content.shows or (content.has_word and each.path in sources):
                return DIGEST
        return None

    def _is_computed(self, triple: Triple, answered: set[Term]) -> bool:
        """Return whether a triple keeps a digest, or an answer, that was made from what one of the memories says."""
        subject, predicate, value = triple
        if predicate == SOURCE_DIGEST:
            return value in self._entries
        if predicate in (_REQUEST, _RECEIPT):
            return subject in self._touched or subject in answered
        if predicate != _KEY or subject not in self._touched:
            return False
        gone: set[str] = set()
        for said in self._touched[subject] - {_RECEIPT}:
            gone |= {"identical", *_KEYS_OF.get(said, _OTHER_KEYS)}
        return parts(value).text.partition(":")[0] in gone


def _is_own(triple: Triple, commit: Commit) -> bool:
    """Return whether the commit's own description says *triple*, which stays."""
    return triple[0] == iri(commit.iri) and (triple[1] in DESCRIPTION or triple[1] == TYPE)


def without_blob(anchor: Term) -> Term:
    """Return an anchor, as a memory keeps it, with the path of its file alone: its blob id is `NO_BLOB`."""
    return next((literal(str(Anchor(each.path, NO_BLOB))) for each in anchors_of([anchor])), anchor)
