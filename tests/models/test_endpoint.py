"""Requests to an endpoint over a real socket: retries, refusals, and the hosts that get a key."""

import pickle
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
from jidomem.models.endpoint import ApiKey, EndpointAddress, ModelEndpoint, Outside, Patience

SECRET = "sk-proj-4711/abc"
KEY = ApiKey("OPEN_AI_API_KEY", SECRET)
THRICE = Patience(tries=3)


class Waits:
    """A sleep that takes no time; it keeps how long it was asked to."""

    def __init__(self):
        self.asked = []
        self.outside = Outside(now=lambda: START, sleep=self.asked.append, chance=lambda: 1.0)


@pytest.fixture
def waits():
    return Waits()


def asked(told, waits, patience=THRICE, key=KEY, **more):
    return ModelEndpoint(told.url, key, patience, outside=waits.outside, **more).post("/embeddings", {"input": ["a"]})


def test_what_is_posted_is_answered_with_a_json_object_and_carries_the_key(waits):
    with served(reply({"data": []})) as told:
        answer = asked(told, waits)

    assert answer == {"data": []}
    assert told.heads[0].startswith("POST /v1/embeddings HTTP/1.1\r\n")
    assert f"Authorization: Bearer {SECRET}\r\n" in told.heads[0]
    assert told.bodies == [{"input": ["a"]}]


def test_without_a_key_no_authorization_is_sent(waits):
    with served(reply({})) as told:
        asked(told, waits, key=None)

    assert "uthorization" not in told.heads[0]


def test_pieces_make_one_answer(waits):
    with served(chunked(b'{"da', b'ta": [1', b"]}")) as told:
        assert asked(told, waits) == {"data": [1]}


@pytest.mark.parametrize("status", ["429 Slow", "500 Oops", "502 Bad", "503 Busy", "504 Late"])
def test_a_status_that_may_pass_is_asked_again(status, waits):
    with served(reply("{}", status), reply({"ok": 1})) as told:
        assert asked(told, waits) == {"ok": 1}

    assert len(told.heads) == 2
    assert waits.asked == [0.5]


@pytest.mark.parametrize("status", ["400 Bad", "401 Who", "403 No", "404 None", "413 Big", "422 Odd"])
def test_a_status_that_will_not_pass_is_not_asked_again(status, waits):
    with served(reply({"error": "model gone"}, status)) as told, pytest.raises(ModelUnavailable) as refusal:
        asked(told, waits)

    assert len(told.heads) == 1  # D089: not 200 is an error that has the body
    assert refusal.value.detail == f'{told.url}/embeddings answered {status[:3]}: {{"error": "model gone"}}'


def test_pauses_double_up_to_the_longest_and_differ_by_chance():
    waits, chances = [], iter([0.0, 1.0, 0.5, 1.0])
    outside = Outside(sleep=waits.append, chance=lambda: next(chances))
    patience = Patience(tries=4, pause=1, longest_pause=3)

    with served(reply("{}", "500 Oops")) as told, pytest.raises(ModelUnavailable, match=r"answered 500 \(4 tries\)"):
        ModelEndpoint(told.url, None, patience, outside=outside).post("/x", {})

    assert waits == [0.5, 2.0, 2.25]


@pytest.mark.parametrize(
    ("said", "waited"),
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
def test_a_requested_pause_is_respected_as_seconds_or_as_a_moment(said, waited, waits):
    with served(reply("{}", "429 Slow", Retry_After=said), reply({})) as told:
        asked(told, waits)

    assert waits.asked == [waited]


@pytest.mark.parametrize("said", ["21", "9" * 400])
def test_a_requested_pause_beyond_the_limit_is_reported_and_not_waited(said, waits):
    refused = pytest.raises(ModelUnavailable, match=f"asks to wait: {said[:40]}: ")
    with served(reply("{}", "429 Slow", Retry_After=said)) as told, refused:
        asked(told, waits)

    assert (len(told.heads), waits.asked) == (1, [])


def test_all_tries_together_end_in_the_stated_time():
    ticks = count(step=4)  # a clock that moves by itself
    outside = Outside(monotonic=lambda: next(ticks), sleep=lambda seconds: None)

    with served(reply("{}", "503 Busy")) as told, pytest.raises(ModelUnavailable):
        ModelEndpoint(told.url, None, Patience(overall=100, tries=50), outside=outside).post("/x", {})

    assert 1 < len(told.heads) < 12


def test_a_silent_endpoint_is_retried_and_then_given_up(waits):
    with served(STALL) as told, pytest.raises(ModelUnavailable, match=r"was silent for too long \(3 tries\)"):
        asked(told, waits, Patience(silence=0.1, tries=3))


@pytest.mark.parametrize(
    ("begun", "goes_on", "pause"),
    [
        (b"HTTP/1.1 200 OK\r\nX: ", b"x", 0.01),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n", 0),
    ],
    ids=["now and then", "without a pause"],
)
def test_one_that_never_comes_to_an_end_is_left_in_the_stated_time(begun, goes_on, pause):
    listener, over = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def drip():
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(begun)
            try:
                while not over.wait(pause):
                    connection.sendall(goes_on)
            except OSError:
                pass

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    endpoint = ModelEndpoint(f"http://127.0.0.1:{listener.getsockname()[1]}", None, Patience(overall=0.2, silence=10))
    try:
        with pytest.raises(ModelUnavailable, match="did not finish in the stated time"):
            endpoint.post("/x", {})
    finally:
        over.set()
        listener.close()
        thread.join(5)


@pytest.mark.parametrize(
    "cut",
    [
        reply({"data": [1, 2, 3]})[:-4],
        chunked(b'{"data":', ended=False),
        b"HTTP/1.1 200 O",
        b"",
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
    ],
)
def test_an_answer_that_broke_off_is_asked_for_again(cut, waits):
    with served(cut, reply({"data": [1]})) as told:
        assert asked(told, waits) == {"data": [1]}

    assert len(told.heads) == 2


def test_an_answer_that_always_breaks_off_is_none(waits):
    refused = pytest.raises(ModelUnavailable, match="broke off, or speaks no HTTP")
    with served(reply({"data": [1, 2, 3]})[:-4]) as told, refused:
        asked(told, waits)


def test_a_missing_endpoint_is_reported_with_its_address(waits):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    with pytest.raises(ModelUnavailable) as refusal:
        ModelEndpoint(f"http://127.0.0.1:{port}", None, THRICE, outside=waits.outside).post("/x", {})

    assert refusal.value.detail == f"http://127.0.0.1:{port}/x cannot be reached: Connection refused (3 tries)"
    assert len(waits.asked) == 2


@pytest.mark.parametrize(
    ("answer", "told_as"),
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
def test_an_answer_that_is_no_json_object_of_bounded_size_is_refused_once(answer, told_as, waits):
    with served(answer) as told, pytest.raises(ModelUnavailable, match=told_as):
        asked(told, waits, most=1000)

    assert len(told.heads) == 1


def test_a_refusal_shows_the_start_of_a_long_body_in_one_line(waits):
    with served(reply("a\n\x1b[31m" + "b" * 1_000_000, "400 Bad")) as told, pytest.raises(ModelUnavailable) as refusal:
        asked(told, waits)

    shown = refusal.value.detail.partition("answered 400: ")[2]
    assert shown == "a [31m" + "b" * 494


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
def test_no_redirect_is_followed_so_a_key_goes_to_one_host(status, waits):
    refused = pytest.raises(ModelUnavailable, match=f"answered {status[:3]}")
    with served(reply({})) as elsewhere:
        leading = reply("", status, Location=f"{elsewhere.url}/embeddings")
        with served(leading) as told, refused as refusal:
            asked(told, waits)

    assert (elsewhere.heads, len(told.heads)) == ([], 1)
    assert "no redirect is followed" in refusal.value.hint


def test_proxies_of_the_environment_are_not_asked(waits, monkeypatch):
    with served(reply({})) as proxy, served(reply({"ok": 1})) as told:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)

        assert asked(told, waits) == {"ok": 1}

    assert proxy.heads == []


@pytest.mark.parametrize("body", [SECRET, f'{{"key": "{SECRET}"}}', SECRET.replace("/", "\\/"), "x" * 490 + SECRET])
def test_a_key_that_the_other_side_repeats_is_not_shown(body, waits):
    with served(reply(body, "401 Who", Retry_After=SECRET)) as told, pytest.raises(ModelUnavailable) as refusal:
        asked(told, waits)

    shown = "".join(traceback.format_exception(refusal.value)) + repr(refusal.value.to_dict())
    assert "sk-proj" not in shown
    assert "4711" not in shown
    assert refusal.value.hint == "check that OPEN_AI_API_KEY has a valid key"


def test_a_key_is_in_no_text_and_in_no_frame_of_a_failure(waits):
    endpoint = ModelEndpoint("http://127.0.0.1:1", KEY, THRICE, outside=waits.outside)

    with pytest.raises(ModelUnavailable) as refusal:
        endpoint.post("/x", {})

    frames = traceback.TracebackException.from_exception(refusal.value, capture_locals=True)
    assert SECRET not in "".join(frames.format())
    assert SECRET not in f"{KEY} {KEY!r} {endpoint!r} {vars(endpoint)!r}"
    with pytest.raises(TypeError, match="a key is not copied"):
        pickle.dumps(KEY)


@pytest.mark.parametrize("text", ["", " ", "sk-4711\n", "sk 4711", "sk-4711\r\nX: y", "schlüssel"])
def test_what_is_no_key_is_refused_without_being_shown(text):
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
def test_a_base_url_that_is_no_address_or_says_more_is_refused(url):
    with pytest.raises(InvalidRequest) as refusal:
        ModelEndpoint(url, None)

    assert "4711" not in refusal.value.detail


def test_a_key_is_sent_in_the_clear_to_this_machine_alone():
    for url in ("http://localhost:8000/v1", "http://127.1.2.3/v1", "http://[::1]:8000/v1", "https://api.openai.com/v1"):
        ModelEndpoint(url, KEY)
    ModelEndpoint("http://gpu.lan:8000/v1", None)

    with pytest.raises(InvalidRequest, match="would get <the key in OPEN_AI_API_KEY> unencrypted"):
        ModelEndpoint("http://gpu.lan:8000/v1", KEY)
    with pytest.raises(InvalidRequest, match="unencrypted"):
        ModelEndpoint("http://127.0.0.1.evil.example/v1", KEY)


def test_an_address_is_shown_as_it_is_asked():
    assert str(EndpointAddress.of("https://[::1]:8443/v1/")) == "https://[::1]:8443/v1"
    assert str(EndpointAddress.of("HTTP://LocalHost/v1")) == "http://localhost/v1"
    assert EndpointAddress.of("https://api.openai.com/v1").origin.named == "api.openai.com"


def test_one_that_speaks_no_tls_where_it_should_is_not_reached(waits):
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
        ModelEndpoint(url, KEY, Patience(tries=1), outside=waits.outside).post("/x", {})
    thread.join(5)


def test_a_body_that_is_no_unicode_text_is_refused_before_anybody_is_asked(waits):
    with served(reply({})) as told, pytest.raises(InvalidRequest, match="cannot be written as JSON"):
        ModelEndpoint(told.url, None, outside=waits.outside).post("/x", {"input": "\ud800"})

    assert told.heads == []
