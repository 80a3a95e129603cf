"""A wire to an object store that a test cuts, holds or strips of headers: an HTTP proxy on loopback."""

import http.client
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

#: What becomes of a request: forwarded; not forwarded, and cut off; carried out, and its answer cut off.
PASS, LOST, UNANSWERED = "pass", "lost", "unanswered"


class Wire:
    """A proxy of *endpoint*; *rule* gets each request's method and path and decides its outcome."""

    def __init__(self, endpoint, rule=lambda method, path: PASS, strip=()):
        self.target, self.rule, self.strip = urlsplit(endpoint).netloc, rule, {name.lower() for name in strip}
        self.asked, self.open = [], []
        wire = self

        class Door(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self):
                super().setup()
                wire.open.append(self.connection)

            def _any(self):
                wire.forward(self)

            do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _any  # noqa: N815

            def log_message(self, *said):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
        self.server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def forward(self, door):
        """Forward one request and its answer, by the rule."""
        body = door.rfile.read(int(door.headers.get("Content-Length") or 0))
        self.asked.append((door.command, urlsplit(door.path).path))
        fate = self.rule(*self.asked[-1])
        if fate == LOST:
            return self._cut(door)
        there = http.client.HTTPConnection(self.target, timeout=60)
        there.putrequest(door.command, door.path, skip_host=True, skip_accept_encoding=True)
        for name, value in door.headers.items():
            if name.lower() not in self.strip:
                there.putheader(name, value)
        there.endheaders(body)
        answer = there.getresponse()
        data = answer.read()
        there.close()
        if fate == UNANSWERED:
            return self._cut(door)
        door.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                door.send_header(name, value)
        door.send_header("Content-Length", answer.getheader("Content-Length") if door.command == "HEAD" else len(data))
        door.end_headers()
        return door.wfile.write(data)

    @staticmethod
    def _cut(door):
        door.close_connection = True
        door.connection.shutdown(2)

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        for connection in self.open:
            with suppress(OSError):
                connection.shutdown(2)
