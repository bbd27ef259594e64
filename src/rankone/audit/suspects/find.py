"""From a corpus to its suspects."""

from __future__ import annotations

from rankone.arrays import Floats
from rankone.audit.findings import Suspect
from rankone.corpus.corpus import Corpus


def find_suspects(
    corpus: Corpus, tokens: int, count: int, probabilities: Floats | None = None
) -> tuple[Suspect, ...]:
    """Of the first `tokens` of a corpus, the `count` likeliest to be mislabelled; all tokens vote.

    `probabilities` are those of a model for these tokens, one column per label.
    """
    return ()
