"""Solutions: status, history, policy and certified bounds."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from drmdp._typing import Array
from drmdp.core.cached import cached_property
from drmdp.core.tolerance import Tolerance
from drmdp.core.validation import Names
from drmdp.errors import InputError, brief, clean, described
from drmdp.io.files import check_file, check_path, check_suffix, naming
from drmdp.ui import html as _html
from drmdp.ui.text import count, measured

if TYPE_CHECKING:
    from drmdp.model import Model
    from drmdp.radius import RadiusPath
    from drmdp.sets import AmbiguitySet


class Status(StrEnum):
    """How a run ended: "solved", "iteration_limit", "time_limit", "precision_limit", "diverged",
    "unbounded", "interrupted" or "stopped".
    """

    sentence: str
    """What it means, in words."""

    def __new__(cls, value: str, sentence: str = "") -> Status:
        """A member of its text, with a sentence."""
        status = str.__new__(cls, value)
        status._value_, status.sentence = value, sentence
        return status

    solved = "solved", "the certified gap is within the tolerance"
    iteration_limit = "iteration_limit", "the iteration limit was reached; the bounds hold"
    time_limit = "time_limit", "the time limit was reached; the bounds hold"
    precision_limit = (
        "precision_limit",
        "double precision or the operator's own accuracy allows no smaller gap; the bounds hold",
    )
    diverged = "diverged", "the iterates diverged; the bounds are those of the best iterate"
    unbounded = (
        "unbounded",
        "no bound holds in some states: nature can keep the process from ending, or costs fall for "
        "ever",
    )
    interrupted = "interrupted", "interrupted; the bounds hold"
    stopped = (
        "stopped",
        "stopped by the callback, or where the rule asked for (`stop`) holds; the bounds hold",
    )


PRECISE = 1e-9
"""A gap of at most this share of the scale is a success where double precision allows no smaller
one.
"""


def reached(result: Any) -> bool:
    """Whether a result, with `status`, `gap` and `scale`, is solved, or as near as double precision
    allows and near enough.
    """
    if result.status is Status.precision_limit:
        return bool(result.gap <= PRECISE * result.scale)
    return result.status is Status.solved


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


LATER = ("kernel", "fingerprint", "duality_gap", "settings", "notes", "time")
"""Fields that are made when they are first read."""


class Certified:
    """Solutions and plans: arrays that are read-only, bounds in words, prices of doubt."""

    arrays: ClassVar[tuple[str, ...]]
    lower: Array
    upper: Array
    status: Status
    scale: float
    settings: dict[str, Any]
    notes: tuple[str, ...]

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
        """Largest upper − lower over the states, and the stages of a plan; what is returned is at
        most this far from optimal.
        """
        return float((self.upper - self.lower).max())

    @property
    def asked(self) -> Tolerance:
        """The pair (tol, rtol) of the call."""
        return Tolerance.of(self.settings["tol"], self.settings["rtol"])

    @property
    def gap_in_words(self) -> str:
        """The gap, as it is and relative to the scale, and the tolerance."""
        return self.asked.compare(self.gap, self.scale)

    def _lines(self, status: str, facts: dict[str, str]) -> str:
        """The status and facts, a line each, and the notes."""
        lines = [f"{type(self).__name__}: {self.status} — {status}"]
        lines += [f"  {name:10} {text}" for name, text in facts.items()]
        lines += [f"  note       {brief(note, 1000)}" for note in self.notes]
        return clean("\n".join(lines))

    @property
    def _answer(self) -> dict[str, str]:
        """What a probability is of, in words; nothing of costs."""
        known = self.settings
        return {"answer": str(known["answer"])} if "answer" in known else {}

    @cached_property
    def prices(self) -> Array:
        """Derivative of initial · value by the radius of each state, (S,), or pair, (S, A).

        What a little more doubt there costs: the difference to a radius that is larger by 1e-5 of
        it, weighted with the visits of the policy under nature's kernel. It is 0 where doubt costs
        nothing, and infinite where a divergence has radius 0. For rewards, and for a nature that
        helps, the sign is the other one. Of "cvar" it is the derivative by the level, of which less
        is more doubt. It takes two sweeps and a linear system, once. See `drmdp.plot.prices`.

        Of a plan it is by stage, (T, S) or (T, S, A), and takes two sweeps for each; the sum over
        the stages is the price of a radius that all of them share.
        """
        from drmdp.policies import radius_prices

        return radius_prices.priced(self)

    @cached_property
    def prices_less(self) -> Array:
        """The same to a smaller radius: what a little less doubt saves.

        Against an adversarial nature it is never less than `prices`, in size; where it is more, her
        answer or the policy turns at this radius. Infinite at radius 0, which cannot be less, where
        more doubt would cost something.
        """
        from drmdp.policies import radius_prices

        return radius_prices.less(self)

    # ------------------------------------------------------------------ files

    def proof(self, path: str | os.PathLike[str]) -> int:
        """Write what is needed to check the bounds, and return its bytes; `drmdp verify` and
        `python -m drmdp_check` read it.

        It is made of what `solve` found: a solution that was loaded has no witnesses any more. Of a
        plan every stage is swept again. Where a cluster solved it, its workers write it, into a
        folder that all of them see; every rank of an MPI job calls this.

        Parameters
        ----------
        path : path
            Where to write it.
        """
        from drmdp import proof

        write = proof.write if isinstance(self, Solution) else proof.write_plan
        return write(path, self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to an .npz file, completely or not at all; models and sets are not stored, only the
        fingerprints of models. Nature's kernels of a plan are while they are not too many.

        Parameters
        ----------
        path : path
            An .npz file.
        """
        from drmdp.solution import file as saved

        check_target(path)
        saved.write(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote, or of a solution a folder that `solve` made (`out`), whose arrays
        stay in their files.

        An `InputError` says what anything else is, and nothing in it is ever run.

        Parameters
        ----------
        path : path
            An .npz file, or a folder.
        """
        from drmdp.solution import file as saved

        check_path(path)
        with naming(path):
            if issubclass(cls, Solution) and os.path.isdir(path):
                from drmdp.cluster import results

                return results.load(path)  # type: ignore[return-value]
            return saved.read(path, cls)  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Solution(Certified):
    """A policy, its certified worst-case value, and the proof of how good it is; signs are the
    user's.

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
        Those of the model, and what there is to say of this solution: that single kernels are
        beyond its worst case, if so.
    criterion : str
        What was optimised: "discounted", "total", "reach" or "average".
    time : (S,) or None
        Of a total: certified upper bound on the expected number of steps until a terminal state,
        whatever nature does; on the expected time, if the model says how long steps last.
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
    # no attributes of the class: they may be made later
    notes: tuple[str, ...] = field(default_factory=tuple)
    criterion: str = "discounted"
    time: Array | None = field(default_factory=lambda: None)
    bias: Array | None = None

    # set by `solve`, neither saved nor compared
    problem: ClassVar[Any] = None  # (model, ambiguity)
    sweep: ClassVar[Any] = None  # where the sweep was made that proves it, and nature's side of it
    sweeps: ClassVar[Any] = None  # those that prove it from below and above (`incumbent.Side`)
    rate: ClassVar[float] = 0.0  # costs that they take off per unit of time
    held: ClassVar[Any] = None  # of a model that was not read whole: what workers prove

    arrays = ("value", "policy", "lower", "upper", "kernel")

    @classmethod
    def _of(cls, later: dict[str, Callable[[], Any]], **fields: Any) -> Solution:
        """A solution of its fields, and of functions that make those of LATER.

        Frozen classes set theirs one by one, which takes as long as a sweep of ten states.
        """
        solution = object.__new__(cls)
        solution.__setstate__(fields | {"_later": later})
        return solution

    def __getattr__(self, name: str) -> Any:
        """A field of LATER, made when it is first read."""
        later = self.__dict__.get("_later", {})
        if name not in later:
            raise AttributeError(f"a Solution has no {name!r}")
        value = later[name]()
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        return self.__dict__.setdefault(name, value)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *LATER]

    def __getstate__(self) -> dict[str, Any]:
        """All fields, those of LATER made now."""
        later = {name: getattr(self, name) for name in LATER}
        return later | {name: value for name, value in self.__dict__.items() if name != "_later"}

    @property
    def tolerance(self) -> float:
        """The gap that was asked for, absolute: `tol`, or `rtol` times the scale."""
        return self.asked.goal(self.scale)

    @property
    def status_in_words(self) -> str:
        """What the status means, by the stopping rule of the run."""
        if self.status is Status.solved and self._weighted:
            return "(DG), the gap weighted by the start distribution, is within the tolerance"
        return self.status.sentence

    @property
    def _weighted(self) -> bool:
        """Whether the rule that was asked for is (DG)."""
        return bool(self.settings.get("stop") == "duality-gap")

    @property
    def gap_in_words(self) -> str:
        """The gap of the rule that was asked for beside the tolerance; with (DG), the other too."""
        if not self._weighted:
            return super().gap_in_words
        asked = self.asked.compare(self.duality_gap, self.scale)
        return f"(DG) {asked}; in the worst state {self.gap:.3g}"

    @property
    def gaps_in_words(self) -> str:
        """The same, and (DG) in any case."""
        more = "" if self._weighted else f", duality gap {self.duality_gap:.3g}"
        return f"{self.gap_in_words}{more}"

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
        value = self.value.round(12) if self.criterion == "reach" else self.value
        facts = {**self._answer, "gap": self.gaps_in_words}
        facts["value"] = f"{_span(value)}{', ' if words else ''}{words}"
        facts |= {**self._run, "set": self.settings["ambiguity"]}
        return self._lines(self.status_in_words, facts)

    @property
    def _run(self) -> dict[str, str]:
        """Iterations, kernel passes and seconds; method and backend."""
        passes = f"{self.kernel_passes:.4g} kernel passes"
        work = f"{count(self.n_iters, 'iteration')}, {passes}, {self.seconds:.3g} s"
        method = f"{self.settings['method']}, backend {self.settings['backend']}"
        return {"work": work, "method": method}

    def _repr_html_(self) -> str:
        """The solution in a notebook."""
        head = {"status": f"{self.status}: {self.status_in_words}"}
        head |= {**self._answer, "certified gap": self.gap_in_words, **self._run}
        head |= {"ambiguity": self.settings["ambiguity"]}
        head |= {"notes": "; ".join(self.notes)} if self.notes else {}
        rows = []
        for s in range(min(len(self.states), _html.ROWS)):
            bounds = (f"{x[s]:.6g}" for x in (self.lower, self.upper))
            rows.append((self.states[s], choice(self.policy[s], self.actions), *bounds))
        columns = ("state", "action", "optimum at least", "at most")
        return _html.facts("Solution", head) + _html.table(columns, rows, len(self.states))

    # ------------------------------------------------------------------ tables and files

    @property
    def q_values(self) -> Array:
        """Cost (reward) of each action under `kernel` if the policy is played afterwards, (S, A);
        NaN where it is not available.
        """
        from drmdp.policies.values import q_values

        return q_values(self)

    def to_frame(self, model: Model | None = None) -> Any:
        """A polars table with the columns state, action, probability, value, lower, upper,
        nominal_value: a row for each action that is played.

        The nominal value is that of the policy under the mean kernel. If the model has counts, the
        column rows tells on how many observed transitions the action rests. A solution that was
        loaded needs the model for both.

        Parameters
        ----------
        model : Model, optional
            The model that was solved, for a solution that was loaded.
        """
        from drmdp.policies.values import to_frame

        return to_frame(self, model)

    def to_dict(self) -> dict[Any, Any]:
        """The policy as {state: action}, or {state: {action: probability}} where it draws; states
        without actions are left out.
        """
        from drmdp.solution.rows import choices

        return choices(self.states, self.actions, self.policy)

    def report(
        self,
        path: str | os.PathLike[str],
        sweep: RadiusPath | None = None,
        *,
        model: Model | None = None,
        ambiguity: AmbiguitySet | None = None,
        title: str | None = None,
        command: str | None = None,
        baseline: Any = None,
        unit: str = "",
    ) -> None:
        """Write one self-contained HTML page: what to do, what it costs and how sure that is, then
        policy, nature and radii, and an appendix for a referee.

        The page needs no network and no script. What changes with the radius is that of `sweep`, a
        `drmdp.radius.path`; the policy is compared with `baseline` and with the one that is best
        for the mean kernel, which is solved for that, unless the model has more than ten million
        probabilities. Needs the extra `report`.

        Parameters
        ----------
        path : path
            Written completely or not at all.
        sweep : `drmdp.radius.RadiusPath`, optional
            What changes with the radius.
        model, ambiguity : optional
            For a solution that was loaded: it does not hold them. What the page leaves out without
            them, it says.
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

        about: Any = {"title": title, "command": command, "baseline": baseline, "unit": unit}
        write(self, path, sweep, model=model, ambiguity=ambiguity, **about)


def check_target(path: str | os.PathLike[str]) -> None:
    """Raise `InputError` if a solution cannot be saved at the path."""
    check_suffix(path, (".npz",), "a solution is saved in an .npz file")
    check_file(path)


def check_solution(solution: Any, name: str = "solution") -> None:
    """Refuse what is not a solution."""
    if not isinstance(solution, Solution):
        raise InputError(f"{name}: expected a drmdp.Solution, got {described(solution)}")


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
    shares = [f"{name} {share:.0%}" for share, name in played[:3]]
    return ", ".join(shares + ["…"] * (len(played) > 3))


def _span(values: Array) -> str:
    lo, hi = float(values.min()) + 0.0, float(values.max()) + 0.0  # never −0
    return f"{lo:.6g}" if math.isclose(lo, hi) else f"{lo:.6g} … {hi:.6g} over {values.size} states"
