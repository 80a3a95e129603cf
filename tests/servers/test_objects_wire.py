"""The object store as it is met: on a wire that fails, with stores that do not keep conditions, and misconfigured."""

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
from jidomem.extras.servers.log import Reach
from jidomem.extras.servers.object_log import ObjectLog
from jidomem.journal.journal import NAMES, Stream
from jidomem.journal.rewrite import is_redacted, leaves, without
from jidomem.rdf.vocab import jido
from jidomem.records.intent import Version

NOTHING = "http://127.0.0.1:1"
NO_KEY = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}
NO_HOST = f"http://{'x' * 64}.invalid"  # which no resolver asks anybody about
pytestmark = pytest.mark.usefixtures("bucket")


@pytest.fixture
def opened(bucket):
    """Open the log at the address of this test, by another endpoint if one is given."""
    logs = []

    def opened(endpoint=None, address=bucket, **more):
        environment = {**os.environ, **({"AWS_ENDPOINT_URL": endpoint} if endpoint else {})}
        logs.append(ObjectLog(address, environment, **more))
        return logs[-1]

    yield opened
    for log in logs:
        log.close()


@pytest.fixture
def wired(seaweed):
    """Lay a wire to the store."""
    wires = []

    def wired(*rule, **more):
        wires.append(Wire(seaweed.endpoint, *rule, **more))
        return wires[-1]

    yield wired
    for wire in wires:
        wire.close()


@pytest.fixture
def store(bucket, seaweed):
    """The place itself, to change it behind the log's back."""
    prefix = bucket.removeprefix("s3://jidomem/")
    return S3Store("jidomem", prefix=prefix, endpoint=seaweed.endpoint, client_options={"allow_http": True})


def entry(number):
    return f"/log/demo.memory/000/000/{number:03}"


# stores that will not do


@pytest.mark.parametrize(
    ("header", "said"), [("If-None-Match", r"ignores If-None-Match: \*,"), ("If-Match", "ignores If-Match,")]
)
def test_a_store_that_ignores_a_condition_is_refused_by_name(opened, wired, monkeypatch, header, said):
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")  # a signature would tell the store that a header is missing
    with pytest.raises(Failed, match=said) as refused:
        opened(wired(strip=[header]).endpoint, "s3://anyone/place")

    assert (refused.value.code, "docs/backends.md" in refused.value.hint) == ("store_unreachable", True)
    assert "s3://anyone/place at http://127.0.0.1:" in refused.value.detail
    assert opened(wired().endpoint, "s3://anyone/place").streams() == []


@pytest.mark.parametrize(
    ("changes", "address", "said", "hint"),
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
def test_a_store_that_cannot_be_used_says_why_and_what_to_look_at(opened, monkeypatch, changes, address, said, hint):
    for name, value in changes.items():
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name)
    with pytest.raises(Failed, match=said) as refused:
        opened(**({"address": address} if address else {}))

    assert (refused.value.code, hint in refused.value.hint) == ("store_unreachable", True), refused.value.hint
    assert SECRET not in f"{refused.value.detail} {refused.value.hint}"
    assert refused.value.detail.isprintable()


def test_a_store_that_listens_and_never_answers_is_given_up(opened, monkeypatch):
    monkeypatch.setattr("jidomem.extras.servers.object_log.ANSWER", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as deaf, pytest.raises(Failed, match="Timeout") as refused:
        opened(f"http://127.0.0.1:{deaf.getsockname()[1]}")
    assert refused.value.code == "store_unreachable"


@pytest.mark.parametrize("address", ["gs://b/p", "az://b/p", "s3://", "s3:///p", "s3://key:hush@b/p", "s3://b/p?x=1"])
def test_an_address_of_another_kind_is_refused_by_name(address):
    with pytest.raises(InvalidRequest, match=r"is not the address of an object store") as refused:
        ObjectLog(address, {})
    assert ("s3://BUCKET/PREFIX" in refused.value.hint, "hush" in refused.value.detail) == (True, False)


def test_the_name_tells_the_endpoint_and_no_password(opened, seaweed):
    there = seaweed.endpoint.removeprefix("http://")
    assert opened(f"http://me:hush@{there}", "s3://jidomem/a/b/").name == f"s3://jidomem/a/b at http://{there}"


# a wire that fails


@pytest.mark.parametrize("fate", [LOST, UNANSWERED])
def test_an_append_that_is_cut_off_is_tried_until_it_is_known_to_stand(opened, wired, fate):
    left = [fate, fate]
    wire = wired(lambda method, path: left.pop() if method == "PUT" and "/log/" in path and left else PASS)
    log = opened(wire.endpoint)

    assert [entry.commit for entry in fill(log, 2)] == [entry.commit for entry in opened().read(ONE)]
    assert (left, opened().reach([ONE])[ONE]) == ([], Reach(2))


def test_an_append_that_was_cut_off_and_came_too_late_is_answered_with_no(opened, wired):
    def rule(method, path):
        if method == "PUT" and "/log/" in path and not other:
            other.append(opened())
            assert other[0].append(ONE, 1, commit("other"), b"other")
            return LOST
        return PASS

    other = []
    assert opened(wired(rule).endpoint).append(ONE, 1, commit(1), document(1)) is False
    assert [entry.document for entry in opened().read(ONE)] == [b"other"]


@pytest.mark.parametrize(("fate", "stands"), [(LOST, 0), (UNANSWERED, 1)])
def test_an_append_whose_outcome_cannot_be_known_says_so_and_is_settled_by_the_same_again(opened, wired, fate, stands):
    cut = []
    wire = wired(lambda method, path: cut.pop() if method == "PUT" and cut and len(cut) == 2 else LOST if cut else PASS)
    log = opened(wire.endpoint, wait=0.3)
    log.reach([ONE])
    cut += [fate, fate]
    with pytest.raises(Failed, match=commit(1)) as lost:
        log.append(ONE, 1, commit(1), document(1))

    assert (lost.value.code, "same idempotency key" in lost.value.hint) == ("outcome_unknown", True)
    assert opened().reach([ONE])[ONE] == Reach(stands)
    cut.clear()
    assert log.append(ONE, 1, commit(1), document(1)) is True
    assert opened().reach([ONE])[ONE] == Reach(1)


def test_an_append_that_was_never_sent_is_no_unknown_outcome(opened, wired):
    wire = wired()
    log = opened(wire.endpoint, wait=0.3)
    fill(log, 1)
    wire.close()
    for call in (log.names, lambda: log.reach([ONE, TWO]), lambda: log.append(ONE, 2, commit(2), b"two")):
        with pytest.raises(Failed, match=r"s3://jidomem/.* cannot be used") as lost:
            call()
        assert lost.value.code == "store_unreachable"


@pytest.mark.parametrize("fate", [LOST, UNANSWERED])
def test_a_file_whose_put_is_cut_off_is_put_once(opened, wired, fate):
    left = [fate] * 2
    wire = wired(lambda method, path: left.pop() if method == "PUT" and "/files/" in path and left else PASS)
    log = opened(wire.endpoint)

    tag = log.put("tokens", b"1")
    assert (log.put("tokens", b"2", tag), left) == (opened().get("tokens").tag, [])
    assert opened().get("tokens").data == b"2"


# rewriting


def test_a_rewriting_cut_off_anywhere_is_all_or_none(opened, wired):
    seen = set()
    fill(opened(), 3)
    for after in range(6):
        puts = []

        def rule(method, path, puts=puts, after=after):
            puts += [path] if method == "PUT" and "/probe" not in path else []
            return PASS if len(puts) <= after else LOST

        log, new = opened(wired(rule).endpoint, wait=0.0), {commit(n): f"{n} {after}".encode() for n in (1, 2, 3)}
        before = opened().reach([ONE])[ONE].rewrites
        try:
            log.rewrite(ONE, new)
        except Failed:
            assert after < 5
        other = opened()
        done = other.reach([ONE])[ONE].rewrites - before
        texts = [entry.document for entry in other.read(ONE)]

        assert (texts == list(new.values())) is bool(done)
        assert done == (after > 0)
        seen.add(done)
    assert seen == {0, 1}


def test_a_process_delayed_during_a_rewrite_does_not_restore_what_a_later_one_removed(opened, wired):
    fill(opened(), 1)
    held, go = threading.Event(), threading.Event()

    def rule(method, path):
        if method == "PUT" and path.endswith(entry(1)) and not held.is_set():
            held.set()
            assert go.wait(LONG)
        return PASS

    sleeper = opened(wired(rule).endpoint)
    working = threading.Thread(target=sleeper.rewrite, args=(ONE, {commit(1): b"still secret"}), daemon=True)
    working.start()
    assert held.wait(LONG)
    other = opened()
    other.rewrite(ONE, {commit(1): b"out"})
    go.set()
    working.join(LONG)

    assert [log.reach([ONE])[ONE] for log in (other, sleeper)] == [Reach(1, 2)] * 2
    assert [each.document for each in opened().read(ONE)] == [b"out"]


def test_a_commit_is_searched_from_the_position_in_its_document_on(opened, wired):
    first = commit_on(Version(), "n1")
    written = [first]
    while len(written) < 60:
        written.append(commit_on(Version.of([written[-1].head]), f"n{len(written) + 1}"))
    late = commit_on(Version.of([first.head]), "late")  # of a branch: the second in it, and the last that came
    log = opened()
    for number, each in enumerate([*written, late], 1):
        assert log.append(ONE, number, each.id, each.data)
    wire = wired()
    log = opened(wire.endpoint)
    log.reach([ONE])

    for each, most in ((written[2], 3), (late, 70)):
        wire.asked.clear()
        log.rewrite(ONE, {each.id: without(each, [leaf_of_summary(each)]).data})
        assert len([path for method, path in wire.asked if method == "GET" and "/log/" in path]) <= most
        assert [entry.commit for entry in log.read(ONE) if is_redacted(entry.document)][-1] == each.id


def leaf_of_summary(commit):
    return next(leaf for (_, predicate, _), leaf in leaves(commit).items() if predicate == jido("summary"))


# finding the end


def test_the_end_is_found_in_three_listings_and_then_by_one_request_a_look(opened, wired, store):
    for number in (1, 998, 999, 1000, 1001):
        obstore.put(store, f"log/demo.memory/000/{number // 1000:03}/{number % 1000:03}", b"# commit x\n")
    wire = wired()
    log = opened(wire.endpoint)
    wire.asked.clear()
    assert log.reach([ONE])[ONE] == Reach(1001)
    assert [method for method, path in wire.asked if path == "/jidomem"] == ["GET"] * 3
    wire.asked.clear()
    assert log.reach([ONE])[ONE] == Reach(1001)
    assert sorted(wire.asked) == [
        ("GET", f"/jidomem/{store.prefix}/rewrites"),
        ("HEAD", f"/jidomem/{store.prefix}/log/demo.memory/000/001/002"),
    ]
    wire.asked.clear()
    assert log.append(ONE, 1002, commit(2), b"two")
    assert [method for method, _ in wire.asked] == ["PUT"]


def test_the_streams_of_a_project_are_asked_for_at_the_same_time(opened, wired):
    streams = [Stream("demo", name) for name in NAMES]
    for number, stream in enumerate(streams, 1):
        fill(opened(), number, stream)
    together = []
    wire = wired(lambda method, path: (together and together[0].wait(LONG), PASS)[1])
    log = opened(wire.endpoint)
    log.reach(streams)
    together.append(threading.Barrier(len(streams) + 1))  # nothing is answered before all of it was asked
    assert [reach.length for reach in log.reach(streams).values()] == [1, 2, 3, 4]


def test_a_folder_that_was_left_empty_does_not_hide_the_end(opened, store):
    for key in ("000/000/999", "000/001/000"):
        obstore.put(store, f"log/demo.memory/{key}", b"# commit x\n")
    obstore.delete(store, ["log/demo.memory/000/001/000"])
    assert opened().reach([ONE])[ONE] == Reach(999)


def test_a_removed_entry_is_reported_by_its_key(opened, store):
    fill(opened(), 3)
    obstore.delete(store, [entry(2)[1:]])
    with pytest.raises(JournalDamaged, match=r"log/demo.memory/000/000/002") as damage:
        list(opened().read(ONE))
    assert "lifecycle rule" in damage.value.hint


def test_a_foreign_object_is_reported_by_its_key(opened, store):
    obstore.put(store, entry(1)[1:], b"mine")
    with pytest.raises(JournalDamaged, match=r"000/001: .*not written by jidomem"):
        list(opened().read(ONE))
