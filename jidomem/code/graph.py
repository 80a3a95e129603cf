"""What is kept of code, as triples: names that last, and beside each what one version of a file said of it.  Pure.

A module or function is named once, for good. That a file defines it, where, and what it depends on is said of a
version of the file, which ends when the file changes: nothing is overwritten, and every moment can be asked about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from urllib.parse import quote

from jidomem import vocab
from jidomem.code.extracted import KINDS, Extracted, Function, Module
from jidomem.terms import Term, Triple, iri, literal
from jidomem.vocab import TYPE, jido

_PREDICATE = {kind: jido(f"{kind}Module") for kind in KINDS}
_SAID_OF = {"emitsEvent": ("Command", "Event"), "handledByProjection": ("Event", "Projection")}
_CLASS = {"elixir": "ElixirModule", "python": "PythonModule"}


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a file: its path, the id of its content, and how it was read."""

    path: str
    blob: str
    read_as: str


@dataclass(frozen=True, slots=True)
class Names:
    """The names that things of a project's code have."""

    project: str

    @property
    def base(self) -> str:
        """Return what all of them begin with."""
        return f"{vocab.BASE}projects/{self.project}/code/"

    def file(self, path: str) -> Term:
        """Return the file at *path*."""
        return iri(f"{self.base}files/{quote(path, safe='/')}")

    def module(self, language: str, name: str) -> Term:
        """Return the module of that name, whoever defines it."""
        return iri(f"{self.base}{language}/{_quoted(name)}")

    def function(self, language: str, module: str, label: str) -> Term:
        """Return a function of a module."""
        return iri(f"{self.base}{language}/{_quoted(module)}/{_quoted(label)}")

    def made(self, kind: str, *of: str) -> Term:
        """Return the name of what nothing but its content names."""
        return iri(f"{self.base}{kind}/{blake2b(chr(0).join(of).encode(), digest_size=12).hexdigest()}")


def _quoted(name: str) -> str:
    return quote(name, safe=":")


def described(
    names: Names, language: str, version: Version, before: Iterable[Term], extracted: Extracted
) -> list[Triple]:
    """Return what is kept of a version of a file that takes the place of those *before* it."""
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


def _module(names: Names, language: str, module: Module, version: Term, file: Term) -> Iterator[Triple]:
    """Yield what a version of a file says of a module."""
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
    held = names.made("module-versions", version, module.name)
    yield held, TYPE, jido("ModuleVersion")
    yield held, jido("versionOfModule"), node
    yield held, jido("inFileVersion"), version
    yield held, jido("moduleLines"), literal(f"{module.first}-{module.last}")
    for kind, target in module.needs:
        other = names.module(language, target)  # whoever defines it; a class that says no more than that it has a name
        yield other, TYPE, jido("CodeConcept")
        yield other, jido("codeName"), literal(target)
        yield held, _PREDICATE[kind], other
    for target in module.maybe:
        yield held, jido("mayImport"), names.module(language, target)
    for subject, name, value in module.tells:
        yield from _told(names, language, held, (subject, name, value))
    for each in module.functions:
        yield from _function(names, language, module.name, held, each)


def _told(names: Names, language: str, held: Term, said: tuple[str, str, str]) -> Iterator[Triple]:
    """Yield what a version of a module says of commands, events and projections, and that it is the one to say it."""
    subject, name, value = said
    one, other = names.module(language, subject), names.module(language, value)
    first, second = _SAID_OF[name]
    yield one, TYPE, jido(first)
    yield other, TYPE, jido(second)
    yield one, jido(name), other
    statement = names.made("statements", *said)
    yield held, jido("tells"), statement
    yield statement, iri(f"{vocab.RDF}subject"), one
    yield statement, iri(f"{vocab.RDF}predicate"), jido(name)
    yield statement, iri(f"{vocab.RDF}object"), other


def _function(names: Names, language: str, module: str, held: Term, function: Function) -> Iterator[Triple]:
    """Yield what a version of a module says of a function."""
    node = names.function(language, module, function.label)
    yield node, TYPE, jido("Function")
    yield node, jido("codeName"), literal(f"{module}.{function.label}")
    yield names.module(language, module), jido("hasFunction"), node
    yield held, jido("definesPrivately" if function.private else "definesFunction"), node
    yield held, jido("functionLines"), literal(f"{function.first}-{function.last} {function.label}")


def ended(names: Names, gone: Iterable[Term], came: Iterable[Term], revision: str) -> list[Triple]:
    """Return what is kept of an import: what it found gone, and the revision of the repository it was made of."""
    gone = sorted(gone)
    node = names.made("imports", revision, *sorted(came), *gone)
    rows = [(node, TYPE, jido("CodeImport"))]
    if revision:
        rows.append((node, jido("repositoryRevision"), literal(revision)))
    return [*rows, *((each, jido("endedIn"), node) for each in gone)]
