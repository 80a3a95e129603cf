"""`jidomem agent memoryos`: the dialogues of an agent in four tiers, and the knowledge derived from them.

It also converts the content of the tiers to rows: matches, pages, and knowledge of others and of the agent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from jidomem.base.clock import json_value
from jidomem.errors import InvalidRequest
from jidomem.write.canonical import is_absolute
from jidomem_cli.fields import json_or_text
from jidomem_cli.options import ROWS, App, CommandGroup, id_option, pass_app, timestamp_option
from jidomem_cli.output import show_json, show_result, show_rows

if TYPE_CHECKING:
    from jidomem.extras.memoryos.memory_os import MemoryOS
    from jidomem.extras.memoryos.retrieval import RetrievalResults, RetrievedItem
    from jidomem.extras.memoryos.values import ObjectKey, Tiers


def match_rows(matches: RetrievalResults) -> Iterator[dict[str, Any]]:
    """Yield the matches, tier by tier: `tier`, `score`, `id`, `about` (the other parties) and `text`."""
    yield from _scored("stm", matches.stm, "text")
    yield from _scored("leaving", matches.leaving, "text")
    yield from _scored("segment", matches.segments, "topic_summary")
    yield from _scored("page", matches.pages, "text")
    for persona in (*matches.personas, matches.agent):
        owner = "itself" if persona.key is None else _object_name(persona.key)
        yield from _scored(f"fact {owner}", persona.knowledge, "text")
        yield from _scored(f"trait {owner}", persona.traits, "text")
    yield from _scored("system", matches.system, "content")


def _scored(tier: str, items: Iterable[RetrievedItem[Any]], text: str) -> Iterator[dict[str, Any]]:
    for each in items:
        pages = getattr(each.what, "pages", (each.what,))
        about = ", ".join(sorted({_object_name(key) for page in pages if (key := getattr(page, "object", None))}))
        yield {"tier": tier, "score": round(each.score, 3), "id": each.what.id, "about": about or None,
               "text": getattr(each.what, text)}  # fmt: skip


def _object_name(key: ObjectKey) -> str:
    return f"{key.type}:{key.identifier}"


def page_rows(tiers: Tiers, owner: ObjectKey | None = None) -> Iterator[dict[str, Any]]:
    """Yield the pages of all tiers, or those of an object, in chronological order, with the place of each in `in`."""
    leaving = {page.id for page in tiers.leaving}
    for page in sorted(tiers.pages(), key=lambda page: page.when):
        if owner not in (None, page.object):
            continue
        place = page.segment_id or ("leaving" if page.id in leaving else "stm")
        about = page.object and _object_name(page.object)
        yield {"id": page.id, "in": place, "timestamp": page.timestamp, "about": about,
               "query": page.query, "response": page.response}  # fmt: skip


def known_rows(tiers: Tiers) -> Iterator[dict[str, Any]]:
    """Yield one row for each profile entry, fact and trait of others, then of the agent."""
    for owner, profile, facts, traits in (
        *((f"{each.type}:{each.identifier}", each.profile, each.knowledge, each.traits) for each in tiers.personas),
        ("itself", tiers.agent.profile, (), tiers.agent.traits),
    ):
        for name, value in profile.items():
            yield {
                "of": owner,
                "is": "profile",
                "text": f"{name}: {value if isinstance(value, str) else json.dumps(value)}",
            }
        for kind, entries in (("fact", facts), ("trait", traits)):
            for entry in entries:
                yield {"of": owner, "is": kind, "id": entry.id, "text": entry.text, "confidence": entry.confidence,
                       "private": entry.private}  # fmt: skip


_WRITES = ("agent",)
_COLUMNS_OF_MATCHES = ("tier", "score", "id", "about", "text")
_PAGES = ("id", "in", "timestamp", "about", "query", "response")
_KNOWN = ("of", "is", "id", "text", "confidence", "private")
#: The most turns that a message names.
_NAMED = 5
_SHARED = ("id", "about", "content", "source_agent_id", "importance_score", "creation_timestamp")
_about = click.option("--about", metavar="TYPE:NAME", help="Partner of the dialogue, such as user:ana.")


@click.group("os", cls=CommandGroup)
def memory_os() -> None:
    """Record the dialogue of an agent, page by page, and retrieve from it.

    Pages move through tiers by themselves: recent pages, segments by topic, personas, and shared knowledge. They are
    not validated, and other agents see only the shared knowledge.

    Examples:
      jidomem agent memoryos add "Which index do we use?" "Oxigraph." --about user:ana
      jidomem agent memoryos retrieve "the index"
      jidomem agent memoryos status
    """


@memory_os.command("add", writes=_WRITES)
@click.argument("query")
@click.argument("response", default="")
@_about
@timestamp_option
@id_option
@pass_app
def add(app: App, query: str, response: str, about: str | None, timestamp: str | None, id_: str | None) -> None:
    """Record a page, a query and the response of the agent, and print its id.

    With a remote language model the page is processed later: by jidomem agent memoryos maintain, or by a process that
    keeps the root open.

    Examples:
      jidomem agent memoryos add "Which index do we use?" "Oxigraph." --about user:ana
    """
    memory_os_ = app.open().os()
    page = memory_os_.add(query, response, about=_pair(about), timestamp=timestamp, page_id=id_)
    if app.json:
        show_json({name: value for name, value in page.to_dict().items() if name != "embedding"})
        return
    click.echo(page.id)
    _print_waiting(app, memory_os_)


@memory_os.command("retrieve", formats=ROWS, writes=_WRITES)
@click.argument("query")
@_about
@click.option(
    "--pages",
    type=click.IntRange(1),
    metavar="N",
    help="Maximum number of pages of segments (default: the setting retrieved_pages).",
)
@click.option("--unvisited", is_flag=True, help="Do not count this as a visit of the segments.")
@pass_app
def retrieve(app: App, query: str, about: str | None, pages: int | None, unvisited: bool) -> None:
    """List the matches for QUERY in each tier, with scores; --json has them in full, by tier.

    Examples:
      jidomem agent memoryos add "Which index do we use?" "Oxigraph."
      jidomem agent memoryos retrieve "the index" --json
    """
    given: dict[str, Any] = {} if pages is None else {"retrieved_pages": pages}
    memory_os_ = app.read(warn_of_damage=False).os()
    matches = memory_os_.retrieve(query, about=_pair(about), visiting=not unvisited, **given)
    _print_left_out(app, memory_os_, about)
    if matches.error is not None:
        app.warn(f"the model failed, so matches are missing: {matches.error}")
    if app.form == "json":
        show_json(matches.to_dict())
    else:
        show_rows(app, [*match_rows(matches)], _COLUMNS_OF_MATCHES)


@memory_os.command("prompt", writes=_WRITES)
@click.argument("query")
@_about
@pass_app
def prompt(app: App, query: str, about: str | None) -> None:
    """Print QUERY with its context as the prompt of a language model; nothing is sent.

    Examples:
      jidomem agent memoryos add "Which index do we use?" "Oxigraph."
      jidomem agent memoryos prompt "Where does the index lie?"
    """
    memory_os_ = app.read(warn_of_damage=False).os()
    question = memory_os_.prompt(query, about=_pair(about))
    _print_left_out(app, memory_os_, about)
    show_result(app, {"system": question.system, "user": question.user}, str(question))


@memory_os.command("pages", formats=ROWS, writes=_WRITES)
@_about
@pass_app
def pages(app: App, about: str | None) -> None:
    """List the pages of the agent with their place: stm, leaving, or the id of a segment.

    Examples:
      jidomem agent memoryos pages
    """
    tiers = app.read(warn_of_damage=False).os().tiers
    show_rows(app, [*page_rows(tiers, _known_object(tiers, about))], _PAGES)


@memory_os.command("personas", formats=ROWS, writes=_WRITES)
@_about
@pass_app
def personas(app: App, about: str | None) -> None:
    """List what the agent knows of others and itself: profiles, facts and traits.

    Examples:
      jidomem agent memoryos personas
    """
    tiers = app.read(warn_of_damage=False).os().tiers
    owner = _known_object(tiers, about)
    rows = (each for each in known_rows(tiers) if owner is None or each["of"] == _object_name(owner))
    show_rows(app, [*rows], _KNOWN)


@memory_os.command("system", formats=ROWS)
@pass_app
def system(app: App) -> None:
    """List the knowledge that all agents of the project share.

    Examples:
      jidomem agent memoryos system
    """
    entries = app.read(warn_of_damage=False).os().system_memory.entries
    show_rows(app, [{**each.to_dict(), "embedding": None} for each in entries], _SHARED)


@memory_os.command("maintain", formats=ROWS, writes=_WRITES)
@click.option("--retry", is_flag=True, help="Also retry jobs that failed too often.")
@pass_app
def maintain(app: App, retry: bool) -> int:
    """Run a round of maintenance and all due jobs; list the outcome of each.

    Computes the heat of segments, evicts pages beyond the capacity, and processes hot segments. Exits with 1 if a job
    failed; it is retried later.

    Examples:
      jidomem agent memoryos maintain
    """
    memory_os_ = app.open().os()
    outcomes = [*(memory_os_.retry() if retry else []), *memory_os_.maintain()]
    columns = ("kind", "subject", "ok", "error")
    show_rows(app, [{name: getattr(each, name) for name in columns} for each in outcomes], columns)
    return 0 if all(each.ok for each in outcomes) else 1


@memory_os.command("promote", formats=ROWS, writes=_WRITES)
@click.option(
    "--least",
    type=click.FloatRange(0, 1),
    default=0.8,
    metavar="X",
    help="Minimum confidence of a fact (default: 0.8).",
)
@pass_app
def promote(app: App, least: float) -> None:
    """Propose the confident facts of the agent to the project, with the dialogue as evidence.

    Examples:
      jidomem agent memoryos promote --least 0.9
    """
    rows = [each.to_dict() for each in app.open().os().promote(least)]
    show_rows(app, rows, ("outcome", "iri", "reason"))


@memory_os.command("status", writes=_WRITES)
@pass_app
def status(app: App) -> None:
    """Report the size of each tier, pending and failed jobs, and the models.

    Examples:
      jidomem agent memoryos status --json
    """
    values = app.read(warn_of_damage=False).os().status()
    if app.json:
        show_json(json_value(values))
        return
    for name, value in values.items():
        if name != "failed":
            click.echo(f"{name:12} {'' if value is None else value}".rstrip())
    for job in values["failed"]:
        click.echo(f"failed       {job['kind']} {job['subject']}: {job['error']}")
    if values["waiting"]:
        app.info(
            f"segments below heat_threshold, from which nothing is learned: {values['waiting']}; to learn from each:"
            " jidomem agent memoryos set heat_threshold=1"
        )
    if values["failed"]:
        app.info("retry them: jidomem agent memoryos maintain --retry")


@memory_os.command("list", formats=ROWS)
@pass_app
def list_agents(app: App) -> None:
    """List the agents of the project with pages or knowledge from them.

    Examples:
      jidomem agent memoryos list
    """
    memory = app.read(warn_of_damage=False)
    rows = [memory.os(agent).status() for agent in memory.os_agents()]
    show_rows(app, rows, ("agent", "pages", "segments", "personas", "facts", "jobs"))


@memory_os.command("config", formats=ROWS, writes=_WRITES)
@pass_app
def config(app: App) -> None:
    """List the settings of the agent.

    Examples:
      jidomem agent memoryos config --json
    """
    settings = app.read(warn_of_damage=False).os().config.to_dict()
    if app.form == "json":
        show_json(settings)
    else:
        show_rows(app, [{"setting": name, "value": json.dumps(value)} for name, value in settings.items()],
                  ("setting", "value"))  # fmt: skip


@memory_os.command("set", writes=_WRITES)
@click.argument("settings", nargs=-1, metavar="NAME=VALUE...")
@click.option("--type", "agent_type", metavar="TYPE", help="Set the type of the agent.")
@click.option("--for-type", "for_type", metavar="TYPE", help="Set them for all agents of this type.")
@pass_app
def set_(app: App, settings: Sequence[str], agent_type: str | None, for_type: str | None) -> None:
    """Change settings of the agent; VALUE is JSON if it parses, else text.

    Examples:
      jidomem agent memoryos set stm_capacity=10 heat_threshold=1
      jidomem agent memoryos set stm_capacity=3 --for-type coder
    """
    if (agent_type is not None and for_type is not None) or not (settings or agent_type):
        raise InvalidRequest(
            "nothing is set" if not settings else "--type and --for-type exclude each other",
            hint="jidomem agent memoryos set stm_capacity=10, or with one of --type and --for-type",
        )
    memory_os_, values = app.open().os(), dict(map(_setting, settings))
    after = (
        memory_os_.configure(agent_type, **values)
        if for_type is None
        else memory_os_.configure_type(for_type, **values)
    )
    if app.json:
        show_json(after.to_dict())
    else:
        changed = ", ".join(f"{name} = {json.dumps(after.to_dict()[name])}" for name in values)
        app.info(f"{memory_os_.agent} has {changed}" if changed else f"{memory_os_.agent} is of type {agent_type}")


@memory_os.command("forget", writes=_WRITES)
@click.argument("page", required=False)
@_about
@click.option("--all", "everything", is_flag=True, help="Everything of the agent, with its settings.")
@pass_app
def forget(app: App, page: str | None, about: str | None, everything: bool) -> None:
    """Delete PAGE, an id, or with --about all of a user, with the knowledge derived; or with --all all of the agent.

    Proposals made from a page, and turns, stay in the journal, and are listed.

    Examples:
      jidomem agent memoryos add "My name is Ana." "Hello, Ana." --id p1
      jidomem agent memoryos forget p1
      jidomem agent memoryos add "My name is Ana." "Hello, Ana." --about user:ana
      jidomem agent memoryos forget --about user:ana
      jidomem agent memoryos forget --all
    """
    if (page is not None) + (about is not None) + everything != 1:
        raise InvalidRequest(
            "give one of a page, --about and --all",
            hint="jidomem agent memoryos forget PAGE, or --about user:ana, or --all",
        )
    key, memory_os_ = _pair(about), app.open().os()
    if everything:
        existed = memory_os_.forget()
        show_result(
            app,
            {"agent": memory_os_.agent, "forgotten": existed},
            message=f"{memory_os_.agent} {'has no content any more' if existed else 'had no content'}",
        )
        return
    forgotten = memory_os_.forget_object(key) if key is not None else memory_os_.forget_page(str(page))
    if app.json:
        show_json(forgotten.to_dict())
        return
    also = {"facts": forgotten.facts, "traits": forgotten.traits, "known to all": forgotten.system}
    counted = ", ".join(f"{len(ids)} {what}" for what, ids in also.items() if ids)
    where = ", ".join(forgotten.was_in) or "derived knowledge"
    what = f"{page} is" if about is None else f"{about} with {len(forgotten.pages)} page(s) is"
    app.info(f"{what} deleted, in {where}{f'; with it {counted}' if counted else ''}")
    if turns := [page for page in forgotten.pages if is_absolute(page)]:
        more = f" and {len(turns) - _NAMED} more (--json has all)" if len(turns) > _NAMED else ""
        app.warn(f"turns that are its pages stay in the conversation history: {', '.join(turns[:_NAMED])}{more}")
    people = replace(app, agent=None)  # --agent names whose pages go; another one may be who redacts
    if key is not None:
        people.info(f"what the project recorded of it stays: jidomem journal redact --dry-run --text {quote(key[1])}")
    for iri in forgotten.promoted:
        people.warn(
            f"{iri} derives from it and stays: jidomem edit {iri} --invalidate --reason TEXT,"
            f" or jidomem journal redact {iri} --reason TEXT"
        )
    _print_waiting(app, memory_os_)


def _print_left_out(app: App, memory_os_: MemoryOS, about: str | None) -> None:
    """Print that pages of users are left out, if nobody is named and there are some."""
    if about is None and not memory_os_.config.share_users and any(page.user for page in memory_os_.tiers.pages()):
        app.info(
            "pages and facts of users are left out: add --about user:NAME, or show them to all:"
            " jidomem agent memoryos set share_users=true"
        )


def _print_waiting(app: App, memory_os_: MemoryOS) -> None:
    if waiting := len(memory_os_.jobs()):
        app.info(f"{waiting} pending {'job' if waiting == 1 else 'jobs'}: jidomem agent memoryos maintain")


def _pair(about: str | None) -> tuple[str, str] | None:
    """Return the type and the name in `TYPE:NAME`; raises InvalidRequest for any other form."""
    if about is None:
        return None
    kind, _, name = about.partition(":")
    if not kind or not name:
        raise InvalidRequest(f"--about {about!r} has no type or name", hint="give a type and a name: --about user:ana")
    return kind, name


def _known_object(tiers: Tiers, about: str | None) -> ObjectKey | None:
    from jidomem.extras.memoryos.values import ObjectKey  # an extra

    pair = _pair(about)
    return None if pair is None else tiers.known_object(ObjectKey(*pair))


def _setting(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign:
        raise InvalidRequest(f"{text!r} sets nothing", hint=f"give it a value: {text}=VALUE")
    return name, json_or_text(value)
