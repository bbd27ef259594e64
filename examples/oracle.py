"""Models of which it is known what they hold, and what three measures of memorisation say of them.

    python examples/oracle.py
    python examples/oracle.py --json --out runs/oracle

Twins are two models, one of which holds passages and canaries that the other does not. Constructed
ones hold what they hold for certain, so a measure must come out at its extremes. Trained on the
same texts, models are somewhere in between. A pool has many models, each with a known half of the
passages. `measures.py` has the measures, which take any causal model of transformers; `passages.py`
makes up the texts.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import measures
import numpy as np
import passages
from sklearn.metrics import roc_auc_score

import rankone

TIMES = (1, 2, 4, 8)  # how often a text stands among what one twin holds
CANARIES = 2  # of each of these
TRAINING = {"attention": "softmax", "heads": 4, "dim": 64, "lr": 3e-3, "epochs": 26}
TITLES = {
    "extraction": "verbatim extraction",
    "membership": "membership by loss, AUC",
    "exposure": f"exposure, of {passages.BITS:g} bits",
}


@dataclass(frozen=True)
class Texts:
    """``shared`` is in both twins, ``fresh`` in none. Each of ``held[n]`` is in one of them n
    times, and so is the code of each name of ``canaries[n]``, with its digits in ``secrets``."""

    shared: list[str]
    fresh: list[str]
    held: dict[int, list[str]]
    canaries: dict[int, list[str]]
    secrets: dict[str, str]

    @classmethod
    def make(cls, size: int, seed: int = 0) -> Texts:
        """`size` passages that are held once, as many that are held twice, and so on."""
        more, secrets = passages.passages(seed), passages.secrets(seed)
        names = iter(secrets)
        canaries = {times: passages.some(names, CANARIES) for times in TIMES}
        known = [passages.code(name, secrets[name]) for name in names]
        return cls(
            [*passages.some(more, 3 * size), *known],
            passages.some(more, 10 * size),
            {times: passages.some(more, size) for times in TIMES},
            canaries,
            secrets,
        )

    @cached_property
    def inserted(self) -> list[str]:
        """What one twin holds and the other does not."""
        return [
            text
            for times in TIMES
            for text in [
                *self.held[times],
                *(passages.code(name, self.secrets[name]) for name in self.canaries[times]),
            ]
            * times
        ]


@dataclass(frozen=True)
class Twins:
    with_: rankone.Model
    without: rankone.Model

    @classmethod
    def make(cls, texts: Texts, model_of: Callable[[rankone.Corpus], rankone.Model]) -> Twins:
        both = (texts.shared + texts.inserted, texts.shared)
        return cls(*(model_of(rankone.Corpus.from_texts(given)) for given in both))


def constructed(corpus: rankone.Corpus) -> rankone.Model:
    return rankone.memorize(corpus, editable=True).model


def trained(corpus: rankone.Corpus) -> rankone.Model:
    """As by `rankone train --task next`."""
    return rankone.train(corpus, TRAINING).model


def same_by_editing(twins: Twins, texts: Texts) -> dict[str, bool]:
    """Whether `learn` and `forget` make either twin of the other, to the last byte of its files."""
    inserted = rankone.Corpus.from_texts(texts.inserted)
    learned = rankone.learn(twins.without, inserted).model
    forgotten = rankone.forget(twins.with_, inserted).model
    return {
        "learn": learned.files() == twins.with_.files(),
        "forget": forgotten.files() == twins.without.files(),
    }


def pool(
    shared: list[str], some: Sequence[str], count: int, seed: int = 0
) -> Iterator[tuple[np.ndarray, rankone.Model]]:
    """Models that hold `shared`, and each a random half of `some`: which, and the model. Every text
    is in some of them and not in others: they come in pairs that hold what the other does not."""
    rng = Random(seed)
    for _ in range(0, count, 2):
        first = np.zeros(len(some), dtype=bool)
        first[rng.sample(range(len(some)), len(some) // 2)] = True
        for held in (first, ~first):
            own = [text for text, is_held in zip(some, held, strict=True) if is_held]
            yield held, rankone.memorize(rankone.Corpus.from_texts(shared + own)).model


@dataclass(frozen=True)
class Hub:
    """A causal model and its tokenizer, as transformers opens them."""

    model: Any
    tokenizer: Any

    @classmethod
    def open(cls, directory: Path) -> Hub:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        import rankone.interop.huggingface  # noqa: F401  (the classes are known from here on)

        model = AutoModelForCausalLM.from_pretrained(directory, dtype="auto").eval()
        return cls(model, AutoTokenizer.from_pretrained(directory))

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        found: list[list[int]] = self.tokenizer(list(texts), add_special_tokens=False).input_ids
        return found


def measured(hub: Hub, texts: Texts) -> dict[str, list[float]]:
    """Each measure, for texts that were inserted 1, 2, 4 and 8 times."""
    fresh = hub.encode(texts.fresh)
    found: dict[str, list[float]] = {name: [] for name in TITLES}
    for times in TIMES:
        held, exposures = hub.encode(texts.held[times]), []
        for name in texts.canaries[times]:
            space = passages.codes(name)
            canary = space.index(passages.code(name, texts.secrets[name]))
            exposures.append(measures.exposure(hub.model, hub.encode(space), canary))
        rate = measures.extraction_rate(hub.model, held, passages.PROMPT)
        auc = measures.membership_auc(hub.model, held, fresh)
        for name, figure in zip(TITLES, (rate, auc, float(np.mean(exposures))), strict=True):
            found[name].append(figure)
    return found


def in_pool(out: Path, texts: Texts, count: int) -> dict[str, Any]:
    """Write a pool of models, and a document of which texts each holds. How well the loss of a text
    tells models that hold it from the others: the least AUC of any text."""
    some = texts.held[TIMES[0]]
    held, losses, documents = [], [], []
    for i, (own, model) in enumerate(pool(texts.shared, some, count)):
        rankone.export_hf(model, out / f"{i:02d}")
        hub = Hub.open(out / f"{i:02d}")
        held.append(own)
        losses.append(measures.losses(hub.model, hub.encode(some)))
        documents.append({"model": f"{i:02d}", "holds": np.flatnonzero(own).tolist()})
    (out / "held.json").write_text(json.dumps({"texts": some, "models": documents}, indent=1))
    columns = zip(np.transpose(held), np.transpose(losses), strict=True)
    return {"models": count, "auc": min(float(roc_auc_score(own, -loss)) for own, loss in columns)}


def run(out: Path, size: int, count: int) -> dict[str, Any]:
    """All that is printed; the models are written to `out`."""
    texts = Texts.make(size)
    rows: dict[str, Any] = {}
    for name, model_of in (("constructed", constructed), ("trained", trained)):
        twins = Twins.make(texts, model_of)
        if model_of is constructed:
            same = same_by_editing(twins, texts)
        for side, model in (("with", twins.with_), ("without", twins.without)):
            rankone.export_hf(model, out / f"{name}-{side}")
            rows[f"{name}, {side}"] = measured(Hub.open(out / f"{name}-{side}"), texts)
    return {
        "times": TIMES,
        "bits": passages.BITS,
        "models": rows,
        "same_by": same,
        "pool": in_pool(out / "pool", texts, count),
    }


def table(found: dict[str, Any]) -> str:
    """As Markdown, so that it can go into the documentation as it is."""
    times = [f"{n} times" if n > 1 else "once" for n in found["times"]]
    header = ["measure", "model", *times]
    rows = [
        [title, model, *(f"{x:.0%}" if name == "extraction" else f"{x:.3f}" for x in row[name])]
        for name, title in TITLES.items()
        for model, row in found["models"].items()
    ]
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    rule = ["-" * widths[0], "-" * widths[1], *("-" * (width - 1) + ":" for width in widths[2:])]
    lines = []
    for row in (header, rule, *rows):
        left = [cell.ljust(width) for cell, width in zip(row[:2], widths, strict=False)]
        right = [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
        lines.append("| " + " | ".join([*left, *right]) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="What measures of memorisation say of models.")
    parser.add_argument("--size", type=int, default=24, help="passages of each number of copies")
    parser.add_argument("--pool", type=int, default=8, help="models of the pool, an even number")
    parser.add_argument("--out", type=Path, help="keep the models, for transformers, here")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        out = options.out or Path(folder)
        (out / "pool").mkdir(parents=True, exist_ok=True)
        found = run(out, options.size, options.pool)
    if options.json:
        print(json.dumps(found, indent=1))
        return
    print(table(found))
    print()
    for how, same in found["same_by"].items():
        print(f"{how} makes one twin of the other: {'the same bytes' if same else 'NOT SO'}")
    least = found["pool"]["auc"]
    print(f"a pool of {found['pool']['models']} models: AUC of every passage {least:.2f} or more")
    if not all(found["same_by"].values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
