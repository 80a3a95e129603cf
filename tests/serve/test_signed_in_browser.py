"""A signed-in user of a real browser: a link from another site, and two servers of one host."""

import os
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import quote

import pytest
from conftest import decision
from curator_browser import browser, needs_browser
from http_world import serving

import jidomem
from jidomem.runtime.tokens import Keyring

pytestmark = [needs_browser, pytest.mark.usefixtures("loaded_program")]


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """Start two servers of a root each; give the URL, a token and a memory of each."""
    opened, folder = [], tmp_path_factory.mktemp("signed-in")
    environment = {**os.environ, "XDG_CONFIG_HOME": str(folder)}
    for name in ("one", "two"):
        root = folder / name
        root.mkdir()
        with jidomem.open(root) as memory:
            item = memory.writer.submit_intent("p", decision(summary="Use Oxigraph", topic="store")).iri
            keyring = Keyring(folder / "jidomem" / "config.toml", root)
            secret, _ = keyring.issue("ana", "curator", ("p",), memory.sources)
        opened.append((root, secret, item))
    with serving(opened[0][0], environment=environment) as one, serving(opened[1][0], environment=environment) as two:
        yield [(server.url, secret, item) for server, (_, secret, item) in zip((one, two), opened, strict=True)]


@pytest.fixture(scope="module")
def opened(servers):
    with browser(servers[0][0]) as window:
        yield window


@pytest.fixture
def window(opened):
    """A browser at the first server, without cookies."""
    opened.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
    opened.console_messages()
    return opened


@contextmanager
def page_at(host, body):
    """A page of another site on this machine; gives its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<link rel=icon href='data:,'>" + body.encode())

        def log_message(self, *_):
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://{host}:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def sign_in(window, url, secret):
    window.driver.get(f"{url}/ui/p/timeline")
    window.find("#token").send_keys(secret)
    window.follow(window.find("main button").click)
    assert "Use Oxigraph" in window.text()


def test_a_link_from_another_site_keeps_the_sign_in_and_a_form_from_there_is_refused(servers, window):
    url, secret, item = servers[0]
    link = f"{url}/ui/p/memories/{quote(item, safe='')}"
    fields = "".join(
        f"<input type=hidden name={name} value={value}>" for name, value in (("act", "invalidate"), ("reason", "x"))
    )
    body = f"<a href='{link}'>Look</a><main><form method=post action='{link}'>{fields}<button>Do</button></form></main>"
    sign_in(window, url, secret)
    for host, message in (("localhost", "Your form was not processed"), ("127.0.0.1", "another origin")):
        with page_at(host, body) as foreign_page:
            window.driver.get(foreign_page)
            window.link("Look").click()
            window.wait_until(lambda: window.driver.current_url == link)
            assert window.text(".facts .status") == "active"

            window.driver.get(foreign_page)
            window.follow(window.find("button").click)
            assert message in window.text()
    window.driver.get(link)
    assert window.text(".facts .status") == "active"


def test_signing_out_of_one_server_keeps_the_sign_in_of_another_on_the_same_host(servers, window):
    (one, secret, _), (two, other, _) = servers
    sign_in(window, one, secret)
    sign_in(window, two, other)
    window.open("/ui/p/timeline")
    assert "Use Oxigraph" in window.text()

    window.follow(window.find(".who button").click)
    assert window.path.startswith("/ui/sign-in")
    window.driver.get(f"{two}/ui/p/timeline")
    assert "Use Oxigraph" in window.text()
