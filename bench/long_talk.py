"""What becomes of a whole conversation in MemoryOS: where each page is, and what of the evidence its questions find.

    python -m bench.long_talk --data FOLDER [--sets locomo realtalk beam] [--talks N] [--settings paper|bai_lab|smith]

FOLDER is that of `bench.recall`.  Two turns are a page, each session ends with a round of maintenance; the model is
the offline one, with the local embedder.  Each page is then looked for in all tiers and in the archive, and all
questions are put again by a process that has just begun: it must find the very same.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jidomem
from bench.recall import SETS, loaded
from jidomem.base.clock import Sources
from jidomem.errors import IntentRefused, TooLarge
from jidomem.extras.memoryos.config import MemoryOSConfig
from jidomem.extras.memoryos.memory_os import MemoryOS
from jidomem.extras.memoryos.segments import TierPolicy
from jidomem.models.local_embedder import LocalEmbedder
from jidomem.providers import execute_directive
from jidomem.records.directive import MemoryQuery
from jidomem.runtime.root import Jidomem

PROJECT, AGENT = "talk", "listener"
SETTINGS = {"paper": MemoryOSConfig, "bai_lab": MemoryOSConfig.bai_lab, "smith": MemoryOSConfig.smith}


@dataclass(frozen=True, slots=True)
class Exchange:
    """A page to be: who said what, what was answered, when, in which session, and the turns that it is made of."""

    query: str
    response: str
    speaker: str
    session: int
    at: datetime
    turns: tuple[str, ...]


def exchanges(turns: Sequence[Any]) -> Iterator[Exchange]:
    """Yield a page of each turn and the answer to it; what nobody answered in its session is one without an answer."""
    rest, minutes = list(turns), Counter[int]()
    while rest:
        turn, *rest = rest
        answer = rest.pop(0) if rest and rest[0].session == turn.session and rest[0].speaker != turn.speaker else None
        at = turn.when.replace(tzinfo=UTC) + timedelta(minutes=minutes[turn.session])
        minutes[turn.session] += 1
        ids = (turn.id,) if answer is None else (turn.id, answer.id)
        response = answer.content if answer is not None else ""
        yield Exchange(turn.content, response, turn.speaker, turn.session, at, ids)


class Listener:
    """An agent that heard a conversation, at a clock that stands where the conversation is."""

    def __init__(self, root: Path, settings: str, now: datetime) -> None:
        self.now = now
        sources = Sources(now=lambda: self.now)
        self.memory: Jidomem = jidomem.open(
            root, project=PROJECT, agent=AGENT, sources=sources, embedder=LocalEmbedder()
        )
        self.os: MemoryOS = self.memory.os(policy=TierPolicy(SETTINGS[settings]()))
        self.became: Counter[str] = Counter()
        self.refused = 0

    def hear(self, talk: Iterable[Exchange]) -> dict[str, Exchange]:
        """Return the pages of a conversation by their ids, once it is over."""
        pages: dict[str, Exchange] = {}
        self._segments: set[str] = set()
        for each in talk:
            if each.session != next(reversed(pages.values()), each).session:
                self._maintain()
            self.now = max(self.now, each.at)
            try:
                page = self.os.add(each.query, each.response, about=("user", each.speaker), timestamp=each.at)
            except (IntentRefused, TooLarge):  # it has what looks like a secret, or more than a text may have
                self.refused += 1
            else:
                pages[page.id] = each
        self._maintain()
        return pages

    def _maintain(self) -> None:
        self._segments |= {segment.id for segment in self.os.tiers.mtm}
        for outcome in self.os.maintain():
            self.became[outcome.kind if outcome.ok else f"{outcome.kind} failed: {outcome.error}"] += 1

    def places(self) -> dict[str, list[str]]:
        """Return the tier of each page, the archive also being one, as often as it is there."""
        tiers_of: dict[str, list[str]] = {}
        tiers = self.os.tiers
        lists = {"stm": tiers.stm, "leaving": tiers.leaving}
        of = [(tier, page.id) for tier, pages in lists.items() for page in pages]
        of += [("mtm", page.id) for segment in tiers.mtm for page in segment.pages]
        for segment_id in sorted(self._segments - {segment.id for segment in tiers.mtm}):
            of += [("archive", page["id"]) for page in self._archived(segment_id)]
        for tier, page_id in of:
            tiers_of.setdefault(page_id, []).append(tier)
        return tiers_of

    def _archived(self, segment_id: str) -> list[Mapping[str, Any]]:
        key = f"memoryos:{self.os.agent}:{segment_id}"
        query = MemoryQuery(query={"key": key}, provider=self.os.config.archive or "kept")
        answer = execute_directive(query, self.memory.providers()).data
        return [page for kept in answer["result"] for page in kept["value"]["pages"]]

    def answers(self, questions: Sequence[str], **given: Any) -> list[dict[str, Any]]:
        """Return what is found on each question, as plain values."""
        return [self.os.retrieve(question, visiting=False, **given).to_dict() for question in questions]


def again(root: Path, settings: str, now: datetime, questions: Sequence[str]) -> list[dict[str, Any]]:
    """Return what a process of its own finds on the questions."""
    request = json.dumps({"root": str(root), "settings": settings, "now": now.isoformat(), "questions": [*questions]})
    command = [sys.executable, "-m", "bench.long_talk", "--again"]
    result = subprocess.run(command, input=request, capture_output=True, text=True, check=True)
    answers: list[dict[str, Any]] = json.loads(result.stdout)
    return answers


def heard(talk: Any, settings: str) -> dict[str, Any]:
    """Return what became of one conversation."""
    with tempfile.TemporaryDirectory() as folder:
        pages_to_add = [*exchanges(talk.turns)]
        listener = Listener(Path(folder) / "root", settings, pages_to_add[0].at)
        start = time.process_time()
        pages = listener.hear(pages_to_add)
        ms = 1e3 * (time.process_time() - start) / len(pages)
        places = listener.places()
        questions = [question for question in talk.questions if question.gold]
        texts = [question.text for question in questions]
        answers = listener.answers(texts)
        wide = listener.answers(texts, retrieved_segments=len(pages))
        status = listener.os.status()
        figures = {
            "turns": len(talk.turns), "pages": len(pages), "refused": listener.refused, "segments": status["segments"],
            "places": dict(Counter(tier for tiers in places.values() for tier in tiers)),
            "once": {*places} == {*pages} and all(len(tiers) == 1 for tiers in places.values()),
            "personas": status["personas"], "facts": status["facts"], "system": status["system"],
            "did": dict(listener.became), "ms": ms, "questions": len(questions),
            **evidence(listener.os, pages, [question.gold for question in questions], answers),
            "of all": evidence(listener.os, pages, [question.gold for question in questions], wide)["found"],
        }  # fmt: skip
        now = listener.now
        listener.memory.close()
        figures["same"] = again(Path(folder) / "root", settings, now, texts) == answers
        return figures


def evidence(
    os: MemoryOS, pages: Mapping[str, Exchange], gold: Sequence[Sequence[str]], hits: Sequence[Mapping[str, Any]]
) -> dict[str, float]:
    """Return which share of the turns that answer a question is in the pages found, with STM, and in the segments."""
    pages_of = {segment.id: [page.id for page in segment.pages] for segment in os.tiers.mtm}
    shares: dict[str, list[float]] = {"found": [], "with stm": [], "in segments": []}
    for expected, one in zip(gold, hits, strict=True):
        best = [page["id"] for page in one["pages"]]
        recent = [page["id"] for page in (*one["stm"], *one["leaving"])]
        within = [page for segment in one["segments"] for page in pages_of[segment["id"]]]
        for name, ids in (("found", best), ("with stm", [*best, *recent]), ("in segments", [*within, *recent])):
            turns = {turn for page in ids for turn in pages[page].turns}
            shares[name].append(len(turns & {*expected}) / len(expected))
    return {name: 100 * sum(each) / max(len(each), 1) for name, each in shares.items()}


def main() -> None:
    """Print a row for each conversation."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, help="the folder with eval_recall.py and the sets")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=[*SETS], help="which of them")
    parser.add_argument("--talks", type=int, default=1, help="how many conversations of each set")
    parser.add_argument("--settings", choices=SETTINGS, default="paper", help="whose settings")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--again", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.again:
        request = json.load(sys.stdin)
        listener = Listener(Path(request["root"]), request["settings"], datetime.fromisoformat(request["now"]))
        json.dump(listener.answers(request["questions"]), sys.stdout)
        return
    if arguments.data is None:
        parser.error("--data FOLDER is needed")
    evaluation, figures = loaded(arguments.data), {}
    print("| talk | turns | pages | where they are, each once | segments | personas, facts, shared | ms a page "
          "| evidence found | with STM | in the segments | in the best pages of all | after a restart |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for name in arguments.sets:
        for talk in evaluation.load(str(arguments.data / SETS[name]))[: arguments.talks]:
            one = figures[talk.id] = heard(talk, arguments.settings)
            where = ", ".join(f"{tier} {count}" for tier, count in one["places"].items())
            page_count = f"{one['pages']}, {one['refused']} refused" if one["refused"] else one["pages"]
            print(
                f"| {talk.id} | {one['turns']} | {page_count} | {where}: {'yes' if one['once'] else '**NO**'} "
                f"| {one['segments']} | {one['personas']}, {one['facts']}, {one['system']} | {one['ms']:.1f} "
                f"| {one['found']:.1f} | {one['with stm']:.1f} | {one['in segments']:.1f} | {one['of all']:.1f} "
                f"| {'the same' if one['same'] else '**ANOTHER**'} |",
                flush=True,
            )
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
