"""Settings of the tasks whose documents are texts."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from rankone.corpus.tasks import task_of
from rankone.corpus.tokenizers import tokenizer_of
from rankone.errors import SettingError

WIDEST = 1 << 16  # tokens that a window may have


@dataclass(frozen=True, slots=True)
class Splitting:
    """How texts become documents and tokens, and how much of them a model sees."""

    tokenizer: str | os.PathLike[str] = "words"
    window: int = 0
    blocks: bool = False

    def checked(self, task: str) -> Splitting:
        """Refuse settings that are wrong, or that the task does not have."""
        asking = task_of(task)
        sound = type(self.window) is int and 0 <= self.window <= WIDEST
        SettingError.unless(sound, "window", self.window, f"a whole number from 1 to {WIDEST}")
        for name, usual in (("tokenizer", "words"), ("window", 0), ("blocks", False)):
            fits = asking.text and (name != "window" or asking.causal)
            if getattr(self, name) != usual and not fits:
                raise SettingError(
                    f"the task {task!r} has no {name}",
                    remedy=f"leave out {name} (memorize --{name}), or choose another task",
                )
        return self

    @property
    def reading(self) -> dict[str, Any]:
        """What a model keeps of it."""
        window = {"window": self.window} if self.window else {}
        return {"tokenizer": tokenizer_of(self.tokenizer).name, "blocks": self.blocks, **window}
