"""The curator's pages in a real browser, on a project with two thousand memories."""

from urllib.parse import quote

import pytest
from curator_browser import NARROW, as_if_just_opened, browser, needs_browser
from pages_world import HOSTILE, fill, serving
from selenium.webdriver.common.keys import Keys

pytestmark = needs_browser
SCREENS = (
    "timeline",
    "memory",
    "review",
    "playbook",
    "playbook/open-tasks",
    "console",
    "check",
    "ontology",
    "ontology/Decision",
    "agents",
    "health",
)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The IRIs of what was kept, and the address it is served at."""
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
    """The browser, wide and light, as if just opened."""
    yield from as_if_just_opened(window)


def address(known, screen):
    return f"/ui/p/{screen}" if screen != "memory" else f"/ui/p/memories/{quote(known['use Oxigraph'], safe='')}"


@pytest.mark.parametrize("screen", SCREENS)
def test_each_screen_can_be_read_by_everybody_in_light_and_dark_and_on_a_telephone(pages, world, screen):
    known, _ = world
    for scheme in ("light", "dark"):
        pages.scheme(scheme)
        pages.open(address(known, screen))
        assert pages.faults() == []
    pages.size(*NARROW)
    assert pages.overflow() <= 0


def test_an_item_is_found_by_narrowing_down_and_by_words(pages, world):
    known, _ = world
    pages.open("/")
    assert pages.path == "/ui/p/timeline"
    pages.leads(pages.link("Lesson learned").click)
    assert {each.text for each in pages.all(".card .kind")} == {"Lesson learned"}

    pages.open("/ui/p/timeline")
    pages.press("/")
    pages.leads(pages.press, "oxigraph index store", Keys.ENTER)
    pages.leads(pages.link("Use Oxigraph for the index").click)

    assert pages.path == address(known, "memory")
    assert "it embeds" in pages.text()


def test_what_is_earlier_follows_on_the_same_page(pages, world):
    pages.open("/ui/p/timeline")
    first = [each.get_attribute("href") for each in pages.all(".card h3 a")]

    pages.link("Earlier").click()
    pages.until(lambda: len(pages.all(".card h3 a")) == 2 * len(first))

    links = [each.get_attribute("href") for each in pages.all(".card h3 a")]
    assert links[: len(first)] == first
    assert len({*links}) == 2 * len(first)
    assert len(pages.all(".further")) == 1
    assert pages.path == "/ui/p/timeline"


def test_a_memory_is_superseded_by_keyboard_and_brought_back(pages, world):
    known, _ = world
    pages.open(address(known, "memory"))
    pages.focus_by_tab(".acts details:first-of-type summary")
    pages.press(Keys.ENTER)
    pages.focus_by_tab("#supersede-summary")
    pages.press(Keys.CONTROL + "a", "Use Qlever for the index", Keys.TAB)
    pages.leads(pages.press, "it answers faster", Keys.ENTER)

    assert pages.shows("Use Qlever for the index", "h1")
    assert "it answers faster" in pages.text()
    pages.leads(pages.link("Use Oxigraph for the index").click)
    assert "superseded" in pages.text(".facts")

    pages.focus_by_tab(".acts summary")
    pages.press(Keys.ENTER)
    pages.focus_by_tab("#undo-reason")
    pages.leads(pages.press, "it does not answer faster", Keys.ENTER)
    assert pages.shows("in force", ".facts")
    assert pages.text("h1") == "Use Oxigraph for the index"
    assert "in force" in pages.text(".facts")


def test_a_correction_without_a_reason_is_refused_on_the_page_and_keeps_what_was_written(pages, world):
    known, _ = world
    pages.open(f"/ui/p/memories/{known['long'][-12:]}")
    pages.driver.execute_script("document.querySelectorAll('[required]').forEach(each => each.required = false)")
    pages.all(".acts summary")[0].click()
    box = pages.one("#supersede-summary")
    box.clear()
    box.send_keys("A short one")
    box.submit()

    assert pages.shows("a correction has a reason", "[role=alert]")
    assert pages.one("#supersede-summary").get_attribute("value") == "A short one"
    pages.complaints()  # the browser tells of the status


def test_conflicts_are_settled_by_one_key_each(pages, world):
    known, _ = world
    pages.open("/ui/p/review")
    assert [each.text for each in pages.all("tr.differs:first-of-type mark")] == ["SQLite", "PostgreSQL"]

    pages.leads(pages.press, "l")
    assert pages.shows("left", ".done")
    pages.leads(pages.press, "r")
    assert pages.shows("right", ".done")
    pages.one("#text").clear()
    pages.one("#text").send_keys("Use DuckDB for part 2")
    pages.driver.execute_script("document.activeElement.blur()")
    pages.leads(pages.press, "m")
    assert pages.shows("merge", ".done")
    pages.one("#about").send_keys("src/part3.py")
    pages.driver.execute_script("document.activeElement.blur()")
    pages.leads(pages.press, "b")
    assert pages.shows("both", ".done")

    def status(name):
        pages.open(f"/ui/p/memories/{quote(known[name], safe='')}")
        return pages.text(".facts .status")

    assert (status("left 0"), status("right 0")) == ("in force", "invalidated")
    assert (status("left 1"), status("right 1")) == ("invalidated", "in force")
    assert (status("left 2"), status("right 2")) == ("superseded", "superseded")
    assert "Use DuckDB for part 2" in pages.text()
    assert (status("left 3"), status("right 3")) == ("superseded", "in force")


def test_what_is_ticked_is_settled_together(pages, world):
    known, _ = world
    pages.open("/ui/p/review")
    for _ in range(10):
        if "Proposal 0" in pages.text():
            break
        pages.leads(pages.link("Further ones").click)
    for box in pages.all("input[name=chosen]"):
        if box.get_attribute("value") in (known["proposal 0"], known["proposal 1"]):
            box.click()
    pages.one("#batch-reason").send_keys("both were looked at")
    pages.leads(pages.one("form[aria-label] button[value=accept]").click)

    assert pages.shows("2 together", ".done")
    pages.open(f"/ui/p/memories/{quote(known['proposal 1'], safe='')}")
    assert pages.text(".facts .status") == "superseded"  # by the same, asserted


def test_the_playbook_is_asked_and_its_address_asks_again(pages, world):
    pages.open("/ui/p/playbook")
    pages.leads(pages.link("Which tasks given to one agent").click)
    assert "filled in" in pages.text()
    pages.leads(pages.one("#p-agent").send_keys, "planner", Keys.ENTER)
    rows = [each.text for each in pages.all("tbody tr")]
    assert rows
    again = pages.path

    pages.open(again)
    assert [each.text for each in pages.all("tbody tr")] == rows
    assert "SELECT" in pages.one("pre").get_attribute("textContent")


def test_a_query_is_run_in_the_console_and_its_terms_are_completed(pages, world):
    pages.open("/ui/p/console")
    pages.one("#ask").click()
    assert len(pages.all("#answers tbody tr")) >= 10
    link = pages.one("#answers td a").get_attribute("href")
    assert link.startswith(f"{pages.url}/ui/p/memories/")

    pages.driver.execute_script("document.querySelector('.CodeMirror').CodeMirror.setValue('ASK { ?x a jido:Lesson')")
    pages.driver.execute_script(
        "const editor = document.querySelector('.CodeMirror').CodeMirror; editor.focus();"
        "editor.setCursor(0, 100); editor.autocomplete()"
    )
    assert "jido:LessonLearned" in [each.text for each in pages.all(".CodeMirror-hint")]


def test_the_whole_site_moves_to_the_past_and_back(pages, world):
    pages.open("/ui/p/timeline?state=active")
    slide = pages.one("#as-of-slide")
    pages.driver.execute_script("arguments[0].focus()", slide)
    pages.leads(pages.press, Keys.HOME)
    assert pages.shows("The past", ".moment")
    assert "as_of=2026-11-01" in pages.path
    assert "state=active" in pages.path
    assert "The past" in pages.text(".moment")
    pages.leads(pages.one(".card h3 a").click)
    assert pages.shows("The rules it is held to")
    assert pages.path.startswith("/ui/p/memories/")
    assert "The past" in pages.text(".moment")
    assert not pages.has(".acts")
    pages.leads(pages.link("Back to now").click)
    assert pages.shows("Correct it")
    assert "The past" not in pages.text(".moment")


def test_what_an_agent_wrote_is_seen_and_does_nothing(pages, world):
    known, _ = world
    pages.open(f"/ui/p/memories/{quote(known['hostile'], safe='')}")

    assert "owned" not in pages.driver.title.partition("<")[0]
    assert "{{ 7 * 7 }}" in pages.text("h1")
    assert "⟨U+202E⟩desrever" in pages.text("h1")
    assert "<script>" in HOSTILE
    assert "<script>" in pages.text("h1")
    links = [each.get_attribute("href") for each in pages.all("main a")]
    assert links
    assert not [link for link in links if not link.startswith(pages.url)]
    pages.open(f"/ui/p/memories/{known['long'][-12:]}")
    assert pages.text("h1") == "A long one"


def test_pages_work_without_scripts(world):
    _, url = world
    with browser(url, scripts=False) as plain:
        plain.open("/ui/p/timeline")
        plain.leads(plain.link("Earlier").click)
        assert "after=" in plain.path
        plain.leads(plain.one("#q").send_keys, "certificate", Keys.ENTER)
        plain.leads(plain.link("The certificate holds").click)
        assert "to be reviewed since" in plain.text()
        assert plain.all("#as-of-slide[hidden]")
