"""`drmdp bench` runs, on models that take no time, and its exponents are exponents."""

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner

import drmdp
from drmdp.cli import main
from drmdp.sets.registry import ENTRIES
from drmdp_lab import bench
from drmdp_lab.bench import auto, events, growth, robust_mdps, starts
from drmdp_lab.paper.specification import SCALES, Block


def test_the_exponent_of_a_power_is_found():
    sizes = np.array([10.0, 20.0, 40.0, 80.0])
    for power in (0.0, 1.0, 1.5):
        assert growth.slope(sizes, 3e-4 * sizes**power) == pytest.approx(power, abs=1e-12)


def test_the_help_names_every_table_those_by_default_first():
    text = " ".join(CliRunner().invoke(main, ["bench", "--help"]).output.split())
    first, _, others = text.partition("all of them by default")
    for name in bench.TABLES:
        assert name in (others if name in bench.ON_DEMAND else first), name


def test_the_table_of_exponents_is_printed(monkeypatch):
    monkeypatch.setattr(growth, "PAIRS", (("l2", 2),))
    monkeypatch.setattr(growth, "SIZES", {"N": (2, 3), "S": (4, 6)})
    monkeypatch.setattr(growth, "BASE", {"N": 2, "S": 4, "A": 2})
    monkeypatch.setattr(growth, "SPARSE", (200, 400))

    def warm(model, ball, **_):
        size = ball.ground.data.nnz + model.n_states if ball.ground else model.n_states  # lists begin with their state
        return 1e-3 * model.n_kernels * size

    monkeypatch.setattr(growth, "warm", warm)
    found = CliRunner().invoke(main, ["bench", "growth", "--json"])
    assert found.exit_code == 0
    rows = [json.loads(line) for line in found.stdout.splitlines()]
    assert [row["size"] for row in rows] == [
        "N",
        "S",
        "nnz, all",
        "nnz, observed",
        "nnz, lists of 9",
        "length of the lists",
    ]
    assert [row["exponent"] for row in rows] == pytest.approx([1] * 6)
    shown = CliRunner().invoke(main, ["bench", "growth"])
    assert shown.exit_code == 0
    assert "exponents of the cost of a warm sweep" in shown.stdout


def test_the_default_method_is_measured_where_value_iteration_is(monkeypatch):
    assert len(auto.runs("standard")) == 450
    block = Block("tiny", ((4, 2, 2),), ("exact", "exact-vi"), seeds=2, radii=(0.1, 0.5))
    monkeypatch.setitem(SCALES, "standard", (block,))
    found = CliRunner().invoke(main, ["bench", "auto", "--json"])
    assert found.exit_code == 0, found.output
    rows = [json.loads(line) for line in found.stdout.splitlines()]
    assert [(row["instance"], row["seeds"]) for row in rows[:2]] == [("forest", 2), ("forest", 2)]
    assert len(rows) == 8
    assert all(row["worst_ratio"] == pytest.approx(row["auto_ms"] / row["vi_ms"]) for row in rows)


def test_first_solutions_are_measured_and_need_no_numba():
    (row,) = starts.starts(["drmdp.Wasserstein(.3, rectangular='sa')"], repeats=1)
    assert row.numba == "no"
    assert min(row.import_seconds, row.first_seconds, row.second_seconds) > 0


def test_every_set_has_a_first_solution():
    rng = np.random.default_rng(0)
    model = drmdp.Model(rng.dirichlet(np.ones(10), (2, 10, 2)), costs=rng.random((10, 2)), discount=0.9)
    keys = {eval(ball, {"math": math, "model": model, "drmdp": drmdp}).key for ball in starts.SETS}
    assert keys == set(ENTRIES)


def test_models_of_events_are_measured(monkeypatch):
    rows = list(events.events(((4, 3, 4, 2),)))
    assert [(row.n_states, row.actions, row.events, row.laws) for row in rows] == [(64, 3, 4, 2)]
    assert rows[0].ratio == pytest.approx(rows[0].table / rows[0].stored)
    found = CliRunner().invoke(main, ["bench", "events-large", "--states", "216", "--json"])
    assert found.exit_code == 0, found.output
    large = [json.loads(line) for line in found.stdout.splitlines()]
    assert [(row["n_states"], row["laws"], row["status"]) for row in large] == [
        (216, 10, "solved"),
        (216, 100, "solved"),
    ]
    assert max(row["gap"] for row in large) <= events.GAP


def small_suite(folder):
    """Two instances and the seconds of one problem."""
    for name, (kernel, rewards) in {"chain": robust_mdps.chain(4), "swim": robust_mdps.riverswim(3)}.items():
        np.savez(folder / name, kernel=kernel, rewards=rewards, initial=np.eye(len(kernel))[0], discount=0.9)
    (folder / "published_seconds.json").write_text(json.dumps({"chain|mild|kl": {"fast": 3.5}, "swim|mild|l2": {}}))


def test_the_public_suite_is_read_from_a_folder_and_certified(tmp_path):
    small_suite(tmp_path)
    found = CliRunner().invoke(main, ["bench", "robust-mdps", str(tmp_path), "--json"])
    assert found.exit_code == 0, found.output
    *rows, total = [json.loads(line) for line in found.stdout.splitlines()]
    assert len(rows) == 2 * 3 * 4
    assert max(row["gap"] for row in rows) == total["gap"] <= 1e-4
    assert (total["solved"], total["asked"]) == (24, 24)
    assert total["seconds"] == pytest.approx(sum(row["seconds"] for row in rows))
    theirs = {(row["instance"], row["level"], row["set"]): row["published"] for row in rows}
    assert theirs.pop(("chain", "mild", "kl")) == total["published"] == 3.5
    assert not any(theirs.values())
    shown = CliRunner().invoke(main, ["bench", "robust-mdps", str(tmp_path)])
    assert "arXiv:2602.05591" in shown.stdout
    assert "–" in shown.stdout


def test_what_is_no_suite_is_refused(tmp_path):
    def message(*arguments):
        found = CliRunner().invoke(main, ["bench", *arguments])
        assert found.exit_code == 2, found.output
        return found.output

    assert "no instances" in message("robust-mdps", str(tmp_path))
    assert "nowhere is no directory" in message("robust-mdps", "nowhere")
    assert "unknown table 'nowhere'" in message("growth", "nowhere")
    np.savez(tmp_path / "half.npz", kernel=np.ones((1, 1, 1)))
    assert "half.npz: expected the arrays kernel, rewards, initial, discount, got kernel" in message(
        "robust-mdps", str(tmp_path)
    )
    small_suite(tmp_path)
    (tmp_path / "half.npz").unlink()
    (tmp_path / "published_seconds.json").write_text('{"chain|mild|l1": {"fast": "quick"}}')
    assert "chain|mild|l1: expected seconds, got 'quick'" in message("robust-mdps", str(tmp_path))


def test_the_instances_whose_rules_are_public():
    made = dict(robust_mdps.own_models())
    assert {"chain10", "forest50", "riverswim6", "taxi"} < set(made)
    for model in made.values():
        assert model.n_kernels == 1
        assert not model.terminal.any()
        assert model.costs.shape == (model.n_states, model.n_actions, model.n_states)
    assert -made["taxi"].costs.min() == 20
    assert made["taxi"].n_states == 500
