"""The curator's pages over HTTP: latency and CPU time of each page and its JSON form, beside a style sheet.

    python -m bench.pages [--memories N] [--rounds N]

Each page is requested now, as JSON, as of past moments, and now while another client writes ten memories a second. The
first row of a page is its first request to a new server.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from http.client import HTTPConnection
from threading import Event, Thread
from typing import NamedTuple
from urllib.parse import urlencode

import jidomem
from bench import generate, harness, http, load
from bench.harness import Options, Row, Spread, percentile, rounded
from bench.http_mixed import INTENT

GOAL_MS = 200
#: Commits a second while others write.
WRITES = 10
UI = f"/ui/{load.PROJECT}"
#: The variants of a request: HTML or JSON, now or as of a past moment.
VARIANTS = ("now", "JSON", "past", "JSON, past")
WRITING = "while others write"


class Latency(NamedTuple):
    """One response: wall-clock seconds, CPU seconds of the server, size in bytes, and HTTP status."""

    wall: float
    cpu: float
    bytes: int
    status: int


class Client:
    """One connection to a server, which measures wall-clock time and the CPU time of the server."""

    def __init__(self, port: int, pid: int) -> None:
        self._clock = (~pid << 3) | 2  # the CPU clock of all threads of a process
        self._origin = f"http://127.0.0.1:{port}"
        self._connection = HTTPConnection("127.0.0.1", port)

    def get(self, path: str, statuses: Collection[int] = (200,)) -> tuple[Latency, bytes]:
        """Return the latency and the body; raise RuntimeError if the status is none of *statuses*."""
        cpu, wall = time.clock_gettime(self._clock), time.perf_counter()
        self._connection.request("GET", path)
        response = self._connection.getresponse()
        body = response.read()
        latency = Latency(time.perf_counter() - wall, time.clock_gettime(self._clock) - cpu, len(body), response.status)
        if response.status not in statuses:
            raise RuntimeError(f"{path}: {response.status} {body[:500]!r}")
        return latency, body

    def post(self, path: str, form: Mapping[str, str]) -> None:
        """Send a form as a page of the server does; raise RuntimeError if it is refused."""
        headers = {"Origin": self._origin, "Content-Type": "application/x-www-form-urlencoded"}
        self._connection.request("POST", path, urlencode(form), headers)
        response = self._connection.getresponse()
        body = response.read()
        if response.status != 303:
            raise RuntimeError(f"{path}: {response.status} {body[:500]!r}")


class Page(NamedTuple):
    """The path of a page below the project, and for each argument the values that the rounds take in turn.

    Braces in the path stand for the value. A late page shows something that does not exist at earlier moments.
    """

    path: str
    arguments: Mapping[str, Sequence[str]] = {}
    is_late: bool = False

    def address(self, number: int, variant: str, moments: Sequence[str]) -> str:
        """Return the address that is requested in one round."""
        values = {name: values[number * 7 % len(values)] for name, values in self.arguments.items()}
        path, values = (self.path.format(*values.values()), {}) if "{}" in self.path else (self.path, values)
        if variant.endswith("past"):
            values["as_of"] = moments[-1 if self.is_late else number % len(moments)]
        ending = ".json" if variant.startswith("JSON") else ""
        return f"{UI}/{path}{ending}" + (f"?{urlencode(values)}" if values else "")


def rows(options: Options) -> Iterator[Row]:
    """Yield the first request of pages to a new server, then each page, filtered and paged forms included."""
    root = options.copy_root()
    with jidomem.open(root) as memory:  # builds the index: a copy has none
        memory.catch_up(load.PROJECT)
    with http.run_jidomem(root) as (port, pid):
        client = Client(port, pid)
        start = time.perf_counter()
        for page_name in ("timeline", "review", "agents", "ontology", "health"):
            first = client.get(f"{UI}/{page_name}", (200, 503))[0]
            measured = f"{_ms([first.wall])} ms, {first.status}"
            yield Row(f"{page_name}, first request", "-", measured, "503: the search index is being built")
        while client.get(f"{UI}/timeline", (200, 503))[0].status != 200:
            time.sleep(0.5)
        yield Row("timeline, complete", "-", f"{time.perf_counter() - start:.0f} s after the first request")
        client.post(f"{UI}/check", {"act": "check"})
        pages, moments = _pages(client)
        latencies = _measure(client, pages, moments, options.rounds, VARIANTS)
        with _background_writes(port):
            latencies |= _measure(client, pages, moments, options.rounds, (WRITING,))
        for name in pages:
            yield _row(name, latencies, options)
        yield Row("resident memory of the server", "-", f"{harness.resident_bytes(pid) / 2**20:.0f} MB afterwards")


def _pages(client: Client) -> tuple[dict[str, Page], list[str]]:
    """Return the pages by name, and past moments."""
    newest = json.loads(client.get(f"{UI}/timeline.json")[1])["days"][0]["memories"][0]
    start, last = generate.START, datetime.fromisoformat(newest["recorded_at"])
    moments = [f"{start + (last - start) * share / 23:%Y-%m-%dT%H:%M:%SZ}" for share in range(3, 22)]
    memories = [
        memory
        for moment in moments
        for day in json.loads(client.get(f"{UI}/timeline.json?{urlencode({'after': f'{moment} z'})}")[1])["days"]
        for memory in day["memories"][:7]
    ]
    items, topics = [each["id"] for each in memories], [each["topic"] for each in memories if each["topic"]]
    return {
        "timeline": Page("timeline"),
        "timeline of a kind": Page("timeline", {"kind": ("Decision", "Fact", "Task", "LessonLearned")}),
        "timeline of an agent": Page("timeline", {"agent": [each["agent"] for each in memories]}),
        "timeline of a session": Page("timeline", {"session": [each["session"] for each in memories]}),
        "timeline of ended memories": Page("timeline", {"state": ("ended",)}),
        "timeline, next page": Page("timeline", {"after": [f"{moment} z" for moment in moments]}),
        "timeline by words": Page("timeline", {"q": [each["summary"][:40] for each in memories]}),
        "memory": Page("memories/{}", {"id": items}, is_late=True),
        "review": Page("review"),
        "graph": Page("graph"),
        "graph around a memory": Page("graph", {"item": items}, is_late=True),
        "graph of a topic": Page("graph", {"topic": topics}),
        "playbook": Page("playbook"),
        "named query": Page("playbook/open-tasks"),
        "console": Page("console"),
        "check": Page("check"),
        "ontology": Page("ontology"),
        "term": Page("ontology/{}", {"name": ("Decision", "Fact", "topic", "Task")}),
        "agents": Page("agents"),
        "health": Page("health"),
    }, moments


def _measure(
    client: Client, pages: Mapping[str, Page], moments: Sequence[str], rounds: int, variants: Sequence[str]
) -> dict[tuple[str, str], list[tuple[Latency, Latency]]]:
    """Return the latencies of each page and variant, round by round, each with that of a style sheet right after it."""
    latencies: dict[tuple[str, str], list[tuple[Latency, Latency]]] = {
        (name, variant): [] for name in pages for variant in variants
    }
    asset = client.get(f"{UI}/timeline")[1].partition(b'="/assets/')[2].partition(b'"')[0].decode()
    for number, (name, variant) in harness.alternate(latencies, rounds + 1):
        latency = client.get(pages[name].address(number, variant, moments))[0], client.get(f"/assets/{asset}")[0]
        if number:  # the first round warms
            latencies[name, variant].append(latency)
    return latencies


def _row(name: str, latencies: Mapping[tuple[str, str], Sequence[tuple[Latency, Latency]]], options: Options) -> Row:
    """Return the row of one page, with the latencies of all variants."""
    words, medians = [], {}
    for variant in (*VARIANTS, WRITING):
        wall, cpu = ([each[place] for each, _ in latencies[name, variant]] for place in (0, 1))
        medians[variant] = percentile(wall, 50) * 1000
        latency_words = f"p50 {_ms(wall)} p90 {_ms(wall, 90)} max {_ms(wall, 100)} ms"
        words.append(f"{variant}: {latency_words}" + ("" if variant == WRITING else f", CPU {_ms(cpu)} ms"))
    size = max(each.bytes for each, _ in latencies[name, "now"])
    ratio = Spread.ratio(*([pair[side].wall for pair in latencies[name, "now"]] for side in (0, 1)))
    return Row(
        f"page {name}, {options.memories:,} memories",
        f"p50 {GOAL_MS} ms",
        f"{'; '.join(words)}; {size / 1000:.0f} kB",
        f"{ratio} x a style sheet of the same server",
        max(medians.values()) <= GOAL_MS,
        {variant: [[*ours, *asset] for ours, asset in latencies[name, variant]] for variant in (*VARIANTS, WRITING)},
    )


@contextmanager
def _background_writes(port: int) -> Iterator[None]:
    """Submit WRITES memories a second in the background."""
    done, connection = Event(), HTTPConnection("127.0.0.1", port)

    def write() -> None:
        number, start = 0, time.monotonic()
        while not done.wait(max(0.0, start + number / WRITES - time.monotonic())):
            number += 1
            body = json.dumps(INTENT).replace("NUMBER", f"{number} of the pages")
            path = f"/projects/{load.PROJECT}/intents"
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            connection.getresponse().read()

    writer = Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        done.set()
        writer.join()


def _ms(seconds: Sequence[float], percent: float = 50) -> str:
    return rounded(1000 * percentile(seconds, percent))


if __name__ == "__main__":
    harness.main("bench.pages", rows)
