"""A SPARQL 1.1 endpoint over pyoxigraph, in a thread: `/query` and `/update`."""

import threading
from base64 import b64encode
from contextlib import contextmanager
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit
from urllib.request import parse_http_list, parse_keqv_list

import pyoxigraph as ox


class Endpoint(ThreadingHTTPServer):
    """The store, its requests (path, headers, fields), and the fixed answer to every request if one is set.

    It takes texts of `most` characters, if told so, and asks for a login as `challenge` says. `before` is called with
    the query or update of each request before that is run.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.store, self.sent, self.answer, self.most = ox.Store(), [], None, None
        self.challenge = None
        self.before = lambda text: None
        self.url = f"http://127.0.0.1:{self.server_port}/query"


class Handler(BaseHTTPRequestHandler):
    """One request of the protocol."""

    def log_message(self, *_):
        """Say nothing."""

    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        is_form = self.headers["Content-Type"] == "application/x-www-form-urlencoded"
        path, body_fields = urlsplit(self.path).path, parse_qs(text, strict_parsing=True) if is_form else text
        self.server.sent.append((self.path, dict(self.headers), body_fields))
        if self.server.challenge is not None and not self.is_let_in(self.headers.get("Authorization", "")):
            self.send_response(401)
            self.send_header("WWW-Authenticate", self.server.challenge)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if self.server.most is not None and len(text) > self.server.most:
            self.send_error(413)
            return
        self.server.before(body_fields["query"][0] if is_form else text)
        try:
            status, body = self.server.answer or getattr(self, path.strip("/"), self.missing)(body_fields)
        except SyntaxError as error:
            status, body = 400, str(error).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def is_let_in(self, authorization):
        """Return whether *authorization* has the login of ada (password s@crot) in the scheme of the challenge."""
        scheme, _, rest = authorization.partition(" ")
        if scheme != self.server.challenge.partition(" ")[0]:
            return False
        if scheme == "Basic":
            return rest == b64encode(b"ada:s@crot").decode()
        fields = parse_keqv_list(parse_http_list(rest))
        login, what = md5(f"ada:{fields['realm']}:s@crot".encode()), md5(f"POST:{self.path}".encode())
        middle = f"{fields['nonce']}:{fields['nc']}:{fields['cnonce']}:{fields['qop']}"
        return fields["response"] == md5(f"{login.hexdigest()}:{middle}:{what.hexdigest()}".encode()).hexdigest()

    def query(self, fields):
        (text,) = fields["query"]
        default, named = (
            [ox.NamedNode(iri) for iri in fields.get(f"{kind}-graph-uri", [])] for kind in ("default", "named")
        )
        results = self.server.store.query(text, default_graph=default or None, named_graphs=named or None)
        media = ox.RdfFormat.N_TRIPLES if isinstance(results, ox.QueryTriples) else ox.QueryResultsFormat.JSON
        assert self.headers["Accept"] == media.media_type
        return 200, results.serialize(format=media)

    def update(self, text):
        assert self.headers["Content-Type"] == "application/sparql-update"
        self.server.store.update(text)
        return 204, b""

    def missing(self, fields):
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
