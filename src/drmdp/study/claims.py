"""What the paper claims, what the rows say, and the verdict: a function of the rows wherever it can be measured."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from drmdp.study.rows import Row
from drmdp.study.select import Slope, fit, panel, ratios, reached, slope, timed, where

HEAD = ("where", "the paper's claim", "what we measured", "verdict")
HOLDS, PARTLY, FAILS, UNKNOWN = "holds", "holds in part", "does not hold", "not measured"
FAMILIES = ("garnet", "machine", "forest")
LETTER = {"n_kernels": "N", "n_states": "S"}
ROOM = 0.05
"""What an exponent may exceed a claimed one by."""
Finding = tuple[str, str]


@dataclass(frozen=True)
class Claim:
    """One claim and the function that judges it; it returns what was measured and the verdict, or None without rows."""

    where: str
    text: str
    judge: Callable[[list[Row]], Finding | None]


def judge(rows: list[Row]) -> list[tuple[str, str, str, str]]:
    """All claims."""
    return [(claim.where, claim.text, *(claim.judge(rows) or ("–", UNKNOWN))) for claim in CLAIMS]


def verdict(good: int, of: int) -> str:
    """Words for a number of cases."""
    return HOLDS if good == of else FAILS if good == 0 else f"{PARTLY} ({good} of {of})"


# ---------------------------------------------------------------------- parts


def tail_slope(row: Row) -> float | None:
    """Slope of (DG) in T over the last stretch of a run, a factor of 20 in T."""
    points = [(T, gap) for T, gap in row.get("curve", ()) if row["curve"][-1][0] / 20 <= T]
    return fit(*zip(*points, strict=True)).value if len(points) > 2 else None


def _exponents(rows: list[Row], study: str, x: str, method: str) -> dict[str, Slope]:
    found = {}
    for family in FAMILIES:
        own = slope(where(rows, study=study, family=family, radius="paper", method=method, rule="duality-gap"), x)
        if own is not None:
            found[family] = own
    return found


def _shown(found: dict[str, Slope]) -> str:
    return ", ".join(f"{family} {own}" for family, own in found.items())


def _ratio(rows: list[Row], method: str, base: str, rule: str = "duality-gap") -> dict[str, float]:
    """Median ratio of CPU times by domain."""
    found = {}
    for family in FAMILIES:
        own = ratios(timed(where(panel(rows, rule), family=family)), method, base)
        if own:
            found[family] = float(np.median(own))
    return found


def _numbers(found: dict[str, float]) -> str:
    return ", ".join(f"{family} {value:.2g}" for family, value in found.items())


def _largest(rows: list[Row], study: str, x: str) -> list[Row]:
    own = where(rows, study=study, radius="paper")
    return where(own, **{x: max((row[x] for row in own), default=0)})


# ---------------------------------------------------------------------- judgements


def _step_exponents(rows: list[Row]) -> Finding | None:
    bounds = {"N": ("n_kernels", 1.0), "A": ("n_actions", 1.0), "S": ("n_states", 2.0)}
    found = {letter: slope(where(rows, study=f"step-{letter}"), x) for letter, (x, _) in bounds.items()}
    known = {letter: own for letter, own in found.items() if own is not None}
    if not known:
        return None
    good = sum(own.value <= bounds[letter][1] + ROOM + 0.15 * (letter == "S") for letter, own in known.items())
    return "a step in all states grows as " + ", ".join(f"{letter}^({own})" for letter, own in known.items()), verdict(
        good, len(known)
    )


def _conic_growth(rows: list[Row]) -> Finding | None:
    found = _exponents(rows, "kernels", "n_kernels", "conic-vi")
    if not found:
        return None
    below = sum(own.value <= 3.5 for own in found.values())
    return f"VI with conic updates grows in N as {_shown(found)}; the bound is N^3.5", verdict(
        below, len(found)
    ) + " as a bound"


def _conic_states(rows: list[Row]) -> Finding | None:
    found = _exponents(rows, "states", "n_states", "conic-vi")
    if not found:
        return None
    return f"VI with conic updates grows in S as {_shown(found)}; the bound is S^4.5", verdict(
        sum(s.value <= 4.5 for s in found.values()), len(found)
    ) + " as a bound"


def _scalable(rows: list[Row]) -> Finding | None:
    texts, good, cases = [], 0, 0
    for study, x in (("kernels", "n_kernels"), ("states", "n_states")):
        found = _ratio(_largest(rows, study, x), "conic-vi", "algorithm-1")
        good, cases = good + sum(value > 1 for value in found.values()), cases + len(found)
        if found:
            texts.append(f"largest {LETTER[x]}: {_numbers(found)}")
    if not cases:
        return None
    ours = _ratio(_largest(rows, "kernels", "n_kernels"), "algorithm-1", "exact")
    also = f"; Algorithm 1 in turn takes {_numbers(ours)} times the exact engine's time" if ours else ""
    return "time of conic VI / time of Algorithm 1 under one certificate, " + "; ".join(texts) + also, verdict(
        good, cases
    )


def _rate(rows: list[Row]) -> Finding | None:
    slopes = [
        own for row in where(rows, study="rates", method="algorithm-1 p=1 q=2") if (own := tail_slope(row)) is not None
    ]
    if not slopes:
        return None
    return f"slopes of (DG) in T from {min(slopes):.2f} to {max(slopes):.2f}, bound −.67", verdict(
        sum(s <= -2 / 3 for s in slopes), len(slopes)
    )


def _power_slopes(rows: list[Row], name: str) -> list[float]:
    return [own for row in where(rows, study="rates", method=name) if (own := tail_slope(row)) is not None]


def _epochs(rows: list[Row]) -> Finding | None:
    texts, middle, good, cases = [], {}, 0, 0
    for q in (1, 2, 3):
        slopes = _power_slopes(rows, f"algorithm-1 p=1 q={q}")
        if slopes:
            middle[q] = float(np.median(slopes))
            texts.append(f"q={q}: {middle[q]:.2f} (bound −{q / (q + 1):.2f})")
            good, cases = good + sum(s <= -q / (q + 1) for s in slopes), cases + len(slopes)
    if not cases:
        return None
    better = middle[max(middle)] < middle[min(middle)] - 0.1
    return "median slope " + ", ".join(texts), verdict(
        good, cases
    ) + f" as a bound; a larger q does {'' if better else 'not '}help"


def _weights(rows: list[Row]) -> Finding | None:
    by = {p: _power_slopes(rows, f"algorithm-1 p={p} q=2") for p in (0, 1, 2)}
    if not all(by.values()):
        return None
    middle = {p: float(np.median(own)) for p, own in by.items()}
    text = "median slope " + ", ".join(f"p={p}: {value:.2f}" for p, value in middle.items())
    return text, HOLDS if max(middle.values()) - min(
        middle.values()
    ) < 0.2 else FAILS + ": the observed rate is about T^−(p+1)"


def _weight_one(rows: list[Row]) -> Finding | None:
    ends: dict[tuple[str, float], dict[str, float]] = {}
    for p in (0, 1):
        for row in where(rows, study="rates", method=f"algorithm-1 p={p} q=2"):
            if row["curve"]:
                ends.setdefault((row["family"], row["radius"]), {})[str(p)] = row["curve"][-1][1]
    pairs = [own for own in ends.values() if len(own) == 2]
    return (
        (
            f"(DG) at the end is smaller with p=1 in {sum(o['1'] <= o['0'] for o in pairs)} of {len(pairs)} runs",
            verdict(sum(o["1"] <= o["0"] for o in pairs), len(pairs)),
        )
        if pairs
        else None
    )


def _small(rows: list[Row]) -> Finding | None:
    texts, good, cases = [], 0, 0
    for study, x in (("states", "n_states"), ("kernels", "n_kernels")):
        for rule in ("duality-gap", "printed"):
            own = where(rows, study=study, family="garnet", radius="paper", **{x: 10})
            found = ratios(timed(panel(own, rule)), "conic-vi", "algorithm-1")
            if found:
                middle = float(np.median(found))
                good, cases = good + (middle >= 2), cases + 1
                texts.append(
                    f"{LETTER[x]}=10, {'one certificate' if rule == 'duality-gap' else 'printed rules'}: {middle:.2g}"
                )
    return ("conic VI / Algorithm 1 on garnet, " + "; ".join(texts), verdict(good, cases)) if cases else None


def _tiny(rows: list[Row]) -> Finding | None:
    found = _ratio(
        where(rows, study="states", n_states=5, radius="paper", family=("machine", "forest")),
        "conic-vi",
        "algorithm-1",
        "printed",
    )
    if not found:
        return None
    return f"conic VI / Algorithm 1 at S=5 under the printed rules: {_numbers(found)}", verdict(
        sum(1 / 3 <= v <= 3 for v in found.values()), len(found)
    )


def _times(rows: list[Row]) -> Finding | None:
    own = timed(where(rows, study="kernels", family="garnet", radius="paper", method="algorithm-1", rule="duality-gap"))
    at = {
        n: float(np.median([row["cpu_seconds"] for row in where(own, n_kernels=n)]))
        for n in sorted({row["n_kernels"] for row in own})
    }
    if not {5, 70} <= set(at):
        return None
    text = f"{at[5]:.2g} s at N=5, {at[70]:.2g} s at N=70, a factor {at[70] / at[5]:.3g} (the printed factor is 75)"
    return text, "same direction; another machine, compiled code"


def _linear(rows: list[Row]) -> Finding | None:
    found = _exponents(rows, "kernels", "n_kernels", "algorithm-1")
    if not found:
        return None
    own = math.log(120.2 / 1.6) / math.log(70 / 5)
    text = f"exponents {_shown(found)}; the paper's own two figures give {own:.2f}"
    return text, verdict(sum(s.value <= 1 + ROOM for s in found.values()), len(found)) + " (at most linear)"


def _others_linear(rows: list[Row]) -> Finding | None:
    texts, good, cases = [], 0, 0
    for method in ("conic-vi", "conic-gs", "conic-anderson", "conic-avi"):
        found = _exponents(rows, "kernels", "n_kernels", method)
        if found:
            texts.append(f"{method.removeprefix('conic-')} {_shown(found)}")
            good, cases = good + sum(s.value <= 1.25 for s in found.values()), cases + len(found)
    return ("exponents " + "; ".join(texts), verdict(good, cases)) if cases else None


def _garnet_slow(rows: list[Row]) -> Finding | None:
    own = where(_largest(rows, "kernels", "n_kernels"), rule="duality-gap")
    texts, good, cases = [], 0, 0
    for method in ("algorithm-1", "conic-vi", "exact"):
        times = {f: [row["cpu_seconds"] for row in timed(where(own, family=f, method=method))] for f in FAMILIES}
        if all(times.values()):
            middle = {f: float(np.median(t)) for f, t in times.items()}
            good, cases = good + (middle["garnet"] == max(middle.values())), cases + 1
            texts.append(f"{method}: " + ", ".join(f"{f} {t:.2g} s" for f, t in middle.items()))
    return ("; ".join(texts), verdict(good, cases)) if cases else None


def _stop_rule(rows: list[Row]) -> Finding | None:
    own = where(rows, study="rules", rule="paper")
    if not own:
        return None
    good = sum(row["loss"] <= row["tol"] for row in own)
    worst = max(row["loss"] / row["tol"] for row in own)
    far = max(row["residual_bound"] / row["tol"] for row in own)
    fixed = reached(where(rows, study="rules", rule="puterman"))
    also = sum(row["loss"] <= row["tol"] for row in fixed)
    text = (
        f"the policy is ε-optimal in {good} of {len(own)} runs, at worst it loses {worst:.3g} ε, while v is up to {far:.3g} ε from v*; "
        f"corrected rule: {also} of {len(fixed)}"
    )
    return text, "no guarantee, and none was needed here" if good == len(own) else FAILS + ": the fraction is inverted"


def _gap_rule(rows: list[Row]) -> Finding | None:
    own = where(
        rows,
        study=("kernels", "states"),
        method=("algorithm-1", "fast"),
        rule="duality-gap",
        status=("solved", "stopped"),
    )
    if not own:
        return None
    over = [row["gap"] / row["tol"] for row in own]
    good = sum(row["duality_gap"] <= row["tol"] for row in own)
    text = f"(DG) confirmed from scratch in {good} of {len(own)} runs; the worst state's gap was up to {max(over):.2g} times the tolerance"
    return text, verdict(good, len(own)) + ", for the start distribution"


def _gap_time(rows: list[Row]) -> Finding | None:
    texts, faster = [], []
    for study, x in (("gap-kernels", "n_kernels"), ("gap-states", "n_states")):
        own = where(rows, study=study, metric="l2")
        conic, ours = (slope(where(own, method=m), x) for m in ("gap-conic", "gap-exact"))
        top = where(own, **{x: max((row[x] for row in own), default=0)})
        found = ratios(timed(top), "gap-conic", "gap-exact")
        if conic and ours and found:
            faster.append(float(np.median(found)))
            texts.append(
                f"in {LETTER[x]}: conic exponent {conic}, exact {ours}; at the largest size the exact engine is {np.median(found):.3g} times faster"
            )
    if not texts:
        return None
    return "; ".join(texts), HOLDS + " for conic updates, not for exact ones" if min(faster) > 10 else HOLDS


def _d1_d2(rows: list[Row]) -> Finding | None:
    texts, good, cases = [], 0, 0
    for method in ("gap-conic", "gap-exact"):
        own = timed(where(rows, study=("gap-kernels", "gap-states"), method=method))
        at = {
            (row["study"], row["n_states"], row["n_kernels"], row["seed"]): row["cpu_seconds"]
            for row in where(own, metric="l2")
        }
        found = [
            row["cpu_seconds"] / at[place]
            for row in where(own, metric="l1")
            if (place := (row["study"], row["n_states"], row["n_kernels"], row["seed"])) in at
        ]
        if found:
            middle = float(np.median(found))
            good, cases = good + (middle > 1), cases + 1
            texts.append(f"{'conic' if method == 'gap-conic' else 'exact'} d1/d2 {middle:.2g}")
    return ("median ratio of times, " + ", ".join(texts), verdict(good, cases)) if cases else None


def _representative(rows: list[Row]) -> Finding | None:
    own = timed(where(rows, study="radii", family=("machine", "forest"), radius=(0.1, 0.5, 1.0, 2.0)))
    texts, good, cases = [], 0, 0
    for family in ("machine", "forest"):
        found = {}
        for radius in sorted({row["radius"] for row in own}):
            value = ratios(where(own, family=family, radius=radius), "conic-vi", "algorithm-1")
            if value:
                found[radius] = float(np.median(value))
        if found:
            good, cases = good + (all(v > 1 for v in found.values()) or all(v < 1 for v in found.values())), cases + 1
            texts.append(f"{family} " + ", ".join(f"θ={r:g}: {v:.2g}" for r, v in found.items()))
    return (
        ("conic VI / Algorithm 1, " + "; ".join(texts), verdict(good, cases) + " (who is ahead does not change)")
        if cases
        else None
    )


def _variants(rows: list[Row]) -> Finding | None:
    texts, good, cases = [], 0, 0
    for method in ("conic-vi", "conic-gs", "conic-anderson", "conic-avi"):
        for rule in ("duality-gap", "printed"):
            found = _ratio(where(rows, study=("kernels", "states"), radius="paper"), method, "algorithm-1", rule)
            good, cases = good + sum(v > 1 for v in found.values()), cases + len(found)
            if found and rule == "printed":
                texts.append(f"{method.removeprefix('conic-')} {_numbers(found)}")
    return (
        ("median time / time of Algorithm 1 under the printed rules: " + "; ".join(texts), verdict(good, cases))
        if cases
        else None
    )


def _best_rates(rows: list[Row]) -> Finding | None:
    own = where(rows, study=("kernels", "states"), radius="paper")
    found = _ratio(own, "algorithm-1", "exact")
    if not found:
        return None
    ahead = sum(value > 1 for value in found.values())
    text = f"exact updates are nearly linear too; Algorithm 1 takes {_numbers(found)} times the exact engine's time, median"
    return text, "no longer" if ahead == len(found) else "not decided"


def _theory(text: str) -> Callable[[list[Row]], Finding | None]:
    return lambda rows: (text, "proved; the tests check it")


CLAIMS = (
    Claim("abstract", "O(N A^2.5 S^3.5 log S log(1/ε) ε^−1.5) operations; a step in all states is O(N A S² log S)", _step_exponents),
    Claim("abstract", "existing methods: O(N^3.5 …)", _conic_growth),
    Claim("abstract", "existing methods: O(… S^4.5 …)", _conic_states),
    Claim("abstract", "significantly more scalable than the state of the art across several domains", _scalable),
    Claim("introduction", "the best convergence rates in N, S and A for Wasserstein DR-MDPs", _best_rates),
    Claim("introduction", "at least twice as fast as VI even for S=10, N=A=30 and N=10, S=A=30", _small),
    Claim("section 2.1", "F is a contraction of factor λ, VI converges linearly", _theory("contraction and agreement with conic solvers, all six balls")),
    Claim("sections 2.1, 5", "‖v − F(v)‖ < 2λε/(1−λ) gives an ε-optimal policy", _stop_rule),
    Claim("theorem 1", "(DG) falls as O(T^−2/3)", _rate),
    Claim("proposition 1", "the proximal map takes nearly linear time", _step_exponents),
    Claim("theorem 2, remark", "epochs of ℓ^q steps give O(T^−q/(q+1)), better for large q", _epochs),
    Claim("remark", "the rate does not depend on the weight power p", _weights),
    Claim("remark", "p=1 performs better than p=0", _weight_one),
    Claim("section 5", "(DG) ≤ ε/2 ensures an ε-optimal policy", _gap_rule),
    Claim("section 5", "faster than VI, Gauss–Seidel, Anderson and AVI; the gap grows with the instance", _variants),
    Claim("section 5", "similar times for very small instances (S=5, A=2, N=30)", _tiny),
    Claim("section 5", "garnet S=A=30: 1.6 s at N=5, 120.2 s at N=70", _times),
    Claim("section 5", "the time of Algorithm 1 grows linearly with N", _linear),
    Claim("section 5", "the other methods' times grow almost linearly with N too", _others_linear),
    Claim("section 5", "all methods are slower on garnet than on machine and forest", _garnet_slow),
    Claim("appendix", "computing (DG) quickly becomes slow", _gap_time),
    Claim("appendix", "(DG) takes longer with d1 than with d2", _d1_d2),
    Claim("appendix", "θ=.5 is representative of .1, .5, 1 and 2 (machine, forest)", _representative),
)  # fmt: skip
