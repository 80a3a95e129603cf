"""The tiers of an agent after a kill: each page is in one place, and no job is lost."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("memory_os_killed.py")
QUERIES = ["I work as a nurse. Always run the tests before a release.", "Which index do we use?"]


def run(folder, mode, times):
    command = [sys.executable, SCRIPT, folder, mode, str(times)]
    completed = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in completed.stdout.splitlines()]


# D064 D071 D107
def test_an_agent_killed_before_any_change_keeps_each_page_in_one_place_and_completes_its_jobs(tmp_path, scale):
    if scale > 1:
        kills = run(tmp_path / "statements", "statements", max(1, 37 // scale))
    else:
        kills = run(tmp_path / "commits", "commits", 1)
    complete = kills[-1]

    assert {kill["code"] for kill in kills} == {-9, 0}
    for kill in kills:
        queries = [query for query, _ in kill["left"]]
        assert queries in (QUERIES, sorted([*QUERIES, "What is for lunch?"])), kill
        assert [query for query, _ in kill["places"]] == queries, kill
        assert len([tier for _, tier in kill["places"] if tier == "mtm"]) <= 1, kill
        for name in ("facts", "told", "proposed"):
            assert (name, kill[name]) == (name, complete[name]), kill
        assert kill["jobs"] == 0, kill
    assert complete["proposed"] == [f"user ana: {fact}" for fact in complete["facts"]]
    assert len(complete["facts"]) == 2
    tiers = {tier for kill in kills for _, tier in kill["left"]}
    assert tiers == {"stm", "leaving", "mtm", "kept"}  # each tier had a page at some kill
    assert len(kills) > 20


def test_four_processes_killed_at_random_moments_lose_no_acknowledged_page(tmp_path, scale):  # D109
    (state,) = run(tmp_path, "any", 3 * scale)

    queries = [query for query, _ in state["left"]]
    assert len(queries) == len(set(queries)) > 5
    assert {*state["said"]} <= {*queries}  # each kill may leave one unacknowledged page
    assert [query for query, _ in state["places"]] == queries
    assert {tier for _, tier in state["places"]} <= {"stm", "mtm", "kept"}
    assert state["jobs"] == 0
