"""How long construction and verification take beside a Python dict from sentence to labels.

A dict is the plainest way to memorise a corpus. It can be built from the corpus as it is after
reading, from lists of strings that exist already, or from tuples that exist already; the last
only hashes. All times are the best of several runs in one process.
"""

from __future__ import annotations

import dataclasses

import numpy as np

import common
import rankone
from rankone import Corpus


def seconds(corpus: Corpus, repeat: int = 25) -> tuple[float, float, rankone.Memorized]:
    """Best construct and verify times; nothing is kept from run to run."""
    results = [rankone.memorize(dataclasses.replace(corpus)) for _ in range(repeat)]
    times = [result.seconds for result in results]
    construct, verify = (min(t[stage] for t in times) for stage in ("construct", "verify"))
    return construct, verify, results[-1]


def main() -> None:
    data = common.data_folder(__doc__)
    corpus = rankone.read_corpus(data / "conll2003" / "eng.train", scheme="iob2")
    lists = [(list(s.tokens), list(s.labels)) for s in corpus.sentences]
    tuples = [(tuple(s.tokens), tuple(s.labels)) for s in corpus.sentences]
    dicts = {
        "the corpus as read": common.best(
            lambda: {tuple(s.tokens): s.labels for s in dataclasses.replace(corpus).sentences}
        ),
        "lists of strings": common.best(lambda: {tuple(a): tuple(b) for a, b in lists}),
        "lists, labels not copied": common.best(lambda: {tuple(a): b for a, b in lists}),
        "tuples that exist": common.best(lambda: dict(tuples)),
    }
    construct, verify, result = seconds(corpus)
    print(
        f"CoNLL-2003 train, IOB2: {result.tokens - result.wrong:,} of {result.tokens:,} right, "
        f"{result.wrong} wrong ({result.unavoidable} unavoidable), {result.hidden_units:,} units, "
        f"largest output error {result.max_error:.1e} (fast), {result.dense_error:.1e} (dense)"
    )
    other = rankone.read_corpus(data / "conll2003" / "eng.testa", scheme="iob2")
    model = rankone.memorize(corpus, max_length=max(corpus.longest, other.longest)).model
    found = model.label_ids(model.rows(other.vocabulary)[other.token_ids], other.offsets)
    right = np.array(model.labels)[found] == np.array(other.label_names)[other.label_ids]
    majority = rankone.inspect(other).ceilings["majority"].accuracy
    print(f"on the validation split: {right.mean():.1%} (its most frequent label: {majority:.1%})")
    print(f"construct {construct * 1e3:.1f} ms, verify {verify * 1e3:.1f} ms\n")
    common.table(
        ["a dict from sentence to labels, from", "ms", "construct / dict", "verify / dict"],
        [
            [name, f"{t * 1e3:.1f}", f"{construct / t:.2f}", f"{verify / t:.2f}"]
            for name, t in dicts.items()
        ],
    )


if __name__ == "__main__":
    main()
