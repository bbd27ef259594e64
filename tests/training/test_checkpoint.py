"""Checkpoints: what is written comes back, and what is not whole is never taken for whole."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save

import rankone
import runs
from rankone.errors import OutputError, TrainingError
from rankone.training import checkpoint

TENSORS = {
    "weight.table": torch.tensor([[0.1, -0.0], [1e-40, 3e38]]),
    "moment0.table": torch.tensor(1e-310, dtype=torch.float64),
    "nothing": torch.empty(0, 3),
}


def name(step: int, contents: bytes) -> str:
    """As a checkpoint with these contents is called."""
    return f"checkpoint-{step:09d}-{sha256(contents).hexdigest()[:16]}.safetensors"


def names(home: Path) -> list[str]:
    return sorted(path.name for path in home.iterdir())


def newest(home: Path) -> tuple[Any, list[str]]:
    """Whatever the document says."""
    return checkpoint.newest(home, dict[str, Any])


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    """A directory with two checkpoints, the older one first."""
    first = checkpoint.write(tmp_path, 5, TENSORS, {"n": 1}, before=None)
    return [first, checkpoint.write(tmp_path, 9, TENSORS, {"n": 2}, before=first)]


numbers = st.floats(width=32, allow_subnormal=True)
words = st.text('aé\n"\\', min_size=1, max_size=3)
documents = st.dictionaries(
    words,
    st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | words
    | st.none(),
)


@given(st.dictionaries(words, st.lists(numbers)), documents)
def test_what_is_written_comes_back_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory,
    lists: dict[str, list[float]],
    document: dict[str, Any],
) -> None:
    home = tmp_path_factory.mktemp("home")
    tensors = {name: torch.tensor(values) for name, values in lists.items()}
    path = checkpoint.write(home, 7, tensors, document, before=None)
    found, damaged = newest(home)
    assert found is not None
    assert (found.path, damaged, names(home)) == (path, [], [path.name])
    assert found.document == {"version": checkpoint.VERSION, **document}
    assert found.tensors.keys() == tensors.keys()
    for key, tensor in tensors.items():
        back = found.tensors[key]
        assert back.numpy().tobytes() == tensor.numpy().tobytes()  # -0.0 and subnormals too


def test_the_newest_and_the_one_before_are_kept(tmp_path: Path) -> None:
    before, written = None, []
    for step in (1, 2, 30, 400):
        before = checkpoint.write(tmp_path, step, TENSORS, {"step": step}, before=before)
        written.append(before)
        assert names(tmp_path) == sorted(path.name for path in written[-2:])
    found, _ = newest(tmp_path)
    assert found is not None
    assert found.document["step"] == 400


def test_the_new_one_stays_whatever_lies_beside_it(two: list[Path]) -> None:
    """Damaged ones with higher numbers must not push out what is whole."""
    home = two[0].parent
    for path in two:
        path.write_bytes(b"damaged")
    good = checkpoint.write(home, 2, TENSORS, {}, before=None)
    assert names(home) == [good.name]
    for n in range(8):  # of one step, so that the order of the names is any
        new = checkpoint.write(home, 3, TENSORS, {"n": n}, before=good)
        assert set(names(home)) == {good.name, new.name}
        good = new


def test_one_that_is_written_again_does_not_cost_the_one_before(two: list[Path]) -> None:
    """A finished run that is resumed writes what is there already."""
    again = checkpoint.write(two[0].parent, 9, TENSORS, {"n": 2}, before=two[1])
    assert again == two[1]
    assert names(two[0].parent) == [path.name for path in two]


def test_strangers_are_left_alone(two: list[Path]) -> None:
    home = two[0].parent
    others = ["model.safetensors", "checkpoint-1.safetensors", two[0].name + ".copy"]
    for other in others:
        (home / other).write_text("mine")
    new = checkpoint.write(home, 10, TENSORS, {}, before=two[1])
    assert set(names(home)) == {*others, two[1].name, new.name}


def flip(contents: bytes, at: int) -> bytes:
    return contents[:at] + bytes([contents[at] ^ 1 << at % 8]) + contents[at + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "a bit of the length": lambda c: flip(c, 0),
    "a bit of the header": lambda c: flip(c, 40),
    "the last bit": lambda c: flip(c, len(c) - 1),
    "cut short": lambda c: c[:-1],
    "half": lambda c: c[: len(c) // 2],
    "empty": lambda _: b"",
    "longer": lambda c: c + b"\0",
    "zeros": lambda c: bytes(len(c)),
    "text": lambda _: b"<html>404</html>",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_the_one_before_takes_the_place_of_a_damaged_one(
    two: list[Path], damage: Callable[[bytes], bytes]
) -> None:
    two[1].write_bytes(damage(two[1].read_bytes()))
    found, damaged = newest(two[0].parent)
    assert found is not None
    assert (found.path, found.document["n"]) == (two[0], 1)
    assert damaged == [f"{two[1]}: damaged (its contents are not those it was written with)"]


@given(st.data())
def test_every_flipped_bit_is_noticed(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    home = tmp_path_factory.mktemp("home")
    path = checkpoint.write(home, 5, TENSORS, {}, before=None)
    path.write_bytes(flip(path.read_bytes(), data.draw(st.integers(0, path.stat().st_size - 1))))
    with pytest.raises(TrainingError, match="no checkpoint is whole"):
        newest(home)


def test_a_step_in_the_name_that_is_wrong_changes_the_order_only(two: list[Path]) -> None:
    two[0].rename(two[0].with_name(two[0].name.replace("000000005", "000000010")))
    found, damaged = newest(two[0].parent)
    assert found is not None
    assert (found.document["n"], damaged) == (1, [])


def test_one_that_was_renamed_to_another_is_damaged(two: list[Path]) -> None:
    two[0].replace(two[1])
    with pytest.raises(TrainingError, match="no checkpoint is whole"):
        newest(two[1].parent)


def header(text: bytes) -> bytes:
    return len(text).to_bytes(8, "little") + text


FOREIGN: dict[str, bytes] = {
    "nothing": b"",
    "not safetensors": b"not safetensors at all",
    "a length beyond the end": (1 << 60).to_bytes(8, "little") + b"{}",
    "no metadata": save({"a": torch.ones(2)}),
    "metadata of another program": save({"a": torch.ones(2)}, metadata={"format": "pt"}),
    "metadata that is no JSON": save({}, metadata={"rankone": "yes no"}),
    "no version": save({}, metadata={"rankone": "- {}"}),
    "another version": save({}, metadata={"rankone": '- {"version": 9}'}),
    "a list for a header": header(b"[]"),
    "a list for a document": save({}, metadata={"rankone": "- [1]"}),
    "brackets without end": header(b"[" * 100_000),
    "tensors that are not there": header(
        b'{"__metadata__":{"rankone":"- {\\"version\\":3}"},'
        b'"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    ),
}


@pytest.mark.parametrize("contents", FOREIGN.values(), ids=FOREIGN)
def test_what_is_named_like_a_checkpoint_and_is_none(two: list[Path], contents: bytes) -> None:
    """The name fits the contents, so that these are looked into."""
    home = two[0].parent
    other = home / name(11, contents)
    other.write_bytes(contents)
    found, damaged = newest(home)
    assert found is not None
    assert found.path == two[1]
    assert len(damaged) == 1
    assert damaged[0].startswith(f"{other}: damaged (")


def test_another_version_is_told(two: list[Path]) -> None:
    contents = FOREIGN["another version"]
    (two[0].parent / name(11, contents)).write_bytes(contents)
    assert f"version 9, this reads {checkpoint.VERSION}" in newest(two[0].parent)[1][0]


@pytest.mark.parametrize("what", ["directory", "pipe", "link"])
def test_no_file_in_the_place_of_a_checkpoint(two: list[Path], what: str, tmp_path: Path) -> None:
    """A link is not followed, even to a sound checkpoint, and no pipe is waited for."""
    other = two[0].parent / name(11, b"")
    if what == "directory":
        other.mkdir()
    elif what == "pipe":
        os.mkfifo(other)
    else:
        moved = two[1].rename(tmp_path / "elsewhere")
        two[1].symlink_to(moved)
        found, damaged = newest(two[0].parent)
        assert (found.path, damaged) == (two[0], [f"{two[1]}: damaged (it is no file)"])
        return
    found, damaged = newest(two[0].parent)
    assert found is not None
    assert found.path == two[1]
    assert len(damaged) == 1


def test_all_damaged(two: list[Path]) -> None:
    two[0].write_bytes(b"")
    two[1].write_bytes(two[1].read_bytes()[:-3])
    with pytest.raises(TrainingError) as error:
        newest(two[0].parent)
    assert error.value.where == str(two[0].parent)
    assert all(str(path) in str(error.value) for path in two)
    assert "another directory" in str(error.value.remedy)


def test_none_at_all(tmp_path: Path) -> None:
    assert newest(tmp_path) == (None, [])
    (tmp_path / ".checkpoint-000000001-0123456789abcdef.safetensors.new").write_text("half")
    assert newest(tmp_path) == (None, [])


def full(*_: object, **__: object) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Full(io.BytesIO):
    """A file on a disk that is full: some bytes still go there."""

    write = full


@pytest.mark.parametrize("moment", ["os.fsync", "os.replace", "builtins.open", "write"])
def test_a_full_disk(two: list[Path], monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    home = two[0].parent
    with monkeypatch.context() as patch:
        if moment == "write":
            patch.setattr("builtins.open", lambda *_: Full())
        else:
            patch.setattr(moment, full)
        with pytest.raises(OutputError, match="No space left on device") as error:
            checkpoint.write(home, 12, TENSORS, {"n": 3}, before=two[1])
    assert "checkpoint-000000012-" in str(error.value.where)
    assert "--resume" in str(error.value.remedy)
    assert names(home) == [path.name for path in two]
    found, damaged = newest(home)
    assert found is not None
    assert (found.path, damaged) == (two[1], [])


def test_a_run_on_a_disk_that_fills_up_goes_on_from_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, settings = runs.corpus(12), rankone.Settings(epochs=3, batch_size=4, dim=4)
    rankone.train(corpus, settings, out=tmp_path / "whole")
    synchronise, count = os.fsync, 0

    def some(file: int) -> None:
        nonlocal count
        count += 1
        (synchronise if count < 5 else full)(file)

    home = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", some)
        with pytest.raises(OutputError, match="No space left on device"):
            rankone.train(corpus, settings, out=home, checkpoint_seconds=0)
    steps = [step for step in range(9) if any(home.glob(f"checkpoint-{step:09d}-*"))]
    assert steps == [2, 3]
    assert not list(home.glob(".*"))
    result = rankone.train(corpus, settings, out=home, resume=True)
    assert result.remarks == ()
    assert runs.weights(home) == runs.weights(tmp_path / "whole")


def test_what_was_about_to_be_written_is_cleared(tmp_path: Path) -> None:
    corpus, settings = runs.corpus(12), rankone.Settings(epochs=2, batch_size=4, dim=4)
    home = tmp_path / "run"
    rankone.train(corpus, settings, out=home)
    left = [".checkpoint-000000009-0123456789abcdef.safetensors.new", ".log.jsonl-x", ".model.x"]
    (home / left[0]).write_bytes(b"half")
    (home / left[1]).mkdir()
    (home / left[1] / "new").write_text("{}")
    mine = tmp_path / "mine"
    mine.mkdir()
    (home / ".config.json-link").symlink_to(mine)
    rankone.train(corpus, settings, out=home, resume=True)
    assert not any((home / name).exists() for name in (*left, ".config.json-link"))
    assert mine.is_dir()
    (home / left[2]).write_text("not ours")
    rankone.train(corpus, settings, out=home, resume=True)
    assert (home / left[2]).read_text() == "not ours"


def test_a_damaged_checkpoint_of_a_run_is_told_and_the_one_before_is_used(tmp_path: Path) -> None:
    corpus, settings = runs.corpus(12), rankone.Settings(epochs=2, batch_size=4, dim=4)
    home = tmp_path / "run"
    rankone.train(corpus, settings, out=home, checkpoint_seconds=0)
    before = runs.weights(home), runs.log(home)
    last = newest(home)[0].path
    last.write_bytes(flip(last.read_bytes(), 300))
    result = rankone.train(corpus, settings, out=home, resume=True)
    assert len(result.remarks) == 2
    assert result.remarks[0].startswith(f"{last}: damaged")
    assert result.remarks[1].startswith("Resumed from the checkpoint before, step 5")
    assert (runs.weights(home), runs.log(home)) == before
    assert newest(home)[1] == []
