"""What a certificate costs: beside a verification run, with literal constants, as it grows, and for
texts (``--text FILE``).

The verification run is that of `memorize`: every token through the fast path in float64. All times
are the best of several runs in one process.
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
import time
from itertools import product
from pathlib import Path

import common
import rankone
import scaling
from rankone import Corpus, Memorized
from rankone.construct.theorem2.embedded import embed_corpus, graded_model
from rankone.construct.theorem2.weights import contextual_mapping
from rankone.corpus.builtin import toy_corpus
from rankone.corpus.tokenizers import tokenizer_of
from rankone.nn import Evaluator

LITERAL = ((5, 3, 2), (8, 4, 3))


def cost(
    corpus: Corpus, result: Memorized, repeat: int
) -> tuple[float, float, rankone.Certificate]:
    """Verification run and whole certificate, in turns; nothing is kept from run to run."""
    network = result.model.network
    p = network.head.weight[0].detach().numpy() / 2
    run = whole = float("inf")
    for _ in range(repeat):
        fresh = dataclasses.replace(corpus)
        run = min(
            run,
            common.best(
                lambda c=fresh: Evaluator(network).run(c.token_ids, c.offsets, lambda z: p @ z), 3
            ),
        )
        started = time.perf_counter()
        certificate = rankone.certify(result.model, fresh)
        whole = min(whole, time.perf_counter() - started)
    return run, whole, certificate


def real_corpora(data: Path) -> None:
    corpora = {
        "CoNLL-2003, IOB2": ("conll2003/eng.train", {"scheme": "iob2"}),
        "EWT": ("ud-english-ewt/en_ewt-ud-train.conllu.gz", {}),
        "WNUT-17": ("wnut17/wnut17train.conll", {}),
    }
    settings: dict[str, dict[str, object]] = {
        "": {},
        ", causal": {"causal": True},
        ", no positions": {"positions": False},
        ", head size 2": {"head_size": 2},
    }
    rows = []
    for (name, (path, how)), (suffix, options) in product(corpora.items(), settings.items()):
        if suffix and name != "CoNLL-2003, IOB2":
            continue
        corpus = rankone.read_corpus(data / path, **how)
        result = rankone.memorize(corpus, **options)
        run, whole, found = cost(corpus, result, 5 if suffix else 15)
        decided = found.decided
        rows.append(
            [
                name + suffix,
                found.outcome.value,
                found.delta,
                f"{found.margin:.6f}",
                found.float_distance,
                f"{decided['exact']} ({decided['exact'] / found.tokens:.2%})",
                f"{run * 1e3:.1f}",
                f"{whole * 1e3:.1f}",
                f"{whole / run:.1f}",
            ]
        )
    header = "corpus,outcome,delta,margin,float64 off by,tokens in Arb,run ms,certificate ms,ratio"
    common.table(header.split(","), rows)


def literal() -> None:
    rows = []
    for words, n, dim in LITERAL:
        corpus = toy_corpus(words, n)
        for grade, query in (("paper", "shared"), ("tight", "shared"), ("tight", "separate")):
            started = time.perf_counter()
            where = embed_corpus(corpus, dim=dim)
            graded = contextual_mapping(where.columns, where.n, grade=grade, query=query)
            found = rankone.certify(graded_model(corpus, where, graded), corpus)
            rows.append(
                [
                    f"{words}, {n}, {dim}",
                    grade if query == "shared" else f"{grade}, {query} query",
                    found.outcome.value,
                    f"{found.digits:,}",
                    f"1e{graded.log10_bound:.0f}",
                    found.delta,
                    f"{time.perf_counter() - started:.2f}",
                ]
            )
    header = "|V|; n; d,grade,outcome,digits used,bound (eq. 8),certified gap,seconds"
    common.table([name.replace(";", ",") for name in header.split(",")], rows)


def growth() -> None:
    rows = []
    base: float | None = None
    with tempfile.TemporaryDirectory() as folder:
        for size in scaling.SIZES:
            path = f"{folder}/{size}.conll"
            scaling.zipf_file(size, path)
            corpus = rankone.read_corpus(path)
            run, whole, found = cost(corpus, rankone.memorize(corpus), 3)
            per_token = whole / found.tokens
            base = base or per_token
            rows.append(
                [
                    f"{found.tokens:,}",
                    found.outcome.value,
                    found.delta,
                    f"{found.decided['exact']:,}",
                    f"{whole:.2f}",
                    f"{whole / run:.1f}",
                    f"{per_token / base:.2f}",
                ]
            )
    header = "tokens,outcome,delta,tokens in Arb,seconds,ratio to run,growth per token"
    common.table(header.split(","), rows)


def texts(path: Path, counts: list[int]) -> None:
    """The first tokens of a text, as one document or a document for every block."""
    tokens = tokenizer_of("words").split(path.read_text(encoding="utf-8"), str(path))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for count, dtype in product(counts, ("float32", "float64")):
            part = Path(folder) / f"{count}.txt"
            part.write_text("".join(tokens[:count]), encoding="utf-8")
            settings: list[dict[str, object]] = [
                {"window": 8},
                {"window": 32},
                {},
                {"blocks": True},
            ]
            for how in settings:
                corpus = rankone.read_corpus(part, task="next", **how)
                name = ", ".join(k if v is True else f"{k} {v}" for k, v in how.items())
                name = name or "one document"
                try:
                    result = rankone.memorize(corpus, dtype=dtype)
                except rankone.RankOneError as error:
                    rows.append([f"{count:,}", name, dtype, str(error).splitlines()[0][:60]])
                    continue
                started = time.perf_counter()
                found = rankone.certify(result.model, dataclasses.replace(corpus))
                rows.append(
                    [
                        f"{count:,}",
                        name,
                        dtype,
                        found.outcome.value,
                        found.delta,
                        f"{found.margin}",
                        f"{found.wrong:,} ({found.unavoidable:,})",
                        f"{found.recited:,} of {found.documents:,}",
                        f"{found.excess}",
                        f"{found.any_order}",
                        f"{found.decided['exact']:,}",
                        f"{time.perf_counter() - started:.1f}",
                    ]
                )
    header = (
        "tokens,read,dtype,outcome,delta,margin,wrong (unavoidable),recited,excess nats,any order,"
        "tokens in Arb,seconds"
    )
    common.table(header.split(","), [row + [""] * (12 - len(row)) for row in rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=common.SHARED, help="folder of the corpora")
    parser.add_argument("--text", type=Path, help="a text to certify the beginning of, and no more")
    parser.add_argument("--tokens", type=int, nargs="+", default=[100_000, 500_000])
    arguments = parser.parse_args()
    if arguments.text is not None:
        texts(arguments.text, arguments.tokens)
        return
    literal()
    if arguments.data.is_dir():
        real_corpora(arguments.data)
    growth()


if __name__ == "__main__":
    main()
