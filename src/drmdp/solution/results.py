"""Results: how a run ended, what it went through, what it found."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from drmdp._typing import Array
from drmdp.core import html as _html
from drmdp.core.files import check_file, check_path, check_suffix, naming
from drmdp.core.text import count, measured
from drmdp.core.tolerance import Tolerance
from drmdp.core.validation import Names
from drmdp.errors import InputError, brief, clean, described
from drmdp.solution.priced import Priced

if TYPE_CHECKING:
    from drmdp.model import Model
    from drmdp.radius import Path as RadiusPath
    from drmdp.sets import AmbiguitySet


class Status(StrEnum):
    """How a run ended: "solved", "iteration_limit", "time_limit", "precision_limit", "diverged", "unbounded", "interrupted" or "stopped"."""

    solved = "solved"
    iteration_limit = "iteration_limit"
    time_limit = "time_limit"
    precision_limit = "precision_limit"
    diverged = "diverged"
    unbounded = "unbounded"
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
    Status.precision_limit: "double precision or the operator's own accuracy allows no smaller gap; the bounds hold",
    Status.diverged: "the iterates diverged; the bounds are those of the best iterate",
    Status.unbounded: "no bound holds in some states: nature can keep the process from ending, or costs fall for ever",
    Status.interrupted: "interrupted; the bounds hold",
    Status.stopped: "stopped by the callback, or where the rule asked for (`stop`) holds; the bounds hold",
}


PRECISE = 1e-9
"""A gap of at most this share of the scale is a success where double precision allows no smaller one."""


def reached(found: Any) -> bool:
    """Whether a result, with `status`, `gap` and `scale`, is solved, or as near as double precision allows and near enough."""
    if found.status is Status.precision_limit:
        return bool(found.gap <= PRECISE * found.scale)
    return found.status is Status.solved


@dataclass(frozen=True)
class Record:
    """One line of history, after an iteration; number 0 is the start.

    Attributes
    ----------
    iteration : int
        Its number.
    seconds : float
        Since the run began.
    residual : float
        Largest difference between F(v) and v over the states.
    lower, upper : float
        Bounds on the optimum, weighted by the start distribution.
    gap : float
        Largest upper − lower over the states, the best so far.
    kernel_passes : float
        Reads of all N kernels so far.
    """

    iteration: int
    seconds: float
    residual: float
    lower: float
    upper: float
    gap: float
    kernel_passes: float


ARRAYS = ("value", "policy", "lower", "upper", "kernel")
LATER = ("kernel", "fingerprint", "duality_gap", "settings", "notes", "time")
"""What is made when it is first asked for."""


class Certified:
    """What solutions and plans share: arrays that nobody writes to, and bounds in words."""

    arrays: ClassVar[tuple[str, ...]]
    lower: Array
    upper: Array
    scale: float
    settings: dict[str, Any]

    def __post_init__(self) -> None:
        for name in self.arrays:
            array = self.__dict__.get(name)
            if isinstance(array, np.ndarray):
                array.setflags(write=False)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copies are read-only too."""
        self.__dict__.update(state)
        self.__post_init__()

    @property
    def gap(self) -> float:
        """Largest upper − lower over the states, and the stages of a plan; what is returned is at most this far from optimal."""
        return float((self.upper - self.lower).max())

    @property
    def asked(self) -> Tolerance:
        """The pair (tol, rtol) of the call."""
        return Tolerance.of(self.settings["tol"], self.settings["rtol"])

    @property
    def gap_in_words(self) -> str:
        """The gap, as it is and relative to the scale, and what was asked for."""
        return self.asked.compare(self.gap, self.scale)


@dataclass(frozen=True, eq=False)
class Solution(Certified, Priced):
    """A policy, its certified worst-case value, and the proof of how good it is; signs are the user's.

    Attributes
    ----------
    value : (S,)
        Certified worst-case value of `policy`: upper for costs, lower for rewards.
    policy : (S, A)
        Probabilities of the actions; rows sum to 1, terminal states have zeros.
    lower, upper : (S,)
        Certified bounds on the optimal worst-case value.
    kernel : (S, A, S)
        Nature's side of the saddle point, a mean kernel; of a sparse model it has `.rows(s)`.
    duality_gap : float
        The paper's (DG): upper − lower, weighted by the start distribution.
    status : Status
        How the run ended.
    history : tuple of `Record`
        What it went through.
    settings : dict
        Method, backend, set, tolerance and limits.
    states, actions : sequences
        Names, as in the model.
    fingerprint : str
        Of the model that was solved.
    scale : float
        max(max|value|, max|c|), what a relative gap is relative to.
    seconds, setup_seconds : float
        Time of the run and before it.
    kernels : (N, S, A, S) or None
        The N kernels whose mean is `kernel`, made when asked for; `save` leaves them out.
    weights : (S, N), (S, A, N) or None
        Nature's mixtures where she re-weights the kernels; `save` leaves them out.
    notes : tuple of str
        Those of the model, and what there is to say of this solution: that single kernels are beyond its worst case, if so.
    criterion : str
        What was optimised: "discounted", "total", "reach" or "average".
    time : (S,) or None
        Of a total: certified upper bound on the expected number of steps until a terminal state, whatever nature does; on the expected time, if the model says
        how long steps last.
    bias : (S,) or None
        Of an average: what starting in a state costs more than starting in another.
    """

    value: Array
    policy: Array
    lower: Array
    upper: Array
    kernel: Any
    duality_gap: float
    status: Status
    history: tuple[Record, ...] = field(repr=False)
    settings: dict[str, Any]
    states: Names = field(repr=False)
    actions: tuple[Any, ...] = field(repr=False)
    fingerprint: str
    scale: float
    seconds: float
    setup_seconds: float
    kernels: Any = field(default=None, repr=False)
    weights: Any = field(default=None, repr=False)
    notes: tuple[str, ...] = field(default_factory=tuple)  # no attribute of the class: it may be made later
    criterion: str = "discounted"
    time: Array | None = field(default_factory=lambda: None)  # as the notes
    bias: Array | None = None
    problem: ClassVar[Any] = None  # (model, ball) that were solved, set by `solve`, neither saved nor compared
    sweep: ClassVar[Any] = None  # where the sweep was made that proves it, in costs, and nature's side of it; likewise
    sweeps: ClassVar[Any] = None  # those that prove it from below and from above (`drmdp.solvers.best.Side`); likewise
    rate: ClassVar[float] = 0.0  # what they take off per unit of time; likewise
    held: ClassVar[Any] = None  # of a model that was not read whole: what workers left, and write a proof of; likewise

    arrays = ARRAYS

    @classmethod
    def _of(cls, later: dict[str, Callable[[], Any]], **fields: Any) -> Solution:
        """A solution of its fields, what goes with it, and what makes those of LATER.

        Frozen classes set theirs one by one, which takes as long as a sweep of ten states.
        """
        found = object.__new__(cls)
        found.__setstate__(fields | {"_later": later})
        return found

    def __getattr__(self, name: str) -> Any:
        """What is made later, when it is first asked for."""
        later = self.__dict__.get("_later", {})
        if name not in later:
            raise AttributeError(f"a Solution has no {name!r}")
        made = later[name]()
        if isinstance(made, np.ndarray):
            made.setflags(write=False)
        return self.__dict__.setdefault(name, made)

    def __getstate__(self) -> dict[str, Any]:
        """What a copy needs: what is made later is made now."""
        made = {name: getattr(self, name) for name in LATER}
        return made | {name: value for name, value in self.__dict__.items() if name != "_later"}

    @property
    def tolerance(self) -> float:
        """The gap that was asked for, absolute: `tol`, or `rtol` times the scale."""
        return self.asked.goal(self.scale)

    @property
    def n_iters(self) -> int:
        """Iterations done."""
        return self.history[-1].iteration

    @property
    def kernel_passes(self) -> float:
        """Reads of all N kernels."""
        return self.history[-1].kernel_passes

    def __repr__(self) -> str:
        words = measured(self.criterion, "", "sojourn" in self.settings)
        lines = [
            f"Solution: {self.status} — {self.status.sentence}",
            f"  gap        {self.gap_in_words}, duality gap {self.duality_gap:.3g}",
            f"  value      {_span(self.value)}{', ' if words else ''}{words}",
            f"  work       {count(self.n_iters, 'iteration')}, {self.kernel_passes:.4g} kernel passes, {self.seconds:.3g} s",
            f"  method     {self.settings['method']}, backend {self.settings['backend']}",
            f"  ball       {self.settings['ball']}",
        ]
        return clean("\n".join(lines + [f"  note       {brief(note, 1000)}" for note in self.notes]))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        head = {
            "status": f"{self.status}: {self.status.sentence}",
            "certified gap": self.gap_in_words,
            "work": f"{count(self.n_iters, 'iteration')}, {self.kernel_passes:.4g} kernel passes, {self.seconds:.3g} s",
            "method": f"{self.settings['method']}, backend {self.settings['backend']}",
            "ball": self.settings["ball"],
        } | ({"notes": "; ".join(self.notes)} if self.notes else {})
        rows = [
            (self.states[s], choice(self.policy[s], self.actions), *(f"{x[s]:.6g}" for x in (self.lower, self.upper)))
            for s in range(min(len(self.states), _html.ROWS))
        ]
        columns = ("state", "action", "optimum at least", "at most")
        return _html.facts("Solution", head) + _html.table(columns, rows, len(self.states))

    # ------------------------------------------------------------------ tables and files

    @property
    def q_values(self) -> Array:
        """What each action costs (earns) under `kernel` if the policy is played afterwards, (S, A); NaN where it is not available."""
        from drmdp.policies import tables

        return tables.q_values(self)

    def to_frame(self, model: Model | None = None) -> Any:
        """A polars table with the columns state, action, probability, value, lower, upper, nominal_value: a row for each action that is played.

        The nominal value is that of the policy under the mean kernel. If the model has counts, the column rows tells on how many observed transitions the
        action rests. A solution that was loaded needs the model for both.

        Parameters
        ----------
        model : Model, optional
            The model that was solved, for a solution that was loaded.
        """
        from drmdp.policies import tables

        return tables.to_frame(self, model)

    def to_dict(self) -> dict[Any, Any]:
        """The policy as {state: action}, or {state: {action: probability}} where it draws; states without actions are left out."""
        from drmdp.solution.tables import choices

        return choices(self.states, self.actions, self.policy)

    def report(
        self,
        path: str | os.PathLike[str],
        sweep: RadiusPath | None = None,
        *,
        model: Model | None = None,
        ball: AmbiguitySet | None = None,
        title: str | None = None,
        command: str | None = None,
        baseline: Any = None,
        unit: str = "",
    ) -> None:
        """Write one self-contained HTML page: what to do, what it costs and how sure that is, then policy, nature and radii, and an appendix for a referee.

        The page needs no network and no script. What changes with the radius is that of `sweep`, a `drmdp.radius.path`; the policy is compared with
        `baseline` and with the one that is best for the mean kernel, which is solved for that, unless the model has more than ten million probabilities. Needs
        the extra `report`.

        Parameters
        ----------
        path : path
            Written completely or not at all.
        sweep : `drmdp.radius.Path`, optional
            What changes with the radius.
        model, ball : optional
            For a solution that was loaded: it does not hold them. What the page leaves out without them, it says.
        title : str, optional
            Of the page.
        command : str, optional
            How the result was made, shown for whoever wants it again.
        baseline : policy, optional
            Current practice, in any form that `Model.policy` takes.
        unit : str
            Of costs and rewards, as in "€".
        """
        from drmdp.report import write

        write(self, path, sweep, model=model, ball=ball, title=title, command=command, baseline=baseline, unit=unit)

    def proof(self, path: str | os.PathLike[str]) -> int:
        """Write what is needed to check the bounds, and return its bytes; `drmdp verify` and `python -m drmdp_check` read it.

        It is made of what `solve` found: a solution that was loaded has no witnesses any more. Where a cluster solved it, its workers write
        it, into a folder that all of them see; every rank of an MPI job calls this.

        Parameters
        ----------
        path : path
            Where to write it.
        """
        from drmdp import proof

        return proof.write(path, self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to an .npz file, completely or not at all; the model is not stored, only its fingerprint.

        Parameters
        ----------
        path : path
            An .npz file.
        """
        from drmdp.solution import file as saved

        check_target(path)
        saved.write(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Solution:
        """Read what `save` wrote, or a folder that `solve` made (`out`), whose arrays stay in their files.

        An `InputError` says what anything else is, and nothing in it is ever run.

        Parameters
        ----------
        path : path
            An .npz file, or a folder.
        """
        from drmdp.solution import file as saved

        check_path(path)
        with naming(path):
            if os.path.isdir(path):
                from drmdp.cluster import results

                return results.load(path)
            return saved.read(path)


def check_target(path: str | os.PathLike[str]) -> None:
    """Raise `InputError` if a solution cannot be saved at the path."""
    check_suffix(path, (".npz",), "a solution is saved in an .npz file")
    check_file(path)


def check_solution(given: Any, name: str = "solution") -> None:
    """Refuse what is not a solution."""
    if not isinstance(given, Solution):
        raise InputError(f"{name}: expected a drmdp.Solution, got {described(given)}")


SELDOM = 0.005
"""Actions of a smaller share are not named."""


def likeliest(row: Array) -> list[int]:
    """Up to four actions that a state plays, not just now and then, likeliest first."""
    return [a for a in (-row).argsort(kind="stable")[:4].tolist() if row[a] >= SELDOM]


def choice(row: Array, actions: Any) -> str:
    """Name the action of a state, or its actions with their shares, likeliest first."""
    played = [(float(row[a]), str(actions[a])) for a in likeliest(row)]
    if not played:
        return "(end)"
    if len(played) == 1:
        return played[0][1]
    return ", ".join(f"{name} {share:.0%}" for share, name in played[:3]) + (", …" if len(played) > 3 else "")


def _span(values: Array) -> str:
    lo, hi = float(values.min()) + 0.0, float(values.max()) + 0.0  # never −0
    return f"{lo:.6g}" if math.isclose(lo, hi) else f"{lo:.6g} … {hi:.6g} over {values.size} states"
