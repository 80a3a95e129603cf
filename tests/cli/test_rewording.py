"""A proposal that would supersede a memory is shown with the sentences that differ."""

import json

import cli_world
import pytest

from jidomem.read.history import Rewording, rewording

LONG = "Run the tests before each commit, and read all that they print. They take some minutes. "


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*words):
        result = cli_world.run(*words)
        assert result.exit_code == 0, result.output
        return result.stdout

    run("init", "--project", "p")
    run("access", "policy", "grant", "user", "curator")
    return run


def test_a_changed_note_is_listed_and_shown_with_the_changed_sentence(run, tmp_path):
    notes = tmp_path / "CLAUDE.md"
    notes.write_text(f"- {LONG * 3}Never mock the store.\n- Use tabs in all files\n")
    run("root", "import", "memory-md", "CLAUDE.md")
    run("review", "accept", "--all")
    notes.write_text(f"- {LONG * 3}Mock the store in unit tests only.\n- Use tabs in all files\n- Sort imports\n")
    run("root", "import", "memory-md", "CLAUDE.md")

    (changed, added) = json.loads(run("review", "--json"))["rows"]
    table, todo, fields_text = run("review"), run("review", "--todo"), run("show", changed["item"])

    assert changed["rewordings"] == [{"was": "Never mock the store.", "now": "Mock the store in unit tests only."}]
    assert added["rewordings"] == []
    for text in (table, todo):
        assert "was: Never mock the store." in text
        assert "now: Mock the store in unit tests only." in text
    fields = dict(line.split(None, 1) for line in fields_text.splitlines())
    assert (fields["was"], fields["now"]) == ("Never mock the store.", "Mock the store in unit tests only.")
    assert not any("verified" in text for text in (table, todo))  # the accepted note is, and no proposal is


def properties(summary, explanation=None):
    return {"summary": [summary], "revisionReason": ["It changed."]} | (
        {"detailedExplanation": [explanation]} if explanation else {}
    )


@pytest.mark.parametrize(
    ("old", "new", "was", "now"),
    [
        (properties("Use tabs."), properties("Use tabs."), "", ""),
        (properties("Use tabs. Never mix."), properties("Use tabs."), "Never mix.", ""),
        (properties("Use tabs."), properties("Use tabs. Never mix."), "", "Never mix."),
        (
            properties("T: Use tabs. …", "Use tabs. It is old."),
            properties("T: Use tabs. …", "Use tabs. It is new."),
            "It is old.",
            "It is new.",
        ),
        (
            properties("T: Use tabs. It is old."),
            properties("T: Use tabs. …", "Use tabs. It is new."),
            "It is old.",
            "It is new.",
        ),
        (
            properties("T: Use tabs. …", "Use tabs. See [x](y)."),
            properties("T: Use blanks. …", "Use blanks. See x."),
            "T: Use tabs.",
            "T: Use blanks.",
        ),
    ],
)
def test_a_rewording_contains_the_changed_sentence_once(old, new, was, now):
    assert rewording(old, new) == Rewording(was, now)


def test_a_long_sentence_is_shortened_to_the_changed_words():
    words = "word " * 200
    short = Rewording(f"{words}old end", f"{words}new end").shortened(80)

    assert short.was.startswith("… word")
    assert short.was.endswith("word old end")
    assert short.now.endswith("word new end")
    assert max(map(len, (short.was, short.now))) <= 84
