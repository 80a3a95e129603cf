"""Topics are compared by topic_key: in commits of this and earlier versions, and in queries by topic."""

import shutil
from pathlib import Path

import pytest
from conftest import decision, fixed_sources, intent
from hypothesis import given, settings
from hypothesis import strategies as st
from writing import refusal

import jidomem
from jidomem.base.words import topic_key
from jidomem.journal.commit import parse
from jidomem.rdf.terms import iri
from jidomem.rdf.vocab import BASE, graph_iri
from jidomem.read.provenance import on_topic
from jidomem.records.intent import CONFLICT_KEY, missing_keys

#: One commit that version 0.1.0 wrote: a decision on `internal-dns-zones`, a fact on `Server Port`, a convention on
#: `white space`.
EARLIER_STREAM = Path(__file__).parent / "data" / "topics-0.1.0"
ZONES, PORT, RULE = (f"{BASE}memory/{name}" for name in ("zones", "port", "rule"))
RIVALS = {
    "overlapping_decision": (ZONES, decision(summary="Use one zone", topic="Internal DNS\u2010zones")),
    "contradiction": (
        PORT,
        intent(summary="The port is 443", topic="server_port", about=["https://example.org/A", "src/a.py"]),
    ),
    "duplicate": (PORT, intent(summary="the port is 80", topic="server-port", rationale="another field",
                               about=["src/a.py", "https://example.org/A"])),
    "convention_clash": (
        RULE,
        intent(type="convention", summary="Use spaces", topic="Whitespace", convention_scope="GlobalScope"),
    ),
}  # fmt: skip


@pytest.fixture
def earlier_memory(tmp_path):
    """Open a root with a commit of an earlier version."""
    stream = tmp_path / ".jidomem" / "projects" / "p" / "memory"
    shutil.copytree(EARLIER_STREAM, stream)
    with jidomem.open(tmp_path / ".jidomem", project="p", agent="ana", sources=fixed_sources()) as memory:
        yield memory


@pytest.mark.parametrize("kind", RIVALS)
def test_a_topic_in_another_spelling_conflicts_with_a_memory_of_an_earlier_version(earlier_memory, kind):
    item, proposal = RIVALS[kind]

    conflicts_found = refusal(earlier_memory.writer.submit_intent, "p", proposal).conflicts
    assert (item, kind) in [(each.iri, each.kind) for each in conflicts_found]
    assert (
        earlier_memory.writer.submit_intent("p", {**proposal, "supersedes": [item], "reason": "measured"}).status
        == "asserted"
    )


@pytest.mark.parametrize("kind", RIVALS)
def test_topics_in_different_spellings_conflict(memory, kind):
    _, rival = RIVALS[kind]
    fields = {key: value for key, value in rival.items() if key not in ("summary", "rationale")}
    first = memory.writer.submit_intent("p", {**fields, "summary": rival["summary"], "rationale": "r"}).iri
    respelt = {**rival, "topic": f" {rival['topic'].upper().replace('_', ' ')}", "rationale": "for another reason"}
    respelt |= {} if kind == "duplicate" else {"summary": "something else"}

    assert (first, kind) in [
        (each.iri, each.kind) for each in refusal(memory.writer.submit_intent, "p", respelt).conflicts
    ]


def test_a_memory_of_an_earlier_version_is_deduplicated(earlier_memory):
    repeated = decision(summary="internal DNS zones", topic="internal-dns-zones", timestamp="2026-11-21T08:00:00Z")

    receipt = earlier_memory.writer.submit_intent("p", repeated)
    assert (receipt.status, receipt.iri) == ("deduplicated", ZONES)


def test_the_conflicts_query_lists_memories_of_earlier_commits_and_none_at_an_earlier_moment(earlier_memory, tmp_path):
    (tmp_path / ".jidomem" / "config.toml").write_text('project = "p"\n[conflicts]\ndecision = "warn"\n')
    with jidomem.open(tmp_path / ".jidomem", agent="ana", sources=fixed_sources()) as memory:
        receipt = memory.writer.submit_intent("p", RIVALS["overlapping_decision"][1])
        assert [each.iri for each in receipt.conflicts] == [ZONES]

    (row,) = earlier_memory.reader.ask("conflicts", project="p")
    assert ({row["a"], row["b"]}, row["kind"]) == ({ZONES, receipt.iri}, "overlapping_decision")
    assert earlier_memory.reader.ask("conflicts", project="p", as_of="2026-11-21T08:00:00Z") == []
    earlier_memory.follower.rebuild()
    assert earlier_memory.reader.ask("conflicts", project="p") == [row]


def test_the_journal_of_an_earlier_version_is_unchanged_and_the_index_has_its_missing_keys(earlier_memory):
    before = {path.name: path.read_bytes() for path in EARLIER_STREAM.iterdir()}
    earlier_memory.catch_up("p")

    commit = parse(next(iter(before.values())))
    missing = missing_keys(commit.triples)
    stored = {triple for triple in commit.triples if triple[1] == CONFLICT_KEY}
    assert {subject for subject, _, _ in missing} == {iri(ZONES), iri(PORT), iri(RULE)}
    assert {*earlier_memory.index.triples(graph_iri("p"), None, CONFLICT_KEY)} == stored | {*missing}
    assert {
        path.name: path.read_bytes() for path in (earlier_memory.settings.root / "projects/p/memory").glob("*.ttl")
    } == before
    assert missing_keys(commit.triples | {*missing}) == []


def test_a_commit_of_this_version_has_all_keys(memory):
    for _, rival in RIVALS.values():
        memory.writer.submit_intent("p", {**rival, "topic": f"{rival['topic']} {len(rival['summary'])}"})
    for path in (memory.settings.root / "projects/p/memory").glob("*.ttl"):
        assert missing_keys(parse(path.read_bytes()).triples) == []


def test_a_redacted_memory_gets_no_new_key():
    commit = parse(next(EARLIER_STREAM.iterdir()).read_bytes())
    remaining = {triple for triple in commit.triples if triple[0] != iri(PORT) or triple[1] != CONFLICT_KEY}

    assert iri(PORT) not in {subject for subject, _, _ in missing_keys(remaining)}


TEXTS = st.text(st.sampled_from("aB1 2-_\u2010\u00e9\u00ad\n"), min_size=1, max_size=8).filter(str.strip)


@settings(max_examples=60)
@given(TEXTS, TEXTS)
def test_topics_are_compared_alike_by_queries_and_conflict_keys(tmp_path_factory, stored_topic, queried_topic):
    root = tmp_path_factory.mktemp("topics")
    with jidomem.open(root / "root", project="p", agent="ana", sources=fixed_sources()) as memory:
        item = memory.writer.submit_intent("p", intent(summary="says nothing of it", topic=stored_topic)).iri
        items = on_topic(memory.index, "p", queried_topic)
        rows = memory.reader.find_facts_about("p", queried_topic)

    is_same = topic_key(stored_topic) == topic_key(queried_topic)
    assert (item in items) == is_same
    if topic_key(queried_topic) and any(map(str.isalnum, queried_topic)) and is_same:
        assert [row["subject"] for row in rows] == [item]


@pytest.mark.parametrize("topic_text", ["internal dns zones", "Internal_DNS-zones", "internal\u2010DNS zones"])
def test_facts_are_found_by_topic_and_by_text_in_any_spelling(memory, topic_text):
    by_topic = memory.writer.submit_intent(
        "p", intent(summary="They resolve privately", topic="internal-dns-zones")
    ).iri
    by_text = memory.writer.submit_intent("p", intent(summary="the internal-DNS zones are two", topic="count")).iri
    memory.writer.submit_intent("p", intent(summary="zones of DNS", topic="internal dns"))

    assert {row["subject"] for row in memory.reader.find_facts_about("p", topic_text)} == {by_topic, by_text}


@pytest.mark.parametrize(
    ("first", "second"), [("rails 1-10", "rails 11-0"), ("adr 1 2", "adr 12"), ("store", "stores")]
)
def test_topics_of_different_words_or_numbers_do_not_conflict(memory, first, second):
    for topic in (first, second):
        assert memory.writer.submit_intent("p", decision(summary=f"on {topic}", topic=topic)).status == "asserted"


@pytest.mark.parametrize(("kind", "earlier_memory", "new_kind", "new", "values"), [
    ("discovery", "p99 of the endpoint is 340 ms", "fact", "p99 of the endpoint is 150 ms", "150 / 340 ms"),
    ("decision", "Use MongoDB for events", "fact", "Events are not kept in MongoDB", "not MongoDB / MongoDB"),
    ("fact", "p99 of the endpoint is 340 ms", "discovery", "p99 of the endpoint is 150 ms", "150 / 340 ms"),
])  # fmt: skip
def test_a_fact_that_differs_in_a_value_from_another_kind_of_memory_on_its_topic_has_a_warning(
    memory, kind, earlier_memory, new_kind, new, values
):
    iri = memory.remember(
        earlier_memory, type=kind, topic="the matter", **({"rationale": "r"} if kind == "decision" else {})
    ).iri

    receipt = memory.remember(new, type=new_kind, topic="the matter")

    unlike = memory.remember("The load test ran on Mondays", type="discovery", topic="the matter")
    (warning,) = [each for each in receipt.warnings if iri in each]
    assert (
        f"is an active {kind} on the same topic that was not compared: {earlier_memory}; it differs in {values};"
        in warning
    )
    assert not [each for each in unlike.warnings if iri in each]
