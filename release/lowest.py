"""Install the lowest versions of the dependencies that `pyproject.toml` names: `python
release/lowest.py`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path


def lowest(text: str) -> list[str]:
    """Requirements pinned to their lower bounds."""
    project = tomllib.loads(text)["project"]
    named = [
        *project["dependencies"],
        *project["optional-dependencies"]["conic"],
        *project["optional-dependencies"]["data"],
    ]
    found = [re.match(r"([\w.-]+)>=([\w.]+)", requirement) for requirement in named]
    return [
        f"{match[1]}=={match[2]}{'.*' if match[2].count('.') < 2 else ''}"
        for match in found
        if match
    ]


if __name__ == "__main__":
    pins = lowest((Path(__file__).resolve().parent.parent / "pyproject.toml").read_text())
    subprocess.run([sys.executable, "-m", "pip", "install", *pins], check=True)
