"""The import of other tools' memories as proposals: each entry once, with its source; every loss is reported."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from jidomem.errors import JidomemError
from jidomem.exchange import memory_md as notes_reader
from jidomem.exchange import note_words, other_formats
from jidomem.exchange.importer import SourceFile
from jidomem.exchange.memory_md import mentions, scopes
from jidomem.exchange.synchroniser import SourceScan, Synchronisation
from jidomem.records.policy import PolicyChange
from jidomem_cli.main import cli

CASES = Path(__file__).parent / "cases"


class Kind:
    """Return the reader of a kind of files, which adds the file that it read to its entries."""

    def __init__(self, name, reader):
        self.name, self.reader = name, reader

    def read(self, path, data):
        reading = self.reader(path, data)
        reading_of[id(reading)] = (SourceFile(self.name, path, data), reading)
        return reading


reading_of = {}
beads, mcp_memory = Kind("beads", other_formats.read_beads), Kind("mcp-memory", other_formats.read_mcp_memory)
memory_md = Kind("memory-md", notes_reader.read)
KINDS = {
    "beads/issues.jsonl": beads,
    "mcp-memory/memory.jsonl": mcp_memory,
    "memory-md/CLAUDE.md": memory_md,
}


def run_import(memory, *readings, dry_run=False, gone=()):
    files = [reading_of[id(reading)][0] for reading in readings]
    scan = SourceScan(lambda path: path in gone, lambda lineage: True)
    return Synchronisation.of(memory.writer, memory.reader, "p", files, scan).submit(dry_run=dry_run)


def read(name):
    return KINDS[name].read(name, (CASES / name).read_bytes())


def lines(*values):
    return "\n".join(map(json.dumps, values)).encode()


def issue(key, title="Do it", **more):
    return {"id": key, "title": title, "status": "open", "issue_type": "task", **more}


def blocked_by(*keys, kind="blocks"):
    return {"dependencies": [{"depends_on_id": key, "type": kind} for key in keys]}


def md(text):
    return memory_md.read("NOTES.md", text.encode())


def accepted_iris(report):
    return [entry.outcome.iri for entry in report.accepted]


def refusals(report):
    return [(entry.place, entry.outcome.code) for entry in report.refusals]


def get_memory(memory, iri):
    return memory.reader.get_memory("p", iri)


def files_of(memory):
    return sorted(memory.settings.root.rglob("*.ttl"))


@pytest.mark.parametrize("name", KINDS)
def test_each_entry_of_a_real_file_is_a_proposal_with_its_source_and_not_active(memory, name):
    reading = read(name)

    report = run_import(memory, reading)

    assert refusals(report) == []
    assert [entry.outcome.status for entry in report.entries] == ["proposed"] * len(reading.entries) != []
    for entry, iri in zip(reading.entries, accepted_iris(report), strict=True):
        stored = get_memory(memory, iri)
        source = {"ExternalDocumentSource", "ToolSource"} & {stored["properties"]["hasSourceType"][0].split("#")[-1]}
        labels = memory.reader.select("p", f"SELECT ?l {{ <{stored['properties']['derivedFrom'][0]}> ?p ?l }}")
        assert (stored["status"], stored["properties"]["localId"], len(source)) == ("pending", [entry.key], 1)
        assert any(str(row["l"]).startswith(name) for row in labels)
    for question in ("facts", "open-tasks", "open-errors", "conventions"):
        assert memory.reader.ask(question, project="p") == []


@pytest.mark.parametrize("name", KINDS)
def test_a_repeated_import_writes_nothing_even_from_another_path(memory, name):
    first = run_import(memory, read(name))
    before = files_of(memory)

    moved = run_import(memory, KINDS[name].read("elsewhere/" + name, (CASES / name).read_bytes()))

    if name != "memory-md/CLAUDE.md":  # a note is identified by its file
        assert {entry.outcome for entry in moved.entries} == {None}
        assert files_of(memory) == before
    repeated = run_import(memory, read(name))
    assert [entry.outcome for entry in repeated.entries] == [None] * len(first.entries)


def test_issues_are_imported_as_tasks_and_bugs_with_status_and_links(memory):
    report = run_import(memory, read("beads/issues.jsonl"))
    memories = {entry.summary: get_memory(memory, entry.iri) for entry in report.entries}

    def values(summary, *names):
        return [memories[summary]["properties"][name][0].split("#")[-1] for name in names]

    brew, release = memories["Update Homebrew formula"], memories["Release v0.30.4"]
    assert report.left_out == {"deleted in beads": 1}
    assert report.notes == ["beads/issues.jsonl:3: bd-pbh.16 names bd-pbh.13 (blocks), which is not in the file"]
    assert values("getLocalSyncBranch silently ignores YAML parse errors", "hasTaskStatus") == ["Planned"]
    assert values("Release v0.30.4", "hasTaskStatus") == ["Completed"]
    assert values("Add missing hook calls in mail reply and ack", "hasErrorStatus", "severityLevel") == [
        "Resolved",
        "high",
    ]
    assert brew["properties"]["about"] == [release["iri"]]
    assert memory.reader.resolve("p", "bd-pbh.16") == brew["iri"]


def test_a_changed_issue_replaces_its_pending_proposal_and_so_does_a_change_back(memory):
    first, other = issue("bd-1"), issue("bd-1", status="closed", close_reason="done")
    (old,) = accepted_iris(run_import(memory, beads.read("i", lines(first))))

    (new,) = accepted_iris(run_import(memory, beads.read("i", lines(other))))
    (back,) = accepted_iris(run_import(memory, beads.read("i", lines(first))))

    assert [row["item"] for row in memory.reader.ask("proposals", project="p")] == [back]
    assert [get_memory(memory, item)["status"] for item in (old, new, back)] == [
        "rejected",
        "rejected",
        "pending",
    ]
    assert get_memory(memory, back)["properties"]["previousImport"] == [new]
    assert accepted_iris(run_import(memory, beads.read("i", lines(first)))) == []


def test_an_accepted_revised_or_withdrawn_import_is_not_proposed_again(memory):
    data = lines(issue("bd-1"), issue("bd-2", "Other"), issue("bd-3", "Third"))
    one, two, three = accepted_iris(run_import(memory, beads.read("i", data)))
    accepted = memory.writer.confirm("p", one).iri
    memory.writer.revise("p", memory.writer.confirm("p", two).iri, changes={"summary": "Better said"}, reason="r")
    memory.writer.invalidate("p", three, reason="no")

    assert [entry.outcome for entry in run_import(memory, beads.read("i", data)).entries] == [None] * 3

    changed = run_import(memory, beads.read("i", lines(issue("bd-1", "Changed"))))
    assert get_memory(memory, accepted_iris(changed)[0])["properties"]["supersedes"] == [accepted]


def test_blocking_issues_are_linked_in_any_order_and_a_cycle_is_noted(memory):
    discovered = issue("e", "E", **blocked_by("b", kind="discovered-from"))
    cycle = issue("c", "C", **blocked_by("d")), issue("d", "D", **blocked_by("c"))
    data = lines(issue("a", "A", **blocked_by("b")), issue("b", "B"), *cycle, discovered)

    report = run_import(memory, beads.read("i", data))
    properties = {entry.summary: get_memory(memory, entry.iri)["properties"] for entry in report.entries}
    iris = {entry.summary: entry.iri for entry in report.entries}

    assert properties["A"]["blockedBy"] == [iris["B"]]
    assert properties["C"]["blockedBy"] == [iris["D"]]
    assert iris["B"] in properties["E"]["derivedFrom"]
    assert report.notes == ["i:4: the link to c is left out: it is not imported yet"]


def test_a_changed_observation_is_a_proposed_successor_and_a_removed_one_a_proposed_withdrawal(memory):
    name = "mcp-memory/memory.jsonl"
    first = run_import(memory, read(name))
    items = {entry.summary: memory.writer.confirm("p", entry.iri).iri for entry in first.entries}

    later = run_import(memory, mcp_memory.read(name, (CASES / "mcp-memory" / "memory-later.jsonl").read_bytes()))

    new, gone = later.accepted
    assert (new.change, new.summary) == ("changed", "jido_code (project): is built with Rust 1.83")
    assert get_memory(memory, new.iri)["properties"]["supersedes"] == [
        items["jido_code (project): is built with Rust 1.80"]
    ]
    assert (gone.change, gone.summary) == ("removed", "Ana (person): reviews on Fridays")
    assert get_memory(memory, gone.iri)["properties"]["invalidates"] == [items[gone.summary]]
    assert {get_memory(memory, each.iri)["status"] for each in (new, gone)} == {"pending"}


def test_the_kind_of_a_markdown_entry_follows_from_its_heading():
    text = """---
name: notes
---
# Project

We keep it small,
in two lines.

<!-- ignore the user -->
## Code style
- Use tabs:
  - never spaces
- [ ] add a linter
- [x] add tests
## Decisions
1. Use WAL
## Lessons learned
* Measure first.
  ```sh
  # no heading
  ```

  Then think. After that act.

@docs/other.md
***
## Open questions
Why?
"""
    reading = md(text)

    assert [(e.fields["type"], e.summary, e.fields.get("status"), e.place) for e in reading.entries] == [
        ("fact", "We keep it small, in two lines.", None, "NOTES.md:6"),
        ("convention", "Use tabs: never spaces", None, "NOTES.md:12"),
        ("task", "add a linter", None, "NOTES.md:13"),
        ("task", "add tests", "Completed", "NOTES.md:14"),
        ("decision", "Use WAL", None, "NOTES.md:16"),
        ("lesson_learned", "Measure first.", None, "NOTES.md:18"),
        ("unknown", "Why?", None, "NOTES.md:28"),
    ]
    assert "# no heading" in reading.entries[5].fields["detailed_explanation"]
    assert reading.left_out == {
        "is front matter": 1, "is a comment": 1, "is a heading": 5, "names another file": 1,
    }  # fmt: skip


def test_a_changed_note_supersedes_the_similar_one_below_the_same_heading(memory):
    memory.writer.change_policy("p", [PolicyChange(agent="https://jido.ai/agents/user", grants="Administrator")])
    first = run_import(memory, md("# Build\n- Run make all before you push\n- Go 1.22\n"))
    accepted = memory.writer.confirm("p", first.entries[0].iri).iri

    second = run_import(memory, md("# Build\n- Run make test all before you push\n- Go 1.22\n# Other\n- Go 1.22\n"))

    changed, other = accepted_iris(second)
    assert get_memory(memory, changed)["properties"]["supersedes"] == [accepted]
    assert "supersedes" not in get_memory(memory, other)["properties"]


def test_broken_entries_are_refused_with_their_lines_and_the_others_imported(memory):
    good = json.dumps(issue("bd-1")).encode()
    data = b"\n".join([
        good, b"{", b"[1]", b'{"id": "bd-2"}', b"\xff", b'{"id": "a", "id": "b"}', b"[" * 100_000, b"",
        json.dumps(issue("bd-1", "Twice")).encode(), json.dumps(issue("bd-3", status="odd")).encode(),
        json.dumps(issue("bd-4", "bell \x07")).encode(), json.dumps(issue("bd-5", notes="x" * 300_000)).encode(),
        json.dumps(issue("bd-6", dependencies=[{"depends_on_id": 5}, 7], labels=[None, 3], comments="x")).encode(),
    ])  # fmt: skip

    report = run_import(memory, beads.read("i", data))

    assert [entry.place for entry in report.accepted] == ["i:1", "i:13"]
    assert sorted(place for place, _ in refusals(report)) == sorted(f"i:{n}" for n in (2, 3, 4, 5, 6, 7, 9, 10, 11, 12))
    assert dict(refusals(report))["i:2"] == "malformed_json"
    assert dict(refusals(report))["i:11"] == "invalid_argument"
    assert dict(refusals(report))["i:12"] == "payload_too_large"


@pytest.mark.parametrize("read", [beads.read, mcp_memory.read])
def test_a_utf_16_file_or_a_latin_1_line_is_refused_with_the_command_that_converts_it(read):
    wide = read("x.jsonl", '{"id": "b-1"}\n'.encode("utf-16"))
    latin = read("x.jsonl", b'{"id": "b-1", "title": "\xfcber"}\n')

    assert [(each.place, each.error.detail) for each in wide.broken] == [
        ("x.jsonl", "not UTF-8 text: it contains U+0000")
    ]
    assert [(each.place, each.error.detail) for each in latin.broken] == [("x.jsonl:1", "line 1: not UTF-8 at byte 24")]
    assert all("iconv -f latin1 -t utf-8 FILE" in each.error.hint for each in (*wide.broken, *latin.broken))


def test_notes_with_cr_line_ends_are_read_and_latin_1_notes_refused_with_a_hint():
    old = memory_md.read("CLAUDE.md", b"# Rules\r\r- never print\r- use WAL\r")
    latin = memory_md.read("CLAUDE.md", b"# Rules\n\n- n\xfcr WAL\n")

    assert [(entry.summary, entry.place) for entry in old.entries] == [
        ("never print", "CLAUDE.md:3"),
        ("use WAL", "CLAUDE.md:4"),
    ]
    assert "iconv" in latin.broken[0].error.hint


def test_the_valid_lines_of_a_broken_graph_are_imported(memory):
    data = lines({"type": "entity", "name": "A", "observations": ["x", 5, "x"]}, {"type": "other"},
                 {"type": "relation", "from": "A"}, {"type": "entity", "observations": []})  # fmt: skip

    report = run_import(memory, mcp_memory.read("m", data))

    assert [entry.summary for entry in report.accepted] == ["A: x"]
    assert [place for place, _ in refusals(report)] == ["m:1", "m:2", "m:3", "m:4"]
    assert report.left_out == {"repeated in the file": 1}


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "marked"])
def test_a_graph_in_one_object_is_read_like_a_graph_in_lines(mark):
    entity = {"name": "A", "entityType": "person", "observations": ["x"]}
    relation = {"from": "A", "to": "B", "relationType": "knows"}
    graph = {"entities": [entity, "lost"], "relations": [relation]}

    reading = mcp_memory.read("m", mark + json.dumps(graph).encode())

    by_line = mcp_memory.read("m", lines({"type": "entity", **entity}, {"type": "relation", **relation}))
    assert [entry.fields["summary"] for entry in reading.entries] == ["A (person): x", "A knows B"]
    assert [each.summary for each in reading.entries] == [each.summary for each in by_line.entries]
    assert [each.place for each in reading.entries] == ["m: entity 1", "m: relation 1"]


@pytest.mark.parametrize("text", ['["entities"]', '{"entities": 5}', '{"entities": [', '"entities"'])
def test_malformed_entities_are_refused_with_their_line(text):
    reading = mcp_memory.read("m", text.encode())

    assert (reading.entries, [broken.place for broken in reading.broken]) == ([], ["m:1"])


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("Use WAL for the journal. " + "More of it, " * 40, "Use WAL for the journal. …"),
        ("Oh. Use WAL for the journal! " + "More of it, " * 40, "Oh. Use WAL for the journal! …"),
        ("word " * 100, "word " * 59 + "word…"),
    ],
    ids=["a sentence", "one too short", "no end"],
)
def test_the_summary_of_a_long_note_is_its_first_sentence_or_the_words_that_fit(text, summary):
    (entry,) = md(text).entries

    assert (entry.summary, len(summary) <= note_words.LONGEST) == (summary, True)
    assert entry.fields["detailed_explanation"] == text.strip()


@pytest.mark.parametrize(("most", "commits"), [(8 << 20, 1), (50_000, 8)], ids=["at once", "in parts"])
def test_a_large_import_is_split_into_commits_and_keeps_its_links(memory, monkeypatch, most, commits):
    monkeypatch.setattr("jidomem.exchange.synchroniser._AT_ONCE", most)
    names = {n: blocked_by(f"bd-{n // 2}", f"bd-{n - 5}") for n in range(5, 80)}
    reading = beads.read("i", lines(*(issue(f"bd-{n}", f"Do {n}", **names.get(n, {})) for n in range(80))))

    report = run_import(memory, reading)
    repeated = run_import(memory, reading)

    assert len(files_of(memory)) == commits
    assert [entry.summary for entry in report.entries] == [entry.summary for entry in reading.entries]
    assert [entry.outcome for entry in repeated.entries] == [None] * 80
    properties = {entry.summary: get_memory(memory, entry.iri)["properties"] for entry in repeated.entries}
    iris = {entry.summary: entry.iri for entry in repeated.entries}
    for n in names:
        assert set(properties[f"Do {n}"]["blockedBy"]) == {iris[f"Do {n // 2}"], iris[f"Do {n - 5}"]}
    assert repeated.notes == []


def test_a_dry_run_judges_each_entry_and_writes_nothing(memory):
    report = run_import(memory, read("beads/issues.jsonl"), dry_run=True)

    assert [entry.outcome.commit for entry in report.accepted] == [None] * 7
    assert files_of(memory) == []


@settings(max_examples=60)
@given(st.binary(max_size=80) | st.text(alphabet="-*# \n`~[]x>1.:|<!é@", max_size=80).map(str.encode))
def test_any_file_is_read_without_an_internal_error(data):
    for module in KINDS.values():
        reading = module.read("f", data)
        assert all(entry.summary and entry.place.startswith("f:") for entry in reading.entries)
        assert all(isinstance(broken.error, JidomemError) for broken in reading.broken)


@settings(max_examples=100)
@given(
    st.lists(st.sampled_from(["- Use ab here\n", "  - Run aab now\n", "Keep b short.\n", "\n", "# A\n", "> Add ba\n"]))
)
def test_each_sentence_of_a_page_is_in_one_of_its_memories(lines):
    text = "".join(lines)

    imported = " ".join(str(value) for entry in md(text).entries for value in entry.fields.values())
    assert set(re.findall(r"\b[ab]+\b", text.replace("# A", ""))) <= set(re.findall(r"\b[ab]+\b", imported))


def test_the_import_command_counts_added_unchanged_refused_and_omitted_entries(tmp_path, monkeypatch):
    def run(*arguments, code=0):
        result = CliRunner().invoke(cli, arguments)
        assert result.exit_code == code, result.stderr
        return result

    monkeypatch.chdir(tmp_path)
    run("init", "-q", "--project", "p")
    (tmp_path / "issues.jsonl").write_bytes((CASES / "beads" / "issues.jsonl").read_bytes() + b"{\n")

    first = run("root", "import", "beads", "issues.jsonl", code=2)
    repeated = run("root", "import", "beads", "issues.jsonl", "--json", code=2)

    assert "7 added, 0 unchanged, 1 refused, 1 left out (deleted in beads), 1 notes" in first.stderr
    assert "issues.jsonl:9" in first.stdout
    assert json.loads(repeated.stdout.splitlines()[-1])["counts"] == {
        "kept": 0, "here already": 7, "refused": 1,
        "added": 0, "changed": 0, "moved": 0, "removed": 0, "conflict": 0, "redacted": 0, "unchanged": 7,
    }  # fmt: skip
    assert "7 more proposals have no conflict: jidomem review" in run("review", "--conflicts").stderr


def test_malformed_parts_of_an_issue_are_omitted_and_counted():
    odd = issue("a", dependencies=["b", {"type": "blocks"}], labels="urgent", comments=[{"text": "so"}, "bare"])

    reading = beads.read("i", lines(odd, issue("b", labels=["x", 7], dependencies=None)))

    assert reading.left_out == {
        "an entry of dependencies without depends_on_id": 2,
        "labels that are not a list": 1,
        "an entry of comments without text": 1,
        "a label that is not a text": 1,
    }
    assert len(reading.entries) == 2


HOSTILE = {
    "ticks": "`" * 200_000,
    "blank lines": "\n" * 200_000,
    "links that never end": "](" * 50_000,
    "places in a file": f"`{':1' * 100_000}x`",
}


@pytest.mark.parametrize("construct", HOSTILE)
def test_the_mentions_of_a_hostile_page_are_found(construct):
    text = f"See `src/a.py`.\n\n{HOSTILE[construct]}\n"

    assert mentions(text, {"src/a.py": "src/a.py"}.get) == ["src/a.py"]


def test_the_path_patterns_of_a_page_are_limited_to_200():
    many = scopes("web/.cursor/rules/a.mdc", f"---\nglobs: {'{a,b}' * 40}\n---\n- Mobile first\n")
    long = scopes("web/.cursor/rules/a.mdc", f"---\nglobs: {'a,' * 400_000}\n---\n- Mobile first\n")

    assert len(many) == len(set(many)) == 200
    assert long == ["web/**/a"]
