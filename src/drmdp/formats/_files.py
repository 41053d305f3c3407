"""What the formats share about files: headers of arrays, damaged input."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, Literal, NamedTuple

import numpy as np

from drmdp.errors import InputError


class Header(NamedTuple):
    """The header of an .npy file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: Literal["C", "F"]
    offset: int  # where the numbers begin


def read_header(stream: IO[bytes]) -> Header:
    """Read the header of an array, and nothing more."""
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_2_0(stream)
    else:
        raise ValueError(f"version {version[0]}.{version[1]} of the .npy format is not for plain arrays")
    return Header(dtype, shape, "F" if fortran else "C", stream.tell())


@contextmanager
def decoding(what: str) -> Iterator[None]:
    """Turn whatever damaged bytes do to a decoder into an `InputError` that names `what`."""
    try:
        with warnings.catch_warnings():  # of headers from Python 2, and of syntax in broken ones
            warnings.simplefilter("ignore")
            yield
    except (InputError, OSError, MemoryError):
        raise
    except Exception as error:  # zipfile, zlib, tokenize, numpy and json raise nearly anything
        reason = (str(error).splitlines() or [""])[0][:160] or type(error).__name__
        raise InputError(f"{what}: cannot be read: {reason}") from None
