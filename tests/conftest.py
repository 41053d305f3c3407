"""Workers of a parallel run share what is compiled: two processes do that ahead, or each worker would do all of it."""

import subprocess
import sys
from pathlib import Path

import compile_ahead
import drmdp


def pytest_configure(config):
    workers = getattr(config.option, "numprocesses", None)
    cold = not list(Path(drmdp.__file__).parent.glob("bellman/__pycache__/linf_1.update*.nbc"))
    if cold and workers and not hasattr(config, "workerinput"):
        script = Path(compile_ahead.__file__)
        jobs = [subprocess.Popen([sys.executable, script, *half]) for half in compile_ahead.HALVES]
        for job in jobs:
            assert job.wait() == 0
