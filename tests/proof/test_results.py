"""What has a proof: plans, models of events, and what has none."""

import json
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner

import drmdp
import drmdp_check
from drmdp.cli import main
from proofs import dealt, written


def accepted(proof, model):
    """The checker proves all that is claimed."""
    found = drmdp_check.check(proof, model)
    assert not list(found.failures())


def test_a_solution_without_a_sweep_is_solved_again_from_itself(tmp_path):
    """As the message says."""
    model, ambiguity = drmdp.instances.machine(6), drmdp.Wasserstein(0.3, support="all")
    solution = drmdp.solve(model, ambiguity, drmdp.FirstOrder.fast(), tol=0.05)
    with pytest.raises(drmdp.InputError, match="there is no sweep") as error:
        solution.proof(tmp_path / "p")
    _, cure = str(error.value).split("'first-order': ")
    names = {"drmdp": drmdp, "model": model, "ambiguity": ambiguity, "solution": solution}
    eval(cure, {**names, "path": tmp_path / "p"})
    drmdp.write(model, tmp_path / "m.npz")
    accepted(tmp_path / "p", tmp_path / "m.npz")


@pytest.mark.parametrize("stages", [0, 3])
def test_what_is_not_proved_is_shown_in_the_sign_of_the_model(stages, tmp_path, capsys):
    """A reward of at least 99 is claimed, a cost of at most −99; far less is proved."""
    model, ambiguity = drmdp.instances.forest(4), drmdp.Wasserstein(0.1)
    drmdp.write(model, tmp_path / "m.npz")
    solved = (
        drmdp.finite_horizon(model, ambiguity, stages) if stages else drmdp.solve(model, ambiguity)
    )
    solved.proof(tmp_path / "p")
    found = drmdp_check.check(tmp_path / "p", tmp_path / "m.npz")
    found.bounds[0].claimed_upper[1] = Fraction(-99)
    assert drmdp_check.show(found) == 1
    (line,) = [text for text in capsys.readouterr().out.splitlines() if "is claimed" in text]
    place = "state 1, stage 3 of 3" if stages else "state 1"
    assert line.startswith(f"not proved: {place}: 99.0 is claimed, ")
    assert line.endswith(f" {-found.bounds[0].upper[1]!r} is proved")
    assert found.bounds[0].upper[1] < 0


def test_stages_are_proved_one_by_one(tmp_path):
    """States where nothing happens any more have the value 0, without a margin."""
    kernels = np.array([[[[0.5, 0.5, 0.0]], [[0.2, 0.2, 0.6]], [[0.0, 0.0, 1.0]]]])
    model = drmdp.Model(kernels, costs=[[1.0], [3.0], [0.0]], discount=0.9)
    drmdp.write(model, tmp_path / "m.npz")
    plan = drmdp.finite_horizon(
        model, drmdp.Wasserstein(0.3), 12, final=[5.0, 7.0, 0.0], discount=1.0
    )
    plan.proof(tmp_path / "p")
    accepted(tmp_path / "p", tmp_path / "m.npz")
    assert all(
        bounds[0][2] == bounds[1][2] == 0
        for bounds in drmdp_check.check(tmp_path / "p", tmp_path / "m.npz").bounds
    )
    plan.save(tmp_path / "plan.npz")
    with pytest.raises(drmdp.errors.InputError, match="no witnesses"):
        drmdp.HorizonSolution.load(tmp_path / "plan.npz").proof(tmp_path / "p")


@pytest.fixture
def season(tmp_path):
    """A plan of three stages, each with a model, a set and costs of its own, and the files of all
    that.
    """
    models = [drmdp.instances.perturb(drmdp.instances.machine(5), n_kernels=n) for n in (2, 3, 4)]
    balls = [drmdp.Wasserstein(0.1), drmdp.Divergence(0.1, support="all"), drmdp.Reweighting(0.2)]
    costs = np.random.default_rng(0).random((3, 5, 2))
    for t, model in enumerate(models):
        drmdp.write(model, tmp_path / f"{t}.npz")
    np.save(tmp_path / "costs.npy", costs)
    drmdp.finite_horizon(models, balls, costs=costs).proof(tmp_path / "p")
    return tmp_path / "p", [tmp_path / f"{t}.npz" for t in range(3)], tmp_path / "costs.npy"


def test_stages_have_models_sets_and_costs_of_their_own(season, tmp_path, capsys):
    proof, models, costs = season
    accepted(proof, [*models, costs])
    assert drmdp_check.main([str(proof), *map(str, [*models, costs])]) == 0
    told = capsys.readouterr().out
    assert (
        told.index('"l2"') < told.index('"divergence"') < told.index('"reweighting"')
    )  # the first stage first
    done = CliRunner().invoke(main, ["verify", str(proof), *map(str, [*models, costs])])
    assert done.exit_code == 0, done.output


def test_other_models_or_costs_of_stages_are_refused_or_prove_less(season):
    proof, models, costs = season
    for files, why in (
        ([*models[::-1], costs], "the model is not the one"),
        ([models[0], costs], "the model is not the one"),
        ([*models[:2], costs], "2 models: do not fit"),
        (models, "costs of the stages: expected in an .npy file"),
    ):
        with pytest.raises(drmdp_check.Refused, match=why):
            drmdp_check.check(proof, files)
    paid = np.load(costs)
    for shape in ((3, 5), (3, 5, 3), (2, 5, 2)):
        np.save(costs, np.zeros(shape))
        with pytest.raises(drmdp_check.Refused, match="costs of"):
            drmdp_check.check(proof, [*models, costs])
    paid[1, 2] += 0.01
    np.save(costs, paid)
    assert {sweep for sweep, *_ in drmdp_check.check(proof, [*models, costs]).failures()} == {1, 2}


def test_one_set_of_several_costs_no_more_lines(tmp_path):
    """What all stages have in common is said once."""
    model, balls = dealt(2), [drmdp.Wasserstein(0.3), drmdp.Wasserstein(0.2)]
    drmdp.write(model, tmp_path / "m.npz")
    drmdp.finite_horizon(model, balls, 2).proof(tmp_path / "p")
    accepted(tmp_path / "p", tmp_path / "m.npz")
    lines = [json.loads(line) for line in (tmp_path / "p").read_text().splitlines()]
    assert all(line.keys() == {"v", "lower", "upper"} for line in lines if "v" in line)
    assert {line["r"] for line in lines if "r" in line} == {0.2, 0.3}


@pytest.fixture
def shop(tmp_path):
    """A model of events, and its directory."""
    rng = np.random.default_rng(0)
    table, laws = rng.integers(0, 4, size=(4, 2, 3)), rng.dirichlet(np.ones(3), size=5)
    made = {"discount": 0.5, "costs": rng.random((4, 2))}
    model = drmdp.Model.from_events(4, 2, 3, lambda s, a, e: table[s, a, e], laws, **made)
    drmdp.write(model, tmp_path / "m.drmdp")
    return model, tmp_path / "m.drmdp"


def test_a_model_of_events_is_checked_by_its_kernels_where_nature_moves_states(shop, tmp_path):
    model, path = shop
    drmdp.solve(model, drmdp.Wasserstein(0.2)).proof(tmp_path / "p")
    drmdp.write(model.stored(), tmp_path / "m.npz")
    accepted(tmp_path / "p", tmp_path / "m.npz")
    with pytest.raises(
        drmdp_check.Refused,
        match=r"moves states, the model has events; model.stored\(\) has states",
    ):
        drmdp_check.check(tmp_path / "p", path)


@pytest.mark.parametrize("radius", [0.2, 0.0, [[0.1, 0.2]] * 4])
def test_and_by_its_laws_where_she_moves_those(shop, radius, tmp_path):
    model, path = shop
    found = drmdp.solve(model, drmdp.Wasserstein(radius, moves="events"))
    found.proof(tmp_path / "p")
    accepted(tmp_path / "p", path)
    drmdp.write(model.stored(), tmp_path / "m.npz")
    with pytest.raises(drmdp_check.Refused, match="moves events, the model has states"):
        drmdp_check.check(tmp_path / "p", tmp_path / "m.npz")


def test_what_a_set_moves_is_part_of_the_proof(shop, tmp_path):
    """A proof about laws is none about next states, whatever it says of itself."""
    model, path = shop
    drmdp.solve(model, drmdp.Wasserstein(0.2, moves="events")).proof(tmp_path / "p")
    first, *others = (tmp_path / "p").read_text().splitlines()
    for change, why in (
        ({"moves": "states"}, "the set moves states, the model has events"),
        ({"moves": "laws"}, "moves: expected one of"),
        (
            {"set": {"family": "transport", "order": 1, "grid": [[0]] * 4}},
            "cannot check the set 'transport' yet",
        ),
    ):
        (tmp_path / "p").write_text(
            "\n".join([json.dumps(json.loads(first) | change), *others, ""])
        )
        with pytest.raises(drmdp_check.Refused, match=why):
            drmdp_check.check(tmp_path / "p", path)


def rewritten(path, change):
    """Change the lines of a proof."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    change(lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_laws_do_not_leave_the_events_that_nature_may_use(tmp_path):
    """Mass for an event that no law has, or for one that is none, is refused; so is a law that is
    too short.
    """
    laws = [[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]]
    made = {"discount": 0.5, "costs": [[0.0], [1.0], [8.0]]}
    model = drmdp.Model.from_events(3, 1, 3, lambda s, a, e: e + 0 * s * a, laws, **made)
    drmdp.write(model, tmp_path / "m.drmdp")
    found = drmdp.solve(model, drmdp.Wasserstein(0.2, moves="events"))
    for change, why in (
        (lambda row: row.__setitem__(2, 0.25), "mass where nature must not bring it"),
        (lambda row: row.append([3, 0.25]), "a row names state 3"),
        (lambda row: row.append([2, 0.25]), "a row names state 2"),
        (list.pop, "a row is too short"),
    ):
        found.proof(tmp_path / "p")
        accepted(tmp_path / "p", tmp_path / "m.drmdp")
        rewritten(
            tmp_path / "p", lambda lines, change=change: change(lines[2]["low"][0]["y"][0][1])
        )
        with pytest.raises(drmdp_check.Refused, match=why):
            drmdp_check.check(tmp_path / "p", tmp_path / "m.drmdp")


def test_stages_say_what_their_sets_are_and_nothing_else(season, capsys):
    """Models of stages cannot be exchanged; whose plan it is, and on whose side nature is, the
    first line says.
    """
    proof, models, costs = season
    good, files = proof.read_text(), [*models, costs]
    truth = drmdp_check.check(proof, files).bounds

    def sweeps(lines):
        return [line for line in lines if "v" in line]

    rewritten(
        proof,
        lambda lines: [
            line.update(nature="cooperative", kind="policy", stages=1) for line in sweeps(lines)
        ],
    )
    assert drmdp_check.check(proof, files).bounds == truth
    proof.write_text(good)
    rewritten(proof, lambda lines: sweeps(lines)[0].update(model=sweeps(lines)[1]["model"]))
    with pytest.raises(drmdp_check.Refused, match="the model is not the one"):
        drmdp_check.check(proof, files)
    proof.write_text(good)
    rewritten(proof, lambda lines: sweeps(lines)[0].update(rectangular="sa"))
    with pytest.raises(drmdp_check.Refused):
        drmdp_check.check(proof, files)
    proof.write_text(good)
    rewritten(
        proof, lambda lines: sweeps(lines)[0].update(set={"family": "reweighting", "kind": "tv"})
    )
    with pytest.raises(drmdp_check.Refused):  # what bounds it is that of another set
        drmdp_check.check(proof, files)
    proof.write_text(good)
    rewritten(proof, lambda lines: lines[0].update(stages=2))
    with pytest.raises(drmdp_check.Refused, match="stages 2"):
        drmdp_check.check(proof, files)
    proof.write_text(good)
    rewritten(proof, lambda lines: lines[0].pop("stages"))
    with pytest.raises(drmdp_check.Refused, match="stages None"):
        drmdp_check.check(proof, files)


@pytest.mark.parametrize("ambiguity", [drmdp.Wasserstein(0.3), drmdp.Reweighting(0.1, "kl")])
def test_conic_updates_have_no_kernels_to_prove_with(ambiguity, tmp_path):
    with pytest.raises(drmdp.errors.InputError, match="backend='exact'"):
        drmdp.solve(dealt(2), ambiguity, backend="conic", tol=1e-3).proof(tmp_path / "p")


def test_a_loaded_solution_has_no_witnesses(tmp_path):
    solution, proof, _ = written(("l2", 2), 2, tmp_path)
    solution.save(tmp_path / "s.npz")
    with pytest.raises(drmdp.errors.InputError, match="no witnesses"):
        drmdp.Solution.load(tmp_path / "s.npz").proof(proof)
