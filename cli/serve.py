"""`jidomem serve`: the memory over HTTP, for this machine or for holders of tokens.

`jidomem mcp`: the memory for agents, over the Model Context Protocol.

`log_options` and `open_log` configure the log of a server.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from functools import cache
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO, TypeVar

import click
from click.core import ParameterSource

import jidomem
from jidomem.errors import Failed, InvalidRequest
from jidomem_cli.options import App, Command, host_option, pass_app, port_option
from jidomem_cli.output import show_result

if TYPE_CHECKING:
    from jidomem.runtime.settings import Settings
    from jidomem.runtime.tokens import Keyring
    from jidomem.serve.log import Log
    from jidomem.serve.shared_state import SharedState

MCP_PORT = 8701
FORMS, LEVELS = ("json", "text"), ("debug", "info", "warning", "error")
F = TypeVar("F", bound=Callable[..., Any])


def log_options(command: F) -> F:
    """Return *command* with --log-format and --log-level."""
    level = click.option(
        "--log-level", "level", type=click.Choice(LEVELS), help="Least level that is logged (default: info)."
    )
    form = click.option(
        "--log-format",
        "form",
        type=click.Choice(FORMS),
        help="Format of the log (default: text on a terminal, else json).",
    )
    return form(level(command))


def address_options(port: int) -> Callable[[F], F]:
    """Return the decorator for --host, --port, --allow-host and --public-url of a server."""

    def with_options(command: F) -> F:
        public = click.option(
            "--public-url",
            metavar="URL",
            envvar="JIDOMEM_PUBLIC_URL",
            help="Address that clients use, if it differs, as behind TLS: https://memory.example.org.",
        )
        allow = click.option(
            "--allow-host", "names", multiple=True, metavar="NAME", help="Host name that requests may use; repeatable."
        )
        options: F = host_option(port_option(port)(allow(public(command))))
        return options

    return with_options


def open_log(app: App, form: str | None, level: str | None, shared: SharedState | None = None) -> Log:
    """Return the log of a server, on standard error, which it may share with its workers."""
    from jidomem.serve.log import Log

    return Log(_own_stream(), _form(form), level or _level(app), shared)


def set_messages(app: App, form: str | None) -> None:
    """Let messages and errors of a server be lines of its log, if that is JSON."""
    app.logs_json = _form(form) == "json"


def _form(given: str | None) -> str:
    return given or ("text" if sys.stderr.isatty() else "json")


def _own_stream() -> TextIO:
    """Return a separate stream to standard error for the log, so that a blocked log blocks no other writer."""
    return open(os.dup(sys.stderr.fileno()), "w", encoding="utf-8")


def _level(app: App) -> str:
    return "warning" if app.quiet else "debug" if app.verbose else "info"


@click.command(cls=Command, writes=("server agent", "wait"))
@address_options(8700)
@log_options
@click.option(
    "--allow-origin",
    "origins",
    multiple=True,
    metavar="ORIGIN",
    envvar="JIDOMEM_ALLOW_ORIGIN",
    help="Origin whose pages may send requests (CORS), such as https://yasgui.example.org; repeatable.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    metavar="N",
    help="Processes that answer requests (default: the cores less one, at least 1).",
)
@click.option("--read-only", is_flag=True, help="Refuse every write, and be ready where none is possible.")
@pass_app
def serve(
    app: App,
    host: str | None,
    port: int | None,
    names: tuple[str, ...],
    public_url: str | None,
    form: str | None,
    level: str | None,
    origins: tuple[str, ...],
    workers: int | None,
    read_only: bool,
) -> None:
    """Serve the memory over HTTP until it is stopped (Ctrl-C, SIGTERM): intents, queries, sessions, SPARQL.

    Without tokens it serves this machine only, and does not start with another --host, --allow-host or --public-url.
    With tokens (jidomem access token add) it serves their holders at any address: put TLS before it. Without tokens,
    the acting agent settles what is settled on the pages. /openapi.json describes the interface.

    Each request is logged on standard error with its id; with -q only failed ones.

    Examples:
      jidomem serve --agent ana
      jidomem serve --port 0 --json --log-level warning
    """
    from jidomem.serve.workers import default_workers

    set_messages(app, form)
    address = _Address(host, port, names, public_url)
    count = workers or default_workers()
    if count == 1:
        _serve_alone(app, address, form, level, origins, read_only)
    else:
        _supervise(app, address, form, level, origins, count, read_only)


class _Address(NamedTuple):
    """The given address of a server, the host names that requests may use, and the origin that clients use."""

    host: str | None
    port: int | None
    names: tuple[str, ...]
    public_url: str | None

    def listen(
        self, keyring: Keyring, root: str, default_host: str | None = None, default_port: int | None = None
    ) -> tuple[socket.socket, list[str]]:
        """Return the listening socket and all host names; raise InvalidRequest if *root* needs a token and has none."""
        from jidomem.serve.listener import HOST, PORT, host_of, hosts_of, listen, parse_public_url, refuse_unprotected

        host = self.host or default_host or HOST
        public = [] if self.public_url is None else [host_of(parse_public_url(self.public_url)) or ""]
        hosts = hosts_of(host, (*self.names, *public))
        if not keyring.is_needed:
            refuse_unprotected(hosts, root, keyring.place)
        port = next(number for number in (self.port, default_port, PORT) if number is not None)
        return listen(host, port), hosts


def _started(app: App, url: str, settings: Settings, log: Log, *, needs_token: bool, **more: object) -> None:
    """Print and log that the server is ready, and the agent that acts without a token."""
    acting = "the agent of each token" if needs_token else f"{settings.agent} (--agent NAME for another)"
    text = f"serving {settings.place} at {url} (stop with Ctrl-C)\nacting agent: {acting}"
    place = {"url": url, "root": settings.place}
    show_result(app, {**place, "project": settings.project}, message="" if app.logs_json else text)
    fields = {**place, "jidomem": jidomem.__version__, **({} if needs_token else {"agent": settings.agent}), **more}
    log.add("info", "started", fields)


def _serve_alone(
    app: App, address: _Address, form: str | None, level: str | None, origins: tuple[str, ...], read_only: bool
) -> None:
    """Serve in this process."""
    from jidomem.serve import server
    from jidomem.serve.app import create_app
    from jidomem.serve.listener import leave, url_of
    from jidomem.serve.monitoring import log_missing_tokens
    from jidomem.serve.server_state import HTTP, Operation

    with app.open(stays=True) as memory:
        settings = memory.settings
        app.warn_of_new(settings, memory.projects)
        keyring = memory.place.keyring()
        listening, hosts = address.listen(keyring, settings.place, settings.host, settings.port)
        with listening:
            log = open_log(app, form, level)
            operation = Operation(log, connections=settings.limits.connections, read_only=read_only)
            operation.keep_counts(memory.interface_log, HTTP)
            web_app = create_app(
                memory,
                hosts=hosts,
                keyring=keyring,
                operation=operation,
                origins=origins,
                public_url=address.public_url,
            )
            _started(app, url_of(listening), settings, log, needs_token=keyring.is_needed)
            log_missing_tokens(operation, memory, keyring)
            Thread(target=memory.pool.warm, daemon=True).start()
            operation.catch_up.follow(memory)
            operation.reread(memory)

            def stop() -> None:
                operation.stop()
                memory.stop()

            server.serve(web_app, listening, stop, settings.limits, operation)
            operation.close()
    leave()


def _supervise(
    app: App,
    address: _Address,
    form: str | None,
    level: str | None,
    origins: tuple[str, ...],
    count: int,
    read_only: bool,
) -> None:
    """Serve in *count* worker processes, which open the root themselves."""
    from jidomem.runtime import settings
    from jidomem.runtime.location import open_place
    from jidomem.serve.listener import leave, url_of
    from jidomem.serve.workers import ServerOptions, Supervisor

    app.refuse_missing_address()
    place = open_place(app.root, app.wait)
    try:
        loaded = settings.load(app.root, app.project, agent=app.agent, session=app.session, index=app.index)

        @cache
        def projects() -> list[str]:
            configured = {loaded.configured} if loaded.configured else set()
            return sorted(configured.union(stream.project for stream in place.journal(app.wait).streams()))

        app.warn_of_new(loaded, projects)
        keyring = place.keyring()
    finally:
        place.close()
    listening, hosts = address.listen(keyring, loaded.place, loaded.host, loaded.port)
    needs_token = keyring.is_needed
    options = ServerOptions(
        root=app.root, project=app.project, agent=app.agent, session=app.session, wait=app.wait, index=app.index,
        hosts=hosts, origins=[*origins], public_url=address.public_url, log_form=_form(form),
        log_level=level or _level(app), read_only=read_only,
    )  # fmt: skip
    with listening, Supervisor(listening, options, count, needs_token=needs_token) as supervisor:
        supervisor.start()
        log = open_log(app, form, level, supervisor.shared)
        _started(app, url_of(listening), loaded, log, needs_token=needs_token, workers=count)
        supervisor.run(log)
        log.add("info", "stopping", {})
    log.add("info", "stopped", {})
    log.close()
    leave()


@click.command(cls=Command, writes=("client agent", "session", "wait"))
@click.option(
    "--toolset",
    type=click.Choice(("jidomem", "working", "dialogue", "server-memory")),
    default="jidomem",
    show_default=True,
    help="Tools: the standard ones; with working memory, or with dialogue pages; those of the reference server.",
)
@click.option("--http", is_flag=True, help="Serve streamable HTTP instead of standard input and output.")
@address_options(MCP_PORT)
@log_options
@pass_app
def mcp(
    app: App,
    toolset: str,
    http: bool,
    host: str | None,
    port: int | None,
    names: tuple[str, ...],
    public_url: str | None,
    form: str | None,
    level: str | None,
) -> None:
    """Serve the memory to an MCP client: tools to remember, recall, ask, revise and explain.

    The work session of a client opens with the first memory that it records, and closes when it disconnects. Needs the
    extra: pip install 'jidomem[mcp]'.

    With --http, each request is logged on standard error with its id, /metrics has metrics for Prometheus, and the
    rules for tokens and addresses are those of jidomem serve.

    Examples:
      jidomem mcp
      jidomem mcp --toolset server-memory
      jidomem mcp --http --port 0
      jidomem mcp --http --port 0 --json --log-level warning
    """
    is_typed = click.get_current_context().get_parameter_source("public_url") is ParameterSource.COMMANDLINE
    given = {"--host": host, "--port": port, "--allow-host": names, "--public-url": public_url if is_typed else None}
    given |= {"--log-format": form, "--log-level": level}
    option = next((name for name, value in given.items() if value not in (None, ())), None)
    if not http and option:
        raise InvalidRequest(f"{option} is for --http", hint=f"add --http, or leave out {option}")
    try:
        from jidomem.serve.mcp import server as serving
        from jidomem.serve.mcp.server import serve_stdio
    except ImportError as error:
        raise Failed(
            f"the MCP SDK is not installed ({error})", hint="pip install 'jidomem[mcp]'", code="missing_extra"
        ) from error
    if http:
        set_messages(app, form)
    from jidomem.serve.mcp.client_session import ClientSessions
    from jidomem.serve.mcp.server_memory import KNOWLEDGE
    from jidomem.serve.mcp.tools import TOOLSETS

    memory = app.open(stays=True, makes_root=not http)
    app.warn_of_new(memory.settings, memory.projects, makes_root=not http)
    memory.expected_project = memory.project
    tools = KNOWLEDGE if toolset == "server-memory" else TOOLSETS[toolset]
    sessions = ClientSessions(memory, app.agent or os.environ.get("JIDOMEM_AGENT"), memory.settings.session)
    from jidomem.serve import server_state
    from jidomem.serve.listener import limit_collections
    from jidomem.serve.server_state import Operation

    operation = Operation(open_log(app, form, level) if http else None)
    operation.keep_counts(memory.interface_log, server_state.MCP_HTTP if http else server_state.MCP_STDIO)

    def leave() -> None:
        operation.close()
        memory.close()

    limit_collections()
    serving.leave_on_signals(sessions, leave)
    if not http:
        if sys.stdin.isatty():
            app.info(f"serving {memory.settings.place} over MCP on standard input (stop with Ctrl-C)")
            app.info("a client starts this server itself after: jidomem setup claude")
        serve_stdio(sessions, tools, leave, operation)
        return
    from jidomem.serve.listener import url_of
    from jidomem.serve.mcp.http import PATH, serve_http
    from jidomem.serve.monitoring import log_missing_tokens

    keyring = memory.place.keyring()
    address = _Address(host, port, names, public_url)
    listening, hosts = address.listen(keyring, memory.settings.place, default_port=MCP_PORT)
    url = f"{url_of(listening)}{PATH}"
    place = {"url": url, "root": memory.settings.place}
    text = "" if app.logs_json else f"serving {memory.settings.place} at {url} (stop with Ctrl-C)"
    show_result(app, place, message=text)
    operation.catch_up.follow(memory)
    operation.reread(memory)
    operation.log_event("info", "started", {**place, "jidomem": jidomem.__version__})
    log_missing_tokens(operation, memory, keyring)
    serve_http(sessions, tools, keyring, hosts, listening, leave, operation)
