"""A local endpoint with scripted answers: bytes over a real socket, one reply for each request."""

import json
import socket
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


def reply(body, status="200 OK", kind="application/json", **headers):
    """Return the bytes of an HTTP reply, the only one of its connection; names of *headers* have _ in place of -."""
    data = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(data)}", "Connection: close"]
    lines += [f"Content-Type: {kind}"] if kind else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + data


def chunked(*pieces, ended=True):
    """Return a reply in chunked transfer encoding."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in pieces) + (b"0\r\n\r\n" if ended else b"")


STALL = object()  # sends nothing until the client disconnects


@dataclass
class Served:
    """The address of the endpoint and its requests: the head and the body of each."""

    url: str
    heads: list = field(default_factory=list)
    bodies: list = field(default_factory=list)


@contextmanager
def served(*replies):
    """Run an endpoint that sends *replies* in turn and repeats the last; a function computes its reply from a body."""
    listener = socket.create_server(("127.0.0.1", 0))
    log, closed, waiting = Served(f"http://127.0.0.1:{listener.getsockname()[1]}/v1"), threading.Event(), list(replies)

    def attend():
        while not closed.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):  # the client may disconnect
                answer(connection)

    def answer(connection):
        with connection.makefile("rb") as file:
            lines = [file.readline()]
            while lines[-1] not in (b"", b"\r\n"):
                lines.append(file.readline())
            if not lines[-1]:
                return
            head = b"".join(lines).decode("latin-1")
            size = next(int(line[15:]) for line in head.splitlines() if line.lower().startswith("content-length:"))
            log.heads.append(head)
            log.bodies.append(json.loads(file.read(size)))
            chosen_reply = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            if chosen_reply is STALL:
                connection.recv(1)  # returns when the client closes
            else:
                connection.sendall(chosen_reply(log.bodies[-1]) if callable(chosen_reply) else chosen_reply)

    thread = threading.Thread(target=attend, daemon=True)
    thread.start()
    try:
        yield log
    finally:
        closed.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)
