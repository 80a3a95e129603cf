"""The answer of each route, from a client in this process."""

import csv
import io
import json
import re
from dataclasses import replace
from urllib.parse import quote

import pytest
from conftest import decision, intent
from rdflib import Graph
from rdflib.compare import isomorphic

import jidomem
from jidomem.base.clock import format_timestamp
from jidomem.errors import InvalidRequest
from jidomem.extras.web.pages import PAGES
from jidomem.records.policy import PolicyChange
from jidomem.runtime.user_config import RootLimits
from jidomem.serve.app import create_app
from jidomem.serve.listener import LOOPBACK, hosts_of, refuse_unprotected
from jidomem.serve.routes import ROUTES

ITEM = "https://jido.ai/memory/01900000-0000-7000-8000-000000000001"


@pytest.fixture
def app(memory):
    memory.writer.submit_intent("p", decision(summary='Use\tOxigraph, "now"', topic="store"))
    memory.writer.start_session("p", "morning", agent="ana")
    memory.writer.submit_intent("p", intent(type="task", summary="Ship it", assigned_to="ana"))
    memory.writer.submit_intent("p", intent(type="error", summary="It is lost", severity="high"))
    return create_app(memory)


@pytest.fixture
def client(app):
    return app.test_client()


def set_limits(memory, **limits):
    """Set limits while the memory is served."""
    memory.settings = replace(memory.settings, limits=RootLimits(**limits))


def as_json(value):
    """A value of the reader as JSON has it."""
    return json.loads(json.dumps(value, default=format_timestamp))


def test_every_named_query_answers_over_http_as_in_python(client, memory):
    names = [
        query.name
        for query in memory.playbook
        if all(p.default is not None or p.name == "project" for p in query.params)
    ]
    assert len(names) > 15
    for name in names:
        for options in ({}, {"as_of": "2026-11-21T08:00:03Z"}, {"valid_at": "2026-11-21"}):
            query = memory.playbook.get(name)
            if "valid_at" in options and not query.takes("validAt"):
                continue
            answer = client.get(f"/projects/p/queries/{name}", query_string=options)
            assert answer.json["rows"] == as_json(memory.reader.ask(name, project="p", **options)), name
            assert client.get(f"/projects/p/queries/{query.role}/{name}", query_string=options).json == answer.json


def test_rows_are_given_as_csv_and_tsv_by_suffix_or_accept_header(client, memory):
    rows = memory.reader.ask("active-decisions", project="p")
    by_suffix = client.get("/projects/p/queries/active-decisions.csv")
    by_accept = client.get(
        "/projects/p/queries/active-decisions", headers={"Accept": "text/csv, application/json;q=0.5"}
    )
    tabs = client.get("/projects/p/queries/active-decisions.tsv")

    assert by_suffix.data == by_accept.data
    assert by_suffix.mimetype == "text/csv"
    parsed = list(csv.DictReader(io.StringIO(by_suffix.text, newline="")))
    assert [row["summary"] for row in parsed] == [row["summary"] for row in rows] == ['Use\tOxigraph, "now"']
    assert (tabs.mimetype, tabs.text.splitlines()[1].split("\t")[1]) == (
        "text/tab-separated-values",
        'Use\\tOxigraph, "now"',
    )
    for suffix, form in (("ttl", "Turtle"), ("xml", "XML"), ("yaml", "yaml")):
        for name in ("active-decisions", "curator/facts"):
            refused = client.get(f"/projects/p/queries/{name}.{suffix}")
            assert (refused.status_code, refused.json["code"]) == (406, "not_acceptable")
            assert refused.json["detail"] == f"rows cannot be {form}"
            assert refused.json["hint"] == f"ask for {name}.json, .csv or .tsv"
    assert client.get("/projects/p/queries/no-such.xml").json["code"] == "unknown_query"


def test_each_page_links_to_the_next_one(client, memory):
    for number in range(5):
        memory.writer.submit_intent("p", intent(summary=f"fact {number}"))
    pages, path = [], "/projects/p/queries/facts?limit=2"
    while path:
        page = client.get(path)
        pages.append([row["summary"] for row in page.json["rows"]])
        memory.writer.submit_intent("p", intent(summary=f"later {len(pages)}"))
        path = (re.match(r'<(.*)>; rel="next"', page.headers.get("Link", "")) or [None, None])[1]

    assert [len(page) for page in pages] == [2, 2, 1]
    assert sorted(summary for page in pages for summary in page) == [f"fact {number}" for number in range(5)]


def test_rows_above_the_limit_are_refused_and_given_in_pages(client, memory):
    set_limits(memory, query_rows=1)
    memory.writer.submit_many("p", [intent(summary="one"), intent(summary="two")])

    whole, page = client.get("/projects/p/queries/facts"), client.get("/projects/p/queries/facts?limit=1")

    assert (whole.status_code, whole.json["code"]) == (413, "result_too_large")
    assert (page.status_code, len(page.json["rows"])) == (200, 1)
    assert "give limit=1, and follow" in whole.json["hint"]
    assert client.get("/projects/p/queries/facts?limit=2").json["code"] == "result_too_large"
    last = client.get("/projects/p/queries/facts", query_string={"limit": 2, "cursor": page.json["cursor"]})
    assert len(last.json["rows"]) == 1
    assert client.get("/projects/p/queries/open-tasks").status_code == 200


def test_a_memory_is_found_by_id_short_id_and_iri_in_each_format(client, memory):
    whole = as_json(memory.reader.get_memory("p", ITEM))

    for name in ("00000001", ITEM.rsplit("/", 1)[1], quote(ITEM, safe=""), quote(ITEM)):
        assert client.get(f"/projects/p/memories/{name}").json == whole
    turtle = client.get("/projects/p/memories/00000001", headers={"Accept": "text/turtle"})
    assert turtle.mimetype == "text/turtle"
    assert f"<{ITEM}> a jido:ArchitecturalDecision ;" in turtle.text
    linked = client.get("/projects/p/memories/00000001", headers={"Accept": "application/ld+json"})
    assert linked.mimetype == "application/ld+json"
    graph = Graph().parse(data=linked.data, format="json-ld")
    assert isomorphic(graph, Graph().parse(data=turtle.data, format="turtle"))


def test_a_memory_and_a_project_are_read_as_of_a_moment(client, memory):
    first = memory.reader.log("p").rows[0]
    before = client.get("/projects/p").json
    memory.writer.invalidate("p", ITEM, reason="wrong")
    turtle = {"Accept": "text/turtle"}

    past = client.get("/projects/p", query_string={"as_of": format_timestamp(first["recorded_at"])}).json
    history = client.get("/projects/p/memories/00000001/history").json["rows"]
    why = client.get("/projects/p/memories/00000001/why").json
    shown = client.get("/projects/p/memories/00000001?as_of=2026-11-21T08:30:00Z", headers=turtle)

    assert (past["version"], past["counts"]) == (before["version"], before["counts"])
    assert history == as_json(memory.reader.history("p", ITEM))
    assert why == as_json(memory.reader.why("p", ITEM))
    assert [each["how"] for each in why["replaced_by"]] == ["invalidated_by"]
    assert [row["status"] for row in history] == ["invalidated", "withdrawal"]
    assert "jido:invalidatedBy" in shown.text
    assert client.get("/projects/p/memories/00000001/history?as_of=2020-01-01").status_code == 404
    assert client.get("/projects/p/memories/00000001?valid_at=2020-01-01", headers=turtle).status_code == 200


def test_a_memory_is_revised_over_http_as_in_python(client, memory):
    def revise(item, query="", headers=None, **values):
        answer = client.post(f"/projects/p/memories/{quote(item, safe='')}/revise{query}", json=values, headers=headers)
        return answer.status_code, answer.json

    def shown(item):
        return memory.reader.get_memory("p", item)

    task = memory.reader.ask("open-tasks", project="p")[0]["task"]
    judged = revise(task, "?dry_run=1", set={"status": "Completed"})
    _, completed = revise(task, set={"status": "Completed"}, reason="merged", asserted_by="ben")
    code, newer = revise(ITEM, supersede="Use Oxigraph 0.5", reason="faster", headers={"Idempotency-Key": "k"})
    retried_supersede = revise(ITEM, supersede="Use Oxigraph 0.5", reason="faster", headers={"Idempotency-Key": "k"})
    undo = {"undo": True, "reason": "slower", "headers": {"Idempotency-Key": "u"}}
    restored, retried = revise("00000001", **undo), revise("00000001", **undo)
    restored_values = restored[1]
    _, confirmed = revise(restored_values["iri"], confirm=True, set={"expires_on": "2030-01-01"})
    _, marker = revise(confirmed["iri"], invalidate=True, reason="wrong")

    assert (judged[0], judged[1]["commit"]) == (200, None)
    assert shown(completed["iri"])["properties"]["hasTaskStatus"] == ["https://jido.ai/ontology#Completed"]
    assert shown(completed["iri"])["properties"]["settledBy"] == ["https://jido.ai/agents/ben"]
    assert (code, retried_supersede[1]["iri"]) == (201, newer["iri"])
    assert (restored[0], {**retried[1], "similar": None}) == (retried[0], {**restored_values, "similar": None})
    assert shown(restored_values["iri"])["properties"]["revives"] == [ITEM]
    assert shown(confirmed["iri"])["invalidated_by"] == [marker["iri"]]
    for values, status, message in (
        ({"confirm": True, "undo": True}, 400, "choose one correction"),
        ({"confirm": "yes"}, 400, "confirm is not true or false"),
        ({"forget": True}, 400, "takes no member 'forget'"),
        ({"set": {"asserted_by": "x"}}, 400, "set cannot set asserted_by"),
        ({"set": {"colour": "red"}}, 422, "colour"),
        ({"supersede": "x"}, 409, "already superseded"),
    ):
        code, refusal = revise(ITEM, **values)
        assert (code, message in json.dumps(refusal)) == (status, True), refusal
    assert revise("ffffffff", undo=True)[0] == 404


def test_a_new_memory_is_201_and_a_duplicate_or_dry_run_is_200(client):
    values = intent(summary="once")
    judged = client.post("/projects/p/intents?dry_run=1", json=values)
    first = client.post("/projects/p/intents", json=values)
    repeated = client.post("/projects/p/intents", json=values)

    assert [answer.status_code for answer in (judged, first, repeated)] == [200, 201, 200]
    assert judged.json["commit"] is None
    assert repeated.json == {**first.json, "status": "deduplicated", "filled": {}}
    assert client.get(first.headers["Location"]).json["iri"] == first.json["iri"]


def test_an_idempotency_key_in_the_header_gives_a_retry_the_first_receipt(client):
    def submit(**fields):
        return client.post("/projects/p/intents", json=intent(**fields), headers={"Idempotency-Key": "k-1"})

    first, repeated, other = submit(), submit(), submit(summary="another")

    assert first.json == repeated.json
    assert (first.status_code, repeated.status_code, other.status_code) == (201, 201, 409)
    assert other.json["code"] == "idempotency_mismatch"
    assert submit(idempotency_key="k-2").json["code"] == "invalid_argument"
    both = client.post("/projects/p/intents", json=[intent()], headers={"Idempotency-Key": "k-1"})
    assert both.json["code"] == "invalid_argument"


def test_a_key_beyond_ascii_in_the_header_is_that_of_the_field(client):
    header = {"Idempotency-Key": "Fall-ü9".encode().decode("latin-1")}  # as WSGI gives each byte

    first = client.post("/projects/p/intents", json=intent(), headers=header)
    other = client.post("/projects/p/intents", json=intent(summary="another", idempotency_key="Fall-ü9"))

    assert (first.status_code, other.json["code"]) == (201, "idempotency_mismatch")
    for wrong in ("", " ", "a, b", "\xfc"):
        refused = client.post("/projects/p/intents", json=intent(), headers={"Idempotency-Key": wrong})
        assert (refused.status_code, refused.json["code"]) == (400, "invalid_argument"), wrong


def test_a_turn_with_a_key_is_recorded_once(client, memory):
    def record(key, path="c", **texts):
        headers = {} if key is None else {"Idempotency-Key": key}
        return client.post(f"/projects/p/conversations/{path}", json=texts, headers=headers)

    tools = [{"name": "grep", "parameters": {"q": "x"}, "result": [1]}]
    first, again = (record("k", prompt="hello", answer="hi", tools=tools) for _ in range(2))
    other, shorter = record("k", prompt="bye"), record("k", prompt="hello", answer="hi")
    elsewhere, plain = record("k", "d", prompt="hello"), [record(None, prompt="hello").json["index"] for _ in range(2)]

    assert (first.status_code, again.status_code, again.json) == (201, 201, first.json)
    assert [each.json["code"] for each in (other, shorter)] == ["idempotency_mismatch"] * 2
    assert (elsewhere.json["index"], plain) == (0, [1, 2])
    assert [turn.prompt for turn in memory.conversation("c", "p").turns()] == ["hello"] * 3


@pytest.mark.parametrize(
    "route", [each for each in ROUTES if each.writes and each.statuses], ids=lambda each: f"{each.method} {each.path}"
)
def test_a_header_that_a_write_cannot_honour_is_refused(client, memory, route):
    path, before = re.sub(r"\{\w+\}", "p", route.path), memory.catch_up("p")

    for header in ("If-Match", "If-Unmodified-Since", "Idempotency-Key"):
        if header in route.headers:
            continue
        refused = client.open(path, method=route.method, json={}, headers={header: '"x"'})
        assert (refused.status_code, refused.json["code"]) == (400, "invalid_argument")
        assert header in refused.json["detail"]
        assert refused.json["hint"].startswith("leave it out")
    assert memory.catch_up("p") == before


@pytest.mark.parametrize(
    ("body", "headers", "status", "says"),
    [
        (b"{}", {"Content-Encoding": "gzip"}, 415, ("packed", "without the header Content-Encoding")),
        (b" ", {}, 400, ("the body is empty", "send JSON")),
        ('{"a": 1}'.encode("utf-16"), {}, 400, ("not UTF-8", "UTF-8")),
        (b'[{"a": 1},\n {"a": 1, "a": 2}]', {}, 400, ("line 2 column 11: the key 'a' is given twice", "once")),
        (b'{"\\"{": {"a": 0},\n "limit": NaN}', {}, 400, ("line 2 column 11: NaN is not JSON", "finite")),
    ],
)
def test_an_unreadable_body_is_refused_with_its_place_and_repair(client, body, headers, status, says):
    headers = {"Content-Type": "application/json; charset=utf8", **headers}
    refused = client.post("/projects/p/intents", data=body, headers=headers)

    assert refused.status_code == status
    assert all(part in refused.json[name] for part, name in zip(says, ("detail", "hint"), strict=True)), refused.json


@pytest.mark.parametrize(
    ("path", "repair"),
    [
        ("journal?wait=abc", "journal?wait=30"), ("journal?limit=x", "journal?limit=10000"),
        ("queries/facts?limit=x", "queries/facts?limit=50"),
    ],
)  # fmt: skip
def test_the_number_in_a_hint_is_accepted(client, memory, path, repair):
    memory.writer.submit_intent("p", intent())
    name = repair.partition("?")[2]

    assert client.get(f"/projects/p/{path}").json["hint"] == f"give {name}, or leave it out"
    assert client.get(f"/projects/p/{repair}").status_code == 200


def test_the_parameters_in_a_hint_are_accepted(client):
    hint = client.get("/projects/p/queries/facts?page=2").json["hint"]
    assert hint == "it takes as_of, valid_at, include_inactive, limit, cursor"


def test_each_intent_of_an_array_has_its_outcome_in_order(client):
    values = [intent(summary="first"), intent(type="fakt"), 7, intent(summary="last")]
    mixed, sound = client.post("/projects/p/intents", json=values), client.post("/projects/p/intents", json=values[:1])
    new = client.post("/projects/p/intents", json=[intent(summary="new"), intent(summary="newer")])

    assert [outcome.get("status") or outcome["code"] for outcome in mixed.json] == [
        *("asserted", "unknown_type", "invalid_argument", "asserted"),
    ]
    assert [outcome.get("position") for outcome in mixed.json] == [None, 1, 2, None]
    assert (mixed.status_code, sound.status_code, new.status_code) == (200, 201, 201)
    assert client.post("/projects/p/intents", json=[]).json == []
    assert client.post("/projects/Bad/intents", json=values).json["code"] == "invalid_project"


def test_a_line_above_the_limit_ends_the_stream_with_a_refusal(client, memory):
    set_limits(memory, line=1000)
    text = "\n\n".join(json.dumps(values) for values in (intent(), intent(summary="x" * 2000), intent(summary="after")))

    lines = client.post("/projects/p/intents", data=text, content_type="application/x-ndjson").text.splitlines()

    first, second = map(json.loads, lines)
    assert (first["status"], second["code"], second["position"]) == ("asserted", "payload_too_large", 1)


def test_a_body_above_the_limit_is_refused_with_and_without_a_declared_length(client):
    large = b" " * (1024 * 1024 + 1)

    declared = client.post("/projects/p/intents", data=large, content_type="application/json")
    undeclared = client.post("/projects/p/intents", input_stream=io.BytesIO(large), content_type="application/json")

    assert (declared.status_code, declared.json["code"]) == (413, "payload_too_large")
    assert (undeclared.status_code, undeclared.json["code"]) == (413, "payload_too_large")


def test_a_session_is_opened_moved_and_closed(client):
    opened = client.post("/projects/p/sessions", json={"name": "evening", "agent": "bo", "continues": "morning"})
    moved = client.patch("/projects/p/sessions/evening", json={"phase": "review", "status": "paused", "agent": "ana"})
    shown = client.get(opened.headers["Location"])
    closed = client.patch("/projects/p/sessions/evening", json={"status": "closed"})

    assert (opened.status_code, moved.status_code, closed.status_code) == (201, 200, 200)
    assert {name: str(shown.json[name]).rsplit("/", 1)[-1] for name in ("session", "status", "phase", "agent")} == {
        "session": "evening",
        "status": "ontology#Paused",
        "phase": "ontology#ReviewPhase",
        "agent": "bo",
    }
    listed = client.get("/projects/p/sessions").json["rows"]
    assert [row["session"].rsplit("/", 1)[1] for row in listed] == ["s-1", "morning"]
    assert len(client.get("/projects/p/sessions?all=1").json["rows"]) == 3
    assert client.get("/projects/p/sessions/noon").json["code"] == "not_found"


def test_a_session_is_found_by_the_name_that_it_was_opened_with(client):
    for name in ("thread:abc", "7 a.m."):
        client.post("/projects/p/sessions", json={"name": name, "agent": "bo"})
        shown = client.get(f"/projects/p/sessions/{quote(name)}")

        assert (shown.status_code, shown.json.get("agent")) == (200, "https://jido.ai/agents/bo")
    assert client.get("/projects/p/sessions/thread:ab").json["code"] == "not_found"


def test_a_project_shows_its_counts_and_its_version_is_awaited(client):
    shown = client.get("/projects/p").json
    receipt = client.post("/projects/p/intents", json=intent()).json
    awaited = client.get(f"/projects/p?min_position={quote(receipt['version'])}")

    assert shown["version"].startswith("4-")
    assert client.get("/projects").json["projects"][0]["version"] == receipt["version"]
    assert shown["counts"]["ArchitecturalDecision"] == {"active": 1}
    assert awaited.json["version"] == receipt["version"]
    ready = {"status": "ok", "versions": {"p": receipt["version"]}, "behind": {}, "damage": {}}
    assert client.get("/readyz").json == ready


@pytest.mark.parametrize(
    ("method", "path", "options", "hint"),
    [
        ("GET", "/projects/p/queries/facts?limt=1", {}, "did you mean 'limit'?"),
        ("GET", "/projects/p/queries/facts?wat=1", {}, "it takes"),
        ("GET", "/projects/p/queries/facts?asOf=2026-11-21", {}, "give as_of instead"),
        ("GET", "/projects/p/queries/facts?limit=0", {}, "give limit=50"),
        ("GET", "/projects/p/queries/facts?limit=1&limit=2", {}, "give limit once"),
        ("GET", "/projects/p/queries/facts?include_inactive=maybe", {}, "give include_inactive=1"),
        ("GET", "/projects/p/queries/facts?project=q", {}, "the path names question and project"),
        ("GET", "/projects/p/memories/00000001?asof=2026-11-21", {}, "did you mean 'as_of'?"),
        ("GET", "/projects?x=1", {}, "it takes none"),
        ("GET", "/projects/p?min_position=new", {}, "give the version of a receipt: 12-0a1b2c3d4e5f"),
        ("POST", "/projects/p/intents?dryrun=1", {"json": {}}, "did you mean 'dry_run'?"),
        ("POST", "/projects/p/sessions", {"json": {"nam": "x"}}, "did you mean 'name'?"),
        ("POST", "/projects/p/sessions", {"json": {"name": 7}}, 'write "name": "..."'),
        ("POST", "/projects/p/sessions", {"json": []}, "send an object with name, agent, continues"),
        ("PATCH", "/projects/p/sessions/morning", {"json": {}}, "give `status` (such as paused)"),
        ("GET", "/sparql?timeout=1", {}, "give query=SELECT..., or POST it as application/sparql-query"),
        ("GET", "/projects/p/sparql?query=ASK{}&timeout=31", {}, "give timeout=30 or less"),
        ("GET", "/sparql?query=ASK{}&default-graph=urn:x", {}, "did you mean 'default-graph-uri'?"),
        ("POST", "/sparql", {"data": {"qury": "ASK{}"}}, "did you mean 'query'?"),
    ],
)
def test_an_unknown_or_invalid_parameter_is_refused_with_a_hint(client, method, path, options, hint):
    answer = client.open(path, method=method, **options)

    assert (answer.status_code, answer.json["code"]) == (400, "invalid_argument")
    assert hint in answer.json["hint"]


def test_an_update_is_refused_in_every_form(client, memory):
    text, before = "DELETE WHERE { ?s ?p ?o }", memory.catch_up("p")

    answers = [
        client.get("/sparql", query_string={"query": text}),
        client.post("/sparql", data={"query": text}),
        client.post("/sparql", data={"update": text}),
        client.post("/sparql", data=text, content_type="application/sparql-query"),
        client.post("/sparql", data=text, content_type="application/sparql-update"),
    ]

    assert {(answer.status_code, answer.json["code"]) for answer in answers} == {(403, "update_refused")}
    assert memory.catch_up("p") == before


def test_head_answers_as_get_and_options_list_the_methods(client):
    head, options = client.head("/projects/p/queries/facts"), client.options("/projects/p/intents")

    assert (head.status_code, head.data, head.mimetype) == (200, b"", "application/json")
    assert (options.status_code, set(options.headers["Allow"].split(", "))) == (200, {"OPTIONS", "POST"})


def test_a_request_for_another_host_is_refused(client):
    for host in ("localhost", "localhost:8700", "127.0.0.1:8700", "[::1]", "[::1]:8700", "LOCALHOST", "localhost:"):
        assert client.get("/healthz", headers={"Host": host}).status_code == 200, host
    for host in (
        *("example.org", "localhost.example.org", "127.0.0.1.example.org:8700", "0.0.0.0", "localhost.", ":8700"),
        *("localhost@example.org", "example.org:80@localhost", "localhost:80:80", "[::1].example.org", "::1", "[::2]"),
        *("localhost, example.org", "127.1", "2130706433", "[::ffff:127.0.0.1]"),
    ):
        assert client.get("/healthz", headers={"Host": host}).json["code"] == "unknown_host"


@pytest.mark.parametrize(
    ("host", "names", "hosts"),
    [
        ("127.0.0.1", [], []),
        ("localhost", ["here.example"], ["here.example"]),
        ("LocalHost", ["LOCALHOST", "M.example"], ["localhost", "m.example"]),
        ("192.0.2.7", [], ["192.0.2.7"]),
        ("2001:DB8:0::7", ["m.example"], ["[2001:db8::7]", "m.example"]),
        ("::", ["m.example"], ["m.example"]),
    ],
)
def test_the_hosts_of_a_server_are_the_loopback_its_address_and_its_names(host, names, hosts):
    assert hosts_of(host, names) == [*LOOPBACK, *hosts]


def test_a_loopback_name_needs_no_token_in_upper_case():
    refuse_unprotected(hosts_of("127.0.0.1", ["LOCALHOST"]), "root", "here")
    with pytest.raises(InvalidRequest, match="it has no tokens"):
        refuse_unprotected(hosts_of("127.0.0.1", ["M.example"]), "root", "here")


@pytest.mark.parametrize("name", ["http://m.example", "m.example:8443", "m.example/", "", "a b"])
def test_an_invalid_host_name_is_refused(name):
    with pytest.raises(InvalidRequest, match="is not a host name"):
        hosts_of("127.0.0.1", [name])


def test_an_internal_error_is_reported_without_its_cause(memory, capsys, monkeypatch):
    def broken(*arguments, **options):
        raise ZeroDivisionError("secret")

    memory.writer.submit_intent("p", intent())
    monkeypatch.setattr(memory.reader, "ask_page", broken)
    answer = create_app(memory).test_client().get("/projects/p/queries/facts")

    assert (answer.status_code, answer.json["code"]) == (500, "internal_error")
    assert "secret" not in answer.text
    assert "secret" in capsys.readouterr().err


def test_the_description_has_every_route_except_the_pages(app, client):
    document = client.get("/openapi.json").json
    served = {
        (method, re.sub(r"<(?:path:)?(\w+)>", r"{\1}", rule.rule))
        for rule in app.url_map.iter_rules()
        for method in rule.methods - {"HEAD", "OPTIONS"}
    }
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}

    pages = {(route.method, route.path) for route in PAGES}
    assert served - pages == described == {(route.method, route.path) for route in ROUTES}
    assert document["info"]["version"] == jidomem.__version__
    assert pages < served


def test_the_description_is_valid_openapi(client):
    document = client.get("/openapi.json").json
    operations = [(path, operation) for path, methods in document["paths"].items() for operation in methods.values()]

    assert document["openapi"] == "3.1.0"
    assert document["paths"]["/healthz"]["get"]["security"] == []
    assert document["security"] == [{}, {name: [] for name in document["components"]["securitySchemes"]}]
    assert {"title", "version"} <= document["info"].keys()
    ids = [operation["operationId"] for _, operation in operations]
    assert len(set(ids)) == len(ids)
    for path, operation in operations:
        named = [parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "path"]
        assert named == re.findall(r"\{(\w+)\}", path)
        assert all(parameter["required"] for parameter in operation["parameters"] if parameter["in"] == "path")
        assert all({"name", "in", "schema", "description"} <= parameter.keys() for parameter in operation["parameters"])
        assert all(answer["description"] for answer in operation["responses"].values())
        assert {"400", "403", "500"} <= operation["responses"].keys()
    names = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
    assert names == document["components"]["schemas"].keys()


def test_pending_conflicts_are_listed_over_http(client, memory):
    memory.writer.submit_intent("p", intent(summary="a limit", source_type="ExternalDocumentSource"))
    (row,) = client.get("/projects/p/conflicts").get_json()["rows"]
    assert (row["kind"], row["summary"], row["actions"]) == ("proposal", "a limit", ["accept", "reject"])
    assert client.get("/projects/p/conflicts?shrug=1").status_code == 400
    assert client.get("/projects/p/conflicts?limit=0").status_code == 400
    assert client.get("/projects/p/conflicts?limit=1").get_json() == {"rows": [row], "cursor": None}


def test_a_kind_denied_by_the_policy_is_refused_over_http(client, memory):
    memory.writer.change_policy("p", [PolicyChange(kind="decision", allows="deny")])
    answer = client.post("/projects/p/intents", json=decision(topic="other"))
    assert (answer.status_code, answer.get_json()["code"]) == (403, "policy_denied")


def test_a_briefing_is_given_as_json_or_markdown(client, memory):
    query = {"agent": "ana", "about": ["a.py", "b.py"], "budget_tokens": "900"}
    briefing = memory.briefing("p", agent="ana", about=["a.py", "b.py"], budget_tokens=900)

    answer = client.get("/projects/p/briefing", query_string=query)
    text = client.get("/projects/p/briefing", query_string=query, headers={"Accept": "text/markdown"})

    assert answer.json == as_json(briefing.to_dict())
    assert (text.text, text.content_type) == (briefing.text, "text/markdown; charset=utf-8")
    for wrong in ({"budget": "5"}, {"role": "boss"}, {"budget_tokens": "5"}, {"budget_tokens": "many"}):
        assert client.get("/projects/p/briefing", query_string=wrong).status_code == 400
    negative = client.get("/projects/p/briefing", query_string={"budget_tokens": "-5"})
    assert negative.json["detail"] == "budget_tokens='-5' is not a whole number from 0 to 999,999,999"
    for agent in ("urn:%zz", "10:30"):  # a name with a colon is no IRI
        assert client.get("/projects/p/briefing", query_string={"agent": agent}).status_code == 200
    assert client.get("/projects/none/briefing").status_code == 404


def test_a_confirmation_that_needs_a_date_is_refused_with_a_valid_request(client, memory):
    item = memory.writer.submit_intent("p", intent(summary="old", expires_on="2020-01-01")).iri
    path = f"/projects/p/memories/{item.rpartition('/')[2]}/revise"

    refused = client.post(path, json={"confirm": True})

    assert refused.status_code == 400
    call, _, body = refused.get_json()["hint"].partition(f"POST {path} ")[2].partition("{")
    assert (call, json.loads("{" + body)) == ("", {"confirm": True, "set": {"expires_on": "DATE"}})
    assert client.post(path, json={"confirm": True, "set": {"expires_on": "2999-01-01"}}).status_code in (200, 201)


def test_a_long_list_ends_at_the_time_limit_of_queries(memory, client):
    memory.settings = replace(memory.settings, limits=replace(memory.settings.limits, query_seconds=-1.0))

    answer = client.get("/projects/p/queries/open-tasks")

    assert (answer.status_code, answer.json["code"]) == (503, "query_timeout")
    assert "cursor" in answer.json["hint"]
