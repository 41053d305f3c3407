"""Fingerprints of bits: versions, and a digest of what the compiled routines return for a fixed
example.

The numbers of the example are exact in binary, so that nothing but the routines and the arithmetic
below them can change the digest. Its rows are long enough for vectorised loops and their ends.
Systems of equations of small chains go to LAPACK, whose bits are those of its library.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp._version import __version__
from drmdp.certificate import RobustProver
from drmdp.model import Model
from drmdp.operators.exact import ExactOperator
from drmdp.sets import AmbiguitySet

S, A, N, K = 64, 2, 3, 45
RADIUS = 0.125


def fingerprint(ambiguity: AmbiguitySet, real: Any = np.float64) -> dict[str, str]:
    """Versions and digests that decide the bits of a solve with sets of this kind; `real` is the
    type of the probabilities.
    """
    blas: Any = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    algebra = f"{blas.get('name')} {blas.get('version')}"
    return {"drmdp": __version__, "linear algebra": algebra, "routines": _digest(ambiguity, real)}


def differences(first: dict[str, str], second: dict[str, str]) -> list[str]:
    """Describe differences between two fingerprints; empty if bits are the same."""
    names = sorted(first.keys() | second.keys())
    values = {name: (first.get(name, "none"), second.get(name, "none")) for name in names}
    return [f"{name}: {a} and {b}" for name, (a, b) in values.items() if a != b]


def _digest(ambiguity: AmbiguitySet, real: Any) -> str:
    """Digest of two sweeps, nature's rows and a proof."""
    model = _model(real)
    example = _example(ambiguity, model)
    operator = ExactOperator(model, example, threads=1)
    parts: list[Array] = []
    for slope in (37, 23):  # the second begins where the first ended
        value = np.arange(S) * slope % S / 8.0
        update = operator.update(value, 0, S)
        parts += [update.lower_step, update.upper_step, update.policy]
    proof = RobustProver(model, example, 1).prove(value, update.policy, update.claim, fixed=False)
    parts += [proof.lower_step, proof.upper_step, update.kernel.compact @ value]
    data = b"".join(np.ascontiguousarray(part).tobytes() for part in parts)
    return hashlib.sha256(data).hexdigest()[:16]


def _example(ambiguity: AmbiguitySet, model: Model) -> AmbiguitySet:
    """A set of the same kind for another model."""
    example: Any = ambiguity
    if of := getattr(type(ambiguity), "of", None):
        return of(model, RADIUS)  # type: ignore[no-any-return]
    if getattr(example, "ground", None) is not None:
        example = replace(example, ground=("line", np.arange(model.n_states) / 8.0))
    if example.moves == "events":  # the kernels are the same
        example = replace(example, moves="states", rectangular=example.rectangular)
    return example.with_radius(RADIUS) if example.sized else example  # type: ignore[no-any-return]


def _model(real: Any) -> Model:
    """S states, of which each pair lists K; probabilities are multiples of 1/1024."""
    from scipy import sparse

    counts = np.arange(K) * 7 % K
    counts[0] += 1024 - counts.sum()
    rows = np.arange(S * A)[:, None]
    kernels = []
    for i in range(N):
        mass = counts[(np.arange(K) + 5 * rows + 11 * i * (rows % 3)) % K] / 1024.0
        columns = np.sort((rows + np.arange(K) * 3) % S, axis=1)
        parts = mass.ravel(), columns.ravel(), np.arange(0, S * A * K + 1, K)
        kernels.append(sparse.csr_array(parts, shape=(S * A, S)))
    costs = (np.arange(S * A) * 29 % 64 / 16.0).reshape(S, A)
    return Model(kernels, costs=costs, discount=0.875, dtype=real)
