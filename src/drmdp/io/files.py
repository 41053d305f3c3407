"""Files: written completely or not at all, and checked before they are opened or replaced.

**One file** is written under a hidden name beside its target, made durable, and moved onto the
target: a reader finds the old file or the new one. A symbolic link stays, and what it points to is
replaced. An existing file keeps its permissions, its owner and its group where the system allows it
(not its access control list); a new one has the usual permissions.

**Several files** that belong together are all complete before anything that is there is touched.
Then the old main file is put aside, then its old companions; the new companions move in, and the
new main file last. So wherever there is a main file, the files beside it are its own, even if the
process is killed half-way. Where that happens between the two moves of the main file, a matter of
microseconds, there is none, and all files lie there under hidden names. An error or an interruption
brings the old files back.

A killed process leaves hidden files ".name.…" behind, which may be deleted.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from drmdp.errors import InputError, shown
from drmdp.ui.text import memory

AnyPath = str | os.PathLike[str]
Write = Callable[[IO[bytes]], Any]

# ---------------------------------------------------------------------- checks


def open_regular(path: AnyPath, folder: int | None = None) -> IO[bytes]:
    """Open a file for reading, in an open directory if one is given.

    A pipe may keep a reader waiting for ever and a device may never end: they are refused.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags, dir_fd=folder)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    raise InputError(f"is {_kind(mode)}, not a file; write what it gives to a file first")


def check_file(path: AnyPath) -> None:
    """Refuse a path to which no file can be written: a directory, a device, a protected file."""
    check_parent(path)
    _check_regular(path)
    target = landing(path)
    if target.exists() and not os.access(target, os.W_OK):
        raise InputError(f"{os.fspath(path)}: is write-protected")


def _check_regular(path: AnyPath) -> None:
    """Refuse to replace a directory, a pipe or a device, even for root."""
    target = landing(path)
    if target.exists() and not stat.S_ISREG(mode := target.stat().st_mode):
        raise InputError(f"{os.fspath(path)}: is {_kind(mode)}, not a file")


def check_parent(path: AnyPath) -> None:
    """Refuse a path in a directory that is absent or takes no files, by trying to make one."""
    target = landing(path)
    parent = target.parent if os.path.islink(path) else Path(path).parent
    try:
        with contextlib.suppress(FileNotFoundError):
            target.lstat()
        with tempfile.NamedTemporaryFile(dir=parent, prefix=beside(target).name):
            pass
    except OSError as error:
        fault = f"cannot be written: {parent}: {error.strerror}"
        raise InputError(f"{os.fspath(path)}: {fault}") from None


def check_path(given: object) -> None:
    """Refuse anything that is no path."""
    if not isinstance(given, str | os.PathLike):
        raise InputError(f"path: expected the name of a file, got {shown(given)}")


@contextlib.contextmanager
def naming(path: AnyPath) -> Iterator[None]:
    """Name the path in errors inside."""
    name = os.fspath(path)
    try:
        yield
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or error}") from None
    except MemoryError:
        raise InputError(f"{name}: does not fit in memory") from None


def check_suffix(path: AnyPath, suffixes: tuple[str, ...], what: str) -> None:
    """Refuse a path with another suffix; `what` is the reason, "a solution is an .npz file"."""
    check_path(path)
    if Path(path).suffix.lower() not in suffixes:
        name = f"{Path(path).stem or 'file'}{suffixes[0]}"
        raise InputError(f"{os.fspath(path)}: {what}; name it {name}")


def landing(path: AnyPath) -> Path:
    """The target of a write to `path`, behind its symbolic links."""
    if "\0" in os.fspath(path):
        raise InputError(f"{os.fspath(path)!r}: no file has such a name")
    target = Path(os.path.realpath(path))
    if os.path.islink(target):
        raise InputError(f"{os.fspath(path)}: is a symbolic link that leads to itself")
    return target


def memory_limit() -> int:
    """Bytes that a file may ask for: half of the machine's memory."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError, OSError):  # not everywhere
        return 2**33


def require(nbytes: float, what: str) -> None:
    """Refuse work that needs more memory than there is, before it begins."""
    if nbytes > memory_limit():
        limit = f"this machine has {memory(2 * memory_limit())}, and half of it may be asked for"
        raise InputError(f"{what} need {memory(nbytes)} of memory: {limit}")


def _kind(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


# ---------------------------------------------------------------------- writing


def write_whole(path: AnyPath, write: Write) -> None:
    """Write one file with write(stream), completely or not at all."""
    write_together({path: write})


def write_together(files: Mapping[Any, Write], stale: Iterable[AnyPath] = ()) -> None:
    """Write files that belong together, the main file last, and remove stale ones."""
    for path in files:
        _check_regular(path)
    writes = {landing(path): write for path, write in files.items()}
    if len(writes) < len(files):
        raise InputError(f"{', '.join(map(os.fspath, files))}: two of these are the same file")
    fresh = {target: beside(target) for target in writes}
    old = [Path(path) for path in stale if os.path.lexists(path)]
    try:
        for target, write in writes.items():
            _complete(target, fresh[target], write)
        if len(fresh) == 1 and not old:
            for target, name in fresh.items():
                os.replace(name, target)
        else:
            _exchange_all(fresh, old)
    finally:
        for name in fresh.values():
            name.unlink(missing_ok=True)


def beside(target: Path) -> Path:
    """A hidden name in the same directory."""
    start = os.fsencode(target.name)[:100].decode(errors="ignore")
    return target.parent / f".{start}.{secrets.token_hex(6)}"


def _complete(target: Path, name: Path, write: Write) -> None:
    """Write a file under a hidden name, with the permissions of its target."""
    with about(target):
        old = target.stat() if target.exists() else None
        mode = 0o666 if old is None else 0o600  # the system applies the user's mask
        with open(name, "xb", opener=lambda path, flags: os.open(path, flags, mode)) as stream:
            write(stream)
            flush(stream)
        if old is not None:
            keep_access(name, old)


@contextlib.contextmanager
def about(target: AnyPath) -> Iterator[None]:
    """Have errors of the system inside name the target, not the hidden file that becomes it."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), os.fspath(target)) from None


def flush(stream: IO[bytes]) -> None:
    """Wait until everything written is on the disk."""
    stream.flush()
    os.fsync(stream.fileno())


def keep_access(name: Path, old: os.stat_result) -> None:
    """Give a file the owner, group and permissions of another; nothing to another group."""
    mode = stat.S_IMODE(old.st_mode) & 0o777
    if hasattr(os, "chown"):
        with contextlib.suppress(PermissionError):
            os.chown(name, -1, old.st_gid)
        with contextlib.suppress(PermissionError):
            os.chown(name, old.st_uid, -1)
        if name.stat().st_gid != old.st_gid:
            mode &= 0o707
    os.chmod(name, mode)


def _exchange_all(fresh: Mapping[Path, Path], stale: list[Path]) -> None:
    """Put new files in the place of old ones, the last of them the main file; on an error the old
    ones are put back.
    """
    *others, main = fresh
    aside = {path: beside(path) for path in (main, *others, *stale) if os.path.lexists(path)}
    try:
        for path, name in aside.items():
            os.rename(path, name)
        for path, name in fresh.items():
            os.rename(name, path)
    except BaseException:
        if fresh[main].exists():
            _put_back(fresh, aside)
        raise
    finally:
        if not fresh[main].exists():
            for name in aside.values():
                name.unlink(missing_ok=True)


def _put_back(fresh: Mapping[Path, Path], aside: Mapping[Path, Path]) -> None:
    for path, name in fresh.items():
        if not name.exists() and path not in aside:
            path.unlink(missing_ok=True)
    for path, name in reversed(list(aside.items())):  # the main file last
        if os.path.lexists(name):
            os.replace(name, path)


# ---------------------------------------------------------------------- directories


def replace_directory(fresh: Path, target: Path) -> Path | None:
    """Put a directory in the place of another; return the new path of the old one, if there is one.

    Linux exchanges the two in one step. Elsewhere the target is absent for a moment, and a process
    killed then leaves both under hidden names.
    """
    if not target.exists():
        fresh.rename(target)
        return None
    if _exchange(fresh, target):
        return fresh
    old = beside(target)
    target.rename(old)
    try:
        fresh.rename(target)
    except BaseException:
        old.rename(target)
        raise
    return old


AT_FDCWD, RENAME_EXCHANGE = -100, 2  # of Linux


def _exchange(fresh: Path, target: Path) -> bool:
    """Exchange two directory entries in one step, if the system can."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # another system, or an old one
        return False
    names = AT_FDCWD, os.fsencode(fresh), AT_FDCWD, os.fsencode(target)
    if rename(*names, RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):  # a file system that cannot
        return False
    raise OSError(number, os.strerror(number), os.fspath(target))
