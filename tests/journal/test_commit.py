"""The format of a commit: golden bytes, a second implementation, and the detection of every changed byte."""

import random
import re
from pathlib import Path

import pyoxigraph
import pytest
import verifier
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from journal_world import START, STREAM, WRITER, commit_on, fact

from jidomem.base.clock import format_timestamp
from jidomem.journal.commit import FormatError, advance, build, parse
from jidomem.rdf import terms, vocab
from jidomem.records.intent import Version

GOLDEN = Path(__file__).parent / "golden"
J = vocab.jido
ODD = [
    *fact("odd", 'tab\t, line\n, "quoted", back\\slash, nul\x00, bell\x07, del\x7f, é😀, separators\u0085\u2028'),
    ("<https://jido.ai/memory/odd>", J("topic"), terms.literal("formats", language="en-GB")),
    ("<https://jido.ai/memory/odd>", J("detailedExplanation"), '""'),
    ("<https://jido.ai/memory/odd>", J("confidenceValue"), terms.literal("0.850", vocab.XSD + "decimal")),
    ("<https://jido.ai/memory/odd>", J("count"), terms.literal("007", vocab.XSD + "integer")),
    ("<https://jido.ai/memory/odd>", J("kind"), terms.literal("x", "https://example.org/kind")),
    ("<https://jido.ai/memory/odd>", J("9lives"), "<https://jido.ai/ontology#a.b>"),
    ("<https://jido.ai/memory/odd>", "<http://www.w3.org/2000/01/rdf-schema#seeAlso>", vocab.TYPE),
    ("<https://jido.ai/agents/a>", vocab.TYPE, J("Agent")),
    ("<https://example.org/é?q=1#x>", J("about"), "<https://jido.ai/memory/odd>"),
    (vocab.THIS, J("reason"), terms.literal("to show every form")),
]


def plain():
    return commit_on(Version(), "plain", ODD)


def merged():
    left, right = commit_on(Version(), "left", second=1), commit_on(Version(), "right", second=2)
    return commit_on(Version.of([left.head, right.head]), "merged", second=3)


def redacted_bytes():
    return verifier.redact(plain().data, lambda triple: triple[1] == J("summary"))


def edited(data, old, new):
    assert data.count(old) >= 1
    return data.replace(old, new, 1)


def refusal(data):
    with pytest.raises(FormatError) as refused:
        parse(data)
    return refused.value


@pytest.mark.parametrize(
    ("name", "data"), [("plain", plain().data), ("merged", merged().data), ("redacted", redacted_bytes())]
)
def test_a_golden_file_is_written_exactly_and_read_by_both_implementations(name, data):
    golden = (GOLDEN / f"{name}.ttl").read_bytes()
    assert data == golden

    identity, parents, triples, _ = verifier.read(golden)
    commit = parse(golden)
    assert (commit.id, commit.redacted) == (identity, name == "redacted")
    assert list(commit.parents) == sorted(parent.hex() for parent in parents)
    assert commit.triples == set(triples)


def test_a_commit_reads_back_as_it_was_built():
    # C074 C079
    built = merged()
    assert parse(built.data) == built
    assert (built.position, len(built.parents), built.recorded_at) == (2, 2, "2026-11-21T08:00:03.123456Z")
    assert (built.graph, built.committer, built.ontology_version) == (STREAM.graph, WRITER, "0.1.0")
    assert (f"<{built.iri}>", J("position"), terms.integer(2)) in built.triples
    assert ("<https://jido.ai/memory/merged>", J("recordedIn"), f"<{built.iri}>") in built.triples


def test_a_redacted_commit_keeps_its_id_and_loses_only_the_redacted_triples():
    whole, redacted = plain(), parse(redacted_bytes())
    assert redacted.id == whole.id
    assert {predicate for _, predicate, _ in whole.triples - redacted.triples} == {J("summary")}
    assert b"bell" not in redacted.data
    assert bytes.hex(b"nonce of") not in redacted.data.decode()


def test_a_redacted_commit_has_a_salt_for_each_triple_and_its_leaves_in_order():
    data = verifier.redact(plain().data, lambda triple: triple[1] in {J("summary"), J("topic"), J("kind")})
    salt = re.search(rb"# salt .*\n", data)[0]
    leaves = re.findall(rb"# leaf .*\n", data)

    for changed in (edited(data, salt, b""), edited(data, salt, 2 * salt)):
        error = refusal(changed)
        assert re.fullmatch(r"\d+ salts for \d+ triples, or leaves out of order", str(error))
        assert error.line == 7
    swapped = edited(data, b"".join(leaves[:2]), leaves[1] + leaves[0])
    assert "leaves out of order" in str(refusal(swapped))
    assert len(leaves) == 3 == len(plain().triples - parse(data).triples)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
NAME = st.from_regex(r"[A-Za-z0-9_.é-]{0,12}", fullmatch=True)
LITERAL = st.one_of(
    TEXT.map(pyoxigraph.Literal),
    st.builds(
        lambda text, tag: pyoxigraph.Literal(text, language=tag), TEXT, st.sampled_from(["en", "de-AT", "EN-gb"])
    ),
    st.builds(
        lambda text, kind: pyoxigraph.Literal(text, datatype=pyoxigraph.NamedNode(kind)),
        TEXT,
        st.sampled_from([vocab.XSD + "integer", vocab.XSD + "string", vocab.XSD + "x.y", "urn:x:kind", vocab.JIDO]),
    ),
).map(str)
NODE = st.one_of(
    st.builds(lambda space, name: f"<{space}{name}>", st.sampled_from([vocab.JIDO, vocab.XSD, "urn:x:"]), NAME),
    st.sampled_from([vocab.THIS, vocab.TYPE, "<https://jido.ai/memory/1>"]),
)
PREDICATE = st.builds(lambda name: f"<urn:p:{name}>", NAME) | st.just(vocab.TYPE)
TRIPLES = st.lists(st.tuples(NODE, PREDICATE, NODE | LITERAL), max_size=8)


@settings(max_examples=150)
@given(TRIPLES, st.randoms(use_true_random=False))
def test_terms_in_any_order_give_one_document_read_by_both_implementations(body, shuffle):
    # C078 C079 C114
    commit = commit_on(Version(), "a", body)
    shuffled = list(body)
    shuffle.shuffle(shuffled)

    assert commit_on(Version(), "a", shuffled + shuffled).data == commit.data
    assert parse(commit.data) == commit
    assert verifier.read(commit.data)[0] == commit.id
    expected = {tuple(f"<{commit.iri}>" if term == vocab.THIS else term for term in triple) for triple in body}
    assert expected <= commit.triples


@pytest.mark.parametrize("name", ["plain", "merged", "redacted"])
def test_no_single_byte_of_a_file_can_change_unseen(name):
    data = (GOLDEN / f"{name}.ttl").read_bytes()
    chance = random.Random(7)
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1 << chance.randrange(8)
        assert refusal(bytes(changed)).line is not None, bytes(changed[place - 9 : place + 9])


def test_a_file_cut_short_anywhere_is_refused():
    data = plain().data
    assert all(refusal(data[:length]) for length in range(len(data)))


BLANK = b"    jido:committer [] ;\n"
NOT_WHAT_IT_MUST_BE = "^committer, stream, ontology version or a parent is malformed$"
OWN = b"    jido:committer <https://jido.ai/agents/memory-writer> ;\n"


@pytest.mark.parametrize(
    ("old", "new", "message", "line"),
    [
        (b"journal 1", b"journal 2", "^journal format '2' is not known here, only 1: upgrade jidomem$", 1),
        (b"# jidomem", b"# notes of", "^not a jidomem journal file: it does not begin with", 1),
        (b"@prefix jido:", b"@prefix jida:", "^the prefix lines are not those of the format$", 2),
        (b"\n# nonce", b"\n# nonse", "^no nonce, and not the salts and leaves of a redacted commit$", 7),
        (b"\n\n", b"\n# nonce " + b"0" * 64 + b"\n\n", "^a nonce must be the only line$", 8),
        (b"Fact ;", b"Fact ", "Parser error", 28),
        (OWN, BLANK, "^a blank node: every subject and object has a name$", 12),
        (OWN, b"    jido:committer _:b ;\n", "^a blank node: every subject and object has a name$", 12),
        (OWN, b"", "^0 jido:committer of the commit, not one", 9),
        (OWN, OWN + b"    jido:committer <urn:a> ;\n", "^2 jido:committer of the commit, not one", 9),
        (OWN, b'    jido:committer "memory-writer" ;\n', NOT_WHAT_IT_MUST_BE, 9),
        (b"jido:inStream <", b'jido:inStream "a stream" ;\n    jido:instead <', NOT_WHAT_IT_MUST_BE, 9),
        (b'ontologyVersion "0.1.0"', b'ontologyVersion "0.1.0"@en', NOT_WHAT_IT_MUST_BE, 9),
        (b"    jido:position", b"    jido:parent <urn:a> ;\n    jido:position", NOT_WHAT_IT_MUST_BE, 9),
        (b"\n\n<https://jido.ai/agents/a>", b"\n\n_:b", "^a blank node: every subject and object has a name$", 23),
        (b'jido:position "1"', b'jido:position "2"', "^the commit's position .* or moment .* cannot be$", 9),
        (b'jido:position "1"', b'jido:position "01"', "^the commit's position .* or moment .* cannot be$", 9),
        (b'"2026-11-21T08:00:01', b'"2026-13-21T08:00:01', "^the commit's position .* or moment .* cannot be$", 9),
        (b'T08:00:01.123456Z"', b'T08:00:01.123456789Z"', "^the commit's position .* or moment .* cannot be$", 9),
        (b'"2026-11-21T08:00:01', b'"2026-11-21 08:00:01', "^the commit's position .* or moment .* cannot be$", 9),
        (b'journalFormat "1"', b'journalFormat "2"', "^not described as a commit of this format$", 9),
        (b"a prov:Activity", b"a prov:Entity", "^not described as a commit of this format$", 9),
        (
            b'"to show every form"',
            b'"to show another form"',
            "^hash mismatch: edited after it was written$",
            9,
        ),
        (b"jido:Agent .", b"jido:Agent.", "^not in the form of this format$", 24),
        (b"jido:Agent .", b"jido:Agent , jido:Agent .", "^not in the form of this format$", 24),
        (
            b"\n\n<https://jido.ai/agents/a>",
            b"\n# a note\n\n<https://jido.ai/agents/a>",
            "^not in the form of this format",
            22,
        ),
        (b"\n", b"\r\n", "^line ends were rewritten: a carriage return$", 1),
        ("é😀".encode(), "é😀".encode("latin-1", "ignore"), "^not UTF-8$", 35),
    ],
)
def test_a_document_that_breaks_one_rule_is_refused_by_name_and_line(old, new, message, line):
    # C027
    error = refusal(edited(plain().data, old, new))
    assert re.search(message, str(error)), str(error)
    assert error.line == line


def test_the_commit_placeholder_in_a_file_is_refused_despite_its_equal_digest():
    commit = commit_on(Version(), "a")
    own = f"recordedIn <{commit.iri}>".encode()
    data = edited(commit.data, own, b"recordedIn <urn:jido:this>")
    assert "<urn:jido:this> does not belong" in str(refusal(data))
    assert refusal(data).line == data.partition(b"<urn:jido:this>")[0].count(b"\n") + 1 > 20


@pytest.mark.parametrize(
    "triple",
    [
        ("<urn:a b>", J("p"), "<urn:o>"),
        ("<relative>", J("p"), "<urn:o>"),
        ("<urn:s>", J("p"), "<urn:o> ;\n    jido:q <urn:x>"),
        ("<urn:s>", J("p"), '"open'),
        ("<urn:s>", J("p"), '"half \ud800 a character"'),
        ("<urn:s>", J("p"), '"\\u00e9"'),
        ("<urn:s>", J("p"), '"tag"@EN'),
        ("<urn:s>", J("p"), '"direction"@en--ltr'),
        ("<urn:s>", J("p"), '"string"^^<http://www.w3.org/2001/XMLSchema#string>'),
        ("<urn:s>", J("p"), "_:blank"),
        ("_:blank", J("p"), "<urn:o>"),
        ("<urn:s>", J("p"), "<<( <urn:a> <urn:b> <urn:c> )>>"),
        ("<urn:s>", vocab.THIS, "<urn:o>"),
        (vocab.THIS, J("position"), terms.integer(7)),
        (vocab.THIS, J("parent"), "<urn:jido:commit:" + "0" * 64 + ">"),
    ],
)
def test_a_term_that_is_not_canonical_is_refused_when_a_commit_is_built(triple):
    with pytest.raises(FormatError):
        commit_on(Version(), "a", [triple])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"nonce": b"short"}, "^a nonce is 32 bytes, not 5$"),
        ({"recorded_at": "2026-11-21 08:00"}, "^the commit's position .* or moment .* cannot be$"),
        ({"graph": "not an iri"}, "Invalid IRI code point"),
        ({"body": [("<urn:s>", J("p"), '"text"@en--ltr')]}, '^text with a base direction: "text"@en--ltr$'),
        ({"body": [(vocab.THIS, J("position"), terms.integer(7))]}, "position> of a commit is written by the journal"),
    ],
)
def test_a_description_that_cannot_be_is_refused(changed, message):
    arguments = {
        "graph": STREAM.graph,
        "parents": Version(),
        "recorded_at": format_timestamp(START),
        "committer": WRITER,
        "ontology_version": "0.1.0",
        "body": [],
        "nonce": bytes(32),
    }
    assert build(**arguments).position == 1
    with pytest.raises(FormatError, match=message) as refused:
        build(**{**arguments, **changed})
    assert refused.value.line == (13 if "Invalid IRI" in message else None)  # a parser names a line


def test_a_version_advances_by_any_order_of_commits():
    one = commit_on(Version(), "one")
    two = commit_on(Version.of([one.head]), "two")
    other = commit_on(Version.of([one.head]), "other")
    assert advance(Version(), [two, other, one]) == advance(advance(Version(), [one]), [other, two])
    assert advance(Version(), [two, one]) == Version.of([two.head])


#: Parts of IRIs and texts, legal and illegal.
PARTS = [
    "a", "9", "/", "?", "#", ":", "@", "%41", "%", "%4", "[", "]", "{", " ", "é", "..", "-", "_", "~!$&'()*+,;=", "<",
    ">", "\\t", "\\n", '\\"', "\\\\", "\\u007F", "\\u0041", "\\x", "\t", "\x7f", "\x85", "\ufffe", "\U0001ffff", '"',
]  # fmt: skip
MIXED = st.lists(st.sampled_from(PARTS), max_size=2).map("".join)
BEGINNINGS = ["http://ex.org/", "http://ex.org", "https://a", "http://", "http:/", "urn:x:", "urn:", "URN:x:", "x:", ""]
IRIS = st.builds("<{}{}>".format, st.sampled_from(BEGINNINGS), MIXED)
TYPES = ["integer", "string", "", "no such"]
ENDS = ["", "", "@en", "@EN", "^^", "^^<urn:x:y>", *(f"^^<{vocab.XSD}{name}>" for name in TYPES)]
TEXTS = st.builds('"{}"{}'.format, MIXED, st.sampled_from(ENDS))


@settings(max_examples=examples(500))
@given(st.tuples(st.sampled_from(range(3)), IRIS) | st.tuples(st.just(2), TEXTS | MIXED | st.text().map(terms.literal)))
def test_a_commit_of_any_term_is_refused_or_reads_back_as_it_was_built(place):
    # C074
    triple = ["<urn:x:s>", "<urn:x:p>", '"o"']
    position, term = place
    triple[position] = term
    try:
        commit = commit_on(Version(), body=[tuple(triple)])
    except FormatError:
        return
    assert parse(commit.data) == commit
    assert tuple(triple) in commit.triples
