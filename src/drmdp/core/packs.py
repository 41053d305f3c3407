"""Arguments of kernels that stay, taken apart once.

Numba takes every array of every argument apart at every call, a quarter of a microsecond each, and finds the types of all before. A `Pack` is a table of
what it finds: a kernel that is given the pack reads the table (`opened`), and `direct` calls one whose types are known. So a call takes as long as its numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.core.datamodel.models import OpaqueModel
from numba.core.typing.typeof import typeof_impl
from numba.extending import intrinsic, register_model, unbox
from numba.np.arrayobj import populate_array

from drmdp.core.compiled import Entry, key_of, read_address


class PackType(types.Type):
    """The type of a pack: that of its parts."""

    def __init__(self, parts: Any) -> None:
        self.parts = parts
        super().__init__(f"pack{parts}")


register_model(PackType)(OpaqueModel)
unbox(PackType)(read_address)  # type: ignore[no-untyped-call]


_kinds: dict[Any, PackType] = {}
_codes: dict[Any, Callable[..., Any]] = {}


class Pack:
    """Arrays, numbers and entries, in tuples inside a tuple; it keeps what it holds."""

    def __init__(self, parts: Any) -> None:
        key, known = key_of(parts), numba.typeof
        if key not in _kinds:
            _kinds[key] = PackType(known(parts))  # type: ignore[no-untyped-call]
        self.parts, self.kind = parts, _kinds[key]
        self._table = np.array(_write(parts, []), dtype=np.int64)
        self.address = self._table.ctypes.data


@typeof_impl.register(Pack)
def _type_of(given: Any, context: Any) -> Any:
    return given.kind


def _write(part: Any, words: list[int]) -> list[int]:
    """Add what the table holds of a part."""
    if isinstance(part, tuple):
        for own in part:
            _write(own, words)
    elif isinstance(part, np.ndarray):
        words += part.__array_interface__["data"][0], *part.shape, *part.strides
    elif isinstance(part, Entry):
        words.append(part.address)
    elif isinstance(part, float):
        words.append(int(np.float64(part).view(np.int64)))
    else:
        words.append(int(part))
    return words


@intrinsic
def _opened(typing_context: Any, pack: Any) -> Any:
    """The parts of a pack."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        word = ir.IntType(64)
        table, count = builder.bitcast(given[0], word.as_pointer()), iter(range(10_000))

        def read() -> Any:
            return builder.load(builder.gep(table, [ir.Constant(word, next(count))]))

        def made(kind: Any) -> Any:
            if isinstance(kind, types.BaseTuple):
                inner: Any = kind
                return context.make_tuple(builder, kind, [made(own) for own in inner])
            value = context.get_value_type(kind)
            if isinstance(kind, types.Array):
                array = context.make_array(kind)(context, builder)
                data = builder.inttoptr(read(), array.data.type)
                shape, strides = ([read() for _ in range(kind.ndim)] for _ in range(2))
                size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
                populate_array(array, data, shape, strides, size, None)  # type: ignore[no-untyped-call]
                return array._getvalue()
            if isinstance(kind, types.Boolean):
                return builder.trunc(read(), value)
            if isinstance(value, ir.PointerType):
                return builder.inttoptr(read(), value)
            return builder.bitcast(read(), value)

        return made(pack.parts)

    return pack.parts(pack), generate


opened: Any = _opened


def direct(kernel: Any, *examples: Any) -> Callable[..., Any]:
    """The machine code of a kernel for arguments like these; other types are not checked for, as none are."""
    key, known = (kernel, key_of(examples)), numba.typeof
    if key not in _codes:
        signature = tuple(map(known, examples))
        kernel.compile(signature)
        _codes[key] = kernel.overloads[signature].entry_point
    return _codes[key]
