"""The table of grades and the plots."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from rankone import Corpus, builtin_corpus, load
from rankone.certification import Outcome, check_certificate, read_certificate
from rankone.corpus.builtin import toy_corpus
from rankone.drawing import write_plots
from rankone.errors import OutputError, SettingError
from rankone.explanation import draw_plots, explain, grades, plots
from rankone.explanation.context_sample import (
    context_sample,
    exact_log10_gap,
    float_gap,
    softmax_average,
)
from rankone.explanation.plots import plot_context_ids


def test_every_grade_of_the_toy_is_certified_above_its_bound() -> None:
    found = explain(toy_corpus())
    paper, tight, separate, practical = found.grades
    assert [g.name for g in found.grades] == ["paper", "tight", "tight-separate", "practical"]
    assert all(g.outcome is Outcome.CERTIFIED for g in found.grades)
    assert paper.digits > 100 * tight.digits > 100 * separate.digits > 100 * practical.digits
    for report in (paper, tight, separate):
        assert report.log10_gap is not None
        assert report.log10_bound is not None
        assert report.log10_bound < report.log10_gap < -10
    assert practical.log10_bound is None
    assert practical.log10_gap is not None
    assert practical.log10_gap > -6
    for report in found.grades:
        times = report.seconds
        assert times["total"] == pytest.approx(times["build"] + times["certify"])
        assert report.to_json()["seconds"] == times
        assert found.seconds[report.name] == times["total"]
    assert sum(found.seconds.values()) <= 2 * found.seconds["total"]
    assert (found.vocabulary, found.n, found.dim, found.statement) == (5, 3, 2, "Corollary 1")


def test_saved_weights_can_be_certified_again(tmp_path: Path) -> None:
    corpus = toy_corpus(4, 2)
    found = explain(corpus)
    report, *files = found.save(tmp_path, plots=False)
    assert report == tmp_path / "explanation.json"
    assert json.loads(report.read_text()) == json.loads(json.dumps(found.to_json()))
    assert [path.parent.name for path in files] == [g.name for g in found.grades]
    for path, report in zip(files, found.grades, strict=True):
        old = read_certificate(path)
        assert old.labels is (None if report.model and report.grade != "practical" else old.labels)
        assert check_certificate(old, load(path.parent), corpus).ok


def test_what_is_out_of_reach_is_said_to_be() -> None:
    paper, tight, *_ = explain(toy_corpus(), cap=1000).grades
    assert (paper.outcome, paper.log10_gap) == (Outcome.UNDECIDED, None)
    assert paper.remark == "needs more than 1,000 digits (--cap)"
    assert tight.outcome is Outcome.CERTIFIED
    paper, tight, *_ = explain(toy_corpus(), seconds=1e-3).grades
    assert paper.remark is not None
    assert "--seconds" in paper.remark


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_no_time_at_all_is_refused(seconds: float) -> None:
    with pytest.raises(SettingError, match="seconds"):
        explain(toy_corpus(4, 2), seconds=seconds)


def test_a_corpus_with_repeats_takes_positions() -> None:
    rows = [("aab", "xyx"), ("ab", "yx")]
    corpus = Corpus.from_sentences((list(words), list(labels)) for words, labels in rows)
    found = explain(corpus)
    assert found.statement == "Corollary 2, masked (Appendix C)"
    assert (found.vocabulary, found.n) == (4, 3)
    assert all(g.outcome is Outcome.CERTIFIED for g in found.grades)


def test_a_single_context_has_no_gap() -> None:
    for report in explain(Corpus.from_sentences([(["a"], ["x"])])).grades:
        assert (report.outcome, report.log10_gap) == (Outcome.CERTIFIED, None)
        assert report.remark is not None
        assert "single context" in report.remark


def test_figures_alone_for_many_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """They promise no more than what is built where it can be built."""
    built = explain(toy_corpus(), seconds=0.0).grades
    monkeypatch.setattr(grades, "LARGE", 2)
    promised = explain(toy_corpus(), seconds=0.0).grades
    for one, other in zip(built[:3], promised[:3], strict=True):
        assert other.model is None
        assert other.remark is not None
        assert "figures only" in other.remark
        assert other.digits == pytest.approx(one.digits, rel=0.5)


def test_large_corpora_get_their_figures() -> None:
    paper, tight, separate, practical = explain(builtin_corpus(300), dim=8).grades
    assert paper.digits > 1e12
    assert math.isfinite(tight.digits)
    assert separate.digits <= tight.digits
    assert practical.outcome is Outcome.CERTIFIED


def test_the_sample_tells_exact_from_float() -> None:
    corpus = toy_corpus()
    found = context_sample(corpus, explain(corpus, seconds=0.0).embedded)
    assert found is not None
    assert sorted(found.names) == list("abcde")
    scale = 4 / found.spread
    assert math.log10(float_gap(found, scale)) == pytest.approx(exact_log10_gap(found, scale))
    scale = 1000 / found.spread
    assert float_gap(found, scale) == 0.0
    assert exact_log10_gap(found, scale) < -100


def test_a_peak_of_the_gap_is_where_two_contexts_change_places() -> None:
    """What the plot says of its zigzag: the order of the ids is another one on either side."""
    corpus = toy_corpus()
    found = context_sample(corpus, explain(corpus, seconds=0.0).embedded)
    assert found is not None
    scales = np.geomspace(0.05, 850, 60) / found.spread
    digits = np.array([-exact_log10_gap(found, c) for c in scales])
    peaks = [i for i in range(1, 59) if digits[i] > max(digits[i - 1], digits[i + 1])]
    assert peaks

    def order(scale: float) -> list[list[int]]:
        pairs = zip(found.queries, found.contexts, strict=True)
        return [np.argsort([softmax_average(k, scale * q) for k in g]).tolist() for q, g in pairs]

    for peak in peaks:
        assert order(scales[peak - 1]) != order(scales[peak + 1])


PLOTS = ("boltzmann", "context-ids", "gap", "staircase", "sentence")


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Only these plots are drawn; all that would be are named here."""
    names: list[str] = []

    def some(home: Path, figures: dict[str, Any]) -> list[Path]:
        chosen = {name: plot for name, plot in figures.items() if name in names}
        names[:] = figures
        return write_plots(home, chosen)

    monkeypatch.setattr(plots, "write_plots", some)
    return names


def test_plots_are_png_and_svg_and_the_same_each_time(tmp_path: Path, drawn: list[str]) -> None:
    corpus = toy_corpus(4, 2)
    found = explain(corpus, seconds=0.0)
    drawn[:] = ["sentence"]
    first = draw_plots(tmp_path / "one", found)
    assert drawn == list(PLOTS)
    drawn[:] = ["sentence"]
    again = draw_plots(tmp_path / "two", found)
    assert [path.name for path in first] == ["sentence.png", "sentence.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]
    assert first[0].read_bytes().startswith(b"\x89PNG")
    assert ElementTree.fromstring(first[1].read_bytes()).tag.endswith("svg")


def test_the_plot_of_context_ids_counts_what_it_shows() -> None:
    corpus = toy_corpus(4, 2)
    found = context_sample(corpus, explain(corpus, seconds=0.0).embedded)
    assert found is not None
    hardmax, softmax, distances = plot_context_ids(found).axes
    for axis in (hardmax, softmax):
        texts = [text.get_text() for text in axis.texts]
        counts = [(int(text.split()[0]), int(text.split()[2])) for text in texts]
        ticks = [len(line.get_xdata()) for line in axis.lines if line.get_marker() == "|"]
        assert ticks == [seen for seen, _ in counts]
        total = f"{sum(ticks)} of {sum(of for _, of in counts)} contexts apart"
        assert total in axis.get_title()
    assert "12 of 12" in softmax.get_title()
    shown = [line.get_xdata() for line in distances.lines if line.get_marker() == "o"]
    assert [len(x) for x in shown] == [2, 2, 2, 2]
    assert min(x.min() for x in shown) > 0


def test_any_word_can_be_drawn(tmp_path: Path, drawn: list[str]) -> None:
    words = ["$x_{$", "\u6f22\u5b57", "\U0001f600", "a$b$"]
    pairs = [(words[:3], ["x", "$y$", "x"]), (words[1:], ["x"] * 3), (words[::2], ["x"] * 2)]
    corpus = Corpus.from_sentences(pairs)
    shown = ["context-ids", "staircase", "sentence"]
    drawn[:] = shown
    files = draw_plots(tmp_path, explain(corpus, seconds=0.0))
    for name in shown:
        assert "$x_{$" in (tmp_path / f"{name}.svg").read_text(encoding="utf-8")
    assert len(files) == 6


def test_no_token_in_two_contexts_leaves_what_can_be_seen(tmp_path: Path, drawn: list[str]) -> None:
    corpus = Corpus.from_sentences([(["a"], ["x"]), (["b"], ["y"])])
    draw_plots(tmp_path, explain(corpus, vectors=np.array([[1.0, 0.0], [0.0, 1.0]])))
    assert drawn == ["boltzmann", "staircase", "sentence"]
    alone = Corpus.from_sentences([(["a"], ["x"])])
    drawn.clear()
    draw_plots(tmp_path, explain(alone, seconds=0.0))
    assert drawn == ["boltzmann"]


def test_plots_that_cannot_be_written_leave_nothing(tmp_path: Path) -> None:
    corpus = toy_corpus(4, 2)
    found = explain(corpus, seconds=0.0)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError):
        draw_plots(tmp_path / "file", found)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
