"""Headers that say something else than the proof was written for: refused, or true of what they say
then.

The first line of a file says what its numbers are a proof of. Each field of it is changed, alone
and two at once, and checked exactly and with `--interval`. What is accepted all the same is a
statement of another problem; that problem is solved, and what was proved of it must not be false.
"""

import copy
import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

import drmdp
import drmdp_check
from criteria_proofs import AVERAGE, REACH, TOTAL, solved
from proofs import ambiguity_of

FEW = [
    ("l2", 2),
    ("l1", 1),
    ("divergence", "kl", "mean"),
    ("reweighting", "kl"),
    ("intervals",),
    ("linf", 1),
]
ASKED = tuple(name for name in (*REACH, *TOTAL, *AVERAGE) if name != "within")
MISSING = object()


def others(head, S):
    """What fields may say instead, [(field, value)]."""
    found = [
        (name, x)
        for name in ("criterion",)
        for x in ("total", "reach", "average", "discounted", MISSING)
    ]
    found += [("nature", x) for x in ("adversarial", "cooperative")] + [
        ("kind", x) for x in ("optimum", "policy")
    ]
    found += [("rectangular", x) for x in ("s", "sa")] + [
        ("support", x) for x in ("observed", "state", "all")
    ]
    found += [
        ("moves", "events"),
        ("stages", 1),
        ("stages", 2),
        ("rate", 1.0),
        ("rate", -3.0),
        ("format", "drmdp proof 1"),
    ]
    found += [
        ("sweeps", x)
        for x in (
            ["both"],
            ["upper"],
            ["lower"],
            ["lower", "upper"],
            ["upper", "lower"],
            [],
            MISSING,
        )
    ]
    found += [("minimise", x) for x in (True, False, MISSING)]
    found += [("target", x) for x in ([0], [S - 1], [S - 2], [0, S - 1], [], [S], MISSING)]
    found += [("avoid", x) for x in ([], [0], [S - 1], [S - 2], MISSING)]
    given = head["set"]
    found += [("set", given | {"metric": x}) for x in ("l1", "l2", "linf") if "metric" in given]
    found += [("set", given | {"order": x}) for x in (1, 2, "inf") if "order" in given]
    found += [
        ("set", given | {"kind": x})
        for x in ("kl", "burg", "chi2", "tv", "cvar", "any")
        if "kind" in given
    ]
    found += [("set", given | {"around": x}) for x in ("mean", "kernels") if "around" in given]
    return [(name, x) for name, x in found if head.get(name, MISSING) != x]


def other_set(ambiguity, before, after):
    """The set that a header states instead; None if there is no such set here."""
    shape = {
        name: after[name] for name in ("support", "rectangular") if after[name] != before[name]
    }
    if after["set"] != before["set"]:
        return None
    if isinstance(ambiguity, drmdp.Reweighting):  # mixtures have the support of the kernels
        shape.pop("support", None)
    if isinstance(ambiguity, drmdp.Intervals):  # a box for each pair, of next states that were seen
        return ambiguity
    try:
        return replace(ambiguity, **shape) if shape else ambiguity
    except (TypeError, drmdp.InputError):
        return None


def truth(head, lines, model, ambiguity):
    """Bounds on what a header states, as costs; None if it cannot be solved here."""
    criterion, policy = head.get("criterion", "discounted"), None
    nature = head["nature"]
    if head["kind"] == "policy":
        policy = np.zeros(model.available.shape)
        for line in lines:
            if "s" in line:
                policy[line["s"]] = line["x"]
    try:
        if criterion == "reach":
            goal = {"target": head["target"], "avoid": head["avoid"], "minimise": head["minimise"]}
            if policy is None:
                found = drmdp.reach(model, ambiguity, **goal, nature=nature)
            else:
                found = drmdp.evaluate(
                    model, ambiguity, policy, criterion="reach", **goal, nature=nature
                )
            return (found.lower, found.upper) if head["minimise"] else (-found.upper, -found.lower)
        if policy is None:
            found = drmdp.solve(model, ambiguity, criterion=criterion, nature=nature)
        else:
            found = drmdp.evaluate(model, ambiguity, policy, criterion=criterion, nature=nature)
        return (-found.upper, -found.lower) if model.maximise else (found.lower, found.upper)
    except drmdp.InputError:
        return None


def forge(name, seed, asked, folder, pairs=0):
    """(refused, accepted and true, accepted and not solved here)."""
    model, result = solved(name, seed, asked)
    ambiguity = ambiguity_of(name, model, seed)
    if asked in TOTAL and ambiguity.sized and getattr(ambiguity, "kind", "") != "cvar":
        ambiguity = ambiguity.with_radius(min(float(np.max(ambiguity.radius)), 0.05))
    path, proof = folder / "m.npz", folder / "p"
    drmdp.write(model, path)
    result.proof(proof)
    lines = [json.loads(line) for line in proof.read_text().splitlines()]
    single = [(change,) for change in others(lines[0], model.n_states)]
    double = [
        own
        for own in itertools.combinations(others(lines[0], model.n_states), 2)
        if own[0][0] != own[1][0]
    ]
    rng = np.random.default_rng(seed)
    chosen = [double[k] for k in rng.choice(len(double), pairs, replace=False)]
    counts = [0, 0, 0]
    for changes in single + chosen:
        forged = copy.deepcopy(lines)
        for field, value in changes:
            forged[0].pop(field, None)
            forged[0] |= {} if value is MISSING else {field: value}
        proof.write_text("".join(json.dumps(line) + "\n" for line in forged))
        for interval in (False, True):
            try:
                found = drmdp_check.check(proof, path, interval)
            except drmdp_check.Refused:
                counts[0] += 1
                continue
            if any(True for _ in found.failures()):
                counts[0] += 1
                continue
            head = forged[0]
            stated = other_set(ambiguity, lines[0], head)
            known = None if stated is None else truth(head, forged, model, stated)
            counts[1 if known is not None else 2] += 1
            if known is None:
                assert only_more(lines[0], head) or vacuous(found), (name, seed, asked, changes)
                continue
            (lower, upper, _, _), off = (
                found.bounds[-1],
                1e-7 * (1 + np.abs(known[1][np.isfinite(known[1])]).max(initial=0)),
            )
            assert (np.array(lower, dtype=float) <= known[1] + off).all(), (
                name,
                seed,
                asked,
                changes,
            )
            assert (np.array(upper, dtype=float) >= known[0] - off).all(), (
                name,
                seed,
                asked,
                changes,
            )
    return counts


def only_more(before, after):
    """Whether a header names another set, in which the rows are and beyond which the multipliers
    show nothing.
    """
    return after["set"] != before["set"]


def vacuous(found):
    """Whether nothing is bounded from above: nobody who does not arrive is told anything."""
    return all(x == np.inf for x in found.bounds[-1][1])


@pytest.mark.parametrize("asked", ASKED[::3])
def test_no_header_is_believed(asked, tmp_path):
    refused, true, unknown = forge(("l2", 2), 3, asked, tmp_path)
    assert refused > true + unknown


@pytest.mark.fuzz
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("name", FEW, ids=str)
def test_no_header_of_many_is_believed(name, asked, tmp_path):
    for seed in range(1, 5):
        forge(name, seed, asked, tmp_path, pairs=60)


def plan_of_probability(folder):
    """A proof of a probability in two steps, its lines without claims, and the truth in state 0."""
    model = drmdp.instances.perturb(drmdp.instances.garnet(5, 2, 0.6), 3)
    drmdp.write(model, folder / "m.npz")
    drmdp.reach(model, drmdp.Wasserstein(0.1), target=[4], within=2).proof(folder / "p")
    lines = [json.loads(line) for line in (folder / "p").read_text().splitlines()]
    for line in lines:
        if "lower" in line:
            line["lower"], line["upper"] = (
                [-9.0] * 4 + line["lower"][4:],
                [9.0] * 4 + line["upper"][4:],
            )
    return lines, drmdp_check.check(folder / "p", folder / "m.npz").bounds[-1]


def refusal(folder, lines, *more):
    """Why a proof is refused, exactly and in floats."""
    (folder / "f").write_text("".join(json.dumps(line) + "\n" for line in lines))
    why = set()
    for interval in (False, True):
        with pytest.raises(drmdp_check.Refused) as error:
            drmdp_check.check(folder / "f", [folder / "m.npz", *more], interval)
        why.add(str(error.value))
    (message,) = why
    return message


def test_a_probability_in_stages_has_no_other_final_values(tmp_path):
    """Whoever has not arrived after the last stage has not arrived: −1 there proves 1.79 from
    above.
    """
    lines, _ = plan_of_probability(tmp_path)
    for state in range(4):
        final = [0.0] * 4 + [-1.0]
        final[state] = -1.0
        assert "final: a probability is 0" in refusal(
            tmp_path, [lines[0] | {"final": final}, *lines[1:]]
        )


def test_a_probability_in_stages_has_no_costs(tmp_path):
    """With costs of 0.3 a step a probability is proved to be at least 1.09."""
    lines, _ = plan_of_probability(tmp_path)
    np.save(tmp_path / "costs.npy", np.full((2, 5, 2), 0.3))
    forged = [lines[0] | {"costs": "of stages"}, *lines[1:]]
    assert "a probability has none" in refusal(tmp_path, forged, tmp_path / "costs.npy")


def test_what_is_printed_of_a_set_is_all_that_decides(tmp_path, capsys):
    """Fields that mean nothing would push those that do beyond the end of the line."""
    lines, truth = plan_of_probability(tmp_path)
    decoy = {"Metric": "linf", "Order": 1, "unit": "." * 200}
    forged = [lines[0] | {"set": decoy | lines[0]["set"]}, *lines[1:]]
    assert "the set 'norm' has no Metric, Order, unit" in refusal(tmp_path, forged)
    forged = [lines[0] | {"set": lines[0]["set"] | {"around": "Mean"}}, *lines[1:]]
    assert "a norm of no order" in refusal(tmp_path, forged)
    given = dict(reversed(lines[0]["set"].items()))
    (tmp_path / "f").write_text(
        "".join(json.dumps(line) + "\n" for line in [lines[0] | {"set": given}, *lines[1:]])
    )
    found = drmdp_check.check(tmp_path / "f", tmp_path / "m.npz")
    assert found.bounds[-1][:2] == truth[:2]
    assert drmdp_check.show(found) == 0
    assert '{"family": "norm", "metric": "l2", "order": 2}' in capsys.readouterr().out


def test_a_model_of_terminal_states_has_no_radius(tmp_path, capsys):
    model = drmdp.Model(
        kernels=np.eye(2)[:, None], costs=np.zeros((2, 1)), discount=0.9, terminal=[True, True]
    )
    drmdp.write(model, tmp_path / "m.npz")
    drmdp.solve(model, drmdp.Wasserstein(0.1)).proof(tmp_path / "p")
    assert drmdp_check.main([str(tmp_path / "p"), str(tmp_path / "m.npz")]) == 0
    assert "radius      of no state: all are terminal" in capsys.readouterr().out
