"""`drmdp check`: what is odd in a log, and what an estimate would assume."""

from __future__ import annotations

from typing import Any

import click

from drmdp.cli.log import LOG_OPTIONS, log_settings, print_log
from drmdp.cli.messages import spoken
from drmdp.cli.option_groups import number, option
from drmdp.cli.options import BAD_INPUT, WARNED, command
from drmdp.cli.screen import say
from drmdp.cli.show import print_json


@command(
    [click.Argument(["table"]), *LOG_OPTIONS.values(), "progress"],
    ignored=option("", "-o", "--out", hidden=True, expose_value=False),
    discount=number("", hidden=True),
    interest=option("", hidden=True),
    as_json="Print one JSON document.",
)
def check(asked: Any) -> int:
    """List what is odd in a log: everything that `drmdp estimate` would refuse or warn of.

    TABLE and options are those of `drmdp estimate`; --out is ignored, and nothing is written. Exit
    codes: 0 nothing is odd, 2 an estimate is refused, 4 it is made, with warnings.
    """
    from drmdp.estimation.log.findings import listed
    from drmdp.estimation.pipeline import check as check_table

    result = check_table(asked.table, *log_settings(asked))
    code = 0 if result else BAD_INPUT if result.refused else WARNED
    if asked.as_json:
        print_json(result.as_dict())
        return code
    if result.summary is not None:
        print_log(result.summary)
    for finding in result.findings:
        for line in listed(finding):
            say(spoken(line, click.get_current_context().command))
    say(f"{result.table}: {result.verdict}")
    return code
