"""The secret screen detects likely secrets in intents and descriptions, by known forms and by randomness. Pure."""

from __future__ import annotations

import math
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from itertools import chain, pairwise
from operator import attrgetter
from typing import NamedTuple
from urllib.parse import unquote

from jidomem.base.regex import compiled, lazy
from jidomem.base.words import without_invisible
from jidomem.errors import Violation
from jidomem.rdf.terms import Triple, is_iri, parse_literal
from jidomem.rdf.vocab import TYPE, local_name
from jidomem.records.intent import INTENT_FIELDS, LIST_FIELDS, MemoryUpdateIntent, properties_of
from jidomem.write.canonical import MINTED


class SecretPattern(NamedTuple):
    """A kind of secret: its name, a mark that each text with such a secret contains, and its pattern.

    If there are `words`, the text also contains one of them, in any case. A pattern is compiled once a text has its
    mark: compiling all of them takes as long as the rest of a start.
    """

    kind: str
    mark: str
    pattern: str
    words: tuple[str, ...] = ()


#: The words for a password, also in other languages.
_PASSWORDS = r"(?:pass(?:wor[dt]|wd|phrase)|kennwort|wachtwoord|contrase[nñ]a|mot de passe|\bpw|pwd)"
_PASSWORD_WORDS = ("pass", "kennwort", "wachtwoord", "contrase", "pw")
_SECRET_WORDS = (*_PASSWORD_WORDS, "secret", "key", "token", "_auth")


_NAMES = (
    rf"(?:{_PASSWORDS}|(?<=_)pass|secret"
    r"|(?:api|access|secret|private|auth|account)[_-]?(?:key|token)|client[_-]?secret)"
)
_HEX, _WORD = "[0-9a-f]", "[A-Za-z0-9_-]"
#: Blanks between a name and its value on one line: the value does not continue on the next line.
_BLANKS = r"[^\S\n]*"
#: What a password or key is for, between its name and its value.
_FOR = r"(?: (?:for|of|to|on|at|in)(?: [^\s:=]{1,40}){1,4})?"
#: A password in prose, with a digit and a letter, and a look-ahead for one with a sign that words do not have.
_MIXED = r"(?=\S{0,99}[0-9])(?=\S{0,99}[A-Za-z])(?P<value>[^\s,;()/]{6,}+)"
_SIGN = r"[^\s,;()/]{0,99}[!#%^&*+?@$]"
#: Kinds of tokens: name, prefixes, and the pattern of the rest.
_TOKENS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("an AWS access key", ("AKIA", "ASIA"), "[A-Z2-7]{16}(?![A-Z0-9])"),
    ("a GitHub token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), "[A-Za-z0-9]{36,255}"),
    ("a GitHub token", ("github_pat_",), "[A-Za-z0-9_]{22,255}"),
    ("a GitLab token", ("glpat-", "glrt-", "gldt-", "glptt-", "glcbt-", "glagent-", "gloas-"), f"{_WORD}{{20,}}"),
    ("a Slack token", ("xox",), "[abeoprs][-.][A-Za-z0-9.-]{10,}"),
    ("a Slack token", ("xapp-",), "[A-Za-z0-9-]{20,}"),
    ("an Anthropic key", ("sk-ant-",), f"{_WORD}{{20,}}"),
    ("an OpenAI key", ("sk-proj-", "sk-svcacct-", "sk-admin-"), f"{_WORD}{{20,}}"),
    ("an OpenAI key", ("sk-",), "(?=[A-Za-z]{0,99}[0-9])[A-Za-z0-9]{32,}"),
    ("an OpenRouter key", ("sk-or-v1-",), f"{_HEX}{{64}}"),
    ("a Google API key", ("AIza",), f"{_WORD}{{35}}"),
    ("a Google client secret", ("GOCSPX-",), f"{_WORD}{{20,}}"),
    ("a Google token", ("ya29.", "1//0"), f"{_WORD}{{30,}}"),
    ("a Stripe key", ("sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"), "[0-9A-Za-z]{16,}"),
    ("an npm token", ("npm_",), "[A-Za-z0-9]{36}"),
    ("a PyPI token", ("pypi-",), f"AgE{_WORD}{{50,}}"),
    ("a RubyGems token", ("rubygems_",), f"{_HEX}{{48}}"),
    ("a Hugging Face token", ("hf_",), "[A-Za-z0-9]{34}"),
    ("a DigitalOcean token", ("dop_v1_", "doo_v1_", "dor_v1_"), f"{_HEX}{{64}}"),
    ("a Shopify token", ("shpat_", "shpca_", "shppa_", "shpss_"), f"{_HEX}{{32}}"),
    ("a Square token", ("sq0atp-", "sq0csp-"), f"{_WORD}{{22,}}"),
    ("a Databricks token", ("dapi",), f"{_HEX}{{32}}"),
    ("a Vault token", ("hvs.", "hvb.", "hvr."), f"{_WORD}{{24,}}"),
    ("a Pulumi token", ("pul-",), f"{_HEX}{{40}}"),
    ("a Supabase token", ("sbp_",), f"{_HEX}{{40}}"),
    ("a Twilio key", ("SK",), f"{_HEX}{{32}}(?![0-9A-Za-z])"),
    ("a Mailgun key", ("key-",), f"{_HEX}{{32}}(?![0-9A-Za-z])"),
    ("a New Relic key", ("NRAK-",), "[A-Z0-9]{27}"),
    ("an age key", ("AGE-SECRET-KEY-1",), "[A-Z0-9]{58}"),
)
FORMS: tuple[SecretPattern, ...] = (
    *(
        SecretPattern(kind, mark, rf"(?<![A-Za-z0-9]){re.escape(mark)}{tail}")
        for kind, marks, tail in _TOKENS
        for mark in marks
    ),
    SecretPattern("a Slack webhook", "hooks.slack.com",
                  r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Z0-9]+/[\w/]{20,}"),
    SecretPattern("a Discord webhook", "/api/webhooks/", rf"discord(?:app)?\.com/api/webhooks/[0-9]+/{_WORD}{{60,}}"),
    SecretPattern("an Azure signature", "sig=", r"[?&]sig=[A-Za-z0-9%+/]{43,}"),
    SecretPattern("a jidomem token", "jido_", rf"(?<!{_WORD})jido_(?=[A-Za-z_-]{{0,99}}[0-9]){_WORD}{{43}}(?!{_WORD})"),
    SecretPattern("a private key", "PRIVATE KEY",
                  r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----(?=[^-]{0,300}?[A-Za-z0-9+/]{32})"),
    SecretPattern("a PASERK secret key", ".secret.", rf"(?<!{_WORD})k[1-4]\.secret\.{_WORD}{{40,}}"),
    SecretPattern("a JSON web token", "eyJ", rf"(?<!{_WORD})eyJ{_WORD}{{8,}}\.eyJ{_WORD}{{8,}}\.{_WORD}{{8,}}"),
    SecretPattern("a password in a URL", "://",
                  r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{0,30}://(?P<user>[^\s/:@?#]*):(?!(?P=user)@)(?P<value>[^\s/]{3,})@",
                  ("@",)),
    SecretPattern("a token in a URL", "://", r"://[A-Za-z0-9_]{32,}@", ("@",)),
    SecretPattern("a credential", "uthorization",
                  r"uthorization[\"']?\s*[:=]\s*[\"']?(?i:bearer|basic|token)\s+"
                  r"(?P<value>(?=\S{0,99}[0-9=])[A-Za-z0-9+/_.~=-]{12,}+)"),
    SecretPattern("a password", "curl",
                  r"\bcurl\b[^\n]{0,200}?\s(?:-u|--user)[ =][\"']?[^\s:\"']+:(?P<value>[^\s\"']{3,})"),
    SecretPattern("a password", "--",
                  rf"--(?:[a-z]{{1,20}}-)?{_NAMES}[ =](?=\S{{0,99}}[0-9])(?P<value>[^\s,;()]{{6,}}+)",
                  _SECRET_WORDS),
    SecretPattern("a password", "</", rf"(?i:(?:{_NAMES}|token)>)\s*(?P<value>[^<\s]{{6,}})\s*</", _SECRET_WORDS),
    SecretPattern("a password", "=",
                  rf"(?i:{_NAMES}[\"']?{_BLANKS}=>?{_BLANKS})(?P<value>[\"'][^\"'\n]{{6,}}[\"']|[^\s\"',;()]{{6,}}+)(?!\()",
                  _SECRET_WORDS),
    SecretPattern("a password", ":",
                  rf"(?i:{_NAMES}[\"']?{_FOR}{_BLANKS}:{_BLANKS})(?=\S{{0,99}}(?:[0-9#%^&*+]|!\S))(?P<value>[^\s,;()]{{6,}}+)(?!\()",
                  _SECRET_WORDS),
    *(
        SecretPattern("a password", sign, rf"(?i:\b{_PASSWORDS}{_FOR}{sign}){_MIXED}", _PASSWORD_WORDS)
        for sign in (" is ", " ist ")
    ),
    SecretPattern("a password", " ", rf"(?i:\b{_PASSWORDS}{_FOR} )(?={_SIGN}){_MIXED}", _PASSWORD_WORDS),
    SecretPattern("a password", "ogin",
                  rf"(?i:\blogin(?: (?:is|ist|for|at|on)|:)?) [\w.@-]{{1,40}}(?::| ?/ ?(?={_SIGN})){_MIXED}"),
    SecretPattern("a credential", "earer ", r"\b[Bb]earer (?P<value>(?=\S{0,99}[0-9])[A-Za-z0-9+/_.~=-]{24,}+)"),
    *(
        SecretPattern(
            "a token",
            sign,
            rf"(?i:(?:token|_auth)[\"']?{_BLANKS}{sign}{_BLANKS})[\"']?"
            r"(?=[^\s\"']{0,99}[0-9])(?=[^\s\"']{0,99}[A-Za-z])(?P<value>[A-Za-z0-9+/.~=-]{16,}+)(?!\()",
            _SECRET_WORDS,
        )
        for sign in "=:"
    ),
    *(
        SecretPattern(
            "an API key",
            sign,
            rf"(?i:\b(?:api|access|secret|private|account) (?:key|token)[\"'`]?{_FOR}{_BLANKS}{sign}{_BLANKS})[\"'`]?"
            r"(?=[^\s\"'`]{0,99}[0-9])(?=[^\s\"'`]{0,99}[A-Za-z])(?P<value>[A-Za-z0-9+/=]{16,}+)(?![\w(-])",
            _SECRET_WORDS,
        )
        for sign in ("=", ":", " is ")
    ),
)  # fmt: skip
#: Words in the sample passwords and keys of manuals.
_SAMPLES = (
    "access|account|api|app|auth|change|client|db|default|demo|dummy|example|fake|here|key|me|my|needed|new|not"
    "|pass|passphrase|passwd|password|passwort|placeholder|private|provider|proxy|pwd|sample|secret|super|test|the|token"
    "|user|value|your"
)
#: A placeholder for a secret: a word, a variable, a call or an attribute, stars; or its kind of encoding.
_PLACEHOLDER = lazy(
    rf"[\"']?(?:<.*|\$.*|%.*|\{{.*|\[.*|.*\*\*\*.*|x{{3,}}|.*(?:\.\.\.|…).*|(?i:(?:[-_]?(?:{_SAMPLES}))+)[0-9]?"
    r"|(?i:(?:abc[d-z]*|123[4-90]*)+)|[a-z][a-z0-9]*(?:_[a-z0-9]+)*_(?:password|passwd|pass|pwd|secret|token|key)"
    r"|[a-z]+(?:-[a-z]+)*-(?:password|pass|secret|token|key)|[A-Za-z_]\w*(?:[.:]+\w+)+(?:\[.*)?|\w+\[.*|~?/.*"
    r"|_?[A-Z][A-Z_-]+|[a-z]+(?:_[a-z]+)+"
    r"|[0-9]+-[a-z]+|(?i:(?:base|sha|md5|bcrypt|scrypt|argon|pbkdf|hmac|aes)-?[0-9_]*[a-z-]*)"
    r"|(?i:your.*|.*example.*|(?:my|the)?[_-]?(?:pass(?:word|wd|phrase)?s?|pwd|secret|token|key)[0-9]?"
    r"|required|optional|none|null|true|false|string"
    r"|redacted|removed|hidden|empty|changeme|placeholder|unknown|missing|rotated|expired))[\"']?\.?"
)
_MARKUP = lazy(r"[`\u3000-\u303f\uff00-\uffef]")
_PREFIX = lazy(r"([A-Za-z][A-Za-z0-9]*)[_-]\Z")
#: Tokens that no maker issues: a character many times, or the words of a manual.
_MADE_UP = lazy(r"([A-Za-z0-9.*])\1{5}|EXAMPLE|(?i:your)[_-]")
_COMMON_MARKS = ("=", ":", "://", "--", "</", " is ", " ist ", " ")
_WORD_MARKS = ("PRIVATE KEY", "uthorization", "curl", "ogin", "earer ")
#: The marks that identify a form by themselves; the forms with other marks; and a word long enough for a token.
_MARKS = tuple(form.mark for form in FORMS if form.mark not in (*_COMMON_MARKS, *_WORD_MARKS))
_UNMARKED = tuple(form for form in FORMS if form.mark in (*_COMMON_MARKS, *_WORD_MARKS))
_LONG = lazy(r"[A-Za-z0-9_.-]{15}")
#: The fields that may be random, as ids and keys are; they are screened for known forms only.
_NAME_FIELDS = ("iri", "asserted_by", "asserted_in", "assigned_to", "idempotency_key")
#: The fields that other stages restrict to names from a list, moments, a number, the project or memories.
_CLOSED_FIELDS = {
    "type", "status", "severity", "confidence", "convention_scope", "enforcement_level", "source_type",
    "applies_to_project", *properties_of("moment", "memory"),
}  # fmt: skip
#: All other fields of an intent are screened as texts, or as lists of texts.
_OPEN_FIELDS = [name for name in INTENT_FIELDS if name not in _CLOSED_FIELDS and name not in _NAME_FIELDS]
_TEXT_FIELDS = tuple(name for name in _OPEN_FIELDS if name not in LIST_FIELDS)
_LIST_FIELDS = tuple(name for name in _OPEN_FIELDS if name in LIST_FIELDS)
_TEXTS, _LISTS = attrgetter(*_TEXT_FIELDS), attrgetter(*_LIST_FIELDS)
_NAMED = attrgetter(*_NAME_FIELDS)
_RUN = lazy(r"[A-Za-z0-9+_-]{32,}={0,2}")
_PLAIN = lazy(
    r"(?:0x)?[0-9a-fA-F-]+|(?:sha|md5|blake)[0-9a-z]*[-_=].*|[a-z0-9_=-]+|[A-Z0-9_=-]+"
    r"|pk_(?:live|test)_.*|Qm[1-9A-HJ-NP-Za-km-z]{44}",
    re.ASCII,
)
_WORDS = lazy(r"[A-Z]?[a-z]+|[A-Z]{2,}(?![a-z])")
#: Symbols of Rust (v0) and C++ (Itanium), in which the length precedes each name.
_MANGLED = lazy(r"_(?:R|ZN?)[A-Z](?=\w*[0-9][a-z_]{2})\w*", re.ASCII)
#: The text before an id or a public key, before a digest, and from the header of a public key or certificate on.
_ID = lazy(
    r"(?:\b|_)(?:[a-z]*[_-]?id|[a-z]+Id|kid)[\"']?\s*[:=]\s*[\"'`]?(?:[a-z0-9]+[._])*\Z|\bk[1-4]\.(?:public|[pls]id)\.\Z"
)
_DIGEST = lazy(
    r"(?:\b(?:h1|sha[0-9]+|md5):|\b(?:ssh|ecdsa|sk-ssh|sk-ecdsa)-[a-z0-9@.-]+ )[A-Za-z0-9+/=-]*\Z", re.IGNORECASE
)
_PUBLIC_KEY = lazy(r"-----BEGIN (?:[A-Z]+ )*(?:CERTIFICATE|PUBLIC KEY)[^-]*-----[A-Za-z0-9+/=\s\\]*\Z")


class SecretMatch(NamedTuple):
    """A likely secret: its kind, and the index of its first character in the text."""

    kind: str
    at: int


def find(text: str) -> SecretMatch | None:
    """Return the first likely secret of *text*, None if there is none.

    >>> find("the token is ghp_" + "a1B2" * 9)
    SecretMatch(kind='a GitHub token', at=13)
    """
    text = without_invisible(text)
    return _match_forms(text, _forms_in(text)) or (_random_in(text) if len(text) >= 32 else None)


def find_form(text: str) -> SecretMatch | None:
    """Return the first secret of a known form in *text*, which may itself be a random id."""
    text = without_invisible(text)
    return _match_forms(text, _forms_in(text))


def _random_in(text: str) -> SecretMatch | None:
    for match in _RUN.finditer(text):
        if _is_random(match[0]) and not _is_public_after(text[: match.start()]):
            return SecretMatch("a random token", match.start())
    return None


def _forms_in(text: str) -> list[SecretPattern]:
    """Return the forms whose mark, and one of whose words if any, *text* contains: for most texts none.

    The text is case-folded, not lowered: patterns that ignore case also match letters such as the long s.
    """
    marked = [
        form for form in (FORMS if _search_marks()(text.encode("utf-8", "replace")) else _UNMARKED) if form.mark in text
    ]
    if not marked:
        return marked
    folded = text.casefold()
    has_word = {words: any(map(folded.__contains__, words)) for words in {form.words for form in marked}}
    return [form for form in marked if not form.words or has_word[form.words]]


@cache
def _search_marks() -> Callable[[bytes], object]:
    """Return the search for one of _MARKS in a UTF-8 text: one pass, as a search for each takes four times as long."""
    search: Callable[[bytes], object] = compiled("|".join(map(re.escape, _MARKS))).search
    return search


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _match_forms(text: str, forms: Iterable[SecretPattern]) -> SecretMatch | None:
    for kind, mark, pattern, _ in forms:
        if mark in text:
            for match in _compiled(pattern).finditer(text):
                value = match.groupdict().get("value")
                if value is None and _MADE_UP.search(match[0]):
                    continue
                if value is None or not _is_placeholder(value, text[: match.start()]):
                    return SecretMatch(kind, match.start())
    return None


def _is_placeholder(value: str, before: str) -> bool:
    """Return whether *value*, which follows the text *before* and a name of secrets, is a placeholder for a secret.

    Punctuation and markup around it are ignored, and so is the rest of the query of an IRI. A password equal to its
    own prefix, as in `POSTGRES_PASSWORD=postgres`, is the default of a program.
    """
    if before.endswith(("?", "&")):
        value = value.partition("&")[0]
    stripped = _MARKUP.split(value.lstrip("\"'`*"))[0].strip("\"'*:,;.!)]}>\\") or value
    prefix = _PREFIX.search(before)
    is_own = prefix is not None and prefix[1].casefold() == stripped.casefold()
    return is_own or any(_PLACEHOLDER.fullmatch(each) for each in (value, stripped))


def _is_random(run: str) -> bool:
    """Return whether a run of characters looks random: no hash, name or word mixes so many classes of characters."""
    if _PLAIN.fullmatch(run) or sum(map(str.isdigit, run)) < 2:
        return False
    sorts = ["d" if sign.isdigit() else "u" if sign.isupper() else "l" if sign.islower() else "-" for sign in run]
    changes = sum(one != other for one, other in pairwise(sorts))
    total = len(run)
    entropy = -sum(n / total * math.log2(n / total) for n in Counter(run).values())
    is_mixed = changes * 5 >= total * 2 and entropy >= 4 and sorts.count("-") * 8 <= total
    return is_mixed and not _is_of_words(run) and not _is_encoded_text(run)


def _is_of_words(run: str) -> bool:
    """Return whether *run* is a name: mostly words, or the mangled name of a symbol of a program."""
    words = sum(len(word) for word in _WORDS.findall(run) if len(word) >= 4)
    return words * 2 >= len(run) or _MANGLED.fullmatch(run) is not None


def _is_encoded_text(run: str) -> bool:
    """Return whether *run* is text or a message in base64, and no key."""
    body = run.rstrip("=").replace("-", "+").replace("_", "/")
    data = b64decode(body[: len(body) // 4 * 4])
    return sum(32 <= byte < 127 or byte in b"\t\n\r" for byte in data) * 4 >= len(data) * 3


def _is_public_after(text: str) -> bool:
    """Return whether the text after *text* is public though random: in an IRI or a path, a digest or a public key."""
    word = text.rpartition(" ")[2].rpartition("\n")[2]
    return "/" in word or bool(_DIGEST.search(text[-1000:]) or _ID.search(text[-40:]) or _PUBLIC_KEY.search(text))


def screen(intent: MemoryUpdateIntent) -> Iterator[tuple[str, SecretMatch]]:
    """Yield each field of an intent with a likely secret, and the match."""
    texts = _TEXTS(intent)
    lists = [[*map(_entry_texts, entries)] if entries else () for entries in _LISTS(intent)]
    whole = "\n".join(filter(None, chain(texts, *lists)))
    if not whole.isascii():
        texts = tuple(text and without_invisible(text) for text in texts)
        lists = [[*map(without_invisible, filter(None, entries))] for entries in lists]
        whole = without_invisible(whole)
    forms = _forms_in(whole)
    has_random = any(_is_random(run) for word in whole.split() if len(word) >= 32 for run in _RUN.findall(word))
    if forms or has_random:
        for name, entries in zip((*_TEXT_FIELDS, *_LIST_FIELDS), (*((text,) for text in texts), *lists), strict=True):
            given = filter(None, entries)
            matches = (_match_forms(text, forms) or (_random_in(text) if has_random else None) for text in given)
            if (match := next(filter(None, matches), None)) is not None:
                yield name, match
    names = [text for text in _NAMED(intent) if text and not text.startswith(MINTED[0])]
    if _is_marked(" ".join(names)):
        for name in _NAME_FIELDS:
            text = getattr(intent, name)
            if text in names and (match := _match_forms(text, _forms_in(text))):
                yield name, match


@lru_cache(maxsize=256)  # agents and sessions repeat
def _is_marked(text: str) -> bool:
    """Return whether *text* has a word long enough for a token, and the mark of one."""
    return _LONG.search(text) is not None and _search_marks()(text.encode("utf-8", "replace")) is not None


def _entry_texts(entry: object) -> str:
    """Return the text of an entry: its own, or that of a normalised extra triple."""
    if isinstance(entry, (list, tuple)):
        return " ".join(map(_entry_texts, entry))
    if isinstance(entry, dict):
        entry = entry.get("@value") or entry.get("@id")
    return entry if isinstance(entry, str) else ""


#: Property of an entry or a turn -> its field.
_FIELD_OF = {"entryText": "content", "entryMetadata": "metadata", "entryId": "id", "agentId": "agent_id",
             "sessionId": "session_id", "promptText": "prompt", "answerText": "answer"}  # fmt: skip


def screen_rows(rows: Iterable[Triple]) -> Iterator[tuple[str, SecretMatch]]:
    """Yield the field or property of each triple with a likely secret, or "name" for its subject, and the match."""
    for subject, predicate, value in rows:
        if predicate == TYPE and (match := find_form(unquote(local_name(subject)))) is not None:
            yield "name", match
        match = find(value[1:-1] if is_iri(value) else parse_literal(value).text)
        if match is not None:
            name = local_name(predicate)
            yield _FIELD_OF.get(name, name), match


def refusals(matches: Iterable[tuple[str, SecretMatch]]) -> list[Violation]:
    """Return the violations for likely secrets: with the field and the kind, never the secret."""
    return [
        Violation("policy_denied", f"{name} seems to contain {kind}, at character {at}", field=name)
        for name, (kind, at) in matches
    ]
