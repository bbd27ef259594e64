"""An exported directory where rankone is not installed and there is no network."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import rankone
from rankone import Corpus
from rankone.interop.huggingface import RankOneModel, export_hf

SOME = 60
PAIRS = [("A rose is a rose.", "good"), ("No\r\n rose?", "bad"), ("\ufeffcaf\u00e9 \x1c!", "odd")]
DOCUMENTS = [text for text, _ in PAIRS] + ["zebras sleep", " ", "A rose"]

LABEL = """
import importlib.util, json, os, sys
assert importlib.util.find_spec("rankone") is None
import torch
from safetensors.torch import save_file
from transformers import AutoModel, AutoModelForTokenClassification, AutoTokenizer
from transformers import pipeline

home, texts, out = sys.argv[1:]
os.chdir(os.path.dirname(home))
sentences, documents = json.load(sys.stdin)
said = {}
try:
    pipeline("token-classification", model=home)
except Exception as error:
    said["refusal"] = str(error)
trust = {"trust_remote_code": True}
label = pipeline("token-classification", model=home, ignore_labels=[], **trust)
split = label(sentences, is_split_into_words=True)
plain = label([*map(" ".join, sentences), "", " "], batch_size=7)
long = label(" ".join(sentences[0] * 9), stride=0)
said["labels"] = [[[t["entity"] for t in s] for s in found] for found in (split, plain)]
said["long"] = [t["entity"] for t in long]
model = AutoModelForTokenClassification.from_pretrained(home, **trust)
body = AutoModel.from_pretrained(home, **trust)
tokenizer = AutoTokenizer.from_pretrained(home, **trust)
given = tokenizer(sentences, is_split_into_words=True, padding=True, return_tensors="pt")
with torch.no_grad():
    logits = model(**given).logits
    assert model.head(body(**given).last_hidden_state).equal(logits)
save_file({"logits": logits, "mask": given["attention_mask"]}, out + "/logits.safetensors")
said["kinds"] = [type(x).__name__ for x in (model, body, tokenizer)]
classify = pipeline("text-classification", model=texts, **trust)
said["classes"] = [row["label"] for row in classify(documents, batch_size=3)]
said["classifier"] = [type(x).__name__ for x in (classify.model, classify.tokenizer)]
classify.save_pretrained(out + "/texts")
write = pipeline("text-generation", model="next", **trust)
(said["told"],) = write("A rose is", max_new_tokens=20, do_sample=False)
write.save_pretrained(out + "/next")
said["writer"] = [type(x).__name__ for x in (write.model, write.tokenizer)]
model.train().eval()  # warns
model.save_pretrained(out + "/again")
tokenizer.save_pretrained(out + "/again")
said["made_by"] = [model.config.made_by]
model.head.bias.data.add_(1)
model.save_pretrained(out + "/changed")
said["made_by"].append(model.config.made_by)
AutoModel.from_pretrained(out + "/again", **trust)  # what was saved again is complete
open(out + "/said.json", "w").write(json.dumps(said))
"""


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new environment with everything that is installed here, but rankone."""
    home = tmp_path_factory.mktemp("clean") / "venv"
    venv.create(home, symlinks=True)
    here = Path(sysconfig.get_path("purelib"))
    there = Path(sysconfig.get_path("purelib", vars={"base": str(home)}))
    for entry in here.iterdir():
        if "rankone" not in entry.name:
            (there / entry.name).symlink_to(entry)
    return home / "bin" / "python"


def run(python: Path, code: str, *arguments: Path, given: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    caches = {"HF_HOME": str(arguments[-1] / "cache"), "HF_HUB_OFFLINE": "1"}
    return subprocess.run(
        [str(python), "-c", code, *map(str, arguments)],
        input=given,
        capture_output=True,
        text=True,
        env={**inherited, **caches, "OMP_NUM_THREADS": "1"},
        timeout=300,
    )


def test_without_rankone(clean: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    made = rankone.memorize("builtin")
    model, home = made.model, tmp_path / "hf"
    export_hf(model, home, report=made.to_json())
    some = rankone.read_corpus("builtin").sentences[:SOME]
    classifier = rankone.memorize(Corpus.from_texts(PAIRS, task="class")).model
    export_hf(classifier, tmp_path / "texts")
    texts = ["A rose is a rose.", "No rose is a nose."]
    writer = rankone.memorize(Corpus.from_texts(texts, window=3)).model
    export_hf(writer, tmp_path / "next")
    blocks = re.findall(r"```py\n(.*?)```", (home / "README.md").read_text(), re.S)
    (card,) = (block for block in blocks if "trust_remote_code" in block)  # runs as it stands
    code = LABEL + card + blocks[-1] + 'assert len(label("Savannah told Orlando")) == 2\n'
    given = json.dumps([[s.tokens for s in some], DOCUMENTS])
    done = run(clean, code, home, tmp_path / "texts", tmp_path / "out", given=given)
    assert done.returncode == 0, done.stderr
    out = tmp_path / "out"
    said = json.loads((out / "said.json").read_text())
    assert said["classes"] == classifier.classify(DOCUMENTS)
    assert said["classes"][:3] == [label for _, label in PAIRS]
    assert said["classifier"] == ["RankOneForSequenceClassification", "RankOneTokenizer"]
    assert rankone.load(out / "texts").classify(DOCUMENTS) == said["classes"]
    assert said["told"] == {"generated_text": texts[0]}
    assert said["writer"] == ["RankOneForCausalLM", "RankOneTokenizer"]
    assert rankone.load(out / "next").labels == writer.labels
    assert "trust_remote_code=True" in said["refusal"]
    labels = [list(s.labels) for s in some]
    assert said["labels"] == [labels, [*labels, [], []]]
    words, step = list(some[0].tokens) * 9, model.network.shape.positions
    pieces = model.predict([words[k : k + step] for k in range(0, len(words), step)])
    assert said["long"] == [label for piece in pieces for label in piece]
    assert said["kinds"] == ["RankOneForTokenClassification", "RankOneModel", "RankOneTokenizer"]
    assert said["made_by"] == ["construction", "construction, then changed"]
    assert done.stderr.count("These weights were constructed, not learned") == 1
    # What it saves again is, bit for bit, what was exported, and opens with rankone.
    again = rankone.load(out / "again")
    assert again.vocabulary == model.vocabulary
    for name, tensor in again.network.named_parameters():
        assert tensor.equal(model.network.get_parameter(name))
    assert RankOneModel.from_pretrained(out / "again").table.equal(model.network.table)
    # Its logits are those of the network as written, up to what that one rounds.
    found = load_file(out / "logits.safetensors")
    mask = found["mask"].bool()
    longest = mask.shape[1]
    ids = torch.tensor([[*model.rows(s.tokens), *[0] * longest][:longest] for s in some])
    with torch.no_grad():
        written = model.network(ids, mask)
    torch.testing.assert_close(found["logits"][mask], written[mask], rtol=0, atol=1e-5)
