"""A conversation through all tiers of MemoryOS: where each page ends, and the evidence that retrieval finds.

    python -m bench.conversation --data FOLDER [--sets locomo realtalk beam] [--talks N]
                                 [--settings paper|bai_lab|smith] [--json FILE]

FOLDER has the data sets of `bench.recall`.  Two turns are a page, and each session ends with maintenance; the model is
the offline one, with the local embedder.  Every page must be in exactly one tier or in the archive, and a new process
must retrieve the same for all questions.  The evidence in the best pages of the retrieved segments stands beside that
in the best pages of all segments.
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
from bench.recall import SETS, load_evaluation
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
class PageInput:
    """The input of a page: a turn, the answer, speaker, session and time, and the ids of its turns."""

    query: str
    response: str
    speaker: str
    session: int
    at: datetime
    turns: tuple[str, ...]


def page_inputs(turns: Sequence[Any]) -> Iterator[PageInput]:
    """Yield a page for each turn, with the next turn as its answer if another speaker has it in the same session."""
    remaining, minutes = list(turns), Counter[int]()
    while remaining:
        turn, *remaining = remaining
        following = remaining[0] if remaining else None
        is_answered = following and following.session == turn.session and following.speaker != turn.speaker
        answer = remaining.pop(0) if is_answered else None
        at = turn.when.replace(tzinfo=UTC) + timedelta(minutes=minutes[turn.session])
        minutes[turn.session] += 1
        ids = (turn.id,) if answer is None else (turn.id, answer.id)
        response = answer.content if answer is not None else ""
        yield PageInput(turn.content, response, turn.speaker, turn.session, at, ids)


#: The object that all pages of a conversation are about, and that asks: its private pages are retrieved, too.
SPEAKERS = "user", "speakers"


class ConversationAgent:
    """An agent with MemoryOS, whose clock follows the conversation that it adds."""

    def __init__(self, root: Path, settings: str, now: datetime) -> None:
        self.now = now
        sources = Sources(now=lambda: self.now)
        self.memory: Jidomem = jidomem.open(
            root, project=PROJECT, agent=AGENT, sources=sources, embedder=LocalEmbedder()
        )
        self.os: MemoryOS = self.memory.os(policy=TierPolicy(SETTINGS[settings]()))
        self.maintenance_counts: Counter[str] = Counter()
        self.refused = 0

    def add_pages(self, talk: Iterable[PageInput]) -> dict[str, PageInput]:
        """Add a conversation, with maintenance after each session; return its pages by id."""
        pages: dict[str, PageInput] = {}
        self._segments: set[str] = set()
        for each in talk:
            if each.session != next(reversed(pages.values()), each).session:
                self._maintain()
            self.now = max(self.now, each.at)
            try:
                page = self.os.add(each.query, each.response, about=SPEAKERS, timestamp=each.at)
            except (IntentRefused, TooLarge):  # it looks like a secret, or is too large
                self.refused += 1
            else:
                pages[page.id] = each
        self._maintain()
        return pages

    def _maintain(self) -> None:
        self._segments |= {segment.id for segment in self.os.tiers.mtm}
        for outcome in self.os.maintain():
            self.maintenance_counts[outcome.kind if outcome.ok else f"{outcome.kind} failed: {outcome.error}"] += 1

    def tiers_by_page(self) -> dict[str, list[str]]:
        """Return the tiers of each page, the archive included, one for each copy."""
        tiers_of: dict[str, list[str]] = {}
        tiers = self.os.tiers
        page_lists = {"stm": tiers.stm, "leaving": tiers.leaving}
        placed = [(tier, page.id) for tier, pages in page_lists.items() for page in pages]
        placed += [("mtm", page.id) for segment in tiers.mtm for page in segment.pages]
        for segment_id in sorted(self._segments - {segment.id for segment in tiers.mtm}):
            placed += [("archive", page["id"]) for page in self._archived(segment_id)]
        for tier, page_id in placed:
            tiers_of.setdefault(page_id, []).append(tier)
        return tiers_of

    def _archived(self, segment_id: str) -> list[Mapping[str, Any]]:
        key = f"memoryos:{self.os.agent}:{segment_id}"
        query = MemoryQuery(query={"key": key}, provider=self.os.config.archive or "kept")
        answer = execute_directive(query, self.memory.providers()).data
        return [page for entry in answer["result"] for page in entry["value"]["pages"]]

    def retrieve(self, questions: Sequence[str], **options: Any) -> list[dict[str, Any]]:
        """Return the result of each question, as plain values."""
        return [
            self.os.retrieve(question, about=SPEAKERS, visiting=False, **options).to_dict() for question in questions
        ]


def retrieve_in_new_process(root: Path, settings: str, now: datetime, questions: Sequence[str]) -> list[dict[str, Any]]:
    """Return the results that a new process retrieves for the questions."""
    request = json.dumps({"root": str(root), "settings": settings, "now": now.isoformat(), "questions": [*questions]})
    command = [sys.executable, "-m", "bench.conversation", "--retrieve"]
    result = subprocess.run(command, input=request, capture_output=True, text=True, check=True)
    retrieved: list[dict[str, Any]] = json.loads(result.stdout)
    return retrieved


def measure(talk: Any, settings: str) -> dict[str, Any]:
    """Return the figures of one conversation: shares of evidence are in percent."""
    with tempfile.TemporaryDirectory() as folder:
        pages_to_add = [*page_inputs(talk.turns)]
        agent = ConversationAgent(Path(folder) / "root", settings, pages_to_add[0].at)
        start = time.process_time()
        pages = agent.add_pages(pages_to_add)
        ms = 1e3 * (time.process_time() - start) / len(pages)
        tiers_by_page = agent.tiers_by_page()
        questions = [question for question in talk.questions if question.gold]
        texts, gold = [question.text for question in questions], [question.gold for question in questions]
        retrieved = agent.retrieve(texts)
        retrieved_from_all = agent.retrieve(texts, retrieved_segments=len(pages))
        status = agent.os.status()
        figures = {
            "turns": len(talk.turns), "pages": len(pages), "refused": agent.refused, "segments": status["segments"],
            "tiers": dict(Counter(tier for tiers in tiers_by_page.values() for tier in tiers)),
            "once": {*tiers_by_page} == {*pages} and all(len(tiers) == 1 for tiers in tiers_by_page.values()),
            "personas": status["personas"], "facts": status["facts"], "system": status["system"],
            "maintenance": dict(agent.maintenance_counts), "ms": ms, "questions": len(questions),
            **evidence(agent.os, pages, gold, retrieved),
            "of all": evidence(agent.os, pages, gold, retrieved_from_all)["best"],
        }  # fmt: skip
        now = agent.now
        agent.memory.close()
        figures["same"] = retrieve_in_new_process(Path(folder) / "root", settings, now, texts) == retrieved
        return figures


def evidence(
    os: MemoryOS, pages: Mapping[str, PageInput], gold: Sequence[Sequence[str]], results: Sequence[Mapping[str, Any]]
) -> dict[str, float]:
    """Return the percentage of the evidence in the best pages, in these with STM, and in the segments with STM."""
    pages_of = {segment.id: [page.id for page in segment.pages] for segment in os.tiers.mtm}
    shares: dict[str, list[float]] = {"best": [], "with stm": [], "in segments": []}
    for expected, result in zip(gold, results, strict=True):
        best_pages = [page["id"] for page in result["pages"]]
        recent = [page["id"] for page in (*result["stm"], *result["leaving"])]
        segment_pages = [page for segment in result["segments"] for page in pages_of[segment["id"]]]
        for name, ids in (
            ("best", best_pages),
            ("with stm", [*best_pages, *recent]),
            ("in segments", [*segment_pages, *recent]),
        ):
            turns = {turn for page in ids for turn in pages[page].turns}
            shares[name].append(len(turns & {*expected}) / len(expected))
    return {name: 100 * sum(each) / max(len(each), 1) for name, each in shares.items()}


def main() -> None:
    """Print a row for each conversation."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, help="the folder with eval_recall.py and the sets")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=[*SETS], help="sets to measure (default: all)")
    parser.add_argument("--talks", type=int, default=1, metavar="N", help="conversations of each set (default: 1)")
    parser.add_argument("--settings", choices=SETTINGS, default="paper", help="settings of MemoryOS (default: paper)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    parser.add_argument("--retrieve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.retrieve:
        request = json.load(sys.stdin)
        agent = ConversationAgent(Path(request["root"]), request["settings"], datetime.fromisoformat(request["now"]))
        json.dump(agent.retrieve(request["questions"]), sys.stdout)
        return
    if arguments.data is None:
        parser.error("name the folder of the data sets: --data FOLDER")
    evaluation, figures = load_evaluation(arguments.data), {}
    print("| talk | turns | pages | tiers, each page once | segments | personas, facts, system entries | ms a page "
          "| evidence in best pages | with STM | in segments | in best pages of all | after a restart |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for name in arguments.sets:
        for talk in evaluation.load(str(arguments.data / SETS[name]))[: arguments.talks]:
            row = figures[talk.id] = measure(talk, arguments.settings)
            where = ", ".join(f"{tier} {count}" for tier, count in row["tiers"].items())
            page_count = f"{row['pages']}, {row['refused']} refused" if row["refused"] else row["pages"]
            print(
                f"| {talk.id} | {row['turns']} | {page_count} | {where}: {'yes' if row['once'] else '**NO**'} "
                f"| {row['segments']} | {row['personas']}, {row['facts']}, {row['system']} | {row['ms']:.1f} "
                f"| {row['best']:.1f} | {row['with stm']:.1f} | {row['in segments']:.1f} | {row['of all']:.1f} "
                f"| {'the same' if row['same'] else '**DIFFERENT**'} |",
                flush=True,
            )
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
