"""The records of other tools in a repository: decisions, notes, graphs and issues."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import dirname, normpath
from shlex import quote
from typing import NamedTuple

from jidomem.base.containers import grouped
from jidomem.base.json_values import decode_json
from jidomem.errors import InvalidRequest
from jidomem.records.file_anchor import path_of
from jidomem.repository import record_files
from jidomem.repository.record_files import RecordLikelihood
from jidomem.repository.worktree import FileListing, listing, plain_file

ADR, NOTES, GRAPH, ISSUES = "adr", "memory-md", "mcp-memory", "beads"
SOURCE_KINDS: Mapping[str, str] = {
    ADR: "decision records",
    NOTES: "notes for agents",
    GRAPH: "graph of the MCP memory server",
    ISSUES: "issues of beads",
}
#: The largest file, and the most files, of a kind that are imported.
LARGEST: Mapping[str, int] = {ADR: 1024**2, NOTES: 1024**2, GRAPH: 64 * 1024**2, ISSUES: 64 * 1024**2}
MOST: Mapping[str, int] = {ADR: 2_000, NOTES: 500, GRAPH: 500, ISSUES: 500}
_NOTES = re.compile(
    r"(?:^|/)(?:(?:CLAUDE|AGENTS?|GEMINI|MEMORY)\.md|\.(?:cursor|windsurf|cline)rules|\.cursor/rules/.+\.mdc?"
    r"|\.(?:claude|windsurf)/rules/.+\.md|\.github/(?:copilot-instructions|instructions/.+\.instructions)\.md)$"
)
#: Pages for people, some of whose rules are for agents too: named, and imported only if the user names them.
_FOR_PEOPLE = re.compile(r"(?:\.github/|docs/)?CONTRIBUTING\.(?:md|markdown)", re.IGNORECASE)
_GRAPH = re.compile(r"(?:^|/)memory\.jsonl?$")
_ISSUES = re.compile(r"(?:^|/)\.beads/issues\.jsonl$")
#: The configuration files of clients, which may name the graph of a memory server.
_CLIENTS = (".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", ".gemini/settings.json", ".codex/config.toml",
            ".roo/mcp.json", "opencode.json")  # fmt: skip
_FOLDER_IN: Mapping[str, str] = {".adr-dir": r"\A\s*(\S.*)", ".log4brains.yml": r"(?m)^\s*adrFolder:\s*(\S+)"}
_MEMORY_FILE = re.compile(r"""["']?MEMORY_FILE_PATH["']?\s*[:=]\s*("(?:[^"\\]|\\.)*")""")
_WORKSPACE_PREFIX = re.compile(r"\$\{(?:workspaceFolder|workspaceRoot|CLAUDE_PROJECT_DIR)(?::-[^}]*)?\}/?|^\./")
#: The characters that no path of a memory has: control characters, and bytes that are not UTF-8.
_UNNAMED = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_SAMPLES = "in a folder of samples or third parties"
#: The reasons for skipping files that are listed last.
DULL = (record_files.TEMPLATE, record_files.INDEX, _SAMPLES)
#: The largest page that is read to determine whether it is a record.
_READ = 256 * 1024
#: Notes that are usually personal, and ignored by git.
_OWN = ("CLAUDE.local.md", "CLAUDE.md", "AGENTS.md", "GEMINI.md", "MEMORY.md", ".cursorrules", "memory.jsonl",
        "memory.json", ".beads/issues.jsonl")  # fmt: skip


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """Files of one kind that are imported together: a folder of decision records, or one file; path and contents."""

    kind: str
    path: str
    files: tuple[tuple[str, bytes], ...]


class SkippedPath(NamedTuple):
    """A path that was skipped, and the reason."""

    path: str
    why: str


@dataclass(slots=True)
class FolderScan:
    """The result of scanning a folder."""

    sources: list[SourceFiles] = field(default_factory=list)
    passed: list[SkippedPath] = field(default_factory=list)
    is_whole: bool = True


def scan_folder(base: Path, kinds: Collection[str] = tuple(SOURCE_KINDS)) -> FolderScan:
    """Return the records of these *kinds* in the repository *base*, each with its content; links are not followed."""
    base = base.resolve()
    listed = listing(base)
    scan = FolderScan(is_whole=listed.is_whole)
    by_kind: dict[str, list[str]] = {kind: [] for kind in SOURCE_KINDS if kind in kinds}
    samples, pages = dict[str, int](), list[str]()
    for path in listed.paths:
        kind = _kind_by_name(path)
        if kind is None:
            pages.append(path)
        elif kind in by_kind and (sample := _sample(path, kind)):
            samples[sample] = samples.get(sample, 0) + 1
        elif kind in by_kind:
            by_kind[kind].append(path)
    if NOTES in by_kind:
        guides = filter(_FOR_PEOPLE.fullmatch, pages)
        scan.passed += [
            SkippedPath(path, f"a guide for people; to import it: jidomem init --from {path}") for path in guides
        ]
    if ADR in by_kind:
        by_kind[ADR] = _records(base, pages, scan)
    if GRAPH in by_kind:
        by_kind[GRAPH] += _graphs(base, by_kind[GRAPH], scan)
    for kind, paths in by_kind.items():
        _read(base, kind, paths, scan)
    scan.passed += [
        SkippedPath(folder, f"{count} files of samples or third parties") for folder, count in samples.items()
    ]
    scan.passed += _ignored(base, listed, by_kind)
    return scan


def _records(base: Path, paths: Sequence[str], scan: FolderScan) -> list[str]:
    own, folders = list[str](), tuple(_named_folders(base))
    for path in paths:
        if _sample(path, ADR) is None:
            own.append(path)
        elif record_files.judge(path, folders)[0] in (RecordLikelihood.CERTAIN, RecordLikelihood.LIKELY):
            scan.passed.append(SkippedPath(path, _SAMPLES))
    survey = record_files.survey(own, folders)
    scan.passed += [SkippedPath(path, why) for path, why in survey.passed]
    read = []
    for path in survey.possible[: MOST[ADR]]:
        text = (plain_file(base / path, _READ) or b"").decode("utf-8", "replace")
        if record_files.reads_like_record(text):
            read.append(path)
        elif record_files.is_proposal(path):
            scan.passed.append(SkippedPath(path, "a design proposal, not a decision record"))
    return [*survey.records, *read]


def from_path(base: Path, path: Path) -> FolderScan:
    """Return the records in the file or folder *path* named by the user; every page of such a folder is a record.

    Raises InvalidRequest for a path outside *base* or behind a link.
    """
    base, scan = base.resolve(), FolderScan()
    whole = path.absolute()
    if path.resolve() != whole or not whole.is_relative_to(base):
        hint = f"a file from elsewhere: jidomem root import adr|memory-md|mcp-memory|beads {quote(str(path))}"
        raise InvalidRequest(f"{path} is outside {base}, or is a link", hint=hint)
    name = whole.relative_to(base).as_posix()
    if whole.is_dir():
        paths = [f"{name}/{each}" for each in listing(whole).paths]
        survey = record_files.survey((path for path in paths if _kind_by_name(path) is None), (name,))
        scan.passed += [SkippedPath(path, why) for path, why in survey.passed]
        for each_kind in SOURCE_KINDS:
            some = [path for path in paths if _kind_by_name(path) == each_kind]
            _read(base, each_kind, survey.records if each_kind == ADR else some, scan)
        return scan
    data = plain_file(whole, LARGEST[GRAPH])
    kind = kind_of(name) or (None if data is None else _kind_by_content(name, data))
    if data is None or kind is None:
        scan.passed.append(SkippedPath(name, "no decision record, notes, graph or issues"))
    else:
        scan.sources.append(SourceFiles(kind, dirname(name) if kind == ADR else name, ((name, data),)))
    return scan


def _kind_by_content(name: str, data: bytes) -> str | None:
    if name.endswith((".md", ".mdc", ".markdown", ".txt")):
        return ADR if re.search(rb"^#+\s*decision", data, re.IGNORECASE | re.MULTILINE) else NOTES
    if is_graph(data):
        return GRAPH
    return ISSUES if name.endswith(".jsonl") and b'"title"' in data else None


def kind_of(path: str) -> str | None:
    """Return the kind of memory in a file with this path, or None.

    >>> kind_of("docs/adr/0001-use-a-queue.md"), kind_of("web/AGENTS.md"), kind_of("docs/adr/README.md")
    ('adr', 'memory-md', None)
    """
    is_record = record_files.judge(path)[0] in (RecordLikelihood.CERTAIN, RecordLikelihood.LIKELY)
    return _kind_by_name(path) or (ADR if is_record else None)


def _kind_by_name(path: str) -> str | None:
    if _NOTES.search(path):
        return NOTES
    return GRAPH if _GRAPH.search(path) else ISSUES if _ISSUES.search(path) else None


def is_graph(data: bytes) -> bool:
    """Return whether a file is a graph of the memory server: JSON lines of entities and relations, or one object."""
    first = next((line for line in data.split(b"\n") if line.strip()), b"")
    try:
        value = decode_json(first)
    except ValueError:
        return b'"entities"' in data[:4096] and data.lstrip()[:1] == b"{"
    return isinstance(value, dict) and (value.get("type") in ("entity", "relation") or "entities" in value)


def _named_folders(base: Path) -> Iterator[str]:
    for name, pattern in _FOLDER_IN.items():
        text = (plain_file(base / name, 4096) or b"").decode("utf-8", "replace")
        yield from filter(None, (path_of(folder.strip("\"' ")) for folder in re.findall(pattern, text)))


def _sample(path: str, kind: str) -> str | None:
    """Return the folder of samples that contains *path*; notes directly in such a folder are about it."""
    folder = dirname(path)
    return record_files.sample_folder(dirname(folder) if kind == NOTES else folder)


def _graphs(base: Path, known: Sequence[str], scan: FolderScan) -> Iterator[str]:
    known_paths = set(known)
    for client in _CLIENTS:
        text = (plain_file(base / client) or b"").decode("utf-8", "replace")
        for quoted in _MEMORY_FILE.findall(text):
            given = _WORKSPACE_PREFIX.sub("", _unquoted(quoted))
            inside = given.removeprefix(f"{base}/")
            path = path_of(inside)
            if not given:
                continue
            if path is None:
                scan.passed.append(SkippedPath(given, f"named by {client}, and outside the repository"))
            elif path not in known_paths and os.path.lexists(base / path):
                known_paths.add(path)
                yield path


def _unquoted(path: str) -> str:
    """Return a quoted text decoded as JSON, or without its quotes if it is not JSON, as with a single backslash."""
    try:
        return str(decode_json(path))
    except ValueError:
        return path[1:-1]


def _read(base: Path, kind: str, paths: Sequence[str], scan: FolderScan) -> None:
    taken: dict[bytes, str] = {}
    files: list[tuple[str, bytes]] = []
    most = MOST[kind]
    for path in sorted(paths)[:most]:
        if _UNNAMED.search(path):
            scan.passed.append(SkippedPath(ascii(path)[1:-1], "its name is not valid text: rename it"))
            continue
        data = plain_file(base / path, LARGEST[kind])
        if data is None and not os.path.lexists(base / path):
            continue  # removed, but still in the index of git
        if data is None:
            scan.passed.append(SkippedPath(path, _why_not(base, path, LARGEST[kind])))
        elif kind == NOTES and data in taken:
            scan.passed.append(SkippedPath(path, f"same content as {taken[data]}"))
        elif kind != GRAPH or is_graph(data):
            taken[data] = path
            files.append((path, data))
    if len(paths) > most:
        folder = dirname(sorted(paths)[most]) or "."
        scan.passed.append(SkippedPath(folder, f"{len(paths) - most} files beyond the first {most}"))
    if kind == ADR:
        folders = grouped((record_files.folder_of(file[0]), file) for file in files)
        scan.sources += [SourceFiles(kind, folder, tuple(some)) for folder, some in folders.items()]
    else:
        scan.sources += [SourceFiles(kind, path, ((path, data),)) for path, data in files]


def _why_not(base: Path, path: str, largest: int) -> str:
    whole = base / path
    real = Path(os.path.realpath(whole))
    if real != whole:
        return f"a link to {real.relative_to(base)}" if real.is_relative_to(base) else "a link out of the repository"
    try:
        return f"more than {largest // 1024**2} MiB" if whole.stat().st_size > largest else "not a readable file"
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _ignored(base: Path, listed: FileListing, kinds: Collection[str]) -> Iterator[SkippedPath]:
    """Yield the notes at the top that git ignores: imported, they would be committed with the memory."""
    for path in _OWN if listed.by_git else ():
        kind = NOTES if path == "CLAUDE.local.md" else kind_of(path)
        if kind in kinds and path not in listed.paths and os.path.lexists(base / normpath(path)):
            yield SkippedPath(path, "git ignores it, and imported memories are committed")
