"""`drmdp sensitivity`: the figures of the library, as text, JSON and tables."""

import json

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import drmdp
from drmdp.cli import main

STATES = ["new", "worn", "broken"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("sensitivity")
    rng = np.random.default_rng(0)
    names = {
        "states": STATES,
        "actions": ["run", "repair"],
        "kernel_names": ["north", "south", "west", "east"],
    }
    kernels = rng.dirichlet(np.full(3, 0.4), (4, 3, 2))
    model = drmdp.Model(
        kernels, rewards=rng.random((3, 2)), discount=0.9, notes=["made up"], **names
    )
    drmdp.write(model, path / "model.npz")
    drmdp.solve(model, drmdp.Wasserstein(0.3)).save(path / "robust.npz")
    (path / "today.csv").write_text("state,action\nnew,run\nworn,run\nbroken,repair\n")
    drmdp.finite_horizon(model, drmdp.Wasserstein(0.3), 3).save(path / "plan.npz")
    return path


@pytest.fixture
def run(folder, monkeypatch):
    monkeypatch.chdir(folder)

    def run(*args, code=0):
        result = CliRunner().invoke(main, ["sensitivity", *map(str, args)])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
        assert result.exit_code == code, result.stderr
        return result.stdout if code == 0 else result.stderr

    return run


def found(**more):
    model = drmdp.read("model.npz")
    policies = {
        "robust": drmdp.Solution.load("robust.npz"),
        "today": dict(zip(STATES, ["run", "run", "repair"], strict=True)),
    }
    return drmdp.sensitivity(model, policies, **more)


def test_json_is_what_the_library_says(run):
    document, result = json.loads(run("model.npz", "robust.npz", "today.csv", "--json")), found()
    for name in (
        "values",
        "best",
        "regret",
        "share",
        "reached",
        "acceptability",
        "evpi",
        "evpi_given",
        "mean",
    ):
        np.testing.assert_array_equal(document[name], getattr(result, name))
    assert document["names"] == ["robust", "today"]
    assert document["worst_kernel"] == [result.kernel_names[i] for i in result.worst]
    assert (document["states"], document["notes"], document["criterion"]) == (
        STATES,
        ["made up"],
        "discounted",
    )
    assert document["fingerprint"] == drmdp.read("model.npz").fingerprint
    np.testing.assert_array_equal(
        np.transpose([document[name] for name in ("q05", "median", "q95")]), result.quantiles()
    )


def test_text_says_what_is_worth_saying(run):
    text = " ".join(run("model.npz", "robust.npz", "today.csv").split())
    for name, fact in found().facts().items():
        assert f"{name} {fact}" in text
    assert "Values reward, mean over the start distribution" in text
    assert "Notes made up" in text
    text = run("model.npz", "--initial", "worn", "--criterion", "average")
    assert "reward a step in the long run" in text
    assert "nominal" in text
    assert "reward over 3 stages" in run("model.npz", "plan.npz", "today.csv")


def test_tables(run):
    result = found()
    for table in ("kernels", "policies", "actions"):
        run("model.npz", "robust.npz", "today.csv", "--out", f"{table}.parquet", "--table", table)
        assert pl.read_parquet(f"{table}.parquet").equals(result.to_frame(table))
    run("model.npz", "robust.npz", "today.csv", "--out", "t.csv", "--decimal", ",")
    assert (
        pl.read_csv("t.csv", separator=";", decimal_comma=True).columns == result.to_frame().columns
    )
    run("model.npz", "--out", "t.xlsx")
    run("model.npz", "--out", "t.json")
    with open("t.json") as stream:
        assert json.load(stream)["names"] == ["nominal"]


def test_policies_of_one_name_are_called_by_their_paths(run, folder):
    (folder / "b").mkdir(exist_ok=True)
    (folder / "b" / "today.csv").write_text((folder / "today.csv").read_text())
    assert json.loads(run("model.npz", "today.csv", "b/today.csv", "--json"))["names"] == [
        "today.csv",
        "b/today.csv",
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["model.npz", "--out", "t.npz"], "tables are .csv, .xlsx or .parquet, documents .json"),
        (
            ["model.npz", "today.csv", "--out", "today.csv"],
            "would overwrite today.csv (POLICY today.csv, which is read)",
        ),
        (
            ["model.npz", "plan.npz", "--criterion", "average"],
            "--criterion: finitely many stages have none",
        ),
        (["model.npz", "--criterion", "total"], "'total' needs the discount 1"),
        (["model.npz", "--decimal", ","], "goes with --out and a .csv file"),
        (["none.npz"], "none.npz"),
    ],
)
def test_mistakes_are_one_line(run, given, message):
    text = run(*given, code=2)
    assert message in text
    assert text.count("\n") == 1


def test_one_kernel_is_compared_with_nothing(run, folder):
    model = drmdp.read(folder / "model.npz")
    one = drmdp.Model(
        model.kernels[:1], rewards=model.costs, discount=0.9, states=STATES, actions=model.actions
    )
    drmdp.write(one, folder / "one.npz")
    text = run("one.npz", code=2)
    assert "the model has one kernel: there is nothing to compare, and EVPI says nothing" in text
    assert "estimate with --by posterior --kernels 200" in text
    text = " ".join(run("one.npz", "today.csv").split())
    assert "the model has one kernel: there is nothing to compare, and EVPI says nothing" in text
    assert any("one kernel" in note for note in drmdp.sensitivity(one).notes)
    assert not any("one kernel" in note for note in found().notes)


def test_what_few_kernels_and_few_policies_say_is_explained(run):
    """No four kernels have 90 % of them; and choosing among a few policies gains from more."""
    text = " ".join(run("model.npz", "robust.npz", "today.csv").split())
    assert "under all 4 kernels, worst" in text
    assert "90 %" not in text
    more = "; that is more, for without knowing they do worse than others would"
    judged = drmdp.sensitivity(drmdp.read("model.npz"), {"run": [0] * 3, "repair": [1] * 3})
    assert judged.evpi_given > judged.evpi
    assert judged.facts()["Of these"].endswith(more)
    judged = drmdp.sensitivity(drmdp.read("model.npz"), {"one": [0, 0, 1], "two": [1, 1, 0]})
    assert judged.evpi_given <= judged.evpi
    assert more not in judged.facts()["Of these"]
