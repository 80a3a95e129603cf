"""The benchmark of facts that replace each other: its streams, and a small run."""

from bench.facts import GOAL, Stream, accuracy, measured


def test_a_stream_is_the_same_for_a_seed_and_as_long_as_asked_for():
    stream = Stream(2_000)

    assert stream.facts == Stream(2_000).facts != Stream(2_000, seed=8).facts
    assert 2_000 * 4 <= sum(len(f"{fact.number}. {fact.text}\n") for fact in stream.facts) < 2_000 * 4 + 100


def test_a_question_asks_for_a_fact_that_was_replaced_and_the_last_one_answers_it():
    stream = Stream(2_000)

    for subject, *relations in (*stream.single(), *stream.multiple()):
        at, changes = subject, []
        for relation in relations:
            facts = [fact for fact in stream.facts if fact.key == (relation, at)]
            at = facts[-1].value
            changes.append(len({fact.value for fact in facts}))
        assert at == stream.answer([subject, *relations])
        assert max(changes) > 1


def test_all_answers_are_right_of_a_side_that_knows_the_current_values_and_none_of_one_that_knows_the_first():
    stream = Stream(2_000)

    assert accuracy(stream, stream.multiple(), stream.current) == 100
    assert accuracy(stream, stream.single(), lambda *key: stream.versions[key][0].value) == 0


def test_facts_that_name_their_key_are_found_as_they_are_now(tmp_path):
    found = measured(Stream(600), tmp_path)

    assert min(found["by key"]) >= GOAL
    assert min(found["recalled"]) >= GOAL
    assert found["near"] > 50
