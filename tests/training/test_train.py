"""Training from the first step to the model directory."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

import corpora
import rankone
import runs
from rankone import Corpus, Settings, train
from rankone.errors import CorpusError, ExtraError, SettingError, TrainingError
from rankone.training.state import Run
from rankone.training.trained import attention_share, ceilings

# The token alone must get 3 labels wrong; without positions the two a's of the last sentence look
# the same, which leaves 2; and "ab" has two labellings, so that 1 is wrong whatever one sees.
CONTRARY = corpora.spelled("ab xp", "ab xp", "ab yp", "ac yq", "ac yq", "aab xyp")
SMALL = Settings(epochs=3, batch_size=4, dim=4)
TOY = rankone.read_corpus("toy")


@pytest.mark.parametrize("positions", [True, False])
@pytest.mark.parametrize("attention", ["rank1", "theorem2", "softmax"])
def test_a_tiny_corpus_is_learned_to_its_ceiling(attention: Any, positions: bool) -> None:
    settings = Settings(
        attention=attention, positions=positions, epochs=100, lr=0.01, init_std=0.3, seed=6
    )
    result = train(CONTRARY, settings)
    assert result.ceilings["token"].errors == 3
    assert result.ceilings["input"].errors == (1 if positions else 2)
    assert result.wrong == result.ceilings["input"].errors
    assert result.ok
    assert result.attention_share == 1.0
    assert (result.tokens, result.sentences, result.epochs, result.steps) == (13, 6, 100, 100)
    assert result.curve[-1]["loss"] < result.curve[0]["loss"]


def test_a_token_that_contradicts_itself_is_not_learned() -> None:
    """Of one word with three labels, two thirds are wrong, and attention can add nothing."""
    result = train(corpora.spelled("a x", "a y", "a z"), replace(SMALL, epochs=20))
    assert (result.wrong, result.ceilings["input"].errors) == (2, 2)
    assert result.ok
    assert result.attention_share is None


@given(corpora.sentences(), st.booleans())
def test_ceilings_are_those_of_brute_force(sentences: corpora.Sentences, positions: bool) -> None:
    found = ceilings(Corpus.from_sentences(sentences), Settings(positions=positions))
    sees = {"token": "token", "input": "sequence" if positions else "proportions"}
    tokens = sum(len(words) for words, _ in sentences)
    for name, ceiling in found.items():
        least = corpora.errors(sentences, corpora.LOOKS[sees[name]])
        assert ceiling.errors == least
        assert ceiling.accuracy == pytest.approx((tokens - least) / tokens)


@given(corpora.sentences())
def test_share_of_attention(sentences: corpora.Sentences) -> None:
    """0 for a model that is as good as the token alone, 1 for one that reaches the ceiling."""
    corpus = Corpus.from_sentences(sentences)
    found = ceilings(corpus, Settings())
    token, full = found["token"].errors, found["input"].errors
    if token == full:
        assert attention_share(1.0, found) is None
        return
    n = corpus.n_tokens
    assert attention_share((n - full) / n, found) == 1.0
    assert attention_share((n - token) / n, found) == 0.0
    assert attention_share((n - token - 1) / n, found) < 0.0  # type: ignore[operator]


@given(corpora.sentences(6, 5), st.booleans(), st.integers(0, 99))
def test_no_model_is_above_the_ceiling(
    sentences: corpora.Sentences, positions: bool, seed: int
) -> None:
    settings = replace(
        SMALL, positions=positions, seed=seed, accuracy="after", lr=0.03, dtype="float64", epochs=30
    )
    result = train(sentences, settings)
    assert result.wrong >= result.ceilings["input"].errors
    most = 1 - result.ceilings["input"].errors / result.tokens
    assert max(line["accuracy"] for line in result.curve) <= most + 1e-12
    assert result.accuracy <= result.ceilings["input"].accuracy


@pytest.mark.parametrize("attention", ["rank1", "theorem2", "softmax"])
def test_a_seed_decides_every_bit(tmp_path: Path, attention: Any) -> None:
    settings = replace(SMALL, attention=attention, depth=2)
    for number, seed in enumerate((5, 5, 6)):
        torch.manual_seed(number)
        np.random.seed(number)
        state = torch.get_rng_state()
        train(TOY, replace(settings, seed=seed), out=tmp_path / str(number))
        assert torch.get_rng_state().equal(state)  # nor is anybody else's draw disturbed
    first, again, other = (runs.weights(tmp_path / str(number)) for number in range(3))
    assert first == again
    assert first != other
    names = load_file(tmp_path / "0/model.safetensors").keys()
    one, two = (load_file(tmp_path / f"{n}/model.safetensors") for n in (0, 2))
    zero = {name for name in names if not one[name].any()}  # biases that nothing has moved
    assert all(not one[name].equal(two[name]) for name in names - zero)


def test_checkpoints_and_other_witnesses_do_not_change_the_result(tmp_path: Path) -> None:
    plain = train(TOY, SMALL)
    seen = train(
        TOY,
        SMALL,
        out=tmp_path / "run",
        checkpoint_seconds=0,
        evaluate=[TOY],
        tensorboard=tmp_path / "board",
    )
    for name, tensor in plain.model.network.state_dict().items():
        assert tensor.equal(seen.model.network.state_dict()[name])
    assert [line["loss"] for line in plain.curve] == [line["loss"] for line in seen.curve]


def test_what_the_process_computes_with_is_as_before() -> None:
    before, tiny = torch.get_num_threads(), torch.tensor(1e-310, dtype=torch.float64)
    train(TOY, SMALL)
    with pytest.raises(TrainingError):
        train(TOY, replace(SMALL, lr=1e300, attention="softmax"))
    assert torch.get_num_threads() == before
    assert (tiny * 0.5).item() > 0.0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_are_those_asked_for(tmp_path: Path, dtype: Any) -> None:
    train(TOY, replace(SMALL, dtype=dtype), out=tmp_path / "run")
    tensors = load_file(tmp_path / "run/model.safetensors")
    assert {tensor.dtype for tensor in tensors.values()} == {getattr(torch, dtype)}
    loaded = dict(rankone.load(tmp_path / "run").network.named_parameters())
    assert all(tensor.equal(loaded[name]) for name, tensor in tensors.items())


def test_accuracy_after_an_epoch_is_that_of_the_model_then() -> None:
    settings = replace(SMALL, accuracy="after", lr=0.01, init_std=0.5)
    corpus = runs.corpus(30)
    curve = train(corpus, replace(settings, epochs=4)).curve
    assert len({line["accuracy"] for line in curve}) > 1
    for epochs, line in enumerate(curve, start=1):
        assert line["epoch"] == epochs
        assert line["accuracy"] == train(corpus, replace(settings, epochs=epochs)).accuracy


def test_accuracy_as_an_epoch_runs_is_that_of_the_weights_before_each_step() -> None:
    """With all sentences in one batch: what the epoch before has left."""
    settings = replace(SMALL, batch_size=99, epochs=6, lr=0.01, init_std=0.5)
    running = train(TOY, settings).curve
    after = train(TOY, replace(settings, accuracy="after")).curve
    assert [line["loss"] for line in running] == [line["loss"] for line in after]
    assert [line["accuracy"] for line in running[1:]] == [line["accuracy"] for line in after[:-1]]


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_linear_schedule(monkeypatch: pytest.MonkeyPatch, optimizer: Any) -> None:
    rates, step = [], Run.step

    def watched(run: Run, batch: Any, lr: float) -> None:
        rates.append(lr)
        step(run, batch, lr)

    monkeypatch.setattr(Run, "step", watched)
    settings = replace(SMALL, optimizer=optimizer, lr=0.01, epochs=4)  # 10 sentences: 3 batches
    train(TOY, settings)
    assert rates == [0.01] * 12
    rates.clear()
    train(TOY, replace(settings, schedule="linear"))
    assert rates == pytest.approx([0.01 * (12 - n) / 12 for n in range(12)])


def test_a_row_for_words_that_are_unknown() -> None:
    """It stands at the mean of the words that are seen least."""
    corpus = corpora.spelled("aab xyx", "ac xx", "ada xyx")  # b, c and d are seen once
    result = train(corpus, SMALL)
    table = result.model.network.table.detach()
    assert table.shape == (5, SMALL.dim)
    assert table[-1].allclose(table[1:4].mean(0))
    (label,) = result.model.predict([["never seen"]])
    assert label[0] in ("x", "y")
    evaluated = train(corpus, SMALL, evaluate=[Corpus.from_sentences([(["q", "a"], ["x", "y"])])])
    assert evaluated.evaluations[0].unknown == 1


def test_evaluation_on_other_corpora(tmp_path: Path) -> None:
    first, other = tmp_path / "train.conll", tmp_path / "other.conll"
    first.write_text("Ann B-P\nLee I-P\nran O\n\nRome B-L\nran O\n\nAnn B-P\nran O\n")
    other.write_text("Lee I-P\nran O\nAnn B-P\n\nRome B-L\nOslo B-NEW\n")
    settings = replace(SMALL, epochs=60, lr=0.02)
    result = train(
        rankone.read_corpus(first), settings, evaluate=[rankone.read_corpus(other), first]
    )
    assert result.wrong == 0
    scores, own = result.evaluations
    assert (own.source, own.accuracy, own.f1, own.unknown) == (str(first), 1.0, 1.0, 0)
    corpus = rankone.read_corpus(other)
    found = result.model.predict([s.tokens for s in corpus.sentences])
    right = sum(
        given == wanted
        for labels, s in zip(found, corpus.sentences, strict=True)
        for given, wanted in zip(labels, s.labels, strict=True)
    )
    assert (scores.source, scores.tokens, scores.unknown) == (str(other), 5, 1)
    assert (scores.right, scores.accuracy) == (right, right / 5)
    assert right < 5  # a label that the model does not have is never right
    assert scores.recall is not None
    assert scores.recall <= 3 / 4
    assert train(TOY, SMALL, evaluate=[TOY]).evaluations[0].f1 is None


UNLABELLED = replace(TOY, label_names=(), label_ids=np.full(TOY.n_tokens, -1))


def test_what_cannot_be_evaluated_is_refused_before_the_work(tmp_path: Path) -> None:
    stages: list[str] = []
    with pytest.raises(CorpusError):
        train(
            TOY,
            SMALL,
            out=tmp_path / "run",
            evaluate=[TOY, UNLABELLED],
            progress=lambda stage, _: stages.append(stage),
        )
    assert stages == []
    assert not (tmp_path / "run").exists()


def test_longer_sentences_are_evaluated_in_pieces_unless_there_are_rows_for_them() -> None:
    longer = Corpus.from_sentences([(["a", "b"], ["odd", "even"]), (list("abcd"), ["odd"] * 4)])
    short = replace(SMALL, epochs=1)
    for settings, pieces in (
        (short, 1),
        (replace(short, max_length=4), 0),
        (replace(short, positions=False), 0),
    ):
        (scores,) = train(TOY, settings, evaluate=[longer]).evaluations
        assert (scores.tokens, scores.in_pieces) == (6, pieces)


def test_labels_are_needed() -> None:
    with pytest.raises(CorpusError, match="label"):
        train(UNLABELLED, SMALL)


@pytest.mark.parametrize("attention", ["rank1", "theorem2", "softmax"])
def test_the_directory_is_that_of_a_model(tmp_path: Path, attention: Any) -> None:
    home, corpus = tmp_path / "deep" / "run", runs.corpus(10)
    heads = 2 if attention == "softmax" else 1
    settings = replace(SMALL, attention=attention, depth=2, heads=heads)
    result = train(corpus, settings, out=str(home), evaluate=[TOY])
    loaded = rankone.load(home)
    assert (loaded.vocabulary, loaded.labels) == (corpus.vocabulary, corpus.label_names)
    assert loaded.network.shape == settings.network(corpus)
    words = [[*s.tokens[:-1], "never seen"] for s in corpus.sentences]
    assert loaded.predict(words) == result.model.predict(words)
    assert {path.name for path in result.files} == {
        *("model.safetensors", "config.json", "vocabulary.json", "labels.json"),
        *("report.json", "log.jsonl"),
    }
    assert all(path.parent == home and path.is_file() for path in result.files)
    found = loaded.predict([s.tokens for s in corpus.sentences])
    right = sum(
        given == wanted
        for labels, s in zip(found, corpus.sentences, strict=True)
        for given, wanted in zip(labels, s.labels, strict=True)
    )
    assert result.wrong == corpus.n_tokens - right


def test_the_report_is_the_result(tmp_path: Path) -> None:
    result = train(TOY, SMALL, out=tmp_path / "run", evaluate=[TOY])
    report = json.loads((tmp_path / "run/report.json").read_text())
    assert report == result.to_json()
    assert report["curve"] == list(result.curve)
    assert report["accuracy"] == report["evaluations"][0]["accuracy"]
    assert report["ceilings"]["input"] == {"accuracy": 1.0, "errors": 0}
    assert report["ceilings"]["token"] == {"accuracy": 0.6, "errors": 12}
    assert report["attention_share"] == pytest.approx((report["accuracy"] - 0.6) / 0.4)
    assert Settings(**{k: v for k, v in report["settings"].items() if k != "scheme"}) == SMALL
    assert report["parameters"] == sum(
        tensor.numel() for tensor in load_file(tmp_path / "run/model.safetensors").values()
    )


def test_the_log_has_a_line_per_epoch_as_it_runs(tmp_path: Path) -> None:
    path = tmp_path / "run/log.jsonl"
    seen: list[int] = []

    def look(*_: object) -> None:
        seen.append(len(path.read_text().splitlines()))

    result = train(TOY, SMALL, out=tmp_path / "run", progress=look)
    assert seen == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines == list(result.curve)
    assert [line["epoch"] for line in lines] == [1, 2, 3]
    for line in lines:
        assert line.keys() == {"epoch", "loss", "accuracy", "tokens_per_second"}
        assert line["tokens_per_second"] > 0


def test_progress_goes_from_0_to_1() -> None:
    told: list[tuple[str, float]] = []
    train(TOY, SMALL, progress=lambda stage, share: told.append((stage, share)))
    assert [share for _, share in told] == pytest.approx([n / 9 for n in range(1, 10)])
    assert told[0][0] == "epoch 1 of 3"
    assert told[-1][0].startswith("epoch 3 of 3, accuracy ")


def test_tensorboard_shows_the_log(tmp_path: Path) -> None:
    result = train(TOY, SMALL, tensorboard=tmp_path / "board")
    shown = runs.board(tmp_path / "board")
    assert shown.keys() == {"loss", "accuracy", "tokens_per_second"}
    for name, events in shown.items():
        assert events == runs.as_shown(result.curve, name)


def test_tensorboard_shows_every_epoch_of_a_run_that_went_on(tmp_path: Path) -> None:
    home = tmp_path / "run"
    train(TOY, SMALL, out=home, tensorboard=home / "tensorboard")
    time.sleep(1)  # event files are read in the order of their seconds
    more = replace(SMALL, epochs=5)
    result = train(TOY, more, out=home, tensorboard=home / "tensorboard", resume=True)
    assert runs.board(home / "tensorboard")["loss"] == runs.as_shown(result.curve, "loss")


@pytest.mark.parametrize("place", ["tensorboard", "events", "."])
def test_a_run_with_tensorboard_in_its_directory_can_go_on(tmp_path: Path, place: str) -> None:
    home = tmp_path / "run"
    train(TOY, SMALL, out=home, tensorboard=home / place)
    train(TOY, SMALL, out=home, tensorboard=home / place, resume=True)


def test_tensorboard_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ExtraError, match="needs the extra tensorboard") as error:
        train(TOY, SMALL, out=tmp_path / "run", tensorboard=tmp_path / "board")
    assert "pip install 'rankone[tensorboard]'" in str(error.value)
    assert train(TOY, SMALL, out=tmp_path / "run").epochs == 3  # nothing is in the way


@pytest.mark.parametrize("device", ["nonsense", "", "cuda", "xpu"])
def test_a_device_that_is_not_there(device: str) -> None:
    if device in ("cuda", "xpu") and getattr(torch, device).is_available():
        pytest.skip("it is there")
    with pytest.raises(SettingError, match="cannot compute on") as error:
        train(TOY, SMALL, device=device)
    assert error.value.remedy == "give --device cpu"
