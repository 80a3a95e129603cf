"""A key of an endpoint: it opens one, and stands in no text that anybody is shown."""

from __future__ import annotations

import re

from jidomem.errors import InvalidRequest


class Key:
    """What proves who asks; `name` is the environment variable or file it came from, and all that is ever shown."""

    __slots__ = ("_text", "name")

    def __init__(self, name: str, text: str) -> None:
        """Keep *text*, found in *name*; raises InvalidRequest for what is no key."""
        if not re.fullmatch(r"[!-~]+", text):
            raise InvalidRequest(
                f"{name} holds no key: it is empty, or has spaces or other characters that no key has",
                hint="put the key alone there, and nothing else",
            )
        self.name, self._text = name, text

    def __repr__(self) -> str:
        return f"<the key in {self.name}>"

    def __reduce__(self) -> str:
        raise TypeError("a key is not copied to anywhere")

    def bearer(self) -> str:
        """Return the value of the header `Authorization`."""
        return f"Bearer {self._text}"

    def hidden(self, text: str) -> str:
        """Return *text*, which may come from the other side, with its own name in place of the key.

        >>> Key("K", "abc").hidden("there is no key abc")
        'there is no key <the key in K>'
        """
        for written in (self._text, self._text.replace("/", "\\/")):  # some write JSON so
            text = text.replace(written, repr(self))
        return text
