"""Results: how a run ended, what it went through, what it found."""

from __future__ import annotations

import json
import math
import os
import tempfile
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.errors import InputError


class Status(StrEnum):
    """How a run ended; each member carries a sentence."""

    solved = "solved"
    iteration_limit = "iteration_limit"
    time_limit = "time_limit"
    precision_limit = "precision_limit"
    diverged = "diverged"
    interrupted = "interrupted"
    stopped = "stopped"

    @property
    def sentence(self) -> str:
        """What it means, in words."""
        return _SENTENCES[self]


_SENTENCES = {
    Status.solved: "the certified gap is within the tolerance",
    Status.iteration_limit: "the iteration limit was reached; the bounds hold",
    Status.time_limit: "the time limit was reached; the bounds hold",
    Status.precision_limit: "rounding or the operator's own accuracy forbids a smaller gap; the bounds hold",
    Status.diverged: "the iterates diverged; the bounds are those of the best iterate",
    Status.interrupted: "interrupted; the bounds hold",
    Status.stopped: "stopped by the callback, or by a rule that does not certify the tolerance; the bounds hold",
}


@dataclass(frozen=True)
class Record:
    """One line of history, after an iteration; number 0 is the start."""

    iteration: int
    seconds: float
    residual: float  # max |F(v) − v|
    lower: float  # bounds on the optimum weighted by `initial`, in the user's sign
    upper: float
    gap: float  # largest upper − lower over the states, best so far
    kernel_passes: float  # reads of all N kernels


@dataclass(frozen=True, eq=False)
class Solution:
    """A policy, its certified worst-case value, and the proof of how good it is; signs are the user's."""

    value: Array  # (S,) certified worst-case value of `policy`: upper for costs, lower for rewards
    policy: Array  # (S, A); rows sum to 1, terminal states have zeros
    lower: Array  # (S,) lower ≤ optimal worst-case value ≤ upper
    upper: Array  # (S,)
    kernel: Any  # nature's side of the saddle point, a mean kernel (S, A, S)
    duality_gap: float  # the paper's (DG): upper − lower weighted by the start distribution
    status: Status
    history: tuple[Record, ...] = field(repr=False)
    settings: dict[str, Any]  # method, backend, ball, tol, limits
    states: tuple[Any, ...] = field(repr=False)
    actions: tuple[Any, ...] = field(repr=False)
    fingerprint: str  # of the model
    seconds: float
    setup_seconds: float

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            array = getattr(self, name)
            if isinstance(array, np.ndarray):
                array.setflags(write=False)

    @property
    def gap(self) -> float:
        """Largest upper − lower over the states: the returned policy is at most this far from optimal."""
        return float((self.upper - self.lower).max())

    @property
    def n_iters(self) -> int:
        """Iterations done."""
        return self.history[-1].iteration

    @property
    def kernel_passes(self) -> float:
        """Reads of all N kernels."""
        return self.history[-1].kernel_passes

    def __repr__(self) -> str:
        lines = [
            f"Solution: {self.status} — {self.status.sentence}",
            f"  gap        {self.gap:.3g} (tolerance {self.settings['tol']:g}), duality gap {self.duality_gap:.3g}",
            f"  value      {_span(self.value)}",
            f"  work       {self.n_iters} iterations, {self.kernel_passes:.4g} kernel passes, {self.seconds:.3g} s",
            f"  method     {self.settings['method']}, backend {self.settings['backend']}",
            f"  ball       {self.settings['ball']}",
        ]
        return "\n".join(lines)

    # ------------------------------------------------------------------ files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to an .npz file, completely or not at all; the model is not stored, only its fingerprint."""
        arrays: dict[str, Any] = {name: np.asarray(getattr(self, name), dtype=np.float64) for name in _ARRAYS}
        meta = {
            "format": _FORMAT,
            "status": str(self.status),
            "history": [asdict(record) for record in self.history],
            **{name: getattr(self, name) for name in _PLAIN},
        }
        arrays["meta"] = np.frombuffer(json.dumps(meta, default=_plain).encode(), dtype=np.uint8)
        write_whole(path, lambda stream: np.savez(stream, **arrays))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Solution:
        """Read what `save` wrote; anything else is refused."""
        try:
            with np.load(path, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in _ARRAYS}
                meta = json.loads(stored["meta"].tobytes().decode())
            if meta.pop("format") != _FORMAT:
                raise ValueError(f"expected format {_FORMAT!r}")
            status = Status(meta.pop("status"))
            history = tuple(Record(**record) for record in meta.pop("history"))
            meta["states"], meta["actions"] = tuple(meta["states"]), tuple(meta["actions"])
            _check_shapes(arrays, len(meta["states"]), len(meta["actions"]))
            return cls(status=status, history=history, **arrays, **meta)
        except FileNotFoundError:
            raise
        except Exception as error:  # a foreign file can make the readers raise anything, MemoryError included
            reason = str(error) or type(error).__name__
            raise InputError(f"{os.fspath(path)}: not a saved solution: {reason}") from None


_FORMAT = "drmdp solution 1"
_ARRAYS = ("value", "policy", "lower", "upper", "kernel")
_PLAIN = tuple(f.name for f in fields(Solution) if f.name not in (*_ARRAYS, "status", "history"))


def _plain(value: Any) -> Any:
    """Numbers of NumPy as Python's, for JSON."""
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return value.item()
    raise TypeError(f"cannot save {value!r} of type {type(value).__name__}")


def _check_shapes(arrays: dict[str, Any], n_states: int, n_actions: int) -> None:
    """Refuse arrays that do not fit together; an array read in full has passed the checksum of its file."""
    for name, array in arrays.items():
        expected = {"policy": (n_states, n_actions), "kernel": (n_states, n_actions, n_states)}.get(name, (n_states,))
        if array.shape != expected or array.dtype != np.float64:
            raise ValueError(f"{name} is {array.dtype} {array.shape}, expected float64 {expected}")


def write_whole(path: str | os.PathLike[str], write: Any) -> None:
    """Call write(stream) on a temporary file beside `path` and move it there; a half-written file is never left."""
    target = Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def _span(values: Array) -> str:
    lo, hi = float(values.min()), float(values.max())
    return f"{lo:.6g}" if math.isclose(lo, hi) else f"{lo:.6g} … {hi:.6g} over {values.size} states"
