"""The analysis of an English question: the kind of answer it needs, and the dates that a text names. Pure.

Dates are read as written, and words such as "yesterday" count from the day of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache

from jidomem.base.regex import lazy
from jidomem.base.words import TELL_LITTLE, names, words_of
from jidomem.base.words import words as words_in

#: The characters of a text that are examined; speakers state their subject at the beginning.
BEGINNING = 600
_FEW, _OF_YEAR = 16, 4
#: Names of machines as speakers.
ANSWERING = frozenset(("assistant", "ai", "agent", "bot", "chatbot", "model"))
#: Names of roles, not of people.
ROLES = frozenset(("user", "human", "person", "customer", "system", "tool")) | ANSWERING
_NUMBER_WORDS = "one two three four five six seven eight nine ten couple few several once twice both"
_TIME_WORDS = (
    "yesterday today tonight tomorrow last next ago week weekend month year day morning evening night since monday"
    " tuesday wednesday thursday friday saturday sunday january february march april june july august september october"
    " november december"
)

#: Irregular verbs in the past, and the letters of a word that is too short for a regular one.
_PAST = frozenset((
    *("was", "were", "had", "did", "went", "got", "made", "took", "saw", "came", "found", "said", "told", "met"),
    *("bought", "gave", "felt", "thought", "knew", "won", "lost", "left", "kept", "wrote", "ran", "ate", "spent"),
    *("began", "heard", "brought", "taught", "built", "chose", "drove", "fell", "grew", "held", "led", "sent"),
    *("sold", "spoke"),
))  # fmt: skip
_MAX_SHORT_WORD_CHARS = 3

#: Words of a question that ask for whatever there is, without a subject: "what happened", "what was decided".
_GENERAL = (
    "happen happens happened happening go goes going went change changes changed work works worked working new news"
    " make made decide decides decided decision decisions agree agreed record records recorded write wrote written"
    " learn learned learnt memory memories note notes anything everything something"
)
#: Words of a question that ask for what somebody said.
_SAYING = (
    "ask asks asked asking say says said saying tell tells told telling want wants wanted talk talks talked speak"
    " speaks spoke question questions answer answers answered mention mentions mentioned"
)


_ASKS_TIME = re.compile(r"\bwhen\b|\bhow long\b|\b(?:what|which) (?:date|day|month|year|time)\b"
                        r"|\bhow many (?:days|weeks|months|years)\b", re.IGNORECASE)  # fmt: skip
_ASKS_NUMBER = re.compile(r"\bhow (?:many|much|often|long|old)\b|\bnumber of\b", re.IGNORECASE)
_ASKS_ANSWERER = re.compile(
    r"\b(?:did|have|do|would|were) you\b|\byour (?:advice|answer|recommend|suggest|explanation)"
    r"|\byou(?:'ve|'d)? (?:recommend|suggest|advise|said|say|told|explain|propos|mention|give|gave|provide|list)",
    re.IGNORECASE,
)
_ASKS_DECISION = re.compile(
    r"\b(?:we|they|you|I) (?:decide|agree|choose|pick)\b|\b(?:was|were|been) decided\b|\bdecisions?\b", re.IGNORECASE
)
_ASKS_INSTANCE = re.compile(
    r"\b(?:which|what)\b((?: [\w-]+){0,4}?) (?:(?:do|does|should|can|may|must|are) (?:we|I|you|they|one)"
    r"|(?:is|are) used)\b",
    re.IGNORECASE,
)
_ASKS_CHOICE = re.compile(
    rf"{_ASKS_INSTANCE.pattern}|\b(?:should|may|must|can) (?:I|we|my|our|one)\b|\bhow (?:do|should) (?:I|we)\b",
    re.IGNORECASE,
)
_ASKS_HELP = re.compile(
    r"\bhow (?:do|can|should|would) (?:I|we|you)\b|\b(?:can|could|would) you\b|\bshould (?:I|we)\b"
    r"|\bwhat(?:'s| is| are)? the (?:best|different)\b"
    r"|\b(?:show|help|tell|explain|recommend|suggest)(?: to)? (?:me|us)\b",
    re.IGNORECASE,
)
_ASKS_PAST = re.compile(
    r"\b(?:did|have|had|was|were) (?:I|we|you)\b|\b(?:I|we)(?:'ve| have| had| was| were| did| said| told| ask\w*"
    r"| brought| mention\w*| discuss\w*)\b|\b(?:my|our) (?:questions?|conversations?|sessions?|chats?)\b",
    re.IGNORECASE,
)
_INSTRUCTION = re.compile(r"\W*(?:please )?(?:always|never|from now on|whenever|(?:when|if) I ask)\b", re.IGNORECASE)
_TIME, _NUMBER, _ITSELF = (frozenset(words.split()) for words in (_TIME_WORDS, _NUMBER_WORDS, "i me my we our"))
_NO_SUBJECT = TELL_LITTLE | {*_GENERAL.split()}
_SPEAKING = frozenset(_SAYING.split())
#: Words of a question that asks for a time alone; one with "should" asks for advice.
_OF_TIME_ALONE = frozenset(("since", "until", "till", "between", "list", "show", "day", "said"))
WITHOUT_SUBJECT = (_NO_SUBJECT | _SPEAKING | _OF_TIME_ALONE) - {"should"}
_NAME, _WORD, _WORDS, _DIGIT = (re.compile(each) for each in (r"\b([^\W\d_]+)(?:['’]s)?\b", r"\w", r"\w+", r"\d"))


#: A name with letters and digits, with an underscore or two separators, or a number of four digits or more.
_CODE = re.compile(
    r"(?=.*\d)(?=.*[^\W\d_]).+|.*[^\W_]_[^\W_].*|.*/.*\.\w+|(?:[^\W_]+[./:\\]){2,}[^\W_]+"
    r"|(?!(?:19|20)\d\d$)\d{4,}"
)
#: Numbers with a unit, an ending or a noun, dates and times, which identify nothing.
_NO_CODE = re.compile(
    r"\d+-[^\W\d_]+|\d+(?:st|nd|rd|th|s|[ap]m|[kKmMgGtT][bB]?|ms|min|h|x|px|km|kg|cm|mm|[€$%])"
    r"|(?:19|20)\d\d-\d\d-\d\d.*|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{1,2}(?::\d\d){1,2}(?:[ap]m)?"
)

#: Abbreviations of software work whose vector in the default embedder is not near that of the words that they stand for
#: (a cosine below 0.5).
_ABBREVIATIONS = (
    "a11y=accessibility; adr=architecture decision record; cdn=content delivery network; ci=continuous integration; "
    "cli=command line; crm=customer relationship management; deps=dependencies; e2e=end-to-end; eol=end of life; "
    "erp=enterprise resource planning; etl=extract transform load; gc=garbage collection; "
    "gdpr=data protection regulation; iac=infrastructure as code; ide=development environment; "
    "infra=infrastructure; isr=interrupt service routine; jwt=json web token; k8s=kubernetes; "
    "kpi=key performance indicator; l10n=localization; llm=large language model; lts=long-term support; "
    "mcu=microcontroller; mfa=multi-factor authentication; ml=machine learning; mq=message queue; "
    "msrv=minimum rust version; mvp=minimum viable product; npc=non-player character; orm=object-relational mapper; "
    "ota=over-the-air update; pii=personal data; poc=proof of concept; pr=pull request; "
    "rbac=role-based access control; rpc=remote procedure call; rtos=real-time operating system; "
    "sbom=software bill of materials; sdk=software development kit; sla=service level agreement; "
    "slo=service level objective; sso=single sign-on; ssr=server-side rendering; tdd=test-driven development; "
    "ttl=time to live; tz=time zone; ux=user experience; vat=value added tax; vcs=version control; "
    "wal=write-ahead log; wdt=watchdog timer"
)
_LONG_FORMS = dict(each.split("=") for each in _ABBREVIATIONS.split("; "))
_OTHER_FORM = _LONG_FORMS | {words: short.upper() for short, words in _LONG_FORMS.items() if " " in words}
_FORM = lazy(rf"(?i)(?<![\w./-])({'|'.join(_OTHER_FORM)})(s?)(?![\w/-]|\.\w)")

_ASKS = {"time": _ASKS_TIME, "number": _ASKS_NUMBER, "answerer": _ASKS_ANSWERER, "decision": _ASKS_DECISION,
         "choice": _ASKS_CHOICE}  # fmt: skip


def strip_names(question: str, names: Iterable[str]) -> str:
    """Return *question* without the *names* of people, unless nothing else is left.

    >>> strip_names("When did Ana's brother move?", ["ana lopez", "user"])
    'When did brother move?'
    """
    people = {part.casefold() for name in names if name.casefold() not in ROLES for part in name.split()}

    def without_name(word: re.Match[str]) -> str:
        return " " if word[1][0].isupper() and word[1].casefold() in people else word[0]

    left = _NAME.sub(without_name, question)
    return " ".join(left.split()) if _WORD.search(left) else question


def spelled_out(question: str) -> str:
    """Return *question* with the words that an abbreviation stands for after it, or the abbreviation after the words.

    >>> spelled_out("How large may a PR be?"), spelled_out("minimum Rust version")
    ('How large may a PR (pull request) be?', 'minimum Rust version (MSRV)')
    """

    def with_other_form(match: re.Match[str]) -> str:
        return f"{match[0]} ({_OTHER_FORM[match[1].lower()]}{match[2]})"

    return _FORM.sub(with_other_form, question)


def asks_for_speaker(words: Iterable[str], speakers: Iterable[str]) -> bool:
    """Return whether the *words* of a question name one of the *speakers*, and no subject.

    >>> asks_for_speaker(["what", "did", "maria", "ask"], ["maria"]), asks_for_speaker(["maria", "export"], ["maria"])
    (True, False)
    """
    names = {part.casefold() for name in speakers for part in name.split()}
    others = {word for word in words if word not in names}
    return bool(names) and others <= _NO_SUBJECT | _SPEAKING


def answer_kinds(question: str) -> frozenset[str]:
    """Return the kinds of answer that *question* needs: a `time`, a `number`, a `decision`, a `choice` of what to use
    or do, an answer of the `answerer`, the machine, or `help`, which is not about what was said before.

    >>> sorted(answer_kinds("When did we move, and how many of us?")), sorted(answer_kinds("Which database do we use?"))
    (['number', 'time'], ['choice'])
    """
    kinds = {kind for kind, pattern in _ASKS.items() if pattern.search(question)}
    is_help = _ASKS_HELP.search(question) and not _ASKS_PAST.search(question)
    return frozenset(kinds | {"help"} if is_help else kinds)


def class_words(question: str) -> frozenset[str]:
    """Return the words of the class of which *question* asks for the instance that is used.

    >>> class_words("Which database do we use for orders?")
    frozenset({'database'})
    """
    found = _ASKS_INSTANCE.search(question)
    return frozenset(words_in(found[1]) if found else ())


def contains_cue(kind: str, text: str) -> bool:
    """Return whether the beginning of *text* contains a `time` or a `number`.

    >>> contains_cue("time", "We moved last week."), contains_cue("number", "We moved.")
    (True, False)
    """
    words = _first_words(text)
    if kind == "time":
        return not _TIME.isdisjoint(words) or any(len(word) == _OF_YEAR and word.isdecimal() for word in words)
    return not _NUMBER.isdisjoint(words) or _DIGIT.search(text, 0, BEGINNING) is not None


@lru_cache(_FEW)
def _first_words(text: str) -> Sequence[str]:
    """Return the words of the beginning of *text* in small letters; the features of a text are computed together."""
    return tuple(_WORDS.findall(text[:BEGINNING].lower()))


def is_subject(word: str) -> bool:
    """Return whether a *word* of a question that names a day gives its subject: it is no word of time, no number and
    not general.

    >>> [word for word in ("what", "happened", "in", "paris", "yesterday", "2026") if is_subject(word)]
    ['paris']
    """
    return not (word.isdigit() or word in _NO_SUBJECT or contains_cue("time", word))


def identifiers(question: str) -> list[str]:
    """Return the codes, versions, hosts and paths in *question*, and its numbers of four digits that are no years, as
    words of `jidomem.base.words`.

    >>> identifiers("Is INV-2291, on db-7.example.com since 2026, in v2.3.1 or number 88213 at 10:30?")
    ['inv_2291', 'db_7_example_com', 'v_2_3_1', '88213']
    """
    found = [next(words_of(name), "") for name in names(question)
             if _CODE.fullmatch(name) and not _NO_CODE.fullmatch(name)]  # fmt: skip
    return [word for word in dict.fromkeys(found) if word]


def is_of_itself(text: str) -> bool:
    """Return whether the beginning of *text* is in the first person.

    >>> is_of_itself("I moved."), is_of_itself("You moved.")
    (True, False)
    """
    return not _ITSELF.isdisjoint(_first_words(text))


def is_instruction(text: str) -> bool:
    """Return whether *text* begins as an instruction for the future.

    >>> is_instruction("Always give units."), is_instruction("I always forget units.")
    (True, False)
    """
    return _INSTRUCTION.match(text) is not None


def question_share(text: str) -> float:
    """Return the share of questions in the beginning of *text*, by characters.

    >>> question_share("I moved. Did you?"), question_share("I moved.")
    (0.5294117647058824, 0.0)
    """
    if "?" not in text:
        return 0.0
    *parts, _ = (beginning := text[:BEGINNING]).split("?")
    return sum(len(part) - max(part.rfind("."), part.rfind("!")) for part in parts) / len(beginning)


def past_verbs(text: str) -> int:
    """Return the number of verbs in the past in the beginning of *text*: regular ones and different irregular ones.

    >>> past_verbs("I went there and liked it."), past_verbs("I go there, and need it.")
    (2, 0)
    """
    words = _first_words(text)
    regular = [word for word in words if word[-2:] == "ed" and len(word) > _MAX_SHORT_WORD_CHARS and word[-3] != "e"]
    return len(regular) + len(_PAST.intersection(words))


_MONTHS: tuple[str, ...] = ("january", "february", "march", "april", "may", "june")
_MONTHS += ("july", "august", "september", "october", "november", "december")
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "couple": 2, "three": 3, "few": 3, "four": 4, "five": 5, "six": 6}
_NUMBERS |= {"seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12}
_MONTH = "(?P<month>" + "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS) + r"|sept)\b\.?"
_DAY, _YEAR = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?", r"(?P<year>(?:19|20)\d\d)"
_COUNT = "(?P<count>" + "|".join(_NUMBERS) + r"|\d{1,3})"
_UNIT = "(?P<unit>day|week|weekend|month|year)s?"


@dataclass(frozen=True, slots=True, order=True)
class DateRange:
    """The days from *first* to *last*, inclusive."""

    first: date
    last: date

    def __len__(self) -> int:
        return (self.last - self.first).days + 1

    def shared(self, other: DateRange) -> int:
        """Return the number of common days."""
        return max(0, (min(self.last, other.last) - max(self.first, other.first)).days + 1)

    def days_between(self, other: DateRange) -> int:
        """Return the days between the two; 0 if they share one."""
        return max(0, (other.first - self.last).days, (self.first - other.last).days)

    def days_from(self, day: date) -> int:
        """Return the days from the first to an earlier *day* (negative) or from the last to a later one; 0 inside."""
        return (day - self.first).days if day < self.first else max(0, (day - self.last).days)


def spoken_of(text: str, day_of_text: date | None = None, years: Iterable[int] = ()) -> list[DateRange]:
    """Return the days that *text* names; words such as "yesterday" count from *day_of_text* and are skipped without it.

    A month or day without a year is taken in each of *years*, else in the year nearest to *day_of_text*.

    >>> [span] = spoken_of("We moved last week.", date(2026, 11, 18))
    >>> span.first.isoformat(), span.last.isoformat()
    ('2026-11-09', '2026-11-15')
    """
    return _parse(text, day_of_text, tuple(years), _READERS)[0] if _MAY_TELL.search(text) else []


def requested_days(question: str, day: date, years: Iterable[int]) -> tuple[list[DateRange], frozenset[str]]:
    """Return the days that *question*, asked on *day*, asks for, and its words that give a subject or a speaker.

    There are no days if it has no other word than these. "On Saturday" is the last one before *day*, "on the 3rd" until
    then; "since", "before", "between ... and" and the like are ranges. A day without a year is taken in each of
    *years*, the latest first, a range in the last until *day*.

    >>> [days], words = requested_days("What did Ana say on Saturday?", date(2026, 11, 18), [2026])
    >>> days.first.isoformat(), sorted(words)
    ('2026-11-14', ['ana'])
    """
    text = _TWO_DAYS.sub(r"between \g<one> \g<month> \g<year> and \g<two> \g<month> \g<year>", question)
    spans, taken = _parse(text, day, tuple(years), _QUESTION_READERS)
    words = _WORDS.findall("".join(" " if is_taken else letter for letter, is_taken in zip(text, taken, strict=True)))
    limits = [limit for limit in _LIMIT.finditer(text) if any(taken[limit.end() : limit.end() + 1])]
    if limits and spans:
        spans = [_range(limits[0][1].lower(), sorted(spans), day)]
    subject = frozenset(word for word in map(str.lower, words) if word not in WITHOUT_SUBJECT)
    return (sorted(spans, key=lambda each: (-each.first.year, each)) if words else []), subject


def _range(limit: str, spans: Sequence[DateRange], day: date) -> DateRange:
    """Return the range that a word such as "since" before the first of *spans* means; the last that begins by *day*."""
    first, last = spans[0], spans[-1]
    if limit in ("between", "from") and len(spans) > 1:
        past = [pair for pair in zip(spans[::2], spans[1::2], strict=False) if pair[0].first <= day]
        first, last = past[-1] if past else (first, last)
        return DateRange(first.first, last.last)
    meant = [each for each in spans if each.first <= day][-1:] or [first]
    if limit in ("before", "until", "till"):
        return DateRange(date.min, meant[0].first - timedelta(days=1) if limit == "before" else meant[0].last)
    begin = meant[0].last + timedelta(days=1) if limit == "after" else meant[0].first
    return DateRange(begin, max(begin, day))


def _parse(
    text: str, day_of_text: date | None, years: tuple[int, ...], readers: Iterable[tuple[re.Pattern[str], _Reader]]
) -> tuple[list[DateRange], bytearray]:
    """Return the days that *readers* find in *text*, and for each of its characters whether it names one."""
    spans: dict[DateRange, None] = {}
    taken = bytearray(len(text))
    for pattern, read in readers:
        for place in pattern.finditer(text):
            if any(taken[place.start() : place.end()]):
                continue
            days = list(_checked(read, place, day_of_text, years))
            if days:
                taken[place.start() : place.end()] = b"\1" * len(place[0])
                spans.update(dict.fromkeys(days))
    return list(spans), taken


_Reader = Callable[["re.Match[str]", "date | None", "tuple[int, ...]"], Iterable[DateRange]]


def _checked(
    read: _Reader, place: re.Match[str], day_of_text: date | None, years: tuple[int, ...]
) -> Iterator[DateRange]:
    try:
        yield from read(place, day_of_text, years)
    except (ValueError, OverflowError):
        return


def _written(place: re.Match[str], day_of_text: date | None, years: tuple[int, ...]) -> Iterator[DateRange]:
    parts = place.groupdict()
    month = _month(parts["month"])
    for year in _years(parts.get("year"), month, day_of_text, years):
        yield _days(year, month, int(parts["day"]) if parts.get("day") else None)


def _numeric(place: re.Match[str], day_of_text: date | None, years: tuple[int, ...]) -> Iterator[DateRange]:
    """Yield a day written in numbers: day before month, unless there is no such month."""
    one, two, year = int(place["one"]), int(place["two"]), int(place["year"])
    yield _days(year, two, one) if two <= 12 else _days(year, one, two)


def _whole_year(place: re.Match[str], day_of_text: date | None, years: tuple[int, ...]) -> Iterator[DateRange]:
    year = int(place["year"])
    yield DateRange(date(year, 1, 1), date(year, 12, 31))


def _season(place: re.Match[str], day_of_text: date | None, years: tuple[int, ...]) -> Iterator[DateRange]:
    month = _SEASONS[place["season"].lower()]
    for year in _years(place["year"], month, day_of_text, years):
        last = _days(year + (month == 12), (month + 1) % 12 + 1, None).last
        yield DateRange(date(year, month, 1), last)


def _day_word(place: re.Match[str], day_of_text: date | None, years: tuple[int, ...]) -> Iterator[DateRange]:
    if day_of_text is not None:
        word = place[0].lower()
        day = day_of_text + timedelta(days=-1 if word in ("yesterday", "last night") else word == "tomorrow")
        yield DateRange(day, day)


def _relative_dates(place: re.Match[str], day_of_text: date | None, years: tuple[int, ...]) -> Iterator[DateRange]:
    """Yield the week, weekend, month, year or weekday relative to the day of the text."""
    if day_of_text is None:
        return
    step = {"last": -1, "past": -1, "previous": -1, "next": 1, "coming": 1, "this": 0}[place["which"].lower()]
    what = place["what"].lower()
    if what in _WEEKDAYS:
        day = _weekday(day_of_text, _WEEKDAYS.index(what), step)
        yield DateRange(day, day)
    else:
        yield _unit(day_of_text, what, step)


def _ago(place: re.Match[str], day_of_text: date | None, years: tuple[int, ...]) -> Iterator[DateRange]:
    """Yield the span that is a number of days, weeks, months or years before or after, as precise as stated."""
    if day_of_text is None:
        return
    number = place["count"].lower()
    count = _NUMBERS.get(number) or int(number)
    step = count if place["sense"].lower() in ("from", "later") else -count
    unit = place["unit"].lower()
    if unit == "day":
        slack = 1 if number in ("few", "couple") else 0
        day = day_of_text + timedelta(days=step)
        yield DateRange(day - timedelta(days=slack), day + timedelta(days=slack))
    else:
        yield _unit(day_of_text, unit, step)


def _last_weekday(place: re.Match[str], day_of_text: date | None, years: tuple[int, ...]) -> Iterator[DateRange]:
    """Yield the last day before that of the text with this name."""
    if day_of_text is not None:
        day = _weekday(day_of_text, _WEEKDAYS.index(place["what"].lower()), -1)
        yield DateRange(day, day)


def _last_of_number(place: re.Match[str], day_of_text: date | None, years: tuple[int, ...]) -> Iterator[DateRange]:
    """Yield the last day until that of the text with this number in its month."""
    if day_of_text is not None:
        number, month = int(place["day"]), day_of_text.replace(day=1)
        day = (month if number <= day_of_text.day else month - timedelta(days=1)).replace(day=number)
        yield DateRange(day, day)


def _week_of_month(place: re.Match[str], day_of_text: date | None, years: tuple[int, ...]) -> Iterator[DateRange]:
    """Yield seven days of each month: the first ones, those after them, or the last ones."""
    for month in _written(place, day_of_text, years):
        weeks = (
            ("first", "second", "third", "fourth").index(which) if (which := place["which"].lower()) != "last" else 0
        )
        first = month.last - timedelta(days=6) if which == "last" else month.first + timedelta(weeks=weeks)
        yield DateRange(first, first + timedelta(days=6))


def _month(name: str) -> int:
    return next(number for number, month in enumerate(_MONTHS, 1) if month.startswith(name.lower().strip(".")[:3]))


def _years(written: str | None, month: int, day_of_text: date | None, years: tuple[int, ...]) -> Iterable[int]:
    """Return the *written* year, else *years*, else that of the month nearest to *day_of_text*."""
    if written:
        return (int(written),)
    if years or day_of_text is None:
        return years
    near = range(day_of_text.year - 1, day_of_text.year + 2)
    return (min(near, key=lambda year: abs((year - day_of_text.year) * 12 + month - day_of_text.month)),)


def _days(year: int, month: int, day: int | None) -> DateRange:
    """Return one day, or a whole month."""
    if day is not None:
        return DateRange(date(year, month, day), date(year, month, day))
    after = date(year + month // 12, month % 12 + 1, 1)
    return DateRange(date(year, month, 1), after - timedelta(days=1))


def _weekday(day_of_text: date, weekday: int, step: int) -> date:
    """Return the weekday before or after the day of the text, or that in its week."""
    ahead = (weekday - day_of_text.weekday()) % 7
    if step == 0:
        return day_of_text + timedelta(days=weekday - day_of_text.weekday())
    return day_of_text + timedelta(days=ahead or 7) if step > 0 else day_of_text - timedelta(days=7 - ahead)


def _unit(day_of_text: date, unit: str, step: int) -> DateRange:
    """Return the week, weekend, month or year *step* units from that of *day_of_text*."""
    if unit in ("week", "weekend"):
        monday = day_of_text - timedelta(days=day_of_text.weekday()) + timedelta(weeks=step)
        return DateRange(monday + timedelta(days=5 if unit == "weekend" else 0), monday + timedelta(days=6))
    if unit == "month":
        months = day_of_text.year * 12 + day_of_text.month - 1 + step
        return _days(months // 12, months % 12 + 1, None)
    return DateRange(date(day_of_text.year + step, 1, 1), date(day_of_text.year + step, 12, 31))


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{text})(?!\w)", re.IGNORECASE)


_READERS: tuple[tuple[re.Pattern[str], _Reader], ...] = (
    (_pattern(rf"{_YEAR}-(?P<month>0\d|1[0-2])-(?P<day>\d\d)"), lambda place, said, years: [
        _days(int(place["year"]), int(place["month"]), int(place["day"]))]),
    (_pattern(rf"(?P<one>\d{{1,2}})[./](?P<two>\d{{1,2}})[./]{_YEAR}"), _numeric),
    (_pattern(rf"{_DAY}\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?"), _written),
    (_pattern(rf"{_MONTH}\s+{_DAY}(?:,?\s+{_YEAR})?"), _written),
    (_pattern(rf"{_MONTH},?\s+(?:of\s+)?{_YEAR}"), _written),
    (_pattern(rf"(?P<season>{'|'.join(_SEASONS)})\s+(?:of\s+)?{_YEAR}"), _season),
    (_pattern(rf"(?:a\s+)?{_COUNT}\s+(?:of\s+)?{_UNIT}\s+(?P<sense>ago|back|earlier|before|from|later)"), _ago),
    (_pattern(rf"(?P<which>last|past|previous|next|coming|this)\s+"
              rf"(?P<what>week|weekend|month|year|{'|'.join(_WEEKDAYS)})"), _relative_dates),
    (_pattern("yesterday|last night|today|tonight|this morning|this afternoon|this evening|tomorrow"), _day_word),
    # A month alone needs a capital: "may" and "march" are other words too. "May I" at the beginning is no month.
    (re.compile(r"(?!(?:\A|(?<=[.?!]\s))May\s+(?:I|we|you|he|she|it|they|one|there|an?|the|this|that)\b)"
                "(?<!\\w)(?P<month>" + "|".join(map(str.capitalize, _MONTHS)) + r")(?!\w)"), _written),
    (_pattern(_YEAR), _whole_year),
)  # fmt: skip
#: Further words for days, in questions alone: in a text they may be of the future.
_QUESTION_READERS = (
    (_pattern(rf"(?P<which>first|second|third|fourth|last)\s+week\s+(?:of|in)\s+{_MONTH}(?:,?\s+{_YEAR})?"),
     _week_of_month),
    *_READERS,
    (_pattern(rf"(?P<what>{'|'.join(_WEEKDAYS)})"), _last_weekday),
    (_pattern(r"the\s+(?P<day>\d{1,2})(?:st|nd|rd|th)"), _last_of_number),
)  # fmt: skip
#: Two days of one month, and the words that make a range of the days after them.
_TWO_DAYS = _pattern(
    r"(?:(between)\s+|from\s+)?(?:the\s+)?(?P<one>\d{1,2})(?:st|nd|rd|th)?\s*(?(1)and|(?:to|until|till|[-\u2013]))"
    rf"\s*(?:the\s+)?(?P<two>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?"
)
_LIMIT = re.compile(r"\b(since|after|before|until|till|between|from)\s+(?=\S)", re.IGNORECASE)
_MAY_TELL = _pattern(
    rf"\d{{4}}|{'|'.join(f'{name[:3]}(?:{name[3:]})?' for name in _MONTHS)}|sept|ago|back|earlier|before|from|later"
    "|last|past|previous|next|coming|this|yesterday|today|tonight|tomorrow"
)
