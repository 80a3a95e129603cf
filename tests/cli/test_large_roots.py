"""A cloned root with a file that takes much memory or time to read: every verb ends within limits."""

import json
import shutil
import subprocess
import sys

import pytest
from conftest import intent
from every_verb import calls
from test_linked_roots import backup, clone, places  # noqa: F401  # the fixtures

import jidomem

#: Runs Python and prints the maximum number of bytes of memory of its processes.
MEASURED = """
import json, resource, subprocess, sys
done = subprocess.run([sys.executable, *sys.argv[1:]], capture_output=True, text=True, check=True)
most = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(json.dumps([most, json.loads(done.stdout)]))
"""
#: Runs verbs in order, and prints the exit code and the output of each.
VERBS = """
import json, sys
from click.testing import CliRunner
from jidomem_cli.main import cli
ends = [CliRunner().invoke(cli, words, input="") for words in json.loads(sys.argv[1])]
print(json.dumps([[end.exit_code, end.output[:100_000]] for end in ends]))
"""
MEMORY_LIMIT = 500_000_000
COMMIT = "20261121T080000.000000Z-000000000000.ttl"
PACK = f"pack-{COMMIT}"
#: A generous limit: on an idle machine no verb takes five seconds.
SECONDS = 60


def sparse(path, size, head=b""):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        file.write(head)
        file.truncate(size)


def document(text):
    return lambda path, head: path.write_bytes(head + b"<urn:jido:commit:" + b"0" * 64 + b">\n" + text)


def write_long_subject(path, head):
    rows = b"".join(b"    jido:p%d jido:x ;\n" % number for number in range(20_000))
    path.write_bytes(head + b"<urn:x:" + b"0" * 1_000_000 + b">\n" + rows[:-2] + b".\n")


def text(content):
    def write(path, head):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    return write


#: kind -> the path below the root ({} is the stream), a function that writes it, whether opening the root names it.
ROOTS = {
    "a commit of 600 MB that begins well": ("{}/" + COMMIT, lambda path, head: sparse(path, 600_000_000, head), True),
    "a commit of nested brackets": ("{}/" + COMMIT, document(b"    a " + b"[a" * 3_000_000 + b"\n"), True),
    "a commit of nested lists": ("{}/" + COMMIT, document(b"    a " + b"(" * 6_000_000 + b"\n"), True),
    "a commit that repeats a long subject": ("{}/" + COMMIT, write_long_subject, True),
    "a lock of 3 GB": ("{}/.lock", lambda path, head: sparse(path, 3_000_000_000), False),
    "a configuration of nested lists": ("config.toml", text('project = "p"\nx = ' + "[" * 60_000), True),
    "a configuration of one long key": ("config.toml", text(".".join(["a"] * 60_000) + " = 1\n"), True),
    "a configuration of 3 GB": ("config.toml", lambda path, head: sparse(path, 3_000_000_000), True),
    "a baseline of one long key": ("baseline.toml", text(".".join(["a"] * 500_000) + " = 1\n"), False),
    "terms of nested brackets": ("ontology/own.ttl", text("<urn:a> <urn:b> " + "[a" * 3_000_000), True),
    "a question of nested brackets": ("queries/mine/own.rq", text("ASK { " + "{ " * 100_000), True),
    "a snapshot of nested lists": ("index/snapshots/0/snapshot.json", text("[" * 15_000_000), False),
    "rules of the guard of nested lists": ("cache/guard/p.json", text("[" * 1_000_000), False),
}


def add_spoiled_file(root, kind):
    """Write the file of a kind into a root, and return its path and whether it is named."""
    place, make, is_named = ROOTS[kind]
    stream = root / "projects" / "p" / "memory"
    head = min(stream.glob("*.ttl")).read_bytes().partition(b"\n\n")[0] + b"\n\n"
    path = root / place.format("projects/p/memory")
    make(path, head)
    return path, is_named


def run_measured(cwd, words):
    """Run the verbs of *words* in order; return the maximum memory, and the exit code and output of each."""
    command = [sys.executable, "-c", MEASURED, "-c", VERBS, json.dumps(words)]
    seconds = SECONDS * (5 if len(words) > 10 else 1)
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=seconds, check=True)
    return json.loads(result.stdout)


@pytest.mark.parametrize("first", range(4))  # several kinds in one process, as its start takes half of the time
def test_opening_a_spoiled_root_uses_little_memory_and_names_the_file(clone, tmp_path, first):  # noqa: F811
    kinds = list(ROOTS)[first::4]
    roots = [shutil.copytree(clone, tmp_path / str(number)) for number, _ in enumerate(kinds)]
    spoiled = [add_spoiled_file(root, kind) for root, kind in zip(roots, kinds, strict=True)]
    lines = ("status", "check", "journal verify", "remember it-is", "status --doctor --full", "guard a.py")
    verbs = [line.split() for line in lines]

    most, ends = run_measured(clone.parent, [[*verb, "--root", str(root)] for root in roots for verb in verbs])

    assert most < MEMORY_LIMIT
    for kind, (path, is_named) in zip(kinds, spoiled, strict=True):
        for verb in verbs:
            code, output = ends.pop(0)
            assert "this is a bug" not in output, (kind, verb, output)
            is_shown = "/".join(path.parts[-2:]) in output
            assert not is_named or verb[0] == "guard" or is_shown, (kind, verb, code, output[:2000])
    assert ends == []


def test_every_verb_finishes_on_a_root_with_very_large_files(clone, places):  # noqa: F811
    stream = clone / "projects" / "p" / "memory"
    for name, size, head in ((f"{COMMIT}.aside", 3_000_000_000, b""), (COMMIT, 600_000_000, b""),
                             (PACK, 600_000_000, b"# jidomem pack 1\n# commits 1\n")):  # fmt: skip
        sparse(stream / name, size, head)
    verbs = [call.words(**places) for call in calls() if call.verb not in ("init", "mcp")]

    most, ends = run_measured(clone.parent, [[*verb, "--root", str(clone)] for verb in verbs])

    assert most < MEMORY_LIMIT
    assert [(verb, output) for verb, (_, output) in zip(verbs, ends, strict=True) if "this is a bug" in output] == []
    outputs = {" ".join(verb): output for verb, (_, output) in zip(verbs, ends, strict=True)}
    for verb in ("status", "check", "journal verify", "recall x"):
        assert all(f"memory/{name}" in outputs[verb] for name in (COMMIT, PACK)), (verb, outputs[verb][:2000])


def test_a_submission_too_large_for_a_commit_is_refused_alone(clone, monkeypatch):  # noqa: F811
    from jidomem.journal import commit
    from jidomem.write import group_commit

    monkeypatch.setattr(commit, "BYTES_BUILT", 50_000)
    monkeypatch.setattr(group_commit, "BLOCK_CHARACTERS", 40_000)
    intents = [intent(summary=f"fact {number}", rationale="x" * (60_000 if number == 2 else 10)) for number in range(5)]
    with jidomem.open(clone) as memory:
        outcomes = memory.writer.submit_many("p", intents)

    assert [getattr(each, "code", "kept") for each in outcomes] == ["kept"] * 2 + ["payload_too_large"] + ["kept"] * 2
    assert "it has at most 50,000" in outcomes[2].detail
