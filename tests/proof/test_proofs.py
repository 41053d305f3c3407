"""Proofs of drmdp are accepted by a checker that shares no line with it, and forged ones are
not.
"""

import ast
import io
import json
import math
import subprocess
import sys
import tracemalloc
import zipfile
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import sparse

import drmdp
import drmdp_check
from drmdp import _native
from drmdp.cli import main
from drmdp.proof.states import digest
from drmdp_check import __main__ as checker
from drmdp_check.__main__ import AmbiguitySet, Arithmetic, Interval, norm
from proofs import EVENTS, SETS, STAGES, TASKS, ambiguity_of, dealt, tasks_of, written

CHECKER = Path(drmdp_check.__file__).parent / "__main__.py"
FEW = [("l2", 2), ("l1", 1), ("l2", math.inf), ("intervals",)]


def accepted(proof, model, interval=False):
    """What the checker proves, if that is all that is claimed."""
    found = drmdp_check.check(proof, model, interval)
    assert not list(found.failures())
    for lower, upper, least, most in found.bounds:
        ends = zip(least, lower, upper, most, strict=True)
        assert all(claim <= one <= other <= end for claim, one, other, end in ends)
    return found.bounds[0]


@pytest.mark.parametrize("name", FEW, ids=str)
def test_proofs_are_accepted_and_what_is_proved_lies_within_the_claim(name, tmp_path):
    for seed in range(12):
        solution, proof, model = written(name, seed, tmp_path)
        _, _, least, most = accepted(proof, model)
        sign = -1 if seed % 5 == 0 else 1
        assert sorted((sign * float(least[0]), sign * float(most[0]))) == [
            solution.lower[0],
            solution.upper[0],
        ]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(
    "name", [("l2", 2), ("linf", 1), ("transport", math.inf), ("reweighting", "tv")], ids=str
)
def test_given_policies_and_a_nature_that_helps(name, task, tmp_path):
    for seed in (2, 5, 6):
        accepted(*written(name, seed, tmp_path, task)[1:])


@pytest.mark.parametrize(
    "name", [("l2", 2), ("linf", 1), ("l1", math.inf), ("divergence", "chi2", "kernels")], ids=str
)
@pytest.mark.parametrize("task", [EVENTS, STAGES])
def test_laws_of_events_and_stages_of_their_own(name, task, tmp_path):
    for seed in range(4):
        accepted(*written(name, seed, tmp_path, task)[1:])


@pytest.mark.fuzz
@pytest.mark.parametrize(
    ("name", "task"), [(name, task) for name in SETS for task in tasks_of(name)], ids=str
)
def test_every_proof_is_accepted(name, task, tmp_path):
    for seed in range(60):
        accepted(*written(name, seed, tmp_path, task)[1:])


@pytest.mark.parametrize("order", [1e300, 1.0000001])
@pytest.mark.parametrize("metric", ["l1", "l2", "linf"])
def test_orders_next_to_infinity_and_to_1(metric, order, tmp_path):
    model = drmdp.instances.perturb(drmdp.instances.machine(5), 3)
    drmdp.write(model, tmp_path / "m.npz")
    drmdp.solve(model, drmdp.Wasserstein(0.1, metric, order)).proof(tmp_path / "m.proof")
    accepted(tmp_path / "m.proof", tmp_path / "m.npz")


@pytest.mark.parametrize("scale", [1e-290, 1e200, 1e280])
@pytest.mark.parametrize(
    "name", [("divergence", "kl", "mean"), ("linf", 2), ("transport", 1)], ids=str
)
def test_costs_of_any_size(name, scale, tmp_path):
    """Multipliers are looked for where their squares neither overflow nor vanish."""
    for seed in (2, 3, 4):
        plain = dealt(seed)
        costs = np.asarray(plain.costs) / (np.abs(plain.costs).max() or 1) * scale
        flags = {"available": plain.available, "terminal": plain.terminal, "weights": plain.weights}
        model = drmdp.Model(plain.kernels, costs=costs, discount=0.5, **flags)
        drmdp.write(model, tmp_path / "m.npz")
        drmdp.solve(model, ambiguity_of(name, model, seed)).proof(tmp_path / "p")
        accepted(tmp_path / "p", tmp_path / "m.npz")


def test_probabilities_that_rounding_swallows(tmp_path):
    """The threshold of burg leaves room for the highest stake, however unlikely it is."""
    kernels = np.array([[[1.0, 1e-17, 0.0]], [[0.5, 0.0, 0.5]], [[0.3, 0.3, 0.4]]])
    model = drmdp.Model(kernels, costs=[[1.0], [5.0], [2.0]], discount=0.9)
    drmdp.write(model, tmp_path / "m.npz")
    drmdp.solve(model, drmdp.Divergence(1.0, "burg", "kernels")).proof(tmp_path / "p")
    accepted(tmp_path / "p", tmp_path / "m.npz")


def test_mixtures_keep_their_small_weights(tmp_path):
    """A weight that vanishes has no finite price with burg, however little the budget binds."""
    accepted(*written(("reweighting", "burg"), 22, tmp_path, "plan")[1:])
    w, q = np.array([0.5, 0.5]), np.array([[1.0, 1e-20], [1.0, 1e-30]])
    _native.pull("mix_burg", np.array([100.0, 20.0]), w, q)
    assert q[0, 1] == 1e-20
    assert math.log(w[1] / q[1, 1]) < 40


def test_no_price_of_what_leaves_the_support_of_burg(tmp_path):
    _, proof, model = written(("reweighting", "burg"), 22, tmp_path)
    lines = lines_of(proof)
    lines[2]["low"]["y"][0][0][-1] = 0.0
    rewrite(proof, lines)
    assert "an infinite divergence" in refused(proof, model)


@pytest.mark.parametrize("order", [2, 3])
def test_a_radius_without_an_end(order, tmp_path):
    model = drmdp.instances.perturb(drmdp.instances.machine(5), 3)
    drmdp.write(model, tmp_path / "m.npz")
    drmdp.solve(model, drmdp.Wasserstein(1e300, "l2", order)).proof(tmp_path / "p")
    accepted(tmp_path / "p", tmp_path / "m.npz")


def test_a_kink_of_the_norm_is_priced_exactly(tmp_path):
    """Slopes of kernels that share a budget are mixed to one price; thresholds alone would be off
    where probabilities are rounded.
    """
    for seed in (25, 75):
        accepted(*written(("linf", 1), seed, tmp_path)[1:])


def test_outward_rounding_proves_nearly_as_much(tmp_path):
    for seed in range(1, 8):
        _, proof, model = written(("l2", 2), seed, tmp_path)
        exact, rounded = (
            drmdp_check.check(proof, model).bounds[0],
            drmdp_check.check(proof, model, True).bounds[0],
        )
        scale = max(map(abs, exact[1])) or 1
        assert all(rough <= one for rough, one in zip(rounded[0], exact[0], strict=True))
        assert all(rough >= one for rough, one in zip(rounded[1], exact[1], strict=True))
        assert (
            max(rough - one for rough, one in zip(rounded[1], exact[1], strict=True))
            <= 1e-8 * scale
        )


# ---------------------------------------------------------------------- forgeries


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def rewrite(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def refused(proof, model):
    with pytest.raises(drmdp_check.Refused) as why:
        drmdp_check.check(proof, model)
    return str(why.value)


def test_forged_files_are_refused_with_a_reason(tmp_path):
    _, proof, model = written(("l2", 2), 2, tmp_path)
    good = lines_of(proof)

    def forged(change):
        lines = json.loads(json.dumps(good))
        change(lines)
        rewrite(proof, lines)
        return refused(proof, model)

    assert "not the one" in forged(lambda lines: lines[0].update(model="0" * 64))
    assert "expected format" in forged(lambda lines: lines[0].update(format="drmdp proof 9"))
    assert "cannot check the set 'secret' yet" in forged(
        lambda lines: lines[0].update(set={"family": "secret"})
    )
    assert "expected state" in forged(lambda lines: lines.insert(2, lines.pop(3)))
    assert "x is no policy" in forged(lambda lines: lines[2].update(x=[-1.0] * len(lines[2]["x"])))
    assert "no distribution" in forged(
        lambda lines: lines[2]["low"]["y"][0][0].__setitem__(0, -1.0)
    )
    assert "does not end" in forged(lambda lines: lines.append({"end": True}))
    assert "is no number" in forged(lambda lines: lines[1]["v"].__setitem__(0, "1e999999999"))
    assert "a negative radius" in forged(lambda lines: lines[2].update(r=-1.0))
    rewrite(proof, good)
    whole = proof.read_bytes()
    proof.write_bytes(whole[: len(whole) // 2])
    assert "cut off" in refused(proof, model)
    for word, reason in (
        (b"NaN", "no finite"),
        (b"1e999", "no finite"),
        (b"9" * 5000, "too many digits"),
        (b"[" * 90000, ""),
    ):
        proof.write_bytes(whole.replace(b'"v": [', b'"v": [' + word + b",", 1))
        assert reason in refused(proof, model)


def test_a_policy_that_does_not_sum_to_1_counts_as_its_share(tmp_path):
    _, proof, model = written(("l2", 2), 2, tmp_path)
    lines = lines_of(proof)
    for line in lines[2:-1]:
        line["x"] = [3 * p for p in line["x"]]
    rewrite(proof, lines)
    found = drmdp_check.check(proof, model)
    assert all(one <= other for one, other in zip(*found.bounds[0][:2], strict=True))


def test_models_that_lie_are_refused(tmp_path):
    _, proof, model = written(("l2", 2), 2, tmp_path)
    with zipfile.ZipFile(model) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}

    def packed(**changed):
        with zipfile.ZipFile(model, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in {**members, **changed}.items():
                archive.writestr(name, data)
        return refused(proof, model)

    bomb = members["kernels.npy"][:128] + bytes(checker.SAFE + 1)
    assert "too many" in packed(**{"kernels.npy": bomb})
    assert "cannot be read" in packed(
        **{"kernels.npy": b"\x93NUMPY\x01\x00\x10\x00{'shape': (9**9**9"}
    )
    assert "cut off" in packed(**{"costs.npy": members["costs.npy"][:-8]})
    for array in (
        np.load(io.BytesIO(members["costs.npy"])).astype(kind)
        for kind in (object, "<U9", "<c16", "<g")
    ):
        stream = io.BytesIO()
        np.save(stream, array, allow_pickle=True)
        assert f"numbers {array.dtype.str!r}" in packed(**{"costs.npy": stream.getvalue()})
    assert "one of them makes a model" in packed(**{"laws.npy": members["kernels.npy"]})
    assert "is there twice" in packed(kernels=members["kernels.npy"])  # without its suffix
    with zipfile.ZipFile(model, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("kernels.npy", members["kernels.npy"])
    assert "packed in an odd way" in refused(proof, model)
    model.write_bytes(b"PK not a zip")
    assert "cannot be read" in refused(proof, model)


def foreign():
    """Files that others made and drmdp reads, by name: what `np.savez` is given, and whether it
    packs.
    """
    rng = np.random.default_rng(0)
    p, sure = rng.dirichlet(np.ones(3), (2, 3, 2)), np.eye(3)[rng.integers(0, 3, (2, 3, 2))]
    below = p.copy()
    below[0, 0, 0] = -1e-13, 1 - p[0, 0, 0, 2], p[0, 0, 0, 2]
    plain = {"kernels": p, "costs": rng.random((3, 2)), "discount": 0.9}
    big = {name: np.asarray(array).astype(">f8") for name, array in plain.items()}
    yield (
        "rows off by 1e-10",
        plain | {"kernels": p * (1 + 1e-10 * rng.uniform(-1, 1, (2, 3, 2, 1)))},
        False,
    )
    yield "weights off by 1e-10", plain | {"weights": [0.3 + 1e-10, 0.7]}, False
    yield "float32", plain | {"kernels": p.astype(np.float32)}, True
    yield "float32 throughout", {name: np.float32(array) for name, array in plain.items()}, False
    yield "rounding below 0", plain | {"kernels": below}, False
    for kind in (np.int64, np.uint8, np.bool_, np.float16, np.int16, np.uint64):
        yield (
            np.dtype(kind).name,
            plain | {"kernels": sure.astype(kind), "costs": np.ones((3, 2), kind)},
            True,
        )
    yield "big-endian", big | {"weights": np.array([0.25, 0.75], ">f4")}, False
    yield (
        "Fortran's order",
        plain
        | {"kernels": np.asfortranarray(p), "costs": np.asfortranarray(rng.random((3, 2, 3)))},
        False,
    )
    yield (
        "zeros, packed",
        {
            "kernels": np.tile(np.eye(1, 300), (300, 1, 1)),
            "costs": np.zeros((300, 1, 300)),
            "discount": 0.5,
        },
        True,
    )


@pytest.mark.parametrize(
    ("given", "pack"), [pytest.param(*case[1:], id=case[0]) for case in foreign()]
)
def test_files_of_others_are_the_same_model_to_both(given, pack, tmp_path):
    path, proof = tmp_path / "m.npz", tmp_path / "p"
    (np.savez_compressed if pack else np.savez)(path, **given)
    drmdp.solve(drmdp.read(path), drmdp.Wasserstein(0.1, support="observed")).proof(proof)
    accepted(proof, path)


def test_random_rows_are_divided_alike(tmp_path):
    """To the bit, also where a sum is next to what counts as rounding."""
    rng, path = np.random.default_rng(1), tmp_path / "m.npz"
    for seed in range(40):
        K = int(rng.integers(1, 40))
        p = rng.dirichlet(np.full(K, 0.3), (2, K, 1))
        off = (
            10.0 ** rng.uniform(-15, -9.1, (2, K, 1, 1))
            if seed % 2
            else 2 * (K + 2) * 2.0**-52 * rng.uniform(0.9, 1.1, (2, K, 1, 1))
        )
        np.savez(
            path,
            kernels=p * (1 + off),
            costs=np.zeros(K),
            discount=0.5,
            weights=np.array([0.5, 0.5 + off[0, 0, 0, 0]]),
        )
        assert digest(drmdp.read(path)) == checker.Model(path).digest


@pytest.mark.parametrize("thin", [False, True], ids=["dense", "sparse"])
def test_models_of_float32_are_written_as_they_are(thin, tmp_path):
    model = drmdp.instances.perturb(drmdp.instances.machine(5), n_kernels=3)
    kernels = (
        [sparse.csr_array(one.reshape(-1, 5)) for one in model.kernels] if thin else model.kernels
    )
    model = drmdp.Model(kernels, costs=model.costs, discount=0.8).astype(np.float32)
    drmdp.solve(model, drmdp.Wasserstein(0.1)).proof(tmp_path / "p")
    for name in ("m.npz", "m.drmdp"):
        drmdp.write(model, tmp_path / name)
        again = drmdp.read(tmp_path / name)
        assert (again.fingerprint, again.is_sparse) == (model.fingerprint, thin)
        accepted(tmp_path / "p", tmp_path / name)


def test_the_command_writes_what_it_found_and_nothing_else(tmp_path):
    _, proof, model = written(("l2", 2), 2, tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "drmdp_check", proof, model],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_sizes_without_numbers_are_refused_at_once(tmp_path):
    """A file of a few bytes that says it has a billion kernels, or states, costs no memory."""
    proof = written(("l2", 2), 2, tmp_path)[1]
    many, few = (
        tmp_path / "many.npz",
        {"discount": 0.5, "costs": np.ones((1, 1)), "weights": np.ones(1)},
    )
    empty = {"indptr": np.zeros(2, np.int64), "indices": np.zeros(0, np.int32), "data": np.zeros(0)}
    np.savez(many, shape=[10**9, 1, 1], **few, **empty)
    tracemalloc.start()
    assert "sizes do not fit" in refused(proof, many)
    np.savez(many, laws=np.zeros((1, 1, 0)), next=np.zeros((10**9, 1, 0), np.int32), **few)
    assert "do not fit" in refused(proof, many)
    assert tracemalloc.get_traced_memory()[1] < 2e6
    tracemalloc.stop()


def test_what_a_file_says_of_itself_stays_on_its_line(tmp_path, capsys):
    """A version, or the name of an array, cannot say that all bounds hold, nor command a
    terminal.
    """
    _, proof, model = written(("l2", 2), 2, tmp_path)
    lines, word = lines_of(proof), "\n\nall claimed bounds hold\n\x1b[8m"
    low = [x + 1e6 for x in lines[1]["lower"]]
    rewrite(proof, [lines[0] | {"version": word}, lines[1] | {"lower": low}, *lines[2:]])
    assert drmdp_check.main([str(proof), str(model)]) == 1
    with zipfile.ZipFile(model, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(word, bytes(1 << 20))
    assert drmdp_check.main([str(proof), str(model)]) == 2
    told = "".join(capsys.readouterr())
    assert "all claimed bounds hold" not in told.splitlines()
    assert "\x1b" not in told


def test_names_that_stand_twice_are_refused(tmp_path):
    """Readers differ in which one they take."""
    _, proof, model = written(("l2", 2), 2, tmp_path)
    proof.write_bytes(proof.read_bytes().replace(b'"kind":', b'"kind":"policy","kind":', 1))
    assert "a name stands twice" in refused(proof, model)


def test_intervals_have_no_radius(tmp_path, capsys):
    """They are as wide as the file says; one that was printed would be believed."""
    _, proof, model = written(("intervals",), 3, tmp_path)
    lines = lines_of(proof)
    rewrite(proof, [*lines[:2], lines[2] | {"r": 0.5}, *lines[3:]])
    assert drmdp_check.main([str(proof), str(model)]) == 0
    assert "from 0 to 0 over the states" in capsys.readouterr().out


def test_a_share_that_is_too_small_for_a_float_is_none():
    """Not less than none: nature would leave the set on its other side, and a loss would count as a
    gain.
    """
    number = Arithmetic(True, 40)

    class Far(AmbiguitySet):
        moved = staticmethod(lambda *given: (number.zero, number(-1e300)))
        distances = staticmethod(lambda *given: [number(1e308)])

    state = SimpleNamespace(number=number, weights=[number.one])
    found = Far("all", False).lower(state, [0], number(5e-324), {"y": [[None]]})
    assert found[0].hi == 0


def test_both_sides_are_about_the_same_intervals(tmp_path):
    """Intervals that one side brings along count for nothing: narrow ones above would prove what is
    false.
    """
    _, proof, model = written(("intervals",), 3, tmp_path)
    lines, truth = lines_of(proof), drmdp_check.check(proof, model).bounds[0]
    for line in lines[2:-1]:
        line["up"] |= {"lo": line["low"]["y"], "hi": line["low"]["y"]}
    rewrite(proof, lines)
    assert drmdp_check.check(proof, model).bounds[0] == truth
    for line in lines[2:-1]:
        del line["hi"]
    rewrite(proof, lines)
    assert "'hi'" in refused(proof, model)


# ---------------------------------------------------------------------- the checker itself


def test_the_checker_imports_the_standard_library_only():
    tree = ast.parse(CHECKER.read_text())
    names = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= set(sys.stdlib_module_names)


def test_the_checker_runs_as_a_single_file(tmp_path):
    _, proof, model = written(("l2", 2), 2, tmp_path)
    alone = tmp_path / "checker.py"
    alone.write_text(CHECKER.read_text())
    done = subprocess.run(
        [sys.executable, "-I", "-S", alone, proof, model],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "all claimed bounds hold" in done.stdout


def test_the_command_line_writes_and_verifies(tmp_path):
    model = tmp_path / "m.npz"
    drmdp.write(dealt(2), model)
    run = CliRunner()
    proof = str(tmp_path / "run.proof")
    done = run.invoke(main, ["solve", str(model), "--radius", "0.3", "--proof", proof])
    assert done.exit_code == 0, done.output
    done = run.invoke(main, ["verify", proof, str(model)])
    assert done.exit_code == 0, done.output
    assert run.invoke(main, ["verify", proof, proof]).exit_code == 2
    swapped = run.invoke(main, ["verify", str(model), proof])
    assert swapped.exit_code == 2
    assert f"PROOF comes first, then MODEL: {model} is a model" in swapped.stderr


def test_what_was_checked_is_said_and_what_was_not(tmp_path):
    """Of a proof of another version, too."""
    _, proof, model = written(("l2", 2), 2, tmp_path)
    lines = lines_of(proof)
    rewrite(proof, [lines[0] | {"version": "9.9"}, *lines[1:]])
    done = CliRunner().invoke(main, ["verify", str(proof), str(model)])
    assert done.exit_code == 0, done.output
    assert "checked     in exact arithmetic: SHA-256 of the model, both bounds" in done.output
    assert "not checked whether model, set and policy are what you mean" in done.output
    assert "drmdp 9.9 wrote the proof and this is drmdp" in done.output
    done = CliRunner().invoke(main, ["verify", "--interval", str(proof), str(model)])
    assert "checked     in floats rounded outwards" in done.output


def test_floats_that_are_too_coarse_have_an_exit_code_of_their_own(tmp_path, capsys):
    """A claim that is missed by rounding is neither proved nor worse than that; exact arithmetic
    tells.
    """
    _, proof, model = written(("l2", 2), 3, tmp_path)
    lower, upper = (
        list(map(float, side)) for side in drmdp_check.check(proof, model).bounds[0][:2]
    )
    lines = lines_of(proof)
    rewrite(proof, [lines[0], lines[1] | {"lower": lower, "upper": upper}, *lines[2:]])
    assert drmdp_check.main([str(proof), str(model)]) == 0
    assert drmdp_check.main([str(proof), str(model), "--interval"]) == 3
    assert (
        "floats may be too coarse; exact arithmetic, without --interval, tells"
        in capsys.readouterr().out
    )
    size = max(map(abs, lower + upper))
    rewrite(proof, [lines[0], lines[1] | {"lower": [x + 1e-6 * size for x in lower]}, *lines[2:]])
    assert (
        drmdp_check.main([str(proof), str(model)])
        == drmdp_check.main([str(proof), str(model), "--interval"])
        == 1
    )


def test_the_checker_fits_on_a_few_pages():
    assert len(CHECKER.read_text().splitlines()) <= 2000


def test_irrational_numbers_are_enclosed():
    number = Arithmetic(False, 40)
    rng = np.random.default_rng(0)
    for x in 10.0 ** rng.uniform(-12, 12, 50):
        q = Fraction(float(x))
        for root, n in ((number.sqrt(q), 2), (number.power(q, Fraction(1, 3)), 3)):
            assert root**n >= q >= (root * (1 - Fraction(1, 10**35))) ** n
        assert (
            number.log(q, up=False)
            < number.log(q, up=True)
            <= number.log(q, up=False) + Fraction(1, 10**30)
        )
        assert float(number.log(q, up=True)) == pytest.approx(math.log(x), rel=1e-15, abs=1e-15)
    assert Fraction(math.e) < number.exp(Fraction(1)) < Fraction(math.e) + Fraction(1, 10**15)


@pytest.mark.parametrize("interval", [False, True])
def test_norms_of_any_order_are_from_above_and_near(interval):
    number, rng = Arithmetic(interval, 40), np.random.default_rng(0)
    for order in (1.0, 1.0001, 1.5, 2.0, 7.0, 1e3, 1e300):
        x, w = rng.random(4).tolist(), [0.5, 0.25, 0.125, 0.125]
        found = norm(number, map(number, x), Fraction(order), list(map(number, w)))
        most = max(x)
        near = most * sum(one * (p / most) ** order for one, p in zip(w, x, strict=True)) ** (
            1 / order
        )
        assert float(found.hi if interval else found) == pytest.approx(near, rel=1e-13)
        if order in (2.0, 7.0) and not interval:
            assert found ** int(order) >= sum(
                Fraction(one) * Fraction(p) ** int(order) for one, p in zip(w, x, strict=True)
            )


def test_intervals_hold_what_they_stand_for():
    """Divisors are positive: sums of probabilities, prices, costs."""
    rng, number = np.random.default_rng(1), Arithmetic(True, 40)
    for a, b, c, d in rng.normal(size=(300, 4)).tolist():
        wide = [Interval(min(x, y), max(x, y)) for x, y in ((a, b), (c, d))]
        for name in ("__add__", "__sub__", "__mul__", "__truediv__"):
            sign = -1 if name == "__truediv__" and c < 0 else 1
            found = getattr(number(a), name)(number(sign * c))
            assert (
                Fraction(found.lo)
                <= getattr(Fraction(a), name)(Fraction(sign * c))
                <= Fraction(found.hi)
            )
            if name != "__truediv__" or min(c, d) > 0:
                found = getattr(wide[0], name)(wide[1])
                ends = [getattr(Fraction(x), name)(Fraction(y)) for x in (a, b) for y in (c, d)]
                assert Fraction(found.lo) <= min(ends) <= max(ends) <= Fraction(found.hi)
        assert number.add(map(number, (a, b, c, d))).lo < Fraction(a) + Fraction(b) + Fraction(
            c
        ) + Fraction(d)
    with pytest.raises(drmdp_check.Refused, match="division"):
        number(1.0) / Interval(0.0, 1.0)


def test_the_logarithm_of_1_is_0():
    """One step beyond 0 would be a number of a billion digits."""
    number = Arithmetic(False, 40)
    assert number.log(Fraction(1), up=True) == number.log(Fraction(1), up=False) == 0


@pytest.mark.parametrize("level", [0.0, 0.5, [0.0, 0.3, 1.0, 0.5]])
def test_levels_of_each_state(level, tmp_path):
    model = drmdp.instances.perturb(drmdp.instances.machine(4), n_kernels=3)
    drmdp.write(model, tmp_path / "m.npz")
    drmdp.solve(model, drmdp.Reweighting(kind="cvar", level=level)).proof(tmp_path / "p")
    accepted(tmp_path / "p", tmp_path / "m.npz")
