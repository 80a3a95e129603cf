"""The location of a root: a folder of this machine, or a shared log with a copy in a folder.

`read` loads the schema, the playbook and the policy of a root. `init` makes the folder `.jidomem/`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from os import PathLike
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from jidomem.base import disk, files
from jidomem.base.background import PeriodicTask
from jidomem.errors import JidomemError, MemoryClosed, NotFound
from jidomem.journal.journal import FileJournal, Stream
from jidomem.read.playbook import Playbook
from jidomem.repository import git
from jidomem.runtime import settings
from jidomem.runtime.root_config import refuse_link
from jidomem.runtime.state import State
from jidomem.schema import ontology

if TYPE_CHECKING:
    from jidomem.extras.servers.journal import MirroredJournal
    from jidomem.extras.servers.log import SharedLog
    from jidomem.index.search_index import Texts
    from jidomem.index.vectors import Vectors
    from jidomem.records.interfaces import Embedder, StateStore
    from jidomem.records.policy import Policy
    from jidomem.runtime.tokens import Keyring
    from jidomem.schema.ontology import Schema

#: The folders of a root with its overlay.
FOLDERS = ("ontology", "shapes", "queries")


class LoadedConfig(NamedTuple):
    """The configuration, terms, shapes and queries of a root, read at one moment."""

    schema: Schema
    policy: Policy
    playbook: Playbook


def read(root: Path) -> LoadedConfig:
    """Read the files of *root* and return its configuration; raises the error of an invalid file."""
    policy = settings.policy_of(root)
    schema = ontology.load([root] if _has(root, "ontology", "shapes") else [], by_reference=policy.judge == "pyshacl")
    return LoadedConfig(schema, policy, Playbook([root / "queries"] if _has(root, "queries") else []))


def _has(root: Path, *folders: str) -> bool:
    """Return whether a root has an overlay in one of *folders*."""
    return any((root / folder).is_dir() for folder in folders)


FILES = (settings.CONFIG, ".gitignore", ".gitattributes")
#: The rules of folders above may ignore such files; what is derived is ignored in any case.
GITIGNORE = "!*.ttl\n!*.toml\n!*.rq\nindex/\nstate/\ncache/\n*.lock\n"
GITATTRIBUTES = "projects/** -text\n"
CONFIG = """\
# jidomem: the memory of this repository. Every key has a default; unknown keys are an error.
project = "{project}"

# Terms, rules and queries of your own go into folders beside this file, which you make: ontology/, shapes/, queries/.

# What happens when an intent disagrees with an active memory: "refuse" (default), "propose" or "warn".
# [conflicts]
# decision = "propose"

# What happens when an intent is near to an active memory: the receipt shows it ("ask", default), "propose" or "off".
# [on_similar]
# fact = "propose"

# Keep in state/ which memories were shown in which briefing, for jidomem show --why.
# read_log = false

# The role and capabilities an agent is declared with when it is first named.
# [agents.architect]
# role = "Architect"
# capabilities = ["CanPlan", "CanQueryMemory"]
"""


def init(folder: Path, project: str | None = None) -> Path:
    """Make the root `.jidomem/` in *folder* and return it; existing files stay as they are.

    Raises NotFound `invalid_project` for an invalid project id, and the errors of `place`.
    """
    root = place(folder)
    create_files(root, Stream(project or settings.default_project(root)).project)
    return root


def create_files(root: Path, project: str | None) -> None:
    """Make the missing files of *root*; without a *project* no `config.toml`, which names it. Raises OSError."""
    disk.make_folders(root)
    texts = dict(zip(FILES, (CONFIG.format(project=project), GITIGNORE, GITATTRIBUTES), strict=True))
    for name in FILES if project else FILES[1:]:
        if not os.path.lexists(root / name):
            with suppress(FileExistsError), files.atomic_file(root / name, replace=False) as file:
                file.write(texts[name].encode())


def ignored_journal(root: Path) -> tuple[str, str] | None:
    """Return the rule by which git ignores the journal of *root*, and the command that ends that; None if it does not.

    Raises InvalidRequest if git cannot be run.
    """
    name = "projects/p/memory/20260101T000000.000000Z-000000000000.ttl"
    rule = (git.read_git(root, "check-ignore", "-v", name) or b"").decode("utf-8", "replace").partition("\t")[0]
    if not rule or rule.split(":", 2)[-1].startswith("!"):
        return None
    is_whole = git.read_git(root.parent, "check-ignore", root.name) is not None
    line, folder = (f"!{root.name}/", root.parent) if is_whole else ("!*.ttl", root)
    return rule, f"echo {quote(line)} >> {quote(str(folder / '.gitignore'))}"


def place(folder: Path) -> Path:
    """Return the path of the root of *folder*; raise Failed for a symbolic link there, which may lead anywhere."""
    root = folder.resolve() / settings.FOLDER
    for path in (root, *(root / name for name in FILES)):
        refuse_link(path)
    return root


def opened_log(given: str | PathLike[str] | None, wait: float) -> tuple[SharedLog, Path] | None:
    """Return the log of the shared root in *given* or the environment, and the folder of its copy; None for a folder.

    The files of the root are then in that folder. Requests have a timeout of *wait* seconds. Raises the errors of
    `open_log` and `addresses.update_copy`.
    """
    address = settings.address_of(given)
    return None if address is None else open_current_log(address, wait)


def open_current_log(address: str, wait: float) -> tuple[SharedLog, Path]:
    """Return the log at *address* and the folder of its copy, as `opened_log` does."""
    from jidomem.extras.servers import addresses  # imported here, as most roots are folders

    log, home = open_log(address, wait)
    try:
        addresses.update_copy(log, home)
    except BaseException:
        log.close()
        raise
    return log, home


def missing_root(given: str | PathLike[str] | None, wait: float) -> NotFound | None:
    """Return the error of a shared root in *given* or the environment that does not exist; None for any other root.

    One that this machine has a copy of is not looked for: `open_log` reports that it is gone.
    """
    if (address := settings.address_of(given)) is None:
        return None
    from jidomem.extras.servers import addresses

    environment = settings.environment()
    if not addresses.is_claimed(addresses.home_of(address, environment), address, environment):
        try:
            addresses.open_log(address, environment, wait=wait, creates=False).close()
        except NotFound as absent:
            return absent
    return None


def open_log(address: str, wait: float, *, creates: bool | None = None) -> tuple[SharedLog, Path]:
    """Return the log at *address* and the folder of its copy here.

    A missing log is made if this call *creates* it, by default one that this machine has no copy of; else raises
    NotFound. Raises the errors of `addresses.open_log` and `addresses.claim`.
    """
    from jidomem.extras.servers import addresses

    environment = settings.environment()
    home = addresses.home_of(address, environment)
    is_new = not addresses.is_claimed(home, address, environment)
    log = addresses.open_log(address, environment, wait=wait, creates=is_new if creates is None else creates)
    try:
        addresses.claim(home, address, environment)  # once the store was reached: a mistyped address claims nothing
    except BaseException:
        log.close()
        raise
    return log, home


#: Seconds between two checks whether a checkpoint is due, and those that `close` waits for one.
LOOK, AT_END = 60.0, 3.0


class FolderPlace:
    """A root that is a folder of this machine."""

    is_shared = False

    def __init__(self, root: Path) -> None:
        self._root, self.name, self._is_closed = root, str(root), False
        self._journal: FileJournal | None = None
        files_of_rules, folders = [str(root / settings.CONFIG)], [str(root / name) for name in FOLDERS]
        #: Returns the state of the files of its configuration, terms, shapes and queries.
        self.rules: Callable[[], object] = partial(disk.tree_state, files_of_rules, folders)
        self.fetch_rules = self.rules

    def journal(
        self, wait: float, default: str | None = None, claim: Callable[[str], object] = lambda project: None
    ) -> FileJournal:
        """Return the journal; *wait* is how many seconds a write waits for another process.

        The first commit of a new root makes its files; `config.toml` only if it is of the *default* project. It is
        refused as `settings.absence` says. *claim* is called with the project before its first commit.
        """

        def begin(project: str) -> None:
            self._refuse_absence()
            if {*disk.names(str(self._root / "projects"))} <= {project}:
                create_files(self._root, project if project == default else None)
            claim(project)

        self._journal = FileJournal(self._root, wait=wait, begin=begin)
        return self._journal

    def _check_present(self) -> None:
        if self._journal is not None:
            self._journal.check_present()

    def _lay_out_state(self) -> None:
        self._check_present()
        self._refuse_absence()
        if not (self._root / "projects").exists():
            create_files(self._root, None)

    def _refuse_absence(self) -> None:
        if (absent := settings.absence(self._root)) is not None:
            raise absent

    def state(self, name: str, tables: str) -> StateStore:
        """Return the working state with these *tables*; all are in one file, whatever their *name*.

        Raises MemoryClosed after it was closed.
        """
        if self._is_closed:
            raise MemoryClosed(self.name)
        return State(self._root, tables, self._lay_out_state, self._check_present)

    def keyring(self) -> Keyring:
        """Return the tokens issued for the root; raises Failed if they cannot be read."""
        from jidomem.runtime.tokens import Keyring  # imported here, as only a server needs it

        return Keyring(settings.own_config(), self._root)

    def change_file(self, path: str, how: Callable[[str | None], str]) -> None:
        """Replace the text of the file *path* of the root by `how(text)`, atomically; the text is None if missing."""
        file = self._root / path
        disk.make_folders(file.parent)
        with files.file_lock(file.with_name(f".{file.stem}.lock")):
            text = how(file.read_text("utf-8") if file.exists() else None)
            files.write_atomically(file, text.encode())

    def vectors(self, root: Path, texts: Texts, embedder: Embedder) -> Vectors:
        """Return the vectors of the root, which are made by this process."""
        from jidomem.index.vectors import Vectors  # imported here, as most processes do not need it

        return Vectors(root, texts, embedder)

    def keep_checkpoints(self, level: Callable[[], object]) -> None:
        """Do nothing: a folder needs no checkpoints."""

    def close(self) -> None:
        """Close the journal."""
        self._is_closed = True
        if self._journal is not None:
            self._journal.close(self.name)


class SharedLocation:
    """A shared root in *log*, at an *address*, with its copy in the folder *home*."""

    is_shared = True

    def __init__(self, log: SharedLog, address: str, home: Path) -> None:
        self.log, self._address, self._home = log, address, home
        self.name = log.name  # without a password
        self._checkpoints: PeriodicTask | None = None
        self._journal: MirroredJournal | None = None
        self._brought, self._is_closed = "", False

    def journal(
        self, wait: float, default: str | None = None, claim: Callable[[str], object] = lambda project: None
    ) -> FileJournal:
        """Return the journal: the log with its copy; a new copy starts from the newest checkpoint."""
        from jidomem.extras.servers import checkpoints  # imported here, as most roots are folders
        from jidomem.extras.servers.journal import MirroredJournal

        checkpoints.fetch(self.log, self._home)
        self._journal = MirroredJournal(self.log, self._home, wait=wait)
        return self._journal

    def rules(self) -> object:
        """Return the tag of the configuration, terms, shapes and queries as of the last request to the log."""
        return self._brought if self._journal is None else self._journal.rules or ""

    def fetch_rules(self) -> object:
        """Fetch the files of the log to the copy, and return their tag."""
        from jidomem.extras.servers import addresses

        self._brought = addresses.update_copy(self.log, self._home)
        return self._brought

    def state(self, name: str, tables: str) -> StateStore:
        """Return the working state of that *name*: in the database, or, with an object store, on this machine.

        Raises MemoryClosed after it was closed.
        """
        if self._is_closed:
            raise MemoryClosed(self.name)
        if self._address.startswith("s3:"):
            return State(self._home, tables)
        from jidomem.extras.servers.postgres_state import PostgresState

        return PostgresState(self._address, name)

    def keyring(self) -> Keyring:
        """Return the tokens issued for the root, which every server accepts."""
        from jidomem.runtime.tokens import SharedKeyring

        return SharedKeyring(self.log)

    def change_file(self, path: str, edit: Callable[[str | None], str]) -> None:
        """Store the text of a file of the root after *edit*, repeated if others change it, and fetch it here."""
        from jidomem.extras.servers import addresses

        addresses.change(self.log, lambda files: {**files, path: edit(files.get(path))})
        addresses.update_copy(self.log, self._home)

    def vectors(self, root: Path, texts: Texts, embedder: Embedder) -> Vectors:
        """Return the vectors of the root, each of which one server makes for all."""
        from jidomem.extras.servers.shared_vectors import SharedVectors, VectorSegments

        return SharedVectors(root, texts, embedder, VectorSegments(self.log))

    def keep_checkpoints(self, level: Callable[[], object]) -> None:
        """Make a checkpoint in the background whenever one is due; *level* brings the index up to date first."""
        from jidomem.extras.servers import checkpoints

        def make_if_due() -> None:
            with suppress(JidomemError, OSError):  # the next check tries again
                if checkpoints.is_due(self.log, self._home):
                    level()
                    checkpoints.make(self.log, self._home)

        self._checkpoints = PeriodicTask(LOOK, make_if_due, "jidomem-checkpoints")

    def close(self) -> None:
        """Close the log; waits for a checkpoint in progress, but not for long."""
        if self._checkpoints is not None:
            self._checkpoints.stop(AT_END)
        self._is_closed = True
        if self._journal is not None:
            self._journal.close(self.name)
        self.log.close()


def open_place(given: str | os.PathLike[str] | None, wait: float) -> FolderPlace | SharedLocation:
    """Return the location of the root in *given*, or of the one found, whose content `settings.load` checks."""
    if (address := settings.address_of(given)) is None:
        return FolderPlace(settings.locate(given)[0])
    log, home = open_current_log(address, wait)
    return SharedLocation(log, address, home)
