"""The writer from end to end: stages in order, durable or not at all, the same bytes for the same intents."""

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
from jidomem.write import conflict, normalize, triples, validate
from jidomem.write.snapshot import WriteSnapshot

STREAM = Stream("p")
ITEM = "<https://jido.ai/memory/"


def summaries(memory, **options):
    return sorted(row["summary"] for row in memory.reader.list_facts_with_confidence("p", **options))


def commits(memory):
    return sorted(memory.journal.path(STREAM).glob("*.ttl"))


def listing(root):
    """Every file and folder below *root*, locks too."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


@contextmanager
def no_file_above(size):
    """The kernel refuses to let a file grow above *size* bytes, like a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def after(start):
    return fixed_sources(START + timedelta(days=start))


# --- the entry point and its stages ----------------------------------------------------------------------------------


def test_submitting_returns_a_receipt_whose_iri_is_the_memorys(memory):  # C017 C020
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


def test_each_stage_stands_alone(memory):  # C081
    given = MemoryUpdateIntent(**decision(topic="t"))
    normal = normalize.normalize(given, now=START, new_id=lambda: "1", schema=memory.schema).intent
    empty = WriteSnapshot(lambda s, p, o: [])
    validate.require_fields(normal, "p")
    validate.check_references(normal, empty, memory.settings.policy, list)
    assert conflict.detect(normal, conflict.keys(normal), empty, START, lambda prop: False) == ([], [])
    described = triples.describe(normal)
    assert (iri(MEMORY + "1"), TYPE, jido("ArchitecturalDecision")) in described
    assert validate.check_terms(described, empty, memory.schema, memory.settings.policy) == []


#: An intent that breaks a later stage too is refused by the earlier one.
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
def test_the_first_stage_that_fails_ends_the_way(memory, stages, code, full):  # C018 C019
    memory.writer.submit_intent("p", decision(topic="index"))
    before = files(memory.settings.root)
    given = intent(summary="two", **{key: value for name in stages for key, value in BROKEN[name].items()})
    with no_file_above(1000 if full else resource.RLIM_INFINITY):  # append would fail as well
        assert refusal(memory.writer.submit_intent, "p", given).code == code
    assert files(memory.settings.root) == before


def test_the_context_is_loaded_before_the_intent_is_looked_at(memory):  # C018
    assert refusal(memory.writer.submit_intent, "../p", intent(confidence="certain")).code == "invalid_project"
    memory.writer.submit_intent("p", intent())
    (file,) = commits(memory)
    file.write_text("this is no turtle")
    with jidomem.open(memory.settings.root) as again:
        for how in ({}, {"dry_run": True}):
            assert refusal(again.writer.submit_intent, "p", intent(confidence="?"), **how).code == "journal_damaged"


def test_an_append_that_fails_keeps_nothing(memory):  # C019 C075
    memory.writer.submit_intent("p", intent())
    before, known = files(memory.settings.root), triples_of(memory)
    with no_file_above(1000):
        error = refusal(memory.writer.submit_intent, "p", intent(summary="too much"))
    assert error.code == "write_failed"
    assert "nothing was stored" in error.detail
    assert files(memory.settings.root) == before
    assert triples_of(memory) == known
    assert memory.writer.submit_intent("p", intent(summary="too much")).status == "asserted"


def test_a_fault_of_the_program_is_raised_and_keeps_nothing(tmp_path):  # C019
    with jidomem.open(tmp_path / "root", sources=Sources(new_id=lambda: f"{1 // 0}")) as memory:
        for batch in (memory.writer.submit_intent, lambda project, given: memory.writer.submit_many(project, [given])):
            with pytest.raises(ZeroDivisionError):
                batch("p", intent())
        assert files(memory.settings.root) == {}


def test_the_shapes_judge_before_anything_is_written(memory):  # C076
    broken = intent(type="task", extra_triples=[["jido:hasTaskStatus", {"@id": "jido:Planned"}],
                                                ["jido:hasTaskStatus", {"@id": "jido:Blocked"}]])  # fmt: skip
    error = refusal(memory.writer.submit_intent, "p", broken)
    assert error.violations[0].shape == "https://jido.ai/shapes#TaskHasOneStatus"
    assert files(memory.settings.root) == {}


def test_what_is_written_is_readable_at_once_by_a_new_reader(memory):  # C020
    item = memory.writer.submit_intent("p", intent()).iri
    with jidomem.open(memory.settings.root) as other:
        assert other.reader.get_memory("p", item)["status"] == "active"


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


def test_the_reader_has_no_way_to_write(memory):  # C013
    verbs = ("submit", "remember", "write", "put", "insert", "delete", "update", "append", "revise", "invalidate")
    assert not [name for name in dir(memory.reader) if name.startswith(verbs)]


def test_a_write_only_adds(memory):  # C014 C015
    old = memory.writer.submit_intent("p", intent()).iri
    before, bytes_before = triples_of(memory), files(memory.settings.root)
    new = memory.writer.submit_intent("p", intent(summary="two", supersedes=[old])).iri
    added = triples_of(memory) - before
    assert before <= triples_of(memory)
    assert {s for s, _, _ in added if s.startswith(ITEM)} == {iri(new), iri(old)}
    assert {t for t in added if t[0] == iri(old)} == {(iri(old), jido("supersededBy"), iri(new))}
    assert bytes_before.items() <= files(memory.settings.root).items()  # no file was touched


# --- loading, refreshing, projects -----------------------------------------------------------------------------------


def test_a_memory_without_files_is_empty(tmp_path):  # C027
    with open_with(tmp_path, 'project = "p"\n') as memory:
        assert memory.reader.list_open_tasks("p") == []
        assert triples_of(memory) == set()
        assert str(memory.writer.refresh("p")) == "0"


def test_opening_brings_the_index_to_the_heads_of_the_journal(memory):  # C024 C025 C026
    for n in range(3):
        memory.writer.submit_intent("p", intent(summary=f"fact {n}"))
    with jidomem.open(memory.settings.root) as again:
        assert again.catch_up("p") == again.journal.head(STREAM) == memory.journal.head(STREAM)
        assert again.projects() == ["p"]
        assert again.journal.path(STREAM) == memory.settings.root / "projects" / "p" / "memory"
        assert triples_of(again) == triples_of(memory)


def test_a_refresh_shows_what_another_process_committed(memory):  # C021
    memory.writer.submit_intent("p", intent())
    with jidomem.open(memory.settings.root, sources=after(1)) as other:
        version = other.writer.submit_intent("p", intent(iri="urn:x:2", summary="from elsewhere")).version
    assert memory.writer.refresh("p") == version
    assert any(o == '"from elsewhere"' for _, _, o in memory.index.triples(GRAPH, iri("urn:x:2")))
    assert summaries(memory) == ["from elsewhere", "the build needs Rust 1.80"]


def test_a_file_that_does_not_parse_is_named_with_its_line_and_left_alone(memory):  # C027 C116
    memory.writer.submit_intent("p", intent())
    memory.writer.submit_intent("p", intent(summary="two"))
    file = commits(memory)[0]
    edited = file.read_text().replace(
        'jido:summary "the build needs Rust 1.80"', 'jido:summary "the build needs Rust 1.80'
    )
    file.write_text(edited)
    with jidomem.open(memory.settings.root, sources=after(1)) as again:
        error = refusal(again.writer.submit_intent, "p", intent(iri="urn:x:3", summary="three"))
    assert error.code == "journal_damaged"
    assert error.path == str(file)
    assert 'jido:summary "the build' in edited.splitlines()[error.line - 1]
    assert error.hint.startswith(
        "restore the file from a backup, then run: jidomem journal verify"
    )  # the root is not in git
    assert file.read_text() == edited


@pytest.mark.parametrize("change", [("Rust 1.80", "Rust 1.81"), ("jido:High", "jido:Low")])
def test_a_hand_edit_is_refused_with_the_command_that_changes_the_memory(memory, change):  # C116
    kept = memory.writer.submit_intent("p", intent())
    (file,) = commits(memory)
    file.write_text(file.read_text().replace(*change))
    with jidomem.open(memory.settings.root, sources=after(1)) as again:
        error = refusal(again.writer.submit_intent, "p", intent(iri="urn:x:3", summary="three"))
        assert (error.code, error.path) == ("journal_damaged", str(file))
        assert f"jidomem edit {kept.iri[-8:]} --set FIELD=VALUE --reason TEXT" in error.hint
        assert [found.path for found in again.damage("p")] == [str(file)]


def test_the_journal_is_readable_by_hand(memory):  # C116 C078
    memory.writer.submit_intent("p", decision())
    text = commits(memory)[0].read_text()
    assert "    a jido:ArchitecturalDecision ;\n" in text
    assert '    jido:rationale "it embeds" ;\n' in text
    assert max(map(len, text.splitlines())) < 200


@pytest.mark.parametrize("project", ["../p", "..", "/etc", "p/../../x", "a/b", "", ".", "P", "p\x00", "-p", "x" * 65])
def test_a_project_id_cannot_leave_the_root(tmp_path, project):  # C028
    with jidomem.open(tmp_path / "root", sources=fixed_sources()) as memory:
        given = intent(applies_to_project=f"https://jido.ai/projects/{project}")
        assert refusal(memory.writer.submit_intent, project, given).code == "invalid_project"
    assert listing(tmp_path) == []


def test_a_first_write_creates_its_project(memory):  # C022
    memory.writer.submit_intent("fresh", intent(applies_to_project="fresh"))
    assert memory.projects() == ["fresh"]


def test_the_first_receipt_of_a_project_beside_others_warns_and_names_the_nearest(memory):
    first = memory.writer.submit_intent("parcel", intent(applies_to_project="parcel"))
    dry = memory.writer.submit_intent("parcl", intent(applies_to_project="parcl"), dry_run=True)
    stray = memory.writer.submit_intent("parcl", intent(applies_to_project="parcl"))
    later = memory.writer.submit_intent("parcl", intent(applies_to_project="parcl", summary="two"))
    other = memory.writer.acting_as("ana", "agent").start_session("new", "s-1")

    assert first.warnings == later.warnings == ()
    assert dry.warnings == stray.warnings
    assert "begins the project parcl beside parcel; if you meant parcel, write it there" in stray.warnings[0]
    # an agent with a token may not know the other projects
    assert other.warnings == ("this begins the project new, which this root did not have",)


def test_without_create_projects_an_unknown_project_is_refused(tmp_path):  # C022
    with open_with(tmp_path) as memory:
        memory.writer.submit_intent("p", intent())
    with open_with(tmp_path, "create_projects = false\n") as memory:
        error = refusal(memory.writer.submit_intent, "fresh", intent(applies_to_project="fresh"))
        assert error.code == "unknown_project"
        assert memory.writer.submit_intent("p", intent(iri="urn:x:2", summary="two")).status == "asserted"
        assert memory.projects() == ["p"]


def test_what_another_agent_asserts_is_filed_under_the_daily_session_of_that_agent(tmp_path):
    with jidomem.open(tmp_path, project="p", agent="root-agent", sources=fixed_sources()) as memory:
        day = memory.writer.session.removeprefix("root-agent-")
        first = memory.remember("it rained", asserted_by="ana")
        iri = memory.remember("it snowed", asserted_by="https://jido.ai/agents/ana")
        own, given = memory.remember("it hailed"), memory.remember("sun", asserted_by="ana", asserted_in="s-1")
        who = {"asserted_by": "ben"}
        fix = memory.writer.correct("p", first.iri, supersede="it poured", reason="wet", who=who)

        sessions = [values_of(memory, each.iri, "assertedIn") for each in (first, iri, own, given, fix)]

    names = [f"ana-{day}", f"ana-{day}", f"root-agent-{day}", "s-1", f"ben-{day}"]
    assert sessions == [[f"<https://jido.ai/sessions/{name}>"] for name in names]


def test_a_session_that_was_given_is_that_of_every_agent(tmp_path):
    with jidomem.open(tmp_path, project="p", session="standup", sources=fixed_sources()) as memory:
        item = memory.remember("it rained", asserted_by="ana").iri
        assert values_of(memory, item, "assertedIn") == ["<https://jido.ai/sessions/standup>"]


# --- deterministic bytes ---------------------------------------------------------------------------------------------


def _a_day(memory):
    """A day's work of all kinds, some of it refused."""
    writer = memory.writer
    first = writer.submit_intent("p", decision(topic="index", alternatives=["Jena"], evidence=["bench", "cost"])).iri
    writer.submit_many("p", [intent(summary=f"fact {n}", about=["b", "a"]) for n in range(3)])
    refusal(writer.submit_intent, "p", intent(confidence="certain"))
    writer.submit_intent("p", decision(summary="Use Lucene", topic="index", supersedes=[first]))
    writer.submit_many("p", [intent(type="task", summary=f"do {n}") for n in range(3)], atomic=True)
    writer.start_session("p", "s-2")
    writer.move_session("p", "s-2", phase="review")
    writer.remember("p", "it rained", asserted_by="bob", asserted_in="s-2")


def test_the_same_intents_give_the_same_bytes(tmp_path):  # C114 C078
    for name in ("one", "two"):
        with jidomem.open(tmp_path / name, sources=fixed_sources()) as memory:
            _a_day(memory)
    assert files(tmp_path / "one") == files(tmp_path / "two")
    assert len(files(tmp_path / "one")) > 3


def test_the_order_of_extra_triples_and_evidence_leaves_no_trace(tmp_path):  # C078
    extra = [["jido:key", "a"], ["jido:key", "b"], ["https://example.org/p", "c"]]
    for name, turn in (("one", 1), ("two", -1)):
        with jidomem.open(tmp_path / name, sources=fixed_sources()) as memory:
            memory.writer.submit_intent("p", intent(extra_triples=extra[::turn], evidence=["x", "y"][::turn]))
    assert files(tmp_path / "one") == files(tmp_path / "two")


def test_blocks_are_sorted_and_prefixes_stable(memory):  # C078
    _a_day(memory)
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


def test_what_is_read_back_is_exactly_what_was_built(memory):  # C074 C079
    _a_day(memory)
    fresh = ox.Store()
    for file in commits(memory):
        fresh.load(file.read_bytes(), ox.RdfFormat.TURTLE)
    assert {(str(q.subject), str(q.predicate), str(q.object)) for q in fresh} == triples_of(memory)
    assert len(committed_triples(memory)) == len(triples_of(memory))


# --- durability ------------------------------------------------------------------------------------------------------


def test_file_and_folder_are_flushed_around_the_rename(memory, monkeypatch):  # C077 C075
    memory.writer.submit_intent("p", intent())
    seen, folder = [], str(memory.journal.path(STREAM))
    fsync, rename = os.fsync, os.rename
    names = lambda descriptor: os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: E731
    monkeypatch.setattr(os, "fsync", lambda fd: (seen.append(("fsync", names(fd))), fsync(fd))[1])
    monkeypatch.setattr(os, "rename", lambda a, b: (seen.append(("rename", a, b)), rename(a, b))[1])
    memory.writer.submit_intent("p", intent(summary="two"))
    (renamed,) = [entry for entry in seen if entry[0] == "rename"]
    assert os.path.dirname(renamed[1]) == os.path.dirname(renamed[2]) == folder
    assert seen == [("fsync", renamed[1]), renamed, ("fsync", folder)]


def test_what_a_killed_writer_left_half_written_is_not_read(memory):  # C075 C077
    memory.writer.submit_intent("p", intent())
    (memory.journal.path(STREAM) / ".incoming.lock").write_bytes(commits(memory)[0].read_bytes()[:700])
    with jidomem.open(memory.settings.root, sources=after(1)) as again:
        assert summaries(again) == ["the build needs Rust 1.80"]
        assert again.damage("p") == ()
        assert again.writer.submit_intent("p", intent(iri="urn:x:2", summary="two")).status == "asserted"


# --- dry runs, batches, threads --------------------------------------------------------------------------------------


def test_a_dry_run_keeps_nothing_and_foretells_the_receipt(tmp_path):  # C019
    told = []
    for name, dry in (("dry", True), ("wet", False)):
        with jidomem.open(tmp_path / name, sources=fixed_sources()) as memory:
            told.append(memory.writer.submit_intent("p", decision(), dry_run=dry))
    dry, wet = told
    assert (dry.iri, dry.status, dry.filled, dry.warnings) == (wet.iri, wet.status, wet.filled, wet.warnings)
    assert (dry.commit, str(dry.version)) == (None, "0")
    assert listing(tmp_path) == [name for name in listing(tmp_path) if name.startswith("wet")]


@pytest.mark.parametrize(
    "fields", [{"confidence": "hgih"}, {"supersedes": [MEMORY + "nobody"]}, {"detailed_explanation": "x"}]
)
def test_a_dry_run_is_refused_for_what_the_real_one_is(memory, fields):  # C019
    memory.writer.submit_intent("p", intent())
    before = files(memory.settings.root)
    dry = refusal(memory.writer.submit_intent, "p", intent(**fields), dry_run=True)
    wet = refusal(memory.writer.submit_intent, "p", intent(**fields))
    assert dry.to_dict() == wet.to_dict()
    assert files(memory.settings.root) == before


def test_many_intents_are_answered_one_by_one_in_their_order(memory):  # C017
    given = [
        intent(summary="one"),
        intent(confidence="?"),
        intent(summary="one"),
        {"type": "decision"},
        intent(summary="two"),
    ]
    outcomes = memory.writer.submit_many("p", given)
    assert [getattr(found, "status", getattr(found, "code", None)) for found in outcomes] == [
        "asserted", "invalid_confidence", "deduplicated", "missing_required_fields", "asserted",
    ]  # fmt: skip
    assert [found.position for found in outcomes if isinstance(found, JidomemError)] == [1, 3]
    assert outcomes[2].iri == outcomes[0].iri
    assert {found.commit for found in outcomes if isinstance(found, Receipt)} == {outcomes[0].commit}
    assert summaries(memory) == ["one", "two"]


def test_an_intent_is_judged_with_those_before_it_in_view(memory):  # C018
    first, second = intent(iri="urn:x:1", summary="one"), intent(iri="urn:x:2", summary="two", supersedes=["urn:x:1"])
    stale = intent(summary="three", supersedes=["urn:x:1"])
    one, two, three = memory.writer.submit_many("p", [first, second, stale])
    assert (one.status, two.status, three.code) == ("asserted", "asserted", "conflict")
    assert summaries(memory) == ["two"]


def test_all_or_nothing_keeps_nothing_when_one_is_refused(memory):  # C019
    error = refusal(memory.writer.submit_many, "p", [intent(), intent(summary="b", confidence="?")], atomic=True)
    assert (error.code, error.position) == ("invalid_confidence", 1)
    assert error.to_dict()["position"] == 1
    assert files(memory.settings.root) == {}
    receipts = memory.writer.submit_many("p", [intent(), intent(summary="b")], atomic=True)
    assert len({receipt.commit for receipt in receipts}) == len(commits(memory)) == 1


#: What passes every stage, and no strict parser reads: a literal of a datatype that asks for a language.
UNREADABLE = [["http://example.org/p", {"@value": "a", "@type": RDF + "langString"}]]


def test_what_would_not_read_back_is_refused_alone(memory):  # C019 C079
    bad = intent(summary="same", extra_triples=UNREADABLE)
    error = refusal(memory.writer.submit_intent, "p", bad, dry_run=True)
    assert codes(error) == ["invalid_iri"]
    assert error.violations[0].field == "extra_triples"
    assert refusal(memory.writer.submit_many, "p", [intent(), bad], atomic=True).position == 1
    assert files(memory.settings.root) == {}
    given = [intent(), bad, intent(summary="same"), intent(summary="last")]
    one, refused, same, last = memory.writer.submit_many("p", given)
    assert (codes(refused), refused.position) == (["invalid_iri"], 1)
    assert len({one.commit, same.commit, last.commit}) == len(commits(memory)) == 1
    assert summaries(memory) == ["last", "same", "the build needs Rust 1.80"]


def test_no_intents_are_answered_with_none(memory):
    assert memory.writer.submit_many("p", []) == memory.writer.submit_many("p", [], atomic=True) == []
    assert files(memory.settings.root) == {}


@pytest.mark.parametrize("batch", ["a list", "a stream", "atomic"])
def test_many_are_proposed_together_and_none_is_active_whatever_it_disagrees_with(memory, batch):
    memory.writer.submit_intent("p", decision(topic="store"))
    before = len(files(memory.settings.root))
    rivals = [decision(summary=f"Use store {n}", topic="store") for n in range(3)]
    given = iter(rivals) if batch == "a stream" else rivals

    receipts = list(memory.writer.submit_many("p", given, propose=True, atomic=batch == "atomic"))

    assert [receipt.status for receipt in receipts] == ["proposed"] * 3
    assert {found.kind for receipt in receipts for found in receipt.conflicts} == {"overlapping_decision"}
    assert len(files(memory.settings.root)) == before + 1
    assert len(memory.reader.ask("decisions", project="p")) == 1


def test_a_large_batch_is_kept_in_blocks_and_whole(memory):  # C074
    outcomes = memory.writer.submit_many("p", [intent(summary=f"fact {n}") for n in range(200)])
    assert all(isinstance(outcome, Receipt) for outcome in outcomes)
    assert 1 < len(commits(memory)) < 20
    assert len(summaries(memory)) == 200


def test_threads_lose_nothing_and_share_commits(tmp_path):  # C023
    with jidomem.open(tmp_path / "root") as memory:
        memory.writer.submit_intent("p", intent(summary="first"))
        outcomes, barrier = {}, threading.Barrier(8)

        def work(name):
            barrier.wait()
            for n in range(10):
                given = intent(summary=f"{name} {n}", confidence="?" if n == 5 else "high")
                try:
                    outcomes[name, n] = memory.writer.submit_intent("p", given)
                except JidomemError as error:
                    outcomes[name, n] = error

        threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(outcomes) == 80
        assert {outcomes[name, 5].code for name in range(8)} == {"invalid_confidence"}
        kept = [outcome for outcome in outcomes.values() if isinstance(outcome, Receipt)]
        assert len(kept) == len({receipt.iri for receipt in kept}) == 72  # one refusal stopped no other
        assert len(commits(memory)) < 73
        committed_triples(memory)
        with jidomem.open(tmp_path / "root") as again:
            found = {row["fact"] for row in again.reader.list_facts_with_confidence("p")}
        assert {receipt.iri for receipt in kept} <= found


def test_two_writers_of_one_root_take_turns(memory):  # C023
    with jidomem.open(memory.settings.root, sources=after(1)) as other:
        for n in range(3):
            memory.writer.submit_intent("p", intent(summary=f"a {n}"))
            other.writer.submit_intent("p", intent(iri=f"urn:x:{n}", summary=f"b {n}"))
        assert summaries(memory) == summaries(other) == ["a 0", "a 1", "a 2", "b 0", "b 1", "b 2"]


@pytest.mark.parametrize("atomic", [False, True])
def test_a_commit_that_arrives_while_judging_is_taken_into_view(tmp_path, atomic):  # C023 C018
    with jidomem.open(tmp_path / "other", sources=after(1)) as other:
        item = other.writer.submit_intent("p", intent(iri="urn:x:theirs")).iri
    arriving = [other.journal.path(STREAM)]

    def now():  # as a git pull would, between the look at the journal and the append
        if arriving:
            target = tmp_path / "root" / "projects" / "p" / "memory"
            for file in arriving.pop().glob("*.ttl"):
                (target / file.name).write_bytes(file.read_bytes())
        return START

    with jidomem.open(tmp_path / "root", sources=Sources(now=now)) as memory:
        kept, same = memory.writer.submit_many("p", [intent(summary="mine"), intent()], atomic=atomic)
        assert (kept.status, same.status, same.iri) == ("asserted", "deduplicated", item)
        assert len(commits(memory)) == 2
        assert memory.journal.verify(STREAM) == ()


def test_a_clock_that_goes_back_does_not_reorder_the_journal(tmp_path):  # C114
    moments = iter([START, START - timedelta(days=1), START - timedelta(days=2)])
    with jidomem.open(tmp_path / "root", sources=Sources(now=lambda: next(moments))) as memory:
        positions = [memory.writer.submit_intent("p", intent(summary=f"s {n}")).version for n in range(3)]
    assert [version.recorded_at for version in positions] == [
        "2026-11-21T08:00:00.000000Z", "2026-11-21T08:00:00.000001Z", "2026-11-21T08:00:00.000002Z",
    ]  # fmt: skip


def test_nobody_is_refused_for_what_was_judged_beside_it_and_then_not_kept(memory, monkeypatch):
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


def test_a_retry_gets_its_first_receipt_again(memory):
    first = memory.writer.submit_intent("p", intent(**KEYED, type="task"))
    before = files(memory.settings.root)
    assert memory.writer.submit_intent("p", intent(**KEYED, type="task")).to_dict() == first.to_dict()
    with jidomem.open(memory.settings.root) as again:
        assert again.writer.submit_intent("p", intent(**KEYED, type="task")).to_dict() == first.to_dict()
    assert files(memory.settings.root) == before


@pytest.mark.parametrize("fields", [KEYED, {}])
def test_what_is_there_already_is_answered_only_once_it_is_durable(memory, monkeypatch, fields):
    # C023
    def broken(path):
        raise OSError(errno.EROFS, "Read-only file system", path)

    memory.writer.submit_intent("p", intent(summary="before"))
    with monkeypatch.context() as patched:
        patched.setattr(disk, "flush", broken)
        patched.setattr(disk, "unlink", broken)
        refused = refusal(memory.writer.submit_intent, "p", intent(**fields))
        assert "in place, but could not be made durable" in refused.detail
        with jidomem.open(memory.settings.root) as again:
            for retrying in (memory, again):
                assert refusal(retrying.writer.submit_intent, "p", intent(**fields)).code == "write_failed"

    assert memory.writer.submit_intent("p", intent(**fields)).status == ("asserted" if fields else "deduplicated")
    assert summaries(memory) == ["before", "the build needs Rust 1.80"]


def test_a_retry_may_say_the_same_in_another_order(memory):
    value = {"@value": "5", "@type": "xsd:integer"}
    first, again = (
        memory.writer.submit_intent("p", intent(**KEYED, extra_triples=[["urn:x:p", dict(pairs)]]))
        for pairs in (value.items(), reversed(value.items()))
    )
    assert first == again


def test_a_retry_is_answered_the_same_after_the_memory_was_replaced(memory):
    first = memory.writer.submit_intent("p", intent(**KEYED))
    memory.writer.submit_intent("p", intent(summary="new", supersedes=[first.iri]))
    assert memory.writer.submit_intent("p", intent(**KEYED)).to_dict() == first.to_dict()


def test_a_retry_of_a_deduplicated_intent_is_answered_the_same(memory):
    item = memory.writer.submit_intent("p", intent()).iri
    first = memory.writer.submit_intent("p", intent(**KEYED))
    assert (first.status, first.iri) == ("deduplicated", item)
    memory.writer.invalidate("p", item, reason="wrong")
    again = memory.writer.submit_intent("p", intent(**KEYED))
    assert (again.status, again.iri) == ("deduplicated", item)
    assert summaries(memory) == []


def test_a_retry_of_a_proposal_shows_its_conflicts_again(tmp_path):
    with open_with(tmp_path, '[conflicts]\ndecision = "propose"\n') as memory:
        memory.writer.submit_intent("p", decision(topic="t"))
        first = memory.writer.submit_intent("p", decision(topic="t", summary="else", **KEYED))
        assert first.status == "proposed"
        assert (
            memory.writer.submit_intent("p", decision(topic="t", summary="else", **KEYED)).to_dict() == first.to_dict()
        )


def test_a_key_used_for_another_intent_is_refused(memory):
    memory.writer.submit_intent("p", intent(**KEYED))
    before = files(memory.settings.root)
    error = refusal(memory.writer.submit_intent, "p", intent(summary="another", **KEYED))
    assert error.code == "idempotency_mismatch"
    assert files(memory.settings.root) == before


def test_keys_are_each_agents_and_each_projects_own(memory):
    first = memory.writer.submit_intent("p", intent(**KEYED))
    other = memory.writer.submit_intent("p", intent(summary="two", asserted_by="bob", **KEYED))
    elsewhere = memory.writer.submit_intent("q", intent(summary="three", applies_to_project="q", **KEYED))
    assert len({first.iri, other.iri, elsewhere.iri}) == 3


def test_one_key_sent_at_once_by_two_is_kept_once(tmp_path):  # C023
    roots = [jidomem.open(tmp_path / "root") for _ in range(2)]
    barrier, told = threading.Barrier(6), []

    def work(n):
        barrier.wait()
        told.append(roots[n % 2].writer.submit_intent("p", intent(**KEYED)))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == 6
    assert len({(receipt.iri, receipt.commit) for receipt in told}) == 1
    assert len(commits(roots[0])) == 1


def test_one_key_twice_in_a_batch_is_kept_once(memory):
    one, two = memory.writer.submit_many("p", [intent(**KEYED), intent(**KEYED)])
    assert (one.iri, one.commit) == (two.iri, two.commit)
    assert len(summaries(memory)) == 1


def test_a_refusal_uses_up_no_key(memory):
    refusal(memory.writer.submit_intent, "p", intent(confidence="?", **KEYED))
    assert memory.writer.submit_intent("p", intent(**KEYED)).status == "asserted"


# --- the verbs over an intent ----------------------------------------------------------------------------------------


def test_remembering_fills_what_is_missing_and_says_so(memory):
    receipt = memory.writer.remember("p", "it rained")
    found = memory.reader.get_memory("p", receipt.iri)["properties"]
    assert found["summary"] == ["it rained"]
    assert {"type", "asserted_by", "asserted_in", "confidence", "applies_to_project"} <= set(receipt.filled)
    assert found["assertedIn"][0].endswith(receipt.filled["asserted_in"])


def test_a_revision_changes_one_field_and_carries_the_others_over(memory):
    fields = {"type": "task", "topic": "docs", "about": ["docs/"], "evidence": ["asked for"], "assigned_to": "bob"}
    old = memory.writer.submit_intent("p", intent(**fields)).iri
    new = memory.writer.revise("p", old, changes={"status": "Completed"}, reason="merged").iri
    before, now = (memory.reader.get_memory("p", item)["properties"] for item in (old, new))
    assert now["hasTaskStatus"] == ["https://jido.ai/ontology#Completed"]
    assert now["revisionReason"] == ["merged"]
    for name in ("summary", "topic", "about", "derivedFrom", "assignedTo", "hasConfidence"):
        assert now[name] == before[name], name
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
def test_a_memory_restated_is_the_intent_that_said_it(memory, fields):
    item = memory.writer.submit_intent("p", intent(**fields)).iri
    again = memory.writer.restated("p", item)
    again.pop("iri")
    receipt = memory.writer.submit_intent("p", {**again, "supersedes": [item]})
    skip = {"iri", "supersedes", "reason"}
    first, second = (memory.writer.restated("p", one) for one in (item, receipt.iri))
    assert {k: v for k, v in first.items() if k not in skip} == {k: v for k, v in second.items() if k not in skip}


def test_a_withdrawal_ends_a_memory_and_puts_nothing_in_its_place(memory):
    old = memory.writer.submit_intent("p", intent()).iri
    marker = memory.writer.invalidate("p", old, reason="it was never so")
    assert memory.reader.get_memory("p", old)["invalidated_by"] == [marker.iri]
    assert memory.reader.get_memory("p", marker.iri)["properties"]["rationale"] == ["it was never so"]
    assert summaries(memory) == []


@pytest.mark.parametrize("verb", ["revise", "invalidate"])
def test_a_verb_about_no_memory_is_refused(memory, verb):
    memory.writer.submit_intent("p", intent())
    more = {"changes": {"topic": "x"}} if verb == "revise" else {}
    for item in (MEMORY + "nobody", "https://jido.ai/agents/architect", "nonsense", "a b <c>"):
        assert refusal(getattr(memory.writer, verb), "p", item, reason="r", **more).code in ("not_found", "invalid_iri")


# --- audit -----------------------------------------------------------------------------------------------------------


def test_every_memory_can_be_traced_and_its_whole_chain_listed(memory):  # C115
    chain = [memory.writer.submit_intent("p", intent(evidence=["the log"])).iri]
    for n in range(3):
        given = intent(summary=f"version {n}", supersedes=[chain[-1]], evidence=[f"log {n}"])
        chain.append(memory.writer.submit_intent("p", given).iri)
    walked = [chain[0]]
    while following := memory.reader.get_memory("p", walked[-1])["superseded_by"]:
        walked += following
    assert walked == chain
    for item in chain:
        found = memory.reader.get_memory("p", item)
        for name in ("assertedBy", "assertedIn", "hasTimestamp", "derivedFrom", "recordedIn"):
            assert found["properties"][name], name
        assert found["commit"] in {f"urn:jido:commit:{commit.id}" for commit in memory.journal.read(STREAM)} | {
            commit.id for commit in memory.journal.read(STREAM)
        }


def test_the_invariants_hold_after_a_days_work(memory):  # C118
    _a_day(memory)
    found = triples_of(memory)
    projects = {}
    for s, p, _ in found:
        if p == jido("appliesToProject"):
            projects[s] = projects.get(s, 0) + 1
    items = {s for s, p, _ in found if p == jido("hasAssertionStatus")}
    assert projects == dict.fromkeys(items, 1)  # I1
    topics = [
        values_of(memory, row["decision"], "topic") for row in memory.reader.list_active_architectural_decisions("p")
    ]
    assert len(topics) == len({*map(str, topics)}) == 1  # I2
    subjects = {s for s, _, _ in found}
    assert {
        o for _, _, o in found if o.startswith("<https://jido.ai/") and "/ontology#" not in o and "/graphs/" not in o
    } <= subjects


# --- sessions --------------------------------------------------------------------------------------------------------


def active(memory, **options):
    return [row["session"].rsplit("/", 1)[-1] for row in memory.reader.list_active_sessions("p", **options)]


def test_a_session_is_opened_moved_and_closed_by_events(memory):
    memory.writer.start_session("p", "s-1", agent="architect")
    assert active(memory) == ["s-1"]
    memory.writer.move_session("p", "s-1", phase="review")
    memory.writer.move_session("p", "s-1", status="paused")
    assert active(memory) == []
    memory.writer.move_session("p", "s-1", status="Active")
    assert active(memory) == ["s-1"]
    memory.writer.move_session("p", "s-1", status="Closed")
    assert active(memory) == []
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


def test_what_was_known_on_a_day_is_still_known_of_that_day(memory):  # C014
    old = memory.writer.submit_intent("p", intent()).iri
    then = datetime(2026, 11, 21, 8, 0, 0, 500_000, tzinfo=UTC)
    memory.writer.submit_intent("p", intent(summary="two", supersedes=[old]))
    assert (summaries(memory), summaries(memory, as_of=then)) == (["two"], ["the build needs Rust 1.80"])
