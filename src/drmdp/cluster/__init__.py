"""Past one machine: the same solvers, range by range of states, on engines that users already have.

`solve(path, ball, cluster=…)` comes here. Ray and MPI are imported when they are used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from drmdp.core.validation import integer
from drmdp.errors import imported

__all__ = ["Local", "Mpi", "Ray"]


def __dir__() -> list[str]:
    return __all__


@dataclass(frozen=True)
class Local:
    """Range after range in this process: for a model that is larger than memory.

    Parameters
    ----------
    parts : int
        Ranges of states that take turns.
    threads : int, optional
        Of this process; one per core by default.
    """

    parts: int = 8
    threads: int | None = None

    def __post_init__(self) -> None:
        integer("parts", self.parts, 1)

    def ranges(self) -> int:
        """Ranges of states, at most."""
        return self.parts

    def start(self, source: Any, ambiguity: Any, scratch: str | None) -> Any:
        """The engine."""
        from drmdp.cluster.local import LocalEngine

        return LocalEngine(source, ambiguity, self, scratch)


@dataclass(frozen=True)
class Ray:
    """Workers that Ray runs: on this machine, or with an address ("auto") on a cluster.

    Parameters
    ----------
    workers : int
        Processes, each with a range of states.
    threads : int
        Of each worker.
    address : str, optional
        Of a running cluster; one on this machine is started by default.
    """

    workers: int = 2
    threads: int = 1
    address: str | None = None

    def __post_init__(self) -> None:
        integer("workers", self.workers, 1)
        integer("threads", self.threads, 1)

    def ranges(self) -> int:
        """Ranges of states, at most."""
        return self.workers

    def start(self, source: Any, ambiguity: Any, scratch: str | None) -> Any:
        """The engine."""
        from drmdp.cluster.ray import RayEngine

        return RayEngine(source, ambiguity, self)


@dataclass(frozen=True)
class Mpi:
    """The ranks of this MPI job: every rank calls `solve`, and gets the numbers of the result; rank
    0 the arrays.

    Parameters
    ----------
    threads : int
        Of each rank.
    """

    threads: int = 1

    def __post_init__(self) -> None:
        integer("threads", self.threads, 1)

    @property
    def first(self) -> bool:
        """Whether this is the rank that speaks for all."""
        return bool(world().rank == 0)

    def ranges(self) -> int:
        """Ranges of states, one for each rank."""
        return int(world().size)

    def start(self, source: Any, ambiguity: Any, scratch: str | None) -> Any:
        """The engine."""
        from drmdp.cluster.mpi import MpiEngine

        return MpiEngine(source, ambiguity, self.threads)


def world() -> Any:
    """All ranks of this MPI job."""
    return imported("mpi4py.MPI", "mpi").COMM_WORLD


KINDS: dict[str, Any] = {"local": Local, "ray": Ray, "mpi": Mpi}
"""Engines by their name on the command line."""
