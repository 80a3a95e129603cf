"""Shared vectors: each text is embedded by one server for all, and nothing is left of a redacted text."""

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
from jidomem.extras.servers.shared_vectors import LEASE, Listed, VectorSegments, discard, packed, unpacked
from jidomem.index import search_index
from jidomem.journal.journal import Stream
from jidomem.runtime.location import InFolder, SharedLocation
from jidomem.runtime.root import Jidomem
from jidomem.runtime.settings import Settings
from jidomem_cli.status import vectors_text

P = Stream("p")
SECRET = "the okapi opens with swordfish"


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """Open the one root of a test as the server of that name does, which has an embedder of its own."""
    monkeypatch.setattr(search_index, "MAX_BATCH", 4)
    memories = []

    def opened(name, model="toy-1"):
        home = tmp_path / name
        home.mkdir(exist_ok=True)
        place = SharedLocation(
            FileLog(str(tmp_path / "log")), "s3://as/if", home
        )  # its working state is on this machine
        memory = Jidomem(Settings(home, "p", "here"), Sources(), 10.0, ToyEmbedder(model), place)
        memories.append(memory)
        return memory

    yield opened
    for memory in memories:
        memory.close()


def remember(memory, *summaries):
    """Write memories in batches, which ask no embedder."""
    receipts = [memory.writer.submit_many("p", [intent(summary=summary, evidence=[])]) for summary in summaries]
    return [receipt.iri for (receipt,) in receipts]


def zebras(first, last):
    return [f"zebra {number} runs" for number in range(first, last)]


def level(memory):
    return memory.embedding.embed("p")


def asked(*memories):
    """What their embedders were given, without the questions."""
    return sorted(text for memory in memories for text in memory.embedder.asked if not text.endswith("?"))


def listed(log):
    """The segments that each list has, by its folder."""
    lists = [name for name in log.names("vectors/") if name.endswith("/list.json")]
    return {name.removesuffix("list.json"): json.loads(log.get(name).data)["segments"] for name in lists}


def held(log):
    """The texts' digests that any file of the log has a vector of."""
    names = [name for name in log.names("vectors/") if not name.endswith("/list.json")]
    return {known for name in names for known, _ in unpacked(log.get(name).data)}


def rows(*texts):
    return [(digest(text), bytes(96)) for text in texts]


def test_each_text_is_embedded_once_over_all_servers(opened):
    here, there = opened("here"), opened("there")
    remember(here, *zebras(0, 10))
    assert (level(here), level(there)) == (0, 0)
    remember(there, *zebras(10, 13))
    there.conversation("s").record("a lynx hunts")
    assert (level(there), level(here), level(opened("late"))) == (0, 0, 0)

    assert asked(here, there) == sorted([*zebras(0, 13), "a lynx hunts"])
    assert asked(there) == sorted([*zebras(10, 13), "a lynx hunts"])


def test_recall_answers_as_it_does_with_vectors_that_were_made_here(opened, tmp_path, monkeypatch):
    texts = [*zebras(0, 9), "the okapi sleeps", "the okapi runs"]
    here, there, alone, late = map(opened, ("here", "there", "alone", "late"))
    monkeypatch.setattr(alone.place, "vectors", InFolder(tmp_path / "alone").vectors)  # it makes all by itself
    remember(here, *texts[::2])
    level(here)
    remember(there, *texts[1::2])
    for memory in (there, here, alone, late):
        assert level(memory) == 0

    answers = []
    for memory in (alone, here, there, late):
        memory.embeds_for = 0.0
        answers.append(memory.recall("which okapi runs?").entries)
    vector = here.embedder.generate(["okapi runs?"])[0]

    assert (len(asked(alone)), asked(late)) == (len(texts), [])
    assert len(answers[0]) > 1
    assert answers == [answers[0]] * 4
    assert late.embedding.vectors.nearest(P, vector, 9) == alone.embedding.vectors.nearest(P, vector, 9)


def test_another_model_has_vectors_of_its_own(opened):
    here, other = opened("here"), opened("other", "toy-2")
    remember(here, *zebras(0, 3))
    level(here)
    level(other)

    assert asked(here) == asked(other) == zebras(0, 3)
    assert [len(of) for folder, of in listed(here.place.log).items() if "/memory/" in folder] == [1, 1]


def test_one_server_makes_vectors_at_a_time_and_a_dead_one_is_not_waited_for_for_ever(opened, monkeypatch):
    here, there = opened("here"), opened("there")
    remember(here, *zebras(0, 9))
    here.embedding.vectors.embed_next(P)  # then it is killed: it never gives its turn back

    assert level(there) == 5
    assert asked(there) == []
    monkeypatch.setattr(shared_vectors, "time", lambda: 1e10)
    assert level(there) == 0
    assert asked(here, there) == zebras(0, 9)


def test_a_lease_counts_with_a_slow_clock_and_not_if_it_would_never_end(tmp_path):
    log = FileLog(str(tmp_path / "log"))
    for ahead, is_mine in ((LEASE / 2, False), (1e9, True)):
        log.put("vectors/p/memory/m/list.json", Listed((), "other", time() + LEASE + ahead).data, force=True)
        each = VectorSegments(log)
        each.listed(P, "m")
        assert each.acquire_lease(P, "m", "me") is is_mine


def test_a_server_that_lost_its_lease_lists_nothing_and_leaves_nothing(tmp_path):
    log = FileLog(str(tmp_path / "log"))
    slow, quick = VectorSegments(log), VectorSegments(log)
    slow.listed(P, "m")
    assert slow.acquire_lease(P, "m", "slow")
    now = Listed.of(log.get("vectors/p/memory/m/list.json"))
    log.put("vectors/p/memory/m/list.json", Listed((), "slow", 1.0).data, now.tag)
    log.put("vectors/p/memory/m/" + "0" * 64, b"of one that was killed")
    quick.listed(P, "m")
    assert quick.acquire_lease(P, "m", "quick")
    kept = quick.put(P, "m", "quick", rows("a"), goes_on=False)

    assert slow.put(P, "m", "slow", rows("b"), goes_on=True) is None
    assert log.names("vectors/") == sorted([f"vectors/p/memory/m/{kept[0]}", "vectors/p/memory/m/list.json"])


def test_a_server_whose_embedder_fails_releases_its_lease(opened):
    here, there = opened("here"), opened("there")
    remember(here, *zebras(0, 3))
    here.embedder.fault = ModelUnavailable("it is out")
    with pytest.raises(ModelUnavailable):
        level(here)

    assert level(there) == 0
    assert asked(there) == zebras(0, 3)


def test_small_segments_are_merged(opened, tmp_path, monkeypatch):
    monkeypatch.setattr(shared_vectors, "MANY", 8)
    log = FileLog(str(tmp_path / "log"))
    here, there = opened("here"), opened("there")
    for number in range(22):
        remember(here, *zebras(number, number + 1))
        level(here)
        if number == 10:
            level(there)

    (counts,) = ([count for _, count in of] for of in listed(log).values())
    assert counts == [8, 8, 4, 2]
    assert len(log.names("vectors/")) == 5
    assert (level(there), asked(there)) == (0, [])


def test_a_redaction_takes_out_every_vector_and_the_rest_is_made_again_once(opened, tmp_path):
    here, there, other = opened("here"), opened("there"), opened("other", "toy-2")
    (kept,) = remember(here, SECRET)
    remember(here, *zebras(0, 5))
    for memory in (here, there, other):
        level(memory)
    assert digest(SECRET) in held(here.place.log)

    here.keeper.redact(here.keeper.plan("p", item=kept), agent="architect", reason="it is a secret")
    assert held(here.place.log) == set()
    for memory in (here, there):
        memory.embedder.asked.clear()
    assert (level(there), level(here)) == (0, 0)

    assert [text for text in asked(here, there) if "zebra" in text] == zebras(0, 5)
    assert SECRET not in asked(here, there)
    assert digest(SECRET) not in held(here.place.log)
    assert not there.embedding.vectors.cosines(P, there.embedder.generate(["x"])[0], [digest(SECRET)])


def test_what_was_made_while_something_was_redacted_is_in_no_segment(opened):
    here, there = opened("here"), opened("there")
    (kept,) = remember(here, SECRET)
    remember(here, *zebras(0, 3))
    generate = there.embedder.generate

    def late(texts):
        if SECRET in texts:
            here.keeper.redact(here.keeper.plan("p", item=kept), agent="architect", reason="it is a secret")
        return generate(texts)

    there.embedder.generate = late
    level(there)

    assert digest(SECRET) not in held(here.place.log)
    assert {digest(text) for text in zebras(0, 3)} <= held(here.place.log)


def test_what_is_made_between_the_rewriting_and_its_record_is_gone_with_that(opened):
    here, there = opened("here"), opened("there")
    (kept,) = remember(here, SECRET)
    append, log = MirroredJournal.append, here.place.log

    def late(stream, expected, commit):
        level(there)  # whose index shows the text still
        return append(here.journal, stream, expected, commit)

    there.catch_up("p")
    plan = here.keeper.plan("p", item=kept)
    here.journal.append = late
    here.keeper.redact(plan, agent="architect", reason="it is a secret")

    assert SECRET in asked(there)
    assert digest(SECRET) not in held(log)


@pytest.mark.parametrize("harm", ["another text", "cut short", "gone", "no list", "another length"])
def test_a_segment_whose_digest_is_not_its_name_is_not_used(opened, harm):
    here, there = opened("here"), opened("there")
    remember(here, *zebras(0, 4))
    level(here)
    log = here.place.log
    (folder, ((name, _),)) = next(iter(listed(log).items()))
    if harm == "gone":
        log.remove([folder + name])
    elif harm == "no list":
        log.put(f"{folder}list.json", b'{"form": 1, "segments": 7}', force=True)
    elif harm == "another length":
        lying = packed([(known, b"x") for known, _ in unpacked(log.get(folder + name).data)])
        other = VectorSegments(log)
        other.listed(P, folder.split("/")[-2])
        other.acquire_lease(P, folder.split("/")[-2], "liar")
        log.remove([folder + name])
        other.rows(P, folder.split("/")[-2], name)
        other.put(P, folder.split("/")[-2], "liar", unpacked(lying), goes_on=False)
    else:
        data = log.get(folder + name).data
        log.put(folder + name, data[:-1] if harm == "cut short" else data[:4] + bytes(16) + data[20:], force=True)

    assert level(there) == 0
    assert asked(there) == zebras(0, 4)
    assert level(opened("late")) == 0


def test_vectors_that_were_thrown_away_on_one_machine_come_again_from_the_others(opened, tmp_path):
    here, there = opened("here"), opened("there")
    remember(here, *zebras(0, 6))
    level(here)
    level(there)
    there.close()
    shutil.rmtree(tmp_path / "there" / "cache" / "vectors")

    again = opened("there")
    assert (level(again), asked(again)) == (0, [])


def test_one_project_alone_is_discarded(tmp_path):
    log = FileLog(str(tmp_path / "log"))
    for project in ("p", "pq"):
        each = VectorSegments(log)
        each.listed(Stream(project), "m")
        each.acquire_lease(Stream(project), "m", "me")
        each.put(Stream(project), "m", "me", rows("a"), goes_on=False)

    discard(log, "p")

    assert [len(of) for of in listed(log).values()] == [0, 1]
    assert held(log) == {digest("a")}


@pytest.fixture(params=["postgres", "bucket"])
def real(request, tmp_path, monkeypatch):
    """Open a root in a store as the machine of that name does; `address` is where it is."""
    place, memories = request.getfixturevalue(request.param), []

    def opened(machine):
        monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / machine))
        memories.append(jidomem.open(opened.address, project="p", embedder=ToyEmbedder()))
        return memories[-1]

    opened.address = place if request.param == "bucket" else place.address()
    yield opened
    for memory in memories:
        memory.close()


def test_two_machines_of_a_root_in_a_store_embed_each_text_once(real):
    here, there = real("here"), real("there")
    (kept, *_) = remember(here, SECRET, *zebras(0, 5))
    assert (level(here), level(there)) == (0, 0)
    remember(there, *zebras(5, 9))
    assert (level(there), level(here)) == (0, 0)
    assert (len(asked(here)), asked(there)) == (6, zebras(5, 9))

    there.keeper.redact(there.keeper.plan("p", item=kept), agent="architect", reason="it is a secret")
    assert held(here.place.log) == set()
    assert (level(there), level(here)) == (0, 0)
    assert digest(SECRET) not in held(here.place.log)


def test_a_machine_killed_while_embedding_loses_its_lease_and_no_listed_vector(real, tmp_path, monkeypatch):
    here = real("here")
    remember(here, *zebras(0, 9))
    killed = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("killed_embedder.py")), real.address],
        env={**os.environ, "JIDOMEM_HOME": str(tmp_path / "killed")},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert (killed.returncode, len(made := killed.stdout.splitlines())) == (-9, 4)

    monkeypatch.setattr(shared_vectors, "LEASE", 1.0)
    while level(here):
        sleep(0.05)  # it is waited for, a second after its last sign

    assert sorted([*made, *asked(here)]) == zebras(0, 9)
    assert held(here.place.log) == {digest(text) for text in zebras(0, 9)}
    assert len(here.place.log.names("vectors/p/memory/")) == 1 + sum(map(len, listed(here.place.log).values()))


def test_reindex_says_that_another_server_makes_the_vectors_now(opened, tmp_path):
    here, there = opened("here"), opened("there")
    remember(here, *zebras(0, 3))
    level(here)
    remember(here, *zebras(3, 5))
    log, model = here.place.log, next(iter(listed(here.place.log))).split("/")[3]
    others = VectorSegments(log)
    others.listed(P, model)
    assert others.acquire_lease(P, model, "another")

    assert level(there) == 2
    told = there.embedding.status("p")
    others.end(P, model, "another")

    assert vectors_text(told).endswith("2 texts pending: another server computes them now")
    assert level(there) == 0
    assert vectors_text(there.embedding.status("p")).endswith("up to date")
