"""The curator's pages of a real server: each with its twin, now and at past moments, quiet and while others write."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from http.client import HTTPConnection
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple
from urllib.parse import urlencode

import jidomem
from bench import frame, generate, http, load
from bench.frame import Options, Row, Spread, percentile, short
from bench.http_mixed import INTENT

GOAL_MS = 200
#: Commits a second while others write.
WRITES = 10
UI = f"/ui/{load.PROJECT}"
#: How a page is asked: as a page and as its twin, now and as of a past moment; and now while others write.
WAYS = ("now", "twin", "past", "twin, past")
WRITING = "while others write"


class Taken(NamedTuple):
    """What one answer took: seconds until it was there, of which the server reckoned so many; its bytes and status."""

    wall: float
    cpu: float
    bytes: int
    status: int


class Asking:
    """One connection to a server, whose time on the processor is read beside the clock on the wall."""

    def __init__(self, port: int, pid: int) -> None:
        self._clock = (~pid << 3) | 2  # that of all threads of a process
        self._origin = f"http://127.0.0.1:{port}"
        self._connection = HTTPConnection("127.0.0.1", port)

    def get(self, path: str, statuses: Collection[int] = (200,)) -> tuple[Taken, bytes]:
        """What it took, and the body; raise RuntimeError for a refusal that is none of *statuses*."""
        cpu, wall = time.clock_gettime(self._clock), time.perf_counter()
        self._connection.request("GET", path)
        answer = self._connection.getresponse()
        body = answer.read()
        taken = Taken(time.perf_counter() - wall, time.clock_gettime(self._clock) - cpu, len(body), answer.status)
        if answer.status not in statuses:
            raise RuntimeError(f"{path}: {answer.status} {body[:500]!r}")
        return taken, body

    def act(self, path: str, form: Mapping[str, str]) -> None:
        """Send a form as a page of the server does."""
        headers = {"Origin": self._origin, "Content-Type": "application/x-www-form-urlencoded"}
        self._connection.request("POST", path, urlencode(form), headers)
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != 303:
            raise RuntimeError(f"{path}: {answer.status} {body[:500]!r}")


class Page(NamedTuple):
    """The path of a page below the project, and the values of its arguments, of which each round has another one.

    Where the path has braces the value stands in them. One of something that is not there at every moment is asked for
    late.
    """

    path: str
    given: Mapping[str, Sequence[str]] = {}
    is_late: bool = False

    def address(self, number: int, way: str, moments: Sequence[str]) -> str:
        """Return the address that is asked in one round."""
        told = {name: values[number * 7 % len(values)] for name, values in self.given.items()}
        path, told = (self.path.format(*told.values()), {}) if "{}" in self.path else (self.path, told)
        if way.endswith("past"):
            told["as_of"] = moments[-1 if self.is_late else number % len(moments)]
        ending = ".json" if way.startswith("twin") else ""
        return f"{UI}/{path}{ending}" + (f"?{urlencode(told)}" if told else "")


def rows(options: Options) -> Iterator[Row]:
    """The first page of a server that has no texts yet, then every screen, and how it is narrowed down and gone on."""
    root = options.copy()
    with jidomem.open(root) as memory:  # a copy has no index yet
        memory.catch_up(load.PROJECT)
    with http.started(http.serve(root), "--port", None) as (port, pid):
        asking = Asking(port, pid)
        begun = time.perf_counter()
        for what in ("timeline", "review", "agents", "ontology", "health"):
            first = asking.get(f"{UI}/{what}", (200, 503))[0]
            told = f"{_ms([first.wall])} ms, {first.status}"
            yield Row(f"{what}, first of a server", "-", told, "200 is the page, 503 that it is being made")
        while asking.get(f"{UI}/timeline", (200, 503))[0].status != 200:
            time.sleep(0.5)
        yield Row("timeline, whole", "-", f"{time.perf_counter() - begun:.0f} s after the first page was asked for")
        asking.act(f"{UI}/check", {"act": "check"})
        pages, moments = _pages(asking)
        found = _measured(asking, pages, moments, options.rounds, WAYS)
        with _writing(port):
            found |= _measured(asking, pages, moments, options.rounds, (WRITING,))
        for name in pages:
            yield _row(name, found, options)
        yield Row("resident memory of the server", "-", f"{_resident(pid):.0f} MB after all of these")


def _pages(asking: Asking) -> tuple[dict[str, Page], list[str]]:
    """The pages by name, and past moments to ask them of."""
    newest = json.loads(asking.get(f"{UI}/timeline.json")[1])["days"][0]["memories"][0]
    begun, last = generate.START, datetime.fromisoformat(newest["recorded_at"])
    moments = [f"{begun + (last - begun) * share / 23:%Y-%m-%dT%H:%M:%SZ}" for share in range(3, 22)]
    found = [
        memory
        for moment in moments
        for day in json.loads(asking.get(f"{UI}/timeline.json?{urlencode({'after': f'{moment} z'})}")[1])["days"]
        for memory in day["memories"][:7]
    ]
    items, topics = [each["id"] for each in found], [each["topic"] for each in found if each["topic"]]
    return {
        "timeline": Page("timeline"),
        "timeline of a kind": Page("timeline", {"kind": ("Decision", "Fact", "Task", "LessonLearned")}),
        "timeline of an agent": Page("timeline", {"agent": [each["agent"] for each in found]}),
        "timeline of a session": Page("timeline", {"session": [each["session"] for each in found]}),
        "timeline of what ended": Page("timeline", {"state": ("ended",)}),
        "timeline, further": Page("timeline", {"after": [f"{moment} z" for moment in moments]}),
        "timeline by words": Page("timeline", {"q": [each["summary"][:40] for each in found]}),
        "memory": Page("memories/{}", {"id": items}, is_late=True),
        "review": Page("review"),
        "graph": Page("graph"),
        "graph around a memory": Page("graph", {"item": items}, is_late=True),
        "graph of a topic": Page("graph", {"topic": topics}),
        "playbook": Page("playbook"),
        "question": Page("playbook/open-tasks"),
        "console": Page("console"),
        "check": Page("check"),
        "ontology": Page("ontology"),
        "term": Page("ontology/{}", {"name": ("Decision", "Fact", "topic", "Task")}),
        "agents": Page("agents"),
        "health": Page("health"),
    }, moments


def _measured(
    asking: Asking, pages: Mapping[str, Page], moments: Sequence[str], rounds: int, ways: Sequence[str]
) -> dict[tuple[str, str], list[tuple[Taken, Taken]]]:
    """What each page took in each round, in each way, and what a file of the same server took right after it."""
    found: dict[tuple[str, str], list[tuple[Taken, Taken]]] = {(name, way): [] for name in pages for way in ways}
    asset = asking.get(f"{UI}/timeline")[1].partition(b'="/assets/')[2].partition(b'"')[0].decode()
    for number in range(rounds + 1):
        for name, way in list(found)[:: -1 if number % 2 else 1]:
            taken = asking.get(pages[name].address(number, way, moments))[0], asking.get(f"/assets/{asset}")[0]
            if number:  # the first round warms
                found[name, way].append(taken)
    return found


def _row(name: str, found: Mapping[tuple[str, str], Sequence[tuple[Taken, Taken]]], options: Options) -> Row:
    """What is promised of a page now, and what the others ways took."""
    told, middle = [], {}
    for way in (*WAYS, WRITING):
        wall, cpu = ([each[place] for each, _ in found[name, way]] for place in (0, 1))
        middle[way] = percentile(wall, 50) * 1000
        whole = f"p50 {_ms(wall)} p90 {_ms(wall, 90)} max {_ms(wall, 100)} ms"
        told.append(f"{way}: {whole}" + ("" if way == WRITING else f", CPU {_ms(cpu)} ms"))
    size = max(each.bytes for each, _ in found[name, "now"])
    ratio = Spread.ratio(*([pair[side].wall for pair in found[name, "now"]] for side in (0, 1)))
    return Row(
        f"page {name}, {options.memories:,} memories",
        f"p50 {GOAL_MS} ms",
        f"{'; '.join(told)}; {size / 1000:.0f} kB",
        f"{ratio} x a style sheet of the same server",
        max(middle.values()) <= GOAL_MS,
        {way: [[*ours, *asset] for ours, asset in found[name, way]] for way in (*WAYS, WRITING)},
    )


@contextmanager
def _writing(port: int) -> Iterator[None]:
    """Have somebody submit so many memories a second meanwhile."""
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


def _ms(seconds: Sequence[float], share: float = 50) -> str:
    return short(1000 * percentile(seconds, share))


def _resident(pid: int) -> float:
    """Megabytes of memory a process holds."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


if __name__ == "__main__":
    frame.main("bench.pages", rows)
