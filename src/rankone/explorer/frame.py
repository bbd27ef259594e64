"""Frame, style and script of a page of the explorer, put together with its data."""

from __future__ import annotations

from rankone.explorer.bundle import bundle
from rankone.pages import fill, part

ROOM = "rankone.explorer/static"


def page(frame: str, entry: str, *, title: str, shape: str, data: str) -> str:
    """HTML: a frame, the module `entry` with all that it imports, and packed data."""
    from rankone import __version__

    return fill(
        part(ROOM, frame),
        style=part(ROOM, "page.css"),
        script=bundle(entry, lambda name: part(ROOM, f"{name}.js")),
        title=title,
        shape=shape,
        made=f"Made by rankone {__version__}. This page loads nothing.",
        data=data,
    )
