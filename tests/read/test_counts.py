"""How much there is now is counted in another way than how much there was: both agree."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from reader_world import new_index, reader_of
from test_query_law import CONTEXT, Scribe, at, drawn_history

from jidomem.read.counts import counts

#: What the writer sees to.
OURS = {"foreign": False, "left_out": ""}


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32))
def test_what_there_is_now_is_what_there_is_as_of_the_last_moment(seed):
    scribe, index = Scribe(), new_index()
    for number, news in enumerate(drawn_history(Random(seed))):
        ours = [{**piece, **OURS} if isinstance(piece, dict) else piece for piece in news]
        index.apply(CONTEXT, str(number), scribe.commit(number, ours)[CONTEXT])
    reader = reader_of(index)

    now = counts(reader, "demo", as_of=None, valid_at=None)

    assert now == counts(reader, "demo", as_of=at(59))
    assert sum(sum(of.values()) for of in now.values()) == len(
        {name for name, cls in scribe.known if cls != "Evidence"}
    )
