"""Bring all that a root holds to another place, commit by commit and byte for byte, and verify that it is there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice

from jidomem.errors import Busy, JournalDamaged
from jidomem.journal.commit import Commit
from jidomem.journal.files import Stream
from jidomem.shared.chain import Chain, Extent, digest
from jidomem.shared.ends import End, other

#: How many commits are kept in one step, and how often a source that is redacted meanwhile is gone through again.
STEP, TRIES = 10_000, 5
#: Told of each commit that was brought, with its bytes.
Progress = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class Brought:
    """One stream at both ends: what it holds, as the target was read again, and how many commits came just now."""

    stream: Stream
    extent: Extent
    came: int
    grew: bool  # whether the source was written to meanwhile


def bring(source: End, target: End, progress: Progress = id) -> list[Brought]:
    """Return what *target* holds of each stream, once it holds all that *source* does; the source is only read.

    What is there already is left, so the same call goes on after one that was cut short. Raises InvalidRequest where
    the target holds what the source does not, JournalDamaged where either end does not verify; nothing was
    brought then by the former. Raises Busy where the source is redacted again and again.
    """
    streams = source.streams()
    for stream in target.streams():
        if stream not in streams:
            raise other(target.name, f"{stream.project}/{stream.name}")
    there = {stream: _there(source, target, stream) for stream in target.streams()}
    for name, data in source.files():
        target.put(name, data)
    return [_brought(source, target, stream, there.get(stream), progress) for stream in streams]


def _there(source: End, target: End, stream: Stream) -> Chain:
    """Return what the target holds of a stream; raises InvalidRequest unless the source holds all of it."""
    chain = target.held(stream)
    foreign = chain.forms.keys() - {bytes.fromhex(commit.id) for commit in source.commits(stream)}
    if foreign:
        raise other(target.name, f"commit {min(foreign).hex()} of {stream.project}/{stream.name}")
    return chain


def _brought(source: End, target: End, stream: Stream, there: Chain | None, progress: Progress) -> Brought:
    """Bring one stream, again where something was taken out of it meanwhile, and verify what is there then."""
    came = 0
    held = there or Chain(target.name)
    for _ in range(TRIES):
        mark = source.mark(stream)
        read = Chain(source.name, source.set_aside(stream))
        came += _copy(source, target, stream, held, read, progress)
        held = target.held(stream)
        if not source.is_rewritten(stream, mark):
            _compare(read, held, target, stream)
            return Brought(stream, held.extent(), came, source.mark(stream) != mark)
    raise Busy(f"{source.name} is redacted again and again", hint="do it again once that is over")


def _copy(source: End, target: End, stream: Stream, held: Chain, read: Chain, progress: Progress) -> int:
    """Bring what is not *held* and let *read* take in all; return how many came."""
    commits, came = _missing(source.commits(stream), held, read), 0
    while step := list(islice(commits, STEP)):
        anew = [commit for commit in step if bytes.fromhex(commit.id) in held.forms]
        if whole := next((commit for commit in anew if not commit.redacted), None):
            raise other(target.name, f"commit {whole.id} of {stream.project}/{stream.name}, redacted")
        if fresh := [commit for commit in step if bytes.fromhex(commit.id) not in held.forms]:
            target.add(stream, _told(fresh, progress))
        if anew:  # last: it is what came that orders it
            target.redact(stream, anew)
        came += len(step)
    return came


def _missing(commits: Iterator[Commit], held: Chain, read: Chain) -> Iterator[Commit]:
    """Yield of *commits* those that are not held in the same form, after *read* took each in."""
    for commit in commits:
        read.add(commit)
        if held.forms.get(bytes.fromhex(commit.id)) != blake2b(commit.data, digest_size=16).digest():
            yield commit


def _told(commits: Collection[Commit], progress: Progress) -> Iterator[Commit]:
    for commit in commits:
        yield commit
        progress(len(commit.data))


def _compare(read: Chain, held: Chain, target: End, stream: Stream) -> None:
    """Raise JournalDamaged unless both ends hold the same commits, each in the same form."""
    if digest(read.forms) == digest(held.forms):
        return
    differing = {each for each, _ in read.forms.items() ^ held.forms.items()}
    problem = f"{len(differing)} commits of {stream.project}/{stream.name} are not what the source holds"
    raise JournalDamaged(problem, path=target.name, commit=min(differing).hex())
