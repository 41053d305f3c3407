"""What (l1, inf) and (linf, 1) share."""
