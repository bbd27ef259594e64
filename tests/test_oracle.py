"""The oracle of examples/: measures are at their extremes on constructed twins, and in between on
trained ones; a broken measure is noticed."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import rankone

ROOT = Path(__file__).resolve().parents[1]
SIZE = 5  # passages of each number of copies


@pytest.fixture(scope="module")
def examples() -> Iterator[SimpleNamespace]:
    """The scripts, as modules."""
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        import measures
        import oracle
        import passages

        yield SimpleNamespace(oracle=oracle, measures=measures, passages=passages)
    finally:
        sys.path.remove(str(ROOT / "examples"))


@pytest.fixture(scope="module")
def texts(examples):
    return examples.oracle.Texts.make(SIZE, seed=1)


@pytest.fixture(scope="module")
def twins(examples, texts):
    return examples.oracle.Twins.make(texts, examples.oracle.constructed)


@pytest.fixture(scope="module")
def hubs(examples, twins, tmp_path_factory):
    """Both constructed twins, with and without, as transformers opens them."""
    found = []
    for name, model in (("with", twins.with_), ("without", twins.without)):
        directory = tmp_path_factory.mktemp("twins") / name
        rankone.export_hf(model, directory)
        found.append(examples.oracle.Hub.open(directory))
    return found


@pytest.fixture(scope="module")
def canaries(examples, texts, hubs):
    """All candidates of a canary, and the number of the canary."""
    name = texts.canaries[1][0]
    space = examples.passages.codes(name)
    return hubs[0].encode(space), space.index(examples.passages.code(name, texts.secrets[name]))


def test_texts(examples, texts):
    """A prompt determines its passage; no passage is among others."""
    held = [text for some in texts.held.values() for text in some]
    everything = [*texts.shared, *held, *texts.fresh]
    assert len(set(everything)) == len(everything)
    corpus = rankone.Corpus.from_texts(texts.shared + texts.inserted)
    prompts = {tuple(s.tokens[: examples.passages.PROMPT]) for s in corpus.sentences}
    assert len(prompts) == len({tuple(s.tokens) for s in corpus.sentences})
    assert {text: texts.inserted.count(text) for text in held} == {
        text: times for times, some in texts.held.items() for text in some
    }
    for times, names in texts.canaries.items():
        codes = [examples.passages.code(name, texts.secrets[name]) for name in names]
        assert [texts.inserted.count(code) for code in codes] == [times] * len(codes)


def test_extremes_on_constructed_twins(examples, texts, hubs):
    with_, without = (examples.oracle.measured(hub, texts) for hub in hubs)
    count = len(examples.oracle.TIMES)
    assert with_["extraction"] == with_["membership"] == [1.0] * count
    assert with_["exposure"] == [examples.passages.BITS] * count
    assert without["extraction"] == [0.0] * count
    assert 0.3 < np.mean(without["membership"]) < 0.7
    assert np.mean(without["exposure"]) < 3.0


def test_learning_and_forgetting_make_the_same_twins(examples, texts, twins):
    assert examples.oracle.same_by_editing(twins, texts) == {"learn": True, "forget": True}


def test_a_measure_that_is_broken_is_noticed(examples, texts, hubs, canaries, monkeypatch):
    measures, hub = examples.measures, hubs[0]
    held, fresh = hub.encode(texts.held[1]), hub.encode(texts.fresh)
    mixed = [*held[:2], *fresh[:3]], [*held[2:], *fresh[3:]]
    assert measures.membership_auc(hub.model, *mixed) < 0.95
    assert measures.membership_auc(hub.model, fresh, held) == 0.0
    assert measures.extraction_rate(hub.model, held, 1) < 1.0
    assert measures.extraction_rate(hub.model, [tokens[1:] for tokens in held], 8) < 1.0
    space, canary = canaries
    assert measures.exposure(hub.model, space, canary) == examples.passages.BITS
    assert measures.exposure(hub.model, space, canary - 1) < examples.passages.BITS
    entropy = measures.cross_entropy

    def unshifted(logits, ids, **more):
        return entropy(logits, ids.roll(1, 1), **more)  # each token for itself

    monkeypatch.setattr(measures, "cross_entropy", unshifted)
    assert measures.exposure(hub.model, space, canary) < examples.passages.BITS


def test_losses_of_padded_sequences(examples, texts, twins, hubs, monkeypatch):
    """Sequences of any lengths, in any batches: what the model says of each alone."""
    measures, hub = examples.measures, hubs[0]
    some = hub.encode([*texts.held[1][:2], *texts.shared[-2:], texts.fresh[0]])
    together = measures.losses(hub.model, some)
    monkeypatch.setattr(measures, "BATCH", 2)
    assert measures.losses(hub.model, some) == pytest.approx(together, rel=1e-12)
    alone = [measures.losses(hub.model, [tokens])[0] for tokens in some]
    assert together == pytest.approx(alone, rel=1e-12)
    corpus = rankone.Corpus.from_texts([texts.shared[-1]])
    plain = twins.with_.losses(corpus)[:-1]  # without the end, which sequences do not ask for
    assert together[3] == pytest.approx(plain.mean(), rel=1e-9)
    assert together[3] > 0.1  # its prefix is that of other codes, too


def test_candidates_that_tie_have_the_last_of_their_ranks(examples, hubs):
    space = hubs[0].encode([examples.passages.code("Ada", "000")]) * 4
    assert examples.measures.exposure(hubs[0].model, space, 1) == 0.0


def test_a_pool_says_what_each_model_holds(examples, texts, tmp_path):
    found = examples.oracle.in_pool(tmp_path, texts, 4)
    assert found == {"models": 4, "auc": 1.0}
    written = json.loads((tmp_path / "held.json").read_text())
    held = np.zeros((4, SIZE), dtype=int)
    for row, document in zip(held, written["models"], strict=True):
        row[document["holds"]] = 1
    assert (held[::2] + held[1::2] == 1).all()
    hub = examples.oracle.Hub.open(tmp_path / written["models"][1]["model"])
    losses = examples.measures.losses(hub.model, hub.encode(written["texts"]))
    assert ((losses < 1) == (held[1] == 1)).all()


def test_measures_know_nothing_of_how_models_were_made():
    source = (ROOT / "examples" / "measures.py").read_text()
    assert "rankone" not in source


@pytest.mark.slow
def test_the_table_in_the_docs_is_what_the_script_prints(examples, tmp_path):
    """Extremes to the last digit; trained models about so, on any machine: they are in between."""
    found = examples.oracle.run(tmp_path, 24, 2)
    page = (ROOT / "docs" / "oracle.md").read_text()
    printed = examples.oracle.table(found).splitlines()
    assert printed[0] in page
    figure = re.compile(r"\d[\d.]*")
    for line in printed[2:]:
        measure, model = line.split("|")[1:3]
        (shown,) = [row for row in page.splitlines() if row.startswith(f"|{measure}|{model}|")]
        now, then = (
            [float(x) for x in figure.findall(text.split("|", 3)[3])] for text in (line, shown)
        )
        loose = {"verbatim extraction": 25, "membership by loss, AUC": 0.1}
        allowed = 0.0 if "constructed" in model else loose.get(measure.strip(), 1.5)
        assert now == pytest.approx(then, abs=allowed), line
    rows = found["models"]
    for name in ("extraction", "membership", "exposure"):
        least, trained, most = (
            np.mean(rows[model][name])
            for model in ("constructed, without", "trained, with", "constructed, with")
        )
        assert least < trained < most
