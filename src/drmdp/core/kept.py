"""What is kept of compiled kernels, so that each is compiled once on a machine.

**One file for one key.** The key is the text of a kernel and of all that it reaches (`drmdp.core.content`), the types of its arguments, its options, the
versions of Python, NumPy, Numba and LLVM, the processor with its features, and the settings of Numba that change machine code. It holds no path: all copies of
the source share what is kept, and an old entry can never answer for a new kernel. There is no index.

**A file is whole or ignored.** It is written under another name and renamed, and begins with the SHA-256 of the rest. Processes may write the same file
at once: each writes the same kernel. One that is cut off or changed does not fit its sum; the kernel is compiled and written again.

**The place** is NUMBA_CACHE_DIR, or else the cache folder of the user, or else beside the sources; what is there is read even where it cannot be written to.
Where nothing can be written, every process compiles for itself, and a `Notice` says so once. Files that were not used for the longest time go when all
together are larger than `LIMIT`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import platform
import re
import tempfile
import time
import warnings
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import llvmlite  # type: ignore[import-untyped]
import numba
import numpy as np
from numba.core import config, serialize, sigutils
from numba.core.compiler import CompileResult
from numba.misc.appdirs import AppDirs

from drmdp.core.content import Content, UnknownError, options_text
from drmdp.errors import Notice

LIMIT = 1 << 30
"""Bytes that are kept; all sets in one precision take some 50 MB."""
DAY = 86_400.0
SUFFIX = ".kernel"
SETTINGS = ("BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "OPT", "SLP_VECTORIZE", "USING_SVML")
"""Of Numba, that change what is compiled."""


class Kept:
    """What is kept of one function; takes the place of Numba's own cache."""

    written: ClassVar[int] = 0
    """Kernels that this process compiled and kept."""

    def __init__(self, function: Any, options: Any, how: str) -> None:
        self._function = function
        self._options = f"{options_text(options)} {how}"
        self._names: dict[Any, str | None] = {}  # of files, by signature

    @property
    def cache_path(self) -> str | None:
        """Where new files go."""
        folder = place()
        return None if folder is None else str(folder)

    def name(self, signature: Any, context: Any) -> str | None:
        """The file for a signature; none if the kernel cannot be kept."""
        arguments, result = sigutils.normalize_signature(signature)  # type: ignore[no-untyped-call]
        try:
            text = Content(self._function, (*arguments, *([] if result is None else [result])))
        except UnknownError:
            return None
        parts = str(text), self._options, versions(), str(context.codegen().magic_tuple()), str(settings())
        digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
        return f"{plain_name(self._function)}-{digest}{SUFFIX}"

    def load_overload(self, signature: Any, context: Any) -> Any:
        """What is kept for a signature, or None."""
        name = self._names[signature] = self.name(signature, context)
        if name is None:
            return None
        context.refresh()
        return next(filter(None, (load(folder / name, context) for folder in folders())), None)

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep what was just compiled, under the name that it had before."""
        name = self._names[signature]
        if name is None or compiled.lifted or compiled.library.has_dynamic_globals:
            return
        folder = place()
        try:
            if folder is None:
                raise OSError("no folder can be written to")
            _write(folder / name, serialize.dumps(compiled._reduce()))  # type: ignore[no-untyped-call]
            Kept.written += 1
            _prune(folder)
        except OSError as error:
            _say_once(
                f"compiled kernels are not kept, so that every process compiles them: {error}; NUMBA_CACHE_DIR may name a folder"
            )

    def enable(self) -> None:
        """Numba's interface; it is always enabled."""

    def disable(self) -> None:
        """Numba's interface; it is always enabled."""

    def flush(self) -> None:
        """Numba's interface: forget nothing, since nothing can be stale."""


def load(path: Path, context: Any) -> Any:
    """A compiled kernel from its file; None if there is none, or none that is whole."""
    try:
        content = path.read_bytes()
        if hashlib.sha256(content[32:]).digest() != content[:32]:
            return None
        if time.time() - path.stat().st_mtime > DAY:
            with contextlib.suppress(OSError):  # it belongs to somebody else
                os.utime(path)  # it was used
        parts = pickle.loads(content[32:])
    except (OSError, ImportError, AttributeError):  # a class is not where it was when the file was written
        return None
    return CompileResult._rebuild(context, *parts)  # type: ignore[no-untyped-call]


def plain_name(function: Any) -> str:
    """For people who look into the folder."""
    module = function.__module__.rpartition(".")[2]
    return re.sub(r"[^\w.]", "", f"{module}.{function.__qualname__}")[:80]


def folders() -> tuple[Path, ...]:
    """Places that may hold kernels, best first."""
    own: Any = config
    if own.CACHE_DIR:
        return (Path(own.CACHE_DIR) / "drmdp",)
    return Path(AppDirs("drmdp", appauthor=False).user_cache_dir), Path(__file__).parent.parent / "__pycache__"  # type: ignore[no-untyped-call]


def place() -> Path | None:
    """Where new files go."""
    return _writable(folders())


@cache
def _writable(places: tuple[Path, ...]) -> Path | None:
    """The first place that can be written to."""
    for folder in places:
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
            return folder
    return None


def _write(path: Path, content: bytes) -> None:
    number, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
    try:
        with open(number, "wb") as file:
            file.write(hashlib.sha256(content).digest())
            file.write(content)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


@cache
def _prune(folder: Path) -> None:
    """Once in a process: remove what was not used for the longest time, and what writers that died have left."""
    files = []
    for path in folder.iterdir():
        with contextlib.suppress(OSError):  # another process was first
            status = path.stat()
            if path.suffix == SUFFIX:
                files.append((status.st_mtime, status.st_size, path))
            elif path.suffix == ".part" and time.time() - status.st_mtime > DAY:
                path.unlink()
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= LIMIT:
            break
        with contextlib.suppress(OSError):
            path.unlink()
        total -= size


@cache
def _say_once(text: str) -> None:
    warnings.warn(text, Notice, stacklevel=2)


@cache
def versions() -> str:
    """Of everything that compiles."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{python} {numba.__version__} {llvmlite.__version__} {np.__version__}"


def settings() -> list[Any]:
    """Of Numba, as they are here."""
    return [getattr(config, name, None) for name in SETTINGS]
