"""Claude's memory tool (`memory_20250818`), with its files kept as entries of an agent.

from jidomem.adapters.claude_memory import ClaudeMemory
client.beta.messages.tool_runner(..., tools=[ClaudeMemory(memory)])
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from jidomem.adapters import files
from jidomem.adapters.files import ROOT, Files, Refused
from jidomem.adapters.whose import agent_of
from jidomem.entry import Entry
from jidomem.errors import Failed, JidomemError
from jidomem.read.keyed import Held
from jidomem.runtime.root import Jidomem
from jidomem.write.history import EntryChanges

try:
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
except ImportError as error:
    raise Failed(
        f"the Anthropic SDK is not installed ({error})", hint="pip install 'jidomem[anthropic]'", code="missing_extra"
    ) from error

#: What the metadata of each of its entries say as `source`.
SOURCE = "claude_memory"

Step = Callable[[Files], tuple[Files, str]]
Origin = Callable[[str], str | None]


class ClaudeMemory(BetaAbstractMemoryTool):
    """The tool for one agent: what Claude writes below `/memories` is kept, each version of it, and can be recalled.

    A command is followed whole or not at all, and nobody else writes meanwhile. What is refused, also by the writer (a
    likely secret, a text that is too large), is told to the model as an error of the tool.
    """

    def __init__(
        self, memory: Jidomem, *, agent: str | None = None, project: str | None = None, cache_control: Any = None
    ) -> None:
        """Keep in *memory*, an open root, the files of *agent* in *project*, the configured ones unless given.

        Raises InvalidRequest for what is no open root.
        """
        super().__init__(cache_control=cache_control)
        self.agent = agent_of(memory, agent, "ClaudeMemory")
        self._store = memory.entry_store(project)
        self._beginning = f"claude:{quote(self.agent, safe='')}:"
        self._kept = self._store.keyed(self._beginning)

    def view(self, command: Any) -> str:
        """Return a file with numbered lines, or what is in a folder."""
        return self._told(lambda: files.view(self._kept.read(_files), command.path, command.view_range))

    def create(self, command: Any) -> str:
        """Return that there is a new file."""
        return self._change(lambda now: files.create(now, command.path, command.file_text))

    def str_replace(self, command: Any) -> str:
        """Return the lines around what was replaced."""
        return self._change(lambda now: files.replace(now, command.path, command.old_str, command.new_str))

    def insert(self, command: Any) -> str:
        """Return that a file has new lines."""
        return self._change(lambda now: files.insert(now, command.path, command.insert_line, command.insert_text))

    def delete(self, command: Any) -> str:
        """Return that a file or a folder is no longer there; what it said stays in the history."""
        return self._change(lambda now: files.delete(now, command.path))

    def rename(self, command: Any) -> str:
        """Return that a file or a folder has another path."""
        old, new = command.old_path, command.new_path
        return self._change(lambda now: files.rename(now, old, new), lambda name: files.origin(name, old, new))

    def clear_all_memory(self) -> str:
        """Return that there is nothing any more; what there was stays in the history."""
        return self._change(lambda now: (Files(), "All memory cleared"))

    def _change(self, step: Step, origin: Origin = lambda name: None) -> str:
        """Return what *step* says, once what it made of the files is durable; *origin* says what was where before."""
        told: list[str] = []

        def plan() -> EntryChanges:
            before = self._kept.read(_files)
            after, said = step(before)
            told[:] = [said]
            return self._changes(before, after, origin)

        def change() -> str:
            self._store.change(plan)
            return told[0]

        return self._told(change)

    def _told(self, follow: Callable[[], str]) -> str:
        """Return what *follow* does; raises ToolError, which the model is shown, for what is refused."""
        try:
            return follow()
        except Refused as refusal:
            raise ToolError(str(refusal)) from refusal
        except JidomemError as refusal:
            raise ToolError(f"{refusal.detail}{f' ({refusal.hint})' if refusal.hint else ''}") from refusal

    def _changes(self, before: Files, after: Files, origin: Origin) -> EntryChanges:
        """Return what is to be kept and taken back, so that there is *after* what was *before*."""
        kept = [
            self._file(name, text, origin(name)) for name, text in after.texts.items() if before.texts.get(name) != text
        ]
        kept += [self._folder(name) for name in sorted(after.empty - before.empty)]
        removed = [self._id(name) for name in before.texts if name not in after.texts]
        removed += [self._id(f"{name}/") for name in sorted(before.empty - after.empty)]
        return EntryChanges(kept, removed)

    def _id(self, name: str) -> str:
        return f"{self._beginning}{ROOT}/{name}"

    def _file(self, name: str, text: str, was: str | None) -> Entry:
        """Return a file as an entry; a text that says nothing is in the metadata, for an entry says something."""
        said: dict[str, Any] = {"source": SOURCE, "path": f"{ROOT}/{name}"}
        said |= {} if was is None else {"renamed_from": f"{ROOT}/{was}"}
        said |= {} if text.strip() else {"text": text}
        return Entry(
            id=self._id(name), agent_id=self.agent, content=text if text.strip() else said["path"], metadata=said
        )

    def _folder(self, name: str) -> Entry:
        """Return a folder that holds nothing as an entry."""
        path = f"{ROOT}/{name}/"
        return Entry(
            id=self._id(f"{name}/"), agent_id=self.agent, content=path, metadata={"source": SOURCE, "path": path}
        )


class AsyncClaudeMemory(BetaAsyncAbstractMemoryTool):
    """The same for an asynchronous client: each command is followed by a thread."""

    def __init__(self, memory: Jidomem, **options: Any) -> None:
        """Keep in *memory*; *options* are those of `ClaudeMemory`."""
        super().__init__(cache_control=options.get("cache_control"))
        self._tool = ClaudeMemory(memory, **options)

    async def view(self, command: Any) -> str:
        """Return a file with numbered lines, or what is in a folder."""
        return await asyncio.to_thread(self._tool.view, command)

    async def create(self, command: Any) -> str:
        """Return that there is a new file."""
        return await asyncio.to_thread(self._tool.create, command)

    async def str_replace(self, command: Any) -> str:
        """Return the lines around what was replaced."""
        return await asyncio.to_thread(self._tool.str_replace, command)

    async def insert(self, command: Any) -> str:
        """Return that a file has new lines."""
        return await asyncio.to_thread(self._tool.insert, command)

    async def delete(self, command: Any) -> str:
        """Return that a file or a folder is no longer there."""
        return await asyncio.to_thread(self._tool.delete, command)

    async def rename(self, command: Any) -> str:
        """Return that a file or a folder has another path."""
        return await asyncio.to_thread(self._tool.rename, command)

    async def clear_all_memory(self) -> str:
        """Return that there is nothing any more."""
        return await asyncio.to_thread(self._tool.clear_all_memory)


def _files(kept: Held) -> Files:
    """Return the files that entries say."""
    texts, folders = {}, []
    for one in kept.by_id.values():
        said = one.metadata
        place = str(said.get("path", ""))[len(ROOT) + 1 :]
        if place.endswith("/"):
            folders.append(place[:-1])
        else:
            texts[place] = str(said.get("text", one.content))
    return Files.of(texts, folders)
