"""The excerpt that answers a question: the opening and the best sentences, whole and in their order."""

from hypothesis import given
from hypothesis import strategies as st

from jidomem.base.words import opening
from jidomem.recall.candidates import matching_excerpt

WORDS = ["queue", "letter", "expires", "slow", "we", "decided"]
SENTENCES = st.lists(
    st.builds(
        lambda words, number, end: f"{words[0].title()} {' '.join(words[1:])} {number}{end}",
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=30),
        st.integers(0, 10**6),
        st.sampled_from([".", ".", ".", ":"]),
    ),
    max_size=30,
    unique=True,
)


def stems_of(sentences):
    return [{word.strip(".:").casefold() for word in sentence.split()} for sentence in sentences]


@given(SENTENCES, st.dictionaries(st.sampled_from(WORDS), st.floats(0.1, 9)), st.integers(60, 900))
def test_an_excerpt_fits_its_length_and_has_sentences_in_text_order(sentences, weights, longest):
    shown = matching_excerpt(sentences, stems_of(sentences), weights, longest)

    assert len(shown) <= longest
    pieces = [piece.strip() for piece in shown.split("…") if piece.strip()]
    places = [" ".join(sentences).index(piece) for piece in pieces]
    assert places == sorted(places)


@given(SENTENCES, st.integers(60, 900))
def test_an_excerpt_without_matching_words_is_the_opening(sentences, longest):
    assert matching_excerpt(sentences, stems_of(sentences), {}, longest) == opening(sentences, longest).text


def test_an_excerpt_has_the_opening_then_the_best_sentence_with_its_heading():
    filler = [f"Another matter number {number} is described here at length." for number in range(20)]
    sentences = [
        "We use one queue.",
        *filler,
        "Negative consequences:",
        "- A letter expires after 30 days.",
        *filler[:3],
    ]

    shown = matching_excerpt(sentences, stems_of(sentences), {"letter": 1.0, "expires": 2.0}, 200)

    assert shown.startswith("We use one queue. Another matter number 0")
    assert "… Negative consequences: - A letter expires after 30 days." in shown
    assert shown.endswith("…")


def test_a_rare_word_outweighs_a_frequent_word_in_an_excerpt():
    sentences = ["We use one queue."] * 2 + [f"The queue has part {number}." for number in range(40)]
    sentences.insert(30, "Letters expire.")

    shown = matching_excerpt(sentences, stems_of(sentences), {"queue": 5.0, "expire": 5.0}, 120)

    assert "Letters expire." in shown
