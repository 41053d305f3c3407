"""Check a proof that drmdp wrote, without drmdp: `python -m drmdp_check run.proof model.npz`, or this file alone.

Standard library only. Floats are exact rationals, and all arithmetic is exact (`fractions`); with `--interval` it is done in floats rounded outwards. Roots,
logarithms and exponentials are enclosed by `decimal`, whose results are correctly rounded: one step further in the needed direction is a bound.

**The problem.** States s, actions a, next states t, costs c(s, a, t), discount λ, N kernels ŷ_i with weights w_i. Rows and weights stand for themselves divided
by their sums; kernels of weight 0 do not exist. In every state nature picks y from a set around the data, and the agent a policy x. With
z_a(t) = c(s, a, t) + λ v(t) and y_a = Σ_i w_i y_ia

    F^x(v)(s) = max_y Σ_a x_a y_a·z_a,     F_y(v)(s) = min_a y_a·z_a,     and 0 in terminal states.

The file holds v, x, a y for every state and what shows that no y does more.

**From above.** If U ≥ F^x(v), the worst case of the policy is at most U + λ max(U − v)/(1 − λ).
**From below.** If L ≤ F_y(v) for a y in the set, no policy costs less than L + λ min(L − v)/(1 − λ); for a given policy, L ≤ Σ_a x_a y_a·z_a instead.

**U, one state.** top_a = max z_a over what nature may use, g_a = x_a (z_a − top_a) ≤ 0. Weak duality holds for all numbers that the file may bring:

  norms         Σ_a x_a top_a + Σ_i w_i Σ_a [max_t (g_a − e_ia)(t) + e_ia·ŷ_ia] + θ (Σ_i w_i ‖e_i‖*^q)^{1/q}, 1/p + 1/q = 1, ‖·‖* the dual norm: for any e
                (Hölder). The e are made of thresholds η ≤ 0 and sizes κ ≥ 0, or are mixtures of such:
                ℓ1 max(g, η) − η/2;   ℓ2 max(g − η, −κ ŷ);   ℓ∞ g − η where g ≥ η or ŷ ≥ κ, else 0;   then max_t (g − e) ≤ η, for ℓ1 η/2
  divergences   Σ_a x_a top_a + κ B + Σ_i w_i Σ_a [η_ia + Σ_t κ φ*((g_a(t) − η_ia)/κ; ŷ_ia(t))], any κ > 0 and η, φ* the conjugate of the cost of an entry:
                kl ŷ (e^s − 1);   burg −ŷ log(1 − s), s < 1;   chi2 ŷ (s + s²/4) from s = −2 on, −ŷ below.   Total variation is half the ℓ1 norm
  transport     Σ_i w_i [κ_i θ + Σ_a Σ_j ŷ_ia(j) max_t (x_a z_a(t) − κ_i D(j, t))], any κ ≥ 0
  intervals     Σ_a x_a [top_a + η_a + Σ_t max(lo (z_a − top_a − η_a), hi (z_a − top_a − η_a))], any η
  re-weighting  a set of mixtures of the kernels around w: the same, with kernels for next states and their losses for stakes; cvar: 0 ≤ q ≤ w/θ

Around the mean there is one row, Σ_i w_i ŷ_i. The ℓ1 ball of order 1, total variation and transport of order 1 are checked there too: the means of their
tuples are the ball around the mean. With a budget for each action (sa) every action is bounded alone, and U = Σ_a x_a U_a.

**L, one state.** Rows of the file are divided by their sums, and must not leave where nature may go. Their cost C is measured by the set's definition, from
above. All costs are convex and 0 at the data: if C exceeds the budget B, the rows ŷ + (B/C)(y − ŷ) are in the set and count instead.
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
import operator
import os
import struct
import sys
import zipfile
from array import array
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

FORMAT = "drmdp proof 1"
LIMIT = 1 << 33  # bytes of an array or of a line, at most
MALFORMED = (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError, MemoryError, OSError, zipfile.BadZipFile,
             zipfile.zlib.error, NotImplementedError, RuntimeError, EOFError, SyntaxError)

class Refused(Exception):
    """What is wrong with a file."""

def need(condition, message):
    if not condition:
        raise Refused(message)

# ------------------------------------------------------------------ numbers

def outwards(operation):
    """An operation, monotone in each argument, on intervals."""
    def apply(one, other):
        one, other = Interval.of(one), Interval.of(other)
        ends = [operation(x, y) for x in (one.lo, one.hi) for y in (other.lo, other.hi)]
        if any(map(math.isnan, ends)):
            return Interval(-math.inf, math.inf)
        return Interval(math.nextafter(min(ends), -math.inf), math.nextafter(max(ends), math.inf))
    return apply

class Interval:
    """Numbers between two floats; every operation rounds outwards."""
    __slots__ = ("hi", "lo")
    def __init__(self, lo, hi=None):
        self.lo, self.hi = lo, lo if hi is None else hi
    @staticmethod
    def of(x):
        if isinstance(x, Interval):
            return x
        near = float(x)
        return Interval(near) if near == x else Interval(math.nextafter(near, -math.inf), math.nextafter(near, math.inf))
    __add__ = __radd__ = outwards(operator.add)
    __sub__, __mul__, _over = outwards(operator.sub), outwards(operator.mul), outwards(operator.truediv)
    def __truediv__(self, other):
        need(other.lo > 0 or other.hi < 0, "a division by what may be 0")
        return self._over(other)
    def __neg__(self):
        return Interval(-self.hi, -self.lo)
    def __abs__(self):
        return largest([self, -self])

def low(x):  # a rational that is not above x
    return Fraction(x.lo) if isinstance(x, Interval) else x

def high(x):  # a rational that is not below x
    return Fraction(x.hi) if isinstance(x, Interval) else x

def largest(numbers):
    found = list(numbers)
    return Interval(max(x.lo for x in found), max(x.hi for x in found)) if isinstance(found[0], Interval) else max(found)

class Numbers:
    """How to calculate: exactly or with intervals, and to how many digits what is irrational."""
    def __init__(self, interval, digits):
        self.interval = interval
        self.up, self.down = (Context(digits, way, -(10**4), 10**4) for way in (ROUND_CEILING, ROUND_FLOOR))
    def exact(self, x):
        need(type(x) in (int, float, Fraction), f"{str(x)[:40]!r} is no number")
        return Fraction(x)
    def __call__(self, x):
        return Interval.of(self.exact(x)) if self.interval else self.exact(x)
    def _bound(self, function, x, up):  # an increasing function of a rational, from above or from below
        context = self.up if up else self.down
        found = function(context, context.divide(Decimal(x.numerator), Decimal(x.denominator)))
        return self(Fraction((found.next_plus(context) if up else found.next_minus(context)) if found else 0))  # 0 is exact: log 1
    def root(self, x):  # √x, from above
        return self._bound(Context.sqrt, high(x), up=True) if high(x) > 0 else self(0)
    def exp(self, x):  # e^x, from above; for x below −700 that of −700
        need(high(x) < 700, "an exponential that is too large")
        return self._bound(Context.exp, max(high(x), Fraction(-700)), up=True)
    def log(self, x, up):  # log x, from above or from below
        x = high(x) if up else low(x)
        need(x > 0, "the logarithm of a number that is not positive")
        return self._bound(Context.ln, x, up)
    def power(self, x, p):  # x^p of x ≥ 0, p > 0, from above
        if p == 1 or not high(x) > 0:
            return x
        return x * x if p == 2 else self.root(x) if p == Fraction(1, 2) else self.exp(self.log(x, up=True) * self(p))
    def add(self, terms):
        return sum(terms, self(0))
    def dot(self, a, b):
        return self.add(x * y for x, y in zip(a, b, strict=True))

# ------------------------------------------------------------------ models

def parsed(text):
    """JSON whose numbers are finite, and not longer than they need to be."""
    def number(digits):
        need(len(digits) < 40 and math.isfinite(float(digits)), f"{digits[:20]} is no finite number")
        return float(digits)
    def whole(digits):
        need(len(digits) < 30, f"{digits[:20]}… has too many digits")
        return int(digits)
    try:
        return json.loads(text, parse_float=number, parse_int=whole, parse_constant=number)
    except (ValueError, RecursionError) as error:
        raise Refused(f"no JSON: {error}") from None

def read_npy(stream, name, size):
    """Shape and numbers of an .npy stream of `size` bytes."""
    head = stream.read(10)
    need(head[:8] == b"\x93NUMPY\x01\x00", f"{name}: not an array of format 1")
    header = ast.literal_eval(stream.read(struct.unpack("<H", head[8:])[0]).decode("latin-1"))
    shape, order = header["shape"], header["fortran_order"]
    need(all(type(n) is int and n >= 0 for n in shape) and (order is False or len(shape) < 2), f"{name}: shape {shape!r}, Fortran's order {order!r}")
    numbers = array({"<f8": "d", "<f4": "f", "<i8": "q", "<i4": "i", "|b1": "b"}[header["descr"]])
    length = math.prod(shape) * numbers.itemsize
    need(length <= min(size, LIMIT), f"{name}: longer than its file")
    numbers.frombytes(stream.read(length))
    need(len(numbers) == math.prod(shape), f"{name}: cut off")
    if sys.byteorder == "big":
        numbers.byteswap()
    return shape, numbers

COSTS = ("costs", "rewards", "next_costs", "next_rewards")
NEEDED = {*COSTS, "kernels", "shape", "indptr", "indices", "data", "discount", "weights", "available", "terminal"}

def read_fields(path):
    """The arrays of a model by their names, (shape, numbers) each: of an .npz file, or of a directory with a model.json."""
    fields, small = {}, {}
    if not os.path.isdir(path):
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                name = info.filename.removesuffix(".npy")
                need(info.file_size <= 1000 * (info.compress_size + 100), f"{name}: packed too tightly to be numbers")
                if name in NEEDED:
                    with archive.open(info) as stream:
                        fields[name] = read_npy(stream, name, info.file_size)
        return fields, small
    with open(os.path.join(path, "model.json"), "rb") as stream:
        small = parsed(stream.read(LIMIT))
    for name in NEEDED & set(small):
        fields[name] = (), small[name] if isinstance(small[name], list) else [small[name]]
    for name in NEEDED:
        whole = os.path.join(path, f"{name}.npy")
        if os.path.exists(whole):
            with open(whole, "rb") as stream:
                fields[name] = read_npy(stream, name, os.path.getsize(whole))
    return fields, small

def costs_of(costs):
    return list(costs.values()) if isinstance(costs, dict) else [costs]

class Model:
    """The numbers of a model, pair by pair; rewards are negated costs."""
    def __init__(self, path):
        try:
            self._fields, small = read_fields(path)
            self._take(small)
        except MALFORMED as error:
            raise Refused(f"{path}: cannot be read: {error}") from None
    def _take(self, small):
        fields = self._fields
        if "kernels" in fields:
            self.N, self.S, self.A, again = (1, *fields["kernels"][0])[-4:]
            need(again == self.S, f"kernels: shape {fields['kernels'][0]}")
        else:
            self.N, self.S, self.A = fields["shape"][1]
            indptr, indices, data = (fields[name][1] for name in ("indptr", "indices", "data"))
            need(len(indptr) == self.S * self.A + 1 and len(data) == self.N * len(indices), "sizes do not fit")
        N, S, A = self.N, self.S, self.A
        need(all(type(n) is int and n > 0 for n in (N, S, A)), "no kernel, no state or no action")
        self.discount = fields["discount"][1][0]
        need(0 <= self.discount < 1, f"discount {self.discount!r}")
        self.stored_weights = [float(w) for w in fields.get("weights", ((), [1 / N] * N))[1]]
        weights = [Fraction(w) for w in self.stored_weights]
        need(len(weights) == N and min(weights) >= 0 and sum(weights) > 0, "weights: not N of them")
        self.used = [i for i, w in enumerate(weights) if w > 0]
        self.weights = [w / sum(weights) for w in weights if w > 0]
        (name,) = [name for name in COSTS if name in fields]
        self.costs, self.listed = fields[name], name.startswith("next_")
        self.sign = -1.0 if name.endswith("rewards") else 1.0
        self.maximise = self.sign < 0 or small.get("maximise") is True
        shapes = {(len(fields["indices"][1]),)} if self.listed else {(S,), (S, A), (S, A, S)}
        need(self.costs[0] in shapes, f"{name}: shape {self.costs[0]}")
        self.terminal = fields.get("terminal", ((), [0] * S))[1]
        self.available = fields.get("available", ((), [1] * (S * A)))[1]
        need(len(self.terminal) == S and len(self.available) == S * A, "terminal, available: of another size")
    def actions(self, s):
        return [] if self.terminal[s] else [a for a in range(self.A) if self.available[s * self.A + a]]
    def row(self, s, a):  # next states of a pair, the N rows over them as they are stored, and its cost, or costs {next state: cost}
        N, S, k, fields = self.N, self.S, s * self.A + a, self._fields
        if "kernels" in fields:
            whole = [fields["kernels"][1][(i * S * self.A + k) * S : (i * S * self.A + k + 1) * S] for i in range(N)]
            columns = [t for t in range(S) if any(row[t] != 0 for row in whole)]
            rows = [[row[t] for t in columns] for row in whole]
        else:
            lo, hi = fields["indptr"][1][k : k + 2]
            need(0 <= lo <= hi <= len(fields["indices"][1]), f"indptr: of state {s}, action {a}")
            columns, data = list(fields["indices"][1][lo:hi]), fields["data"][1][N * lo : N * hi]
            need(columns == sorted({t for t in columns if 0 <= t < S}), f"indices: of state {s}, action {a}")
            rows = [list(data[i * (hi - lo) : (i + 1) * (hi - lo)]) for i in range(N)]
        need(all(0 <= x < math.inf for row in rows for x in row) and all(map(sum, rows)), f"state {s}, action {a}: rows are no distributions")
        shape, costs = self.costs
        if not self.listed and len(shape) < 3:
            return columns, rows, self.sign * float(costs[k if len(shape) == 2 else s]) + 0.0
        own = zip(columns, costs[lo:hi], strict=True) if self.listed else enumerate(costs[k * S : (k + 1) * S])
        return columns, rows, {t: self.sign * float(c) + 0.0 for t, c in own}
    def digest(self):  # what identifies these numbers: a SHA-256 of them, pair by pair
        found = hashlib.sha256(struct.pack(f"<qqqd{self.N}d", self.N, self.S, self.A, self.discount, *self.stored_weights))
        for s in range(self.S):
            for a in self.actions(s):
                columns, rows, costs = self.row(s, a)
                numbers = [x for row in rows for x in row] + costs_of(costs)
                found.update(struct.pack(f"<qqq{len(columns)}i{len(numbers)}d", s, a, len(columns), *columns, *numbers))
        return found.hexdigest()

# ------------------------------------------------------------------ one state

class State:
    """A state at v: stakes z, and rows of the data divided by their sums."""
    def __init__(self, number, model, region, v, s, line):
        self.number, self.region, self.v, self.actions, self.exact_weights, self.line = number, region, v, model.actions(s), model.weights, line
        weights = [number(w) for w in model.weights]
        self.weights = [number(1)] if region.mean else weights
        self.columns, self.rows, self.seen, self._costs, self._top, self._z = {}, {}, {}, {}, {}, {}
        for a in self.actions:
            self.columns[a], stored, self._costs[a] = model.row(s, a)
            rows = [stored[i] for i in model.used]
            self.seen[a] = {t for k, t in enumerate(self.columns[a]) if any(row[k] > 0 for row in rows)}
            single = [[number(Fraction(x) / sum(map(Fraction, row))) for x in row] for row in rows]
            rows = [[number.dot(weights, column) for column in zip(*single, strict=True)]] if region.mean else single
            self.rows[a] = [dict(zip(self.columns[a], row, strict=True)) for row in rows]
    def z(self, a, t):  # c(s, a, t) + λ v(t)
        if (a, t) not in self._z:
            costs = self._costs[a]
            cost = costs.get(t, math.nan) if isinstance(costs, dict) else costs
            need(math.isfinite(cost), f"action {a}: the cost of going to {t} is unknown")
            self._z[a, t] = self.number(cost) + self.v.discount * self.v.numbers[t]
        return self._z[a, t]
    def allowed(self, a, t):  # whether nature may bring mass to t
        return self.region.support == "all" or t in self.seen[a]
    def reach(self, a):  # next states that may have mass; where v alone decides, those with the largest stakes first
        if self.region.support == "observed":
            return self.seen[a]
        return range(len(self.v.numbers)) if isinstance(self._costs[a], dict) else self.v.order
    def top(self, a):  # max z_a
        if a not in self._top:
            reach = self.reach(a)
            self._top[a] = self.z(a, reach[0]) if self.v is not None and reach is self.v.order else largest(self.z(a, t) for t in reach)
        return self._top[a]
    def above(self, a, p, eta):  # states that no kernel lists and whose g = p (z − top) may exceed η
        found = []
        for t in self.reach(a) if self.region.support == "all" else ():
            if high(p * (self.z(a, t) - self.top(a))) > low(eta):
                if t not in self.rows[a][0]:
                    found.append(t)
            elif self.reach(a) is self.v.order:
                break
        return found
    def nominal(self, a, i):  # ŷ_ia·z_a
        return self.number.add(y * self.z(a, t) for t, y in self.rows[a][i].items() if high(y) > 0)
    def spread(self, a, row):  # a row of the file, {next state: number}: a number for each listed state, then [state, number] for others
        own = self.columns[a]
        need(isinstance(row, list) and len(row) >= len(own), f"action {a}: a row is too short")
        found = dict(zip(own, row, strict=False))
        for t, x in row[len(own) :]:
            need(type(t) is int and 0 <= t < len(self.v.numbers) and t not in found, f"action {a}: a row names state {t!r}")
            found[t] = x
        return {t: self.number.exact(x) for t, x in found.items()}

class Mixture(State):
    """The N kernels as the next states of one action: what nature sees when she weights them anew."""
    def __init__(self, st, losses, line):
        n, self.line = range(len(losses)), line
        self.number, self.region, self.actions, self.weights, self.v = st.number, Region("observed", True), [0], [st.number(1)], None
        self.columns, self.rows, self.seen, self._top = {0: list(n)}, {0: [dict(enumerate(st.weights))]}, {0: set(n)}, {}
        self._z = {(0, i): loss for i, loss in enumerate(losses)}

# ------------------------------------------------------------------ sets

class Region:
    """A set: `upper` bounds Σ_a x_a y_a·z_a over it, `lower` bounds y_a·z_a from below for rows that are in it.

    A class has `row` (bounds one row at a price), `price` (of the budget) and `shares` (how much of a move is allowed).
    """
    scale, still = 1, True  # budget in a unit of the radius; whether nothing moves without one
    def __init__(self, support, mean):
        self.support, self.mean = support, mean
    def upper(self, st, acts, x, budget, side):
        fixed, kept, total = self.still and not high(budget) > 0, [{} for _ in st.weights], st.number(0)
        for k, a in enumerate(acts):
            for i, w in enumerate(st.weights if x[a] else ()):
                p = st.number(x[a])
                total += w * (p * st.nominal(a, i) if fixed else self.row(st, a, i, p, side, k, kept[i]))
        return total if fixed else total + self.price(st, budget, side, kept)
    def lower(self, st, acts, budget, side):
        values, parts = {}, [[] for _ in st.weights]
        for a, rows in zip(acts, side["y"], strict=True):
            rows = [None] * len(parts) if rows is None else rows
            need(len(rows) == len(parts), f"action {a}: expected {len(parts)} rows")
            values[a] = [self.moved(st, a, i, row, parts[i]) for i, row in enumerate(rows)]
        shares = self.shares(st, budget, parts)
        return {a: st.number.add(w * (old + part * (new - old)) for w, part, (old, new) in zip(st.weights, shares, values[a], strict=True)) for a in acts}
    def moved(self, st, a, i, row, parts):  # ŷ·z and y·z of a row of the file; adds pairs of probabilities, y and ŷ, to parts
        nominal = st.nominal(a, i)
        if row is None:
            return nominal, nominal
        y = st.spread(a, row)
        mass = sum(y.values())
        need(min(y.values()) >= 0 and mass > 0, f"action {a}: a row is no distribution")
        need(all(st.allowed(a, t) for t, p in y.items() if p > 0), f"action {a}: mass where nature must not bring it")
        y = {t: st.number(p / mass) for t, p in y.items()}
        parts += [(p, st.rows[a][i].get(t, st.number(0))) for t, p in y.items()]
        return nominal, st.number.add(p * st.z(a, t) for t, p in y.items() if high(p) > 0)
    @staticmethod
    def share(number, budget, cost):
        return number(Fraction(1) if high(cost) <= low(budget) else low(budget / cost))

class Norms(Region):
    """Balls of a norm of the difference, stacked over the actions, of any order over the kernels."""
    def __init__(self, given, support):
        super().__init__(support, given.get("around") == "mean")
        self.metric, order = given["metric"], given["order"]
        self.order = None if order == "inf" else Fraction(order)
        need(self.metric in ("l1", "l2", "linf") and (self.order is None or self.order >= 1), "an unknown norm")
        need(not self.mean or (self.metric, self.order) == ("l1", 1), "only the l1 ball of order 1 is one around the mean")
    @staticmethod
    def norm(number, kind, parts):
        if kind == "linf":
            return largest([number(0), *map(abs, parts)])
        return number.add(map(abs, parts)) if kind == "l1" else number.root(number.add(p * p for p in parts))
    @staticmethod
    def together(st, norms, order):  # (Σ w n^order)^{1/order}, from above; the largest for None
        power = st.number.power
        return power(st.number.dot(st.weights, [power(n, order) for n in norms]), 1 / order) if order else largest(norms)
    def row(self, st, a, i, p, side, k, kept):
        number, total, base, half = st.number, p * st.top(a), st.rows[a][i], st.number(0.5)
        whole = sum(number.exact(f) for f, _, _ in side["rows"][k][i])
        for f, eta, size in side["rows"][k][i]:
            need(f > 0 and eta <= 0 and size >= 0, "a threshold or a size is out of range")
            f, eta, size = number(Fraction(f) / whole), number(eta), number(size)
            total += f * (eta * half if self.metric == "l1" else eta)  # max_t (g − e)
            for t in [t for t in base if st.allowed(a, t)] + ([] if self.metric == "l1" else st.above(a, p, eta)):
                y, g = base.get(t, number(0)), p * (st.z(a, t) - st.top(a))
                if self.metric == "l1":
                    e = largest([g, eta]) - eta * half
                    kept[None] = largest([kept.get(None, number(0)), -eta * half])  # the largest |e| of any state
                else:
                    clipped = largest([g - eta, -(size * y)]) if self.metric == "l2" else number(0)
                    free = self.metric == "linf" and (high(g) > low(eta) or (high(y) > 0 and low(y) >= high(size)))
                    e = g - eta if free else clipped
                    kept[a, t] = kept.get((a, t), number(0)) + f * e
                total += f * e * y
        return total
    def price(self, st, budget, side, kept):
        dual = {"l1": "linf", "linf": "l1", "l2": "l2"}[self.metric]
        norms = [self.norm(st.number, dual, parts.values()) for parts in kept]
        q = Fraction(1) if self.order is None else None if self.order == 1 else self.order / (self.order - 1)
        return budget * self.together(st, norms, q)
    def shares(self, st, budget, parts):
        norms = [self.norm(st.number, self.metric, [y - base for y, base in own]) for own in parts]
        costs = norms if self.order is None else [self.together(st, norms, self.order)] * len(norms)
        return [self.share(st.number, budget, cost) for cost in costs]

class Divergence(Region):
    """Balls by a divergence, added up over the actions, around the mean row or, in the mean, around the kernels."""
    def __init__(self, given, support):
        super().__init__(support, given["around"] == "mean")
        self.kind = given["kind"]
        need(self.kind in ("kl", "burg", "chi2") and given["around"] in ("mean", "kernels"), "an unknown divergence")
    def row(self, st, a, i, p, side, k, kept):
        number, kappa, eta = st.number, st.number(side["kappa"]), st.number(side["eta"][k][i])
        if side["kappa"] == 0:  # whatever is spent: only burg leaves the support of a row
            return p * (st.top(a) if self.kind == "burg" else largest(st.z(a, t) for t, y in st.rows[a][i].items() if high(y) > 0))
        need(low(kappa) > 0 and (self.kind != "burg" or low(eta + kappa) >= 0), "kappa, eta: out of range")
        stakes = ((p * (st.z(a, t) - st.top(a)), y) for t, y in st.rows[a][i].items() if high(y) > 0)
        return p * st.top(a) + eta + kappa * number.add(self.conjugate(number, number(high((g - eta) / kappa)), y) for g, y in stakes)
    def conjugate(self, number, s, y):  # φ*(s; ŷ) of one entry, from above; it increases in s
        if self.kind == "kl":
            return y * (number.exp(s) - number(1))
        if self.kind == "burg":
            return y * -number.log(number(1) - s, up=False)
        return y * (s + s * s * number(0.25)) if high(s) >= -2 else -y
    def price(self, st, budget, side, kept):
        return st.number(side["kappa"]) * budget
    def shares(self, st, budget, parts):
        costs = [st.number.add(self.cost(st.number, *pair) for pair in own) for own in parts]
        return [self.share(st.number, budget, st.number.dot(st.weights, costs))] * len(costs)
    def cost(self, number, y, base):  # what an entry adds to D(y ‖ ŷ), from above
        if not high(base) > 0:
            need(self.kind == "burg" or not high(y) > 0, "an infinite divergence")
            return number(0)
        if self.kind == "chi2":
            return (y - base) * (y - base) / base
        return base * number.log(base / y, up=True) if self.kind == "burg" else y * number.log(y / base, up=True) if high(y) > 0 else number(0)

class Transport(Region):
    """Mass moves at a price for each pair of states; one budget for the mean row, or one for each kernel."""
    still = False
    def __init__(self, given, support):
        super().__init__(support, given["order"] == 1)
        self.grid, self.lists = given.get("grid"), given.get("lists")
        need(given["order"] in (1, "inf") and (self.grid is None) != (self.lists is None), "an unknown transport")
    def near(self, st, a, j):  # what it costs to bring mass from j to where it may go, {next state: D(j, t)}
        exact, every = st.number.exact, range(len(st.v.numbers))
        if self.grid is None:
            found = {t: exact(d) for t, d in self.lists[j]}
        else:
            found = {t: sum(abs(exact(p) - exact(q)) for p, q in zip(self.grid[j], self.grid[t], strict=True)) for t in every if st.allowed(a, t)}
        need(all(d >= 0 and t in every for t, d in found.items()), f"distances from state {j}")
        return {t: st.number(d) for t, d in {**found, j: Fraction(0)}.items() if t == j or st.allowed(a, t)}
    def row(self, st, a, i, p, side, k, kept):
        kappa = st.number(side["kappa"][i])
        need(low(kappa) >= 0, "kappa is negative")
        best = ((j, y, self.near(st, a, j)) for j, y in st.rows[a][i].items() if high(y) > 0)
        return st.number.add(y * largest(p * st.z(a, t) - kappa * d for t, d in near.items()) for j, y, near in best)
    def price(self, st, budget, side, kept):
        return budget * st.number.dot(st.weights, map(st.number, side["kappa"]))
    def moved(self, st, a, i, row, parts):  # ŷ·z and y·z for a plan [[from, to, share of what is there], …]; adds its cost to parts
        nominal = value = st.nominal(a, i)
        moves, out = [(j, t, st.number.exact(f)) for j, t, f in row or ()], {}
        for j, t, f in moves:
            need(f >= 0, f"action {a}: a move of less than nothing from {j} to {t}")
            out[j] = out.get(j, 0) + f
        for j, t, f in moves:
            mass = st.rows[a][i][j] * st.number(f / max(out[j], Fraction(1)))
            value += mass * (st.z(a, t) - st.z(a, j))
            parts.append(mass * self.near(st, a, j)[t])
        return nominal, value
    def shares(self, st, budget, parts):
        return [self.share(st.number, budget, st.number.add(own)) for own in parts]

class Intervals(Region):
    """An interval for each probability, one for both sides, in the line of the state."""
    def __init__(self, given, support):
        super().__init__("all", True)
    def box(self, st, a):  # ends of the intervals, {next state: (lo, hi)}
        lo, hi = (st.spread(a, st.line[name][st.actions.index(a)]) for name in ("lo", "hi"))
        need(all(0 <= p <= hi.get(t, 0) for t, p in lo.items()) and min(hi.values()) >= 0, f"action {a}: an empty interval")
        least, most = max(sum(lo.values()), Fraction(1)), min(sum(hi.values()), Fraction(1))
        need(least - 1 < 1e-8 and 1 - most < 1e-8, f"action {a}: no distribution is in the intervals")
        return {t: (lo.get(t, Fraction(0)) / least, p / most) for t, p in hi.items() if p > 0}
    def upper(self, st, acts, x, budget, side):
        number, total = st.number, st.number(0)
        for k, a in enumerate(acts):
            if x[a]:
                z = [(st.z(a, t), ends) for t, ends in self.box(st, a).items()]
                eta = largest(value for value, _ in z) + number(side["eta"][k])
                total += number(x[a]) * sum((largest(number(end) * (value - eta) for end in ends) for value, ends in z), eta)
        return total
    def lower(self, st, acts, budget, side):
        found = {}
        for k, a in enumerate(acts):
            box, y = self.box(st, a), st.spread(a, side["y"][k])
            y = {t: min(max(y.get(t, Fraction(0)), p), q) for t, (p, q) in box.items()}
            lack = 1 - sum(y.values())
            room = {t: q - y[t] if lack > 0 else y[t] - p for t, (p, q) in box.items()}
            y = {t: p + lack * room[t] / sum(room.values()) for t, p in y.items()} if lack else y
            found[a] = st.number.add(st.number(p) * st.z(a, t) for t, p in y.items())
        return found

class Reweighting(Region):
    """One mixture of the kernels for all actions: a set of rows over the kernels, around their weights."""
    def __init__(self, given, support):
        super().__init__(support, False)
        self.kind = given["kind"]
        self.inner = Intervals(given, support) if self.kind in ("cvar", "any") else divergence({**given, "around": "mean"}, "observed")
    def _ends(self, st, budget):  # intervals for the weights of cvar, whose budget is the level, and any
        level = low(budget) if self.kind == "cvar" else 0
        need(level <= 1, "a level above 1")
        return {"lo": [[0] * len(st.exact_weights)], "hi": [[w / level if level else Fraction(1) for w in st.exact_weights]]}
    def upper(self, st, acts, x, budget, side):
        losses = [st.number.add(st.number(x[a]) * st.nominal(a, i) for a in acts if x[a]) for i in range(len(st.weights))]
        return self.inner.upper(Mixture(st, losses, self._ends(st, budget)), [0], [1], budget * st.number(self.inner.scale), side)
    def lower(self, st, acts, budget, side):
        losses = {a: [st.nominal(a, i) for i in range(len(st.weights))] for a in acts}
        ends, inside = self._ends(st, budget), budget * st.number(self.inner.scale)
        return {a: self.inner.lower(Mixture(st, losses[a], ends), [0], inside, side)[0] for a in acts}

def divergence(given, support):
    """A ball by a divergence; total variation is half the ℓ1 norm."""
    if given["kind"] != "tv":
        return Divergence(given, support)
    found = Norms({"metric": "l1", "order": 1, "around": given["around"]}, support)
    found.scale = 2
    return found

FAMILIES = {"norm": Norms, "divergence": divergence, "transport": Transport, "reweighting": Reweighting, "intervals": Intervals}

# ------------------------------------------------------------------ all states

class Values:
    """v as it stands in the file; 0 in terminal states."""
    def __init__(self, number, model, given, discount):
        need(isinstance(given, list) and len(given) == model.S, f"v: expected {model.S} numbers")
        self.exact = [number.exact(x) for x in given]
        need(not any(x for x, end in zip(self.exact, model.terminal, strict=True) if end), "v is not 0 in a terminal state")
        self.numbers, self.discount = [number(x) for x in self.exact], number(discount)
        self.order = sorted(range(model.S), key=lambda t: -self.exact[t])

class Proof:
    """A proof, read line after line, and what it proves: `bounds` has (lower, upper, claimed lower, claimed upper) of every sweep."""
    def __init__(self, path, model, number):
        self.model, self.number, self.at, self.sizes = model, number, 0, (math.inf, -math.inf)
        try:
            with open(path, "rb") as self._stream:
                self.header = self._line()
                self._begin()
                self.bounds = list(self._bounds())
                need(self._line() == {"end": True} and not self._stream.read(1), "does not end where it should")
        except MALFORMED as error:
            raise Refused(f"{path}: line {self.at}: {type(error).__name__}: {error}") from None
        except Refused as error:
            raise Refused(f"{path}: line {self.at}: {error}") from None
    def _line(self):
        self.at += 1
        text = self._stream.readline(LIMIT)
        need(text.endswith(b"\n"), "cut off")
        found = parsed(text)
        need(isinstance(found, dict), "not an object")
        return found
    def _begin(self):
        header, given = self.header, self.header["set"]
        need(header["format"] == FORMAT, f"expected format {FORMAT!r}, got {header['format']!r}")
        need(header["model"] == self.model.digest(), "the model is not the one that the proof is about")
        need(header["kind"] in ("optimum", "policy") and header["rectangular"] in ("s", "sa"), "an unknown kind")
        need(header["support"] in ("observed", "all"), "an unknown support")
        need(given["family"] in FAMILIES, f"cannot check the set {given['family']!r} yet")
        self.region, self.stages = FAMILIES[given["family"]](given, header["support"]), header.get("stages")
        self.discount = Fraction(self.model.discount if self.stages is None else self.number.exact(header["discount"]))
        need(0 <= self.discount <= 1, f"discount {self.discount}")
    def _sweep(self):  # v, L, U and what is claimed, of one sweep; rationals for every state
        line, model = self._line(), self.model
        v, sides = Values(self.number, model, line["v"], self.discount), ([], [])
        for s in range(model.S):
            found = (Fraction(0), Fraction(0)) if model.terminal[s] else self._judged(v, s, self._line())
            for side, bound in zip(sides, found, strict=True):
                side.append(bound)
        claims = [[self.number.exact(x) for x in line[name]] for name in ("lower", "upper")]
        need(all(len(claim) == model.S for claim in claims), "lower, upper: of another size")
        return v.exact, sides, claims
    def _judged(self, v, s, line):  # L and U of a state
        number, region, alone = self.number, self.region, self.header["rectangular"] == "sa"
        need(line["s"] == s, f"expected state {s}, got {line['s']!r}")
        st, x = State(number, self.model, region, v, s, line), [number.exact(p) for p in line["x"]]
        need(len(x) == self.model.A and min(x) >= 0 and sum(x) > 0, "x is no policy")
        need(not any(p for a, p in enumerate(x) if a not in st.actions), "x plays an action that is not there")
        x = [p / sum(x) for p in x]
        sizes = line["r"] if isinstance(line["r"], list) else [line["r"]] * (len(st.actions) if alone else 1)
        budgets = [number(number.exact(r) * region.scale) for r in sizes]
        need(all(low(r) >= 0 for r in budgets), "a negative radius")
        self.sizes = min(self.sizes[0], *sizes), max(self.sizes[1], *sizes)
        if alone:
            up, below = number(0), {}
            for a, r, above, under in zip(st.actions, budgets, line["up"], line["low"], strict=True):
                up += number(x[a]) * region.upper(st, [a], {a: 1}, r, above) if x[a] else number(0)
                below |= region.lower(st, [a], r, under)
        else:
            (r,) = budgets
            up, below = region.upper(st, st.actions, x, r, line["up"]), region.lower(st, st.actions, r, line["low"])
        if self.header["kind"] == "policy":
            return low(number.add(number(x[a]) * below[a] for a in st.actions)), high(up)
        return min(map(low, below.values())), high(up)
    def _bounds(self):
        model, ends, stages = self.model, self.model.terminal, self.stages
        need(stages is None or (type(stages) is int and stages > 0), f"stages: {stages!r}")
        costs = [0] if stages else [c for s in range(model.S) for a in model.actions(s) for c in costs_of(model.row(s, a)[2]) if math.isfinite(c)]
        factor = self.discount if stages else self.discount / (1 - self.discount)
        bounds = [[self.number.exact(x) for x in self.header["final"]]] * 2 if stages else None
        for _ in range(stages or 1):  # stages from the last one back
            v, swept, claims = self._sweep()
            new = []
            for k, (end, side) in enumerate(zip((min, max), swept, strict=True)):
                beyond = factor * end(x - old for x, old in zip(bounds[k] if stages else side, v, strict=True))
                limit = None if stages else Fraction(end([0, *costs])) / (1 - self.discount)  # no value is beyond
                found = [Fraction(0) if last else x + beyond for x, last in zip(side, ends, strict=True)]
                new.append(found if stages else [(max, min)[k](x, limit) for x in found])
            bounds = new
            yield *bounds, *claims
    def failures(self):  # where less is proved than claimed: (sweep, state, proved, claimed)
        for k, (lower, upper, least, most) in enumerate(self.bounds):
            for s in range(self.model.S):
                yield from ((k, s, *pair) for pair, wrong in (((lower[s], least[s]), lower[s] < least[s]), ((upper[s], most[s]), upper[s] > most[s])) if wrong)

def check(proof, model, interval=False):
    """Check a proof about a model; returns a `Proof`. What is irrational is computed to more digits where that may decide."""
    data = Model(model)
    found = Proof(proof, data, Numbers(interval, 40))
    return found if interval or next(found.failures(), None) is None else Proof(proof, data, Numbers(False, 150))

def main(arguments=None):
    """Check and show; returns 2 if a file is refused."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    interval, files = "--interval" in given, [word for word in given if word != "--interval"]
    try:
        need(len(files) == 2, "usage: python -m drmdp_check [--interval] PROOF MODEL")
        return show(check(*files, interval))
    except Refused as error:
        print(f"refused: {error}", file=sys.stderr)
        return 2

def show(found):
    """Print what is proved; returns 0 if it is all that is claimed, else 1."""
    header, failures = found.header, list(found.failures())
    lower, upper = found.bounds[-1][:2]
    least, most = sorted(float(-bound[0] if found.model.maximise else bound[0]) for bound in (lower, upper))
    print(f"set         {json.dumps(header['set'])[:200]}, support {header['support']}, rectangular {header['rectangular']}")
    print(f"radius      from {found.sizes[0]!r} to {found.sizes[1]!r} over the states")
    print(f"written by  drmdp {str(header.get('version'))[:40]}; checked in {'floats, rounded outwards' if found.number.interval else 'exact arithmetic'}")
    print(f"state 0     from {least!r} to {most!r}{' at the first stage' if found.stages else ''}")
    print(f"gap         {float(max(u - x for one in found.bounds for x, u in zip(*one[:2], strict=True))):.3e} at most, in {found.model.S} states")
    for k, s, proved, claimed in failures[:5]:
        print(f"not proved: state {s}, sweep {k}: {float(claimed)!r} is claimed, {float(proved)!r} is proved")
    print(f"{len(failures)} of the claimed bounds are not proved" if failures else "all claimed bounds hold")
    return 1 if failures else 0

if __name__ == "__main__":
    sys.exit(main())
