"""Kernels that may mean something else are refused, with what to write instead."""

import numpy as np
import pytest
from scipy import sparse

import drmdp
from drmdp import InputError, Model

S, A = 5, 3


def actions_first(n_states=S, n_actions=A, seed=0):
    """(A, S, S), as pymdptoolbox has it."""
    return np.random.default_rng(seed).dirichlet(np.ones(n_states), (n_actions, n_states))


def matrices(kernels):
    return [sparse.csr_array(kernel) for kernel in kernels]


REWARDS = np.arange(S * A, dtype=float).reshape(S, A)
MEANT = {
    "rewards by state": {"rewards": np.zeros(S)},
    "rewards by pair": {"rewards": REWARDS},
    "names of actions": {"costs": np.zeros(S), "actions": ["a", "b", "c"]},
    "weights and actions": {"costs": REWARDS, "weights": np.full(A, 1 / A)},
    "listed costs": {"costs": sparse.csr_array(np.ones((S * A, S)))},
}


@pytest.mark.parametrize("form", [list, tuple, "object array"], ids=str)
@pytest.mark.parametrize("given", MEANT.values(), ids=MEANT)
def test_a_list_of_one_matrix_per_action_is_refused_with_the_cure(given, form):
    listed = matrices(actions_first())
    if form == "object array":
        kernels = np.empty(A, dtype=object)
        kernels[:] = listed
    else:
        kernels = form(listed)
    with pytest.raises(InputError) as error:
        Model(kernels, discount=0.9, **given)
    assert str(error.value) == (
        "kernels: 3 sparse matrices (5, 5) may be one kernel with 3 actions, as in pymdptoolbox, or 3 kernels with one action: "
        "use drmdp.formats.from_mdptoolbox(kernels, rewards, discount) for the first, or give actions=['the only one'] for the "
        "second"
    )


def test_both_cures_of_a_list_of_square_matrices_work():
    listed = matrices(actions_first())
    model = drmdp.formats.from_mdptoolbox(listed, REWARDS, 0.9)
    assert (model.n_kernels, model.n_actions) == (1, A)
    np.testing.assert_array_equal(model.mean_kernel.toarray()[1], actions_first()[1, 0])
    chain = Model(listed, costs=np.zeros(S), discount=0.9, actions=["the only one"])
    assert (chain.n_kernels, chain.n_actions) == (A, 1)


@pytest.mark.parametrize(
    "given",
    [
        {"costs": np.zeros((S, 1))},
        {"rewards": np.zeros((S, 1, S))},
        {"costs": np.zeros(S), "weights": np.full(A, 1 / A)},
        {"costs": np.zeros(S), "kernel_names": ["x", "y", "z"]},
        {"costs": np.zeros(S), "available": np.ones((S, 1), bool)},
        {"costs": sparse.csr_array(np.ones((S, S)))},
    ],
    ids=lambda given: "-".join(given),
)
def test_whatever_says_one_action_or_three_kernels_is_enough(given):
    assert Model(matrices(actions_first()), discount=0.9, **given).n_kernels == A


def test_one_square_matrix_is_a_chain():
    assert Model(matrices(actions_first())[0], costs=np.zeros(S), discount=0.9).n_actions == 1
    assert Model(matrices(actions_first())[:1], costs=np.zeros(S), discount=0.9).n_actions == 1


@pytest.mark.parametrize(
    ("kernels", "cure"),
    [
        (
            actions_first(),
            "if it is (A, S, S), as in pymdptoolbox, give np.moveaxis(kernels, 0, 1) or use drmdp.formats.from_mdpt",
        ),
        (actions_first(), "if it is (N, S, S), N kernels with one action, kernels[:, :, None]"),
        (actions_first()[None], "if it is (N, A, S, S), give np.moveaxis(kernels, 1, 2)"),
        (actions_first(S, S * A).reshape(1, S * A, S, S)[0], "if it is (A, S, S)"),
        (np.ones((2, S * A, S)), "if it is (N, S·A, S), give kernels.reshape(2, 5, 3, 5)"),
        (np.ones((S * A, S)), "if it is (S·A, S), give kernels.reshape(5, 3, 5)"),
    ],
    ids=str,
)
def test_other_shapes_are_refused_with_what_they_look_like(kernels, cure):
    with pytest.raises(InputError) as error:
        Model(kernels, costs=np.zeros(S), discount=0.9)
    assert "kernels: expected shape (N, S, A, S) or (S, A, S) with no size 0, got " in str(
        error.value
    )
    assert cure in str(error.value)


def test_the_cures_work():
    kernels = actions_first()
    right = drmdp.formats.from_mdptoolbox(kernels, REWARDS, 0.9)
    assert Model(np.moveaxis(kernels, 0, 1), rewards=REWARDS, discount=0.9) == right
    assert Model(np.moveaxis(kernels[None], 1, 2), rewards=REWARDS, discount=0.9) == right
    assert Model(kernels[:, :, None], costs=np.zeros(S), discount=0.9).n_kernels == A


def test_a_cube_may_be_two_things():
    cube = actions_first(4, 4)
    with pytest.raises(InputError) as error:
        Model(cube, rewards=np.zeros((4, 4)), discount=0.9)
    assert str(error.value) == (
        "kernels: (4, 4, 4) may be (S, A, S) or, as in pymdptoolbox, (A, S, S): give kernels[None] for the first, or "
        "drmdp.formats.from_mdptoolbox(kernels, rewards, discount) for the second"
    )
    np.testing.assert_array_equal(
        Model(cube[None], rewards=np.zeros((4, 4)), discount=0.9).kernels[0], cube
    )
    swapped = drmdp.formats.from_mdptoolbox(cube, np.zeros((4, 4)), 0.9)
    np.testing.assert_array_equal(swapped.kernels[0], cube.transpose(1, 0, 2))


def test_a_cube_that_means_one_thing_is_taken():
    assert Model(np.ones((1, 1, 1)), costs=[0], discount=0.9).n_states == 1
    assert Model(np.full((2, 2, 2), 0.5), costs=[0, 1], discount=0.9).n_actions == 2


def test_four_dimensions_say_what_they_are():
    y = np.random.default_rng(0).dirichlet(np.ones(3), (3, 3))
    assert Model(y[None], costs=np.zeros(3), discount=0.9).n_kernels == 1
    assert Model(np.stack([y, y]), costs=np.zeros(3), discount=0.9).n_kernels == 2


def test_files_that_hold_a_cube_are_refused_too(tmp_path):
    np.savez(tmp_path / "m.npz", kernels=actions_first(4, 4), costs=np.zeros(4), discount=0.9)
    with pytest.raises(InputError, match=r"m\.npz: kernels: \(4, 4, 4\) may be"):
        drmdp.read(tmp_path / "m.npz")


@pytest.mark.parametrize(
    ("kernels", "message"),
    [
        ([[[0.5, 0.5], [1, 0]], [[1, 0]]], "kernels[0] has length 2, but kernels[1] has length 1"),
        ([[[0.5, 0.5]], [[1, 0, 0]]], "kernels[0][0] has length 2, but kernels[1][0] has length 3"),
        ([[[0.5, 0.5]], [0.5]], "kernels[0][0] has length 2, but kernels[1][0] is one number"),
        (
            [[np.eye(2), sparse.eye_array(2, format="csr")]],
            "kernels[0][0] has length 2, but kernels[0][1] is a csr_array",
        ),
        ([[[0.5, 0.5]], [0.5, [1]]], "kernels[0] has length 1, but kernels[1] has length 2"),
        (
            [np.ones((2, 1, 2)) / 2, np.ones((3, 1, 3)) / 3],
            "kernels[0] has length 2, but kernels[1] has length 3",
        ),
    ],
    ids=str,
)
def test_lists_of_different_lengths_name_the_place(kernels, message):
    with pytest.raises(InputError) as error:
        Model(kernels, costs=[0, 1], discount=0.9)
    assert str(error.value) == f"kernels: expected an array of numbers: {message}"


def test_sparse_and_dense_do_not_mix():
    y = np.full((2, 2), 0.5)
    for kernels, i in (
        ([sparse.csr_array(y), y], 1),
        ([y, sparse.csr_array(y)], 0),
        ([sparse.csr_array(y), None], 1),
    ):
        with pytest.raises(InputError, match=f"some are sparse, but kernel {i} is of type"):
            Model(kernels, costs=[0, 1], discount=0.9)
