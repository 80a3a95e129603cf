"""The harness of the benchmarks: alternating runs, spreads, one table, and the context recorded with each figure."""

import json
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

from bench import harness
from bench.harness import Options, Row, Spread, time_sides

ROOT = Path(__file__).parent.parent.parent


def test_sides_alternate_and_every_second_round_is_reversed():
    order = []

    times = time_sides({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, rounds=2)

    assert "".join(order) == "ab" + "ab" + "ba"
    assert {name: len(durations) for name, durations in times.items()} == {"a": 2, "b": 2}


def test_a_ratio_has_the_medians_and_the_spread_of_rounds():
    ratio = Spread.ratio([2.0, 4.0, 6.0], [1.0, 1.0, 2.0])

    assert (ratio.median, ratio.low, ratio.high) == (4.0, 2.0, 4.0)
    assert Spread.of([3.0]) == Spread(3.0, 3.0, 3.0)


def test_a_run_prints_rows_with_commands_and_writes_machine_date_and_commit(tmp_path, capsys):
    received = []

    def rows(options: Options):
        received.append(options)
        yield Row("a | b", "2 ms", "1 ms", is_met=True, figures={"ms": [1.0]})
        yield Row("c", "-", "1 ms", is_met=False)

    assert harness.run({"bench.x": rows}, Namespace(quick=True, memories=7, rounds=None, json=tmp_path / "figures"))

    printed = capsys.readouterr().out.splitlines()
    assert printed[2] == "| a \\| b | 2 ms | 1 ms | - | yes | `python -m bench.x --memories 7 --quick` |"
    assert "**no**" in printed[3]
    report = json.loads((tmp_path / "figures").read_text())
    assert {"commit", "date", "command", "machine", "rows", "quick"} <= set(report)
    assert {"cpu", "cores", "memory_gb", "python", "packages", "file_system"} <= set(report["machine"])
    assert report["rows"][0]["figures"] == {"ms": [1.0]}
    assert (received[0].memories, received[0].quick) == (7, True)
    assert not received[0].folder.exists()


def test_the_quick_run_of_one_benchmark_prints_its_table(tmp_path):
    command = [sys.executable, "-m", "bench", "--quick", "--only", "startup", "--memories", "20", "--rounds", "1"]

    environment = {"TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin", "JIDOMEM_EMBEDDER": "none"}

    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)

    assert result.returncode == 0, result.stderr
    assert [line.split(" | ")[0] for line in result.stdout.splitlines()[2:]] == [
        "| jidomem --help",
        "| jidomem guard, 20 memories, a file with 50 governing memories",
        "| jidomem guard, 20 memories, a file with none",
        "| jidomem ask, 20 memories",
        "| jidomem governing, 20 memories",
        "| jidomem remember, 20 memories",
    ]


def test_each_benchmark_has_its_own_folder(capsys):
    def rows(options: Options):
        (options.folder / "mine").mkdir()
        yield Row("made", "-", "1 ms")

    assert harness.run({"bench.x": rows, "bench.y": rows}, Namespace(quick=True, memories=1, rounds=1, json=None))
    assert capsys.readouterr().out.count("| made |") == 2


def test_a_failed_benchmark_is_reported_and_the_others_run(tmp_path, capsys):
    def broken(options: Options):
        yield Row("first", "-", "1 ms")
        raise ValueError("no such disk")

    is_complete = harness.run(
        {"bench.x": broken, "bench.y": lambda options: [Row("second", "-", "2 ms")]},
        Namespace(quick=False, memories=1, rounds=1, json=tmp_path / "figures.json"),
    )

    assert not is_complete
    assert [row["label"] for row in json.loads((tmp_path / "figures.json").read_text())["rows"]] == [
        "first", "bench.x", "second",
    ]  # fmt: skip
    assert "ValueError: no such disk" in capsys.readouterr().out
