"""Kernels that execute pages speak over a local socket of their own; what they say about that is no
warning of ours.

Pages do not show what takes long: that depends on the machine. Pictures have no ground of their
own, so that they suit a light and a dark page.
"""

CLEAR = (1.0, 1.0, 1.0, 0.0)

c = get_config()  # noqa: F821
c.IPKernelApp.log_level = 40
c.InlineBackend.figure_formats = {"svg"}
c.InlineBackend.rc = {
    "figure.facecolor": CLEAR,
    "axes.facecolor": CLEAR,
    "figure.figsize": (7.0, 4.0),
    "legend.frameon": False,
    "svg.hashsalt": "drmdp",
}
c.InteractiveShellApp.exec_lines = [
    "import drmdp.ui.progress",
    "drmdp.ui.progress.DELAY = float('inf')",
    "del drmdp",
]
