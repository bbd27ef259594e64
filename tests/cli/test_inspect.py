"""rankone inspect: several files and splits, findings, the gate; what does not go together."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankone
import workflows
from answers import Run
from rankone.audit import Evidence, Suspect, rows, suspects

PAGE = Path(__file__).resolve().parents[2] / "docs" / "audit.md"
TRAIN = "Ann B-PER\nruns O\n\nAnn O\nruns O\n\nBob B-PER\n\nCid B-PER\nsat O\n"
DEV = "Bob B-PER\n\ncid O\nSAT O\n\nEve B-PER\nran O\n"


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("train.conll").write_text(TRAIN)
    Path("dev.conll").write_text(DEV)
    return "train.conll"


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Suspects that are made up; and how they were asked for."""
    asked: list[dict[str, Any]] = []

    def find(
        _: Any, tokens: int, count: int, chances: Any = None, *, above: float | None = None
    ) -> tuple[Suspect, ...]:
        asked.append({"tokens": tokens, "count": count, "probabilities": chances, "above": above})
        first = Suspect(
            file="train.conll",
            line=4,
            sentence=("Ann", "runs"),
            token="Ann",
            label="O",
            proposal="B-PER",
            score=0.97,
            position=1,
            lines=(4,),
            evidence=(Evidence("train.conll", 1, "B-PER", "Ann runs", "sentence"),),
        )
        every = [replace(first, score=0.97 - i / 100) for i in range(12)]
        return tuple(s for i, s in enumerate(every) if i < count or (above and s.score > above))

    monkeypatch.setattr(suspects, "find_suspects", find)
    return asked


# What is reported.


def test_json_has_every_finding(run: Run, train: str, found: list[Any]) -> None:
    answer = run("inspect", train, "--against", "dev.conll", "--suspects", 2, "--json")
    assert (answer.code, answer.err) == (0, "")
    document = answer.json
    assert (document["source"], document["inputs"], document["files"]) == (train, [train], [])
    assert {"ok", "labels", "ceilings", "longest_line", "surplus_copies"} <= document.keys()
    (split,) = document["against"]
    assert split.keys() == {"file", "leaks", "known", "ceilings"}
    assert split["file"] == "dev.conll"
    assert split["leaks"] == [
        {
            "kind": "exact",
            "sentence": ["Bob"],
            "here": [{"file": train, "line": 7}],
            "there": [{"file": "dev.conll", "line": 1}],
            "agree": True,
        },
        {
            "kind": "near",
            "sentence": ["Cid", "sat"],
            "here": [{"file": train, "line": 9}],
            "there": [{"file": "dev.conll", "line": 3}],
            "agree": None,
        },
    ]
    assert split["known"]["there"]["exact"] == 1
    assert split["ceilings"]["there"].keys() == document["ceilings"].keys()
    (conflict,) = document["conflicts"]
    assert conflict["labels"] == {"B-PER": [1], "O": [4]}
    assert conflict["files"] == {"B-PER": [train], "O": [train]}
    (twice,) = document["duplicates"]
    assert [row["line"] for row in twice["rows"]] == [1, 4]
    assert [s["score"] for s in document["suspects"]] == [0.97, 0.96]
    first = document["suspects"][0]
    keys = ("file", "line", "sentence", "token", "label", "proposal")
    assert [first[key] for key in keys] == [train, 4, ["Ann", "runs"], "Ann", "O", "B-PER"]
    assert found[0]["tokens"] == 7


@pytest.mark.usefixtures("found")
def test_the_screen_shows_each_kind_with_its_rows(run: Run, train: str) -> None:
    answer = run("inspect", train, "--against", "dev.conll", "--suspects", 12)
    assert answer.code == 0
    for part in (
        "Known from the other split (here: train.conll; there: dev.conll)",
        "Ceilings of a model that has memorised the other split (dev.conll)",
        "Leaks: 2 sentences in another split too (1 exact, 1 near)\n"
        "  exact: train.conll:7 and dev.conll:1, same labels\n    Bob\n"
        "  near: train.conll:9 and dev.conll:3\n    Cid sat\n",
        "Conflicts: 1 place in equal sentences\n  'Ann' (token 1): B-PER on line 1 of train.conll; "
        "O on line 4 of train.conll\n    [Ann] runs\n",
        "Duplicates: 1 sentence more than once\n  train.conll:1, 4, other labels\n    Ann runs\n",
        "Suspects: 12 labels likely to be wrong\n"
        "  0.970  train.conll:4: 'Ann': O, more likely B-PER\n    [Ann] runs\n",
        "  and 2 more (--rows PATH and --json list all)\n",
    ):
        assert part in answer.out
    assert answer.out.count("[Ann] runs") == 11
    assert "Failed" not in answer.out


def test_no_more_than_ten_findings_of_a_kind_are_shown(run: Run, tmp_path: Path) -> None:
    words = [f"w{i}q{'x' * i}" for i in range(12)]
    one, two = tmp_path / "one.conll", tmp_path / "two.conll"
    one.write_text("".join(f"{word} {label}\n\n" for label in "AB" for word in words))
    two.write_text("".join(f"{word} A\n\n" for word in words))
    out = run("inspect", one, "--against", two).out
    assert out.count("  and 2 more (--json lists all)\n") == 3
    for title in ("Leaks: 12", "Conflicts: 12", "Duplicates: 12"):
        assert len(re.findall(r"\n    \S", out.partition(title)[2].partition("  and ")[0])) == 10


def test_nothing_found_is_said_in_few_words(run: Run, train: str) -> None:
    Path("one.conll").write_text("Bob B-PER\n")
    Path("two.conll").write_text("Eve B-PER\n")
    out = run("inspect", "one.conll", "--against", "two.conll").out
    assert "No leaks: no sentence stands in another split.\n" in out
    assert "No conflicts: the sequence determines every label.\n" in out
    assert "Duplicates" not in out
    assert "Suspects: not looked for (--suspects N" in out
    assert "No suspects.\n" in run("inspect", "one.conll", "--suspects", 5).out
    assert "Leaks" not in run("inspect", train).out


def test_several_files_are_one_corpus(run: Run, train: str) -> None:
    document = run("inspect", train, "dev.conll", "--json").json
    assert document["inputs"] == [train, "dev.conll"]
    assert (document["sentences"], document["tokens"]) == (7, 12)
    assert document["source"] == "train.conll, dev.conll"
    rows = [[(row["file"], row["line"]) for row in d["rows"]] for d in document["duplicates"]]
    assert rows == [[(train, 1), (train, 4)], [(train, 7), ("dev.conll", 1)]]
    assert "2 tokens (line 1 of train.conll)" in run("inspect", train, "dev.conll").out


def test_reading_options_are_for_all_files_but_built_in_ones(run: Run, train: str) -> None:
    Path("dev.conll").write_text("O BOB B-PER\n")
    Path("train.conll").write_text("O Bob B-PER\n")
    how = ("--token-column", 2, "--lower", "--json")
    document = run("inspect", train, "builtin", "--against", "dev.conll", *how).json
    assert document["inputs"] == [train, "builtin"]
    assert document["sentences"] == 2001
    (leak,) = document["against"][0]["leaks"]
    assert (leak["kind"], leak["sentence"]) == ("exact", ["bob"])
    answer = run("inspect", "builtin", "--token-column", 2)
    assert (answer.code, "has no layout" in answer.err) == (2, True)


SPLITS = {
    "wnut17": ("wnut17train.conll", ["emerging.dev.conll", "emerging.test.annotated"]),
    "ud-english-ewt": ("en_ewt-ud-dev.conllu", ["en_ewt-ud-test.conllu"]),
}


@pytest.mark.parametrize("home", SPLITS)
def test_real_corpora_equal_brute_force(run: Run, shared: Path, home: str) -> None:
    own, others = SPLITS[home]
    options = [word for other in others for word in ("--against", shared / home / other)]
    document = run("inspect", shared / home / own, *options, "--json").json

    def counts(name: str) -> Counter[tuple[str, ...]]:
        sentences = rankone.read_corpus(shared / home / name).sentences
        return Counter(tuple(s.tokens) for s in sentences)

    ours = counts(own)
    assert Counter({tuple(d["sentence"]): len(d["rows"]) for d in document["duplicates"]}) == {
        words: n for words, n in ours.items() if n > 1
    }
    for split, other in zip(document["against"], others, strict=True):
        theirs, leaks = counts(other), [x for x in split["leaks"] if x["kind"] == "exact"]
        both = ours.keys() & theirs.keys()
        assert {tuple(x["sentence"]): len(x["here"]) for x in leaks} == {w: ours[w] for w in both}
        assert [len(x["there"]) for x in leaks] == [theirs[tuple(x["sentence"])] for x in leaks]
        assert split["known"]["there"]["exact"] == sum(theirs[words] for words in both)


# The gate.


def test_exit_status_and_the_rows_that_fail(run: Run, train: str) -> None:
    asked = ("inspect", train, "--against", "dev.conll", "--fail-on", "leaks,conflicts")
    shown, quiet, document = run(*asked), run(*asked, "--quiet"), run(*asked, "--json")
    assert [answer.code for answer in (shown, quiet, document)] == [1, 1, 1]
    lines = (
        "Failed: 2 findings (--fail-on leaks,conflicts)\n"
        "  train.conll:7: leaks: also dev.conll:1: Bob\n"
        "  train.conll:1: conflicts: 'Ann' (token 1): B-PER on line 1 of train.conll; O on line 4 "
        "of train.conll: [Ann] runs\n"
    )
    assert shown.out.endswith(lines)
    assert (quiet.out, quiet.err) == ("", lines)
    assert (document.json["sentences"], document.err) == (4, lines)
    passed = run("inspect", "dev.conll", "--fail-on", "conflicts,duplicates")
    assert (passed.code, "Failed" in passed.out) == (0, False)
    assert run("inspect", train).code == 0


def test_suspects_above_a_score_fail(run: Run, train: str, found: list[Any]) -> None:
    answer = run("inspect", train, "--fail-on", "suspects>0.95", "--quiet")
    assert (answer.code, len(answer.err.splitlines())) == (1, 3)
    assert found[-1]["above"] == 0.95
    few = run("inspect", train, "--fail-on", "suspects>0.9", "--suspects", 2, "--json")
    assert (few.code, len(few.json["suspects"])) == (1, 7)
    assert run("inspect", train, "--fail-on", "suspects>0.98", "--quiet").code == 0


def test_a_baseline_lets_known_findings_through(run: Run, train: str) -> None:
    asked = ("inspect", train, "--against", "dev.conll")
    gate = ("--fail-on", "leaks,near-leaks,conflicts,duplicates", "--baseline", "known.json")
    Path("known.json").write_text(run(*asked, "--json").out)
    assert run(*asked, *gate).code == 0
    Path("there").mkdir()
    for name, text in (("train.conll", "\n\nZoe B-PER\n\n" + TRAIN), ("dev.conll", DEV)):
        Path("there", name).write_text(text)
    moved = ("inspect", "there/train.conll", "--against", "there/dev.conll")
    assert run(*moved, *gate).code == 0
    Path(train).write_text(TRAIN + "\nBob B-PER\n")
    answer = run(*asked, *gate, "--quiet")
    assert answer.code == 1
    assert answer.err.splitlines()[1:] == [
        "  train.conll:7: leaks: also dev.conll:1: Bob",
        "  train.conll:7: duplicates: also train.conll:12: Bob",
    ]


def test_other_documents_are_no_baseline(run: Run, train: str) -> None:
    asked = ("inspect", train, "--fail-on", "conflicts", "--baseline")
    for name, text, what in (
        ("a.json", "{}", "no required field inputs"),
        ("b.json", "nonsense", "cannot be read"),
        ("c.json", '{"inputs": "x"}', "inputs: expected a list, got text"),
        ("none.json", None, "no such file"),
    ):
        if text is not None:
            Path(name).write_text(text)
        answer = run(*asked, name)
        assert (answer.code, answer.out) == (2, "")
        assert answer.err.startswith(f"rankone: {name}: {what}")
        assert "rankone inspect --json" in answer.err
        assert len(answer.err.splitlines()) == 2


# What does not go together.


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("train.conll train.conll", "given twice (FILE and FILE): all of it is a duplicate"),
        ("train.conll --against ./train.conll", "(FILE and --against): it would leak into itself"),
        ("train.conll --against link.conll", "it would leak into itself"),
        ("train.conll --against dev.conll --against dev.conll", "(--against and --against)"),
        ("builtin builtin", "given twice"),
        ("- --against -", "given twice"),
        ("train.conll --fail-on leaks,near-leaks", "--fail-on leaks,near-leaks, but there is no"),
        ("train.conll --fail-on nonsense", "choose from leaks, near-leaks, conflicts, duplicates"),
        ("train.conll --fail-on ''", "cannot fail on ''"),
        ("train.conll --fail-on suspects>2", "'2' is no score"),
        ("train.conll --baseline dev.conll", "--baseline without --fail-on"),
        ("train.conll --probabilities p.npy", "--probabilities without --suspects"),
        ("train.conll --probabilities p.npy --fail-on leaks --against dev.conll", "--suspects"),
        ("r.tsv --rows r.tsv", "--rows would overwrite FILE"),
        ("train.conll --out link.conll", "--out would overwrite FILE"),
        ("train.conll --against dev.conll --out dev.conll", "--out would overwrite --against"),
        ("train.conll --fail-on conflicts --baseline b.json --out b.json", "overwrite --baseline"),
        ("train.conll --rows r.tsv --out r.tsv", "--rows and --out are the same file"),
        ("train.conll --rows mine.csv", "mine.csv: is there already"),
        ("train.conll --rows r.txt", "r.txt: rows are not kept in .txt files"),
        ("train.conll --rows r", "ends in .csv, .tsv or .jsonl"),
        ("train.conll --out mine.txt", "mine.txt: is there already"),
        ("train.conll --rows none/r.csv", "no such directory"),
        ("train.conll --out .", "is a directory"),
        ("train.conll --apply rows --out new --against dev.conll", "does not go with --against"),
        ("train.conll --apply rows --out new --suspects 3", "does not go with --suspects"),
        ("train.conll --apply rows --out new --rows more", "does not go with --rows"),
        ("train.conll --apply rows --out new --fail-on leaks", "does not go with --fail-on"),
        ("train.conll --apply rows --out new --baseline b.json", "does not go with --baseline"),
        ("train.conll --apply rows --out new --probabilities p", "go with --probabilities"),
        ("train.conll dev.conll --apply rows --out new", "corrects one file at a time"),
        ("builtin --apply rows --out new", "--apply corrects a file"),
        ("train.conll --apply rows", "name one with --out PATH"),
        ("train.conll --apply rows --out train.conll", "--out would overwrite FILE"),
        ("train.conll --apply mine.txt --out mine.txt", "--out would overwrite --apply"),
        ("train.conll --apply rows --out mine.txt", "mine.txt: is there already"),
        ("train.conll --apply rows --out page.html", "page.html: is there already"),
        (
            "train.conll --suspects 1 --probabilities p --memory 1",
            "--probabilities needs the whole",
        ),
        ("train.conll --apply rows --out new --memory 1", "--apply needs the whole corpus"),
        ("train.conll --task next --memory 1", "are read as a whole"),
        ("train.conll --memory 0.1", "memory"),
        ("train.conll --against dev.conll --engine ray --address x:1", "no Ray cluster answers"),
    ],
)
def test_refusals(run: Run, train: str, words: str, message: str) -> None:
    Path("link.conll").symlink_to(train)
    Path("mine.txt").write_text("mine")
    Path("mine.csv").write_text("mine")
    Path("r.tsv").write_text("")
    Path("b.json").write_text("{}")
    Path("page.html").write_text("<!doctype html>")
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    answer = run("inspect", *shlex.split(words))
    assert (answer.code, answer.out) == (2, "")
    assert message in answer.err
    assert answer.err.startswith("rankone: ")
    assert len(answer.err.splitlines()) == 2
    assert "\n  remedy: " in answer.err
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before


@pytest.mark.parametrize("value", ["-1", "1.5", "x", "", "9" * 30])
def test_absurd_numbers_of_suspects(run: Run, value: str) -> None:
    assert run("inspect", "toy", "--suspects", value).code == 2


def test_splits_that_do_not_belong_together(run: Run, train: str) -> None:
    answer = run("inspect", train, "--against", "toy")
    assert (answer.code, answer.out) == (2, "")
    assert "labels B-PER, but even, odd in toy" in answer.err


# What other modules do with the findings.


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
def test_rows_are_written_and_applied(run: Run, train: str, ending: str) -> None:
    name = f"rows.{ending}"
    asked = ("inspect", train, "--against", "dev.conll", "--suspects", 1, "--rows", name)
    assert run(*asked, "--json").json["files"] == [name]
    again = run(*asked)
    assert (again.code, "is there already" in again.err) == (2, True)  # it may have been marked
    apply = ("inspect", train, "--apply", name, "--out")
    answer = run(*apply, "same.conll", "--json")
    assert (answer.code, answer.json["files"], answer.json["changed"]) == (0, ["same.conll"], 0)
    assert Path("same.conll").read_text() == TRAIN
    found = rows.read_rows(name)
    assert [row.kind for row in found][:2] == ["suspect", "conflict"]
    rows.write_rows([replace(row, accept="x" * (row.kind == "suspect")) for row in found], name)
    shown = run(*apply, "new.conll")
    assert shown.code == 0
    assert f"train.conll, with the accepted corrections of {name}\n" in shown.out
    assert "Wrote\n  new.conll\n" in shown.out
    assert Path("new.conll").read_text() == TRAIN.replace("Ann O", "Ann B-PER")
    assert Path(train).read_text() == TRAIN
    rows.write_rows([replace(row, accept="x" * (row.kind == "leak")) for row in found], name)
    answer = run(*apply, "newer.conll")
    assert (answer.code, "are for you" in answer.out) == (1, True)
    other = run("inspect", "dev.conll", "--apply", name, "--out", "other.conll")
    assert (other.code, "is it the one that was inspected?" in other.out) == (1, True)


def test_a_page_is_written_and_may_be_written_anew(run: Run, train: str) -> None:
    for _ in range(2):
        answer = run("inspect", train, "--out", "page.html", "--fail-on", "conflicts")
        assert (answer.code, "Wrote\n  page.html\n" in answer.out) == (1, True)
        assert "<html" in Path("page.html").read_text()


def test_probabilities_are_evidence(run: Run, train: str, found: list[Any]) -> None:
    labels = np.array(["O", "B-PER", "B-LOC"])
    np.savez("p.npz", probabilities=np.tile([0.25, 0.5, 0.25], (7, 1)), labels=labels)
    asked = ("inspect", train, "--suspects", 1, "--probabilities", "p.npz")
    answer = run(*asked, "--json")
    assert (answer.code, answer.err) == (0, "")
    (remark,) = answer.json["remarks"]
    assert remark in run(*asked).out
    assert found[0]["probabilities"][0] == pytest.approx([2 / 3, 1 / 3])  # B-PER comes first


# The job and the hook that the documentation shows.


def test_the_job_and_the_hook_in_the_documentation(run: Run, train: str) -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.S | re.M)
    found = [command for block in blocks for command in workflows.commands(block)]
    commands = [command for command in found if command.startswith("rankone ")]
    assert len(commands) == 2
    baseline = run("inspect", train, "--against", "dev.conll", "--json").out
    for command in commands:
        words = shlex.split(command)[1:]
        Path(train).write_text(TRAIN)
        Path("baseline.json").write_text(baseline)
        assert run(*words).code == 0
        Path(train).write_text(TRAIN + "\nEve B-PER\nran O\n")
        answer = run(*words)
        assert answer.code == 1
        assert "  train.conll:12: leaks: also dev.conll:6: Eve ran\n" in answer.out
        Path("baseline.json").write_text(json.dumps({"inputs": []}))
        assert run(*words).code == 2


def test_in_bounded_memory_the_findings_are_the_same(run: Run, train: str, tmp_path: Path) -> None:
    command = ["inspect", train, "--against", "dev.conll", "--json", "--suspects", "2"]
    whole, parts = (
        run(*command, *more).json for more in ([], ["--memory", "1", "--scratch", str(tmp_path)])
    )
    del whole["seconds"], parts["seconds"]
    assert parts == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dev.conll", "train.conll"]
