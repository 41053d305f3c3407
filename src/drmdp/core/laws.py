"""Laws of the next state as users write them, brought to one form.

    {next: p}  or  [(next, p), …]                       one kernel
    {next: [p_1, …, p_N]}  or  [(next, [p_1, …]), …]    N kernels
    [{next: p}, …]  or  [[(next, p), …], …]             N kernels, one law each

A next state that is given twice has the sum of its probabilities. Numbers are not looked at here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from drmdp.core.names import RULE, is_name
from drmdp.errors import InputError, shown

FORMS = "expected {next: p}, [(next, p), …], {next: [p_1, …, p_N]} or a list of N of the first two"


def called(function: str, *names: Any) -> str:
    """A call, for messages."""
    return f"{function}({', '.join(map(shown, names))})"


def law_of(given: Any, *pair: Any) -> dict[Any, Any]:
    """A law as {next: p}, or {next: N numbers}; `pair` is what the function was asked."""
    if isinstance(given, Mapping):
        return dict(given)
    parts = None if isinstance(given, str | bytes) else listed(given)
    if parts is None or not all(isinstance(part, Mapping | list | tuple) for part in parts):
        raise InputError(f"{called('transition', *pair)} is {shown(given)}: {FORMS}")
    if all(map(_is_pair, parts)):
        return _added(parts, *pair)
    joined: dict[Any, list[Any]] = {}
    for i, part in enumerate(parts):
        for t, p in (part if isinstance(part, Mapping) else _added(part, *pair)).items():
            if is_many(p):
                raise InputError(
                    f"{called('transition', *pair)}, kernel {i}: next state {shown(t)} has {shown(p)}: {FORMS}"
                )
            if t not in joined:
                joined[t] = [0.0] * len(parts)
            joined[t][i] = p
    return joined


def _added(pairs: Iterable[Any], *asked: Any) -> dict[Any, Any]:
    """The law of pairs (next, p)."""
    law: dict[Any, Any] = {}
    for pair in pairs:
        if not _is_pair(pair):
            raise InputError(f"{called('transition', *asked)} holds {shown(pair)}: {FORMS}")
        t, p = pair
        if not is_name(t):
            raise InputError(f"{called('transition', *asked)}, next state: {RULE}, got {shown(t)}")
        if t not in law:
            law[t] = p
        elif is_many(p) and is_many(law[t]) and len(p) == len(law[t]):
            law[t] = [x + y for x, y in zip(law[t], p, strict=True)]
        else:
            law[t] = law[t] + p
    return law


def _is_pair(given: Any) -> bool:
    """Whether something is (next, p), p a number or several: no law of two pairs."""
    if not isinstance(given, tuple) or len(given) != 2:
        return False
    p = given[1]
    return not (isinstance(p, tuple | list) and any(isinstance(part, tuple | list) for part in p))


def is_many(p: Any) -> bool:
    """Whether something is a probability for each kernel."""
    return isinstance(p, list | tuple) or (isinstance(p, np.ndarray) and p.ndim == 1)


def listed(given: Any) -> list[Any] | None:
    """The members of what can be gone through."""
    try:
        return list(given)
    except TypeError:
        return None
