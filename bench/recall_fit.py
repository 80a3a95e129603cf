"""Evidence recall with ranking weights fitted by cross-validation, for each profile of the ranking.

    python -m bench.recall_fit --data FOLDER [--profiles people assistant tasks memories]

FOLDER has the data sets of `bench.recall`.  For each conversation (or person) the weights are fitted to all others of
the profile: the likelihood of the evidence under a softmax over the candidates, each set counting the same.  It prints
the shares of evidence among the first 5 and 10 with the weights of the program, with the fitted weights, and with
reciprocal rank fusion of BM25 and similarity; then the weights fitted to all conversations.
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

from bench.recall import (
    CachedEmbedder,
    JidomemSystem,
    Question,
    load_evaluation,
    questions_in_time,
    share_of_evidence,
    talks_of,
)
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
#: The ridge penalty of standardised features; the steps of Newton's method; the constant of rank fusion.
RIDGE, STEPS, FUSION = 1e-2, 12, 10
#: Rounds of a fit to the best turn of each conversation, which the weights of the previous round select.
ROUNDS = 3
Matrix = np.ndarray[Any, Any]
Key = tuple[str, str]


@dataclass
class Case:
    """A question with its candidates by gid; `key` has the set and the conversation."""

    key: Key
    question: Question
    unit_of: Mapping[str, str]
    analysed: recall.Question
    candidates: Mapping[str, Candidate]

    @cached_property
    def features_by_gid(self) -> Mapping[str, Mapping[str, float]]:
        """Return the features of each candidate, by gid."""
        profile: Profile = {"name": "all", **dict.fromkeys(ranking.SIGNS, 1.0)}
        return {gid: match.parts for gid, match in self._matches(profile)}

    def feature_matrix(self, names: Sequence[str]) -> Matrix:
        """Return a matrix with a row for each candidate and a column for each of *names*."""
        return np.array([[parts[name] for name in names] for parts in self.features_by_gid.values()])

    @cached_property
    def is_evidence(self) -> Matrix:
        """Return a vector: 1 for each candidate that is evidence, else 0."""
        return np.array(
            [self.unit_of.get(gid, gid) in self.question.evidence for gid in self.features_by_gid], dtype=float
        )

    def best_of_each_talk(self, scores: Matrix) -> list[int]:
        """Return the positions of the best candidate of each conversation."""
        best: dict[str, int] = {}
        for position, gid in enumerate(self.features_by_gid):
            talk = self.candidates[gid].talk or gid
            if talk not in best or scores[position] > scores[best[talk]]:
                best[talk] = position
        return sorted(best.values())

    def ranked(self, profile: Profile) -> list[str]:
        """Return the gids in the order of the ranking."""
        return [gid for gid, _ in self._matches(profile)]

    def _matches(self, profile: Profile) -> Iterator[tuple[str, Any]]:
        """Yield the matches with their gids, best first."""
        gids = {candidate.passage.item: gid for gid, candidate in self.candidates.items()}
        for match in ranking.ranked([*self.candidates.values()], self.analysed, profile):
            yield gids[match.candidate.passage.item], match

    def fused(self) -> list[str]:
        """Return the gids in the order of the sum of their reciprocal ranks by BM25 and by similarity."""
        total: dict[str, float] = defaultdict(float)
        for name in ("lexical", "likeness"):
            order = sorted(self.features_by_gid, key=lambda gid: -self.features_by_gid[gid][name])
            for rank, gid in enumerate(gid for gid in order if self.features_by_gid[gid][name] > 0):
                total[gid] += 1 / (FUSION + rank)
        return sorted(total, key=lambda gid: -total[gid])


def cases_of(name: str, data: Path, embedder: CachedEmbedder) -> Iterator[Case]:
    """Yield the questions of a set with their candidates."""
    system = JidomemSystem(embedder)
    for talk, question in questions_in_time(system, talks_of(name, data, load_evaluation(data))):
        candidates, analysed = system.gather_candidates(question.text)
        by_gid = {system.ids[candidate.passage.item]: candidate for candidate in candidates}
        yield Case((name, talk.name), question, talk.unit_of, analysed, by_gid)
    system.close()


def fit(cases: Sequence[Case], names: Sequence[str], *, per_talk: bool) -> Matrix:
    """Return the weights of the features *names*, fitted to *cases*; with *per_talk* to the best turn of each talk."""
    cases = [case for case in cases if case.is_evidence.any()]
    features = [case.feature_matrix(names) for case in cases]
    weights, start = np.zeros(len(names)), [case.feature_matrix(["lexical", "likeness"]).sum(axis=1) for case in cases]
    for _ in range(ROUNDS if per_talk else 1):
        scores = [each @ weights for each in features] if weights.any() else start
        selected = [case.best_of_each_talk(score) if per_talk else [*range(len(score))]
                  for case, score in zip(cases, scores, strict=True)]  # fmt: skip
        weights = _maximise_likelihood(
            [each[rows] for each, rows in zip(features, selected, strict=True)],
            [case.is_evidence[rows] for case, rows in zip(cases, selected, strict=True)],
            [case.key[0] for case in cases],
        )
    return weights


def _maximise_likelihood(features: Sequence[Matrix], evidence: Sequence[Matrix], sets: Sequence[str]) -> Matrix:
    """Return the weights of the greatest penalised likelihood, by Newton's method; each set counts the same.

    A step that does not raise the likelihood is halved.
    """
    deviations = np.vstack(features).std(axis=0) + 1e-9
    case_counts = Counter(sets)
    cases = [
        (rows / deviations, evidence_weights / evidence_weights.sum(), 1 / (case_counts[name] * len(case_counts)))
        for rows, evidence_weights, name in zip(features, evidence, sets, strict=True)
        if evidence_weights.any()
    ]

    def likelihood(weights: Matrix) -> float:
        total = -RIDGE * float(weights @ weights)
        for rows, evidence_weights, weight in cases:
            logits = rows @ weights
            total += weight * float(
                evidence_weights @ logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
            )
        return total

    weights = np.zeros(features[0].shape[1])
    for _ in range(STEPS):
        gradient, hessian = -2 * RIDGE * weights, 2 * RIDGE * np.eye(len(weights))
        for rows, evidence_weights, weight in cases:
            logits = rows @ weights
            probability = np.exp(logits - logits.max())
            probability /= probability.sum()
            mean_row = probability @ rows
            gradient = gradient + weight * (evidence_weights @ rows - mean_row)
            hessian = hessian + weight * ((rows * probability[:, None]).T @ rows - np.outer(mean_row, mean_row))
        step, current = np.linalg.solve(hessian, gradient), likelihood(weights)
        while likelihood(weights + step) < current and np.abs(step).max() > 1e-6:
            step = step / 2
        weights = weights + step
    return np.asarray(weights / deviations)


def report(title: str, cases: Sequence[Case], rank: Callable[[Case], Sequence[str]]) -> None:
    """Print the recall of one way to rank, for each set."""
    shares: dict[str, list[list[float]]] = defaultdict(list)
    for case in cases:
        gids = rank(case)
        recall_at = [share_of_evidence(gids, case.question, case.unit_of, most) for most in (5, 10)]
        shares[case.key[0]].append(recall_at)
    cells = [f"{name} {100 * mean(five for five, _ in each):.1f} / {100 * mean(ten for _, ten in each):.1f}"
             for name, each in shares.items()]  # fmt: skip
    print(f"| {title} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print a table for each profile."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder with eval_recall.py and the sets")
    parser.add_argument(
        "--profiles", nargs="+", choices=PROFILES, default=[*PROFILES], help="profiles to fit (default: all)"
    )
    arguments = parser.parse_args()
    embedder = CachedEmbedder()
    for name in arguments.profiles:
        profile, sets = PROFILES[name]
        names = [signal for signal in profile if signal in ranking.SIGNS]
        extra = {signal: value for signal, value in profile.items() if signal not in ranking.SIGNS}
        cases = [case for each in sets for case in cases_of(each, arguments.data, embedder)]
        fitted_profiles: dict[Key, Profile] = {}
        for key in dict.fromkeys(case.key for case in cases):
            weights = fit([case for case in cases if case.key != key], names, per_talk="repeated" in profile)
            fitted_profiles[key] = {**extra, **dict(zip(names, map(float, weights), strict=True))}
        print(f"\n## {profile['name']}\n")
        report("weights of the program", cases, lambda case, profile=profile: case.ranked(profile))  # type: ignore[misc]
        report("fitted to the other conversations", cases, lambda case, by=fitted_profiles: case.ranked(by[case.key]))  # type: ignore[misc]
        report("fusion of BM25 and similarity", cases, Case.fused)
        weights = fit(cases, names, per_talk="repeated" in profile)
        print(
            "\nfitted to all:", ", ".join(f"{signal} {value:.2f}" for signal, value in zip(names, weights, strict=True))
        )


if __name__ == "__main__":
    main()
