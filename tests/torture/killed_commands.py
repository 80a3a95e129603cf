"""Run commands of jidomem that are killed at one change of the disk: python killed_commands.py

Reads lines of JSON: the number of the change, what counts as one (`disk` or `sql`), the arguments of the command, and
variables of its environment.
Answers each with `killed`, or with the exit code and the number of changes if there were fewer. With the number 0
the process is killed once the command has done its work, before it ends by itself.
"""

import json
import os
import signal
import sqlite3
import sys
from importlib import import_module

from click.testing import CliRunner

from jidomem.base import disk
from jidomem_cli.main import cli

#: The calls that change a file or a folder, or make a change durable.
CALLS = {
    disk: ("create", "write", "fsync", "flush", "rename", "unlink", "overwrite"),
    os: ("replace", "link", "rmdir"),
}


class Countdown:
    """Kill this process at the change *number*, counted from 1; at none if it is 0."""

    def __init__(self, number):
        self.number, self.met = number, 0

    def count(self):
        self.met += 1
        if self.met == self.number:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(self, call):
        def either(*arguments, **named):
            self.count()
            return call(*arguments, **named)

        return either

    def watch_the_disk(self):
        for module, names in CALLS.items():
            for name in names:
                setattr(module, name, self.counted(getattr(module, name)))

    def watch_sql(self):
        def look(frame, event, called):
            if event == "c_call" and isinstance(getattr(called, "__self__", None), sqlite3.Connection):
                self.count()

        sys.setprofile(look)


def run(number, what, arguments, environment):
    os.environ.update(environment)
    countdown = Countdown(number)
    (countdown.watch_sql if what == "sql" else countdown.watch_the_disk)()
    code = CliRunner().invoke(cli, arguments).exit_code
    sys.setprofile(None)
    if not number:
        os.kill(os.getpid(), signal.SIGKILL)
    print(json.dumps([code, countdown.met]), flush=True)
    os._exit(0)


#: Modules that the commands import, loaded once.
LOADED = (
    "jidomem.curation.redact",
    "jidomem.extras.transfer.move",
    "jidomem.runtime.root",
    *(f"jidomem_cli.{name}" for name in ("access", "ask", "exchange", "journal", "review", "root", "submit")),
)

if __name__ == "__main__":
    for name in LOADED:
        import_module(name)
    for line in sys.stdin:
        child = os.fork()  # nothing is open yet
        if not child:
            run(*json.loads(line))
        if os.WIFSIGNALED(os.waitpid(child, 0)[1]):
            print(json.dumps("killed"), flush=True)
