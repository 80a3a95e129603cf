"""`jidomem redact`: take a secret out of the journal, and out of all that was made of it, for good."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict

import click

from jidomem import Jidomem
from jidomem.anchor import ANCHOR, anchors_of
from jidomem.errors import InvalidRequest
from jidomem.govern.keeper import Plan, gives_away
from jidomem.govern.leftovers import DERIVED, NOT_SEARCHED, Leftover, leftovers, source_leftovers
from jidomem.govern.spellings import AS_IT_IS
from jidomem.govern.traces import BLOBS, DIGEST, UNKNOWN
from jidomem.read import source_names
from jidomem.read.item import short_id
from jidomem.terms import Term, bare
from jidomem.version import SHORT
from jidomem.vocab import JIDO, jido
from jidomem.write import names
from jidomem.write.triples import TEXTS
from jidomem_cli.door import Door, Verb, pass_door
from jidomem_cli.fields import own_words, whole_id
from jidomem_cli.paths import Paths
from jidomem_cli.tables import show_json, show_rows

#: How many memories a line names.
_NAMED = 5
_COLUMNS = ("stream", "commit", "item", "property", "why", "form")
_PROPERTIES: Mapping[str, str] = {
    **TEXTS,
    "evidence": "derivedFrom",
    "alternatives": "hasAlternative",
    "tracked_by": "trackedBy",
}


@click.command(cls=Verb, writes=("agent", "wait"))
@click.argument("item", metavar="[IRI]", required=False)
@click.option("--property", "properties", multiple=True, metavar="NAME", help="What of it; else all it says in words.")
@click.option("--text", "texts", multiple=True, metavar="TEXT", help="The secret, wherever it stands; - reads it.")
@click.option("--reason", metavar="TEXT", help="Why, without the secret.", callback=own_words)
@click.option("--dry-run", is_flag=True, help="Show what would go, and touch nothing.")
@click.option("--again", is_flag=True, help="Finish a redaction that was cut short, or whose secret came back.")
@pass_door
def redact(
    door: Door,
    item: str | None,
    properties: tuple[str, ...],
    texts: tuple[str, ...],
    reason: str | None,
    dry_run: bool,
    again: bool,
) -> int:
    """Take what the memory IRI says, or a text, out of the journal for good; the chain of commits still verifies.

    A --text is looked for in other case, white space and Unicode forms, over line ends, escaped, percent-encoded, as
    names are made of it, and a number with other separators; the forms that were found are listed. With it goes what
    was copied from it, and the digests by which a guess at it could be confirmed. The commit that
    records it says who, why, and which memories. Where a project has curators, they alone redact. A secret given with
    --text stays in the history of your shell; --text - reads it from standard input instead. Look first with
    --dry-run.

    Examples:
      jidomem redact 9c0d1e2f --dry-run
      jidomem redact 9c0d1e2f --property summary --reason "it named a customer" --agent curator
      cat secret.txt | jidomem redact --text - --reason "a key was pasted" --agent curator
    """
    memory = door.read()
    if again:
        if item or properties or texts or dry_run:
            raise InvalidRequest("--again does what was asked before", hint="leave out all but --reason")
        made = memory.keeper.redact_again(memory.project, agent=memory.writer.agent, reason=_given(reason))
        _told(door, memory, [commit.id for commit in made], None)
        return 0
    if properties and texts:
        raise InvalidRequest("--property and --text are two ways to say what goes", hint="leave one of them out")
    plan = memory.keeper.plan(
        memory.project,
        whole_id(memory, item) if item else None,
        properties=[_property(name) for name in properties],
        texts=[_secret(text) for text in texts],
    )
    if dry_run:
        _show(door, memory, plan)
        return 0
    sources = _source_paths(memory)  # before what names them goes
    made = memory.keeper.redact(plan, agent=memory.writer.agent, reason=_given(reason))
    _told(door, memory, [commit.id for commit in made], plan, sources)
    return 0


def _given(reason: str | None) -> str:
    if not reason or not reason.strip():
        raise InvalidRequest("a redaction is recorded with its reason", hint='add --reason "why it has to go"')
    return reason


def _secret(text: str) -> str:
    """Return the text to look for; `-` stands for standard input, but for the line end."""
    return sys.stdin.read().rstrip("\r\n") if text == "-" else text


def _property(name: str) -> str:
    """Return the IRI of a property from the name of a field, of a term of the ontology, or its IRI."""
    if ":" in name:
        return names.expand(name) or name
    return JIDO + _PROPERTIES.get(name.replace("-", "_"), name)


def _show(door: Door, memory: Jidomem, plan: Plan) -> None:
    rows = [
        {
            "stream": f"{stream.project}/{stream.name}",
            "commit": trace.commit[:SHORT],
            "item": None if gives_away(trace.triple[0]) else bare(trace.triple[0]),
            "property": bare(trace.triple[1]),
            "why": trace.why,
            "form": trace.form or None,
        }
        for stream, trace in plan.traces
    ]
    show_rows(door, rows, _COLUMNS)
    commits = len({row["commit"] for row in rows})
    door.say(f"{len(rows)} statements of {commits} commits would go; nothing was touched")
    _say_found(door, plan)
    for cost in _costs(plan):
        door.say(f"cost: {cost}")
    _say_emptied(door, plan, "would say")
    names = [*DERIVED, *(["state"] if plan.held else [])]  # the folders that a redaction takes the texts out of
    rewritten = [memory.settings.root / name for name in names]
    every = _left(memory, plan, _source_paths(memory))
    left = [each for each in every if not any(map(each.path.is_relative_to, rewritten))]
    _warn_left(door, left)
    _warn_history(door, memory, left)


def _costs(plan: Plan) -> Iterator[str]:
    """Yield what can no longer be told, found or recognised once the digests of *plan* are gone."""
    digests = [trace for _, trace in plan.traces if trace.why in (DIGEST, UNKNOWN)]
    files: dict[tuple[Term, str], set[Term]] = defaultdict(set)
    unknown: dict[str, set[str]] = defaultdict(set)
    others: dict[Term, set[Term]] = defaultdict(set)
    for trace in digests:
        subject, predicate, value = trace.triple
        others[predicate].add(subject)
        for anchor in anchors_of([value]) if predicate in BLOBS else ():
            files[predicate, anchor.path].add(subject)
            if trace.why == UNKNOWN:
                unknown[anchor.path].add(anchor.blob)
    for (predicate, path), items in sorted(files.items()):
        if predicate == ANCHOR:
            told = f"freshness of {_memories(items)} about {path} can no longer be told"
            yield f"{told}, until: jidomem revise {_id(min(items))} --confirm"
        else:
            yield f"an import of {path} no longer recognises the version that {_memories(items)} came from"
    for path, blobs in sorted(unknown.items()):
        versions = "1 version" if len(blobs) == 1 else f"{len(blobs)} versions"
        yield f"neither the file nor git has the content of {versions} of {path}: whether it was there cannot be told"
    if keyed := others[jido("conflictKey")]:
        yield f"{_memories(keyed)} can no longer be found to repeat or contradict others by what is taken out"
    if requests := others[jido("requestDigest")] | others[jido("receipt")]:
        yield f"a retry of the request of {_memories(requests)} is no longer recognised"


def _memories(items: Collection[Term]) -> str:
    return "1 memory" if len(items) == 1 else f"{len(items)} memories"


def _id(item: Term) -> str:
    return short_id(bare(item))


def _say_emptied(door: Door, plan: Plan, says: str) -> None:
    """Name the active memories that say nothing without the texts, with the command that ends them."""
    if not plan.emptied:
        return
    count, shown = len(plan.emptied), [short_id(item) for item in plan.emptied]
    named = ", ".join(shown if door.verbose else shown[:_NAMED])
    more = f" and {count - _NAMED} more (-v names all)" if count > _NAMED and not door.verbose else ""
    door.say(f"active, and {says} nothing any more: {named}{more}")
    door.say(f'end each: jidomem revise {shown[0]} --invalidate --reason "its text was redacted"')


def _say_found(door: Door, plan: Plan) -> None:
    """Say in which forms the texts were found, and how much of the working state shows them."""
    if forms := {form: count for form, count in plan.forms.items() if form != AS_IT_IS}:
        door.say(f"forms other than as it is: {_counted(forms)}")
    if plan.held:
        door.say(f"entries of the working state: {_counted(plan.held)}")


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def _source_paths(memory: Jidomem) -> set[str]:
    """Return the paths of the files that memories were imported from."""
    return {source.path for source in source_names.sources(memory.tail.index, memory.project)}


def _left(memory: Jidomem, plan: Plan, sources: Collection[str]) -> list[Leftover]:
    """Return the files in which the texts stand: of the root, and of the repository those that memories came from."""
    root, texts = memory.settings.root, sorted(plan.wanted.texts)
    return [
        *leftovers(root, texts, memory.project),
        *source_leftovers(Paths(root, memory.tree).folder, sources, texts),
    ]


def _warn_left(door: Door, left: Sequence[Leftover]) -> None:
    for found in left:
        where = "the name of " if found.in_name else ""
        form = "" if found.form == AS_IT_IS else f" ({found.form})"
        stands = "may stand" if found.form == NOT_SEARCHED else "stands"
        line = f":{found.line}" if found.line is not None else ""
        door.warn(f"it {stands} in {where}{found.path}{line}{form}, which no redaction rewrites: {found.hint}")


def _warn_history(door: Door, memory: Jidomem, left: Sequence[Leftover]) -> None:
    """Say that git has the text in its history: in files of the journal, and in each source that holds it."""
    root = memory.settings.root
    sources = dict.fromkeys(str(each.path) for each in left if not each.path.is_relative_to(root))
    kept = f" of the journal, and {', '.join(sources)} where it was committed," if sources else ""
    if memory.journal.is_tracked or (sources and memory.tree is not None):
        door.warn(
            f"git keeps the old files{kept} in its history, and so does every clone: rewrite it with git filter-repo,"
            " and have every clone made anew"
        )


def _told(door: Door, memory: Jidomem, made: Sequence[str], plan: Plan | None, sources: Collection[str] = ()) -> None:
    """Say what was done, and what of it this command cannot reach."""
    left = _left(memory, plan, sources) if plan is not None else []
    tracked, others = memory.journal.is_tracked, memory.tail.others
    if door.json:
        told = [{**asdict(each), "path": str(each.path)} for each in left]
        found = {"forms": dict(plan.forms), "working_state": dict(plan.held)} if plan is not None else {}
        show_json({"commits": list(made), "left": [str(each.path) for each in left], "leftovers": told, **found,
                   "in_git": tracked, "other_processes": others})  # fmt: skip
    for commit in made if not door.json else ():
        click.echo(commit)
    if not made and (plan is None or not plan.held):
        door.say("nothing was left to do")
        return
    if plan is not None:
        _say_found(door, plan)
        _say_emptied(door, plan, "say")
    _warn_left(door, left)
    if others:
        door.warn(f"{others} other processes have an index of this root open; each drops it when it is next asked")
    _warn_history(door, memory, left)
    door.say(
        "what this cannot reach: other copies of this root, backups, exports, and answers that were given already;"
        " a password or key that was written down should be changed. A copy that comes back by a merge is not"
        " served, and is reported by: jidomem verify"
    )
