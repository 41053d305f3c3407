"""A divergence from outside: what it is, its rows and their proof, a file each, and one entry."""

from drmdp.sets.registry import Entry, Kept

ENTRY = Entry("toy_divergence.rows:MEAN", "toy_divergence.proof:MEAN", Kept(False, True, width=3))
