"""What is written is there whole, or what was there before still is; nothing is left behind."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from rankone import files
from rankone.errors import OutputError


class Full:
    """A disk that takes so many more bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
        self.room, self.write = room, Path.write_bytes
        monkeypatch.setattr(Path, "write_bytes", lambda path, data: self(path, data))

    def __call__(self, path: Path, data: bytes) -> int:
        self.write(path, data[: self.room])
        if len(data) > self.room:
            raise OSError(28, "No space left on device")
        self.room -= len(data)
        return len(data)


def names(directory: Path) -> list[str]:
    return sorted(os.listdir(directory))


def test_a_write_that_fails_halfway_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.json"
    files.write_file(path, "the old one")
    Full(monkeypatch, room=5)
    with pytest.raises(OutputError) as refused:
        files.write_file(path, "the new one")
    assert refused.value.what == "cannot write (No space left on device)"
    assert path.read_text() == "the old one"
    assert names(tmp_path) == ["report.json"]


def test_a_file_that_is_written_again_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("old")
    path.chmod(0o640)
    assert files.write_file(path, b"new") == path
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o640)


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("old")
    (tmp_path / "link").symlink_to("there")
    files.write_file(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there").read_text() == "new"


def test_a_pipe_is_written_to_as_it_is(tmp_path: Path) -> None:
    """Not a device of the machine, which a fault here would replace."""
    os.mkfifo(path := tmp_path / "pipe")
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    assert files.write_file(path, "through") == path
    assert os.read(reader, 99) == b"through"
    os.close(reader)
    assert path.is_fifo()


def test_a_directory_that_fails_halfway_keeps_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "model"
    files.write_directory(home, {"a": b"old a", "b": b"old b"})
    Full(monkeypatch, room=7)
    with pytest.raises(OutputError, match=f"{home}: cannot write .No space left"):
        files.write_directory(home, {"a": b"new a", "b": b"new b"})
    assert {name: (home / name).read_bytes() for name in names(home)} == {
        "a": b"old a",
        "b": b"old b",
    }
    assert names(tmp_path) == ["model"]


def test_a_new_directory_that_fails_halfway_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Full(monkeypatch, room=7)
    with pytest.raises(OutputError, match="No space left"):
        files.write_directory(tmp_path / "deep" / "model", {"a": b"new a", "b": b"new b"})
    assert names(tmp_path) == []


def test_a_directory_is_replaced_whole(tmp_path: Path) -> None:
    home = tmp_path / "deep" / "model"
    files.write_directory(home, {"a": b"1", "b": b"2"})
    assert files.write_directory(home, {"b": b"3"}) == [home / "b"]
    assert names(home) == ["b"]
    assert names(home.parent) == ["model"]


def test_a_directory_that_cannot_be_moved_in_place_keeps_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "model"
    files.write_directory(home, {"a": b"old"})
    rename = os.rename

    def refuse(old: Path, new: Path) -> None:
        if Path(new) == home and Path(old).name == "new":
            raise OSError(5, "Input/output error")
        rename(old, new)

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(OutputError, match="Input/output error"):
        files.write_directory(home, {"a": b"new"})
    assert (home / "a").read_bytes() == b"old"


def work(place: Path, problem: BaseException) -> None:
    with files.made(place) as home:
        (home / "new").write_text("new")
        (home / "sub").mkdir()
        (home / "sub" / "a").write_text("a")
        (home / "link").symlink_to(place.parent)
        raise problem


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), OutputError("full"), MemoryError()])
@pytest.mark.parametrize("deep", ["out", "one/two/out"])
def test_work_that_fails_leaves_no_directory(
    tmp_path: Path, problem: BaseException, deep: str
) -> None:
    with pytest.raises(type(problem)):
        work(tmp_path / deep, problem)
    assert names(tmp_path) == []


def test_work_that_fails_takes_nothing_from_a_directory_that_was_there(tmp_path: Path) -> None:
    """What appeared meanwhile may be somebody else's."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").write_text("old")
    with pytest.raises(KeyboardInterrupt):
        work(tmp_path / "out", KeyboardInterrupt())
    assert names(tmp_path / "out") == ["link", "new", "old", "sub"]


def test_work_that_fails_removes_only_what_it_made_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it believes to be missing: somebody else may have been quicker."""
    monkeypatch.setattr(Path, "exists", lambda _: False)
    (tmp_path / "theirs").mkdir()
    with pytest.raises(KeyboardInterrupt):
        work(tmp_path / "theirs" / "out", KeyboardInterrupt())
    assert names(tmp_path) == ["theirs"]
    assert names(tmp_path / "theirs") == []


def test_what_went_wrong_is_said_even_if_nothing_can_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object, **__: object) -> None:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(os, "rmdir", busy)
    with pytest.raises(KeyboardInterrupt):
        work(tmp_path / "out", KeyboardInterrupt())


def test_work_that_succeeds_stays(tmp_path: Path) -> None:
    with files.made(tmp_path / "a" / "b") as home:
        (home / "new").write_text("new")
    assert home == tmp_path / "a" / "b"
    assert names(home) == ["new"]


def test_a_directory_is_made_with_those_above_it(tmp_path: Path) -> None:
    for _ in range(2):  # it may be there already
        assert files.make_directory(tmp_path / "a" / "b") == tmp_path / "a" / "b"
        assert (tmp_path / "a" / "b").is_dir()


def test_a_file_is_no_place_for_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for place, what in (("file", "is a file"), ("file/below", f"{tmp_path / 'file'} is a file")):
        with pytest.raises(OutputError, match="cannot be made"), files.made(tmp_path / place):
            pass
        with pytest.raises(OutputError) as refused:
            files.check_directory(tmp_path / place)
        assert refused.value.what == what
    assert (tmp_path / "file").read_text() == "mine"


def test_places_are_checked_before_the_work(tmp_path: Path) -> None:
    files.check_directory(tmp_path / "new" / "er")
    files.check_place(tmp_path / "new")
    assert names(tmp_path) == []
    with pytest.raises(OutputError, match="no such directory"):
        files.check_place(tmp_path / "none" / "file")
    with pytest.raises(OutputError, match="is a directory"):
        files.check_place(tmp_path)
    with pytest.raises(OutputError, match="cannot be used") as caught:
        files.check_place(tmp_path / ("a" * 300), remedy="another")
    assert caught.value.remedy == "another"
    for refuse in (files.check_place, lambda name: files.write_file(name, "x")):
        with pytest.raises(OutputError, match="null byte"):
            refuse("a\0b")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError, match="is a file"):
        files.check_new(tmp_path / "file" / "below", [], lambda _: True)


def test_a_directory_that_may_not_be_written_to_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: (path, mode) != (tmp_path, os.W_OK))
    with pytest.raises(OutputError, match=f"new: {tmp_path} cannot be written to"):
        files.check_directory(tmp_path / "new")


def entered(manager: Callable[[Path], AbstractContextManager[object]]) -> Callable[[Path], object]:
    def enter(place: Path) -> None:
        with manager(place):
            raise AssertionError

    return enter


WAYS: dict[str, Callable[[Path], object]] = {
    "write_file": lambda place: files.write_file(place, "text"),
    "write_directory": lambda place: files.write_directory(place, {"a": b"a"}),
    "kept": entered(files.kept),
    "made": entered(files.made),
    "make_directory": files.make_directory,
    "check_new": lambda place: files.check_new(place, [], lambda _: True),
    "check_directory": files.check_directory,
    "check_place": files.check_place,
    "drop": files.drop,
    "drop_link": files.drop_link,
}


@pytest.mark.parametrize("way", WAYS)
def test_what_the_system_refuses_is_said_in_one_message(tmp_path: Path, way: str) -> None:
    with pytest.raises(OutputError, match=r"cannot .* \(File name too long\)") as refused:
        WAYS[way](tmp_path / ("n" * 300))
    assert refused.value.remedy
    assert names(tmp_path) == []


@pytest.mark.parametrize("way", ["write_file", "write_directory", "kept", "check_new"])
def test_loops_of_links_and_names_that_no_file_has_are_refused(tmp_path: Path, way: str) -> None:
    (loop := tmp_path / "loop").symlink_to("loop")
    for place, why in ((loop, "Symlink loop"), (tmp_path / "a\0b", "null byte")):
        with pytest.raises(OutputError, match=rf"cannot .* \(.*{why}"):
            WAYS[way](place)


@pytest.mark.parametrize(
    "way", ["write_file", "write_directory", "kept", "made", "check_directory"]
)
def test_where_the_working_directory_is_gone_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    (gone := tmp_path / "gone").mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(OutputError, match=r"^new: cannot .* \(No such file or directory\)"):
        WAYS[way](Path("new"))


def test_only_a_directory_of_ours_is_written_over(tmp_path: Path) -> None:
    home = tmp_path / "model"

    def check(ours: bool = True) -> Path:
        return files.check_new(home, ["a", "b"], lambda _: ours)

    assert check() == home
    home.mkdir()
    assert check(ours=False) == home
    (home / "a").write_text("a")
    assert check() == home
    with pytest.raises(OutputError, match="another program"):
        check(ours=False)
    for stranger in "zyxw":
        (home / stranger).write_text("")
    with pytest.raises(OutputError, match=r"holds other files \(w, x, y\)"):
        check()
    for stranger in "zyxw":
        (home / stranger).unlink()
    (home / "b").mkdir()
    with pytest.raises(OutputError, match=r"holds other files \(b\)"):
        check()
    with pytest.raises(OutputError, match="is a file"):
        files.check_new(home / "a", ["a"], lambda _: True)


def test_a_file_is_kept_until_all_is_written(tmp_path: Path) -> None:
    path = tmp_path / "f"
    for before in (None, b"old"):
        if before is not None:
            path.write_bytes(before)
            path.chmod(0o640)
        for stop in (OutputError("full"), KeyboardInterrupt()):
            with pytest.raises(type(stop)), files.kept(path):  # noqa: PT012
                files.write_file(path, b"new")
                assert path.read_bytes() == b"new"
                raise stop
            assert (path.read_bytes() if path.exists() else None) == before
            with pytest.raises(type(stop)), files.kept(path):  # before anything was written
                raise stop
            assert (path.read_bytes() if path.exists() else None) == before
    assert path.stat().st_mode & 0o777 == 0o640
    with files.kept(path):
        files.write_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]


def test_a_file_is_kept_where_a_disk_has_no_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    (path := tmp_path / "f").write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), files.kept(path):  # noqa: PT012
        files.write_file(path, b"new")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"


def test_what_is_no_file_cannot_be_kept(tmp_path: Path) -> None:
    os.mkfifo(path := tmp_path / "pipe")
    with pytest.raises(KeyboardInterrupt), files.kept(path):
        raise KeyboardInterrupt
    assert [entry.name for entry in tmp_path.iterdir()] == ["pipe"]
    with pytest.raises(OutputError, match="cannot write"), files.kept(tmp_path / "none" / "f"):
        raise AssertionError


def test_links_are_dropped_and_what_they_lead_to_stays(tmp_path: Path) -> None:
    (mine := tmp_path / "mine").write_text("mine")
    (link := tmp_path / "link").symlink_to(mine)
    files.write_file(files.drop_link(link), "new")
    assert (mine.read_text(), link.read_text()) == ("mine", "new")
    assert files.drop_link(mine) == mine
    assert mine.exists()


def test_a_pipe_that_somebody_left_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "certificate.json")
    files.write_file(files.drop_link(pipe), "new")
    assert pipe.read_text() == "new"


def test_a_file_is_removed_if_there_is_one(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("f")
    for _ in range(2):
        files.drop(tmp_path / "f")
    assert names(tmp_path) == []
    with pytest.raises(OutputError, match=r"cannot be removed \(Is a directory\)"):
        files.drop(tmp_path)
