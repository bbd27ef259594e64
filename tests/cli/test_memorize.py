"""rankone memorize as users meet it when something is in the way: nothing is left behind."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from answers import Run


def contents(home: Path) -> dict[str, bytes]:
    return {str(p.relative_to(home)): p.read_bytes() for p in home.rglob("*") if p.is_file()}


def command(
    *arguments: object, before: Callable[[], None] | None = None
) -> subprocess.CompletedProcess[str]:
    """In a process of its own, which may be crippled `before` it starts."""
    return subprocess.run(
        [sys.executable, "-m", "rankone", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=before,
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--max-length", "9", "--no-positions"), "max_length is the length of the table"),
        (("--max-length", "99999999999"), "16777216"),
        (("--head-size", "65537"), "65536"),
        (("--head-size", "0.5"), "--head-size"),
        (("--seed", "9" * 400), "seed cannot be 999"),
        (("--seed", "9" * 5000), "--seed"),
        (("--seed", "-1"), "greater than or equal to 0"),
        (("--seed", "nan"), "--seed"),
        (("--readout", "Merged"), "Merged"),
        (("--verify", ""), "--verify"),
        (("--vectors", "{tmp}"), "Is a directory"),
        (("--vectors", ""), "cannot be read"),
        (("--vectors", "/dev/zero"), "a line of more than"),
        (("--format", "hf"), "hf"),
        (("--format", "text"), "plain text has no labels"),
    ],
)
def test_absurd_options_are_refused(
    run: Run, corpus: Path, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    given = (option.format(tmp=tmp_path) for option in options)
    answer = run("memorize", corpus, *given, "--out", tmp_path / "m")
    assert answer.code == 2
    assert message in answer.err
    assert "Traceback" not in answer.err
    assert {p.name for p in tmp_path.iterdir()} == {"corpus.conll"}


def test_one_of_everything_is_singular(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "one"
    path.write_text("a X\n")
    out = run("memorize", path).out
    assert "1 token, largest error" in out
    assert "1 tokens" not in out


def small_files() -> None:
    """A disk on which no file may have more than this many bytes: writing fails halfway."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (700, 700))


@pytest.mark.parametrize("old", [False, True], ids=["no model before", "a model before"])
def test_a_full_disk_keeps_the_old_model_and_leaves_nothing(
    run: Run, corpus: Path, tmp_path: Path, old: bool
) -> None:
    home = tmp_path / "deep" / "model"
    if old:
        run("memorize", corpus, "--out", home, "--seed", 3, "--quiet")
    before = contents(tmp_path)
    answer = command("memorize", corpus, "--out", home, before=small_files)
    assert answer.returncode == 2
    assert "cannot write (File too large)" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert contents(tmp_path) == before
    assert old or not (tmp_path / "deep").exists()


ORDINARY = """
import contextlib, io, os, sys
from rankone.cli import main

_, spare, file, *targets = sys.argv

def memorize(file, out, *options):
    sys.argv = ["rankone", "memorize", file, "--out", out, *options]
    with contextlib.suppress(SystemExit):
        main()

# Everything is imported first: the interpreter may be one that only root can read.
memorize(file, spare, "--quiet")
with contextlib.redirect_stderr(io.StringIO()):
    memorize(spare, spare, "--quiet")
if os.getuid() == 0:  # who may write anywhere
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
for out in targets:
    memorize(file, out)
"""


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A directory that every user may enter, which those of pytest are not."""
    with tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o755)
        yield Path(home)


def test_directories_that_may_not_be_written_to(run: Run, reachable: Path) -> None:
    """As an ordinary user."""
    shut, home, file = (
        reachable / "shut",
        reachable / "shut" / "model",
        reachable / "shut" / "corpus",
    )
    shut.mkdir()
    file.write_text("a X\nb Y\n")
    run("memorize", file, "--out", home, "--quiet")
    before = contents(shut)
    for path in (home, shut):
        path.chmod(0o555)
    targets = home, shut / "new", shut / "new" / "deeper"
    try:
        arguments = [sys.executable, "-c", ORDINARY, reachable / "m", file, *targets]
        answer = subprocess.run(
            list(map(str, arguments)), capture_output=True, text=True, timeout=120, check=False
        )
    finally:
        for path in (shut, home):
            path.chmod(0o755)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == ""
    assert f"rankone: {home}: cannot be written to\n" in answer.stderr
    for out in targets[1:]:
        assert f"rankone: {out}: {shut} cannot be written to\n" in answer.stderr
    assert len(answer.stderr.splitlines()) == 6
    assert contents(shut) == before
    assert not (shut / "new").exists()


@pytest.mark.parametrize("write", [0, 2, 4])
def test_ctrl_c_while_the_model_is_written(
    run: Run, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: int
) -> None:
    home = tmp_path / "model"
    run("memorize", corpus, "--out", home, "--seed", 3, "--quiet")
    before, right, left = contents(tmp_path), Path.write_bytes, [write]

    def interrupted(self: Path, data: bytes) -> int:
        left[0] -= 1
        if left[0] < 0:
            right(self, data[:10])
            signal.raise_signal(signal.SIGINT)
        return right(self, data)

    monkeypatch.setattr(Path, "write_bytes", interrupted)
    for out in (home, tmp_path / "new" / "deeper"):
        left[0] = write
        answer = run("memorize", corpus, "--out", out)
        assert answer.code == 130
        assert "Traceback" not in answer.err
        assert contents(tmp_path) == before
        assert not (tmp_path / "new").exists()
