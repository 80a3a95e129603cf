"""Calibration of the scores of recall, and how often recall is silent, on questions that were not used for the fit.

    python -m bench.calibration [--data FOLDER]

The labelled notes of projects calibrate the ranking of memories: a line of log odds is fitted to one part and measured
on the other.  With FOLDER, which has the data sets of `bench.recall`, each conversation is left out of the fit of its
ranking.  Each corpus gets its own questions, with and without an answer, and as many of other corpora.  The first 10
results of each question count.  It prints the reliability of the scores, and for some minimum scores the lost answers
and the questions without any result.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import cycle, islice, zip_longest
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

import jidomem
from bench.recall import (
    ADVERSARIAL,
    PROJECT,
    RETRIEVED,
    SETS,
    CachedEmbedder,
    JidomemSystem,
    Talk,
    load_evaluation,
    talks_of,
)
from jidomem.index.search_tables import SearchFilter
from jidomem.journal.journal import Stream
from jidomem.recall import bm25
from jidomem.recall.bm25 import query_stems
from jidomem.recall.candidates import RecallQuery
from jidomem.recall.ranking import WORDS, Calibration, RankingSource, rank_sources
from jidomem.records.interfaces import Embedder
from jidomem.records.recall import DEFAULT_LIMIT, MIN_SCORE, MIN_SHARE
from jidomem.runtime.root import Jidomem

NOTES = Path(__file__).parents[1] / "tests/recall/project_notes"
FIELDS = ("type", "summary", "topic", "about", "rationale")
#: The sets of each ranking of conversations.
CONVERSATION_SETS = (("locomo", "realtalk"), ("beam",), ("realmem",))
#: The results of a question that count; number and length of the bars of the diagram; the steps of Newton's method;
#: the shares of lost answers at which the curve is printed.
RESULTS, BARS, BAR_LENGTH, STEPS, LOST_SHARES = 10, 10, 30, 30, (0.02, 0.05, 0.1, 0.2, 0.3)
#: The kinds of questions to a corpus.
ANSWERED, UNANSWERED, OTHER = "answered", "unanswered", "of another"
Matrix = np.ndarray[Any, Any]


class Case(NamedTuple):
    """A question to a corpus: the uncalibrated scores of its first results, and whether each is an answer."""

    corpus: str
    kind: str
    ranking: str
    raw_scores: tuple[float, ...]
    is_answer: tuple[bool, ...]


class Labelled(NamedTuple):
    """A question with the ids of its answers, if it has any."""

    text: str
    answers: frozenset[str] = frozenset()


Scored = Sequence[tuple[Case, Matrix]]
#: Returns for a question the name of the ranking, and the ids of the results with uncalibrated scores, best first.
Rank = Callable[[str], tuple[str, list[tuple[str, float]]]]


def cases_of(
    corpus: str, rank: Rank, own_questions: Sequence[Labelled], foreign_questions: Sequence[str]
) -> Iterator[Case]:
    """Yield a case for each of the own questions of a corpus, and for as many of other corpora."""
    questions = [(each, ANSWERED if each.answers else UNANSWERED) for each in own_questions]
    questions += [(Labelled(text), OTHER) for text in islice(cycle(foreign_questions), len(own_questions))]
    for question, kind in questions:
        ranking, results = rank(question.text)
        is_answer = tuple(name in question.answers for name, _ in results[:RESULTS])
        yield Case(corpus, kind, ranking, tuple(raw_score for _, raw_score in results[:RESULTS]), is_answer)


def note_cases(
    embedder: Embedder | None, parts: Collection[str] = ("fit", "held out"), *, by_words: bool = False
) -> dict[str, list[Case]]:
    """Return the cases of the labelled notes of some *parts*, by part."""
    all_notes = _notes()
    cases: dict[str, list[Case]] = {}
    for notes in (each for each in all_notes if each["part"] in parts):
        own_questions = [Labelled(each["question"], frozenset(each["answers"])) for each in notes["questions"]]
        own_questions += [Labelled(text) for text in notes["unanswered"]]
        other_questions = [
            other["questions"] for other in all_notes if other is not notes and other["part"] == notes["part"]
        ]
        foreign_questions = [each["question"] for row in zip_longest(*other_questions) for each in row if each]
        cases.setdefault(notes["part"], []).extend(
            _cases_of_memories(
                notes["repository"], notes["memories"], own_questions, foreign_questions, embedder, by_words=by_words
            )
        )
    return cases


def small_cases(
    embedder: Embedder | None, part: str, size: int, seed: int, *, by_words: bool = False
) -> Iterator[Case]:
    """Yield the cases of *size* notes of each repository of a part, drawn by *seed*.

    Two questions have no answer among these notes for each three with one.
    """
    all_notes = [each for each in _notes() if each["part"] == part]
    for notes in all_notes:
        random = Random(f"{notes['repository']} {size} {seed}")
        first = random.choice(notes["questions"])["answers"][:2]
        memories = sorted(notes["memories"], key=lambda note: (note["id"] not in first, random.random()))[:size]
        ids = {note["id"] for note in memories}
        labelled = [Labelled(each["question"], frozenset(each["answers"]) & ids) for each in notes["questions"]]
        with_answer = [each for each in labelled if each.answers]
        without = [each for each in labelled if not each.answers] + [Labelled(text) for text in notes["unanswered"]]
        own_questions = with_answer + random.sample(without, max(1, 2 * len(with_answer) // 3))
        foreign_questions = [
            each["question"] for other in all_notes if other is not notes for each in other["questions"]
        ]
        random.shuffle(foreign_questions)
        yield from _cases_of_memories(
            notes["repository"], memories, own_questions, foreign_questions, embedder, by_words=by_words
        )


def _notes() -> list[dict[str, Any]]:
    return [json.loads(path.read_text("utf-8")) for path in sorted(NOTES.glob("*.json"))]


def _cases_of_memories(
    corpus: str, memories: Sequence[Mapping[str, Any]], own_questions: Sequence[Labelled],
    foreign_questions: Sequence[str], embedder: Embedder | None, *, by_words: bool,
) -> list[Case]:  # fmt: skip
    """Return the cases of a new root with these *memories*."""
    with tempfile.TemporaryDirectory() as folder:
        root = jidomem.open(Path(folder) / "root", project=PROJECT, agent="bench", embedder=embedder)
        ids = {_write(root, note): note["id"] for note in memories}
        if root.embedding is not None:
            root.embedding.embed(PROJECT)
        rank = ranking_by_words(root, ids) if by_words else ranking_of(root, Stream(PROJECT), ids, spoken=False)
        cases = [*cases_of(corpus, rank, own_questions, foreign_questions)]
        root.close()
    return cases


def _write(root: Jidomem, note: Mapping[str, Any]) -> str:
    """Write a labelled note as a memory, and return its IRI."""
    fields = {name: note[name] for name in FIELDS if note[name]}
    defaults = {"applies_to_project": PROJECT, "asserted_by": "bench", "asserted_in": "s", "confidence": "high"}
    return str(root.writer.submit_intent(PROJECT, {"rationale": "as noted", **defaults, **fields}).iri)


def ranking_of(root: Jidomem, stream: Stream, ids: Mapping[str, str], *, spoken: bool) -> Rank:
    """Return the ranking of *stream*, whose texts have *ids*."""

    def rank(text: str) -> tuple[str, list[tuple[str, float]]]:
        similarities = root.vector_query(text, PROJECT, None, spoken=spoken)
        query = RecallQuery(text, query_stems(root.texts.stemmer, text), now=root.now(), limit=RETRIEVED)
        answer = rank_sources([RankingSource(root.texts, stream, SearchFilter(), similarities)], query)
        matches = (
            match for match, *_ in answer.ranked if match.score
        )  # vector neighbours without any signal have no score
        return answer.ranking, [(ids[match.candidate.passage.item], match.score) for match in matches]

    return rank


def ranking_by_words(root: Jidomem, ids: Mapping[str, str]) -> Rank:
    """Return the ranking of memories by words alone."""

    def rank(text: str) -> tuple[str, list[tuple[str, float]]]:
        stems = query_stems(root.texts.stemmer, text)
        matches, _, counts = root.texts.read(
            Stream(PROJECT), lambda file: bm25.search(file, stems, SearchFilter(), (), RETRIEVED)
        )
        best_possible = bm25.total_weight(bm25.significant_stems(stems), counts)
        return WORDS, [(ids[scored.match.item], scored.score / best_possible) for scored in matches]

    return rank


def talk_cases(names: Sequence[str], data: Path, embedder: CachedEmbedder | None) -> list[Case]:
    """Return the cases of conversations; if the evidence are sessions, the best turn of each counts."""
    evaluation = load_evaluation(data)
    talks = [(name, talk) for name in names for talk in talks_of(name, data, evaluation)]
    unanswerable = {name: unanswered_questions(name, data, evaluation) for name in names}
    cases: list[Case] = []
    system = JidomemSystem(embedder)
    for name, talk in talks:
        questions = [Labelled(each.text, each.evidence) for each in talk.questions]
        questions += [Labelled(text) for text in unanswerable[name].get(talk.name, ())]
        foreign_questions = [
            each.text for _, other in talks if other.name != talk.name for each in other.questions[::7]
        ]
        cases += cases_of(talk.name, _in_time(system, talk), questions, foreign_questions)
    system.close()
    return cases


def _in_time(system: JidomemSystem, talk: Talk) -> Rank:
    """Return the ranking of *talk*, which writes the turns before a question first; questions come in their order."""
    system.reset()
    rank = _by_unit(ranking_of(system.root, Stream(PROJECT, "history"), system.ids, spoken=True), talk)
    after, written = {each.text: each.after for each in talk.questions}, 0

    def rank_in_time(text: str) -> tuple[str, list[tuple[str, float]]]:
        nonlocal written
        turns = talk.turns[written : after.get(text, len(talk.turns))]
        if turns:
            system.write(turns)
            written += len(turns)
        return rank(text)

    return rank_in_time


def _by_unit(rank: Rank, talk: Talk) -> Rank:
    """Return *rank* with the session of each turn in its place, if the evidence are sessions."""

    def best(text: str) -> tuple[str, list[tuple[str, float]]]:
        ranking, results = rank(text)
        raw_scores: dict[str, float] = {}
        for name, raw_score in results:
            raw_scores.setdefault(talk.unit_of[name], raw_score)
        return ranking, [*raw_scores.items()]

    return best if talk.unit_of else rank


def unanswered_questions(name: str, data: Path, evaluation: ModuleType) -> dict[str, list[str]]:
    """Return the questions of a set that its conversations do not answer, by conversation."""
    if name == "beam":
        paths = (data / SETS[name]).glob("*.q.json")
        files = {path.name.split(".")[0]: json.loads(path.read_text("utf-8")) for path in paths}
        return {f"beam-{name}": [each["question"] for each in file["abstention"]] for name, file in files.items()}
    talks = evaluation.load(str(data / SETS[name])) if name in SETS else []
    return {talk.id: [each.text for each in talk.questions if each.category == ADVERSARIAL] for talk in talks}


def fit(cases: Sequence[Case]) -> Calibration:
    """Return the line of log odds of the greatest likelihood, by Newton's method."""
    raw_scores = np.array([raw_score for case in cases for raw_score in case.raw_scores])
    is_answer = np.array([each for case in cases for each in case.is_answer], dtype=float)
    rows, line = np.column_stack([raw_scores, np.ones_like(raw_scores)]), np.zeros(2)
    for _ in range(STEPS):
        probability = 1 / (1 + np.exp(-rows @ line))
        hessian = (rows * (probability * (1 - probability))[:, None]).T @ rows + 1e-6 * np.eye(2)
        line = line + np.linalg.solve(hessian, rows.T @ (is_answer - probability))
    return Calibration(float(line[0]), float(line[1]))


def scores(case: Case, line: Calibration) -> Matrix:
    """Return the scores of the results of a case."""
    return np.array([line.probability(raw_score) for raw_score in case.raw_scores])


def reliability_bars(cases: Scored) -> Iterator[tuple[float, int, float, float]]:
    """Yield the lower end of each bar with results, their number, their mean score, and the share of answers."""
    probability = np.concatenate([each for _, each in cases])
    is_answer = np.array([each for case, _ in cases for each in case.is_answer], dtype=float)
    places = np.minimum((probability * BARS).astype(int), BARS - 1)
    for place in np.unique(places):
        inside = places == place
        yield place / BARS, int(inside.sum()), float(probability[inside].mean()), float(is_answer[inside].mean())


def calibration_error(cases: Scored) -> float:
    """Return the expected calibration error: the mean distance of score and share of answers."""
    bars = [*reliability_bars(cases)]
    return sum(count * abs(mean - share) for _, count, mean, share in bars) / sum(count for _, count, *_ in bars)


def _best_answers(cases: Scored) -> list[float]:
    """Return the score of the best answer of each case that has one, lowest first."""
    return sorted(float(each[np.array(case.is_answer)].max()) for case, each in cases if any(case.is_answer))


def lost_answers(cases: Scored, minimum: float) -> tuple[int, int]:
    """Return the number of questions with an answer among the results, and of those that lose it below *minimum*."""
    best = _best_answers(cases)
    return len(best), sum(score < minimum for score in best)


def silent_questions(cases: Scored, kind: str, minimum: float) -> tuple[int, int]:
    """Return the number of questions of a *kind*, and of those without a result of at least *minimum*."""
    most = [max(each, default=0.0) for case, each in cases if case.kind == kind]
    return len(most), sum(score < minimum for score in most)


class CutFigures(NamedTuple):
    """The effect of a cut: questions with an answer among the first results, those that lose all answers to the cut,
    the mean number of results shown, and the mean share of answers among them.
    """

    answered: int
    lost: int
    shown: float
    precision: float


def cut_figures(cases: Scored, share: float) -> CutFigures:
    """Return the effect of a cut of the first DEFAULT_LIMIT results below this *share* of the best score."""
    rows = []
    for case, each in cases:
        if case.kind == ANSWERED and len(each):
            is_answer, probability = np.array(case.is_answer[:DEFAULT_LIMIT]), each[:DEFAULT_LIMIT]
            rows.append(
                (is_answer & (probability >= MIN_SCORE), probability >= max(MIN_SCORE, share * probability.max()))
            )
    with_answer = [(is_answer, is_shown) for is_answer, is_shown in rows if is_answer.any()]
    shares = [(is_answer & is_shown).sum() / is_shown.sum() for is_answer, is_shown in rows if is_shown.any()]
    lost = sum(not (is_answer & is_shown).any() for is_answer, is_shown in with_answer)
    shown = np.mean([is_shown.sum() for _, is_shown in rows])
    return CutFigures(len(with_answer), lost, float(shown), float(np.mean(shares)))


def report(title: str, cases: Scored) -> None:
    """Print the reliability of the scores, and the curve of lost answers and silence."""
    print(f"\n## {title}\n\n| score | results | mean | answers |\n|---|---|---|---|")
    for low, count, mean, share in reliability_bars(cases):
        print(f"| {low:.1f} | {count} | {mean:.3f} | {share:.3f} `{'#' * round(BAR_LENGTH * share)}` |")
    print(f"\nexpected calibration error {calibration_error(cases):.3f}\n")
    print(f"| minimum score | lost answers | silent, {UNANSWERED} | silent, {OTHER} |\n|---|---|---|---|")
    best = _best_answers(cases)
    for minimum in sorted({MIN_SCORE, *(best[int(share * len(best))] for share in LOST_SHARES)}):
        answered, lost = lost_answers(cases, minimum)
        counts = [silent_questions(cases, kind, minimum) for kind in (UNANSWERED, OTHER)]
        silent = " | ".join(f"{count} of {total}" for total, count in counts)
        print(f"| {minimum:.4f} | {lost} of {answered} | {silent} |")
    print(f"\n| share of the best | lost answers | shown of {DEFAULT_LIMIT} | answers among them |\n|---|---|---|---|")
    for share in (0.0, MIN_SHARE, 0.5):
        cut = cut_figures(cases, share)
        print(f"| {share:.2f} | {cut.lost} of {cut.answered} | {cut.shown:.1f} | {cut.precision:.2f} |")


def main() -> None:
    """Print two tables for each ranking, and the line fitted to it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, help="the folder with the sets of bench.recall")
    arguments = parser.parse_args()
    embedder = CachedEmbedder()
    for title, parts in (
        ("memories", note_cases(embedder)),
        ("memories, no vectors", note_cases(None)),
        ("memories by words", note_cases(None, by_words=True)),
    ):
        line = fit(parts["fit"])
        report(title, [(case, scores(case, line)) for case in parts["held out"]])
        print(f"\nfitted: {line}", flush=True)
    for names in CONVERSATION_SETS if arguments.data else ():
        for kind, ranking_embedder in (("", embedder), (", no vectors", None)):
            cases = talk_cases(names, arguments.data, ranking_embedder)
            corpora = dict.fromkeys(case.corpus for case in cases)
            lines = {corpus: fit([case for case in cases if case.corpus != corpus]) for corpus in corpora}
            report(f"{' and '.join(names)}{kind}", [(case, scores(case, lines[case.corpus])) for case in cases])
            print(f"\nfitted: {fit(cases)}", flush=True)


if __name__ == "__main__":
    main()
