"""Each command in a page is run by a test, except for those listed here."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from bench import harness

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: The tests that run the blocks of a language, and the pages that may have such blocks (None: all).
RUN = {
    "console": ("tests/test_docs.py, test_readme.py and documentation/test_run_pages.py", None),
    "python": ("the same", None),
    "sh": (
        "tests/serve/test_http_page.py and tests/cli/test_help.py",
        {"docs/http.md", "docs/reference/command-line.md"},
    ),
    "pycon": ("as examples of docstrings", re.compile(r"docs/reference/python.*")),
}
DATA = {"text", "toml", "json", "yaml", "sql", "sparql", "turtle", "py"}
#: Commands that cannot be run in a test, by page; the comments state the reasons.
NOT_RUN = {
    "README.md": {"./ci/demo", "./ci/test"},  # CI is these: test_readme.py
    "docs/benchmarks.md": {  # minutes and hours: below it is tested that they take these options
        ".venv/bin/python -m bench",
        ".venv/bin/python -m bench --memories 1000000 --json figures.json",
        ".venv/bin/python -m bench --only startup write",
        "ci/mutate --sample 100 spaces",
        "ci/torture 20",
    },
    "docs/comparison.md": {"python -m bench.governance"},  # minutes
    "docs/integrity.md": {"git merge -X find-renames=100% BRANCH"},  # which branch is the reader's to say
    "docs/statements/table.md": {"./ci/test", "ci/statements", "ci/docs"},  # all tests, and what they came to
    "docs/tutorial.md": {"pipx install 'jidomem[mcp]'", "mkdir orders && cd orders"},  # needs the network
}
PROGRAMS = "jidomem|python3?|pipx?|uv|npm|npx|git|gh|curl|wget|docker|psql|export|echo|cat|mkdir|cd|sudo|apt-get|aws"
COMMAND = re.compile(rf"^\s*(?:\$ )?(?:[A-Z_]+=\S* )*(?:(?:{PROGRAMS}) |(?:\./|ci/|\.venv/)\S+(?: |$))")
NO_COMMAND = re.compile(r"\[OPTIONS\]| · ")  # how a verb is used; a drawing


def blocks(page):
    """Each block of a page: its language, None where it is only indented, and its lines."""
    fence, language, lines = "", "", []
    for line in page.read_text("utf-8").splitlines():
        mark = re.match(r"^ *(```+)(\w*)$", line)
        if mark and not fence:
            fence, language, lines = mark[1], mark[2], []
        elif mark and mark[1] == fence:
            yield language, lines
            fence = ""
        elif fence:
            lines.append(line)
        elif re.match(r" {4}\S", line) and not lines_of_a_list(line):
            yield None, [line]


def lines_of_a_list(line):
    return re.match(r" {4,}[-*] ", line) is not None


def commands(page):
    """The commands of the blocks that no test runs, without comments."""
    for language, lines in blocks(page):
        if language is None or language == "text":
            for line in lines:
                if COMMAND.match(line) and not NO_COMMAND.search(line):
                    yield re.split(r"\s{2,}#", line.strip())[0].removeprefix("$ ")


def name(page):
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_each_block_is_data_or_of_a_language_that_is_run(page):
    for language, lines in blocks(page):
        if language is None or language in DATA:
            continue
        assert language in RUN, f"```{language} of {lines[:1]}: nothing runs it"
        by, where = RUN[language]
        allowed = where is None or (name(page) in where if isinstance(where, set) else where.fullmatch(name(page)))
        assert allowed, f"```{language} is run by {by}: show {lines[:1]} as ```console"


def test_the_commands_that_are_not_run_are_listed():
    shown = {name(page): {*listed} for page in PAGES if (listed := [*commands(page)])}

    assert shown == NOT_RUN


@pytest.mark.parametrize("command", sorted(NOT_RUN["docs/benchmarks.md"] | NOT_RUN["docs/comparison.md"]))
def test_a_long_running_command_exists_and_has_the_options_shown(command):
    program, *arguments = shlex.split(command)
    if program.startswith("ci/"):
        source = (ROOT / program).read_text("utf-8") + (ROOT / "bench" / "mutate.py").read_text("utf-8")
        assert (ROOT / program).stat().st_mode & 0o111
        assert {word for word in arguments if word.startswith("--")} <= {*re.findall(r'"(--[a-z-]+)"', source)}
        assert all((ROOT / word).is_file() for word in arguments if word.endswith(".py"))
    else:
        _, module, *options = arguments
        parser = harness.parser(module)
        parser.add_argument("--only", nargs="+")
        parsed = parser.parse_args(options)
        for each in [module.removeprefix("bench").lstrip("."), *(parsed.only or ())]:
            path = (ROOT / "bench" / each).with_suffix(".py") if each else ROOT / "bench" / "__main__.py"
            assert path.is_file() or (ROOT / "bench" / each / "__main__.py").is_file(), each


def test_the_extras_in_pages_exist():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    shown = {extra for page in PAGES for extra in re.findall(r"jidomem\[(\w+)\]", page.read_text("utf-8"))}

    assert shown
    assert shown <= {*extras}


def test_a_command_in_a_text_block_is_found(tmp_path):
    page = tmp_path / "page.md"
    text = "```text\nfound: 1\njidomem serve  # on 8700\n```\n"
    page.write_text(f"- a list\n    - in it\n\n{text}\n    pip install x\n\n```console\n$ git x\n```\n")

    assert [*commands(page)] == ["jidomem serve", "pip install x"]
