"""The lines of a proof file as bytes, piece by piece: nothing of it has to be in memory whole."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from drmdp._typing import Array

SOME = 4096
"""Numbers of a vector that are written at a time."""


def encoded(line: dict[str, Any]) -> bytes:
    """One line."""
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


END = encoded({"end": True})


def numbers(vector: Array) -> Iterator[bytes]:
    """The numbers of a vector, without what is around them."""
    for lo in range(0, len(vector), SOME):
        own = json.dumps(vector[lo : lo + SOME].tolist(), separators=(",", ":"))
        yield (b"," if lo else b"") + own[1:-1].encode()


def vectors(texts: Mapping[str, Iterable[bytes]], more: dict[str, Any] | None = None) -> Iterator[bytes]:
    """The line of a sweep, from the numbers of its vectors, and what else it says."""
    begin = b"{"
    for name, text in texts.items():
        yield begin + f'"{name}":['.encode()
        yield from text
        begin = b"],"
    yield (b"]," + encoded(more)[1:]) if more else b"]}\n"
