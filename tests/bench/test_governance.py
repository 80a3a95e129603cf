"""The governance benchmark: each scenario detects a faulty memory system; each adapter answers or states why not."""

import math
import re
import sqlite3
import struct
import sys
from functools import partial
from pathlib import Path

import pytest

from bench.governance.__main__ import measure, table_lines
from bench.governance.figures import QUICK, Result
from bench.governance.process import Process, system
from bench.governance.scenarios import SCENARIOS, run
from bench.governance.scenarios.consistency import ALARMS, CONTRADICTIONS, DUPLICATES
from bench.governance.scenarios.erasure import VECTORS
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
def importable(monkeypatch):
    """Make the faulty memory systems importable in child processes."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))


def results_of(scenario, location, folder):
    """The results of *scenario*, run in this process unless it measures processes."""
    folder.mkdir(parents=True)
    open_system = partial(Process, location) if scenario == "lost_writes" else system(location)
    results = {results.measure: results for results in run(scenario, open_system, folder, QUICK)}
    assert tuple(results) == SCENARIOS[scenario][1]
    return results


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_each_scenario_detects_the_faults_of_a_careless_memory(scenario, tmp_path):
    results = results_of(scenario, "careless_memories:Careless", tmp_path / "own")

    for each in results.keys() - {ALARMS, RATE, UNREADABLE}:
        (value,), (of,) = results[each].values, results[each].totals
        worst = 0 if each.better == "more" else of
        assert value == worst if each is not LOST else 0 < value <= worst, each.description


def test_refusals_of_valid_facts_are_counted_as_false_alarms(tmp_path):
    results = results_of("contradictions", "careless_memories:Alarmist", tmp_path / "own")

    assert results[CONTRADICTIONS].values == [8]
    assert results[ALARMS].values[0] > 8


def test_a_memory_with_a_stale_lock_is_counted_as_unreadable(tmp_path):
    results = results_of("lost_writes", "careless_memories:Locked", tmp_path / "own")

    assert (results[UNREADABLE].values, results[UNREADABLE].totals) == ([1], [1])
    assert results[LOST].values == results[LOST].totals


def test_vectors_that_are_in_no_file_before_erasure_are_an_error(tmp_path):
    with pytest.raises(ValueError, match="2 of 4 are in no file before they are erased"):
        results_of("erasure", "careless_memories:Scrambling", tmp_path / "own")


@pytest.mark.parametrize(("kind", "scale"), [("f", 1), ("f", None), ("d", 1), ("e", None), ("b", 1)])
def test_traces_of_a_vector_are_found_in_any_number_format(kind, scale):
    secret = "0123456789abcdef01234567"
    numbers = vector(f"the key is {secret}, they say")
    length = 1 if scale else math.sqrt(math.fsum(each * each for each in numbers))

    written = b"".join(struct.pack(f"<{kind}", round(each) if kind == "b" else each / length) for each in numbers)

    assert any(each in written[len(written) // 2 :] for each in traces(secret))
    assert not any(each in written for each in traces(secret[::-1]))


@pytest.mark.parametrize("name", SYSTEMS)
def test_an_adapter_answers_each_measure_or_is_unsupported_with_a_reason(name, tmp_path):
    if missing := system(SYSTEMS[name]).missing():
        pytest.skip(f"{name} is not installed: {missing}")

    results = {}
    for scenario in SCENARIOS:
        results |= results_of(scenario, SYSTEMS[name], tmp_path / scenario)

    assert {measure for measure, each in results.items() if each.unsupported} == UNSUPPORTED[name]
    assert all("(" in each.unsupported for each in results.values() if each.unsupported)  # where it is documented
    assert results[RATE].values[0] > 0
    if name == "jidomem":
        best = {
            measure: 0 if measure.better == "fewer" else each.totals[0]
            for measure, each in results.items()
            if each.totals
        }
        best |= {CONTRADICTIONS: 4, ALARMS: 4}  # it reads no meaning: other words on one topic are another statement
        assert {measure: results[measure].values[0] for measure in best} == best


def test_the_table_shows_unsupported_measures_with_reasons_and_rounds_with_spread():
    results = {
        LOST: {"a": Result(LOST, [3, 0, 9], [40, 40, 41]), "b": Result(LOST, [0], [40])},
        AS_OF: {"a": Result(AS_OF, unsupported="no versions (README)"), "b": Result(AS_OF, [4], [6])},
    }

    table = list(table_lines(results, ["a", "b"]))

    assert table[2].endswith("| fewer | 3 of 40 (0-9) | 0 of 40 |")
    assert table[3].endswith("| more | unsupported | 4 of 6 |")
    assert table[-1] == "- a, as-of: unsupported; no versions (README)."


def test_a_failing_memory_is_shown_in_its_cell_and_the_others_are_measured(tmp_path, capsys):
    locations = ["careless_memories:Failing", "careless_memories:Careless"]

    results = measure(locations, ["duplicates"], QUICK, tmp_path)

    assert results[DUPLICATES]["failing"].failed == "OSError: no space is left"
    assert list(table_lines(results, ["failing", "careless"]))[2].endswith("| **failed** | 16 of 16 |")
    assert "no space is left" in capsys.readouterr().err


def test_the_adapter_of_the_readme_is_measured(tmp_path, monkeypatch):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "bench/governance/README.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "my_module.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))

    results = {}
    for scenario in SCENARIOS.keys() - {"lost_writes"}:
        results |= results_of(scenario, "my_module:Folder", tmp_path / scenario)

    assert {measure for measure, each in results.items() if not each.unsupported} == {DUPLICATES, OUTLIVED}
    assert (results[DUPLICATES].values, results[DUPLICATES].totals) == ([0], [16])
    assert results[OUTLIVED].values == [0]
    assert results[AS_OF].unsupported == "a file has no versions (README)"
    assert results[RESTORED].unsupported == "its adapter has no `undo_to`"
    sys.modules.pop("my_module")
