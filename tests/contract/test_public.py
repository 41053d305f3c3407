"""What the public names show: `dir` lists them and nothing else, and each parameter is described by
what it is.
"""

import inspect
import re

import pytest

import drmdp

MODULES = [
    drmdp,
    drmdp.cluster,
    drmdp.formats,
    drmdp.instances,
    drmdp.plot,
    drmdp.policies,
    drmdp.radius,
]
ALSO = {
    drmdp.Model: ["from_functions", "from_events", "policy"],
    drmdp.Solution: ["save", "load", "report", "proof", "to_frame"],
    drmdp.HorizonSolution: ["save", "load", "report", "to_frame", "kernel"],
    drmdp.Wasserstein: ["with_radius", "saturation"],
    drmdp.Intervals: ["of"],
}


def described(text):
    """Parameters and attributes of a docstring of NumPy's kind, each with its sentence."""
    found, names, inside = {}, [], False
    lines = text.splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if following.startswith("---"):
            inside, names = line in ("Parameters", "Attributes"), []
        elif inside and line and not line.startswith((" ", "---")):
            names = [name.strip().lstrip("*") for name in line.split(" : ")[0].split(",")]
            found.update(dict.fromkeys(names, ""))
        else:
            found.update({name: f"{found[name]} {line}" for name in names})
    return found


def public():
    """Functions and classes with parameters, by name."""
    for module in MODULES:
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isfunction(thing) or (
                inspect.isclass(thing) and not issubclass(thing, Exception | str)
            ):
                yield f"{module.__name__}.{name}", thing
    for owner, names in ALSO.items():
        for name in names:
            yield f"drmdp.{owner.__name__}.{name}", getattr(owner, name)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_dir_shows_public_names_only(module):
    assert dir(module) == sorted(module.__all__)


@pytest.mark.parametrize("thing", [pytest.param(thing, id=name) for name, thing in public()])
def test_every_parameter_is_described(thing):
    said = described(inspect.getdoc(thing) or "")
    names = [name for name in inspect.signature(thing).parameters if name != "self"]
    assert [name for name in names if len(said.get(name, "").split()) < 2] == []


def texts():
    """What is said of modules and their public names."""
    yield from ((name, inspect.getdoc(thing) or "") for name, thing in public())
    yield from ((module.__name__, module.__doc__ or "") for module in MODULES[1:])


def is_public(name):
    """Whether users can look up `drmdp.x`, `drmdp.module.x` or `drmdp.Class.x` in the reference."""
    _, first, *rest = name.split(".")
    owner = getattr(drmdp, first)
    known = first in drmdp.__all__
    if not rest or owner not in MODULES:
        return known
    return rest[0] in owner.__all__


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in texts()])
def test_nobody_is_sent_to_what_the_reference_does_not_show(text):
    assert "the module" not in " ".join(text.split())
    assert [name for name in re.findall(r"`(drmdp\.[\w.]+)", text) if not is_public(name)] == []
