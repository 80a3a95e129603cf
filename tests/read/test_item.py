from datetime import UTC, datetime

import pytest
from conftest import intent
from reader_world import new_index, reader_of, triples, world_index

from jidomem.errors import IntentRefused, NotFound
from jidomem.rdf.vocab import XSD, graph_iri, short_id

M = "https://jido.ai/memory/"


@pytest.fixture(scope="module")
def reader():
    return reader_of(world_index())


def test_a_memory_is_returned_whole_as_plain_values(reader):
    assert reader.get_memory("demo", M + "rust-170") == {
        "iri": M + "rust-170",
        "type": "fact",
        "class": "Fact",
        "own_classes": [],
        "status": "active",
        "properties": {
            "summary": ["The build needs Rust 1.70"],
            "appliesToProject": ["https://jido.ai/projects/demo"],
            "hasConfidence": ["https://jido.ai/ontology#Low"],
            "hasAssertionStatus": ["https://jido.ai/ontology#Asserted"],
            "hasTimestamp": [datetime(2026, 1, 2, tzinfo=UTC)],
            "recordedAt": [datetime(2026, 1, 2, tzinfo=UTC)],
            "recordedIn": ["urn:jido:commit:" + "0" * 63 + "2"],
            "assertedBy": ["https://jido.ai/agents/ana"],
            "assertedIn": ["https://jido.ai/sessions/first"],
            "supersedes": [M + "rust-160"],
        },
        "superseded_by": [],
        "invalidated_by": [],
        "commit": "0" * 63 + "2",
        "recorded_at": datetime(2026, 1, 2, tzinfo=UTC),
    }


@pytest.mark.parametrize(
    ("name", "status", "superseded_by", "invalidated_by"),
    [
        ("store-sqlite", "superseded", ["store-oxigraph"], []),
        ("lock-server", "invalidated", [], ["no-lock-server"]),
        ("one-file", "pending", [], []),
        ("old-proposal", "rejected", [], ["proposal-settled"]),
        ("dangling", "active", [], []),  # a missing memory ends nothing
    ],
)
def test_a_memory_has_its_status_and_the_memories_that_ended_it(reader, name, status, superseded_by, invalidated_by):
    item = reader.get_memory("demo", M + name)
    assert item["status"] == status
    assert item["superseded_by"] == [M + other for other in superseded_by]
    assert item["invalidated_by"] == [M + other for other in invalidated_by]


def test_a_memory_is_returned_as_of_a_moment(reader):
    item = reader.get_memory("demo", M + "store-sqlite", as_of="2026-01-02")
    assert (item["status"], item["superseded_by"]) == ("active", [])


@pytest.mark.parametrize(
    ("name", "as_of"), [("rust-17", None), ("foreign-fact", None), ("apart-fact", None), ("rust-175", "2026-01-01")]
)
def test_a_later_foreign_or_unknown_memory_is_not_found(reader, name, as_of):
    with pytest.raises(NotFound, match=f"demo has no memory '{M}{name}'") as refusal:
        reader.get_memory("demo", M + name, as_of=as_of)
    assert refusal.value.code == "not_found"


def test_a_memory_recorded_after_as_of_is_refused_with_its_recording_time(reader):
    with pytest.raises(NotFound, match="as of then") as refusal:
        reader.get_memory("demo", M + "rust-175", as_of="2026-01-01")
    assert refusal.value.hint == "it was recorded at 2026-01-03T00:00:00.000000Z: ask as of that moment or a later one"


def test_an_unknown_memory_is_refused_with_the_nearest(reader):
    with pytest.raises(NotFound) as refusal:
        reader.get_memory("demo", M + "rust-17")
    assert f"{M}rust-170" in refusal.value.hint


@pytest.fixture(scope="module")
def short_reader():
    index = new_index()
    ids = ("0197a1b2-0000-7000-8000-00000000abcd", "0197a1b2-0000-7000-8000-00001111abcd", "0197ffff-0000-7000-8000-0")
    ids = (*ids, "Use-Oxigraph-ÄB")
    rows = "".join(f"m:{name} jido:appliesToProject p:demo . " for name in ids)
    index.apply(graph_iri("demo"), "c", triples(rows + "m:dddd1111abcd jido:appliesToProject p:other ."))
    return reader_of(index)


@pytest.mark.parametrize(
    ("short", "ending"),
    [
        ("0000abcd", "00000000abcd"),
        ("1111ABCD", "00001111abcd"),
        ("0197f", "8000-0"),
        ("1111a", "00001111abcd"),
        ("Use-Oxi", "ÄB"),
        ("graph-ÄB", "ÄB"),
        (f"{M}0197ffff-0000-7000-8000-0", "8000-0"),
    ],
)
def test_a_short_id_is_a_unique_beginning_or_end_of_an_id(short_reader, short, ending):
    assert short_reader.resolve("demo", short).endswith(ending)


@pytest.mark.parametrize("short", ["bcd", "ffff", "", "urn:nobody", 'x"y) z'])
def test_an_unknown_short_id_is_not_found(short_reader, short):
    with pytest.raises(NotFound, match="demo has no memory"):
        short_reader.resolve("demo", short)


def test_an_ambiguous_short_id_is_refused_with_all_its_memories(short_reader):
    with pytest.raises(NotFound) as refusal:
        short_reader.resolve("demo", "abcd")
    assert "00000000abcd" in refusal.value.hint
    assert "00001111abcd" in refusal.value.hint


def test_the_displayed_short_id_is_resolved(short_reader):
    iri = short_reader.resolve("demo", "0000abcd")
    assert short_reader.resolve("demo", short_id(iri)) == iri


def test_words_of_a_summary_given_as_an_id_are_refused_with_the_nearest_memories(memory):
    first = memory.writer.submit_intent("p", intent(summary="CI hangs on the worker of the queue")).iri
    memory.writer.submit_intent("p", intent(summary="The build needs Rust"))

    for name in ("CI hangs", "ci hangs on the worker of the queue"):
        with pytest.raises(NotFound) as error:
            memory.reader.resolve("p", name)
        assert error.value.candidates == (first,) or [*error.value.candidates] == [first]
        assert error.value.hint == f'did you mean {short_id(first)} "CI hangs on the worker of the queue"?'
    with pytest.raises(IntentRefused) as refused:
        memory.writer.submit_intent("p", intent(summary="CI is quick", supersedes=["CI hangs"]))
    assert refused.value.violations[0].nearest == first


def test_an_active_memory_is_suggested_before_a_more_similar_ended_one(memory):
    old = memory.writer.submit_intent("p", intent(summary="Loaves are scored before baking")).iri
    new = memory.writer.revise("p", old, changes={"summary": "Loaves are scored before the bake"}, reason="r").iri

    with pytest.raises(NotFound) as error:
        memory.reader.resolve("p", "Loaves are scored before baking")

    assert [*error.value.candidates] == [new, old]


def test_an_own_property_shares_no_name_with_another_and_is_given_as_json_ld(memory):
    given = {
        "https://crm.example/tier": "gold",
        "https://sla.example/tier": ["24h", 7, 0.5, True, "\tx\n", "https://a.example/b"],
        "https://crm.example/topic": {"@value": "eigen", "@language": "de"},
        "urn:x:summary": [
            {"@value": "2026-01-02", "@type": f"{XSD}date"},
            {"@value": "9" * 20, "@type": f"{XSD}integer"},
        ],
    }
    item = memory.writer.submit_intent("p", intent(**given)).iri

    properties = memory.reader.get_memory("p", item)["properties"]
    assert properties["summary"] == [intent()["summary"]]
    assert properties.keys().isdisjoint({"topic", "tier"})
    assert properties["https://crm.example/tier"] == ["gold"]
    values = ["24h", 7, 0.5, True, "\tx\n", {"@id": "https://a.example/b"}]
    assert sorted(map(str, properties["https://sla.example/tier"])) == sorted(map(str, values))
    for name in ("https://crm.example/topic", "urn:x:summary"):
        expected = given[name] if isinstance(given[name], list) else [given[name]]
        assert sorted(map(str, properties[name])) == sorted(map(str, expected))
