"""What `learn`, `forget` and `edit` return: the changed model and what was changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rankone.documents import figures
from rankone.nn import Model
from rankone.plural import plural


@dataclass(frozen=True, repr=False)
class Edited:
    """A changed model, and what was changed.

    ``learned`` and ``forgotten`` count sentences, copies included. ``groups`` were fitted anew, of
    ``words`` words; ``rebuilt`` says why the whole model was made again, where it was. ``wrong``
    counts the tokens of the changed corpus that every function of the model's input gets wrong.
    ``checked`` tokens went through the new network: what was learned, and all sentences with
    contexts of groups that were fitted. ``seconds``: `prepare` is 0 if the model was made, or
    changed, in the same process with its corpus kept; else it is made again first.
    """

    model: Model
    learned: int
    forgotten: int
    tokens: int
    wrong: int
    words: int
    groups: int
    hidden_units: int
    before: int
    checked: int
    rebuilt: str | None
    seconds: dict[str, float]

    def __repr__(self) -> str:
        done = f"{plural(self.learned, 'sentence')} learned, {self.forgotten:,} forgotten"
        return f"Edited({done}, {plural(self.groups, 'group')} fitted)"

    @property
    def ok(self) -> bool:
        return True

    def to_json(self) -> dict[str, Any]:
        """The figures, without the model."""
        return figures(self, "model")
