"""Proposed terms: from the refusal of an unknown term through its proposal to the ontology that contains it."""

import json
import re
import shlex
from contextlib import contextmanager

import pytest
from click.testing import CliRunner
from conftest import intent

import jidomem
from jidomem.check.overlay import check_overlay
from jidomem.errors import IntentRefused, InvalidRequest, NotFound, PolicyDenied
from jidomem.rdf.terms import boolean
from jidomem.rdf.vocab import TYPE, jido
from jidomem.runtime.location import init
from jidomem.schema import ontology
from jidomem_cli.main import cli

NAMESPACE = "urn:project:p#"
SERVES_FIELDS = {
    "kind": "property", "domain": ["Fact"], "range_": ["xsd:integer"], "definition": "For how many.", "reason": "asked",
}  # fmt: skip


@pytest.fixture
def root(tmp_path):
    root = init(tmp_path, "p")
    with open(root / "config.toml", "a") as config:
        config.write('\n[agents.rita]\nrole = "Reviewer"\n')
    return root


@contextmanager
def proposals(root, agent):
    with jidomem.open(root, agent=agent) as memory:
        yield memory.term_proposals()


def refusal_of(root, term):
    with jidomem.open(root) as memory, pytest.raises(IntentRefused) as refusal:
        memory.writer.submit_intent("p", intent(extra_triples=[[term, 4]]))
    return refusal.value


def test_a_refused_term_is_proposed_by_the_hinted_command_accepted_and_then_enforced(root):
    hint = refusal_of(root, "jido:zqxSpoons").hint
    command = re.search(r"jidomem (ontology propose [^;]*)", hint)[1].replace("TEXT", "'How many spoons.'")
    result = CliRunner().invoke(cli, [*shlex.split(command), "--range", "xsd:integer", "--root", str(root), "--json"])
    assert result.exit_code == 0, result.stderr
    with proposals(root, "rita") as terms:
        accepted = terms.accept("zqxSpoons", reason="two memories need it")

    assert (accepted.term, accepted.outcome) == (f"{NAMESPACE}zqxSpoons", "accepted")
    with jidomem.open(root) as memory:
        memory.writer.submit_intent("p", intent(extra_triples=[[accepted.term, 4]]))
        with pytest.raises(IntentRefused, match="is not written as"):
            memory.writer.submit_intent("p", intent(extra_triples=[[accepted.term, "many"]]))
        (newest, *_) = memory.reader.ask("commits", project="p")
    assert newest["ontology"] == ontology.load([root]).version
    assert newest["ontology"] != ontology.load().version


def test_a_proposal_records_proposer_reason_and_answer(root):
    with proposals(root, "ana") as terms:
        terms.propose("serves", **SERVES_FIELDS)
        terms.propose("Recipe", kind="class", parents=["Fact"], definition="A way to cook.", reason="we cook")
    with proposals(root, "rita") as terms:
        assert [each.term for each in terms.waiting()] == [f"{NAMESPACE}serves", f"{NAMESPACE}Recipe"]
        terms.accept("serves", reason="fine")
        terms.reject(f"{NAMESPACE}Recipe", reason="a fact will do")
        assert terms.waiting() == []
        first, second = terms.all()

    assert (first.by, first.reason) == ("https://jido.ai/agents/ana", "asked")
    assert (first.outcome, first.answered_by, first.answer) == ("accepted", "https://jido.ai/agents/rita", "fine")
    assert (second.outcome, second.answer) == ("rejected", "a fact will do")
    assert first.proposed_at < second.proposed_at < first.answered_at < second.answered_at


def test_the_file_of_accepted_terms_is_independent_of_order_and_passes_the_overlay_check(root, tmp_path):
    other = init(tmp_path / "other", "p")
    (other / "config.toml").write_bytes((root / "config.toml").read_bytes())
    fields = {"kind": "class", "definition": "A thing to eat.", "reason": "we cook"}
    for folder, names in ((root, ["Soup", "Cake"]), (other, ["Cake", "Soup"])):
        for name in names:
            with proposals(folder, "rita") as terms:
                terms.propose(name, parents=["Fact"], **fields)
                terms.accept(name)

    assert (root / "ontology/accepted.ttl").read_bytes() == (other / "ontology/accepted.ttl").read_bytes()
    assert [each for each in check_overlay(root).problems if each.severity != "info"] == []
    assert ontology.load([root]).family(f"<{NAMESPACE}Cake>") == "<https://jido.ai/ontology#Fact>"


def test_a_term_is_accepted_again_after_its_answer_was_lost(root):
    with proposals(root, "rita") as terms:
        terms.propose("serves", **SERVES_FIELDS)
        terms.accept("serves")
        accepted_file = (root / "ontology/accepted.ttl").read_bytes()
    commits = sorted((root / "projects/p/system").glob("**/*.ttl"))
    commits[-1].unlink()  # the answer
    with proposals(root, "rita") as terms:
        assert terms.accept("serves").outcome == "accepted"
    assert (root / "ontology/accepted.ttl").read_bytes() == accepted_file


def test_a_proposal_is_accepted_by_a_curator_only_and_withdrawn_by_its_proposer(root):
    with proposals(root, "ana") as terms:
        terms.propose("serves", **SERVES_FIELDS)
        with pytest.raises(PolicyDenied, match="ana, an Implementer, may not accept terms") as refusal:
            terms.accept("serves")
        assert refusal.value.hint == "ask rita"
    with proposals(root, "bob") as terms, pytest.raises(PolicyDenied):
        terms.reject("serves", reason="no")
    with proposals(root, "ana") as terms:
        assert terms.reject("serves", reason="not needed").outcome == "rejected"
        assert terms.propose("serves", **SERVES_FIELDS).outcome == "waiting"
    assert not (root / "ontology").exists()


@pytest.mark.parametrize("is_own", [False, True])
def test_an_answer_written_as_triples_is_denied(root, is_own):
    with proposals(root, "ana" if is_own else "bob") as terms:
        proposal = terms.propose("serves", **SERVES_FIELDS)
    answer, proposal_iri = "<urn:x:answer>", f"<{proposal.iri}>"
    properties = {
        "answersProposal": proposal_iri,
        "isAccepted": boolean(True),
        "answeredBy": "<https://jido.ai/agents/rita>",
    }
    with jidomem.open(root, agent="ana") as memory:
        for rows in (
            [(answer, TYPE, jido("TermAnswer"))],
            *([(answer, jido(name), value)] for name, value in properties.items()),
        ):
            with pytest.raises(PolicyDenied, match="answered by a curator, not by triples") as refusal:
                memory.writer.append("p", "system", rows)
            assert "memory.term_proposals().accept(TERM)" in refusal.value.hint
        with pytest.raises(PolicyDenied, match="may not accept terms"):
            memory.writer.answer_term("p", proposal_iri, accepted=True, reason="")
        assert [term_proposal.outcome for term_proposal in memory.term_proposals().all()] == ["waiting"]
        if is_own:
            memory.writer.answer_term("p", proposal_iri, accepted=False, reason="not needed")
        else:
            with pytest.raises(PolicyDenied, match="may not reject terms"):
                memory.writer.answer_term("p", proposal_iri, accepted=False, reason="not needed")
        assert [term_proposal.outcome for term_proposal in memory.term_proposals().all()] == [
            "rejected" if is_own else "waiting"
        ]


def test_any_agent_accepts_and_rejects_without_an_appointed_curator(tmp_path):
    root = init(tmp_path, "p")
    with proposals(root, "ana") as terms:
        terms.propose("serves", **SERVES_FIELDS)
        terms.propose("Recipe", kind="class", parents=["Fact"], definition="A way to cook.", reason="we cook")
    with proposals(root, "bob") as terms:
        outcomes = [terms.accept("serves").outcome, terms.reject("Recipe", reason="a fact will do").outcome]

    assert outcomes == ["accepted", "rejected"]


def test_a_repeated_proposal_is_deduplicated_and_a_different_one_of_its_name_refused(root):
    with proposals(root, "ana") as terms:
        first = terms.propose("serves", **SERVES_FIELDS)
        assert terms.propose("serves", **SERVES_FIELDS) == first
        with pytest.raises(InvalidRequest, match="is proposed with another declaration"):
            terms.propose("serves", **{**SERVES_FIELDS, "definition": "Something else."})
        assert len(terms.all()) == 1


@pytest.mark.parametrize(
    ("term", "fields", "problem"),
    [
        ("Fact", {"kind": "class"}, None),
        ("jido:Recipe", {"kind": "class"}, "not a name for a new term"),
        ("my Recipe", {"kind": "class"}, "not a name for a new term"),
        ("https://jido.ai/ontology#Fact", {"kind": "class"}, "is declared"),
        ("https://jido.ai/ontology#Recipe", {"kind": "class"}, "not a name for a new term"),
        ("https://jido.ai/projects/p#Recipe", {"kind": "class"}, "not a name for a new term"),
        ("Recipe", {"kind": "class", "domain": ["Fact"]}, "a class has no domain"),
        ("Recipe", {"kind": "class", "definition": " "}, "has a definition"),
        ("Recipe", {"kind": "class", "reason": " "}, "needs a reason"),
        ("Recipe", {"kind": "klass"}, "not a kind of term"),
        ("serves", {"kind": "property", "range_": ["xsd:integer", "Fact"]}, "can have no value"),
        ("Recipe", {"kind": "class", "parents": ["Fact", "Project"]}, "Disjoint classes"),
    ],
)
def test_a_term_that_cannot_be_declared_is_not_proposed(root, term, fields, problem):
    with proposals(root, "ana") as terms:
        arguments = {"definition": "A way to cook.", "reason": "we cook", **fields}
        if problem is None:
            assert terms.propose(term, **arguments).term == f"{NAMESPACE}{term}"
            return
        with pytest.raises(InvalidRequest, match=problem):
            terms.propose(term, **arguments)
        assert terms.all() == []


def test_an_unknown_parent_or_proposal_is_refused_with_the_pending_ones(root):
    with proposals(root, "rita") as terms:
        terms.propose("serves", **SERVES_FIELDS)
        with pytest.raises(NotFound, match="'Fakt'"):
            terms.propose("Recipe", kind="class", parents=["Fakt"], definition="A way to cook.", reason="x")
        with pytest.raises(NotFound) as refusal:
            terms.accept("Recipe")
    assert refusal.value.hint == "pending: serves; see jidomem ontology proposals"


def test_the_commands_propose_list_accept_and_reject(root):
    def run(*args):
        result = CliRunner().invoke(cli, ["ontology", *args, "--root", str(root), "--json"])
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    run("propose", "serves", "--kind", "property", "--definition", "For how many.", "--reason", "asked")
    run("accept", "serves", "--agent", "rita")

    assert run("proposals")["rows"] == []
    assert [row["outcome"] for row in run("proposals", "--all")["rows"]] == ["accepted"]
    assert run("show", "serves")["definition"] == "For how many."
