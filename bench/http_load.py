"""Bounded clients of an HTTP server, all in one small process: connections kept open, one request at a time on each.

    python -m bench.http_load < SPECIFICATION

The specification is JSON: `port`, `seconds`, and `clients`, each with a `kind`, a `path`, a `port` if it is another,
and for a POST a `body`, in which `NUMBER` becomes a number of its own in every request, and a `media` type.  It prints,
for each kind, the seconds every request took, the numbers that were acknowledged, and the seconds of a processor that
the clients themselves took; every client gets one answer at least.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import socket
import sys
import time
from itertools import count

JSON = "application/json"
NUMBERS = count(os.getpid() * 1_000_000)


class Client:
    """One connection: its repeated request, and the seconds of each answer."""

    def __init__(self, port: int, kind: str, path: str, body: str | None = None, media: str = JSON) -> None:
        self.kind, self.path, self.body, self.media = kind, path, body, media
        self.taken: list[float] = []
        self.number, self.acknowledged = 0, list[int]()
        self.wrong: list[str] = []
        self.got, self.since = b"", 0.0
        self.asked = f"GET {path} HTTP/1.1\r\n{HEAD}\r\n".encode()
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self) -> None:
        if self.body is not None:
            self.number = next(NUMBERS)
            body = self.body.replace("NUMBER", str(self.number)).encode()
            head = f"{HEAD}Content-Type: {self.media}\r\nContent-Length: {len(body)}\r\n"
            self.asked = f"POST {self.path} HTTP/1.1\r\n{head}\r\n".encode() + body
        self.since = time.perf_counter()
        self.socket.sendall(self.asked)

    def hear(self) -> None:
        """Read received bytes; when the answer is complete, send the next request."""
        piece = self.socket.recv(1 << 18)
        if not piece:
            raise ConnectionError(f"the server closed a connection of {self.kind}")
        self.got = self.got + piece if self.got else piece
        if is_whole(self.got):
            self.taken.append(time.perf_counter() - self.since)
            if not self.got.startswith(DONE):
                self.wrong.append(self.got[:500].decode(errors="replace"))
            elif self.body is not None:
                self.acknowledged.append(self.number)
            self.got = b""
            self.ask()


DONE = (b"HTTP/1.1 200", b"HTTP/1.1 201", b"HTTP/1.1 204")
HEAD = "Host: localhost\r\nAccept: application/sparql-results+json, application/json\r\n"
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


def is_whole(answer: bytes) -> bool:
    """Whether all of an answer is there, by its length or its last chunk."""
    end = answer.find(b"\r\n\r\n")
    if end < 0:
        return False
    length = LENGTH.search(answer, 0, end)
    if length or answer.startswith(b"HTTP/1.1 204"):
        return len(answer) >= end + 4 + int(length[1] if length else 0)
    return answer.endswith(b"0\r\n\r\n")


def main() -> None:
    specification = json.load(sys.stdin)
    clients = [Client(**{"port": specification.get("port"), **client}) for client in specification["clients"]]
    with selectors.DefaultSelector() as waiting:
        for client in clients:
            waiting.register(client.socket, selectors.EVENT_READ, client)
            client.ask()
        start, used = time.perf_counter(), time.process_time()
        while time.perf_counter() < start + specification["seconds"] or not all(client.taken for client in clients):
            for key, _ in waiting.select(0.1):
                key.data.hear()
        elapsed, used = time.perf_counter() - start, time.process_time() - used
    taken: dict[str, list[float]] = {}
    for client in clients:
        taken.setdefault(client.kind, []).extend(client.taken)
    acknowledged = [number for client in clients for number in client.acknowledged]
    wrong = [text for client in clients for text in client.wrong]
    figures = {"elapsed": elapsed, "used": used, "taken": taken, "acknowledged": acknowledged, "wrong": wrong[:3]}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
