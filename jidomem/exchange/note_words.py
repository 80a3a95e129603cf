"""English cues in notes for agents: negations, conditions, sentences, labels. Pure.

In doubt a cue keeps context: a heading or lead-in that no cue matches is repeated in the statement.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from jidomem.base.regex import lazy
from jidomem.base.words import beginning, line_sentences

#: The length in characters above which a text loses sentences; with orders beside limits; with limits.
LONGEST, _RESTRICTED, _MOST = 300, 500, 1_000

_NEGATION = lazy(
    r"\b(?:never|not|no|non|nor|none|neither|nothing|cannot|without|avoid\w*|forbid\w*|forbidden|prohibit\w*"
    r"|disallow\w*|ban(?:ned)?|refus\w*|reject\w*|refrain|omit\w*|skip\w*|exclu\w+|except(?!ional)\w*|unless|instead|rather"
    r"|anti[- ]?patterns?|bad|wrong|incorrect|invalid|unsupported|deprecated|obsolete|removed|legacy|stop|nope?"
    r"|out of scope|off[- ]limits|limitations?|mistakes?|pitfalls?|unsafe|dangerous|missing|lacks?|fails?|unlikely"
    r"|discourag\w*|don|dont|donts|won|doesn|isn|aren|can|shouldn|mustn|needn|wasn|didn|hasn|haven)"
    r"(?:['’ʼ]?t(?:['’ʼ]?s)?)?\b"
    r"|[❌🚫⛔✗✘✖⚠]",
    re.IGNORECASE,
)
#: "can" is not a negation, "can't" is; the pattern above matches both.
_CAN = lazy(r"(?:can|don|won)", re.IGNORECASE)
_CONDITION = lazy(
    r"\b(?:if|when(?:ever)?|while|before|after|during|until|once|only|for|in|on|under|inside|within|unless"
    r"|optional(?:ly)?|planned|future|draft|proposed"
    r"|experimental|previous(?:ly)?|old|temporary|how to|examples?|without)\b"
    r"|^\W*(?:\d+\W+)?[A-Z]?[a-z]+ing\b",
    re.IGNORECASE,
)
#: Words of headings that structure a page and do not name a subject.
_ARRANGING = frozenset(
    re.findall(
        r"\S+",
        """
& - a about additional agent agents ai all an and architecture assistant background basics best
body claude code codex coding common concept concepts context contributing contribution
contributor convention conventions copilot core critical cursor decision decisions detail
details dev developer development directive directives engineering essential essentials
expectation expectations fact facts for further general global goal goals guidance guide
guideline guidelines high high-level important information instruction instructions intro
introduction is it item items key know learned lesson lessons level main mandatory memories
memory misc miscellaneous more must note notes of open other overview pattern patterns point
points policies policy practice practices preference preferences principle principles project
purpose question questions quick quickstart readme reference reminder reminders repo repository
requirement requirements risk risks rule rules section some specific standard standards style
summary task tasks technical the things this tip tips to todo todos usage what with workflow
workflows working you your
""",
    )
)
#: Words of such a heading that name an activity.
_OF_WORK = lazy(r"\b(?:architecture|coding|contributing|development|engineering|usage|workflows?)\b", re.IGNORECASE)
_NUMBERED = lazy(
    r"^[#\s]*(?:(?:\d+|[a-z]|[ivx]+)[.)]\s+|\d+(?:\.\d+)+\s+|(?:step|part|phase)\s+\d+\W+)?", re.IGNORECASE
)
#: Lead-ins that only announce a list, and words that add nothing to such a lead-in.
_POINTS = lazy(
    r"(?:(?:here|below|these|there) (?:is|are)\b|(?:some|a few|the) examples?\b|see (?:below|also)|as follows|note that"
    r"|(?:high[- ]level )?(?:overview|summary|notes?|details?|important|key points?)\W*$)",
    re.IGNORECASE,
)
_THERE = lazy(r"(?:here|below|these|there) (?:is|are)\b", re.IGNORECASE)
_POINTING = frozenset(
    ("few", "following", "below", "here", "list", "lists", "several", "many", "main", "brief", "useful", "we", "have")
)
#: Labels of samples of code.
_SAMPLE = lazy(
    r"\W*(?:(?:for )?examples?|e\.g|usage|sample|output|expected(?: output)?|result|good|bad|better|best|worse|wrong"
    r"|right|correct|incorrect|before|after|do|don['’ʼ]?ts?|do not|not|yes|no|ok|instead of|like this|preferred"
    r"|avoid|recommended|then|or|and|also|with|where|response|request)"
    r"(?: (?:examples?|usage|code|practice|pattern|way|this|that|like this|style|case|approach|of))*\W*",
    re.IGNORECASE,
)
_OF_SAMPLES = lazy(r"\W*(?:for )?(?:an? )?examples?\b(?!\s+(?:must|should|are|is|have|has)\b)", re.IGNORECASE)
#: Sentences about the page itself.
_OF_THE_PAGE = lazy(
    r"(?:this (?:file|document|doc|guide|page|section|readme|rules? file|overview)"
    r"|these (?:instructions|guidelines|notes|rules))"
    r" (?:provides?|contains?|describes?|covers?|is (?:for|a|an|intended|meant|the)|are (?:for|intended|meant)"
    r"|explains?|outlines?|helps?|gives?|lists?|defines?|documents?|offers?|serves?|summari[sz]es?|details)\b"
    r"|(?:the|this) (?:diagram|table|list|chart|tree|figure|snippet|example|section)s? (?:below|above|shows?|lists?)\b"
    r"|the (?:guidance|instructions?|rules|guidelines|notes) in this (?:section|file|document) appl(?:y|ies)\b"
    r"|it (?:covers|describes|explains|contains) \w+.{0,200}(?:guid|structure|overview|how to)"
    r"|(?:guidance|instructions?|guidelines|notes|rules|directives)"
    r" for (?:claude|ai|llm|coding|agents?|copilot|codex|cursor)\b[^.:]*\.?$"
    r"|(?:intended )?audience\W*:"
    r"|quick[- ]reference\b[^.]*\.?$|here['’ʼ]?s how (?:to|you)\b[^.]*\.?$"
    r"|welcome to\b|(?:last|auto)[- ]?(?:updated|generated|modified)\b",
    re.IGNORECASE,
)
_OF_THE_READER = lazy(
    r"(?:you are|i am) an? [^.:;]*\b(?:assistant|expert|engineer|developer|programmer|specialist|architect)\b",
    re.IGNORECASE,
)
_OF_UPKEEP = lazy(
    r"\W*when(?: and how)? to (?:add|update|edit|change|extend)\b.{0,20}\bthis (?:file|document|page)\b", re.IGNORECASE
)
#: The beginning of a further sentence about the page, after one about the page.
_STILL_OF_THE_PAGE = lazy(
    r"(?:it|i) (?:also )?"
    r"(?:provides?|contains?|covers?|captures?|collects?|describes?|explains?|outlines?|lists?|focus)\b",
    re.IGNORECASE,
)
#: Verbs that begin an order.
_ORDERS = """
abort accept access achieve act adapt add address adhere adjust adopt aim align allow always
analyze annotate append apply approach architect ask assert assign assume attach audit author
avoid await back base batch be begin bind break bring build bump bundle cache call capture catch
centralize challenge change check choose cite clarify classify clean clear clone close co-locate
collect combine comment commit compare compile complete comply compose compute condense
configure confirm consider consolidate construct consult contain continue convert copy cover
cross-check cross-link cross-reference
create cut debug declare default defer define delegate delete deliver demonstrate deploy derive
describe design destructure detect determine develop disable discuss display distinguish
document double-check download drop edit embed emit enable encapsulate encode encourage end
enforce ensure escape establish evaluate examine exclude execute exercise exit expect explain
explicitly explore export expose express extend extract fail favor favour fetch fill find finish
fix flag focus follow force format generate get give go group guard handle have help hide
highlight hold identify ignore implement import improve include increase indent index infer
inform inherit initialize inject inline inspect install integrate introduce invoke isolate
iterate join justify keep label launch lazy-load lean leave let leverage limit link lint list
load localize lock log look lower maintain make manage map mark match maximize measure memoize
mention merge migrate minimize mirror mock model modify monitor move name navigate nest never
normalize note notify obtain offer omit only open optimize order organise organize output
override own parallelize parametrize parse pass perform persist pick pin place plan point prefer
prefix prepare present preserve prevent print prioritise prioritize process produce propose
protect prove provide publish pull push put quote raise re-export re-run reach read rebase
rebuild recommend record reduce refactor refer reference refine regenerate register reject
release rely remember remove rename render reorder repeat replace report reproduce request
require rerun reserve reset resolve respect respond restart restore restrict retain rethrow
return reuse revert review revisit rewrite roll rotate run sanitize save scan schedule scope
search secure see select send separate serve set setup share ship show sign simplify skip sort
specify split squash stage start state stay stick stop store stream strip structure study style
submit substitute summarize support suppress switch sync synchronize tag take target tell
terminate test think throw tidy touch trace track translate treat trigger trust try turn type
understand unify unwrap update upgrade upload use utilize validate verify version view visit
wait walk watch work wrap write
"""
_IMPERATIVE = lazy(
    rf"(?:(?:please|then|also|first|finally|next|always|only|just|now|instead|and|or|when possible|in other words"
    rf"|silently|explicitly)\b,? )*"
    rf"(?:{'|'.join(re.findall('[a-z-]+', _ORDERS))}|do(?: not|n['’ʼ]t)?|must|should|no)\b(?![-/])",
    re.IGNORECASE,
)
_FINITE = lazy(
    r"\b(?:is|are|was|were|be|been|has|have|had|must|should|shall|can|cannot|could|will|would|may|might|does|do|did"
    r"|needs?|requires?|uses?|lives?|runs?|means?|makes?|takes?|gets?|goes|comes?|keeps?|works?|supports?|provides?"
    r"|contains?|allows?|exists?|depends?|returns?|handles?|follows?|includes?|applies|apply|stays?|belongs?|never"
    r"|always|only|forbidden|required|prefer|avoid|ensure)\b|n['’ʼ]t\b",
    re.IGNORECASE,
)
_RULE = lazy(
    r"\b(?:(?:must|should|need)n['’ʼ]t|must|should|shall|never|always|do not|(?:do|wo)n['’ʼ]t"
    r"|only|avoid|forbidden|required?|requires)\b",
    re.IGNORECASE,
)
#: The beginning of a sentence that refers to the one before it, except if it names its subject itself.
_BACK = lazy(
    r"\W*(?:it|its|they|them|this|that|these|those|then|otherwise|however|but|so|and|or|also|such|both|either"
    r"|(?:in|for|as) (?:this|that|these|such)|if (?:so|not|that|this|it|they)|instead|therefore"
    r"|the (?:same|former|latter)|doing so|again|in other words"
    r"|(?:at (?:minimum|least|most)|in (?:short|practice)|concretely|specifically),? (?:this|that|it|these|those))\b"
    r"(?! (?:repo\w*|project|file|document|codebase|package|library|module|folder|directory|guide|page|section"
    r"|is an?)\b)",
    re.IGNORECASE,
)
_ELLIPTIC = lazy(r"\W*not to be confused with\b", re.IGNORECASE)
_RESTATES = lazy(r"\W*(?:in other words|put differently|that is to say)\b", re.IGNORECASE)
_CODE = lazy(r"`[^`]*`")
_OPENING = " \"'*_>-–—!⚠️✅❌🚫"
#: Words that forbid, oblige, or limit the sentences beside them.
_LIMITS = lazy(
    r"\b(?:never|not|cannot|unless|except(?:ions?|ing)?|only|must|shall|forbidden|prohibited|skip)\b|n['’ʼ]t\b",
    re.IGNORECASE,
)
#: The beginning of a sentence that limits the one before it.
_CONTRAST = lazy(r"\W*(?:but|however|although|though|yet)\b", re.IGNORECASE)
_CLAUSE_ENDS = lazy(r";\s|\s[-–—]\s")
#: Verbs that begin an order, and are often nouns: "Test files live in `tests/`".
_NOUNS = lazy(
    r"(?:access|address|approach|audit|author|base|batch|break|build|cache|call|change|commit|condense|cover|cut|debug"
    r"|default|design|display|document|end|exit|export|focus|force|format|group|guard|guide|handle|highlight|import"
    r"|index|label|launch|lead|limit|link|list|load|lock|log|look|map|mark|match|measure|mock|model|name|note|offer"
    r"|order|output|override|pass|place|plan|point|print|process|produce|publish|push|quote|record|reference|release"
    r"|request|reserve|reset|return|review|scope|search|set|setup|share|ship|sign|sort|split|stage|start|state|stop"
    r"|store|stream|structure|study|style|summary|support|switch|sync|tag|target|test|touch|trace|track|trigger|trust"
    r"|turn|type|upgrade|upload|use|version|view|visit|watch|work|wrap)\b",
    re.IGNORECASE,
)
#: The continuation of such a noun: a verb before any subordinate clause, or a word that only follows nouns.
_OF_A_NOUN = lazy(
    r"\w+(?: of\b|(?: (?:for )?(?!(?:the|an?|all|each|every|any|your|this|these|it|them|and|or|if|when|unless"
    r"|before|after|that|which|who|where|to|with|by|what|how)\b)[\w`./*-]+){0,4}"
    r" (?:is|are|was|were|has|have|can|cannot|will|does|do|goes?|lives?|uses?|runs?|needs?|requires?|contains?|follows?"
    r"|stays?|belongs?|takes?|gets?|covers?|includes?|sits?|resides?|comes?|returns?|supports?|handles?|reports?)\b)",
    re.IGNORECASE,
)
#: Any word before an article is the verb of an order, unless it belongs to a closed word class.
_VERB = lazy(
    r"(?!(?:about|above|across|after|all|along|although|among|and|another|any\w*|around|as|at|because|before|behind|below"
    r"|beneath|beside|between|beyond|both|but|by|despite|during|each|either|even|every\w*|except|few|for|from|given|half"
    r"|here|how|if|in|inside|into|like|many|more|most|near|neither|no|nor|not|nothing|of|off|on|once|only|onto|or|other"
    r"|out|outside|over|past|per|perhaps|plus|quite|rather|regarding|since|so|some\w*|still|such|than|that|then|there"
    r"|though|through|thus|till|to|toward|twice|under|unless|unlike|until|up|upon|versus|via|what\w*|when\w*|where\w*"
    r"|whether|which|while|who\w*|why|with\w*|yet)\b)"
    r"[A-Za-z][a-z-]+(?<!ing)(?<!ed)(?<!ly)(?<![^s]s) (?:the|an?|your|it|them)\b",
    re.IGNORECASE,
)
_CLAUSE = lazy(r"[,;:.(]|\s[-–—]\s")
_NEEDS = lazy(r"\bneeds? to\b")
#: Words before "need to" that make the clause a condition or a negation.
_NO_NEED = lazy(
    r"\b(?:if|when(?:ever)?|where|that|which|who|what|why|how|no|not|never|unless|before|after|because|since|may|might"
    r"|will|would|only|nothing|to)\b|n['’ʼ]t\b",
    re.IGNORECASE,
)
#: Words that oblige or forbid anywhere in a sentence, and those that do where an order may begin.
_OBLIGES = lazy(
    r"\b(?:(?:must|should|need)n['’ʼ]t|must|should|shall"
    r"|may not(?! (?:even|have|yet|know|need|exist|match|want|always)\b)"
    r"|forbidden|prohibited|disallowed|not (?:allowed|permitted)|(?<![-–—:] )required (?:for|to)"
    r"|(?:is|are) (?:required|mandatory|banned|(?:only )?allowed(?! by default))"
    r"|you (?:need|have) to)\b|^\W*(?:important|mandatory|critical)\W*:",
    re.IGNORECASE,
)
_FORBIDS = lazy(
    r"(?:^\W*|[,;:–—(]\s*|\s-\s+|[,;] (?:and|but|so|or|then) |\b(?:please|however,?) )"
    r"(?:do not|(?:do|wo)n['’ʼ]t|never|always|avoid|prefer"
    r"|only (?!for\b|in\b|if\b|when\b)(?=\w+ (?:the|an?|this|it|`)))\b",
    re.IGNORECASE,
)
_NOT_TO_DO = lazy(r"\bnot to (?:do|use)\b|\bdon['’ʼ]?ts\b|\b(?:forbidden|off[- ]limits)\b", re.IGNORECASE)
#: The beginning of a sentence that states the condition of its order.
_WHENCE = lazy(
    r"\W*(?:if|when(?:ever)?|before|after|for|in|on|while|once|where|unless|during|at|by|with)\b", re.IGNORECASE
)
#: The characters of a sentence in which its order begins.
_NEAR = 300
_COMMA = lazy(r", (?:then )?(?!(?:and|or)\b)")
#: The beginning of a sentence that only refers to further information.
_POINTS_AWAY = lazy(r"(?:see|check out|refer to|visit|learn more|read more|note that)\b", re.IGNORECASE)
_LABEL = lazy(r"\W{0,3}(?P<label>[^.:;]{1,200}):\s+(?P<rest>.*)", re.DOTALL)
#: The most words of a label, except before code.
_SHORT_LABEL = 5
#: A label that states when to run its commands, and so is an order.
_WHEN = lazy(
    r"\b(?:before|after|always|when(?:ever)?|every|each|in order|in sequence|first|then|once)\b", re.IGNORECASE
)
_ONLY_CODE = lazy(r"[\W\d_]*(?:(?:and|then|or)\b[\W\d_]*)*")


def is_negative(text: str) -> bool:
    """Return whether *text* contains a word that may negate, forbid or restrict the text after it.

    >>> is_negative("What NOT to do"), is_negative("Don’ts"), is_negative("You can use uv")
    (True, True, False)
    """
    return any(not _CAN.fullmatch(match[0]) for match in _NEGATION.finditer(text))


def is_condition(text: str) -> bool:
    """Return whether a heading states when, where or for what its statements apply.

    >>> is_condition("When adding a provider"), is_condition("Adding a provider"), is_condition("Naming")
    (True, True, True)
    """
    return bool(_CONDITION.search(text))


def is_arrangement(title: str) -> bool:
    """Return whether a heading only structures the page: its statements mean the same without it.

    >>> is_arrangement("2. Development Guidelines"), is_arrangement("Code Review Rules"), is_arrangement("Bad style")
    (True, False, False)
    """
    words = re.findall(r"[\w&-]+", re.sub(r"\S+\.mdc?\b|\bv(?:ersion )?\d[\d.]*", "", without_number(title).casefold()))
    return not is_negative(title) and all(word in _ARRANGING or word.isdigit() for word in words)


def names_work(title: str) -> bool:
    """Return whether a heading that structures its page names an activity, and so another subject than the one above
    it.

    >>> names_work("Development workflow"), names_work("Guidelines")
    (True, False)
    """
    return bool(_OF_WORK.search(title))


def without_number(title: str) -> str:
    """Return a heading without its number and colon.

    >>> without_number("## 3.1 Tests:")
    'Tests'
    """
    return _NUMBERED.sub("", title, count=1).strip().rstrip(":").rstrip() or title.strip()


def is_pointer(lead: str) -> bool:
    """Return whether a lead-in only announces a list.

    >>> is_pointer("Below is an overview:"), is_pointer("Below is an overview of what not to do:")
    (True, False)
    >>> is_pointer("Here are some guidelines:"), is_pointer("There are four kinds of store:")
    (True, False)
    """
    if is_negative(lead) or not (begin := _POINTS.match(lead)):
        return False
    rest = re.findall(r"\w+", lead[begin.end() :].casefold()) if _THERE.match(lead) else []
    return all(word in _ARRANGING or word in _POINTING for word in rest)


def is_of_samples(lead: str) -> bool:
    """Return whether a lead-in introduces examples.

    >>> is_of_samples("Example from the last release:"), is_of_samples("Examples of what not to do:")
    (True, False)
    """
    return bool(_OF_SAMPLES.match(lead)) and not is_negative(lead)


def is_sample_label(text: str) -> bool:
    """Return whether *text* labels a sample of code, such as "Good:" or "Don't do this:"."""
    return bool(_SAMPLE.fullmatch(text))


def is_of_the_page(text: str) -> bool:
    """Return whether all sentences of *text* are about its page or the reader of the page.

    >>> is_of_the_page("This file provides guidance to agents."), is_of_the_page("This file provides all. Keep it.")
    (True, False)
    """
    return not without_page(text)


def is_of_upkeep(lead: str) -> bool:
    """Return whether a lead-in states when to change its page.

    >>> is_of_upkeep("When to add to this file:"), is_of_upkeep("When not to add to this file:")
    (True, False)
    """
    return bool(_OF_UPKEEP.match(lead)) and not is_negative(lead)


def without_page(text: str) -> str:
    """Return *text* without the sentences about its page that it begins with, unless they contain a restriction.

    >>> without_page("This guide describes the build. Run `make` first.")
    'Run `make` first.'
    """
    parts = list(line_sentences(text))
    start = 0
    while start < len(parts):
        part = parts[start]
        is_of_reader = _OF_THE_READER.match(part) and not is_negative(part)
        is_of_page = _OF_THE_PAGE.match(part) or (start and _STILL_OF_THE_PAGE.match(part))
        if is_rule(part) or not (is_of_page or is_of_reader):
            break
        start += 1
    if start < len(parts) and any(map(is_negative, parts[:start])):
        return text
    return " ".join(parts[start:]) if start else text


def is_binding(text: str) -> bool:
    """Return whether *text* demands or forbids something: it begins as an order does, or contains a word such as
    "must".

    >>> is_binding("Run the linter"), is_binding("You must sign"), is_binding("Standard library")
    (True, True, False)
    """
    plain = _CODE.sub("`", text)
    return bool(_IMPERATIVE.match(plain.lstrip(_OPENING))) or is_rule(plain)


def is_rule(text: str) -> bool:
    """Return whether *text* contains a word that makes it a rule.

    >>> is_rule("Each file must start with a header"), is_rule("Run the tests")
    (True, False)
    """
    return bool(_RULE.search(text))


def is_sentence(text: str) -> bool:
    """Return whether *text* is probably a complete sentence, by its first word or a verb in it.

    >>> is_sentence("Tests live in `tests/`"), is_sentence("Internal packages")
    (True, False)
    """
    plain = _CODE.sub("`", text)
    return (
        is_binding(text) or bool(_FINITE.search(plain)) or bool(re.search(r"[.!?]\W*$", plain) and plain.count(" ") > 3)
    )


def refers_back(text: str) -> bool:
    """Return whether a sentence refers to the one before it.

    >>> refers_back("It is slow."), refers_back("This repository is old."), refers_back("Otherwise, stop.")
    (True, False, True)
    """
    return bool(_BACK.match(text))


def lacks_subject(text: str) -> bool:
    """Return whether *text* only restates or continues an earlier sentence, and is not binding by itself.

    >>> lacks_subject("Not to be confused with `b`."), lacks_subject("In other words, be kind.")
    (True, True)
    >>> lacks_subject("In other words, never block."), lacks_subject("Not all calls block.")
    (False, False)
    """
    return bool(_ELLIPTIC.match(text)) or (bool(_RESTATES.match(text)) and not is_rule(text) and not is_negative(text))


def binds(text: str) -> bool:
    """Return whether a sentence of *text*, or a part of it, demands or forbids something.

    The name of a command is not an order, nor is the description of a labelled command or file.

    >>> binds("The docs are generated; do not edit `docs/ja`"), binds("Workers do not write")
    (True, False)
    >>> binds("Jobs shouldn't overlap"), binds("Jobs mustn’t overlap"), binds("The job won't run")
    (True, True, False)
    >>> binds("Run tests: `make test`"), binds("`make check`: run all of them"), binds("Test files live in `tests/`")
    (False, False, False)
    """
    return any(_is_order(sentence) for sentence in line_sentences(text))


def forbids(title: str) -> bool:
    """Return whether a heading forbids or demands the text below it.

    >>> forbids("Do not:"), forbids("Never"), forbids("What NOT to do"), forbids("Non-goals")
    (True, True, True, False)
    """
    return bool(_FORBIDS.search(title) or _OBLIGES.search(title) or _NOT_TO_DO.search(title))


def _is_order(sentence: str) -> bool:
    plain = _CODE.sub("`", sentence)
    if _OBLIGES.search(plain) or _FORBIDS.search(plain) or _demands(plain):
        return True
    label = _LABEL.match(plain)
    if label and "`" in label["rest"] and _ONLY_CODE.fullmatch(label["rest"]):
        return bool(_WHEN.search(label["label"])) and any(map(_is_imperative, _clauses(label["label"])))
    if label and (label["label"].count(" ") < _SHORT_LABEL or label["label"].endswith("`")):
        clauses = label["rest"].split("; ")
        if label["label"].count(" ") > 1 and "`" not in label["rest"]:
            clauses.append(label["label"])
        return "`" not in label["label"] and any(map(_is_imperative, clauses))
    return any(map(_is_imperative, _clauses(plain)))


def _demands(sentence: str) -> bool:
    """Return whether *sentence* states that its subject needs to do or be something, other than in a condition."""
    for words in _CLAUSE.split(sentence):
        need = _NEEDS.search(words)
        if need and not _NO_NEED.search(words, 0, need.start()):
            return True
    return False


def _clauses(sentence: str) -> list[str]:
    first, _, last = sentence.partition(" — ")
    return [*re.split(r"; |, (?:so|but) ", sentence), *([last] if _FINITE.search(first) else [])]


def _is_imperative(clause: str) -> bool:
    """Return whether *clause*, without code, begins as an order does, after an optional condition."""
    starts = [clause.lstrip(_OPENING)]
    if _WHENCE.match(clause):
        starts += [clause[comma.end() :] for comma in _COMMA.finditer(clause, 0, _NEAR)]
    return any(
        (_IMPERATIVE.match(start) or _VERB.match(start))
        and not _POINTS_AWAY.match(start)
        and not (_NOUNS.match(start) and _OF_A_NOUN.match(start))
        for start in starts
    )


def shorten(text: str, longest: int = LONGEST) -> str:
    """Return *text* in about *longest* characters, with an ellipsis for each part that is left out.

    The first sentence stays. So does each that forbids, obliges or limits, with those that it refers to, up to _MOST
    characters in all; then orders and other sentences as far as there is room. A long first sentence is cut between
    words unless it would lose a prohibition.

    >>> shorten("Use a queue. It is fast. It is small. Never block.", 30)
    'Use a queue. … Never block.'
    """
    if len(text) <= longest:
        return text
    parts = [*line_sentences(text)]
    limits = [number for number, part in enumerate(parts) if _LIMITS.search(part) or _CONTRAST.match(part)]
    orders = [number for number, part in enumerate(parts) if binds(part)]
    sentences = {0: _cut_sentence(parts[0], longest)}
    rooms = ((limits, _MOST), (orders, _RESTRICTED if limits else longest), (range(len(parts)), longest))
    for number, room in ((number, room) for numbers, room in rooms for number in numbers):
        added = _with_subject(parts, number) - sentences.keys()
        if sum(map(len, sentences.values())) + sum(len(parts[each]) for each in added) + 3 * len(sentences) <= room:
            sentences |= {each: parts[each] for each in added}
    words, before = "", -1
    for number in sorted(sentences):
        words += f"{'' if number == before + 1 or words.endswith('…') else ' …'} {sentences[number]}"
        before = number
    return words.strip() + ("" if before == len(parts) - 1 or words.endswith("…") else " …")


def _with_subject(parts: Sequence[str], number: int) -> set[int]:
    """Return the numbers of a sentence and of those before it that it refers to."""
    numbers = {number}
    while number and refers_back(parts[number]):
        number -= 1
        numbers.add(number)
    return numbers


def _cut_sentence(sentence: str, longest: int) -> str:
    """Return *sentence* cut at the end of a clause if there is one in its second half, else between words.

    It is not cut within code. It stays whole up to _MOST characters if it would lose a negation, or a part of a clause
    that forbids or limits.
    """
    if len(sentence) <= longest:
        return sentence
    head = beginning(sentence, longest - 1)
    if head.count("`") % 2:
        head = head[: head.rindex("`")]
    rest = sentence[len(head) :]
    ends = [end.start() for end in _CLAUSE_ENDS.finditer(head) if head[: end.start()].count("`") % 2 == 0]
    is_limited = is_negative(rest) or _LIMITS.search(rest) or _LIMITS.search(head, ends[-1] if ends else 0)
    if is_limited and len(sentence) <= _MOST:
        return sentence
    if ends and ends[-1] > longest // 2:
        head = head[: ends[-1]]
    return head.rstrip(" ,;:–—-") + "…"
