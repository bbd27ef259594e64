"""
Audit a data set
================

Before anybody trains a model: what is the best score that any model could reach on this file, and
which rows stand in the way? We take the built-in corpus, spoil some labels, and look for them.
"""

import random

import matplotlib.pyplot as plt

import rankone

corpus = rankone.read_corpus("builtin")
audit = rankone.inspect(corpus)
print(f"{audit.sentences} sentences, {audit.tokens} tokens, {len(audit.conflicts)} conflicts")

# %%
# Ceilings
# --------
#
# A ceiling is the best accuracy of *any* function of some input, however large the model is. It
# is found by counting: tokens with the same input must share a label, so all but the most
# frequent one are errors.

figure, axis = plt.subplots(figsize=(7, 2.8), layout="constrained")
shares = {name: ceiling.accuracy for name, ceiling in audit.ceilings.items()}
bars = axis.barh(list(shares), list(shares.values()), color="#4477aa")
axis.bar_label(bars, [f"{share:.2%}" for share in shares.values()], padding=4)
axis.set(xlim=(0, 1.15), xlabel="best possible accuracy")
axis.invert_yaxis()

# %%
# A tagger that sees single words cannot get past the bar ``token``. One that sees the whole
# sentence and the position can get everything right, because no sentence stands in the file twice
# with different labels.
#
# Spoil it
# --------
#
# Copy fifty sentences, and change one label in each copy. Now the file contradicts itself.

rng = random.Random(0)
pairs = [(list(s.tokens), list(s.labels)) for s in corpus.sentences]
for tokens, labels in rng.sample(pairs, 50):
    changed = list(labels)
    place = rng.randrange(len(changed))
    changed[place] = rng.choice([name for name in corpus.label_names if name != changed[place]])
    pairs.append((tokens, changed))
spoiled = rankone.Corpus.from_sentences(pairs)

audit = rankone.inspect(spoiled)
print(f"{len(audit.conflicts)} conflicts")
print(f"no model that sees the whole sentence gets past {audit.ceilings['sequence'].accuracy:.3%}")
for conflict in audit.conflicts[:3]:
    print("-", conflict)

# %%
# A constructed model reaches that ceiling exactly, and says so.

result = rankone.memorize(spoiled)
print(f"{result.wrong} wrong, {result.unavoidable} of them unavoidable")

# %%
# Wrong labels that contradict nothing
# ------------------------------------
#
# A wrong label in a sentence that occurs once is no conflict. It still disagrees with its
# neighbourhood: with the same word between the same neighbours elsewhere. ``suspects`` ranks
# tokens by the probability that their label is wrong, and quotes the rows that speak against it.
# We change 60 labels and count how many of the first suspects are among them.

pairs = [(list(s.tokens), list(s.labels)) for s in corpus.sentences]
planted = set()
for number in rng.sample(range(len(pairs)), 60):
    labels = pairs[number][1]
    place = rng.randrange(len(labels))
    labels[place] = rng.choice([name for name in corpus.label_names if name != labels[place]])
    planted.add((number + 1, place + 1))  # sentences and positions count from 1

audit = rankone.inspect(rankone.Corpus.from_sentences(pairs), suspects=120)
hits = [(s.line, s.position) in planted for s in audit.suspects]
print(
    f"{sum(hits[:60])} of the first 60 suspects are planted, {sum(hits)} of the first {len(hits)}"
)
worst = audit.suspects[0]
print(f"{worst.token!r} as {worst.label}, rather {worst.proposal}: score {worst.score:.3f}")

figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
found = [sum(hits[: i + 1]) for i in range(len(hits))]
axis.plot(range(1, len(hits) + 1), found, color="#4477aa", lw=2, label="suspects")
axis.plot([0, 60], [0, 60], color="grey", ls=":", label="every one a hit")
axis.axhline(60, color="grey", lw=0.6)
axis.set(xlabel="suspects read", ylabel="planted errors found")
axis.legend(frameon=False)

# %%
# On the command line this is ``rankone inspect train.conll --suspects 20``, with ``--out
# page.html`` for a page to read, and ``--fail-on conflicts`` for a job that must fail.
