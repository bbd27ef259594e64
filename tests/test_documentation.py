"""The pages that `make docs` builds: complete, true to the code, and installable with it."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import rankone
import rankone.theory

ROOT = Path(__file__).resolve().parents[1]
TUTORIALS = sorted((ROOT / "examples" / "tutorials").glob("*.py"))
sys.path += [str(ROOT / "docs" / "extensions"), str(ROOT / "tools")]

import api_pages  # noqa: E402
import docstrings  # noqa: E402
import draw_rooms  # noqa: E402
import gallery  # noqa: E402
import names  # noqa: E402
import statements  # noqa: E402

# What is numbered in the paper.
NUMBERED = {
    *(f"eq. {number}" for number in (2, 3, 4, 5, 20)),
    *(f"Definition {number}" for number in (1, 2, 3)),
    *(f"{kind} {number}" for kind in ("Theorem", "Remark", "Corollary") for number in (1, 2)),
    *(f"Lemma {number}" for number in range(1, 8)),
    "Proposition 1",
    "Figure 1",
    "Appendix C",
}
TABLE = statements.statements()


def test_the_table_has_every_statement_once() -> None:
    said = [re.match(r"[\w.]+ \w+", part) for row in TABLE for part in row.name.split(", ")]
    found = [match[0] for match in said if match]
    assert set(found) == NUMBERED | {"eq. 80", "eq. 83", "eq. 97"}  # in rows of their lemmas
    assert len(found) == len(set(found))


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_every_row_leads_to_code_to_tests_and_to_a_tutorial(row: statements.Statement) -> None:
    assert row.names
    for name in row.names:
        assert names.imported(name).__doc__, name
    tests = re.findall(r"\]\(\.\./(tests/\S+\.py)\)", row.tests)
    assert tests
    assert all((ROOT / path).exists() for path in tests)
    assert re.search(
        r"\]\((\.\./examples/tutorials/\w+\.py(#[\w-]+)?|training\.md#\S+)\)", row.tutorial
    )


def test_every_test_of_a_statement_is_in_the_table() -> None:
    listed = "".join(row.tests for row in TABLE)
    for path in (ROOT / "tests" / "paper").glob("test_*.py"):
        assert path.name in listed or "errata" in path.name, path


def test_functions_lead_back_to_their_statements() -> None:
    class App:
        rankone_statements = statements.back_links()

    lines = ["What it says."]
    statements.link_back(
        App, "function", "rankone.theory.lemma7", rankone.theory.lemma7, None, lines
    )
    assert lines[-2] == "*In the paper:* :ref:`Lemma 7 <statement-lemma-7>`."
    lines = ["What it says."]
    statements.link_back(App, "function", "", rankone.read_corpus, None, lines)
    assert lines == ["What it says."]


def test_back_links_are_those_of_pages_that_exist() -> None:
    """What a row names is described on the page of a room, or among the public names."""
    modules = {name for room in api_pages.ROOMS for name in api_pages.modules(room)}
    for name in statements.back_links():
        assert name in modules or name.rpartition(".")[0] in modules, name


def test_public_names_have_a_place_on_their_page() -> None:
    extras = set(api_pages.GROUPS["Other tools"].split())
    assert set(api_pages.public()) == set(rankone.__all__) | extras
    assert extras == {
        name
        for home, own in rankone._HOMES.items()
        for name in own.split()
        if home.startswith("interop")
    }
    assert sum(len(own.split()) for own in api_pages.GROUPS.values()) == len(api_pages.public())


def test_every_room_has_a_page() -> None:
    rooms = {path.parent.name for path in (ROOT / "src" / "rankone").glob("*/__init__.py")}
    assert set(api_pages.ROOMS) == rooms - {"cli"}


def test_the_picture_of_the_rooms_is_that_of_the_code() -> None:
    assert draw_rooms.PICTURE.read_text() == draw_rooms.drawn(), "run tools/draw_rooms.py"
    assert set(draw_rooms.WHAT) == set(draw_rooms.imports())


def test_arrows_that_follow_from_others_are_left_out() -> None:
    below = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert draw_rooms.needed(below) == {"a": {"b"}, "b": {"c"}, "c": set()}
    assert draw_rooms.levels({"cli": {"nn", "corpus"}, "nn": {"corpus"}, "corpus": set()}) == [
        ["cli"],
        ["nn"],
        ["corpus"],
    ]


def test_the_gallery_has_an_order_for_every_tutorial() -> None:
    assert {path.stem for path in TUTORIALS} == set(gallery.TUTORIALS)
    ordered = sorted((path.name for path in TUTORIALS), key=gallery.tutorial_order)
    assert ordered[0] == "first_model.py"


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_tutorials_have_titles_and_use_built_in_corpora(path: Path) -> None:
    text = path.read_text()
    title, line, *_ = (ast.get_docstring(ast.parse(text)) or "").splitlines()
    assert set(line) == {"="}
    assert len(line) >= len(title)
    assert set(re.findall(r'read_corpus\("(\w+)"', text)) <= {"builtin", "toy", "story"}


@pytest.mark.slow
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_tutorials_run(path: Path) -> None:
    command = [sys.executable, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=ROOT)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (["|x - y| <= d_p, 2 * r"], [r"\|x - y\| <= d\_p, 2 \* r"]),
        (["See `rankone.memorize` and ``a_b``."], ["See `rankone.memorize` and ``a_b``."]),
        (["`x = 1` is code"], ["``x = 1`` is code"]),
        (["an `arb`s"], ["an `arb`\\ s"]),
        (
            ["As here::", "", "    a_b", "", "text"],
            ["As here:", "", "::", "", "    a_b", "", "text"],
        ),
        (["so it is", "    e_i = 1"], ["so it is", "", "::", "", "    e_i = 1"]),
        (["one", "more", "", "two"], ["one more", "", "two"]),
        (["* one", "  more", "* two"], ["* one more", "* two"]),
        ([">>> f(a_b)", "1"], [">>> f(a_b)", "1"]),
    ],
)
def test_docstrings_are_text_not_markup(written: list[str], expected: list[str]) -> None:
    assert docstrings.restructured(written) == expected


def test_names_lead_to_the_pages_of_others() -> None:
    assert names.address("torch.Tensor") == f"{names.TORCH}/tensors.html#torch.Tensor"
    assert (
        names.address("torch.nn.Module")
        == f"{names.TORCH}/generated/torch.nn.Module.html#torch.nn.Module"
    )
    assert (
        names.address("numpy.ndarray")
        == f"{names.NUMPY}/generated/numpy.ndarray.html#numpy.ndarray"
    )
    assert names.address("numpy.float64") == f"{names.NUMPY}/arrays.scalars.html#numpy.float64"
    assert names.address("ValueError") == f"{names.PYTHON}/exceptions.html#ValueError"
    assert names.address("dict") == f"{names.PYTHON}/stdtypes.html#dict"
    assert names.address("len") == f"{names.PYTHON}/functions.html#len"
    assert names.address("pathlib.Path") == f"{names.PYTHON}/pathlib.html#pathlib.Path"
    assert names.address("flint.arb") is None


def test_names_are_those_of_their_module() -> None:
    written, thing = names.meant("Corpus", "rankone.construct.memorize", None)
    assert thing is rankone.Corpus
    assert names.full_name(thing, written) == "rankone.corpus.corpus.Corpus"
    # a function has the name of its module
    assert names.imported("rankone.theory.boltzmann") is rankone.theory.boltzmann
    assert names.imported("rankone.theory.boltzmann.softmax") is rankone.theory.softmax
    # also where only annotations need it
    assert names.meant("Architecture", "rankone.nn.kinds", None)[1].__name__ == "Architecture"
    with pytest.raises(ImportError):
        names.meant("nothing_of_this_name", "rankone.nn.kinds", None)


@pytest.mark.slow
def test_the_wheel_works_elsewhere(tmp_path: Path) -> None:
    """Built from what is tracked, installed into an environment of its own, run elsewhere."""
    source = tmp_path / "source"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in tracked.stdout.decode().split("\0")[:-1]:
        if (ROOT / name).exists():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    pip = [sys.executable, "-m", "pip", "--quiet"]
    built = tmp_path / "built"
    run([*pip, "wheel", "--no-deps", "--wheel-dir", str(built), str(source)], tmp_path)
    (wheel,) = built.glob("rankone-*.whl")
    home = tmp_path / "home"
    venv.create(home, with_pip=True)
    python = str(home / "bin" / "python")
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    run([python, "-m", "pip", "--quiet", "install", *constraints, str(wheel)], tmp_path)
    where = run([python, "-c", "import rankone; print(rankone.__file__)"], tmp_path)
    assert where.startswith(str(home))
    found = run([str(home / "bin" / "rankone"), "inspect", "builtin", "--json"], tmp_path)
    assert '"tokens": 16525' in found
    page = tmp_path / "page.html"  # needs the template
    run([str(home / "bin" / "rankone"), "inspect", "builtin", "--out", str(page)], tmp_path)
    assert page.stat().st_size > 10_000
    run([str(home / "bin" / "rankone"), "inspect", "story", "--task", "next", "--quiet"], tmp_path)


def run(command: list[str], where: Path) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        command, cwd=where, env=clean, capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
