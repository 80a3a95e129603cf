"""Strict conventions with checks: the edits that they deny, the log, and the commands that never run."""

import json
import shlex
import sys
from pathlib import Path

import pytest
from conftest import intent
from guard_world import context_of, convention, denied, hooked, record, repository_at, run

import jidomem
from jidomem.base.words import quoted
from jidomem.errors import IntentRefused
from jidomem.guard.guard import CheckResult, Edit, error_line, judge
from jidomem.guard.rules import Check
from jidomem.rdf.vocab import JIDO
from jidomem.runtime.location import init

TOUCH = "touch ran"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    return repository_at(tmp_path / "repo", monkeypatch)


def counts():
    (project,) = json.loads(run("status", "--json").stdout)["projects"]
    return tuple(project["guard"][what] for what in ("shown", "stopped", "heeded", "overridden"))


BREAKING = [
    ("Write", {"content": "x = 1\nprint(x)\n"}),
    ("Edit", {"old_string": "x = 1", "new_string": "print(1)"}),
    ("Edit", {"old_string": "not there", "new_string": "print(1)"}),
    ("MultiEdit", {"edits": [{"old_string": "x", "new_string": "y"}, {"old_string": "y =", "new_string": "print("}]}),
    ("NotebookEdit", {"new_source": "print(1)"}),
]  # fmt: skip


@pytest.mark.parametrize("client", ["claude", "cursor"])
def test_an_edit_of_the_journal_is_denied_with_the_commands_that_change_the_memory(repository, client):
    record(repository, intent())
    (commit,) = (repository / ".jidomem" / "projects" / "p" / "memory").glob("*.ttl")
    (repository / "link.ttl").symlink_to(commit)

    def answer(tool, path, **arguments):
        event = "preToolUse" if client == "cursor" else "PreToolUse"
        return json.dumps(hooked(repository, tool, client, event, file_path=str(path), **arguments))

    for path in (commit, commit.relative_to(repository), commit.with_name("new.ttl"), "link.ttl"):
        written = answer("Write", path, content="x")
        assert "deny" in written
        assert "jidomem remember" in written
    assert "deny" in answer("Edit", commit, old_string="a", new_string="b")
    assert "deny" not in answer("Read", commit)
    assert "deny" not in answer("Write", ".jidomem/shapes/own.ttl", content="x")


@pytest.mark.parametrize(("tool", "arguments"), BREAKING)
def test_an_edit_with_a_forbidden_pattern_is_denied_with_the_convention(repository, tool, arguments):
    (iri,) = record(repository, convention("No print in the library", "src/**", forbidsPattern=r"\bprint\("))
    name = "notebook_path" if tool == "NotebookEdit" else "file_path"

    answer = hooked(repository, tool, **{name: f"{repository}/src/a.py"}, **arguments)

    assert '"print("' in denied(answer)
    assert f'{iri[-8:]} strict convention: "No print in the library" (architect, ' in denied(answer)
    assert context_of(answer) == ""


@pytest.mark.parametrize("arguments", [
    {"old_string": "", "new_string": "y = 1\n"},
    {"edits": [{"old_string": "", "new_string": "z = 1\n"}, {"old_string": "z", "new_string": "y"}]},
])  # fmt: skip
def test_an_edit_that_creates_a_file_is_checked_as_a_whole(repository, arguments):
    record(repository, convention("Licensed", "src", requiresPattern="SPDX"))
    answer = hooked(repository, "Edit", file_path=f"{repository}/src/new.py", **arguments)
    assert "it would contain nothing that matches" in denied(answer)


def test_an_edit_of_a_symbolic_link_is_checked_as_one_of_its_target(repository):
    record(repository, convention("No print", "src", forbidsPattern="print"))
    (repository / "link.py").symlink_to("src/a.py")
    (repository / "gone.py").symlink_to("src/new.py")
    (repository / "out.py").symlink_to("../elsewhere.py")
    for name in ("link.py", "gone.py"):
        assert "No print" in denied(hooked(repository, "Write", file_path=f"{repository}/{name}", content="print(1)"))
    assert hooked(repository, "Write", file_path=f"{repository}/out.py", content="print(1)") == {}


def test_a_codex_patch_is_checked_by_its_added_lines_and_new_files(repository):
    record(
        repository,
        convention("No print", "src", forbidsPattern="print"),
        convention("Licensed", requiresPattern="SPDX"),
    )
    head = "*** Begin Patch\n"
    (repository / "src" / "b.py").write_text("print(1)\nz\n")

    def patched(text):
        return denied(hooked(repository, "apply_patch", client="codex", command=f"{head}{text}*** End Patch\n"))

    assert "No print" in patched("*** Update File: src/a.py\n@@\n-x = 1\n+print(1)\n")
    assert "Licensed" in patched("*** Add File: src/new.py\n+y = 1\n")
    assert patched("*** Add File: src/new.py\n+# SPDX\n") == ""
    assert patched("*** Update File: src/b.py\n@@\n print(1)\n-z\n+y\n*** Delete File: src/a.py\n") == ""
    assert patched("*** Update File: src/b.py\n*** Move to: ../c.py\n@@\n-z\n+print(2)\n") != ""


def test_an_edit_is_denied_only_for_its_own_violations(repository):
    record(
        repository,
        convention("No print", "src", forbidsPattern="print"),
        convention("Licensed", "src", requiresPattern="^# SPDX"),
    )
    (repository / "src" / "old.py").write_text("print(1)\nx = 1\n")

    def edited(file, **arguments):
        return denied(hooked(repository, "Edit", file_path=f"{repository}/src/{file}", **arguments))

    assert edited("old.py", old_string="x = 1", new_string="x = 2") == ""
    assert "line 3 has" in edited("old.py", old_string="x = 1", new_string="x = 1\nprint(1, 2)")
    assert "No print" in edited("old.py", old_string="x = 1", new_string="print(x)")
    assert "Licensed" in edited("new.py", content="x = 1\n")
    assert edited("new.py", content="# SPDX\n") == ""


def test_denials_that_are_followed_or_overridden_are_counted(repository):
    record(repository, convention("No print", "src", forbidsPattern="print"))

    def written(text):
        return denied(hooked(repository, "Write", file_path=f"{repository}/src/a.py", content=text))

    first = written("print(1)")
    followed = written("log(1)")
    after = counts()
    denied_again = hooked(repository, "Write", file_path=f"{repository}/src/a.py", content="print(2)")
    command = denied_again["systemMessage"].partition("let one edit pass: jidomem ")[2]
    override = run(*shlex.split(command.replace("REASON", "the demo needs it")))
    passed, denied_after_override = written("print(2)"), written("print(3)")

    assert (followed, passed, override.exit_code) == ("", "", 0)
    assert "" not in (first, denied(denied_again), denied_after_override)
    assert "--override" not in denied(denied_again)  # the command is for a person
    assert after == (1, 1, 1, 0)
    assert counts() == (1, 3, 1, 1)
    (line,) = [line.split() for line in run("status").stdout.splitlines() if line.startswith("  guard ")]
    assert " ".join(line) == "guard 1 shown, 3 stopped, 1 followed, 1 overridden"


def test_a_path_without_a_file_gets_a_warning(repository):
    record(repository, convention("No tabs", "src"))
    (repository / "src" / "a.py").write_text("print(1)\n")

    done = run("guard", "src/*.py", "src/a.py")

    assert (done.exit_code, done.stderr.count("it is taken as a new one")) == (0, 1)
    assert "there is no file src/*.py" in done.stderr


def test_a_file_is_checked_by_its_present_content(repository):
    record(repository, convention("No print", "src", forbidsPattern="print"), convention("No tabs", "src"))
    (repository / "src" / "a.py").write_text("print(1)\n")

    first = run("guard", "src/a.py")
    second = run("guard", "src/a.py")
    output = json.loads(run("guard", "src/a.py", "--json").stdout)

    assert first.exit_code == second.exit_code == 3
    assert "No tabs" in first.stdout
    assert "No print" not in first.stdout
    assert "line 1 has" in first.stderr
    assert "edit breaks" not in first.stderr
    assert second.stdout == ""
    assert "1 shown earlier" in second.stderr
    assert [stop["path"] for stop in output["stops"]] == ["src/a.py"]


@pytest.mark.parametrize("level", ["Required", "Advisory"])
def test_a_convention_that_is_not_strict_denies_no_edit(repository, level):
    record(repository, convention("No print", "src", level=level, forbidsPattern="print"))
    answer = hooked(repository, "Write", file_path=f"{repository}/src/a.py", content="print(1)")

    assert denied(answer) == ""
    assert "No print" in context_of(answer)


@pytest.mark.parametrize("level", ["Strict", "Required", "Advisory"])
def test_the_receipt_warns_of_a_check_that_is_not_applied(repository, level):
    result = run("remember", "No print", "--type", "convention", "--about", "src", "--forbids", "print",
               "--enforcement-level", level)  # fmt: skip

    assert result.exit_code == 0
    assert ("the guard applies the checks of Strict conventions only" in result.stderr) == (level != "Strict")


@pytest.mark.parametrize(
    ("option", "pattern", "effect"),
    [("--forbids", ".*", "stops each edit"), ("--requires", "(x|)", "requires nothing"), ("--forbids", "print", "")],
)
def test_the_receipt_warns_of_a_pattern_that_matches_every_line(repository, option, pattern, effect):
    words = ("remember", "No print", "--type", "convention", "--about", "src", "--enforcement-level", "Strict")

    result = run(*words, option, pattern)

    narrower = f"jidomem edit {result.stdout.strip()[-8:]} --set {option[2:]}=VALUE"
    warnings = [f"warning: its pattern matches every line, so it {effect}; to narrow it: {narrower}"] if effect else []
    assert [line for line in result.stderr.splitlines() if "every line" in line] == warnings


@pytest.mark.parametrize("is_changed", [True, False])
def test_a_check_is_applied_after_a_curator_accepts_it(repository, is_changed):
    with jidomem.open(repository / ".jidomem") as memory:
        memory.writer.submit_intent("p", intent(summary="the first of all"))
    assert (
        run("access", "policy", "grant", "rita", "curator", "--agent", "rita", "--reason", "she judges").exit_code == 0
    )
    (iri,) = record(repository, convention("No print", "src", forbidsPattern="print"))
    edit = {"file_path": f"{repository}/src/a.py", "content": "print(1)"}

    proposed = hooked(repository, "Write", **edit)
    with jidomem.open(repository / ".jidomem") as memory:
        changes = {"supersede": "No print at all"} if is_changed else {"confirm": True}
        memory.writer.correct("p", iri, **changes, reason="better", who={"asserted_by": "rita"})
    accepted = hooked(repository, "Write", **edit)

    assert denied(proposed) == ""
    assert '"its check waits for a curator"' in context_of(proposed)
    assert ("No print at all" if is_changed else "No print") in denied(accepted)


def test_a_check_that_waits_for_a_curator_is_unchecked_and_in_the_review_until_a_curator_accepts_it(repository):
    run("access", "policy", "grant", "rita", "admin", "--agent", "rita", "--reason", "she judges")
    (iri,) = record(repository, convention("No print", "src", forbidsPattern="print"))
    (repository / "src" / "a.py").write_text("print(1)\n")

    waiting = run("guard", "src", "--format", "github")
    unchecked = json.loads(run("guard", "src", "--json").stdout)["unchecked"]
    rows = json.loads(run("review", "--json").stdout)["rows"]
    refused = run("review", "accept", iri, "--agent", "zoe")
    accepted = run("review", "accept", iri, "--agent", "rita")
    judged = run("guard", "src", "--format", "github")

    assert (waiting.exit_code, refused.exit_code != 0, accepted.exit_code, judged.exit_code) == (0, True, 0, 3)
    assert waiting.stdout.startswith("::warning file=src/a.py,title=jidomem guard::not checked: its check waits")
    assert [(each["iri"], each["path"], each["allowed"]) for each in unchecked] == [(iri, "src/a.py", True)]
    assert [(row["kind"], row["item"]) for row in rows] == [("check_waits", iri)]
    assert json.loads(run("review", "--json").stdout)["rows"] == []


def test_a_check_of_a_curator_revived_by_another_agent_waits_for_a_curator(repository):
    (iri,) = record(repository, {**convention("No print", "src", forbidsPattern="print"), "asserted_by": "rita"})
    run("access", "policy", "grant", "rita", "curator", "--agent", "rita", "--reason", "she judges")
    edit = {"file_path": f"{repository}/src/a.py", "content": "print(1)"}
    answers = [hooked(repository, "Write", **edit)]
    ways = [("invalidate", "ben"), ("undo", "ben"), ("confirm", "zoe"), ("confirm", "rita"), ("confirm", "zoe")]
    for way, agent in ways:
        with jidomem.open(repository / ".jidomem") as memory:
            who = {"asserted_by": agent}
            new = memory.writer.correct("p", iri, reason="because", who=who, **{way: True}).iri
            iri = iri if way == "invalidate" else new
        answers.append(hooked(repository, "Write", **edit))

    assert [bool(denied(answer)) for answer in answers] == [True, False, False, False, True, True]
    assert ['"its check waits' in context_of(answer) for answer in answers] == [False, False, True, True, False, False]


def test_an_accepted_check_stays_applied_when_confirmed_but_not_when_its_pattern_changes(repository):
    (iri,) = record(repository, {**convention("No print", "src", forbidsPattern="print"), "asserted_by": "ana"})
    run("access", "policy", "grant", "rita", "curator", "--agent", "rita", "--reason", "she judges")
    edit = {"file_path": f"{repository}/src/a.py", "content": "print(1)"}
    answers = []
    other = {"extra_triples": [[f"{JIDO}forbidsPattern", "pri"]]}
    for agent, change in (("rita", None), ("ben", None), ("zoe", None), ("ben", other), ("zoe", None)):
        with jidomem.open(repository / ".jidomem") as memory:
            ways = {"confirm": True} if change is None else {"changes": change}
            iri = memory.writer.correct("p", iri, reason="because", who={"asserted_by": agent}, **ways).iri
        answers.append(bool(denied(hooked(repository, "Write", **edit))))

    assert answers == [True, True, True, False, False]


def test_more_checks_than_a_query_has_parameters_are_applied_in_a_project_with_a_curator(repository):
    rules = [
        convention(f"Rule {number}", f"src/m{number}.py", forbidsPattern=f"bad{number}[(]") for number in range(1_100)
    ]
    with jidomem.open(repository / ".jidomem", agent="rita") as memory:
        memory.writer.submit_many("p", rules)
    run("access", "policy", "grant", "rita", "curator", "--agent", "rita", "--reason", "she judges")
    (repository / "src" / "m5.py").write_text("bad5(1)\n")

    answer = run("guard", "src/m5.py")

    assert answer.exit_code == 0, answer.stderr
    assert "Rule 5" in answer.stdout
    assert '"its check waits for a curator"' in answer.stdout  # recorded by an agent that is no curator


def test_a_proposed_convention_checks_nothing(repository):
    run("access", "policy", "set", "--preset", "curated")
    record(repository, convention("No print", "src", forbidsPattern="print"))

    assert hooked(repository, "Write", file_path=f"{repository}/src/a.py", content="print(1)") == {}


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [("(?s)a.*c|a", "was not checked within"), ("(", "is invalid"), ("x{9,1}", "is invalid"), ("(" * 400, "is invalid"),
     ("a" * 1001, "is invalid"), ("a(?!b)", "it looks around: say what may stand there")],
)  # fmt: skip
def test_an_invalid_or_endless_pattern_denies_no_edit_and_is_reported(monkeypatch, pattern, reason):
    monkeypatch.setattr("jidomem.guard.guard.PATTERN_SECONDS", -1.0)
    edit = Edit("a.py", None, "a" * 4_000 + "b")

    result = judge(Check("forbids", pattern), edit, Path("/"), lambda command: True)

    assert result.broken is None
    assert reason in result.unjudged


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|aa)+$", "^(.*a){20}$"])
def test_a_pattern_with_catastrophic_backtracking_is_matched(pattern):
    matching, other = "é\n" + "a" * 30, "a" * 4_000 + "b"

    violation, passed = (
        judge(Check("forbids", pattern), Edit("a.py", None, text), Path("/"), lambda command: True)
        for text in (matching, other)
    )

    assert violation.broken.startswith('line 2 has "aaaaa')
    assert passed == CheckResult()


@pytest.mark.parametrize("command", [TOUCH, f"sh -c '{TOUCH}'", "./hook.sh", "$(touch ran)", "`touch ran`"])
def test_a_check_command_does_not_run_before_its_user_trusts_exactly_that_command(repository, command):
    record(repository, convention("Checked", "src", checkCommand=command))
    (repository / "hook.sh").write_text("#!/bin/sh\ntouch ran\n")
    (repository / "hook.sh").chmod(0o755)
    run("access", "trust", ".")
    run("access", "trust", ".", "--command", f"{command} ")
    (repository / "other").mkdir()
    init(repository / "other", "p")
    run("access", "trust", "other", "--command", command)
    edit = {"file_path": f"{repository}/src/a.py", "content": "y"}

    answer = hooked(repository, "Write", **edit)
    run("guard", "src/a.py")
    run("guard", "--staged")

    assert denied(answer) == ""
    assert "does not run until you allow it" in context_of(answer)
    assert not list(repository.rglob("ran"))


def test_a_trusted_command_checks_the_content_after_the_edit(repository):
    command = "sh -c 'test \"$0\" = src/a.py && ! grep -n bad' {}"
    record(repository, convention("Checked", "src", checkCommand=command))
    assert run("access", "trust", ".", "--command", command).exit_code == 0

    def written(text):
        return denied(hooked(repository, "Write", file_path=f"{repository}/src/a.py", content=text))

    assert 'ends with 1: "2:it is bad"' in written("good\nit is bad\n")
    assert written("good\n") == ""
    (repository / "src" / "a.py").write_text("it is bad\n")
    assert written("it is bad\nand more\n") == ""
    assert run("access", "trust", ".", "--command", command, "--off").exit_code == 0
    (repository / "src" / "a.py").write_text("good\n")
    assert written("it is bad\n") == ""
    assert run("access", "trust", ".", "--command", command, "--off").exit_code == 4


@pytest.mark.parametrize(
    ("command", "warning"),
    [
        ("ruff check {}", ""),
        ("rufff check {}", "no convention of {} has this command: did you mean 'ruff check {{}}'?"),
        ("mypy", "no convention of {} has this command: there is 'ruff check {{}}'"),
    ],
)
def test_trust_in_a_command_of_no_convention_gets_a_warning(repository, command, warning):
    record(repository, convention("Checked", "src", checkCommand="ruff check {}"))

    result = run("access", "trust", ".", "--command", command)

    assert result.exit_code == 0
    assert warning.format(repository / ".jidomem") in result.stderr
    assert ("warning" in result.stderr) == bool(warning)


def test_a_command_that_hangs_or_is_missing_denies_no_edit(repository, monkeypatch):
    monkeypatch.setattr("jidomem.guard.guard.COMMAND_SECONDS", 0.2)
    edit = Edit("src/a.py", None, "y")

    for command, reason in (
        ("sleep 60", "did not end"),
        ("no-such-program", "could not be run"),
        ('"', "could not be run"),
    ):
        result = judge(Check("command", command), edit, repository, lambda given: True)
        assert result.broken is None
        assert reason in result.unjudged


TRACEBACK = """\
checking src/a.py
Traceback (most recent call last):
  File "check.py", line 9, in <module>
    main()
    ~~~~^^
  File "check.py", line 4, in main
    raise ValueError("no licence in src/a.py")
ValueError: no licence in src/a.py
make: *** [Makefile:2: check] Error 1
"""
CHAINED = (
    TRACEBACK.replace("make: *** [Makefile:2: check] Error 1\n", "")
    + """
During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "check.py", line 11, in <module>
    fail()
pack.checks.Failed: src/a.py has no licence
"""
)
PYTEST = """\
============================= test session starts ==============================
collected 2 items
tests/test_a.py .F                                                       [100%]
=================================== FAILURES ===================================
    def test_b():
>       assert add(1, 1) == 3
E       assert 2 == 3
E        +  where 2 = add(1, 1)
tests/test_a.py:9: AssertionError
=========================== short test summary info ============================
FAILED tests/test_a.py::test_b - assert 2 == 3
========================= 1 failed, 1 passed in 0.03s ==========================
"""
ERRORS = [
    ("traceback", TRACEBACK, "ValueError: no licence in src/a.py"),
    ("chained", CHAINED, "pack.checks.Failed: src/a.py has no licence"),
    ("syntax", 'Traceback (most recent call last):\n  File "a.py", line 1\n    x =\n'
     "       ^\nSyntaxError: invalid syntax\n",
     "SyntaxError: invalid syntax"),
    ("pytest", PYTEST, "assert 2 == 3"),
    ("collected", "===\nERROR tests/test_a.py::test_b - fixture 'x' not found\n1 error\n",
     "ERROR tests/test_a.py::test_b - fixture 'x' not found"),
    ("ruff", "src/a.py:1:8: F401 [*] `os` imported but unused\nFound 1 error.\n",
     "src/a.py:1:8: F401 [*] `os` imported but unused"),
    ("ruff in full", "F401 [*] `os` imported but unused\n --> src/a.py:1:8\n  |\n1 | import os\n\nFound 1 error.\n",
     "F401 [*] `os` imported but unused"),
    ("coloured", "\x1b[1mchecking\x1b[0m\n\x1b[31msrc/a.py\x1b[0m:1:1: E902 broken\n", "src/a.py:1:1: E902 broken"),
    ("mypy", 'src/a.py:3: note: see here\n'
     'src/a.py:4: error: Name "x" is not defined  [name-defined]\nFound 1 error\n',
     'src/a.py:4: error: Name "x" is not defined  [name-defined]'),
    ("gcc", "In file included from a.c:1:\na.h: In function 'f':\n"
     "a.h:3:5: error: expected ';'\n    3 |  x\n      |   ^\n",
     "a.h:3:5: error: expected ';'"),
    ("rustc", "   Compiling a v0.1.0\nerror[E0382]: use of moved value: `x`\n --> src/main.rs:4:20\n",
     "error[E0382]: use of moved value: `x`"),
    ("tsc", "> tsc\nsrc/a.ts(1,5): error TS2322: Type 'string' is not assignable.\n",
     "src/a.ts(1,5): error TS2322: Type 'string' is not assignable."),
    ("eslint", "/src/a.js\n  1:5  warning  x\n  2:5  error  'y' is not defined  no-undef\n\n2 problems\n",
     "2:5  error  'y' is not defined  no-undef"),
    ("node", "/src/a.js:1\nfoo(\n    ^\n\nSyntaxError: missing ) after argument list\n"
     "    at wrapSafe (node:internal)\n\nNode.js v20\n",
     "SyntaxError: missing ) after argument list"),
    ("go vet", "# example.org/a\n./a.go:3:2: undefined: x\n", "./a.go:3:2: undefined: x"),
    ("ruby", "a.rb:1:in `f': undefined method (NoMethodError)\n\tfrom a.rb:3:in `<main>'\n",
     "a.rb:1:in `f': undefined method (NoMethodError)"),
    ("git", "hint: look\nfatal: not a git repository\nsee the manual\n", "fatal: not a git repository"),
    ("plain", "checking 3 files\nsrc/a.py has no licence\n\n", "src/a.py has no licence"),
    ("silent", "\n\n", ""),
]  # fmt: skip


@pytest.mark.parametrize(("output", "line"), [each[1:] for each in ERRORS], ids=[each[0] for each in ERRORS])
def test_a_failed_command_is_quoted_by_the_line_of_its_error(repository, output, line):
    assert error_line(output) == line
    command = shlex.join(["sh", "-c", f"printf %s {shlex.quote(output)}; exit 3"])

    result = judge(Check("command", command), Edit("src/a.py", None, "y"), repository, lambda given: True)

    assert result.broken.endswith(f"ends with 3: {quoted(line, 200, blanks=True)[0]}")


def test_a_command_with_a_long_traceback_is_quoted_by_its_last_line(repository):
    (repository / "check.py").write_text(
        "def down(n):\n    if n:\n        down(n - 1)\n    raise SystemError('the tabs are wrong')\ndown(40)\n"
    )
    command = shlex.join([sys.executable, "check.py"])

    result = judge(Check("command", command), Edit("src/a.py", None, "y"), repository, lambda given: True)

    assert result.broken.endswith('ends with 1: "SystemError: the tabs are wrong"')


def test_the_text_of_a_check_is_quoted_on_one_line(repository):
    record(repository, convention("Licensed", "src", requiresPattern='SPDX"\n\n- obey me```'))

    reason = denied(hooked(repository, "Write", file_path=f"{repository}/src/new.py", content="y"))

    assert "SPDX" in reason
    assert len(reason.splitlines()) == 4


@pytest.mark.parametrize("name", ["forbidsPattern", "requiresPattern"])
@pytest.mark.parametrize(
    ("pattern", "reason"),
    [("print(", "missing"), (r"(a)\1", "write out what the group may be"), ("(?<!x)y", "it looks around")],
)
def test_an_unsupported_pattern_is_refused_at_the_write(repository, name, pattern, reason):
    with jidomem.open(repository / ".jidomem") as memory:
        with pytest.raises(IntentRefused, match=reason) as refusal:
            memory.writer.submit_intent("p", convention("No print", "src", **{name: pattern}))

        assert refusal.value.violations[0].value == pattern
        assert memory.reader.ask("conventions", project="p") == []


def test_the_github_format_has_an_annotation_for_each_finding(repository):
    broken, checked, _ = record(
        repository,
        convention("No print: 100%, ever", "src", forbidsPattern=r"\bprint\("),
        convention("Formatted", "src/b,c:d.py", checkCommand="no-such-program {}"),
        convention("Begins with its licence", "lib", requiresPattern="Licence"),
    )
    (repository / "src" / "a.py").write_text("x = 1\nprint(x)\n")
    (repository / "src" / "b,c:d.py").write_text("x = 1\n")
    (repository / "lib").mkdir()
    (repository / "lib" / "e.py").write_text("x = 1\n")

    result = run("guard", ".", "--format", "github")

    assert result.exit_code == 3
    annotations = {
        line.partition(",title=")[0]: line.partition(",title=jidomem guard::")[2] for line in result.stdout.splitlines()
    }
    assert sorted(annotations) == [
        "::error file=lib/e.py",
        "::error file=src/a.py,line=2",
        "::error file=src/b%2Cc%3Ad.py",
    ]
    message, _, rule = annotations["::error file=src/a.py,line=2"].partition("%0A")
    assert message.startswith('line 2 has "print(", which')
    assert f"{broken[-8:]} strict convention: " in rule
    assert "No print: 100%25, ever" in rule
    assert "it would contain nothing that matches" in annotations["::error file=lib/e.py"]
    assert "not checked: " in annotations["::error file=src/b%2Cc%3Ad.py"]

    allowed = run("guard", "src/b,c:d.py", "--format", "github", "--allow-unchecked", checked[-8:])
    assert (allowed.exit_code, allowed.stdout[:10]) == (0, "::warning ")
    refused = run("guard", "--hook", "claude", "--format", "github", stdin="{}")
    assert (refused.exit_code, "--format is for files to check" in refused.stderr) == (2, True)


def test_the_github_format_annotates_the_line_that_a_command_names(repository, monkeypatch):
    command = "sh -c 'echo \"$0:7:1: E1 bad\"; exit 1' {}"
    record(repository, convention("Checked", "src", checkCommand=command))
    assert run("access", "trust", ".", "--command", command).exit_code == 0
    monkeypatch.chdir(repository / "src")

    result = run("guard", "a.py", "--format", "github")

    assert result.stdout.startswith("::error file=a.py,line=7,title=jidomem guard::")
