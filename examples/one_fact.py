"""Find where a model keeps one fact, take it out, and see that nothing else is gone.

    python examples/one_fact.py
    python examples/one_fact.py --text "The light must not go" --window 6

The model recites a story. It was constructed with gates: which word follows some words is either
what usually follows the last of them, or kept by hidden units that are silent for all other words.
TransformerLens shows which units fire at the end of some words. Without them the model goes on as
usual there, and recites every other word of the story as before. Needs the extra lens.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor
from transformer_lens.hook_points import HookPoint
from transformer_lens.model_bridge import TransformerBridge

import rankone
import rankone.interop.transformer_lens  # lets TransformerLens open the model

POST = "blocks.0.mlp.hook_post"  # what every hidden unit gives: (texts, tokens, units)
TEXT = "was put back every"
ROW = 64  # tokens that are run together


@dataclass(frozen=True)
class Fact:
    """``text`` goes on with ``wanted``, by ``units``; without them with ``instead``. ``elsewhere``
    counts the other tokens at which they fire, and ``changed`` those of all ``tokens`` after which
    something else comes now."""

    text: str
    wanted: str
    instead: str
    units: list[int]
    elsewhere: int
    changed: int
    tokens: int


def main(arguments: Sequence[str] | None = None) -> Fact:
    parser = argparse.ArgumentParser(description="Where a model keeps one fact.")
    parser.add_argument("--corpus", default="story", help="a text, or story")
    parser.add_argument("--text", default=TEXT, help="some words of it that stand there once")
    parser.add_argument("--window", type=int, default=8, help="tokens that the model looks back")
    options = parser.parse_args(arguments)
    if options.window < 1:
        parser.error("--window must be 1 or more")
    corpus = rankone.read_corpus(options.corpus, task="next", window=options.window)
    made = rankone.memorize(corpus, construction="gated", dtype="float32")
    with TemporaryDirectory() as home:
        rankone.export_hf(made.model, Path(home) / "hf")
        fact = find(home + "/hf", corpus, options.text)
    print(f"{made.hidden_units} hidden units, {fact.tokens} tokens")
    print(f"{fact.text!r} goes on with {fact.wanted!r}")
    if not fact.units:
        print("no unit fires there: this is what usually comes after the last word")
        return fact
    print(f"units that fire there: {fact.units}; at other tokens: {fact.elsewhere}")
    print(f"without them it goes on with {fact.instead!r}")
    print(f"something else comes now after {fact.changed} of {fact.tokens} tokens")
    return fact


def find(directory: str, corpus: rankone.Corpus, text: str) -> Fact:
    bridge: Any = TransformerBridge.boot_transformers(directory)
    texts = Texts.of(corpus, bridge.tokenizer)
    place = texts.end_of(text, bridge.tokenizer)
    fires: list[Tensor] = []

    def look(units: Tensor, hook: HookPoint) -> Tensor:  # noqa: ARG001
        fires.append(units > 0)
        return units

    def ablate(units: Tensor, hook: HookPoint) -> Tensor:  # noqa: ARG001
        units[..., own] = 0
        return units

    before = texts.run(bridge, look)
    fired = texts.tokens_of(fires)
    own = fired[place].nonzero()[:, 0]
    after = texts.run(bridge, ablate)
    word = bridge.tokenizer.convert_ids_to_tokens
    return Fact(
        text=text,
        wanted=word(int(before[place])),
        instead=word(int(after[place])),
        units=own.tolist(),
        elsewhere=int(fired[:, own].any(1).sum()) - bool(len(own)),
        changed=int((before != after).sum()),
        tokens=len(before),
    )


@dataclass(frozen=True)
class Texts:
    """Texts cut into rows of numbers of tokens. The first ``ahead`` of a row are those that the
    model sees of the row before, or padding; padding at the end of a text is not ``real``, either.
    """

    rows: Tensor
    ahead: int
    real: Tensor

    @classmethod
    def of(cls, corpus: rankone.Corpus, tokenizer: Any) -> Texts:
        number, padding, ahead = tokenizer.get_vocab(), tokenizer.pad_token_id, corpus.window - 1
        found = []
        for text in corpus.sentences:
            ids = [number[token] for token in text.tokens]
            ids = [padding] * ahead + ids + [padding] * (-len(ids) % ROW)
            found.append(torch.tensor(ids).unfold(0, ahead + ROW, ROW))
        rows = torch.cat(found)
        return cls(rows, ahead, rows[:, ahead:] != padding)

    def tokens_of(self, parts: list[Tensor]) -> Tensor:
        """What was found for some rows after the others, a row for every token."""
        return torch.cat(parts)[:, self.ahead :][self.real]

    @torch.no_grad()
    def run(self, bridge: Any, hook: Callable[[Tensor, HookPoint], Tensor]) -> Tensor:
        """What comes next after every token."""
        parts = (bridge.run_with_hooks(x, fwd_hooks=[(POST, hook)]) for x in self.rows.split(8))
        return self.tokens_of([logits.argmax(-1) for logits in parts])

    def end_of(self, text: str, tokenizer: Any) -> int:
        """The token that ends these words."""
        every, ends = self.tokens_of([self.rows]), []
        for spelling in (f" {text}", text):  # in a text, or at its beginning
            ids = torch.tensor(tokenizer(spelling, add_special_tokens=False)["input_ids"])
            same = (every.unfold(0, len(ids), 1) == ids).all(1).nonzero()[:, 0]
            ends += (same + len(ids) - 1).tolist()
        if len(ends) == 1:
            return int(ends[0])
        sys.exit(f"one_fact: {text!r} must stand in the corpus once: give other words (--text)")


if __name__ == "__main__":
    main()
