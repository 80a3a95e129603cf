"""After any sequence of accepted and refused intents: no triple is lost, the invariants hold, the past is unchanged."""

import shutil
import tempfile
from collections import defaultdict
from itertools import combinations, count
from pathlib import Path

from conftest import examples, files, fixed_sources, intent
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from writing import committed_triples, triples_of

import jidomem
from jidomem import JidomemError, Receipt
from jidomem.base.words import normal_text
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import plain_value
from jidomem.rdf.vocab import CONVENTIONS, DECISIONS, TYPE, WRITER_TYPES, jido

STREAM = Stream("p")
QUERIES = (
    "active-decisions", "conventions", "facts", "open-tasks", "open-errors", "recent-lessons", "active-sessions",
    "risks",
    "task-dependencies", "unexplained-root-causes",
)  # fmt: skip
conflicting_kinds = st.sampled_from(["decision", "architectural_decision", "convention", "coding_standard", "fact"])
kinds = conflicting_kinds | st.sampled_from([*WRITER_TYPES, "bug", "unknown", "plan"])
topics = st.sampled_from(["index", "  INDEX ", "index", None])
abouts = st.sampled_from([[], ["src/a"], ["src/a", "src/b"], ["src/c"]])
summaries = st.sampled_from(["one", "One ", "two", "three"])
agents = st.sampled_from(["architect", "bob"])
sessions = st.sampled_from(["s-1", "s-2", "s-3"])
scopes = st.sampled_from([None, "GlobalScope", "AgentScope"])
picks = st.integers(0, 10**6)
BROKEN = (
    {"confidence": "certain"}, {"type": "musing"}, {"summary": " "}, {"iri": "a b"},
    {"supersedes": ["https://jido.ai/memory/x"]}, {"applies_to_project": "q"}, {"extra_triples": [["jido:topik",
    "x"]]}, {"type": "decision"}, {"colour": "red"},
    {"type": "task", "status": "Begun"}, {"extra_triples": [["jido:recordedAt", "2020-01-01T00:00:00Z"]]},
)  # fmt: skip


ENDS = (jido("supersededBy"), jido("invalidatedBy"))


class Memory(RuleBasedStateMachine):
    """A memory that several agents write to at random."""

    denials = ()  # codes of refusals of any intent

    @initialize()
    def begin(self):
        self.folder = Path(tempfile.mkdtemp())
        self.sources = fixed_sources()
        self.memory = jidomem.open(self.folder / "root", sources=self.sources)
        self.items, self.moments, self.warned = [], [], {}
        self.known, self.ended, self.keys = set(), set(), count()

    def teardown(self):
        try:
            if self.moments:
                self.assert_the_past_is_unchanged()
                self.assert_index_equals_journal()
        finally:
            shutil.rmtree(self.folder)

    def submit(self, **fields):
        """Submit an intent and return its receipt, or its refusal, which changed no file."""
        before = files(self.folder / "root")
        try:
            receipt = self.memory.writer.submit_intent("p", intent(**fields))
        except JidomemError as error:
            receipt = error
        if not isinstance(receipt, Receipt):
            assert files(self.folder / "root") == before
            return receipt
        assert before.items() <= files(self.folder / "root").items()
        if receipt.status != "deduplicated":
            self.track(receipt)
        return receipt

    def track(self, receipt):
        self.items.append(receipt.iri)
        self.warned[receipt.iri] = receipt.warnings
        self.moments.append(receipt.version.recorded_at)

    def content(self, kind, summary, topic, about, scope=None):
        fields = {"type": kind, "summary": summary, "topic": topic, "about": about, "rationale": "because"}
        return fields | ({"convention_name": "rule", "convention_scope": scope} if kind in CONVENTIONS else {})

    @rule(kind=kinds, summary=summaries, topic=topics, about=abouts, scope=scopes, agent=agents, session=sessions)
    def submit_a_memory(self, agent, session, **content):
        self.submit(**self.content(**content), asserted_by=agent, asserted_in=session)

    @rule(kind=kinds, summary=summaries, topic=topics, about=abouts, scope=scopes)
    def submit_and_resolve_conflicts(self, **content):
        fields = self.content(**content)
        for _ in range(20):
            outcome = self.submit(**fields)
            if isinstance(outcome, Receipt):
                return
            if outcome.code in self.denials:
                return
            assert outcome.code == "conflict"
            fields |= {**outcome.conflicts[0].resolve_with, "reason": "agreed"}
        raise AssertionError(f"never settled: {outcome}")

    @rule(kind=kinds, summary=summaries, topic=topics, about=abouts, scope=scopes)
    def submit_coexisting(self, **content):
        fields = self.content(**content)
        outcome = self.submit(**fields)
        if not isinstance(outcome, Receipt) and outcome.code == "conflict":
            self.submit(**fields, coexists_with=[clash.iri for clash in outcome.conflicts])

    @precondition(lambda self: self.items)
    @rule(pick=picks, kind=kinds, summary=summaries, topic=topics, field=st.sampled_from(["supersedes", "invalidates"]))
    def replace(self, pick, kind, summary, topic, field):
        target = self.items[pick % len(self.items)]
        outcome = self.submit(
            **self.content(kind, f"{summary} {pick}", topic, []), evidence=["seen"], **{field: [target]}
        )
        if target in self.ended:
            assert not isinstance(outcome, Receipt)

    @precondition(lambda self: self.items)
    @rule(pick=picks, status=st.sampled_from(["Completed", "Resolved", "accepted"]))
    def revise(self, pick, status):
        old = self.items[pick % len(self.items)]
        try:
            self.track(self.memory.writer.revise("p", old, changes={"status": status}, reason="done"))
        except JidomemError as error:
            outcome = error
            assert outcome.code in ("conflict", "shape_violation", *self.denials)

    @precondition(lambda self: self.items)
    @rule(pick=picks)
    def withdraw(self, pick):
        try:
            self.track(self.memory.writer.invalidate("p", self.items[pick % len(self.items)], reason="wrong"))
        except JidomemError as error:
            outcome = error
            assert outcome.code in ("conflict", *self.denials)

    @precondition(lambda self: self.items)
    @rule(pick=picks, way=st.sampled_from(["undo", "confirm"]))
    def bring_back_or_confirm(self, pick, way):
        item = self.items[pick % len(self.items)]
        try:
            receipt = getattr(self.memory.writer, way)("p", item, reason="seen again")
        except JidomemError as error:
            outcome = error
            assert outcome.code in ("conflict", "invalid_argument", "shape_violation", *self.denials)
        else:
            if receipt.status != "deduplicated":
                self.track(receipt)

    @rule(fields=st.sampled_from(BROKEN))
    def submit_invalid(self, fields):
        assert not isinstance(self.submit(**fields), Receipt)

    @rule(summary=summaries)
    def retry(self, summary):
        key = f"k-{next(self.keys)}"
        first = self.submit(summary=f"{summary} {key}", idempotency_key=key)
        repeated = self.memory.writer.submit_intent("p", intent(summary=f"{summary} {key}", idempotency_key=key))
        assert repeated.to_dict() == first.to_dict()

    @rule(names=st.lists(summaries, min_size=2, max_size=4), atomic=st.booleans())
    def explain_an_error(self, names, atomic):
        number = next(self.keys)
        cause = f"urn:cause:{number}"  # no text contains it: a restated memory has another IRI
        because = [["jido:hasRootCause", {"@id": cause}], ["jido:producedLesson", {"@id": f"{cause}:lesson"}]]
        batch = [
            intent(type="root_cause", iri=cause, summary=f"cause {number}"),
            intent(type="lesson", iri=f"{cause}:lesson", summary=f"lesson {number}"),
            intent(type="error", summary=f"error {number}", extra_triples=because),
            *(intent(type="task", summary=f"{name} {number}") for name in dict.fromkeys(map(normal_text, names))),
        ]
        for receipt in self.memory.writer.submit_many("p", batch, atomic=atomic):
            self.track(receipt)

    @rule(name=sessions, status=st.sampled_from(["Active", "Paused", "Closed", "Abandoned", None]))
    def move_a_session(self, name, status):
        before = files(self.folder / "root")
        try:
            if status is None:
                receipt = self.memory.writer.start_session("p", name)
            else:
                receipt = self.memory.writer.move_session("p", name, status=status)
        except JidomemError:
            receipt = None
        if receipt is None:
            assert files(self.folder / "root") == before
        else:
            self.moments.append(receipt.version.recorded_at)

    @rule()
    def reopen(self):
        self.memory = jidomem.open(self.folder / "root", sources=self.sources)

    @precondition(lambda self: self.moments)
    @invariant()
    def nothing_is_lost(self):  # C014
        now = triples_of(self.memory)
        assert self.known <= now
        self.known = now
        self.assert_the_rules_of_the_protocol(now)

    def assert_the_rules_of_the_protocol(self, triples):  # C118
        rows = defaultdict(lambda: defaultdict(set))
        for subject, predicate, value in triples:
            rows[subject][predicate].add(value)
        items = {node: properties for node, properties in rows.items() if jido("hasAssertionStatus") in properties}
        assert all(len(properties[jido("appliesToProject")]) == 1 for properties in items.values())  # I1
        ended = {
            node
            for node, properties in items.items()
            if properties[jido("supersededBy")] or properties[jido("invalidatedBy")]
        }
        asserted = {
            node for node, properties in items.items() if jido("Asserted") in properties[jido("hasAssertionStatus")]
        }
        assert not [node for node, properties in items.items() for link in ENDS if properties[link] - asserted]
        active_items = {node: items[node] for node in asserted - ended}
        assert_no_undeclared_conflict(active_items, DECISIONS, lambda properties: properties[jido("topic")])  # I2
        for name in ("topic", "conventionName"):  # I3
            assert_no_undeclared_conflict(
                active_items,
                CONVENTIONS,
                lambda properties, name=name: {
                    (o, *properties[jido("hasConventionScope")]) for o in properties[jido(name)]
                },
                conventions_clash,
            )
        assert {f"<{item}>" for item in self.ended} <= ended  # I4
        self.ended = {plain_value(node) for node in ended}
        assert all(len(properties[jido("supersededBy")]) <= 1 for properties in items.values())
        lessons = {o for properties in items.values() for o in properties[jido("producedLesson")]}
        assert all(jido("LessonLearned") in rows[lesson][TYPE] for lesson in lessons)  # I5
        explained = {o for properties in items.values() for o in properties[jido("hasRootCause")]}
        for node, properties in items.items():
            if jido("RootCause") in properties[TYPE] and node not in explained:  # I6
                assert any("hasRootCause" in warning for warning in self.warned[plain_value(node)])
        own_namespaces = (
            "<https://jido.ai/memory/",
            "<https://jido.ai/agents/",
            "<https://jido.ai/sessions/",
            "<urn:jido:commit:",
        )
        assert not [
            o
            for properties in rows.values()
            for objects in properties.values()
            for o in objects
            if o.startswith(own_namespaces) and o not in rows
        ]

    def assert_the_past_is_unchanged(self):
        """Assert that a query as of a moment equals the query of a memory replayed to that moment."""
        moments = sorted(set(self.moments))
        for moment in {moments[0], moments[len(moments) // 2], moments[-1]}:
            replayed = self.folder / f"replayed-{moments.index(moment)}"
            target = replayed / "projects" / "p" / "memory"
            target.mkdir(parents=True)
            for commit in self.memory.journal.read(STREAM):
                if commit.recorded_at <= moment:
                    (source,) = self.memory.journal.path(STREAM).glob(f"*-{commit.id[:12]}.ttl")
                    shutil.copy(source, target)
            with jidomem.open(replayed) as reopened:
                for name in QUERIES:
                    result = self.memory.reader.ask(name, project="p", as_of=moment)
                    assert result == reopened.reader.ask(name, project="p"), (name, moment)

    def assert_index_equals_journal(self):
        committed_triples(self.memory)  # C079
        with jidomem.open(self.folder / "root") as reopened:
            assert triples_of(reopened) == triples_of(self.memory)


def conventions_clash(first, second):
    """Return whether two conventions differ about one place."""
    texts = [{normal_text(plain_value(text)) for text in properties[jido("summary")]} for properties in (first, second)]
    places = [properties[jido("about")] for properties in (first, second)]
    return texts[0] != texts[1] and (not all(places) or bool(places[0] & places[1]))


def assert_no_undeclared_conflict(active_items, kinds, keys_of, conflicts=lambda one, other: True):
    """Assert that no two active items of one family share a key and conflict, unless one coexists with the other."""
    classes = {jido("".join(part.title() for part in kind.split("_"))) for kind in kinds}
    holders = defaultdict(set)
    for node, properties in active_items.items():
        if properties[TYPE] & classes:
            for key in keys_of(properties):
                parts = key if isinstance(key, tuple) else (key,)
                holders[normal_text(plain_value(parts[0])), *parts[1:]].add(node)
    for nodes in holders.values():
        for first, second in combinations(sorted(nodes), 2):
            coexisting = {*active_items[first][jido("coexistsWith")], *active_items[second][jido("coexistsWith")]}
            assert {first, second} & coexisting or not conflicts(active_items[first], active_items[second]), (
                first,
                second,
            )


TestMemory = Memory.TestCase  # C014 C079 C118
TestMemory.settings = settings(
    max_examples=examples(20),
    stateful_step_count=25,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
