"""Two curators settle one conflict on two clones: opposite judgements are reported, and settled by review."""

import pytest
from click.testing import CliRunner
from conftest import decision
from test_git_branches import Branch, git, merge

from jidomem.check.report import SUCCESSORS
from jidomem.curation.review_queue import queue
from jidomem.errors import InvalidRequest
from jidomem.index.projection import OPPOSITE, STALE
from jidomem.runtime.location import init
from jidomem_cli.main import cli


def edit(memory, item):
    """Revise *item* and return the IRI of its successor."""
    return memory.writer.revise("p", item, changes={"summary": f"Use {item[-3:]} and more"}, reason="r").iri


X, Y = "Use SQLite", "Use PostgreSQL"
ITEMS = {name: f"https://jido.ai/memory/01900000-0000-7000-8000-000000000f0{n}" for n, name in enumerate("XY")}
ACTIONS = {
    "accept": lambda memory, a, b: memory.writer.settle("p", a, "accept", other=b, reason="r"),
    "reject": lambda memory, a, b: memory.writer.settle("p", a, "reject", other=b, reason="r"),
    "supersede": lambda memory, a, b: memory.writer.settle("p", a, "supersede", other=b, reason="r"),
    "keep both": lambda memory, a, b: memory.writer.settle(
        "p", a, "keep-both", other=b, reason="r", changes={"about": [f"src/{a[-3:]}"]}
    ),
    "withdraw": lambda memory, a, b: memory.writer.invalidate("p", a, reason="it is wrong"),
    "edit": lambda memory, a, b: memory.writer.revise("p", a, changes={"summary": f"Use {a[-3:]}"}, reason="r"),
    "edit and accept": lambda memory, a, b: memory.writer.settle(
        "p", edit(memory, a), "accept", other=b, reason="its newer version"
    ),
    "edit and edit": lambda memory, a, b: edit(memory, edit(memory, a)),
    "edit, withdraw and undo": lambda memory, a, b: memory.writer.undo(
        "p", memory.writer.invalidate("p", edit(memory, a), reason="it is wrong").iri, reason="it is right"
    ),
    "edit and withdraw": lambda memory, a, b: memory.writer.invalidate("p", edit(memory, a), reason="it is wrong"),
}
#: The actions on X or Y on the two clones -> the kinds of conflict that are reported.
TABLE = {
    ("accept X", "accept X"): set(),
    ("accept X", "accept Y"): {OPPOSITE},
    ("accept X", "reject X"): {OPPOSITE},
    ("accept X", "reject Y"): set(),
    ("accept X", "supersede X"): {STALE},
    ("accept X", "supersede Y"): {STALE},
    ("accept X", "keep both X"): {OPPOSITE},
    ("accept X", "keep both Y"): {STALE},
    ("accept X", "withdraw X"): {OPPOSITE},
    ("accept X", "withdraw Y"): set(),
    ("accept X", "edit X"): set(),
    ("accept X", "edit Y"): {STALE, "overlapping_decision"},
    ("supersede X", "supersede X"): {STALE, "duplicate", "overlapping_decision"},
    ("supersede X", "supersede Y"): {STALE, "overlapping_decision"},
    ("supersede X", "withdraw X"): {STALE},
    ("supersede X", "withdraw Y"): {STALE},
    ("supersede X", "edit X"): {STALE, "overlapping_decision"},
    ("supersede X", "keep both Y"): {STALE, "overlapping_decision"},
    ("keep both X", "keep both Y"): {"overlapping_decision"},
    ("keep both X", "withdraw X"): {STALE},
    ("keep both X", "withdraw Y"): {OPPOSITE},
    ("withdraw X", "withdraw X"): set(),
    ("withdraw X", "withdraw Y"): set(),
    ("accept X", "edit and withdraw X"): {OPPOSITE},
    ("accept Y", "edit and withdraw X"): set(),
    ("accept X", "edit and accept X"): set(),
    ("edit and accept X", "edit and withdraw X"): {OPPOSITE, STALE},
    ("edit and accept X", "withdraw X"): {OPPOSITE, STALE},
    ("keep both Y", "edit and withdraw X"): {OPPOSITE},
    ("withdraw X", "edit X"): {STALE, "overlapping_decision"},
    ("edit and withdraw X", "edit X"): {STALE, "overlapping_decision"},
    ("edit and withdraw X", "edit and edit X"): {STALE, "overlapping_decision"},
    ("edit and withdraw X", "edit and withdraw X"): set(),
    ("edit, withdraw and undo X", "edit X"): {STALE, "overlapping_decision"},
    ("edit, withdraw and undo X", "edit and withdraw X"): {STALE, "overlapping_decision"},
}


def build(folder):
    """Make two clones, left and right, of a root in which X and Y, on one topic, are active."""
    (folder / "left").mkdir(parents=True)
    git(folder / "left", "init", "-q")
    init(folder / "left", "p")
    with (folder / "left" / ".jidomem" / "config.toml").open("a") as config:
        config.write('\n[conflicts]\ndecision = "warn"\n')
    left = Branch(folder / "left", 0)
    for second, (name, summary) in enumerate((("X", X), ("Y", Y))):
        with left.open(second) as memory:
            memory.writer.submit_intent("p", decision(iri=ITEMS[name], summary=summary, topic="store"))
    left.keep("base")
    git(folder, "clone", "-q", "left", "right")


@pytest.fixture
def clones(tmp_path, copy_built):
    """Return the two clones, and the IRIs of X and Y."""
    folder = copy_built(build, tmp_path / "clones")
    return Branch(folder / "left", 1), Branch(folder / "right", 2), ITEMS


def act(branch, second, action, items):
    verb, _, name = action.rpartition(" ")
    with branch.open(second) as memory:
        ACTIONS[verb](memory, items[name], items["Y" if name == "X" else "X"])


def kinds(memory, **moments):
    return {row["kind"] for row in memory.reader.ask("conflicts", project="p", **moments)}


def run(branch, *args):
    return CliRunner().invoke(cli, ["--root", str(branch.root), *args])


@pytest.mark.parametrize(("left_action", "right_action"), [*TABLE])
def test_opposite_judgements_of_two_curators_are_reported_after_a_merge(clones, left_action, right_action):
    left, right, items = clones
    act(left, 100, left_action, items)
    act(right, 101, right_action, items)
    merge(left, right)

    with left.open(200) as memory:
        before = kinds(memory, as_of=left.commits()[1].recorded_at)
        conflicts = kinds(memory)
        pending = queue(memory.reader, "p", memory.sources.now())

    assert (before, conflicts) == ({"overlapping_decision"}, TABLE[left_action, right_action])
    assert {one.tier for one in pending} == ({1} if conflicts else set())
    is_same = "duplicate" in conflicts  # only a warning that one of the two is enough
    result = run(left, "check", "--format", "json")
    assert result.exit_code == (1 if conflicts and not is_same else 0)
    assert (STALE in conflicts) <= (SUCCESSORS in result.output)


@pytest.mark.parametrize("first", ["accept X", "keep both Y"])
@pytest.mark.parametrize("second", ["withdraw X", "edit and withdraw X"])
def test_a_curator_withdraws_a_memory_after_its_settlement_without_a_conflict(clones, first, second):
    left, _, items = clones
    act(left, 100, first, items)
    act(left, 101, second, items)

    with left.open(200) as memory:
        assert kinds(memory) == set()


@pytest.mark.parametrize(
    ("right_action", "action", "active"),
    [
        ("accept Y", "accept", {X}),
        ("accept Y", "reject", {Y}),
        ("withdraw X", "accept", {X}),
        ("withdraw X", "reject", {Y}),
        ("keep both X", "accept", {X}),
        ("keep both X", "reject", {X, Y}),
    ],
)
def test_review_settles_opposite_judgements(clones, right_action, action, active):
    left, right, items = clones
    act(left, 100, "accept X", items)
    act(right, 101, right_action, items)
    merge(left, right)
    with left.open(200) as memory:
        (one,) = queue(memory.reader, "p", memory.sources.now())
        left_item, right_item = sorted((one.item, one.other))  # the ids of the left clone come first
        assert one.actions == ("accept", "reject")
        with pytest.raises(InvalidRequest, match="judge one memory differently"):
            memory.writer.settle("p", left_item, "supersede", other=right_item, reason="r")
        memory.writer.settle("p", left_item, action, other=right_item, reason="looked at again")
        after = {row["summary"] for row in memory.reader.ask("decisions", project="p")}
        assert (after, kinds(memory), queue(memory.reader, "p", memory.sources.now())) == (active, set(), [])
    assert run(left, "check").exit_code == 0


@pytest.mark.parametrize(("action", "is_active"), [("accept", True), ("reject", False)])
def test_review_settles_an_edit_against_the_withdrawal_of_the_other_edit(clones, action, is_active):
    left, right, items = clones
    act(left, 100, "withdraw Y", items)
    act(left, 101, "edit and withdraw X", items)
    act(right, 102, "edit X", items)
    merge(left, right)
    with left.open(200) as memory:
        (one,) = queue(memory.reader, "p", memory.sources.now())
        withdrawal, edited = sorted((one.item, one.other))  # the ids of the left clone come first
        memory.writer.settle("p", edited, action, other=withdrawal, reason="looked at again")
        assert [row["decision"] for row in memory.reader.ask("decisions", project="p")] == [edited] * is_active
        assert (kinds(memory), queue(memory.reader, "p", memory.sources.now())) == (set(), [])
    assert run(left, "check").exit_code == 0


def test_a_withdrawal_after_the_merge_of_two_edits_settles_them(clones):
    left, right, items = clones
    act(left, 100, "withdraw Y", items)
    act(left, 101, "edit X", items)
    act(right, 102, "edit X", items)
    merge(left, right)
    with left.open(200) as memory:
        one, other = (row["decision"] for row in memory.reader.ask("decisions", project="p"))
        memory.writer.invalidate("p", one, reason="the other one holds")
        edit(memory, other)
        assert kinds(memory) == set()
    assert run(left, "check").exit_code == 0
