"""The model directory: a round trip bit for bit, and refusals for what does not fit."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

import corpora
import rankone
from rankone.errors import ModelError, OutputError
from rankone.nn import hub, store

FILES = {"model.safetensors", "config.json", "vocabulary.json", "labels.json", "report.json"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    rankone.memorize(rankone.builtin_corpus(60)).save(tmp_path / "model")
    return tmp_path / "model"


@given(corpora.sentences(), st.integers(1, 2), st.booleans(), st.booleans())
def test_round_trip_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory,
    sentences: corpora.Sentences,
    head_size: int,
    positions: bool,
    causal: bool,
) -> None:
    home = tmp_path_factory.mktemp("round") / "model"
    result = rankone.memorize(sentences, head_size=head_size, positions=positions, causal=causal)
    assert {path.name for path in result.save(home)} == FILES
    loaded = rankone.load(home)
    before = dict(result.model.network.named_parameters())
    after = dict(loaded.network.named_parameters())
    assert before.keys() == after.keys()
    for name, tensor in after.items():
        assert tensor.dtype == torch.float64
        assert tensor.equal(before[name])
    assert (loaded.vocabulary, loaded.labels) == (result.model.vocabulary, result.model.labels)
    assert loaded.network.shape == result.model.network.shape
    words = [s[0] for s in sentences]
    assert loaded.predict(words) == result.model.predict(words)


def test_an_earlier_model_is_replaced_and_nothing_else(home: Path, tmp_path: Path) -> None:
    result = rankone.memorize(corpora.spelled("ab xy"))
    result.save(home)
    assert rankone.load(home).labels == ("x", "y")
    assert {path.name for path in tmp_path.iterdir()} == {"model"}  # no scratch is left
    (home / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"holds other files \(notes.txt\)"):
        result.save(home)
    with pytest.raises(OutputError, match="is a file"):
        result.save(home / "notes.txt")
    with pytest.raises(OutputError, match="is a file"):
        result.save(home / "notes.txt" / "deeper")
    assert (home / "notes.txt").read_text() == "mine"
    (home / "notes.txt").unlink()
    (home / "config.json").write_text("mine too")
    with pytest.raises(OutputError, match="holds the model of another program"):
        result.save(home)
    assert (home / "config.json").read_text() == "mine too"


def test_the_model_of_another_program_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "model.safetensors").write_bytes(b"x")
    with pytest.raises(OutputError, match="the model of another program"):
        rankone.memorize([(["a"], ["x"])]).save(tmp_path)
    (tmp_path / "config.json").unlink()
    (tmp_path / "config.json").mkdir()
    with pytest.raises(OutputError, match="holds other files"):
        rankone.memorize([(["a"], ["x"])]).save(tmp_path)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for odd in (loop, tmp_path / ("n" * 300)):
        with pytest.raises(OutputError, match="cannot"):
            rankone.memorize([(["a"], ["x"])]).save(odd)


def test_a_failed_write_leaves_the_old_model(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path.name: path.read_bytes() for path in home.iterdir()}

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OutputError, match="No space left"):
        rankone.memorize(corpora.spelled("ab xy")).save(home)
    assert {path.name: path.read_bytes() for path in home.iterdir()} == before
    assert {path.name for path in home.parent.iterdir()} == {"model"}


def edit(name: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    def damage(home: Path) -> None:
        document = json.loads((home / name).read_text())
        (home / name).write_text(json.dumps(change(document)))

    return damage


def network(**values: Any) -> Callable[[Path], None]:
    return edit("config.json", lambda c: {**c, "network": {**c["network"], **values}})


def weights(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def damage(home: Path) -> None:
        tensors = load_file(home / "model.safetensors")
        change(tensors)
        save_file(tensors, home / "model.safetensors")

    return damage


def reading(**changes: Any) -> Callable[[Path], None]:
    return edit("config.json", lambda c: {**c, "reading": {**c["reading"], **changes}})


def replace(home: Path, old: str, new: str) -> None:
    """In config.json as text: JSON can say more than Python's writer."""
    text = (home / "config.json").read_text()
    assert old in text
    (home / "config.json").write_text(text.replace(old, new))


def poke(name: str, value: float) -> Callable[[dict[str, Any]], None]:
    def change(tensors: dict[str, Any]) -> None:
        tensors[name].view(-1)[0] = value

    return change


def truncate(name: str) -> Callable[[Path], None]:
    return lambda home: (home / name).write_bytes((home / name).read_bytes()[:-9])  # type: ignore


def pipe(name: str) -> Callable[[Path], None]:
    """What never ends, if it is opened."""

    def damage(home: Path) -> None:
        (home / name).unlink()
        os.mkfifo(home / name)

    return damage


DAMAGE = [
    (lambda home: (home / "config.json").unlink(), "config.json: no such file"),
    (lambda home: (home / "model.safetensors").unlink(), "model.safetensors: no weights"),
    (lambda home: (home / "labels.json").unlink(), "labels.json: no such file"),
    (truncate("config.json"), "config.json: cannot be read"),
    (truncate("vocabulary.json"), "vocabulary.json: cannot be read"),
    (truncate("model.safetensors"), "damaged weights"),
    (lambda home: (home / "model.safetensors").write_bytes(b""), "damaged weights"),
    (pipe("model.safetensors"), r"cannot be read \(not a file\)"),
    (pipe("vocabulary.json"), r"vocabulary.json: cannot be read \(not a file\)"),
    (edit("config.json", lambda c: {**c, "format": "other"}), "not a rankone model"),
    (edit("config.json", lambda c: {**c, "version": 99}), "version 99 of the format, this reads 1"),
    (edit("config.json", lambda _: []), "expected a mapping, got a list"),
    (edit("config.json", lambda c: {**c, "network": {}}), "network: no required field vocabulary"),
    (edit("config.json", lambda c: {**c, "network": {**c["network"], "x": 1}}), "is incomplete"),
    (network(attention="rope"), "network.attention: unknown word 'rope'"),
    (network(feedforward="mixture"), "network.feedforward: unknown word 'mixture'"),
    (network(dim=-3), "network.dim: expected a whole number >= 1"),
    (network(dim=1.5), "network.dim: expected a whole number, got a number"),
    (network(causal="yes"), "network.causal: expected true or false, got text"),
    (network(depth=0), "network.depth: expected a whole number >= 1"),
    (network(depth=10**9), "too few tensors for depth"),
    (network(dim=10**30), "network.dim: "),
    (network(head_size=2), "one head of size 1"),
    (network(heads=2), "one head of size 1"),
    (edit("config.json", lambda c: {**c, "version": True}), "version True of the format"),
    (
        edit("config.json", lambda c: {**c, "reading": 3}),
        "reading: expected a mapping, got a whole number",
    ),
    (lambda home: (home / "config.json").write_text('{"a":' * 200_000), "cannot be read"),
    (network(dim=4), r"where config.json says"),
    (network(hidden=7), r"where config.json says"),
    (network(positions=0), r"positions is .* where config.json says nothing of it"),
    (edit("vocabulary.json", lambda v: v[:-1]), "different entries where the weights need"),
    (edit("vocabulary.json", lambda v: [*v[:-1], v[0]]), "different entries"),
    (edit("vocabulary.json", lambda v: [*v[:-1], 3]), "expected text, got a whole number"),
    (edit("labels.json", lambda v: [*v, "more"]), "6 different entries where the weights need 5"),
    (edit("labels.json", lambda v: [*v[:-1], v[0]]), "4 different entries where the weights need"),
    (edit("labels.json", lambda _: {"a": 1}), "expected a list, got a mapping"),
    (weights(poke("table", float("nan"))), "table holds values that are not finite"),
    (weights(poke("head.bias", float("inf"))), "head.bias holds values"),
    (weights(lambda t: t.pop("head.bias")), "head.bias is missing"),
    (weights(lambda t: t.update(extra=torch.zeros(1))), "extra is"),
    (weights(lambda t: t.update(table=t["table"].int())), "table is int32"),
    (weights(lambda t: t.update(table=t["table"].float())), "two precisions, float32 and float64"),
    (reading(label_column=[3]), "reading.label_column: expected"),
    (reading(label_column={"a": 1}), "reading.label_column: expected"),
    (reading(token_column=10**30), "reading.token_column: "),
    (reading(token_column=10**9), "reading.token_column: expected a whole number <= 999999999"),
    (reading(label_column=-(10**9)), "reading.label_column: expected a whole number >= -999999999"),
    (reading(scheme="iob7"), "reading.scheme: unknown word 'iob7'"),
    (reading(lower="yes"), "reading.lower: expected true or false, got text"),
    (lambda home: replace(home, '"scheme"', '"label_column": 1e400, "scheme"'), "out of range"),
    (lambda home: replace(home, '"auto"', r'"\ud800"'), "config.json: cannot be read"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGE)
def test_damaged_models_are_refused(
    home: Path, damage: Callable[[Path], None], message: str
) -> None:
    damage(home)
    with pytest.raises(ModelError, match=message) as caught:
        rankone.load(home)
    assert caught.value.remedy


def test_how_a_corpus_was_read_is_kept(home: Path) -> None:
    for how in (
        {"token_column": 2, "label_column": -1, "columns": 3, "scheme": "iob2", "lower": True},
        {"token_column": 10**9 - 1, "label_column": 1 - 10**9},
        {"token_column": "form", "label_column": None},
    ):
        reading(**how)(home)
        assert {key: rankone.load(home).reading[key] for key in how} == how


def as_hub(home: Path) -> None:
    """Written as Hugging Face has it."""
    config, words, labels = (
        json.loads((home / name).read_text())
        for name in ("config.json", "vocabulary.json", "labels.json")
    )
    hubs = {theirs: config["network"][ours] for ours, theirs in hub.NAMES.items()}
    hubs |= {"model_type": "rankone", "format_version": 1, "reading": config["reading"]}
    hubs["id2label"] = dict(enumerate(labels))
    vocab = {word: row for row, word in enumerate([*words, "[UNK]"])}
    tokenizer = {"model": {"type": "WordLevel", "unk_token": "[UNK]", "vocab": vocab}}
    (home / "config.json").write_text(json.dumps(hubs))
    (home / "tokenizer.json").write_text(json.dumps(tokenizer))


def test_the_layout_of_hugging_face_gives_the_same_model(home: Path) -> None:
    ours = rankone.load(home)
    as_hub(home)
    for name in ("vocabulary.json", "labels.json"):
        (home / name).unlink()
    theirs = rankone.load(home)
    assert (theirs.vocabulary, theirs.labels) == (ours.vocabulary, ours.labels)
    assert (theirs.reading, theirs.network.shape) == (ours.reading, ours.network.shape)
    edit("config.json", lambda c: {**c, "id2label": {"0": "x", "1": "x"}})(home)
    with pytest.raises(ModelError, match=r"config.json: 1 different entries where .* need 2"):
        rankone.load(home)


def test_a_tokenizer_of_another_size_is_refused(home: Path) -> None:
    as_hub(home)
    edit("config.json", lambda c: {**c, "vocab_size": c["vocab_size"] + 1})(home)
    with pytest.raises(ModelError, match=r"tokenizer.json: .* different entries where the"):
        rankone.load(home)


def test_a_model_written_among_other_files_leaves_them_alone(home: Path, tmp_path: Path) -> None:
    """But for a certificate, which was for other weights."""
    (there := tmp_path / "run").mkdir()
    contents = {path.name: path.read_bytes() for path in home.iterdir()}
    (mine := tmp_path / "mine").write_text("mine")
    (there / "log").write_text("log")
    (there / "config.json").symlink_to(mine)
    for _ in range(2):
        assert store.save_into(there, contents) == [there / name for name in contents]
        assert rankone.load(there).vocabulary == rankone.load(home).vocabulary
        assert {path.name for path in there.iterdir()} == {*contents, "log"}
        (there / "certificate.json").write_text("{}")
    assert (mine.read_text(), (there / "log").read_text()) == ("mine", "log")


def test_no_directory(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such directory"):
        rankone.load(tmp_path / "nowhere")


def test_words_are_those_that_were_there_when_it_was_loaded(home: Path) -> None:
    """They are taken apart late, so the file may have changed by then."""
    words = rankone.memorize(rankone.builtin_corpus(60)).model.vocabulary
    loaded = rankone.load(home)
    rankone.memorize(corpora.spelled("ab xy")).save(home)
    assert loaded.vocabulary == words
    assert rankone.load(home).vocabulary == ("a", "b")


def test_other_words_for_the_same_rows(home: Path) -> None:
    edit("vocabulary.json", lambda v: [word.upper() + str(i) for i, word in enumerate(v)])(home)
    first = rankone.load(home).vocabulary[0]
    edit("config.json", lambda c: {k: v for k, v in c.items() if k != "vocabulary_crc32"})(home)
    assert rankone.load(home).vocabulary[0] == first
    assert first.endswith("0")
    edit("vocabulary.json", lambda v: v[1:])(home)
    with pytest.raises(ModelError, match="different entries"):
        rankone.load(home)
    (home / "vocabulary.json").write_bytes(b"")  # its checksum is 0
    with pytest.raises(ModelError, match=r"vocabulary.json: cannot be read"):
        rankone.load(home)


@pytest.mark.parametrize("small", [0, 1 << 40], ids=["mapped", "copied"])
def test_weights_are_mapped_or_copied(
    home: Path, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr("rankone.nn.store.SMALL", small)
    expected = load_file(home / "model.safetensors")
    for name, tensor in rankone.load(home).network.named_parameters():
        assert tensor.equal(expected[name])
    (home / "model.safetensors").write_bytes(b"")
    with pytest.raises(ModelError, match="damaged weights"):
        rankone.load(home)
    (home / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="no weights"):
        rankone.load(home)


def test_a_loaded_model_goes_to_other_processes(home: Path) -> None:
    loaded = rankone.load(home)
    again = pickle.loads(pickle.dumps(loaded))
    assert again.vocabulary == loaded.vocabulary
    assert again.network.table.equal(loaded.network.table)


def test_sums_that_overflow_are_no_damage(home: Path) -> None:
    weights(lambda tensors: tensors["table"].fill_(1.5e308))(home)
    assert rankone.load(home).network.table.isfinite().all()


def test_labels_are_not_decided_by_what_overflows(home: Path) -> None:
    weights(lambda tensors: tensors["blocks.0.feedforward.out_gain"].fill_(1.5e308))(home)
    with pytest.raises(ModelError, match="overflow") as caught:
        rankone.load(home).predict([["a", "b"]])
    assert caught.value.remedy
