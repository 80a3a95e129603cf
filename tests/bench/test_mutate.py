"""Mutants of the code: which are generated, which code is not changed, and how survivors are reported."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.mutants import mutants
from bench.mutate import TARGETS

ROOT = Path(__file__).parent.parent.parent
CODE = "def larger(a, b):\n    if a > b:\n        return a\n    return b\n"
RUN = """
import sys
from pathlib import Path
from bench import mutate
mutate.ROOT = Path(sys.argv.pop(1))
mutate.TARGETS = {"odd": mutate.Target(("odd.py",), ("test_odd.py",))}
mutate.main()
"""


def changes_of(source: str) -> list[str]:
    return [mutant.change for mutant in mutants("odd.py", source)]


def test_operators_constants_branches_results_and_calls_are_mutated():
    assert changes_of(CODE) == ["a > b -> True", "a > b -> False", "a > b -> a >= b", "a -> None", "b -> None"]
    assert changes_of("x = f(not a, key=1)\nprint(x)\n") == [
        "not a -> a",
        "key=1 -> left out",
        "1 -> 2",
        "print(x) -> pass",
    ]
    assert changes_of("x = a and f'{b}s'\n") == ["a and f'{b}s' -> a or f'{b}s'", "'s' -> 'XXs'"]


def test_types_docstrings_and_log_calls_are_not_mutated():
    source = '''"""What it is."""
from typing import TYPE_CHECKING, Literal
if TYPE_CHECKING:
    import json
Kind = Literal["a", "b"]
@dataclass(slots=True)
class Odd:
    """What it is."""
    kind: Literal["a"] | None
    def format(self, kind: "Kind") -> str | None:
        """Return a text."""
        log.info("formatted")
        return
'''
    assert changes_of(source) == []


def test_a_mutant_is_compiled_with_its_change_alone():
    results = {}

    for number, mutant in enumerate(list(mutants("odd.py", CODE))[:3]):
        namespace: dict = {}
        exec(next(m for m in mutants("odd.py", CODE) if m.change == mutant.change).compiled("odd.py"), namespace)
        results[number] = [namespace["larger"](*pair) for pair in ((1, 2), (2, 1))]

    assert results == {0: [1, 2], 1: [2, 1], 2: [2, 2]}


def test_surviving_mutants_are_listed_and_fail_the_run_and_no_file_is_changed(tmp_path):
    code = f"EDGES = [] + []\n{CODE}"  # lists have no difference: the changed module cannot be imported
    (tmp_path / "odd.py").write_text(code)
    (tmp_path / "conftest.py").write_text("import odd\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --disable-plugin-autoload\n")  # as in this checkout
    (tmp_path / "test_odd.py").write_text(
        "from odd import larger\n\n\ndef test_larger():\n    assert larger(1, 2) == larger(2, 1) == 2\n"
        "\n\ndef test_broken():\n    assert larger(1, 1) == 2\n"
    )

    command = [sys.executable, "-c", RUN, str(tmp_path)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    refusal = subprocess.run([*command, "even"], cwd=ROOT, capture_output=True, text=True, timeout=120)

    assert result.stdout.splitlines() == [
        "excluded, because it fails without a change: test_odd.py::test_broken",
        "survived: odd.py:3: a > b -> a >= b",
        "odd: 5 of 6 killed (83%), 6 in all",
    ], result.stderr
    assert result.returncode == 1
    assert (tmp_path / "odd.py").read_text() == code
    assert refusal.returncode == 2
    assert "even: name one of odd, or a file of theirs" in refusal.stderr


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_the_files_of_each_target_exist(target):
    missing = [name for name in (*target.files(), *target.tests) if not (ROOT / name).exists()]
    assert (missing, target.files() != []) == ([], True)
