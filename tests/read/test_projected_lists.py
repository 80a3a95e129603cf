"""Lists, disagreements and short ids read from the projection, held against the engine and against a rebuilt file."""

import os
import shutil
import signal
import subprocess
import sys
from random import Random

import pytest
from conftest import fixed_sources, intent
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jidomem
from jidomem.errors import JidomemError
from jidomem.journal.journal import Stream

LISTS = ["facts", "open-tasks", "proposals", "recent-lessons", "timeline", "blocked-tasks", "items-without-project",
         "decisions", "unexplained-root-causes", "dangling-supersessions", "stale"]  # fmt: skip
OF = {"fact": "facts", "task": "open-tasks", "lesson_learned": "lessons", "decision": "decisions"}


def cache(root):
    return root / "cache" / "text" / "p.sqlite"


def journal(root):
    return root / "projects" / "p" / "memory"


def paged(reader, name, **moment):
    rows, cursor = [], None
    while True:
        page = reader.ask_page(name, project="p", limit=3, cursor=cursor, **moment)
        rows += page.rows
        cursor = page.cursor
        if cursor is None:
            return rows


def remember(memory, random, sort=None):
    sort = sort or random.choice(sorted(OF))
    more = {"status": random.choice(["planned", "completed"])} if sort == "task" else {}
    more |= {"topic": f"topic {random.randrange(2)}", "rationale": "so"} if sort == "decision" else {}
    known = memory.reader.ask(OF[sort], project="p") if memory.projects() else []
    old = [row[sort.split("_")[0]] for row in known]
    if old and random.random() < 0.5:
        more["supersedes"] = [random.choice(old)]
    said = intent(type=sort, summary=f"{sort} {random.random()}", **more)
    return memory.writer.submit_intent("p", said, propose=random.random() < 0.2)


def live(memory, random):
    """Do something that the memory of a team meets."""
    one = remember(memory, random).iri
    way = random.randrange(8)
    if way == 0:
        memory.writer.correct("p", one, reason="it is not so", invalidate=True)
    elif way == 1 and (waiting := memory.reader.ask("proposals", project="p")):
        action = random.choice(["accept", "reject"])
        memory.writer.settle("p", random.choice(waiting)["item"], action, reason="it is so")
    elif way == 2:
        summary = memory.reader.get_memory("p", one)["properties"]["summary"][0]
        memory.keeper.redact(memory.keeper.plan("p", None, texts=[summary]), agent="me", reason="a secret")


def pairs(memory, **moment):
    return memory.reader.ask("conflicts", project="p", **moment)


def everything(memory):
    return memory.reader.ask("timeline", project="p", include_inactive=True)


def answers(memory, moments):
    """What the projection is asked for, at each of some moments."""
    lists = [paged(memory.reader, name, **moment) for moment in moments for name in LISTS]
    items = [row["item"] for row in everything(memory)]
    ids = [memory.reader.resolve("p", item[-9:]) for item in items]
    rivals = [memory.reader.ask("disagreements", project="p", item=item) for item in items]
    return lists, [pairs(memory, **moment) for moment in moments], ids, rivals


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_lists_of_merged_streams_are_what_the_engine_finds_now_and_at_any_moment(seed, tmp_path_factory):
    random, sources, folder = Random(seed), fixed_sources(), tmp_path_factory.mktemp("roots")
    (folder / "one").mkdir()
    (folder / "one" / "config.toml").write_text('[conflicts]\ndecision = "warn"\n')
    with jidomem.open(folder / "one", agent="me", sources=sources) as memory:
        remember(memory, random)
    shutil.copytree(folder / "one", folder / "two")
    moments = [{}]
    for _ in range(3):
        for name in ("one", "two"):
            with jidomem.open(folder / name, agent="me", sources=sources) as memory:
                for _ in range(random.randrange(1, 5)):
                    try:
                        live(memory, random)
                    except JidomemError:
                        remember(memory, random, "fact")
                moments += [{"as_of": row["recorded"]} for row in everything(memory)[:1]]
        shutil.copytree(journal(folder / "two"), journal(folder / "one"), dirs_exist_ok=True)
        with jidomem.open(folder / "one", agent="me", sources=sources) as memory:
            for moment in moments:
                for name in LISTS:
                    assert paged(memory.reader, name, **moment) == memory.reader.ask(name, project="p", **moment)
            found = answers(memory, moments)
        shutil.rmtree(folder / "one" / "cache")  # so that the next file is made from the whole journal
        with jidomem.open(folder / "one", agent="me", sources=sources) as memory:
            assert answers(memory, moments) == found


def identity(memory):
    return memory.texts.read(Stream("p"), lambda file: file.metadata("identity"))


def test_a_file_is_read_by_the_next_process_and_not_made_again(tmp_path):
    random = Random(1)
    with jidomem.open(tmp_path) as memory:
        remember(memory, random, "fact")
        first = identity(memory)
        remember(memory, random, "fact")

    with jidomem.open(tmp_path) as memory:
        assert paged(memory.reader, "facts") == memory.reader.ask("facts", project="p")
        assert identity(memory) == first

    cache(tmp_path).write_bytes(cache(tmp_path).read_bytes()[:9000])
    with jidomem.open(tmp_path) as memory:
        assert paged(memory.reader, "facts") == memory.reader.ask("facts", project="p")
        assert identity(memory) != first


def test_lists_of_another_branch_or_under_another_ontology_are_made_again(tmp_path):
    random = Random(1)
    with jidomem.open(tmp_path) as memory:
        remember(memory, random, "fact")
        before = sorted(journal(tmp_path).rglob("*.ttl"))
        remember(memory, random, "fact")
        assert len(paged(memory.reader, "facts")) == 2
    for file in sorted(journal(tmp_path).rglob("*.ttl")):
        if file not in before:
            file.unlink()

    with jidomem.open(tmp_path) as memory:
        assert len(paged(memory.reader, "facts")) == 1
    (tmp_path / "ontology").mkdir()
    own = tmp_path / "ontology" / "own.ttl"
    declared = (
        "<https://example.org/own#Sort> a <http://www.w3.org/2002/07/owl#Class> ;"
        " <http://www.w3.org/2000/01/rdf-schema#label> 'Sort' ;"
        " <http://www.w3.org/2000/01/rdf-schema#subClassOf> <https://jido.ai/ontology#{}> .\n"
    )
    for family, count in (("Convention", 0), ("AgentRule", 1)):
        own.write_text(declared.format(family))
        with jidomem.open(tmp_path) as memory:
            if family == "Convention":
                sort = [["rdf:type", "https://example.org/own#Sort"]]
                rule = intent(type="convention", summary="of a sort", enforcement_level="strict")
                memory.writer.submit_intent("p", rule | {"extra_triples": sort})
            assert len(memory.reader.ask("agent-rules", project="p")) == count
            assert paged(memory.reader, "agent-rules") == memory.reader.ask("agent-rules", project="p")


@pytest.mark.parametrize("file", ["level", "behind", "missing"])
def test_lists_of_a_root_that_may_not_be_written_are_what_the_engine_finds(small_disk, tmp_path, file):
    root, random = small_disk / "root", Random(3)
    with jidomem.open(root, project="p") as memory:
        for number in range(8):
            remember(memory, random, random.choice(["fact", "task", "lesson_learned"]))
            if number == 4:
                shutil.copytree(root / "cache", tmp_path / "cache then")
        expected = answers(memory, [{}])
    if file != "level":
        shutil.rmtree(root / "cache")
    if file == "behind":
        shutil.copytree(tmp_path / "cache then", root / "cache")
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    assert os.statvfs(small_disk).f_flag & os.ST_RDONLY

    with jidomem.open(root, project="p") as memory:
        for name in LISTS:
            assert paged(memory.reader, name) == memory.reader.ask(name, project="p")
        assert answers(memory, [{}]) == expected


PROGRAM = """
import os, signal, sys, jidomem
from jidomem.index import follower
from jidomem.index.projection import Projection
follower.STEP = 1
update, done = Projection.update, []
def killed(self, *given, **named):
    update(self, *given, **named)
    done.append(1)
    if len(done) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
Projection.update = killed
with jidomem.open(sys.argv[1], project="p") as memory:
    memory.ask("timeline", limit=3)
"""


@pytest.mark.parametrize("is_there", [False, True], ids=["being made", "being brought level"])
def test_whatever_step_a_process_was_killed_in_the_next_one_lists_what_the_engine_finds(tmp_path, is_there):
    random = Random(2)
    with jidomem.open(tmp_path, project="p") as memory:
        for number in range(12):
            remember(memory, random, random.choice(["fact", "task", "lesson_learned"]))
            if is_there and number == 5:
                identity(memory)
                shutil.copytree(tmp_path / "cache", tmp_path / "cache then")
        expected = answers(memory, [{}])
    shutil.rmtree(tmp_path / "cache")
    if is_there:
        shutil.copytree(tmp_path / "cache then", tmp_path / "cache")

    for steps in (1, 2, 1, 3):
        done = subprocess.run([sys.executable, "-c", PROGRAM, tmp_path, str(steps)], check=False)
        assert done.returncode == -signal.SIGKILL
    with jidomem.open(tmp_path, project="p") as memory:
        assert answers(memory, [{}]) == expected


def test_processes_that_write_and_list_at_once_each_see_every_commit_acknowledged_before(tmp_path):
    program = (
        "import sys, jidomem\n"
        "with jidomem.open(sys.argv[1], project='p', wait=60) as memory:\n"
        "    for n in range(6):\n"
        "        kept = memory.writer.remember('p', f'okapi {sys.argv[2]} number {n}').iri\n"
        "        assert kept in {row['fact'] for row in memory.ask('facts', limit=1000)}, (n, kept)\n"
        "        assert memory.reader.resolve('p', kept[-9:]) == kept\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, tmp_path, f"w{n}"]) for n in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    with jidomem.open(tmp_path, project="p") as memory:
        assert len(paged(memory.reader, "facts")) == 18
