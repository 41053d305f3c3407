"""What a report leaves out: states that are hardly visited, and the curve of a run that was cut
short.
"""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import drmdp
from drmdp import Status, Wasserstein, policies, radius
from drmdp.cli import report as cli_report
from drmdp.report import facts


def line(S):
    """Each state leads to the next one, the last but one to itself; the last is terminal, and the
    run begins in the first.
    """
    kernel = np.zeros((S, 1, S))
    kernel[np.arange(S), 0, np.minimum(np.arange(S) + 1, S - 2)] = 1
    initial = np.eye(S)[0]
    return drmdp.Model(
        kernel, costs=np.ones((S, 1)), discount=0.99, terminal=[S - 1], initial=initial
    )


def test_the_states_visited_most_are_listed():
    model, ambiguity = line(60), Wasserstein(0.1, "l1", 1, "observed")
    solution = drmdp.solve(model, ambiguity)
    table = facts.states_table(facts.Subject.of(solution, model, ambiguity))
    assert [row[0] for row in table["rows"]] == [str(s) for s in (58, *range(39))]
    assert table["note"] == "The 40 states visited most, of 60."


def test_most_visited_states_are_told_from_the_others():
    model = line(6)
    policy = np.ones((6, 1))
    for n, expected in (
        (1, [4]),
        (2, [0, 4]),
        (3, [0, 1, 4]),
        (5, [0, 1, 2, 3, 4]),
        (6, [0, 1, 2, 3, 4]),
    ):
        assert policies.most_visited(model, policy, n).tolist() == expected


@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize("status", [Status.interrupted, Status.time_limit, Status.solved])
def test_a_run_that_was_cut_short_gets_no_curve(status, monkeypatch, tmp_path):
    pytest.importorskip("jinja2")
    model, ambiguity = line(4), Wasserstein(0.1, "l1", 1, "all")
    drawn, path = [], radius.path
    monkeypatch.setattr(
        radius, "path", lambda *given, **more: drawn.append(given) or path(*given, **more)
    )
    page = str(tmp_path / "page.html")
    asked = SimpleNamespace(report=page, report_radii=2, title=None, unit=None, deadline=math.inf)
    solution = replace(drmdp.solve(model, ambiguity), status=status)
    cli_report.write(asked, solution, model, ambiguity, None)
    assert len(drawn) == (status is Status.solved)
    assert (tmp_path / "page.html").exists()
