"""Check a proof that drmdp wrote, without drmdp: `python -m drmdp_check run.proof model.npz`, or
this file alone. A plan may have a model for each stage.

Standard library only. Floats are exact rationals, and all arithmetic is exact (`fractions`); with
`--interval` it is done in floats rounded outwards.

**The problem.** States s, actions a, next states t, costs c(s, a, t), discount λ or λ(s, a),
N kernels ŷ_i with weights w_i. Rows and weights stand for themselves divided by their sums; kernels
of weight 0 do not exist. In every state nature picks y from a set around the data, and the agent a
policy x. With z_a(t) = c(s, a, t) + λ v(t) and y_a = Σ_i w_i y_ia

    F^x(v)(s) = max_y Σ_a x_a y_a·z_a,        F_y(v)(s) = min_a y_a·z_a,

and what the process ends with in terminal states. The file holds v, x, a y for every state and what
shows that no y does more. From these the checker computes

    U ≥ F^x(v), and L ≤ F_y(v) or, for a given policy, L ≤ Σ_a x_a y_a·z_a,

and from U and L the bounds of the criterion. Nothing that the file says of y, U, L or bounds is
believed: numbers of the file are points at which inequalities are computed that hold at all points.

**Helpful nature** minimises: she maximises negated stakes, and U and L change places and signs. If
x is chosen too, she has her whole budget for the one action that is played, and L is the least over
the actions, each alone with the budget.

**Where to read.** Each section states its mathematics first:

    Refusals           what is wrong with a file ends its check
    File format        the lines of a proof, JSON, the arrays of a model
    Exact arithmetic   rationals, floats rounded outwards, irrational functions from above
    Model and digest   the numbers of a model, and the SHA-256 that a proof names
    Sets               for each set U by weak duality and L by a row that is in it
    Sweeps             the lines of a sweep, state by state: U − v and L − v
    Criteria           bounds from U − v and L − v: discounted, stages, average, total, reach
    Statements         what is proved, what was claimed, and how it is said
    Command line
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import struct
import sys
import zipfile
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import fsum, inf, isfinite, nan, nextafter, prod
from typing import IO, Any, NamedTuple, Protocol

# ---------------------------------------------------------------------- refusals


class Refused(Exception):
    """What is wrong with a file."""


def need(condition: object, message: str) -> None:
    """Refuse the file with a message unless a condition holds."""
    if not condition:
        raise Refused(message)


@contextmanager
def refusing(where: str | Callable[[], str]) -> Iterator[None]:
    """Turn every exception inside into a refusal that names a place in a file."""
    try:
        yield
    except Exception as error:
        refused = isinstance(error, Refused)
        what = str(error) if refused else f"{type(error).__name__}: {error}"[:200]
        raise Refused(f"{where() if callable(where) else where}: {what}") from None


def printable(text: object) -> str:
    """Text of a file on one line and without commands to a terminal."""
    return "".join(c if c.isprintable() else "?" for c in str(text))


# ---------------------------------------------------------------------- file format
#
# A proof is lines of JSON. All values are costs: rewards are negated.
#
#   header           format, kind, nature, criterion, model (its digest), set, support, rectangular,
#                    moves; sweeps where sides have their own; target, avoid, minimise of `reach`;
#                    rate of an average of steps that last; stages, discount, final (and costs) of a
#                    finite horizon
#   then by sweep    v; lower, upper: claimed bounds; w; what a stage has instead of the header's
#     by live state  s; x, the policy; r, the radius; up, dual variables at v; low, nature's rows;
#                    time, dual variables at w; lo, hi of intervals
#   last             {"end": true}
#
# Stages come from the last one back. A row of the file is a number for each next state that the
# model lists for the pair, in its order, then [state, number] for others.

FORMATS = ("drmdp proof 1", "drmdp proof 2")
"""Of discounted costs, and of other criteria."""
SHAPE = {
    "support": ("observed", "state", "all"),
    "rectangular": ("s", "sa"),
    "moves": ("states", "events"),
}
"""The shape of a set; each stage may have its own."""
KNOWN = {
    "kind": ("optimum", "policy"),
    "nature": ("adversarial", "cooperative"),
    "criterion": ("discounted", "total", "reach", "average"),
    **SHAPE,
}
"""Fields of the header that have few values."""
SET_FIELDS = {
    "norm": ("metric", "order", "around"),
    "divergence": ("kind", "around"),
    "transport": ("order", "grid", "lists"),
    "reweighting": ("kind",),
}
"""Fields of a set by family; long ones last, for what is printed is cut."""
AROUND = ("mean", "kernels")
"""What rows are measured from."""
LOWER, UPPER = 0, 1
"""The two sides of a bound."""
SIDES = {"lower": [LOWER], "upper": [UPPER], "both": [LOWER, UPPER]}
"""What a sweep is for."""

LIMIT, SAFE = 1 << 33, 1 << 30
"""Bytes of all arrays, or of a line; and of arrays that may be packed ever so tightly."""
COSTS = ("costs", "rewards", "next_costs", "next_rewards", "event_costs")
"""Arrays of costs: a model has one of them."""
NEEDED = {
    *COSTS,
    *("kernels", "shape", "indptr", "indices", "data", "weights", "laws", "next", "classes"),
    *("available", "terminal", "ends", "discount", "discounts", "sojourn"),
}
"""Arrays of a model file that are read."""
TYPES = {
    **{"f8": "d", "f4": "f", "f2": "H"},
    **{"i8": "q", "i4": "i", "i2": "h", "i1": "b"},
    **{"u8": "Q", "u4": "I", "u2": "H", "u1": "B", "b1": "b"},
}
"""Types of .npy files, as `array` names them; halves are read as their bits."""

Line = dict[str, Any]
"""An object of JSON: the header, the head of a sweep, or a state."""


class Array(NamedTuple):
    """An array of a model file, flat, with the last index running fastest."""

    shape: tuple[int, ...]
    numbers: Any


def parsed(text: bytes) -> Any:
    """Read JSON whose numbers are finite and short, and whose objects name nothing twice."""

    def number(digits: str, kind: type[float] | type[int] = float) -> float:
        message = f"{digits[:20]} is no finite number, or has too many digits"
        need(len(digits) < 40 and isfinite(value := kind(digits)), message)
        return value

    def fields(pairs: list[tuple[str, Any]]) -> Line:
        need(len(dict(pairs)) == len(pairs), "a name stands twice in an object")
        return dict(pairs)

    return json.loads(
        text,
        parse_float=number,
        parse_int=lambda digits: number(digits, int),
        parse_constant=number,
        object_pairs_hook=fields,
    )


def read_npy(stream: IO[bytes], name: str, size: int) -> Array:
    """Read an .npy stream of `size` bytes: format 1, any byte order, C or Fortran order."""
    head = stream.read(10)
    need(head[:8] == b"\x93NUMPY\x01\x00", f"{name}: not an array of format 1")
    text = stream.read(struct.unpack("<H", head[8:])[0]).decode("latin-1")
    header = ast.literal_eval(text)
    shape, order, kind = header["shape"], header["descr"][:1], header["descr"][1:]
    need(
        kind in TYPES and all(type(n) is int and n >= 0 for n in shape),
        f"{name}: shape {shape!r}, numbers {header['descr']!r}",
    )
    numbers: Any = array(TYPES[kind])
    length = prod(shape) * numbers.itemsize
    need(length <= min(size, LIMIT), f"{name}: longer than its file")
    numbers.frombytes(stream.read(length))
    need(len(numbers) == prod(shape), f"{name}: cut off")
    if order != "|" and (order == ">") != (sys.byteorder == "big"):
        numbers.byteswap()
    if kind == "f2":
        numbers = array("d", struct.unpack(f"={len(numbers)}e", numbers))
    return Array(shape, last_fastest(numbers, shape) if header["fortran_order"] else numbers)


def last_fastest(numbers: Any, shape: tuple[int, ...]) -> Any:
    """Reorder numbers whose first index runs fastest, so that the last one does."""
    if len(shape) < 2:
        return numbers
    n = shape[0]
    return [x for i in range(n) for x in last_fastest(numbers[i::n], shape[1:])]


def divided(row: list[float]) -> list[float]:
    """Divide K numbers in doubles by their sum, correctly rounded, if that is off 1 by more than
    rounding, 2 (K + 2) 2⁻⁵². This is how rows, laws and weights are read, but for float32 in
    `data`; what it gives is the model, and stands for itself divided by its sum, exactly.
    """
    total = fsum(row)
    if abs(total - 1) <= 2 * (len(row) + 2) * 2.0**-52 or not 0 < total < inf:
        return row
    return [x / total for x in row]


def read_directory(path: str) -> tuple[dict[str, Array], Line]:
    """Read the arrays of a .drmdp directory, and its model.json."""
    with open(os.path.join(path, "model.json"), "rb") as stream:
        small = parsed(stream.read(LIMIT))
    fields = {
        name: Array((), x if isinstance(x, list) else [x])
        for name, x in small.items()
        if name in ("shape", "discount", "weights")
    }
    for name in NEEDED.intersection(f[:-4] for f in os.listdir(path) if f.endswith(".npy")):
        with open(file := os.path.join(path, f"{name}.npy"), "rb") as stream:
            fields[name] = read_npy(stream, name, os.path.getsize(file))
    return fields, small


def read_fields(path: str) -> tuple[dict[str, Array], Line]:
    """Read the arrays of a model by name, of an .npz file or of a directory with a model.json."""
    if os.path.isdir(path):
        return read_directory(path)
    fields: dict[str, Array] = {}
    with zipfile.ZipFile(path) as archive:
        size = sum(info.file_size for info in archive.infolist())
        packed = sum(info.compress_size for info in archive.infolist())
        need(
            size <= LIMIT and size <= max(SAFE, 100 * packed),
            f"{size:,} bytes of arrays packed in {packed:,}: too many",
        )
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            usual = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
            need(
                name not in fields and usual,
                f"{name}: is there twice, or packed in an odd way",
            )
            if name in NEEDED:
                with archive.open(info) as stream:
                    fields[name] = read_npy(stream, name, info.file_size)
    return fields, {}


# ---------------------------------------------------------------------- exact arithmetic
#
# A number of the calculation is a `Fraction` or, with `--interval`, an `Interval` that holds the
# exact one: both have the same operators. Roots, logarithms and exponentials are enclosed by
# `decimal`, whose results are correctly rounded: one step further in the needed direction is a
# bound.

Real = Fraction | float
"""An exact number: of a file, or an end of an interval."""


class Number(Protocol):
    """A `Fraction`, or an `Interval` with `--interval`."""

    def __add__(self, other: Any, /) -> Number: ...
    def __sub__(self, other: Any, /) -> Number: ...
    def __mul__(self, other: Any, /) -> Number: ...
    def __truediv__(self, other: Any, /) -> Number: ...
    def __neg__(self) -> Number: ...
    def __abs__(self) -> Number: ...


Row = dict[int, Number]
"""Probabilities by next state."""
Losses = tuple[Number, Number]
"""ŷ·z of the data and y·z of a row."""
Kept = dict[Any, Number]
"""Dual variables of a kernel that the price of a budget depends on."""


class Interval:
    """The numbers from one float to another. Every operation rounds outwards, and 0 is exact."""

    __slots__ = ("hi", "lo")

    def __init__(self, lo: float, hi: float) -> None:
        if not -inf < lo <= hi < inf:
            raise Refused("a number that is too large for floats")
        self.lo, self.hi = lo, hi

    def __add__(self, other: Interval) -> Interval:
        if self.lo == self.hi == 0:
            return other
        lo, hi = self.lo + other.lo, self.hi + other.hi
        return Interval(nextafter(lo, -inf), nextafter(hi, inf))

    def __sub__(self, other: Interval) -> Interval:
        if other.lo == other.hi == 0:
            return self
        lo, hi = self.lo - other.hi, self.hi - other.lo
        return Interval(nextafter(lo, -inf), nextafter(hi, inf))

    def __mul__(self, other: Interval) -> Interval:
        a, b, c, d = self.lo, self.hi, other.lo, other.hi
        if a == b == 0 or c == d == 0:
            return ZERO
        if a >= 0:
            lo, hi = (a if c >= 0 else b) * c, (b if d >= 0 else a) * d
        elif c >= 0:
            return other * self
        else:
            lo, hi = min(a * d, b * c, b * d), max(a * c, b * d)
        return Interval(nextafter(lo, -inf), nextafter(hi, inf))

    def __truediv__(self, other: Interval) -> Interval:
        """Divide by an interval of positive numbers."""
        need(other.lo > 0, "a division by what may be 0")
        lo = self.lo / (other.hi if self.lo >= 0 else other.lo)
        hi = self.hi / (other.lo if self.hi >= 0 else other.hi)
        if not (self.hi or self.lo):
            return self
        return Interval(nextafter(lo, -inf), nextafter(hi, inf))

    def __neg__(self) -> Interval:
        return Interval(-self.hi, -self.lo)

    def __abs__(self) -> Interval:
        if self.lo >= 0:
            return self
        return Interval(max(-self.hi, 0.0), max(-self.lo, self.hi))


ZERO = Interval(0.0, 0.0)


def low(x: Any) -> Real:
    """A rational or a float that is not above a number."""
    bound: Real = x.lo if isinstance(x, Interval) else x
    return bound


def high(x: Any) -> Real:
    """A rational or a float that is not below a number."""
    bound: Real = x.hi if isinstance(x, Interval) else x
    return bound


def largest(numbers: Iterable[Any]) -> Number:
    """The largest of some numbers."""
    found = list(numbers)
    if isinstance(found[0], Interval):
        return Interval(max([x.lo for x in found]), max([x.hi for x in found]))
    most: Number = max(found)
    return most


def rounded(x: Fraction, way: int) -> float:
    """The float next to a rational, up (1) or down (−1): itself if it is one."""
    near = float(x)
    return near if near == x or (near > x) == (way > 0) else nextafter(near, way * inf)


class Arithmetic:
    """Numbers exactly or as intervals, and irrational ones to so many digits.

    Increasing functions: with f(x) enclosed by one unit in the last digit of `decimal`, an upper
    bound of f at an upper bound of x is one of f(x), and likewise below.
    """

    def __init__(self, interval: bool, digits: int) -> None:
        self.interval = interval
        range_ = 10**4
        self._down = Context(digits, ROUND_FLOOR, -range_, range_)
        self._up = Context(digits, ROUND_CEILING, -range_, range_)
        self.zero: Number = ZERO if interval else Fraction(0)
        self.one: Number = Interval(1.0, 1.0) if interval else Fraction(1)

    def exact(self, x: Any) -> Fraction:
        """The rational that a number of a file is; a truth value is no number."""
        need(type(x) in (int, float, Fraction), f"{str(x)[:40]!r} is no number")
        return x if type(x) is Fraction else Fraction(*x.as_integer_ratio())

    def __call__(self, x: Any) -> Number:
        """A number of the calculation that is, or holds, a number of a file."""
        if not self.interval:
            return self.exact(x)
        if type(x) is float:
            return Interval(x, x)
        return Interval(rounded(self.exact(x), -1), rounded(x, 1))

    def _bound(self, function: Callable[..., Decimal], x: Real, up: bool = True) -> Number:
        """An increasing function of a rational, from above or from below; log 1 = 0 exactly."""
        context, exact = self._up if up else self._down, Fraction(x)
        quotient = context.divide(Decimal(exact.numerator), Decimal(exact.denominator))
        value = function(context, quotient)
        beyond = context.next_plus(value) if up else context.next_minus(value)
        return self(Fraction(beyond if value else 0))

    def exp(self, x: Number) -> Number:
        """e^x from above; below −700 that of −700."""
        need(high(x) < 700, "an exponential that is too large")
        return self._bound(Context.exp, max(high(x), Fraction(-700)))

    def log(self, x: Number, up: bool) -> Number:
        """Log x of x > 0, from above or from below."""
        end = high(x) if up else low(x)
        need(end > 0, "the logarithm of a number that is not positive")
        return self._bound(Context.ln, end, up)

    def sqrt(self, x: Number) -> Number:
        """√x of x ≥ 0, from above."""
        return self._bound(Context.sqrt, high(x)) if high(x) > 0 else self.zero

    def power(self, x: Any, p: Fraction) -> Number:
        """x^p = e^(p log x) of x ≥ 0, p > 0, from above."""
        return self.exp(self.log(x, up=True) * self(p)) if high(x) > 0 else self.zero

    def add(self, terms: Iterable[Any]) -> Number:
        """The sum of numbers; that of floats is correctly rounded before it is rounded outwards."""
        if not self.interval:
            total: Number = sum(terms, self.zero)
            return total
        found = [x for x in terms if x.hi or x.lo]
        if len(found) < 2:  # nothing is rounded
            return sum(found, self.zero)
        lo, hi = fsum([x.lo for x in found]), fsum([x.hi for x in found])
        return Interval(nextafter(lo, -inf), nextafter(hi, inf))

    def dot(self, a: Iterable[Number], b: Iterable[Number]) -> Number:
        """Σ a_i b_i."""
        return self.add(x * y for x, y in zip(a, b, strict=True))


Order = Fraction | None
"""The order of a norm; None for the largest."""


def norm(
    number: Arithmetic,
    parts: Iterable[Number],
    order: Order,
    weights: Sequence[Number] | None = None,
) -> Number:
    """(Σ_i w_i |x_i|^p)^{1/p} from above, the largest |x_i| for p = ∞; w_i = 1 without weights.

    Orders but 1, 2 and ∞ have weights of sum 1. They are m (Σ_i w_i (|x_i|/m)^p)^{1/p}, m the
    largest |x_i|: ratios and the mean of their powers are at most 1, so that what rounding puts
    above is cut off.
    """
    sizes = [abs(x) for x in parts]
    top = number(high(largest([number.zero, *sizes])))
    if order is None or not high(top) > 0:
        return top
    if order == 1:
        powers = sizes
    elif order == 2:
        powers = [x * x for x in sizes]
    else:
        powers = [number.power(min(high(x / top), 1), order) for x in sizes]
    total = number.add(powers) if weights is None else number.dot(weights, powers)
    if order == 1:
        return total
    return number.sqrt(total) if order == 2 else top * number.power(min(high(total), 1), 1 / order)


# ---------------------------------------------------------------------- model and digest


class Pair(NamedTuple):
    """The numbers of a pair (s, a); of a model of events, with events for next states."""

    columns: list[int]
    """Next states that are listed."""
    rows: list[list[float]]
    """N rows over them, as they are read."""
    costs: dict[int, float] | float
    """Costs by next state, or one for all."""
    leads: list[int]
    """Next states of the columns: themselves, or where events lead."""


class Model:
    """The numbers of a model file, pair by pair; rewards are negated costs.

    Rows of states are dense (`kernels`), or compressed (`indptr`, `indices`, `data`). A model of
    events has laws for rows, and tells where each event leads. In `kernels`, numbers from −1e-9 to
    0 are 0. Rows, laws and weights that are off 1 are `divided`.
    """

    def __init__(self, path: str) -> None:
        fields, small = read_fields(path)
        self.N, self.S, self.A, self.width = self._read_rows(fields)
        N, S, A = self.N, self.S, self.A
        need(all(type(n) is int and n > 0 for n in (N, S, A)), f"shape {N, S, A}")
        self._read_weights(fields)
        self._read_costs(fields)
        self.maximise = self._sign < 0 or small.get("maximise") is True
        self._read_states(fields)
        self._read_discount(*fields["discounts" if "discounts" in fields else "discount"])
        self._read_sojourn(*fields.get("sojourn", Array((S, A), None)))
        self.digest = self._digest()

    def _read_rows(self, fields: dict[str, Array]) -> tuple[int, int, int, int]:
        """Find the layout of rows; returns N, S, A and the next states or events of a row."""
        dense = fields.get("kernels", Array((), None))
        shape, self._kernels = dense.shape, dense.numbers
        self.moves = "events" if "laws" in fields else "states"
        layouts = {"kernels", "indptr", "laws"} & fields.keys()
        need(len(layouts) == 1, "kernels, indptr, laws: one of them makes a model")
        self._single = fields.get("data", Array((), array("d"))).numbers.typecode == "f"
        if self.moves == "events":
            ((C, N, E), self._laws), ((S, A, again), self._next) = fields["laws"], fields["next"]
            none = Array((), bytes(S * A if again else 0))
            self._classes = classes = fields.get("classes", none).numbers
            fine = again == E > 0 and len(classes) == S * A
            need(fine and 0 <= min(classes) <= max(classes) < C, "laws, next, classes: do not fit")
            return N, S, A, E
        if shape:
            N, S, A, again = (1, *shape)[-4:]
            need(again == S and len(shape) < 5, f"kernels: shape {shape}")
            return N, S, A, S
        (N, S, A), held = fields["shape"].numbers, len(fields["weights"].numbers)
        self._indptr, self._indices, self._data = (
            fields[name].numbers for name in ("indptr", "indices", "data")
        )
        fine = held == N and len(self._indptr) == S * A + 1
        need(fine and len(self._data) == N * len(self._indices), "sizes do not fit")
        return N, S, A, S

    def _read_weights(self, fields: dict[str, Array]) -> None:
        """Read the weights w_i, and which kernels have some."""
        given = fields.get("weights", Array((), [1 / self.N] * self.N)).numbers
        weights = list(map(Fraction, divided(list(map(float, given)))))
        fine = len(weights) == self.N and min(weights) >= 0 and sum(weights) > 0
        need(fine, "weights: not N of them")
        total = sum(weights)
        self.stored_weights = weights
        self.used = [i for i, w in enumerate(weights) if w > 0]
        self.weights = [w / total for w in weights if w > 0]

    def _read_costs(self, fields: dict[str, Array]) -> None:
        """Find the costs: of states, of pairs, of next states or events, or of those listed."""
        S, A = self.S, self.A
        (name,) = [name for name in COSTS if name in fields]
        self._shape: tuple[int, ...] = fields[name].shape
        self._costs: Any = fields[name].numbers
        self._listed = name.startswith("next_")
        self._sign = -1.0 if name.endswith("rewards") else 1.0
        if self._listed:
            shapes: set[tuple[int, ...]] = {(len(self._indices),)}
        elif self.moves == "events":
            shapes = {(S, A), (S, A, self.width)}
        else:
            shapes = {(S,), (S, A), (S, A, S)}
        need(self._shape in shapes, f"{name}: shape {self._shape}")

    def _read_states(self, fields: dict[str, Array]) -> None:
        """Read which states are terminal, what they end with, and which actions are there."""
        S, A = self.S, self.A
        self.terminal = fields.get("terminal", Array((), [0] * S)).numbers
        self._available = fields.get("available", Array((), [1] * (S * A))).numbers
        given = fields.get("ends", Array((), [0.0] * S)).numbers
        self.ends = [self._sign * float(x) + 0.0 for x in given]
        fine = len(self.terminal) == len(self.ends) == S and len(self._available) == S * A
        need(fine, "terminal, ends, available: of another size")
        pairs = zip(self.ends, self.terminal, strict=True)
        fine = all(isfinite(x) and (end or not x) for x, end in pairs)
        need(fine, "ends: not finite, or not of a terminal state")

    def _read_discount(self, shape: tuple[int, ...], numbers: Any) -> None:
        """Read λ(s, a) of the pairs that are there; `single` is the one that all agree on."""
        S, A = self.S, self.A
        given = [x for row in numbers for x in (row if isinstance(row, list) else [row])]
        fits = len(given) == 1 or (len(given) == S * A and shape in ((), (S, A)))
        need(fits, f"discount: shape {shape}, {len(given)} numbers")
        self.discounts = {
            (s, a): given[s * A + a if len(given) > 1 else 0]
            for s in range(S)
            for a in self.actions(s)
        }
        counted = [*self.discounts.values(), *given[: len(given) == 1]]
        fine = all(type(x) in (int, float) and 0 <= x <= 1 for x in counted)
        need(fine, "discount: not in [0, 1]")
        self.single: float | None = None
        if len(given) == 1:
            self.single = given[0]
        elif len({*self.discounts.values()}) < 2:
            self.single = next(iter(self.discounts.values()), 0.0)

    def _read_sojourn(self, shape: tuple[int, ...], given: Any) -> None:
        """Read how long steps last, τ(s, a) > 0; None if all last 1."""
        S, A = self.S, self.A
        need(shape == (S, A), f"sojourn: shape {shape}")
        self.sojourn: dict[tuple[int, int], Fraction] | None = None
        if given is not None:
            self.sojourn = {
                (s, a): Fraction(given[s * A + a]) for s in range(S) for a in self.actions(s)
            }
            need(min(self.sojourn.values(), default=1) > 0, "sojourn: not positive")

    def rates(self, stage: Fraction | None = None) -> dict[tuple[int, int], Fraction]:
        """λ(s, a) by pair, of a stage that has its own, or of the model."""
        same = stage if stage is not None else self.single
        return {pair: Fraction(x if same is None else same) for pair, x in self.discounts.items()}

    def actions(self, s: int) -> list[int]:
        """The actions that are there in a state; none in a terminal one."""
        if self.terminal[s]:
            return []
        return [a for a in range(self.A) if self._available[s * self.A + a]]

    def row(self, s: int, a: int) -> Pair:
        """Read the rows and the costs of a pair."""
        k, W = s * self.A + a, self.width
        leads = None
        if self.moves == "events":
            columns, rows, leads = self._laws_of(s, a)
        elif self._kernels:
            columns, rows = self._dense_rows(k)
        else:
            columns, rows = self._listed_rows(s, a)
        fine = all(0 <= x < inf for row in rows for x in row) and all(map(sum, rows))
        need(fine, f"state {s}, action {a}: rows are no distributions")
        rows = rows if self._single else list(map(divided, rows))
        if not self._listed and len(self._shape) < 3:
            cost = self._costs[k if len(self._shape) == 2 else s]
            return Pair(columns, rows, self._sign * float(cost) + 0.0, leads or columns)
        if self._listed:
            lo, hi = self._indptr[k : k + 2]
            given: Iterable[tuple[int, float]] = zip(columns, self._costs[lo:hi], strict=True)
        else:
            given = enumerate(self._costs[k * W : (k + 1) * W])
        costs = {t: self._sign * float(c) + 0.0 for t, c in given}
        return Pair(columns, rows, costs, leads or columns)

    def _laws_of(self, s: int, a: int) -> tuple[list[int], list[list[float]], list[int]]:
        """The events of a pair, their N laws, and where each event leads."""
        k, W = s * self.A + a, self.width
        leads, first = list(self._next[k * W : (k + 1) * W]), self._classes[k] * self.N
        rows = [list(self._laws[(first + i) * W : (first + i + 1) * W]) for i in range(self.N)]
        need(all(0 <= t < self.S for t in leads), f"next: of state {s}, action {a}")
        return list(range(W)), rows, leads

    def _dense_rows(self, k: int) -> tuple[list[int], list[list[float]]]:
        """The next states of a pair that have mass in some kernel, and the N rows over them."""
        S, M = self.S, self.S * self.A
        dense = [self._kernels[(i * M + k) * S : (i * M + k + 1) * S] for i in range(self.N)]
        dense = [[0.0 if -1e-9 <= x < 0 else float(x) for x in row] for row in dense]
        columns = [t for t in range(S) if any(row[t] != 0 for row in dense)]
        return columns, [[row[t] for t in columns] for row in dense]

    def _listed_rows(self, s: int, a: int) -> tuple[list[int], list[list[float]]]:
        """The next states that are listed for a pair, and the N rows over them."""
        lo, hi = self._indptr[s * self.A + a : s * self.A + a + 2]
        columns, data, K = (
            list(self._indices[lo:hi]),
            self._data[self.N * lo : self.N * hi],
            hi - lo,
        )
        fine = 0 <= lo <= hi <= len(self._indices)
        fine = fine and columns == sorted({t for t in columns if 0 <= t < self.S})
        need(fine, f"indptr, indices: of state {s}, action {a}")
        return columns, [list(data[i * K : (i + 1) * K]) for i in range(self.N)]

    def _digest(self) -> str:
        """SHA-256 of N, S, A, the discount (−1 if pairs differ), the weights, and of the SHA-256 of
        each state: of what it ends with, or, for each of its pairs, of s, a, the next states,
        the rows, the costs, and the discount and the sojourn time where pairs have their own.
        """
        discount = -1.0 if self.single is None else self.single
        numbers = [discount, *map(float, self.stored_weights)]
        head = struct.pack(f"<qqq{1 + self.N}d", self.N, self.S, self.A, *numbers)
        digest = hashlib.sha256(head)
        for s in range(self.S):
            ends = struct.pack("<qd", s, self.ends[s]) if self.ends[s] else b""
            state = hashlib.sha256(ends)
            for a in self.actions(s):
                _, rows, costs, leads = self.row(s, a)
                numbers = [x for row in rows for x in row]
                numbers += costs.values() if isinstance(costs, dict) else [costs]
                numbers += [self.discounts[s, a]] if self.single is None else []
                form, n = f"<qqq{len(leads)}i{len(numbers)}d", len(leads)
                state.update(struct.pack(form, s, a, n, *leads, *numbers))
                if self.sojourn:
                    state.update(b"sojourn" + struct.pack("<d", self.sojourn[s, a]))
            digest.update(state.digest())
        return digest.hexdigest()

    def aim(self, target: list[int], avoid: list[int], minimise: bool) -> None:
        """Ask how probable it is to reach states, and not others before: no step costs anything,
        and the process ends in the target with −1 (1 if minimised), elsewhere with 0.
        """
        fine = target and all(type(s) is int and 0 <= s < self.S for s in [*target, *avoid])
        need(fine and not {*target} & {*avoid}, "target, avoid: no states, or the same")
        over = {*target, *avoid}
        self.terminal = [bool(x) or s in over for s, x in enumerate(self.terminal)]
        worth = 1.0 if minimise else -1.0
        self.ends = [worth if s in target else 0.0 for s in range(self.S)]
        self.maximise, self.single, self.sojourn = not minimise, 1.0, None
        self._shape, self._costs = (self.S,), [0.0] * self.S
        self._listed, self._sign = False, 1.0
        self.digest = self._digest()

    def price(self, shape: tuple[int, ...], costs: Any) -> None:
        """Take the costs of a stage instead."""
        S, A = self.S, self.A
        fine = shape in ((S, A), (S, A, S)) and self.moves == "states"
        need(fine, f"costs of a stage: shape {shape}")
        self._shape, self._costs, self._listed = shape, costs, False
        self._sign = -1.0 if self.maximise else 1.0


# ---------------------------------------------------------------------- sets
#
# For one state. Above, weak duality: U holds for all numbers that the file may bring (`upper`, its
# dual variables). Below, a row of the file (`lower`): rows are divided by their sums, and must not
# leave where nature may go. Their cost C is measured by the set's definition, from above. All costs
# are convex and 0 at the data: if C exceeds the budget B, the rows ŷ + (B/C)(y − ŷ) are in the set
# and count instead.
#
# Stakes are c(s, a, t) + λ v(t) − v(s), so that U − v and L − v come out: where players go round in
# circles at no cost they are 0, exactly. Where nature moves the laws of events, events e are in the
# place of next states, with c(s, a, e) + λ v(f(s, a, e)). Around the mean there is one row,
# Σ_i w_i ŷ_i. With a budget for each action (sa) every action is bounded alone.


class State:
    """A state at v: its stakes, and the rows of the data divided by their sums."""

    number: Arithmetic
    ambiguity: AmbiguitySet
    line: Line
    actions: list[int]
    width: int
    """Next states, or events."""
    weights: list[Number]
    exact_weights: list[Fraction]
    columns: dict[int, list[int]]
    rows: dict[int, list[Row]]
    """Rows of the data by action, one for each kernel."""
    seen: dict[int, set[int]]
    """Where the support of the data is, by action: nature may bring mass there."""
    costs: dict[int, dict[int, float] | float]
    leads: dict[int, Sequence[int]]
    """Next states of the columns by action."""

    def __init__(self, proof: Proof, v: Values, s: int, line: Line) -> None:
        self.number, self.ambiguity = number, ambiguity = proof.number, proof.ambiguity
        self.v, self.s, self.line, model, mixture = v, s, line, proof.model, proof.mixture
        self.actions, self.width, self.exact_weights = model.actions(s), model.width, model.weights
        self.weights = [number.one] if ambiguity.mean else mixture
        self.columns, self.rows, self.seen, self.costs, self.leads = {}, {}, {}, {}, {}
        self._spent: dict[int, Fraction | int] = {}
        self._stakes: dict[tuple[int, int], Number] = {}
        for a in self.actions:
            self.columns[a], stored, cost, leads = model.row(s, a)
            self.costs[a] = cost if v.flat is None else v.flat
            self._spent[a] = v.rate * model.sojourn[s, a] if v.rate and model.sojourn else 0
            self.leads[a] = leads if model.moves == "events" else range(model.S)
            used = [stored[i] for i in model.used]
            support = {t for k, t in enumerate(self.columns[a]) if any(row[k] > 0 for row in used)}
            self.seen[a] = support
            sums = [number.add(map(number, row)) for row in used]
            rows = [[number(x) / mass for x in row] for row, mass in zip(used, sums, strict=True)]
            if ambiguity.mean:
                rows = [[number.dot(mixture, column) for column in zip(*rows, strict=True)]]
            self.rows[a] = [dict(zip(self.columns[a], row, strict=True)) for row in rows]
        if ambiguity.support == "state":  # seen under any action
            self.seen = dict.fromkeys(self.actions, set().union(*self.seen.values()))

    def stake(self, a: int, t: int) -> Number:
        """c(s, a, t) + λ v(t) − v(s), less the rate of the step's time; negated if nature helps."""
        stake = self._stakes.get((a, t))
        if stake is None:
            costs = self.costs[a]
            cost = costs.get(t, nan) if isinstance(costs, dict) else costs
            need(isfinite(cost), f"action {a}: the cost of going to {t} is unknown")
            v = self.v
            now = v.sign * (Fraction(cost) - self._spent[a] - v.exact[self.s])
            stake = self.number(now + v.ahead(self.s, a, self.leads[a][t]))
            self._stakes[a, t] = stake
        return stake

    def allowed(self, a: int, t: int) -> bool:
        """Whether nature may bring mass to t."""
        return self.ambiguity.support == "all" or t in self.seen[a]

    def most(self, a: int, named: Collection[int] = ()) -> Number | None:
        """The largest stake of states that may have mass and are not named; None if none is left.

        Where v alone decides, one state more than are named is enough, from the top of v.
        """
        common = isinstance(self.leads[a], range) and not isinstance(self.costs[a], dict)
        states: Iterable[int] = self.seen[a]
        if self.ambiguity.support == "all":
            states = self.v.order[: len(named) + 1] if common else range(self.width)
        left = [self.stake(a, t) for t in states if t not in named]
        return largest(left) if left else None

    def nominal(self, a: int, i: int) -> Number:
        """The loss of the data, ŷ_ia·z_a."""
        row = self.rows[a][i]
        return self.number.add(y * self.stake(a, t) for t, y in row.items() if high(y) > 0)

    def _by_state(self, a: int, row: Any) -> dict[int, Any]:
        """A row of the file by next state: one entry for each listed, [state, entry] for others."""
        columns = self.columns[a]
        fine = isinstance(row, list) and len(row) >= len(columns)
        need(fine, f"action {a}: a row is too short")
        entries = dict(zip(columns, row, strict=False))
        for t, x in row[len(columns) :]:
            fine = type(t) is int and 0 <= t < self.width and t not in entries
            need(fine, f"action {a}: a row names state {t!r}")
            entries[t] = x
        return entries

    def spread(self, a: int, row: Any) -> Row:
        """The numbers of a row of the file by next state."""
        return {t: self.number(x) for t, x in self._by_state(a, row).items()}

    def spread_exactly(self, a: int, row: Any) -> dict[int, Fraction]:
        """The rationals of a row of the file by next state."""
        exact = self.number.exact
        return {t: exact(x) for t, x in self._by_state(a, row).items()}


class Mixture(State):
    """The N kernels as the next states of one action, with their losses for stakes."""

    def __init__(self, state: State, losses: Sequence[Number], line: Line) -> None:
        kernels = list(range(len(losses)))
        self.number, self.line, self.actions, self.width = state.number, line, [0], len(kernels)
        self.ambiguity, self.weights = AmbiguitySet("observed", True), [state.number.one]
        self.columns, self.seen, self.leads = {0: kernels}, {0: {*kernels}}, {0: kernels}
        self.rows = {0: [dict(enumerate(state.weights))]}
        self._stakes = {(0, i): loss for i, loss in enumerate(losses)}


class AmbiguitySet:
    """A set around the data: `upper` bounds its worst case, `lower` that of rows that are in it.

    A kind of set says what a row of the data contributes to U (`row`), what the budget does
    (`price`), and how far rows are from the data, kernel by kernel (`distances`).
    """

    scale = 1
    """Budget in a unit of the radius."""
    still = True
    """Whether nothing moves without a budget."""

    def __init__(self, support: str, mean: bool) -> None:
        self.support, self.mean = support, mean

    def row(self, at: State, a: int, i: int, p: Number, dual: Line, k: int, kept: Kept) -> Number:
        """What row i of the k-th action, a, adds to U at p = x_a; dual variables go to `kept`."""
        raise NotImplementedError

    def price(self, at: State, budget: Number, dual: Line, kept: list[Kept]) -> Number:
        """What the budget adds to U."""
        raise NotImplementedError

    def distances(self, at: State, parts: list[list[Any]]) -> Iterable[Number]:
        """The costs of rows, kernel by kernel, from above; one cost of all where they share it."""
        raise NotImplementedError

    def upper(self, at: State, actions: list[int], x: Any, budget: Number, dual: Line) -> Number:
        """U ≥ max_y Σ_a x_a y_a·z_a = Σ_i w_i Σ_a (row i of a at x_a) + (price of the budget)."""
        number, total, fixed = at.number, at.number.zero, self.still and not high(budget) > 0
        kept: list[Kept] = [{} for _ in at.weights]
        for k, a in enumerate(actions):
            p = number(x[a])
            for i, w in enumerate(at.weights if x[a] else ()):
                if fixed:
                    total += w * (p * at.nominal(a, i))
                else:
                    total += w * self.row(at, a, i, p, dual, k, kept[i])
        return total if fixed else total + self.price(at, budget, dual, kept)

    def lower(self, at: State, actions: list[int], budget: Number, rows: Line) -> Row:
        """y_a·z_a by action of rows y in the set: those of the file, or ŷ + (B/C)(y − ŷ)."""
        number = at.number
        values: dict[int, list[Losses]] = {}
        parts: list[list[Any]] = [[] for _ in at.weights]
        for a, given in zip(actions, rows["y"], strict=True):
            need(len(given) == len(parts), f"action {a}: expected {len(parts)} rows")
            values[a] = [self.moved(at, a, i, row, parts[i]) for i, row in enumerate(given)]
        shares: list[Number | None] = []  # None: inside
        for cost in [number(high(cost)) for cost in self.distances(at, parts)]:
            outside = high(cost) > low(budget)
            shares.append(number(max(0, low(budget / cost))) if outside else None)

        def pulled(share: Number | None, nominal: Number, value: Number) -> Number:
            return value if share is None else nominal + share * (value - nominal)

        return {
            a: number.add(
                w * pulled(share, *pair)
                for w, share, pair in zip(at.weights, shares, values[a], strict=True)
            )
            for a in actions
        }

    def moved(self, at: State, a: int, i: int, row: Any, parts: list[Any]) -> Losses:
        """The losses ŷ·z and y·z of a row y of the file, None for ŷ; (y, ŷ) go to `parts`."""
        nominal = at.nominal(a, i)
        if row is None:
            return nominal, nominal
        number, y = at.number, at.spread(a, row)
        mass = number.add(y.values())
        fine = min(map(low, y.values())) >= 0 and low(mass) > 0
        need(fine, f"action {a}: a row is no distribution")
        fine = all(at.allowed(a, t) for t, p in y.items() if high(p) > 0)
        need(fine, f"action {a}: mass where nature must not bring it")
        y = {t: p / mass for t, p in y.items()}
        data = at.rows[a][i]
        parts += [(p, data.get(t, number.zero)) for t, p in y.items()]
        value = number.add(p * at.stake(a, t) for t, p in y.items() if high(p) > 0)
        return nominal, value


class NormBall(AmbiguitySet):
    """(Σ_i w_i ‖y_i − ŷ_i‖^p)^{1/p} ≤ θ, the norm stacked over the actions; ℓ1, ℓ2 or ℓ∞.

    With z scaled by x_a, any e, the dual norm ‖·‖* and 1/p + 1/q = 1, by Hölder's inequality

        U = Σ_i w_i Σ_a [max_t (x_a z_a − e_ia)(t) + e_ia·ŷ_ia] + θ (Σ_i w_i ‖e_i‖*^q)^{1/q}.

    The ℓ1 ball of order 1 is checked around the mean, too: the means of its tuples are the ball
    around the mean. So is total variation, half the ℓ1 norm.
    """

    def __init__(self, given: Line, support: str, number: Arithmetic) -> None:
        super().__init__(support, given.get("around") == "mean")
        metrics: dict[str, Order] = {"l1": Fraction(1), "l2": Fraction(2), "linf": None}
        self.power = metrics[given["metric"]]
        self.order = None if given["order"] == "inf" else number.exact(given["order"])
        fine = given.get("around", "kernels") in AROUND and (self.order is None or self.order >= 1)
        fine = fine and (not self.mean or self.power == self.order == 1)
        need(fine, "a norm of no order, or one around the mean that is not (l1, 1)")
        self.dual_power, self.dual_order = self._dual(self.power), self._dual(self.order)

    @staticmethod
    def _dual(p: Order) -> Order:
        """The q with 1/p + 1/q = 1."""
        if p is None:
            return Fraction(1)
        return None if p == 1 else p / (p - 1)

    def row(self, at: State, a: int, i: int, p: Number, dual: Line, k: int, kept: Kept) -> Number:
        """max_t (p z − e)(t) + e·ŷ; states that are not named have e = rest, and no ŷ."""
        number, data = at.number, at.rows[a][i]
        rest = number(dual["rest"][i] if "rest" in dual else 0)
        spread = at.spread(a, dual["e"][k][i])
        e = {t: x for t, x in spread.items() if at.allowed(a, t)}
        left, ends = at.most(a, e), [p * at.stake(a, t) - x for t, x in e.items()]
        if left is not None:
            fine = self.power == 1 or "rest" not in dual
            need(fine, "only the l1 norm has a rest")
            ends.append(p * left - rest)
            kept[None] = rest
        for t, x in e.items():
            kept[a, t] = x
        return largest(ends) + number.add(x * data[t] for t, x in e.items() if t in data)

    def price(self, at: State, budget: Number, dual: Line, kept: list[Kept]) -> Number:
        """θ (Σ_i w_i ‖e_i‖*^q)^{1/q}."""
        norms = [norm(at.number, e.values(), self.dual_power) for e in kept]
        return budget * norm(at.number, norms, self.dual_order, at.weights)

    def distances(self, at: State, parts: list[list[Any]]) -> Iterable[Number]:
        """(Σ_i w_i ‖y_i − ŷ_i‖^p)^{1/p}, one for all; of order ∞ that of each kernel."""
        number = at.number
        norms = [norm(number, [y - data for y, data in pairs], self.power) for pairs in parts]
        if self.order is None:
            return norms
        return [norm(number, norms, self.order, at.weights)] * len(norms)


class DivergenceBall(AmbiguitySet):
    """Σ_i w_i Σ_a Σ_t φ(y_ia(t); ŷ_ia(t)) ≤ B, around the kernels or, one row, their mean.

    kl φ = y log(y/ŷ) − y + ŷ, burg φ = ŷ log(ŷ/y) + y − ŷ, where y − ŷ vanishes in sums;
    chi2 φ = (y − ŷ)²/ŷ. With g_a = x_a (z_a − max z_a), any κ > 0 and η, and the conjugate
    φ*(s; ŷ) = max_{y ≥ 0} s y − φ(y; ŷ),

        U = Σ_a x_a max z_a + κ B + Σ_i w_i Σ_a [η_ia + Σ_t κ φ*((g_a(t) − η_ia)/κ; ŷ_ia(t))].

    Only burg lets mass go where ŷ = 0: φ is y there, and φ* is 0 for s ≤ 1. As g ≤ 0, −η ≤ κ is
    enough for that. For κ = 0, U has the largest stake that any budget reaches.
    """

    def __init__(self, given: Line, support: str, number: Arithmetic) -> None:
        super().__init__(support, given["around"] == "mean")
        known = given["kind"] in ("kl", "burg", "chi2") and given["around"] in AROUND
        need(known, "an unknown divergence")
        self.kind = given["kind"]

    def row(self, at: State, a: int, i: int, p: Number, dual: Line, k: int, kept: Kept) -> Number:
        """p max z + η + κ Σ_t φ*((p (z − max z) − η)(t)/κ; ŷ(t))."""
        number, top = at.number, at.most(a)
        kappa, eta = number(dual["kappa"]), number(dual["eta"][k][i])
        data = [(at.stake(a, t), y) for t, y in at.rows[a][i].items() if high(y) > 0]
        if dual["kappa"] == 0:
            if self.kind != "burg":
                top = largest(z for z, _ in data)
            return p * top
        fine = dual["kappa"] > 0 and (self.kind != "burg" or -dual["eta"][k][i] <= dual["kappa"])
        need(fine, "kappa, eta: out of range")
        terms = (
            self.conjugate(number, number(high((p * (z - top) - eta) / kappa)), y) for z, y in data
        )
        return p * top + eta + kappa * number.add(terms)

    def conjugate(self, number: Arithmetic, s: Number, y: Number) -> Number:
        """φ*(s; ŷ) from above, increasing in s: kl ŷ (e^s − 1); burg −ŷ log(1 − s), s < 1;
        chi2 ŷ (s + s²/4) from s = −2 on, −ŷ below.

        In floats, s + s²/2 + |s|³ is above e^s − 1 and −log(1 − s) where s is small.
        """
        small = isinstance(s, Interval) and -1e-5 < s.lo <= s.hi < 1e-5
        if small and self.kind != "chi2":
            return y * (s + s * s * (number(0.5) + abs(s)))
        if self.kind == "kl":
            return y * (number.exp(s) - number.one)
        if self.kind == "burg":
            return y * -number.log(number.one - s, up=False)
        return y * (s + s * s * number(0.25)) if high(s) >= -2 else -y

    def price(self, at: State, budget: Number, dual: Line, kept: list[Kept]) -> Number:
        """κ B."""
        return at.number(dual["kappa"]) * budget

    def distances(self, at: State, parts: list[list[Any]]) -> Iterable[Number]:
        """Σ_i w_i Σ_a Σ_t φ, one for all kernels."""
        number = at.number
        sums = (number.add(self.term(number, *pair) for pair in pairs) for pairs in parts)
        return [number.dot(at.weights, sums)] * len(parts)

    def term(self, number: Arithmetic, y: Number, data: Number) -> Number:
        """φ(y; ŷ) from above, without y − ŷ."""
        if not high(data) > 0:
            need(self.kind == "burg" or not high(y) > 0, "an infinite divergence")
            return number.zero
        if self.kind == "kl":
            return y * number.log(y / data, up=True) if high(y) > 0 else number.zero
        if self.kind == "burg":
            need(high(y) > 0, "an infinite divergence")
            return data * number.log(data / y, up=True)
        return (y - data) * (y - data) / data


class TransportBall(AmbiguitySet):
    """Mass goes from j to t at the cost D(j, t): all that moves costs at most θ, D(j, j) = 0.

    Of order 1 there is one budget, for the mean row: the means of its tuples are the ball around
    the mean. Of order ∞ each kernel has one. For any κ ≥ 0

        U = Σ_i w_i [κ_i θ + Σ_a Σ_j ŷ_ia(j) max_t (x_a z_a(t) − κ_i D(j, t))].
    """

    still = False

    def __init__(self, given: Line, support: str, number: Arithmetic) -> None:
        super().__init__(support, given["order"] == 1)
        self.grid: Any = given.get("grid")
        self.lists: Any = given.get("lists")
        fine = given["order"] in (1, "inf") and (self.grid is None) != (self.lists is None)
        need(fine, "an unknown transport")

    def near(self, at: State, a: int, j: int) -> Row:
        """D(j, t) by t, where mass may go from j: ℓ1 distances on a grid, or those of a list."""
        exact, states = at.number.exact, range(len(at.v.exact))
        if self.grid is None:
            found = {t: exact(d) for t, d in self.lists[j] if at.allowed(a, t)}
        else:
            place, places = self.grid[j], self.grid
            found = {
                t: sum(
                    (abs(exact(p) - exact(q)) for p, q in zip(place, places[t], strict=True)),
                    Fraction(0),
                )
                for t in (states if self.support == "all" else at.seen[a])
            }
        fine = all(d >= 0 and t in states for t, d in found.items())
        need(fine, f"distances from state {j}")
        return {t: at.number(d) for t, d in {**found, j: Fraction(0)}.items()}

    def row(self, at: State, a: int, i: int, p: Number, dual: Line, k: int, kept: Kept) -> Number:
        """Σ_j ŷ(j) max_t (p z(t) − κ D(j, t))."""
        kappa = at.number(dual["kappa"][i])
        need(low(kappa) >= 0, "kappa is negative")
        data = at.rows[a][i]
        best = ((y, self.near(at, a, j)) for j, y in data.items() if high(y) > 0)
        return at.number.add(
            y * largest(p * at.stake(a, t) - kappa * d for t, d in near.items()) for y, near in best
        )

    def price(self, at: State, budget: Number, dual: Line, kept: list[Kept]) -> Number:
        """θ Σ_i w_i κ_i."""
        return budget * at.number.dot(at.weights, map(at.number, dual["kappa"]))

    def moved(self, at: State, a: int, i: int, row: Any, parts: list[Any]) -> Losses:
        """The losses ŷ·z and y·z of a plan [[from, to, share of what is there], …]; shares of more
        than all are divided by their sum. What each move costs goes to `parts`.
        """
        number, stay, nominal = at.number, Fraction(1), at.nominal(a, i)
        data = at.rows[a][i]
        moves = [(j, t, number.exact(share)) for j, t, share in row or ()]
        out: dict[int, Fraction] = {}
        near: dict[int, Row] = {}
        for j, _, share in moves:
            need(share >= 0, f"action {a}: a move of less than nothing from {j}")
            out[j] = out.get(j, Fraction(0)) + share
            near[j] = near.get(j) or self.near(at, a, j)
        gone = []
        for j, t, share in moves:
            mass = data[j] * number(share / max(out[j], stay))
            gone.append(mass * at.stake(a, t))
            parts.append(mass * near[j][t])
        left = (
            y * number(stay - min(out.get(j, Fraction(0)), stay)) * at.stake(a, j)
            for j, y in data.items()
            if high(y) > 0
        )
        return nominal, number.add([*left, *gone])

    def distances(self, at: State, parts: list[list[Any]]) -> Iterable[Number]:
        """What the moves of each kernel cost."""
        return map(at.number.add, parts)


class ProbabilityIntervals(AmbiguitySet):
    """A box lo_a(t) ≤ y_a(t) ≤ hi_a(t), one for both sides, in the line of the state.

    For any η, of which the file has η_a − max z_a,

        U = Σ_a x_a [η_a + Σ_t max(lo (z_a − η_a), hi (z_a − η_a))].

    A box whose ends miss 1 by rounding is scaled until they do not.
    """

    still = False

    def __init__(self, given: Line, support: str, number: Arithmetic) -> None:
        super().__init__("all", True)

    def box(self, at: State, a: int) -> dict[int, tuple[Fraction, Fraction]]:
        """The intervals (lo, hi) by next state, some distribution being in them."""
        k = at.actions.index(a)
        lo = at.spread_exactly(a, at.line["lo"][k])
        hi = at.spread_exactly(a, at.line["hi"][k])
        fine = all(0 <= p <= hi.get(t, 0) for t, p in lo.items()) and min(hi.values()) >= 0
        need(fine, f"action {a}: an empty interval")
        least, most = max(sum(lo.values()), Fraction(1)), min(sum(hi.values()), Fraction(1))
        fine = least - 1 < 1e-8 and 1 - most < 1e-8
        need(fine, f"action {a}: no distribution is in the intervals")
        nothing = Fraction(0)
        return {t: (lo.get(t, nothing) / least, p / most) for t, p in hi.items() if p > 0}

    def row(self, at: State, a: int, i: int, p: Number, dual: Line, k: int, kept: Kept) -> Number:
        """p [η + Σ_t max(lo (z − η), hi (z − η))]."""
        number = at.number
        stakes = [(at.stake(a, t), ends) for t, ends in self.box(at, a).items()]
        eta = largest(z for z, _ in stakes) + number(dual["eta"][k])
        most = (largest(number(end) * (z - eta) for end in ends) for z, ends in stakes)
        return p * (eta + number.add(most))

    def price(self, at: State, budget: Number, dual: Line, kept: list[Kept]) -> Number:
        """Nothing: intervals are as wide as the file says."""
        return at.number.zero

    def lower(self, at: State, actions: list[int], budget: Number, rows: Line) -> Row:
        """y_a·z_a by action of the rows of the file, cut to the box and filled up to 1.

        What has no mass gets some only if all else is full.
        """
        number, found = at.number, {}
        for a, row in zip(actions, rows["y"], strict=True):
            box, given = self.box(at, a), at.spread_exactly(a, row)
            nothing = Fraction(0)
            y = {t: min(max(given.get(t, nothing), lo), hi) for t, (lo, hi) in box.items()}
            lack = 1 - sum(y.values())
            if lack > 0:
                room = {t: (hi - y[t]) * (y[t] > 0) for t, (_, hi) in box.items()}
            else:
                room = {t: y[t] - lo for t, (lo, _) in box.items()}
            if lack > sum(room.values()):
                room = {t: hi - y[t] for t, (_, hi) in box.items()}
            if lack:
                total = sum(room.values())
                y = {t: p + lack * room[t] / total for t, p in y.items()}
            found[a] = number.add(number(p) * at.stake(a, t) for t, p in y.items())
        return found


class Reweighting(AmbiguitySet):
    """Mixtures Σ_i q_i ŷ_i of the kernels, one for all actions, with q near the weights w.

    q is in a set of rows over the kernels around w: a divergence ball; for cvar at the level θ,
    0 ≤ q ≤ w/θ; for any, 0 ≤ q ≤ 1. U and L are that set's, with kernels for next states and their
    losses Σ_a x_a ŷ_ia·z_a for stakes.
    """

    def __init__(self, given: Line, support: str, number: Arithmetic) -> None:
        super().__init__(support, False)
        self.level = given["kind"] == "cvar"
        inner = ProbabilityIntervals if given["kind"] in ("cvar", "any") else divergence_ball
        self.inner: AmbiguitySet = inner({**given, "around": "mean"}, "observed", number)

    def mixture(self, at: State, budget: Number, losses: Sequence[Number]) -> Mixture:
        """The kernels as next states; the budget of cvar is its level."""
        level = Fraction(low(budget)) if self.level else Fraction(0)
        need(level <= 1, "a level above 1")
        most = [w / level if level else Fraction(1) for w in at.exact_weights]
        return Mixture(at, losses, {"lo": [[0] * len(most)], "hi": [most]})

    def upper(self, at: State, actions: list[int], x: Any, budget: Number, dual: Line) -> Number:
        """U of the set of weights at the losses Σ_a x_a ŷ_ia·z_a."""
        number = at.number
        losses = [
            number.add(number(x[a]) * at.nominal(a, i) for a in actions if x[a])
            for i in range(len(at.weights))
        ]
        mixture = self.mixture(at, budget, losses)
        return self.inner.upper(mixture, [0], [1], budget * number(self.inner.scale), dual)

    def lower(self, at: State, actions: list[int], budget: Number, rows: Line) -> Row:
        """Σ_i q_i ŷ_ia·z_a by action: the weights q of the file are the same for all actions, and
        so are their distance and, in a box, where they are cut.
        """
        number, kernels = at.number, range(len(at.weights))
        mixtures = {
            a: self.mixture(at, budget, [at.nominal(a, i) for i in kernels]) for a in actions
        }
        size = budget * number(self.inner.scale)
        return {a: self.inner.lower(mixtures[a], [0], size, rows)[0] for a in actions}


def divergence_ball(given: Line, support: str, number: Arithmetic) -> AmbiguitySet:
    """A ball by a divergence; total variation is half the ℓ1 norm."""
    if given["kind"] != "tv":
        return DivergenceBall(given, support, number)
    ball = NormBall({"metric": "l1", "order": 1, "around": given["around"]}, support, number)
    ball.scale = 2
    return ball


FAMILIES: dict[str, Callable[[Line, str, Arithmetic], AmbiguitySet]] = {
    "norm": NormBall,
    "divergence": divergence_ball,
    "transport": TransportBall,
    "reweighting": Reweighting,
    "intervals": ProbabilityIntervals,
}


# ---------------------------------------------------------------------- sweeps


class Values:
    """v as it stands in the file; what of it is in stakes is negated where nature helps.

    `flat` is a cost of all steps instead of the model's, `rate` is taken off costs per unit of
    time.
    """

    def __init__(
        self,
        number: Arithmetic,
        model: Model,
        given: Any,
        rates: dict[tuple[int, int], Fraction],
        sign: int,
        *,
        flat: float | None = None,
        ends: list[float] | None = None,
        rate: Fraction | int = 0,
    ) -> None:
        fine = isinstance(given, list) and len(given) == model.S
        need(fine, f"values: expected {model.S} numbers")
        self.exact = [number.exact(x) for x in given]
        self.sign, self.rates, self.flat, self.rate = sign, rates, flat, rate
        triples = zip(self.exact, ends or model.ends, model.terminal, strict=True)
        fine = all(x == worth for x, worth, end in triples if end)
        need(fine, "a value in a terminal state is not what it ends with")
        self.order = sorted(range(model.S), key=lambda t: -sign * self.exact[t])
        different = {*rates.values()}
        self._alike: list[Fraction] = []
        if len(different) == 1:
            self._alike = [sign * min(different) * x for x in self.exact]

    def ahead(self, s: int, a: int, t: int) -> Fraction:
        """λ(s, a) v(t)."""
        return self._alike[t] if self._alike else self.sign * self.rates[s, a] * self.exact[t]


class Step(NamedTuple):
    """What a sweep shows of a state."""

    lower: Fraction
    """L − v, 0 if it is not asked for."""
    upper: Fraction
    """U − v, likewise."""
    reach: set[int] | None
    """Next states that nature can reach under some action; None if all."""
    cheapest: float
    """The least cost of an action that x plays."""


class Sweep(NamedTuple):
    """Bounds that are proved and bounds that are claimed, by state."""

    lower: list[float]
    upper: list[float]
    claimed_lower: list[Any]
    claimed_upper: list[Any]


class Failure(NamedTuple):
    """A bound that is weaker than what is claimed."""

    sweep: int
    state: int
    proved: float
    claimed: Any


Bounds = dict[int, tuple[list[float], list[Any]]]
"""By side, what is proved and what is claimed."""


class Proof:
    """A proof, read line after line, and what it proves: `bounds` has a `Sweep` for each stage.

    `prices`: the costs of the stages, if they have their own.
    """

    model: Model
    """Of the stage that is being read, like `ambiguity`, `alone` and `mixture`."""
    ambiguity: AmbiguitySet
    alone: bool
    """Whether actions are bounded one by one."""
    mixture: list[Number]
    """The weights of the kernels."""

    def __init__(
        self, path: str, models: list[Model], prices: Array | None, number: Arithmetic
    ) -> None:
        self.models, self.prices, self.number, self.at = models, prices, number, 0
        self.radii: list[Any] = []
        """The smallest and the largest radius, as the file has them."""
        self.costs: list[Any] = [0, 0]
        """The smallest and the largest cost, of a unit of time for averages; and 0."""
        self.sets: dict[str, int] = {}
        self.rates = (Fraction(1), Fraction(0))
        """The smallest and the largest discount."""
        self.wrong: list[tuple[int, Fraction]] = []
        """Steps that have the wrong sign."""
        self.times: list[float] = []
        """Bounds on expected steps by state."""
        self._given: dict[int, Any] = {}
        with open(path, "rb") as self._stream, refusing(lambda: f"line {self.at}"):
            self._begin(self._line())
            self.bounds = list(self._sweeps())
            over = self._line() == {"end": True} and not self._stream.read(1)
            need(over, "does not end where it should")

    def _line(self) -> Line:
        """Read a line."""
        self.at += 1
        text, message = self._stream.readline(LIMIT), "cut off, or not an object"
        need(text.endswith(b"\n"), message)
        line: Line = parsed(text)
        need(isinstance(line, dict), message)
        return line

    def _begin(self, header: Line) -> None:
        """Read what the proof is of, and refuse what does not fit together or the files given."""
        self.header, self.model, self.stages = header, self.models[0], header.get("stages")
        self.criterion = criterion = header.setdefault("criterion", "discounted")
        form = FORMATS[criterion != "discounted"]
        need(header["format"] == form, f"expected format {form!r}, got {header['format']!r}")
        self.helps = header["nature"] == "cooperative"
        self.optimum = header["kind"] == "optimum"
        self.discount: Fraction | None = None
        if self.stages is not None and header["discount"] is not None:
            self.discount = self.number.exact(header["discount"])
        fine = self.stages is None or (type(self.stages) is int and self.stages > 0)
        fine = fine and len(self.models) in (1, self.stages)
        fine = fine and len({(model.S, model.maximise) for model in self.models}) == 1
        need(
            fine and 0 <= (self.discount or 0) <= 1,
            f"stages {self.stages!r}, discount {header.get('discount')!r}, "
            f"{len(self.models)} models: do not fit",
        )
        given = self.prices.shape[0] if self.prices else None
        need(
            (self.stages if "costs" in header else None) == given,
            "costs of the stages: expected in an .npy file if the proof says that they have their "
            "own, and only then",
        )
        fine = not self.stages or criterion in ("discounted", "reach")
        need(fine, f"stages and the criterion {criterion!r}: do not fit")
        if criterion in ("reach", "average"):
            self.discount = Fraction(1)
        self.rate = self.number.exact(header.get("rate", 0))
        timed = criterion == "average" and self.model.sojourn
        need(not self.rate or timed, "rate: goes with an average, and steps that last")
        if criterion == "reach":
            need(not self.prices, "costs of the stages: a probability has none")
            need(type(header["minimise"]) is bool, "minimise: expected true or false")
            for model in self.models:
                model.aim(header["target"], header["avoid"], header["minimise"])
            last = self.models[-1].terminal if self.stages else []
            fine = not any(
                x for x, end in zip(header.get("final", []), last, strict=False) if not end
            )
            need(fine, "final: a probability is 0 where the process has not ended")

    def _stage(self, t: int, line: Line) -> None:
        """Take the model and the set of a stage: its line's, or else the header's."""
        own = ("model", "set", *SHAPE) if self.stages else ()
        given = self.header | {name: line[name] for name in own if name in line}
        self.model, family = self.models[t % len(self.models)], given["set"]["family"]
        for name, known in KNOWN.items():
            need(given[name] in known, f"{name}: expected one of {known}, got {given[name]!r}")
        need(
            given["moves"] == self.model.moves,
            f"the set moves {given['moves']}, the model has {self.model.moves}; "
            "model.stored() has states",
        )
        need(
            given["model"] == self.model.digest,
            "the model is not the one that the proof is about",
        )
        fine = given["moves"] == "states" or family in ("norm", "divergence")
        need(family in FAMILIES and fine, f"cannot check the set {family!r} yet")
        fields = ["family", *SET_FIELDS.get(family, ())]
        unknown = given["set"].keys() - {*fields}
        need(not unknown, f"the set {family!r} has no {', '.join(sorted(unknown))[:80]}")
        if self.prices:
            shape, numbers = self.prices
            size = len(numbers) // shape[0]
            self.model.price(shape[1:], numbers[t * size : (t + 1) * size])
        self.ambiguity = FAMILIES[family](given["set"], given["support"], self.number)
        self.alone = given["rectangular"] == "sa"
        self.mixture = [self.number(w) for w in self.model.weights]
        shape_words = ", ".join(f"{name} {given[name]}" for name in SHAPE)
        words = json.dumps({name: given["set"][name] for name in fields if name in given["set"]})
        self.sets[f"{words[:200]}, {shape_words}"] = t

    def _policy(self, s: int, line: Line, state: State) -> list[Fraction]:
        """Read x, and divide it by its sum; where nature helps and x is chosen, it is pure."""
        x = [self.number.exact(p) for p in line["x"]]
        need(len(x) == self.model.A and min(x) >= 0 and sum(x) > 0, "x is no policy")
        absent = any(p for a, p in enumerate(x) if a not in state.actions)
        need(not absent, "x plays an action that is not there")
        total = sum(x)
        return [p / total for p in x]

    def _count_costs(self, s: int, state: State) -> dict[int, list[float]]:
        """The costs of a state that are known, by action; `costs` gets their range."""
        costs = {
            a: [c for c in (cost.values() if isinstance(cost, dict) else [cost]) if isfinite(c)]
            for a, cost in state.costs.items()
        }
        times = self.model.sojourn if self.criterion == "average" else None
        each = [
            Fraction(c) / (times[s, a] if times else 1) for a, known in costs.items() for c in known
        ]
        self.costs = [end([*self.costs, *each]) for end in (min, max)]
        return costs

    def _step(self, v: Values, s: int, line: Line, sides: list[int], dual: str = "up") -> Step:
        """L − v and U − v of a state, of the sides that are asked for.

        Without a budget for each action: U of all actions at x, and L, the least over the actions
        or, of a given policy, their mean at x. With one: U = Σ_a x_a U_a. Where nature helps, she
        maximises negated stakes: −U is below and −L above; if x is chosen too, U is the largest
        over the actions, each with the whole budget, and L is that of the action that x plays.
        """
        number, ambiguity = self.number, self.ambiguity
        need(line["s"] == s, f"expected state {s}, got {line['s']!r}")
        state = State(self, v, s, line)
        x = self._policy(s, line, state)
        costs = self._count_costs(s, state)
        bets = self.helps and self.optimum
        alone = bets or self.alone
        need(not bets or max(x) == 1, "with a nature that helps, x plays one action")
        same = line["r"], line.get("lo"), line.get("hi"), None if self.optimum else x
        need(
            self.stages or self._given.setdefault(s, same) == same,
            "two sweeps differ in a radius, in intervals, or in the policy that was given",
        )
        groups = [[a] for a in state.actions] if alone else [state.actions]
        bound, answer = ((1 - self.helps) in sides, int(self.helps) in sides)
        nothing = [None] * len(groups)
        duals, answers = (
            ((line[name] if alone else [line[name]]) if ask else nothing)
            for name, ask in ((dual, bound), ("low", answer))
        )
        sizes = line["r"] if isinstance(line["r"], list) else [line["r"]] * len(groups)
        shown = [0] if isinstance(ambiguity, ProbabilityIntervals) else sizes
        self.radii = [end([*self.radii, *shown]) for end in (min, max)]
        above: list[Number] = [] if bound else [number.zero]
        below: dict[int, Number] = {}
        for actions, size, up, down in zip(groups, sizes, duals, answers, strict=True):
            budget = number(number.exact(size) * ambiguity.scale)
            need(low(budget) >= 0, "a negative radius")
            if bound and (bets or any(x[a] for a in actions)):
                share = number(x[actions[0]] if alone and not bets else 1)
                played = dict.fromkeys(actions, 1) if alone else x
                above.append(share * ambiguity.upper(state, actions, played, budget, up))
            if answer:
                below |= ambiguity.lower(state, actions, budget, down)
            else:
                below |= dict.fromkeys(actions, number.zero)
        most = Fraction(high(largest(above) if bets else number.add(above)))
        least = low(number.add(number(x[a]) * below[a] for a in state.actions))
        if self.optimum and not self.helps:
            least = min(map(low, below.values()))
        least = Fraction(least)
        cheapest = min(c for a, known in costs.items() if x[a] for c in known)
        lower, upper = (-most, -least) if self.helps else (least, most)
        return Step(lower, upper, self._reach(state), cheapest)

    def _reach(self, state: State) -> set[int] | None:
        """Next states that nature can reach under some action, for stages; None if all."""
        if not self.stages or (self.ambiguity.support == "all" and self.model.moves == "states"):
            return None
        return {
            state.leads[a][t]
            for a in state.actions
            for t in state.columns[a]
            if state.allowed(a, t)
        }

    def _sweep(self, t: int, after: tuple[Any, Any] | None, sides: list[int]) -> Bounds:
        """Read a sweep; `after` has the bounds of the stage after, if there are stages."""
        line = self._line()
        self._stage(t, line)
        model, number, zero = self.model, self.number, Fraction(0)
        sign, rates = -1 if self.helps else 1, model.rates(self.discount)
        v = Values(number, model, line["v"], rates, sign, rate=self.rate)
        w = None
        if "w" in line and sides == [UPPER]:
            free = [0.0] * model.S
            w = Values(number, model, line["w"], rates, sign, flat=1.0, ends=free)
        self._fit(rates, bool(after))
        steps, times = [], {}
        for s in range(model.S):
            if model.terminal[s]:
                steps.append(Step(zero, zero, {s}, 0.0))
                continue
            own = self._line()
            steps.append(self._step(v, s, own, sides))
            if w:
                times[s] = w.exact[s] + self._step(w, s, own, sides, "time").upper
        timed = False
        if w and min(w.exact) >= 0 and all(x <= w.exact[s] for s, x in times.items()):
            timed, self.times = True, [rounded(x, 1) for x in times.values()]
        claims = {k: [number.exact(x) for x in line[("lower", "upper")[k]]] for k in sides}
        fine = all(len(claim) == model.S for claim in claims.values())
        need(fine, "lower, upper: of another size")
        found = {}
        for k in sides:
            bounds = self._criterion(k, v, steps, after, timed)
            pairs = zip(bounds, model.ends, model.terminal, strict=True)
            found[k] = [worth if end else x for x, worth, end in pairs], claims[k]
        return found

    def _fit(self, rates: Mapping[Any, Fraction], staged: bool) -> None:
        """Discounted costs have λ < 1, or stages; other criteria λ = 1."""
        least, most = min(rates.values(), default=1), max(rates.values(), default=0)
        if self.criterion == "discounted":
            fine = staged or all(x < 1 for x in rates.values())
        else:
            fine = all(x == 1 for x in rates.values())
        need(
            fine,
            f"the criterion {self.criterion!r} and discounts from {float(least)!r} do not fit",
        )
        self.rates = Fraction(min(self.rates[0], least)), Fraction(max(self.rates[1], most))

    def _criterion(
        self, k: int, v: Values, steps: list[Step], after: tuple[Any, Any] | None, timed: bool
    ) -> list[float]:
        """Bounds of a side from the steps of a sweep."""
        if after:
            return staged_bounds(k, v, steps, self.model, after[k])
        if self.criterion == "discounted":
            return discounted_bounds(k, v, steps, self.model, self.costs[k])
        if self.criterion == "average":
            return average_bounds(k, v, steps, self.model, self.costs[k])
        strict = total_strict if self.criterion == "total" else reach_strict
        wrong = wrong_steps(k, steps, self.model, strict(k, v, steps, self.model, timed))
        self.wrong += wrong
        return signed_bounds(k, v, steps, wrong)

    def _sweeps(self) -> Iterator[Sweep]:
        """Read all sweeps: stages from the last one back; else sides may have one each, or none."""
        if self.stages:
            final = Values(self.number, self.models[-1], self.header["final"], {}, 1).exact
            after: tuple[Any, Any] = (final, final)
            for t in reversed(range(self.stages)):
                found = self._sweep(t, after, SIDES["both"])
                after = found[LOWER][0], found[UPPER][0]
                yield Sweep(*after, found[LOWER][1], found[UPPER][1])
            return
        both: Bounds = {}
        for k, end in ((LOWER, -inf), (UPPER, inf)):
            both[k] = ([end] * self.model.S,) * 2
        names = self.header.get("sweeps", ["both"])
        known = ["both"], ["upper"], ["lower"], ["lower", "upper"]
        need(names in known, f"sweeps: {str(names)[:80]}")
        for name in names:
            both |= self._sweep(0, None, SIDES[name])
        yield Sweep(both[LOWER][0], both[UPPER][0], both[LOWER][1], both[UPPER][1])

    def failures(self) -> Iterator[Failure]:
        """Where less is proved than claimed."""
        for k, sweep in enumerate(self.bounds):
            for s, (lower, upper, least, most) in enumerate(zip(*sweep, strict=True)):
                if lower < least:
                    yield Failure(k, s, lower, least)
                if upper > most:
                    yield Failure(k, s, upper, most)


# ---------------------------------------------------------------------- criteria
#
# From U − v and L − v of all states, of one side k (0 below, 1 above), to bounds. Bounds are
# rounded outwards to floats.


def weaker_discount(k: int, v: Values, model: Model, s: int, ahead: Fraction) -> Fraction:
    """The discount of a state at which what is ahead does least for a bound: of its actions, the
    largest λ(s, a) where it is above 0 for an upper bound, or below for a lower one; else the
    least.
    """
    rates = [v.rates[s, a] for a in model.actions(s)] or [Fraction(0)]
    return max(rates) if (ahead > 0) == (k == UPPER) else min(rates)


def extreme(k: int, numbers: Iterable[Any]) -> Any:
    """The least of some numbers for the lower side, the largest for the upper one."""
    return max(numbers) if k == UPPER else min(numbers)


def side(k: int, step: Step) -> Fraction:
    """L − v or U − v."""
    return step.upper if k == UPPER else step.lower


def outwards(k: int, x: Fraction) -> float:
    """A float below a lower bound, or above an upper one."""
    return rounded(x, 2 * k - 1)


def within(k: int, bound: Fraction, limit: Fraction) -> Fraction:
    """The better of two bounds: the larger lower one, the smaller upper one."""
    return min(bound, limit) if k == UPPER else max(bound, limit)


def staged_bounds(
    k: int, v: Values, steps: list[Step], model: Model, after: Sequence[Any]
) -> list[float]:
    """Stage by stage: U + λ max_t (upper − v)(t) and L + λ min_t (lower − v)(t), with the bounds of
    the stage after, over the t that nature can use.
    """
    off = [Fraction(x) - old for x, old in zip(after, v.exact, strict=True)]
    everywhere = extreme(k, off)
    bounds = []
    for s, step in enumerate(steps):
        reach = step.reach
        ahead = everywhere if reach is None else extreme(k, (off[t] for t in reach))
        rate = weaker_discount(k, v, model, s, ahead)
        bounds.append(outwards(k, v.exact[s] + side(k, step) + rate * ahead))
    return bounds


def discounted_bounds(k: int, v: Values, steps: list[Step], model: Model, cost: Any) -> list[float]:
    """For ever: U + λ max(U − v)/(1 − λ) bounds the worst case of x from above,
    L + λ min(L − v)/(1 − λ) the optimum from below. Where actions differ in λ, that of a step, and
    of what follows, is the one that gives the weaker bound. No value is beyond what the extreme
    cost for ever, and the ends, allow.
    """
    far = extreme(
        k,
        (
            side(k, step) / (1 - weaker_discount(k, v, model, s, side(k, step)))
            for s, step in enumerate(steps)
        ),
    )
    most = max(v.rates.values(), default=Fraction(0))
    limit = extreme(k, [Fraction(cost) / (1 - most), *map(Fraction, model.ends)])
    bounds = []
    for s, step in enumerate(steps):
        bound = v.exact[s] + side(k, step) + weaker_discount(k, v, model, s, far) * far
        bounds.append(outwards(k, within(k, bound, limit)))
    return bounds


def average_bounds(k: int, v: Values, steps: list[Step], model: Model, cost: Any) -> list[float]:
    """Average, λ = 1: the worst case of x is at most max(U − v) a step, the optimum at least
    min(L − v), from every start; none is beyond all costs.

    Where steps last τ(s, a), costs are c − rτ with a rate r of the file: per unit of time the worst
    case is at most r + d/τ, d = max(U − v), with the least τ if d > 0 and the largest otherwise;
    the other way round for min(L − v).
    """
    need(not any(model.terminal), "the average of a process that ends")
    far = extreme(k, (side(k, step) for step in steps))
    lasts: list[Any] = [1, 1]
    if model.sojourn:
        lasts = [min(model.sojourn.values()), max(model.sojourn.values())]
    better = far * (2 * k - 1) < 0
    bound = v.rate + far / lasts[better]
    return [outwards(k, within(k, bound, Fraction(cost)))] * len(steps)


def total_strict(k: int, v: Values, steps: list[Step], model: Model, timed: bool) -> set[int]:
    """Total, λ = 1: where U − v < 0 is asked for. U ≤ v, and < v where the process goes on: v
    bounds the worst case of x, which arrives if costs are not negative; else w shows that it does,
    w ≥ 0 and F^x(w) ≤ w with costs 1. L ≥ v: nobody who arrives pays less than v.
    """
    if k == LOWER or timed:
        return set()
    strict = {s for s in range(model.S) if not model.terminal[s]}
    fine = not strict or min(step.cheapest for step in steps) >= 0
    need(fine, "costs below 0, and no times that show that the policy arrives")
    return strict


def reach_strict(k: int, v: Values, steps: list[Step], model: Model, timed: bool) -> set[int]:
    """Probability, λ = 1, costs 0, −1 (1 if minimised) in the target: where U − v < 0 or L − v > 0
    is asked for. v bounds the worst case of x if U ≤ v, and < v where v < 0; the optimum if L ≥ v,
    and > v where v > 0.
    """
    way = 2 * k - 1
    return {s for s in range(model.S) if not model.terminal[s] and way * v.exact[s] < 0}


def wrong_steps(
    k: int, steps: list[Step], model: Model, strict: set[int]
) -> list[tuple[int, Fraction]]:
    """The steps with U > v or L < v, and those of 0 that have to be strict."""
    way, wrong = 2 * k - 1, []
    for s, step in enumerate(steps):
        x = side(k, step)
        if not model.terminal[s] and (way * x > 0 or (s in strict and not x)):
            wrong.append((s, x))
    return wrong


def signed_bounds(
    k: int, v: Values, steps: list[Step], wrong: list[tuple[int, Fraction]]
) -> list[float]:
    """U or L, if all steps go the right way; else nothing is bounded."""
    if wrong:
        return [(2 * k - 1) * inf] * len(steps)
    return [outwards(k, v.exact[s] + side(k, step)) for s, step in enumerate(steps)]


# ---------------------------------------------------------------------- statements

COARSE = 1e-9
"""Share of the largest bound that floats may lose of what is claimed."""


def check(proof: Any, files: Any, interval: bool = False) -> Proof:
    """Check a proof of the model in a file, or of those of the stages, and their costs, an .npy
    file; what is not proved with 40 digits is tried with 150.
    """
    data: dict[str, Model] = {}
    models: list[Model] = []
    prices: Array | None = None
    for path in map(os.fspath, files if isinstance(files, list) else [files]):
        with refusing(f"{path}: cannot be read"):
            if path.endswith(".npy"):
                need(prices is None, "costs of the stages are one file")
                with open(path, "rb") as stream:
                    prices = read_npy(stream, path, os.path.getsize(path))
            else:
                if path not in data:
                    data[path] = Model(path)
                models.append(data[path])
    with refusing(str(proof)):
        found = Proof(proof, models, prices, Arithmetic(interval, 40))
        if interval or next(found.failures(), None) is None:
            return found
        return Proof(proof, models, prices, Arithmetic(False, 150))


def final_words(values: Sequence[Any]) -> str:
    """The range of values that a process ends with."""
    return f", final values from {values[0]!r} to {values[-1]!r}"


def states_words(states: list[int]) -> str:
    """The first states of a list, and how many more there are."""
    more = len(states) - 10
    return f"{str(states[:10])[1:-1]}{f' and {more} more' if more > 0 else ''}"


def radius_words(proof: Proof) -> str:
    """The range of radii; where all states are terminal there are none."""
    if not proof.radii:
        return "of no state: all are terminal"
    least, most = proof.radii
    return f"from {least!r} to {most!r} over the states"


def criterion_words(proof: Proof) -> str:
    """What was asked for."""
    header, model = proof.header, proof.model
    if proof.criterion == "reach":
        target, avoid = states_words(header["target"]), states_words(header["avoid"])
        within = f" in at most {proof.stages} steps" if proof.stages else ""
        without = f" without {avoid}" if avoid else ""
        which = "least" if header["minimise"] else "largest"
        return f"{which} probability to reach state {target}{without}{within}"
    if proof.criterion == "average":
        unit = "unit of time" if model.sojourn else "step"
        return f"average for each {unit} in the long run"
    values = sorted(x for x, end in zip(model.ends, model.terminal, strict=True) if end)
    ends = final_words(values) if values and (values[0] or values[-1]) else ""
    if proof.criterion == "total":
        steps = f"steps ≤ {max(proof.times):.6g}" if proof.times else "steps not bounded"
        return f"total until a terminal state, which is reached for sure{ends}; {steps}"
    if proof.stages:
        sign = -1 if model.maximise else 1
        ends = final_words(sorted(sign * x for x in header.get("final", [0])))
    rates = " to ".join(map(repr, dict.fromkeys(map(float, proof.rates))))
    return f"discount {rates}{ends}"


def largest_gap(proof: Proof) -> float:
    """The largest distance of two bounds."""
    sweeps = proof.bounds
    return max(upper - x for sweep in sweeps for x, upper in zip(*sweep[:2], strict=True))


def largest_bound(proof: Proof) -> float:
    """The largest bound that is finite, without its sign; 0 if there is none."""
    sides = [side for sweep in proof.bounds for side in sweep[:2]]
    return max((abs(x) for bounds in sides for x in bounds if abs(x) < inf), default=0.0)


def largest_miss(proof: Proof, failures: list[Failure]) -> float:
    """By how much claims, and steps of the wrong sign, miss what is proved."""
    misses = [
        abs(failure.claimed - Fraction(failure.proved))
        for failure in failures
        if abs(failure.proved) < inf
    ]
    return float(max([Fraction(0), *misses, *(abs(x) for _, x in proof.wrong)]))


def show(proof: Proof) -> int:
    """Print what is proved: 0 if it is all that is claimed, 3 if floats are too coarse to tell,
    else 1.
    """
    header, failures, S = proof.header, list(proof.failures()), proof.model.S
    sign, stages = -1 if proof.model.maximise else 1, proof.stages
    least, most = sorted(sign * bounds[0] + 0.0 for bounds in proof.bounds[-1][:2])
    gap, size, off = largest_gap(proof), largest_bound(proof), largest_miss(proof, failures)
    more = f", {len(proof.sets)} in all" if len(proof.sets) > 3 else ""
    sets = " and ".join([*proof.sets][::-1][:3])
    first = f", first of {stages} stages" if stages else ""
    way = "floats rounded outwards" if proof.number.interval else "exact arithmetic"
    sides = "both bounds" if gap < inf else "those bounds that are finite,"
    print(f"set         {sets}{more}, nature {header['nature']}")
    print(f"radius      {radius_words(proof)}")
    print(f"criterion   {criterion_words(proof)}")
    print(
        f"state 0     {header['kind']} from {least!r} to {most!r}{first}; any gap ≤ {gap:.3e}",
    )
    print(f"checked     in {way}: SHA-256 of the model, {sides} of {S} states")
    print(
        "not checked whether model, set and policy are what you mean; names, start; "
        f"who wrote it: drmdp {printable(header.get('version'))[:40]}, it says"
    )
    for s, x in proof.wrong[:5]:
        print(
            f"not proved: state {s}: a step by {float(x):.3e} goes the wrong way, or nowhere; "
            "nothing is bounded from that side"
        )
    for k, s, proved, claimed in failures[:5]:
        where = f"state {s}, stage {stages - k} of {stages}" if stages else f"state {s}"
        theirs, ours = (sign * float(x) + 0.0 for x in (claimed, proved))
        print(f"not proved: {where}: {theirs!r} is claimed, {ours!r} is proved")
    if failures:
        print(f"{len(failures)} of the claimed bounds are not proved, by up to {off:.3e}")
    else:
        print("all claimed bounds hold")
    if not (proof.number.interval and 0 < off <= COARSE * size):
        return 1 if failures else 0
    print(
        f"that is at most {COARSE} of the largest bound, {size:.6g}: floats may be too coarse; "
        "exact arithmetic, without --interval, tells"
    )
    return 3


# ---------------------------------------------------------------------- command line

USAGE = (
    "usage: python -m drmdp_check [--interval] PROOF MODEL [MODEL of the second stage …] "
    "[COSTS of the stages.npy]"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check a proof and show what it proves; returns 2 if a file is refused."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    interval, files = "--interval" in given, [word for word in given if word != "--interval"]
    try:
        need(len(files) > 1, USAGE)
        return show(check(files[0], files[1:], interval))
    except Refused as error:
        print(f"refused: {printable(error)}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
