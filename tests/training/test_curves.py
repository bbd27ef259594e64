"""Curves of training: what the CSV holds, and what the drawing shows."""

from __future__ import annotations

import csv
import io
import math
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg

from rankone.corpus import Ceiling
from rankone.training.curves import LINES, PAPER, Curve, as_csv, plot_curves

KINDS = "rank1", "theorem2", "softmax"
shares = st.floats(0, 1)
losses = st.floats(0, 1e30)


def curve(accuracy: list[float], depth: int = 1, attention: str = "rank1") -> Curve:
    return Curve(depth, attention, [1.0] * len(accuracy), accuracy)


def limits(token: float, full: float) -> dict[str, Ceiling]:
    return {"token": Ceiling(token, 1), "input": Ceiling(full, 0)}


@st.composite
def curves(draw: st.DrawFn) -> Curve:
    lines = draw(st.lists(st.tuples(losses, shares), min_size=1, max_size=20))
    loss, accuracy = map(list, zip(*lines, strict=True))
    return Curve(draw(st.integers(1, 9)), draw(st.sampled_from(KINDS)), loss, accuracy)


# The first epoch above an accuracy.


@given(st.lists(shares, min_size=1), shares)
def test_the_first_epoch_above_has_none_above_before_it(accuracy: list[float], bar: float) -> None:
    first = curve(accuracy).first_above(bar)
    if first is None:
        assert max(accuracy) <= bar
    else:
        assert accuracy[first - 1] > bar
        assert max(accuracy[: first - 1], default=bar) <= bar


def test_epochs_count_from_1_and_equal_is_not_above() -> None:
    assert curve([0.5, 0.75, 1.0]).first_above(0.4) == 1
    assert curve([0.5, 0.75, 1.0]).first_above(0.75) == 3
    assert curve([0.5, 0.75, 1.0]).first_above(1.0) is None


# The CSV.


@given(st.lists(curves(), max_size=4))
def test_every_epoch_of_every_curve_can_be_read_back(drawn: list[Curve]) -> None:
    text = as_csv([((c.depth, c.attention), c) for c in drawn], "depth", "attention")
    assert text.splitlines()[0] == "depth,attention,epoch,loss,accuracy"
    rows = list(csv.DictReader(io.StringIO(text)))
    wanted = [
        (c.depth, c.attention, epoch, loss, accuracy)
        for c in drawn
        for epoch, (loss, accuracy) in enumerate(zip(c.loss, c.accuracy, strict=True), 1)
    ]
    assert len(rows) == len(wanted)
    for row, (depth, attention, epoch, loss, accuracy) in zip(rows, wanted, strict=True):
        assert (int(row["depth"]), row["attention"], int(row["epoch"])) == (depth, attention, epoch)
        # Six figures, and six decimals: off by half a unit of the last one.
        assert math.isclose(float(row["loss"]), loss, rel_tol=5.000001e-6, abs_tol=1e-300)
        assert abs(float(row["accuracy"]) - accuracy) <= 5.000001e-7


@given(curves())
def test_equal_curves_are_equal_bytes_and_lines_end_in_one_way(drawn: Curve) -> None:
    text = as_csv([((1,), drawn)], "depth")
    assert text == as_csv([((1,), drawn)], "depth")
    assert text.endswith("\n")
    assert "\r" not in text
    assert text.isascii()


@given(st.text(), st.text())
def test_no_name_breaks_a_row(name: str, other: str) -> None:
    text = as_csv([((name, other), curve([0.5]))], "choice", "value")
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows[1] == [name, other, "1", "1", "0.500000"]


def test_a_curve_with_a_loss_too_few_is_not_cut_short() -> None:
    with pytest.raises(ValueError, match="zip"):
        as_csv([((1,), Curve(1, "rank1", [0.5], [0.5, 0.6]))], "depth")


# The drawing.


def draw(drawn: list[Curve], limits: dict[str, Ceiling]) -> Axes:
    figure = plot_curves(drawn, limits)
    FigureCanvasAgg(figure).draw()
    return figure.axes[0]


def test_a_line_per_curve_with_its_name_and_the_ceilings_with_their_heights() -> None:
    kinds = [curve([0.7, 0.9], 1, kind) for kind in KINDS]
    axes = draw([*kinds, curve([0.8, 0.9], 3)], limits(0.6, 0.95))
    labels = axes.get_legend_handles_labels()[1]
    assert labels == [
        "1 layer",
        "1 layer, v1 and v2 constructed",
        "1 layer, standard attention",
        "3 layers",
    ]
    for line, c in zip(axes.lines, [*kinds, curve([0.8, 0.9], 3)], strict=False):
        assert list(line.get_xdata()) == [1, 2]
        assert list(line.get_ydata()) == c.accuracy
    texts = [text.get_text() for text in axes.texts]
    assert texts == ["ceiling of the token alone: 0.60000", "ceiling of any model: 0.95000"]


SHAPES = {
    "as in the paper": ([curve([0.8, 0.97], 1), curve([0.9, 0.99], 6)], limits(0.95, 1.0)),
    "below the token alone": ([curve([0.1, 0.5]), curve([0.2, 0.3], 2)], limits(0.9, 0.99)),
    "one epoch": ([curve([0.7]), curve([0.8], 1, "theorem2")], limits(0.6, 1.0)),
    "nothing to add": ([curve([0.5, 0.9])], limits(1.0, 1.0)),
    "much to add": ([curve([0.05, 0.9])], limits(0.05, 0.9)),
    "all right at once": ([curve([1.0, 1.0])], limits(0.8, 1.0)),
    "never right": ([curve([0.0, 0.0])], limits(0.5, 1.0)),
}
shapes = pytest.mark.parametrize("shape", SHAPES)


@shapes
def test_every_curve_can_be_seen_where_it_ends(shape: str) -> None:
    drawn, _ = SHAPES[shape]
    axes = plot_curves(*SHAPES[shape]).axes[0]
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    for line, c in zip(axes.lines, drawn, strict=False):
        assert left <= len(c.accuracy) <= right
        assert low <= c.accuracy[-1] <= high
        assert len(c.accuracy) > 1 or line.get_marker() not in ("", "None", None)


@shapes
def test_the_axis_does_not_go_far_below_an_accuracy_of_0(shape: str) -> None:
    assert plot_curves(*SHAPES[shape]).axes[0].get_ylim()[0] >= -0.05


@pytest.mark.parametrize("depths", [(1, 3, 6), (1, 2, 3, 4, 5)])
def test_no_two_curves_look_the_same(depths: tuple[int, ...]) -> None:
    kinds = [curve([0.7, 0.9], min(depths), kind) for kind in KINDS[1:]]
    drawn = [*(curve([0.7, 0.9], depth) for depth in depths), *kinds]
    figure = plot_curves(drawn, limits(0.6, 0.95))
    for i, line in enumerate(figure.axes[0].lines[: len(drawn)]):
        line.set_gid(f"curve{i}")
    text = io.StringIO()
    figure.savefig(text, format="svg")
    styles = re.findall(r'<g id="curve\d+">\s*<path [^>]*style="([^"]*)"', text.getvalue())
    assert len(styles) == len(set(styles)) == len(drawn)


def test_there_is_a_line_style_for_each_depth_of_the_paper() -> None:
    assert len(set(LINES)) == len(LINES) >= 3


@pytest.mark.parametrize(("token", "full"), [(0.8, 1.0), (0.95, 0.96), (1.0, 1.0), (0.5, 0.5)])
def test_the_words_at_the_ceilings_do_not_lie_on_each_other(token: float, full: float) -> None:
    axes = draw([curve([0.5, 0.9])], limits(token, full))
    boxes = sorted((text.get_window_extent() for text in axes.texts), key=lambda box: box.y0)
    assert all(below.y1 <= above.y0 for below, above in pairwise(boxes))


@pytest.mark.parametrize(("epochs", "marked"), [(PAPER[0] - 1, False), (PAPER[0], True)])
def test_the_number_of_the_paper_is_marked_where_there_is_room(epochs: int, marked: bool) -> None:
    axes = draw([curve([0.99] * epochs)], limits(0.95, 1.0))
    named = [label for label in axes.get_legend_handles_labels()[1] if "paper" in label]
    assert named == (["the paper, on CoNLL-2003: 0.9872 at 800"] if marked else [])
