"""An agent that is killed before each durable change, and agents that are killed at any moment.

python memory_os_killed.py FOLDER commits|statements|any TIMES: prints a line of JSON for each kill with the place of
each page then, and the memory of the agent after its jobs were done. The disk changes only at a commit; with
`statements` the agent is also killed before each SQL statement.
"""

import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import time
import traceback
from contextlib import closing
from itertools import count
from pathlib import Path

import jidomem
from jidomem.base.clock import new_id
from jidomem.extras.memoryos.config import MemoryOSConfig
from jidomem.extras.memoryos.segments import TierPolicy
from jidomem.extras.memoryos.values import DialogueSegment

QUERIES = ["I work as a nurse. Always run the tests before a release.", "Which index do we use?"]
SMALL = TierPolicy(
    MemoryOSConfig(
        stm_capacity=1,
        mtm_capacity=1,
        mtm_fscore_threshold=2,
        heat_threshold=1.5,
        transfer_before_evicting=True,
        system_importance_threshold=0.1,
    )
)


def open_agent(root, **options):
    return jidomem.open(root, project="p", agent="ada").os(policy=SMALL, **options)


def step(root):
    """Insert and move pages, so that personas, system memory and the project change, and a segment is evicted."""
    ada = open_agent(root, work="queued", promote_at=0.5)
    ada.add("What is for lunch?", "Soup.")
    ada.run_jobs()
    for _ in range(2):
        ada.maintain()


def recovered_memory(root):
    """Return the place of each page, and the memory of the agent after its jobs were done."""
    memory = jidomem.open(root, project="p", agent="ada")
    ada = memory.os(policy=SMALL, work="queued", promote_at=0.5)
    places_at_kill = places(memory, ada)
    ada.retry()
    for _ in range(2):
        ada.maintain()
    facts = [fact.text for persona in ada.personas for fact in persona.knowledge]
    system = [entry.content for entry in ada.system_memory.entries]
    proposed = [row["summary"] for row in memory.reader.ask("facts", project="p")] if facts else []
    recovered = {
        "facts": sorted(facts),
        "told": sorted(system),
        "proposed": sorted(proposed),
        "jobs": len(ada.jobs()),
    }
    places_after_jobs = places(memory, ada)
    memory.close()
    return {"left": places_at_kill, "places": places_after_jobs, **recovered}


def places(memory, ada):
    """Return the places of each page, in a tier or in the archive, with repetitions."""
    tiers = ada.tiers
    located = [(page.query, "stm") for page in tiers.stm] + [(page.query, "leaving") for page in tiers.leaving]
    located += [(page.query, "mtm") for segment in tiers.mtm for page in segment.pages]
    pending = [directive.items[0].value for directive in ada._moves.storage.pending_directives()]
    with closing(sqlite3.connect(memory.settings.root / "state" / "working.sqlite")) as store:
        archived = [json.loads(text) for (text,) in store.execute("SELECT value FROM key_values").fetchall()]
    evicted = {each["id"]: each for each in [*pending, *archived]}  # it is pending until its storage is confirmed
    located += [(page.query, "kept") for each in evicted.values() for page in DialogueSegment.from_dict(each).pages]
    return sorted(located)


def killed_at(number, is_meant):
    """Kill this process before the matching call of that number."""
    calls = count(1)

    def look(frame, event, called):
        if event == "c_call" and is_meant(frame, called) and next(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(look)


def is_statement(_frame, called):
    """Return whether a call executes an SQL statement."""
    return isinstance(getattr(called, "__self__", None), sqlite3.Connection)


def is_commit(frame, called):
    """Return whether a call makes a change durable: of the state, or of the journal by a rename.

    The start of a job does not count: its changes come next.
    """
    if called is os.rename:
        return True
    statement = frame.f_locals["begin"] if frame.f_code.co_name == "_transaction" else "BEGIN"
    if statement == "BEGIN" or not is_statement(frame, called) or not called.__self__.in_transaction:
        return False
    while frame is not None and frame.f_code.co_name != "take":
        frame = frame.f_back
    return frame is None


def forked(work):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return child


def exit_code(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def each(folder, stride, is_meant):
    prepared, root = folder / "begun", folder / "root"
    ada = open_agent(prepared)
    for query in QUERIES:
        ada.add(query, "Noted.", about=("user", "ana"))
    for number in count(1, stride):
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(prepared, root)

        def work(number=number):
            killed_at(number, is_meant)
            step(root)

        code = exit_code(forked(work))
        print(json.dumps({"at": number, "code": code, **recovered_memory(root)}), flush=True)
        if code == 0:
            return


def lines(file):
    return file.read_text().splitlines() if file.exists() else []


def any_moment(folder, kills):
    root, chance, acknowledged = folder / "root", random.Random(20261122), folder / "said"

    def adding(name):
        ada = open_agent(root)
        for number in count():
            page = ada.add(f"{name} asks {number} about topic {number % 3}", new_id())
            with acknowledged.open("a") as file:
                file.write(f"{page.query}\n")

    children = {}
    for killed in range(kills):
        while len(children) < 4:
            name = f"agent {killed}-{len(children)}"
            children[name] = forked(lambda name=name: adding(name))
        before = len(lines(acknowledged))
        while len(lines(acknowledged)) < before + 3:
            assert not any(os.waitpid(child, os.WNOHANG)[0] for child in children.values()), "one ended by itself"
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.2))
        name = chance.choice([*children])
        os.kill(children[name], signal.SIGKILL)
        assert exit_code(children.pop(name)) == -signal.SIGKILL
    for child in children.values():
        os.kill(child, signal.SIGKILL)
        exit_code(child)
    print(json.dumps({"said": lines(acknowledged), **recovered_memory(root)}), flush=True)


if __name__ == "__main__":
    folder, times = Path(sys.argv[1]), int(sys.argv[3])
    if sys.argv[2] == "any":
        any_moment(folder, times)
    else:
        each(folder, times, is_commit if sys.argv[2] == "commits" else is_statement)
