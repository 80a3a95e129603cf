"""Memories in order and counted by facet, compared with the values of the reader."""

from collections import Counter

import pytest
from conftest import fixed_sources, intent

import jidomem
from bench import generate
from jidomem.index.timeline import FACETS, TimelineEntry, overview
from jidomem.journal.journal import Stream
from jidomem.records.active import ENDED

MEMORIES, PROPOSED = 300, 3
LATEST = "9999-12-31T23:59:59.999999Z"


def write(memory):
    """Write the memories; return three moments: after a part of them, after all, and before any."""
    intents = [*generate.intents(MEMORIES, project="p")]
    memory.writer.submit_many("p", intents[:180])
    middle = memory.sources.now().isoformat()
    memory.writer.submit_many("p", intents[180:])
    memory.writer.submit_many("p", [intent(summary=f"proposed {n}") for n in range(PROPOSED)], propose=True)
    return {"middle": middle.replace("+00:00", ".000000Z"), "now": None, "before": "2020-01-01T00:00:00.000000Z"}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A memory for tests that write nothing, and its moments."""
    with jidomem.open(tmp_path_factory.mktemp("written"), sources=fixed_sources()) as memory:
        yield memory, write(memory)


def timeline(memory, filters, moment, after=None, count=1_000):
    memory.catch_up("p")
    return memory.texts.read(
        Stream("p"),
        lambda file: overview(file, filters, moment=moment, valid_at=moment or LATEST, after=after, count=count),
    )


def facets_of(memory, moment):
    """Return the facets of each memory from the reader."""
    items = [one.item for one in timeline(memory, {}, moment).entries]
    facets = {}
    for item in items:
        values = memory.reader.get_memory("p", item, **({} if moment is None else {"as_of": moment}))
        status, properties = values["status"], values["properties"]
        state = "ended" if status in ENDED else status
        facets[item] = dict(
            zip(FACETS, (values["class"], properties["assertedBy"][0], properties["assertedIn"][0], state), strict=True)
        )
    return facets


@pytest.mark.parametrize("when", ["middle", "now", "before"])
def test_facets_count_the_memories_of_the_reader_at_every_moment_and_filter(written, when):
    memory, moment = written[0], written[1][when]
    facets_by_item = facets_of(memory, moment)
    assert len(facets_by_item) == {"middle": 180, "now": MEMORIES + PROPOSED, "before": 0}[when]
    some = next(iter(facets_by_item.values()), dict.fromkeys(FACETS, "none"))
    of_agent = {"agent": some["agent"], "state": "active"}
    for filters in ({}, {"kind": some["kind"]}, {"state": "ended"}, {"state": "withdrawal"}, of_agent):
        page = timeline(memory, filters, moment)

        fits = [
            item for item, of in facets_by_item.items() if all(of[name] == value for name, value in filters.items())
        ]
        assert sorted(one.item for one in page.entries) == sorted(fits)
        for name in FACETS:
            others = {each: value for each, value in filters.items() if each != name}
            expected = Counter(of[name] for of in facets_by_item.values() if others.items() <= of.items())
            assert page.facets[name] == expected


def test_successive_pages_have_each_memory_once_newest_first(written):
    memory, _ = written
    whole, after, pages = timeline(memory, {}, None), None, []
    while True:
        page = timeline(memory, {}, None, after, 37)
        pages += page.entries
        if not page.more:
            break
        after = page.entries[-1]

    assert pages == [*whole.entries]
    assert whole.days == Counter(one.recorded[:10] for one in whole.entries)
    assert pages == sorted(pages, key=lambda one: (one.recorded, one.item), reverse=True)
    assert timeline(memory, {}, None, TimelineEntry("", "2000"), 5).entries == ()


def test_a_written_memory_is_counted_at_once(memory):
    write(memory)
    before = timeline(memory, {}, None).facets["kind"]["Fact"]

    memory.writer.remember("p", "a further fact")

    assert timeline(memory, {}, None).facets["kind"]["Fact"] == before + 1
