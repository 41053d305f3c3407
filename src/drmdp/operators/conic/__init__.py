"""Conic programs of every operator: slow and independent."""
