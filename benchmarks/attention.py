"""Rank-1 attention in linear time: beside one exponential per token, torch's attention, all scores.

Queries and keys are standard normal, values uniform. Contenders of one table row are run in turns
and the best time of each is taken, so that ratios are those of one machine at one time.
`--quick` goes up to 131,072 tokens, with fewer repeats. Sections can be chosen by name; the plot of
times needs `forward` and `causal`, the plot of errors `error`.
"""

from __future__ import annotations

import argparse
import gc
import math
import platform
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

import common
from rankone import rank1_attention
from rankone.drawing import BLUE, GREEN, GREY, ORANGE, STYLE
from rankone.kernels import chebyshev
from rankone.kernels.batched import SWITCH
from rankone.kernels.direct import direct_attention

DOCS = Path(__file__).resolve().parents[1] / "docs"
PURPLE = "#7b4ea3"
Work = Callable[[], object]
Inputs = tuple[Tensor, Tensor, Tensor]
Times = dict[str, dict[int, float]]  # seconds by series and n

SIZES = (1_000, 3_162, 10_000, 32_768, 131_072, 1_000_000, 10_000_000)
CASE, HUGE = 131_072, 10_000_000
DIRECT = 10_000  # all scores are computed up to so many tokens
SCALES = (0.0, 1.0, 1e3, 1e6, 1e12, 1e100)
ROUNDING = 2.0**-53
LEAST = 1e-18  # longest floats are rounded there
MEASURED = {
    "forward": (False, False),
    "backward": (False, True),
    "causal forward": (True, False),
    "causal backward": (True, True),
}
linear = partial(rank1_attention, method="linear")


class Run:
    """What was asked for, and what the plots need."""

    def __init__(self, quick: bool, long: bool, out: Path) -> None:
        self.quick, self.long, self.out = quick, long, out
        self.sizes = [n for n in SIZES if not quick or n <= CASE]
        self.sdpa = 32_768 if quick else CASE
        self.million = CASE if quick else 1_000_000
        self.times: Times = {}

    def race(
        self, contenders: dict[str, Work], seconds: float = 2.0, most: int = 300
    ) -> dict[str, float]:
        """The best time of each, in turns; who has used up its seconds drops out after two runs."""
        seconds = seconds / 5 if self.quick else seconds
        shortest, spent = dict.fromkeys(contenders, math.inf), dict.fromkeys(contenders, 0.0)
        gc.collect()
        gc.disable()
        for turn in range(most):
            for name in [name for name in contenders if turn < 2 or spent[name] < seconds]:
                time.sleep(common.PAUSE)
                started = time.perf_counter()
                contenders[name]()
                taken = time.perf_counter() - started
                shortest[name] = min(shortest[name], taken)
                spent[name] += taken
        gc.enable()
        return shortest

    def keep(self, series: str, n: int, seconds: float) -> None:
        self.times.setdefault(series, {})[n] = seconds


def inputs(n: int, dtype: torch.dtype = torch.float64, batch: tuple[int, ...] = ()) -> Inputs:
    """Query, key and value."""
    random = torch.Generator().manual_seed(n)
    query, key = (torch.randn(*batch, n, generator=random, dtype=dtype) for _ in range(2))
    return query, key, torch.rand(*batch, n, generator=random, dtype=dtype)


def torch_attention(given: Inputs, **how: bool) -> Tensor:
    """One head of size 1."""
    query, key, value = (x[None, None, :, None] for x in given)
    return scaled_dot_product_attention(query, key, value, scale=1.0, **how)


def pulled_back(attend: Callable[..., Tensor], given: Inputs) -> Work:
    """Forward, and the gradients of query, key and value."""
    leaves = [x.detach().requires_grad_() for x in given]
    grad = torch.rand_like(attend(*given))
    return lambda: torch.autograd.grad(attend(*leaves), leaves, grad)


def ms(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    digits = max(0, 2 - math.floor(math.log10(seconds * 1e3)))
    return f"{seconds * 1e3:,.{min(digits, 3)}f}"


def us(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f}"


def forward(run: Run) -> None:
    """Every query attends to every key."""
    rows, targets = [], []
    for n in run.sizes:
        double, single = inputs(n), inputs(n, torch.float32)
        contenders: dict[str, Work] = {
            "exp": partial(torch.exp, double[1]),
            "linear": partial(linear, *double),
            "float32": partial(linear, *single),
        }
        if n <= run.sdpa:
            contenders["sdpa"] = partial(torch_attention, single)
        if n == run.million:
            contenders["exp again"] = partial(torch.exp, double[1], out=torch.empty(n).double())
        if n <= DIRECT:
            contenders["direct"] = partial(rank1_attention, *double, method="direct")
        found = run.race(contenders)
        for name, seconds in found.items():
            run.keep(name, n, seconds)
        exp, double_, single_ = (found[name] for name in ("exp", "linear", "float32"))
        sdpa, direct = found.get("sdpa"), found.get("direct")
        row = [f"{n:,}", ms(exp), ms(double_), common.ratio(double_, exp), ms(single_)]
        rows.append(
            [*row, ms(sdpa), common.ratio(sdpa, single_), ms(direct), common.ratio(direct, double_)]
        )
        if n == run.million:
            again = found["exp again"]
        if n == CASE and sdpa:
            what = f"n = {n:,}: scaled_dot_product_attention / linear float32"
            targets.append((what, "at least", 500.0, sdpa / single_))
        if n == 1_000_000:
            targets.append((f"n = {n:,}: linear / torch.exp", "at most", 8.0, double_ / exp))
    header = "n; exp float64 ms; linear float64 ms; / exp; linear float32 ms; sdpa float32 ms; "
    header += "/ linear float32; direct float64 ms; / linear float64"
    common.table(header.split("; "), rows)
    print(
        "sdpa is scaled_dot_product_attention with one head of size 1. torch.exp makes a new "
        "tensor, as attention does;\nwritten to memory already in use, "
        f"{run.million:,} numbers take it {ms(again)} ms.\n"
    )
    if HUGE in run.sizes:
        small, large = inputs(HUGE // 10), inputs(HUGE)
        found = run.race({"1": partial(linear, *small), "10": partial(linear, *large)}, 4.0)
        what = f"linear float64: n = {HUGE:,} / n = {HUGE // 10:,}"
        targets.append((what, "at most", 11.0, found["10"] / found["1"]))
    common.against(*targets)


def causal(run: Run) -> None:
    """Every query attends to the keys up to its own place."""
    rows, targets = [], []
    for n in run.sizes:
        if n == HUGE and not run.long:
            continue
        double, single = inputs(n), inputs(n, torch.float32)
        contenders: dict[str, Work] = {
            "causal": partial(linear, *double, causal=True),
            "float32": partial(linear, *single, causal=True),
        }
        if n <= run.sdpa:
            contenders["sdpa causal"] = partial(torch_attention, single, is_causal=True)
        found = run.race(contenders, 3.0)
        double_, single_ = found["causal"], found["float32"]
        sdpa = found.get("sdpa causal")
        run.keep("causal", n, double_)
        if sdpa:
            run.keep("sdpa causal", n, sdpa)
        ns = double_ / n * 1e9
        row = [f"{n:,}", ms(double_), f"{ns:.0f}", f"{ns / math.log2(n):.1f}"]
        rows.append([*row, ms(single_), ms(sdpa), common.ratio(sdpa, single_)])
        if n == CASE and sdpa:
            what = f"n = {n:,}: scaled_dot_product_attention / linear float32, both causal"
            targets.append((what, "at least", 50.0, sdpa / single_))
    header = "n; linear causal float64 ms; ns per token; ns per token and log2 n; "
    header += "linear causal float32 ms; sdpa causal float32 ms; / linear float32"
    common.table(header.split("; "), rows)
    common.against(*targets)


def backward(run: Run) -> None:
    """Forward and backward beside forward alone, which is timed without gradients."""
    rows, targets = [], []
    for n, is_causal in ((run.million, False), (32_768 if run.quick else CASE, True)):
        for dtype in (torch.float64, torch.float32):
            given = inputs(n, dtype)
            attend = partial(linear, causal=is_causal)
            contenders = {"forward": partial(attend, *given), "both": pulled_back(attend, given)}
            found = run.race(contenders, 3.0)
            what = f"{n:,}, {'causal' if is_causal else 'whole'}, {str(dtype)[6:]}"
            measured = found["both"] / found["forward"]
            rows.append(
                [what, ms(found["forward"]), ms(found["both"]), common.ratio(measured, 1.0)]
            )
            targets.append((f"{what}: forward + backward / forward", "at most", 5.0, measured))
    common.table(["n", "forward ms", "forward + backward ms", "ratio"], rows)
    common.against(*targets)


def scores(run: Run) -> None:
    """Time and error against the range of the scores; linear, in float64."""
    query, key, value = inputs(run.million)
    work: dict[str, Work] = {f"{s:g}": partial(linear, query * s, key, value) for s in SCALES}
    seconds = run.race(work)
    n = 2_048 if run.quick else 4_096
    rows = []
    for scale, taken in zip(SCALES, seconds.values(), strict=True):
        found = errors(n, scale)
        off = [f"{found[name]['result']:.1e}" for name in ("difference", "linear", "direct")]
        rows.append([f"{scale:g}", ms(taken), common.ratio(taken, seconds["1"]), *off])
    header = [f"n = {run.million:,}, scores times", "ms", "/ times 1"]
    header += [f"n = {n:,}: linear - direct", "error of linear", "error of direct"]
    common.table(header, rows)
    print(
        "Differences relative to the largest |value|; errors are differences from direct sums in "
        f"numpy's longest\nfloats (2^-{np.finfo(np.longdouble).nmant + 1}). "
        f"error_bound({n}) is {chebyshev.error_bound(n):.1e}.\n"
    )


def errors(n: int, scale: float) -> dict[str, dict[str, float]]:
    """Largest errors of linear and direct in float64, and their difference; queries times `scale`.

    That of the result is relative to the largest |value|. A gradient is a sum of terms of either
    sign; its error is relative to the largest such sum without signs, in which a value is as far
    from the mean as the largest |value|, and for the query a key as far as two keys are apart.
    """
    query, key, value = inputs(n)
    query = query * scale
    grad = torch.randn(n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    truth, units = exact(*(x.numpy().astype(np.longdouble) for x in (query, key, value, grad)))
    found = {"truth": truth}
    for method in ("linear", "direct"):
        leaves = [x.detach().requires_grad_() for x in (query, key, value)]
        result = rank1_attention(*leaves, method=method)
        tensors = (result.detach(), *torch.autograd.grad(result, leaves, grad))
        found[method] = [x.numpy() for x in tensors]
    out = {}
    for name, one, other in (
        ("linear", "linear", "truth"),
        ("direct", "direct", "truth"),
        ("difference", "linear", "direct"),
    ):
        off = [np.abs(a - b).max() for a, b in zip(found[one], found[other], strict=True)]
        relative = [float(a / b) if b > 0 else 0.0 for a, b in zip(off, units, strict=True)]
        out[name] = dict(zip(("result", "query", "key", "value"), relative, strict=True))
    return out


def exact(query: Any, key: Any, value: Any, grad: Any) -> tuple[list[Any], list[Any]]:
    """Result and gradients of query, key and value by direct sums; the units of their errors."""
    result, of_query = np.empty_like(query), np.empty_like(query)
    of_key, of_value, key_unit, value_unit = (np.zeros_like(key) for _ in range(4))
    for i in range(0, len(query), 256):
        some = slice(i, i + 256)
        y, g = query[some], grad[some]
        distance = key - np.where(y >= 0, key.max(), key.min())[:, None]
        weights = np.exp(y[:, None] * distance)
        weights /= weights.sum(-1, keepdims=True)
        result[some] = weights @ value
        moved = weights * (value - result[some, None])
        of_query[some] = g * (moved * distance).sum(-1)
        of_key += (g * y) @ moved
        of_value += g @ weights
        key_unit += np.abs(g * y) @ weights
        value_unit += np.abs(g) @ weights
    most = np.abs(value).max()
    query_unit = most * np.abs(grad).max() * np.ptp(key)
    units = [most, query_unit, most * key_unit.max(), value_unit.max()]
    return [result, of_query, of_key, of_value], units


def short(run: Run) -> None:
    """Sentences, where all scores are the fastest way, and where that ends."""
    rows, targets = [], []
    for n in (10, 30, 100):
        given = inputs(n, torch.float32, (32,))
        column = (*given[:2], given[2].unsqueeze(-1))
        contenders: dict[str, Work] = {
            "direct": partial(direct_attention, *column),
            "auto": partial(rank1_attention, *given),
            "direct, both": pulled_back(direct_attention, column),
            "auto, both": pulled_back(rank1_attention, given),
        }
        found = run.race(contenders, 0.5, 2_000)
        row = [f"32 x {n}"]
        for suffix, name in (("", "forward"), (", both", "forward + backward")):
            direct, auto = found["direct" + suffix], found["auto" + suffix]
            row += [us(direct), us(auto), common.ratio(auto, direct)]
            what = f"32 sentences of {n} tokens, {name}: auto / direct"
            targets.append((what, "at most", 1.2, auto / direct))
        rows.append(row)
    header = "tokens; direct us; auto us; ratio; with backward: direct us; auto us; ratio"
    common.table(header.split("; "), rows)
    common.against(*targets)
    switch_over(run)


def switch_over(run: Run) -> None:
    rows = []
    for batch in (1, 32):
        for n in (64, 128, 256, 512, 1_024, 2_048):
            if run.quick and batch * n > 32_768:
                continue
            given = inputs(n, torch.float32, (batch,))
            contenders: dict[str, Work] = {}
            for method in ("direct", "linear"):
                attend = partial(rank1_attention, method=method)
                contenders[method] = partial(attend, *given)
                contenders[f"{method}, both"] = pulled_back(attend, given)
            found = run.race(contenders, 0.5)
            row = [f"{batch} x {n:,}"]
            for suffix in ("", ", both"):
                direct, linear_ = found["direct" + suffix], found["linear" + suffix]
                row += [us(direct), us(linear_), common.ratio(direct, linear_)]
            rows.append([*row, "linear" if n * n >= SWITCH else "direct"])
    header = "tokens; direct us; linear us; direct / linear; "
    header += "with backward: direct us; linear us; direct / linear; auto takes"
    common.table(header.split("; "), rows)
    root = math.isqrt(SWITCH)
    print(f"float32. SWITCH is {SWITCH:,} scores per row: sequences of {root:,} tokens.\n")


def memory(run: Run) -> None:
    """What is allocated at once beside inputs, result and the gradients returned, in float64."""
    n = run.million
    # With this every array is given back to the system when it is freed.
    resident = common.fresh(resident_peaks, n, MALLOC_MMAP_THRESHOLD_="65536")
    rows = []
    for name, (is_causal, pull_back) in MEASURED.items():
        traced, whole = numpy_peak(n, is_causal, pull_back), resident[name]
        rows.append([name, f"{traced:.2f}", "-" if whole is None else f"{whole:.2f}"])
    common.table([f"arrays of n = {n:,}", "numpy's", "all of the process"], rows)
    print(
        "numpy's: by tracemalloc, which does not see what torch or compiled code allocate. All of "
        "the process: resident\nmemory, which sees everything. Counted in are the sums of weights "
        "that forward keeps for backward, 1 array,\nand tables whose size does not depend on n.\n"
    )


def memory_work(n: int, is_causal: bool, pull_back: bool) -> tuple[Work, int]:
    """The work to be measured, and how many arrays of n it returns."""
    attend = partial(linear, causal=is_causal)
    pulled_back(attend, inputs(min(n, 20_000)))()  # compiled code and constants
    given = inputs(n)
    if not pull_back:
        return partial(attend, *given), 1
    leaves = [x.requires_grad_() for x in given]
    result = attend(*leaves)
    return partial(torch.autograd.grad, result, leaves, torch.ones_like(result)), 3


def numpy_peak(n: int, is_causal: bool, pull_back: bool) -> float:
    work, returned = memory_work(n, is_causal, pull_back)
    tracemalloc.start()
    kept = work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    del kept
    return peak / (8 * n) - returned


def resident_peaks(n: int) -> dict[str, float | None]:
    return {name: resident_peak(n, *how) for name, how in MEASURED.items()}


def resident_peak(n: int, is_causal: bool, pull_back: bool) -> float | None:
    """None if the system does not tell."""
    work, returned = memory_work(n, is_causal, pull_back)
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak is now what is resident now
        before = common.resident("VmRSS")
        kept = work()
        peak = common.resident("VmHWM")
    except OSError:
        return None
    del kept
    return (peak - before) / (8 * n) - returned


def first(run: Run) -> None:
    """The first call of a process, with torch and rankone imported."""
    first_call(False), first_call(True)  # the code is compiled and kept
    rows, targets = [], []
    for is_causal in (False, True):
        name = "causal" if is_causal else "whole"
        found = [common.fresh(first_call, is_causal) for _ in range(1 if run.quick else 5)]
        ahead, back = min(found, key=sum)
        rows.append([f"{name}, compiled code from disk", f"{ahead:.2f}", f"{back:.2f}"])
        what = f"{name}, first forward + backward, seconds"
        targets.append((what, "at most", 2.0, ahead + back))
    for is_causal in (False,) if run.quick else (False, True):
        with tempfile.TemporaryDirectory() as folder:
            ahead, back = common.fresh(first_call, is_causal, NUMBA_CACHE_DIR=folder)
        name = "causal" if is_causal else "whole"
        rows.append([f"{name}, compiled in this call", f"{ahead:.2f}", f"{back:.2f}"])
    common.table(["first call, n = 1,000, float32", "forward s", "backward s"], rows)
    common.against(*targets)


def first_call(is_causal: bool) -> tuple[float, float]:
    given = [x.requires_grad_() for x in inputs(1_000, torch.float32)]
    started = time.perf_counter()
    result = linear(*given, causal=is_causal)
    between = time.perf_counter()
    torch.autograd.grad(result, given, torch.ones_like(result))
    return between - started, time.perf_counter() - between


def error(run: Run) -> None:
    """Errors against the scale of the scores, and of an interpolated exponential; with a plot."""
    n = 2_048
    scales = np.geomspace(1e-3, 1e12, 16 if run.quick else 31)
    found = [errors(n, float(scale)) for scale in scales]
    rows, series = [], {}
    for what in ("result", "query", "key", "value"):
        name = what if what == "result" else f"gradient of {what}"
        columns = [[each[by][what] for each in found] for by in ("linear", "direct", "difference")]
        rows.append([name, *(f"{max(column):.1e}" for column in columns)])
        series[name] = np.array(columns[0])
    header = [f"n = {n:,}, scores times 1e-3 to 1e12", "linear", "direct", "linear - direct"]
    common.table(header, rows)
    print(
        "The largest error over all scales, against direct sums in numpy's longest floats. Of the "
        "result: relative\nto the largest |value|; of a gradient: to the sum of its terms' sizes. "
        f"error_bound({n}) is {chebyshev.error_bound(n):.1e},\n2^-53 is {ROUNDING:.1e}.\n"
    )
    figure = Figure(figsize=(9.6, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_errors(left, n, scales, series)
    plot_truncation(right)
    save(figure, run.out / "attention-error.svg")


def plot_errors(axis: Axes, n: int, scales: Any, series: dict[str, Any]) -> None:
    for (name, off), colour in zip(series.items(), (BLUE, ORANGE, GREEN, PURPLE), strict=True):
        off = np.maximum(off, LEAST / 10)  # what is smaller, or 0, leaves the picture
        axis.plot(scales, off, color=colour, lw=2.0 if name == "result" else 1.2, label=name)
    lines = {f"error_bound({n})": chebyshev.error_bound(n), "$2^{-53}$": ROUNDING}
    for text, height in lines.items():
        axis.axhline(height, color=GREY, lw=1, ls="--")
        axis.text(scales[-1], height * 1.15, text, color=GREY, ha="right", va="bottom", fontsize=9)
    axis.set(xscale="log", yscale="log", xlim=(scales[0], scales[-1]), ylim=(LEAST, 1e-12))
    axis.set(xlabel="scores times", ylabel="largest relative error")
    axis.set_title(f"Error of linear, n = {n:,}, float64", fontsize=11)
    axis.legend(frameon=False, fontsize=9, loc=(0.5, 0.52))
    axis.minorticks_off()


def truncation(a: float, terms: int) -> float:
    """The largest relative error of e^(-a s), |s| <= 1, interpolated at Chebyshev nodes.

    In numpy's longest floats, since the errors in question are beyond the rounding of float64.
    """
    pi = 4 * np.arctan(np.longdouble(1))
    angles = (2 * np.arange(terms, dtype=np.longdouble) + 1) * pi / (2 * terms)
    nodes, signs = np.cos(angles), np.sin(angles) * (-1.0) ** np.arange(terms)
    s = np.linspace(-1, 1, 1_000, dtype=np.longdouble)
    shares = signs / (s[:, None] - nodes)
    interpolated = shares @ np.exp(-a * nodes) / shares.sum(-1)
    return float(np.abs(interpolated * np.exp(a * s) - 1).max())


def plot_truncation(axis: Axes) -> None:
    terms = np.arange(1, 21)
    chosen = {
        chebyshev.BITS: (chebyshev.TERMS, f"cells: {chebyshev.TERMS} terms"),
        chebyshev.GROUP_BITS: (chebyshev.NODES, f"groups: {chebyshev.NODES} nodes"),
    }
    for bits, colour in zip((2, 4, 6, 8), (PURPLE, GREEN, ORANGE, BLUE), strict=True):
        a = 2.0 ** (chebyshev.SCALE_EXPONENT - bits - 1)
        bound = np.array([2 * (a / 2) ** p * math.exp(2 * a) / math.factorial(p) for p in terms])
        measured = np.array([truncation(a, int(p)) for p in terms])
        seen = bound > LEAST
        axis.plot(terms[seen], bound[seen], color=colour, lw=1, ls="--")
        axis.plot(terms[seen], measured[seen], "o", color=colour, ms=4)
        at = np.flatnonzero(measured < 1e-9)[0]
        write = partial(axis.annotate, textcoords="offset points", color=colour)
        end = (terms[at], measured[at])
        write(f"{1 << bits}", end, (-5, 0), fontweight="bold", ha="right", va="top")
        if bits in chosen:
            p, text = chosen[bits]
            axis.plot(p, measured[p - 1], "o", color=colour, ms=11, mfc="none", mew=1.4)
            write(text, (p, measured[p - 1]), (0, -9), ha="center", va="top", fontsize=9)
    axis.axhline(ROUNDING, color=GREY, lw=1, ls="--")
    axis.text(20.5, ROUNDING * 1.5, "$2^{-53}$", color=GREY, ha="right", va="bottom", fontsize=9)
    axis.plot([], [], color=GREY, lw=1, ls="--", label="bound")
    axis.plot([], [], "o", color=GREY, ms=4, label="measured")
    axis.legend(frameon=False, fontsize=9, loc="upper right")
    axis.set(yscale="log", xlim=(0.5, 20.5), ylim=(LEAST / 100, 1e5), xticks=range(2, 21, 2))
    axis.set(xlabel="terms", ylabel="largest relative error")
    axis.set_title("$e^{-yd}$ interpolated in a cell, by cells to the octave", fontsize=11)
    axis.minorticks_off()


def plot_times(run: Run) -> None:
    """Time against n, both logarithmic; each line is labelled at its end."""
    figure = Figure(figsize=(8.0, 5.0), layout="constrained")
    axis: Axes = figure.subplots()
    sdpa = "scaled_dot_product_attention, float32"
    looks = {
        "exp": (GREY, "-", "torch.exp", "center"),
        "linear": (BLUE, "-", "linear", "center"),
        "causal": (BLUE, "--", "linear, causal", "center"),
        "direct": (GREEN, "-", "direct", "center"),
        "sdpa": (ORANGE, "-", sdpa, "bottom"),
        "sdpa causal": (ORANGE, "--", f"{sdpa}, causal", "top"),
    }
    for name, (colour, dashes, text, side) in looks.items():
        if name in run.times:
            n, seconds = (list(x) for x in (run.times[name], run.times[name].values()))
            axis.plot(n, seconds, color=colour, ls=dashes, lw=1.8, marker="o", ms=3.5)
            end = (n[-1], seconds[-1])
            axis.annotate(text, end, (7, 0), textcoords="offset points", color=colour, va=side)
    axis.set(xscale="log", yscale="log", xlabel="tokens", ylabel="seconds")
    axis.set_title("Forward pass of one sequence, float64 unless said", fontsize=11)
    axis.grid(color=GREY, alpha=0.2, lw=0.6)
    save(figure, run.out / "attention-time.svg")


def save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    print(f"{path}\n")


SECTIONS: dict[str, Callable[[Run], None]] = {
    work.__name__: work for work in (forward, causal, backward, scores, short, memory, first, error)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="section", help=f"of {', '.join(SECTIONS)}")
    parser.add_argument("--quick", action="store_true", help="n up to 131,072, fewer repeats")
    parser.add_argument("--long", action="store_true", help="causal up to 10,000,000 too")
    parser.add_argument("--out", type=Path, default=DOCS, help="folder of the plots")
    arguments = parser.parse_args()
    unknown = set(arguments.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    run = Run(arguments.quick, arguments.long, arguments.out)
    print(f"{platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}\n")
    with matplotlib.rc_context(STYLE):
        for name, work in SECTIONS.items():
            if not arguments.sections or name in arguments.sections:
                print(f"## {name}\n\n{work.__doc__}\n")
                work(run)
        if {"linear", "causal"} <= set(run.times):
            plot_times(run)


if __name__ == "__main__":
    main()
