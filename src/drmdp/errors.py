"""What can go wrong by the caller's hand, as one family of exceptions."""


class InputError(ValueError):
    """Bad input: the message names the place (state, action, kernel, file line) and the value."""


class MissingExtra(ImportError):  # noqa: N818  (reads as the advice it gives)
    """An optional dependency is needed; the message says how to install it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; in a clone of drmdp: {install(extra)}")


def install(extra: str) -> str:
    """The command that installs an extra; there is no release, so it works in a clone."""
    return f"pip install '.[{extra}]'"


class Notice(UserWarning):
    """Something to know about what was done, such as what a format leaves out; the command line prints it as a line."""


def shown(given: object) -> str:
    """`repr` on one short line, for messages; some objects cannot even be printed."""
    try:
        text = " ".join(repr(given).split())
    except Exception:
        text = f"<{type(given).__name__}>"
    return text if len(text) <= 80 else f"{text[:77]}…"
