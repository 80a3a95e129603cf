"""Shared parts of the writer's tests: the triples of a memory, roots with a configuration, refusals."""

import pytest
from conftest import fixed_sources

import jidomem
from jidomem.errors import JidomemError
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import iri
from jidomem.rdf.vocab import JIDO, graph_iri

GRAPH = graph_iri("p")
MEMORY = "https://jido.ai/memory/"


def open_with(tmp_path, config="", name="root", **options):
    """A root with the config.toml *config*, opened with a repeatable clock and repeatable ids."""
    root = tmp_path / name
    root.mkdir(exist_ok=True)
    (root / "config.toml").write_text(config)
    return jidomem.open(root, sources=fixed_sources(), **options)


def held(memory, project="p"):
    """Every triple of a project's memory."""
    memory.catch_up(project)
    return set(memory.index.triples(graph_iri(project)))


def said(memory, item, name):
    """The values of one `jido:` property of *item*, as terms, sorted."""
    return sorted(o for _, _, o in memory.index.triples(GRAPH, iri(item), f"<{JIDO}{name}>"))


def journalled(memory, project="p"):
    """Every triple in the commits of a project's memory, read again from disk and verified."""
    stream = Stream(project)
    assert memory.journal.verify(stream) == ()
    return {triple for commit in memory.journal.read(stream) for triple in commit.triples}


def refusal(call, *args, **more):
    """The error *call* raises."""
    with pytest.raises(JidomemError) as caught:
        call(*args, **more)
    return caught.value


def codes(error):
    """The codes of the broken rules an error lists, sorted."""
    return sorted(violation.code for violation in error.violations)
