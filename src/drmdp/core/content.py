"""What a kernel is made of, as text: two kernels with the same text compile to the same machine code.

The text is taken from the functions as they are in memory, not from files: the byte code of a function, the constants and tuple classes that it names,
and the same of every compiled function that it can reach, with the options of each. So a changed callee, constant or field changes the text of all that use it
and of nothing else, and so does a constant that is replaced while the program runs. Comments, docstrings, lines and paths are no part of it.

NumPy, Numba and the standard library are known by their versions, which belong to the key of what is kept (`drmdp.core.kept`). What Numba could compile
but this file does not know how to describe raises `UnknownError`: then nothing is kept.
"""

from __future__ import annotations

import enum
import types
from collections.abc import Iterable
from typing import Any

import numpy as np
from numba.core import types as kinds
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic

KNOWN = {"builtins", "cmath", "math", "numba", "numpy", "operator"}
"""Packages that are known by their version."""
PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))


class UnknownError(Exception):
    """Something that has no text."""


class Content:
    """The text of a function and all that it reaches."""

    def __init__(self, function: Any, arguments: Iterable[Any]) -> None:
        self._numbers: dict[int, int] = {}  # of compiled functions, in the order in which they are met
        self._waiting = [function]
        self._names: set[str] = set()  # that the function at hand uses
        self._modules: set[str] = set()  # that it was looked for in
        self.parts: list[str] = [self.kind(argument) for argument in arguments]
        while self._waiting:
            self._function(self._waiting.pop())

    def __str__(self) -> str:
        return "\n".join(self.parts)

    def kind(self, kind: Any) -> str:
        """The text of a type of Numba's."""
        if issubclass(type(kind), kinds.BaseTuple):
            inner = ", ".join(map(self.kind, kind))
            return f"{self._class(getattr(kind, 'instance_class', tuple))}({inner})"
        if isinstance(kind, kinds.Dispatcher):
            return self._value(kind.dispatcher)
        text = str(kind)
        if " at 0x" in text:
            raise UnknownError(text)
        return text

    def _function(self, function: Any) -> None:
        if isinstance(function, Dispatcher):
            self.parts.append(options_text(function.targetoptions))
            function = function.py_func
        self._names, self._modules = set(), set()
        text = [_name(function), self._code(function.__code__, function.__doc__)]
        text += [self._value(function.__defaults__), self._value(tuple((function.__kwdefaults__ or {}).items()))]
        for cell in function.__closure__ or ():
            text.append(self._value(cell.cell_contents))
        for name in sorted(self._names & function.__globals__.keys()):
            text.append(f"{name} = {self._value(function.__globals__[name])}")
        self.parts.append("\n".join(text))

    def _code(self, code: types.CodeType, doc: str | None = None) -> str:
        self._names.update(code.co_names)
        counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
        names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
        constants = code.co_consts[1 if doc is not None and code.co_consts[0] == doc else 0 :]
        inner = [self._code(c) if isinstance(c, types.CodeType) else self._value(c) for c in constants]
        return f"{counts} {names} {inner} {code.co_code.hex()} {getattr(code, 'co_exceptiontable', b'').hex()}"

    def _value(self, value: Any) -> str:
        """The text of something that a function names or holds."""
        if isinstance(value, PLAIN):
            return f"{type(value).__name__} {value!r}"
        if isinstance(value, Dispatcher):
            return f"function {self._number(value)}"
        if isinstance(value, _Intrinsic):
            return f"intrinsic {self._code(value._defn.__code__, value._defn.__doc__)}"
        if isinstance(value, types.ModuleType):
            return self._module(value)
        if isinstance(value, enum.Enum):
            return f"{_name(type(value))} {value.name} {self._value(value.value)}"
        if isinstance(value, tuple):
            return f"{self._class(type(value))}({', '.join(map(self._value, value))})"
        if isinstance(value, frozenset):
            return f"set({sorted(map(self._value, value))})"
        if isinstance(value, np.ndarray | np.generic):
            array = np.asarray(value)
            return f"{type(value).__name__} {array.dtype.descr} {array.shape} {array.strides} {array.tobytes().hex()}"
        if isinstance(value, type) and issubclass(value, tuple):
            return self._class(value)
        if isinstance(value, np.dtype | np.ufunc | kinds.Type):
            return f"{type(value).__name__} {value}"
        if str(getattr(value, "__module__", "")).split(".")[0] in KNOWN:
            return _name(value)
        raise UnknownError(f"{type(value)} {value}")

    def _module(self, module: Any) -> str:
        """A module, as far as the names of the function at hand may mean something in it."""
        name = module.__name__
        if name.split(".")[0] in KNOWN or name in self._modules:
            return f"module {name}"
        self._modules.add(name)
        inner = [f"{name} = {self._value(vars(module)[name])}" for name in sorted(self._names & vars(module).keys())]
        return f"module({', '.join(inner)})"

    def _class(self, value: Any) -> str:
        """A class of tuples."""
        defaults = tuple(getattr(value, "_field_defaults", {}).items())
        return f"{_name(value)}{getattr(value, '_fields', ())}{self._value(defaults) if defaults else ''}"

    def _number(self, function: Any) -> int:
        if id(function) not in self._numbers:
            self._numbers[id(function)] = len(self._numbers)
            self._waiting.append(function)
        return self._numbers[id(function)]


def options_text(options: Any) -> str:
    """Options of a compilation, in an order."""
    if isinstance(options, dict):
        return f"{{{', '.join(f'{name}: {options_text(options[name])}' for name in sorted(options))}}}"
    return str(sorted(options)) if isinstance(options, set | frozenset) else repr(options)


def _name(value: Any) -> str:
    return f"{value.__module__}.{getattr(value, '__qualname__', None) or value.__name__}"
