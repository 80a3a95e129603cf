"""Absent files that a memory is about: the receipt warns of them, with the nearest name."""

import subprocess

import pytest
from conftest import fixed_sources, intent

import jidomem
from jidomem.errors import IntentRefused
from jidomem.write.submission import SubmitOptions

MISSING = "about names {}, and there is no such file"


@pytest.fixture
def writer(tmp_path):
    folder = tmp_path / "lib" / "models"
    folder.mkdir(parents=True)
    (folder / "openai.py").write_text("x = 1\n")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    with jidomem.open(tmp_path / ".jidomem", sources=fixed_sources()) as memory:
        yield memory.writer


@pytest.mark.parametrize(
    ("entry", "nearest"),
    [
        ("lib/modles/opnai.py", "; did you mean lib/models/openai.py?"),
        ("lib/models/anthropic.py", ""),
    ],
)
def test_a_receipt_warns_of_an_absent_file_with_the_nearest_name(writer, entry, nearest):
    assert writer.submit_intent("p", intent(about=[entry])).warnings == (MISSING.format(entry) + nearest,)


@pytest.mark.parametrize("entry", [r"lib\models\openai.py", r"lib\models"])
def test_a_windows_path_of_the_repository_is_stored_with_slashes(writer, entry):
    receipt = writer.submit_intent("p", intent(about=[entry]))

    path = entry.replace("\\", "/")
    assert receipt.warnings == (f"about names {entry}: it is stored as {path}",)
    assert writer.restated("p", receipt.iri)["about"] == [path]


@pytest.mark.parametrize("at_write", [True, False])
@pytest.mark.parametrize(
    "form",
    [
        "{top}/lib/models/openai.py",
        "file://{top}/lib/models/openai.py",
        "lib/models/openai.py:12",
        "@lib/models/openai.py:12-14",
        "lib/models/openai.py#L3-L5",
        "https://github.com/ana/shop/blob/main/lib/models/openai.py",
    ],
)
def test_each_form_of_a_path_names_the_file_in_writes_and_questions(writer, tmp_path, form, at_write):
    with (tmp_path / ".git" / "config").open("a") as config:
        config.write('[remote "origin"]\n\turl = git@github.com:ana/shop.git\n')
    path = "lib/models/openai.py"
    entry = form.format(top=tmp_path)
    with jidomem.open(tmp_path / ".jidomem") as memory:
        rule = {"text": "Never block", "type": "convention", "project": "p"}
        receipt = memory.remember(about=[entry if at_write else path], **rule)
        rows = memory.governing(path if at_write else entry, project="p")

    assert [row["item"] for row in rows] == [receipt.iri]
    assert receipt.warnings == ((f"about names {entry}: it is stored as {path}",) if at_write else ())


def test_an_absolute_path_of_a_file_to_be_made_is_stored_relative_and_one_outside_is_refused(writer, tmp_path):
    receipt = writer.submit_intent("p", intent(about=[f"{tmp_path}/lib/new.py"]))

    assert writer.restated("p", receipt.iri)["about"] == ["lib/new.py"]
    with pytest.raises(IntentRefused, match=r"/other/lib/new\.py is none"):
        writer.submit_intent("p", intent(about=["/other/lib/new.py"]))


def test_a_name_without_a_folder_has_a_warning_if_one_file_has_it(writer, tmp_path):
    def warnings(name):
        return writer.submit_intent("p", intent(about=[name], summary=f"It is {name}")).warnings

    assert warnings("openai.py") == (MISSING.format("openai.py") + "; did you mean lib/models/openai.py?",)
    (tmp_path / "openai.py").mkdir()
    assert warnings("openai.py") == warnings("node.js") == ()


def test_a_path_without_a_file_below_an_existing_folder_has_a_warning_also_in_the_check(writer, tmp_path):
    receipt = writer.submit_intent("p", intent(about=["lib/none"]))

    assert receipt.warnings == (MISSING.format("lib/none"),)
    with jidomem.open(tmp_path / ".jidomem", project="p") as memory:
        assert [(row["path"], row["state"]) for row in memory.changed_files()] == [("lib/none", "gone")]


def test_a_folder_that_git_renamed_governs_by_its_new_name(writer, tmp_path):
    def git(*words):
        subprocess.run(["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a@b.c", *words], check=True)

    git("add", "lib")
    git("commit", "-qm", "first")
    with jidomem.open(tmp_path / ".jidomem", project="p") as memory:
        receipt = memory.remember("Never block", type="convention", about=["lib/models"])
        git("mv", "lib/models", "lib/llms")
        git("commit", "-qm", "second")
        assert [row["item"] for row in memory.governing("lib/llms/openai.py")] == [receipt.iri]


def test_a_batch_in_one_commit_treats_absent_files_and_windows_paths_as_a_single_write_does(writer):
    about = [r"lib\models\openai.py", "lib/models/anthropic.py"]
    single = writer.submit_intent("p", intent(about=about))

    (together,) = writer.submit_together("p", lambda outcomes: [(intent(summary="y", about=about), SubmitOptions())])

    assert together.warnings == single.warnings
    assert len(single.warnings) == 2


def test_a_retry_returns_the_first_receipt_after_the_file_was_deleted(writer, tmp_path):
    keyed = intent(about=[r"lib\models\openai.py"], idempotency_key="k")
    first = writer.submit_intent("p", keyed)
    (tmp_path / "lib" / "models" / "openai.py").unlink()

    repeated = writer.submit_intent("p", keyed)

    assert repeated == first


@pytest.mark.parametrize(
    ("entry", "path"),
    [(r"lib\models\other.py", "lib/models/other.py"), (r"lib\**\*.py", "lib/**/*.py"), (r"C:\lib\a.py", None)],
)
def test_another_windows_path_is_refused_with_the_path_to_write(writer, entry, path):
    with pytest.raises(IntentRefused, match="about names paths with slashes") as refusal:
        writer.submit_intent("p", intent(about=[entry]))

    assert (refusal.value.fixed_intent or {}).get("about") == (path and [path])
    assert refusal.value.violations[0].hint == (
        f"write it so: {path}" if path else "give the path of a file relative to that folder: src/a.py"
    )


def test_a_windows_path_without_extension_that_is_absent_is_stored_with_a_warning(writer):
    receipt = writer.submit_intent("p", intent(about=[r"lib\absent"]))

    assert writer.restated("p", receipt.iri)["about"] == [r"lib\absent"]
    assert receipt.warnings == (r"about names lib\absent: it is stored so, and paths have slashes: lib/absent",)


@pytest.mark.parametrize("entry", [r"App\Models", r"lib/\[id\].py"])
def test_a_namespace_or_an_escaped_sign_is_no_windows_path(writer, entry):
    receipt = writer.submit_intent("p", intent(about=[entry]))

    assert (receipt.warnings, writer.restated("p", receipt.iri)["about"]) == ((), [entry])


@pytest.mark.parametrize("entry", ["lib/models/openai.py", "lib/**/*.py", "https://example.org/a.py", "TCP/IP", "os"])
def test_a_receipt_does_not_warn_of_existing_files_patterns_and_names(writer, entry):
    assert writer.submit_intent("p", intent(about=[entry])).warnings == ()


def test_a_receipt_outside_a_repository_does_not_warn_of_absent_files(memory):
    assert memory.writer.submit_intent("p", intent(about=["lib/modles/opnai.py"])).warnings == ()
