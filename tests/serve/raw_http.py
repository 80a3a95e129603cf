"""Requests as bytes on a socket, well-formed or not, to a server whose limits are small."""

import json
import os
import re
import socket
from contextlib import contextmanager, suppress
from http.client import HTTPException
from urllib.parse import urlencode, urlsplit

from conftest import intent
from http_world import Client, running

CONNECTIONS = 4
PATIENT = 600  # seconds, far beyond what any of these waits for
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
def limited(folder, *options, idle):
    """A server that waits *idle* seconds for a client; it has `url` and `address`."""
    path = folder / "jidomem" / "config.toml"
    path.parent.mkdir()
    path.write_text(f"{SMALL}idle_seconds = {idle}\n")
    path.chmod(0o600)
    with running(folder / "root", *options, environment={**os.environ, "XDG_CONFIG_HOME": str(folder)}) as process:
        parts = urlsplit(process.url)
        process.address = (parts.hostname, parts.port)
        yield process


@contextmanager
def begun(folder, idle):
    """The same, with one memory in it."""
    with limited(folder, idle=idle) as process:
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
    """What a client is answered that sends no more than that; it comes again where it was let go before it began."""
    while True:
        with connect(server) as client:
            with suppress(ConnectionError):  # what is not taken any more may be answered all the same
                client.sendall(sent)
            if answer := everything(client):
                return answer


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


def served(server):
    """Return once a client that comes now is answered."""
    while True:
        try:
            with Client(server.url) as client:
                if client.ask("GET", "/healthz")[0] == 200:
                    return
        except (OSError, HTTPException):
            continue  # let go before it began, on a machine that is slow


def kept(server):
    with Client(server.url) as client:
        return [row["summary"] for row in client.get("/projects/p/queries/facts")["rows"]]


def body_of(summary):
    return json.dumps(intent(summary=summary)).encode()


def large_answer():
    growing = f"BIND('{'x' * 1000}' AS ?a) BIND(CONCAT({', '.join(['?a'] * 30)}) AS ?t)"
    text = urlencode({"query": f"SELECT ?t {{ VALUES ?n {{ {' '.join(map(str, range(900)))} }} {growing} }}"}).encode()
    form = b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n" % len(text)
    return b"POST /sparql HTTP/1.1\r\n" + HOST + form + text
