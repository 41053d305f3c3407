"""Properties that are made once, without a lock.

`functools.cached_property` of Python 3.11 holds a lock of the class while a value is made. A child that was forked meanwhile never gets it. Here two
threads that ask at once may both make the value, and the first one stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801
    """A property that is made when it is first asked for, and kept in the `__dict__` of its object."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self.func, self.__doc__ = make, make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, one: None, owner: type) -> Self: ...

    @overload
    def __get__(self, one: object, owner: type | None = None) -> T: ...

    def __get__(self, one: object | None, owner: type | None = None) -> T | Self:
        if one is None:
            return self
        made: T = one.__dict__.setdefault(self._name, self.func(one))
        return made
