"""Near pairs: nearly equal active memories in the review queue, and their settlement."""

from itertools import combinations, pairwise
from random import Random

import numpy as np
import pytest

import jidomem
from jidomem.curation.review_queue import queue, queued
from jidomem.errors import InvalidRequest
from jidomem.index.search_index import VectorFile
from jidomem.index.vector_search import VectorSet, encode
from jidomem.index.vectors import LEAST_COSINE, NEAR
from jidomem.journal.journal import Stream
from jidomem.write.settlement import Settlement

FIVE, TWENTY = "The worker pool has 5 threads", "The pool of workers uses 20 threads"
FRIDAY, NEVER = "Deploys happen on Fridays", "Never deploy on a Friday"
UNRELATED = "The logo is blue"
HARBOURS = ("Calais", "Dover", "Ostend")


@pytest.fixture
def memory(tmp_path, monkeypatch):
    monkeypatch.setenv("JIDOMEM_EMBEDDER", "local")
    with jidomem.open(tmp_path / "root", project="p", agent="rita") as opened:
        yield opened


def remember(memory, summary, **fields):
    return memory.remember(summary, **fields).iri


def pending(memory):
    memory.embedding.embed("p")
    return queue(memory.reader, "p", memory.sources.now(), memory.near_pairs())


def pairs(memory):
    return [(one.item, one.other) for one in pending(memory) if one.kind == "near"]


def test_a_memory_nearly_equal_to_an_older_one_is_listed_as_a_pair(memory):
    older, _, newer = remember(memory, FIVE), remember(memory, UNRELATED), remember(memory, TWENTY)

    (one,) = pending(memory)

    assert (one.kind, one.tier, one.item, one.other) == ("near", 5, newer, older)
    assert (one.summary, one.other_summary) == (TWENTY, FIVE)
    assert (one.differences, one.why) == (("5 / 20 threads",), "differs in 5 / 20 threads")
    assert one.choices == ("accept", "reject", "supersede", "keep-both")
    assert 0.85 <= one.likeness <= 1.0


def test_equal_rules_with_different_enforcement_levels_are_a_pair_with_both_levels(memory):
    text = "Every service logs one line for each request"
    levels = {level: remember(memory, text, type="convention", enforcement_level=level, about=[level])
              for level in ("Strict", "Advisory")}  # fmt: skip

    (one,) = pending(memory)

    assert (one.kind, one.item, one.other) == ("near", levels["Advisory"], levels["Strict"])
    assert one.differences == ("Strict / Advisory enforcement",)
    assert one.why == "differs in Strict / Advisory enforcement"


@pytest.mark.parametrize(
    ("action", "active"),
    [("accept", {TWENTY}), ("reject", {FIVE}), ("supersede", {TWENTY}), ("keep-both", {FIVE, TWENTY})],
)
def test_each_review_action_settles_a_pair(memory, action, active):
    older, newer = remember(memory, FIVE), remember(memory, TWENTY)
    assert pairs(memory) == [(newer, older)]

    memory.writer.settle("p", newer, action, other=older)

    assert pairs(memory) == []
    assert {row["summary"] for row in memory.ask("facts")} == active


def test_a_kept_pair_stays_settled_after_a_confirmation(memory):
    older, newer = remember(memory, FIVE), remember(memory, TWENTY)
    memory.writer.settle("p", newer, "keep-both", other=older)

    memory.writer.confirm("p", older, reason="counted again")

    assert pairs(memory) == []


def test_three_kept_memories_are_no_pairs(memory):
    for summary in (
        "Calais harbour closes at 22:00",
        "Dover harbour closes at 22:00",
        "Ostend harbour closes at 22:00",
    ):
        remember(memory, summary)
    assert len(pairs(memory)) == 3

    for _ in range(3):
        newer, older = pairs(memory)[0]
        memory.writer.settle("p", newer, "keep-both", other=older)

    assert pairs(memory) == []


@pytest.mark.parametrize("kind", ["discovery", "convention", "decision"])
def test_one_sentence_in_two_kinds_is_a_pair(memory, kind):
    older = remember(memory, FIVE)
    newer = remember(memory, FIVE, type=kind, **({"rationale": "it was measured"} if kind == "decision" else {}))
    assert pairs(memory) == [(newer, older)]

    memory.writer.settle("p", newer, "keep-both", other=older)
    memory.writer.confirm("p", older, reason="measured again")

    assert pairs(memory) == []


def test_several_pairs_of_one_memory_are_settled_once_in_one_review(memory):
    """Each settlement gives the memory a new IRI; the later lines have its earlier one."""
    for name in HARBOURS:
        remember(memory, f"{name} harbour closes at 22:00")
    lines = [Settlement(one.item, "keep-both", other=one.other) for one in pending(memory)]
    assert len(lines) == 3

    outcomes = memory.writer.settle_many("p", lines)
    version = memory.catch_up("p")
    repeated = memory.writer.settle_many("p", lines)

    assert [outcome.status for outcome in outcomes] == ["asserted"] * 3
    assert [outcome.status for outcome in repeated] == ["deduplicated"] * 3
    assert {outcome.iri for outcome in repeated} <= {row["fact"] for row in memory.ask("facts")}
    assert memory.catch_up("p") == version
    assert pairs(memory) == []
    assert len(memory.ask("facts")) == 3


def test_a_pair_is_settled_by_the_current_iri_of_an_edited_memory(memory):
    older, newer = remember(memory, FIVE), remember(memory, TWENTY)
    edited = memory.writer.revise("p", older, changes={"summary": f"{FIVE} and no more"}, reason="r").iri

    with pytest.raises(InvalidRequest, match=f"{older} is settled already: it was replaced by {edited}") as refusal:
        memory.writer.settle("p", newer, "supersede", other=older)

    assert f"jidomem review supersede {newer} --against {edited}" in refusal.value.hint
    assert memory.writer.settle("p", newer, "supersede", other=edited).status == "asserted"


def test_related_or_ended_memories_are_no_pair(memory):
    old = remember(memory, FIVE)
    new = remember(memory, TWENTY, supersedes=[old])
    remember(memory, "The pool has 20 threads, as workers wait for the disk", evidence=[new])
    remember(memory, FRIDAY)
    remember(memory, NEVER, type="task")

    assert pairs(memory) == []


def test_pairs_are_listed_nearest_first_and_once_across_pages(memory):
    for summary in (FIVE, TWENTY, FRIDAY, NEVER, UNRELATED):
        remember(memory, summary)
    for number in range(3):
        remember(memory, f"The worker pool has {number} threads in region {number}")
    every = pending(memory)

    listed, cursor = [], None
    while True:
        page = queued(memory.reader, "p", memory.sources.now(), memory.near_pairs(), limit=2, cursor=cursor)
        listed += page.waiting
        if (cursor := page.cursor) is None:
            break

    assert [(one.item, one.other) for one in listed] == [(one.item, one.other) for one in every]
    assert all(one.likeness >= other.likeness for one, other in pairwise(every))
    assert page.total == len(every) > 4


def test_a_conflict_is_not_listed_as_a_near_pair_too(memory, tmp_path):
    (tmp_path / "root").mkdir(exist_ok=True)
    (tmp_path / "root" / "config.toml").write_text('[conflicts]\nfact = "warn"\n')
    first = remember(memory, FIVE, topic="threads")
    second = remember(memory, TWENTY, topic="threads")

    assert [(one.kind, {one.item, one.other}) for one in pending(memory)] == [("conflict", {first, second})]


def test_a_redaction_removes_the_pair(memory):
    older, newer = remember(memory, FIVE), remember(memory, TWENTY)
    assert pairs(memory) == [(newer, older)]

    plan = memory.maintenance.plan("p", None, texts=["has 5 threads"])
    memory.maintenance.redact(plan, agent="rita", reason="private")

    assert pairs(memory) == []
    assert memory.embedding.vectors.near_pairs(Stream("p"), 10) == []


def test_the_stored_pairs_are_the_nearest_of_each_vector():
    random = Random(7)
    values = [[random.gauss(0, 1) + (number % 5) * 0.4 for _ in range(8)] for number in range(60)]
    vectors, stored = VectorSet(8), {}
    vectors.add(range(1, 61), [encode(value) for value in values])

    last = 0
    while last < 60:
        last, near = vectors.near(last, 7, NEAR, LEAST_COSINE)
        stored |= {frozenset((one, other)): cosine for one, other, cosine in near}

    exact = np.array([np.frombuffer(encode(value), np.int8) for value in values], float)
    exact /= np.linalg.norm(exact, axis=1)[:, None]
    cosines = exact @ exact.T
    expected = {
        frozenset((one + 1, other + 1))
        for one, other in combinations(range(60), 2)
        if cosines[one, other] >= LEAST_COSINE
        and any(np.sum(cosines[row] >= cosines[one, other]) <= NEAR + 1 for row in (one, other))
    }
    assert {*stored} == expected
    assert all(abs(cosine - cosines[min(key) - 1, max(key) - 1]) < 1e-4 for key, cosine in stored.items())


def test_the_pairs_of_a_vector_are_deleted_with_it(tmp_path):
    file = VectorFile(str(tmp_path / "v"), 1.0)
    assert file.fits()
    with file.writing():
        file.put((bytes([number]), b"x") for number in range(1, 4))
        file.put_near(3, [(1, 2, 0.9), (3, 2, 0.8), (3, 1, 0.7)])
    assert file.near(10) == [(b"\1", b"\2", 0.9), (b"\2", b"\3", 0.8), (b"\1", b"\3", 0.7)]
    assert file.is_compared

    with file.writing():
        file.remove([2])

    assert file.near(10) == [(b"\1", b"\3", 0.7)]
    file.close()


def test_pairs_found_before_a_redaction_are_not_stored_after_it(memory, tmp_path, monkeypatch):
    remember(memory, FIVE)
    remember(memory, f"{TWENTY}, as Rosalind wants it")
    vectors, near = memory.embedding.vectors, VectorSet.near

    def redact_meanwhile(*arguments):
        monkeypatch.setattr(VectorSet, "near", near)
        with jidomem.open(tmp_path / "root", project="p", agent="rita") as other:
            other.maintenance.redact(
                other.maintenance.plan("p", None, texts=["Rosalind"]), agent="rita", reason="private"
            )
        return near(*arguments)

    monkeypatch.setattr(VectorSet, "near", redact_meanwhile)
    memory.embedding.embed("p")

    state = vectors.near_state(Stream("p"))
    assert vectors.near_pairs(Stream("p"), 10) == []
    assert state[1] <= vectors.status(Stream("p"))["vectors"]


def test_a_number_of_any_length_is_compared(memory):
    remember(memory, f"The modulus of the release key is {'7' * 400}")
    remember(memory, f"The modulus of the release key is {'8' * 400}")

    (one,) = pending(memory)

    assert (one.kind, len(one.differences)) == ("near", 1)


def test_a_check_counts_the_pairs(memory):
    remember(memory, FIVE)
    remember(memory, TWENTY)
    before = memory.check().notes
    assert pairs(memory)

    after = memory.check().notes

    assert [note for note in after if note not in before] == [
        "1 near pair of active memories that say nearly the same: jidomem review"
    ]


def test_a_root_without_an_embedder_has_no_pairs(tmp_path):
    with jidomem.open(tmp_path / "root", project="p", agent="rita") as opened:  # the tests have no embedder by default
        remember(opened, FIVE)
        remember(opened, TWENTY)

        assert opened.embedding is None
        assert opened.near_pairs() == []


def test_rows_of_a_table_are_no_pairs_and_two_rows_with_one_name_are(memory):
    names = ("billing", "search", "mail", "orders", "stock", "audit", "cart", "proxy", "label", "fraud", "score")
    for place, name in enumerate(names):
        remember(memory, f"The {name} service is owned by team {('Ant', 'Bee', 'Cat')[place % 3]}")
    older = remember(memory, "The price service is owned by team Dog")
    newer = remember(memory, "The price service is owned by team Elk")

    assert pairs(memory) == [(newer, older)]


def claim(number, value="400 EUR"):
    return f"Claim CL-{number}: damage estimated at {value}"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((claim(1003), {}), (claim(1004, "900 EUR"), {})),
        ((claim(1003), {}), (claim(1004), {})),
        (
            ("Two photos are missing", {"topic": "photos of CL-1003"}),
            ("Two photos are missing", {"topic": "photos of CL-1004"}),
        ),
        (
            ("Prefers letters by post", {"about": ["urn:user:ana"]}),
            ("Prefers letters by mail", {"about": ["urn:user:ben"]}),
        ),
    ],
)
def test_memories_of_other_things_are_no_pair(memory, first, second):
    for text, fields in (first, second):
        remember(memory, text, **fields)

    assert pairs(memory) == []


def test_memories_of_one_thing_with_other_values_are_a_pair(memory):
    for number in range(1000, 1010):
        remember(memory, claim(number), about=[f"urn:claim:CL-{number}"])
    other = remember(memory, "Claim CL-1004 has damage of 99 EUR", about=["urn:claim:CL-1004"])

    ((newer, older),) = pairs(memory)

    assert newer == other
    assert memory.contrasts([newer])[newer][0].text == claim(1004)
    assert older in memory.contrasts([older, newer])


def test_identifiers_of_standards_are_values(memory):
    older, newer = (remember(memory, f"Passwords are hashed with SHA-{bits}") for bits in (256, 512))

    assert pairs(memory) == [(newer, older)]
