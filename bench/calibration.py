"""How reliable the scores of recall are, and how often it is silent: on questions left out of the fit.

    python -m bench.calibration [--data FOLDER]

The labelled notes of projects calibrate the ranking of memories: the line of log odds is fitted to one part and
measured on the other.  With FOLDER, which holds the sets of `bench.recall`, each conversation is left out of the fit of
its ranking.  Each corpus is asked its own questions, with and without an answer, and as many of other corpora.  The
FIRST results of each answer count.  Printed are the reliability of the scores, and for some least scores the answers
lost and the questions that get no answer.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle, islice, zip_longest
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

import jidomem
from bench.recall import ADVERSARIAL, ASKED, PROJECT, SETS, Once, Ours, Talk, loaded, talks_of
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
TALKS = (("locomo", "realtalk"), ("beam",), ("realmem",))
#: The results of each answer that count, the bars of the diagram and their length, the steps of Newton's method, and
#: the shares of lost answers of the curve.
FIRST, BARS, LONGEST, STEPS, LOST = 10, 10, 30, 30, (0.02, 0.05, 0.1, 0.2, 0.3)
#: The kinds of questions to a corpus.
ANSWERED, UNANSWERED, OTHER = "answered", "unanswered", "of another"
Matrix = np.ndarray[Any, Any]


class Case(NamedTuple):
    """A question to a corpus: the sums of the first results, and whether each is an answer."""

    corpus: str
    kind: str
    ranking: str
    sums: tuple[float, ...]
    right: tuple[bool, ...]


class Labelled(NamedTuple):
    """A question with the ids of its answers, none if there is none."""

    text: str
    answers: frozenset[str] = frozenset()


Scored = Sequence[tuple[Case, Matrix]]
#: Returns for a question the name of the ranking, and the ids of the results with their sums, best first.
Rank = Callable[[str], tuple[str, list[tuple[str, float]]]]


def cases_of(corpus: str, rank: Rank, own: Sequence[Labelled], others: Sequence[str]) -> Iterator[Case]:
    """Yield a case for each of the *own* questions of a corpus, and for as many of the *others*."""
    questions = [(one, ANSWERED if one.answers else UNANSWERED) for one in own]
    questions += [(Labelled(text), OTHER) for text in islice(cycle(others), len(own))]
    for one, kind in questions:
        ranking, results = rank(one.text)
        right = tuple(name in one.answers for name, _ in results[:FIRST])
        yield Case(corpus, kind, ranking, tuple(total for _, total in results[:FIRST]), right)


def note_cases(embedder: Embedder | None, *, by_words: bool = False) -> dict[str, list[Case]]:
    """Return the cases of the labelled notes, by part."""
    notes = _notes()
    cases: dict[str, list[Case]] = {}
    for one in notes:
        own = [Labelled(each["question"], frozenset(each["answers"])) for each in one["questions"]]
        own += [Labelled(text) for text in one["unanswered"]]
        foreign = [other["questions"] for other in notes if other is not one and other["part"] == one["part"]]
        others = [each["question"] for row in zip_longest(*foreign) for each in row if each]
        cases.setdefault(one["part"], []).extend(
            _cases_of_memories(one["repository"], one["memories"], own, others, embedder, by_words=by_words)
        )
    return cases


def small_cases(
    embedder: Embedder | None, part: str, size: int, seed: int, *, by_words: bool = False
) -> Iterator[Case]:
    """Yield the cases of *size* notes of each repository of a part, chosen by the *seed*.

    There are two questions without an answer among these notes to three with one.
    """
    notes = [one for one in _notes() if one["part"] == part]
    for one in notes:
        random = Random(f"{one['repository']} {size} {seed}")
        first = random.choice(one["questions"])["answers"][:2]
        memories = sorted(one["memories"], key=lambda note: (note["id"] not in first, random.random()))[:size]
        ids = {note["id"] for note in memories}
        every = [Labelled(each["question"], frozenset(each["answers"]) & ids) for each in one["questions"]]
        answered = [each for each in every if each.answers]
        without = [each for each in every if not each.answers] + [Labelled(text) for text in one["unanswered"]]
        own = answered + random.sample(without, max(1, 2 * len(answered) // 3))
        others = [each["question"] for other in notes if other is not one for each in other["questions"]]
        random.shuffle(others)
        yield from _cases_of_memories(one["repository"], memories, own, others, embedder, by_words=by_words)


def _notes() -> list[dict[str, Any]]:
    return [json.loads(path.read_text("utf-8")) for path in sorted(NOTES.glob("*.json"))]


def _cases_of_memories(
    corpus: str, memories: Sequence[Mapping[str, Any]], own: Sequence[Labelled], others: Sequence[str],
    embedder: Embedder | None, *, by_words: bool,
) -> list[Case]:  # fmt: skip
    """Return the cases of a new root with these *memories*."""
    with tempfile.TemporaryDirectory() as folder:
        root = jidomem.open(Path(folder) / "root", project=PROJECT, agent="bench", embedder=embedder)
        ids = {_write(root, note): note["id"] for note in memories}
        if root.embedding is not None:
            root.embedding.embed(PROJECT)
        rank = ranked_by_words(root, ids) if by_words else ranked(root, Stream(PROJECT), ids, spoken=False)
        cases = [*cases_of(corpus, rank, own, others)]
        root.close()
    return cases


def _write(root: Jidomem, note: Mapping[str, Any]) -> str:
    """Return the IRI of a labelled note, now a memory."""
    fields = {name: note[name] for name in FIELDS if note[name]}
    defaults = {"applies_to_project": PROJECT, "asserted_by": "bench", "asserted_in": "s", "confidence": "high"}
    return str(root.writer.submit_intent(PROJECT, {"rationale": "as noted", **defaults, **fields}).iri)


def ranked(root: Jidomem, stream: Stream, ids: Mapping[str, str], *, spoken: bool) -> Rank:
    """Return the ranking of *stream*, whose texts have *ids*."""

    def rank(text: str) -> tuple[str, list[tuple[str, float]]]:
        alike = root.alike_to(text, PROJECT, None, spoken=spoken)
        query = RecallQuery(text, query_stems(root.texts.stemmer, text), now=root.now(), limit=ASKED)
        answer = rank_sources([RankingSource(root.texts, stream, SearchFilter(), alike)], query)
        matches = (match for match, *_ in answer.ranked if match.score)  # the nearest of none has no score
        return answer.ranking, [(ids[match.candidate.passage.item], match.score) for match in matches]

    return rank


def ranked_by_words(root: Jidomem, ids: Mapping[str, str]) -> Rank:
    """Return the ranking of memories by words alone."""

    def rank(text: str) -> tuple[str, list[tuple[str, float]]]:
        stems = query_stems(root.texts.stemmer, text)
        matches, _, counts = root.texts.read(
            Stream(PROJECT), lambda file: bm25.search(file, stems, SearchFilter(), (), ASKED)
        )
        whole = bm25.whole(bm25.telling_stems(stems), counts)
        return WORDS, [(ids[one.match.item], one.score / whole) for one in matches]

    return rank


def talk_cases(names: Sequence[str], data: Path, embedder: Once | None) -> list[Case]:
    """Return the cases of some sets; if evidence are sessions, the best turn of each counts."""
    evaluation = loaded(data)
    talks = [(name, talk) for name in names for talk in talks_of(name, data, evaluation)]
    unanswerable = {name: unanswered(name, data, evaluation) for name in names}
    cases: list[Case] = []
    system = Ours(embedder)
    for name, talk in talks:
        questions = [Labelled(each.text, each.wanted) for each in talk.questions]
        questions += [Labelled(text) for text in unanswerable[name].get(talk.name, ())]
        others = [each.text for _, other in talks if other.name != talk.name for each in other.questions[::7]]
        cases += cases_of(talk.name, _asked_in_time(system, talk), questions, others)
    system.close()
    return cases


def _asked_in_time(system: Ours, talk: Talk) -> Rank:
    """Return the ranking of *talk*; a question is asked once the turns before it are written, in their order."""
    system.reset()
    rank = _of_units(ranked(system.root, Stream(PROJECT, "history"), system.ids, spoken=True), talk)
    after, written = {each.text: each.after for each in talk.questions}, 0

    def asked(text: str) -> tuple[str, list[tuple[str, float]]]:
        nonlocal written
        turns = talk.turns[written : after.get(text, len(talk.turns))]
        if turns:
            system.write(turns)
            written += len(turns)
        return rank(text)

    return asked


def _of_units(rank: Rank, talk: Talk) -> Rank:
    """Return *rank* with the unit of each turn instead of the turn."""

    def best(text: str) -> tuple[str, list[tuple[str, float]]]:
        ranking, results = rank(text)
        sums: dict[str, float] = {}
        for name, total in results:
            sums.setdefault(talk.unit_of[name], total)
        return ranking, [*sums.items()]

    return best if talk.unit_of else rank


def unanswered(name: str, data: Path, evaluation: ModuleType) -> dict[str, list[str]]:
    """Return the questions of a set that its conversations do not answer, by conversation."""
    if name == "beam":
        paths = (data / SETS[name]).glob("*.q.json")
        questions = {path.name.split(".")[0]: json.loads(path.read_text("utf-8")) for path in paths}
        return {f"beam-{one}": [each["question"] for each in known["abstention"]] for one, known in questions.items()}
    talks = evaluation.load(str(data / SETS[name])) if name in SETS else []
    return {talk.id: [one.text for one in talk.questions if one.category == ADVERSARIAL] for talk in talks}


def fitted(cases: Sequence[Case]) -> Calibration:
    """Return the line of log odds of the greatest likelihood, by Newton's method."""
    sums = np.array([total for case in cases for total in case.sums])
    right = np.array([each for case in cases for each in case.right], dtype=float)
    rows, line = np.column_stack([sums, np.ones_like(sums)]), np.zeros(2)
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-rows @ line))
        curve = (rows * (chance * (1 - chance))[:, None]).T @ rows + 1e-6 * np.eye(2)
        line = line + np.linalg.solve(curve, rows.T @ (right - chance))
    return Calibration(float(line[0]), float(line[1]))


def scores(case: Case, line: Calibration) -> Matrix:
    """Return the scores of the results of a case."""
    return np.array([line.probability(total) for total in case.sums])


def bars(cases: Scored) -> Iterator[tuple[float, int, float, float]]:
    """Yield the lower end of each bar with results, their number, their mean score, and the share of answers."""
    chance = np.concatenate([each for _, each in cases])
    right = np.array([each for case, _ in cases for each in case.right], dtype=float)
    places = np.minimum((chance * BARS).astype(int), BARS - 1)
    for place in np.unique(places):
        inside = places == place
        yield place / BARS, int(inside.sum()), float(chance[inside].mean()), float(right[inside].mean())


def error(cases: Scored) -> float:
    """Return the expected calibration error: the mean distance of score and share of answers."""
    each = [*bars(cases)]
    return sum(count * abs(mean - share) for _, count, mean, share in each) / sum(count for _, count, *_ in each)


def _best_answers(cases: Scored) -> list[float]:
    """Return the score of the best answer of each case that has one, lowest first."""
    return sorted(float(each[np.array(case.right)].max()) for case, each in cases if any(case.right))


def lost(cases: Scored, least: float) -> tuple[int, int]:
    """Return the number of questions with an answer among the results, and of those that lose it below *least*."""
    best = _best_answers(cases)
    return len(best), sum(score < least for score in best)


def silent(cases: Scored, kind: str, least: float) -> tuple[int, int]:
    """Return the number of questions of a *kind*, and of those without a result of *least* or more."""
    most = [max(each, default=0.0) for case, each in cases if case.kind == kind]
    return len(most), sum(score < least for score in most)


class Cut(NamedTuple):
    """The questions with an answer among the first results, those that lose it to a cut, the results shown on average,
    and the share of answers among them.
    """

    found: int
    lost: int
    shown: float
    right: float


def cut(cases: Scored, share: float) -> Cut:
    """Return what is left of the first DEFAULT_LIMIT results of answered questions above this *share* of the best."""
    rows = []
    for case, each in cases:
        if case.kind == ANSWERED and len(each):
            right, chance = np.array(case.right[:DEFAULT_LIMIT]), each[:DEFAULT_LIMIT]
            rows.append((right & (chance >= MIN_SCORE), chance >= max(MIN_SCORE, share * chance.max())))
    answered = [(right, kept_mask) for right, kept_mask in rows if right.any()]
    shares = [(right & kept_mask).sum() / kept_mask.sum() for right, kept_mask in rows if kept_mask.any()]
    lost = sum(not (right & kept_mask).any() for right, kept_mask in answered)
    return Cut(len(answered), lost, float(np.mean([kept_mask.sum() for _, kept_mask in rows])), float(np.mean(shares)))


def report(title: str, cases: Scored) -> None:
    """Print the reliability of the scores, and the curve of lost answers and silence."""
    print(f"\n## {title}\n\n| score | results | mean | answers |\n|---|---|---|---|")
    for low, count, mean, share in bars(cases):
        print(f"| {low:.1f} | {count} | {mean:.3f} | {share:.3f} `{'#' * round(LONGEST * share)}` |")
    print(f"\nexpected calibration error {error(cases):.3f}\n")
    print(f"| least score | answers lost | silent, {UNANSWERED} | silent, {OTHER} |\n|---|---|---|---|")
    best = _best_answers(cases)
    for least in sorted({MIN_SCORE, *(best[int(share * len(best))] for share in LOST)}):
        answered, lost_count = lost(cases, least)
        counts = [silent(cases, kind, least) for kind in (UNANSWERED, OTHER)]
        print(
            f"| {least:.4f} | {lost_count} of {answered} | {' | '.join(f'{quiet} of {of}' for of, quiet in counts)} |"
        )
    print(f"\n| share of the best | answers lost | shown of {DEFAULT_LIMIT} | right |\n|---|---|---|---|")
    for share in (0.0, MIN_SHARE, 0.5):
        one = cut(cases, share)
        print(f"| {share:.2f} | {one.lost} of {one.found} | {one.shown:.1f} | {one.right:.2f} |")


def main() -> None:
    """Print two tables for each ranking, and the line fitted to it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, help="the folder with the sets of bench.recall")
    arguments = parser.parse_args()
    embedder = Once()
    for title, parts in (
        ("memories", note_cases(embedder)),
        ("memories, no vectors", note_cases(None)),
        ("memories by words", note_cases(None, by_words=True)),
    ):
        line = fitted(parts["fit"])
        report(title, [(case, scores(case, line)) for case in parts["held out"]])
        print(f"\nfitted: {line}", flush=True)
    for names in TALKS if arguments.data else ():
        for kind, one in (("", embedder), (", no vectors", None)):
            cases = talk_cases(names, arguments.data, one)
            corpora = dict.fromkeys(case.corpus for case in cases)
            lines = {corpus: fitted([case for case in cases if case.corpus != corpus]) for corpus in corpora}
            report(f"{' and '.join(names)}{kind}", [(case, scores(case, lines[case.corpus])) for case in cases])
            print(f"\nfitted: {fitted(cases)}", flush=True)


if __name__ == "__main__":
    main()
