"""The importer of a code graph: reads the changed files of a folder and submits the difference as triples.

A module or function has one lasting IRI. Its definition, its lines and its dependencies belong to a version of the
file, which ends when the file changes: nothing is overwritten, and every moment can be queried.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple
from urllib.parse import quote

from jidomem.extras.code import elixir, python
from jidomem.extras.code.python import DEPENDENCY_KINDS, Definitions, Function, Module, ModuleName, ModuleNames
from jidomem.index.follower import IndexFollower
from jidomem.index.store import OxigraphIndex
from jidomem.journal.journal import Stream
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, Triple, iri, literal, plain_value
from jidomem.rdf.vocab import TYPE, jido
from jidomem.repository.worktree import TrackedFiles, blob_id
from jidomem.write.writer import MemoryWriter

_PREDICATE = {kind: jido(f"{kind}Module") for kind in DEPENDENCY_KINDS}
_RELATIONS = {"emitsEvent": ("Command", "Event"), "handledByProjection": ("Event", "Projection")}
_CLASS = {"elixir": "ElixirModule", "python": "PythonModule"}


class FileVersion(NamedTuple):
    """A version of a file: its path, the blob id of its content, and the reader and module name used."""

    path: str
    blob: str
    read_as: str


class CodeNames(NamedTuple):
    """The IRIs of a project's code."""

    project: str

    @property
    def base(self) -> str:
        """Return the common prefix of the IRIs."""
        return f"{vocab.BASE}projects/{self.project}/code/"

    def file(self, path: str) -> Term:
        """Return the IRI of the file at *path*."""
        return iri(f"{self.base}files/{quote(path, safe='/')}")

    def module(self, language: str, name: str) -> Term:
        """Return the IRI of the module of that name, independent of its file."""
        return iri(f"{self.base}{language}/{_quoted(name)}")

    def function(self, language: str, module: str, label: str) -> Term:
        """Return the IRI of a function of a module."""
        return iri(f"{self.base}{language}/{_quoted(module)}/{_quoted(label)}")

    def made(self, kind: str, *parts: str) -> Term:
        """Return an IRI made of a digest of the parts *parts*."""
        return iri(f"{self.base}{kind}/{blake2b(chr(0).join(parts).encode(), digest_size=12).hexdigest()}")


def _quoted(name: str) -> str:
    return quote(name, safe=":")


def described(
    names: CodeNames, language: str, version: FileVersion, before: Iterable[Term], extracted: Definitions
) -> list[Triple]:
    """Return the triples of a version of a file that replaces the versions *before*."""
    file = names.file(version.path)
    node = names.made("versions", version.path, version.blob, version.read_as, *sorted(before))
    rows = [
        (file, TYPE, jido("SourceFile")),
        (file, jido("filePath"), literal(version.path)),
        (node, TYPE, jido("FileVersion")),
        (node, jido("versionOfFile"), file),
        (node, jido("blobId"), literal(version.blob)),
        (node, jido("readAs"), literal(version.read_as)),
    ]
    for module in extracted.modules:
        rows += _module(names, language, module, node, file)
    return list(dict.fromkeys(rows))


def _module(names: CodeNames, language: str, module: Module, version: Term, file: Term) -> Iterator[Triple]:
    node = names.module(language, module.name)
    project = iri(f"{vocab.BASE}projects/{names.project}")
    yield project, TYPE, jido("Project")
    yield project, jido("hasModule"), node
    yield node, TYPE, jido("Module")
    yield node, TYPE, jido(_CLASS[language])
    yield node, jido("codeName"), literal(module.name)
    if language == "elixir":
        yield node, jido("moduleName"), literal(module.name)
    yield node, jido("definedInFile"), file
    module_version = names.made("module-versions", version, module.name)
    yield module_version, TYPE, jido("ModuleVersion")
    yield module_version, jido("versionOfModule"), node
    yield module_version, jido("inFileVersion"), version
    yield module_version, jido("moduleLines"), literal(f"{module.first}-{module.last}")
    for kind, target in module.needs:
        other = names.module(language, target)  # in any file; its class only states that it has a name
        yield other, TYPE, jido("CodeConcept")
        yield other, jido("codeName"), literal(target)
        yield module_version, _PREDICATE[kind], other
    for target in module.maybe:
        yield module_version, jido("mayImport"), names.module(language, target)
    for subject, name, value in module.tells:
        yield from _version_triples(names, language, module_version, (subject, name, value))
    for each in module.functions:
        yield from _function(names, language, module.name, module_version, each)


def _version_triples(
    names: CodeNames, language: str, module_version: Term, statement_parts: tuple[str, str, str]
) -> Iterator[Triple]:
    subject, name, value = statement_parts
    subject_node, object_node = names.module(language, subject), names.module(language, value)
    first, second = _RELATIONS[name]
    yield subject_node, TYPE, jido(first)
    yield object_node, TYPE, jido(second)
    yield subject_node, jido(name), object_node
    statement = names.made("statements", *statement_parts)
    yield module_version, jido("tells"), statement
    yield statement, iri(f"{vocab.RDF}subject"), subject_node
    yield statement, iri(f"{vocab.RDF}predicate"), jido(name)
    yield statement, iri(f"{vocab.RDF}object"), object_node


def _function(
    names: CodeNames, language: str, module: str, module_version: Term, function: Function
) -> Iterator[Triple]:
    node = names.function(language, module, function.label)
    yield node, TYPE, jido("Function")
    yield node, jido("codeName"), literal(f"{module}.{function.label}")
    yield names.module(language, module), jido("hasFunction"), node
    yield module_version, jido("definesPrivately" if function.private else "definesFunction"), node
    yield module_version, jido("functionLines"), literal(f"{function.first}-{function.last} {function.label}")


def import_triples(
    names: CodeNames, ended_versions: Iterable[Term], new_versions: Iterable[Term], revision: str
) -> list[Triple]:
    """Return the triples of an import: the versions that it ended, and the revision of the repository."""
    ended_versions = sorted(ended_versions)
    node = names.made("imports", revision, *sorted(new_versions), *ended_versions)
    rows = [(node, TYPE, jido("CodeImport"))]
    if revision:
        rows.append((node, jido("repositoryRevision"), literal(revision)))
    return [*rows, *((each, jido("endedIn"), node) for each in ended_versions)]


STREAM = "codebase"
#: The outcomes of a file.
FILES = ("new", "changed", "unchanged", "gone", "left out")
ENDINGS = (".py", ".ex", ".exs")
#: The largest file that is read, and its longest line: no person writes a larger one.
LARGEST, LONGEST_LINE = 2 * 1024 * 1024, 100_000
#: Triples of one commit; a larger first import is stored in several commits, each of whole files.
AT_ONCE = 150_000
#: The most triples of one file: a commit takes 200,000.
OF_FILE = 50_000
#: Increased when a reader gives another result for the same file, so that all files are read again.
_READER = {"python": 1, "elixir": 2}


class CodeNote(NamedTuple):
    """A file that could not be read completely: its path and line, and the reason."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}" if self.line else f"{self.path}: {self.message}"


@dataclass(slots=True)
class CodeImportReport:
    """The result of an import: files by outcome, definitions, notes, triples, commits."""

    files: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    notes: list[CodeNote] = field(default_factory=list)
    triples: int = 0
    commits: list[str] = field(default_factory=list)


class _FileVersion(NamedTuple):
    node: Term
    version: FileVersion
    modules: tuple[Term, ...]


@dataclass(slots=True)
class _Batch:
    rows: list[Triple] = field(default_factory=list)
    new_versions: list[Term] = field(default_factory=list)
    ended_versions: list[Term] = field(default_factory=list)


def import_code(
    writer: MemoryWriter,
    follower: IndexFollower,
    project: str,
    listing: TrackedFiles,
    below: str = "",
    *,
    dry_run: bool = False,
    seen: Callable[[str], None] = lambda path: None,
) -> CodeImportReport:
    """Import the files of *listing*, which are those below the folder *below*, and return the report.

    An unchanged file is not read; the stored version of a changed or missing file ends. Files that were stored before
    an interruption are not read again. *seen* is called with each path first; *dry_run* stores nothing. Raises Failed
    `missing_extra`, and the errors of `MemoryWriter.append`.
    """
    follower.catch_up(Stream(project, STREAM))
    importing = _Import(project, listing, *current_versions(follower.index, project), CodeImportReport())
    for batch in importing.batches(below, seen):
        rows = [
            *batch.rows,
            *import_triples(CodeNames(project), batch.ended_versions, batch.new_versions, listing.revision),
        ]
        importing.report.triples += len(rows)
        if not dry_run:
            receipt = writer.append(project, STREAM, rows)
            importing.report.commits += [receipt.commit] if receipt.commit else []
    return importing.report


def current_versions(index: OxigraphIndex, project: str) -> tuple[dict[str, list[_FileVersion]], dict[str, list[Term]]]:
    """Return the current versions of files, by path, and the ended versions by path.

    A path has several current versions only after a merge of branches.
    """
    graph = Stream(project, STREAM).graph

    def values_of(name: str) -> Iterator[tuple[Term, Term]]:
        return ((s, o) for s, _, o in index.triples(graph, None, jido(name), None))

    ended_nodes = {node for node, _ in values_of("endedIn")}
    paths, blobs, ways = dict(values_of("filePath")), dict(values_of("blobId")), dict(values_of("readAs"))
    modules = defaultdict(list)
    for node, inside in values_of("inFileVersion"):
        modules[inside].append(node)
    versions: dict[str, list[_FileVersion]] = defaultdict(list)
    past: dict[str, list[Term]] = defaultdict(list)
    for node, file in values_of("versionOfFile"):
        if file not in paths:
            continue
        path = plain_value(paths[file])
        if node in ended_nodes:
            past[path].append(node)
        else:
            version = FileVersion(path, plain_value(blobs.get(node, "")), plain_value(ways.get(node, "")))
            versions[path].append(_FileVersion(node, version, tuple(sorted(modules[node]))))
    return versions, past


class _Import:
    def __init__(
        self,
        project: str,
        listing: TrackedFiles,
        known: Mapping[str, list[_FileVersion]],
        past: Mapping[str, list[Term]],
        report: CodeImportReport,
    ) -> None:
        self._names, self._listing, self._known, self._past = CodeNames(project), listing, known, past
        self.report = report
        self._naming = ModuleNames(self._text, lambda path: (listing.base / path).is_file())

    def batches(self, below: str, seen: Callable[[str], None]) -> Iterator[_Batch]:
        """Yield the triples to store, in batches of whole files: present files first, then missing ones."""
        batch, prefix = _Batch(), f"{below}/" if below else ""
        for path, reason in self._listing.passed.items():
            self._leave_out(path, reason)
        for path in self._listing.files:
            seen(path)
            self._file(path, batch)
            if len(batch.rows) >= AT_ONCE:
                yield batch
                batch = _Batch()
        present = {*self._listing.files, *self._listing.passed}
        for path, versions in sorted(self._known.items()):
            if path not in present and (path.startswith(prefix) or path == below):
                self.report.files["gone"] += 1
                batch.ended_versions += _all(versions)
        if batch.new_versions or batch.ended_versions:
            yield batch

    def _file(self, path: str, batch: _Batch) -> None:
        language = "python" if path.endswith(".py") else "elixir"
        name = self._naming.name(path) if language == "python" else ModuleName("")
        naming = f"beside {name.folder}" if name.folder else ""
        read_as = " ".join(filter(None, (language, str(_READER[language]), name.name, naming)))
        before = self._known.get(path, [])
        blob = self._listing.files[path]
        data = None
        if blob is None or not self._is_current(before, blob, read_as):
            data = self._content(path)
            if data is None:
                batch.ended_versions += _all(before)
                return
            blob = blob_id(data)
        if self._is_current(before, blob, read_as):
            self.report.files["unchanged"] += 1
            return
        extracted = python.extract(data or b"", name) if language == "python" else elixir.extract(data or b"")
        version = FileVersion(path, blob, read_as)
        # a restored file is a new version, not the one that ended
        earlier = [each.node for each in before] or self._past.get(path, [])
        rows = described(self._names, language, version, earlier, extracted)
        if len(rows) > OF_FILE:
            self._leave_out(path, f"{len(rows):,} triples for its definitions, more than {OF_FILE:,}")
            batch.ended_versions += _all(before)
            return
        self._add_findings(path, extracted)
        self.report.files["changed" if before else "new"] += 1
        batch.rows += rows
        batch.new_versions.append(rows[2][0])
        batch.ended_versions += _all(before)

    def _is_current(self, before: list[_FileVersion], blob: str, read_as: str) -> bool:
        return [(each.version.blob, each.version.read_as) for each in before] == [(blob, read_as)]

    def _content(self, path: str) -> bytes | None:
        data = self._listing.read(path, LARGEST)
        reason = None
        if data is None:
            reason = f"larger than {LARGEST:,} bytes, reached by a link, or not readable"
        elif b"\0" in data:
            reason = "not a text"
        elif len(max(data.split(b"\n"), key=len)) > LONGEST_LINE:
            reason = f"a line of more than {LONGEST_LINE:,} bytes: written by a program"
        if reason is None:
            return data
        self._leave_out(path, reason)
        return None

    def _leave_out(self, path: str, reason: str) -> None:
        self.report.files["left out"] += 1
        self.report.notes.append(CodeNote(path, 0, f"left out: {reason}"))

    def _add_findings(self, path: str, extracted: Definitions) -> None:
        self.report.notes += [CodeNote(path, fault.line, fault.message) for fault in extracted.faults]
        self.report.counts["modules"] += len(extracted.modules)
        self.report.counts["functions"] += sum(len(module.functions) for module in extracted.modules)
        self.report.counts["dependencies"] += sum(len(module.needs) for module in extracted.modules)

    def _text(self, path: str) -> str | None:
        data = self._listing.read(path, LARGEST)
        return None if data is None else data.decode("utf-8", "replace")


def _all(versions: Iterable[_FileVersion]) -> list[Term]:
    return [node for each in versions for node in (each.node, *each.modules)]
