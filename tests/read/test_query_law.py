"""The law of time: the answer as of t is the answer of a memory that holds only what was recorded by t."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reader_world import new_index, reader_of, triples

from jidomem.read import Playbook
from jidomem.vocab import graph_iri

PLAYBOOK = Playbook()
CONTEXT, CODEBASE = graph_iri("demo"), graph_iri("demo", "codebase")
CLASSES = ["Fact", "ArchitecturalDecision", "AgentRule", "Task", "Bug", "RootCause", "LessonLearned", "Risk"]
LINKS = ["dependsOn", "blockedBy", "hasRootCause", "derivedFrom", "coexistsWith", "conflictsWith"]
ITEM = st.fixed_dictionaries(
    {
        "cls": st.sampled_from(CLASSES),
        "proposed": st.sampled_from([False, False, False, True]),
        "ends": st.sampled_from(["", "supersede", "supersede", "invalidate"]),
        "target": st.integers(0, 30),
        "links": st.lists(st.tuples(st.sampled_from(LINKS), st.integers(0, 30)), max_size=3),
        "status": st.sampled_from(["Planned", "Completed", "Abandoned"]),
        "error": st.sampled_from(["Reported", "Resolved", "Deferred", None]),
        "level": st.sampled_from(["Strict", "Advisory"]),
        "key": st.sampled_from(["", "duplicate:1", "contradiction:2", "other:3"]),
        "left_out": st.sampled_from(
            ["", "", "hasConfidence", "rationale", "assignedTo", "appliesToProject", "dangles"]
        ),
        "foreign": st.sampled_from([False, False, False, True]),
    }
)
SESSION = st.tuples(
    st.just("session"), st.integers(0, 3), st.sampled_from(["Active", "Paused", "Closed", "Abandoned", ""])
)
EVIDENCE = st.tuples(st.just("evidence"), st.integers(0, 30), st.integers(0, 30))
CODE = st.tuples(st.just("code"), st.integers(0, 3), st.booleans())
HISTORY = st.lists(st.lists(st.one_of(ITEM, ITEM, ITEM, SESSION, EVIDENCE, CODE), min_size=1, max_size=4), max_size=7)


def moment(commit):
    return f'"2026-01-01T00:00:{commit:02d}.000000Z"^^xsd:dateTime'


class Scribe:
    """Writes down a history as the writer would: who ends an item says so in its own commit."""

    def __init__(self):
        self.items, self.proposals, self.sessions, self.serial = [], [], {}, 0

    def commit(self, number, news):
        texts = {CONTEXT: "", CODEBASE: ""}
        for piece in news:
            self.serial += 1
            kind = piece[0] if isinstance(piece, tuple) else "item"
            graph = CODEBASE if kind == "code" else CONTEXT
            texts[graph] += getattr(self, kind)(piece, moment(number))
        return {graph: triples(text) for graph, text in texts.items()}

    def pick(self, number):
        return self.items[number % len(self.items)] if self.items else None

    def item(self, piece, at):
        name = f"m:i{self.serial * 37 % 101:03d}"  # names do not follow time
        said = [
            f"a jido:{piece['cls']} ; jido:recordedAt {at} ; jido:hasTimestamp {at} ; jido:summary 'n {self.serial}'"
        ]
        said.append(f"jido:hasAssertionStatus jido:{'Proposed' if piece['proposed'] else 'Asserted'}")
        optional = {
            "appliesToProject": "p:other" if piece["foreign"] else "p:demo",
            "hasConfidence": "jido:High",
            "rationale": "'why'",
            "assignedTo": "p:someone",
            "conventionName": "'name'",
            "hasEnforcementLevel": f"jido:{piece['level']}",
            "hasTaskStatus": f"jido:{piece['status']}",
        }
        said += [f"jido:{key} {value}" for key, value in optional.items() if key != piece["left_out"]]
        said += [f"jido:hasErrorStatus jido:{piece['error']}"] if piece["error"] else []
        said += [f"jido:conflictKey '{piece['key']}'"] if piece["key"] else []
        said += ["jido:supersededBy m:nowhere"] if piece["left_out"] == "dangles" else []
        said += [f"jido:{link} {self.pick(at)}" for link, at in piece["links"] if self.items]
        text = f"{name} {' ; '.join(said)} .\n" + self.ending(piece, name)
        self.items.append(name)
        return text

    def ending(self, piece, name):
        target = self.pick(piece["target"])
        if not piece["ends"] or target is None:
            return ""
        forth, back = {"supersede": ("supersedes", "supersededBy"), "invalidate": ("invalidates", "invalidatedBy")}[
            piece["ends"]
        ]
        inverse = "" if piece["proposed"] else f"{target} jido:{back} {name} .\n"
        return f"{name} jido:{forth} {target} .\n{inverse}"

    def session(self, piece, at):
        _, number, status = piece
        name = f"s:{number}"
        if number not in self.sessions:
            self.sessions[number] = 0
            before = " ; jido:continuesSession s:0" if number else ""
            return (
                f"{name} a jido:WorkSession ; jido:hasStatus jido:Active ; jido:startedAt {at} ;"
                f" jido:partOfProject p:demo ; jido:recordedAt {at}{before} .\n"
            )
        self.sessions[number] += 1
        said = f"jido:toStatus jido:{status}" if status else "jido:toPhase jido:ReviewPhase"
        ended = f"{name} jido:endedAt {at} .\n" if status in ("Closed", "Abandoned") else ""
        return (
            f"<https://jido.ai/sessions/{number}/events/{self.sessions[number]}> a jido:SessionEvent ;"
            f" jido:ofSession {name} ; jido:eventNumber {self.sessions[number]} ; {said} ;"
            f" jido:recordedAt {at} .\n{ended}"
        )

    def evidence(self, piece, at):
        if not self.items:
            return ""
        _, first, second = piece
        return (
            f"<https://jido.ai/evidence/{self.serial}> a jido:Evidence ; jido:recordedAt {at} ;"
            f" jido:contradicts {self.pick(first)}, {self.pick(second)} .\n"
        )

    def code(self, piece, at):
        _, number, foreign = piece
        whose = "p:other" if foreign else "p:demo"
        return (
            f"<urn:code:{self.serial}> a jido:ElixirModule, jido:Command, jido:Event ; jido:moduleName 'M{number}' ;"
            f" jido:emitsEvent <urn:code:e> ; jido:handledByProjection <urn:code:p> ; jido:partOfProject {whose} ;"
            f" jido:recordedAt {at} .\n"
        )


def answers(reader, **asked):
    found = {}
    for query in PLAYBOOK:
        for inactive in (False, True) if query.takes("includeInactive") else (False,):
            found[query.name, inactive] = reader.ask(query.name, project="demo", include_inactive=inactive, **asked)
    return found


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(HISTORY)
def test_every_question_asked_as_of_a_moment_answers_as_the_memory_did_then(history):
    scribe, commits, then, growing = Scribe(), [], [], new_index()
    for number, news in enumerate(history):
        commits.append(scribe.commit(number, news))
        for graph, rows in commits[-1].items():
            growing.apply(graph, str(number), rows)
        then.append(answers(reader_of(growing, playbook=PLAYBOOK)))

    for number in range(len(history)):
        assert answers(reader_of(growing, playbook=PLAYBOOK), as_of=f"2026-01-01T00:00:{number:02d}Z") == then[number]
