"""The benchmark of the tiers: the cost of each in its unit and as a ratio."""

import re
from pathlib import Path

from bench import working
from bench.harness import Options

ROOT = Path(__file__).parent.parent.parent


def test_both_tiers_are_measured_and_long_term_compared_with_short_term(tmp_path, monkeypatch):
    # E094
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    rows = {row.label: row for row in working.rows(Options(20, quick=True, rounds=2, folder=tmp_path))}

    short = {label: row for label, row in rows.items() if label.startswith("short-term")}
    long = {label: row for label, row in rows.items() if label.endswith("20 memories")}
    assert list(short) == ["short-term get", "short-term put"]
    assert len(long) == len(rows) - len(short) == 4
    for row in short.values():
        assert re.fullmatch(r"\S+ \(\S+-\S+\) ns", row.measured)
        assert row.comparison.endswith("x a look-up in a dict")
    for row in long.values():
        assert re.fullmatch(r"\S+ \(\S+-\S+\) ms", row.measured)
        assert row.comparison.endswith("x short-term get")
        assert len(row.figures["s"]) == 2


def test_the_documentation_states_duration_size_and_speed_of_each_tier():
    # E094
    page = (ROOT / "docs" / "two-tiers.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| (lasts|how much|reached in) \| (.+) \|$", page, re.MULTILINE))

    assert rows == {
        "lasts": "as long as the session: a restart leaves nothing | for good: it is in the journal",
        "how much": "1000 entries | millions",
        "reached in": "nanoseconds: a look-up in a dict under a lock"
        " | milliseconds: a look-up in the index, or a query",
    }
    assert "bench.working" in page
