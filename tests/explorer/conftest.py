"""A browser that may load nothing but files and this machine, and small models to look at."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import rankone
from rankone.explorer.bundle import bundle
from rankone.explorer.frame import ROOM
from rankone.pages import part

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
MODULES = Path(__file__).parent / "modules"
LOCAL = ("file:", "http://127.0.0.1:", "about:", "blob:null", "data:,")
Opened = Callable[..., Any]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, one for all tests of a process."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: the explorer is not tested in a browser")
    root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with api.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=root)
        yield found
        found.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Opened]:
    """Open an address in a fresh window; what goes wrong in it fails the test in the end."""
    troubles: list[str] = []

    def note(what: str, trouble: bool = True) -> None:
        if trouble:
            troubles.append(what)

    @contextmanager
    def open_(url: str, *, ready: bool = True, **settings: Any) -> Iterator[Any]:
        context = browser.new_context(**{"viewport": {"width": 1300, "height": 900}, **settings})
        context.set_default_timeout(20_000)
        page = context.new_page()
        page.on("request", lambda asked: note(asked.url, not asked.url.startswith(LOCAL)))
        page.on("pageerror", lambda error: note(str(error)))
        page.on("console", lambda said: note(said.text, said.type in ("error", "warning")))
        page.goto(url)
        if ready:
            page.wait_for_selector("html[data-ready]")
        yield page
        context.close()

    yield open_
    assert troubles == []


@pytest.fixture(scope="module")
def run_module(browser: Any) -> Iterator[Callable[..., Any]]:
    """Run a module of tests/explorer/modules, which imports those of the page: its `main`."""
    page = browser.new_page()

    def read(name: str) -> str:
        own = MODULES / f"{name}.js"
        return own.read_text() if own.exists() else part(ROOM, f"{name}.js")

    def run(name: str, *arguments: Any) -> Any:
        call = f"{bundle(name, read)}\nreturn await ${name}.main(...given);"
        return page.evaluate(f"async (given) => {{{call}}}", arguments)

    yield run
    page.close()


@pytest.fixture(scope="session")
def builtin() -> rankone.Corpus:
    return rankone.read_corpus("builtin")


@pytest.fixture(scope="session")
def line(builtin: rankone.Corpus) -> rankone.Model:
    return rankone.memorize(builtin).model


def saved(model: Any, corpus: Any, path: Path, **settings: Any) -> str:
    """The address of a page on disk."""
    (file,) = rankone.explore(model, corpus, **settings).save(path)
    return file.as_uri()
