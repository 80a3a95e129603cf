"""A server of several worker processes: one memory behind one address, for each worker."""

import json
import os
import signal
import subprocess
import time
from contextlib import ExitStack, contextmanager
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from pathlib import Path
from threading import Event, Thread
from urllib.parse import quote, urlencode

import pytest
from conftest import ToyEmbedder, intent, wait_until
from http_world import BIN, Client, as_root, children, running
from prometheus_client import parser

import jidomem
from jidomem.base.clock import Sources
from jidomem.extras.servers import addresses
from jidomem.journal.journal import Stream
from jidomem.models.embeddings import EndpointEmbedder
from jidomem.models.endpoint import ModelEndpoint
from jidomem.runtime.tokens import Keyring
from jidomem.serve.workers import default_workers

pytestmark = pytest.mark.usefixtures("loaded_program")
PROGRAM = f"{BIN}/jidomem"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
SLOW = " ".join(f"VALUES ?n{n} {{ {' '.join(map(str, range(100)))} }}" for n in range(6))
TIMEOUT = 60  # seconds, far beyond any wait of the tests


@contextmanager
def serving(root, workers, *options, address=None, environment=None, limits="", program="jidomem"):
    """A server whose workers all answer; it has `url`, and `log` is the file with its standard error.

    It serves the shared root at *address*, if there is one, with its files beside *root*. *program* is that of the
    fixture `loaded_program`, or PROGRAM, which gets all signals itself.
    """
    log, config = Path(f"{root}.log"), Path(f"{root}-own", "jidomem", "config.toml")
    config.parent.mkdir(parents=True)
    config.write_text(f"[limits]\nidle_seconds = 600\n{limits}")  # no connection ends because a machine is slow
    config.chmod(0o600)
    environment = {**os.environ, "XDG_CONFIG_HOME": str(config.parent.parent), **(environment or {})}
    with log.open("w") as errors:
        arguments = ["--root", address or as_root(Path(root)), "--project", "p", "--port", "0", "--json", *options]
        command = [program, "serve", *arguments]
        with subprocess.Popen(
            [*command, "--workers", str(workers)], stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
        ) as process:
            try:
                process.log = log
                line = process.stdout.readline()
                assert line, log.read_text()
                process.url = json.loads(line)["url"]
                wait_for(process, "worker_started", workers)
                yield process
            finally:
                if process.poll() is None:
                    process.terminate()
                    process.wait(TIMEOUT)


def events(server, name):
    lines = [json.loads(line) for line in server.log.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return [each for each in lines if each["event"] == name]


def wait_for(server, name, count):
    """The events of that name, once there are *count* of them."""

    def enough():
        assert server.poll() is None, server.log.read_text()
        matching = events(server, name)
        return matching if len(matching) >= count else None

    return wait_until(enough)


@contextmanager
def client_per_worker(server, workers, **headers):
    """A client with a connection to each worker, by its number."""
    with ExitStack() as stack:
        clients = {}
        for attempt in range(20 * workers):
            client = Client(server.url)
            name = f"which-{time.monotonic_ns()}-{attempt}"
            client.ask("GET", "/projects", headers={**headers, "X-Request-Id": name})
            line, *_ = wait_until(lambda name=name: [e for e in events(server, "request") if e["request_id"] == name])
            if line["worker"] in clients:
                client.connection.close()  # a further connection would end an idle one where few are allowed
                continue
            clients[line["worker"]] = stack.enter_context(client)
            if len(clients) == workers:
                break
        assert len(clients) == workers
        yield clients


def read_metrics(client, **headers):
    """The samples that a worker reports, by name and labels."""
    status, _, body = client.ask("GET", "/metrics", headers=headers)
    assert status == 200
    families = parser.text_string_to_metric_families(body.decode())
    return {(each.name, *sorted(each.labels.items())): each.value for family in families for each in family.samples}


def path_of(iri):
    return f"/projects/p/memories/{iri.rsplit('/', 1)[1]}"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    root = tmp_path_factory.mktemp("workers") / "root"
    with serving(root, 3) as process:
        process.root = root
        with Client(process.url) as client:
            client.submit(intent(summary="the first of all"))
        yield process


@pytest.fixture
def clients(server):
    with client_per_worker(server, 3) as clients:
        yield clients


def test_a_memory_written_through_one_worker_is_read_at_once_through_the_others(clients):
    order, written = [*clients.values()], []
    for number in range(60):
        writer, *readers = order[number % 3 :] + order[: number % 3]
        status, receipt = writer.submit(intent(summary=f"at once {number}", topic=f"topic w{number}x"))
        written.append(receipt["iri"])
        assert status == 201
        reader = readers[number % 2]
        if number % 3 == 0:
            assert reader.get(path_of(receipt["iri"]))["iri"] == receipt["iri"]
        elif number % 3 == 1:
            version = quote(receipt["version"])
            rows = reader.get(f"/projects/p/queries/facts-about?topic=topic%20w{number}x&min_position={version}")[
                "rows"
            ]
            assert [row["subject"] for row in rows] == [receipt["iri"]]
        else:
            assert reader.get("/projects/p")["version"] == receipt["version"]

    pages, path = cycle(order), "/projects/p/queries/facts?limit=12"
    rows, cursor = [], ""
    while cursor is not None:
        page = next(pages).get(path + cursor)
        rows += [row["fact"] for row in page["rows"]]
        cursor = page["cursor"] and f"&cursor={quote(page['cursor'])}"
    assert set(written) <= set(rows)
    assert len(set(rows)) == len(rows)
    lines = order[1].ask("GET", "/projects/p/journal?limit=10000")[2].splitlines()
    assert len(lines) >= 60


def test_a_waiting_reader_of_one_worker_gets_the_commit_of_another(server, clients):
    first, second, third = clients.values()
    version = first.get("/projects/p").get("version", "0")
    first.connection.request("GET", f"/projects/p/journal?after={version}&wait=30")
    with Client(server.url) as stream:
        stream.connection.request(
            "GET", f"/projects/p/journal?after={version}", headers={"Accept": "text/event-stream"}
        )
        _, receipt = second.submit(intent(summary="waited for"))
        event = stream.connection.getresponse()
        while not (line := event.readline()).startswith(b"data: "):
            assert line

    (commit,) = first.connection.getresponse().read().splitlines()
    assert json.loads(commit)["version"] == json.loads(line[6:])["version"] == receipt["version"]
    assert third.get(f"/projects/p?min_position={receipt['version']}")["version"] == receipt["version"]


def test_the_metrics_of_all_workers_are_summed_in_each(clients):
    route = "/projects/{project}/queries/{name}"
    count = ("jidomem_http_requests_total", ("method", "GET"), ("route", route), ("status", "200"))
    order = [*clients.values()]
    order[0].submit(intent(summary="counted"))
    before = read_metrics(order[0])
    for client in order:
        for _ in range(5):
            client.get("/projects/p/queries/facts?limit=1")
        client.submit(intent(summary="counted", type="fcat"))
        client.submit(intent(summary=f"counted by {id(client)}"))

    after = [read_metrics(client) for client in order]

    def grown(*key):
        return {metrics[key] - before.get(key, 0) for metrics in after}

    assert grown(*count) == {15}
    assert grown("jidomem_query_seconds_count", ("query", "facts")) == {15}
    assert grown("jidomem_query_seconds_bucket", ("le", "+Inf"), ("query", "facts")) == {15}
    assert grown("jidomem_refusals_total", ("code", "unknown_type")) == {3}
    assert grown("jidomem_commit_seconds_count") == {3}
    for metrics in after:
        assert metrics["jidomem_workers",] == 3
        assert metrics["jidomem_http_requests_in_progress",] == 1
        assert metrics["jidomem_http_requests_limit",] == 64
        assert {labels for name, *labels in metrics if name == "process_open_fds" for labels in labels} == {
            ("worker", number) for number in "123"
        }


def test_the_pages_of_all_workers_act_as_one_server(clients):
    first, second, third = clients.values()
    item = first.submit(intent(summary="to be withdrawn"))[1]["iri"].rsplit("/", 1)[1]
    form = urlencode({"act": "invalidate", "reason": "it is not so"})
    answers = []

    def post(client):
        answers.append(client.ask("POST", f"/ui/p/memories/{item}", form, {**FORM, "Origin": client.url}))

    posts = [Thread(target=post, args=(client,)) for client in clients.values()]
    for each in posts:
        each.start()
    for each in posts:
        each.join()

    assert [status for status, _, _ in answers] == [303] * 3
    (location,) = {headers["Location"] for _, headers, _ in answers}
    assert "done=" in location
    shown = [client.ask("GET", location)[2] for client in clients.values()]
    plain = second.ask("GET", location.partition("?")[0])[2]
    assert len({len(page) for page in shown}) == 1
    assert len(shown[0]) > len(plain)

    assert first.get("/projects/p/check")["conforms"] is True
    assert second.get("/ui/p/check.json")["at"] == third.get("/ui/p/check.json")["at"] is not None


LIMITED = "[limits]\nqueries = 1\nconnections = 4\nidle_seconds = 600\n"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server with two workers, small limits and a token; `config` is the file with both."""
    folder = tmp_path_factory.mktemp("guarded")
    own = folder / "jidomem" / "config.toml"
    own.parent.mkdir()
    own.write_text(LIMITED)
    own.chmod(0o600)
    ring = Keyring(own, folder / "root")
    secret, token = ring.issue("ana", "curator", ["*"], Sources())
    with serving(folder / "root", 2, environment={"XDG_CONFIG_HOME": str(folder)}) as process:
        process.ring, process.token = ring, token
        process.key = {"Authorization": f"Bearer {secret}"}
        with Client(process.url) as client:
            client.submit(intent(asserted_by="ana"), **process.key)
        yield process


def test_limits_hold_for_the_server_and_not_for_each_worker(guarded):
    with client_per_worker(guarded, 2, **guarded.key) as clients:
        first, second = clients.values()
        slow = "/projects/p/sparql?" + urlencode({"query": f"SELECT (COUNT(*) AS ?n) {{ {SLOW} }}"})
        first.connection.request("GET", slow, headers=guarded.key)
        wait_until(lambda: read_metrics(second, **guarded.key)["jidomem_sparql_running",] == 1)
        status, _, body = second.ask("GET", slow, headers=guarded.key)
        assert (status, json.loads(body)["code"]) == (429, "too_many_requests")
        first.connection.close()

    with client_per_worker(guarded, 2, **guarded.key) as clients:
        first, second = clients.values()
        path = "/projects/p/journal?after=" + quote(first.get("/projects/p", **guarded.key)["version"])
        first.connection.request("GET", path, headers={**guarded.key, "Accept": "text/event-stream"})
        assert first.connection.getresponse().status == 200
        status, _, body = second.ask("GET", f"{path}&wait=30", headers=guarded.key)
        assert (status, json.loads(body)["code"]) == (429, "too_many_requests")

    with ExitStack() as stack:
        idle = [stack.enter_context(Client(guarded.url)) for _ in range(4)]
        for client in idle:
            client.get("/healthz")
        with Client(guarded.url) as fifth:
            assert fifth.get("/healthz") == {"status": "ok"}  # one of the idle connections has ended, in any worker
        assert [client for client in idle if is_ended(client)]


def is_ended(client):
    """Whether the server has closed a connection."""
    if client.connection.sock is None:  # announced in the answer
        return True
    client.connection.sock.settimeout(0)
    try:
        return client.connection.sock.recv(1) == b""
    except BlockingIOError:
        return False


def test_a_revoked_token_is_refused_by_every_worker_also_after_a_restart(guarded):
    with client_per_worker(guarded, 2, **guarded.key) as clients:
        assert [client.ask("GET", "/projects/p", headers=guarded.key)[0] for client in clients.values()] == [200] * 2

        guarded.ring.revoke(guarded.token.id)

        for headers in (guarded.key, {}):
            assert [client.ask("GET", "/projects/p", headers=headers)[0] for client in clients.values()] == [401] * 2
    started = events(guarded, "worker_started")
    os.kill(started[1]["pid"], signal.SIGKILL)
    wait_for(guarded, "worker_started", len(started) + 1)
    with ExitStack() as stack:
        others = [stack.enter_context(Client(guarded.url)) for _ in range(4)]
        assert [client.ask("GET", "/projects/p")[0] for client in others] == [401] * 4


def submit_until(server, stop, acknowledged, problems, name):
    """Submit facts until *stop*; a request whose connection ended is sent again under its key."""
    number = 0
    while not stop.is_set():
        number += 1
        values = intent(summary=f"{name} {number}", idempotency_key=f"{name}-{number}")
        while True:
            try:
                with Client(server.url) as client:
                    for _ in range(5):
                        status, receipt = client.submit(values)
                        if status not in (200, 201):
                            problems.append(receipt)
                            return
                        acknowledged.append(receipt["iri"])
                        client.get(path_of(receipt["iri"]))
                        time.sleep(0.05)  # so that the workers that start get their share of the processors
                        number += 1
                        values = intent(summary=f"{name} {number}", idempotency_key=f"{name}-{number}")
                break
            except (OSError, HTTPException):
                time.sleep(0.02)


def kill_after_more(server, number, acknowledged, problems):
    """Kill a worker once 25 more submissions are acknowledged, and wait for the one that replaces it."""
    before = len(acknowledged)
    wait_until(lambda: len(acknowledged) >= before + 25 or problems)
    pid = [each["pid"] for each in events(server, "worker_started") if each["worker"] == number][-1]
    os.kill(pid, signal.SIGKILL)
    wait_for(server, "worker_started", 2 + number)


def test_a_killed_worker_loses_no_acknowledged_memory_and_is_replaced(tmp_path):
    root, stop, acknowledged, problems = tmp_path / "root", Event(), [], []
    with serving(root, 2) as server:
        threads = [
            Thread(target=submit_until, args=(server, stop, acknowledged, problems, name)) for name in ("a", "b")
        ]
        for thread in threads:
            thread.start()
        counted = 0.0
        for number in (1, 2):
            kill_after_more(server, number, acknowledged, problems)
            with Client(server.url) as client:
                metrics = read_metrics(client)
            assert metrics["jidomem_workers",] == 2
            assert metrics["jidomem_commit_seconds_count",] > counted
            counted = metrics["jidomem_commit_seconds_count",]
        stop.set()
        for thread in threads:
            thread.join()
        with Client(server.url) as client:
            metrics = read_metrics(client)
        processes = [each["pid"] for each in events(server, "worker_started")]
        server.terminate()
        assert server.wait(TIMEOUT) == 0

    assert problems == []
    with jidomem.open(root, project="p") as memory:
        assert set(acknowledged) <= {row["fact"] for row in memory.ask("facts")}
        commits = memory.catch_up("p").position
    assert (
        commits - 2 <= metrics["jidomem_commit_seconds_count",] <= commits
    )  # at most one commit of each killed worker is not counted
    ended = events(server, "worker_ended")
    assert [(each["worker"], each["status"]) for each in ended] == [(1, -9), (2, -9)]
    assert [each["event"] for each in map(json.loads, server.log.read_text().splitlines())][-2:] == [
        "stopping",
        "stopped",
    ]
    assert not any(Path(f"/proc/{pid}").exists() for pid in processes)


def test_workers_of_a_shared_root_agree_and_a_killed_one_loses_no_acknowledged_memory(postgres, tmp_path):
    address, stop, acknowledged, problems = postgres.address(), Event(), [], []
    environment = {"JIDOMEM_HOME": str(tmp_path / "copy")}
    addresses.open_log(address, environment).close()  # a server makes no root
    with serving(tmp_path / "root", 2, address=address, environment=environment) as server:
        with client_per_worker(server, 2) as clients:
            for number in range(6):
                writer, reader = 1 + number % 2, 2 - number % 2
                status, receipt = clients[writer].submit(intent(summary=f"shared {number}"))
                assert status == 201, receipt
                assert clients[reader].get(path_of(receipt["iri"]))["iri"] == receipt["iri"]
                assert clients[reader].get("/projects/p")["version"] == receipt["version"]
        names = ("a", "b", "c")
        threads = [Thread(target=submit_until, args=(server, stop, acknowledged, problems, name)) for name in names]
        for thread in threads:
            thread.start()
        for number in (1, 2):
            kill_after_more(server, number, acknowledged, problems)
        before = len(acknowledged)
        wait_until(lambda: len(acknowledged) >= before + 25 or problems)
        stop.set()
        for thread in threads:
            thread.join()
        with client_per_worker(server, 2) as clients:
            versions = {client.get("/projects/p")["version"] for client in clients.values()}
            assert len(versions) == 1
            for client in clients.values():
                assert client.get(path_of(acknowledged[-1]))["iri"] == acknowledged[-1]

    assert problems == []
    ended = events(server, "worker_ended")
    assert [(each["worker"], each["status"]) for each in ended] == [(1, -9), (2, -9)]
    with jidomem.open(address, project="p") as memory:
        facts = [row["fact"] for row in memory.ask("facts")]
        assert memory.journal.verify(Stream("p")) == ()
    assert len(set(facts)) == len(facts)
    assert set(acknowledged) <= set(facts)


def test_several_signals_stop_the_server_once_and_silently(tmp_path):
    with serving(tmp_path / "root", 2, program=PROGRAM) as server:
        while server.poll() is None:
            server.send_signal(signal.SIGINT)
            time.sleep(0.005)

        assert server.returncode == 0
        assert [each["event"] for each in events(server, "stopped")] == ["stopped"]
        assert "Error" not in server.log.read_text()


def test_a_worker_on_sigterm_finishes_its_requests_and_the_others_continue(tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    environment = {"TMPDIR": str(folder)}
    with (
        serving(tmp_path / "root", 2, environment=environment, program=PROGRAM) as server,
        client_per_worker(server, 2) as clients,
    ):
        clients[1].submit(intent())
        version = clients[1].get("/projects/p")["version"]
        clients[2].connection.request("GET", f"/projects/p/journal?after={version}&wait=30")
        (pid,) = (each["pid"] for each in events(server, "worker_started") if each["worker"] == 2)
        os.kill(pid, signal.SIGTERM)
        answer = clients[2].connection.getresponse()
        assert (answer.status, answer.read()) == (200, b"")
        assert wait_for(server, "worker_ended", 1)[0]["status"] == 0
        assert clients[1].get("/projects/p")["version"] == version
        wait_for(server, "worker_started", 3)
        assert [*folder.glob("jidomem-serve-*")]
        workers = [pid for pid in children(server) if b"serve.workers" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        assert len(workers) == 2

        server.kill()

        server.wait(TIMEOUT)
        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))
    assert not [*folder.glob("jidomem-serve-*")]


def failed_start(root, *options):
    command = ["jidomem", "serve", "--root", str(root), "--json", *options]
    result = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    return result.returncode, result.stdout, result.stderr


def test_a_failed_start_is_reported_as_by_one_process(server, tmp_path):
    root = tmp_path / "root"
    as_root(root)
    (root / "shapes").mkdir()
    (root / "shapes" / "mine.ttl").write_text("this is no Turtle")
    used_port = ("--port", server.url.rpartition(":")[2])

    one, several = (
        failed_start(root, "--port", "0", "--workers", "1"),
        failed_start(root, "--port", "0", "--workers", "2"),
    )
    assert (one[0], one[2]) == (several[0], several[2])
    assert one[0] != 0
    assert json.loads(one[1]) == json.loads(several[1])
    (root / "shapes" / "mine.ttl").unlink()
    one, several = failed_start(root, *used_port, "--workers", "1"), failed_start(root, *used_port, "--workers", "2")
    assert (one[0], one[2]) == (several[0], several[2]) == (2, "")
    assert json.loads(one[1])["detail"] == json.loads(several[1])["detail"] == f"127.0.0.1:{used_port[1]} is in use"


def test_a_worker_that_fails_to_restart_is_retried_while_the_others_answer(server):
    config, started = server.root / "config.toml", events(server, "worker_started")
    config.write_text("nonsense = 1\n")
    *_, pid = (each["pid"] for each in started if each["worker"] == 2)
    os.kill(pid, signal.SIGKILL)
    first, *_ = wait_for(server, "worker_refused", 1)
    assert (first["worker"], first["code"]) == (2, "invalid_config")
    with Client(server.url) as client:
        assert client.get("/projects/p/queries/facts")["rows"]

    config.unlink()

    wait_for(server, "worker_started", len(started) + 1)


def test_one_worker_is_the_process_itself(tmp_path):
    assert default_workers() == max(1, len(os.sched_getaffinity(0)) - 1)
    with running(tmp_path / "root", "--workers", "1") as process:
        with Client(process.url) as client:
            client.submit(intent())
            assert "jidomem_workers" not in {name for name, *_ in read_metrics(client)}
        names = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children(process)]
    assert not any(b"serve.workers" in name for name in names)


def test_read_only_workers_refuse_writes(tmp_path):
    root = tmp_path / "root"
    with jidomem.open(root, project="p") as memory:
        memory.writer.submit_intent("p", intent())
    with serving(root, 2, "--read-only") as server, client_per_worker(server, 2) as clients:
        for client in clients.values():
            status, _, body = client.ask("POST", "/projects/p/intents", json.dumps(intent(summary="no")))
            assert (status, json.loads(body)["code"]) == (403, "policy_denied")
            assert client.get("/readyz")["status"] == "ok"
            assert len(client.get("/projects/p/queries/facts")["rows"]) == 1


@contextmanager
def endpoint_without_vectors_of(word):
    """The address of an endpoint for vectors that waits for the end of the test before it embeds a text with *word*."""
    released, toy = Event(), ToyEmbedder()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
            if any(word in text for text in texts):
                released.wait(TIMEOUT)
            vectors = [{"index": n, "embedding": vector} for n, vector in enumerate(toy.generate(texts))]
            body = json.dumps({"data": vectors}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        released.set()
        server.shutdown()


def test_a_memory_without_a_vector_is_found_at_once_through_each_worker(tmp_path, monkeypatch):
    text, question = "Customer Baxter of shop {} wants invoices by e-mail", "How does Baxter of shop {} want invoices?"
    with endpoint_without_vectors_of("by e-mail, new") as url:
        embedder = EndpointEmbedder(ModelEndpoint(url, None), "toy", 96)
        with jidomem.open(tmp_path / "root", project="p", agent="ana", embedder=embedder) as memory:
            [*memory.writer.submit_many("p", [intent(summary=text.format(number)) for number in range(101, 171)])]
            memory.embedding.embed("p")
        monkeypatch.delenv("JIDOMEM_EMBEDDER")
        choice = f'use = "endpoint"\nbase_url = "{url}"\nmodel = "toy"\ndimensions = 96\nkey_env = ""\n'
        with (
            serving(tmp_path / "root", 2, limits=f"[embedder]\n{choice}") as server,
            client_per_worker(server, 2) as clients,
        ):
            writer, reader = clients.values()
            for numbers in ([601], [602], [603, 604, 605]):
                new = [intent(summary=f"{text.format(number)}, new") for number in numbers]
                status, _ = writer.submit(new if len(new) > 1 else new[0])
                assert status in (200, 201, 207)
                for number, client in zip(numbers, cycle([reader, writer])):
                    query = json.dumps({"query": question.format(number)})
                    _, _, body = client.ask("POST", "/projects/p/recall", query, {"Content-Type": "application/json"})
                    answer = json.loads(body)
                    assert answer["entries"][0]["content"] == f"{text.format(number)}, new"
                    assert answer["metadata"]["not_compared"]
