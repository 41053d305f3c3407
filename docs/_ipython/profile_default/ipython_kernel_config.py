"""Kernels that execute pages speak over a local socket of their own; what they say about that is no warning of ours."""

c = get_config()  # noqa: F821
c.IPKernelApp.log_level = 40
