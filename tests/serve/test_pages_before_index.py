"""Pages of a large memory without an index: none of them waits until it is built."""

import pytest
from conftest import intent, wait_until

from jidomem.index import search_index
from jidomem.serve.app import create_app

LISTS = ("timeline", "graph", "agents")
OTHERS = ("review", "playbook", "playbook/open-tasks", "console", "check", "ontology", "health")


@pytest.fixture
def client(memory, monkeypatch):
    monkeypatch.setattr(search_index, "MAX_AWAITED", 2)
    memory.writer.submit_many("p", [intent(summary=f"fact {number}") for number in range(3)])
    return create_app(memory).test_client()


@pytest.mark.parametrize("screen", LISTS)
def test_a_list_page_is_refreshed_by_the_browser_until_its_index_is_built(client, screen):
    page = client.get(f"/ui/p/{screen}")

    assert (page.status_code, page.headers["Refresh"], page.headers["Retry-After"]) == (503, "3", "1")
    assert "the index for lists and searches of p is being built" in page.text
    wait_until(lambda: client.get(f"/ui/p/{screen}").status_code == 200)
    assert client.get("/ui/p/timeline.json").json["facets"]["kind"]["values"][0]["count"] == 3


@pytest.mark.parametrize("screen", OTHERS)
def test_pages_without_a_list_are_answered_while_the_index_is_built(client, screen):
    assert client.get(f"/ui/p/{screen}").status_code == 200


def test_the_ontology_page_has_no_counts_until_the_index_is_built(client):
    page = client.get("/ui/p/ontology.json").json

    assert not page["is_counted"]
    assert {each["count"] for each in page["classes"]} == {None}
    page = wait_until(lambda: (now := client.get("/ui/p/ontology.json").json)["is_counted"] and now)
    assert {each["name"]: each["count"] for each in page["classes"]}["jido:Fact"] == 3
