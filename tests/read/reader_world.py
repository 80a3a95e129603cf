"""A real index and reader, filled from Turtle files."""

from pathlib import Path

import pyoxigraph as ox

from jidomem.base import clock
from jidomem.base.stems import Stemmer
from jidomem.errors import NotFound
from jidomem.index.projection import IndexedProject
from jidomem.index.search_tables import SearchIndexReader
from jidomem.index.store import OxigraphIndex
from jidomem.rdf.vocab import GRAPHS, graph_iri
from jidomem.read.playbook import Playbook
from jidomem.read.reader import MemoryReader
from jidomem.records.intent import CommitRef, Version
from jidomem.records.policy import Policy
from jidomem.schema import ontology
from jidomem.schema.ontology import EffectiveRules

DATA = Path(__file__).parent / "data"
PREFIXES = {
    "conv": "https://jido.ai/ontology/conversation-history#",
    "jido": "https://jido.ai/ontology#",
    "m": "https://jido.ai/memory/",
    "p": "https://jido.ai/projects/",
    "s": "https://jido.ai/sessions/",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
TURTLE = "".join(f"@prefix {name}: <{iri}> .\n" for name, iri in PREFIXES.items())


#: The values of required parameters beside the project.
NEEDED = {
    "item": "https://jido.ai/memory/warm",
    "evidence": "the build log",
    "file": "jidomem/index/store.py",
    "module": "Jido.Files",
    "topic": "rust",
    "since": "2026-01-03",
    "agent": "https://jido.ai/agents/ana",
    "kind": "discovery",
    "session": "https://jido.ai/sessions/first",
}


def needed(query):
    """Return a value for each required parameter of *query*."""
    return {
        param.name: NEEDED[param.name] for param in query.params if param.default is None and param.name != "project"
    }


def triples(turtle):
    parsed = ox.parse(TURTLE + turtle, format=ox.RdfFormat.TURTLE)
    return [(str(quad.subject), str(quad.predicate), str(quad.object)) for quad in parsed]


def new_index():
    index = OxigraphIndex()
    index.put_ontology(triples((DATA / "ontology.ttl").read_text("utf-8")))
    return index


def world_index():
    index = new_index()
    for file in sorted(DATA.glob("*/*.ttl")):
        index.apply(graph_iri(file.parent.name, file.stem), file.stem, triples(file.read_text("utf-8")))
    return index


class ProjectedIndex:
    """The projection of an index without a journal: up to date with all that is applied to the index."""

    def __init__(self, index, playbook):
        self.index, self.playbook = index, playbook
        self.files, self.news, self.sources = {}, {}, {}
        index.observers.append(self)

    def applied(self, graph, rows):
        self.news.setdefault(graph, set()).update(subject for subject, _, _ in rows)

    def reset(self, graph):
        self.files = {project: file for project, file in self.files.items() if graph_iri(project) != graph}

    def read_soon(self, stream, use, *, catches_up=True):
        return self.read(stream, use)

    def read_lagging(self, stream, use, known, most):
        return self.read(stream, use)

    def read(self, stream, use, *, catches_up=True):
        project = stream.project
        source = self.sources.setdefault(project, IndexedProject(self.index, project))
        if project not in self.files:
            self.files[project] = SearchIndexReader(":memory:", Stemmer(), 0.0)
            self.files[project].fits()
            self.news[source.graph] = {subject for subject, _, _ in self.index.triples(source.graph)}
        file, news = self.files[project], self.news.pop(source.graph, ())
        lists = source.refresh(), self.playbook.orders_digest()
        if news or not file.has_lists(*lists):
            with file.writing():
                file.include(self.playbook.orders(), *lists)
                while file.filled:
                    file.fill(source)
                file.update_nodes(news, source)
        with file.reading():
            return use(file)


def reader_of(index, projects=("demo", "other", "empty"), playbook=None, remote=None, now=clock.now, projected=True):
    """Return a reader whose version is that of the newest commit time in the graphs of the project.

    Without the projection all rows are those of the engine.
    """

    def catch_up(project):
        if project not in projects:
            raise NotFound(f"there is no project {project!r}", hint=f"there are {projects}", code="unknown_project")
        graphs = [graph_iri(project, graph) for graph in GRAPHS]
        state = index.generation, *map(index.mark, graphs)
        if versions.get(project, (None,))[0] != state:
            recorded = "<https://jido.ai/ontology#recordedAt>"
            times = [t for graph in graphs for _, _, t in index.triples(graph, None, recorded)]
            commits = [CommitRef(max(times).split('"')[1], "0" * 64, 1)] if times else []
            versions[project] = state, Version.of(commits)
        return versions[project][1]

    versions = {}
    playbook = playbook or Playbook()
    texts = ProjectedIndex(index, playbook)
    rules = EffectiveRules(ontology.load(), Policy())
    reader = MemoryReader(
        index, playbook, catch_up, rules, (lambda: texts) if projected else None, remote=remote, now=now
    )
    reader.texts = texts
    return reader


def short(value):
    """Return the last part of an IRI, a moment as text, and any other value unchanged."""
    if isinstance(value, str) and "://" in value:
        return value.rsplit("#", 1)[-1].rsplit("/", 1)[-1]
    return value.isoformat() if hasattr(value, "isoformat") else value


def shortened(rows):
    """Return the values of the columns of *rows*, without annotations."""
    annotations = {"state", "memory_status", "conflicts_with", "due", "until"}
    return [
        [short(value) for name, value in row.items() if name not in annotations or (name == "due" and "reason" in row)]
        for row in rows
    ]
