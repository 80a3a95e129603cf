"""A secret erased the way the system documents: do the bytes of any file of it still hold it, or its vector?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from bench.governance.figures import Measure, Measured, Size
from bench.governance.process import Open, opened
from bench.governance.system import Fact, Unsupported
from bench.governance.vectors import traces

ERASED = Measure(
    "erasure",
    "erased texts still found in the bytes of a file, home and temporary folder included",
    "of the erased",
    "fewer",
)
VECTORS = Measure(
    "erasure", "erased texts whose vectors, kept to search by, are still found there", "of the erased", "fewer"
)
Traces = Mapping[str, Sequence[bytes]]


def erasure(open_: Open, folder: Path, size: Size) -> Iterator[Measured]:
    """Secrets among other facts, every second one replaced; read, restarted, erased, closed, then looked for.

    Once more in another folder, where vectors are kept, those are looked for.
    """
    chance = Random(size.seed)
    secrets = [f"{chance.getrandbits(96):024x}" for _ in range(size.facts)]
    yield _erased(ERASED, open_, folder, {secret: [secret.encode()] for secret in secrets})
    other = folder / "vectors"
    other.mkdir()
    yield _erased(VECTORS, _embedding(open_), other, {secret: traces(secret) for secret in secrets})


def _embedding(open_: Open) -> Open:
    """Return what opens a system that keeps vectors; there it raises `Unsupported` where the system has none."""

    def embedding(folder: Path) -> Any:
        system = open_(folder)
        try:
            system.embed()
        except BaseException:
            system.close()
            raise
        return system

    return embedding


def _erased(measure: Measure, open_: Open, folder: Path, traces: Traces) -> Measured:
    """Return in how many of the secrets that are erased one of its *traces* is left."""
    secrets = [*traces]
    others = [Fact(f"door {n} is green", f"colour of door {n}") for n in range(2 * len(secrets))]
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
        held = _holding(folder, traces)
        if unseen := {*secrets[::2]} - held.keys():  # or none would be found afterwards, whatever is left
            raise ValueError(
                f"{len(unseen)} of {len(secrets)} are in no file before they are erased, as far as is seen"
            )
        for secret in secrets:
            system.erase(secret)
        texts = {entry.text for entry in system.in_force()}
    left = _holding(folder, traces)
    counts = {
        "replaced before": sum(secret in left for secret in secrets[1::2]),
        "active": sum(secret in left for secret in secrets[::2]),
        "files that held them": sorted(set().union(*held.values())),
        "files that hold them": sorted(set().union(*left.values())),
        "other facts gone": len({fact.text for fact in others} - texts),
    }
    return Measured(measure, [len(left)], [len(secrets)], counts)


def _holding(folder: Path, traces: Traces) -> dict[str, set[str]]:
    """Return which secrets have a trace in the bytes of which files below *folder*."""
    found: dict[str, set[str]] = {}
    for path in (path for path in folder.rglob("*") if path.is_file()):
        held = path.read_bytes()
        for secret, shown in traces.items():
            if any(each in held for each in shown):
                found.setdefault(secret, set()).add(path.relative_to(folder).as_posix())
    return found
