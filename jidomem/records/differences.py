"""The differences between two near statements: values of one slot that are not the same. Pure, no language model.

Two statements are near by their words or vectors. A repetition has no difference, a statement that takes the place of
another has one. In doubt there is none: many contradictions are in no single value; some of these have other words in
the place of one or two (tests/records/test_differences.py has the rates on labelled notes).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from typing import NamedTuple

from jidomem.base.regex import lazy
from jidomem.records.limits import ended, turns
from jidomem.records.tokens import (
    NEGATIONS,
    PREPOSITIONS,
    StatementTokens,
    Token,
    has_dimension,
    is_content,
    is_unit,
    stem,
)


class ValueDifference(NamedTuple):
    """A value of the first text and that of the second in the same slot, as written there.

    `kind` is number, version, date, name, negation or antonym; `unit` is what follows both values.
    """

    kind: str
    value: str
    other: str
    unit: str = ""

    def __str__(self) -> str:
        """Return the difference as a phrase.

        >>> str(ValueDifference("number", "5", "20", "threads"))
        '5 / 20 threads'
        """
        return f"{self.value} / {self.other} {self.unit}".rstrip()


@lru_cache(maxsize=1024)  # the near memories of a matter are compared again with each recall
def differences(text: str, other: str) -> tuple[ValueDifference, ...]:
    """Return the values in which two near statements differ, in the order of *text*; empty if they may say the same.

    Of two texts on different subjects the result means nothing. The sides swap with the arguments.

    >>> [str(each) for each in differences("The pool has 5 threads", "The pool has 20 threads")]
    ['5 / 20 threads']
    >>> [str(each) for each in differences("We use Oxigraph as index", "We use Jena as index")]
    ['Oxigraph / Jena']
    >>> [str(each) for each in differences("Tags must be signed", "Tags must not be signed")]
    ['signed / not signed']
    >>> differences("Wait 90 s", "wait for 1.5 minutes")
    ()
    """
    if text == other:
        return ()
    swapped = other < text  # the rules see two texts in one order only, and so give the same for both
    one, two = _tokens_of(text), _tokens_of(other)
    pairs = [*(_Comparison(two, one) if swapped else _Comparison(one, two)).pairs()]
    if swapped:
        pairs = [_Pair(pair.kind, pair.two, pair.one, pair.shown[::-1], pair.unit) for pair in pairs]
    pairs.sort(key=lambda pair: (pair.one.start, pair.two.start))
    return tuple(dict.fromkeys(ValueDifference(pair.kind, *pair.shown, pair.unit) for pair in pairs))


def contrast(text: str, other: str) -> tuple[str, ...]:
    """Return the differences between two near statements in words.

    Plain words in the place of others are one only without another difference, and if no number is in both texts. A
    statement that says much more than the other does not differ.

    >>> contrast("Retries stop after 5 days", "Retries stop after 9 days")
    ('5 / 9 days',)
    >>> contrast("Refund window: 180 days", "Refunds are allowed for 180 days")
    ()
    """
    found = () if is_much_longer(text, other) or are_on_other_days(text, other) else differences(text, other)
    values = [each for each in found if each.kind != "name" or not (each.value + each.other).islower()]
    return tuple(map(str, values or (() if _numbers(text) & _numbers(other) else found)))


def are_on_other_days(text: str, other: str) -> bool:
    """Return whether two statements tell of two occurrences: on days of which none is in both, with another name.

    >>> match = "a match against {} on {} November".format
    >>> [are_on_other_days(match("Lahr", 7), match(team, 14)) for team in ("Teningen", "Lahr")]
    [True, False]
    """
    one, two = _tokens_of(text).days, _tokens_of(other).days
    if not one or not two or one & two:
        return False
    return any(each.kind == "name" for each in differences(text, other))


def _numbers(text: str) -> set[str]:
    return {token.text for token in _tokens_of(text).tokens if token.amount is not None}


def ends_use(text: str, other: str) -> bool:
    """Return whether one of two statements ends what the other one uses.

    >>> ends_use("We moved off Redis", "Redis is used for sessions"), ends_use("We moved off Redis", "Redis is fast")
    (True, False)
    """
    return any(ended(_tokens_of(text), _tokens_of(other)))


def has_replaced_words(text: str, other: str) -> bool:
    """Return whether one of two near statements says the same as the other but for one or two content words.

    Others, which are no synonyms, stand in their place, so the statements may contradict each other.

    >>> has_replaced_words("We write tests with pytest", "Tests are written in unittest")
    True
    >>> has_replaced_words("Secrets live in Vault", "Vault stores all secrets")
    False
    """
    one, two = _words_of(text), _words_of(other)
    if max(len(one), len(two)) > _MOST:
        return False
    fewest = min(len(one) - _shared(one, two), len(two) - _shared(two, one))
    return 0 < fewest <= _MOST_REPLACED and _shared(one, two) >= 2 * fewest - 1


def are_brief_on_other_things(text: str, other: str) -> bool:
    """Return whether two brief near statements share at most half of the content words of the shorter one.

    They may have only their subject in common.

    >>> are_brief_on_other_things("ACME is on the Business plan", "ACME is located in Madrid")
    True
    >>> are_brief_on_other_things("ACME uses the SAP integration", "ACME has the integration for SAP")
    False
    """
    one, two = _words_of(text), _words_of(other)
    return max(len(one), len(two)) <= _BRIEF and 2 * _shared(one, two) <= min(len(one), len(two))


def are_on_other_things(text: str, other: str) -> bool:
    """Return whether two statements share at most a quarter of the content words of the shorter one, which has several.

    >>> are_on_other_things("The parser reads UTF-8", "Invoices are sent on Mondays")
    True
    >>> are_on_other_things("We use SQLite", "We use PostgreSQL")
    False
    """
    one, two = _words_of(text), _words_of(other)
    return 4 * _shared(one, two) <= min(len(one), len(two)) > 1


def share_half(text: str, other: str) -> bool:
    """Return whether two statements share at least half of the content words of the longer one.

    >>> share_half("Nightly backups go to a vault in Zurich", "Backups are made nightly, in the vault in Zurich")
    True
    >>> share_half("Use tabs", "Use tabs in Makefiles of the kernel")
    False
    """
    one, two = _words_of(text), _words_of(other)
    return 2 * min(_shared(one, two), _shared(two, one)) >= max(len(one), len(two))


def is_much_longer(text: str, other: str) -> bool:
    """Return whether one of two near statements has 2.5 times as many words and values as the other, or sums up.

    The summary of a session says many things, of which the other may be one.

    >>> is_much_longer("Session 1 summary: chose Stripe; next is the refunds endpoint", "Use Stripe for payments")
    True
    >>> is_much_longer("The pool has 5 threads", "The pool of the server has 5 threads")
    False
    """
    fewer, more = sorted(len(_words_of(each)) + len(_values_of(each)) for each in (text, other))
    return more > max(_MANY, 2.5 * fewer) or (_SUMS_UP.match(text) is None) != (_SUMS_UP.match(other) is None)


def _values_of(text: str) -> list[Token]:
    return [token for token in _tokens_of(text).tokens if token.kind != "word"]


def _words_of(text: str) -> dict[str, Token]:
    return {word.key: word for word in _tokens_of(text).content if word.folded not in _INDEFINITE}


def _shared(words: Mapping[str, Token], others: Mapping[str, Token]) -> int:
    """Return the number of *words* that are among *others*, both given by their keys."""
    same = partial(_is_among, others=[*others.values()])
    return sum(key in others or same(word) for key, word in words.items())


def _is_among(word: Token, others: Iterable[Token]) -> bool:
    """Return whether *word* is one of *others*, a form or a synonym of one."""
    return _find_same(word, others, _is_same_word) is not None


def _is_same_word(one: Token, two: Token) -> bool:
    """Return whether two words are the same, synonyms, or forms of one long word: indent and indentation."""
    key, other = one.key, two.key
    if key[:1] == other[:1] and (key == other or len(key) >= _LONG_WORD <= len(other)):
        return key.startswith(other) or other.startswith(key) or _are_synonyms(one, two)
    return _are_synonyms(one, two)


def _is_same_or_inflected(one: Token, two: Token) -> bool:
    """Return whether two words are the same as `_is_same_word` tells, or one is the other with an ending."""
    if _is_same_word(one, two):
        return True
    shorter, longer = one.folded, two.folded
    if len(shorter) > len(longer):
        shorter, longer = longer, shorter
    return len(shorter) > 2 and longer.startswith(shorter) and longer[len(shorter) :] in _INFLECTIONS


def _find_same(
    word: Token, others: Iterable[Token], is_same: Callable[[Token, Token], bool] = _is_same_or_inflected
) -> Token | None:
    """Return the first of *others* that *is_same* as *word*, or a synonym with another first letter; None without."""
    first, group = word.folded[0], _SYNONYMS.get(word.key)
    for each in others:
        if first == each.folded[0]:
            if is_same(word, each):
                return each
        elif group is not None and group == _SYNONYMS.get(each.key):
            return each
    return None


#: Words in the place of any other.
_INDEFINITE = frozenset(["whatever", "whichever", "anything", "everything", "something", "thing", "things"])
#: The most content words of a statement that may be in the place of others; the letters of a word with other forms.
_MOST_REPLACED, _LONG_WORD = 2, 6
#: The endings of a word that its stem may hide: sign and signing, scan and scanned.
_INFLECTIONS = frozenset(["s", "es", "d", "ed", "ing", "ned", "ning", "n", "en"])
#: The fewest words and values of a statement that says much more than another.
_MANY = 6
#: The beginning of a text that sums up a session or another span of work.
_SUMS_UP = lazy(
    r"\W*(?:[\w-]+\W+){0,3}?(?:summary|recap|handover|handoff|wrap-up|zusammenfassung|resumen)\b", re.IGNORECASE
)
#: The most content words of a brief statement.
_BRIEF = 6
#: The most values of a kind in a text that are compared; the most tokens of texts that are aligned word by word, and
#: the share of common words from which they are.
_MOST, _LONGEST, _ALIGNED = 40, 100, 0.5
#: Amounts in different units are equal if they differ by this share at most, rough ones by that share.
_NEARLY, _ROUGHLY = Fraction(3, 100), Fraction(1, 10)
_KINDS = {"version": "version", "date": "date", "path": "name", "option": "name", "word": "name", "quote": "name"}
_NAME, _PARTS = lazy(r"\d|[_.:/+-]|[a-z][A-Z]"), lazy(r"[A-Z]*[a-z]+|[A-Z]+|\d+")
_ONLY = frozenset(["only", "nur", "solo", "solamente", "ausschliesslich", "exclusively"])
_NO_LONGER = NEGATIONS | {"longer", "mehr", "ya"}
_NO_PREFIX = ("un", "in", "dis", "non", "non-", "de", "des")
#: Opposite words. Those after the empty line stand before a word, and are compared where that is the same.
_OPPOSITES = """
enable enables enabled enabling / disable disables disabled disabling
allow allows allowed permitted permits permit / forbid forbids forbidden prohibited disallowed banned
required mandatory compulsory obligatory / optional voluntary
synchronous synchronously sync / asynchronous asynchronously async
always / never
public / private
internal internally / external externally
local locally / remote remotely
minimum min least / maximum max most
ascending / descending
static statically / dynamic dynamically
automatic automatically / manual manually hand
mutable / immutable
stateless / stateful
accept accepts accepted / reject rejects rejected refuse refuses refused
add adds added / remove removes removed
increase increases increased / decrease decreases decreased
first / last
oldest / newest
early earlier / late later
on / off
blocking / non-blocking nonblocking
uppercase / lowercase
strict / lenient
eager eagerly / lazy lazily
single-threaded / multi-threaded multithreaded
open offen / closed close geschlossen
erlaubt zulassig gestattet / verboten unzulassig untersagt
aktiviert / deaktiviert
pflicht verpflichtend obligatorisch / optional freiwillig
immer / nie niemals
offentlich / geheim
mindestens / hochstens
mundlich / schriftlich
permitido permitida permite permiten / prohibido prohibida prohibe
obligatorio obligatoria / opcional voluntario
siempre / nunca jamas
publico publica / privado privada
minimo / maximo
activado activada / desactivado desactivada

before / after
with / without
inside within / outside
above over / below under
up / down
vor / nach
mit / ohne
antes / despues tras
con / sin
"""
_WORDS, _PLACES = (
    [tuple(frozenset(side.split()) for side in line.split("/")) for line in part.splitlines()]
    for part in _OPPOSITES.strip().split("\n\n")
)
_OPPOSED = frozenset(word for pair in (*_WORDS, *_PLACES) for side in pair for word in side)
#: Words, by their stems, that a paraphrase puts for each other: each with the number of its group.
_SYNONYMS = {
    word: group
    for group, line in enumerate(
        """
        need requir must want expect
        us use employ util
        delet remov drop eras
        run execut launch start
        put plac sit liv stor keep kept hold stay go belong
        creat mak mad build generat produc
        writ written record log
        chang modif alter edit updat
        show display print list
        big larg hug
        fast quick rapid
        retur respond answ repl giv
        hap occur tak
        """.strip().splitlines()
    )
    for word in line.split()
}


@lru_cache(maxsize=256)
def _tokens_of(text: str) -> StatementTokens:
    return StatementTokens(text)


class _Pair(NamedTuple):
    kind: str
    one: Token
    two: Token
    shown: tuple[str, str]
    unit: str = ""


class _Comparison:
    """The comparison of two statements by rules, each of which yields pairs of tokens; no token is in two pairs."""

    def __init__(self, one: StatementTokens, two: StatementTokens) -> None:
        self._one, self._two = one, two

    def pairs(self) -> Iterator[_Pair]:
        """Yield the pairs of values that differ; values first, as they are surer than words."""
        used: set[int] = set()
        rules = (self._values, self._names, self._opposites, self._prefixed, self._negations, self._quotes)
        for rule in (*rules, self._capitalised, self._complements, self._aligned, self._turned):
            for pair in rule():
                if used.isdisjoint((id(pair.one), id(pair.two))):
                    used |= {id(pair.one), id(pair.two)}
                    yield pair
                    if pair.kind in ("negation", "antonym"):  # one negation explains its sentence
                        used |= {id(word) for word in self._one.words if word.sentence == pair.one.sentence}
                        used |= {id(word) for word in self._two.words if word.sentence == pair.two.sentence}

    def _common(self, one: Token, two: Token) -> int:
        """Return how many content words the sentences of two tokens share, without the tokens."""
        common = self._one.subjects[one.sentence] & self._two.subjects[two.sentence]
        return len(common - {one.key, two.key} - one.slots - two.slots)

    def _values(self) -> Iterator[_Pair]:
        sides = self._one.tokens, self._two.tokens
        yield from self._unmatched(*([token for token in side if token.amount is not None] for side in sides))
        for kind in ("version", "date", "address", "ratio", "path", "option"):
            if kind in self._one.by_kind and kind in self._two.by_kind:
                yield from self._unmatched(self._one.by_kind[kind], self._two.by_kind[kind])

    def _names(self) -> Iterator[_Pair]:
        """Yield names of one form that share a part: eu-west-1 and eu-west-2."""
        sides = self._one.words, self._two.words
        yield from self._unmatched(*([word for word in side if _NAME.search(word.text)] for side in sides))

    def _unmatched(self, ones: list[Token], twos: list[Token]) -> Iterator[_Pair]:
        """Yield pairs of values of one slot, of those that have no equal in the other text, the nearest first."""
        if not ones or not twos or max(len(ones), len(twos)) > _MOST:
            return  # nothing to compare, or a table
        ones, twos = (
            [token for token in ones if not any(_is_equal(token, two) for two in twos)],
            [token for token in twos if not any(_is_equal(one, token) for one in ones)],
        )
        is_single = len(ones) == len(twos) == 1
        ranked = [
            (self._distance(one, two), one, two) for one in ones for two in twos if self._is_slot(one, two, is_single)
        ]
        paired: set[int] = set()
        for _, one, two in sorted(ranked, key=lambda each: each[0]):
            if not paired.isdisjoint((id(one), id(two))):
                continue
            paired |= {id(one), id(two)}
            yield _Pair(_KINDS.get(one.kind, "number"), one, two, *self._phrase(one, two))

    def _distance(self, one: Token, two: Token) -> tuple[int, int, int, int]:
        clauses = (side.clauses.get(token.clause, []) for side, token in ((self._one, one), (self._two, two)))
        of_one, of_two = ({word.key for word in clause} for clause in clauses)
        return -len(of_one & of_two), -self._common(one, two), one.start, two.start

    def _is_slot(self, one: Token, two: Token, is_single: bool) -> bool:
        """Return whether two values are of one slot; *is_single* if no other values may be."""
        common = self._common(one, two)
        if one.kind == "word" and (_shape(one.text) != _shape(two.text) or is_unit(one)):
            return False
        if one.kind == "word" and not {*_PARTS.findall(one.text)} & {*_PARTS.findall(two.text)}:
            return False
        if one.kind == "option" and (one.text[1] == "-") != (two.text[1] == "-"):
            return False  # the short and the long form may be one option
        if one.kind in ("option", "path") and (one.key.startswith(two.key) or two.key.startswith(one.key)):
            return False
        if one.slots & two.slots:
            return common > 0 or is_single
        if one.kind in ("version", "date"):
            return common > 1
        sides = (self._one, one), (self._two, two)
        return is_single and common > 0 and one.amount != two.amount and all(_is_lone(*side) for side in sides)

    def _phrase(self, one: Token, two: Token) -> tuple[tuple[str, str], str]:
        """Return both values as they are shown, and the unit after both."""
        if one.amount is None or two.amount is None or not (one.unit or two.unit):
            return (one.text, two.text), ""
        if one.unit == two.unit and one.unit in ("$", "€", "£"):
            return (one.unit + one.text, two.unit + two.text), ""
        units = [self._one.unit(one, one.slots & two.slots), self._two.unit(two, one.slots & two.slots)]
        if [*map(stem, units[0].split())] == [*map(stem, units[1].split())]:
            return (one.text, two.text), max(units, key=lambda unit: (len(unit), unit))
        return (f"{one.text} {units[0]}".rstrip(), f"{two.text} {units[1]}".rstrip()), ""

    def _opposites(self) -> Iterator[_Pair]:
        ones, twos = (_OPPOSED.intersection([word.folded for word in side.words]) for side in (self._one, self._two))
        if not ones or not twos:
            return
        for opposites in (_WORDS, _PLACES):
            for pair in opposites:
                for left, right in (pair, pair[::-1]):
                    if not (left.isdisjoint(ones) or right.isdisjoint(twos)):
                        yield from self._opposite(left, right, opposites is _PLACES)

    def _opposite(self, left: frozenset[str], right: frozenset[str], is_place: bool) -> Iterator[_Pair]:
        """Yield words of *left* in the first text and of *right* in the second, unless a text has words of both."""
        ones, twos = ([word for word in side.words if word.folded in left | right] for side in (self._one, self._two))
        if {word.folded for word in ones} - left or {word.folded for word in twos} - right:
            return
        for one in ones[:_MOST]:
            for two in twos[:_MOST]:
                if is_place:
                    after = [side.content_after(word) for side, word in ((self._one, one), (self._two, two))]
                    is_same = after[0] is not None and after[1] is not None and after[0].key == after[1].key
                else:
                    is_same = _is_adverb(self._one, one) and _is_adverb(self._two, two)
                if is_same and self._common(one, two) and not self._is_one_negated(one, two):
                    yield _Pair("antonym", one, two, (one.text, two.text))

    def _prefixed(self) -> Iterator[_Pair]:
        """Yield words that differ in a prefix such as "un" only."""
        for plain, contrary in ((self._one, self._two), (self._two, self._one)):
            if not any(word.folded.startswith(_NO_PREFIX) for word in contrary.content):
                continue
            long_words = (word for word in plain.content if len(word.folded) > 3 and not plain.may_turn(word))
            for word, prefix in product(long_words, _NO_PREFIX):
                for other in contrary.content_named(prefix + word.folded):
                    one, two = (word, other) if plain is self._one else (other, word)
                    if not self._is_one_negated(one, two):
                        yield _Pair("antonym", one, two, (one.text, two.text))

    def _is_one_negated(self, one: Token, two: Token) -> bool:
        return (self._one.negation(one) is None) != (self._two.negation(two) is None)

    def _negations(self) -> Iterator[_Pair]:
        """Yield a word that one text negates and the other has in a sentence that nothing turns round."""
        if not (self._one.is_negated or self._two.is_negated):
            return
        for one in self._one.content:
            for two in self._two.content_with(one.key):
                if not self._common(one, two):
                    continue
                negations = [
                    [token] if (token := side.negation(word)) else []
                    for side, word in ((self._one, one), (self._two, two))
                ]
                if bool(negations[0]) == bool(negations[1]):
                    continue
                if not (self._two.may_turn(two) if negations[0] else self._one.may_turn(one)):
                    yield _Pair("negation", one, two, (_joined(negations[0], one), _joined(negations[1], two)))

    def _turned(self) -> Iterator[_Pair]:
        """Yield what turns round or limits one of two texts with the same words, and list members that one lacks."""
        for turn in turns(self._one, self._two, _find_same):
            yield _Pair(*turn)

    def _quotes(self) -> Iterator[_Pair]:
        """Yield the quoted words of both texts if each has quoted words that the other has not."""
        left = [quote for quote in self._one.quotes if quote.key not in self._two.folded]
        right = [quote for quote in self._two.quotes if quote.key not in self._one.folded]
        if len(left) == len(right) == 1 and self._common(left[0], right[0]):
            yield _Pair("name", left[0], right[0], (left[0].text, right[0].text))

    def _capitalised(self) -> Iterator[_Pair]:
        """Yield the names in which texts with the same other words differ: "Ana is the owner", "the owner is Ben".

        Of two names of several words, one text may have more of the other words.
        """
        runs = [
            [run for run in side.capitalised if not any(self._is_in(word, other) for word in run)]
            for side, other in ((self._one, self._two), (self._two, self._one))
        ]
        if [*map(len, runs)] != [1, 1]:
            return
        left, right = runs[0][0], runs[1][0]
        rests = [
            {word.key for word in side.content} - {word.key for word in run}
            for side, run in ((self._one, left), (self._two, right))
        ]
        are_whole = len(left) > 1 and len(right) > 1 and (rests[0] <= rests[1] or rests[1] <= rests[0])
        if all(rests) and (rests[0] == rests[1] or are_whole):
            yield _Pair("name", left[0], right[0], (_joined(left[1:], left[0]), _joined(right[1:], right[0])))

    def _is_in(self, word: Token, other: StatementTokens) -> bool:
        return _is_among(word, other.content)

    def _complements(self) -> Iterator[_Pair]:
        """Yield the words after the same verb and preposition: "formatted with Black" and "formatted with ruff"."""
        twos = dict(self._two.complements())
        for slot, one in self._one.complements():
            two = twos.get(slot)
            if two is None or one.folded in self._two.folded or two.folded in self._one.folded:
                continue
            if self._common(one, two) > 1:
                yield _Pair("name", one, two, (one.text, two.text))

    def _aligned(self) -> Iterator[_Pair]:
        """Yield the words that stand in the place of others where the texts around them are the same."""
        ones, twos = self._one.tokens, self._two.tokens
        if max(len(ones), len(twos)) > _LONGEST:
            return
        matcher = SequenceMatcher(None, [token.key for token in ones], [token.key for token in twos], autojunk=False)
        if matcher.ratio() < _ALIGNED:
            return
        for name, begin, end, start, stop in matcher.get_opcodes():
            left, right = ones[begin:end], twos[start:stop]
            if name != "replace":
                if name != "equal" and end < len(ones) and stop < len(twos) and (kind := _limit(left or right)):
                    shown = _joined(left, ones[end]), _joined(right, twos[stop])
                    yield _Pair(kind, ones[end], twos[stop], shown)
                continue
            left = [token for token in left if is_content(token) and not is_unit(token)]
            right = [token for token in right if is_content(token) and not is_unit(token)]
            if len(left) != 1 or len(right) != 1 or _are_synonyms(left[0], right[0]):
                continue
            if self._is_in(left[0], self._two) or self._is_in(right[0], self._one):
                continue
            if not self._is_one_negated(left[0], right[0]):
                yield _Pair("name", left[0], right[0], (left[0].text, right[0].text))


def _is_lone(statement: StatementTokens, token: Token) -> bool:
    """Return whether a value is a number or count without unit, and the only one of its sentence."""
    is_count = token.amount is not None and not has_dimension(token)
    same = (each for each in statement.tokens if each.amount is not None and each.sentence == token.sentence)
    return is_count and all(each is token for each in same)


def _limit(tokens: Sequence[Token]) -> str | None:
    """Return the kind of the difference that *tokens* make where they are the only words more; None for others."""
    folded = {token.folded for token in tokens}
    if len(tokens) == 1 and folded <= _ONLY:
        return "antonym"
    return "negation" if folded & NEGATIONS and folded <= _NO_LONGER else None


def _joined(limits: Sequence[Token], word: Token) -> str:
    """Return *word* with the words that limit or negate it, in the order of the text."""
    return " ".join(token.text for token in sorted((*limits, word), key=lambda token: token.start))


def _is_adverb(statement: StatementTokens, word: Token) -> bool:
    """Return whether *word* is not the preposition "on" or "off": it ends its clause or stands before a preposition."""
    if word.folded not in ("on", "off"):
        return True
    after = statement.after(word)
    return after is None or after.folded in PREPOSITIONS


def _shape(name: str) -> str:
    return re.sub(r"\d+", "9", re.sub(r"[a-z]+", "a", re.sub(r"[A-Z]+", "A", name)))


def _are_synonyms(one: Token, two: Token) -> bool:
    group = _SYNONYMS.get(one.key)
    return group is not None and group == _SYNONYMS.get(two.key)


def _is_equal(one: Token, two: Token) -> bool:
    if one.amount is None or two.amount is None:
        return one.key == two.key
    if not one.slots & two.slots and one.unit and two.unit:
        return False
    if one.amount == two.amount:
        return True
    low, high = sorted((one.amount, two.amount))
    share = _ROUGHLY if one.is_rough or two.is_rough else _NEARLY if stem(one.unit) != stem(two.unit) else 0
    return bool(share) and high - low <= high * share
