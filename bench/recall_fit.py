"""How well the ranking finds evidence with weights fitted without the conversation, for each profile of the ranking.

    python -m bench.recall_fit --data FOLDER [--profiles people assistant tasks memories]

FOLDER holds the sets of `bench.recall`.  The features of all candidates of each question are gathered once.  For each
conversation (or person) the weights are fitted to all others of the profile: the likelihood of the evidence under a
softmax over the candidates, each set counting the same.  Printed are the shares of evidence among the first 5 and 10
with the weights of the program, with the fitted weights, and with plain fusion of BM25 and similarity; then the weights
fitted to all conversations.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from bench.recall import Once, Ours, Question, loaded, share_found, talks_of, written_before
from jidomem.recall import ranking
from jidomem.records import recall
from jidomem.records.recall import Candidate, Profile

#: Each profile with the sets to which it is fitted.
PROFILES: Mapping[str, tuple[Profile, Sequence[str]]] = {
    "people": (ranking.PEOPLE, ("locomo", "realtalk")),
    "assistant": (ranking.ASSISTANT, ("beam",)),
    "tasks": (ranking.TASKS, ("realmem",)),
    "memories": (ranking.MEMORIES, ("lifebench",)),
}
#: The penalty of squared weights, of standardised features; the steps of Newton's method; the constant of the fusion.
RIDGE, STEPS, FUSION = 1e-2, 12, 10
#: The rounds of a fit to the best turn of each conversation, which the weights of the round before choose.
ROUNDS = 3
Matrix = np.ndarray[Any, Any]
Key = tuple[str, str]


@dataclass
class Case:
    """A question with its candidates; `key` is the set and the conversation, `units` are what counts as found."""

    key: Key
    question: Question
    unit_of: Mapping[str, str]
    analysed: recall.Question
    candidates: Mapping[str, Candidate]  # by gid

    @cached_property
    def signs(self) -> Mapping[str, Mapping[str, float]]:
        """Return the features of each candidate, by gid."""
        profile: Profile = {"name": "all", **dict.fromkeys(ranking.SIGNS, 1.0)}
        gids = {one.passage.item: gid for gid, one in self.candidates.items()}
        ranked = ranking.ranked([*self.candidates.values()], self.analysed, profile)
        return {gids[one.candidate.passage.item]: one.parts for one in ranked}

    def features(self, names: Sequence[str]) -> Matrix:
        """Return a row for each of `signs`, a column for each of *names*."""
        return np.array([[parts[name] for name in names] for parts in self.signs.values()])

    @cached_property
    def is_evidence(self) -> Matrix:
        """Return for each of `signs` whether it is evidence."""
        return np.array([self.unit_of.get(gid, gid) in self.question.wanted for gid in self.signs], dtype=float)

    def best_of_each_talk(self, scores: Matrix) -> list[int]:
        """Return the positions of the best candidate of each conversation."""
        best: dict[str, int] = {}
        for position, gid in enumerate(self.signs):
            talk = self.candidates[gid].talk or gid
            if talk not in best or scores[position] > scores[best[talk]]:
                best[talk] = position
        return sorted(best.values())

    def ranked(self, profile: Profile) -> list[str]:
        """Return the gids in the order of the ranking."""
        gids = {one.passage.item: gid for gid, one in self.candidates.items()}
        ranked = ranking.ranked([*self.candidates.values()], self.analysed, profile)
        return [gids[one.candidate.passage.item] for one in ranked]

    def fused(self) -> list[str]:
        """Return the gids in the order of the sum of their reciprocal ranks by BM25 and by similarity."""
        total: dict[str, float] = defaultdict(float)
        for name in ("lexical", "likeness"):
            order = sorted(self.signs, key=lambda gid: -self.signs[gid][name])
            for rank, gid in enumerate(gid for gid in order if self.signs[gid][name] > 0):
                total[gid] += 1 / (FUSION + rank)
        return sorted(total, key=lambda gid: -total[gid])


def cases_of(name: str, data: Path, embedder: Once) -> Iterator[Case]:
    """Yield the questions of a set with their candidates."""
    system = Ours(embedder)
    for talk, question in written_before(system, talks_of(name, data, loaded(data))):
        candidates, analysed = system.gathered(question.text)
        by_gid = {system.ids[one.passage.item]: one for one in candidates}
        yield Case((name, talk.name), question, talk.unit_of, analysed, by_gid)
    system.close()


def fitted(cases: Sequence[Case], names: Sequence[str], *, of_talks: bool) -> Matrix:
    """Return the weights of the features *names*, fitted to *cases*; with *of_talks* to the best turn of each talk."""
    cases = [case for case in cases if case.is_evidence.any()]
    features = [case.features(names) for case in cases]
    weights, start = np.zeros(len(names)), [case.features(["lexical", "likeness"]).sum(axis=1) for case in cases]
    for _ in range(ROUNDS if of_talks else 1):
        scores = [each @ weights for each in features] if weights.any() else start
        chosen = [case.best_of_each_talk(score) if of_talks else [*range(len(score))]
                  for case, score in zip(cases, scores, strict=True)]  # fmt: skip
        weights = _maximised(
            [each[rows] for each, rows in zip(features, chosen, strict=True)],
            [case.is_evidence[rows] for case, rows in zip(cases, chosen, strict=True)],
            [case.key[0] for case in cases],
        )
    return weights


def _maximised(features: Sequence[Matrix], evidence: Sequence[Matrix], sets: Sequence[str]) -> Matrix:
    """Return the weights of the greatest penalised likelihood, by Newton's method; each set counts the same.

    A step that does not raise the likelihood is halved.
    """
    spread = np.vstack(features).std(axis=0) + 1e-9
    size = Counter(sets)
    cases = [
        (rows / spread, found / found.sum(), 1 / (size[name] * len(size)))
        for rows, found, name in zip(features, evidence, sets, strict=True)
        if found.any()
    ]

    def likelihood(weights: Matrix) -> float:
        total = -RIDGE * float(weights @ weights)
        for rows, found, share in cases:
            logits = rows @ weights
            total += share * float(found @ logits - logits.max() - np.log(np.exp(logits - logits.max()).sum()))
        return total

    weights = np.zeros(features[0].shape[1])
    for _ in range(STEPS):
        slope, curve = -2 * RIDGE * weights, 2 * RIDGE * np.eye(len(weights))
        for rows, found, share in cases:
            logits = rows @ weights
            chance = np.exp(logits - logits.max())
            chance /= chance.sum()
            mean_row = chance @ rows
            slope = slope + share * (found @ rows - mean_row)
            curve = curve + share * ((rows * chance[:, None]).T @ rows - np.outer(mean_row, mean_row))
        step, present = np.linalg.solve(curve, slope), likelihood(weights)
        while likelihood(weights + step) < present and np.abs(step).max() > 1e-6:
            step = step / 2
        weights = weights + step
    return np.asarray(weights / spread)


def report(title: str, cases: Sequence[Case], found: Callable[[Case], Sequence[str]]) -> None:
    """Print the recall of one way to rank, for each set."""
    shares: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for case in cases:
        order = found(case)
        shares[case.key[0]].append((share_found(order, case.question, case.unit_of, 5),
                                    share_found(order, case.question, case.unit_of, 10)))  # fmt: skip
    cells = [f"{name} {100 * mean(five for five, _ in each):.1f} / {100 * mean(ten for _, ten in each):.1f}"
             for name, each in shares.items()]  # fmt: skip
    print(f"| {title} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print a table for each profile."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder with the evaluations and the sets")
    parser.add_argument("--profiles", nargs="+", choices=PROFILES, default=[*PROFILES], help="which of them")
    given = parser.parse_args()
    embedder = Once()
    for name in given.profiles:
        profile, sets = PROFILES[name]
        names = [sign for sign in profile if sign in ranking.SIGNS]
        extra = {sign: value for sign, value in profile.items() if sign not in ranking.SIGNS}
        cases = [case for each in sets for case in cases_of(each, given.data, embedder)]
        without: dict[Key, Profile] = {}
        for key in dict.fromkeys(case.key for case in cases):
            weights = fitted([case for case in cases if case.key != key], names, of_talks="repeated" in profile)
            without[key] = {**extra, **dict(zip(names, map(float, weights), strict=True))}
        print(f"\n## {profile['name']}\n")
        report("weights of the program", cases, lambda case, profile=profile: case.ranked(profile))  # type: ignore[misc]
        report("fitted to the other conversations", cases, lambda case, by=without: case.ranked(by[case.key]))  # type: ignore[misc]
        report("fusion of BM25 and similarity", cases, Case.fused)
        weights = fitted(cases, names, of_talks="repeated" in profile)
        print("\nfitted to all:", ", ".join(f"{sign} {value:.2f}" for sign, value in zip(names, weights, strict=True)))


if __name__ == "__main__":
    main()
