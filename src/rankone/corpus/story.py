"""The built-in text: a story with a refrain and passages that repeat, for tasks of texts."""

from __future__ import annotations

import os
from importlib.resources import files

STORY = "story"


def is_story(source: object) -> bool:
    """Whether this names the built-in story, not a file."""
    return isinstance(source, str | os.PathLike) and os.fspath(source) == STORY


def read_story() -> bytes:
    """The story in UTF-8, a paragraph per block of lines."""
    return (files("rankone.corpus") / "data" / "story.txt").read_bytes()
