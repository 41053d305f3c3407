"""Random faults in logs: what is accepted without a word is what a plain loop over the file counts.

The loop knows one reading of a log only. Cells are as written, months are ISO dates that follow
each other, labels that are equal are equal. A log that needs more must be refused, or warned of.
"""

import csv
import itertools
import warnings
from collections import Counter

import numpy as np
import pytest
from test_dirty_logs import COLUMNS, HEADER, presses, text

from drmdp import InputError, check_log, estimate

CELLS = {
    "Machine": ["Press-2", "press-1", "Press-1 ", "", "Press-01"],
    "Month": [
        "2020-13-01",
        "2020-02-30",
        "",
        "2020-05",
        "2020-05-17",
        "01.05.2020",
        "x",
        "2020-05-01 ",
        "2021-07-01",
    ],
    "Condition": ["fair", "poor", "Poor", "fiar", " good", "good ", "", "7", "no"],
    "Action": ["run", "repair", "Run", "runn", "", " run", "stop"],
    "Cost": ["1", "2.5", "-3", "$1", "1,5", "", "n/a", "inf", " 4", "1e2", "NaN", "0x1"],
}


def spoiled(rng):
    """A log with one to three faults, as rows."""
    rows = presses(3, 12, seed=int(rng.integers(4)))
    for _ in range(rng.integers(1, 4)):
        kind, k = rng.integers(8), int(rng.integers(len(rows)))
        if kind == 0:
            del rows[k]
        elif kind == 1:
            rows.insert(int(rng.integers(len(rows))), list(rows[k]))
        elif kind == 2:
            rng.shuffle(rows)
        else:
            column = int(rng.choice(5, p=[0.1, 0.1, 0.4, 0.25, 0.15]))
            rows[k][column] = str(rng.choice(CELLS[HEADER[column]]))
    return rows


def plain(path):
    """Kernels by (state, action) and mean costs, by a loop; None if the log is not as the loop
    knows it.
    """
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    months = {}
    for row in rows:
        year, _, rest = row["Month"].partition("-")
        months[id(row)] = int(year) * 12 + int(rest[:2])
    rows.sort(key=lambda row: (row["Machine"], months[id(row)]))
    counts, costs = Counter(), {}
    for row, after in itertools.pairwise(rows):
        if row["Machine"] == after["Machine"]:
            assert months[id(after)] == months[id(row)] + 1
            pair = row["Condition"], row["Action"]
            counts[(*pair, after["Condition"])] += 1
            costs.setdefault(pair, []).append(float(row["Cost"]))
    return counts, {pair: float(np.mean(own)) for pair, own in costs.items()}


def compare(seed, tmp_path):
    rows = spoiled(np.random.default_rng(seed))
    path = tmp_path / "log.csv"
    path.write_text(text(rows))
    options = {**COLUMNS, "terminal": []}
    found = check_log(path, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = estimate(path, discount=0.9, **options)
        except InputError:
            model = None
    assert found.refused == (model is None), found
    if model is None:
        return "refused"
    odd = [finding.kind for finding in found.findings if finding.kind != "thin"]
    assert len(caught) == len(odd) or set(odd) == {"blanks"}
    if caught:  # blanks in a row that no transition begins with change nothing
        return "warned"
    counts, costs = plain(path)
    states, actions = list(model.states), list(model.actions)
    assert {s for s, _, t in counts} | {t for _, _, t in counts} == set(states)
    for (state, action), cost in costs.items():
        s, a = states.index(state), actions.index(action)
        assert model.costs[s, a] == pytest.approx(cost, rel=1e-11)
        total = sum(counts[state, action, other] for other in states)
        np.testing.assert_allclose(
            model.kernels[0, s, a], [counts[state, action, other] / total for other in states]
        )
    return "accepted"


def test_what_is_accepted_without_a_word_is_what_a_loop_counts(tmp_path):
    seen = Counter(compare(seed, tmp_path) for seed in range(40))
    assert min(seen[kind] for kind in ("refused", "warned", "accepted")) >= 2, seen


@pytest.mark.fuzz
@pytest.mark.parametrize("block", range(20))
def test_what_is_accepted_without_a_word_is_what_a_loop_counts_in_long_runs(block, tmp_path):
    for seed in range(100 + 200 * block, 300 + 200 * block):
        compare(seed, tmp_path)
