"""Cached properties without a lock.

`functools.cached_property` of Python 3.11 holds a lock of the class while a value is computed. A
child that was forked meanwhile never gets it. Here two threads may both compute the value, and the
first value stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801
    """A property that is computed at its first use and kept in the `__dict__` of its object."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self.func, self.__doc__ = make, make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> T | Self:
        if instance is None:
            return self
        value: T = instance.__dict__.setdefault(self._name, self.func(instance))
        return value
