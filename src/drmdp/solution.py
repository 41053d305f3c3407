"""Results: how a run ended, what it went through, what it found."""

from __future__ import annotations

import json
import math
import os
import warnings
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from drmdp import _html
from drmdp._typing import Array
from drmdp.errors import InputError
from drmdp.files import check_file, check_suffix, write_whole

if TYPE_CHECKING:
    from drmdp.ambiguity import Wasserstein
    from drmdp.model import Model
    from drmdp.radius import Path as RadiusPath


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
    kernel: Any  # nature's side of the saddle point, a mean kernel (S, A, S); for sparse models with .rows(s)
    duality_gap: float  # the paper's (DG): upper − lower weighted by the start distribution
    status: Status
    history: tuple[Record, ...] = field(repr=False)
    settings: dict[str, Any]  # method, backend, ball, tol, limits
    states: tuple[Any, ...] = field(repr=False)
    actions: tuple[Any, ...] = field(repr=False)
    fingerprint: str  # of the model
    seconds: float
    setup_seconds: float
    kernels: Any = field(
        default=None, repr=False
    )  # the N kernels whose mean is `kernel`, made when asked for; None with conic updates; `save` leaves them out
    notes: tuple[str, ...] = ()  # of the model, and what there is to say of this solution
    problem: ClassVar[Any] = None  # (model, ball) that were solved, set by `solve`, neither saved nor compared

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            array = getattr(self, name)
            if isinstance(array, np.ndarray):
                array.setflags(write=False)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copies are read-only too."""
        self.__dict__.update(state)
        self.__post_init__()

    @property
    def gap(self) -> float:
        """Largest upper − lower over the states; the returned policy is at most this far from optimal."""
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
        return "\n".join(lines + [f"  note       {note}" for note in self.notes])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        head = {
            "status": f"{self.status}: {self.status.sentence}",
            "certified gap": f"{self.gap:.3g} (tolerance {self.settings['tol']:g})",
            "work": f"{self.n_iters} iterations, {self.kernel_passes:.4g} kernel passes, {self.seconds:.3g} s",
            "method": f"{self.settings['method']}, backend {self.settings['backend']}",
            "ball": self.settings["ball"],
        } | ({"notes": "; ".join(self.notes)} if self.notes else {})
        rows = [
            (self.states[s], choice(self.policy[s], self.actions), *(f"{x[s]:.6g}" for x in (self.lower, self.upper)))
            for s in range(min(len(self.states), _html.ROWS))
        ]
        columns = ("state", "action", "optimum at least", "at most")
        return _html.facts("Solution", head) + _html.table(columns, rows, len(self.states))

    # ------------------------------------------------------------------ files

    def report(
        self,
        path: str | os.PathLike[str],
        sweep: RadiusPath | None = None,
        *,
        model: Model | None = None,
        ball: Wasserstein | None = None,
        title: str | None = None,
        command: str | None = None,
    ) -> None:
        """Write one self-contained HTML page: the problem, the policy, the certificate, what nature did, how to do it again.

        The page needs no network and no script. It never solves: the radius curve is drawn from `sweep`, a `drmdp.radius.path`. Needs the extra
        `report`.

        Parameters
        ----------
        path : path
            Written completely or not at all.
        sweep : `drmdp.radius.Path`, optional
        model, ball : optional
            For a solution that was loaded: it does not hold them. What the page leaves out without them, it says.
        title : str, optional
        command : str, optional
            How the result was made, shown for whoever wants it again.
        """
        from drmdp.report import write

        write(self, path, sweep, model=model, ball=ball, title=title, command=command)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to an .npz file, completely or not at all; the model is not stored, only its fingerprint."""
        check_target(path)
        arrays = {name: np.asarray(getattr(self, name)) for name in _ARRAYS if name != "kernel"}
        arrays |= _pack(self.kernel)
        _check_shapes(arrays, len(self.states), len(self.actions))
        meta = {
            "format": _FORMAT,
            "status": str(self.status),
            "history": [asdict(record) for record in self.history],
            **{name: getattr(self, name) for name in _PLAIN},
        }
        arrays["meta"] = np.frombuffer(json.dumps(meta, default=_plain).encode(), dtype=np.uint8)
        write_whole(path, lambda stream: np.savez(stream, **arrays))  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Solution:
        """Read what `save` wrote; anything else is refused."""
        try:
            with open(path, "rb") as stream, warnings.catch_warnings():
                warnings.simplefilter("error")  # NumPy warns of some damaged headers
                with np.load(stream, allow_pickle=False) as stored:
                    arrays = {name: stored[name] for name in stored.files if name != "meta"}
                    meta = json.loads(stored["meta"].tobytes().decode())
            if meta.pop("format") != _FORMAT:
                raise ValueError(f"expected format {_FORMAT!r}")
            status = Status(meta.pop("status"))
            history = tuple(Record(**record) for record in meta.pop("history"))
            meta["notes"] = meta.get("notes", [])
            for name in ("states", "actions", "notes"):
                meta[name] = tuple(meta[name])
            _check_shapes(arrays, len(meta["states"]), len(meta["actions"]))
            _check_types(history, meta)
            return cls(status=status, history=history, **_unpack(arrays), **meta)
        except OSError as error:
            raise InputError(f"{os.fspath(path)}: {error.strerror or error}") from None
        except Exception as error:  # a foreign file can make the readers raise anything, MemoryError included
            reason = " ".join(str(error).split()) or type(error).__name__
            raise InputError(f"{os.fspath(path)}: not a saved solution: {reason}") from None


def check_target(path: str | os.PathLike[str]) -> None:
    """Raise `InputError` if a solution cannot be saved at the path."""
    check_suffix(path, (".npz",), "a solution is saved in an .npz file")
    check_file(path)


_FORMAT = "drmdp solution 1"
_ARRAYS = ("value", "policy", "lower", "upper", "kernel")
_PART = "kernel."
"""Prefix of the arrays of a compact kernel."""
_PLAIN = tuple(f.name for f in fields(Solution) if f.name not in (*_ARRAYS, "status", "history", "kernels"))


def _plain(value: Any) -> Any:
    """Numbers of NumPy as Python's, for JSON."""
    if isinstance(value, np.bool_ | np.integer):
        return value.item()
    if isinstance(value, np.floating):
        return float(value)
    raise TypeError(f"cannot save {value!r} of type {type(value).__name__}")


def _pack(kernel: Any) -> dict[str, Any]:
    """Arrays that hold a kernel."""
    if isinstance(kernel, np.ndarray):
        return {"kernel": kernel}
    from drmdp.rows import STORED

    return {_PART + name: getattr(kernel.compact, name) for name in STORED}


def _unpack(arrays: dict[str, Any]) -> dict[str, Any]:
    """Put a compact kernel together again."""
    parts = {name.removeprefix(_PART): array for name, array in arrays.items() if name.startswith(_PART)}
    if not parts:
        return arrays
    from drmdp.rows import restored

    S, A = arrays["policy"].shape
    return {name: arrays[name] for name in _ARRAYS[:-1]} | {"kernel": restored(S, A, parts)}


def _check_shapes(arrays: dict[str, Any], n_states: int, n_actions: int) -> None:
    """Refuse arrays that do not fit together: what fits was read to its end, and so against its checksum."""
    S, A = n_states, n_actions
    expected = {"policy": (S, A), "kernel": (S, A, S)}
    for name in _ARRAYS if "kernel" in arrays else _ARRAYS[:-1]:
        array, shape = arrays[name], expected.get(name, (S,))
        if array.shape != shape or array.dtype != np.float64:
            raise ValueError(f"{name} is {array.dtype} {array.shape}, expected float64 {shape}")


def _check_types(history: tuple[Record, ...], meta: dict[str, Any]) -> None:
    """Refuse what no run can have left."""
    if not history:
        raise ValueError("history is empty")
    for record in history:
        _check_type({f"history: {name}": value for name, value in asdict(record).items()}, float | int)
    _check_type({name: meta[name] for name in ("duality_gap", "seconds", "setup_seconds")}, float | int)
    _check_type({f"name {name!r}": name for name in (*meta["states"], *meta["actions"])}, str | int)
    _check_type({f"note {note!r}": note for note in meta["notes"]}, str)
    _check_type({"settings": meta["settings"]}, dict)
    _check_type({"fingerprint": meta["fingerprint"]}, str)


def _check_type(values: dict[str, Any], expected: Any) -> None:
    for name, value in values.items():
        if not isinstance(value, expected) or isinstance(value, bool):
            raise ValueError(f"{name} is of type {type(value).__name__}")


def choice(row: Array, actions: Any) -> str:
    """Name the action of a state, or its actions with their shares, likeliest first."""
    played = [(float(row[a]), str(actions[a])) for a in (-row).argsort(kind="stable")[:4] if row[a] >= 0.005]
    if not played:
        return "(end)"
    if len(played) == 1:
        return played[0][1]
    return ", ".join(f"{name} {share:.0%}" for share, name in played[:3]) + (", …" if len(played) > 3 else "")


def _span(values: Array) -> str:
    lo, hi = float(values.min()) + 0.0, float(values.max()) + 0.0  # never −0
    return f"{lo:.6g}" if math.isclose(lo, hi) else f"{lo:.6g} … {hi:.6g} over {values.size} states"
