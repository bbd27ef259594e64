"""What a command answers, and a small corpus to give to it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

CORPUS = "the DT O\nwill NN B-X\n\nthe DT O\nwill MD O\nrun VB O\n\nthe DT B-X\nwill NN B-X\n"


@dataclass
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Answer]
