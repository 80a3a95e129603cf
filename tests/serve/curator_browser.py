"""A real browser: Debian's chromium under its WebDriver, with the messages of its console."""

import json
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium.common.exceptions import TimeoutException, WebDriverException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.expected_conditions import staleness_of
from selenium.webdriver.support.wait import WebDriverWait

AXE = Path(__file__).parent.parent / "peers" / "node_modules" / "axe-core" / "axe.min.js"
#: The script that returns the serious and critical violations alone: the other rules are not run.
_VIOLATIONS = """const done = arguments[arguments.length - 1];
const lesser = axe._audit.rules.filter((each) => ["minor", "moderate"].includes(each.impact));
const rules = Object.fromEntries(lesser.map((each) => [each.id, {enabled: false}]));
axe.run(document, {resultTypes: ["violations"], rules}).then((found) => done(found.violations));"""
#: Seconds the browser waits for an element.
TIMEOUT = 20
WIDE, NARROW = (1440, 900), (390, 844)
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
#: A window without tabs and address bar, and no processes and pages kept for later: they cost more CPU than a page.
_OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--kiosk", "--app=data:,"),
    "--disable-features=SpareRendererForSitePerProcess,BackForwardCache",
)
needs_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER and AXE.exists()),
    reason="there is no chromium with chromium-driver, or no axe-core: ci/parts installs them",
)


class Browser:
    """One window on one server."""

    def __init__(self, driver, url):
        self.driver, self.url = driver, url

    def open(self, path):
        """Go to a page; the console must have no message of the pages before."""
        assert self.console_messages() == []
        self.driver.get(self.url + path)

    @property
    def path(self):
        """Return the URL of the page."""
        return self.driver.current_url.removeprefix(self.url)

    def find(self, selector):
        """Return the first element that matches."""
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def find_all(self, selector):
        """Return all elements that match."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector="main"):
        """The visible text of an element."""
        return self.find(selector).get_property("innerText")

    def has(self, selector):
        """Return whether an element matches."""
        return self.driver.execute_script("return document.querySelector(arguments[0]) !== null", selector)

    def link(self, text):
        """Return the link with this text."""
        return self.driver.find_element(By.XPATH, f'//a[contains(normalize-space(), "{text}")]')

    def follow(self, action, *arguments):
        """Perform *action*, which loads another page or replaces this one, and wait until that is loaded."""
        page = self.find("main")
        action(*arguments)
        self.wait_until(lambda: staleness_of(page)(self.driver))
        self.wait_until(lambda: self.driver.execute_script("return document.readyState") == "complete")

    def wait_until(self, condition):
        """Wait until *holds* returns true."""
        WebDriverWait(self.driver, TIMEOUT, ignored_exceptions=[WebDriverException]).until(lambda _: condition())

    def shows(self, text, selector="main"):
        """Return whether an element contains *text* once the page is loaded."""
        try:
            self.wait_until(lambda: text in self.text(selector))
        except TimeoutException:
            return False
        return True

    def press(self, *keys):
        """Press keys in the focused element; Control in front of a key is pressed with it."""
        for key in keys:
            actions = ActionChains(self.driver)
            if key[0] == Keys.CONTROL:
                actions.key_down(Keys.CONTROL).send_keys(key[1:]).key_up(Keys.CONTROL).perform()
            else:
                actions.send_keys(key).perform()

    def focus_by_tab(self, selector, most=80):
        """Press Tab until the element has the focus."""
        element = self.find(selector)
        for _ in range(most):
            if self.driver.switch_to.active_element == element:
                return element
            self.press(Keys.TAB)
        raise AssertionError(f"{selector} is not reached by {most} presses of Tab")

    def size(self, width, height):
        """Set the size of the visible part of the page."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )

    def scheme(self, name, motion="no-preference"):
        """Ask for light or dark pages, and for as much motion."""
        features = [
            {"name": "prefers-color-scheme", "value": name},
            {"name": "prefers-reduced-motion", "value": motion},
        ]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def run_scripts(self, does):
        """Run the scripts of the next pages, or none."""
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not does})

    def overflow(self):
        """By how many pixels the page is wider than the window."""
        page = self.driver.execute_script(
            "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        return page[0] - page[1]

    def console_messages(self):
        """The errors, warnings and policy violations in the console since the last call."""
        return [each["message"] for each in self.driver.get_log("browser") if each["level"] in ("SEVERE", "WARNING")]

    def foreign_requests(self):
        """The URLs of requests to other servers, and other windows, since the last call."""
        messages = [json.loads(each["message"])["message"] for each in self.driver.get_log("performance")]
        urls = [each["params"]["request"]["url"] for each in messages if each["method"] == "Network.requestWillBeSent"]
        others = self.driver.window_handles[1:]
        return [url for url in urls if not url.startswith((self.url + "/", "data:", "chrome"))] + others

    def open_details(self):
        """Open every <details> element of the page."""
        self.driver.execute_script("document.querySelectorAll('details').forEach((each) => { each.open = true; })")

    def violations(self):
        """The serious and critical violations that axe-core reports, by rule and element."""
        if not self.driver.execute_script("return 'axe' in window"):
            self.driver.execute_script(AXE.read_text())
        violations = self.driver.execute_async_script(_VIOLATIONS)
        return [
            (each["id"], node["html"][:200])
            for each in violations
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"]
        ]

    def save_screenshot(self, path):
        """Write a screenshot as a PNG."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.driver.get_screenshot_as_file(str(path))


def reset_window(window):
    """Give *window*, wide and light, to a test, and require that the console has no message after it."""
    window.console_messages()  # of a test that failed
    window.size(*WIDE)
    window.scheme("light")
    window.run_scripts(True)
    yield window
    assert window.console_messages() == []


@contextmanager
def browser(url):
    """A browser on the server at *url*, its window wide."""
    options = ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in _OPTIONS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=Service(DRIVER))
    try:
        driver.implicitly_wait(TIMEOUT)
        driver.set_script_timeout(60)
        window = Browser(driver, url)
        window.size(*WIDE)
        yield window
    finally:
        driver.quit()
