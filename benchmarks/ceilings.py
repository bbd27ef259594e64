"""That every corpus reaches its ceiling under every setting, with the size of the network.

In the first setting every token goes through the network as written, in the others a sample.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import common
import rankone

SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("positions", {"verify": "dense"}),
    ("positions, causal", {"causal": True}),
    ("no positions", {"positions": False}),
    ("no positions, causal", {"positions": False, "causal": True}),
    ("positions, head size 4", {"head_size": 4}),
    ("positions, paper readout", {"readout": "paper"}),
    ("positions, given 64-dim. vectors", {"vectors": 64}),
    ("causal, given 64-dim. vectors", {"vectors": 64, "causal": True}),
]


def main() -> None:
    data = common.data_folder(__doc__)
    corpora = [
        ("CoNLL-2003, IOB2", "conll2003/eng.train", {"scheme": "iob2"}),
        ("EWT, UPOS", "ud-english-ewt/en_ewt-ud-train.conllu.gz", {}),
        ("WNUT-17", "wnut17/wnut17train.conll", {}),
    ]
    for title, name, how in corpora:
        corpus = rankone.read_corpus(data / name, **how)
        rows = []
        for setting, given in SETTINGS:
            settings = dict(given)
            if "vectors" in settings:
                size = (len(corpus.vocabulary), settings["vectors"])
                settings["vectors"] = np.random.default_rng(0).standard_normal(size)
            result = rankone.memorize(corpus, **settings)
            rows.append(
                [
                    setting,
                    f"{result.wrong:,}",
                    f"{result.unavoidable:,}",
                    f"{result.hidden_units:,}",
                    f"{result.parameters:,}",
                    f"{result.max_error:.0e}",
                    f"{result.dense_error:.0e}",
                    f"{result.seconds['construct']:.2f} s",
                ]
            )
        header = [
            "wrong",
            "unavoidable",
            "hidden units",
            "parameters",
            "error",
            "error, dense",
            "construct",
        ]
        print(f"{title}: {corpus.n_tokens:,} tokens\n")
        common.table(["setting", *header], rows)


if __name__ == "__main__":
    main()
