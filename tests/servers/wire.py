"""An HTTP proxy of an object store on loopback, which a test lets cut connections, delay requests or drop headers."""

import http.client
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

#: The fate of a request: forwarded; not forwarded, and cut off; carried out, and its answer cut off.
PASS, LOST, UNANSWERED = "pass", "lost", "unanswered"


class Wire:
    """A proxy of *endpoint*; *rule* gets each request's method and path and decides its outcome."""

    def __init__(self, endpoint, rule=lambda method, path: PASS, strip=()):
        self.target, self.rule, self.strip = urlsplit(endpoint).netloc, rule, {name.lower() for name in strip}
        self.requests, self.open = [], []
        wire = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self):
                super().setup()
                wire.open.append(self.connection)

            def _any(self):
                wire.forward(self)

            do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _any  # noqa: N815

            def log_message(self, *arguments):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def forward(self, handler):
        """Forward one request and its answer, by the rule."""
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        self.requests.append((handler.command, urlsplit(handler.path).path))
        fate = self.rule(*self.requests[-1])
        if fate == LOST:
            return self._cut(handler)
        upstream = http.client.HTTPConnection(self.target, timeout=60)
        upstream.putrequest(handler.command, handler.path, skip_host=True, skip_accept_encoding=True)
        for name, value in handler.headers.items():
            if name.lower() not in self.strip:
                upstream.putheader(name, value)
        upstream.endheaders(body)
        answer = upstream.getresponse()
        data = answer.read()
        upstream.close()
        if fate == UNANSWERED:
            return self._cut(handler)
        handler.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                handler.send_header(name, value)
        handler.send_header(
            "Content-Length", answer.getheader("Content-Length") if handler.command == "HEAD" else len(data)
        )
        handler.end_headers()
        return handler.wfile.write(data)

    @staticmethod
    def _cut(handler):
        handler.close_connection = True
        handler.connection.shutdown(2)

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        for connection in self.open:
            with suppress(OSError):
                connection.shutdown(2)
