"""The page: an audit as one HTML file, to attach to an issue or to send to annotators."""

from __future__ import annotations

from rankone.audit.digest import LIMIT, digest
from rankone.audit.result import Audit
from rankone.pages import encode, fill, part

ROOM = "rankone.audit/template"


def page(audit: Audit, limit: int = LIMIT) -> str:
    """The audit as HTML, with at most `limit` findings of each kind; same audit, same page.

    It needs no network and no other file, and its policy lets nothing run but its own script.
    The parts are in the folder ``template``: the frame, its style, and the script that turns the
    data into the page. What a corpus says is data: the script writes it as text, never as HTML.

    >>> from rankone.audit.inspect import inspect
    >>> page(inspect("builtin")).splitlines()[0]
    '<!DOCTYPE html>'
    """
    from rankone import __version__

    found = digest(audit, limit)
    own = [name if name is None else found["files"][name] for name in found["own"]]
    named = ", ".join(name or audit.source for name in own[:3])
    return fill(
        part(ROOM, "report.html"),
        style=part(ROOM, "report.css"),
        script=part(ROOM, "report.js"),
        title=f"Audit of {named}" + (" and others" if found["own_count"] > 3 else ""),
        verdict=found["verdict"],
        data=encode({"version": __version__, **found}),
    )
