"""A conversation of four weeks through the tiers of MemoryOS: the place of each page at its end and after a restart."""

import json
import math
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise

import pytest
from developer_talk import END, MONDAY, QUESTIONS, RULE, SETTINGS, answers, days, opened

from jidomem.extras.memoryos.segments import recency
from jidomem.extras.memoryos.values import DialogueSegment
from jidomem.models.embeddings import HashedStems
from jidomem.models.offline import OfflineModel
from jidomem.providers import execute_directive
from jidomem.records.directive import MemoryQuery


class Counted(HashedStems):
    """The embedder of the offline model, with a count of its texts."""

    def __init__(self):
        super().__init__()
        self.asked = Counter()

    def generate(self, texts):
        self.asked.update(texts)
        return super().generate(texts)


@dataclass
class Heard:
    """The result of the talk: the texts by page id, the archived segments, and the outcomes of the jobs."""

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
def heard(tmp_path_factory):
    folder, now = tmp_path_factory.mktemp("talk"), [MONDAY]
    with pytest.MonkeyPatch.context() as environment:
        for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
            environment.setenv(name, str(folder / name))
        memory, helper = opened(folder / "root", lambda: now[0], model=OfflineModel(Counted()), work="queued")
        told = Heard(folder / "root", memory, helper)
        for said in days():
            for each in said:
                now[0], subject = each.at, None if not told.said else told.said[next(reversed(told.said))].subject
                if each.subject != subject:
                    helper.retrieve(each.query, about=("user", each.who))  # what is remembered of it, before it is said
                page = helper.add(each.query, each.response, about=("user", each.who))
                told.said[page.id] = each
                told.jobs += helper.run_jobs()
            rounded(told)
        now[0] = END
        yield told
        memory.close()


def rounded(told):
    """Maintain the agent, and read the evicted segments from the archive."""
    before = {segment.id for segment in told.helper.tiers.mtm}
    told.jobs += told.helper.maintain()
    told.rounds.append(told.helper.tiers)
    for gone in sorted(before - {segment.id for segment in told.helper.tiers.mtm}):
        asked = MemoryQuery(query={"key": f"memoryos:helper:{gone}"}, provider="kept")
        (kept,) = execute_directive(asked, told.memory.providers()).data["result"]
        told.archived.append(DialogueSegment.from_dict(kept["value"]))


# D011 D112 D113
def test_each_page_of_four_weeks_is_in_one_place_and_as_it_was_said(heard):
    tiers = heard.helper.tiers
    places = {"stm": tiers.stm, "leaving": tiers.leaving,
              "mtm": [page for segment in tiers.mtm for page in segment.pages],
              "archive": [page for segment in heard.archived for page in segment.pages]}  # fmt: skip

    assert len(heard.said) == 168
    held = [page for pages in places.values() for page in pages]
    assert sorted(page.id for page in held) == sorted(heard.said)
    for page in held:
        said = heard.said[page.id]
        assert (page.query, page.response, page.timestamp, page.object) == (
            said.query, said.response, said.at, ("user", said.who))  # fmt: skip
    counts = {place: len(pages) for place, pages in places.items()}
    assert (counts["stm"], counts["leaving"]) == (7, 0)
    assert counts["mtm"] > counts["archive"] > 20


def test_subjects_that_return_are_joined_again_and_what_was_said_once_is_forgotten_first(heard):
    segments = [*heard.helper.tiers.mtm, *heard.archived]
    about = [heard.subjects(segment.pages) for segment in segments]
    weeks = [{heard.said[page.id].at.isocalendar().week for page in segment.pages} for segment in segments]

    assert sum(len(subjects) == 1 for subjects in about) > 0.8 * len(about)
    assert max(map(len, weeks)) >= 3
    assert max(segment.page_count for segment in segments) == SETTINGS.config.segment_capacity
    assert all(len(tiers.mtm) <= SETTINGS.config.mtm_capacity for tiers in heard.rounds)
    once = [segment in heard.archived for segment, subjects in zip(segments, about, strict=True) if "once" in subjects]
    assert sum(once) > len(once) / 2
    assert len([*heard.archived]) > 5


# D013
def test_pages_of_one_subject_are_a_chain_and_a_day_begins_another(heard):
    pages = sorted([*heard.helper.tiers.pages(), *(page for each in heard.archived for page in each.pages)],
                   key=lambda page: page.when)  # fmt: skip
    goes_on = {"subject": [], "pause": []}
    for before, page in pairwise(pages):
        if page.timestamp - before.timestamp > timedelta(hours=1):
            goes_on["pause"].append(page.continues)
        elif heard.said[page.id].subject == heard.said[before.id].subject:
            goes_on["subject"].append(page.continues == before.id)

    assert {*goes_on["pause"]} == {None}
    assert sum(goes_on["subject"]) > 0.9 * len(goes_on["subject"]) > 90
    assert all(page.meta_chain for page in pages)


# D056 D099
def test_what_is_asked_after_most_is_hottest_and_each_heat_is_what_the_formula_gives(heard):
    for tiers, day in zip(heard.rounds, days(), strict=True):
        config, now = SETTINGS.config, max(said.at for said in day)
        for segment in tiers.mtm:
            new = sum(not page.analysed for page in segment.pages)
            visits = segment.visit_count - segment.visits_taught
            heat = visits + new + math.exp(-(now - segment.last_accessed).total_seconds() / config.time_constant)
            assert segment.heat_score == pytest.approx(heat)
    mtm = heard.helper.tiers.mtm
    assert max(segment.visit_count for segment in mtm) > 5 > min(segment.visit_count for segment in mtm)
    oldest = min(mtm, key=lambda segment: segment.last_accessed)
    assert recency(oldest.last_accessed, END, SETTINGS.config.time_constant) < 1.0


# D075 D078
def test_personas_learn_what_each_said_of_himself_and_all_agents_the_rule_and_no_secret(heard):
    facts = {persona.identifier: [fact.text for fact in persona.knowledge] for persona in heard.helper.personas}

    assert {"works as a search engineer", "does not like magic numbers in the index", "lives in Lisbon"} <= {
        *facts["ana"]}  # fmt: skip
    assert facts["ben"][0] == "prefers short answers about the login"
    assert [fact for fact in facts["ben"] if "4711" in fact]
    system = heard.helper.system_memory
    assert [(entry.content.lower(), entry.source_agent_id) for entry in system.entries] == [(RULE, "helper")]
    assert "4711" not in str(system.to_dict())
    assert heard.memory.os("another").system_memory == system
    assert heard.memory.os("another").status()["pages"] == 0


# D106
def test_the_jobs_of_the_talk_were_of_every_kind_and_none_failed(heard):
    assert {outcome.kind for outcome in heard.jobs} == {
        "describe",
        "transfer",
        "maintain",
        "teach",
        "archive",
        "diffuse",
    }
    assert {outcome.error for outcome in heard.jobs} == {None}
    assert (heard.helper.jobs(), heard.helper.status()["failed"]) == ([], [])
    asked = [each.subject for each in heard.jobs if each.kind == "transfer"]
    assert len(asked) == len({*asked}) == len(heard.said) - 7


# D103
def test_a_page_is_embedded_once_however_often_its_segment_changes(heard):
    asked = heard.helper.model.embedder.asked
    texts = Counter(f"{said.query}\n{said.response}" for said in heard.said.values())

    assert {text: asked[text] for text in texts} == texts
    assert sum(asked.values()) < 2 * len(heard.said)  # a segment that a page changes no word of keeps its vector


# D113
def test_a_process_that_begins_later_finds_the_same_on_every_question(heard):
    found = answers(heard.helper)
    promoted = heard.helper.promote(0.8)
    command = [sys.executable, sys.modules["developer_talk"].__file__, str(heard.root)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    again = json.loads(done.stdout)
    assert again["answers"] == json.loads(json.dumps(found))
    assert (again["jobs"], again["again"]) == (0, [])
    subjects = [subject for subject, questions in QUESTIONS.items() for _ in questions]
    best = [heard.said[one["pages"][0]["id"]].subject for one in found]
    assert sum(map(str.__eq__, best, subjects)) >= 14
    assert {each.outcome for each in promoted} == {"promoted"}
    evidence = {heard.memory.reader.why("shop", each.iri)["summary"] for each in promoted}
    assert "user ana: works as a search engineer" in evidence
    assert not any("4711" in summary for summary in evidence)
