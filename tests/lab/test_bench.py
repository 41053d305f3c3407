"""`drmdp bench` runs, on models that take no time; rows are saved once, and held against earlier
ones as ratios inside the runs.
"""

import json
import math
import sys
import time
from dataclasses import dataclass

import numpy as np
import pytest
from click.testing import CliRunner

import drmdp
from drmdp.cli import main
from drmdp.sets.registry import ENTRIES
from drmdp_lab import bench
from drmdp_lab.bench import (
    clone,
    events,
    first_order,
    growth,
    radii,
    robust_mdps,
    saved,
    shares,
    starts,
    worst,
)


@pytest.mark.parametrize("arguments", [["bench", "solves"], ["reproduce", "--no-figures"]])
def test_without_the_extra_the_command_says_how_to_get_it(arguments, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "numba", None)
    for name in ("bench.sweeps", "paper.baseline", "paper.peers", "paper.measure", "paper.runner"):
        monkeypatch.delitem(sys.modules, f"drmdp_lab.{name}", raising=False)
    found = CliRunner().invoke(main, arguments)
    assert found.exit_code == 2
    assert "numba is not installed; in a clone of drmdp: pip install '.[study]'" in found.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_exponent_of_a_power_is_found():
    sizes = (10, 20, 40, 80)
    for power in (0.5, 1.0, 1.5):
        seconds = {str(n): [3e-4 * n**power] * 2 for n in sizes}
        row = growth.growth_row("(l2, 2)", "N", seconds, sizes)
        assert row.exponent == pytest.approx(power, abs=1e-12)
        assert row.half == pytest.approx(0, abs=1e-7)
        assert row.ms["10"] == pytest.approx(0.3 * 10**power)


def test_the_help_names_every_table_those_by_default_first():
    text = " ".join(CliRunner().invoke(main, ["bench", "--help"]).output.split())
    first, _, others = text.partition("all of them by default")
    for name, of in bench.TABLES.items():
        assert name in (others if of.on_demand else first), name


def test_the_table_of_exponents_is_printed(monkeypatch):
    monkeypatch.setattr(growth, "PAIRS", (("l2", 2),))
    monkeypatch.setattr(growth, "SIZES", {"N": (2, 3), "S": (4, 6)})
    monkeypatch.setattr(growth, "BASE", {"N": 2, "S": 4, "A": 2})
    monkeypatch.setattr(growth, "NEXT", (2, 4))
    monkeypatch.setattr(growth, "NEXT_STATES", 20)
    monkeypatch.setattr(growth, "SPARSE", (200, 400))

    def warm(model, ambiguity, *_):
        lists = ambiguity.ground
        if model.n_states == 20:
            return 1e-3 * model.blocks.indices.size
        size = lists.data.nnz + model.n_states if lists else model.n_states
        return 1e-3 * model.n_kernels * size  # lists begin with their state

    monkeypatch.setattr(growth, "warm", warm)
    monkeypatch.setattr(saved, "unit_seconds", lambda: 1e-4)
    found = CliRunner().invoke(main, ["bench", "growth", "--json"])
    assert found.exit_code == 0, found.output
    rows = [json.loads(line) for line in found.stdout.splitlines()]
    assert [row["size"] for row in rows] == [
        "N",
        "S",
        "K",
        "nnz, all",
        "nnz, observed",
        "nnz, lists of 9",
        "length of the lists",
    ]
    assert [row["exponent"] for row in rows] == pytest.approx([1] * 7)
    assert {"commit", "machine", "session", "load", "unit_ms", "took_seconds"} < set(rows[0])
    shown = CliRunner().invoke(main, ["bench", "growth"])
    assert shown.exit_code == 0
    assert "exponents of the cost of a warm sweep" in shown.stdout


# ---------------------------------------------------------------------- rows on disk


@dataclass(frozen=True)
class MadeRow:
    """A row of no measurement."""

    engine: str
    n_states: int
    ratio: float


@pytest.fixture
def tables(monkeypatch):
    """Two tables that take no time; their ratios are told by the list that is returned."""
    ratios = [1.0]
    monkeypatch.setattr(saved, "unit_seconds", lambda: 1e-4)
    for name in ("cluster", "scale"):
        of = bench.Table("", "", ("engine", "n_states"), ratios=("ratio",))
        monkeypatch.setitem(bench.TABLES, name, of)
    made = lambda name, *of: iter([MadeRow("mpi", 7, ratios[-1]), MadeRow("ray", 7, 1.0)])  # noqa: E731
    monkeypatch.setattr(saved, "table", made)
    return ratios


def run(*arguments):
    return CliRunner().invoke(main, ["bench", *map(str, arguments)])


def test_tables_are_saved_once_and_go_on(tables, tmp_path):
    path = tmp_path / "rows.jsonl"
    assert run("cluster", "--save", path).exit_code == 0
    first = path.read_text()
    assert [row["engine"] for row in saved.read(path)] == ["mpi", "ray"]
    assert run("cluster", "scale", "--save", path).exit_code == 0
    rows = saved.read(path)
    assert path.read_text().startswith(first)
    assert [row["table"] for row in rows] == ["cluster", "cluster", "scale", "scale"]
    assert len({(row["commit"], row["machine"]) for row in rows}) == 1


def test_a_file_holds_one_commit(tables, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"table": "cluster", **saved.here(), "commit": "other"}) + "\n")
    found = run("cluster", "--save", path)
    assert found.exit_code == 2
    assert "save to a new file" in found.output
    path.write_text('{"table": "none"}\n')
    assert "line 1: not a row of a table" in run("cluster", "--save", path).output
    assert "No such file" in run("--check", "--against", tmp_path / "nowhere").output


def test_what_fell_behind_is_named(tables, tmp_path):
    path = tmp_path / "rows.jsonl"
    run("cluster", "--save", path)
    same = run("cluster", "--check", "--against", path)
    assert same.exit_code == 0, same.output
    assert "no cost is more than 1.5 of what it was" in same.output
    tables.append(1.6)
    late = run("--check", "--against", path)
    assert late.exit_code == 4
    assert "cluster: mpi, 7: ratio is 1.6 of what it was" in late.output
    assert "ray, 7" not in late.output


def test_what_is_slow_once_is_measured_again(tables):
    then = [{"table": "cluster", "unit_ms": 1.0, "engine": "mpi", "n_states": 7, "ratio": 1.0}]
    rounds = [2.0, 1.1]
    measure = lambda: [{**then[0], "ratio": rounds.pop(0)}]  # noqa: E731
    assert saved.behind("cluster", measure, then) == []
    assert not rounds


def test_times_are_held_against_the_unit_of_their_run():
    row = {"table": "solves", "instance": "a", "set": "b", "discount": 0.8, "unit_ms": 0.1}
    then = [{**row, "ms": {"0.1": 1.0, "0.001": 4.0}, "sweeps": {"0.1": 2}}]
    now = [{**row, "unit_ms": 0.3, "ms": {"0.1": 3.0, "0.001": 24.0}, "sweeps": {"0.1": 3}}]
    found = {change.field: change.factor for change in saved.changes("solves", now, then)}
    assert found == pytest.approx({"ms 0.1": 1, "ms 0.001": 2, "sweeps 0.1": 1.5})
    seconds = dict.fromkeys(("import_seconds", "first_seconds", "second_seconds"), 0.2)
    start = {"table": "starts", "set": "a", "unit_ms": 0.1, **seconds}
    assert dict(saved.costs(start, bench.TABLES["starts"])) == pytest.approx(
        dict.fromkeys(seconds, 2000)
    )


# ---------------------------------------------------------------------- the tables


def test_parts_of_a_run_are_timed_and_put_back():
    class Work:
        def outer(self):
            self.inner()

        def inner(self):
            begin = time.process_time()
            while time.process_time() < begin + 0.002:
                pass

    before = Work.outer, Work.inner
    with shares.clocked({"outer": ((Work, "outer"),), "inner": ((Work, "inner"),)}) as spent:
        Work().outer()
    assert spent["outer"] >= 0.002
    assert spent["inner"] == 0
    assert (Work.outer, Work.inner) == before


def test_the_share_of_the_certificate_is_measured(monkeypatch):
    small = drmdp.instances.perturb(drmdp.instances.garnet(4, 2), 2)
    monkeypatch.setattr(shares, "models", lambda: [("small", small)])
    rows = list(shares.certificate())
    assert len({row.set for row in rows}) == len(rows) == 6
    assert all(0 < row.share < 1 for row in rows)


def test_the_parts_of_the_preset_are_all_of_it(monkeypatch):
    monkeypatch.setattr(shares, "REPEATS", 1)
    rows = [row for row in shares.preset() if row.radius == 0.3]
    assert [row.part for row in rows] == ["all", *shares.PRESET, "rest"]
    assert sum(row.share for row in rows[1:]) == pytest.approx(1)
    assert min(row.share for row in rows) >= 0


def test_worst_cases_are_quantiles(monkeypatch):
    monkeypatch.setattr(worst, "SIZES", (4, 3, 2))
    rows = list(worst.worst(4))
    assert len(rows) == len(worst.KINDS) * len(worst.sets())
    for row in rows:
        assert row.warm_50 <= row.warm_90 <= row.warm_99 <= row.warm_100
        assert row.cold_50 <= row.cold_100
    rng = np.random.default_rng(0)
    model = drmdp.instances.perturb(drmdp.instances.garnet(4, 3), 2)
    tied, _ = worst.tied(model, np.zeros(4), rng)
    assert (tied.costs == tied.costs[:, :1]).all()
    assert (tied.kernels == tied.kernels[:, :, :1]).all()
    near, _ = worst.near(model, np.zeros(4), rng)
    assert 0 < np.ptp(near.costs, axis=1).max() <= 1e-4
    assert np.unique(worst.plateaus(model, np.zeros(40), rng)[1]).size <= 3


def test_a_path_is_measured():
    rows = list(radii.radii((8, 12), 5))
    assert [(row.states, row.radii, row.solved) for row in rows] == [(8, 5, 5), (12, 5, 5)] * 2
    assert all(row.radii_a_second == pytest.approx(5 / row.seconds) for row in rows)


def test_a_year_of_logs_is_measured():
    rows = list(radii.year(12_000))
    assert [row.stage.split()[0] for row in rows] == ["estimate", "cross-validate", "solve"]
    assert {(row.rows, row.states, row.kernels) for row in rows} == {(12_000, 20, 12)}


def test_variants_of_the_first_order_method_are_measured(monkeypatch):
    monkeypatch.setattr(first_order, "LIMIT", 60)
    monkeypatch.setattr(first_order, "CASES", (("garnet", 0.3),))
    monkeypatch.setattr(first_order, "DOMAINS", ("forest",))
    monkeypatch.setattr(first_order, "PAIRS", (("l1", 1), ("linf", math.inf)))
    rows = list(first_order.variants(4, (2, 2)))
    assert len(rows) == len(first_order.PARTS) + 2 * len(first_order.ENTROPY)
    assert all(row.iterations is not None for row in rows if row.variant == "preset")
    found = list(first_order.trials(5, 12))
    assert {row.variant for row in found} == {"paper", "preset"}
    assert all(row.first is None or row.first >= 1 for row in found)


def test_two_threads_are_held_against_one():
    rows = list(growth.threads((300,), repeats=1))
    assert [row.what for row in rows] == ["cold sweep", "solve"]
    assert all(row.two_over_one == pytest.approx(row.two / row.one) for row in rows)


def test_the_way_from_a_clone_is_cut_into_stages(monkeypatch):
    stages = {"clone": (sys.executable, "-c", "pass"), "run it again": ("{python}", "-c", "pass")}
    monkeypatch.setattr(clone, "STAGES", stages)
    *rows, total = clone.clone("nowhere")
    assert [row.stage for row in rows] == list(stages)
    assert total.seconds == rows[0].seconds
    monkeypatch.setattr(clone, "STAGES", {"clone": (sys.executable, "-c", "raise SystemExit(3)")})
    with pytest.raises(drmdp.InputError, match="exit code 3"):
        list(clone.clone("nowhere"))


def test_first_solutions_are_measured_and_need_no_numba():
    (row,) = starts.starts(["drmdp.Wasserstein(.3, rectangular='sa')"], repeats=1)
    assert row.numba == "no"
    assert min(row.import_seconds, row.first_seconds, row.second_seconds) > 0


def test_every_set_has_a_first_solution():
    rng = np.random.default_rng(0)
    model = drmdp.Model(
        rng.dirichlet(np.ones(10), (2, 10, 2)), costs=rng.random((10, 2)), discount=0.9
    )
    keys = {
        eval(ambiguity, {"math": math, "model": model, "drmdp": drmdp}).key
        for ambiguity in starts.SETS
    }
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
    for name, (kernel, rewards) in {
        "chain": robust_mdps.chain(4),
        "swim": robust_mdps.riverswim(3),
    }.items():
        np.savez(
            folder / name,
            kernel=kernel,
            rewards=rewards,
            initial=np.eye(len(kernel))[0],
            discount=0.9,
        )
    (folder / "published_seconds.json").write_text(
        json.dumps({"chain|mild|kl": {"fast": 3.5}, "swim|mild|l2": {}})
    )


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
    assert (
        "half.npz: expected the arrays kernel, rewards, initial, discount, got kernel"
        in message("robust-mdps", str(tmp_path))
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
