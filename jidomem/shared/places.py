"""Addresses of shared roots: which there are, how one may be shown, what opens it, and where its copy lies here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from jidomem.errors import Failed, InvalidRequest
from jidomem.shared.log import SharedLog

#: What begins an address -> the extra that is needed, and what opens it.
_KINDS: Mapping[str, tuple[str, str]] = {
    "postgresql": ("postgres", "jidomem.shared.postgres:PostgresLog"),
    "postgres": ("postgres", "jidomem.shared.postgres:PostgresLog"),
    "s3": ("objects", "jidomem.shared.objects:ObjectLog"),
}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_SECRET = re.compile(r"pass|secret|key|token|credential", re.IGNORECASE)


def is_address(text: str) -> bool:
    """Return whether *text* is an address of any kind, and no folder.

    >>> is_address("postgresql://db/team"), is_address("/srv/memory")
    (True, False)
    """
    return _SCHEME.match(text) is not None


def checked(address: str) -> str:
    """Return *address*; raise InvalidRequest unless it is one of a shared root."""
    match = _SCHEME.match(address)
    if match is None or match[1] not in _KINDS:
        raise InvalidRequest(
            f"{shown(address)} is no address memory can be kept at",
            hint="give a folder, postgresql://HOST/DATABASE or s3://BUCKET/PREFIX",
        )
    return address


def shown(address: str) -> str:
    """Return *address* without what is nobody's business.

    >>> shown("postgresql://jido:secret@db:5432/team?sslmode=require&sslpassword=x")
    'postgresql://jido@db:5432/team?sslmode=require'
    """
    try:
        split = urlsplit(address)
        user, at, place = split.netloc.rpartition("@")
        query = [(key, value) for key, value in parse_qsl(split.query, True) if not _SECRET.search(key)]
        return urlunsplit(
            (split.scheme, user.partition(":")[0] + at + place, split.path, urlencode(query, safe="/:,"), "")
        )
    except ValueError:
        return f"{address.partition('://')[0]}://..."


def home_of(address: str, chosen: str | None = None) -> Path:
    """Return the folder of this machine that has the copy of the root at *address*: the one *chosen*, else the user's.

    Who changes a password, or how the connection is made, goes on with the same copy.
    """
    if chosen:
        return Path(chosen).expanduser().resolve()
    from platformdirs import user_cache_dir

    digest = blake2b(_place(address).encode(), digest_size=12).hexdigest()
    return Path(user_cache_dir("jidomem", appauthor=False)).resolve() / "roots" / digest


def _place(address: str) -> str:
    """Return what names the place at *address*, however it is reached."""
    split = urlsplit(address)
    host = split.netloc.rpartition("@")[2].lower()
    kept = sorted((key, value) for key, value in parse_qsl(split.query) if key in ("host", "port", "dbname", "options"))
    scheme = "postgresql" if split.scheme == "postgres" else split.scheme
    return f"{scheme}://{host}{quote(unquote(split.path)).rstrip('/')}?{urlencode(kept)}"


def open_log(address: str, *, wait: float = 10.0) -> SharedLog:
    """Return the log at *address*, in which *wait* is how many seconds an answer is waited for.

    Raises InvalidRequest for an address of another kind, Failed `missing_extra` where a package is missing and what
    the log raises that cannot be reached.
    """
    extra, opener = _KINDS[checked(address).partition("://")[0]]
    module, _, name = opener.partition(":")
    try:
        opened: Callable[..., SharedLog] = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise Failed(
            f"{shown(address)} needs the package {error.name}",
            hint=f'pip install "jidomem[{extra}]"',
            code="missing_extra",
        ) from error
    return opened(address, wait=wait)
