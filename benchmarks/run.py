"""Print the tables behind every figure we quote: `python benchmarks/run.py [--json rows.jsonl]`.

Sweeps: the cost of a warm and of a cold robust sweep in nominal sweeps over the same N kernels (one thread, CPU time).
Solves: sweeps and CPU time of the default method to certified relative gaps.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from drmdp import bench


def order(value: float) -> str:
    return f"{value:g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="append the rows to this file")
    rows = []
    arguments = parser.parse_args()
    print(", ".join(f"{key} {value}" for key, value in bench.machine().items()))
    print(f"\n{'instance':18} {'ball':10} {'radius':>7} {'warm':>7} {'cold':>7}   in nominal sweeps (ms)")
    for row in bench.sweeps():
        rows.append(row)
        ball = f"{row.metric},{order(row.order)}"
        print(
            f"{row.instance:18} {ball:10} {row.radius:7.3g} {row.warm:7.2f} {row.cold:7.2f}   ({row.nominal_ms:.2f})",
            flush=True,
        )
    print(f"\n{'instance':10} {'discount':>8} {'ball':10} {'gap':>6}: sweeps (CPU ms) to certified relative gaps")
    for row in bench.solves():
        rows.append(row)
        cells = "  ".join(f"{gap}: {row.sweeps[gap]:.0f} ({row.ms[gap]:.1f})" for gap in row.sweeps)
        print(
            f"{row.instance:10} {row.discount:8g} {row.metric},{order(row.order):7} {cells}  {row.status}", flush=True
        )
    if arguments.json:
        with arguments.json.open("a") as stream:
            stream.writelines(json.dumps({**bench.machine(), **bench.as_dict(row)}) + "\n" for row in rows)


if __name__ == "__main__":
    main()
