"""Settings of a file that does not say them itself."""

from __future__ import annotations

import os
from dataclasses import dataclass

from drmdp.errors import InputError, shown


@dataclass(frozen=True)
class ReadOptions:
    """Settings of `drmdp.read`."""

    discount: float | None = None
    base: int = 0
    initial: str | os.PathLike[str] | None = None
    parameters: str | os.PathLike[str] | None = None
    normalize: bool = False
    rewards: bool = True

    def __post_init__(self) -> None:
        if self.base not in (0, 1) or isinstance(self.base, bool):
            raise InputError(f"base is 0 or 1, got {shown(self.base)}")

    @property
    def needed_discount(self) -> float:
        """The discount, for formats that hold none."""
        if self.discount is None:
            raise InputError("no discount: the file holds none, so give one")
        return self.discount

    def refuse(self, *names: str) -> None:
        """Refuse settings that a format has no use for."""
        for name in names:
            if getattr(self, name) != getattr(ReadOptions(), name):
                cure = f"drmdp convert --discount {self.discount} writes it with another"
                reason = f", which holds a discount; {cure}" if name == "discount" else ""
                raise InputError(f"`{name}` is not for this format{reason}")
