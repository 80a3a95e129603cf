"""Keywords, importance, summaries and secrecy of texts by rule, without a model."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from jidomem.base.regex import lazy
from jidomem.base.stems import Stemmer
from jidomem.base.words import TELL_LITTLE, beginning, singular

_CHAT = """
absolutely actually ago ah alright already always amazing another anyone anything anyway around ask asked awesome away
back bad best better big bit bring call came cant certainly come coming cool couldnt course day days definitely didnt
different doesnt done dont else enough especially even ever every everyone everything exactly excited far feel feeling
feels felt few find fine first forward found fun gave get gets getting give given giving glad go goes going gonna gone
good got gotta great guess guys haha hang happen happened happy hard havent hear heard hello help helped helping helps
hey hi hope hoping huge idea ill im important incredible interesting isnt ive keep kind knew know last lately least less
let lets life like little ll lol long look looking looks lot lots love made make makes making many may maybe mean means
might mind moment much must need needed needs never new next nice no nope not nothing now oh ok okay old one ones part
people perfect person place please possible pretty probably put quite re read ready real really recently remember right
said saw say saying see seem seems seen send sense share show since small someone something sometimes soon sorry sort
sound sounds special start started stay still stuff super sure take taking talk talking tell thank thanks thats thing
things think thinking though thought time times today together told tomorrow took totally tried true try trying two
understand usually ve wait wanna want wanted wants wasnt way week weeks well went whats whatever wish without won wonder
wonderful wont work works world worth wouldnt wow year years yeah yep yes yesterday yet youre youve
"""
#: English words that say little about the topic, even if they are rare.
CHAT = frozenset(_CHAT.split()) | TELL_LITTLE


class Word(NamedTuple):
    """A word of a text by its stem: its display form, and its weight as an indicator of the topic."""

    stem: str
    shown: str
    weight: float


def significant_words(stemmer: Stemmer, text: str) -> list[Word]:
    """Return the significant words of *text*, each stem once, in the order of their first occurrence.

    A word weighs more if it occurs repeatedly or is long, since function words are short in most languages. Words of
    one character count only if there are no longer ones.
    """
    counts: dict[str, int] = {}
    shown: dict[str, str] = {}
    for word, stem in stemmer.stems(text):
        if word not in CHAT and not word.isdecimal():
            counts[stem] = counts.get(stem, 0) + 1
            one = singular(word)
            known = shown.setdefault(stem, one)
            if one is not known and (len(one), one) < (len(known), known):
                shown[stem] = one
    longer = [stem for stem in counts if len(stem) > 1] or list(counts)
    weights = {stem: (1 + math.log(counts[stem])) * math.sqrt(min(len(shown[stem]), 8)) for stem in longer}
    return [Word(stem, shown[stem], weights[stem]) for stem in longer]


def keywords(stemmer: Stemmer, text: str, most: int) -> tuple[str, ...]:
    """Return the *most* significant words of *text*, best first; of words of one stem the shortest, in the singular.

    >>> keywords(Stemmer(), "The indexes were rebuilt: each index is kept by Oxigraph.", 2)
    ('index', 'oxigraph')
    """
    ranked = sorted(significant_words(stemmer, text), key=lambda word: -word.weight)
    return tuple(dict.fromkeys(word.shown for word in ranked))[:most]


#: The cues of an important statement, each with its weight; together they never exceed 1.
CUES: tuple[tuple[float, re.Pattern[str]], ...] = tuple(
    (weight, lazy(rf"\b(?:{words})\b", re.IGNORECASE))
    for weight, words in (
        (0.6, "must|always|never|mandatory|required|requires|forbidden|prohibited|policy|policies|rules?|standards?"
              "|conventions?|decided|agreed|do not|don't|only"),
        (0.6, "critical|crucial|important|urgent|security|secure|vulnerab\\w+|breach|outages?|downtime|data loss"
              "|emergency|incidents?|deadlines?|breaking|deprecated|legal|compliance|allerg\\w+|fail(?:s|ed|ure|ures)?"),
        (0.4, "everyone|everybody|all (?:teams|users|agents|projects|services|customers)|company|organi[sz]ation|team"
              "|production|customers?|clients?|releases?|deploy\\w*|migrat\\w+|launch\\w*"),
        (0.2, "\\d[\\d.,:-]*|\\w+_\\w+|\\w+\\.\\w+"),
    )
)  # fmt: skip
BASE = 0.2
_PERSONAL = lazy(
    r"(?:(?:really )?(?:likes?|loves?|enjoys?|prefers?|dislikes?|hates?|wants?|hopes?|plans?|feels?|is going|would like"
    r"|went|watched|played|bought|ate|has been)|does not like|i (?:like|love|want|feel|prefer))\b",
    re.IGNORECASE,
)
_HEDGED = lazy(r"\b(?:maybe|perhaps|probably|might|possibly|not sure)\b", re.IGNORECASE)


def importance(statement: str) -> float:
    """Return the importance of *statement* to others, from 0 to 1: rules and dangers are high, personal tastes low.

    >>> importance("Deploys must go through staging"), importance("likes green tea")
    (0.808, 0.1)
    """
    unimportant = 1 - BASE
    for weight, pattern in CUES:
        if pattern.search(statement):
            unimportant *= 1 - weight
    personal = 0.5 if _PERSONAL.match(statement.lstrip()) else 1.0
    hedged = 0.6 if _HEDGED.search(statement) else 1.0
    return round((1 - unimportant) * personal * hedged, 3)


_ENDS = lazy(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])|\n+")
#: A text that ends with an abbreviation: a title, which a name follows; one that never ends a sentence; one that a
#: number follows; one that may end a sentence, and goes on in lower case; a day before a German month; and initials.
_ABBREVIATION = lazy(
    r"(?:^|[\s(\[\"'„“])(?:(?P<title>(?-i:Dr|Mr|Mrs|Ms|Mx|Prof|St|Mt|Ft|Hr|Fr|Rev|Hon|Gen|Col|Capt|Lt|Sgt|Sen|Gov"
    r"|Pres|Dipl|Ing|Sra?|Dra?|Dña))|(?P<before>vs|cf|vgl|e\.g|i\.e|z\.\s?b|d\.\s?h|viz|approx|(?-i:ca)|bzw)"
    r"|(?P<number>nos?|nr|núm|pp?|figs?|eqs?|vol|ch|sec|abs|art|ext|tel)|(?P<day>\d{1,2})"
    r"|(?P<within>etc|usw|al|inc|ltd|co|corp|dept|jr|a\.m|p\.m|incl|excl|(?-i:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct"
    r"|Nov|Dec|Mon|Tue|Wed|Thu|Fri|Sat|Sun|Ave|Blvd|Rd|Str))"
    r"|(?P<initial>(?-i:[^\W\d_a-zß-ÿ])|[a-z](?:\.[a-z])+))\.$",
    re.IGNORECASE,
)
_GOES_ON, _NUMBER = lazy(r"[\W_]*[a-zß-ÿ]|\d"), lazy(r"\d")
_MONTH = lazy(r"(?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember)\b")
_NAME = lazy(r"(?!(?:I|A|My|We|The|It|He|She|You|They|This|That|But|And|So|In|On|If)\b)[^\W\d_a-zß-ÿ]")
#: The share of the weight of a sentence in another from which on the two count as the same.
SAME = 0.7
#: The most characters of one sentence, and of all texts together; only the beginning of longer ones is read.
MAX_SENTENCE_CHARS, MAX_TEXT_CHARS = 1_000, 24_000
_CODE = lazy(r"```.*?(?:```|\Z)", re.DOTALL)


class _Sentence(NamedTuple):
    text: str
    place: int
    weights: dict[str, float]


def sentences(text: str) -> Iterator[str]:
    r"""Yield the sentences of *text*, line by line, with single spaces; long ones in parts of
    at most `MAX_SENTENCE_CHARS`.

    >>> list(sentences("Which index?  Oxigraph.\nIt embeds."))
    ['Which index?', 'Oxigraph.', 'It embeds.']
    """
    for piece in _pieces(text):
        rest = " ".join(piece.split())
        while len(rest) > MAX_SENTENCE_CHARS:
            end = rest.rfind(" ", 1, MAX_SENTENCE_CHARS) + 1 or MAX_SENTENCE_CHARS
            yield rest[:end].rstrip()
            rest = rest[end:]
        if rest:
            yield rest


def _pieces(text: str) -> Iterator[str]:
    """Yield the parts of *text* between the ends of its sentences, which are not those of abbreviations."""
    start = 0
    for end in _ENDS.finditer(text):
        if not _abbreviates(text[max(start, end.start() - 12) : end.start()], text[end.end() : end.end() + 12]):
            yield text[start : end.start()]
            start = end.end()
    yield text[start:]


def _abbreviates(before: str, after: str) -> bool:
    """Return whether the full stop at the end of *before* is that of an abbreviation, by the text *after* it.

    >>> _abbreviates("I work for Dr.", "Nadja Weiss."), _abbreviates("I said no.", "I left.")
    (True, False)
    """
    match = _ABBREVIATION.search(before)
    if match is None or not after:
        return False
    if match["number"]:
        return bool(_NUMBER.match(after))
    if match["day"]:
        return bool(_MONTH.match(after))
    goes_on, is_name = bool(_GOES_ON.match(after)), bool(_NAME.match(after))
    if match["initial"]:
        return is_name or (goes_on and "." in match["initial"])
    return goes_on or bool(match["before"]) or (is_name and not match["within"])


def cut(text: str, longest: int) -> str:
    """Return *text* within *longest* characters: cut between words if possible, and marked with an ellipsis.

    >>> cut("keep the whole journal", 12)
    'keep the…'
    """
    return text if len(text) <= longest else beginning(text, longest - 1).rstrip(" ,;:") + "…"


def summary(stemmer: Stemmer, texts: Sequence[str], longest: int) -> str:
    """Return the most central sentences of *texts*, in their order, within *longest* characters.

    Fenced code is read only if a text has nothing else.
    """
    every = [*_weighed(stemmer, texts)]
    if not every:
        return ""
    whole = Counter(stem for sentence in every for stem in sentence.weights)
    ranked = sorted(every, key=lambda sentence: (-_score(sentence, whole, len(every)), sentence.place))
    chosen = [ranked[0]]
    room = longest - len(ranked[0].text)
    for sentence in ranked[1:]:
        if len(sentence.text) < room and not any(_same(sentence, other) for other in chosen):
            chosen.append(sentence)
            room -= len(sentence.text) + 1
    return cut(" ".join(sentence.text for sentence in sorted(chosen, key=lambda each: each.place)), longest)


def _first_sentences(texts: Sequence[str]) -> Iterator[Iterable[str]]:
    """Yield the first sentences of each text, within its share of the characters; at least one."""
    prose = [_CODE.sub("\n", text) if "```" in text else text for text in texts]
    read = [prosaic if prosaic.strip() else text for prosaic, text in zip(prose, texts, strict=True)]
    share = _share([len(text) for text in read])
    for text in read:
        parts = [*sentences(text[:share])]
        yield parts[:-1] if len(text) > share and len(parts) > 1 else parts


def _share(lengths: Sequence[int]) -> int:
    """Return the most characters read of each text: what short texts leave unused is shared by the others.

    >>> _share([100, 200, 50_000, 90_000])
    11850
    """
    room, share = MAX_TEXT_CHARS, MAX_TEXT_CHARS
    for place, length in enumerate(sorted(lengths)):
        share = max(room // (len(lengths) - place), 1)
        if length > share:
            return share
        room -= length
    return share


def _weighed(stemmer: Stemmer, texts: Sequence[str]) -> Iterator[_Sentence]:
    place = 0
    for parts in _first_sentences(texts):
        for sentence in parts:
            yield _Sentence(sentence, place, {word.stem: word.weight for word in significant_words(stemmer, sentence)})
            place += 1


def _score(sentence: _Sentence, whole: Counter[str], count: int) -> float:
    """Return the average weight of the words of a sentence for the topic of all; half of it for a question."""
    score = sum(
        weight * math.log(1 + whole[stem]) * math.log(1 + count / whole[stem])
        for stem, weight in sentence.weights.items()
    )
    score /= 1 + len(sentence.weights)
    return score / 2 if sentence.text.endswith(("?", "？")) else score


def _same(one: _Sentence, other: _Sentence) -> bool:
    shared = sum(weight for stem, weight in one.weights.items() if stem in other.weights)
    return shared >= SAME * sum(one.weights.values())


#: English words of illness and disability, in lower case; some are the same in other languages.
ILLNESS = (
    r"diabet\w+|epilep\w+|asthma\w*|allerg(?:y|ies|ic)|alergi\w+|seizures?|(?:an?|the|my|mini-?|second|after|had)"
    r" strokes?(?! (?:of|width|colou?r|path)\b)|stroke (?:patient|survivor)s?|heart (?:attack|disease|failure"
    r"|surgery|condition)s?|high blood (?:pressure|sugar)|low blood (?:pressure|sugar)|pacemaker|paralys\w+"
    r"|paralyz\w+|aphasia|dementia|alzheimer\w*|parkinson\w*|arthritis|arthrosis|migraines?|insomnia|anxiety"
    r"|depress\w+|bipolar|adhd|autis\w+|dyslexi\w+|schizo\w+|ptsd|burn-?out|panic attacks?|anorexi\w+|bulimi\w+"
    r"|hepatitis|tuberculosis|covid|tumou?rs?|cancer|leuk(?:a?e)mia|hiv|multiple sclerosis|thrombosis|embolism"
    r"|hypertension|miscarriage|abortion|infertil\w+|incontinen\w+|hearing loss|wheelchair|disability|chronic pain"
    r"|back pain|drinking problem|alcohol (?:problem|addiction|abuse)|drug (?:problem|addiction|abuse)|gambling"
    r"|alcoholi\w+|addictions?|eating disorder|surgery|chemotherapy|dialysis|fractures?|concussion|pneumonia"
    r"|asperger\w*"
)
_ENDINGS = (
    "xaban|dogrel|sugrel|grelor|farin|parin|gatran|statin|sartan|olol|dipine|prazole|gliptin|gliflozin|glutide|formin"
    "|oxetine|traline|talopram|triptan|triptyline|zepam|zolam|zepine|cillin|mycin|cycline|floxacin|profen|codone"
    "|thyroxine|nisone|nisolone|cortisone|racetam|trigine|tiapine|semide|thiazide|valproate"
)
_DOSE = r"\d+(?:[.,]\d+)? ?(?:mg|mcg|µg|iu)"
_REMEDIES = (
    r"insulin|aspirin|paracetamol|morphine|codeine|tramadol|methadone|antidepress\w+|antibiotic\w*|blood thinners?"
    rf"|pain ?killers?|sleeping pills?|{_DOSE}"
)
#: Medicines by the endings of their international names, by kind, and by dose.
MEDICINE = rf"\w+(?:{_ENDINGS})|[\w-]+ {_DOSE}|{_REMEDIES}"
# What is private without a request: access, health, money, where and who somebody is. Words that software has too, such
# as "disabled", "debt" and "address", count only where they are said of a person.
_PRIVATE = lazy(
    r"\b(?:passwords?|passcode|pin(?: code| number| is|s?$)|door ?code|gate ?code|entry ?code|alarm ?code|lock code"
    r"|safe code|code (?:of|to|for) (?:my|our|the|their|his|her) (?:front )?(?:door|gate|house|flat|home|alarm|safe"
    r"|phone)|ssn|social security|personal (?:identity )?number|passport number|insurance number|credit card"
    r"|bank account|iban|phone number|mobile number|telephone number|telefonnummer"
    rf"|{ILLNESS}|{_REMEDIES}|diagnosed|diagnosis|medicines?|medications?|medicated|prescription|therapy"
    r"|therapist|physiotherap\w+|psychiatr\w+|psychotherap\w+|blood (?:pressure|sugar|test|clot)s?|inr|pregnan\w+"
    r"|suicid\w+|self-harm|overdose|cigarettes|nicotine|smokes|smoker|(?:i|not|no longer|never|used to|stopped|quit"
    r"|started|gave up) smok(?:e|ing)|drinks? too much|(?:my|our|his|her|their|i am|is"
    r"|was) (?:\w+ )?(?:disabled|deaf|blind|bedridden|ill|sober|addicted)(?! (?:by|in|on|for|to)\b)|gay|lesbian"
    r"|bisexual|transgender|homosexual\w*|sexuality|catholic|jewish|muslim|religious|convicted|criminal record"
    r"|in prison|from prison|arrested|salary|wages|pensions?|mortgage|bankrupt\w*|insolven\w+|schulden|ow(?:e|es"
    r"|ed) (?:\w+ ){1,3}?[\d€$£][\d.,]*|(?<!technical )(?<!tech )(?<!code )debts?|(?:my|our|his|her"
    r"|their) (?:\w+ )?(?:income|savings|rent|alimony)|(?:home|street|postal|private|my|our|his|her"
    r"|their) (?:new )?address|e-?mail address|liv(?:e|es|ing) at [^,.]*\d+|secret (?:crush|love|affair|relationship"
    r"|wish|plan)|private (?:matter|life|affair|problem|debt|loan)s?|confidential (?:matter|talk|information"
    r"|document|data))\b|^(?:new )?address (?:is|was|changed)\b"
    rf"|(?:{_ENDINGS})\b|(?<![\w.+-])[\w.+-]+@[\w-]+\.\w+|(?<![\d/-])(?!\d{{4}}[/-]\d\d)\+?\d[\d ()/-]{{7,}}\d"
)
# The parts of requests for secrecy: what is secret, who must not know of it, and the end of the clause.
_IT = (
    r"(?:(?:all|any|some|none|most) (?:of )?)?(?:this|that|it|these|those|them|everything|anything|what I \w+(?: you)?"
    r"|the following|the above|my (?:\w+ )?\w+)"
)
_NOBODY = r"(?:no[- ]?one|nobody|not a soul|none of them|not even (?:\w+ ){1,3}?)"
_ANYBODY = r"(?:any ?(?:one|body)|no[- ]?one|nobody|(?:the )?others?|every ?(?:one|body)|a soul|him|her|them|my \w+)"
_STOPS = r"(?=\s*(?:[^\w\s'’]|$|(?:and|but|so|please|for|until|till|as|from|with|that|OK|okay|information)\b))"
_SECRET = (
    r"(?:(?:strictly|very|just|completely|totally|highly|top|only|a|our|my|in|as|really|kept) )*(?:(?:big|little) )?"
    r"(?:private|secret|confidential|confidence|discreet|hush-hush|under wraps|off the record|between \w+"
    rf"|(?:to|with|for) yourself){_STOPS}"
)
_MUST_NOT = (
    r"(?:(?<!\bI )(?<!\bwe )(?<!\bthey )(?:do not|never)|(?:must|may|should|shall|to|please|rather) not"
    r"|rather you did not)(?: (?:ever|please))*"
)
_MAY = r"(?:must|may|should|can|could|shall|will|needs? to|has to|ought to|is (?:supposed |allowed |meant )?to)"
_KNOW = rf"(?:know|find out|hear|learn|see)(?: (?:of|about))?(?: {_IT})?(?: yet)?{_STOPS}"
#: The patterns of requests for secrecy, in English as `spelled` writes it, in German and in Spanish.
_REQUESTS = (
    rf"(?:keep|hold|treat|consider|handle|mark|leave|make|want|like|prefer|need) {_IT}(?: to (?:be|stay|remain))?"
    rf" (?:{_SECRET}|quiet{_STOPS})",
    rf"(?:treat|handle) {_IT} (?:confidentially|discreetly|with \w*(?:discretion|confidentiality|care))",
    rf"{_IT}(?: \w+){{0,4}}? (?:is|are|be|stays?|remains?|stay|remain)(?: please)? {_SECRET}",
    r"keep (?:(?:it|this|that) )?(?:mum|schtum|(?:a|my|our|the|this) (?:\w+ )?secret)|keep your mouth shut",
    rf"mum is the word|{_MUST_NOT} (?:tell|let on)|(?:cannot|without) tell(?:ing)? {_ANYBODY}",
    rf"{_MUST_NOT} (?:mention|share|repeat|reveal|disclose|spread|leak|forward|publish|post|pass"
    rf"|store|save|record|remember|write|note|log|talk about|speak (?:about|of)|say|breathe)(?: a word| down)?"
    rf"(?: (?:of|about))?(?: (?:{_IT}|{_ANYBODY})| to {_ANYBODY}|{_STOPS})",
    rf"(?:never|not)(?: please)? (?:let|want|like) (?:{_ANYBODY}|(?!to )\w+) (?:to )?{_KNOW}",
    rf"{_IT} (?:must|should|may|shall|can|does) not (?:leave|get out|go (?:any )?further)",
    rf"(?:tell|told) {_NOBODY}|(?:not a|no) word (?:to|about|of) (?:{_IT}|{_ANYBODY})",
    rf"{_NOBODY}(?: else)? {_MAY}(?: (?:ever|yet))?"
    r" (?:know|find out|be told|hear (?:of|about)|learn (?:of|about)|get to know|see this)",
    rf"{_NOBODY} (?:else knows|knew|knows(?: (?:about|of))? (?:{_IT}|yet)|knows{_STOPS})",
    rf"(?:must|may|should|can|shall) not (?:ever )?{_KNOW}",
    rf"only you (?:{_MAY} )?know|you are the (?:only|first) (?:one|person) (?:who|to|I|that)",
    rf"I (?:have |did )?not (?:told|tell) {_ANYBODY}",
    rf"{_IT} (?:must|should|may|shall|can|is|are) not (?:to )?(?:be )?(?:told|shared|repeated|mentioned|passed on"
    rf"|disclosed|published|known|for {_ANYBODY}|(?:public|official)(?: yet)?{_STOPS})",
    r"between (?:you and (?:me|I)|us|the two of us|ourselves)(?! and)|entre nous|off the record|sub rosa|for you alone",
    r"for your (?:ears|eyes) only|(?:just|only) for (?:you|your ears)",
    rf"keep (?:quiet|silent) about {_IT}|does not know(?: (?:of|about))?(?: {_IT})? yet",
    r"not (?:for sharing|to (?:tell|mention|share|reveal))",
    r"in (?:strict|strictest|full) (?:confidence|secrecy)|hush-hush|on the (?:down-?low|quiet)|under (?:nda|embargo)",
    r"(?:tell|telling|told|say|speak|speaking|confide|share|sharing)(?: \w+){0,3} (?:as a secret"
    r"|in (?:confidence|private|secret)|privately|secretly|confidentially)",
    r"(?:be|stay) discreet|your discretion|respect my privacy|have a secret|you (?:a|my|our) secret|in on a secret",
    rf"(?:this|that|it) is (?:a|my|our) (?:\w+ )?secret{_STOPS}",
    r"(?:sag|erzähl|verrat|erwähn|schreib)(?:e|en|t|et)?(?: (?:sie|es|das|dies|davon|bitte|ihm|ihr))*"
    r" (?:niemand\w*|keine[mnr]\w*|nicht weiter|(?:\w+ ){1,3}(?:nichts|nicht|kein wort))",
    r"(?:nicht|nichts)(?: davon)? (?:weiter ?\w*(?:sagen|erzählen|geben|leiten)|verraten|ausplaudern)"
    r"|niemande?m? \w*(?:sagen|erzählen)|(?:gib|teil|leit)\w* (?:das|es|dies)(?: bitte)? (?:nicht|(?:mit|an) niemand)",
    r"behalt\w*(?: \w+){0,3} für (?:dich|sich|euch)|für (?:dich|sich|euch) behalten|geheim ?halten|dicht ?halten",
    r"(?:halt|behandel|behalt)\w*(?: \w+){1,4} (?:geheim|vertraulich|privat|diskret)|(?:streng )(?:geheim|vertraulich)",
    r"(?:das|dies|es|alles)(?: \w+){0,2} (?:ist|bleibt|bleibe|muss|soll|sollte)(?: \w+){0,2}"
    r" (?:vertraulich|geheim|privat|unter uns|zwischen uns|ein geheimnis|nur für dich|nicht öffentlich)\b",
    r"(?:niemand|keiner|kein mensch)(?: \w+){0,3} weiß (?:davon|das|es|bisher|noch)",
    r"(?:niemand|keiner|kein mensch)(?: \w+){0,3} (?:darf|soll|sollte)(?: \w+){0,4} (?:wissen|erfahren|hören|merken)",
    r"(?:darf|soll|sollte)(?: \w+){0,4} (?:niemand|keiner|nichts|nicht)(?: \w+){0,2} (?:wissen|erfahren|hören|merken)",
    r"unter uns(?: gesagt| bleiben|\s*[^\w\s]|$)|unter vier augen|(?:im|I am) vertrauen|mein geheimnis"
    r"|zwischen (?:dir und mir|uns beiden)|stillschweigen|kein wort (?:zu|darüber|davon|an)",
    r"(?:diskret|vertraulich) (?:zu )?behandeln",
    r"no (?:se )?(?:l[oae]s? |me |nos )*(?:digas?|cuentes?|menciones?|compartas?|comentes?|repitas?|reveles?)",
    r"nadie(?: más)? (?:lo sabe|(?:lo )?(?:debe|debería|puede|tiene que|ha de|necesita) (?:saber|enterarse|conocer))",
    r"no (?:debe|puede)[ns]? (?:saber|enterar)",
    r"que (?:nadie|no) (?:lo |se )*(?:sepa|entere)|no quiero que(?: \w+){1,4} (?:sepa|entere)",
    r"entre (?:nosotr[oa]s|(?:t[úu]|usted) y yo)|en (?:confianza|confidencia|secreto)|ni una palabra|con discreción",
    r"(?:esto|eso|es|sea|todo|qued[ae]|ser)(?: \w+){0,2} (?:confidencial|privado|secreto)(?! de)|s[eé] discret[oa]",
    r"s[oó]lo para ti|para ti sol[oa]",
    r"(?:mant[eé]n|manteng|gu[aá]rd|trat)\w*(?: \w+){0,3} (?:secreto|privado|confidencial|para ti)",
)
#: One of these is in each request, so that other sentences are judged quickly.
_CUE = lazy(
    r"priva[td]|secre|confid|discre|hush|wraps|quiet|off the record|between|yourself|mum|mouth|only|just for|for you"
    r"|rosa|embargo|nda\b|not\b|never|without|no[- ]?one|nobody|none|soul|t[eo]ll?d?\b|word"
    r"|nicht|niemand|kein|behalt|geheim|halt|vertrau|unter|zwischen|stillsch|diskret"
    r"|\bno\b|nadie|entre|confian|mant|gu[aá]rd|trat|para ti|palabra",
    re.IGNORECASE,
)
_LABEL = r"(?:private|secret|confidential|vertraulich|geheim|privat|confidencial|privado|secreto)"
_REQUEST = lazy(
    "|".join(rf"\b(?:{each})" for each in _REQUESTS)
    # a heading such as "Confidential:", a remark such as "(private)", and the word alone
    + rf"|^\W*(?:(?:strictly|very|highly|top|please|note|streng) )*(?:{_LABEL}|privately|confidentially)"
    rf"(?: (?:please|matter|note|remark))?\s*(?:[:,;–—]|-\s|[.!?)\]]*$)"
    rf"|[(\[,;–—]\s*(?:strictly |please )?{_LABEL}\s*(?:[)\]]|[.!]*$)",
    re.IGNORECASE,
)


def is_private(text: str) -> bool:
    """Return whether *text* is marked as private, or is of a kind that usually is.

    >>> is_private("Don't tell anybody: I quit."), is_private("likes tea")
    (True, False)
    """
    long_forms = [*map(spelled, sentences(text))]
    return any(_PRIVATE.search(each.lower()) for each in long_forms) or any(map(_requests_secrecy, long_forms))


def asks_for_secrecy(text: str) -> bool:
    """Return whether somebody asks in *text*, in English, German or Spanish, to tell nobody of it.

    >>> asks_for_secrecy("I quit. Please keep this private."), asks_for_secrecy("I lost the private key.")
    (True, False)
    """
    return any(_requests_secrecy(spelled(sentence)) for sentence in sentences(text))


def _requests_secrecy(sentence: str) -> bool:
    return bool(_CUE.search(sentence) and _REQUEST.search(sentence))


_SHORT_FORMS = (
    (lazy("[’‘´`]"), "'"),
    (lazy(r"\bI'?m\b", re.IGNORECASE), "I am"),
    (lazy(r"\bI'?ve\b", re.IGNORECASE), "I have"),
    (lazy(r"\bI'll\b", re.IGNORECASE), "I am going to"),
    (lazy(r"\bI'd\b", re.IGNORECASE), "I would"),
    (lazy(r"\b(?:can't|cant|can not)\b", re.IGNORECASE), "cannot"),
    (lazy(r"\bwon't\b", re.IGNORECASE), "will not"),
    (
        lazy(r"\b(do|does|did|is|are|was|were|have|has|had|would|could|should|must|need)(?:n't|nt)\b", re.IGNORECASE),
        r"\1 not",
    ),
    (lazy(r"\b(it|that|this|mum|my name)'s\b", re.IGNORECASE), r"\1 is"),
    (lazy(r"\byou're\b", re.IGNORECASE), "you are"),
)


def spelled(sentence: str) -> str:
    """Return *sentence* with its short forms spelled out.

    >>> spelled("I'm sure it's not, and I can’t wait")
    'I am sure it is not, and I cannot wait'
    """
    for short, long in _SHORT_FORMS:
        sentence = short.sub(long, sentence)
    return sentence
