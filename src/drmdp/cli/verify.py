"""`drmdp verify`: check a proof with the checker that shares no line with this package."""

from __future__ import annotations

import click


@click.command()
@click.argument("proof", metavar="PROOF")
@click.argument("model_path", metavar="MODEL")
@click.option("--interval", is_flag=True, help="Calculate in floats that are rounded outwards, for large models.")
def verify(proof: str, model_path: str, interval: bool) -> int:
    """Check a proof that `drmdp solve --proof` wrote, and print the bounds that hold.

    MODEL is the .npz file or .drmdp directory that was solved. The exit code is 0 only if all claimed bounds hold. The same is done by
    `python -m drmdp_check`, which needs nothing but Python.
    """
    import drmdp_check

    code: int = drmdp_check.main([*(["--interval"] if interval else []), proof, model_path])  # type: ignore[no-untyped-call]
    return code
