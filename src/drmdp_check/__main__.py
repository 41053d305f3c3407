"""Check a proof that drmdp wrote, without drmdp: `python -m drmdp_check run.proof model.npz`, or this file alone. A plan may have a model for each stage.

Standard library only. Floats are exact rationals, and all arithmetic is exact (`fractions`); with `--interval` it is done in floats rounded outwards. Roots,
logarithms and exponentials are enclosed by `decimal`, whose results are correctly rounded: one step further in the needed direction is a bound.

**The problem.** States s, actions a, next states t, costs c(s, a, t), discount λ or λ(s, a), N kernels ŷ_i with weights w_i. Rows and weights stand for
themselves divided by their sums; kernels of weight 0 do not exist. In every state nature picks y from a set around the data, and the agent a policy x. With
z_a(t) = c(s, a, t) + λ v(t) and y_a = Σ_i w_i y_ia
    F^x(v)(s) = max_y Σ_a x_a y_a·z_a,     F_y(v)(s) = min_a y_a·z_a,     and what it ends with in terminal states.
The file holds v, x, a y for every state and what shows that no y does more. U ≥ F^x(v), and L ≤ F_y(v) or, for a given policy, L ≤ Σ_a x_a y_a·z_a, follow.
  for ever        U + λ max(U − v)/(1 − λ) bounds the worst case of x from above, L + λ min(L − v)/(1 − λ) the optimum from below. Where actions of a state
                  differ in λ, that of a step, and of what follows, is the one that gives the weaker bound: the largest for U − v > 0, the least for U − v < 0
  total           λ = 1. U ≤ v, and < v where the process goes on: v bounds the worst case of x, which arrives if costs are not negative; else w shows that it
                  does, w ≥ 0 and F^x(w) ≤ w with costs 1. L ≥ v: nobody who arrives pays less than v
  probability     λ = 1, costs 0, −1 (1 if minimised) in the target. v bounds the worst case of x if U ≤ v, and < v where v < 0; the optimum if
                  L ≥ v, and > v where v > 0
  average         λ = 1. The worst case of x is at most max(U − v) a step, the optimum at least min(L − v), from every start; none is beyond all costs.
                  Where steps last τ(s, a), costs are c − rτ with a rate r of the file: per unit of time the worst case is at most r + d/τ, d = max(U − v),
                  with the least τ if d > 0 and the largest otherwise; the other way round for min(L − v)
  stage by stage  U + λ max_t (upper − v)(t) and L + λ min_t (lower − v)(t), with the bounds of the stage after, over the t that nature can use
  a helper        minimises: she maximises negated stakes, and U and L change places and signs. If x is chosen, she has a whole budget for the one action that
                  is played, and L is the least over the actions

**U, one state.** Weak duality holds for all numbers that the file may bring; g_a = x_a (z_a − max z_a):
  norms         Σ_i w_i Σ_a [max_t (x_a z_a − e_ia)(t) + e_ia·ŷ_ia] + θ (Σ_i w_i ‖e_i‖*^q)^{1/q}, 1/p + 1/q = 1, ‖·‖* the dual norm, any e (Hölder)
  divergences   Σ_a x_a max z_a + κ B + Σ_i w_i Σ_a [η_ia + Σ_t κ φ*((g_a(t) − η_ia)/κ; ŷ_ia(t))], any κ > 0 and η, φ* the conjugate of the cost of an entry:
                kl ŷ (e^s − 1);   burg −ŷ log(1 − s), s < 1;   chi2 ŷ (s + s²/4) from s = −2 on, −ŷ below.   Total variation is half the ℓ1 norm
  transport     Σ_i w_i [κ_i θ + Σ_a Σ_j ŷ_ia(j) max_t (x_a z_a(t) − κ_i D(j, t))], any κ ≥ 0
  intervals     Σ_a x_a [η_a + Σ_t max(lo (z_a − η_a), hi (z_a − η_a))], any η; the file has η_a − max z_a
  re-weighting  a set of mixtures of the kernels around w: the same, with kernels for next states and their losses for stakes; cvar: 0 ≤ q ≤ w/θ

Around the mean there is one row, Σ_i w_i ŷ_i. The ℓ1 ball of order 1, total variation and transport of order 1 are checked there too: the means of their
tuples are the ball around the mean. With a budget for each action (sa) every action is bounded alone, and U = Σ_a x_a U_a. Where nature moves the laws
of events, events e are in the place of next states, and z_a(e) = c(s, a, e) + λ v(f(s, a, e)).

**Reading.** In `kernels`, numbers from −1e-9 to 0 are 0. Rows, laws and weights of K numbers, but for float32 in `data`, are divided in doubles by their sums,
correctly rounded, where these are off 1 by more than 2 (K + 2) 2⁻⁵². What that gives is the model, and stands for itself divided by its sums, exactly.

**L, one state.** Rows of the file are divided by their sums, and must not leave where nature may go. Their cost C is measured by the set's definition, from
above. All costs are convex and 0 at the data: if C exceeds the budget B, the rows ŷ + (B/C)(y − ŷ) are in the set and count instead.
"""

import ast
import hashlib
import json
import os
import struct
import sys
import zipfile
from array import array
from contextlib import contextmanager
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import fsum, inf, isfinite, nan, nextafter, prod

FORMATS, COARSE = ("drmdp proof 1", "drmdp proof 2"), 1e-9  # share of the largest bound that floats may lose of what is claimed
LIMIT, SAFE = 1 << 33, 1 << 30  # bytes of all arrays, or of a line; and of arrays that may be packed ever so tightly
SHAPE = {"support": ("observed", "state", "all"), "rectangular": ("s", "sa"), "moves": ("states", "events")}  # of a set; each stage may have its own
KNOWN = {"kind": ("optimum", "policy"), "nature": ("adversarial", "cooperative"), "criterion": ("discounted", "total", "reach", "average"), **SHAPE}
SIDES = {"lower": [0], "upper": [1], "both": [0, 1]}  # what a sweep is for
class Refused(Exception):
    """What is wrong with a file."""
def need(condition, message):
    if not condition:
        raise Refused(message)
@contextmanager
def told(where):  # whatever goes wrong here is wrong with a file
    try:
        yield
    except Exception as error:
        what = str(error) if isinstance(error, Refused) else f"{type(error).__name__}: {error}"[:200]
        raise Refused(f"{where() if callable(where) else where}: {what}") from None
def plain(text): return "".join(c if c.isprintable() else "?" for c in str(text))  # what a file says, on one line and without commands to a terminal

# ------------------------------------------------------------------ numbers
class Interval:  # numbers between two floats; every operation rounds outwards, and 0 is exact
    __slots__ = ("hi", "lo")
    def __init__(self, lo, hi):
        if not -inf < lo <= hi < inf:
            raise Refused("a number that is too large for floats")
        self.lo, self.hi = lo, hi
    def __add__(self, other):
        return other if self.lo == self.hi == 0 else Interval(nextafter(self.lo + other.lo, -inf), nextafter(self.hi + other.hi, inf))
    def __sub__(self, other):
        return self if other.lo == other.hi == 0 else Interval(nextafter(self.lo - other.hi, -inf), nextafter(self.hi - other.lo, inf))
    def __mul__(self, other):
        a, b, c, d = self.lo, self.hi, other.lo, other.hi
        if a == b == 0 or c == d == 0:
            return ZERO
        if a >= 0:
            return Interval(nextafter((a if c >= 0 else b) * c, -inf), nextafter((b if d >= 0 else a) * d, inf))
        return other * self if c >= 0 else Interval(nextafter(min(a * d, b * c, b * d), -inf), nextafter(max(a * c, b * d), inf))
    def __truediv__(self, other):  # by what is positive
        need(other.lo > 0, "a division by what may be 0")
        a, b = self.lo / (other.hi if self.lo >= 0 else other.lo), self.hi / (other.lo if self.hi >= 0 else other.hi)
        return Interval(nextafter(a, -inf), nextafter(b, inf)) if self.hi or self.lo else self
    def __neg__(self): return Interval(-self.hi, -self.lo)
    def __abs__(self): return self if self.lo >= 0 else Interval(max(-self.hi, 0.0), max(-self.lo, self.hi))
ZERO = Interval(0.0, 0.0)
def low(x): return x.lo if isinstance(x, Interval) else x  # a rational or a float that is not above x
def high(x): return x.hi if isinstance(x, Interval) else x  # and one that is not below x
def largest(numbers):
    found = list(numbers)
    return Interval(max([x.lo for x in found]), max([x.hi for x in found])) if isinstance(found[0], Interval) else max(found)
def rounded(x, way):  # the float next to a rational, or the one beyond it: a float is below it if and only if it is below x
    near = float(x)
    return near if near == x or (near > x) == (way > 0) else nextafter(near, way * inf)
class Numbers:  # how to calculate: exactly or with intervals, and to how many digits what is irrational
    def __init__(self, interval, digits):
        self.interval = interval
        self._down, self._up = (Context(digits, way, -(10**4), 10**4) for way in (ROUND_FLOOR, ROUND_CEILING))
        self.zero, self.one = (ZERO, Interval(1.0, 1.0)) if interval else (Fraction(0), Fraction(1))
    def exact(self, x):
        need(type(x) in (int, float, Fraction), f"{str(x)[:40]!r} is no number")
        return x if type(x) is Fraction else Fraction(*x.as_integer_ratio())
    def __call__(self, x):
        return self.exact(x) if not self.interval else Interval(x, x) if type(x) is float else Interval(rounded(self.exact(x), -1), rounded(x, 1))
    def _bound(self, function, x, up=True):  # an increasing function of a rational, from above or from below
        context, x = self._up if up else self._down, Fraction(x)
        found = function(context, context.divide(Decimal(x.numerator), Decimal(x.denominator)))
        beyond = context.next_plus(found) if up else context.next_minus(found)
        return self(Fraction(beyond if found else 0))  # 0 is exact: log 1
    def exp(self, x):  # e^x, from above; for x below −700 that of −700
        need(high(x) < 700, "an exponential that is too large")
        return self._bound(Context.exp, max(high(x), Fraction(-700)))
    def log(self, x, up):  # log x, from above or from below
        need((x := high(x) if up else low(x)) > 0, "the logarithm of a number that is not positive")
        return self._bound(Context.ln, x, up)
    def sqrt(self, x): return self._bound(Context.sqrt, high(x)) if high(x) > 0 else self.zero  # √x of x ≥ 0, from above
    def power(self, x, p): return self.exp(self.log(x, up=True) * self(p)) if high(x) > 0 else self.zero  # x^p of x ≥ 0, p > 0, from above
    def add(self, terms):
        found = [x for x in terms if x.hi or x.lo] if self.interval else terms
        if not self.interval or len(found) < 2:  # nothing is rounded
            return sum(found, self.zero)
        return Interval(nextafter(fsum([x.lo for x in found]), -inf), nextafter(fsum([x.hi for x in found]), inf))
    def dot(self, a, b): return self.add(x * y for x, y in zip(a, b, strict=True))

# ------------------------------------------------------------------ models
COSTS = ("costs", "rewards", "next_costs", "next_rewards", "event_costs")
NEEDED = {*COSTS, "kernels", "shape", "indptr", "indices", "data", "weights", "available", "terminal", "laws", "next", "classes"}
NEEDED |= {"discount", "discounts", "ends", "sojourn"}
TYPES = {"f8": "d", "f4": "f", "i8": "q", "i4": "i", "i2": "h", "i1": "b", "u8": "Q", "u4": "I", "u2": "H", "u1": "B", "b1": "b", "f2": "H"}
def parsed(text):  # JSON whose numbers are finite, and not longer than they need to be
    def number(digits, kind=float):
        need(len(digits) < 40 and isfinite(found := kind(digits)), f"{digits[:20]} is no finite number, or has too many digits")
        return found
    once = lambda pairs: need(len(dict(pairs)) == len(pairs), "a name stands twice in an object") or dict(pairs)  # noqa: E731
    return json.loads(text, parse_float=number, parse_int=lambda digits: number(digits, int), parse_constant=number, object_pairs_hook=once)
def read_npy(stream, name, size):  # shape and numbers of an .npy stream of `size` bytes
    head = stream.read(10)
    need(head[:8] == b"\x93NUMPY\x01\x00", f"{name}: not an array of format 1")
    header = ast.literal_eval(stream.read(struct.unpack("<H", head[8:])[0]).decode("latin-1"))
    shape, order, kind = header["shape"], header["descr"][:1], header["descr"][1:]
    need(kind in TYPES and all(type(n) is int and n >= 0 for n in shape), f"{name}: shape {shape!r}, numbers {header['descr']!r}")
    need((length := prod(shape) * (numbers := array(TYPES[kind])).itemsize) <= min(size, LIMIT), f"{name}: longer than its file")
    numbers.frombytes(stream.read(length))
    need(len(numbers) == prod(shape), f"{name}: cut off")
    if order != "|" and (order == ">") != (sys.byteorder == "big"):
        numbers.byteswap()
    numbers = array("d", struct.unpack(f"={len(numbers)}e", numbers)) if kind == "f2" else numbers
    return shape, turned(numbers, shape) if header["fortran_order"] else numbers
def turned(numbers, shape):  # to the order in which the last index runs fastest from that in which the first one does
    return numbers if len(shape) < 2 else [x for i in range(shape[0]) for x in turned(numbers[i :: shape[0]], shape[1:])]
def divided(row):  # as it is read: a row that is off 1 by more than rounding is divided by its sum
    return row if abs((total := fsum(row)) - 1) <= 2 * (len(row) + 2) * 2.0**-52 or not 0 < total < inf else [x / total for x in row]
def read_fields(path):  # the arrays of a model by name, (shape, numbers) each: of an .npz file, or of a directory with a model.json
    fields, small = {}, {}
    if os.path.isdir(path):
        with open(os.path.join(path, "model.json"), "rb") as stream:
            small = parsed(stream.read(LIMIT))
        fields = {name: ((), x if isinstance(x, list) else [x]) for name, x in small.items() if name in ("shape", "discount", "weights")}
        for name in NEEDED.intersection(file[:-4] for file in os.listdir(path) if file.endswith(".npy")):
            with open(whole := os.path.join(path, f"{name}.npy"), "rb") as stream:
                fields[name] = read_npy(stream, name, os.path.getsize(whole))
        return fields, small
    with zipfile.ZipFile(path) as archive:
        size, packed = (sum(getattr(info, name) for info in archive.infolist()) for name in ("file_size", "compress_size"))
        need(size <= LIMIT and size <= max(SAFE, 100 * packed), f"{size:,} bytes of arrays packed in {packed:,}: too many")
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            need(name not in fields and info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED), f"{name}: is there twice, or packed in an odd way")
            if name in NEEDED:
                with archive.open(info) as stream:
                    fields[name] = read_npy(stream, name, info.file_size)
    return fields, small
class Model:  # the numbers of a model, pair by pair; rewards are negated costs. A model of events has laws for rows, and tells where each event leads
    def __init__(self, path):
        fields, small = read_fields(path)
        (shape, self._kernels), self.moves = fields.get("kernels", (None, None)), "events" if "laws" in fields else "states"
        need(len({"kernels", "indptr", "laws"} & fields.keys()) == 1, "kernels, indptr, laws: one of them makes a model")
        if self.moves == "events":
            ((C, N, E), self._laws), ((S, A, again), self._next) = fields["laws"], fields["next"]
            self._classes = fields.get("classes", ((), bytes(S * A if again else 0)))[1]
            need(again == E > 0 and len(k := self._classes) == S * A and 0 <= min(k) <= max(k) < C, "laws, next, classes: do not fit")
        elif shape:
            N, S, A, again = (1, *shape)[-4:]
            need(again == S and len(shape) < 5, f"kernels: shape {shape}")
        else:
            (N, S, A), held = fields["shape"][1], len(fields["weights"][1])
            self._indptr, self._indices, self._data = (fields[name][1] for name in ("indptr", "indices", "data"))
            need(held == N and len(self._indptr) == S * A + 1 and len(self._data) == N * len(self._indices), "sizes do not fit")
        self._single = fields.get("data", ((), array("d")))[1].typecode == "f"
        self.N, self.S, self.A, self.width = N, S, A, E if self.moves == "events" else S
        need(all(type(n) is int and n > 0 for n in (N, S, A)), f"shape {N, S, A}")
        self.stored_weights = weights = list(map(Fraction, divided(list(map(float, fields.get("weights", ((), [1 / N] * N))[1])))))
        need(len(weights) == N and min(weights) >= 0 and sum(weights) > 0, "weights: not N of them")
        self.used = [i for i, w in enumerate(weights) if w > 0]
        self.weights = [w / sum(weights) for w in weights if w > 0]
        (name,) = [name for name in COSTS if name in fields]
        (self._shape, self._costs), self._listed, self._sign = fields[name], name.startswith("next_"), -1.0 if name.endswith("rewards") else 1.0
        self.maximise = self._sign < 0 or small.get("maximise") is True
        shapes = {(len(self._indices),)} if self._listed else {(S, A), (S, A, E)} if self.moves == "events" else {(S,), (S, A), (S, A, S)}
        need(self._shape in shapes, f"{name}: shape {self._shape}")
        self.terminal, self._available = fields.get("terminal", ((), [0] * S))[1], fields.get("available", ((), [1] * (S * A)))[1]
        self.ends = [self._sign * float(x) + 0.0 for x in fields.get("ends", ((), [0.0] * S))[1]]
        need(len(self.terminal) == len(self.ends) == S and len(self._available) == S * A, "terminal, ends, available: of another size")
        need(all(isfinite(x) and (end or not x) for x, end in zip(self.ends, self.terminal, strict=True)), "ends: not finite, or not of a terminal state")
        self._discount(*fields["discounts" if "discounts" in fields else "discount"])
        shape, given = fields.get("sojourn", ((S, A), None))
        need(shape == (S, A), f"sojourn: shape {shape}")
        self.sojourn = given and {(s, a): Fraction(given[s * A + a]) for s in range(S) for a in self.actions(s)}  # how long steps last
        need(not given or min(self.sojourn.values(), default=1) > 0, "sojourn: not positive")
        self.digest = self._digest()
    def _discount(self, shape, given):  # λ(s, a) of the pairs that are there; one for all where they agree
        given = [x for own in given for x in (own if isinstance(own, list) else [own])]
        need(len(given) in (1, self.S * self.A) and (len(given) == 1 or shape in ((), (self.S, self.A))), f"discount: shape {shape}, {len(given)} numbers")
        each = {(s, a): given[s * self.A + a if len(given) > 1 else 0] for s in range(self.S) for a in self.actions(s)}
        need(all(type(x) in (int, float) and 0 <= x <= 1 for x in [*each.values(), *given[: len(given) == 1]]), "discount: not in [0, 1]")
        self.each, self.single = each, given[0] if len(given) == 1 else next(iter(each.values()), 0.0) if len({*each.values()}) < 2 else None
    def rates(self, stage=None):  # λ(s, a) by pair, of a stage that has its own, or of the model
        own = stage if stage is not None else self.single
        return {pair: Fraction(x if own is None else own) for pair, x in self.each.items()}
    def actions(self, s): return [] if self.terminal[s] else [a for a in range(self.A) if self._available[s * self.A + a]]
    def row(self, s, a):  # next states of a pair, the N rows over them as they are read, its costs {next state: cost} or one for all, and where they lead
        N, S, W, k, there = self.N, self.S, self.width, s * self.A + a, None
        if self.moves == "events":
            columns, there, first = list(range(W)), list(self._next[k * W : (k + 1) * W]), self._classes[k] * N
            rows = [list(self._laws[(first + i) * W : (first + i + 1) * W]) for i in range(N)]
            need(all(0 <= t < S for t in there), f"next: of state {s}, action {a}")
        elif self._kernels:
            whole = [self._kernels[(i * S * self.A + k) * S : (i * S * self.A + k + 1) * S] for i in range(N)]
            whole = [[0.0 if -1e-9 <= x < 0 else float(x) for x in row] for row in whole]
            columns = [t for t in range(S) if any(row[t] != 0 for row in whole)]
            rows = [[row[t] for t in columns] for row in whole]
        else:
            lo, hi = self._indptr[k : k + 2]
            columns, data, K = list(self._indices[lo:hi]), self._data[N * lo : N * hi], hi - lo
            fine = 0 <= lo <= hi <= len(self._indices) and columns == sorted({t for t in columns if 0 <= t < S})
            need(fine, f"indptr, indices: of state {s}, action {a}")
            rows = [list(data[i * K : (i + 1) * K]) for i in range(N)]
        need(all(0 <= x < inf for row in rows for x in row) and all(map(sum, rows)), f"state {s}, action {a}: rows are no distributions")
        rows = rows if self._single else list(map(divided, rows))
        if not self._listed and len(self._shape) < 3:
            return columns, rows, self._sign * float(self._costs[k if len(self._shape) == 2 else s]) + 0.0, there or columns
        own = zip(columns, self._costs[lo:hi], strict=True) if self._listed else enumerate(self._costs[k * W : (k + 1) * W])
        return columns, rows, {t: self._sign * float(c) + 0.0 for t, c in own}, there or columns
    def _digest(self):  # what identifies these numbers: a SHA-256 of sizes and weights, and of a SHA-256 for each state, pair by pair
        head = -1.0 if self.single is None else self.single, *map(float, self.stored_weights)
        found = hashlib.sha256(struct.pack(f"<qqq{1 + self.N}d", self.N, self.S, self.A, *head))
        for s in range(self.S):
            own = hashlib.sha256(struct.pack("<qd", s, self.ends[s]) if self.ends[s] else b"")
            for a in self.actions(s):
                _, rows, costs, there = self.row(s, a)
                numbers = [x for row in rows for x in row] + list(costs.values() if isinstance(costs, dict) else [costs])
                numbers += [self.each[s, a]] if self.single is None else []
                own.update(struct.pack(f"<qqq{len(there)}i{len(numbers)}d", s, a, len(there), *there, *numbers))
                own.update(b"sojourn" + struct.pack("<d", self.sojourn[s, a]) if self.sojourn else b"")
            found.update(own.digest())
        return found.hexdigest()
    def aim(self, target, avoid, minimise):  # ask how probable it is to reach states, and not others before: nothing else is worth anything
        fine = target and all(type(s) is int and 0 <= s < self.S for s in [*target, *avoid]) and not {*target} & {*avoid}
        need(fine, "target, avoid: no states, or the same")
        self.terminal = [bool(end) or s in target or s in avoid for s, end in enumerate(self.terminal)]
        self.ends, self.maximise, self.single = [(1.0 if minimise else -1.0) if s in target else 0.0 for s in range(self.S)], not minimise, 1.0
        self._shape, self._costs, self._listed, self._sign, self.sojourn = (self.S,), [0.0] * self.S, False, 1.0, None
        self.digest = self._digest()
    def price(self, shape, costs):  # take other costs instead, those of a stage
        need(shape in ((self.S, self.A), (self.S, self.A, self.S)) and self.moves == "states", f"costs of a stage: shape {shape}")
        self._shape, self._costs, self._listed, self._sign = shape, costs, False, -1.0 if self.maximise else 1.0

# ------------------------------------------------------------------ one state
class State:  # a state at v: stakes z, and rows of the data divided by their sums
    def __init__(self, number, model, region, v, s, line):
        self.number, self.region, self.v, self.s, self.line, self.width = number, region, v, s, line, model.width
        self.actions, self.exact_weights, mixture = model.actions(s), model.weights, model.mixture
        self.weights = [number.one] if region.mean else mixture
        self.columns, self.rows, self.seen, self.costs, self._z, self.there, self.spent = {}, {}, {}, {}, {}, {}, {}
        for a in self.actions:
            self.columns[a], stored, cost, there = model.row(s, a)
            self.costs[a] = cost if v.flat is None else v.flat
            self.spent[a] = v.rate * model.sojourn[s, a] if v.rate else 0
            self.there[a], rows = there if model.moves == "events" else range(model.S), [stored[i] for i in model.used]
            self.seen[a] = {t for k, t in enumerate(self.columns[a]) if any(row[k] > 0 for row in rows)}
            sums = [number.add(map(number, row)) for row in rows]
            rows = [[number(x) / mass for x in row] for row, mass in zip(rows, sums, strict=True)]
            rows = [[number.dot(mixture, column) for column in zip(*rows, strict=True)]] if region.mean else rows
            self.rows[a] = [dict(zip(self.columns[a], row, strict=True)) for row in rows]
        self.seen = dict.fromkeys(self.actions, set().union(*self.seen.values())) if region.support == "state" else self.seen  # under any action
    def z(self, a, t):  # stake c(s, a, t) + λ v(t), less v(s): where players go round in circles at no cost it is 0, exactly; negated where nature helps
        if (a, t) not in self._z:
            cost = self.costs[a].get(t, nan) if isinstance(self.costs[a], dict) else self.costs[a]
            need(isfinite(cost), f"action {a}: the cost of going to {t} is unknown")
            self._z[a, t] = self.number(self.v.sign * (Fraction(cost) - self.spent[a] - self.v.exact[self.s]) + self.v.ahead(self.s, a, self.there[a][t]))
        return self._z[a, t]
    def allowed(self, a, t): return self.region.support == "all" or t in self.seen[a]  # whether nature may bring mass to t
    def most(self, a, named=()):  # the largest stake of next states that may have mass and are not among those named; None if there are none
        common = isinstance(self.there[a], range) and not isinstance(self.costs[a], dict)  # v alone decides: a few from the top do
        states = self.seen[a] if self.region.support != "all" else self.v.order[: len(named) + 1] if common else range(self.width)
        left = [self.z(a, t) for t in states if t not in named]
        return largest(left) if left else None
    def nominal(self, a, i): return self.number.add(y * self.z(a, t) for t, y in self.rows[a][i].items() if high(y) > 0)  # loss of the data, ŷ_ia·z_a
    def spread(self, a, row, kind=None):  # A row of the file, {next state: number}: one for each listed state, then [state, number] for others
        own = self.columns[a]
        need(isinstance(row, list) and len(row) >= len(own), f"action {a}: a row is too short")
        found = dict(zip(own, row, strict=False))
        for t, x in row[len(own) :]:
            need(type(t) is int and 0 <= t < self.width and t not in found, f"action {a}: a row names state {t!r}")
            found[t] = x
        return {t: (kind or self.number)(x) for t, x in found.items()}
class Mixture(State):  # the N kernels as the next states of one action: what nature sees when she weights them anew
    def __init__(self, st, losses, line):
        n, self.number, self.line, self.v, self.actions, self.weights = range(len(losses)), st.number, line, None, [0], [st.number.one]
        self.region, self.columns, self.rows, self.seen = Region("observed", True), {0: list(n)}, {0: [dict(enumerate(st.weights))]}, {0: set(n)}
        self._z, self.there, self.width = {(0, i): loss for i, loss in enumerate(losses)}, {0: list(n)}, len(n)

# ------------------------------------------------------------------ sets
class Region:  # a set: `upper` bounds Σ_a x_a y_a·z_a over it, `lower` has y_a·z_a, from below, of rows that are in it
    # A class has `row` (bounds one row at a price), `price` (of the budget) and `costs` (of rows, kernel by kernel).
    scale, still = 1, True  # budget in a unit of the radius; whether nothing moves without one
    def __init__(self, support, mean):
        self.support, self.mean = support, mean
    def upper(self, st, acts, x, budget, side):
        number, total, kept, fixed = st.number, st.number.zero, [{} for _ in st.weights], self.still and not high(budget) > 0
        for k, a in enumerate(acts):
            p = number(x[a])
            for i, w in enumerate(st.weights if x[a] else ()):
                total += w * (p * st.nominal(a, i) if fixed else self.row(st, a, i, p, side, k, kept[i]))
        return total if fixed else total + self.price(st, budget, side, kept)
    def lower(self, st, acts, budget, side):
        values, parts = {}, [[] for _ in st.weights]
        for a, rows in zip(acts, side["y"], strict=True):
            need(len(rows) == len(parts), f"action {a}: expected {len(parts)} rows")
            values[a] = [self.moved(st, a, i, row, parts[i]) for i, row in enumerate(rows)]
        costs = [st.number(high(cost)) for cost in self.costs(st, parts)]
        shares = [st.number(max(0, low(budget / cost))) if high(cost) > low(budget) else None for cost in costs]  # None: inside
        pull = lambda f, old, new: new if f is None else old + f * (new - old)  # noqa: E731
        return {a: st.number.add(w * pull(f, *own) for w, f, own in zip(st.weights, shares, values[a], strict=True)) for a in acts}
    def moved(self, st, a, i, row, parts):  # losses ŷ·z and y·z, y being a row of the file; adds pairs of probabilities, y and ŷ, to parts
        nominal = st.nominal(a, i)
        if row is None:
            return nominal, nominal
        mass = st.number.add((y := st.spread(a, row)).values())
        need(min(map(low, y.values())) >= 0 and low(mass) > 0, f"action {a}: a row is no distribution")
        need(all(st.allowed(a, t) for t, p in y.items() if high(p) > 0), f"action {a}: mass where nature must not bring it")
        y = {t: p / mass for t, p in y.items()}
        parts += [(p, st.rows[a][i].get(t, st.number.zero)) for t, p in y.items()]
        return nominal, st.number.add(p * st.z(a, t) for t, p in y.items() if high(p) > 0)
def norm(number, parts, order, weights=None):  # (Σ w |x|^order)^{1/order}, from above; the largest |x| for None. Orders but 1 and 2 have weights, of sum 1
    sizes = [abs(x) for x in parts]
    top = number(high(largest([number.zero, *sizes])))
    if order is None or not high(top) > 0:
        return top
    powers = sizes if order == 1 else [x * x for x in sizes] if order == 2 else [number.power(min(high(x / top), 1), order) for x in sizes]
    total = number.add(powers) if weights is None else number.dot(weights, powers)
    return total if order == 1 else number.sqrt(total) if order == 2 else top * number.power(min(high(total), 1), 1 / order)
class Norms(Region):  # balls of a norm of the difference, stacked over the actions, of any order over the kernels
    def __init__(self, given, support, number):
        super().__init__(support, given.get("around") == "mean")
        self.power = {"l1": Fraction(1), "l2": Fraction(2), "linf": None}[given["metric"]]
        self.order = None if given["order"] == "inf" else number.exact(given["order"])
        self.duals = [Fraction(1) if p is None else None if p == 1 else p / (p - 1) for p in (self.power, self.order)]
        fine = (self.order is None or self.order >= 1) and (not self.mean or self.power == self.order == 1)
        need(fine, "a norm of no order, or one around the mean that is not (l1, 1)")
    def row(self, st, a, i, p, side, k, kept):
        number, rest = st.number, st.number(side["rest"][i] if "rest" in side else 0)
        e = {t: x for t, x in st.spread(a, side["e"][k][i]).items() if st.allowed(a, t)}
        left, ends = st.most(a, e), [p * st.z(a, t) - x for t, x in e.items()]
        if left is not None:  # the states that are not named
            need(self.power == 1 or "rest" not in side, "only the l1 norm has a rest")
            ends, kept[None] = [*ends, p * left - rest], rest
        kept.update({(a, t): x for t, x in e.items()})
        return largest(ends) + number.add(x * st.rows[a][i][t] for t, x in e.items() if t in st.rows[a][i])
    def price(self, st, budget, side, kept):
        return budget * norm(st.number, [norm(st.number, own.values(), self.duals[0]) for own in kept], self.duals[1], st.weights)
    def costs(self, st, parts):
        norms = [norm(st.number, [y - base for y, base in own], self.power) for own in parts]
        return norms if self.order is None else [norm(st.number, norms, self.order, st.weights)] * len(norms)
class Divergence(Region):  # balls by a divergence, added up over the actions, around the mean row or, in the mean, around the kernels
    def __init__(self, given, support, number):
        super().__init__(support, given["around"] == "mean")
        need(given["kind"] in ("kl", "burg", "chi2") and given["around"] in ("mean", "kernels"), "an unknown divergence")
        self.kind = given["kind"]
    def row(self, st, a, i, p, side, k, kept):
        number, top, kappa, eta = st.number, st.most(a), st.number(side["kappa"]), st.number(side["eta"][k][i])
        own = [(st.z(a, t), y) for t, y in st.rows[a][i].items() if high(y) > 0]
        if side["kappa"] == 0:  # whatever is spent: only burg leaves the support of a row
            return p * (top if self.kind == "burg" else largest(z for z, _ in own))
        need(side["kappa"] > 0 and (self.kind != "burg" or -side["eta"][k][i] <= side["kappa"]), "kappa, eta: out of range")
        terms = (self.conjugate(number, number(high((p * (z - top) - eta) / kappa)), y) for z, y in own)
        return p * top + eta + kappa * number.add(terms)
    def conjugate(self, number, s, y):  # φ*(s; ŷ) of one entry, from above; it increases in s. Small s: two terms, and |s|³ is more than the rest
        if number.interval and self.kind != "chi2" and -1e-5 < s.lo <= s.hi < 1e-5:
            return y * (s + s * s * (number(0.5) + abs(s)))
        if self.kind == "kl":
            return y * (number.exp(s) - number.one)
        if self.kind == "burg":
            return y * -number.log(number.one - s, up=False)
        return y * (s + s * s * number(0.25)) if high(s) >= -2 else -y
    def price(self, st, budget, side, kept): return st.number(side["kappa"]) * budget
    def costs(self, st, parts):
        return [st.number.dot(st.weights, (st.number.add(self.cost(st.number, *pair) for pair in own) for own in parts))] * len(parts)
    def cost(self, number, y, base):  # what an entry adds to D(y ‖ ŷ), from above
        if not high(base) > 0:
            need(self.kind == "burg" or not high(y) > 0, "an infinite divergence")
            return number.zero
        if self.kind == "kl":
            return y * number.log(y / base, up=True) if high(y) > 0 else number.zero
        return base * number.log(base / y, up=True) if self.kind == "burg" else (y - base) * (y - base) / base
class Transport(Region):  # mass moves at a price for each pair of states; one budget for the mean row, or one for each kernel
    still = False
    def __init__(self, given, support, number):
        super().__init__(support, given["order"] == 1)
        self.grid, self.lists = given.get("grid"), given.get("lists")
        need(given["order"] in (1, "inf") and (self.grid is None) != (self.lists is None), "an unknown transport")
    def near(self, st, a, j):  # what it costs to bring mass from j to where it may go, {next state: D(j, t)}
        exact, states = st.number.exact, range(len(st.v.exact))
        if self.grid is None:
            found = {t: exact(d) for t, d in self.lists[j] if st.allowed(a, t)}
        else:
            reach, pairs = states if self.support == "all" else st.seen[a], lambda t: zip(self.grid[j], self.grid[t], strict=True)
            found = {t: sum(abs(exact(p) - exact(q)) for p, q in pairs(t)) for t in reach}
        need(all(d >= 0 and t in states for t, d in found.items()), f"distances from state {j}")
        return {t: st.number(d) for t, d in {**found, j: Fraction(0)}.items()}
    def row(self, st, a, i, p, side, k, kept):
        need(low(kappa := st.number(side["kappa"][i])) >= 0, "kappa is negative")
        best = ((y, self.near(st, a, j)) for j, y in st.rows[a][i].items() if high(y) > 0)
        return st.number.add(y * largest(p * st.z(a, t) - kappa * d for t, d in near.items()) for y, near in best)
    def price(self, st, budget, side, kept): return budget * st.number.dot(st.weights, map(st.number, side["kappa"]))
    def moved(self, st, a, i, row, parts):  # losses ŷ·z and y·z of a plan [[from, to, share of what is there], …]; adds its cost to parts
        stay, gone, nominal, out, near = Fraction(1), [], st.nominal(a, i), {}, {}
        moves = [(j, t, st.number.exact(f)) for j, t, f in row or ()]
        for j, _, f in moves:
            need(f >= 0, f"action {a}: a move of less than nothing from {j}")
            out[j], near[j] = out.get(j, 0) + f, near.get(j) or self.near(st, a, j)
        for j, t, f in moves:
            mass = st.rows[a][i][j] * st.number(f / max(out[j], stay))
            gone.append(mass * st.z(a, t))
            parts.append(mass * near[j][t])
        left = (y * st.number(stay - min(out.get(j, 0), stay)) * st.z(a, j) for j, y in st.rows[a][i].items() if high(y) > 0)
        return nominal, st.number.add([*left, *gone])
    def costs(self, st, parts): return map(st.number.add, parts)
class Intervals(Region):  # an interval for each probability, one for both sides, in the line of the state
    still = False
    def __init__(self, given, support, number):
        super().__init__("all", True)
    def box(self, st, a):  # ends of the intervals, {next state: (lo, hi)}
        lo, hi = (st.spread(a, st.line[name][st.actions.index(a)], st.number.exact) for name in ("lo", "hi"))
        need(all(0 <= p <= hi.get(t, 0) for t, p in lo.items()) and min(hi.values()) >= 0, f"action {a}: an empty interval")
        least, most = max(sum(lo.values()), Fraction(1)), min(sum(hi.values()), Fraction(1))
        need(least - 1 < 1e-8 and 1 - most < 1e-8, f"action {a}: no distribution is in the intervals")
        return {t: (lo.get(t, Fraction(0)) / least, p / most) for t, p in hi.items() if p > 0}
    def row(self, st, a, i, p, side, k, kept):
        number, z = st.number, [(st.z(a, t), ends) for t, ends in self.box(st, a).items()]
        eta = largest(value for value, _ in z) + number(side["eta"][k])
        return p * (eta + number.add(largest(number(end) * (value - eta) for end in ends) for value, ends in z))
    price = lambda self, st, *given: st.number.zero  # noqa: E731
    def lower(self, st, acts, budget, side):
        found = {}
        for a, row in zip(acts, side["y"], strict=True):
            box, y = self.box(st, a), st.spread(a, row, st.number.exact)
            y = {t: min(max(y.get(t, Fraction(0)), p), q) for t, (p, q) in box.items()}
            lack = 1 - sum(y.values())
            room = {t: (q - y[t]) * (y[t] > 0) if lack > 0 else y[t] - p for t, (p, q) in box.items()}  # what has no mass gets some only if all else is full
            room = room if lack <= sum(room.values()) else {t: q - y[t] for t, (p, q) in box.items()}
            y = {t: p + lack * room[t] / sum(room.values()) for t, p in y.items()} if lack else y
            found[a] = st.number.add(st.number(p) * st.z(a, t) for t, p in y.items())
        return found
class Reweighting(Region):  # one mixture of the kernels for all actions: a set of rows over the kernels, around their weights
    def __init__(self, given, support, number):
        super().__init__(support, False)
        self.level, inner = given["kind"] == "cvar", Intervals if given["kind"] in ("cvar", "any") else divergence
        self.inner = inner({**given, "around": "mean"}, "observed", number)
    def mixture(self, st, budget, losses):  # the budget of cvar is its level: her weights are in intervals, as those of any
        need((level := Fraction(low(budget)) if self.level else 0) <= 1, "a level above 1")
        most = [w / level if level else Fraction(1) for w in st.exact_weights]
        return Mixture(st, losses, {"lo": [[0] * len(most)], "hi": [most]})
    def upper(self, st, acts, x, budget, side):
        losses = [st.number.add(st.number(x[a]) * st.nominal(a, i) for a in acts if x[a]) for i in range(len(st.weights))]
        return self.inner.upper(self.mixture(st, budget, losses), [0], [1], budget * st.number(self.inner.scale), side)
    def lower(self, st, acts, budget, side):
        mixtures = {a: self.mixture(st, budget, [st.nominal(a, i) for i in range(len(st.weights))]) for a in acts}
        return {a: self.inner.lower(mixtures[a], [0], budget * st.number(self.inner.scale), side)[0] for a in acts}
def divergence(given, support, number):  # a ball by a divergence; total variation is half the ℓ1 norm
    if given["kind"] != "tv":
        return Divergence(given, support, number)
    found = Norms({"metric": "l1", "order": 1, "around": given["around"]}, support, number)
    found.scale = 2
    return found
FAMILIES = {"norm": Norms, "divergence": divergence, "transport": Transport, "reweighting": Reweighting, "intervals": Intervals}

# ------------------------------------------------------------------ all states
class Values:  # v as it stands in the file, and what of it is in stakes, negated where nature helps
    # `flat`: a cost of all steps instead of the model's; `rate`: taken off costs per unit of time
    def __init__(self, number, model, given, rates, sign, flat=None, ends=None, rate=0):
        need(isinstance(given, list) and len(given) == model.S, f"values: expected {model.S} numbers")
        self.exact, self.sign, self.rates, self.flat, self.rate, one = [number.exact(x) for x in given], sign, rates, flat, rate, {*rates.values()}
        fine = all(x == g for x, g, end in zip(self.exact, ends or model.ends, model.terminal, strict=True) if end)
        need(fine, "a value in a terminal state is not what it ends with")
        self.order = sorted(range(model.S), key=lambda t: -sign * self.exact[t])
        self._alike = [sign * min(one) * x for x in self.exact] if len(one) == 1 else []
    def ahead(self, s, a, t): return self._alike[t] if self._alike else self.sign * self.rates[s, a] * self.exact[t]  # λ(s, a) v(t)
class Proof:  # a proof, read line after line, and what it proves: `bounds` has (lower, upper, claimed lower, claimed upper) of every sweep
    def __init__(self, path, models, prices, number):  # `prices`: shape and numbers of the costs of the stages, if they have their own
        self.models, self.prices, self.number, self.at, self.radii, self.costs, self.sets, self.rates = models, prices, number, 0, [], [0, 0], {}, (1, 0)
        self.wrong, self.times, self._told = [], [], {}  # steps with the wrong sign (state, step); expected times; what sweeps say that has to be the same
        with open(path, "rb") as self._stream, told(lambda: f"line {self.at}"):
            self._begin(self._line())
            self.bounds = list(self._bounds())
            need(self._line() == {"end": True} and not self._stream.read(1), "does not end where it should")
    def _line(self):
        self.at += 1
        need((text := self._stream.readline(LIMIT)).endswith(b"\n") and isinstance(found := parsed(text), dict), "cut off, or not an object")
        return found
    def _begin(self, header):
        self.header, self.model, self.stages, self.criterion = header, self.models[0], header.get("stages"), header.setdefault("criterion", "discounted")
        need(header["format"] == (form := FORMATS[self.criterion != "discounted"]), f"expected format {form!r}, got {header['format']!r}")
        self.helps, self.optimum = header["nature"] == "cooperative", header["kind"] == "optimum"
        self.discount = None if self.stages is None or header["discount"] is None else self.number.exact(header["discount"])
        fine = self.stages is None or (type(self.stages) is int and self.stages > 0)
        fine &= len(self.models) in (1, self.stages) and len({(model.S, model.maximise) for model in self.models}) == 1
        need(fine and 0 <= (self.discount or 0) <= 1, f"stages {self.stages!r}, discount {header.get('discount')!r}, {len(self.models)} models: do not fit")
        fine = (self.stages if "costs" in header else None) == (self.prices[0][0] if self.prices else None)
        need(fine, "costs of the stages: expected in an .npy file if the proof says that they have their own, and only then")
        need(not self.stages or self.criterion in ("discounted", "reach"), f"stages and the criterion {self.criterion!r}: do not fit")
        if self.criterion in ("reach", "average"):
            self.discount = Fraction(1)
        self.rate = self.number.exact(header.get("rate", 0))  # of the cost per unit of time, near which it is looked at
        need(not self.rate or (self.criterion == "average" and self.model.sojourn), "rate: goes with an average, and steps that last")
        if self.criterion == "reach":
            need(type(header["minimise"]) is bool, "minimise: expected true or false")
            for model in self.models:
                model.aim(header["target"], header["avoid"], header["minimise"])
    def _stage(self, t, line):  # the model and the set of a stage: what its line does not say, the first line does
        given = self.header | {name: line[name] for name in ("model", "set", *SHAPE) if name in line and self.stages}
        self.model, family = self.models[t % len(self.models)], given["set"]["family"]
        for name, known in KNOWN.items():
            need(given[name] in known, f"{name}: expected one of {known}, got {given[name]!r}")
        need(given["moves"] == self.model.moves, f"the set moves {given['moves']}, the model has {self.model.moves}; model.stored() has states")
        need(given["model"] == self.model.digest, "the model is not the one that the proof is about")
        need(family in FAMILIES and (given["moves"] == "states" or family in ("norm", "divergence")), f"cannot check the set {family!r} yet")
        if self.prices:
            size = len(self.prices[1]) // self.stages
            self.model.price(self.prices[0][1:], self.prices[1][t * size : (t + 1) * size])
        self.region, self.alone = FAMILIES[family](given["set"], given["support"], self.number), given["rectangular"] == "sa"
        self.model.mixture = [self.number(w) for w in self.model.weights]
        self.sets[f"{json.dumps(given['set'])[:200]}, {', '.join(f'{name} {given[name]}' for name in SHAPE)}"] = t
    def _judged(self, v, s, line, sides, name="up"):  # steps L − v and U − v of a state, 0 if not asked for, what nature can reach, and the least cost of x
        number, region = self.number, self.region
        need(line["s"] == s, f"expected state {s}, got {line['s']!r}")
        st, x = State(number, self.model, region, v, s, line), [number.exact(p) for p in line["x"]]
        need(len(x) == self.model.A and min(x) >= 0 and sum(x) > 0, "x is no policy")
        need(not any(p for a, p in enumerate(x) if a not in st.actions), "x plays an action that is not there")
        x = [p / sum(x) for p in x]
        costs = {a: [c for c in (cost.values() if isinstance(cost, dict) else [cost]) if isfinite(c)] for a, cost in st.costs.items()}
        lasts = {a: self.model.sojourn[s, a] if self.model.sojourn and self.criterion == "average" else 1 for a in costs}
        self.costs = [end([*self.costs, *(Fraction(c) / lasts[a] for a, own in costs.items() for c in own)]) for end in (min, max)]
        alone = (bets := self.helps and self.optimum) or self.alone  # a helper bets all on the one action that is played
        need(not bets or max(x) == 1, "with a nature that helps, x plays one action")
        same = line["r"], line.get("lo"), line.get("hi"), None if self.optimum else x
        need(self.stages or self._told.setdefault(s, same) == same, "two sweeps differ in a radius, in intervals, or in the policy that was given")
        groups = [[a] for a in st.actions] if alone else [st.actions]
        asked = [k in sides for k in (1 - self.helps, self.helps)]  # what bounds nature, and her rows
        ups, downs = ((line[own] if alone else [line[own]]) if ask else [None] * len(groups) for own, ask in zip((name, "low"), asked, strict=True))
        sizes = line["r"] if isinstance(line["r"], list) else [line["r"]] * len(groups)
        shown = sizes if not isinstance(region, Intervals) else [0]  # intervals are as wide as the file says
        self.radii, above, below = [end([*self.radii, *shown]) for end in (min, max)], [number.zero] * (not asked[0]), {}
        for acts, size, up, down in zip(groups, sizes, ups, downs, strict=True):
            budget = number(number.exact(size) * region.scale)
            need(low(budget) >= 0, "a negative radius")
            if asked[0] and (bets or any(x[a] for a in acts)):
                share = number(x[acts[0]] if alone and not bets else 1)
                above.append(share * region.upper(st, acts, dict.fromkeys(acts, 1) if alone else x, budget, up))
            below |= region.lower(st, acts, budget, down) if asked[1] else dict.fromkeys(acts, number.zero)
        most, mean = Fraction(high(largest(above) if bets else number.add(above))), low(number.add(number(x[a]) * below[a] for a in st.actions))
        least = Fraction(min(map(low, below.values())) if self.optimum and not self.helps else mean)
        everywhere = not self.stages or (region.support == "all" and self.model.moves == "states")
        reach = None if everywhere else {st.there[a][t] for a in st.actions for t in st.columns[a] if st.allowed(a, t)}
        spent = min(c for a, own in costs.items() if x[a] for c in own)
        return (-most, -least, reach, spent) if self.helps else (least, most, reach, spent)
    def _sweep(self, t, after, sides):  # bounds from one sweep and what is claimed, by side; `after`: bounds of the stage after, if there are stages
        self._stage(t, line := self._line())
        model, number, zero, sign, far, rates = self.model, self.number, Fraction(0), -1 if self.helps else 1, {}, self.model.rates(self.discount)
        v, most = Values(number, model, line["v"], rates, sign, rate=self.rate), max(rates.values(), default=zero)
        w = Values(number, model, line["w"], rates, sign, 1.0, [0.0] * model.S) if "w" in line and sides == [1] else None
        least, fits = min(rates.values(), default=Fraction(1)), (lambda x: after or x < 1) if self.criterion == "discounted" else (lambda x: x == 1)
        need(all(map(fits, rates.values())), f"the criterion {self.criterion!r} and discounts from {float(least)!r} do not fit")
        self.rates, found = (min(self.rates[0], least), max(self.rates[1], most)), []
        for s in range(model.S):
            found.append((zero, zero, {s}, 0.0) if model.terminal[s] else self._judged(v, s, own := self._line(), sides))
            if w and not model.terminal[s]:
                far[s] = w.exact[s] + self._judged(w, s, own, sides, "time")[1]
        timed = w and min(w.exact) >= 0 and all(x <= w.exact[s] for s, x in far.items())
        self.times = [rounded(x, 1) for x in far.values()] if timed else self.times
        claims = {k: [number.exact(x) for x in line[("lower", "upper")[k]]] for k in sides}
        need(all(len(claim) == model.S for claim in claims.values()), "lower, upper: of another size")
        rule = self._staged if after else {"discounted": self._discounted, "average": self._average}.get(self.criterion, self._signed)
        bounds = {k: rule(k, v, found, after or timed) for k in sides}
        return {k: ([model.ends[s] if model.terminal[s] else x for s, x in enumerate(bounds[k])], claims[k]) for k in sides}
    def _weaker(self, v, s, k, x):  # the discount of a state at which what is ahead does least for a bound
        own = [v.rates[s, a] for a in self.model.actions(s)] or [Fraction(0)]
        return (max if (x > 0) == (k == 1) else min)(own)
    def _staged(self, k, v, found, after):  # bounds of a stage from those of the stage after
        off, end = [Fraction(x) - old for x, old in zip(after[k], v.exact, strict=True)], (min, max)[k]
        further = [end(off) if own[2] is None else end(off[t] for t in own[2]) for own in found]
        return [rounded(v.exact[s] + own[k] + self._weaker(v, s, k, x) * x, 2 * k - 1) for s, (own, x) in enumerate(zip(found, further, strict=True))]
    def _discounted(self, k, v, found, _):  # no value is beyond what costs and ends allow
        far = (min, max)[k](own[k] / (1 - self._weaker(v, s, k, own[k])) for s, own in enumerate(found))
        limit = (min, max)[k](Fraction(self.costs[k]) / (1 - max(v.rates.values(), default=Fraction(0))), *map(Fraction, self.model.ends))
        bounds = (v.exact[s] + own[k] + self._weaker(v, s, k, far) * far for s, own in enumerate(found))
        return [rounded((max, min)[k](bound, limit), 2 * k - 1) for bound in bounds]
    def _average(self, k, v, found, _):
        need(not any(self.model.terminal), "the average of a process that ends")
        far, lasts = (min, max)[k](own[k] for own in found), [end(self.model.sojourn.values()) for end in (min, max)] if self.model.sojourn else [1, 1]
        bound = v.rate + far / lasts[far * (2 * k - 1) < 0]
        return [rounded((max, min)[k](bound, Fraction(self.costs[k])), 2 * k - 1)] * len(found)
    def _signed(self, k, v, found, timed):  # all steps go the right way, and those that have to be are not 0; nothing is bounded otherwise
        way, live = 2 * k - 1, [s for s in range(self.model.S) if not self.model.terminal[s]]
        if self.criterion == "total":  # costs that are not negative: the policy gets on in every step, and so arrives; else times have to tell
            strict = {*live} if k == 1 and not timed else set()
            need(not strict or min(own[3] for own in found) >= 0, "costs below 0, and no times that show that the policy arrives")
        else:
            strict = {s for s in live if way * v.exact[s] < 0}
        wrong = [(s, found[s][k]) for s in live if way * found[s][k] > 0 or (s in strict and not found[s][k])]
        self.wrong += wrong
        return [rounded(v.exact[s] + own[k], way) if not wrong else way * inf for s, own in enumerate(found)]
    def _bounds(self):  # of every sweep; stages come from the last one back. Without stages sides may have a sweep each, or none
        if self.stages:
            after = (Values(self.number, self.models[-1], self.header["final"], {}, 1).exact,) * 2
            for t in reversed(range(self.stages)):
                found = self._sweep(t, after, SIDES["both"])
                after = found[0][0], found[1][0]
                yield *after, found[0][1], found[1][1]
            return
        both, names = {k: ([end] * self.model.S,) * 2 for k, end in enumerate((-inf, inf))}, self.header.get("sweeps", ["both"])
        need(names in (["both"], ["upper"], ["lower"], ["lower", "upper"]), f"sweeps: {str(names)[:80]}")
        for name in names:
            both |= self._sweep(0, None, SIDES[name])
        yield both[0][0], both[1][0], both[0][1], both[1][1]
    def failures(self):  # where less is proved than claimed: (sweep, state, proved, claimed)
        for k, sides in enumerate(self.bounds):
            for s, (lower, upper, least, most) in enumerate(zip(*sides, strict=True)):
                found = (lower < least, lower, least), (upper > most, upper, most)
                yield from ((k, s, proved, claimed) for weaker, proved, claimed in found if weaker)
def check(proof, files, interval=False):  # a `Proof`; `files`: of the model, or a list: of those of the stages, and of their costs, an .npy file
    data, models, prices = {}, [], None
    for path in map(os.fspath, files if isinstance(files, list) else [files]):
        with told(f"{path}: cannot be read"):
            if path.endswith(".npy"):
                need(prices is None, "costs of the stages are one file")
                with open(path, "rb") as stream:
                    prices = read_npy(stream, path, os.path.getsize(path))
            else:
                models.append(data.setdefault(path, data.get(path) or Model(path)))
    with told(proof):
        found = Proof(proof, models, prices, Numbers(interval, 40))
        return found if interval or next(found.failures(), None) is None else Proof(proof, models, prices, Numbers(False, 150))
def words(found):  # what was asked for
    header, values = found.header, sorted(x for x, end in zip(found.model.ends, found.model.terminal, strict=True) if end)
    ends = f", final values from {values[0]!r} to {values[-1]!r}" if values and (values[0] or values[-1]) else ""
    if found.criterion == "reach":
        goals = [f"{str(header[name][:10])[1:-1]}{f' and {len(header[name]) - 10} more' if len(header[name]) > 10 else ''}" for name in ("target", "avoid")]
        within = f" in at most {found.stages} steps" if found.stages else ""
        return f"{'least' if header['minimise'] else 'largest'} probability to reach state {goals[0]}{f' without {goals[1]}' if goals[1] else ''}{within}"
    if found.criterion == "total":
        return f"total until a terminal state, which is reached for sure{ends}; {f'steps ≤ {max(found.times):.6g}' if found.times else 'steps not bounded'}"
    if found.criterion == "average":
        return f"average for each {'unit of time' if found.model.sojourn else 'step'} in the long run"
    final = sorted((-1 if found.model.maximise else 1) * x for x in header.get("final", [0]))
    rates = " to ".join(map(repr, dict.fromkeys(map(float, found.rates))))
    return f"discount {rates}{f', final values from {final[0]!r} to {final[-1]!r}' if found.stages else ends}"
def show(found):  # print what is proved; returns 0 if it is all that is claimed, 3 if floats are too coarse to tell, else 1
    header, failures, S = found.header, list(found.failures()), found.model.S
    least, most = sorted((-1 if found.model.maximise else 1) * bound[0] + 0.0 for bound in found.bounds[-1][:2])
    ends = [pair for one in found.bounds for pair in zip(*one[:2], strict=True)]
    gap, size = max(u - x for x, u in ends), max((abs(x) for one in found.bounds for side in one[:2] for x in side if abs(x) < inf), default=0.0)
    off = max((abs(claimed - (Fraction(proved) if abs(proved) < inf else claimed)) for _, _, proved, claimed in failures), default=0)
    off = float(max([off, *(abs(step) for _, step in found.wrong)]))
    print(f"set         {' and '.join([*found.sets][::-1][:3])}{f', {len(found.sets)} in all' if len(found.sets) > 3 else ''}, nature {header['nature']}")
    print(f"radius      from {found.radii[0]!r} to {found.radii[1]!r} over the states")
    print(f"criterion   {words(found)}")
    print(f"state 0     {header['kind']} from {least!r} to {most!r}{f', first of {found.stages} stages' if found.stages else ''}; any gap ≤ {gap:.3e}")
    sides = "both bounds" if gap < inf else "those bounds that are finite,"
    print(f"checked     in {'floats rounded outwards' if found.number.interval else 'exact arithmetic'}: SHA-256 of the model, {sides} of {S} states")
    print(f"not checked whether model, set and policy are what you mean; names, start; who wrote it: drmdp {plain(header.get('version'))[:40]}, it says")
    for s, step in found.wrong[:5]:
        print(f"not proved: state {s}: a step by {float(step):.3e} goes the wrong way, or nowhere; nothing is bounded from that side")
    for k, s, proved, claimed in failures[:5]:
        print(f"not proved: state {s}, sweep {k}: {float(claimed)!r} is claimed, {proved!r} is proved")
    print(f"{len(failures)} of the claimed bounds are not proved, by up to {off:.3e}" if failures else "all claimed bounds hold")
    if not (found.number.interval and 0 < off <= COARSE * size):
        return 1 if failures else 0
    print(f"that is at most {COARSE} of the largest bound, {size:.6g}: floats may be too coarse; exact arithmetic, without --interval, tells")
    return 3
def main(arguments=None):  # check and show; returns 2 if a file is refused
    given = list(sys.argv[1:] if arguments is None else arguments)
    interval, files = "--interval" in given, [word for word in given if word != "--interval"]
    try:
        need(len(files) > 1, "usage: python -m drmdp_check [--interval] PROOF MODEL [MODEL of the second stage …] [COSTS of the stages.npy]")
        return show(check(files[0], files[1:], interval))
    except Refused as error:
        print(f"refused: {plain(error)}", file=sys.stderr)
        return 2
if __name__ == "__main__":
    sys.exit(main())
