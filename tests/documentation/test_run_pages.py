"""The tutorial and other pages are run from first line to last, and what they show is held against what is printed."""

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
    """A run in which each step prints the next answer, and the commands it was given."""
    left, given = list(answers), []

    def run(step, names):
        given.append(names.given(step.code))
        return left.pop(0)

    return run, given


@pytest.mark.parametrize("page", run_pages.PAGES)
def test_what_a_page_shows_is_what_its_commands_and_programs_print(page, tmp_path):
    found = run_pages.differences(page, tmp_path)

    assert not found, "mend the page, or let it be written: python -m docs.generate run_pages\n\n" + "\n".join(found)


def test_a_page_is_read_as_commands_programs_and_what_they_print():
    found = steps(PAGE)

    assert [(step.language, step.exit) for step in found] == [("console", 2), ("console", 0), ("python", 0)]
    assert found[1].code == "show d8a6653f <<EOF\nmore\nEOF"
    assert found[2].shown == "2-4064eb7ffcc0\n```\n"
    assert [PAGE[step.start : step.end] for step in found] == [step.shown for step in found]


def test_ids_of_a_run_stand_for_those_shown_the_same_for_the_same_and_in_commands_too():
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
def test_another_text_does_not_fit(shown, printed):
    assert not Names("/tmp/x").fits(shown, printed)


def test_dots_stand_for_any_lines_and_the_folder_for_the_one_shown():
    names = Names("/tmp/x")

    assert names.fits("one\n...\nat /home/ana/orders\n", "one\ntwo\nthree\nat /tmp/x/orders\n")
    assert names.fits("one\n...\n", "one\n")


def test_what_no_longer_fits_is_written_anew_with_the_ids_that_stand_there_and_the_rest_stays():
    run, given = printing(f"kept {ID}\n", "one\ntwo\nat /tmp/x/orders\n", "2-abcabcabcabc\n```\n")

    page = rewritten(PAGE, run, Names("/tmp/x"))

    old = "made 01a205cf-a63b-77eb-a321-8c08d8a6653f\nasserted: d8a6653f on 2026-11-23\n"
    assert page == PAGE.replace(old, "kept 01a205cf-a63b-77eb-a321-8c08d8a6653f\n")
    assert given[1].startswith("show 0abcdef1 ")
