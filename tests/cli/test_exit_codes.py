"""An error has the same exit code in every verb: that of the table in docs/reference/command-line.md."""

import json

import pytest
from cli_world import FACT, OLD, create_repository, run

NONE = "ffff0000"
#: The error code and the exit code -> the commands that fail with them.
FAULTS = {
    ("not_found", 4): [
        f"show {NONE}", f"show {NONE} --history", f"show {NONE} --why", f"show {NONE} --source-trust",
        f"edit {NONE} --confirm", f"edit {NONE} --undo", f"edit {NONE} --invalidate --reason x",
        f"edit {NONE} --supersede x", f"review accept {NONE}", f"review reject {NONE}", f"review accept {NONE} {OLD}",
        f"review supersede {OLD} --against {NONE}", f"ask history item={NONE}", f"ask derived item={NONE}",
        f"journal redact {NONE} --reason x --dry-run", "agent session close nobody", "ontology show Nothing",
    ],
    ("unknown_project", 4): ["show x --project nowhere", "ask facts --project nowhere"],
    ("unknown_query", 4): ["ask nothing"],
    ("invalid_argument", 2): [
        f"edit {FACT}", f"edit {FACT} --confirm --invalidate --reason x", f"edit {FACT} --invalidate", "review accept",
        f"review accept {FACT}", f"review keep-both {OLD} --against {OLD}", "ask facts --limit 0", "ask facts nothing",
        "journal rollback --to sometime --reason x --dry-run", "show", "ask facts --as-of sometime",
        *(f"review {action} {FACT} --against {OLD}" for action in ("accept", "reject", "keep-both", "supersede")),
    ],
    ("unknown_reference", 3): [f"remember x --supersedes {NONE}", f"remember x --coexists-with {NONE}"],
    ("missing_rationale", 3): [
        "remember x --type decision", f"edit {FACT} --supersede x",
    ],
    ("conflict", 5): [
        "remember other --type decision --topic store --rationale x", "remember x --supersedes ENDED --reason y",
        "edit ENDED --supersede x", "edit ENDED --confirm", "edit ENDED --set topic=x",
        "edit ENDED --invalidate --reason x", "review accept ENDED", "review reject ENDED",
        f"review accept {FACT} --against ENDED --reason x", f"review accept ENDED --against {FACT} --reason x",
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def withdrawn(tmp_path_factory):
    """Return a withdrawn memory in the repository of the commands."""
    with pytest.MonkeyPatch.context() as patch:
        create_repository(tmp_path_factory.mktemp("codes") / "repo", patch)
        withdrawn = run("remember", "the cache is on a disk").stdout.strip()
        run("edit", withdrawn, "--invalidate", "--reason", "it moved")
        yield withdrawn


@pytest.mark.parametrize(("fault", "command"), [(fault, each) for fault, some in FAULTS.items() for each in some])
def test_a_fault_has_the_exit_code_of_the_error_table(withdrawn, fault, command):
    result = run(*command.replace("ENDED", withdrawn).split(), "--json")

    assert (json.loads(result.stdout)["code"], result.exit_code) == fault
