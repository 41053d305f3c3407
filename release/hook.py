"""A wheel with kernels is for one Python and one system; without, it is for all."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Hook(BuildHookInterface):  # type: ignore[type-arg]
    """Names the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Say what a wheel with kernels is for."""
        if not (Path(self.root) / "src" / "drmdp" / "_kernels").is_dir():
            return
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        system = sysconfig.get_platform().replace("-", "_").replace(".", "_").replace("linux", "manylinux_2_17", 1)
        build_data["pure_python"] = False
        build_data["tag"] = f"{python}-{python}-{system}"
