"""A policy against nature's answers: Newton's method and the simplex method, for the balls of `drmdp.bellman.orders`."""
