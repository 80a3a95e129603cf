"""A secret erased the way the system documents: do the bytes of any file of it still hold it?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

from bench.governance.figures import Found, Measure, Size
from bench.governance.process import Open, opened
from bench.governance.system import Fact, Unsupported

ERASED = Measure(
    "erasure",
    "erased texts still found in the bytes of a file, home and temporary folder included",
    "of the erased",
    "fewer",
)


def erasure(open_: Open, folder: Path, size: Size) -> Iterator[Found]:
    """Secrets among other facts, every second one replaced; read, restarted, erased, closed, then looked for."""
    chance = Random(size.seed)
    secrets = [f"{chance.getrandbits(96):024x}" for _ in range(size.facts)]
    others = [Fact(f"door {n} is green", f"colour of door {n}") for n in range(2 * size.facts)]
    with opened(open_, folder) as system:
        for n, secret in enumerate(secrets):
            system.keep(others[2 * n])
            kept = system.keep(Fact(f"the key is {secret}", f"key {n}")).id
            if n % 2:
                with suppress(Unsupported):  # it may have no way to replace, and still erase
                    system.replace(kept, Fact(f"key {n} is in the safe", f"key {n}", session="s-2"))
            system.keep(others[2 * n + 1])
        system.in_force()
        with suppress(Unsupported):
            for secret in secrets:
                system.search(secret)
    with opened(open_, folder) as system:
        held = _holding(folder, secrets)
        for secret in secrets:
            system.erase(secret)
        texts = {entry.text for entry in system.in_force()}
    left = _holding(folder, secrets)
    counts = {
        "replaced before": sum(secret in left for secret in secrets[1::2]),
        "in force": sum(secret in left for secret in secrets[::2]),
        "files that held them": sorted(set().union(*held.values())),
        "files that hold them": sorted(set().union(*left.values())),
        "other facts gone": len({fact.text for fact in others} - texts),
    }
    yield Found(ERASED, [len(left)], [len(secrets)], counts)


def _holding(folder: Path, secrets: list[str]) -> dict[str, set[str]]:
    """Return which secrets are in the bytes of which files below *folder*."""
    found: dict[str, set[str]] = {}
    for path in (path for path in folder.rglob("*") if path.is_file()):
        held = path.read_bytes()
        for secret in secrets:
            if secret.encode() in held:
                found.setdefault(secret, set()).add(path.relative_to(folder).as_posix())
    return found
