"""Start-up: what is loaded for what is asked, and how long that takes."""

from __future__ import annotations

import importlib
import pkgutil
import resource
import subprocess
import sys

import pytest

from answers import Run
from rankone import cli
from rankone.cli import COMMANDS, lazy

HEAVY = set(
    "numpy torch numba pyarrow safetensors flint matplotlib jaxtyping tensorboard transformers "
    "accelerate datasets onnx onnxruntime onnxscript sklearn".split()
)
FRONT = {"rankone", "rankone.errors", "rankone.cli", "rankone.cli.lazy"}
SHARED = ("options", "bundles")  # by all commands
LIGHT = {"rankone.choices", "rankone.plural", "rankone.cli.running"}  # what some commands share
PROMPT = ("--help", "memorize --help", "--version")
CALL = "sys.argv = ['rankone', *sys.argv[1:]]\ntry: {}\nexcept SystemExit: pass\n"
MAIN = "from rankone.cli import main\n" + CALL.format("main()")


def fresh(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", f"import sys\n{code}", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True)


def loaded(code: str, *words: str) -> set[str]:
    """The modules that a process has after this code, and had not before."""
    tell = "print('', *set(sys.modules) - before, sep='\\n', file=sys.stderr)"
    done = fresh(f"before = set(sys.modules)\n{code}\n{tell}", *words)
    return set(done.stderr.split())


def packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def test_import_loads_nothing_but_the_standard_library() -> None:
    modules = loaded("import rankone")
    assert packages(modules) - sys.stdlib_module_names == {"rankone"}
    assert {name for name in modules if name.startswith("rankone.")} == set()


@pytest.mark.parametrize(
    ("words", "files"),
    [
        ("--help", ()),
        ("-h", ()),
        ("", ()),
        ("--version", ()),
        *((f"{name} --help", (name, *SHARED)) for name in COMMANDS),
        ("reproduce figure1 --help", ("reproduce", *SHARED)),
    ],
)
def test_help_loads_what_it_shows_and_nothing_heavy(words: str, files: tuple[str, ...]) -> None:
    modules = loaded(MAIN, *words.split())
    own = {name for name in modules if packages({name}) == {"rankone"}}
    assert own - LIGHT == FRONT | {f"rankone.cli.{file}" for file in files}
    assert packages(modules) & (HEAVY | {"pydantic"}) == set()


def test_a_command_that_does_not_exist_loads_nothing_heavy() -> None:
    modules = loaded(MAIN, "nosuch")
    assert {name for name in modules if packages({name}) == {"rankone"}} >= FRONT
    assert packages(modules) & (HEAVY | {"pydantic"}) == set()


# The table of commands.


def test_the_table_has_every_command_there_is() -> None:
    files = [module.name for module in pkgutil.iter_modules(cli.__path__)]
    homes = {name: importlib.import_module(f"rankone.cli.{name}") for name in files}
    assert set(COMMANDS) == {name for name, home in homes.items() if hasattr(home, name)}


@pytest.mark.parametrize(("name", "line"), COMMANDS.items())
def test_the_table_says_what_the_command_says(name: str, line: str) -> None:
    command = lazy.load(name)
    assert command.name == name
    assert command.help.split("\n\n")[0] == line


def test_help_lists_the_table_in_order(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    page = run("--help").out
    rows = [row.strip("│ ").split(maxsplit=1) for row in page.partition("Commands")[2].splitlines()]
    assert [tuple(row) for row in rows if row[:1] and row[0] in COMMANDS] == list(COMMANDS.items())


def test_commands_and_options_that_do_not_exist_are_refused(run: Run) -> None:
    answer = run("memorise")
    assert (answer.code, answer.out) == (2, "")
    assert "No such command 'memorise'. Did you mean 'memorize'?" in answer.err
    answer = run("reproduce", "figure2")
    assert answer.code == 2
    assert "rankone reproduce" in answer.err
    assert "'figure1'" in answer.err
    answer = run("memorize", "toy", "--quit")
    assert (answer.code, answer.out) == (2, "")
    assert "rankone memorize" in answer.err
    assert "--quit" in answer.err


# Time, of the processor: on a quiet machine that is what the clock shows, and on a busy one it is
# still the process alone. The limits are those for a machine where a bare interpreter takes at
# most 0.02 s; elsewhere they grow with it.

ROUNDS, PATIENCE = 7, 21  # rounds of runs, the best of which counts; and how many if in doubt


def seconds(*arguments: str) -> float:
    def spent() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = spent()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    return spent() - before


def test_start_up_takes_no_longer_than_promised() -> None:
    runs = {words: ["-m", "rankone", *words.split()] for words in PROMPT}
    runs |= {"bare": ["-c", "pass"], "import": ["-c", "import rankone"]}
    best = dict.fromkeys(runs, float("inf"))
    for turn in range(PATIENCE):
        best = {name: min(best[name], seconds(*run)) for name, run in runs.items()}
        slowness = max(1.0, best["bare"] / 0.02)
        limits = {**dict.fromkeys(PROMPT, 0.3), "import": 0.1 + best["bare"] / slowness}
        late = [name for name, limit in limits.items() if best[name] > limit * slowness]
        if turn + 1 >= ROUNDS and not late:
            break
    assert not late, best
