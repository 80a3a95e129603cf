"""Where memory lives and what its owner set: the command line's words, the environment, then `config.toml`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jidomem import vocab
from jidomem.authority import PRESETS
from jidomem.embedder import Embedder
from jidomem.errors import Failed, InvalidRequest
from jidomem.policy import JUDGES, ON_CONFLICT, ON_SECRET, AgentPolicy, Policy
from jidomem.runtime import bounds, embedders, language_models, trust
from jidomem.runtime.limits import Limits
from jidomem.write.kinds import family
from jidomem.write.names import slug

if TYPE_CHECKING:
    from jidomem.model import LanguageModel
    from jidomem.shared.log import SharedLog

FOLDER = ".jidomem"
CONFIG = "config.toml"
OWN = "your own memory"
_KEYS = ("project", "strict", "create_projects", "judge", "secrets", "read_log", "conflicts", "agents", "policy")
#: Which embedder the environment may choose.
_USES = ("local", "none")
#: What a root found on disk may not decide: it may be somebody else's repository.
_AUTHORITY = (
    "bind", "embedder", "endpoint", "index", "base_url", "limits", "model", "models", "token", "tokens", "url",
)  # fmt: skip
#: What it may decide once its user trusts it: where `jidomem serve` listens.
OF_TRUST = ("host", "port")
_FAMILIES = sorted({family(kind) for kind in vocab.CLASS_OF_TYPE} - {"deleted_marker"})


@dataclass(frozen=True, slots=True)
class Settings:
    """The root folder, the project asked for when none is named, and the policy of the memory.

    `found` says how the root was found, for `status`; `agent` and `session` are who asserts when nobody is named.
    `configured` is the project `config.toml` names, which is there before anything is written. `read_log` says whether
    it is kept which memories were shown. `host` and `port` are where a trusted root wants to be served, `limits`,
    `embedder`, `model` and `index`, the address of a store that answers beside the index of this process, are the
    user's own: no root sets them. `address` is that of a shared root, whose copy `root` is then.
    """

    root: Path
    project: str
    found: str
    agent: str = "user"
    session: str | None = None
    policy: Policy = field(default_factory=Policy)
    configured: str | None = None
    read_log: bool = True
    host: str | None = None
    port: int | None = None
    limits: Limits = field(default_factory=Limits)
    embedder: embedders.Choice = field(default_factory=embedders.Choice)
    model: language_models.Choice = field(default_factory=language_models.Choice)
    index: str | None = field(default=None, repr=False)
    address: str | None = None

    @property
    def place(self) -> str:
        """Return where memory is, as it may be shown."""
        if self.address is None:
            return str(self.root)
        from jidomem.shared import places  # most roots are folders

        return places.shown(self.address)


def load(
    root: str | os.PathLike[str] | None = None,
    project: str | None = None,
    *,
    agent: str | None = None,
    session: str | None = None,
    index: str | None = None,
) -> Settings:
    """Return the settings: what is given, else what the environment, the tree above or the config says.

    Raises Failed `invalid_config` naming file, key and the nearest known key, InvalidRequest for a root that is none.
    """
    (folder, found), address = find(root), address_of(root)
    if folder.exists() and not folder.is_dir():
        raise InvalidRequest(f"{folder} is no folder ({found})", hint="make a memory root in this one: jidomem init")
    config = read_config(folder / CONFIG)
    own = config.get("project")
    limits, chosen, model, store = _own(own_config())
    named = (
        project or os.environ.get("JIDOMEM_PROJECT") or own or _folder_name(folder, found if address is None else OWN)
    )
    return Settings(
        root=folder,
        project=named,
        found=found,
        agent=agent or os.environ.get("JIDOMEM_AGENT") or os.environ.get("USER") or "user",
        session=session or os.environ.get("JIDOMEM_SESSION"),
        policy=_policy(config, folder / CONFIG),
        configured=own,
        read_log=_flag(config, "read_log", True, folder / CONFIG),
        host=config.get("host"),
        port=config.get("port"),
        limits=limits,
        embedder=_embedder(chosen),
        model=model,
        address=address,
        index=_index(os.environ.get("JIDOMEM_INDEX", store) if index is None else index),
    )


def policy_of(root: Path) -> Policy:
    """Return the policy that the configuration of a root sets; raises what `load` does."""
    return _policy(read_config(root / CONFIG, is_open=True), root / CONFIG)


def own_config() -> Path:
    """Return the user's own configuration file, which no repository brings along."""
    from platformdirs import user_config_dir

    return Path(user_config_dir("jidomem", appauthor=False)) / CONFIG


def _embedder(chosen: embedders.Choice) -> embedders.Choice:
    """Return what is *chosen*, unless the environment says `local` or `none`; raises Failed `invalid_config`."""
    use = os.environ.get("JIDOMEM_EMBEDDER")
    if use is None:
        return chosen
    if use not in _USES:
        hint = f"export JIDOMEM_EMBEDDER={_USES[-1]}; an endpoint is set in {own_config()}"
        raise Failed(f"JIDOMEM_EMBEDDER={use!r} is none of {', '.join(_USES)}", hint=hint, code="invalid_config")
    return embedders.Choice(use)


def embedder(settings: Settings) -> Embedder | None:
    """Return the embedder that the user chose, None where there is none; its key is read from the environment now.

    One that cannot be asked, as its key or a package is missing, says so each time it is asked for vectors.
    """
    return embedders.embedder(settings.embedder, os.environ.get)


def models(settings: Settings, given: Embedder | None = None) -> tuple[LanguageModel, Embedder | None]:
    """Return the language model that the user chose, the offline one unless they did, and the embedder it has.

    That is the one *given*, else the one that the user chose; where there is none the model hashes stems. A model that
    cannot be asked, as its key is missing, says so each time it is asked something.
    """
    from jidomem.models.hashed import HashedStems  # most processes ask no model

    chosen = given or embedder(settings)
    return language_models.model(settings.model, chosen or HashedStems(), os.environ.get), chosen


def _index(address: str) -> str | None:
    """Return the *address* of a store, None for none; raises Failed `invalid_config` for what is no address of one."""
    if not address:
        return None
    from jidomem.index.remote_index import refuse  # most users have none

    refuse(address)
    return address


def _own(path: Path) -> tuple[Limits, embedders.Choice, language_models.Choice, str]:
    """Return limits, models and index of the user's own configuration; raises Failed `invalid_config`."""
    if not path.exists():
        return Limits(), embedders.Choice(), language_models.Choice(), ""
    from jidomem.runtime import own  # most users have no configuration

    said = own.read(path)
    return said.limits, said.embedder, said.model, said.index


def read_config(path: Path, *, is_open: bool = False) -> dict[str, Any]:
    """Return the configuration in *path*, empty when there is none; raises Failed `invalid_config`.

    What only a trusted root may set means nothing any more in one that *is_open*.
    """
    try:
        text = bounds.read_config(path)
        import tomllib  # most roots have no configuration

        config = tomllib.loads(text)
    except FileNotFoundError:
        return {}
    except (ValueError, OSError) as error:
        raise Failed(f"{path}: {error}", hint="correct the line it names", code="invalid_config") from error
    for key in config:
        if not (is_open and key in OF_TRUST):
            _refuse_authority(key, path)
        _known(key, (*_KEYS, *OF_TRUST), path, "")
    _project_id(config, path)
    _place(config, path)
    return config


def _refuse_authority(key: str, path: Path) -> None:
    """Raise Failed for a key that a root may not set, or not unless it is trusted as it is."""
    if key in _AUTHORITY:
        raise Failed(
            f"{path}: {key} cannot be set by a root that was found on disk",
            hint=f"take {key} out of that file; once you trust it (jidomem trust {path.parent}) it may set "
            f"{' and '.join(OF_TRUST)}, and tokens are given out with: jidomem token add AGENT",
            code="invalid_config",
        )
    if key in OF_TRUST and (state := trust.state(own_config(), path.parent.resolve())) != "trusted":
        changed = ", and it was changed since you trusted it" if state == "changed" else ""
        raise Failed(
            f"{path}: {key} cannot be set by a root that was found on disk{changed}",
            hint=f"look through that folder, then trust it: jidomem trust {path.parent}; or take {key} out",
            code="invalid_config",
        )


def _place(config: Mapping[str, Any], path: Path) -> None:
    """Raise Failed unless host, if any, is a text and port a port."""
    host, port = config.get("host", ""), config.get("port", 0)
    if not isinstance(host, str):
        raise Failed(f"{path}: host = {host!r} is no text", hint='host = "127.0.0.1"', code="invalid_config")
    if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port <= 65_535:
        raise Failed(f"{path}: port = {port!r} is no port", hint="port = 8700", code="invalid_config")


def _project_id(config: Mapping[str, Any], path: Path) -> None:
    """Raise Failed `invalid_config` unless the project that *config* names, if any, is a project id."""
    named = config.get("project", "project")
    if not isinstance(named, str) or not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", named):
        raise Failed(
            f"{path}: project = {named!r} is no project id: a-z, 0-9, - and _, at most 64",
            hint=f'project = "{slug_of(str(named))}"',
            code="invalid_config",
        )


def slug_of(name: str) -> str:
    """Return *name* as a project id: `[a-z0-9][a-z0-9_-]{0,63}`.

    >>> slug_of("My Repo.git")
    'my-repo-git'
    """
    return re.sub(r"[^a-z0-9_-]+", "-", name.casefold()).strip("-_")[:64] or "project"


def find(given: str | os.PathLike[str] | None) -> tuple[Path, str]:
    """Return the memory root, and how it was found; raises Failed and InvalidRequest for what cannot be one."""
    if given is not None:
        return _folder(given), "given"
    if env := os.environ.get("JIDOMEM_ROOT"):
        return _folder(env), "JIDOMEM_ROOT"
    here = Path.cwd().resolve()
    for folder in (here, *here.parents):
        if (folder / FOLDER).is_dir():
            _refuse_link(folder / FOLDER)
            return folder / FOLDER, "found above the working directory"
    from platformdirs import user_data_dir

    return Path(user_data_dir("jidomem", appauthor=False)).resolve(), OWN


def address_of(given: str | os.PathLike[str] | None) -> str | None:
    """Return the address of the shared root that is *given*, or that the environment names; None for a folder.

    Raises InvalidRequest for an address of another kind.
    """
    said = os.fspath(given) if given is not None else os.environ.get("JIDOMEM_ROOT", "")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", said) is None:
        return None
    from jidomem.shared import places

    return places.checked(said)


def opened_log(given: str | os.PathLike[str] | None, wait: float) -> tuple[SharedLog, Path] | None:
    """Return the log of the shared root that is *given* or named and the folder of its copy; None for a folder.

    What it says of itself is in that folder then. Raises what `open_log` and `root_files.bring` raise.
    """
    if (address := address_of(given)) is None:
        return None
    from jidomem.shared import root_files

    log, home = open_log(address, wait)
    try:
        root_files.bring(log, home)
    except BaseException:
        log.close()
        raise
    return log, home


def open_log(address: str, wait: float = 10.0) -> tuple[SharedLog, Path]:
    """Return the log at *address* and the folder of its copy here; raises what `places` does."""
    from jidomem.shared import places

    home = places.home_of(address, os.environ)
    places.claim(home, address, os.environ)
    return places.open_log(address, os.environ, wait=wait), home


def _refuse_link(found: Path) -> None:
    """Raise Failed for a root that was found and lies elsewhere: a repository may lead to another one's memory so."""
    if found.is_symlink():
        raise Failed(
            f"{found} is a symbolic link, and a root that is found is no other one",
            hint=f"name it, if you mean it: --root {found.resolve()}",
            code="invalid_config",
        )


def _folder(root: str | os.PathLike[str]) -> Path:
    """Return the folder *root*, or that of the copy of a shared one; raises InvalidRequest for another address."""
    if (address := address_of(root)) is not None:
        from jidomem.shared import places

        return places.home_of(address, os.environ)
    return Path(root).expanduser().resolve()


def _folder_name(root: Path, found: str) -> str:
    """Return the project when none is named: the name of the repository's folder, as a project id.

    Your own memory is shared by all repositories that have none, so there it is the one you stand in.
    """
    if found == OWN:
        here = Path.cwd().resolve()
        repository = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
        return slug_of(repository.name)
    return slug_of(root.parent.name if root.name == FOLDER else root.name)


def _policy(config: Mapping[str, Any], path: Path) -> Policy:
    conflicts = _table(config, "conflicts", path)
    for kind, choice in conflicts.items():
        _known(kind, _FAMILIES, path, "conflicts.")
        _known(choice, ON_CONFLICT, path, f"conflicts.{kind} = ")
    judge = config.get("judge", Policy().judge)
    _known(judge, JUDGES, path, "judge = ")
    secrets = config.get("secrets", Policy().secrets)
    _known(secrets, ON_SECRET, path, "secrets = ")
    preset = config.get("policy", Policy().preset)
    _known(preset, PRESETS, path, "policy = ")
    return Policy(
        on_conflict=conflicts,
        agents=_agents(_table(config, "agents", path), path),
        strict=_flag(config, "strict", False, path),
        create_projects=_flag(config, "create_projects", True, path),
        judge=judge,
        secrets=secrets,
        preset=preset,
    )


def _agents(entries: Mapping[str, Any], path: Path) -> dict[str, AgentPolicy]:
    """Return what is set for each agent, by its name as memory writes it."""
    found: dict[str, AgentPolicy] = {}
    for written, entry in entries.items():
        name = slug(written)
        if not name or name in found:
            wrong = f"is there twice, as {written!r}" if name else "is no name of an agent"
            hint = f"keep one of them: [agents.{name}]" if name else "write [agents.rita]"
            raise Failed(f"{path}: agents.{name or written} {wrong}", hint=hint, code="invalid_config")
        found[name] = _agent(written, entry, path)
    return found


def _agent(name: str, entry: Any, path: Path) -> AgentPolicy:
    if not isinstance(entry, dict):
        raise Failed(f"{path}: agents.{name} is a table", hint=f"write [agents.{name}]", code="invalid_config")
    for key in entry:
        _known(key, ("role", "capabilities"), path, f"agents.{name}.")
    role = entry.get("role", AgentPolicy().role)
    capabilities = entry.get("capabilities", list(AgentPolicy().capabilities))
    _known(role, vocab.AGENT_ROLE, path, f"agents.{name}.role = ")
    if not isinstance(capabilities, list) or not capabilities:
        raise Failed(
            f"{path}: agents.{name}.capabilities is a list of at least one",
            hint='write capabilities = ["CanQueryMemory"]',
            code="invalid_config",
        )
    for capability in capabilities:
        _known(capability, vocab.CAPABILITY, path, f"agents.{name}.capabilities: ")
    return AgentPolicy(role, tuple(capabilities))


def _table(config: Mapping[str, Any], key: str, path: Path) -> dict[str, Any]:
    found = config.get(key, {})
    if not isinstance(found, dict):
        raise Failed(f"{path}: {key} is a table", hint=f"write [{key}]", code="invalid_config")
    return found


def _flag(config: Mapping[str, Any], key: str, default: bool, path: Path) -> bool:
    found = config.get(key, default)
    if not isinstance(found, bool):
        raise Failed(f"{path}: {key} is true or false, not {found!r}", hint=f"{key} = true", code="invalid_config")
    return found


def _known(key: Any, names: Any, path: Path, where: str) -> None:
    if isinstance(key, str) and key in names:
        return
    near = get_close_matches(str(key), list(names), n=1, cutoff=0.5)
    known = ", ".join(names)
    hint = f"did you mean {near[0]!r}?" if near else f"known here: {known}"
    raise Failed(f"{path}: {where}{key} is not known here ({known})", hint=hint, code="invalid_config")
