"""The leaves of a commit, one salted digest for each triple, and the id that stands for them.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b


def leaves_of(lines: Iterable[str], nonce: bytes) -> list[bytes]:
    """Return the leaf of each digest line."""
    leaves, keyed = [], blake2b(digest_size=32, key=nonce)
    for line in lines:
        data, salt = line.encode(), keyed.copy()
        salt.update(data)
        leaves.append(blake2b(data, digest_size=32, key=salt.digest()).digest())
    return leaves


def identity_of(parents: Sequence[str], leaves: Sequence[bytes]) -> str:
    """Return the id over sorted parents and leaves."""
    digest = blake2b(b"jidomem commit 1\n", digest_size=32)
    digest.update(len(parents).to_bytes(8, "big") + b"".join(map(bytes.fromhex, sorted(parents))))
    digest.update(len(leaves).to_bytes(8, "big") + b"".join(sorted(leaves)))
    return digest.hexdigest()
