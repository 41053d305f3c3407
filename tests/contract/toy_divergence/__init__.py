"""A divergence from outside: what it is, the functions of its rows, and one entry."""

from drmdp.sets.outside import by_address
from toy_divergence.functions import bound, cost, row

ENTRY = by_address(row, bound, cost)
