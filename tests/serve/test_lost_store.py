"""A server of a shared root whose PostgreSQL server is away or refuses writes."""

import json
import re
from io import StringIO

import pytest
from click.testing import CliRunner
from conftest import intent
from postgres_server import PASSWORD

import jidomem
from jidomem.base.clock import Sources
from jidomem.runtime import tokens
from jidomem.serve import server_state
from jidomem.serve.app import create_app
from jidomem.serve.log import Log
from jidomem.serve.server_state import Operation
from jidomem_cli.main import cli

ROLE, SECRET = "served", "s3cret-of-served"


class Store:
    """A root of a role of its own, which PostgreSQL admits until `leave`."""

    def __init__(self, postgres):
        self.postgres, self.address = postgres, postgres.address().replace(f"jido:{PASSWORD}", f"{ROLE}:{SECRET}")
        self.schema = self.address.rpartition("=")[2]

    def leave(self):
        self.postgres.sql(f"ALTER ROLE {ROLE} NOLOGIN")
        self.disconnect()

    def come_back(self):
        self.postgres.sql(f"ALTER ROLE {ROLE} LOGIN")

    def disconnect(self):
        self.postgres.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{ROLE}'")


@pytest.fixture
def store(postgres):
    postgres.sql(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{SECRET}'")
    postgres.sql(f"GRANT CREATE ON DATABASE memory TO {ROLE}")
    yield Store(postgres)
    postgres.sql(f"DROP OWNED BY {ROLE} CASCADE")
    postgres.sql(f"DROP ROLE {ROLE}")


class Served:
    """The application of a root, with its log; `with_token` are the headers of a caller with a token, if it has any."""

    def __init__(self, memory, *, has_tokens=True):
        self._sink = StringIO()
        self._operation = Operation(Log(self._sink))
        keyring = memory.place.keyring() if has_tokens else None
        secret = keyring.issue("ana", "agent", ("p",), Sources())[0] if keyring else ""
        self.with_token = {"Authorization": f"Bearer {secret}"}
        self.client = create_app(memory, keyring=keyring, operation=self._operation).test_client()

    def events(self):
        """Stop logging, and return the logged events by name."""
        self._operation.close()
        events = [json.loads(line) for line in self._sink.getvalue().splitlines()]
        return {name: [each for each in events if each["event"] == name] for name in ("fault", "request", "unwritable")}


@pytest.fixture
def served(store, tmp_path, monkeypatch):
    monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tokens, "TOKENS_FOR", 0)
    monkeypatch.setattr(server_state, "FRESH", 0)
    with jidomem.open(store.address, project="p", wait=0.1) as memory:
        memory.writer.submit_intent("p", intent())
        yield Served(memory)


def test_nobody_is_told_the_place_of_a_lost_store_and_the_log_has_its_reason_once_an_outage(store, served):
    client = served.client
    pages = {"Accept": "text/html"}
    wrong = {"Authorization": "Bearer jido_wrong"}
    assert client.get("/projects/p", headers=served.with_token).status_code == 200
    answers, neutral = [], ("/projects/p", "/projects/p/queries/facts", "/nowhere", "/readyz", "/metrics", "/")
    for _ in range(2):
        store.leave()
        answers += [client.get(path, headers=headers)
                    for path in neutral for headers in ({}, wrong, pages, served.with_token)]  # fmt: skip
        store.come_back()
        assert client.get("/projects/p", headers=served.with_token).status_code == 200
    faults = [each for each in served.events()["fault"] if "agent" not in each]

    for answer in answers:
        assert answer.status_code == 503, answer.text
        for part in ("postgresql", ROLE, "127.0.0.1", "psql", "FATAL", store.schema):
            assert part not in answer.text
    assert {answer.json.get("detail", "") for answer in answers if answer.is_json} == {
        "", "the tokens of this server cannot be read",
    }  # fmt: skip
    assert [each["code"] for each in faults] == 2 * ["store_unreachable"]
    for fault in faults:
        assert re.search(r"refused the connection: .*not permitted to log in", fault["detail"])
    assert SECRET not in str(faults)


def test_without_tokens_the_log_has_the_reason_of_each_answer_that_is_a_fault(store, tmp_path, monkeypatch):
    monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / "home"))
    with jidomem.open(store.address, project="p", wait=0.1) as memory:
        memory.writer.submit_intent("p", intent())
        served = Served(memory, has_tokens=False)
        store.leave()
        answers = [served.client.get("/projects/p/queries/facts")]
        store.come_back()
        answers.append(served.client.get("/projects/nowhere"))

        (fault,) = served.events()["fault"]

    assert [answer.status_code for answer in answers] == [503, 404]
    assert fault["detail"] == answers[0].json["detail"]
    assert "not permitted to log in" in fault["detail"]


def test_the_log_has_the_reason_once_why_a_probe_without_token_fails_while_tokens_are_cached(
    store, served, monkeypatch
):
    monkeypatch.setattr(tokens, "TOKENS_FOR", 60)
    assert served.client.get("/projects/p", headers=served.with_token).status_code == 200
    assert served.client.get("/readyz").json == {"status": "ok"}
    store.leave()
    away = [served.client.get("/readyz") for _ in range(2)]
    told = served.client.get("/projects/p/queries/facts", headers=served.with_token)
    store.come_back()
    assert served.client.get("/readyz").json == {"status": "ok"}
    store.leave()
    away.append(served.client.get("/readyz"))
    store.come_back()

    assert [(each.status_code, each.json) for each in away] == 3 * [(503, {"status": "not ready"})]
    assert (told.status_code, told.json["detail"]) == (503, "the server cannot use its store")
    faults = served.events()["fault"]
    assert [each.get("agent") for each in faults] == [None, "ana", None]
    assert all("not permitted to log in" in each["detail"] for each in faults)


def test_of_an_unknown_outcome_a_caller_is_told_how_to_repeat_the_request_and_no_address(served, store, monkeypatch):
    monkeypatch.setattr(tokens, "TOKENS_FOR", 60)
    body, key = intent(summary="another", asserted_by="ana"), {"Idempotency-Key": "k"}
    function, table = f"{store.schema}.die", f"{store.schema}.commits"
    store.postgres.sql(
        f"CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(1); RETURN new; END'"
    )
    store.postgres.sql(f"GRANT pg_signal_backend TO {ROLE}")
    store.postgres.sql(f"CREATE TRIGGER die BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION {function}()")

    def submit():
        return served.client.post("/projects/p/intents", json=body, headers={**served.with_token, **key})

    lost = submit()
    store.postgres.sql(f"DROP TRIGGER die ON {table}")
    again = submit()

    assert (lost.status_code, lost.json["code"], again.status_code) == (503, "outcome_unknown", 201), lost.text
    assert "the same idempotency key" in lost.json["hint"]
    assert not [part for part in ("postgresql", ROLE, "terminating") if part in lost.text]
    (fault,) = served.events()["fault"]
    assert "terminating connection" in fault["detail"]


def read_only(store):
    store.postgres.sql(f"ALTER ROLE {ROLE} SET default_transaction_read_only = on")
    store.disconnect()
    yield "read-only transaction"
    store.postgres.sql(f"ALTER ROLE {ROLE} RESET default_transaction_read_only")
    store.disconnect()


def not_permitted(store):
    store.postgres.sql(f"REVOKE INSERT ON {store.schema}.commits FROM {ROLE}")
    yield "permission denied for table commits"
    store.postgres.sql(f"GRANT INSERT ON {store.schema}.commits TO {ROLE}")


def without_room(store):
    """Refuse documents that need another page of the disk, as a full disk does."""
    function, table = f"{store.schema}.full", f"{store.schema}.commits"
    store.postgres.sql(
        f"CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF length(new.document) > 100 THEN"
        " RAISE EXCEPTION ''could not extend file: No space left on device'' USING ERRCODE = ''53100'';"
        " END IF; RETURN new; END'"
    )
    store.postgres.sql(f"CREATE TRIGGER full_disk BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION {function}()")
    yield "No space left on device"
    store.postgres.sql(f"DROP TRIGGER full_disk ON {table}")


@pytest.mark.parametrize("fault", [read_only, not_permitted, without_room])
def test_a_server_is_not_ready_while_its_store_refuses_writes_and_the_log_and_the_doctor_say_why(
    store, served, fault, tmp_path
):
    def ready(**headers):
        answer = served.client.get("/readyz", headers=headers)
        return answer.status_code, answer.json["status"]

    def submit(key):
        headers = {**served.with_token, "Idempotency-Key": key}
        return served.client.post("/projects/p/intents", json=intent(asserted_by="ana", summary=key), headers=headers)

    def doctor():
        environment = {"JIDOMEM_HOME": str(tmp_path / "home"), "JIDOMEM_ROOT": store.address}
        checks = json.loads(CliRunner().invoke(cli, ["status", "--doctor", "--json"], env=environment).stdout)["checks"]
        return next(each for each in checks if each["name"] == "writes")

    assert (ready(), doctor()["level"]) == ((200, "ok"), "ok")
    fault = fault(store)
    reason = next(fault)
    refused = submit("a")
    during = [ready(), ready(), ready(**served.with_token)]
    said = doctor()
    next(fault, None)
    after = ready()

    assert (refused.status_code, reason in refused.text) in ((503, False), (500, False))
    assert during == [(503, "not ready"), (503, "not ready"), (503, "unwritable")]
    assert (said["level"], reason in said["detail"], "SELECT 1" in said["hint"]) == ("fail", True, False)
    assert (after, submit("a").status_code) == ((200, "ok"), 201)
    (event,) = served.events()["unwritable"]
    assert (reason in event["detail"], "did not answer" in event["detail"]) == (True, False)
    assert store.postgres.sql(f"SELECT count(*) FROM {store.schema}.commits") == [(2,)]
