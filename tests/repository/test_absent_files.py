"""Files that a memory is about and that are not there: the receipt warns of them, with the nearest name."""

import subprocess

import pytest
from conftest import fixed_sources, intent

import jidomem

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
        (r"lib\models\openai.py", "; did you mean lib/models/openai.py?"),
        ("lib/modles/opnai.py", "; did you mean lib/models/openai.py?"),
        ("lib/models/anthropic.py", ""),
    ],
)
def test_a_receipt_warns_of_a_file_that_is_not_there(writer, entry, nearest):
    assert writer.submit_intent("p", intent(about=[entry])).warnings == (MISSING.format(entry) + nearest,)


@pytest.mark.parametrize("entry", ["lib/models/openai.py", "lib/**/*.py", "https://example.org/a.py", "TCP/IP", "os"])
def test_a_receipt_does_not_warn_of_what_is_there_or_names_no_file(writer, entry):
    assert writer.submit_intent("p", intent(about=[entry])).warnings == ()


def test_a_memory_outside_of_a_repository_is_about_any_file(memory):
    assert memory.writer.submit_intent("p", intent(about=["lib/modles/opnai.py"])).warnings == ()
