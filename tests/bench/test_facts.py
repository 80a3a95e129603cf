"""The benchmark of facts that replace each other: its streams, and a small run."""

from bench.facts import GOAL, Stream, accuracy, measure


def test_a_stream_is_determined_by_its_seed_and_has_the_requested_length():
    stream = Stream(2_000)

    assert stream.facts == Stream(2_000).facts != Stream(2_000, seed=8).facts
    assert 2_000 * 4 <= sum(len(f"{fact.number}. {fact.text}\n") for fact in stream.facts) < 2_000 * 4 + 100


def test_a_question_is_about_replaced_facts_and_answered_by_the_last_one():
    stream = Stream(2_000)

    for subject, *relations in (*stream.single_hop(), *stream.multiple_hops()):
        at, changes = subject, []
        for relation in relations:
            facts = [fact for fact in stream.facts if fact.key == (relation, at)]
            at = facts[-1].value
            changes.append(len({fact.value for fact in facts}))
        assert at == stream.answer([subject, *relations])
        assert max(changes) > 1


def test_the_accuracy_is_100_with_current_values_and_0_with_first_values():
    stream = Stream(2_000)

    assert accuracy(stream, stream.multiple_hops(), stream.current_value) == 100
    assert accuracy(stream, stream.single_hop(), lambda *key: stream.versions[key][0].value) == 0


def test_the_measured_accuracy_of_keyed_facts_reaches_the_goal(tmp_path):
    accuracies = measure(Stream(600), tmp_path)

    assert min(accuracies["by key"]) >= GOAL
    assert min(accuracies["recalled"]) >= GOAL
    assert accuracies["near"] > 50
