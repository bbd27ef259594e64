"""
From Hugging Face and back
==========================

A constructed model is an ordinary model to others: transformers opens it as one of its own, ONNX
Runtime runs it. What comes out is compared with what went in, to the last label. (``pip install
'rankone[hf,onnx]'``)
"""

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np
import torch

import rankone

corpus = rankone.read_corpus("builtin")
model = rankone.memorize(corpus, construction="gated", dtype="float32").model
home = Path(mkdtemp())
rankone.export_hf(model, home / "hf")
for path in sorted((home / "hf").iterdir()):
    print(f"{path.stat().st_size:>10,} {path.name}")

# %%
# There
# -----
#
# Importing ``rankone.interop.huggingface`` registers the classes, and then the usual doors open
# the directory.

from transformers import AutoModelForTokenClassification, AutoTokenizer, pipeline

import rankone.interop.huggingface

tokenizer = AutoTokenizer.from_pretrained(home / "hf")
network = AutoModelForTokenClassification.from_pretrained(home / "hf", dtype="auto").eval()
tag = pipeline("token-classification", model=network, tokenizer=tokenizer)
first = corpus.sentences[0]
for found in tag(" ".join(first.tokens)):
    print(f"{found['word']:12} {found['entity']:8} {found['score']:.3f}")

# %%
# The same labels
# ---------------
#
# On every token of 300 sentences, padded into one batch.

sentences = [list(s.tokens) for s in corpus.sentences[:300]]
batch = tokenizer(sentences, is_split_into_words=True, padding=True, return_tensors="pt")
with torch.no_grad():
    logits = network(**batch).logits
expected = model.predict(sentences)
same = total = 0
for row, words, labels in zip(logits.argmax(-1).tolist(), sentences, expected, strict=True):
    got = [network.config.id2label[i] for i in row[: len(words)]]
    same, total = same + sum(map(str.__eq__, got, labels)), total + len(words)
print(f"{same} of {total} labels agree")

# %%
# ONNX
# ----
#
# The graph is run before it is said to be written. Its numbers are those of transformers up to
# rounding.

import onnxruntime

rankone.export_onnx(model, home / "model.onnx")
session = onnxruntime.InferenceSession(home / "model.onnx")
names = [each.name for each in session.get_inputs()]
print("inputs:", names, "outputs:", [each.name for each in session.get_outputs()])

# %%
# And back
# --------
#
# The exported directory holds the weights bit for bit. What was opened by transformers and saved
# by it again is still the model that can be certified.

network.save_pretrained(home / "again")
from safetensors.torch import load_file

before, after = (load_file(home / name / "model.safetensors") for name in ("hf", "again"))
print(all(torch.equal(before[name], after[name]) for name in before), len(before), "tensors")
print(rankone.certify(model, corpus).outcome)

# %%
# The leads of the logits, that is, how far the label is ahead of all others:

ordered = np.sort(logits[batch.attention_mask.bool()].numpy(), -1)
figure, axis = plt.subplots(figsize=(7, 2.8), layout="constrained")
axis.hist(ordered[:, -1] - ordered[:, -2], bins=60, color="#4477aa")
axis.set(xlabel="logit of the label less the next best", ylabel="tokens", yscale="log")
