"""The layers and the purity of the house, as docs/architecture.md draws them."""

import ast
from functools import cache
from pathlib import Path, PurePath

import pytest

from jidomem import errors

ROOT = Path(__file__).parent.parent
LAYERS = [  # each row may import itself and the rows above it
    {"errors", "keyword_hints", "terms", "vocab", "resources", "moments", "clock"},
    {"version", "intent", "item", "query", "policy", "authority", "sparql", "dataset", "statements", "values", "anchor"}
    | {"entry", "frozen", "plain", "recall", "words", "lexical", "reach", "here", "directive", "provider", "turn"}
    | {"active", "days", "cues", "keeping", "embedder", "model", "stems", "candidate", "pieces", "wal", "decoding"}
    | {"excerpt", "ownership", "conflict_keys"},
    {"entries", "spaces"},
    {"tiers", "memoryos", "models"},
    {"repository", "uncollected"},
    {"deadline", "patterns", "linear", "judge", "overlay", "follow", "constraints", "compiled", "rules", "schema"},
    {"law"},
    {"journal"},
    {"index"},
    {"shared"},
    {"read"},
    {"write"},
    {"providers"},
    {"exchange"},
    {"code"},
    {"govern"},
    {"runtime", "__init__"},
    {"serve", "clients", "guard", "adapters"},
    {"jidomem_cli"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
PURE = [
    "active.py",
    "intent.py",
    "query.py",
    "sparql.py",
    "dataset.py",
    "statements.py",
    "values.py",
    "follow.py",
    "constraints.py",
    "compiled.py",
    "overlay.py",
    "patterns.py",
    "rules.py",
    "policy.py",
    "authority.py",
    "version.py",
    "terms.py",
    "moments.py",
    "vocab.py",
    "anchor.py",
    "recall.py",
    "provider.py",
    "embedder.py",
    "model.py",
    "candidate.py",
    "models/asked.py",
    "models/embedding.py",
    "models/key.py",
    "models/minilm.py",
    "models/onnx_file.py",
    "models/wordpiece.py",
    "models/claims.py",
    "models/dialogue.py",
    "models/importance.py",
    "models/prompts.py",
    "models/replies.py",
    "models/wordings.py",
    "providers/inline.py",
    "entries/__init__.py",
    "entries/store.py",
    "entries/in_memory.py",
    "entries/policy.py",
    "entries/turns.py",
    "entries/kit.py",
    "words.py",
    "conflict_keys.py",
    "excerpt.py",
    "pieces.py",
    "lexical.py",
    "reach.py",
    "spaces/agent.py",
    "spaces/changes.py",
    "spaces/container.py",
    "frozen.py",
    "spaces/items.py",
    "spaces/limits.py",
    "spaces/memory.py",
    "spaces/names.py",
    "spaces/on_spaces.py",
    "spaces/on_tasks.py",
    "spaces/on_world.py",
    "plain.py",
    "spaces/plugin.py",
    "spaces/projector.py",
    "spaces/rag.py",
    "spaces/step.py",
    "spaces/thread.py",
    "spaces/value.py",
    "memoryos/form.py",
    "memoryos/values.py",
    "memoryos/config.py",
    "memoryos/configurations.py",
    "memoryos/scores.py",
    "memoryos/tiers.py",
    "memoryos/arriving.py",
    "memoryos/joining.py",
    "memoryos/reshaping.py",
    "memoryos/warming.py",
    "memoryos/teaching.py",
    "memoryos/lessons.py",
    "memoryos/forgetting.py",
    "memoryos/sharing.py",
    "memoryos/retrieval.py",
    "tiers/renewal.py",
    "tiers/value.py",
    "runtime/memoryos/rows.py",
    "read/rank.py",
    "read/matching.py",
    "read/fusion.py",
    "read/profiles.py",
    "days.py",
    "cues.py",
    "govern/recalled.py",
    "repository/ignored.py",
    "code/extracted.py",
    "code/naming.py",
    "code/python.py",
    "code/elixir.py",
    "code/elixir_names.py",
    "code/commanded.py",
    "code/graph.py",
    "govern/briefing.py",
    "govern/quoted.py",
    "errors.py",
    "journal/commit.py",
    "journal/leaf.py",
    "journal/redaction.py",
    "write/kinds.py",
    "write/secrets.py",
    "write/entries.py",
    "write/literals.py",
    "write/turns.py",
    "turn.py",
    "write/names.py",
    "write/tidy.py",
    "write/extra.py",
    "write/normalize.py",
    "write/references.py",
    "write/view.py",
    "govern/traces.py",
    "write/validate.py",
    "write/placement.py",
    "write/conflict.py",
    "write/triples.py",
    "write/repair.py",
    "write/restate.py",
    "write/retry.py",
    "write/difference.py",
    "write/rollback.py",
    "write/session.py",
    "write/stages.py",
    "write/promotion.py",
    "write/permission.py",
    "exchange/adr.py",
    "exchange/adr_links.py",
    "exchange/adr_page.py",
    "exchange/adr_record.py",
    "exchange/adr_words.py",
    "exchange/beads.py",
    "exchange/documents.py",
    "exchange/export.py",
    "exchange/foreign.py",
    "exchange/handover.py",
    "exchange/mcp_memory.py",
    "exchange/lineage.py",
    "exchange/memory_md.py",
    "exchange/mentions.py",
    "exchange/note_page.py",
    "exchange/note_statements.py",
    "exchange/note_words.py",
    "exchange/sync_plan.py",
    "exchange/turtle.py",
    "govern/lines.py",
    "govern/report.py",
    "govern/waivers.py",
    "govern/tasks.py",
    "govern/references.py",
    "govern/chains.py",
    "govern/terms_used.py",
    "govern/unmet.py",
    "govern/junit.py",
    "govern/workflow.py",
    "guard/rule.py",
    "guard/telling.py",
    "adapters/files.py",
    "clients/json_text.py",
    "clients/toml_text.py",
    "clients/dialects.py",
]
IMPURE_IMPORTS = {"os", "pathlib", "time", "random", "uuid", "secrets", "logging", "flask", "sqlite3", "rdflib"}


def modules():
    return sorted([*(ROOT / "jidomem").rglob("*.py"), *(ROOT / "cli").rglob("*.py")])


def unit(path):
    """The row entry a module belongs to: its folder under jidomem, its own name at the top, or the command line."""
    if path.is_relative_to(ROOT / "cli"):
        return "jidomem_cli"
    parts = path.relative_to(ROOT / "jidomem").parts
    return parts[0] if len(parts) > 1 else path.stem


@cache
def imports(path):
    """Every module named by an import statement, as a dotted name; relative imports are not used in this house."""
    return tuple(_imports(path))


def _imports(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
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
    return parts[1] if parts[1] in RANK else None


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_imports_only_from_its_own_row_and_above(path):
    here = unit(path)
    assert here in RANK, f"{here} has no row in the table of layers"
    upward = [name for name in imports(path) if RANK.get(imported_unit(name), -1) > RANK[here]]
    assert upward == []


@pytest.mark.parametrize("name", [name for name in PURE if (ROOT / "jidomem" / name).exists()])
def test_a_pure_module_reads_no_clock_no_files_and_no_store(name):
    path = ROOT / "jidomem" / name
    impure = [found for found in imports(path) if found.split(".")[0] in IMPURE_IMPORTS]
    store = [found for found in imports(path) if imported_unit(found) in {"clock", "index", "runtime", "resources"}]
    assert (impure, store) == ([], [])


def test_no_module_has_more_than_700_lines():  # 150 to 450 is normal; beyond 700 it holds a second concept
    lengths = {str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in modules()}
    assert {name: lines for name, lines in lengths.items() if lines > 700} == {}


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_who_makes_an_error_says_what_to_do_next(path):
    plain = errors.JidomemError.__init__  # the others make a hint of what they are given
    named = {name for name, each in vars(errors).items() if getattr(each, "__init__", None) is plain}
    calls = [each for each in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(each, ast.Call)]
    made = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in named]
    assert [call.lineno for call in made if not {"hint", None} & {each.arg for each in call.keywords}] == []


def test_only_the_command_line_and_the_settings_read_the_environment():
    readers = [
        path
        for path in modules()
        if any(word in path.read_text("utf-8") for word in ("os.environ", "os.getenv"))
        and not path.is_relative_to(ROOT / "cli")
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
    if path.name == "disk.py":
        return
    named = imports(path)
    in_memory = {"io.BytesIO"} | (
        {"io"} if {each for each in named if each.startswith("io.")} == {"io.BytesIO"} else set()
    )
    touched = [name for name in named if name.split(".")[0] in TOUCHES_THE_DISK and name not in in_memory]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
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
    speaking = [path for path in modules() if "jidomem.models.exchange" in imports(path)]
    assert {path.parent.name for path in speaking} == {"models"}
