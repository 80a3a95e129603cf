"""The heat of segments: it rises with visits and falls with time, and the coldest segments are evicted."""

from dataclasses import replace
from datetime import timedelta

import pytest
from memoryos_dialogue import ADA, at, ids, page, policy, segment

from jidomem.extras.memoryos.retrieval import MaintenanceRun, SegmentVisit, hot, maintain, touch_segments
from jidomem.extras.memoryos.segments import TierPolicy
from jidomem.extras.memoryos.values import DialogueSegment, Tiers

PLAIN = policy()


# D017 D099
def test_a_visit_of_a_segment_is_counted_and_updates_access_time_and_heat():
    tiers = Tiers("ada", mtm=(segment(1, [1, 2]), segment(2, [3])))

    after = touch_segments(tiers, SegmentVisit({"s1"}, at(60)), PLAIN).memory

    warmed, other = after.mtm
    assert (warmed.visit_count, warmed.last_accessed, warmed.heat_score) == (1, at(60), 4.0)  # 1 visit, 2 pages, 1
    assert other is tiers.mtm[1]
    assert touch_segments(after, SegmentVisit({"s9"}, at(70)), PLAIN).memory is after
    assert touch_segments(after, SegmentVisit({"s1"}, at(10)), PLAIN).memory.mtm[0].last_accessed == at(60)


# D054
def test_heat_uses_the_weights_of_the_policy():
    tiers = Tiers("ada", mtm=(segment(1, [1, 2]),))

    after = touch_segments(tiers, SegmentVisit({"s1"}, at()), policy(heat_alpha=10, heat_beta=0.5, heat_gamma=0)).memory

    assert after.mtm[0].heat_score == 11.0  # 10*1 visit + 0.5*2 pages


# D056 D067
def test_maintenance_recomputes_the_heat_of_all_segments():
    tiers = Tiers("ada", mtm=(segment(1, [1], visit_count=2, heat_score=4.0), segment(2, [2], last_accessed=at(100))))

    after = maintain(tiers, MaintenanceRun(at() + timedelta(seconds=1.0e7)), PLAIN).memory

    assert tiers.mtm[0].heat_score == 4.0
    # 2 visits + 1 page + exp(-1); 0 visits + 1 page + exp(-(1e7 - 100)/1e7)
    assert [each.heat_score for each in after.mtm] == [pytest.approx(3.367879441), pytest.approx(1.367883120)]
    assert maintain(after, MaintenanceRun(at() + timedelta(seconds=1.0e7)), PLAIN).memory is after


# D018 D068
def test_maintenance_evicts_the_coldest_segments_beyond_capacity():
    tiers = Tiers("ada", mtm=(segment(1, [1, 2, 3]), segment(2, [4]), segment(3, [5, 6])))

    assert ids(maintain(tiers, MaintenanceRun(at()), policy(mtm_capacity=2)).memory.mtm) == ["s1", "s3"]
    assert ids(maintain(tiers, MaintenanceRun(at()), policy(mtm_capacity=1)).memory.mtm) == ["s1"]
    assert ids(maintain(tiers, MaintenanceRun(at()), policy(mtm_capacity=3)).memory.mtm) == ["s1", "s2", "s3"]


def test_equally_cold_segments_are_evicted_by_last_access_then_lowest_id():
    still = {"heat_gamma": 0}
    tiers = Tiers("ada", mtm=(segment(2, [1]), segment(1, [2]), segment(3, [3], last_accessed=at(-5))))

    assert ids(maintain(tiers, MaintenanceRun(at()), policy(mtm_capacity=2, **still)).memory.mtm) == ["s1", "s2"]
    assert ids(maintain(tiers, MaintenanceRun(at()), policy(mtm_capacity=1, **still)).memory.mtm) == ["s2"]


# D068
def test_eviction_by_visits_removes_the_least_visited_segment():
    tiers = Tiers("ada", mtm=(segment(1, [1, 2, 3]), segment(2, [4], visit_count=1)))

    least = policy(mtm_capacity=1, evict="least_visited")

    assert ids(maintain(tiers, MaintenanceRun(at()), least).memory.mtm) == ["s2"]  # though it is colder: 3 against 4
    assert ids(maintain(tiers, MaintenanceRun(at()), policy(mtm_capacity=1)).memory.mtm) == ["s1"]


# D072
def test_an_evicted_segment_is_sent_whole_to_the_archive_provider():
    tiers = Tiers("ada", mtm=(segment(1, [1, 2], embedding=(1.0, 0.0)), segment(2, [3, 4, 5])))

    step = maintain(tiers, MaintenanceRun(at()), policy(mtm_capacity=1, archive="cellar"))

    (directive,) = step.directives
    assert (directive.provider, directive.request_id) == ("cellar", "req_memoryos:s1")
    (item,) = directive.items
    assert (item.key, item.embedding) == ("memoryos:ada:s1", (1.0, 0.0))
    assert DialogueSegment.from_dict(item.value) == replace(tiers.mtm[0], heat_score=3.0)
    assert maintain(tiers, MaintenanceRun(at()), policy(mtm_capacity=1, archive=None)).directives == ()
    assert maintain(tiers, MaintenanceRun(at()), policy(archive="cellar")).directives == ()


# D069
def test_hot_segments_are_those_above_the_threshold_with_unlearned_pages_hottest_first():
    mtm = (segment(1, [1], heat_score=5.0), segment(2, [2], heat_score=6.0), segment(3, [3], heat_score=7.0),
           segment(4, [page(4, segment_id="s4", analysed=True)], heat_score=9.0))  # fmt: skip
    tiers = Tiers("ada", mtm=mtm)

    assert ids(hot(tiers, PLAIN)) == ["s3", "s2"]
    assert ids(hot(tiers, policy(comparison=">="))) == ["s3", "s2", "s1"]
    assert hot(ADA, PLAIN) == ()


# D068 D069
def test_an_unlearned_hot_segment_is_not_evicted_if_configured():
    tiers = Tiers("ada", mtm=(segment(1, [1, 2, 3]), segment(2, [4, 5, 6, 7])))
    sparing = policy(mtm_capacity=1, heat_threshold=3.5, transfer_before_evicting=True)

    assert ids(maintain(tiers, MaintenanceRun(at()), sparing).memory.mtm) == ["s1", "s2"]  # heat 4 and 5
    taught = replace(tiers, mtm=tuple(replace(each, pages=tuple(replace(one, analysed=True) for one in each.pages))
                                      for each in tiers.mtm))  # fmt: skip
    assert ids(maintain(taught, MaintenanceRun(at()), sparing).memory.mtm) == [
        "s2"
    ]  # both have heat 1: the lowest id leaves
    assert ids(maintain(tiers, MaintenanceRun(at()), policy(mtm_capacity=1, heat_threshold=3.5)).memory.mtm) == ["s2"]


# D055 D118
def test_a_custom_heat_function_selects_the_evicted_segment():
    def youngest(segment, now, config):
        return config.extra["delta"] * segment.created_at.timestamp()

    tiers = Tiers("ada", mtm=(segment(1, [1, 2, 3]), segment(2, [4], created_at=at(1))))
    own = TierPolicy(policy(mtm_capacity=1, extra={"delta": 1}).config, heat=youngest)

    assert ids(maintain(tiers, MaintenanceRun(at()), own).memory.mtm) == ["s2"]
