"""Which tests does a mutant need? What `tools/mutate.py ROOM --needed` prints."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping


def table(noticed: Iterable[tuple[int, str]], seconds: Mapping[str, float]) -> str:
    """A line per test function, its parameters taken together: first those that noticed a mutant,
    the one that alone noticed most first; then those that noticed none, dearest first.

    `noticed`: pairs of a mutant's number and a test that it made fail.
    """
    time: dict[str, float] = defaultdict(float)
    for test, took in seconds.items():
        time[_function(test)] += took
    by: dict[int, set[str]] = defaultdict(set)
    for mutant, test in noticed:
        by[mutant].add(_function(test))
    any_ = {name: sum(name in names for names in by.values()) for name in time}
    alone = {name: sum({name} == names for names in by.values()) for name in time}
    order = sorted(time, key=lambda name: (any_[name] == 0, -alone[name], -time[name]))
    rows = [f"{time[n]:8.2f} {any_[n]:8d} {alone[n]:11d}  {n}" for n in order]
    head = f"{'seconds':>8} {'noticed':>8} {'only by it':>11}  of {len(by)} that some test noticed"
    return "\n".join([head, *rows])


def _function(test: str) -> str:
    return test.split("[")[0]
