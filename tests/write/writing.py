"""Helpers of the writer's tests: the triples of a memory, roots with a configuration, refusals."""

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
    """Open a root with the config.toml *config*, a deterministic clock and deterministic ids."""
    root = tmp_path / name
    root.mkdir(exist_ok=True)
    (root / "config.toml").write_text(config)
    return jidomem.open(root, sources=fixed_sources(), **options)


def triples_of(memory, project="p"):
    """Return every triple of a project's memory."""
    memory.catch_up(project)
    return set(memory.index.triples(graph_iri(project)))


def values_of(memory, item, name):
    """Return the sorted terms of one `jido:` property of *item*."""
    return sorted(o for _, _, o in memory.index.triples(GRAPH, iri(item), f"<{JIDO}{name}>"))


def committed_triples(memory, project="p"):
    """Return every triple in the verified commits of a project's memory, read from disk."""
    stream = Stream(project)
    assert memory.journal.verify(stream) == ()
    return {triple for commit in memory.journal.read(stream) for triple in commit.triples}


def refusal(call, *args, **options):
    """Return the error that *call* raises."""
    with pytest.raises(JidomemError) as caught:
        call(*args, **options)
    return caught.value


def codes(error):
    """Return the sorted codes of the violations of *error*."""
    return sorted(violation.code for violation in error.violations)
