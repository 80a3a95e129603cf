"""Search results and their order equal an exhaustive computation over all memories."""

from datetime import timedelta
from math import isclose, log
from random import Random

import pytest
from conftest import START

from jidomem.base.clock import format_timestamp
from jidomem.base.stems import Stemmer
from jidomem.index.search_documents import Document
from jidomem.index.search_tables import SearchFilter, SearchIndexReader
from jidomem.recall import bm25 as searching
from jidomem.recall.bm25 import search
from jidomem.records.interfaces import FIELD_WEIGHTS

STEMMER = Stemmer()
WORDS = ["quagga", "zebra", "okapi", "lynx", "tapir", "the", "index"]


def corpus_of(random, most=25):
    """Memories: each with some fields, perhaps ended by a later one, proposed, or about a file."""
    return [
        {
            "fields": {"summary": "x"} | {
                name: " ".join(random.choices(WORDS, k=random.randrange(6)))
                for name in FIELD_WEIGHTS
                if random.random() < 0.4
            },
            "ended_by": random.choice([None, random.randrange(n + 1, most + 1)]),
            "proposed": random.random() < 0.2,
            "confidence": random.choice(["High", "Medium", "Low"]),
            "about": random.choice([(), ("a.py",), ("b.py",)]),
        }
        for n in range(random.randrange(1, most))
    ]  # fmt: skip


def moment(n):
    return format_timestamp(START + timedelta(days=n))


def index_of(corpus):
    file = SearchIndexReader(":memory:", STEMMER, 1.0)
    file.fits()
    put(file, corpus)
    return file


def put(file, corpus, order=None):
    """Add a corpus to the search file, in *order* if one is given."""
    documents = [*enumerate(corpus)]
    with file.writing():
        file.put(
            Document(
                item=f"urn:m:{n:03}", types=("urn:t",), recorded=moment(n),
                ended=moment(one["ended_by"]) if _ends(corpus, n) else None,
                inactive="proposed" if one["proposed"] else None, agent="a",
                session="s", confidence=one["confidence"], valid_from=None, valid_until=None,
                successors=(f"urn:m:{one['ended_by']:03}",) if _ends(corpus, n) else (), about=one["about"],
                texts=tuple(one["fields"].get(name, "") for name in FIELD_WEIGHTS),
            )
            for n, one in (documents if order is None else (documents[n] for n in order))
        )  # fmt: skip


def _ends(corpus, n):
    end = corpus[n]["ended_by"]
    return end is not None and end < len(corpus) and not corpus[end]["proposed"]


def _stems(text):
    return [stem for _, stem in STEMMER.stems(text)]


def exhaustive(corpus, query, *, until, inactive, about, limit):
    """Return the expected matches: every memory is scored, then sorted."""
    known = range(min(until + 1, len(corpus)))
    stems = {word: STEMMER.stems(word)[0][1] for word in query}
    stems_by_field = [
        {name: [stem for _, stem in STEMMER.stems(text)] for name, text in corpus[n]["fields"].items()} for n in known
    ]
    length = [sum(map(len, fields.values())) for fields in stems_by_field]
    average = sum(length) / len(stems_by_field)
    weights = {}
    for word, stem in stems.items():
        holding = sum(any(stem in field for field in fields.values()) for fields in stems_by_field)
        if holding:
            odds = (len(stems_by_field) - holding + 0.5) / (holding + 0.5)
            weight = max(log(odds), log(1 + odds) / 2)
            if word != "the" or [*query] == ["the"]:
                weights[stem] = weight

    def score(n):
        frequency = {
            stem: sum(FIELD_WEIGHTS[name] * field.count(stem) for name, field in stems_by_field[n].items())
            for stem in weights
        }
        damping = 1.2 * (0.25 + 0.75 * length[n] / average)
        lexical = sum(weights[stem] * frequency[stem] * 2.2 / (frequency[stem] + damping) for stem in weights)
        sure = {"High": 0.02, "Medium": 0.01, "Low": 0.0}[corpus[n]["confidence"]]
        bonus = 0.5 if about in corpus[n]["about"] else 0.0
        own = lexical * (1 + bonus + 0.03 * 0.5 ** ((known[-1] - n) / 30) + sure)
        while inactive and _ends(corpus, n) and corpus[n]["ended_by"] in known:
            n = corpus[n]["ended_by"]
            if after := score(n):
                return min(own, after * 0.999)
        return own

    def is_active(n):
        return not corpus[n]["proposed"] and not (_ends(corpus, n) and corpus[n]["ended_by"] <= until)

    scores = [(score(n), n) for n in known if inactive or is_active(n)]
    return sorted((entry for entry in scores if entry[0]), key=lambda entry: (-entry[0], -entry[1]))[:limit]


@pytest.mark.parametrize("first", [1, 50_000])
def test_the_best_matches_equal_those_of_an_exhaustive_computation(first, monkeypatch):
    monkeypatch.setattr(searching, "FIRST", first)
    for seed in range(60):
        random = Random(seed)
        corpus = corpus_of(random)
        file = index_of(corpus)
        for _ in range(10):
            query = random.sample(WORDS, random.randrange(1, 5))
            until, inactive = random.choice([None, random.randrange(25)]), random.random() < 0.5
            about, limit = random.choice(["", "a.py"]), random.randrange(1, 9)

            stems = {stem: word for word, stem in STEMMER.stems(" ".join(query))}
            search_filter = SearchFilter(moment=None if until is None else moment(until), inactive=inactive)
            matches, _, _ = search(file, stems, search_filter, [about] if about else [], limit)

            last = len(corpus) - 1 if until is None else min(until, len(corpus) - 1)
            expected = exhaustive(corpus, query, until=last, inactive=inactive, about=about, limit=limit)
            assert [int(one.match.item[-3:]) for one in matches] == [n for _, n in expected], seed
            assert all(isclose(one.score, score) for one, (score, _) in zip(matches, expected, strict=True)), seed


def test_the_engine_score_of_a_match_is_its_bm25():
    for seed in range(30):
        random = Random(seed)
        file = index_of(corpus_of(random))
        stems = [STEMMER.stems(word)[0][1] for word in random.sample(WORDS, random.randrange(1, 4))]
        counts = file.counts(stems)

        for match_ in file.best(stems, SearchFilter(inactive=True)):
            assert isclose(match_.reach, _bm25(file.match(match_.number, None), stems, counts)), seed


def _bm25(match, stems, counts):
    """Return the bm25() of a match as SQLite documents it."""
    score = 0.0
    for stem in stems:
        holding = counts.holding[stem]
        weight = log((counts.memories - holding + 0.5) / (holding + 0.5))
        frequency = sum(
            weight * text.split().count(stem) for weight, text in zip(FIELD_WEIGHTS.values(), match.fields, strict=True)
        )
        damping = 1.2 * (0.25 + 0.75 * match.length * counts.memories / counts.words)
        score += max(weight, 1e-6) * frequency * 2.2 / (frequency + damping)
    return score


@pytest.mark.parametrize("first", range(3))
def test_matches_within_a_filter_are_the_best_that_pass_it(first):
    for seed in range(first * 10, (first + 1) * 10):
        random = Random(seed)
        file, search_filter = index_of(corpus_of(random)), SearchFilter(since=moment(random.randrange(25)))
        stems, count = _stems(" ".join(random.sample(WORDS, 2))), random.randrange(1, 9)
        only = random.choice([None, range(0, 25, 2)])

        best = [(one.number, one.reach) for one in file.best(stems, search_filter, only)]
        assert file.matches(stems, (), count, only, search_filter) == best[:count], seed


def test_counts_at_a_moment_do_not_depend_on_the_order_of_writes():
    for seed in range(10):
        random = Random(seed)
        corpus = corpus_of(random)
        file = SearchIndexReader(":memory:", STEMMER, 1.0)
        file.fits()
        put(file, corpus, random.sample(range(len(corpus)), len(corpus)))

        for n in range(len(corpus)):
            assert file.counts(WORDS, moment(n)) == index_of(corpus[: n + 1]).counts(WORDS)


def test_an_updated_search_file_equals_a_new_one():
    for seed in range(20):
        before, after = corpus_of(Random(seed)), corpus_of(Random(-1 - seed))
        file, fresh = index_of(before), index_of(after)
        put(file, after)
        with file.writing():
            file.remove(f"urn:m:{n:03}" for n in range(len(after), len(before) + 1))

        for until in (None, moment(3)):
            assert file.counts(WORDS, until) == fresh.counts(WORDS, until)
        actual, expected = (
            [f.match(one.number, None) for one in f.best(WORDS, SearchFilter(inactive=True))] for f in (file, fresh)
        )
        contents = [sorted((m.item, m.fields, m.length, m.recorded) for m in matches) for matches in (actual, expected)]
        assert contents[0] == contents[1]
        assert sorted(file.places()) == sorted(fresh.places())
