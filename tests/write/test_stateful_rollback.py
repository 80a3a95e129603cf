"""After any sequence of intents and rollbacks, the memories of the moment are active and the invariants hold."""

from conftest import examples
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule
from test_rollback import active_contents, violations
from test_stateful import Memory, picks, summaries, topics

from jidomem import JidomemError


class RolledBack(Memory):
    """A memory that several agents write to, with occasional rollbacks."""

    @rule(summary=summaries, topic=topics, texts=st.lists(summaries, min_size=1, max_size=2, unique=True))
    def decide_among_alternatives(self, summary, topic, texts):
        self.submit(type="decision", summary=summary, topic=topic, rationale="because", alternatives=texts)

    @rule(summary=summaries, accept=st.booleans())
    def propose(self, summary, accept):
        try:
            fields = {**self.content("risk", summary, None, []), "asserted_by": "bob"}
            proposed = self.submit_as(fields, propose=True)
            if accept:
                self.track(self.memory.writer.settle("p", proposed.iri, "accept"))
        except JidomemError as error:
            outcome = error
            assert outcome.code in ("conflict", "invalid_argument")

    def submit_as(self, fields, **options):
        defaults = {"applies_to_project": "p", "asserted_in": "s-1", "confidence": "high"}
        receipt = self.memory.writer.submit_intent("p", {**defaults, **fields}, **options)
        if receipt.status != "deduplicated":
            self.track(receipt)
        return receipt

    @precondition(lambda self: self.moments)
    @invariant()
    def the_active_memories_are_recorded(self):
        vars(self).setdefault("then", {})[self.moments[-1]] = active_contents(self.memory)

    @precondition(lambda self: len(vars(self).get("then", ())) > 1)
    @rule(pick=picks)
    def roll_back(self, pick):  # C117
        moment = sorted(self.then)[pick % len(self.then)]
        rollback = self.memory.roll_back(moment, reason="an experiment", project="p")
        assert active_contents(self.memory) == self.then[moment]
        if rollback.commit:
            self.moments.append(rollback.version.recorded_at)
        for correction in rollback.corrections:  # a restored root cause is explained through the one it revives
            self.warned[correction.by] = ("hasRootCause",)
            self.items.append(correction.by)
        second = self.memory.roll_back(moment, reason="an experiment", project="p")
        assert (second.corrections, second.commit) == ((), None)

    def teardown(self):
        if self.moments:
            assert {each.rule.rsplit("#")[-1] for each in violations(self.memory)} <= {"RootCauseExplainsAnError"}
        super().teardown()


TestRolledBack = RolledBack.TestCase  # C117 C118
TestRolledBack.settings = settings(
    max_examples=examples(6),
    stateful_step_count=20,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
