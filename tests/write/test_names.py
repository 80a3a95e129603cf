"""The canonical form of names, IRIs and moments, and the repairs that change a value into it."""

from random import Random

import pytest

from jidomem.rdf.vocab import BASE, JIDO, SHAPE
from jidomem.records.file_anchor import plain_path
from jidomem.write import canonical

FOLDERS = ("memory", "agents", "projects", "sessions", "evidence", "submissions", "policies")
DAY = "2026-11-21T00:00:00.000000Z"


@pytest.mark.parametrize(
    ("raw", "slug"),
    [("  The Architect ", "the-architect"), ("E\u0301va", "éva"), ("a_b.c-d", "a_b.c-d"), ("-.a.-", "a"), ("??", ""),
     ("STRASSE ß", "strasse-ss"), ("\u0301", ""), ("💥\u0301x", "x"), ("ana\ufe0f", "ana"), ("é\u200d", "é")],
)  # fmt: skip
def test_a_slug_has_lower_case_letters_and_digits(raw, slug):
    assert canonical.slug(raw) == slug


@pytest.mark.parametrize(("first", "second"), [("राम", "रीम"), ("สมชาย", "สมชัย"), ("நிதி", "நதி"), ("İnci", "I nci")])
def test_names_that_differ_in_combining_marks_have_different_slugs(first, second):
    assert canonical.slug(first) != canonical.slug(second)
    for name in (first, second):
        assert canonical.is_absolute(f"https://jido.ai/agents/{canonical.slug(name)}")


def test_slugs_are_idempotent():
    random = Random(7)
    characters = [chr(n) for n in (*range(0x20, 0xD800), *range(0xF900, 0xFFFE), 0x1F4A5, 0x1D400, 0xE0100)]
    for _ in range(5_000):
        slug = canonical.slug("".join(random.choices(characters[:0x400] if random.random() < 0.5 else characters, k=4)))
        assert canonical.slug(slug) == slug


@pytest.mark.parametrize(
    "raw",
    ["2026/11/21", "21.11.2026", "2026.11.21", "21 Nov 2026", "21 November 2026", "Nov 21, 2026", "November 21, 2026",
     "Nov 21 2026", " November  21  2026\n"],
)  # fmt: skip
def test_a_date_in_another_unambiguous_format_is_read_as_its_day(raw):
    assert canonical.other_date(raw) == DAY
    assert canonical.moment(raw) is None


def test_a_moment_with_a_year_of_four_digits_is_accepted():
    assert canonical.moment("1000-01-01") == "1000-01-01T00:00:00.000000Z"
    assert (canonical.moment("0999-12-31T23:59:59Z"), canonical.moment("soon"), canonical.other_date("11/21/2026")) == (
        None,
    ) * 3


@pytest.mark.parametrize(
    ("raw", "squashed", "key"),
    [
        ("jido:In-Progress", "inprogress", "in_progress"), (JIDO + "ToolSource", "toolsource", "tool_source"),
        ("a  b__c-D", "abcd", "a_b_c_d"), ("x:y:Z", "z", "z"), ("Ä1", "1", "ä1"),
    ],
)  # fmt: skip
def test_names_are_compared_without_case_and_separators(raw, squashed, key):
    assert (canonical.letters_and_digits(raw), canonical.type_key(raw)) == (squashed, key)


@pytest.mark.parametrize(
    ("raw", "nearest"),
    [
        ("med", "medium"), ("me", None), ("hgih", "high"), ("Me-Di um", "medium"), ("tool", None),
        ("toolsoruce", "ToolSource"), ("toolusre", "ToolUser"), ("xyzzy", None), ("hi", None), ("", None),
    ],
)  # fmt: skip
def test_the_nearest_name_has_the_same_prefix_or_is_most_similar(raw, nearest):
    assert canonical.nearest(raw, ["low", "medium", "high", "ToolSource", "ToolSometimes", "ToolUser"]) == nearest


@pytest.mark.parametrize(
    ("raw", "expanded"),
    [
        ("jido:Fact", JIDO + "Fact"), ("xsd:a-b_1", "http://www.w3.org/2001/XMLSchema#a-b_1"), ("other:Fact", None),
        ("jido:1a", None), ("Jido:Fact", None), (" jido:Fact", None), ("jido:a/b", None), ("Fact", None),
    ],
)  # fmt: skip
def test_a_prefixed_name_of_a_known_prefix_is_expanded(raw, expanded):
    assert canonical.expand(raw) == expanded


@pytest.mark.parametrize(
    ("raw", "expected", "expected_in_prose"),
    [
        ("urn:x:a", True, True), (" HTTPS:/a ", True, True), ("http://a b", True, False), (" jido:Fact ", True, True),
        ("<a b>", True, False), (" <a> ", True, True), ("< urn:x", True, False), ("a: b", False, False),
        ("see https://a", False, False), ("a < b", False, False), ("plain", False, False), ("<a> <b>", False, False),
    ],
)  # fmt: skip
def test_a_reference_looks_like_an_iri_and_in_prose_is_a_single_token(raw, expected, expected_in_prose):
    assert (canonical.is_reference(raw), canonical.is_reference(raw, prose=True)) == (expected, expected_in_prose)


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ("./src//a.py", "src/a.py"), ("src/../lib/", "lib/"), ("src/./a", "src/a"), ("src/a/", "src/a/"), ("./", "./"),
        ("a/..", "a/.."), ("a/../", "a/../"), ("../a//b", "../a//b"), ("x/../../a", "x/../../a"),
        ("https://x.org//a", "https://x.org//a"), ("a plain text", "a plain text"), ("...//a", ".../a"),
    ],
)  # fmt: skip
def test_a_path_is_written_without_redundant_parts(raw, path):
    assert plain_path(raw) == path


def test_iris_of_the_folders_of_jidomem_are_own_and_other_jidomem_iris_reserved():
    assert all(canonical.is_ours(f"{BASE}{folder}/x") for folder in FOLDERS)
    assert canonical.is_ours("urn:jido:this")
    reserved = (f"{JIDO}x", f"{SHAPE}x", f"{BASE}graphs/x")
    assert [canonical.is_ours(text) for text in reserved] == [False] * 3
    assert all(canonical.is_reserved(text) for text in (*reserved, f"{BASE}memory/x", "urn:jido:x"))
    for unowned in (BASE, f"{BASE}memory", f"{BASE}other/x", "urn:jid:x", "https://example.org/memory/"):
        assert not canonical.is_ours(unowned)
        assert not canonical.is_reserved(unowned)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("https://example.org/a", True), ("http://a", True), ("urn:x:y", True), ("urn:", False), ("ftp://a", False),
        ("HTTPS://a", False), ("https://A/", False), ("https://a/%zz", False), ("http://[", False), ("a", False),
        ("https://a/\u202e", False), ("urn:" + "x" * 2044, True), ("urn:" + "x" * 2045, False), ("URN:x", False),
        (" urn:x", False),
    ],
)  # fmt: skip
def test_an_absolute_iri_is_valid_in_canonical_form_up_to_a_length(raw, expected):
    assert canonical.is_absolute(raw) is expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("<HTTPS://Jido.ai/Agents/ The Architect>", BASE + "agents/thearchitect"), ("URN:X:Y", "urn:X:Y"),
        ("https://jido.ai/Sessions/S_1!", BASE + "sessions/s_1"), ("https://jido.ai/agents/??", BASE + "agents/??"),
        ("http://jido.ai/Memory/ABC", BASE + "memory/abc"), ("https://jido.ai/Projects/P1", BASE + "projects/P1"),
        ("https://jido.ai/Evidence", BASE + "Evidence"), ("https://jido.ai/Other/X", BASE + "Other/X"),
        ("HTTP:/Example.ORG/A?B=C#D", "http://example.org/A?B=C#D"), ("http://A?Q", "http://a?Q"), (" a b ", "ab"),
        ("https://example.org/Memory/ABC", "https://example.org/Memory/ABC"), ("urx:A", "urx:A"),
    ],
)  # fmt: skip
def test_an_iri_is_written_in_its_canonical_form(raw, expected):
    assert canonical.written(raw) == expected


def test_repeated_entries_are_removed_in_order():
    assert canonical.unique(["b", "a", "b"]) == ["b", "a"]


def test_a_repair_changes_only_its_field_and_a_swap_replaces_nested_values():
    values = {"about": ["x", " x ", {"@id": "x", "n": 1}, ("x", ["xx"])], "topic": "x"}

    assert canonical.put("topic", "y")(values) == values | {"topic": "y"}
    assert canonical.swap("topic", "x", "y")(values) == values | {"topic": "y"}
    assert canonical.swap("topic", "z", "y")(values) == values
    assert canonical.swap("about", "x", "y")(values) == values | {
        "about": ["y", "y", {"@id": "y", "n": 1}, ["y", ["xx"]]]
    }
    assert canonical.swap("none", "x", "y")({}) == {"none": None}
    assert values["topic"] == "x"
