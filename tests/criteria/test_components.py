"""End components against all subsets of the states, and in corridors that have to be peeled from
one end to the other.
"""

import itertools

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components

import drmdp
from drmdp.criteria.end_components import StateOptions, end_components
from drmdp.layout.layout import lay_out
from drmdp.sets.confinement import keeps


def by_definition(S, live, owner, leads, stays):
    """Largest sets of live states whose staying options connect them: all subsets are tried.
    stays(o, C), leads[o] a set of states.
    """
    found = []
    for size in range(1, S + 1):
        for C in map(set, itertools.combinations(np.flatnonzero(live).tolist(), size)):
            options = [o for o in range(len(owner)) if owner[o] in C and stays(o, C)]
            edges = {(owner[o], t) for o in options for t in leads[o] & C}
            graph = np.zeros((S, S))
            for s, t in edges:
                graph[s, t] = 1
            label = connected_components(graph, connection="strong")[1]
            if {owner[o] for o in options} == C and len({label[s] for s in C}) == 1:
                found = [other for other in found if not other <= C] + [C]
    return found


def random_rows(rng, S, A, K=2):
    rows = np.zeros((S, A, S))
    for s, a in itertools.product(range(S), range(A)):
        to = rng.choice(S, min(S, rng.integers(1, K + 1)), replace=False)
        rows[s, a, to] = rng.dirichlet(np.ones(to.size))
    return rows


def classes(label):
    return sorted(
        sorted(np.flatnonzero(label == k).tolist()) for k in range(label.max(initial=-1) + 1)
    )


@pytest.mark.parametrize("free", [True, False])
def test_components_of_a_kernel_are_those_of_the_definition(free):
    several = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        S, A = int(rng.integers(1, 7)), int(rng.integers(1, 4))
        rows, live = random_rows(rng, S, A), rng.random(S) < 0.8
        played = (rng.random((S, A)) < 0.8) & live[:, None]
        if not free:  # all that is played, as one
            rows = (rows * played[:, :, None]).sum(axis=1, keepdims=True)
            played = played.any(axis=1, keepdims=True)
        matrix = sparse.csr_array(rows.reshape(-1, S))
        options = StateOptions.of_kernel(matrix, played)
        label, kept = end_components(options, live)
        owner = options.owner.tolist()
        leads = [set(options.indices[i:j].tolist()) for i, j in itertools.pairwise(options.indptr)]
        expected = by_definition(S, live, owner, leads, lambda o, C, leads=leads: leads[o] <= C)
        assert classes(label) == sorted(map(sorted, expected))
        inside = [
            label[s] >= 0 and all(label[t] == label[s] for t in to)
            for s, to in zip(owner, leads, strict=True)
        ]
        assert kept.tolist() == inside
        several += len(expected) > 1
    assert several > 2


@pytest.mark.parametrize(
    "ambiguity",
    [drmdp.Wasserstein(0.5, "l1"), drmdp.Divergence(0.3), drmdp.Wasserstein(0.3, rectangular="sa")],
    ids=repr,
)
def test_components_of_a_free_nature_are_those_of_the_definition(ambiguity):
    some = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        S, A = int(rng.integers(2, 6)), 2
        live = rng.random(S) < 0.8
        model = drmdp.Model(
            random_rows(rng, S, A, 3)[None], costs=np.zeros((S, A)), discount=0.5, terminal=~live
        )
        layout, pairs = lay_out(model, ambiguity), np.flatnonzero(model.available)
        lists = [
            set(layout.indices[layout.indptr[k] : layout.indptr[k + 1]].tolist()) for k in pairs
        ]
        indptr = np.concatenate([[0], np.cumsum([len(own) for own in lists])])

        def stay(label, own, layout=layout, pairs=pairs):
            return keeps(ambiguity, layout, label, pairs[own])

        options = StateOptions(
            pairs // A,
            indptr,
            np.concatenate([layout.indices[layout.indptr[k] : layout.indptr[k + 1]] for k in pairs])
            if pairs.size
            else np.zeros(0, int),
            stay,
        )
        label, _ = end_components(options, live)

        def stays(o, C, S=S, stay=stay):
            return bool(stay(np.isin(np.arange(S), list(C)).astype(int), np.array([o]))[0])

        expected = by_definition(S, live, (pairs // A).tolist(), lists, stays)
        assert classes(label) == sorted(map(sorted, expected))
        some += bool(expected)
    assert some > 10


def test_a_long_corridor_is_peeled_in_one_pass(monkeypatch):
    """Forward or back, in 3000 states; the last one leads out. One look at every entry, and one
    more for the end.
    """
    S = 3000
    s = np.arange(S)
    rows = sparse.csr_array(
        (
            np.full(2 * S, 0.5),
            (np.tile(s, 2), np.concatenate([np.maximum(s - 1, 0), np.minimum(s + 1, S - 1)])),
        ),
        shape=(S, S),
    )
    looks, stays = [], StateOptions.stays

    def counted(self, label, some):
        looks.append(some.size)
        return stays(self, label, some)

    monkeypatch.setattr(StateOptions, "stays", counted)
    live = s < S - 1
    label, kept = end_components(StateOptions.of_kernel(rows, live[:, None]), live)
    assert (label == -1).all()
    assert not kept.any()
    assert sum(looks) <= 4 * S
