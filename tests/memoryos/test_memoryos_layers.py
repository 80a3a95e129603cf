"""The layers of MemoryOS: no layer imports a later one."""

import ast
import subprocess
import sys
from pathlib import Path

import jidomem.extras.memoryos

FOLDER = Path(jidomem.extras.memoryos.__file__).parent
LAYERS = [  # each may import itself and those before it
    {"config", "values"},
    {"segments", "personas", "retrieval"},
]
MANAGEMENT = {"storage", "transactions", "jobs", "job_handlers", "memory_os"}
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def imported(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("jidomem."):
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))


# D119
def test_no_core_layer_imports_a_later_layer_or_the_runtime():
    modules = {path.stem: path for path in FOLDER.glob("*.py") if path.stem != "__init__"}

    assert modules.keys() == RANK.keys() | MANAGEMENT
    for name in RANK:
        needed = [*imported(modules[name])]
        own = {each.split(".")[3] for each in needed if each.startswith("jidomem.extras.memoryos.")}
        assert {each for each in own if RANK.get(each, len(LAYERS)) > RANK[name]} == set()
        assert [each for each in needed if each.split(".")[1] in ("runtime", "models", "serve")] == []


# D041
def test_no_core_module_has_a_numeric_constant_that_is_no_setting():
    def numbers(path):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
                yield node.value

    constants = {name: {*numbers(FOLDER / f"{name}.py")} - {0, 1} for name in RANK if name != "config"}

    # the law of cosines has a 2; then its limit for unlike lengths, and the sizes of caches of words and statements
    assert {name: values for name, values in constants.items() if values} == {
        "segments": {2, 16.0, 1e-150, 8_192}, "personas": {1_024},
    }  # fmt: skip


# D111 D119
def test_the_core_runs_without_loading_a_database_or_a_model():
    program = """
import sys
from jidomem.extras.memoryos import personas, retrieval, segments
from jidomem.extras.memoryos.segments import TierPolicy
from jidomem.extras.memoryos.values import SystemMemory, Tiers
from jidomem.extras.memoryos.values import DialoguePage
tiers = segments.insert(Tiers("ada"), DialoguePage("p1", "ada", "?", "!", "2026-11-21"), TierPolicy()).memory
found = retrieval.retrieve(tiers, SystemMemory(), retrieval.RetrievalQuery("?"), TierPolicy())
print(found.stm[0].what.id, {"sqlite3", "numpy", "pyoxigraph", "jidomem.runtime"} & set(sys.modules))
"""
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert completed.stdout == "p1 set()\n"
