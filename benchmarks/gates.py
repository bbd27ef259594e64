"""Gates next to one line: sizes, errors and times; changes of one sentence; growth; next tokens.

All ratios are of times measured in turns in one process, the best of several. The labels of the
last table are the next words of a made-up text, in documents of 2,048 words.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import common
import rankone
import scaling
from rankone import Corpus
from rankone.nn import Evaluator
from rankone.nn.evaluate import coordinates

CORPORA: dict[str, tuple[str, dict[str, Any]]] = {
    "built-in": ("builtin", {}),
    "CoNLL-2003, IOB2": ("conll2003/eng.train", {"scheme": "iob2"}),
    "EWT, UPOS": ("ud-english-ewt/en_ewt-ud-train.conllu.gz", {}),
    "WNUT-17": ("wnut17/wnut17train.conll", {}),
}
WAYS: dict[str, dict[str, Any]] = {
    "`line`": {},
    "`gated`, float64": {"construction": "gated"},
    "`gated`, float32": {"construction": "gated", "dtype": "float32"},
    "`gated`, one direction": {"construction": "gated", "directions": 1},
}
LENGTH = 2_048  # of a document of next tokens


def read(data: Path, name: str) -> Corpus:
    path, how = CORPORA[name]
    return rankone.read_corpus(path if path == "builtin" else data / path, **how)


def sizes(data: Path, repeat: int) -> None:
    """Figures of every corpus and way, with the time of construction and verification next to that
    of `line`, of prediction and of a certificate next to a run of the network."""
    rows = []
    for name in CORPORA:
        corpus = read(data, name)
        seconds, found = dict.fromkeys(WAYS, float("inf")), {}
        for _ in range(repeat):
            for way, how in WAYS.items():
                fresh = dataclasses.replace(corpus, seconds=0.0)
                started = time.perf_counter()
                found[way] = rankone.memorize(fresh, verify="sample", **how)
                seconds[way] = min(seconds[way], time.perf_counter() - started)
        for way, how in WAYS.items():
            dense = rankone.memorize(corpus, verify="dense", **how)
            network = found[way].model.network
            head = coordinates(network.head)
            run = common.best(
                lambda n=network, h=head, c=corpus: Evaluator(n, only=h).run(
                    c.token_ids, c.offsets, lambda z: z.T
                ),
                5,
            )
            started = time.perf_counter()
            proved = rankone.certify(found[way].model, corpus)
            certified = time.perf_counter() - started
            rows.append(
                [
                    name,
                    way,
                    str(network.shape.heads),
                    str(network.shape.dim),
                    f"{dense.hidden_units:,}",
                    "" if dense.least_units is None else f"{dense.least_units:,}",
                    f"{dense.wrong - dense.unavoidable}",
                    f"{max(dense.max_error, dense.dense_error):.0e}",
                    f"{weight(found[way].model):.1f}",
                    f"{seconds[way] / seconds['`line`']:.1f}",
                    f"{corpus.n_tokens / run / 1e6:.1f}",
                    f"{certified / run:.0f}",
                    {True: "yes", False: "no", None: ""}[proved.any_order],
                ]
            )
    header = (
        "corpus,construction,heads,d,hidden units,at least,avoidable errors,largest output error,"
        "weights (MB),time / `line`,million tokens/s,certificate / run,any order"
    )
    common.table(header.split(","), rows)


def weight(model: rankone.Model) -> float:
    return len(model.files()["model.safetensors"]) / 1e6


def edits(data: Path, count: int) -> None:
    """Forget and learn single sentences of CoNLL-2003, one after the other; compare the last model
    with one that is made anew."""
    corpus = read(data, "CoNLL-2003, IOB2")
    pairs = [(tuple(s.tokens), tuple(s.labels)) for s in corpus.sentences]
    other = rankone.read_corpus(data / "conll2003" / "eng.testa", scheme="iob2")
    rng, rows = np.random.default_rng(0), []
    for way in ("`gated`, float64", "`gated`, float32"):
        started = time.perf_counter()
        model = rankone.memorize(Corpus.from_sentences(pairs), **WAYS[way], editable=True).model
        whole = time.perf_counter() - started
        now, taken, again = list(pairs), [], 0
        for _ in range(count):
            out = now[rng.integers(len(now))]
            sentence = other.sentences[rng.integers(other.n_sentences)]
            more = (tuple(sentence.tokens), tuple(sentence.labels))
            for verb, pair in ((rankone.forget, out), (rankone.learn, more)):
                started = time.perf_counter()
                found = verb(model, [pair])
                taken.append(time.perf_counter() - started)
                again += found.rebuilt is not None
                model = found.model
            now = [pair for pair in now if pair != out] + [more]
        anew = rankone.memorize(Corpus.from_sentences(now), **WAYS[way]).model
        rows.append(
            [
                way,
                f"{2 * count}",
                f"{np.median(taken) * 1e3:.0f}",
                f"{max(taken) * 1e3:.0f}",
                f"{whole / float(np.median(taken)):.0f}",
                str(again),
                "yes" if anew.files() == without_memory(model) else "NO",
            ]
        )
    header = "construction,changes,median ms,longest ms,anew / median,made anew,same bytes"
    common.table(header.split(","), rows)


def without_memory(model: rankone.Model) -> dict[str, bytes]:
    return {k: v for k, v in model.files().items() if k != "memory.safetensors"}


def growth(most: int) -> None:
    """Zipf text of growing size in float64; growth is that of construction and verification per
    token. The dense check runs 1,000 tokens through all units."""
    rankone.memorize(zipf(20_000), construction="gated")  # loads what is compiled
    rows, base = [], 0.0
    for size in (200_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000):
        if size > most:
            break
        corpus = zipf(size)
        found = rankone.memorize(corpus, construction="gated")
        seconds = found.seconds
        per_token = (seconds["construct"] + seconds["verify"]) / size
        base = base or per_token
        rows.append(
            [
                f"{size:,}",
                f"{found.wrong:,} ({found.unavoidable:,})",
                str(found.draws),
                f"{found.hidden_units:,}",
                f"{max(found.max_error, found.dense_error):.0e}",
                *(f"{seconds[stage]:.1f}" for stage in ("construct", "verify", "dense")),
                f"{per_token / base:.2f}",
                f"{common.resident('VmHWM') / 2**30:.1f}",
            ]
        )
    header = (
        "tokens,wrong (unavoidable),draws,hidden units,largest error,construct s,verify s,dense s,"
        "growth,peak GB"
    )
    common.table(header.split(","), rows)


def zipf(tokens: int) -> Corpus:
    """The text of `scaling`, without a file."""
    words, labels, ends = scaling.zipf_text(tokens)
    offsets = np.unique(np.concatenate([[0], np.flatnonzero(ends) + 1, [tokens]]))
    present, ids = np.unique(words, return_inverse=True)
    return made(tuple(f"w{i}" for i in present), ids, labels, offsets, 9)


def next_tokens(size: int) -> None:
    """Every token's label is the next one."""
    words, *_ = scaling.zipf_text(size + 1)
    present, ids = np.unique(words, return_inverse=True)
    count = size // LENGTH
    names = tuple(f"w{i}" for i in present)
    offsets = np.arange(count + 1) * LENGTH
    corpus = made(names, ids[: count * LENGTH], ids[1 : count * LENGTH + 1], offsets, len(names))
    started = time.perf_counter()
    found = rankone.memorize(corpus, construction="gated", dtype="float32", causal=True)
    built = time.perf_counter() - started
    started = time.perf_counter()
    proved = rankone.certify(found.model, corpus)
    certified = time.perf_counter() - started
    row = [
        f"{corpus.n_tokens:,}",
        f"{len(names):,}",
        f"{found.hidden_units:,}",
        f"{found.wrong:,} ({found.unavoidable:,})",
        f"{max(found.max_error, found.dense_error):.0e}",
        f"{built:.0f}",
        proved.outcome.value,
        f"{certified:.0f}",
        f"{common.resident('VmHWM') / 2**30:.1f}",
    ]
    header = "tokens,words,hidden units,wrong (unavoidable),largest error,seconds,certificate,"
    common.table((header + "seconds,peak GB").split(","), [row])


def made(
    words: tuple[str, ...], ids: np.ndarray, labels: np.ndarray, offsets: np.ndarray, kinds: int
) -> Corpus:
    """A corpus of columns."""
    names = words if kinds == len(words) else tuple(f"L{i}" for i in range(kinds))
    count = len(offsets) - 1
    return Corpus(
        source="made up",
        vocabulary=words,
        label_names=names,
        token_ids=ids.astype(np.int64),
        label_ids=labels.astype(np.int64),
        offsets=offsets.astype(np.int64),
        lines=np.repeat(np.arange(1, count + 1), np.diff(offsets)),
        files=(None,),
        file_ids=np.zeros(count, np.int64),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=common.SHARED, help="folder of the corpora")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--most", type=int, default=3_000_000, help="tokens of the largest text")
    parser.add_argument("--only", choices=["sizes", "edits", "growth", "next"])
    given = parser.parse_args()
    parts: dict[str, Callable[[], None]] = {
        "sizes": lambda: sizes(given.data, given.repeat),
        "edits": lambda: edits(given.data, 20),
        "growth": lambda: growth(given.most),
        "next": lambda: next_tokens(480_000),
    }
    for name, part in parts.items():
        if given.only in (None, name):
            part()


if __name__ == "__main__":
    main()
