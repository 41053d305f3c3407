"""Names of very many things, without an object for each.

A name is anything hashable but True, False, None and NaN. In files it is JSON (`plain`): strings, numbers and tuples of them, nested as they are, come back as
they were; anything else, such as a frozen dataclass or an enumeration, is its `repr` and comes back as that string. Fingerprints hash the same JSON, so that a
model and its copy from a file share one.

0, 1, 2, … are a `range`. Names in a file are one long text: each ends with a line feed, which JSON never holds as it is; an array says where each
ends. They are read where they are asked for.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np

from drmdp.errors import InputError, repeated, shown

NUMBER = re.compile(r"(?<![0-9.])-?[0-9]+(?:[.][0-9]+)?")
LETTER = re.compile(r"[^\W0-9]")
DIGITS = re.compile("([0-9]+)")
CHUNK = 2**16
"""Names that are decoded at a time."""


class LazyNames(Sequence[Hashable]):
    """Names that are made when they are asked for, and were found to be distinct."""

    @property
    def numbers(self) -> Mapping[Hashable, int] | None:
        """The place of each name, if it can be computed."""
        return None


class StoredNames(LazyNames):
    """Names in a text; equal to any sequence of the same names."""

    def __init__(self, text: Any, ends: Any) -> None:
        self._text = text  # bytes of all names
        self._ends = ends  # (S + 1,) where each begins, and where the last one ends

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, index: int) -> Hashable: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Hashable]: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            lo, hi, step = index.indices(len(self))
            if step != 1:
                return tuple(self[k] for k in range(lo, hi, step))
            return StoredNames(self._text, self._ends[lo : max(lo, hi) + 1])
        k = range(len(self))[index]
        return self._decoded(k, k + 1)[0]

    def __iter__(self) -> Iterator[Hashable]:
        for lo in range(0, len(self), CHUNK):
            yield from self._decoded(lo, min(lo + CHUNK, len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and not isinstance(other, str) and same(self, other)

    def __hash__(self) -> int:
        return hash((len(self), *self[:3]))

    def __repr__(self) -> str:
        more = ", …" if len(self) > 5 else ""
        return f"<{len(self):,} names: {', '.join(map(repr, self[:5]))}{more}>"

    def __reduce__(self) -> Any:
        lo, hi = int(self._ends[0]), int(self._ends[-1])
        return StoredNames, (np.array(self._text[lo:hi]), self._ends - lo)

    def check(self, what: str) -> None:
        """Refuse a text that does not hold one name after the other."""
        ends, size = np.asarray(self._ends), len(self._text)
        if ends[0] < 0 or ends[-1] > size or (ends[1:] <= ends[:-1]).any():
            raise InputError(f"{what}: the ends of the names are not in ascending order in a text of {size} bytes")
        for lo in range(0, len(self), CHUNK):
            for name in self._decoded(lo, min(lo + CHUNK, len(self)), what):
                if not is_name(name):
                    raise InputError(f"{what}: {RULE}, got {shown(name)}")

    def _decoded(self, lo: int, hi: int, what: str = "names") -> list[Any]:
        text = self._text[int(self._ends[lo]) : int(self._ends[hi])].tobytes()
        try:
            found = json.loads(b"[" + text.rstrip(b"\n").replace(b"\n", b",") + b"]")
        except (ValueError, RecursionError) as error:
            raise InputError(f"{what}: the names {lo:,} … {hi - 1:,} cannot be read: {error}") from None
        if len(found) != hi - lo or text.count(b"\n") != hi - lo or not text.endswith(b"\n"):
            raise InputError(f"{what}: expected {hi - lo:,} names from {lo:,} on, got {len(found):,}")
        return [back(name) for name in found] if b"[" in text else found


RULE = "names are hashable, and neither True, False, None nor NaN nor integers of more than 128 bits"


def is_name(label: object) -> bool:
    """Whether something can name a state, an action or a kernel."""
    if isinstance(label, bool) or label is None:
        return False
    if isinstance(label, int):
        return label.bit_length() <= 128
    try:
        hash(label)
    except Exception:  # a class may do anything there
        return False
    return bool(label == label)


def plain(name: Any, what: str | None = None) -> Any:
    """A name as JSON holds it; see the module. With `what`, names that say nothing of themselves are refused."""
    kind = type(name)
    if kind in (str, int) or (kind is float and math.isfinite(name)):
        return name
    if kind is tuple:
        return [part if part is None or type(part) is bool else plain(part, what) for part in name]
    if what and getattr(kind, "__repr__", None) is object.__repr__:
        raise InputError(f"{what}: {shown(name)} cannot be written: its class has no `__repr__` of its own")
    return repr(name)


def back(value: Any) -> Any:
    """The name that JSON holds: lists are tuples."""
    return tuple(map(back, value)) if isinstance(value, list) else value


def text_of(names: Sequence[Any], what: str | None = None) -> list[bytes]:
    """Each name as JSON, with its line feed."""
    return [json.dumps(plain(name, what)).encode() + b"\n" for name in names]


def encoded(what: str, names: Sequence[Any]) -> tuple[bytes, Any]:
    """The text of names, and how long each is."""
    texts = text_of(names, what)
    return b"".join(texts), np.array([len(text) for text in texts], dtype=np.int64)


def listed(what: str, names: Sequence[Any]) -> list[Any]:
    """Names as a list that JSON holds; two that would be the same there are refused."""
    texts = text_of(names, what)
    if len(set(texts)) < len(texts):
        raise InputError(f"{what}: two names are both {shown(back(json.loads(repeated(texts))))} in a file")  # type: ignore[arg-type]
    return [json.loads(text) for text in texts]


def to_arrays(what: str, names: Sequence[Any]) -> tuple[Any, Any]:
    """The text of names, and where each begins and the last one ends."""
    parts = [encoded(what, names[lo : lo + CHUNK]) for lo in range(0, len(names), CHUNK)]
    ends = np.zeros(len(names) + 1, dtype=np.int64)
    np.cumsum(np.concatenate([lengths for _, lengths in parts]), out=ends[1:])
    return np.frombuffer(b"".join(text for text, _ in parts), dtype=np.uint8), ends


def coordinates(states: Sequence[Any], chosen: Iterable[int]) -> tuple[Any, list[str]] | None:
    """Numbers that the names of some things are made of, (n, k), and what each is called; None if names are not numbers.

    Texts of numbers and signs, such as "(3, 4)" in a log, are read as their numbers.
    """
    sample = [_read(states[int(s)]) for s in chosen]
    if all(isinstance(name, int | float) for name in sample):
        return np.array(sample, dtype=float)[:, None], ["the state"]
    k = len(sample[0]) if isinstance(sample[0], tuple) else 0
    if not k or not all(isinstance(name, tuple) and len(name) == k for name in sample):
        return None
    columns = [j for j in range(k) if all(isinstance(name[j], int | float) for name in sample)]
    if not columns:
        return None
    return np.array([[name[j] for j in columns] for name in sample], dtype=float), [f"x{j + 1}" for j in columns]


def _read(name: Any) -> Any:
    """The numbers in a text that holds nothing else but signs; anything else as it is."""
    if not isinstance(name, str) or LETTER.search(name):
        return name
    found = tuple(map(float, NUMBER.findall(name)))
    return found[0] if len(found) == 1 else found or name


def natural(name: Any) -> Any:
    """What names are sorted by: in texts, numbers count by their size, so that "week 2" comes before "week 10"."""
    if not isinstance(name, str):
        return name
    parts = DIGITS.split(name)
    parts[1::2] = [(len(digits), digits) for digits in (part.lstrip("0") for part in parts[1::2])]
    return parts, name


def key(text: bytes) -> int:
    """A hash of an encoded name, of 64 bits; the same in every process."""
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two sequences hold the same names in the same order, or what files make of them."""
    if isinstance(one, range) and isinstance(other, range):
        return one == other
    return len(one) == len(other) and all(a == b or plain(a) == plain(b) for a, b in zip(one, other, strict=True))


class Numbers(Mapping[Hashable, int]):
    """The index of each of the names 0 … n − 1: itself."""

    def __init__(self, n: int) -> None:
        self._names = range(n)

    def __getitem__(self, name: Any) -> int:
        hash(name)  # as a dictionary does
        try:
            k = int(name)
        except (TypeError, ValueError, OverflowError):
            raise KeyError(name) from None
        if k != name or k not in self._names:
            raise KeyError(name)
        return k

    def __iter__(self) -> Iterator[int]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
