"""Addresses of shared roots: which there are, how one may be shown, what opens it, and where its copy lies here."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from jidomem.errors import Failed, InvalidRequest
from jidomem.shared.log import SharedLog

#: What begins an address -> the extra that is needed.
_EXTRAS = {"postgresql": "postgres", "postgres": "postgres", "s3": "objects"}
#: Where another object store than the one everybody knows is named.
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
#: What says whose copy a folder has.
_MARK = "copy-of"
#: What says in a query which database is meant.
_NAMING = ("host", "hostaddr", "port", "dbname", "service", "schema", "options")
_SECRET = re.compile(r"pass|secret|key|token|credential", re.IGNORECASE)


def checked(address: str) -> str:
    """Return *address*; raise InvalidRequest unless it is one of a shared root."""
    if address.partition("://")[0] not in _EXTRAS:
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
        split = _split(address)
        if "@" in split.path + split.query:  # a password with a / or ? in it
            raise ValueError(split.scheme)
        user, at, place = split.netloc.rpartition("@")
        query = [(key, value) for key, value in parse_qsl(split.query, True) if not _SECRET.search(key)]
        return urlunsplit(
            (split.scheme, user.partition(":")[0] + at + place, split.path, urlencode(query, safe="/:,"), "")
        )
    except ValueError:
        return f"{address.partition('://')[0]}://..."


def _split(address: str) -> SplitResult:
    """Return the parts of an address, in which # begins no fragment: it may stand in a password."""
    return urlsplit(address.replace("#", "%23"))


def home_of(address: str, environment: Mapping[str, str]) -> Path:
    """Return the folder of this machine that has the copy of the root at *address*: `JIDOMEM_HOME`, else the user's.

    Who changes a password, or how the connection is made, goes on with the same copy.
    """
    if chosen := environment.get("JIDOMEM_HOME"):
        return Path(chosen).expanduser().resolve()
    from platformdirs import user_cache_dir

    digest = blake2b(_place(address, environment).encode(), digest_size=12).hexdigest()
    return Path(user_cache_dir("jidomem", appauthor=False)).resolve() / "roots" / digest


def claim(home: Path, address: str, environment: Mapping[str, str]) -> None:
    """Make *home* the folder of the copy of the root at *address*, where it is not.

    Raise Failed `invalid_config` where it holds something else: what is in a copy may be thrown away at any time.
    """
    mark, place = home / _MARK, _place(address, environment)
    try:
        if not mark.exists() and _is_empty(home):
            _put(mark, place)
        if not mark.exists():  # looked for again: others may have begun with it at the same time
            what = "is a folder with something else in it"
        elif (found := mark.read_text("utf-8")) == place:
            return
        else:
            what = f"has the copy of {found}"
    except OSError as error:
        what = f"cannot be used: {error.strerror}"
    raise Failed(
        f"{home} {what}, and no copy of {shown(address)} can be kept there",
        hint="name an empty folder, one for each root: export JIDOMEM_HOME=FOLDER; or unset it",
        code="invalid_config",
    )


def _is_empty(home: Path) -> bool:
    return not home.exists() or all(entry.name.startswith(f".{_MARK}") for entry in home.iterdir())


def _put(mark: Path, place: str) -> None:
    """Put the mark there, unless another did."""
    mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = mark.with_name(f".{_MARK}.{token_hex(4)}")
    try:
        draft.write_text(place, "utf-8")
        with suppress(FileExistsError):
            os.link(draft, mark)  # a rename would take the place of what is there
    finally:
        draft.unlink(missing_ok=True)


def _place(address: str, environment: Mapping[str, str]) -> str:
    """Return what names the place at *address*, however it is reached."""
    split = _split(address)
    host = split.netloc.rpartition("@")[2].lower()
    if split.scheme == "s3":
        endpoint = urlsplit(next(filter(None, map(environment.get, _ENDPOINTS)), ""))
        there = endpoint._replace(netloc=endpoint.netloc.rpartition("@")[2]).geturl()
        return f"s3://{host}{split.path.rstrip('/')} at {there}"
    kept = sorted([*(pair for pair in parse_qsl(split.query) if pair[0] in _NAMING), *_implied(split, environment)])
    return f"postgresql://{host}{quote(unquote(split.path)).rstrip('/')}?{urlencode(kept)}"


def _implied(split: SplitResult, environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what libpq takes from elsewhere, as an address leaves it out: a database has the name of the user, then."""
    login, _, host = split.netloc.rpartition("@")
    pairs = dict(parse_qsl(split.query))
    if "service" in pairs:
        return
    user = login.partition(":")[0] or pairs.get("user") or environment.get("PGUSER", "")
    for name, is_said, instead in (
        ("host", host or "hostaddr" in pairs, ""),
        ("port", ":" in host, ""),
        ("dbname", split.path.strip("/"), user),
        ("service", "", ""),
    ):
        found = environment.get("PGDATABASE" if name == "dbname" else f"PG{name.upper()}") or instead
        if found and not is_said and name not in pairs:
            yield name, found


def open_log(address: str, environment: Mapping[str, str], *, wait: float = 10.0) -> SharedLog:
    """Return the log at *address*, in which *wait* is how many seconds an answer is waited for.

    *environment* says what else an object store needs. Raises InvalidRequest for an address of another kind, Failed
    `missing_extra` where a package is missing and what the log raises that cannot be reached.
    """
    kind = checked(address).partition("://")[0]
    try:
        if kind == "s3":
            from jidomem.shared.objects import ObjectLog

            return ObjectLog(address, environment, wait=wait)
        from jidomem.shared.postgres import PostgresLog

        return PostgresLog(address, wait=wait)
    except ModuleNotFoundError as error:
        raise Failed(
            f"{shown(address)} needs the package {error.name}",
            hint=f'pip install "jidomem[{_EXTRAS[kind]}]"',
            code="missing_extra",
        ) from error
