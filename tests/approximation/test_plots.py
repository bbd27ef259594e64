"""What the plots show."""

import numpy as np
import pytest

from rankone import approximate, converge
from rankone.approximation import plots
from rankone.approximation.plots import plot_convergence, plot_picture


def f(x):
    return 3 * x - x.mean(-2, keepdims=True)


@pytest.mark.parametrize("positions", [False, True])
def test_a_picture_shows_f_the_network_and_their_difference(positions, monkeypatch):
    monkeypatch.setattr(plots, "PIXELS", 4)
    result = approximate(f, n=2, domain=(-1, 3), grid=3, samples=256, positions=positions)
    figure = plot_picture(result, result.target)
    line = np.array([-0.5, 0.5, 1.5, 2.5])
    x = np.array([[[a], [b]] for b in line for a in line])  # x_1 goes to the right
    truth, network = f(x)[..., 0], result(x)[..., 0]
    axes = [each for each in figure.axes if each.images]
    assert len(axes) == (6 if positions else 3)
    largest = np.abs(network - truth).max()
    ends = (truth.min(), truth.max())
    assert ends[0] < ends[1]
    for place, each in enumerate(axes):
        token, view = divmod(place, 3)
        (image,) = each.images
        shown = (truth, network, network - truth)[view][:, token].reshape(4, 4)
        np.testing.assert_allclose(image.get_array(), shown, rtol=1e-12, atol=1e-14)
        assert image.get_clim() == pytest.approx((-largest, largest) if view == 2 else ends)
        assert image.get_extent() == [-1, 3, -1, 3]
        assert image.origin == "lower"
        name = ("f", "network", "network - f")[view]
        assert each.get_title() == f"{name}, token {token + 1}"
        assert (each.get_xlabel(), each.get_ylabel()) == ("$x_1$", "$x_2$")
    assert figure.get_suptitle() == "f, D = 3, constant readout"


def test_a_picture_of_one_of_several_outputs_says_so(monkeypatch):
    """Nor is a difference of 0 everywhere an error."""
    monkeypatch.setattr(plots, "PIXELS", 4)
    result = approximate(lambda x: 0 * np.concatenate([x, x], -1), n=2, grid=2, samples=256)
    figure = plot_picture(result, result.target)
    assert figure.get_suptitle() == "f, output 1 of 2, D = 2, constant readout"
    assert figure.axes[2].images[0].get_clim() == (-1.0, 1.0)


@pytest.mark.parametrize("known", [False, True])
def test_errors_are_drawn_with_their_intervals_and_bounds(known):
    table = converge(f, [2, 5], n=2, samples=256, p=3, lipschitz=3.0 if known else None)
    (axes,) = plot_convergence(table).axes
    bound, measured = axes.lines[0], axes.containers[0].lines[0]
    assert bound.get_xdata().tolist() == measured.get_xdata().tolist() == [2, 5]
    assert bound.get_ydata() == pytest.approx([row.bound.total for row in table.rows])
    assert measured.get_ydata() == pytest.approx([row.error for row in table.rows])
    bars = axes.containers[0].lines[2][0].get_segments()
    assert [bar[:, 1].tolist() for bar in bars] == [
        pytest.approx(row.interval, rel=1e-12) for row in table.rows
    ]
    kind = "bound" if known else "bound from the steepest slope seen"
    labels = [kind, f"measured, slope {table.slope:.2f}"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == labels
    assert [label.get_text() for label in axes.get_xticklabels()] == ["2", "5"]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.get_xlabel() == "D, cells per coordinate"
    assert axes.get_ylabel() == "$d_{3}$(f, network)"
    assert axes.get_title() == "f, n = 2, d = 1, constant readout"
