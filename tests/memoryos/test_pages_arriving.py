"""How pages come into short-term memory and out of it into segments."""

from dataclasses import replace

import pytest
from memoryos_dialogue import ADA, at, described, ids, joined, page, policy, said, segment

from jidomem.errors import InvalidRequest, NotFound, RevisionConflict
from jidomem.extras.memoryos.segments import (
    Arrival,
    Description,
    Retelling,
    Splitting,
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
def test_short_term_memory_is_a_queue_and_what_it_has_no_room_for_leaves_it_the_oldest_first():
    tiers = said(range(10), policy(stm_capacity=7))

    assert ids(tiers.stm) == ["p3", "p4", "p5", "p6", "p7", "p8", "p9"]
    assert ids(tiers.leaving) == ["p0", "p1", "p2"]


# D007
def test_a_page_says_when_it_was_said_and_not_when_it_was_put():
    tiers = insert(ADA, page(1, timestamp=at(-3600)), PLAIN).memory

    assert tiers.stm[0].timestamp == at(-3600)


# D040
def test_a_smaller_capacity_takes_effect_with_the_next_move_and_pushes_pages_out():
    tiers = said(range(5), policy(stm_capacity=5))

    smaller = insert(tiers, page(5), policy(stm_capacity=2)).memory
    settled = fit(tiers, policy(stm_capacity=1).config).memory

    assert (ids(smaller.leaving), ids(smaller.stm)) == (["p0", "p1", "p2", "p3"], ["p4", "p5"])
    assert (ids(settled.leaving), ids(settled.stm)) == (["p0", "p1", "p2", "p3"], ["p4"])
    assert fit(settled, policy(stm_capacity=9).config).memory is settled


def test_a_page_that_is_held_is_not_put_again_wherever_it_is_by_now():
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
def test_the_tiers_of_an_agent_take_nothing_of_another():
    with pytest.raises(InvalidRequest, match="an item of bob is in the tiers of ada"):
        insert(ADA, page(1, agent_id="bob"), PLAIN)
    with pytest.raises(InvalidRequest, match="page p1 is in segment s1, and not in short-term memory"):
        insert(ADA, page(1, segment_id="s1"), PLAIN)


def test_a_page_is_held_in_one_place():
    with pytest.raises(InvalidRequest, match="page p1 occurs twice"):
        Tiers("ada", stm=(page(1),), mtm=(segment(1, [1]),))
    with pytest.raises(InvalidRequest, match="segment s1 occurs twice"):
        Tiers("ada", mtm=(segment(1), segment(1)))


# D008 D013
def test_a_page_goes_on_with_the_chain_of_the_one_before_it_or_begins_one():
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


def test_the_page_before_another_is_found_in_the_queue_and_then_among_the_segments():
    one = policy(stm_capacity=1)
    tiers = said([1, 2, 3], one)
    tiers = joined(joined(tiers, "p1", "s1", at(9), one), "p2", "s2", at(9), one)

    assert before(said([1, 2, 3], one), "p3").id == "p2"
    assert before(said([1, 2, 3], one), "p1") is None
    assert before(tiers, "p3").id == "p2"
    assert before(tiers, "p2").id == "p1"
    assert before(tiers, "p1") is None


def test_the_page_before_another_is_of_the_talk_with_the_same_one():
    pages = [page(n, object_type="user", object_identifier="ana" if n % 2 else "ben") for n in (1, 2, 3)]
    queued = Tiers("ada", leaving=(pages[0],), stm=tuple(pages[1:]))
    settled = Tiers("ada", stm=(pages[2],), mtm=(segment(1, [1]), segment(2, [2])))

    assert before(queued, "p3").id == "p1"
    assert before(queued, "p2") is None
    assert before(settled, "p3") is None


# D057 D058 D059
def test_a_page_joins_the_segment_it_is_most_like_if_that_is_above_the_threshold_and_opens_one_otherwise():
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
def test_a_score_that_equals_the_threshold_is_enough_only_where_the_settings_say_so():
    tiers = Tiers("ada", stm=(page(1, keywords={"a", "b", "c"}),), mtm=(segment(1, keywords={"a", "b", "d"}),))

    # two of four words are common: 0.5
    assert choose_segment(tiers, "p1", policy(mtm_fscore_threshold=0.5)).segment_id is None
    assert choose_segment(tiers, "p1", policy(mtm_fscore_threshold=0.5, comparison=">=")).segment_id == "s1"


# D062
def test_of_segments_that_a_page_is_as_like_to_the_one_used_last_is_taken_then_the_lowest_id():
    like = {"keywords": {"index"}}
    mtm = (segment(3, **like), segment(2, last_accessed=at(5), **like), segment(1, last_accessed=at(5), **like))

    for order in (mtm, mtm[::-1]):
        assert choose_segment(Tiers("ada", stm=(page(1, **like),), mtm=order), "p1", PLAIN).segment_id == "s1"


# D060 D061
def test_a_page_that_joins_renews_the_summary_the_vector_the_keywords_the_heat_and_the_moment():
    tiers = said([1, 2], policy(stm_capacity=1), keywords={"index"})
    tiers = joined(tiers, "p1", "s1", at(10), PLAIN)
    tiers = described(tiers, "p2", PLAIN, embedding=(1.0, 0.0), keywords={"index", "disk"})

    arrival = Arrival("p2", "s1", "indexes on disks", ("p1", "p2"), at(20), (0.5, 0.5))
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
def test_a_page_that_was_transferred_is_not_transferred_again():
    one = policy(stm_capacity=1)
    tiers = joined(said([1, 2], one), "p1", "s1", at(9), one)

    again = transfer(tiers, Arrival("p1", "s7", "of p1", ("p1",), at(10)), one)

    assert (again.memory, again.directives) == (tiers, ())


# D063
def test_a_page_is_transferred_by_its_id_also_straight_from_short_term_memory():
    tiers = joined(said([1, 2], PLAIN), "p2", "s1", at(9), PLAIN)

    assert (ids(tiers.stm), ids(tiers.mtm[0].pages)) == (["p1"], ["p2"])
    with pytest.raises(NotFound, match="ada has no page p9") as refusal:
        choose_segment(tiers, "p9", PLAIN)
    assert refusal.value.hint == "insert it first; an evicted one is archived"


# D065
def test_a_page_nobody_described_is_held_until_it_can_be_and_waits_no_worse_for_it():
    tiers = said([1, 2], policy(stm_capacity=1))

    assert ids(tiers.leaving) == ["p1"]
    assert tiers.page("p1") == page(1)
    assert joined(tiers, "p1", "s1", at(9), PLAIN).segment("s1").pages[0].id == "p1"


def test_a_summary_that_came_too_late_is_refused_and_the_page_stays_where_it_is():
    like = {"keywords": {"index"}}
    tiers = Tiers("ada", leaving=(page(1, **like), page(2, **like)))
    late = Arrival("p1", "s9", "of p1", ("p1",), at(9))
    meanwhile = joined(tiers, "p2", "s1", at(8), PLAIN)

    with pytest.raises(RevisionConflict, match="page p1 now belongs to s1, with other pages") as refusal:
        transfer(meanwhile, late, PLAIN)

    assert "ask choose_segment" in refusal.value.hint
    with pytest.raises(RevisionConflict, match="page p1 now belongs to s1"):
        transfer(meanwhile, replace(late, segment_id="s1"), PLAIN)  # the segment, and not its pages
    assert joined(meanwhile, "p1", "s9", at(9), PLAIN).segment("s1").page_count == 2
    elsewhere = Tiers("ada", leaving=(page(1, **like),), mtm=(segment(1, [2], **like), segment(2, [3])))
    with pytest.raises(RevisionConflict, match="page p1 now belongs to s1"):
        transfer(elsewhere, Arrival("p1", "s2", "of both", ("p1", "p2"), at(9)), PLAIN)


# D049 D118
def test_the_score_may_be_one_of_your_own():
    def by_length(segment, page, config):
        return config.extra["most"] - abs(len(segment.topic_summary) - len(page.query))

    own = TierPolicy(policy(extra={"most": 1}).config, fscore=by_length)
    tiers = Tiers(
        "ada", stm=(page(1, said="123456"),), mtm=(segment(1, topic_summary="1"), segment(2, topic_summary="abcdef"))
    )

    assert choose_segment(tiers, "p1", own).segment_id == "s2"


# D019
def test_a_full_segment_takes_no_more_and_a_page_opens_another_that_the_next_ones_join():
    two = policy(stm_capacity=1, segment_capacity=2)
    tiers = said(range(1, 6), two, keywords={"index"})

    for number in range(1, 5):
        tiers = joined(tiers, f"p{number}", f"s{number}", at(10 + number), two)

    assert [ids(each.pages) for each in tiers.mtm] == [["p1", "p2"], ["p3", "p4"]]
    unbounded = policy(segment_capacity=None)
    assert choose_segment(tiers, "p5", unbounded).segment_id == "s3"  # both are as like: the one used last


# D019
def test_a_segment_with_too_many_pages_by_now_is_split_in_order_and_each_part_has_its_own_keywords():
    held = tuple(page(each, segment_id="s1", keywords={f"k{each}"}) for each in range(5))
    tiers = Tiers("ada", mtm=(segment(1, held, visit_count=3, keywords={"k0"}),))
    two = policy(segment_capacity=2)

    assert oversized(tiers, two.config) == {"s1": 2}
    assert oversized(Tiers("ada", mtm=(segment(1, [1, 2, 3, 4]), segment(2, [5, 6]))), two.config) == {"s1": 1}
    parts = split(tiers, Splitting("s1", ("s2", "s3"), at()), two).memory.mtm

    assert [(each.id, ids(each.pages)) for each in parts] == [
        ("s1", ["p0", "p1"]),
        ("s2", ["p2", "p3"]),
        ("s3", ["p4"]),
    ]
    assert [each.keywords for each in parts] == [{"k0", "k1"}, {"k2", "k3"}, {"k4"}]
    assert [each.heat_score for each in parts] == [6.0, 6.0, 5.0]  # 3 visits + its pages + recency 1
    assert split(tiers, Splitting("s1", ("s2",), at()), PLAIN).memory is tiers
    assert split(tiers, Splitting("s8", ("s2",), at()), two).memory is tiers
    with pytest.raises(InvalidRequest, match="segment s1 is split into 3 parts, and 1 ids are given"):
        split(tiers, Splitting("s1", ("s2",), at()), two)


# D103 D105
def test_a_segment_is_told_anew_with_the_vector_of_its_text_which_is_its_summary_and_its_keywords():
    held = tuple(page(each, segment_id="s1", keywords={"index", f"k{each}"}) for each in (1, 2))
    tiers = Tiers("ada", mtm=(segment(1, held, embedding=(1.0,)),))

    after = retell(tiers, Retelling("s1", "indexes", ("p1", "p2"), (0.0, 1.0)), policy(segment_keywords=2)).memory

    told = after.segment("s1")
    assert (told.topic_summary, told.embedding, told.keywords) == ("indexes", (0.0, 1.0), {"index", "k1"})
    assert segment_text(told.topic_summary, told.keywords) == "indexes (index, k1)"
    assert segment_text("indexes", ()) == "indexes"
    with pytest.raises(RevisionConflict, match="segment s1 has other pages now"):
        retell(tiers, Retelling("s1", "indexes", ("p1",)), PLAIN)
    with pytest.raises(NotFound, match="ada has no segment s2"):
        retell(tiers, Retelling("s2", "indexes", ("p1",)), PLAIN)


def test_pages_of_a_segment_stand_in_the_order_they_were_said_whichever_came_first():
    like = {"keywords": {"index"}}
    tiers = Tiers("ada", leaving=(page(2, **like), page(1, **like)))

    tiers = joined(joined(tiers, "p2", "s1", at(9), PLAIN), "p1", "s2", at(9), PLAIN)

    assert [ids(each.pages) for each in tiers.mtm] == [["p1", "p2"]]
    assert ids(segment(1, [3, 1, 2]).pages) == ["p1", "p2", "p3"]
    assert ids(Tiers("ada", mtm=(segment(2), segment(3, created_at=at(-1)), segment(1))).mtm) == ["s3", "s1", "s2"]
