"""Pages that are one HTML file: data as text, and a policy that lets only their own code run."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib import resources
from string import Template
from typing import Any

POLICY = (
    "default-src 'none'; style-src {style}; script-src {script}; base-uri 'none'; "
    "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)


def fill(frame: str, *, style: str, script: str, title: str, data: str, **parts: str) -> str:
    """A page from its frame, which names its parts: ``$style``, ``$script``, ``$data``, ``$title``,
    the ``$policy`` that allows this style and this script only, and others. `title` and other parts
    are text; `data` must be safe in a script element."""
    return Template(frame).substitute(
        {name: escaped(text) for name, text in parts.items()},
        policy=POLICY.format(style=hash_of(style), script=hash_of(script)),
        title=escaped(title),
        style=style,
        script=script,
        data=data,
    )


def part(room: str, name: str) -> str:
    """A file that a page is made of; `room` is the package and the folder in it."""
    package, _, folder = room.partition("/")
    return (resources.files(package) / folder / name).read_text(encoding="utf-8")


def hash_of(code: str) -> str:
    """What a content security policy calls this code."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"


def escaped(text: str) -> str:
    """Text inside HTML; what is not a character is spelled out."""
    return html.escape(text.encode("utf-8", "backslashreplace").decode())


def encode(data: Any) -> str:
    r"""JSON without a character that could end the script element it stands in.

    >>> encode("</script>")
    '"\\u003c/script>"'
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return re.sub("[<\u2028\u2029\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)
