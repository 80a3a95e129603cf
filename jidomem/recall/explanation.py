"""The explanation of a hit: one line in plain words for each signal of its ranking, and one for its score. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from jidomem.base.words import quoted_name
from jidomem.recall.question import ROLES, Days, spoken_of
from jidomem.recall.ranking import AFTER, BEFORE, LONGEST_TEXT, USUAL, day_of
from jidomem.records.recall import Question, Ranked, ScoredPassage
from jidomem.records.search import CorpusStats

#: The most words that a line names; the share of the texts up to which a word is rare, and the fewest texts for that.
MOST_NAMED, RARE, ENOUGH = 8, 0.05, 20
#: Shares of hits that are stated as such; a smaller share is 1 in a number.
_SHARES = ((1, 5), (1, 4), (1, 3), (2, 5), (1, 2), (3, 5), (2, 3), (3, 4), (4, 5), (9, 10))
#: Feature -> its line, for the features that a candidate has or has not.
_SENTENCES: Mapping[str, str] = {
    "reply": "reply: the turn before asks a question with words of yours",
    "gives_time": "answer: it contains a time, as a question about a time needs",
    "gives_number": "answer: it contains a number, as a question about a number needs",
    "itself": "first person: it begins with a statement about the speaker",
    "told": "speaker: a person, not the assistant",
    "answered": "speaker: the assistant, about whose answers you ask",
    "other_kind": "kind: lowered, as you ask for a decision and it is none",
    "recent": "recent: newer texts of this kind rank higher",
    "about": "file: it is about a file that you named",
    "repeated": "conversation: lowered, as a better text of the same conversation is above it",
    "superseded": "superseded: it ranks behind the memory that replaced it",
}


def explain(one: Ranked, question: Question, score: float) -> tuple[str, ...]:
    """Return the lines for a ranked candidate with this *score*."""
    names = {part.casefold() for name in question.speakers if name.casefold() not in ROLES for part in name.split()}
    text, known = question.text.casefold(), {**question.stems, **question.unknown}
    known = dict(sorted(known.items(), key=lambda item: text.find(item[1])))
    terms = {stem: word for stem, word in known.items() if word not in names} or known
    lines = [
        *words_lines(terms, one.candidate.passage.words, question.counts),
        _meaning(one.candidate.passage, question),
        *_neighbours(one, terms),
        *_speaker(one, question),
        *_time(one, question),
        *feature_lines(one.parts),
        score_line(score),
    ]
    return tuple(lines)


def words_lines(terms: Mapping[str, str], matched: Collection[str], counts: CorpusStats) -> Iterator[str]:
    """Yield the line of the words: *terms* maps the stems of the question to its words, *matched* are stems."""
    if not terms:
        return
    most = RARE * counts.memories if counts.memories >= ENOUGH else 0
    present = [word + " (rare)" * (counts.holding.get(stem, 0) <= most) for stem, word in terms.items()
               if stem in matched]  # fmt: skip
    absent = [word for stem, word in terms.items() if stem not in matched and counts.holding.get(stem)]
    unknown = [word for stem, word in terms.items() if stem not in matched and not counts.holding.get(stem)]
    head = f"words: {len(present) or 'none'} of {len(terms)} word{'s' * (len(terms) != 1)} of the question"
    lists = [(f"{head}: " if present else head, present), ("not in this text: ", absent), ("in no text: ", unknown)]
    yield "; ".join(f"{title}{_listed(words)}" for title, words in lists if words or title == head)


def feature_lines(parts: Mapping[str, float]) -> Iterator[str]:
    """Yield the lines of the features in *parts* that a candidate has or has not."""
    yield from (line for name, line in _SENTENCES.items() if parts.get(name))


def score_line(score: float) -> str:
    """Return the line of a score.

    >>> score_line(0.46), score_line(0.08)
    ('score 0.46: about 1 in 2 hits like this answers', 'score 0.08: about 1 in 12 hits like this answers')
    """
    count, of = min(_SHARES, key=lambda share: abs(share[0] / share[1] - score))
    if score < _SHARES[0][0] / _SHARES[0][1]:
        count, of = 1, round(1 / max(score, 0.001))
    share = f"about {count} in {of:,} hits like this answer{'s' * (count == 1)}"
    return f"score {score:.2g}: {'nearly every hit like this answers' if score > 0.95 else share}"


def _listed(words: Sequence[str]) -> str:
    rest = len(words) - MOST_NAMED
    return ", ".join(words[:MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _meaning(passage: ScoredPassage, question: Question) -> str:
    if passage.cosine is None:
        missing = "this text has no vector yet" if question.has_vectors else "there are no vectors"
        return f"meaning: not compared, as {missing}"
    near = f", no more than for any text (up to {USUAL})" if passage.cosine <= USUAL else ""
    return f"meaning: cosine {passage.cosine:.2f} to the question{near}"


def _neighbours(one: Ranked, terms: Mapping[str, str]) -> Iterator[str]:
    """Yield the line of the texts around a candidate, if they add words or similarity."""
    passage, before, after = one.candidate.passage, one.candidate.before, one.candidate.after
    stems = {stem for each in (*before[:BEFORE], *after[:AFTER]) for stem in each.words} - {*passage.words}
    words = [word for stem, word in terms.items() if stem in stems] if "coverage_around" in one.parts else []
    near = [each.cosine for each in (*before, *after) if each.cosine is not None]
    closest = max(near, default=0.0) if "likeness_around" in one.parts else 0.0
    signs = [f"words: {_listed(words)}"] if words else []
    signs += [f"meaning: cosine up to {closest:.2f}"] if closest > USUAL else []
    if signs:
        yield f"neighbours in the session: {'; '.join(signs)}"


def _speaker(one: Ranked, question: Question) -> Iterator[str]:
    names = [name for name in one.candidate.passage.speakers if name in question.speakers]
    if one.parts.get("speaker") and names:
        yield f"speaker: {quoted_name(names[0])}, named in the question"


def _time(one: Ranked, question: Question) -> Iterator[str]:
    """Yield the line of the time that the question names, next to the time of the candidate or in its text."""
    passage, now = one.candidate.passage, day_of(question.now)
    day = day_of(passage.said_at)
    years = [each.year for each in (day, now) if each is not None]
    days = spoken_of(question.text, now, dict.fromkeys(years)) if "date" in one.parts else []
    if not days:
        return
    spans = spoken_of(passage.text[:LONGEST_TEXT], day) if "event" in one.parts else []
    named = next((span for span in spans for each in days if each.shared(span)), None)
    if named is not None:
        yield f"time: its text names {_dates(named)}, as the question does"
    elif day is not None:
        nearest = min(days, key=lambda each: abs(each.away(day)))
        away = nearest.away(day)
        distance = f"{abs(away):,} day{'s' * (abs(away) != 1)} {'after' if away > 0 else 'before'} the time in the"
        lowered = ": lowered" if one.parts.get("other_time", 0.0) < 0 else ""
        yield f"time: of {day}, {distance if away else 'in the time of the'} question ({_dates(nearest)}){lowered}"


def _dates(span: Days) -> str:
    return f"{span.first}" if span.first == span.last else f"{span.first} to {span.last}"
