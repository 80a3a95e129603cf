"""What turns a statement round or limits it: negations, ends, exceptions, conditions, members of its lists. Pure.

Two statements with the same words say opposite things if one of them has one of these and the other has not: "Retry
payouts" and "Do not retry payouts", "All services use TLS" and "All services except billing use TLS". Each rule yields
a word of either text and what is shown of both; it applies only to texts that share nearly all words of the briefer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import dropwhile, product, takewhile
from typing import NamedTuple

from jidomem.base.containers import grouped
from jidomem.base.regex import lazy
from jidomem.records.tokens import (
    ARTICLES,
    COMPARED,
    ENDS,
    NEGATIONS,
    PREPOSITIONS,
    THAN,
    TURNS,
    StatementTokens,
    Token,
    fold,
    is_content,
    is_period,
    is_unit,
    stem,
    words_of,
)

#: Returns the first of some words that may stand for a word; None if none may.
FindSame = Callable[[Token, Iterable[Token]], Token | None]


class Contrast(NamedTuple):
    """A word of the first text and one of the second, and what is shown of both."""

    kind: str
    one: Token
    two: Token
    shown: tuple[str, str]


class _Part(NamedTuple):
    """A sentence, or a whole text: its words, its content words, and the signs that turn it."""

    words: Sequence[Token]
    content: Sequence[Token]
    signs: Sequence[Token]


#: The most content words of a text, and the most sentences, that are compared; the share of the words of the briefer
#: that the other has at least.
_MOST, _MOST_SENTENCES, _CLOSE = 60, 6, 0.75
#: The most words of a list member, or after an exception, that are shown.
_SHOWN = 2
#: Words that end what follows them: surely, or if the other text says nothing instead.
_STOPPED = lazy(r"(?:stop|ceas|quit|refrain|aufgehor|aufgegeb)")
_ENDED = lazy(
    r"(?:abandon|abolish|avoid|away$|ban(?:s|ned)?$|cancel|discontinu|disallow|drop|forbid|forbad|prohibit|refus|reject|remov"
    r"|retir|skip|instead|rather|abgeschaff|entfern|eingestell|verbot|verzicht|prohib|elimin|descart|abandon|evit|dej)"
)
_PAIRS = frozenset(
    pair
    for one, two in (("gave give given giving gives", "up"), ("replaced ersetzt reemplazado", "by with durch por"))
    for pair in product(one.split(), two.split())
)
_UP = frozenset(one for one, two in _PAIRS if two == "up")
#: Words that say little beside another: "we use Redis", "USD is supported".
_WEAK = frozenset(
    map(
        stem,
        words_of("""
    use uses used using utilize support supported supports allow allowed exist exists available enabled work works true
    case longer more any anymore ever please want always make sure ensure
    benutzen benutzt nutzen nutzt verwenden verwendet mehr langer immer usar usa usamos utiliza siempre
    """),
    )
)
_LIMITS = {
    "no exception": lazy(
        r"\b(?:except(?:ing|ion)?|exclud\w+|apart from|other than|save for|but for|barring|außer|ausser|ausgenommen"
        r"|excepto|salvo|a excepción|aparte de)\b"
    ),
    "no condition": lazy(r"\b(?:unless|es sei denn|sofern nicht|a menos que|a no ser que)\b"),
    "all": lazy(r"\b(?:half|(?:a|one) (?:quarter|third)|(?:two|three) (?:thirds|quarters)|most|some|few|part) of\b"),
    "not only": lazy(
        r"\b(?:only|solely|exclusively|alone|nur|ausschließlich|lediglich|sólo|solo|solamente|únicamente)\b"
    ),
}
_ALL_BUT = lazy(r"\b(?:all|any|every\w*|each|jede\w*|alle\w*|todos?|todas?)\b[^.;:]*?(?<![\s,;])(?P<but> but )")
#: Verbs that end their object: in the past, or in the present of what "we" do; some with a particle.
_DROPS = (
    "stop(?:ped|ping)?|ceased?|quit|abandon(?:ed)?|abolish(?:ed)?|cancell?(?:ed)?|discontinued?|decommission(?:ed)?"
    "|deprecated?|ditch(?:ed)?|drop(?:ped)?|removed?|retired?|scrap(?:ped)?|sunset|uninstall(?:ed)?|terminated?|got|gave"
    "|phased?|shut|turned|switched|aufgegeben|abgeschafft|eingestellt|entfernt|abandonamos|eliminamos|descartamos|dejamos"
    "|abandonado|eliminado|descartado"
)
_DROP = lazy(f"(?:{_DROPS})$")
_PARTICLES = {
    "got": "rid", "gave": "up", "phase": "out", "phased": "out", "shut": "down", "turned": "off", "switched": "off",
    "dejamos": "de",
}  # fmt: skip
_OVER = words_of("gone deprecated discontinued decommissioned retired abandoned sunset weg abgeschafft eliminado")
_CHANGED = words_of("""
    moved moving migrated migrating switched switching changed transitioned converted
    gewechselt umgestellt umgestiegen umgezogen migriert migramos migrado cambiamos cambiado pasamos
""")
_EXCHANGED = words_of("replaced replaces superseded supersedes ersetzt abgelost reemplazado reemplaza sustituido")
_INSTEAD = frozenset([("instead", "of"), ("rather", "than")])
#: The beginnings of words that may end something, as they are and as stems.
MAY_END = lazy(
    rf"\b(?:(?:{_DROPS}|don|gone|longer|mehr|n[eo]|never|no[rt]|off|weg|ya)\b|aband|aufgeg|ceas|chang|convert|decom|deprec"
    r"|descart|discon|don't|eliminad|ersetzt|gewechs|instead|migr|moved|move\b|moving|nicht|niemand|pasam|phase|rather|reemp"
    r"|remov|replac|retir|supersed|sustit|switch|termin|transit|umge|without)"
)
_FROM = words_of("from off von")
_BY, _TO = words_of("by with durch por"), words_of("to onto into zu auf nach a by with durch por")
_IS, _WAS = words_of("is are ist sind es son"), words_of("was were been got wurde wurden worden fue fueron sido")
_WE = words_of("we wir they")
#: Little words before an object, and words that say that something was so only once.
_BEFORE_OBJECT = PREPOSITIONS | words_of("is are has have through inside over ist sind hat haben son tiene usando")
_ONCE = words_of("until till formerly previously earlier bis fruher antes hasta")
#: Verbs of use, and words of an end that do not say where it applies.
_USE = words_of("""
    use uses used using utilize support supported supports available enabled
    benutzen benutzt nutzen nutzt verwenden verwendet usar usa usamos utiliza utilizamos
""")
_ANYWHERE = (
    _IS
    | _WAS
    | words_of("""
    last next week month year quarter spring summer autumn winter today yesterday recently finally completely entirely
    altogether fully already again now soon team company project everyone good away favour place january february march
    april may june july august september october november december
""")
)
_AND = r"(?:and|or|und|oder|y|e|o|u|as well as|plus|sowie)"
_LINK = lazy(rf"\s*(?:[,;]\s*(?:{_AND}\s+)?|\s{_AND}\s+|&\s*|/\s*)(?:(?:the|a|an|der|die|das|den|el|la|los|las)\s+)?")
_ALSO = frozenset(["only", "just", "nur", "solo", "solamente"])


def turns(one: StatementTokens, two: StatementTokens, find_same: FindSame) -> Iterator[Contrast]:
    """Yield how two near statements with the same words differ in what turns or limits them, or in list members."""
    if max(len(one.content), len(two.content)) > _MOST:
        return
    yield from _negated(one, two, find_same)
    yield from ended(one, two)
    for own, other, is_swapped in ((one, two, False), (two, one, True)):
        for found in (*_limited(own, other, find_same), *_added(own, other, find_same)):
            yield Contrast(found.kind, found.two, found.one, found.shown[::-1]) if is_swapped else found


def _negated(one: StatementTokens, two: StatementTokens, find_same: FindSame) -> Iterator[Contrast]:
    whole = _whole(one), _whole(two)
    if not (whole[0].signs or whole[1].signs):
        return
    for first in _parts(one):
        for second in _parts(two):
            left, right = _without_shared(first, second), _without_shared(second, first)
            if len(left.signs) % 2 == len(right.signs) % 2:
                continue
            least = 1 if _are_close(whole[0].content, whole[1].content, find_same) else 2
            if not _are_close(left.content, right.content, find_same, least):
                continue
            turned, plain, texts = (left, right, (one, two)) if len(left.signs) % 2 else (right, left, (two, one))
            if _has_turn_of_its_own(plain.words, texts[0]):
                continue
            if _is_weak_sign(turned.signs[0]) and not _are_within(plain.content, turned.content, find_same):
                continue
            for word in _turned_words(turned, turned.signs[0]):
                if same := find_same(word, plain.content):
                    sides = _shown(turned.signs[0], word), same.text
                    yield (
                        Contrast("negation", word, same, sides)
                        if turned is left
                        else Contrast("negation", same, word, sides[::-1])
                    )
                    return  # one is enough: the statement is turned round
    yield from _exchanged(whole[0], whole[1], find_same)


def _exchanged(left: _Part, right: _Part, find_same: FindSame) -> Iterator[Contrast]:
    """Yield the word that the first text negates and the second has, if it also is the other way round with another.

    "Integers, never floats" and "floats, never integers".
    """
    negated = [
        [word for sign in part.signs if sign.folded in NEGATIONS for word in _turned_words(part, sign)]
        for part in (left, right)
    ]
    found = [
        [(word, same) for word in mine if not find_same(word, others) and (same := find_same(word, part.content))]
        for mine, others, part in ((negated[0], negated[1], right), (negated[1], negated[0], left))
    ]
    if not found[0] or not found[1]:
        return
    if _are_within(left.content, right.content, find_same) and _are_within(right.content, left.content, find_same):
        word, same = found[0][0]
        sign = next(sign for sign in left.signs if word in _turned_words(left, sign))
        yield Contrast("negation", word, same, (_shown(sign, word), same.text))


def _shown(sign: Token, word: Token) -> str:
    return " ".join(each.text for each in sorted((sign, word), key=lambda each: each.start))


def _is_weak_sign(sign: Token) -> bool:
    """Return whether *sign* ends a thing only if the other text says nothing instead: "drops", but not "never"."""
    return sign.folded not in NEGATIONS and sign.folded not in _UP and not _STOPPED.match(sign.folded)


#: A statement is compared with several others, and as long as `differences` caches its tokens.
_cached = lru_cache(maxsize=256)


@_cached
def _whole(statement: StatementTokens) -> _Part:
    return _part(statement.words)


@_cached
def _parts(statement: StatementTokens) -> Sequence[_Part]:
    sentences = grouped((word.sentence, word) for word in statement.words)
    if len(sentences) == 1:
        return [_whole(statement)]
    return [_part(words) for words in [*sentences.values()][:_MOST_SENTENCES]]


def _part(words: Sequence[Token]) -> _Part:
    signs = [word for at, word in enumerate(words) if _is_sign(words, at)]
    content = [word for word in words if is_content(word) and word not in signs and not _is_weak(word)]
    return _Part(words, content, signs)


def _without_shared(part: _Part, other: _Part) -> _Part:
    """Return *part* without the signs that *other* has as well: they turn nothing round, and are words as others."""
    shared = {word.key for word in part.signs} & {word.key for word in other.signs}
    if not shared:
        return part
    signs = [word for word in part.signs if word.key not in shared]
    words = [word for word in part.words if word in part.content or (word in part.signs and word not in signs)]
    return _Part(part.words, words, signs)


def _is_sign(words: Sequence[Token], at: int) -> bool:
    """Return whether the word at this place turns a statement round: "no longer", but not "no longer than"."""
    word = words[at]
    after = [each.folded for each in words[at + 1 : at + 3] if each.clause == word.clause]
    if word.folded in NEGATIONS:
        is_limit = bool(after) and after[0] in COMPARED and after[-1] in THAN
        return not (is_limit or (after and after[0] in _ALSO) or word.folded in ("nor", "nothing"))
    if word.folded in ENDS or _STOPPED.match(word.folded) or _ENDED.match(word.folded):
        return True
    return (word.folded, *after[:1]) in _PAIRS


def _is_weak(word: Token) -> bool:
    return word.key in _WEAK or word.folded == "up"


def _turned_words(part: _Part, sign: Token) -> list[Token]:
    """Return the words that *sign* may turn round: the next that says something in its clause, or the last before it.

    A negation turns round what follows, if anything does.
    """
    clause = [word for word in part.content if word.clause == sign.clause]
    after = [word for word in clause or part.content if word.start > sign.start][:1]
    before = [word for word in clause if word.start < sign.start][-1:]
    return after if after and sign.folded in NEGATIONS else after + before


def _has_turn_of_its_own(words: Sequence[Token], other: StatementTokens) -> bool:
    """Return whether *words* have one that may turn them round and that the other text has not."""
    turning = [word.key for word in words if word.folded in NEGATIONS or TURNS.match(word.folded)]
    return bool(turning) and not {word.key for word in other.words}.issuperset(turning)


class _End(NamedTuple):
    """The end of a thing: its sign, the words of its name, and the keys of the words that say where it ended."""

    signs: Sequence[Token]
    name: Sequence[Token]
    scope: frozenset[str]


def ended(one: StatementTokens, two: StatementTokens) -> Iterator[Contrast]:
    """Yield the thing that one of two statements ends and the other uses: "We moved off Redis", "We use Redis".

    What ended for some things alone did not end for others: "Billing moved off Redis", "Sessions are kept in Redis".
    """
    for end in _ends(one):
        if used := _use(two, end):
            yield Contrast("negation", end.name[0], used[0], (_text_of(*end.signs, *end.name), _text_of(*used)))
            return
    for end in _ends(two):
        if used := _use(one, end):
            yield Contrast("negation", used[0], end.name[0], (_text_of(*used), _text_of(*end.signs, *end.name)))
            return


def _text_of(*tokens: Token) -> str:
    return " ".join(token.text for token in sorted(tokens, key=lambda each: each.start))


@_cached
def _ends(statement: StatementTokens) -> Sequence[_End]:
    ends: list[_End] = []
    if not MAY_END.search(statement.folded):
        return ends
    for clause in grouped((token.clause, token) for token in statement.tokens).values():
        folded = [token.folded for token in clause]
        for at in range(len(clause)):
            signs, name = _end_at(clause, folded, at)
            if name:
                known = {*name, *signs}
                if _is_exchange(folded, at):  # what takes its place says nothing of where it ended
                    known |= {*_name_before(clause, at)}
                last = clause.index(name[-1])
                new = next((place for place in range(last, len(clause)) if folded[place] in _TO), len(clause))
                rest = (word.key for word in clause[:new] if word not in known and _is_name(word))
                ends.append(_End(signs, name, frozenset(rest)))
    return ends


def _is_exchange(folded: Sequence[str], at: int) -> bool:
    return folded[at] in _EXCHANGED or (*folded[at : at + 2],) in _INSTEAD


def _end_at(clause: Sequence[Token], folded: Sequence[str], at: int) -> tuple[Sequence[Token], Sequence[Token]]:
    """Return the signs of an end that begin at this place of a clause, and the words of what ends; empty without."""
    word, before, after = folded[at], folded[at - 1] if at else "", folded[at + 1] if at + 1 < len(clause) else ""
    if _is_exchange(folded, at):
        if after in _BY:
            return clause[at : at + 1], _name_before(clause, at)
        name = _name_after(clause, at + 1 + (word not in _EXCHANGED))
        is_other = word not in _EXCHANGED or "with" in folded or (name and name[0].text[0].isupper())
        return clause[at : at + 1], name if is_other else ()
    source = next((place for place, each in enumerate(folded) if each in _FROM), 0) if word in _CHANGED else 0
    if source and before not in _IS and (name := _name_after(clause, source + 1)):
        return (clause[at], clause[source]), name
    if (word, after) == ("nicht", "mehr") and not _USE.isdisjoint(folded):
        return clause[at : at + 2], _name_before(clause, at)
    if word in NEGATIONS or word == "ya":
        use = next((place for place in range(at + 1, min(at + 4, len(clause))) if folded[place] in _USE), None)
        if use is None or (after in COMPARED and not THAN.isdisjoint(folded[at + 2 : at + 3])):
            return (), ()
        return clause[at : use + 1], _name_after(clause, use) or _name_before(clause, at)
    if word not in _OVER and (not _DROP.match(word) or _PARTICLES.get(word, after) != after):
        return (), ()
    start = at + 1 + (word in _PARTICLES)
    if before in _IS | _WAS:
        return clause[at:start], _name_before(clause, at) if before in _WAS or word in _OVER else ()
    if not at or before in _WE or word.endswith(("ed", "ing", "t", "ve", "amos")):
        return clause[at:start], _name_after(clause, start + folded[start : start + 1].count("of"))
    return (), ()


def _is_name(word: Token) -> bool:
    return (is_content(word) or is_period(word)) and not _is_weak(word) and word.folded not in _ANYWHERE


def _name_after(clause: Sequence[Token], place: int) -> Sequence[Token]:
    """Return the words that say something from this place on, after words of use and articles.

    There are none if an action follows ("stopped paying"), or a number or version is beside them ("Postgres 14").
    """
    rest = [*dropwhile(lambda word: _is_weak(word) or word.folded in ARTICLES, clause[place:])]
    name = [*takewhile(_is_name, rest)]
    is_version = any(word.kind not in ("word", "date") for word in rest[len(name) : len(name) + 1])
    return () if is_version or (name and name[0].folded.endswith("ing")) else name


def _name_before(clause: Sequence[Token], place: int) -> Sequence[Token]:
    """Return the words that say something before the verb at this place; none if a preposition is before them."""
    rest = [*dropwhile(_is_filler, clause[:place][::-1])]
    name = [*takewhile(_is_name, rest)]
    before = next((word.folded for word in rest[len(name) :] if word.folded not in ARTICLES), "")
    return () if before in PREPOSITIONS else name[::-1]


def _is_filler(word: Token) -> bool:
    return word.kind == "word" and not _is_name(word) and word.folded not in PREPOSITIONS


def _use(statement: StatementTokens, end: _End) -> Sequence[Token]:
    """Return the words of what ended where a statement uses it; empty if it does not."""
    keys, size = [word.key for word in end.name], len(end.name)
    words = [token.key for token in statement.tokens]
    if not {*keys} <= {*words} or (end.scope and end.scope.isdisjoint(words)):
        return ()
    for clause in grouped((token.clause, token) for token in statement.tokens).values():
        for at in range(len(clause) - size + 1):
            if [word.key for word in clause[at : at + size]] == keys and _is_used(clause, at, at + size):
                return clause[at : at + size]
    return ()


def _is_used(clause: Sequence[Token], start: int, end: int) -> bool:
    """Return whether the words from *start* to *end* are the object of a verb or a preposition, without an end."""
    folded = [word.folded for word in clause]
    if any(word in _ONCE or _is_sign(clause, at) or _end_at(clause, folded, at)[1] for at, word in enumerate(folded)):
        return False
    if end < len(clause) and _is_name(clause[end]):
        return False  # it is a part of another name
    before = [word for word in clause[:start] if word.folded not in ARTICLES]
    if not before:
        return not _USE.isdisjoint(folded[end : end + 3])
    is_after_verb = clause[start].text[0].isupper() and before[-1].text.islower() and is_content(before[-1])
    is_after_verb = is_after_verb or (len(before) > 1 and before[-2].folded in _WE)
    return before[-1].folded in _USE | _BEFORE_OBJECT or is_after_verb


def _limited(own: StatementTokens, other: StatementTokens, find_same: FindSame) -> Iterator[Contrast]:
    """Yield the exception, condition or "only" of the first text that the second has not."""
    limit, but = _limits(own)
    if not (limit or but) or _limits(other)[0] or not other.content or _has_turn_of_its_own(other.words, own):
        return
    if limit and _are_close(_whole(own).content, _whole(other).content, find_same):
        yield _limit(own, other, limit[1].start(), limit[1].end(), limit[0], find_same)
    elif but and _are_within(_whole(other).content, _whole(own).content, find_same):
        yield _limit(own, other, but.start("but") + 1, but.end("but") - 1, "no exception", find_same)


@_cached
def _limits(statement: StatementTokens) -> tuple[tuple[str, re.Match[str]] | None, re.Match[str] | None]:
    """Return the first exception, condition or "only" of a text with what stands for none of it, and its "all but"."""
    text = statement.text.lower()
    matches = ((instead, match) for instead, pattern in _LIMITS.items() if (match := pattern.search(text)))
    return next(matches, None), _ALL_BUT.search(text)


def _limit(
    own: StatementTokens, other: StatementTokens, start: int, end: int, instead: str, find_same: FindSame
) -> Contrast:
    """Return the difference that the sign from *start* to *end* of the first text makes."""
    after = [token for token in own.tokens if token.start >= end - 1][:_SHOWN]
    word = next((each for each in after if is_content(each)), after[0] if after else own.content[0])
    same = find_same(word, other.content) or other.content[0]
    kind = "antonym" if instead == "not only" else "negation"
    return Contrast(kind, word, same, (f"{own.text[start:end]} {word.text}", instead))


def _added(own: StatementTokens, other: StatementTokens, find_same: FindSame) -> Iterator[Contrast]:
    """Yield the member of a list of the first text that the second lacks, which has the other words of the first."""
    items, others = _items(own), _items(other)
    if not others:
        return
    known = _among(items, others, find_same)
    for at, item in enumerate(items):
        if known[at]:
            continue
        before = at and known[at - 1] and _LINK.fullmatch(_between(own, items[at - 1], item))
        after = at + 1 < len(items) and known[at + 1] and _LINK.fullmatch(_between(own, item, items[at + 1]))
        if not before and not after:
            continue
        rest = [each for place, each in enumerate(items) if place != at]
        found = _shared(others, rest, find_same)
        if found >= max(2, _CLOSE * len(others)) and sum(known) >= _CLOSE * len(rest):
            partner = items[at - 1] if before else items[at + 1]
            same = next(each for each in others if _is_equal(partner, each, find_same))
            yield Contrast("name", item, same, (item.text, f"without {item.text}"))


@_cached
def _items(statement: StatementTokens) -> Sequence[Token]:
    return [
        token for token in statement.tokens
        if (is_content(token) and not _is_weak(token) and not is_unit(token)) or token.kind not in ("word", "number")
    ]  # fmt: skip


def _between(statement: StatementTokens, one: Token, two: Token) -> str:
    return fold(statement.text[one.start + len(one.text) : two.start])


def _is_equal(one: Token, two: Token, find_same: FindSame) -> bool:
    return find_same(one, (two,)) is not None if one.kind == two.kind == "word" else one.key == two.key


def _are_close(one: Sequence[Token], two: Sequence[Token], find_same: FindSame, least: int = 2) -> bool:
    """Return whether two texts share nearly all words of the briefer, at least *least* or all of them."""
    briefer, longer = sorted((one, two), key=len)
    shared = _shared(briefer, longer, find_same)
    return shared >= _CLOSE * len(briefer) and shared >= min(least, len(briefer)) and shared > 0


def _are_within(words: Sequence[Token], others: Sequence[Token], find_same: FindSame) -> bool:
    return bool(words) and _shared(words, others, find_same) == len(words)


def _shared(words: Collection[Token], others: Collection[Token], find_same: FindSame) -> int:
    return sum(_among(words, others, find_same))


def _among(words: Iterable[Token], others: Collection[Token], find_same: FindSame) -> list[bool]:
    """Return for each of *words* whether it is among *others*."""
    keys, plain = {each.key for each in others}, [each for each in others if each.kind == "word"]
    return [word.key in keys or (word.kind == "word" and find_same(word, plain) is not None) for word in words]
