"""Every option of train and reproduce with values that make no sense: one message, no work."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from answers import Run
from rankone.cli.lazy import load

WHOLE = ("-1", "1.5", "1e400", "nan", "x", "", "9" * 400, "9" * 5000)
REAL = ("-1", "nan", "inf", "1e400", "x", "")
HUGE = str(2**31 - 1)
# Values that are refused, of every option that takes one; what is read is the corpus's business.
NUMBERS = {
    "--depth": ("0", "1001", HUGE, *WHOLE),
    "--epochs": ("0", "1000001", HUGE, *WHOLE),
    "--batch-size": ("0", str(2**31), *WHOLE),
    "--dim": ("0", HUGE, *WHOLE),
    "--hidden": (HUGE, *WHOLE),
    "--heads": ("0", "2", HUGE, *WHOLE),
    "--head-size": ("4", HUGE, *WHOLE),
    "--max-length": ("0", "2", HUGE, *WHOLE),
    "--lr": ("0", "-0.0", *REAL),
    "--momentum": ("0.5", "1", *REAL),
    "--init-std": REAL,
    "--window": ("65537", *WHOLE),
    "--seed": (str(2**31), *WHOLE),
    "--patience": ("3", "1000001", *WHOLE),
    "--checkpoint-seconds": ("5", *REAL),
    "--threads": ("0", "65537", "100000000", *WHOLE),
    "--jobs": ("0", *WHOLE),
    "--device": ("", "x", "cuda:-1", "cuda:99999999999999999999", "cpu:99", "meta"),
    "--attention": ("", "hardmax"),
    "--optimizer": ("", "adamw"),
    "--schedule": ("", "cosine"),
    "--accuracy": ("", "before"),
    "--dtype": ("", "float16"),
}
PATHS = {"--out", "--tensorboard", "--evaluate"}
READING = {"--format", "--token-column", "--label-column", "--scheme", "--lower"}
READING |= {"--task", "--tokenizer", "--blocks"}
FLAGS = {"--positions", "--resume", "--json", "--quiet", "--theorem2", "--standard", "--help"}


def options(command: typer.core.TyperCommand) -> set[str]:
    return {option.opts[0] for option in command.params if option.param_type_name == "option"}


COMMANDS = {
    "train": load("train"),
    "figure1": load("reproduce").commands["figure1"],
    "sweep": load("reproduce").commands["sweep"],
}
CASES = [
    (name, option, value)
    for name, command in COMMANDS.items()
    for option in sorted(options(command) & NUMBERS.keys())
    for value in NUMBERS[option]
    # with a directory of its own it has one
    if not (option == "--checkpoint-seconds" and name != "train" and value == "5")
]


def test_no_option_is_forgotten() -> None:
    for command in COMMANDS.values():
        assert options(command) <= NUMBERS.keys() | PATHS | READING | FLAGS
    assert options(COMMANDS["train"]) | options(COMMANDS["figure1"]) >= NUMBERS.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_absurd_value_is_refused_in_one_message(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["train", "toy"] if name == "train" else ["reproduce", name, "toy"]
    for _, option, value in (case for case in CASES if case[0] == name):
        answer = run(*words, option, value)
        shown = f"{option} {value[:20]!r}: {answer}"
        assert (answer.code, answer.out) == (2, ""), shown
        assert "Traceback" not in answer.err, shown
        ours = answer.err.startswith("rankone: ")
        assert ours or "Invalid value for" in answer.err, shown
        if ours:
            assert len(answer.err.splitlines()) == 2, shown
            assert "\n  remedy: " in answer.err, shown
            assert len(answer.err) < 400, shown
        assert list(tmp_path.iterdir()) == [], shown


@pytest.mark.parametrize(
    "words",
    [
        ("--hidden", HUGE, "--dim", "65536"),
        ("--attention", "softmax", "--heads", "1", "--head-size", HUGE),
        ("--attention", "softmax", "--heads", HUGE, "--head-size", "1"),
        ("--max-length", str(2**24), "--dim", "65536"),
        ("--depth", "1000", "--dim", "65536"),
        ("--optimizer", "sgd", "--momentum", "0.5", "--dim", HUGE),
    ],
)
def test_what_no_machine_holds_is_refused_before_it_is_allocated(
    run: Run, words: tuple[str, ...]
) -> None:
    answer = run("train", "toy", *words)
    assert (answer.code, answer.out) == (2, "")
    assert "rankone: toy: training would take at least " in answer.err
    assert "remedy: give a smaller dim, " in answer.err


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("place", ["file", "file/m", "x" * 300, "a\nb/" + "y" * 300])
def test_places_that_cannot_be_written(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    words = ["train", "toy"] if name == "train" else ["reproduce", name, "toy"]
    for option in ("--out", "--tensorboard") if name == "train" else ("--out",):
        answer = run(*words, "--epochs", 1, option, place)
        assert (answer.code, answer.out) == (2, "")
        assert answer.err.startswith("rankone: ")
        assert "remedy: " in answer.err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
