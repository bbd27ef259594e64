"""
Your first model
================

A labelled corpus goes in, a Transformer that labels it without an error comes out. There is no
training: every weight is computed. This page builds one, looks inside, and follows a sentence
from its words to its labels.
"""

import rankone
from rankone.explanation.readout_plots import plot_sentence, plot_staircase
from rankone.explanation.trace import staircase, trace

corpus = rankone.read_corpus("builtin")  # or the path of a file: CoNLL, TSV, JSON lines, Parquet
print(f"{len(corpus.sentences)} sentences, {corpus.n_tokens} tokens, labels {corpus.label_names}")
first = corpus.sentences[0]
for word, label in zip(first.tokens, first.labels, strict=True):
    print(f"{word:12} {label}")

# %%
# Build it
# --------
#
# `rankone.memorize` chooses the weights, runs the finished network over every token and only then
# returns it.

result = rankone.memorize(corpus)
print(f"{result.wrong} wrong of {result.tokens}; {result.hidden_units} hidden units")
print(f"largest distance of an output from its label: {result.max_error:.1e} (1/2 is the limit)")
print(f"built and checked in {sum(result.seconds.values()):.1f} s")

# %%
# Use it
# ------

print(result.model.predict([first.tokens]) == [list(first.labels)])

# %%
# What is inside
# --------------
#
# The network is eq. 4 of the paper, one block: attention with one head of head size 1 (eq. 2,
# written with three vectors in eq. 20), then one hidden layer (eq. 3). So it can be followed by
# eye. Each row of the picture is a token:
#
# 1. Its *key* is one number.
# 2. Attention weighs the keys of the sentence and averages them.
# 3. The word has a place of its own on a line, and the average moves it a little. The sum is
#    the *context id*: a number for this word in this sentence at this position.
# 4. The *readout* turns the number into the number of a label.

shown = trace(result.model, corpus)
steps = staircase(result.model, corpus)
sentence = plot_sentence(shown, dict(zip(steps.names, steps.numbers.tolist(), strict=True)))

# %%
# The readout is a staircase along the line of context ids. It needs hidden units only where the
# label changes from one context id to the next, which is why there are fewer units than tokens.

stairs = plot_staircase(steps)

# %%
# Keep it
# -------
#
# A model is a directory: weights in safetensors, the rest as JSON. Same corpus, same seed, same
# bytes.

from pathlib import Path
from tempfile import TemporaryDirectory

with TemporaryDirectory() as folder:
    result.save(folder)
    for path in sorted(Path(folder).iterdir()):
        print(f"{path.stat().st_size:>10,} {path.name}")
    again = rankone.load(folder)
    print(again.predict([first.tokens]) == [list(first.labels)])
