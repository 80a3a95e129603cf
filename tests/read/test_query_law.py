"""The law of time: the answer as of t is that of a memory with only the content recorded by t."""

from functools import partial
from itertools import cycle
from random import Random

from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from reader_world import DATA, new_index, reader_of, triples

from jidomem.base.clock import parse_moment
from jidomem.errors import NotFound
from jidomem.rdf.terms import plain_value
from jidomem.rdf.vocab import JIDO, RDFS, TYPE, graph_iri, graphs_of, jido, local_name
from jidomem.read.playbook import Playbook
from jidomem.records.named_query import snake

PLAYBOOK = Playbook()
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
FROM, UNTIL = jido("validFrom"), jido("validUntil")
CONTEXT, CODEBASE, HISTORY = (graph_iri("demo", name) for name in ("context", "codebase", "history"))
CLASSES = [
    "Task",
    "Task",
    "Bug",
    "RootCause",
    "Fact",
    "Convention",
    "ArchitecturalDecision",
    "AgentRule",
    "LessonLearned",
    "Risk",
    "Assumption",
]
#: The target of each link: an item of that class, evidence, or any node.
LINKS = {"dependsOn": "Task", "blockedBy": "Task", "hasRootCause": "RootCause", "derivedFrom": "Evidence"}
LINKS |= {"contradicts": "", "coexistsWith": "", "conflictsWith": "", "revives": ""}
#: Further properties of an item.
PROPERTIES = [
    "jido:context 'c'",
    "jido:affectedModule 'Core'",
    "jido:about 'src/a.py'",
    "jido:about 'src'",
    "jido:about <urn:code:3>, <urn:code:8>",
    "jido:expiresOn '2026-01-01T00:00:03Z'^^xsd:dateTime",
    "jido:validUntil '2026-01-01T00:00:04Z'^^xsd:dateTime",
    "jido:validFrom '2026-01-01T00:00:03Z'^^xsd:dateTime",
    "jido:decisionStatus 'rejected'",
    "jido:verified true",
    "jido:detailedExplanation 'more'",
]
#: The values of required parameters beside the project.
NEEDED = {
    "item": [f"https://jido.ai/memory/i{serial * 37 % 101:03d}" for serial in (1, 2, 5, 9, 14)],
    "evidence": ["log", "https://jido.ai/memory/i037"],
    "file": ["src/a.py"],
    "module": ["Core"],
    "agent": ["https://jido.ai/agents/ana"],
    "kind": ["fact", "lesson"],
    "session": ["https://jido.ai/sessions/0"],
    "topic": ["n 1"],
    "since": ["2026-01-01T00:00:02Z"],
}
#: The modules that are read, and the prefix of their versions.
CORE = ("Core", "Core.In", "Out")
IMPORTS = "https://jido.ai/projects/demo/code/imports/"
#: Queries that answer differently about a withdrawn memory and about one that is not valid.
OTHERWISE = ("stale", "active-sessions", "entries-of-agent")
STATUSES = ["Active", "Paused", "Paused", "Closed", "Abandoned", ""]
LEFT_OUT = ["", "", "", "hasConfidence", "rationale", "assignedTo", "appliesToProject", "dangles"]


def drawn_item(random):
    return {
        "cls": random.choice(CLASSES),
        "proposed": random.random() < 0.2,
        "ends": random.choice(["", "", "supersede", "supersede", "invalidate"]),
        "target": random.randrange(30),
        "links": [(random.choice(sorted(LINKS)), random.randrange(30)) for _ in range(random.randrange(2, 6))],
        "status": random.choice(["Planned", "Completed", "Abandoned"]),
        "error": random.choice(["Reported", "Resolved", "Deferred", None]),
        "level": random.choice(["Strict", "Advisory"]),
        "key": random.choice(["", "duplicate:1", "duplicate:1", "other:3"]),
        "left_out": random.choice(LEFT_OUT),
        "foreign": random.random() < 0.1,
        "said": random.sample(PROPERTIES, 3),
        "agent": random.choice(["ana", "ben"]),
    }


def drawn_history(random):
    """Return random commits, dense enough for every dependency of an answer on time."""

    def news():
        draw = random.randrange(12)
        if draw > 9:
            return ("said", random.choice(["ana", "ben"]), random.random() < 0.5, random.randrange(6))
        if draw < 7:
            return drawn_item(random)
        if draw == 7:
            return ("session", random.randrange(3), random.choice(STATUSES))
        return (
            ("evidence", random.randrange(30), random.randrange(30)) if draw == 8 else ("code", random.random() < 0.2)
        )

    return [[news() for _ in range(random.randrange(4, 9))] for _ in range(6)]


def at(commit):
    return f"2026-01-01T00:00:{commit:02d}Z"


def moment(commit):
    return f'"2026-01-01T00:00:{commit:02d}.000000Z"^^xsd:dateTime'


class Scribe:
    """Builds a history as the writer would: the memory that ends an item states it in its own commit."""

    def __init__(self):
        self.known, self.sessions, self.serial, self.entry = [], {}, 0, None
        self.versions = []  # of modules, that count

    def commit(self, number, news):
        texts = {CONTEXT: "", CODEBASE: "", HISTORY: ""}
        for piece in news:
            self.serial += 1
            kind = piece[0] if isinstance(piece, tuple) else "item"
            graph = {"code": CODEBASE, "said": HISTORY}.get(kind, CONTEXT)
            texts[graph] += getattr(self, kind)(piece, moment(number))
        return {graph: triples(text) for graph, text in texts.items()}

    def pick(self, number, kind=""):
        """Return a node written so far: of the class *kind* if there is one, else any."""
        fitting = [name for name, cls in self.known if cls == kind] or [name for name, _ in self.known]
        return fitting[number % len(fitting)] if fitting else None

    def item(self, piece, at):
        name = f"m:i{self.serial * 37 % 101:03d}"  # names do not follow time
        properties = [
            f"a jido:{piece['cls']} ; jido:recordedAt {at} ; jido:hasTimestamp {at} ; jido:summary 'n {self.serial}'"
        ]
        properties.append(f"jido:hasAssertionStatus jido:{'Proposed' if piece['proposed'] else 'Asserted'}")
        optional = {
            "appliesToProject": "p:other" if piece["foreign"] else "p:demo",
            "hasConfidence": "jido:High",
            "rationale": "'why'",
            "assignedTo": "p:someone",
            "conventionName": "'name'",
            "hasEnforcementLevel": f"jido:{piece['level']}",
            "hasTaskStatus": f"jido:{piece['status']}",
        }
        properties += [f"jido:{key} {value}" for key, value in optional.items() if key != piece["left_out"]]
        properties += [*piece["said"], f"jido:assertedBy <https://jido.ai/agents/{piece['agent']}>"]
        properties += [f"jido:hasErrorStatus jido:{piece['error']}"] if piece["error"] else []
        properties += [f"jido:conflictKey '{piece['key']}'"] if piece["key"] else []
        properties += ["jido:supersededBy m:nowhere"] if piece["left_out"] == "dangles" else []
        properties += [f"jido:{link} {self.pick(number, LINKS[link])}" for link, number in piece["links"] if self.known]
        text = f"{name} {' ; '.join(properties)} .\n" + self.ending(piece, name)
        self.known.append((name, piece["cls"]))
        return text

    def ending(self, piece, name):
        target = self.pick(piece["target"], piece["cls"])
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
        event = f"jido:toStatus jido:{status}" if status else "jido:toPhase jido:ReviewPhase"
        ended = f"{name} jido:endedAt {at} .\n" if status in ("Closed", "Abandoned") else ""
        return (
            f"<https://jido.ai/sessions/{number}/events/{self.sessions[number]}> a jido:SessionEvent ;"
            f" jido:ofSession {name} ; jido:eventNumber {self.sessions[number]} ; {event} ;"
            f" jido:recordedAt {at} .\n{ended}"
        )

    def evidence(self, piece, at):
        _, first, second = piece
        name = f"<https://jido.ai/evidence/{self.serial}>"
        contradictions = f" ; jido:contradicts {self.pick(first)}, {self.pick(second)}" if self.known else ""
        dangling = f"{self.pick(first)} jido:supersededBy {name} .\n" if self.known and second % 3 == 0 else ""
        self.known.append((name, "Evidence"))
        return f"{name} a jido:Evidence ; {LABEL} 'log' ; jido:recordedAt {at}{contradictions} .\n{dangling}"

    def said(self, piece, at):
        """Write a turn, or an entry, which may replace the previous one; some have a later moment."""
        _, agent, is_turn, second = piece
        who, said = f"<https://jido.ai/agents/{agent}>", f"'2026-01-01T00:00:{second:02d}Z'^^xsd:dateTime"
        if is_turn:
            turn, talk = f"<https://jido.ai/turns/{self.serial}>", "<https://jido.ai/conversations/0>"
            return (
                f"{talk} conv:associatedWithSession s:0 ; jido:partOfProject p:demo .\n"
                f"{turn} conv:partOfConversation {talk} ; conv:turnIndex {self.serial} ; conv:timestamp {said} ;"
                f" jido:recordedAt {at} ; conv:hasPrompt <urn:prompt:{self.serial}> .\n"
                f"<urn:prompt:{self.serial}> a conv:Prompt ; conv:promptText 'n {self.serial}' ; jido:saidBy {who} .\n"
            )
        before, self.entry = self.entry, f"<https://jido.ai/entries/{self.serial * 37 % 101:03d}>"
        replaces = f" ; jido:replaces {before}" if before and second % 2 else ""
        return (
            f"{self.entry} jido:entryOf {who} ; jido:entryId 'k' ; jido:entryText 'n {self.serial}' ;"
            f" jido:partOfProject p:demo ; conv:timestamp {said} ; jido:recordedAt {at}{replaces} .\n"
        )

    def code(self, piece, at):
        _, foreign = piece
        if self.serial % 2:
            return self.module_version(at)
        whose = "p:other" if foreign else "p:demo"
        return (
            f"<urn:code:{self.serial}> a jido:ElixirModule, jido:Command, jido:Event ;"
            f" jido:filePath 'src/a.py' ;"
            f" jido:moduleName 'M{self.serial}' ; jido:emitsEvent <urn:e> ; jido:handledByProjection <urn:code:p> ;"
            f" jido:partOfProject {whose} ; jido:recordedAt {at} .\n"
        )

    def module_version(self, at):
        """Write a reading of a file: a version of its module, which may end earlier versions."""
        name, number, path = (
            f"<urn:module:{self.serial % 3}>",
            self.serial,
            ("src/a.py", "src/b.py")[self.serial % 5 % 2],
        )
        over = [f"<urn:version:{n}>" for n in self.versions if n % 3 == number % 3 and number % 4]
        self.versions = [n for n in self.versions if f"<urn:version:{n}>" not in over] + [number]
        ends = "".join(f"{version} jido:endedIn <{IMPORTS}{number}> .\n" for version in over)
        return (
            f"p:demo jido:hasModule {name} .\n"
            f"{name} a jido:Module, jido:ElixirModule ; jido:codeName '{CORE[number % 3]}' ;"
            f" jido:moduleName '{CORE[number % 3]}' ; jido:recordedAt {at} .\n"
            f"<urn:file:{path}> a jido:SourceFile ; jido:filePath '{path}' ; jido:recordedAt {at} .\n"
            f"<urn:file-version:{number}> jido:versionOfFile <urn:file:{path}> .\n"
            f"<urn:version:{number}> a jido:ModuleVersion ; jido:versionOfModule {name} ; jido:recordedAt {at} ;"
            f" jido:inFileVersion <urn:file-version:{number}> ; jido:moduleLines '1-{number}' ;"
            f" jido:aliasesModule <urn:module:{(number + 1) % 3}> ; jido:mayImport <urn:module:{(number + 2) % 3}> ;"
            f" jido:functionLines '1-2 f' ; jido:definesPrivately <urn:function:{number % 3}> .\n"
            f"<urn:module:{(number + 1) % 3}> jido:codeName '{CORE[(number + 1) % 3]}' .\n"
            f"<urn:function:{number % 3}> jido:codeName '{CORE[number % 3]}.f' .\n"
            f"<{IMPORTS}{number}> a jido:CodeImport ; jido:recordedAt {at} .\n{ends}"
        )


def questions(query):
    """Return each call of *query*: with and without inactive memories, for all values of its parameters."""
    own = [param.name for param in query.params if param.default is None and param.name != "project"]
    arguments = [{name: value} for name in own for value in NEEDED[name]] or [{}]
    inactive = [False, True] if query.takes("includeInactive") else [False]
    return [{"include_inactive": both, **more} for both in inactive for more in arguments]


def answer(reader, name, arguments):
    try:
        return reader.ask(name, project="demo", **arguments)
    except NotFound:  # the requested memory is not recorded yet
        return []


def answers(reader, worlds, **moment):
    """Return the answers of all queries, each at one of *worlds* in turn: moments of the world, or none."""
    calls = [
        (query, {**calls, "valid_at": world} if query.takes("validAt") else calls)
        for (query, calls), world in zip(((q, a) for q in PLAYBOOK for a in questions(q)), cycle(worlds), strict=False)
    ]
    return [(query.name, more, answer(reader, query.name, {**more, **moment})) for query, more in calls]


def test_every_query_about_memories_or_sessions_takes_valid_at():
    without = {query for query in PLAYBOOK if not query.takes("validAt")}

    assert {query.role for query in without if query.name not in ("commits", "commits-of-agent", "policy-changes")} == {
        "code"
    }


@settings(max_examples=examples(2))
@given(st.integers(0, 2**32))
def test_every_query_as_of_a_moment_answers_as_the_memory_of_that_moment(seed):
    random = Random(seed)
    worlds = random.sample([None, None, at(2), at(3), at(4)], 5)
    scribe, then, growing = Scribe(), [], new_index()
    history = drawn_history(random)
    for number, news in enumerate(history):
        for graph, rows in scribe.commit(number, news).items():
            growing.apply(graph, str(number), rows)
        reader = reader_of(growing, playbook=PLAYBOOK, now=partial(parse_moment, at(number)))
        then.append(answers(reader, worlds))

    reader = reader_of(growing, playbook=PLAYBOOK)
    for number in range(len(history)):
        assert answers(reader, worlds, as_of=at(number)) == then[number]


@settings(max_examples=examples(2))
@given(st.integers(0, 2**32))
def test_every_query_has_the_same_rows_with_its_values_in_the_text_now_and_as_of_a_moment(seed):
    scribe, index, graphs = Scribe(), new_index(), graphs_of("demo")
    for number, news in enumerate(drawn_history(Random(seed))):
        for graph, rows in scribe.commit(number, news).items():
            index.apply(graph, str(number), rows)

    for query, given_values in ((each, values) for each in PLAYBOOK for values in questions(each)):
        named = {"project": "demo", **given_values}
        values = {param.name: named[name] for param in query.params if (name := snake(param.name)) in named}
        for moment in ({}, {"asOf": at(3)}):
            bindings = query.bind({**values, **moment, **({"validAt": at(4)} if query.takes("validAt") else {})})
            text = query.with_values(bindings)
            assert text != query.text
            assert index.query(text, graphs=graphs, bindings=bindings) == index.query(
                query.text, graphs=graphs, bindings=bindings
            )


OWN = "https://example.org/own#"


def of_our_kinds(rows):
    """Return *rows* in any order, with our class in place of the own one below it, without the state of work.

    That is read by the schema, in which the own classes are not.
    """
    plain = [{name: value for name, value in row.items() if name != "state"} for row in rows]
    return sorted(
        ({**row, "kind": row["kind"].replace(OWN, JIDO)} if row.get("kind") else row for row in plain), key=repr
    )


@settings(max_examples=examples(3))
@given(st.integers(0, 2**32))
def test_a_memory_of_an_own_kind_is_listed_as_one_of_ours_by_that_kind(seed):
    scribe, ours, own = Scribe(), new_index(), new_index()
    below = "".join(f"<{OWN}{cls}> <{RDFS}subClassOf> jido:{cls} .\n" for cls in set(CLASSES))
    own.put_ontology(triples((DATA / "ontology.ttl").read_text("utf-8") + below))
    for number, news in enumerate(drawn_history(Random(seed))):
        for graph, rows in scribe.commit(number, news).items():
            kinds = [(s, p, f"<{OWN}{local_name(o)}>") for s, p, o in rows if p == TYPE and local_name(o) in CLASSES]
            ours.apply(graph, str(number), rows)
            own.apply(graph, str(number), [*rows, *kinds])
    reader, own_reader = reader_of(ours, playbook=PLAYBOOK), reader_of(own, playbook=PLAYBOOK)

    for query in PLAYBOOK:
        for arguments in questions(query) if query.name not in ("counts", "agent-activity") else ():  # in both classes
            listed = answer(own_reader, query.name, arguments)
            same = answer(reader, query.name, arguments)
            assert of_our_kinds(listed) == of_our_kinds(same), query.name


@settings(max_examples=examples(3))
@given(st.integers(0, 2**32), st.integers(0, 6))
def test_a_memory_invalid_at_a_moment_counts_as_withdrawn(seed, number):
    scribe, index, withdrawn = Scribe(), new_index(), new_index()
    for commit, news in enumerate(drawn_history(Random(seed))):
        for graph, rows in scribe.commit(commit, news).items():
            index.apply(graph, str(commit), rows)
            withdrawn.apply(graph, str(commit), [row for row in rows if row[1] not in (FROM, UNTIL)])
    invalid = {
        s
        for s, p, o in index.triples(CONTEXT)
        if (p == FROM and plain_value(o) > at(number)) or (p == UNTIL and plain_value(o) <= at(number))
    }
    ends = "".join(f"{item} jido:invalidatedBy m:end .\n" for item in sorted(invalid))
    withdrawn.apply(
        CONTEXT, "x", triples(f"m:end jido:hasAssertionStatus jido:Asserted ; jido:recordedAt {moment(0)} .\n{ends}")
    )
    reader, later = (reader_of(each, playbook=PLAYBOOK) for each in (index, withdrawn))

    for query in PLAYBOOK:
        if query.takes("includeInactive") and query.takes("validAt") and query.name not in OTHERWISE:
            for arguments in questions(query):
                if not arguments["include_inactive"]:
                    now = answer(reader, query.name, {**arguments, "valid_at": at(number)})
                    then = answer(later, query.name, arguments)
                    assert undated(now) == undated(then), query.name


def undated(rows):
    """Return *rows* without the dates of their memories."""
    return [{name: value for name, value in row.items() if name not in ("due", "until")} for row in rows]
