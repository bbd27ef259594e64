"""The map at the door of the room names every module, and no other."""

import re
from pathlib import Path

from rankone import kernels

ROOM = Path(kernels.__file__).parent


def modules(folder):
    return {path.stem for path in folder.glob("*.py")} - {"__init__"}


def test_the_map_has_every_module_of_both_sub_rooms():
    rows = re.findall(r"^    .*?  +(\w+)\.py  +(\w+)\.py$", kernels.__doc__, re.MULTILINE)
    assert [step for step in kernels.__doc__.split() if re.fullmatch(r"\d\.", step)] == [
        f"{step}." for step in range(1, 6)
    ]
    compiled, portable = ({row[side] for row in rows} for side in (0, 1))
    only_compiled = set(re.findall(r"`(\w+)\.py`", kernels.__doc__))
    assert portable == modules(ROOM / "portable")
    assert compiled | only_compiled == modules(ROOM / "compiled")


def test_the_map_has_every_other_module():
    assert modules(ROOM) <= set(re.findall(r"`(\w+)`", kernels.__doc__))
