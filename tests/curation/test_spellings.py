"""The forms of a text: each is found, reported and redacted; similar texts are left alone."""

import re
from collections import Counter

import pytest
from conftest import fixed_sources, intent

import jidomem
from jidomem.base.stems import Stemmer
from jidomem.base.words import loose
from jidomem.curation.find_text import leftovers
from jidomem.errors import NotFound
from jidomem.rdf.terms import parse_literal
from jidomem.rdf.vocab import jido

PHONE = "+49 170 1234567"
SAID = {  # the text, and the form in which it contains the number
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
OTHERS = ("call +49 170 12345678", "call 1 49 170 12345 678", "on 2049-170, 1234567x", "49 and 170 and 1234567")


def everything_below(root):
    paths = [path for path in sorted(root.rglob("*")) if path.is_file()]
    return "\n".join(f"{path.name}\n{path.read_bytes().decode('utf-8', 'replace')}" for path in paths)


def test_a_number_goes_in_whatever_form_and_stream_it_stands_and_no_other_goes(tmp_path):
    with jidomem.open(tmp_path / "root", sources=fixed_sources()) as memory:
        for number, text in enumerate((*SAID, *OTHERS)):
            memory.writer.submit_intent("p", intent(summary=text, topic=f"t{number}"))
        memory.writer.submit_intent("p", intent(
            summary="in a session", asserted_in=f"Call {PHONE}", asserted_by=f"phone {PHONE}",
            evidence=["https://example.org/?tel=%2B49%20170%201234567"]))  # fmt: skip
        memory.agent("ana", project="p").update(lambda held: held.world_put("tel", "+49.170.1234567"))

        plan = memory.keeper.plan("p", None, texts=[PHONE])
        summaries = {parse_literal(t.triple[2]).text: t.form for _, t in plan.traces if t.triple[1] == jido("summary")}
        memory.keeper.redact(plan, agent="ana", reason="a number of somebody")

        assert summaries == SAID
        assert plan.working_state == {"working memories": 1}
        assert plan.forms["percent-encoded"] > 2
        left = {row["summary"] for row in memory.reader.ask("facts", project="p", include_inactive=True)}
        assert left == {*OTHERS, "in a session"}
        assert memory.agent("ana", project="p").get().world() == {"tel": "[redacted]"}
        assert {memory.journal.verify(stream) for stream in memory.journal.streams()} == {()}
    whole = everything_below(tmp_path / "root")
    assert "49-170-1234567" not in whole
    for other in OTHERS:  # as written, as it is looked for, and by its stems in the search text
        for form in (other, loose(other), " ".join(stem for _, stem in Stemmer().stems(other))):
            whole = whole.replace(form, "")
    assert re.findall(r"49\W{0,3}(?:%\w\w)?170\W{0,3}(?:%\w\w)?123\W?45\W?67", whole) == []


@pytest.mark.parametrize(
    ("text", "said", "form"),
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
def test_a_text_is_found_in_its_other_forms(memory, text, said, form):
    memory.writer.submit_intent("p", intent(summary=said))

    (found,) = [t for _, t in memory.keeper.plan("p", None, texts=[text]).traces if t.triple[1] == jido("summary")]

    assert found.form == form


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("her reply", "for other. Reply now"),
        ("Ana B", "an abacus"),
        ("a-b-c", "abc"),
        ("use it", "because, it"),
        ("4711", "147 11"),
        ("123 4567", "the 1234567890"),
    ],
)
def test_what_only_looks_like_a_text_is_none_of_its_forms(memory, text, said):
    memory.writer.submit_intent("p", intent(summary=said))

    with pytest.raises(NotFound):
        memory.keeper.plan("p", None, texts=[text])


@pytest.mark.parametrize("text", ["jido.ai", "https://jido.ai/ontology", "www.w3.org", "has-timestamp", "01900000"])
def test_no_form_of_a_text_is_looked_for_in_terms_and_minted_names(memory, text):
    memory.writer.submit_intent("p", intent(summary="nothing of the kind", type="task"))

    with pytest.raises(NotFound):
        memory.keeper.plan("p", None, texts=[text])


def test_a_text_that_only_an_agent_holds_is_taken_out_though_no_commit_says_it(memory):
    memory.writer.submit_intent("p", intent())
    memory.agent("ana", project="p").update(lambda held: held.world_put("note", "the door opens to hunter2hunter"))

    plan = memory.keeper.plan("p", None, texts=["hunter2hunter"])

    assert (plan.traces, plan.working_state) == ((), {"working memories": 1})
    assert memory.keeper.redact(plan, agent="ana", reason="a password") == []
    assert memory.agent("ana", project="p").get().world() == {"note": "[redacted]"}


def test_a_file_that_no_redaction_rewrites_is_named_with_the_form_and_the_way_on(tmp_path):
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

    found = {str(each.path.relative_to(tmp_path)): each for each in leftovers(tmp_path, [PHONE], "p")}

    assert {path: (each.form, each.in_name) for path, each in found.items()} == {
        "cache/+49(170)1234567": ("with other separators", True),
        "config.toml": ("with other separators", False),
        "ontology/call-49-170-1234567.ttl": ("with other separators", True),
        "projects/other/memory/1.ttl": ("with other separators", False),
        "projects/p/memory/1.ttl.aside": ("escaped", False),
    }
    assert found["ontology/call-49-170-1234567.ttl"].hint.startswith("rename it: mv ")
    assert "jidomem journal redact --project other --text - " in found["projects/other/memory/1.ttl"].hint
    assert Counter(each.hint.split(":")[0] for each in found.values())["edit that file, or delete it"] == 1
