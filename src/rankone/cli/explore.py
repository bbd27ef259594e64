"""rankone explore DIR [FILE...]"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankone.cli import options
from rankone.cli.bundles import bundled
from rankone.cli.options import flag, option
from rankone.errors import SettingError

if TYPE_CHECKING:
    from rankone.explorer import Explorer


@bundled
def explore(
    model: options.ModelDirectory,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE]",
            help="Corpus to show with the model: plain or packed, or several files, a directory, a "
            "pattern, - or a built-in one.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None, options.out("PATH", "Write the page as one file, and serve nothing.")
    ] = None,
    port: Annotated[
        int, option("Port on this machine (0: a free one).", "N", min=0, max=65535)
    ] = 0,
    browser: Annotated[bool, flag("Open the page in the browser.", "--open")] = False,
    sentences: Annotated[
        int | None,
        option("The first sentences of FILE only (default: all).", "N", min=1, show_default=False),
    ] = None,
    *,
    layout: options.Layout,
    output: options.Output,
) -> None:
    """See a model at work in the browser: its sentences, the line of context ids, its certificate.

    The page is served on this machine only, until Ctrl-C. The model runs in it: type a sentence,
    swap words, and see the labels that `predict` gives.

    With --out, the page is written as one file, which needs no server and no network.
    """
    if out is not None and (port or browser):
        raise SettingError(
            "a page that is written is not served",
            remedy="leave out --port and --open, or leave out --out",
        )
    given = {name: x for name, x in layout.arguments().items() if x not in (None, "auto")}
    if not files and (sentences is not None or given):
        raise SettingError(
            "nothing to read", remedy="give FILE, or leave out the options for reading it"
        )
    from rankone.cli import console
    from rankone.files import check_place

    if out is not None:
        check_place(out)
    with console.working("start", output) as progress:
        from rankone.explorer import explore
        from rankone.nn import load

        corpus = load(model).read(files, **layout.arguments()) if files else None
        found = explore(model, corpus, sentences=sentences, progress=progress)
    if out is not None:
        console.report(output, found.to_json(), lambda: _show(found), found.save(out))
        return
    _serve(found, port, output, browser=browser)


def _show(found: Explorer) -> None:
    from rankone.cli import console
    from rankone.plural import plural

    held = f" with {plural(found.sentences, 'sentence')}" if found.sentences else ""
    console.print_lines(f"A page of {found.bytes / 1e6:.1f} MB{held}.")


def _serve(found: Explorer, port: int, output: options.Output, *, browser: bool) -> None:
    from rankone.cli import console
    from rankone.explorer.server import serving

    with serving(found.html, port) as server:
        document = {**found.to_json(), "url": server.url}
        console.report(output, document, lambda: console.print_lines(f"{server.url} (Ctrl-C ends)"))
        import sys

        sys.stdout.flush()
        if browser:
            import webbrowser

            webbrowser.open(server.url)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
