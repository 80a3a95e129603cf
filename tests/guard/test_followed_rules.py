"""The rules of the guard after new commits: equal to those of the whole index, and read from few rows."""

import shutil
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from random import Random

from conftest import examples, intent
from guard_world import convention, repository_at
from hypothesis import example, given, settings
from hypothesis import strategies as st

import jidomem
from jidomem.base.clock import Sources, format_timestamp, now
from jidomem.curation.review_queue import queue
from jidomem.errors import JidomemError
from jidomem.guard.guard import Guard
from jidomem.read.reader import MemoryReader
from jidomem.recall import governing
from jidomem.records.policy import PolicyChange
from jidomem.runtime.location import init
from jidomem.runtime.settings import load

PATHS = ("src/a.py", "src/b/c.py", "docs/x.md")
PLACES = ("src/a.py", "src", "src/**/*.py", "docs/", "src/b/c.py", ".", "new.py")
WARN = 'project = "p"\n[conflicts]\n' + "".join(f'{kind} = "warn"\n' for kind in ("convention", "decision", "fact"))


ITEMS = """PREFIX jido: <https://jido.ai/ontology#> SELECT DISTINCT ?item WHERE {
  VALUES ?kind { jido:Convention jido:Decision jido:Error jido:LessonLearned } ?item a ?kind } ORDER BY ?item"""


class World:
    """A clock that is set forward by hand, and distinct ids."""

    def __init__(self, random):
        self.moment, self.random = datetime(2026, 11, 21, tzinfo=UTC), random

    def id(self):
        return f"01900000-0000-7000-8000-{self.random.randrange(16**12):012x}"

    def __call__(self):
        self.moment += timedelta(milliseconds=7)
        return self.moment


def root_at(folder):
    init(folder, "p")
    (folder / ".jidomem" / "config.toml").write_text(WARN)
    return folder / ".jidomem"


def opened(root, clock):
    return closing(jidomem.open(root, sources=Sources(clock, clock.id, lambda: clock.random.randbytes(32))))


def guard_at(root, clock):
    return Guard(load(root, "p"), clock, lambda command: False)


def fields_of(random, clock):
    kind = random.choice(["convention", "convention", "decision", "error", "lesson", "fact", "task"])
    fields = {"type": kind, "summary": f"{kind} {random.randrange(10**6)}", "topic": f"t{random.randrange(3)}",
              "about": random.sample(PLACES, random.randrange(1, 3))}  # fmt: skip
    if kind == "convention":
        level = random.choice(["Strict", "Required", "Advisory"])
        fields |= {"convention_name": fields["topic"], "enforcement_level": level,
                   "extra_triples": [["jido:forbidsPattern", {"@value": f"x{random.randrange(9)}"}]]}  # fmt: skip
    if kind == "decision":
        fields["rationale"] = "measured"
    if kind in ("convention", "decision") and random.random() < 0.3:
        fields["valid_until"] = format_timestamp(clock.moment + timedelta(seconds=random.randrange(1, 100)))
    return fields


def act(memory, random, clock):
    """Write one random change: a new memory, or one of an older memory, which may be refused."""
    items = [row["item"] for row in memory.reader.select("p", ITEMS)]
    choice = random.random()
    if choice < 0.4 or len(items) < 4:
        memory.writer.submit_intent("p", intent(**fields_of(random, clock)))
    elif choice < 0.55:
        memory.writer.invalidate("p", random.choice(items), reason="wrong")
    elif choice < 0.75:
        memory.writer.revise(
            "p", random.choice(items), changes={"summary": f"anew {random.random()}"}, reason="measured"
        )
    elif choice < 0.85:
        memory.writer.confirm("p", random.choice(items))
    elif choice < 0.95:
        waiting = [one for one in queue(memory.reader, "p", memory.sources.now()) if one.other]
        if waiting:
            one = random.choice(waiting)
            memory.writer.settle("p", one.item, random.choice(["keep-both", "supersede"]), other=one.other)
    elif choice < 0.96:
        memory.maintenance.redact(memory.maintenance.plan("p", random.choice(items)), agent="ana", reason="a name")
    elif choice < 0.98:
        clock.moment += timedelta(seconds=40)
    else:
        memory.writer.change_policy("p", [PolicyChange(agent="rita", grants="Curator")])


@settings(max_examples=examples(2))
@given(seed=st.integers(0, 2**32))
@example(seed=16)  # a withdrawn memory gets a successor on another branch
@example(seed=44)
def test_the_rules_followed_over_any_history_equal_those_of_the_whole_index(seed, tmp_path_factory):
    random, clock, folder = Random(seed), World(Random(seed)), tmp_path_factory.mktemp("history")
    root, other = root_at(folder / "one"), folder / "other" / ".jidomem"
    copy = folder / "copy" / ".jidomem"
    with opened(root, clock) as memory:
        for _ in range(4):
            memory.writer.submit_intent("p", intent(**fields_of(random, clock)))
    guard_at(root, clock).governing(PATHS)
    shutil.copytree(root, other, ignore=shutil.ignore_patterns("*.lock", "index", "cache"))
    for step in range(12):
        changed = random.choice([root, root, other])
        for _ in range(random.randrange(1, 3)):
            with opened(changed, clock) as memory, suppress(JidomemError):
                act(memory, random, clock)
        if random.random() < 0.2:
            for file in (other / "projects/p/memory").glob("*.ttl"):
                shutil.copy(file, root / "projects/p/memory")
        after = guard_at(root, clock).governing(PATHS)

        shutil.rmtree(copy.parent, ignore_errors=True)
        shutil.copytree(root, copy, ignore=shutil.ignore_patterns("*.lock", "index", "cache"))
        assert after == guard_at(copy, lambda: clock.moment).governing(PATHS), step


def rows_read(monkeypatch, root, summary):
    """Return the number of rows that the guard reads from the index after another strict convention."""
    with closing(jidomem.open(root)) as memory:
        iri = memory.writer.submit_intent("p", convention(summary, "src/a.py", forbidsPattern="bad")).iri
    rows = []
    select = MemoryReader.select

    def counted(*arguments, **options):
        answer = select(*arguments, **options)
        rows.extend(answer)
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(MemoryReader, "select", counted)
        near = Guard(load(root, "p"), now, lambda command: False).governing(["src/a.py"])["src/a.py"]
    assert iri in {rule.item for rule in near}
    return len(rows)


def test_a_new_rule_costs_the_guard_as_many_rows_in_a_large_project_as_in_a_small_one(tmp_path, monkeypatch):
    root = repository_at(tmp_path / "repo", monkeypatch) / ".jidomem"
    with closing(jidomem.open(root)) as memory:
        memory.writer.submit_intent("p", convention("first", "src", forbidsPattern="bad"))
    rows_read(monkeypatch, root, "cache it")
    small = rows_read(monkeypatch, root, "a second one")
    with closing(jidomem.open(root)) as memory:
        for number in range(40):
            memory.writer.submit_intent("p", convention(f"rule {number}", "docs", forbidsPattern="bad"))
    monkeypatch.setattr(governing, "_MOST_NAMED", 7)
    rows_read(monkeypatch, root, "follow these")

    assert 0 < rows_read(monkeypatch, root, "one more") == small


def test_a_rule_is_marked_when_a_merge_brings_one_that_contradicts_it(tmp_path):
    clock, root, other = World(Random(1)), root_at(tmp_path / "one"), tmp_path / "other" / ".jidomem"
    shutil.copytree(root, other)
    for place, text in ((root, "cents"), (other, "euros")):
        with opened(place, clock) as memory:
            fields = {"type": "convention", "convention_name": "money", "topic": "money", "about": ["src/a.py"]}
            memory.writer.submit_intent("p", intent(summary=f"Amounts are {text}", **fields))
    (alone,) = guard_at(root, clock).governing(["src/a.py"])["src/a.py"]
    for file in (other / "projects/p/memory").glob("*.ttl"):
        shutil.copy(file, root / "projects/p/memory")

    both = guard_at(root, clock).governing(["src/a.py"])["src/a.py"]

    assert alone.rivals == ()
    assert {rule.rivals for rule in both} == {(rule.item,) for rule in both}
    assert len(both) == 2
