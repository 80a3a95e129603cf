"""The forms of a text: each is found, reported and redacted; similar texts are unchanged."""

import re
from collections import Counter
from copy import copy
from functools import cache
from random import Random

import pytest
from conftest import fixed_sources, intent

import jidomem
from jidomem.base.stems import Stemmer
from jidomem.base.words import fold_separators
from jidomem.curation.find_text import (
    AS_IT_IS,
    IN_A_NAME,
    OTHER_FORM,
    OTHER_SEPARATORS,
    OVER_LINE_ENDS,
    TextForms,
    fold,
    leftovers,
    variants,
)
from jidomem.errors import NotFound
from jidomem.rdf.terms import parse_literal
from jidomem.rdf.vocab import jido

PHONE = "+49 170 1234567"
FORMS = {  # text -> the form in which it contains the number
    "call +49 170 1234567": "as it is",
    "call +49  170\n1234567 today": "in other case, white space or Unicode form",
    "call +49-170/123 45 67": "with other separators",
    "call 0049 (170) 123-45-67": "with other separators",
    "see tel:%2b49%20170%201234567": "percent-encoded",
    "see tel:%252B49%2520170%25201234567": "percent-encoded",
    r'{"tel": "\u002b49 170 1234567"}': "escaped",
    "call &#43;49 &#49;70 1234567": "escaped",
    "call \uff0b\uff14\uff19 170\u200b 1234567": "in other case, white space or Unicode form",
}
SIMILAR = ("call +49 170 12345678", "call 1 49 170 12345 678", "on 2049-170, 1234567x", "49 and 170 and 1234567")


def test_lines_are_joined_as_by_a_pattern_over_their_ends():
    random, line_end = Random(8), re.compile(r"[ \t]*-?[ \t]*\r?\n[ \t>|#*/]*")
    for _ in range(2_000):
        text = "".join(random.choices(" \t-\r\n\n>|#*/ab", k=random.randint(1, 14))) + "\n"
        joined = [other for form, other in variants(text) if form == OVER_LINE_ENDS]
        assert joined == [fold(line_end.sub(between, text)) for between in ("", " ")]


def test_a_text_is_found_by_its_words_first_as_by_its_patterns_alone():
    random, found = Random(9), Counter()
    parts = [
        "okapi",
        "zoë",
        "1",
        "70",
        " ",
        "-",
        "\n",
        "%20",
        "&#49;",
        "é",
        "/",
        "\u200b",
        "OKAPI",
        "\\u0031",
        "170 1234",
    ]
    forms_of = cache(TextForms)
    for _ in range(5_000):
        text, between = ("".join(random.choices(parts, k=random.randint(1, 3))) for _ in range(2))
        document = random.choice([text.upper(), text.replace(" ", "-"), *parts]) + between + random.choice(parts)
        form = forms_of(text)
        plain = copy(form)
        object.__setattr__(plain, "words", frozenset())

        expected = plain.form_in(variants(document))
        assert form.form_in(variants(document)) == expected, (text, document)
        found[expected] += 1
    assert min(found[None], found[AS_IT_IS] + found[OTHER_FORM], found[IN_A_NAME], found[OTHER_SEPARATORS]) > 5


def content_below(root):
    paths = [path for path in sorted(root.rglob("*")) if path.is_file()]
    return "\n".join(f"{path.name}\n{path.read_bytes().decode('utf-8', 'replace')}" for path in paths)


def test_a_number_is_redacted_in_every_form_and_stream_and_similar_numbers_stay(tmp_path):
    with jidomem.open(tmp_path / "root", sources=fixed_sources()) as memory:
        for number, text in enumerate((*FORMS, *SIMILAR)):
            memory.writer.submit_intent("p", intent(summary=text, topic=f"t{number}"))
        memory.writer.submit_intent("p", intent(
            summary="in a session", asserted_in=f"Call {PHONE}", asserted_by=f"phone {PHONE}",
            evidence=["https://example.org/?tel=%2B49%20170%201234567"]))  # fmt: skip
        memory.agent("ana", project="p").update(lambda working: working.world_put("tel", "+49.170.1234567"))

        plan = memory.maintenance.plan("p", None, texts=[PHONE])
        summaries = {
            parse_literal(trace.triple[2]).text: trace.form
            for _, trace in plan.traces
            if trace.triple[1] == jido("summary")
        }
        memory.maintenance.redact(plan, agent="ana", reason="a number of somebody")

        assert summaries == FORMS
        assert plan.working_state == {"working memories": 1}
        assert plan.forms["percent-encoded"] > 2
        remaining = {row["summary"] for row in memory.reader.ask("facts", project="p", include_inactive=True)}
        assert remaining == {*SIMILAR, "in a session"}
        assert memory.agent("ana", project="p").get().world() == {"tel": "[redacted]"}
        assert {memory.journal.verify(stream) for stream in memory.journal.streams()} == {()}
    content = content_below(tmp_path / "root")
    assert "49-170-1234567" not in content
    for similar in SIMILAR:  # as written, as normalized for the search, and as stems in the search text
        for form in (similar, fold_separators(similar), " ".join(stem for _, stem in Stemmer().stems(similar))):
            content = content.replace(form, "")
    assert re.findall(r"49\W{0,3}(?:%\w\w)?170\W{0,3}(?:%\w\w)?123\W?45\W?67", content) == []


@pytest.mark.parametrize(
    ("text", "summary_text", "form"),
    [
        ("Zoë Müller", "by ZOE\u0308 MU\u0308LLER", "in other case, white space or Unicode form"),
        ("Zoë Müller", "in zoë-müller.md", "with the separators of a name"),
        ("Zoe\u0308 Mu\u0308ller", "by Zoë Müller", "in other case, white space or Unicode form"),
        ("Zoë Müller", "at /people/Zo%C3%AB%20M%c3%bcller", "percent-encoded"),
        ("Zoë Müller", r"as Zo\u00eb M\u00FCller", "escaped"),
        ("hunter2hunter", "the key is hun-\n    ter2hunter.", "over line ends"),
        ("hunter2hunter", "> the key is hunter2\n> hunter.", "over line ends"),
        ("hunter2hunter", "hunter2\u00adhunter", "in other case, white space or Unicode form"),
        ("ana@example.org", "by ana-example.org", "with the separators of a name"),
        ("4111 1111 1111 1111", "card 4111111111111111", "with other separators"),
        ("DE89 3704 0044 0532 0130 00", "iban DE89-3704-0044-0532-0130-00", "with other separators"),
        ("Bob", "Bob did", "as it is"),
    ],
)
def test_a_text_is_found_in_its_other_forms(memory, text, summary_text, form):
    memory.writer.submit_intent("p", intent(summary=summary_text))

    (trace,) = [
        trace_of_plan
        for _, trace_of_plan in memory.maintenance.plan("p", None, texts=[text]).traces
        if trace_of_plan.triple[1] == jido("summary")
    ]

    assert trace.form == form


@pytest.mark.parametrize(
    ("text", "summary_text"),
    [
        ("her reply", "for other. Reply now"),
        ("Ana B", "an abacus"),
        ("a-b-c", "abc"),
        ("use it", "because, it"),
        ("4711", "147 11"),
        ("123 4567", "the 1234567890"),
    ],
)
def test_a_similar_text_is_no_form_of_the_text(memory, text, summary_text):
    memory.writer.submit_intent("p", intent(summary=summary_text))

    with pytest.raises(NotFound):
        memory.maintenance.plan("p", None, texts=[text])


@pytest.mark.parametrize(
    ("text", "whole", "longer"),
    [
        ("K-100", ["see K-100", "K-100/2, k-100", "a K-100の請求"], ["of K-1001", "AK-100"]),
        ("Kestrel AG", ["by Kestrel AG.", "in kestrel-ag.md"], ["by Kestrel AGs"]),
        ("4711", ["code:4711"], ["147110", "4711b"]),
        ("hunter2hunter", ["hunter2hunter_"], ["hunter2hunters"]),
        ("田中太郎", ["担当は田中太郎さんです", "田中太郎"], []),
    ],
)
def test_a_text_is_redacted_as_a_whole_word_and_longer_words_are_listed_and_stay(memory, text, whole, longer):
    for summary in (*whole, *longer):
        memory.writer.submit_intent("p", intent(summary=summary, topic=summary))

    plan = memory.maintenance.plan("p", None, texts=[text])
    memory.maintenance.redact(plan, agent="ana", reason="of a customer")

    assert plan.left_out == tuple(sorted(each.removeprefix("of ").removeprefix("by ") for each in longer))
    assert {row["summary"] for row in memory.reader.ask("facts", project="p")} == {*longer}
    if longer:
        with pytest.raises(NotFound, match="only within longer words") as refusal:
            memory.maintenance.plan("p", None, texts=[text])
        assert "--parts" in refusal.value.hint
        memory.maintenance.redact(
            memory.maintenance.plan("p", None, texts=[text], parts=True), agent="ana", reason="all of it"
        )
        assert memory.reader.ask("facts", project="p") == []


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("Zoe", ("Zoë",)),
        ("Zoë", ("Zoe",)),
        ("Zoe Müller", ("Zoe Mueller", "Zoe Muller", "Zoë Müller")),
        ("Mueller", ("Müller",)),
        ("Muller", ("Müller",)),
        ("Zoes", ()),
    ],
)
def test_other_spellings_of_a_text_are_named_and_stay(memory, text, near):
    for number, summary in enumerate(
        ("Zoë Müller calls", "ZOË MÜLLER", "by Zoe Mueller", "Zoe Muller", f"{text} came", "Zoetrope", "Zoea")
    ):
        memory.writer.submit_intent("p", intent(summary=summary, topic=f"t{number}"))

    plan = memory.maintenance.plan("p", None, texts=[text])

    assert {word.casefold() for word in plan.near} == {word.casefold() for word in near}
    assert len(plan.near) == len(near)


def test_a_text_that_is_there_in_another_spelling_only_is_not_found_but_named(memory):
    memory.writer.submit_intent("p", intent(summary="Zoe\u0308 calls"))

    with pytest.raises(NotFound, match="only in other spellings: Zoë"):
        memory.maintenance.plan("p", None, texts=["Zoe"])

    assert [*memory.maintenance.plan("p", None, texts=["ZOË"]).forms] == ["in other case, white space or Unicode form"]


def test_other_spellings_in_working_memory_are_named(memory):
    memory.agent("ana", project="p").update(lambda working: working.world_put("who", "Zoë has the key"))
    with pytest.raises(NotFound, match="p has that text only in other spellings: Zoë"):
        memory.maintenance.plan("p", None, texts=["Zoe"])

    memory.writer.submit_intent("p", intent(summary="Zoe calls"))

    assert memory.maintenance.plan("p", None, texts=["Zoe"]).near == ("Zoë",)


@pytest.mark.parametrize("text", ["jido.ai", "https://jido.ai/ontology", "www.w3.org", "has-timestamp", "01900000"])
def test_terms_and_generated_iris_are_no_occurrences_of_a_text(memory, text):
    memory.writer.submit_intent("p", intent(summary="nothing of the kind", type="task"))

    with pytest.raises(NotFound):
        memory.maintenance.plan("p", None, texts=[text])


def test_a_text_in_a_working_memory_only_is_redacted(memory):
    memory.writer.submit_intent("p", intent())
    memory.agent("ana", project="p").update(
        lambda working: working.world_put("note", "the door opens to hunter2hunter")
    )

    plan = memory.maintenance.plan("p", None, texts=["hunter2hunter"])

    assert (plan.traces, plan.working_state) == ((), {"working memories": 1})
    (record,) = memory.maintenance.redact(plan, agent="ana", reason="a password")
    newest = memory.reader.log("p", limit=1).rows[0]
    assert (newest["commit"], newest["agents"]) == (record.id, ["https://jido.ai/agents/ana"])
    assert (newest["reason"], newest["redacted"], newest["set_aside"]) == ("a password", [], [])
    assert memory.agent("ana", project="p").get().world() == {"note": "[redacted]"}


def test_a_text_in_pages_of_memoryos_only_is_redacted_project_by_project(memory, root):
    for project in ("p", "q"):
        memory.writer.submit_intent(project, intent(applies_to_project=project))
        memory.os("ana", project=project).add("I have an interview at Kestrel AG.", "Noted.")

    plan = memory.maintenance.plan("p", None, texts=["Kestrel"])
    memory.maintenance.redact(plan, agent="ana", reason="private")

    assert (plan.working_state, plan.other_projects) == ({"pages or parts of MemoryOS": 1}, ("q",))
    (left,) = leftovers(root, ["Kestrel"], "p", plan.other_projects)
    assert (left.path.name, "jidomem journal redact --project q" in left.hint) == ("working.sqlite", True)
    memory.maintenance.redact(memory.maintenance.plan("q", None, texts=["Kestrel"]), agent="ana", reason="private")
    assert leftovers(root, ["Kestrel"], "p") == []


def test_a_file_outside_the_redaction_is_listed_with_the_form_and_a_hint(tmp_path):
    for path, text in {
        "config.toml": 'project = "p"  # call +49\u2009170 123\n4567',
        "ontology/call-49-170-1234567.ttl": "",
        "projects/other/memory/1.ttl": "tel:%2B491701234567",
        "projects/p/memory/1.ttl": "+49 170 1234567",
        "projects/p/memory/1.ttl.aside": r'{"tel": "\u002b49 170 1234567"}',
        "index/live": "+49 170 1234567",
        "cache/+49(170)1234567": "",
        "state/log": "84917012345670",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    leftovers_by_path = {
        str(leftover.path.relative_to(tmp_path)): leftover for leftover in leftovers(tmp_path, [PHONE], "p")
    }

    assert {path: (leftover.form, leftover.in_name) for path, leftover in leftovers_by_path.items()} == {
        "cache/+49(170)1234567": ("with other separators", True),
        "config.toml": ("with other separators", False),
        "ontology/call-49-170-1234567.ttl": ("with other separators", True),
        "projects/other/memory/1.ttl": ("with other separators", False),
        "projects/p/memory/1.ttl.aside": ("escaped", False),
    }
    assert leftovers_by_path["ontology/call-49-170-1234567.ttl"].hint.startswith("rename it: mv ")
    assert "jidomem journal redact --project other --text - " in leftovers_by_path["projects/other/memory/1.ttl"].hint
    assert (
        Counter(leftover.hint.split(":")[0] for leftover in leftovers_by_path.values())["edit that file, or delete it"]
        == 1
    )
