"""Kernels that execute pages speak over a local socket of their own; what they say about that is no warning of ours.

Pages do not show what takes long: that depends on the machine.
"""

c = get_config()  # noqa: F821
c.IPKernelApp.log_level = 40
c.InteractiveShellApp.exec_lines = [
    "import drmdp.core.progress",
    "drmdp.core.progress.DELAY = float('inf')",
    "del drmdp",
]
