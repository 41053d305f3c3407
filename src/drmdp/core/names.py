"""Names of very many things, without an object for each.

A name is anything hashable but True, False, None and NaN. In files it is JSON (`plain`): strings,
numbers and tuples of them, nested as they are, come back as they were; anything else, such as a
frozen dataclass or an enumeration, is its `repr` and comes back as that string. Fingerprints hash
the same JSON, so that a model and its copy from a file share one.

0, 1, 2, … are a `range`. Names in a file are one long text: each ends with a line feed, which JSON
never holds as it is; an array says where each ends. They are decoded on demand.
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
    """Distinct names, computed on demand."""

    @property
    def numbers(self) -> Mapping[Hashable, int] | None:
        """Index by name, if it can be computed."""
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
        return self._read("names")

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
        """Refuse a text that is not one name after the other."""
        ends, size = np.asarray(self._ends), len(self._text)
        if ends[0] < 0 or ends[-1] > size or (ends[1:] <= ends[:-1]).any():
            fault = "the ends of the names are not in ascending order"
            raise InputError(f"{what}: {fault} in a text of {size} bytes")
        for name in self._read(what):
            if not is_name(name):
                raise InputError(f"{what}: {RULE}, got {shown(name)}")

    def _read(self, what: str) -> Iterator[Hashable]:
        for lo in range(0, len(self), CHUNK):
            yield from self._decoded(lo, min(lo + CHUNK, len(self)), what)

    def _decoded(self, lo: int, hi: int, what: str = "names") -> list[Any]:
        text = self._text[int(self._ends[lo]) : int(self._ends[hi])].tobytes()
        try:
            names = json.loads(b"[" + text.rstrip(b"\n").replace(b"\n", b",") + b"]")
        except (ValueError, RecursionError) as error:
            fault = f"the names {lo:,} … {hi - 1:,} cannot be read: {error}"
            raise InputError(f"{what}: {fault}") from None
        if len(names) != hi - lo or text.count(b"\n") != hi - lo or not text.endswith(b"\n"):
            expected = f"expected {hi - lo:,} names from {lo:,} on"
            raise InputError(f"{what}: {expected}, got {len(names):,}")
        return [back(name) for name in names] if b"[" in text else names


RULE = (
    "names are hashable, and neither True, False, None nor NaN nor integers of more than 128 bits"
)


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
    """A name as JSON, see the module; with `what`, names with the default `repr` are refused."""
    kind = type(name)
    if kind in (str, int) or (kind is float and math.isfinite(name)):
        return name
    if kind is tuple:
        return [part if part is None or type(part) is bool else plain(part, what) for part in name]
    if what and getattr(kind, "__repr__", None) is object.__repr__:
        cause = "its class has no `__repr__` of its own"
        raise InputError(f"{what}: {shown(name)} cannot be written: {cause}")
    return repr(name)


def back(value: Any) -> Any:
    """The name of a JSON value: lists are tuples."""
    return tuple(map(back, value)) if isinstance(value, list) else value


def text_of(names: Sequence[Any], what: str | None = None) -> list[bytes]:
    """Each name as JSON, with its line feed."""
    return [json.dumps(plain(name, what)).encode() + b"\n" for name in names]


def encoded(what: str, names: Sequence[Any]) -> tuple[bytes, Any]:
    """The text of names, and how long each is."""
    texts = text_of(names, what)
    return b"".join(texts), np.array([len(text) for text in texts], dtype=np.int64)


def listed(what: str, names: Sequence[Any]) -> list[Any]:
    """Names as a list for JSON; two that would be the same there are refused."""
    texts = text_of(names, what)
    if len(set(texts)) < len(texts):
        twice = json.loads(repeated(texts))  # type: ignore[arg-type]
        raise InputError(f"{what}: two names are both {shown(back(twice))} in a file")
    return [json.loads(text) for text in texts]


def to_arrays(what: str, names: Sequence[Any]) -> tuple[Any, Any]:
    """The text of names, and where each begins and the last ends."""
    parts = [encoded(what, names[lo : lo + CHUNK]) for lo in range(0, len(names), CHUNK)]
    ends = np.zeros(len(names) + 1, dtype=np.int64)
    np.cumsum(np.concatenate([lengths for _, lengths in parts]), out=ends[1:])
    return np.frombuffer(b"".join(text for text, _ in parts), dtype=np.uint8), ends


def coordinates(states: Sequence[Any], chosen: Iterable[int]) -> tuple[Any, list[str]] | None:
    """Numbers in the names of the chosen states, (n, k), and a label of each column; None if names
    are no numbers.

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
    numbers = np.array([[name[j] for j in columns] for name in sample], dtype=float)
    return numbers, [f"x{j + 1}" for j in columns]


def _read(name: Any) -> Any:
    """The numbers in a text of numbers and signs; any other name as it is."""
    if not isinstance(name, str) or LETTER.search(name):
        return name
    numbers = tuple(map(float, NUMBER.findall(name)))
    return numbers[0] if len(numbers) == 1 else numbers or name


def natural(name: Any) -> Any:
    """Sort key of a name: in texts, numbers count by their size, so that "week 2" comes before
    "week 10".
    """
    if not isinstance(name, str):
        return name
    parts = DIGITS.split(name)
    parts[1::2] = [(len(digits), digits) for digits in (part.lstrip("0") for part in parts[1::2])]
    return parts, name


def key(text: bytes) -> int:
    """A hash of an encoded name, of 64 bits; the same in every process."""
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def same(names: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two sequences have the same names in the same order, or the same ones in files."""
    if isinstance(names, range) and isinstance(other, range):
        return names == other
    if len(names) != len(other):
        return False
    return all(a == b or plain(a) == plain(b) for a, b in zip(names, other, strict=True))


class ComputedIndex(Mapping[Hashable, int]):
    """The index of names that are computed; subclasses find a name."""

    def __init__(self, names: Sequence[Any]) -> None:
        self._names = names

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class NumberIndex(ComputedIndex):
    """The index of each of the names 0 … n − 1: itself."""

    def __getitem__(self, name: Any) -> int:
        hash(name)  # as a dictionary does
        try:
            k = int(name)
        except (TypeError, ValueError, OverflowError):
            raise KeyError(name) from None
        if k != name or k not in self._names:
            raise KeyError(name)
        return k
