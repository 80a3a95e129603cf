"""Stage 3: conflicts between active memories, and each way to resolve them."""

import pytest
from conftest import decision, files, intent
from writing import codes, open_with, refusal, triples_of, values_of

import jidomem
from jidomem import MemoryUpdateIntent
from jidomem.rdf.terms import iri
from jidomem.rdf.vocab import family, jido
from jidomem.write import conflict
from jidomem.write.conflict import UniqueKey
from jidomem.write.snapshot import WriteSnapshot

TOPIC = {"topic": "index"}


def fact(**fields):
    return intent(**{"topic": "port", "about": ["server"], "summary": "The port is 80", **fields})


def rule(**fields):
    return intent(**{"type": "convention", "summary": "Use tabs", "convention_name": "Indent", **fields})


def task(**fields):
    return intent(**{"type": "task", "summary": "Write the docs", **fields})


#: kind of conflict -> the active memory, and the intent that conflicts with it.
CLASHES = {
    "duplicate": (task(), task(detailed_explanation="all of them")),
    "overlapping_decision": (decision(**TOPIC), decision(summary="Use Lucene", **TOPIC)),
    "convention_clash": (rule(), rule(summary="Use spaces")),
    "contradiction": (fact(), fact(summary="The port is 443")),
}
kinds = pytest.mark.parametrize("kind", CLASHES)


def conflicting_pair(memory, kind):
    """Return the IRI of an active memory, and an intent that conflicts with it."""
    first, second = CLASHES[kind]
    return memory.writer.submit_intent("p", first).iri, second


def is_active(memory, item):
    return memory.reader.get_memory("p", item)["status"] == "active"


@kinds
def test_a_conflict_is_refused_with_the_conflicting_memory_and_its_resolution(memory, kind):  # C058 C055 C057
    existing, new = conflicting_pair(memory, kind)
    before = files(memory.settings.root)
    error = refusal(memory.writer.submit_intent, "p", new)
    assert error.code == "conflict"
    (clash,) = error.conflicts
    assert (clash.iri, clash.kind, clash.summary) == (existing, kind, CLASHES[kind][0]["summary"])
    assert clash.resolve_with == {"supersedes": [existing]}
    assert existing in clash.why
    (reported,) = error.to_dict()["conflicts"]
    item = reported.pop("item")
    assert reported == clash.to_dict()
    assert (item["iri"], item["summary"], item["asserted_by"][-9:]) == (existing, clash.summary, "architect")
    assert [choice["choice"] for choice in error.to_dict()["choices"]][:2] == ["supersedes", "coexists_with"]
    assert files(memory.settings.root) == before


@kinds
def test_superseding_the_conflicting_memory_resolves_the_conflict(memory, kind):  # C059
    existing, new = conflicting_pair(memory, kind)
    receipt = memory.writer.submit_intent("p", new | {"supersedes": [existing]})
    assert (receipt.status, receipt.conflicts) == ("asserted", ())
    assert (is_active(memory, existing), is_active(memory, receipt.iri)) == (False, True)


@kinds
def test_invalidating_the_conflicting_memory_resolves_the_conflict(memory, kind):  # C059
    existing, new = conflicting_pair(memory, kind)
    receipt = memory.writer.submit_intent("p", new | {"invalidates": [existing]})
    assert receipt.status == "asserted"
    assert memory.reader.get_memory("p", existing)["status"] == "invalidated"


@kinds
def test_the_resolution_of_a_conflict_is_accepted_when_resubmitted(memory, kind):  # C056
    existing, new = conflicting_pair(memory, kind)
    (clash,) = refusal(memory.writer.submit_intent, "p", new).conflicts
    receipt = memory.writer.submit_intent("p", {**new, **clash.resolve_with})
    assert receipt.status == "asserted"
    assert values_of(memory, existing, "supersededBy") == [f"<{receipt.iri}>"]


@pytest.mark.parametrize(
    ("kind", "scope"),
    [
        ("overlapping_decision", {"about": ["reports"]}),
        ("convention_clash", {"convention_scope": "Global"}),
        ("convention_clash", {"about": ["docs/"]}),
        ("contradiction", {"about": ["the other server"]}),
    ],
)
def test_coexistence_with_a_distinct_scope_resolves_the_conflict(memory, kind, scope):  # C060
    existing, new = conflicting_pair(memory, kind)
    receipt = memory.writer.submit_intent("p", new | scope | {"coexists_with": [existing]})
    assert receipt.status == "asserted"
    assert values_of(memory, receipt.iri, "coexistsWith") == [f"<{existing}>"]
    assert is_active(memory, existing)


@kinds
def test_coexistence_without_a_distinct_scope_is_refused(memory, kind):  # C060
    existing, new = conflicting_pair(memory, kind)
    error = refusal(memory.writer.submit_intent, "p", new | {"coexists_with": [existing]})
    assert [clash.kind for clash in error.conflicts] == [kind]
    assert "distinct scope" in error.conflicts[0].why


def test_coexistence_needs_a_scope_without_some_places_of_the_conflicting_memory(memory):  # C060
    submit = memory.writer.submit_intent
    old = submit("p", decision(about=["src/app.py", "docs"], **TOPIC)).iri
    new = decision(summary="Use Lucene", coexists_with=[old], **TOPIC)

    (clash,) = refusal(submit, "p", new | {"about": ["docs", "src/app.py", "tests"]}).conflicts

    assert (clash.iri, "without all the places of the other" in clash.why) == (old, True)
    assert submit("p", new | {"about": ["docs", "tests"]}).status == "asserted"


def test_a_distinct_scope_without_coexistence_is_refused_for_a_decision(memory):  # C060
    memory.writer.submit_intent("p", decision(**TOPIC))
    other = decision(summary="Use Lucene", about=["reports"], **TOPIC)
    assert refusal(memory.writer.submit_intent, "p", other).code == "conflict"


@pytest.mark.parametrize("policy", ["refuse", "propose", "warn"])
@pytest.mark.parametrize("kind", ["overlapping_decision", "convention_clash", "contradiction", "duplicate"])
def test_the_policy_of_a_family_determines_the_outcome_of_a_conflict(tmp_path, kind, policy):  # C057 C058
    families = {"overlapping_decision": "decision", "convention_clash": "convention", "contradiction": "fact"}
    with open_with(tmp_path, f'[conflicts]\n{families.get(kind, "task")} = "{policy}"\n') as memory:
        old, new = conflicting_pair(memory, kind)
        if policy == "refuse":
            assert refusal(memory.writer.submit_intent, "p", new).code == "conflict"
            return
        receipt = memory.writer.submit_intent("p", new)
        assert receipt.status == {"propose": "proposed", "warn": "asserted"}[policy]
        assert [(clash.iri, clash.kind) for clash in receipt.conflicts] == [(old, kind)]
        assert values_of(memory, receipt.iri, "conflictsWith") == [f"<{old}>"]
        assert is_active(memory, old)


def test_a_conflict_policy_applies_to_its_own_family_only(tmp_path):  # C057
    with open_with(tmp_path, '[conflicts]\nconvention = "warn"\n') as memory:
        _, new = conflicting_pair(memory, "overlapping_decision")
        assert refusal(memory.writer.submit_intent, "p", new).code == "conflict"


def test_a_proposal_supersedes_nothing_and_conflicts_with_nothing(tmp_path):  # C061
    with open_with(tmp_path, '[conflicts]\ndecision = "propose"\n') as memory:
        active = memory.writer.submit_intent("p", decision(**TOPIC)).iri
        superseded = memory.writer.submit_intent("p", decision(summary="Shard it", topic="shards")).iri
        proposed = memory.writer.submit_intent("p", decision(summary="Use Lucene", supersedes=[superseded], **TOPIC))
        assert proposed.status == "proposed"
        assert values_of(memory, proposed.iri, "supersedes") == [f"<{superseded}>"]
        assert values_of(memory, superseded, "supersededBy") == []
        assert is_active(memory, superseded)
        repeated = memory.writer.submit_intent("p", decision(summary="Use grep", supersedes=[active], **TOPIC))
        assert (repeated.status, repeated.conflicts) == ("asserted", ())  # the proposal does not count


@pytest.mark.parametrize("policy", ["propose", "warn"])
def test_a_stale_supersession_is_refused_under_every_policy(tmp_path, policy):  # C058
    with open_with(tmp_path, f'[conflicts]\nfact = "{policy}"\n') as memory:
        old = memory.writer.submit_intent("p", intent()).iri
        new = memory.writer.submit_intent("p", intent(summary="new", supersedes=[old])).iri
        error = refusal(memory.writer.submit_intent, "p", intent(summary="newer", supersedes=[old]))
        (clash,) = error.conflicts
        assert (clash.kind, clash.resolve_with) == ("stale_supersession", {"supersedes": [new]})
        assert memory.writer.submit_intent("p", intent(summary="newer", **clash.resolve_with)).status == "asserted"


@pytest.mark.parametrize("policy", ["refuse", "propose", "warn"])
def test_a_unique_key_conflict_is_refused_under_every_policy(tmp_path, policy):
    (tmp_path / "config.toml").write_text(f'[conflicts]\nfact = "{policy}"\n')
    port = ["https://jido.ai/ontology#key", "port"]
    first_intent, second_intent = (intent(summary=f"it is {n}", extra_triples=[port]) for n in (8700, 8701))
    with jidomem.open(tmp_path) as first_memory, jidomem.open(tmp_path) as second_memory:
        first = second_memory.writer.submit_intent("p", first_intent, under=UniqueKey("port")).iri

        (clash,) = refusal(first_memory.writer.submit_intent, "p", second_intent, under=UniqueKey("port")).conflicts

        assert (clash.iri, clash.kind, clash.resolve_with) == (first, "same_key", {"supersedes": [first]})
        second = first_memory.writer.submit_intent(
            "p", {**second_intent, **clash.resolve_with}, under=UniqueKey("port")
        ).iri
        clashes = refusal(
            second_memory.writer.revise, "p", first, changes={"confidence": "low"}, reason="r", under=UniqueKey("port")
        ).conflicts
        assert {clash.iri: clash.kind for clash in clashes} == {first: "stale_supersession", second: "same_key"}
        assert all(clash.resolve_with == {"supersedes": [second]} for clash in clashes)
        known_key = UniqueKey("port", frozenset([second]))
        assert (
            second_memory.writer.submit_intent("p", intent(extra_triples=[port]), under=known_key).status == "asserted"
        )
        assert (
            second_memory.writer.submit_intent("p", intent(summary="none"), under=UniqueKey("other")).status
            == "asserted"
        )


def test_a_stale_supersession_names_the_last_successor(memory):  # C056
    chain = [memory.writer.submit_intent("p", intent()).iri]
    for n in range(3):
        proposal = intent(summary=f"version {n}", supersedes=[chain[-1]])
        chain.append(memory.writer.submit_intent("p", proposal).iri)
    (clash,) = refusal(memory.writer.submit_intent, "p", intent(summary="x", supersedes=chain[:1])).conflicts
    assert clash.resolve_with == {"supersedes": [chain[-1]]}


def test_an_invalidated_memory_is_superseded_by_its_marker_only(memory):  # C061
    old = memory.writer.submit_intent("p", intent()).iri
    memory.writer.invalidate("p", old, reason="wrong")
    (clash,) = refusal(memory.writer.submit_intent, "p", intent(summary="x", supersedes=[old])).conflicts
    assert clash.kind == "stale_supersession"
    marker = values_of(memory, old, "invalidatedBy")[0][1:-1]
    assert clash.resolve_with == {"supersedes": [marker]}


@kinds
@pytest.mark.parametrize("field", ["supersedes", "invalidates"])
def test_an_inactive_memory_causes_no_conflict(memory, kind, field):  # C061
    old, new = conflicting_pair(memory, kind)
    memory.writer.submit_intent("p", intent(type="discovery", summary="it was wrong", **{field: [old]}))
    receipt = memory.writer.submit_intent("p", new)
    assert (receipt.status, receipt.conflicts) == ("asserted", ())


def test_decisions_of_any_class_on_one_topic_conflict(memory):  # C052
    old = memory.writer.submit_intent("p", decision(type="implementation_decision", **TOPIC)).iri
    for kind in ("decision", "architectural_decision", "implementation_decision"):
        error = refusal(memory.writer.submit_intent, "p", decision(type=kind, summary="Use Lucene", **TOPIC))
        assert [(clash.iri, clash.kind) for clash in error.conflicts] == [(old, "overlapping_decision")]


def test_decisions_on_different_topics_do_not_conflict(writer):  # C052
    writer.submit_intent("p", decision(**TOPIC))
    assert writer.submit_intent("p", decision(summary="Use Lucene", topic="search")).status == "asserted"


def test_decisions_about_the_same_file_without_a_topic_are_accepted_with_a_warning(memory):  # C060
    old = memory.writer.submit_intent("p", decision(about=["src/a.py"])).iri
    receipt = memory.writer.submit_intent("p", decision(summary="Use Lucene", about=["src/a.py"]))
    assert (receipt.status, receipt.conflicts) == ("asserted", ())
    command = f"jidomem review supersede {receipt.iri} --against {old}"
    assert any(old in warning and command in warning for warning in receipt.warnings)


@pytest.mark.parametrize(
    "fields",
    [
        {"convention_name": "Indent"},
        {"convention_name": "Layout", "topic": "indentation"},
        {"type": "coding_standard", "convention_name": " INDENT "},
    ],
)
def test_conventions_of_one_name_or_topic_at_one_scope_conflict(memory, fields):  # C053
    old = memory.writer.submit_intent("p", rule(topic="Indentation")).iri
    error = refusal(memory.writer.submit_intent, "p", rule(summary="Use spaces") | fields)
    assert [(clash.iri, clash.kind) for clash in error.conflicts] == [(old, "convention_clash")]


@pytest.mark.parametrize("fields", [{"convention_scope": "AgentScope"}, {"convention_name": "Line length"}])
def test_conventions_of_different_scope_or_name_do_not_conflict(writer, fields):  # C053
    writer.submit_intent("p", rule())
    assert writer.submit_intent("p", rule(summary="Use spaces") | fields).status == "asserted"


@pytest.mark.parametrize("fields", [{"about": ["lib"]}, {"summary": "Use spaces", "about": ["lib", "docs"]}])
def test_conventions_of_one_name_in_disjoint_folders_do_not_conflict(memory, fields):  # C053
    memory.writer.submit_intent("p", rule(about=["src"]))

    assert memory.writer.submit_intent("p", rule(**fields)).status == "asserted"
    assert memory.reader.ask("conflicts", project="p") == []


@pytest.mark.parametrize("about", [[], ["."], ["**/*.py"], ["src/"], ["src/a.py"], ["src/a.py:4"], ["lib", "./src"]])
def test_conventions_of_one_name_in_overlapping_places_conflict(memory, about):  # C053
    old = memory.writer.submit_intent("p", rule(about=["src"])).iri
    error = refusal(memory.writer.submit_intent, "p", rule(summary="Use spaces", about=about))

    assert [(clash.iri, clash.kind) for clash in error.conflicts] == [(old, "convention_clash")]


def test_a_repeated_convention_in_a_subfolder_conflicts_only_at_another_enforcement_level(memory):  # C053
    project_wide = memory.writer.submit_intent("p", rule()).iri
    narrower = memory.writer.submit_intent("p", rule(about=["src"])).iri
    error = refusal(memory.writer.submit_intent, "p", rule(about=["src/web"], enforcement_level="Strict"))

    assert {clash.iri for clash in error.conflicts} == {project_wide, narrower}
    assert {clash.kind for clash in error.conflicts} == {"convention_clash"}


def test_proposed_conventions_of_two_folders_are_both_accepted(tmp_path):
    with open_with(tmp_path, '[conflicts]\nconvention = "propose"\n') as memory:
        proposed = [
            memory.writer.submit_intent("p", rule(about=[folder]), propose=True).iri for folder in ("src", "lib")
        ]
        outcomes = [memory.writer.settle("p", item, "accept") for item in proposed]

    assert [receipt.status for receipt in outcomes] == ["asserted", "asserted"]


def test_the_conflicts_query_lists_conventions_of_overlapping_folders_only(tmp_path):
    with open_with(tmp_path, '[conflicts]\nconvention = "warn"\n') as memory:
        first = memory.writer.submit_intent("p", rule(about=["src"])).iri
        memory.writer.submit_intent("p", rule(about=["lib"]))
        other = memory.writer.submit_intent("p", rule(summary="Use spaces", about=["src/web"])).iri
        rows = memory.reader.ask("conflicts", project="p")

    assert [{row["a"], row["b"]} for row in rows] == [{first, other}]


@pytest.mark.parametrize("fields", [{"topic": "host"}, {"about": ["client"]}, {"topic": None, "about": []}])
def test_facts_on_different_topic_or_about_do_not_contradict(writer, fields):  # C054
    writer.submit_intent("p", fact())
    assert writer.submit_intent("p", fact(summary="It is 443", **fields)).status == "asserted"


def test_about_is_compared_as_a_set_without_case(memory):  # C060
    memory.writer.submit_intent("p", fact(about=["a", "b"]))
    error = refusal(memory.writer.submit_intent, "p", fact(summary="It is 443", about=["B", "a", "b"]))
    assert error.code == "conflict"


def test_a_second_value_of_a_functional_property_is_a_contradiction(memory):  # C054
    file_iri = "https://example.org/files/a"
    type_triple = [file_iri, "rdf:type", {"@id": "jido:SourceFile"}]
    old = memory.writer.submit_intent(
        "p", intent(extra_triples=[type_triple, [file_iri, "jido:filePath", "src/a.py"]])
    ).iri
    changed = intent(summary="it moved", extra_triples=[[file_iri, "jido:filePath", "lib/a.py"]])
    (clash,) = refusal(memory.writer.submit_intent, "p", changed).conflicts
    assert (clash.iri, clash.kind) == (old, "contradiction")
    repeated = intent(summary="it is still there", extra_triples=[[file_iri, "jido:filePath", "src/a.py"]])
    assert memory.writer.submit_intent("p", repeated).status == "asserted"
    second = memory.writer.submit_intent("p", repeated | {"summary": "so said a second"}).iri
    (first, *others) = refusal(memory.writer.submit_intent, "p", changed).conflicts
    assert (first.iri, len(others)) == (old, 2)
    resolved = changed | {"invalidates": [old, others[0].iri, others[1].iri]}
    assert second in resolved["invalidates"]
    assert memory.writer.submit_intent("p", resolved).status == "asserted"


@pytest.mark.parametrize(
    ("stored_text", "new_text"),
    [
        ("Use  Oxigraph", "use oxigraph"),
        ("Café", "CAFE\u0301"),
        ("a\nb", " a b "),
        ("Straße", "STRASSE"),
    ],
)
def test_summaries_are_compared_without_case_unicode_form_and_white_space(memory, stored_text, new_text):  # C060
    old = memory.writer.submit_intent("p", task(summary=stored_text)).iri
    error = refusal(memory.writer.submit_intent, "p", task(summary=new_text, detailed_explanation="x"))
    assert [(clash.iri, clash.kind) for clash in error.conflicts] == [(old, "duplicate")]


def test_subclasses_share_the_conflict_keys_of_their_family(memory):  # C060
    kinds = ("decision", "architectural_decision", "fact")
    keys = {kind: set(conflict.keys(_normal(type=kind, topic="t"))) for kind in kinds}
    assert any(key.startswith("overlapping") for key in keys["decision"] & keys["architectural_decision"])
    assert not keys["decision"] & keys["fact"]
    assert family("bug") == family("error") == "error"
    assert family("coding_standard") == family("convention") == "convention"


def test_a_memory_of_another_kind_is_no_duplicate(writer):  # C060
    writer.submit_intent("p", task())
    assert writer.submit_intent("p", intent(type="risk", summary="Write the docs")).status == "asserted"


def test_an_identical_memory_is_deduplicated_without_a_write(memory):  # C055
    first = memory.writer.submit_intent("p", decision(evidence=["a", "b"], **TOPIC))
    before = files(memory.settings.root)
    repeated = decision(asserted_by="bob", asserted_in="s-9", summary="USE  oxigraph", evidence=["b", "a"], **TOPIC)
    receipt = memory.writer.submit_intent("p", repeated)
    assert (receipt.status, receipt.iri, receipt.commit) == ("deduplicated", first.iri, first.commit)
    assert receipt.version == first.version
    assert files(memory.settings.root) == before


def test_extra_triples_about_the_memory_count_as_its_content(memory):  # C060
    extra = [["jido:errorCode", "E1"]]
    first = memory.writer.submit_intent("p", intent(type="error", extra_triples=extra)).iri
    repeated = intent(type="error", extra_triples=[["this", "jido:errorCode", "E1"]])
    assert memory.writer.submit_intent("p", repeated).iri == first
    different = intent(type="error", extra_triples=[["jido:errorCode", "E2"]])
    assert [clash.kind for clash in refusal(memory.writer.submit_intent, "p", different).conflicts] == ["duplicate"]


def test_an_identical_memory_after_an_invalidation_is_asserted(memory):  # C061
    old = memory.writer.submit_intent("p", intent()).iri
    memory.writer.invalidate("p", old, reason="wrong")
    receipt = memory.writer.submit_intent("p", intent())
    assert receipt.status == "asserted"
    assert receipt.iri != old


def test_an_identical_memory_that_supersedes_the_stored_one_is_asserted(memory):  # C059
    old = memory.writer.submit_intent("p", intent()).iri
    receipt = memory.writer.submit_intent("p", intent(supersedes=[old]))
    assert receipt.status == "asserted"
    assert values_of(memory, old, "supersededBy") == [f"<{receipt.iri}>"]


def test_a_refusal_lists_every_conflict(memory):  # C055
    topic = memory.writer.submit_intent("p", rule(convention_name="A", topic="t", summary="one")).iri
    name_match = memory.writer.submit_intent("p", rule(convention_name="B", summary="two")).iri
    error = refusal(memory.writer.submit_intent, "p", rule(convention_name="B", topic="t", summary="three"))
    assert {clash.iri for clash in error.conflicts} == {topic, name_match}
    resolved = rule(convention_name="B", topic="t", summary="three", supersedes=[topic, name_match])
    assert memory.writer.submit_intent("p", resolved).status == "asserted"


def test_one_resolution_settles_all_conflicts_of_a_memory(memory):  # C056
    for name in ("one", "two"):
        memory.writer.submit_intent("p", rule(convention_name=name, topic=f"t {name}", summary=name))
    new = rule(convention_name="one", topic="t two", summary="three")
    new |= refusal(memory.writer.submit_intent, "p", new).conflicts[0].resolve_with
    assert memory.writer.submit_intent("p", new).status == "asserted"


def test_a_conflict_has_no_automatic_repair(memory):  # C058
    _, new = conflicting_pair(memory, "contradiction")
    error = refusal(memory.writer.submit_intent, "p", new)
    assert (codes(error), getattr(error, "fixed_intent", None)) == ([], None)


@pytest.mark.parametrize(
    ("kind", "open_status", "final_status"),
    [("task", "Planned", "Completed"), ("task", "InProgress", "Abandoned"), ("error", "Reported", "Resolved")],
)
def test_a_finished_task_or_error_does_not_conflict_with_its_recurrence(memory, kind, open_status, final_status):
    task = intent(type=kind, summary="Call Hooli", status=open_status)
    first = memory.writer.submit_intent("p", task).iri
    assert codes(refusal(memory.writer.submit_intent, "p", {**task, "confidence": "low"})) == []
    ended = memory.writer.revise("p", first, changes={"status": final_status}, reason="done").iri

    second = memory.writer.submit_intent("p", task)
    assert (second.status, is_active(memory, ended)) == ("asserted", True)
    second_ended = memory.writer.revise("p", second.iri, changes={"status": final_status}, reason="done").iri

    assert [is_active(memory, each) for each in (ended, second_ended)] == [True, True]
    assert memory.reader.ask("conflicts", project="p") == []
    repeated = memory.writer.submit_intent("p", {**task, "status": final_status})
    assert repeated.status == "deduplicated"


def test_the_first_choice_merges_the_evidence_of_a_repeated_memory(memory):
    claim = {"topic": "seats", "summary": "ACME has 40 seats"}
    first = memory.writer.submit_intent("p", intent(**claim, evidence=["the contract"], asserted_by="ann")).iri
    repeated = intent(**claim, evidence=["the invoice"], confidence="medium", asserted_by="ben")

    error = refusal(memory.writer.submit_intent, "p", repeated)
    choice = error.choices[0]

    assert choice.name == "confirm"
    merged_evidence = ["the contract", "the invoice"]
    assert choice.fields == {"supersedes": [first], "evidence": merged_evidence, "confidence": "high"}
    confirmed = memory.writer.submit_intent("p", {**repeated, **choice.fields})
    properties = memory.reader.get_memory("p", confirmed.iri)["properties"]
    assert (properties["assertedBy"], properties["settledBy"]) == (
        ["https://jido.ai/agents/ann"],
        ["https://jido.ai/agents/ben"],
    )
    assert sorted(memory.writer.restated("p", confirmed.iri)["evidence"]) == merged_evidence


def test_a_withdrawal_stores_conflict_keys_of_judgements_only(memory):  # C061
    old = memory.writer.submit_intent("p", intent()).iri
    marker = memory.writer.invalidate("p", old, reason="wrong").iri
    assert {key.strip('"').partition(":")[0] for key in values_of(memory, marker, "conflictKey")} == {
        "judged",
        "judged-as",
    }
    assert {o for s, p, o in triples_of(memory) if s == f"<{marker}>" and p.endswith("#invalidates>")} == {f"<{old}>"}


def _normal(**fields):
    return MemoryUpdateIntent(**{**intent(convention_scope=None), "iri": "urn:x", **fields})


@pytest.mark.parametrize("fields", [{"topic": "store"}, {"extra_triples": [["jido:topic", "store"]]}])
def test_a_topic_given_as_a_field_or_an_extra_triple_conflicts(memory, fields):  # C052 C060
    memory.writer.submit_intent("p", decision(extra_triples=[["jido:topic", "Store"]]))

    error = refusal(memory.writer.submit_intent, "p", decision(summary="Use Jena", **fields))

    assert [clash.kind for clash in error.conflicts] == ["overlapping_decision"]


def test_a_convention_scope_given_as_an_extra_triple_conflicts(memory):  # C053
    first = intent(type="convention", summary="a", convention_name="n")
    second = intent(type="convention", summary="b", convention_name="n", convention_scope="GlobalScope")
    memory.writer.submit_intent("p", first | {"extra_triples": [["jido:hasConventionScope", "jido:GlobalScope"]]})

    error = refusal(memory.writer.submit_intent, "p", second)

    assert [clash.kind for clash in error.conflicts] == ["convention_clash"]


def test_one_resubmission_resolves_conflicts_of_several_kinds(memory):  # C057 C059
    submit = memory.writer.submit_intent
    old = submit("p", decision(topic="store")).iri
    new = submit("p", decision(topic="store", summary="Use a file", supersedes=[old])).iri
    other = submit("p", decision(topic="port", summary="Use 8700")).iri
    third = decision(topic="port", summary="Use Jena", supersedes=[old])

    error = refusal(submit, "p", third)

    assert {clash.kind for clash in error.conflicts} == {"stale_supersession", "overlapping_decision"}
    assert {tuple(clash.resolve_with["supersedes"]) for clash in error.conflicts} == {(new, other)}
    assert submit("p", third | error.conflicts[0].resolve_with).status == "asserted"


def test_a_second_invalidation_is_refused_with_an_empty_resolution(memory):  # C058
    item = memory.writer.submit_intent("p", intent()).iri
    memory.writer.invalidate("p", item, reason="wrong")

    proposal = intent(summary="no", invalidates=[item])
    error = refusal(memory.writer.submit_intent, "p", proposal)

    (clash,) = error.conflicts
    assert clash.resolve_with == {"invalidates": []}
    assert memory.writer.submit_intent("p", proposal | clash.resolve_with).status == "asserted"
    (clash,) = refusal(memory.writer.invalidate, "p", item, reason="wrong again").conflicts
    assert clash.resolve_with == {}  # a withdrawal of nothing is none


#: Stored conflict keys are compared with those of later versions: the digests may not change. Those of topics of
#: several words changed after 0.1.0: jidomem/records/active.py gives earlier commits the new ones.
STORED_KEYS = {
    "fact": (
        intent(
            topic=" The  Ä ",
            about=["B", "a", "https://example.org/A"],
            extra_triples=[["urn:x:p", {"@value": "ä", "@language": "en"}], ["urn:x:p", 5]],
            supersedes=[],
            reason="because",
            idempotency_key="k",
        ),
        [
            "contradiction:6e8b77c433ee3b4e7e6c9af2ec295b8e",
            "duplicate:7bdd959a3c919d79c2b9fb66ae8654c2",
            "identical:20f47ceeea86af4d1696339f48b74b65",
        ],
    ),
    "convention": (
        rule(topic="white space", convention_scope="GlobalScope"),
        [
            "convention_clash:8536cbfdb7b997b371e7b33d826f02bd",
            "convention_clash:924c1528fdf1a23b979b44120304dcca",
            "duplicate:0d2102c0b07aa5d7c0b81514b420f24c",
            "identical:522091775fa4445789c1501a9711ea12",
        ],
    ),
    "decision by topic": (
        decision(topic="store", about=["src/"], alternatives=["b", "a"], confidence=0.85),
        [
            "duplicate:5ece167b80163ccc6d393bfda2033e97",
            "identical:b2fab5f2c89168f002c1171c1b66ae6d",
            "overlapping_decision:49708f1592abcde9f0ffe058d309c02b",
        ],
    ),
    "decision by file": (
        decision(about=["src/"], evidence=["b", "a"]),
        [
            "duplicate:7064ca797ace8ed61f6b5307a66ca500",
            "identical:c810c3966d216a35d6a8ec51c6eba1f4",
            "similar_decision:148460fb1cc9a085ab19b74b882a6a38",
        ],
    ),
    "task": (
        task(status="Blocked", assigned_to="bob"),
        ["duplicate:378ef33ca33efc1c70197afc52e0369c", "identical:ce6805c4ad74fa93256e3abb20688a03"],
    ),
    "another thing": (
        intent(
            extra_triples=[
                ["https://example.org/a", "rdf:type", {"@id": "jido:SourceFile"}],
                ["https://example.org/a", "jido:filePath", "a.py"],
            ]
        ),
        [
            "duplicate:db769356f9cc1dbc6f8f1801016a7173",
            "identical:4df0b13f5ef5352584d3430dc107195d",
            "value-is:c005ef0d514aa3e05962deb5e33393fe",
            "value:76d47379b2fca71c90fe13bad21d3eec",
        ],
    ),
}


@pytest.mark.parametrize("name", STORED_KEYS)
def test_conflict_keys_are_stable_across_versions(memory, name):
    proposal, keys = STORED_KEYS[name]
    item = memory.writer.submit_intent("p", proposal).iri
    assert [key.strip('"') for key in values_of(memory, item, "conflictKey")] == keys


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("duplicate", "{old} already says 'Write the docs'; detailed_explanation differs"),
        ("overlapping_decision", "{old} is active on 'index': Use Oxigraph"),
        ("convention_clash", "{old} is active under that name or topic at the same scope: Use tabs"),
        ("contradiction", "{old} says something else on the same matter: The port is 80"),
    ],
)
def test_a_conflict_explains_its_reason(memory, kind, why):
    old, new = conflicting_pair(memory, kind)
    (clash,) = refusal(memory.writer.submit_intent, "p", new).conflicts
    assert clash.why == why.format(old=old)
    (clash,) = refusal(memory.writer.submit_intent, "p", new | {"coexists_with": [old]}).conflicts
    needed = "coexists_with needs a distinct scope: name in about (or convention_scope) where the new one applies"
    assert clash.why == f"{why.format(old=old)}; {needed}"


@pytest.mark.parametrize(("field", "outcome"), [("supersedes", "superseded"), ("invalidates", "invalidated")])
def test_a_stale_supersession_names_the_memory_that_ended_the_old_one(memory, field, outcome):
    old = memory.writer.submit_intent("p", intent()).iri
    new = memory.writer.submit_intent("p", intent(summary="new", **{field: [old]})).iri
    (clash,) = refusal(memory.writer.submit_intent, "p", intent(summary="x", supersedes=[old])).conflicts
    assert (clash.iri, clash.kind, clash.summary) == (old, "stale_supersession", intent()["summary"])
    assert clash.why == f"{old} is already {outcome} by {new}"
    assert clash.resolve_with == {"supersedes": [new]}


def test_the_resolution_omits_an_ended_memory_without_an_active_successor(memory):
    old = memory.writer.submit_intent("p", intent()).iri
    new = memory.writer.submit_intent("p", intent(summary="new", supersedes=[old])).iri
    memory.writer.invalidate("p", new, reason="wrong")
    other = memory.writer.submit_intent("p", intent(summary="other")).iri
    proposal = intent(summary="x", supersedes=[old, other])
    (clash,) = refusal(memory.writer.submit_intent, "p", proposal).conflicts
    assert clash.resolve_with == {"supersedes": [other]}


@pytest.mark.parametrize("field", ["supersedes", "invalidates"])
def test_a_resubmission_without_ended_memories_is_asserted(memory, field):  # C057
    submit = memory.writer.submit_intent
    old = submit("p", intent()).iri
    new = submit("p", intent(summary="new", supersedes=[old])).iri
    memory.writer.invalidate("p", new, reason="wrong")
    proposal = intent(summary="x", **{field: [old]})

    (clash,) = refusal(submit, "p", proposal).conflicts

    assert clash.resolve_with == {field: []}
    assert submit("p", proposal | clash.resolve_with).status == "asserted"


def test_a_stale_invalidation_names_the_successor(memory):
    old = memory.writer.submit_intent("p", intent()).iri
    new = memory.writer.submit_intent("p", intent(summary="new", supersedes=[old])).iri
    (clash,) = refusal(memory.writer.submit_intent, "p", intent(summary="x", invalidates=[old])).conflicts
    assert clash.resolve_with == {"invalidates": [new]}


def test_a_repeated_proposal_is_deduplicated(memory):
    old = memory.writer.submit_intent("p", intent(summary="old")).iri
    proposal = intent(supersedes=[old])
    submit = memory.writer.submit_intent
    first = submit("p", proposal, propose=True)
    repeated = submit("p", proposal, propose=True)
    assert (first.status, repeated.status, repeated.iri) == ("proposed", "deduplicated", first.iri)
    for other in (intent(), intent(invalidates=[old]), proposal | {"asserted_by": "bob"}):
        assert submit("p", other, propose=True).status == "proposed"
        assert submit("p", other, propose=True).status == "deduplicated"
    marker = intent(type="deleted_marker", summary="wrong", invalidates=[old])
    assert [submit("p", marker, propose=True).status for _ in range(2)] == ["proposed", "deduplicated"]
    memory.writer.invalidate("p", first.iri, reason="no")
    assert submit("p", proposal, propose=True).status == "proposed"


def test_a_repeated_proposal_that_coexists_is_stored_as_a_separate_proposal(memory):
    old = memory.writer.submit_intent("p", decision(topic="store")).iri
    proposal = decision(summary="x", topic="store", about=["src/a.py"])
    opposed = memory.writer.submit_intent("p", proposal, propose=True)
    coexisting = memory.writer.submit_intent("p", proposal | {"coexists_with": [old]}, propose=True)
    assert [len(opposed.conflicts), len(coexisting.conflicts)] == [1, 0]
    assert memory.writer.submit_intent("p", proposal | {"coexists_with": [old]}, propose=True).iri == coexisting.iri
    assert memory.writer.settle("p", coexisting.iri, "accept").status == "asserted"


def decision_warnings(receipt):
    """Return the warnings of *receipt* about active decisions on the same place."""
    return [warning for warning in receipt.warnings if "active decision" in warning]


@pytest.mark.parametrize("topics", [{}, {"topic": "use-mysql"}, {"topic": "parcels"}])
def test_a_decision_warns_of_an_active_decision_about_the_same_file(memory, topics):
    submit = memory.writer.submit_intent
    old = submit("p", decision(about=["src/a.py", "docs/1.md"], topic="use-mysql")).iri
    proposal = decision(
        summary="Use Oxigraph for all", about=["src/b.py", "src/a.py"], **({"topic": "x"} if topics else {})
    )

    receipt = submit("p", proposal)

    assert receipt.status == "asserted"
    assert decision_warnings(receipt) == [
        f"{old} is an active decision about src/a.py too: Use Oxigraph; if yours takes its place:"
        f' jidomem review supersede {receipt.iri} --against {old} --reason "SAY WHY"'
        "; if both hold, there is nothing to do"
    ]
    assert memory.writer.settle("p", receipt.iri, "supersede", other=old, reason="r").status == "asserted"
    assert not is_active(memory, old)


@pytest.mark.parametrize(
    "fields",
    [
        {"supersedes": ["OLD"]},
        {"coexists_with": ["OLD"]},
        {"about": ["src/b.py"]},
        {"status": "rejected"},
        {"type": "fact"},
        {"valid_until": "2020-01-01"},
    ],
)
def test_a_decision_does_not_warn_of_resolved_or_unrelated_memories(memory, fields):
    submit = memory.writer.submit_intent
    old = submit("p", decision(about=["src/a.py"], valid_from="2021-01-01")).iri
    fields = {name: [old] if value == ["OLD"] else value for name, value in fields.items()}

    assert (
        decision_warnings(
            submit("p", decision(**{"summary": "Use Oxigraph x", "about": ["src/a.py"], "topic": "t"} | fields))
        )
        == []
    )


def test_a_successor_warns_only_of_decisions_about_places_new_to_it(memory):
    submit = memory.writer.submit_intent
    submit("p", decision(about=["src/a.py", "src/b.py"]))
    first = submit("p", decision(summary="Use Oxigraph x", about=["src/a.py"])).iri
    second = submit("p", decision(summary="Use Oxigraph y", about=["src/a.py"], supersedes=[first]))
    proposal = decision(summary="Use Oxigraph z", about=["src/a.py", "src/b.py"], supersedes=[second.iri])
    third = submit("p", proposal)

    assert decision_warnings(second) == []
    assert [("about src/b.py too" in warning) for warning in decision_warnings(third)] == [True]


def test_a_decision_warning_names_the_newest_three_decisions_and_counts_the_others(memory):
    submit = memory.writer.submit_intent
    items = [submit("p", decision(summary=f"Use Jena {number}", about=["src/a.py"])).iri for number in range(5)]

    *warnings, rest = decision_warnings(submit("p", decision(summary="Use Jena", about=["src/a.py"])))

    assert [warning.split()[0] for warning in warnings] == items[:1:-1]
    assert rest == "2 more active decisions about the same files or things: jidomem governing FILE"


def test_a_decision_warns_of_an_older_decision_about_a_file_with_many_later_memories(memory):
    submit = memory.writer.submit_intent
    old = submit("p", decision(about=["src/a.py"])).iri
    later = [decision(type="fact", summary=f"n{number}", about=["src/a.py"], rationale=None) for number in range(60)]
    assert {receipt.status for receipt in memory.writer.submit_many("p", later)} == {"asserted"}

    (warning,) = decision_warnings(submit("p", decision(summary="Oxigraph", about=["src/a.py"])))

    assert warning.startswith(old)


def test_dissimilar_decisions_about_one_file_cause_no_warning(memory):
    submit = memory.writer.submit_intent
    kinds = ["pure", "slow", "tested", "private", "deprecated", "inlined"]
    texts = [f"Function {chr(65 + number)} of the store is {kind}." for number, kind in enumerate(kinds)]

    receipts = [submit("p", decision(summary=text, topic=text, about=["internal/store.go"])) for text in texts]

    assert [decision_warnings(receipt) for receipt in receipts] == [[]] * 6


def test_a_successor_coexists_only_where_it_replaces_a_memory_that_coexists(memory):
    submit = memory.writer.submit_intent
    first = submit("p", decision(**TOPIC)).iri
    second = submit("p", decision(summary="Use Lucene", about=["reports"], coexists_with=[first], **TOPIC)).iri
    newer = decision(summary="Use Jena", supersedes=[first], coexists_with=[second], **TOPIC)
    assert submit("p", newer).status == "asserted"
    unrelated = decision(summary="Use grep", coexists_with=[second], about=["reports"], **TOPIC)
    assert {clash.iri: "distinct scope" in clash.why for clash in refusal(submit, "p", unrelated).conflicts}[second]


def test_iris_are_compared_with_case_and_texts_without(memory):
    first = memory.writer.submit_intent("p", intent(evidence=["urn:x:A", "A log"])).iri
    assert memory.writer.submit_intent("p", intent(evidence=["a LOG", "urn:x:A"])).iri == first
    error = refusal(memory.writer.submit_intent, "p", intent(evidence=["urn:x:a", "A log"]))
    assert [clash.kind for clash in error.conflicts] == ["duplicate"]


def succeeded(*pairs):
    """Return a snapshot in which the second of each pair supersedes the first; all other memories are asserted."""
    snapshot, superseded = WriteSnapshot(lambda *pattern: []), {old for old, _ in pairs}
    snapshot.add([(iri(f"urn:x:{old}"), jido("supersededBy"), iri(f"urn:x:{new}")) for old, new in pairs])
    names = {name for pair in pairs for name in pair}
    snapshot.add([(iri(f"urn:x:{name}"), jido("hasAssertionStatus"), jido("Asserted")) for name in names - superseded])
    return snapshot


def test_a_supersession_chain_ends_with_an_active_memory_and_a_cycle_with_none():
    for pairs, end in ((("ab", "bc"), "<urn:x:c>"), (("ab", "bc", "cb"), None), (("aa",), None), ((), None)):
        assert conflict.end_of_chain(iri("urn:x:a"), succeeded(*pairs)) == end


def test_memories_with_a_common_predecessor_are_of_one_origin():
    snapshot = succeeded("ab", "bc", "ad", "ef", "gh", "hg")
    same_origin = {other: conflict.of_one_origin(iri("urn:x:c"), iri(f"urn:x:{other}"), snapshot) for other in "abdefg"}
    assert same_origin == {"a": False, "b": True, "d": True, "e": False, "f": False, "g": False}


#: Two windows of validity, and whether they meet.
WINDOWS = [
    ({"valid_until": "2020-01-01"}, {}, False),  # it is over
    ({"valid_until": "2027-01-01"}, {}, True),
    ({"valid_until": "2027-01-01"}, {"valid_from": "2027-01-01"}, False),
    ({"valid_from": "2028-01-01"}, {"valid_until": "2027-01-01"}, False),
    ({"valid_from": "2028-01-01"}, {}, True),
    ({"valid_until": "2020-01-01"}, {"valid_from": "2019-01-01"}, False),  # the first was over when it was dated
    ({"valid_until": "2020-01-01"}, {"timestamp": "2019-01-01"}, False),
    ({"valid_until": "2020-01-01", "timestamp": "2019-01-01"}, {"valid_from": "2018-01-01"}, True),
]
orders = pytest.mark.parametrize("is_reversed", [False, True])


@orders
@pytest.mark.parametrize(("first", "second", "do_meet"), WINDOWS)
def test_memories_with_disjoint_validity_do_not_conflict(memory, first, second, do_meet, is_reversed):
    first, second = (second, first) if is_reversed else (first, second)
    memory.writer.submit_intent("p", intent(topic="store", **first))
    proposal = intent(summary="another", topic="store", **second)
    if do_meet:
        assert refusal(memory.writer.submit_intent, "p", proposal).code == "conflict"
    else:
        assert memory.writer.submit_intent("p", proposal).status == "asserted"


@orders
def test_the_conflicts_query_omits_memories_with_disjoint_validity(tmp_path, is_reversed):
    pairs = {}
    with open_with(tmp_path, '[conflicts]\nfact = "warn"\n') as memory:
        for number, (*windows, do_meet) in enumerate(WINDOWS):
            first, second = windows[::-1] if is_reversed else windows
            one = memory.writer.submit_intent("p", intent(topic=f"store {number}", **first))
            other = memory.writer.submit_intent("p", intent(summary="another", topic=f"store {number}", **second))
            pairs[frozenset((one.iri, other.iri))] = do_meet
        listed = memory.reader.ask("conflicts", project="p")
        report = memory.check("p")

    meeting = {pair for pair, do_meet in pairs.items() if do_meet}
    assert {frozenset((row["a"], row["b"])): row["kind"] for row in listed} == dict.fromkeys(meeting, "contradiction")
    assert len(listed) == len(meeting)
    reported = {problem.item for problem in report.problems}
    assert {pair for pair in pairs if pair & reported} == meeting
    assert reported <= frozenset().union(*meeting)


def test_a_fact_on_the_same_topic_with_another_overlapping_about_is_accepted_with_a_warning(memory):
    (other, client) = [memory.writer.submit_intent("p", proposal).iri for proposal in (
        fact(), fact(about=["client"], summary="The port is 99"))]  # fmt: skip

    general, overlapping, elsewhere, disjoint = [
        memory.writer.submit_intent("p", fact(summary="The port is 81", **fields))
        for fields in ({"about": []}, {"about": ["server", "proxy"]}, {"topic": "host"}, {"about": ["tests"]})
    ]

    assert [other in "".join(receipt.warnings) for receipt in (general, overlapping, elsewhere, disjoint)] == [
        True,
        True,
        False,
        False,
    ]
    assert client in "".join(general.warnings)
    assert "compared with the same topic and the same about" in general.warnings[0]


def test_a_coexistence_choice_names_no_superseded_memory(memory):
    superseded = memory.writer.submit_intent("p", decision(summary="Use one", topic="index")).iri
    current = memory.writer.submit_intent("p", decision(summary="Use two", topic="index", supersedes=[superseded])).iri

    with pytest.raises(jidomem.Conflict) as error:
        memory.writer.submit_intent("p", decision(summary="Use three", topic="index", coexists_with=[superseded]))

    fields = [choice.fields for choice in error.value.choices if choice.name == "coexists_with"]
    assert fields == [{"coexists_with": [current]}]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"rationale": "other"}, "rationale differs"),
        ({"confidence": "low", "evidence": []}, "confidence and evidence differ"),
        ({"extra_triples": [["https://example.org/p", "v"]]}, "another field differs"),
    ],
)
def test_a_duplicate_names_the_fields_that_differ(memory, change, expected):
    proposal = decision(summary="Use Jena", topic="store", rationale="known", evidence=["seen"], confidence="high")
    memory.writer.submit_intent("p", proposal)
    (clash,) = refusal(memory.writer.submit_intent, "p", proposal | change).conflicts
    assert (clash.kind, clash.why.partition("; ")[2]) == ("duplicate", expected)


def test_a_conflict_hints_that_nothing_need_be_submitted(memory):
    memory.writer.submit_intent("p", decision(summary="Use Jena", topic="store"))
    refused = refusal(memory.writer.submit_intent, "p", decision(summary="Use SQLite", topic="store"))
    assert refused.hint.endswith("if yours is on another matter: both stay active; or submit nothing: the other stays")


@pytest.mark.parametrize("shared", ["topic", "convention_name"])
def test_a_convention_on_another_matter_is_accepted_with_the_fields_of_the_choice(memory, shared):
    tabs = intent(type="convention", summary="Never use tabs", **{shared: "tabs"})
    memory.writer.submit_intent("p", tabs)
    other = tabs | {"summary": "Always use tabs"}
    refused = refusal(memory.writer.submit_intent, "p", other)

    (choice,) = (choice for choice in refused.choices if choice.name == "convention_name")

    assert memory.writer.submit_intent("p", other | dict.fromkeys(choice.needs, "width of tabs")).status == "asserted"


def test_an_oversized_text_is_not_reported_as_missing_too(memory):
    refused = refusal(memory.writer.submit_intent, "p", intent(summary="x" * 300_000, bogus=1))
    assert [fault.code for fault in refused.violations] == ["unknown_field", "payload_too_large"]
    assert refused.violations[1].field == "summary"


def test_a_list_for_an_unknown_field_is_not_renamed_to_a_text_field(memory):
    (fault,) = refusal(memory.writer.submit_intent, "p", {**intent(), "tags": ["a"]}).violations
    assert (fault.field, fault.nearest, fault.hint) == (
        "tags",
        None,
        "leave it out, give `topic`, or give an own property, whose key is an IRI: https://example.org/tag",
    )


def test_a_memory_of_another_agent_can_be_submitted_as_its_repair(memory):
    refused = refusal(memory.writer.remember, "p", "the port is 80", agent="bob")

    receipt = memory.writer.submit_intent("p", refused.fixed_intent)

    assert memory.reader.get_memory("p", receipt.iri)["properties"]["assertedBy"] == ["https://jido.ai/agents/bob"]


@pytest.mark.parametrize(
    ("known", "new", "is_warned"),
    [
        ("backup", "backups", True),
        ("retry policies", "retry policy", True),
        ("mail boxes", "mail box", True),
        ("backup", "backup server", False),
        ("bus", "bu", False),
        ("backup", "Backup", False),
    ],
)
def test_a_first_memory_on_the_plural_or_singular_of_a_known_topic_has_a_warning(memory, known, new, is_warned):
    first, receipt, again = (
        memory.writer.submit_intent("p", intent(summary=text, topic=topic, about=[place]))
        for text, topic, place in (("It runs at night", known, "a"), ("It lasts", new, "b"), ("It ends", new, "c"))
    )

    named = [first.iri in warning and f"give `topic` {known!r}" in warning for warning in receipt.warnings]
    assert any(named) == is_warned
    assert not any("give `topic`" in warning for warning in again.warnings)


def test_an_ended_memory_on_the_plural_of_a_topic_gives_no_warning(memory):
    first = memory.writer.submit_intent("p", fact(topic="backups"))
    memory.writer.invalidate("p", first.iri, reason="measured", asserted_by="a", asserted_in="s")

    assert memory.writer.submit_intent("p", fact(topic="backup")).warnings == ()
