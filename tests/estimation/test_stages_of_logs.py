"""Models of stages from a log: every transition counts once, where it begins."""

import json
from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pytest

import drmdp
from drmdp.errors import InputError

pl = pytest.importorskip("polars")

STATES, ACTIONS = ["well", "ill", "dead"], ["wait", "treat"]
OPTIONS = {
    "episode": "id",
    "time": "year",
    "state": "health",
    "cost": "cost",
    "discount": 0.97,
    "terminal": "dead",
    "states": STATES,
    "actions": ACTIONS,
}


def screening(n=150, seed=0, years=9):
    """Visits of patients, one a year, until death or the end of the study; sicker with age."""
    rng, rows = np.random.default_rng(seed), []
    for patient in range(n):
        age, s = int(rng.integers(40, 72)), int(rng.integers(0, 2))
        for year in range(years):
            if s == 2 or year == years - 1:
                rows.append((patient, year, age + year, STATES[s], None, None))
                break
            a = int(rng.integers(0, 2))
            worse = 0.05 + 0.004 * (age + year - 40)
            p = (
                [1 - worse, 0.7 * worse, 0.3 * worse]
                if s == 0
                else [0.1 + 0.3 * a, 0.8 - 0.3 * a - worse, 0.1 + worse]
            )
            rows.append(
                (patient, year, age + year, STATES[s], ACTIONS[a], float(100 * s + 300 * a + age))
            )
            s = int(rng.choice(3, p=np.array(p) / sum(p)))
    return pl.DataFrame(
        rows, schema=["id", "year", "age", "health", "action", "cost"], orient="row"
    )


def by_hand(log, band_of):
    """Counts and mean costs by band, by a loop over visits."""
    counts, paid = defaultdict(Counter), defaultdict(list)
    for rows in log.partition_by("id"):
        visits = rows.sort("year").rows(named=True)
        for now, then in pairwise(visits):
            band = band_of(now["age"])
            counts[band][now["health"], now["action"], then["health"]] += 1
            paid[band, now["health"], now["action"]].append(now["cost"])
    return counts, {key: sum(each) / len(each) for key, each in paid.items()}


@pytest.mark.parametrize("bands", [10, [40, 50, 65, 80], [45, 60, 70]])
def test_bands_are_counted_as_by_hand(bands, tmp_path):
    log = screening()
    borders = list(range(40, 90, 10)) if bands == 10 else bands
    log.sample(fraction=1, shuffle=True, seed=1).write_csv(tmp_path / "log.csv")
    models = drmdp.estimate(
        tmp_path / "log.csv", stage="age", bands=bands, partial="pooled", **OPTIONS
    )
    bounds = list(pairwise(borders))
    counts, costs = by_hand(
        log, lambda age: next((low for low, high in bounds if low <= age < high), None)
    )
    assert len(models) == len(bounds)
    for model, (low, high) in zip(models, bounds, strict=True):
        assert model.stages == tuple(f"age {low + k}" for k in range(high - low))
        expected = np.zeros((3, 2, 3))
        for (s, a, t), n in counts[low].items():
            expected[STATES.index(s), ACTIONS.index(a), STATES.index(t)] = n
        assert np.array_equal(model.counts, expected)
        for s, a in np.argwhere(expected.sum(axis=2) > 0).tolist():
            assert model.costs[s, a] == pytest.approx(costs[low, STATES[s], ACTIONS[a]], rel=1e-11)
            assert np.allclose(
                model.kernels[0, s, a], expected[s, a] / expected[s, a].sum(), rtol=1e-15
            )


def test_a_transition_over_a_border_counts_where_it_begins():
    log = {
        "id": [1, 1, 1],
        "year": [0, 1, 2],
        "age": [49, 50, 51],
        "state": ["a", "b", "a"],
        "action": [0, 0, 0],
        "cost": [1, 2, 9],
    }
    more = {"episode": "id", "time": "year", "cost": "cost", "discount": 1.0, "partial": "pooled"}
    first, second = drmdp.estimate(log, stage="age", bands=10, **more)
    assert first.counts[0, 0].tolist() == [0, 1]
    assert first.counts.sum() == second.counts.sum() == 1
    assert (first.costs[0, 0], second.costs[1, 0]) == (1, 2)
    assert second.kernels[0, 0, 0].tolist() == [0, 1]  # nobody was in a there: what all bands say
    assert (first.start, second.start) == ("as the 1 episode began", "as the 1 transition began")


def test_a_band_has_as_many_stages_as_steps_lead_through_it():
    rows = [
        (p, m, 40 + (p + m) // 12, "a" if m % 2 else "b", 0, 1.0)
        for p in range(12)
        for m in range(240)
    ]
    log = pl.DataFrame(rows, schema=["id", "month", "age", "state", "action", "cost"], orient="row")
    more = {"episode": "id", "time": "month", "cost": "cost", "discount": 1.0}
    models = drmdp.estimate(log, stage="age", bands=[40, 50, 60], **more)
    assert [len(model.stages) for model in models] == [120, 120]
    assert models[0].stages[:3] == ("age 40", "age 40.08", "age 40.17")
    told = log.with_columns(next_state=pl.col("state")).drop("id", "month")
    models = drmdp.estimate(told, stage="age", bands=[40, 50, 60], cost="cost", discount=1.0)
    assert [len(model.stages) for model in models] == [10, 10]
    assert "a step is taken to move age by 1" in models[0].notes


def test_a_plan_of_bands_is_that_of_a_model_for_every_stage():
    log = screening()
    bands = drmdp.estimate(log, stage="age", bands=10, **OPTIONS)
    counts, costs = by_hand(log, lambda age: age // 10 * 10)
    hand = []
    for low in range(40, 80, 10):
        kernel, price = np.zeros((3, 2, 3)), np.zeros((3, 2))
        for (s, a, t), n in counts[low].items():
            kernel[STATES.index(s), ACTIONS.index(a), STATES.index(t)] = n
        for s, a in ((0, 0), (0, 1), (1, 0), (1, 1)):
            price[s, a] = costs[low, STATES[s], ACTIONS[a]]
        kernel = kernel / np.maximum(kernel.sum(axis=2, keepdims=True), 1)
        model = drmdp.Model(
            kernel,
            costs=price,
            discount=0.97,
            terminal=["dead"],
            states=STATES,
            actions=ACTIONS,
            initial=bands[0].initial,
        )
        hand += [model] * 10
    ambiguity = drmdp.Wasserstein(0.05)
    plan, expected = drmdp.finite_horizon(bands, ambiguity), drmdp.finite_horizon(hand, ambiguity)
    assert plan.n_stages == 40
    assert np.allclose(plan.value, expected.value, rtol=1e-9)
    each = [model for model in bands for _ in model.stages]
    assert np.array_equal(drmdp.finite_horizon(each, ambiguity).value, plan.value)
    assert np.array_equal(drmdp.finite_horizon(bands, [ambiguity] * 4).value, plan.value)
    assert drmdp.finite_horizon(bands[0], ambiguity).n_stages == 10
    assert np.array_equal(drmdp.evaluate(bands, ambiguity, plan).value, plan.value)


def test_names_of_stages_go_everywhere(tmp_path):
    models = drmdp.estimate(screening(), stage="age", bands=10, **OPTIONS)
    plan = drmdp.finite_horizon(models, drmdp.Wasserstein(0.05))
    plan.save(tmp_path / "plan.npz")
    for own in (plan, drmdp.HorizonSolution.load(tmp_path / "plan.npz")):
        assert own.stage_names == [f"age {k}" for k in range(40, 80)]
        assert own.stage_labels == ("age", [str(k) for k in range(40, 80)])
        assert own.to_dict("age 55") == own.to_dict(15)
        table = own.to_frame()
        assert table["stage_name"].unique(maintain_order=True).to_list() == own.stage_names
        assert "age 40 … age 79" in repr(own)
        with pytest.raises(InputError, match="expected one of age 40"):
            own.to_dict("age 99")
    again = drmdp.evaluate(models, drmdp.Wasserstein(0.05), plan.to_frame())
    assert np.array_equal(again.value, plan.value)
    named = drmdp.finite_horizon(
        models[0], drmdp.Wasserstein(0.05), stages=2, stage_names=["now", "then"]
    )
    assert named.stage_labels == ("stage", ["now", "then"])
    with pytest.raises(InputError, match="expected one for each of 2 stages, got 1"):
        drmdp.finite_horizon(models[0], drmdp.Wasserstein(0.05), stages=2, stage_names=["now"])


def test_kernels_are_the_same_sources_in_every_band():
    log = screening(300).with_columns(clinic=pl.col("id") % 3)
    late = log.filter(~((pl.col("clinic") == 2) & (pl.col("age") >= 60)))
    models = drmdp.estimate(late, stage="age", bands=20, by="clinic", partial="pooled", **OPTIONS)
    assert [tuple(model.kernel_names) for model in models] == [(0, 1, 2)] * 2
    pooled = models[1].counts.sum(axis=0)
    assert models[1].counts[2].sum() == 0
    assert np.allclose(models[1].kernels[2, 0, 0], pooled[0, 0] / pooled[0, 0].sum())
    # an episode goes the same way all its life: so do kernels of the same episodes, in every band
    rows = [
        (k, t, 40 + 5 * t, "on" if t % 2 == 0 else "xyy"[k % 3], 0, 1.0)
        for k in range(30)
        for t in range(4)
    ]
    steady = pl.DataFrame(rows, schema=["id", "t", "age", "state", "action", "cost"], orient="row")
    more = {
        "episode": "id",
        "time": "t",
        "cost": "cost",
        "discount": 0.9,
        "by": "bootstrap",
        "n_kernels": 5,
        "seed": 3,
        "partial": "pooled",
    }
    first, second = drmdp.estimate(steady, stage="age", bands=10, **more)
    on = list(first.states).index("on")
    assert np.array_equal(first.kernels[:, on], second.kernels[:, on])
    assert np.ptp(first.kernels[:, on], axis=0).max() > 0
    drawn = drmdp.estimate(log, stage="age", bands=20, by="posterior", n_kernels=4, **OPTIONS)
    assert np.abs(drawn[0].kernels - drawn[1].kernels).max() > 0.01
    again = drmdp.estimate(log, stage="age", bands=20, by="posterior", n_kernels=4, **OPTIONS)
    assert drawn == again


def test_pairs_that_a_band_lacks_need_a_rule():
    log = screening().filter((pl.col("age") < 70) | (pl.col("action") != "treat"))
    with pytest.raises(
        InputError,
        match=r"age from 70 to 80: .*action 'treat' was never seen here, but at other stages",
    ):
        drmdp.estimate(log, stage="age", bands=10, gaps="cut", **OPTIONS)
    models = drmdp.estimate(
        log, stage="age", bands=10, gaps="cut", partial="unavailable", **OPTIONS
    )
    assert [bool(model.available[0, 1]) for model in models] == [True, True, True, False]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"bands": 10}, "`bands=10` needs `stage`"),
        ({"stage": "age", "bands": 0}, "expected a width above 0"),
        ({"stage": "age", "bands": [50, 40]}, "expected a width above 0, or rising borders"),
        ({"stage": "age", "bands": [40]}, "rising borders"),
        ({"stage": "age", "bands": 0.001}, "makes 3.,... bands from 40 to 7., at most 1,000"),
        ({"stage": "age", "bands": [0, 10, 40]}, "age from 0 to 10: no transition begins there"),
        ({"stage": "birth", "bands": 10}, "must rise from a row to the next: a step moves it by 0"),
        ({"stage": "health", "bands": 10}, "row 1, column 'health': .* is no number"),
        ({"stage": "holes", "bands": 10}, "column 'holes': the stage is missing"),
        ({"stage": "aeg"}, "no column 'aeg' for `stage` \\(did you mean 'age'"),
        ({"stage": "age", "weights": "counts", "by": "year"}, "takes no `stage`"),
        ({"stage": "age", "event": "x"}, "a log of events has none"),
    ],
)
def test_mistakes_are_named(given, message):
    log = screening(60).with_columns(
        birth=pl.lit(1960), holes=pl.when(pl.col("age") != 50).then(pl.col("age"))
    )
    with pytest.raises(InputError, match=message):
        drmdp.estimate(log, **{**OPTIONS, "partial": "pooled", **given})


def test_the_record_is_json_without_paths_and_survives_files(tmp_path):
    log = screening(60)
    log.write_csv(tmp_path / "visits.csv")
    pl.DataFrame(
        {"health": ["well", "well", "ill", "ill"], "action": ACTIONS * 2, "cost": [0, 1, 2, 3]}
    ).write_csv(tmp_path / "prices.csv")
    given = {**OPTIONS, "cost": None, "costs": str(tmp_path / "prices.csv")}
    models = drmdp.estimate(
        str(tmp_path / "visits.csv"), stage="age", bands=20, partial="pooled", **given
    )
    assert str(tmp_path) not in json.dumps(models[0].origin)
    assert models[0].origin["estimate"]["costs"] == "prices.csv"
    assert models[0].origin["table"] == "visits.csv"
    for name in ("model.npz", "model.drmdp"):
        drmdp.write(models[0], tmp_path / name)
        assert drmdp.read(tmp_path / name).origin == models[0].origin
        assert drmdp.read(tmp_path / name, normalize=True).stages == models[0].stages
    alone = drmdp.estimate(log, **OPTIONS)
    assert alone.stages == ()
    assert (
        alone.fingerprint
        == drmdp.estimate(log, **{**OPTIONS, "time": "year", "step": 1}).fingerprint
    )
