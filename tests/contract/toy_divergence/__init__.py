"""A divergence from outside: what it is, the functions of its rows, and one entry."""

from dataclasses import replace

from drmdp.sets.outside import by_address
from toy_divergence.functions import bound, cost, row

ENTRY = by_address(row, bound, cost)
MEAN = replace(ENTRY, witness="toy_divergence.witness:BALLS")
