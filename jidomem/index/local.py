"""A triple store of this process: its graphs in memory, or in a folder that one process at a time has open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any

import pyoxigraph as ox

from jidomem.errors import Busy, Failed, InvalidRequest, JidomemError
from jidomem.index.answers import Answer, malformed, plain
from jidomem.terms import Triple, line


class LocalStore:
    """Graphs in the memory of this process, or in a folder that one process at a time has open."""

    def __init__(self, path: str | PathLike[str] | None) -> None:
        self._store: ox.Store | None = _opened(path)

    def graphs(self) -> list[str]:
        """Return the graphs that hold anything."""
        return [graph.value for graph in self._open.named_graphs() if isinstance(graph, ox.NamedNode)]

    def insert(self, graph: str, triples: Iterable[Triple]) -> None:
        """Add *triples* to *graph* in one transaction; raises InvalidRequest for no triples, Failed for the disk."""
        document = "\n".join(map(line, triples)).encode()
        try:
            self._open.load(document, ox.RdfFormat.N_TRIPLES, to_graph=ox.NamedNode(graph))
        except SyntaxError as error:
            raise InvalidRequest(f"a statement is no triple: {error.msg}", hint="correct it and try again") from error
        except OSError as error:
            raise _failed(error) from error

    def clear(self, graph: str) -> None:
        """Empty *graph* in one transaction; raises Failed where the disk cannot be written."""
        try:
            self._open.remove_graph(ox.NamedNode(graph))
        except OSError as error:
            raise _failed(error) from error

    def ask(self, text: str, default: Sequence[str], named: Sequence[str]) -> Answer:
        """Return the answer over the union of *default*; GRAPH reaches *named*. Raises InvalidRequest for no SPARQL."""
        try:
            return plain(self._open.query(text, default_graph=_nodes(default), named_graphs=_nodes(named)))
        except SyntaxError as error:
            raise malformed(str(error)) from error

    def close(self) -> None:
        """Write out what is in buffers and give the folder free."""
        if self._store is not None:
            self._store.flush()
            self._store = None

    @property
    def _open(self) -> ox.Store:
        if self._store is None:
            raise InvalidRequest("this store was closed", hint="open it again")
        return self._store


def _opened(path: str | PathLike[str] | None) -> ox.Store:
    if path is None:
        return ox.Store()
    try:
        return ox.Store(path)
    except OSError as error:
        if "lock" in str(error).lower():
            hint = "close it there, or put a SPARQL server before it and use the backend 'sparql'"
            raise Busy(f"{path} is open already; one process at a time holds a store on disk", hint=hint) from error
        raise _failed(error) from error


def _failed(error: OSError) -> JidomemError:
    return Failed(f"the store could not be used: {error}", hint="see to that folder and try again")


def _nodes(graphs: Sequence[str]) -> list[Any]:
    return [ox.NamedNode(graph) for graph in graphs]
