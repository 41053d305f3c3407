"""Random models of up to 100 000 events against fractions: no bound is false, of the model, of its
stored twin and of what is read back.
"""

import contextlib
import io

import numpy as np
import pytest

import drmdp
import drmdp_check
from merged import case, false

RTOL = (1e-15, 1e-12, 1e-9, 1e-6)


def judge(number, folder, most=100_000, seed=0):
    """Solve a case in all its forms; how many were judged."""
    own = case(number, seed, most)
    rtol, policy = RTOL[number % len(RTOL)], np.eye(own.model.n_actions)[[0, 0]]
    found = [
        drmdp.solve(own.model, own.ambiguity, rtol=rtol),
        drmdp.evaluate(own.model, own.ambiguity, policy, rtol=rtol),
    ]
    if own.ambiguity.moves != "events":
        stored = own.model.stored()
        found.append(drmdp.solve(stored, own.ambiguity, rtol=rtol))
        if number % 10 == 0:
            drmdp.write(stored, path := folder / f"{number}.npz")
            again = drmdp.read(path)
            assert again == stored, own.name
            found.append(drmdp.solve(again, own.ambiguity, rtol=rtol))
            if rtol >= 1e-12 and not 0 < own.ambiguity.radius < 1e-12:
                for k, other in enumerate((own.model, stored, again)):
                    proof = folder / f"{number}-{k}.proof"
                    drmdp.solve(other, own.ambiguity, rtol=rtol).proof(proof)
                    with contextlib.redirect_stdout(io.StringIO()) as said:
                        assert drmdp_check.main([str(proof), str(path)]) == 0, (
                            own.name,
                            said.getvalue(),
                        )
    for k, result in enumerate(found):
        off = false(own, result)
        assert off <= 0, f"{own.name}, form {k}: false by {off}"
    return len(found)


@pytest.mark.parametrize("part", range(2))
def test_bounds_hold_for_models_of_many_events(part, tmp_path):
    assert sum(judge(number, tmp_path, 20_000) for number in range(25 * part, 25 * part + 25)) >= 50


@pytest.mark.fuzz
@pytest.mark.parametrize("part", range(50))
def test_no_bound_is_false_in_thousands_of_models(part, tmp_path):
    assert (
        sum(judge(number, tmp_path, seed=1) for number in range(60 * part, 60 * part + 60)) >= 120
    )
