"""The integrity of a journal: redactions, quarantined files, git, replay and secrets.

`journal_findings` reports redacted content that reappeared and files that were set aside without a record;
`missing_files` and `edited_lines` compare the journal with git; `replay` rebuilds the index from the journal and
compares it with the index and the exports in use; `SecretScan` finds texts that look like secrets and reports their
place without showing them.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from io import RawIOBase
from itertools import chain, zip_longest
from pathlib import Path
from shlex import quote
from types import MappingProxyType
from typing import Any, NamedTuple

from jidomem.base import clock
from jidomem.base.json_values import decode_json
from jidomem.check.report import JOURNAL, SECRET, Problem, UnplacedFinding
from jidomem.check.sources import by_subject, line_in, statements_of
from jidomem.errors import BranchChanged, InvalidRequest, JournalDamaged, NotFound
from jidomem.exchange import documents
from jidomem.index.follower import BulkLoader, IndexFollower, merged_records
from jidomem.index.snapshots import STORE_ERRORS, Clones
from jidomem.index.store import OxigraphIndex
from jidomem.journal.branches import Revision, head_of, vanished
from jidomem.journal.commit import ASIDE, COMMIT, EDITED, Commit, FormatError, is_pack, parse, quarantine_name, stem_of
from jidomem.journal.journal import FileJournal, Stream, future_commit
from jidomem.journal.rewrite import (
    NO_MOMENT,
    CommitForm,
    forms,
    future_commits,
    leaves,
    redacted_ids,
    redacted_leaves,
    redaction_records,
    removed_leaves,
)
from jidomem.journal.stream_files import FROM_ROOT, each_file, in_repository, set_aside
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, Triple, iri, is_iri, parse_literal, plain_value
from jidomem.rdf.vocab import jido, short_id
from jidomem.records.intent import SHORT, CommitRef, Version
from jidomem.repository import git
from jidomem.schema.shacl import Severity
from jidomem.write import secrets


def record_values(commit: Commit, predicate: str) -> list[Term]:
    """Return the values of *predicate* in the record of a redaction or quarantine, sorted."""
    own, name = iri(commit.iri), jido(predicate)
    return sorted(value for s, p, value in commit.triples if s == own and p == name)


#: The most damaged files that are compared with git.
_COMPARED = 20
#: The most ids of missing commits in a finding.
_NAMED = 3
_CAME_BACK = "contains redacted content: a merge restored it, or a redaction was interrupted"
_UNRECORDED = "content was removed from this commit, without a record of author and reason"
_VERSION = re.compile(r"(?:0|[1-9][0-9]*-[0-9a-f]{12}(?:\+[0-9a-f]{12})*)")


@dataclass(frozen=True, slots=True)
class JournalFinding:
    """A finding about a stream: a `violation` needs a repair, a `warning` does not."""

    kind: str  # exposed, unredacted, unrecorded, set_aside, redacted, missing, too_late, future, stray, unchecked
    severity: Severity
    detail: str
    hint: str
    path: str | None = None
    line: int | None = None
    commit: str | None = None
    commits: tuple[str, ...] = ()  # the first digits of the ids of all missing commits

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as plain JSON values."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "commits"}


class ExposedForm(NamedTuple):
    """A form of a commit, in a file, that shows redacted content: its leaves, and the id of the commit.

    `triples` are the triples of these leaves, as far as a form of the commit has them.
    """

    path: str
    line: int
    commit: str
    leaves: frozenset[str]
    triples: frozenset[Triple] = frozenset()


#: The redaction records of each stream of some projects.
Records = Mapping[Stream, Sequence[Commit]]


def records_of(
    journal: FileJournal, streams: Iterable[Stream], anchored: Records = MappingProxyType({})
) -> dict[Stream, list[Commit]]:
    """Return the redaction records of all streams of the projects of *streams*; every file of them is read.

    The first record of a redaction names the commits of the other streams, too. *anchored* are added to them.
    """
    projects = {stream.project for stream in streams}
    present = (each for each in journal.streams() if each.project in projects)
    return {each: [*redaction_records(journal.inspect(each)), *anchored.get(each, ())] for each in present}


def journal_findings(
    journal: FileJournal, streams: Sequence[Stream], now: datetime | None = None, records: Records | None = None
) -> dict[Stream, list[JournalFinding]]:
    """Return the findings about *streams* other than damage, at the moment *now*; *records* are read if not given."""
    records = records_of(journal, streams) if records is None else records
    return {stream: _findings(journal, stream, records, now or clock.now()) for stream in streams}


def _findings(journal: FileJournal, stream: Stream, records: Records, moment: datetime) -> list[JournalFinding]:
    known = _known_leaves(records, stream)
    again = f"jidomem journal redact --again --project {stream.project} --reason TEXT"
    restore = f"restore the complete file from git or a backup, or: {again}"
    kinds = (
        ("exposed", _CAME_BACK, again, _showing(journal, stream, known)),
        ("unrecorded", _UNRECORDED, restore, _silently(journal, stream, known)),
    )
    late = list[JournalFinding]()
    if (first := future_commit(journal, [stream], moment)) is not None:
        detail, repair = f"{first.detail}: {first.hint}", first.repair(journal)
        late = [_too_late(error, repair) for error in future_commits(journal.inspect(stream), moment).values()]
        late = late or [JournalFinding("future", "warning", detail, repair, first.path, commit=first.head.id)]
    return [
        *(
            JournalFinding(kind, "violation", detail, hint, each.path, each.line, each.commit)
            for kind, detail, hint, exposed in kinds
            for each in exposed
        ),
        *_set_aside(journal, stream, records.get(stream, ())),
        *late,
    ]


def _too_late(error: JournalDamaged, repair: str) -> JournalFinding:
    detail = error.detail.removeprefix(f"{error.path}: ")
    return JournalFinding("too_late", "violation", detail, repair, error.path, commit=error.commit)


def exposures(journal: FileJournal, stream: Stream, records: Records) -> list[ExposedForm]:
    """Return the forms of commits that show redacted content, and redacted forms without one of the *records*."""
    known = _known_leaves(records, stream)
    return [*_showing(journal, stream, known), *_silently(journal, stream, known)]


def _known_leaves(records: Records, stream: Stream) -> Mapping[str, frozenset[str]]:
    """Return the redacted leaves, by the id of their commit, that the records of the project of *stream* name."""
    return redacted_leaves(record for each, of in records.items() if each.project == stream.project for record in of)


def _showing(journal: FileJournal, stream: Stream, known: Mapping[str, frozenset[str]]) -> Iterator[ExposedForm]:
    """Yield the forms of commits that contain a redacted leaf."""
    folder = journal.inspect(stream)
    for identity, redacted in known.items():
        for form in forms(folder, identity):
            if shown := {triple: leaf for triple, leaf in leaves(form.commit).items() if leaf in redacted}:
                yield _exposure(folder.path, form, frozenset(shown.values()), frozenset(shown))


def _silently(journal: FileJournal, stream: Stream, known: Mapping[str, frozenset[str]]) -> Iterator[ExposedForm]:
    """Yield the forms of commits that lack a leaf without a record of its redaction.

    After an interruption another form has the triples.
    """
    folder = journal.inspect(stream)
    for identity in redacted_ids(folder):
        every = forms(folder, identity)
        for form in every:
            if lost := removed_leaves(form.commit) - known.get(identity, frozenset()):
                leaf_of = chain.from_iterable(leaves(each.commit).items() for each in every)
                yield _exposure(folder.path, form, lost, frozenset(row for row, leaf in leaf_of if leaf in lost))


def _exposure(
    folder: str, form: CommitForm, redacted: frozenset[str], triples: frozenset[Triple] = frozenset()
) -> ExposedForm:
    return ExposedForm(f"{folder}/{form.name}", form.before + 1, form.commit.id, redacted, triples)


#: How the moment of a commit is written in the name of its file.
_FORM = "2026-11-21T08:00:00.123456Z becomes 20261121T080000.123456Z"


def _set_aside(journal: FileJournal, stream: Stream, orders: Iterable[Commit]) -> Iterator[JournalFinding]:
    folder = journal.inspect(stream)
    orders_by_file = {parse_literal(name).text: order for order in orders for name in record_values(order, "setsAside")}
    for name in sorted(set_aside(folder.path)):
        file, path = name.removesuffix(ASIDE), f"{folder.path}/{name}"
        order = orders_by_file.get(file)
        if order is None:
            detail = "was set aside, without a record of author and reason"
            hint = f"jidomem journal verify --project {stream.project} --quarantine {file} --reason TEXT"
            yield JournalFinding("unrecorded", "violation", detail, hint, path)
        else:
            author, reason = _ordered(order)
            detail = f"was set aside by {author} at {order.recorded_at}: {reason}"
            restored = quarantine_name(file)
            if restored.startswith(NO_MOMENT):
                restored = f"MOMENT{restored.removeprefix(NO_MOMENT)} with the MOMENT of its jido:recordedAt ({_FORM})"
            hint = f"if it is recovered: restore it as {restored}, remove {name} and run: jidomem root reindex"
            yield JournalFinding("set_aside", "warning", detail, hint, path)


def lost_redactions(
    journal: FileJournal, records: Records, anchored: Records, command: str
) -> Iterator[JournalFinding]:
    """Yield a finding for each redaction in an anchor without a record in the journal, if that shows the text again.

    An older backup was restored then. *records* are those of the journal; *command* repeats the redactions.
    """
    present = {order.id for orders in records.values() for order in orders}
    lost = ((stream, order) for stream, orders in anchored.items() for order in orders if order.id not in present)
    for stream, order in lost:
        known, streams = redacted_leaves([order]), (s for s in journal.streams() if s.project == stream.project)
        shown = {form.commit for each in streams for form in _showing(journal, each, known)}
        if known and not shown:
            continue
        items = [short_id(plain_value(item)) for item in record_values(order, "redactedItem")]
        more = f" and {len(items) - _NAMED} more" if len(items) > _NAMED else ""
        what = f" of {', '.join(items[:_NAMED])}{more}" if items else ""
        where = f"commits that show the text: {len(shown)}" if shown else "working memory may show the text"
        author, reason = _ordered(order)
        yield JournalFinding(
            "unredacted",
            "violation" if shown else "warning",
            f"the journal lost the redaction{what} by {author} at {order.recorded_at} ({reason}); {where}",
            f"{command} --project {stream.project} --reason TEXT; then each text that working memory had, too:"
            " jidomem journal redact --text TEXT --dry-run"
            if shown
            else "jidomem journal redact --text TEXT --dry-run",
            commit=order.id,
        )


def anchored(journal: FileJournal, stream: Stream, heads: Collection[str]) -> list[JournalFinding]:
    """Return a finding for each of *heads*, ids or their first 12 digits, that the journal of a stream lacks.

    An existing commit has all its ancestors, or they are reported as damage: so no commit before these heads is
    missing. If all heads exist, each later redaction is a warning: the commits that it names differ from the anchored
    ones.
    """
    folder = journal.inspect(stream)
    missing = [
        JournalFinding(
            "missing",
            "violation",
            f"{stream.project}/{stream.name} no longer has the commit {head}, a head of the anchor",
            "the journal was truncated, a backup from before was restored, or another branch is checked out: restore it"
            " from git or a newer backup, or if it stays as it is, make a new anchor",
            commit=head,
        )
        for head in heads
        if not folder.contents.has(head)
    ]
    if missing:
        return missing
    since = journal.read(stream, Version.of(ref for head in heads for ref in folder.named(head)))
    counts = (
        (order, sum(folder.contents.head(each) is not None for each in redacted_leaves([order]))) for order in since
    )
    return [_redaction(stream, order, count) for order, count in counts if count]


def _redaction(stream: Stream, order: Commit, count: int) -> JournalFinding:
    commits = "1 commit was" if count == 1 else f"{count} commits were"
    author, reason = _ordered(order)
    detail = f"{commits} redacted in {stream.project}/{stream.name} since the anchor, by {author}"
    hint = f"see what was redacted: jidomem journal diff --as-of {order.position - 1}"
    return JournalFinding("redacted", "warning", f"{detail} at {order.recorded_at}: {reason}", hint, commit=order.id)


def _ordered(order: Commit) -> tuple[str, str]:
    """Return author and reason of a redaction or quarantine."""
    values = (record_values(order, field) for field in ("orderedBy", "orderReason"))
    author, reason = (", ".join(map(plain_value, terms)) or "unknown" for terms in values)
    return author, reason


def missing_files(
    journal: FileJournal, stream: Stream, revisions: Sequence[Revision], damage: Iterable[JournalDamaged]
) -> list[JournalFinding]:
    """Return a finding for each file of a stream with commits that existed at one of *revisions* and are missing now.

    A commit that was packed or moved within the folder exists; so does one reported as *damage*. A commit named by the
    record of a redaction or quarantine is not reported; neither is one that had no parents at that revision, as after
    `git cherry-pick`, where nothing could read it.
    """
    folder = journal.inspect(stream)
    files = {*each_file(folder.path)}
    present = {stem_of(name) for name in files} | {stem_of(name.removesuffix(ASIDE)) for name in set_aside(folder.path)}
    for pack in folder.contents.packs.listed():
        present |= folder.contents.packs.rows(pack).keys()
    if folder.contents.packs.broken:
        return []  # the content of an unreadable pack is unknown, and reported as damage
    known = {error.commit[:SHORT] for error in damage if error.commit}
    orders_read = list(redaction_records(folder))
    known |= {identity[:SHORT] for identity in redacted_leaves(orders_read)}
    present |= {
        stem_of(parse_literal(name).text) for order in orders_read for name in record_values(order, "setsAside")
    }
    findings: dict[str, JournalFinding] = {}
    for revision in revisions:
        there = revision.commits(journal.path(stream), unread=files)
        before = {key: name for key, name in there.items() if key.rpartition("-")[2] not in known}
        lost = vanished(before, present)
        unused = _unused(Path(folder.path), revision, lost, {*there, *present}) if files else ()
        lost = {name: keys for name, keys in lost.items() if name not in unused}
        if before and not files:
            return [_missing_file(folder.path, "", sorted(before), stream, revision)]
        for name, keys in lost.items():
            findings.setdefault(name, _missing_file(folder.path, name, keys, stream, revision))
    return [*findings.values()]


def _unused(folder: Path, revision: Revision, lost: Collection[str], stems: Iterable[str]) -> set[str]:
    """Return those of the *lost* files whose commit had a parent, or an older ancestor, that is not among *stems*."""
    refs = {f"{revision.ref}:./{name}": name for name in lost if not is_pack(name)}
    commits, unused = dict[str, Commit](), set[str]()
    for ref, data in git.available_blobs(folder, [*refs]).items():
        with suppress(FormatError):
            commits[refs[ref]] = parse(data)
    ids = {stem.rpartition("-")[2] for stem in stems}
    while more := {
        name
        for name, commit in commits.items()
        if name not in unused and not ids.issuperset(parent[:SHORT] for parent in commit.parents)
    }:
        unused |= more
        ids -= {commits[name].id[:SHORT] for name in more}
    return unused


def _missing_file(folder: str, name: str, keys: Sequence[str], stream: Stream, revision: Revision) -> JournalFinding:
    ids = ", ".join(key.rpartition("-")[2] for key in keys[:_NAMED])
    more = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
    what, verb = ("the commit", "was") if len(keys) == 1 else (f"{len(keys)} commits,", "were")
    path = f"{folder}/{name}".rstrip("/")
    return JournalFinding(
        "missing",
        "violation",
        f"{what} {ids}{more} of {stream.project}/{stream.name} {verb} there at {revision.name} and"
        f" {'is' if len(keys) == 1 else 'are'} gone, and no redaction is recorded",
        f"{FROM_ROOT}, restore it: git checkout {revision.ref} -- {quote(in_repository(path))}",
        path,
        commit=keys[0].rpartition("-")[2],
        commits=tuple(key.rpartition("-")[2] for key in keys),
    )


def damage_problem(damage: JournalDamaged, line: int | None) -> Problem:
    """Return damage as a problem, at the edited *line* if known."""
    commit = f"urn:jido:commit:{damage.commit}" if damage.commit else damage.path
    where = f"{damage.path}:{damage.line}: " if damage.line else f"{damage.path}: "
    detail = damage.detail.removeprefix(where)
    text = f"{detail}; {damage.hint}" if damage.hint else detail
    return Problem(commit, JOURNAL, "violation", text, damage.path, line or damage.line)


def finding_problem(finding: JournalFinding) -> Problem:
    """Return a finding about a stream as a problem."""
    commit = f"urn:jido:commit:{finding.commit}" if finding.commit else finding.path or ""
    return Problem(commit, JOURNAL, finding.severity, f"{finding.detail}: {finding.hint}", finding.path, finding.line)


def edited_lines(journal: FileJournal, damage: Iterable[JournalDamaged]) -> dict[str, int]:
    """Return, by path, the first line in which a damaged file differs from its version in git: at HEAD, else the first.

    A digest shows that a file was edited but not where; git may have the original, before an edit that was committed.
    """
    edited: dict[str, int] = {}
    for path in sorted({one.path for one in damage if EDITED in one.detail})[:_COMPARED] if journal.is_tracked else ():
        with suppress(InvalidRequest, OSError):
            folder, _, name = path.rpartition("/")
            data, before = Path(path).read_bytes(), git.blob(Path(folder), "HEAD", name)
            if data == before:
                added = git.read_git(Path(folder), "log", "--diff-filter=A", "--format=%H", "-1", "--", f"./{name}")
                before = git.blob(Path(folder), added.decode().strip(), name) if added else None
            pairs = zip_longest((before or b"").split(b"\n"), data.split(b"\n"))
            different = (number for number, (old, new) in enumerate(pairs, 1) if old != new)
            if before is not None and (line := next(different, None)) is not None:
                edited[path] = line
    return edited


class AnchoredHeads(NamedTuple):
    """The heads of each stream, and its redaction records, as noted outside of the journal."""

    heads: Mapping[Stream, Sequence[str]]
    redactions: Records = MappingProxyType({})


def read_anchor(text: str, default: Stream) -> AnchoredHeads:
    """Return what an anchor names. The anchor is a version, which is that of *default*, or a file.

    The file is the output of `jidomem journal verify --json`. Raises InvalidRequest for any other text.
    """
    if _VERSION.fullmatch(text):
        return AnchoredHeads({default: [] if text == "0" else text.partition("-")[2].split("+")})
    try:
        listed = decode_json(Path(text).read_text("utf-8"))["streams"]
        rows = {Stream(each["project"], each["stream"]): each for each in listed}
        return AnchoredHeads(
            {stream: _ids(row["heads"]) for stream, row in rows.items()},
            {stream: [parse(each.encode()) for each in row.get("redactions", ())] for stream, row in rows.items()},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidRequest(
            f"{text} is neither a version nor a file of heads: {error}",
            hint="make one with: jidomem journal verify --json > anchor.json",
        ) from error


def _ids(heads: Any) -> list[str]:
    if not isinstance(heads, list) or not all(re.fullmatch(r"[0-9a-f]{64}", str(head)) for head in heads):
        raise ValueError(f"heads are ids of commits, not {heads!r:.80}")
    return heads


def compare_with_git(
    journal: FileJournal, damage: Mapping[Stream, Sequence[JournalDamaged]], project: str | None = None
) -> list[JournalFinding]:
    """Return findings about commits that git has and the streams of a root, or of one project, lack.

    *damage* is that of the existing streams. A warning reports that git could not be called.
    """
    if not journal.is_tracked:
        return []
    try:
        head = head_of(journal.folder)
        if head is None:
            return []
        streams = [each for each in _streams(journal, head) if project in (None, each.project)]
        lost = [each for one in streams for each in missing_files(journal, one, [head], damage.get(one, ()))]
    except InvalidRequest as error:
        return [JournalFinding("unchecked", "warning", f"not compared with git: {error.detail}", error.hint)]
    changed = {
        error.detail: error for errors in damage.values() for error in errors if isinstance(error, BranchChanged)
    }
    return [*lost, *(_stray(each) for each in changed.values())]


def _streams(journal: FileJournal, head: Revision) -> list[Stream]:
    listed = git.read_git(journal.folder, "ls-tree", "-r", "-d", "-z", "--name-only", head.ref, "./projects/") or b""
    streams = list[Stream]()
    for row in filter(None, listed.split(b"\0")):
        with suppress(ValueError, NotFound):  # not a folder of a stream
            project, name = os.fsdecode(row).split("/")[-2:]
            streams.append(Stream(project, name))
    return sorted(streams)


def _stray(error: BranchChanged) -> JournalFinding:
    return JournalFinding("stray", "violation", error.detail, error.hint, error.path, error.line, error.commit)


#: The number of buckets of lines, each with a digest; only the lines of a differing bucket are compared.
_BUCKETS = 256
_WHOLE = 1 << 128


class GraphDigest(NamedTuple):
    """The number of triples of a graph, and a digest that does not depend on their order."""

    triples: int
    digest: str


class Replayed(NamedTuple):
    """The result of a replay: the digest of each stream and each export, and the differences."""

    streams: dict[Stream, GraphDigest]
    exports: dict[str, str]
    snapshots: int
    differences: tuple[str, ...]


class _Print(RawIOBase):
    """A file that computes digests of the lines written to it, or collects the lines of one bucket."""

    def __init__(self, bucket: int | None = None) -> None:
        self.buckets = [0] * _BUCKETS
        self.count = 0
        self.lines: set[bytes] = set()
        self._only = bucket
        self._rest = b""

    def write(self, data: Any) -> int:
        """Write bytes, which may end within a line."""
        *lines, self._rest = (self._rest + bytes(data)).split(b"\n")
        for line in lines:
            digest = blake2b(line, digest_size=16).digest()
            if self._only is None:
                self.buckets[digest[0]] = (self.buckets[digest[0]] + int.from_bytes(digest, "big")) % _WHOLE
            elif self._only == digest[0]:
                self.lines.add(line)
        self.count += len(lines)
        return len(data)

    @property
    def digest(self) -> GraphDigest:
        whole = b"".join(number.to_bytes(16, "big") for number in self.buckets)
        return GraphDigest(self.count, blake2b(whole, digest_size=32).hexdigest())


def replay(
    follower: IndexFollower,
    index: Path,
    ontology: Iterable[Triple],
    ontology_version: str,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Replayed:
    """Replay the journal, and return the differences from the index and exports of *follower*, and its snapshots in
    *index*.

    Nothing is changed, except that an unreadable snapshot is deleted as usual. *progress* is called with the bytes of
    journal processed since the last call, and with those to process: once for each index read or made.
    """
    root, rules = follower.journal.folder, tuple(ontology)
    streams = follower.journal.streams()
    sizes = {stream: follower.size(streams=[stream]) for stream in streams}
    total = sum(sizes.values()) * (3 + len(Clones(index).snapshots()))
    differences: list[str] = []
    behind = set[str]()
    with tempfile.TemporaryDirectory() as folder:
        fresh = IndexFollower(FileJournal(root), OxigraphIndex(), Clones(Path(folder)), rules)
        fresh.rebuild(lambda size: progress(size, total))
        prints = {}
        for stream in streams:
            served, replayed = follower.catch_up(stream), fresh.catch_up(stream)
            if served != replayed:
                differences.append(f"{_name(stream)}: the index is at version {served}, the journal at {replayed}")
                behind.add(stream.project)
            prints[stream] = _print(fresh.index, stream.graph)
            differences += _compared(_name(stream), follower.index, fresh.index, stream.graph, prints[stream])
            progress(2 * sizes[stream], total)
        exports = {}
        for project in sorted({stream.project for stream in streams if stream.name == "memory"}):
            exports[project] = _exported(fresh, project, ontology_version)
            # of one version both have the same commits, whose ids are digests of their content
            if project in behind and _exported(follower, project, ontology_version) != exports[project]:
                differences.append(f"{project}: the export differs from that of the replayed journal")
        count = 0
        for name, snapshot in _snapshots(root, index, rules):
            count += 1
            for stream in streams:
                if stream.graph in snapshot.marks:
                    label = f"snapshot {name}: {_name(stream)}"
                    differences += _compared(label, snapshot, fresh.index, stream.graph, prints[stream])
                progress(sizes[stream], total)
        fresh.close()
    digests = {stream: each.digest for stream, each in prints.items()}
    return Replayed(digests, exports, count, tuple(differences))


def _snapshots(root: Path, index: Path, ontology: Iterable[Triple]) -> Iterator[tuple[str, OxigraphIndex]]:
    """Yield the name of each snapshot that fits the journal, and an updated clone of it."""
    journal = FileJournal(root)
    streams, filling = {stream.graph: stream for stream in journal.streams()}, BulkLoader(journal)
    if not (index / "snapshots").is_dir():
        return
    for live in Clones(index).clone_snapshots():
        try:
            snapshot = OxigraphIndex(live.store)
            fits = filling.fits(snapshot, streams)
            if (
                fits
                and filling.fill(snapshot, ontology, [streams[graph] for graph in snapshot.marks])
                and live.snapshot is not None
            ):
                yield live.snapshot.name, snapshot
        except STORE_ERRORS as error:
            raise OSError(f"{live.snapshot}: {error}") from error
        finally:
            live.store = None
            live.close()


def _exported(follower: IndexFollower, project: str, ontology_version: str) -> str:
    stream = Stream(project)
    merged = merged_records(follower.index, follower.journal, stream)
    data = documents.turtle(project, follower.journal.read(stream), ontology_version, merged)
    return blake2b(data, digest_size=32).hexdigest()


def _compared(name: str, index: OxigraphIndex, fresh: OxigraphIndex, graph: str, right: _Print) -> Iterator[str]:
    """Yield the differences of *index* from *fresh*, which has the digests *right*, each with its first triple."""
    left = _print(index, graph)
    differing = (n for n, pair in enumerate(zip(left.buckets, right.buckets, strict=True)) if pair[0] != pair[1])
    bucket = next(differing, None)
    if bucket is not None:
        own, rebuilt = _print(index, graph, bucket).lines, _print(fresh, graph, bucket).lines
        line = min(own ^ rebuilt)
        word = "is extra" if line in own else "is missing"
        counts = f"{left.count} triples instead of {right.count}"
        yield f"{name}: {counts}; the first that differs {word}: {line.decode():.500}"


def _print(index: OxigraphIndex, graph: str, bucket: int | None = None) -> _Print:
    """Return the digests of a graph, or the lines of one bucket."""
    digest = _Print(bucket)
    index.dump(graph, digest)
    return digest


def _name(stream: Stream) -> str:
    return f"{stream.project}/{stream.name}"


#: Properties with digests: they look random like secrets, and derive from other statements.
_DIGESTS = frozenset(map(jido, ("conflictKey", "requestDigest", "receipt", "aboutBlob", "sourceDigest", "recordedIn")))
#: Properties with ids, which may be random: only a token of a known form counts as a secret there.
_IDS = frozenset(map(jido, ("idempotencyKey", "localId")))


class SecretHit(NamedTuple):
    """A triple of a commit that contains a likely secret: its kind, and the position of the first character."""

    head: CommitRef
    triple: Triple
    kind: str
    at: int


class SecretScan:
    """The screening of one stream for likely secrets, filled while its commits are read."""

    def __init__(self, journal: FileJournal, stream: Stream, is_wanted: Callable[[CommitRef], bool]) -> None:
        """Screen the commits of a stream of *journal* for which *is_wanted* is true."""
        self._journal, self._stream, self._is_wanted = journal, stream, is_wanted
        self.hits: list[SecretHit] = []

    def screen(self, head: CommitRef, triples: Iterable[Triple]) -> None:
        """Screen a commit."""
        if self._is_wanted(head):
            self.hits += _hits(head, triples)

    def problems(self, severity: Severity) -> Iterator[Problem]:
        """Yield each hit once as a finding about its node, or about the commit if its name is the secret."""
        for hit in dict.fromkeys(self.hits):
            subject, predicate, value = hit.triple
            is_name = secrets.find_form(plain_value(subject)) is not None
            item = COMMIT + hit.head.id if is_name else plain_value(subject)
            field = "the name of its subject" if is_name else vocab.local_name(predicate)
            more = "" if is_name or is_iri(value) else f", at character {hit.at}"
            way = "--text -" if is_name else f"{item} --property {vocab.local_name(predicate)}"
            text = (
                f"{field} seems to contain {hit.kind}{more}: ****; revoke it, and remove it from"
                f" the journal: jidomem journal redact {way} --reason TEXT"
            )
            finding = UnplacedFinding(subject, SECRET, severity, text, predicate, value)
            place = self._journal.document(self._stream, hit.head)
            path = line = None
            if place is not None:
                path, before, document = place
                by = by_subject(statements_of(document.decode("utf-8", "replace"), {subject}, before))
                line = line_in(by, finding)
            yield Problem(item, SECRET, severity, text, path, line)


def _hits(head: CommitRef, triples: Iterable[Triple]) -> Iterator[SecretHit]:
    for triple in triples:
        subject, predicate, value = triple
        if predicate in _DIGESTS:
            continue
        secret = _secret_in(predicate, value)
        if secret is None and predicate == vocab.TYPE:  # once for each node
            secret = secrets.find_form(plain_value(subject))
        if secret is not None:
            yield SecretHit(head, triple, secret.kind, secret.at)


def _secret_in(predicate: Term, value: Term) -> secrets.SecretMatch | None:
    if is_iri(value):
        return secrets.find_form(plain_value(value))
    text, datatype, language = parse_literal(value)
    if datatype != vocab.XSD + "string" and not language:
        return None
    return secrets.find_form(text) if predicate in _IDS else secrets.find(text)
