"""A process that appends to a log in PostgreSQL, and prints each commit it sends and each acknowledgement.

python log_appender.py ADDRESS NAME
"""

import sys
from itertools import count
from time import sleep

from jidomem.errors import Failed
from jidomem.extras.servers.postgres_log import PostgresLog
from jidomem.journal.journal import Stream

STREAM = Stream("p")


def until_known(do):
    """The result of *do*, called again until the server answers with a known outcome."""
    while True:
        try:
            return do()
        except Failed as failure:
            if failure.code not in ("store_unreachable", "outcome_unknown"):
                raise
            sleep(0.02)


def main(address, name):
    log = until_known(lambda: PostgresLog(address, wait=1.0))
    for turn in count():
        commit = f"{name}-{turn}"
        print("send", commit, flush=True)
        while True:
            number = until_known(lambda: log.positions([STREAM]))[STREAM].length + 1
            if until_known(lambda at=number: log.append(STREAM, at, commit, f"{commit} {'x' * 2000}".encode())):  # noqa: B023
                break
        print("stored", commit, number, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
