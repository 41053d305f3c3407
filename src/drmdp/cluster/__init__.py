"""Past one machine: the same solvers on ranges of states."""
