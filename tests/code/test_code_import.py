"""The import of code: only changed files are read again, and the graph can be queried as of any moment."""

import json
import os
import subprocess
from dataclasses import replace
from random import Random

import pytest
from click.testing import CliRunner
from conftest import fixed_sources, intent
from hypothesis import given, settings
from hypothesis import strategies as st
from test_code_parsers import COMMANDED

import jidomem
from jidomem.errors import Failed
from jidomem.extras.code import importer
from jidomem.extras.code.importer import ENDINGS, LARGEST, import_code
from jidomem.journal.journal import Stream
from jidomem.repository.worktree import tracked
from jidomem_cli.main import cli

CLOCK = [f"2026-01-{day:02d}T00:00:00" for day in range(1, 32)]


def git(folder, *arguments):
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def import_folder(memory, folder, below="", **more):
    return import_code(memory.writer, memory.follower, "p", tracked(folder, below, ENDINGS), below, **more)


def ask(memory, name, **parameters):
    return [tuple(row.values()) for row in memory.reader.ask(name, project="p", **parameters)]


def graph(memory, **parameters):
    """Return the rows of the named queries: modules, with the functions and dependencies of each."""
    modules = ask(memory, "modules", **parameters)
    names = sorted({name for _, name, *_ in modules})
    parts = {
        name: [ask(memory, each, module=name, **parameters) for each in ("functions", "dependencies")] for name in names
    }
    return modules, parts


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "shop"
    write(
        folder,
        {
            "shop/__init__.py": "",
            "shop/cart.py": "from shop import price\nfrom .stock import take\nimport os\n\ndef add(it):\n    ...\n",
            "shop/price.py": "def of(item):\n    return 1\n",
            "shop/stock.py": "import json\n\ndef take(item):\n    ...\n\ndef _count():\n    ...\n",
            "lib/shop.ex": "defmodule Shop do\n  use GenServer\n  def start(x), do: Shop.Cart.new(x)\nend\n",
            "lib/cart.ex": "defmodule Shop.Cart do\n  def new(x), do: x\nend\n",
        },
    )
    return folder


def test_imported_code_is_answered_by_the_queries_about_code(memory, folder):  # C100, E098
    report = import_folder(memory, folder)

    assert report.files == {"new": 6}
    assert ask(memory, "elixir-modules")[0][1:] == ("Shop",)
    assert ask(memory, "dependencies", module="shop.cart") == [
        ("os", "imports", None),
        ("shop", "imports", "shop/__init__.py"),
        ("shop.price", "imports", "shop/price.py"),
        ("shop.stock", "imports", "shop/stock.py"),
    ]
    assert ask(memory, "dependencies", module="lib/shop.ex") == [
        ("GenServer", "uses", None),
        ("Shop.Cart", "refersTo", "lib/cart.ex"),
    ]
    assert ask(memory, "dependents", module="shop.stock") == [("shop.cart", "imports", "shop/cart.py")]
    assert ask(memory, "functions", module="shop/stock.py") == [
        ("shop.stock._count", "6-7", "private"),
        ("shop.stock.take", "3-4", "public"),
    ]


def test_unchanged_files_are_not_read_and_nothing_is_written(memory, folder, monkeypatch):
    git(folder, "init", "-q")
    git(folder, "add", ".")
    for path in folder.rglob("*.*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    git(folder, "update-index", "-q", "--refresh")
    import_folder(memory, folder)
    version = memory.journal.head(Stream("p", "codebase"))
    for language in (importer.python, importer.elixir):
        monkeypatch.setattr(language, "extract", None)  # calling it would raise
    monkeypatch.setattr(importer.TrackedFiles, "read", lambda *given: None)  # and what is not read counts as gone

    report = import_folder(memory, folder)

    assert (report.files, report.triples, report.commits) == ({"unchanged": 6}, 0, [])
    assert memory.journal.head(Stream("p", "codebase")) == version


def test_changed_renamed_and_removed_files_are_one_commit_and_earlier_graphs_stay(tmp_path, folder):  # C088
    moments = iter(CLOCK)
    sources = replace(fixed_sources(), now=lambda: jidomem.base.clock.parse_moment(next(moments)))
    with jidomem.open(tmp_path / "root", sources=sources) as memory:
        first = import_folder(memory, folder)
        then = graph(memory)
        write(folder, {"shop/cart.py": "from shop import price\n\ndef add(item):\n    ...\n"})
        (folder / "shop" / "stock.py").rename(folder / "shop" / "store.py")
        (folder / "lib" / "cart.ex").unlink()

        report = import_folder(memory, folder)

        assert report.files == {"unchanged": 3, "changed": 1, "new": 1, "gone": 2}
        assert (len(first.commits), len(report.commits)) == (1, 1)
        assert ask(memory, "dependencies", module="shop.cart")[1:] == [("shop.price", "imports", "shop/price.py")]
        assert [name for _, name in ask(memory, "elixir-modules")] == ["Shop"]
        assert ask(memory, "dependencies", module="Shop")[1] == ("Shop.Cart", "refersTo", None)
        before = ask(memory, "readings")[-1][0]
        assert graph(memory, as_of=before) == then
        assert [name for _, name in ask(memory, "elixir-modules", as_of=before)] == ["Shop", "Shop.Cart"]


def test_commands_events_and_projections_end_with_the_removal_of_their_file(memory, folder):  # C100
    write(folder, {"lib/order.ex": COMMANDED.decode()})
    import_folder(memory, folder)
    events = [
        [row[-1].rsplit("/", 1)[-1] for row in ask(memory, name)] for name in ("commands-and-events", "projections")
    ]
    (folder / "lib" / "order.ex").unlink()
    import_folder(memory, folder)

    assert events == [["Events.Placed"], ["Events.Placed"]]
    assert ask(memory, "commands-and-events") == ask(memory, "projections") == []
    assert len(ask(memory, "projections", as_of=ask(memory, "readings")[-1][0])) == 1


def test_a_file_with_restored_content_restores_its_graph(memory, folder):
    import_folder(memory, folder)
    first, text = graph(memory), (folder / "shop" / "price.py").read_text()
    for content in ("", text):
        write(folder, {"shop/price.py": content})
        import_folder(memory, folder)

    assert graph(memory) == first


def test_a_restored_file_restores_its_graph(memory, folder):
    import_folder(memory, folder)
    first, text = graph(memory), (folder / "shop" / "price.py").read_text()
    for _ in range(2):
        (folder / "shop" / "price.py").unlink()
        import_folder(memory, folder)
        write(folder, {"shop/price.py": text})
        import_folder(memory, folder)

        assert graph(memory) == first


TEXTS = [
    "import json\n\ndef f():\n    ...\n",
    "from shop import b, c\nfrom . import a\n\nclass K:\n    def m(self):\n        ...\n",
    "import b, c\n",
    "def broken(:\n",
]
PATHS = ["shop/__init__.py", "shop/a.py", "shop/b.py", "a.py", "b.py", "deep/er/c.py", "x.ex", "y.ex"]


@settings(max_examples=4)
@given(st.integers(0, 2**32))
def test_the_graph_after_any_changes_is_that_of_a_single_import(tmp_path_factory, seed):
    random, place = Random(seed), tmp_path_factory.mktemp("law")
    folder = place / "code"
    folder.mkdir()
    with jidomem.open(place / "root", sources=fixed_sources()) as memory:
        for _ in range(3):
            for path in random.sample(PATHS, 4):
                file = folder / path
                file.parent.mkdir(parents=True, exist_ok=True)
                if file.exists() and random.random() < 0.4:
                    file.unlink()
                elif path.endswith(".ex"):
                    file.write_text(f"defmodule M{random.randrange(3)} do\n  alias M{random.randrange(3)}.In\nend\n")
                else:
                    file.write_text(random.choice(TEXTS))
            import_folder(memory, folder)
        grown = graph(memory)
        memory.writer.clear("p", "codebase")
        import_folder(memory, folder)
        assert graph(memory) == grown


def test_an_interrupted_import_is_completed_by_the_next(memory, folder, monkeypatch):
    monkeypatch.setattr(importer, "AT_ONCE", 1)
    append, appended = memory.writer.append, []

    def fail_on_third(*given):
        if len(appended) == 2:
            raise Failed("the disk is full", code="write_failed")
        appended.append(append(*given))
        return appended[-1]

    monkeypatch.setattr(memory.writer, "append", fail_on_third)
    with pytest.raises(Failed):
        import_folder(memory, folder)
    monkeypatch.undo()

    assert import_folder(memory, folder).files == {"unchanged": 2, "new": 4}
    assert len(ask(memory, "modules")) == 6


def test_a_dry_run_of_a_code_import_writes_nothing(memory, folder):
    report = import_folder(memory, folder, dry_run=True)

    assert (report.files, report.counts["modules"], report.commits) == ({"new": 6}, 6, [])
    assert memory.projects() == []


def test_generated_large_binary_and_linked_files_are_omitted_and_noted(memory, folder):
    write(folder, {"long.py": f"x = '{'y' * 200_000}'\n", "broken.py": "import os\nx = = 1\n"})
    (folder / "large.py").write_bytes(b"x = 1\n" * (LARGEST // 6 + 1))
    (folder / "binary.ex").write_bytes(b"defmodule A do\0end")
    (folder / "outside.py").symlink_to("/etc/hostname")
    (folder / "linked").symlink_to("/usr/lib")

    report = import_folder(memory, folder)

    assert report.files == {"new": 7, "left out": 3}
    assert [str(note).split(" of more")[0] for note in report.notes] == [
        "binary.ex: left out: not a text",
        "broken.py:2: this is not the syntax of the language",
        "large.py: left out: larger than 2,097,152 bytes, reached by a link, or not readable",
        "long.py: left out: a line",
    ]
    assert ask(memory, "dependencies", module="broken") == [("os", "imports", None)]


@pytest.mark.parametrize("with_git", [True, False])
def test_a_file_with_an_invalid_name_is_omitted_and_noted(memory, folder, with_git):
    if with_git:
        git(folder, "init", "-q")
    for name in (b"line\nbreak.py", b"b\xe9.ex"):
        (folder / os.fsdecode(name)).write_text("import os\n")

    report = import_folder(memory, folder)

    assert report.files == {"new": 6, "left out": 2}
    assert sorted(map(str, report.notes)) == [
        f"{name}: left out: its name is not valid text: rename it" for name in (r"b\udce9.ex", r"line\nbreak.py")
    ]


def test_a_file_in_an_unresolved_merge_is_noted_and_its_graph_stays(memory, folder):
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "1")
    import_folder(memory, folder)
    for branch, text in (("other", "import re\n"), ("main", "import json\n")):
        git(folder, "checkout", "-q", *(["-b", branch] if branch == "other" else [branch]))
        write(folder, {"shop/price.py": text})
        git(folder, "commit", "-qam", branch)
    assert subprocess.run(["git", "merge", "-q", "other"], cwd=folder, capture_output=True, check=False).returncode == 1

    report = import_folder(memory, folder)

    assert report.files == {"unchanged": 5, "left out": 1}
    assert [*map(str, report.notes)] == ["shop/price.py: left out: unresolved merge: resolve it, then git add"]
    assert ask(memory, "functions", module="shop.price") != []


@pytest.mark.parametrize("with_git", [True, False])
def test_ignored_files_are_omitted_with_and_without_git(memory, folder, with_git):
    (folder / ".gitignore").write_text("/made/\n*_gen.py\n")
    write(folder, {"made/x.py": "", "shop/y_gen.py": ""})
    if with_git:
        git(folder, "init", "-q")

    assert import_folder(memory, folder).files == {"new": 6}


def test_without_git_the_deps_folder_of_a_mix_project_is_omitted(memory, tmp_path):
    write(tmp_path / "umbrella", {"deps/own/a.ex": "", "app/mix.exs": "", "app/deps/fetched/b.ex": ""})

    import_folder(memory, tmp_path / "umbrella")

    assert sorted(importer.current_versions(memory.index, "p")[0]) == ["app/mix.exs", "deps/own/a.ex"]


def test_the_import_of_a_subfolder_does_not_change_the_rest(memory, folder):
    import_folder(memory, folder)
    (folder / "lib" / "cart.ex").unlink()
    (folder / "shop" / "stock.py").unlink()

    assert import_folder(memory, folder, "shop").files == {"unchanged": 3, "gone": 1}
    assert [name for _, name in ask(memory, "elixir-modules")] == ["Shop", "Shop.Cart"]


def test_memories_are_found_by_the_dependencies_of_the_code_they_are_about(memory, folder):
    import_folder(memory, folder)
    for about in ("shop/cart.py", "shop.cart", "shop", "lib"):
        memory.writer.submit_intent("p", intent(summary=f"about {about}", about=[about]))

    rows = ask(memory, "about-dependents", module="shop.stock")

    assert sorted(summary for _, _, summary, *_ in rows) == ["about shop", "about shop.cart", "about shop/cart.py"]


def test_the_dependents_of_a_module_are_found_by_its_name_and_by_its_file(memory, folder):
    before = memory.sources.now()
    import_folder(memory, folder)

    by_name, by_file = (ask(memory, "dependents", module=name) for name in ("shop.stock", "shop/stock.py"))

    assert by_name == by_file == [("shop.cart", "imports", "shop/cart.py")]
    assert ask(memory, "dependents", module="shop/stock.py", as_of=before) == []


def test_the_errors_of_a_module_are_those_about_its_name_or_its_file(memory, folder):
    before = memory.sources.now()
    import_folder(memory, folder)
    for about in ("shop/cart.py", "shop.cart", "shop", "shop/stock.py"):
        memory.writer.submit_intent("p", intent(type="error", summary=f"about {about}", about=[about]))
    memory.writer.submit_intent("p", intent(summary="a fact", about=["shop.cart"]))

    answers = [ask(memory, "errors-of-module", module=name) for name in ("shop.cart", "shop/cart.py", "shop", "cart")]

    named = ["about shop.cart", "about shop/cart.py"]
    assert [[content for _, content, _ in rows] for rows in answers] == [named, named, ["about shop"], []]
    assert ask(memory, "errors-of-module", module="shop.cart", as_of=before) == []


def test_the_import_command_reads_paths_from_the_repository_root_and_counts_results(tmp_path, folder, monkeypatch):
    git(folder, "init", "-q")
    monkeypatch.chdir(folder)
    runner = CliRunner()
    assert runner.invoke(cli, ["init"]).exit_code == 0

    results = [runner.invoke(cli, ["root", "import", "code", "shop", "--json"]) for _ in range(2)]

    first, second = (json.loads(each.stdout) for each in results)
    assert first["files"] == {"new": 4}
    assert first["found"] == {"modules": 4, "functions": 4, "dependencies": 4}
    assert (second["files"], second["triples"], second["notes"]) == ({"unchanged": 4}, 0, [])
    parameters = runner.invoke(cli, ["ask", "dependents", "module=shop.stock", "--json"])
    assert [row["path"] for row in json.loads(parameters.stdout)["rows"]] == ["shop/cart.py"]


def test_code_of_another_repository_is_refused_and_imported_into_a_separate_project(tmp_path, folder, monkeypatch):
    git(folder, "init", "-q")
    write(tmp_path / "other", {"a.py": "def f(): pass\n"})
    monkeypatch.chdir(folder)
    runner = CliRunner()
    for words in (["init"], ["root", "import", "code", "."]):
        assert runner.invoke(cli, words).exit_code == 0

    refusal = runner.invoke(cli, ["root", "import", "code", "../other"])
    separate = runner.invoke(cli, refusal.stderr.rpartition("jidomem ")[2].split())

    assert (refusal.exit_code, separate.exit_code) == (2, 0)
    assert "1 new" in separate.stderr
    assert "gone" not in separate.stderr + runner.invoke(cli, ["root", "import", "code", "."]).stderr


def test_the_import_of_a_folder_without_code_reports_that_nothing_was_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(cli, ["init", "--project", "p"]).exit_code == 0

    result = CliRunner().invoke(cli, ["root", "import", "code", "."])

    assert result.stderr == "no Python or Elixir file there, except ignored ones: nothing was written\n"
