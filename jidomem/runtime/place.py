"""Where an open root lies: in a folder that is all of it, or in a log that it shares, with a copy in a folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import TYPE_CHECKING

from jidomem import ownership
from jidomem.errors import JidomemError, MemoryClosed
from jidomem.journal.files import FileJournal
from jidomem.runtime import in_force, settings
from jidomem.runtime.every import Every
from jidomem.runtime.state import State

#: Seconds between two looks at whether a checkpoint is due, and those that the end waits for one.
LOOK, AT_END = 60.0, 3.0

if TYPE_CHECKING:
    from jidomem.embedder import Embedder
    from jidomem.index.texts import Texts
    from jidomem.index.vectors import Vectors
    from jidomem.keeping import Keeping
    from jidomem.runtime.keyring import Keyring
    from jidomem.shared.log import SharedLog
    from jidomem.shared.mirror import MirroredJournal


class InFolder:
    """A root that is a folder of this machine."""

    is_shared = False

    def __init__(self, root: Path) -> None:
        self._root, self.name, self._is_closed = root, str(root), False
        self._journal: FileJournal | None = None

    def journal(self, wait: float) -> FileJournal:
        """Return its journal, whose turns are waited for *wait* seconds."""
        self._journal = FileJournal(self._root, wait=wait)
        return self._journal

    def rules(self) -> object:
        """Return what is another one as soon as its configuration, terms, rules or questions were changed."""
        return in_force.mark_of(self._root)

    def bring_rules(self) -> object:
        """Return the same: they are here."""
        return self.rules()

    def state(self, name: str, tables: str) -> Keeping:
        """Return its working state with these *tables*; they all lie in one file, whatever their *name*.

        Raises MemoryClosed once it was closed.
        """
        if self._is_closed:
            raise MemoryClosed(self.name)
        return State(self._root, tables)

    def keyring(self) -> Keyring:
        """Return the tokens given out for it; raises Failed where they cannot be read."""
        from jidomem.runtime.keyring import Keyring  # only a server asks who asks

        return Keyring(settings.own_config(), self._root)

    def change_file(self, path: str, how: Callable[[str | None], str]) -> None:
        """Keep what *how* makes of the text of the file *path* below it, None where there is none, all at once."""
        file = self._root / path
        ownership.make_folders(file.parent)
        with os.fdopen(ownership.open_file(file.with_name(f".{file.stem}.lock")), "wb") as lock:
            flock(lock, LOCK_EX)  # until it is closed
            draft = file.with_name(f".{file.name}.draft")
            ownership.write_file(draft, how(file.read_text("utf-8") if file.exists() else None).encode())
            os.replace(draft, file)

    def vectors(self, root: Path, texts: Texts, embedder: Embedder) -> Vectors:
        """Return the vectors of it, which are made here."""
        from jidomem.index.vectors import Vectors  # most processes have no need of one

        return Vectors(root, texts, embedder)

    def keep_checkpoints(self, level: Callable[[], object]) -> None:
        """Do nothing: whoever opens a folder has all of it."""

    def close(self) -> None:
        """Answer and keep nothing any more."""
        self._is_closed = True
        if self._journal is not None:
            self._journal.close(self.name)


class Shared:
    """A root that lies in *log*, at an *address*, with the copy in the folder *home*."""

    is_shared = True

    def __init__(self, log: SharedLog, address: str, home: Path) -> None:
        self.log, self._address, self._home = log, address, home
        self.name = log.name  # without a password
        self._checkpoints: Every | None = None
        self._journal: MirroredJournal | None = None
        self._brought, self._is_closed = "", False

    def journal(self, wait: float) -> FileJournal:
        """Return its journal: the log, and its copy, which begins with the newest checkpoint where there is none."""
        from jidomem.shared import checkpoints  # most roots are folders
        from jidomem.shared.mirror import MirroredJournal

        checkpoints.fetch(self.log, self._home)
        self._journal = MirroredJournal(self.log, self._home, wait=wait)
        return self._journal

    def rules(self) -> object:
        """Return the tag that the configuration, terms, rules and questions had when the log was asked last."""
        return self._brought if self._journal is None else self._journal.rules or ""

    def bring_rules(self) -> object:
        """Return the same once they are here as the log has them now."""
        from jidomem.shared import root_files

        self._brought = root_files.bring(self.log, self._home)
        return self._brought

    def state(self, name: str, tables: str) -> Keeping:
        """Return the working state of that *name*: a database has it all, an object store leaves it to this machine.

        Raises MemoryClosed once it was closed.
        """
        if self._is_closed:
            raise MemoryClosed(self.name)
        if self._address.startswith("s3:"):
            return State(self._home, tables)
        from jidomem.shared.postgres_state import PostgresState

        return PostgresState(self._address, name)

    def keyring(self) -> Keyring:
        """Return the tokens given out for it, which every server believes."""
        from jidomem.runtime.keyring import SharedKeyring

        return SharedKeyring(self.log)

    def change_file(self, path: str, how: Callable[[str | None], str]) -> None:
        """Keep what *how* makes of the text of a file of the root, whoever else changes it, and bring it here."""
        from jidomem.shared import root_files

        root_files.change(self.log, lambda files: {**files, path: how(files.get(path))})
        root_files.bring(self.log, self._home)

    def vectors(self, root: Path, texts: Texts, embedder: Embedder) -> Vectors:
        """Return the vectors of it, each of which one server makes for all."""
        from jidomem.index.common_vectors import CommonVectors
        from jidomem.shared.segments import Segments

        return CommonVectors(root, texts, embedder, Segments(self.log))

    def keep_checkpoints(self, level: Callable[[], object]) -> None:
        """Make a checkpoint, in the background, whenever it is worth it; *level* brings the index level before."""
        from jidomem.shared import checkpoints

        def look() -> None:
            with suppress(JidomemError, OSError):  # the next look tries again
                if checkpoints.is_due(self.log, self._home):
                    level()
                    checkpoints.make(self.log, self._home)

        self._checkpoints = Every(LOOK, look, "jidomem-checkpoints")

    def close(self) -> None:
        """Let go of the log; a checkpoint that is being made is waited for, but not for long."""
        if self._checkpoints is not None:
            self._checkpoints.stop(AT_END)
        self._is_closed = True
        if self._journal is not None:
            self._journal.close(self.name)
        self.log.close()


def open_place(given: str | os.PathLike[str] | None, wait: float) -> InFolder | Shared:
    """Return where the root lies that is *given*, or that is found; raises what `settings` raises."""
    if (address := settings.address_of(given)) is None:
        return InFolder(settings.find(given)[0])
    from jidomem.runtime import shared_root  # most roots are folders

    log, home = shared_root.brought(address, wait)
    return Shared(log, address, home)
