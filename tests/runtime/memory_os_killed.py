"""An agent that is killed at each statement it says to the file, and agents that are killed at any moment.

python memory_os_killed.py FOLDER each|any TIMES: says in a line of JSON for each kill where each page is then, and what
the agent holds once its jobs were done.
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
from itertools import count
from pathlib import Path

import jidomem
from jidomem.clock import new_id
from jidomem.memoryos.config import MemoryOSConfig
from jidomem.memoryos.scores import Policy
from jidomem.memoryos.values import DialogueSegment

HELD = ["I work as a nurse. Always run the tests before a release.", "Which index do we use?"]
SMALL = Policy(
    MemoryOSConfig(
        stm_capacity=1,
        mtm_capacity=1,
        mtm_fscore_threshold=2,
        heat_threshold=1.5,
        transfer_before_evicting=True,
        system_importance_threshold=0.1,
    )
)


def opened(root, **given):
    return jidomem.open(root, project="p", agent="ada").os(policy=SMALL, **given)


def step(root):
    """One page comes and one leaves, the personas and all agents are told of it, and a segment is evicted."""
    ada = opened(root, work="queued")
    ada.add("What is for lunch?", "Soup.")
    ada.run_jobs()
    for _ in range(2):
        ada.maintain()


def places(root):
    """Where each page is: in a tier, or kept as evicted, as often as it is there."""
    memory = jidomem.open(root, project="p", agent="ada")
    ada = memory.os(policy=SMALL, work="queued")
    held = ada.tiers
    found = [(page.query, "stm") for page in held.stm] + [(page.query, "leaving") for page in held.leaving]
    found += [(page.query, "mtm") for segment in held.mtm for page in segment.pages]
    waiting = [directive.items[0].value for directive in ada._moves.kept.asked()]
    with memory._state.reading() as store:
        done = [json.loads(text) for (text,) in store.execute("SELECT value FROM key_values").fetchall()]
    evicted = {each["id"]: each for each in [*waiting, *done]}  # it waits until it is told to be kept
    found += [(page.query, "kept") for each in evicted.values() for page in DialogueSegment.from_dict(each).pages]
    memory.close()
    return sorted(found)


def healed(root):
    """What the agent holds once its jobs were done."""
    ada = opened(root, work="queued")
    ada.retry()
    for _ in range(2):
        ada.maintain()
    facts = [fact.text for persona in ada.personas for fact in persona.knowledge]
    told = [entry.content for entry in ada.system_memory.entries]
    return {"places": places(root), "facts": sorted(facts), "told": sorted(told), "jobs": len(ada.jobs())}


def killed_at(number):
    """Have this process killed before the statement of that number is done."""
    said = count(1)

    def look(_frame, event, called):
        is_said = event == "c_call" and isinstance(getattr(called, "__self__", None), sqlite3.Connection)
        if is_said and next(said) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(look)


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


def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def each(folder, stride):
    begun, root = folder / "begun", folder / "root"
    ada = opened(begun)
    for said in HELD:
        ada.add(said, "Noted.", about=("user", "ana"))
    for number in count(1, stride):
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(begun, root)

        def work(number=number):
            killed_at(number)
            step(root)

        code = ended(forked(work))
        print(json.dumps({"at": number, "code": code, "left": places(root), **healed(root)}), flush=True)
        if code == 0:
            return


def lines(file):
    return file.read_text().splitlines() if file.exists() else []


def any_moment(folder, kills):
    root, chance, said = folder / "root", random.Random(20261122), folder / "said"

    def adding(name):
        ada = opened(root)
        for number in count():
            page = ada.add(f"{name} asks {number} about topic {number % 3}", new_id())
            with said.open("a") as file:
                file.write(f"{page.query}\n")

    children = {}
    for killed in range(kills):
        while len(children) < 4:
            name = f"agent {killed}-{len(children)}"
            children[name] = forked(lambda name=name: adding(name))
        before = len(lines(said))
        while len(lines(said)) < before + 3:
            assert not any(os.waitpid(child, os.WNOHANG)[0] for child in children.values()), "one ended by itself"
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.2))
        name = chance.choice([*children])
        os.kill(children[name], signal.SIGKILL)
        assert ended(children.pop(name)) == -signal.SIGKILL
    for child in children.values():
        os.kill(child, signal.SIGKILL)
        ended(child)
    left = places(root)
    print(json.dumps({"said": lines(said), "left": left, **healed(root)}), flush=True)


if __name__ == "__main__":
    {"each": each, "any": any_moment}[sys.argv[2]](Path(sys.argv[1]), int(sys.argv[3]))
