"""The one pass over the lines of a commit has the results and errors of the strict parser."""

import re
import tarfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from journal_world import commit_on, fact
from test_commit import ODD, TRIPLES, merged, plain, redacted_bytes

from jidomem.journal.commit import FormatError, identity_of, leaves_of, parse, parse_strictly, verify_lines
from jidomem.rdf import terms, vocab
from jidomem.records.intent import Version

J = vocab.jido
FORMATS = Path(__file__).parent.parent / "formats"
SPACES = {"jido": vocab.JIDO, "prov": vocab.PROV, "rdf": vocab.RDF, "rdfs": vocab.RDFS, "xsd": vocab.XSD}
OWN = "0" * 64
USUAL = [
    *fact("usual", "one", 'a "text" \\ with\tescapes\n', "é😀\u2028", "brackets [(<<", "<urn:jido:commit:x> ."),
    ("<https://jido.ai/memory/usual>", J("topic"), terms.literal("formats", language="en")),
    ("<https://jido.ai/memory/usual>", J("hasTimestamp"), terms.date_time("2026-11-21T08:00:00Z")),
    ("<http://example.org/a?b=c/d?e#f/?g>", "<http://example.org/above>", "<http://example.org:80/%C3%A9>"),
    ("<http://example.org/a?b=c/d?e#f/?g>", vocab.TYPE, "<http://example.org/Thing>"),
    (J("Thing"), J("about"), vocab.THIS),
    (vocab.THIS, J("why"), terms.literal("to show a row that is not required")),
]


def outcome(read, data):
    try:
        commit = read(data)
    except FormatError as refusal:
        return type(refusal), str(refusal), refusal.line
    return commit, commit.triples, commit.redacted


def assert_alike(data):
    accepted = verify_lines(data)
    strict = outcome(parse_strictly, data)
    assert outcome(parse, data) == strict
    if accepted is not None:
        assert (accepted, accepted.triples, accepted.redacted) == strict


def expand_term(term):
    """Return a term with its prefix expanded."""
    if term == "a":
        return vocab.TYPE
    match = re.fullmatch(r'(".*"\^\^)?(\w+):(.*)', term, re.DOTALL)
    known = match and match[2] in SPACES
    return f"{match[1] or ''}<{SPACES[match[2]]}{match[3]}>" if known else term


def forge_document(text, inside=False):
    """Return a document with the id of its unchecked lines, as an attacker would forge it.

    With *inside* its own IRI in the text of a term is taken for the commit, too.
    """
    own, lines = f"<urn:jido:commit:{OWN}>", []
    nonce, *parents = [*re.findall(r"# nonce (\w{64})", text)[:1], *re.findall(r"jido:parent <\S*:(\w{64})> ", text)]
    for block in text.removesuffix("\n").split("\n\n")[1:]:
        subject, *rows = block.split("\n")
        for row in rows:
            verb, _, value = re.sub(r" [;.]\Z", "", row.removeprefix("    ")).partition(" ")
            triple = (vocab.THIS if term == own else expand_term(term) for term in (subject, verb, value))
            line = " ".join([*triple, "."]).encode(errors="surrogatepass")
            lines.append(line.replace(own.encode(), vocab.THIS.encode()) if inside else line)
    identity = identity_of(parents, leaves_of(lines, bytes.fromhex(nonce)))
    return text.replace(OWN, identity)


def open_document(commit):
    """Return the document of a commit as text, with zeros for its id."""
    return commit.data.decode().replace(commit.id, OWN)


DOCUMENTS = [open_document(each) for each in (commit_on(Version(), "usual", USUAL), plain(), merged())]
ODD_TERMS = r"""
<http://example.org/a> <http://a:b/> <http://a:8/> <http://a:> <http://> <http:///x> <//a> <a> <> <urn:> <urn:a//b>
<x://> <x:/> <x://a@b/> <x://a:1@b/> <x:a?b?c#d> <x:a#b#c> <x:%zz> <x:%2f> <x:%2> <x:[a]> <http://[::1]/> <X:a> <9x:a>
<x:a|b> <x:a\u0062> <x:a{b}> <x-1+.:a> <http://ex.org/é> <http://a..b/> <http://-/> <http://a/../b> <x:a'b>
<https://jido.ai/ontology#Fact> <https://jido.ai/ontology#a.b> <https://jido.ai/ontology> <http://www.w3.org/ns/prov#>
<urn:jido:this> <urn:jido:commit:0> _:b [] () [jido:a|jido:b] true 1 1.5 'x' '''x''' "x "x"" "\" "x"@en "x"@EN
"x"@en-gb "x"@abcd "x"@a "x"@en--ltr "x"@1a "x"^^xsd:string "x"^^xsd:integer "x"^^xsd:x-y "x"^^xsd:9 "x"^^rdf:langString
"x"^^jido:kind "x"^^<urn:kind> "x"^^<http://www.w3.org/2001/XMLSchema#date> "x"^^ "\u0041" "\u007F" "\x" "\'" jido:
jido:a.b jido:a. jido:9 jido:a\-b jido:a- jido:é jido:a:b unknown:a :a a rdf:type xsd:string rdfs:label jido:%41
"\t\b\n\r\f\"\\" "\u0001" "\U0001F600" <<jido:a <http://1.2/>
"""
TERMS = [
    *ODD_TERMS.split(),
    f"<urn:jido:commit:{OWN}>",
    f'"<urn:jido:commit:{OWN}>"',
    f'"x <urn:jido:commit:{OWN}> ."',
    '"<urn:jido:this>"',
]
TERMS += [
    f'"{character}"' for character in "\x00\x01\t\x1f\x7f\x80\x85\u2028\ufdd0\ufffd\ufffe\uffff\U0001fffe\U0010ffff'<>"
]
CHARACTERS = "\x00\x01\t\n\r\x7f\x85\u2028\ufeff\ufffd\ufffe\uffff😀é \\\"'<>;.,[](){}|_:#@^%?/-+aA0é"
PLACE = st.integers(0, 10**6)


def at(text, place):
    return place % (len(text) + 1)


def replace_character(text, place, other, character):
    return text[: at(text, place)] + character + text[at(text, place) + 1 :]


def insert_character(text, place, other, character):
    return text[: at(text, place)] + character + text[at(text, place) :]


def remove_character(text, place, other, character):
    return text[: at(text, place)] + text[at(text, place) + 1 :]


def with_lines(change):
    def changed(text, place, other, character):
        lines = text.split("\n")
        change(lines, place % len(lines), other % len(lines))
        return "\n".join(lines)

    return changed


def swap(lines, one, other):
    lines[one], lines[other] = lines[other], lines[one]


def swap_rows(lines, one, other):
    """Swap two lines and keep the end of each place."""
    swap(lines, one, other)
    (lines[one], lines[other]) = (lines[one][:-1] + lines[other][-1:], lines[other][:-1] + lines[one][-1:])


def expand_prefix(lines, one, other):
    space = list(SPACES)[other % len(SPACES)]
    lines[one] = re.sub(rf"\b{space}:([\w-]+)", rf"<{SPACES[space]}\1>", lines[one])


def escape(lines, one, other):
    """Write a letter of a text by its code point, or an escape as the character itself."""
    lines[one] = re.sub(r"\\n", "\n", lines[one]) if other % 2 else re.sub(r'"(\w)', r'"\\u0061', lines[one])


def use_term(lines, one, other):
    """Replace a value, a property or a subject by another term."""
    term, (verb, _, value) = TERMS[other % len(TERMS)], lines[one][4:-2].partition(" ")
    if not lines[one].startswith("    "):
        lines[one] = term
    else:
        lines[one] = f"    {verb} {term}{lines[one][-2:]}" if other % 3 else f"    {term} {value}{lines[one][-2:]}"


def move_block(text, place, other, character):
    top, *blocks = text.split("\n\n")
    blocks.insert(other % len(blocks), blocks.pop(place % len(blocks)))
    return "\n\n".join([top, *blocks])


def split_block(lines, one, other):
    """Split a block, with the same or another subject for the second part."""
    if lines[one].endswith(" ;"):
        start = next((line for line in reversed(lines[:one]) if line[:1] in "<jpx"), "<urn:x>")
        lines[one : one + 1] = [lines[one][:-1] + ".", "", start if other % 2 else f"<urn:{other}>"]


CHANGES = [
    *(replace_character, insert_character, remove_character, move_block),
    *map(
        with_lines,
        (
            *(swap, swap_rows, expand_prefix, escape, use_term, use_term, split_block),
            lambda lines, one, other: lines.insert(other, lines[one]),
            lambda lines, one, other: lines.pop(one),
            lambda lines, one, other: lines.insert(one, ""),
            lambda lines, one, other: lines.__setitem__(one, lines[one] + " "),
        ),
    ),
]
CHANGE = st.tuples(st.sampled_from(CHANGES), PLACE, PLACE, st.sampled_from(CHARACTERS))


@settings(max_examples=300)
@given(st.sampled_from(DOCUMENTS), st.lists(CHANGE, min_size=1, max_size=3))
def test_a_changed_document_has_the_same_outcome_whether_its_id_is_forged_or_not(text, changes):
    # C027
    for change, *places in changes:
        text = change(text, *places)

    assert_alike(text.encode(errors="surrogatepass"))
    try:
        document = forge_document(text)
    except (ValueError, UnicodeError):  # no nonce is left, or a parent is none
        return
    assert_alike(document.encode())


@settings(max_examples=150)
@given(TRIPLES, st.randoms(use_true_random=False))
def test_any_built_document_and_any_flipped_byte_of_it_have_the_same_outcome(body, chance):
    data = commit_on(Version(), "a", body).data
    assert_alike(data)
    changed = bytearray(data)
    changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    assert_alike(bytes(changed))


@settings(max_examples=300)
@given(st.from_regex(r"[a-zA-Z0-9+.-]{1,3}:(//)?[a-z0-9:@/?#%.,;!$&'()*+=~_|^\[\]-]{0,12}", fullmatch=True))
@example("http://example.org/a")
@example("http://a:123456/")
def test_any_iri_has_the_same_outcome_as_subject_property_and_value(iri):
    for old in (
        "\n<http://example.org/a?b=c/d?e#f/?g>\n",
        " <http://example.org/above> ",
        " <http://example.org:80/%C3%A9> ",
    ):
        assert DOCUMENTS[0].count(old) == 1
        assert_alike(forge_document(DOCUMENTS[0].replace(old, f"{old[0]}<{iri}>{old[-1]}")).encode())


def test_any_value_has_the_same_outcome():
    for text in DOCUMENTS:
        value = re.search(r'jido:summary (".*") [;.]', text)[1]
        for term in [*TERMS, "jido:a , jido:b", '"x" , "y"', '"x" ; jido:a "y"', '"""x"""', '"a" "b"', "<x:a b>"]:
            for inside in (False, True):
                assert_alike(forge_document(text.replace(value, term), inside).encode())


def block_of(subject, rows):
    return f"{subject}\n" + " ;\n".join(rows) + " ."


def structures(text):
    """Yield documents with the terms of a document in another structure."""
    _, *blocks = text.removesuffix("\n").split("\n\n")
    for place, block in enumerate(blocks):
        before, after = blocks[:place], blocks[place + 1 :]
        subject, *rows = block[:-2].replace(" ;\n", "\n").split("\n")
        turned = [[*rows[:at], *rows[at : at + 2][::-1], *rows[at + 2 :]] for at in range(len(rows) - 1)]
        for changed in (*turned, [*rows, rows[-1]], [rows[0].replace(" a ", " rdf:type "), *rows[1:]]):
            yield [*before, block_of(subject, changed), *after]
        for at in range(1, len(rows)):
            first, second = block_of(subject, rows[:at]), block_of(subject, rows[at:])
            yield [*before, first, second, *after]
            yield [first, *sorted([*before, *after, second], key=lambda each: expand_term(each.partition("\n")[0]))]
        yield [*before, *after]
        yield [*after, block, *before]
        yield [*before, subject, *after]
        yield [*before, f"{block} ", *after]
        yield [*before, f"{block}\n", *after]


def test_any_other_structure_has_the_same_outcome():
    for text in DOCUMENTS:
        top, *blocks = text.removesuffix("\n").split("\n\n")
        changed = ["\n\n".join([top, *each]) + "\n" for each in structures(text)]
        changed += [
            "\n\n".join([other, *blocks]) + "\n" for other in (f"{top}\n", f"{top}\n# a note", f"{top} ", f"\n{top}")
        ]
        changed += [text.removesuffix("\n"), f"{text}\n", f"{text} ", text.replace("\n", "\r\n"), f"\ufeff{text}", ""]
        for each in changed:
            assert_alike(each.encode())
            assert_alike(forge_document(each).encode() if "# nonce" in each else b"")


def test_a_document_of_common_terms_is_accepted_by_the_fast_pass():
    for commit in (commit_on(Version(), "usual", USUAL), merged()):
        assert verify_lines(commit.data) == commit
        assert verify_lines(commit.data).triples == commit.triples
        assert verify_lines(forge_document(open_document(commit)).encode()) == commit


@pytest.mark.parametrize("version", ["0.1.0", "0.1.1"])
def test_the_documents_of_every_version_are_accepted_by_the_fast_pass(version):
    with tarfile.open(FORMATS / version / "root.tar.gz") as root:
        names = [name for name in root.getnames() if name.endswith(".ttl") and "/memory/2" in name]
        accepted = [verify_lines(root.extractfile(name).read()) for name in names if ".redacted." not in name]
    assert accepted
    assert None not in accepted


def test_terms_outside_of_the_grammar_are_left_to_the_parser():
    for data in (commit_on(Version(), "odd", ODD).data, redacted_bytes()):
        assert verify_lines(data) is None
        assert parse(data) == parse_strictly(data)


def test_the_number_of_triples_is_known_without_them():
    for commit in (plain(), parse(redacted_bytes()), parse(merged().data)):
        assert commit.size == len(commit.triples)
