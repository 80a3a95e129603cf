"""A week of three agents: receipts show repeated and contradicted memories, with commands that work."""

import json
import shlex

import pytest
from cli_world import rows, run

#: The author, the text, and the index of the memory that its receipt shows first, or None.
WEEK = [
    ("ana", "The build runs on a self-hosted runner with 16 GB of memory", None),
    ("ana", "Nightly backups go to the vault in Zurich", None),
    ("ben", "Customers pay by invoice within 30 days", None),
    ("ben", "Backups are made nightly and go to the vault in Zurich", 1),
    ("cleo", "Images are stored in the bucket shop-media in Frankfurt", None),
    ("cleo", "Customers pay by invoice within 14 days", 2),
    ("ana", "The search page loads its results in pages of 20", None),
    ("ben", "The self-hosted build runner has 32 GB of memory", 0),
    ("cleo", "Error messages name the field that is wrong", None),
]


@pytest.fixture(autouse=True)
def with_similar(monkeypatch):
    """Enable similar memories in receipts, as by default."""
    monkeypatch.setattr("jidomem.runtime.similar.ReceiptSearch.default", "ask")


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """Return a repository with an empty memory, whose recall uses the local embedder."""
    folder = tmp_path / "shop"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("JIDOMEM_EMBEDDER", "local")
    monkeypatch.setattr("jidomem_cli.options.SIMILAR_WITHIN", 120.0)
    assert run("init", "--project", "shop").exit_code == 0
    return folder


def remember(agent, text, *options):
    answer = run("remember", text, "--agent", agent, "--json", *options)
    assert answer.exit_code == 0, answer.stderr
    return json.loads(answer.stdout)


def test_the_receipts_of_a_week_show_the_known_similar_memories(shop):
    receipts = [remember(agent, text) for agent, text, _ in WEEK]
    similar = [[each["id"] for each in receipt["similar"]] for receipt in receipts]

    assert [ids[0] if ids else None for ids in similar] == [
        None if known is None else receipts[known]["iri"] for _, _, known in WEEK
    ]
    repeated, changed, runner = (receipts[place]["similar"][0] for place in (3, 5, 7))
    assert (repeated["relation"], repeated["asserted_by"]) == ("repeats", "ana")
    assert (changed["relation"], changed["differences"]) == ("near", ["14 / 30 days"])
    assert runner["differences"] == ["32 / 16 GB"]
    execute(repeated["choices"]["confirm"])
    execute(changed["choices"]["supersede"])
    assert "--agent ben " in repeated["choices"]["confirm"]
    facts = {row["summary"] for row in rows("ask", "facts")}
    assert {WEEK[1][1], WEEK[5][1]} <= facts
    assert {WEEK[3][1], WEEK[2][1]}.isdisjoint(facts)


def execute(choice):
    """Run the command of a choice, with a reason in place of the placeholder."""
    command = shlex.split(choice.rpartition(": jidomem ")[2].replace("SAY WHY", "measured anew"))
    result = run(*command)
    assert result.exit_code == 0, result.stderr


def test_a_receipt_shows_the_similar_memory_and_the_commands(shop):
    known = remember("ana", WEEK[2][1])["iri"][-8:]
    result = run("remember", WEEK[5][1], "--agent", "ben")
    new = result.stdout.strip()[-8:]

    assert result.stderr.splitlines() == [
        f"asserted: {new} in project shop",
        f"it is near to {known} by ana (likeness 0.99, other values: 14 / 30 days): {WEEK[2][1]}",
        f'  if yours takes its place: jidomem review --agent ben supersede {new} --against {known} --reason "SAY WHY"',
        "  if both hold: nothing to do",
    ]


def test_a_long_memory_is_shortened_in_the_receipt_of_another(shop):
    remember("ana", f"{WEEK[2][1]}, {'and so on ' * 500}")

    result = run("remember", WEEK[2][1], "--agent", "ben")

    assert "it " in result.stderr
    assert max(map(len, result.stderr.splitlines())) < 200


def test_a_text_is_read_from_standard_input(shop):
    assert run("remember", "-", stdin="The mast is high\n").exit_code == 0

    assert [row["summary"] for row in rows("ask", "facts")] == ["The mast is high"]


def test_a_dry_run_shows_the_options_to_write_with_instead(shop):
    known = remember("ana", WEEK[2][1])["iri"]
    (similar,) = remember("ben", WEEK[5][1], "--dry-run")["similar"]

    assert similar["id"] == known
    assert similar["choices"] == {
        "supersede": f"if yours takes its place: --supersedes {known[-8:]}",
        "keep": "if both hold: write it as it is",
    }


@pytest.mark.parametrize(("choice", "action"), [("supersede", "supersede"), ("keep", "keep-both")])
def test_a_proposal_is_settled_in_the_review_by_the_commands_of_its_receipt(shop, choice, action):
    with open(shop / ".jidomem" / "config.toml", "a") as config:
        config.write('\n[on_similar]\nfact = "propose"\n')
    known = remember("ana", WEEK[2][1])
    proposal = remember("ben", WEEK[5][1])

    assert (known["status"], proposal["status"]) == ("asserted", "proposed")
    (pending,) = rows("review")
    assert pending["item"] == proposal["iri"]
    assert any(f" {action} {proposal['iri'][-8:]}" in command for command in pending["settle"])
    execute(proposal["similar"][0]["choices"][choice])
    both = {WEEK[5][1], WEEK[2][1]} if action == "keep-both" else {WEEK[5][1]}
    assert {row["summary"] for row in rows("ask", "facts")} == both
    assert rows("review") == []


def test_a_receipt_offers_only_the_commands_that_the_policy_allows_its_agent(shop):
    assert run("access", "policy", "grant", "ana", "admin", "--agent", "ana").exit_code == 0
    assert run("access", "policy", "set", "propose", "--kind", "fact", "--agent", "ana").exit_code == 0
    assert run("access", "policy", "set", "assert", "--for", "ana", "--kind", "fact", "--agent", "ana").exit_code == 0
    remember("ana", WEEK[1][1])

    proposal = remember("ben", WEEK[3][1])

    choices = proposal["similar"][0]["choices"]
    assert (proposal["status"], [*choices], choices["keep"]) == (
        "proposed", ["confirm", "keep"], "if both hold: nothing to do",
    )  # fmt: skip
    execute(choices["confirm"])
    assert rows("review") == []


def test_the_commands_of_a_receipt_are_refused_with_updated_commands_after_an_edit(shop):
    known = remember("ana", WEEK[1][1])["iri"]
    (similar,) = remember("ben", WEEK[3][1])["similar"]
    edited = run("edit", known, "--supersede", "Nightly backups go to Bern", "--agent", "ana").stdout.strip()

    hints = []
    for choice in ("confirm", "supersede"):
        result = run(*shlex.split(similar["choices"][choice].partition(": ")[2])[1:])
        assert result.exit_code in (2, 5)
        hints.append(result.stderr.partition("hint: ")[2])

    assert f"jidomem edit --agent ben {edited[-8:]} --confirm --set supersedes={edited[-8:]} --set" in hints[0]
    assert f"--against {edited[-8:]}; see: jidomem show {edited[-8:]}" in hints[1]
    execute(hints[0])


def test_a_decision_similar_to_another_about_the_same_file_is_reported_once(shop):
    texts = ("Use Oxigraph as the store of the triples", "Use Oxigraph as a store of triples", "Print invoices in A4")
    options = ("--type", "decision", "--rationale", "fast", "--about", "a.py")
    receipts = [remember("ana", text, *options, "--topic", f"store-{number}") for number, text in enumerate(texts)]

    assert [each["id"] for each in receipts[1]["similar"]] == [receipts[0]["iri"]]
    assert receipts[1]["warnings"] == []
    assert receipts[2]["similar"] == []
    assert receipts[2]["warnings"] == []


@pytest.mark.parametrize(
    ("known", "new", "difference"),
    [
        ("Retries to a pump are limited to 3", "A pump is retried five times", "five times / 3"),
        ("The fuse of the pump is rated 15 A", "The fuse of the pump has 12 amperes", "12 amperes / 15 A"),
        ("Retry failed payouts.", "Do not retry failed payouts.", "not retry / Retry"),
        ("All services use mTLS.", "All services except billing use mTLS.", "except billing / no exception"),
        ("Logs are kept 30 days.", "Logs are kept a year.", "a year / 30 days"),
        ("Anna Meier is the contact for pumps", "the contact for pumps is Bernd Kohl", "Bernd Kohl / Anna Meier"),
    ],
)
def test_a_contradiction_is_not_reported_as_a_repetition(shop, known, new, difference):
    remember("ana", known)

    (similar,) = remember("ben", new)["similar"]

    assert (similar["relation"], similar["differences"]) == ("near", [difference])
    assert "confirm" not in similar["choices"]


def test_the_placeholder_reason_of_a_choice_is_refused(shop):
    known = remember("ana", WEEK[2][1])
    new = remember("ben", WEEK[5][1])
    command = new["similar"][0]["choices"]["supersede"]

    refused = run(*shlex.split(command.rpartition(": jidomem ")[2]))

    assert (refused.exit_code, "'SAY WHY', which stands in a choice" in refused.stderr) == (3, True), refused.stderr
    assert {known["iri"], new["iri"]} <= {row["fact"] for row in rows("ask", "facts")}


@pytest.mark.parametrize(
    ("choice", "active"),
    [("supersede", "Cards are vaulted at Basis Theory."), ("invalidate", "Cards are vaulted at Stripe.")],
)
def test_the_commands_for_a_repeated_superseded_statement_are_accepted(shop, choice, active):
    vault = remember("ana", "Cards are vaulted at Basis Theory.")["iri"]
    run(
        "edit", vault, "--supersede", "Cards are vaulted at Stripe.", "--reason", "the contract ended", "--agent", "ana"
    )
    receipt = remember("ben", "Cards are vaulted at Basis Theory.")

    (superseded,) = [each for each in receipt["similar"] if each.get("status") == "superseded"]
    assert (superseded["id"], "confirm" in superseded["choices"]) == (vault, False)
    assert "because the contract ended (replaced by" in receipt["warnings"][0]
    execute(superseded["choices"][choice])
    assert [row["summary"] for row in rows("ask", "facts")] == [active]
