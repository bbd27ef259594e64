"""The server: one path, names of this machine only, and one message for what cannot be had."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator

import pytest

from rankone.errors import OutputError
from rankone.explorer.server import Server, serving

PAGE = "<!DOCTYPE html>\n<p>ä</p>"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(PAGE) as found:
        thread = threading.Thread(target=found.serve_forever, args=(0.01,))
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def ask(server: Server, path: str = "/", method: str = "GET", **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=5)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def test_the_page_is_served_whole(server: Server) -> None:
    assert server.url == f"http://127.0.0.1:{server.server_port}/"
    assert ask(server) == (200, PAGE.encode())
    assert ask(server, method="HEAD") == (200, b"")
    assert ask(server, Host=f"localhost:{server.server_port}")[0] == 200


@pytest.mark.parametrize(
    "path", ["/index.html", "/..", "/?x", "/favicon.ico", "/etc/passwd", "/%2e%2e/etc/passwd"]
)
def test_no_other_path_is_known(server: Server, path: str) -> None:
    status, body = ask(server, path)
    assert status == 404
    assert b"root" not in body


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{}",
        "127.0.0.1",
        "127.0.0.1.evil.example:{}",
        "",
        "x@localhost:{}",
    ],
)
def test_other_names_are_not_answered(server: Server, host: str) -> None:
    """A page of others that has its own name point here (DNS rebinding) gets nothing."""
    status, body = ask(server, Host=host.format(server.server_port))
    assert status == 403
    assert PAGE.encode() not in body


def test_two_names_are_not_answered(server: Server) -> None:
    own = f"Host: 127.0.0.1:{server.server_port}\r\n"
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=5) as line:
        line.sendall(f"GET / HTTP/1.0\r\n{own}Host: evil.example\r\n\r\n".encode())
        assert b" 403 " in line.recv(200)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_sent(server: Server, method: str) -> None:
    assert ask(server, method=method)[0] == 501


def test_it_listens_on_this_machine_only(server: Server) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"


def test_a_port_in_use_is_refused(server: Server) -> None:
    with (
        pytest.raises(OutputError, match=f"port {server.server_port} cannot be used"),
        serving(PAGE, server.server_port),
    ):
        pass
