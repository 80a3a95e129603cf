"""The writer from end to end: order of the stages, durability, deterministic bytes, batches and sessions."""

import errno
import os
import resource
import threading
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta

import pyoxigraph as ox
import pytest
from conftest import START, decision, files, fixed_sources, intent, is_search_file
from writing import GRAPH, MEMORY, codes, committed_triples, open_with, refusal, triples_of, values_of

import jidomem
from jidomem import JidomemError, MemoryReader, MemoryUpdateIntent, MemoryWriter, Receipt
from jidomem.base import disk
from jidomem.base.clock import Sources
from jidomem.journal.commit import parse
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import iri
from jidomem.rdf.vocab import RDF, TYPE, jido
from jidomem.schema.ontology import EffectiveRules
from jidomem.write import conflict, normalize, triples, validate
from jidomem.write.snapshot import WriteSnapshot

STREAM = Stream("p")
ITEM = "<https://jido.ai/memory/"


def summaries(memory, **options):
    return sorted(row["summary"] for row in memory.reader.list_facts_with_confidence("p", **options))


def commits(memory):
    return sorted(memory.journal.path(STREAM).glob("*.ttl"))


def listing(root):
    """Return every file and folder below *root*, with locks."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


@contextmanager
def file_size_limit(size):
    """Limit the size of files to *size* bytes, like a full disk."""
    previous = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, previous[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, previous)


def sources_after(start):
    return fixed_sources(START + timedelta(days=start))


# --- the entry point and its stages ----------------------------------------------------------------------------------


def test_a_submission_returns_a_receipt_with_the_iri_of_the_memory(memory):  # C017 C020
    receipt = memory.writer.submit_intent("p", MemoryUpdateIntent(**intent()))
    assert isinstance(receipt, Receipt)
    assert receipt.iri == str(receipt) == receipt.filled["iri"]
    assert memory.reader.get_memory("p", receipt.iri)["properties"]["summary"] == ["the build needs Rust 1.80"]


def test_the_receipt_names_the_durable_commit(memory):  # C017
    receipt = memory.writer.submit_intent("p", intent())
    commit = parse(commits(memory)[0].read_bytes())
    assert (receipt.commit, receipt.version.ids) == (commit.id, (commit.id,))
    assert receipt.to_dict()["version"] == f"1-{commit.id[:12]}"


def test_the_public_names_are_those_of_the_protocol():  # C082
    assert {MemoryWriter, MemoryReader, MemoryUpdateIntent} <= {getattr(jidomem, name) for name in jidomem.__all__}


def test_each_stage_runs_separately(memory):  # C081
    proposal = MemoryUpdateIntent(**decision(topic="t"))
    normal = normalize.normalize(proposal, now=START, new_id=lambda: "1", schema=memory.schema).intent
    empty = WriteSnapshot(lambda s, p, o: [])
    validate.require_fields(normal, "p")
    validate.check_references(normal, empty, EffectiveRules(memory.schema, memory.settings.policy), list)
    assert conflict.detect(normal, conflict.keys(normal), empty, START, lambda prop: False) == ([], [])
    described_triples = triples.describe(normal)
    assert (iri(MEMORY + "1"), TYPE, jido("ArchitecturalDecision")) in described_triples
    assert validate.check_terms(described_triples, empty, memory.schema, memory.settings.policy) == []


#: Stage -> fields that fail in it; an intent that fails in several stages is refused by the first.
BROKEN = {
    "normalize": {"confidence": "certain"},
    "validate": {"supersedes": [MEMORY + "nobody"]},
    "conflict": {"type": "architectural_decision", "rationale": "r", "topic": "index"},
}


@pytest.mark.parametrize(
    ("stages", "code"),
    [
        (("normalize", "validate", "conflict"), "invalid_confidence"),
        (("normalize", "validate"), "invalid_confidence"),
        (("normalize", "conflict"), "invalid_confidence"),
        (("validate", "conflict"), "unknown_reference"),
        (("conflict",), "conflict"),
    ],
)
@pytest.mark.parametrize("full", [False, True])
def test_the_first_failing_stage_determines_the_refusal(memory, stages, code, full):  # C018 C019
    memory.writer.submit_intent("p", decision(topic="index"))
    before = files(memory.settings.root)
    proposal = intent(summary="two", **{key: value for name in stages for key, value in BROKEN[name].items()})
    with file_size_limit(1000 if full else resource.RLIM_INFINITY):  # append would fail as well
        assert refusal(memory.writer.submit_intent, "p", proposal).code == code
    assert files(memory.settings.root) == before


def test_the_project_and_journal_are_checked_before_the_intent(memory):  # C018
    assert refusal(memory.writer.submit_intent, "../p", intent(confidence="certain")).code == "invalid_project"
    memory.writer.submit_intent("p", intent())
    (file,) = commits(memory)
    file.write_text("this is no turtle")
    with jidomem.open(memory.settings.root) as reopened:
        for options in ({}, {"dry_run": True}):
            assert (
                refusal(reopened.writer.submit_intent, "p", intent(confidence="?"), **options).code == "journal_damaged"
            )


def test_a_failed_append_writes_nothing(memory):  # C019 C075
    memory.writer.submit_intent("p", intent())
    before, triples_before = files(memory.settings.root), triples_of(memory)
    with file_size_limit(1000):
        error = refusal(memory.writer.submit_intent, "p", intent(summary="too much"))
    assert error.code == "write_failed"
    assert "nothing was stored" in error.detail
    assert files(memory.settings.root) == before
    assert triples_of(memory) == triples_before
    assert memory.writer.submit_intent("p", intent(summary="too much")).status == "asserted"


def test_an_internal_error_is_raised_and_nothing_written(tmp_path):  # C019
    with jidomem.open(tmp_path / "root", sources=Sources(new_id=lambda: f"{1 // 0}")) as memory:
        for batch in (memory.writer.submit_intent, lambda project, given: memory.writer.submit_many(project, [given])):
            with pytest.raises(ZeroDivisionError):
                batch("p", intent())
        assert files(memory.settings.root) == {}


def test_the_shapes_are_checked_before_the_write(memory):  # C076
    broken = intent(type="task", extra_triples=[["jido:hasTaskStatus", {"@id": "jido:Planned"}],
                                                ["jido:hasTaskStatus", {"@id": "jido:Blocked"}]])  # fmt: skip
    error = refusal(memory.writer.submit_intent, "p", broken)
    assert error.violations[0].shape == "https://jido.ai/shapes#TaskHasOneStatus"
    assert files(memory.settings.root) == {}


def test_a_stored_memory_is_readable_at_once_by_a_new_reader(memory):  # C020
    item = memory.writer.submit_intent("p", intent()).iri
    with jidomem.open(memory.settings.root) as reopened:
        assert reopened.reader.get_memory("p", item)["status"] == "active"


# --- only the writer writes, and it only adds ------------------------------------------------------------------------


def states(root):
    """Return the change time and the bytes of each file and folder of *root*, without the search files."""
    paths = [path for path in root.rglob("*") if not is_search_file(path, root)]
    return {path: (path.stat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in paths}


def test_the_reader_changes_no_byte(memory):  # C012 C013
    item = memory.writer.submit_intent("p", decision()).iri
    memory.writer.start_session("p", "s-9")
    root = memory.settings.root
    before = states(root)
    with jidomem.open(root) as opened:
        reader = opened.reader
        for query in reader.playbook.names():
            with suppress(JidomemError):  # some need a parameter
                reader.ask(query, project="p")
        for name in dir(reader):
            if name.startswith("list_"):
                getattr(reader, name)("p")
        reader.get_memory("p", item)
        reader.resolve("p", item)
        reader.select("p", "SELECT * { ?s ?p ?o }")
        reader.run("p", "ASK { ?s ?p ?o }")
        for update in ("DELETE WHERE { ?s ?p ?o }", "CLEAR ALL", "DROP ALL", "LOAD <file:///etc/passwd>"):
            refusal(reader.run, "p", update)
    assert states(root) == before


def test_the_reader_has_no_write_method(memory):  # C013
    verbs = ("submit", "remember", "write", "put", "insert", "delete", "update", "append", "revise", "invalidate")
    assert not [name for name in dir(memory.reader) if name.startswith(verbs)]


def test_a_write_only_adds_triples_and_files(memory):  # C014 C015
    old = memory.writer.submit_intent("p", intent()).iri
    before, bytes_before = triples_of(memory), files(memory.settings.root)
    new = memory.writer.submit_intent("p", intent(summary="two", supersedes=[old])).iri
    added = triples_of(memory) - before
    assert before <= triples_of(memory)
    assert {s for s, _, _ in added if s.startswith(ITEM)} == {iri(new), iri(old)}
    assert {t for t in added if t[0] == iri(old)} == {(iri(old), jido("supersededBy"), iri(new))}
    assert bytes_before.items() <= files(memory.settings.root).items()  # no file changed


# --- loading, refreshing, projects -----------------------------------------------------------------------------------


def test_an_empty_root_is_an_empty_memory(tmp_path):  # C027
    with open_with(tmp_path, 'project = "p"\n') as memory:
        assert memory.reader.list_open_tasks("p") == []
        assert triples_of(memory) == set()
        assert str(memory.writer.refresh("p")) == "0"


def test_opening_a_root_applies_the_journal_to_the_index(memory):  # C024 C025 C026
    for n in range(3):
        memory.writer.submit_intent("p", intent(summary=f"fact {n}"))
    with jidomem.open(memory.settings.root) as reopened:
        assert reopened.catch_up("p") == reopened.journal.head(STREAM) == memory.journal.head(STREAM)
        assert reopened.projects() == ["p"]
        assert reopened.journal.path(STREAM) == memory.settings.root / "projects" / "p" / "memory"
        assert triples_of(reopened) == triples_of(memory)


def test_a_refresh_shows_the_commits_of_another_process(memory):  # C021
    memory.writer.submit_intent("p", intent())
    with jidomem.open(memory.settings.root, sources=sources_after(1)) as other:
        version = other.writer.submit_intent("p", intent(iri="urn:x:2", summary="from elsewhere")).version
    assert memory.writer.refresh("p") == version
    assert any(o == '"from elsewhere"' for _, _, o in memory.index.triples(GRAPH, iri("urn:x:2")))
    assert summaries(memory) == ["from elsewhere", "the build needs Rust 1.80"]


def test_an_unparseable_commit_is_refused_with_its_line_and_unchanged(memory):  # C027 C116
    memory.writer.submit_intent("p", intent())
    memory.writer.submit_intent("p", intent(summary="two"))
    file = commits(memory)[0]
    edited = file.read_text().replace(
        'jido:summary "the build needs Rust 1.80"', 'jido:summary "the build needs Rust 1.80'
    )
    file.write_text(edited)
    with jidomem.open(memory.settings.root, sources=sources_after(1)) as reopened:
        error = refusal(reopened.writer.submit_intent, "p", intent(iri="urn:x:3", summary="three"))
    assert error.code == "journal_damaged"
    assert error.path == str(file)
    assert 'jido:summary "the build' in edited.splitlines()[error.line - 1]
    assert error.hint.startswith("restore the file from a backup: ")  # the root is not in git
    assert file.read_text() == edited


@pytest.mark.parametrize("change", [("Rust 1.80", "Rust 1.81"), ("jido:High", "jido:Low")])
def test_an_edited_commit_is_refused_with_the_command_that_edits_the_memory(memory, change):  # C116
    receipt = memory.writer.submit_intent("p", intent())
    (file,) = commits(memory)
    file.write_text(file.read_text().replace(*change))
    with jidomem.open(memory.settings.root, sources=sources_after(1)) as reopened:
        error = refusal(reopened.writer.submit_intent, "p", intent(iri="urn:x:3", summary="three"))
        assert (error.code, error.path) == ("journal_damaged", str(file))
        assert f"jidomem edit {receipt.iri[-8:]} --set FIELD=VALUE --reason TEXT" in error.hint
        assert [damage.path for damage in reopened.damage("p")] == [str(file)]


def test_the_journal_is_human_readable(memory):  # C116 C078
    memory.writer.submit_intent("p", decision())
    text = commits(memory)[0].read_text()
    assert "    a jido:ArchitecturalDecision ;\n" in text
    assert '    jido:rationale "it embeds" ;\n' in text
    assert max(map(len, text.splitlines())) < 200


@pytest.mark.parametrize("project", ["../p", "..", "/etc", "p/../../x", "a/b", "", ".", "P", "p\x00", "-p", "x" * 65])
def test_a_project_id_outside_the_root_is_refused(tmp_path, project):  # C028
    with jidomem.open(tmp_path / "root", sources=fixed_sources()) as memory:
        proposal = intent(applies_to_project=f"https://jido.ai/projects/{project}")
        assert refusal(memory.writer.submit_intent, project, proposal).code == "invalid_project"
    assert listing(tmp_path) == []


def test_the_first_write_creates_its_project(memory):  # C022
    memory.writer.submit_intent("fresh", intent(applies_to_project="fresh"))
    assert memory.projects() == ["fresh"]


def test_the_first_receipt_of_a_second_project_warns_with_the_nearest_project(memory):
    first = memory.writer.submit_intent("parcel", intent(applies_to_project="parcel"))
    predicted = memory.writer.submit_intent("parcl", intent(applies_to_project="parcl"), dry_run=True)
    second = memory.writer.submit_intent("parcl", intent(applies_to_project="parcl"))
    later = memory.writer.submit_intent("parcl", intent(applies_to_project="parcl", summary="two"))
    other = memory.writer.acting_as("ana", "agent").start_session("new", "s-1")

    assert first.warnings == later.warnings == ()
    assert predicted.warnings == second.warnings
    assert "begins the project parcl beside parcel; if you meant parcel, write it there" in second.warnings[0]
    # an agent with a token may not know the other projects
    assert other.warnings == ("this begins the project new, which this root did not have",)


def test_an_unknown_project_is_refused_without_create_projects(tmp_path):  # C022
    with open_with(tmp_path) as memory:
        memory.writer.submit_intent("p", intent())
    with open_with(tmp_path, "create_projects = false\n") as memory:
        error = refusal(memory.writer.submit_intent, "fresh", intent(applies_to_project="fresh"))
        assert error.code == "unknown_project"
        assert memory.writer.submit_intent("p", intent(iri="urn:x:2", summary="two")).status == "asserted"
        assert memory.projects() == ["p"]


def test_a_memory_of_another_agent_is_recorded_in_the_daily_session_of_that_agent(tmp_path):
    with jidomem.open(tmp_path, project="p", agent="root-agent", sources=fixed_sources()) as memory:
        day = memory.writer.session.removeprefix("root-agent-")
        first = memory.remember("it rained", asserted_by="ana")
        iri = memory.remember("it snowed", asserted_by="https://jido.ai/agents/ana")
        own_memory, in_given_session = (
            memory.remember("it hailed"),
            memory.remember("sun", asserted_by="ana", asserted_in="s-1"),
        )
        who = {"asserted_by": "ben"}
        fix = memory.writer.correct("p", first.iri, supersede="it poured", reason="wet", who=who)

        sessions = [
            values_of(memory, each.iri, "assertedIn") for each in (first, iri, own_memory, in_given_session, fix)
        ]

    names = [f"ana-{day}", f"ana-{day}", f"root-agent-{day}", "s-1", f"ben-{day}"]
    assert sessions == [[f"<https://jido.ai/sessions/{name}>"] for name in names]


def test_a_configured_session_applies_to_every_agent(tmp_path):
    with jidomem.open(tmp_path, project="p", session="standup", sources=fixed_sources()) as memory:
        item = memory.remember("it rained", asserted_by="ana").iri
        assert values_of(memory, item, "assertedIn") == ["<https://jido.ai/sessions/standup>"]


# --- deterministic bytes ---------------------------------------------------------------------------------------------


def record_workload(memory):
    """Record writes of every kind, some of them refused."""
    writer = memory.writer
    first = writer.submit_intent("p", decision(topic="index", alternatives=["Jena"], evidence=["bench", "cost"])).iri
    writer.submit_many("p", [intent(summary=f"fact {n}", about=["b", "a"]) for n in range(3)])
    refusal(writer.submit_intent, "p", intent(confidence="certain"))
    writer.submit_intent("p", decision(summary="Use Lucene", topic="index", supersedes=[first]))
    writer.submit_many("p", [intent(type="task", summary=f"do {n}") for n in range(3)], atomic=True)
    writer.start_session("p", "s-2")
    writer.move_session("p", "s-2", phase="review")
    writer.remember("p", "it rained", asserted_by="bob", asserted_in="s-2")


def test_the_same_intents_produce_the_same_bytes(tmp_path):  # C114 C078
    for name in ("one", "two"):
        with jidomem.open(tmp_path / name, sources=fixed_sources()) as memory:
            record_workload(memory)
    assert files(tmp_path / "one") == files(tmp_path / "two")
    assert len(files(tmp_path / "one")) > 3


def test_the_order_of_extra_triples_and_evidence_does_not_change_the_bytes(tmp_path):  # C078
    extra = [["jido:key", "a"], ["jido:key", "b"], ["https://example.org/p", "c"]]
    for name, turn in (("one", 1), ("two", -1)):
        with jidomem.open(tmp_path / name, sources=fixed_sources()) as memory:
            memory.writer.submit_intent("p", intent(extra_triples=extra[::turn], evidence=["x", "y"][::turn]))
    assert files(tmp_path / "one") == files(tmp_path / "two")


def test_blocks_are_sorted_and_prefixes_stable(memory):  # C078
    record_workload(memory)
    for file in commits(memory):
        lines = file.read_text().splitlines()
        subjects = [line for line in lines if line.startswith("<")]
        assert subjects[1:] == sorted(subjects[1:])  # the commit describes itself first
        assert [line.split()[1] for line in lines if line.startswith("@prefix")] == [
            "jido:",
            "prov:",
            "rdf:",
            "rdfs:",
            "xsd:",
        ]


def test_the_parsed_journal_equals_the_indexed_triples(memory):  # C074 C079
    record_workload(memory)
    fresh = ox.Store()
    for file in commits(memory):
        fresh.load(file.read_bytes(), ox.RdfFormat.TURTLE)
    assert {(str(q.subject), str(q.predicate), str(q.object)) for q in fresh} == triples_of(memory)
    assert len(committed_triples(memory)) == len(triples_of(memory))


# --- durability ------------------------------------------------------------------------------------------------------


def test_the_file_is_flushed_before_and_the_folder_after_the_rename(memory, monkeypatch):  # C077 C075
    memory.writer.submit_intent("p", intent())
    calls, folder = [], str(memory.journal.path(STREAM))
    fsync, rename = os.fsync, os.rename
    names = lambda descriptor: os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: E731
    monkeypatch.setattr(os, "fsync", lambda fd: (calls.append(("fsync", names(fd))), fsync(fd))[1])
    monkeypatch.setattr(os, "rename", lambda a, b: (calls.append(("rename", a, b)), rename(a, b))[1])
    memory.writer.submit_intent("p", intent(summary="two"))
    (renamed,) = [entry for entry in calls if entry[0] == "rename"]
    assert os.path.dirname(renamed[1]) == os.path.dirname(renamed[2]) == folder
    assert calls == [("fsync", renamed[1]), renamed, ("fsync", folder)]


def test_an_incomplete_commit_of_a_killed_writer_is_ignored(memory):  # C075 C077
    memory.writer.submit_intent("p", intent())
    (memory.journal.path(STREAM) / ".incoming.lock").write_bytes(commits(memory)[0].read_bytes()[:700])
    with jidomem.open(memory.settings.root, sources=sources_after(1)) as reopened:
        assert summaries(reopened) == ["the build needs Rust 1.80"]
        assert reopened.damage("p") == ()
        assert reopened.writer.submit_intent("p", intent(iri="urn:x:2", summary="two")).status == "asserted"


# --- dry runs, batches, threads --------------------------------------------------------------------------------------


def test_a_dry_run_writes_nothing_and_predicts_the_receipt(tmp_path):  # C019
    receipts = []
    for name, dry in (("dry", True), ("wet", False)):
        with jidomem.open(tmp_path / name, sources=fixed_sources()) as memory:
            receipts.append(memory.writer.submit_intent("p", decision(), dry_run=dry))
    dry, real = receipts
    assert (dry.iri, dry.status, dry.filled, dry.warnings) == (real.iri, real.status, real.filled, real.warnings)
    assert (dry.commit, str(dry.version)) == (None, "0")
    assert listing(tmp_path) == [name for name in listing(tmp_path) if name.startswith("wet")]


@pytest.mark.parametrize(
    "fields", [{"confidence": "hgih"}, {"supersedes": [MEMORY + "nobody"]}, {"detailed_explanation": "x"}]
)
def test_a_dry_run_is_refused_like_the_real_submission(memory, fields):  # C019
    memory.writer.submit_intent("p", intent())
    before = files(memory.settings.root)
    dry_error = refusal(memory.writer.submit_intent, "p", intent(**fields), dry_run=True)
    error = refusal(memory.writer.submit_intent, "p", intent(**fields))
    assert dry_error.to_dict() == error.to_dict()
    assert files(memory.settings.root) == before


def test_outcomes_of_a_batch_are_in_the_order_of_its_intents(memory):  # C017
    batch = [
        intent(summary="one"),
        intent(confidence="?"),
        intent(summary="one"),
        {"type": "decision"},
        intent(summary="two"),
    ]
    outcomes = memory.writer.submit_many("p", batch)
    assert [getattr(outcome, "status", getattr(outcome, "code", None)) for outcome in outcomes] == [
        "asserted", "invalid_confidence", "deduplicated", "missing_required_fields", "asserted",
    ]  # fmt: skip
    assert [outcome.position for outcome in outcomes if isinstance(outcome, JidomemError)] == [1, 3]
    assert outcomes[2].iri == outcomes[0].iri
    assert {outcome.commit for outcome in outcomes if isinstance(outcome, Receipt)} == {outcomes[0].commit}
    assert summaries(memory) == ["one", "two"]


def test_an_intent_is_judged_against_earlier_intents_of_its_batch(memory):  # C018
    first, second = intent(iri="urn:x:1", summary="one"), intent(iri="urn:x:2", summary="two", supersedes=["urn:x:1"])
    stale = intent(summary="three", supersedes=["urn:x:1"])
    first_outcome, second_outcome, third_outcome = memory.writer.submit_many("p", [first, second, stale])
    assert (first_outcome.status, second_outcome.status, third_outcome.code) == ("asserted", "asserted", "conflict")
    assert summaries(memory) == ["two"]


def test_an_atomic_batch_with_a_refusal_writes_nothing(memory):  # C019
    error = refusal(memory.writer.submit_many, "p", [intent(), intent(summary="b", confidence="?")], atomic=True)
    assert (error.code, error.position) == ("invalid_confidence", 1)
    assert error.to_dict()["position"] == 1
    assert files(memory.settings.root) == {}
    receipts = memory.writer.submit_many("p", [intent(), intent(summary="b")], atomic=True)
    assert len({receipt.commit for receipt in receipts}) == len(commits(memory)) == 1


#: A literal that passes every stage and no strict parser reads: its datatype requires a language.
UNREADABLE = [["http://example.org/p", {"@value": "a", "@type": RDF + "langString"}]]


def test_an_unparseable_literal_in_a_batch_is_refused_alone(memory):  # C019 C079
    unparseable = intent(summary="same", extra_triples=UNREADABLE)
    error = refusal(memory.writer.submit_intent, "p", unparseable, dry_run=True)
    assert codes(error) == ["invalid_iri"]
    assert error.violations[0].field == "extra_triples"
    assert refusal(memory.writer.submit_many, "p", [intent(), unparseable], atomic=True).position == 1
    assert files(memory.settings.root) == {}
    batch = [intent(), unparseable, intent(summary="same"), intent(summary="last")]
    first, refused, third, fourth = memory.writer.submit_many("p", batch)
    assert (codes(refused), refused.position) == (["invalid_iri"], 1)
    assert len({first.commit, third.commit, fourth.commit}) == len(commits(memory)) == 1
    assert summaries(memory) == ["last", "same", "the build needs Rust 1.80"]


def test_an_empty_batch_has_no_outcomes(memory):
    assert memory.writer.submit_many("p", []) == memory.writer.submit_many("p", [], atomic=True) == []
    assert files(memory.settings.root) == {}


@pytest.mark.parametrize("batch", ["a list", "a stream", "atomic"])
def test_a_proposed_batch_is_one_commit_and_activates_no_memory(memory, batch):
    memory.writer.submit_intent("p", decision(topic="store"))
    before = len(files(memory.settings.root))
    rivals = [decision(summary=f"Use store {n}", topic="store") for n in range(3)]
    intents = iter(rivals) if batch == "a stream" else rivals

    receipts = list(memory.writer.submit_many("p", intents, propose=True, atomic=batch == "atomic"))

    assert [receipt.status for receipt in receipts] == ["proposed"] * 3
    assert {clash.kind for receipt in receipts for clash in receipt.conflicts} == {"overlapping_decision"}
    assert len(files(memory.settings.root)) == before + 1
    assert len(memory.reader.ask("decisions", project="p")) == 1


def test_a_large_batch_is_recorded_in_several_commits(memory):  # C074
    outcomes = memory.writer.submit_many("p", [intent(summary=f"fact {n}") for n in range(200)])
    assert all(isinstance(outcome, Receipt) for outcome in outcomes)
    assert 1 < len(commits(memory)) < 20
    assert len(summaries(memory)) == 200


def test_concurrent_threads_lose_no_submission_and_share_commits(tmp_path):  # C023
    with jidomem.open(tmp_path / "root") as memory:
        memory.writer.submit_intent("p", intent(summary="first"))
        outcomes, barrier = {}, threading.Barrier(8)

        def work(name):
            barrier.wait()
            for n in range(10):
                proposal = intent(summary=f"{name} {n}", confidence="?" if n == 5 else "high")
                try:
                    outcomes[name, n] = memory.writer.submit_intent("p", proposal)
                except JidomemError as error:
                    outcomes[name, n] = error

        threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(outcomes) == 80
        assert {outcomes[name, 5].code for name in range(8)} == {"invalid_confidence"}
        receipts = [outcome for outcome in outcomes.values() if isinstance(outcome, Receipt)]
        assert len(receipts) == len({receipt.iri for receipt in receipts}) == 72  # one refusal stopped no other
        assert len(commits(memory)) < 73
        committed_triples(memory)
        with jidomem.open(tmp_path / "root") as reopened:
            stored_items = {row["fact"] for row in reopened.reader.list_facts_with_confidence("p")}
        assert {receipt.iri for receipt in receipts} <= stored_items


def test_two_writers_of_one_root_write_in_turn(memory):  # C023
    with jidomem.open(memory.settings.root, sources=sources_after(1)) as other:
        for n in range(3):
            memory.writer.submit_intent("p", intent(summary=f"a {n}"))
            other.writer.submit_intent("p", intent(iri=f"urn:x:{n}", summary=f"b {n}"))
        assert summaries(memory) == summaries(other) == ["a 0", "a 1", "a 2", "b 0", "b 1", "b 2"]


@pytest.mark.parametrize("atomic", [False, True])
def test_a_commit_that_arrives_during_judgement_is_considered(tmp_path, atomic):  # C023 C018
    with jidomem.open(tmp_path / "other", sources=sources_after(1)) as other:
        item = other.writer.submit_intent("p", intent(iri="urn:x:theirs")).iri
    arriving_commits = [other.journal.path(STREAM)]

    def now():  # like a git pull between the read of the journal and the append
        if arriving_commits:
            target = tmp_path / "root" / "projects" / "p" / "memory"
            for file in arriving_commits.pop().glob("*.ttl"):
                (target / file.name).write_bytes(file.read_bytes())
        return START

    with jidomem.open(tmp_path / "root", sources=Sources(now=now)) as memory:
        new, repeated = memory.writer.submit_many("p", [intent(summary="mine"), intent()], atomic=atomic)
        assert (new.status, repeated.status, repeated.iri) == ("asserted", "deduplicated", item)
        assert len(commits(memory)) == 2
        assert memory.journal.verify(STREAM) == ()


def test_a_clock_set_back_does_not_reorder_the_journal(tmp_path):  # C114
    moments = iter([START, START - timedelta(days=1), START - timedelta(days=2)])
    with jidomem.open(tmp_path / "root", sources=Sources(now=lambda: next(moments))) as memory:
        positions = [memory.writer.submit_intent("p", intent(summary=f"s {n}")).version for n in range(3)]
    assert [version.recorded_at for version in positions] == [
        "2026-11-21T08:00:00.000000Z", "2026-11-21T08:00:00.000001Z", "2026-11-21T08:00:00.000002Z",
    ]  # fmt: skip


def test_a_failed_write_causes_no_conflict_for_later_submissions(memory, monkeypatch):
    # C023
    memory.writer.submit_intent("p", decision(topic="before"))
    proposed = [decision(rationale=""), decision(topic="t"), decision(topic="t", summary="Use another")]

    def broken(source, target):
        raise OSError(errno.ENOSPC, "No space left on device", target)

    with monkeypatch.context() as patched:
        patched.setattr(disk, "rename", broken)
        outcomes = memory.writer.submit_many("p", proposed)

    assert [outcome.code for outcome in outcomes] == ["missing_rationale", "write_failed", "write_failed"]
    assert memory.writer.submit_intent("p", proposed[2]).status == "asserted"


# --- idempotency -----------------------------------------------------------------------------------------------------

KEYED = {"idempotency_key": "k-1"}


def test_a_retry_returns_its_first_receipt(memory):
    first = memory.writer.submit_intent("p", intent(**KEYED, type="task"))
    before = files(memory.settings.root)
    assert memory.writer.submit_intent("p", intent(**KEYED, type="task")).to_dict() == first.to_dict()
    with jidomem.open(memory.settings.root) as reopened:
        assert reopened.writer.submit_intent("p", intent(**KEYED, type="task")).to_dict() == first.to_dict()
    assert files(memory.settings.root) == before


@pytest.mark.parametrize("fields", [KEYED, {}])
def test_a_repeated_intent_is_acknowledged_only_when_durable(memory, monkeypatch, fields):
    # C023
    def broken(path):
        raise OSError(errno.EROFS, "Read-only file system", path)

    memory.writer.submit_intent("p", intent(summary="before"))
    with monkeypatch.context() as patched:
        patched.setattr(disk, "flush", broken)
        patched.setattr(disk, "unlink", broken)
        refused = refusal(memory.writer.submit_intent, "p", intent(**fields))
        assert "in place, but could not be made durable" in refused.detail
        with jidomem.open(memory.settings.root) as reopened:
            for memory_or_reopened in (memory, reopened):
                assert refusal(memory_or_reopened.writer.submit_intent, "p", intent(**fields)).code == "write_failed"

    assert memory.writer.submit_intent("p", intent(**fields)).status == ("asserted" if fields else "deduplicated")
    assert summaries(memory) == ["before", "the build needs Rust 1.80"]


def test_a_retry_with_keys_in_another_order_returns_the_first_receipt(memory):
    value = {"@value": "5", "@type": "xsd:integer"}
    first, repeated = (
        memory.writer.submit_intent("p", intent(**KEYED, extra_triples=[["urn:x:p", dict(pairs)]]))
        for pairs in (value.items(), reversed(value.items()))
    )
    assert first == repeated


def test_a_retry_after_a_supersession_returns_the_first_receipt(memory):
    first = memory.writer.submit_intent("p", intent(**KEYED))
    memory.writer.submit_intent("p", intent(summary="new", supersedes=[first.iri]))
    assert memory.writer.submit_intent("p", intent(**KEYED)).to_dict() == first.to_dict()


def test_a_retry_of_a_deduplicated_intent_returns_the_first_memory(memory):
    item = memory.writer.submit_intent("p", intent()).iri
    first = memory.writer.submit_intent("p", intent(**KEYED))
    assert (first.status, first.iri) == ("deduplicated", item)
    memory.writer.invalidate("p", item, reason="wrong")
    repeated = memory.writer.submit_intent("p", intent(**KEYED))
    assert (repeated.status, repeated.iri) == ("deduplicated", item)
    assert summaries(memory) == []


def test_a_retry_of_a_proposal_returns_its_receipt(tmp_path):
    with open_with(tmp_path, '[conflicts]\ndecision = "propose"\n') as memory:
        memory.writer.submit_intent("p", decision(topic="t"))
        first = memory.writer.submit_intent("p", decision(topic="t", summary="else", **KEYED))
        assert first.status == "proposed"
        assert (
            memory.writer.submit_intent("p", decision(topic="t", summary="else", **KEYED)).to_dict() == first.to_dict()
        )


def test_an_idempotency_key_of_another_intent_is_refused(memory):
    memory.writer.submit_intent("p", intent(**KEYED))
    before = files(memory.settings.root)
    error = refusal(memory.writer.submit_intent, "p", intent(summary="another", **KEYED))
    assert error.code == "idempotency_mismatch"
    assert files(memory.settings.root) == before


def test_idempotency_keys_are_separate_for_each_agent_and_project(memory):
    first = memory.writer.submit_intent("p", intent(**KEYED))
    of_another_agent = memory.writer.submit_intent("p", intent(summary="two", asserted_by="bob", **KEYED))
    of_another_project = memory.writer.submit_intent("q", intent(summary="three", applies_to_project="q", **KEYED))
    assert len({first.iri, of_another_agent.iri, of_another_project.iri}) == 3


def test_one_idempotency_key_sent_concurrently_is_recorded_once(tmp_path):  # C023
    roots = [jidomem.open(tmp_path / "root") for _ in range(2)]
    barrier, receipts = threading.Barrier(6), []

    def work(n):
        barrier.wait()
        receipts.append(roots[n % 2].writer.submit_intent("p", intent(**KEYED)))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(receipts) == 6
    assert len({(receipt.iri, receipt.commit) for receipt in receipts}) == 1
    assert len(commits(roots[0])) == 1


def test_one_idempotency_key_twice_in_a_batch_is_recorded_once(memory):
    first, second = memory.writer.submit_many("p", [intent(**KEYED), intent(**KEYED)])
    assert (first.iri, first.commit) == (second.iri, second.commit)
    assert len(summaries(memory)) == 1


def test_a_refusal_does_not_use_an_idempotency_key(memory):
    refusal(memory.writer.submit_intent, "p", intent(confidence="?", **KEYED))
    assert memory.writer.submit_intent("p", intent(**KEYED)).status == "asserted"


# --- commands of the writer ------------------------------------------------------------------------------------------


def test_remember_fills_missing_fields_and_reports_them(memory):
    receipt = memory.writer.remember("p", "it rained")
    properties = memory.reader.get_memory("p", receipt.iri)["properties"]
    assert properties["summary"] == ["it rained"]
    assert {"type", "asserted_by", "asserted_in", "confidence", "applies_to_project"} <= set(receipt.filled)
    assert properties["assertedIn"][0].endswith(receipt.filled["asserted_in"])


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"typ": "task"}, {"type": "task"}),
        ({"Type": "decision", "rationale": "x"}, {"type": "decision", "rationale": "x"}),
        ({"confidense": "high"}, {"confidence": "high"}),
        ({"assertedBy": "bob"}, {"asserted_by": "bob"}),
    ],
)
def test_a_default_does_not_stand_in_for_a_misspelt_field(memory, given, meant):
    error = refusal(memory.writer.remember, "p", "it rained", **given)
    assert [violation.code for violation in error.violations] == ["unknown_field"]
    assert meant.items() <= error.fixed_intent.items()
    assert not given.keys() - {"rationale"} & error.fixed_intent.keys()


def test_a_revision_changes_one_field_and_copies_the_others(memory):
    fields = {"type": "task", "topic": "docs", "about": ["docs/"], "evidence": ["asked for"], "assigned_to": "bob"}
    old = memory.writer.submit_intent("p", intent(**fields)).iri
    new = memory.writer.revise("p", old, changes={"status": "Completed"}, reason="merged").iri
    before, after_revision = (memory.reader.get_memory("p", item)["properties"] for item in (old, new))
    assert after_revision["hasTaskStatus"] == ["https://jido.ai/ontology#Completed"]
    assert after_revision["revisionReason"] == ["merged"]
    for name in ("summary", "topic", "about", "derivedFrom", "assignedTo", "hasConfidence"):
        assert after_revision[name] == before[name], name
    assert memory.reader.get_memory("p", old)["status"] == "superseded"
    assert memory.reader.list_open_tasks("p") == []


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "decision", "rationale": "r", "status": "accepted", "alternatives": ["Jena", "grep"], "topic": "t"},
        {"type": "coding_standard", "enforcement_level": "Strict", "convention_scope": "GlobalScope"},
        {"type": "bug", "severity": "high", "status": "Investigating", "extra_triples": [["jido:errorCode", "E1"]]},
        {"type": "fact", "confidence": 0.123, "evidence": ["a", "https://example.org/x"], "valid_from": "2026-01-01"},
        {"type": "assumption", "expires_on": "2027-01-01T05:06:07.000008Z", "source_type": "ToolSource"},
        {"detailed_explanation": 'a "b"\n\\c', "tracked_by": "https://example.org/1", "reason": "because"},
    ],
)
def test_a_restated_memory_can_be_submitted_again_unchanged(memory, fields):
    item = memory.writer.submit_intent("p", intent(**fields)).iri
    restated = memory.writer.restated("p", item)
    restated.pop("iri")
    receipt = memory.writer.submit_intent("p", {**restated, "supersedes": [item]})
    excluded = {"iri", "supersedes", "reason"}
    first, second = (memory.writer.restated("p", version) for version in (item, receipt.iri))
    assert {k: v for k, v in first.items() if k not in excluded} == {
        k: v for k, v in second.items() if k not in excluded
    }


def test_a_withdrawal_invalidates_a_memory_without_a_successor(memory):
    old = memory.writer.submit_intent("p", intent()).iri
    marker = memory.writer.invalidate("p", old, reason="it was never so")
    assert memory.reader.get_memory("p", old)["invalidated_by"] == [marker.iri]
    assert memory.reader.get_memory("p", marker.iri)["properties"]["rationale"] == ["it was never so"]
    assert summaries(memory) == []


@pytest.mark.parametrize("verb", ["revise", "invalidate"])
def test_a_command_for_an_unknown_memory_is_refused(memory, verb):
    memory.writer.submit_intent("p", intent())
    arguments = {"changes": {"topic": "x"}} if verb == "revise" else {}
    for item in (MEMORY + "nobody", "https://jido.ai/agents/architect", "nonsense", "a b <c>"):
        assert refusal(getattr(memory.writer, verb), "p", item, reason="r", **arguments).code in (
            "not_found",
            "invalid_iri",
        )


# --- audit -----------------------------------------------------------------------------------------------------------


def test_every_memory_has_provenance_and_a_traceable_supersession_chain(memory):  # C115
    chain = [memory.writer.submit_intent("p", intent(evidence=["the log"])).iri]
    for n in range(3):
        proposal = intent(summary=f"version {n}", supersedes=[chain[-1]], evidence=[f"log {n}"])
        chain.append(memory.writer.submit_intent("p", proposal).iri)
    traced = [chain[0]]
    while successors := memory.reader.get_memory("p", traced[-1])["superseded_by"]:
        traced += successors
    assert traced == chain
    for item in chain:
        memory_row = memory.reader.get_memory("p", item)
        for name in ("assertedBy", "assertedIn", "hasTimestamp", "derivedFrom", "recordedIn"):
            assert memory_row["properties"][name], name
        assert memory_row["commit"] in {f"urn:jido:commit:{commit.id}" for commit in memory.journal.read(STREAM)} | {
            commit.id for commit in memory.journal.read(STREAM)
        }


def test_the_invariants_hold_after_a_mixed_workload(memory):  # C118
    record_workload(memory)
    stored = triples_of(memory)
    projects = {}
    for s, p, _ in stored:
        if p == jido("appliesToProject"):
            projects[s] = projects.get(s, 0) + 1
    items = {s for s, p, _ in stored if p == jido("hasAssertionStatus")}
    assert projects == dict.fromkeys(items, 1)  # I1
    topics = [
        values_of(memory, row["decision"], "topic") for row in memory.reader.list_active_architectural_decisions("p")
    ]
    assert len(topics) == len({*map(str, topics)}) == 1  # I2
    subjects = {s for s, _, _ in stored}
    assert {
        o for _, _, o in stored if o.startswith("<https://jido.ai/") and "/ontology#" not in o and "/graphs/" not in o
    } <= subjects


# --- sessions --------------------------------------------------------------------------------------------------------


def active_sessions(memory, **options):
    return [row["session"].rsplit("/", 1)[-1] for row in memory.reader.list_active_sessions("p", **options)]


def test_a_session_is_opened_moved_and_closed_by_events(memory):
    memory.writer.start_session("p", "s-1", agent="architect")
    assert active_sessions(memory) == ["s-1"]
    memory.writer.move_session("p", "s-1", phase="review")
    memory.writer.move_session("p", "s-1", status="paused")
    assert active_sessions(memory) == []
    memory.writer.move_session("p", "s-1", status="Active")
    assert active_sessions(memory) == ["s-1"]
    memory.writer.move_session("p", "s-1", status="Closed")
    assert active_sessions(memory) == []
    session = "https://jido.ai/sessions/s-1"
    numbers = [values_of(memory, f"{session}/events/{n}", "eventNumber") for n in range(1, 5)]
    assert [number[0][1] for number in numbers] == ["1", "2", "3", "4"]
    assert len(values_of(memory, session, "endedAt")) == 1


def test_a_session_is_opened_once_and_not_moved_after_its_end(memory):
    memory.writer.start_session("p", "s-1")
    assert refusal(memory.writer.start_session, "p", "s-1").code == "iri_exists"
    assert refusal(memory.writer.move_session, "p", "s-2", status="Paused").code == "not_found"
    assert refusal(memory.writer.start_session, "p", "s-3", continues="s-2").code == "not_found"
    memory.writer.move_session("p", "s-1", status="Abandoned")
    assert refusal(memory.writer.move_session, "p", "s-1", status="Active").code == "shape_violation"
    follow = memory.writer.start_session("p", "s-3", continues="s-1").iri
    assert values_of(memory, follow, "continuesSession") == ["<https://jido.ai/sessions/s-1>"]


@pytest.mark.parametrize("change", [{"phase": "revue"}, {"phase": ""}, {"status": "Slept"}, {"status": ""}, {}])
def test_an_unknown_state_of_a_session_is_refused(memory, change):
    memory.writer.start_session("p", "s-1")
    before = files(memory.settings.root)
    assert isinstance(refusal(memory.writer.move_session, "p", "s-1", **change), JidomemError)
    assert files(memory.settings.root) == before


@pytest.mark.parametrize("name", ["", "  ", "a\x00b", "https://a b", "http://[", "\ud800", "x" * 300, "<>"])
def test_a_session_or_agent_without_a_name_is_refused(memory, name):
    assert refusal(memory.writer.start_session, "p", name).code in ("invalid_iri", "invalid_argument")
    if name:
        assert refusal(memory.writer.start_session, "p", "s", agent=name).code in ("invalid_iri", "invalid_argument")
    assert files(memory.settings.root) == {}


def test_a_query_as_of_a_moment_returns_the_memories_of_that_moment(memory):  # C014
    old = memory.writer.submit_intent("p", intent()).iri
    moment = datetime(2026, 11, 21, 8, 0, 0, 500_000, tzinfo=UTC)
    memory.writer.submit_intent("p", intent(summary="two", supersedes=[old]))
    assert (summaries(memory), summaries(memory, as_of=moment)) == (["two"], ["the build needs Rust 1.80"])
