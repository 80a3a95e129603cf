"""The object store over failing connections, without conditional requests, and misconfigured."""

import os
import socket
import threading

import obstore
import pytest
from journal_world import commit_on
from log_contract import LONG, ONE, TWO, commit, document, fill
from obstore.store import S3Store
from seaweed import SECRET
from wire import LOST, PASS, UNANSWERED, Wire

from jidomem.errors import Failed, InvalidRequest, JournalDamaged
from jidomem.extras.servers.log import StreamPosition
from jidomem.extras.servers.object_log import ObjectLog
from jidomem.journal.journal import NAMES, Stream
from jidomem.journal.rewrite import is_redacted, leaves, without
from jidomem.rdf.vocab import jido
from jidomem.records.intent import Version

NOTHING = "http://127.0.0.1:1"
NO_KEY = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}
NO_HOST = f"http://{'x' * 64}.invalid"  # which is not sent to any resolver
pytestmark = pytest.mark.usefixtures("bucket")


@pytest.fixture
def open_log(bucket):
    """Return a function that opens the log at the address of this test, at another endpoint if one is given."""
    logs = []

    def open_log(endpoint=None, address=bucket, **options):
        environment = {**os.environ, **({"AWS_ENDPOINT_URL": endpoint} if endpoint else {})}
        logs.append(ObjectLog(address, environment, **options))
        return logs[-1]

    yield open_log
    for log in logs:
        log.close()


@pytest.fixture
def open_wire(seaweed):
    """Return a function that opens a wire to the store."""
    wires = []

    def open_wire(*rule, **options):
        wires.append(Wire(seaweed.endpoint, *rule, **options))
        return wires[-1]

    yield open_wire
    for wire in wires:
        wire.close()


@pytest.fixture
def store(bucket, seaweed):
    """The bucket itself, for changes that bypass the log."""
    prefix = bucket.removeprefix("s3://jidomem/")
    return S3Store("jidomem", prefix=prefix, endpoint=seaweed.endpoint, client_options={"allow_http": True})


def entry(number):
    return f"/log/demo.memory/000/000/{number:03}"


# stores that will not do


@pytest.mark.parametrize(
    ("header", "message"), [("If-None-Match", r"ignores If-None-Match: \*,"), ("If-Match", "ignores If-Match,")]
)
def test_a_store_without_conditional_requests_is_refused_by_name(open_log, open_wire, monkeypatch, header, message):
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")  # a signature would tell the store that a header is missing
    with pytest.raises(Failed, match=message) as refused:
        open_log(open_wire(strip=[header]).endpoint, "s3://anyone/place")

    assert (refused.value.code, "docs/backends.md" in refused.value.hint) == ("store_unreachable", True)
    assert "s3://anyone/place at http://127.0.0.1:" in refused.value.detail
    assert open_log(open_wire().endpoint, "s3://anyone/place").streams() == []


@pytest.mark.parametrize(
    ("changes", "address", "message", "hint"),
    [
        ({"AWS_ENDPOINT_URL": NOTHING}, None, "ConnectionRefused", "start the store"),
        ({"AWS_ENDPOINT_URL": NO_HOST, "AWS_ALLOW_HTTP": "true"}, None, "dns error", "AWS_ENDPOINT_URL"),
        ({"AWS_ENDPOINT_URL": "http://192.0.2.1:8333"}, None, "BadScheme", "export AWS_ALLOW_HTTP=true"),
        ({"AWS_ACCESS_KEY_ID": "nobody"}, None, "InvalidAccessKeyId", "AWS_ACCESS_KEY_ID"),
        ({"AWS_ACCESS_KEY_ID": None}, None, "MissingAccessKeyId", "set AWS_ACCESS_KEY_ID"),
        ({"AWS_SECRET_ACCESS_KEY": None}, None, "MissingSecretAccessKey", "AWS_SECRET_ACCESS_KEY"),
        ({**NO_KEY, "AWS_METADATA_ENDPOINT": NOTHING}, None, "HTTP error", "no key was found"),
        ({"AWS_SECRET_ACCESS_KEY": "secret"}, None, "SignatureDoesNotMatch", "AWS_SECRET_ACCESS_KEY"),
        ({}, "s3://nowhere/p", "NoSuchBucket", "create the bucket nowhere"),
        ({"AWS_ACCESS_KEY_ID": "reader"}, None, "AccessDenied", "list, read, write and delete below s3://jidomem/place"),
        ({}, "s3://x/p", "InvalidBucketName", "x is not a valid bucket name"),
    ],
)  # fmt: skip
def test_an_unusable_store_is_reported_with_its_cause_and_a_hint(
    open_log, monkeypatch, changes, address, message, hint
):
    for name, value in changes.items():
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name)
    with pytest.raises(Failed, match=message) as refused:
        open_log(**({"address": address} if address else {}))

    assert (refused.value.code, hint in refused.value.hint) == ("store_unreachable", True), refused.value.hint
    assert SECRET not in f"{refused.value.detail} {refused.value.hint}"
    assert refused.value.detail.isprintable()


def test_a_store_that_never_answers_is_reported_after_a_timeout(open_log, monkeypatch):
    monkeypatch.setattr("jidomem.extras.servers.object_log.ANSWER", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(Failed, match="Timeout") as refused:
        open_log(f"http://127.0.0.1:{silent.getsockname()[1]}")
    assert refused.value.code == "store_unreachable"


@pytest.mark.parametrize("address", ["gs://b/p", "az://b/p", "s3://", "s3:///p", "s3://key:hush@b/p", "s3://b/p?x=1"])
def test_an_address_of_another_kind_is_refused_without_its_password(address):
    with pytest.raises(InvalidRequest, match=r"is not the address of an object store") as refused:
        ObjectLog(address, {})
    assert ("s3://BUCKET/PREFIX" in refused.value.hint, "hush" in refused.value.detail) == (True, False)


def test_the_name_of_a_log_has_the_endpoint_and_no_password(open_log, seaweed):
    host = seaweed.endpoint.removeprefix("http://")
    assert open_log(f"http://me:hush@{host}", "s3://jidomem/a/b/").name == f"s3://jidomem/a/b at http://{host}"


# a wire that fails


@pytest.mark.parametrize("fate", [LOST, UNANSWERED])
def test_an_append_with_a_lost_answer_is_repeated_until_its_outcome_is_known(open_log, open_wire, fate):
    fates = [fate, fate]
    wire = open_wire(lambda method, path: fates.pop() if method == "PUT" and "/log/" in path and fates else PASS)
    log = open_log(wire.endpoint)

    assert [entry.commit for entry in fill(log, 2)] == [entry.commit for entry in open_log().read(ONE)]
    assert (fates, open_log().positions([ONE])[ONE]) == ([], StreamPosition(2))


def test_a_lost_append_that_was_too_late_is_refused(open_log, open_wire):
    def rule(method, path):
        if method == "PUT" and "/log/" in path and not winner:
            winner.append(open_log())
            assert winner[0].append(ONE, 1, commit("other"), b"other")
            return LOST
        return PASS

    winner = []
    assert open_log(open_wire(rule).endpoint).append(ONE, 1, commit(1), document(1)) is False
    assert [entry.document for entry in open_log().read(ONE)] == [b"other"]


@pytest.mark.parametrize(("fate", "stored"), [(LOST, 0), (UNANSWERED, 1)])
def test_an_append_with_an_unknown_outcome_is_reported_and_settled_by_a_repetition(open_log, open_wire, fate, stored):
    fates = []
    wire = open_wire(
        lambda method, path: fates.pop() if method == "PUT" and fates and len(fates) == 2 else LOST if fates else PASS
    )
    log = open_log(wire.endpoint, wait=0.3)
    log.positions([ONE])
    fates += [fate, fate]
    with pytest.raises(Failed, match=commit(1)) as lost:
        log.append(ONE, 1, commit(1), document(1))

    assert (lost.value.code, "same idempotency key" in lost.value.hint) == ("outcome_unknown", True)
    assert open_log().positions([ONE])[ONE] == StreamPosition(stored)
    fates.clear()
    assert log.append(ONE, 1, commit(1), document(1)) is True
    assert open_log().positions([ONE])[ONE] == StreamPosition(1)


def test_an_append_that_was_never_sent_has_a_known_outcome(open_log, open_wire):
    wire = open_wire()
    log = open_log(wire.endpoint, wait=0.3)
    fill(log, 1)
    wire.close()
    for call in (log.names, lambda: log.positions([ONE, TWO]), lambda: log.append(ONE, 2, commit(2), b"two")):
        with pytest.raises(Failed, match=r"s3://jidomem/.* cannot be used") as lost:
            call()
        assert lost.value.code == "store_unreachable"


@pytest.mark.parametrize("fate", [LOST, UNANSWERED])
def test_a_file_with_a_lost_put_is_put_once(open_log, open_wire, fate):
    fates = [fate] * 2
    wire = open_wire(lambda method, path: fates.pop() if method == "PUT" and "/files/" in path and fates else PASS)
    log = open_log(wire.endpoint)

    tag = log.put("tokens", b"1")
    assert (log.put("tokens", b"2", tag), fates) == (open_log().get("tokens").tag, [])
    assert open_log().get("tokens").data == b"2"


# rewriting


def test_a_rewrite_that_is_cut_at_any_request_is_complete_or_absent(open_log, open_wire):
    outcomes = set()
    fill(open_log(), 3)
    for after in range(6):
        puts = []

        def rule(method, path, puts=puts, after=after):
            puts += [path] if method == "PUT" and "/probe" not in path else []
            return PASS if len(puts) <= after else LOST

        log, new = open_log(open_wire(rule).endpoint, wait=0.0), {commit(n): f"{n} {after}".encode() for n in (1, 2, 3)}
        before = open_log().positions([ONE])[ONE].rewrites
        try:
            log.rewrite(ONE, new)
        except Failed:
            assert after < 5
        other = open_log()
        rewrites = other.positions([ONE])[ONE].rewrites - before
        texts = [entry.document for entry in other.read(ONE)]

        assert (texts == list(new.values())) is bool(rewrites)
        assert rewrites == (after > 0)
        outcomes.add(rewrites)
    assert outcomes == {0, 1}


def test_a_process_delayed_during_a_rewrite_does_not_restore_redacted_documents(open_log, open_wire):
    fill(open_log(), 1)
    is_waiting, is_released = threading.Event(), threading.Event()

    def rule(method, path):
        if method == "PUT" and path.endswith(entry(1)) and not is_waiting.is_set():
            is_waiting.set()
            assert is_released.wait(LONG)
        return PASS

    sleeper = open_log(open_wire(rule).endpoint)
    thread = threading.Thread(target=sleeper.rewrite, args=(ONE, {commit(1): b"still secret"}), daemon=True)
    thread.start()
    assert is_waiting.wait(LONG)
    other = open_log()
    other.rewrite(ONE, {commit(1): b"out"})
    is_released.set()
    thread.join(LONG)

    assert [log.positions([ONE])[ONE] for log in (other, sleeper)] == [StreamPosition(1, 2)] * 2
    assert [each.document for each in open_log().read(ONE)] == [b"out"]


def test_a_commit_is_searched_from_the_position_in_its_document(open_log, open_wire):
    first = commit_on(Version(), "n1")
    commits = [first]
    while len(commits) < 60:
        commits.append(commit_on(Version.of([commits[-1].head]), f"n{len(commits) + 1}"))
    late = commit_on(Version.of([first.head]), "late")  # of a branch: the second of it, and the last entry of the log
    log = open_log()
    for number, each in enumerate([*commits, late], 1):
        assert log.append(ONE, number, each.id, each.data)
    wire = open_wire()
    log = open_log(wire.endpoint)
    log.positions([ONE])

    for each, limit in ((commits[2], 3), (late, 70)):
        wire.requests.clear()
        log.rewrite(ONE, {each.id: without(each, [leaf_of_summary(each)]).data})
        assert len([path for method, path in wire.requests if method == "GET" and "/log/" in path]) <= limit
        assert [entry.commit for entry in log.read(ONE) if is_redacted(entry.document)][-1] == each.id


def leaf_of_summary(commit):
    return next(leaf for (_, predicate, _), leaf in leaves(commit).items() if predicate == jido("summary"))


# finding the end


def test_the_end_is_found_in_three_listings_and_then_by_one_request(open_log, open_wire, store):
    for number in (1, 998, 999, 1000, 1001):
        obstore.put(store, f"log/demo.memory/000/{number // 1000:03}/{number % 1000:03}", b"# commit x\n")
    wire = open_wire()
    log = open_log(wire.endpoint)
    wire.requests.clear()
    assert log.positions([ONE])[ONE] == StreamPosition(1001)
    assert [method for method, path in wire.requests if path == "/jidomem"] == ["GET"] * 3
    wire.requests.clear()
    assert log.positions([ONE])[ONE] == StreamPosition(1001)
    assert sorted(wire.requests) == [
        ("GET", f"/jidomem/{store.prefix}/rewrites"),
        ("HEAD", f"/jidomem/{store.prefix}/log/demo.memory/000/001/002"),
    ]
    wire.requests.clear()
    assert log.append(ONE, 1002, commit(2), b"two")
    assert [method for method, _ in wire.requests] == ["PUT"]


def test_the_streams_of_a_project_are_requested_in_parallel(open_log, open_wire):
    streams = [Stream("demo", name) for name in NAMES]
    for number, stream in enumerate(streams, 1):
        fill(open_log(), number, stream)
    barriers = []
    wire = open_wire(lambda method, path: (barriers and barriers[0].wait(LONG), PASS)[1])
    log = open_log(wire.endpoint)
    log.positions(streams)
    barriers.append(threading.Barrier(len(streams) + 1))  # no request is answered before all have arrived
    assert [reach.length for reach in log.positions(streams).values()] == [1, 2, 3, 4]


def test_an_empty_folder_does_not_hide_the_end(open_log, store):
    for key in ("000/000/999", "000/001/000"):
        obstore.put(store, f"log/demo.memory/{key}", b"# commit x\n")
    obstore.delete(store, ["log/demo.memory/000/001/000"])
    assert open_log().positions([ONE])[ONE] == StreamPosition(999)


def test_a_removed_entry_is_reported_by_its_key(open_log, store):
    fill(open_log(), 3)
    obstore.delete(store, [entry(2)[1:]])
    with pytest.raises(JournalDamaged, match=r"log/demo.memory/000/000/002") as damage:
        list(open_log().read(ONE))
    assert "lifecycle rule" in damage.value.hint


def test_a_foreign_object_is_reported_by_its_key(open_log, store):
    obstore.put(store, entry(1)[1:], b"mine")
    with pytest.raises(JournalDamaged, match=r"000/001: .*not written by jidomem"):
        list(open_log().read(ONE))
