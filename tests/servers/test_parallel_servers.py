"""Several servers on one shared root: processes of `jidomem serve`, each with a home of its own."""

import json
import os
import subprocess
from contextlib import ExitStack
from http.client import HTTPException
from itertools import count
from urllib.parse import quote

import pytest
from conftest import intent, wait_until
from http_world import BIN, Client, running

LONG = 60.0


@pytest.fixture
def environment(tmp_path):
    """The environment of a machine: a home of its own, and an empty configuration."""

    def environment_of(machine):
        own = {"JIDOMEM_HOME": str(tmp_path / machine), "XDG_CONFIG_HOME": str(tmp_path / f"{machine}-config")}
        return {**os.environ, **own, "JIDOMEM_EMBEDDER": "none"}

    return environment_of


@pytest.fixture
def start_server(postgres, environment):
    """Return a function that starts a server on the machine of a name; all of them have one root."""
    address = postgres.address()
    subprocess.run([f"{BIN}/jidomem", "--root", address, "init", "-q"], env=environment("one"), check=True)
    with ExitStack() as stack:

        def start(machine):
            process = stack.enter_context(running(address, environment=environment(machine)))
            process.address = address
            return process

        yield start


def facts(url, version=None, token=None):
    """The status and the facts of a server, from this version on."""
    with Client(url) as client:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        path = f"/projects/p/queries/facts{f'?min_position={quote(version)}' if version else ''}"
        status, _, body = client.ask("GET", path, headers=headers)
        return status, [row["summary"] for row in json.loads(body).get("rows", [])]


def write(url, summary, key=None):
    with Client(url) as client:
        status, receipt = client.submit(intent(summary=summary, about=[summary], idempotency_key=key or summary))
    assert status in (200, 201), receipt
    return receipt["version"]


def test_an_acknowledged_fact_is_read_from_any_server_and_a_token_is_required_by_all(start_server, environment):
    first, second = start_server("one"), start_server("two")

    for number in range(5):
        target, other = (first, second) if number % 2 else (second, first)
        version = write(target.url, f"fact {number}")
        status, summaries = facts(other.url, version)
        assert status == 200
        assert f"fact {number}" in summaries
    command = [f"{BIN}/jidomem", "--root", first.address, "access", "token", "add", "ana", "--project", "p"]
    token = subprocess.run(command, env=environment("one"), capture_output=True, text=True, check=True).stdout.strip()

    wait_until(lambda: facts(second.url)[0] == 401)
    assert facts(second.url, token=token)[0] == 200
    wait_until(lambda: facts(first.url)[0] == 401)
    assert facts(first.url, token=token)[0] == 200


def test_servers_replaced_one_after_the_other_lose_and_duplicate_no_acknowledged_fact(start_server):
    servers = [start_server("one"), start_server("two")]
    acknowledged = []
    numbers = count()

    def write_facts(times):
        """Write through any server that answers, again under the same key where one does not."""
        for number in [next(numbers) for _ in range(times)]:
            for each in [*servers, *servers]:
                try:
                    acknowledged.append((f"fact {number}", write(each.url, f"fact {number}")))
                    break
                except (OSError, HTTPException):
                    continue
            else:
                pytest.fail("no server answered")

    write_facts(4)
    servers[0].kill()
    write_facts(4)
    servers.append(start_server("three"))  # a machine without a home
    write_facts(2)
    servers[1].terminate()
    write_facts(4)
    servers.append(start_server("one"))  # with the home of the killed server

    for each in servers[2:]:
        status, summaries = facts(each.url, acknowledged[-1][1])
        assert status == 200
        assert sorted(summaries) == sorted({summary for summary, _ in acknowledged})
