"""The calls of a named query in the reader."""

import sys
from pathlib import Path

from reader_world import reader_of, world_index

import jidomem

PACKAGE = str(Path(jidomem.__file__).parent)


def test_a_named_query_takes_at_most_four_calls_from_ask_to_the_store():
    reader = reader_of(world_index())
    ways = []

    def record(frame, event, _):
        if event == "call" and frame.f_code.co_qualname == "OxigraphIndex.query":
            ways.append(own_calls(frame))

    sys.setprofile(record)
    try:
        reader.ask("open-tasks", project="demo")
    finally:
        sys.setprofile(None)

    (way, *_) = ways
    assert way[0] == "MemoryReader.ask"
    assert len(way) - 1 <= 4, way


def own_calls(frame):
    """Return the functions of the package from the outermost one to *frame*."""
    names = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(PACKAGE):
            names.append(frame.f_code.co_qualname)
        frame = frame.f_back
    return names[::-1]
