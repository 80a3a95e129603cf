"""`jidomem show`: prints one memory, its history or its reasons; `journal log` and `journal diff` list changes."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import click

from jidomem import Jidomem
from jidomem.base.clock import json_value
from jidomem.base.words import ANSWERS, cut
from jidomem.errors import InvalidRequest
from jidomem.rdf.statements import value_text
from jidomem.rdf.terms import plain_value
from jidomem.rdf.vocab import REDACTED, jido, local_name
from jidomem.read.derived import trust
from jidomem.read.history import FIELD_OF_PROPERTY, NO_EVENT, Rewording, node_texts, recorded_in, rewordings
from jidomem.records.active import ACTIVE, OUTCOME, PENDING, outcome_text
from jidomem_cli.fields import memory_path
from jidomem_cli.options import READ, ROWS, App, Command, clean, limit_option, pass_app, printed_end
from jidomem_cli.output import (
    INDENT,
    PIPED,
    class_label,
    cut_text,
    line_width,
    read_listed,
    short,
    show_fields,
    show_json,
    show_rows,
)


@click.command(cls=Command, formats=(*ROWS, "ttl"), as_of=True, valid_at=True)
@click.argument("item", metavar="IRI")
@click.option("--history", "view", flag_value="history", help="Show its versions and proposed changes instead.")
@click.option("--why", "view", flag_value="why", help="Show its sources, evidence, rules and consequences instead.")
@click.option("--source-trust", "view", flag_value="trust", help="Show the trust in its sources instead.")
@pass_app
def show(app: App, item: str, view: str | None) -> None:
    """Show the memory IRI, which is a full IRI or at least 4 characters of the shown id.

    An imported memory is also named by its file, record number, title, or file and line: docs/adr/0016-names.md, 0016,
    AGENTS.md:64; any of its lines, or the beginning of the file name, is enough. This holds for every command.

    --history lists its versions with event and author, oldest first, and below each the reason and the changed fields
    as FIELD: BEFORE -> AFTER; --json has them in full as `changes`.

    --why shows date, author, session, source, evidence, rules, replacement, consequences and conflicts. An imported
    record has two dates: that of the decision, and that of the import.

    --source-trust shows untrusted, ordinary or trusted, and the source that decides it.

    Examples:
      jidomem show 1a2b3c4d
      jidomem show 1a2b3c4d --format ttl
      jidomem show 1a2b3c4d --history --as-of 2030-01-01
      jidomem show 1a2b3c4d --why --json
    """
    formats = _VIEWS[view]
    if app.format is not None and app.format not in formats:
        hint = f"give --format {' or '.join(formats)}"
        raise InvalidRequest(f"--{view or 'show'} cannot be printed as {app.format}", hint=hint)
    memory = app.read()
    name = memory_path(memory, item)
    if view == "history":
        _show_history(app, memory, name)
    elif view == "why":
        _show_why(app, memory, name)
    elif view == "trust":
        _show_trust(app, memory, name)
    else:
        _show_memory(app, memory, name)


#: View -> the formats it can be printed in.
_VIEWS: Mapping[str | None, Sequence[str]] = {
    None: ("table", "json", "md", "ttl"),
    "history": ROWS,
    "why": ("table", "json", "md"),
    "trust": ("table", "json"),
}


def _show_memory(app: App, memory: Jidomem, name: str) -> None:
    whole = memory.reader.resolve(memory.project, name, as_of=app.as_of)
    moment = {"as_of": app.as_of, "valid_at": app.valid_at}
    if app.format == "ttl":
        from jidomem.rdf.turtle import turtle  # imported here, as most memories are shown as text

        click.echo(turtle(memory.reader.describe(memory.project, whole, **moment)), nl=False)
        return
    record = memory.reader.get_memory(memory.project, whole, **moment)
    if app.form == "json":
        show_json(json_value(record))
    else:
        texts = node_texts(memory.reader, memory.project, map(str, chain.from_iterable(record["properties"].values())))
        show_fields(app, _memory_lines(record, _reworded(memory, record), texts))
        if (newer := _in_its_place(memory, record)) is not None:
            app.info(f"in its place: jidomem show {short(newer)}")
        if not record["properties"].get("summary"):
            app.info(f"redacted by whom, when and why: jidomem show {short(record['iri'])} --history")


def _show_trust(app: App, memory: Jidomem, name: str) -> None:
    level, source = trust(memory.reader, memory.project, name)
    if app.form == "json":
        show_json({"trust": level, "by": source})
        return
    click.echo(level)
    app.info(f"by {short(source)}")


def _in_its_place(memory: Jidomem, record: dict[str, Any]) -> str | None:
    """Return the last successor of *record*, or None if it was not superseded."""
    last, seen = record, {record["iri"]}
    while (newer := next(iter(last["superseded_by"]), None)) is not None and newer not in seen:
        seen.add(newer)
        last = memory.reader.get_memory(memory.project, newer)
    return None if last is record else str(last["iri"])


def _reworded(memory: Jidomem, record: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the sentences that a proposal changes in each memory that it is to replace: before ("was") and after
    ("now").
    """
    if record["status"] != PENDING:
        return []
    replaced = record["properties"].get("supersedes", ())
    changes = rewordings(memory.reader, memory.project, record["iri"], replaced)
    return [(name, text) for each in changes for name, text in (("was", each.was), ("now", each.now)) if text]


def _memory_lines(
    record: dict[str, Any], reworded: list[tuple[str, str]], texts: Mapping[str, str]
) -> list[tuple[str, Any]]:
    """Return the fields of a memory for people, the important first, with *texts* in place of IRIs; no empty ones."""
    properties = {
        name: [texts.get(str(each), value_text(each)) for each in values]
        for name, values in record["properties"].items()
    }
    head = [
        ("id", short(record["iri"])),
        ("iri", f"<{record['iri']}>"),
        ("class", _class_with_own(record)),
        ("status", record["status"]),
    ]
    head.append(("summary", properties.pop("summary", [REDACTED])))
    if outcome := record.get(OUTCOME):
        head.append((OUTCOME, outcome_text(outcome)))
        if properties.get("revisionReason") == [outcome.get("reason")]:
            del properties["revisionReason"]
    head += [(_property_label(name), properties.pop(name, [])) for name in ANSWERS]
    head += reworded
    ends = [("superseded by", record["superseded_by"]), ("invalidated by", record["invalidated_by"])]
    tail = [(_property_label(name), values) for name, values in properties.items() if name not in _HIDDEN]
    return [(name, _pasteable(value)) for name, value in [*head, *ends, *tail] if value]


def _class_with_own(record: Mapping[str, Any]) -> str:
    """Return the class of a memory, after the own classes of the project that it has."""
    own = ", ".join(map(local_name, record["own_classes"]))
    return f"{own} ({record['class']})" if own else class_label(record["class"])


def _property_label(name: str) -> str:
    """Return the label of a property: the name of the field of an intent, else the words of the term; an IRI as it is.

    >>> _property_label("derivedFrom"), _property_label("recordedIn"), _property_label("worksAt")
    ('evidence', 'commit', 'works at')
    """
    if ":" in name:
        return name
    field = _PROPERTY_LABELS.get(name) or FIELD_OF_PROPERTY.get(name)
    return field.replace("_", " ") if field else re.sub("([A-Z])", r" \1", name).lower().strip()


#: Property -> its label, if it is no field of an intent or has another name there.
_PROPERTY_LABELS: Mapping[str, str] = {
    "revisionReason": "reason", "appliesToProject": "project", "assertedBy": "author", "assertedIn": "session",
    "decisionStatus": "decision status", "hasTaskStatus": "task status", "hasErrorStatus": "error status",
    "hasTimestamp": "dated", "recordedAt": "recorded", "recordedIn": "commit", "quarantined": "from untrusted source",
}  # fmt: skip
#: Properties that repeat the status, or serve the detection of conflicts and retries.
_HIDDEN = ("hasAssertionStatus", "conflictKey", "requestDigest", "receipt")


def _pasteable(value: Any) -> Any:
    """Return *value*; a text that begins or ends with spaces, as a pattern may, is quoted for a shell to make them
    visible.

    >>> _pasteable(["^puts", "^puts "])
    ['^puts', "'^puts '"]
    """
    if isinstance(value, list):
        return [*map(_pasteable, value)]
    return shlex.quote(value) if isinstance(value, str) and value != value.strip() else value


_UNSET, _ARROW = "(none)", " -> "


def change_lines(app: App, changes: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return `FIELD: BEFORE -> AFTER` for each change, cut to the available width; in full with -v."""
    width = line_width(app, PIPED)
    return [_line(change, None if width is None else width - len(INDENT)) for change in changes]


def _line(change: Mapping[str, Any], width: int | None) -> str:
    name = change["field"].replace("_", " ")
    was, now = (" ".join(short(change[side]).split()) or _UNSET for side in ("before", "after"))
    if width is None:
        return f"{name}: {was}{_ARROW}{now}"
    longest = max((width - len(f"{name}: {_ARROW}")) // 2, 1)
    if len(was) + len(now) > 2 * longest:
        part = Rewording(was, now).shortened(longest)
        was, now = cut_text(part.was, longest), cut_text(part.now, longest)
    return cut_text(f"{name}: {was}{_ARROW}{now}", width)


_CHANGES = "changes"
#: The columns of a table; the kind is the same in most rows, and the reason is shown below its row.
_HISTORY_COLUMNS = ("recorded", "event", "agent", "entry", "summary", "status")


def _show_history(app: App, memory: Jidomem, name: str) -> None:
    rows = memory.reader.history(memory.project, name, as_of=app.as_of, valid_at=app.valid_at)
    columns = memory.playbook.get("history").columns
    if app.form == "table":
        rows = [{**row, _CHANGES: _below(app, row)} for row in rows]
        columns = _HISTORY_COLUMNS
    elif app.form == "md":
        rows = [{**row, _CHANGES: "; ".join(_line(change, None) for change in row[_CHANGES])} for row in rows]
        columns = (*_HISTORY_COLUMNS, "reason", _CHANGES)
    show_rows(app, rows, columns, below=_CHANGES)


def _below(app: App, row: dict[str, Any]) -> list[str]:
    """Return the lines below a version: its date if it is older, its reason, its changes, and its redactions."""
    is_older = row["date"] is not None and row["recorded"] is not None and row["date"].date() < row["recorded"].date()
    dated = [f"dated: {short(row['date'])}"] if is_older else []
    reason = [f"reason: {row['reason']}"] if row["reason"] else []
    also = [
        f"also superseded: {short(each['iri'])}: {clean(each['summary'] or REDACTED)}"
        for each in row["also_superseded"]
    ]
    return [*dated, *reason, *change_lines(app, row["changes"]), *also, *map(_redaction, row["redactions"])]


def _redaction(row: dict[str, Any]) -> str:
    agent, reason = (clean(row[name] or REDACTED) for name in ("agent", "reason"))
    return f"redacted by {short(agent)}, {short(row['recorded'])}: {reason}"


_LOG_COLUMNS = ("version", "recorded_at", "graph", "agents", "sessions", "brought")
#: The agents, and the sessions, of a commit that are shown without -v.
_FEW = 3
_FULL_LOG_COLUMNS = (
    "version", "recorded_at", "commit", "graph", "committer", "ontology", "agents", "sessions", "brought", "redacted",
    "set_aside", "reason",
)  # fmt: skip
_CHANGED = ("change", "item", "kind", "summary", "before", "after", "by")


@click.command(cls=Command, formats=ROWS, paged=True, as_of=True)
@click.option("--agent", metavar="NAME", help="Only memories and orders of this agent.")
@pass_app
def log(app: App, agent: str | None) -> None:
    """List the commits of the project, newest first: version, time, agents, sessions and how much each brought,
    or how many commits it redacted and why. With --agent, those with a memory that it wrote or
    settled, or an order of it; not those with its entries or conversation turns only.

    Examples:
      jidomem journal log --limit 10
      jidomem journal log --agent ana
      jidomem journal log --json --as-of 2030-01-01
    """
    memory = app.read()
    page, left = read_listed(
        app,
        lambda limit, cursor: memory.reader.log(
            memory.project, as_of=app.as_of, limit=limit, cursor=cursor, agent=agent
        ),
    )
    if app.form in READ:
        rows = [{**row, "brought": _commit_text(row), **_first_names(app, row)} for row in page.rows]
        show_rows(app, rows, _LOG_COLUMNS, page.cursor, left=left)
    else:
        show_rows(app, page.rows, _FULL_LOG_COLUMNS, page.cursor)


def _first_names(app: App, row: dict[str, Any]) -> dict[str, str]:
    """Return the first agents and sessions of a commit, and the number of the others, as texts."""
    parts = {name: app.first(row[name], _FEW) for name in ("agents", "sessions")}
    return {name: short(shown) + f" and {left} more" * (left > 0) for name, (shown, left) in parts.items()}


def _commit_text(row: dict[str, Any]) -> str:
    counts = [f"{count} {class_label(kind)}" for kind, count in row["brought"].items()]
    if count := len(row["redacted"]):
        counts.append(f"redaction of {count} {'commit' if count == 1 else 'commits'}: {row['reason'] or REDACTED}")
    elif row["set_aside"]:
        counts.append(f"file set aside: {row['reason'] or REDACTED}")
    elif row["reason"]:
        counts.append(f"redaction of the working state: {row['reason']}")
    return ", ".join(counts)


@click.command(cls=Command, formats=ROWS, as_of=True, valid_at=True)
@limit_option()
@click.option(
    "--as-of", "ends", multiple=True, metavar="MOMENT", help="Moment or version; give it once to compare with now."
)
@click.option("--since", metavar="GITREF", help="Report only what changed since this git revision.")
@pass_app
def diff(app: App, ends: tuple[str, ...], since: str | None, limit: int | None) -> None:
    """Compare two moments, each given by --as-of: memories added, superseded or invalidated.

    A moment is ISO 8601, or a version (or its number) that `jidomem journal log` lists. Below an added memory stand
    author, time, reason and the changed fields as FIELD: BEFORE -> AFTER; --json has them in full. --since compares
    with a git revision instead: what the commits of the journal that it lacks record, such as those of a pull request,
    and what was removed with its commit.

    Examples:
      jidomem journal diff --as-of 2026-01-01 --as-of 2030-01-01
      jidomem journal diff --as-of 0
      jidomem journal diff --as-of 2 --limit 20
    """
    given = [*([app.as_of] if app.as_of else []), *map(printed_end, ends)]
    if since is not None and (given or app.valid_at is not None):
        raise InvalidRequest("--since compares with a git revision", hint="leave out --as-of and --valid-at")
    if since is None and len(given) not in (1, 2):
        hint = "jidomem journal diff --as-of 2026-11-01 --as-of 2026-11-21"
        raise InvalidRequest("a comparison is between two moments, or one and now", hint=hint)
    memory = app.read()
    if since is not None:
        rows, given = _diff_since(app, memory, since), ["0"]
    else:
        rows = memory.reader.diff(memory.project, *given, valid_at=app.valid_at)
    shown = rows[:limit]
    if app.form == "table":
        shown = [{**row, "changes": _revision(app, row)} for row in shown]
    show_rows(app, shown, _CHANGED, below="changes")
    if rows:
        counts = Counter(row["change"] for row in rows)
        more = f"; {len(rows) - len(shown)} more: raise --limit" if len(shown) < len(rows) else ""
        app.info(", ".join(f"{count} {change}" for change, count in sorted(counts.items())) + more)
    for each in memory.reader.redactions(memory.project, *given) if since is None else ():
        app.info(f"{short(each['item'])} was {_redaction(each)}")


def _diff_since(app: App, memory: Jidomem, since: str) -> list[dict[str, Any]]:
    """Return the rows of a comparison with a git revision, and print how many of its commits are not here.

    Memories that commits which it lacks add or end, and those removed with their commits since a branch left it.
    """
    from jidomem.journal.branches import Revision, vanished
    from jidomem.journal.commit import stem
    from jidomem.journal.journal import Stream

    stream = Stream(memory.project)
    folder, revision = memory.journal.path(stream), Revision(memory.settings.root, since)
    known, present, recorded = revision.commits(folder), set[str](), set[str]()
    for commit in memory.journal.read(stream):
        present.add(stem(commit.head))
        if stem(commit.head) not in known:
            recorded |= {plain_value(subject) for subject, name, _ in commit.triples if name == jido("recordedIn")}
    rows = memory.reader.diff(memory.project, "0")
    changed = [
        row if row["item"] in recorded else {**row, **NO_EVENT, "change": row["after"], "before": ACTIVE}
        for row in rows
    ]
    base = revision.shared(memory.settings.root)
    removed = [*map(recorded_in, base.read(folder, vanished(base.commits(folder), present)))]
    if lacked := known.keys() - present:
        commits = "1 commit" if len(lacked) == 1 else f"{len(lacked):,} commits"
        app.info(f"{commits} of the memory at {since} {'is' if len(lacked) == 1 else 'are'} not here")
    return [
        *(row for row in changed if not recorded.isdisjoint((row["item"], row["by"]))),
        *({**NO_EVENT, "change": "removed", "item": row["iri"], "kind": row["kind"], "summary": row["summary"],
           "before": row["status"], "after": None, "by": None}
          for row in chain.from_iterable(removed) if row["kind"] != "Alternative"),
    ]  # fmt: skip


def _revision(app: App, row: dict[str, Any]) -> list[str]:
    """Return author, time and reason of an added memory, and its changes; an empty list for other rows."""
    if row["recorded"] is None:
        return []
    why = f": {row['reason']}" if row["reason"] else ""
    text = f"{short(row['agents'])}, {short(row['recorded'])}{why}"
    return [text, *change_lines(app, row["changes"])]


_PLAIN = (
    "class", "status", "state", "summary", OUTCOME, "excerpt", "confidence", "valid_from", "valid_until", "expires_on",
)  # fmt: skip
_LABELS = {"excerpt": "text"}
_REASON = 200


def _show_why(app: App, memory: Jidomem, name: str) -> None:
    explanation = memory.reader.why(memory.project, name, as_of=app.as_of, valid_at=app.valid_at)
    if app.form == "json":
        show_json(json_value(explanation))
    else:
        dated = "decided" if memory.schema.is_a(jido(explanation["class"]), jido("Decision")) else "dated"
        lines = {**explanation, "class": _class_with_own(explanation)}
        show_fields(app, _explanation_lines(lines, dated, app.verbose))


def _explanation_lines(explanation: dict[str, Any], dated: str, verbose: bool) -> Iterator[tuple[str, str]]:
    """Yield the parts of an explanation for people, the important first, without empty ones."""
    yield "id", short(explanation["iri"])
    shown = {**explanation, "summary": explanation["summary"] or REDACTED}
    if explanation[OUTCOME]:
        shown[OUTCOME] = outcome_text(explanation[OUTCOME])
    shown["class"] = class_label(shown["class"])
    yield from ((_LABELS.get(name, name.replace("_", " ")), short(shown[name])) for name in _PLAIN if shown[name])
    yield dated, short(explanation["timestamp"]) if explanation["timestamp"] else "date unknown"
    named = ("recorded_at", "asserted_by", "asserted_in")
    at, agent, session = (short(explanation[name]) or REDACTED for name in named)
    if explanation["settled_by"]:
        yield "author", f"{agent} in session {session}"
        yield "recorded", f"{at} by {short(explanation['settled_by'])}"
    else:
        yield "recorded", f"{at} by {agent} in session {session}"
    yield from (("source", _place(each)) for each in explanation["source"])
    if explanation["commit"]:
        yield "commit", f"{explanation['commit'][:12]} by {short(explanation['committer'])}"
    yield from (("rests on", _entry(each)) for each in explanation["evidence"])
    judged = explanation["judged_by"]
    rules = ", ".join(local_name(rule["rule"]) for rule in judged["rules"])
    many = f"{len(judged['rules'])} rules of ontology {judged['ontology']}"
    yield "validated by", f"{many} (judge: {judged['judge']}): {rules}" if verbose else f"{many} (-v names them)"
    for what in ("replaced", "replaced_by"):
        yield from ((each["how"].replace("_", " "), _entry(each)) for each in explanation[what])
    yield from (("revived by", _entry(each)) for each in explanation["revived_by"])
    yield from (("upheld against", _upheld(each)) for each in explanation["upheld_by"])
    if explanation["in_its_place"]:
        yield "in its place", short(explanation["in_its_place"])
    yield from (("concluded from it", _entry(each)) for each in explanation["derived"])
    if explanation["more_derived"]:
        yield "concluded from it", "and more: jidomem ask derived"
    yield from (("shown in", line) for line in _shown_lines(explanation["shown"] or ()))
    yield from (
        ("disagrees with", f"{short(each['iri'])} ({each['kind']}) {each['summary']}")
        for each in explanation["conflicts"]
    )


def _shown_lines(shown: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each place and agent that a memory was shown in: the last time, and how often if repeatedly."""
    moments: dict[tuple[str, str], list[str]] = {}
    for each in shown:  # the latest first
        moments.setdefault((each["in"], each["agent"] or ""), []).append(short(each["at"]))
    for (where, agent), times in moments.items():
        yield f"{where} {times[0]} {agent}".rstrip() + (f" (the last of {len(times)} times)" if len(times) > 1 else "")


def _place(source: dict[str, Any]) -> str:
    return source["path"] if source["line"] is None else f"{source['path']}:{source['line']}"


def _upheld(each: dict[str, Any]) -> str:
    """Return the memory that a decision ended, with the author, time and reason of the decision, on one line."""
    against, reason = each["against"], f": {cut(each['reason'], _REASON)[0]}" if each["reason"] else ""
    by = f"by {short(each['asserted_by']) or REDACTED} {short(each['recorded_at'])}"
    return f"{short(against['iri'])} {against['summary'] or REDACTED} ({by}{reason})"


def _entry(each: dict[str, Any]) -> str:
    if each.get("status") is None:
        return each.get("text") or f"<{each['iri']}>"
    reason = f" (reason: {cut(each['reason'], _REASON)[0]})" if each.get("reason") else ""
    return f"{short(each['iri'])} ({each['status']}) {each['summary'] or REDACTED}{reason}"
