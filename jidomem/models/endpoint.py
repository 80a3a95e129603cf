"""The endpoint client: JSON over HTTP in OpenAI's format, with retries and a total deadline.

A key is sent to one host only, and appears in no message.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import orjson

from jidomem.base import clock
from jidomem.base.http_client import HttpClient, HttpFailure, HttpLimits, HttpOrigin, HttpResponse
from jidomem.base.words import one_line
from jidomem.errors import InvalidRequest, JidomemError, ModelUnavailable


class EndpointAddress(NamedTuple):
    """The server of an endpoint, and the path below which its requests are."""

    origin: HttpOrigin
    path: str

    @classmethod
    def of(cls, url: str) -> EndpointAddress:
        """Parse *url*; raise InvalidRequest if it is invalid, or has a login or a query."""
        hint = 'give it with its version, as in base_url = "https://api.openai.com/v1"'
        try:
            split = urlsplit(url)
            port = split.port
            (split.hostname or "").encode("idna")
        except ValueError:
            split, port = urlsplit(""), None
        if split.scheme not in ("http", "https") or not split.hostname or not re.fullmatch(r"[!-~]+", url):
            raise InvalidRequest("the base URL is not an http or https address", hint=hint)
        if split.username is not None or split.query or split.fragment:
            raise InvalidRequest(
                "the base URL has a name, a password or a query in it", hint=f"{hint}; a key is in the environment"
            )
        is_secure = split.scheme == "https"
        origin = HttpOrigin(is_secure, split.hostname, port or (443 if is_secure else 80))
        return cls(origin, split.path.rstrip("/"))

    def __str__(self) -> str:
        return f"{self.origin}{self.path}"

    @property
    def is_local(self) -> bool:
        """Return whether requests stay on this machine."""
        host = self.origin.host
        return host in ("localhost", "::1") or re.fullmatch(r"127(\.\d{1,3}){3}", host) is not None


class ApiKey:
    """The key of an endpoint; only its `name`, the environment variable or file with the key, is ever shown."""

    __slots__ = ("_text", "name")

    def __init__(self, name: str, text: str) -> None:
        """Take *text*, the value of *name*; raises InvalidRequest for an invalid key."""
        if not re.fullmatch(r"[!-~]+", text):
            raise InvalidRequest(
                f"{name} has no key: it is empty, or has spaces or other characters that a key cannot have",
                hint="put only the key there",
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
        """Return *text*, which may come from the server, with the key replaced by its name.

        >>> ApiKey("K", "abc").hidden("there is no key abc")
        'there is no key <the key in K>'
        """
        for written in (self._text, self._text.replace("/", "\\/")):  # some servers escape slashes in JSON
            text = text.replace(written, repr(self))
        return text


#: The statuses that are transient.
PASSING = (429, 500, 502, 503, 504)
_MAX_DETAIL_CHARS = 500
_HINTS: Mapping[int, str] = {
    400: "check that the endpoint has this model with these dimensions",
    404: "check that the base URL has its version (/v1) and that the endpoint knows the model",
    429: "ask for less at once, or later; see the quota of the key",
}


@dataclass(frozen=True, slots=True)
class RequestTimeouts:
    """The timeouts and attempts of requests, in seconds; `overall` limits all attempts of a request together."""

    connect: float = 5.0
    silence: float = 30.0
    overall: float = 60.0
    tries: int = 4
    pause: float = 0.5
    longest_pause: float = 20.0


@dataclass(frozen=True, slots=True)
class EndpointEnvironment:
    """The surroundings of an endpoint: clocks, sleep and randomness; tests replace them."""

    now: Callable[[], datetime] = clock.now
    monotonic: Callable[[], float] = clock.monotonic_time
    sleep: Callable[[float], object] = time.sleep
    chance: Callable[[], float] = random.random


class ModelEndpoint:
    """An endpoint, for any number of threads."""

    def __init__(
        self,
        base_url: str,
        key: ApiKey | None,
        patience: RequestTimeouts = RequestTimeouts(),
        *,
        most: int = 64 * 1024 * 1024,
        outside: EndpointEnvironment = EndpointEnvironment(),
    ) -> None:
        """Send requests below *base_url* (`https://api.openai.com/v1`) with *key*; answers have up to *most* bytes.

        Raises InvalidRequest for an invalid address, and for one to which a key would be sent unencrypted.
        """
        self.address = EndpointAddress.of(base_url)
        if key is not None and not (self.address.origin.is_secure or self.address.is_local):
            raise InvalidRequest(
                f"{self.address} would get {key!r} unencrypted",
                hint='put TLS before it (https://), or use it without a key: key_env = ""',
            )
        self._key, self._patience, self._most, self._outside = key, patience, most, outside
        self._client = HttpClient(self.address.origin, monotonic=outside.monotonic)

    def __repr__(self) -> str:
        return f"Endpoint({str(self.address)!r}, {self._key!r})"

    def post(self, path: str, body: Mapping[str, Any], within: float | None = None) -> dict[str, Any]:
        """Post *body* to *path* and return the JSON object of the answer, *within* so many seconds if given.

        Transient statuses and connection failures are retried after a growing delay, or after the requested one. Raises
        ModelUnavailable, and InvalidRequest for a body without a JSON form.
        """
        seconds = min(self._patience.overall, self._patience.overall if within is None else within)
        data, until = _to_json(body), self._outside.monotonic() + seconds
        for tried in range(1, self._patience.tries + 1):
            answer = self._ask(path, data, until)
            if isinstance(answer, HttpResponse) and answer.status == 200:
                return self._read(path, answer)
            passes = answer.may_pass if isinstance(answer, HttpFailure) else answer.status in PASSING
            pause = self._pause(tried, answer)
            if not passes or tried == self._patience.tries or self._outside.monotonic() + pause >= until:
                break
            self._outside.sleep(pause)
        raise self._refusal(path, answer, tried)

    def _ask(self, path: str, body: bytes, until: float) -> HttpResponse | HttpFailure:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key is not None:
            headers["Authorization"] = self._key.bearer()
        limits = HttpLimits(self._patience.connect, self._patience.silence, until, self._most)
        return self._client.request("POST", self.address.path + path, headers, body, limits)

    def _pause(self, tried: int, answer: HttpResponse | HttpFailure) -> float:
        """Return the seconds until the next attempt: as requested, else twice the last delay, minus a random part."""
        if isinstance(answer, HttpResponse):
            seconds = _retry_after_seconds(answer.header("retry-after"), self._outside.now)
            if seconds is not None:
                return seconds if seconds <= self._patience.longest_pause else float("inf")
        doubled = min(self._patience.pause * 2.0 ** (tried - 1), self._patience.longest_pause)
        return doubled * (0.5 + self._outside.chance() / 2)

    def _read(self, path: str, answer: HttpResponse) -> dict[str, Any]:
        """Return the JSON object in the body of *answer*; raises ModelUnavailable if there is none."""
        kind = answer.header("content-type").partition(";")[0].strip().lower()
        if not answer.is_whole:
            raise self._unusable(path, f"answered with more than {self._most:,} bytes")
        if answer.header("content-encoding").lower() not in ("", "identity"):
            raise self._unusable(path, "answered in a content encoding that was not requested")
        if kind != "application/json" and not kind.endswith("+json"):
            raise self._unusable(path, f"answered with {self._shown(kind) or 'no type'} and no JSON: ", answer.body)
        try:
            value = orjson.loads(answer.body)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise self._unusable(path, "answered with no JSON object: ", answer.body)
        return value

    def _refusal(self, path: str, answer: HttpResponse | HttpFailure, tried: int) -> ModelUnavailable:
        times = f" ({tried} tries)" if tried > 1 else ""
        if isinstance(answer, HttpFailure):
            hint = "check that it runs and can be reached from here; proxies of the environment are not used"
            return self._unusable(path, f"{answer.why}{times}", hint=hint)
        if wait := answer.header("retry-after"):
            times += f", and asks to wait: {self._shown(wait)[:40]}"
        return self._unusable(path, f"answered {answer.status}{times}: ", answer.body, self._hint(answer.status))

    def _hint(self, status: int) -> str:
        if status in (401, 403):
            return (
                f"check that {self._key.name} has a valid key" if self._key else "name the variable of its key: key_env"
            )
        if 300 <= status < 400:
            return "no redirect is followed, so that no key leaks: set the base URL to its address"
        return _HINTS.get(status, "")

    def _unusable(self, path: str, what: str, body: bytes = b"", hint: str = "") -> ModelUnavailable:
        text = self._shown(body.decode("utf-8", "replace"))
        hint = hint or "check that the base URL is that of an OpenAI-compatible endpoint"
        return ModelUnavailable(f"{self.address}{path} {what}{text}", hint=hint)

    def _shown(self, text: str) -> str:
        """Return the start of *text* from the server, on one line and without the key."""
        safe = self._key.hidden(text) if self._key else text
        return one_line(safe)[:_MAX_DETAIL_CHARS]


class EndpointUnavailable(NamedTuple):
    """An endpoint that cannot be used now; every request raises *why*."""

    address: str
    why: JidomemError

    def post(self, path: str, body: Mapping[str, Any], within: float | None = None) -> dict[str, Any]:
        """Raise ModelUnavailable."""
        raise ModelUnavailable(self.why.detail, hint=self.why.hint)


def _to_json(body: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(body)
    except TypeError as error:
        raise InvalidRequest(f"the request cannot be written as JSON: {error}", hint="give Unicode text") from error


def _retry_after_seconds(retry_after: str, now: Callable[[], datetime]) -> float | None:
    """Return the seconds of the header `Retry-After`, given as a number or as a moment; None if it is invalid."""
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        moment = parsedate_to_datetime(retry_after)
    except (ValueError, OverflowError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max((moment - now()).total_seconds(), 0.0)
