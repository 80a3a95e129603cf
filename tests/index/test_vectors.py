"""Vectors of memories: computed in batches, shared by processes, and deleted after redactions."""

import math
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import ToyEmbedder, files, intent

import jidomem
from jidomem.base.words import digest
from jidomem.errors import ModelUnavailable
from jidomem.index import vectors as module
from jidomem.index.vector_search import CANDIDATES, VectorSet, encode
from jidomem.index.vectors import Vectors
from jidomem.journal.journal import Stream
from jidomem.records.entry import Entry, WriteRequest

P, HISTORY = Stream("p"), Stream("p", "history")
SECRET = "swordfish"


@pytest.fixture
def root(tmp_path):
    return tmp_path / "root"


@pytest.fixture
def memory(root):
    with jidomem.open(root, project="p", agent="me") as memory:
        yield memory


@pytest.fixture
def toy():
    return ToyEmbedder()


@pytest.fixture
def vectors(memory, toy):
    vectors = Vectors(memory.settings.root, memory.texts, toy)
    yield vectors
    vectors.close()


def remember(memory, *summaries):
    return [memory.writer.submit_intent("p", intent(summary=summary, evidence=[])).iri for summary in summaries]


def embed_all(vectors, stream=P):
    while vectors.embed_next(stream):
        pass


def nearest_texts(vectors, text, limit=3, stream=P):
    texts = {digest(known): known for known in vectors.embedder.asked}
    return [texts[known] for known, _ in vectors.nearest(stream, vectors.vector(text), limit)]


def cached(root):
    return sorted(path for path in (root / "cache" / "vectors").glob("*.sqlite"))


def test_the_nearest_vectors_are_returned_with_their_cosines(memory, vectors, toy):
    remember(memory, "the zebra runs", "the okapi sleeps", "a lynx hunts at night")
    embed_all(vectors)

    (first, cosine), *others = vectors.nearest(P, vectors.vector("zebra runs"), 3)
    a, b = toy.generate(["zebra runs", "the zebra runs"])
    exact = sum(x * y for x, y in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)
    assert first == digest("the zebra runs")
    assert cosine == pytest.approx(exact, abs=0.01)
    assert cosine > others[0][1] > others[1][1]
    digests = [digest("a lynx hunts at night"), digest("unknown")]
    assert [*vectors.cosines(P, vectors.vector("lynx"), digests)] == digests[:1]


def test_each_new_text_is_embedded_once(memory, vectors, toy):
    remember(memory, "the zebra runs", "the okapi sleeps")
    embed_all(vectors)
    remember(memory, "a lynx hunts")
    memory.conversation("s").record("yes")
    memory.conversation("s").record("yes")
    embed_all(vectors)
    embed_all(vectors, HISTORY)

    assert sorted(toy.asked) == ["a lynx hunts", "the okapi sleeps", "the zebra runs", "yes"]
    assert vectors.status(HISTORY)["vectors"] == 1


def test_a_long_text_has_a_vector_for_each_of_its_passages(memory, vectors, toy):
    memory.conversation("s").record("zebra. " * 100 + "\n\n" + "okapi. " * 100, asked_by="ana")
    embed_all(vectors, HISTORY)

    assert len(toy.asked) == vectors.status(HISTORY)["vectors"] == 4 - 1
    assert all(len(text) <= 500 for text in toy.asked)
    assert nearest_texts(vectors, "okapi", 1, HISTORY)[0].endswith("okapi.")


def test_vectors_of_another_model_are_kept_apart(memory, vectors):
    remember(memory, "the zebra runs")
    embed_all(vectors)
    other = Vectors(memory.settings.root, memory.texts, ToyEmbedder("toy-2", 40))

    assert (vectors.waiting(P), other.waiting(P)) == (0, 1)
    assert other.nearest(P, other.vector("zebra"), 3) == []
    embed_all(other)
    assert nearest_texts(other, "zebra") == nearest_texts(vectors, "zebra") == ["the zebra runs"]


def test_a_replaced_entry_keeps_its_vector_and_a_cleared_text_has_none(memory, root, vectors, toy):
    for text in ("the zebra runs", "the okapi runs"):
        memory.entries.write(WriteRequest(Entry(id="1", agent_id="a", content=text)))
        embed_all(vectors, HISTORY)
    assert len(nearest_texts(vectors, "runs", 5, HISTORY)) == 2

    memory.long_term().clear_graph("history")
    memory.entries.write(WriteRequest(Entry(id="1", agent_id="a", content="the lynx runs")))
    embed_all(vectors, HISTORY)
    assert nearest_texts(vectors, "the zebra runs", 1, HISTORY) == ["the lynx runs"]  # a cleared text takes no place
    assert vectors.status(HISTORY)["vectors"] == 1
    file_bytes = b"".join(path.read_bytes() for path in (root / "cache" / "vectors").glob("*.sqlite*"))
    assert digest("the lynx runs") in file_bytes
    assert digest("the zebra runs") not in file_bytes


def test_only_new_texts_are_embedded_after_a_switch_of_the_branch(memory, root, toy, tmp_path):
    remember(memory, "the zebra runs", "the okapi sleeps")
    vectors = Vectors(root, memory.texts, toy)
    embed_all(vectors)
    shutil.copytree(root / "projects", tmp_path / "before")
    remember(memory, "a lynx on a branch")
    embed_all(vectors)
    memory.close()
    shutil.rmtree(root / "projects")
    shutil.copytree(tmp_path / "before", root / "projects")
    before = len(toy.asked)

    with jidomem.open(root, project="p", agent="me") as after:
        vectors = Vectors(root, after.texts, toy)
        remember(after, "a tapir")
        embed_all(vectors)
        assert toy.asked[before:] == ["a tapir"]
        assert digest("a lynx on a branch") not in dict(vectors.nearest(P, vectors.vector("lynx branch"), 9))
        assert vectors.status(P)["vectors"] == 3


def test_a_redaction_deletes_the_vectors_in_every_process(memory, root, vectors, toy):
    remember(memory, "the zebra runs", f"the password is {SECRET}")
    embed_all(vectors)
    with jidomem.open(root, project="p") as other:
        of_other = Vectors(root, other.texts, toy)
        assert len(of_other.nearest(P, of_other.vector("x"), 9)) == 2
        before = [path.stat().st_ino for path in cached(root)]
        plan = memory.maintenance.plan("p", None, texts=[SECRET])
        memory.maintenance.redact(plan, agent="me", reason="a password")

        assert cached(root) == []
        assert of_other.nearest(P, of_other.vector("x"), 9) == []
        embed_all(of_other)
        assert len(nearest_texts(of_other, "zebra", 9)) == 1
        assert before != [path.stat().st_ino for path in cached(root)]
        of_other.close()
    assert nearest_texts(vectors, "zebra", 9) == ["the zebra runs"]


def test_a_merged_redaction_deletes_the_vectors(memory, root, tmp_path, toy):
    remember(memory, "the zebra runs", f"the password is {SECRET}")
    vectors = Vectors(root, memory.texts, toy)
    embed_all(vectors)
    vectors.close()
    memory.close()
    shutil.copytree(root / "projects", tmp_path / "elsewhere" / "projects")
    with jidomem.open(tmp_path / "elsewhere", project="p") as elsewhere:
        plan = elsewhere.maintenance.plan("p", None, texts=[SECRET])
        elsewhere.maintenance.redact(plan, agent="me", reason="a password")
    shutil.rmtree(root / "projects")
    shutil.copytree(tmp_path / "elsewhere" / "projects", root / "projects")

    with jidomem.open(root, project="p") as after:
        assert after.recall("zebra").entries  # a recall by words deletes them, too
    assert cached(root) == []


def scribbled_over(path):
    path.write_bytes(os.urandom(30_000))


def of_another_form(path):
    with sqlite3.connect(path) as store:
        store.execute("PRAGMA user_version = 999")
    store.close()


def from_elsewhere(path):
    with sqlite3.connect(path) as store:
        store.execute("PRAGMA application_id = 12345")
        store.execute("UPDATE vector SET value = zeroblob(96)")
    store.close()


def with_vectors_of_another_length(path):
    with sqlite3.connect(path) as store:
        store.execute("UPDATE vector SET value = zeroblob(5)")
    store.close()


def with_a_name_that_is_no_text(path):
    harmed = (
        path.read_bytes()
        .replace(b"tablevectorvector", b"table\xc1ectorvector")
        .replace(b"CREATE TABLE vec", b"CRXATE TABLE vec")
    )
    path.write_bytes(harmed)


def a_folder(path):
    path.unlink()
    path.mkdir()


DAMAGES = [scribbled_over, of_another_form, from_elsewhere, with_vectors_of_another_length, with_a_name_that_is_no_text]
DAMAGES += [a_folder]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_vector_file_is_rebuilt(memory, root, vectors, toy, damage):
    remember(memory, "the zebra runs")
    embed_all(vectors)
    vectors.close()
    (path,) = cached(root)
    damage(path)

    reopened = Vectors(root, memory.texts, toy)
    assert reopened.nearest(P, reopened.vector("zebra"), 3) == []
    embed_all(reopened)
    assert nearest_texts(reopened, "zebra") == ["the zebra runs"]
    reopened.close()


def test_a_vector_file_of_the_version_before_near_pairs_keeps_its_vectors(memory, root, vectors, toy):
    remember(memory, "the zebra runs", "a zebra runs")
    embed_all(vectors)
    vectors.close()
    (path,) = cached(root)
    with sqlite3.connect(path) as store:
        store.executescript("DROP TABLE near; DELETE FROM metadata WHERE name = 'identity'; PRAGMA user_version = 2")
    store.close()
    toy.asked.clear()

    reopened = Vectors(root, memory.texts, toy)
    embed_all(reopened)
    while reopened.compare_next(P):
        pass
    assert toy.asked == []
    assert [round(cosine, 1) for _, _, cosine in reopened.near_pairs(P, 9)] == [0.7]
    reopened.close()


def test_the_vectors_are_in_memory_where_no_file_can_be_written(memory, root, toy):
    remember(memory, "the zebra runs")
    (root / "cache").write_text("no folder")
    vectors = Vectors(root, memory.texts, toy)
    embed_all(vectors)

    assert nearest_texts(vectors, "zebra") == ["the zebra runs"]
    assert (root / "cache").read_text() == "no folder"


@pytest.mark.parametrize(
    "result", [[], [[1.0] * 95], [[1.0] * 96, [1.0] * 96], [[math.nan] * 96], [["x"] * 96], [[[1.0]] * 96]]
)
def test_an_invalid_vector_is_refused_and_requested_again(memory, vectors, toy, monkeypatch, result):
    remember(memory, "the zebra runs")
    monkeypatch.setattr(toy, "generate", lambda texts: result)
    with pytest.raises(ModelUnavailable, match="toy-1"):
        vectors.embed_next(P)
    assert vectors.status(P)["vectors"] == 0
    monkeypatch.undo()

    embed_all(vectors)
    assert vectors.status(P)["vectors"] == 1


def test_a_text_redacted_during_its_embedding_gets_no_vector(memory, root, vectors, toy, monkeypatch):
    remember(memory, "the zebra runs", f"the password is {SECRET}")
    generate = toy.generate

    def meanwhile(texts):
        monkeypatch.undo()
        plan = memory.maintenance.plan("p", None, texts=[SECRET])
        memory.maintenance.redact(plan, agent="me", reason="a password")
        return generate(texts)

    monkeypatch.setattr(toy, "generate", meanwhile)
    assert vectors.embed_next(P)
    assert vectors.status(P)["vectors"] == 0
    embed_all(vectors)
    assert nearest_texts(vectors, "password", 9) == ["the zebra runs"]


def test_concurrent_processes_embed_each_text_and_lose_no_vector(memory, root, toy, monkeypatch):
    program = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "import jidomem\nfrom conftest import ToyEmbedder\nfrom jidomem.index import search_index as batches, vectors\n"
        "from jidomem.journal.journal import Stream\nbatches.MAX_BATCH = 3\n"
        "with jidomem.open(sys.argv[1], project='p') as memory:\n"
        "    mine = vectors.Vectors(memory.settings.root, memory.texts, ToyEmbedder())\n"
        "    while mine.waiting(Stream('p')): mine.embed_next(Stream('p'))\n"
        "    assert mine.status(Stream('p'))['vectors'] == 20, mine.status(Stream('p'))\n"
    )
    remember(memory, *(f"zebra {number}" for number in range(20)))
    tests = str(Path(__file__).parent.parent)
    running = [subprocess.Popen([sys.executable, "-c", program, root, tests]) for _ in range(2)]
    assert [process.wait() for process in running] == [0, 0]

    vectors = Vectors(root, memory.texts, toy)
    assert len(vectors.nearest(P, vectors.vector("zebra"), 99)) == 20
    monkeypatch.setattr(module, "VECTORS_READ", 3)
    remember(memory, *(f"okapi {number}" for number in range(5)))
    embed_all(vectors)
    assert len(vectors.nearest(P, vectors.vector("zebra"), 99)) == 25


def test_a_text_being_embedded_is_not_embedded_by_another_process(memory, root, vectors, toy, monkeypatch):
    remember(memory, "the zebra runs")
    generate, results = toy.generate, []

    def meanwhile(texts):
        other = Vectors(root, memory.texts, ToyEmbedder())
        results.append((other.embed_next(P), other.embedder.asked))
        other.close()
        return generate(texts)

    monkeypatch.setattr(toy, "generate", meanwhile)
    embed_all(vectors)
    assert results == [(False, [])]
    assert toy.asked == ["the zebra runs"]


def test_the_candidates_by_signs_include_the_nearest_vectors():
    random = np.random.default_rng(7)
    middles = random.standard_normal((60, 96))
    noise = 0.6 * random.standard_normal((5 * CANDIDATES, 96))
    every = (middles[random.integers(0, 60, len(noise))] + noise).astype(np.float32)
    every /= np.linalg.norm(every, axis=1, keepdims=True)
    likeness = VectorSet(96)
    for start in range(0, len(every), 700):
        part = every[start : start + 700]
        likeness.add(range(start + 1, start + 1 + len(part)), [encode(vector) for vector in part])

    hits = 0
    for query_vector in every[::500]:
        exact = {int(row) + 1 for row in np.argsort(-(every @ query_vector))[:10]}
        nearest = likeness.nearest(query_vector, 10)
        hits += len(exact & {number for number, _ in nearest})
        assert nearest == sorted(nearest, key=lambda one: -one[1])
        assert likeness.cosines(query_vector, [nearest[0][0], 10**9]) == {nearest[0][0]: nearest[0][1]}
    assert hits >= 0.95 * 100


def test_an_embedding_killed_halfway_is_continued_by_the_next_process(memory, root, vectors, toy):
    remember(memory, *(f"zebra {number}" for number in range(5)))
    program = (
        "import os, signal, sys; sys.path.insert(0, sys.argv[2])\n"
        "import jidomem\nfrom conftest import ToyEmbedder\nfrom jidomem.index import search_index as batches, vectors\n"
        "from jidomem.index.search_index import VectorFile\nfrom jidomem.journal.journal import Stream\n"
        "batches.MAX_BATCH, put, done = 2, VectorFile.put, []\n"
        "def killed(self, values):\n"
        "    put(self, values)\n    done.append(1)\n"
        f"    if len(done) == 2: os.kill(os.getpid(), {int(signal.SIGKILL)})\n"
        "VectorFile.put = killed\n"
        "with jidomem.open(sys.argv[1], project='p') as memory:\n"
        "    mine = vectors.Vectors(memory.settings.root, memory.texts, ToyEmbedder())\n"
        "    while mine.embed_next(Stream('p')): pass\n"
    )
    tests = str(Path(__file__).parent.parent)
    killed = subprocess.run([sys.executable, "-c", program, root, tests], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (vectors.status(P)["vectors"], vectors.waiting(P)) == (2, 3)

    embed_all(vectors)
    assert sorted(toy.asked) == ["zebra 2", "zebra 3", "zebra 4"]
    assert vectors.status(P)["vectors"] == 5


def test_the_status_of_a_root_makes_no_vector_file(memory, vectors):
    remember(memory, "the zebra runs")
    memory.recall("zebra")
    before = files(memory.settings.root)

    status = vectors.status(P)

    assert (status["vectors"], status["bytes"], status["passed_by"], status["pending"]) == (0, 0, 0, 1)
    assert files(memory.settings.root) == before


def test_an_embedder_that_failed_is_not_called_again_at_once(root, monkeypatch):
    class Broken(ToyEmbedder):
        calls = 0

        def generate(self, texts):
            self.calls += 1
            raise OSError("no connection")

    now = [100.0]
    monkeypatch.setattr(module, "monotonic_time", lambda: now[0])
    with jidomem.open(root, project="p", agent="me", embedder=(broken := Broken())) as memory:
        assert [memory.embedding.vector_of("zebra") for _ in range(3)] == [None] * 3
        assert broken.calls == 1

        now[0] += 3600.0
        assert memory.embedding.vector_of("zebra") is None
        assert broken.calls == 2
