"""The picture of the graph in a real browser: 300 memories laid out in a window of 1440 by 900, beside dagre alone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from urllib.parse import urlencode

import jidomem
from bench import frame, http
from bench.frame import Options, Row, Spread, percentile, short

GOAL_MS = 1_000
NODES, WIDTH, HEIGHT = 300, 1440, 900
PROJECT = "bench"
COMMON_FIELDS: Mapping[str, Any] = {
    "applies_to_project": PROJECT,
    "asserted_by": "architect",
    "asserted_in": "s-1",
    "confidence": "high",
}
#: Milliseconds of the layout, milliseconds from the request until it is shown, and the number of nodes.
PLACED = """const [found] = performance.getEntriesByName("graph-layout");
const nodes = document.getElementById("graph")._cyreg.cy.nodes().length;
return [found.duration, found.startTime + found.duration, nodes];"""
#: Milliseconds in which dagre alone, with its defaults, lays out the same graph.
DAGRE = """const cy = document.getElementById("graph")._cyreg.cy, began = performance.now();
cy.layout({name: "dagre", animate: false}).run();
return performance.now() - began;"""


def rows(options: Options) -> Iterator[Row]:
    """Tasks that need each other in layers, and facts that rest on one text."""
    if not all(map(shutil.which, ("chromium", "chromedriver"))):
        yield Row("graph in a browser", f"{GOAL_MS} ms", "not measured", "there is no chromium with chromium-driver")
        return
    root = Path(mkdtemp(dir=options.folder)) / "root"
    starts = fill(root)
    with http.started(http.serve(root), "--port", None) as (port, _), browser() as driver:
        for what, item in starts.items():
            address = f"http://127.0.0.1:{port}/ui/{PROJECT}/graph?{urlencode({'item': item, 'depth': 4})}"
            yield _row(what, [_shown(driver, address) for _ in range(options.rounds + 1)][1:])  # the first round warms


def fill(root: Path) -> dict[str, str]:
    """Write the memories to *root*; return the central memory of each graph by its description."""
    tasks = [f"https://jido.ai/memory/01900000-0000-7000-8000-{number:012x}" for number in range(2 * NODES)]
    needs = [
        sorted({max(0, number - 1), number // 2, number * 2 // 3, number * 3 // 4} - {number})
        for number in range(2 * NODES)
    ]
    planned = [
        {
            **COMMON_FIELDS,
            "iri": task,
            "type": "task",
            "summary": f"Migrate part {number} of the store",
            "extra_triples": [["jido:dependsOn", {"@id": tasks[each]}] for each in needs[number]],
        }
        for number, task in enumerate(tasks)
    ]
    facts = [
        {
            **COMMON_FIELDS,
            "type": "fact",
            "summary": f"Run {number} took {number} ms with 8 cores",
            "evidence": ["the load test"],
        }
        for number in range(NODES)
    ]
    root.mkdir()
    with jidomem.open(root) as memory:
        memory.writer.submit_many(PROJECT, planned)
        [first, *_] = memory.writer.submit_many(PROJECT, facts)
    return {"tasks that need each other": tasks[NODES // 5], "facts that rest on one text": str(first.iri)}


@contextmanager
def browser() -> Iterator[Any]:
    """Run chromium with a window of that size."""
    from selenium.webdriver import Chrome, ChromeOptions  # of the tests, as the browser is
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    driver = Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.implicitly_wait(60)
        yield driver
    finally:
        driver.quit()


def _shown(driver: Any, address: str) -> list[float]:
    """Milliseconds of the layout, until it is shown, the number of nodes, and milliseconds of dagre alone."""
    driver.get(address)
    driver.find_element("css selector", "#drawn:not([hidden])")
    return [*driver.execute_script(PLACED), driver.execute_script(DAGRE)]


def _row(what: str, times: list[list[float]]) -> Row:
    placed, there, nodes, dagre = zip(*times, strict=True)
    return Row(
        f"graph of {min(nodes)} {what}, {WIDTH} x {HEIGHT}",
        f"laid out in {GOAL_MS} ms",
        f"p50 {short(percentile(placed, 50))} max {max(placed):.0f} ms, in view {short(percentile(there, 50))} ms"
        " after the page was asked for",
        f"{Spread.ratio(placed, dagre)} x dagre alone, as it comes",
        percentile(placed, 50) <= GOAL_MS,
        {"milliseconds": times},
    )


if __name__ == "__main__":
    frame.main("bench.graph_page", rows)
