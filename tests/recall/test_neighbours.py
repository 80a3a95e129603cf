"""The neighbours of a statement: the active memories that repeat or contradict it."""

from collections import Counter
from functools import partial

import pytest
from conftest import intent

import jidomem
from bench.neighbours import NOTES, SUBJECT_NOTES, cases
from jidomem.journal.journal import Stream
from jidomem.models.local_embedder import LocalEmbedder
from jidomem.recall.neighbours import NeighbourSearch, comparable, significant

NOW = "2027-01-01T00:00:00.000000Z"
RECURSION = "No recursion anywhere, so that what should be bounded is bounded"


def write(memory, summary, **fields):
    return memory.writer.submit_intent("p", intent(summary=summary, **fields)).iri


def neighbours_of(memory, summary, kind="fact", moment=NOW, excluded=None, **options):
    """The IRIs of the neighbours of a statement in *memory*, the nearest first."""
    stems = significant(stem for _, stem in memory.texts.stemmer.stems(summary))
    search = NeighbourSearch(Stream("p"), stems, comparable(kind, moment), **options)
    memory.texts.read(Stream("p"), lambda file: search.gather(file, excluded=excluded))
    results = search.neighbours(partial(memory.texts.read, Stream("p")))
    return [each.item for each in results]


@pytest.fixture
def recursion(memory):
    """A memory with a statement on recursion, and others."""
    for summary in ("Lines have at most 100 columns", "Client sessions are allocated at startup", "Use one queue"):
        write(memory, summary)
    return write(memory, RECURSION)


def rates(embedder, folder=NOTES):
    """Return the share of detected statements by label, in the held-out notes and in all notes.

    For an unrelated statement that is a false alarm.
    """
    every = [*cases(embedder, folder=folder)]
    shares = {}
    for part in ("held out", "all"):
        selected = [case for case in every if part in (case.part, "all")]
        labels, noticed = (
            Counter(case.label for case in selected),
            Counter(case.label for case in selected if case.is_detected),
        )
        shares[part] = {label: noticed[label] / labels[label] for label in labels}
    return shares


def test_repetitions_and_contradictions_are_detected_by_vectors_at_the_target_rates():
    for part, share in rates(LocalEmbedder()).items():
        assert share["repeats"] >= 0.8, part
        assert share["contradicts"] >= 0.8, part
        assert share["unrelated"] <= 0.1, part


def test_repetitions_and_contradictions_are_detected_by_words_at_the_target_rates():
    for part, share in rates(None).items():
        assert share["repeats"] >= 0.65, part
        assert share["contradicts"] >= 0.8, part
        assert share["unrelated"] <= 0.1, part


@pytest.mark.parametrize("embedder", [LocalEmbedder, None])
def test_statements_on_one_subject_are_detected_at_the_target_rates(embedder):
    for part, share in rates(embedder and embedder(), SUBJECT_NOTES).items():
        assert share["repeats"] >= 0.9, part
        assert share["contradicts"] >= 0.9, part
        assert share["unrelated"] <= (0.2 if part == "held out" else 0.31), part


def test_a_paraphrase_has_the_memory_as_neighbour(memory, recursion):
    assert neighbours_of(memory, "anywhere in the code recursion is bounded") == [recursion]


def test_an_unrelated_statement_has_no_neighbour(memory, recursion):
    assert neighbours_of(memory, "The office closes at noon on Fridays") == []


def test_a_statement_without_words_has_no_neighbour(memory, recursion):
    assert neighbours_of(memory, "...") == []


def test_an_ended_memory_is_no_neighbour(memory, recursion):
    memory.writer.invalidate("p", recursion, reason="measured")

    assert neighbours_of(memory, RECURSION) == []


def test_a_proposal_is_no_neighbour(memory, recursion):
    memory.writer.submit_intent("p", intent(summary="The office closes at noon"), propose=True)

    assert neighbours_of(memory, "The office closes at noon") == []


def test_a_memory_outside_its_validity_is_no_neighbour(memory, recursion):
    until = write(memory, "The office is closed in August", valid_until="2026-12-01T00:00:00Z")

    assert neighbours_of(memory, "The office is closed in August") == []
    assert neighbours_of(memory, "The office is closed in August", moment="2026-11-30T00:00:00.000000Z") == [until]


def test_an_excluded_memory_is_no_neighbour(memory, recursion):
    assert neighbours_of(memory, RECURSION, excluded=recursion.__eq__) == []


def test_tasks_are_compared_with_tasks_and_errors_with_errors(memory):
    text = "The importer loses the last line"
    fact, task, error = (
        write(memory, text, type=kind, **fields) for kind, fields in (("fact", {}), ("task", {}), ("bug", {}))
    )

    assert neighbours_of(memory, text) == neighbours_of(memory, text, "decision") == [fact]
    assert neighbours_of(memory, text, "task") == neighbours_of(memory, text, "plan") == [task]
    assert neighbours_of(memory, text, "error") == [error]


def test_the_three_nearest_neighbours_are_returned(memory):
    for tail in ("", " today", " today at noon", " today at noon in Bonn", " again today at noon in Bonn"):
        write(memory, f"The choir votes by a show of hands{tail}")

    results = neighbours_of(memory, "The choir votes by a show of hands today")

    assert len(results) == 3
    assert neighbours_of(memory, "The choir votes by a show of hands today", limit=1) == results[:1]


PORTS = [f"The {name} service listens on port {8000 + 7 * place}" for place, name in
         enumerate(("billing", "search", "mail", "orders", "stock", "audit", "cart", "proxy"))]  # fmt: skip


@pytest.mark.parametrize("embedder", [None, "local"])
def test_another_row_of_a_table_is_no_neighbour_and_a_row_with_the_same_name_is(tmp_path, monkeypatch, embedder):
    monkeypatch.setenv("JIDOMEM_EMBEDDER", embedder or "none")
    root = tmp_path / "root"
    root.mkdir()
    (root / "config.toml").write_text('[on_similar]\nfact = "ask"\n')
    with jidomem.open(root, project="p") as memory:
        memory.similar_within = 60.0
        written = [memory.remember(text) for text in PORTS]
        if memory.embedding is not None:
            memory.embedding.embed("p")

        another = memory.remember("The vault service listens on port 9000")
        changed = memory.remember("The mail service listens on port 9001")
        titled = memory.remember("Ports: The cart service listens on port 9002")

    assert not any(receipt.similar for receipt in written[3:])  # three rows are no table
    assert another.similar == ()
    assert [each.id for each in changed.similar] == [written[2].iri]
    assert changed.similar[0].differences == ("9001 / 8014",)
    assert [each.id for each in titled.similar] == [written[6].iri]


@pytest.mark.parametrize("embedder", [None, "local"])
@pytest.mark.parametrize("is_swapped", [False, True])
def test_a_statement_that_ends_what_another_one_uses_is_its_neighbour(tmp_path, monkeypatch, embedder, is_swapped):
    monkeypatch.setenv("JIDOMEM_EMBEDDER", embedder or "none")
    monkeypatch.setattr("jidomem.runtime.similar.ReceiptSearch.default", "ask")
    use, end = ("We run Redis for sessions", "Redis was retired in March")[:: -1 if is_swapped else 1]
    with jidomem.open(tmp_path / "root", project="p") as memory:
        memory.similar_within = 60.0
        for text in (*PORTS, "Redis keys expire after a day", "The exporter of Redis was removed"):
            memory.remember(text)
        known = memory.remember(use)
        (similar,) = memory.remember(end).similar

    assert (similar.id, similar.relation, "retired" in similar.differences[0]) == (known.iri, "near", True)


@pytest.mark.parametrize(
    "texts",
    [
        [f"The pool has {number} threads" for number in (5, 8, 10, 20, 30)],  # one thing with several values
        [f"The release manager is {name}" for name in ("Anna", "Bernd", "Carl", "Dora", "Emil")],
        [f"In 202{year} the upload limit was {year}0 MB" for year in (1, 2, 3, 4, 5)],  # numbers name no thing
    ],
)
def test_several_values_of_one_thing_are_no_table(memory, texts):
    written = {write(memory, text) for text in texts[1:]}

    assert set(neighbours_of(memory, texts[0])) <= written
    assert len(neighbours_of(memory, texts[0])) == 3


def test_table_rows_named_by_two_columns_are_compared_by_both(memory):
    regions, services = ("Bonn", "Calais", "Dover"), ("mail", "search", "audit")
    rows = {(service, region): write(memory, f"Queue of {service} in {region} has {len(service) + len(region)} workers")
            for service in services for region in regions}  # fmt: skip

    assert neighbours_of(memory, "Queue of mail in Dover has 99 workers") == [rows["mail", "Dover"]]


@pytest.mark.parametrize("embedder", [None, "local"])
def test_a_receipt_shows_what_contradicts_it_on_the_same_thing_only(tmp_path, monkeypatch, embedder):
    monkeypatch.setenv("JIDOMEM_EMBEDDER", embedder or "none")
    monkeypatch.setattr("jidomem.runtime.similar.ReceiptSearch.default", "ask")
    with jidomem.open(tmp_path / "root", project="p") as memory:
        memory.similar_within = 60.0
        claims = [memory.remember(f"Claim CL-{1000 + each}: damage estimated at 3800 EUR") for each in range(12)]
        paid = memory.remember("Claim CL-1009 is paid with 3800 EUR")
        police = memory.remember("Claim CL-1009: police confirm the theft")
        valued = memory.remember("Claim CL-1009: damage estimated at 900 EUR")

    assert police.similar == ()
    assert (valued.similar[0].id, valued.similar[0].differences) == (claims[9].iri, ("900 / 3800 EUR",))
    assert {each.id for each in valued.similar} <= {claims[9].iri, paid.iri}
