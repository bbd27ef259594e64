"""A model that reads one token after the other, and says after each which one follows."""

from __future__ import annotations

import numpy as np
import torch

from rankone.arrays import Ints
from rankone.errors import ModelError
from rankone.nn import Model
from rankone.nn.gatekeeper import gated_layer_of
from rankone.nn.readout import Readout
from rankone.recitation.assembled import assemble, new_state


class Reciter:
    """The state of a model in the middle of a text.

    A model that memorize made takes the same time and memory for every token, however many came
    before it. Others look again at all that they have seen.

    >>> import rankone
    >>> corpus = rankone.Corpus.from_texts(["A rose is a rose."])
    >>> model = rankone.memorize(corpus).model
    >>> reciter = Reciter(model)
    >>> label = int(reciter.follow(model.rows(["A"]))[-1])
    >>> [model.labels[i] for i in reciter.go_on(label, 3)[0].tolist()]
    [' rose', ' is', ' a']
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.rows = model.rows(model.labels)  # the token of each label; the end has none
        self.rows[self.rows == len(model.vocabulary)] = -1
        self.positions = model.positions or np.iinfo(np.int64).max
        self._network = assemble(model.network)
        self._readout = Readout.of(model.network.head)
        self.begin()
        self._load()

    @property
    def compiled(self) -> bool:
        """Whether a token costs the same wherever it stands."""
        return self._network is not None

    @property
    def seen(self) -> int:
        """Tokens so far."""
        return len(self._past) if self._network is None else int(self._state.seen[0])

    def begin(self) -> None:
        """Forget what has been seen."""
        self._past: list[int] = []
        if self._network is not None:
            self._state = new_state(self._network)

    def follow(self, rows: Ints) -> Ints:
        """See the tokens with these rows of the table; returns the label after each."""
        if self.seen + len(rows) > self.positions:
            raise ModelError(
                f"{self.seen + len(rows):,} tokens, but the table of positions has "
                f"{self.positions:,} rows",
                remedy="make a model with more of them (max_length, memorize --max-length)",
            )
        rows, out = np.asarray(rows, np.int64), np.empty(len(rows), np.int64)
        if self._network is None:
            for i, row in enumerate(rows.tolist()):
                out[i] = self._look(row)
            return out
        from rankone.kernels.compiled.recite import follow  # compiled code: loaded when used

        done = 0
        while done < len(rows):
            done = follow(self._network, self._state, rows, out, done)
            if out[done - 1] < 0:
                out[done - 1] = self._decide()
        return out

    def go_on(self, label: int, count: int) -> tuple[Ints, int]:
        """See the token of this label, then that of the label after it, and so on: at most `count`
        labels, fewer where the text or the table of positions ends. Returns them, and the label
        after the last."""
        out, done = np.empty(count, np.int64), 0
        while done < count and self.rows[label] >= 0 and self.seen < self.positions:
            if self._network is None:
                out[done], done = label, done + 1
                label = self._look(int(self.rows[label]))
                continue
            from rankone.kernels.compiled.recite import go_on

            most, given = self.positions, (self._network, self._state, self.rows)
            more, label = go_on(*given, most, label, out[done:])
            done += more
            label = self._decide() if label < 0 else label
        return out[:done], label

    def _decide(self) -> int:
        """The label of the last token by all logits."""
        layer = gated_layer_of(self.model.network)
        assert layer is not None
        features = np.zeros((self.model.network.shape.dim, 1), self._state.features.dtype)
        features[layer.writes.numpy(), 0] = self._state.features
        seen = self._readout.seen
        return int(self._readout.labels(features if seen is None else features[seen])[0])

    def _load(self) -> None:
        """Compiled code, so that no token has to wait for it."""
        if self._network is None:
            return
        from rankone.kernels.compiled.recite import follow, go_on

        none, given = np.empty(0, np.int64), (self._network, self._state)
        follow(*given, none, none, 0)
        go_on(*given, self.rows, self.positions, 0, none)

    @torch.no_grad()
    def _look(self, row: int) -> int:
        self._past.append(row)
        ids = torch.tensor([self._past])
        return int(self.model.network(ids)[0, -1].argmax())
