"""An import restores what an export says was settled: nothing in it is judged again."""

from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from conftest import decision, examples, intent
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_git_branches import merge
from test_opposite_judgements import TABLE, act, clones  # noqa: F401

import jidomem
from jidomem.curation.review_queue import acceptable, present_rows, queue
from jidomem.errors import JidomemError
from jidomem.exchange import documents
from jidomem.exchange.documents import DocumentFormat
from jidomem.exchange.importer import import_document
from jidomem.index.follower import after_clearing
from jidomem.journal.journal import NAMES, Stream
from jidomem.rdf.vocab import jido
from jidomem.records.policy import PolicyChange
from jidomem.write.settlement import ACTIONS, Settlement


def exported(memory, form):
    def commits(stream):
        return list(memory.journal.read(stream))

    if form is DocumentFormat.N_QUADS:
        streams = [Stream("p", name) for name in NAMES]
        return documents.nquads({each.graph: after_clearing(each, commits(each)) for each in streams})
    write = documents.turtle if form is DocumentFormat.TURTLE else documents.jsonld
    return write("p", commits(Stream("p")), memory.schema.version)


def without_times(rows):
    """Return *rows* without the times and commits of their recording, which no export has."""
    return [
        {name: value for name, value in row.items() if name not in ("recorded", "commit", "position", "version")}
        for row in rows
    ]


def state(memory):
    """Return what the lists, the review queue, the conflicts and the histories of a project show."""
    ask, now = memory.reader.ask, memory.sources.now()
    every = {f"{name} {inactive}": without_times(ask(name, project="p", include_inactive=inactive))
             for name in ("decisions", "facts", "tasks", "conventions") for inactive in (False, True)}  # fmt: skip
    items = [row["item"] for row in ask("timeline", project="p", include_inactive=True)]
    shown = [(one.kind, one.item, one.other, one.why, one.actions) for one in queue(memory.reader, "p", now)]
    pairs = [(row["kind"], *sorted((row["a"], row["b"]))) for row in ask("conflicts", project="p")]
    proposals = without_times(ask("proposals", project="p"))
    histories = {item: sorted(map(repr, without_times(memory.reader.history("p", item)))) for item in items}
    return every, sorted(items), sorted(map(repr, shown)), sorted(pairs), proposals, histories


def assert_is_restored(original, folder, forms=tuple(DocumentFormat), root=None, before=None):
    before = state(original) if before is None else before
    for form in forms:
        data = exported(original, form)
        with jidomem.open(folder / (form.name if root is None else root)) as copy:
            report = import_document(copy.writer, copy.schema, "p", "memory.file", data, form)
            assert [entry.outcome.to_dict() for entry in report.refusals] == []
            assert state(copy) == before
            assert exported(copy, form) == data
            again = import_document(copy.writer, copy.schema, "p", "memory.file", data, form)
            assert [entry.outcome for entry in again.entries if entry.outcome] == []
    return before


@pytest.mark.parametrize(("left_action", "right_action"), [*TABLE])
def test_merged_settlements_are_restored(clones, tmp_path, left_action, right_action):  # noqa: F811
    left, right, items = clones
    act(left, 100, left_action, items)
    act(right, 101, right_action, items)
    merge(left, right)

    with left.open(200) as memory:
        assert_is_restored(memory, tmp_path / "copy", [DocumentFormat.TURTLE])
        for one in queue(memory.reader, "p", memory.sources.now())[:1]:  # settled after the merge
            action = next((each for each in ("accept", "supersede") if each in one.actions), None)
            if action is not None:
                memory.writer.settle("p", one.item, action, other=one.other, reason="looked at it")
                assert_is_restored(memory, tmp_path / "settled", [DocumentFormat.TURTLE])


KITCHEN = """@prefix jido: <https://jido.ai/ontology#> . @prefix my: <https://example.org/kitchen#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
my:Dish a owl:Class ; rdfs:subClassOf jido:Fact ; rdfs:comment "What is eaten." .
my:Soup a owl:Class ; rdfs:subClassOf my:Dish ; rdfs:comment "What is eaten with a spoon." .
my:Spill a owl:Class ; rdfs:subClassOf jido:Incident ; rdfs:comment "What is on the floor." .
my:litres a owl:DatatypeProperty ; rdfs:range <http://www.w3.org/2001/XMLSchema#decimal> ; rdfs:comment "x" .
"""


@pytest.mark.parametrize("form", [*DocumentFormat])
def test_memories_of_own_kinds_are_restored_where_they_are_declared_and_where_not(tmp_path, form):
    for name in ("original", "declared"):
        (tmp_path / name / "ontology").mkdir(parents=True)
        (tmp_path / name / "ontology" / "kitchen.ttl").write_text(KITCHEN)
    with jidomem.open(tmp_path / "original") as memory:
        said = partial(memory.remember, project="p", asserted_by="ana")
        soup = said("Borscht", type="Soup", **{"my:litres": "15.00"}).iri
        said("Bread", type="my:Dish", extra_triples=[["rdf:type", "my:Soup"]])
        spill = said("The pot fell", type="Spill", about=["floor"]).iri
        memory.writer.revise("p", soup, changes={"topic": "beet"}, reason="r")
        memory.writer.revise("p", spill, changes={"type": "error"}, reason="no incident")
        memory.writer.invalidate("p", said("Air", type="Dish").iri, reason="not eaten")
        memory.writer.submit_intent("p", intent(type="Dish", summary="Cake"), propose=True)
        assert_is_restored(memory, tmp_path / "declared", [form], root="")
        data, version = exported(memory, form), memory.schema.version.encode()

    with jidomem.open(tmp_path / "undeclared") as copy:
        report = import_document(copy.writer, copy.schema, "p", "memory.file", data, form)
        assert [entry.outcome for entry in report.refusals] == []
        assert exported(copy, form) == data.replace(version, copy.schema.version.encode())


TEXTS = ("Use SQLite", "Use PostgreSQL", "Use files", "Use Redis")
AUTHORS = ("ana", "ben", "cem")


def submit(memory, a, b, propose=False, is_trusted=True):
    writer, kind = memory.writer, ("decision", "fact", "convention", "task")[a % 4]
    fields = {"topic": f"topic {b % 2}", "about": ["src/a.py"] * (a % 2), "asserted_by": AUTHORS[(a + b) % 3]}
    fields |= {} if is_trusted else {"source_type": "ExternalDocumentSource"}
    summary = TEXTS[b % 4]
    values = decision(summary=summary, **fields) if kind == "decision" else intent(type=kind, summary=summary, **fields)
    return writer.submit_intent("p", values, propose=propose)


def propose_successor(memory, one, other, a):
    old = memory.writer.restated("p", one)
    fields = {name: value for name, value in old.items() if name not in ("iri", "supersedes", "invalidates", "revives")}
    values = {**fields, "summary": f"{TEXTS[a % 4]}, too", "supersedes": [one], "reason": "r", "asserted_by": "cem"}
    return memory.writer.submit_intent("p", values, propose=True)


def propose_withdrawal(memory, one, other, a):
    marker = intent(type="deleted_marker", summary="Withdrawn", rationale="wrong", invalidates=[one], asserted_by="ben")
    return memory.writer.submit_intent("p", marker, propose=True)


def settle(action, against, memory, one, other, a):
    changes = {"about": [f"src/{a}.py"]} if action == "keep-both" else None
    return memory.writer.settle("p", one, action, other=other if against else None, reason="r", changes=changes)


STEPS = {
    "edit": lambda memory, one, other, a: memory.writer.revise(
        "p", one, changes={"summary": f"{TEXTS[a % 4]} everywhere", "asserted_by": AUTHORS[a % 3]}, reason="r"
    ),
    "another rationale": lambda memory, one, other, a: memory.writer.revise(
        "p", one, changes={"rationale": f"because {a}"}, reason="r"
    ),
    "confirm": lambda memory, one, other, a: memory.writer.confirm("p", one, asserted_by=AUTHORS[a % 3]),
    "withdraw": lambda memory, one, other, a: memory.writer.invalidate("p", one, reason="wrong"),
    "undo": lambda memory, one, other, a: memory.writer.undo("p", one),
    "undo for a reason": lambda memory, one, other, a: memory.writer.undo("p", one, reason="right"),
    "propose a successor": propose_successor,
    "propose a withdrawal": propose_withdrawal,
    **{f"{action} {word}".strip(): partial(settle, action, word) for action in ACTIONS for word in ("", "against")},
}


@example(
    start=[(0, 0), (1, 1), (2, 2)],
    proposed=[(4, 1), (8, 0), (12, 2)],
    steps=[("accept", 3, 0), ("supersede", 4, 0), ("keep-both", 5, 1), ("reject", 3, 0), ("undo", 0, 0)],
)
@example(start=[(0, 0)], proposed=[], steps=[("propose a withdrawal", 0, 0), ("another rationale", 1, 0)])
@example(
    start=[(0, 0), (0, 0)],
    proposed=[(0, 3)],
    steps=[("edit", 2, 0), ("undo for a reason", 2, 0), ("undo for a reason", 3, 0)],
)
@given(
    start=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=4),
    proposed=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=3),
    steps=st.lists(st.tuples(st.sampled_from([*STEPS]), st.integers(0, 15), st.integers(0, 15)), max_size=12),
)
@settings(max_examples=examples(10), deadline=None)
def test_every_settlement_of_a_root_is_restored(start, proposed, steps):
    with TemporaryDirectory() as folder, jidomem.open(Path(folder, "original"), project="p") as memory:
        items = []
        for each, propose in [*((one, False) for one in start), *((one, True) for one in proposed)]:
            with suppress(JidomemError):
                items.append(submit(memory, *each, propose=propose).iri)
        data = exported(memory, DocumentFormat.TURTLE)
        with jidomem.open(Path(folder, "TURTLE")) as copy:
            report = import_document(copy.writer, copy.schema, "p", "memory.file", data, DocumentFormat.TURTLE)
            assert [entry.outcome.to_dict() for entry in report.refusals] == []
        for step, one, other in steps:
            with suppress(JidomemError):
                items.append(STEPS[step](memory, items[one % len(items)], items[other % len(items)], one).iri)
        # also on top of the earlier export
        before = assert_is_restored(memory, Path(folder), [DocumentFormat.TURTLE])
        assert_is_restored(memory, Path(folder, "new"), [DocumentFormat.TURTLE], before=before)


def test_every_format_restores_a_decision_that_won_over_another_branch(clones, tmp_path):  # noqa: F811
    left, right, items = clones
    act(left, 100, "edit X", items)
    act(right, 101, "edit X", items)
    merge(left, right)
    with left.open(200) as memory:
        one, other, *_ = (row["decision"] for row in memory.reader.ask("decisions", project="p"))
        memory.writer.settle("p", one, "accept", other=other, reason="it won")
        assert_is_restored(memory, tmp_path)


def lifecycle(memory):
    """Return the memories of a project that are active, each with those that it replaced, and all that have ended."""
    view = present_rows(memory.reader, "p")
    items = {item for item, _, _ in memory.reader.index.triples(Stream("p").graph, None, jido("hasAssertionStatus"))}
    active = {item: {*view.objects(item, jido("supersedes"))} for item in items if view.is_current(item)}
    return active, {item for item in items if view.has_ended(item)}


def accept_all(memory):
    """Accept what a curator is shown as acceptable together, until nothing is left."""
    while waiting := acceptable(memory.reader, "p", queue(memory.reader, "p", memory.sources.now()))[""]:
        outcomes = memory.writer.settle_many("p", [Settlement(one.item, "accept") for one in waiting])
        if all(isinstance(each, JidomemError) for each in outcomes):
            break


@example(start=[(2, 0)], trusted=0, steps=[("accept", 0, 0), ("withdraw", 1, 0)])
@given(
    start=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=4),
    trusted=st.integers(0, 15),
    steps=st.lists(st.tuples(st.sampled_from([*STEPS]), st.integers(0, 15), st.integers(0, 15)), max_size=12),
)
@settings(max_examples=examples(10), deadline=None)
def test_accepting_all_that_an_untrusted_import_proposes_makes_nothing_active_that_had_ended(start, trusted, steps):
    with TemporaryDirectory() as folder:
        with jidomem.open(Path(folder, "original"), project="p") as memory:
            memory.writer.change_policy("p", [PolicyChange(agent=memory.writer.agent, grants="Curator")])
            items = []
            for number, each in enumerate(start):
                with suppress(JidomemError):
                    items.append(submit(memory, *each, is_trusted=bool(trusted >> number & 1)).iri)
            for step, one, other in steps:
                with suppress(JidomemError):
                    items.append(STEPS[step](memory, items[one % len(items)], items[other % len(items)], one).iri)
            (present, ended), data = lifecycle(memory), exported(memory, DocumentFormat.TURTLE)
        with jidomem.open(Path(folder, "copy"), project="p") as copy:
            report = import_document(copy.writer, copy.schema, "p", "memory.ttl", data)
            assert [entry.outcome.to_dict() for entry in report.refusals] == []
            copy.writer.change_policy("p", [PolicyChange(agent=copy.writer.agent, grants="Curator")])
            accept_all(copy)
            made = {item: {item} if item in ended else replaced for item, replaced in lifecycle(copy)[0].items()}
            assert [item for item in made.keys() - present.keys() if made[item] and made[item] <= ended] == []
