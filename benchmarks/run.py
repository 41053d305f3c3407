"""Print the tables behind every figure we quote: the same as `drmdp bench`."""

from drmdp.cli import main

if __name__ == "__main__":
    main(["bench"])
