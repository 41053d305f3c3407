"""Messages of the library in the words of the command line.

The library names Python's parameters: "n_kernels", "support='observed'", "folds: expected …". On
the command line these are options of the command that was called. What is translated:

* ``name=value`` anywhere, in backticks or not, becomes ``--name value``, and ``flag=True`` becomes
``--flag``;
* a name in backticks becomes ``--name``;
* so does a name at the very beginning, before a colon or a verb, and
* a name with an underscore, which no English word has, outside of quotation marks.

An option that only `drmdp convert` has is named with that command.
"""

from __future__ import annotations

import ast
import re
import shlex

import click

QUOTED = re.compile(r"('[^']*'|\"[^\"]*\")")
VERB = r"(?=:| must\b| is\b| has\b| \()"
COMMANDS = {
    "check_log": "drmdp check",
    "estimate": "drmdp estimate",
    "read_intervals": "--set intervals",
}
"""Functions of Python that are commands or options here."""


def spoken(
    message: str, command: click.Command | None, convert: click.Command | None = None
) -> str:
    """The message in the words of a command."""
    if command is None:
        return message
    here = {**COMMANDS, **_options(command)}
    for name in {"rename", "terminal"} & set(here):
        message = re.sub(rf"`({name})=(\{{.*?\}})`", _pairs, message)
    if "time_format" in here:
        message = re.sub(r"`time_format=(\(.*?\))`", _formats, message)
    other = {} if convert is None else _options(convert)
    for name, option in here.items():
        message = re.sub(rf"^{name}{VERB}", option, message)
        message = _assigned(message, name, option).replace(f"`{name}`", option)
        if "_" in name:
            message = _outside_quotes(message, rf"(?<![\w./-]){name}(?![\w=])", option)
    for name, option in other.items():
        if name not in here:
            message = _assigned(message, name, f"drmdp convert {option}")
    return message


def _options(command: click.Command) -> dict[str, str]:
    """Longest form of each option, by the name of the parameter it sets."""
    options = (param for param in command.params if isinstance(param, click.Option) and param.name)
    return {str(param.name): max(param.opts, key=len) for param in options}


def _pairs(match: re.Match[str]) -> str:
    pairs = ast.literal_eval(match[2]).items()
    return " ".join(f"--{match[1]} {shlex.quote(f'{old}={new}')}" for old, new in pairs)


def _formats(match: re.Match[str]) -> str:
    return " ".join(f"--time-format {shlex.quote(form)}" for form in ast.literal_eval(match[1]))


def _assigned(message: str, name: str, option: str) -> str:
    """Replace ``name=value``, but not where a quotation begins with it."""

    def text(match: re.Match[str]) -> str:
        _, quoted, value = match.groups()
        if quoted is not None:
            value = f'"{quoted}"' if quoted == "'" else shlex.quote(quoted)
        return option if value == "True" else f"{option} {value}"

    return re.sub(rf"`?(?<![\w'\"-]){name}=(?:(['\"])(.*?)\1|([\w.+-]+))`?", text, message)


def _outside_quotes(message: str, pattern: str, by: str) -> str:
    parts = QUOTED.split(message)
    return "".join(part if k % 2 else re.sub(pattern, by, part) for k, part in enumerate(parts))
