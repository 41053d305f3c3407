"""Interval models that PRISM and Storm publish with their results: theirs are inside our bounds.

Storm: resources/examples/testfiles/imdp and RobustMdpPrctlModelCheckerTest. PRISM:
prism-tests/functionality/verify/imdps and idtmcs. Models are written down here as tables; of the
bounded retransmission protocol [D'Argenio, Jeannet, Jensen, Larsen 2001] what matters for its
properties: frames are sent, acknowledged, lost and repeated.
"""

import numpy as np
import pytest

import drmdp


def table(S, rows):
    """A model and its intervals of rows {(state, action): {next: (lower, upper)}}; other states
    stay.
    """
    A = 1 + max(a for _, a in rows)
    lower, upper = np.zeros((2, S, A, S))
    for (s, a), row in rows.items():
        for t, (low, high) in row.items():
            lower[s, a, t], upper[s, a, t] = low, high
    given = np.array([[(s, a) in rows for a in range(A)] for s in range(S)])
    for s in np.flatnonzero(~given.any(axis=1)):
        lower[s, 0, s] = upper[s, 0, s] = given[s, 0] = 1
    room = upper - lower
    mid = (
        lower + room * ((1 - lower.sum(axis=2)) / np.maximum(room.sum(axis=2), 1e-300))[:, :, None]
    )
    mid = np.where(given[:, :, None], mid, 1 / S)
    return mid, drmdp.Intervals(lower, np.where(given[:, :, None], upper, 1.0)), given


def reached(rows, S, target, minimise, nature):
    mid, ambiguity, given = table(S, rows)
    model = drmdp.Model(mid[None], costs=np.zeros(given.shape), discount=1.0, available=given)
    return drmdp.reach(model, ambiguity, target, minimise=minimise, nature=nature)


def inside(found, theirs, s=0, near=1e-4):
    assert found.status == "solved"
    assert found.lower[s] - near <= theirs <= found.upper[s] + near


SURE = (1.0, 1.0)
TINY = {(0, 0): {1: (0.4, 0.9), 2: (0.5, 0.8)}}
LOOP = {
    (0, 0): {1: (0.4, 0.4), 2: (0.3, 0.3), 3: (0.1, 0.6)},
    (1, 0): {1: SURE},
    (1, 1): {2: SURE},
    (2, 0): {3: (0.4, 0.9), 4: (0.5, 0.8)},
    (2, 1): {3: (0.4, 0.9), 4: (0.5, 0.8)},
    (2, 2): {0: SURE},
}
STORM = {
    "tiny-01": (TINY, 3, [1], 0, (0.4, 0.5, 0.5, 0.4)),
    "tiny-03": (TINY | {(0, 1): TINY[0, 0]}, 3, [1], 0, (0.4, 0.5, 0.5, 0.4)),
    "tiny-04": (LOOP, 5, [3], 0, (1, 1, 0.42857, 0.42)),
    "tiny-05": ({(2, 0): {0: (0.3, 0.4), 1: (0.4, 0.9)}}, 3, [0], 2, (0.3, 0.4, 0.4, 0.3)),
}


@pytest.mark.parametrize("name", STORM)
def test_storm_publishes(name):
    """Largest and least probability, each with a nature against it and for it."""
    rows, S, target, start, results = STORM[name]
    ways = [
        (minimise, nature)
        for minimise in (False, True)
        for nature in ("adversarial", "cooperative")
    ]
    for (minimise, nature), theirs in zip(ways, results, strict=True):
        inside(reached(rows, S, target, minimise, nature), theirs, start)


def robot(delta):
    """Six rooms; the way south from the second one is uncertain by delta."""
    p, q = 0.5 - delta, 0.5 + delta
    return {
        (0, 0): {1: (0.6, 0.6), 0: (0.4, 0.4)},
        (0, 1): {3: (0.8, 0.8), 1: (0.1, 0.1), 4: (0.1, 0.1)},
        (1, 0): {2: (0.8, 0.9), 1: (0.1, 0.2)},
        (1, 1): {4: (p, q), 2: (1 - q, 1 - p)},
        (4, 0): {5: SURE},
        (4, 1): {3: (0.6, 0.6), 4: (0.4, 0.4)},
        (5, 0): {2: (0.9, 0.9), 5: (0.1, 0.1)},
        (5, 1): {4: SURE},
    }


@pytest.mark.parametrize("delta", [0.05, 0.25, 0.45])
def test_prism_publishes_the_robot(delta):
    rows, p, q = robot(delta), 0.5 - delta, 0.5 + delta
    inside(reached(rows, 6, [5], False, "adversarial"), max(p, 0.1 + 0.1 * p), near=1e-9)
    inside(reached(rows, 6, [5], False, "cooperative"), q, near=1e-9)
    mid, ambiguity, given = table(6, rows)
    model = drmdp.Model(
        mid[None], costs=np.ones(given.shape), discount=1.0, available=given, terminal=[2, 3, 5]
    )
    inside(
        drmdp.solve(model, ambiguity, nature="cooperative"),
        min(109 / 90, 6 / 5 + p / 10),
        near=1e-9,
    )
    inside(drmdp.solve(model, ambiguity), 98 / 80, near=1e-9)


def test_storm_publishes_the_robot():
    rows = robot(0.1)
    for minimise, nature, theirs in (
        (True, "cooperative", 0.4),
        (True, "adversarial", 0.6),
        (False, "adversarial", 1.0),
    ):
        inside(reached(rows, 6, [2, 3], minimise, nature), theirs)


def test_prism_publishes_total_rewards():
    """Through one of two rooms that cost 2 and 10, or 2000 and 10000; with a discount, beside a
    room that costs 5 for ever.
    """
    split = {(0, 0): {1: (0.3, 0.7), 2: (0.3, 0.7)}, (1, 0): {3: SURE}, (2, 0): {3: SURE}}
    mid, ambiguity, given = table(4, split)
    for scale in (1, 1000):
        costs = scale * np.array([[0.0], [2.0], [10.0], [0.0]])
        for discount, least, most in ((1.0, 4.4, 7.6), (0.9, 3.96, 6.84)):
            model = drmdp.Model(mid[None], costs=costs, discount=discount, terminal=[3])
            inside(drmdp.solve(model, ambiguity), scale * most, near=1e-6 * scale)
            inside(
                drmdp.solve(model, ambiguity, nature="cooperative"),
                scale * least,
                near=1e-6 * scale,
            )
    rows = {(0, 0): {1: SURE}, (0, 1): {2: (0.3, 0.7), 3: (0.3, 0.7)}, (0, 2): {4: SURE}}
    rows |= {(4, 0): {5: (0.3, 0.7), 6: (0.3, 0.7)}, (5, 0): {7: SURE}, (6, 0): {7: SURE}}
    mid, ambiguity, given = table(8, rows)
    costs = np.zeros(given.shape)
    costs[0], costs[2, 0], costs[5, 0], costs[6, 0] = (100, 1, 0), 5, 2000, 10_000
    paid, earned = (
        {name: costs, "discount": 0.9, "available": given} for name in ("costs", "rewards")
    )
    for given_as, nature, theirs in (
        (paid, "cooperative", 14.5),
        (paid, "adversarial", 32.5),
        (earned, "adversarial", 3564),
        (earned, "cooperative", 6156),
    ):
        inside(
            drmdp.solve(drmdp.Model(mid[None], **given_as), ambiguity, nature=nature),
            theirs,
            near=1e-2,
        )


def protocol(N, most, error=0.01):
    """N frames, each sent at most 1 + `most` times: sent and heard, 2 N (1 + most) states; then
    given up early, given up last, done.
    """
    rows, first = {}, 2 * N * (1 + most)
    early, last, done = range(first, first + 3)

    def place(i, n, heard):
        return 2 * (i * (1 + most) + n) + heard

    def about(p):
        return (1 - error) * p, (1 + error) * p

    for i in range(N):
        for n in range(1 + most):
            again = place(i, n + 1, 0) if n < most else last if i == N - 1 else early
            rows[place(i, n, 0), 0] = {place(i, n, 1): about(0.98), again: about(0.02)}
            rows[place(i, n, 1), 0] = {
                place(i + 1, 0, 0) if i < N - 1 else done: about(0.99),
                again: about(0.01),
            }
    return rows, first + 3, (early, last)


BRP = {
    (16, 2): (
        4.108451315950149e-4,
        4.3607045383520796e-4,
        2.567226750562603e-5,
        2.7249476182381116e-5,
    ),
    (16, 3): (
        1.2123832682674567e-5,
        1.312657029099825e-5,
        7.577345229574669e-7,
        8.204063654865639e-7,
    ),
    (16, 5): (
        1.0553672425877384e-8,
        1.1889700569121855e-8,
        6.596045226939831e-10,
        7.431062812899422e-10,
    ),
    (32, 2): (
        8.215214679223887e-4,
        8.719507504132649e-4,
        2.566107256972064e-5,
        2.7238280851774565e-5,
    ),
    (64, 4): (
        1.4308123878589935e-6,
        1.5802364767854307e-6,
        2.235642455632081e-8,
        2.4691179437374115e-8,
    ),
}
"""Least and largest probability that the sender gives up, and that it does not know whether the
last frame came.
"""


@pytest.mark.parametrize("size", BRP)
def test_prism_publishes_the_bounded_retransmission_protocol(size):
    rows, S, (early, last) = protocol(*size)
    near = []
    for target, results in (([early, last], BRP[size][:2]), ([last], BRP[size][2:])):
        for nature, theirs in zip(
            ("adversarial", "cooperative"), results, strict=True
        ):  # the least, the largest
            found = reached(rows, S, target, False, nature)
            assert found.lower[0] <= theirs * (1 + 1e-9)
            assert theirs * (1 - 1e-9) <= found.upper[0]
            near.append(found.status == "solved")
    assert all(near)
