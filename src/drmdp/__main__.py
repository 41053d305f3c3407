"""`python -m drmdp` is the command line."""

from drmdp.cli import main

main()
