"""What depends on Python most, run by the later versions claimed, in the environments that `ci/pythons` made."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
#: What a newcomer does first and the roots of earlier versions, which the first runs; and some tests of each package,
#: which the last runs: those of processes, threads, sockets, files, SQLite and extension modules rather than of rules.
SUITES = {
    "3.12": ("cli/test_first_minutes.py", "formats"),
    "3.13": (
        "adapters/test_langgraph_store.py::test_a_graph_remembers_from_run_to_run",
        "base/test_excerpt.py",
        "check/test_plain_check.py",
        "cli/test_exit_codes.py",
        "clients",
        "code/test_code_import.py::test_imported_code_is_answered_by_the_queries_about_code",
        "curation/test_text_forms.py::test_lines_are_joined_as_by_a_pattern_over_their_ends",
        "entries/test_in_memory_store.py",
        "exchange/test_answers.py",
        "guard/test_since.py::test_what_a_branch_adds_is_stopped_at_its_line_in_a_renamed_file_too",
        "index/test_gc_paused.py",
        "index/test_passages.py",
        "journal/test_files.py",
        "memoryos/test_memoryos_retrieval.py",
        "models/test_endpoint.py",
        "models/test_local_embedder.py::test_local_vectors_match_those_of_the_published_network",
        "models/test_local_embedder.py::test_threads_share_one_loaded_network_and_get_equal_vectors",
        "providers/test_provider_vector.py",
        "rdf",
        "read/test_reader.py",
        "recall/test_rank.py",
        "records/test_memory_item.py",
        "repository/test_worktree.py",
        "runtime/test_state.py",
        "schema/test_judges.py",
        "serve/test_mcp_arguments.py",
        "serve/test_raw_requests.py::test_an_incomplete_body_is_refused_and_not_stored",
        "serve/test_raw_requests.py::test_an_absolute_address_and_http_1_0_are_answered",
        "serve/test_raw_requests.py::test_lines_are_streamed_in_while_a_late_reader_receives_the_outcomes",
        "servers/test_log_in_a_file.py",
        "working/test_two_tiers.py::test_promoted_values_are_available_to_later_sessions_of_a_reopened_root",
        "write/test_write_visibility.py",
    ),
}
#: Work of pyshacl and of click, which does not depend on this code's Python, and processes that add to a file at once,
#: as those of `journal/test_files.py` and `runtime/test_state.py` do.
LEFT_OUT = (
    "schema/test_judges.py::test_the_shacl_of_shacl_has_nothing_to_object_to_in_the_shipped_shapes",
    "cli/test_first_minutes.py::test_a_mistake_is_refused_with_a_helpful_command",
    "cli/test_first_minutes.py::test_no_misspelt_word_suggests_a_destructive_verb",
    "servers/test_log_in_a_file.py::TestFileLog::test_concurrent_processes_get_different_numbers",
)


@pytest.mark.parametrize("version", SUITES)
def test_a_part_of_each_package_holds_with_a_later_python(version):
    python = ROOT / "build" / f"python{version}" / "bin" / "python"
    if not python.exists():
        pytest.skip(f"there is no Python {version}, of which ci/pythons makes an environment")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYTHON"))}

    told = subprocess.run([python, "--version"], capture_output=True, text=True, check=True)
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "--hypothesis-profile", "brief",
         *(f"--deselect=tests/{path}" for path in LEFT_OUT), *(f"tests/{path}" for path in SUITES[version])],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert told.stdout.startswith(f"Python {version}.")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_each_package_that_has_a_folder_of_tests_has_some_of_them_run_by_a_later_python():
    packages = {path.parent.name for path in (ROOT / "jidomem").glob("**/__init__.py")}
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}
    run = {Path(path).parts[0] for paths in SUITES.values() for path in paths}

    assert packages & folders <= run


def test_these_are_the_versions_that_are_claimed():
    claimed = {"3.11", *SUITES}

    assert set(re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text("utf-8"))) == claimed
    assert set(re.findall(r"\b3\.\d+\b", (ROOT / "ci" / "pythons").read_text("utf-8"))) == set(SUITES)
    where = (ROOT / "docs" / "versions.md").read_text("utf-8").split("## Where it runs")[1].split("\n## ")[0]
    assert set(re.findall(r"\b3\.\d+\b", where)) == claimed
