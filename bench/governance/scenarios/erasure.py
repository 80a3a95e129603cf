"""Erasure: a secret is erased as the system documents it; is the text, or its vector, still in the bytes of a file?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from bench.governance.figures import Measure, Result, Workload
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
    "erasure", "erased texts whose vectors, stored for search, are still found there", "of the erased", "fewer"
)
Traces = Mapping[str, Sequence[bytes]]


def erasure(open_system: Open, folder: Path, size: Workload) -> Iterator[Result]:
    """Store secrets among other facts, replace every second one, restart, erase them, close, and search the files.

    The second result is of another folder with vectors, which are searched for in place of the texts.
    """
    random = Random(size.seed)
    secrets = [f"{random.getrandbits(96):024x}" for _ in range(size.facts)]
    yield _erased(ERASED, open_system, folder, {secret: [secret.encode()] for secret in secrets})
    other = folder / "vectors"
    other.mkdir()
    yield _erased(VECTORS, _embedding(open_system), other, {secret: traces(secret) for secret in secrets})


def _embedding(open_system: Open) -> Open:
    """Return *open_system* with vectors, which raises `Unsupported` if the system has none."""

    def embedding(folder: Path) -> Any:
        system = open_system(folder)
        try:
            system.embed()
        except BaseException:
            system.close()
            raise
        return system

    return embedding


def _erased(measure: Measure, open_system: Open, folder: Path, traces: Traces) -> Result:
    """Return the number of erased secrets of which one of the *traces* is left."""
    secrets = [*traces]
    others = [Fact(f"door {n} is green", f"colour of door {n}") for n in range(2 * len(secrets))]
    with opened(open_system, folder) as system:
        for n, secret in enumerate(secrets):
            system.store(others[2 * n])
            entry = system.store(Fact(f"the key is {secret}", f"key {n}")).id
            if n % 2:
                with suppress(Unsupported):  # it may be able to erase, but not to replace
                    system.replace(entry, Fact(f"key {n} is in the safe", f"key {n}", session="s-2"))
            system.store(others[2 * n + 1])
        system.active_entries()
        with suppress(Unsupported):
            for secret in secrets:
                system.search(secret)
    with opened(open_system, folder) as system:
        before = _files_with_traces(folder, traces)
        if undetected := {*secrets[::2]} - before.keys():  # else none would be found afterwards, whatever is left
            message = f"{len(undetected)} of {len(secrets)} are in no file before they are erased"
            raise ValueError(f"{message}: their traces do not match the format")
        for secret in secrets:
            system.erase(secret)
        texts = {entry.text for entry in system.active_entries()}
    after = _files_with_traces(folder, traces)
    counts = {
        "replaced before": sum(secret in after for secret in secrets[1::2]),
        "active": sum(secret in after for secret in secrets[::2]),
        "files before": sorted(set().union(*before.values())),
        "files after": sorted(set().union(*after.values())),
        "other facts missing": len({fact.text for fact in others} - texts),
    }
    return Result(measure, [len(after)], [len(secrets)], counts)


def _files_with_traces(folder: Path, traces: Traces) -> dict[str, set[str]]:
    """Return the files below *folder* that contain a trace, by secret."""
    files: dict[str, set[str]] = {}
    for path in (path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        for secret, runs in traces.items():
            if any(each in content for each in runs):
                files.setdefault(secret, set()).add(path.relative_to(folder).as_posix())
    return files
