"""Plans over finitely many stages, how they are shown and saved."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from drmdp._typing import Array
from drmdp.core.validation import Names, integer
from drmdp.errors import InputError
from drmdp.solution import rows as tables
from drmdp.solution.results import Certified, Status, choice
from drmdp.ui import html as _html
from drmdp.ui.text import count, digits
from drmdp.ui.text import discount as discount_text


@dataclass(frozen=True, eq=False)
class HorizonSolution(Certified):
    """Policies and certified values of T stages, stage 0 first; signs are the user's.

    Attributes
    ----------
    value : (T + 1, S)
        Certified worst-case value of the policies from each stage on; the last row are the final
        values.
    policy : (T, S, A)
        Probabilities of the actions at each stage.
    lower, upper : (T + 1, S)
        Bounds on the optimum, or on the worst case of a plan that was given.
    kernel_passes : float
        Reads of all N kernels.
    status : Status
        How the run ended.
    scale : float
        max(max|value|, max|c|), what a relative gap is relative to.
    states, actions : sequences
        Names, as in the models.
    initial : (S,)
        Distribution of the first state.
    discount : float
        Of the stages, 1 included.
    maximise : bool
        Whether values are rewards.
    optimal : bool
        Whether the plan was sought, or given to `drmdp.evaluate`.
    certain : bool
        Whether no doubt about the data was considered, as at radius 0.
    settings : dict
        Sets, nature, backend, tolerance and limit.
    fingerprints : tuple of str
        Of the models as they were given: one, or one a stage.
    notes : tuple of str
        Those of the models and sets.
    seconds : float
        Time of the run.
    costs : (T, S, A), (T, S, A, S) or None
        Costs of the stages, if they were given apart from the models.
    kernels : sequence
        Nature's T mean kernels, each made when it is asked for.
    """

    value: Array
    policy: Array
    lower: Array
    upper: Array
    kernel_passes: float
    status: Status
    scale: float
    states: Names = field(repr=False)
    actions: tuple[Any, ...] = field(repr=False)
    initial: Array
    discount: float
    maximise: bool
    optimal: bool
    certain: bool
    settings: dict[str, Any]
    fingerprints: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: float
    costs: Any = None
    kernels: Any = field(default=None, repr=False)
    natures: ClassVar[Any] = None  # what makes them, set by `finite_horizon`, not saved

    arrays = ("value", "policy", "lower", "upper", "initial", "costs")

    @property
    def n_stages(self) -> int:
        """T, how many decisions."""
        return len(self.policy)

    @property
    def stage_names(self) -> list[str] | None:
        """Names of the stages, if they have any."""
        return self.settings.get("stage_names")

    @property
    def half_cycle(self) -> bool:
        """Whether half of each stage is spent in the state after it."""
        return bool(self.settings.get("half_cycle", False))

    def stage_name(self, t: int) -> str:
        """The name of stage t."""
        return f"stage {t}" if self.stage_names is None else self.stage_names[t]

    @property
    def stage_labels(self) -> tuple[str, list[str]]:
        """A word for stages, and what they are called beside it: ("age", ["40", "41", …])."""
        names = [self.stage_name(t) for t in range(self.n_stages)]
        words = {name.rpartition(" ")[0] for name in names}
        if len(words) > 1 or "" in words:
            return "stage", names
        return words.pop(), [name.rpartition(" ")[2] for name in names]

    def _number(self, stage: int | str) -> int:
        names = self.stage_names or []
        if not isinstance(stage, str):
            return integer("stage", stage, 0, self.n_stages - 1)
        if stage not in names:
            known = ", ".join(names) or "its numbers"
            raise InputError(f"stage: expected one of {known}, got {stage!r}")
        return names.index(stage)

    @property
    def final(self) -> Array:
        """Values after the last stage, (S,)."""
        return np.asarray(self.value[-1])

    @property
    def noun(self) -> str:
        """The noun of values: probability, reward or cost."""
        if self.settings.get("criterion") == "reach":
            return "probability"
        return "reward" if self.maximise else "cost"

    @property
    def value_noun(self) -> str:
        """The noun of values, with their case."""
        if self.certain:
            return f"{self.noun} under the mean kernel"
        return f"{'best' if self.settings['nature'] == 'cooperative' else 'worst'}-case {self.noun}"

    def digits(self, value: float) -> str:
        """A value in six digits, without what is rounding of a probability."""
        return digits(value, self.settings.get("criterion", ""))

    @property
    def value_in_words(self) -> str:
        """The value of the first stage, over the start distribution."""
        value = float(self.initial @ self.value[0])
        return f"{self.digits(value)} {self.value_noun}, mean over the start distribution"

    @property
    def ambiguity_in_words(self) -> str:
        """The set, or the first and the last of them."""
        sets = self.settings["sets"]
        return str(sets[0]) if len(sets) == 1 else f"{sets[0]} … {sets[-1]}, one a stage"

    def kernel(self, stage: int | str) -> Any:
        """Nature's mean kernel (S, A, S) at a stage: her side of the saddle point, or her best
        response to a plan that was given.

        It is made by sweeping the stage again; of a sparse model it has `.rows(s)`.

        Parameters
        ----------
        stage : int or str
            From 0, the first decision, or its name.
        """
        t = self._number(stage)
        if self.kernels is None:
            why = "the file holds no kernels, for they were too many"
            cure = "`drmdp.evaluate(model, ambiguity, plan)` makes them again"
            raise InputError(f"kernel: {why}; {cure}")
        return self.kernels[t]

    def __repr__(self) -> str:
        nouns = zip(self.policy.shape, ("stage", "state", "action"), strict=True)
        sizes = " × ".join(count(n, noun) for n, noun in nouns)
        names, source = self.stage_names, "optimised" if self.optimal else "given"
        facts = {"plan": f"{sizes}, discount {discount_text(self.discount)}, {source}"}
        facts |= {} if names is None else {"stages": f"{names[0]} … {names[-1]}"}
        facts |= self._answer
        facts |= {"value": self.value_in_words, "gap": self.gap_in_words}
        facts["work"] = f"{self.kernel_passes:.4g} kernel passes, {self.seconds:.3g} s"
        return self._lines(self.status.sentence, facts | {"set": self.ambiguity_in_words})

    def _repr_html_(self) -> str:
        """The solution in a notebook."""
        first, *others = repr(self).splitlines()
        head = {line[2:11].strip(): line[11:].strip() for line in others}
        rows = []
        for s in range(min(len(self.states), _html.ROWS)):
            actions = (choice(self.policy[t, s], self.actions) for t in self._shown)
            rows.append((self.states[s], *actions, self.digits(self.value[0, s])))
        columns = ("state", *map(self.stage_name, self._shown), self.value_noun)
        return _html.facts(first, head) + _html.table(columns, rows, len(self.states))

    @property
    def _shown(self) -> list[int]:
        """First, middle and last stages."""
        T = self.n_stages
        return sorted({0, T // 4, T // 2, 3 * T // 4, T - 1})

    # ------------------------------------------------------------------ tables and files

    def to_frame(self) -> Any:
        """A polars table with the columns stage, state, action, probability, value, lower, upper: a
        row for each action that is played.

        If stages have names, the column stage_name is the second. If the models have counts, the
        column rows tells on how many observed transitions it rests, unless the plan was loaded.
        """
        values = {name: getattr(self, name)[:-1] for name in ("value", "lower", "upper")}
        rows, names = self._pair_counts, self.stage_names
        return tables.frame(self.states, self.actions, self.policy, values, rows, names)

    @property
    def _pair_counts(self) -> Array | None:
        """Observed transitions of each pair, (T, S, A); None if they are not known."""
        given = () if self.natures is None else self.natures.stages.given
        counts = [model.pair_counts for model in given] or [None]
        return None if any(table is None for table in counts) else np.stack(counts)

    def to_dict(self, stage: int | str) -> dict[Any, Any]:
        """The policy of a stage as {state: action}, or {state: {action: probability}} where it
        draws.
        """
        return tables.choices(self.states, self.actions, self.policy[self._number(stage)])

    def report(
        self,
        path: str | os.PathLike[str],
        title: str | None = None,
        command: str | None = None,
        *,
        models: Any = None,
        ambiguity: Any = None,
        baseline: Any = None,
        unit: str = "",
        sweep: Mapping[float, HorizonSolution] | None = None,
    ) -> None:
        """Write one self-contained HTML page about the plan; it needs no network and no script, and
        the extra `report`.

        The plan is compared with `baseline` and with the one that is best for the mean kernels,
        which is made for that, unless the models are very large.

        Parameters
        ----------
        path : path
            Written completely or not at all.
        title : str, optional
            Of the page.
        command : str, optional
            How the result was made, shown for whoever wants it again.
        models, ambiguity : optional
            For a plan that was loaded: it does not hold them. What needs them is left out of the
            page otherwise.
        baseline : plan or policy, optional
            Current practice, in any form that `drmdp.evaluate` takes.
        unit : str
            Of costs and rewards, as in "€".
        sweep : mapping, optional
            Plans of other radii for the same models, {radius: plan}: the page can be switched
            between them.
        """
        from drmdp.report import write_plan

        about: Any = {"models": models, "ambiguity": ambiguity, "baseline": baseline}
        about |= {"title": title, "command": command, "unit": unit, "sweep": sweep}
        write_plan(self, path, **about)
