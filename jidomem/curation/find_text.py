"""The search for a text to redact: in commits, in files of the root and in sources, in all its spellings.

A `TextForms` recognises the text in the forms in which a name, an IRI, a file or an encoded value may contain it.
`Occurrences` yields the triples that contain the text, or that would confirm a guess at it.
`leftovers` and `source_leftovers` name the files that still contain the text; no file is rewritten.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from shlex import quote
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import unquote

from jidomem.base.disk import LARGEST
from jidomem.base.words import UNSPACED, normal_text
from jidomem.index.cache_file import project_of
from jidomem.index.search_documents import ENTRY
from jidomem.journal.commit import COMMIT, DESCRIPTION, Commit, identity_in
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, Triple, iri, is_iri, literal, parse_literal, plain_value
from jidomem.rdf.vocab import LABEL, TYPE, XSD, conv, jido
from jidomem.records.file_anchor import ANCHOR, NO_BLOB, Anchor, anchors_of
from jidomem.repository.worktree import plain_file
from jidomem.write import canonical

#: The least length, in characters, of a redacted value whose copies are searched in all nodes.
LONG = 8
AS_IT_IS = "as it is"
OTHER_FORM = "in other case, white space or Unicode form"
ESCAPED = "escaped"
PERCENT_ENCODED = "percent-encoded"
OVER_LINE_ENDS = "over line ends"
IN_A_NAME = "with the separators of a name"
OTHER_SEPARATORS = "with other separators"
#: Invisible characters: soft hyphen, zero-width spaces and joiners, byte order mark.
_UNSEEN = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_PLAIN = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_TOKEN, _WORD_START, _WORD_END = re.compile(r"[^\W_]+"), re.compile(r"\A[^\W_]*"), re.compile(r"[^\W_]*\Z")
_WORD, _NEVER_ESCAPED = re.compile("[a-z0-9]+"), re.compile("[A-Za-z0-9_./-]+")
#: The separators within a name and within a number; the fewest digits and most letters of a number.
_OF_NAMES, _OF_NUMBERS = r"[-._~+/:]", r"[\s().\-\u2010-\u2015/_+\u00b7]"
_FEWEST_DIGITS, _MOST_LETTERS = 7, 4
_NESTED = 3


#: Letters that are written out as two, and letters that are no plain letter with an accent.
_WRITTEN_OUT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
_PLAIN_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i"})
#: A word ends where no letter or digit follows, and at a character of a script without spaces between words.
_BEGIN, _END = rf"(?:(?<![^\W_])|(?<=[{UNSPACED}]))", rf"(?:(?![^\W_])|(?=[{UNSPACED}]))"
_LONGEST_WORD, _MOST_WORDS = 60, 1_000  # characters of a longer word, and such words of one text, that are shown


@dataclass(frozen=True, slots=True)
class TextForms:
    """A text to search for in all its forms, as whole words; with *parts* also within longer words and numbers."""

    text: str
    parts: bool = False
    word: str = field(init=False)  # its longest word, which every form contains, except one with other separators
    words: frozenset[str] = field(init=False)  # all of them, of which the same is true
    near: frozenset[str] = field(init=False)  # its `near_forms`, with a space between words
    _patterns: tuple[tuple[str, re.Pattern[str]], ...] = field(init=False)

    def __post_init__(self) -> None:
        folded = fold(self.text)
        words = _WORD.findall(folded)
        object.__setattr__(self, "word", max(words, key=len, default=""))
        object.__setattr__(self, "words", frozenset(words))
        object.__setattr__(self, "near", near_forms(" ".join(_TOKEN.findall(folded))))
        object.__setattr__(self, "_patterns", tuple(_patterns(folded, self.parts)))

    def form_in(self, variants: Iterable[tuple[str, str]]) -> str | None:
        """Return the form in which a document of these `variants` contains the text, None if it does not."""
        for of_variant, other in variants:
            has_words = all(word in other for word in self.words)  # a pattern is searched ten times as long
            for of_pattern, pattern in self._patterns:
                if (has_words or of_pattern == OTHER_SEPARATORS) and pattern.search(other):
                    plainly = OTHER_FORM if of_variant == AS_IT_IS else of_variant
                    return of_pattern or plainly
        return None

    def longer_words(self, text: str, variants: Iterable[tuple[str, str]]) -> set[str]:
        """Return the words of *text*, which has these `variants`, of which this text is only a part, if they show."""
        for given, other in [(self.text, text), *((fold(self.text), folded) for _, folded in variants)]:
            matches = islice(re.finditer(re.escape(given), other, re.IGNORECASE), _MOST_WORDS)
            if words := {_word_around(other, *match.span()) for match in matches}:
                return words
        return set()

    def near_words(self, text: str) -> set[str]:
        """Return the words of *text* that are this text but for accents and letters written out."""
        if text.isascii() and self.text.isascii():
            return set()
        words, count = _TOKEN.findall(unicodedata.normalize("NFC", text)), len(_TOKEN.findall(fold(self.text)))
        parts = {" ".join(words[at : at + count]) for at in range(len(words) - count + 1)}
        return {part for part in parts if fold(part) != fold(self.text) and not self.near.isdisjoint(near_forms(part))}

    def may_stand_in(self, variants: Iterable[tuple[str, str]]) -> bool:
        """Return whether a document of these `variants` may contain the text: a fast test with false positives."""
        numbers = [pattern for form, pattern in self._patterns if form == OTHER_SEPARATORS]
        return any(self.word in other or any(each.search(other) for each in numbers) for _, other in variants)


def _word_around(text: str, start: int, end: int) -> str:
    """Return the word of *text* that has the given part; of a very long one the part and some characters beside it."""
    before, *_ = _WORD_END.findall(text[max(0, start - _LONGEST_WORD) : start])
    after, *_ = _WORD_START.findall(text[end : end + _LONGEST_WORD])
    return f"{before}{text[start:end]}{after}"[:_LONGEST_WORD]


def fold(text: str) -> str:
    r"""Return *text* normalised for comparison: case, Unicode form and white space, without invisible characters.

    >>> fold("Mu\u0308ller\u00a0 &\u200b Co")
    'müller & co'
    """
    return normal_text(text if text.isascii() else unicodedata.normalize("NFKC", text.translate(_UNSEEN)))


def near_forms(text: str) -> frozenset[str]:
    """Return *text* folded and without accents, and also with umlauts and the like written out.

    >>> sorted(near_forms("Zoë Müller"))
    ['zoe mueller', 'zoe muller']
    """
    folded = fold(text)
    return frozenset((folded,) if folded.isascii() else map(_without_accents, (folded, folded.translate(_WRITTEN_OUT))))


def _without_accents(folded: str) -> str:
    letters = unicodedata.normalize("NFKD", folded.translate(_PLAIN_LETTERS))
    return "".join(each for each in letters if not unicodedata.combining(each))


def variants(text: str) -> Iterator[tuple[str, str]]:
    """Yield (form, folded text): *text* as it is, decoded, and with its lines joined."""
    yield AS_IT_IS, fold(text)
    decoded = text
    for _ in range(_NESTED):
        before, form = decoded, ""
        if "%" in decoded:
            decoded, form = unquote(decoded), PERCENT_ENCODED
            if "+" in before:
                yield form, fold(unquote(before.replace("+", " ")))
        if "\\" in decoded or "&" in decoded:
            decoded, form = html.unescape(_unescaped(decoded)), form or ESCAPED
        if decoded == before:
            break
        yield form, fold(decoded)
    if "\n" in decoded:
        lines = _bare_lines(decoded)
        for between in ("", " "):
            yield OVER_LINE_ENDS, fold(between.join(lines))


def _bare_lines(text: str) -> list[str]:
    r"""Return the lines of *text* without a hyphen and space at their end, and the marks of a quotation or comment.

    >>> _bare_lines("the kes- \r\n# > trel\n")
    ['the kes', 'trel', '']
    """
    first, *others = text.split("\n")
    lines = [first, *(line.lstrip(" \t>|#*/") for line in others)]
    ended = (line.removesuffix("\r").rstrip(" \t") for line in lines[:-1])
    return [*(line.removesuffix("-").rstrip(" \t") for line in ended), lines[-1]]


def form_of(text: str, given: Iterable[TextForms]) -> str | None:
    """Return the form in which *text* contains one of the texts *given*, None if it contains none."""
    variants_of_text = None
    for each in given:
        if each.text in text and each.form_in([(AS_IT_IS, fold(text))]):
            return AS_IT_IS
        variants_of_text = variants_of_text or [*variants(text)]
        if (form := each.form_in(variants_of_text)) is not None:
            return form
    return None


def _patterns(folded: str, parts: bool) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Yield the patterns of a folded text, each with the form that it recognises; "" for the text itself."""
    if not folded:
        return
    tokens = _TOKEN.findall(folded)
    bare = "".join(tokens)
    letters = sum(map(str.isalpha, bare))
    is_number = len(bare) - letters >= _FEWEST_DIGITS and letters <= _MOST_LETTERS
    before, after = (
        "" if parts or not sign.isalnum() or re.match(f"[{UNSPACED}]", sign) else edge
        for sign, edge in ((folded[0], _BEGIN), (folded[-1], _END))
    )
    yield "", re.compile(f"{before}{re.escape(folded)}{after}")
    if is_number:
        prefix = "(?:00)?" if folded.startswith("+") else ""
        between = f"{_OF_NUMBERS}{{0,5}}+"
        yield OTHER_SEPARATORS, re.compile(rf"(?<![^\W_]){prefix}{between.join(bare)}(?![^\W_])")
    if len(tokens) > 1:
        between = f"{_OF_NAMES}{{{0 if len(bare) >= LONG else 1},3}}"
        yield IN_A_NAME, re.compile(rf"(?<![^\W_]){between.join(map(re.escape, tokens))}(?![^\W_])")


def _unescaped(text: str) -> str:
    """Return *text* with the escapes of JSON and Turtle decoded."""
    text_units = _ESCAPE.sub(lambda sign: chr(min(int(sign[1] or sign[2], 16), 0x10FFFF)) if sign[1] or sign[2]
                        else _PLAIN.get(sign[3], sign[3]), text)  # fmt: skip
    return text_units.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


#: The folder built from the journal, the folder of the journal, and the extension of quarantined files.
_DERIVED, _JOURNAL, _ASIDE = "index", "projects", ".aside"
#: The folders of a root that a redaction deletes and rebuilds.
DERIVED = ("cache/text", "cache/vectors", "cache/guard")
#: The form reported for a file that is too large to be searched.
NOT_SEARCHED = "not searched"


@dataclass(frozen=True, slots=True)
class FileMatch:
    """A file that contains a text: the form, whether it is in the file's name, and a hint what to do."""

    path: Path
    form: str
    in_name: bool
    hint: str
    line: int | None = None  # in a source of memories, if one line contains the text


def leftovers(
    root: Path, texts: Iterable[str], project: str, others: Collection[str] = (), *, parts: bool = False
) -> list[FileMatch]:
    """Return the files below *root* that contain a text, without the journal of *project*, the index, and the caches of
    other projects, which their journals stand for.

    A text in the name of any file or folder counts too, also one in the name of *project*. The working state of the
    projects *others* has a text. With *parts* a text also counts within a longer word.
    """
    given = [TextForms(text, parts) for text in texts]
    projects = {path.name for path in (root / _JOURNAL).glob("*")} - {project}
    folder_of = {path: path.relative_to(root).parts[0] for path in sorted(root.rglob("*"))}
    paths = (
        path for path, folder in folder_of.items()
        if folder != _DERIVED and not (folder == "cache" and path.is_file() and project_of(path) in projects)
    )  # fmt: skip
    files = [leftover for path in paths if (leftover := _leftover(root, path, given, project)) is not None]
    of_others = "; ".join(_elsewhere(other) for other in others)
    return [
        replace(each, hint=of_others) if others and each.path.is_relative_to(root / "state") else each for each in files
    ]


def source_leftovers(base: Path, paths: Iterable[str], texts: Iterable[str], *, parts: bool = False) -> list[FileMatch]:
    """Return the sources of memories, files at *paths* below *base*, that contain a text.

    There is one result for each line, and one for a path that contains a text; *parts* as in `leftovers`.
    """
    given = [TextForms(text, parts) for text in texts]
    results: list[FileMatch] = []
    for path in sorted(set(paths)):
        whole = base.resolve() / path
        if (data := plain_file(whole, LARGEST)) is None:
            continue
        if (form := form_of(path, given)) is not None:
            results.append(FileMatch(whole, form, True, f"edit it, then rename it: mv {quote(path)} NEW-NAME"))
        text = data.decode("utf-8", "replace")
        hint = f"edit {quote(path)} before you import it again or end its redacted memory: that could record the text"
        forms = ((number, form_of(line, given)) for number, line in enumerate(text.splitlines(), 1))
        lines = [FileMatch(whole, form, False, hint, number) for number, form in forms if form is not None]
        whole_form = None if lines else form_of(text, given)
        results += lines or ([FileMatch(whole, whole_form, False, hint)] if whole_form is not None else [])
    return results


def config_leftovers(
    path: Path, root: str, agents: Mapping[str, str], texts: Iterable[str], *, parts: bool = False
) -> list[FileMatch]:
    """Return the lines of a user's own configuration that contain a text, and the tokens of *root* that do.

    *agents* are the names in these tokens, each with the command that revokes it.
    """
    given = [TextForms(text, parts) for text in texts]
    named = {f'agent = "{name}"': f"it is a token that still works: {command}" for name, command in agents.items()}
    lines = (plain_file(path, LARGEST) or b"").decode("utf-8", "replace").splitlines()
    numbers = {line: number for number, line in enumerate(lines, 1)}
    found = {line: form for line in [*lines, *named] if (form := form_of(line, given)) is not None}
    return [
        FileMatch(path if line in numbers else Path(root), form, False, named.get(line, "edit it"), numbers.get(line))
        for line, form in found.items()
    ]


def _leftover(root: Path, path: Path, given: list[TextForms], project: str) -> FileMatch | None:
    below = path.relative_to(root).parts
    if (form := form_of(below[-1], given)) is not None:
        hint = f"rename it: mv {quote(str(path))} NEW-NAME"
        if below[0] == _JOURNAL and len(below) == 2:
            hint = "a project cannot be renamed: import its memories into another one, and delete this one"
        return FileMatch(path, form, True, hint)
    own = below[:2] == (_JOURNAL, project) and path.suffix == ".ttl"
    if own or not path.is_file():
        return None
    try:
        if (size := path.stat().st_size) > LARGEST:
            return FileMatch(path, NOT_SEARCHED, False, f"it has {size:,} bytes, search it: less {quote(str(path))}")
        text = path.read_bytes().decode("utf-8", "replace")
        if "\0" in text:  # the values of a database have no separators
            given = [replace(each, parts=each.parts or len(each.text) >= LONG) for each in given]
        form = form_of(text, given)
    except OSError:  # it was deleted meanwhile
        return None
    return None if form is None else FileMatch(path, form, False, _hint(below, path))


def _hint(below: tuple[str, ...], path: Path) -> str:
    if path.suffix == _ASIDE:
        return f"delete the quarantined file once it is not needed: rm {quote(str(path))}"
    if below[0] == _JOURNAL:
        return _elsewhere(below[1])
    if below[0] == "cache":
        return "stop the processes that use this root, then redact again, or delete the file"
    if below[0] == "state":
        return "stop the processes that use this root, then redact again; deleting it loses the memory of all agents"
    return "edit that file, or delete it"


def _elsewhere(project: str) -> str:
    return f"it belongs to another project: jidomem journal redact --project {quote(project)} --text - --reason TEXT"


SAYS, DIGEST, NAME = "says it", "was computed from it", "is named after it"
#: Why a value that does not contain the text is removed with its entry, or with the turn of a removed speaker.
WHOLE = "is of an entry or turn that says it"
#: Why the blob id of a file is removed if the content of that version is not available.
UNKNOWN = "may be of a file that held it"
_EVIDENCE, _GENID = f"<{vocab.BASE}evidence/", f"<{vocab.BASE}.well-known/genid/"
_KEY, _REQUEST, _RECEIPT = jido("conflictKey"), jido("requestDigest"), jido("receipt")
_ANSWERED = jido("answeredWith")
#: The properties of an entry that outlast its redaction, which removes all others.
ENTRY_STAYS = frozenset(
    (TYPE, *map(jido, ("agentId", "entryOf", "partOfProject", "recordedAt", "recordedIn", "replaces")))
)
#: The properties with the texts of a turn.
TURN_TEXTS = tuple(map(conv, ("promptText", "answerText", "invocationParameters", "resultData")))
SOURCE_DIGEST, SOURCE_BLOB = jido("sourceDigest"), jido("sourceBlob")
DIGESTS = (_KEY, _REQUEST, SOURCE_DIGEST, jido("redactedLeaf"))  # no text can be read in them
BLOBS = (SOURCE_BLOB, ANCHOR)  # their values are the digest of a file and its path
WORDS = (XSD + "string", XSD + "anyURI", vocab.RDF + "langString")
#: IRIs minted at random, or from a digest: no text can be read in them. An IRI given by a caller may contain any text.
_PART = r"(?:/alternatives/[0-9]+|/records/[0-9a-f]{12}|/prompt|/answer|/tools/[0-9]+(?:/result)?)?"
_MINTED = re.compile(
    rf"<(?:{COMMIT}[0-9a-f]{{64}}|{re.escape(vocab.BASE)}(?:(?:memory|submissions|entries|turns)/{vocab.UUID}{_PART}|evidence/[0-9a-f]{{32,}}"
    r"|\.well-known/genid/[0-9a-f]{16,}-[^>]*))>"
)
#: The beginnings of public terms: those of the ontology and of the standards.
TERMS = tuple(f"<{each}" for each in (vocab.JIDO, vocab.CONVERSATION, vocab.RDF, vocab.RDFS, XSD, vocab.PROV))
#: The beginnings of IRIs that name only a kind or an owner.
_PLACE = re.compile(rf"(?:{re.escape(vocab.BASE)}(?:projects/[^/]*/?|[a-z.-]+/)?)?")
#: The keys of docs/conflicts.md that are computed from a property, beside that of identical memories.
_KEYS_OF: Mapping[Term, tuple[str, ...]] = {
    jido("summary"): ("duplicate",),
    jido("topic"): ("duplicate", "overlapping_decision", "contradiction", "convention_clash"),
    jido("about"): ("duplicate", "similar_decision", "contradiction"),
    jido("conventionName"): ("convention_clash",),
}
_OTHER_KEYS = ("value", "value-is")


class Trace(NamedTuple):
    """A triple of a commit that is to be removed, and why."""

    commit: str
    triple: Triple
    why: str
    form: str = ""  # the form in which it contains a text


@dataclass(frozen=True, slots=True)
class TextsToRemove:
    """The texts to remove: *anywhere*, or, if they are short, only in triples about *linked* nodes.

    *properties* are subjects and predicates whose values are removed whatever they contain. With *parts* a text also
    counts within a longer word.
    """

    texts: frozenset[str]
    properties: frozenset[tuple[Term, Term]] = frozenset()
    linked: frozenset[Term] = frozenset()
    anywhere: bool = False
    parts: bool = False
    _spellings: dict[str, list[TextForms]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        every = [TextForms(text, self.parts) for text in sorted(self.texts) if text.strip()]
        self._spellings["linked"] = every
        self._spellings["everywhere"] = [each for each in every if self.anywhere or len(each.text) >= LONG]

    def may_stand_in(self, document: str) -> bool:
        """Return whether a document may contain one of the texts: most documents contain no word of them."""
        spellings = [*variants(document)]
        near = frozenset() if document.isascii() else near_forms(document)
        return any(
            each.may_stand_in(spellings) or any(form in other for form in each.near for other in near)
            for each in self._spellings["linked"]
        )

    def occurs_in(self, term: Term, about: Term) -> bool:
        """Return whether *term*, in a triple about the node *about*, contains one of the texts."""
        return self.form(term, about) is not None

    def shown_in(self, text: str, near_words: set[str] | None = None) -> bool:
        """Return whether a *text* or IRI of the working state contains one of the texts; its near words are added."""
        term = iri(text) if canonical.is_absolute(text) else literal(text)
        if near_words is not None:
            near_words |= self.near_words(term)
        return self.occurs_in(term, iri(COMMIT))

    def form(self, term: Term, about: Term) -> str | None:
        """Return the form in which *term*, in a triple about the node *about*, contains one of the texts, or None."""
        near, given = self._spellings_about(about)
        if is_iri(term):
            known = term.startswith(TERMS) or _MINTED.fullmatch(term)
            return None if known else _form_in_name(given, term[1:-1])
        text, datatype, _ = parse_literal(term)
        if datatype not in WORDS:
            return AS_IT_IS if text in self.texts and near == "linked" else None
        return form_of(text, given)

    def longer_words(self, term: Term, about: Term) -> set[str]:
        """Return the words of *term*, in a triple about *about*, of which one of the texts is only a part."""
        if self.parts or not (self.anywhere and (text := _words_in(term))):
            return set()
        variants_of_text = [*variants(text)]
        given = self._spellings_about(about)[1]
        return {word for each in given for word in each.longer_words(text, variants_of_text)}

    def near_words(self, term: Term) -> set[str]:
        """Return the words of *term* that are one of the texts but for accents and letters written out."""
        text = _words_in(term) if self.anywhere else ""
        return {word for each in self._spellings["everywhere"] for word in each.near_words(text)}

    def _spellings_about(self, node: Term) -> tuple[str, list[TextForms]]:
        near = "linked" if node.split("/alternatives/")[0].rstrip(">") + ">" in self.linked else "everywhere"
        return near, self._spellings[near]


def _words_in(term: Term) -> str:
    """Return the text of a literal or of the name in an IRI, without its fixed beginning; "" if no text is in them."""
    if is_iri(term):
        return "" if term.startswith(TERMS) or _MINTED.fullmatch(term) else _PLACE.sub("", term[1:-1], count=1)
    text, datatype, _ = parse_literal(term)
    return text if datatype in WORDS else ""


def _form_in_name(given: Sequence[TextForms], name: str) -> str | None:
    """Return the form in which a name contains a text, apart from its fixed beginning; None if it contains none."""
    place = _PLACE.match(name)
    assert place is not None  # every part of the pattern is optional
    for each in given:
        form = form_of(name, [each])
        if form is not None and form_of(place[0], [each]) is not None:
            form = form_of(name[place.end() :], [each])
        if form is not None:
            return form
    return None


class Content(NamedTuple):
    """The content of a version of a file: whether it contains one of the texts, or at least a word of one."""

    has_text: bool
    has_word: bool


class Occurrences:
    """The traces of texts in the commits of a project, found in two passes: `collect`, then `find`.

    *files* are the paths of files that contain a text now; *versions* has the content of each available file version.
    """

    def __init__(
        self,
        wanted: TextsToRemove,
        files: Iterable[str] = (),
        versions: Mapping[Anchor, Content] = MappingProxyType({}),
    ) -> None:
        self._wanted = wanted
        self._versions = versions
        self._matches: dict[str, dict[Triple, str]] = {}  # by commit id: the triples that contain one, with its form
        self._named: set[Term] = set()  # nodes that are named after a text
        self._file_digests: set[str] = set()  # digests in the blank node IRIs of files that contained one
        self._touched: dict[Term, set[Term]] = {}  # memories that contain one -> the properties with it
        self._entries: set[Term] = set()  # digests of entries of sources that contained one
        self._sources: set[Anchor] = set()  # versions of the files from which memories with one were imported
        self.longer_words: set[str] = set()  # the words of which a text is only a part
        self.near_words: set[str] = set()  # the words that differ from a text in accents
        self._files = {*files, *(each.path for each, content in versions.items() if content.has_text)}

    def collect(self, commits: Iterable[Commit]) -> None:
        """Collect the nodes that contain one of the texts, or are named after one: the first pass, over all commits."""
        for commit in filter(self._may_contain, commits):
            matching = self._matches[commit.id] = self._matching(commit)
            for triple in matching:
                self._record(triple, commit)
            for s, p, o in commit.triples - matching.keys():
                if p not in DIGESTS and p not in BLOBS and not _is_own((s, p, o), commit):
                    self.longer_words |= self._wanted.longer_words(o, s)
                    self.near_words |= self._wanted.near_words(o)
            self._record_sources({subject for subject, _, _ in matching}, commit)

    def find(self, commits: Iterable[Commit]) -> Iterator[Trace]:
        """Yield all triples to remove: the second pass, over the commits whose document `may_name` a node."""
        for commit in commits:
            matching = self._matches.get(commit.id, {})
            reasons = dict.fromkeys(matching, SAYS)
            entries = {subject for subject, _, _ in matching if (subject, TYPE, ENTRY) in commit.triples}
            rest = {each for each in commit.triples if each[0] in entries and each[1] not in ENTRY_STAYS}
            reasons |= dict.fromkeys(sorted((rest | _words_of_speakers(matching, commit)) - reasons.keys()), WHOLE)
            for triple in sorted(commit.triples - reasons.keys()):
                if _is_own(triple, commit):
                    continue
                if self._is_named(triple[0]) or self._is_named(triple[2]):
                    reasons[triple] = NAME
                    self._touched.setdefault(triple[0], set()).add(triple[1])
            answered = {s for s, p, o in commit.triples if p == _ANSWERED and o in self._touched}
            for triple in sorted(commit.triples - reasons.keys()):
                if triple[1] in BLOBS:
                    if (why := self._why_of_blob(triple[2])) is not None:
                        reasons[triple] = why
                elif self._is_computed(triple, answered):
                    reasons[triple] = DIGEST
            yield from (Trace(commit.id, triple, why, matching.get(triple, "")) for triple, why in reasons.items())

    def _may_contain(self, commit: Commit) -> bool:
        document = commit.data.decode()
        if any(plain_value(node) in document for node, _ in self._wanted.properties):
            return True
        return self._wanted.may_stand_in(document)

    def may_name(self, data: bytes) -> bool:
        """Return whether a document contains one of the texts, or may name a node or file of the first pass."""
        if identity_in(data) in self._matches:
            return True
        document = data.decode("utf-8", "replace")
        names = map(plain_value, chain(self._named, self._touched, self._entries))
        paths = (max(_NEVER_ESCAPED.findall(path), key=len, default="") for path in self._files)
        return any(name in document for name in chain(names, self._file_digests, paths))

    def _matching(self, commit: Commit) -> dict[Triple, str]:
        form, forms = self._wanted.form, dict[Triple, str]()
        for s, p, o in sorted(commit.triples):
            if _is_own((s, p, o), commit) or p in DIGESTS:
                continue
            shown = next((literal(each.path) for each in anchors_of([o])), o) if p in BLOBS else o
            named = AS_IT_IS if (s, p) in self._wanted.properties else form(shown, s) or form(s, s) or form(p, s)
            if named is not None:
                forms[s, p, o] = named
        return forms

    def _record(self, triple: Triple, commit: Commit) -> None:
        subject, predicate, value = triple
        if subject.startswith(_EVIDENCE) and predicate == LABEL:
            self._named.add(subject)
        self._named |= {term for term in (subject, value) if is_iri(term) and self._wanted.occurs_in(term, term)}
        blanks = {term for row in commit.triples for term in row if term.startswith(_GENID)}
        self._file_digests |= {node.removeprefix(_GENID).split("-")[0] for node in blanks}
        item = iri(subject[1:-1].split("/alternatives/")[0])
        judged = {s for s, p, _ in commit.triples if p in (_KEY, _REQUEST)}
        for owner in [item] if item in judged or item.startswith(_EVIDENCE) else judged or [item]:
            self._touched.setdefault(owner, set()).add(predicate if item == subject == owner else TYPE)

    def _record_sources(self, nodes: set[Term], commit: Commit) -> None:
        """Record the source files, and digests of entries, of the memories with triples about *nodes*."""
        items = {iri(node[1:-1].split("/alternatives/")[0]) for node in nodes if is_iri(node)}
        items |= {s for s, _, o in commit.triples if o in nodes and o.startswith(_EVIDENCE)}
        for subject, predicate, value in commit.triples:
            if subject in items and predicate == SOURCE_DIGEST:
                self._entries.add(value)
            elif subject in items and predicate in BLOBS:
                anchors = anchors_of([value])
                self._files.update(each.path for each in anchors)
                self._sources.update(anchors if predicate == SOURCE_BLOB else ())

    def _is_named(self, term: Term) -> bool:
        if term.startswith(_GENID):
            return term.removeprefix(_GENID).split("-")[0] in self._file_digests
        return term in self._named

    def _why_of_blob(self, value: Term) -> str | None:
        """Return why the blob id in an anchor is removed (the version contained a text, or is not available), or None.

        An imported memory lacks the markup of its file, so in such a file one word of a text is enough.
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
            if content.has_text or (content.has_word and each.path in sources):
                return DIGEST
        return None

    def _is_computed(self, triple: Triple, answered: set[Term]) -> bool:
        """Return whether the value of a triple is a digest, or a receipt, computed from a text of a touched memory."""
        subject, predicate, value = triple
        if predicate == SOURCE_DIGEST:
            return value in self._entries
        if predicate in (_REQUEST, _RECEIPT):
            return subject in self._touched or subject in answered
        if predicate != _KEY or subject not in self._touched:
            return False
        changed_keys: set[str] = set()
        for name in self._touched[subject] - {_RECEIPT}:
            changed_keys |= {"identical", *_KEYS_OF.get(name, _OTHER_KEYS)}
        return parse_literal(value).text.partition(":")[0] in changed_keys


def _words_of_speakers(matching: Iterable[Triple], commit: Commit) -> set[Triple]:
    """Return the texts of each turn that loses its session or the agent that asked, and answers that lose theirs.

    Nobody would find them any more.
    """
    lost = {subject for subject, predicate, _ in matching if predicate in (jido("saidBy"), conv("partOfConversation"))}
    turns = tuple(f"{node[:-1].removesuffix('/prompt')}/" for node in lost if not node.endswith("/answer>"))
    texts = {each for each in commit.triples if each[1] in TURN_TEXTS}
    return {each for each in texts if each[0] in lost or each[0].startswith(turns)}


def _is_own(triple: Triple, commit: Commit) -> bool:
    """Return whether *triple* is part of the description of the commit itself, which is not redacted."""
    return triple[0] == iri(commit.iri) and (triple[1] in DESCRIPTION or triple[1] == TYPE)


def without_blob(anchor: Term) -> Term:
    """Return *anchor* with the path of its file alone: its blob id is `NO_BLOB`."""
    return next((literal(str(Anchor(each.path, NO_BLOB))) for each in anchors_of([anchor])), anchor)
