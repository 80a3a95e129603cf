"""Foundation, core logic and management of MemoryOS stand on their own: none needs what comes after it."""

import ast
import subprocess
import sys
from pathlib import Path

import jidomem.memoryos

FOLDER = Path(jidomem.memoryos.__file__).parent
LAYERS = [  # each may import itself and those before it
    {"form", "values", "config", "configurations"},
    {"scores", "tiers"},
    {"arriving", "joining", "reshaping", "warming", "teaching", "lessons", "sharing", "forgetting"},
    {"retrieval"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def imported(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("jidomem."):
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            yield from (name for name in names if name.count(".") > 1)
            yield from (name for name in names if name.startswith("jidomem.runtime"))


# D119
def test_no_layer_of_the_core_needs_a_later_one_nor_the_runtime():
    modules = {path.stem: path for path in FOLDER.glob("*.py") if path.stem != "__init__"}

    assert modules.keys() == RANK.keys()
    for name, path in modules.items():
        needed = [each.split(".") for each in imported(path)]
        own = [each[2] for each in needed if each[1] == "memoryos" and each[2] in RANK]
        assert [each for each in own if RANK[each] > RANK[name]] == []
        assert [each for each in needed if each[1] in ("runtime", "models", "serve")] == []


# D041
def test_no_move_and_no_score_goes_by_a_number_that_is_no_setting():
    def numbers(path):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
                yield node.value

    told = {path.stem: {*numbers(path)} - {0, 1} for path in FOLDER.glob("*.py") if path.stem != "config"}

    # the law of cosines has a 2; where two lengths are too unlike for it, and what is kept of the words of texts
    assert {name: found for name, found in told.items() if found} == {"scores": {2, 16.0, 1e-150, 8_192}}


# D111 D119
def test_the_core_works_where_no_database_and_no_model_is_loaded():
    program = """
import sys
from jidomem.memoryos import arriving, joining, reshaping, retrieval, sharing, warming
from jidomem.memoryos.scores import Policy
from jidomem.memoryos.tiers import SystemMemory, Tiers
from jidomem.memoryos.values import DialoguePage
tiers = arriving.insert(Tiers("ada"), DialoguePage("p1", "ada", "?", "!", "2026-11-21"), Policy()).memory
found = retrieval.retrieve(tiers, SystemMemory(), retrieval.Question("?"), Policy())
print(found.stm[0].what.id, {"sqlite3", "numpy", "pyoxigraph", "jidomem.runtime"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "p1 set()\n"
