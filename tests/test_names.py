"""Names of kernels and notes go wherever a model goes, and rounded rows are put right on
request.
"""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import sparse

import drmdp
from drmdp import Model, policies
from drmdp.cli import main
from drmdp.core.names import natural

PRESSES = ("Press-01", "Press-02", "Press-03", "Press-04")
NOTE = "2 rows of kernels lack data that others have: pooled"


def presses(**given):
    """Four kernels over two states and two actions; the last one breaks most."""
    wear = np.array([0.1, 0.2, 0.3, 0.6])
    y = np.zeros((4, 2, 2, 2))
    y[:, 0, 0] = np.stack([1 - wear, wear], axis=1)
    y[:, 1, 0] = [0, 1]
    y[:, :, 1] = [1, 0]
    return Model(
        y,
        costs=[[0, 2], [5, 4]],
        discount=0.9,
        states=["good", "worn"],
        actions=["run", "repair"],
        **{"kernel_names": PRESSES, "notes": [NOTE], **given},
    )


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(main, [str(word) for word in words])


# ---------------------------------------------------------------------- the model


def test_kernels_have_names_and_models_notes():
    model = presses()
    assert model.kernel_names == PRESSES
    assert model.notes == (NOTE,)
    assert "\n  kernels Press-01, Press-02, Press-03, Press-04\n" in repr(model)
    assert repr(model).endswith(f"\n  note: {NOTE}")
    assert NOTE in model._repr_html_()
    plain = presses(kernel_names=None, notes=())
    assert plain.kernel_names == range(4)
    assert plain.notes == ()


def test_names_define_a_model_and_notes_do_not():
    assert presses(notes=()) == presses()
    assert presses(kernel_names=PRESSES[::-1]) != presses()
    assert presses(kernel_names=range(4)) == presses(kernel_names=None)


def test_notes_are_lines():
    assert presses(notes=["one\n two "]).notes == ("one two",)


def test_what_was_noticed_comes_after_what_was_said():
    model = Model(np.full((2, 1, 2), 0.5 + 1e-11), costs=[0, 1], discount=0.5, notes=["first"])
    assert model.notes[0] == "first"
    assert "renormalised" in model.notes[1]


def test_weights_and_values_go_by_name():
    model = presses(weights={"Press-01": 0.25, "Press-04": 0.75})
    np.testing.assert_array_equal(model.weights, [0.25, 0, 0, 0.75])
    x = [0, 1]
    by_name = policies.under(model, x, ["Press-04"])
    np.testing.assert_array_equal(by_name, policies.under(model, x, [3]))
    np.testing.assert_array_equal(
        drmdp.formats.to_quantecon(model, kernel="Press-04").Q, model.kernels[3]
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kernel_names": ["a"]}, "kernel_names: expected 4 names, got 1"),
        ({"kernel_names": ["a", "b", "a", "c"]}, "kernel_names: the name 'a' is given twice"),
        ({"kernel_names": [True, 2, 3, 4]}, "kernel_names: names are hashable"),
        ({"notes": "a note"}, "notes: expected a list of texts, got 'a note'"),
        ({"notes": [1]}, r"notes: expected a list of texts, got \[1\]"),
        ({"notes": None}, "notes: expected a list of texts, got None"),
        ({"weights": {"Press-09": 1.0}}, "weights: unknown kernel 'Press-09'; known: 'Press-01'"),
    ],
)
def test_wrong_names_and_notes_are_refused(given, message):
    with pytest.raises(drmdp.InputError, match=message):
        presses(**given)


def test_errors_name_the_kernel():
    y = presses().kernels.copy()
    y[3, 0, 0] = [0.5, 0.6]
    with pytest.raises(
        drmdp.InputError, match=r"kernel 'Press-04', state 'good', action 'run' sums to 1\.1"
    ):
        Model(
            y,
            costs=[0, 1],
            discount=0.9,
            states=["good", "worn"],
            actions=["run", "x"],
            kernel_names=PRESSES,
        )
    counts = np.full((4, 2, 2), 10.0)
    counts[3, 0, 0] = -1
    with pytest.raises(
        drmdp.InputError, match=r"kernel 'Press-04', state 'good', action 'run' has -1\.0"
    ):
        drmdp.radius.sufficient(presses(), drmdp.Wasserstein(0), counts)


def test_rewards_stand_beside_costs():
    model = presses()
    np.testing.assert_array_equal(model.rewards, -model.costs)
    y = sparse.csr_array(np.eye(2)[[0, 0, 1, 1]])
    rewards = sparse.csr_array(3 * y)
    sparse_model = Model([y], rewards=rewards, discount=0.5)
    np.testing.assert_array_equal(sparse_model.rewards.toarray(), rewards.toarray())
    np.testing.assert_array_equal(sparse_model.costs.toarray(), -rewards.toarray())
    assert not np.signbit(Model(np.ones((1, 1, 1)), costs=[0.0], discount=0.5).rewards).any()


# ---------------------------------------------------------------------- where the model goes


def test_names_and_notes_stay_on_the_way_through_the_library():
    model, ambiguity = presses(), drmdp.Wasserstein(0.1)
    assert model.astype(np.float32).kernel_names == PRESSES
    assert model.astype(np.float32).notes == (NOTE,)
    assert drmdp.radius.path(model, ambiguity, [0, 0.1]).model.notes == (NOTE,)
    solution = drmdp.solve(model, ambiguity)
    assert solution.notes[0] == NOTE
    assert "kernel Press-04 alone" in solution.notes[1]
    assert f"\n  note       {NOTE}" in repr(solution)
    assert NOTE in solution._repr_html_()


@pytest.mark.usefixtures("sketched")
def test_a_saved_solution_and_its_report_hold_the_notes(tmp_path):
    drmdp.solve(presses(), drmdp.Wasserstein(0.1)).save(tmp_path / "s.npz")
    loaded = drmdp.Solution.load(tmp_path / "s.npz")
    assert loaded.notes[0] == NOTE
    for model in (None, presses()):
        loaded.report(tmp_path / "r.html", model=model)
        assert (tmp_path / "r.html").read_text().count(NOTE) == 1
    assert "Press-01, Press-02, Press-03, Press-04" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize(
    ("file", "lost"),
    [
        ("m.csv", "names of states, names of actions, names of kernels, notes"),
        ("m.tra", "names of states, notes"),
    ],
)
def test_formats_that_hold_no_names_or_notes_say_so(run, file, lost):
    model = presses()
    if file == "m.tra":
        model = Model(
            model.kernels[:1],
            costs=model.costs,
            discount=0.9,
            states=model.states,
            actions=model.actions,
            notes=[NOTE],
        )
    with pytest.warns(drmdp.Notice, match=f"{file}: left out, for the format holds none: {lost}$"):
        drmdp.write(model, file)
    drmdp.write(model, "m.npz")
    result = run("convert", "m.npz", file)
    assert result.exit_code == 0
    assert result.stderr == f"drmdp: note: {file}: left out, for the format holds none: {lost}\n"


def test_plain_models_are_converted_without_a_word(run):
    drmdp.write(drmdp.instances.garnet(4, 2), "m.npz")
    assert run("convert", "m.npz", "m.csv").stderr == ""


LOG = "machine,month,state,action,cost\n" + "".join(
    f"Press-0{i},{month},{'worn' if month % (12 - 2 * i) == 0 else 'good'},run,{month % 7}\n"
    for i in range(1, 5)
    for month in range(1, 40)
)


def test_a_log_becomes_a_model_whose_kernels_have_names(run, tmp_path):
    (tmp_path / "log.csv").write_text(LOG)
    made = run(
        "estimate",
        "log.csv",
        "-o",
        "m.npz",
        "--discount",
        0.9,
        "--by",
        "machine",
        "--episode",
        "machine",
        "--time",
        "month",
        "--cost",
        "cost",
        "--json",
    )
    assert made.exit_code == 0, made.output
    assert json.loads(made.stdout)["kernel_names"] == list(PRESSES)
    model = drmdp.read("m.npz")
    assert model.kernel_names == PRESSES
    assert model.notes == tuple(json.loads(made.stdout)["notes"])


@pytest.mark.usefixtures("sketched")
def test_assumptions_reach_the_boss(run, tmp_path):
    drmdp.write(presses(), "m.drmdp")
    result = run(
        "solve",
        "m.drmdp",
        "--radius",
        0.1,
        "--report",
        "r.html",
        "--out",
        "s.npz",
        "--report-radii",
        0,
    )
    assert result.exit_code == 0, result.output
    assert NOTE in " ".join(result.stdout.split())
    assert NOTE in (tmp_path / "r.html").read_text()
    assert NOTE in drmdp.Solution.load("s.npz").notes


@pytest.mark.parametrize("command", ["solve", "inspect", "sweep", "horizon", "evaluate"])
def test_every_document_has_names_and_notes(run, command):
    drmdp.write(presses(), "m.npz")
    (extra := {"sweep": ["--radii", "2"], "horizon": ["--radius", 0.1, "--stages", 2]}).setdefault(
        command, ["--radius", 0.1]
    )
    if command == "evaluate":
        with open("p.json", "w") as stream:
            json.dump({"good": "run", "worn": "repair"}, stream)
        extra[command] = ["p.json", *extra[command]]
    result = run(command, "m.npz", *extra[command], "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["kernel_names"] == list(PRESSES)
    assert found["notes"][0] == NOTE
    assert ("Press-04 alone" in found["notes"][-1]) == (command in ("solve", "evaluate", "horizon"))


def test_inspect_and_simulate_call_kernels_by_name(run):
    drmdp.write(presses(), "m.npz")
    assert "worst is Press-04" in run("inspect", "m.npz", "--radius", 0.1).stdout
    assert (
        json.loads(run("inspect", "m.npz", "--radius", 0.1, "--json").stdout)["worst_kernel"]
        == "Press-04"
    )
    with open("p.json", "w") as stream:
        json.dump({"good": "run", "worn": "repair"}, stream)
    assert (
        "under kernel Press-04" in run("simulate", "m.npz", "p.json", "--kernel", "Press-04").stdout
    )
    result = run("simulate", "m.npz", "p.json", "--kernel", "3")
    assert result.exit_code == 2
    assert (
        "--kernel: expected mean, worst or the name of a kernel (Press-01, Press-02, Press-03, Press-04), got '3'"
        in (result.stderr)
    )


# ---------------------------------------------------------------------- rows that are nearly
# distributions


def test_a_rounded_table_is_refused_with_the_cure_and_accepted_with_it():
    table = np.array([[[0.333, 0.333, 0.333]], [[0.5, 0.5, 0.0]], [[0.167, 0.833, 0.002]]])
    with pytest.raises(
        drmdp.InputError,
        match=r"state 0, action 0 sums to 0.999\d*, not 1; normalize=True scales rows",
    ):
        Model(table, costs=[0, 1, 2], discount=0.9)
    model = Model(table, costs=[0, 1, 2], discount=0.9, normalize=True)
    np.testing.assert_allclose(model.kernels[0].sum(axis=-1), 1, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(
        model.kernels[0, 0, 0], np.full(3, 0.333) / np.full(3, 0.333).sum()
    )
    np.testing.assert_array_equal(model.kernels[0, 1, 0], table[1, 0])
    note = "2 rows renormalised; the largest deviation from 1 was 2.0e-03, of kernel 0, state 2, action 0, which summed to 1.002"
    assert model.notes == (note,)


def test_probabilities_that_were_float32_once_are_accepted():
    y = (
        np.random.default_rng(0)
        .dirichlet(np.ones(50), (3, 50, 2))
        .astype(np.float32)
        .astype(np.float64)
    )
    with pytest.raises(drmdp.InputError, match="normalize=True"):
        Model(y, costs=np.zeros(50), discount=0.9)
    model = Model(y, costs=np.zeros(50), discount=0.9, normalize=True)
    np.testing.assert_allclose(model.kernels, y, rtol=1e-6)
    assert len(model.notes) == 1


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize(
    ("size", "normalize", "passes"),
    [
        (-1.4e-17, False, True),
        (-1e-12, False, True),
        (-2e-12, False, False),
        (-1e-9, True, True),
        (-2e-9, True, False),
    ],
)
def test_rounding_below_zero_is_zero(form, size, normalize, passes):
    y = np.array([[1.0, size], [0.5, 0.5]])
    kernels = y.reshape(2, 1, 2) if form == "dense" else sparse.csr_array(y)
    if not passes:
        with pytest.raises(
            drmdp.InputError,
            match="must not be negative: kernel 0, state 0, action 0, next state 1",
        ):
            Model(kernels, costs=[0, 1], discount=0.9, normalize=normalize)
        return
    model = Model(kernels, costs=[0, 1], discount=0.9, normalize=normalize)
    np.testing.assert_array_equal(
        model.mean_kernel.reshape(2, 2)[0] if form == "dense" else model.mean_kernel.toarray()[0],
        [1, 0],
    )
    assert model.blocks.indices.size == 3  # nature may not move mass where nothing was seen
    assert model.notes == ()


def test_the_order_of_names_is_natural():
    """Numbers too long for an integer of Python's have a size, too; what differs in zeros only has
    a fixed order.
    """
    wanted = ["", "9" * 5000, "1" + "0" * 5000, "a", "a 02", "a 2", "a 2 b", "a 10"]
    assert sorted(np.random.default_rng(0).permutation(wanted).tolist(), key=natural) == wanted
    assert sorted([10, 2], key=natural) == [2, 10]


@pytest.mark.parametrize("total", [0.0, np.inf])
def test_rows_that_cannot_be_scaled_are_refused(total):
    y = (
        np.array([[[1e308, 1e308]], [[0.5, 0.5]]])
        if total
        else np.array([[[0.0, 0.0]], [[0.5, 0.5]]])
    )
    with pytest.raises(
        drmdp.InputError, match=f"state 0, action 0 sums to {total}, which cannot be scaled to 1"
    ):
        Model(y, costs=[0, 1], discount=0.9, normalize=True)


def test_counts_become_probabilities_on_request():
    model = Model(
        np.array([[[3.0, 1.0]], [[0.0, 5.0]]]), costs=[0, 1], discount=0.9, normalize=True
    )
    np.testing.assert_array_equal(model.kernels[0, :, 0], [[0.75, 0.25], [0, 1]])
    assert "state 1, action 0, which summed to 5" in model.notes[0]


def test_rows_of_unavailable_pairs_need_no_sum():
    y = np.array([[[0.3, 0.3], [0.0, 0.0]], [[0.5, 0.5], [0.5, 0.5]]])
    available = [[True, False], [True, True]]
    model = Model([y], costs=[0, 1], discount=0.9, available=np.array(available), normalize=True)
    np.testing.assert_array_equal(model.kernels[0, 0], [[0.5, 0.5], [0, 0]])


def test_a_discount_near_one_is_not_shown_as_one():
    y = np.ones((1, 1, 1))
    for discount, text in (
        (0.9, "0.9"),
        (0.9999999, "0.9999999"),
        (1 / 3, "0.333333"),
        (0.0, "0"),
        (0.99, "0.99"),
    ):
        assert (
            repr(Model(y, costs=[0], discount=discount))
            .splitlines()[0]
            .endswith(f"discount {text}")
        )
    assert "discount 1" not in repr(Model(y, costs=[0], discount=np.nextafter(1, 0)))


@pytest.mark.parametrize("kind", ["npz", "craam", "prism"])
def test_files_with_few_digits_are_put_right_on_request(run, kind):
    y = np.array([[[0.333, 0.333, 0.333]], [[0.5, 0.5, 0.0]], [[0.167, 0.833, 0.002]]])
    path = {"npz": "m.npz", "craam": "m.csv", "prism": "m.tra"}[kind]
    cells = [(s, t, y[s, 0, t]) for s in range(3) for t in range(3) if y[s, 0, t]]
    given = {} if kind == "npz" else {"discount": 0.9}
    if kind == "npz":
        np.savez(path, kernels=y, costs=[0.0, 1, 2], discount=0.9)
    elif kind == "craam":
        lines = [
            "idstatefrom,idaction,idstateto,probability,reward",
            *(f"{s},0,{t},{p},{-s}" for s, t, p in cells),
        ]
        write_lines(path, lines)
    else:
        write_lines(path, [f"3 3 {len(cells)}", *(f"{s} 0 {t} {p}" for s, t, p in cells)])
        write_lines("m.srew", ["3 3", *(f"{s} {-s}" for s in range(3))])
    with pytest.raises(
        drmdp.InputError, match=r"sums to 0\.999\d*, not 1; normalize=True scales rows to 1"
    ):
        drmdp.read(path, **given)
    model = drmdp.read(path, **given, normalize=True)
    np.testing.assert_array_equal(model.kernels[0], y / y.sum(axis=-1, keepdims=True))
    assert "which summed to 1.002" in model.notes[0]
    result = run("convert", path, "n.npz", "--normalize", *(["--discount", 0.9] if given else []))
    assert result.exit_code == 0, result.stderr
    assert drmdp.read("n.npz") == model
    assert drmdp.read("n.npz").notes == model.notes


def write_lines(path, lines):
    with open(path, "w") as stream:
        stream.write("\n".join(lines) + "\n")
