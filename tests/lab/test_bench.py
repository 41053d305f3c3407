"""`drmdp bench` runs, on models that take no time, and its exponents are exponents."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from drmdp.cli import main
from drmdp_lab.bench import growth


def test_the_exponent_of_a_power_is_found():
    sizes = np.array([10.0, 20.0, 40.0, 80.0])
    for power in (0.0, 1.0, 1.5):
        assert growth.slope(sizes, 3e-4 * sizes**power) == pytest.approx(power, abs=1e-12)


def test_the_table_of_exponents_is_printed(monkeypatch):
    monkeypatch.setattr(growth, "PAIRS", (("l2", 2),))
    monkeypatch.setattr(growth, "SIZES", {"N": (2, 3), "S": (4, 6)})
    monkeypatch.setattr(growth, "BASE", {"N": 2, "S": 4, "A": 2})
    monkeypatch.setattr(growth, "SPARSE", (20, 40))
    monkeypatch.setattr(growth, "warm", lambda model, ball, **_: 1e-3 * model.n_kernels * model.n_states)
    found = CliRunner().invoke(main, ["bench", "growth", "--json"])
    assert found.exit_code == 0
    rows = [json.loads(line) for line in found.stdout.splitlines()]
    assert [row["size"] for row in rows] == ["N", "S", "nnz, all", "nnz, observed"]
    assert [row["exponent"] for row in rows] == pytest.approx([1] * 4)
    shown = CliRunner().invoke(main, ["bench", "growth"])
    assert shown.exit_code == 0
    assert "exponents of the cost of a warm sweep" in shown.stdout
