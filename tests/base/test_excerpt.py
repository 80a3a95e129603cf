"""The excerpt of a memory, and the shortening of long texts."""

import re

from hypothesis import given
from hypothesis import strategies as st

from jidomem.base.words import EXCERPT, answer, cut, excerpt, sentences

WORDS = st.lists(st.sampled_from(["We", "use", "one.", "queue", "(see", "ADR-3).", "e.g.", "Ünï", "a", "`x.y`", "3.5"]))


@given(WORDS.map(" ".join), st.integers(20, 200))
def test_a_cut_text_has_whole_words_and_ends_with_an_ellipsis(text, longest):
    shown, is_cut = cut(text, longest)

    assert len(shown) <= longest
    assert is_cut == (len(text) > longest)
    assert not is_cut or f"{text} ".startswith(f"{shown.removesuffix('…').rstrip()} ")
    assert shown.endswith(" …") == is_cut


def test_a_text_is_cut_at_the_end_of_a_sentence_but_not_after_an_abbreviation_or_a_number():
    text = "We keep 3.5 GB, e.g. Of logs vs. Traces, for ADR No. 12. Then they go to the archive, for ever and a day."

    assert cut(text, 80) == ("We keep 3.5 GB, e.g. Of logs vs. Traces, for ADR No. 12. …", True)


def test_a_long_word_is_cut_within_the_word():
    assert cut("x" * 100, 10) == ("xxxxxxxx …", True)


def test_an_excerpt_does_not_repeat_the_summary_or_the_rationale():
    properties = {"summary": ["Never push to main"], "detailedExplanation": ["Never push to main.\n\nUse a branch."]}

    assert excerpt(properties) == "Use a branch."
    assert excerpt({"summary": ["x"], "rationale": ["The record gives no reason."]}) == ""
    assert answer({"summary": ["a"], "rationale": ["it embeds"], "detailedExplanation": ["it embeds"]}) == "it embeds"


def test_markdown_is_shown_as_plain_text_and_globs_and_code_are_unchanged():
    text = (
        '**Use** [Oxigraph](https://o.example "it") ![badge](b.png)<!-- hidden -->\n\n'
        "1. `src/**/*.py` and f(**options)\n"
        "2. [![x](y.png)](z)done\n\n```sh\n# run it\nmake\n```\n"
    )

    assert [*sentences(text)] == ["Use Oxigraph", "1. `src/**/*.py` and f(**options)", "2. done", "# run it", "make"]


def test_links_images_and_comments_in_code_are_unchanged():
    text = (
        "Write `[text](url)` and ``a ` [b](c) ``, not [text](url), `![x](y)` or `<!-- x -->`.\n\n"
        "```md\n[a](b) `\n```\nSee [x](y) `as [is](it)\nstands`.\n\n~~~\n[c][d]\n"
    )

    assert [*sentences(text)] == [
        "Write `[text](url)` and ``a ` [b](c) ``, not text, `![x](y)` or `<!-- x -->`.",
        "[a](b) `",
        "See x `as [is](it) stands`.",
        "[c][d]",
    ]


@given(st.text(alphabet="[](!<>-*_`# .\n ab", max_size=300))
def test_the_excerpt_of_any_text_is_one_line_within_the_limit(text):
    shown = excerpt({"summary": ["s"], "rationale": [text]})

    assert len(shown) <= EXCERPT
    assert not re.search(r"\s\s|\n", shown)
