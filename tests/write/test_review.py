"""Regression tests of faults that a review of the writer reported."""

import gc
import os
import threading
from datetime import UTC, datetime, timedelta

import pytest
from conftest import decision, intent, wait_until
from writing import codes, committed_triples, open_with, refusal, triples_of, values_of

import jidomem
from jidomem.base.clock import Sources
from jidomem.errors import Failed, PolicyDenied
from jidomem.index.store import OxigraphIndex
from jidomem.rdf.terms import iri, literal
from jidomem.rdf.vocab import TYPE, jido
from jidomem.records.intent import Receipt, Version
from jidomem.records.policy import LITERAL_LIMIT, Policy
from jidomem.schema.ontology import EffectiveRules
from jidomem.write.group_commit import CommitQueue, CommitQueues
from jidomem.write.pipeline import Pipeline
from jidomem.write.submission import Decision, Submission, SubmitOptions

OVERLAY = "https://example.org/own#"


def summaries(triples):
    return sorted(value for _, predicate, value in triples if predicate.endswith("#summary>"))


def rules_of(memory):
    return EffectiveRules(memory.schema, Policy())


def queue_of(memory):
    return CommitQueues(memory.follower, memory.sources, rules_of(memory)).of("p")


def test_a_submission_interrupted_while_judged_by_another_thread_is_judged_again(memory):  # C023
    """Thread A holds the lock and judges a submission of thread B when Ctrl-C interrupts A."""
    queue, pipeline = queue_of(memory), Pipeline(rules_of(memory), memory.sources.new_id)
    calls, outcomes = [], []

    class InterruptedOnce:
        def decide(self, pipeline, view, now):
            calls.append(now)
            if len(calls) == 1:
                raise KeyboardInterrupt
            return pipeline.run(Submission("p", intent()), view, now)

    submissions = [Submission("p", intent(summary="ours")), InterruptedOnce()]
    with queue._lock:
        thread = threading.Thread(
            target=lambda: outcomes.extend(each.answer() for each in queue.submit(pipeline, submissions)), daemon=True
        )
        thread.start()
        wait_until(lambda: queue.waiting == 2)
        try:
            queue._serve_one_block()
        except KeyboardInterrupt:
            assert queue.waiting == 2
    thread.join(10)
    assert not thread.is_alive()
    assert [outcome.status for outcome in outcomes] == ["asserted", "asserted"]


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_project_that_was_only_tried_leaves_no_queue_in_memory(memory, is_refused):
    memory.writer.submit_intent("p", intent())
    tried = lambda: [each for each in gc.get_objects() if isinstance(each, CommitQueue)]  # noqa: E731
    gc.collect()
    before = len(tried())

    for number in range(9):
        fields = intent(applies_to_project=f"x{number}")
        if is_refused:
            refusal(memory.writer.submit_intent, f"x{number}", {**fields, "confidence": "none"})
        else:
            memory.writer.submit_intent(f"x{number}", fields, dry_run=True)
    memory.writer.submit_many("y", [intent(applies_to_project="y")])
    memory.writer.submit_many("y", [intent(applies_to_project="y", summary="of a project that is kept")])

    gc.collect()
    assert len(tried()) == before + 1


class Unreadable:
    """A submission with an IRI that a strict parser refuses."""

    def decide(self, pipeline, view, now):
        triples = ((iri("urn:x:a"), jido("summary"), "<urn:x:a b>"),)
        return Decision(Receipt("urn:x:a", None, Version(), "asserted"), triples)


def test_a_dry_run_refuses_what_the_commit_would_refuse_as_it_does_not_read_back(memory):
    queue, pipeline = queue_of(memory), Pipeline(rules_of(memory), memory.sources.new_id)

    (served,) = queue.submit(pipeline, [Unreadable()])
    dry_run = refusal(queue.dry_run_one, pipeline, Unreadable())

    assert codes(served.answer()) == codes(dry_run) == ["invalid_iri"]


@pytest.mark.parametrize("dry_run", [False, True])
def test_the_check_of_an_author_is_called_before_each_submission_is_judged(memory, dry_run):
    calls = []

    def check():
        calls.append(1)
        if len(calls) > 2:
            raise PolicyDenied("the token was revoked", hint="ask for another")

    writer = memory.writer.acting_as("ben", "agent", check=check)
    plan = [(intent(summary=f"text {number}", asserted_by="ben"), SubmitOptions()) for number in range(2)]
    assert len(writer.submit_together("p", lambda outcomes: plan, dry_run=dry_run)) == len(calls) == 2

    assert refusal(writer.submit_intent, "p", intent(asserted_by="ben"), dry_run=dry_run).code == "policy_denied"


def test_a_commit_that_the_index_fails_to_apply_is_acknowledged_and_visible_to_the_next_read(memory):  # C020
    class Exhausted(OxigraphIndex):
        full = False

        def take(self, graph, commits):
            if self.full:
                raise MemoryError
            super().take(graph, commits)

    memory.index = memory.follower.index = Exhausted()
    memory.writer.submit_intent("p", intent())
    memory.index.full = True
    receipt = memory.writer.submit_intent("p", intent(summary="the second"))
    memory.index.full = False
    assert receipt.commit
    assert literal("the second") in summaries(triples_of(memory))
    assert summaries(triples_of(memory)) == summaries(committed_triples(memory))


def types(memory, item):
    return sorted(o for s, p, o in triples_of(memory) if s == f"<{item}>" and p == TYPE)


def test_a_memory_given_as_evidence_keeps_its_class(memory):  # C067
    memory.writer.submit_intent("p", intent(iri="https://e.org/x"))
    receipt = memory.writer.submit_intent("p", intent(summary="therefore", evidence=["https://e.org/x"]))
    assert types(memory, "https://e.org/x") == [jido("Fact")]
    assert values_of(memory, receipt.iri, "derivedFrom") == ["<https://e.org/x>"]
    assert memory.writer.revise("p", "https://e.org/x", changes={"confidence": "low"}, reason="older").commit


def test_a_commit_is_refused_as_evidence(memory):
    receipt = memory.writer.submit_intent("p", intent())
    commit = f"urn:jido:commit:{receipt.commit}"
    error = refusal(memory.writer.submit_intent, "p", intent(summary="therefore", evidence=[commit]))
    assert (error.code, error.violations[0].field) == ("shape_violation", "evidence")


def coexisting_pair(memory, first, second):
    """Submit two decisions on one topic, of which the second coexists with the first; return their IRIs."""
    old = memory.writer.submit_intent("p", decision(topic="index", **first)).iri
    new = decision(topic="index", summary="Use Lucene", coexists_with=[old], **second)
    return old, memory.writer.submit_intent("p", new).iri


@pytest.mark.parametrize("first", [{"about": ["server"]}, {}], ids=["each has a place", "one is for all else"])
def test_revisions_preserve_the_coexistence_of_two_memories(memory, first):  # C060
    pair = [*coexisting_pair(memory, first, {"about": ["search"]})]
    for index in (0, 1, 0, 1, 1, 0):
        changes = {"detailed_explanation": f"more {len(triples_of(memory))}"}
        pair[index] = memory.writer.revise("p", pair[index], changes=changes, reason="more").iri
        assert values_of(memory, pair[index], "coexistsWith") == [f"<{pair[1 - index]}>"]


def test_a_coexisting_memory_conflicts_after_its_scope_becomes_the_same(memory):  # C060
    old, _ = coexisting_pair(memory, {"about": ["server"]}, {"about": ["search"]})
    error = refusal(memory.writer.revise, "p", old, changes={"about": ["search"]}, reason="wider")
    assert [clash.kind for clash in error.conflicts] == ["overlapping_decision"]


def test_alternatives_are_restated_in_order(memory):
    options = [f"option {n}" for n in range(12)]
    receipt = memory.writer.submit_intent("p", decision(alternatives=options))
    assert memory.writer.restated("p", receipt.iri)["alternatives"] == options


def test_a_session_that_started_in_the_future_can_be_closed(tmp_path):
    """The clock was set back; no commit is recorded before the one that it follows."""
    clock = [datetime(2030, 1, 1, tzinfo=UTC)]
    with jidomem.open(tmp_path / "root", sources=Sources(now=lambda: clock[0])) as memory:
        memory.writer.submit_intent("p", intent(timestamp="2020-01-01"))
        clock[0] = datetime(2026, 11, 21, tzinfo=UTC)
        memory.writer.move_session("p", "s-1", status="closed")
        session = "https://jido.ai/sessions/s-1"
        (started,) = values_of(memory, session, "startedAt")
        assert started.startswith('"2030-01-01T00:00:00')
        assert values_of(memory, session, "endedAt") >= [started]


def test_a_memory_with_the_longest_summary_can_be_withdrawn(memory):
    receipt = memory.writer.submit_intent("p", intent(summary="x" * LITERAL_LIMIT))
    assert memory.writer.invalidate("p", receipt.iri, reason="too long").status == "asserted"


def test_text_is_compared_after_casefolding_and_normalization(memory):
    """The second topic is the first in upper case with decomposed marks."""
    memory.writer.submit_intent("p", decision(topic="\u0390"))
    error = refusal(memory.writer.submit_intent, "p", decision(topic="\u03aa\u0301", summary="Use Lucene"))
    assert [clash.kind for clash in error.conflicts] == ["overlapping_decision"]


def test_a_retry_after_midnight_returns_the_first_receipt(tmp_path):
    """The session of the day differs; the request is the same."""
    clock = [datetime(2026, 11, 21, 23, 59, 59, tzinfo=UTC)]
    with jidomem.open(tmp_path / "root", sources=Sources(now=lambda: clock[0])) as memory:
        first = memory.writer.remember("p", "the port is 80", idempotency_key="k")
        clock[0] += timedelta(seconds=2)
        assert memory.writer.remember("p", "the port is 80", idempotency_key="k").iri == first.iri
        assert refusal(memory.writer.remember, "p", "other", idempotency_key="k").code == "idempotency_mismatch"


@pytest.mark.parametrize(
    ("fields", "triple"),
    [
        ({"type": "decision", "rationale": "r", "topic": "queue"}, ["jido:topic", "index"]),
        ({"type": "decision", "rationale": "r"}, ["jido:topic", "index"]),
        ({"type": "convention", "convention_name": "Style"}, ["jido:conventionName", "Indent"]),
        ({"type": "convention", "convention_scope": "GlobalScope"}, ["jido:hasConventionScope", "jido:ProjectScope"]),
    ],
    ids=["a topic", "two topics", "a name", "a scope"],
)
def test_an_identifying_field_has_one_value(memory, fields, triple):  # C060
    """A second topic, name or scope in an extra triple would escape the detection of conflicts."""
    extra = [triple, [triple[0], "queue" if "topic" not in fields else triple[1]]]
    error = refusal(memory.writer.submit_intent, "p", intent(**fields, extra_triples=extra))
    assert error.code == "shape_violation"
    assert triple[0] in error.detail


def test_two_values_of_a_functional_property_in_one_intent_are_refused(memory):
    file = "https://example.org/src/a.ex"
    extra = [[file, "rdf:type", "jido:SourceFile"], *([file, "jido:filePath", path] for path in ("a.ex", "b.ex"))]
    error = refusal(memory.writer.submit_intent, "p", intent(extra_triples=extra))
    assert [violation.value for violation in error.violations] == ["b.ex"]


def open_with_shape(tmp_path, rule):
    """Open a root with a shape for tasks that contains *rule*."""
    shapes = tmp_path / "root" / "shapes"
    shapes.mkdir(parents=True)
    prefixes = "@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix jido: <https://jido.ai/ontology#> ."
    (shapes / "own.ttl").write_text(f"{prefixes} <https://example.org/Task> sh:targetClass jido:Task ; {rule} .")
    return open_with(tmp_path)


@pytest.mark.parametrize(
    "rule", ["sh:property [ {} ]", "sh:and ( [ sh:property [ {} ] ] ) ; sh:property [ {} ]"], ids=["part", "nested"]
)
def test_a_refusal_by_an_unnamed_shape_names_the_enclosing_shape(tmp_path, rule):  # C041
    rule = rule.replace("{}", 'sh:path jido:topic ; sh:minCount 1 ; sh:message "a task has a topic"')
    with open_with_shape(tmp_path, f"a sh:NodeShape ; {rule}") as memory:
        error = refusal(memory.writer.submit_intent, "p", intent(type="task"))
        assert {violation.shape for violation in error.violations} == {"https://example.org/Task"}
        assert memory.writer.submit_intent("p", intent(type="task", topic="docs")).commit


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("<https://example.org/x>", "which is not a text"), ('"(?=a)b"', "RE2 does not run"), ('"(a)*b\\\\1"', "not run")],
)
def test_an_unsupported_pattern_is_refused_on_opening_the_root(tmp_path, pattern, expected):
    with pytest.raises(Failed, match=expected) as caught:
        open_with_shape(tmp_path, f"sh:property [ sh:path jido:summary ; sh:pattern {pattern} ]")
    assert (caught.value.code, "own.ttl" in caught.value.detail) == ("invalid_config", True)


@pytest.mark.parametrize("pattern", ["^(?:abc)+$", "^v[0-9]+(?:[.][0-9]+)?$", "(((a+)))+!", "(a?){40}!"])
def test_a_pattern_with_repetitions_is_applied(tmp_path, pattern):
    with open_with_shape(tmp_path, f'sh:property [ sh:path jido:summary ; sh:pattern "{pattern}" ]') as memory:
        assert refusal(memory.writer.submit_intent, "p", intent(type="task")).code == "shape_violation"


def test_a_file_whose_name_is_no_text_is_reported_as_damage(memory):  # C027
    memory.writer.submit_intent("p", intent())
    folder = memory.settings.root / "projects/p/memory"
    with open(os.fsencode(folder) + b"/\xff.ttl", "wb"):
        pass
    error = refusal(memory.writer.submit_intent, "p", intent(summary="the second"))
    assert error.code == "journal_damaged"
    assert error.to_dict()["path"].endswith(".ttl")


def test_every_assignee_of_a_task_is_carried_over_by_a_revision(memory):
    fields = {"assigned_to": "planner", "extra_triples": [["jido:assignedTo", "https://jido.ai/agents/architect"]]}
    memory.writer.submit_intent("p", intent(asserted_by="architect"))
    old = memory.writer.submit_intent("p", intent(type="task", summary="Write the docs", **fields)).iri
    new = memory.writer.revise("p", old, changes={"status": "InProgress"}, reason="begun").iri
    assignees = ["<https://jido.ai/agents/architect>", "<https://jido.ai/agents/planner>"]
    assert values_of(memory, old, "assignedTo") == values_of(memory, new, "assignedTo") == assignees


def open_with_functional_property(tmp_path):
    """Open a root that declares the functional property `cost`."""
    ontology = tmp_path / "root" / "ontology"
    ontology.mkdir(parents=True)
    owl = "http://www.w3.org/2002/07/owl#"
    (ontology / "own.ttl").write_text(f"<{OVERLAY}cost> a <{owl}DatatypeProperty>, <{owl}FunctionalProperty> .")
    return open_with(tmp_path)


def test_an_undeclared_term_of_an_overlay_namespace_is_refused_with_a_repair(tmp_path):  # C043
    with open_with_functional_property(tmp_path) as memory:
        error = refusal(memory.writer.submit_intent, "p", intent(extra_triples=[[f"{OVERLAY}csot", 5]]))
        assert (error.code, error.violations[0].nearest) == ("unknown_term", f"{OVERLAY}cost")
        assert memory.writer.submit_intent("p", error.fixed_intent).status == "asserted"
        foreign = intent(summary="else", extra_triples=[["https://example.org/else#csot", 5]])
        assert "foreign vocabulary" in memory.writer.submit_intent("p", foreign).warnings[0]


def test_a_second_value_of_an_overlay_functional_property_is_refused(tmp_path):  # C043
    with open_with_functional_property(tmp_path) as memory:
        extra = [[f"{OVERLAY}cost", 5], [f"{OVERLAY}cost", 6]]
        assert refusal(memory.writer.submit_intent, "p", intent(extra_triples=extra)).code == "shape_violation"


def test_evidence_iris_are_compared_with_case(memory):
    """The case of an IRI counts, although texts are compared without it."""
    memory.writer.submit_intent("p", intent(evidence=["https://example.org/A"]))
    error = refusal(memory.writer.submit_intent, "p", intent(evidence=["https://example.org/a"]))
    assert [clash.kind for clash in error.conflicts] == ["duplicate"]
