"""Reads of two servers against one, on one shared root in PostgreSQL: how many questions a second they answer.

    python -m bench.servers ADDRESS [SECONDS]

ADDRESS is an empty root (postgresql://...). Each server is a process with a home of its own, and so is each of the two
clients; with one server both ask that one. Runs alternate, three of each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from time import monotonic
from urllib.parse import urlsplit

RUNS, SECONDS = 3, 5.0
ASKED = "/projects/p/queries/decisions"


def main(address: str, seconds: float) -> None:
    """Print the questions answered a second by one server and by two, and the ratio of the medians."""
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        urls = [stack.enter_context(_serving(address, Path(folder, name))) for name in ("one", "two")]
        _fill(urls[0])
        found: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(RUNS):
            for servers in found:
                found[servers].append(_asked([urls[0], urls[servers - 1]], seconds))
        for servers, each in found.items():
            print(f"{servers} servers  {median(each):,.0f} questions/s  ({', '.join(f'{one:,.0f}' for one in each)})")
        print(f"ratio {median(found[2]) / median(found[1]):.2f}")


def client(url: str, seconds: float) -> None:
    """Print how many questions *url* answered within *seconds*."""
    connection, count, end = HTTPConnection(urlsplit(url).netloc), 0, monotonic() + seconds
    while monotonic() < end:
        connection.request("GET", ASKED)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()
        count += 1
    print(count)


def _asked(urls: list[str], seconds: float) -> float:
    """Return how many questions a second clients that ask at once get answered, one for each of *urls*."""
    command = [sys.executable, "-m", "bench.servers", "--client"]
    asking = [subprocess.Popen([*command, url, str(seconds)], stdout=subprocess.PIPE) for url in urls]
    return sum(int(each.communicate()[0]) for each in asking) / seconds


def _fill(url: str) -> None:
    """Keep some decisions, which every question lists."""
    connection = HTTPConnection(urlsplit(url).netloc)
    for number in range(50):
        said = {
            "type": "decision",
            "summary": f"Decision {number}",
            "rationale": "measured",
            "topic": f"t{number}",
            "applies_to_project": "p",
            "asserted_by": "ana",
            "asserted_in": "bench",
            "confidence": "high",
        }
        connection.request("POST", "/projects/p/intents", json.dumps(said), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        told = answer.read()
        assert answer.status == 201, told


@contextmanager
def _serving(address: str, home: Path) -> Iterator[str]:
    command = [str(Path(sys.executable).parent / "jidomem"), "serve", "--root", address, "--project", "p"]
    environment = {**os.environ, "JIDOMEM_HOME": str(home), "XDG_CONFIG_HOME": f"{home}-config"}
    with subprocess.Popen(
        [*command, "--port", "0", "--json", "-q"], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()


if __name__ == "__main__":
    if sys.argv[1] == "--client":
        client(sys.argv[2], float(sys.argv[3]))
    else:
        main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else SECONDS)
