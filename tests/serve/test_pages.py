"""The curator's pages in a real browser, on a project with a thousand memories."""

from urllib.parse import quote

import pytest
from curator_browser import NARROW, WIDE, browser, needs_browser, reset_window
from curator_pictures import HEIGHT, PICTURES, WIDTH, address, size_of, small, take
from pages_world import HOSTILE, NAMED, fill, serving
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

pytestmark = needs_browser
#: A window of 1280 by 1024 at four times the size.
ENLARGED = (320, 256)
#: Elements that our pages never contain, addresses that are scripts, and whether a script changed the title.
ACTIVE_CONTENT = """const ours = /^(https?:|\\/|#|$|\\?)/;
const foreign = "svg, math, iframe, object, embed, base, [onload], [onerror], [onclick]";
const led = ["href", "src", "action", "hx-get"].flatMap((name) => [...document.querySelectorAll(`[${name}]`)]
  .filter((each) => !ours.test(each.getAttribute(name).trim().toLowerCase())));
return {
  acting: [...document.querySelectorAll(foreign), ...led].map((each) => each.outerHTML.slice(0, 200)),
  title: document.title === "owned",
};"""
EDITOR_TEXT = "return document.querySelector('.CodeMirror').CodeMirror.getValue()"
ANIMATED = """return [...document.querySelectorAll("*")].filter((each) => {
  const style = getComputedStyle(each);
  return parseFloat(style.transitionDuration) > 0.01 || parseFloat(style.animationDuration) > 0.01;
}).map((each) => each.outerHTML.slice(0, 100));"""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The IRIs of the memories, and the URL they are served at."""
    root = tmp_path_factory.mktemp("pages") / "root"
    known = fill(root)
    with serving(root) as server:
        yield known, server.url


@pytest.fixture(scope="module")
def window(world):
    with browser(world[1]) as opened:
        yield opened


@pytest.fixture
def pages(window):
    """The browser, wide and light, without console messages."""
    yield from reset_window(window)


@pytest.mark.parametrize("name", PICTURES)
def test_each_screen_is_pictured_and_accessible_in_light_and_dark_and_on_a_narrow_window(pages, world, name):
    known, _ = world
    picture = take(pages, known, name)
    assert size_of(picture)[:2] == (WIDTH, HEIGHT)

    pages.open_details()
    for scheme, size, motion in (("light", WIDE, "no-preference"), ("dark", NARROW, "reduce")):
        pages.scheme(scheme, motion)
        pages.size(*size)
        assert pages.violations() == []
        assert pages.overflow() <= 0
    assert pages.driver.execute_script(ANIMATED) == []
    pages.size(*ENLARGED)
    assert pages.overflow() <= 0


LINES = """return [...document.querySelectorAll("tbody tr td:first-child .text")].map(
  (each) => Math.round(each.getBoundingClientRect().height / parseFloat(getComputedStyle(each).lineHeight)))"""


def test_a_name_of_one_word_is_not_broken_in_a_narrow_column(pages):
    pages.size(WIDTH, HEIGHT)
    pages.open("/ui/p/health")

    assert pages.find("tbody tr td:first-child").text == "unknown"
    assert set(pages.driver.execute_script(LINES)) == {1}


def test_a_screenshot_for_the_docs_has_a_palette_and_fewer_bytes(pages, world):
    known, _ = world
    picture = take(pages, known, "review")

    compressed = small(pages, picture)

    assert (size_of(compressed), len(compressed) < len(picture)) == ((WIDTH, HEIGHT, 3), True)


def test_a_memory_is_found_by_filter_and_by_words(pages, world):
    known, _ = world
    pages.open("/")
    assert pages.path == "/ui/p/timeline"
    pages.follow(pages.link("Lesson learned").click)
    assert {each.text for each in pages.find_all(".card .kind")} == {"Lesson learned"}

    pages.open("/ui/p/timeline")
    pages.press("/")
    pages.follow(pages.press, "oxigraph index store", Keys.ENTER)
    pages.follow(pages.link("Use Oxigraph for the index").click)

    assert pages.path == address(known, "memory")
    assert "it embeds" in pages.text()


def test_the_link_earlier_extends_the_same_page(pages, world):
    pages.open("/ui/p/timeline")
    first = [each.get_attribute("href") for each in pages.find_all(".card h3 a")]

    pages.link("Earlier").click()
    pages.wait_until(lambda: len(pages.find_all(".card h3 a")) == 2 * len(first))

    links = [each.get_attribute("href") for each in pages.find_all(".card h3 a")]
    assert links[: len(first)] == first
    assert len({*links}) == 2 * len(first)
    assert len(pages.find_all(".further")) == 1
    assert pages.path == "/ui/p/timeline"


def test_a_memory_is_superseded_and_restored_by_keyboard(pages, world):
    known, _ = world
    pages.open(address(known, "memory"))
    pages.focus_by_tab(".acts details:first-of-type summary")
    pages.press(Keys.ENTER)
    pages.focus_by_tab("#supersede-summary")
    pages.press(Keys.CONTROL + "a", "Use Qlever for the index", Keys.TAB, Keys.TAB)  # past the rationale
    pages.follow(pages.press, "it answers faster", Keys.ENTER)

    assert pages.shows("Use Qlever for the index", "h1")
    assert "it answers faster" in pages.text()
    pages.follow(pages.link("Use Oxigraph for the index").click)
    assert "superseded" in pages.text(".facts")

    pages.focus_by_tab(".acts summary")
    pages.press(Keys.ENTER)
    pages.focus_by_tab("#undo-reason")
    pages.follow(pages.press, "it does not answer faster", Keys.ENTER)
    assert pages.shows("active", ".facts")
    assert pages.text("h1") == "Use Oxigraph for the index"
    assert "active" in pages.text(".facts")


def test_a_correction_without_a_reason_is_refused_and_its_form_keeps_the_text(pages, world):
    known, _ = world
    pages.open(f"/ui/p/memories/{known['long'][-12:]}")
    pages.driver.execute_script("document.querySelectorAll('[required]').forEach(each => each.required = false)")
    pages.find_all(".acts summary")[0].click()
    box = pages.find("#supersede-summary")
    box.clear()
    box.send_keys("A short one")
    box.submit()

    assert pages.shows("a correction needs a reason", "[role=alert]")
    assert pages.find("#supersede-summary").get_attribute("value") == "A short one"
    pages.console_messages()  # the browser reports the status


def test_conflicts_are_settled_by_one_key_each(pages, world):
    known, _ = world
    pages.open("/ui/p/review")
    assert [each.text for each in pages.find_all("tr.differs:first-of-type mark")] == ["SQLite", "PostgreSQL"]

    def explain(why="#reason", text="measured"):
        pages.find(why).send_keys(text)
        pages.driver.execute_script("document.activeElement.blur()")

    explain()
    pages.follow(ActionChains(pages.driver).double_click(pages.find("button[value=left]")).perform)
    assert pages.shows("left", ".done")
    repeated_key = "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'l', repeat: true, bubbles: true}))"
    pages.driver.execute_script(repeated_key)
    explain()
    pages.follow(pages.press, "r")
    assert pages.shows("right", ".done")
    assert pages.find("#text").get_attribute("value") == ""
    explain()
    pages.follow(pages.find("fieldset button").click)
    assert pages.find("#text").get_attribute("value").startswith("Use SQLite")
    assert pages.find("#reason").get_attribute("value") == "measured"
    pages.find("#text").clear()
    explain("#text", "Use DuckDB for part 2")
    pages.follow(pages.press, "m")
    assert pages.shows("merge", ".done")
    explain("#about", "src/part3.py")
    explain()
    pages.follow(pages.press, "b")
    assert pages.shows("both", ".done")

    def status(name):
        pages.open(f"/ui/p/memories/{quote(known[name], safe='')}")
        return pages.text(".facts .status")

    assert (status("left 0"), status("right 0")) == ("active", "invalidated")
    assert (status("left 1"), status("right 1")) == ("invalidated", "active")
    assert (status("left 2"), status("right 2")) == ("superseded", "superseded")
    assert "Use DuckDB for part 2" in pages.text()
    assert (status("left 3"), status("right 3")) == ("superseded", "active")


def test_a_key_without_a_reason_moves_the_focus_to_the_reason(pages, world):
    pages.open("/ui/p/review")
    pages.follow(pages.press, "l")

    assert pages.shows("say in", "[role=alert]")
    pages.press("measured", Keys.TAB)
    assert pages.find("#reason").get_attribute("value") == "measured"
    pages.follow(pages.press, Keys.ENTER)
    assert pages.shows("left", ".done")
    pages.console_messages()  # the browser reports the status


def test_the_keys_j_and_slash_move_in_the_review_and_to_the_search(pages, world):
    pages.open("/ui/p/review")
    for number in (1, 2):
        pages.press("j")
        focused = "return document.activeElement.closest('.card') === document.querySelectorAll('.card')[arguments[0]]"
        assert pages.driver.execute_script(focused, number - 1)
    pages.follow(pages.press, "/")
    assert pages.find("#q").is_displayed()


def test_single_letter_keys_are_turned_off_and_on(pages, world):
    repeated_keys = """return ["l", "r"].map((key) => {
      const event = new KeyboardEvent("keydown", {key, repeat: true, bubbles: true, cancelable: true});
      document.body.dispatchEvent(event);
      return event.defaultPrevented; // then it is a key of ours
    });"""
    for switch, is_ours in ((lambda: None, True), (lambda: pages.find("#keys").click(), False)):
        pages.open("/ui/p/review")
        switch()
        for _ in range(2):
            assert pages.driver.execute_script(repeated_keys) == [is_ours] * 2
            assert (pages.find("#keys").is_selected(), pages.find(".settle kbd").is_displayed()) == (is_ours, is_ours)
            pages.open("/ui/p/review")
    pages.open("/ui/p/timeline")
    pages.press("/")
    assert pages.driver.switch_to.active_element.get_attribute("id") != "q"
    pages.find("#keys").click()
    pages.open("/ui/p/review")
    assert pages.driver.execute_script(repeated_keys) == [True] * 2


def test_selected_proposals_are_settled_together(pages, world):
    known, _ = world
    pages.open("/ui/p/review")
    for _ in range(10):
        if "Proposal 0" in pages.text():
            break
        pages.follow(pages.link("More").click)
    for box in pages.find_all("input[name=chosen]"):
        if box.get_attribute("value") in (known["proposal 0"], known["proposal 1"]):
            box.click()
    pages.find("#batch-reason").send_keys("both were looked at")
    pages.follow(pages.find("form[aria-label] button[value=accept]").click)

    assert pages.shows("2 together", ".done")
    pages.open(f"/ui/p/memories/{quote(known['proposal 1'], safe='')}")
    assert pages.text(".facts .status") == "superseded"  # by the asserted memory of the same text


def test_the_address_of_a_playbook_answer_gives_the_same_answer(pages, world):
    pages.open("/ui/p/playbook")
    pages.follow(pages.link("Which tasks given to one agent").click)
    assert "Fill in" in pages.text()
    pages.follow(pages.find("#p-agent").send_keys, "planner", Keys.ENTER)
    rows = [each.text for each in pages.find_all("tbody tr")]
    assert rows
    answer_path = pages.path

    pages.open(answer_path)
    assert [each.text for each in pages.find_all("tbody tr")] == rows
    assert "SELECT" in pages.find("pre").get_attribute("textContent")


def test_the_editor_of_the_console_has_the_background_of_the_page_in_light_and_dark(pages, world):
    background = "return getComputedStyle(arguments[0]).backgroundColor"
    backgrounds = set()
    for scheme in ("light", "dark"):
        pages.scheme(scheme)
        pages.open("/ui/p/console")
        editor, header = (
            pages.driver.execute_script(background, pages.find(each)) for each in (".CodeMirror", "header")
        )
        assert editor == header
        backgrounds.add(editor)
    assert len(backgrounds) == 2


def test_a_query_is_run_in_the_console_and_its_terms_are_completed(pages, world):
    pages.open("/ui/p/console")
    pages.find("#ask").click()
    assert len(pages.find_all("#answers tbody tr")) >= 10
    link = pages.find("#answers td a").get_attribute("href")
    assert link.startswith(f"{pages.url}/ui/p/memories/")

    escaped = 'SELECT ("a\\u061Cb\\u202Ec\\u200Bd\\u2066e\\u0001f\\u200Dg" AS ?x) {}'
    pages.driver.execute_script("document.querySelector('.CodeMirror').CodeMirror.setValue(arguments[0])", escaped)
    pages.find("#ask").click()
    assert pages.shows("a⟨U+061C⟩b⟨U+202E⟩c⟨U+200B⟩d⟨U+2066⟩e␁f\u200dg", "#answers")

    pages.driver.execute_script("document.querySelector('.CodeMirror').CodeMirror.setValue('ASK { ?x a jido:Lesson')")
    pages.driver.execute_script(
        "const editor = document.querySelector('.CodeMirror').CodeMirror; editor.focus();"
        "editor.setCursor(0, 100); editor.autocomplete()"
    )
    assert "jido:LessonLearned" in [each.text for each in pages.find_all(".CodeMirror-hint")]


def test_every_page_shows_the_chosen_past_until_the_link_back_to_now(pages, world):
    pages.open("/ui/p/timeline?state=active")
    slide = pages.find("#as-of-slide")
    pages.driver.execute_script("arguments[0].focus()", slide)
    pages.follow(pages.press, Keys.HOME)
    assert pages.shows("Past state", ".moment")
    assert "as_of=2026-11-01" in pages.path
    assert "state=active" in pages.path
    assert "Past state" in pages.text(".moment")
    pages.follow(pages.find(".card h3 a").click)
    assert pages.shows("Rules")
    assert pages.path.startswith("/ui/p/memories/")
    assert "Past state" in pages.text(".moment")
    assert not pages.has(".acts")
    pages.follow(pages.link("Back to now").click)
    assert pages.shows("Correct")
    assert "Past state" not in pages.text(".moment")


def test_the_text_of_an_agent_is_shown_escaped(pages, world):
    known, _ = world
    pages.open(f"/ui/p/memories/{quote(known['hostile'], safe='')}")

    assert "owned" not in pages.driver.title.partition("<")[0]
    assert "{{ 7 * 7 }}" in pages.text("h1")
    assert "⟨U+202E⟩desrever" in pages.text("h1")
    assert "<script>" in HOSTILE
    assert "<script>" in pages.text("h1")
    links = [each.get_attribute("href") for each in pages.find_all("main a")]
    assert links
    assert not [link for link in links if not link.startswith(pages.url)]


def hostile_paths(known):
    """The pages that show the text of agents, and addresses that contain it."""
    items = [quote(known[name], safe="") for name in ("hostile", "named")]
    for item in items:
        yield from (f"memories/{item}", f"memories/{item}?whole=true", f"graph?item={item}&depth=1")
    words = quote(NAMED, safe="")
    yield from ("timeline?agent=architect", "timeline?q=script", "graph", "agents", "health", "check")
    yield from ("playbook/facts", f"playbook/facts-about?topic={words}", f"playbook/tasks-of-agent?agent={words}")
    for name in ("q", "agent", "kind", "session"):
        yield f"timeline?{name}={words}"
    yield from (f"graph?topic={words}", f"console?query={words}", f"timeline?as_of={words}", f"review?done={words}")
    yield from (f"memories/{words}", f"ontology/{words}", f"playbook/{words}", f"{words}", f"review?{words}={words}")


def test_hostile_text_is_inactive_on_every_page(pages, world):
    known, _ = world
    pages.foreign_requests()
    for path in hostile_paths(known):
        pages.open(f"/ui/p/{path}")
        active = pages.driver.execute_script(ACTIVE_CONTENT)
        assert (active["acting"], active["title"]) == ([], False), path
        assert pages.overflow() <= 0, path
        messages = [each for each in pages.console_messages() if "Failed to load resource" not in each]
        assert (messages, pages.foreign_requests()) == ([], []), path


def test_a_megabyte_of_text_is_truncated_on_its_page_and_complete_behind_a_link(pages, world):
    known, _ = world
    pages.open(f"/ui/p/memories/{quote(known['a megabyte'], safe='')}")
    small = len(pages.driver.page_source)
    assert small < 60_000
    assert pages.text().count("the first 4,000 of") == 4

    pages.follow(pages.link("show all").click)
    assert pages.driver.execute_script("return document.querySelector('main').textContent.length") > 1_000_000
    for path in ("timeline", "graph", "playbook/facts?limit=5", "ontology", "review"):
        pages.open(f"/ui/p/{path}")
        assert len(pages.driver.page_source) < 400_000


def test_pages_work_without_scripts(pages, world):
    known, _ = world
    pages.run_scripts(False)
    for name in PICTURES:
        pages.open(address(known, name))
        assert len(pages.text()) > 80, name
    pages.open("/ui/p/timeline")
    pages.follow(pages.link("Earlier").click)
    assert "after=" in pages.path
    pages.follow(pages.find("#q").send_keys, "certificate", Keys.ENTER)
    pages.follow(pages.link("The certificate holds").click)
    assert "review due since" in pages.text()
    assert pages.find_all("#as-of-slide[hidden]")

    for act, text, status in (
        ("confirm", "The memory is confirmed.", "active"),
        ("supersede", "This is the new memory.", "active"),
        ("invalidate", "The memory is withdrawn.", "invalidated"),
        ("undo", "The memory is active again.", "active"),
    ):
        pages.find(f"details:has(#{act}-reason) summary").click()
        pages.follow(pages.find(f"#{act}-reason").send_keys, "so it was decided", Keys.ENTER)
        assert (pages.text(".done"), pages.text(".facts .status")) == (f"Done. {text}", status)
    pages.open("/ui/p/console?as_of=2026-11-20")
    assert pages.find("#query").is_displayed()
    pages.follow(pages.find(".projects button").click)
    assert pages.path == f"/ui/p/timeline?as_of={quote('2026-11-20T00:00:00.000000Z', safe='')}"


def test_a_curator_searches_settles_undoes_queries_and_looks_back_by_keyboard(pages, world):
    pages.foreign_requests()
    pages.open("/")
    pages.press("/")
    pages.follow(pages.press, "oxigraph index store", Keys.ENTER)
    assert pages.shows("found, the best first")
    pages.press("j")
    pages.follow(pages.press, Keys.ENTER)
    assert pages.text("h1") == "Use Oxigraph for the index"

    pages.follow(pages.link("Review").click)
    right = pages.text(".compared tbody td:last-child")
    pages.find("#reason").send_keys("it is embedded")
    pages.driver.execute_script("document.activeElement.blur()")
    pages.follow(pages.press, "l")
    assert pages.shows("left", ".done")
    pages.follow(pages.press, "u")
    assert (pages.text("h1"), pages.text(".facts .status")) == (right, "invalidated")
    assert pages.driver.switch_to.active_element.get_attribute("id") == "undo-reason"
    pages.follow(pages.press, "both were measured again", Keys.ENTER)
    assert pages.shows("active again.", ".done")
    assert pages.text(".facts .status") == "active"

    pages.follow(pages.link("Playbook").click)
    pages.follow(pages.link("Which lessons were learned, newest first?").click)
    assert pages.find_all("tbody tr")

    pages.follow(pages.link("Console").click)
    pages.find(".CodeMirror").click()
    pages.press(Keys.CONTROL + "a")
    pages.press("PREFIX jido: <https://jido.ai/ontology#> ASK { ?a a jido:LessonL", Keys.CONTROL + Keys.SPACE)
    pages.wait_until(lambda: "jido:LessonLearned" in pages.text(".CodeMirror-hints"))
    assert pages.violations() == []
    pages.press(Keys.ENTER, " }")
    assert "jido:LessonLearned }" in pages.driver.execute_script(EDITOR_TEXT)
    pages.press(Keys.CONTROL + Keys.ENTER)
    assert pages.shows("Yes.", "#answers")

    pages.follow(pages.link("Timeline").click)
    now = pages.text("#days h2")
    pages.driver.execute_script("document.getElementById('as-of-slide').focus()")
    pages.follow(pages.press, Keys.HOME)
    assert pages.shows("Past state", ".moment")
    assert pages.text("#days h2") != now
    pages.follow(pages.link("Back to now").click)
    assert pages.text("#days h2").startswith("Sunday, 22 November 2026")  # the restored memory is of today
    assert (pages.console_messages(), pages.foreign_requests()) == ([], [])
