"""What who asks may do on a page: what is not allowed is not offered, and who may is said in its place."""

from __future__ import annotations

from collections.abc import Callable

from jidomem.errors import PolicyDenied
from jidomem.serve.curator.asked import Asked
from jidomem.write.writer import MemoryWriter

_READER = (
    "{} has the token of a reader, who changes nothing; ask who runs the server for one of the role agent or curator"
)


def why_not_write(asked: Asked) -> str | None:
    """Return why who asks changes nothing here at all; None where it may."""
    caller = asked.site.caller
    return _READER.format(caller.agent) if caller is not None and caller.role == "reader" else None


def why_not_curate(asked: Asked) -> str | None:
    """Return why who asks may not judge what terms there are; None where it may."""
    return _refusal(asked, lambda writer: writer.check_keeper(asked.project, writer.agent, "judge proposed terms"))


def why_not_correct(asked: Asked, *items: str, asserted: bool = False) -> str | None:
    """Return why who asks may not correct *items*, or not so that it is *asserted*; None where it may."""

    def check(writer: MemoryWriter) -> None:
        for item in items:
            writer.check_corrects(asked.project, item, asserted=asserted)

    return _refusal(asked, check)


def _refusal(asked: Asked, check: Callable[[MemoryWriter], None]) -> str | None:
    if asked.as_of is not None:  # nothing is done in the past, whoever asks
        return None
    if (why := why_not_write(asked)) is not None:
        return why
    try:
        check(asked.site.writer)
    except PolicyDenied as error:
        return f"{error.detail}; {error.hint}"
    return None
