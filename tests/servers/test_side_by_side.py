"""Servers side by side on one shared root: processes of `jidomem serve`, each with a home of its own."""

import json
import os
import subprocess
import time
from contextlib import ExitStack
from http.client import HTTPException
from itertools import count
from urllib.parse import quote

import pytest
from conftest import intent
from http_world import BIN, Client, running

LONG = 60.0


@pytest.fixture
def environment(tmp_path):
    """What a machine has of its own, by its name: a home, and a configuration without anything in it."""

    def of(machine):
        own = {"JIDOMEM_HOME": str(tmp_path / machine), "XDG_CONFIG_HOME": str(tmp_path / f"{machine}-config")}
        return {**os.environ, **own, "JIDOMEM_EMBEDDER": "none"}

    return of


@pytest.fixture
def serving(postgres, environment):
    """A server on the machine of that name; all of them have one root."""
    address = postgres.address()
    with ExitStack() as stack:

        def start(machine):
            process = stack.enter_context(running(address, environment=environment(machine)))
            process.address = address
            return process

        yield start


def facts(url, version=None, token=None):
    """What is known of a server's facts, from this version on."""
    with Client(url) as client:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        asked = f"/projects/p/queries/facts{f'?min_position={quote(version)}' if version else ''}"
        status, _, body = client.ask("GET", asked, headers=headers)
        return status, [row["summary"] for row in json.loads(body).get("rows", [])]


def write(url, summary, key=None):
    with Client(url) as client:
        status, receipt = client.submit(intent(summary=summary, about=[summary], idempotency_key=key or summary))
    assert status in (200, 201), receipt
    return receipt["version"]


def until(done):
    """Look again and again whether it is *done*."""
    end = time.monotonic() + LONG
    while not done():
        assert time.monotonic() < end, "it never was"
        time.sleep(0.05)


def test_what_one_server_acknowledged_any_other_answers_with_and_a_token_counts_at_all(serving, environment):
    one, two = serving("one"), serving("two")

    for number in range(5):
        here, there = (one, two) if number % 2 else (two, one)
        version = write(here.url, f"fact {number}")
        status, found = facts(there.url, version)
        assert status == 200
        assert f"fact {number}" in found
    added = [f"{BIN}/jidomem", "--root", one.address, "access", "token", "add", "ana", "--project", "p"]
    token = subprocess.run(added, env=environment("one"), capture_output=True, text=True, check=True).stdout.strip()

    until(lambda: facts(two.url)[0] == 401)
    assert facts(two.url, token=token)[0] == 200
    until(lambda: facts(one.url)[0] == 401)
    assert facts(one.url, token=token)[0] == 200


def test_servers_are_killed_and_replaced_one_after_the_other_and_nothing_acknowledged_is_lost_or_doubled(serving):
    servers = [serving("one"), serving("two")]
    acknowledged = []
    numbers = count()

    def keep_writing(times):
        """Write through whichever server answers, again under the same key where one does not."""
        for number in [next(numbers) for _ in range(times)]:
            for each in [*servers, *servers]:
                try:
                    acknowledged.append((f"fact {number}", write(each.url, f"fact {number}")))
                    break
                except (OSError, HTTPException):
                    continue
            else:
                pytest.fail("no server answered")

    keep_writing(4)
    servers[0].kill()
    keep_writing(4)
    servers.append(serving("three"))  # a machine that was never there before
    keep_writing(2)
    servers[1].terminate()
    keep_writing(4)
    servers.append(serving("one"))  # with the home that the killed one left

    for each in servers[2:]:
        status, found = facts(each.url, acknowledged[-1][1])
        assert status == 200
        assert sorted(found) == sorted({summary for summary, _ in acknowledged})
