"""A set from outside: its class, the functions of its rows, and one entry."""

from drmdp.sets.outside import by_address
from toy_set.functions import bound, cost, row

ENTRY = by_address(row, bound, cost, by_kernel=True)
MAKER = "toy_set.contamination:Contamination"
