"""Arrays and JSON in files: headers and sizes are checked before anything is read, and nothing is
ever unpickled.

A reader says what an array may look like (`Field`) and gets its `Header` first. An array takes as
much memory as its header says, so a file of a few kilobytes can ask for gigabytes: `check_memory`
adds up the memory of everything in a file and refuses more than the machine has to spare.
"""

from __future__ import annotations

import json
import math
import os
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np

from drmdp.errors import InputError, brief, repeated, shown
from drmdp.io.files import AnyPath, flush, memory_limit, open_regular

NUMBER = 20
"""Bytes that a number takes, half of it for a while: as read, as a double, compressed, and in the
mean (measured: up to 38).
"""
NAME = 100
"""Bytes that a name takes beside its letters: an object, and its places in a tuple and an index."""
JSON = 32
"""Bytes in memory of a byte of JSON at worst: `[],` makes a list and its place."""
WORDS = {"b": "bool", "i": "integer", "u": "integer", "f": "float", "U": "string"}


class Field(NamedTuple):
    """Admissible dtypes and dimensions of an array."""

    kinds: str  # of dtype
    ndims: tuple[int, ...]


class Header(NamedTuple):
    """The header of an .npy file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: Literal["C", "F"]
    offset: int  # where the numbers begin

    @property
    def size(self) -> int:
        """Number of items."""
        return math.prod(self.shape)

    @property
    def memory(self) -> int:
        """Bytes of the items in memory."""
        if self.dtype.kind != "U":
            return self.size * NUMBER
        text = self.size * self.dtype.itemsize
        return text * JSON // 4 if not self.shape else text + self.size * NAME


@contextmanager
def decoding(what: str) -> Iterator[None]:
    """Turn any error of a decoder on damaged bytes into an `InputError` that names `what`."""
    try:
        with warnings.catch_warnings():  # of headers from Python 2, and of syntax in broken ones
            warnings.simplefilter("ignore")
            yield
    except (InputError, OSError, MemoryError):
        raise
    except Exception as error:  # zipfile, zlib, tokenize, numpy and json raise nearly anything
        reason = (str(error).splitlines() or [""])[0][:160] or type(error).__name__
        raise InputError(f"{what}: cannot be read: {reason}") from None


# ---------------------------------------------------------------------- arrays


def read_header(stream: IO[bytes]) -> Header:
    """Read the header of an array, and nothing more."""
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_2_0(stream)
    else:
        number = ".".join(map(str, version))
        raise ValueError(f"version {number} of the .npy format is not for plain arrays")
    return Header(dtype, shape, "F" if fortran else "C", stream.tell())


def check_header(name: str, header: Header, field: Field, nbytes: int) -> None:
    """Refuse an array whose header does not suit its field or the `nbytes` that follow the
    header.
    """
    dtype, shape = header.dtype, header.shape
    if dtype.kind not in field.kinds:
        words = " or ".join(dict.fromkeys(WORDS[kind] for kind in field.kinds))
        raise InputError(f"{name}: expected {words}, got dtype {dtype}")
    if len(shape) not in field.ndims or min(shape, default=0) < 0:
        ndims = " or ".join(map(str, field.ndims))
        raise InputError(f"{name}: expected {ndims} dimensions, got shape {shape}")
    if dtype.itemsize == 0:  # any number of them fits in no bytes
        raise InputError(f"{name}: strings of no letters, dtype {dtype} and shape {shape}")
    promised = header.size * dtype.itemsize
    if promised != nbytes:
        size = f"dtype {dtype} and shape {shape} make {promised} bytes"
        raise InputError(f"{name}: {size}, but the file holds {nbytes}")


def check_memory(headers: Iterable[Header], cure: str = "") -> None:
    """Refuse arrays that do not fit in memory together."""
    total = sum(header.memory for header in headers)
    if total > memory_limit():
        raise InputError(f"needs {total} bytes, which do not fit in memory{cure}")


def read_array(path: AnyPath, field: Field) -> Any:
    """Read one array from an .npy file, in the byte order of this machine."""
    what = describe(path)
    if what != ARRAY:
        raise InputError(f"expected an array in an .npy file, but it is {what}")
    with decoding("not an array"), open_regular(path) as stream:
        check_memory([checked_header("array", stream, field)])
        stream.seek(0)
        return native(np.lib.format.read_array(stream, allow_pickle=False))


def checked_header(name: str, stream: IO[bytes], field: Field) -> Header:
    """Read the header of an .npy file and check it against its field and the size of the file."""
    header = read_header(stream)
    check_header(name, header, field, os.fstat(stream.fileno()).st_size - header.offset)
    return header


def native(array: Any) -> Any:
    """Numbers in the byte order of this machine."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


# ---------------------------------------------------------------------- .npz archives


@contextmanager
def opened(path: AnyPath) -> Iterator[zipfile.ZipFile]:
    """Open an .npz archive."""
    with (
        open_regular(path) as stream,
        decoding("not a readable .npz file"),
        zipfile.ZipFile(stream) as archive,
    ):
        yield archive


def members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The arrays of an archive by name; other files, and names given twice, are refused."""
    infos: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        if name == info.filename:
            raise InputError(f"{brief(name)}: not an .npy array")
        if name in infos:
            raise InputError(f"{brief(name)}: given twice")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            method = f"compression {info.compress_type}"
            raise InputError(f"{brief(name)}: {method} is not known to NumPy")
        infos[name] = info
    return infos


def headers(
    archive: zipfile.ZipFile, infos: Mapping[str, zipfile.ZipInfo], known: Mapping[str, Field]
) -> dict[str, Header]:
    """Headers of all arrays, checked against their known fields."""
    by_name = {}
    for name, info in infos.items():
        with decoding(name), archive.open(info) as stream:
            by_name[name] = header = read_header(stream)
            check_header(name, header, known[name], info.file_size - header.offset)
    return by_name


def load(archive: zipfile.ZipFile, name: str, info: zipfile.ZipInfo) -> Any:
    """Read an array whose header was checked, in the byte order of this machine; its checksum is
    compared.
    """
    with decoding(name), archive.open(info) as stream:
        return native(np.lib.format.read_array(stream, allow_pickle=False))


# ---------------------------------------------------------------------- JSON


def parse_json(content: bytes | str) -> Any:
    """Read a JSON document; names given twice, numbers of thousands of digits and depths of
    thousands of levels are refused.
    """
    if len(content) > memory_limit() // JSON:
        raise InputError("so much JSON does not fit in memory")
    try:
        return json.loads(content, object_pairs_hook=_once)
    except RecursionError:
        raise InputError("nested too deeply") from None
    except InputError:
        raise
    except ValueError as error:  # syntax, encoding, whole numbers with thousands of digits
        raise InputError(str(error).partition(";")[0]) from None


def read_json(path: AnyPath) -> Any:
    """Read a JSON document from a file."""
    with open_regular(path) as stream:
        return load_json(stream)


def load_json(stream: IO[bytes]) -> Any:
    """Read a JSON document from an open file."""
    if os.fstat(stream.fileno()).st_size > memory_limit() // JSON:
        raise InputError("so much JSON does not fit in memory")
    return parse_json(stream.read())


def read_document(path: Path, format: str) -> dict[str, Any]:
    """Read a JSON object that says its format; errors name the file."""
    try:
        document = read_json(path)
    except OSError as error:
        raise InputError(f"{path.name}: {error.strerror}") from None
    if not isinstance(document, dict) or document.get("format") != format:
        raise InputError(f"{path.name}: expected format {format!r}, got {shown(document)}")
    return document


def write_document(path: Path, document: dict[str, Any], indent: int | None = 1) -> None:
    """Write a new file of JSON, and wait until it is on the disk."""
    with path.open("xb") as stream:
        stream.write(json.dumps(document, indent=indent).encode())
        flush(stream)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise InputError(f"{shown(repeated(name for name, _ in pairs))} is given twice")
    return mapping


# ---------------------------------------------------------------------- other files

ARRAY, PARQUET, PLAN = "one array (.npy)", "a Parquet table", "a saved plan"
MAGIC = {
    b"\x93NUMPY": ARRAY,
    b"PAR1": PARQUET,
    b"\x89HDF": "an HDF5 file",
    b"\x1f\x8b": "a gzip archive",
    b"%PDF": "a PDF document",
    b"\x80": "a pickle, which is never opened",
}


def describe(path: AnyPath) -> str:
    """The kind of a file, for the message that another one was expected."""
    with open_regular(path) as stream:
        start = stream.read(4096)
    if not start:
        return "an empty file"
    if start.startswith(b"PK"):
        return _describe_zip(path)
    for magic, words in MAGIC.items():
        if start.startswith(magic):
            return words
    try:
        text = start.decode().lstrip()
    except UnicodeDecodeError as error:
        if error.start < len(start) - 3:  # not a letter cut in two
            return "a file of another kind"
        text = start[: error.start].decode().lstrip()
    if "\0" in text:
        return "a file of another kind"
    if text.lower().startswith(("<!doctype html", "<html")):
        return "a page of HTML"
    return "JSON" if text.startswith(("{", "[")) else "a text"


def check_parquet(path: AnyPath) -> None:
    """Refuse a file that is no Parquet table or lost its end, by its magic letters and the size of
    its footer.
    """
    what = describe(path)
    if what != PARQUET:
        raise InputError(f"not a Parquet table: it is {what}")
    with open_regular(path) as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(size - 8, 0))
        end = stream.read(8)
    footer = int.from_bytes(end[:4], "little")
    if size < 12 or end[4:] != b"PAR1" or footer > size - 12:
        raise InputError("a Parquet table that was cut off: its end is missing")


def _describe_zip(path: AnyPath) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except Exception:  # zipfile raises nearly anything
        return "a damaged zip archive"
    if names & {"kernels.npy", "indptr.npy"}:
        return "a model"
    if {"plan.npy", "policy.npy"} <= names:
        return PLAN
    if {"meta.npy", "policy.npy"} <= names:
        return "a saved solution"
    return "a zip archive of other things"
