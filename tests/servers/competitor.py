"""A process that decides on contested topics: python competitor.py ADDRESS HOME NAME ROUNDS [blind] prints its
writes.

Each decision supersedes the active decisions on its topic; a refused decision is submitted again against the
decisions that are active then. With `blind` the log accepts each append whatever it was built on, and the first
append waits until the other process has built one, too.
"""

import json
import os
import sys
import time
from pathlib import Path

import jidomem
from jidomem.errors import Conflict
from jidomem.extras.servers.postgres_log import PostgresLog

TOPICS = ("index", "store", "names", "dates", "errors")


def decide(memory, topic, summary):
    """Return the receipt of a decision once it is accepted."""
    fields = {"type": "architectural_decision", "rationale": "we compete", "confidence": "high", "topic": topic}
    query = "SELECT ?d ?t { ?d <https://jido.ai/ontology#topic> ?t }"
    while True:
        topical = {str(row["d"]) for row in memory.reader.select("p", query) if str(row["t"]) == topic}
        active = [row["decision"] for row in memory.reader.ask("decisions", project="p") if row["decision"] in topical]
        try:
            values = {**fields, "summary": summary, "supersedes": active, "applies_to_project": "p"}
            values |= {"reason": "mine is newer"} if active else {}
            return memory.writer.submit_intent(
                "p", {**values, "asserted_by": memory.writer.agent, "asserted_in": "s-1"}
            )
        except Conflict:
            continue  # another process was first


def blind(log_class, home):
    """Let *log_class* accept each append under the next number, once two homes beside *home* have built one."""
    append = log_class.append

    def append_anywhere(self, stream, number, commit, document, *, after=""):
        home.with_suffix(".built").touch()
        deadline = time.monotonic() + 60
        while len(list(home.parent.glob("*.built"))) < 2:
            assert time.monotonic() < deadline, "the other process has built nothing"
            time.sleep(0.01)
        while not append(self, stream, number, commit, document):
            number = self.positions([stream])[stream].length + 1
        return True

    log_class.append = append_anywhere


if __name__ == "__main__":
    address, home, name, rounds, *more = sys.argv[1:]
    os.environ["JIDOMEM_HOME"] = home
    if more == ["blind"]:
        blind(PostgresLog, Path(home))
    with jidomem.open(address, project="p", agent=name, session=f"s-{name}") as memory:
        memory.catch_up("p") if "p" in memory.projects() else None
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(int(rounds)):
            topic = TOPICS[number % len(TOPICS)]
            try:
                print(json.dumps([topic, decide(memory, topic, f"{name} says {number}").iri]), flush=True)
            except jidomem.JidomemError as error:
                print(json.dumps([topic, error.code]), flush=True)
                break
