"""What somebody who holds only the published interfaces relies on: where memory lives, and whose it is."""

import pytest
from conftest import intent

import jidomem
from jidomem.errors import Failed, IntentRefused, InvalidRequest, NotFound
from jidomem.runtime.settings import load


@pytest.fixture
def nobody(tmp_path, monkeypatch):
    """A folder with no memory root above it, and no word about one in the environment."""
    for name in ("JIDOMEM_ROOT", "JIDOMEM_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data-home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_your_own_memory_keeps_the_repositories_that_have_none_apart(nobody, monkeypatch):
    inside = nobody / "My App" / "src"
    inside.mkdir(parents=True)
    (nobody / "My App" / ".git").mkdir()
    monkeypatch.chdir(inside)

    assert load().root == nobody / "data-home" / "jidomem"
    assert load().project == "my-app"


def test_the_folder_of_a_root_names_the_project_when_nobody_else_does(nobody, monkeypatch):
    (nobody / "Shop.Web" / ".jidomem").mkdir(parents=True)
    monkeypatch.chdir(nobody / "Shop.Web")

    assert load().project == "shop-web"
    monkeypatch.setenv("JIDOMEM_PROJECT", "from-the-environment")
    assert load().project == "from-the-environment"
    assert load(project="given").project == "given"


def test_a_project_is_unknown_until_its_first_write(nobody):
    (nobody / "config.toml").write_text('project = "shop"\n')

    with jidomem.open(nobody) as memory:
        assert memory.reader.list_open_tasks("shop") == []
    with jidomem.open(nobody, project="shpo") as memory, pytest.raises(NotFound, match="no project 'shpo'") as refusal:
        memory.reader.list_open_tasks("shpo")

    assert refusal.value.code == "unknown_project"
    assert refusal.value.hint.startswith("there is shop")


def test_a_project_given_to_open_answers_as_an_empty_memory_before_its_first_write(nobody):
    with jidomem.open(nobody, project="shop", agent="ana") as memory:
        answers = memory.recall("tea").entries, memory.ask("open-tasks"), memory.briefing().items
        memory.os("ana").add("Where is the tea?", "In the cellar.")
        pages = memory.recall("cellar", kinds=["page"]).entries
        with pytest.raises(NotFound, match="no project 'other'") as refusal:
            memory.recall("tea", project="other")

        assert ([*map(len, answers)], len(pages), memory.projects()) == ([0, 0, 0], 1, ["shop"])
        assert refusal.value.hint == "there is shop: give one of these as `project`"
        assert not (nobody / "projects").exists()


@pytest.mark.parametrize(
    ("root", "detail"),
    [
        ("mysql://host/memory", "is not the address of a shared root"),
        ("gs://bucket/key", "is not the address of a shared root"),
        ("afile", "is not a folder"),
    ],
)
def test_a_root_that_is_no_folder_is_refused_and_nothing_is_created(nobody, monkeypatch, root, detail):
    (nobody / "afile").write_text("")
    monkeypatch.setenv("JIDOMEM_ROOT", root)

    for open_it in (lambda: jidomem.open(root), jidomem.open):
        with pytest.raises(InvalidRequest, match=detail):
            open_it()

    assert [path.name for path in nobody.iterdir()] == ["afile"]


def test_a_repository_with_a_root_in_it_is_refused_as_a_root_and_a_root_beside_another_is_not(nobody, monkeypatch):
    with jidomem.open(nobody / "shop" / ".jidomem", project="shop", agent="a") as memory:
        memory.writer.remember("shop", "the build needs Rust 1.80")
    monkeypatch.setenv("JIDOMEM_ROOT", str(nobody / "shop"))

    for open_it in (lambda: jidomem.open(nobody / "shop"), jidomem.open):
        with pytest.raises(InvalidRequest, match="is not a memory root") as refusal:
            open_it()
        assert refusal.value.hint == f"name that one: {nobody / 'shop' / '.jidomem'}"

    assert [path.name for path in (nobody / "shop").iterdir()] == [".jidomem"]
    (nobody / "shop" / "projects").mkdir()
    jidomem.open(nobody / "shop").close()


@pytest.mark.parametrize(("named", "hint"), [('"My Shop"', 'write project = "my-shop"'), ("5", 'write project = "5"')])
def test_a_configured_project_that_is_no_id_is_an_error_with_the_line_that_would_do(nobody, named, hint):
    (nobody / "config.toml").write_text(f"project = {named}\n")

    with pytest.raises(Failed, match=r"config\.toml: project = ") as refusal:
        jidomem.open(nobody)

    assert (refusal.value.code, refusal.value.hint) == ("invalid_config", hint)


def test_a_root_cannot_set_bind_and_the_error_names_both_choices(nobody):
    (nobody / "config.toml").write_text('bind = "0.0.0.0"\n')

    with pytest.raises(Failed, match="bind cannot be set by a root on disk") as refusal:
        jidomem.open(nobody)

    assert "take bind out of that file" in refusal.value.hint
    assert f"jidomem access trust {nobody}" in refusal.value.hint


@pytest.mark.parametrize(
    ("key", "field", "repaired", "words"),
    [
        ("confidance", "confidence", True, "did you mean 'confidence'"),
        ("typ", "type", True, "did you mean 'type'"),
        (
            "bogus",
            "about",
            False,
            "leave 'bogus' out, say it in `summary`, `topic` or `about`, "
            "or give an own property, whose key is an IRI: https://example.org/tag",
        ),
    ],
)
def test_only_a_slip_of_the_pen_is_repaired_without_asking(memory, key, field, repaired, words):
    wrong = intent()
    wrong[key] = wrong.pop(field, ["x"])

    with pytest.raises(IntentRefused, match=words) as refusal:
        memory.writer.submit_intent("p", wrong)

    assert (refusal.value.fixed_intent is not None) is repaired
