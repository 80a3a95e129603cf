"""HTTP clients in one small process: persistent connections, one request at a time on each.

    python -m bench.http_load < SPECIFICATION

The specification is JSON: `port`, `seconds`, and `clients`, each with a `kind`, a `path`, optionally its own `port`,
and for a POST a `body`, in which `NUMBER` becomes a new number in every request, and a `media` type.  It prints JSON:
`latencies` (seconds of each request, by kind), the `acknowledged` numbers, up to three `errors`, the `elapsed` seconds,
and the `cpu_seconds` of the clients themselves.  Every client gets at least one answer.
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
        self.latencies: list[float] = []
        self.number, self.acknowledged = 0, list[int]()
        self.errors: list[str] = []
        self.received, self.sent_at = b"", 0.0
        self.request = f"GET {path} HTTP/1.1\r\n{HEADERS}\r\n".encode()
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send_request(self) -> None:
        """Send the next request; that of a POST has a new number."""
        if self.body is not None:
            self.number = next(NUMBERS)
            body = self.body.replace("NUMBER", str(self.number)).encode()
            head = f"{HEADERS}Content-Type: {self.media}\r\nContent-Length: {len(body)}\r\n"
            self.request = f"POST {self.path} HTTP/1.1\r\n{head}\r\n".encode() + body
        self.sent_at = time.perf_counter()
        self.socket.sendall(self.request)

    def receive(self) -> None:
        """Read received bytes; when the answer is complete, send the next request."""
        data = self.socket.recv(1 << 18)
        if not data:
            raise ConnectionError(f"the server closed a connection of {self.kind}")
        self.received = self.received + data if self.received else data
        if is_complete(self.received):
            self.latencies.append(time.perf_counter() - self.sent_at)
            if not self.received.startswith(SUCCESS):
                self.errors.append(self.received[:500].decode(errors="replace"))
            elif self.body is not None:
                self.acknowledged.append(self.number)
            self.received = b""
            self.send_request()


SUCCESS = (b"HTTP/1.1 200", b"HTTP/1.1 201", b"HTTP/1.1 204")
HEADERS = "Host: localhost\r\nAccept: application/sparql-results+json, application/json\r\n"
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


def is_complete(answer: bytes) -> bool:
    """Return whether an answer is complete, by its length or its last chunk."""
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
    with selectors.DefaultSelector() as selector:
        for client in clients:
            selector.register(client.socket, selectors.EVENT_READ, client)
            client.send_request()
        start, cpu_seconds = time.perf_counter(), time.process_time()
        while time.perf_counter() < start + specification["seconds"] or not all(client.latencies for client in clients):
            for key, _ in selector.select(0.1):
                key.data.receive()
        elapsed, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_seconds
    latencies: dict[str, list[float]] = {}
    for client in clients:
        latencies.setdefault(client.kind, []).extend(client.latencies)
    acknowledged = [number for client in clients for number in client.acknowledged]
    errors = [text for client in clients for text in client.errors]
    figures = {"elapsed": elapsed, "cpu_seconds": cpu_seconds, "latencies": latencies, "acknowledged": acknowledged}
    figures |= {"errors": errors[:3]}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
