"""The effective settings of a memory: from arguments, then the environment, then `config.toml`.

With `cli/`, this is the only module that reads the environment.
"""

from __future__ import annotations

import json
import os
import pwd
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, cast

from jidomem.base import disk, files
from jidomem.errors import Failed, InvalidRequest
from jidomem.records.policy import Policy
from jidomem.runtime import model_choice, root_config, user_config
from jidomem.runtime.root_config import check_root, root_folder
from jidomem.runtime.user_config import RootLimits, UserConfig

if TYPE_CHECKING:
    from jidomem.models.chat import ChatModel
    from jidomem.models.reranker import Reranker
    from jidomem.records.interfaces import Embedder, LanguageModel
    from jidomem.repository.git import StoredFolder

FOLDER = ".jidomem"
CONFIG = "config.toml"
OWN = "your own memory"
#: How a root was found that the caller or the environment names.
NAMED = ("given", "JIDOMEM_ROOT")
#: The embedders that the environment may choose.
_USES = ("local", "none")


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of an open root.

    `project` is the default project, `requested` the one that the caller or the environment names, `configured` the one
    that `config.toml` names, which exists before its first write. `found` says how the root was found, for `status`.
    `agent` and `session` are the default author and session; `owner` is the user of this environment, whom hints name
    as the first curator.
    With `read_log`, the memories that are shown are recorded. `host` and `port` are the address at which a trusted root
    is served. `folder` is the one whose project is used, in the user's own memory. `limits`, `embedder`, `model`,
    `reranker` and `index`, the address of a store that answers beside the index of this process, come from the user's
    own configuration only. `address` is that of a shared root, whose copy
    is in `root`.
    """

    root: Path
    project: str
    found: str
    agent: str = "user"
    owner: str = "user"
    session: str | None = None
    policy: Policy = field(default_factory=Policy)
    requested: str | None = None
    configured: str | None = None
    read_log: bool = True
    host: str | None = None
    port: int | None = None
    folder: Path | None = None
    limits: RootLimits = field(default_factory=RootLimits)
    embedder: model_choice.EmbedderChoice = field(default_factory=model_choice.EmbedderChoice)
    model: model_choice.LanguageModelChoice = field(default_factory=model_choice.LanguageModelChoice)
    reranker: model_choice.RerankerChoice = field(default_factory=model_choice.RerankerChoice)
    index: str | None = field(default=None, repr=False)
    address: str | None = None

    def claim(self, project: str) -> None:
        """Record that *project* belongs to the folder whose default it is; raises the errors of `claim`."""
        if self.folder is not None and project == self.project:
            claim(self.root, project, self.folder)

    @property
    def own_note(self) -> str:
        """Return where memories are recorded if that is the user's own memory; empty for another root."""
        if self.found != OWN:
            return ""
        name = None if self.folder is None else root_config.slug_of(self.folder.name)
        other = None if name in (None, self.project) else owner_of(self.root, str(name))
        shared = f" as project {self.project}, as {name} is that of {other}," if other else ""
        return (
            f"recorded in your own memory, {self.place},{shared} which is used if there is none in the folder or above"
            " it; one for this folder: jidomem init"
        )

    @property
    def place(self) -> str:
        """Return the folder or the address of the root, without a password."""
        if self.address is None:
            return str(self.root)
        from jidomem.extras.servers import addresses  # imported here, as most roots are folders

        return addresses.without_secrets(self.address)


def requested_project(project: str | None) -> str | None:
    """Return the given *project*, else that of $JIDOMEM_PROJECT; None without either."""
    return project or os.environ.get("JIDOMEM_PROJECT") or None


def load(
    root: str | os.PathLike[str] | None = None,
    project: str | None = None,
    *,
    agent: str | None = None,
    session: str | None = None,
    index: str | None = None,
) -> Settings:
    """Return the settings: from the arguments, else the environment, the folders above or the configuration.

    Raises Failed `invalid_config` for an invalid configuration, InvalidRequest for an invalid root.
    """
    (folder, found), address = find(root), address_of(root)
    if folder.exists() and not folder.is_dir():
        raise InvalidRequest(f"{folder} is not a folder ({found})", hint="make a memory root in this one: jidomem init")
    if found in NAMED and address is None and _is_around_root(folder):
        raise InvalidRequest(f"{folder} ({found}) is not a memory root, but the root {FOLDER} is in it",
                             hint=f"name that one: {folder / FOLDER}")  # fmt: skip
    own = own_config()
    config = root_config.read(folder / CONFIG, own)
    user = user_config.read(own) if own.exists() else UserConfig()
    requested = requested_project(project)
    repository = _repository() if found == OWN and not config.get("project") else None
    if repository is not None:
        default = _own_project(folder, repository, requested)
    else:
        default = config.get("project") or default_project(folder, is_shared=address is not None)
    owner = os.environ.get("JIDOMEM_AGENT") or os.environ.get("USER") or account_name()
    return Settings(
        root=folder, project=requested or default, found=found, agent=agent or owner, owner=owner,
        session=session or os.environ.get("JIDOMEM_SESSION"), policy=root_config.policy(config, folder / CONFIG),
        requested=requested, configured=config.get("project"), read_log=config.get("read_log", True),
        host=config.get("host"), port=config.get("port"), folder=None if requested else repository,
        limits=user.limits, embedder=_embedder(user.embedder), model=user.model, reranker=user.reranker,
        address=address, index=_index(os.environ.get("JIDOMEM_INDEX", user.index) if index is None else index),
    )  # fmt: skip


def account_name() -> str:
    """Return the name of the system account of this process; `user` if it has none, as in some containers."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name or "user"
    except KeyError:
        return "user"


def policy_of(root: Path) -> Policy:
    """Return the policy in the configuration of a root; raises the errors of `load`."""
    return root_config.policy(root_config.read(root / CONFIG, None), root / CONFIG)


def own_config() -> Path:
    """Return the path of the user's own configuration file, which no repository can supply."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.environ.get("HOME", ""), ".config")
    if os.path.isabs(base):
        return Path(base, "jidomem", CONFIG)
    from platformdirs import user_config_dir  # takes 5 ms, and only knows more if the environment names no folder

    return Path(user_config_dir("jidomem", appauthor=False)) / CONFIG


def _embedder(chosen: model_choice.EmbedderChoice) -> model_choice.EmbedderChoice:
    """Return *chosen*, or `local` or `none` if the environment has one of them; raise Failed `invalid_config`."""
    use = os.environ.get("JIDOMEM_EMBEDDER")
    if use is None:
        return chosen
    if use not in _USES:
        hint = f"export JIDOMEM_EMBEDDER={_USES[-1]}; an endpoint is set in {own_config()}"
        raise Failed(f"JIDOMEM_EMBEDDER={use!r} is none of {', '.join(_USES)}", hint=hint, code="invalid_config")
    return chosen if chosen.use == use else model_choice.EmbedderChoice(use)


def embedder(settings: Settings) -> Embedder | None:
    """Return the embedder chosen by the user, None if there is none; its key is read from the environment now.

    An embedder without its key or package raises that error at each request.
    """
    return model_choice.embedder(settings.embedder, os.environ.get)


def former_embedder(embedder: Embedder) -> Embedder | None:
    """Return the embedder whose vectors answer until *embedder* has made its own: the default one, on this machine.

    None if that is *embedder*, or is not installed. No other one is used that the user no longer chooses.
    """
    default = model_choice.embedder(model_choice.EmbedderChoice(), os.environ.get)
    return None if default is None or default.name == embedder.name else default


def reranker(settings: Settings) -> Reranker | None:
    """Return the reranker chosen by the user, None if there is none; its key is read from the environment now."""
    return model_choice.reranker(settings.reranker, os.environ.get)


def models(settings: Settings, given: Embedder | None = None) -> tuple[LanguageModel, Embedder | None]:
    """Return the language model chosen by the user (default: the offline one) and its embedder.

    The embedder is the *given* one, else the user's; without an embedder the model uses hashed stems. A model without
    its key raises that error at each request.
    """
    from jidomem.models.embeddings import HashedStems  # imported here, as most processes use no model

    chosen = given or embedder(settings)
    return model_choice.language_model(settings.model, chosen or HashedStems(), os.environ.get), chosen


def chat_model(settings: Settings) -> Callable[[], ChatModel] | None:
    """Return the maker of the chat model chosen by the user; None for the offline model, which compares no memories."""
    if settings.model.use != "endpoint":
        return None
    from jidomem.models.embeddings import HashedStems  # imported here, as most roots use no endpoint

    return lambda: cast("ChatModel", model_choice.language_model(settings.model, HashedStems(), os.environ.get))


def _index(address: str) -> str | None:
    """Return the *address* of a store, None if it is empty; raise Failed `invalid_config` if it is invalid."""
    if not address:
        return None
    from jidomem.extras.servers.remote_index import refuse  # imported here, as most users have no store

    refuse(address)
    return address


def environment() -> Mapping[str, str]:
    """Return the environment, which has the credentials for a shared root."""
    return os.environ


def is_root(folder: Path) -> bool:
    """Return whether *folder* is a memory root: a new folder, or the place of a disk that is not mounted, is none."""
    return any((folder / name).exists() for name in ("projects", CONFIG, "state"))


def _is_around_root(folder: Path) -> bool:
    """Return whether *folder* has a memory root in it and is none itself, as a repository."""
    return not is_root(folder) and root_folder(folder / FOLDER).is_dir()


def find(given: str | os.PathLike[str] | None) -> tuple[Path, str]:
    """Return the folder of the root, and how it was found.

    Raises Failed `invalid_config` for a root with a symbolic link, InvalidRequest for an invalid address.
    """
    folder, found = locate(given)
    check_root(folder)
    return folder, found


def locate(given: str | os.PathLike[str] | None) -> tuple[Path, str]:
    """Return the same as `find`, without a check of what is in the folder."""
    if given is not None:
        return _folder(given), NAMED[0]
    if env := os.environ.get("JIDOMEM_ROOT"):
        return _folder(env), NAMED[1]
    here = Path.cwd().resolve()
    for folder in (here, *here.parents):
        if root_folder(folder / FOLDER).is_dir():
            return folder / FOLDER, "found in or above the working directory"
    from platformdirs import user_data_dir

    return Path(user_data_dir("jidomem", appauthor=False)).resolve(), OWN


def absence(root: Path, origin: str = "") -> Failed | None:
    """Return the error `memory_missing` if git has the memory of *root*, and this checkout has nothing of it.

    The *origin* is how the root was found: of the user's own memory, the error is about the working directory.
    """
    stored = folder_in_git(root, origin)
    return None if stored is None else memory_missing(stored)


def memory_missing(stored: StoredFolder) -> Failed:
    """Return the error `memory_missing` for a memory that git has as *stored*, with the command that brings it."""
    another = "" if stored.is_left_out else f"; to begin another one here: jidomem init {quote(str(stored.parent))}"
    return Failed(f"this checkout lacks the memory of the repository: {stored.path} is {stored.where}",
                  hint=f"bring it here: {stored.command}{another}", code="memory_missing")  # fmt: skip


def folder_in_git(root: Path, origin: str = "") -> StoredFolder | None:
    """Return where git has the memory of *root*, of which this checkout has nothing; else None, as `absence`."""
    is_own = origin == OWN
    root = Path.cwd() / FOLDER if is_own else root
    is_there = os.path.lexists(root / CONFIG) or any(root.glob("projects/*/*/*.ttl"))
    if root.name != FOLDER or is_there or not root.parent.is_dir():
        return None
    from jidomem.repository import git  # imported here, as most checkouts have the memory

    return git.stored_folder(root.parent, FOLDER, above=is_own)


def address_of(given: str | os.PathLike[str] | None) -> str | None:
    """Return the address of the shared root in *given*, or in the environment; None for a folder.

    Raises InvalidRequest for an address of another kind.
    """
    address = os.fspath(given) if given is not None else os.environ.get("JIDOMEM_ROOT", "")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", address) is None:
        return None
    from jidomem.extras.servers import addresses

    return addresses.checked(address)


def _folder(root: str | os.PathLike[str]) -> Path:
    """Return the folder *root*, or that of the copy of a shared root; raise InvalidRequest for another address."""
    if (address := address_of(root)) is not None:
        from jidomem.extras.servers import addresses

        return addresses.home_of(address, environment())
    return root_folder(root)


def default_project(root: Path, *, is_shared: bool = False) -> str:
    """Return the default project when none is named: the name of the repository's folder, as a project id.

    A shared root serves many repositories; there it is the name of the one around the working directory.
    """
    if is_shared:
        return root_config.slug_of(_repository().name)
    return root_config.slug_of(root.parent.name if root.name == FOLDER else root.name)


def _repository() -> Path:
    """Return the folder of the repository around the working directory, else that directory."""
    here = Path.cwd().resolve()
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)


def _own_project(root: Path, folder: Path, requested: str | None) -> str:
    """Return the project of *folder* in the user's memory *root*; an existing one without an owner becomes its own.

    So does the one *requested*, if it has the name of the folder and that of its owner is gone.
    """
    name = root_config.slug_of(folder.name)
    is_meant = requested == name or (requested is None and owner_of(root, name) is None)
    if is_meant and (root / "projects" / name).is_dir():
        with suppress(OSError, InvalidRequest):  # of a root that is read-only, or a project of another folder
            claim(root, name, folder)
    return project_of(root, folder)


#: The file with the folder of each project in the user's own memory.
OWNERS = Path("state", "folders.json")
_DIGITS = 6


def project_of(root: Path, folder: Path) -> str:
    """Return the project of *folder* in the user's memory *root*; raises Failed `invalid_config`.

    Folders of the same name would share a project otherwise: the first to use it owns it, another of its name has a
    project with a digest of its path.
    """
    name = root_config.slug_of(folder.name)
    if _owners(root).get(name, str(folder)) == str(folder):
        return name
    digest = blake2b(str(folder).encode("utf-8", "surrogateescape"), digest_size=_DIGITS // 2).hexdigest()
    return f"{name[: 63 - _DIGITS]}-{digest}"


def owner_of(root: Path, project: str) -> str | None:
    """Return the folder that owns *project*, None if none is recorded; raises Failed `invalid_config`."""
    return _owners(root).get(project)


def claim(root: Path, project: str, folder: Path) -> None:
    """Record *folder* as the owner of *project*, unless it has one that exists.

    Raises InvalidRequest if another folder owns it, Failed `invalid_config`, and OSError.
    """
    path = root / OWNERS
    if _owners(root).get(project) == str(folder):
        return
    disk.make_folders(path.parent)
    with files.file_lock(path.with_name(".folders.lock")):
        owners = _owners(root)
        owner = owners.setdefault(project, str(folder))
        if owner != str(folder) and Path(owner).is_dir():
            raise InvalidRequest(
                f"project {project} of your own memory, {root}, is that of {owner} by now",
                hint="open the memory again: this folder gets a project of its own",
            )
        files.write_atomically(path, json.dumps({**owners, project: str(folder)}, indent=1).encode())


def _owners(root: Path) -> dict[str, str]:
    path = root / OWNERS
    root_config.refuse_link(path)
    try:
        owners = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        raise Failed(f"{path} cannot be read: {error}", hint=f"move it away: mv {path} {path}.old",
                     code="invalid_config") from error  # fmt: skip
    return {str(project): str(folder) for project, folder in owners.items()} if isinstance(owners, dict) else {}
