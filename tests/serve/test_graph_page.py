"""The graph of memories as a page, as JSON and in a real browser, with readable labels."""

from urllib.parse import quote

import pytest
from conftest import decision, intent
from curator_browser import NARROW, browser, needs_browser, reset_window
from http_world import Client, serving
from selenium.webdriver.common.keys import Keys

import jidomem

pytestmark = pytest.mark.usefixtures("loaded_program")
HOSTILE = "<script>document.title='owned'</script> {{ 7 * 7 }} \u202edesrever " + "W" * 80
RUNS = 310
EVIDENCE = "the load test of the third week"
#: The number of nodes, of overlapping labels, and of labels in view, as drawn.
DRAWN = """
const cy = document.getElementById('graph')._cyreg.cy, boxes = [];
const around = (node, what) => node.renderedBoundingBox({includeOverlays: false, includeEdges: false, ...what});
for (const node of cy.nodes()) {
  const box = around(node, {includeNodes: false}), shape = around(node, {includeLabels: false});
  const within = box.x1 >= shape.x1 - 1 && box.x2 <= shape.x2 + 1 && box.y1 >= shape.y1 - 1 && box.y2 <= shape.y2 + 1;
  boxes.push({...box, outside: !within});
}
let overlaps = 0;
boxes.forEach((a, at) => boxes.slice(at + 1).forEach((b) => {
  if (a.x1 < b.x2 && b.x1 < a.x2 && a.y1 < b.y2 && b.y1 < a.y2) overlaps += 1;
}));
const seen = boxes.filter((box) => box.x1 >= 0 && box.y1 >= 0 && box.x2 <= cy.width() && box.y2 <= cy.height()).length;
const size = cy.zoom() * 12;
return {count: boxes.length, overlaps, seen, size, outside: boxes.filter((box) => box.outside).length};
"""


def fill(memory):
    """Record a chain of decisions, tasks in layers, and one evidence of more facts than are drawn."""
    writer = memory.writer
    known = {"first": writer.submit_intent("p", decision(summary="Use SQLite", topic="the store")).iri}
    for name, summary in (("second", "Use Oxigraph"), ("third", HOSTILE)):
        before = [*known.values()][-1]
        values = decision(summary=summary, topic="the store", supersedes=[before], evidence=[EVIDENCE])
        known[name] = writer.submit_intent("p", values).iri
    facts = [
        intent(
            summary=f"Run {number} of the load test took {number} ms on the machine with 8 cores", evidence=[EVIDENCE]
        )
        for number in range(RUNS)
    ]
    writer.submit_many("p", facts)
    tasks = [f"https://jido.ai/memory/01900000-0000-7000-8000-{number:012x}" for number in range(100)]
    dependencies = [
        sorted({max(0, number - 1), number // 2, number * 3 // 4} - {number}) for number in range(len(tasks))
    ]
    planned = [
        intent(
            iri=task,
            type="task",
            summary=f"Migrate part {number}",
            extra_triples=[["jido:dependsOn", {"@id": tasks[each]}] for each in dependencies[number]],
        )
        for number, task in enumerate(tasks)
    ]
    writer.submit_many("p", planned)
    return known | {"task": tasks[60]}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The IRIs of the memories, and the URL they are served at."""
    root = tmp_path_factory.mktemp("graph") / "root"
    root.mkdir()
    with jidomem.open(root) as memory:
        known = fill(memory)
    with serving(root) as server:
        yield known, server.url


@pytest.fixture(scope="module")
def window(world):
    with browser(world[1]) as opened:
        yield opened


@pytest.fixture
def pages(window):
    """The browser, wide and light, without console messages."""
    yield from reset_window(window)


def address(item, **options):
    return "/ui/p/graph?" + "&".join(f"{name}={quote(str(value))}" for name, value in {"item": item, **options}.items())


@pytest.fixture
def served(world):
    """A connection to the server."""
    with Client(world[1]) as client:
        yield client


def edges(graph):
    """The edges of a graph, each node by the start of its label."""
    names = {node["id"]: node["label"].partition(" (")[0] for node in graph["nodes"]}
    return {(names[node["id"]], link["text"], names[link["to"]]) for node in graph["nodes"] for link in node["links"]}


def test_the_json_graph_has_the_neighbours_of_an_item_and_counts_further_ones(served, world):
    known, _ = world
    graph = served.get(address(known["second"], depth=1).replace("?", ".json?"))

    assert ("Use Oxigraph", "supersedes", "Use SQLite") in edges(graph)
    assert ("Use Oxigraph", "derived from", EVIDENCE) in edges(graph)
    [evidence] = [node for node in graph["nodes"] if node["group"] == "evidence"]
    assert (evidence["class"], evidence["link"], evidence["more"]) == ("Evidence", None, RUNS)
    assert [node["id"] for node in graph["nodes"] if node["start"]] == [known["second"]]
    further = served.get(evidence["graph"].replace("?", ".json?") + "&depth=1")
    assert (len(further["nodes"]), further["nodes"][0]["more"]) == (further["most"], RUNS + 3 - further["most"])


def test_a_graph_with_as_of_has_no_later_memory(served, world):
    known, _ = world
    recorded = served.get(f"/ui/p/memories/{quote(known['second'], safe='')}.json")["recorded_at"]
    graph = served.get(address(known["first"], as_of=recorded).replace("?", ".json?"))

    assert {node["id"] for node in graph["nodes"]} >= {known["first"], known["second"]}
    assert known["third"] not in {node["id"] for node in graph["nodes"]}
    assert all("as_of=" in node["graph"] for node in graph["nodes"])


def test_a_graph_starts_from_a_topic_and_an_invalid_start_is_refused(served, world):
    graph = served.get("/ui/p/graph.json?topic=the%20store&depth=0")
    assert sum(node["start"] for node in graph["nodes"]) == len(graph["nodes"]) == 3

    assert served.get("/ui/p/graph.json?topic=unheard-of")["nodes"] == []
    assert "No memories on this topic" in served.ask("GET", "/ui/p/graph?topic=unheard-of")[2].decode()
    for query in ("item=a&topic=b", "depth=9", "depth=x", "item=%3Cscript%3E", "item=urn%3Aa%20b"):
        assert served.ask("GET", f"/ui/p/graph?{query}")[0] in (400, 404)


def test_the_page_lists_the_edges_as_links_without_scripts(served, world):
    known, _ = world
    page = served.ask("GET", address(known["second"], depth=1))[2].decode()
    drawn, listed = page.partition('<details class="listed" id="listed" open>')[::2]

    assert 'id="drawn" aria-label="Picture" hidden' in drawn
    assert f'supersedes <a href="/ui/p/memories/{quote(known["first"], safe="")}">' in listed
    assert f'derived from <bdi dir="auto" class="text">{EVIDENCE}' in listed
    assert f'<a href="/ui/p/graph?item={quote(known["third"], safe="")}"' in listed


@needs_browser
def test_three_hundred_nodes_are_drawn_without_overlapping_labels(pages, world):
    known, _ = world
    for item, depth in ((known["first"], 4), (known["task"], 4)):
        pages.open(address(item, depth=depth))
        pages.find("#drawn:not([hidden])")
        drawn = pages.driver.execute_script(DRAWN)
        assert (drawn["overlaps"], drawn["outside"], drawn["seen"]) == (0, 0, drawn["count"])
        assert drawn["size"] > 6
    pages.find("[data-does=window]").click()
    drawn = pages.driver.execute_script(DRAWN)
    assert (drawn["overlaps"], drawn["outside"], drawn["seen"]) == (0, 0, drawn["count"])


@needs_browser
def test_the_graph_is_navigated_expanded_and_opened_by_keyboard(pages, world):
    known, _ = world
    pages.open(address(known["first"], depth=1))
    pages.focus_by_tab("#graph")
    assert "Use SQLite" in pages.text("#graph-one")
    pages.press(Keys.ARROW_UP)
    assert "Use Oxigraph" in pages.text("#graph-one .text")

    pages.press(Keys.ENTER)
    pages.driver.find_element("xpath", "//div[@id='graph'][@aria-label='Graph of 4 nodes']")
    assert "2 more" not in pages.text("#graph-one")
    pages.follow(pages.press, "o")
    pages.find(".known")
    assert pages.path == f"/ui/p/memories/{quote(known['second'], safe='')}"
    pages.follow(pages.link("Graph").click)
    assert pages.path.startswith("/ui/p/graph")


@needs_browser
def test_the_graph_page_is_accessible_and_escapes_the_text_of_agents(pages, world):
    known, _ = world
    for scheme in ("light", "dark"):
        pages.scheme(scheme)
        pages.open(address(known["third"], depth=1))
        pages.focus_by_tab("#graph")
        assert pages.violations() == []
    assert "<script>document.title='owned'</script> {{ 7 * 7 }} ⟨U+202E⟩desrever" in pages.text("#graph-one .text")
    assert pages.driver.title == "Graph of p · jidomem"
    pages.size(*NARROW)
    assert pages.overflow() <= 0
    pages.find("#listed summary").click()
    assert pages.overflow() <= 0
    assert pages.text("#listed").count("Use Oxigraph") == 2  # the node itself, and its successor
