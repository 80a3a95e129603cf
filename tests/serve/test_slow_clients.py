"""Clients that stall, send slowly or disconnect: none blocks others, and no incomplete request or answer is taken for
whole.
"""

import json
import re
import select
import signal
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from threading import Event, Thread

import pytest
from conftest import intent, wait_until
from http_world import Client, running
from raw_http import (
    CHUNKED,
    CONNECTIONS,
    HOST,
    INTENTS,
    LINES,
    LONG_IDLE,
    body_of,
    connect,
    exchange,
    large_answer,
    limited,
    limited_with_memory,
    problem,
    read_all,
    request_id,
    statuses,
    stored_summaries,
    wait_until_served,
)

import jidomem

pytestmark = pytest.mark.usefixtures("loaded_program")
IDLE = 0.5


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with limited_with_memory(tmp_path_factory.mktemp("slow"), IDLE, running) as process:  # whose threads are counted
        yield process


def threads(server):
    return len(list(Path(f"/proc/{server.pid}/task").iterdir()))


@pytest.mark.parametrize(
    "data",
    [b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\n" + HOST, INTENTS + b"Content-Length: 900\r\n\r\n{"],
    ids=["nothing", "half a line", "half a head", "half a body"],
)
def test_more_stalled_clients_than_connections_block_nobody(server, data):
    # Given nearly twenty times as many as there are connections, which stall without disconnecting
    with ExitStack() as stack:
        clients = [stack.enter_context(connect(server, data)) for _ in range(70)]

        # When another client comes, then it is answered while they stay
        wait_until_served(server)

        # And the clients that began a request are refused as late, or because there are too many
        refusals = {problem(answer) for client in clients if (answer := read_all(client))}
        assert refusals <= {(408, "request_timeout"), (503, "busy")}
        assert refusals or not data
    assert wait_until(lambda: threads(server) <= 40)


@pytest.mark.parametrize(
    "limited_with_memory",
    [b"GET /healthz HTTP/1.1\r\n" + HOST + b"X-Long: ", INTENTS + b"Content-Length: 9000\r\n\r\n"],
    ids=["head", "body"],
)
def test_a_client_that_sends_slowly_without_end_is_refused(server, limited_with_memory):
    with connect(server, limited_with_memory) as client:
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


def test_a_body_without_its_last_chunk_is_refused_and_not_stored(server):
    text = body_of("cut off")
    refusal = exchange(server, INTENTS + CHUNKED + b"\r\n%x\r\n%s\r\n" % (len(text), text))
    assert problem(refusal) == (408, "request_timeout")
    assert "cut off" not in stored_summaries(server)


def test_whole_lines_before_an_incomplete_one_are_stored_and_the_refusal_follows(server):
    whole = body_of("a whole line") + b"\n"
    answer = exchange(server, LINES + b"Content-Length: 9000\r\n\r\n" + whole + body_of("half a line"))

    outcomes = [json.loads(line) for line in answer.splitlines() if line.startswith(b"{")]
    assert [outcome.get("status") or outcome["code"] for outcome in outcomes] == ["asserted", "request_timeout"]
    assert "a whole line" in stored_summaries(server)
    assert "half a line" not in stored_summaries(server)


@pytest.mark.parametrize("reads", [False, True], ids=["not at all", "a byte at a time"])
def test_an_unread_answer_is_ended(server, reads):
    # Given as many clients as there are connections, each with an answer larger than the buffers of the system
    with ExitStack() as stack:
        clients = [stack.enter_context(connect(server, window=4096)) for _ in range(CONNECTIONS)]
        for client in clients:
            client.sendall(large_answer())
            while client.recv(12) == b"HTTP/1.1 429":  # a query of another test is still running
                read_chunk(client)
                client.sendall(large_answer())

        # When they read nothing further, or a byte at a time, then others are answered, and these connections end
        wait_until_served(server)
        while not all(has_ended(client) for client in clients):
            for client in clients if reads else ():
                read_byte(client)
        for client in clients:
            assert len(read_all(client)) < 27_000_000


def read_chunk(client):
    client.recv(1 << 16)


def has_ended(client):
    waiting = select.poll()
    waiting.register(client, 0)
    return bool(waiting.poll(20))


def read_byte(client):
    with suppress(ConnectionError):
        client.recv(1)


def requests_in_progress(server):
    with Client(server.url) as client:
        return int(re.search(rb"requests_in_progress (\d+)", client.ask("GET", "/metrics")[2])[1])


def drain(client):
    while client.recv(1 << 16):
        pass


def test_a_broken_answer_is_recognized_as_incomplete(server):
    limited_with_memory = b""
    while limited_with_memory != b"HTTP/1.1 200":  # a query of another test may still be running
        with connect(server, large_answer().replace(b"HTTP/1.1", b"HTTP/1.0"), window=4096) as client:
            limited_with_memory = client.recv(12)
            if limited_with_memory == b"HTTP/1.1 200":
                assert any(has_ended(client) for _ in range(3000))  # each looks for 20 ms
                with pytest.raises(ConnectionResetError):  # a regular end would close the connection
                    drain(client)


def test_clients_that_disconnect_during_an_answer_free_their_threads(server):
    for _ in range(CONNECTIONS + 1):
        with connect(server, large_answer(), window=4096) as client:
            client.recv(12)
    wait_until_served(server)

    assert wait_until(lambda: threads(server) <= 40)


def answer_while_busy(server, path=b"/projects", waiting=0):
    """The answer to a client while a body is arriving on each connection."""
    done = Event()

    def keep_sending(clients):
        with suppress(OSError):
            while not done.wait(IDLE / 50):
                for client in clients:
                    client.sendall(b"\n" * 512)

    with ExitStack() as stack:
        limited_with_memory = LINES + b"Content-Length: 1000000000\r\n\r\n"
        clients = [stack.enter_context(connect(server, limited_with_memory)) for _ in range(CONNECTIONS)]
        others = Thread(target=keep_sending, args=(clients,))
        others.start()
        for _ in range(waiting):
            stack.enter_context(connect(server))
        answer = exchange(server, b"GET " + path + b" HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n")
        done.set()
        others.join()
    return answer


def test_a_client_above_the_limit_of_connections_is_refused_with_retry_after(server):
    while statuses(answer := answer_while_busy(server)) != [503]:
        wait_until_served(server)  # one of the bodies came too slowly on this machine, and its connection was closed

    assert problem(answer) == (503, "busy")
    assert b"Retry-After: 1\r\n" in answer
    wait_until_served(server)


@pytest.mark.parametrize("path", [b"/healthz", b"/readyz"])
@pytest.mark.parametrize("waiting", [0, 40])
def test_a_probe_is_answered_while_all_connections_are_busy_and_others_wait(server, path, waiting):
    assert statuses(answer_while_busy(server, path, waiting)) == [200]
    wait_until_served(server)


def test_idle_connections_block_nobody(server):
    def all_are_idle():
        with ExitStack() as stack:
            idle = [stack.enter_context(Client(server.url)) for _ in range(CONNECTIONS)]
            if any(client.ask("GET", "/healthz")[0] != 200 for client in idle):
                return False  # connections of the test before are still open
            wait_until_served(server)
            return True

    assert wait_until(all_are_idle)


def test_a_malformed_request_is_logged_and_counted(tmp_path):
    wrong = b"GET / HTTP/1.1\r\nX-Request-Id: build-7\r\nContent_Length: 2\r\n" + HOST + b"\r\n"
    with limited(tmp_path, "--log-format", "json", idle=IDLE) as process:
        refusals = [
            (*problem(answer := exchange(process, sent)), request_id(answer))
            for sent in (wrong, b"GET /" + b"x" * 9000)
        ]
        refusals.append((*problem(answer := exchange(process, b"GET /hea")), request_id(answer)))
        with Client(process.url) as client:
            figures = client.ask("GET", "/metrics")[2].decode()
        process.terminate()
        events = [json.loads(line) for line in process.communicate()[1].splitlines()]

    logged = [(e["status"], e["code"], e["request_id"]) for e in events if e["event"] == "request" and "code" in e]
    assert logged == refusals
    assert refusals[0] == (400, "invalid_argument", "build-7")
    for status, code, _ in refusals:
        assert f'jidomem_refusals_total{{code="{code}"}} 1' in figures
        assert f'jidomem_http_requests_total{{method="other",route="none",status="{status}"}} 1' in figures


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_server_with_stalled_clients_and_keeps_acknowledged_memories(tmp_path, stop):
    with limited(tmp_path, idle=IDLE) as process, ExitStack() as stack, Client(process.url) as client:
        assert client.submit(intent(summary="acknowledged"))[0] == 201
        # Given one idle connection, one in its head, one in its body, one that reads nothing
        for request in (b"GET /hea", INTENTS + b"Content-Length: 9\r\n\r\n{", large_answer()):
            stack.enter_context(connect(process, request, window=4096))
        process.send_signal(stop)

        assert process.wait(60) == 0

    with jidomem.open(tmp_path / "root") as memory:
        assert [row["summary"] for row in memory.reader.list_facts_with_confidence("p")] == ["acknowledged"]


def test_a_disconnected_reader_of_events_frees_its_place(tmp_path):
    events = b"GET /projects/p/journal HTTP/1.1\r\nAccept: text/event-stream\r\nConnection: close\r\n" + HOST + b"\r\n"
    with limited(tmp_path, idle=LONG_IDLE) as process, Client(process.url) as client:
        assert client.submit(intent(summary="the first"))[0] == 201
        with connect(process, events) as reader:
            assert reader.recv(12) == b"HTTP/1.1 200"
            assert problem(exchange(process, events)) == (429, "too_many_requests")

        for number in count():
            values = intent(summary=f"another {number}", topic=f"topic {number}")
            assert client.submit(values)[0] == 201  # which is sent to the first reader, and not read
            with connect(process, events) as reader:
                if reader.recv(12) == b"HTTP/1.1 200":
                    return


def test_a_stopping_server_closes_idle_connections_and_refuses_incomplete_requests(tmp_path):
    with limited(tmp_path, idle=LONG_IDLE) as process, Client(process.url) as client, ExitStack() as stack:
        assert client.get("/healthz") == {"status": "ok"}
        half = stack.enter_context(connect(process, INTENTS + b"Content-Length: 9000\r\n\r\n{"))
        lines = stack.enter_context(connect(process, LINES + CHUNKED + b"\r\n"))
        wait_until(lambda: requests_in_progress(process) >= 3)
        process.terminate()

        assert problem(read_all(half)) == problem(read_all(lines)) == (503, "busy")
        assert client.connection.sock.recv(1) == b""
        assert process.wait(60) == 0
