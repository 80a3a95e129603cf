"""The governance benchmark: each scenario finds a broken memory out, and the three adapters answer or say why not."""

import math
import re
import sqlite3
import struct
import sys
from functools import partial
from pathlib import Path

import pytest

from bench.governance.__main__ import lines, measure
from bench.governance.figures import SMALL, Measured
from bench.governance.process import Process, system
from bench.governance.scenarios import SCENARIOS, run
from bench.governance.scenarios.erasure import VECTORS
from bench.governance.scenarios.keeping import ALARMS, CONTRADICTIONS, DUPLICATES
from bench.governance.scenarios.lost_writes import LOST, RATE, UNREADABLE
from bench.governance.scenarios.past import AS_OF, EXPLAINED, REPLACED, RESTORED
from bench.governance.scenarios.past import COMPLETE as PROVENANCE
from bench.governance.scenarios.staleness import CHANGED, EXPIRED
from bench.governance.scenarios.staleness import REPLACED as OUTLIVED
from bench.governance.systems import SYSTEMS
from bench.governance.vectors import traces, vector

ROOT = Path(__file__).parents[2]
UNSUPPORTED = {
    "jidomem": set(),
    "server-memory": {
        CONTRADICTIONS,
        ALARMS,
        EXPIRED,
        CHANGED,
        RESTORED,
        EXPLAINED,
        AS_OF,
        PROVENANCE,
        REPLACED,
        VECTORS,
    },
    "langgraph-store": {CONTRADICTIONS, ALARMS, CHANGED, RESTORED, EXPLAINED, AS_OF, REPLACED},
}
if not hasattr(sqlite3.Connection, "enable_load_extension"):
    UNSUPPORTED["langgraph-store"].add(VECTORS)


@pytest.fixture(autouse=True)
def reachable(monkeypatch):
    """The processes find the broken memories, too."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))


def found_by(scenario, where, folder):
    """What *scenario* found; in this process, unless processes are what it is about."""
    folder.mkdir(parents=True)
    open_ = partial(Process, where) if scenario == "lost_writes" else system(where)
    found = {found.measure: found for found in run(scenario, open_, folder, SMALL)}
    assert tuple(found) == SCENARIOS[scenario][1]
    return found


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_each_scenario_finds_a_careless_memory_out(scenario, tmp_path):
    found = found_by(scenario, "careless_memories:Careless", tmp_path / "own")

    for each in found.keys() - {ALARMS, RATE, UNREADABLE}:
        (value,), (of,) = found[each].values, found[each].of
        worst = 0 if each.better == "more" else of
        assert value == worst if each is not LOST else 0 < value <= worst, each.words


def test_a_memory_that_refuses_all_it_has_heard_of_is_found_out_by_its_false_alarms(tmp_path):
    found = found_by("contradictions", "careless_memories:Alarmist", tmp_path / "own")

    assert found[CONTRADICTIONS].values == [8]
    assert found[ALARMS].values[0] > 8


def test_a_memory_whose_lock_outlives_a_killed_process_is_found_out(tmp_path):
    found = found_by("lost_writes", "careless_memories:Locked", tmp_path / "own")

    assert (found[UNREADABLE].values, found[UNREADABLE].of) == ([1], [1])
    assert found[LOST].values == found[LOST].of


def test_a_memory_whose_vectors_are_not_seen_is_said_to_be_so_and_not_to_have_erased_them(tmp_path):
    with pytest.raises(ValueError, match="2 of 4 are in no file before they are erased"):
        found_by("erasure", "careless_memories:Scrambling", tmp_path / "own")


@pytest.mark.parametrize(("kind", "scale"), [("f", 1), ("f", None), ("d", 1), ("e", None), ("b", 1)])
def test_a_vector_is_told_in_what_is_left_of_it_however_it_was_written(kind, scale):
    secret = "0123456789abcdef01234567"
    numbers = vector(f"the key is {secret}, they say")
    length = 1 if scale else math.sqrt(math.fsum(each * each for each in numbers))

    written = b"".join(struct.pack(f"<{kind}", round(each) if kind == "b" else each / length) for each in numbers)

    assert any(each in written[len(written) // 2 :] for each in traces(secret))
    assert not any(each in written for each in traces(secret[::-1]))


@pytest.mark.parametrize("name", SYSTEMS)
def test_an_adapter_answers_each_question_or_says_why_its_system_does_not(name, tmp_path):
    if missing := system(SYSTEMS[name]).missing():
        pytest.skip(f"{name} is not installed: {missing}")

    found = {}
    for scenario in SCENARIOS:
        found |= found_by(scenario, SYSTEMS[name], tmp_path / scenario)

    assert {measure for measure, each in found.items() if each.unsupported} == UNSUPPORTED[name]
    assert all("(" in each.unsupported for each in found.values() if each.unsupported)  # where it is documented
    assert found[RATE].values[0] > 0
    if name == "jidomem":
        best = {measure: 0 if measure.better == "fewer" else each.of[0] for measure, each in found.items() if each.of}
        best |= {CONTRADICTIONS: 4, ALARMS: 4}  # it reads no meaning: other words on one topic are another statement
        assert {measure: found[measure].values[0] for measure in best} == best


def test_the_table_says_unsupported_with_the_reason_and_shows_rounds_by_their_spread():
    found = {
        LOST: {"a": Measured(LOST, [3, 0, 9], [40, 40, 41]), "b": Measured(LOST, [0], [40])},
        AS_OF: {"a": Measured(AS_OF, unsupported="no versions (README)"), "b": Measured(AS_OF, [4], [6])},
    }

    shown = list(lines(found, ["a", "b"]))

    assert shown[2].endswith("| fewer | 3 of 40 (0-9) | 0 of 40 |")
    assert shown[3].endswith("| more | unsupported | 4 of 6 |")
    assert shown[-1] == "- a, as-of: unsupported; no versions (README)."


def test_a_memory_that_fails_says_so_in_its_cell_and_stops_no_other(tmp_path, capsys):
    wheres = ["careless_memories:Failing", "careless_memories:Careless"]

    found = measure(wheres, ["duplicates"], SMALL, tmp_path)

    assert found[DUPLICATES]["failing"].failed == "OSError: no space is left"
    assert list(lines(found, ["failing", "careless"]))[2].endswith("| **broke off** | 16 of 16 |")
    assert "no space is left" in capsys.readouterr().err


def test_the_adapter_of_the_readme_is_measured(tmp_path, monkeypatch):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "bench/governance/README.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "my_module.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))

    found = {}
    for scenario in SCENARIOS.keys() - {"lost_writes"}:
        found |= found_by(scenario, "my_module:Folder", tmp_path / scenario)

    assert {measure for measure, each in found.items() if not each.unsupported} == {DUPLICATES, OUTLIVED}
    assert (found[DUPLICATES].values, found[DUPLICATES].of) == ([0], [16])
    assert found[OUTLIVED].values == [0]
    assert found[AS_OF].unsupported == "a file has no versions (README)"
    assert found[RESTORED].unsupported == "its adapter has no `undo_to`"
    sys.modules.pop("my_module")
