"""Serve a root as if the clock began at a given moment: python pages_server.py ROOT MOMENT"""

import json
import sys
from datetime import UTC, datetime

import jidomem
from jidomem.base import clock
from jidomem.serve import listener, server, server_state
from jidomem.serve.app import create_app
from jidomem.serve.server_state import Operation


def main(root, moment):
    """Serve *root* at a free port until SIGTERM, and print its URL as a line of JSON."""
    offset = datetime.fromisoformat(moment) - datetime.now(UTC)

    def now():
        return clock.now() + offset

    server_state.now = now
    with (
        jidomem.open(root, project="p", sources=clock.Sources(now=now)) as memory,
        listener.listen(listener.HOST, 0) as listening,
    ):
        operation = Operation()
        app = create_app(memory, operation=operation)
        print(json.dumps({"url": listener.url_of(listening)}), flush=True)
        server.serve(app, listening, memory.stop, memory.settings.limits, operation)
    listener.leave()


if __name__ == "__main__":
    main(*sys.argv[1:])
