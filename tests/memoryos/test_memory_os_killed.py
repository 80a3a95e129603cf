"""What a kill leaves of an agent's tiers: each page in one place, and all that was to be done."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("memory_os_killed.py")
HELD = ["I work as a nurse. Always run the tests before a release.", "Which index do we use?"]


def run(folder, how, times):
    command = [sys.executable, SCRIPT, folder, how, str(times)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


# D064 D071 D107
def test_a_kill_before_any_change_leaves_each_page_in_one_place_and_nothing_undone(tmp_path, scale):
    if scale > 1:
        kills = run(tmp_path / "statements", "statements", max(1, 37 // scale))
    else:
        kills = run(tmp_path / "commits", "commits", 1)
    done = kills[-1]

    assert {kill["code"] for kill in kills} == {-9, 0}
    for kill in kills:
        asked = [query for query, _ in kill["left"]]
        assert asked in (HELD, sorted([*HELD, "What is for lunch?"])), kill
        assert [query for query, _ in kill["places"]] == asked, kill
        assert len([tier for _, tier in kill["places"] if tier == "mtm"]) <= 1, kill
        for name in ("facts", "told", "proposed"):
            assert (name, kill[name]) == (name, done[name]), kill
        assert kill["jobs"] == 0, kill
    assert done["proposed"] == [f"user ana: {fact}" for fact in done["facts"]]
    assert len(done["facts"]) == 2
    tiers = {tier for kill in kills for _, tier in kill["left"]}
    assert tiers == {"stm", "leaving", "mtm", "kept"}  # it was killed while a page was in each of them
    assert len(kills) > 20


def test_four_processes_that_are_killed_at_any_moment_lose_no_page_of_one_agent(tmp_path, scale):  # D109
    (after,) = run(tmp_path, "any", 3 * scale)

    asked = [query for query, _ in after["left"]]
    assert len(asked) == len(set(asked)) > 5
    assert {*after["said"]} <= {*asked}  # what was acknowledged is there; one more may be for each that was killed
    assert [query for query, _ in after["places"]] == asked
    assert {tier for _, tier in after["places"]} <= {"stm", "mtm", "kept"}
    assert after["jobs"] == 0
