"""The keyring: the API tokens of one root, issued, looked up and revoked without a restart of a server."""

from __future__ import annotations

import json
import shlex
import sys
from base64 import urlsafe_b64encode
from collections.abc import Callable, MutableSequence, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from hmac import compare_digest
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from jidomem.base.clock import Sources, format_timestamp, now
from jidomem.base.json_values import decode_json
from jidomem.errors import Failed, InvalidRequest, JidomemError, NotFound, Unauthenticated, did_you_mean
from jidomem.journal.journal import Stream
from jidomem.runtime import user_config
from jidomem.runtime.user_config import EVERY, ROLES, ApiToken, UserConfig

if TYPE_CHECKING:
    from jidomem.extras.servers.log import SharedLog

#: The prefix of a token, by which secret scanners recognise it.
MARK = "jido_"
#: The file with the tokens of a shared root, and the seconds for which a server caches it.
TOKENS, TOKENS_FOR = "tokens.json", 2.0


class Keyring:
    """The tokens for the memory in *root*, read from the user's own configuration in *path* whenever that changes."""

    def __init__(self, path: Path, root: Path) -> None:
        """Read *path*; raise Failed `invalid_config` if it cannot be read."""
        self._begin(OwnTokens(path, root))

    def _begin(self, storage: OwnTokens | SharedTokens) -> None:
        self._storage = storage
        #: Reports why the tokens cannot be read.
        self.on_fault: Callable[[JidomemError], object] = _report
        self._fault = ""  # the code of the reported one
        self._seen = storage.state()
        self._tokens, is_needed = storage.read()
        self._needs: MutableSequence[int] | memoryview = [is_needed]

    @property
    def is_needed(self) -> bool:
        """Return whether callers need a token; it stays True when the last token is revoked."""
        return bool(self._needs[0])

    @property
    def place(self) -> str:
        """Return the root and where its tokens are, for messages."""
        return f"of {self._storage.root} in {self._storage.place}"

    def share_need(self, flag: memoryview) -> None:
        """Use *flag*, one byte that other servers of the root share, for `is_needed`."""
        if self.is_needed:
            flag[0] = 1
        self._needs = flag

    @property
    def tokens(self) -> tuple[ApiToken, ...]:
        """Return the issued tokens."""
        self._catch_up()
        return self._tokens

    def issue(
        self, agent: str, role: str, projects: Sequence[str], sources: Sources, *, expires: datetime | None = None
    ) -> tuple[str, ApiToken]:
        """Issue a token, valid until *expires*, and return it with its record; only the record is stored.

        Raise InvalidRequest for an unknown role, NotFound `invalid_project`.
        """
        if role not in ROLES:
            raise InvalidRequest(f"{role!r:.200} is not a role of a token", hint=f"give one of: {', '.join(ROLES)}")
        for project in projects:
            if project != EVERY:
                Stream(project)
        secret = MARK + urlsafe_b64encode(sources.nonce()).rstrip(b"=").decode()
        reached = (EVERY,) if EVERY in projects else tuple(sorted(set(projects)))
        end = "" if expires is None else format_timestamp(expires)
        added = format_timestamp(sources.now())
        made = ApiToken(user_config.digest(secret), agent, role, reached, self._storage.root, added, end)
        self._storage.change(lambda tokens: (*tokens, made))
        return secret, made

    def revoke(self, name: str) -> ApiToken:
        """Revoke the token of that id and return its record; raises NotFound."""
        revoked: list[ApiToken] = []

        def without(tokens: tuple[ApiToken, ...]) -> tuple[ApiToken, ...]:
            revoked[:] = _named(tokens, name)
            return tuple(token for token in tokens if token not in revoked)

        self._storage.change(without)
        return revoked[0]

    def find(self, secret: str) -> ApiToken | None:
        """Return the record of the token *secret*, None if it is unknown or revoked.

        The comparison takes constant time. Raises Unauthenticated for an expired token, Failed if the tokens cannot
        be read.
        """
        self._catch_up()
        given = user_config.digest(secret)
        matches = [token for token in self._tokens if compare_digest(token.digest, given)]
        if matches and not matches[0].is_valid(now()):
            raise Unauthenticated(
                f"the token {matches[0].id} has expired ({matches[0].expires})",
                hint="ask the operator of the server for another one",
            )
        return matches[0] if matches else None

    def agents(self) -> set[str]:
        """Return the agents that have a token."""
        return {token.agent for token in self.tokens}

    def has(self, token: ApiToken) -> bool:
        """Return whether *token* is valid: neither revoked nor expired."""
        self._catch_up()
        return token in self._tokens and token.is_valid(now())

    def _catch_up(self) -> None:
        """Read the tokens again if they changed; raise Failed, without the reason, if that fails.

        The reason is reported once until they are read again: the caller may be anybody.
        """
        try:
            if (state := self._storage.state()) != self._seen:
                self._tokens, is_needed = self._storage.read()
                self._seen = state
                if is_needed:
                    self._needs[0] = 1
        except JidomemError as error:
            if error.code != self._fault:
                self._fault = error.code
                self.on_fault(error)
            raise Failed(
                "the tokens of this server cannot be read",
                hint="tell its operator: the reason is in its log",
                code="store_unreachable" if error.code == "store_unreachable" else "invalid_config",
            ) from error
        self._fault = ""

    def requires_token(self) -> bool:
        """Return whether a token is needed now."""
        self._catch_up()
        return self.is_needed


def _report(error: JidomemError) -> None:
    sys.stderr.write(f"jidomem: {error.detail} ({error.hint})\n")


class SharedKeyring(Keyring):
    """The tokens for a shared root, stored in its log: a change reaches every server within seconds."""

    def __init__(self, log: SharedLog) -> None:
        """Read the tokens in *log*; raises Failed if that is impossible."""
        self._begin(SharedTokens(log))


class OwnTokens:
    """The tokens for the memory in *root*, in the user's own configuration in *path*."""

    def __init__(self, path: Path, root: Path) -> None:
        self._path, self.root, self.place = path, str(root), str(path)

    def state(self) -> tuple[int, ...]:
        """Return the state of the file in the file system."""
        try:
            status = self._path.stat()
        except OSError:
            return ()
        return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_mode

    def read(self) -> tuple[tuple[ApiToken, ...], bool]:
        """Return the tokens of this memory, and whether there ever was one."""
        config = user_config.read(self._path)
        tokens = tuple(token for token in config.tokens if token.root == self.root)
        return tokens, bool(tokens) or self.root in config.closed

    def change(self, edit: Callable[[tuple[ApiToken, ...]], tuple[ApiToken, ...]]) -> None:
        """Replace the tokens of this memory by those that *edit* returns for them; it needs one from now on."""

        def changed(config: UserConfig) -> UserConfig:
            others = tuple(token for token in config.tokens if token.root != self.root)
            own = edit(tuple(token for token in config.tokens if token.root == self.root))
            return _with_tokens(replace(config, closed=(*config.closed, self.root)), (*others, *own))

        user_config.change(self._path, changed)


class SharedTokens:
    """The tokens for a shared root, in its log."""

    def __init__(self, log: SharedLog) -> None:
        self._log, self.root, self.place = log, log.name, f"its {TOKENS}"
        self._looked = (-TOKENS_FOR, "")

    def state(self) -> str:
        """Return the tag of the file with the tokens, at most TOKENS_FOR seconds old."""
        if monotonic() - self._looked[0] >= TOKENS_FOR:
            file = self._log.get(TOKENS)
            self._looked = monotonic(), file.tag if file is not None else ""
        return self._looked[1]

    def read(self) -> tuple[tuple[ApiToken, ...], bool]:
        """Return the tokens, and whether there ever was one: then there is a file of them."""
        tokens, tag = self._read()
        return tokens, tag is not None

    def change(self, edit: Callable[[tuple[ApiToken, ...]], tuple[ApiToken, ...]]) -> None:
        """Store the tokens after *edit*, which is repeated if another server changes them meanwhile."""
        while True:
            tokens, tag = self._read()
            data = json.dumps({"tokens": [asdict(token) for token in edit(tokens)]}, indent=0).encode()
            if self._log.put(TOKENS, data, tag) is not None:
                self._looked = (-TOKENS_FOR, "")
                return

    def _read(self) -> tuple[tuple[ApiToken, ...], str | None]:
        file = self._log.get(TOKENS)
        if file is None:
            return (), None
        try:
            tables = decode_json(file.data)["tokens"]
            return user_config.entries(ApiToken, tables, "tokens", TOKENS), file.tag
        except (ValueError, KeyError, TypeError) as error:
            raise Failed(
                f"{TOKENS} of {self._log.name} cannot be read: {error}",
                hint="restore it from a backup",
                code="invalid_config",
            ) from error


def revoke_token(path: Path, name: str) -> ApiToken:
    """Revoke the token of that id, for the only memory in a folder that has it, and return its record.

    Raises NotFound, and InvalidRequest if several have it, as after a move.
    """
    revoked: list[ApiToken] = []

    def without(config: UserConfig) -> UserConfig:
        revoked[:] = _named(config.tokens, name)
        if len(revoked) > 1:
            roots = [shlex.quote(token.root) for token in revoked]
            raise InvalidRequest(
                f"{len(roots)} roots have the token {name}: {', '.join(roots)}",
                hint="; ".join(f"jidomem access token remove {name} --root {root}" for root in roots),
            )
        return _with_tokens(config, tuple(token for token in config.tokens if token not in revoked))

    user_config.change(path, without)
    return revoked[0]


def _with_tokens(config: UserConfig, tokens: tuple[ApiToken, ...]) -> UserConfig:
    """Return *config* with other *tokens*; a root that loses its last one is closed until it gets another."""
    closed = {*config.closed, *(token.root for token in config.tokens)}.difference(token.root for token in tokens)
    return replace(config, tokens=tokens, closed=tuple(sorted(closed)))


def _named(tokens: tuple[ApiToken, ...], name: str) -> list[ApiToken]:
    """Return the tokens of that id, at least one; raises NotFound, with the ids if *name* is that of an agent."""
    matches = [token for token in tokens if token.id == name]
    if not matches:
        of_agent = [(token.id, shlex.quote(token.root)) for token in tokens if token.agent == name]
        if of_agent:
            hint = "; ".join(f"jidomem access token remove {known} --root {root}" for known, root in of_agent)
            raise NotFound(f"{name!r:.200} is an agent, not the id of a token", hint=hint)
        hint = did_you_mean(name, [token.id for token in tokens], "list the ids: jidomem access token list")
        raise NotFound(f"there is no token {name!r:.200}", hint=hint)
    return matches
