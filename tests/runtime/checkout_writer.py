"""A process that records memories until its input ends, and prints each acknowledged or refused one."""

import sys
from threading import Thread

from conftest import intent

import jidomem
from jidomem.errors import JidomemError

root, name = sys.argv[1:]
ended = []
Thread(target=lambda: ended.append(sys.stdin.read()), daemon=True).start()
with jidomem.open(root) as memory:
    print("ready", flush=True)
    number = 0
    while not ended:
        number += 1
        try:
            receipt = memory.writer.submit_intent("p", intent(summary=f"{name} writes {number}", evidence=[]))
            print("kept", receipt.commit, receipt.iri, flush=True)
        except JidomemError as error:
            print("refused", error.code, flush=True)
