"""Entries that are changed together, taken back, and held at hand by the beginning of their ids."""

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


def held(keyed):
    """What is at hand: content, and whether it is the first under its id."""
    return keyed.read(lambda each: {one.id: (one.content, one.since == one.recorded) for one in each.by_id.values()})


def test_what_is_taken_back_is_found_nowhere_but_in_the_history(memory):
    write(memory.entries, entry("plan", "we ship on Friday"))
    then = memory.journal.head(HISTORY).recorded_at

    assert memory.entries.remove(["plan", "nothing", "plan"]) == 1

    assert list_entries(memory.entries) == []
    assert recall(memory.entries, agent_id="architect", query="ship").entries == []
    assert memory.recall("ship", kinds=["entry"]).entries == []
    assert [one.content for one in memory.entries.list_entries({"as_of": then})] == ["we ship on Friday"]
    at_once = recall((memory.entries, {"as_of": then}), agent_id="architect", query="ship")
    assert [one.content for one in at_once.entries] == ["we ship on Friday"]


def test_removing_nothing_commits_nothing(memory):
    write(memory.entries, entry("plan"))
    before = memory.journal.head(HISTORY)

    assert memory.entries.remove(["other"]) == 0
    assert memory.journal.head(HISTORY) == before


def test_what_was_taken_back_can_be_written_again_and_is_then_new(memory):
    keyed = memory.entries.keyed("a:")
    write(memory.entries, entry("a:1", "one"))
    write(memory.entries, entry("a:1", "uno"))
    assert held(keyed) == {"a:1": ("uno", False)}

    memory.entries.remove(["a:1"])
    assert held(keyed) == {}
    write(memory.entries, entry("a:1", "ein"))

    assert held(keyed) == held(memory.entries.keyed("a:")) == {"a:1": ("ein", True)}


def test_changes_are_kept_whole_or_not_at_all(memory):
    write(memory.entries, entry("a:1", "one"))
    password = "password = hunter2-correct-horse"  # what the writer takes for a secret
    with pytest.raises(IntentRefused):
        memory.entries.change(lambda: EntryChanges([entry("a:2"), entry("a:3", password)], ["a:1"]))

    assert [one.id for one in list_entries(memory.entries)] == ["a:1"]


def test_a_plan_sees_what_another_process_kept_a_moment_ago(root):
    with jidomem.open(root, project="p") as one, jidomem.open(root, project="p") as other:
        seen, keyed = [], one.entries.keyed("n")

        def count():
            number = keyed.read(lambda each: int(each.by_id["n"].content) if each.by_id else 0)
            seen.append(number)
            return EntryChanges([entry("n", str(number + 1))])

        one.entries.change(count)
        write(other.entries, entry("n", "7"))
        one.entries.change(count)

        assert (seen, [each.content for each in list_entries(other.entries)]) == ([0, 7], ["8"])


def test_of_an_entry_that_was_redacted_nothing_is_at_hand(memory):
    keyed = memory.entries.keyed("a:")
    kept = write(memory.entries, entry("a:1", "the word is xyzzy-plugh"))
    write(memory.entries, entry("a:2", "harmless"))
    assert len(held(keyed)) == 2

    plan = memory.keeper.plan("p", kept.metadata["iri"])
    memory.keeper.redact(plan, agent="architect", reason="it slipped out")

    assert held(keyed) == {"a:2": ("harmless", True)}


def test_what_another_branch_kept_is_at_hand_once_it_is_merged(tmp_path):
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
        assert len(held(keyed)) == 2
        shutil.copytree(two / "projects", one / "projects", dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.lock"))

        merged = {
            "a:1": ("ours, the newer one", False),
            "a:2": ("edited there, removed here", False),
            "a:3": ("before", True),
            "a:4": ("new there", True),
        }
        assert held(keyed) == held(memory.entries.keyed("a:")) == merged
        write(memory.entries, entry("a:1", "both are replaced"))
        assert held(keyed) == held(memory.entries.keyed("a:")) == {**merged, "a:1": ("both are replaced", False)}


def test_what_nobody_asked_for_long_is_read_anew(memory, monkeypatch):
    monkeypatch.setattr("jidomem.read.conversations.WAITING", 3)
    keyed = memory.entries.keyed("a:")
    assert held(keyed) == {}
    for number in range(8):
        write(memory.entries, entry(f"a:{number % 3}", f"{number}"))

    assert held(keyed) == {"a:0": ("6", False), "a:1": ("7", False), "a:2": ("5", False)}
    write(memory.entries, entry("a:0", "last"))
    assert [*held(keyed)] == ["a:2", "a:1", "a:0"]


KEYS = st.sampled_from(["a:1", "a:2", "a:3", "b:1"])
TURNS = st.lists(
    st.tuples(st.booleans(), st.lists(KEYS, max_size=3), st.lists(KEYS, max_size=2)), min_size=1, max_size=8
)


@settings(max_examples=8)
@given(turns=TURNS)
def test_what_is_at_hand_is_what_is_kept_whoever_wrote_it(tmp_path_factory, turns):
    root = tmp_path_factory.mktemp("keyed")
    with jidomem.open(root, project="p") as one, jidomem.open(root, project="p") as other:
        following, model = one.entries.keyed("a:"), {}
        for number, (by_other, kept, removed) in enumerate(turns):
            changes = EntryChanges([entry(key, f"{number} {place}") for place, key in enumerate(kept)], removed)
            (other if by_other else one).entries.change(lambda now=changes: now)
            model |= {each.id: each.content for each in changes.kept}
            model = {key: text for key, text in model.items() if key not in removed}
            expected = {key: text for key, text in model.items() if key.startswith("a:")}

            assert {key: text for key, (text, _) in held(following).items()} == expected
        fresh = other.entries.keyed("a:")
        assert held(fresh) == held(following)
        assert {each.id: each.content for each in list_entries(other.entries)} == model
