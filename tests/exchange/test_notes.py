"""The import of agents' notes: each statement keeps the headings, lead-ins and parent items it depends on."""

import json
import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from jidomem.exchange import memory_md
from jidomem.repository.worktree import PathFinder
from jidomem_cli.main import cli

SAMPLE = Path(__file__).parent / "notes"
PAGES = sorted(path.name for path in SAMPLE.glob("*.md") if path.name != "README.md")
LABELS = [json.loads(line) for line in (SAMPLE / "labels.jsonl").read_text().splitlines()]
READINGS = [json.loads(line) for line in (SAMPLE / "readings.jsonl").read_text().splitlines()]
PASSAGES = [json.loads(line) for line in (SAMPLE / "kinds.jsonl").read_text().splitlines()]
#: The most junk among entries, the least share of statements imported, and of those with the right kind.
JUNK, RECALL, KINDS = 0.08, 0.9, 0.95


def summaries(text, name="NOTES.md"):
    return [entry.summary for entry in memory_md.read(name, text.encode()).entries]


@cache
def entries(page):
    return memory_md.read(page, (SAMPLE / page).read_bytes()).entries


def words(text):
    return re.findall(r"\w+", text.casefold())


def is_in(line, texts):
    """Return whether one of the texts contains nearly all runs of four words of a line."""
    line_words = words(re.sub(r"^\s*(?:[-*+]|\d+\.)\s", "", line))
    runs = [" ".join(line_words[at : at + 4]) for at in range(max(1, len(line_words) - 3))]
    return sum(any(f" {run} " in text for text in texts) for run in runs) >= 0.8 * len(runs)


@pytest.mark.parametrize("page", PAGES)
def test_each_imported_statement_of_the_sample_has_a_label(page):
    labelled = {label["summary"] for label in LABELS if label["page"] == page}
    imported = {entry.summary for entry in entries(page)}

    assert imported - labelled == set(), f"read {page} and label these in notes/labels.jsonl: good, junk or changed"
    assert labelled - imported == set(), "these are no longer made: take their labels out"


def test_the_labels_of_the_sample_have_no_changed_meaning_and_at_most_8_percent_junk():
    counts = Counter(label["label"] for label in LABELS)

    assert set(counts) <= {"good", "junk", "changed"}
    assert len(LABELS) >= 200
    assert len(PAGES) >= 6
    assert counts["changed"] == 0
    assert counts["junk"] <= JUNK * len(LABELS)


def test_at_least_90_percent_of_the_statement_lines_of_the_sample_are_imported():
    missed, count = [], 0
    for page, ranges in json.loads((SAMPLE / "statement-lines.json").read_text()).items():
        lines = (SAMPLE / page).read_text().splitlines()
        texts = [
            f" {' '.join(words(entry.summary))} | {' '.join(words(entry.fields.get('detailed_explanation', '')))} "
            for entry in entries(page)
        ]
        for each in ranges:
            first, _, last = each.partition("-")
            for number in range(int(first), int(last or first) + 1):
                count += 1
                missed += [] if is_in(lines[number - 1], texts) else [f"{page}:{number}"]

    assert count >= 300
    assert len(missed) <= (1 - RECALL) * count, missed


def imported_from(reading):
    """Return the entries imported from the line of a reading."""
    return [entry for entry in entries(reading["page"]) if entry.line == reading["line"]]


def test_the_summary_of_each_labelled_statement_has_the_words_that_limit_it():
    for reading in READINGS:
        summary = " | ".join(entry.summary for entry in imported_from(reading))
        assert summary, reading
        assert [words for words in reading["needs"] if words not in summary] == [], summary


def test_at_least_95_percent_of_labelled_statements_have_the_labelled_kind():
    labelled = [reading for reading in READINGS if reading["kind"]]
    wrong = [each for each in labelled if each["kind"] not in {entry.fields["type"] for entry in imported_from(each)}]

    assert len(labelled) >= 85
    assert len(wrong) <= (1 - KINDS) * len(labelled), wrong


def test_at_least_95_percent_of_the_statements_of_one_repository_have_the_labelled_kind():
    wrong, count = [], 0
    for passage in PASSAGES:
        page = passage["from"].removeprefix("pydantic-ai/")
        imported = memory_md.read(page, passage["text"].encode()).entries
        for line, kind in passage["kinds"].items():
            count += 1
            kinds = {entry.fields["type"] for entry in imported if entry.line == int(line)}
            wrong += [] if kinds == {kind} else [(page, line, kind, kinds)]

    assert count >= 40
    assert len(wrong) <= (1 - KINDS) * count, wrong


@pytest.mark.parametrize(
    "text",
    [
        "Version requirement bumps are disallowed", "Structure docs with small steps: concept, then example",
        "Cross-reference alternatives in each page", "All changes need to: update/add all documentation",
        "When adding a check, pair it with a regression test", "Snapshot the request body of each test",
        "Silently ignore unsupported settings", "New routes need to be documented", "Relative imports are allowed",
        "Tests in `src/` may not be skipped",
    ],
)  # fmt: skip
def test_an_instruction_is_a_convention_with_any_verb(text):
    (entry,) = memory_md.read("NOTES.md", f"{text}\n".encode()).entries

    assert entry.fields["type"] == "convention"


@pytest.mark.parametrize(
    "text",
    [
        "The user may not have read this", "Nothing that needs to be fast runs in Python",
        "Test files live in `tests/`", "Both the queue and the store run here", "All domains are allowed by default",
        "Without the cache the build takes an hour",
    ],
)  # fmt: skip
def test_a_statement_without_an_instruction_is_a_fact(text):
    (entry,) = memory_md.read("NOTES.md", f"{text}\n".encode()).entries

    assert entry.fields["type"] == "fact"


def test_the_imported_lines_of_labelled_pages_are_the_labelled_lines():
    for page in {reading["page"] for reading in READINGS}:
        labelled = {reading["line"] for reading in READINGS if reading["page"] == page}
        assert {entry.line for entry in entries(page)} == labelled


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Do NOT raise findings that propose:\n\n- adding retry markers to flaky tests\n",
            ["Do NOT raise findings that propose: adding retry markers to flaky tests"],
        ),
        ("## What NOT to do\n\n- Use `pip` for installs\n", ["What NOT to do: Use `pip` for installs"]),
        ("## Don't\n\n1. Run the whole suite locally\n", ["Don't: Run the whole suite locally"]),
        ("### Non-goals\n\nSupport for Windows is planned by nobody.\n",
         ["Non-goals: Support for Windows is planned by nobody."]),
        ("## Forbidden\n\n### Python\n\n#### Imports\n\n- Use relative imports in packages\n",
         ["Forbidden › Python: Use relative imports in packages"]),
        ("**Never:**\n\n- [ ] push to `main` without a review\n", ["Never: push to `main` without a review"]),
        ("- Not supported:\n  - Databases:\n    - MySQL is run by hand\n",
         ["Not supported: Databases: MySQL is run by hand"]),
        ("> [!WARNING]\n> Never do this:\n>\n> - edit the generated files\n",
         ["Never do this: edit the generated files"]),
        ("!!! danger \"Do not\"\n\n    - Delete the cache by hand\n", ["Do not: Delete the cache by hand"]),
        ("<never_do>\n- Edit the lock file by hand\n</never_do>\n- Run the linter often\n",
         ["never do: Edit the lock file by hand", "Run the linter often"]),
        ("These are not allowed.\n- Calls of `eval` in handlers are made\n",
         ["These are not allowed: Calls of `eval` in handlers are made"]),
        ("Never commit:\n\n- secrets\n- local output\n", ["Never commit: secrets; local output"]),
        ("Avoid fixed sleeps. Instead:\n- Use an event and wait for it\n",
         ["Avoid fixed sleeps.", "Avoid fixed sleeps. Instead: Use an event and wait for it"]),
        ("**Never**: use `any`\n\n- **Imports**: go at the top\n  of each file\n",
         ["Never: use `any`", "Imports: go at the top of each file"]),
        ("Never use `any` here\n- Use `unknown`\n", ["Never use `any` here", "Never use `any` here. Use `unknown`"]),
        ("Things you must never do\n- Use `any` in handlers\n",
         ["Things you must never do: Use `any` in handlers"]),
        ("## Do not\n\nNaming\n- Use dashes in folders\n", ["Do not: Naming: Use dashes in folders"]),
        ("- Never\n  - Use `pip` by hand\n", ["Never: Use `pip` by hand"]),
        ("No Node.js code is in here.\n\n## No\n\nNode.js is used.\n",
         ["No Node.js code is in here.", "No: Node.js is used."]),
        ("Don't:\n\n1. Mock the database\n\n```py\nmock()\n```\n\n2. Patch the clock\n",
         ["Don't: Mock the database", "Don't: Patch the clock"]),
        ("Never call these:\n```\nrm -rf /\nmkfs\n```\n- Use the trash instead\n",
         ["Use the trash instead"]),
        ("- Keep handlers thin\n  - Never query in them\n",
         ["Keep handlers thin", "Keep handlers thin. Never query in them"]),
        ("- Never use `pip`\n  - Use `uv` instead\n", ["Never use `pip`", "Never use `pip`. Use `uv` instead"]),
        ("- Never do:\n  - Push to `main`\n\n  Open a pull request instead.\n",
         ["Never do: Push to `main`", "Open a pull request instead."]),
        ("Never:\n\nCall these in handlers:\n- Reads of `stdin` at once\n",
         ["Never: Call these in handlers: Reads of `stdin` at once"]),
        ("There are four kinds of store:\n- Disk (`src/disk/`)\n- Ring (`src/ring/`)\n",
         ["There are four kinds of store: Disk (`src/disk/`); Ring (`src/ring/`)"]),
        ("Here are some rules:\n- Use tabs in all files\n", ["Use tabs in all files"]),
        ("Two bots review each change:\n\n| Name | When |\n|---|---|\n| `a` | always |\n| `b` | by hand |\n\n"
         "They are independent.\n",
         ["Two bots review each change: `a`, `b`. They are independent."]),
        ("Jobs are named by hand. Two bots review each change:\n\n| Name |\n|---|\n| `a` |\n\nIt never blocks.\n",
         ["Jobs are named by hand.", "Two bots review each change: `a`. It never blocks."]),
        ("- Use the pools\n\nIn other words, be kind.\n", ["Use the pools"]),
        ("# Bots\n\nNot to be confused with `b`, which is another one.\n", []),
        ("Since [3971](https://a.b/pull/3971) we use the lower version.\n",
         ["Since [3971](https://a.b/pull/3971) we use the lower version."]),
        ("Always read the page of the folder in those folders:\n\n- [docs/A.md](docs/A.md)\n- [src/A.md](src/A.md)\n",
         ["Always read the page of the folder in those folders: docs/A.md; src/A.md"]),
        ("We keep the lower version. In short, this means:\n\n- bumps are disallowed\n- checks guard new calls of it\n",
         ["We keep the lower version.", "We keep the lower version. In short, this means: bumps are disallowed",
          "We keep the lower version. In short, this means: checks guard new calls of it"]),
        ("# Intro\n\n# All contributions\n\n## Development workflow\n\nThe project uses `uv` for all.\n",
         ["All contributions › Development workflow: The project uses `uv` for all."]),
        ("# Guide\n\n## Documentation Guidelines\n\n- **Style:** Prose over code comments\n",
         ["Documentation Guidelines: Style: Prose over code comments"]),
        ("## Errors\n\n- Use the base class of the package\n", ["Errors: Use the base class of the package"]),
        ("Name each part by hand. This holds for single parts, \"it is small\" is no excuse.\n"
         "- **Static** means styling\n",
         ["Name each part by hand. This holds for single parts, \"it is small\" is no excuse.",
          "Static means styling"]),
        ("Some calls block. These are not allowed.\n- Calls of `eval` in handlers are made\n",
         ["Some calls block. These are not allowed: Calls of `eval` in handlers are made"]),
        ("This guide describes the build. Always run `make` first.\n", ["Always run `make` first."]),
        ("This guide describes deprecated calls. Use `a.b` in handlers.\n",
         ["This guide describes deprecated calls. Use `a.b` in handlers."]),
        ("You are an engineer without access to the production hosts.\n",
         ["You are an engineer without access to the production hosts."]),
        ("This file lists the rules. They must be followed.\n",
         ["This file lists the rules. They must be followed."]),
        ("This section lists our rules:\n- Use tabs in all files\n",
         ["This section lists our rules: Use tabs in all files"]),
        ("When not to add to this file:\n- The rule is in the linter\n",
         ["When not to add to this file: The rule is in the linter"]),
        ("**Examples of what not to do:**\n- Timers are set in handlers\n",
         ["Examples of what not to do: Timers are set in handlers"]),
        ("<Warning title=\"Keys\">\nNever commit keys of any kind.\n</Warning>\n", ["Never commit keys of any kind."]),
        ("- Wait for the daemon to stop.\\\n", ["Wait for the daemon to stop."]),
        ("• Use tabs in all files\n• Never use spaces in a Makefile\n",
         ["Use tabs in all files", "Never use spaces in a Makefile"]),
    ],
)  # fmt: skip
def test_the_summary_of_a_statement_has_its_lead_in(text, expected):
    assert summaries(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "```sh\nmake test\n```\n",
        "## Structure\n\n```\nsrc/\n├── a.py\n└── b.py\n```\n",
        "| Command | Does |\n|---|---|\n| `make` | builds all |\n",
        "- [Guide](docs/guide.md)\n- [Tests](docs/tests.md)\n",
        "See also:\n\n- [Guide](docs/guide.md) - how to start\n",
        "See [the guide](docs/guide.md) for details.\n",
        "## Commands\n### Tests\n",
        "- `make test`\n- `make lint`\n",
        "- `src/a.py`\n- `src/b.py`\n",
        "$ make test\n",
        "src\n├── a.py\n└── b.py\n",
        "**Good:**\n```py\na = 1\n```\n**Bad:**\n```py\nb = 1\n```\n",
        "- Good: `a = 1`\n- Bad: `b = 1`\n",
        "<example>\nAlways write it so.\n</example>\n",
        "This file provides guidance to Claude Code when working with code in this repository.\n",
        "To run the tests:\n```sh\n# all of them\nmake test\n# one of them\nmake test TEST=a\n```\n",
        "~~Use pip for installs~~\n",
        "- Example: patch summary lines\n",
        "**Example from the last release:**\n- `src/a.py` - the new field is added\n",
        "**When to add to this file:**\n- A change touched files that nobody expected\n",
        "Audience: engineers and coding agents\n",
        "You are an expert developer of web applications who works on this repository.\n",
        "This file is the memory of the project. It captures the patterns that are not obvious.\n",
        "See the section on pools for how it is done.\n",
        "More instructions about requests: @docs/network.md\n",
        '<ParamField path="id" type="string">\nMust be a valid identifier of a user.\n</ParamField>\n',
        "    indented = code\n",
    ],
)
def test_code_tables_links_names_samples_and_headings_are_omitted_and_counted(text):
    reading = memory_md.read("NOTES.md", text.encode())

    assert reading.entries == []
    assert sum(reading.left_out.values()) > 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Run `uv sync` before tests\n", "Run `uv sync` before tests"),
        ("To run the tests:\n\n```sh\npytest -q\n```\n", "To run the tests: `pytest -q`"),
        ("- Set up:\n  ```sh\n  uv venv\n  uv sync\n  ```\n", "Set up: `uv venv`; `uv sync`"),
        ("**Always** run these commands before a commit.\n```sh\nuv sync\npytest -q\n```\n",
         "Always run these commands before a commit: `uv sync`; `pytest -q`"),
        ("The pools are set through blocks in the file:\n```yaml\na:\n  b: 1\n```\n",
         "The pools are set through blocks in the file"),
        ("Each file must start with this header:\n```go\n// a\n// b\n```\n", "Each file must start with this header"),
        ("Run before each push:\n\n- `make lint`\n- `make test`\n", "Run before each push: `make lint`; `make test`"),
        ("Run the full sequence in order:\n```sh\nmake a\nmake b\nmake c\nmake d\nmake e\n```\n",
         "Run the full sequence in order: `make a`; `make b`; `make c`; `make d`; `make e`"),
        ("1. Run the following:\n   ```sh\n   make a\n   make b\n   make c\n   make d\n   ```\n",
         "Run the following: `make a`; `make b`; `make c`; `make d`"),
        ("Run the full sequence in order: `a`, `b`, `c`, `d`\n", "Run the full sequence in order: `a`, `b`, `c`, `d`"),
        ("Run in order:\n" + "".join(f"- `make the-target-number-{n} VERBOSE=1 COLOUR=0`\n" for n in range(9)),
         "Run in order: " + "; ".join(f"`make the-target-number-{n} VERBOSE=1 COLOUR=0`" for n in range(6)) + "…"),
        ("- [`uv`](https://docs.astral.sh/uv) manages the environments\n", "`uv` manages the environments"),
        ("Imports have three groups:\n1. Standard library\n2. Others\n",
         "Imports have three groups: 1. Standard library; 2. Others"),
        ("- `driver/`: database drivers for Neo4j\n", "`driver/`: database drivers for Neo4j"),
    ],
)  # fmt: skip
def test_the_summary_of_a_statement_has_its_command(text, expected):
    assert summaries(text) == [expected]


RULE = "Never deploy on Fridays."


@pytest.mark.parametrize(
    "talk",
    [
        f"User: Which port?\n\nAssistant: It is 5672.\n\n- {RULE}\n\nUser: Why?\n\nAssistant: {RULE}\n",
        f"**User:** Which port?\n\n**Claude:** {RULE}\n",
        f"> **User**: Which port?\n>\n> **ChatGPT**: {RULE}\n> {RULE}\n",
        f"## User\n\nWhich port?\n\n## Assistant\n\n{RULE}\n\n## More\n",
        f"**Human:**\n\nWhich port?\n\n**AI:**\n\n{RULE}\n",
    ],
)
def test_a_conversation_is_omitted_and_counted_and_the_text_around_it_is_imported(talk):
    reading = memory_md.read(
        "CLAUDE.md", f"# Notes\n\n- Sign every commit.\n\n{talk}\nRun the tests before a push.\n".encode()
    )

    assert [entry.summary for entry in reading.entries] == ["Sign every commit.", "Run the tests before a push."]
    assert reading.left_out["is a transcript"] == 1


@pytest.mark.parametrize(
    "page",
    [
        "User: the account that runs the service. It must not have a shell.\n",
        "- User: a person who asks\n- Assistant: the program that answers\n",
        "User: the account that runs it.\n\n## Roles\n\nAssistant: the program that answers.\n",
    ],
)
def test_definitions_of_a_user_or_an_assistant_are_no_conversation(page):
    assert memory_md.read("CLAUDE.md", page.encode()).left_out["is a transcript"] == 0


@pytest.mark.parametrize(
    "text", ['[{"role": "user", "content": "Which port?"}]', '{"role": "user"}\n{"role": "assistant"}\n']
)
def test_json_is_no_page_of_notes(text):
    reading = memory_md.read("chat.json", text.encode())

    assert reading.entries == []
    assert "conversation" in reading.broken[0].error.hint


@pytest.mark.parametrize("end", ["---\n\n", "\n", "---\n", "\n---\n\n", "\n# Keys\n\n"])
def test_front_matter_gives_the_files_of_a_page_also_if_no_line_closes_it(end):
    page = f"---\nglobs: src/**\nalwaysApply: false\n{end}- Never commit keys.\n\n---\n\n- Rotate keys each year.\n"
    entries = memory_md.read(".cursor/rules/keys.mdc", page.encode()).entries

    assert [(entry.summary.removeprefix("Keys: "), entry.files) for entry in entries] == [
        ("Never commit keys.", ("src/**",)),
        ("Rotate keys each year.", ("src/**",)),
    ]


def test_a_page_that_begins_with_a_line_has_no_front_matter():
    page = b"---\n\n- Never commit keys.\n\n---\n\n- Rotate keys each year.\n"

    assert [each.summary for each in memory_md.read("CLAUDE.md", page).entries] == [
        "Never commit keys.", "Rotate keys each year."
    ]  # fmt: skip


def test_an_entry_has_headings_and_line_and_keeps_its_key_when_other_text_changes():
    text = "# Guide\n\n## Tests\n\nUse pytest.\n\n- Never mock the store\n- Run `make`\n"
    first = memory_md.read("AGENTS.md", text.encode()).entries
    later = memory_md.read("AGENTS.md", f"{text.replace('# Guide', '# Guide!', 0)}\n## More\n\nA word more.\n".encode())
    shifted = memory_md.read("AGENTS.md", text.replace("Use pytest.", "Use pytest.\n\nAnd xdist.\n").encode())

    assert [(each.headings, each.line) for each in first] == [(("Guide", "Tests"), line) for line in (5, 7, 8)]
    for others in (later.entries, shifted.entries):
        known = {(each.key, each.digest) for each in others}
        assert {(each.key, each.digest) for each in first} <= known


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("## Pull request checklist\n\n- [ ] Tests pass in CI\n", "convention"),
        ("## TODO\n\n- [ ] Add a linter\n", "task"),
        ("Do not:\n\n- Edit the lock file\n", "convention"),
        ("The store is a graph.\n", "fact"),
        ("## Structure\n\n- `docs/`: source; do not edit `docs/ja`\n", "convention"),
        ("## Testing\n\n- Run the tests before committing\n", "convention"),
        ("## Overview\n\nThe client is generated. Never edit it by hand.\n", "convention"),
        ("## Notes\n\n- When you rename a step, update the outputs\n", "convention"),
        ("## Notes\n\n- Public APIs must have docstrings\n", "convention"),
        ("## Notes\n\n- **Imports:** Keep them sorted\n", "convention"),
        ("Run before each push:\n\n```sh\nmake lint\n```\n", "convention"),
        ("## Testing\n\n- Run tests: `make test`\n", "fact"),
        ("## Testing\n\n- `make test`: run all of the tests\n", "fact"),
        ("## Testing\n\n- Test files use the `_int` suffix\n", "fact"),
        ("## Testing\n\n- File-watcher tests do not work in a sandbox\n", "fact"),
        ("# Repository guidelines\n\n## Structure\n\n- The server lives in `server/`\n", "fact"),
        ("# Coding guidelines\n\n- Four blanks of indentation\n", "convention"),
        ("## Lessons\n\n- Never mock the store\n", "lesson_learned"),
        ("## TODO\n\n- Never mock the store\n", "task"),
    ],
)
def test_the_kind_of_a_statement_follows_from_its_words_and_its_heading(text, kind):
    assert [entry.fields["type"] for entry in memory_md.read("CLAUDE.md", text.encode()).entries] == [kind]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We never force-push.\n\n- Log in JSON.", ["We never force-push.", "Log in JSON."]),
        ("You must not use eval without asking.\n\n- Pin versions.\n- Prefer uv.",
         ["You must not use eval without asking.", "Pin versions.", "Prefer uv."]),
        ("Never do this.\n\n- Force-push.", ["Never do this.", "Never do this. Force-push."]),
        ("Secrets are never committed.\n\n- Keys\n- Tokens",
         ["Secrets are never committed.", "Secrets are never committed. Keys; Tokens"]),
    ],
)  # fmt: skip
def test_a_complete_prohibition_is_no_lead_in_of_the_next_statements(text, expected):
    assert summaries(text) == expected


@pytest.mark.parametrize("level", [11, 40, 400])
def test_list_items_nested_too_deeply_are_omitted_and_counted(level):
    nested = "".join(f"{'  ' * depth}- Use the tool t{depth} often\n" for depth in range(level))
    reading = memory_md.read("NOTES.md", f"{nested}- Never mock\n\nRun it.\n\n## Pools\n\n- Use pytest\n".encode())

    imported = [entry.summary for entry in reading.entries]
    assert imported[-3:] == ["Never mock", "Run it.", "Pools: Use pytest"]
    assert len(imported) - 3 + reading.left_out["is nested too deeply"] == level


def test_quotes_nested_too_deeply_are_omitted_and_counted():
    reading = memory_md.read("NOTES.md", f"{'> ' * 30}Use the tool\n\nRun it.\n".encode())

    assert [entry.summary for entry in reading.entries] == ["Run it."]
    assert reading.left_out["is nested too deeply"] == 1


def test_unmatched_brackets_do_not_hide_the_text_after_them():
    reading = memory_md.read("NOTES.md", f"{'![' * 50_000}\n\nUse [uv](https://a.b) in all scripts\n".encode())

    assert [entry.summary for entry in reading.entries] == ["Use uv in all scripts"]


def test_a_page_above_the_size_limit_is_refused_with_a_hint():
    (broken,) = memory_md.read("NOTES.md", b"- Use uv\n" * 200_000).broken

    assert "1,800,000 bytes" in broken.error.detail
    assert "split" in broken.error.hint


FILLER = "The pools are kept in memory and are made when the first request comes in. "


@pytest.mark.parametrize(
    "limit",
    [
        "Do not edit the generated files.", "Never block.", "Unless the user asks, keep the branch.",
        "All pools are closed except the first.", "Use it only if the cache is cold.", "It can't be undone.",
        "Pools must be closed.",
    ],
)  # fmt: skip
@pytest.mark.parametrize("before", [1, 4, 9])
def test_a_limiting_sentence_stays_in_the_summary_and_each_cut_is_marked(limit, before):
    text = f"Use the pools. {FILLER * before}{limit} {FILLER * 5}".strip()
    (entry,) = memory_md.read("NOTES.md", f"{text}\n".encode()).entries

    assert limit in entry.summary
    assert len(entry.summary) <= 300
    assert re.sub(r" …$", "", entry.summary).split(" … ")[0] in text
    assert entry.summary.endswith("…")
    assert entry.fields["detailed_explanation"] == text


def test_a_limiting_sentence_stays_with_the_sentence_it_refers_to():
    long = f"The pools are kept in memory, and made when the first request comes in{', from the settings' * 15}. "
    (summary,) = summaries(f"Use the pools. {long}The queue is for tests. It must not be used in handlers.\n")

    assert summary == "Use the pools. … The queue is for tests. It must not be used in handlers."


def test_a_shortened_parent_item_keeps_its_limiting_sentence_and_marks_the_cut():
    filler = FILLER.replace(
        " and are made", ", from the oldest to the one that was used last by one of the handlers, and are made"
    )
    parent = f"Use the pools. {filler}Never block."
    imported = summaries(f"- {parent}\n  - Close them\n")

    assert imported == [parent, "Use the pools. … Never block. Close them"]


def test_a_cut_summary_leaves_no_code_open():
    (summary,) = summaries(
        "Run these in order: " + ", ".join(f"`make target number {n} of all`" for n in range(30)) + "\n"
    )

    assert summary.endswith("`…")
    assert summary.count("`") % 2 == 0


def test_a_long_statement_keeps_its_prohibition():
    text = "Known gaps are " + "documented, " * 20 + "all of them. They must not be reported."
    (summary,) = summaries(text)

    assert summary.endswith("They must not be reported.")


@pytest.mark.parametrize("after", ["elsewhere", "in any other example of the pages, whatever they are about"])
def test_a_prohibiting_clause_is_not_cut(after):
    start, prohibition = "The examples run against a script", "; another tool starts it — never use it"
    filler = " and again" * 22
    text = f"{start}{filler}{prohibition} {after}."
    assert len(f"{start}{filler}{prohibition}") < 300 < len(text)

    assert summaries(f"{text}\n") == [text]


def test_a_contrasting_sentence_stays_with_the_sentence_before_it():
    limit = "But a friend with a key passes it."
    (summary,) = summaries(f"The gate asks for a role. {FILLER * 5}It stops strangers. {limit} {FILLER * 2}\n")

    assert f"It stops strangers. {limit}" in summary


def test_a_parent_item_is_cut_at_the_end_of_a_clause():
    clause = "Tools of all vendors have a class that stands for them and for what they do in `src/tools/`"
    imported = summaries(
        f"- {clause} — classes are the way{' to it' * 20}\n  - Local tools call a function of their own\n"
    )

    assert imported[1] == f"{clause}… Local tools call a function of their own"


DENIALS = [
    "Never {}:", "Do NOT raise findings {} that propose:", "**Do not** {}:", "Avoid {}:", "❌ Don't {}:",
    "{}: not supported:", "The following {} are forbidden.", "**Anti-patterns {}**", "You must not {}, ever",
]  # fmt: skip
HEADINGS = ["What NOT to do {}", "Don't {}", "Forbidden {}", "Deprecated {}", "Non-goals {}", "Bad {}"]
HARMLESS = ["Note {}:", "For {} do this:", "**{}**", "Use {} like so.", "The {}:"]
ITEMS = [
    "adding retry {} markers", "`{}`", "**{}**: is set by hand", "{}", "Use {} in all of the tests.",
    "Run {} at once.\n  Then wait for it", "[ ] the {} is there", "[{}](docs/a.md) tells how it is done today",
    "{} " + "and so on and on " * 30,
]  # fmt: skip


@st.composite
def notes(draw):
    """Return a page, and for the name of each item the names of the denials above it."""
    lines, needed, names = [], defaultdict(set), iter(range(10_000))

    def lead(kinds, indent, above):
        name = f"zn{next(names)}"
        denies = draw(st.booleans())
        text = draw(st.sampled_from(kinds if denies else HARMLESS)).format(name)
        lines.append(indent + text)
        return above | {name} if denies else above

    def items(indent, above, depth):
        mark = draw(st.sampled_from(["- ", "* ", "1. "]))
        for _ in range(draw(st.integers(1, 3))):
            name = f"zi{next(names)}"
            if depth < 4 and draw(st.booleans()):
                below = lead(DENIALS, indent + mark, above)
                items(indent + " " * len(mark), below, depth + 1)
            else:
                needed[name] = above
                text = draw(st.sampled_from(ITEMS)).format(name)
                lines.append(indent + mark + text.replace("\n  ", "\n" + indent + " " * len(mark)))
            if draw(st.integers(0, 5)) == 0:
                lines.append(indent.strip())

    for _ in range(draw(st.integers(1, 3))):
        above = set()
        for level in range(1, draw(st.integers(0, 3)) + 1):
            name = f"zn{next(names)}"
            denies = draw(st.booleans())
            title = draw(st.sampled_from(HEADINGS)) if denies else "Rules {}"
            lines.extend([f"{'#' * (level + 1)} {title.format(name)}", ""])
            above |= {name} if denies else set()
        if not above:
            lines.extend(["## Apart", ""])
        indent = draw(st.sampled_from(["", "", "> "]))
        above = lead(DENIALS, indent, above)
        lines.extend([indent.strip()] * draw(st.integers(0, 1)))
        items(indent, above, 0)
        lines.append("")
    return "\n".join(lines) + "\n", needed


@settings(max_examples=examples(30))
@given(notes())
def test_each_statement_of_nested_lists_keeps_all_denials_above_it(page):
    text, needed = page

    for summary in summaries(text):
        for item in set(re.findall(r"\bzi\d+\b", summary)):
            assert needed[item] <= set(re.findall(r"\bzn\d+\b", summary)), (item, text)


@pytest.mark.parametrize("apostrophe", ["'", "’", "ʼ"])
@pytest.mark.parametrize(
    "text", ["Workers shouldn't write.", "Jobs mustn't overlap.", "Jobs needn't be idempotent.", "Don't block.",
             "On Fridays, don't release."]
)  # fmt: skip
def test_a_contraction_with_any_apostrophe_is_a_convention(text, apostrophe):
    (entry,) = memory_md.read("CLAUDE.md", f"{text.replace(chr(39), apostrophe)}\n".encode()).entries

    assert entry.fields["type"] == "convention"


REFERENCES = [json.loads(line) for line in (SAMPLE / "references.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("passage", REFERENCES, ids=lambda passage: passage["from"])
def test_a_statement_has_the_command_or_subject_it_refers_to(passage):
    joined = " | ".join(summaries(passage["text"]))

    assert [words for words in passage["needs"] if words not in joined] == [], joined


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Run this rake task:\n\n```\nrake jobs:fill[x]\n```\n", ["Run this rake task: `rake jobs:fill[x]`"]),
        ("To publish again run this rake task\n\n```sh\nrake publish\n```\n",
         ["To publish again run this rake task: `rake publish`"]),
        ("Run the following tasks.\n\n```\n$ rake a\n$ rake b\n```\n", ["Run the following tasks: `rake a`; `rake b`"]),
        ("1. Run this rake task\n   ```\n   rake jobs:fill\n   ```\n2. Deploy the app\n",
         ["Run this rake task: `rake jobs:fill`", "Deploy the app"]),
        ("Run this rake task:\n\n```ruby\nJobs.each do |job|\n  job.fill\nend\n```\n", []),
        ("- Feature specs drive a browser.\n- This type of test is slow to run.\n",
         ["Feature specs drive a browser.", "Feature specs drive a browser. This type of test is slow to run."]),
        ("- Fixtures live in `spec/fixtures`.\n- These files are read by every test.\n",
         ["Fixtures live in `spec/fixtures`.",
          "Fixtures live in `spec/fixtures`. These files are read by every test."]),
        ("## Feature tests\n\nThese tests drive a browser, each for one feature.\n",
         ["Feature tests: These tests drive a browser, each for one feature."]),
    ],
)  # fmt: skip
def test_a_statement_is_imported_with_its_command_or_subject_or_omitted(text, expected):
    assert summaries(text) == expected


@pytest.mark.parametrize(
    ("rule", "files"),
    [
        ("Never retry a payment twice, see src/pay/retry.py.", ("src/pay/retry.py",)),
        ("Never retry (see ./src/pay/retry.py:12, docs/guide.md#why).", ("src/pay/retry.py", "docs/guide.md")),
        ("Use plain English in docs/ only.", ("docs",)),
        ("Use `docs/guide.md` and src/pay/retry.py.", ("docs/guide.md", "src/pay/retry.py")),
        ("Use the client/server split and/or read/write locks.", ()),
        ("Do not use src/pay as a folder.", ()),
        ("Never use Src/pay/retry.py, src/pay/retry.PY or src/pay/none.py.", ()),
        ("Use https://x.org/src/pay/retry.py, ~/src/pay/retry.py, @src/pay/retry.py or x/src/pay/retry.py.", ()),
        ("Never use src/pay/*.py, src/*/retry.py or docs/<name>.", ()),
        ("Use <!-- src/pay/retry.py --> nothing of it.", ()),
    ],
)
def test_a_convention_is_about_the_existing_paths_that_it_names_without_backticks(tmp_path, rule, files):
    for name in ("src/pay/retry.py", "docs/guide.md", "client/server/a.py", "read/write/a.py", "and/or/a.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x\n")

    find = PathFinder(tmp_path).of("AGENTS.md")
    (entry,) = memory_md.read("AGENTS.md", f"# Rules\n\n- {rule}\n".encode(), find).entries

    assert entry.files == files


def test_the_report_of_an_import_names_the_files_of_each_note(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("x\n")
    (tmp_path / "AGENTS.md").write_text("# Rules\n\n- Never use eval, see src/a.py.\n- Never use exec.\n")
    folder, place = [str(tmp_path), "--project", "p"], ["--root", str(tmp_path / ".jidomem"), "--project", "p"]

    def run(*words):
        result = CliRunner().invoke(cli, [*words])
        assert result.exit_code == 0, result.output
        return result

    page = str(tmp_path / "AGENTS.md")
    run("init", *folder)
    dry_run = run("init", *folder, "--from", page, "--dry-run", "--json")
    abouts = {each["summary"]: each["about"] for each in json.loads(dry_run.stdout)["changes"]}
    assert abouts == {"Never use eval, see src/a.py.": ["src/a.py"], "Never use exec.": []}
    assert "see src/a.py. (about src/a.py)\n" in run("root", "import", "memory-md", *place, page, "--dry-run").stdout
    assert (
        "1 about files that they name, or that their page is for: src/a.py\n"
        in run("init", *folder, "--from", page).stderr
    )
    assert "about files" not in run("init", *folder, "--from", page).stderr


@pytest.mark.parametrize(
    ("rule", "files"),
    [
        ("Do not use: `global` state outside `src/app.py`; mutable default arguments", ()),
        ("Only `src/a.py` may open sockets; no other file may.", ()),
        ("Use `black`, except in `src/gen.py`", ()),
        ("Never use `eval` other than in `src/gen.py` and `src/a.py`.", ()),
        ("Do not import `sqlite3` unless in [the store](src/store.py).", ()),
        ("Sort imports in `src/`, but not in `src/gen.py`.", ("src/",)),
        ("Use `black`; `src/gen.py` is exempt.", ()),
        ("Never edit `src/gen.py`, except by the generator.", ("src/gen.py",)),
        ("Do not use `requests` in `src/a.py`; use `httpx` instead.", ("src/a.py",)),
        ("Only use sockets in `src/a.py`.", ("src/a.py",)),
        ("Never print outside src/app.py; log instead.", ()),
        ("Only src/a.py and `src/b.py` may open sockets.", ()),
        ("Sort imports in src/, but not in src/gen.py.", ("src/",)),
    ],
)
def test_a_convention_is_not_about_the_files_it_exempts(rule, files):
    def find(named):
        return named if named.startswith("src/") else None

    (entry,) = memory_md.read("AGENTS.md", f"# Rules\n\n- {rule}\n".encode(), find).entries
    (nested,) = memory_md.read("web/AGENTS.md", f"# Rules\n\n- {rule}\n".encode(), find).entries

    assert entry.files == files
    assert nested.files == (*files, "web")
