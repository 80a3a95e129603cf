"""Redaction removes a secret from the journal and all derived files, so that no guess at it can be confirmed."""

import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import pyoxigraph as ox
import pytest
from conftest import decision, fixed_sources, intent

import jidomem
from jidomem.check.check import check_project
from jidomem.check.journal_integrity import anchored, journal_findings
from jidomem.check.report import JOURNAL
from jidomem.curation.find_text import DIGEST, NAME, SAYS, Occurrences, leftovers
from jidomem.curation.redact import JournalMaintenance
from jidomem.curation.review_queue import queue
from jidomem.curation.review_text import commands
from jidomem.errors import Busy, Failed, IntentRefused, InvalidRequest, NotFound, PolicyDenied, RequestRedacted
from jidomem.guard.guard import Guard
from jidomem.index import follower as limits
from jidomem.index.cache_file import project_of
from jidomem.journal import rewrite
from jidomem.journal.commit import parse
from jidomem.journal.journal import FileJournal, Stream
from jidomem.journal.rewrite import leaves, without
from jidomem.rdf.terms import iri, literal, plain_value
from jidomem.rdf.vocab import RDFS, REDACTED, TYPE, jido
from jidomem.read.derived import pending
from jidomem.records.entry import Entry, ToolUse, WriteRequest
from jidomem.records.intent import digest
from jidomem.records.policy import PolicyChange
from jidomem.runtime.settings import load
from jidomem.write.settlement import Settlement

STREAM = Stream("p")
DOOR = "https://jido.ai/memory/door"
PIN_TEXT = "the vault opens with {}"


def record_pin(root, pin, *, sealed=False):
    """Return a root in which every kind of write contains a four-digit number, and the first memory with it."""
    (root).mkdir()
    (root / "config.toml").write_text('project = "p"\n[conflicts]\nfact = "warn"\n')
    memory = jidomem.open(root, sources=fixed_sources())
    submit = lambda **fields: memory.writer.submit_intent("p", intent(**fields))  # noqa: E731
    first = submit(
        summary=PIN_TEXT.format(pin),
        detailed_explanation=f"Ana said: “{PIN_TEXT.format(pin)}”, twice",
        topic="vault",
        evidence=[f"a note that says {PIN_TEXT.format(pin)}", "https://example.org/note"],
        about=["vault.py"],
        idempotency_key="k1",
        extra_triples=[["https://jido.ai/ontology#key", {"@value": pin}]],
    )
    submit(summary=PIN_TEXT.format(pin).upper(), topic="vault", about=["vault.py"], idempotency_key="k2")
    memory.writer.submit_intent("p", decision(summary="Use a vault", alternatives=[PIN_TEXT.format(pin), "Use a safe"]))
    submit(type="convention", summary=PIN_TEXT.format(pin))
    submit(summary="seen again", evidence=[f"a note that says {PIN_TEXT.format(pin)}"])
    submit(summary="Nothing about it", topic="weather")
    repeated = {"summary": "Nothing about it", "topic": "weather", "rationale": PIN_TEXT.format(pin)}
    submit(**repeated)
    submit(**repeated, idempotency_key="k3")
    memory.writer.revise(
        "p", first.iri, changes={"rationale": "carried over", "status": None}, reason=PIN_TEXT.format(pin)
    )
    withdrawn = submit(summary=f"{PIN_TEXT.format(pin)}, or so")
    memory.writer.invalidate("p", withdrawn.iri, reason="not so")
    memory.writer.append("p", "system", [("<urn:x:vault>", iri(RDFS + "comment"), literal(PIN_TEXT.format(pin)))])
    if sealed:
        for stream in memory.journal.streams():
            memory.journal.seal(stream)
    assert memory.recall("vault", "p").entries  # the search text contains it too
    return memory, first.iri


def terms(memory):
    """Return all terms in the journal, as written in its files and as parsed."""
    journal = FileJournal(memory.settings.root)
    values = {
        term
        for stream in journal.streams()
        for commit in journal.read(stream)
        for triple in commit.triples
        for term in triple
    }
    return {plain_value(term) for term in values if not term.startswith("<urn:jido:commit:")}


def bytes_below(root):
    """Return every byte below *root*, and the content of its databases and stores."""
    content = b"".join(path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file())
    for store in sorted((root / "index").glob("snapshots/*/store")):
        copy = root.parent / f"copy-{store.parent.name}"
        shutil.copytree(store, copy)
        content += ox.Store.read_only(str(copy)).dump(format=ox.RdfFormat.N_QUADS)
        shutil.rmtree(copy)
    return content


@pytest.mark.parametrize("sealed", [False, True])
def test_a_redacted_number_leaves_no_byte_or_digest_that_depends_on_it(tmp_path, sealed, monkeypatch):
    for name, value in (("ON_DISK_BYTES", 3_000), ("SNAPSHOT_COMMITS", 0), ("WRITER_SNAPSHOT_BYTES", 0)):
        monkeypatch.setattr(limits, name, value)
    memory, _ = record_pin(tmp_path / "root", "4711", sealed=sealed)
    other, _ = record_pin(tmp_path / "other", "0815")
    dependent = terms(memory) - terms(other)  # the terms that depend on the number, computed or not
    assert len(dependent) > 20
    assert {digest(f"a note that says {PIN_TEXT.format('4711')}")} == {
        term.rpartition("/")[2] for term in dependent if "/evidence/" in term
    }
    memory.follower.rebuild()
    memory.ask("facts", project="p", limit=3)
    assert memory.follower.on_disk
    assert memory.follower.snapshots()
    follower = jidomem.open(tmp_path / "root")
    assert any("4711" in row["summary"] for row in follower.reader.ask("facts", project="p", include_inactive=True))
    started = time.time_ns()

    plan = memory.maintenance.plan("p", None, texts=["4711"])
    memory.maintenance.redact(plan, agent="ana", reason="a number that opens something")

    follower.catch_up("p")
    assert not any("4711" in str(row) for row in follower.reader.ask("facts", project="p", include_inactive=True))
    assert not terms(memory) & dependent
    content = bytes_below(tmp_path / "root").decode("utf-8", "replace")
    assert [term for term in dependent if len(term) > 8 and term in content] == []
    assert '"4711' not in content
    digests = set(re.findall(r"[0-9a-f]{32}", content))
    assert not digests & {digest(f"a note that says {PIN_TEXT.format(f'{number:04}')}") for number in range(10_000)}
    assert not re.search(PIN_TEXT.format(r"\d{4}"), content, re.IGNORECASE)
    assert not re.search(r"vault open with \d{4}", content)  # as in the search text
    assert all(path.stat().st_mtime_ns > started for path in (tmp_path / "root" / "index").rglob("*.sst"))
    for stream in memory.journal.streams():
        assert memory.journal.verify(stream) == ()
        assert journal_findings(memory.journal, [stream])[stream] == []
    follower.close()
    memory.close()
    other.close()


def test_a_secret_in_an_iri_is_redacted_from_the_journal_and_the_usage_log(tmp_path):
    with jidomem.open(tmp_path / "root", sources=fixed_sources()) as memory:
        named_decision = decision(iri="https://jido.ai/memory/hunter2hunter-1", alternatives=["not to"])
        memory.writer.submit_intent("p", named_decision)
        stored = memory.writer.submit_intent("p", decision(summary="Use a safe", evidence=[named_decision["iri"]])).iri
        memory.briefing("p", agent="ana")
        memory.briefing("p", agent="Hunter2Hunter")
        assert b"hunter2hunter" in bytes_below(tmp_path / "root").lower()

        memory.maintenance.redact(
            memory.maintenance.plan("p", None, texts=["hunter2hunter"]), agent="ana", reason="a password"
        )

        assert b"hunter2hunter" not in bytes_below(tmp_path / "root").lower()
        assert [view["agent"] for view in memory.reader.why("p", stored)["shown"]] == ["ana"]
        report = check_project(memory.follower, memory.schema, "p")
        assert (report.exit_code, memory.journal.verify(STREAM)) == (0, ())


def test_remaining_occurrences_are_found_in_any_case_and_short_texts_as_words_only(tmp_path):
    (tmp_path / "config.toml").write_text('project = "p"  # the safe opens with 4711.\n')
    (tmp_path / "notes.txt").write_text("HUNTER2HUNTER, and 84711")

    def paths(text):
        return [leftover.path for leftover in leftovers(tmp_path, [text], "p")]

    assert paths("hunter2hunter") == [tmp_path / "notes.txt"]
    assert paths("4711") == [tmp_path / "config.toml"]


def test_a_redaction_plan_lists_each_triple_with_its_reason_and_changes_nothing(tmp_path):
    memory, first = record_pin(tmp_path / "root", "4711")
    before = terms(memory)

    plan = memory.maintenance.plan("p", first, properties=[jido("summary")[1:-1]])

    assert terms(memory) == before
    reasons = {(trace.triple[1], trace.why) for _, trace in plan.traces if trace.triple[0] == iri(first)}
    assert (jido("summary"), SAYS) in reasons
    assert (jido("detailedExplanation"), SAYS) in reasons  # the same content
    assert (jido("requestDigest"), DIGEST) in reasons
    assert (jido("derivedFrom"), NAME) in reasons
    assert {stream.name for stream, _ in plan.traces} == {"memory", "system"}
    assert not any(trace.triple[1] in (TYPE, jido("recordedAt")) and trace.why == SAYS for _, trace in plan.traces)
    memory.close()


def test_a_short_value_is_redacted_only_in_linked_triples(memory):
    first = memory.writer.submit_intent("p", intent(summary="A name", topic="Bob")).iri
    memory.writer.revise("p", first, changes={"rationale": "later"}, reason="more")
    other = memory.writer.submit_intent("p", intent(type="lesson", summary="Another Bob", topic="Bob")).iri

    plan = memory.maintenance.plan("p", first, properties=[jido("topic")[1:-1]])

    assert other not in {plain_value(trace.triple[0]) for _, trace in plan.traces}
    assert sum(trace.triple[1] == jido("topic") for _, trace in plan.traces) == 2
    plan_by_text = memory.maintenance.plan("p", None, texts=["Bob"])
    assert other in {plain_value(trace.triple[0]) for _, trace in plan_by_text.traces}


@pytest.mark.parametrize("text", ["ontology", "Task", "agents", "https://jido.ai", "rdf-syntax", "p-1"])
def test_a_text_that_occurs_in_terms_or_iris_is_redacted_from_literals_only(tmp_path, text):
    with jidomem.open(tmp_path / "root", sources=fixed_sources()) as memory:
        for fields in ({"summary": f"of {text}, and so on"}, {"type": "task", "summary": "ship it"}):
            memory.writer.submit_intent("p-1", intent(applies_to_project="p-1", **fields))
        before = memory.reader.ask("timeline", project="p-1")

        plan = memory.maintenance.plan("p-1", None, texts=[text])
        predicates = {trace.triple[1] for _, trace in plan.traces if trace.why == SAYS}
        assert predicates - {jido("projectName")} == {jido("summary")}

        orders = memory.maintenance.redact(plan, agent="architect", reason="why not")

        assert len(orders) == 1
        assert memory.reader.ask("timeline", project="p-1") == [before[0]]


def test_shared_evidence_is_redacted_without_ending_the_memories(memory):
    first, second = (
        memory.writer.submit_intent("p", intent(type="lesson_learned", summary=text, evidence=["log"])).iri
        for text in ("Pin it", "Test it")
    )

    memory.maintenance.redact(memory.maintenance.plan("p", first), agent="architect", reason="why not")

    assert memory.reader.ask("lessons", project="p") == [{"lesson": second, "summary": "Test it"}]
    assert memory.reader.get_memory("p", first)["class"] == "LessonLearned"


@pytest.mark.parametrize("propose", [False, True])
@pytest.mark.parametrize("author", ["architect", "dora"])
def test_a_memory_or_proposal_whose_text_was_redacted_is_in_the_review_until_it_ends(memory, author, propose):
    given = intent(summary="the account is DE-4471", asserted_by=author)
    first = memory.writer.submit_intent("p", given, propose=propose).iri
    memory.writer.submit_intent("p", intent(summary="another fact"))
    memory.maintenance.redact(memory.maintenance.plan("p", first), agent="architect", reason="an account")
    if author == "dora":  # who left, too
        memory.maintenance.redact(memory.maintenance.plan("p", None, texts=[author]), agent="architect", reason="left")
    waiting = partial(queue, memory.reader, "p", memory.sources.now())

    (one,) = waiting()
    (receipt,) = memory.writer.settle_many("p", [Settlement(first, "reject", reason="its text was redacted")])

    assert (one.item, one.kind, one.actions, one.summary) == (first, "redacted", ("reject",), REDACTED)
    assert receipt.status == "asserted"
    assert waiting() == []
    assert pending(memory.reader, "p") == 0


def test_a_text_contained_in_the_iri_of_the_redacting_agent_is_refused(memory):
    memory.writer.submit_intent("p", intent(summary="see https://jido.ai/agents/architect"))
    plan = memory.maintenance.plan("p", None, texts=["https://jido.ai/agents/architect"])

    with pytest.raises(InvalidRequest, match="the agent's name contains a text to be redacted"):
        memory.maintenance.redact(plan, agent="architect", reason="why not")


def test_a_redacted_property_leaves_the_others_and_can_be_revised(memory):
    first = memory.writer.submit_intent("p", decision(topic="store", rationale="ask for hunter2")).iri
    plan = memory.maintenance.plan("p", first, properties=[jido("rationale")[1:-1]])

    (order,) = memory.maintenance.redact(plan, agent="ana", reason="a password")

    memory_row = memory.reader.get_memory("p", first)
    assert (memory_row["properties"]["summary"], memory_row["properties"]["topic"]) == (["Use Oxigraph"], ["store"])
    assert "rationale" not in memory_row["properties"]
    order_triples = {(p, o) for s, p, o in order.triples if s == f"<{order.iri}>"}
    assert {(jido("redactedItem"), iri(first)), (jido("redactedProperty"), jido("rationale"))} <= order_triples
    assert {(jido("orderedBy"), "<https://jido.ai/agents/ana>"), (jido("orderReason"), '"a password"')} <= order_triples
    with pytest.raises(jidomem.JidomemError, match="is active on 'store'"):
        memory.writer.submit_intent("p", decision(summary="Use SQLite", topic="store"))
    receipt = memory.writer.revise("p", first, changes={"rationale": "it embeds"}, reason="without the password")
    assert receipt.status == "asserted"


def test_check_reports_redacted_and_quarantined_commits_as_warnings(memory):
    first = memory.writer.submit_intent("p", decision(topic="store", rationale="ask for hunter2")).iri
    memory.maintenance.redact(memory.maintenance.plan("p", first), agent="ana", reason="a password")
    memory.maintenance.quarantine(STREAM, tear(memory), agent="ana", reason="torn")

    report = check_project(memory.follower, memory.schema, "p")

    severities = {
        (problem.severity, problem.rule == JOURNAL) for problem in report.problems if problem.severity != "info"
    }
    assert severities == {("warning", True)}
    assert any(problem.item == first and problem.message.startswith("it was redacted") for problem in report.problems)


def submit(memory, **fields):
    return memory.writer.submit_intent("p", intent(**fields))


def correct(memory, **fields):
    key = fields.pop("idempotency_key")
    if not any(memory.index.triples(STREAM.graph, iri(DOOR))):
        submit(memory, summary="the door is closed", iri=DOOR)
    return memory.writer.correct("p", DOOR, changes=fields, reason="it opens", who={"idempotency_key": key})


def submit_known(memory, **fields):
    if not any(memory.index.triples(STREAM.graph, None, jido("redactedItem"))):
        submit(memory, **fields | {"idempotency_key": "another"})
    return submit(memory, **fields)


def record_turn(memory, **fields):
    return memory.conversation("s-1", "p").record(fields.pop("summary"), **fields)


@pytest.mark.parametrize("send", [submit, correct, submit_known, record_turn])
def test_a_retry_of_a_redacted_request_is_refused_without_the_advice_to_use_another_key(memory, send):
    request = {"summary": "the door opens to hunter2", "idempotency_key": "once"}
    send(memory, **request)
    plan = memory.maintenance.plan("p", None, texts=["hunter2"])
    memory.maintenance.redact(plan, agent="ana", reason="a password")

    with pytest.raises(RequestRedacted, match="with the idempotency key 'once' was redacted") as error:
        send(memory, **request)

    assert error.value.hint.startswith("do not send that request again, under this or another key")
    assert plan.unrecognised == ()
    assert b"hunter2" not in bytes_below(memory.settings.root)


def test_a_retry_by_an_agent_whose_name_was_redacted_is_refused_and_another_agent_may_use_its_key(memory):
    request = {"asserted_by": "zerlinda", "idempotency_key": "once"}
    submit(memory, **request)
    submit(memory, summary="the gate is open", asserted_by="bob")
    memory.maintenance.redact(memory.maintenance.plan("p", None, texts=["zerlinda"]), agent="ana", reason="she left")

    with pytest.raises(RequestRedacted):
        submit(memory, **request)
    assert submit(memory, **request | {"asserted_by": "bob", "summary": "the lid is shut"}).status == "asserted"


@pytest.mark.parametrize(
    "fields", [{"idempotency_key": "zerlinda-7"}, {"iri": "urn:zerlinda", "idempotency_key": "once"}]
)
def test_a_redaction_names_the_requests_whose_key_it_removes_and_leaves_no_digest_of_it(memory, fields):
    first = submit(memory, summary="Zerlinda drinks coffee", **fields)
    submit(memory, summary="Zerlinda drinks tea", idempotency_key="k-1")

    plan = memory.maintenance.plan("p", None, texts=["Zerlinda"])
    memory.maintenance.redact(plan, agent="ana", reason="she asked for it")

    assert plan.unrecognised == (first.iri,)
    keys = {o for commit in memory.journal.read(STREAM) for _, p, o in commit.triples if p == jido("idempotencyKey")}
    assert keys == {literal("k-1")}
    assert submit(memory, summary="Zerlinda drinks coffee", **fields).status == "asserted"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"item": None}, InvalidRequest, "nothing to redact is named"),
        ({"item": "urn:nobody"}, NotFound, "urn:nobody is not a memory of p"),
        ({"item": "FIRST", "properties": [jido("topic")[1:-1]]}, NotFound, "has no https://jido.ai/ontology#topic"),
        (
            {"item": "FIRST", "properties": [jido("recordedAt")[1:-1]]},
            InvalidRequest,
            "cannot be redacted",
        ),
        ({"item": None, "texts": ["ab"]}, InvalidRequest, "2 characters occurs everywhere"),
        ({"item": None, "texts": ["nowhere at all"]}, NotFound, "nothing in the journal of p contains that text"),
    ],
)
def test_an_invalid_redaction_is_refused_with_a_hint(memory, arguments, error, message):
    first = memory.writer.submit_intent("p", intent()).iri
    item = first if arguments["item"] == "FIRST" else arguments["item"]
    with pytest.raises(error, match=message) as refused:
        memory.maintenance.plan("p", item, **{name: value for name, value in arguments.items() if name != "item"})
    assert refused.value.hint


def test_a_reason_with_another_secret_is_refused(memory):
    memory.writer.submit_intent("p", intent(summary="the door opens to hunter2"))
    plan, given = (
        memory.maintenance.plan("p", None, texts=["hunter2"]),
        {"agent": "ana", "reason": "now ghp_" + "a1B2" * 9},
    )

    for call, of in ((memory.maintenance.redact, plan), (memory.maintenance.redact_again, "p")):
        with pytest.raises(IntentRefused, match="reason seems to contain a GitHub token"):
            call(of, **given)


def test_a_reason_or_agent_that_contains_the_secret_is_refused(memory):
    memory.writer.submit_intent("p", intent(summary="the door opens to hunter2"))
    plan = memory.maintenance.plan("p", None, texts=["hunter2"])
    for arguments in ({"agent": "ana", "reason": "it was HUNTER2"}, {"agent": "hunter2", "reason": "a password"}):
        with pytest.raises(InvalidRequest, match="contains a text to be redacted"):
            memory.maintenance.redact(plan, **arguments)
    assert len(list(memory.journal.read(STREAM))) == 1


def tear(memory):
    """Truncate a commit to half; return its id."""
    commit = memory.writer.submit_intent("p", intent(summary="soon lost")).commit
    (path,) = memory.journal.path(STREAM).glob(f"*-{commit[:12]}.ttl")
    path.write_bytes(path.read_bytes()[:100])
    assert memory.journal.verify(STREAM)
    return commit


@pytest.mark.parametrize("role", ["Curator", "Reviewer", "Administrator"])
@pytest.mark.parametrize("source", ["by a grant", "by the configuration"])
def test_a_redaction_is_denied_to_others_than_curators_where_one_is_appointed(tmp_path, role, source):
    (tmp_path / "config.toml").write_text(f'[agents.rita]\nrole = "{role if source != "by a grant" else "Planner"}"\n')
    with jidomem.open(tmp_path, sources=fixed_sources()) as memory:
        if source == "by a grant":
            memory.writer.change_policy("p", [PolicyChange(agent="rita", grants=role)])
        memory.writer.submit_intent("p", intent(summary="the door opens to hunter2"))
        plan, torn = memory.maintenance.plan("p", None, texts=["hunter2"]), tear(memory)
        for command in (
            lambda agent: memory.maintenance.redact(plan, agent=agent, reason="a password"),
            lambda agent: memory.maintenance.redact_again("p", agent=agent, reason="a password"),
            lambda agent: memory.maintenance.quarantine(STREAM, torn, agent=agent, reason="torn"),
        ):
            with pytest.raises(PolicyDenied, match="bob, an Implementer, may not") as refused:
                command("bob")
            assert refused.value.hint == "ask rita"
        assert memory.journal.damage(STREAM)
        assert b"hunter2" in bytes_below(memory.journal.path(STREAM))

        memory.maintenance.quarantine(STREAM, torn, agent="rita", reason="torn")
        memory.maintenance.redact(plan, agent="rita", reason="a password")

        assert memory.maintenance.redact_again("p", agent="rita", reason="to be sure") == []
        assert b"hunter2" not in bytes_below(tmp_path)


@pytest.mark.parametrize("folder", ["cache/guard", "index/snapshots"])
def test_a_redaction_names_a_copy_that_cannot_be_deleted_once_all_else_is_done(memory, tmp_path, folder):
    memory.writer.submit_intent("p", intent(summary="the door opens to hunter2"))
    copy = memory.settings.root / folder
    (tmp_path / "elsewhere").mkdir()
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.symlink_to(tmp_path / "elsewhere")  # not even root may delete the tree of a link

    plan = memory.maintenance.plan("p", None, texts=["hunter2"])
    with pytest.raises(Failed, match=f"the journal is redacted, but copies .*{copy}") as fault:
        memory.maintenance.redact(plan, agent="architect", reason="a password")

    assert fault.value.hint == f"remove it: rm -r {copy}"
    assert memory.reader.ask("facts", project="p") == []
    assert b"hunter2" not in bytes_below(memory.journal.path(STREAM))


def test_the_agent_and_role_of_a_token_apply_to_a_redaction(memory):
    memory.writer.submit_intent("p", intent(summary="the door opens to hunter2"))
    components = (memory.follower, memory.schema, memory.settings.policy, memory.sources)
    maintenance = lambda writer: JournalMaintenance(*components, writer, lambda _: (), lambda *_: None)  # noqa: E731
    plan, arguments = memory.maintenance.plan("p", None, texts=["hunter2"]), {"reason": "a password"}

    for role, agent in (("agent", "bob"), ("reader", "bob"), ("agent", "rita")):
        with pytest.raises(PolicyDenied, match="may not"):
            maintenance(memory.writer.acting_as("bob", role)).redact(plan, agent=agent, **arguments)
    with pytest.raises(PolicyDenied, match="may not redact") as refused:
        maintenance(memory.writer.by_rule()).redact(plan, agent="memory-writer", **arguments)
    assert refused.value.hint == "ask the operator for a token of the role curator"

    (order,) = maintenance(memory.writer.acting_as("bob", "curator")).redact(plan, agent="rita", **arguments)
    assert (iri(order.iri), jido("orderedBy"), "<https://jido.ai/agents/rita>") in order.triples


def test_a_redaction_of_the_policy_needs_an_administrator(memory):
    memory.writer.agent = "ana"
    roles = [PolicyChange(agent="ana", grants="Administrator"), PolicyChange(agent="rita", grants="Curator")]
    memory.writer.change_policy("p", [*roles, PolicyChange(kind="task", allows="deny")])
    plan = memory.maintenance.plan("p", None, texts=["deny"])
    with pytest.raises(PolicyDenied, match="rita, a Curator, may not change the policy"):
        memory.maintenance.redact(plan, agent="rita", reason="I want tasks")
    assert memory.writer.authority("p").verdict("bob", "Implementer", ("task", "task"))[0] == "deny"


def test_an_abandoned_index_of_a_killed_process_is_removed_by_a_redaction(memory):
    memory.writer.submit_intent("p", intent(summary="the door opens to hunter2"))
    abandoned = memory.settings.root / "index" / "live" / "0123456789abcdef"
    (abandoned / "store").mkdir(parents=True)
    (abandoned / "store" / "000007.sst").write_bytes(b"hunter2")
    abandoned.with_name(f"{abandoned.name}.lock").touch()
    memory.maintenance.redact(memory.maintenance.plan("p", None, texts=["hunter2"]), agent="ana", reason="a password")
    assert b"hunter2" not in bytes_below(memory.settings.root)


def test_a_redaction_leaves_the_caches_of_other_projects_as_they_are(tmp_path):
    root, strict = tmp_path / "root", {"type": "convention", "enforcement_level": "Strict", "about": ["src/a.py"]}
    (root).mkdir()
    with jidomem.open(root, sources=fixed_sources()) as memory:
        for project in ("p", "p-2", "q"):
            memory.writer.submit_intent(
                project, intent(**strict, summary=f"{project} never logs hunter2", applies_to_project=project)
            )
            assert memory.recall("never logs", project).entries
            assert Guard(load(root, project), memory.sources.now, lambda _: False).governing(["src/a.py"])["src/a.py"]
        files = {path: path.read_bytes() for path in (root / "cache").rglob("*") if path.suffix in (".json", ".sqlite")}
        assert {path.name.partition(".")[0] for path in files} >= {"p", "p-2", "q"}

        memory.maintenance.redact(memory.maintenance.plan("p", None, texts=["hunter2"]), agent="ana", reason="a secret")

        left = {path: path.read_bytes() for path in files if path.exists()}
        assert left == {path: data for path, data in files.items() if project_of(path) != "p"}
        assert {project_of(path) for path in left} == {"p-2", "q"}
        assert {each.path.parents[1].name for each in leftovers(root, ["hunter2"], "p")} == {"p-2", "q"}  # of journals
        assert memory.recall("never logs", "q").entries[0].content == "q never logs hunter2"
        assert not memory.recall("never logs", "p").entries


def test_a_redaction_searches_the_journal_again_only_if_something_was_written_after_the_plan(memory, monkeypatch):
    for number in range(3):
        memory.writer.submit_intent("p", intent(summary=f"door {number} opens to hunter2"))
    plan, searched = memory.maintenance.plan("p", None, texts=["hunter2"]), []
    collect = Occurrences.collect
    monkeypatch.setattr(
        Occurrences, "collect", lambda self, commits: collect(self, (searched.append(each) or each for each in commits))
    )

    memory.maintenance.redact(plan, agent="ana", reason="a password")

    assert searched == []
    assert b"hunter2" not in bytes_below(memory.settings.root)


def test_a_memory_written_after_the_plan_is_redacted_too(memory, tmp_path):
    memory.writer.submit_intent("p", intent(summary="the door opens to hunter2"))
    plan = memory.maintenance.plan("p", None, texts=["hunter2"])
    with jidomem.open(tmp_path / "root", sources=fixed_sources()) as reopened:
        reopened.writer.submit_intent("p", intent(iri="urn:later", summary="as I said, hunter2"))
    assert len(memory.maintenance.redact(plan, agent="ana", reason="a password")) == 2
    assert b"hunter2" not in bytes_below(memory.settings.root)


def test_a_restored_copy_is_reported_not_served_and_redacted_again_on_demand(memory, tmp_path):
    memory.writer.submit_intent("p", intent(summary="first"))
    memory.writer.submit_intent("p", intent(summary="the door opens to hunter2"))
    memory.writer.submit_intent("p", intent(summary="last"))
    folder, journal = memory.journal.path(STREAM), memory.journal
    shutil.copytree(memory.settings.root / "projects", tmp_path / "copy" / "projects")
    copy = FileJournal(tmp_path / "copy")
    copy.seal(STREAM)
    (pack,) = copy.path(STREAM).glob("pack-*.ttl")
    memory.maintenance.redact(memory.maintenance.plan("p", None, texts=["hunter2"]), agent="ana", reason="a password")

    shutil.copy(pack, folder)

    memory.catch_up("p")
    assert not any("hunter2" in str(row) for row in memory.reader.ask("facts", project="p"))
    with jidomem.open(memory.settings.root) as reopened:
        assert not any("hunter2" in str(row) for row in reopened.reader.ask("facts", project="p"))
    assert journal.verify(STREAM) == ()
    (finding,) = journal_findings(journal, [STREAM])[STREAM]
    assert (finding.kind, finding.severity, finding.path) == ("exposed", "violation", str(folder / pack.name))
    lines = (folder / pack.name).read_text("utf-8").splitlines()
    assert lines[finding.line - 1] == "# jidomem journal 1"
    assert any("hunter2" in line for line in lines[finding.line : finding.line + 80])

    with jidomem.open(memory.settings.root) as reopened:
        report = check_project(reopened.follower, reopened.schema, "p")
    assert "hunter2" not in str(report.to_dict())
    (problem,) = [each for each in report.problems if each.rule == JOURNAL]
    assert (problem.severity, problem.path, problem.line) == ("violation", finding.path, finding.line)

    assert len(memory.maintenance.redact_again("p", agent="ana", reason="it came back")) == 1
    assert journal_findings(journal, [STREAM])[STREAM] == []
    assert b"hunter2" not in bytes_below(memory.settings.root)
    assert memory.maintenance.redact_again("p", agent="ana", reason="once more") == []


@pytest.mark.parametrize("at_once", [0, 1_000])
@pytest.mark.parametrize("sealed", [True, False])
def test_an_unredacted_copy_is_not_served_without_the_redacted_file(memory, tmp_path, sealed, at_once, monkeypatch):
    monkeypatch.setattr(rewrite, "AT_ONCE", at_once)
    memory.writer.submit_intent("p", intent(summary="first"))
    secret = memory.writer.submit_intent("p", intent(summary="the door opens to hunter2"))
    last = memory.writer.submit_intent("p", intent(summary="last"))
    root, folder = memory.settings.root, memory.journal.path(STREAM)
    if sealed:
        memory.journal.seal(STREAM)
    shutil.copytree(folder, tmp_path / "before")
    memory.maintenance.redact(memory.maintenance.plan("p", None, texts=["hunter2"]), agent="ana", reason="a password")
    memory.close()

    for path in [*folder.glob("pack-*.ttl"), *folder.glob("*.redacted.ttl")]:
        path.unlink()
    for path in (tmp_path / "before").glob("*.ttl"):
        shutil.copy(path, folder)
    (folder / ".lock").unlink()
    shutil.rmtree(root / "index", ignore_errors=True)

    assert b"hunter2" in bytes_below(folder)
    with jidomem.open(root) as reopened:
        for as_of in (None, secret.version.recorded_at, last.version.recorded_at):
            assert not any("hunter2" in str(row) for row in reopened.reader.ask("timeline", project="p", as_of=as_of))
        assert not reopened.recall("hunter2", "p").entries
        assert reopened.reader.get_memory("p", secret.iri)["properties"].get("summary") is None
        assert not any(
            "hunter2" in term for commit in reopened.journal.read(STREAM) for t in commit.triples for term in t
        )
        assert reopened.journal.verify(STREAM) == ()
        assert {finding.kind for finding in journal_findings(reopened.journal, [STREAM])[STREAM]} == {"exposed"}
        assert len(reopened.maintenance.redact_again("p", agent="ana", reason="it came back")) == 1
        assert journal_findings(reopened.journal, [STREAM])[STREAM] == []
    assert b"hunter2" not in bytes_below(folder)


def test_an_unrecorded_redaction_is_reported(memory):
    memory.writer.submit_intent("p", intent(summary="an inconvenient truth"))
    (path,) = memory.journal.path(STREAM).glob("*.ttl")
    commit = parse(path.read_bytes())
    redacted_leaves = [leaf for triple, leaf in leaves(commit).items() if "inconvenient" in triple[2]]
    path.with_suffix(".redacted.ttl").write_bytes(without(commit, redacted_leaves).data)
    path.unlink()
    assert memory.journal.verify(STREAM) == ()
    (finding,) = journal_findings(memory.journal, [STREAM])[STREAM]
    assert (finding.kind, finding.severity) == ("unrecorded", "violation")
    assert finding.path.endswith(".redacted.ttl")
    assert "restore the complete file" in finding.hint


def test_a_redaction_interrupted_between_two_streams_is_reported_and_finished_on_demand(tmp_path):
    history = Stream("p", "history")
    with jidomem.open(tmp_path, project="p", sources=fixed_sources(), wait=0.2) as memory:
        item = memory.writer.submit_intent("p", intent(summary="the door opens to hunter2")).iri
        memory.entries.write(WriteRequest(Entry(id="x", agent_id="ana", content="it is hunter2")))
        anchor = {stream: memory.journal.head(stream).heads[0].id for stream in (STREAM, history)}
        plan = memory.maintenance.plan("p", None, texts=["hunter2"])
        with ThreadPoolExecutor(1) as other, FileJournal(tmp_path).lock(history), pytest.raises(Busy):
            other.submit(memory.maintenance.redact, plan, agent="ana", reason="a password").result()

        assert b"hunter2" not in bytes_below(memory.journal.path(STREAM))
        (finding,) = journal_findings(memory.journal, [history])[history]
        assert (finding.kind, finding.severity) == ("exposed", "violation")
        assert "journal redact --again" in finding.hint

        assert len(memory.maintenance.redact_again("p", agent="ana", reason="the rest")) == 1

        assert (
            journal_findings(memory.journal, [history])[history]
            == journal_findings(memory.journal, [STREAM])[STREAM]
            == []
        )
        assert b"hunter2" not in bytes_below(tmp_path)
        assert memory.maintenance.without_texts("p") == ((item,), (), {})
        for stream, head in anchor.items():
            (warning,) = anchored(memory.journal, stream, [head])
            assert warning.detail.startswith(f"1 commit was redacted in p/{stream.name}")


def test_a_redaction_interrupted_before_its_record_is_finished_with_the_same_record_and_placeholders(tmp_path):
    results = []
    for folder, is_interrupted in ((tmp_path / "whole", False), (tmp_path / "interrupted", True)):
        with jidomem.open(folder, project="p", sources=fixed_sources()) as memory:
            rule = {"type": "convention", "enforcement_level": "Strict", "about": ["hedwig/*.py"]}
            memory.writer.submit_intent("p", intent(summary="No tabs", convention_name="tabs", **rule))
            memory.writer.submit_intent("p", decision(topic="owls", rationale="Hedwig said so", evidence=["of Hedwig"]))
            memory.writer.submit_intent("p", intent(summary="Hedwig is an owl", iri="https://jido.ai/memory/hedwig"))
            plan = memory.maintenance.plan("p", None, texts=["Hedwig"])
            if is_interrupted:
                removed = {
                    commit.id: frozenset(leaf for row, leaf in leaves(commit).items() if row in rows)
                    for rows in [{trace.triple for _, trace in plan.traces}]
                    for commit in memory.journal.read(STREAM)
                }
                with suppress(KeyboardInterrupt), memory.journal.redacting(STREAM, removed):
                    raise KeyboardInterrupt
                (order,) = memory.maintenance.redact_again("p", agent="ana", reason="her request")
            else:
                (order,) = memory.maintenance.redact(plan, agent="ana", reason="her request")
            named = {
                plain_value(o) for _, p, o in order.triples if p in (jido("redactedItem"), jido("redactedProperty"))
            }
            results.append((named, memory.maintenance.without_texts("p"), list(memory.ask("timeline"))))
        assert b"edwig" not in bytes_below(folder / "projects")

    assert results[0] == results[1]
    assert jido("about")[1:-1] in results[0][0]
    assert results[0][1].lacking.keys() == {"about"}


def test_with_an_agent_go_the_turns_it_asked_its_answers_and_the_turns_of_sessions_named_after_it(tmp_path):
    with jidomem.open(tmp_path, project="p", agent="coach", sources=fixed_sources()) as memory:
        memory.conversation("visit-7").record(prompt="I owe 40000", answer="So you owe 40001", asked_by="erik",
                                              tools=[ToolUse("find", {"debt": 40002}, [40003])])  # fmt: skip
        memory.conversation("visit-7").record(prompt="Who is next?", answer="I am, 40004", answered_by="erik")
        memory.conversation("erik-1").record(prompt="It was 40005 once")
        memory.conversation("visit-8").record(prompt="Am I erika?", answer="Yes", asked_by="anna")
        authored = memory.writer.submit_intent("p", intent(summary="the sky is blue", asserted_by="erik")).iri

        plan = memory.maintenance.plan("p", None, texts=["erik"])
        memory.maintenance.redact(plan, agent="coach", reason="erasure")

        remaining = bytes_below(tmp_path)
        assert not [number for number in range(40000, 40006) if str(number).encode() in remaining]
        assert b"Who is next?" in remaining
        assert b"Am I erika?" in remaining
        assert (len(plan.turns), plan.unattributed) == (3, (authored,))
        assert memory.journal.verify(Stream("p", "history")) == ()


def test_a_memory_whose_iri_has_the_text_is_named_as_removed_and_not_as_one_to_end(memory):
    given = decision(summary="Use A", iri="urn:fact:greta-lind", alternatives=["B"])
    memory.writer.submit_intent("p", given)
    other = memory.writer.submit_intent("p", intent(summary="Greta Lind called")).iri

    plan = memory.maintenance.plan("p", None, texts=["Greta Lind"])
    memory.maintenance.redact(plan, agent="ana", reason="erasure")

    assert (plan.removed, plan.emptied, plan.unattributed) == (("urn:fact:greta-lind",), (other,), ())
    assert memory.maintenance.without_texts("p", plan).emptied == (other,)


def test_a_redaction_of_a_memory_names_its_other_versions_and_those_that_it_is_evidence_of(memory):
    first = submit(memory, summary="Greta works nights").iri
    same = submit(memory, summary="Greta works nights", topic="rota", evidence=[first]).iri
    derived = submit(memory, summary="The night nurse is Greta", evidence=[first]).iri
    later = memory.writer.revise("p", first, changes={"summary": "Greta works days"}, reason="moved").iri
    submit(memory, summary="Nothing about her")

    plan = memory.maintenance.plan("p", first)

    assert set(plan.linked) == {derived, later}
    assert {plain_value(trace.triple[0]) for _, trace in plan.traces} >= {first, same}
    assert memory.maintenance.plan("p", None, texts=["Greta"]).linked == ()


def test_a_memory_that_loses_evidence_with_the_text_is_named(memory):
    item = submit(memory, summary="The lights were on", evidence=["Greta saw it", "a photograph"]).iri
    submit(memory, summary="The door was open", evidence=["a photograph"])

    assert memory.maintenance.plan("p", None, texts=["Greta"]).unsupported == (item,)


def test_a_decision_that_lost_its_rationale_is_named_and_in_the_review_until_it_has_one(memory):
    options = {"rationale": "Hedwig asked for it", "topic": "prices"}
    item = memory.writer.submit_intent("p", decision(summary="Own prices", **options)).iri
    memory.writer.submit_intent("p", intent(summary="Invoices are monthly", rationale="Hedwig likes it"))
    plan = memory.maintenance.plan("p", None, texts=["Hedwig"])
    assert (plan.emptied, plan.unexplained) == ((), (item,))

    memory.maintenance.redact(plan, agent="ana", reason="a name")

    assert memory.maintenance.without_texts("p", plan) == ((), (item,), {})
    (one,) = queue(memory.reader, "p", memory.sources.now())
    assert (one.item, one.kind, one.actions, one.summary) == (item, "rationale_redacted", ("reject",), "Own prices")
    assert one.why == f"Why does it hold? Its rationale was redacted on {memory.sources.now().date()}."
    assert commands(one)[0][0] == f"jidomem edit {item[-8:]} --set rationale=TEXT"
    memory.writer.revise("p", item, changes={"rationale": "it sells"}, reason="its rationale was redacted")
    assert queue(memory.reader, "p", memory.sources.now()) == []


@pytest.mark.parametrize("about", ["src/a.py", "src/*.py", None])
def test_a_rule_that_lost_its_text_governs_no_file(tmp_path, about):
    root = tmp_path / ".jidomem"
    with jidomem.open(root, sources=fixed_sources(), project="p") as memory:
        for text in ("No tabs for Hedwig", "No tabs"):
            rule = {"type": "convention", "summary": text, "convention_name": text, "enforcement_level": "Strict"}
            memory.writer.submit_intent("p", intent(**rule, about=[about] if about else []))
        memory.maintenance.redact(memory.maintenance.plan("p", None, texts=["Hedwig"]), agent="ana", reason="a name")

        assert [row["summary"] for row in memory.governing("src/a.py")] == ["No tabs"]
        (guarded,) = Guard(load(root, "p"), memory.sources.now, lambda _: False).governing(["src/a.py"]).values()
        assert [rule.summary for rule in guarded] == ["No tabs"]
        assert REDACTED not in memory.briefing(about=["src/a.py"]).text


def forbids(pattern):
    return [["jido:forbidsPattern", {"@value": pattern}]]


def test_a_rule_that_lost_its_place_governs_no_file_and_one_that_lost_its_pattern_stops_none_until_restated(tmp_path):
    root, path = tmp_path / ".jidomem", "src/other.py"
    (tmp_path / "src").mkdir()
    (tmp_path / path).write_text("K-1 (redacted)\n")
    with jidomem.open(root, sources=fixed_sources(), project="p") as memory:
        strict = {"type": "convention", "enforcement_level": "Strict"}
        rules = [
            {"summary": "No numbers", "about": ["src/hedwig/**"], "extra_triples": forbids("K-[0-9]")},
            {"summary": "No names", "about": ["src/**"], "extra_triples": forbids("Hedwig")},
            {"summary": "Sign all", "extra_triples": forbids("Q-[0-9]"), "evidence": ["a mail of Hedwig"]},
        ]
        placed, checked, _ = (
            memory.writer.submit_intent("p", intent(**strict, convention_name=rule["summary"], **rule)).iri
            for rule in rules
        )
        options = {"rationale": "measured", "topic": "labels for Hedwig"}
        decided = memory.writer.submit_intent("p", decision(summary="Labels wrap", **options)).iri
        plan = memory.maintenance.plan("p", None, texts=["Hedwig"])
        lacking = {"about": [placed], "forbids": [checked], "topic": [decided]}
        assert plan.lacking == lacking

        memory.maintenance.redact(plan, agent="ana", reason="a name")

        def governing():
            guard = Guard(load(root, "p"), memory.sources.now, lambda _: False)
            (rules,) = guard.governing([path]).values()
            assert {rule.item for rule in rules} == {row["item"] for row in memory.governing(path)}
            return {rule.summary: [check.text for check in rule.checks] for rule in rules}

        def kinds():
            return {one.item: one.kind for one in queue(memory.reader, "p", memory.sources.now())}

        assert memory.maintenance.without_texts("p", plan) == ((), (), lacking)
        assert governing() == {"No names": [], "Sign all": ["Q-[0-9]"]}
        assert kinds() == {placed: "about_redacted", checked: "forbids_redacted", decided: "topic_redacted"}
        assert memory.maintenance.plan("p", None, texts=["redacted"]).fields == {"topic": 1}
        later = memory.writer.confirm("p", placed, reason="it holds").iri
        assert governing().keys() == {"No names", "Sign all"}
        assert kinds()[later] == "about_redacted"
        memory.writer.revise("p", later, changes={"about": ["**"]}, reason="everywhere")
        memory.writer.revise("p", checked, changes={"extra_triples": forbids("[A-Z]{9}")}, reason="another pattern")
        memory.writer.revise("p", decided, changes={"topic": "labels"}, reason="its topic was redacted")
        assert kinds() == {}
        assert governing() == {"No numbers": ["K-[0-9]"], "No names": ["[A-Z]{9}"], "Sign all": ["Q-[0-9]"]}
