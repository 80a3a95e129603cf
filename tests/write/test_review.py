"""Faults found in a review, each with the test that found it."""

import os
import threading
from datetime import UTC, datetime, timedelta

import pytest
from conftest import decision, intent
from writing import committed_triples, open_with, refusal, triples_of, values_of

import jidomem
from jidomem.base.clock import Sources
from jidomem.errors import Failed
from jidomem.index.store import OxigraphIndex
from jidomem.rdf.terms import literal
from jidomem.rdf.vocab import TYPE, jido
from jidomem.records.policy import LITERAL_LIMIT, Policy
from jidomem.schema.ontology import EffectiveRules
from jidomem.write.group_commit import CommitQueues
from jidomem.write.pipeline import Pipeline
from jidomem.write.submission import Submission

OWN = "https://example.org/own#"


def summaries(triples):
    return sorted(value for _, predicate, value in triples if predicate.endswith("#summary>"))


def rules_of(memory):
    return EffectiveRules(memory.schema, Policy())


def queue_of(memory):
    return CommitQueues(memory.follower, memory.sources, rules_of(memory)).of("p")


def test_a_submission_whose_judging_was_interrupted_in_another_thread_is_judged_again(memory):  # C023
    """Thread A has the lock and judges a submission of B when Ctrl-C reaches A."""
    queue, pipeline = queue_of(memory), Pipeline(rules_of(memory), memory.sources.new_id)
    calls, answers = [], []

    class InterruptedOnce:
        def decide(self, pipeline, view, now):
            calls.append(now)
            if len(calls) == 1:
                raise KeyboardInterrupt
            return pipeline.run(Submission("p", intent()), view, now)

    submissions = [Submission("p", intent(summary="ours")), InterruptedOnce()]
    with queue._lock:
        waiting = threading.Thread(target=lambda: answers.extend(queue.submit(pipeline, submissions)), daemon=True)
        waiting.start()
        while queue.waiting < 2:
            pass
        try:
            queue._serve_one_block()
        except KeyboardInterrupt:
            assert queue.waiting == 2
    waiting.join(10)
    assert not waiting.is_alive()
    assert [answer.status for answer in answers] == ["asserted", "asserted"]


def test_a_commit_the_index_could_not_take_in_is_acknowledged_and_seen_by_the_next_look(memory):  # C020
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


def test_what_a_block_points_at_is_known_by_a_look_up(memory):
    view = queue_of(memory).snapshot()
    view.add(("<urn:s>", "<urn:p>", f"<urn:o:{n}>") for n in range(3))
    assert view.mentions("<urn:o:2>")
    assert not view.mentions("<urn:o:3>")


def types(memory, item):
    return sorted(o for s, p, o in triples_of(memory) if s == f"<{item}>" and p == TYPE)


def test_a_memory_named_as_evidence_keeps_its_class_alone(memory):  # C067
    memory.writer.submit_intent("p", intent(iri="https://e.org/x"))
    receipt = memory.writer.submit_intent("p", intent(summary="therefore", evidence=["https://e.org/x"]))
    assert types(memory, "https://e.org/x") == [jido("Fact")]
    assert values_of(memory, receipt.iri, "derivedFrom") == ["<https://e.org/x>"]
    assert memory.writer.revise("p", "https://e.org/x", changes={"confidence": "low"}, reason="older").commit


def test_a_commit_is_no_evidence(memory):
    receipt = memory.writer.submit_intent("p", intent())
    commit = f"urn:jido:commit:{receipt.commit}"
    error = refusal(memory.writer.submit_intent, "p", intent(summary="therefore", evidence=[commit]))
    assert (error.code, error.violations[0].field) == ("shape_violation", "evidence")


def beside(memory, first, second):
    """Two decisions on one topic, the second declared to coexist with the first; their IRIs."""
    old = memory.writer.submit_intent("p", decision(topic="index", **first)).iri
    new = decision(topic="index", summary="Use Lucene", coexists_with=[old], **second)
    return old, memory.writer.submit_intent("p", new).iri


@pytest.mark.parametrize("first", [{"about": ["server"]}, {}], ids=["each has a place", "one is for all else"])
def test_what_holds_beside_another_still_does_once_either_is_revised(memory, first):  # C060
    pair = [*beside(memory, first, {"about": ["search"]})]
    for turn in (0, 1, 0, 1, 1, 0):
        changes = {"detailed_explanation": f"more {len(triples_of(memory))}"}
        pair[turn] = memory.writer.revise("p", pair[turn], changes=changes, reason="more").iri
        assert values_of(memory, pair[turn], "coexistsWith") == [f"<{pair[1 - turn]}>"]


def test_what_held_beside_another_clashes_once_it_is_about_the_same(memory):  # C060
    old, _ = beside(memory, {"about": ["server"]}, {"about": ["search"]})
    error = refusal(memory.writer.revise, "p", old, changes={"about": ["search"]}, reason="wider")
    assert [found.kind for found in error.conflicts] == ["overlapping_decision"]


def test_alternatives_are_restated_in_their_order(memory):
    given = [f"option {n}" for n in range(12)]
    receipt = memory.writer.submit_intent("p", decision(alternatives=given))
    assert memory.writer.restated("p", receipt.iri)["alternatives"] == given


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


def test_text_that_casefolding_takes_apart_is_compared_in_one_form(memory):
    """The second topic is the first in capitals, its marks written one by one."""
    memory.writer.submit_intent("p", decision(topic="\u0390"))
    error = refusal(memory.writer.submit_intent, "p", decision(topic="\u03aa\u0301", summary="Use Lucene"))
    assert [found.kind for found in error.conflicts] == ["overlapping_decision"]


def test_a_retry_after_midnight_gets_its_first_receipt(tmp_path):
    """The session of the day is another one; the request is not."""
    clock = [datetime(2026, 11, 21, 23, 59, 59, tzinfo=UTC)]
    with jidomem.open(tmp_path / "root", sources=Sources(now=lambda: clock[0])) as memory:
        first = memory.writer.remember("p", "the port is 80", idempotency_key="k")
        clock[0] += timedelta(seconds=2)
        assert memory.writer.remember("p", "the port is 80", idempotency_key="k").iri == first.iri
        assert refusal(memory.writer.remember, "p", "other", idempotency_key="k").code == "idempotency_mismatch"


@pytest.mark.parametrize(
    ("fields", "again"),
    [
        ({"type": "decision", "rationale": "r", "topic": "queue"}, ["jido:topic", "index"]),
        ({"type": "decision", "rationale": "r"}, ["jido:topic", "index"]),
        ({"type": "convention", "convention_name": "Style"}, ["jido:conventionName", "Indent"]),
        ({"type": "convention", "convention_scope": "GlobalScope"}, ["jido:hasConventionScope", "jido:ProjectScope"]),
    ],
    ids=["a topic", "two topics", "a name", "a scope"],
)
def test_what_tells_memories_apart_is_said_once(memory, fields, again):  # C060
    """A second topic, name or scope in an extra triple would be one under which no clash is looked for."""
    extra = [again, [again[0], "queue" if "topic" not in fields else again[1]]]
    error = refusal(memory.writer.submit_intent, "p", intent(**fields, extra_triples=extra))
    assert error.code == "shape_violation"
    assert again[0] in error.detail


def test_a_property_with_one_value_is_not_given_two_in_one_intent(memory):
    file = "https://example.org/src/a.ex"
    extra = [[file, "rdf:type", "jido:SourceFile"], *([file, "jido:filePath", path] for path in ("a.ex", "b.ex"))]
    error = refusal(memory.writer.submit_intent, "p", intent(extra_triples=extra))
    assert [broken.value for broken in error.violations] == ["b.ex"]


def overlay(tmp_path, rule):
    """A root that brings a shape for tasks, whose property shape is *rule*."""
    shapes = tmp_path / "root" / "shapes"
    shapes.mkdir(parents=True)
    prefixes = "@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix jido: <https://jido.ai/ontology#> ."
    (shapes / "own.ttl").write_text(f"{prefixes} <https://example.org/Task> sh:targetClass jido:Task ; {rule} .")
    return open_with(tmp_path)


@pytest.mark.parametrize(
    "rule", ["sh:property [ {} ]", "sh:and ( [ sh:property [ {} ] ] ) ; sh:property [ {} ]"], ids=["part", "nested"]
)
def test_a_rule_without_a_name_refuses_in_the_name_of_the_one_it_is_part_of(tmp_path, rule):  # C041
    rule = rule.replace("{}", 'sh:path jido:topic ; sh:minCount 1 ; sh:message "a task has a topic"')
    with overlay(tmp_path, f"a sh:NodeShape ; {rule}") as memory:
        error = refusal(memory.writer.submit_intent, "p", intent(type="task"))
        assert {broken.shape for broken in error.violations} == {"https://example.org/Task"}
        assert memory.writer.submit_intent("p", intent(type="task", topic="docs")).commit


@pytest.mark.parametrize(
    ("pattern", "why"),
    [("<https://example.org/x>", "which is not a text"), ('"(?=a)b"', "RE2 does not run"), ('"(a)*b\\\\1"', "not run")],
)
def test_a_pattern_that_is_not_run_is_refused_when_the_root_is_opened(tmp_path, pattern, why):
    with pytest.raises(Failed, match=why) as caught:
        overlay(tmp_path, f"sh:property [ sh:path jido:summary ; sh:pattern {pattern} ]")
    assert (caught.value.code, "own.ttl" in caught.value.detail) == ("invalid_config", True)


@pytest.mark.parametrize("pattern", ["^(?:abc)+$", "^v[0-9]+(?:[.][0-9]+)?$", "(((a+)))+!", "(a?){40}!"])
def test_a_pattern_is_honoured_whatever_it_repeats(tmp_path, pattern):
    with overlay(tmp_path, f'sh:property [ sh:path jido:summary ; sh:pattern "{pattern}" ]') as memory:
        assert refusal(memory.writer.submit_intent, "p", intent(type="task")).code == "shape_violation"


def test_a_stray_file_whose_name_is_no_text_is_damage_that_is_named(memory):  # C027
    memory.writer.submit_intent("p", intent())
    folder = memory.settings.root / "projects/p/memory"
    with open(os.fsencode(folder) + b"/\xff.ttl", "wb"):
        pass
    error = refusal(memory.writer.submit_intent, "p", intent(summary="the second"))
    assert error.code == "journal_damaged"
    assert error.to_dict()["path"].endswith(".ttl")


def test_every_assignee_is_carried_over_when_a_task_is_revised(memory):
    fields = {"assigned_to": "planner", "extra_triples": [["jido:assignedTo", "https://jido.ai/agents/architect"]]}
    memory.writer.submit_intent("p", intent(asserted_by="architect"))
    old = memory.writer.submit_intent("p", intent(type="task", summary="Write the docs", **fields)).iri
    new = memory.writer.revise("p", old, changes={"status": "InProgress"}, reason="begun").iri
    both = ["<https://jido.ai/agents/architect>", "<https://jido.ai/agents/planner>"]
    assert values_of(memory, old, "assignedTo") == values_of(memory, new, "assignedTo") == both


def owning(tmp_path):
    """A root that declares the property `cost`, of which a memory has one."""
    ontology = tmp_path / "root" / "ontology"
    ontology.mkdir(parents=True)
    owl = "http://www.w3.org/2002/07/owl#"
    (ontology / "own.ttl").write_text(f"<{OWN}cost> a <{owl}DatatypeProperty>, <{owl}FunctionalProperty> .")
    return open_with(tmp_path)


def test_an_undeclared_term_of_a_namespace_the_project_declares_is_refused(tmp_path):  # C043
    with owning(tmp_path) as memory:
        error = refusal(memory.writer.submit_intent, "p", intent(extra_triples=[[f"{OWN}csot", 5]]))
        assert (error.code, error.violations[0].nearest) == ("unknown_term", f"{OWN}cost")
        assert memory.writer.submit_intent("p", error.fixed_intent).status == "asserted"
        other = intent(summary="else", extra_triples=[["https://example.org/else#csot", 5]])
        assert "foreign vocabulary" in memory.writer.submit_intent("p", other).warnings[0]


def test_a_memory_is_given_one_value_of_a_property_the_project_declares_functional(tmp_path):  # C043
    with owning(tmp_path) as memory:
        extra = [[f"{OWN}cost", 5], [f"{OWN}cost", 6]]
        assert refusal(memory.writer.submit_intent, "p", intent(extra_triples=extra)).code == "shape_violation"


def test_what_rests_on_another_document_is_another_memory(memory):
    """Each letter of an IRI counts, also where text is compared without regard to case."""
    memory.writer.submit_intent("p", intent(evidence=["https://example.org/A"]))
    error = refusal(memory.writer.submit_intent, "p", intent(evidence=["https://example.org/a"]))
    assert [found.kind for found in error.conflicts] == ["duplicate"]
