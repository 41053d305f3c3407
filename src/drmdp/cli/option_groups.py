"""Commands whose help lists options in groups, and whose texts are completed as names of files.

A table of options is a mapping of names of parameters to texts of the help, or to what `option`
makes of a text and the settings of `click.Option`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import copy
from functools import partial
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from drmdp.cli.screen import heard

PROBLEM, SET, METHOD, FIRST_ORDER = "Problem", "Ambiguity set", "Method", "First-order method"
LOG, TIME, LABELS, CELLS = "Columns of the log", "Time", "Labels", "Reading the table"
RULES, KERNELS = "Rows that are missing, doubled or few", "Kernels and costs"
ACCURACY, OUTPUT, REPORT = "Accuracy and limits", "Output", "Report"
CLUSTER = "Larger than memory"
FIRST = "Options"
"""Heading of what belongs to the command alone."""
TABLE_GROUPS = (LOG, TIME, LABELS, RULES, KERNELS, CELLS)
LAST_GROUPS = (ACCURACY, OUTPUT, REPORT, CLUSTER)
GROUPS = (PROBLEM, SET, METHOD, FIRST_ORDER, *TABLE_GROUPS, *LAST_GROUPS)
"""Headings in the order of the help."""


class Registered(click.Choice[str]):
    """One of the names of a registry, "module:NAME", which is imported when they are needed."""

    def __init__(self, registry: str, *, first: str = "", last: str = "") -> None:
        self.registry, self.first, self.last = registry, first, last
        self.case_sensitive = False

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names, those that were registered later included."""
        module, _, name = self.registry.partition(":")
        names = (self.first, *getattr(import_module(module), name), self.last)
        return tuple(filter(None, names))


class Option(click.Option):
    """An option under a heading; `place` is where it stands there, 0 for those of one command."""

    def __init__(self, name: str, *flags: str, heading: str, place: int, **settings: Any):
        settings.setdefault("show_default", settings.get("default") is not None)
        super().__init__([*(flags or [f"--{name.replace('_', '-')}"]), name], **settings)
        self.heading, self.place = heading, place

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Flags and text, with the names of a registry for `{names}`."""
        record = super().get_help_record(ctx)
        if record is None or not isinstance(self.type, Registered):
            return record
        return record[0], record[1].replace("{names}", ", ".join(self.type.choices))

    def told(self, text: str) -> Option:
        """The same with another text in the help."""
        other = copy(self)
        other.help = text
        return other


Nameless = tuple[tuple[str, ...], dict[str, Any]]
About = str | Nameless
"""A text of the help, or what `option` made of it."""


def option(text: str, *flags: str, **settings: Any) -> Nameless:
    """An option without its name, from which its flag is made unless `flags` are given."""
    return flags, {"help": text, **settings}


class Number(click.types.FloatParamType):
    """A number; one with a decimal comma is refused with the point that it needs."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The number that a text is."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            point = str(value).replace(",", ".")
            if point == value or not re.fullmatch(r"[+-]?\d*\.\d+", point):
                raise
            self.fail(f"{value!r}: write a decimal point, {point}", param, ctx)


# options that are a number, a whole number, given several times, and given or not
number = partial(option, type=Number())
integer = partial(option, type=int)
repeated = partial(option, multiple=True)
flag = partial(option, is_flag=True)


def choice(*names: str) -> click.Choice[str]:
    """One of some names, in letters of either case."""
    return click.Choice(names, case_sensitive=False)


def one_of(text: str, names: Sequence[str], *flags: str, **settings: Any) -> Nameless:
    """An option that is one of some names, the first by default."""
    return option(text, *flags, type=choice(*names), default=names[0], **settings)


def options(heading: str, **table: About) -> dict[str, Option]:
    """The options of a table, in the order of the help."""
    pairs = enumerate(table.items(), 1)
    return {name: made(name, about, heading, k) for k, (name, about) in pairs}


def made(name: str, about: About, heading: str = FIRST, place: int = 0) -> Option:
    """The option of a name and what a table says of it."""
    flags, settings = option(about) if isinstance(about, str) else about
    return Option(name, *flags, **{"heading": heading, "place": place, **settings})


class Text(click.types.StringParamType):
    """Text that a shell completes as the name of a file."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Leave it to the shell."""
        return [CompletionItem(incomplete, type="file")]


class GroupedCommand(click.Command):
    """A command with its options in groups."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        for param in self.params:
            if param.type is click.STRING:
                param.type = Text()

    def make_context(self, *args: Any, **settings: Any) -> click.Context:
        """Read the options, and print the help where it is asked for."""
        with heard():
            return super().make_context(*args, **settings)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each group; what is in none comes first."""
        sections: dict[str, list[Any]] = {group: [] for group in (FIRST, *GROUPS)}
        params = (param for param in self.get_params(ctx) if isinstance(param, click.Option))
        for param in sorted(params, key=lambda param: getattr(param, "place", 99)):
            if (record := param.get_help_record(ctx)) is not None:
                sections[getattr(param, "heading", OUTPUT)].append(record)  # that of --help
        for group, records in sections.items():
            if records:
                with formatter.section(group):
                    formatter.write_dl(records)
