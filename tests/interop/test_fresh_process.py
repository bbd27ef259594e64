"""An exported directory in another process without network, with rankone and without it."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import rankone
from rankone.interop.huggingface import export_hf

SOME = 60

LABEL = """
import json, sys
import torch
from safetensors.torch import save_file
{preamble}
from transformers import AutoModelForTokenClassification, AutoTokenizer, pipeline

home, out = sys.argv[1:]
sentences = json.load(sys.stdin)
label = pipeline("token-classification", model=home, ignore_labels=[], {trust})
split = label(sentences, is_split_into_words=True)
plain = label([" ".join(words) for words in sentences], batch_size=7)
model = AutoModelForTokenClassification.from_pretrained(home, {trust})
tokenizer = AutoTokenizer.from_pretrained(home, {trust})
given = tokenizer(sentences, is_split_into_words=True, padding=True, return_tensors="pt")
with torch.no_grad():
    logits = model(**given).logits
save_file({{"logits": logits, "mask": given["attention_mask"]}}, out + "/logits.safetensors")
model.save_pretrained(out + "/again")
tokenizer.save_pretrained(out + "/again")
print(json.dumps([[[t["entity"] for t in s] for s in found] for found in (split, plain)]))
"""
WITH = LABEL.format(preamble="import rankone.interop.huggingface", trust="")
WITHOUT = LABEL.format(
    preamble="import importlib.util\nassert importlib.util.find_spec('rankone') is None",
    trust="trust_remote_code=True",
)


@pytest.fixture(scope="module")
def model() -> rankone.Model:
    return rankone.memorize("builtin").model


@pytest.fixture(scope="module")
def home(model: rankone.Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("fresh") / "hf"
    export_hf(model, home)
    return home


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


def run(
    python: Path | str, code: str, *arguments: Path, given: str = ""
) -> subprocess.CompletedProcess[str]:
    caches = {"HF_HOME": str(arguments[-1] / "cache"), "HF_HUB_OFFLINE": "1"}
    return subprocess.run(
        [str(python), "-c", code, *map(str, arguments)],
        input=given,
        capture_output=True,
        text=True,
        env={**os.environ, **caches, "OMP_NUM_THREADS": "1"},
        timeout=300,
    )


@pytest.mark.parametrize("installed", [True, False], ids=["with rankone", "without"])
def test_round_trip(
    home: Path, clean: Path, model: rankone.Model, tmp_path: Path, installed: bool
) -> None:
    some = rankone.read_corpus("builtin").sentences[:SOME]
    python = Path(sysconfig.get_path("scripts")) / "python" if installed else clean
    done = run(
        python,
        WITH if installed else WITHOUT,
        home,
        tmp_path,
        given=json.dumps([s.tokens for s in some]),
    )
    assert done.returncode == 0, done.stderr
    for found in json.loads(done.stdout):
        assert found == [s.labels for s in some]
    # What it saves again is, bit for bit, what was exported, and rankone opens it.
    again = rankone.load(tmp_path / "again")
    assert again.vocabulary == model.vocabulary
    for name, tensor in again.network.named_parameters():
        assert tensor.equal(model.network.get_parameter(name))
    assert (tmp_path / "again" / "modeling_rankone.py").exists()
    # Its logits are those of the network as written, up to what that one rounds.
    found = load_file(tmp_path / "logits.safetensors")
    ids = torch.tensor(
        [[*model.rows(s.tokens).tolist(), *[0] * 11][:11] for s in some], dtype=torch.long
    )
    mask = found["mask"].bool()
    assert mask.shape[1] <= 11
    with torch.no_grad():
        ids = ids[:, : mask.shape[1]]
        written = model.network(ids, mask)
    torch.testing.assert_close(found["logits"][mask], written[mask], rtol=0, atol=1e-5)


def test_without_rankone_and_without_trust(clean: Path, home: Path, tmp_path: Path) -> None:
    code = "import sys, transformers; transformers.pipeline('token-classification', sys.argv[1])"
    done = run(clean, code, home, tmp_path)
    assert done.returncode != 0
    assert "trust_remote_code=True" in done.stderr
