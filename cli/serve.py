"""`jidomem serve`: the memory over HTTP, on this machine."""

from __future__ import annotations

from threading import Thread

import click

from jidomem_cli.door import Door, Verb, pass_door
from jidomem_cli.tables import show_json


@click.command(cls=Verb, writes=("wait",))
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="A loopback address.")
@click.option("--port", type=click.IntRange(0, 65_535), default=8700, show_default=True, help="0 takes a free one.")
@pass_door
def serve(door: Door, host: str, port: int) -> None:
    """Serve the memory over HTTP until it is stopped (Ctrl-C, SIGTERM): intents, questions, sessions, SPARQL.

    There are no tokens, so it serves this machine only. /openapi.json describes what there is.

    Examples:
      jidomem serve
      jidomem serve --port 0 --json
    """
    from jidomem.serve import server
    from jidomem.serve.http import create_app

    listening = server.listen(host, port)
    with listening, door.open() as memory:
        app = create_app(memory)
        url = server.url_of(listening)
        if door.json:
            show_json({"url": url, "root": str(memory.settings.root), "project": memory.project})
        else:
            door.say(f"serving {memory.settings.root} at {url} (stop with Ctrl-C)")
        Thread(target=memory.pool.warm, daemon=True).start()
        server.serve(app, listening, memory.pool.close)
    server.leave()
