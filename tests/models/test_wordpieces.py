"""The tokenizer of BERT's uncased vocabulary, with the results of the reference tokenizer."""

from hashlib import sha256
from pathlib import Path

import pytest

import jidomem.models
from jidomem.models.local_embedder import WordPieces, words

VOCABULARY = Path(jidomem.models.__file__).with_name("uncased.txt")


@pytest.fixture(scope="module")
def pieces():
    return WordPieces(VOCABULARY.read_text("utf-8").splitlines(), 128)


def test_the_vocabulary_is_the_published_one():
    published = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"

    assert sha256(VOCABULARY.read_bytes()).hexdigest() == published


REFERENCE = {
    "Use Oxigraph: it embeds.": [2224, 23060, 8004, 24342, 1024, 2009, 7861, 8270, 2015, 1012],
    "it's 3.14, isn't it?": [2009, 1005, 1055, 1017, 1012, 2403, 1010, 3475, 1005, 1056, 2009, 1029],
    "Caf\xe9 NA\xcfVE \xc5NGSTR\xd6M": [7668, 15743, 17076, 15687],
    "unaffable tokenizations": [14477, 20961, 3468, 19204, 22318],
    "snake_case + camelCase => x[0]": [7488, 1035, 2553, 1009, 19130, 18382, 1027, 1028, 1060, 1031, 1014, 1033],
    "  tabs\tand\nlines  ": [21628, 2015, 1998, 3210],
    "\u4e1c\u4eac is \u6771\u4eac\u90fd": [100, 1755, 2003, 1879, 1755, 1961],
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!": [
        1194,
        16856,
        10325,
        25529,
        15290,
        22919,
        1010,
        1191,
        10325,
        16856,
        999,
    ],
    "\u039f\u0394\u039f\u03a3": [1169, 29722, 29730, 29733],
    "\u0130stanbul": [9960],
    "\U0001f44d\U0001f3fd ok": [100, 7929],
    "a\u200bb\xadc": [5925],
    "zero\x00width\x07bell": [5717, 9148, 11927, 2232, 17327],
    "\u2026\u201cquoted\u201d\u2014dash": [1529, 1523, 9339, 1524, 1517, 11454],
    "\xbd \ufb01ne \uff26\uff35\uff2c\uff2c": [1092, 1984, 2638, 100],
    "\ud55c\uad6d\uc5b4": [1469, 30006, 30021, 29991, 30014, 30020, 29999, 30008],
    "\u0928\u092e\u0938\u094d\u0924\u0947": [1327, 29867, 29874, 29859],
    "e\u0301te\u0301": [3802, 2063],
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": [
        22038,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
        20348,
    ],
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": [100],
    "@#$%^&*()": [1030, 1001, 1002, 1003, 1034, 1004, 1008, 1006, 1007],
    "https://jido.ai/ontology#Decision": [
        16770,
        1024,
        1013,
        1013,
        10147,
        3527,
        1012,
        9932,
        1013,
        3031,
        6483,
        1001,
        3247,
    ],
}


@pytest.mark.parametrize("text", REFERENCE, ids=ascii)
def test_a_text_has_the_word_pieces_of_the_reference_tokenizer(text, pieces):
    assert pieces.numbers(text) == [101, *REFERENCE[text], 102]


@pytest.mark.parametrize("text", ["", " ", "\t\n\r ", "\x00\x01", "\u200b\u00ad", "\u3000"])
def test_a_blank_text_has_no_pieces(text, pieces):
    assert pieces.numbers(text) == []


def test_a_long_text_is_cut_to_its_first_pieces(pieces):
    whole, long = "tea " * 126, "tea " * 125 + "unaffable " * 1000

    assert pieces.numbers(whole) == [101, *[5572] * 126, 102]
    assert pieces.numbers(long) == [101, *[5572] * 125, pieces.numbers("unaffable")[1], 102]


def test_punctuation_marks_are_separate_words_in_any_script():
    assert [*words("a-b_c")] == ["a", "-", "b", "_", "c"]
    assert [*words("é-b_c「d」")] == ["e", "-", "b", "_", "c", "「", "d", "」"]
