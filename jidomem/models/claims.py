"""What people say of themselves in English, found by rule: likes, work, home, belongings, plans and deeds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jidomem.models.summary import sentences
from jidomem.models.wordings import ASKS, RULES, Rule
from jidomem.words import TELL_LITTLE, words


@dataclass(frozen=True, slots=True)
class Claim:
    """What a sentence says of its speaker: a statement without a subject, and the trait it shows if it lasts."""

    text: str
    confidence: float
    trait: str | None = None
    value: str = ""
    private: bool = False


_SPELLED = (
    (re.compile("[’‘´`]"), "'"),
    (re.compile(r"\bI'?m\b", re.IGNORECASE), "I am"),
    (re.compile(r"\bI'?ve\b", re.IGNORECASE), "I have"),
    (re.compile(r"\bI'll\b", re.IGNORECASE), "I am going to"),
    (re.compile(r"\bI'd\b", re.IGNORECASE), "I would"),
    (re.compile(r"\b(?:can't|cant|can not)\b", re.IGNORECASE), "cannot"),
    (re.compile(r"\bwon't\b", re.IGNORECASE), "will not"),
    (
        re.compile(r"\b(do|does|did|is|are|was|were|have|has|had|would|could|should)(?:n't|nt)\b", re.IGNORECASE),
        r"\1 not",
    ),
    (re.compile(r"\bmy name's\b", re.IGNORECASE), "my name is"),
)
_END = re.compile(
    r"[;:!?()\[\]—–\"]|\.(?!\w)|,(?!\d)|\s-\s|\s(?:but|because|so|since|although|though|which|if"
    r"|and (?:I|it|we|he|she|they|you|my)|and that|and then|when I|where I|as I|while I|lol|haha)(?=[\s']|$)",
    re.IGNORECASE,
)
_OPENS = re.compile(r"\b(?:I|we|my|call me|keep|be|always|never|remember|note|do not forget)\b", re.IGNORECASE)
#: What points to something said elsewhere, or to whom it is said, tells nothing by itself.
_POINTS = re.compile(
    r"(?:it|that|this|you|your|yours|them|those|these|how|what|there|here|the way|to (?:hear|see|know)|so much|too"
    r"|a lot|make sure|let you|thank|ask)\b",
    re.IGNORECASE,
)
#: An "I" after another word than these stands in what says more of that word: "the parade I went to".
_BEFORE_I = re.compile(
    r"(?:^|[^\w\s'’]\s*|\b(?:and|but|so|that|then|because|since|as|when|while|though|although|or|yeah|yes|yep|well|oh|hey|hi"
    r"|today|yesterday|tomorrow|tonight|now|days?|weeks?|months?|years?|mornings?|nights?|evenings?|weekends?|spring|summer"
    r"|fall|autumn|winter|[a-z]+day|january|february|march|april|may|june|july|august|september|october|november|december"
    r"|ago|also|think|know|hope|guess|believe|sure|sometimes|once|[a-z]+ly|please|just|first|before|after|until|[0-9]+)\s)$",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(r"\b(?:if|unless|wish|imagine|suppose|would have|could have)\b[^,]*$", re.IGNORECASE)
_THINKS = re.compile(r"I (?:\w+ )?(?:think|guess|believe|suppose|know|bet|mean) (?:that )?(?:I|my|we)\b", re.IGNORECASE)
_HEDGED = re.compile(r"\b(?:maybe|perhaps|probably|might|guess|think|kind of|sort of|not sure)\b", re.IGNORECASE)
_SELF = {
    "my": "their", "me": "them", "mine": "theirs", "myself": "themselves", "i": "they", "am": "are", "our": "their",
    "us": "them", "we": "they", "ours": "theirs", "ourselves": "themselves",
}  # fmt: skip
_SELVES = re.compile(r"\b(?:" + "|".join(_SELF) + r")\b", re.IGNORECASE)
_PRIVATE = re.compile(
    r"\b(?:secret|confidential|private|privately|do not tell|between (?:you and me|us)|off the record|to yourself"
    r"|passwords?|passcode|pin|ssn|social security|credit card|bank account|iban|salary|diagnosed|diagnosis"
    r"|medications?|therapy|therapist|depress\w+|pregnan\w+|hiv|cancer|phone number|home address|e-?mail address)\b"
    r"|(?<![\w.+-])[\w.+-]+@[\w-]+\.\w+|(?<![\d/-])(?!\d{4}[/-]\d\d)\+?\d[\d ()/-]{7,}\d",
    re.IGNORECASE,
)


def claims(text: str, longest: int, *, asks: bool = True) -> Iterator[Claim]:
    """Yield what *text* says of who speaks, in its order; a statement of more than *longest* signs tells nothing.

    Unless who speaks *asks* for things, what is to be kept in mind or always done is advice, and tells nothing either.

    >>> [claim.text for claim in claims("I work as a nurse, and I don't like tea. Do I like it?", 200)]
    ['works as a nurse', 'does not like tea']
    """
    rules = (*RULES, *ASKS) if asks else RULES
    for sentence in sentences(text):
        if not sentence.endswith(("?", "？")):
            yield from _of_sentence(_spelled(sentence), longest, rules)


def is_private(text: str) -> bool:
    """Return whether *text* is marked as of no one else's business, or is of a kind that seldom is.

    >>> is_private("Don't tell anybody: I quit."), is_private("likes tea")
    (True, False)
    """
    return any(_PRIVATE.search(_spelled(sentence)) for sentence in sentences(text))


def _of_sentence(sentence: str, longest: int, rules: Sequence[Rule]) -> Iterator[Claim]:
    private = bool(_PRIVATE.search(sentence))
    end = 0
    for opening in _OPENS.finditer(sentence):
        if opening.start() < end or _THINKS.match(sentence, opening.start()):
            continue
        stop = _END.search(sentence, opening.end())
        end = stop.start() if stop else len(sentence)
        before, clause = sentence[: opening.start()], sentence[opening.start() : end].strip()
        if len(clause) > longest or not _stands_alone(opening[0], before):
            continue
        found = _of_clause(clause, before, rules)
        if found and len(found.text) <= longest:
            yield Claim(found.text, found.confidence, found.trait, found.value, private)


def _stands_alone(opening: str, before: str) -> bool:
    if _SUPPOSED.search(before):
        return False
    return opening.lower() not in ("i", "we") or bool(_BEFORE_I.search(before))


def _of_clause(clause: str, before: str, rules: Sequence[Rule]) -> Claim | None:
    for rule in rules:
        found = rule.pattern.match(clause)
        if found is None or (rule.pattern.pattern.startswith("^") and before.strip().lower() not in ("", "please")):
            continue
        rest = found["rest"].strip()
        if _POINTS.match(rest) or TELL_LITTLE.issuperset(words(rest)):
            return None
        hedge = 0.6 if _HEDGED.search(before) or _HEDGED.search(clause) else 1.0
        said = _of_other(rule.says.format(**found.groupdict()).strip())
        return Claim(said, round(rule.confidence * hedge, 3), rule.trait, _of_other(rest))
    return None


def _spelled(sentence: str) -> str:
    for short, spelled in _SPELLED:
        sentence = short.sub(spelled, sentence)
    return sentence


def _of_other(text: str) -> str:
    """Return what somebody says of himself as another says it.

    >>> _of_other("walk with my sister")
    'walk with their sister'
    """
    return _SELVES.sub(lambda word: _SELF[word[0].lower()], text)
