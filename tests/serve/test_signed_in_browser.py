"""Somebody who is signed in with a real browser: sent a link from elsewhere, and at two servers of one host."""

from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import quote

import pytest
from conftest import decision
from curator_browser import browser, needs_browser
from http_world import running

import jidomem
from jidomem.runtime.settings import own_config
from jidomem.runtime.tokens import Keyring

pytestmark = needs_browser


@pytest.fixture
def servers(tmp_path):
    """Start two servers of a root each; give the address, a token and a memory of each."""
    found = []
    for name in ("one", "two"):
        root = tmp_path / name
        root.mkdir()
        with jidomem.open(root) as memory:
            item = memory.writer.submit_intent("p", decision(summary="Use Oxigraph", topic="store")).iri
            secret, _ = Keyring(own_config(), root).give_out("ana", "curator", ("p",), memory.sources)
        found.append((root, secret, item))
    with running(found[0][0]) as one, running(found[1][0]) as two:
        yield [(server.url, secret, item) for server, (_, secret, item) in zip((one, two), found, strict=True)]


@contextmanager
def page_at(host, body):
    """A page of somebody else on this machine; gives its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<link rel=icon href='data:,'>" + body.encode())

        def log_message(self, *_):
            """Say nothing."""

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
    window.one("#token").send_keys(secret)
    window.leads(window.one("main button").click)
    assert "Use Oxigraph" in window.text()


def test_who_is_signed_in_is_led_by_a_link_from_elsewhere_and_no_form_from_there_does_anything(servers):
    url, secret, item = servers[0]
    place = f"{url}/ui/p/memories/{quote(item, safe='')}"
    fields = "".join(
        f"<input type=hidden name={name} value={value}>" for name, value in (("act", "invalidate"), ("reason", "x"))
    )
    body = (
        f"<a href='{place}'>Look</a><main><form method=post action='{place}'>{fields}<button>Do</button></form></main>"
    )
    with browser(url) as window:
        sign_in(window, url, secret)
        for host, told in (("localhost", "Your form was not processed"), ("127.0.0.1", "another origin")):
            with page_at(host, body) as elsewhere:
                window.driver.get(elsewhere)
                window.link("Look").click()
                window.until(lambda: window.driver.current_url == place)
                assert window.text(".facts .status") == "active"

                window.driver.get(elsewhere)
                window.leads(window.one("button").click)
                assert told in window.text()
        window.driver.get(place)
        assert window.text(".facts .status") == "active"


def test_two_servers_of_one_host_sign_nobody_out_of_each_other(servers):
    (one, secret, _), (two, other, _) = servers
    with browser(one) as window:
        sign_in(window, one, secret)
        sign_in(window, two, other)
        window.open("/ui/p/timeline")
        assert "Use Oxigraph" in window.text()

        window.leads(window.one(".who button").click)
        assert window.path.startswith("/ui/sign-in")
        window.driver.get(f"{two}/ui/p/timeline")
        assert "Use Oxigraph" in window.text()
