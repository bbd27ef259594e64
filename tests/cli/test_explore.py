"""rankone explore: a page that is written, a page that is served, and one message for the rest."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from answers import Run


def test_a_page_is_written(run: Run, model: Path, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    answer = run("explore", model, corpus, "--out", out, "--json")
    assert answer.code == 0
    assert answer.json == {
        "ok": True,
        "title": "model",
        "sentences": 3,
        "tokens": 7,
        "bytes": out.stat().st_size,
        "files": [str(out)],
    }
    assert out.read_text().startswith("<!DOCTYPE html>")
    answer = run("explore", model, corpus, "--sentences", 2, "--out", out)
    assert "2 sentences" in answer.out
    answer = run("explore", model, "--out", out)
    assert (answer.code, answer.err) == (0, "")
    assert str(out) in answer.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("nowhere", "toy"), "nowhere"),
        (("MODEL", "nowhere.conll"), "nowhere.conll"),
        (("MODEL", "toy"), "none of its words"),
        (("MODEL", "--sentences", "3"), "give FILE"),
        (("MODEL", "--format", "tsv"), "give FILE"),
        (("MODEL", "CORPUS", "--open"), "leave out --port and --open"),
        (("MODEL", "CORPUS", "--port", "9"), "leave out --port and --open"),
    ],
)
def test_what_cannot_be_shown(
    run: Run, model: Path, corpus: Path, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    """One message, exit status 2, and nothing is written."""
    out = tmp_path / "page.html"
    given = [{"MODEL": model, "CORPUS": corpus}.get(word, word) for word in words]
    answer = run("explore", *given, "--out", out)
    assert (answer.code, answer.out) == (2, "")
    assert told in answer.err
    assert answer.err.count("rankone: ") == 1
    assert not out.exists()


def test_a_port_in_use(run: Run, model: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        answer = run("explore", model, "--port", port)
    assert (answer.code, answer.out) == (2, "")
    assert f"port {port} cannot be used" in answer.err
    assert "give another --port" in answer.err


def test_a_certificate_that_is_damaged(run: Run, model: Path, tmp_path: Path) -> None:
    (model / "certificate.json").write_text("{}")
    answer = run("explore", model, "--out", tmp_path / "page.html")
    assert (answer.code, answer.out) == (2, "")
    assert "not a certificate" in answer.err


def test_it_serves_until_ctrl_c(model: Path, corpus: Path) -> None:
    command = [sys.executable, "-m", "rankone", "explore", str(model), str(corpus), "--json"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        document = json.loads(process.stdout.readline())
        host = document["url"].removeprefix("http://").removesuffix("/")
        connection = http.client.HTTPConnection(host, timeout=10)
        connection.request("GET", "/")
        answer = connection.getresponse()
        assert answer.status == 200
        assert len(answer.read()) == document["bytes"]
        connection.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
