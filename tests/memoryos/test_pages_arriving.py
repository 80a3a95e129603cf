"""The insertion of pages into short-term memory and their transfer to segments."""

from dataclasses import replace

import pytest
from memoryos_dialogue import ADA, at, described, ids, joined, page, policy, said, segment

from jidomem.errors import InvalidRequest, NotFound, RevisionConflict
from jidomem.extras.memoryos.segments import (
    Description,
    NewDescription,
    PageArrival,
    SegmentSplit,
    TierPolicy,
    before,
    choose_segment,
    describe,
    insert,
    oversized,
    retell,
    segment_text,
    split,
    transfer,
)
from jidomem.extras.memoryos.values import Tiers, fit

PLAIN = policy()


# D009 D011 D012
def test_short_term_memory_is_a_queue_whose_oldest_pages_leave_at_capacity():
    tiers = said(range(10), policy(stm_capacity=7))

    assert ids(tiers.stm) == ["p3", "p4", "p5", "p6", "p7", "p8", "p9"]
    assert ids(tiers.leaving) == ["p0", "p1", "p2"]


# D007
def test_a_page_keeps_its_own_timestamp():
    tiers = insert(ADA, page(1, timestamp=at(-3600)), PLAIN).memory

    assert tiers.stm[0].timestamp == at(-3600)


# D040
def test_a_smaller_capacity_takes_effect_with_the_next_move():
    tiers = said(range(5), policy(stm_capacity=5))

    smaller = insert(tiers, page(5), policy(stm_capacity=2)).memory
    settled = fit(tiers, policy(stm_capacity=1).config).memory

    assert (ids(smaller.leaving), ids(smaller.stm)) == (["p0", "p1", "p2", "p3"], ["p4", "p5"])
    assert (ids(settled.leaving), ids(settled.stm)) == (["p0", "p1", "p2", "p3"], ["p4"])
    assert fit(settled, policy(stm_capacity=9).config).memory is settled


def test_a_known_page_is_not_inserted_again_in_any_tier():
    one = policy(stm_capacity=1)
    tiers = joined(said([1, 2], one), "p1", "s1", at(9), one)

    assert insert(tiers, page(1), one).memory is tiers
    assert insert(tiers, page(2), one).memory is tiers
    with pytest.raises(InvalidRequest, match="page p1 exists already, with other content"):
        insert(tiers, page(1, said="another"), one)
    for other in ({"timestamp": at(7)}, {"object_type": "user", "object_identifier": "ana"}):
        with pytest.raises(InvalidRequest, match="page p1 exists already"):
            insert(tiers, page(1, **other), one)


# D003
def test_a_page_of_another_agent_or_of_a_segment_is_refused():
    with pytest.raises(InvalidRequest, match="an item of bob is in the tiers of ada"):
        insert(ADA, page(1, agent_id="bob"), PLAIN)
    with pytest.raises(InvalidRequest, match="page p1 is in segment s1, and not in short-term memory"):
        insert(ADA, page(1, segment_id="s1"), PLAIN)


def test_a_duplicate_page_or_segment_is_refused():
    with pytest.raises(InvalidRequest, match="page p1 occurs twice"):
        Tiers("ada", stm=(page(1),), mtm=(segment(1, [1]),))
    with pytest.raises(InvalidRequest, match="segment s1 occurs twice"):
        Tiers("ada", mtm=(segment(1), segment(1)))


# D008 D013
def test_a_described_page_has_its_chain_and_the_page_it_continues():
    tiers = said([1, 2, 3], policy(stm_capacity=2))

    first = describe(tiers, Description("p1", meta_chain="of indexes"), PLAIN).memory
    both = describe(first, Description("p2", meta_chain="of indexes and disks", continues="p1"), PLAIN).memory
    fresh = describe(both, Description("p3", meta_chain="of lunch"), PLAIN).memory

    assert [(each.meta_chain, each.continues) for each in (*fresh.leaving, *fresh.stm)] == [
        ("of indexes", None), ("of indexes and disks", "p1"), ("of lunch", None)]  # fmt: skip
    with pytest.raises(InvalidRequest, match="page p2 cannot continue itself"):
        describe(tiers, Description("p2", continues="p2"), PLAIN)
    with pytest.raises(NotFound, match="ada has no page p9"):
        describe(tiers, Description("p9", meta_chain=""), PLAIN)


def test_the_previous_page_is_found_in_the_queue_and_in_segments():
    one = policy(stm_capacity=1)
    tiers = said([1, 2, 3], one)
    tiers = joined(joined(tiers, "p1", "s1", at(9), one), "p2", "s2", at(9), one)

    assert before(said([1, 2, 3], one), "p3").id == "p2"
    assert before(said([1, 2, 3], one), "p1") is None
    assert before(tiers, "p3").id == "p2"
    assert before(tiers, "p2").id == "p1"
    assert before(tiers, "p1") is None


def test_the_previous_page_has_the_same_dialogue_partner():
    pages = [page(n, object_type="user", object_identifier="ana" if n % 2 else "ben") for n in (1, 2, 3)]
    queued = Tiers("ada", leaving=(pages[0],), stm=tuple(pages[1:]))
    settled = Tiers("ada", stm=(pages[2],), mtm=(segment(1, [1]), segment(2, [2])))

    assert before(queued, "p3").id == "p1"
    assert before(queued, "p2") is None
    assert before(settled, "p3") is None


# D057 D058 D059
def test_a_page_joins_the_most_similar_segment_above_the_threshold_or_opens_a_new_one():
    tiers = Tiers(
        "ada",
        leaving=(page(1, keywords={"index", "disk"}), page(2, keywords={"lunch"})),
        mtm=(segment(1, keywords={"index", "disk", "lock"}), segment(2, keywords={"index", "disk"})),
    )

    near, far = choose_segment(tiers, "p1", PLAIN), choose_segment(tiers, "p2", PLAIN)

    # of three words two are common: 2/3; of two words both: 1
    assert (near.segment_id, near.score, near.scores) == ("s2", 1.0, {"s1": pytest.approx(2 / 3), "s2": 1.0})
    assert (far.segment_id, far.score, far.scores) == (None, 0.0, {"s1": 0.0, "s2": 0.0})
    assert choose_segment(Tiers("ada", stm=(page(1),)), "p1", PLAIN).segment_id is None


# D058
def test_a_score_equal_to_the_threshold_suffices_only_with_that_comparison():
    tiers = Tiers("ada", stm=(page(1, keywords={"a", "b", "c"}),), mtm=(segment(1, keywords={"a", "b", "d"}),))

    # two of four words are common: 0.5
    assert choose_segment(tiers, "p1", policy(mtm_fscore_threshold=0.5)).segment_id is None
    assert choose_segment(tiers, "p1", policy(mtm_fscore_threshold=0.5, comparison=">=")).segment_id == "s1"


# D062
def test_a_page_joins_the_latest_used_of_equally_similar_segments_then_the_lowest_id():
    like = {"keywords": {"index"}}
    mtm = (segment(3, **like), segment(2, last_accessed=at(5), **like), segment(1, last_accessed=at(5), **like))

    for order in (mtm, mtm[::-1]):
        assert choose_segment(Tiers("ada", stm=(page(1, **like),), mtm=order), "p1", PLAIN).segment_id == "s1"


# D060 D061
def test_a_joining_page_updates_summary_vector_keywords_heat_and_access_time():
    tiers = said([1, 2], policy(stm_capacity=1), keywords={"index"})
    tiers = joined(tiers, "p1", "s1", at(10), PLAIN)
    tiers = described(tiers, "p2", PLAIN, embedding=(1.0, 0.0), keywords={"index", "disk"})

    arrival = PageArrival("p2", "s1", "indexes on disks", ("p1", "p2"), at(20), (0.5, 0.5))
    after = transfer(tiers, arrival, policy(mtm_fscore_threshold=0.4)).memory

    merged = after.mtm[0]
    assert (merged.topic_summary, merged.embedding, merged.keywords) == (
        "indexes on disks",
        (0.5, 0.5),
        {"index", "disk"},
    )
    assert (merged.page_count, merged.last_accessed, merged.created_at) == (2, at(20), at(10))
    assert merged.heat_score == 3.0  # 0 visits + 2 pages + recency 1
    assert (after.stm, {each.segment_id for each in merged.pages}) == ((), {"s1"})
    late = transfer(tiers, replace(arrival, at=at(5)), policy(mtm_fscore_threshold=0.4)).memory
    assert late.mtm[0].last_accessed == at(10)


# D064
def test_a_transferred_page_is_not_transferred_again():
    one = policy(stm_capacity=1)
    tiers = joined(said([1, 2], one), "p1", "s1", at(9), one)

    step = transfer(tiers, PageArrival("p1", "s7", "of p1", ("p1",), at(10)), one)

    assert (step.memory, step.directives) == (tiers, ())


# D063
def test_a_page_is_transferred_by_id_directly_from_short_term_memory():
    tiers = joined(said([1, 2], PLAIN), "p2", "s1", at(9), PLAIN)

    assert (ids(tiers.stm), ids(tiers.mtm[0].pages)) == (["p1"], ["p2"])
    with pytest.raises(NotFound, match="ada has no page p9") as refusal:
        choose_segment(tiers, "p9", PLAIN)
    assert refusal.value.hint == "insert it first; an evicted one is archived"


# D065
def test_an_undescribed_page_is_held_and_can_be_transferred():
    tiers = said([1, 2], policy(stm_capacity=1))

    assert ids(tiers.leaving) == ["p1"]
    assert tiers.page("p1") == page(1)
    assert joined(tiers, "p1", "s1", at(9), PLAIN).segment("s1").pages[0].id == "p1"


def test_an_outdated_segment_summary_is_refused_and_the_page_stays():
    like = {"keywords": {"index"}}
    tiers = Tiers("ada", leaving=(page(1, **like), page(2, **like)))
    late = PageArrival("p1", "s9", "of p1", ("p1",), at(9))
    meanwhile = joined(tiers, "p2", "s1", at(8), PLAIN)

    with pytest.raises(RevisionConflict, match="page p1 now belongs to s1, with other pages") as refusal:
        transfer(meanwhile, late, PLAIN)

    assert "ask choose_segment" in refusal.value.hint
    with pytest.raises(RevisionConflict, match="page p1 now belongs to s1"):
        transfer(meanwhile, replace(late, segment_id="s1"), PLAIN)  # the segment, and not its pages
    assert joined(meanwhile, "p1", "s9", at(9), PLAIN).segment("s1").page_count == 2
    elsewhere = Tiers("ada", leaving=(page(1, **like),), mtm=(segment(1, [2], **like), segment(2, [3])))
    with pytest.raises(RevisionConflict, match="page p1 now belongs to s1"):
        transfer(elsewhere, PageArrival("p1", "s2", "of both", ("p1", "p2"), at(9)), PLAIN)


# D049 D118
def test_a_custom_fscore_function_selects_the_segment():
    def by_length(segment, page, config):
        return config.extra["most"] - abs(len(segment.topic_summary) - len(page.query))

    own = TierPolicy(policy(extra={"most": 1}).config, fscore=by_length)
    tiers = Tiers(
        "ada", stm=(page(1, said="123456"),), mtm=(segment(1, topic_summary="1"), segment(2, topic_summary="abcdef"))
    )

    assert choose_segment(tiers, "p1", own).segment_id == "s2"


# D019
def test_a_full_segment_accepts_no_page_and_a_new_segment_is_opened():
    two = policy(stm_capacity=1, segment_capacity=2)
    tiers = said(range(1, 6), two, keywords={"index"})

    for number in range(1, 5):
        tiers = joined(tiers, f"p{number}", f"s{number}", at(10 + number), two)

    assert [ids(each.pages) for each in tiers.mtm] == [["p1", "p2"], ["p3", "p4"]]
    unbounded = policy(segment_capacity=None)
    assert choose_segment(tiers, "p5", unbounded).segment_id == "s3"  # equally similar: the one used last


# D019
def test_an_oversized_segment_is_split_in_order_with_own_keywords():
    pages = tuple(page(each, segment_id="s1", keywords={f"k{each}"}) for each in range(5))
    tiers = Tiers("ada", mtm=(segment(1, pages, visit_count=3, keywords={"k0"}),))
    two = policy(segment_capacity=2)

    assert oversized(tiers, two.config) == {"s1": 2}
    assert oversized(Tiers("ada", mtm=(segment(1, [1, 2, 3, 4]), segment(2, [5, 6]))), two.config) == {"s1": 1}
    parts = split(tiers, SegmentSplit("s1", ("s2", "s3"), at()), two).memory.mtm

    assert [(each.id, ids(each.pages)) for each in parts] == [
        ("s1", ["p0", "p1"]),
        ("s2", ["p2", "p3"]),
        ("s3", ["p4"]),
    ]
    assert [each.keywords for each in parts] == [{"k0", "k1"}, {"k2", "k3"}, {"k4"}]
    assert [each.heat_score for each in parts] == [6.0, 6.0, 5.0]  # 3 visits + its pages + recency 1
    assert split(tiers, SegmentSplit("s1", ("s2",), at()), PLAIN).memory is tiers
    assert split(tiers, SegmentSplit("s8", ("s2",), at()), two).memory is tiers
    with pytest.raises(InvalidRequest, match="segment s1 is split into 3 parts, and 1 ids are given"):
        split(tiers, SegmentSplit("s1", ("s2",), at()), two)


# D103 D105
def test_a_retold_segment_has_new_summary_vector_and_keywords():
    pages = tuple(page(each, segment_id="s1", keywords={"index", f"k{each}"}) for each in (1, 2))
    tiers = Tiers("ada", mtm=(segment(1, pages, embedding=(1.0,)),))

    after = retell(tiers, NewDescription("s1", "indexes", ("p1", "p2"), (0.0, 1.0)), policy(segment_keywords=2)).memory

    retold = after.segment("s1")
    assert (retold.topic_summary, retold.embedding, retold.keywords) == ("indexes", (0.0, 1.0), {"index", "k1"})
    assert segment_text(retold.topic_summary, retold.keywords) == "indexes (index, k1)"
    assert segment_text("indexes", ()) == "indexes"
    with pytest.raises(RevisionConflict, match="segment s1 has other pages now"):
        retell(tiers, NewDescription("s1", "indexes", ("p1",)), PLAIN)
    with pytest.raises(NotFound, match="ada has no segment s2"):
        retell(tiers, NewDescription("s2", "indexes", ("p1",)), PLAIN)


def test_pages_of_a_segment_are_ordered_by_time_whatever_their_arrival():
    like = {"keywords": {"index"}}
    tiers = Tiers("ada", leaving=(page(2, **like), page(1, **like)))

    tiers = joined(joined(tiers, "p2", "s1", at(9), PLAIN), "p1", "s2", at(9), PLAIN)

    assert [ids(each.pages) for each in tiers.mtm] == [["p1", "p2"]]
    assert ids(segment(1, [3, 1, 2]).pages) == ["p1", "p2", "p3"]
    assert ids(Tiers("ada", mtm=(segment(2), segment(3, created_at=at(-1)), segment(1))).mtm) == ["s3", "s1", "s2"]
