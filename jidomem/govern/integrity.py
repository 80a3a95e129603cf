"""What a journal says of its past that its files do not bear out: secrets that came back, and what was set aside."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from shlex import quote
from typing import Any

from jidomem import clock
from jidomem.decoding import decode_json
from jidomem.errors import InvalidRequest, JournalDamaged
from jidomem.govern.orders import said_of
from jidomem.journal.commit import EDITED, Commit
from jidomem.journal.erasing import Form, forms, orders, redacted_ids
from jidomem.journal.files import FileJournal, Stream
from jidomem.journal.harm import FROM_ROOT, in_repository
from jidomem.journal.horizon import beyond
from jidomem.journal.names import ASIDE, aside_of, each_file, set_aside, stem_of
from jidomem.journal.redaction import leaves, recorded, taken_out
from jidomem.journal.revisions import Revision, vanished
from jidomem.judge import Severity
from jidomem.repository import git
from jidomem.terms import Triple, bare, parts
from jidomem.version import SHORT

#: How many damaged files are held against what git has.
_COMPARED = 20
#: How many ids of commits that are gone a finding names.
_NAMED = 3
_VERSION = re.compile(r"(?:0|[1-9][0-9]*-[0-9a-f]{12}(?:\+[0-9a-f]{12})*)")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a stream that somebody should know; a `violation` is to be put right, a `warning` to be known."""

    kind: str  # exposed, unrecorded, set_aside, missing, too_late, stray, unchecked
    severity: Severity
    detail: str
    hint: str
    path: str | None = None
    line: int | None = None
    commit: str | None = None
    commits: tuple[str, ...] = ()  # the first digits of the ids of all commits that are gone

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as plain JSON values."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "commits"}


@dataclass(frozen=True, slots=True)
class Exposure:
    """A form of a commit, in a file, that shows what was redacted: the leaves of it, and the commit's id.

    `triples` are what is shown: none where it is gone, and no commit records that.
    """

    path: str
    line: int
    commit: str
    leaves: frozenset[str]
    triples: frozenset[Triple] = frozenset()


def findings(journal: FileJournal, stream: Stream, now: datetime | None = None) -> list[Finding]:
    """Return what else than damage is to be said of a stream at the moment *now*: every file of it is read."""
    told = list(orders(journal.seen(stream)))
    late = beyond(journal.seen(stream), now or clock.now()).values()
    return [
        *_exposed(journal, stream, told),
        *_unrecorded(journal, stream, told),
        *_set_aside(journal, stream, told),
        *(_too_late(error) for error in late),
    ]


def _too_late(error: JournalDamaged) -> Finding:
    detail = error.detail.removeprefix(f"{error.path}: ")
    return Finding("too_late", "violation", detail, error.hint, error.path, commit=error.commit)


def exposures(journal: FileJournal, stream: Stream) -> list[Exposure]:
    """Return the forms of commits that show what was redacted, and the redacted ones that no commit records."""
    told = list(orders(journal.seen(stream)))
    return [*_showing(journal, stream, told), *_silently(journal, stream, told)]


def _showing(journal: FileJournal, stream: Stream, told: Iterable[Commit]) -> Iterator[Exposure]:
    """Yield the forms that show a leaf that was redacted."""
    folder = journal.seen(stream)
    for identity, gone in recorded(told).items():
        for form in forms(folder, identity):
            if shown := {triple: leaf for triple, leaf in leaves(form.commit).items() if leaf in gone}:
                yield _exposure(folder.path, form, frozenset(shown.values()), frozenset(shown))


def _silently(journal: FileJournal, stream: Stream, told: Iterable[Commit]) -> Iterator[Exposure]:
    """Yield the forms that lost a leaf no commit records as redacted."""
    folder, known = journal.seen(stream), recorded(told)
    for identity in redacted_ids(folder):
        for form in forms(folder, identity):
            if lost := taken_out(form.commit) - known.get(identity, frozenset()):
                yield _exposure(folder.path, form, lost)


def _exposure(folder: str, form: Form, found: frozenset[str], triples: frozenset[Triple] = frozenset()) -> Exposure:
    return Exposure(f"{folder}/{form.name}", form.before + 1, form.commit.id, found, triples)


def _exposed(journal: FileJournal, stream: Stream, told: Iterable[Commit]) -> Iterator[Finding]:
    for found in _showing(journal, stream, told):
        yield Finding(
            "exposed",
            "violation",
            "shows what was redacted: the copy came back, as by a merge, or a redaction was cut short",
            f"jidomem redact --again --project {stream.project} --reason TEXT",
            found.path,
            found.line,
            found.commit,
        )


def _unrecorded(journal: FileJournal, stream: Stream, told: Iterable[Commit]) -> Iterator[Finding]:
    for found in _silently(journal, stream, told):
        yield Finding(
            "unrecorded",
            "violation",
            "something was taken out of this commit, and no commit records who did it and why",
            f"restore the whole form from git or a backup, or: jidomem redact --again --project {stream.project}"
            " --reason TEXT",
            found.path,
            found.line,
            found.commit,
        )


def _set_aside(journal: FileJournal, stream: Stream, told: Iterable[Commit]) -> Iterator[Finding]:
    folder = journal.seen(stream)
    why = {parts(name).text: order for order in told for name in said_of(order, "setsAside")}
    for name in sorted(set_aside(folder.path)):
        file, path = name.removesuffix(ASIDE), f"{folder.path}/{name}"
        order = why.get(file)
        if order is None:
            detail = "was set aside, and no commit records who did it and why"
            hint = f"jidomem verify --project {stream.project} --quarantine {file} --reason TEXT"
            yield Finding("unrecorded", "violation", detail, hint, path)
        else:
            named = (said_of(order, said) for said in ("orderedBy", "orderReason"))
            who, reason = (", ".join(map(bare, terms)) or "nobody knows" for terms in named)
            detail = f"was set aside by {who} at {order.recorded_at}: {reason}"
            hint = f"found again, put it back as {aside_of(file)}, remove {name} and run: jidomem reindex"
            yield Finding("set_aside", "warning", detail, hint, path)


def anchored(journal: FileJournal, stream: Stream, heads: Iterable[str]) -> list[Finding]:
    """Return a finding for each of *heads*, ids or their first 12 digits, that the journal of a stream lacks.

    A commit that is there has all its ancestors, or they are damage: so nothing before these heads was taken away.
    """
    folder = journal.seen(stream)
    missing = [head for head in heads if not folder.contents.has(head)]
    return [
        Finding(
            "missing",
            "violation",
            f"{stream.project}/{stream.name} no longer has the commit {head}, which it once ended with",
            "the end of the journal was taken away, or another branch is checked out: restore it from git or a backup",
            commit=head,
        )
        for head in missing
    ]


def gone(
    journal: FileJournal, stream: Stream, revisions: Sequence[Revision], damage: Iterable[JournalDamaged]
) -> list[Finding]:
    """Return a finding for each file of a stream whose commits were there at one of *revisions* and are gone.

    A commit that was packed or moved within the folder is there; so is what *damage* names. One that a record of a
    redaction, or of damage that was set aside, names is not missed.
    """
    folder = journal.seen(stream)
    files = {*each_file(folder.path)}
    here = {stem_of(name) for name in files} | {stem_of(name.removesuffix(ASIDE)) for name in set_aside(folder.path)}
    for pack in folder.contents.shelf.packs():
        here |= folder.contents.shelf.rows(pack).keys()
    if folder.contents.shelf.broken:
        return []  # nobody knows what a pack holds that cannot be read, and it is damage
    known = {error.commit[:SHORT] for error in damage if error.commit}
    told = list(orders(folder))
    known |= {identity[:SHORT] for identity in recorded(told)}
    here |= {stem_of(parts(name).text) for order in told for name in said_of(order, "setsAside")}
    found: dict[str, Finding] = {}
    for revision in revisions:
        before = revision.commits(journal.path(stream), unread=files)
        before = {key: name for key, name in before.items() if key.rpartition("-")[2] not in known}
        lost = vanished(before, here)
        if before and not files:
            return [_gone(folder.path, "", sorted(before), stream, revision)]
        for name, keys in lost.items():
            found.setdefault(name, _gone(folder.path, name, keys, stream, revision))
    return [*found.values()]


def _gone(folder: str, name: str, keys: Sequence[str], stream: Stream, revision: Revision) -> Finding:
    ids = ", ".join(key.rpartition("-")[2] for key in keys[:_NAMED])
    more = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
    what, verb = ("the commit", "was") if len(keys) == 1 else (f"{len(keys)} commits,", "were")
    path = f"{folder}/{name}".rstrip("/")
    return Finding(
        "missing",
        "violation",
        f"{what} {ids}{more} of {stream.project}/{stream.name} {verb} there at {revision.name} and"
        f" {'is' if len(keys) == 1 else 'are'} gone, and no redaction is recorded",
        f"{FROM_ROOT}, restore it: git checkout {revision.ref} -- {quote(in_repository(path))}",
        path,
        commit=keys[0].rpartition("-")[2],
        commits=tuple(key.rpartition("-")[2] for key in keys),
    )


def edited_lines(journal: FileJournal, damage: Iterable[JournalDamaged]) -> dict[str, int]:
    """Return the first line, by path, in which a damaged file differs from what git has at HEAD under its name.

    A digest says that a file was edited and not where; git may have the file as it was.
    """
    found: dict[str, int] = {}
    for path in sorted({one.path for one in damage if EDITED in one.detail})[:_COMPARED] if journal.is_tracked else ():
        with suppress(InvalidRequest, OSError):
            folder, _, name = path.rpartition("/")
            before = git.blob(Path(folder), "HEAD", name)
            pairs = zip_longest((before or b"").split(b"\n"), Path(path).read_bytes().split(b"\n"))
            different = (number for number, (old, new) in enumerate(pairs, 1) if old != new)
            if before is not None and (line := next(different, None)) is not None:
                found[path] = line
    return found


def anchor(text: str, default: Stream) -> dict[Stream, list[str]]:
    """Return the heads that an anchor names by stream: a version, which is that of *default*, or a file.

    The file is what `jidomem verify --json` printed. Raises InvalidRequest for what is neither.
    """
    if _VERSION.fullmatch(text):
        return {default: [] if text == "0" else text.partition("-")[2].split("+")}
    try:
        rows = decode_json(Path(text).read_text("utf-8"))["streams"]
        return {Stream(row["project"], row["stream"]): _ids(row["heads"]) for row in rows}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidRequest(
            f"{text} is neither a version nor a file of heads: {error}",
            hint="make one with: jidomem verify --json > anchor.json",
        ) from error


def _ids(heads: Any) -> list[str]:
    """Return *heads*; raise ValueError unless they are ids of commits."""
    if not isinstance(heads, list) or not all(re.fullmatch(r"[0-9a-f]{64}", str(head)) for head in heads):
        raise ValueError(f"heads are ids of commits, not {heads!r:.80}")
    return heads
