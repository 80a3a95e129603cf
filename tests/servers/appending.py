"""A process that appends until it is killed: python appending.py ADDRESS NAME prints each append and its number."""

import os
import sys
from itertools import count

from log_contract import ONE, commit

from jidomem.extras.servers.object_log import ObjectLog

if __name__ == "__main__":
    address, name = sys.argv[1:]
    log = ObjectLog(address, os.environ)
    number = log.positions([ONE])[ONE].length + 1
    for turn in count():
        while not log.append(ONE, number, commit(f"{name}-{turn}"), f"{name}-{turn}".encode()):
            number = log.positions([ONE])[ONE].length + 1
        print(f"{name}-{turn} {number}", flush=True)
        number += 1
