"""The tour: it runs, and shows what it promises."""

import subprocess
import sys
from pathlib import Path

JIDOMEM = str(Path(sys.executable).parent / "jidomem")


def test_the_tour_shows_a_refusal_repaired_a_conflict_settled_a_past_state_and_a_clean_check(tmp_path):
    done = subprocess.run([JIDOMEM, "demo"], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    shown = done.stdout
    assert "hint: this would be accepted:" in shown
    assert "overlapping_decision with" in shown
    now, _, past = shown.split("as it was a moment ago.")[1].partition("--as-of")
    assert "Use QLever as the index" in now
    assert "Use Oxigraph as the index" in past
    assert "Use QLever as the index" not in past
    assert "Measure QLever beside Oxigraph  InProgress" in shown
    assert "checked: no findings" in shown
    assert "Where to go next" in shown
    assert list(tmp_path.iterdir()) == []


def test_a_tour_that_is_kept_leaves_a_root_that_answers(tmp_path):
    subprocess.run([JIDOMEM, "demo", "--keep", "tour"], cwd=tmp_path, capture_output=True, text=True, check=True)

    root = str(tmp_path / "tour" / ".jidomem")
    done = subprocess.run([JIDOMEM, "journal", "verify", "--root", root], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("sound\n")
