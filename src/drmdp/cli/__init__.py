"""The command line: one file a verb.

Exit codes: 0 solved, or as near as double precision allows and within a billionth; 1 a fault of
drmdp; 2 bad input, with one line on standard error; 3 a limit was reached and 130 interrupted, both
with the result printed and written all the same; 4 `drmdp check` has warnings. A command goes on,
and ends with its code, if nobody reads what it prints. With ``--json``, standard output is one JSON
document.
"""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NoReturn

import click

from drmdp._version import __version__
from drmdp.cli import verbs
from drmdp.cli.cluster import resume
from drmdp.cli.messages import spoken
from drmdp.cli.options import BAD_INPUT, FAULT, INTERRUPTED
from drmdp.cli.screen import heard, say
from drmdp.cli.show import notices
from drmdp.cli.verbs.convert import convert
from drmdp.errors import InputError, MissingExtra, brief
from drmdp.ui.interrupts import terminated_like_interrupted
from drmdp.ui.progress import on_command_line
from drmdp_lab.verbs import bench, reproduce

TRACEBACK = "DRMDP_TRACEBACK"
LONGEST = 2000
"""Characters of a message."""
OPTIONS = {"report": "`drmdp solve MODEL --radius … --report page.html`, and of `drmdp horizon`"}
"""What somebody may take for a command."""


class _Group(click.Group):
    """A group whose errors are one line and whose exit code is what a command returns."""

    def main(self, *args: Any, **settings: Any) -> NoReturn:
        if isinstance(sys.stdout, io.TextIOWrapper):
            # names and symbols that the terminal lacks are no failure
            sys.stdout.reconfigure(errors="replace")
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
            cure = f"a fault of drmdp: with {TRACEBACK}=1 it shows where"
            _fail(f"{type(error).__name__}: {error}; {cure}", FAULT)

    def make_context(self, *args: Any, **settings: Any) -> click.Context:
        """Read the options; help that nobody reads to its end, as after `| head`, is no failure."""
        with heard():
            return super().make_context(*args, **settings)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find a command; where there is none by that name, say which option is meant."""
        if args[0] in OPTIONS and args[0] not in self.commands:
            raise click.UsageError(f"no command {args[0]!r}: it is an option, {OPTIONS[args[0]]}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what it complains of is said in its options."""
        try:
            return super().invoke(ctx)
        except InputError as error:
            command = self.commands.get(ctx.invoked_subcommand or "")
            raise InputError(spoken(str(error), command, convert)) from None


def _fail(message: str, code: int = BAD_INPUT) -> NoReturn:
    say(f"drmdp: error: {brief(message, LONGEST)}", err=True)
    sys.exit(code)


@click.group(
    cls=_Group,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def main(context: click.Context) -> None:
    """Solve Markov decision processes against the worst of all probabilities in a set around the
    data, with a proof.

    Ambiguity sets (--set): Wasserstein balls around N kernels, by l1, l2, linf or the cost of
    transport; divergences (kl, burg, chi2, tv); other weights for the kernels (reweight-kl, -burg,
    -chi2, -tv, -cvar, -any); intervals; what the counts of a log suggest (counts).

    Criteria (--criterion): discounted, total or average cost or reward; finitely many stages
    (horizon); the probability of reaching a target (reach).

    Exit codes: 0 solved, or as near as double precision allows and within a billionth, 1 a fault of
    drmdp, 2 bad input, 3 a limit was reached, 4 a check has warnings, 130 interrupted. With 3 and
    130 the result is printed and written all the same.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for _verb in (resume, bench, reproduce):
    main.add_command(_verb)
for _module in iter_modules(verbs.__path__):
    main.add_command(getattr(import_module(f"{verbs.__name__}.{_module.name}"), _module.name))
