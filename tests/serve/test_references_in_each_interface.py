"""Every field of an intent that names a memory takes a short id, in each interface."""

import json

import pytest
from click.testing import CliRunner
from conftest import intent

import jidomem
from jidomem.errors import IntentRefused
from jidomem.rdf.vocab import short_id
from jidomem.serve.app import create_app
from jidomem.serve.mcp.client_session import ClientSessions, call
from jidomem.serve.mcp.tools import TOOLS
from jidomem_cli.main import cli

ONE = "https://jido.ai/memory/0197a1b2-0000-7000-8000-0000000000aa"
TWO = "https://jido.ai/memory/0197a1b2-0000-7000-8000-0000000000bb"
ENDED = "https://jido.ai/memory/0197a1b2-0000-7000-8000-0000000000cc"
#: Field -> the memory it names, and its property.
REFERENCES = {
    "supersedes": (ONE, "supersedes"),
    "invalidates": (ONE, "invalidates"),
    "coexists_with": (ONE, "coexistsWith"),
    "revives": (ENDED, "revives"),
    "evidence": (ONE, "derivedFrom"),
    "about": (ONE, "about"),
}
TOOL = {tool.name: tool for tool in TOOLS}


@pytest.fixture
def memory(tmp_path):
    with jidomem.open(tmp_path / "root", project="p", agent="ana") as memory:
        for item, text in ((ONE, "the port is 80"), (TWO, "tea is hot"), (ENDED, "the sky is green")):
            memory.writer.submit_intent("p", intent(iri=item, summary=text, asserted_by="ana"))
        memory.writer.invalidate("p", ENDED, reason="look")
        yield memory


def by_python(memory, fields):
    return memory.remember("another text", **fields).iri


def by_json(memory, fields):
    values = intent(summary="another text", asserted_by="ana", **fields)
    result = CliRunner().invoke(
        cli, ["--root", memory.settings.place, "--project", "p", "submit", "--json"], input=json.dumps(values)
    )
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["iri"]


def by_options(memory, fields):
    options = [word for name, values in fields.items() for word in (f"--{name.replace('_', '-')}", *values)]
    words = ["--root", memory.settings.place, "--project", "p", "remember", "another text", "--agent", "ana", "--json"]
    result = CliRunner().invoke(cli, [*words, *options])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["iri"]


def by_http(memory, fields):
    values = intent(summary="another text", asserted_by="ana", **fields)
    answer = create_app(memory).test_client().post("/projects/p/intents", json=values)
    assert answer.status_code == 201, answer.json
    return answer.json["iri"]


def by_lines(memory, fields):
    line = json.dumps(intent(summary="another text", asserted_by="ana", **fields))
    client = create_app(memory).test_client()
    answer = client.post("/projects/p/intents", data=line, content_type="application/x-ndjson")
    return json.loads(answer.data)["iri"]


def by_mcp(memory, fields):
    own = {name: value for name, value in fields.items() if name in TOOL["remember"].takes}
    rest = {name: value for name, value in fields.items() if name not in own}
    answer = call(TOOL["remember"], ClientSessions(memory).of("ana"), {"text": "another text", **own, "fields": rest})
    assert not answer.is_error, answer.words()
    return answer.values["iri"]


@pytest.mark.parametrize("submit", [by_python, by_json, by_options, by_http, by_lines, by_mcp])
@pytest.mark.parametrize("field", REFERENCES)
def test_a_short_id_names_a_memory_in_every_field_in_each_interface(memory, field, submit):
    item, name = REFERENCES[field]

    recorded = submit(memory, {field: [short_id(item)]})

    memory.catch_up("p")
    assert memory.reader.get_memory("p", recorded)["properties"][name] == [item]


def test_a_short_id_names_a_memory_in_an_extra_triple(memory):
    recorded = memory.remember("one more", extra_triples=[["https://example.org/of", {"@id": short_id(TWO)}]])

    assert memory.reader.get_memory("p", recorded.iri)["properties"]["https://example.org/of"] == [{"@id": TWO}]


def test_an_unknown_hash_stays_a_text_of_about_and_evidence(memory):
    recorded = memory.remember("one more", evidence=["deadbeef"], about=["0badf00d"])

    properties = memory.reader.get_memory("p", recorded.iri)["properties"]
    assert properties["about"] == ["0badf00d"]
    assert ONE not in properties["derivedFrom"]


@pytest.mark.parametrize("field", ["supersedes", "invalidates", "coexists_with", "revives"])
def test_an_ambiguous_id_is_refused_with_its_candidates_and_an_unknown_one_with_a_hint(memory, field):
    with pytest.raises(IntentRefused) as ambiguous:
        memory.remember("another text", **{field: ["0197a1b2"]})
    with pytest.raises(IntentRefused) as unknown:
        memory.remember("another text", **{field: ["deadbeef"]})

    (violation,) = ambiguous.value.violations
    assert (violation.code, violation.field) == ("unknown_reference", field)
    assert set(violation.allowed) == {ONE, TWO, ENDED}
    assert all(item in violation.hint for item in (ONE, TWO, ENDED))
    assert (unknown.value.detail, unknown.value.violations[0].field) == ("p has no memory 'deadbeef'", field)
    assert "4 or more characters of its id" in unknown.value.hint


def test_an_unknown_reference_is_reported_with_the_other_faults_of_the_intent(memory):
    answer = create_app(memory).test_client().post(
        "/projects/p/intents", json=intent(supersedes=["deadbeef"], confidence="certain", colour="red")
    )  # fmt: skip

    assert {each["field"] for each in answer.json["violations"]} == {"supersedes", "confidence", "colour"}


def read_by_command(memory, item):
    words = ["--root", memory.settings.place, "--project", "p", "show", item, "--json"]
    return CliRunner().invoke(cli, words).stdout


def read_by_http(memory, item):
    return create_app(memory).test_client().get(f"/projects/p/memories/{item}").text


@pytest.mark.parametrize("read", [read_by_command, read_by_http])
def test_a_number_that_json_cannot_write_is_an_object_with_its_datatype_in_each_interface(memory, read):
    name, double = "https://example.org/heat", "http://www.w3.org/2001/XMLSchema#double"
    infinite = [{"@value": text, "@type": double} for text in ("INF", "-INF", "NaN")]
    item = memory.remember("the oven is hot", extra_triples=[[name, value] for value in (*infinite, 1.5)]).iri

    values = json.loads(read(memory, item), parse_constant=pytest.fail)["properties"][name]

    assert sorted(values, key=str) == sorted([*infinite, 1.5], key=str)
