"""`jidomem demo` shows each step that it announces."""

import subprocess
import sys
from pathlib import Path

JIDOMEM = str(Path(sys.executable).parent / "jidomem")


def test_the_demo_shows_a_repaired_refusal_a_settled_conflict_a_past_state_and_a_clean_check(tmp_path):
    result = subprocess.run([JIDOMEM, "demo"], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert result.returncode == 0, result.stderr
    output = result.stdout
    assert "hint: this would be accepted:" in output
    assert "overlapping_decision with" in output
    now, _, past = output.split("as it was a moment ago.")[1].partition("--as-of")
    assert "Use QLever as the index" in now
    assert "Use Oxigraph as the index" in past
    assert "Use QLever as the index" not in past
    assert "Measure QLever beside Oxigraph  InProgress" in output
    assert "checked: no findings" in output
    assert "Where to go next" in output
    assert list(tmp_path.iterdir()) == []


def test_a_demo_with_keep_leaves_a_sound_root(tmp_path):
    subprocess.run([JIDOMEM, "demo", "--keep", "tour"], cwd=tmp_path, capture_output=True, text=True, check=True)

    root = str(tmp_path / "tour" / ".jidomem")
    result = subprocess.run([JIDOMEM, "journal", "verify", "--root", root], capture_output=True, text=True, check=True)
    assert result.stdout.endswith("sound\n")
