"""Machine code on disk: what it is made from, and when it is made anew."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rankone
from rankone.kernels.compiled import compiler

ROOM = Path(rankone.__file__).parent / "kernels"


def imports(path):
    """The modules that a file of the room imports, as (module, name)."""
    nodes = ast.walk(ast.parse(path.read_text()))
    found = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return {(node.module, alias.name) for node in found for alias in node.names}


def makes_code(path):
    names = imports(path)
    return {"numba", "llvmlite"} & {module.split(".")[0] for module, _ in names} or {
        "compiled",
        "inlined",
    } & {name for module, name in names if module.endswith(".compiler")}


def test_machine_code_is_made_from_no_other_files_than_its_fingerprint():
    code = [path for path in sorted(ROOM.rglob("*.py")) if makes_code(path)]
    assert len(code) > 5
    for path in code:
        assert path in compiler.SOURCES
        for module, name in imports(path):
            if module.startswith("rankone.kernels"):
                place = ROOM.joinpath(*module.split(".")[2:])
                files = {place.parent / f"{place.name}.py", place / f"{name}.py"}
                assert files & set(compiler.SOURCES), (path, module, name)


@pytest.mark.slow
@pytest.mark.parametrize("file", ["compiled/placement.py", "chebyshev.py"])
def test_machine_code_on_disk_is_only_used_if_no_file_of_it_has_changed(file, tmp_path):
    """numba itself looks at one file, but what is compiled contains code of others."""
    package = Path(rankone.__file__).parent
    shutil.copytree(package, tmp_path / "rankone", ignore=shutil.ignore_patterns("__pycache__"))
    script = (
        "import torch, rankone; from rankone.kernels.compiled.tally_and_read import tally_keys\n"
        "x = torch.linspace(0, 1, 600, dtype=torch.float64)\n"
        "out = rankone.rank1_attention(x, x, x, method='linear')\n"
        "print(sum(tally_keys.stats.cache_hits.values()), out.sum().item())\n"
    )

    def hits_and_sum():
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        run = [sys.executable, "-c", script]
        done = subprocess.run(run, capture_output=True, text=True, env=environment, check=True)
        hits, total = done.stdout.split()
        return int(hits), float(total)

    first, again = hits_and_sum(), hits_and_sum()
    assert (first[0], again[0]) == (0, 1)
    source = tmp_path / "rankone" / "kernels" / file
    source.write_text(source.read_text() + "\n# changed\n")
    changed = hits_and_sum()
    assert changed[0] == 0
    assert first[1] == again[1] == changed[1]
