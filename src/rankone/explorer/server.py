"""A server for one page, on this machine only: it knows one path and answers loopback names."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from rankone.errors import OutputError

HOST = "127.0.0.1"
NAMES = ("127.0.0.1", "localhost")
PATH = "/"
SECONDS = 10.0  # that a connection may say nothing
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Server(ThreadingHTTPServer):
    """Serves ``page`` until it is shut down."""

    daemon_threads = True
    allow_reuse_address = False  # a port that another program has is refused, on every system

    def __init__(self, page: bytes, port: int) -> None:
        self.page = page
        super().__init__((HOST, port), Handler)

    def server_bind(self) -> None:
        """Without looking up the name of this machine, which may ask the network."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = HOST, self.server_address[1]

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that breaks is no news."""

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_port}{PATH}"


class Handler(BaseHTTPRequestHandler):
    """GET and HEAD of the one path, by a name of this machine: pages of others that make a browser
    ask under their own name (DNS rebinding) get nothing."""

    server: Server
    timeout = SECONDS
    server_version, sys_version = "rankone", ""

    def do_GET(self) -> None:
        page = self._page()
        if page is not None:
            self.wfile.write(page)

    def do_HEAD(self) -> None:
        self._page()

    def _page(self) -> bytes | None:
        port = self.server.server_port
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or hosts[0] not in {f"{name}:{port}" for name in NAMES}:
            self.send_error(403, "Only names of this machine are answered")
            return None
        if self.path != PATH:
            self.send_error(404)
            return None
        self.send_response(200)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(self.server.page)))
        self.end_headers()
        return self.server.page

    def log_message(self, *_: object) -> None:
        """Requests are not printed."""


@contextmanager
def serving(page: str, port: int = 0) -> Iterator[Server]:
    """A server of this page at a free port, or at a given one, which nobody else may have."""
    try:
        server = Server(page.encode(), port)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise OutputError(
            f"port {port} cannot be used ({why})",
            where=HOST,
            remedy="give another --port, or leave it out: then a free one is taken",
        ) from None
    with server:
        yield server
