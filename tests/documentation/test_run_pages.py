"""The tutorial and other pages are run from first to last line, and their output is compared with the real one."""

import pytest

from docs.generate import run_pages
from docs.generate.shown import Names, rewritten, steps

PAGE = """\
```console
$ make # exit 2
made 01a205cf-a63b-77eb-a321-8c08d8a6653f
asserted: d8a6653f on 2026-11-23
$ show d8a6653f <<EOF
> more
> EOF
one
...
at /home/ana/orders
```

```python
print(1)
```

````text
2-4064eb7ffcc0
```
````
"""
ID = "01900000-0000-7000-8000-00000abcdef1"


def printing(*answers):
    """Return a run whose steps print the answers in turn, and the list of commands it receives."""
    remaining, commands = list(answers), []

    def run(step, names):
        commands.append(names.given(step.code))
        return remaining.pop(0)

    return run, commands


@pytest.mark.parametrize("page", run_pages.PAGES)
def test_the_output_in_a_page_is_that_of_its_commands_and_programs(page, tmp_path):
    differences = run_pages.differences(page, tmp_path)

    assert not differences, "mend the page, or let it be written: python -m docs.generate run_pages\n\n" + "\n".join(
        differences
    )


def test_a_page_is_parsed_into_commands_programs_and_output():
    parsed = steps(PAGE)

    assert [(step.language, step.exit) for step in parsed] == [("console", 2), ("console", 0), ("python", 0)]
    assert parsed[1].code == "show d8a6653f <<EOF\nmore\nEOF"
    assert parsed[2].shown == "2-4064eb7ffcc0\n```\n"
    assert [PAGE[step.start : step.end] for step in parsed] == [step.shown for step in parsed]


def test_ids_of_a_run_are_mapped_consistently_to_those_of_the_page():
    names = Names("/tmp/x")

    assert names.fits(steps(PAGE)[0].shown, f"made {ID}\nasserted: 0abcdef1 on 2031-01-02\n")
    assert names.given("show d8a6653f") == "show 0abcdef1"
    assert names.fits("it is d8a6653f\n", "it is 0abcdef1\n")
    assert not names.fits("it is d8a6653f\n", "it is 12345678\n")
    assert not Names("/tmp/x").fits("d8a6653f d8a6653f\n", "0abcdef1 12345678\n")


@pytest.mark.parametrize(
    ("shown", "printed"),
    [("one\n", "two\n"), ("one\n", "one\ntwo\n"), ("d8a6653f\n", "none\n"), ("one\n...\ntwo\n", "one\n3\n")],
)
def test_different_output_does_not_match(shown, printed):
    assert not Names("/tmp/x").fits(shown, printed)


def test_dots_match_any_lines_and_the_shown_folder_matches_the_real_one():
    names = Names("/tmp/x")

    assert names.fits("one\n...\nat /home/ana/orders\n", "one\ntwo\nthree\nat /tmp/x/orders\n")
    assert names.fits("one\n...\n", "one\n")


def test_changed_output_is_rewritten_with_the_ids_of_the_page():
    run, commands = printing(f"kept {ID}\n", "one\ntwo\nat /tmp/x/orders\n", "2-abcabcabcabc\n```\n")

    page = rewritten(PAGE, run, Names("/tmp/x"))

    old = "made 01a205cf-a63b-77eb-a321-8c08d8a6653f\nasserted: d8a6653f on 2026-11-23\n"
    assert page == PAGE.replace(old, "kept 01a205cf-a63b-77eb-a321-8c08d8a6653f\n")
    assert commands[1].startswith("show 0abcdef1 ")
