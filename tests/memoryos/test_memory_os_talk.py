"""Four weeks of dialogue in the tiers of MemoryOS: the place of each page at the end and after a restart."""

import json
import math
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise

import pytest
from developer_talk import END, MONDAY, QUESTIONS, RULE, SETTINGS, answers, days, open_agent

from jidomem.extras.memoryos.segments import recency
from jidomem.extras.memoryos.values import DialogueSegment
from jidomem.models.embeddings import HashedStems
from jidomem.models.offline import OfflineModel
from jidomem.providers import execute_directive
from jidomem.records.directive import MemoryQuery


class CountingEmbedder(HashedStems):
    """The embedder of the offline model, with a count of its texts."""

    def __init__(self):
        super().__init__()
        self.asked = Counter()

    def generate(self, texts):
        self.asked.update(texts)
        return super().generate(texts)


@dataclass
class Conversation:
    """The result of the dialogue: its exchanges by page id, the archived segments, and the outcomes of the jobs."""

    root: str
    memory: object
    helper: object
    said: dict = field(default_factory=dict)
    archived: list = field(default_factory=list)
    jobs: list = field(default_factory=list)
    rounds: list = field(default_factory=list)

    def subjects(self, pages):
        return {self.said[page.id].subject for page in pages}


@pytest.fixture(scope="module")
def talk(tmp_path_factory):
    folder, now = tmp_path_factory.mktemp("talk"), [MONDAY]
    with pytest.MonkeyPatch.context() as environment:
        for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
            environment.setenv(name, str(folder / name))
        memory, helper = open_agent(
            folder / "root", lambda: now[0], model=OfflineModel(CountingEmbedder()), work="queued"
        )
        talk = Conversation(folder / "root", memory, helper)
        for day in days():
            for each in day:
                now[0], subject = each.at, None if not talk.said else talk.said[next(reversed(talk.said))].subject
                if each.subject != subject:
                    helper.retrieve(each.query, about=("user", each.who))  # before the page is added
                page = helper.add(each.query, each.response, about=("user", each.who))
                talk.said[page.id] = each
                talk.jobs += helper.run_jobs()
            maintain_and_archive(talk)
        now[0] = END
        yield talk
        memory.close()


def maintain_and_archive(talk):
    """Maintain the agent, and read the evicted segments from the archive."""
    before = {segment.id for segment in talk.helper.tiers.mtm}
    talk.jobs += talk.helper.maintain()
    talk.rounds.append(talk.helper.tiers)
    for evicted in sorted(before - {segment.id for segment in talk.helper.tiers.mtm}):
        lookup = MemoryQuery(query={"key": f"memoryos:helper:{evicted}"}, provider="kept")
        (row,) = execute_directive(lookup, talk.memory.providers()).data["result"]
        talk.archived.append(DialogueSegment.from_dict(row["value"]))


# D011 D112 D113
def test_each_page_of_four_weeks_is_in_one_place_with_its_original_content(talk):
    tiers = talk.helper.tiers
    places = {"stm": tiers.stm, "leaving": tiers.leaving,
              "mtm": [page for segment in tiers.mtm for page in segment.pages],
              "archive": [page for segment in talk.archived for page in segment.pages]}  # fmt: skip

    assert len(talk.said) == 168
    pages_held = [page for pages in places.values() for page in pages]
    assert sorted(page.id for page in pages_held) == sorted(talk.said)
    for page in pages_held:
        exchange = talk.said[page.id]
        assert (page.query, page.response, page.timestamp, page.object) == (
            exchange.query, exchange.response, exchange.at, ("user", exchange.who))  # fmt: skip
    counts = {place: len(pages) for place, pages in places.items()}
    assert (counts["stm"], counts["leaving"]) == (7, 0)
    assert counts["mtm"] > counts["archive"] > 20


def test_pages_of_recurring_subjects_share_segments_and_single_subjects_are_archived_first(talk):
    segments = [*talk.helper.tiers.mtm, *talk.archived]
    about = [talk.subjects(segment.pages) for segment in segments]
    weeks = [{talk.said[page.id].at.isocalendar().week for page in segment.pages} for segment in segments]

    assert sum(len(subjects) == 1 for subjects in about) > 0.8 * len(about)
    assert max(map(len, weeks)) >= 3
    assert max(segment.page_count for segment in segments) == SETTINGS.config.segment_capacity
    assert all(len(tiers.mtm) <= SETTINGS.config.mtm_capacity for tiers in talk.rounds)
    once = [segment in talk.archived for segment, subjects in zip(segments, about, strict=True) if "once" in subjects]
    assert sum(once) > len(once) / 2
    assert len([*talk.archived]) > 5


# D013
def test_pages_of_one_subject_form_a_chain_that_ends_with_a_pause(talk):
    pages = sorted([*talk.helper.tiers.pages(), *(page for each in talk.archived for page in each.pages)],
                   key=lambda page: page.when)  # fmt: skip
    continuations = {"subject": [], "pause": []}
    for before, page in pairwise(pages):
        if page.timestamp - before.timestamp > timedelta(hours=1):
            continuations["pause"].append(page.continues)
        elif talk.said[page.id].subject == talk.said[before.id].subject:
            continuations["subject"].append(page.continues == before.id)

    assert {*continuations["pause"]} == {None}
    assert sum(continuations["subject"]) > 0.9 * len(continuations["subject"]) > 90
    assert all(page.meta_chain for page in pages)


# D056 D099
def test_segment_heat_matches_its_formula_and_visits_differ_between_segments(talk):
    for tiers, day in zip(talk.rounds, days(), strict=True):
        config, now = SETTINGS.config, max(exchange.at for exchange in day)
        for segment in tiers.mtm:
            new = sum(not page.analysed for page in segment.pages)
            visits = segment.visit_count - segment.visits_taught
            heat = visits + new + math.exp(-(now - segment.last_accessed).total_seconds() / config.time_constant)
            assert segment.heat_score == pytest.approx(heat)
    mtm = talk.helper.tiers.mtm
    assert max(segment.visit_count for segment in mtm) > 5 > min(segment.visit_count for segment in mtm)
    oldest = min(mtm, key=lambda segment: segment.last_accessed)
    assert recency(oldest.last_accessed, END, SETTINGS.config.time_constant) < 1.0


# D075 D078
def test_personas_learn_facts_of_their_user_and_system_memory_the_rule_but_no_secret(talk):
    facts = {persona.identifier: [fact.text for fact in persona.knowledge] for persona in talk.helper.personas}

    assert {"works as a search engineer", "does not like magic numbers in the index", "lives in Lisbon"} <= {
        *facts["ana"]}  # fmt: skip
    assert facts["ben"][0] == "prefers short answers about the login"
    assert [fact for fact in facts["ben"] if "4711" in fact]
    system = talk.helper.system_memory
    assert [(entry.content.lower(), entry.source_agent_id) for entry in system.entries] == [(RULE, "helper")]
    assert "4711" not in str(system.to_dict())
    assert talk.memory.os("another").system_memory == system
    assert talk.memory.os("another").status()["pages"] == 0


# D106
def test_jobs_of_every_kind_ran_and_none_failed(talk):
    assert {outcome.kind for outcome in talk.jobs} == {
        "describe",
        "transfer",
        "maintain",
        "teach",
        "archive",
        "diffuse",
    }
    assert {outcome.error for outcome in talk.jobs} == {None}
    assert (talk.helper.jobs(), talk.helper.status()["failed"]) == ([], [])
    transferred = [each.subject for each in talk.jobs if each.kind == "transfer"]
    assert len(transferred) == len({*transferred}) == len(talk.said) - 7


# D103
def test_each_page_is_embedded_once_whatever_its_segment_changes(talk):
    embedded = talk.helper.model.embedder.asked
    texts = Counter(f"{exchange.query}\n{exchange.response}" for exchange in talk.said.values())

    assert {text: embedded[text] for text in texts} == texts
    assert sum(embedded.values()) < 2 * len(talk.said)  # a segment with unchanged words keeps its vector


# D113
def test_a_later_process_retrieves_the_same_pages_for_every_question(talk):
    results = answers(talk.helper)
    promoted = talk.helper.promote(0.8)
    command = [sys.executable, sys.modules["developer_talk"].__file__, str(talk.root)]
    completed = subprocess.run(command, capture_output=True, text=True, check=True)

    later = json.loads(completed.stdout)
    assert later["answers"] == json.loads(json.dumps(results))
    assert (later["jobs"], later["again"]) == (0, [])
    subjects = [subject for subject, questions in QUESTIONS.items() for _ in questions]
    best = [talk.said[result["pages"][0]["id"]].subject for result in results]
    assert sum(map(str.__eq__, best, subjects)) >= 14
    assert {each.outcome for each in promoted} == {"promoted"}
    evidence = {talk.memory.reader.why("shop", each.iri)["summary"] for each in promoted}
    assert "user ana: works as a search engineer" in evidence
    assert not any("4711" in summary for summary in evidence)
