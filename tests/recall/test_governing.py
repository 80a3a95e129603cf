"""The memories that govern a file: by path, folder, pattern, module or everywhere; the nearest first."""

import json
import subprocess

import pytest
from click.testing import CliRunner
from conftest import decision, intent

from jidomem.errors import InvalidRequest
from jidomem.rdf.terms import iri
from jidomem.rdf.vocab import TYPE, jido
from jidomem.recall.governing import related_memories
from jidomem_cli.main import cli


def rule(summary, level="Advisory", **fields):
    return intent(type="convention", summary=summary, enforcement_level=level, convention_name=summary, **fields)


@pytest.fixture
def governed(memory):
    records = [
        rule("tabs nowhere"),
        rule("log nothing", about=["src/db"], level="Advisory"),
        rule("no globals", about=["src/**/*.py"], level="Required"),
        rule("sign commits", level="Strict"),
        decision(summary="Use WAL", about=["src/db/"], topic="wal"),
        decision(summary="Pool of four", about=["src/db/pool.py"], topic="pool"),
        decision(summary="Use threads", about=["src/db/pool.py"], topic="threads", status="rejected"),
        intent(type="bug", summary="it leaked", about=["src/db/pool.py"], status="Resolved", severity="high"),
        intent(type="bug", summary="it blocks", extra_triples=[["jido:affectedModule", "db.pool"]], severity="low"),
        intent(type="lesson_learned", summary="close what you open", about=["src.db.pool"]),
        intent(type="task", summary="tidy the pool", about=["src/db/pool.py"]),
        rule("only for docs", about=["docs/*.md"], level="Strict"),
        rule("other file", about=["src/db/pool.pyi"], level="Strict"),
    ]
    for each in records:
        memory.writer.submit_intent("p", each)
    return memory


@pytest.mark.parametrize(
    ("path", "summaries"),
    [
        ("packages/web/src/index.ts", ["Use React hooks"]),
        ("packages/web", []),
        ("packages/core/src/index.ts", []),
        ("modules/06-solomachine/client_state.go", ["Solo machine sign bytes"]),
        ("modules/solids/ship.go", []),
    ],
)
def test_decisions_of_the_same_package_or_with_words_of_the_path_are_related(memory, path, summaries):
    decisions = [
        decision(summary="Use React hooks", about=["packages/web/docs/adr/1.md"], topic="hooks"),
        decision(summary="Solo machine sign bytes", about=["docs/adr/2.md"], topic="solo"),
        decision(summary="Keep docs short", about=["docs/adr/3.md"], topic="docs"),
    ]
    for each in decisions:
        memory.writer.submit_intent("p", each)

    related = related_memories(memory.reader, "p", [path], ())

    assert [(one.summary, one.waits) for one in related] == [(summary, False) for summary in summaries]
    assert memory.governing(path, project="p") == []


def test_path_words_in_many_titles_relate_no_memory(memory):
    for number in range(4):
        memory.writer.submit_intent("p", decision(summary=f"Solo machine {number}", topic=f"t{number}"))

    assert related_memories(memory.reader, "p", ["modules/06-solomachine/a.go"], ()) == []


def test_governing_memories_are_ordered_by_nearness_then_force_then_time(governed):
    rows = governed.governing("src/db/pool.py", project="p")

    assert [(row["force"], row["summary"]) for row in rows] == [
        ("decision", "Pool of four"),
        ("open error", "it blocks"),
        ("lesson", "close what you open"),
        ("past error", "it leaked"),
        ("decision", "Use WAL"),
        ("advisory", "log nothing"),
        ("required", "no globals"),
        ("strict", "sign commits"),
    ]  # "tabs nowhere" names no place and binds nothing
    assert {row["standing"] for row in rows} == {"active"}
    assert (rows[0]["about"], rows[0]["agent"], rows[0]["source"]) == ("src/db/pool.py", "architect", None)


def test_an_ended_memory_is_listed_as_of_its_time_and_marked_on_request(governed):
    (old,) = [row for row in governed.governing("src/db/pool.py", project="p") if row["summary"] == "Use WAL"]
    governed.writer.invalidate("p", old["item"], reason="no")

    def summaries(**options):
        return {row["summary"]: row["standing"] for row in governed.governing("src/db/pool.py", project="p", **options)}

    assert "Use WAL" not in summaries()
    assert summaries(as_of=old["recorded"])["Use WAL"] == "active"
    assert summaries(include_inactive=True)["Use WAL"] == "invalidated"


def test_a_proposal_is_listed_only_on_request(governed):
    governed.writer.submit_intent("p", rule("trust me", level="Strict"), propose=True)

    rows = governed.governing("src/db/pool.py", project="p", include_inactive=True)

    assert "trust me" not in [row["summary"] for row in governed.governing("src/db/pool.py", project="p")]
    assert [row["standing"] for row in rows if row["summary"] == "trust me"] == ["pending"]


def test_pattern_matches_are_the_same_from_the_cached_list_of_patterns(governed):
    """A process has the list of patterns from the second query on."""

    def pattern_matches():
        related = related_memories(governed.reader, "p", ["src/db/pool.py"], ())
        return {(one.kind, one.summary, one.waits) for one in related if "*" in one.about}

    governed.writer.submit_intent("p", intent(summary="pools are slow", about=["src/**"]))
    governed.writer.submit_intent("p", rule("one pool", about=["src/db/*"]), propose=True)
    known = {("fact", "pools are slow", False), ("convention", "one pool", True), ("convention", "no globals", False)}
    assert [pattern_matches(), pattern_matches()] == [known, known]

    governed.writer.submit_intent("p", intent(type="task", summary="measure them", about=["**/pool.py"]))
    assert pattern_matches() == known | {("task", "measure them", False)}


@pytest.mark.parametrize("path", ["src/db/pool.py", "./src/db/pool.py", "src//db/./pool.py"])
def test_a_path_is_normalised_in_memories_and_queries(memory, path):
    for about in ("./src/db/pool.py", "src//db/", "./src/*/pool.py"):
        memory.writer.submit_intent("p", rule(f"of {about}", about=[about]))
    graph, old = "https://jido.ai/projects/p/graphs/long-term-context", iri("https://jido.ai/memory/old")
    properties = {
        TYPE: jido("Decision"),
        jido("summary"): '"of old"',
        jido("about"): '"./src/db/pool.py"',
        jido("appliesToProject"): iri("https://jido.ai/projects/p"),
        jido("hasAssertionStatus"): jido("Asserted"),
        jido("recordedAt"): '"2026-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>',
    }
    memory.index.apply(graph, "0", [(old, *row) for row in properties.items()])  # as an earlier version wrote it

    rows = memory.governing(path, project="p")

    assert sorted(row["summary"] for row in rows) == [
        "of ./src/*/pool.py",
        "of ./src/db/pool.py",
        "of old",
        "of src//db/",
    ]
    assert {row["about"] for row in rows} == {"src/*/pool.py", "src/db/pool.py", "./src/db/pool.py", "src/db/"}


def test_a_query_without_a_path_is_refused(governed):
    with pytest.raises(InvalidRequest, match="a path is needed"):
        governed.governing(project="p")


@pytest.mark.parametrize("path", ["../x.py", "src/../../x.py", "..", "/etc/hosts"])
def test_a_path_outside_the_root_folder_is_refused(governed, path):
    with pytest.raises(InvalidRequest, match=f"{path} is outside the folder that holds the root"):
        governed.governing("src/db/pool.py", path, project="p")


@pytest.fixture
def repository(tmp_path, monkeypatch, copy_built):
    def build(folder):
        (folder / "src").mkdir(parents=True)
        monkeypatch.chdir(folder)
        subprocess.run(["git", "init", "-q"], check=True)
        run("init", "-q", "--project", "p")
        run("remember", "Use x", "--type", "decision", "--rationale", "r", "--about", "src/a.py")

    repository = copy_built(build, tmp_path / "here")
    monkeypatch.chdir(repository)
    return repository


def run(*words):
    return CliRunner().invoke(cli, [*words])


@pytest.mark.parametrize(
    "verb", [("governing",), ("guard",), ("agent", "briefing", "--about"), ("recall", "x", "--about")]
)
@pytest.mark.parametrize("path", ["../x.py", "src/../../x.py", "/etc/hosts", "away/hosts", ""])
def test_every_command_refuses_a_path_outside_the_repository_with_its_base(repository, verb, path):
    (repository / "away").symlink_to("/etc")

    result = run(*verb, path)

    assert (result.exit_code, result.stdout) == (2, "")
    if path:
        assert str(repository) in result.stderr
        assert f"{path} is outside" in result.stderr
    else:
        assert ("--about is empty" if verb[-1] == "--about" else "PATH is empty") in result.stderr


def test_a_path_in_another_repository_is_refused_with_the_command_for_its_root(repository, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    assert run("init", "-q", "--project", "q", str(other)).exit_code == 0

    refusal = run("governing", "../other/b.py", "--json")
    words = json.loads(refusal.stdout)["hint"].partition(": ")[2].split()

    assert words == ["jidomem", "--root", str(other / ".jidomem"), "governing", str(other / "b.py")]
    assert run(*words[1:]).exit_code == 0


@pytest.mark.parametrize("verb", ["governing", "guard"])
@pytest.mark.parametrize("folder", ["src", "src/linked", ".."])
def test_a_file_is_named_relative_to_the_working_directory_or_the_root_or_absolutely(
    repository, monkeypatch, verb, folder
):
    (repository / "src" / "linked").symlink_to(repository / "src")
    monkeypatch.chdir(folder)
    name = "src/a.py" if folder == ".." else "a.py"

    results = [
        run(verb, "--root", str(repository / ".jidomem"), path) for path in (name, str(repository / "src" / "a.py"))
    ]

    assert ["Use x" in result.stdout for result in results] == [True, verb == "governing"]  # a guard shows it once
    assert [result.exit_code for result in results] == [0, 0]


@pytest.mark.parametrize(
    ("path", "stored"),
    [
        ("b.py", "src/b.py"),
        ("./b.py", "src/b.py"),
        ("../top.py", "top.py"),
        ("deep/", "src/deep/"),
        ("src/b.py", "src/b.py"),  # relative to the root folder
        ("src/**/*.py", "src/**/*.py"),
        ("b", "b"),  # may be a module
        ("urn:b.py", "urn:b.py"),
        ("x" * 300, "x" * 300),
    ],
)
def test_the_about_path_of_a_memory_is_relative_to_the_working_directory(repository, monkeypatch, path, stored):
    (repository / "src" / "deep").mkdir()
    (repository / "src" / "b.py").write_text("b = 1\n")
    (repository / "top.py").write_text("t = 1\n")
    monkeypatch.chdir("src")

    def about(iri):
        return json.loads(run("show", iri.strip(), "--json").stdout)["properties"]["about"]

    first = run("remember", "It is slow", "--about", path).stdout
    second = run("remember", "It is fast", "--about", str(repository / "top.py")).stdout
    changed = run("edit", second.strip(), "--set", f"about={path}", "--reason", "it is that one").stdout

    assert [about(first), about(second)] == [[stored], ["top.py"]]
    assert about(changed or second) == [stored]


def test_paths_are_relative_to_the_working_directory_without_a_repository(tmp_path, monkeypatch):
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path)
    run("init", "-q", "--project", "p")
    run("remember", "Use x", "--type", "decision", "--rationale", "r", "--about", "src/a.py")
    monkeypatch.chdir("src")

    assert "Use x" in run("governing", "a.py").stdout


def test_the_command_line_resolves_paths_and_reports_changed_and_missing_files(tmp_path, monkeypatch):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("x\n")
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], check=True)
    run("init", "-q", "--project", "p")
    run("remember", "Use x", "--type", "decision", "--rationale", "r", "--about", "src/a.py")
    (tmp_path / "src" / "a.py").write_text("y\n")

    monkeypatch.chdir("src")
    (row,) = json.loads(run("governing", "a.py", "--json").stdout)["rows"]
    assert (row["path"], row["freshness"][0]["state"]) == ("src/a.py", "changed")
    monkeypatch.chdir(tmp_path)
    assert "src/a.py changed" in run("governing", "src/a.py").stdout
    assert "The file was changed since." in run("ask", "changed-files", "-v").stdout
    assert ": info: FileIsAsItWas: " in run("check").stdout
    (tmp_path / "src" / "a.py").unlink()
    assert "src/a.py is gone" in run("check").stdout


def test_inactive_governing_memories_are_counted_by_status(governed):
    answer = governed.governing_answer("src/db/pool.py", project="p")
    assert answer.rows == governed.governing("src/db/pool.py", project="p")
    assert answer.inactive.notice() == "1 inactive record matches (1 rejected): add include_inactive=true"

    (old,) = [row["item"] for row in answer.rows if row["summary"] == "Pool of four"]
    governed.writer.submit_intent(
        "p", decision(summary="Pool of six", about=["src/db/pool.py"], topic="pool", supersedes=[old])
    )
    assert governed.governing_answer("src/db/pool.py", project="p").inactive.statuses == {"rejected": 1}
    whole = governed.governing_answer("src/db/pool.py", project="p", include_inactive=True)
    assert whole.inactive.count == 0
    assert {"rejected", "superseded"} <= {row["status"] for row in whole.rows}


def test_governing_reports_inactive_memories_and_missing_files_with_the_nearest_name(repository):
    (repository / "src" / "queue.py").write_text("q = 1\n")
    run("remember", "Use one queue", "--type", "decision", "--rationale", "r", "--about", "src/queue.py",
        "--status", "proposed")  # fmt: skip

    present = run("governing", "src/queue.py")
    assert (present.exit_code, present.stdout) == (0, "")
    assert present.stderr == "none\n1 inactive record matches (1 proposed): add --include-inactive\n"

    absent = run("governing", "lib/queue.py", "src/new.py")
    assert absent.exit_code == 0
    assert "there is no file lib/queue.py; the nearest name is src/queue.py\n" in absent.stderr
    assert "there is no file src/new.py\n" in absent.stderr

    answer = json.loads(run("governing", "src/qeue.py", "--json").stdout)
    assert answer["missing"] == [{"path": "src/qeue.py", "nearest": "src/queue.py"}]
    assert answer["inactive"]["count"] == 0


def test_the_nearest_name_is_that_of_an_existing_file_whatever_git_lists(repository):
    (repository / "src" / "queue.py").write_text("q = 1\n")
    subprocess.run(["git", "init", "-q", repository], check=True)
    subprocess.run(["git", "-C", repository, "add", "src"], check=True)
    (repository / "src" / "queue.py").rename(repository / "src" / "queues.py")
    run("remember", "Use one queue", "--about", "src")

    assert "there is no file src/qeue.py; the nearest name is src/queues.py\n" in run("governing", "src/qeue.py").stderr


def test_missing_files_are_not_reported_for_a_past_moment_or_without_known_files(repository, tmp_path):
    assert "no file" not in run("governing", "src/new.py", "--as-of", "2999-01-01").stderr
    (tmp_path / "alone").mkdir()
    run("init", "-q", "--project", "q", str(tmp_path / "alone"))
    run("remember", "x", "--root", str(tmp_path / "alone" / ".jidomem"))
    assert "no file" not in run("governing", "src/new.py", "--root", str(tmp_path / "alone" / ".jidomem")).stderr


def test_the_governing_query_names_the_command_that_lists_pattern_memories(governed, monkeypatch):
    monkeypatch.setenv("JIDOMEM_ROOT", str(governed.settings.root))
    governed.close()

    def query(file, *more):
        return CliRunner().invoke(cli, ["ask", "governing", f"file={file}", "--project", "p", *more])

    notice = "1 memory about a pattern governs src/db/pool.py too (src/**/*.py), not listed here: "
    notice += "jidomem governing --project p src/db/pool.py\n"
    assert query("src/db/pool.py").stderr == query("src/db/pool.py", "--format", "csv").stderr == notice
    assert query("src/db/pool.c").stderr == ""
