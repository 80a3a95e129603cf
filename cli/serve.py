"""`jidomem serve`: the memory over HTTP, to this machine or to those who have a token."""

from __future__ import annotations

from threading import Thread

import click

import jidomem
from jidomem_cli.door import Door, Verb, pass_door
from jidomem_cli.server_log import log_options, open_log
from jidomem_cli.tables import show_json


@click.command(cls=Verb, writes=("wait",))
@click.option("--host", metavar="ADDRESS", help="The address to listen at; 127.0.0.1 when not said.")
@click.option("--port", type=click.IntRange(0, 65_535), help="8700 when not said; 0 takes a free one.")
@click.option("--allow-host", "names", multiple=True, metavar="NAME", help="A name it is asked by; repeat it for more.")
@log_options
@click.option(
    "--allow-origin",
    "origins",
    multiple=True,
    metavar="ORIGIN",
    envvar="JIDOMEM_ALLOW_ORIGIN",
    help="An origin whose pages may ask (CORS), such as https://yasgui.example.org; repeat it for more.",
)
@click.option(
    "--public-url",
    metavar="URL",
    envvar="JIDOMEM_PUBLIC_URL",
    help="What clients ask it at, where that is another address, as behind TLS: https://memory.example.org.",
)
@pass_door
def serve(
    door: Door,
    host: str | None,
    port: int | None,
    names: tuple[str, ...],
    form: str | None,
    level: str | None,
    origins: tuple[str, ...],
    public_url: str | None,
) -> None:
    """Serve the memory over HTTP until it is stopped (Ctrl-C, SIGTERM): intents, questions, sessions, SPARQL.

    Without tokens it serves this machine only. Once there are (jidomem token add), it serves those who have one, at
    any address; put TLS before it. /openapi.json describes what there is.

    Each request is a line on standard error, with its id; with -q only those that went wrong.

    Examples:
      jidomem serve
      jidomem serve --port 0 --json --log-level warning
    """
    from jidomem.serve import server
    from jidomem.serve.http import create_app
    from jidomem.serve.ledger import HTTP
    from jidomem.serve.operation import Operation

    with door.open(stays=True) as memory:
        said = memory.settings
        at = host or said.host or server.HOST
        hosts = server.hosts_of(at, names)
        keyring = memory.place.keyring()
        wanted = next(number for number in (port, said.port, server.PORT) if number is not None)
        with server.listen(at, wanted, knows_who_asks=keyring.is_needed) as listening:
            operation = Operation(open_log(door, form, level), connections=said.limits.connections)
            operation.keep_counts(memory.door_log, HTTP)
            app = create_app(
                memory, hosts=hosts, keyring=keyring, operation=operation, origins=origins, public_url=public_url
            )
            url = server.url_of(listening)
            if door.json:
                show_json({"url": url, "root": memory.settings.place, "project": memory.project})
            else:
                door.say(f"serving {memory.settings.place} at {url} (stop with Ctrl-C)")
            Thread(target=memory.pool.warm, daemon=True).start()
            operation.leveller.follow(memory)
            root = memory.settings.place
            operation.tell("info", "started", {"url": url, "root": root, "jidomem": jidomem.__version__})

            def stop() -> None:
                operation.stop()
                memory.stop()

            server.serve(app, listening, stop, memory.settings.limits, operation)
            operation.close()
    server.leave()
