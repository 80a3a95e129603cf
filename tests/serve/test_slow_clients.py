"""Clients that stop, trickle or hang up: none of them keeps anybody else out, and nothing cut is taken for whole."""

import json
import re
import select
import signal
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from threading import Event, Thread

import pytest
from conftest import intent
from http_world import Client
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

IDLE = 0.5


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with limited_with_memory(tmp_path_factory.mktemp("slow"), IDLE) as process:
        yield process


def threads(server):
    return len(list(Path(f"/proc/{server.pid}/task").iterdir()))


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
        wait_until_served(server)

        # And those who began a request were told why they are let go, or that there are too many
        told = {problem(answer) for client in clients if (answer := read_all(client))}
        assert told <= {(408, "request_timeout"), (503, "busy")}
        assert told or not sent
    while threads(server) > 40:
        pass  # a thread that is kept would let this go on


@pytest.mark.parametrize(
    "limited_with_memory",
    [b"GET /healthz HTTP/1.1\r\n" + HOST + b"X-Long: ", INTENTS + b"Content-Length: 9000\r\n\r\n"],
    ids=["head", "body"],
)
def test_a_client_that_trickles_is_let_go_though_it_never_stops(server, limited_with_memory):
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


def test_a_body_whose_last_chunk_does_not_come_is_refused_and_nothing_of_it_is_kept(server):
    text = body_of("cut off")
    told = exchange(server, INTENTS + CHUNKED + b"\r\n%x\r\n%s\r\n" % (len(text), text))
    assert problem(told) == (408, "request_timeout")
    assert "cut off" not in stored_summaries(server)


def test_lines_that_are_cut_keep_those_that_came_whole_and_say_so(server):
    whole = body_of("a whole line") + b"\n"
    answer = exchange(server, LINES + b"Content-Length: 9000\r\n\r\n" + whole + body_of("half a line"))

    outcomes = [json.loads(line) for line in answer.splitlines() if line.startswith(b"{")]
    assert [outcome.get("status") or outcome["code"] for outcome in outcomes] == ["asserted", "request_timeout"]
    assert "a whole line" in stored_summaries(server)
    assert "half a line" not in stored_summaries(server)


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
        wait_until_served(server)
        while not all(has_ended(client) for client in clients):
            for client in clients if reads else ():
                read_one(client)
        for client in clients:
            assert len(read_all(client)) < 27_000_000


def everything_now(client):
    client.recv(1 << 16)


def has_ended(client):
    waiting = select.poll()
    waiting.register(client, 0)
    return bool(waiting.poll(20))


def read_one(client):
    with suppress(ConnectionError):
        client.recv(1)


def under_way(server):
    with Client(server.url) as client:
        return int(re.search(rb"requests_in_progress (\d+)", client.ask("GET", "/metrics")[2])[1])


def to_the_end(client):
    while client.recv(1 << 16):
        pass


def test_an_answer_that_breaks_off_is_not_taken_for_whole(server):
    limited_with_memory = b""
    while limited_with_memory != b"HTTP/1.1 200":  # a query of another one may still be under way
        with connect(server, large_answer().replace(b"HTTP/1.1", b"HTTP/1.0"), window=4096) as client:
            limited_with_memory = client.recv(12)
            if limited_with_memory == b"HTTP/1.1 200":
                assert any(has_ended(client) for _ in range(3000))  # each looks for 20 ms
                with pytest.raises(ConnectionResetError):  # its end would be where the connection is closed
                    to_the_end(client)


def test_clients_that_hang_up_in_the_middle_of_an_answer_free_their_threads(server):
    for _ in range(CONNECTIONS + 1):
        with connect(server, large_answer(), window=4096) as client:
            client.recv(12)
    wait_until_served(server)
    while threads(server) > 40:
        pass  # a thread that is kept would let this go on


def while_all_are_taken(server, path=b"/projects", waiting=0):
    """What a client is answered while each connection has a body that still comes."""
    done = Event()

    def go_on(clients):
        with suppress(OSError):
            while not done.wait(IDLE / 50):
                for client in clients:
                    client.sendall(b"\n" * 512)

    with ExitStack() as stack:
        limited_with_memory = LINES + b"Content-Length: 1000000000\r\n\r\n"
        clients = [stack.enter_context(connect(server, limited_with_memory)) for _ in range(CONNECTIONS)]
        others = Thread(target=go_on, args=(clients,))
        others.start()
        for _ in range(waiting):
            stack.enter_context(connect(server))
        answer = exchange(server, b"GET " + path + b" HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n")
        done.set()
        others.join()
    return answer


def test_one_more_client_than_there_are_connections_is_told_so_and_may_come_back(server):
    while statuses(answer := while_all_are_taken(server)) != [503]:
        wait_until_served(server)  # one of the bodies came too slowly on this machine, and was let go

    assert problem(answer) == (503, "busy")
    assert b"Retry-After: 1\r\n" in answer
    wait_until_served(server)


@pytest.mark.parametrize("path", [b"/healthz", b"/readyz"])
@pytest.mark.parametrize("waiting", [0, 40])
def test_a_probe_is_answered_though_all_connections_are_taken_and_others_wait(server, path, waiting):
    assert statuses(while_all_are_taken(server, path, waiting)) == [200]
    wait_until_served(server)


def test_clients_that_keep_their_connection_do_not_keep_others_out(server):
    with ExitStack() as stack:
        idle = [stack.enter_context(Client(server.url)) for _ in range(CONNECTIONS)]
        for client in idle:
            assert client.get("/healthz") == {"status": "ok"}
        wait_until_served(server)


def test_what_is_refused_before_it_is_a_request_stands_in_the_log_and_in_the_figures(tmp_path):
    wrong = b"GET / HTTP/1.1\r\nX-Request-Id: build-7\r\nContent_Length: 2\r\n" + HOST + b"\r\n"
    with limited(tmp_path, "--log-format", "json", idle=IDLE) as process:
        told = [
            (*problem(answer := exchange(process, sent)), request_id(answer))
            for sent in (wrong, b"GET /" + b"x" * 9000)
        ]
        told.append((*problem(answer := exchange(process, b"GET /hea")), request_id(answer)))
        with Client(process.url) as client:
            figures = client.ask("GET", "/metrics")[2].decode()
        process.terminate()
        events = [json.loads(line) for line in process.communicate()[1].splitlines()]

    logged = [(e["status"], e["code"], e["request_id"]) for e in events if e["event"] == "request" and "code" in e]
    assert logged == told
    assert told[0] == (400, "invalid_argument", "build-7")
    for status, code, _ in told:
        assert f'jidomem_refusals_total{{code="{code}"}} 1' in figures
        assert f'jidomem_http_requests_total{{method="other",route="none",status="{status}"}} 1' in figures


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_whatever_its_clients_do_and_what_was_acknowledged_is_there(tmp_path, stop):
    with limited(tmp_path, idle=IDLE) as process, ExitStack() as stack, Client(process.url) as client:
        assert client.submit(intent(summary="acknowledged"))[0] == 201
        # Given one connection kept, one in its head, one in its body, one that reads nothing
        for sent in (b"GET /hea", INTENTS + b"Content-Length: 9\r\n\r\n{", large_answer()):
            stack.enter_context(connect(process, sent, window=4096))
        process.send_signal(stop)

        assert process.wait(60) == 0

    with jidomem.open(tmp_path / "root") as memory:
        assert [row["summary"] for row in memory.reader.list_facts_with_confidence("p")] == ["acknowledged"]


def test_a_reader_of_events_that_hangs_up_gives_its_place_to_another(tmp_path):
    events = b"GET /projects/p/journal HTTP/1.1\r\nAccept: text/event-stream\r\nConnection: close\r\n" + HOST + b"\r\n"
    with limited(tmp_path, idle=LONG_IDLE) as process, Client(process.url) as client:
        assert client.submit(intent(summary="the first"))[0] == 201
        with connect(process, events) as reader:
            assert reader.recv(12) == b"HTTP/1.1 200"
            assert problem(exchange(process, events)) == (429, "too_many_requests")

        for number in count():
            told = intent(summary=f"another {number}", topic=f"topic {number}")
            assert client.submit(told)[0] == 201  # which the first one is told, and does not take
            with connect(process, events) as reader:
                if reader.recv(12) == b"HTTP/1.1 200":
                    return


def test_a_server_that_stops_closes_who_waits_and_tells_those_whose_rest_does_not_come(tmp_path):
    with limited(tmp_path, idle=LONG_IDLE) as process, Client(process.url) as client, ExitStack() as stack:
        assert client.get("/healthz") == {"status": "ok"}
        half = stack.enter_context(connect(process, INTENTS + b"Content-Length: 9000\r\n\r\n{"))
        lines = stack.enter_context(connect(process, LINES + CHUNKED + b"\r\n"))
        while under_way(process) < 3:
            pass
        process.terminate()

        assert problem(read_all(half)) == problem(read_all(lines)) == (503, "busy")
        assert client.connection.sock.recv(1) == b""
        assert process.wait(60) == 0
