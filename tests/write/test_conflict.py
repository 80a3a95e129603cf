"""Stage 3: active memories that conflict, and each way to settle the conflict."""

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


#: kind of conflict -> what is active, and what disagrees with it.
CLASHES = {
    "duplicate": (task(), task(detailed_explanation="all of them")),
    "overlapping_decision": (decision(**TOPIC), decision(summary="Use Lucene", **TOPIC)),
    "convention_clash": (rule(), rule(summary="Use spaces")),
    "contradiction": (fact(), fact(summary="The port is 443")),
}
kinds = pytest.mark.parametrize("kind", CLASHES)


def both(memory, kind):
    """The IRI of an active memory, and an intent that conflicts with it."""
    first, second = CLASHES[kind]
    return memory.writer.submit_intent("p", first).iri, second


def is_current(memory, item):
    return memory.reader.get_memory("p", item)["status"] == "active"


@kinds
def test_a_disagreement_is_refused_with_what_it_is_about_and_how_to_settle_it(memory, kind):  # C058 C055 C057
    old, new = both(memory, kind)
    before = files(memory.settings.root)
    error = refusal(memory.writer.submit_intent, "p", new)
    assert error.code == "conflict"
    (found,) = error.conflicts
    assert (found.iri, found.kind, found.summary) == (old, kind, CLASHES[kind][0]["summary"])
    assert found.resolve_with == {"supersedes": [old]}
    assert old in found.why
    (told,) = error.to_dict()["conflicts"]
    item = told.pop("item")
    assert told == found.to_dict()
    assert (item["iri"], item["summary"], item["asserted_by"][-9:]) == (old, found.summary, "architect")
    assert [choice["choice"] for choice in error.to_dict()["choices"]][:2] == ["supersedes", "coexists_with"]
    assert files(memory.settings.root) == before


@kinds
def test_naming_the_other_in_supersedes_settles_it(memory, kind):  # C059
    old, new = both(memory, kind)
    receipt = memory.writer.submit_intent("p", new | {"supersedes": [old]})
    assert (receipt.status, receipt.conflicts) == ("asserted", ())
    assert (is_current(memory, old), is_current(memory, receipt.iri)) == (False, True)


@kinds
def test_naming_the_other_in_invalidates_settles_it(memory, kind):  # C059
    old, new = both(memory, kind)
    receipt = memory.writer.submit_intent("p", new | {"invalidates": [old]})
    assert receipt.status == "asserted"
    assert memory.reader.get_memory("p", old)["status"] == "invalidated"


@kinds
def test_the_fields_to_resubmit_are_accepted_as_they_stand(memory, kind):  # C056
    old, new = both(memory, kind)
    (found,) = refusal(memory.writer.submit_intent, "p", new).conflicts
    receipt = memory.writer.submit_intent("p", {**new, **found.resolve_with})
    assert receipt.status == "asserted"
    assert values_of(memory, old, "supersededBy") == [f"<{receipt.iri}>"]


@pytest.mark.parametrize(
    ("kind", "scope"),
    [
        ("overlapping_decision", {"about": ["reports"]}),
        ("convention_clash", {"convention_scope": "Global"}),
        ("convention_clash", {"about": ["docs/"]}),
        ("contradiction", {"about": ["the other server"]}),
    ],
)
def test_coexistence_with_a_distinct_scope_settles_it(memory, kind, scope):  # C060
    old, new = both(memory, kind)
    receipt = memory.writer.submit_intent("p", new | scope | {"coexists_with": [old]})
    assert receipt.status == "asserted"
    assert values_of(memory, receipt.iri, "coexistsWith") == [f"<{old}>"]
    assert is_current(memory, old)


@kinds
def test_coexistence_without_a_distinct_scope_is_not_enough(memory, kind):  # C060
    old, new = both(memory, kind)
    error = refusal(memory.writer.submit_intent, "p", new | {"coexists_with": [old]})
    assert [found.kind for found in error.conflicts] == [kind]
    assert "distinct scope" in error.conflicts[0].why


def test_coexistence_at_all_places_of_the_other_is_not_enough_and_at_one_of_them_is_an_exception(memory):  # C060
    submit = memory.writer.submit_intent
    old = submit("p", decision(about=["src/app.py", "docs"], **TOPIC)).iri
    new = decision(summary="Use Lucene", coexists_with=[old], **TOPIC)

    (found,) = refusal(submit, "p", new | {"about": ["docs", "src/app.py", "tests"]}).conflicts

    assert (found.iri, "without all the places of the other" in found.why) == (old, True)
    assert submit("p", new | {"about": ["docs", "tests"]}).status == "asserted"


def test_a_distinct_scope_without_coexistence_is_not_enough_for_a_decision(memory):  # C060
    memory.writer.submit_intent("p", decision(**TOPIC))
    other = decision(summary="Use Lucene", about=["reports"], **TOPIC)
    assert refusal(memory.writer.submit_intent, "p", other).code == "conflict"


@pytest.mark.parametrize("policy", ["refuse", "propose", "warn"])
@pytest.mark.parametrize("kind", ["overlapping_decision", "convention_clash", "contradiction", "duplicate"])
def test_the_policy_of_a_family_decides_what_a_disagreement_does(tmp_path, kind, policy):  # C057 C058
    families = {"overlapping_decision": "decision", "convention_clash": "convention", "contradiction": "fact"}
    with open_with(tmp_path, f'[conflicts]\n{families.get(kind, "task")} = "{policy}"\n') as memory:
        old, new = both(memory, kind)
        if policy == "refuse":
            assert refusal(memory.writer.submit_intent, "p", new).code == "conflict"
            return
        receipt = memory.writer.submit_intent("p", new)
        assert receipt.status == {"propose": "proposed", "warn": "asserted"}[policy]
        assert [(found.iri, found.kind) for found in receipt.conflicts] == [(old, kind)]
        assert values_of(memory, receipt.iri, "conflictsWith") == [f"<{old}>"]
        assert is_current(memory, old)


def test_a_policy_binds_its_own_family_only(tmp_path):  # C057
    with open_with(tmp_path, '[conflicts]\nconvention = "warn"\n') as memory:
        _, new = both(memory, "overlapping_decision")
        assert refusal(memory.writer.submit_intent, "p", new).code == "conflict"


def test_a_proposal_ends_nothing_and_blocks_nothing(tmp_path):  # C061
    with open_with(tmp_path, '[conflicts]\ndecision = "propose"\n') as memory:
        kept = memory.writer.submit_intent("p", decision(**TOPIC)).iri
        other = memory.writer.submit_intent("p", decision(summary="Shard it", topic="shards")).iri
        proposed = memory.writer.submit_intent("p", decision(summary="Use Lucene", supersedes=[other], **TOPIC))
        assert proposed.status == "proposed"
        assert values_of(memory, proposed.iri, "supersedes") == [f"<{other}>"]
        assert values_of(memory, other, "supersededBy") == []
        assert is_current(memory, other)
        again = memory.writer.submit_intent("p", decision(summary="Use grep", supersedes=[kept], **TOPIC))
        assert (again.status, again.conflicts) == ("asserted", ())  # the proposal does not count


@pytest.mark.parametrize("policy", ["propose", "warn"])
def test_no_policy_lets_a_stale_supersession_pass(tmp_path, policy):  # C058
    with open_with(tmp_path, f'[conflicts]\nfact = "{policy}"\n') as memory:
        old = memory.writer.submit_intent("p", intent()).iri
        new = memory.writer.submit_intent("p", intent(summary="new", supersedes=[old])).iri
        error = refusal(memory.writer.submit_intent, "p", intent(summary="newer", supersedes=[old]))
        (found,) = error.conflicts
        assert (found.kind, found.resolve_with) == ("stale_supersession", {"supersedes": [new]})
        assert memory.writer.submit_intent("p", intent(summary="newer", **found.resolve_with)).status == "asserted"


@pytest.mark.parametrize("policy", ["refuse", "propose", "warn"])
def test_what_is_to_be_the_one_of_a_key_is_refused_beside_another_nobody_knew_of(tmp_path, policy):
    (tmp_path / "config.toml").write_text(f'[conflicts]\nfact = "{policy}"\n')
    port = ["https://jido.ai/ontology#key", "port"]
    one, two = (intent(summary=f"it is {n}", extra_triples=[port]) for n in (8700, 8701))
    with jidomem.open(tmp_path) as mine, jidomem.open(tmp_path) as theirs:
        first = theirs.writer.submit_intent("p", one, under=UniqueKey("port")).iri

        (found,) = refusal(mine.writer.submit_intent, "p", two, under=UniqueKey("port")).conflicts

        assert (found.iri, found.kind, found.resolve_with) == (first, "same_key", {"supersedes": [first]})
        second = mine.writer.submit_intent("p", {**two, **found.resolve_with}, under=UniqueKey("port")).iri
        told = refusal(
            theirs.writer.revise, "p", first, changes={"confidence": "low"}, reason="r", under=UniqueKey("port")
        ).conflicts
        assert {found.iri: found.kind for found in told} == {first: "stale_supersession", second: "same_key"}
        assert all(found.resolve_with == {"supersedes": [second]} for found in told)
        known = UniqueKey("port", frozenset([second]))
        assert theirs.writer.submit_intent("p", intent(extra_triples=[port]), under=known).status == "asserted"
        assert theirs.writer.submit_intent("p", intent(summary="none"), under=UniqueKey("other")).status == "asserted"


def test_a_stale_supersession_names_the_end_of_the_chain(memory):  # C056
    chain = [memory.writer.submit_intent("p", intent()).iri]
    for n in range(3):
        given = intent(summary=f"version {n}", supersedes=[chain[-1]])
        chain.append(memory.writer.submit_intent("p", given).iri)
    (found,) = refusal(memory.writer.submit_intent, "p", intent(summary="x", supersedes=chain[:1])).conflicts
    assert found.resolve_with == {"supersedes": [chain[-1]]}


def test_what_was_invalidated_cannot_be_superseded_but_its_withdrawal_can(memory):  # C061
    old = memory.writer.submit_intent("p", intent()).iri
    memory.writer.invalidate("p", old, reason="wrong")
    (found,) = refusal(memory.writer.submit_intent, "p", intent(summary="x", supersedes=[old])).conflicts
    assert found.kind == "stale_supersession"
    marker = values_of(memory, old, "invalidatedBy")[0][1:-1]
    assert found.resolve_with == {"supersedes": [marker]}


@kinds
@pytest.mark.parametrize("end", ["supersedes", "invalidates"])
def test_an_inactive_memory_conflicts_with_nothing(memory, kind, end):  # C061
    old, new = both(memory, kind)
    memory.writer.submit_intent("p", intent(type="discovery", summary="it was wrong", **{end: [old]}))
    receipt = memory.writer.submit_intent("p", new)
    assert (receipt.status, receipt.conflicts) == ("asserted", ())


def test_two_decisions_on_one_topic_disagree_whatever_their_class(memory):  # C052
    old = memory.writer.submit_intent("p", decision(type="implementation_decision", **TOPIC)).iri
    for kind in ("decision", "architectural_decision", "implementation_decision"):
        error = refusal(memory.writer.submit_intent, "p", decision(type=kind, summary="Use Lucene", **TOPIC))
        assert [(found.iri, found.kind) for found in error.conflicts] == [(old, "overlapping_decision")]


def test_decisions_on_other_topics_stand_side_by_side(writer):  # C052
    writer.submit_intent("p", decision(**TOPIC))
    assert writer.submit_intent("p", decision(summary="Use Lucene", topic="search")).status == "asserted"


def test_decisions_about_the_same_files_without_a_topic_are_a_warning(memory):  # C060
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
def test_conventions_of_one_name_or_topic_at_one_scope_disagree(memory, fields):  # C053
    old = memory.writer.submit_intent("p", rule(topic="Indentation")).iri
    error = refusal(memory.writer.submit_intent, "p", rule(summary="Use spaces") | fields)
    assert [(found.iri, found.kind) for found in error.conflicts] == [(old, "convention_clash")]


@pytest.mark.parametrize("fields", [{"convention_scope": "AgentScope"}, {"convention_name": "Line length"}])
def test_conventions_of_another_scope_or_name_stand_side_by_side(writer, fields):  # C053
    writer.submit_intent("p", rule())
    assert writer.submit_intent("p", rule(summary="Use spaces") | fields).status == "asserted"


@pytest.mark.parametrize("fields", [{"about": ["lib"]}, {"summary": "Use spaces", "about": ["lib", "docs"]}])
def test_conventions_of_one_name_in_folders_that_do_not_overlap_stand_side_by_side(memory, fields):  # C053
    memory.writer.submit_intent("p", rule(about=["src"]))

    assert memory.writer.submit_intent("p", rule(**fields)).status == "asserted"
    assert memory.reader.ask("conflicts", project="p") == []


@pytest.mark.parametrize("about", [[], ["."], ["**/*.py"], ["src/"], ["src/a.py"], ["src/a.py:4"], ["lib", "./src"]])
def test_conventions_of_one_name_disagree_where_their_places_overlap(memory, about):  # C053
    old = memory.writer.submit_intent("p", rule(about=["src"])).iri
    error = refusal(memory.writer.submit_intent, "p", rule(summary="Use spaces", about=about))

    assert [(found.iri, found.kind) for found in error.conflicts] == [(old, "convention_clash")]


def test_a_convention_said_of_the_whole_and_of_a_folder_agrees_unless_the_level_differs(memory):  # C053
    whole = memory.writer.submit_intent("p", rule()).iri
    part = memory.writer.submit_intent("p", rule(about=["src"])).iri
    error = refusal(memory.writer.submit_intent, "p", rule(about=["src/web"], enforcement_level="Strict"))

    assert {found.iri for found in error.conflicts} == {whole, part}
    assert {found.kind for found in error.conflicts} == {"convention_clash"}


def test_two_proposed_conventions_of_two_folders_are_accepted_one_after_the_other(tmp_path):
    with open_with(tmp_path, '[conflicts]\nconvention = "propose"\n') as proposing:
        proposed = [
            proposing.writer.submit_intent("p", rule(about=[folder]), propose=True).iri for folder in ("src", "lib")
        ]
        outcomes = [proposing.writer.settle("p", item, "accept") for item in proposed]

    assert [receipt.status for receipt in outcomes] == ["asserted", "asserted"]


def test_conventions_that_clash_after_a_merge_are_listed_and_those_of_two_folders_are_not(tmp_path):
    with open_with(tmp_path, '[conflicts]\nconvention = "warn"\n') as warned:
        first = warned.writer.submit_intent("p", rule(about=["src"])).iri
        warned.writer.submit_intent("p", rule(about=["lib"]))
        other = warned.writer.submit_intent("p", rule(summary="Use spaces", about=["src/web"])).iri
        found = warned.reader.ask("conflicts", project="p")

    assert [{row["a"], row["b"]} for row in found] == [{first, other}]


@pytest.mark.parametrize("fields", [{"topic": "host"}, {"about": ["client"]}, {"topic": None, "about": []}])
def test_facts_on_another_matter_do_not_contradict(writer, fields):  # C054
    writer.submit_intent("p", fact())
    assert writer.submit_intent("p", fact(summary="It is 443", **fields)).status == "asserted"


def test_about_is_compared_as_a_set(memory):  # C060
    memory.writer.submit_intent("p", fact(about=["a", "b"]))
    error = refusal(memory.writer.submit_intent, "p", fact(summary="It is 443", about=["B", "a", "b"]))
    assert error.code == "conflict"


def test_a_functional_property_given_another_value_is_a_contradiction(memory):  # C054
    file = "https://example.org/files/a"
    typed = [file, "rdf:type", {"@id": "jido:SourceFile"}]
    old = memory.writer.submit_intent("p", intent(extra_triples=[typed, [file, "jido:filePath", "src/a.py"]])).iri
    other = intent(summary="it moved", extra_triples=[[file, "jido:filePath", "lib/a.py"]])
    (found,) = refusal(memory.writer.submit_intent, "p", other).conflicts
    assert (found.iri, found.kind) == (old, "contradiction")
    same = intent(summary="it is still there", extra_triples=[[file, "jido:filePath", "src/a.py"]])
    assert memory.writer.submit_intent("p", same).status == "asserted"
    both = memory.writer.submit_intent("p", same | {"summary": "so said a second"}).iri
    (first, *more) = refusal(memory.writer.submit_intent, "p", other).conflicts
    assert (first.iri, len(more)) == (old, 2)
    settled = other | {"invalidates": [old, more[0].iri, more[1].iri]}
    assert both in settled["invalidates"]
    assert memory.writer.submit_intent("p", settled).status == "asserted"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Use  Oxigraph", "use oxigraph"),
        ("Café", "CAFE\u0301"),
        ("a\nb", " a b "),
        ("Straße", "STRASSE"),
    ],
)
def test_text_is_compared_without_case_form_and_white_space(memory, one, other):  # C060
    old = memory.writer.submit_intent("p", task(summary=one)).iri
    error = refusal(memory.writer.submit_intent, "p", task(summary=other, detailed_explanation="x"))
    assert [(found.iri, found.kind) for found in error.conflicts] == [(old, "duplicate")]


def test_subclasses_share_a_family_and_other_kinds_do_not(memory):  # C060
    kinds = ("decision", "architectural_decision", "fact")
    keys = {kind: set(conflict.keys(_normal(type=kind, topic="t"))) for kind in kinds}
    assert any(key.startswith("overlapping") for key in keys["decision"] & keys["architectural_decision"])
    assert not keys["decision"] & keys["fact"]
    assert family("bug") == family("error") == "error"
    assert family("coding_standard") == family("convention") == "convention"


def test_a_memory_of_another_kind_is_no_duplicate(writer):  # C060
    writer.submit_intent("p", task())
    assert writer.submit_intent("p", intent(type="risk", summary="Write the docs")).status == "asserted"


def test_what_is_known_already_is_answered_with_what_is_there(memory):  # C055
    first = memory.writer.submit_intent("p", decision(evidence=["a", "b"], **TOPIC))
    before = files(memory.settings.root)
    same = decision(asserted_by="bob", asserted_in="s-9", summary="USE  oxigraph", evidence=["b", "a"], **TOPIC)
    receipt = memory.writer.submit_intent("p", same)
    assert (receipt.status, receipt.iri, receipt.commit) == ("deduplicated", first.iri, first.commit)
    assert receipt.version == first.version
    assert files(memory.settings.root) == before


def test_extra_triples_about_the_new_memory_count_as_its_content(memory):  # C060
    extra = [["jido:errorCode", "E1"]]
    first = memory.writer.submit_intent("p", intent(type="error", extra_triples=extra)).iri
    same = intent(type="error", extra_triples=[["this", "jido:errorCode", "E1"]])
    assert memory.writer.submit_intent("p", same).iri == first
    other = intent(type="error", extra_triples=[["jido:errorCode", "E2"]])
    assert [found.kind for found in refusal(memory.writer.submit_intent, "p", other).conflicts] == ["duplicate"]


def test_an_ended_memory_has_no_duplicates(memory):  # C061
    old = memory.writer.submit_intent("p", intent()).iri
    memory.writer.invalidate("p", old, reason="wrong")
    receipt = memory.writer.submit_intent("p", intent())
    assert receipt.status == "asserted"
    assert receipt.iri != old


def test_saying_the_same_again_in_place_of_itself_is_a_new_memory(memory):  # C059
    old = memory.writer.submit_intent("p", intent()).iri
    receipt = memory.writer.submit_intent("p", intent(supersedes=[old]))
    assert receipt.status == "asserted"
    assert values_of(memory, old, "supersededBy") == [f"<{receipt.iri}>"]


def test_every_disagreement_is_listed_at_once(memory):  # C055
    topic = memory.writer.submit_intent("p", rule(convention_name="A", topic="t", summary="one")).iri
    name = memory.writer.submit_intent("p", rule(convention_name="B", summary="two")).iri
    error = refusal(memory.writer.submit_intent, "p", rule(convention_name="B", topic="t", summary="three"))
    assert {found.iri for found in error.conflicts} == {topic, name}
    settled = rule(convention_name="B", topic="t", summary="three", supersedes=[topic, name])
    assert memory.writer.submit_intent("p", settled).status == "asserted"


def test_the_repair_of_several_disagreements_settles_them_all(memory):  # C056
    for name in ("one", "two"):
        memory.writer.submit_intent("p", rule(convention_name=name, topic=f"t {name}", summary=name))
    new = rule(convention_name="one", topic="t two", summary="three")
    new |= refusal(memory.writer.submit_intent, "p", new).conflicts[0].resolve_with
    assert memory.writer.submit_intent("p", new).status == "asserted"


def test_nothing_but_the_policy_or_the_caller_settles_a_disagreement(memory):  # C058
    _, new = both(memory, "contradiction")
    error = refusal(memory.writer.submit_intent, "p", new)
    assert (codes(error), getattr(error, "fixed_intent", None)) == ([], None)


@pytest.mark.parametrize(
    ("kind", "open_status", "over"),
    [("task", "Planned", "Completed"), ("task", "InProgress", "Abandoned"), ("error", "Reported", "Resolved")],
)
def test_what_is_over_may_occur_again_and_both_stay(memory, kind, open_status, over):
    again = intent(type=kind, summary="Call Hooli", status=open_status)
    first = memory.writer.submit_intent("p", again).iri
    assert codes(refusal(memory.writer.submit_intent, "p", {**again, "confidence": "low"})) == []
    ended = memory.writer.revise("p", first, changes={"status": over}, reason="done").iri

    second = memory.writer.submit_intent("p", again)
    assert (second.status, is_current(memory, ended)) == ("asserted", True)
    over_again = memory.writer.revise("p", second.iri, changes={"status": over}, reason="done").iri

    assert [is_current(memory, each) for each in (ended, over_again)] == [True, True]
    assert memory.reader.ask("conflicts", project="p") == []
    same = memory.writer.submit_intent("p", {**again, "status": over})
    assert same.status == "deduplicated"


def test_the_same_with_other_evidence_is_confirmed_by_the_first_choice(memory):
    said_by = {"topic": "seats", "summary": "ACME has 40 seats"}
    first = memory.writer.submit_intent("p", intent(**said_by, evidence=["the contract"], asserted_by="ann")).iri
    other = intent(**said_by, evidence=["the invoice"], confidence="medium", asserted_by="ben")

    error = refusal(memory.writer.submit_intent, "p", other)
    choice = error.choices[0]

    assert choice.name == "confirm"
    both_of_them = ["the contract", "the invoice"]
    assert choice.fields == {"supersedes": [first], "evidence": both_of_them, "confidence": "high"}
    confirmed = memory.writer.submit_intent("p", {**other, **choice.fields})
    properties = memory.reader.get_memory("p", confirmed.iri)["properties"]
    assert (properties["assertedBy"], properties["settledBy"]) == (
        ["https://jido.ai/agents/ann"],
        ["https://jido.ai/agents/ben"],
    )
    assert sorted(memory.writer.restated("p", confirmed.iri)["evidence"]) == both_of_them


def test_only_judgements_are_kept_as_keys_of_a_withdrawal(memory):  # C061
    old = memory.writer.submit_intent("p", intent()).iri
    marker = memory.writer.invalidate("p", old, reason="wrong").iri
    assert {key.strip('"').partition(":")[0] for key in values_of(memory, marker, "conflictKey")} == {
        "judged",
        "judged-as",
    }
    assert {o for s, p, o in triples_of(memory) if s == f"<{marker}>" and p.endswith("#invalidates>")} == {f"<{old}>"}


def _normal(**fields):
    return MemoryUpdateIntent(**{**intent(convention_scope=None), "iri": "urn:x", **fields})


@pytest.mark.parametrize("way", [{"topic": "store"}, {"extra_triples": [["jido:topic", "store"]]}])
def test_a_topic_counts_however_it_was_said(memory, way):  # C052 C060
    memory.writer.submit_intent("p", decision(extra_triples=[["jido:topic", "Store"]]))

    error = refusal(memory.writer.submit_intent, "p", decision(summary="Use Jena", **way))

    assert [found.kind for found in error.conflicts] == ["overlapping_decision"]


def test_a_scope_said_by_an_extra_triple_clashes_like_any_other(memory):  # C053
    first = intent(type="convention", summary="a", convention_name="n")
    second = intent(type="convention", summary="b", convention_name="n", convention_scope="GlobalScope")
    memory.writer.submit_intent("p", first | {"extra_triples": [["jido:hasConventionScope", "jido:GlobalScope"]]})

    error = refusal(memory.writer.submit_intent, "p", second)

    assert [found.kind for found in error.conflicts] == ["convention_clash"]


def test_one_resubmission_settles_every_conflict_at_once(memory):  # C057 C059
    submit = memory.writer.submit_intent
    old = submit("p", decision(topic="store")).iri
    new = submit("p", decision(topic="store", summary="Use a file", supersedes=[old])).iri
    other = submit("p", decision(topic="port", summary="Use 8700")).iri
    third = decision(topic="port", summary="Use Jena", supersedes=[old])

    error = refusal(submit, "p", third)

    assert {found.kind for found in error.conflicts} == {"stale_supersession", "overlapping_decision"}
    assert {tuple(found.resolve_with["supersedes"]) for found in error.conflicts} == {(new, other)}
    assert submit("p", third | error.conflicts[0].resolve_with).status == "asserted"


def test_what_is_invalidated_already_is_not_to_be_invalidated_again(memory):  # C058
    item = memory.writer.submit_intent("p", intent()).iri
    memory.writer.invalidate("p", item, reason="wrong")

    given = intent(summary="no", invalidates=[item])
    error = refusal(memory.writer.submit_intent, "p", given)

    (found,) = error.conflicts
    assert found.resolve_with == {"invalidates": []}
    assert memory.writer.submit_intent("p", given | found.resolve_with).status == "asserted"
    (found,) = refusal(memory.writer.invalidate, "p", item, reason="wrong again").conflicts
    assert found.resolve_with == {}  # a withdrawal of nothing is none


#: What is kept of a memory is compared with what later versions say: the digests may not change. Those of topics of
#: several words did after 0.1.0: jidomem/records/active.py gives earlier commits the new ones.
KEPT = {
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


@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept_to_find_a_disagreement_by_stays_the_same_from_version_to_version(memory, name):
    given, kept = KEPT[name]
    item = memory.writer.submit_intent("p", given).iri
    assert [key.strip('"') for key in values_of(memory, item, "conflictKey")] == kept


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("duplicate", "{old} already says 'Write the docs'; detailed_explanation differs"),
        ("overlapping_decision", "{old} is active on 'index': Use Oxigraph"),
        ("convention_clash", "{old} is active under that name or topic at the same scope: Use tabs"),
        ("contradiction", "{old} says something else on the same matter: The port is 80"),
    ],
)
def test_a_disagreement_is_told_in_words(memory, kind, why):
    old, new = both(memory, kind)
    (found,) = refusal(memory.writer.submit_intent, "p", new).conflicts
    assert found.why == why.format(old=old)
    (found,) = refusal(memory.writer.submit_intent, "p", new | {"coexists_with": [old]}).conflicts
    needed = "coexists_with needs a distinct scope: name in about (or convention_scope) where the new one applies"
    assert found.why == f"{why.format(old=old)}; {needed}"


@pytest.mark.parametrize(("end", "word"), [("supersedes", "superseded"), ("invalidates", "invalidated")])
def test_what_has_ended_is_told_with_what_ended_it(memory, end, word):
    old = memory.writer.submit_intent("p", intent()).iri
    new = memory.writer.submit_intent("p", intent(summary="new", **{end: [old]})).iri
    (found,) = refusal(memory.writer.submit_intent, "p", intent(summary="x", supersedes=[old])).conflicts
    assert (found.iri, found.kind, found.summary) == (old, "stale_supersession", intent()["summary"])
    assert found.why == f"{old} is already {word} by {new}"
    assert found.resolve_with == {"supersedes": [new]}


def test_what_has_ended_with_all_that_came_after_it_is_not_to_be_named(memory):
    old = memory.writer.submit_intent("p", intent()).iri
    new = memory.writer.submit_intent("p", intent(summary="new", supersedes=[old])).iri
    memory.writer.invalidate("p", new, reason="wrong")
    other = memory.writer.submit_intent("p", intent(summary="other")).iri
    given = intent(summary="x", supersedes=[old, other])
    (found,) = refusal(memory.writer.submit_intent, "p", given).conflicts
    assert found.resolve_with == {"supersedes": [other]}


@pytest.mark.parametrize("field", ["supersedes", "invalidates"])
def test_a_resubmission_without_what_ended_with_all_its_successors_is_asserted(memory, field):  # C057
    submit = memory.writer.submit_intent
    old = submit("p", intent()).iri
    new = submit("p", intent(summary="new", supersedes=[old])).iri
    memory.writer.invalidate("p", new, reason="wrong")
    given = intent(summary="x", **{field: [old]})

    (found,) = refusal(submit, "p", given).conflicts

    assert found.resolve_with == {field: []}
    assert submit("p", given | found.resolve_with).status == "asserted"


def test_a_stale_invalidation_names_what_took_the_place(memory):
    old = memory.writer.submit_intent("p", intent()).iri
    new = memory.writer.submit_intent("p", intent(summary="new", supersedes=[old])).iri
    (found,) = refusal(memory.writer.submit_intent, "p", intent(summary="x", invalidates=[old])).conflicts
    assert found.resolve_with == {"invalidates": [new]}


def test_a_proposal_said_twice_is_answered_with_the_first(memory):
    old = memory.writer.submit_intent("p", intent(summary="old")).iri
    given = intent(supersedes=[old])
    submit = memory.writer.submit_intent
    first = submit("p", given, propose=True)
    again = submit("p", given, propose=True)
    assert (first.status, again.status, again.iri) == ("proposed", "deduplicated", first.iri)
    for other in (intent(), intent(invalidates=[old]), given | {"asserted_by": "bob"}):
        assert submit("p", other, propose=True).status == "proposed"
        assert submit("p", other, propose=True).status == "deduplicated"
    marker = intent(type="deleted_marker", summary="wrong", invalidates=[old])
    assert [submit("p", marker, propose=True).status for _ in range(2)] == ["proposed", "deduplicated"]
    memory.writer.invalidate("p", first.iri, reason="no")
    assert submit("p", given, propose=True).status == "proposed"


def test_a_proposal_said_again_beside_what_it_disagrees_with_is_another_one(memory):
    old = memory.writer.submit_intent("p", decision(topic="store")).iri
    given = decision(summary="x", topic="store", about=["src/a.py"])
    opposed = memory.writer.submit_intent("p", given, propose=True)
    beside = memory.writer.submit_intent("p", given | {"coexists_with": [old]}, propose=True)
    assert [len(opposed.conflicts), len(beside.conflicts)] == [1, 0]
    assert memory.writer.submit_intent("p", given | {"coexists_with": [old]}, propose=True).iri == beside.iri
    assert memory.writer.settle("p", beside.iri, "accept").status == "asserted"


def nearby(receipt):
    """The warnings in *receipt* of decisions about the same place."""
    return [warning for warning in receipt.warnings if "active decision" in warning]


@pytest.mark.parametrize("topics", [{}, {"topic": "use-mysql"}, {"topic": "parcels"}])
def test_a_decision_is_warned_of_an_active_one_about_the_same_file_whatever_the_topics(memory, topics):
    submit = memory.writer.submit_intent
    old = submit("p", decision(about=["src/a.py", "docs/1.md"], topic="use-mysql")).iri
    given = decision(
        summary="Use Oxigraph for all", about=["src/b.py", "src/a.py"], **({"topic": "x"} if topics else {})
    )

    receipt = submit("p", given)

    assert receipt.status == "asserted"
    assert nearby(receipt) == [
        f"{old} is an active decision about src/a.py too: Use Oxigraph; if yours takes its place:"
        f' jidomem review supersede {receipt.iri} --against {old} --reason "SAY WHY"'
        "; if both hold, there is nothing to do"
    ]
    assert memory.writer.settle("p", receipt.iri, "supersede", other=old, reason="r").status == "asserted"
    assert not is_current(memory, old)


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
def test_a_decision_is_not_warned_of_one_that_is_settled_elsewhere_or_no_rival(memory, fields):
    submit = memory.writer.submit_intent
    old = submit("p", decision(about=["src/a.py"], valid_from="2021-01-01")).iri
    fields = {name: [old] if value == ["OLD"] else value for name, value in fields.items()}

    assert (
        nearby(submit("p", decision(**{"summary": "Use Oxigraph x", "about": ["src/a.py"], "topic": "t"} | fields)))
        == []
    )


def test_a_successor_is_warned_only_of_decisions_about_places_new_to_it(memory):
    submit = memory.writer.submit_intent
    submit("p", decision(about=["src/a.py", "src/b.py"]))
    first = submit("p", decision(summary="Use Oxigraph x", about=["src/a.py"])).iri
    second = submit("p", decision(summary="Use Oxigraph y", about=["src/a.py"], supersedes=[first]))
    given = decision(summary="Use Oxigraph z", about=["src/a.py", "src/b.py"], supersedes=[second.iri])
    third = submit("p", given)

    assert nearby(second) == []
    assert [("about src/b.py too" in warning) for warning in nearby(third)] == [True]


def test_of_many_decisions_about_one_file_the_newest_three_are_named_and_the_others_counted(memory):
    submit = memory.writer.submit_intent
    items = [submit("p", decision(summary=f"Use Jena {number}", about=["src/a.py"])).iri for number in range(5)]

    *named, more = nearby(submit("p", decision(summary="Use Jena", about=["src/a.py"])))

    assert [warning.split()[0] for warning in named] == items[:1:-1]
    assert more == "2 more active decisions about the same files or things: jidomem governing FILE"


def test_a_decision_is_warned_of_an_older_one_about_a_file_that_many_later_memories_are_about(memory):
    submit = memory.writer.submit_intent
    old = submit("p", decision(about=["src/a.py"])).iri
    later = [decision(type="fact", summary=f"n{number}", about=["src/a.py"], rationale=None) for number in range(60)]
    assert {receipt.status for receipt in memory.writer.submit_many("p", later)} == {"asserted"}

    (warning,) = nearby(submit("p", decision(summary="Oxigraph", about=["src/a.py"])))

    assert warning.startswith(old)


def test_decisions_in_other_words_about_one_file_are_no_rivals(memory):
    submit = memory.writer.submit_intent
    kinds = ["pure", "slow", "tested", "private", "deprecated", "inlined"]
    texts = [f"Function {chr(65 + place)} of the store is {kind}." for place, kind in enumerate(kinds)]

    receipts = [submit("p", decision(summary=text, topic=text, about=["internal/store.go"])) for text in texts]

    assert [nearby(receipt) for receipt in receipts] == [[]] * 6


def test_what_coexists_with_what_is_replaced_makes_its_scope_distinct(memory):
    submit = memory.writer.submit_intent
    first = submit("p", decision(**TOPIC)).iri
    second = submit("p", decision(summary="Use Lucene", about=["reports"], coexists_with=[first], **TOPIC)).iri
    newer = decision(summary="Use Jena", supersedes=[first], coexists_with=[second], **TOPIC)
    assert submit("p", newer).status == "asserted"
    stray = decision(summary="Use grep", coexists_with=[second], about=["reports"], **TOPIC)
    assert {found.iri: "distinct scope" in found.why for found in refusal(submit, "p", stray).conflicts}[second]


def test_letters_count_in_an_iri_and_not_in_a_text(memory):
    first = memory.writer.submit_intent("p", intent(evidence=["urn:x:A", "A log"])).iri
    assert memory.writer.submit_intent("p", intent(evidence=["a LOG", "urn:x:A"])).iri == first
    error = refusal(memory.writer.submit_intent, "p", intent(evidence=["urn:x:a", "A log"]))
    assert [found.kind for found in error.conflicts] == ["duplicate"]


def succeeded(*pairs):
    """A view where the first of each pair was superseded by the second; all other memories are asserted."""
    view, ended = WriteSnapshot(lambda *pattern: []), {old for old, _ in pairs}
    view.add([(iri(f"urn:x:{old}"), jido("supersededBy"), iri(f"urn:x:{new}")) for old, new in pairs])
    names = {name for pair in pairs for name in pair}
    view.add([(iri(f"urn:x:{name}"), jido("hasAssertionStatus"), jido("Asserted")) for name in names - ended])
    return view


def test_a_chain_of_successors_ends_with_an_active_memory_and_a_ring_with_none():
    for pairs, end in ((("ab", "bc"), "<urn:x:c>"), (("ab", "bc", "cb"), None), (("aa",), None), ((), None)):
        assert conflict.end_of_chain(iri("urn:x:a"), succeeded(*pairs)) == end


def test_two_are_of_one_origin_where_both_took_the_place_of_one_in_the_end():
    view = succeeded("ab", "bc", "ad", "ef", "gh", "hg")
    one = {other: conflict.of_one_origin(iri("urn:x:c"), iri(f"urn:x:{other}"), view) for other in "abdefg"}
    assert one == {"a": False, "b": True, "d": True, "e": False, "f": False, "g": False}


windows = pytest.mark.parametrize(
    ("first", "second", "do_meet"),
    [
        ({"valid_until": "2020-01-01"}, {}, False),  # it is over
        ({"valid_until": "2027-01-01"}, {}, True),
        ({"valid_until": "2027-01-01"}, {"valid_from": "2027-01-01"}, False),
        ({"valid_from": "2028-01-01"}, {"valid_until": "2027-01-01"}, False),
        ({"valid_from": "2028-01-01"}, {}, True),
        ({"valid_until": "2020-01-01"}, {"valid_from": "2019-01-01"}, False),  # the first was over when it was dated
        ({"valid_until": "2020-01-01"}, {"timestamp": "2019-01-01"}, False),
        ({"valid_until": "2020-01-01", "timestamp": "2019-01-01"}, {"valid_from": "2018-01-01"}, True),
    ],
)
orders = pytest.mark.parametrize("is_reversed", [False, True])


@orders
@windows
def test_memories_that_are_never_valid_at_one_moment_do_not_disagree(memory, first, second, do_meet, is_reversed):
    first, second = (second, first) if is_reversed else (first, second)
    memory.writer.submit_intent("p", intent(topic="store", **first))
    given = intent(summary="another", topic="store", **second)
    if do_meet:
        assert refusal(memory.writer.submit_intent, "p", given).code == "conflict"
    else:
        assert memory.writer.submit_intent("p", given).status == "asserted"


@orders
@windows
def test_memories_never_valid_at_one_moment_are_not_listed_as_conflicts(tmp_path, first, second, do_meet, is_reversed):
    first, second = (second, first) if is_reversed else (first, second)
    with open_with(tmp_path, '[conflicts]\nfact = "warn"\n') as warned:
        warned.writer.submit_intent("p", intent(topic="store", **first))
        warned.writer.submit_intent("p", intent(summary="another", topic="store", **second))
        listed = warned.reader.ask("conflicts", project="p")
        report = warned.check("p")

    assert [row["kind"] for row in listed] == ["contradiction"] * do_meet
    assert bool(report.problems) is do_meet


def test_a_fact_on_a_topic_whose_about_may_be_the_same_is_kept_with_a_warning_that_names_the_other(memory):
    (other, apart) = [memory.writer.submit_intent("p", each).iri for each in (
        fact(), fact(about=["client"], summary="The port is 99"))]  # fmt: skip

    whole, shared, alike, own = [
        memory.writer.submit_intent("p", fact(summary="The port is 81", **fields))
        for fields in ({"about": []}, {"about": ["server", "proxy"]}, {"topic": "host"}, {"about": ["tests"]})
    ]

    assert [other in "".join(receipt.warnings) for receipt in (whole, shared, alike, own)] == [True, True, False, False]
    assert apart in "".join(whole.warnings)
    assert "compared with the same topic and the same about" in whole.warnings[0]


def test_the_choices_of_a_contradiction_name_no_memory_that_has_ended(memory):
    ended = memory.writer.submit_intent("p", decision(summary="Use one", topic="index")).iri
    now = memory.writer.submit_intent("p", decision(summary="Use two", topic="index", supersedes=[ended])).iri

    with pytest.raises(jidomem.Conflict) as error:
        memory.writer.submit_intent("p", decision(summary="Use three", topic="index", coexists_with=[ended]))

    fields = [choice.fields for choice in error.value.choices if choice.name == "coexists_with"]
    assert fields == [{"coexists_with": [now]}]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"rationale": "other"}, "rationale differs"),
        ({"confidence": "low", "evidence": []}, "confidence and evidence differ"),
        ({"extra_triples": [["https://example.org/p", "v"]]}, "another field differs"),
    ],
)
def test_a_duplicate_names_the_fields_that_differ(memory, change, named):
    given = decision(summary="Use Jena", topic="store", rationale="known", evidence=["seen"], confidence="high")
    memory.writer.submit_intent("p", given)
    (found,) = refusal(memory.writer.submit_intent, "p", given | change).conflicts
    assert (found.kind, found.why.partition("; ")[2]) == ("duplicate", named)


def test_a_conflict_also_offers_to_submit_nothing(memory):
    memory.writer.submit_intent("p", decision(summary="Use Jena", topic="store"))
    refused = refusal(memory.writer.submit_intent, "p", decision(summary="Use SQLite", topic="store"))
    assert refused.hint.endswith("if yours is on another matter: both stay active; or submit nothing: the other stays")


@pytest.mark.parametrize("shared", ["topic", "convention_name"])
def test_a_convention_on_another_matter_is_accepted_with_the_fields_that_the_choice_names(memory, shared):
    tabs = intent(type="convention", summary="Never use tabs", **{shared: "tabs"})
    memory.writer.submit_intent("p", tabs)
    other = tabs | {"summary": "Always use tabs"}
    refused = refusal(memory.writer.submit_intent, "p", other)

    (choice,) = (choice for choice in refused.choices if choice.name == "convention_name")

    assert memory.writer.submit_intent("p", other | dict.fromkeys(choice.needs, "width of tabs")).status == "asserted"


def test_a_text_that_is_too_large_beside_another_fault_is_not_also_missing(memory):
    refused = refusal(memory.writer.submit_intent, "p", intent(summary="x" * 300_000, bogus=1))
    assert [fault.code for fault in refused.violations] == ["unknown_field", "payload_too_large"]
    assert refused.violations[1].field == "summary"


def test_a_list_for_a_field_of_one_text_is_not_renamed_to_it(memory):
    (fault,) = refusal(memory.writer.submit_intent, "p", {**intent(), "tags": ["a"]}).violations
    assert (fault.field, fault.nearest, fault.hint) == ("tags", None, "leave it out, or give `topic`")


def test_a_memory_by_another_name_of_the_agent_can_be_submitted_as_it_is_corrected(memory):
    refused = refusal(memory.writer.remember, "p", "the port is 80", agent="bob")

    receipt = memory.writer.submit_intent("p", refused.fixed_intent)

    assert memory.reader.get_memory("p", receipt.iri)["properties"]["assertedBy"] == ["https://jido.ai/agents/bob"]
