"""What knows neither a set nor a method."""

from drmdp.core import compiled as compiled  # before all kernels, which look for a place for what is compiled
