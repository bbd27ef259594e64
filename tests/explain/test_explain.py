"""The table of grades and the plots."""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from rankone import Corpus, builtin_corpus, load
from rankone.certify import Outcome, check_certificate, read_certificate
from rankone.corpus.builtin import toy_corpus
from rankone.explain import draw_plots, explain, grades
from rankone.explain.sample import exact_log10_gap, float_gap, sample


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
    assert (found.vocabulary, found.n, found.dim, found.statement) == (5, 3, 2, "Corollary 1")


def test_saved_weights_can_be_certified_again(tmp_path: Path) -> None:
    corpus = toy_corpus(4, 2)
    found = explain(corpus)
    files = found.save(tmp_path)
    assert [path.parent.name for path in files] == [g.name for g in found.grades]
    for path, report in zip(files, found.grades, strict=True):
        old = read_certificate(path)
        assert old.labels is (None if report.model and report.grade != "practical" else old.labels)
        assert check_certificate(old, load(path.parent), corpus).ok


def test_what_is_out_of_reach_is_said_to_be() -> None:
    paper, tight, *_ = explain(toy_corpus(), cap=1000).grades
    assert (paper.outcome, paper.log10_gap) == (Outcome.UNDECIDED, None)
    assert paper.remark == "more than 1,000 digits (--cap)"
    assert tight.outcome is Outcome.CERTIFIED
    paper, tight, *_ = explain(toy_corpus(), seconds=1e-3).grades
    assert paper.remark is not None
    assert "--seconds" in paper.remark


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
    found = sample(corpus, explain(corpus, seconds=0.0).setting)
    assert found is not None
    assert sorted(found.names) == list("abcde")
    scale = 4 / found.spread
    assert math.log10(float_gap(found, scale)) == pytest.approx(exact_log10_gap(found, scale))
    scale = 1000 / found.spread
    assert float_gap(found, scale) == 0.0
    assert exact_log10_gap(found, scale) < -100


def test_plots_are_png_and_svg_and_the_same_each_time(tmp_path: Path) -> None:
    corpus = toy_corpus(4, 2)
    where = explain(corpus, seconds=0.0).setting
    first, again = (draw_plots(tmp_path / name, corpus, where) for name in ("one", "two"))
    assert [path.name for path in first] == [
        f"{name}.{suffix}"
        for name in ("boltzmann", "context-ids", "gap")
        for suffix in ("png", "svg")
    ]
    for path, other in zip(first, again, strict=True):
        data = path.read_bytes()
        assert data == other.read_bytes()
        if path.suffix == ".png":
            assert data.startswith(b"\x89PNG")
        else:
            picture = ElementTree.fromstring(data)
            assert picture.tag.endswith("svg")
            assert "mathdefault" not in "".join(picture.itertext())


def test_any_word_can_be_drawn(tmp_path: Path) -> None:
    words = ["$x_{$", "\u6f22\u5b57", "\U0001f600", "a$b$"]
    pairs = [(words[:3], ["x"] * 3), (words[1:], ["x"] * 3), (words[::2], ["x"] * 2)]
    corpus = Corpus.from_sentences(pairs)
    files = draw_plots(tmp_path, corpus, explain(corpus, seconds=0.0).setting)
    assert "$x_{$" in (tmp_path / "context-ids.svg").read_text(encoding="utf-8")
    assert len(files) == 6


def test_no_token_in_two_contexts_leaves_one_plot(tmp_path: Path) -> None:
    corpus = Corpus.from_sentences([(["a"], ["x"]), (["b"], ["y"])])
    where = explain(corpus, np.array([[1.0, 0.0], [0.0, 1.0]])).setting
    files = draw_plots(tmp_path, corpus, where)
    assert {path.stem for path in files} == {"boltzmann"}
