"""A set from outside: its class, the functions of its rows, and one entry."""

from dataclasses import replace

from drmdp.sets.outside import by_address
from toy_set.functions import bound, cost, row

ENTRY = replace(by_address(row, bound, cost, by_kernel=True), witness="toy_set.witness:SHARES")
MAKER = "toy_set.contamination:Contamination"
