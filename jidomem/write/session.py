"""Work sessions: opened once, moved by events, never rewritten.  Pure over rows."""

from __future__ import annotations

from collections.abc import Mapping

from jidomem import vocab
from jidomem.errors import IntentRefused, NotFound, Violation
from jidomem.terms import Term, Triple, bare, date_time, integer, iri, parts
from jidomem.vocab import TYPE, jido
from jidomem.write.names import moment, nearest, put, squash
from jidomem.write.triples import session_stub
from jidomem.write.view import View

ENDED = ("Closed", "Abandoned")


def state(session: Term, view: View) -> str | None:
    """Return the status a session is in: its newest event's, else its first; None for a session nobody opened."""
    newest = (0, view.first(session, jido("hasStatus")))
    for event in view.subjects(jido("ofSession"), session):
        status = view.first(event, jido("toStatus"))
        if status is not None:
            newest = max(newest, (_number(event, view), status))
    return vocab.local_name(newest[1]) if newest[1] else None


def opened(session: Term, project: Term, agent: Term, at: str, *, continues: Term | None, view: View) -> list[Triple]:
    """Return the triples that open *session* at *at*; raises IntentRefused when it exists, NotFound for *continues*."""
    if view.describes(session):
        raise IntentRefused(
            [Violation("iri_exists", f"{session[1:-1]} was opened already", field="session", value=session[1:-1])],
            hint="choose another name, or move this one with: jidomem session phase|pause|resume|close",
        )
    triples = session_stub(session, project, agent, at)
    if continues is not None:
        if not view.describes(continues):
            raise NotFound(f"no session {continues[1:-1]}", hint="list them with: jidomem session list")
        triples += [
            (session, jido("continuesSession"), continues),
            (session, jido("hasPreviousSession"), continues),
        ]
    return triples


def moved(
    session: Term, agent: Term, at: str, *, status: str | None = None, phase: str | None = None, view: View
) -> list[Triple]:
    """Return the event that gives *session* a status or a phase, and its end where the status ends it.

    Raises NotFound for a session nobody opened, IntentRefused for one that has ended and for an unknown phase.
    """
    now = state(session, view)
    if now is None:
        raise NotFound(f"no session {session[1:-1]}", hint="open it with: jidomem session start NAME")
    if now in ENDED:
        raise IntentRefused(
            [Violation("shape_violation", f"{session[1:-1]} has ended ({now})", field="session", value=session[1:-1])],
            hint="open a new one with: jidomem session start NAME --continues " + vocab.local_name(session),
        )
    number = 1 + max((_number(e, view) for e in view.subjects(jido("ofSession"), session)), default=0)
    event = iri(f"{session[1:-1]}/events/{number}")
    triples = [
        (event, TYPE, jido("SessionEvent")),
        (event, jido("ofSession"), session),
        (event, jido("eventNumber"), integer(number)),
        (event, jido("causedBy"), agent),
    ]
    if status is not None:
        triples.append((event, jido("toStatus"), jido(status)))
        if status in ENDED:
            started = view.first(session, jido("startedAt"))  # a moment given by an agent, or by a clock since set back
            ended = max(at, moment(bare(started)) or at) if started else at
            triples.append((session, jido("endedAt"), date_time(ended)))
    if phase is not None:
        triples.append((event, jido("toPhase"), jido(phase)))
    return triples


def phase_of(name: str) -> str:
    """Return the phase *name* stands for (`review`, `ReviewPhase`); raises IntentRefused naming the nearest one."""
    return _one_of("phase", name, {phase.removesuffix("Phase"): phase for phase in vocab.SESSION_PHASE})


def status_of(name: str) -> str:
    """Return the status *name* stands for (`paused`, `Paused`); raises IntentRefused naming the nearest one."""
    return _one_of("status", name, {status: status for status in vocab.SESSION_STATUS})


def _one_of(field: str, name: str, known: Mapping[str, str]) -> str:
    """Return the value of *known* whose key, or itself, is *name* in any spelling."""
    forms = {squash(form): value for short, value in known.items() for form in (short, value)}
    found = forms.get(squash(name))
    if found is None:
        allowed = tuple(known.values())
        near = nearest(name, allowed)
        message = f"{field} is one of {', '.join(allowed)}, not {name!r}"
        repair = put(field, near) if near else None
        raise IntentRefused(
            [
                Violation(
                    "shape_violation", message, field=field, value=name, allowed=allowed, nearest=near, repair=repair
                )
            ]
        )
    return found


def _number(event: Term, view: View) -> int:
    found = view.first(event, jido("eventNumber"))
    return int(parts(found).text) if found else 0
