"""Workers of a parallel run share what is compiled: two processes do that ahead, or each worker would do all of it."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
HALVES = (("l2-2", "l2-inf", "l1-1", "linf-inf"), ("l1-inf", "linf-1"))
"""About as much work each."""


def pytest_configure(config):
    workers = getattr(config.option, "numprocesses", None)
    cold = not list(HERE.parent.glob("src/drmdp/bellman/__pycache__/linf_1.update*.nbc"))
    if cold and workers and not hasattr(config, "workerinput"):
        script = HERE / "compile_ahead.py"
        jobs = [subprocess.Popen([sys.executable, script, *half]) for half in HALVES]
        for job in jobs:
            assert job.wait() == 0
