"""Entries are changed together, removed, and kept in memory by the prefix of their ids."""

import shutil

import pytest
from conftest import fixed_sources
from hypothesis import given, settings
from hypothesis import strategies as st

import jidomem
from jidomem.entries import Entry, list_entries, recall, write
from jidomem.errors import IntentRefused
from jidomem.journal.journal import Stream
from jidomem.write.conversation import EntryChanges

HISTORY = Stream("p", "history")


@pytest.fixture
def memory(root):
    with jidomem.open(root, project="p", sources=fixed_sources()) as opened:
        yield opened


def entry(key, content="said", **more):
    return Entry(**{"id": key, "agent_id": "architect", "content": content, **more})


def entries_of(keyed):
    """Return the keyed entries by id: the content, and whether it is the first under its id."""
    return keyed.read(lambda each: {one.id: (one.content, one.since == one.recorded) for one in each.by_id.values()})


def test_a_removed_entry_is_found_only_as_of_its_time(memory):
    write(memory.entries, entry("plan", "we ship on Friday"))
    recorded = memory.journal.head(HISTORY).recorded_at

    assert memory.entries.remove(["plan", "nothing", "plan"]) == 1

    assert list_entries(memory.entries) == []
    assert recall(memory.entries, agent_id="architect", query="ship").entries == []
    assert memory.recall("ship", kinds=["entry"]).entries == []
    assert [one.content for one in memory.entries.list_entries({"as_of": recorded})] == ["we ship on Friday"]
    past = recall((memory.entries, {"as_of": recorded}), agent_id="architect", query="ship")
    assert [one.content for one in past.entries] == ["we ship on Friday"]


def test_removing_nothing_commits_nothing(memory):
    write(memory.entries, entry("plan"))
    before = memory.journal.head(HISTORY)

    assert memory.entries.remove(["other"]) == 0
    assert memory.journal.head(HISTORY) == before


def test_a_removed_entry_can_be_written_again_and_is_new(memory):
    keyed = memory.entries.keyed("a:")
    write(memory.entries, entry("a:1", "one"))
    write(memory.entries, entry("a:1", "uno"))
    assert entries_of(keyed) == {"a:1": ("uno", False)}

    memory.entries.remove(["a:1"])
    assert entries_of(keyed) == {}
    write(memory.entries, entry("a:1", "ein"))

    assert entries_of(keyed) == entries_of(memory.entries.keyed("a:")) == {"a:1": ("ein", True)}


def test_changes_are_stored_completely_or_not_at_all(memory):
    write(memory.entries, entry("a:1", "one"))
    password = "password = hunter2-correct-horse"  # what the writer takes for a secret
    with pytest.raises(IntentRefused):
        memory.entries.change(lambda: EntryChanges([entry("a:2"), entry("a:3", password)], ["a:1"]))

    assert [one.id for one in list_entries(memory.entries)] == ["a:1"]


def test_a_planned_change_sees_the_latest_write_of_another_process(root):
    with jidomem.open(root, project="p") as one, jidomem.open(root, project="p") as other:
        numbers, keyed = [], one.entries.keyed("n")

        def count():
            number = keyed.read(lambda each: int(each.by_id["n"].content) if each.by_id else 0)
            numbers.append(number)
            return EntryChanges([entry("n", str(number + 1))])

        one.entries.change(count)
        write(other.entries, entry("n", "7"))
        one.entries.change(count)

        assert (numbers, [each.content for each in list_entries(other.entries)]) == ([0, 7], ["8"])


def test_a_redacted_entry_is_not_in_the_keyed_entries(memory):
    keyed = memory.entries.keyed("a:")
    result = write(memory.entries, entry("a:1", "the word is xyzzy-plugh"))
    write(memory.entries, entry("a:2", "harmless"))
    assert len(entries_of(keyed)) == 2

    plan = memory.maintenance.plan("p", result.metadata["iri"])
    memory.maintenance.redact(plan, agent="architect", reason="it slipped out")

    assert entries_of(keyed) == {"a:2": ("harmless", True)}


def test_entries_of_another_branch_are_in_the_keyed_entries_after_a_merge(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    with jidomem.open(one, project="p") as memory:
        for key in ("a:1", "a:2", "a:3"):
            write(memory.entries, entry(key, "before"))
    shutil.copytree(one, two, ignore=shutil.ignore_patterns("*.lock", "index"))
    with jidomem.open(two, project="p") as other, jidomem.open(one, project="p") as memory:
        keyed = memory.entries.keyed("a:")
        write(other.entries, entry("a:1", "theirs, the older one"))
        write(other.entries, entry("a:2", "edited there, removed here"))
        write(other.entries, entry("a:4", "new there"))
        write(memory.entries, entry("a:1", "ours, the newer one"))
        memory.entries.remove(["a:2"])
        assert len(entries_of(keyed)) == 2
        shutil.copytree(two / "projects", one / "projects", dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.lock"))

        merged = {
            "a:1": ("ours, the newer one", False),
            "a:2": ("edited there, removed here", False),
            "a:3": ("before", True),
            "a:4": ("new there", True),
        }
        assert entries_of(keyed) == entries_of(memory.entries.keyed("a:")) == merged
        write(memory.entries, entry("a:1", "both are replaced"))
        assert (
            entries_of(keyed)
            == entries_of(memory.entries.keyed("a:"))
            == {**merged, "a:1": ("both are replaced", False)}
        )


def test_rarely_read_keyed_entries_are_read_again_from_the_journal(memory, monkeypatch):
    monkeypatch.setattr("jidomem.read.conversations.WAITING", 3)
    keyed = memory.entries.keyed("a:")
    assert entries_of(keyed) == {}
    for number in range(8):
        write(memory.entries, entry(f"a:{number % 3}", f"{number}"))

    assert entries_of(keyed) == {"a:0": ("6", False), "a:1": ("7", False), "a:2": ("5", False)}
    write(memory.entries, entry("a:0", "last"))
    assert [*entries_of(keyed)] == ["a:2", "a:1", "a:0"]


KEYS = st.sampled_from(["a:1", "a:2", "a:3", "b:1"])
TURNS = st.lists(
    st.tuples(st.booleans(), st.lists(KEYS, max_size=3), st.lists(KEYS, max_size=2)), min_size=1, max_size=8
)


@settings(max_examples=8)
@given(turns=TURNS)
def test_the_keyed_entries_equal_the_stored_entries_of_all_writers(tmp_path_factory, turns):
    root = tmp_path_factory.mktemp("keyed")
    with jidomem.open(root, project="p") as one, jidomem.open(root, project="p") as other:
        following, model = one.entries.keyed("a:"), {}
        for number, (by_other, written, removed) in enumerate(turns):
            changes = EntryChanges([entry(key, f"{number} {place}") for place, key in enumerate(written)], removed)
            (other if by_other else one).entries.change(lambda now=changes: now)
            model |= {each.id: each.content for each in changes.stored}
            model = {key: text for key, text in model.items() if key not in removed}
            expected = {key: text for key, text in model.items() if key.startswith("a:")}

            assert {key: text for key, (text, _) in entries_of(following).items()} == expected
        fresh = other.entries.keyed("a:")
        assert entries_of(fresh) == entries_of(following)
        assert {each.id: each.content for each in list_entries(other.entries)} == model
