"""Proofs that are forged, and proofs of a drmdp that is wrong, never prove what is false."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import drmdp
import drmdp_check
from drmdp import proof as writer
from drmdp.criteria import discounted
from drmdp.operators.nature_rows import SweepNature
from drmdp.proof import norms, responses, states, witnesses
from forgeries import WORTH, forged
from proofs import EVENTS, SETS, STAGES, TASKS, found, task_of, written

FEW = [
    ("l2", 2),
    ("linf", 1),
    ("divergence", "kl", "kernels"),
    ("reweighting", "cvar"),
    ("transport", 1),
    ("intervals",),
]


def false_of(proved, truth):
    """Whether some of the bounds are false, the truth being between others."""
    above = any(one > most for one, most in zip(proved[0], truth[1], strict=True))
    return above or any(one < least for one, least in zip(proved[1], truth[0], strict=True))


def forge(name, seed, times, folder, task):
    """Forge a proof several times, and check it exactly and in floats; returns how often something
    was proved.
    """
    _, proof, model = written(name, seed, folder, task)
    lines = [json.loads(line) for line in proof.read_text().splitlines()]
    rng, truth = np.random.default_rng(seed), drmdp_check.check(proof, model).bounds
    chosen = lines[0]["kind"] == "optimum" and "stages" not in lines[0]
    kinds = [
        kind for kind in WORTH if kind != "x" or chosen
    ]  # a given policy is what the proof is about
    proved = 0
    for _ in range(times):
        proof.write_text("".join(json.dumps(line) + "\n" for line in forged(lines, rng, kinds)))
        for interval in (False, True):
            try:
                bounds = drmdp_check.check(proof, model, interval).bounds
            except drmdp_check.Refused:
                continue
            assert not any(map(false_of, bounds, truth))
            proved += not interval
    return proved


@pytest.mark.parametrize("name", FEW, ids=str)
def test_no_forgery_proves_what_is_false(name, tmp_path):
    assert sum(forge(name, seed, 3, tmp_path, TASKS[seed % 5]) for seed in (1, 2, 3, 4, 9)) > 2


@pytest.mark.parametrize(
    ("name", "task"),
    [(("l2", 2), EVENTS), (("divergence", "kl", "mean"), EVENTS), (("linf", 1), STAGES)],
    ids=str,
)
def test_nor_do_those_of_events_and_stages(name, task, tmp_path):
    assert sum(forge(name, seed, 3, tmp_path, task) for seed in (1, 2, 3, 4, 5)) > 2


@pytest.mark.fuzz
@pytest.mark.parametrize("name", SETS, ids=str)
def test_no_forgery_of_many_proves_what_is_false(name, tmp_path):
    for seed in range(1, 22):
        forge(name, seed, 15, tmp_path, task_of(name, seed))


@pytest.mark.fuzz
@pytest.mark.parametrize("name", SETS, ids=str)
def test_what_is_proved_is_the_optimum_of_a_conic_solver(name, tmp_path):
    """The interval that forgeries are compared with holds what programs of another kind find."""
    for seed in range(1, 9):
        model, solution = found(name, seed)
        _, proof, path = written(name, seed, tmp_path)
        lower, upper = (
            np.array(side, dtype=float) for side in drmdp_check.check(proof, path).bounds[0][:2]
        )
        ambiguity = solution.problem[1]
        middle = (lower + upper) / 2
        step = drmdp.bellman(
            model, ambiguity, -middle if model.maximise else middle, backend="conic"
        ).value
        off = 1e-6 * max(
            float(np.abs(middle).max()), float(np.abs(np.asarray(model.cost_range)).max())
        )
        assert np.abs((-step if model.maximise else step) - middle).max() <= off


# ---------------------------------------------------------------------- a drmdp that is wrong


def to_the_worst(self, i=None):
    """Nature's kernel, wherever she may go or not: all mass in the last state."""
    S, A = self.model.available.shape
    return np.broadcast_to(np.eye(S)[-1], (S, A, S))


def tightened(bounds):
    """Bounds of a certificate that is too sure of itself."""

    def wrong(*given):
        good = bounds(*given)
        off = 1e-3 * np.abs(good.upper).max()
        return replace(good, lower=good.upper + off, upper=good.upper + off)

    return wrong


def halved(find):
    """Multipliers of half the size."""
    return lambda *given: [e / 2 for e in find(*given)]


def unequal(pair):
    """Rows that do not sum to 1."""

    def wrong(self, s, a):
        good = pair(self, s, a)
        return good._replace(rows=good.rows * 1.5)

    return wrong


WRONG = {
    "a kernel outside": (SweepNature, "kernel", to_the_worst),
    "kernels outside": (SweepNature, "_single", to_the_worst),
    "a certificate": (discounted, "bounds", tightened(discounted.bounds)),
    "rows": (states.States, "pair", unequal(states.States.pair)),
    "stakes": (states, "below_top", lambda p, stakes: p * stakes - 1.0),
    "a threshold": (responses, "pivot", lambda z, lo, hi: 0.5),
    "a price": (responses, "bisect", lambda spent, budget, scale: 0.1 * scale),
    "a price of a norm": (norms, "_newton", lambda f, lo, hi: 0 * lo),
    "weights": (
        states.States,
        "weights",
        property(lambda self: self.model.weights[self.used] * 0.5),
    ),
    "the model": (writer, "digest", lambda model: "0" * 64),
    "multipliers": (
        witnesses,
        "_listed",
        lambda row, e, rest: [[0.5] * row.columns.size for _ in e],
    ),
}


@pytest.fixture(scope="module")
def true(tmp_path_factory):
    """Folder, proof and model of a set, and the bounds that are proved before anything is wrong."""

    @cache
    def make(name, seed):
        folder = tmp_path_factory.mktemp("true")
        _, proof, model = written(name, seed, folder)
        return folder, proof, model, drmdp_check.check(proof, model).bounds[0]

    return make


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("name", FEW, ids=str)
def test_a_drmdp_that_is_wrong_proves_nothing_false(name, what, true, monkeypatch):
    for seed in (2, 3):
        folder, proof, model, truth = true(name, seed)
        with monkeypatch.context() as patch:
            patch.setattr(*WRONG[what])
            try:
                written(name, seed, folder)
                found = drmdp_check.check(proof, model)
            except (drmdp_check.Refused, ValueError, IndexError, ArithmeticError):
                continue
            lower, upper, least, most = found.bounds[0]
            assert not false_of((lower, upper), truth)
            if false_of((least, most), truth):
                assert list(found.failures())


def test_a_certificate_that_is_too_sure_is_found_out(tmp_path, monkeypatch):
    monkeypatch.setattr(discounted, "bounds", tightened(discounted.bounds))
    _, proof, model = written(("l2", 2), 3, tmp_path)
    assert drmdp_check.main([str(proof), str(model)]) == 1
