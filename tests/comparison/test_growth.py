"""How constructions grow: curves, what ends them, and the exponents."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import corpora
import rankone
from rankone import Corpus
from rankone.certification import Outcome
from rankone.comparison import growth, plots
from rankone.comparison.growth import Curve, Growth, made_up
from rankone.comparison.result import Row
from rankone.construct.constructions import CONSTRUCTIONS
from rankone.errors import PrecisionError, SettingError, UnfitError


def test_made_up_sentences_are_sets_and_do_not_depend_on_how_many() -> None:
    many, few = made_up(64), made_up(16)
    assert many.sentences[:16] == few.sentences
    assert len({frozenset(s.tokens) for s in many.sentences}) == 64
    assert {len(set(s.tokens)) for s in many.sentences} == {8}
    assert len(many.vocabulary) == 32
    assert sorted(many.label_names) == ["L0", "L1", "L2", "L3"]
    assert made_up(16, seed=1).sentences != few.sentences


def test_exponents_of_the_wide_and_of_the_deep_readout() -> None:
    found = rankone.grow(
        constructions=["line", "kajitsuka2024", "kajitsuka2024-deep"], most=32, cap=100
    )
    assert found.ok
    curves = {curve.name: curve for curve in found.curves}
    deep, wide = curves["kajitsuka2024-deep"], curves["kajitsuka2024 practical"]
    assert deep.contexts == wide.contexts == tuple(8 * 2**k for k in range(6))
    assert 0.8 < (wide.exponents["nonzero"] or 0) < 1.1
    assert 0.9 < (curves["line"].exponents["parameters"] or 0) < 1.1
    for name in ("parameters", "nonzero", "layers"):
        assert 0.35 < (deep.exponents[name] or 0) < 0.7, name
    assert wide.exponents["layers"] == pytest.approx(0, abs=1e-12)
    assert deep.end == "all 32 sentences"
    literal = curves["kajitsuka2024 paper"]
    assert literal.contexts == ()
    assert "digits" in literal.end
    assert literal.exponents["bits"] is None
    assert found.labels == 4


def test_a_file_grows_by_its_first_sentences() -> None:
    corpus = Corpus.from_sentences(corpora.spelled("ab xy", "ac yx", "bc xx", "abc yxy", "b x"))
    found = rankone.grow(corpus, constructions=["kajitsuka2024-deep"])
    (curve,) = found.curves
    assert curve.contexts == (2, 4, 9, 10)
    assert curve.end == "all 5 sentences"
    assert [row.contexts for row in curve.rows] == [2, 4, 9, 10]
    assert all(row.model is None and row.certificate is None for row in curve.rows)


def test_what_ends_a_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    build = CONSTRUCTIONS["kajitsuka2024-deep"].variants[""]
    assert build is not None

    def small(problem: Any, seed: int) -> Any:
        if problem.tokens > 20:
            raise PrecisionError("too large", remedy="none")
        return build(problem, seed)

    variants: Any = CONSTRUCTIONS["kajitsuka2024-deep"].variants
    monkeypatch.setitem(variants, "", small)
    (curve,) = rankone.grow(constructions=["kajitsuka2024-deep"]).curves
    assert curve.contexts == (8, 16)
    assert curve.end == "N = 4: too large"
    assert curve.rows[-1].reason == "too large"

    monkeypatch.setitem(variants, "", build)
    given = growth.built_row
    with pytest.MonkeyPatch.context() as patch:  # each row takes a second: the third would be late
        patch.setattr(growth, "built_row", lambda *x: replace(given(*x), seconds=1.0))
        (curve,) = rankone.grow(constructions=["kajitsuka2024-deep"], seconds=3.5).curves
    assert curve.contexts == (8, 16)
    assert curve.end == "N = 4 would go over 3.5 s (--seconds)"

    def never(*_: Any) -> Any:
        raise PrecisionError("never", remedy="none")

    monkeypatch.setitem(variants, "", never)
    with pytest.raises(UnfitError, match="kajitsuka2024-deep: never"):
        rankone.grow(constructions=["kajitsuka2024-deep"])

    def interrupt(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setitem(variants, "", interrupt)
    found = rankone.grow(constructions=["kim2023", "kajitsuka2024-deep"], most=2)
    assert found.interrupted
    assert [curve.name for curve in found.curves] == ["kim2023"]


def test_an_exponent_is_fitted_to_the_upper_half() -> None:
    rows = [Row("a", None, parameters=n) for n in (7, 7, 7, 16, 64, 256)]
    contexts = [1, 2, 4, 8, 16, 32]
    assert growth._exponent(contexts, rows, "parameters") == pytest.approx(2)
    assert growth._exponent(contexts[:2], rows[:2], "parameters") is None
    assert growth._exponent(contexts, rows, "layers") is None


def test_the_formula_of_the_statement_goes_through_the_last_point() -> None:
    rows = tuple(Row("a", None, nonzero=n) for n in (10, 20, 40))
    curve = Curve("a", None, (100, 400, 1600), rows, {}, "")
    values = plots.statement(curve, 4)
    assert values[-1] == pytest.approx(40)
    assert 40 / 8 < values[0] < 40 / 4  # sqrt(16) = 4 times less, and logarithms


def test_next_tokens_grow_with_the_root_of_sentences() -> None:
    found = rankone.grow(constructions=["kajitsuka2025"], last=True, most=32)
    (curve,) = found.curves
    assert curve.contexts == (1, 2, 4, 8, 16, 32)
    every = rankone.grow(constructions=["kajitsuka2025"], most=32).curves[0]
    assert every.contexts[-1] == 256
    assert (curve.rows[-1].nonzero or 0) < 0.6 * (every.rows[-1].nonzero or 0)


def test_layers_of_a_grid_are_exponential_in_its_dimension() -> None:
    found = rankone.grow(constructions=["yun2020"], most=1)
    assert found.grid_layers == {d: 2**d + 1 for d in range(1, 8)}
    assert 1.8 < (found.grid_base or 0) < 2.05


@pytest.mark.parametrize("most", [0, -1, 1.5, True, "2"])
def test_numbers_of_sentences_that_are_none(most: Any) -> None:
    with pytest.raises(SettingError, match="most"):
        rankone.grow(most=most)


def test_what_is_written(tmp_path: Path) -> None:
    found = rankone.grow(constructions=["line", "kajitsuka2024-deep"], most=4)
    files = found.save(tmp_path)
    assert {file.name for file in files} == {
        "growth.json",
        "growth.csv",
        "growth.png",
        "growth.svg",
        "growth-more.png",
        "growth-more.svg",
    }
    document = json.loads((tmp_path / "growth.json").read_text())
    assert document == json.loads(json.dumps(found.to_json()))
    with (tmp_path / "growth.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [row["construction"] for row in table] == ["kajitsuka2024-deep"] * 3 + ["line"] * 3
    text = (tmp_path / "growth.svg").read_text()
    for told in ("lower bound sqrt(nN)", "nN log2(4) / 64 bits", "kajitsuka2024-deep"):
        assert told in text


def a_curve(name: str, contexts: tuple[int, ...], outcome: Outcome = Outcome.CERTIFIED) -> Curve:
    rows = tuple(
        Row(name, None, nonzero=10 * x, bits=8, layers=1, seconds=0.1, outcome=outcome)
        for x in contexts
    )
    slope = dict.fromkeys(growth.FITTED, 1.25 if len(contexts) > 2 else None)
    return Curve(name, None, contexts, rows, slope, "the end")


def grown(*curves: Curve, labels: int = 4) -> Growth:
    return Growth("here", labels, curves, {}, None, interrupted=False, seconds={})


def test_one_refuted_network_is_enough() -> None:
    good, bad = a_curve("line", (8, 16)), a_curve("kim2023", (8,), Outcome.REFUTED)
    assert grown(good).ok
    assert not grown(good, bad).ok


def test_what_the_plot_of_parameters_shows() -> None:
    found = grown(a_curve("line", (8, 16, 64)), a_curve("kim2023", (8, 16)))
    (axis,) = plots._parameters(found).axes
    lines = {line.get_label(): line.get_ydata() for line in axis.get_lines()}
    assert list(lines["line: exponent 1.25"]) == [80, 160, 640]
    assert list(lines["kim2023"]) == [80, 160]
    assert list(lines["lower bound sqrt(nN)"]) == pytest.approx([8**0.5, 4, 8])
    information = lines["information: nN log2(4) / 64 bits"]
    assert list(information) == pytest.approx([16 / 64, 32 / 64, 128 / 64])
    dashed = [line for line in axis.get_lines() if line.get_linestyle() == "--"]
    own = [list(line.get_ydata()) for line in dashed if line.get_label().startswith("_")]
    assert own == [[16 / 8, 32 / 8]]  # at the bits of the deep readout itself
    for axis in plots._more(found).axes:
        assert {line.get_label() for line in axis.get_lines()} == {"line", "kim2023"}


def test_many_labels_count_in_the_statement() -> None:
    curve = a_curve("kim2023", (8, 1 << 20))
    few, many = plots.statement(curve, 2), plots.statement(curve, 10**9)
    assert few[-1] == many[-1]
    assert few[0] < many[0]
