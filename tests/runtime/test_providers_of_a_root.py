"""The providers of an open root: in memory, in the state of the root, and in the memory of its project."""

import pytest
from conftest import files

import jidomem
from jidomem.errors import NotFound
from jidomem.providers import execute_directive
from jidomem.records.directive import MemoryQuery, lookup, remember


def open_root(root, project="p", agent="planner"):
    return jidomem.open(root, project=project, agent=agent)


def values(providers, directive):
    return [row["value"] for row in execute_directive(directive, providers).data["result"]]


def test_kept_values_are_stored_for_the_agent_and_the_project(tmp_path):
    with open_root(tmp_path) as memory:
        providers = memory.providers()
        assert providers.names == ("inline", "kept", "graph")
        assert execute_directive(remember("plan", {"steps": ["test"]}, provider="kept"), providers).ok
        memory.agent().update(lambda current: current.world_put("a", 1))

    directive = lookup("plan", provider="kept")
    with open_root(tmp_path) as memory:
        assert values(memory.providers(), directive) == [{"steps": ["test"]}]
        assert values(memory.providers(project="q"), directive) == []
        assert memory.agent().get().world_get("a") == 1
    with open_root(tmp_path, agent="ana") as memory:
        assert values(memory.providers(), directive) == []


def test_the_graph_provider_uses_the_named_project(tmp_path):
    with open_root(tmp_path) as memory:
        providers = memory.providers(project="q")
        assert execute_directive(remember("planner:fact", "it embeds", provider="graph"), providers).ok

        rows = execute_directive(MemoryQuery(query={"name": "facts"}, provider="graph"), providers).data["result"]
        assert [row["key"] for row in rows] == ["planner:fact"]
        assert [row["summary"] for row in memory.reader.ask("facts", project="q")] == ["it embeds"]
        with pytest.raises(NotFound, match="'A B' is not a project id"):
            memory.providers(project="A B")


def test_providers_write_nothing_before_a_directive(tmp_path):
    with open_root(tmp_path) as memory:
        memory.providers()

    assert files(tmp_path) == {}
