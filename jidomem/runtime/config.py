"""What a root says of itself in `config.toml`, read and judged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from unicodedata import normalize

from jidomem import vocab
from jidomem.authority import PRESETS
from jidomem.decoding import decode_toml
from jidomem.errors import Failed
from jidomem.policy import JUDGES, ON_CONFLICT, ON_SECRET, AgentPolicy, Policy
from jidomem.runtime import bounds, trust
from jidomem.words import slug
from jidomem.write.kinds import family

_KEYS = ("project", "strict", "create_projects", "judge", "secrets", "read_log", "conflicts", "agents", "policy")
#: What a root found on disk may not decide: it may be somebody else's repository.
_AUTHORITY = (
    "bind", "embedder", "endpoint", "index", "base_url", "limits", "model", "models", "token", "tokens", "url",
)  # fmt: skip
#: What it may decide once its user trusts it: where `jidomem serve` listens.
OF_TRUST = ("host", "port")
_FAMILIES = sorted({family(kind) for kind in vocab.CLASS_OF_TYPE} - {"deleted_marker"})


def read(path: Path, own: Path | None) -> dict[str, Any]:
    """Return the configuration in *path*, empty when there is none; raises Failed `invalid_config`.

    *own* is the file of the user that says which roots are trusted; None for a root that is open, in which what only
    a trusted one may set means nothing any more.
    """
    try:
        text = bounds.read_config(path)

        config = decode_toml(text)
    except FileNotFoundError:
        return {}
    except (ValueError, OSError) as error:
        raise Failed(f"{path}: {error}", hint="correct the line it names", code="invalid_config") from error
    for key in config:
        _refuse_authority(key, path, own)
        _known(key, (*_KEYS, *OF_TRUST), path, "")
    _project_id(config, path)
    _place(config, path)
    return config


def _refuse_authority(key: str, path: Path, own: Path | None) -> None:
    """Raise Failed for a key that a root may not set, or not unless it is trusted as it is."""
    if key in _AUTHORITY:
        raise Failed(
            f"{path}: {key} cannot be set by a root that was found on disk",
            hint=f"take {key} out of that file; once you trust it (jidomem trust {path.parent}) it may set "
            f"{' and '.join(OF_TRUST)}, and tokens are given out with: jidomem token add AGENT",
            code="invalid_config",
        )
    if own is not None and key in OF_TRUST and (state := trust.state(own, path.parent.resolve())) != "trusted":
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
    """Return *name* as a project id, `[a-z0-9][a-z0-9_-]{0,63}`: letters without their accents, `-` for other signs.

    >>> slug_of("My Käse.git")
    'my-kase-git'
    """
    plain = re.sub(r"[\u0300-\u036f]", "", normalize("NFKD", name.casefold()))
    return re.sub(r"[^a-z0-9_-]+", "-", plain).strip("-_")[:64] or "project"


def policy(config: Mapping[str, Any], path: Path) -> Policy:
    """Return the policy that *config*, which *path* holds, sets; raises Failed `invalid_config`."""
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
        strict=flag(config, "strict", False, path),
        create_projects=flag(config, "create_projects", True, path),
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


def flag(config: Mapping[str, Any], key: str, default: bool, path: Path) -> bool:
    """Return what *config* says of *key*, true or false; raises Failed `invalid_config` for anything else."""
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
