"""`jidomem ontology`: the terms of a project, the check of its own terms, shapes and queries, and proposed terms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jidomem.rdf.terms import Term, iri, plain_value
from jidomem.rdf.vocab import local_name
from jidomem_cli.check import FILE, FORMATS, MISUSE, UNCHECKED, report_error, show
from jidomem_cli.options import ROWS, App, Command, CommandGroup, clean, pass_app, reason_option
from jidomem_cli.output import show_json, show_result, show_rows

if TYPE_CHECKING:
    from jidomem.check.terms import TermEntry
    from jidomem.curation.term_proposals import Proposal
    from jidomem.schema.ontology import Schema


@click.group(cls=CommandGroup)
def ontology() -> None:
    """Look up terms; validate the terms, shapes and queries of a project, and propose new ones.

    Examples:
      jidomem ontology show Decision
      jidomem ontology check
    """


@ontology.command("check", cls=Command, formats=FORMATS)
@click.argument("paths", type=FILE, nargs=-1)
@pass_app
def check_overlay(app: App, paths: Sequence[Path]) -> int:
    """Check ontology/, shapes/ and queries/ of the root, or such files at PATHS.

    Lists every fault that keeps a root from being opened, with file and line.
    Exit codes: 0 no violation, 1 a violation, 2 usage error, 3 something could not be checked.

    Examples:
      jidomem ontology check
      jidomem ontology check --format github
    """
    from jidomem.check.overlay import check_overlay
    from jidomem.runtime import settings

    try:
        loaded = settings.load(app.root, app.project)
        if not paths:
            app.refuse_missing(loaded)
        report = check_overlay(loaded.root, paths)
        show(app, report)
    except Exception as error:
        return MISUSE if report_error(error, app) == MISUSE else UNCHECKED
    return report.exit_code


@ontology.command("show", cls=Command, formats=("table", "json", "md", "ttl"))
@click.argument("term", required=False)
@pass_app
def show_terms(app: App, term: str | None) -> None:
    """Show the definition of TERM, its shapes and where it is declared; without TERM, list all terms.

    TERM is an IRI, a name such as jido:topic, my:Recipe or Decision, or the type of an intent.

    Examples:
      jidomem ontology show
      jidomem ontology show Decision
      jidomem ontology show jido:topic --json
      jidomem ontology show architectural_decision --format md
    """
    from jidomem.check import terms
    from jidomem.rdf.turtle import turtle

    memory = app.open()
    folders = [memory.settings.root]
    match = None if term is None else terms.find(memory.schema, term)
    chosen = terms.glossary_terms(memory.schema) if match is None else [match]
    form = app.form
    if form == "ttl":
        click.echo(turtle(terms.described(memory.schema, chosen)), nl=False)
    elif match is not None:
        entry = terms.entry(memory.schema, match, folders)
        if form == "json":
            show_json(entry.to_dict())
        else:
            _print_entry(entry, md=form == "md")
    elif form == "json":
        listed = [_brief(memory.schema, each) for each in chosen]
        show_json({"version": memory.schema.version, "terms": listed})
    else:
        _print_all(memory.schema, md=form == "md")
        app.info(f"version {memory.schema.version}")


def _brief(schema: Schema, term: Term) -> dict[str, Any]:
    from jidomem.check.terms import short

    kind = "class" if term in schema.classes else "property" if term in schema.properties else "individual"
    return {"iri": plain_value(term), "name": short(term), "kind": kind, "deprecated": term in schema.deprecated}


def _print_all(schema: Schema, *, md: bool) -> None:
    """Print the class tree, then the properties with domain and range, then the individuals."""
    from jidomem.check import terms

    def listed(terms_: Iterable[Term]) -> str:
        return " or ".join(sorted(map(terms.short, terms_))) or "anything"

    old = schema.deprecated
    mark = dict.fromkeys(old, " (deprecated)")
    click.echo("## Classes\n" if md else "Classes")
    for depth, cls in terms.tree(schema):
        click.echo(clean(f"{'  ' * depth}{'- ' if md else '  '}{terms.short(cls)}{mark.get(cls, '')}"))
    click.echo("\n## Properties\n" if md else "\nProperties")
    for term, declared in sorted(schema.properties.items()):
        ends = f"{listed(declared.domain)} -> {listed(declared.range)}"
        click.echo(clean(f"{'- ' if md else '  '}{terms.short(term)}: {ends}{mark.get(term, '')}"))
    click.echo("\n## Individuals\n" if md else "\nIndividuals")
    for term, kinds in sorted(schema.individuals.items()):
        click.echo(clean(f"{'- ' if md else '  '}{terms.short(term)}: {listed(kinds)}{mark.get(term, '')}"))


def _print_entry(entry: TermEntry, *, md: bool) -> None:
    from jidomem.check.terms import short

    name, bullet = short(iri(entry.iri)), "- " if md else "  "
    kind = f"functional {entry.kind}" if entry.functional else entry.kind
    title = f"{name} ({'deprecated ' if entry.deprecated else ''}{kind})"
    click.echo(f"# {clean(title)}\n" if md else clean(title))
    rows = [("replaced by", short(iri(entry.replaced_by)) if entry.replaced_by else ""), ("means", entry.definition)]
    rows += [("example", entry.example), ("not", entry.note)]
    rows += [(field, ", ".join(short(iri(each)) for each in getattr(entry, field)))
             for field in ("above", "below", "classes", "individuals", "properties", "domain", "range")]  # fmt: skip
    rows.append(("declared", f"{entry.path}:{entry.line}" if entry.line else entry.path or ""))
    for field, text in rows:
        if text:
            click.echo(clean(f"{bullet}{field}: {text}"))
    for rule in entry.rules:
        aim = f" (of {short(iri(rule.target))})" if rule.target and rule.target != entry.iri else ""
        click.echo(clean(f"{bullet}{rule.severity} {short(iri(rule.iri))}{aim}: {rule.message}"))


@ontology.command("propose", cls=Command, writes=("agent", "wait"))
@click.argument("term")
@click.option("--kind", required=True, type=click.Choice(("class", "property")), help="Kind of term.")
@click.option("--definition", required=True, metavar="TEXT", help="Definition, in one sentence.")
@reason_option(required=True)
@click.option("--parent", "parents", multiple=True, metavar="TERM", help="Class or property above it.")
@click.option("--domain", multiple=True, metavar="CLASS", help="Class of its subjects.")
@click.option(
    "--range", "range_", multiple=True, metavar="CLASS", help="Class or datatype of its values, such as xsd:integer."
)
@click.option("--label", metavar="TEXT", help="Label (default: the words of its name).")
@pass_app
def propose(app: App, /, term: str, **fields: Any) -> None:
    """Propose TERM, a new class or property, for a curator to accept or reject.

    TERM is a name in the namespace of the project, or an IRI.

    Examples:
      jidomem ontology propose Recipe --kind class --parent Fact --definition "A way to cook." --reason "we cook"
    """
    memory = app.open()
    _print_proposal(app, memory.term_proposals().propose(term, **fields))


@ontology.command("proposals", cls=Command, formats=ROWS)
@click.option("--all", "answered", is_flag=True, help="Also finished ones.")
@pass_app
def proposals(app: App, answered: bool) -> None:
    """List the pending terms.

    Examples:
      jidomem ontology proposals
      jidomem ontology proposals --all --json
    """
    proposed = app.read().term_proposals()
    rows = [each.to_dict() for each in (proposed.all() if answered else proposed.waiting())]
    show_rows(app, rows, ("term", "outcome", "by", "reason", "proposed_at", "answered_by", "answer"))


@ontology.command("accept", cls=Command, writes=("agent", "wait"))
@click.argument("term")
@reason_option()
@pass_app
def accept(app: App, term: str, reason: str | None) -> None:
    """Accept a proposed TERM, as a curator: it is written to ontology/accepted.ttl.

    A running process, such as `jidomem serve`, uses it at its next write.

    Examples:
      jidomem ontology propose serves --kind property --range xsd:integer --definition "For how many." --reason "asked"
      jidomem ontology accept serves --agent curator
    """
    memory = app.read()
    _print_proposal(app, memory.term_proposals().accept(term, reason=reason or ""))


@ontology.command("reject", cls=Command, writes=("agent", "wait"))
@click.argument("term")
@reason_option(required=True)
@pass_app
def reject(app: App, term: str, reason: str) -> None:
    """Reject a proposed TERM, as a curator, or withdraw your own.

    Examples:
      jidomem ontology propose Soup --kind class --definition "Something liquid to eat." --reason "we cook"
      jidomem ontology reject Soup --reason "it is a recipe"
    """
    memory = app.read()
    _print_proposal(app, memory.term_proposals().reject(term, reason=reason))


def _print_proposal(app: App, proposal: Proposal) -> None:
    show_result(app, proposal.to_dict(), proposal.term)
    app.info(f"{proposal.outcome}: {clean(proposal.term)}")


@ontology.command("diff", cls=Command, formats=("table", "json", "md"))
@click.option("--from", "old", metavar="VERSION", default="shipped", show_default=True, help="Former version.")
@click.option("--to", "new", metavar="VERSION", help="New version (default: the present overlay of the root).")
@click.option(
    "--first", type=click.IntRange(0), default=20, show_default=True, help="Maximum number of listed failures."
)
@pass_app
def diff(app: App, old: str, new: str | None, first: int) -> int:
    """Compare two versions of the ontology, and list the active memories that would now fail.

    A VERSION is `shipped`, `now`, a folder with ontology/ and shapes/, a git revision of the root's own, or the version
    that commits name, where git has the overlay of then.
    Exits with 1 if a memory that is valid under the former would fail under the new one.

    Examples:
      jidomem ontology diff --from shipped --to now
      jidomem ontology diff --json
    """
    from jidomem.check.overlay import changes, now_failing, version

    memory = app.read()
    memory.catch_up(memory.project)
    before, after = (version(memory.settings.root, name) for name in (old, new))
    rows = [each.to_dict() for each in changes(before, after)]
    failing, count = [], 0
    for failure in now_failing(memory.index, memory.project, before, after):
        count += 1
        if count <= first:
            failing.append({"item": plain_value(failure.item), "rule": failure.rule, "message": failure.message})
    if app.form == "json":
        ends = {"from": before.version, "to": after.version}
        show_json({**ends, "changes": rows, "failing": failing, "failures": count})
        return int(count > 0)
    show_rows(app, rows, ("change", "kind", "term", "what"))
    for each in failing:
        click.echo(clean(f"would fail: {each['item']}: {local_name(each['rule'])}: {each['message']}"))
    if count > len(failing):
        click.echo(f"... and {count - len(failing):,} more: --first {count}")
    app.info(f"from {before.version} to {after.version}: {len(rows)} changed, {count} would now fail")
    return int(count > 0)
