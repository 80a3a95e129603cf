"""`jidomem sparql`: ask the graphs of one project in SPARQL; nothing is written and nothing outside is asked."""

from __future__ import annotations

import os
from shlex import quote
from typing import TextIO

import click

from jidomem.dataset import unknown_graphs
from jidomem.errors import InvalidRequest
from jidomem.read.reader import Result
from jidomem.read.turtle import turtle
from jidomem.sparql import MAX_BYTES, check, without_service_prefixes
from jidomem.vocab import graphs_of
from jidomem_cli.door import ROWS, Door, Verb, pass_door
from jidomem_cli.tables import show_json, show_rows

_FORMATS = {"select": ROWS, "ask": ("table", "json", "jsonl"), "graph": ("ttl", "table", "json", "jsonl")}


@click.command(cls=Verb, formats=(*ROWS, "ttl"), as_of=True)
@click.argument("query", required=False)
@click.option("-f", "--file", type=click.File("r", encoding="utf-8-sig"), help="Read the query from a file, or - .")
@click.option("--infer", is_flag=True, help="Let `a` match the superclasses of what is stated, too.")
@pass_door
def sparql(door: Door, query: str | None, file: TextIO | None, infer: bool) -> None:
    """Answer a SELECT, ASK, CONSTRUCT or DESCRIBE over the project's graphs and the ontology.

    With --as-of it is asked of a memory replayed to that moment, of up to 32 MB of journal.
    Rows come in the order the query gives them. A graph is printed as Turtle unless --format or --json says otherwise.

    Examples:
      jidomem sparql 'SELECT ?s WHERE { ?s a <https://jido.ai/ontology#Task> } ORDER BY ?s'
      jidomem sparql --json 'ASK { ?s <https://jido.ai/ontology#topic> "store" }'
      jidomem sparql -f query.rq --format csv
    """
    if (query is None) == (file is None):
        raise InvalidRequest("give one query", hint="jidomem sparql 'SELECT ...', or: jidomem sparql -f query.rq")
    if query is not None and os.path.isfile(query):
        raise InvalidRequest(f"{query} is a file, and no query", hint=f"jidomem sparql -f {quote(query)}")
    memory, text = door.read(), _text(query, file)
    result = memory.reader.run(memory.project, text, infer=infer, as_of=door.as_of)
    for graph in unknown_graphs(check(without_service_prefixes(text)), graphs_of(memory.project)):
        door.warn(f"<{graph}> is not a graph of this project, and is read as empty")
    if door.format is not None and door.format not in _FORMATS[result.kind]:
        raise InvalidRequest(
            f"the answer to this query cannot be {door.format}",
            hint=f"give --format {' or '.join(_FORMATS[result.kind])}",
        )
    _show(door, result)


def _text(query: str | None, file: TextIO | None) -> str:
    try:
        return query if query is not None else file.read(MAX_BYTES + 1) if file is not None else ""
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"the query is not UTF-8 at byte {error.start}", hint="send UTF-8 text") from error


def _show(door: Door, result: Result) -> None:
    if result.kind == "select":
        show_rows(door, result.rows, result.variables)
    elif result.kind == "ask":
        as_json = door.json or door.format in ("json", "jsonl")
        show_json({"boolean": result.truth}) if as_json else click.echo(str(result.truth).lower())
    elif door.format == "ttl" or (door.format is None and not door.json):
        click.echo(turtle(result.triples), nl=False)
    else:
        names = ("subject", "predicate", "object")
        show_rows(door, [dict(zip(names, triple, strict=True)) for triple in sorted(result.triples)], names)
