"""Writing: whole or not at all, and never over what is not ours."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from rankone.errors import OutputError


def write_file(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Whole or not at all; what is no regular file (a pipe, a terminal) is written to directly."""
    data = content.encode() if isinstance(content, str) else content
    try:
        target = Path(path).resolve()
        if target.exists() and not target.is_file():
            target.write_bytes(data)
            return Path(path)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as scratch:
            new = Path(scratch, "new")
            new.write_bytes(data)
            if target.exists():
                shutil.copymode(target, new)
            os.replace(new, target)
    except (OSError, RuntimeError, ValueError) as error:  # a name with a NUL is a ValueError
        raise OutputError(
            f"cannot write ({getattr(error, 'strerror', None) or error})",
            where=str(path),
            remedy="choose another path",
        ) from None
    return Path(path)


def write_directory(directory: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write everything beside the target, then move it in place, over what was there."""
    target = directory.resolve()
    if not target.parent.exists():
        with made(target.parent):
            return write_directory(directory, contents)
    try:
        # Beside the target, so on the same disk: moving the finished directory there is atomic.
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
    except OSError as error:
        raise OutputError(
            f"cannot write ({error.strerror or error})",
            where=str(target),
            remedy="choose a directory that can be written to and has room",
        ) from None
    return [directory / name for name in contents]


@contextlib.contextmanager
def kept(path: str | os.PathLike[str]) -> Iterator[None]:
    """What is at `path` is there again if the body raises: for a file that is written before
    another one, which may fail. What is no regular file (a pipe) cannot be taken back."""
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        yield
        return
    with contextlib.ExitStack() as scratch:
        try:
            place = tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-")
            old = Path(scratch.enter_context(place), "old")
            if target.exists():
                _link(target, old)
        except OSError as error:
            what = f"cannot write ({error.strerror})"
            raise OutputError(what, where=str(path), remedy="choose another path") from None
        try:
            yield
        except BaseException:
            if old.exists():
                os.replace(old, target)
            else:
                target.unlink(missing_ok=True)
            raise


def _link(source: Path, target: Path) -> None:
    """A second name for the file, which takes no room on the disk; or a copy."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def drop_link(path: Path) -> Path:
    """The same path, without the link or the pipe that may be there: for files with a fixed name in
    a directory that somebody else may have made, and linked to what must not be written over."""
    try:
        if path.is_symlink() or not (path.is_file() or path.is_dir() or not path.exists()):
            path.unlink()
    except OSError as error:
        what = f"cannot replace what is there ({error.strerror})"
        raise OutputError(what, where=str(path), remedy="choose another directory") from None
    return path


def make_directory(path: str | os.PathLike[str]) -> Path:
    """A directory to write several things to, which may be there already."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(Path(path), error) from None
    return Path(path)


def _unusable(path: Path, error: OSError) -> OutputError:
    return OutputError(
        f"cannot be made ({error.strerror})", where=str(path), remedy="choose another directory"
    )


@contextlib.contextmanager
def made(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A directory to write several things to, which may be there already.

    If the work inside fails, by an error, a full disk or Ctrl-C, the directories that were not
    there are removed with all they hold. One that was there is left as it is: what is new in it may
    be somebody else's.
    """
    home = Path(path).absolute()
    try:
        new = next((p for p in (*reversed(home.parents), home) if not p.exists()), None)
    except OSError as error:
        raise _unusable(home, error) from None
    try:
        yield make_directory(path)
    except BaseException:
        if new is not None:
            shutil.rmtree(new, ignore_errors=True)
        raise


def check_directory(path: str | os.PathLike[str]) -> None:
    """Refuse, before any work is done for it, a directory that cannot be made or written to."""
    target = Path(path)
    try:
        while not target.exists() and target != target.parent:
            target = target.parent
    except OSError as error:  # too long a name, a directory that may not be looked into
        raise _unusable(target, error) from None
    if not target.is_dir() or not os.access(target, os.W_OK):
        what = "cannot be written to" if target.is_dir() else "is a file"
        if target != Path(path):
            what = f"{target} {what}"
        raise OutputError(what, where=str(path), remedy="choose another directory")


def check_place(path: str | os.PathLike[str], *, remedy: str = "choose another path") -> None:
    """Refuse, before any work is done for it, a file for which there is no directory, or none that
    may be written to. What is no regular file (a pipe, a terminal) is written to as it is."""
    what = None
    try:
        target = Path(path).resolve()
        if target.is_dir() or not target.parent.is_dir():
            what = "is a directory" if target.is_dir() else "no such directory"
        elif not os.access(target.parent, os.W_OK) and (target.is_file() or not target.exists()):
            what = "its directory cannot be written to"
    except (OSError, RuntimeError, ValueError) as error:  # too long a name, a loop of links, a NUL
        what = f"cannot be used ({getattr(error, 'strerror', None) or error})"
    if what is not None:
        raise OutputError(what, where=str(path), remedy=remedy)


def check_new(
    directory: str | os.PathLike[str], files: Collection[str], ours: Callable[[Path], bool]
) -> Path:
    """A new directory, an empty one, or one with some of these `files` that is `ours`; nothing
    else is written over."""
    try:
        target = Path(directory).resolve()
        if target.is_dir():
            entries = list(target.iterdir())
            strangers = [e.name for e in entries if e.name not in files or not e.is_file()]
            if strangers:
                what = f"holds other files ({', '.join(sorted(strangers)[:3])})"
            elif entries and not ours(target):
                what = "holds the model of another program"
            else:
                return Path(directory)
        elif target.exists():
            what = "is a file"
        else:
            check_directory(target)
            return Path(directory)
    except (OSError, RuntimeError, ValueError) as error:  # too long a name, a loop of links, a NUL
        what = f"cannot be used ({getattr(error, 'strerror', None) or error})"
    raise OutputError(what, where=str(directory), remedy="choose a new or an empty directory")
