"""Named queries of an open root need no project, like recall and remember."""

import pytest
from conftest import intent

import jidomem
from jidomem.errors import InvalidRequest, NotFound
from jidomem.runtime.location import init

ANA = "https://jido.ai/agents/ana"


@pytest.fixture
def memory(tmp_path):
    with jidomem.open(tmp_path / "root", project="p", agent="ana") as memory:
        memory.writer.submit_intent("p", intent(type="task", summary="Ship it", assigned_to="ana"))
        yield memory


def test_a_named_query_is_answered_for_the_project_of_the_root(memory):
    assert [row["summary"] for row in memory.ask("open-tasks")] == ["Ship it"]
    assert memory.ask("open-tasks", limit=1) == memory.reader.ask("open-tasks", project="p", limit=1)
    assert memory.ask("tasks-of-agent", agent=ANA) == memory.reader.ask("tasks-of-agent", project="p", agent=ANA)


def test_parameters_and_times_are_passed_to_the_query(memory):
    assert memory.ask("open-tasks", as_of="2020-01-01") == []
    with pytest.raises(InvalidRequest, match="has no parameter 'limt'"):
        memory.ask("open-tasks", limt=1)
    with pytest.raises(NotFound, match="open-task"):
        memory.ask("open-task")


def test_a_query_of_another_project_is_selected_by_its_name(memory):
    memory.writer.submit_intent("q", intent(type="task", summary="Pack it", applies_to_project="q"))

    assert [row["summary"] for row in memory.ask("open-tasks", project="q")] == ["Pack it"]
    assert [row["summary"] for row in memory.ask("open-tasks")] == ["Ship it"]


def test_the_reader_defaults_to_the_only_project_and_requires_a_name_if_there_are_several(memory):
    assert [row["summary"] for row in memory.reader.ask("open-tasks")] == ["Ship it"]
    assert [row["summary"] for row in memory.reader.ask_page("open-tasks", limit=1).rows] == ["Ship it"]
    memory.writer.submit_intent("q", intent(applies_to_project="q"))

    with pytest.raises(InvalidRequest) as refused:
        memory.reader.ask("open-tasks")

    assert "there are the projects p, q" in refused.value.detail
    assert refused.value.hint == "give project='p'"


def test_the_reader_defaults_to_the_configured_project_of_a_root_with_several(tmp_path):
    root = init(tmp_path, "parcel")
    with jidomem.open(root) as memory:
        memory.remember("API is v1")
        memory.remember("API is v2", project="parcl")

        assert [row["summary"] for row in memory.reader.ask("facts")] == ["API is v1"]
        assert [row["summary"] for row in memory.reader.ask("facts", project="parcl")] == ["API is v2"]


def test_the_reader_of_a_root_without_a_project_refuses_a_query(tmp_path):
    with jidomem.open(tmp_path / "new") as memory, pytest.raises(InvalidRequest, match="there is no project yet"):
        memory.reader.ask("open-tasks")
