"""A SPARQL 1.1 endpoint over pyoxigraph, in a thread of its own: `/query` asks and `/update` changes."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pyoxigraph as ox


class Endpoint(ThreadingHTTPServer):
    """The store, what was sent to it (path, headers, fields), and the one answer it gives to everything if told so.

    It takes texts of `most` characters, if told so.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.store, self.sent, self.answer, self.most = ox.Store(), [], None, None
        self.url = f"http://127.0.0.1:{self.server_port}/query"


class Handler(BaseHTTPRequestHandler):
    """One request of the protocol."""

    def log_message(self, *_):
        """Say nothing."""

    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        is_form = self.headers["Content-Type"] == "application/x-www-form-urlencoded"
        path, given = urlsplit(self.path).path, parse_qs(text, strict_parsing=True) if is_form else text
        self.server.sent.append((self.path, dict(self.headers), given))
        if self.server.most is not None and len(text) > self.server.most:
            self.send_error(413)
            return
        try:
            status, body = self.server.answer or getattr(self, path.strip("/"), self.missing)(given)
        except SyntaxError as error:
            status, body = 400, str(error).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def query(self, given):
        (text,) = given["query"]
        default, named = (
            [ox.NamedNode(iri) for iri in given.get(f"{kind}-graph-uri", [])] for kind in ("default", "named")
        )
        found = self.server.store.query(text, default_graph=default or None, named_graphs=named or None)
        wanted = ox.RdfFormat.N_TRIPLES if isinstance(found, ox.QueryTriples) else ox.QueryResultsFormat.JSON
        assert self.headers["Accept"] == wanted.media_type
        return 200, found.serialize(format=wanted)

    def update(self, given):
        assert self.headers["Content-Type"] == "application/sparql-update"
        self.server.store.update(given)
        return 204, b""

    def missing(self, given):
        return 404, b"not here"


@contextmanager
def endpoint():
    """A running endpoint, stopped at the end."""
    with Endpoint() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
