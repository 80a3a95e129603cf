"""The tokens that were given out for a root, taken along where that moves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from jidomem.decoding import decode_json
from jidomem.errors import Failed
from jidomem.runtime.own import Token, change, read
from jidomem.runtime.settings import own_config
from jidomem.shared.log import SharedLog

#: The file of a shared root that its tokens are in.
TOKENS = "tokens.json"
_TRIES = 10


def given_out(root: str, log: SharedLog | None) -> list[Token]:
    """Return the tokens of *root*: those in its *log*, or of a folder those in the user's own configuration."""
    if log is None:
        return [token for token in read(own_config()).tokens if token.root == root]
    file = log.get(TOKENS)
    return [_token(said) for said in decode_json(file.data)["tokens"]] if file is not None else []


def give_out(tokens: Sequence[Token], root: str, log: SharedLog | None) -> tuple[int, int]:
    """Return how many of *tokens* are believed at *root* from now on that were not before, and how many others are."""
    known = {token.digest for token in given_out(root, log)}
    coming = [replace(token, root=root) for token in tokens if token.digest not in known]
    others = len(known - {token.digest for token in tokens})
    if coming:
        _give_out(coming, root, log)
    return len(coming), others


def _give_out(coming: Sequence[Token], root: str, log: SharedLog | None) -> None:
    if log is None:
        change(own_config(), lambda own: replace(own, tokens=(*own.tokens, *coming)))
        return
    for _ in range(_TRIES):
        file = log.get(TOKENS)
        said = decode_json(file.data) if file is not None else {"tokens": []}
        there = {token["digest"] for token in said["tokens"]}
        said["tokens"] += [asdict(token) for token in coming if token.digest not in there]
        data = (json.dumps(said, indent=1) + "\n").encode()
        if log.put(TOKENS, data, file.tag if file is not None else None) is not None:
            return
    raise Failed(f"the tokens of {root} are changed all the time", hint="do it again")


def _token(said: dict[str, Any]) -> Token:
    return Token(**{**said, "projects": tuple(said["projects"])})
