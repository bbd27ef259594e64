"""
What a certificate means
========================

That a model was right when somebody ran it is an observation. A certificate is a proof: in exact
real arithmetic, with the weights in the file taken as exact numbers, these labels come out, and
the run in floating point chooses the same ones.
"""

from dataclasses import replace

import matplotlib.pyplot as plt

import rankone

corpus = rankone.read_corpus("builtin")
model = rankone.memorize(corpus).model
certificate = rankone.certify(model, corpus)
for claim, outcome in certificate.claims.items():
    print(f"{claim:15} {outcome}")
print("outcome:", certificate.outcome)

# %%
# Three claims
# ------------
#
# ``mapping`` is Definition 2 of the paper: contexts that differ have context ids more than delta
# apart, and no id is longer than r. ``labels``: in exact arithmetic, every token gets its label,
# but for those that no function of the same input gets right. And the run in float64, with all
# its roundings, decides alike.

print(f"r     = {float(certificate.r):.3g}")
print(f"delta = {float(certificate.delta):.3g}")
print(f"margin of the worst token: {certificate.margin:.3g} of at most 0.5")
print(f"a float64 run is off by at most {float(certificate.float_distance):.1e}")
first, second = certificate.closest
print("the two closest contexts:", first, "and", second)

# %%
# Most tokens are decided in float64, with balls: a midpoint and a radius that bounds every
# rounding error. The few whose balls overlap are computed again with as many digits as it takes.

print(certificate.decided)

# %%
# What it takes to refute one
# ---------------------------
#
# Nothing in a certificate is taken on trust. Spoil the weights of the attention layer a little,
# in one number, and look again. ``files()`` are the bytes that ``save`` would write; here the
# change is made in memory.

import torch

scales = [0.0, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3]
wrong, outcomes = [], []
for scale in scales:
    changed = rankone.memorize(corpus).model
    with torch.no_grad():
        changed.network.blocks[0].attention.heads[0].output.mul_(1 + scale)
    found = rankone.certify(changed, corpus)
    wrong.append(found.wrong)
    outcomes.append(found.outcome)
    print(f"output vector times 1 + {scale:g}: {found.outcome}, {found.wrong} wrong")

figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
colours = ["#228833" if each == "certified" else "#cc6677" for each in outcomes]
bars = axis.bar(range(len(scales)), wrong, color=colours)
axis.bar_label(
    bars, [f"{count} wrong\n{each}" for count, each in zip(wrong, outcomes, strict=True)]
)
axis.set_xticks(range(len(scales)), [f"{scale:g}" for scale in scales])
axis.set(xlabel="relative change of one vector", ylabel="wrong tokens")
axis.margins(y=0.25)

# %%
# Steps of the readout lie in the middle of the gaps between context ids. So a change that is
# small enough does nothing at all to the labels, and the certificate says so. A larger one pushes
# some ids over a step.
#
# A refuted model comes with a witness, a token that anybody can check by hand.

print(found.reason)

# %%
# Later, elsewhere
# ----------------
#
# A certificate names the bytes that it is about. `rankone.check_certificate` proves everything
# again, from the files alone, and a certificate for another model or another corpus is not
# accepted. Nor is one that claims more than holds.

from pathlib import Path
from tempfile import TemporaryDirectory

with TemporaryDirectory() as folder:
    certificate.save(Path(folder) / "certificate.json")
    read = rankone.read_certificate(Path(folder) / "certificate.json")
    print(read.is_of(model), read.is_of(changed))
    print(rankone.check_certificate(read, model, corpus).outcome)
    forged = replace(read, delta="1000")  # a bolder claim than was proved
    check = rankone.check_certificate(forged, model, corpus)
    print(check.ok, check.reasons)

# %%
# :doc:`/certificate` has the proof, and what each field promises.
