"""A process that writes entries and prints each acknowledged one, until it is finished or killed.

python entry_writer.py ROOT NAME COUNT [ID]: each under an id of its own, or all under one.
"""

import sys

import jidomem
from jidomem.entries import Entry, write


def main(root, name, number, key=None):
    with jidomem.open(root, project="p", wait=60) as memory:
        for n in range(int(number)):
            write(memory.entries, Entry(id=key or f"{name}-{n}", agent_id="a", content=f"{name} says {n}"))
            print(f"{name} says {n}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
