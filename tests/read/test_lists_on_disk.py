"""Lists kept on disk answer in another process as the engine does, whatever became of the files or the journal."""

from random import Random

import pytest
from conftest import fixed_sources, intent
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jidomem
from jidomem.index import ordered_lists

LISTS = ["facts", "open-tasks", "proposals", "recent-lessons", "timeline", "blocked-tasks", "items-without-project"]


@pytest.fixture(autouse=True)
def _every_list_is_long(monkeypatch):
    monkeypatch.setattr(ordered_lists, "FEW", 0)


def shelf(root):
    return sorted((root / "index" / "lists").glob("*"))


def paged(reader, name):
    rows, cursor = [], None
    while True:
        page = reader.ask_page(name, project="p", limit=3, cursor=cursor)
        rows += page.rows
        cursor = page.cursor
        if cursor is None:
            return rows


def remember(memory, random, sort=None):
    sort = sort or random.choice(["fact", "task", "lesson_learned"])
    more = {"status": random.choice(["planned", "completed"])} if sort == "task" else {}
    known = memory.reader.ask(OF[sort], project="p") if memory.projects() else []
    old = [row[sort.split("_")[0]] for row in known]
    if old and random.random() < 0.5:
        more["supersedes"] = [random.choice(old)]
    said = intent(type=sort, summary=f"{sort} {random.random()}", **more)
    return memory.writer.submit_intent("p", said)


OF = {"fact": "facts", "task": "open-tasks", "lesson_learned": "lessons"}


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_kept_lists_show_what_the_engine_finds(seed, tmp_path_factory):
    root, random, sources = tmp_path_factory.mktemp("root"), Random(seed), fixed_sources()
    for _ in range(5):
        with jidomem.open(root, sources=sources) as memory:
            for _ in range(random.randrange(1, 5)):
                remember(memory, random)
            if random.random() < 0.5:
                memory.reader.keep_lists(["p"])
            for _ in range(random.randrange(3)):
                remember(memory, random)
        for file in shelf(root):
            if random.random() < 0.2:
                data = bytearray(file.read_bytes())
                data[random.randrange(len(data))] ^= 1
                file.write_bytes(data)
        with jidomem.open(root, sources=sources) as memory:
            for name in LISTS:
                assert paged(memory.reader, name) == memory.reader.ask(name, project="p")
                remember(memory, random)
                assert paged(memory.reader, name) == memory.reader.ask(name, project="p")


def test_a_kept_list_is_read_and_not_made_anew(tmp_path, monkeypatch):
    random = Random(1)
    with jidomem.open(tmp_path) as memory:
        remember(memory, random, "fact")
        memory.reader.keep_lists(["p"])
        remember(memory, random, "fact")
    kept = {file: file.stat().st_mtime_ns for file in shelf(tmp_path)}
    courses = [query.course for query in memory.playbook if query.course and not query.takes("item")]
    assert len(kept) == len({(each.pattern, each.unless, each.time, each.newest_first) for each in courses})

    with jidomem.open(tmp_path) as memory:
        assert paged(memory.reader, "facts") == memory.reader.ask("facts", project="p")
    assert {file: file.stat().st_mtime_ns for file in shelf(tmp_path)} == kept

    for file in kept:
        file.write_bytes(file.read_bytes()[:-1])
    torn = {file: file.stat().st_mtime_ns for file in kept}
    with jidomem.open(tmp_path) as memory:
        assert paged(memory.reader, "facts") == memory.reader.ask("facts", project="p")
    assert sum(file.stat().st_mtime_ns != then for file, then in torn.items()) == 2  # facts, and what disagrees


def test_a_list_kept_on_another_branch_or_under_another_ontology_is_made_anew(tmp_path):
    random = Random(1)
    with jidomem.open(tmp_path) as memory:
        remember(memory, random, "fact")
        before = sorted((tmp_path / "projects" / "p" / "memory").rglob("*.ttl"))
        remember(memory, random, "fact")
        memory.reader.keep_lists(["p"])
    for file in sorted((tmp_path / "projects" / "p" / "memory").rglob("*.ttl")):
        if file not in before:
            file.unlink()

    with jidomem.open(tmp_path) as memory:
        assert len(paged(memory.reader, "facts")) == 1
        memory.reader.keep_lists(["p"])
    (tmp_path / "ontology").mkdir()
    (tmp_path / "ontology" / "own.ttl").write_text(
        "<https://example.org/own#Sort> a <http://www.w3.org/2002/07/owl#Class> ;"
        " <http://www.w3.org/2000/01/rdf-schema#label> 'Sort' ;"
        " <http://www.w3.org/2000/01/rdf-schema#subClassOf> <https://jido.ai/ontology#Fact> .\n"
    )
    kept = {file: file.stat().st_mtime_ns for file in shelf(tmp_path)}
    with jidomem.open(tmp_path) as memory:
        assert len(paged(memory.reader, "facts")) == 1
    assert sum(file.stat().st_mtime_ns != then for file, then in kept.items()) == 2  # facts, and what disagrees
