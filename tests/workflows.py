"""The commands in a workflow or a hook, written in YAML."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml


def commands(text: str) -> list[str]:
    """What `run` and `entry` say, in order."""
    return list(_walk(yaml.safe_load(text)))


def _walk(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield from (str(node[key]) for key in ("run", "entry") if key in node)
        node = list(node.values())
    for below in node if isinstance(node, list) else ():
        yield from _walk(below)
