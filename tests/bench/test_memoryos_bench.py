"""The benchmark of retrieval from full tiers, compared with a list of the same pages and with its goal."""

import re

from bench import memoryos
from bench.harness import Options


# D114
def test_retrieval_is_measured_in_milliseconds_and_compared_with_a_list_and_a_goal(tmp_path, monkeypatch):
    for size in ("PAGES", "ENTRIES", "PERSONAS", "FACTS"):
        monkeypatch.setattr(memoryos, size, 2)
    options = Options(20, quick=True, rounds=2, folder=tmp_path)

    rows = {row.label.partition(", 20 segments")[0]: row for row in memoryos.rows(options)}

    assert {"retrieve", "retrieve, and count the visit", "open the tiers"} < rows.keys()
    assert (rows["retrieve"].goal, len(rows["retrieve"].figures["s"])) == ("p50 20 ms", 2)
    assert rows["retrieve"].is_met is (sorted(rows["retrieve"].figures["s"])[0] <= 0.02)
    for row in rows.values():
        assert re.fullmatch(r"\S+ \(\S+-\S+\) ms", row.measured)
        assert row.comparison.endswith(" x a list")
    assert memoryos.SEGMENTS * 50 == 10_000
