"""Bounded clients of an HTTP server, all in one small process: connections kept open, one request at a time on each.

    python -m bench.http_load < SPECIFICATION

The specification is JSON: `port`, `seconds`, and `clients`, each with a `kind`, a `path`, and for a POST a `body`, in
which `NUMBER` becomes a number of its own in every request.  It prints, for each kind, the seconds every request took;
every client gets one answer at least.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import sys
import time
from itertools import count

NUMBERS = count(os.getpid() * 1_000_000)


class Client:
    """One connection: what it asks, again and again, and how long each answer took."""

    def __init__(self, port: int, kind: str, path: str, body: str | None = None) -> None:
        self.kind, self.path, self.body = kind, path, body
        self.taken: list[float] = []
        self.wrong: list[str] = []
        self.got, self.since = b"", 0.0
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self) -> None:
        head = f"Host: localhost\r\nAccept: {ACCEPT}\r\n"
        if self.body is None:
            request = f"GET {self.path} HTTP/1.1\r\n{head}\r\n"
        else:
            body = self.body.replace("NUMBER", str(next(NUMBERS)))
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            request = f"POST {self.path} HTTP/1.1\r\n{head}\r\n{body}"
        self.since = time.perf_counter()
        self.socket.sendall(request.encode())

    def hear(self) -> None:
        """Take in what came; when the answer is whole, ask again."""
        piece = self.socket.recv(1 << 18)
        if not piece:
            raise ConnectionError(f"the server closed a connection of {self.kind}")
        self.got += piece
        if is_whole(self.got):
            self.taken.append(time.perf_counter() - self.since)
            if not self.got.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")):
                self.wrong.append(self.got[:500].decode(errors="replace"))
            self.got = b""
            self.ask()


ACCEPT = "application/sparql-results+json, application/json"


def is_whole(answer: bytes) -> bool:
    """Whether all of an answer is there, by its length or its last chunk."""
    head, gap, body = answer.partition(b"\r\n\r\n")
    if not gap:
        return False
    lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return len(body) >= int(lengths[0]) if lengths else body.endswith(b"0\r\n\r\n")


def main() -> None:
    given = json.load(sys.stdin)
    clients = [Client(given["port"], **client) for client in given["clients"]]
    with selectors.DefaultSelector() as waiting:
        for client in clients:
            waiting.register(client.socket, selectors.EVENT_READ, client)
            client.ask()
        start = time.perf_counter()
        while time.perf_counter() < start + given["seconds"] or not all(client.taken for client in clients):
            for key, _ in waiting.select(0.1):
                key.data.hear()
        elapsed = time.perf_counter() - start
    found: dict[str, list[float]] = {}
    for client in clients:
        found.setdefault(client.kind, []).extend(client.taken)
    print(
        json.dumps(
            {"elapsed": elapsed, "taken": found, "wrong": [text for client in clients for text in client.wrong][:3]}
        )
    )


if __name__ == "__main__":
    main()
