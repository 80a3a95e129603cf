"""`jidomem demo` shows each step that it announces."""

import json

from cli_world import run


def test_the_demo_shows_a_repaired_refusal_a_settled_conflict_a_past_state_and_a_clean_check(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("demo")

    assert result.exit_code == 0, result.stderr
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


def test_a_demo_with_keep_leaves_a_sound_root_and_prints_json_objects_with_json(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("demo", "--keep", "tour", "--json")

    assert result.exit_code == 0, result.stderr
    assert all(isinstance(json.loads(line), dict) for line in result.stdout.splitlines())
    assert run("journal", "verify", "--root", tmp_path / "tour" / ".jidomem").stdout.endswith("sound\n")
