"""Figures, tables and verdicts are functions of the rows: rows made up here, with known exponents and ratios."""

import json
from itertools import pairwise
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from click.testing import CliRunner

from drmdp.cli import main
from drmdp.study import claims, errata, figures, select, tables
from drmdp.study.specification import Block, expand

matplotlib.use("Agg")


def made(block, seconds, **more):
    """Rows of a block with given seconds: a function of the run."""
    out = []
    for run in block.runs():
        settings = {name: getattr(run, name) for name in run.__dataclass_fields__}
        settings["order"] = "inf" if settings["order"] == np.inf else settings["order"]
        own = {"key": run.key, **settings, "status": "solved", "gap": 0.01, "duality_gap": 0.01, "kernel_passes": 5.0}
        time = seconds(run)
        out.append({**own, "cpu_seconds": time, "seconds": time, "n_iters": 4, **more})
    return out


PAIRED = ("exact", "exact-vi", "fast", "algorithm-1", "conic-vi", "baseline-2023")
SIZES = tuple((30, 30, n) for n in (5, 10, 20, 40))


def growing(method, factor, power, **more):
    block = Block("kernels", SIZES, (method,), seeds=3)
    return made(block, lambda run: factor * run.n_kernels**power * (1 + 0.01 * run.seed), **more)


# ---------------------------------------------------------------------- exponents


def test_an_exact_power_is_found():
    found = select.fit([1, 2, 4, 8], [3, 3 * 2**1.5, 3 * 4**1.5, 3 * 8**1.5])
    assert found.value == pytest.approx(1.5)
    assert found.half == pytest.approx(0, abs=1e-9)


def test_the_band_covers_the_truth_about_as_often_as_it_says():
    rng, x = np.random.default_rng(0), np.tile([5.0, 10, 20, 40, 70], 5)
    hits = 0
    for _ in range(400):
        found = select.fit(x, x**0.9 * np.exp(rng.normal(0, 0.3, x.size)))
        hits += abs(found.value - 0.9) <= found.half
    assert 365 <= hits <= 395  # 380 expected, standard deviation 4.4


def test_runs_cut_off_do_not_enter_a_slope_and_extrapolated_ones_are_marked():
    rows = growing("algorithm-1", 1.0, 1.0)
    cut = [{**row, "status": "time_limit", "cpu_seconds": 30.0} for row in rows if row["n_kernels"] == 40]
    kept = [row for row in rows if row["n_kernels"] < 40]
    assert select.slope(kept + cut, "n_kernels").value == pytest.approx(1.0)
    assert not select.slope(kept, "n_kernels").extrapolated
    guessed = [{**row, "status": "extrapolated"} for row in rows]
    assert str(select.slope(guessed, "n_kernels")).endswith("*")
    assert select.slope(kept[:1], "n_kernels") is None


def test_points_say_how_they_came_about():
    rows = growing("algorithm-1", 1.0, 1.0)
    rows[0]["status"] = "time_limit"
    found = select.points([row for row in rows if row["family"] == rows[0]["family"]], "n_kernels")
    assert [point.kind for point in found] == ["cut off", "measured", "measured", "measured"]
    assert found[1].n == 3
    assert found[1].low < found[1].middle < found[1].high


def test_ratios_compare_the_same_instance_only():
    rows = growing("exact", 1.0, 1.0) + growing("fast", 3.0, 1.0)
    assert select.ratios(rows, "fast") == pytest.approx([3.0] * 36)
    moved = [{**row, "radius": 9.0} for row in rows if row["method"] == "exact"]
    assert select.ratios(moved + growing("fast", 3.0, 1.0), "fast") == []


# ---------------------------------------------------------------------- verdicts


def judged(rows, text):
    (found,) = [row for row in claims.judge(rows) if text in row[1]]
    return found[2], found[3]


@pytest.mark.parametrize(("power", "verdict"), [(1.0, "holds"), (0.8, "holds"), (1.6, "does not hold")])
def test_linear_growth_is_judged_by_the_rows(power, verdict):
    measured, found = judged(growing("algorithm-1", 1.0, power), "grows linearly with N")
    assert found.startswith(verdict)
    assert f"{power:.2f}" in measured


@pytest.mark.parametrize(("factor", "verdict"), [(5.0, "holds"), (0.5, "does not hold")])
def test_who_is_ahead_is_judged_by_the_rows(factor, verdict):
    rows = growing("algorithm-1", 1.0, 1.0) + growing("conic-vi", factor, 1.0)
    measured, found = judged(rows, "significantly more scalable")
    assert found == verdict
    assert f"garnet {factor:.2g}" in measured


def test_one_domain_behind_makes_it_partial():
    rows = growing("algorithm-1", 1.0, 1.0) + growing("conic-vi", 2.0, 1.0)
    for row in rows:
        if row["method"] == "conic-vi" and row["family"] == "forest":
            row["cpu_seconds"] /= 10
    assert judged(rows, "significantly more scalable")[1] == "holds in part (2 of 3)"


@pytest.mark.parametrize(("loss", "verdict"), [(0.5, "does not hold"), (0.05, "no guarantee")])
def test_the_printed_stopping_rule_is_judged_by_its_loss(loss, verdict):
    block = Block(
        "rules", ((10, 10, 5),), ("exact-vi",), rules=("paper", "puterman", "certified"), tol=0.1, task="stop"
    )
    rows = made(block, lambda run: 1.0, residual_bound=1.0)
    rows = [{**row, "loss": loss if row["rule"] == "paper" else 0.0} for row in rows]
    measured, found = judged(rows, "2λε/(1−λ)")
    assert found.startswith(verdict)
    assert f"loses {loss / 0.1:.3g} ε" in measured
    assert any(f"{loss / 0.1:.2g} ε" in row[3] for row in errata.judge(rows))


def test_without_rows_nothing_is_claimed():
    verdicts = {row[3] for row in claims.judge([])}
    assert verdicts == {"not measured", "proved; the tests check it"}
    assert all(row[3] for row in errata.judge([]))


# ---------------------------------------------------------------------- tables


def test_ratio_table():
    rows = growing("exact", 1.0, 1.0) + growing("algorithm-1", 4.0, 1.0)
    body = tables.ratio_table(rows)
    assert [row[:2] for row in body] == [["same certificate", "Algorithm 1"], ["printed rules", "Algorithm 1"]]
    assert all(cell == "4 (4 – 4)" for cell in body[0][2:])
    rows += growing("conic-vi", 8.0, 1.0, status="extrapolated")
    assert tables.ratio_table(rows)[1][2] == "8 (8 – 8)*"
    rows[-1]["status"] = "time_limit"
    assert tables.ratio_table(rows)[1][2].endswith("*†")
    assert tables.TABLES["ratios"]([]) == ""


def test_where_the_exact_engine_is_behind_is_said():
    rows = growing("exact", 1.0, 1.0) + growing("exact-vi", 0.5, 1.0) + growing("fast", 2.0, 1.0)
    text = tables.TABLES["behind"](rows)
    assert "VI, exact updates | kernels | Garnet | 12 of 12 | 2×" in text
    assert "preset" not in text
    assert "No method" in tables.TABLES["behind"](growing("exact", 1.0, 1.0))


def test_from_which_size_algorithm_1_is_ahead():
    rows = growing("algorithm-1", 1.0, 1.0) + growing("conic-vi", 0.01, 3.0)
    text = tables.TABLES["crossover"](rows)
    assert "Garnet | same certificate | N | N = 20" in text  # .01 · 10² = 1, not ahead
    assert tables.TABLES["crossover"](growing("conic-vi", 0.01, 3.0)) == ""


@pytest.mark.parametrize(
    ("value", "text"), [(0.8181, "0.818"), (54.0, "54"), (1234.0, "1,230"), (4.03e4, "40,300"), (2e9, "2e+09")]
)
def test_numbers_are_short(value, text):
    assert select.short(value) == text


def test_markdown_has_one_cell_a_column():
    text = tables.markdown(("a", "b"), [[1, "x | y"], [2, "z"]])
    assert [line.count("|") for line in text.splitlines()] == [3, 3, 3, 3]


# ---------------------------------------------------------------------- figures


def some_rows():
    rows = growing("exact", 1e-3, 1.0) + growing("algorithm-1", 1e-2, 1.0)
    rows += growing("conic-vi", 1.0, 1.0, status="extrapolated")
    for row in rows:
        if row["method"] == "algorithm-1" and row["n_kernels"] == 40:
            row["status"] = "time_limit"
    return rows


def test_figures_depend_on_the_rows_alone(tmp_path):
    rows = [row for row in some_rows() if (row["seed"] == 0 and row["radius"] > 0.5) or row["n_kernels"] < 20]
    assert figures.draw(rows, tmp_path / "a") == ["figure-1-kernels", "figure-1-other-radii"]
    figures.draw(rows[::-1], tmp_path / "b")
    first, second = ((tmp_path / name / "figure-1-kernels.svg").read_bytes() for name in "ab")
    assert first == second
    text = "".join(ElementTree.fromstring(first).itertext())
    for label in (
        "CPU seconds, one thread",
        "kernels N",
        "extrapolated",
        "cut off at the time limit",
        "printed stopping rules",
    ):
        assert label in text
    assert (tmp_path / "a" / "figure-1-kernels.png").stat().st_size > 10_000


def test_how_a_point_came_about_is_seen():
    from drmdp.plot.style import styled

    with styled() as plt:
        figure, axes = plt.subplots()
        rows = [row for row in some_rows() if row["family"] == "garnet"]
        figures.methods(axes, rows, "n_kernels", ("exact", "algorithm-1", "conic-vi"))
        faces = {name: [] for name in ("exact", "algorithm-1", "conic-vi")}
        for own in axes.lines:
            for name in faces:
                if own.get_color() == figures.STYLE[name][0] and own.get_linestyle() == "None":
                    faces[name].append(own.get_markerfacecolor() == "white")
        arrows = len(axes.texts)
        plt.close(figure)
    assert faces == {"exact": [False] * 4, "algorithm-1": [False] * 3 + [True], "conic-vi": [True] * 4}
    assert arrows == 1


def test_methods_of_one_picture_look_different():
    for names in (
        figures.COMPARED,
        ("exact", "quantecon", "mdpsolver"),
        ("exact", "conic-vi", "cvxpy-clarabel", "cvxpy-scs"),
        PAIRED,
    ):
        looks = [figures.STYLE[name] for name in names]
        assert len({look[0] for look in looks}) == len({look[1] for look in looks}) == len(names)


# ---------------------------------------------------------------------- the command


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some_rows()))
    return tmp_path


def call(*args, code=0):
    result = CliRunner().invoke(main, ["reproduce", *map(str, args)])
    assert result.exit_code == code, result.output
    return result


def test_draw_again_from_the_rows(folder):
    result = call("--figures-only", folder)
    assert "108 rows" in result.stdout
    assert "exact engine" in result.stdout
    assert (folder / "figures" / "figure-1-kernels.svg").exists()
    assert "Algorithm 1" in (folder / "tables" / "ratios.md").read_text()
    document = json.loads(call("--figures-only", folder, "--no-figures", "--json").stdout)
    assert document["added"] == 0
    assert document["rows"] == 108


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--figures-only", "nowhere"), "nowhere"), (("--only", "luck"), "luck"), (("--spec", "none.json"), "none.json"),
        (("--scale", "huge"), "huge"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line(tmp_path, monkeypatch, args, message):
    monkeypatch.chdir(tmp_path)
    result = call(*args, code=2)
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_runs_of_one_instance_come_together():
    runs = expand((Block("kernels", SIZES, ("exact", "fast"), seeds=2),))
    places = [run.instance for run in runs]
    assert sum(a != b for a, b in pairwise(places)) == len(set(places)) - 1
