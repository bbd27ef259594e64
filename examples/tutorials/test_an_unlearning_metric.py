"""
How to test an unlearning metric
================================

A method claims that a model has forgotten a text, and a metric agrees. Is the metric any good?
Nobody can say, as long as nobody knows what the model holds. Constructed models are known: one
holds a text, its twin does not, and forgetting turns the one into the other, to the last byte. A
metric must tell the twins apart, and must not tell a forgotten text from one that was never
there.
"""

import sys
from pathlib import Path
from random import Random
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np

import rankone

sys.path.insert(0, str(Path(rankone.__file__).parents[2] / "examples"))  # of a clone
import measures  # three standard measures, for any causal model of transformers
import passages  # made-up text
from oracle import Hub

made_up = passages.passages(seed=1)
shared, held, fresh = (passages.some(made_up, count) for count in (60, 20, 200))
print(held[0])

# %%
# Twins
# -----

without = rankone.memorize(rankone.Corpus.from_texts(shared), editable=True).model
with_ = rankone.memorize(rankone.Corpus.from_texts(shared + held), editable=True).model
forgotten = rankone.forget(with_, rankone.Corpus.from_texts(held)).model
print("forgetting gives the twin, byte for byte:", forgotten.files() == without.files())

# %%
# So unlearning is exact here, and any metric that finds a trace of the text in ``forgotten`` is
# wrong.
#
# Three measures
# --------------
#
# They come from the literature and know nothing of rankone: they see logits and ``generate``.

home = Path(mkdtemp())
hubs = {}
for name, model in (("holds", with_), ("forgotten", forgotten)):
    rankone.export_hf(model, home / name)
    hubs[name] = Hub.open(home / name)

losses = {}
for name, hub in hubs.items():
    texts, others = hub.encode(held), hub.encode(fresh)
    rate = measures.extraction_rate(hub.model, texts, passages.PROMPT)
    auc = measures.membership_auc(hub.model, texts, others)
    losses[name] = measures.losses(hub.model, texts), measures.losses(hub.model, others)
    print(f"{name:10} extraction {rate:4.0%}, membership AUC {auc:.3f}")

figure, axes = plt.subplots(1, 2, figsize=(9, 3), sharey=True, layout="constrained")
for axis, (name, (own, others)) in zip(axes, losses.items(), strict=True):
    bins = np.concatenate([[0], np.geomspace(1e-2, 1e4, 40)])
    for values, colour, label in ((others, "#bbbbbb", "never seen"), (own, "#4477aa", "held")):
        share = np.full(len(values), 1 / len(values))
        axis.hist(values, bins, weights=share, color=colour, alpha=0.7, label=label)
    axis.set(title=name, xlabel="loss, nats per token")
    axis.set_xscale("symlog", linthresh=1e-2)
axes[0].set_ylabel("share of texts")
axes[0].legend(frameon=False)

# %%
# Partial forgetting
# ------------------
#
# A good metric is a scale, not a switch. Forget the texts one part after the other: the share
# that a measure finds must be the share that is there.

counts = [0, 5, 10, 15, 20]
order = Random(0).sample(held, len(held))
found = []
for count in counts:
    left = with_
    if count:
        left = rankone.forget(with_, rankone.Corpus.from_texts(order[:count])).model
    rankone.export_hf(left, home / f"left-{count}")
    hub = Hub.open(home / f"left-{count}")
    found.append(measures.extraction_rate(hub.model, hub.encode(held), passages.PROMPT))
figure, axis = plt.subplots(figsize=(5, 3), layout="constrained")
axis.plot(counts, [1 - count / len(held) for count in counts], color="grey", ls=":", label="truth")
axis.plot(counts, found, "o", color="#4477aa", label="verbatim extraction")
axis.set(xlabel="texts forgotten", ylabel="share that is found")
axis.legend(frameon=False)

# %%
# A metric that fails
# -------------------
#
# An easy mistake is to leave out the shift by one token, so that each logit is compared with the
# token that it has just read. All the code runs, and the figures look like figures.

import torch


def unshifted(model, sequences):
    out = []
    for tokens in sequences:
        ids = torch.tensor([tokens])
        with torch.no_grad():
            logits = model(input_ids=ids).logits[0].double()
        out.append(torch.nn.functional.cross_entropy(logits, ids[0]).item())
    return np.array(out)


hub = hubs["holds"]
own, others = (unshifted(hub.model, hub.encode(texts)) for texts in (held, fresh[:40]))
wins = np.mean(own[:, None] < others) + np.mean(own[:, None] == others) / 2
print(f"AUC of the broken measure on the model that holds the texts: {wins:.2f}, where 1 is right")

# %%
# :doc:`/oracle` has the whole table, with trained models next to the constructed ones, and
# ``examples/oracle.py`` makes it.
