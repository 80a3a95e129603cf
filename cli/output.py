"""Output: rows as a table, JSON, JSON lines, CSV, TSV or Markdown; receipts; and the progress bar of a submission.

A receipt is printed with its IRI as data and its outcome in words.
"""

from __future__ import annotations

import csv
import json
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, time
from itertools import chain, islice
from shlex import quote
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, BinaryIO
from unicodedata import east_asian_width

import click

from jidomem import Jidomem, Receipt
from jidomem.base.clock import json_value, parse_moment
from jidomem.base.words import beginning, escape_in_json
from jidomem.errors import JidomemError, PolicyDenied
from jidomem.rdf.statements import value_text
from jidomem.rdf.vocab import BASE, JIDO, REDACTED, local_name, short_id
from jidomem.read.playbook import cell, tsv_line
from jidomem.records.active import (
    DUE,
    OUTCOME,
    REASON,
    REPEATS,
    UNTIL,
    SimilarMemory,
    dates_text,
    outcome_text,
    similar_choices,
    state_text,
)
from jidomem_cli.options import READ, App, clean

if TYPE_CHECKING:
    from rich.progress import Progress

    from jidomem import Jidomem
    from jidomem.read.lists import Page

_WORDS = "{task.fields[submitted]:,} submitted, {task.fields[refused]:,} refused"


@dataclass(slots=True)
class ProgressBar:
    """A progress bar of the part of *file* that is read, if its size is known, with counts and rate."""

    file: BinaryIO
    _progress: Progress

    def show(self, submitted: int, refused: int) -> None:
        """Show the progress."""
        known: dict[str, Any] = {} if self._progress.tasks[0].total is None else {"completed": self.file.tell()}
        self._progress.update(self._progress.tasks[0].id, submitted=submitted, refused=refused, **known)

    def close(self) -> None:
        """Stop the bar and leave it visible."""
        self._progress.stop()


def progress_bar(app: App, file: BinaryIO, intents: Iterable[Any]) -> ProgressBar | None:
    """Return a progress bar if standard error is a terminal, standard output is not, and --quiet is not set; else
    None.
    """
    if app.quiet or not sys.stderr.isatty() or sys.stdout.isatty():
        return None
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        """A column with the intents per second."""

        def render(self, task: Any) -> Text:
            return Text(f"{task.fields['submitted'] / task.elapsed:,.0f}/s" if task.elapsed else "")

    size = None
    with suppress(OSError):
        if not isinstance(intents, list) and file.seekable():  # a pipe has no size
            size = os.fstat(file.fileno()).st_size or None
    console = Console(stderr=True, color_system="auto" if app.supports_color(sys.stderr) else None)
    columns = [BarColumn(), TextColumn(_WORDS), Rate(), *([TimeRemainingColumn()] if size else [])]
    progress = Progress(*columns, console=console)
    progress.add_task("", total=size, submitted=0, refused=0)
    progress.start()
    return ProgressBar(file, progress)


Row = Mapping[str, Any]
_BEGIN = """: there are no memories yet
import the records of the repository: jidomem init --from auto
or record the first memory: jidomem remember "what an agent should know\""""
_FIRST = (
    "PREFIX jido: <https://jido.ai/ontology#> SELECT (MIN(?at) AS ?first) { ?made a jido:Commit ; jido:recordedAt ?at }"
)
#: The keys of some rows, columns of a table, with the status of an inactive memory and the memories in open conflict.
MEMORY_STATUS, CONFLICTS = "memory_status", "conflicts_with"
_ANNOTATIONS = (MEMORY_STATUS, DUE, UNTIL, CONFLICTS)
#: The spaces between columns, and the least width of a text on a narrow terminal before columns are left out.
_BETWEEN, _LEAST = 2, 16
#: The columns that are left out on a narrow terminal, in this order.
_LEAST_WANTED = ("parts", "topic", "session", "sessions", "agent", "agents", "about", "kind", "level")
_MOMENT = re.compile(r"^(\d{4}-\d\d-\d\d)(?: (\d\d:\d\d)(?::\d\d)?Z)?$")
_MIDNIGHT = time()
#: The column of moments that keeps the time of day when others become dates.
_RECORDED = "recorded"
#: The most rows that are counted after a page of default length.
_COUNTED = 1000
#: The indentation of text below a row.
INDENT = "    "
#: The width of lists for curators without a terminal, since people also read them through a pipe.
PIPED = 120
_MEMORY = re.compile(rf"{re.escape(BASE)}memory/[0-9A-Fa-f-]+(?:/records/[0-9a-f]+)?")
_NAMED = re.compile(rf"{re.escape(BASE)}(?:agents|sessions|projects)/[^/]+")


def show_rows(
    app: App, rows: Iterable[Row], columns: Sequence[str], cursor: str | None = None, *,
    memory: Jidomem | None = None, above: str = "", below: str = "", piped: int | None = None,
    whole: str = "", none: str | None = None, left: str = "",
) -> None:  # fmt: skip
    """Print *rows* in the requested format, and the cursor of the next page with the number of rows *left*.

    Rows of data are printed one by one, as *rows* yields them. A table has the text under the key *above* (which may be
    empty) above its row, and the outcome of a task or error and the text under *below* below it, after the text of the
    column *whole* if that is cut. Without a terminal it is *piped* characters wide. Open conflicts, and the status of
    inactive memories in a list without it, are extra columns. If there are no rows and *memory* is given, the reason is
    printed: nothing was written, or not by that moment, or *none*, else the number of pending proposals.
    """
    form, read = app.form, iter(rows)
    first = [*islice(read, 1)]
    if form in READ:
        rows = [*first, *read]
        names = _ANNOTATIONS if form == "table" else (*_ANNOTATIONS, OUTCOME)
        present = (name for name in names if any(row.get(name) for row in rows))
        columns = [*columns, *(name for name in present if name not in columns)]
        if form == "table":
            texts = [_texts_below(row, below) for row in rows]
            _table(app, rows, columns, texts, piped, [row.get(above) for row in rows], whole)
        else:
            _markdown(rows, columns)
    elif form == "json":
        _json_rows(chain(first, read), cursor)
        return
    else:
        _PRINTERS[form](chain(first, read), columns)
    if not first:
        app.info("none" + (_why_none(memory, app.as_of, none) if memory is not None else ""))
    if cursor:
        more = f"more: {left}; " if left else "more: "
        app.info(f"{more}--cursor {cursor}" if app.verbose else f"{more}raise --limit; -v shows the cursor")


def _texts_below(row: Row, below: str) -> Sequence[str]:
    texts = row.get(below) or ()
    outcome = [outcome_text(row[OUTCOME])] if isinstance(row.get(OUTCOME), Mapping) else []
    return [*outcome, *([texts] if isinstance(texts, str) else texts)]


def read_listed(app: App, read: Callable[[int | None, str | None], Page]) -> tuple[Page, str]:
    """Return the page that `read(limit, cursor)` gives, and the number of rows left if it has the default length."""
    page = read(app.rows, app.cursor)
    if app.limit is not None or page.cursor is None:
        return page, ""
    rest = read(_COUNTED, page.cursor)
    return page, f"{len(rest.rows):,}" if rest.cursor is None else f"over {_COUNTED:,}"


def show_fields(app: App, rows: Iterable[tuple[str, Any]]) -> None:
    """Print names and values; in a table texts keep their lines, and long ones are wrapped to the available width."""
    shown = [*rows]
    width = line_width(app)
    if app.form != "table" or width is None:
        if app.form == "table":
            shown = [
                ("" if number else name, line.rstrip())
                for name, value in shown
                for number, line in enumerate(short(value).split("\n"))
            ]
        show_rows(app, [{"field": name, "value": value} for name, value in shown], ("field", "value"))
        return
    column = max((_width(name) for name, _ in shown), default=0) + _BETWEEN
    for name, value in shown:
        room = max(width - column, _LEAST)
        lines = [line for part in short(value).split("\n") for line in wrapped(clean(part).rstrip(), room) or [""]]
        for number, line in enumerate(lines or [""]):
            label = name if number == 0 else ""
            click.echo(f"{label:<{column}}{line}".rstrip())


def _why_none(memory: Jidomem, as_of: str | None, none: str | None) -> str:
    """Return the probable reason for an empty result, with a helpful command."""
    if not memory.journal.knows(memory.project):
        return _BEGIN
    if as_of is not None:
        (row,) = memory.reader.select(memory.project, _FIRST)
        is_before = (moment := parse_moment(as_of)) is not None and moment < row["first"]
        return " by then" + f": the first commit is of {short(row['first'])}, see: jidomem journal log" * is_before
    if none is not None:
        return none
    return active_notice(pending_count(memory))


def pending_count(memory: Jidomem) -> int:
    """Return the number of pending proposals of the project."""
    return len(memory.reader.ask("proposals", project=memory.project))


def pending_notice(count: int) -> str:
    """Return the number of pending proposals with the command that shows them, after a semicolon; empty without any."""
    return f"; pending proposals: {count}, see: jidomem review" if count else ""


def active_notice(count: int) -> str:
    """Return the words after "none" for a list of active memories, with the number of pending proposals."""
    return f" active{pending_notice(count)}" if count else ""


def show_json(value: Any) -> None:
    """Print one JSON value on one line."""
    click.echo(_json_text(value))


def _json_text(value: Any) -> str:
    return escape_in_json(json.dumps(value, ensure_ascii=False))


def _json_rows(rows: Iterable[Row], cursor: str | None) -> None:
    """Print *rows* and *cursor* as one JSON value on one line, each row as it is read."""
    sys.stdout.write('{"rows": [')
    for number, row in enumerate(rows):
        sys.stdout.write(f"{', ' * bool(number)}{_json_text(json_value(row))}")
    click.echo(f'], "cursor": {_json_text(cursor)}}}')


def show_result(app: App, values: Any, data: str = "", *, message: str = "") -> None:
    """Print *values* with --json; else *data* to standard output, and *message* to standard error."""
    if app.json:
        show_json(values)
    else:
        if data:
            click.echo(data)
        if message:
            app.info(message)


def short(value: Any) -> str:
    """Return *value* in readable form: terms by local name, memories by short id, agents and sessions by name.

    >>> short("https://jido.ai/ontology#High"), short("https://jido.ai/agents/architect"), short(None)
    ('High', 'architect', '')
    """
    if isinstance(value, list):
        return ", ".join(map(short, value))
    value = value_text(value)
    if isinstance(value, datetime):  # a date of a record is a datetime at midnight
        return f"{value:%Y-%m-%d}" if value.time() == _MIDNIGHT else f"{value:%Y-%m-%d %H:%M:%S}Z"
    if isinstance(value, bool):
        return str(value).lower()
    text = "" if value is None else str(value)
    if re.fullmatch(rf"{re.escape(BASE)}memory/[^/]+(/records/[^/]+)?", text):
        return short_id(text)
    if text.startswith(JIDO) or _NAMED.fullmatch(text):
        return class_label(local_name(text))
    return text


def class_label(name: str) -> str:
    """Return the label of a class in tables."""
    return "Withdrawal" if name == "DeletedMarker" else name


#: Column of a row -> its heading in a table, if the name for programs is unclear to people.
_HEADINGS: Mapping[str, str] = {
    "force": "enforcement", "freshness": "file state", "brought": "added", "recorded_at": "recorded",
    "leaning": "dependents", "days": "age (days)", "says": "rule",
}  # fmt: skip


def shortened(text: str) -> str:
    """Return *text* with the IRIs of memories replaced by short ids.

    >>> shortened("see: jidomem show https://jido.ai/memory/0197a1b2-0000-7000-8000-00000000abcd")
    'see: jidomem show 0000abcd'
    """
    return _MEMORY.sub(lambda match: short_id(match[0]), text)


#: Column with a summary -> the columns with the IRI of its memory.
_SUMMARY_OF: Mapping[str, Sequence[str]] = {
    "summary": ("item", "entry", "derived", "other", "new"),
    "other_summary": ("other",),
    "a_summary": ("a",),
    "b_summary": ("b",),
}


def _shown(row: Row, column: str) -> Any:
    """Return the value of a column; a status with the state of a task or error.

    The summary of a memory without one is a placeholder, since it was redacted.
    """
    value = row.get(column)
    if column == OUTCOME and isinstance(value, Mapping):
        return outcome_text(value)
    is_of_memory = any(row.get(name) for name in _SUMMARY_OF.get(column, ()))
    if column == "status" and value and isinstance(row.get("state"), str):
        return state_text(str(value), row["state"])
    return REDACTED if is_of_memory and value in (None, "") else value


def _table(
    app: App, rows: Sequence[Row], columns: Sequence[str], texts: Sequence[Sequence[str]], piped: int | None,
    headings: Sequence[str | None], whole: str = "",
) -> None:  # fmt: skip
    """Print a table; *texts*, paragraphs, are below their rows, *headings* above them.

    A text of the column *whole* that is cut is repeated below its row.
    """
    if not rows:
        return
    cells = [[clean(short(_shown(row, column))) for column in columns] for row in rows]
    left_out: list[str] = []
    if (width := line_width(app, piped)) is not None:
        uncut = [dict(zip(columns, row, strict=True)) for row in cells]
        columns, cells, left_out = fitted(columns, cells, width)
        if whole in columns:
            at = [*columns].index(whole)
            texts = [
                text if row[at] == full[whole] else (full[whole], *text)
                for text, row, full in zip(texts, cells, uncut, strict=True)
            ]
    header = [_HEADINGS.get(name, name) for name in columns]
    longest = PIPED if width is None else width  # a longer text moves the rest of its own row only
    widths = [min(max(map(_width, column)), longest) for column in zip(header, *cells, strict=True)]
    lines = zip([header, *cells], [(), *texts], [None, *headings], strict=True)
    for number, (row, text, heading) in enumerate(lines):
        if heading is not None:
            click.echo(clean(heading))
        line = "  ".join(cell + " " * (wide - _width(cell)) for cell, wide in zip(row, widths, strict=True)).rstrip()
        click.echo(click.style(line, bold=True) if not number and app.supports_color(sys.stdout) else line)
        for part in text:
            for text_line in [clean(part)] if width is None else wrapped(clean(part), width - len(INDENT)):
                click.echo(f"{INDENT}{text_line}")
    if left_out:
        app.info(f"hidden for lack of width: {', '.join(left_out)}; -v shows all")


def line_width(app: App, piped: int | None = None) -> int | None:
    """Return the width of lines: that of the terminal or $COLUMNS, else *piped*; None for no limit."""
    if app.verbose:
        return None
    if not (sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()):
        return piped
    return get_terminal_size().columns


def fit_line(app: App, text: str, piped: int | None = None) -> str:
    """Return *text* cut to the width of lines."""
    width = line_width(app, piped)
    return text if width is None else cut_text(text, width)


def fitted(
    columns: Sequence[str], cells: Sequence[Sequence[str]], width: int
) -> tuple[list[str], list[list[str]], list[str]]:
    """Return columns and cells for lines of at most *width* characters, and the columns left out for it.

    Moments lose their seconds, unless those distinguish rows. Then columns of _LEAST_WANTED are left out as long as a
    text would be cut to fewer than _LEAST characters. Then moments except in _RECORDED become dates, and the longest
    texts are cut; moments are cut only if there is no room for them.

    >>> fitted(["item", "summary"], [["0000abcd", "Use Oxigraph as the index"]], 24)
    (['item', 'summary'], [['0000abcd', 'Use Oxigraph…']], [])
    """
    shown, left_out = [*range(len(columns))], list[str]()
    texts = [[_HEADINGS.get(name, name) for name in columns], *map(list, cells)]

    filled = {at: [row[at] for row in cells if row[at]] for at in shown}
    moments = {at for at, column in filled.items() if column and all(map(_MOMENT.fullmatch, column))}

    def widths() -> dict[int, int]:
        return {at: max(_width(row[at]) for row in texts) for at in shown}

    if sum(widths().values()) + _BETWEEN * (len(shown) - 1) > width:
        shortened_columns = {at: _without_seconds([row[at] for row in cells]) for at in moments}
        for at, column in shortened_columns.items():
            for row, text in zip(texts[1:], column, strict=True):
                row[at] = text
    times = ["time", _RECORDED] if _RECORDED in columns else []
    for name in (*_LEAST_WANTED, *times):
        flexible = [wide for at, wide in widths().items() if at not in moments]
        least = _LEAST // 2 if name == _RECORDED else _LEAST
        if not flexible or _longest(widths(), width, moments) >= min(least, max(flexible)):
            break
        if name in columns and (at := [*columns].index(name)) in shown:
            shown.remove(at)
            left_out.append(_HEADINGS.get(name, name))
    if _longest(widths(), width, moments) < _LEAST:
        for at in (at for at in shown if at in moments and not columns[at].startswith(_RECORDED)):
            for row in texts[1:]:
                row[at] = _MOMENT.sub(r"\1", row[at])
    fewest = sum(wide if at in moments else 1 for at, wide in widths().items()) + _BETWEEN * (len(shown) - 1)
    moments = moments if fewest <= width else set()
    longest = _longest(widths(), width, moments)
    header, *rows = [[row[at] if at in moments else cut_text(row[at], longest) for at in shown] for row in texts]
    return header, rows, left_out


def _without_seconds(column: Sequence[str]) -> list[str]:
    """Return moments without seconds; unchanged if seconds distinguish rows of the same minute.

    >>> _without_seconds(["2026-11-24 03:52:12Z", "2026-11-24 03:53:12Z", "2026-11-24"])
    ['2026-11-24 03:52Z', '2026-11-24 03:53Z', '2026-11-24']
    """
    minutes = [_MOMENT.sub(lambda found: f"{found[1]} {found[2]}Z" if found[2] else found[1], text) for text in column]
    return minutes if len({*minutes}) == len({*column}) else [*column]


def _longest(widths: Mapping[int, int], width: int, whole: Collection[int]) -> int:
    """Return the length to which texts in columns other than *whole* are cut for *width*, at least 1."""
    flexible = [wide for at, wide in widths.items() if at not in whole]
    room = width - _BETWEEN * (len(widths) - 1) - sum(wide for at, wide in widths.items() if at in whole)
    longest = max(flexible, default=1)
    while longest > 1 and sum(min(each, longest) for each in flexible) > room:
        longest -= 1
    return longest


def _width(text: str) -> int:
    """Return the terminal columns of a text: two for an East Asian wide character, else one."""
    return len(text) if text.isascii() else sum(1 + (east_asian_width(sign) in "FW") for sign in text)


def wrapped(text: str, width: int) -> list[str]:
    """Return *text* in lines of at most *width* terminal columns, broken between words if possible.

    >>> wrapped("Use one queue a project", 14)
    ['Use one queue', 'a project']
    """
    lines, rest = [], re.sub(r"\s", " ", text)
    while rest:
        line = beginning(rest, max(width, 2), _width)
        lines.append(line)
        rest = rest[len(line) :].lstrip()
    return lines


def cut_text(text: str, longest: int) -> str:
    """Return the text, or its beginning with an ellipsis, in at most *longest* terminal columns."""
    return text if _width(text) <= longest else f"{beginning(text, longest - 1, _width)}…"


def _json_lines(rows: Iterable[Row], columns: Sequence[str]) -> None:
    for row in rows:
        show_json(json_value(row))


def _csv(rows: Iterable[Row], columns: Sequence[str]) -> None:
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(columns)
    table.writerows([cell(row.get(column)) for column in columns] for row in rows)


def _tsv(rows: Iterable[Row], columns: Sequence[str]) -> None:
    click.echo("\t".join(columns))
    for row in rows:
        click.echo(tsv_line([cell(row.get(column)) for column in columns]))


def _markdown(rows: Sequence[Row], columns: Sequence[str]) -> None:
    header = [_HEADINGS.get(name, name) for name in columns]
    click.echo(f"| {' | '.join(header)} |\n|{'---|' * len(columns)}")
    for row in rows:
        cells = (clean(short(_shown(row, column))).replace("|", "\\|") for column in columns)
        click.echo(f"| {' | '.join(cells)} |")


_PRINTERS: Mapping[str, Callable[[Iterable[Row], Sequence[str]], None]] = {
    "jsonl": _json_lines, "csv": _csv, "tsv": _tsv,
}  # fmt: skip


def _choices(app: App, memory: Jidomem, receipt: Receipt, similar: SimilarMemory) -> dict[str, str]:
    """Return the choices between a new memory and a similar one, each with its command.

    The commands are of the agent of the write, and of its root and project; those that the policy denies it are left
    out.
    """
    from jidomem_cli.errors import acting

    new, old = quote(short(receipt.iri)), quote(short(similar.id))
    replaced = quote(short(similar.replaced_by or similar.id))
    options = acting(app)
    edit, against = f"jidomem edit{options} {old} --confirm", f"{new} --against {replaced}"
    replace = f'jidomem review{options} supersede {against} --reason "{REASON}"'
    invalidate = f'jidomem edit{options} {new} --invalidate --reason "{REASON}"'
    if receipt.commit is None:
        supersede, confirm, keep = f"--supersedes {replaced}", edit, "write it as it is"
        invalidate = "do not write it"
    elif receipt.status == "proposed":
        supersede, keep = replace, f"jidomem review{options} keep-both {against}"
        confirm = f"jidomem review{options} reject {new}"
    else:
        supersede, keep = replace, "nothing to do"
        confirm = f'{edit} --set supersedes={old} --set supersedes={new} --reason "it says the same"'
    if similar.is_inactive and receipt.commit is not None:
        both = f"--set supersedes={new} --set supersedes={replaced}"
        supersede = f'jidomem edit{options} {new} {both} --reason "{REASON}"'
        if receipt.status == "proposed":
            invalidate, keep = confirm, f"jidomem review{options} accept {new}"
    may_settle = receipt.commit is None or _may_supersede(memory, receipt.iri, similar.id)
    keep = keep if may_settle else "nothing to do"
    choices = similar_choices(similar, supersede=supersede, confirm=confirm, keep=keep, invalidate=invalidate)
    return {name: choice for name, choice in choices.items() if may_settle or name != "supersede"}


def _may_supersede(memory: Jidomem, item: str, other: str) -> bool:
    """Return whether the policy allows the writer to settle the new memory *item* in place of *other*."""
    try:
        memory.writer.settle(memory.project, item, "supersede", other=other, reason="it takes its place", dry_run=True)
    except JidomemError as error:
        return not isinstance(error, PolicyDenied)
    return True


def similar_line(similar: SimilarMemory) -> str:
    """Return a similar memory in words."""
    relation = "it seems to repeat" if similar.relation == REPEATS else "it is near to"
    differing = f", other values: {', '.join(similar.differences)}" if similar.differences else ""
    status = f", {similar.status}" if similar.status else ""
    likeness = f"likeness {similar.likeness:.2f}{differing}{status}"
    return f"{relation} {short(similar.id)} by {similar.asserted_by} ({likeness}): {similar.text}"


def show_receipt(
    app: App, memory: Jidomem, receipt: Receipt, outcome: str | None = None, *, item: str | None = None
) -> None:
    """Print *receipt*, with *outcome* in place of its status if given; a receipt without a commit is from a dry run.

    *item* is the memory of the outcome (default: the new one).
    """
    values = receipt.to_dict()
    choices = [_choices(app, memory, receipt, similar) for similar in receipt.similar or ()]
    for shown, of_similar in zip(values.get("similar", ()), choices, strict=True):
        shown["choices"] = of_similar
    show_result(app, values, receipt.iri)
    text = f"{outcome or receipt.status}: {short(item or receipt.iri)} in project {memory.project}"
    app.info(f"would be {text}; nothing was written" if receipt.commit is None else text)
    if receipt.commit is not None and (note := memory.settings.own_note):
        app.info(note)
    if app.verbose:
        app.info(f"version {receipt.version}, commit {receipt.commit}, root {memory.settings.place}")
        for name, value in receipt.filled.items():
            app.info(f"filled in: {name} = {clean(str(value))}")
    for conflict in receipt.conflicts:
        app.warn(f"{conflict.kind}: {clean(conflict.why)}")
    for similar, of_similar in zip(receipt.similar or (), choices, strict=True):
        app.info(fit_line(app, clean(similar_line(similar)), PIPED))
        for choice in of_similar.values():
            app.info(f"  {clean(choice)}")
    for warning in receipt.warnings:
        app.warn(clean(_as_command(app, receipt, warning)))


def show_due(app: App, memory: Jidomem, receipt: Receipt) -> None:
    """Print the date of the next review of a confirmed memory, or the deadline of a task."""
    if receipt.commit is not None:
        for due in memory.reader.get_memory(memory.project, receipt.iri)["properties"].get("expiresOn", ()):
            app.info(f"it is {dates_text(due, None)[0]}")


def _as_command(app: App, receipt: Receipt, warning: str) -> str:
    """Return *warning* with fields to give as options: of the command, or of the one that edits a written memory."""
    from jidomem_cli.errors import acting, in_options

    edit = f"jidomem edit{acting(app)} {quote(short(receipt.iri))} --set"
    if receipt.commit is not None:
        warning = re.sub(r"give `([a-z_]+)`", lambda field: f"{edit} {field[1]}=VALUE", warning)
    return in_options(warning, app)
