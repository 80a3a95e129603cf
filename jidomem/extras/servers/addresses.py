"""The addresses of shared roots: parsing, display without passwords, and the folder of the local copy.

The configuration, terms, shapes and queries of a shared root are one file of its log, so that a change of several of
them is atomic: a reader sees all of them as of one moment.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from jidomem.base.disk import LARGEST
from jidomem.base.files import atomic_file, file_lock
from jidomem.base.json_values import decode_json
from jidomem.errors import Failed, InvalidRequest
from jidomem.extras.servers.checkpoints import copying
from jidomem.extras.servers.log import SharedLog, check_file

#: The scheme of an address -> the extra that it needs.
_EXTRAS = {"postgresql": "postgres", "postgres": "postgres", "s3": "objects"}
#: The environment variables that select an object store other than AWS.
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
#: The file that marks a folder as the copy of a root.
_MARK = "copy-of"
#: The query parameters that identify the database.
_NAMING = ("host", "hostaddr", "port", "dbname", "service", "schema", "options")
_SECRET = re.compile(r"pass|secret|key|token|credential", re.IGNORECASE)


def checked(address: str) -> str:
    """Return *address*; raise InvalidRequest if it is not the address of a shared root."""
    scheme = address.partition("://")[0]
    if scheme in ("http", "https"):
        raise InvalidRequest(
            f"{without_secrets(address)} is a server, and commands open the root itself",
            hint=f"connect an agent: jidomem setup claude --server {without_secrets(address)};"
            " programs use the HTTP interface of jidomem serve",
        )
    if scheme not in _EXTRAS:
        raise InvalidRequest(
            f"{without_secrets(address)} is not the address of a shared root",
            hint="give a folder, postgresql://HOST/DATABASE or s3://BUCKET/PREFIX",
        )
    return address


def without_secrets(address: str) -> str:
    """Return *address* without passwords, keys and tokens.

    >>> without_secrets("postgresql://jido:secret@db:5432/team?sslmode=require&sslpassword=x")
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
    """Return the parts of an address. A # starts no fragment, as a password may contain it."""
    return urlsplit(address.replace("#", "%23"))


def home_of(address: str, environment: Mapping[str, str]) -> Path:
    """Return the folder for the local copy of the root at *address*: `JIDOMEM_HOME`, else one in the user's cache.

    The folder does not depend on the password or on the way of connecting. Raise Failed `invalid_config` where
    `JIDOMEM_HOME` names the home of an unknown user.
    """
    if chosen := environment.get("JIDOMEM_HOME"):
        try:
            return Path(chosen).expanduser().resolve()
        except RuntimeError as error:
            detail = f"JIDOMEM_HOME={chosen}: there is no home folder of that user"
            raise Failed(detail, hint="name the whole path of a folder", code="invalid_config") from error
    from platformdirs import user_cache_dir

    digest = blake2b(_place(address, environment).encode(), digest_size=12).hexdigest()
    return Path(user_cache_dir("jidomem", appauthor=False)).resolve() / "roots" / digest


def claim(home: Path, address: str, environment: Mapping[str, str]) -> None:
    """Mark *home* as the folder of the copy of the root at *address*; raises the errors of `is_claimed`."""
    if not is_claimed(home, address, environment):
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError), atomic_file(home / _MARK, 0o666, replace=False) as file:
                file.write(_place(address, environment).encode())
        except OSError as error:
            raise _unusable(home, f"cannot be used: {error.strerror}", address) from error
        is_claimed(home, address, environment)  # another process may have claimed it meanwhile


def is_claimed(home: Path, address: str, environment: Mapping[str, str]) -> bool:
    """Return whether *home* is marked as the folder of the copy of the root at *address*; False if it is empty.

    Raise Failed `invalid_config` if the folder has other content: the files of a copy may be deleted at any time.
    """
    mark = home / _MARK
    try:
        is_empty = not home.exists() or all(entry.name.startswith(f".{_MARK}") for entry in home.iterdir())
        if mark.exists():  # checked last: another process may claim it meanwhile
            if (owner := mark.read_text("utf-8")) == _place(address, environment):
                return True
            raise _unusable(home, f"has the copy of {owner}", address)
    except OSError as error:
        raise _unusable(home, f"cannot be used: {error.strerror}", address) from error
    if not is_empty:
        raise _unusable(home, "is a folder with other content", address)
    return False


def _unusable(home: Path, problem: str, address: str) -> Failed:
    return Failed(
        f"{home} {problem}, so it cannot have the copy of {without_secrets(address)}",
        hint="unset JIDOMEM_HOME, as to copy one bucket to another: each root then has a folder of its own; or name an"
        " empty one for this root: export JIDOMEM_HOME=FOLDER",
        code="invalid_config",
    )


def _place(address: str, environment: Mapping[str, str]) -> str:
    """Return the name of the place at *address*, which does not depend on the way of connecting."""
    split = _split(address)
    host = split.netloc.rpartition("@")[2].lower()
    if split.scheme == "s3":
        endpoint = urlsplit(next(filter(None, map(environment.get, _ENDPOINTS)), ""))
        endpoint_url = endpoint._replace(netloc=endpoint.netloc.rpartition("@")[2]).geturl()
        return f"s3://{host}{split.path.rstrip('/')} at {endpoint_url}"
    options = sorted([*(pair for pair in parse_qsl(split.query) if pair[0] in _NAMING), *_implied(split, environment)])
    return f"postgresql://{host}{quote(unquote(split.path)).rstrip('/')}?{urlencode(options)}"


def _implied(split: SplitResult, environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the options that libpq takes from the environment; the default database name is the user's name."""
    login, _, host = split.netloc.rpartition("@")
    pairs = dict(parse_qsl(split.query))
    if "service" in pairs:
        return
    user = login.partition(":")[0] or pairs.get("user") or environment.get("PGUSER", "")
    for name, is_given, default in (
        ("host", host or "hostaddr" in pairs, ""),
        ("port", ":" in host, ""),
        ("dbname", split.path.strip("/"), user),
        ("service", "", ""),
    ):
        value = environment.get("PGDATABASE" if name == "dbname" else f"PG{name.upper()}") or default
        if value and not is_given and name not in pairs:
            yield name, value


def open_log(address: str, environment: Mapping[str, str], *, wait: float = 10.0, creates: bool = True) -> SharedLog:
    """Return the log at *address*, which waits up to *wait* seconds for an answer, and is made if it *creates* it.

    *environment* has the other settings of an object store. Raises NotFound if there is none, InvalidRequest for an
    address of another kind,
    Failed `missing_extra` if a package is missing, and the error of the log if the store cannot be reached.
    """
    kind = checked(address).partition("://")[0]
    try:
        if kind == "s3":
            from jidomem.extras.servers.object_log import ObjectLog

            return ObjectLog(address, environment, wait=wait, creates=creates)
        from jidomem.extras.servers.postgres_log import PostgresLog

        return PostgresLog(address, wait=wait, creates=creates)
    except ModuleNotFoundError as error:
        raise Failed(
            f"{without_secrets(address)} needs the package {error.name}",
            hint=f'pip install "jidomem[{_EXTRAS[kind]}]"',
            code="missing_extra",
        ) from error


NAME = "root.json"
_ALONE = ("config.toml", "baseline.toml")
_BELOW = ("ontology", "shapes", "queries")
_ASIDE = ".ttl.aside"
#: The file in a local copy with the tag of the NAME from which it was written.
_TAG = "root.tag"

Files = Mapping[str, str]


def load(log: SharedLog) -> dict[str, str]:
    """Return the text of each file of the root, by path; raises Failed if they cannot be read."""
    return _read(log)[0]


def change(log: SharedLog, edit: Callable[[Files], Files]) -> None:
    """Replace the files of the root by `edit(files)`; raises InvalidRequest for a path that is no file of a root."""
    while True:
        files, tag = _read(log)
        changed = edit(files)
        for path in changed:
            check(path)
        data = json.dumps({"files": dict(sorted(changed.items()))}, ensure_ascii=False, indent=0).encode()
        if changed == files or log.put(NAME, data, tag) is not None:
            return


def update_copy(log: SharedLog, home: Path) -> str:
    """Update the files of the root in *home*, the local copy, if they changed; return their tag.

    Raises Failed `write_failed` if they cannot be written there.
    """
    tag_file = home / _TAG
    with copying(str(home), log.name):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _text(tag_file) == (current_tag := _read(log)[1] or ""):
            return current_tag
        with file_lock(home / ".root.lock", 0o600):
            files, tag = _read(log)
            tag_file.unlink(missing_ok=True)
            for path in {*_root_files(home)} - files.keys():
                (home / path).unlink(missing_ok=True)
            for path, text in files.items():
                write(home / path, text)
            write(tag_file, tag or "")
            return tag or ""


def of_folder(folder: Path) -> dict[str, str]:
    """Return the files in *folder* that belong to a shared root; raises InvalidRequest for a file that is no text."""
    texts = {}
    for path in sorted(_root_files(folder)):
        try:
            if (size := (folder / path).stat().st_size) > LARGEST:
                raise ValueError(f"it has {size:,} bytes, more than {LARGEST:,}")
            texts[path] = (folder / path).read_text("utf-8")
        except (OSError, ValueError) as error:
            raise InvalidRequest(f"{folder / path}: {error}", hint="a root has only text files: remove it") from error
        check(path)
    return texts


def overlay_files(folder: Path) -> Iterator[Path]:
    """Yield the files below the overlay folders of the root in *folder*, sorted; links are not followed."""
    for name in _BELOW:
        if not (folder / name).is_symlink():
            yield from sorted(
                Path(at, file)
                for at, _, files in os.walk(folder / name)
                for file in files
                if not Path(at, file).is_symlink() and Path(at, file).is_file()
            )


def check(path: str) -> None:
    """Raise InvalidRequest unless *path* is the path of a file of a shared root."""
    check_file(path)
    first, _, rest = path.partition("/")
    is_aside = first == "projects" and path.endswith(_ASIDE) and path.count("/") == 3
    if not (path in _ALONE or (first in _BELOW and rest) or is_aside):
        hint = f"its files are {', '.join(_ALONE)} and those in {', '.join(f'{name}/' for name in _BELOW)}"
        raise InvalidRequest(f"{path} is not a file of a shared root", hint=hint)


def _read(log: SharedLog) -> tuple[dict[str, str], str | None]:
    file = log.get(NAME)
    if file is None:
        return {}, None
    try:
        files = decode_json(file.data)["files"]
        for path, text in files.items():
            check(path)
            if not isinstance(text, str):
                raise ValueError(f"{path} is not a text")
    except (ValueError, KeyError, TypeError, AttributeError, InvalidRequest) as error:
        raise Failed(
            f"{NAME} of {log.name} cannot be read: {error}",
            hint="put the files there again, from a folder that has them: jidomem root push FOLDER",
            code="invalid_config",
        ) from error
    return files, file.tag


def _root_files(folder: Path) -> Iterator[str]:
    """Yield the paths of the files in *folder* that belong to a shared root, without links and hidden files."""
    tops = [*(folder / name for name in _ALONE), *folder.glob(f"projects/*/*/*{_ASIDE}")]
    for path in (*tops, *overlay_files(folder)):
        inner = path.relative_to(folder)
        if path.is_file() and not path.is_symlink() and not any(part[0] == "." for part in inner.parts):
            yield inner.as_posix()


def _text(path: Path) -> str | None:
    with suppress(OSError, ValueError):
        return path.read_text("utf-8")
    return None


def write(path: Path, text: str) -> None:
    """Write a file atomically; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path, 0o666) as file:
        file.write(text.encode())
