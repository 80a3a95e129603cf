"""Answers within a stated number of rows and bytes: whole at the limit, refused above it, in every format."""

import pyoxigraph as ox
import pytest

from jidomem.errors import TooLarge
from jidomem.index.results import GRAPH_FORMATS, ROW_FORMATS, AnswerLimits, write_result

TEN = AnswerLimits(rows=10)
#: Texts that look like the end of a row in one format or another.
TRICKY = ["},{", "a\nb", "<result>", 'x"\r\n"y', "line\u2028end"]


def store(count):
    filled = ox.Store()
    for number in range(count):
        text = ox.Literal(TRICKY[number % len(TRICKY)] * 3)
        filled.add(ox.Quad(ox.NamedNode(f"urn:x:{number}"), ox.NamedNode("urn:x:p"), text))
    return filled


@pytest.mark.parametrize("form", ROW_FORMATS)
@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 30])
def test_rows_are_counted_correctly_whatever_their_texts(form, count):
    def answer(limits=TEN):
        return write_result(store(count).query("SELECT ?s ?o { ?s ?p ?o }"), form, "turtle", limits).data

    if count <= 10:
        assert answer(AnswerLimits(rows=count)) == answer()
        if count:
            with pytest.raises(TooLarge, match=f"the answer has more than {count - 1} rows"):
                answer(AnswerLimits(rows=count - 1))
    else:
        with pytest.raises(TooLarge, match="the answer has more than 10 rows") as refusal:
            answer()
        assert refusal.value.code == "result_too_large"


@pytest.mark.parametrize("form", GRAPH_FORMATS)
def test_triples_beyond_the_limit_are_refused(form):
    def answer(count):
        return write_result(store(count).query("CONSTRUCT WHERE { ?s ?p ?o }"), "json", form, TEN).data

    assert len(set(ox.parse(answer(10), GRAPH_FORMATS[form]))) == 10
    with pytest.raises(TooLarge, match="the answer has more than 10 triples"):
        answer(11)


def test_an_answer_beyond_its_size_limit_is_refused():
    endless = "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }"

    with pytest.raises(TooLarge, match="the answer has more than 20,000 bytes"):
        write_result(store(200).query(endless), "json", "turtle", AnswerLimits(size=20_000))
