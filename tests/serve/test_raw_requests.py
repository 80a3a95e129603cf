"""Requests of every form on a connection: a valid one is answered in order, an ambiguous one is refused."""

import json
import socket

import pytest
from conftest import intent
from raw_http import (
    CHUNKED,
    HOST,
    INTENTS,
    LINES,
    LONG_IDLE,
    body_of,
    connect,
    exchange,
    limited,
    limited_with_memory,
    problem,
    read_all,
    statuses,
    stored_summaries,
)

pytestmark = pytest.mark.usefixtures("loaded_program")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with limited_with_memory(tmp_path_factory.mktemp("wire"), LONG_IDLE) as process:
        yield process


@pytest.mark.parametrize("framing", [b"Content-Length: 2000\r\n\r\n", CHUNKED + b"\r\n400\r\n"])
def test_an_incomplete_body_is_refused_and_not_stored(server, framing):
    # Given a whole intent in a body with a longer declared length, by a client that stops sending or disconnects
    with connect(server, INTENTS + framing + body_of("cut off")) as client:
        client.shutdown(socket.SHUT_WR)
        answer = read_all(client)
    connect(server, INTENTS + framing + body_of("cut off")).close()

    assert problem(answer) == (400, "invalid_argument")
    assert "cut off" not in stored_summaries(server)


def test_pipelined_requests_are_answered_in_order(server):
    first = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
    text = body_of("in a pipeline")
    chunks = b"%x;a=b\r\n%s\r\n%x\r\n%s\r\n0\r\nX-Trailer: 1\r\n\r\n" % (9, text[:9], len(text) - 9, text[9:])
    request = first + INTENTS + b"Transfer-Encoding: chunked\r\n\r\n" + chunks
    last = b"GET /nowhere HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n"

    answer = exchange(server, request + b"\r\n" + first.replace(b"GET", b"HEAD") + last)

    assert statuses(answer) == [200, 201, 200, 404]
    assert "in a pipeline" in stored_summaries(server)


def test_an_unread_body_is_not_parsed_as_the_next_request(server):
    hidden = b"DELETE /hidden HTTP/1.1\r\n" + HOST + b"\r\n"
    last = b"GET /healthz HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n"
    for frame, body in (
        (b"Content-Length: %d\r\n\r\n" % len(hidden), hidden),
        (b"Transfer-Encoding: chunked\r\n\r\n", b"%x\r\n%s\r\n0\r\n\r\n" % (len(hidden), hidden)),
    ):
        assert statuses(exchange(server, b"POST /nowhere HTTP/1.1\r\n" + HOST + frame + body + last)) == [404, 200]


def test_a_client_that_expects_100_continue_is_told_to_continue_or_refused(server):
    text = body_of("after being told")
    with connect(server, INTENTS + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(text)) as client:
        assert client.recv(4096) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(text)
        assert b"HTTP/1.1 201 " in client.recv(4096)

    foreign = INTENTS.replace(b"127.0.0.1", b"example.org")
    refusal = exchange(server, foreign + b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n")
    assert statuses(refusal) == [403]
    assert b"Connection: close" in refusal


@pytest.mark.parametrize("other", [b"websocket", b"WebSocket, h2c", b"h2c"])
def test_an_offer_of_another_protocol_is_answered_in_this_one(server, other):
    # Given an offer of another protocol, and a request behind it on the same connection
    head = b" HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: " + other + b"\r\nSec-WebSocket-Version: 13\r\n" + HOST
    last = b"GET /nowhere HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n"

    answer = exchange(server, b"GET /healthz" + head + b"\r\n" + last)

    assert statuses(answer) == [200, 404]
    assert b"pgrade:" not in answer


def test_an_answer_to_head_has_the_length_and_no_body(server):
    answer = exchange(server, b"HEAD /healthz HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n")
    assert answer.endswith(b"\r\n\r\n")
    assert b"Content-Length: 15\r\n" in answer


@pytest.mark.parametrize(
    ("data", "refusal"),
    [
        (b"GET /" + b"x" * 3000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", (414, "uri_too_long")),
        (b"GET /" + b"x" * 90_000, (414, "uri_too_long")),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A: b\r\n" * 900 + b"\r\n", (431, "headers_too_large")),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A: " + b"b" * 900_000, (431, "headers_too_large")),
        (INTENTS + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", (400, "invalid_argument")),
        (INTENTS + b"Content-Length: 2, 3\r\n\r\n{}", (400, "invalid_argument")),
        (INTENTS + b"Content-Length: 2\r\n" + CHUNKED + b"\r\n2\r\n{}\r\n0\r\n\r\n", (400, "invalid_argument")),
        (INTENTS + b"Content-Length: +2\r\n\r\n{}", (400, "invalid_argument")),
        (INTENTS + b"Content_Length: 2\r\n\r\n{}", (400, "invalid_argument")),
        (INTENTS + b"Transfer-Encoding: gzip, chunked\r\n\r\n", (400, "invalid_argument")),
        (INTENTS + b"Transfer-Encoding: \x0bchunked\r\n\r\n", (400, "invalid_argument")),
        (INTENTS + b"Transfer-Encoding : chunked\r\n\r\n", (400, "invalid_argument")),
        (INTENTS + CHUNKED + CHUNKED + b"\r\n", (400, "invalid_argument")),
        (INTENTS.replace(b"1.1", b"1.0") + CHUNKED + b"\r\n2\r\n{}\r\n0\r\n\r\n", (400, "invalid_argument")),
        (INTENTS + CHUNKED + b"\r\n2;a\nb\r\n{}\r\n0\r\n\r\n", (400, "invalid_argument")),
        (INTENTS + CHUNKED + b"\r\n2\r\n{}\r\n0\r\n\n", (400, "invalid_argument")),
        (INTENTS + CHUNKED + b"\r\n2\n{}\r\n0\r\n\r\n", (400, "invalid_argument")),
        (b"GET / HTTP/1.1\n" + HOST + b"\n", (400, "invalid_argument")),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A: b\n" + CHUNKED + b"\r\n", (400, "invalid_argument")),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A: b\r" + CHUNKED + b"\r\n", (400, "invalid_argument")),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A: b\n\nGET /healthz HTTP/1.1\r\n" + HOST, (400, "invalid_argument")),
        (INTENTS + b"Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n", (400, "invalid_argument")),
        (INTENTS + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n", (400, "invalid_argument")),
        (INTENTS + b"Transfer-Encoding: chunked\r\n\r\n" + b"0" * 9000, (400, "invalid_argument")),
        (b"GET / HTTP/1.1\r\n" + HOST + HOST + b"\r\n", (400, "invalid_argument")),
        (b"GET / HTTP/1.1\r\n\r\n", (400, "invalid_argument")),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A: b\r\n folded\r\n\r\n", (400, "invalid_argument")),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A : b\r\n\r\n", (400, "invalid_argument")),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A: \x00\r\n\r\n", (400, "invalid_argument")),
        (b"GET /\xc3\xa4 HTTP/1.1\r\n" + HOST + b"\r\n", (400, "invalid_argument")),
        (b"GET * HTTP/1.1\r\n" + HOST + b"\r\n", (400, "invalid_argument")),
        (b"GET / HTTP/2.0\r\n" + HOST + b"\r\n", (400, "invalid_argument")),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", (400, "invalid_argument")),
    ],
)
def test_an_oversized_or_ambiguous_request_is_refused(server, data, refusal):
    answer = exchange(server, data + b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n")

    assert (problem(answer), len(statuses(answer))) == (refusal, 1)  # the bytes behind it are not read as a request


@pytest.mark.parametrize(("target", "status"), [
    ("briefing?role=", 400), ("check?format=", 400), ("journal?after=", 400), ("graphs?graph=", 404),
    ("queries/facts?format=", 400), ("sparql?query=ASK{}&timeout=", 400),
])  # fmt: skip
def test_a_refusal_repeats_200_characters_of_a_value_at_most(server, target, status):
    head = f"GET /projects/p/{target}{'x' * 1500} HTTP/1.1\r\nConnection: close\r\n".encode()

    answer = exchange(server, head + HOST + b"\r\n")

    assert problem(answer)[0] == status
    assert len(json.loads(answer.rpartition(b"\r\n\r\n")[2])["detail"]) < 300


def test_an_absolute_address_and_http_1_0_are_answered(server):
    for authority, status in ((b"127.0.0.1", 200), (b"example.org", 403)):
        request = b"GET http://" + authority + b"/healthz HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n"
        assert statuses(exchange(server, request)) == [status]
    answer = exchange(server, b"GET /projects/p/queries/facts?limit=2 HTTP/1.0\r\n" + HOST + b"\r\n")
    assert (statuses(answer), b"chunked" in answer) == ([200], False)


def test_lines_are_streamed_in_while_a_late_reader_receives_the_outcomes(server):
    lines = b"".join(json.dumps(intent(summary=f"late {n}", topic=f"late {n}")).encode() + b"\n" for n in range(1500))
    with connect(server, window=4096) as client:
        client.sendall(LINES + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(lines) + lines)
        answer = read_all(client)

    assert answer.count(b'"asserted"') == 1500
    assert answer.endswith(b"\r\n0\r\n\r\n")


@pytest.mark.parametrize("frame", [b"%x\r\n%s\r\n", None], ids=["in chunks", "of a known length"])
def test_each_line_is_stored_and_answered_while_the_next_one_is_awaited(tmp_path, frame):
    lines = [body_of(f"awaited {number}") + b"\n" for number in range(3)]
    head = CHUNKED if frame else b"Content-Length: %d\r\n" % sum(map(len, lines))
    request = LINES + b"Connection: close\r\n" + head + b"\r\n"
    with limited(tmp_path, idle=LONG_IDLE) as server, connect(server, request) as client:
        answer = b""
        for number, line in enumerate(lines, start=1):
            client.sendall(frame % (len(line), line) if frame else line)
            while (received := answer.count(b"}\n")) < number:
                answer += (piece := client.recv(65536))
                assert piece, answer
            assert received == number
            assert f"awaited {number - 1}" in stored_summaries(server)
        client.sendall(b"0\r\n\r\n" if frame else b"")
        answer += read_all(client)

    assert (answer.count(b"}\n"), answer.endswith(b"\r\n0\r\n\r\n")) == (3, True)


def test_whole_lines_before_a_malformed_chunk_are_stored_and_the_refusal_follows(server):
    line = body_of("before a malformed chunk") + b"\n"
    answer = exchange(server, LINES + CHUNKED + b"\r\n" + 2 * (b"%x\r\n%s\r\n" % (len(line), line)) + b"nothing\r\n")

    outcomes = [json.loads(line) for line in answer.splitlines() if line.startswith(b"{")]
    assert [each.get("status") or each["code"] for each in outcomes] == ["asserted", "deduplicated", "invalid_argument"]
    assert "the chunks of the body cannot be read" in outcomes[-1]["detail"]


def test_the_server_listens_on_ipv6(tmp_path):
    with limited(tmp_path, "--host", "::1", idle=LONG_IDLE) as process:
        assert process.url.startswith("http://[::1]:")
        assert statuses(exchange(process, b"GET /healthz HTTP/1.1\r\nHost: [::1]\r\nConnection: close\r\n\r\n")) == [
            200
        ]
