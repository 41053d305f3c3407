"""Proofs that are forged: numbers and parts of a good one changed at random, and files that are no
proofs any more.
"""

import copy
import json

WORTH = ("x", "v", "up", "low")
"""What may be forged; radii, intervals and what is claimed are what the proof is about."""


def forged(lines, rng, kinds=WORTH):
    """A copy of a proof, something in it changed one to three times."""
    lines = copy.deepcopy(lines)
    for _ in range(int(rng.integers(1, 4))):
        (_number if rng.random() < 0.6 else _part)(lines, rng, kinds)
    return lines


def _number(lines, rng, kinds):
    """Change a number of a line."""
    line = lines[int(rng.integers(1, len(lines) - 1))]
    name = _one([name for name in kinds if name in line], rng)
    if name is not None:
        _deep(line, name, rng)


def _deep(value, key, rng):
    while isinstance(value[key], list | dict) and value[key]:
        value = value[key]
        key = _one(list(value) if isinstance(value, dict) else range(len(value)), rng)
    old = value[key]
    if isinstance(old, int | float):
        others = [
            0.0,
            -0.0,
            5e-324,
            1.0,
            -1.0,
            1e300,
            1.7e308,
            2 * old,
            old / 2,
            old + 1e-9,
            old - 1e-6,
            rng.random(),
            -old,
            old * (1 + 1e-12),
        ]
        value[key] = float(_one(others, rng))


def _part(lines, rng, kinds):
    """Take a part from elsewhere: another state, another action, another kernel, or none; or scale
    all numbers of a side.
    """
    states = [line for line in lines if "s" in line]
    if not states:
        return
    line, other = _one(states, rng), _one(states, rng)
    name = _one([name for name in kinds if name in line], rng)
    if name is None:
        return
    how = int(rng.integers(6))
    if how > 3:
        place = int(rng.integers(8))
        for own in [line] if how == 4 else states:
            if "low" in own:
                _gather(own["low"], place)
    elif how == 0:
        line[name] = copy.deepcopy(other.get(name, line[name]))
    elif how == 1:
        line[name] = _scaled(line[name], float(_one([0.0, 0.5, 0.999, 1.001, 2.0, -1.0], rng)))
    elif how == 2:
        _shuffle(line[name], rng)
    else:
        line[name] = {} if isinstance(line[name], dict) else []


def _scaled(value, factor):
    if isinstance(value, dict):
        return {name: _scaled(own, factor) for name, own in value.items()}
    if isinstance(value, list):
        return [_scaled(own, factor) for own in value]
    return value * factor if isinstance(value, float) else value


def _gather(value, place):
    """Bring all mass of all rows inside to one place: nature leaves her set."""
    for own in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        if isinstance(own, list) and own and all(isinstance(x, int | float) for x in own):
            own[:] = [float(k == place % len(own)) for k in range(len(own))]
        else:
            _gather(own, place)


def _shuffle(value, rng):
    """Shuffle one of the lists inside."""
    found = []

    def look(own):
        if isinstance(own, list):
            found.append(own)
        for inner in (
            own.values() if isinstance(own, dict) else own if isinstance(own, list) else ()
        ):
            look(inner)

    look(value)
    if found:
        rng.shuffle(_one(found, rng))


def _one(choices, rng):
    choices = list(choices)
    return choices[int(rng.integers(len(choices)))] if choices else None


ANYTHING = (
    None,
    True,
    "",
    "x",
    "1e999999999",
    -1,
    0,
    10**29,
    -0.0,
    5e-324,
    1.7e308,
    [],
    {},
    [[]],
    [None],
    [[0, 1]],
    {"y": []},
    [1e308] * 3,
)
"""What a value is replaced by, whatever it was."""


DEEP = "as deep as it goes"
"""Stands for lists in lists."""


def spoiled(text, rng):
    """Bytes of a file after an accident: flipped, cut or doubled."""
    how, at = int(rng.integers(3)), int(rng.integers(len(text)))
    if how == 0:
        found = bytearray(text)
        for place in rng.integers(len(text), size=int(rng.integers(1, 4))):
            found[int(place)] ^= 1 << int(rng.integers(8))
        return bytes(found)
    return text[:at] + (
        text[at + int(rng.integers(1, 50)) :] if how == 1 else text[max(at - 30, 0) :]
    )


def replaced(lines, rng):
    """The text of a proof in which a value somewhere is anything."""
    lines = copy.deepcopy(lines)
    value, key = lines, int(rng.integers(len(lines)))
    while isinstance(value[key], list | dict) and value[key] and rng.random() < 0.85:
        value = value[key]
        key = _one(list(value) if isinstance(value, dict) else range(len(value)), rng)
    value[key] = copy.deepcopy(_one((*ANYTHING, DEEP), rng))
    text = "".join(json.dumps(line) + "\n" for line in lines)
    return text.replace(f'"{DEEP}"', "[" * 20000 + "]" * 20000).encode()
