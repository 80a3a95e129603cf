"""CSV for people: what a spreadsheet would take for a formula is written so that it is text."""

from __future__ import annotations

import csv
import io
import re
import sys

from flask import Response

from jidomem.serve import answers, sparql
from jidomem.serve.site import Site

csv.field_size_limit(sys.maxsize)  # texts of memories are longer than what the library takes unasked
#: What a spreadsheet computes with: not what an ordinary number begins with.
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r]")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def inert(cell: str) -> str:
    """Return the text of a cell with nothing in it that a spreadsheet computes.

    >>> inert("=HYPERLINK(1)"), inert("-12.5"), inert("a = b")
    ("'=HYPERLINK(1)", '-12.5', 'a = b')
    """
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


def question(site: Site, project: str, name: str) -> Response:
    """Return the rows of a named question as CSV, all of them."""
    return _for_sheets(answers.ask(site, project, f"{name}.csv"))


def asked(site: Site, project: str) -> Response:
    """Return the answer to the query in the address."""
    return _for_sheets(sparql.get(site, project))


def posted(site: Site, project: str) -> Response:
    """Return the answer to the query in the body."""
    return _for_sheets(sparql.post(site, project))


def _for_sheets(found: Response) -> Response:
    """Return an answer that is CSV with its cells made inert, any other as it is."""
    if found.mimetype != answers.CSV:
        return found
    file = io.StringIO(newline="")
    rows = csv.reader(io.StringIO(found.get_data(as_text=True), newline=""))
    csv.writer(file, lineterminator="\r\n").writerows([inert(cell) for cell in row] for row in rows)
    found.set_data(file.getvalue())
    return found
