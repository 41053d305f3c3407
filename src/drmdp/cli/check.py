"""`drmdp check`: what is odd in a log, and what an estimate would assume."""

from __future__ import annotations

from typing import Any

import click

from drmdp.cli.log import log_options, log_settings, print_kernels, summary_lines
from drmdp.cli.options import BAD_INPUT, PROGRESS, WARNED
from drmdp.cli.screen import say
from drmdp.cli.show import console, grid, print_json
from drmdp.cli.words import spoken


@click.command()
@click.argument("table")
@click.option("-o", "--out", "ignored", hidden=True, expose_value=False)
@click.option("--discount", type=float, hidden=True)
@click.option("--interest", hidden=True)
@log_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@PROGRESS
@click.pass_context
def check(context: click.Context, /, table: str, as_json: bool, **given: Any) -> int:
    """List what is odd in a log: everything that `drmdp estimate` would refuse or warn of.

    TABLE and options are those of `drmdp estimate`; --out is ignored, and nothing is written. Exit codes: 0 nothing is odd,
    2 an estimate is refused, 4 it is made, with warnings.
    """
    from drmdp.estimate.check import check as check_table
    from drmdp.estimate.findings import listed

    columns, settings = log_settings(given)
    found = check_table(table, columns, settings)
    code = 0 if found else BAD_INPUT if found.refused else WARNED
    if as_json:
        print_json(found.as_dict())
        return code
    screen = console()
    if found.summary is not None:
        screen.print(grid(summary_lines(found.summary)))
        if len(found.summary.kernels) > 1:
            print_kernels(screen, found.summary)
    for finding in found.findings:
        for line in listed(finding):
            say(spoken(line, context.command))
    say(f"{found.table}: {found.verdict}")
    return code
