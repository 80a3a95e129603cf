"""A server on SIGTERM: acknowledged memories are stored, requests end, and it exits with 0."""

import json
import socket
from contextlib import closing, suppress
from threading import Thread
from urllib.parse import urlencode, urlsplit

import pytest
from conftest import intent, wait_until
from http_world import Client, serving

import jidomem
from jidomem.serve import listener
from jidomem.serve.connection import ClientSocket

pytestmark = pytest.mark.usefixtures("loaded_program")
NUMBERS = " ".join(f"VALUES ?n{n} {{ {' '.join(map(str, range(100)))} }}" for n in range(6))


def stored_facts(root):
    with jidomem.open(root) as memory:
        return {row["fact"] for row in memory.reader.ask("facts", project="p")}


def chunk(data):
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def lines(first, count):
    return b"".join(json.dumps(intent(summary=f"line {first + n}")).encode() + b"\n" for n in range(count))


def open_stream(process):
    """An endless stream of intents to a server, of which nothing is sent yet."""
    address = urlsplit(process.url)
    stream = socket.create_connection((address.hostname, address.port), timeout=30)
    head = b"POST /projects/p/intents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
    stream.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
    return stream


def receive(stream, until=None):
    """The bytes of a server, to the end or until they have *until* outcomes."""
    received = b""
    with suppress(ConnectionResetError):
        while piece := stream.recv(65536):
            received += piece
            if until is not None and received.count(b"}\n") >= until:
                break
    return received


def outcomes(answer):
    """The outcomes in a chunked answer, and whether it is complete."""
    _, _, body = answer.partition(b"\r\n\r\n")
    text = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size, 16)
        text, body = text + body[:length], body[length + 2 :]
        if not length:
            return [json.loads(line) for line in text.splitlines()], True
    return [json.loads(line) for line in text.splitlines()], False


@pytest.mark.parametrize("goes_on", [True, False], ids=["while it sends", "while it says nothing"])
def test_a_stream_of_intents_ends_and_its_acknowledged_memories_are_stored(tmp_path, goes_on):
    root = tmp_path / "root"
    with serving(root, "-q") as process, closing(open_stream(process)) as stream:
        stream.sendall(chunk(lines(0, 1200)))
        received = receive(stream, until=500)

        def send():
            number = 1200
            try:
                while goes_on:
                    stream.sendall(chunk(lines(number, 100)))
                    number += 100
            except OSError:
                return

        sender = Thread(target=send)
        sender.start()
        process.terminate()
        received += receive(stream)
        sender.join()
        _, error_output = process.communicate(timeout=20)

    answers, is_whole = outcomes(received)
    ending = answers.pop()
    assert (is_whole, ending["code"], ending["position"]) == (True, "busy", len(answers))
    assert ending["detail"].startswith("the server is stopping")
    acknowledged = {each["iri"] for each in answers}
    assert len(acknowledged) == len(answers) >= 500
    assert acknowledged <= stored_facts(root)
    assert (process.returncode, error_output) == (0, "")


def test_a_running_query_is_refused_as_busy_when_the_server_stops(tmp_path):
    answers = []
    with serving(tmp_path / "root", "--log-level", "error") as process, Client(process.url) as client:
        client.submit(intent())

        def ask():
            with Client(process.url) as connection:
                query = urlencode({"query": f"SELECT (COUNT(*) AS ?n) {{ {NUMBERS} }}"})
                answers.append(connection.ask("GET", f"/projects/p/sparql?{query}"))

        asker = Thread(target=ask)
        asker.start()
        wait_until(lambda: b"jidomem_sparql_running 1" in client.ask("GET", "/metrics")[2])
        process.terminate()
        asker.join()
        _, error_output = process.communicate(timeout=20)

    ((status, _, body),) = answers
    assert (status, json.loads(body)["code"]) == (503, "busy")
    assert (process.returncode, error_output) == (0, "")


def test_a_connection_has_a_timeout_for_unacknowledged_data():
    socket_listener = listener.listen("127.0.0.1", 0)
    with (
        socket_listener as listening,
        socket.create_connection(socket_listener.getsockname()),
        listening.accept()[0] as accepted,
    ):
        ClientSocket(accepted, 12.5)
        seconds = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) / 1000

    assert seconds == 12.5
