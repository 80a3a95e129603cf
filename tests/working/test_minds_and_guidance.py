"""The agent architectures and the guidance in docs/working-memory.md."""

import re
from pathlib import Path

import pytest

from jidomem.working import WORLD_KEYS, get, is_list, is_map, tasks, tasks_open, world

PAGE = (Path(__file__).parents[2] / "docs" / "working-memory.md").read_text("utf-8")


def section(title):
    """Return the text below a heading of the page."""
    return re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)[1]


def run_section(title, capsys):
    """Return the global names and the output of the first program of a section."""
    names = {}
    exec(re.search(r"^```python\n(.*?)^```$", section(title), re.DOTALL | re.MULTILINE)[1], names)
    return names, capsys.readouterr().out


def test_beliefs_desires_and_intentions_are_stored_in_world_spaces_and_tasks(capsys):
    names, output = run_section("Beliefs, desires, intentions", capsys)
    memory = get(names["agent"])

    assert memory.world()["facts"] == {"door": "closed", "key": "under the mat"}  # A147
    assert memory.spaces.desires.data["goals"] == {"be inside", "stay dry"}  # A022
    assert memory.spaces.plans.data == {"be inside": ["fetch the key", "open the door"]}
    assert [(task["text"], task["status"]) for task in memory.tasks()] == [
        ("fetch the key", "done"),
        ("open the door", "open"),
    ]
    assert output == "open the door ['be inside', 'stay dry']\n"


def test_beliefs_desires_and_intentions_fit_into_keys_of_the_world(capsys):
    names, output = run_section("The same, in the world alone", capsys)

    assert set(get(names["agent"]).spaces) == {"tasks", "world"}  # A150
    assert world(names["agent"]).keys() == {"facts", "desires", "plans"}
    assert [task["text"] for task in tasks_open(names["agent"])] == ["fetch the key"]
    assert output == "fetch the key in hand\n"


def test_a_blackboard_is_three_spaces_with_separate_revisions(capsys):
    names, output = run_section("A blackboard", capsys)
    spaces = get(names["agent"]).spaces

    assert (is_map(spaces.hypothesis), is_list(spaces.evidence), is_map(spaces.solution)) == (True, True, True)  # A148
    assert spaces.hypothesis.data["h1"]["confidence"] == 0.9
    assert [space.rev for space in (spaces.hypothesis, spaces.evidence, spaces.solution, spaces.world)] == [2, 1, 1, 0]
    assert output == "2 1 {'answer': 'expire the cache on every update'}\n"


def test_a_reasoning_loop_stores_scratch_tool_state_pointers_and_tasks(capsys):
    names, output = run_section("Reason and act", capsys)

    assert world(names["agent"]).keys() == {"scratch", "tool_state", "pointers"}  # A149
    assert [task["status"] for task in tasks(names["agent"])] == ["done", "done"]
    assert tasks_open(names["agent"]) == []
    assert output == "['done', 'done'] 21\n"


def test_the_page_distinguishes_world_keys_from_custom_spaces():
    text = " ".join(section("A world key or a space of its own?").split())

    assert "Use a **world key** for a value that is read and replaced with the rest" in text  # A151
    assert "Use a **custom space** for a part with its own revision" in text


@pytest.mark.parametrize(
    ("notion", "place"),
    [
        ("profile", '`world["profile"]`'),
        ("relationships", "a world key, or a space `relationships`"),
        ("attention", "a world key, or a space `attention`"),
        ("plans", "`tasks`, or a space `plans`"),
        ("environment", '`world["facts"]`'),
        ("capabilities", "not memory"),
        ("mailbox", "not memory"),
    ],
)
def test_the_page_names_the_place_of_other_notions(notion, place):
    assert f"| {notion} | {place}" in section("A world key or a space of its own?")  # A152


def test_the_page_lists_the_usual_keys_with_their_constants():
    for key in WORLD_KEYS:
        assert f"| `{key}` | `{key.upper()}` |" in PAGE  # A085


def test_the_page_names_the_contents_of_thread_world_and_tasks():
    assert "Raw events → thread, derived understanding → world, next actions → tasks." in PAGE  # A155


def test_the_page_describes_ways_to_limit_the_size_of_a_memory():
    text = " ".join(section("Keep it small").split())

    assert "Put **summaries and references** into it, not blobs" in text  # A156
    assert 'its name into `world["pointers"]`' in text
    assert "Limits are off until you set them" in text


def test_custom_spaces_generic_operations_and_wrappers_have_their_own_test_modules():
    folder = Path(__file__).parent
    for name, calls in {
        "test_named_spaces.py": ("ensure_space", "space_put", "space_delete"),
        "test_keys_and_items.py": ("put_in_space", "append_to_space", "update_in_space"),
        "test_world_and_tasks.py": ("world_put", "tasks_add", "tasks_reorder"),
    }.items():
        text = (folder / name).read_text("utf-8")
        assert all(f"{call}(" in text for call in calls), name  # A153
