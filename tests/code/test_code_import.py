"""The code of a folder is imported, read again only where it changed, and can be queried as of any moment."""

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


def git(folder, *words):
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True).stdout


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def take(memory, folder, below="", **more):
    return import_code(memory.writer, memory.follower, "p", tracked(folder, below, ENDINGS), below, **more)


def ask(memory, name, **asked):
    return [tuple(row.values()) for row in memory.reader.ask(name, project="p", **asked)]


def graph(memory, **asked):
    """Return all that the questions answer: modules, and of each its functions and what it depends on."""
    modules = ask(memory, "modules", **asked)
    names = sorted({name for _, name, *_ in modules})
    parts = {
        name: [ask(memory, each, module=name, **asked) for each in ("functions", "dependencies")] for name in names
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


def test_questions_about_code_are_answered_from_what_was_read(memory, folder):  # C100, E098
    report = take(memory, folder)

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


def test_what_did_not_change_is_not_read_and_nothing_is_written(memory, folder, monkeypatch):
    git(folder, "init", "-q")
    git(folder, "add", ".")
    for path in folder.rglob("*.*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    git(folder, "update-index", "-q", "--refresh")
    take(memory, folder)
    version = memory.journal.head(Stream("p", "codebase"))
    for language in (importer.python, importer.elixir):
        monkeypatch.setattr(language, "extract", None)  # calling it would raise
    monkeypatch.setattr(importer.Tracked, "read", lambda *given: None)  # and what is not read counts as gone

    report = take(memory, folder)

    assert (report.files, report.triples, report.commits) == ({"unchanged": 6}, 0, [])
    assert memory.journal.head(Stream("p", "codebase")) == version


def test_a_changed_a_renamed_and_a_removed_file_are_one_commit_and_the_past_stays_as_it_was(tmp_path, folder):  # C088
    moments = iter(CLOCK)
    sources = replace(fixed_sources(), now=lambda: jidomem.base.clock.parse_moment(next(moments)))
    with jidomem.open(tmp_path / "root", sources=sources) as memory:
        first = take(memory, folder)
        then = graph(memory)
        write(folder, {"shop/cart.py": "from shop import price\n\ndef add(item):\n    ...\n"})
        (folder / "shop" / "stock.py").rename(folder / "shop" / "store.py")
        (folder / "lib" / "cart.ex").unlink()

        report = take(memory, folder)

        assert report.files == {"unchanged": 3, "changed": 1, "new": 1, "gone": 2}
        assert (len(first.commits), len(report.commits)) == (1, 1)
        assert ask(memory, "dependencies", module="shop.cart")[1:] == [("shop.price", "imports", "shop/price.py")]
        assert [name for _, name in ask(memory, "elixir-modules")] == ["Shop"]
        assert ask(memory, "dependencies", module="Shop")[1] == ("Shop.Cart", "refersTo", None)
        before = ask(memory, "readings")[-1][0]
        assert graph(memory, as_of=before) == then
        assert [name for _, name in ask(memory, "elixir-modules", as_of=before)] == ["Shop", "Shop.Cart"]


def test_commands_events_and_projections_count_as_long_as_the_code_says_so(memory, folder):  # C100
    write(folder, {"lib/order.ex": COMMANDED.decode()})
    take(memory, folder)
    told = [
        [row[-1].rsplit("/", 1)[-1] for row in ask(memory, name)] for name in ("commands-and-events", "projections")
    ]
    (folder / "lib" / "order.ex").unlink()
    take(memory, folder)

    assert told == [["Events.Placed"], ["Events.Placed"]]
    assert ask(memory, "commands-and-events") == ask(memory, "projections") == []
    assert len(ask(memory, "projections", as_of=ask(memory, "readings")[-1][0])) == 1


def test_a_content_that_comes_back_counts_again(memory, folder):
    take(memory, folder)
    first, text = graph(memory), (folder / "shop" / "price.py").read_text()
    for content in ("", text):
        write(folder, {"shop/price.py": content})
        take(memory, folder)

    assert graph(memory) == first


def test_a_file_that_was_gone_counts_again_when_it_is_back_as_it_was(memory, folder):
    take(memory, folder)
    first, text = graph(memory), (folder / "shop" / "price.py").read_text()
    for _ in range(2):
        (folder / "shop" / "price.py").unlink()
        take(memory, folder)
        write(folder, {"shop/price.py": text})
        take(memory, folder)

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
def test_however_a_folder_came_to_be_its_graph_is_that_of_reading_it_once(tmp_path_factory, seed):
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
            take(memory, folder)
        grown = graph(memory)
        memory.writer.clear("p", "codebase")
        take(memory, folder)
        assert graph(memory) == grown


def test_an_import_that_was_cut_short_is_finished_by_another(memory, folder, monkeypatch):
    monkeypatch.setattr(importer, "AT_ONCE", 1)
    append, kept = memory.writer.append, []

    def dies(*given):
        if len(kept) == 2:
            raise Failed("the disk is full", code="write_failed")
        kept.append(append(*given))
        return kept[-1]

    monkeypatch.setattr(memory.writer, "append", dies)
    with pytest.raises(Failed):
        take(memory, folder)
    monkeypatch.undo()

    assert take(memory, folder).files == {"unchanged": 2, "new": 4}
    assert len(ask(memory, "modules")) == 6


def test_a_dry_run_keeps_nothing(memory, folder):
    report = take(memory, folder, dry_run=True)

    assert (report.files, report.counts["modules"], report.commits) == ({"new": 6}, 6, [])
    assert memory.projects() == []


def test_what_is_no_code_that_a_person_wrote_is_left_out_and_told(memory, folder):
    write(folder, {"long.py": f"x = '{'y' * 200_000}'\n", "broken.py": "import os\nx = = 1\n"})
    (folder / "large.py").write_bytes(b"x = 1\n" * (LARGEST // 6 + 1))
    (folder / "binary.ex").write_bytes(b"defmodule A do\0end")
    (folder / "outside.py").symlink_to("/etc/hostname")
    (folder / "linked").symlink_to("/usr/lib")

    report = take(memory, folder)

    assert report.files == {"new": 7, "left out": 3}
    assert [str(note).split(" of more")[0] for note in report.notes] == [
        "binary.ex: left out: not a text",
        "broken.py:2: this is not the syntax of the language",
        "large.py: left out: larger than 2,097,152 bytes, reached by a link, or not readable",
        "long.py: left out: a line",
    ]
    assert ask(memory, "dependencies", module="broken") == [("os", "imports", None)]


@pytest.mark.parametrize("with_git", [True, False])
def test_a_file_whose_name_cannot_be_written_down_is_left_out_and_told(memory, folder, with_git):
    if with_git:
        git(folder, "init", "-q")
    for name in (b"line\nbreak.py", b"b\xe9.ex"):
        (folder / os.fsdecode(name)).write_text("import os\n")

    report = take(memory, folder)

    assert report.files == {"new": 6, "left out": 2}
    assert sorted(map(str, report.notes)) == [
        f"{name}: left out: its name is not valid text: rename it" for name in (r"b\udce9.ex", r"line\nbreak.py")
    ]


def test_what_a_merge_has_not_settled_is_told_and_what_was_known_of_it_stays(memory, folder):
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "1")
    take(memory, folder)
    for branch, text in (("other", "import re\n"), ("main", "import json\n")):
        git(folder, "checkout", "-q", *(["-b", branch] if branch == "other" else [branch]))
        write(folder, {"shop/price.py": text})
        git(folder, "commit", "-qam", branch)
    assert subprocess.run(["git", "merge", "-q", "other"], cwd=folder, capture_output=True, check=False).returncode == 1

    report = take(memory, folder)

    assert report.files == {"unchanged": 5, "left out": 1}
    assert [*map(str, report.notes)] == ["shop/price.py: left out: unresolved merge: resolve it, then git add"]
    assert ask(memory, "functions", module="shop.price") != []


@pytest.mark.parametrize("with_git", [True, False])
def test_what_git_ignores_is_left_out_with_and_without_git(memory, folder, with_git):
    (folder / ".gitignore").write_text("/made/\n*_gen.py\n")
    write(folder, {"made/x.py": "", "shop/y_gen.py": ""})
    if with_git:
        git(folder, "init", "-q")

    assert take(memory, folder).files == {"new": 6}


def test_without_git_what_mix_fetched_is_left_out_and_a_folder_of_that_name_elsewhere_is_not(memory, tmp_path):
    write(tmp_path / "umbrella", {"deps/own/a.ex": "", "app/mix.exs": "", "app/deps/fetched/b.ex": ""})

    take(memory, tmp_path / "umbrella")

    assert sorted(importer.current_versions(memory.index, "p")[0]) == ["app/mix.exs", "deps/own/a.ex"]


def test_a_part_of_a_folder_is_taken_in_and_the_rest_is_left_as_it_is(memory, folder):
    take(memory, folder)
    (folder / "lib" / "cart.ex").unlink()
    (folder / "shop" / "stock.py").unlink()

    assert take(memory, folder, "shop").files == {"unchanged": 3, "gone": 1}
    assert [name for _, name in ask(memory, "elixir-modules")] == ["Shop", "Shop.Cart"]


def test_memories_are_found_by_what_the_code_they_are_about_depends_on(memory, folder):
    take(memory, folder)
    for about in ("shop/cart.py", "shop.cart", "shop", "lib"):
        memory.writer.submit_intent("p", intent(summary=f"about {about}", about=[about]))

    found = ask(memory, "about-dependents", module="shop.stock")

    assert sorted(summary for _, _, summary, *_ in found) == ["about shop", "about shop.cart", "about shop/cart.py"]


def test_the_command_line_reads_a_repository_from_its_top_and_counts_what_it_found(tmp_path, folder, monkeypatch):
    git(folder, "init", "-q")
    monkeypatch.chdir(folder)
    runner = CliRunner()
    assert runner.invoke(cli, ["init"]).exit_code == 0

    done = [runner.invoke(cli, ["root", "import", "code", "shop", "--json"]) for _ in range(2)]

    first, second = (json.loads(each.stdout) for each in done)
    assert first["files"] == {"new": 4}
    assert first["found"] == {"modules": 4, "functions": 4, "dependencies": 4}
    assert (second["files"], second["triples"], second["notes"]) == ({"unchanged": 4}, 0, [])
    asked = runner.invoke(cli, ["ask", "dependents", "module=shop.stock", "--json"])
    assert [row["path"] for row in json.loads(asked.stdout)["rows"]] == ["shop/cart.py"]


def test_code_of_another_repository_does_not_take_the_place_of_ours(tmp_path, folder, monkeypatch):
    git(folder, "init", "-q")
    write(tmp_path / "other", {"a.py": "def f(): pass\n"})
    monkeypatch.chdir(folder)
    runner = CliRunner()
    for words in (["init"], ["root", "import", "code", "."]):
        assert runner.invoke(cli, words).exit_code == 0

    refused = runner.invoke(cli, ["root", "import", "code", "../other"])
    apart = runner.invoke(cli, refused.stderr.rpartition("jidomem ")[2].split())

    assert (refused.exit_code, apart.exit_code) == (2, 0)
    assert "1 new" in apart.stderr
    assert "gone" not in apart.stderr + runner.invoke(cli, ["root", "import", "code", "."]).stderr


def test_where_there_is_no_code_that_is_said_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(cli, ["init", "--project", "p"]).exit_code == 0

    done = CliRunner().invoke(cli, ["root", "import", "code", "."])

    assert done.stderr == "no Python or Elixir file there, except ignored ones: nothing was written\n"
