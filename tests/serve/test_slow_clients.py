"""Clients that stop, trickle, hang up or send what is no request: none of them keeps anybody else out."""

import json
import os
import re
import select
import signal
import socket
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlencode, urlsplit

import pytest
from conftest import intent
from http_world import Client, running

import jidomem

IDLE, CONNECTIONS = 0.5, 4
SMALL = f"""\
[limits]
query_rows = 1000
query_answer = 33554432
body = 65536
url = 2048
headers = 4096
connections = {CONNECTIONS}
idle_seconds = {IDLE}
"""
HOST = b"Host: 127.0.0.1\r\n"
INTENTS = b"POST /projects/p/intents HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
LINES = INTENTS.replace(b"json", b"x-ndjson")


@contextmanager
def limited(folder, *options, said=SMALL):
    path = folder / "jidomem" / "config.toml"
    path.parent.mkdir()
    path.write_text(said)
    path.chmod(0o600)
    with running(folder / "root", *options, environment={**os.environ, "XDG_CONFIG_HOME": str(folder)}) as process:
        parts = urlsplit(process.url)
        process.address = (parts.hostname, parts.port)
        yield process


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with limited(tmp_path_factory.mktemp("slow")) as process:
        with Client(process.url) as client:
            client.submit(intent(summary="the first of all"))
        yield process


def connect(server, sent=b"", window=None):
    client = socket.socket(socket.AF_INET6 if ":" in server.address[0] else socket.AF_INET)
    if window:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    client.settimeout(60)  # far beyond what any of these waits for
    client.connect(server.address)
    client.sendall(sent)
    return client


def everything(client):
    """All that comes until the server closes the connection."""
    found = bytearray()
    try:
        while piece := client.recv(1 << 16):
            found += piece
    except ConnectionError:
        pass
    return bytes(found)


def asked(server, sent):
    """What a client is answered that sends no more than that."""
    with connect(server, sent) as client:
        return everything(client)


def problem(answer):
    """The status and the code of the last answer."""
    head, _, body = answer.rpartition(b"\r\n\r\n")
    assert b"Content-Type: application/problem+json" in head
    told = json.loads(body)
    assert told["hint"]
    assert told["request_id"]
    assert f"HTTP/1.1 {told['status']} ".encode() in head
    return told["status"], told["code"]


def named(answer):
    """The id of the only request, as its head and its body say it."""
    (name,) = re.findall(rb"X-Request-Id: ([^\r]+)", answer)
    assert json.loads(answer.rpartition(b"\r\n\r\n")[2])["request_id"] == name.decode()
    return name.decode()


def statuses(answer):
    return [int(status) for status in re.findall(rb"HTTP/1\.1 ([0-9]{3}) ", answer)]


def threads(server):
    return len(list(Path(f"/proc/{server.pid}/task").iterdir()))


def served(server):
    """Return once a client that comes now is answered."""
    with Client(server.url) as client:
        while client.ask("GET", "/healthz")[0] != 200:
            client.connection.close()


def kept(server):
    with Client(server.url) as client:
        return [row["summary"] for row in client.get("/projects/p/queries/facts")["rows"]]


def body_of(summary):
    return json.dumps(intent(summary=summary)).encode()


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\n" + HOST, INTENTS + b"Content-Length: 900\r\n\r\n{"],
    ids=["nothing", "half a line", "half a head", "half a body"],
)
def test_more_stalled_clients_than_there_are_connections_keep_nobody_out(server, sent):
    # Given nearly twenty times as many as are attended to, who stop and stay
    with ExitStack() as stack:
        clients = [stack.enter_context(connect(server, sent)) for _ in range(70)]

        # When another one comes, then it is answered while they stay
        served(server)

        # And those who began a request were told why they are let go, or that there are too many
        for client in clients if sent else ():
            assert problem(everything(client)) in {(408, "request_timeout"), (503, "busy")}
    while threads(server) > 40:
        pass  # a thread that is kept would let this go on


@pytest.mark.parametrize(
    "begun",
    [b"GET /healthz HTTP/1.1\r\n" + HOST + b"X-Long: ", INTENTS + b"Content-Length: 9000\r\n\r\n"],
    ids=["head", "body"],
)
def test_a_client_that_trickles_is_let_go_though_it_never_stops(server, begun):
    with connect(server, begun) as client:
        client.settimeout(IDLE / 10)
        answer = b""
        while b"\r\n\r\n" not in answer:
            try:
                client.sendall(b"x")
                answer += client.recv(4096)
            except TimeoutError:
                continue

    assert answer.upper().startswith(b"HTTP/1.1 408 REQUEST TIMEOUT\r\n")
    assert b"Connection: close" in answer


def test_a_body_that_is_cut_is_refused_and_nothing_of_it_is_kept(server):
    # Given a whole intent in a body that is said to be longer, by a client that hangs up or only stops sending
    for said in (INTENTS + b"Content-Length: 2000\r\n\r\n", INTENTS + b"Transfer-Encoding: chunked\r\n\r\n400\r\n"):
        with connect(server, said + body_of("cut off")) as client:
            client.shutdown(socket.SHUT_WR)
            answer = everything(client)
        assert problem(answer) == (400, "invalid_argument")
    connect(server, INTENTS + b"Content-Length: 2000\r\n\r\n" + body_of("cut off")).close()

    # When it is chunks without the last one, then it is not whole either
    text = body_of("cut off")
    told = asked(server, INTENTS + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(text), text))
    assert problem(told) == (408, "request_timeout")
    assert "cut off" not in kept(server)


def test_lines_that_are_cut_keep_those_that_came_whole_and_say_so(server):
    whole = body_of("a whole line") + b"\n"
    answer = asked(server, LINES + b"Content-Length: 9000\r\n\r\n" + whole + body_of("half a line"))

    outcomes = [json.loads(line) for line in answer.splitlines() if line.startswith(b"{")]
    assert [outcome.get("status") or outcome["code"] for outcome in outcomes] == ["asserted", "request_timeout"]
    assert "a whole line" in kept(server)
    assert "half a line" not in kept(server)


def large_answer():
    growing = f"BIND('{'x' * 1000}' AS ?a) BIND(CONCAT({', '.join(['?a'] * 30)}) AS ?t)"
    text = urlencode({"query": f"SELECT ?t {{ VALUES ?n {{ {' '.join(map(str, range(900)))} }} {growing} }}"}).encode()
    form = b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n" % len(text)
    return b"POST /sparql HTTP/1.1\r\n" + HOST + form + text


@pytest.mark.parametrize("reads", [False, True], ids=["not at all", "a byte at a time"])
def test_an_answer_that_nobody_takes_is_let_go(server, reads):
    # Given as many clients as there are connections, each with an answer larger than the system keeps for it
    with ExitStack() as stack:
        clients = [stack.enter_context(connect(server, window=4096)) for _ in range(CONNECTIONS)]
        for client in clients:
            client.sendall(large_answer())
            while client.recv(12) == b"HTTP/1.1 429":  # a query of another one is still under way
                everything_now(client)
                client.sendall(large_answer())

        # When they read no further, or a byte at a time, then others are served all the same, and these let go
        served(server)
        while not all(has_ended(client) for client in clients):
            for client in clients if reads else ():
                read_one(client)
        for client in clients:
            assert len(everything(client)) < 27_000_000


def everything_now(client):
    client.recv(1 << 16)


def has_ended(client):
    waiting = select.poll()
    waiting.register(client, 0)
    return bool(waiting.poll(20))


def read_one(client):
    with suppress(ConnectionError):
        client.recv(1)


def test_clients_that_hang_up_in_the_middle_of_an_answer_free_their_threads(server):
    for _ in range(CONNECTIONS + 1):
        with connect(server, large_answer(), window=4096) as client:
            client.recv(12)
    served(server)
    while threads(server) > 40:
        pass  # a thread that is kept would let this go on


def while_all_are_taken(server):
    """What a client is answered while each connection has a body that still comes."""
    done = Event()

    def go_on(clients):
        with suppress(OSError):
            while not done.wait(IDLE / 50):
                for client in clients:
                    client.sendall(b"\n" * 512)

    with ExitStack() as stack:
        begun = LINES + b"Content-Length: 1000000000\r\n\r\n"
        clients = [stack.enter_context(connect(server, begun)) for _ in range(CONNECTIONS)]
        others = Thread(target=go_on, args=(clients,))
        others.start()
        answer = asked(server, b"GET /healthz HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n")
        done.set()
        others.join()
    return answer


def test_one_more_client_than_there_are_connections_is_told_so_and_may_come_back(server):
    while statuses(answer := while_all_are_taken(server)) != [503]:
        served(server)  # one of the bodies came too slowly on this machine, and was let go

    assert problem(answer) == (503, "busy")
    assert b"Retry-After: 1\r\n" in answer
    served(server)


def test_clients_that_keep_their_connection_do_not_keep_others_out(server):
    with ExitStack() as stack:
        idle = [stack.enter_context(Client(server.url)) for _ in range(CONNECTIONS)]
        for client in idle:
            assert client.get("/healthz") == {"status": "ok"}
        served(server)


def test_requests_that_come_together_are_answered_in_order(server):
    one = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
    text = body_of("in a pipeline")
    chunks = b"%x;a=b\r\n%s\r\n%x\r\n%s\r\n0\r\nX-Trailer: 1\r\n\r\n" % (9, text[:9], len(text) - 9, text[9:])
    sent = one + INTENTS + b"Transfer-Encoding: chunked\r\n\r\n" + chunks
    last = b"GET /nowhere HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n"

    answer = asked(server, sent + b"\r\n" + one.replace(b"GET", b"HEAD") + last)

    assert statuses(answer) == [200, 201, 200, 404]
    assert "in a pipeline" in kept(server)


def test_a_body_nobody_reads_is_not_taken_for_the_next_request(server):
    hidden = b"DELETE /hidden HTTP/1.1\r\n" + HOST + b"\r\n"
    last = b"GET /healthz HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n"
    for frame, body in (
        (b"Content-Length: %d\r\n\r\n" % len(hidden), hidden),
        (b"Transfer-Encoding: chunked\r\n\r\n", b"%x\r\n%s\r\n0\r\n\r\n" % (len(hidden), hidden)),
    ):
        assert statuses(asked(server, b"POST /nowhere HTTP/1.1\r\n" + HOST + frame + body + last)) == [404, 200]


def test_a_client_that_asks_before_it_sends_is_told_to_go_on_or_why_not(server):
    text = body_of("after being told")
    with connect(server, INTENTS + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(text)) as client:
        assert client.recv(4096) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(text)
        assert b"HTTP/1.1 201 " in client.recv(4096)

    foreign = INTENTS.replace(b"127.0.0.1", b"example.org")
    told = asked(server, foreign + b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n")
    assert statuses(told) == [403]
    assert b"Connection: close" in told


def test_an_answer_to_head_has_no_body_and_its_length(server):
    answer = asked(server, b"HEAD /healthz HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n")
    assert answer.endswith(b"\r\n\r\n")
    assert b"Content-Length: 15\r\n" in answer


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (b"GET /" + b"x" * 3000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", (414, "uri_too_long")),
        (b"GET /" + b"x" * 90_000, (414, "uri_too_long")),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A: b\r\n" * 900 + b"\r\n", (431, "headers_too_large")),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A: " + b"b" * 900_000, (431, "headers_too_large")),
        (INTENTS + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", (400, "invalid_argument")),
        (INTENTS + b"Content-Length: 2, 3\r\n\r\n{}", (400, "invalid_argument")),
        (INTENTS + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", (400, "invalid_argument")),
        (INTENTS + b"Content-Length: +2\r\n\r\n{}", (400, "invalid_argument")),
        (INTENTS + b"Content_Length: 2\r\n\r\n{}", (400, "invalid_argument")),
        (INTENTS + b"Transfer-Encoding: gzip, chunked\r\n\r\n", (400, "invalid_argument")),
        (INTENTS + b"Transfer-Encoding: \x0bchunked\r\n\r\n", (400, "invalid_argument")),
        (INTENTS + b"Transfer-Encoding : chunked\r\n\r\n", (400, "invalid_argument")),
        (INTENTS + CHUNKED + CHUNKED + b"\r\n", (400, "invalid_argument")),
        (INTENTS.replace(b"1.1", b"1.0") + CHUNKED + b"\r\n2\r\n{}\r\n0\r\n\r\n", (400, "invalid_argument")),
        (INTENTS + CHUNKED + b"\r\n2;a\nb\r\n{}\r\n0\r\n\r\n", (400, "invalid_argument")),
        (INTENTS + CHUNKED + b"\r\n2\r\n{}\r\n0\r\n\n", (400, "invalid_argument")),
        (INTENTS + CHUNKED + b"\r\n2\n{}\r\n0\r\n\r\n", (400, "invalid_argument")),
        (b"GET / HTTP/1.1\n" + HOST + b"\n", (400, "invalid_argument")),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A: b\n" + CHUNKED + b"\r\n", (400, "invalid_argument")),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A: b\r" + CHUNKED + b"\r\n", (400, "invalid_argument")),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A: b\n\nGET /healthz HTTP/1.1\r\n" + HOST, (400, "invalid_argument")),
        (INTENTS + b"Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n", (400, "invalid_argument")),
        (INTENTS + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n", (400, "invalid_argument")),
        (INTENTS + b"Transfer-Encoding: chunked\r\n\r\n" + b"0" * 9000, (400, "invalid_argument")),
        (b"GET / HTTP/1.1\r\n" + HOST + HOST + b"\r\n", (400, "invalid_argument")),
        (b"GET / HTTP/1.1\r\n\r\n", (400, "invalid_argument")),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A: b\r\n folded\r\n\r\n", (400, "invalid_argument")),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A : b\r\n\r\n", (400, "invalid_argument")),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A: \x00\r\n\r\n", (400, "invalid_argument")),
        (b"GET /\xc3\xa4 HTTP/1.1\r\n" + HOST + b"\r\n", (400, "invalid_argument")),
        (b"GET * HTTP/1.1\r\n" + HOST + b"\r\n", (400, "invalid_argument")),
        (b"GET / HTTP/2.0\r\n" + HOST + b"\r\n", (400, "invalid_argument")),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", (400, "invalid_argument")),
    ],
)
def test_what_is_too_large_or_could_be_read_in_two_ways_is_refused(server, sent, told):
    answer = asked(server, sent + b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n")

    assert (problem(answer), len(statuses(answer))) == (told, 1)  # nothing behind it is read as a request


def test_what_is_refused_before_it_is_a_request_stands_in_the_log_and_in_the_figures(tmp_path):
    wrong = b"GET / HTTP/1.1\r\nX-Request-Id: build-7\r\nContent_Length: 2\r\n" + HOST + b"\r\n"
    with limited(tmp_path, "--log-format", "json") as process:
        told = [(*problem(answer := asked(process, sent)), named(answer)) for sent in (wrong, b"GET /" + b"x" * 9000)]
        told.append((*problem(answer := asked(process, b"GET /hea")), named(answer)))
        with Client(process.url) as client:
            figures = client.ask("GET", "/metrics")[2].decode()
        process.terminate()
        events = [json.loads(line) for line in process.communicate()[1].splitlines()]

    logged = [(e["status"], e["code"], e["request_id"]) for e in events if e["event"] == "request" and "code" in e]
    assert logged == told
    assert told[0] == (400, "invalid_argument", "build-7")
    for status, code, _ in told:
        assert f'jidomem_refusals_total{{code="{code}"}} 1' in figures
        assert f'jidomem_http_requests_total{{route="none",method="other",status="{status}"}} 1' in figures


def test_a_whole_address_and_an_older_version_are_answered(server):
    for place, status in ((b"127.0.0.1", 200), (b"example.org", 403)):
        sent = b"GET http://" + place + b"/healthz HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n"
        assert statuses(asked(server, sent)) == [status]
    told = asked(server, b"GET /projects/p/queries/facts HTTP/1.0\r\n" + HOST + b"\r\n")
    assert (statuses(told), b"chunked" in told) == ([200], False)


def test_lines_stream_in_and_out_at_once_past_a_reader_that_comes_late(server):
    lines = b"".join(json.dumps(intent(summary=f"late {n}", topic=f"late {n}")).encode() + b"\n" for n in range(1500))
    with connect(server, window=4096) as client:
        client.sendall(LINES + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(lines) + lines)
        answer = everything(client)

    assert answer.count(b'"asserted"') == 1500
    assert answer.endswith(b"\r\n0\r\n\r\n")


def test_it_listens_on_ipv6(tmp_path):
    with limited(tmp_path, "--host", "::1") as process:
        assert process.url.startswith("http://[::1]:")
        assert statuses(asked(process, b"GET /healthz HTTP/1.1\r\nHost: [::1]\r\nConnection: close\r\n\r\n")) == [200]


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_whatever_its_clients_do_and_what_was_acknowledged_is_there(tmp_path, stop):
    with limited(tmp_path) as process, ExitStack() as stack, Client(process.url) as client:
        assert client.submit(intent(summary="acknowledged"))[0] == 201
        # Given one connection kept, one in its head, one in its body, one that reads nothing
        for sent in (b"GET /hea", INTENTS + b"Content-Length: 9\r\n\r\n{", large_answer()):
            stack.enter_context(connect(process, sent, window=4096))
        process.send_signal(stop)

        assert process.wait(60) == 0

    with jidomem.open(tmp_path / "root") as memory:
        assert [row["summary"] for row in memory.reader.list_facts_with_confidence("p")] == ["acknowledged"]
