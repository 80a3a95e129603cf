"""Shared vectors: each text is embedded by one server for all, and no vector of a redacted text remains."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from time import sleep, time

import pytest
from conftest import ToyEmbedder, intent
from file_log import FileLog

import jidomem
from jidomem.base.clock import Sources
from jidomem.base.words import digest
from jidomem.errors import ModelUnavailable
from jidomem.extras.servers import shared_vectors
from jidomem.extras.servers.journal import MirroredJournal
from jidomem.extras.servers.shared_vectors import LEASE, SegmentList, VectorSegments, discard, packed, unpacked
from jidomem.index import search_index
from jidomem.journal.journal import Stream
from jidomem.runtime.location import FolderPlace, SharedLocation
from jidomem.runtime.root import Jidomem
from jidomem.runtime.settings import Settings
from jidomem_cli.status import vectors_text

P = Stream("p")
SECRET = "the okapi opens with swordfish"


@pytest.fixture
def open_server(tmp_path, monkeypatch):
    """Return a function that opens the root of a test as the server of a name, with an embedder of its own."""
    monkeypatch.setattr(search_index, "MAX_BATCH", 4)
    memories = []

    def open_server(name, model="toy-1"):
        home = tmp_path / name
        home.mkdir(exist_ok=True)
        location = SharedLocation(
            FileLog(str(tmp_path / "log")), "s3://as/if", home
        )  # its working state is on this machine
        memory = Jidomem(Settings(home, "p", "here"), Sources(), 10.0, ToyEmbedder(model), location)
        memories.append(memory)
        return memory

    yield open_server
    for memory in memories:
        memory.close()


def remember(memory, *summaries):
    """Write memories in batches, without the embedder."""
    receipts = [memory.writer.submit_many("p", [intent(summary=summary, evidence=[])]) for summary in summaries]
    return [receipt.iri for (receipt,) in receipts]


def zebras(first, last):
    return [f"zebra {number} runs" for number in range(first, last)]


def embed(memory):
    return memory.embedding.embed("p")


def embedded_texts(*memories):
    """The texts that their embedders computed, without queries."""
    return sorted(text for memory in memories for text in memory.embedder.asked if not text.endswith("?"))


def segments(log):
    """The segments of each list, by its folder."""
    lists = [name for name in log.names("vectors/") if name.endswith("/list.json")]
    return {name.removesuffix("list.json"): json.loads(log.get(name).data)["segments"] for name in lists}


def stored_digests(log):
    """The digests of the texts with a vector in any file of the log."""
    names = [name for name in log.names("vectors/") if not name.endswith("/list.json")]
    return {known for name in names for known, _ in unpacked(log.get(name).data)}


def rows(*texts):
    return [(digest(text), bytes(96)) for text in texts]


def test_each_text_is_embedded_once_by_all_servers_together(open_server):
    here, there = open_server("here"), open_server("there")
    remember(here, *zebras(0, 10))
    assert (embed(here), embed(there)) == (0, 0)
    remember(there, *zebras(10, 13))
    there.conversation("s").record("a lynx hunts")
    assert (embed(there), embed(here), embed(open_server("late"))) == (0, 0, 0)

    assert embedded_texts(here, there) == sorted([*zebras(0, 13), "a lynx hunts"])
    assert embedded_texts(there) == sorted([*zebras(10, 13), "a lynx hunts"])


def test_recall_with_shared_vectors_equals_recall_with_local_ones(open_server, tmp_path, monkeypatch):
    texts = [*zebras(0, 9), "the okapi sleeps", "the okapi runs"]
    first, second, standalone, embed_first = map(open_server, ("here", "there", "alone", "late"))
    monkeypatch.setattr(
        standalone.place, "vectors", FolderPlace(tmp_path / "alone").vectors
    )  # it computes all vectors itself
    remember(first, *texts[::2])
    embed(first)
    remember(second, *texts[1::2])
    for memory in (second, first, standalone, embed_first):
        assert embed(memory) == 0

    answers = []
    for memory in (standalone, first, second, embed_first):
        memory.embeds_for = 0.0
        answers.append(memory.recall("which okapi runs?").entries)
    vector = first.embedder.generate(["okapi runs?"])[0]

    assert (len(embedded_texts(standalone)), embedded_texts(embed_first)) == (len(texts), [])
    assert len(answers[0]) > 1
    assert answers == [answers[0]] * 4
    assert embed_first.embedding.vectors.nearest(P, vector, 9) == standalone.embedding.vectors.nearest(P, vector, 9)


def test_each_model_has_its_own_vectors(open_server):
    here, other = open_server("here"), open_server("other", "toy-2")
    remember(here, *zebras(0, 3))
    embed(here)
    embed(other)

    assert embedded_texts(here) == embedded_texts(other) == zebras(0, 3)
    assert [
        len(list_segments) for folder, list_segments in segments(here.place.log).items() if "/memory/" in folder
    ] == [1, 1]


def test_one_server_embeds_at_a_time_until_its_lease_ends(open_server, monkeypatch):
    here, there = open_server("here"), open_server("there")
    remember(here, *zebras(0, 9))
    here.embedding.vectors.embed_next(P)  # then it is killed, and its lease is not released

    assert embed(there) == 5
    assert embedded_texts(there) == []
    monkeypatch.setattr(shared_vectors, "time", lambda: 1e10)
    assert embed(there) == 0
    assert embedded_texts(here, there) == zebras(0, 9)


def test_a_lease_is_valid_under_a_slow_clock_and_invalid_if_too_long(tmp_path):
    log = FileLog(str(tmp_path / "log"))
    for offset, is_acquired in ((LEASE / 2, False), (1e9, True)):
        log.put("vectors/p/memory/m/list.json", SegmentList((), "other", time() + LEASE + offset).data, force=True)
        each = VectorSegments(log)
        each.listed(P, "m")
        assert each.acquire_lease(P, "m", "me") is is_acquired


def test_a_server_without_its_lease_lists_no_segment_and_leaves_no_file(tmp_path):
    log = FileLog(str(tmp_path / "log"))
    slow, quick = VectorSegments(log), VectorSegments(log)
    slow.listed(P, "m")
    assert slow.acquire_lease(P, "m", "slow")
    present_list = SegmentList.of(log.get("vectors/p/memory/m/list.json"))
    log.put("vectors/p/memory/m/list.json", SegmentList((), "slow", 1.0).data, present_list.tag)
    log.put("vectors/p/memory/m/" + "0" * 64, b"of one that was killed")
    quick.listed(P, "m")
    assert quick.acquire_lease(P, "m", "quick")
    stored = quick.put(P, "m", "quick", rows("a"), goes_on=False)

    assert slow.put(P, "m", "slow", rows("b"), goes_on=True) is None
    assert log.names("vectors/") == sorted([f"vectors/p/memory/m/{stored[0]}", "vectors/p/memory/m/list.json"])


def test_a_server_with_a_failed_embedder_releases_its_lease(open_server):
    here, there = open_server("here"), open_server("there")
    remember(here, *zebras(0, 3))
    here.embedder.fault = ModelUnavailable("it is out")
    with pytest.raises(ModelUnavailable):
        embed(here)

    assert embed(there) == 0
    assert embedded_texts(there) == zebras(0, 3)


def test_small_segments_are_merged(open_server, tmp_path, monkeypatch):
    monkeypatch.setattr(shared_vectors, "MANY", 8)
    log = FileLog(str(tmp_path / "log"))
    here, there = open_server("here"), open_server("there")
    for number in range(22):
        remember(here, *zebras(number, number + 1))
        embed(here)
        if number == 10:
            embed(there)

    (counts,) = ([count for _, count in list_segments] for list_segments in segments(log).values())
    assert counts == [8, 8, 4, 2]
    assert len(log.names("vectors/")) == 5
    assert (embed(there), embedded_texts(there)) == (0, [])


def test_a_redaction_removes_every_vector_and_the_others_are_embedded_again_once(open_server, tmp_path):
    here, there, other = open_server("here"), open_server("there"), open_server("other", "toy-2")
    (secret,) = remember(here, SECRET)
    remember(here, *zebras(0, 5))
    for memory in (here, there, other):
        embed(memory)
    assert digest(SECRET) in stored_digests(here.place.log)

    here.maintenance.redact(here.maintenance.plan("p", item=secret), agent="architect", reason="it is a secret")
    assert stored_digests(here.place.log) == set()
    for memory in (here, there):
        memory.embedder.asked.clear()
    assert (embed(there), embed(here)) == (0, 0)

    assert [text for text in embedded_texts(here, there) if "zebra" in text] == zebras(0, 5)
    assert SECRET not in embedded_texts(here, there)
    assert digest(SECRET) not in stored_digests(here.place.log)
    assert not there.embedding.vectors.cosines(P, there.embedder.generate(["x"])[0], [digest(SECRET)])


def test_vectors_computed_during_a_redaction_are_in_no_segment(open_server):
    here, there = open_server("here"), open_server("there")
    (secret,) = remember(here, SECRET)
    remember(here, *zebras(0, 3))
    generate = there.embedder.generate

    def embed_first(texts):
        if SECRET in texts:
            here.maintenance.redact(here.maintenance.plan("p", item=secret), agent="architect", reason="it is a secret")
        return generate(texts)

    there.embedder.generate = embed_first
    embed(there)

    assert digest(SECRET) not in stored_digests(here.place.log)
    assert {digest(text) for text in zebras(0, 3)} <= stored_digests(here.place.log)


def test_vectors_computed_during_the_rewrite_of_a_redaction_are_removed_with_its_record(open_server):
    here, there = open_server("here"), open_server("there")
    (secret,) = remember(here, SECRET)
    append, log = MirroredJournal.append, here.place.log

    def embed_first(stream, expected, commit):
        embed(there)  # its index still has the text
        return append(here.journal, stream, expected, commit)

    there.catch_up("p")
    plan = here.maintenance.plan("p", item=secret)
    here.journal.append = embed_first
    here.maintenance.redact(plan, agent="architect", reason="it is a secret")

    assert SECRET in embedded_texts(there)
    assert digest(SECRET) not in stored_digests(log)


@pytest.mark.parametrize("harm", ["another text", "cut short", "gone", "no list", "another length"])
def test_a_segment_with_a_wrong_digest_is_ignored(open_server, harm):
    here, there = open_server("here"), open_server("there")
    remember(here, *zebras(0, 4))
    embed(here)
    log = here.place.log
    (folder, ((name, _),)) = next(iter(segments(log).items()))
    if harm == "gone":
        log.remove([folder + name])
    elif harm == "no list":
        log.put(f"{folder}list.json", b'{"form": 1, "segments": 7}', force=True)
    elif harm == "another length":
        wrong_rows = packed([(known, b"x") for known, _ in unpacked(log.get(folder + name).data)])
        forger = VectorSegments(log)
        forger.listed(P, folder.split("/")[-2])
        forger.acquire_lease(P, folder.split("/")[-2], "liar")
        log.remove([folder + name])
        forger.rows(P, folder.split("/")[-2], name)
        forger.put(P, folder.split("/")[-2], "liar", unpacked(wrong_rows), goes_on=False)
    else:
        data = log.get(folder + name).data
        log.put(folder + name, data[:-1] if harm == "cut short" else data[:4] + bytes(16) + data[20:], force=True)

    assert embed(there) == 0
    assert embedded_texts(there) == zebras(0, 4)
    assert embed(open_server("late")) == 0


def test_deleted_vectors_of_one_machine_are_fetched_from_the_others(open_server, tmp_path):
    here, there = open_server("here"), open_server("there")
    remember(here, *zebras(0, 6))
    embed(here)
    embed(there)
    there.close()
    shutil.rmtree(tmp_path / "there" / "cache" / "vectors")

    reopened = open_server("there")
    assert (embed(reopened), embedded_texts(reopened)) == (0, [])


def test_vectors_of_one_project_are_discarded_alone(tmp_path):
    log = FileLog(str(tmp_path / "log"))
    for project in ("p", "pq"):
        each = VectorSegments(log)
        each.listed(Stream(project), "m")
        each.acquire_lease(Stream(project), "m", "me")
        each.put(Stream(project), "m", "me", rows("a"), goes_on=False)

    discard(log, "p")

    assert [len(list_segments) for list_segments in segments(log).values()] == [0, 1]
    assert stored_digests(log) == {digest("a")}


@pytest.fixture(params=["postgres", "bucket"])
def open_machine(request, tmp_path, monkeypatch):
    """Return a function that opens a root in a store as the machine of a name; `address` is that of the store."""
    store, memories = request.getfixturevalue(request.param), []

    def open_server(machine):
        monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / machine))
        memories.append(jidomem.open(open_server.address, project="p", embedder=ToyEmbedder()))
        return memories[-1]

    open_server.address = store if request.param == "bucket" else store.address()
    yield open_server
    for memory in memories:
        memory.close()


def test_two_machines_of_a_root_in_a_store_embed_each_text_once(open_machine):
    here, there = open_machine("here"), open_machine("there")
    (secret, *_) = remember(here, SECRET, *zebras(0, 5))
    assert (embed(here), embed(there)) == (0, 0)
    remember(there, *zebras(5, 9))
    assert (embed(there), embed(here)) == (0, 0)
    assert (len(embedded_texts(here)), embedded_texts(there)) == (6, zebras(5, 9))

    there.maintenance.redact(there.maintenance.plan("p", item=secret), agent="architect", reason="it is a secret")
    assert stored_digests(here.place.log) == set()
    assert (embed(there), embed(here)) == (0, 0)
    assert digest(SECRET) not in stored_digests(here.place.log)


def test_a_machine_killed_while_embedding_loses_its_lease_and_no_listed_vector(open_machine, tmp_path, monkeypatch):
    here = open_machine("here")
    remember(here, *zebras(0, 9))
    killed = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("killed_embedder.py")), open_machine.address],
        env={**os.environ, "JIDOMEM_HOME": str(tmp_path / "killed")},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert (killed.returncode, len(embedded := killed.stdout.splitlines())) == (-9, 4)

    monkeypatch.setattr(shared_vectors, "LEASE", 1.0)
    while embed(here):
        sleep(0.05)  # its lease expires a second after its last renewal

    assert sorted([*embedded, *embedded_texts(here)]) == zebras(0, 9)
    assert stored_digests(here.place.log) == {digest(text) for text in zebras(0, 9)}
    assert len(here.place.log.names("vectors/p/memory/")) == 1 + sum(map(len, segments(here.place.log).values()))


def test_reindex_reports_that_another_server_computes_the_vectors(open_server, tmp_path):
    here, there = open_server("here"), open_server("there")
    remember(here, *zebras(0, 3))
    embed(here)
    remember(here, *zebras(3, 5))
    log, model = here.place.log, next(iter(segments(here.place.log))).split("/")[3]
    others = VectorSegments(log)
    others.listed(P, model)
    assert others.acquire_lease(P, model, "another")

    assert embed(there) == 2
    status = there.embedding.status("p")
    others.end(P, model, "another")

    assert vectors_text(status).endswith("2 texts pending: another server computes them now")
    assert embed(there) == 0
    assert vectors_text(there.embedding.status("p")).endswith("up to date")
