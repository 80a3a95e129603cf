"""The graph page in chromium: layout of 300 memories in a window of 1440 by 900, beside dagre alone on the same graph.

    python -m bench.graph_page [--rounds N]

It needs chromium and chromium-driver, and the test dependencies (selenium).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from urllib.parse import urlencode

import jidomem
from bench import harness, http, load
from bench.harness import Options, Row, Spread, percentile, rounded

GOAL_MS = 1_000
NODES, WIDTH, HEIGHT = 300, 1440, 900
#: Returns the milliseconds of the layout, those from the request until it is visible, and the number of nodes.
MEASURE_PAGE = """const [layout] = performance.getEntriesByName("graph-layout");
const nodes = document.getElementById("graph")._cyreg.cy.nodes().length;
return [layout.duration, layout.startTime + layout.duration, nodes];"""
#: Returns the milliseconds in which dagre alone, with its defaults, lays out the same graph.
MEASURE_DAGRE = """const cy = document.getElementById("graph")._cyreg.cy, start = performance.now();
cy.layout({name: "dagre", animate: false}).run();
return performance.now() - start;"""


def rows(options: Options) -> Iterator[Row]:
    """Yield a row for a graph of tasks with layered dependencies, and one for facts with one piece of evidence."""
    if not all(map(shutil.which, ("chromium", "chromedriver"))):
        yield Row(
            "graph in a browser", f"{GOAL_MS} ms", "not measured", "chromium and chromium-driver are not installed"
        )
        return
    root = Path(mkdtemp(dir=options.folder)) / "root"
    centers = write_graphs(root)
    with http.run_jidomem(root) as (port, _), browser() as driver:
        for label, item in centers.items():
            address = f"http://127.0.0.1:{port}/ui/{load.PROJECT}/graph?{urlencode({'item': item, 'depth': 4})}"
            yield _row(
                label, [_measure_page(driver, address) for _ in range(options.rounds + 1)][1:]
            )  # the first round warms


def write_graphs(root: Path) -> dict[str, str]:
    """Write the memories to *root*; return the IRI of the central memory of each graph by its description."""
    tasks = [f"https://jido.ai/memory/01900000-0000-7000-8000-{number:012x}" for number in range(2 * NODES)]
    dependencies = [
        sorted({max(0, number - 1), number // 2, number * 2 // 3, number * 3 // 4} - {number})
        for number in range(2 * NODES)
    ]
    task_intents = [
        {
            **load.COMMON_FIELDS,
            "iri": task,
            "type": "task",
            "summary": f"Migrate part {number} of the store",
            "extra_triples": [["jido:dependsOn", {"@id": tasks[each]}] for each in dependencies[number]],
        }
        for number, task in enumerate(tasks)
    ]
    facts = [
        {
            **load.COMMON_FIELDS,
            "type": "fact",
            "summary": f"Run {number} took {number} ms with 8 cores",
            "evidence": ["the load test"],
        }
        for number in range(NODES)
    ]
    root.mkdir()
    with jidomem.open(root) as memory:
        memory.writer.submit_many(load.PROJECT, task_intents)
        [first, *_] = memory.writer.submit_many(load.PROJECT, facts)
    return {"dependent tasks": tasks[NODES // 5], "facts with one piece of evidence": str(first.iri)}


@contextmanager
def browser() -> Iterator[Any]:
    """Run chromium with a window of WIDTH by HEIGHT; yield its driver."""
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


def _measure_page(driver: Any, address: str) -> list[float]:
    """Return the milliseconds of the layout and until it is visible, the number of nodes, and those of dagre alone."""
    driver.get(address)
    driver.find_element("css selector", "#drawn:not([hidden])")
    return [*driver.execute_script(MEASURE_PAGE), driver.execute_script(MEASURE_DAGRE)]


def _row(label: str, times: list[list[float]]) -> Row:
    layout, visible, nodes, dagre = zip(*times, strict=True)
    return Row(
        f"graph of {min(nodes)} {label}, {WIDTH} x {HEIGHT}",
        f"laid out in {GOAL_MS} ms",
        f"p50 {rounded(percentile(layout, 50))} max {max(layout):.0f} ms, visible {rounded(percentile(visible, 50))} ms"
        " after the request",
        f"{Spread.ratio(layout, dagre)} x dagre alone, with its defaults",
        percentile(layout, 50) <= GOAL_MS,
        {"milliseconds": times},
    )


if __name__ == "__main__":
    harness.main("bench.graph_page", rows)
