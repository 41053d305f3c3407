"""Proofs of totals, probabilities and averages are accepted, and forged ones prove nothing that is
false.
"""

import copy
import json
import math

import numpy as np
import pytest
from click.testing import CliRunner

import drmdp
import drmdp_check
from criteria_proofs import ASKED, solved, written
from drmdp.cli import main
from forgeries import WORTH, forged
from proofs import SETS

FEW = [
    ("l2", 2),
    ("l1", 1),
    ("divergence", "kl", "mean"),
    ("reweighting", "kl"),
    ("intervals",),
    ("transport", 1),
]
EVERY = [name for name in SETS if name not in FEW]


def read(proof):
    return [json.loads(line) for line in proof.read_text().splitlines()]


def write(proof, lines):
    proof.write_text("".join(json.dumps(line) + "\n" for line in lines))


def accepted(proof, model):
    """What is proved, if that is all that is claimed."""
    found = drmdp_check.check(proof, model)
    assert not list(found.failures())
    return found.bounds


def false_of(proved, truth):
    """Whether a bound lies beyond one on the other side."""
    above = any(one > most for one, most in zip(proved[0], truth[1], strict=True))
    return above or any(one < least for one, least in zip(proved[1], truth[0], strict=True))


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("name", FEW[:5], ids=str)
def test_proofs_are_accepted(name, asked, tmp_path):
    result, proof, model = written(name, 3, asked, tmp_path)
    found = accepted(proof, model)[-1]
    sign = (
        -1
        if (result.optimal if asked == "within" else drmdp.read(model).maximise)
        and asked not in ("avoid", "avoid helped")
        else 1
    )
    lower = result.lower[0] if asked == "within" else result.lower
    if asked not in ("within", "reach", "reach helped"):
        assert [float(x) for x in (found[2] if sign > 0 else found[3])] == (sign * lower).tolist()


@pytest.mark.fuzz
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("name", SETS, ids=str)
def test_every_proof_is_accepted(name, asked, tmp_path):
    for seed in range(1, 7):
        accepted(*written(name, seed, asked, tmp_path)[1:])


# ---------------------------------------------------------------------- forgeries


def altered(lines, rng):
    """A good proof with something else in it: a value above or below its step, the wrong side,
    criterion, set or goal; or whatever `forgeries` does.
    """
    lines, head = copy.deepcopy(lines), lines[0]
    sweeps = [line for line in lines if "v" in line]
    sweep, states = sweeps[int(rng.integers(len(sweeps)))], [line for line in lines if "s" in line]
    line, how = states[int(rng.integers(len(states)))], int(rng.integers(10))
    s = line["s"]
    if how < 4:  # of one state: by one float, by a little, by much; and claim it
        far = [math.ulp(sweep["v"][s]), 1e-9, 1e-3, 0.3, 1.0, 1e6][int(rng.integers(6))] * float(
            rng.choice([-1, 1])
        )
        sweep["v"][s] += far
        for name in {"lower", "upper"} & sweep.keys():
            sweep[name][s] = sweep["v"][s]
    elif how == 4:  # all values at once: F moves with them
        far = float(rng.choice([-1, 1])) * float(rng.choice([1e-12, 1e-3, 1.0]))
        for name in {"v", "lower", "upper"} & sweep.keys():
            sweep[name] = [
                x + far if any(own["s"] == t for own in states) else x
                for t, x in enumerate(sweep[name])
            ]
    elif how == 5 and len(sweeps) == 2 and "stages" not in head:  # swap sides
        sweeps[0]["v"], sweeps[1]["v"] = sweeps[1]["v"], sweeps[0]["v"]
        sweeps[0]["lower"], sweeps[1]["upper"] = sweeps[1]["upper"], sweeps[0]["lower"]
    elif how == 6:
        others = {
            "criterion": ["total", "reach", "average"],
            "nature": ["adversarial", "cooperative"],
            "kind": ["optimum", "policy"],
        }
        others |= {
            "rectangular": ["s", "sa"],
            "support": ["observed", "state", "all"],
            "minimise": [True, False],
            "sweeps": [["both"], ["upper"]],
        }
        others |= {"target": [[0], [s]], "avoid": [[], [0]], "stages": [1, 2]}
        name = str(rng.choice([own for own in others if own in head]))
        lines[0][name] = others[name][int(rng.integers(len(others[name])))]
    else:
        return forged(
            lines,
            rng,
            [kind for kind in (*WORTH, "time", "w") if kind != "x" or head["kind"] == "optimum"],
        ), False
    return lines, how == 6


def forge(name, seed, asked, times, folder):
    """Forge a proof several times and check it exactly and in floats: it never claims more than is
    true and is accepted; returns how often it was refused.
    """
    _, proof, model = written(name, seed, asked, folder)
    lines, truth, refused = read(proof), accepted(proof, model), 0
    rng = np.random.default_rng([seed, ASKED.index(asked)])
    for _ in range(times):
        other, of_another = altered(lines, rng)
        write(proof, other)
        for interval in (False, True):
            try:
                found = drmdp_check.check(proof, model, interval)
            except drmdp_check.Refused:
                refused += not interval
                continue
            if (
                of_another and other[0] != lines[0]
                # a true proof of another statement, which is not judged here: test_criteria_by_hand
                # does
            ):
                continue
            assert not any(map(false_of, found.bounds, truth))
            refused += bool(list(found.failures())) and not interval
    return refused


@pytest.mark.parametrize("asked", ASKED)
def test_no_forgery_proves_what_is_false(asked, tmp_path):
    assert (
        sum(
            forge(name, seed, asked, 4, tmp_path)
            for name, seed in zip(FEW[:3], (2, 3, 5), strict=True)
        )
        > 4
    )


@pytest.mark.fuzz
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("name", SETS, ids=str)
def test_no_forgery_of_many_proves_what_is_false(name, asked, tmp_path):
    for seed in (1, 2):
        forge(name, seed, asked, 10, tmp_path)


def test_kernels_outside_of_the_set_are_pulled_into_it(tmp_path):
    """Nature who takes all mass away from the target is not believed."""
    model = drmdp.Model(
        [[[0.2, 0.3, 0.5]], [[0, 1, 0]], [[0, 0, 1]]], costs=np.zeros((3, 1)), discount=0.9
    )
    drmdp.write(model, tmp_path / "m.npz")
    drmdp.reach(model, drmdp.Wasserstein(0.1), [2], [1]).proof(tmp_path / "p")
    lines = read(tmp_path / "p")
    lines[1]["v"] = lines[1]["lower"] = [0.0, 0.0, -1.0]
    lines[2]["low"]["y"] = [[[1.0, 0.0, 0.0]]]
    write(tmp_path / "p", lines)
    for more in ([], ["--interval"]):
        assert drmdp_check.main([str(tmp_path / "p"), str(tmp_path / "m.npz"), *more]) == 1


# ---------------------------------------------------------------------- commands


def test_the_command_line_writes_and_verifies(tmp_path):
    model = drmdp.Model(
        [[[0.5, 0.5]], [[0.0, 1.0]]], costs=[[1.0], [0.0]], discount=1.0, terminal={1: 2.0}
    )
    path, proof = str(tmp_path / "m.npz"), str(tmp_path / "p")
    drmdp.write(model, path)
    done = CliRunner().invoke(main, ["solve", path, "--radius", "0.1", "--proof", proof])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(main, ["verify", proof, path])
    assert done.exit_code == 0, done.output
    assert (
        "total until a terminal state, which is reached for sure, final values from 2.0 to 2.0"
        in done.output
    )
    assert "all claimed bounds hold" in done.output


def test_a_side_without_a_bound_is_left_out(tmp_path):
    """Nature can trap: nothing bounds from above, and the file says so."""
    model = drmdp.Model(
        [[[0.7, 0.3]], [[0.0, 1.0]]], costs=[[1.0], [0.0]], discount=1.0, terminal=[1]
    )
    found = drmdp.solve(model, drmdp.Wasserstein(0.7, "l1"))
    assert found.status == "unbounded"
    drmdp.write(model, tmp_path / "m.npz")
    if found.sweeps[0] is None:
        with pytest.raises(drmdp.InputError, match="proof: there is no sweep"):
            found.proof(tmp_path / "p")
        return
    found.proof(tmp_path / "p")
    assert read(tmp_path / "p")[0]["sweeps"] == ["lower"]
    assert accepted(tmp_path / "p", tmp_path / "m.npz")[0][1][0] == math.inf


def test_steps_are_those_against_an_adversary_whoever_nature_is(tmp_path):
    """Where costs are below 0 a nature that helps does not show that the policy arrives."""
    result, proof, model = written(("divergence", "kl", "mean"), 5, "total helped", tmp_path)
    accepted(proof, model)
    stay = result.kernel[0][result.policy[0] > 0][0, 0]
    assert result.time[0] >= 1 / (1 - stay)


def test_probabilities_are_about_the_model_as_it_was_given(tmp_path):
    """Costs, the discount and rows of the target do not count; other rows do."""
    model, found = solved(("l2", 2), 3, "reach")
    found.proof(tmp_path / "p")
    S = model.n_states
    other = drmdp.Model(
        model.kernels,
        costs=np.full(model.available.shape, 7.0),
        discount=0.3,
        weights=model.weights,
        terminal=model.terminal,
    )
    drmdp.write(other, tmp_path / "other.npz")
    accepted(tmp_path / "p", tmp_path / "other.npz")
    kernels = np.array(model.kernels)
    kernels[:, 0, 0] = np.eye(S)[-1]
    drmdp.write(
        drmdp.Model(
            kernels,
            costs=np.zeros((S, model.n_actions)),
            discount=0.3,
            weights=model.weights,
            terminal=model.terminal,
        ),
        tmp_path / "w.npz",
    )
    with pytest.raises(drmdp_check.Refused, match="not the one"):
        drmdp_check.check(tmp_path / "p", tmp_path / "w.npz")
