"""Access to the curator's pages: sign-in, origins of forms, loaded resources, vendored files and refusals."""

import base64
import csv
import hashlib
import io
import json
import re
from pathlib import Path

import pytest
from conftest import decision, intent
from werkzeug.routing import Map

from jidomem.extras.web import pages
from jidomem.extras.web.pages import SCREENS
from jidomem.runtime.settings import own_config
from jidomem.runtime.tokens import Keyring
from jidomem.serve.app import create_app

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
#: The name for each page about one named thing.
NAMES = {"playbook": "open-tasks", "ontology": "Decision"}
VENDORED = Path(pages.__file__).parent / "vendored"


@pytest.fixture
def item(memory):
    """The memory that the pages show."""
    return memory.writer.submit_intent("p", decision(summary="Use Oxigraph", topic="store")).iri


@pytest.fixture
def browser(memory, item):
    """A client on a memory without tokens."""
    return create_app(memory).test_client()


@pytest.fixture
def signed_in(memory, item):
    """Return a function that signs in with a new token of a role; it returns the client and the answer of the sign-
    in.
    """
    memory.writer.submit_intent("q", intent(applies_to_project="q"))
    root = memory.settings.root

    def sign_in(role, projects=("p",)):
        secret, _ = Keyring(own_config(), root).issue(f"the-{role}", role, projects, memory.sources)
        opened = create_app(memory, keyring=Keyring(own_config(), root)).test_client()
        return opened, opened.post("/ui/sign-in", data={"token": secret, "next": "/ui/p/timeline?state=active"})

    return sign_in


def supersede(sign_in, item, **headers):
    form = {"act": "supersede", "summary": "Use Qlever", "reason": "faster"}
    return sign_in.post(f"/ui/p/memories/{item[-12:]}", data=form, headers=headers)


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost"},
    ],
)
def test_a_form_from_another_origin_is_refused_and_changes_nothing(browser, memory, item, headers):
    answer = supersede(browser, item, **headers)

    assert (answer.status_code, answer.mimetype) == (403, "text/html")
    assert "another origin" in answer.text or "a page of" in answer.text
    assert memory.reader.get_memory("p", item)["status"] == "active"


@pytest.mark.parametrize("headers", [{"Sec-Fetch-Site": "same-origin"}, {"Origin": "http://localhost"}, {}])
def test_a_form_of_the_own_origin_is_accepted(browser, memory, item, headers):
    answer = supersede(browser, item, **headers)

    assert answer.status_code == 303
    assert memory.reader.get_memory("p", item)["status"] == "superseded"


def test_a_form_as_json_or_with_unknown_fields_is_refused(browser, memory, item):
    path = f"/ui/p/memories/{item[-12:]}"

    assert browser.post(path, json={"act": "confirm"}).status_code == 415
    answer = browser.post(path, data={"act": "confirm", "reason": "x", "resaon": "y"})
    assert (answer.status_code, "did you mean &#39;reason&#39;" in answer.text) == (400, True)
    assert memory.reader.get_memory("p", item)["status"] == "active"


def test_every_page_allows_own_resources_alone_and_no_frame(browser, item):
    for path in ("/ui/p/timeline", f"/ui/p/memories/{item[-12:]}", "/ui/p/nothing", "/ui/none/timeline"):
        answer = browser.get(path)
        policy = dict(each.strip().partition(" ")[::2] for each in answer.headers["Content-Security-Policy"].split(";"))
        assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
        assert policy["script-src"] == "'self'"
        assert "unsafe" not in str(policy)
        assert not re.search(r"\son\w+=|\sstyle=|<style|<script>", answer.text)
        assert not re.search(r'(?:src|href|action)="(?!/|#)[^"]', answer.text)


def test_pages_without_a_token_redirect_to_the_sign_in(signed_in):
    sign_in, answer = signed_in("curator")
    stranger = sign_in.application.test_client()

    for path in ("/ui", "/ui/p/timeline", "/ui/none/timeline"):
        redirect = stranger.get(path)
        assert (redirect.status_code, redirect.headers["Location"].partition("?")[0]) == (303, "/ui/sign-in")
        assert stranger.get("/ui/p/timeline.json").status_code == 401
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert "Path=/ui" in cookie
    assert answer.headers["Location"] == "/ui/p/timeline?state=active"
    assert sign_in.get("/ui/p/timeline").status_code == 200
    assert sign_in.get("/projects/p").status_code == 401  # the cookie opens the pages alone


def test_an_invalid_token_is_refused_and_redirects_stay_within_the_pages(signed_in):
    sign_in, _ = signed_in("curator")
    stranger = sign_in.application.test_client()

    home = stranger.get("/")  # the address that the server prints
    assert (home.status_code, home.headers["Location"]) == (303, "/ui")
    assert stranger.get(stranger.get("/ui").headers["Location"]).status_code == 200
    assert stranger.post("/ui/sign-in", data={"token": "nonsense"}).status_code == 401
    for page in ("https://evil.example/", "//evil.example/", "/projects/p", "/ui/\\evil", "/uix"):
        assert stranger.get("/ui/sign-in", query_string={"next": page}).status_code == 400
        assert stranger.post("/ui/sign-in", data={"token": "nonsense", "next": page}).status_code == 400


def test_a_signed_out_client_is_redirected(signed_in):
    sign_in, _ = signed_in("curator")

    sign_in.post("/ui/sign-out", headers=FORM)

    assert sign_in.get("/ui/p/timeline").status_code == 303


def test_a_project_is_hidden_from_tokens_of_other_projects(signed_in):
    sign_in, _ = signed_in("curator")

    answer = sign_in.get("/ui/q/timeline")

    assert (answer.status_code, "no project" in answer.text) == (404, True)
    assert ">q<" not in sign_in.get("/ui/p/timeline").text


def test_a_reader_corrects_nothing_and_a_curator_corrects_under_the_name_of_the_token(signed_in, memory, item):
    reader, _ = signed_in("reader")
    assert supersede(reader, item).status_code == 403
    assert memory.reader.get_memory("p", item)["status"] == "active"

    curator, _ = signed_in("curator")
    newer = supersede(curator, item).headers["Location"]
    detail = curator.get(newer.replace("?", ".json?"))
    assert detail.json["agent"] == "the-curator"


def test_a_correction_at_a_past_moment_is_refused(browser, memory, item):
    answer = browser.post(
        f"/ui/p/memories/{item[-12:]}?as_of=2030-01-01", data={"act": "confirm", "reason": "it still holds"}
    )

    assert (answer.status_code, "past states are read-only" in answer.text) == (400, True)


def test_every_page_has_a_json_form(browser, item):
    for screen in SCREENS:
        path = f"/ui/p/{screen.path.replace('{id}', item[-12:]).replace('{name}', NAMES.get(screen.name, ''))}"
        json_form = browser.get(f"{path}.json")
        assert (json_form.status_code, json_form.json["project"]) == (200, "p")
        assert browser.get(path).mimetype == "text/html"
    assert browser.get(f"/ui/p/memories/{item[-12:]}.ttl").mimetype == "text/turtle"
    assert browser.get(f"/ui/p/memories/{item[-12:]}.jsonld").json


def test_properties_and_values_are_shown_by_label_and_linked_by_iri(browser, memory):
    values = intent(type="task", detailed_explanation="it is slow", status="planned")
    task = memory.writer.submit_intent("p", values).iri

    page = browser.get(f"/ui/p/memories/{task[-12:]}").text

    for name, label in (("detailedExplanation", "detailed explanation"), ("Planned", "planned")):
        link = f'href="/ui/p/ontology/https%3A%2F%2Fjido.ai%2Fontology%23{name}"'
        assert re.search(f'{link} title="https://jido.ai/ontology#{name}">{label}</a>', page)
    assert "detailed explanation</a> <code>jido:detailedExplanation</code>" in browser.get("/ui/p/ontology").text


def test_the_page_runs_the_check_and_shows_its_rules(browser, memory, root, item):
    assert browser.get("/ui/p/check.json").json["at"] is None
    file = next(path for path in sorted(root.rglob("*.ttl")) if b"Use Oxigraph" in path.read_bytes())
    file.write_bytes(file.read_bytes().replace(b"Use Oxigraph", b"Use Oxygraph"))

    assert browser.post("/ui/p/check", data={"act": "check"}).status_code == 303

    report = browser.get("/ui/p/check.json").json
    assert not report["conforms"]
    assert "JournalIsIntact" in [rule["name"] for rule in report["rules"]]
    assert "JournalIsIntact" in browser.get("/ui/p/check").text


def test_proposed_terms_are_accepted_mapped_or_refused(browser, memory):
    for name in ("Recipe", "Soup", "Stew"):
        memory.term_proposals("p").propose(
            name, kind="class", parents=["Fact"], definition=f"{name}.", reason="we cook"
        )
    pending = {
        each["term"].rpartition("#")[2]: each["term"] for each in browser.get("/ui/p/ontology.json").json["proposals"]
    }

    def settle(name, **fields):
        return browser.post("/ui/p/ontology", data={"term": pending[name], **fields})

    assert settle("Recipe", act="accept").status_code == 303
    assert settle("Soup", act="map", instead="LessonLearned", reason="it is one").status_code == 303
    assert settle("Stew", act="map", instead="Lessonlearned").status_code == 404
    assert settle("Stew", act="refuse").status_code == 400
    assert settle("Stew", act="refuse", reason="too much").status_code == 303
    outcomes = {each.term.rpartition("#")[2]: (each.outcome, each.answer) for each in memory.term_proposals("p").all()}
    assert outcomes["Recipe"][0] == "accepted"
    assert outcomes["Soup"] == ("rejected", "use jido:LessonLearned: it is one")
    assert outcomes["Stew"] == ("rejected", "too much")


def test_vendored_files_match_their_digests_and_have_a_licence():
    lock = json.loads((VENDORED / "lock.json").read_text())
    files = {file["name"]: file["sha256"] for package in lock["packages"] for file in package["files"]}

    assert files.keys() == {path.name for path in VENDORED.iterdir()} - {"lock.json"}
    for name, digest in files.items():
        assert hashlib.sha256((VENDORED / name).read_bytes()).hexdigest() == digest
    for package in lock["packages"]:
        kind, _, digest = package["integrity"].partition("-")
        assert (kind, len(base64.b64decode(digest))) == ("sha512", 64)
        assert package["version"]
        assert package["licence"] in ("MIT", "0BSD", "BSD-3-Clause", "Apache-2.0")
        assert any("LICENSE" in file["from"] or file["from"] == "package.json" for file in package["files"])


def test_an_asset_is_cached_forever_under_the_address_of_its_version_alone(browser):
    path = pages.address("pages.css")
    answer = browser.get(path)

    assert answer.headers["Content-Type"] == "text/css; charset=utf-8"
    assert "immutable" in answer.headers["Cache-Control"]
    assert browser.get(path.replace("/assets/", "/assets/0")).status_code == 404
    assert browser.get(path.rpartition("/")[0] + "/lock.json").status_code == 404


def test_pages_of_a_project_named_like_a_part_of_the_addresses_are_found(memory):
    memory.writer.submit_intent("assets", intent(applies_to_project="assets"))
    sign_in = create_app(memory).test_client()

    assert sign_in.get("/ui/assets/timeline").status_code == 200
    assert pages.PAGES


FORMULAS = ("=1+1", "+SUM(1)", "-cmd|' /C calc'!A0", "@x", "\uff1d1+1")


def test_formulas_of_agents_are_escaped_in_csv(browser, memory):
    for text in FORMULAS:
        memory.writer.submit_intent("p", intent(summary=text))
    query = "SELECT ?text (-5 AS ?n) WHERE { ?x <https://jido.ai/ontology#summary> ?text }"

    fields = {"query": query, "format": "csv"}
    answers = [browser.get("/ui/p/playbook/facts.csv"), browser.get("/ui/p/sparql", query_string=fields)]
    answers.append(browser.post("/ui/p/sparql", data=fields))

    for answer in answers:
        assert (answer.status_code, answer.mimetype) == (200, "text/csv")
        cells = [cell for row in csv.reader(io.StringIO(answer.text)) for cell in row]
        assert {f"'{text}" for text in FORMULAS} <= {*cells}
        assert not [cell for cell in cells if cell[:1] in "=+@\uff1d" and cell]
    assert "-5" in cells  # a number remains one


def test_an_internal_error_is_reported_as_a_page_and_as_json_without_a_traceback(memory, item, capsys):
    app = create_app(memory)
    rules = app.url_map.iter_rules()  # of the map that all applications of a process share
    app.url_map = Map([rule.empty() for rule in rules], converters=app.url_map.converters)
    for path in ("/ui/p/broken", "/ui/p/broken.json"):
        app.add_url_rule(path, path, lambda: 1 / 0)
    sign_in = app.test_client()

    page, json_form = sign_in.get("/ui/p/broken"), sign_in.get("/ui/p/broken.json")

    assert (page.status_code, page.mimetype, json_form.status_code) == (500, "text/html", 500)
    assert 'class="brand"' in page.text
    assert "Internal error" in page.text
    assert "Traceback" not in page.text + json_form.text
    assert json_form.json["code"] == "internal_error"
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/ui/p/nothing", 404),
        ("/ui/p/memories/nothing", 404),
        ("/ui/p/timeline?as_of=x", 400),
        ("/ui/p/timeline?x=1", 400),
        ("/ui/p/timeline?q=%ff", 400),
        ("/ui/p/review?done=your+token+ran+out", 400),
        ("/ui/p/review?done=left,+999+together", 400),
        ("/ui/p/review?done=left", 400),
        ("/ui/p/review?ended=x", 400),
        ("/ui/p/ontology?done=accept,+3+together", 400),
        ("/ui/p/playbook/nothing", 404),
        ("/ui/none/timeline", 404),
        ("/ui/p/timeline/", 404),
    ],
)
def test_a_refusal_is_a_page_and_for_the_json_form_a_problem(browser, path, status):
    page = browser.get(path)
    address, _, query = path.partition("?")
    json_form = browser.get(f"{address.rstrip('/')}.json?{query}" if not address.endswith("/") else f"{address}.json")

    assert (page.status_code, page.mimetype) == (status, "text/html")
    assert 'class="brand"' in page.text
    assert "Hint:" in page.text
    assert not re.search(r"(?<!in a shell, )jidomem ask", page.text)  # a page names requests
    assert (json_form.status_code, json_form.mimetype) == (status, "application/problem+json")
    assert browser.put(address).mimetype == "text/html"


def test_the_done_message_is_shown_for_the_changed_memory_alone(browser, memory, item):
    path = f"/ui/p/memories/{item[-12:]}"

    other = memory.writer.submit_intent("p", decision(summary="Use Flask", topic="web")).iri
    done = browser.post(path, data={"act": "invalidate", "reason": "so it was decided"}).headers["Location"]

    assert 'class="done"' in browser.get(done).text
    assert browser.get(done.replace("?", ".json?")).json["done"] == "invalidate"
    name = done.partition("?")[2]
    for page in (f"{path}?{name}", f"/ui/p/memories/{other[-12:]}?{name}", f"{path}?done={'0' * 16}"):
        assert (browser.get(page).status_code, 'class="done"' in browser.get(page).text) == (200, False)


def test_a_refusal_at_a_past_moment_links_to_pages_of_that_moment(browser, item):
    page = browser.get(f"/ui/p/memories/{item[-12:]}?as_of=2020-01-01")

    assert (page.status_code, "<strong>Past state:</strong>" in page.text) == (404, True)
    assert 'href="/ui/p/review?as_of=2020-01-01T00:00:00.000000Z"' in page.text
    assert "Past state" not in browser.get("/ui/p/nothing?as_of=x").text


def test_present_data_on_a_page_of_the_past_is_marked(browser, item):
    browser.post("/ui/p/check", data={"act": "check"})
    for name in ("check", "agents", "ontology", "health"):
        words = re.compile(r"not that of|not those of that time|the present ones")
        assert words.search(browser.get(f"/ui/p/{name}?as_of=2030-01-01").text), name
        assert not words.search(browser.get(f"/ui/p/{name}").text), name


def test_the_project_menu_keeps_the_moment_on_every_screen(browser, memory, item):
    memory.writer.submit_intent("q", intent(applies_to_project="q"))
    for screen in SCREENS:
        path = screen.path.replace("{id}", item[-12:]).replace("{name}", NAMES.get(screen.name, ""))
        page = browser.get(f"/ui/p/{path}?as_of=2100-01-01").text
        [target] = re.findall(r'data-goes="([^"]+)"', page)
        assert target.endswith("?as_of=2100-01-01T00:00:00.000000Z")
        assert browser.get(target.format("q")).status_code == 200
    query = {"project": "q", "as_of": "2100-01-01"}
    redirect = browser.get("/ui", query_string=query)
    assert redirect.headers["Location"] == "/ui/q/timeline?as_of=2100-01-01T00%3A00%3A00.000000Z"


def test_the_console_answers_refusals_as_json_and_its_form_as_a_page(browser, item):
    fields = {"query": "SELECT"}

    assert browser.post("/ui/p/sparql", data=fields).mimetype == "application/problem+json"
    page = browser.post("/ui/p/sparql", data=fields, headers={"Accept": "text/html,*/*;q=0.8"})
    assert (page.status_code, page.mimetype) == (400, "text/html")


@pytest.mark.parametrize(
    ("question", "query", "field", "message"),
    [
        ("tasks-of-agent", "agent=https://%3Cx%3E", "agent", "is not an IRI"),
        ("derived", "item=nothing+of+the+kind", "item", "no memory"),
    ],
)
def test_a_mistyped_parameter_is_marked_at_its_field(browser, question, query, field, message):
    page = browser.get(f"/ui/p/playbook/{question}?{query}")
    json_form = browser.get(f"/ui/p/playbook/{question}.json?{query}")

    assert (page.status_code, json_form.status_code) == (json_form.status_code, json_form.json["status"])
    assert json_form.mimetype == "application/problem+json"
    marked = re.search(r'<input id="p-(\w+)"[^>]* value="[^"]+"[^>]* aria-describedby="f-\1">', page.text)
    assert marked, page.text
    assert marked[1] == field
    fault = re.search(rf'id="f-{field}" role="alert">(.*?)</span>', page.text, re.DOTALL)
    assert fault
    assert message in fault[1]
    assert "Correct the marked fields" in page.text
