"""Authentication and permissions by token: a memory of several projects, served to callers with and without tokens."""

import json
from io import StringIO
from urllib.parse import quote

import pytest
from conftest import decision, intent
from file_log import FileLog

from jidomem.journal.journal import Stream
from jidomem.runtime import tokens, user_config
from jidomem.runtime.settings import own_config
from jidomem.runtime.tokens import Keyring, SharedKeyring, revoke_token
from jidomem.serve import server_state
from jidomem.serve.app import create_app
from jidomem.serve.log import Log
from jidomem.serve.routes import ROUTES
from jidomem.serve.server_state import Operation

SECRET_OF_Q = "the launch is on Friday"
Q_GRAPH = "https://jido.ai/projects/q/graphs/long-term-context"
ITEM_OF_Q = "https://jido.ai/memory/01900000-0000-7000-8000-0000000000ff"


class Caller:
    """A client with a token, or without one."""

    def __init__(self, client, secret=None, key=None):
        self.client, self.id = client, key
        self.headers = {"Authorization": f"Bearer {secret}"} if secret else {}

    def ask(self, method, path, **options):
        headers = {"X-Request-Id": "same", **self.headers, **options.pop("headers", {})}
        return self.client.open(path, method=method, headers=headers, **options)

    def get(self, path, **options):
        return self.ask("GET", path, **options)

    def submit(self, *values, project="p", **options):
        body = values[0] if len(values) == 1 else list(values)
        return self.ask("POST", f"/projects/{project}/intents", json=body, **options)

    def sparql(self, text, project="p"):
        return self.get(f"/projects/{project}/sparql", query_string={"query": text})


@pytest.fixture
def new_caller(memory, tmp_path):
    """Return a function that makes a caller with a new token; `anybody` has none."""
    memory.writer.submit_intent("p", decision(summary="Use Oxigraph", topic="store"))
    memory.writer.submit_intent("q", intent(summary=SECRET_OF_Q, applies_to_project="q", iri=ITEM_OF_Q))
    root = memory.settings.root

    def caller(agent="ana", role="agent", projects=("p",)):
        secret, token = Keyring(own_config(), root).issue(agent, role, projects, memory.sources)
        return Caller(client, secret, token.id)

    client = create_app(memory, keyring=Keyring(own_config(), root)).test_client()
    caller.anybody = Caller(client)
    return caller


def each_address(project="p"):
    for route in ROUTES:
        path = route.path.replace("{project}", project).replace("{name}", "facts").replace("{id}", "00000001")
        path = path.replace("{agent}", "eve")
        yield route, path


def test_without_a_token_only_the_probes_are_answered_once_tokens_exist(new_caller):
    assert new_caller.anybody.get("/projects/p").status_code == 200
    ana = new_caller()

    for route, path in each_address():
        if route.path not in ("/healthz", "/readyz"):
            answer = new_caller.anybody.ask(route.method, path)
            assert (answer.status_code, answer.json["code"]) == (401, "unauthenticated"), path
            assert answer.headers["WWW-Authenticate"].startswith("Bearer ")
    assert new_caller.anybody.get("/healthz").status_code == 200
    assert (new_caller.anybody.get("/readyz").status_code, new_caller.anybody.get("/readyz").json) == (
        200,
        {"status": "ok"},
    )
    assert {new_caller.anybody.get(path).status_code for path in ("/nowhere", "/projects/q", "/projects/none")} == {401}
    assert ana.get("/projects/p").status_code == 200
    assert ana.get("/nowhere").status_code == 404


def test_readiness_is_public_and_its_reasons_need_a_token(new_caller, memory, monkeypatch):
    monkeypatch.setattr(server_state, "FRESH", 0)
    assert new_caller.anybody.get("/readyz").json["versions"].keys() == {"p", "q"}  # no token is needed yet
    ana, admin = new_caller(), new_caller("root", "admin", ("*",))
    (broken,) = (memory.settings.root / "projects" / "q" / "memory").glob("*.ttl")
    broken.write_bytes(broken.read_bytes()[:-9])
    assert memory.journal.verify(Stream("q"))

    unauthenticated, invalid = (
        new_caller.anybody.get("/readyz"),
        new_caller.anybody.get("/readyz", headers={"Authorization": "Bearer x"}),
    )

    assert (unauthenticated.status_code, unauthenticated.json) == (503, {"status": "not ready"})
    assert unauthenticated.headers["Retry-After"]
    assert (invalid.status_code, invalid.json["code"]) == (401, "unauthenticated")
    reasons = admin.get("/readyz")
    assert {name: {each["code"] for each in errors} for name, errors in reasons.json["damage"].items()} == {
        "q": {"journal_damaged"}
    }
    assert not [place for place in (str(memory.settings.root), broken.name) if place in reasons.text]
    assert ana.get("/readyz").json["status"] == "ok"  # of her own project


def test_unreadable_tokens_or_journal_are_not_ready_without_a_reason(new_caller, memory, monkeypatch):
    new_caller()
    own_config().chmod(0o644)
    unread = new_caller.anybody.get("/readyz")
    monkeypatch.setattr(server_state, "FRESH", 0)
    own_config().chmod(0o600)
    memory.journal.close("postgresql://db.internal/secret")
    unreachable = new_caller.anybody.get("/readyz")

    assert (unread.status_code, unread.json) == (503, {"status": "not ready"})
    assert (unreachable.status_code, unreachable.json) == (503, {"status": "not ready"})


def test_readiness_asks_a_store_that_is_away_once(new_caller, memory, tmp_path, monkeypatch):
    monkeypatch.setattr(tokens, "TOKENS_FOR", 0)
    log = FileLog(str(tmp_path / "log"))
    keyring = SharedKeyring(log)
    keyring.issue("ana", "agent", ("p",), memory.sources)
    anybody = create_app(memory, keyring=keyring).test_client()
    assert anybody.get("/readyz").json == {"status": "ok"}

    log.is_unreachable = True
    log.requests.clear()

    assert anybody.get("/readyz").json == {"status": "not ready"}
    assert log.requests == {"get": 1}
    log.close()


def test_readiness_is_cached_for_a_moment(new_caller, memory, monkeypatch):
    new_caller()
    monkeypatch.setattr(server_state, "FRESH", 60)
    monkeypatch.setattr(server_state, "LASTS", 60)
    first = new_caller.anybody.get("/readyz")
    memory.journal.close("elsewhere")

    cached = new_caller.anybody.get("/readyz")
    monkeypatch.setattr(server_state, "FRESH", 0)

    assert (first.status_code, cached.status_code, new_caller.anybody.get("/readyz").status_code) == (200, 200, 503)


@pytest.mark.parametrize(
    "header",
    ["Bearer", "Bearer ", "Bearer jido_wrong", "Basic amlkbzp4", "jido_x", "Bearer \x80\xff", "Bearer " + 9000 * "x"],
)
def test_an_invalid_token_is_refused(new_caller, header):
    new_caller()

    answer = new_caller.anybody.get("/projects/p", headers={"Authorization": header})

    assert (answer.status_code, answer.json["code"]) == (401, "unauthenticated")


def test_a_revoked_token_is_refused_from_the_next_request(new_caller):
    ana, ben = new_caller(), new_caller("ben")
    assert ana.get("/projects/p").status_code == ben.get("/projects/p").status_code == 200

    revoke_token(own_config(), ana.id)
    assert (ana.get("/projects/p").status_code, ben.get("/projects/p").status_code) == (401, 200)
    revoke_token(own_config(), ben.id)

    assert {each.get("/projects/p").status_code for each in (ana, ben, new_caller.anybody)} == {401}


def test_an_unreadable_token_file_refuses_all_and_the_log_names_the_repair(new_caller, capsys):
    ana = new_caller()
    own_config().chmod(0o644)

    answer = ana.get("/projects/p")

    assert (answer.status_code, answer.json["code"]) == (500, "invalid_config")
    assert str(own_config()) not in answer.text
    assert f"chmod 600 {own_config()}" in capsys.readouterr().err
    own_config().chmod(0o600)
    assert ana.get("/projects/p").status_code == 200


def test_streamed_lines_are_refused_from_the_revocation_of_the_token(new_caller):
    ana = new_caller()

    def lines():
        for number in range(6):
            if number == 4:
                revoke_token(own_config(), ana.id)
            yield json.dumps(intent(summary=f"line {number}", asserted_by="ana"))

    class Arriving:
        """A body that arrives line by line."""

        def __init__(self):
            self.coming = lines()

        def read1(self, _=-1):
            return (next(self.coming, "") + "\n").encode().lstrip(b"\n")

    options = {"content_type": "application/x-ndjson", "environ_overrides": {"wsgi.input": Arriving()}}
    outcomes = ana.ask("POST", "/projects/p/intents", **options).text.splitlines()

    assert [json.loads(line).get("status") or json.loads(line)["code"] for line in outcomes] == [
        *4 * ["asserted"],
        "unauthenticated",
    ]


def test_an_array_under_way_is_refused_from_the_revocation_of_the_token(new_caller, memory):
    ana, commits = new_caller(), []

    def revoke(*_):
        commits.append(1)
        if len(commits) == 1:
            revoke_token(own_config(), ana.id)

    memory.follower.on_commit = revoke  # after the first of several commits of the array
    outcomes = ana.submit(*(intent(summary=f"item {number}", asserted_by="ana") for number in range(300))).json

    codes = [outcome.get("status") or outcome["code"] for outcome in outcomes]
    accepted = codes.count("asserted")
    assert 0 < accepted < 300
    assert codes == [*accepted * ["asserted"], *(300 - accepted) * ["unauthenticated"]]
    assert (len(commits), len(memory.reader.list_facts_with_confidence("p"))) == (1, accepted)


def test_lines_that_arrive_together_after_the_revocation_get_one_refusal(new_caller, memory):
    ana, lines = new_caller(), [json.dumps(intent(summary=f"{n}", asserted_by="ana")) for n in range(300)]
    memory.follower.on_commit = lambda _: ana.id and revoke_token(own_config(), ana.id) and setattr(ana, "id", None)

    text = ana.ask("POST", "/projects/p/intents", data="\n".join(lines), content_type="application/x-ndjson").text

    codes = [json.loads(line).get("status") or json.loads(line)["code"] for line in text.splitlines()]
    assert 1 < len(codes) < 300
    assert codes == [*(len(codes) - 1) * ["asserted"], "unauthenticated"]


def test_an_agents_token_submits_for_its_own_agent_alone_by_every_route(new_caller, memory):
    ana, before = new_caller(), memory.catch_up("p")
    other = intent(asserted_by="ben", summary="said for ben")
    lines = (json.dumps(other) + "\n").encode()

    one = ana.submit(other)
    keyed = ana.submit(other, headers={"Idempotency-Key": "k-1"})
    judged = ana.ask("POST", "/projects/p/intents?dry_run=1", json=other)
    array = ana.submit(other, {**other, "asserted_by": "https://jido.ai/agents/ben"})
    line = ana.ask("POST", "/projects/p/intents", data=lines, content_type="application/x-ndjson")
    revised = ana.ask("POST", "/projects/p/memories/00000001/revise", json={"supersede": "x", "asserted_by": "ben"})
    opened = ana.ask("POST", "/projects/p/sessions", json={"name": "evening", "agent": "ben"})
    moved = ana.ask("PATCH", "/projects/p/sessions/s-1", json={"status": "paused", "agent": "ben"})
    briefed = ana.get("/projects/p/briefing?agent=ben")

    for answer in (one, keyed, judged, revised, opened, moved, briefed):
        assert (answer.status_code, answer.json["code"]) == (403, "policy_denied"), answer.text
    assert {outcome["code"] for outcome in (*array.json, json.loads(line.text))} == {"policy_denied"}
    assert one.json["hint"] == "leave out `asserted_by`, or give ana"
    assert memory.catch_up("p") == before


def test_a_memory_that_a_curators_token_writes_for_another_agent_names_the_curator(new_caller, memory):
    carl, reader = new_caller("carl", "curator"), memory.reader
    fields = intent(summary="the vendor allows 100 calls", asserted_by="bob", source_type="ExternalDocumentSource")

    made = carl.submit(fields, headers={"Idempotency-Key": "k"})
    retry = carl.submit(fields, headers={"Idempotency-Key": "k"})
    changed = carl.submit({**fields, "summary": "it allows 200"}, headers={"Idempotency-Key": "k"})

    item, by = made.json["iri"], "https://jido.ai/agents/carl"
    why = reader.why("p", item)
    assert (why["asserted_by"], why["settled_by"]) == (["https://jido.ai/agents/bob"], [by])
    assert reader.get_memory("p", item)["properties"]["confirmedBy"] == [by]
    assert reader.history("p", item)[-1]["agent"] == by
    assert by in reader.log("p").rows[0]["agents"]
    assert [row["item"] for row in reader.ask("memories-of-agent", project="p", agent="carl")] == [item]
    assert by in {row["agent"] for row in reader.ask("agent-activity", project="p")}
    assert (retry.json, changed.json["code"]) == (made.json, "idempotency_mismatch")


def test_a_token_does_not_record_what_an_agent_with_another_token_asked(new_caller):
    gus, carl, _ = new_caller("gus"), new_caller("carl", "curator"), new_caller("alma")

    def asked(caller, name):
        body = {"prompt": "Drop the old table", "asked_by": name}
        return caller.ask("POST", "/projects/p/conversations/evening", json=body)

    refused = asked(gus, "https://jido.ai/agents/alma")

    assert (refused.status_code, refused.json["code"]) == (403, "policy_denied")
    assert refused.json["hint"] == "leave out `asked_by`, or give gus"
    assert [asked(*each).status_code for each in ((gus, "gus"), (gus, "a guest"), (carl, "alma"))] == [201, 201, 201]


def test_the_agent_of_the_token_is_filled_in(new_caller, memory):
    ana = new_caller()
    unsigned = {name: value for name, value in intent(summary="unsigned").items() if name != "asserted_by"}

    one = ana.submit(unsigned)
    keyed = ana.submit({**unsigned, "summary": "keyed"}, headers={"Idempotency-Key": "k"})
    retry = ana.submit({**unsigned, "summary": "keyed"}, headers={"Idempotency-Key": "k"})
    session = ana.ask("POST", "/projects/p/sessions", json={"name": "evening"})
    revised = ana.ask(
        "POST", f"/projects/p/memories/{one.json['iri'].rsplit('/', 1)[1]}/revise", json={"confirm": True}
    )

    assert (one.status_code, one.json["filled"]["asserted_by"]) == (201, "https://jido.ai/agents/ana")
    assert (keyed.status_code, retry.json) == (201, keyed.json)
    assert session.status_code == 201
    assert ana.get("/projects/p/sessions/evening").json["agent"] == "https://jido.ai/agents/ana"
    (by,) = memory.reader.get_memory("p", revised.json["iri"])["properties"]["assertedBy"]
    assert by == "https://jido.ai/agents/ana"


def test_a_write_error_names_the_operator_to_tokens_and_its_cause_to_local_clients_and_the_log(
    new_caller, memory, monkeypatch
):
    sink = StringIO()
    operation = Operation(Log(sink))
    root = memory.settings.root
    local = create_app(memory).test_client()
    ana = new_caller()
    ana.client = create_app(memory, keyring=Keyring(own_config(), root), operation=operation).test_client()
    folder = root / "projects" / "p" / "memory"
    folder.rename(root / "elsewhere")
    folder.write_text("in the way")
    lines = {"data": json.dumps(intent(asserted_by="ana")), "content_type": "application/x-ndjson"}

    one, several = ana.submit(intent(asserted_by="ana")), ana.submit(intent(asserted_by="ana"), intent())
    line = ana.ask("POST", "/projects/p/intents", **lines)
    local_answer = local.post("/projects/p/intents", json=intent())
    folder.unlink()
    long = ana.submit(intent(asserted_by="ana", summary="x" * 300_000))
    operation.close()

    for answer in (one, several, line):
        assert (answer.status_code, answer.json["code"]) == (507, "write_failed")
        assert "operator" in answer.json["hint"]
        assert str(root) not in answer.text
    assert str(root) in local_answer.json["detail"]
    assert "operator of the server for a higher limit" in long.json["hint"]
    assert "config.toml" not in long.text
    faults = [each for each in map(json.loads, sink.getvalue().splitlines()) if each["event"] == "fault"]
    logged = [(each["agent"], each["code"], each["request_id"]) for each in faults]
    assert logged == 3 * [("ana", "write_failed", "same")]
    assert all(str(root) in each["detail"] and each["hint"] for each in faults)


def test_an_idempotency_key_of_another_agent_reveals_nothing(new_caller):
    ana, ben = new_caller(), new_caller("ben")
    values = intent(asserted_by="ana", summary="mine", idempotency_key="k")
    first = ana.submit(values)

    same, other = ben.submit(values), ben.submit({**values, "summary": "not the same"})
    own_one = ben.submit({**values, "asserted_by": "ben", "summary": "ben's own"})

    for answer in (same, other):
        assert (answer.json["code"], first.json["iri"] in answer.text) == ("policy_denied", False)
    assert (own_one.status_code, ana.submit(values).json) == (201, first.json)


def test_an_agent_moves_its_own_sessions_and_a_curator_any(new_caller):
    ana, bob, rita = new_caller("ana"), new_caller("bob"), new_caller("rita", "curator")
    assert ana.ask("POST", "/projects/p/sessions", json={"name": "s-9"}).status_code == 201

    for moved in ({"status": "closed"}, {"phase": "review"}):
        refused = bob.ask("PATCH", "/projects/p/sessions/s-9", json=moved)
        assert (refused.status_code, refused.get_json()["code"]) == (403, "policy_denied")
        assert "may not move s-9, a session of ana" in refused.get_json()["detail"]
    assert ana.ask("PATCH", "/projects/p/sessions/s-9", json={"status": "paused"}).status_code == 200
    assert rita.ask("PATCH", "/projects/p/sessions/s-9", json={"status": "closed"}).status_code == 200


def test_a_curator_submits_for_others_and_confirms_proposals(new_caller, memory):
    ana, rita = new_caller(), new_caller("rita", "curator")
    proposed = ana.submit(intent(asserted_by="ana", summary="a limit", source_type="ExternalDocumentSource")).json
    path = f"/projects/p/memories/{proposed['iri'].rsplit('/', 1)[1]}/revise"

    refused = ana.ask("POST", path, json={"confirm": True})
    confirmed = rita.ask("POST", path, json={"confirm": True})
    submitted = rita.submit(intent(asserted_by="ben", summary="for ben"))

    assert proposed["status"] == "proposed"
    assert refused.json.get("status") != "asserted"
    assert confirmed.json["status"] == "asserted"
    assert submitted.status_code == 201
    assert rita.get("/projects/p/briefing?agent=ben").status_code == 200


def test_a_role_in_the_policy_does_not_raise_the_role_of_a_token(new_caller, memory):
    from jidomem.records.policy import PolicyChange

    memory.writer.change_policy("p", [PolicyChange(agent="ana", grants="Administrator")])

    answer = new_caller("ana").submit(intent(asserted_by="ben", summary="for ben"))

    assert (answer.status_code, answer.json["code"]) == (403, "policy_denied")


def test_a_reader_reads_every_route_and_writes_on_none(new_caller, memory):
    eve, before = new_caller("eve", "reader", ("*",)), memory.catch_up("p")
    recalls = {"/projects/{project}/recall", "/projects/{project}/entries/recall"}
    reading = {"/sparql", "/projects/{project}/sparql", *recalls}

    for route, path in each_address():
        answer = eve.ask(route.method, path, **({} if route.method == "GET" else {"json": {}}))
        if route.method != "GET" and route.path not in reading:
            assert (answer.status_code, answer.json["code"]) == (403, "policy_denied"), path
        else:
            assert answer.status_code not in (401, 403), path
    assert memory.catch_up("p") == before
    assert {route.path for route in ROUTES if route.method != "GET" and not route.writes} == reading


def test_a_foreign_project_is_answered_like_an_unknown_one(new_caller, memory):
    ana = new_caller()
    memory.catch_up("q")

    for route, path in each_address("q"):
        if "{project}" not in route.path:
            continue
        foreign = ana.ask(route.method, path, **({} if route.method == "GET" else {"json": intent()}))
        unknown = ana.ask(
            route.method, path.replace("/q", "/z", 1), **({} if route.method == "GET" else {"json": intent()})
        )
        assert (foreign.status_code, foreign.json["code"]) == (404, "unknown_project"), path
        assert foreign.text.replace("'q'", "'z'") == unknown.text
        assert "use one of: p;" in foreign.json["hint"]
    assert ana.get("/projects/Bad Name").json["code"] == "invalid_project"


def test_lists_name_the_projects_of_the_token_alone(new_caller, memory):
    ana, both, admin = new_caller(), new_caller("ben", projects=("p", "q")), new_caller("root", "admin", ("*",))
    outsider = new_caller("zoe", projects=("z",))

    listed = {each: [row["project"] for row in each.get("/projects").json["projects"]] for each in (ana, both, admin)}

    assert list(listed.values()) == [["p"], ["p", "q"], ["p", "q"]]
    assert ana.get("/readyz").json["versions"].keys() == {"p"}
    assert outsider.get("/projects").json == {"projects": [], "default": None}
    for path in ("/projects/z", "/projects/z/queries/facts", "/sparql?query=ASK{}", "/projects/z/sparql?query=ASK{}"):
        answer = outsider.get(path)
        assert (answer.status_code, answer.json["code"]) == (404, "unknown_project"), path
        assert "none yet" in answer.json["hint"]
        assert str(memory.settings.root) not in answer.text


def test_a_token_for_all_projects_is_told_no_path_for_an_unknown_project(new_caller, memory):
    admin = new_caller("root", "admin", ("*",))

    for route, path in each_address("nowhere"):
        if route.method == "GET" and "{project}" in route.path:
            answer = admin.get(path)
            assert answer.json["code"] in ("unknown_project", "invalid_argument"), path
            assert str(memory.settings.root.parent) not in answer.text, path
    assert admin.get("/projects/nowhere").json["detail"] == "no project 'nowhere' here"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?g ?s ?p ?o { GRAPH ?g { ?s ?p ?o } }",
        "SELECT ?s ?p ?o { ?s ?p ?o }",
        f"SELECT ?s ?p ?o {{ GRAPH <{Q_GRAPH}> {{ ?s ?p ?o }} }}",
        f"DESCRIBE <{ITEM_OF_Q}>",
        "CONSTRUCT { ?s ?p ?o } { GRAPH ?g { ?s ?p ?o } }",
        f"SELECT ?x {{ <{ITEM_OF_Q}> (<urn:x>|!<urn:x>)* ?x . ?x <https://jido.ai/ontology#summary> ?o }}",
        "SELECT ?o { ?s (!<urn:x>)+ ?o }",
        "SELECT ?o { GRAPH ?g { ?s (^<urn:x>|!<urn:x>)/(!<urn:x>)? ?o } }",
    ],
)
def test_no_query_reaches_another_project(new_caller, text):
    ana, both = new_caller(), new_caller("ben", projects=("p", "q"))

    answer = ana.sparql(text)

    assert answer.status_code == 200, answer.text
    assert SECRET_OF_Q not in answer.text
    assert "/projects/q" not in answer.text
    assert SECRET_OF_Q in both.sparql("SELECT * { ?s ?p ?o }", "q").text


@pytest.mark.parametrize("form", ["FROM <{}>", "FROM NAMED <{}>", "FROM <{}> FROM NAMED <{}>"])
def test_a_graph_of_another_project_is_as_empty_as_an_unknown_one(new_caller, form):
    ana = new_caller()

    def rows_of(graph):
        return ana.sparql(
            f"SELECT * {form.replace('{}', graph)} {{ {{ ?s ?p ?o }} UNION {{ GRAPH ?g {{ ?s ?p ?o }} }} }}"
        )

    foreign, unknown = rows_of(Q_GRAPH), rows_of(Q_GRAPH.replace("/q/", "/z/"))

    assert (foreign.status_code, foreign.json["results"]["bindings"]) == (200, [])
    assert (foreign.text, foreign.headers["Warning"].replace("/q/", "/z/")) == (
        unknown.text,
        unknown.headers["Warning"],
    )


def test_a_memory_of_another_project_is_answered_like_an_unknown_one(new_caller):
    ana = new_caller()
    other = ITEM_OF_Q.replace("ff", "fe")

    for path in ("", "/why", "/history"):
        foreign = ana.get(f"/projects/p/memories/{quote(ITEM_OF_Q, safe='')}{path}")
        unknown = ana.get(f"/projects/p/memories/{quote(other, safe='')}{path}")
        assert (foreign.status_code, foreign.text.replace("00ff", "00fe")) == (404, unknown.text)
    for field in ("supersedes", "invalidates", "coexists_with", "evidence"):
        refusals = [
            ana.submit(intent(asserted_by="ana", summary=f"{field}", **{field: [item]})) for item in (ITEM_OF_Q, other)
        ]
        assert refusals[0].text.replace("00ff", "00fe") == refusals[1].text
    foreign_iri, unknown_iri = (
        ana.submit(intent(asserted_by="ana", summary=item, iri=item)) for item in (ITEM_OF_Q, other)
    )
    assert foreign_iri.status_code == unknown_iri.status_code


def test_every_answer_has_the_security_headers(new_caller):
    ana = new_caller()
    answers = [
        ana.get("/projects/p"),
        ana.get("/nowhere"),
        ana.get("/projects/p/queries/facts.csv"),
        ana.sparql("ASK {}"),
        new_caller.anybody.get("/projects/p"),
        new_caller.anybody.get("/healthz"),
        new_caller.anybody.get("/healthz", headers={"Host": "rebound.example.org"}),
    ]

    for answer in answers:
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cache-Control"] == "no-store"


def test_a_token_of_another_root_is_refused(new_caller, memory, tmp_path):
    new_caller()
    secret, _ = Keyring(own_config(), tmp_path / "elsewhere").issue("ana", "admin", ["*"], memory.sources)

    answer = new_caller.anybody.get("/projects/p", headers={"Authorization": f"Bearer {secret}"})

    assert answer.status_code == 401
    assert len(user_config.read(own_config()).tokens) == 2
