"""rankone inspect --task next and --task class: what is shown, and what is refused."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from answers import Run

ROSES = "A rose is a rose.\n\nA rose is red.\n"


@pytest.fixture
def roses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("roses.txt").write_text(ROSES)
    Path("films.tsv").write_text("pos\tgood film\nneg\tbad film\nneg\tgood film\n")
    Path("bad.txt").write_bytes(b"a\n\xff\n")
    Path("empty.txt").write_bytes(b"")
    Path("nul.txt").write_bytes(b"a\0b")
    Path("tags.conll").write_text("a X\nb Y\n")
    return "roses.txt"


def lines(text: str) -> list[list[str]]:
    """The words of each line of a table."""
    return [line.split() for line in text.splitlines()]


def test_the_ceilings_of_a_text(run: Run, roses: str) -> None:
    answer = run("inspect", roses, "--task", "next")
    assert (answer.code, answer.err) == (0, "")
    table = lines(answer.out)
    head = "window contexts determined share accuracy errors bits per token perplexity"
    assert head.split() in table
    found = json.loads(run("inspect", roses, "--task", "next", "--json").out)["text"]
    for row in found["ceilings"]:
        shown = next(line for line in table if line[:1] == [str(row["window"] or "prefix")])
        assert shown[1:3] == [str(row["contexts"]), str(row["determined"])]
        assert shown[3:6] == [f"{row['share']:.2%}", f"{row['accuracy']:.4%}", str(row["errors"])]
        assert shown[6:] == [f"{row['bits']:.4g}", f"{row['perplexity']:.6g}"]
    for part in (
        "Windows of 4 tokens or more say as much as prefixes. Shorter ones do not: this stands "
        "after different tokens, and goes on in different ways.\n",
        "  3 tokens, 2 copies: roses.txt:1, 3\n    'A rose is'\n    then ' a' (1), ' red' (1)\n",
        "Repeated passages, the longest first\n",
        "No conflicts: every prefix has one continuation only.\n",
        "│documents ",
        "│surplus copies of a document ",
    ):
        assert part in answer.out
    for word in ("sentence", "Labels", "label ", "Suspects", "at odds"):
        assert word not in answer.out


def test_the_contexts_of_a_window(run: Run, roses: str) -> None:
    answer = run("inspect", roses, "--task", "next", "--window", 1)
    assert "Conflicts: 3 windows of 1 token with several continuations, those that" in answer.out
    assert "  ' rose'\n    ' is' 2 times (on lines 1, 3); '.' 1 time (on line 1)\n" in answer.out
    blocks = run("inspect", roses, "--task", "next", "--blocks")
    assert "Conflicts: 1 prefix with several continuations, those that cost" in blocks.out
    assert "  'A rose is'\n    ' a' 1 time (on line 1); ' red' 1 time (on line 3)\n" in blocks.out
    every = run("inspect", roses, "--task", "next", "--window", 9).out
    assert "No conflicts: every window of 9 tokens has one continuation only.\n" in every


def test_a_text_without_repeats(run: Run, roses: str) -> None:
    Path("once.txt").write_text("All words differ here")
    answer = run("inspect", "once.txt", roses, "--task", "next", "--tokenizer", "words")
    assert "(line 1 of roses.txt)" in answer.out
    answer = run("inspect", "once.txt", "--task", "next")
    assert "A window of 1 token says as much as prefixes.\n" in answer.out
    assert "No repeated passages: no two tokens stand together more than once.\n" in answer.out


@pytest.mark.usefixtures("roses")
def test_no_more_than_ten_of_each_are_shown(run: Run) -> None:
    pairs = [f"w{i} w{i}{c} w{i}{c}{c}" for i in range(12) for c in "xy"]
    Path("pairs.txt").write_text("\n\n".join(f"{pair} {pair} end" for pair in pairs))
    answer = run("inspect", "pairs.txt", "--task", "next", "--blocks")
    passages, conflicts = answer.out.partition("Repeated passages")[2].split("Conflicts: ")
    assert passages.count("\n    then ") == conflicts.count("\n    '") == 10
    assert "  and shorter ones (--json lists the " in passages
    assert conflicts.startswith("12 prefixes with several")
    assert conflicts.endswith("  and 2 more (--json lists all)\n")


def test_another_text_and_copies(run: Run, roses: str) -> None:
    Path("other.txt").write_text("A ROSE is red!\n\nA rose is a rose.")
    Path("twice.txt").write_text(f"{ROSES}\nA rose is red.")
    how = ("--task", "next", "--blocks")
    answer = run("inspect", "twice.txt", "--against", "other.txt", *how)
    for part in (
        "documents, exact ",
        "Leaks: 2 documents in another split too (1 exact, 1 near)\n"
        "  exact: twice.txt:1 and other.txt:3\n    A rose is a rose.\n"
        "  near: twice.txt:3, 5 and other.txt:1\n    A rose is red.\n",
        "Duplicates: 1 document more than once\n  twice.txt:3, 5\n    A rose is red.\n",
    ):
        assert part in answer.out
    assert "memorised the other split" not in answer.out
    for kind in ("leaks", "near-leaks", "conflicts", "duplicates"):
        args = ("--against", "other.txt", *how, "--fail-on", kind, "-q")
        assert run("inspect", "twice.txt", *args).code == 1
    Path("none.txt").write_text("nothing else")
    out = run("inspect", roses, "--against", "none.txt", *how).out
    assert "No leaks: no document stands in another split.\n" in out


@pytest.mark.usefixtures("roses")
def test_labels_of_documents(run: Run) -> None:
    answer = run("inspect", "films.tsv", "--task", "class", "--rows", "rows.tsv")
    assert answer.code == 0
    for part in (
        "texts in column 2, labels in column 1 of 2",
        "│repeated documents at odds   │                               1 (2 copies)│",
        "│neg   │         2 │ 66.67%│",
        "│the last token alone ",
        "│the whole document                │ 66.6667% │      1│",
        "Conflicts: 1 document with several labels\n  pos on line 1; neg on line 3\n"
        "    good film\n",
        "Duplicates: 1 document more than once\n  films.tsv:1, 3, other labels\n    good film\n",
    ):
        assert part in answer.out
    for word in ("sentence", "prefix", "Suspects"):
        assert word not in answer.out
    assert Path("rows.tsv").read_text().count("\tconflict\t") == 2
    Path("fine.tsv").write_text("pos\tgood\nneg\tbad\n")
    out = run("inspect", "fine.tsv", "--task", "class").out
    assert "No conflicts: equal documents have equal labels.\n" in out


def test_pages_are_written(run: Run, roses: str) -> None:
    for file, task in ((roses, "next"), ("films.tsv", "class")):
        answer = run("inspect", file, "--task", task, "--out", f"{task}.html", "--json")
        assert (answer.code, answer.json["files"]) == (0, [f"{task}.html"])
        assert f'"task":"{task}"' in Path(f"{task}.html").read_text()


@pytest.mark.usefixtures("roses")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("roses.txt --task next --suspects 3", "--suspects is about labels of tokens"),
        ("roses.txt --task next --probabilities p.npy --suspects 1", "--suspects is about"),
        ("roses.txt --task next --probabilities p.npy", "--probabilities is about"),
        ("roses.txt --task next --fail-on suspects", "--fail-on suspects is about"),
        ("roses.txt --task next --rows r.tsv", "--rows is about labels of tokens"),
        ("roses.txt --task next --label-column 2", "and --task next has none"),
        ("films.tsv --task class --suspects 3", "and --task class has none"),
        ("films.tsv --task class --fail-on 'suspects>0.9'", "--fail-on suspects is about"),
        ("films.tsv --task class --window 4", "the task 'class' has no window"),
        ("roses.txt --task next --scheme iob2", "texts have no entity tags"),
        ("roses.txt --task next --window 65537", "window cannot be 65537"),
        ("roses.txt --task next --tokenizer none.json", "no tokenizer 'none.json'"),
        ("roses.txt --task next --apply rows --out new", "corrected in files of tags only"),
        ("roses.txt --task next --fail-on leaks", "but there is no other split"),
        ("roses.txt --window 4", "the task 'tags' has no window"),
        ("bad.txt --task next", "bad.txt, line 2: byte 0xff is not valid UTF-8"),
        ("nul.txt --task next", "nul.txt, line 1: a NUL byte"),
        ("empty.txt --task next", "empty.txt: an empty document"),
        ("none.txt --task next", "none.txt: no such file"),
        ("roses.txt --against bad.txt --task next", "bad.txt, line 2: byte 0xff"),
        ("roses.txt roses.txt --task next", "given twice"),
        ("roses.txt films.tsv --task class", "no label"),
    ],
)
def test_refusals(run: Run, words: str, message: str) -> None:
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    answer = run("inspect", *shlex.split(words))
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("rankone: ")
    assert message in answer.err
    assert len(answer.err.splitlines()) == 2
    assert "\n  remedy: " in answer.err
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before


@pytest.mark.usefixtures("roses")
def test_any_data_are_bytes(run: Run) -> None:
    for name in ("bad.txt", "nul.txt"):
        asked = ("inspect", name, "--task", "next", "--tokenizer", "bytes")
        assert run(*asked).code == 0
        assert run(*asked, "--json").json["ok"] is True


@pytest.mark.usefixtures("roses")
def test_columns_are_texts_too(run: Run) -> None:
    answer = run("inspect", "tags.conll", "--task", "next", "--json")
    assert (answer.code, answer.json["tokens"]) == (0, 2)


@pytest.mark.parametrize("value", ["-1", "1.5", "x", "", "9" * 30, "9" * 5000])
def test_absurd_windows(run: Run, roses: str, value: str) -> None:
    answer = run("inspect", roses, "--task", "next", "--window", value)
    assert (answer.code, answer.out) == (2, "")
    assert "Traceback" not in answer.err


def test_a_baseline_cannot_hold_what_is_not_listed(run: Run, roses: str) -> None:
    text = " ".join(f"w{i} {c}" for i in range(1001) for c in "xy")
    Path("many.txt").write_text(text)
    asked = ("inspect", "many.txt", "--task", "next", "--window", 1)
    answer = run(*asked)
    assert answer.out.rstrip().endswith("more (--json lists the first 1,000)")
    document = run(*asked, "--json")
    assert len(document.json["conflicts"]) == 1000
    Path("known.json").write_text(document.out)
    answer = run(*asked, "--fail-on", "conflicts", "--baseline", "known.json")
    assert (answer.code, answer.out) == (2, "")
    assert "of which only 1,000 are listed: a baseline cannot hold them" in answer.err
    asked = ("inspect", roses, "--task", "next", "--window", 1)
    Path("few.json").write_text(run(*asked, "--json").out)
    assert run(*asked, "--fail-on", "conflicts", "--baseline", "few.json").code == 0
