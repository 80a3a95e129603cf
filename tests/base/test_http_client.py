"""The HTTP client: it stops at its deadline with any server, and reuses connections."""

import socket
from contextlib import contextmanager, suppress
from threading import Event, Thread

from jidomem.base.clock import monotonic_time
from jidomem.base.http_client import HttpClient, HttpFailure, HttpLimits, HttpOrigin

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"


@contextmanager
def server(answer):
    """The origin of a server that passes each connection to *answer*, and the list of its connections."""
    count = []

    def attend(connection):
        with suppress(OSError):
            answer(connection)

    def accept(listening):
        with suppress(OSError):
            while True:
                connection = listening.accept()[0]
                count.append(connection)
                Thread(target=attend, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = Thread(target=accept, args=(listening,), daemon=True)
        thread.start()
        try:
            yield HttpOrigin(False, *listening.getsockname()), count
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in count:
                connection.close()


def limits(seconds, most=None):
    return HttpLimits(60, 60, monotonic_time() + seconds, most)


def test_a_slow_body_ends_at_the_deadline():
    done = Event()

    def trickle(connection):
        connection.sendall(HEAD % 1_000_000)
        while not done.wait(0.02):
            connection.sendall(b"x")

    with server(trickle) as (origin, _):
        answer = HttpClient(origin).request("POST", "/", {}, b"", limits(0.5))
        done.set()

    assert (type(answer), answer.is_late, answer.why) == (HttpFailure, True, "did not finish in the stated time")


def test_requests_share_a_connection_and_a_closed_one_is_replaced():
    def serve(connection):
        for _ in range(2):
            connection.recv(4096)
            connection.sendall(HEAD % 2 + b"ok")
        connection.shutdown(socket.SHUT_RDWR)

    with server(serve) as (origin, connections):
        client = HttpClient(origin, pooled=2)
        bodies = [client.request("GET", "/", {}, b"", limits(60)).body for _ in range(3)]
        client.close()

    assert bodies == [b"ok"] * 3
    assert len(connections) == 2


def test_an_answer_longer_than_its_limit_is_cut():
    def serve(connection):
        connection.recv(4096)
        connection.sendall(HEAD % 5 + b"hello")

    with server(serve) as (origin, _):
        answer = HttpClient(origin).request("GET", "/", {}, b"", limits(60, most=4))

    assert (answer.body, answer.is_whole) == (b"hell", False)
