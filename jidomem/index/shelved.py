"""Listings kept on disk beside the index, so that a process that just started need not make them."""

from __future__ import annotations

import json
import shutil
import sys
from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex

from jidomem import ownership
from jidomem.decoding import decode_json
from jidomem.here import place, settle
from jidomem.index.document import Mark
from jidomem.index.listing import Listing
from jidomem.journal.commit import Commit
from jidomem.journal.files import FileJournal
from jidomem.query import Course
from jidomem.terms import Term, Triple

#: How a listing is written: one of another form is not read.
FORM = f"3 {sys.byteorder}"
#: After so many commits a listing is made anew sooner than brought level.
MANY = 16_000
_LONGEST = 16 * 1024 * 1024


class Shelved:
    """The listings in one folder, which is made when it is needed; one that does not fit any more is not read.

    Nor is one that came with a clone.
    """

    def __init__(self, folder: Path, journal: FileJournal) -> None:
        """Read and write in *folder*; *journal* tells what is new since a listing was kept."""
        self._folder = folder
        self._journal = journal

    def keep(
        self, course: Course, graphs: Sequence[str], ontology: str, marks: Iterable[Mark], listing: Listing
    ) -> None:
        """Write a listing that holds at least what the graphs hold at *marks*; where that fails, nothing is kept."""
        rows = list(listing.rows())
        keys = "\n".join(key for key, _, _ in rows).encode()
        since, until = array("q", (row[1] for row in rows)), array("q", (row[2] for row in rows))
        body = b"".join([keys, b"\n", since.tobytes(), until.tobytes()])
        said = {
            "form": FORM,
            "here": "",
            "ontology": ontology,
            "marks": [mark.term for mark in marks],
            "keys": len(keys),
            "rows": len(rows),
        }
        path = self._path(course, graphs)
        draft = path.with_name(f"{path.name}.{token_hex(4)}")
        with suppress(OSError):
            ownership.make_folders(self._folder)
            said["here"] = settle(self._folder.parent)
            whole = json.dumps(said).encode() + b"\n" + body
            ownership.write_file(draft, blake2b(whole).digest() + whole)
            draft.replace(path)

    def find(
        self, course: Course, graphs: Sequence[str], ontology: str, marks: Sequence[Mark]
    ) -> tuple[Listing, list[Triple]] | None:
        """Return a listing and all that was said since it was kept, up to *marks* at least; None unless one fits."""
        try:
            with self._path(course, graphs).open("rb") as file:
                digest, head = file.read(64), file.readline(_LONGEST)
                said = decode_json(head)
                here = place(self._folder.parent)
                if not here or (said["form"], said["here"], said["ontology"]) != (FORM, here, ontology):
                    return None
                body = file.read()
            if digest != blake2b(head + body).digest():
                return None
            kept = [Mark.of(term) for term in said["marks"]]
            keys, numbers = body[: said["keys"]].decode().split("\n"), array("q", body[said["keys"] + 1 :])
            count = int(said["rows"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        news: list[Triple] = []
        for graph, then, now in zip(graphs, kept, marks, strict=True):
            commits = self._since(graph, then, now)
            if commits is None:
                return None
            news += (triple for commit in commits for triple in commit.triples)
        return Listing(zip(keys, numbers[:count], numbers[count:], strict=True) if count else ()), news

    def discard(self) -> None:
        """Throw every listing away."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _since(self, graph: str, then: Mark, now: Mark) -> Sequence[Commit] | None:
        """Return the commits after *then*, up to *now* at least; None unless *now* is *then* and what came after it.

        It is not where another branch was checked out, a stream was cleared or what was damaged is there again.
        """
        if then == now:
            return ()
        streams = [stream for stream in self._journal.streams() if stream.graph == graph]
        if not streams or then.cleared != now.cleared or now.commits - then.commits not in range(MANY):
            return None
        if not all(self._journal.holds(streams[0], mark.version) for mark in (then, now)):
            return None
        found = list(self._journal.read(streams[0], after=then.version))
        later = {commit.id for commit in self._journal.read(streams[0], after=now.version)}  # maybe more by now
        known = sum(1 for commit in found if commit.id not in later)
        return found if known == now.commits - then.commits else None

    def _path(self, course: Course, graphs: Sequence[str]) -> Path:
        pattern = course.pattern + course.unless
        name: list[Term | bool | None] = [course.variable, course.time, course.newest_first, pattern]
        return self._folder / blake2b(json.dumps([name, course.prologue, *graphs]).encode(), digest_size=16).hexdigest()
