"""Solve on an engine, and say how much memory each process had: `python measured.py KIND MODEL OUT
[CGROUP]`, as JSON.

Anonymous memory is what a process has beside files and what it shares. With a folder of the memory
controller, this process is bound by its limit.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from pathlib import Path

CONTROLLER = Path("/sys/fs/cgroup/memory")


@contextlib.contextmanager
def bound(limit):
    """A group of processes that may have no more bytes, files included; nothing where none can be
    made.
    """
    folder = CONTROLLER / f"drmdp-{os.getpid()}"
    try:
        folder.mkdir()
        (folder / "memory.limit_in_bytes").write_text(str(limit))
    except OSError:
        yield ""
        return
    try:
        yield str(folder)
    finally:
        folder.rmdir()


def anonymous(pid):
    """Bytes."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Anonymous:"):
            return 1024 * int(line.split()[1])
    return 0


class Watch:
    """The most that processes had, looked at now and then; `base` is what they had when it
    began.
    """

    def __init__(self, pids):
        self.base = {pid: anonymous(pid) for pid in pids}
        self.most = dict(self.base)
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self):
        while True:
            for pid in self.most:
                try:
                    self.most[pid] = max(self.most[pid], anonymous(pid))
                except OSError:
                    return
            time.sleep(0.1)


def main(kind, model, out, cgroup=""):
    """Solve, and tell."""
    if cgroup:
        (Path(cgroup) / "cgroup.procs").write_text(str(os.getpid()))
    import drmdp
    import ranges
    from drmdp.cluster import Local, Ray
    from drmdp.cluster.engine import Engine

    small = Path(out).with_suffix(".small.drmdp")  # what is loaded once is loaded
    drmdp.write(ranges.model("float32", S=ranges.LARGE, A=2, N=2), small)
    drmdp.solve(small, drmdp.Wasserstein(0.1), cluster=Local(2, threads=1))
    watch = []
    survey = Engine.survey

    def watched(engine):
        watch.append(Watch([os.getpid(), *set(engine.ask("process")) - {os.getpid()}]))
        return survey(engine)

    Engine.survey = watched
    cluster = Ray(2) if kind == "ray" else Local(8, threads=1)
    found = drmdp.solve(model, drmdp.Wasserstein(0.1), rtol=1e-3, cluster=cluster, out=out)
    told = {
        "status": str(found.status),
        "digest": ranges.digest(found),
        "states": len(found.states),
    }
    driver, *others = watch[0].most
    told["driver"] = [watch[0].base[driver], watch[0].most[driver]]
    told["workers"] = [[watch[0].base[pid], watch[0].most[pid]] for pid in others]
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
