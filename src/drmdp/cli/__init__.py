"""The command line: make a problem (`drmdp instance`), solve it (`drmdp solve`), judge a policy (`drmdp evaluate`).

Exit codes: 0 solved, or as near as double precision allows and within a billionth; 2 bad input, with one line on standard error; 3 a
limit was reached and 130 interrupted, both with the result printed and written all the same. With ``--json``, standard output is one JSON document.
"""

from __future__ import annotations

import inspect
import io
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from drmdp._version import __version__
from drmdp.cli import bench as cli_bench
from drmdp.cli import check as cli_check
from drmdp.cli import data as cli_data
from drmdp.cli import horizon as cli_horizon
from drmdp.cli import policy as cli_policy
from drmdp.cli import report as cli_report
from drmdp.cli import reproduce as cli_study
from drmdp.cli import sweep as cli_radius
from drmdp.cli.options import (
    BAD_INPUT,
    FAULT,
    INTERRUPTED,
    MAX_SECONDS,
    PROGRESS,
    RADIUS,
    THREADS,
    ball_of,
    check_outputs,
    columns,
    common,
    console,
    exit_code,
    grid,
    named,
    notices,
    paths,
    print_json,
    problem,
    read_policy,
    said,
    sizes,
)
from drmdp.cli.screen import say
from drmdp.cli.words import spoken
from drmdp.core.interrupts import terminated_like_interrupted
from drmdp.core.progress import on_command_line, stage
from drmdp.core.text import count
from drmdp.errors import InputError, MissingExtra, brief

if TYPE_CHECKING:
    from drmdp.model import Model
    from drmdp.sets import Wasserstein

BACKEND = click.option("--backend", help="How the robust Bellman operator is computed; chosen for you by default.")
TRACEBACK = "DRMDP_TRACEBACK"
LONGEST = 2000
"""Characters of a message."""
ROWS = 12
"""States shown in a table."""


class _Group(click.Group):
    """A group whose errors are one line and whose exit code is what a command returns."""

    def main(self, *args: Any, **settings: Any) -> NoReturn:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # names and symbols that the terminal lacks are no failure
        settings |= {"prog_name": "drmdp", "standalone_mode": False}
        try:
            with notices(), on_command_line(), terminated_like_interrupted():
                sys.exit(super().main(*args, **settings))
        except click.Abort:
            _fail("interrupted", INTERRUPTED)
        except click.ClickException as error:
            _fail(error.format_message())
        except (InputError, MissingExtra) as error:
            _fail(str(error))
        except OSError as error:
            _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        except MemoryError as error:
            _fail(f"not enough memory: {error}" if str(error) else "not enough memory")
        except Exception as error:
            if os.environ.get(TRACEBACK):
                raise
            _fail(f"{type(error).__name__}: {error}; a fault of drmdp: with {TRACEBACK}=1 it shows where", FAULT)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what it complains of is said in its options."""
        try:
            return super().invoke(ctx)
        except InputError as error:
            command = self.commands.get(ctx.invoked_subcommand or "")
            raise InputError(spoken(str(error), command, cli_data.convert)) from None


def _fail(message: str, code: int = BAD_INPUT) -> NoReturn:
    say(f"drmdp: error: {brief(message, LONGEST)}", err=True)
    sys.exit(code)


@click.group(cls=_Group, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def main(context: click.Context) -> None:
    """Solve Markov decision processes against the worst kernel in a Wasserstein ball, with a proof of how well.

    Exit codes: 0 solved, or as near as double precision allows and within a billionth, 2 bad input, 3 a limit was reached, 130
    interrupted. In the last two cases the result is printed and written all the same.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


# ---------------------------------------------------------------------- instance


def _branching(context: click.Context, option: click.Parameter, text: str | None) -> float | int | None:
    if text is None:
        return None
    try:
        return float(text) if any(mark in text for mark in ".eE") else int(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is neither a share such as 0.2 nor a number of next states") from None


@main.command()
@click.argument("family")
@click.option("--states", "n_states", type=int, required=True, help="Number of states.")
@click.option("--actions", "n_actions", type=int, help="Number of actions (garnet: as many as states; grid: 4).")
@click.option("--kernels", "n_kernels", type=int, help="Number of kernels, sampled around the nominal one if need be.")
@click.option("--branching", callback=_branching, help="Next states of a pair in garnet: 0.2 is a share, 8 a number.")
@click.option("--rewards", is_flag=True, default=None, help="Garnet with rewards in [0, 10], not costs.")
@click.option("--seed", type=int, help="Of everything random; 0 by default.")
@click.option("--discount", type=float, help="In [0, 1); each family has its own.")
@click.option("--sparse", is_flag=True, help="Store the kernels as sparse ones.")
@click.option("--out", required=True, help="File to write: .npz, or .drmdp for a directory of mapped arrays.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@PROGRESS
def instance(family: str, n_states: int, sparse: bool, out: str, as_json: bool, **given: Any) -> None:
    """Write a test problem.

    FAMILY is garnet, machine, forest, ring, cycle, grid or reservoir.
    """
    from drmdp import formats

    formats.check_target(out)
    with stage("making the instance"):
        model = _build(family, n_states, sparse, {name: value for name, value in given.items() if value is not None})
    formats.write(model, out)
    if as_json:
        print_json({"path": out, **sizes(model)})
    else:
        say(f"{model!r}\nwritten to {out}")


def _build(family: str, n_states: int, sparse: bool, given: dict[str, Any]) -> Model:
    """Call a family with the options it knows; sample kernels around a model that has but one."""
    from drmdp.instances import FAMILIES, perturb

    if family not in FAMILIES:
        raise InputError(f"unknown family {family!r}; known: {', '.join(FAMILIES)}")
    known = inspect.signature(FAMILIES[family]).parameters
    if "n_actions" in known and known["n_actions"].default is inspect.Parameter.empty:
        given = {"n_actions": n_states, **given}
    own = {name: value for name, value in given.items() if name in known}
    extra = {name: value for name, value in given.items() if name == "n_kernels" and name not in known}
    if extra and "seed" in given:
        extra["seed"] = given["seed"]
    for name in sorted(given.keys() - own.keys() - extra.keys()):
        hint = " unless --kernels are sampled" if name == "seed" else ""
        raise InputError(f"{family} has no --{name.removeprefix('n_')}{hint}")
    model = FAMILIES[family](n_states, sparse=sparse, **own)
    return perturb(model, **extra) if extra else model


# ---------------------------------------------------------------------- solve and evaluate


@main.command()
@click.argument("model_path", metavar="MODEL")
@common
@RADIUS
@BACKEND
@click.option("--method", default="auto", show_default=True, help="auto or a name in drmdp.METHODS.")
@click.option("--max-iters", type=int, help="Stop after so many iterations.")
@MAX_SECONDS
@THREADS
@click.option("--start", help="Saved solution to begin from.")
@click.option("--out", help="Save the solution here (.npz).")
@click.option("--report", help="Write a page about the solution here (.html); needs the extra `report`.")
@click.option(
    "--report-radii",
    type=int,
    help="Radii of its curve, up to twice the ball's; 11, or 0 for large models, by default.",
)
def solve(
    model_path: str,
    discount: float | None,
    backend: str | None,
    tol: float | None,
    rtol: float,
    as_json: bool,
    method: str,
    max_iters: int | None,
    max_seconds: float | None,
    threads: int | None,
    start: str | None,
    out: str | None,
    report: str | None,
    report_radii: int | None,
    **region: Any,
) -> int:
    """Find the policy with the best worst case.

    MODEL is an .npz file, a .drmdp directory, a craam .csv file or a PRISM .tra file.
    """
    ball = ball_of(**region)
    from drmdp import api, formats
    from drmdp.core import clock
    from drmdp.solution import Solution, check_target, reached
    from drmdp.solvers.registry import resolve

    if out is not None:
        check_target(out)
    cli_report.check(report, report_radii)
    outputs = {"--out": paths(out), "--report": paths(report)}
    check_outputs(outputs, {"MODEL": formats.files_of(model_path), "--start": paths(start)})

    name, chosen = resolve(method)
    model = formats.read(model_path, discount=discount)
    first = None if start is None else Solution.load(start)
    deadline = clock.deadline(max_seconds)
    with stage("solving", hint="Ctrl-C stops early and keeps the best result so far."):
        solution = api.solve(
            model, ball, chosen, tol, rtol, max_iters=max_iters, max_seconds=max_seconds, start=first, threads=threads,
            backend=backend,
        )  # fmt: skip
    try:
        if out is not None:
            solution.save(out)
        if report is not None:
            cli_report.write(model, ball, solution, report, report_radii, deadline)
    finally:  # a full disk must not cost the result as well
        if as_json:
            names = (
                "status",
                "gap",
                "duality_gap",
                "scale",
                "seconds",
                "setup_seconds",
                "compile_seconds",
                "n_iters",
                "kernel_passes",
                "value",
                "lower",
                "upper",
            )
            fields = {name: getattr(solution, name) for name in (*names, "policy", "settings")}
            print_json({**fields, **named(model, ball)})
        else:
            work = f"{count(solution.n_iters, 'iteration')}, {solution.kernel_passes:.4g} kernel passes"
            lines = {
                "Status": f"{solution.status}: {solution.status.sentence}",
                "Gap": f"{solution.gap_in_words}, duality gap {solution.duality_gap:.2e}",
                "Work": f"{solution.time_in_words}, {work}, {name}, backend {solution.settings['backend']}",
            }
            if out is not None:
                lines["Saved"] = out
            if report is not None:
                lines["Report"] = report
            limit = ("at most", solution.upper) if model.maximise else ("at least", solution.lower)
            figures = {_worst(model): solution.value, f"optimum {limit[0]}": limit[1]}
            _print_summary(model, ball, lines, solution.policy, solution.value, figures)
    return exit_code(solution.status, reached(solution))


@main.command()
@click.argument("model_path", metavar="MODEL")
@click.argument("policy_path", metavar="POLICY")
@common
@RADIUS
@BACKEND
@MAX_SECONDS
@THREADS
def evaluate(
    model_path: str,
    policy_path: str,
    discount: float | None,
    backend: str | None,
    tol: float | None,
    rtol: float,
    as_json: bool,
    max_seconds: float | None,
    threads: int | None,
    **region: Any,
) -> int:
    """Bound the worst-case value of a policy.

    MODEL is read as by `drmdp solve`. POLICY is a saved solution (.npz), or a .json file that maps every
    state to an action, or to probabilities of actions: {"1": "repair", "2": {"repair": 0.6, "no repair": 0.4}}.
    """
    from drmdp import api, formats
    from drmdp.core import clock
    from drmdp.core.tolerance import Tolerance
    from drmdp.solution import reached, time_in_words

    ball = ball_of(**region)
    model = formats.read(model_path, discount=discount)
    policy = read_policy(policy_path, model)
    backend = backend or api.DEFAULT_BACKEND
    begin, compiled = clock.now(), clock.compiled()
    found = api.evaluate(model, ball, policy, tol, rtol, backend, max_seconds, threads)
    seconds, compiled = clock.now() - begin, clock.compiled() - compiled
    if as_json:
        fields = ("status", "gap", "scale", "value", "lower", "upper")
        document: dict[str, Any] = {name: getattr(found, name) for name in fields}
        settings = {"ball": repr(ball), "tol": tol, "rtol": rtol, "backend": backend, "policy": policy_path}
        document |= {"seconds": seconds, "compile_seconds": compiled}
        print_json({**document, "policy": policy, "settings": settings, **named(model, ball)})
    else:
        lines = {
            "Policy": policy_path,
            "Status": f"{found.status}: {found.status.sentence}",
            "Gap": Tolerance(tol, rtol).compare(found.gap, found.scale),
            "Work": f"{time_in_words(seconds, compiled)}, backend {backend}",
        }
        figures = {f"{_worst(model)}, at least": found.lower, "at most": found.upper}
        _print_summary(model, ball, lines, policy, found.value, figures)
    return exit_code(found.status, reached(found))


# ---------------------------------------------------------------------- printing


def _worst(model: Model) -> str:
    return f"worst-case {'reward' if model.maximise else 'cost'}"


def _print_summary(
    model: Model, ball: Wasserstein, lines: dict[str, str], policy: Any, value: Any, figures: dict[str, Any]
) -> None:
    """Print what was asked, how it ended, and the first states."""
    from drmdp.solution import choice

    out = console()
    region = f"radius {ball.radius:g}, {ball.words}"
    mean = f"{float(model.initial @ value):.6g} {_worst(model)}, mean over the start distribution"
    notes = said(model, ball)
    out.print(
        grid(
            {
                "Problem": problem(model),
                "Ball": region,
                **lines,
                "Value": mean,
                **({"Notes": "\n".join(notes)} if notes else {}),
            }
        )
    )
    table = columns(["state", "action"], list(figures))
    for s in range(min(model.n_states, ROWS)):
        table.add_row(
            str(model.states[s]), choice(policy[s], model.actions), *(f"{x[s]:.6g}" for x in figures.values())
        )
    out.print(table)
    if model.n_states > ROWS:
        out.print(f"… {model.n_states - ROWS:,} more")


# ---------------------------------------------------------------------- verbs of other modules

main.add_command(cli_data.estimate)
main.add_command(cli_data.convert)
main.add_command(cli_check.check)
main.add_command(cli_bench.bench)
main.add_command(cli_radius.sweep)
main.add_command(cli_policy.inspect)
main.add_command(cli_policy.simulate)
main.add_command(cli_horizon.horizon)
main.add_command(cli_study.reproduce)
