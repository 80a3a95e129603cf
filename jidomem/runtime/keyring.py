"""The tokens of one root: given out, taken back, and asked for whoever speaks with one; no restart in between."""

from __future__ import annotations

import sys
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from hmac import compare_digest
from pathlib import Path

from jidomem.clock import Sources
from jidomem.errors import Failed, InvalidRequest, JidomemError, NotFound
from jidomem.journal.files import Stream
from jidomem.moments import stamp
from jidomem.runtime import own
from jidomem.runtime.own import EVERY, ROLES, Own, Token

#: How a token begins, so that who finds one knows what it is.
MARK = "jido_"


class Keyring:
    """The tokens for the memory in *root*, as the user's own configuration in *path* has them at any moment."""

    def __init__(self, path: Path, root: Path) -> None:
        """Read *path*; raises Failed `invalid_config` where it cannot be."""
        self._path = path
        self._root = str(root)
        self._seen = self._look()
        self._tokens = self._read()
        #: Whether nobody is let in without one. It stays so when the last is taken back: that opens no door.
        self.is_needed = bool(self._tokens)

    def give_out(self, agent: str, role: str, projects: Sequence[str], sources: Sources) -> tuple[str, Token]:
        """Return a new token, which is told to nobody ever again, and what is kept of it.

        Raises InvalidRequest for a role there is not, NotFound `invalid_project`.
        """
        if role not in ROLES:
            raise InvalidRequest(f"{role!r} is no role of a token", hint=f"give one of: {', '.join(ROLES)}")
        for project in projects:
            if project != EVERY:
                Stream(project)
        secret = MARK + urlsafe_b64encode(sources.nonce()).rstrip(b"=").decode()
        reached = (EVERY,) if EVERY in projects else tuple(sorted(set(projects)))
        made = Token(own.digest(secret), agent, role, reached, self._root, stamp(sources.now()))
        own.change(self._path, lambda said: replace(said, tokens=(*said.tokens, made)))
        return secret, made

    def whose(self, secret: str) -> Token | None:
        """Return the token that *secret* is, None where it is none (any more).

        Each one there is is compared with, in a time that tells nothing. Raises Failed where they cannot be read.
        """
        self._catch_up()
        given = own.digest(secret)
        found = [token for token in self._tokens if compare_digest(token.digest, given)]
        return found[0] if found else None

    def has(self, token: Token) -> bool:
        """Return whether *token* is one still."""
        self._catch_up()
        return token in self._tokens

    def _catch_up(self) -> None:
        """Take in what has changed since; what cannot be read lets nobody in, and its reason is for standard error."""
        now = self._look()
        if now == self._seen:
            return
        try:
            self._tokens = self._read()
        except JidomemError as error:
            sys.stderr.write(f"jidomem: {error.detail} ({error.hint})\n")
            raise Failed(
                "the tokens of this server cannot be read",
                hint="its standard error says why",
                code="invalid_config",
            ) from error
        self._seen = now
        self.is_needed = self.is_needed or bool(self._tokens)

    def asks(self) -> bool:
        """Return whether a token is needed by now."""
        self._catch_up()
        return self.is_needed

    def _read(self) -> tuple[Token, ...]:
        return tuple(token for token in own.read(self._path).tokens if token.root == self._root)

    def _look(self) -> tuple[int, ...]:
        try:
            status = self._path.stat()
        except OSError:
            return ()
        return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_mode


def take_back(path: Path, name: str) -> Token:
    """Return the token of that id, which is none from now on; raises NotFound."""
    found: list[Token] = []

    def without(said: Own) -> Own:
        found.extend(token for token in said.tokens if token.id == name)
        if not found:
            known = [token.id for token in said.tokens]
            near = get_close_matches(name, known, n=1) or known
            raise NotFound(f"there is no token {name!r}", hint=f"there is {', '.join(near) or 'none'}")
        return replace(said, tokens=tuple(token for token in said.tokens if token not in found))

    own.change(path, without)
    return found[0]
