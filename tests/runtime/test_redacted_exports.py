"""A memory that lost a text to a redaction is exported as redacted, and imported as redacted."""

import re
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from click.testing import CliRunner
from conftest import decision, examples, intent
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_entry_store import contents, list_entries, record
from test_lossless_exports import STEPS, exported, state, submit

import jidomem
from jidomem.check.check import check_project
from jidomem.errors import IntentRefused, JidomemError
from jidomem.exchange.documents import DocumentFormat
from jidomem.exchange.importer import import_document
from jidomem.journal.journal import Stream
from jidomem.rdf.vocab import REDACTED, TYPE, jido
from jidomem.records.policy import PolicyChange
from jidomem_cli.main import cli

STREAM = Stream("p")
#: What is redacted: a word of summaries and topics, a reason, the names of authors and of their sessions, and the texts
#: of one memory.
SECRETS = ("SQLite", "because 1", "Redis", "ana", "ben", "Nobody", "wrong", None)
PROPERTIES = ("rationale", "assertedBy", "assertedIn", "topic", "about", "hasEnforcementLevel", "hasTaskStatus",
              "conventionName", "derivedFrom", "coexistsWith", "revives", "settledBy")  # fmt: skip


def redact(memory, texts, item=None, properties=()):
    plan = memory.maintenance.plan("p", item, texts=texts, properties=[jido(name)[1:-1] for name in properties])
    memory.maintenance.redact(plan, agent="zoe", reason="a person asked for it")


def assert_is_restored(original, folder, form=DocumentFormat.TURTLE):
    """Check that an export gives the same root, with the same findings, and imported again changes nothing."""
    data, judged = exported(original, form), findings(original)
    copy, report = imported(original, folder, form)
    with copy:
        assert [entry.outcome.to_dict() for entry in report.refusals] == []
        assert state(copy) == state(original)
        assert findings(copy) == judged
        assert exported(copy, form) == data
        again = import_document(copy.writer, copy.schema, "p", "m", data, form)
        assert [entry.outcome for entry in again.entries if entry.outcome] == []
        assert exported(copy, form) == data


def findings(memory):
    report = check_project(memory.follower, memory.schema, "p")
    return sorted((one.item, one.rule, one.severity, one.message) for one in report.problems)


def imported(memory, folder, form=DocumentFormat.TURTLE, data=None):
    copy = jidomem.open(folder, project="p")
    report = import_document(copy.writer, copy.schema, "p", "m", data or exported(memory, form), form)
    return copy, report


@example(
    start=[(0, 0), (1, 1), (2, 2)],
    proposed=[(4, 1), (8, 0), (12, 2)],
    steps=[("accept", 3, 0), ("edit", 0, 1), ("propose a withdrawal", 1, 1)],
    secrets=["SQLite", "ben", "Nobody"],
    properties=[("assertedBy", 6), ("rationale", 0)],
)
@given(
    start=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=4),
    proposed=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=3),
    steps=st.lists(st.tuples(st.sampled_from([*STEPS]), st.integers(0, 15), st.integers(0, 15)), max_size=6),
    secrets=st.lists(st.sampled_from(SECRETS), min_size=1, max_size=3),
    properties=st.lists(st.tuples(st.sampled_from(PROPERTIES), st.integers(0, 15)), max_size=3),
)
@settings(max_examples=examples(8), deadline=None)
def test_a_root_with_redactions_is_restored(start, proposed, steps, secrets, properties):
    with TemporaryDirectory() as folder, jidomem.open(Path(folder, "original"), project="p") as memory:
        items = []
        for each, propose in [*((one, False) for one in start), *((one, True) for one in proposed)]:
            with suppress(JidomemError):
                items.append(submit(memory, *each, propose=propose).iri)
        options = {"alternatives": ["Nobody does it", "Ana does it"], "evidence": ["Nobody said so"]}
        items.append(memory.writer.submit_intent("p", decision(topic="who", asserted_by="cem", **options)).iri)
        for number, (step, one, other) in enumerate(steps):
            with suppress(JidomemError):
                items.append(STEPS[step](memory, items[one % len(items)], items[other % len(items)], one).iri)
            if number < len(secrets):
                with suppress(JidomemError):
                    redact(memory, [secrets[number]] if secrets[number] else [], None if secrets[number] else items[0])
        for secret in secrets:
            with suppress(JidomemError):
                redact(memory, [secret] if secret else [], None if secret else items[0])
        for name, one in properties:
            with suppress(JidomemError):
                redact(memory, [], items[one % len(items)], [name])
        assert_is_restored(memory, Path(folder, "new"))


@pytest.fixture
def memory(tmp_path):
    with jidomem.open(tmp_path / "original", project="p") as memory:
        yield memory


@pytest.fixture
def choice(memory):
    """Return an active decision that lost its rationale, its author and one of two alternatives."""
    options = {"rationale": "Hedwig asked for it", "alternatives": ["Hedwig pays", "Nobody pays"], "topic": "prices"}
    item = memory.writer.submit_intent("p", decision(summary="Own prices", asserted_by="hedwig", **options)).iri
    redact(memory, ["Hedwig"])
    return item


@pytest.mark.parametrize("form", [*DocumentFormat])
def test_a_decision_that_lost_its_reason_and_its_author_is_imported_as_an_active_one(memory, choice, tmp_path, form):
    assert_is_restored(memory, tmp_path / "copy", form)
    with jidomem.open(tmp_path / "copy", project="p") as copy:
        assert [row["decision"] for row in copy.reader.ask("decisions", project="p")] == [choice]
        (redaction,) = copy.reader.history("p", choice)[0]["redactions"]
        assert [redaction] == memory.reader.history("p", choice)[0]["redactions"]  # at the time of the original
        assert (redaction["reason"], redaction["agent"]) == ("a person asked for it", "https://jido.ai/agents/zoe")
        assert {f["severity"] for f in copy.check("p").to_dict()["problems"]} == {"info"}
        with pytest.raises(IntentRefused, match="a decision says why"):
            copy.writer.revise("p", choice, changes={"topic": "fees"}, reason="clearer")


def test_what_is_left_of_a_redacted_entry_is_not_exported(memory, tmp_path):
    for text in ("Hedwig pays", "Lunch at noon"):
        record(memory.entries, text)
    redact(memory, ["Hedwig"])

    copy, report = imported(memory, tmp_path / "copy", DocumentFormat.N_QUADS)
    with copy:
        assert (report.refusals, contents(list_entries(copy.entries))) == ([], ["Lunch at noon"])
        assert exported(copy, DocumentFormat.N_QUADS) == exported(memory, DocumentFormat.N_QUADS)


def test_a_memory_that_a_root_has_whole_is_not_taken_for_the_redacted_one(memory, tmp_path):
    item = memory.writer.submit_intent("p", intent(summary="Hedwig pays", topic="fees")).iri
    copy, _ = imported(memory, tmp_path / "copy")
    redact(memory, ["Hedwig"])
    with copy:
        report = import_document(copy.writer, copy.schema, "p", "m", exported(memory, DocumentFormat.TURTLE))
        (refusal,) = report.refusals
        command = f"jidomem journal redact {item} --property summary --reason TEXT"
        assert (refusal.summary, refusal.outcome.hint.rpartition("here: ")[2]) == (REDACTED, command)
        redact(copy, [], item, ["summary"])
        report = import_document(copy.writer, copy.schema, "p", "m", exported(memory, DocumentFormat.TURTLE))
        assert report.refusals == []


def fill(memory):
    here = intent(summary="call back", asserted_by="greta", asserted_in="greta-lind-case", iri="urn:x")
    memory.writer.submit_intent("p", here)
    memory.writer.submit_intent("p", intent(summary="call later", iri="urn:fact:greta-lind"))
    record(memory.entries, "Greta Lind, latex allergy")
    record(memory.entries, "Lunch at noon")
    memory.conversation("call").record("I am Greta Lind, why?", "Two records", asked_by="greta")
    memory.conversation("greta-lind").record("Why again?", "No reason", asked_by="ana")


@pytest.mark.parametrize("is_copy", [False, True])
@pytest.mark.parametrize("form", DocumentFormat)
def test_an_export_from_before_a_redaction_brings_nothing_of_it_back(memory, tmp_path, form, is_copy):
    fill(memory)
    older = exported(memory, form)
    with jidomem.open(tmp_path / "other", project="p") as other:
        import_document(other.writer, other.schema, "p", "m", older, form)
        other.writer.submit_intent("p", intent(summary="the shop is closed", iri="urn:new", asserted_by="bob"))
        grown = exported(other, form)
    copy, _ = imported(memory, tmp_path / "copy", DocumentFormat.N_QUADS)
    with copy:
        root = copy if is_copy else memory
        redact(root, ["Greta Lind", "greta"])
        root.writer.submit_intent("p", intent(summary="of another day"))
        before = exported(root, DocumentFormat.N_QUADS)
        for data, added in ((older, set()), (grown, {"urn:new"})):
            report = import_document(root.writer, root.schema, "p", "m", data, form)

            refused = {entry.iri: entry.outcome.code for entry in report.refusals}
            assert refused == {"urn:x": "request_redacted", "urn:fact:greta-lind": "request_redacted"}
            assert {entry.iri for entry in report.accepted} == added
            assert any("left out, in whole or in part: " in note for note in report.notes)
            assert contents(list_entries(root.entries)) == ["Lunch at noon"]
            lines = {*exported(root, DocumentFormat.N_QUADS).decode().splitlines()}
            assert lines >= {*before.decode().splitlines()}
            assert not re.search("greta|two records|no reason", "".join(lines), re.IGNORECASE)


def test_an_import_names_the_new_memories_whose_iri_may_have_a_redacted_text(memory):
    for summary, name in (("has a dog", "urn:fact:greta-lind"), ("has a cat", "urn:fact:cat"), ("is old", None)):
        memory.writer.submit_intent("p", intent(summary=summary, **({"iri": name} if name else {})))
    data = re.sub(rb"20[0-9-]{8}T[0-9:.]{8,15}Z", b"2025-01-01T08:00:00Z", exported(memory, DocumentFormat.TURTLE))
    redact(memory, ["greta lind", "has a cat"])

    report = import_document(memory.writer, memory.schema, "p", "m", data)

    (note,) = [note for note in report.notes if "memories that are new here" in note]
    assert "urn:fact:greta-lind; if a redaction removed one whole" in note
    assert "journal redact --dry-run --text TEXT" in note
    redact(memory, ["greta lind"])
    assert not any("greta" in line for line in exported(memory, DocumentFormat.N_QUADS).decode().lower().splitlines())


def test_what_was_redacted_by_its_iri_stays_so_after_an_import(memory):
    record(memory.entries, "Lunch at noon")
    turn = memory.conversation("call").record("Why?", "No reason", asked_by="carl")
    older = exported(memory, DocumentFormat.N_QUADS)
    (iri,) = {line.split()[0][1:-1] for line in older.decode().splitlines() if "entryText" in line}
    for item in (iri, turn.iri):
        redact(memory, [], item)

    import_document(memory.writer, memory.schema, "p", "m", older, DocumentFormat.N_QUADS)

    assert contents(list_entries(memory.entries)) == []
    assert not re.search("Lunch|Why|No reason", exported(memory, DocumentFormat.N_QUADS).decode())


@pytest.mark.parametrize("form", DocumentFormat)
def test_an_import_after_a_redaction_takes_what_was_never_redacted(memory, tmp_path, form):
    memory.writer.submit_intent("p", intent(summary="Hedwig pays", iri="urn:x", asserted_by="memory"))
    with jidomem.open(tmp_path / "other", project="p") as other:
        import_document(other.writer, other.schema, "p", "m", exported(memory, DocumentFormat.TURTLE))
        other.writer.submit_intent("p", intent(summary="of another day"))
        closed = intent(summary="the shop is closed", iri="urn:new", asserted_by="bob", asserted_in="s-2")
        other.writer.submit_intent("p", closed)
        record(other.entries, "Lunch at noon")
        other.conversation("call").record("Why?", "No reason", asked_by="carl")
        data, every = exported(other, form), exported(other, DocumentFormat.N_QUADS)
    redact(memory, ["Hedwig", "memory"])

    report = import_document(memory.writer, memory.schema, "p", "m", data, form)

    assert ({entry.summary for entry in report.accepted}, [entry.iri for entry in report.refusals]) == (
        {"the shop is closed", "of another day"},
        ["urn:x"],
    )
    lines = {*exported(memory, DocumentFormat.N_QUADS).splitlines()}
    own = {line for line in every.splitlines() if form is DocumentFormat.N_QUADS or b"long-term" in line}
    assert {line for line in own - lines if b"/agents/memory>" not in line and b"<urn:x>" not in line} == set()


FORGED = {
    "of a memory that no writer recorded": ("jido:hasAssertionStatus jido:Asserted ;", ""),
    "without the property": ("jido:redactedProperty jido:rationale", "jido:redactedProperty jido:topic"),
    "of another memory": (
        "jido:redactedItem <https://jido.ai/memory/x>",
        "jido:redactedItem <https://jido.ai/memory/y>",
    ),
    "by a commit": ("urn:jido:redaction:", "urn:jido:commit:"),
    "of a field that is no text": ("jido:hasConfidence jido:Medium ;", ""),
}
DOCUMENT = f"""@prefix jido: <https://jido.ai/ontology#> .
<https://jido.ai/memory/x> a jido:Decision ; jido:hasAssertionStatus jido:Asserted ; jido:hasConfidence jido:Medium ;
  jido:summary "Use files" ; jido:appliesToProject <https://jido.ai/projects/p> ;
  jido:assertedBy <https://jido.ai/agents/ana> ; jido:assertedIn <https://jido.ai/sessions/s> .
<urn:jido:redaction:{"0" * 64}> a jido:Redaction ; jido:redactedItem <https://jido.ai/memory/x> ;
  jido:redactedProperty jido:rationale , jido:hasConfidence ; jido:orderedBy <https://jido.ai/agents/ana> ;
  jido:orderReason "a key" .
"""


@pytest.mark.parametrize("forgery", [*FORGED])
def test_a_record_of_a_redaction_excuses_only_what_it_names(memory, tmp_path, forgery):
    data = DOCUMENT.replace(*FORGED[forgery]).encode()
    copy, report = imported(memory, tmp_path / "copy", data=data)
    with copy:
        assert [entry.iri for entry in report.refusals] == ["https://jido.ai/memory/x"]
        assert not [row for row in copy.journal.read(STREAM) for row in row.triples if "redact" in str(row)]


def test_a_memory_said_to_be_redacted_is_marked_for_ever_and_judged_as_all_others(memory, tmp_path):
    copy, report = imported(memory, tmp_path / "copy", data=DOCUMENT.encode())
    with copy:
        assert report.refusals == []
        (one,) = copy.reader.history("p", "https://jido.ai/memory/x")
        assert [each["reason"] for each in one["redactions"]] == ["a key"]
        assert "it was redacted: A decision" in str(copy.check("p").to_dict())
        with pytest.raises(IntentRefused, match="only the writer"):
            copy.writer.declare("p", [(f"<urn:jido:redaction:{'1' * 64}>", TYPE, jido("Redaction"))])
        again = {"extra_triples": [[f"urn:jido:redaction:{'1' * 64}", "jido:redactedItem", {"@id": "urn:x"}]]}
        with pytest.raises(IntentRefused):
            copy.writer.submit_intent("p", intent(**again))


def test_what_cannot_be_redacted_is_written_whatever_a_file_says(tmp_path):
    data = DOCUMENT.replace("jido:hasConfidence jido:Medium ;", "jido:confidenceValue 0.5 ;")
    copy, report = imported(
        None, tmp_path / "copy", data=data.replace("rationale ,", "rationale , jido:hasTimestamp ,").encode()
    )
    with copy:
        properties = copy.reader.get_memory("p", report.entries[0].iri)["properties"]
        assert properties["hasConfidence"] == ["https://jido.ai/ontology#Medium"]
        assert len(properties["hasTimestamp"]) == 1


def test_the_author_that_was_lost_is_none_of_whom_the_policy_lets_assert(memory, choice, tmp_path):
    with jidomem.open(tmp_path / "copy", project="p") as copy:
        curator = PolicyChange(agent=copy.writer.agent, grants="Administrator")
        copy.writer.change_policy(
            "p", [curator, PolicyChange(allows="propose"), PolicyChange(role="Administrator", allows="assert")]
        )
        report = import_document(copy.writer, copy.schema, "p", "m", exported(memory, DocumentFormat.TURTLE))
        assert [entry.outcome.status for entry in report.entries] == ["proposed"]


def test_a_strict_project_imports_a_memory_whose_author_is_lost(memory, choice, tmp_path):
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "config.toml").write_text("strict = true\n")
    copy, report = imported(memory, tmp_path / "copy")
    with copy:
        assert [(entry.iri, entry.outcome.status) for entry in report.entries] == [(choice, "asserted")]
        forged = intent(asserted_by="jidomem-redacted")
        with pytest.raises(IntentRefused, match="is not declared, and this project is strict"):
            copy.writer.submit_intent("p", forged)


def test_an_export_as_of_a_moment_before_a_redaction_can_be_imported(memory, choice, tmp_path):
    moment = memory.reader.ask("timeline", project="p")[-1]["recorded"]
    given = ("--root", memory.settings.root, "--project", "p", "root", "export", "--as-of", moment.isoformat())
    done = CliRunner().invoke(cli, [*map(str, given)], catch_exceptions=False)
    copy, report = imported(memory, tmp_path / "copy", data=done.stdout.encode())
    with copy:
        assert [(entry.iri, entry.outcome.status) for entry in report.entries] == [(choice, "asserted")]
