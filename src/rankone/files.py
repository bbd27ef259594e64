"""Writing: whole or not at all, and never over what is not ours."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

from rankone.errors import OutputError


@contextlib.contextmanager
def refused(what: str, path: str | os.PathLike[str], remedy: str) -> Iterator[None]:
    """Report whatever the system refuses in one message: no room, no permission, too long a name, a
    loop of links, a NUL in a name."""
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise OutputError(f"{what} ({why})", where=str(path), remedy=remedy) from None


def write_file(path: str | os.PathLike[str], content: str | bytes | Iterable[str]) -> Path:
    """Write a file, whole or not at all; pipes and terminals are written to directly. The content
    may come in pieces."""

    def fill(place: Path) -> None:
        if isinstance(content, str | bytes):
            place.write_bytes(content.encode() if isinstance(content, str) else content)
            return
        with place.open("wb") as file:
            file.writelines(piece.encode() for piece in content)

    with refused("cannot write", path, "choose another path"):
        target = Path(path).resolve()
        if target.exists() and not target.is_file():
            fill(target)
            return Path(path)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as scratch:
            new = Path(scratch, "new")
            fill(new)
            if target.exists():
                shutil.copymode(target, new)
            os.replace(new, target)
    return Path(path)


def write_directory(directory: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write everything next to the target, then move it into place, replacing what was there."""
    remedy = "choose a directory that can be written to and has room"
    with refused("cannot write", directory, remedy):
        target = directory.resolve()
        if not target.parent.exists():
            with made(target.parent):
                return write_directory(directory, contents)
        # Next to the target, so on the same disk: moving the finished directory there is atomic.
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as scratch:
            new = Path(scratch, "new")
            new.mkdir()
            for name, content in contents.items():
                (new / name).write_bytes(content)
            old = Path(scratch, "old")
            if target.exists():
                os.rename(target, old)
            try:
                os.rename(new, target)
            except BaseException:
                if old.exists():
                    os.rename(old, target)
                raise
    return [directory / name for name in contents]


@contextlib.contextmanager
def kept(path: str | os.PathLike[str]) -> Iterator[None]:
    """Restore what was at `path` if the body raises: for a file that is written before another one,
    which may fail. What was written to a pipe cannot be taken back."""
    remedy = "choose another path"
    with refused("cannot write", path, remedy):
        target = Path(path).resolve()
        special = target.exists() and not target.is_file()
    if special:
        yield
        return
    with contextlib.ExitStack() as scratch:
        with refused("cannot write", path, remedy):
            place = tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-")
            old = Path(scratch.enter_context(place), "old")
            if target.exists():
                _link(target, old)
        try:
            yield
        except BaseException:
            if old.exists():
                os.replace(old, target)
            else:
                target.unlink(missing_ok=True)
            raise


def _link(source: Path, target: Path) -> None:
    """Make a hard link to the file, which takes no room on the disk, or else a copy."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def drop(path: Path) -> None:
    """Remove a file, if there is one."""
    with refused("cannot be removed", path, "choose another directory"):
        path.unlink(missing_ok=True)


def drop_link(path: Path) -> Path:
    """Remove a link or a pipe at this path, and return the path. For files with a fixed name in a
    directory that somebody else may have made, where a link may lead to files of value."""
    with refused("cannot replace what is there", path, "choose another directory"):
        if path.is_symlink() or not (path.is_file() or path.is_dir() or not path.exists()):
            path.unlink()
    return path


def make_directory(path: str | os.PathLike[str]) -> Path:
    """Make a directory, which may exist already."""
    with refused("cannot be made", path, "choose another directory"):
        Path(path).mkdir(parents=True, exist_ok=True)
    return Path(path)


@contextlib.contextmanager
def made(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A directory to write to, which may exist already.

    If the work inside fails (an error, a full disk, Ctrl-C), new directories are removed with all
    their contents. A directory that existed before is left unchanged: new files in it may be
    somebody else's.
    """
    new: list[Path] = []  # made here, so that nothing else is removed
    try:
        with refused("cannot be made", path, "choose another directory"):
            home = Path(path).absolute()
            for place in (*reversed(home.parents), home):
                if not place.exists():
                    with contextlib.suppress(FileExistsError):  # somebody else was quicker
                        place.mkdir()
                        new.append(place)
        yield make_directory(path)
    except BaseException:
        if new:
            shutil.rmtree(new[0], ignore_errors=True)
        raise


def check_directory(path: str | os.PathLike[str]) -> None:
    """Refuse a directory that cannot be made or written to, before any work is done."""
    with refused("cannot be made", path, "choose another directory"):
        home = Path(path).absolute()
        there = next(p for p in (home, *home.parents) if p.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        what = "cannot be written to" if there.is_dir() else "is a file"
        if there != home:
            what = f"{there} {what}"
        raise OutputError(what, where=str(path), remedy="choose another directory")


def check_place(path: str | os.PathLike[str], *, remedy: str = "choose another path") -> None:
    """Refuse a file whose directory does not exist or cannot be written to, before any work is
    done. Pipes and terminals are allowed."""
    what = None
    with refused("cannot be used", path, remedy):
        target = Path(path).resolve()
        if target.is_dir() or not target.parent.is_dir():
            what = "is a directory" if target.is_dir() else "no such directory"
        elif not os.access(target.parent, os.W_OK) and (target.is_file() or not target.exists()):
            what = "its directory cannot be written to"
    if what is not None:
        raise OutputError(what, where=str(path), remedy=remedy)


def check_new(
    directory: str | os.PathLike[str], files: Collection[str], ours: Callable[[Path], bool]
) -> Path:
    """Allow a new directory, an empty one, or one that is `ours` and holds only these `files`;
    nothing else is overwritten."""
    remedy = "choose a new or an empty directory"
    with refused("cannot be used", directory, remedy):
        target = Path(directory).resolve()
        entries = list(target.iterdir()) if target.is_dir() else []
        strangers = [e.name for e in entries if e.name not in files or not e.is_file()]
        if strangers:
            what = f"holds other files ({', '.join(sorted(strangers)[:3])})"
        elif entries and not ours(target):
            what = "holds the model of another program"
        elif target.exists() and not target.is_dir():
            what = "is a file"
        else:
            check_directory(target)
            return Path(directory)
    raise OutputError(what, where=str(directory), remedy=remedy)
