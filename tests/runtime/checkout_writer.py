"""A process that records memories until its input ends, and prints each acknowledged or refused one."""

import sys
from threading import Thread

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
            receipt = memory.writer.remember("p", f"{name} writes {number}", asserted_by="architect", asserted_in="s-1")
            print("kept", receipt.commit, receipt.iri, flush=True)
        except JidomemError as error:
            print("refused", error.code, flush=True)
