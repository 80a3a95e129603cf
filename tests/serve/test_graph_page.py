"""The graph of memories, as a page, as JSON and as a picture in a real browser, where every label can be read."""

from urllib.parse import quote

import pytest
from conftest import decision, intent
from curator_browser import NARROW, browser, needs_browser, reset_window
from http_world import Client, running
from selenium.webdriver.common.keys import Keys

import jidomem

HOSTILE = "<script>document.title='owned'</script> {{ 7 * 7 }} \u202edesrever " + "W" * 80
RUNS = 310
EVIDENCE = "the load test of the third week"
#: How many labels overlap, seen as they are drawn, of how many.
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
    """Keep a chain of decisions, tasks in layers, and one text that more facts rest on than are drawn."""
    writer = memory.writer
    known = {"first": writer.submit_intent("p", decision(summary="Use SQLite", topic="the store")).iri}
    for name, summary in (("second", "Use Oxigraph"), ("third", HOSTILE)):
        before = [*known.values()][-1]
        told = decision(summary=summary, topic="the store", supersedes=[before], evidence=[EVIDENCE])
        known[name] = writer.submit_intent("p", told).iri
    facts = [
        intent(
            summary=f"Run {number} of the load test took {number} ms on the machine with 8 cores", evidence=[EVIDENCE]
        )
        for number in range(RUNS)
    ]
    writer.submit_many("p", facts)
    tasks = [f"https://jido.ai/memory/01900000-0000-7000-8000-{number:012x}" for number in range(100)]
    needs = [sorted({max(0, number - 1), number // 2, number * 3 // 4} - {number}) for number in range(len(tasks))]
    planned = [
        intent(
            iri=task,
            type="task",
            summary=f"Migrate part {number}",
            extra_triples=[["jido:dependsOn", {"@id": tasks[each]}] for each in needs[number]],
        )
        for number, task in enumerate(tasks)
    ]
    writer.submit_many("p", planned)
    return known | {"task": tasks[60]}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The IRIs of what was kept, and the address it is served at."""
    root = tmp_path_factory.mktemp("graph") / "root"
    root.mkdir()
    with jidomem.open(root) as memory:
        known = fill(memory)
    with running(root) as server:
        yield known, server.url


@pytest.fixture(scope="module")
def window(world):
    with browser(world[1]) as opened:
        yield opened


@pytest.fixture
def pages(window):
    """The browser, wide and light, as if just opened."""
    yield from reset_window(window)


def address(item, **options):
    return "/ui/p/graph?" + "&".join(f"{name}={quote(str(value))}" for name, value in {"item": item, **options}.items())


@pytest.fixture
def served(world):
    """A connection to the server."""
    with Client(world[1]) as client:
        yield client


def said(found):
    """The links of a graph, each node by the first words of its label."""
    names = {node["id"]: node["label"].partition(" (")[0] for node in found["nodes"]}
    return {(names[node["id"]], link["text"], names[link["to"]]) for node in found["nodes"] for link in node["links"]}


def test_the_twin_has_what_is_around_an_item_and_how_much_more_there_is(served, world):
    known, _ = world
    found = served.get(address(known["second"], depth=1).replace("?", ".json?"))

    assert ("Use Oxigraph", "supersedes", "Use SQLite") in said(found)
    assert ("Use Oxigraph", "derived from", EVIDENCE) in said(found)
    [evidence] = [node for node in found["nodes"] if node["group"] == "evidence"]
    assert (evidence["class"], evidence["link"], evidence["more"]) == ("Evidence", None, RUNS)
    assert [node["id"] for node in found["nodes"] if node["start"]] == [known["second"]]
    further = served.get(evidence["graph"].replace("?", ".json?") + "&depth=1")
    assert (len(further["nodes"]), further["nodes"][0]["more"]) == (further["most"], RUNS + 3 - further["most"])


def test_the_past_of_a_graph_has_nothing_of_later(served, world):
    known, _ = world
    recorded = served.get(f"/ui/p/memories/{quote(known['second'], safe='')}.json")["recorded_at"]
    found = served.get(address(known["first"], as_of=recorded).replace("?", ".json?"))

    assert {node["id"] for node in found["nodes"]} >= {known["first"], known["second"]}
    assert known["third"] not in {node["id"] for node in found["nodes"]}
    assert all("as_of=" in node["graph"] for node in found["nodes"])


def test_a_graph_is_around_a_topic_too_and_what_is_no_place_in_it_is_refused(served, world):
    found = served.get("/ui/p/graph.json?topic=the%20store&depth=0")
    assert sum(node["start"] for node in found["nodes"]) == len(found["nodes"]) == 3

    assert served.get("/ui/p/graph.json?topic=unheard-of")["nodes"] == []
    assert "No memories on this topic" in served.ask("GET", "/ui/p/graph?topic=unheard-of")[2].decode()
    for asked in ("item=a&topic=b", "depth=9", "depth=x", "item=%3Cscript%3E", "item=urn%3Aa%20b"):
        assert served.ask("GET", f"/ui/p/graph?{asked}")[0] in (400, 404)


def test_the_page_says_the_same_in_links_to_who_runs_no_scripts(served, world):
    known, _ = world
    page = served.ask("GET", address(known["second"], depth=1))[2].decode()
    drawn, listed = page.partition('<details class="listed" id="listed" open>')[::2]

    assert 'id="drawn" aria-label="Picture" hidden' in drawn
    assert f'supersedes <a href="/ui/p/memories/{quote(known["first"], safe="")}">' in listed
    assert f'derived from <bdi dir="auto" class="text">{EVIDENCE}' in listed
    assert f'<a href="/ui/p/graph?item={quote(known["third"], safe="")}"' in listed


@needs_browser
def test_three_hundred_nodes_are_laid_out_with_no_two_labels_over_one_another(pages, world):
    known, _ = world
    for item, depth in ((known["first"], 4), (known["task"], 4)):
        pages.open(address(item, depth=depth))
        pages.one("#drawn:not([hidden])")
        drawn = pages.driver.execute_script(DRAWN)
        assert (drawn["overlaps"], drawn["outside"], drawn["seen"]) == (0, 0, drawn["count"])
        assert drawn["size"] > 6
    pages.one("[data-does=window]").click()
    drawn = pages.driver.execute_script(DRAWN)
    assert (drawn["overlaps"], drawn["outside"], drawn["seen"]) == (0, 0, drawn["count"])


@needs_browser
def test_somebody_without_a_mouse_walks_expands_and_opens_what_is_drawn(pages, world):
    known, _ = world
    pages.open(address(known["first"], depth=1))
    pages.focus_by_tab("#graph")
    assert "Use SQLite" in pages.text("#graph-one")
    pages.press(Keys.ARROW_UP)
    assert "Use Oxigraph" in pages.text("#graph-one .text")

    pages.press(Keys.ENTER)
    pages.driver.find_element("xpath", "//div[@id='graph'][@aria-label='Graph of 4 nodes']")
    assert "2 more" not in pages.text("#graph-one")
    pages.leads(pages.press, "o")
    pages.one(".known")
    assert pages.path == f"/ui/p/memories/{quote(known['second'], safe='')}"
    pages.leads(pages.link("Graph").click)
    assert pages.path.startswith("/ui/p/graph")


@needs_browser
def test_a_graph_can_be_read_by_everybody_and_what_agents_wrote_does_nothing(pages, world):
    known, _ = world
    for scheme in ("light", "dark"):
        pages.scheme(scheme)
        pages.open(address(known["third"], depth=1))
        pages.focus_by_tab("#graph")
        assert pages.faults() == []
    assert "<script>document.title='owned'</script> {{ 7 * 7 }} ⟨U+202E⟩desrever" in pages.text("#graph-one .text")
    assert pages.driver.title == "Graph of p · jidomem"
    pages.size(*NARROW)
    assert pages.overflow() <= 0
    pages.one("#listed summary").click()
    assert pages.overflow() <= 0
    assert pages.text("#listed").count("Use Oxigraph") == 2  # itself, and what took its place
