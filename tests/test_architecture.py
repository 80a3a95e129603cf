"""The layers and the purity of the house, as docs/architecture.md draws them."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path, PurePath

import pytest

from bench.source_tree import count_modules, definitions, documentation_text, is_everyday, modules
from jidomem import errors

ROOT = Path(__file__).parent.parent
LAYERS = [  # each row may import itself and the rows above it
    {"errors"},
    {"base", "extras"},
    {"rdf"},
    {"records"},
    {"schema", "repository"},
    {"journal"},
    {"index"},
    {"extras.servers"},
    {"read"},
    {"write", "working", "entries"},
    {"exchange"},
    {"models"},
    {"recall"},
    {"check"},
    {"curation", "providers"},
    {"runtime", "extras.memoryos", "__init__"},
    {"extras.code", "extras.transfer", "clients"},
    {"serve", "extras.web", "guard"},
    {"adapters"},
    {"jidomem_cli"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
PAGE = ROOT / "docs" / "architecture.md"
PURE = [
    "base/containers.py",
    "base/json_values.py",
    "base/regex.py",
    "entries/__init__.py",
    "entries/conformance.py",
    "entries/store.py",
    "errors.py",
    "exchange/adr.py",
    "exchange/adr_markdown.py",
    "exchange/adr_parser.py",
    "exchange/documents.py",
    "exchange/importer.py",
    "exchange/memory_md.py",
    "exchange/note_page.py",
    "exchange/note_statements.py",
    "exchange/other_formats.py",
    "exchange/sync_plan.py",
    "extras/code/elixir.py",
    "extras/code/python.py",
    "extras/memoryos/config.py",
    "extras/memoryos/jobs.py",
    "extras/memoryos/personas.py",
    "extras/memoryos/retrieval.py",
    "extras/memoryos/segments.py",
    "extras/memoryos/storage.py",
    "extras/memoryos/transactions.py",
    "extras/memoryos/values.py",
    "extras/servers/log.py",
    "extras/web/review.py",
    "index/results.py",
    "journal/commit.py",
    "journal/lines.py",
    "models/chat.py",
    "models/embeddings.py",
    "models/keywords.py",
    "models/offline.py",
    "models/scripted.py",
    "providers/__init__.py",
    "providers/conformance.py",
    "providers/dispatch.py",
    "providers/graph.py",
    "rdf/sparql.py",
    "rdf/statements.py",
    "rdf/terms.py",
    "rdf/turtle.py",
    "rdf/vocab.py",
    "recall/briefing.py",
    "recall/question.py",
    "records/active.py",
    "records/differences.py",
    "records/directive.py",
    "records/entry.py",
    "records/file_anchor.py",
    "records/intent.py",
    "records/limits.py",
    "records/interfaces.py",
    "records/named_query.py",
    "records/policy.py",
    "records/recall.py",
    "records/tokens.py",
    "repository/record_files.py",
    "runtime/logs.py",
    "schema/shacl_compiler.py",
    "serve/mcp/server_memory.py",
    "serve/mcp/tools.py",
    "working/__init__.py",
    "working/agent.py",
    "working/container.py",
    "working/memory.py",
    "working/thread.py",
    "working/tiers.py",
    "write/batch.py",
    "write/canonical.py",
    "write/conflict.py",
    "write/conversation.py",
    "write/corrections.py",
    "write/normalize.py",
    "write/other_writes.py",
    "write/permissions.py",
    "write/pipeline.py",
    "write/secrets.py",
    "write/settlement.py",
    "write/snapshot.py",
    "write/submission.py",
    "write/triples.py",
    "write/validate.py",
]
IMPURE_MODULES = {"jidomem.base.disk", "jidomem.base.files"}
PURE_FUNCTIONS_OF_TIME = {
    f"jidomem.base.clock.{name}" for name in ("format_timestamp", "impossible_day", "json_value", "parse_moment")
}
IMPURE_IMPORTS = {"os", "pathlib", "time", "random", "uuid", "secrets", "logging", "flask", "sqlite3", "rdflib"}


def unit(path):
    """The entry of the table for a module: its package under jidomem, its name at the top, or the command line."""
    if path.is_relative_to(ROOT / "cli"):
        return "jidomem_cli"
    parts = path.relative_to(ROOT / "jidomem").parts
    if parts[0] == "extras":
        return f"extras.{parts[1]}" if len(parts) > 2 else "extras"
    return parts[0] if len(parts) > 1 else path.stem


@cache
def tree(path):
    """The syntax tree of a module."""
    return ast.parse(path.read_text("utf-8"))


@pytest.fixture(scope="module", autouse=True)
def _trees_end_with_the_module():
    yield
    tree.cache_clear()


@cache
def imports(path):
    """Every module named by an import statement, as a dotted name; relative imports are not used in this house."""
    return tuple(_imports(path))


def _statements(block):
    for statement in block:
        yield statement
        for inner in ("body", "handlers", "orelse", "finalbody", "cases"):
            yield from _statements(getattr(statement, inner, ()))


def _imports(path):
    for node in _statements(tree(path).body):  # a walk of all expressions too takes three times as long
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write imports in full"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported_unit(name):
    if name.split(".")[0] == "jidomem_cli":
        return "jidomem_cli"
    parts = name.split(".")
    if parts[0] != "jidomem" or len(parts) < 2:
        return None
    unit = ".".join(parts[1:3]) if parts[1] == "extras" else parts[1]
    return unit if unit in RANK else None


def test_a_module_imports_only_from_its_own_row_and_above():
    assert {unit(path) for path in modules()} - RANK.keys() == set()  # each has a row in the table of layers
    assert [
        (str(path.relative_to(ROOT)), name)
        for path in modules()
        for name in imports(path)
        if RANK.get(imported_unit(name), -1) > RANK[unit(path)]
    ] == []


def test_a_pure_module_reads_no_clock_no_files_and_no_store():
    assert {name: impure for name in PURE if (impure := impure_imports(ROOT / "jidomem" / name))} == {}


def impure_imports(path):
    """The imports of *path* that reach the clock, files, randomness, a store or the opened root."""
    return [
        name
        for name in imports(path)
        if name.split(".")[0] in IMPURE_IMPORTS
        or imported_unit(name) in {"index", "runtime"}
        or name in IMPURE_MODULES
        or (name.startswith("jidomem.base.clock.") and name not in PURE_FUNCTIONS_OF_TIME)
    ]


def test_the_house_has_at_most_230_modules_and_the_command_line_25():  # without packages that have a docstring only
    trees = {path: tree(path) for path in modules()}
    assert count_modules(trees, ROOT / "jidomem") <= 230
    assert count_modules(trees, ROOT / "cli") <= 25


def test_no_module_has_more_than_700_lines():  # 150 to 450 is normal; beyond 700 it holds a second concept
    lengths = {str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in modules()}
    assert {name: lines for name, lines in lengths.items() if lines > 700} == {}


def test_each_error_is_made_with_a_hint():
    plain = errors.JidomemError.__init__  # the others make a hint of what they are given
    named = {name for name, each in vars(errors).items() if getattr(each, "__init__", None) is plain}
    made = [
        (f"{path.relative_to(ROOT)}:{call.lineno}", {each.arg for each in call.keywords})
        for path in modules()
        for call in ast.walk(tree(path))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in named
    ]
    assert len(made) > 100
    assert [place for place, arguments in made if not {"hint", None} & arguments] == []


def test_only_the_command_line_and_the_settings_read_the_environment():
    passes_it_on = ROOT / "jidomem/repository/git.py"  # to git, without the variables of a repository
    readers = [
        path
        for path in modules()
        if any(word in path.read_text("utf-8") for word in ("os.environ", "os.getenv"))
        and not path.is_relative_to(ROOT / "cli")
        and path != passes_it_on
    ]
    assert [path.name for path in readers if path.name != "settings.py"] == []


def test_the_packages_listed_for_the_wheel_are_the_folders_of_the_tree():
    import tomllib

    setup = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    folders = setup["package-dir"]
    listed = {ROOT.joinpath(folders.get(name, name.replace(".", "/"))) for name in setup["packages"]}
    code = {path.parent for path in modules()}
    data = {ROOT / "ontology", ROOT / "shapes", ROOT / "queries", ROOT / ".jidomem"}
    assert code | data <= listed
    assert all(folder.is_dir() for folder in listed)


def test_no_two_files_of_tests_have_one_name():
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]

    assert sorted({name for name in names if names.count(name) > 1}) == []  # pytest collects one of them alone


TOUCHES_THE_DISK = {"os", "io", "shutil", "tempfile", "fcntl", "mmap", "glob", "subprocess"}
OF_PATHS = set(dir(Path)) - set(dir(PurePath))


@pytest.mark.parametrize("path", sorted((ROOT / "jidomem" / "journal").glob("*.py")), ids=lambda path: path.name)
def test_the_journal_touches_the_disk_through_one_module(path):
    named = imports(path)
    in_memory = {"io.BytesIO"} | (
        {"io"} if {each for each in named if each.startswith("io.")} == {"io.BytesIO"} else set()
    )
    touched = [name for name in named if name.split(".")[0] in TOUCHES_THE_DISK and name not in in_memory]
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open":
            touched.append(f"open in line {node.lineno}")
        if isinstance(node, ast.Attribute) and node.attr in OF_PATHS - {"absolute", "replace"}:
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            touched += [] if owner in ("disk", "self") else [f".{node.attr} in line {node.lineno}"]
    assert touched == []


def test_one_module_asks_a_chat_model():  # D079
    asking = [path for path in modules() if "/chat/completions" in path.read_text("utf-8")]
    assert [path.relative_to(ROOT).as_posix() for path in asking] == ["jidomem/models/chat.py"]


def test_only_the_clients_of_models_speak_with_an_endpoint():  # D079
    speaking = [path for path in modules() if "jidomem.models.endpoint" in imports(path)]
    assert {path.parent.name for path in speaking} == {"models", "runtime"}
    assert [path.stem for path in speaking if path.parent.name == "runtime"] == ["model_choice"]  # it opens them


def test_the_page_has_the_rows_of_the_table_of_layers():
    rows = [line.split("|")[1] for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")]
    drawn = [{name.strip("`") for name in row.split()} for row in rows]
    layers = [names - {"__init__"} for names in LAYERS]

    assert drawn[drawn.index({"errors"}) :] == layers


def test_each_package_begins_with_its_purpose():
    packages = [path.parent for path in (ROOT / "jidomem").rglob("__init__.py")]

    assert {
        str(each.relative_to(ROOT)) for each in packages if not ast.get_docstring(tree(each / "__init__.py"))
    } == set()
    assert len([each for each in (ROOT / "jidomem").iterdir() if each.name != "__pycache__"]) <= 26


def test_the_glossary_has_at_most_sixty_words_and_names_where_each_is():
    rows = re.findall(r"^\| \*\*([^|]+)\*\* \| ([^|]+) \| `([^`]+)` \|$", PAGE.read_text("utf-8"), re.MULTILINE)

    assert 0 < len({word for word, _, _ in rows}) == len(rows) <= 60
    assert [place for _, _, place in rows if not (ROOT / place).exists()] == []


def test_each_package_names_the_module_to_start_with():
    packages = [path.parent for path in (ROOT / "jidomem").rglob("__init__.py")]
    named = {
        each.relative_to(ROOT).as_posix(): re.findall(
            r"Start with `([\w.]+)`", ast.get_docstring(tree(each / "__init__.py")) or ""
        )
        for each in packages
        if each.name != "extras"
    }

    assert {
        name: modules
        for name, modules in named.items()
        if len(modules) != 1 or not (ROOT / name / modules[0].replace(".", "/")).with_suffix(".py").is_file()
    } == {}


def test_public_names_are_nouns_and_verbs_of_the_field():
    names = {name for path in modules() for name in definitions(tree(path))}

    assert sorted(filter(is_everyday, names)) == []


def test_each_public_class_has_a_name_of_its_own():
    public = re.compile(r"^ *class ([A-Za-z]\w*)[(:]", re.MULTILINE)
    names = Counter(name for path in modules() for name in public.findall(path.read_text("utf-8")))

    assert [name for name, count in names.items() if count > 1] == []


def test_readme_and_docs_have_at_most_45000_words():
    assert len(documentation_text().split()) <= 45_000


def test_each_function_that_answers_a_question_exists():
    import pkgutil

    section = PAGE.read_text("utf-8").partition("## Questions of a newcomer")[2].partition("\n## ")[0]
    places = re.findall(r"^\| .+\? \| .+ \| (`.+`) \|$", section, re.MULTILINE)
    names = [name for place in places for name in re.findall(r"`([\w.]+)`", place)]

    assert len(names) >= len(places) > 15
    for name in names:
        pkgutil.resolve_name(f"jidomem.{name}")


#: The files that use the field of the example for its own sake, which another field does not need.
OWN_USES = {
    "jidomem/base/words.py", "jidomem/check/check.py", "jidomem/exchange/other_formats.py", "docs/architecture.md",
    "docs/check.md", "docs/comparison.md", "docs/import.md",
}  # fmt: skip


def test_the_files_that_a_new_field_needs_are_those_with_the_field_of_the_example():
    section = PAGE.read_text("utf-8").partition("## Add a field to a fact")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([\w/]+\.(?:py|ttl|md))`", section))
    folders = [ROOT / name for name in ("jidomem", "cli", "ontology", "shapes", "queries")]
    files = [path for folder in folders for path in folder.rglob("*") if path.suffix in {".py", ".ttl", ".rq", ".html"}]
    files += [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "how-to").glob("*.md")]
    having = {
        str(path.relative_to(ROOT)) for path in files if re.search("tracked_by|trackedBy", path.read_text("utf-8"))
    }

    assert having - OWN_USES == named
    assert having >= OWN_USES


#: The folders of tests that are about no single package.
OTHER_TESTS = {
    "bench", "cases", "cli", "contracts", "documentation", "formats", "ontology", "peers", "queries", "shapes",
    "standards", "torture",
}  # fmt: skip


def test_each_folder_of_tests_is_named_as_a_package():
    packages = {path.parent.name for path in (ROOT / "jidomem").rglob("__init__.py")}
    folders = {
        path.relative_to(ROOT / "tests").parts[0]
        for path in (ROOT / "tests").rglob("*.py")
        if path.parent != ROOT / "tests"
    }

    assert sorted(folders - packages - OTHER_TESTS) == []
