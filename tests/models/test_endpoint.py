"""Requests to an endpoint over a real socket: retries, refusals, and the hosts that get a key."""

import pickle
import re
import socket
import threading
import traceback
from datetime import timedelta
from email.utils import format_datetime
from itertools import count

import pytest
from conftest import START
from http_endpoint import STALL, chunked, reply, served

from jidomem.errors import InvalidRequest, ModelUnavailable
from jidomem.models.endpoint import ApiKey, EndpointAddress, EndpointEnvironment, ModelEndpoint, RequestTimeouts

SECRET = "sk-proj-4711/abc"
KEY = ApiKey("OPEN_AI_API_KEY", SECRET)
THRICE = RequestTimeouts(tries=3)


class Pauses:
    """A sleep that returns at once and records the requested pauses."""

    def __init__(self):
        self.asked = []
        self.outside = EndpointEnvironment(now=lambda: START, sleep=self.asked.append, chance=lambda: 1.0)


@pytest.fixture
def pauses():
    return Pauses()


def post(server, pauses, patience=THRICE, key=KEY, **more):
    return ModelEndpoint(server.url, key, patience, outside=pauses.outside, **more).post(
        "/embeddings", {"input": ["a"]}
    )


def test_a_post_carries_body_and_key_and_returns_the_json_object(pauses):
    with served(reply({"data": []})) as server:
        answer = post(server, pauses)

    assert answer == {"data": []}
    assert server.heads[0].startswith("POST /v1/embeddings HTTP/1.1\r\n")
    assert f"Authorization: Bearer {SECRET}\r\n" in server.heads[0]
    assert server.bodies == [{"input": ["a"]}]


def test_a_request_without_a_key_has_no_authorization_header(pauses):
    with served(reply({})) as server:
        post(server, pauses, key=None)

    assert "uthorization" not in server.heads[0]


def test_a_chunked_reply_is_assembled(pauses):
    with served(chunked(b'{"da', b'ta": [1', b"]}")) as server:
        assert post(server, pauses) == {"data": [1]}


@pytest.mark.parametrize("status", ["429 Slow", "500 Oops", "502 Bad", "503 Busy", "504 Late"])
def test_a_temporary_status_is_retried_once_after_a_pause(status, pauses):
    with served(reply("{}", status), reply({"ok": 1})) as server:
        assert post(server, pauses) == {"ok": 1}

    assert len(server.heads) == 2
    assert pauses.asked == [0.5]


@pytest.mark.parametrize("status", ["400 Bad", "401 Who", "403 No", "404 None", "413 Big", "422 Odd"])
def test_a_permanent_status_is_reported_with_its_body_and_not_retried(status, pauses):
    with served(reply({"error": "model gone"}, status)) as server, pytest.raises(ModelUnavailable) as refusal:
        post(server, pauses)

    assert len(server.heads) == 1  # D089: not 200 is an error that has the body
    assert refusal.value.detail == f'{server.url}/embeddings answered {status[:3]}: {{"error": "model gone"}}'


def test_retry_pauses_double_up_to_a_maximum_with_random_jitter():
    pauses, chances = [], iter([0.0, 1.0, 0.5, 1.0])
    outside = EndpointEnvironment(sleep=pauses.append, chance=lambda: next(chances))
    patience = RequestTimeouts(tries=4, pause=1, longest_pause=3)

    with served(reply("{}", "500 Oops")) as server, pytest.raises(ModelUnavailable, match=r"answered 500 \(4 tries\)"):
        ModelEndpoint(server.url, None, patience, outside=outside).post("/x", {})

    assert pauses == [0.5, 2.0, 2.25]


@pytest.mark.parametrize(
    ("retry_after", "waited"),
    [
        ("7", 7.0),
        ("0", 0.0),
        (format_datetime(START + timedelta(seconds=9), usegmt=True), 9.0),
        (format_datetime(START - timedelta(seconds=9), usegmt=True), 0.0),
        ("Sat, 21 Nov 2026 08:00:03", 3.0),  # no zone: UTC
        ("soon", 0.5),
        ("-3", 0.5),
        ("Sat, 21 Nov 2026 08:00:03 +9999999999999", 0.5),
    ],
)
def test_a_retry_after_header_sets_the_pause_as_seconds_or_date(retry_after, waited, pauses):
    with served(reply("{}", "429 Slow", Retry_After=retry_after), reply({})) as server:
        post(server, pauses)

    assert pauses.asked == [waited]


@pytest.mark.parametrize("retry_after", ["21", "9" * 400])
def test_a_retry_after_header_beyond_the_limit_is_reported_without_a_pause(retry_after, pauses):
    refused = pytest.raises(ModelUnavailable, match=f"asks to wait: {retry_after[:40]}: ")
    with served(reply("{}", "429 Slow", Retry_After=retry_after)) as server, refused:
        post(server, pauses)

    assert (len(server.heads), pauses.asked) == (1, [])


def test_retries_end_at_the_overall_time_limit():
    ticks = count(step=4)  # a clock that advances at every reading
    outside = EndpointEnvironment(monotonic=lambda: next(ticks), sleep=lambda seconds: None)

    with served(reply("{}", "503 Busy")) as server, pytest.raises(ModelUnavailable):
        ModelEndpoint(server.url, None, RequestTimeouts(overall=100, tries=50), outside=outside).post("/x", {})

    assert 1 < len(server.heads) < 12


def test_a_silent_endpoint_is_retried_and_reported(pauses):
    with served(STALL) as server, pytest.raises(ModelUnavailable, match=r"was silent for too long \(3 tries\)"):
        post(server, pauses, RequestTimeouts(silence=0.1, tries=3))


@pytest.mark.parametrize(
    ("head", "piece", "pause"),
    [
        (b"HTTP/1.1 200 OK\r\nX: ", b"x", 0.01),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n", 0),
    ],
    ids=["now and then", "without a pause"],
)
def test_an_endless_reply_is_abandoned_at_the_overall_time_limit(head, piece, pause):
    listener, over = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def drip():
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(head)
            try:
                while not over.wait(pause):
                    connection.sendall(piece)
            except OSError:
                pass

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    endpoint = ModelEndpoint(
        f"http://127.0.0.1:{listener.getsockname()[1]}", None, RequestTimeouts(overall=0.2, silence=10)
    )
    try:
        with pytest.raises(ModelUnavailable, match="did not finish in the stated time"):
            endpoint.post("/x", {})
    finally:
        over.set()
        listener.close()
        thread.join(5)


@pytest.mark.parametrize(
    "truncated",
    [
        reply({"data": [1, 2, 3]})[:-4],
        chunked(b'{"data":', ended=False),
        b"HTTP/1.1 200 O",
        b"",
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
    ],
)
def test_a_truncated_reply_is_retried(truncated, pauses):
    with served(truncated, reply({"data": [1]})) as server:
        assert post(server, pauses) == {"data": [1]}

    assert len(server.heads) == 2


def test_repeated_truncated_replies_raise_model_unavailable(pauses):
    refused = pytest.raises(ModelUnavailable, match="broke off, or speaks no HTTP")
    with served(reply({"data": [1, 2, 3]})[:-4]) as server, refused:
        post(server, pauses)


def test_an_unreachable_endpoint_is_reported_with_its_address(pauses):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    with pytest.raises(ModelUnavailable) as refusal:
        ModelEndpoint(f"http://127.0.0.1:{port}", None, THRICE, outside=pauses.outside).post("/x", {})

    assert refusal.value.detail == f"http://127.0.0.1:{port}/x cannot be reached: Connection refused (3 tries)"
    assert len(pauses.asked) == 2


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (reply("<html>Welcome</html>", kind="text/html"), "answered with text/html and no JSON: <html>Welcome</html>"),
        (reply("{}", kind=None), "answered with no type and no JSON: {}"),
        (reply("[1]"), r"answered with no JSON object: \[1\]"),
        (reply('{"a": NaN}'), "answered with no JSON object"),
        (reply(b"\xff\xfe"), "answered with no JSON object"),
        (reply(b"\x1f\x8b", Content_Encoding="gzip"), "answered in a content encoding that was not requested"),
        (reply({"a": "b" * 2000}), "answered with more than 1,000 bytes"),
        (chunked(*[b" " * 999] * 9), "answered with more than 1,000 bytes"),
    ],
)
def test_a_reply_that_is_no_json_object_of_bounded_size_is_refused_without_a_retry(answer, message, pauses):
    with served(answer) as server, pytest.raises(ModelUnavailable, match=message):
        post(server, pauses, most=1000)

    assert len(server.heads) == 1


def test_a_long_error_body_is_reported_cut_and_in_one_line(pauses):
    with (
        served(reply("a\n\x1b[31m" + "b" * 1_000_000, "400 Bad")) as server,
        pytest.raises(ModelUnavailable) as refusal,
    ):
        post(server, pauses)

    body = refusal.value.detail.partition("answered 400: ")[2]
    assert body == "a [31m" + "b" * 494


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
def test_a_redirect_is_refused_without_a_request_to_its_target(status, pauses):
    refused = pytest.raises(ModelUnavailable, match=f"answered {status[:3]}")
    with served(reply({})) as elsewhere:
        redirect = reply("", status, Location=f"{elsewhere.url}/embeddings")
        with served(redirect) as server, refused as refusal:
            post(server, pauses)

    assert (elsewhere.heads, len(server.heads)) == ([], 1)
    assert "no redirect is followed" in refusal.value.hint


def test_proxies_of_the_environment_receive_no_request(pauses, monkeypatch):
    with served(reply({})) as proxy, served(reply({"ok": 1})) as server:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)

        assert post(server, pauses) == {"ok": 1}

    assert proxy.heads == []


@pytest.mark.parametrize("body", [SECRET, f'{{"key": "{SECRET}"}}', SECRET.replace("/", "\\/"), "x" * 490 + SECRET])
def test_a_key_repeated_by_the_endpoint_is_redacted_from_the_error(body, pauses):
    with served(reply(body, "401 Who", Retry_After=SECRET)) as server, pytest.raises(ModelUnavailable) as refusal:
        post(server, pauses)

    report = "".join(traceback.format_exception(refusal.value)) + repr(refusal.value.to_dict())
    report = re.sub(r"127\.0\.0\.1:\d+", "", report)  # a port may have the digits of the key
    assert "sk-proj" not in report
    assert "4711" not in report
    assert refusal.value.hint == "check that OPEN_AI_API_KEY has a valid key"


def test_a_key_is_absent_from_representations_and_traceback_frames_and_not_pickled(pauses):
    endpoint = ModelEndpoint("http://127.0.0.1:1", KEY, THRICE, outside=pauses.outside)

    with pytest.raises(ModelUnavailable) as refusal:
        endpoint.post("/x", {})

    frames = traceback.TracebackException.from_exception(refusal.value, capture_locals=True)
    assert SECRET not in "".join(frames.format())
    assert SECRET not in f"{KEY} {KEY!r} {endpoint!r} {vars(endpoint)!r}"
    with pytest.raises(TypeError, match="a key is not copied"):
        pickle.dumps(KEY)


@pytest.mark.parametrize("text", ["", " ", "sk-4711\n", "sk 4711", "sk-4711\r\nX: y", "schlüssel"])
def test_an_invalid_key_is_refused_without_its_text(text):
    with pytest.raises(InvalidRequest) as refusal:
        ApiKey("OPENAI_API_KEY", text)

    assert refusal.value.detail.startswith("OPENAI_API_KEY has no key")
    assert "4711" not in repr(refusal.value.to_dict())


@pytest.mark.parametrize(
    "url",
    [
        *("", "api.openai.com/v1", "ftp://h/v1", "http://", "http://h:99999/v1", "http://h /v1", "http://h/v1\r\nX: y"),
        *("http://a..b/v1", "http://user:4711@h/v1", "http://h/v1?key=4711", "http://h/v1#4711", "http://[::1/v1"),
    ],
)
def test_an_invalid_base_url_is_refused_without_its_credentials(url):
    with pytest.raises(InvalidRequest) as refusal:
        ModelEndpoint(url, None)

    assert "4711" not in refusal.value.detail


def test_a_key_is_sent_unencrypted_only_to_the_local_host():
    for url in ("http://localhost:8000/v1", "http://127.1.2.3/v1", "http://[::1]:8000/v1", "https://api.openai.com/v1"):
        ModelEndpoint(url, KEY)
    ModelEndpoint("http://gpu.lan:8000/v1", None)

    with pytest.raises(InvalidRequest, match="would get <the key in OPEN_AI_API_KEY> unencrypted"):
        ModelEndpoint("http://gpu.lan:8000/v1", KEY)
    with pytest.raises(InvalidRequest, match="unencrypted"):
        ModelEndpoint("http://127.0.0.1.evil.example/v1", KEY)


def test_an_endpoint_address_is_normalised_in_its_text():
    assert str(EndpointAddress.of("https://[::1]:8443/v1/")) == "https://[::1]:8443/v1"
    assert str(EndpointAddress.of("HTTP://LocalHost/v1")) == "http://localhost/v1"
    assert EndpointAddress.of("https://api.openai.com/v1").origin.named == "api.openai.com"


def test_an_endpoint_without_tls_at_an_https_address_is_not_reached(pauses):
    listener = socket.create_server(("127.0.0.1", 0))

    def speak():
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 400 Bad\r\n\r\n")
            connection.recv(65536)

    thread = threading.Thread(target=speak, daemon=True)
    thread.start()
    url = f"https://127.0.0.1:{listener.getsockname()[1]}/v1"
    with listener, pytest.raises(ModelUnavailable, match=r"cannot be reached: .*SSL"):
        ModelEndpoint(url, KEY, RequestTimeouts(tries=1), outside=pauses.outside).post("/x", {})
    thread.join(5)


def test_a_body_that_cannot_be_encoded_is_refused_before_a_request(pauses):
    with served(reply({})) as server, pytest.raises(InvalidRequest, match="cannot be written as JSON"):
        ModelEndpoint(server.url, None, outside=pauses.outside).post("/x", {"input": "\ud800"})

    assert server.heads == []
