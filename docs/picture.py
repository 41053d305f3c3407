"""The picture of the README and of the front page: `python docs/picture.py` writes
docs/picture.png.
"""

from pathlib import Path

import matplotlib
import numpy as np

import drmdp
from drmdp.plot.style import styled


def solved():
    """The reservoir of the quick start, and its radius path."""
    model = drmdp.instances.reservoir(n_kernels=8, seed=1)
    ambiguity = drmdp.Wasserstein(radius=0.07)
    return drmdp.solve(model, ambiguity), drmdp.radius.path(
        model, ambiguity, np.linspace(0, 0.3, 13)
    )


def small():
    """What to do, and what a radius costs: for the front page."""
    solution, path = solved()
    with styled({"font.size": 9}) as plt:
        figure, (left, right) = plt.subplots(ncols=2, figsize=(9, 2.2))
        drmdp.plot.policy(solution, ax=left)
        left.set_yticks([0, 5, 10, 15, 20], [f"storage {k}" for k in (0, 5, 10, 15, 20)])
        left.tick_params(axis="y", labelsize=9)
        left.set_xlabel("action, stronger where it is likelier")
        left.images[0].colorbar.remove()
        drmdp.plot.radius(path, mark=0.07, ax=right)
        right.set_ylabel("cost")
    return figure


def wide():
    """What to do, what it costs, and how that depends on the radius: for the README."""
    solution, path = solved()
    with styled({"font.size": 8}) as plt:
        figure, (left, middle, right) = plt.subplots(ncols=3, figsize=(12.5, 4.4))
        drmdp.plot.policy(solution, ax=left)
        drmdp.plot.values(solution, ax=middle)
        drmdp.plot.radius(path, mark=0.07, ax=right)
        for ax in (middle, right):
            ax.get_legend().remove()
            handles, labels = ax.get_legend_handles_labels()
            ax.legend(
                handles,
                labels,
                loc="lower left",
                bbox_to_anchor=(0, 1),
                ncols=2,
                fontsize="x-small",
            )
    return figure


def main():
    """Write the picture."""
    matplotlib.use("agg")
    with styled():
        wide().savefig(
            Path(__file__).with_name("picture.png"),
            dpi=110,
            facecolor="white",
            metadata={"Software": None},
        )


if __name__ == "__main__":
    main()
