"""A root that lies in PostgreSQL, used by two machines, each of which has a copy of its own."""

import os
import subprocess
import sys

import pytest
from conftest import decision, intent

import jidomem
from jidomem.errors import Conflict
from jidomem.journal.files import Stream


@pytest.fixture
def address(postgres):
    return postgres.address()


@pytest.fixture
def opened(address, tmp_path, monkeypatch):
    """Open the root as the machine of that name does."""
    memories = []

    def opened(machine="here", **options):
        monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / machine))
        memories.append(jidomem.open(address, project="p", **options))
        return memories[-1]

    yield opened
    for memory in memories:
        memory.close()


def jidomem_here(address, home, *words):
    """Run the command line in a process of its own, on the machine with *home*."""
    environment = {**os.environ, "JIDOMEM_ROOT": address, "JIDOMEM_HOME": str(home), "JIDOMEM_PROJECT": "p"}
    return subprocess.run(
        [sys.executable, "-m", "jidomem_cli.main", *words], env=environment, capture_output=True, text=True
    )


def test_what_one_machine_keeps_another_answers_with(opened):
    here, there = opened("here"), opened("there")
    receipt = here.writer.submit_intent("p", decision(topic="index"))

    assert [row["decision"] for row in there.reader.ask("decisions", project="p")] == [receipt.iri]
    with pytest.raises(Conflict):
        there.writer.submit_intent("p", decision(topic="index", summary="Use another"))
    second = there.writer.submit_intent("p", decision(topic="index", summary="Use another", supersedes=[receipt.iri]))
    assert [row["decision"] for row in here.reader.ask("decisions", project="p")] == [second.iri]
    assert here.journal.verify(Stream("p")) == there.journal.verify(Stream("p")) == ()
    assert here.settings.place == there.settings.place
    assert here.settings.root != there.settings.root


def test_a_redaction_reaches_every_copy(opened):
    here, there = opened("here"), opened("there")
    kept = here.writer.submit_intent("p", intent(summary="the door code is 4711-hunter2"))
    there.catch_up("p")

    plan = here.keeper.plan("p", item=kept.iri)
    here.keeper.redact(plan, agent="architect", reason="it is a secret")

    assert there.reader.select("p", "SELECT ?s { ?i <https://jido.ai/ontology#summary> ?s }") == []
    for memory in (here, there):
        memory.catch_up("p")
        texts = [path.read_bytes() for path in (memory.settings.root / "projects").rglob("*.ttl")]
        assert texts
        assert not any(b"hunter2" in text for text in texts)
        assert memory.journal.verify(Stream("p")) == ()
