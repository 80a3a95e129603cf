"""The typed memory item of the memory guide."""

from datetime import UTC, datetime, timedelta

import pytest

from jidomem.errors import IntentRefused
from jidomem.rdf import vocab
from jidomem.records.intent import create_memory


def test_a_memory_has_the_defaults_of_the_guide():
    # E066
    before = datetime.now(UTC)

    item = create_memory("fact", "the build needs Rust 1.80")

    assert (item.type, item.content) == ("fact", "the build needs Rust 1.80")
    assert (item.confidence, item.source, item.verified, item.metadata) == (0.5, "system", False, {})
    assert timedelta(0) <= item.timestamp - before < timedelta(minutes=1)
    assert item.timestamp.tzinfo is UTC


def test_attributes_override_the_defaults_and_metadata_is_not_shared():
    # E066
    now = datetime(2026, 1, 1, tzinfo=UTC)

    item = create_memory("task", "ship", {"confidence": 0.9, "source": "user", "verified": True, "metadata": {"a": 1}})
    dated = create_memory("task", "ship", {"timestamp": now})

    assert (item.confidence, item.source, item.verified, item.metadata) == (0.9, "user", True, {"a": 1})
    assert dated.timestamp == now
    assert create_memory("fact", "a").metadata is not create_memory("fact", "b").metadata


@pytest.mark.parametrize("kind", vocab.GUIDE_TYPES)
def test_each_of_the_eleven_types_of_the_guide_can_be_created(kind):
    # E064
    assert len(vocab.GUIDE_TYPES) == 11
    assert create_memory(kind, "content").type == kind


def test_an_unknown_type_is_refused_with_the_nearest_one():
    # E067
    with pytest.raises(IntentRefused) as refusal:
        create_memory("lesson_learnt", "content")

    assert refusal.value.code == "unknown_type"
    assert refusal.value.violations[0].nearest == "lesson_learned"


@pytest.mark.parametrize("confidence", [-0.01, 1.01, float("nan"), float("inf"), True, "high"])
def test_a_confidence_outside_0_to_1_is_refused(confidence):
    # E067
    with pytest.raises(IntentRefused) as refusal:
        create_memory("fact", "content", {"confidence": confidence})

    assert refusal.value.code == "invalid_confidence"


@pytest.mark.parametrize("confidence", [0, 1, 0.5])
def test_the_bounds_of_the_confidence_range_are_accepted(confidence):
    # E067
    assert create_memory("fact", "content", {"confidence": confidence}).confidence == confidence


def test_an_unknown_attribute_is_refused_by_name():
    with pytest.raises(IntentRefused, match="'verifed' is not known") as refusal:
        create_memory("fact", "content", {"verifed": True})

    assert refusal.value.violations[0].nearest == "verified"


def test_the_alias_lesson_is_a_lesson_learned():
    assert create_memory("lesson", "content").type == "lesson_learned"
