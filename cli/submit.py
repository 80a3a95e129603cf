"""`jidomem submit`: intents as JSON, each answered with a receipt or a refusal.

It reads one JSON object, an array, or JSON lines as a stream.

`jidomem remember`: record one memory from its text.

`jidomem edit`: correct one memory by a new one; memories are never rewritten.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from functools import partial
from itertools import chain, islice
from typing import Any, BinaryIO, NamedTuple

import click

from jidomem import Jidomem, JidomemError, Receipt
from jidomem.base.json_values import JSON_FORMS, parse_json, parse_line
from jidomem.errors import STOPPING, Conflict, InvalidRequest, TooLarge
from jidomem.rdf.vocab import JIDO
from jidomem.records.active import REASON as UNSAID
from jidomem.records.active import corrected_instead
from jidomem.write.group_commit import BEGINS_PROJECT
from jidomem_cli.errors import Options, RefusedIntents, acting, as_changes, as_options, print_refusal
from jidomem_cli.fields import given_fields, intent_options, memory_iri, present_fields, set_option, with_memory_paths
from jidomem_cli.options import REASON, App, Command, clean, dry_run_option, pass_app, reason_option
from jidomem_cli.output import ProgressBar, progress_bar, short, show_due, show_json, show_receipt

#: The most bytes in memory: of a line, or of all input that is not JSON lines.
LIMIT = 64 * 1024 * 1024


class IntentBatch(NamedTuple):
    """The intents of an input, and whether there may be several; an unreadable intent is represented by its error."""

    many: bool
    intents: Iterable[Any]


def read(file: BinaryIO) -> IntentBatch:
    """Return the intents in *file*; lines are read on demand, and an unreadable one is an error in its place.

    Raises InvalidRequest for an empty array, and with the code `malformed_json`, line and column for a single object or
    array that cannot be parsed; TooLarge for one, or for a line, of more than 64 MiB.
    """
    lines = _lines(file)
    head = _first_two(lines)
    if _are_lines([line for line in head if line.strip()]):
        numbered = enumerate(chain(head, lines), start=1)
        return IntentBatch(True, (_parsed(number, line) for number, line in numbered if line.strip()))
    text = b"".join(_bounded(chain(head, lines)))
    if not text.strip():
        raise InvalidRequest("there is nothing to submit", hint=JSON_FORMS, code="malformed_json")
    value = parse_json(text)
    if value == []:
        raise InvalidRequest("there is nothing to submit: the array is empty", hint="give one intent or more")
    return IntentBatch(True, value) if isinstance(value, list) else IntentBatch(False, [value])


def _lines(file: BinaryIO) -> Iterator[bytes]:
    lines = enumerate(iter(partial(file.readline, LIMIT + 1), b""), start=1)
    return chain.from_iterable(_bounded([line], f"line {number}") for number, line in lines)


def _bounded(lines: Iterable[bytes], name: str = "an object or array of intents") -> Iterator[bytes]:
    """Yield *lines*; raises TooLarge, with the *name* of their sum, if that exceeds the limit."""
    size = 0
    for line in lines:
        size += len(line)
        if size > LIMIT:
            raise TooLarge(
                f"{name} has more than {LIMIT >> 20} MiB",
                hint="give one intent a line, and name a long text in evidence as a file;"
                " for an array: jq -c '.[]' FILE | jidomem submit -",
            )
        yield line


def _first_two(lines: Iterator[bytes]) -> list[bytes]:
    """Return the lines up to the second non-blank one."""
    head: list[bytes] = []
    for line in lines:
        head.append(line)
        if sum(bool(entry.strip()) for entry in head) == 2:
            break
    return head


def _are_lines(full: list[bytes]) -> bool:
    """Return whether two lines begin JSON lines: the second begins an object, or the first is a complete one."""
    if len(full) < 2 or full[0].lstrip().startswith(b"["):
        return False
    return full[1].lstrip().startswith(b"{") or not isinstance(_parsed(1, full[0]), InvalidRequest)


def _parsed(number: int, line: bytes) -> Any:
    try:
        return parse_line(number, line)
    except InvalidRequest as error:
        return error


Outcome = Receipt | JidomemError
#: The most different warnings that a batch prints.
_MOST_WARNINGS = 20


@click.command(cls=Command, writes=("agent", "session", "wait"))
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--atomic", is_flag=True, help="Write all intents in one commit, or none.")
@dry_run_option
@pass_app
def submit(app: App, file: BinaryIO, atomic: bool, dry_run: bool) -> int:
    """Submit intents from FILE or standard input: one JSON object, an array, or one object per line.

    Prints one line per intent, in order: its IRI or the error. The exit code is that of the first error. --agent and
    --session, with their own defaults, are those of `asserted_by` and `asserted_in`. --dry-run validates each intent
    alone.

    Examples:
      jidomem submit intent.json
      jidomem submit --json --atomic intents.jsonl
      cat intents.jsonl | jidomem submit --dry-run --agent ana
    """
    if atomic and dry_run:
        raise InvalidRequest(
            "--dry-run validates each intent alone, --atomic writes all together", hint="give one of the two"
        )
    memory = app.open()
    batch = read(file)
    intents: Iterable[Any] = (
        {**memory.writer.authorship(intent), **intent} if isinstance(intent, dict) else intent
        for intent in batch.intents
    )
    if not batch.many:
        (intent,) = _parsed_only(intents)
        show_receipt(app, memory, memory.writer.submit_intent(memory.project, intent, dry_run=dry_run))
        return 0
    printed = _PrintedOutcomes(app, progress_bar(app, file, batch.intents))
    try:
        if atomic:
            for receipt in memory.writer.submit_many(memory.project, _parsed_only(intents), atomic=True):
                printed.add(receipt)
        elif dry_run:
            _validate_each(memory, intents, printed)
        else:
            _submit_each(memory, intents, printed)
    finally:
        printed.close()
    return printed.finish()


def _submit_each(memory: Jidomem, intents: Iterable[Any], printed: _PrintedOutcomes) -> None:
    """Submit one after the other; after an error that stops all, only those already submitted are reported."""
    with closing(memory.writer.submit_many(memory.project, iter(intents))) as outcomes:
        for outcome in outcomes:
            printed.add(outcome)
            if printed.is_stopped and printed.count == outcomes.submitted:
                return


def _validate_each(memory: Jidomem, intents: Iterable[Any], printed: _PrintedOutcomes) -> None:
    for intent in intents:
        try:
            printed.add(memory.writer.submit_intent(memory.project, *_parsed_only([intent]), dry_run=True))
        except JidomemError as refusal:
            printed.add(refusal)
        if printed.is_stopped:
            return


def _parsed_only(intents: Iterable[Any]) -> list[Any]:
    """Return all intents; raises the error of the first unreadable one."""
    parsed = []
    for position, intent in enumerate(intents):
        if isinstance(intent, JidomemError):
            intent.position = position
            raise intent
        parsed.append(intent)
    return parsed


class _PrintedOutcomes:
    """The outcomes printed so far: their number, the exit code of the first refusal, and whether an error stops all."""

    def __init__(self, app: App, shown: ProgressBar | None) -> None:
        self._app = app
        self._bar = shown
        self._refusals = RefusedIntents(app)
        self._warned: dict[str, list[int]] = {}
        self.count = self._accepted = self._code = 0
        self.is_stopped = False

    def add(self, outcome: Outcome) -> None:
        """Print an outcome."""
        if isinstance(outcome, JidomemError):
            self._refused(outcome)
        else:
            self._accepted += 1
            show_json(outcome.to_dict()) if self._app.json else click.echo(outcome.iri)
            for warning in outcome.warnings:
                if not self._app.json or warning.startswith(BEGINS_PROJECT):
                    self._warned.setdefault(warning, []).append(self.count + 1)
        self.count += 1
        if self._bar:
            self._bar.show(self.count, self.count - self._accepted)

    def close(self) -> None:
        """Stop the progress bar and leave it visible."""
        if self._bar:
            self._bar.close()

    def finish(self) -> int:
        """Print which refusals were repeated, each warning once, how many were accepted; return the exit code."""
        self._refusals.finish()
        for warning, (number, *others) in islice(self._warned.items(), _MOST_WARNINGS):
            more = f" and {len(others):,} more" if others else ""
            self._app.warn(f"intent {number:,}{more}: {clean(warning)}")
        if len(self._warned) > _MOST_WARNINGS:
            self._app.warn(f"{len(self._warned) - _MOST_WARNINGS:,} further warnings: those of each intent: --json")
        if self.is_stopped:
            self._app.warn(f"stopped after {self.count:,} intents; the rest was not tried")
        self._app.info(f"{self._accepted:,} of {self.count:,} accepted")
        return self._code

    def _refused(self, error: JidomemError) -> None:
        error.position = self.count
        self._code = self._code or error.exit_code
        self.is_stopped = self.is_stopped or error.code in STOPPING
        if not self._app.json:
            click.echo(f"refused: {error.code}: {clean(error.detail)}")
        self._refusals.print(error, self.count + 1)


_CHECKS = {"forbids": "jido:forbidsPattern", "requires": "jido:requiresPattern", "check_command": "jido:checkCommand"}


def _standard_input() -> str:
    """Return the text of standard input; raises InvalidRequest if it is not UTF-8."""
    try:
        return sys.stdin.buffer.read().decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"standard input is not UTF-8: {error}", hint="convert it to UTF-8") from error


@click.command(cls=Command, writes=("agent", "session", "wait"))
@click.argument("text")
@intent_options()
@set_option("more")
@click.option("--forbids", multiple=True, metavar="PATTERN", help="Pattern that no governed file may contain.")
@click.option("--requires", multiple=True, metavar="PATTERN", help="Pattern that every governed file contains.")
@click.option("--check-command", multiple=True, metavar="COMMAND", help="Command that fails for a violating file.")
@dry_run_option
@pass_app
def remember(app: App, /, text: str, more: tuple[str, ...], dry_run: bool, **fields: Any) -> int:
    """Record TEXT, or standard input for -, as a memory and print its IRI (default: a fact of medium confidence).

    Examples:
      jidomem remember "the build needs Rust 1.80"
      jidomem remember "Ship the importer" --type task --assigned-to ana --about importer.py
      jidomem remember "Use Oxigraph 0.5" --type decision --topic store --rationale "it is faster" --supersedes 1a2b3c4d
      jidomem remember "No print" --type convention --enforcement-level Strict --about "src/**" --forbids "print[(]"
    """
    memory = app.open()
    text = _standard_input() if text == "-" else text
    if empty := [each for each in more if "=" in each and not each.partition("=")[2].strip()]:
        raise InvalidRequest(f"--set {empty[0]} is empty", hint="leave it out, or give a value")
    patterns = [(name, value) for name in _CHECKS for value in fields.pop(name)]
    flags = {value: f"--{name.replace('_', '-')}" for name, value in patterns}
    checks = [[_CHECKS[name], {"@value": value}] for name, value in patterns]
    fields |= {"extra_triples": checks} if checks else {}
    values = with_memory_paths(memory, {**present_fields(fields), **given_fields(more)})
    try:
        receipt = memory.writer.remember(memory.project, text, dry_run=dry_run, **values)
    except JidomemError as refusal:
        if not text.strip():
            refusal.hint = 'give the text: jidomem remember "the build needs Rust 1.80"'
        if at_fault := [flags[each.value] for each in refusal.violations if str(each.value) in flags]:
            refusal.hint = refusal.hint.replace("`extra_triples`", " and ".join(dict.fromkeys(at_fault)))
        options: Options | None = as_options if text.strip() else None
        if isinstance(refusal, Conflict) and refusal.names_ended and any(refusal.conflicts[0].resolve_with.values()):
            replacing = refusal.conflicts[0].resolve_with
            because = {"reason": UNSAID} if refusal.needs_reason and "rationale" not in values else {}
            sets = [each for each in more if each.partition("=")[0] not in replacing]
            left_out = {"extra_triples", *replacing}
            given = {name: value for name, value in present_fields(fields).items() if name not in left_out}
            words = [as_options({**given, **{name: value for name, value in replacing.items() if value}, **because})]
            words += [as_options({name: value}) for name, value in patterns]
            words += [f"--set {shlex.quote(each)}" for each in sets]
            command = f"jidomem remember{acting(app)} {' '.join(words)} -- {shlex.quote(text)}"
            refusal.hint, options = f"{refusal.advice}: {command}", None
        print_refusal(refusal, app, options=options)
        return refusal.exit_code
    show_receipt(app, memory, receipt)
    return 0


@click.command(cls=Command, writes=("agent", "session", "wait"))
@click.argument("item", metavar="IRI")
@click.option("--supersede", metavar="TEXT", help="New summary, which supersedes the memory.")
@click.option("--invalidate", is_flag=True, help="Withdraw the memory without a successor.")
@click.option("--confirm", is_flag=True, help="Confirm that the memory still holds, or accept a proposal.")
@click.option(
    "--undo", is_flag=True, help="Revive what it superseded or withdrew, or the memory itself if it has ended."
)
@set_option("changes")
@reason_option()
@intent_options(["idempotency_key"])
@dry_run_option
@pass_app
def edit(
    app: App,
    item: str,
    supersede: str | None,
    invalidate: bool,
    confirm: bool,
    undo: bool,
    changes: tuple[str, ...],
    reason: str | None,
    idempotency_key: str | None,
    dry_run: bool,
) -> int:
    """Supersede the memory IRI, keeping its other fields; or withdraw, confirm or undo it.

    --invalidate needs a --reason. With another summary, the reason replaces the rationale, if there is one, unless you
    --set it. --set forbids=PATTERN, requires and check_command replace the checks of a convention.

    Examples:
      jidomem edit 1a2b3c4d --supersede "Use Oxigraph 0.5" --reason "faster loading"
      jidomem edit 1a2b3c4d --undo --reason "it lost data"
      jidomem edit 5e6f7a8b --set status=Completed --set assigned_to=ana
      jidomem edit 9c0d1e2f --confirm --set expires_on=2030-01-01 --dry-run
      jidomem edit 9c0d1e2f --invalidate --reason "measured wrongly"
    """
    memory = app.open()
    whole = memory_iri(memory, item)
    try:
        receipt = memory.writer.correct(
            memory.project,
            whole,
            supersede=supersede,
            invalidate=invalidate,
            confirm=confirm,
            undo=undo,
            changes=_with_checks(memory, whole, with_memory_paths(memory, given_fields(changes, _CHECKS))),
            reason=reason,
            dry_run=dry_run,
            who={"idempotency_key": idempotency_key} if idempotency_key else {},
        )
    except InvalidRequest:
        raise
    except JidomemError as refusal:
        options: Options | None = partial(_withdrawals, app, reason=reason) if invalidate else as_changes
        fields = {**given_fields(changes, _CHECKS), **({"reason": reason} if reason else {})}
        if checks := [f"--set {name}=PATTERN" for name in _CHECKS if name in fields]:
            refusal.hint = refusal.hint.replace("`extra_triples`", " and ".join(checks))
        hint, flag = "", "--confirm" if confirm else ""
        flag = flag if supersede is None else f"--supersede {shlex.quote(supersede)}"
        if isinstance(refusal, Conflict):
            refusal.hint = refusal.choices_text()
        if not (invalidate or undo):
            with suppress(JidomemError):  # a field may name no memory: the refusal is shown with its own hint
                hint = _successor_hint(app, memory, whole, refusal, flag, fields)
        if hint:
            refusal.hint, options = hint, None
        print_refusal(refusal, app, options=options)
        return refusal.exit_code
    if invalidate and receipt.status == "asserted":
        show_receipt(app, memory, receipt, "invalidated", item=whole)
    else:
        show_receipt(app, memory, receipt)
        if confirm:
            show_due(app, memory, receipt)
    return 0


def _successor_hint(
    app: App, memory: Jidomem, item: str, refusal: JidomemError, flag: str, fields: dict[str, Any]
) -> str:
    """Return the command that corrects the successor of *item* in the same way, ready to paste; empty unless *item*
    has ended. The *flag* is the option of the correction.
    """
    confirm, conflicts = flag == "--confirm", refusal.conflicts if isinstance(refusal, Conflict) else ()
    is_stale = any(each.iri == item and each.kind == "stale_supersession" for each in conflicts)

    def present(name: str) -> str:
        return str(memory.reader.why(memory.project, memory_iri(memory, name))["in_its_place"] or name)

    if not (is_stale or confirm):
        return ""
    newer, withdrawal = present(item), dict[str, Any]()
    if isinstance(refusal, Conflict) and is_stale:
        withdrawal = corrected_instead(refusal, {"id": item}).get("set", {}) if newer == item else {}
        is_explained = "reason" in fields or (confirm and not withdrawal)
        fields |= {"reason": UNSAID} if refusal.needs_reason and not is_explained else {}
    if newer == item and not withdrawal:
        return ""
    others = [each for each in map(present, fields.pop("supersedes", [])) if confirm or each != newer]
    changes = as_changes({**({"supersedes": others} if others else {}), **withdrawal, **fields})
    command = " ".join(filter(None, (f"jidomem edit{acting(app)} {shlex.quote(short(newer))}", flag, changes)))
    if withdrawal and isinstance(refusal, Conflict):
        return f"{refusal.advice}: {command}"
    if confirm:
        return f"it was replaced; if its successor still says the same: {command}"
    return f"it was replaced; read its successor, and correct that if it is still wrong: {command}"


def _withdrawals(app: App, fields: Mapping[str, Any], *, reason: str | None) -> str:
    """Return the commands that withdraw the memories in *fields* instead, ready to paste."""
    words = ("--invalidate", "--reason", shlex.quote(reason) if reason else REASON)
    items = fields.get("invalidates", ())
    return "; ".join(f"jidomem edit{acting(app)} {shlex.quote(short(item))} {' '.join(words)}" for item in items)


def _with_checks(memory: Jidomem, item: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Return *fields* with patterns and commands as extra triples, in place of those of *item* with the same property.

    With other checks, *item* is not verified any more.
    """
    given = {_CHECKS[name]: fields.pop(name) for name in _CHECKS if name in fields}
    if not given:
        return fields
    replaced = {*given, *(name.replace("jido:", JIDO) for name in given), f"{JIDO}verified"}
    old = memory.writer.restated(memory.project, item).get("extra_triples", [])
    triples = [triple for triple in fields.get("extra_triples", old) if not triple or str(triple[0]) not in replaced]
    triples += [[name, {"@value": value}] for name, values in given.items() for value in values]
    return {**fields, "extra_triples": triples}
