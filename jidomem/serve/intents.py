"""The routes of intents: one intent, an array, or JSON lines, whose outcomes are streamed while lines arrive.

Outcomes that the client has not read yet are spooled on disk.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from io import BufferedIOBase
from itertools import chain
from threading import Condition
from typing import Any

from flask import Response, g, request

from jidomem.base.background import BackgroundTask
from jidomem.base.json_values import parse_line
from jidomem.errors import STOPPING, Busy, InvalidRequest, JidomemError, TooLarge
from jidomem.records.intent import Receipt
from jidomem.runtime.user_config import RootLimits
from jidomem.runtime.worker_pool import is_disconnected
from jidomem.serve import wire
from jidomem.serve.server_state import RequestContext
from jidomem.write.writer import MemoryWriter

_PIECE = 64 * 1024


class Spool:
    """A file between *source* and its reader: a background task writes the pieces, and the reader follows.

    So the server can read on while a client sends everything before it reads, with neither in memory.
    """

    def __init__(self, source: Iterable[bytes]) -> None:
        self._source = source
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the reader
        self._changed = Condition()
        self._written = 0
        self._ended = self._left = False
        self._error: BaseException | None = None

    def __iter__(self) -> Iterator[bytes]:
        """Yield the pieces until the source ends; raise the error of the source."""
        BackgroundTask("jidomem-spool", daemon=True).start(self._write)
        try:
            yield from self._read()
        finally:
            with self._changed:
                self._left = True
                self._file.close()

    def _read(self) -> Iterator[bytes]:
        at = 0
        while piece := self._piece(at):
            at += len(piece)
            yield piece
        if self._error is not None:
            raise self._error

    def _piece(self, at: int) -> bytes:
        """Return the next piece from *at* on, once it is written; empty at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._written > at or self._ended)
            self._file.seek(at)
            return self._file.read(_PIECE)

    def _write(self) -> None:
        try:
            for piece in self._source:
                with self._changed:
                    if self._left:
                        return
                    self._file.seek(self._written)
                    self._written += self._file.write(piece)
                    self._changed.notify()
        except BaseException as error:
            self._error = error
        with self._changed:
            self._ended = True
            self._changed.notify()


NDJSON = "application/x-ndjson"
CHUNK = 500
#: The refusals after which nothing more of a request is submitted: one may take a hundred times as much as its intent.
MOST_REFUSALS = 1_000
_READ = 64 * 1024
Outcome = Receipt | JidomemError


def submit(site: RequestContext, project: str) -> Response:
    """Submit an intent, or several; return its receipt, or the outcome of each."""
    dry_run = wire.flag(wire.arguments("dry_run"), "dry_run")
    kind = wire.content_type(wire.JSON, NDJSON)
    if kind == NDJSON:
        _refuse_key()
        return _streamed(site, project, dry_run)
    values = wire.json_body()
    if isinstance(values, list):
        _refuse_key()
        return _each(site, project, values, dry_run)
    g.seen.claimed = _by(site, values)
    receipt = site.writer.submit_intent(project, _keyed(values), dry_run=dry_run)
    is_new = receipt.commit is not None and receipt.status != "deduplicated"
    place = f"/projects/{project}/memories/{wire.item_path(receipt.iri)}"
    return wire.answer(wire.outcome(receipt, project), 201 if is_new else 200, Location=place)


def _keyed(values: Any) -> Any:
    """Return the intent with the idempotency key of the header; raise InvalidRequest if it has a different one."""
    key = wire.idempotency_key()
    if key is None or not isinstance(values, dict):
        return values
    if values.get("idempotency_key", key) != key:
        raise InvalidRequest(f"the header {wire.KEY} and idempotency_key differ", hint="give the key once")
    return {**values, "idempotency_key": key}


def _refuse_key() -> None:
    if wire.KEY in request.headers:
        raise InvalidRequest(
            f"the header {wire.KEY} is for one intent, and these are several", hint="give each its own idempotency_key"
        )


def _each(site: RequestContext, project: str, values: list[Any], dry_run: bool) -> Response:
    """Return the outcome of each intent of an array; raise the error that stopped all of them."""
    outcomes = list(chain.from_iterable(_in_blocks(site, project, _pieces(values), dry_run)))
    for position, outcome in enumerate(outcomes):
        if isinstance(outcome, JidomemError) and not _stops(outcome):
            outcome.position = position
    outcomes += [each for each in outcomes if _stops(each)][-1:] * (len(values) - len(outcomes))
    _count(g.seen, outcomes)
    if outcomes and all(_stops(outcome) for outcome in outcomes):
        raise _error(outcomes[0])
    new = [isinstance(outcome, Receipt) and outcome.commit is not None for outcome in outcomes]
    return wire.answer([wire.outcome(outcome, project) for outcome in outcomes], 201 if new and all(new) else 200)


def _streamed(site: RequestContext, project: str, dry_run: bool) -> Response:
    """Return the outcome of each line, as a stream; an error that stops all lines of the first block is raised."""
    blocks = _blocks(request.environ["wsgi.input"], site.memory.settings.limits)
    answered = _in_blocks(site, project, blocks, dry_run)
    first = next(answered, [])
    if first and all(_stops(outcome) for outcome in first):
        raise _error(first[0])

    seen: wire.RequestRecord = g.seen

    def lines() -> Iterator[bytes]:
        count = 0
        for outcomes in chain([first], answered):
            _count(seen, outcomes)
            for outcome in outcomes:
                if isinstance(outcome, JidomemError):
                    outcome.position = count
                count += 1
                yield wire.dump(wire.outcome(outcome, project)) + b"\n"

    return Response(iter(Spool(lines())), 200, content_type=NDJSON)


def _in_blocks(
    site: RequestContext, project: str, blocks: Iterable[list[Any]], dry_run: bool
) -> Iterator[list[Outcome]]:
    """Yield the outcomes of each block, up to the one that ends the request: nothing after it is submitted."""
    refused = 0
    for block in blocks:
        if site.operation.stopping.is_set() or refused >= MOST_REFUSALS:
            yield [_ending(refused)]
            return
        outcomes = _outcomes(site, project, block, dry_run)
        stops = [_stops(outcome) for outcome in outcomes]
        if any(stops):
            first = stops.index(True)
            yield outcomes[: first + 1] if all(stops[first:]) else outcomes
            return
        yield outcomes
        refused += sum(isinstance(outcome, JidomemError) for outcome in outcomes)


def _ending(refused: int) -> JidomemError:
    """Return the last outcome of a request that ends before its last intent."""
    rest = "intents without another outcome were not submitted"
    if refused >= MOST_REFUSALS:
        hint = "correct the refused ones, and submit the others again"
        return TooLarge(f"{refused:,} intents were refused; {rest}", hint=hint, code="result_too_large")
    return Busy(f"the server is stopping; {rest}", hint="submit those again after its restart")


def _pieces(values: list[Any]) -> Iterator[list[Any]]:
    """Yield the intents of an array, CHUNK at once; raise InvalidRequest if its client has gone meanwhile."""
    client = wire.client_descriptor()
    for at in range(0, len(values), CHUNK):
        if at and client is not None and is_disconnected(client):
            detail = (
                f"the client closed the connection; {len(values) - at:,} of {len(values):,} intents were not submitted"
            )
            raise InvalidRequest(detail, hint="submit those again")
        yield values[at : at + CHUNK]


def _outcomes(site: RequestContext, project: str, values: Sequence[Any], dry_run: bool) -> list[Outcome]:
    """Return the outcome of each of *values*; a value that could not be parsed is its own refusal."""
    try:
        writer = site.writer
    except JidomemError as error:  # such as a token that was revoked meanwhile
        return [error] * len(values)
    outcomes = [_judged(writer, project, value) for value in values] if dry_run else writer.submit_many(project, values)
    for position, outcome in enumerate(outcomes):
        if isinstance(outcome, JidomemError) and not _stops(outcome):
            site.operation.measures.refused(outcome.code, _by(site, values[position]), project)
    return [*_shown(site, outcomes)]


def _count(seen: wire.RequestRecord, outcomes: Sequence[Outcome]) -> None:
    """Add *outcomes* to those in the log line of the request; an error that ends its stream is its refusal."""
    refusals = [outcome for outcome in outcomes if isinstance(outcome, JidomemError)]
    counts = {"accepted": len(outcomes) - len(refusals), "refused": len(refusals)}
    seen.outcomes |= {name: seen.outcomes.get(name, 0) + count for name, count in counts.items()}
    for refusal in refusals[-1:]:
        seen.outcomes["code"] = refusal.code
        if _stops(refusal):
            seen.refusal = refusal.code


def _shown(site: RequestContext, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
    """Yield *outcomes* as the caller may see them; an error that stopped several is logged once."""
    shown: dict[str, JidomemError] = {}
    for outcome in outcomes:
        if isinstance(outcome, Receipt):
            yield outcome
            continue
        if not _stops(outcome) or outcome.detail not in shown:
            shown[outcome.detail] = site.visible_error(outcome)
        yield shown[outcome.detail]


def _by(site: RequestContext, values: Any) -> str | None:
    """Return the author of a refused intent: the caller, else the agent it names, else the default agent."""
    if site.caller is not None:
        return site.caller.agent
    if not isinstance(values, dict):
        return None
    agent = values.get("asserted_by", site.memory.settings.agent)
    return agent if isinstance(agent, str) else None


def _judged(writer: MemoryWriter, project: str, value: Any) -> Outcome:
    if isinstance(value, JidomemError):
        return value
    try:
        return writer.submit_intent(project, value, dry_run=True)
    except JidomemError as refusal:
        return refusal


def _stops(outcome: Outcome) -> bool:
    return isinstance(outcome, JidomemError) and outcome.code in STOPPING


def _error(outcome: Outcome) -> JidomemError:
    assert isinstance(outcome, JidomemError)
    return outcome


def _blocks(stream: BufferedIOBase, limits: RootLimits) -> Iterator[list[Any]]:
    """Yield the intents of the lines that arrived together, at most CHUNK in a block; a refusal in place of an invalid
    line, and at the end if the body is too large or truncated.
    """
    number = 0
    for lines in _arrivals(stream, limits):
        numbered = enumerate(lines, start=number + 1)
        intents = [_parsed(at, line) for at, line in numbered if isinstance(line, JidomemError) or line.strip()]
        number += len(lines)
        yield from (intents[at : at + CHUNK] for at in range(0, len(intents), CHUNK))


def _arrivals(stream: BufferedIOBase, limits: RootLimits) -> Iterator[list[bytes | JidomemError]]:
    """Yield the lines that each read completes, and a refusal where the body ends early."""
    total, number, rest = 0, 0, b""
    try:
        while piece := stream.read1(_READ):
            total += len(piece)
            *lines, rest = (rest + piece).split(b"\n")
            for at, line in enumerate((*lines, rest)):
                if len(line) > limits.line:
                    yield [*lines[:at], _too_long(number + at + 1, limits.line)]
                    return
            number += len(lines)
            yield [*lines]
            if total > limits.stream:
                yield [wire.too_large("the body", limits.stream)]
                return
        yield [rest]
    except JidomemError as error:
        yield [error]


def _too_long(number: int, limit: int) -> TooLarge:
    hint = f"send one intent a line, and the lines from {number} on again; name a long text in evidence as a file"
    return wire.too_large(f"line {number}", limit, hint)


def _parsed(number: int, line: bytes | JidomemError) -> Any:
    if isinstance(line, JidomemError):
        return line
    try:
        return parse_line(number, line)
    except InvalidRequest as error:
        return error
