"""Proofs of totals, probabilities and averages that were made by hand, and forgeries of them: the
checker alone, no solver.
"""

import json
import math

import numpy as np
import pytest

import drmdp_check
from drmdp_check.__main__ import Model

BELOW, ABOVE = -math.inf, math.inf


class Case:
    """A model of intervals around one kernel and a proof of it; lines may be changed before they
    are checked.
    """

    def __init__(self, folder, kernel, costs=None, ends=None, margin=0.0, discount=1.0, **header):
        self.folder, kernel = folder, np.asarray(kernel, dtype=float)
        S, A, _ = kernel.shape
        self.ends = ends or {}
        self.fields = {
            "kernels": kernel,
            "costs": np.zeros((S, A)) if costs is None else np.asarray(costs, dtype=float),
            "discount": np.array(discount),
            "terminal": np.array([s in self.ends for s in range(S)]),
            "ends": np.array([self.ends.get(s, 0.0) for s in range(S)]),
        }
        rows = [[[p for p in row if p] for row in state] for state in kernel.tolist()]
        self.lo = [
            [[max(p - margin, 0.0) if p < 1 else p for p in row] for row in state] for state in rows
        ]
        self.hi = [[[min(p + margin, 1.0) for p in row] for row in state] for state in rows]
        common = {
            "kind": "optimum",
            "nature": "adversarial",
            "set": {"family": "intervals"},
            "support": "observed",
            "rectangular": "s",
            "moves": "states",
        }
        self.lines = [{"format": "drmdp proof 2", **common, **header, "sweeps": []}]

    @property
    def over(self):
        """States without lines."""
        return {*self.ends, *self.lines[0].get("target", ()), *self.lines[0].get("avoid", ())}

    def sweep(self, side, v, policy, claims=None, low=None, **more):
        """Add a sweep: the policy by state (an action), nature's rows if they are not the middle
        ones; claims are v if not told.
        """
        self.lines[0]["sweeps"].append(side)
        given = claims or {}
        sides = {name: given.get(name, v) for name in ("lower", "upper") if side in (name, "both")}
        self.lines.append({"v": v, **sides, **{name: x for name, x in more.items() if name == "w"}})
        A = self.fields["kernels"].shape[1]
        for s, a in enumerate(policy):
            if s in self.over:
                continue
            line = {
                "s": s,
                "x": [float(b == a) for b in range(A)],
                "r": 0,
                "lo": self.lo[s],
                "hi": self.hi[s],
            }
            rows = (
                [[p for p in row if p] for row in self.fields["kernels"][s].tolist()]
                if low is None
                else low[s]
            )
            line |= {"low": {"y": rows}, "up": {"eta": [more.get("eta", {}).get(s, 0.0)] * A}}
            line |= {"time": {"eta": [more.get("late", 0.0)] * A}} if "w" in more else {}
            self.lines.append(line)
        return self

    def check(self, interval=False, change=None, fields=None):
        """What is proved of the first state, (lower, upper), and whether that is all that is
        claimed.
        """
        path, proof = self.folder / "m.npz", self.folder / "p"
        np.savez(path, **self.fields)
        lines = json.loads(json.dumps([*self.lines, {"end": True}]))
        given = Model(path)
        if lines[0]["criterion"] == "reach":
            given.aim(lines[0]["target"], lines[0]["avoid"], lines[0]["minimise"])
        lines[0]["model"] = given.digest
        if change:
            change(lines)
        np.savez(path, **self.fields | (fields or {}))
        proof.write_text("".join(json.dumps(line) + "\n" for line in lines))
        found = drmdp_check.check(proof, path, interval)
        self.said = found
        return found.bounds[0][0][0], found.bounds[0][1][0], not list(found.failures())

    def fails(self, change, **given):
        """That a forgery proves less than it claims, or is refused: exactly and in floats; returns
        why, if refused.
        """
        why = ""
        for interval in (False, True):
            try:
                *_, fine = self.check(interval, change, **given)
            except drmdp_check.Refused as error:
                why = str(error)
            else:
                assert not fine
                assert drmdp_check.show(self.said) in (1, 3)
        return why


def both(case):
    """What is proved exactly; in floats all of it, too."""
    assert case.check(True)[2]
    found = case.check()
    assert found[2]
    assert drmdp_check.show(case.said) == 0
    return found[:2]


def setter(k, name, s, x):
    """Change an entry of a line."""
    return lambda lines: lines[k][name].__setitem__(s, x)


# ---------------------------------------------------------------------- total


def walk(folder, upper=2.5, lower=1.9, **given):
    """State 0 stays with probability 0.3 to 0.7, at the cost 1: against nature it lasts 10/3
    steps.
    """
    case = Case(
        folder, [[[0.5, 0.5]], [[0, 1]]], [[1.0], [0.0]], {1: 0.0}, 0.2, criterion="total", **given
    )
    return case.sweep("lower", [lower, 0.0], [0], low=[[[0.7, 0.3]]]).sweep(
        "upper", [upper, 0.0], [0], eta={0: -upper}
    )


def test_a_total_is_between_what_two_sweeps_prove(tmp_path):
    assert both(walk(tmp_path, 3.5, 3.25)) == pytest.approx(
        (1 + 0.7 * 3.25, 1 + 0.7 * 3.5), rel=1e-15
    )  # a step further
    case = walk(tmp_path, 3.5, 3.25)
    case.lines[1]["lower"][0], case.lines[3]["upper"][0] = (
        1 + 0.7 * 3.25 - 1e-9,
        1 + 0.7 * 3.5 + 1e-9,
    )
    assert case.check()[2]


def test_values_that_a_step_does_not_lower_bound_nothing(tmp_path):
    """Below 10/3 the step goes up; at 10/3 it is lost in rounding."""
    for u in (3.0, 3.3, 10 / 3 - 1e-12):
        case = walk(tmp_path, u, 3.25)
        assert case.check()[1:] == (ABOVE, False)
        assert drmdp_check.show(case.said) == 1
        assert case.check(True)[1:] == (ABOVE, False)
    assert walk(tmp_path, 3.5, 3.4).check()[0::2] == (BELOW, False)
    assert "is not what it ends with" in walk(tmp_path, 3.5, 3.25).fails(setter(3, "v", 1, -1.0))


def test_zero_is_no_step(tmp_path):
    """Where waiting costs nothing, a total without a strict step is not the total of a policy that
    arrives.
    """
    loop = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0]] * 2]
    for action, fine in ((0, False), (1, True)):
        case = Case(tmp_path, loop, [[0.0, 1.0], [0.0, 0.0]], {1: 0.0}, criterion="total")
        case.sweep("upper", [1.5, 0.0], [action])
        assert case.check()[2] is fine
        assert case.check(True)[2] is fine
    waits = Case(tmp_path, loop, [[0.0, 1.0], [0.0, 0.0]], {1: 0.0}, criterion="total").sweep(
        "lower", [1.0, 0.0], [0]
    )
    assert both(waits) == (1.0, ABOVE)  # whoever arrives pays 1: no strictness from below
    assert (
        not Case(tmp_path, loop, [[0.0, 1.0], [0.0, 0.0]], {1: 0.0}, criterion="total")
        .sweep("lower", [1.5, 0.0], [0])
        .check()[2]
    )


def pays(folder, w=None, late=0.0):
    """A step earns 1 and ends with probability 1/2; the end costs 5."""
    case = Case(folder, [[[0.5, 0.5]], [[0, 1]]], [[-1.0], [0.0]], {1: 5.0}, 0.1, criterion="total")
    more = {} if w is None else {"w": [w, 0.0], "late": late}
    return case.sweep("upper", [3.6, 5.0], [0], eta={0: 0.0}, **more)


def test_costs_below_0_need_times(tmp_path):
    assert "no times" in pays(tmp_path).fails(None)
    case = pays(tmp_path, 2.75, -2.75)
    assert both(case) == (BELOW, pytest.approx(-1 + 0.4 * 3.6 + 0.6 * 5))
    assert case.said.times == [pytest.approx(1 + 0.6 * 2.75)]
    for w, late in ((2.4, -2.4), (-1.0, 0.0)):  # 2.5 steps against nature
        assert "no times" in pays(tmp_path, w, late).fails(None)


def test_a_policy_that_does_not_arrive_has_no_total(tmp_path):
    """It earns 1 a step for ever; times would have to fall."""
    case = Case(tmp_path, [[[1.0, 0.0]], [[0, 1]]], [[-1.0], [0.0]], {1: 0.0}, criterion="total")
    assert "no times" in case.sweep("upper", [-1e6, 0.0], [0]).fails(None)
    timed = Case(tmp_path, [[[1.0, 0.0]], [[0, 1]]], [[-1.0], [0.0]], {1: 0.0}, criterion="total")
    assert "no times" in timed.sweep("upper", [-1e6, 0.0], [0], w=[1e9, 0.0]).fails(None)


# ---------------------------------------------------------------------- reach


def loop(folder, u, target=(1,), **given):
    """State 0 stays where it is, whatever is done; 1 is the target."""
    asked = {"criterion": "reach", "target": list(target), "avoid": [], "minimise": False} | given
    return Case(folder, [[[1.0, 0.0]], [[0, 1]]], [[7.0], [0.0]], discount=0.5, **asked).sweep(
        "upper", [u, -1.0], [0]
    )


def test_a_loop_proves_no_probability(tmp_path):
    """F(−1) = −1 in a loop: what never happens would be sure."""
    for u in (-1.0, -0.5, -1e-300):
        case = loop(tmp_path, u)
        assert case.check() == (BELOW, ABOVE, False)
        assert case.check(True) == (BELOW, ABOVE, False)
        assert drmdp_check.show(case.said) == 1
    assert both(loop(tmp_path, 0.0)) == (BELOW, 0.0)


P = 0.5 + 2.0**-40


def swap(folder, **given):
    """0 and 1 can be exchanged for nothing; out of 0 the target, 2, is reached with 1/8 to 3/8, out
    of 1 with 1/2 to 3/4. A crash is 3.
    """
    kernel = [
        [[0, 1, 0, 0], [0, 0, 1 / 4, 3 / 4]],
        [[1, 0, 0, 0], [0, 0, 5 / 8, 3 / 8]],
        [[0, 0, 1, 0]] * 2,
        [[0, 0, 0, 1]] * 2,
    ]
    asked = {"criterion": "reach", "target": [2], "avoid": [3], "minimise": False} | given
    case = Case(folder, kernel, margin=1 / 8, discount=0.9, **asked)
    worst = [[[1.0], [1 / 8, 7 / 8]], [[1.0], [1 / 2, 1 / 2]]]
    case.sweep("lower", [-P, -P, -1.0, 0.0], [1, 1], low=worst)
    return case.sweep("upper", [-0.48, -0.49, -1.0, 0.0], [0, 1], eta={1: -1.0})


def test_players_who_go_round_in_circles(tmp_path):
    """From above the step of an exchange is 0, and floats that are rounded outwards see that."""
    assert both(swap(tmp_path)) == (-P, -0.49)
    for u in (
        math.nextafter(P, 0),
        math.nextafter(P, 1),
    ):  # one float lower or higher than the other
        for s in (0, 1):
            assert not swap(tmp_path).fails(
                lambda lines, s=s, u=u: [
                    lines[1][name].__setitem__(s, -u) for name in ("v", "lower")
                ]
            )
    case = swap(tmp_path)
    assert not case.fails(
        lambda lines: [
            lines[1].update(v=[x, x, -1.0, 0.0], lower=[x, x, -1.0, 0.0]) for x in [-0.5 + 2.0**-54]
        ]
    )
    assert not case.fails(lambda lines: lines[3]["low"]["y"][1].__setitem__(0, 0.9))
    assert not case.fails(setter(4, "v", 0, -0.5))  # no policy reaches so much
    assert not case.fails(setter(4, "v", 0, -0.49))  # a step of 0 where there must be one


def test_forgeries_of_probabilities(tmp_path):
    case = swap(tmp_path)
    head = lambda name, x: lambda lines: lines[0].__setitem__(name, x)  # noqa: E731
    assert "not the one" in case.fails(head("target", [2, 1]))
    assert "not the one" in case.fails(head("avoid", []))
    assert case.fails(head("minimise", True))
    assert "expected true or false" in case.fails(head("minimise", 1))
    assert case.fails(head("criterion", "total"))
    assert case.fails(head("criterion", "average"))
    assert "expected format" in case.fails(head("criterion", "discounted"))
    assert "expected one of" in case.fails(head("criterion", "fair"))
    assert "target, avoid" in case.fails(head("avoid", [2]))
    assert case.fails(head("sweeps", ["upper", "lower"]))
    case.fails(head("nature", "cooperative"))
    assert "sweeps" in case.fails(head("sweeps", ["lower", "lower"]))
    assert case.fails(None, fields={"terminal": np.array([False, True, False, False])})
    costs = {"costs": np.full((4, 2), 9.0), "discount": np.array(0.3)}  # of no concern
    assert case.check(fields=costs)[2]


def test_sides_are_about_one_set_and_one_policy(tmp_path):
    """A radius, intervals or a given policy that differ between two sweeps are two problems."""
    case = swap(tmp_path)
    assert "differ" in case.fails(lambda lines: lines[5]["hi"][1].__setitem__(0, 0.9))
    assert "differ" in case.fails(lambda lines: lines[5].update(r=0.1))
    given = swap(tmp_path, kind="policy")
    assert "differ" in given.fails(None)
    assert case.check(
        change=lambda lines: lines[4].update(set={"family": "norm", "metric": "l1", "order": 1})
    )[2]
    assert [*case.said.sets] == [
        '{"family": "intervals"}, support observed, rectangular s, moves states'
    ]


# ---------------------------------------------------------------------- average


def two(folder, h=(0.0, 1.0), claims=None, **given):
    """0 and 1 are changed with probability 0.4 to 0.6; being in 1 costs 1."""
    case = Case(
        folder,
        [[[0.5, 0.5]], [[0.5, 0.5]]],
        [[0.0], [1.0]],
        None,
        0.1,
        0.9,
        criterion="average",
        **given,
    )
    claims = claims or {"lower": [0.6] * 2, "upper": [0.6] * 2}
    return case.sweep(
        "both",
        list(h),
        [0, 0],
        claims,
        low=[[[0.4, 0.6]]] * 2,
        eta=dict.fromkeys((0, 1), h[0] - h[1]),
    )


def test_an_average_is_between_the_smallest_and_the_largest_step(tmp_path):
    case = two(tmp_path, claims={"lower": [0.6 - 1e-15] * 2, "upper": [0.6 + 1e-15] * 2})
    lower, upper = both(case)
    assert abs(lower - 0.6) < 1e-15
    assert abs(upper - 0.6) < 1e-15
    lower, upper, _ = two(tmp_path, (0.0, 0.5)).check()
    assert lower == pytest.approx(0.3)
    assert upper == pytest.approx(0.8)
    two(tmp_path, claims={"lower": [0.61] * 2, "upper": [0.7] * 2}).fails(None)
    two(tmp_path, claims={"lower": [0.5] * 2, "upper": [0.59] * 2}).fails(None)
    assert "ends" in Case(
        tmp_path, [[[0.5, 0.5]], [[0, 1]]], [[1.0], [0.0]], {1: 0.0}, criterion="average"
    ).sweep("both", [0.0, 0.0], [0]).fails(None)


# ---------------------------------------------------------------------- ends and discounts


def test_values_of_the_end_are_part_of_the_model(tmp_path):
    case = walk(tmp_path, 3.5, 3.25)
    other = {"ends": np.array([0.0, 1.0])}
    assert "not the one" in case.fails(None, fields=other)
    assert "ends" in case.fails(None, fields={"ends": np.array([1.0, 0.0])})
    for discount in (0.99, np.array([[0.5], [1.0]])):
        assert case.fails(None, fields={"discount": np.asarray(discount)})


def test_a_total_has_no_discount_and_what_is_discounted_has(tmp_path):
    short = Case(
        tmp_path,
        [[[0.5, 0.5]], [[0, 1]]],
        [[1.0], [0.0]],
        {1: 0.0},
        discount=0.9,
        criterion="total",
    )
    assert "do not fit" in short.sweep("upper", [2.5, 0.0], [0]).fails(None)
    whole = Case(
        tmp_path,
        [[[0.5, 0.5]], [[0, 1]]],
        [[1.0], [0.0]],
        {1: 0.0},
        criterion="discounted",
        format="drmdp proof 1",
    )
    assert "do not fit" in whole.sweep("both", [2.5, 0.0], [0]).fails(None)


def test_discounted_costs_until_an_end_that_costs(tmp_path):
    """V = 1 + 0.9 (V/2 + 10/2), V = 10."""
    case = Case(
        tmp_path,
        [[[0.5, 0.5]], [[0, 1]]],
        [[1.0], [0.0]],
        {1: 10.0},
        discount=0.9,
        criterion="discounted",
        format="drmdp proof 1",
    )
    case.sweep(
        "both", [10.0, 10.0], [0], {"lower": [10 - 1e-12, 10.0], "upper": [10 + 1e-12, 10.0]}
    )
    lower, upper = both(case)
    assert lower == pytest.approx(10, rel=1e-12)
    assert upper == pytest.approx(10, rel=1e-12)


def test_a_discount_for_each_pair(tmp_path):
    """V(0) = 1 + V(1)/2, V(1) = 1 + 3/4 V(0): 12/5 and 14/5. Values that are off by 1/8 are bounded
    by the discounts that do least.
    """
    discounts = np.array([[0.5], [0.75]])
    case = Case(
        tmp_path,
        [[[0.0, 1.0]], [[1.0, 0.0]]],
        [[1.0], [1.0]],
        None,
        0.0,
        discounts,
        criterion="discounted",
        format="drmdp proof 1",
    )
    case.sweep("both", [2.5, 2.75], [0, 0], {"lower": [2.2, 2.5], "upper": [2.75, 3.3]})
    lower, upper = both(case)
    assert lower <= 2.4 <= upper
    assert "not the one" in case.fails(None, fields={"discount": np.array([[0.5], [0.7]])})
    assert "discount" in case.fails(None, fields={"discount": np.array([[0.5], [1.5]])})
    case.fails(lambda lines: lines[1].update(upper=[2.39, 3.0]))
    case.fails(lambda lines: lines[1].update(lower=[2.0, 2.81]))
    for steps in (1.0, 0.99):  # what never loses its worth is no discounted cost
        own = Case(
            tmp_path,
            [[[0.0, 1.0]], [[1.0, 0.0]]],
            [[1.0], [1.0]],
            None,
            0.0,
            np.array([[0.5], [steps]]),
            criterion="discounted",
            format="drmdp proof 1",
        )
        own.sweep("both", [2.5, 2.75], [0, 0], {"lower": [-999.0, -999.0], "upper": [999.0, 999.0]})
        assert ("do not fit" in own.fails(None)) if steps == 1 else own.check()[2]
