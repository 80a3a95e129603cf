"""The text that answers for a memory, and how a long one is cut."""

import re

from hypothesis import given
from hypothesis import strategies as st

from jidomem.base.words import EXCERPT, answer, cut, excerpt, sentences

WORDS = st.lists(st.sampled_from(["We", "use", "one.", "queue", "(see", "ADR-3).", "e.g.", "Ünï", "a", "`x.y`", "3.5"]))


@given(WORDS.map(" ".join), st.integers(20, 200))
def test_a_cut_text_is_a_beginning_of_whole_words_and_ends_with_an_ellipsis(text, longest):
    shown, is_cut = cut(text, longest)

    assert len(shown) <= longest
    assert is_cut == (len(text) > longest)
    assert not is_cut or f"{text} ".startswith(f"{shown.removesuffix('…').rstrip()} ")
    assert shown.endswith(" …") == is_cut


def test_a_text_is_cut_at_the_end_of_a_sentence_but_not_after_an_abbreviation_or_a_number():
    text = "We keep 3.5 GB, e.g. Of logs vs. Traces, for ADR No. 12. Then they go to the archive, for ever and a day."

    assert cut(text, 80) == ("We keep 3.5 GB, e.g. Of logs vs. Traces, for ADR No. 12. …", True)


def test_one_endless_word_is_cut_where_there_is_no_other_place():
    assert cut("x" * 100, 10) == ("xxxxxxxx …", True)


def test_what_the_summary_says_already_is_not_said_again():
    said = {"summary": ["Never push to main"], "detailedExplanation": ["Never push to main.\n\nUse a branch."]}

    assert excerpt(said) == "Use a branch."
    assert excerpt({"summary": ["x"], "rationale": ["The record gives no reason."]}) == ""
    assert answer({"summary": ["a"], "rationale": ["it embeds"], "detailedExplanation": ["it embeds"]}) == "it embeds"


def test_markdown_is_shown_as_plain_words_and_globs_and_code_keep_their_signs():
    text = (
        '**Use** [Oxigraph](https://o.example "it") ![badge](b.png)<!-- hidden -->\n\n'
        "1. `src/**/*.py` and f(**options)\n"
        "2. [![x](y.png)](z)done\n\n```sh\n# run it\nmake\n```\n"
    )

    assert [*sentences(text)] == ["Use Oxigraph", "1. `src/**/*.py` and f(**options)", "2. done", "# run it", "make"]


def test_links_images_and_comments_in_code_are_shown_as_they_are_written():
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
def test_whatever_the_text_an_excerpt_is_one_line_no_longer_than_asked_for(text):
    shown = excerpt({"summary": ["s"], "rationale": [text]})

    assert len(shown) <= EXCERPT
    assert not re.search(r"\s\s|\n", shown)
