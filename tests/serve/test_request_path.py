"""The number of files that a request runs through, as `python -m bench.source_tree` prints it."""

from bench.source_tree import traces


def test_a_named_query_over_http_enters_at_most_25_files():
    request = traces()["GET .../queries/active-decisions"]

    entered = sorted({file for file, _ in request.calls})
    assert len(entered) <= 25, entered
