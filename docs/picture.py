"""The picture of the README: `python docs/picture.py` writes docs/picture.png."""

from pathlib import Path

import matplotlib
import numpy as np

import drmdp
from drmdp.plot.style import styled

matplotlib.use("agg")


def main():
    """Draw the reservoir of the quick start."""
    model = drmdp.instances.reservoir(n_kernels=8, seed=1)
    ball = drmdp.Wasserstein(radius=0.07)
    solution = drmdp.solve(model, ball)
    with styled({"font.size": 8}) as plt:
        figure, (left, middle, right) = plt.subplots(ncols=3, figsize=(12.5, 4.4))
        drmdp.plot.policy(solution, ax=left)
        drmdp.plot.values(solution, ax=middle)
        drmdp.plot.radius(drmdp.radius.path(model, ball, np.linspace(0, 0.3, 13)), mark=0.07, ax=right)
        for ax in (middle, right):
            ax.get_legend().remove()
            handles, labels = ax.get_legend_handles_labels()
            ax.legend(handles, labels, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, fontsize="x-small")
        figure.savefig(Path(__file__).with_name("picture.png"), dpi=110, facecolor="white", metadata={"Software": None})


if __name__ == "__main__":
    main()
