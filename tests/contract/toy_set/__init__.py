"""A set from outside: its class, its response and its proof, a file each, and one entry."""

from drmdp.sets.registry import Entry, Kept

ENTRY = Entry("toy_set.response", "toy_set.proof", Kept(by_kernel=True, by_row=False))
MAKER = "toy_set.contamination:Contamination"
