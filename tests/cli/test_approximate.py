"""`rankone approximate`, as a user with good and bad input meets it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from answers import Answer, Run

MINE = """
import warnings
import numpy as np
def centre(x): return x - x.mean(-2, keepdims=True)
def order(x): return x[:, ::-1] * [[1.0], [2.0]]
def logs(x): return np.log(x)
def loud(x):
    print("hello")
    return x
def warns(x):
    warnings.warn("careful")
    return x
number = 3
"""
QUICK = ("--grid", "4", "--samples", "256", "--no-table")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with modules of the user, who is in it."""
    (tmp_path / "mine_.py").write_text(MINE)
    (tmp_path / "leaves_.py").write_text("import sys\nsys.exit(0)\n")
    (tmp_path / "raises_.py").write_text("raise RuntimeError('boom' + 90 * '\\nline')\n")
    (tmp_path / "broken_.py").write_text("def f(x) return x\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    for name in ("mine_", "leaves_", "raises_", "broken_"):
        sys.modules.pop(name, None)


def strict(text: str) -> Any:
    """JSON as others read it: without NaN and Infinity."""

    def refuse(token: str) -> None:
        raise ValueError(token)

    return json.loads(text, parse_constant=refuse)


def refused(answer: Answer) -> str:
    assert answer.code == 2
    assert answer.out == ""
    assert "Traceback" not in answer.err
    assert 1 <= answer.err.count("\n") <= 8
    return answer.err


def test_what_is_printed(run: Run) -> None:
    answer = run("approximate", "softmax", "--grid", 8, "--samples", 1024)
    assert answer.code == 0
    assert answer.err == ""
    for part in (
        "softmax, n = 2, d = 1, m = 1, constant",
        "error d_2",
        "guaranteed",
        "context ids",
        "worst point found",
        "cells with a repeated token",
        "ramps of F1",
        "rounding",
        "Error against the grid (slope -1.0",
    ):
        assert part in answer.out


def test_json_is_one_strict_object_with_what_was_promised(run: Run) -> None:
    answer = run("approximate", "softmax", "--grid", 8, "--samples", 1024, "--json")
    assert answer.code == 0
    assert answer.err == ""
    report = strict(answer.out)
    assert {"error", "interval", "bound", "worst", "hidden_units", "seconds"} <= set(report)
    assert report["context_ids"] == 64
    assert report["interval"][0] <= report["error"] <= report["interval"][1]
    assert report["error"] <= report["bound"]
    shares = [source["share"] for source in report["sources"].values()]
    assert sum(shares) == pytest.approx(1.0)
    assert [row["grid"] for row in report["convergence"]["rows"]] == [2, 4, 8]
    assert report["files"] == []


@pytest.mark.parametrize(
    "options",
    [
        ("--grid", "1"),
        ("--n", "1", "--grid", "4"),
        ("--lipschitz", "inf", "--grid", "4"),
        ("--low", "-1e30", "--high", "1e30", "--n", "12", "--grid", "2"),
        ("--p", "300", "--grid", "4"),
    ],
)
@pytest.mark.usefixtures("home")
def test_json_is_strict_or_there_is_none(run: Run, options: tuple[str, ...]) -> None:
    answer = run("approximate", "--function", "mine_:centre", *options, "--json", "--samples", 256)
    if answer.code == 2:
        refused(answer)
    else:
        strict(answer.out)


def test_quiet(run: Run) -> None:
    answer = run("approximate", "softmax", *QUICK, "--quiet")
    assert (answer.code, answer.out, answer.err) == (0, "", "")


def test_list(run: Run) -> None:
    assert "mean-centring" in run("approximate", "--list").out
    functions = run("approximate", "--list", "--json").json["functions"]
    assert {"name", "formula", "positions", "lipschitz"} == set(functions[0])


@pytest.mark.parametrize(
    "options",
    [
        ("--epsilon", "0.1"),
        ("--readout", "linear", "--grid", "4"),
        ("--p", "1", "--grid", "7"),
        ("--n", "1", "--d", "3", "--grid", "3"),
        ("--low", "-1", "--high", "1", "--grid", "3"),
        ("--delta", "0.01", "--grid", "3"),
        ("--memory", "0.01", "--grid", "3"),
        ("--seed", "7", "--grid", "3"),
        ("--positions", "--grid", "3"),
    ],
)
def test_options(run: Run, options: tuple[str, ...]) -> None:
    report = strict(run("approximate", "softmax", *options, "--json", "--samples", 1024).out)
    assert report["ok"]


def test_positions(run: Run) -> None:
    # With two tokens reversing is equivariant.
    message = refused(run("approximate", "reverse", "--n", 3, *QUICK))
    assert "not permutation equivariant" in message
    assert "--positions" in message
    assert run("approximate", "reverse", "--n", 3, *QUICK, "--positions").code == 0


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ((), "--list"),
        (("softmax", "--function", "a:b"), "--function"),
        (("softmax", "--grid", "4", "--epsilon", "1"), "not both"),
        (("sofmax",), "did you mean 'softmax'?"),
        (("nearest", "--n", "1"), "at least 2 tokens"),
        *((("softmax", "--n", n), "--n") for n in ("0", "-1", "x", "1.5")),
        *((("softmax", "--d", d), "--d") for d in ("0", "-1")),
        *((("softmax", "--grid", grid), "--grid") for grid in ("0", "-1", "x", "nan")),
        *((("softmax", "--epsilon", e), "epsilon") for e in ("0", "-1", "nan", "inf", "x")),
        *((("softmax", "--p", p), "p =") for p in ("0.5", "-1", "nan", "inf")),
        *((("softmax", "--low", low), "domain") for low in ("1", "2", "nan", "-inf")),
        (("softmax", "--low", "-1e308", "--high", "1e308"), "domain"),
        *((("softmax", "--delta", delta), "delta") for delta in ("0", "1", "-1", "nan")),
        *((("softmax", "--samples", samples), "--samples") for samples in ("0", "255", "-1")),
        (("softmax", "--samples", "9" * 30), "samples"),
        *((("softmax", "--memory", memory), "memory") for memory in ("-1", "nan", "inf")),
        (("softmax", "--memory", "1e200", "--grid", "1000000"), "context ids"),
        *((("softmax", "--d", d), "cannot be measured") for d in ("22000", "9" * 40)),
        (("softmax", "--lipschitz", "1e308", "--high", "1e9"), "out of range for float64"),
        (("softmax", "--seed", "9" * 40), "seed"),
        (("softmax", "--memory", "1e-5"), "the largest grid that fits"),
        (("softmax", "--memory", "0"), "the limit is 0 MB"),
        (("softmax", "--seed", "-1"), "--seed"),
        (("softmax", "--readout", "planes"), "--readout"),
        (("softmax", "--grid", "100000"), "10,000,000,000 context ids"),
        (("softmax", "--n", "9999", "--grid", "32"), "context ids"),
        (("softmax", "--epsilon", "1e-9", "--memory", "0.01"), "out of reach"),
    ],
    ids=str,
)
def test_wrong_usage(run: Run, arguments: tuple[str, ...], part: str) -> None:
    few = () if "--samples" in arguments else ("--samples", "256")
    message = refused(run("approximate", *arguments, *few)).replace("│", " ")
    assert part in " ".join(message.split())


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_full_disk_or_ctrl_c_leaves_nothing_behind(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    def fails(*_: object) -> None:
        raise failure

    monkeypatch.setattr("rankone.approximation.plots.write_plots", fails)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("mine")
    for place in (tmp_path / "new" / "deep", tmp_path / "mine"):
        answer = run("approximate", "softmax", *QUICK, "--out", place)
        assert answer.code in (2, 130)
        assert answer.out == ""
        assert "Traceback" not in answer.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert (tmp_path / "mine" / "notes").read_text() == "mine"


@pytest.mark.parametrize(
    "arguments",
    [
        ("sofmax",),
        ("softmax", "--low", "1"),
        ("softmax", "--p", "0.5"),
        ("softmax", "--grid", "100000"),
        ("--function", "nowhere_:f"),
    ],
    ids=str,
)
def test_a_refusal_leaves_nothing_behind(
    run: Run, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    refused(run("approximate", *arguments, "--out", tmp_path / "new"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("function", "part"),
    [
        ("nowhere_:f", "No module named 'nowhere_'"),
        ("mine_:nothing", "'nothing'"),
        *((path, "file.py:name") for path in ("mine_", "mine_:", ":f", "", ".mine_:f", "mine_.py")),
        ("none_.py:f", "no file none_.py"),
        ("mine_.py:nothing", "'nothing'"),
        ("mine_.py:number", "cannot be called"),
        ("broken_.py:f", "SyntaxError"),
        (".:f", "file.py:name"),
        ("mine_:number", "cannot be called"),
        ("raises_:f", "boom"),
        ("leaves_:f", "SystemExit"),
        ("broken_:f", "SyntaxError"),
        ("mine_:order", "--positions"),
    ],
)
@pytest.mark.usefixtures("home")
def test_functions_that_cannot_be_had(run: Run, function: str, part: str) -> None:
    assert part in refused(run("approximate", "--function", function, *QUICK))


@pytest.mark.usefixtures("home")
def test_a_function_of_the_current_directory(run: Run) -> None:
    options = ("--function", "mine_:centre", *QUICK, "--json")
    report = strict(run("approximate", *options).out)
    assert report["n"] == 2
    assert (report["function"], report["bound_guaranteed"]) == ("centre", False)
    assert strict(run("approximate", *options, "--lipschitz", 1).out)["bound_guaranteed"]
    assert "more than the Lipschitz" in refused(run("approximate", *options, "--lipschitz", 0.5))


def test_a_function_of_a_file(run: Run, home: Path) -> None:
    """A path to a file, wherever it lies, with the modules beside it."""
    (home / "deep").mkdir()
    (home / "deep" / "helper_.py").write_text("from numpy import mean\n")
    (home / "deep" / "my-f.py").write_text(
        "from helper_ import mean\ndef centred(x): return x - mean(x, -2, keepdims=True)\n"
    )
    wanted = run("approximate", "--function", "mine_:centre", *QUICK, "--json").json
    for path in ("mine_.py:centre", home / "mine_.py:centre", "deep/my-f.py:centred"):
        report = run("approximate", "--function", path, *QUICK, "--json").json
        assert report["error"] == wanted["error"]
    sys.modules.pop("helper_")
    sys.modules.pop("my-f")


@pytest.mark.parametrize("name", ["loud", "warns"])
@pytest.mark.filterwarnings("once")
@pytest.mark.usefixtures("home")
def test_json_is_one_object_whatever_the_function_prints(run: Run, name: str) -> None:
    answer = run("approximate", "--function", f"mine_:{name}", *QUICK, "--json")
    assert strict(answer.out)["function"] == name


@pytest.mark.usefixtures("home")
def test_a_refusal_is_not_drowned_in_warnings(run: Run) -> None:
    """Warnings are errors here: one of numpy's would be the message instead."""
    message = refused(run("approximate", "--function", "mine_:logs"))
    assert message.startswith("rankone: logs: is [[-inf]")


def test_out(run: Run, tmp_path: Path) -> None:
    place = tmp_path / "deep" / "new"
    options = ("approximate", "softmax", "--grid", 4, "--samples", 256, "--json", "--out")
    files = [Path(path) for path in strict(run(*options, place).out)["files"]]
    assert sorted(path.name for path in files) == sorted(path.name for path in place.iterdir())
    assert {"network.safetensors", "approximation.json", "picture.png"} <= {
        path.name for path in files
    }
    assert strict((place / "approximation.json").read_text())["ok"]
    assert run(*options, place, "--no-table", "--n", 3).code == 0  # again, over an earlier one
    (tmp_path / "file").write_text("mine")
    for taken in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / ("x" * 300)):
        message = refused(run(*options, taken))
        assert str(tmp_path) in message
        assert "remedy: choose" in message
    assert (tmp_path / "file").read_text() == "mine"


def test_help_is_complete(run: Run) -> None:
    done = run("approximate", "--help")
    for option in "function list n d low high grid epsilon p readout positions".split():
        assert f"--{option} " in done.out
    for option in "lipschitz delta samples memory seed table out json quiet".split():
        assert f"--{option} " in done.out
