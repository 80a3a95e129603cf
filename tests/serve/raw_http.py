"""Requests as bytes on a socket, well-formed or not, to a server with small limits."""

import json
import os
import re
import socket
from contextlib import contextmanager, suppress
from http.client import HTTPException
from urllib.parse import urlencode, urlsplit

from conftest import intent, wait_until
from http_world import Client, serving

CONNECTIONS = 4
LONG_IDLE = 600  # seconds, far beyond any wait of the tests
SMALL = f"""\
[limits]
query_rows = 1000
query_answer = 33554432
body = 65536
url = 2048
headers = 4096
connections = {CONNECTIONS}
"""
HOST = b"Host: 127.0.0.1\r\n"
INTENTS = b"POST /projects/p/intents HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
LINES = INTENTS.replace(b"json", b"x-ndjson")


@contextmanager
def limited(folder, *options, idle, start=serving):
    """A server that waits *idle* seconds for a client; it has `url` and `address`."""
    path = folder / "jidomem" / "config.toml"
    path.parent.mkdir()
    path.write_text(f"{SMALL}idle_seconds = {idle}\n")
    path.chmod(0o600)
    with start(folder / "root", *options, environment={**os.environ, "XDG_CONFIG_HOME": str(folder)}) as process:
        parts = urlsplit(process.url)
        process.address = (parts.hostname, parts.port)
        yield process


@contextmanager
def limited_with_memory(folder, idle, start=serving):
    """The same server, with one memory in it."""
    with limited(folder, idle=idle, start=start) as process:
        with Client(process.url) as client:
            client.submit(intent(summary="the first of all"))
        yield process


def connect(server, request=b"", window=None):
    client = socket.socket(socket.AF_INET6 if ":" in server.address[0] else socket.AF_INET)
    if window:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    client.settimeout(60)  # far beyond any wait of the tests
    client.connect(server.address)
    client.sendall(request)
    return client


def read_all(client):
    """The bytes until the server closes the connection."""
    received = bytearray()
    try:
        while piece := client.recv(1 << 16):
            received += piece
    except ConnectionError:
        pass
    return bytes(received)


def exchange(server, request):
    """Return the answer to *request*, which is sent again if the connection was closed without one."""
    while True:
        with connect(server) as client:
            with suppress(ConnectionError):  # the server may answer a request that it no longer reads
                client.sendall(request)
            if answer := read_all(client):
                return answer


def problem(answer):
    """The status and the code of the last answer."""
    head, _, body = answer.rpartition(b"\r\n\r\n")
    assert b"Content-Type: application/problem+json" in head
    members = json.loads(body)
    assert members["hint"]
    assert members["request_id"]
    assert f"HTTP/1.1 {members['status']} ".encode() in head
    return members["status"], members["code"]


def request_id(answer):
    """Return the request id, which head and body have in common."""
    (identifier,) = re.findall(rb"X-Request-Id: ([^\r]+)", answer)
    assert json.loads(answer.rpartition(b"\r\n\r\n")[2])["request_id"] == identifier.decode()
    return identifier.decode()


def statuses(answer):
    return [int(status) for status in re.findall(rb"HTTP/1\.1 ([0-9]{3}) ", answer)]


def wait_until_served(server):
    """Wait until a new client gets an answer."""

    def is_served():
        with suppress(OSError, HTTPException), Client(server.url) as client:  # it is closed while the server is full
            return client.ask("GET", "/healthz")[0] == 200

    wait_until(is_served)


def stored_summaries(server):
    with Client(server.url) as client:
        return [row["summary"] for row in client.get("/projects/p/queries/facts")["rows"]]


def body_of(summary):
    return json.dumps(intent(summary=summary)).encode()


def large_answer():
    growing = f"BIND('{'x' * 1000}' AS ?a) BIND(CONCAT({', '.join(['?a'] * 30)}) AS ?t)"
    text = urlencode({"query": f"SELECT ?t {{ VALUES ?n {{ {' '.join(map(str, range(900)))} }} {growing} }}"}).encode()
    form = b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n" % len(text)
    return b"POST /sparql HTTP/1.1\r\n" + HOST + form + text
