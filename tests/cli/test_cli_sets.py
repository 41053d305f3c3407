"""Every set by its options: what it becomes in the library, and one line for every mistake."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import drmdp
from drmdp import instances
from drmdp.cli import main
from drmdp.cli.sets import SetOptions
from drmdp.sets.registry import MAKERS

OPTIONS = (
    "radius",
    "metric",
    "order",
    "support",
    "around",
    "rectangular",
    "level",
    "lower",
    "upper",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets")
    model = instances.perturb(instances.machine(6), 4)
    drmdp.write(model, folder / "machine.npz")
    rows = np.asarray(model.mean_kernel)
    counts = np.rint(20 * rows)
    counted = {
        "costs": model.costs,
        "discount": 0.8,
        "states": model.states,
        "actions": model.actions,
    }
    shares = counts / counts.sum(axis=2, keepdims=True)
    drmdp.write(drmdp.Model(shares, **counted, counts=counts), folder / "counted.npz")
    np.save(folder / "lower.npy", np.maximum(rows - 0.1, 0))
    np.save(folder / "upper.npy", np.minimum(rows + 0.1, 1) * (rows > 0))
    np.save(folder / "flat.npy", np.zeros((6, 2)))
    return folder


@pytest.fixture
def run(folder, monkeypatch):
    monkeypatch.chdir(folder)

    def run(line, code=0):
        result = CliRunner().invoke(main, line.split())
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
        assert result.exit_code == code, result.output + result.stderr
        return result

    return run


def asked(text, model, **more):
    """The set of options, as the command line sees them."""
    words = text.split()
    given = dict.fromkeys(OPTIONS) | {
        key[2:]: value for key, value in zip(words[::2], words[1::2], strict=True)
    }
    kind, nature = given.pop("set", "wasserstein"), given.pop("nature", "adversarial")
    numbers = {key: float(given[key]) for key in ("radius", "level") if given[key] is not None}
    return SetOptions(kind, nature, **{**given, **numbers, **more}).around(model)


def test_options_become_sets(folder, monkeypatch):
    monkeypatch.chdir(folder)
    model = drmdp.read("machine.npz")
    bounds = [np.load(f"{side}.npy") for side in ("lower", "upper")]
    for text, want in (
        ("--radius 0.3", drmdp.Wasserstein(0.3)),
        (
            "--radius 0.3 --metric L1 --order inf --rectangular SA",
            drmdp.Wasserstein(0.3, "l1", np.inf, rectangular="sa"),
        ),
        ("--set KL --radius 0.3", drmdp.Divergence(0.3)),
        (
            "--set burg --radius 0.3 --around kernels --support all",
            drmdp.Divergence(0.3, "burg", "kernels", "all"),
        ),
        (
            "--set chi2 --radius 0.3 --rectangular sa",
            drmdp.Divergence(0.3, "chi2", rectangular="sa"),
        ),
        ("--set reweight-tv --radius 0.3", drmdp.Reweighting(0.3, "tv")),
        (
            "--set reweight-cvar --level 0.3 --rectangular sa",
            drmdp.Reweighting(kind="cvar", level=0.3, rectangular="sa"),
        ),
        ("--set reweight-any", drmdp.Reweighting(kind="any")),
        ("--set intervals", drmdp.Intervals.of(model)),
        ("--set intervals --radius 0.1", drmdp.Intervals.of(model, 0.1)),
        ("--set intervals --lower lower.npy --upper upper.npy", drmdp.Intervals(*bounds)),
    ):
        assert asked(text, model) == want
    assert asked("--set kl --radius 1 --nature Cooperative", model).nature == "cooperative"
    for name in MAKERS:
        size = {"reweight-cvar": "--level 0.5", "reweight-any": "", "intervals": ""}.get(
            name, "--radius 0.1"
        )
        assert asked(f"--set {name} {size}", model).short


VERBS = (
    "solve machine.npz",
    "evaluate machine.npz policy.json",
    "horizon machine.npz --stages 3",
    "inspect machine.npz",
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("--set kl --radius 0.1", "radius 0.1, kl around mean, support observed, rectangular s"),
        ("--set reweight-cvar --level 0.5", "level 0.5, reweighting cvar, rectangular s"),
        ("--set reweight-any", "reweighting any, rectangular s"),
        ("--set intervals --margin 0.05", "margin 0.05, intervals"),
        ("--set intervals --lower lower.npy --upper upper.npy", "intervals"),
    ],
)
def test_every_verb_takes_every_set(run, folder, text, words):
    model = drmdp.read(folder / "machine.npz")
    (folder / "policy.json").write_text(
        json.dumps({str(s): str(model.actions[0]) for s in model.states})
    )
    found = run(f"{VERBS[0]} {text}").stdout
    assert " ".join(f"Set {words}".split()) in " ".join(found.split())
    for verb in VERBS:
        document = json.loads(run(f"{verb} {text} --json").stdout)
        assert document["status"] in ("solved", "finished", "precision_limit")
        assert run(f"{verb} {text}").stdout


@pytest.mark.parametrize(
    "text", ["--set kl", "--set reweight-kl", "--set intervals", "--set reweight-cvar"]
)
def test_a_sweep_goes_over_the_sizes(run, text):
    worst = [
        point["worst"]
        for point in json.loads(run(f"sweep machine.npz {text} --radii 0,0.1,0.5 --json").stdout)[
            "points"
        ]
    ]
    assert np.all(np.diff(worst) >= -1e-9) or (
        text.endswith("cvar") and np.all(np.diff(worst) <= 1e-9)
    )
    assert run(f"sweep machine.npz {text} --radii 3").stdout


def test_counts_say_how_large_the_set_is(run, folder):
    model = drmdp.read(folder / "counted.npz")
    for level in ("", " --level 0.5"):
        want = drmdp.solve(
            model, drmdp.Divergence.from_counts(model, float(level.split()[1]) if level else 0.95)
        )
        found = json.loads(run(f"solve counted.npz --set Counts{level} --json").stdout)
        assert found["value"] == want.value.tolist()
    assert "burg around mean, support state, rectangular sa" in " ".join(
        run("solve counted.npz --set counts").stdout.split()
    )
    best = json.loads(run("solve counted.npz --set counts --nature cooperative --json").stdout)[
        "value"
    ]
    assert np.all(np.array(best) < want.value)


@pytest.mark.usefixtures("sketched")
def test_a_report_of_radii_by_pair_has_no_curve(run, folder):
    run("solve counted.npz --set counts --report counted.html")
    page = (folder / "counted.html").read_text("utf-8")
    assert "--report-radii" not in page
    assert "Nothing was compared: this set has" in page


@pytest.mark.usefixtures("sketched")
def test_a_report_of_radii_from_counts_says_what_they_promise(run, folder):
    """On the first screen and among the settings, and from where to where those of what is played
    go: a pair that is not there has radius 0.
    """
    text = run("solve counted.npz --set counts --report counted.html").stdout
    said = "with probability 95 %, for each state and action by itself, the worst case is no better"
    assert f"radii from the counts: {said}" in " ".join(text.split())
    page = (folder / "counted.html").read_text("utf-8")
    lead, rest = page.split("<h2>The policy</h2>")
    planned = lead[lead.index("Plan with") : lead.index("What it rests on")]
    assert f"How sure: {said} than the truth, for later values that are fixed" in planned
    assert "of all of them together this was measured, not proved" in planned
    assert said in rest
    assert ", by state and action" in lead
    for private in (
        "promise",
        "one kernel",
        "that kernel",
        "mass moves",
        "burg",
        "rectangular",
        "start:",
    ):
        assert private not in lead.split('class="notes"')[0]
    assert "if the probabilities of the model are right" in lead
    assert "this set has a radius for each state and action." in rest
    assert "kernels among themselves" not in rest
    assert "state by state" not in page
    assert "within 0 to" not in lead
    assert "radius 0 to" not in lead


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("solve counted.npz --set counts", "the set has several radii, and a curve is over one"),
        ("solve counted.npz --set reweight-any", "the set (reweighting any) has no radius"),
        (
            "horizon counted.npz --stages 3 --set reweight-cvar --level 0.5",
            "a plan has no curve over levels",
        ),
    ],
)
def test_radii_of_a_report_are_refused_where_there_is_no_curve(options, why, run, folder):
    error = run(f"{options} --report refused.html --report-radii 5", code=2).stderr
    assert f"--report-radii: {why}; leave it out" in error
    assert not (folder / "refused.html").exists()


def test_a_note_on_what_nature_cannot_change_is_for_sets_in_which_it_is_so(run, folder):
    rows = [("ok", "run", "ok")] * 5 + [("ok", "run", "bad")] * 5 + [("ok", "fix", "ok")] * 6
    rows += [("bad", "fix", "ok"), ("bad", "fix", "bad")] * 5
    table = dict(zip(("state", "action", "next_state"), zip(*rows, strict=True), strict=True))
    pytest.importorskip("polars")
    costs = {(s, a): 1.0 for s in ("ok", "bad") for a in ("run", "fix")}
    more = {"costs": costs, "discount": 0.9, "unvisited": "unavailable"}
    drmdp.write(drmdp.estimate({k: list(v) for k, v in table.items()}, **more), folder / "fix.npz")
    led, cannot = "1 pair always led to the same state", "nature cannot change that"
    for options, narrow in (("--set counts", False), ("--set burg --radius 0.1", True)):
        text = " ".join(run(f"solve fix.npz {options}").stdout.split())
        assert led in text
        assert (cannot in text) == narrow


def test_a_nature_that_helps(run):
    worst, best = (
        json.loads(run(f"solve machine.npz --set kl --radius 0.1 --nature {nature} --json").stdout)[
            "value"
        ]
        for nature in ("adversarial", "cooperative")
    )
    assert np.all(np.array(best) < np.array(worst))
    assert (
        "best-case cost"
        in run("solve machine.npz --set kl --radius 0.1 --nature cooperative").stdout
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("solve machine.npz", "Missing option '--radius'. --set counts needs none,"),
        ("solve machine.npz --set reweight-kl", "Missing option '--radius'"),
        ("solve machine.npz --set reweight-cvar", "Missing option '--level'"),
        (
            "solve machine.npz --set reweight-cvar --level 2",
            "--level: expected a share from 0 to 1, got 2.0",
        ),
        (
            "solve machine.npz --set reweight-cvar --level 0.5 --radius 1",
            "--radius: the set reweight-cvar has none",
        ),
        ("solve counted.npz --set counts --radius 1", "--radius: the set counts has none"),
        (
            "solve counted.npz --set counts --level 1",
            "--level: expected a number between 0 and 1, got 1.0",
        ),
        ("solve machine.npz --set counts", "model.counts is None: drmdp.estimate keeps counts"),
        (
            "sweep counted.npz --set counts",
            "--set: counts says how large the set is; take burg to go through radii",
        ),
        (
            "solve counted.npz --set counts --dry-run",
            "--set: counts needs a model that is read whole; take --set intervals with --lower",
        ),
        (
            "solve machine.npz --set reweight-any --radius 1",
            "--radius: the set reweight-any has none",
        ),
        ("solve machine.npz --set kl --radius 1 --level 1", "--level: the set kl has none"),
        ("solve machine.npz --set kl --radius 1 --metric l1", "--metric: the set kl has none"),
        (
            "solve machine.npz --set reweight-kl --radius 1 --support all",
            "--support: the set reweight-kl has none",
        ),
        ("solve machine.npz --radius 1 --around mean", "--around: the set wasserstein has none"),
        (
            "solve machine.npz --set kl --radius 1 --around here",
            "Invalid value for '--around': 'here' is not one of 'mean', 'kernels'",
        ),
        (
            "solve machine.npz --radius 1 --nature kind",
            "Invalid value for '--nature': 'kind' is not one of 'adversarial', 'cooperative'",
        ),
        ("solve machine.npz --radius 1 --lower lower.npy", "--lower: the set wasserstein has none"),
        ("solve machine.npz --set intervals --lower lower.npy", "--lower: there is no --upper"),
        ("solve machine.npz --set intervals --upper upper.npy", "--upper: there is no --lower"),
        (
            "solve machine.npz --set intervals --lower lower.npy --upper upper.npy --radius 1",
            "--radius: bounds from files have no margin",
        ),
        (
            "solve machine.npz --set intervals --lower no.npy --upper upper.npy",
            "no.npy: No such file or directory",
        ),
        ("solve machine.npz --set intervals --lower flat.npy --upper flat.npy", "flat.npy: "),
        (
            "solve machine.npz --set intervals --lower upper.npy --upper lower.npy",
            "expected 0 ≤ lower ≤ upper ≤ 1",
        ),
        (
            "solve machine.npz --set jeffreys --radius 1",
            "Invalid value for '--set': 'jeffreys' is not one of 'wasserstein', 'kl', ",
        ),
        ("sweep machine.npz --set reweight-any", "reweighting any has no radius"),
        (
            "sweep machine.npz --set intervals --lower lower.npy --upper upper.npy",
            "intervals has no radius",
        ),
        ("sweep machine.npz --set burg --radii 3", "--top: burg is never unconstrained"),
    ],
)
def test_mistakes_are_said_in_one_line(run, line, message):
    result = run(line, code=2)
    assert message in " ".join(result.stderr.split())
