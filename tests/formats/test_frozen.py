"""What every earlier version wrote is read, and answered as it was then: the promise of docs/versions.md."""

import json
import os
import re
import tarfile
from pathlib import Path

import freeze
import pytest
from click.testing import CliRunner

import jidomem
from jidomem_cli.main import cli

HERE = Path(__file__).parent
#: What a person is told to do next, in words that may change.
ADVICE = {"settle", "hint"}
#: What a later version may have more of: the rules by which it would judge.
GROWING = {"rules"}
#: The states of proposals by their present names, which 0.1.1 confused with those of decisions.
RENAMED = {("status", "proposed"): "pending"}
#: The state of a marker, which earlier versions called active as that of a memory.
MARKER, STATES = "https://jido.ai/ontology#DeletedMarker", ("status", "before", "after")
OF_MARKERS = {"active": "withdrawal"}
#: The record of a redaction in an export, which earlier versions left out: in Turtle and N-Quads, and in JSON-LD.
RECORD = re.compile(
    r'<urn:jido:redaction:.*\n(?:\t.*\n)*|,\n    \{\n      "@id": "urn:jido:redaction:[^ ]*\n(?:      .*\n)*    \}'
)
#: A memory without its summary, and without the record of its redaction, is none that could be written.
REDACTED = freeze.BASE + "f2"
VERSIONS = sorted(path.parent.name for path in HERE.glob("*/root.tar.gz"))


@pytest.fixture(params=VERSIONS)
def frozen(request, tmp_path, monkeypatch):
    """A root as a version left it, made the working directory's; and what that version said of it."""
    with tarfile.open(HERE / request.param / "root.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    for name, value in freeze.environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return json.loads((HERE / request.param / "answers.json").read_text("utf-8"))


def run(*words):
    done = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert done.exit_code == 0, f"{words}: {done.output}"
    return done.stdout


def test_each_answer_of_an_earlier_version_is_still_given_and_at_most_more_than_it(frozen):
    then, now = frozen["moments"]
    for asked, before in frozen["answers"].items():
        words = asked.replace("{then}", then).replace("{now}", now).split()
        lines = [json.loads(line) for line in run("--json", *words).replace(os.getcwd(), "{home}").splitlines()]
        assert lacking(before, lines) == [], asked


def lacking(before, now, at="") -> list[str]:
    """Where *now* says anything else than *before*, but for further keys of objects and advice to people."""
    if isinstance(before, dict) and isinstance(now, dict):
        if before.get("kind") == MARKER:
            before = {
                key: OF_MARKERS.get(str(value), value) if key in STATES else value for key, value in before.items()
            }
        found = [f"{at}.{key} is gone" for key in before.keys() - now.keys()]
        return found + [
            each
            for key in (before.keys() & now.keys()) - ADVICE
            for each in lacking(before[key], less(now[key], before[key]) if key in GROWING else now[key], f"{at}.{key}")
        ]
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        return [
            each
            for n, (old, new) in enumerate(zip(before, now, strict=True))
            for each in lacking(old, new, f"{at}[{n}]")
        ]
    key = at.rpartition(".")[2]
    if at.startswith("[0].") and key in ("turtle", "nquads", "jsonld"):
        now = RECORD.sub("", now)
    return [] if before == now or RENAMED.get((key, str(before))) == now else [f"{at}: {before!r} became {now!r}"]


def less(now, before):
    """Those of *now* that were there *before*."""
    return [each for each in now if each in before]


def test_a_root_of_an_earlier_version_is_written_to_and_stays_whole(frozen):
    # C024
    run("remember", "written by a later version")
    again = run("--json", "submit", str(again_file(freeze.INTENTS[0])))

    assert json.loads(again)["status"] == "asserted"  # the receipt it got then, by its key
    assert "written by a later version" in run("ask", "facts")
    assert json.loads(run("--json", "journal", "verify"))["damage"] == []
    assert (
        run("--json", "agent", "working", "show")
        == json.dumps(frozen["answers"]["agent working show"][0], ensure_ascii=False) + "\n"
    )


def again_file(intent):
    path = Path("again.json")
    path.write_text(json.dumps({**freeze.WHO, "applies_to_project": "p", **intent}))
    return path


@pytest.mark.parametrize("form", ["turtle", "jsonld", "nquads"])
def test_an_export_of_an_earlier_version_comes_in(frozen, form, tmp_path):
    asked = "root export" if form == "turtle" else f"root export --format {form}"
    (tmp_path / "old").write_text(frozen["answers"][asked][0][form], "utf-8")

    run("init", "new", "--project", "p")
    taken = CliRunner().invoke(cli, ["--json", "--root", "new/.jidomem", "root", "import", form, "old"])
    became = {
        entry["iri"]: entry["became"] for entry in map(json.loads, taken.stdout.splitlines()) if "became" in entry
    }

    kept = {intent["iri"] for intent in freeze.INTENTS} - {REDACTED}
    assert {iri for iri, what in became.items() if what == "refused"} == {REDACTED}
    assert kept <= {iri for iri, what in became.items() if what == "kept"}


def test_this_version_is_frozen_once_it_is_released():
    released = re.findall(
        r"^## (\d+\.\d+\.\d+)", (HERE.parent.parent / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    )

    assert set(released) <= set(VERSIONS)
    assert jidomem.__version__ in VERSIONS
