"""What an embedder is asked: texts, and none of them anything else."""

from __future__ import annotations

from collections.abc import Sequence

from jidomem.errors import InvalidRequest
from jidomem.plain import is_unicode


def texts_of(texts: Sequence[str]) -> list[str]:
    """Return *texts* as they are; raises InvalidRequest for one text alone, and for what is no Unicode text."""
    if isinstance(texts, str):
        raise InvalidRequest("one text was given where several are asked for", hint="give a list: [text]")
    for place, text in enumerate(texts):
        if not isinstance(text, str) or not is_unicode(text):
            raise InvalidRequest(f"text {place} is no Unicode text: {text!r:.40}", hint="give texts alone")
    return list(texts)
