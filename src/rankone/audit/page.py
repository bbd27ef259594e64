"""The page: an audit as one HTML file, to attach to an issue or to send to annotators."""

from __future__ import annotations

import base64
import hashlib
import html
from importlib import resources
from string import Template

from rankone.audit.digest import LIMIT, digest, encode
from rankone.audit.result import Audit

POLICY = (
    "default-src 'none'; style-src {style}; script-src {script}; base-uri 'none'; "
    "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)


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
    style, script = _part("report.css"), _part("report.js")
    own = [name if name is None else found["files"][name] for name in found["own"]]
    named = ", ".join(name or audit.source for name in own[:3])
    return Template(_part("report.html")).substitute(
        policy=POLICY.format(style=_hash(style), script=_hash(script)),
        title=_text(f"Audit of {named}" + (" and others" if found["own_count"] > 3 else "")),
        verdict=_text(found["verdict"]),
        style=style,
        data=encode({"version": __version__, **found}),
        script=script,
    )


def _part(name: str) -> str:
    folder = resources.files("rankone.audit") / "template"
    return (folder / name).read_text(encoding="utf-8")


def _hash(code: str) -> str:
    """What a content security policy calls this code."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"


def _text(text: str) -> str:
    """Text inside HTML; what is not a character is spelled out."""
    return html.escape(text.encode("utf-8", "backslashreplace").decode())
