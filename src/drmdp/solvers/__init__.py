"""Outer methods: how to get from one robust Bellman step to a certified solution."""
