"""HTTP Digest (RFC 7616), as who asks answers it: a login that no request carries in clear."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from secrets import token_hex
from threading import Lock

_FIELD = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,]+))')
_HASHES = {"MD5": "md5", "SHA-256": "sha256"}


class Digest:
    """What a server asked for, answered for each request with a count of its own; any thread may."""

    def __init__(self, said: Mapping[str, str], user: str, password: str) -> None:
        """Answer what the fields *said* ask for, as *user*."""
        self._said, self._user, self._password = said, user, password
        self._count = 0
        self._lock = Lock()

    @classmethod
    def of(cls, challenges: Iterable[str], user: str, password: str) -> Digest | None:
        """Return the answer to the first of *challenges* that can be answered, None where there is none."""
        for challenge in challenges:
            _, scheme, rest = challenge.partition("Digest ")
            said = {name.lower(): quoted or plain for name, quoted, plain in _FIELD.findall(rest)}
            modes = re.split(r"[\s,]+", said.get("qop", ""))
            if scheme and "nonce" in said and said.get("algorithm", "MD5") in _HASHES and modes != ["auth-int"]:
                return cls({**said, "qop": "auth" if "auth" in modes else ""}, user, password)
        return None

    def header(self, method: str, target: str, once: str | None = None) -> str:
        """Return what stands in Authorization of a request; *once* is a text that is used for no other."""
        with self._lock:
            self._count += 1
            count, once = f"{self._count:08x}", once or token_hex(16)
        said, mode = self._said, self._said["qop"]
        realm, nonce = said.get("realm", ""), said["nonce"]
        who, what = self._hash(f"{self._user}:{realm}:{self._password}"), self._hash(f"{method}:{target}")
        middle = f"{nonce}:{count}:{once}:{mode}" if mode else nonce
        quoted = {"username": self._user, "realm": realm, "nonce": nonce, "uri": target}
        quoted |= {"response": self._hash(f"{who}:{middle}:{what}")}
        quoted |= {"opaque": said["opaque"]} if "opaque" in said else {}
        plain = {"algorithm": said["algorithm"]} if "algorithm" in said else {}
        if mode:
            quoted["cnonce"] = once
            plain |= {"qop": mode, "nc": count}
        fields = [f'{name}="{value}"' for name, value in quoted.items()]
        return "Digest " + ", ".join([*fields, *(f"{name}={value}" for name, value in plain.items())])

    def _hash(self, text: str) -> str:
        kind = _HASHES[self._said.get("algorithm", "MD5")]
        return hashlib.new(kind, text.encode(), usedforsecurity=False).hexdigest()
