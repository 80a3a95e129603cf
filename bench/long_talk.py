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
    left, minutes = list(turns), Counter[int]()
    while left:
        asked, *left = left
        answer = left.pop(0) if left and left[0].session == asked.session and left[0].speaker != asked.speaker else None
        at = asked.when.replace(tzinfo=UTC) + timedelta(minutes=minutes[asked.session])
        minutes[asked.session] += 1
        ids = (asked.id,) if answer is None else (asked.id, answer.id)
        told = answer.content if answer is not None else ""
        yield Exchange(asked.content, told, asked.speaker, asked.session, at, ids)


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
                made = self.os.add(each.query, each.response, about=("user", each.speaker), timestamp=each.at)
            except (IntentRefused, TooLarge):  # it has what looks like a secret, or more than a text may have
                self.refused += 1
            else:
                pages[made.id] = each
        self._maintain()
        return pages

    def _maintain(self) -> None:
        self._segments |= {segment.id for segment in self.os.tiers.mtm}
        for outcome in self.os.maintain():
            self.became[outcome.kind if outcome.ok else f"{outcome.kind} failed: {outcome.error}"] += 1

    def places(self) -> dict[str, list[str]]:
        """Return the tier of each page, the archive also being one, as often as it is there."""
        found: dict[str, list[str]] = {}
        tiers = self.os.tiers
        held = {"stm": tiers.stm, "leaving": tiers.leaving}
        of = [(tier, page.id) for tier, pages in held.items() for page in pages]
        of += [("mtm", page.id) for segment in tiers.mtm for page in segment.pages]
        for gone in sorted(self._segments - {segment.id for segment in tiers.mtm}):
            of += [("archive", page["id"]) for page in self._archived(gone)]
        for tier, page_id in of:
            found.setdefault(page_id, []).append(tier)
        return found

    def _archived(self, segment_id: str) -> list[Mapping[str, Any]]:
        key = f"memoryos:{self.os.agent}:{segment_id}"
        asked = MemoryQuery(query={"key": key}, provider=self.os.config.archive or "kept")
        answer = execute_directive(asked, self.memory.providers()).data
        return [page for kept in answer["result"] for page in kept["value"]["pages"]]

    def answers(self, questions: Sequence[str], **given: Any) -> list[dict[str, Any]]:
        """Return what is found on each question, as plain values."""
        return [self.os.retrieve(question, visiting=False, **given).to_dict() for question in questions]


def again(root: Path, settings: str, now: datetime, questions: Sequence[str]) -> list[dict[str, Any]]:
    """Return what a process of its own finds on the questions."""
    asked = json.dumps({"root": str(root), "settings": settings, "now": now.isoformat(), "questions": [*questions]})
    command = [sys.executable, "-m", "bench.long_talk", "--again"]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=True)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def heard(talk: Any, settings: str) -> dict[str, Any]:
    """Return what became of one conversation."""
    with tempfile.TemporaryDirectory() as folder:
        made = [*exchanges(talk.turns)]
        listener = Listener(Path(folder) / "root", settings, made[0].at)
        start = time.process_time()
        pages = listener.hear(made)
        ms = 1e3 * (time.process_time() - start) / len(pages)
        places = listener.places()
        asked = [question for question in talk.questions if question.gold]
        texts = [question.text for question in asked]
        found = listener.answers(texts)
        wide = listener.answers(texts, retrieved_segments=len(pages))
        status = listener.os.status()
        figures = {
            "turns": len(talk.turns), "pages": len(pages), "refused": listener.refused, "segments": status["segments"],
            "places": dict(Counter(tier for tiers in places.values() for tier in tiers)),
            "once": {*places} == {*pages} and all(len(tiers) == 1 for tiers in places.values()),
            "personas": status["personas"], "facts": status["facts"], "system": status["system"],
            "did": dict(listener.became), "ms": ms, "questions": len(asked),
            **evidence(listener.os, pages, [question.gold for question in asked], found),
            "of all": evidence(listener.os, pages, [question.gold for question in asked], wide)["found"],
        }  # fmt: skip
        now = listener.now
        listener.memory.close()
        figures["same"] = again(Path(folder) / "root", settings, now, texts) == found
        return figures


def evidence(
    os: MemoryOS, pages: Mapping[str, Exchange], gold: Sequence[Sequence[str]], hits: Sequence[Mapping[str, Any]]
) -> dict[str, float]:
    """Return which share of the turns that answer a question is in the pages found, with STM, and in the segments."""
    held = {segment.id: [page.id for page in segment.pages] for segment in os.tiers.mtm}
    shares: dict[str, list[float]] = {"found": [], "with stm": [], "in segments": []}
    for wanted, one in zip(gold, hits, strict=True):
        best = [page["id"] for page in one["pages"]]
        recent = [page["id"] for page in (*one["stm"], *one["leaving"])]
        within = [page for segment in one["segments"] for page in held[segment["id"]]]
        for name, ids in (("found", best), ("with stm", [*best, *recent]), ("in segments", [*within, *recent])):
            turns = {turn for page in ids for turn in pages[page].turns}
            shares[name].append(len(turns & {*wanted}) / len(wanted))
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
    given = parser.parse_args()
    if given.again:
        told = json.load(sys.stdin)
        listener = Listener(Path(told["root"]), told["settings"], datetime.fromisoformat(told["now"]))
        json.dump(listener.answers(told["questions"]), sys.stdout)
        return
    if given.data is None:
        parser.error("--data FOLDER is needed")
    evaluation, figures = loaded(given.data), {}
    print("| talk | turns | pages | where they are, each once | segments | personas, facts, shared | ms a page "
          "| evidence found | with STM | in the segments | in the best pages of all | after a restart |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for name in given.sets:
        for talk in evaluation.load(str(given.data / SETS[name]))[: given.talks]:
            one = figures[talk.id] = heard(talk, given.settings)
            where = ", ".join(f"{tier} {count}" for tier, count in one["places"].items())
            kept = f"{one['pages']}, {one['refused']} refused" if one["refused"] else one["pages"]
            print(
                f"| {talk.id} | {one['turns']} | {kept} | {where}: {'yes' if one['once'] else '**NO**'} "
                f"| {one['segments']} | {one['personas']}, {one['facts']}, {one['system']} | {one['ms']:.1f} "
                f"| {one['found']:.1f} | {one['with stm']:.1f} | {one['in segments']:.1f} | {one['of all']:.1f} "
                f"| {'the same' if one['same'] else '**ANOTHER**'} |",
                flush=True,
            )
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
