"""The memory tool of Claude (`memory_20250818`), with its files stored as entries of an agent.

    from jidomem.adapters.claude_memory import ClaudeMemory
    client.beta.messages.tool_runner(..., tools=[ClaudeMemory(memory)])

`Files` are the files as a value, and the six commands are functions on it. Their answers are those of the reference in
Anthropic's SDK, word for word. A command raises `CommandError` if it cannot be executed, for example for a path that
does not exist.
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from jidomem.errors import Failed, JidomemError
from jidomem.read.conversations import CachedEntries
from jidomem.records.entry import Entry
from jidomem.runtime.agent_memory import agent_of
from jidomem.runtime.root import Jidomem
from jidomem.write.conversation import EntryChanges

ROOT = "/memories"
#: The size of a folder on most file systems.
_FOLDER = 4096
_DEEPEST, _MOST_LINES = 2, 999_999
_WIDTH = len(str(_MOST_LINES))
#: A name above the root, which no path can have.
_ABOVE = "/\0"


class CommandError(Exception):
    """A command that cannot be executed; the message is for the model."""


@dataclass(frozen=True, slots=True)
class Files:
    """The content of the folder: `texts` by their paths from the root, and the empty folders."""

    texts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    empty: frozenset[str] = frozenset()

    @classmethod
    def of(cls, texts: Mapping[str, str], folders: Iterable[str]) -> Files:
        """Return the files with *texts*, and those of *folders* that are empty."""
        above = {*_above(texts)}
        every = {*folders} | {*_above(folders)}
        return cls(MappingProxyType(dict(texts)), frozenset(every - above - {*_above(every)} - {""}))

    @property
    def folders(self) -> set[str]:
        """Return all folders; the root is the empty text."""
        return {"", *self.empty, *_above([*self.texts, *self.empty])}

    def has(self, path: str) -> bool:
        """Return whether there is a file or a folder at *path*."""
        return path in self.texts or path in self.folders


def view(files: Files, path: str, lines: Sequence[int] | None = None) -> str:
    """Return a file with numbered lines, limited to *lines* (first, last; -1 is the end), or the list of a folder."""
    place = resolved(path)
    if place in files.folders:
        return _listed(files, place, path)
    if place not in files.texts:
        raise CommandError(f"The path {path} does not exist. Please provide a valid path.")
    all_lines = files.texts[place].split("\n")
    if len(all_lines) > _MOST_LINES:
        raise CommandError(f"File {path} exceeds maximum line limit of {_MOST_LINES:,} lines.")
    first, last = 0, len(all_lines)
    if lines and len(lines) == 2:
        first, last = max(1, lines[0]) - 1, len(all_lines) if lines[1] == -1 else lines[1]
    shown = "\n".join(_numbered(all_lines[first:last], first + 1))
    return f"Here's the content of {path} with line numbers:\n{shown}"


def create(files: Files, path: str, text: str) -> tuple[Files, str]:
    """Return the files with a new one, and the message."""
    place = resolved(path)
    if files.has(place):
        raise CommandError(f"File {path} already exists")
    _check_above(files, place, path)
    return Files.of({**files.texts, place: text}, files.empty), f"File created successfully at: {path}"


def replace(files: Files, path: str, old: str, new: str) -> tuple[Files, str]:
    """Return the files with the only occurrence of *old* in one replaced by *new*, and the lines around it."""
    place, text = _read_file(files, path)
    count = text.count(old)
    if count == 0:
        raise CommandError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
    if count > 1:
        line_numbers = ", ".join(map(str, _lines_with(text, old)))
        problem = f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {line_numbers}."
        raise CommandError(f"{problem} Please ensure it is unique")
    line = text[: text.find(old)].count("\n")
    after = text.replace(old, new)
    first = max(0, line - 2)
    snippet = "\n".join(_numbered(after.split("\n")[first : line + 3], first + 1))
    message = f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{snippet}"
    return Files.of({**files.texts, place: after}, files.empty), message


def insert(files: Files, path: str, line: int, text: str) -> tuple[Files, str]:
    """Return the files with *text* inserted after *line* of one (0 is its beginning), and the message."""
    place, before = _read_file(files, path)
    lines = before.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not 0 <= line <= len(lines):
        problem = f"Invalid `insert_line` parameter: {line}."
        raise CommandError(f"{problem} It should be within the range [0, {len(lines)}].")
    after = "\n".join([*lines[:line], text.rstrip("\n"), *lines[line:]])
    ended = after if after.endswith("\n") else after + "\n"
    return Files.of({**files.texts, place: ended}, files.empty), f"The file {path} has been edited."


def delete(files: Files, path: str) -> tuple[Files, str]:
    """Return the files without one, or without a folder and its content, and the message."""
    place = resolved(path)
    if not place:
        raise CommandError(f"Cannot delete the {ROOT} directory itself")
    if not files.has(place):
        raise CommandError(f"The path {path} does not exist")
    texts = {name: text for name, text in files.texts.items() if not _is_in(name, place)}
    folders = [name for name in files.folders if not _is_in(name, place)]
    return Files.of(texts, folders), f"Successfully deleted {path}"


def rename(files: Files, path: str, new: str) -> tuple[Files, str]:
    """Return the files with a file, or a folder and its content, moved to the path *new*, and the message."""
    place, target = resolved(path), resolved(new)
    if not place:
        raise CommandError(f"Cannot rename the {ROOT} directory itself")
    if files.has(target):
        raise CommandError(f"The destination {new} already exists")
    if not files.has(place):
        raise CommandError(f"The path {path} does not exist")
    _check_above(files, target, new)
    if _is_in(target, place):
        raise CommandError(f"The path {path} cannot be renamed to {new}, which is below it")
    texts = {_moved(name, place, target): text for name, text in files.texts.items()}
    folders = [_moved(name, place, target) for name in files.folders]
    return Files.of(texts, folders), f"Successfully renamed {path} to {new}"


def origin(name: str, path: str, new: str) -> str | None:
    """Return the path of *name* before the move from *path* to *new*; None if it was not moved."""
    place, target = resolved(path), resolved(new)
    return _moved(name, target, place) if _is_in(name, target) else None


def resolved(path: str) -> str:
    """Return a path of the tool relative to the root, empty for the root itself; raises CommandError for others.

    >>> resolved("/memories/notes/../plan.md")
    'plan.md'
    """
    if not path.startswith(ROOT):
        raise CommandError(f"Path must start with {ROOT}, got: {path}")
    if "\0" in path:
        raise CommandError(f"Path {path!r} has a NUL, which a file name cannot have")
    top = _ABOVE + ROOT
    place = posixpath.normpath(f"{top}/{path[len(ROOT) :].lstrip('/')}")
    if place != top and not place.startswith(top + "/"):
        raise CommandError(f"Path {path} would escape {ROOT} directory")
    return place[len(top) + 1 :]


def _read_file(files: Files, path: str) -> tuple[str, str]:
    place = resolved(path)
    if place in files.texts:
        return place, files.texts[place]
    if place in files.folders:
        raise CommandError(f"The path {path} is not a file.")
    raise CommandError(f"The path {path} does not exist. Please provide a valid path.")


def _check_above(files: Files, place: str, path: str) -> None:
    for above in _above([place]):
        if above in files.texts:
            raise CommandError(f"The path {path} is below {ROOT}/{above}, which is a file")


def _listed(files: Files, place: str, path: str) -> str:
    head = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
    rows = [(_size(_FOLDER), path), *((size, f"{path}/{name}") for size, name in _below(files, place))]
    return "\n".join([head, *(f"{size}\t{name}" for size, name in rows)])


def _below(files: Files, place: str, folder: str = "", depth: int = 1) -> Iterator[tuple[str, str]]:
    """Yield the size and the name of the content of a folder and its subfolders, except hidden files."""
    start = f"{place}/" if place else ""
    folders = files.folders
    names = {name[len(start) :].partition("/")[0] for name in (*files.texts, *folders) if name.startswith(start)}
    for name in sorted(name for name in names if name and not name.startswith(".")):
        inner, path = start + name, f"{folder}/{name}" if folder else name
        if inner in folders:
            yield _size(_FOLDER), f"{path}/"
            if depth < _DEEPEST:
                yield from _below(files, inner, path, depth + 1)
        else:
            yield _size(len(files.texts[inner].encode())), path


def _size(size: int) -> str:
    """Return a number of bytes in readable form.

    >>> [_size(0), _size(700), _size(1536), _size(4096)]
    ['0B', '700B', '1.5K', '4K']
    """
    power = min(max(size.bit_length() - 1, 0) // 10, 3)
    value = size / 1024**power
    return f"{int(value) if value == int(value) else format(value, '.1f')}{'BKMG'[power]}"


def _numbered(lines: Sequence[str], first: int) -> list[str]:
    return [f"{number:>{_WIDTH}}\t{line}" for number, line in enumerate(lines, first)]


def _lines_with(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at != -1:
        yield text[:at].count("\n") + 1
        at = text.find(part, at + 1)


def _is_in(name: str, place: str) -> bool:
    return name == place or name.startswith(f"{place}/")


def _moved(name: str, place: str, target: str) -> str:
    return target + name[len(place) :] if _is_in(name, place) else name


def _above(places: Iterable[str]) -> Iterator[str]:
    for place in places:
        parts = place.split("/")[:-1]
        yield from ("/".join(parts[: end + 1]) for end in range(len(parts)))


try:
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
except ImportError as error:
    raise Failed(
        f"the Anthropic SDK is not installed ({error})", hint="pip install 'jidomem[anthropic]'", code="missing_extra"
    ) from error

#: The `source` in the metadata of its entries.
SOURCE = "claude_memory"

#: The required arguments of each command; `view_range` of `view` may be missing.
_ARGUMENTS: Mapping[str, Mapping[str, type]] = {
    "view": {"path": str},
    "create": {"path": str, "file_text": str},
    "str_replace": {"path": str, "old_str": str, "new_str": str},
    "insert": {"path": str, "insert_line": int, "insert_text": str},
    "delete": {"path": str},
    "rename": {"old_path": str, "new_path": str},
}
_TYPES = {str: "a text", int: "a whole number"}

Step = Callable[[Files], tuple[Files, str]]
Origin = Callable[[str], str | None]


def _check_arguments(command: Any) -> None:
    """Raise ToolError for an unknown command, and for a missing argument or one of another type, which it names.

    The SDK passes the model's arguments unchecked; a missing one is None.
    """
    name: Any = getattr(command, "command", None)
    if name not in _ARGUMENTS:
        raise ToolError(f"`command` must be one of {', '.join(_ARGUMENTS)}, got: {name!r}")
    for argument, kind in _ARGUMENTS[name].items():
        value = getattr(command, argument, None)
        if value is None:
            raise ToolError(f"`{argument}` is missing: {name} needs {_TYPES[kind]} there")
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ToolError(f"`{argument}` of {name} must be {_TYPES[kind]}, got: {value!r:.80}")
    lines = getattr(command, "view_range", None) if name == "view" else None
    if lines is not None and not (isinstance(lines, list) and all(type(line) is int for line in lines)):
        raise ToolError(f"`view_range` of view must be a list of two whole numbers, got: {lines!r:.80}")


class ClaudeMemory(BetaAbstractMemoryTool):
    """The tool for one agent: the files that Claude writes below `/memories` are stored with their history, for recall.

    A command is executed completely or not at all, and no other writer interferes. An error, including a refusal of the
    writer (a likely secret, a text that is too large), reaches the model as an error of the tool.
    """

    def __init__(
        self, memory: Jidomem, *, agent: str | None = None, project: str | None = None, cache_control: Any = None
    ) -> None:
        """Store in *memory*, an open root, the files of *agent* in *project*, by default the configured ones.

        Raises InvalidRequest if *memory* is no open root.
        """
        super().__init__(cache_control=cache_control)
        self.agent = agent_of(memory, agent, "ClaudeMemory")
        self._store = memory.entry_store(project)
        self._beginning = f"claude:{quote(self.agent, safe='')}:"
        self._cached = self._store.keyed(self._beginning)

    def execute(self, command: Any) -> Any:
        """Run a command and return its answer; raises ToolError for a missing or wrongly typed argument."""
        _check_arguments(command)
        return super().execute(command)

    def view(self, command: Any) -> str:
        """Return a file with numbered lines, or the list of a folder."""
        return self._reply(lambda: view(self._cached.read(_files), command.path, command.view_range))

    def create(self, command: Any) -> str:
        """Create a file and return the message."""
        return self._change(lambda now: create(now, command.path, command.file_text))

    def str_replace(self, command: Any) -> str:
        """Replace a text in a file and return the lines around it."""
        return self._change(lambda now: replace(now, command.path, command.old_str, command.new_str))

    def insert(self, command: Any) -> str:
        """Insert lines into a file and return the message."""
        return self._change(lambda now: insert(now, command.path, command.insert_line, command.insert_text))

    def delete(self, command: Any) -> str:
        """Delete a file or a folder, whose content stays in the history, and return the message."""
        return self._change(lambda now: delete(now, command.path))

    def rename(self, command: Any) -> str:
        """Move a file or a folder and return the message."""
        old, new = command.old_path, command.new_path
        return self._change(lambda now: rename(now, old, new), lambda name: origin(name, old, new))

    def clear_all_memory(self) -> str:
        """Delete everything, which stays in the history, and return the message."""
        return self._change(lambda now: (Files(), "All memory cleared"))

    def _change(self, step: Step, origin: Origin = lambda name: None) -> str:
        """Return the message of *step*, once its change of the files is durable; *origin* returns a former path."""
        messages: list[str] = []

        def plan() -> EntryChanges:
            before = self._cached.read(_files)
            after, message = step(before)
            messages[:] = [message]
            return self._changes(before, after, origin)

        def change() -> str:
            self._store.change(plan)
            return messages[0]

        return self._reply(change)

    def _reply(self, follow: Callable[[], str]) -> str:
        """Return the result of *follow*; raises ToolError, which the model sees, for a refusal."""
        try:
            return follow()
        except CommandError as refusal:
            raise ToolError(str(refusal)) from refusal
        except JidomemError as refusal:
            raise ToolError(f"{refusal.detail}{f' ({refusal.hint})' if refusal.hint else ''}") from refusal

    def _changes(self, before: Files, after: Files, origin: Origin) -> EntryChanges:
        written = [
            self._file(name, text, origin(name)) for name, text in after.texts.items() if before.texts.get(name) != text
        ]
        written += [self._folder(name) for name in sorted(after.empty - before.empty)]
        removed = [self._id(name) for name in before.texts if name not in after.texts]
        removed += [self._id(f"{name}/") for name in sorted(before.empty - after.empty)]
        return EntryChanges(written, removed)

    def _id(self, name: str) -> str:
        return f"{self._beginning}{ROOT}/{name}"

    def _file(self, name: str, text: str, former_path: str | None) -> Entry:
        """Return a file as an entry; a blank text is in the metadata, because the content of an entry is not blank."""
        metadata: dict[str, Any] = {"source": SOURCE, "path": f"{ROOT}/{name}"}
        metadata |= {} if former_path is None else {"renamed_from": f"{ROOT}/{former_path}"}
        metadata |= {} if text.strip() else {"text": text}
        return Entry(
            id=self._id(name),
            agent_id=self.agent,
            content=text if text.strip() else metadata["path"],
            metadata=metadata,
        )

    def _folder(self, name: str) -> Entry:
        path = f"{ROOT}/{name}/"
        return Entry(
            id=self._id(f"{name}/"), agent_id=self.agent, content=path, metadata={"source": SOURCE, "path": path}
        )


def _in_thread(command: Callable[..., str]) -> Any:
    """Return a command of the tool as a coroutine that runs it in a thread."""

    @wraps(command)
    async def follow(self: AsyncClaudeMemory, *given: Any) -> str:
        return await asyncio.to_thread(command, self._tool, *given)

    return follow


class AsyncClaudeMemory(BetaAsyncAbstractMemoryTool):
    """The tool for an asynchronous client: each command runs in a thread."""

    def __init__(self, memory: Jidomem, **options: Any) -> None:
        """Store in *memory*; *options* are those of `ClaudeMemory`."""
        super().__init__(cache_control=options.get("cache_control"))
        self._tool = ClaudeMemory(memory, **options)

    async def execute(self, command: Any) -> Any:
        """Run a command and return its answer; raises ToolError for a missing or wrongly typed argument."""
        _check_arguments(command)
        return await super().execute(command)

    view = _in_thread(ClaudeMemory.view)
    create = _in_thread(ClaudeMemory.create)
    str_replace = _in_thread(ClaudeMemory.str_replace)
    insert = _in_thread(ClaudeMemory.insert)
    delete = _in_thread(ClaudeMemory.delete)
    rename = _in_thread(ClaudeMemory.rename)
    clear_all_memory = _in_thread(ClaudeMemory.clear_all_memory)


def _files(entries: CachedEntries) -> Files:
    texts, folders = {}, []
    for one in entries.by_id.values():
        metadata = one.metadata
        place = str(metadata.get("path", ""))[len(ROOT) + 1 :]
        if place.endswith("/"):
            folders.append(place[:-1])
        else:
            texts[place] = str(metadata.get("text", one.content))
    return Files.of(texts, folders)
