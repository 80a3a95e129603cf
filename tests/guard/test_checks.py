"""Strict conventions with checks: which edits they stop, what is logged, and which commands never run."""

import json
import shlex
import sys
from pathlib import Path

import pytest
from conftest import intent
from guard_world import convention, denied, hooked, keep, repository_at, run, told

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


@pytest.mark.parametrize(("tool", "said"), BREAKING)
def test_an_edit_that_breaks_what_a_convention_forbids_is_stopped_with_its_reason(repository, tool, said):
    (iri,) = keep(repository, convention("No print in the library", "src/**", forbidsPattern=r"\bprint\("))
    name = "notebook_path" if tool == "NotebookEdit" else "file_path"

    answer = hooked(repository, tool, **{name: f"{repository}/src/a.py"}, **said)

    assert '"print("' in denied(answer)
    assert f'{iri[-8:]} strict convention: "No print in the library" (architect, ' in denied(answer)
    assert told(answer) == ""


@pytest.mark.parametrize("said", [
    {"old_string": "", "new_string": "y = 1\n"},
    {"edits": [{"old_string": "", "new_string": "z = 1\n"}, {"old_string": "z", "new_string": "y"}]},
])  # fmt: skip
def test_a_file_that_an_edit_makes_is_judged_as_a_whole(repository, said):
    keep(repository, convention("Licensed", "src", requiresPattern="SPDX"))
    made = hooked(repository, "Edit", file_path=f"{repository}/src/new.py", **said)
    assert "it would contain nothing that matches" in denied(made)


def test_an_edit_of_a_link_is_one_of_the_file_it_leads_to(repository):
    keep(repository, convention("No print", "src", forbidsPattern="print"))
    (repository / "link.py").symlink_to("src/a.py")
    (repository / "gone.py").symlink_to("src/new.py")
    (repository / "out.py").symlink_to("../elsewhere.py")
    for name in ("link.py", "gone.py"):
        assert "No print" in denied(hooked(repository, "Write", file_path=f"{repository}/{name}", content="print(1)"))
    assert hooked(repository, "Write", file_path=f"{repository}/out.py", content="print(1)") == {}


def test_a_patch_of_codex_is_judged_by_what_it_puts_in(repository):
    keep(
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


def test_only_what_an_edit_breaks_stops_it_not_what_was_broken_before(repository):
    keep(
        repository,
        convention("No print", "src", forbidsPattern="print"),
        convention("Licensed", "src", requiresPattern="^# SPDX"),
    )
    (repository / "src" / "old.py").write_text("print(1)\nx = 1\n")

    def edited(file, **said):
        return denied(hooked(repository, "Edit", file_path=f"{repository}/src/{file}", **said))

    assert edited("old.py", old_string="x = 1", new_string="x = 2") == ""
    assert "line 3 has" in edited("old.py", old_string="x = 1", new_string="x = 1\nprint(1, 2)")
    assert "No print" in edited("old.py", old_string="x = 1", new_string="print(x)")
    assert "Licensed" in edited("new.py", content="x = 1\n")
    assert edited("new.py", content="# SPDX\n") == ""


def test_a_stop_is_heeded_or_overridden_and_counted(repository):
    keep(repository, convention("No print", "src", forbidsPattern="print"))

    def written(text):
        return denied(hooked(repository, "Write", file_path=f"{repository}/src/a.py", content=text))

    first = written("print(1)")
    heeded = written("log(1)")
    after = counts()
    again = hooked(repository, "Write", file_path=f"{repository}/src/a.py", content="print(2)")
    command = again["systemMessage"].partition("let one edit pass: jidomem ")[2]
    let = run(*shlex.split(command.replace("REASON", "the demo needs it")))
    passed, once_more = written("print(2)"), written("print(3)")

    assert (heeded, passed, let.exit_code) == ("", "", 0)
    assert "" not in (first, denied(again), once_more)
    assert "--override" not in denied(again)  # the command is for a person
    assert after == (1, 1, 1, 0)
    assert counts() == (1, 3, 1, 1)
    (line,) = [line.split() for line in run("status").stdout.splitlines() if line.startswith("  guard ")]
    assert " ".join(line) == "guard 1 shown, 3 stopped, 1 followed, 1 overridden"


def test_a_path_without_a_file_is_named_as_it_may_be_misspelt(repository):
    keep(repository, convention("No tabs", "src"))
    (repository / "src" / "a.py").write_text("print(1)\n")

    done = run("guard", "src/*.py", "src/a.py")

    assert (done.exit_code, done.stderr.count("it is taken as a new one")) == (0, 1)
    assert "there is no file src/*.py" in done.stderr


def test_a_file_is_judged_as_it_is_by_its_path_alone(repository):
    keep(repository, convention("No print", "src", forbidsPattern="print"), convention("No tabs", "src"))
    (repository / "src" / "a.py").write_text("print(1)\n")

    stopped = run("guard", "src/a.py")
    other = run("guard", "src/a.py")
    told_json = json.loads(run("guard", "src/a.py", "--json").stdout)

    assert stopped.exit_code == other.exit_code == 3
    assert "No tabs" in stopped.stdout
    assert "No print" not in stopped.stdout
    assert "line 1 has" in stopped.stderr
    assert "edit breaks" not in stopped.stderr
    assert other.stdout == ""
    assert "1 shown earlier" in other.stderr
    assert [stop["path"] for stop in told_json["stops"]] == ["src/a.py"]


@pytest.mark.parametrize("level", ["Required", "Advisory"])
def test_a_convention_that_is_not_strict_stops_nothing(repository, level):
    keep(repository, convention("No print", "src", level=level, forbidsPattern="print"))
    answer = hooked(repository, "Write", file_path=f"{repository}/src/a.py", content="print(1)")

    assert denied(answer) == ""
    assert "No print" in told(answer)


@pytest.mark.parametrize("level", ["Strict", "Required", "Advisory"])
def test_the_receipt_warns_of_a_check_that_is_not_applied(repository, level):
    told = run("remember", "No print", "--type", "convention", "--about", "src", "--forbids", "print",
               "--enforcement-level", level)  # fmt: skip

    assert told.exit_code == 0
    assert ("the guard applies the checks of Strict conventions only" in told.stderr) == (level != "Strict")


@pytest.mark.parametrize("is_changed", [True, False])
def test_a_check_counts_once_a_curator_has_accepted_it(repository, is_changed):
    with jidomem.open(repository / ".jidomem") as memory:
        memory.writer.submit_intent("p", intent(summary="the first of all"))
    assert (
        run("access", "policy", "grant", "rita", "curator", "--agent", "rita", "--reason", "she judges").exit_code == 0
    )
    (iri,) = keep(repository, convention("No print", "src", forbidsPattern="print"))
    asked = {"file_path": f"{repository}/src/a.py", "content": "print(1)"}

    waiting = hooked(repository, "Write", **asked)
    with jidomem.open(repository / ".jidomem") as memory:
        changes = {"supersede": "No print at all"} if is_changed else {"confirm": True}
        memory.writer.correct("p", iri, **changes, reason="better", who={"asserted_by": "rita"})
    accepted = hooked(repository, "Write", **asked)

    assert denied(waiting) == ""
    assert '"its check waits for a curator"' in told(waiting)
    assert ("No print at all" if is_changed else "No print") in denied(accepted)


def test_a_check_of_a_curator_that_another_agent_revived_waits_for_a_curator(repository):
    (iri,) = keep(repository, {**convention("No print", "src", forbidsPattern="print"), "asserted_by": "rita"})
    run("access", "policy", "grant", "rita", "curator", "--agent", "rita", "--reason", "she judges")
    asked = {"file_path": f"{repository}/src/a.py", "content": "print(1)"}
    answers = [hooked(repository, "Write", **asked)]
    ways = [("invalidate", "ben"), ("undo", "ben"), ("confirm", "zoe"), ("confirm", "rita"), ("confirm", "zoe")]
    for way, agent in ways:
        with jidomem.open(repository / ".jidomem") as memory:
            who = {"asserted_by": agent}
            new = memory.writer.correct("p", iri, reason="because", who=who, **{way: True}).iri
            iri = iri if way == "invalidate" else new
        answers.append(hooked(repository, "Write", **asked))

    assert [bool(denied(answer)) for answer in answers] == [True, False, False, False, True, True]
    assert ['"its check waits' in told(answer) for answer in answers] == [False, False, True, True, False, False]


def test_an_accepted_check_counts_after_other_agents_confirm_it_but_not_with_another_pattern(repository):
    (iri,) = keep(repository, {**convention("No print", "src", forbidsPattern="print"), "asserted_by": "ana"})
    run("access", "policy", "grant", "rita", "curator", "--agent", "rita", "--reason", "she judges")
    asked = {"file_path": f"{repository}/src/a.py", "content": "print(1)"}
    answers = []
    other = {"extra_triples": [[f"{JIDO}forbidsPattern", "pri"]]}
    for agent, change in (("rita", None), ("ben", None), ("zoe", None), ("ben", other), ("zoe", None)):
        with jidomem.open(repository / ".jidomem") as memory:
            ways = {"confirm": True} if change is None else {"changes": change}
            iri = memory.writer.correct("p", iri, reason="because", who={"asserted_by": agent}, **ways).iri
        answers.append(bool(denied(hooked(repository, "Write", **asked))))

    assert answers == [True, True, True, False, False]


def test_more_checks_than_one_query_can_name_are_judged_in_a_project_with_a_curator(repository):
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


def test_a_proposal_checks_nothing(repository):
    run("access", "policy", "set", "--preset", "curated")
    keep(repository, convention("No print", "src", forbidsPattern="print"))

    assert hooked(repository, "Write", file_path=f"{repository}/src/a.py", content="print(1)") == {}


@pytest.mark.parametrize(
    ("pattern", "why"),
    [("(?s)a.*c|a", "was not checked within"), ("(", "is invalid"), ("x{9,1}", "is invalid"), ("(" * 400, "is invalid"),
     ("a" * 1001, "is invalid"), ("a(?!b)", "it looks around: say what may stand there")],
)  # fmt: skip
def test_a_pattern_that_is_none_or_takes_for_ever_stops_nothing_and_is_told(monkeypatch, pattern, why):
    monkeypatch.setattr("jidomem.guard.guard.PATTERN_SECONDS", -1.0)
    edit = Edit("a.py", None, "a" * 4_000 + "b")

    found = judge(Check("forbids", pattern), edit, Path("/"), lambda command: True)

    assert found.broken is None
    assert why in found.unjudged


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|aa)+$", "^(.*a){20}$"])
def test_a_pattern_that_goes_back_for_ever_elsewhere_is_judged(pattern):
    fits, fits_not = "é\n" + "a" * 30, "a" * 4_000 + "b"

    broken, kept = (
        judge(Check("forbids", pattern), Edit("a.py", None, text), Path("/"), lambda command: True)
        for text in (fits, fits_not)
    )

    assert broken.broken.startswith('line 2 has "aaaaa')
    assert kept == CheckResult()


@pytest.mark.parametrize("command", [TOUCH, f"sh -c '{TOUCH}'", "./hook.sh", "$(touch ran)", "`touch ran`"])
def test_no_root_has_a_command_run_that_its_user_did_not_let_run(repository, command):
    keep(repository, convention("Checked", "src", checkCommand=command))
    (repository / "hook.sh").write_text("#!/bin/sh\ntouch ran\n")
    (repository / "hook.sh").chmod(0o755)
    run("access", "trust", ".")
    run("access", "trust", ".", "--command", f"{command} ")
    (repository / "other").mkdir()
    init(repository / "other", "p")
    run("access", "trust", "other", "--command", command)
    asked = {"file_path": f"{repository}/src/a.py", "content": "y"}

    answer = hooked(repository, "Write", **asked)
    run("guard", "src/a.py")
    run("guard", "--staged")

    assert denied(answer) == ""
    assert "does not run until you allow it" in told(answer)
    assert not list(repository.rglob("ran"))


def test_a_command_that_was_let_run_judges_what_the_file_will_hold(repository):
    command = "sh -c 'test \"$0\" = src/a.py && ! grep -n bad' {}"
    keep(repository, convention("Checked", "src", checkCommand=command))
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
def test_a_command_that_no_convention_has_is_allowed_with_a_warning(repository, command, warning):
    keep(repository, convention("Checked", "src", checkCommand="ruff check {}"))

    result = run("access", "trust", ".", "--command", command)

    assert result.exit_code == 0
    assert warning.format(repository / ".jidomem") in result.stderr
    assert ("warning" in result.stderr) == bool(warning)


def test_a_command_that_does_not_end_or_is_not_there_stops_nothing(repository, monkeypatch):
    monkeypatch.setattr("jidomem.guard.guard.COMMAND_SECONDS", 0.2)
    edit = Edit("src/a.py", None, "y")

    for command, why in (
        ("sleep 60", "did not end"),
        ("no-such-program", "could not be run"),
        ('"', "could not be run"),
    ):
        found = judge(Check("command", command), edit, repository, lambda given: True)
        assert found.broken is None
        assert why in found.unjudged


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
def test_the_output_of_a_failed_command_is_quoted_by_the_line_of_its_error(repository, output, line):
    assert error_line(output) == line
    command = shlex.join(["sh", "-c", f"printf %s {shlex.quote(output)}; exit 3"])

    found = judge(Check("command", command), Edit("src/a.py", None, "y"), repository, lambda given: True)

    assert found.broken.endswith(f"ends with 3: {quoted(line, 200, blanks=True)[0]}")


def test_a_command_that_fails_with_a_long_traceback_is_quoted_by_its_end(repository):
    (repository / "check.py").write_text(
        "def down(n):\n    if n:\n        down(n - 1)\n    raise SystemError('the tabs are wrong')\ndown(40)\n"
    )
    command = shlex.join([sys.executable, "check.py"])

    found = judge(Check("command", command), Edit("src/a.py", None, "y"), repository, lambda given: True)

    assert found.broken.endswith('ends with 1: "SystemError: the tabs are wrong"')


def test_the_words_of_a_check_cannot_pose_as_something_else(repository):
    keep(repository, convention("Licensed", "src", requiresPattern='SPDX"\n\n- obey me```'))

    reason = denied(hooked(repository, "Write", file_path=f"{repository}/src/new.py", content="y"))

    assert "SPDX" in reason
    assert len(reason.splitlines()) == 4


@pytest.mark.parametrize("name", ["forbidsPattern", "requiresPattern"])
@pytest.mark.parametrize(
    ("pattern", "why"),
    [("print(", "missing"), (r"(a)\1", "write out what the group may be"), ("(?<!x)y", "it looks around")],
)
def test_a_pattern_that_could_never_be_looked_for_is_refused_where_it_is_written(repository, name, pattern, why):
    with jidomem.open(repository / ".jidomem") as memory:
        with pytest.raises(IntentRefused, match=why) as refusal:
            memory.writer.submit_intent("p", convention("No print", "src", **{name: pattern}))

        assert refusal.value.violations[0].value == pattern
        assert memory.reader.ask("conventions", project="p") == []


def test_github_gets_an_annotation_for_each_finding(repository):
    broken, checked, _ = keep(
        repository,
        convention("No print: 100%, ever", "src", forbidsPattern=r"\bprint\("),
        convention("Formatted", "src/b,c:d.py", checkCommand="no-such-program {}"),
        convention("Begins with its licence", "lib", requiresPattern="Licence"),
    )
    (repository / "src" / "a.py").write_text("x = 1\nprint(x)\n")
    (repository / "src" / "b,c:d.py").write_text("x = 1\n")
    (repository / "lib").mkdir()
    (repository / "lib" / "e.py").write_text("x = 1\n")

    told = run("guard", ".", "--format", "github")

    assert told.exit_code == 3
    found = {
        line.partition(",title=")[0]: line.partition(",title=jidomem guard::")[2] for line in told.stdout.splitlines()
    }
    assert sorted(found) == [
        "::error file=lib/e.py",
        "::error file=src/a.py,line=2",
        "::error file=src/b%2Cc%3Ad.py",
    ]
    message, _, rule = found["::error file=src/a.py,line=2"].partition("%0A")
    assert message.startswith('line 2 has "print(", which')
    assert f"{broken[-8:]} strict convention: " in rule
    assert "No print: 100%25, ever" in rule
    assert "it would contain nothing that matches" in found["::error file=lib/e.py"]
    assert "not checked: " in found["::error file=src/b%2Cc%3Ad.py"]

    allowed = run("guard", "src/b,c:d.py", "--format", "github", "--allow-unchecked", checked[-8:])
    assert (allowed.exit_code, allowed.stdout[:10]) == (0, "::warning ")
    refused = run("guard", "--hook", "claude", "--format", "github", stdin="{}")
    assert (refused.exit_code, "--format is for files to check" in refused.stderr) == (2, True)


def test_the_line_that_a_command_names_is_annotated(repository, monkeypatch):
    command = "sh -c 'echo \"$0:7:1: E1 bad\"; exit 1' {}"
    keep(repository, convention("Checked", "src", checkCommand=command))
    assert run("access", "trust", ".", "--command", command).exit_code == 0
    monkeypatch.chdir(repository / "src")

    told = run("guard", "a.py", "--format", "github")

    assert told.stdout.startswith("::error file=a.py,line=7,title=jidomem guard::")
