"""What looks like a secret in what is to be remembered.  Pure; a table of forms, and a measure of randomness."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from operator import attrgetter
from typing import NamedTuple

from jidomem.errors import Violation
from jidomem.intent import MemoryUpdateIntent
from jidomem.terms import Triple, is_iri, parts
from jidomem.vocab import local_name


class Form(NamedTuple):
    """A kind of secret: what it is called, what a text that holds one holds, and how it is written."""

    kind: str
    mark: str
    pattern: re.Pattern[str]


def _form(kind: str, mark: str, pattern: str) -> Form:
    return Form(kind, mark, re.compile(pattern))


_NAMES = r"(?:pass(?:word|wd|phrase)|pwd|secret|(?:api|access|secret|private|auth)[_-]?(?:key|token)|client[_-]?secret)"
_STRIPE = ("sk_live_", "sk_test_", "rk_live_", "rk_test_")
_GITHUB = ("ghp_", "gho_", "ghu_", "ghs_", "ghr_")
FORMS: tuple[Form, ...] = (
    _form("an AWS access key", "AKIA", r"(?<![A-Z0-9])AKIA[A-Z2-7]{16}(?![A-Z0-9])"),
    _form("an AWS access key", "ASIA", r"(?<![A-Z0-9])ASIA[A-Z2-7]{16}(?![A-Z0-9])"),
    *(_form("a GitHub token", mark, rf"(?<![A-Za-z0-9]){mark}[A-Za-z0-9]{{36,255}}") for mark in _GITHUB),
    _form("a GitHub token", "github_pat_", r"github_pat_[A-Za-z0-9_]{22,255}"),
    _form("a GitLab token", "glpat-", r"glpat-[A-Za-z0-9_-]{20,}"),
    _form("a Slack token", "xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    _form("a Slack webhook", "hooks.slack.com", r"hooks\.slack\.com/services/T[A-Za-z0-9]+/B[A-Za-z0-9]+/[A-Za-z0-9]+"),
    _form("an Anthropic key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{20,}"),
    _form(
        "an OpenAI key",
        "sk-",
        r"(?<![A-Za-z0-9-])sk-(?!ant-)(?=[A-Za-z_-]*[0-9])(?=[a-z0-9_-]*[A-Z])[A-Za-z0-9_-]{20,}",
    ),
    _form("a Google API key", "AIza", r"AIza[0-9A-Za-z_-]{35}"),
    _form("a Google client secret", "GOCSPX-", r"GOCSPX-[0-9A-Za-z_-]{20,}"),
    *(_form("a Stripe key", mark, rf"(?<![A-Za-z0-9]){mark}[0-9A-Za-z]{{16,}}") for mark in _STRIPE),
    _form("an npm token", "npm_", r"(?<![A-Za-z0-9])npm_[A-Za-z0-9]{36}"),
    _form("a PyPI token", "pypi-", r"pypi-AgE[A-Za-z0-9_-]{50,}"),
    _form("a jidomem token", "jido_", r"(?<![A-Za-z0-9_-])jido_(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])"),
    _form("a Hugging Face token", "hf_", r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{34}"),
    _form("a private key", "PRIVATE KEY", r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----"),
    _form("a JSON web token", "eyJ", r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    _form("a password in a URL", "://", r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@?#]*:(?P<said>[^\s/@]{3,})@"),
    _form(
        "a password",
        "=",
        rf"(?i:\b[a-z0-9_-]*{_NAMES}[\"']?\s*=\s*)(?P<said>[\"'][^\"'\n]{{6,}}[\"']|[^\s\"',;()]{{6,}}+)(?!\()",
    ),
    _form(
        "a password",
        ":",
        rf"(?i:\b[a-z0-9_-]*{_NAMES}[\"']?\s*:\s*)(?=\S*[0-9!#%^&*+])(?P<said>[^\s,;()]{{6,}}+)(?!\()",
    ),
)
#: What stands where a secret would: a word for it, a variable, a call or an attribute, stars.
_STANDS_FOR_ONE = re.compile(
    r"[\"']?(?:<.*|\$.*|%.*|\{.*|\[.*|.*\*\*\*.*|x{3,}|\.{3,}.*|[A-Za-z_]\w*(?:[.:]+\w+)+(?:\[.*)?|\w+\[.*|~?/.*|_?[A-Z][A-Z_]+|[a-z]+(?:_[a-z]+)+"
    r"|(?i:your.*|my.*|.*example.*|(?:the)?(?:pass\w*|pwd|secret|token|key)|required|optional|none|null|true|false|string"
    r"|redacted|removed|hidden|empty|changeme|placeholder|unknown|missing|rotated|expired))[\"']?\.?"
)
#: What marks a form by itself, and words that come before a password.
_MARKS = tuple(form.mark for form in FORMS if form.mark not in ("=", ":", "://"))
_ABOUT = ("pass", "pwd", "secret", "key", "token")
_TEXT_FIELDS = ("summary", "detailed_explanation", "rationale", "topic", "convention_name", "reason", "tracked_by")
_LIST_FIELDS = ("evidence", "about", "alternatives", "extra_triples")
_TEXTS = attrgetter(*_TEXT_FIELDS)
_RUN = re.compile(r"[A-Za-z0-9+_=-]{32,}")
_PLAIN = re.compile(r"[0-9a-fA-F-]+|(?:sha|md5|blake)[0-9a-z]*[-_=].*|[a-z0-9_=-]+|[A-Z0-9_=-]+", re.ASCII)


class Found(NamedTuple):
    """A likely secret: what kind of one, and at which character of its text it begins."""

    kind: str
    at: int


def find(text: str) -> Found | None:
    """Return the first likely secret of *text*, None where there is none.

    >>> find("the token is ghp_" + "a1B2" * 9)
    Found(kind='a GitHub token', at=13)
    """
    for kind, mark, pattern in FORMS:
        if mark in text:
            for match in pattern.finditer(text):
                said = match.groupdict().get("said")
                if said is None and "EXAMPLE" in match[0]:  # the keys of the makers' own manuals
                    continue
                if said is None or not _STANDS_FOR_ONE.fullmatch(said):
                    return Found(kind, match.start())
    if len(text) >= 32:
        for match in _RUN.finditer(text):
            if _is_random(match[0]) and not _is_in_address(text, match.start()):
                return Found("a random token", match.start())
    return None


def _is_random(run: str) -> bool:
    """Return whether a run of signs looks drawn by lot: no hash, name or word has so many sorts of sign so mixed."""
    if _PLAIN.fullmatch(run) or sum(map(str.isdigit, run)) < 2:
        return False
    sorts = ["d" if sign.isdigit() else "u" if sign.isupper() else "l" if sign.islower() else "-" for sign in run]
    changes = sum(one != other for one, other in pairwise(sorts))
    total = len(run)
    entropy = -sum(n / total * math.log2(n / total) for n in Counter(run).values())
    return changes * 5 >= total * 2 and entropy >= 4 and sorts.count("-") * 8 <= total


def _is_in_address(text: str, at: int) -> bool:
    """Return whether what begins at *at* is part of an IRI or a path: these name things at random, in the open."""
    word = text[:at].rpartition(" ")[2].rpartition("\n")[2]
    return "/" in word


def screen(intent: MemoryUpdateIntent) -> Iterator[tuple[str, Found]]:
    """Yield each field of an intent that holds a likely secret, and what it is."""
    texts = _TEXTS(intent)
    lists = (intent.evidence, intent.about, intent.alternatives, [*map(_said, intent.extra_triples)])
    if _may_hold("\n".join(text for text in chain(texts, *lists) if text)):
        for name, entries in zip((*_TEXT_FIELDS, *_LIST_FIELDS), (*((text,) for text in texts), *lists), strict=True):
            found = next((found for text in entries if text and (found := find(text))), None)
            if found is not None:
                yield name, found


def _may_hold(text: str) -> bool:
    """Return whether it is worth a closer look: most texts hold no mark of any form, and no long word."""
    if any(map(text.__contains__, _MARKS)):
        return True
    if ("=" in text or ":" in text) and any(map(text.lower().__contains__, _ABOUT)):
        return True
    return ("@" in text and "://" in text) or max(map(len, text.split()), default=0) >= 32


def _said(entry: object) -> str:
    """Return the text of an entry: its own, or that of the object of a normalised extra triple."""
    if isinstance(entry, (list, tuple)) and entry:
        entry = entry[-1]
    if isinstance(entry, dict):
        entry = entry.get("@value") or entry.get("@id")
    return entry if isinstance(entry, str) else ""


def screen_rows(rows: Iterable[Triple]) -> Iterator[tuple[str, Found]]:
    """Yield the property of each triple that says a likely secret, and what it is."""
    for _, predicate, value in rows:
        found = find(value[1:-1] if is_iri(value) else parts(value).text)
        if found is not None:
            yield local_name(predicate), found


def refusals(found: Iterable[tuple[str, Found]]) -> list[Violation]:
    """Return what is said of likely secrets: the field and the kind, never what it is."""
    return [
        Violation("policy_denied", f"{name} holds what looks like {kind}, at character {at}", field=name)
        for name, (kind, at) in found
    ]
