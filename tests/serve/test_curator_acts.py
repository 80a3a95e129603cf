"""Actions on the curator's pages: the roles they are offered to, repeated forms, and settlements by others."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from conftest import START, decision, fixed_sources, intent

import jidomem
from jidomem.extras.web import review
from jidomem.rdf.vocab import JIDO
from jidomem.records.intent import INTENT_FIELDS, ONLY_FOR
from jidomem.runtime.settings import own_config
from jidomem.runtime.tokens import Keyring, revoke_token
from jidomem.serve.app import create_app

WRITERS = ("agent", "curator", "admin")
#: Each action of a page -> the roles it is offered to, where agents may only propose decisions.
OFFERED = {
    ("memory", "supersede"): WRITERS,
    ("memory", "invalidate"): WRITERS,
    ("memory", "confirm"): WRITERS,
    ("ended", "undo"): WRITERS,
    ("fact conflict", "left"): WRITERS,
    ("fact conflict", "right"): WRITERS,
    ("fact conflict", "both"): WRITERS,
    ("fact conflict", "merge"): WRITERS,
    ("conflict", "left"): ("curator", "admin"),
    ("conflict", "right"): ("curator", "admin"),
    ("conflict", "both"): ("curator", "admin"),
    ("conflict", "merge"): ("curator", "admin"),
    ("proposal", "accept"): ("curator", "admin"),
    ("proposal", "reject"): ("curator", "admin"),
    ("ontology", "accept"): ("curator", "admin"),
    ("ontology", "map"): ("curator", "admin"),
    ("ontology", "refuse"): ("curator", "admin"),
    ("check", "preview"): ("reader", *WRITERS),
}


KNOWN = {}


def build(root):
    """Record conflicting decisions and facts, a proposal, a fact and an invalidated fact; KNOWN has their IRIs."""
    root.mkdir()
    (root / "config.toml").write_text(
        'project = "p"\npolicy = "curated"\n[conflicts]\ndecision = "warn"\nfact = "warn"\nconvention = "warn"\n'
    )
    intents = {
        "left": decision(summary="Use SQLite", topic="store", about=["src/a.py"], evidence=["it is small"]),
        "right": decision(summary="Use PostgreSQL", topic="store", rationale="it scales", evidence=["it grows"]),
        "fact": intent(summary="it is blue", topic="colour", about=["src/c.py"]),
        "other fact": intent(summary="it is red", topic="colour", about=["src/c.py"]),
        "memory": intent(summary="releases go out on Fridays"),
        "ended": intent(summary="the build is slow"),
    }
    with jidomem.open(root, sources=fixed_sources()) as memory:
        curator = memory.writer.acting_as("cur", "curator")
        for name, fields in intents.items():
            KNOWN[name] = curator.submit_intent("p", {**fields, "asserted_by": "cur"}).iri
        curator.invalidate("p", KNOWN["ended"], reason="it is not")
        tabs = decision(summary="Use tabs", topic="tabs")
        KNOWN["proposal"] = memory.writer.submit_intent("p", tabs, propose=True).iri
        terms = memory.term_proposals("p")
        terms.propose("Recipe", kind="class", parents=["Fact"], definition="One.", reason="we cook")


@pytest.fixture
def memory(root, copy_built):
    copy_built(build, root)
    with jidomem.open(root, sources=fixed_sources(START + timedelta(hours=1), first=1000)) as opened:
        yield opened


@pytest.fixture
def known(memory):
    return KNOWN


@pytest.fixture
def signed_in(memory, known):
    """Return a client that is signed in with a new token of a role; all use one server."""
    root = memory.settings.root
    Keyring(own_config(), root).issue("nobody", "reader", ("p",), memory.sources)
    app = create_app(memory, keyring=Keyring(own_config(), root))

    def client_of(role):
        secret, token = Keyring(own_config(), root).issue(f"the-{role}", role, ("p",), memory.sources)
        opened = app.test_client()
        opened.post("/ui/sign-in", data={"token": secret})
        opened.environ_base["HTTP_AUTHORIZATION"] = (
            f"Bearer {secret}"  # the same token as the cookie, for tests that make a second client
        )
        return opened, token

    return client_of


@pytest.fixture
def client(signed_in):
    """A client that is signed in as a curator."""
    return signed_in("curator")[0]


def pages(known):
    """The address of each page, and the fields of its form besides the action."""
    term = {"term": "Recipe", "reason": "x", "instead": "Fact"}
    pair = {
        "item": known["left"],
        "other": known["right"],
        "reason": "x",
        "about": "src/b.py",
        "text": "Use both",
        "rationale": "r",
    }
    facts = {**pair, "item": known["fact"], "other": known["other fact"]}
    proposal = {"item": known["proposal"], "reason": "x"}
    return {
        "memory": (f"/ui/p/memories/{known['memory'][-12:]}", {"summary": "on Mondays", "reason": "x"}),
        "ended": (f"/ui/p/memories/{known['ended'][-12:]}", {"reason": "x"}),
        "conflict": (f"/ui/p/review?item={known['left']}&other={known['right']}", pair),
        "fact conflict": (f"/ui/p/review?item={known['fact']}&other={known['other fact']}", facts),
        "proposal": (f"/ui/p/review?item={known['proposal']}", proposal),
        "ontology": ("/ui/p/ontology", term),
        "check": ("/ui/p/check", {"file": "shapes", "turtle": ""}),
    }


@pytest.mark.parametrize("role", ["reader", "agent", "curator", "admin"])
def test_actions_are_offered_to_their_roles_and_refused_to_others(signed_in, memory, known, role):
    client, _ = signed_in(role)
    head = memory.catch_up("p")

    for (name, action), roles in OFFERED.items():
        path, form = pages(known)[name]
        page = client.get(path)
        assert page.status_code == 200, page.text
        offered = f'name="act" value="{action}"' in page.text.partition(">Pending<")[0]
        assert offered == (role in roles), (name, action)
        if role not in roles:
            answer = client.post(path, data={"act": action, **form})
            assert answer.status_code == 403, (name, action, answer.text)
            assert answer.mimetype == "text/html"
            assert (
                "ask the operator" in answer.text
                or "ask a curator" in answer.text
                or "the project has no curator" in answer.text
            )
    assert memory.catch_up("p") == head


def test_an_expired_memory_is_not_confirmed_and_its_page_names_the_command(client, memory):
    item = memory.writer.submit_intent("p", intent(summary="the sale is on", valid_until="2020-01-01")).iri
    text = client.get(f"/ui/p/memories/{item[-12:]}").text

    assert re.findall(r'name="act" value="(\w+)"', text) == ["supersede", "invalidate"]
    assert f"jidomem edit {item[-8:]} --confirm --set valid_until=DATE --reason TEXT" in text
    assert "valid until 2020-01-01" in text


@pytest.mark.parametrize(("page", "action"), [each for each in OFFERED if each[0] != "check"])
def test_an_offered_action_is_performed_once_when_its_form_is_sent_twice(signed_in, memory, known, page, action):
    client, _ = signed_in("curator")
    path, form = pages(known)[page]

    done = client.post(path, data={"act": action, **form})
    head = memory.catch_up("p")
    repeated = client.post(path, data={"act": action, **form})

    assert done.status_code == 303, done.text
    assert (repeated.status_code, repeated.headers["Location"]) == (303, done.headers["Location"])
    assert memory.catch_up("p") == head
    assert 'class="done"' in client.get(done.headers["Location"]).text


def test_equal_forms_sent_at_once_are_all_accepted(client, memory, known):
    path, form = pages(known)["conflict"]

    def send(_):
        other = client.application.test_client()
        other.environ_base |= client.environ_base
        return other.post(path, data={"act": "left", **form}).status_code

    with ThreadPoolExecutor(4) as executor:
        assert [*executor.map(send, range(4))] == [303] * 4
    assert memory.reader.get_memory("p", known["right"])["status"] == "invalidated"


def test_an_action_on_a_settled_conflict_is_refused_with_its_curator_and_date(client, memory, known):
    path, form = pages(known)["conflict"]
    memory.writer.acting_as("ana", "curator").settle("p", known["left"], "reject", other=known["right"], reason="no")

    answer = client.post(path, data={"act": "left", **form, "text": "what I wrote of these two"})

    assert answer.status_code == 409
    assert "decided this already" in answer.text
    assert "withdrawn by ana, 21 November 2026" in answer.text
    assert "replacement" not in answer.text
    assert re.search(r"<textarea [^>]*readonly>what I wrote of these two<", answer.text)
    assert 'data-key="l"' not in answer.text  # nor does the page show another pair, which a second press would settle
    page = client.post(f"/ui/p/memories/{known['left'][-12:]}", data={"act": "confirm", "reason": "x"})
    assert (page.status_code, "withdrawn by ana" in page.text) == (409, True)


def test_a_revoked_token_is_refused_and_redirected_to_the_sign_in_page(signed_in, memory, known):
    client, token = signed_in("curator")
    path, form = pages(known)["memory"]
    revoke_token(own_config(), token.id)

    answer = client.post(path, data={"act": "confirm", **form})
    foreign = client.post(path, data={"act": "confirm", **form}, headers={"Sec-Fetch-Site": "cross-site"})

    assert answer.status_code == 401
    assert "Your form was not processed" in answer.text
    assert "readonly>on Mondays<" in answer.text
    assert "on Mondays" not in foreign.text
    assert f'name="next" value="{path}"' in answer.text
    redirect = client.get(path)
    assert (redirect.status_code, "/ui/sign-in?next=" in redirect.headers["Location"]) == (303, True)
    assert "was revoked" in client.get(redirect.headers["Location"]).text
    wrong = client.post("/ui/sign-in", data={"token": "nonsense", "next": path})
    assert (wrong.status_code, f'name="next" value="{path}"' in wrong.text) == (401, True)
    assert memory.reader.get_memory("p", known["memory"])["status"] == "active"


def test_an_action_on_several_items_reports_each_refusal_and_settles_the_others_once(client, memory, known):
    rejected = memory.writer.submit_intent("p", intent(summary="one"), propose=True).iri
    memory.writer.acting_as("ana", "curator").settle("p", rejected, "reject", reason="no")
    conflicting = memory.writer.submit_intent("p", decision(summary="Use DuckDB", topic="store"), propose=True).iri
    other = memory.writer.submit_intent("p", intent(summary="two"), propose=True).iri
    form = {
        "act": "accept",
        "chosen": [known["proposal"], rejected, f"{conflicting} {known['left']}", other],
        "reason": "fine",
    }

    answer = client.post("/ui/p/review", data=form)
    head = memory.catch_up("p")
    repeated = client.post("/ui/p/review", data=form)

    for page in (answer, repeated):
        assert page.status_code == 409
        assert "2 of 4 could not be settled; accepted: 2 together" in page.text
        assert "rejected by ana" in page.text
        assert "Use DuckDB" in page.text
        assert "is active on &#39;store&#39;" in page.text
    assert f'value="{conflicting} {known["left"]}" checked' in answer.text
    assert memory.catch_up("p") == head


def test_an_action_on_one_selected_item_gives_the_same_answer_when_repeated(client, memory, known):
    form = {"act": "accept", "chosen": [known["proposal"]], "reason": "fine"}
    answers = [client.post("/ui/p/review", data=form) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [303, 303]
    assert answers[0].headers["Location"] == answers[1].headers["Location"]
    assert memory.reader.get_memory("p", known["proposal"])["status"] != "pending"


def test_both_decisions_are_kept_only_with_valid_places_and_nothing_is_written_otherwise(client, memory, known):
    path, form = pages(known)["conflict"]
    head = memory.catch_up("p")
    for fields in (
        {"about": "src/a.py", "other_about": "src/a.py"},
        {"about": "src/b.py", "other_about": "src/c.py"},
        {"about": "", "other_about": ""},
        {"scope": "https://jido.ai/ontology#GlobalScope"},
    ):
        answer = client.post(path, data={"act": "both", **form, **fields})
        assert answer.status_code in (400, 409), fields
        assert "Hint:" in answer.text
    assert memory.catch_up("p") == head

    done = client.post(path, data={"act": "both", **form, "other_about": "", "reason": "each has its place"})

    assert done.status_code == 303
    (rows, _) = (memory.reader.ask("conflicts", project="p"), None)
    assert {row["kind"] for row in rows} == {"contradiction"}  # the conflict of the facts remains
    assert memory.reader.get_memory("p", known["right"])["status"] == "active"


def test_conventions_are_kept_with_different_scopes(client, memory):
    curator = memory.writer.acting_as("cur", "curator")
    fields = {"type": "convention", "convention_name": "tabs", "convention_scope": "ProjectScope", "asserted_by": "cur"}
    left, right = (submit(curator, memory, {**fields, "summary": text}) for text in ("use tabs", "use spaces"))
    path = f"/ui/p/review?item={left}&other={right}"
    assert "Scope of the left one" in client.get(path).text
    form = {"act": "both", "item": left, "other": right, "about": "", "other_about": ""}
    scopes = {"scope": "https://jido.ai/ontology#ProjectScope", "other_scope": "https://jido.ai/ontology#ProjectScope"}
    assert client.post(path, data={**form, **scopes}).status_code == 400

    separated = {**form, **scopes, "other_scope": "https://jido.ai/ontology#AgentScope"}
    refused = client.post(path, data=separated)
    done = client.post(path, data={**separated, "reason": "tabs are for agents"})

    assert (refused.status_code, "was asserted by cur: say in reason why" in refused.text) == (422, True)
    assert done.status_code == 303
    assert memory.reader.get_memory("p", left)["status"] == "active"
    assert memory.reader.get_memory("p", right)["status"] == "superseded"
    assert "convention_clash" not in {row["kind"] for row in memory.reader.ask("conflicts", project="p")}


def test_both_memories_of_a_near_pair_are_kept_without_scopes(root, monkeypatch):
    monkeypatch.setenv("JIDOMEM_EMBEDDER", "local")
    with jidomem.open(root, project="p", agent="ana") as opened:
        older = opened.remember("The worker pool has 5 threads").iri
        newer = opened.remember("The pool of workers uses 20 threads").iri
        opened.embedding.embed("p")
        curator = create_app(opened).test_client()
        page = curator.get("/ui/p/review").text
        assert "differs in 5 / 20 threads" in page
        assert "Scope of each" not in page
        form = dict(re.findall(r'name="(item|kind|other)" value="([^"]*)"', page))
        assert form == {"item": newer, "kind": "near", "other": older}

        done = curator.post("/ui/p/review", data={"act": "both", **form})

        assert done.status_code == 303
        assert "Nothing to review" in curator.get("/ui/p/review").text
        assert opened.reader.get_memory("p", older)["status"] == "active"
        assert opened.reader.get_memory("p", newer)["status"] == "superseded"


def submit(writer, memory, values):
    """Record a memory without a check for conflicts, as after a merge."""
    return writer.submit_intent("p", intent(**values)).iri


def test_a_merge_starts_from_the_chosen_side_and_has_the_evidence_of_both(client, memory, known):
    path, form = pages(known)["conflict"]
    data_path = path.replace("?", ".json?")
    empty, left, right = (
        client.get(data_path + start).json["looked_at"]["merged"] for start in ("", "&start=left", "&start=right")
    )
    assert (empty["text"], empty["rationale"], empty["topic"]) == ("", "", "store")
    assert (left["text"], left["rationale"]) == ("Use SQLite", "it embeds")
    assert (right["text"], right["rationale"]) == ("Use PostgreSQL", "it scales")
    assert empty["evidence"] == left["evidence"] == ["it is small", "it grows"]
    assert client.get(path + "&start=up").status_code == 400
    without_text = client.post(path, data={"act": "merge", **form, "text": ""})
    assert (without_text.status_code, "start from the left or the right one" in without_text.text) == (400, True)

    form = {
        **form,
        **{name: left[name] for name in ("topic", "rationale", "confidence")},
        "merged_about": "src/a.py\nsrc/z.py",
    }
    done = client.post(path, data={"act": "merge", **form, "text": "Use SQLite first, then PostgreSQL"})

    assert done.status_code == 303
    old = memory.reader.get_memory("p", known["left"])
    assert old["superseded_by"] == memory.reader.get_memory("p", known["right"])["superseded_by"]
    both = memory.writer.restated("p", old["superseded_by"][0])
    assert (both["summary"], both["rationale"]) == ("Use SQLite first, then PostgreSQL", "it embeds")
    assert sorted(both["evidence"]) == ["it grows", "it is small"]
    assert sorted(both["about"]) == ["src/a.py", "src/z.py"]


#: A value for each field of a memory that a merger carries over.
CARRIED = {
    "detailed_explanation": "at length", "rationale": "it scales", "confidence": 0.8, "evidence": ["it grows"],
    "extra_triples": [["jido:category", "storage"]], "topic": "store", "about": ["src/a.py"], "status": None,
    "severity": "high", "assigned_to": "ben", "convention_name": "stores", "convention_scope": "AgentScope",
    "enforcement_level": "Required", "alternatives": ["DuckDB"], "tracked_by": "https://example.org/1",
    "expires_on": "2999-01-01T00:00:00.000000Z", "valid_from": "2020-01-01T00:00:00.000000Z",
    "valid_until": "2999-01-02T00:00:00.000000Z", "source_type": "UserSource",
}  # fmt: skip
STATUS = {"task": "Blocked", "error": "Investigating", "architectural_decision": "accepted"}
#: The fields that a merged memory has from its own act.
OF_THE_ACT = {
    "type", "iri", "summary", "applies_to_project", "asserted_by", "asserted_in", "supersedes", "invalidates",
    "revives", "coexists_with", "timestamp", "reason", "idempotency_key",
}  # fmt: skip


@pytest.mark.parametrize("kind", ["fact", "architectural_decision", "convention", "task", "error"])
def test_a_merged_memory_has_each_field_that_only_the_right_one_has(memory, kind):
    assert {*CARRIED} | OF_THE_ACT == {*INTENT_FIELDS}
    values = {name: value for name, value in CARRIED.items() if kind in ONLY_FOR.get(name, (kind,))}
    values["status"] = STATUS.get(kind)
    given = {name: value for name, value in values.items() if value is not None}
    one = submit(memory.writer, memory, {"type": kind, "summary": "stores are small", "rationale": "it embeds"})
    other = submit(memory.writer, memory, {"type": kind, "summary": "stores are large", **given})
    left, right = (memory.writer.restated("p", each) for each in (one, other))
    bare = {name: left[name] for name in OF_THE_ACT if name in left}  # the writer fills in some defaults

    assert review.merged(bare, right)["left_out"] == []
    changes = review.together(bare, right, {"text": "stores are large and small"})
    receipt = memory.writer.revise("p", one, changes=changes, reason="they say the same")

    merged = memory.writer.restated("p", receipt.iri)
    assert {name: merged.get(name) for name in given} == {name: right[name] for name in given}


def test_the_form_of_a_merger_names_what_stays_with_the_right_memory(client, memory):
    fields = {"type": "fact", "topic": "size", "about": ["src/a.py"], "tracked_by": "https://example.org/left"}
    left = submit(memory.writer, memory, {**fields, "summary": "small", "extra_triples": [["jido:category", "a"]]})
    other = {"tracked_by": "https://example.org/right", "extra_triples": [["jido:category", "b"]]}
    right = submit(memory.writer, memory, {**fields, "summary": "large", **other})
    path = f"/ui/p/review?item={left}&other={right}"

    data = client.get(path.replace("?", ".json?")).json["looked_at"]["merged"]

    assert data["left_out"] == [["tracked_by", "https://example.org/right"], [f"{JIDO}category", "b"]]
    assert "https://example.org/right" in client.get(path).text.partition("Stays with the right one only:")[2]


def test_an_accepted_proposal_supersedes_the_decision_it_conflicts_with(client, memory, known):
    unrelated = memory.writer.submit_intent("p", decision(summary="Use DuckDB", topic="tabs2"), propose=True).iri
    rival = (
        memory.writer.acting_as("cur", "curator")
        .submit_intent("p", decision(summary="Use Parquet", topic="store2", asserted_by="cur"))
        .iri
    )
    proposal = memory.writer.submit_intent("p", decision(summary="Use ORC", topic="store2"), propose=True).iri
    form = {"item": proposal, "other": rival}

    done = client.post("/ui/p/review", data={"act": "left", **form})

    assert done.status_code == 303
    assert memory.reader.get_memory("p", rival)["status"] == "superseded"
    assert memory.reader.get_memory("p", proposal)["status"] == "superseded"
    assert memory.reader.get_memory("p", unrelated)["status"] == "pending"


def test_the_review_page_shows_source_line_changes_and_the_id_of_the_accepted_memory(client, memory):
    source = [
        ["jido:sourceBlob", f"{'0' * 40} AGENTS.md"], ["jido:sourceLine", 64], ["jido:localId", "AGENTS.md: Build"],
    ]  # fmt: skip
    old = memory.writer.submit_intent("p", intent(summary="builds take one hour")).iri
    changed = intent(summary="builds take two hours", supersedes=[old], extra_triples=source, reason="measured")
    item = memory.writer.submit_intent("p", changed, propose=True).iri

    page = client.get(f"/ui/p/review?item={item}").text
    done = client.post("/ui/p/review", data={"act": "accept", "item": item}, follow_redirects=True).text

    assert re.search(r"from (<[^>]+>)?AGENTS\.md:64<", page)
    assert "<mark>one</mark>" in page
    assert "<mark>two</mark>" in page
    new = memory.reader.get_memory("p", item)["superseded_by"][0]
    assert re.search(rf"It is now <a href=[^>]+>{new[-8:]}</a>", done)


def test_a_proposal_shows_its_changes_to_the_memory_it_replaces(client, memory):
    rule = {"type": "convention", "about": ["src/**"], "enforcement_level": "Strict", "asserted_by": "cur"}
    strict = memory.writer.acting_as("cur", "curator").submit_intent("p", intent(summary="no print", **rule)).iri
    agent, changes = memory.writer.acting_as("ben", "agent"), {"enforcement_level": "Advisory"}
    proposed = agent.correct("p", strict, changes=changes, reason="annoying").iri

    listed = client.get("/projects/p/conflicts").get_json()["rows"]
    page = client.get("/ui/p/review").text.partition(">Pending<")[2]

    (row,) = (row for row in listed if row["item"] == proposed)
    (end,) = row["ends"]
    assert (row["reason"], end["item"]) == ("annoying", strict)
    assert end["changes"] == [{"field": "enforcement_level", "before": "Strict", "after": "Advisory"}]
    for line in (f"replaces {strict[-8:]}: no print", "enforcement level: Strict -&gt; Advisory", "reason: annoying"):
        assert line in page


def test_the_review_page_names_rival_proposals_and_the_next_step_after_one_is_accepted(client, memory):
    texts = ("Use DuckDB", "Use Parquet")
    first, second = (
        memory.writer.submit_intent("p", decision(summary=text, topic="files2"), propose=True).iri for text in texts
    )

    page = client.get(f"/ui/p/review?item={first}").text
    refused = client.post("/ui/p/review", data={"act": "accept", "chosen": [first, second]})

    selected, _, pending = page.partition(">Pending<")
    assert re.search(rf'against the proposal <a href="[^"]*{second[-8:]}"[^>]*>(<[^>]+>)?Use Parquet', selected)
    for item, text in ((second, texts[1]), (first, texts[0])):
        assert f"against the proposal {item[-8:]}: {text}" in pending
    assert "accept one of them alone, then reject the others" in refused.text
    assert "jidomem review" not in refused.text
    assert [memory.reader.get_memory("p", item)["status"] for item in (first, second)] == ["pending"] * 2
    client.post("/ui/p/review", data={"act": "accept", "chosen": [first]})
    refused = client.post("/ui/p/review", data={"act": "accept", "chosen": [second]})
    assert "select it below: it is shown beside the memory that it conflicts with" in refused.text
    assert "supersedes=" not in refused.text
    rows = client.get("/projects/p/conflicts").get_json()["rows"]
    (left,) = [row for row in rows if row["item"] == second]
    assert memory.reader.get_memory("p", left["other"])["properties"]["summary"] == [texts[0]]


def test_a_decision_that_lost_its_rationale_is_listed_with_the_command_that_gives_one(client, memory):
    item = memory.writer.submit_intent(
        "p", decision(type="decision", summary="Own prices", rationale="Hedwig Berg")
    ).iri
    memory.maintenance.redact(memory.maintenance.plan("p", None, texts=["Hedwig Berg"]), agent="ana", reason="a name")

    page = selected(client.get(f"/ui/p/review?item={item}"))

    assert "Why does it hold? Its rationale was redacted on " in page
    assert f"<code>jidomem edit {item[-8:]} --set rationale=TEXT</code>" in page
    assert re.findall(r'name="act" value="(\w+)"', page) == ["reject"]


def selected(page):
    """The part of a review page above the list."""
    return page.text.partition(">Pending<")[0]


def test_the_two_of_a_pair_are_not_settled_together_with_others(client, memory, known):
    head, pair = memory.catch_up("p"), f"{known['left']} {known['right']}"
    assert pair not in re.findall(r'name="chosen" value="([^"]*)"', client.get("/ui/p/review").text)

    for act in ("accept", "reject"):
        for line in (pair, known["left"], known["memory"]):
            refused = client.post("/ui/p/review", data={"act": act, "chosen": [known["proposal"], line], "reason": "x"})
            assert (refused.status_code, "is settled by itself; nothing was changed" in refused.text) == (400, True)

    assert memory.catch_up("p") == head


def test_the_address_of_a_settled_item_shows_its_settlement_and_no_other_item(client, memory, known):
    addresses = {name: pages(known)[name] for name in ("conflict", "proposal")}
    for name, act in (("conflict", "left"), ("proposal", "accept")):
        assert client.post(addresses[name][0], data={"act": act, **addresses[name][1]}).status_code == 303

    for name, outcome in (("conflict", "withdrawn by the-curator, 21"), ("proposal", "accepted by the-curator, 21")):
        path, form = addresses[name]
        refused = client.post(path.partition("?")[0], data={"act": "reject", **form, "reason": "again"})
        for page in (client.get(path), refused):
            assert outcome in selected(page)
            assert "Show the next one" in selected(page)
            assert 'name="act"' not in selected(page)
    assert memory.reader.get_memory("p", known["fact"])["status"] == "active"


def test_a_pair_in_the_other_order_and_a_proposal_without_its_rival_are_selected(client, memory, known):
    rival = memory.writer.submit_intent("p", decision(summary="Use DuckDB", topic="store"), propose=True).iri
    named = {
        f"item={known['right']}&other={known['left']}": {known["left"], known["right"]},
        f"item={known['left'][-8:]}&other={known['right'][-8:]}": {known["left"], known["right"]},
        f"item={rival}": {rival},
    }
    for address, items in named.items():
        data = client.get(f"/ui/p/review.json?{address}").json["looked_at"]
        assert items <= {data["item"], data["other"]}, address
    assert client.get("/ui/p/review?item=urn:x:unknown").status_code == 404


def test_an_item_of_a_later_page_is_selected(client, memory, known, monkeypatch):
    monkeypatch.setattr(review, "COUNT", 1)
    data = client.get(f"/ui/p/review.json?item={known['proposal']}").json
    assert (len(data["waiting"]), data["looked_at"]["item"]) == (1, known["proposal"])


def test_an_agent_may_reject_its_own_proposal_only(signed_in, memory, known):
    client, _ = signed_in("agent")
    own = memory.writer.acting_as("the-agent", "agent").submit_intent(
        "p", decision(summary="Use spaces", topic="spaces", asserted_by="the-agent"), propose=True
    )
    page = client.get(f"/ui/p/review?item={own.iri}")

    assert re.findall(r'name="act" value="(\w+)"', selected(page)) == ["reject"]
    assert f'name="chosen" value="{own.iri}"' in page.text
    assert f'name="chosen" value="{known["proposal"]}"' not in page.text
    assert "Accept selected" not in page.text
    assert client.post("/ui/p/review", data={"act": "reject", "item": own.iri}).status_code == 303
    assert memory.reader.get_memory("p", own.iri)["status"] == "rejected"


def test_no_reason_is_given_in_advance(client, memory, known):
    path, form = pages(known)["conflict"]
    assert 'id="reason" name="reason" value=""' in client.get(path).text
    memory.writer.acting_as("ana", "curator").submit_intent(
        "p", decision(summary="Use X", topic="x", asserted_by="ana")
    )
    refused = client.post(path, data={"act": "left", "item": form["item"], "other": form["other"], "reason": ""})
    assert (refused.status_code, "say in reason why" in refused.text) == (422, True)


def test_a_settlement_is_undone_from_the_page_that_follows_it(client, memory, known):
    path, form = pages(known)["proposal"]
    for act in ("accept", "reject"):
        done = client.post(path, data={"act": act, **form}, follow_redirects=True).text
        assert f"Done: {act}ed." in done
        (link,) = re.findall(r'<a href="([^"#]*)#undo-reason" data-key="u">Restore', done)
        client.post(link, data={"act": "undo", "reason": f"not to be {act}ed"})
        waiting = client.get("/ui/p/review.json").json["waiting"]
        (form["item"],) = [one["item"] for one in waiting if one["summary"] == "Use tabs"]


def test_a_due_memory_is_accepted_with_a_new_date_if_its_own_date_is_later(client, memory):
    dates = {"expires_on": "2026-01-01", "timestamp": "2026-02-01"}
    item = submit(memory.writer, memory, {"type": "fact", "summary": "The quota is 5", **dates})
    path = f"/ui/p/review?item={item}"
    assert 'type="date"' in client.get(path).text

    refused = client.post(path, data={"act": "accept", "item": item, "reason": "still so"})
    done = client.post(path, data={"act": "accept", "item": item, "reason": "still so", "expires_on": "2999-01-02"})

    assert (refused.status_code, "give the new date" in refused.text) == (400, True)
    assert done.status_code == 303
    (after,) = memory.reader.get_memory("p", item)["superseded_by"]
    assert f"{memory.reader.get_memory('p', after)['properties']['expiresOn'][0]:%Y-%m-%d}" == "2999-01-02"


def test_the_sides_show_evidence_reasons_and_states_as_texts(client, memory, known):
    task = {"type": "task", "summary": "Renew", "expires_on": "2026-01-02", "timestamp": "2026-01-01"}
    first = submit(memory.writer, memory, {**task, "assigned_to": "ann", "evidence": ["a letter"]})
    changes = {"status": "InProgress"}
    item = memory.writer.revise("p", first, changes=changes, reason="bank statement of November").iri

    rows = client.get(f"/ui/p/review.json?item={item}").json["looked_at"]["rows"]

    shown = {row["name"]: "".join(part["text"] for part in row["left"]) for row in rows}
    expected = {
        "derivedFrom": "a letter",
        "revisionReason": "bank statement of November",
        "hasTaskStatus": "InProgress",
    }
    assert {**shown, **expected} == shown
    assert shown["assignedTo"].endswith("ann")


def test_a_merger_from_the_right_side_has_its_topic_and_no_rejected_alternative_of_its_own_choice(client, memory):
    fields = {"about": ["src/s.py"], "type": "architectural_decision", "rationale": "r"}
    left = submit(memory.writer, memory, {
        **fields, "summary": "Use SQLite", "topic": "storage", "alternatives": ["PostgreSQL", "DuckDB"]})  # fmt: skip
    right = submit(memory.writer, memory, {
        **fields, "summary": "Use PostgreSQL", "topic": "store", "alternatives": ["SQLite"]})  # fmt: skip
    ours, theirs = (memory.writer.restated("p", each) for each in (left, right))

    start = review.merged(ours, theirs, "right")
    given = review.together(ours, theirs, {"text": "Use PostgreSQL"})
    written = review.together(ours, theirs, {"text": "Use PostgreSQL", "alternatives": "files\nDuckDB"})

    assert (start["topic"], start["alternatives"]) == ("store", "DuckDB\nSQLite")
    assert given["alternatives"] == ["DuckDB", "SQLite"]
    assert written["alternatives"] == ["files", "DuckDB"]


def test_the_text_of_a_correction_that_comes_too_late_is_shown(client, memory, known):
    path, form = pages(known)["memory"]
    memory.writer.acting_as("ana", "curator").correct("p", known["memory"], supersede="on Tuesdays", reason="moved")

    late = client.post(path, data={"act": "supersede", "summary": "on Mondays", "reason": form["reason"]})

    assert (late.status_code, "readonly>on Mondays<" in late.text) == (409, True)


def test_a_corrected_text_keeps_the_rationale_of_its_form(client, memory, known):
    path = f"/ui/p/memories/{known['right'][-12:]}"
    (given,) = re.findall(r'name="rationale"[^>]*>([^<]*)<', client.get(path).text)
    form = {"act": "supersede", "summary": "Use PostgreSQL 17", "reason": "a typo"}

    assert client.post(path, data={**form, "rationale": given}).status_code == 303

    (after,) = memory.reader.get_memory("p", known["right"])["superseded_by"]
    fields = memory.writer.restated("p", after)
    assert (fields["rationale"], fields["reason"]) == ("it scales", "a typo")


def test_a_memory_page_shows_all_versions_with_their_reasons(client, memory, known):
    item = known["memory"]
    for number in range(3):
        item = memory.writer.correct("p", item, supersede=f"releases {number}", reason=f"measured {number}").iri

    page = client.get(f"/ui/p/memories/{known['memory'][-12:]}")
    history = page.text.partition(">History<")[2].partition("</section>")[0]

    assert re.findall(r"because (?:<[^>]+>)?(measured \d)", history) == ["measured 0", "measured 1", "measured 2"]


def test_the_withdrawal_on_the_page_of_a_restored_memory_has_its_own_reason(client, memory, known):
    restored = memory.writer.acting_as("cur", "curator").undo("p", known["ended"], reason="it is slow after all").iri

    rows = client.get(f"/ui/p/memories/{restored[-12:]}.json").json["linked"]

    (marker,) = [row for each in rows for row in each["rows"] if row["text"].startswith("Withdrawn")]
    assert marker["reason"] == "it is not"


def test_the_other_side_of_a_merger_fills_its_texts_and_keeps_what_else_was_written(client, memory, known):
    path, form = pages(known)["conflict"]
    head, written = memory.catch_up("p"), {"reason": "both were measured", "merged_about": "src/z.py", "text": "mine"}

    for side, text in (("left", "Use SQLite"), ("right", "Use PostgreSQL")):
        page = client.post(path.partition("?")[0], data={**form, **written, "act": f"start-{side}"})
        values = dict(re.findall(r'<textarea id="(\w+)"[^>]*>([^<]*)<', page.text))
        assert (page.status_code, values["text"], values["merged_about"]) == (200, text, "src/z.py")
        assert 'name="reason" value="both were measured"' in page.text
    assert memory.catch_up("p") == head
