"""The names and folders of decision records, and the reasons why other files are not records."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from itertools import pairwise
from posixpath import basename, dirname, splitext

from jidomem.base.regex import lazy

MARKDOWN = (".md", ".mdx", ".markdown")
_NOT_READ: Mapping[str, str] = {
    ".adoc": "AsciiDoc",
    ".asciidoc": "AsciiDoc",
    ".rst": "reStructuredText",
    ".org": "Org",
    ".textile": "Textile",
    ".txt": "plain text",
    ".html": "HTML",
}
#: Names of folders, in lower case and without dots, dashes and underscores.
_OF_RECORDS = lazy(
    r"m?adrs?|adl|m?adr(?:docs?|records?|logs?)|(?:arch|architect\w*|design|tech|technical|technology|engineering"
    r"|software|system|project|product|team|key|major|any)?decision(?:s|records?|logs?)?"
)
_OF_REQUESTS = lazy(r"rfcs?")
_OF_PROPOSALS = lazy(r"(?:design|enhancement)?proposals?|designdocs?|enhancements|keps")
_OF_PAGES = lazy(r"docs?|documentation|arch|architecture\w*|architectural\w*|designs?|handbook|wiki|specs?")
#: The name of a record begins with a number or date, with a series and number (ADR-007, rfc_12), or with `adr-`.
_SERIES = r"(?:[a-z]+[-_])??(?:m?adr|rfc|dr|tdr|decision(?:[-_]record)?)"
_NUMBER = lazy(rf"(?:{_SERIES}[-_. ]*)?(\d{{1,8}})(?=$|[-_. :,–—][^\d]|[-_. ]\d+\D)|{_SERIES}[-_. ]*\d", re.IGNORECASE)
_DATE = lazy(r"(?:19|20)\d\d([-_.]?)(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12]\d|3[01])(?!\d)")
_IN_SERIES = lazy(r"[A-Za-z]{2,8}[-_]?\d{1,5}(?=$|[-_. ])")
_LONG_NUMBER = lazy(r"\d{3,8}(?=$|[-_. ])")
_ADR = lazy(r"(?:[a-z]+[-_])?adr[-_. ]*\d|adr[-_. ]\w|\d+[-_.]adr\b|.*\.adr$", re.IGNORECASE)
_NUMBERED_NAME = lazy(r"(?:(?:adr|rfc)[-_. #]*|[a-z]{2,8}[-_])?(\d{1,8})(?!\d)", re.IGNORECASE)
_FRONT_PAGE = lazy(r"_?(?:read[-_]?me|index|adr|decision|record)", re.IGNORECASE)
_INDEX = lazy(
    r"(?:\d+[-_. ]*|_)?(?:read[-_]?me|index|toc|table[-_]of[-_]contents|sidebar)"
    r"|_?category_?|summary|about|contributing|changelog|overview|glossary|licen[cs]e|security|code[-_]of[-_]conduct"
    r"|(?:[a-z]+[-_ ])?(?:decisions?|adrs?)[-_ ]?(?:records?|logs?|index|list|overview)?",
    re.IGNORECASE,
)
#: Words of the name of a template, beside numbers; a record about templates has other words.
_TEMPLATE_WORDS = frozenset(
    ("adr", "madr", "rfc", "proposal", "decision", "record", "architecture", "architectural", "template", "templates")
) | {
    "bare",
    "minimal",
    "short",
    "long",
    "simple",
    "full",
    "nygard",
    "yyyymmdd",
    "yyyy",
    "mm",
    "dd",
    "nnnn",
    "xxxx",
    "000x",
}
#: Folders of samples or of third parties.
_SAMPLES = lazy(
    r"(?:.*[-_.])?(?:tests?|fixtures?|examples?|samples?|templates?|mocks?|testdata)_*|__tests?__|__fixtures__|test[-_]data"
    r"|node_modules|vendor|third[-_]party|site-packages",
    re.IGNORECASE,
)
_LOCALES = frozenset(("i18n", "l10n", "locale", "locales", "translations"))
_LANGUAGE = (
    r"(?:ar|bg|bn|ca|cs|da|de|el|en|es|et|fa|fi|fr|he|hi|hr|hu|id|it|ja|ko|lt|lv|nb|nl|no|pl|pt|ro|ru|sk|sl|sr|sv"
    r"|th|tr|uk|vi|zh)(?:[-_][A-Za-z]{2,4})?"
)
_LANGUAGE_FOLDER = lazy(_LANGUAGE, re.IGNORECASE)
_LANGUAGE_AT_END = lazy(rf"(.+)[._]{_LANGUAGE}", re.IGNORECASE)
_VERSIONED = lazy(r"(?:^|/)\w*versioned_docs/[^/]+/")
_DECISION = lazy(r"(?:[\d.]+ )?(?:the |our |final )?decisions?(?: (?:outcome|made|taken))?:?", re.IGNORECASE)
_BESIDE = lazy(r"(?:[\d.]+ )?(?:status|context|consequences?|problem statement|considered options)\b.*", re.IGNORECASE)
_LONGEST_HEADING = 100
_REQUEST = lazy(r"^\W*rfc[ _-]?(?:pr|pull request|number|id)\b\W*:", re.IGNORECASE | re.MULTILINE)


#: The most files of one name that are compared.
_ALIKE = 50
#: The reasons for skipping a file that is obviously no record.
TEMPLATE, INDEX = "a template", "an index, not a record"


class RecordLikelihood(Enum):
    """The chance that a file contains a decision record, by its path."""

    CERTAIN = "place and name"
    LIKELY = "place or name"
    POSSIBLE = "content only"
    NONE = "looks like a record, but is not one"


@dataclass(slots=True)
class Survey:
    """The files of a repository that may contain decision records, by path; `passed` are (path, reason)."""

    records: list[str] = field(default_factory=list)
    possible: list[str] = field(default_factory=list)
    passed: list[tuple[str, str]] = field(default_factory=list)


def survey(paths: Iterable[str], folders: Iterable[str] = ()) -> Survey:
    """Return the *paths* that may contain decision records; *folders* are known to contain them.

    A record with a folder of its own is the front page of that folder.

    >>> survey(["docs/adr/0001-use-a-queue.md", "docs/adr/template.md"]).passed
    [('docs/adr/template.md', 'a template')]
    """
    judged, result, folders = dict[str, RecordLikelihood](), Survey(), tuple(folders)
    for path in paths:
        chance, reason = judge(path, folders)
        if chance is RecordLikelihood.NONE:
            result.passed.append((path, reason))
        elif chance is not None:
            judged[path] = chance
    certain = sorted(path for path, chance in judged.items() if chance is not RecordLikelihood.POSSIBLE)
    beside, alike = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for path in certain:
        beside[dirname(path)].append(path)
        alike[basename(_without_language(path))].append(path)
    fronts = {dirname(path): path for path in certain if _is_own_folder(path)}
    for path in sorted(judged):
        is_certain = judged[path] is not RecordLikelihood.POSSIBLE
        whole = fronts.get(dirname(path)) or _file_of_folder(path, beside)
        if is_certain and whole not in (None, path):
            result.passed.append((path, f"a part of {whole}"))
        elif is_certain and (other := _original(path, alike[basename(_without_language(path))][:_ALIKE])):
            result.passed.append((path, other))
        else:
            (result.records if is_certain else result.possible).append(path)
    result.passed.sort()
    return result


def judge(path: str, folders: Iterable[str] = ()) -> tuple[RecordLikelihood | None, str]:
    """Return the chance that the file at *path* contains a decision record, and the reason against it; None if
    unlikely.

    >>> judge("docs/architecture/adr-007-use-a-queue.md")[0], judge("src/queue.md")[0]
    (<RecordLikelihood.LIKELY: 'place or name'>, None)
    """
    (stem, ending), folder = splitext(basename(path)), dirname(path)
    ending, names = ending.lower(), [re.sub(r"[-_. ]", "", part).lower() for part in folder.split("/")]
    is_named = any(folder == each or folder.startswith(f"{each}/") for each in folders)
    of_records = is_named or any(map(_OF_RECORDS.fullmatch, names))
    of_requests = any(map(_OF_REQUESTS.fullmatch, names)) or (names[0] == "text" and bool(_LONG_NUMBER.match(stem)))
    if ending not in MARKDOWN and ending not in _NOT_READ:
        return None, ""
    if not (of_records or of_requests or _ADR.match(stem)):
        is_possible = ending in MARKDOWN and _may_hold(stem, names) and not _is_template(stem)
        return (RecordLikelihood.POSSIBLE if is_possible else None), ""
    if _is_template(stem):
        return RecordLikelihood.NONE, TEMPLATE
    if of_records and ending in MARKDOWN and _is_own_folder(path):
        return RecordLikelihood.CERTAIN, ""
    is_called = is_record_name(path) or (of_records and bool(_IN_SERIES.match(stem)))
    if ending not in MARKDOWN:
        is_text = ending in (".txt", ".html") and not of_records
        return (
            (RecordLikelihood.NONE, f"{_NOT_READ[ending]} is not read, only Markdown")
            if is_called and not is_text
            else (None, "")
        )
    if _INDEX.fullmatch(stem):
        return RecordLikelihood.NONE, INDEX
    return (RecordLikelihood.CERTAIN if is_called and (of_records or of_requests) else RecordLikelihood.LIKELY), ""


def is_record_name(path: str) -> bool:
    """Return whether the name of a file is that of a record: a number, a date, or a series and a number.

    >>> is_record_name("0007-use-a-queue.md"), is_record_name("ADR-7.md"), is_record_name("queue.md")
    (True, True, False)
    """
    stem = splitext(basename(path))[0]
    return bool(_NUMBER.match(stem) or _DATE.match(stem) or _ADR.match(stem))


def is_request(path: str) -> bool:
    """Return whether a file is a request for comments by its name or place, and so not yet a decision."""
    names = [re.sub(r"[-_. ]", "", part).lower() for part in path.split("/")]
    return any(map(_OF_REQUESTS.fullmatch, names[:-1])) or names[0] == "text" or names[-1].startswith("rfc")


def is_proposal(path: str) -> bool:
    """Return whether a file is in a folder of design proposals."""
    return any(_OF_PROPOSALS.fullmatch(re.sub(r"[-_. ]", "", part).lower()) for part in dirname(path).split("/"))


def record_name(path: str) -> str:
    """Return the name of a record without folders and extension; for a front page, the name of its folder.

    >>> record_name("docs/adr/0007-use-a-queue.md"), record_name("adr/0008-use-a-log/README.md")
    ('0007-use-a-queue', '0008-use-a-log')
    """
    name, ending = splitext(basename(path))
    name = name if ending.lower() in MARKDOWN else basename(path)
    return basename(dirname(path)) if _is_own_folder(path) else name


def number_of_name(name: str) -> int | None:
    """Return the number at the beginning of the name of a record; a date is not a number.

    >>> number_of_name("rfc-12-use-a-queue"), number_of_name("0016-names"), number_of_name("20200924-use-a-queue")
    (12, 16, None)
    """
    match = None if _DATE.match(name) else _NUMBERED_NAME.match(name)
    return int(match[1]) if match else None


def folder_of(path: str) -> str:
    """Return the folder that lists a record: its own folder, or the one above if the record has a folder of its own."""
    return dirname(dirname(path)) if _is_own_folder(path) else dirname(path)


def reads_like_record(text: str) -> bool:
    r"""Return whether *text* has the headings of a decision record, or the head of a request for comments.

    >>> reads_like_record("# Queue\n## Status\nAccepted\n## Decision\nWe do.\n")
    True
    """
    headings = [*_headings(text)]
    decides = any(map(_DECISION.fullmatch, headings))
    return bool((decides and any(map(_BESIDE.fullmatch, headings))) or _REQUEST.search(text[:2000]))


def _headings(text: str) -> Iterator[str]:
    for line, below in pairwise([*text.split("\n"), ""]):
        words, rule = line.strip(), below.strip()
        is_bold = len(words) > 4 and words[:2] == words.rstrip(":")[-2:] and words[:2] in ("**", "__")
        is_heading = words.startswith("#") or is_bold or (len(rule) > 1 and rule in (len(rule) * "=", len(rule) * "-"))
        if is_heading and len(words) <= _LONGEST_HEADING:
            yield words.strip("#*_: \t")


def sample_folder(folder: str) -> str | None:
    """Return the part of *folder* that contains samples or third-party files, or None.

    >>> sample_folder("web/tests/adr"), sample_folder("adr/2022-03-02-performance-tests")
    ('web/tests', None)
    """
    parts = folder.split("/")
    named = (n for n, part in enumerate(parts) if _SAMPLES.fullmatch(part) and not _is_called(part))
    return next(("/".join(parts[: n + 1]) for n in named), None)


def _is_template(stem: str) -> bool:
    words = [word for word in re.split(r"[-_. ]+", stem.lower()) if not word.isdigit()]
    if words == ["empty", "adr"]:
        return True
    is_numbered = bool(re.search(r"[1-9]", stem))
    return not {"template", "templates"}.isdisjoint(words) and (not is_numbered or _TEMPLATE_WORDS.issuperset(words))


def _may_hold(stem: str, names: list[str]) -> bool:
    """Return whether a page is worth reading: its name has a long number or a date, or its folder is about design."""
    is_dated = bool(_LONG_NUMBER.match(stem) or _DATE.match(stem))
    if any("architect" in name or "design" in name or "decision" in name for name in names):
        return True
    return any(map(_OF_PROPOSALS.fullmatch, names)) or (
        is_dated and (names == [""] or any(map(_OF_PAGES.fullmatch, names)))
    )


def _is_own_folder(path: str) -> bool:
    folder = basename(dirname(path))
    return _is_called(folder) and bool(_FRONT_PAGE.fullmatch(splitext(basename(path))[0]))


def _is_called(folder: str) -> bool:
    is_numbered = _DATE.match(folder) or _LONG_NUMBER.match(folder) or _ADR.match(folder)
    return bool(is_numbered and re.search(r"[-_][A-Za-z]", folder))


def _file_of_folder(path: str, beside: Mapping[str, Sequence[str]]) -> str | None:
    """Return the record beside the folder of *path*, if the folder has its name or number."""
    folder = dirname(path)
    while folder:
        own, above = basename(folder), dirname(folder)
        for record in beside.get(above, ()) if is_record_name(own) else ():
            stem = splitext(basename(record))[0]
            if stem == own or (own.isdigit() and stem.startswith(f"{own}-")):
                return record
        folder = above
    return None


def _original(path: str, alike: Sequence[str]) -> str | None:
    """Return the reason why the record at *path* is a copy of one of *alike*, or None."""
    if _VERSIONED.search(path):
        same = [each for each in alike if basename(each) == basename(path) and not _VERSIONED.search(each)]
        return f"an older version of {min(same)}" if same else None
    if not _names_language(path):
        return None
    own, is_apart = _without_language(path), not _LOCALES.isdisjoint(path.split("/"))
    same = [
        each
        for each in alike
        if _without_language(each) == own
        or (is_apart and basename(each) == basename(own) and _LOCALES.isdisjoint(each.split("/")))
    ]
    first = min([*same, path], key=lambda each: (_names_language(each), "en" not in re.split(r"[/._]", each), each))
    return None if first == path else f"a translation of {first}"


def _names_language(path: str) -> bool:
    return _without_language(path) != path or not _LOCALES.isdisjoint(path.split("/"))


@lru_cache(maxsize=4096)
def _without_language(path: str) -> str:
    parts = path.split("/")
    stem, ending = splitext(parts[-1])
    at_end = _LANGUAGE_AT_END.fullmatch(stem)
    name = f"{at_end[1]}{ending}" if at_end else parts[-1]
    return "/".join([*(part for part in parts[:-1] if not _LANGUAGE_FOLDER.fullmatch(part)), name])
