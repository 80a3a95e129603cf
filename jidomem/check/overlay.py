"""The lint of an overlay: checks the terms, shapes and queries that a project adds, before use.

`check_overlay` checks the files of a root, each finding with its line; `check_queries` checks the queries. `changes`
compares two versions of the ontology, and `preview` returns the active memories that a changed file would newly fail.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from jidomem.base.background import time_limited
from jidomem.base.containers import grouped, reachable
from jidomem.base.files import query_files
from jidomem.check import rules
from jidomem.check.reasoning import inconsistencies
from jidomem.check.report import DECLARED, READ, SOUND, SYNTAX, CheckReport, Problem, UnplacedFinding, in_order
from jidomem.check.rules import reachable_triples
from jidomem.check.sources import FileSource, TripleSource, by_subject, line_in, line_of_error
from jidomem.check.terms import check_terms, described_terms, is_shacl, not_declared, shapes, terms_used, undeclared
from jidomem.errors import Failed, InvalidRequest, JidomemError
from jidomem.index.store import OxigraphIndex
from jidomem.journal.branches import Revision
from jidomem.rdf import sparql
from jidomem.rdf.terms import Term, Triple, iri, is_iri, parse_literal, plain_value
from jidomem.rdf.vocab import graph_iri, jido, local_name
from jidomem.read import playbook
from jidomem.repository import git
from jidomem.schema import ontology as schemas
from jidomem.schema.ontology import Schema, extended_by, label_blank_nodes

#: A program that parses a query on an empty store, with a memory limit.
_PARSE = """\
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
import pyoxigraph
try:
    pyoxigraph.Store().query(sys.stdin.buffer.read().decode())
except SyntaxError as error:
    print(error)
"""
_SECONDS = 10.0
_LINE = re.compile(r"(?:.*\.rq:(\d+): )?(.*)", re.DOTALL)
_AT = re.compile(r"error at (\d+):")


def check_queries(files: Sequence[Path], root: Path) -> Iterator[tuple[Path, Problem]]:
    """Yield the problems of the queries in *files*; names of other queries of *root* and of shipped ones are taken."""
    taken = {path.stem: path for path in query_files()}
    own = {path.stem: path for path in sorted((root / "queries").glob("*/*.rq"), reverse=True)}
    for path in files:
        other = taken.get(path.stem) or own.get(path.stem)
        if other is not None and other.resolve() != path.resolve():
            yield path, _problem(path, None, f"the name {path.stem!r} is taken by {other.parent.name}/{other.name}")
        try:
            query = rules.read_gates(path).query if path.parent.name == playbook.GATES else playbook.read(path)
        except JidomemError as error:
            line, text = _LINE.fullmatch(error.detail).groups()  # type: ignore[union-attr]  # anything matches
            yield path, _problem(path, int(line) if line else None, f"{text.removeprefix(f'{path}: ')}: {error.hint}")
            continue
        if (message := _malformed(query.text)) is not None:
            at = _AT.search(message)
            yield path, _problem(path, int(at[1]) if at else None, f"this is not SPARQL: {message}")


def _undeclared_in(files: Sequence[Path], schema: Schema) -> Iterator[tuple[Path, Problem]]:
    """Yield a violation for each undeclared term of the ontology's namespaces in the queries: it matches nothing."""
    known, spaces = described_terms(schema) if files else set[Term](), tuple(schema.namespaces)
    for path in files:
        with suppress(OSError, UnicodeDecodeError):  # `check_queries` reports such a file, and one that is too large
            query = path.read_text("utf-8-sig")
            for name, line in dict.fromkeys(sparql.iris(query) if len(query) <= sparql.MAX_BYTES else ()):
                if name.startswith(spaces) and name not in spaces and iri(name) not in known:
                    text, place = not_declared(iri(name), "term", schema), f"{path.parent.name}/{path.name}"
                    yield path, Problem(place, DECLARED, "violation", text, str(path), line)


def _malformed(text: str) -> str | None:
    """Return the message of the engine on an invalid query, or None; it runs in its own process on an empty store."""
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _PARSE],
            input=text.encode(),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it was not parsed in {_SECONDS:.0f} s"
    if done.returncode:
        return "the engine crashed"
    return done.stdout.decode("utf-8", "replace").partition(": expected")[0].strip() or None


def _problem(path: Path, line: int | None, text: str) -> Problem:
    return Problem(f"{path.parent.name}/{path.name}", SOUND, "violation", text, str(path), line)


TERMS, RULES, QUESTIONS = "ontology", "shapes", "queries"
_READ = (f"{TERMS}/*.ttl", f"{RULES}/*.ttl", f"{QUESTIONS}/*/*.rq")
_ALIGNMENT = "alignment.ttl"
#: The endings of files that somebody meant as terms, shapes or queries.
_OF_RULES = frozenset(
    (".ttl", ".shacl", ".shc", ".n3", ".nt", ".nq", ".trig", ".rdf", ".owl", ".jsonld", ".rq", ".sparql")
)
_BLANK = re.compile(r"_:f(\d+)-(.+)")


class OverlayAdditions(NamedTuple):
    """A Turtle file of an overlay: whether it contains shapes, and its triples, with blank nodes labelled by file."""

    path: Path
    source: FileSource
    is_rules: bool
    triples: tuple[Triple, ...]


def check_overlay(root: Path, given: Sequence[Path] = (), *, queries: bool = True) -> CheckReport:
    """Return the problems of the overlay of *root*; with *given*, of these files only, judged with the others.

    Without *queries* only terms and shapes are judged, and whether the terms in queries are declared.
    """
    report = CheckReport()
    own = [path for path in _own(root) if queries or path.suffix != ".rq"]
    wanted = {path.resolve() for path in given} or {path.resolve() for path in own}
    files = {path.resolve(): path for path in [*own, *given]}
    additions: list[OverlayAdditions] = []
    for path in files.values():
        if path.suffix != ".rq":
            try:
                additions.append(_read_turtle(path, len(additions)))
            except InvalidRequest as error:
                number, name = line_of_error(error), f"{path.parent.name}/{path.name}"
                text = f"{error.detail.removeprefix(f'{path}:').removeprefix(f'{number}:').strip()}: {error.hint}"
                broken = Problem(name, SYNTAX, "violation", text, str(path), number)
                _add(report, broken, path.resolve() in wanted)
    query_files = [path for path in files.values() if path.suffix == ".rq"]
    for path, problem in check_queries(query_files, root):
        _add(report, problem, path.resolve() in wanted)
    if not given:
        report.problems += unread(root)
    with time_limited(f"judging the overlay of {root}"):
        schema, findings = _judged(additions)
    for path, problem in _undeclared_in(
        query_files if queries else [path for path in _own(root) if path.suffix == ".rq"], schema
    ):
        _add(report, problem, not queries or path.resolve() in wanted)
    for place, problem in _placed(findings, additions):
        if place is None or place.resolve() in wanted:
            report.problems.append(problem)
    report.judged = len(wanted)
    report.problems = in_order(report.problems)
    if not files:
        report.notes.append(f"{root} has no overlay: no file in ontology/, shapes/ or queries/")
    return report


def add_rule_faults(report: CheckReport, root: Path) -> None:
    """Add the violations of the terms and shapes of *root* to the *report* of a check, which they leave incomplete.

    So does a file of rules that is not read. Faults that the check itself has found are not added.
    """
    if not any((root / name).is_dir() for name in (TERMS, RULES, QUESTIONS)):
        return
    found = check_overlay(root, queries=False)
    known = {(each.rule, each.item) for each in report.problems}
    faults = [each for each in found.problems if each.severity == "violation" and (each.rule, each.item) not in known]
    unread = [each for each in found.problems if each.rule == READ and Path(each.item).suffix in _OF_RULES]
    report.problems = in_order([*report.problems, *faults, *unread])
    report.unchecked += [f"{each.item}: {each.message}" for each in unread]
    if faults:
        names = ", ".join(dict.fromkeys(os.path.relpath(each.path, root) for each in faults if each.path))
        report.unchecked.append(f"{names}: a faulty rule may judge nothing: correct it first")


def _add(report: CheckReport, problem: Problem, wanted: bool) -> None:
    """Add a problem; one outside the request is a reason for an incomplete check."""
    if wanted:
        report.problems.append(problem)
    else:
        report.unchecked.append(f"{problem.path} was not included: {problem.message}")


def _read_turtle(path: Path, number: int) -> OverlayAdditions:
    """Return a Turtle file; raise InvalidRequest, with file and line, if it cannot be read or parsed."""
    try:
        source = FileSource(str(path), path.read_bytes())
    except OSError as error:
        raise InvalidRequest(f"{path}: {error.strerror}", hint="make it a readable file") from error

    def apart(term: Term) -> Term:
        return f"_:f{number}-{term[2:]}" if term.startswith("_:") else term

    triples = tuple((apart(s), p, apart(o)) for s, p, o in source.triples)
    is_rules = path.parent.name == RULES or (path.parent.name != TERMS and any(is_shacl(row) for row in triples))
    return OverlayAdditions(path, source, is_rules, triples)


def _own(root: Path) -> list[Path]:
    """Return the files of the overlay of *root* that are read."""
    return [path for pattern in _READ for path in sorted(root.glob(pattern))]


def unread(root: Path) -> Iterator[Problem]:
    """Yield the files of an overlay in places where they are not read."""
    own = _own(root)
    for folder in (TERMS, RULES, QUESTIONS):
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path not in own and not path.name.startswith("."):
                text = f"this file is not read: an overlay is {', '.join(_READ)}"
                yield Problem(str(path.relative_to(root)), READ, "warning", text, str(path))


def _judged(additions: Sequence[OverlayAdditions]) -> tuple[Schema, list[UnplacedFinding]]:
    """Return the ontology with all files, and the findings about their terms and shapes."""
    findings: list[UnplacedFinding] = []
    terms: dict[Path, list[Triple]] = {}
    rules: dict[Path, list[Triple]] = {}
    for each in additions:
        triples_of_file = (rules if each.is_rules else terms).setdefault(each.path, [])
        for triple in each.triples:
            objection = schemas.find_violation(triple)
            if objection is None:
                triples_of_file.append(triple)
            else:
                text = f"this {objection.text}: {objection.hint}"
                findings.append(UnplacedFinding(triple[0], objection.rule, "violation", text, triple[1], triple[2]))
    schema = extended_by(terms, rules)
    own = [triple for triples in (*terms.values(), *rules.values()) for triple in triples]
    mapped = {path: triples for path, triples in terms.items() if path.name == _ALIGNMENT}
    of_terms = [row for path, rows in terms.items() if path not in mapped for row in rows]
    findings += check_terms(of_terms, schema) + undeclared(own, schema)
    findings += shapes([row for triples in rules.values() for row in triples], schema)
    findings += inconsistencies(TripleSource([]), schema) if of_terms else []
    return schema, findings


def _placed(
    findings: Iterable[UnplacedFinding], additions: Sequence[OverlayAdditions]
) -> Iterator[tuple[Path | None, Problem]]:
    """Yield each finding with its file, and as a problem with its line; a blank node is reported at its owner."""
    about: dict[Term, list[int]] = {}
    owner: dict[Term, Term] = {}
    for number, each in enumerate(additions):
        for subject, _, value in each.triples:
            about.setdefault(subject, []).append(number)
            if value.startswith("_:"):
                owner.setdefault(value, subject)
    lines = [by_subject(each.source.statements_with_lines) for each in additions]
    for one in findings:
        places = dict.fromkeys(about.get(one.item, ()))
        named, seen = one.item, {one.item}
        while named in owner and owner[named] not in seen:
            named = owner[named]
            seen.add(named)
        problem = Problem(plain_value(named) if is_iri(named) else named, one.rule, one.severity, one.message)
        if not places:
            yield None, problem
            continue
        number = _file_of(one, list(places), additions)
        local = replace(one, item=_label(one.item), value=_label(one.value))
        path = additions[number].path
        yield path, replace(problem, path=str(path), line=line_in(lines[number], local))


def _file_of(finding: UnplacedFinding, places: Sequence[int], additions: Sequence[OverlayAdditions]) -> int:
    """Return the file with the faulty triple, else the first with the node."""
    triple = (finding.item, finding.property, finding.value)
    return next((number for number in places if triple in additions[number].triples), places[0])


def _label(term: Term | None) -> Term:
    match = _BLANK.fullmatch(term or "")
    return f"_:{match[2]}" if match else term or ""


SHIPPED, NOW = "shipped", "now"
_AT_ONCE = 500
#: The most revisions of an overlay that are searched for a version.
_LOOKED_AT = 200
_TIGHTER_UP, _TIGHTER_DOWN = {"minCount", "minLength"}, {"maxCount", "maxLength"}
_ENDS = {jido("supersededBy"), jido("invalidatedBy")}
_COLUMNS = ("change", "kind", "term", "what")


@dataclass(frozen=True, slots=True)
class OntologyChange:
    """One changed term or shape: added, removed, changed, deprecated, tightened or relaxed."""

    change: str
    kind: str
    term: str
    what: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the change as plain JSON values."""
        return {name: getattr(self, name) for name in _COLUMNS}


def version(root: Path, name: str | None) -> Schema:
    """Return the ontology by name: `shipped`, `now` or None, a folder with an overlay, or a git revision of the root.

    It may also be the version named by commits of the journal, if git has the overlay of that version.

    Raises InvalidRequest for an unknown name, Failed for an ontology that cannot be used.
    """
    if name in (None, NOW):
        return schemas.load([root])
    if name in (SHIPPED, schemas.load().version):
        return schemas.load()
    if Path(name).is_dir():
        return schemas.load([Path(name)])
    now = schemas.load([root])
    if name == now.version:
        return now
    return _marked(root, name) if name.startswith(f"{schemas.load().version}+") else _at(root, name)


def _marked(root: Path, name: str) -> Schema:
    """Return the ontology version that commits name: the newest of the overlay in git with this version."""
    listed = git.read_git(
        root, "log", "--all", f"--max-count={_LOOKED_AT}", "--format=%H", "--", "ontology/", "shapes/"
    )
    revisions = (listed or b"").decode().split()
    for revision in revisions:
        try:
            ontology = _at(root, revision)
        except JidomemError:  # an invalid overlay was never in use
            continue
        if ontology.version == name:
            return ontology
    hint = "a commit has only the name of the version: give a folder with the ontology/ and shapes/ of that version"
    where = (
        f"none of the {len(revisions)} revisions of the overlay in git is"
        if revisions
        else "git has no overlay that is"
    )
    raise InvalidRequest(f"{where} {name}", hint=hint)


def _at(root: Path, ref: str) -> Schema:
    listed = None
    if not ref.startswith("-"):
        listed = git.read_git(root, "ls-tree", "-z", "--name-only", ref, "ontology/", "shapes/")
    if listed is None:
        hint = f"name {SHIPPED}, a folder with ontology/ and shapes/, or a commit, branch or tag"
        raise InvalidRequest(f"{ref!r} is not a version of the ontology", hint=hint)
    with TemporaryDirectory() as folder:
        for name in map(os.fsdecode, filter(None, listed.split(b"\0"))):
            if name.endswith(".ttl") and name.count("/") == 1:  # a forged tree may contain paths outside the folder
                path = Path(folder) / name
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(git.blob(root, ref, name) or b"")
        return schemas.load([Path(folder)])


def earlier_rules(root: Path | None, schema: Schema, revision: Revision | None) -> Schema | None:
    """Return the ontology of the root where its branch left *revision*; None without a range, or if it is *schema*.

    That of an unusable overlay is the shipped one.
    """
    if root is None or revision is None:
        return None
    ref, folders = revision.shared(root).ref, ("--", "ontology/", "shapes/")
    differing = git.read_git(root, "diff", "--name-only", ref, *folders)
    if not differing and not git.read_git(root, "ls-files", "--others", *folders):
        return None
    try:
        earlier = _at(root, ref)
    except JidomemError:
        earlier = schemas.load()
    return None if earlier.version == schema.version else earlier


def changes(old: Schema, new: Schema) -> list[OntologyChange]:
    """Return the terms and shapes that were added, removed or changed, sorted by kind and term."""
    ontology_changes = []
    for kind, before, after in (("term", old.triples, new.triples), ("shape", old.rules, new.rules)):
        was, now = _by_subject(before), _by_subject(after)
        for term in sorted(was.keys() | now.keys()):
            if term not in was or term not in now:
                ontology_changes.append(OntologyChange("added" if term in now else "removed", kind, plain_value(term)))
            elif was[term] != now[term]:
                word = "deprecated" if term in new.deprecated - old.deprecated else "changed"
                removed, came = was[term] - now[term], now[term] - was[term]
                word = _grade(removed, came) if kind == "shape" else word
                verbs = sorted({local_name(verb) for verb, _ in removed | came})
                ontology_changes.append(OntologyChange(word, kind, plain_value(term), ", ".join(verbs)))
    return ontology_changes


def _by_subject(triples: tuple[Triple, ...]) -> dict[Term, set[tuple[Term, Term]]]:
    """Return the triples of each named node, with those of its blank nodes."""
    rows = grouped((subject, (predicate, value)) for subject, predicate, value in label_blank_nodes(triples))

    def parts(node: Term) -> list[Term]:
        return [value for _, value in rows.get(node, ()) if value.startswith("_:")]

    properties = {}
    for node in filter(is_iri, rows):
        every = [row for part in reachable([node], parts) for row in rows.get(part, ())]
        own = {row for row in every if not row[1].startswith("_:")}
        properties[node] = own.union(row for row in rows[node] if row[1].startswith("_:"))  # the structure of the parts
    return properties


def _grade(removed: set[tuple[Term, Term]], came: set[tuple[Term, Term]]) -> str:
    """Return whether a shape is stricter, weaker or different."""
    before, after = _numbers(removed), _numbers(came)
    plain = all(
        value.startswith("_:") or local_name(verb) in before.keys() | after.keys() for verb, value in removed | came
    )
    if not plain:
        return "changed"
    steps = set()
    for verb in before.keys() | after.keys():
        was, now = before.get(verb), after.get(verb)
        more = now is not None and (was is None or (now > was if verb in _TIGHTER_UP else now < was))
        steps.add("tightened" if more else "relaxed")
    return steps.pop() if len(steps) == 1 else "changed"


def _numbers(properties: set[tuple[Term, Term]]) -> Mapping[str, int]:
    limits = _TIGHTER_UP | _TIGHTER_DOWN
    return {
        local_name(verb): int(parse_literal(value).text)
        for verb, value in properties
        if local_name(verb) in limits and value.startswith('"') and parse_literal(value).text.isdecimal()
    }


def now_failing(index: OxigraphIndex, project: str, old: Schema, new: Schema) -> Iterator[UnplacedFinding]:
    """Yield each violation of *new* at an active memory of *project* that *old* accepts, in batches of memories."""
    graph = graph_iri(project)
    spaces = old.namespaces | new.namespaces
    old, new = replace(old, namespaces=spaces), replace(new, namespaces=spaces)
    by_terms = old.triples != new.triples  # else gates and terms have the same findings
    items = (row[0] for row in index.triples(graph, None, jido("hasAssertionStatus"), jido("Asserted")))
    while some := list(islice(items, _AT_ONCE)):
        source = _path_triples(index, graph, some, (*old.rules, *new.rules))
        ended = {row[0] for row in source.triples if row[1] in _ENDS}
        nodes = {item for item in some if item not in ended}
        broken = _broken(new, source, nodes, by_terms=by_terms)
        if broken:
            failing = {each.item for each in broken}
            were = _broken(old, source, failing, by_terms=by_terms)
            before = {(each.item, each.rule, each.property, each.value) for each in were}
            yield from (one for one in broken if (one.item, one.rule, one.property, one.value) not in before)


def _broken(schema: Schema, source: TripleSource, nodes: set[Term], *, by_terms: bool) -> list[UnplacedFinding]:
    """Return the violations of shapes at *nodes*; with *by_terms* also those of terms and gates."""
    findings = [
        UnplacedFinding(each.focus, plain_value(each.shape), each.severity, each.message, None, each.value)
        for each in schema.judge(source.triples, nodes, in_check=True)
    ]
    if by_terms:
        findings += terms_used(source, schema)
        findings += rules.run(rules.shipped(), rules.of_source(source, schema.triples))[0]
    return sorted({each for each in findings if each.severity == "violation" and each.item in nodes}, key=repr)


def _path_triples(index: OxigraphIndex, graph: str, items: list[Term], rules: tuple[Triple, ...]) -> TripleSource:
    """Return the triples of *items*, and those on the paths of *rules* from them."""
    rows: dict[Triple, None] = {}
    seen: set[Term] = set()
    todo, own = set(items), set(items)
    while todo:
        for node in todo:
            rows |= dict.fromkeys(index.triples(graph, node))
            rows |= dict.fromkeys(index.triples(graph, None, None, node) if node in own else ())
        seen |= todo
        nodes = {term for row in reachable_triples(TripleSource(list(rows)), items, rules) for term in (row[0], row[2])}
        todo = {term for term in nodes if is_iri(term)} - seen
    return TripleSource(list(rows))


FOLDERS = (TERMS, RULES)
#: The most bytes of a changed file, and the most changes and failures that are listed.
BYTES, LISTED = 256 * 1024, 200
#: The name of an additional file of a folder.
_FURTHER = "further.ttl"


@dataclass(frozen=True, slots=True)
class Preview:
    """The effect of a change: changed terms and shapes, and active memories that would newly fail.

    `problems` are those of the changed file; if they prevent the root from being opened, it is not `usable` and nothing
    else is known. `rules` counts all failures by rule, `failing` are the first of them.
    """

    name: str
    usable: bool
    problems: Sequence[Problem]
    changes: Sequence[OntologyChange] = ()
    failing: Sequence[Problem] = ()
    rules: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the preview as plain JSON values."""
        return {
            "name": self.name,
            "usable": self.usable,
            "problems": [each.to_dict() for each in self.problems],
            "changed": len(self.changes),
            "changes": [asdict(each) for each in self.changes[:LISTED]],
            "failures": sum(self.rules.values()),
            "rules": [{"rule": rule, "name": local_name(rule), "count": count} for rule, count in self.rules.items()],
            "failing": [each.to_dict() for each in self.failing],
        }


def own_files(root: Path) -> list[str]:
    """Return the paths of the term and shape files of *root*, relative to it."""
    return [f"{name}/{path.name}" for name in FOLDERS for path in sorted((root / name).glob("*.ttl"))]


def copy_with_overlay(root: Path, folder: Path, name: str, text: str) -> str:
    """Copy the overlay of *root* into *folder* with the content *text* for the file *name*; an empty text removes the
    file.

    *name* is one of `own_files`, or the name of a folder for an additional file. Returns the path of the file. Raises
    InvalidRequest for another name, for an empty additional file, and for one that is too large.
    """
    known = own_files(root)
    is_further = name in FOLDERS
    if not is_further and name not in known:
        hint = f"one of: {', '.join([*FOLDERS, *known])}"
        raise InvalidRequest(f"{name[:100]!r} is not a file of the overlay", hint=hint)
    if is_further and not text.strip():
        raise InvalidRequest("there is no text", hint="give the terms or the rules as Turtle")
    size = len(text.encode())
    if size > BYTES:
        hint = "give only the changed file; or: jidomem ontology diff --from now --to FOLDER"
        raise InvalidRequest(f"this has {size:,} bytes, more than the limit of {BYTES:,}", hint=hint)
    for each in FOLDERS:
        (folder / each).mkdir()
    for each in known:
        shutil.copyfile(root / each, folder / each)
    path = _free(folder / name / _FURTHER) if is_further else folder / name
    if text.strip():
        path.write_text(text, "utf-8")
    else:
        path.unlink()
    return str(PurePosixPath(path.parent.name, path.name))


def _free(path: Path) -> Path:
    """Return *path*, or a similar path that is free."""
    while path.exists():
        path = path.with_name(f"a-{path.name}")
    return path


def preview(index: OxigraphIndex, project: str, root: Path, folder: Path, name: str) -> Preview:
    """Return the changes in *project* if the overlay in *folder* replaced that of *root*, with the problems of its file
    *name*.

    Raises Failed if another file prevents the overlay from being used.
    """
    problems = _problems(folder, name)
    try:
        new = schemas.load([folder])
    except Failed:
        if not any(each.severity == "violation" for each in problems):
            raise
        return Preview(name, False, problems)
    old, counts = schemas.load([root]), Counter[str]()
    failing: list[Problem] = []
    for finding in now_failing(index, project, old, new):
        counts[finding.rule] += 1
        if len(failing) < LISTED:
            failing.append(Problem(plain_value(finding.item), finding.rule, finding.severity, finding.message))
    return Preview(name, True, problems, changes(old, new), failing, dict(counts.most_common()))


def _problems(folder: Path, name: str) -> list[Problem]:
    """Return the problems of the file, judged with all others; its path is relative to the root."""
    path = folder / name
    if not path.exists():
        return []
    problems = check_overlay(folder, [path]).problems
    return [replace(each, message=each.message.replace(f"{folder}/", ""), path=name) for each in problems]
