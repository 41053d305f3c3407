"""Estimates from rows at unequal times, against processes that are known.

    python -m drmdp_lab.bench.panels missing [REPEATS]   months missing at random: cut, bridge and fill
    python -m drmdp_lab.bench.panels rates [REPEATS]     an illness–death process: rates, draws
    python -m drmdp_lab.bench.panels cav [FILE]          rates published for heart transplants
    python -m drmdp_lab.bench.panels steps               discrete against continuous fits as the step shrinks
    python -m drmdp_lab.bench.panels plans [REPEATS [LEVEL]]  what a plan was promised to cost, and what it costs
    python -m drmdp_lab.bench.panels rows                seconds for 1e5, 3e5 and 1e6 rows

Where follow-up ends it ends for everybody alike: a log that keeps deaths after the last visit, and
not that others are alive, makes rates of death too high by itself.

`cav` takes a .csv file of the data set of that name in R's package msm (GPL, not part of drmdp),
written by ``write.csv(msm::cav, "cav.csv")``; without one, panels are made from the published
rates.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import linalg

import drmdp

MONTHLY = np.array(
    [
        [[0.90, 0.08, 0.01, 0.01], [0.06, 0.80, 0.11, 0.03], [0.0, 0.05, 0.74, 0.21], [0, 0, 0, 1]],
        [[0.95, 0.03, 0.0, 0.02], [0.30, 0.58, 0.06, 0.06], [0.10, 0.25, 0.50, 0.15], [0, 0, 0, 1]],
    ]
)
"""Drug and surgery; mild, moderate, severe, dead."""
STAGES = ["mild", "moderate", "severe", "dead"]
ILL = np.array([[-0.30, 0.25, 0.05], [0.15, -0.45, 0.30], [0, 0, 0]])
CAV = {
    (0, 1): 0.12787,
    (0, 3): 0.04250,
    (1, 0): 0.22512,
    (1, 2): 0.34261,
    (1, 3): 0.04021,
    (2, 1): 0.13062,
    (2, 3): 0.30648,
}
"""Model 1 of section 2.6 of msm's manual, times of death known: rates per year; minus twice the
log-likelihood is 3968.798.
"""
CAV_STATES = ["none", "mild", "severe", "dead"]
CAV_JUMPS = {
    "none": ["mild", "dead"],
    "mild": ["none", "severe", "dead"],
    "severe": ["mild", "dead"],
}
DRAWS = 100


def frame(rows):
    """A log."""
    return pl.DataFrame(rows, schema=["e", "t", "state", "action"], orient="row")


def monthly(missing, rng, episodes=150, months=24):
    """A row per month that was seen; the action of a row holds until the next."""
    rows = []
    for e in range(episodes):
        s = a = 0
        for month in range(months):
            if month == 0 or rng.random() >= missing:
                a = int(rng.random() < 0.4)
                rows.append((e, month, STAGES[s], ("drug", "surgery")[a]))
                if s == 3:
                    break
            s = int((rng.random() > MONTHLY[a, s].cumsum()).sum())
    return frame(rows)


def visits(generators, rng, episodes, states, between, years, choose, dead=None):
    """Visits at times that do not depend on the process; `choose` takes a state and gives an
    action.
    """
    rows = []
    for e in range(episodes):
        t, s = 0.0, 0
        while True:
            a = choose(s)
            rows.append((e, t, states[s], f"a{a}"))
            visit = t + between()
            if visit > years or generators[0][s, s] == 0:
                break
            now, end = 0.0, visit - t
            while (
                -generators[a][s, s] > 0
                and (now := now + rng.exponential(-1 / generators[a][s, s])) < end
            ):
                s = int(
                    rng.choice(
                        len(states), p=np.maximum(generators[a][s], 0) / -generators[a][s, s]
                    )
                )
                if s == dead:
                    visit = t + now
            t = visit
    return frame(rows)


def rates_of(model):
    """Rates (N, S, A, S) of a model of continuous time."""
    told = next(note for note in model.notes if note.startswith("continuous time: "))
    fastest = float(told.split()[2])
    filled = model.kernels.sum(axis=-1, keepdims=True) > 0
    return np.where(filled, fastest * (model.kernels - np.eye(model.n_states)[:, None]), 0.0)


def missing(repeats=60, boot=40):
    """Bias, error and coverage of a row, beside cut and bridge."""
    options: dict[str, Any] = {
        "episode": "e",
        "time": "t",
        "costs": "1",
        "discount": 0.9,
        "terminal": "dead",
        "states": STAGES,
        "unvisited": "self-loop",
        "partial": "pooled",
        "actions": ["drug", "surgery"],
    }
    on = np.moveaxis(MONTHLY, 0, 1)[:3] > 0
    truth = np.moveaxis(MONTHLY, 0, 1)[:3]
    print(
        "missing  method  bias of P(dead | severe, drug) = 0.21 (s.e.)  rmse  covers: that, all  (posterior)  rows"
    )
    for share in (0.0, 0.3, 0.6):
        rng = np.random.default_rng(int(100 * share))
        logs = [monthly(share, rng) for _ in range(repeats)]
        for how in ("cut", "bridge", "fill"):
            way: dict[str, Any] = {**options, "gaps": how} | (
                {} if how == "bridge" else {"step": 1}
            )
            models = [drmdp.estimate(log, **way) for log in logs]
            p = np.array([model.kernels[0, :3] for model in models])
            rows = np.mean(
                [model.pair_counts.sum() for model in models if model.pair_counts is not None]
            )
            inside = {}
            for by in ("bootstrap", "posterior"):
                kept = []
                for log in logs[: repeats * 2 // 3]:
                    drawn = drmdp.estimate(log, by=by, n_kernels=boot, **way).kernels[:, :3]
                    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
                    kept.append((low <= truth) & (truth <= high))
                inside[by] = np.mean(kept, axis=0)
            off = p[:, 2, 0, 3] - 0.21
            covers = " / ".join(
                f"{own[2, 0, 3]:.2f} {own[on].mean():.2f}" for own in inside.values()
            )
            error = np.sqrt(((p - truth) ** 2).mean())
            bias = f"{off.mean():+.4f} ({off.std() / np.sqrt(repeats):.4f})"
            print(f"{share:.1f}  {how:7} {bias}  {error:.4f}  {covers}  {rows:.0f}", flush=True)


def rates(repeats=100, patients=100):
    """Bias of rates, coverage of draws, and what crude rates are."""
    states, at = ["well", "ill", "dead"], ([0, 0, 1, 1], [1, 2, 0, 2])
    options: dict[str, Any] = {
        "episode": "e",
        "time": "t",
        "costs": "1",
        "discount": 0.97,
        "states": states,
        "terminal": "dead",
        "exact": "dead",
        "step": "continuous",
    }
    fitted, inside, crude = [], {"posterior": list[Any](), "bootstrap": list[Any]()}, []
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        log = visits(
            [ILL], rng, patients, states, lambda rng=rng: rng.uniform(0.5, 1.8), 8.0, lambda s: 0, 2
        )
        fitted.append(rates_of(drmdp.estimate(log, **options))[0, :, 0][at])
        pairs = log.with_columns(
            next=pl.col("state").shift(-1).over("e"),
            dt=(pl.col("t").shift(-1) - pl.col("t")).over("e"),
        )
        pairs = pairs.drop_nulls()
        for k, (i, j) in enumerate(zip(*at, strict=True)):
            own = pairs.filter(pl.col("state") == states[i])
            crude.append((k, own.filter(pl.col("next") == states[j]).height / own["dt"].sum()))
        for by, kept in inside.items():
            drawn = rates_of(drmdp.estimate(log, by=by, n_kernels=DRAWS, **options))[:, :, 0]
            year = np.array([linalg.expm(q)[1, 2] for q in drawn])
            told = np.column_stack([drawn[:, at[0], at[1]], year])
            low, high = np.quantile(told, [0.025, 0.975], axis=0)
            true = np.append(ILL[at], linalg.expm(ILL)[1, 2])
            kept.append((low <= true) & (true <= high))
    print(f"truth {ILL[at]}, {patients} patients, {repeats} logs")
    print(
        "mean fit",
        np.mean(fitted, axis=0).round(3),
        "standard error",
        (np.std(fitted, axis=0) / repeats**0.5).round(3),
    )
    print(
        "as if jumps were at visits",
        [round(float(np.mean([x for m, x in crude if m == k])), 3) for k in range(4)],
    )
    for by, kept in inside.items():
        print(
            f"{by}: 95 % of {DRAWS} draws cover the rates and P(ill → dead in a year)",
            np.mean(kept, axis=0).round(2),
        )


def cav(file=None):
    """Fit to the data if they are there, else to panels that the published rates make."""
    options: dict[str, Any] = {
        "episode": "e",
        "time": "t",
        "costs": "1",
        "discount": 0.97,
        "states": CAV_STATES,
        "terminal": "dead",
        "exact": "dead",
        "step": "continuous",
        "jumps": CAV_JUMPS,
    }
    truth = np.array(list(CAV.values()))
    at = tuple(np.array(list(CAV)).T)
    if file is not None:
        data = pl.read_csv(file, infer_schema_length=None)
        named = (
            pl.col("state")
            .cast(pl.Int64)
            .replace_strict([1, 2, 3, 4], CAV_STATES, return_dtype=pl.String)
        )
        log = data.select(e=pl.col("PTNUM"), t=pl.col("years"), state=named, action=pl.lit("a0"))
        found = rates_of(drmdp.estimate(log, **options))[0, :, 0][at]
        print(
            "published",
            truth,
            "fitted",
            found.round(5),
            "largest difference",
            np.abs(found - truth).max(),
        )
        return
    q = np.zeros((4, 4))
    q[at] = truth
    q -= np.diag(q.sum(axis=1))
    found, kept = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        log = visits(
            [q], rng, 622, CAV_STATES, lambda rng=rng: rng.uniform(0.8, 2.2), 12.0, lambda s: 0, 3
        )
        found.append(rates_of(drmdp.estimate(log, **options))[0, :, 0][at])
        drawn = rates_of(drmdp.estimate(log, by="posterior", n_kernels=DRAWS, **options))[:, :, 0][
            :, at[0], at[1]
        ]
        low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
        kept.append((low <= truth) & (truth <= high))
    print("published         ", truth.round(4))
    print(
        "mean of 40 panels ",
        np.mean(found, axis=0).round(4),
        "s.e.",
        (np.std(found, axis=0) / 40**0.5).round(4),
    )
    print("95 % of draws cover", np.mean(kept, axis=0).round(2), "in all", np.mean(kept).round(3))


def steps():
    """Rows one step apart: (P − I)/step of the discrete fit comes to the rates as the step
    shrinks.
    """
    options: dict[str, Any] = {
        "episode": "e",
        "time": "t",
        "costs": "1",
        "discount": 0.97,
        "states": ["well", "ill", "dead"],
        "terminal": "dead",
    }
    print("step  largest |(P − I)/step − Q|  largest |exp(Q step) − P|, of the two fits")
    for step in (2.0, 1.0, 0.5, 0.25, 0.125):
        rng = np.random.default_rng(0)
        p, s, rows = linalg.expm(ILL * step), np.zeros(4000, int), []
        for k in range(6):
            rows += [(e, k * step, options["states"][x], "a0") for e, x in enumerate(s)]
            s = (rng.random(4000)[:, None] > p[s].cumsum(axis=1)).sum(axis=1)
        log = frame(rows)
        q = rates_of(drmdp.estimate(log, step="continuous", **options))[0, :, 0]
        found = drmdp.estimate(log, step=step, gaps="fill", **options).kernels[0, :, 0]
        off = (
            np.abs((found - np.eye(3))[:2] / step - q[:2]).max(),
            np.abs(linalg.expm(q * step) - found)[:2].max(),
        )
        print(f"{step:5} {off[0]:.4f} {off[1]:.1e}")


# ---------------------------------------------------------------------- plans


MACHINES = np.array(
    [[-0.25, 0.2, 0.05, 0], [0, -0.35, 0.25, 0.1], [0, 0, -0.5, 0.5], [0.0, 0, 0, 0]]
)
"""Good, fair, poor, failed: rates per month while running; servicing halves them and costs."""
PATIENTS = np.array(
    [[-0.30, 0.22, 0.03, 0.05], [0.05, -0.43, 0.25, 0.13], [0, 0.05, -0.45, 0.40], [0.0, 0, 0, 0]]
)
"""Mild, moderate, severe, dead: rates per year; treatment slows progress."""
SLOWER = np.array([[1, 0.5, 0.5, 0.8], [1.5, 1, 0.5, 0.7], [1, 1.5, 1, 0.7], [1, 1, 1, 1]])


def slowed(generator):
    """The same process under the other action."""
    found = generator * SLOWER
    np.fill_diagonal(found, 0)
    return found - np.diag(found.sum(axis=1))


def radii(draws, kind, level):
    """Radii about the mean that hold a share of the draws, pair by pair."""
    mean, own = draws.mean_kernel, draws.kernels
    if kind == "tv":
        far = np.abs(own - mean).sum(axis=-1) / 2
    else:
        on = mean > 0
        far = np.where(
            on, mean * np.log(np.where(on, mean, 1) / np.where(on, np.maximum(own, 1e-300), 1)), 0
        ).sum(axis=-1)
    return np.quantile(far, level, axis=0)


def plans(repeats=100, level=0.9):
    """Each log through `check_log` and `estimate`; how often the plan costs no more than was
    promised.
    """
    costs = np.array([[0.0, 1.5], [2, 3.5], [6, 7.5], [0, 0]])
    start = np.datetime64("2000-01-01T00:00:00", "us")
    cases = {
        "annual visits ± 60 days, deaths by date, rates": (
            PATIENTS,
            365.2425,
            "continuous/year",
            3,
        ),
        "annual visits ± 60 days, some missed, filled": (PATIENTS, 365.2425, "year", None),
        "inspections at odd times, rates": (MACHINES, 365.2425 / 12, "continuous/month", None),
    }
    for name, (q, days, step, dead) in cases.items():
        generators, kept, odd = (
            [q, slowed(q)],
            {"nominal": list[Any](), "tv": list[Any](), "burg": list[Any]()},
            0,
        )
        for seed in range(repeats):
            rng = np.random.default_rng(seed)
            skip, odd_times = 0.25 * (step == "year"), q is MACHINES

            def between(rng=rng, skip=skip, odd_times=odd_times):
                wait = 1 + (rng.random() < skip) + rng.uniform(-1, 1) * 60 / 365.2425
                return rng.uniform(0.3, 2.5) if odd_times else wait

            log = visits(
                generators,
                rng,
                150,
                STAGES,
                between,
                12.0,
                lambda s, rng=rng: int(rng.random() < 0.5),
                dead,
            )
            stamp = pl.lit(start) + pl.duration(
                microseconds=(pl.col("t") * days * 86_400e6).cast(pl.Int64)
            )
            log = log.with_columns(t=stamp)
            way: dict[str, Any] = {
                "episode": "e",
                "time": "t",
                "states": STAGES,
                "terminal": "dead",
                "step": step,
                "exact": "dead" if dead else None,
            }
            way |= {"gaps": "fill", "within": "150 days"} if step == "year" else {}
            odd += drmdp.check_log(log, **way).refused
            way |= {
                "costs": costs,
                "interest": "3%/year",
                "by": "posterior",
                "n_kernels": DRAWS,
                "seed": seed,
            }
            draws = drmdp.estimate(log, **way)
            alpha = np.log(1.03) * days / 365.2425
            for kind, own in kept.items():
                radius = 0.0 if kind == "nominal" else radii(draws, kind, level)
                ambiguity = drmdp.Divergence(
                    radius, "tv" if kind == "nominal" else kind, rectangular="sa", support="state"
                )
                solution = drmdp.solve(draws, ambiguity)
                act = np.argmax(solution.policy, axis=1)
                paid, chosen = (
                    costs[np.arange(4), act],
                    np.array([generators[a][s] for s, a in enumerate(act)]),
                )
                if step == "year":
                    p = np.array([linalg.expm(generators[a])[s] for s, a in enumerate(act)])
                    true = np.linalg.solve(np.eye(3) - np.exp(-alpha) * p[:3, :3], paid[:3])
                else:
                    true = np.linalg.solve(alpha * np.eye(3) - chosen[:3, :3], paid[:3])
                own.append((solution.upper @ draws.initial) / (true @ draws.initial[:3]) - 1)
        told = [
            f"{kind} {np.mean(np.array(own) >= 0):.2f} ({np.mean(own):+.0%})"
            for kind, own in kept.items()
        ]
        print(
            f"{name}: refused {odd}; upper bound holds the true cost (above it): {', '.join(told)}",
            flush=True,
        )


def rows():
    """Seconds per million rows of an estimate with gaps."""
    rng = np.random.default_rng(0)
    base = monthly(0.5, rng, 3000)
    for n in (100_000, 300_000, 1_000_000):
        copies = n // base.height + 1
        log = pl.concat([base.with_columns(e=pl.col("e") + 3000 * k) for k in range(copies)]).head(
            n
        )
        for way in ({"gaps": "fill", "step": 1}, {"step": "continuous"}):
            begin = time.process_time()
            drmdp.estimate(
                log,
                episode="e",
                time="t",
                costs="1",
                discount=0.9,
                terminal="dead",
                states=STAGES,
                **way,
            )
            used = time.process_time() - begin
            print(
                f"{n:,} rows, {way}: {used:.2f} s of CPU, {used / n * 1e6:.2f} s per million",
                flush=True,
            )


if __name__ == "__main__":
    name, *rest = sys.argv[1:]
    tables = {
        "missing": missing,
        "rates": rates,
        "cav": cav,
        "steps": steps,
        "plans": plans,
        "rows": rows,
    }
    tables[name](
        *(
            text if Path(text).suffix == ".csv" else float(text) if "." in text else int(text)
            for text in rest
        )
    )
