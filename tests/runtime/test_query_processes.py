"""Overlay queries run in a worker process, with the same answers as in the process itself."""

import json
import os
import re
import shutil
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner
from conftest import decision, fixed_sources, intent

import jidomem
from jidomem.base import files
from jidomem.errors import JidomemError
from jidomem.rdf.statements import to_value
from jidomem.rdf.vocab import graphs_of
from jidomem.read.playbook import GATES
from jidomem.runtime.user_config import RootLimits
from jidomem.serve.app import create_app
from jidomem_cli.main import cli

ROOT = Path(__file__).parents[2]
PAIRS = re.compile(r"^#\+ over: (?:\?\w+ ?)+$", re.MULTILINE)  # the index is used for shipped queries only
SHIPPED = [
    path for path in files.query_files() if path.parent.name != GATES and not PAIRS.search(path.read_text("utf-8"))
]
HEADER = "#+ summary: Which?\n#+ params: project {}\n#+ columns: {}\n#+ order: {}\n"
CROSS = " ".join(f"VALUES ?v{n} {{ {' '.join(map(str, range(400)))} }}" for n in range(8))
STEPS = " ".join(f"BIND(CONCAT({', '.join([f'?v{n}'] * 16)}) AS ?v{n + 1})" for n in range(9))
EXCESSIVE_QUERIES = {
    "endless": (f"SELECT ?project (COUNT(*) AS ?n) WHERE {{ {CROSS} }} GROUP BY ?project", {"query_timeout"}),
    "sorted": (
        f"SELECT ?project (?v0 AS ?n) WHERE {{ {CROSS} }} ORDER BY ?v1 ?v2",
        {"query_timeout", "result_too_large"},
    ),
    "many": (
        f"SELECT ?project (?v0 AS ?n) WHERE {{ {CROSS.partition(' VALUES ?v3')[0]} }} LIMIT 100001",
        {"result_too_large"},
    ),
    "growing": (
        f"SELECT ?project (STRLEN(?v9) AS ?n) WHERE {{ BIND('{'a' * 32}' AS ?v0) {STEPS} }}",
        {"result_too_large"},
    ),
}
#: Enough that the index of a project with them is on disk.
LARGE = [intent(summary=f"fact {n}", detailed_explanation=f"{n} " + "x" * 200_000) for n in range(12)]
PARAMETER_VALUES = {
    "iri": ["https://jido.ai/x?a=%22", "urn:x:ü"],
    "string": ['a "quoted"\\ text\nof two lines\t\u0000\U0001f600', "", "true", "<https://jido.ai/x>"],
    "integer": [0, -7, 10**29],
    "boolean": [True, False],
    "dateTime": ["2026-11-21T08:00:03.123456Z", "2026-11-21"],
}


def write_queries(root, **texts):
    """Write overlay queries of a root, each by its name."""
    for name, text in texts.items():
        path = root / "queries" / "mine" / f"{name.replace('_', '-')}.rq"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def worker_ids(root):
    """Return the ids of the running worker processes of this process for *root*."""
    ids = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (path / "stat").read_text().rsplit(")", 1)[1].split()[:2]
            words = (path / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if int(parent) == os.getpid() and state != "Z" and str(root).encode() in words:
            ids.append(int(path.name))
    return ids


def record_examples(memory):
    receipts = [
        memory.writer.submit_intent("p", decision(topic="store", about=["src/a.py"])),
        memory.writer.submit_intent("p", intent(type="task", summary="Ship it", assigned_to="ana", status="blocked")),
        memory.writer.submit_intent(
            "p", intent(type="error", summary="It is lost", severity="high", about=["src/a.py"])
        ),
        memory.writer.submit_intent("p", intent(type="lesson_learned", summary="Measure first")),
        memory.writer.submit_intent("p", intent(type="risk", summary="It may be lost")),
        *(memory.writer.submit_intent("p", intent(summary=f"fact {n}", about=["src/a.py"])) for n in range(5)),
    ]
    newer = decision(summary="Use Oxigraph on disk", topic="store", supersedes=[receipts[0].iri], reason="it grew")
    memory.writer.submit_intent("p", newer)
    return receipts[0].iri


@pytest.fixture(scope="module")
def memory_with_overlay(tmp_path_factory):
    """Yield a memory with a copy of each shipped query in its overlay, and a memory item for their parameters."""
    root = tmp_path_factory.mktemp("apart") / "root"
    write_queries(root, **{f"own-{path.stem}": path.read_text("utf-8") for path in SHIPPED})
    for kind in PARAMETER_VALUES:
        text = HEADER.format(f"value:{kind}", "project value", "value")
        write_queries(
            root, **{f"echo-{kind}": f"{text}SELECT ?project ?value WHERE {{ VALUES ?one {{ 1 }} }} ORDER BY ?value"}
        )
    with jidomem.open(root, sources=fixed_sources(), project="p") as memory:
        yield memory, record_examples(memory)


def parameter_values(query, item):
    """Return a value for each required parameter."""
    values = {"agent": "https://jido.ai/agents/ana", "since": "2026-11-21T08:00:02Z", "about": "src/a.py"}
    by_type = {"item": item, "iri": item, "string": "src/a.py", "integer": 1, "boolean": True, "kind": "fact"}
    return {
        param.name: values.get(param.name, by_type.get(param.type))
        for param in query.params
        if param.default is None and param.name != "project"
    }


def test_an_overlay_query_with_a_column_name_of_its_own_shows_dates_and_status(tmp_path):
    text = (ROOT / "queries" / "debugger" / "lessons.rq").read_text("utf-8")
    write_queries(tmp_path, insights=re.sub(r"\blesson\b", "insight", text))
    with jidomem.open(tmp_path, sources=fixed_sources(), project="p") as memory:
        lesson = intent(type="lesson_learned", summary="Measure first", expires_on="2030-01-01")
        item = memory.writer.submit_intent("p", lesson).iri
        memory.writer.invalidate("p", item, reason="it is not so")

        (row,) = memory.reader.ask("insights", include_inactive=True)

    assert (row["insight"], row["due"], row["memory_status"]) == (item, datetime(2030, 1, 1, tzinfo=UTC), "invalidated")


@pytest.mark.parametrize("name", [path.stem for path in SHIPPED])
def test_an_overlay_copy_of_a_shipped_query_gives_the_same_rows(memory_with_overlay, name):
    memory, item = memory_with_overlay
    query = memory.playbook.get(name)
    values = parameter_values(query, item)
    moments = [{}, {"as_of": "2026-11-21T08:00:20Z"}, {"include_inactive": True}, {"valid_at": "2026-11-21"}]
    known = {"as_of": "asOf", "include_inactive": "includeInactive", "valid_at": "validAt"}

    for options in [each for each in moments if all(query.takes(known[key]) for key in each)]:
        rows, overlay_rows = (
            memory.reader.ask(each, project="p", **options, **values) for each in (name, f"own-{name}")
        )
        assert overlay_rows == rows
        assert all_pages(memory, f"own-{name}", {**options, **values}) == rows
    assert memory.playbook.get(f"own-{name}").is_isolated
    assert not query.is_isolated


def all_pages(memory, name, options):
    """Return the rows of a query, read by pages of three."""
    page = memory.reader.ask_page(name, project="p", limit=3, **options)
    rows = list(page.rows)
    while page.cursor is not None:
        page = memory.reader.ask_page(name, project="p", limit=3, cursor=page.cursor, **options)
        rows += page.rows
    return rows


@pytest.mark.parametrize(
    ("kind", "value"), [(kind, value) for kind, values in PARAMETER_VALUES.items() for value in values]
)
def test_a_parameter_is_passed_to_the_worker_as_the_same_term(memory_with_overlay, kind, value):
    memory, _ = memory_with_overlay
    query = memory.playbook.get(f"echo-{kind}")
    bound = query.bind({"project": "p", "value": value})

    (row,) = memory.pool.solutions("p", query.text, bound).rows

    assert memory.index.query(query.text, graphs=graphs_of("p"), bindings=bound).rows == (row,)
    assert to_value(row[1]) == to_value(bound["value"])


def test_every_interface_runs_an_overlay_query_in_a_worker_and_includes_the_last_write(
    memory_with_overlay, monkeypatch
):
    memory, _ = memory_with_overlay
    iri = memory.writer.submit_intent("p", intent(summary="just now")).iri
    place = ["--root", str(memory.settings.root), "--project", "p"]
    texts, query = [], memory.index.query
    monkeypatch.setattr(memory.index, "query", lambda text, **more: texts.append(text) or query(text, **more))

    rows = memory.reader.ask("own-facts", project="p")
    http = create_app(memory).test_client().get("/projects/p/queries/own-facts").json["rows"]
    printed = CliRunner().invoke(cli, ["ask", "own-facts", *place, "--format", "jsonl"])

    assert iri in [row["fact"] for row in rows]
    assert [row["fact"] for row in http] == [row["fact"] for row in rows]
    assert [json.loads(line)["fact"] for line in printed.stdout.splitlines()] == [row["fact"] for row in rows]
    assert "?fact" in memory.playbook.get("own-facts").text
    assert [text for text in texts if "?fact" in text] == []  # this process only computes the marks of conflicts


def test_query_items_that_are_no_memories_have_no_marks(tmp_path):
    values = "VALUES (?item ?kind ?status) { ('a b>' jido:Task 'active') (7 jido:Task 'active') }"
    head = HEADER.format(" includeInactive:boolean=false", "item kind status", "item")
    prefix = "PREFIX jido: <https://jido.ai/ontology#>\n"
    columns = "?project ?includeInactive ?item ?kind ?status"
    write_queries(tmp_path / "root", short=f"{head}{prefix}SELECT {columns} WHERE {{ {values} }} ORDER BY ?item")
    with jidomem.open(tmp_path / "root", project="p") as memory:
        memory.writer.submit_intent("p", intent(valid_until="2999-01-01"))
        for options in ({}, {"include_inactive": True}):
            rows = memory.reader.ask("short", project="p", **options)
            assert [(row["item"], row["status"]) for row in rows] == [(7, "active"), ("a b>", "active")]


@pytest.mark.parametrize("name", EXCESSIVE_QUERIES)
def test_an_endless_query_is_stopped_while_others_are_answered(tmp_path, name):
    # Given a root with a query that exceeds a limit
    text, codes = EXCESSIVE_QUERIES[name]
    write_queries(tmp_path / "root", **{name: HEADER.format("", "n", "n") + text})
    with jidomem.open(tmp_path / "root", project="p") as memory, ThreadPoolExecutor(1) as pool:
        memory.writer.submit_intent("p", intent())
        memory.pool.limits = RootLimits(query_seconds=0.3 if "query_timeout" in codes else 600.0)

        # When the query is run
        stopped = pool.submit(memory.reader.ask, name, project="p")
        count = 0
        while not wait([stopped], 0.1).done:
            count += len(memory.reader.ask("facts", project="p"))

        # Then it is refused, other queries are answered meanwhile, and no worker is left
        with pytest.raises(JidomemError, match=r"stopped|more than") as refusal:
            stopped.result()
        assert refusal.value.code in codes
        assert count > 0
        assert name == "many" or worker_ids(tmp_path / "root") == []
    assert worker_ids(tmp_path / "root") == []


def test_the_header_of_an_overlay_query_is_not_executed(tmp_path):
    # Given a query whose header, if it were executed, would send a request or never end
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        over = [
            f"#+ over: ?item a ?class . SERVICE <{address}> {{ ?item ?p ?o }}\n",
            f"#+ over: ?item a ?class . {CROSS}\n",
        ]
        text = (
            "SELECT ?project ?item WHERE { ?item <https://jido.ai/ontology#appliesToProject> ?project } ORDER BY ?item"
        )
        head = HEADER.format("", "item", "item")
        write_queries(tmp_path / "root", **{f"over{n}": f"{head}{line}{text}" for n, line in enumerate(over)})
        with jidomem.open(tmp_path / "root", project="p") as memory:
            iris = [memory.writer.submit_intent("p", intent(summary=str(n))).iri for n in range(3)]

            # When it is read by pages, next to stored lists
            memory.ask("timeline", limit=2)
            rows = [all_pages(memory, f"over{n}", {}) for n in range(2)]

        # Then it is answered, and no request was sent
        assert rows == [[{"item": iri} for iri in iris]] * 2
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_more_concurrent_queries_than_workers_wait_their_turn(memory_with_overlay, monkeypatch):
    monkeypatch.setattr("jidomem.runtime.worker_pool._PATIENCE", 600.0)  # for slow machines
    memory, _ = memory_with_overlay
    memory.reader.ask("own-facts", project="p")  # to start a worker
    with ThreadPoolExecutor(6) as many:
        counts = list(many.map(lambda _: len(memory.reader.ask("own-facts", project="p")), range(12)))

    assert len(set(counts)) == 1


def test_closing_a_root_stops_a_running_query(tmp_path):
    write_queries(tmp_path / "root", endless=HEADER.format("", "n", "n") + EXCESSIVE_QUERIES["endless"][0])
    memory, codes = jidomem.open(tmp_path / "root", project="p"), []
    memory.pool.limits = RootLimits(query_seconds=600.0)
    memory.writer.submit_intent("p", intent())

    def ask():
        try:
            memory.reader.ask("endless", project="p")
        except JidomemError as error:
            codes.append(error.code)

    thread = Thread(target=ask)
    thread.start()
    while not any(_busy(worker) for worker in worker_ids(tmp_path / "root")):
        assert thread.is_alive()
        time.sleep(0.2)
    memory.close()
    thread.join()

    assert (codes, worker_ids(tmp_path / "root")) == (["busy"], [])


def _busy(worker):
    """Return whether a process has used more CPU time than opening a root takes."""
    try:
        return sum(map(int, Path(f"/proc/{worker}/stat").read_text().rsplit(")", 1)[1].split()[11:13])) > 80
    except OSError:
        return False


def files_with_text(folder, text):
    """Return the files below a folder that contain a text."""
    paths = []
    for place, _, names in os.walk(folder):  # a process may remove its index meanwhile
        for path in (Path(place, name) for name in names):
            with suppress(FileNotFoundError):
                paths += [path] if text.encode() in path.read_bytes() else []
    return paths


def test_the_index_of_a_worker_loses_a_redacted_text_after_the_next_catch_up(tmp_path):
    root, secret = tmp_path / "root", "opens with 4711"
    with jidomem.open(root, project="p") as memory:
        memory.writer.submit_many("p", [intent(summary=f"the vault {secret}"), *LARGE])
    with jidomem.open(root, project="p") as memory:
        query = "SELECT (COUNT(*) AS ?n) WHERE { ?s <https://jido.ai/ontology#summary> ?o }"
        before = memory.pool.solutions("p", query).rows
        (worker,) = worker_ids(root)
        before_redaction = files_with_text(root / "index", secret)
        with jidomem.open(root, project="p") as other:
            other.maintenance.redact(other.maintenance.plan("p", None, texts=[secret]), agent="ana", reason="private")

        memory.catch_up("p")
        ended, after_redaction = worker_ids(root), files_with_text(root / "index", secret)
        after = memory.pool.solutions("p", query).rows

    assert before_redaction, "the worker had an index on disk"
    assert (ended, after_redaction, files_with_text(root, secret)) == ([], [], [])
    assert after != before
    assert worker_ids(root) != [worker]


def test_a_busy_worker_ends_after_its_query_when_the_journal_was_rewritten(tmp_path):
    with jidomem.open(tmp_path / "root", project="p") as memory, memory.pool._worker() as busy:
        memory.pool.renew()
        running = busy.is_alive()
    assert (running, busy.is_alive(), memory.pool._idle) == (True, False, [])


def test_a_starting_worker_ends_when_the_journal_is_rewritten(tmp_path):
    root = tmp_path / "root"
    with jidomem.open(root, project="p") as memory:
        memory.writer.submit_intent("p", intent())
        starting = Thread(target=memory.pool.warm)
        starting.start()
        while not (ids := worker_ids(root)):
            time.sleep(0.001)
        os.kill(ids[0], signal.SIGSTOP)  # it is not ready before the journal is rewritten
        memory.pool.renew()
        os.kill(ids[0], signal.SIGCONT)
        starting.join()
        remaining = worker_ids(root), memory.pool._idle

    assert remaining == ([], [])


@pytest.mark.parametrize("project_read", ["p", "q"])
def test_a_process_started_before_old_snapshots_are_removed_does_not_use_them(tmp_path, project_read):
    root, snapshots, secret = tmp_path / "root", tmp_path / "root" / "index" / "snapshots", "opens with 4711"
    with jidomem.open(root, project="p") as memory:
        for project in ("p", "q"):
            memory.writer.submit_many(project, [{**each, "applies_to_project": project} for each in LARGE])
        memory.writer.submit_intent("q", intent(summary=secret, applies_to_project="q"))
        memory.follower.rebuild()
        before_redaction = files_with_text(snapshots, secret)
        shutil.copytree(snapshots, tmp_path / "before")
        memory.maintenance.redact(memory.maintenance.plan("q", None, texts=[secret]), agent="ana", reason="private")
    shutil.rmtree(snapshots)
    (tmp_path / "before").rename(
        snapshots
    )  # as if the redaction was stopped between its record and the removal of snapshots
    with jidomem.open(root, project="p") as memory:
        memory.catch_up(project_read)
        assert memory.follower.on_disk
        after_redaction = files_with_text(root / "index" / "live", secret)

    assert before_redaction
    assert after_redaction == []


def test_a_redaction_ends_the_workers_of_its_process(tmp_path):
    root, secret = tmp_path / "root", "opens with 4711"
    with jidomem.open(root, project="p") as memory:
        memory.writer.submit_many("p", [intent(summary=f"the vault {secret}"), *LARGE])
        memory.pool.warm()
        before_redaction = files_with_text(root / "index", secret)
        memory.maintenance.redact(memory.maintenance.plan("p", None, texts=[secret]), agent="ana", reason="private")
        after_redaction = files_with_text(root, secret), worker_ids(root)

    assert before_redaction
    assert after_redaction == ([], [])
