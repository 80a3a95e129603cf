"""What a question asks for, and what a text gives away of itself: English words that tell it.  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: So much of a text is looked at: who speaks says what it is about at its beginning.
BEGINNING = 600
#: Names under which a machine answers.
ANSWERING = frozenset(("assistant", "ai", "agent", "bot", "chatbot", "model"))
#: Names of roles, which are no names of people.
ROLES = frozenset(("user", "human", "person", "customer", "system", "tool")) | ANSWERING
_NUMBER = "one two three four five six seven eight nine ten couple few several once twice both"
_TIME = (
    "yesterday today tonight tomorrow last next ago week weekend month year day morning evening night since monday"
    " tuesday wednesday thursday friday saturday sunday january february march april june july august september october"
    " november december"
)


def _any(words: str) -> str:
    return rf"\b(?:{'|'.join(words.split())})\b"


_ASKS_TIME = re.compile(r"\bwhen\b|\bhow long\b|\b(?:what|which) (?:date|day|month|year|time)\b"
                        r"|\bhow many (?:days|weeks|months|years)\b", re.IGNORECASE)  # fmt: skip
_ASKS_NUMBER = re.compile(r"\bhow (?:many|much|often|long|old)\b|\bnumber of\b", re.IGNORECASE)
_ASKS_ANSWERER = re.compile(
    r"\b(?:did|have|do|would|were) you\b|\byour (?:advice|answer|recommend|suggest|explanation)"
    r"|\byou(?:'ve|'d)? (?:recommend|suggest|advise|said|say|told|explain|propos|mention|give|gave|provide|list)",
    re.IGNORECASE,
)
_GIVES_TIME = re.compile(rf"{_any(_TIME)}|\b\d{{4}}\b", re.IGNORECASE)
_GIVES_NUMBER = re.compile(rf"\d|{_any(_NUMBER)}", re.IGNORECASE)
_NAME, _WORD = re.compile(r"\b([^\W\d_]+)(?:['’]s)?\b"), re.compile(r"\w")
_OF_ITSELF = re.compile(r"\b(?:I|me|my|we|our)\b", re.IGNORECASE)


_ASKS = {"time": _ASKS_TIME, "number": _ASKS_NUMBER, "answerer": _ASKS_ANSWERER}
_GIVES = {"time": _GIVES_TIME, "number": _GIVES_NUMBER}


def unnamed(question: str, names: Iterable[str]) -> str:
    """Return *question* without the people of these *names*, as far as more is left: what it asks of them.

    >>> unnamed("When did Ana's brother move?", ["ana lopez", "user"])
    'When did brother move?'
    """
    people = {part.casefold() for name in names if name.casefold() not in ROLES for part in name.split()}

    def told(word: re.Match[str]) -> str:
        return " " if word[1][0].isupper() and word[1].casefold() in people else word[0]

    left = _NAME.sub(told, question)
    return " ".join(left.split()) if _WORD.search(left) else question


def wanted(question: str) -> frozenset[str]:
    """Return what *question* asks for: a `time`, a `number`, or what the `answerer` said.

    >>> sorted(wanted("When did we move, and how many of us?"))
    ['number', 'time']
    """
    return frozenset(kind for kind, pattern in _ASKS.items() if pattern.search(question))


def gives(kind: str, text: str) -> bool:
    """Return whether the beginning of *text* has a `time` or a `number`.

    >>> gives("time", "We moved last week."), gives("number", "We moved.")
    (True, False)
    """
    return _GIVES[kind].search(text, 0, BEGINNING) is not None


def is_of_itself(text: str) -> bool:
    """Return whether who speaks at the beginning of *text* speaks of themselves.

    >>> is_of_itself("I moved."), is_of_itself("You moved.")
    (True, False)
    """
    return _OF_ITSELF.search(text, 0, BEGINNING) is not None
