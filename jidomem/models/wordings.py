"""How people word what they say of themselves in English, as a table of rules."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """How a claim is worded; `says` is the statement, with groups of the pattern, `trait` names a lasting one."""

    pattern: re.Pattern[str]
    says: str
    confidence: float
    trait: str | None = None


_ADVERB = (
    r"(?:(?:really|also|just|still|always|usually|often|absolutely|totally|actually|currently|now|recently|truly|mostly"
    r"|especially|generally|sometimes|finally|already|definitely|particularly|deeply|quite|so|very|too|both|only|even"
    r"|have|had|did|do) ){0,3}"
)
_REST = r"(?P<rest>[^\s.,;:!?()].*)"
_DID = (
    "achieved|adopted|attended|baked|became|began|bought|broke|built|camped|celebrated|changed|chose|completed|cooked|created"
    "|decided|deployed|designed|discovered|drew|drove|earned|enrolled|explored|fell|finished|fixed|flew|found|founded|gave|got"
    "|grew|hiked|hired|hosted|installed|invited|joined|launched|learned|learnt|left|lost|made|married|met|migrated|moved"
    "|opened|ordered|organised|organized|painted|passed|performed|photographed|planted|played|published|quit|ran|read"
    "|received|refactored|released|renovated|retired|returned|saw|sent|set up|signed up|sold|spent|started|stopped"
    "|taught|took|tried|travelled|traveled|visited|volunteered|watched|went|won|worked|wrote"
)
_KIN = (
    "wife|husband|partner|boyfriend|girlfriend|spouse|mother|mom|mum|father|dad|parents|sister|brother|siblings?|son"
    "|daughter|kids?|child|children|baby|family|friends?|best friend|boss|manager|colleagues?|team|company|dog|cat"
    "|pets?|grandma|grandmother|grandpa|grandfather|grandparents|aunt|uncle|cousins?|roommate|neighbou?rs?|roommates?|doctor"
)
_LASTING = (
    "vegetarian|vegan|single|married|divorced|engaged|widowed|pregnant|retired|unemployed|self-employed|left-handed"
    "|deaf|blind|diabetic|colou?r-?blind|autistic|dyslexic|gay|lesbian|bisexual|transgender|bilingual|religious|catholic"
    "|jewish|muslim|christian|buddhist|hindu|an? introvert|an? extrovert|introverted|extroverted|lactose intolerant"
)


def _rule(pattern: str, says: str, confidence: float, trait: str | None = None) -> Rule:
    return Rule(re.compile(pattern, re.IGNORECASE), says, confidence, trait)


def _i(pattern: str, says: str, confidence: float, trait: str | None = None) -> Rule:
    """Return a rule for what stands after an "I" and its adverbs."""
    return _rule(rf"\bI {_ADVERB}{pattern} {_REST}", says, confidence, trait)


_NOT = "(?:do not|did not|never|no longer|cannot) (?:really |even |much )?"
#: The first that fits what stands after an "I" or a "my" is taken.
RULES: tuple[Rule, ...] = (
    _rule(rf"\b(?:my name is|call me|I am called) {_REST}", "is called {rest}", 0.95, "name"),
    _rule(r"\bI am (?P<rest>\d{1,3})(?: years old|$)", "is {rest} years old", 0.95, "age"),
    _i("am allergic to", "is allergic to {rest}", 0.95, "allergic to"),
    _rule(rf"\bI am {_ADVERB}(?P<rest>(?:{_LASTING})\b.*)", "is {rest}", 0.9, "is"),
    _i("am (?:a )?(?:big |huge |great )?(?:fan of|into|fond of|keen on|passionate about|obsessed with)", "likes {rest}",
       0.85, "likes"),
    _i("am (?:not a fan of|not into|tired of|sick of)", "dislikes {rest}", 0.8, "dislikes"),
    _i("am interested in", "is interested in {rest}", 0.8, "likes"),
    _i("am (?:good|great) (?:at|with)", "is good at {rest}", 0.8, "good at"),
    _i("am (?:bad|terrible|not good) (?:at|with)", "is not good at {rest}", 0.8, "bad at"),
    _i("am (?:afraid|scared|terrified) of", "is afraid of {rest}", 0.85, "afraid of"),
    _i("(?:am from|come from|grew up in|was born in|was raised in)", "is from {rest}", 0.9, "from"),
    _i("(?:live in|am living in|am based in|reside in|live near)", "lives in {rest}", 0.9, "lives in"),
    _i("(?:would|'d) (?:like|love|prefer) to", "would like to {rest}", 0.7),
    _i("am (?:planning|hoping|aiming|intending) (?P<how>to|on|for)", "plans {how} {rest}", 0.75),
    _i("(?:plan|intend|aim|hope|want) to", "wants to {rest}", 0.7),
    _i("am (?:going|about) to", "is going to {rest}", 0.7),
    _i("(?:have|need|got) to", "has to {rest}", 0.6),
    _i("used to", "used to {rest}", 0.8),
    _i("have never", "has never {rest}", 0.8),
    _i(f"{_NOT}(?:like|love|enjoy)", "does not like {rest}", 0.85, "dislikes"),
    _i(f"{_NOT}(?P<verb>eat|drink|smoke|use|have|own|work|drive|watch|read|speak|want|need)",
       "does not {verb} {rest}", 0.8),
    _i("(?:hate|dislike|detest|despise|cannot stand|cannot bear)", "dislikes {rest}", 0.85, "dislikes"),
    _i("prefer", "prefers {rest}", 0.9, "prefers"),
    _i("(?:love|like|enjoy|adore)", "likes {rest}", 0.85, "likes"),
    _i("(?:work|am working) (?P<how>as|at|for|in)", "works {how} {rest}", 0.9, "works"),
    _i("am (?:currently )?working on", "is working on {rest}", 0.8),
    _i("(?:study|am studying|major in|am majoring in)", "studies {rest}", 0.85, "studies"),
    _i("teach", "teaches {rest}", 0.85, "works"),
    _i("speak", "speaks {rest}", 0.85, "speaks"),
    _i("play", "plays {rest}", 0.8, "plays"),
    _i("(?P<verb>collect|cook|drive|practice|run|own|manage|lead|use|drink|eat|wear)", "{verb}s {rest}", 0.75),
    _i("have been", "has been {rest}", 0.8),
    _rule(rf"\bI (?:have|have got|'ve got) {_ADVERB}(?P<rest>(?:an? |two |three |four |\d+ |my own |some )[^\s].*)",
          "has {rest}", 0.8, "has"),
    _rule(r"\bI am (?:currently )?(?P<rest>an? (?!bit\b|little\b|lot\b)[a-z].*)", "is {rest}", 0.8, "is"),
    _rule(rf"\bI am (?:{_ADVERB})(?P<rest>(?!going\b|looking\b|thinking\b|wondering\b|trying\b|saying\b|feeling\b"
          r"|getting\b|hoping\b|loving\b|asking\b|being\b|having\b)[a-z]+ing [^\s].*)", "is {rest}", 0.7),
    _rule(rf"\b(?:I|we) {_ADVERB}(?P<rest>(?:{_DID})\b.*)", "{rest}", 0.8),
    _i("(?:recommend|suggest)", "recommends {rest}", 0.6),
    _rule(r"\bmy (?P<what>favou?rite (?:\w+ ){1,3})(?:is|are|has to be) (?P<rest>[^\s].*)", "{what}is {rest}", 0.95,
          "favourite"),
    _rule(rf"\bmy (?P<rest>(?:\w+ )?(?:{_KIN}),? (?:and I )?(?!and\b|or\b|in\b|to\b|of\b|who\b|\w+ing\b)\w+ .*)",
          "{rest}", 0.75),
    _rule(r"\bmy (?P<rest>(?:\w+ ){1,3}?(?:is|are|was|were) [^\s].*)", "{rest}", 0.75),
)  # fmt: skip
#: What is asked of whom it is said to: tells something only of who says it, and not of an agent that gives advice.
ASKS: tuple[Rule, ...] = (
    _rule(rf"^(?:remember|note|keep in mind|do not forget)(?: that|:) {_REST}", "{rest}", 0.9),
    _rule(r"^(?P<rest>(?:always|never) [a-z]+ .*)", "{rest}", 0.85, "asks"),
    _rule(r"\b(?:keep (?:it|your answers?|answers?)|be) (?P<rest>short|brief|concise|terse|detailed|thorough)\b",
          "asks for {rest} answers", 0.85, "asks for answers"),
)  # fmt: skip
