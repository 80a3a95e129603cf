"""A server that is told to stop: what it acknowledged is kept, what is under way ends, and it exits with 0."""

import json
import socket
from contextlib import closing, suppress
from threading import Thread
from urllib.parse import urlencode, urlsplit

import pytest
from conftest import intent
from http_world import Client, running

import jidomem
from jidomem.serve import listener
from jidomem.serve.connection import ClientSocket

NUMBERS = " ".join(f"VALUES ?n{n} {{ {' '.join(map(str, range(100)))} }}" for n in range(6))


def kept(root):
    with jidomem.open(root) as memory:
        return {row["fact"] for row in memory.reader.ask("facts", project="p")}


def chunk(data):
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def lines(first, count):
    return b"".join(json.dumps(intent(summary=f"line {first + n}")).encode() + b"\n" for n in range(count))


def opened(process):
    """A stream of intents to a server, without an end, of which nothing is sent yet."""
    place = urlsplit(process.url)
    stream = socket.create_connection((place.hostname, place.port), timeout=30)
    head = b"POST /projects/p/intents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
    stream.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
    return stream


def heard(stream, until=None):
    """What comes from a server, to the end or until there is so much of it."""
    got = b""
    with suppress(ConnectionResetError):
        while piece := stream.recv(65536):
            got += piece
            if until is not None and got.count(b'"iri"') >= until:
                break
    return got


def outcomes(answer):
    """The outcomes in an answer in chunks, however they are parted, and whether it came to its end."""
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
def test_a_stream_of_intents_ends_and_all_it_acknowledged_is_kept(tmp_path, goes_on):
    root = tmp_path / "root"
    with running(root, "-q") as process, closing(opened(process)) as stream:
        stream.sendall(chunk(lines(0, 1200)))
        got = heard(stream, until=500)

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
        got += heard(stream)
        sender.join()
        _, words = process.communicate(timeout=20)

    told, is_whole = outcomes(got)
    ending = told.pop()
    assert (is_whole, ending["code"], ending["position"]) == (True, "busy", len(told))
    assert ending["detail"].startswith("the server is stopping")
    acknowledged = {each["iri"] for each in told}
    assert len(acknowledged) == len(told) >= 500
    assert acknowledged <= kept(root)
    assert (process.returncode, words) == (0, "")


def test_an_ad_hoc_query_is_answered_that_the_server_stops(tmp_path):
    told = []
    with running(tmp_path / "root", "--log-level", "error") as process, Client(process.url) as client:
        client.submit(intent())

        def ask():
            with Client(process.url) as asking:
                query = urlencode({"query": f"SELECT (COUNT(*) AS ?n) {{ {NUMBERS} }}"})
                told.append(asking.ask("GET", f"/projects/p/sparql?{query}"))

        asker = Thread(target=ask)
        asker.start()
        while b"jidomem_sparql_running 1" not in client.ask("GET", "/metrics")[2]:
            pass
        process.terminate()
        asker.join()
        _, words = process.communicate(timeout=20)

    ((status, _, body),) = told
    assert (status, json.loads(body)["code"]) == (503, "busy")
    assert (process.returncode, words) == (0, "")


def test_a_reader_who_is_gone_for_good_is_cut_off():
    place = listener.listen("127.0.0.1", 0)
    with place as listening, socket.create_connection(place.getsockname()), listening.accept()[0] as accepted:
        ClientSocket(accepted, 12.5)
        seconds = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) / 1000

    assert seconds == 12.5
