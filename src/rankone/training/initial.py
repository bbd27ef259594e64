"""The network before the first step."""

from __future__ import annotations

import numpy as np
import torch

from rankone.construct.theorem2.projection import draw_directions, measure
from rankone.corpus import Corpus
from rankone.errors import SettingError
from rankone.nn import Rank1Attention, TokenClassifier
from rankone.nn.ragged import Ragged
from rankone.spans import spans
from rankone.training.settings import Settings

SPREAD = 8.0  # largest difference of two scores: logits of order 1 to 10 tell contexts apart best
DRAWS = 1000  # each satisfies Lemma 2 with a probability above 1 / (number of words)
POINTS = 4096  # most words for which v is proved to satisfy Lemma 2; v is drawn alike for more


def initial(corpus: Corpus, settings: Settings) -> TokenClassifier:
    """Weights drawn by the seed alone; of "theorem2", v1 and v2 are constructed, and fixed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        try:
            network = TokenClassifier(
                settings.network(corpus), dtype=getattr(torch, settings.dtype)
            )
        except RuntimeError as error:  # torch raises this if memory runs out
            raise MemoryError(str(error)) from None
    with torch.no_grad():
        network.table.mul_(settings.init_std)
        if network.positions is not None:
            network.positions.mul_(settings.init_std)
    if settings.attention == "theorem2":
        construct(network, corpus, settings.seed)
    return network


@torch.no_grad()
def construct(network: TokenClassifier, corpus: Corpus, seed: int) -> None:
    """Projections for every block: the first sees the rows of the token table, the others what the
    block before makes of the first sentences of the corpus."""
    (_, last), *_ = spans(corpus.offsets, POINTS)
    sentences = Ragged(corpus.offsets[: last + 1])
    z = network.table[torch.from_numpy(corpus.token_ids[: corpus.offsets[last]])]
    if network.positions is not None:
        z = z + network.positions[sentences.positions]
    seen = network.table
    for number, block in enumerate(network.blocks):
        assert isinstance(block.attention, Rank1Attention)
        construct_projections(block.attention, seen, [seed, number])
        z = block.ragged(z, sentences)
        seen = torch.unique(z, dim=0)


@torch.no_grad()
def construct_projections(
    attention: Rank1Attention, vectors: torch.Tensor, seed: list[int]
) -> None:
    """v1 and v2 along one vector v, as in the proof of Theorem 2, and fixed.

    v keeps the vectors apart as Lemma 2 demands, and so do v1 and v2 as rounded. The literal length
    of v2 (eq. 29) would make every softmax a hardmax in floats, so it is that of the practical
    grade: v1^T x has standard deviation 1 over the vectors, and no two scores differ by
    more than `SPREAD`.
    """
    rows = vectors.double().numpy()
    if not np.isfinite(rows).all():
        raise SettingError("the vectors at the start are not finite", remedy="lower init_std")
    if (rows == rows[0]).all():
        raise SettingError("all rows of the token table are equal", remedy="give init_std > 0")
    entropy = int(np.random.SeedSequence(seed).generate_state(1)[0])
    for v in draw_directions(rows.shape[1], DRAWS, entropy):
        key = rows @ v
        scale = float(key.std())
        attention.v1.copy_(torch.from_numpy(v / scale))
        attention.v2.copy_(
            torch.from_numpy(v * (SPREAD / float(np.abs(key).max() * np.ptp(key / scale))))
        )
        rounded = [x.double().numpy() for x in (attention.v1, attention.v2)]
        if all(measure(rows[:POINTS], x, draws=1, method="sample").ok for x in rounded):
            break
    else:
        raise SettingError(
            f"none of {DRAWS} directions keeps the rows of the token table apart",
            remedy="give a larger dim or init_std, or another seed",
        )
    attention.v1.requires_grad_(False)
    attention.v2.requires_grad_(False)
