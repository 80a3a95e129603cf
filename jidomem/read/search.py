"""The best of all memories that hold some of the words, of which no more are looked at than may be among them."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from jidomem.index.text_file import Found, TextFile, Within
from jidomem.lexical import Counts, Match
from jidomem.read import rank
from jidomem.read.rank import Scored
from jidomem.repository.ignored import matches
from jidomem.stems import Stemmer
from jidomem.words import TELL_LITTLE

#: Of a long text the words that tell most are looked for.
MOST_WORDS = 64
#: So many memories that hold the rarest words are looked at before those that hold other words alone.
FIRST = 4_000


def asked_for(stemmer: Stemmer, text: str) -> dict[str, str]:
    """Return the stems of *text*, each with the word it is looked for by: one that tells something where there is."""
    stems: dict[str, str] = {}
    for word, stem in stemmer.stems(text):
        if stem not in stems or stems[stem] in TELL_LITTLE:
            stems[stem] = word
    return stems


def search(
    file: TextFile, stems: Mapping[str, str], within: Within, about: Iterable[str], limit: int
) -> tuple[list[Scored], list[str], Counts]:
    """Return the best matches in order, the words they were looked for by, and the counts behind their scores.

    Words that tell little are looked for only where there are no others.
    """
    now = file.counts(stems)
    then = now if within.moment is None else file.counts(stems, within.moment)
    weight = telling(stems, then)
    one = _Search(file, within, weight, now, then, limit)
    if weight:
        one.run([*weight], numbers_about(file, about))
    return [found for _, found in one.best], list(weight), then


def telling(stems: Mapping[str, str], counts: Counts) -> dict[str, float]:
    """Return what is looked for of *stems*, that which tells most first, each with how much it tells."""
    asked = [stem for stem, word in stems.items() if word not in TELL_LITTLE] or [*stems]
    known = rank.weights((stem for stem in asked if counts.holding[stem]), counts)
    return {stem: known[stem] for stem in sorted(known, key=lambda stem: (-known[stem], stem))[:MOST_WORDS]}


def numbers_about(file: TextFile, about: Iterable[str]) -> frozenset[int]:
    """Return the numbers of the memories that are about one of the files *about*."""
    return file.about(_governing(file.places(), about)) if about else frozenset()


class _Search:
    """One search: `best` holds the best so far, the very best first."""

    def __init__(
        self, file: TextFile, within: Within, weight: Mapping[str, float], now: Counts, then: Counts, limit: int
    ) -> None:
        self.best: list[tuple[tuple[float, str, str], Scored]] = []
        self._file = file
        self._within = within
        self._weight = weight
        self._now = now
        self._then = then
        self._limit = limit
        self._seen: set[int] = set()
        self._about: frozenset[int] = frozenset()

    def run(self, rarest: list[str], about: frozenset[int]) -> None:
        """Look at all that may be among the best: what is *about* a file asked for, then what holds the rarest words.

        What no longer can be among them is not looked at: its score has a ceiling.
        """
        self._about = about
        if about:
            self._look(rarest, only=about)
        done = 0
        for taken in self._steps(rarest):
            self._look(rarest[done:taken], rarest[taken:], rarest[:done])
            if self._is_settled(rank.most(self._weight[stem] for stem in rarest[taken:])):
                return
            done = taken

    def _steps(self, rarest: list[str]) -> Iterator[int]:
        """Yield how many of the rarest words are looked for: as FIRST memories hold, then four times as many."""
        held, most, taken = [*accumulate(self._then.holding[stem] for stem in rarest)], FIRST, 0
        while taken < len(rarest):
            taken = max(taken + 1, bisect_right(held, most))
            yield taken
            most *= 4

    def _look(
        self, stems: list[str], beside: Sequence[str] = (), but: Sequence[str] = (), only: frozenset[int] | None = None
    ) -> None:
        """Score what holds one of *stems*, and none of *but*; words *beside* count too."""
        times, more = rank.ceiling({stem: self._weight[stem] for stem in (*stems, *beside)}, self._now, self._then)
        for found in self._file.best(stems, self._within, only, beside, but):
            most = found.reach * times + more
            if only is None and self._is_settled(most):
                return
            if found.number in self._seen or (only is None and self._is_settled(most, self._ties(found))):
                continue
            self._seen.add(found.number)
            match = self._file.match(found.number, None)
            assert match is not None
            self._add(self._final(match, frozenset([match.item])))

    def _ties(self, found: Found) -> float:
        return sum(rank.ties(found.recorded, found.confidence, self._then.newest))

    def _is_settled(self, lexical: float, ties: float = rank.TIES) -> bool:
        """Return whether what scores no more than *lexical* by its words, and is about no file, is none of the best."""
        worst = self.best[-1][1].score if len(self.best) == self._limit else 0.0
        return len(self.best) == self._limit and lexical * (1 + ties) * (1 + 1e-9) < worst

    def _final(self, match: Match, seen: frozenset[str]) -> Scored:
        """Return the score of a match, behind those of its successors that match as well."""
        is_about = match.number in self._about
        found = rank.scored(replace(match, is_about=is_about), self._weight, self._then)
        return rank.behind(found, self._after(match, seen)) if self._within.inactive else found

    def _after(self, match: Match, seen: frozenset[str]) -> Iterator[Scored]:
        """Yield what came in the place of a match, or later in the place of that, and matches as well."""
        for name in match.successors:
            successor = self._file.match(name, self._within.moment) if name not in seen else None
            if successor is not None:
                later = self._final(successor, seen | {name})
                yield from [later] if later.words else self._after(successor, seen | {name})

    def _add(self, found: Scored) -> None:
        insort(self.best, (found.place, found), key=lambda entry: entry[0])
        del self.best[self._limit :]


def _governing(places: Iterable[str], paths: Iterable[str]) -> list[str]:
    """Return which of *places* govern one of *paths*: the file, a folder above it, a pattern, or its module."""
    asked = [path.removeprefix("./").rstrip("/") for path in paths]
    return [place for place in places if any(_governs(place.removeprefix("./"), path) for path in asked)]


def _governs(place: str, path: str) -> bool:
    if path == place.rstrip("/") or path.startswith(place.rstrip("/") + "/"):
        return bool(place.strip("/"))
    module = path.rsplit(".", 1)[0].replace("/", ".")
    if place in (module, module.removeprefix("src."), module.removeprefix("lib.")):
        return True
    return any(sign in place for sign in "*?[") and matches(place, path)
