"""The tokens of a statement: its words, and its values with the slot that each is in. Pure.

A value is a number with its unit or with what it counts, a version, date, time, address, path or option. The words are
those of English, German and Spanish.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

from jidomem.base.containers import grouped
from jidomem.base.regex import lazy
from jidomem.base.words import TELL_LITTLE

#: The most characters of a text that are read, the most words after a number that may name what it counts, and how
#: many of equal words are compared.
_LONGEST, _COUNTED, _FIRST = 2_000, 3, 3


@dataclass(slots=True, eq=False)  # not frozen: a frozen one takes three times as long to make, and there are many
class Token:
    """A word or a value, never changed; `key` is the same for the same one, values of one slot share one of `slots`.

    The `amount` of a number is that of the least unit of its dimension; `is_rough` is for "about 5",
    `folded` is the text without case and accents.
    """

    kind: str
    text: str
    key: str
    start: int
    sentence: int
    clause: int
    slots: frozenset[str] = frozenset()
    amount: Fraction | None = None
    unit: str = ""
    is_rough: bool = False
    folded: str = ""

    def __post_init__(self) -> None:
        if not self.folded:
            self.folded = fold(self.text)


class StatementTokens:
    """The tokens of a text and what stands around them."""

    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text[:_LONGEST])
        self.words = [token for token in self.tokens if token.kind == "word"]
        self.content = [word for word in self.words if is_content(word)]
        self.text = text[:_LONGEST]
        self.folded = fold(self.text)

    @cached_property
    def subjects(self) -> list[frozenset[str]]:
        """Return the keys of the content words of each sentence."""
        sentences = 1 + max((token.sentence for token in self.tokens), default=-1)
        by_sentence = grouped((word.sentence, word) for word in self.content)
        return [frozenset(word.key for word in by_sentence.get(at, ())) for at in range(sentences)]

    @cached_property
    def clauses(self) -> dict[int, list[Token]]:
        """Return the words of each clause by its number."""
        return grouped((word.clause, word) for word in self.words)

    @cached_property
    def _by_folded(self) -> dict[str, list[Token]]:
        return grouped((word.folded, word) for word in self.content)

    @cached_property
    def _by_key(self) -> dict[str, list[Token]]:
        return grouped((word.key, word) for word in self.content)

    @cached_property
    def by_kind(self) -> dict[str, list[Token]]:
        """Return the values of each kind."""
        return grouped((token.kind, token) for token in self.tokens if token.kind != "word")

    @cached_property
    def is_negated(self) -> bool:
        """Return whether a word may negate another."""
        return any(word.folded in NEGATIONS or word.folded in ENDS for word in self.words)

    @cached_property
    def _turned(self) -> set[int]:
        """Return the sentences with a word that may turn them round."""
        return {word.sentence for word in self.words if word.folded in NEGATIONS or TURNS.match(word.folded)}

    @cached_property
    def quotes(self) -> list[Token]:
        """Return the names in quotation marks or backticks, of at most three words, as tokens."""
        quotes = list[Token]()
        if _QUOTES.isdisjoint(self.text):
            return quotes
        for match in _QUOTED.finditer(self.text):
            first = next((token for token in self.tokens if token.start > match.start()), None)
            if first and match[1].count(" ") < 3:
                quotes.append(replace(first, kind="quote", text=match[1], key=fold(match[1]), folded=""))
        return quotes

    @cached_property
    def days(self) -> frozenset[str]:
        """Return the days of the text: weekdays, full dates, and months with the number beside them, if any."""
        days = {token.key for token in self.tokens if token.kind == "date" and "year" not in token.slots}
        for one, two in pairwise(self.tokens):
            for month, number in ((one, two), (two, one)):
                if "month" in month.slots and number.kind == "number":
                    days = days - {month.key} | {f"{number.text} {month.key}"}
        return frozenset(days)

    def content_named(self, folded: str) -> Sequence[Token]:
        """Return the first content words whose text is *folded*."""
        return self._by_folded.get(folded, ())[:_FIRST]

    def content_with(self, key: str) -> Sequence[Token]:
        """Return the first content words with this key."""
        return self._by_key.get(key, ())[:_FIRST]

    def after(self, token: Token) -> Token | None:
        """Return the token after *token* in its clause."""
        following = next((each for each in self.tokens if each.start > token.start), None)
        return following if following and following.clause == token.clause else None

    def content_after(self, token: Token) -> Token | None:
        """Return the first content word after *token*."""
        return next((word for word in self.content if word.start > token.start), None)

    def unit(self, quantity: Token, slots: frozenset[str]) -> str:
        """Return the unit of *quantity*, or those of the words that it counts whose keys are in *slots*."""
        if quantity.slots & _DIMENSIONS:
            return quantity.unit
        counted = [token for token in self.tokens if token.start > quantity.start][: _COUNTED + 2]
        return " ".join(token.text for token in counted if token.key in slots) or quantity.unit

    def complements(self) -> Iterator[tuple[tuple[str, str], Token]]:
        """Yield each content word that follows a content word and a preposition, with the keys of these."""
        for at in range(len(self.words) - 2):
            head, link, token = self.words[at : at + 3]
            if token.folded in ARTICLES and at + 3 < len(self.words):
                token = self.words[at + 3]
            is_slot = link.folded in PREPOSITIONS and is_content(head) and token.clause == head.clause
            if is_slot and is_content(token) and not is_unit(token):
                yield (head.key, link.key), token

    @cached_property
    def capitalised(self) -> list[list[Token]]:
        """Return the runs of successive words that begin with a capital, such as names; without words of little."""
        runs: list[list[Token]] = []
        before: Token | None = None
        for token in self.tokens:
            if is_content(token) and not is_unit(token) and token.text[0].isupper():
                is_next = before is not None and before.clause == token.clause
                runs[-1].append(token) if is_next else runs.append([token])
                before = token
            else:
                before = None
        return runs

    def negation(self, token: Token) -> Token | None:
        """Return the word that negates *token*: before it in the clause, or as the end of its subject ("X is gone").

        At most two content words stand between them. A clause that begins with "or" tells what happens otherwise.
        """
        clause = self.clauses[token.clause]
        at = clause.index(token)
        if clause[0].folded in _ELSE:
            return None
        before = self._negating(clause[:at][::-1], NEGATIONS, 3)
        if before and clause.index(before) and clause[clause.index(before) - 1].folded in ("si", "if"):
            return None  # "si no": otherwise
        limit = [word.folded for word in clause[clause.index(before) + 1 :][:2]] if before else []
        if limit and limit[0] in COMPARED and limit[-1] in THAN:
            return None  # "no more than a minute": a limit
        return before or self._negating(clause[at + 1 :], ENDS, 2)

    def _negating(self, words: Sequence[Token], signs: frozenset[str], most: int) -> Token | None:
        for word in words:
            if word.folded in signs:
                return word
            most -= is_content(word)
            if not most:
                break
        return None

    def may_turn(self, token: Token) -> bool:
        """Return whether a word in the sentence of *token* may turn it round as a negation does."""
        return token.sentence in self._turned


def fold(text: str) -> str:
    """Return *text* without case and accents.

    >>> fold("Größe"), fold("Límite")
    ('grosse', 'limite')
    """
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKD", text.casefold()).translate(_ACCENTS).replace("’", "'")


@lru_cache(4096)
def stem(word: str) -> str:
    """Return *word* without an inflection of the three languages; a word with a digit stays.

    >>> {stem(word) for word in ("move", "moves", "moved", "moving")}, stem("Wochen") == stem("Woche")
    ({'mov'}, True)
    """
    folded = fold(word)
    if any(map(str.isdigit, folded)):
        return folded
    short = _ENDING.sub("", folded, count=1)
    if len(short) > 3 and short[-1] == short[-2]:
        short = short[:-1]
    return short[:-1] if len(short) > 3 and short[-1] == "n" != folded[-1] else short  # returned, as return


def is_content(token: Token) -> bool:
    """Return whether *token* is a word that says something about the subject of its text."""
    return token.kind == "word" and token.folded not in _NO_CONTENT


def is_unit(token: Token) -> bool:
    """Return whether *token* is the name of a unit."""
    return token.folded in _UNITS


def is_period(token: Token) -> bool:
    """Return whether *token* is the name of a period, as "nightly"."""
    return token.folded in _PERIODS


def has_dimension(token: Token) -> bool:
    """Return whether *token* is a quantity in a unit, and no mere number or count."""
    return bool(token.slots & _DIMENSIONS)


def words_of(text: str) -> frozenset[str]:
    """Return the words of *text*."""
    return frozenset(text.split())


def _numbered(text: str) -> dict[str, Fraction]:
    """Return the words of each line of *text* with the number that the line begins with."""
    lines = (line.split() for line in text.strip().splitlines())
    return {name: Fraction(number) for number, *names in lines for name in names}


_ACCENTS = dict.fromkeys(range(0x300, 0x370))
_ENDING = lazy(r"(?<=\w{3})(?:ied|ie|ing|ed|en|er|em|et|e|n|y|o|a)?(?:'?s)?$")
_QUOTED = lazy(r"(?<![^\W_])[\"“„«`']([^\"“”„»`'\n]{2,40})[\"“”»`'](?![^\W_])")
_QUOTES = frozenset("\"“„«`'")  # those that begin one
_PORT = lazy(r"://[^/:]+:(\d{1,5})")
_MONTHS = _numbered(
    "1 jan ene\n2 feb\n3 mar\n4 apr abr\n5 may mai\n6 jun\n7 jul\n8 aug ago\n9 sep\n10 oct okt\n11 nov\n12 dec dez dic"
)
_MONTH = rf"(?:mär|{'|'.join(_MONTHS)})[a-zä]{{0,7}}"
_PRERELEASE = r"(?:-?(?:rc|beta|alpha|dev)[.-]?\d*)?(?!\w)"
_TOKEN = lazy(
    r"(?P<path>https?://[^\s\"'`<>)\]]*[\w/]|(?<![\w/.])(?:~/|\.{0,2}/)[\w.<>*-]*[\w<>*](?:/[\w.<>*-]*[\w<>*])*"
    r"|(?<![\w/.])[\w.-]+/(?:[\w.<>*-]+/)*[\w<>*-]+\.[A-Za-z]\w{0,5}(?![\w/]))"
    r"|(?P<reference>#\d+)"
    r"|(?P<address>(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?(?!\w))"
    r"|(?P<date>(?<![\w.])(?:\d{4}-\d{2}-\d{2}|\d{1,2}\.\d{1,2}\.\d{4})(?!\w)"
    rf"|(?<![\w.])\d{{1,2}}\.?(?: de)? {_MONTH}\.?(?: de)? \d{{4}}(?!\w)"
    rf"|\b{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}(?!\w))"
    r"|(?P<ratio>(?<![\w.:])\d+(?::\d+)+(?!\w))"
    rf"|(?P<version>(?<![\w.])v\d+(?:\.\d+)*(?:\.x)?{_PRERELEASE}|(?<![\w.])\d+(?:\.\d+)*\.x(?!\w)"
    rf"|(?<![\w.])\d+(?:\.\d+){{2,}}{_PRERELEASE})"
    r"|(?P<option>(?<![\w-])--?[A-Za-z][\w-]*)"
    r"|(?P<number>(?<![\w.,])(?P<money>[$€£])?(?P<figures>\d{1,3}(?:[.,'’]\d{3})+(?!\d)|\d+(?:[.,]\d+)?))"
    r"(?:[ \u00a0]?(?P<sign>°[CF]?|%|[€$£])|(?P<suffix>[A-Za-zµ]+)(?!\w))?"
    r"|(?P<word>[^\W_](?:[\w'’]*(?:[-_.:@+]+\w+)*)|_\w+)"
    r"|(?P<stop>[.!?…;]+(?=\s|$)|\n)|(?P<pause>[,:()—–]|(?<=\s)-(?=\s))",
    re.IGNORECASE,
)
#: The dimensions of units; a month is a twelfth of a year.
_UNITS = {
    name: (dimension, factor)
    for dimension, text in {
        "time": """
            1/1000000 us µs microsecond microseconds
            1/1000 ms msec millisecond milliseconds millisekunden milisegundos
            1 s sec secs second seconds sekunde sekunden segundo segundos
            60 min mins minute minutes minuten minuto minutos
            3600 h hr hrs hour hours stunde stunden hora horas
            86400 d day days tag tage tagen dia dias
            604800 week weeks woche wochen semana semanas
            1209600 fortnight fortnights
            2629800 month months monat monate monaten monats mes meses
            7889400 quarter quarters quartal quartale quartalen trimestre trimestres
            31557600 year years jahr jahre jahren ano anos
            315576000 decade decades jahrzehnt jahrzehnte jahrzehnten decada decadas""",
        "size": """
            1 byte bytes
            1000 kb kilobyte kilobytes
            1000000 mb megabyte megabytes
            1000000000 gb gigabyte gigabytes
            1000000000000 tb terabyte terabytes
            1024 kib
            1048576 mib
            1073741824 gib
            1099511627776 tib""",
        "share": "1 % percent prozent pct",
        "degree": "1 ° °c degree degrees celsius grad grados",
        "fahrenheit": "1 °f",
        "mass": "1/1000 mg\n1 g gram grams gramm gramos\n1000 kg kilogram kilograms kilogramm",
        "length": """
            1/10 mm millimetre millimetres millimeter millimeters
            1 cm centimetre centimetres centimeter centimeters zentimeter
            100 metre metres meter meters metro metros
            100000 km kilometre kilometres kilometer kilometers""",
        "volume": "1/1000 ml\n1 litre litres liter liters litro litros",
        "frequency": "1 hz hertz\n1000 khz\n1000000 mhz\n1000000000 ghz",
        "current": "1/1000 ma\n1 amp amps ampere amperes amperio amperios",
        "voltage": "1/1000 mv\n1 volt volts voltio voltios\n1000 kv",
        "power": "1 watt watts vatio vatios\n1000 kw kilowatt kilowatts",
        "dollar": "1 $ usd dollar dollars",
        "euro": "1 € eur euro euros",
        "pound": "1 £ gbp",
    }.items()
    for name, factor in _numbered(text).items()
}
#: Units whose symbols are one letter in one case: "3 a day" is no current. The last three stand apart: "5m" is a time.
_SYMBOLS = {
    symbol: _UNITS[name]
    for symbol, name in {"A": "ampere", "V": "volt", "W": "watt", "C": "celsius", "m": "metre", "l": "litre"}.items()
}
_APART = words_of("C m l")
_DIMENSIONS = frozenset(dimension for dimension, _ in _UNITS.values())
_TIMES = _numbered("100 hundred hundert\n1000 k thousand tausend mil\n1000000 million millions millionen millones")
_COUNTS = _numbered("""
    1 one single einzige einziger einziges unico unica
    2 two both zwei beide dos
    3 three drei tres
    4 four vier cuatro
    5 five funf cinco
    6 six sechs seis
    7 seven sieben siete
    8 eight acht ocho
    9 nine neun nueve
    10 ten zehn diez
    11 eleven elf
    12 twelve dozen zwolf doce
    13 thirteen dreizehn trece
    14 fourteen vierzehn catorce
    15 fifteen funfzehn quince
    16 sixteen sechzehn dieciseis
    17 seventeen siebzehn diecisiete
    18 eighteen achtzehn dieciocho
    19 nineteen neunzehn diecinueve
    20 twenty zwanzig veinte
    30 thirty dreissig treinta
    40 forty vierzig cuarenta
    50 fifty funfzig cincuenta
    60 sixty sechzig sesenta
    70 seventy siebzig setenta
    80 eighty achtzig ochenta
    90 ninety neunzig noventa
    100 hundred hundert cien
    1000 thousand tausend mil
""")
_ONES = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_EINS = ["ein", "zwei", "drei", "vier", "funf", "sechs", "sieben", "acht", "neun"]
_UNOS = ["uno", "dos", "tres", "cuatro", "cinco", "seis", "siete", "ocho", "nueve"]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_ZEHNER = ["zwanzig", "dreissig", "vierzig", "funfzig", "sechzig", "siebzig", "achtzig", "neunzig"]
_COUNTS |= {f"{ten}-{one}": _COUNTS[ten] + at for ten in _TENS for at, one in enumerate(_ONES, 1)}
_COUNTS |= {f"{one}und{ten}": _COUNTS[ten] + at for ten in _ZEHNER for at, one in enumerate(_EINS, 1)}
_COUNTS |= {f"veinti{one}": Fraction(20 + at) for at, one in enumerate(_UNOS, 1)}
#: Words that give a number of times.
_OFTEN = _numbered("1 once einmal\n2 twice zweimal\n3 thrice dreimal")
#: Words after "once" where it does not count.
_WHEN = words_of("the all it its they we you he she this these those there")
#: Words that give a period without a number.
_PERIODS = _numbered("""
    1800 half-hourly
    3600 hourly stundlich
    86400 daily nightly taglich nachtlich diario diariamente
    604800 weekly wochentlich semanal semanalmente
    1209600 fortnightly
    2629800 monthly monatlich mensual mensualmente
    7889400 quarterly vierteljahrlich trimestral trimestralmente
    31557600 yearly annually jahrlich anual anualmente
""")
_CLASSES = dict.fromkeys(
    words_of("""
    monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag freitag samstag sonntag
    lunes martes miercoles jueves viernes sabado domingo
"""),
    "weekday",
) | dict.fromkeys(
    words_of("""
    january february april june july august september october november december januar februar marz mai juni juli
    oktober dezember enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
"""),
    "month",
)
_TO = words_of("to bis a and und y or oder o")
_MORE = words_of("more other further new old most mehr weitere neue mas")
COMPARED = words_of("more longer later less fewer earlier mehr langer spater weniger mas menos")
THAN = words_of("than als de")
_A, _HALF = words_of("a an ein eine einen einem einer eines un una"), words_of("half halbe halben halbes media medio")
_OTHER = words_of("other second zweite zweiten zweiter")
#: Months that are other words, too, and words before a month.
_MONTHS_AND_WORDS, _AT = (
    words_of("march may"),
    words_of("in by until till since from before after of every each next last"),
)
_EACH, _NIGHTS = words_of("each every per jede jeden jeder pro cada"), words_of("night nacht noche")
_ROUGH = words_of("about almost nearly roughly around approximately some circa ca etwa fast rund casi unos unas")
_LITTLE = TELL_LITTLE | words_of("""
    al auf aus bei bis das dem den der des die ein eine einem einen einer eines er es fur hat im ist mit nach sich sie
    sind um und vom von vor war wenn wer wie wir wird werden zu zum zur auch man durch oder aber
    como con cuando de del desde el ella en entre esta este esto la las lo los mas mi muy o para pero por que se si sin
    sobre son su sus tu un una uno y ya hay ser cada
    may might must shall need needs via per every each let lets get gets got go goes one ones back much many still yet
    now new old
""")
NEGATIONS = words_of("""
    not no nobody no-one never none nothing neither nor without cannot cant can't don't doesn't didn't won't isn't
    aren't wasn't weren't shouldn't mustn't needn't hasn't haven't couldn't wouldn't
    nicht niemand kein keine keinen keinem keiner keines nie niemals ohne nichts
    nadie nunca jamas sin ningun ninguna ninguno ni nada tampoco
""")
_NO_CONTENT = _LITTLE | NEGATIONS
#: Words that end the thing before them.
ENDS = words_of("""
    removed dropped banned forbidden prohibited gone abolished discontinued rejected unsupported disabled
    verboten abgeschafft entfernt entfallt untersagt unzulassig
    eliminado eliminada prohibido prohibida descartado descartada
""")
_ELSE = words_of("or otherwise else sonst o")
PREPOSITIONS = words_of("""
    with on by as from to in at into via for under using auf mit durch von als bei zu fur con por como en de para
""")
ARTICLES = words_of("the a an our its der die das dem den ein eine einem einen el la los las un una")
_BREAKS = words_of("""
    and but or so because since while if when which that und aber sondern weil wenn dass y pero sino porque que
""")
#: The beginnings of words that may turn a statement round without a negation.
TURNS = lazy(
    r"(?:drop|remov|ban|forbid|forbad|prohibit|disallow|reject|refus|disabl|avoid|abolish|deprecat|revert|exempt|stop"
    r"|gone|off|out|lack|absen|miss|fail|unless|except|instead|rather|only|bar|block|preven|exclu|omit|skip|ignor|wrong"
    r"|bad|hard|den(?:y|ied)|un[a-z]{4}|in(?:valid|correct|complet)|dis[a-z]{4}|non|anti|too|less|few|but|quit|end|los"
    r"|keep|away|apart|illegal|verbot|untersag|abgeschaff|entf|ausgeschl|ausser|nur|statt|weder|verlier|erlisch|fehl"
    r"|prohib|elimin|descart|evit|deja|excep|salvo|solo|sino|lugar)"
)


#: The words that may be values.
_VALUED = _CLASSES.keys() | _PERIODS.keys() | _EACH | _A | _MONTHS_AND_WORDS | _OFTEN.keys() | _COUNTS.keys()


def _tokens(text: str) -> list[Token]:
    """Return the tokens of *text*; a quantity has its unit, and as slots its dimension or the words that it counts."""
    tokens: list[Token] = []
    sentence = clause = 0
    for match in _TOKEN.finditer(text):
        kind, written, unit = match.lastgroup or "", match[0], ""
        if kind in ("stop", "pause"):
            sentence, clause = sentence + (kind == "stop"), clause + 1
            continue
        if match["number"]:
            kind, written = "number", match["figures"]
            unit = match["money"] or match["sign"] or match["suffix"] or ""
        folded = fold(written)
        clause += kind == "word" and folded in _BREAKS
        place = match.start(), sentence, clause
        if kind == "path" and (port := _PORT.search(written)):
            tokens.append(Token("port", port[1], port[1], *place, frozenset(["port", "puert"]), Fraction(port[1])))
        key = _key(kind, written, folded)
        tokens.append(Token(kind, written, key, *place, frozenset([kind]), unit=unit, folded=folded))
    return [
        _valued(tokens, place) if token.kind != "word" or token.folded in _VALUED else token
        for place, token in enumerate(tokens)
        if not (token.folded in _COUNTS and _is_within_number(tokens, place)) and not _is_each_night(tokens, place - 1)
    ]


def _spelt(tokens: Sequence[Token], place: int) -> tuple[Fraction, int]:
    """Return the number in the words from *place* on, and the place of its last word: two hundred twenty five."""
    amount = _COUNTS[tokens[place].folded]
    while place + 1 < len(tokens) and (more := _COUNTS.get(tokens[place + 1].folded)) is not None:
        if more in (100, 1000) and amount < more:
            amount *= more
        elif more < (100 if amount % 100 == 0 else 10 if amount % 100 >= 20 and amount % 10 == 0 else 0):
            amount += more
        else:
            break
        place += 1
    return amount, place


def _is_within_number(tokens: Sequence[Token], place: int) -> bool:
    """Return whether the count at *place* belongs to the number before it."""
    before, folded = tokens[place - 1] if place else None, tokens[place].folded
    if before is None:
        return False
    if before.kind == "number":
        return folded in _TIMES and not before.unit
    return before.folded in _COUNTS and _spelt(tokens, place - 1)[1] >= place


def _is_each_night(tokens: Sequence[Token], place: int) -> bool:
    """Return whether the words from *place* on are "every night"."""
    return place >= 0 and tokens[place + 1].folded in _NIGHTS and tokens[place].folded in _EACH


def _key(kind: str, written: str, folded: str) -> str:
    if kind == "word":
        return folded if folded in NEGATIONS else stem(written)
    if kind == "date":
        return _day(folded)
    return folded.removeprefix("v") if kind == "version" else written.rstrip("/")


def _day(folded: str) -> str:
    """Return a date of any form as year, month and day."""
    numbers = [*map(int, re.findall(r"\d+", folded))]
    if name := next((name[:3] for name in re.findall(r"[a-z]{3,}", folded) if name[:3] in _MONTHS), None):
        day, year = numbers
        return f"{year}-{_MONTHS[name]}-{day}"
    year, month, day = numbers if numbers[0] > 31 else numbers[::-1]
    return f"{year}-{month}-{day}"


def _valued(tokens: Sequence[Token], place: int) -> Token:
    """Return the token at *place*; a number, in figures or as a word, becomes a quantity, version or date."""
    token = tokens[place]
    if token.kind == "number":
        return _numeral(tokens, place)
    if token.kind == "version":
        return replace(token, slots=_named_before(tokens, place))
    if token.kind != "word":
        return token
    folded = token.folded
    if folded in _CLASSES:
        return replace(token, kind="date", slots=frozenset([_CLASSES[folded]]))
    if folded in _PERIODS:
        return replace(token, kind="number", slots=frozenset(["time"]), amount=_PERIODS[folded])
    if folded in _EACH or folded in _A:
        return _period(tokens, place)
    if folded in _MONTHS_AND_WORDS and token.text[0].isupper() and _is_in_date(tokens, place):
        return replace(token, kind="date", slots=frozenset(["month"]))
    if folded in _OFTEN and _counts_times(tokens, place):
        return replace(token, kind="number", slots=frozenset([stem("times")]), amount=_OFTEN[folded])
    if folded in _COUNTS:
        amount, last = _spelt(tokens, place)
        if (measured := _measured(tokens, last, amount))["unit"]:
            text = " ".join(each.text for each in tokens[place : last + 1])
            return replace(token, kind="number", text=text, **{**measured, "is_rough": _is_rough(tokens, place)})
    return token


def _is_in_date(tokens: Sequence[Token], place: int) -> bool:
    """Return whether the word at *place* stands after a word such as "in", or beside a number: 1 May, May 1."""
    before, after = tokens[max(0, place - 1) : place], tokens[place + 1 : place + 2]
    return any(each.folded in _AT for each in before) or any(each.kind == "number" for each in (*before, *after))


def _period(tokens: Sequence[Token], place: int) -> Token:
    """Return "each", "every", "a" or "half a" before a unit of time as a number of it; as a rate after a number."""
    token, at = tokens[place], place
    if place + 1 < len(tokens) and _is_each_night(tokens, place):
        text, day = f"{token.text} {tokens[place + 1].text}", _PERIODS["nightly"]
        return replace(token, kind="number", text=text, slots=frozenset(["time"]), amount=day)
    if token.folded in _EACH and place + 1 < len(tokens) and tokens[place + 1].folded in _OTHER:
        at += 1
    unit = tokens[at + 1] if at + 1 < len(tokens) else None
    if unit is None or _UNITS.get(unit.folded, ("",))[0] != "time" or unit.clause != token.clause:
        return token
    measured = _measured(tokens, at, Fraction(1 + at - place))
    if token.folded in _EACH:
        return replace(token, kind="number", text=" ".join(each.text for each in tokens[place : at + 1]), **measured)
    if len(unit.folded) < 3 or (unit.folded == "second" and place + 2 < len(tokens)):
        return token
    before = [each for each in tokens[:place] if each.clause == token.clause]
    if before and before[-1].folded in _HALF:
        half = measured["amount"] / 2
        return replace(token, kind="number", text=f"{before[-1].text} {token.text}", **{**measured, "amount": half})
    if any(each.kind == "number" or each.folded in _COUNTS or each.folded in _OFTEN for each in before):
        measured["slots"] = frozenset(["rate"])
    return replace(token, kind="number", **measured)


def _unit(written: str, *, is_apart: bool = False) -> tuple[str, Fraction] | None:
    """Return dimension and factor of a unit after figures, or after a space if it *is_apart*; None for other words."""
    symbol = _SYMBOLS.get(written) if is_apart or written not in _APART else None
    return symbol or _UNITS.get(fold(written))


def _counts_times(tokens: Sequence[Token], place: int) -> bool:
    """Return whether a word such as "twice" counts; "once" may mean "as soon as", and "at once" immediately."""
    if tokens[place].folded != "once":
        return True
    before = [token for token in tokens[:place][-1:] if token.clause == tokens[place].clause and token.folded != "at"]
    return bool(before) and not any(token.folded in _WHEN for token in tokens[place + 1 : place + 2])


def _numeral(tokens: Sequence[Token], place: int) -> Token:
    token = tokens[place]
    figures, unit = token.text, fold(token.unit)
    plain = figures if figures.startswith("0") else re.sub(r"[.,'’](?=\d{3}(?:\D|$))", "", figures)
    digits = re.sub(r"['’]", "", plain.replace(",", "."))
    amount = Fraction(int(digits) if digits.isdecimal() else digits)
    if measure := _unit(token.unit):
        dimension, factor = measure
        return replace(token, slots=frozenset([dimension]), amount=amount * factor, is_rough=_is_rough(tokens, place))
    if unit and unit not in _TIMES:  # an ordinal, or a name such as 2FA
        return replace(token, kind="word", text=figures + token.unit, key=figures + unit, unit="", folded="")
    measured = _measured(tokens, place, amount * _TIMES.get(unit, 1))
    if measured["slots"].isdisjoint(_DIMENSIONS):
        if "." in figures and figures == plain:
            return replace(token, kind="version", slots=_named_before(tokens, place))
        if re.fullmatch(r"(?:19|20)\d\d", figures):
            return replace(token, kind="date", slots=frozenset(["year"]))
    if measured["unit"]:
        return replace(token, **measured)
    return replace(token, amount=measured["amount"], slots=_named_before(tokens, place))


def _measured(tokens: Sequence[Token], place: int, amount: Fraction) -> dict[str, Any]:
    """Return slots, amount and unit of the quantity at *place*: those of the unit after it, or the words it counts."""
    rough, at = _is_rough(tokens, place), place + 1
    if at + 1 < len(tokens) and tokens[at].folded in _TO and tokens[at + 1].kind == "number":
        at += 2  # of "4 to 20 days" the first number is of days, too
        if unit := _unit(tokens[at - 1].unit):
            return {"slots": frozenset([unit[0]]), "amount": amount * unit[1], "unit": tokens[at - 1].unit}
    counted: list[Token] = []
    for token in tokens[at : at + _COUNTED]:
        if token.clause != tokens[place].clause or token.kind != "word":
            break
        if not counted and (unit := _unit(token.text, is_apart=True)):
            return {"slots": frozenset([unit[0]]), "amount": amount * unit[1], "unit": token.text, "is_rough": rough}
        if token.folded in _TIMES:
            amount *= _TIMES[token.folded]
        elif is_content(token):
            counted.append(token)
        elif counted or token.folded not in _MORE:
            break
    unit_text = counted[-1].text if counted else ""
    return {"slots": frozenset(token.key for token in counted), "amount": amount, "unit": unit_text, "is_rough": rough}


def _is_rough(tokens: Sequence[Token], place: int) -> bool:
    return place > 0 and tokens[place - 1].folded in _ROUGH


def _named_before(tokens: Sequence[Token], place: int) -> frozenset[str]:
    """Return the key of the content word before a value, as "port" in "port 9000"."""
    for token in reversed(tokens[max(0, place - 4) : place]):
        if token.sentence == tokens[place].sentence and is_content(token):
            return frozenset([token.key])
    return frozenset()
